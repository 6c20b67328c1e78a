"""The way to a forge: patient where it helps, and no token is told to anybody else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from gitgate.errors import Failure
from gitgate.surfaces.forge.hosts import Author, Comment
from gitgate.surfaces.forge.hosts.connect import ForgePlace, web_to
from gitgate.surfaces.forge.hosts.github import GitHub, headers
from gitgate.surfaces.forge.hosts.web import ForgeFailed, Unclear, Web, failed, next_page
from support import PATIENCE
from support.forges.standin import START, Fault, Forge

THREAD = 7


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def hub(forge: Forge, pauses: list[float]) -> GitHub:
    web = Web(forge.api, "job-token", headers=headers(), pause=pauses.append, clock=lambda: START)
    return GitHub(web, forge.repository, forge.site)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_forge_in_trouble_is_asked_again(
    hub: GitHub, forge: Forge, pauses: list[float], status: int
) -> None:
    """After a while, each time a longer one."""
    forge.faults = [Fault(status), Fault(status)]
    assert hub.may_write("ada")
    assert pauses == [1.0, 2.0]


def test_a_forge_that_stays_in_trouble_is_left(hub: GitHub, forge: Forge, pauses: list[float]) -> None:
    """Bounded, with an error that says what."""
    forge.faults = [Fault(503) for _ in range(9)]
    with pytest.raises(ForgeFailed, match=r"answered 503 to GET .*permission: a fault"):
        hub.may_write("ada")
    assert len(pauses) == 4


@pytest.mark.parametrize(
    ("fault", "pause"),
    [
        (Fault(429, {"Retry-After": "7"}), 7.0),
        (Fault(403, {"Retry-After": "3"}), 3.0),
        (Fault(403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(START + 30)}), 31.0),
    ],
)
def test_a_rate_limit_is_waited_for(
    hub: GitHub, forge: Forge, pauses: list[float], fault: Fault, pause: float
) -> None:
    """As long as the forge says; a comment too, since it was not posted."""
    forge.faults = [fault]
    hub.post_comment(THREAD, "hello")
    assert pauses == [pause]
    assert len(forge.comments) == 1


def test_a_limit_that_lasts_long_is_not_waited_for(hub: GitHub, forge: Forge, pauses: list[float]) -> None:
    """A job has better to do; a later sweep catches up."""
    forge.faults = [Fault(403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(START + 3000)})]
    with pytest.raises(ForgeFailed, match="403"):
        hub.may_write("ada")
    assert pauses == []


def test_a_refusal_is_no_trouble(hub: GitHub, forge: Forge, pauses: list[float]) -> None:
    """What is forbidden stays so."""
    forge.faults = [Fault(403)]
    with pytest.raises(ForgeFailed):
        hub.may_write("ada")
    assert pauses == []


@pytest.mark.parametrize("status", [403, 404])
@pytest.mark.parametrize(
    ("method", "path", "right"),
    [
        ("POST", "/repos/team/project/issues/7/comments", "Issues and Pull requests: write"),
        ("GET", "/repos/team/project/pulls", "Pull requests: read"),
        ("GET", "/repos/team/project/commits/abc/pulls", "Pull requests: read"),
        ("POST", "/repos/team/project/statuses/abc", "Commit statuses: write"),
        ("GET", "/repos/team/project/commits/abc/status", "Commit statuses: read"),
        ("POST", "/repos/team/project/actions/workflows/gitgate.yml/dispatches", "Actions: write"),
        ("POST", "/repos/team/project/dispatches", "Contents: write"),
        ("GET", "/repos/team/project/collaborators/ada/permission", "Metadata: read"),
        ("GET", "/repos/team/project/actions/secrets", "Secrets: read"),
    ],
)
def test_a_refusal_names_what_the_token_lacks(status: int, method: str, path: str, right: str) -> None:
    """As GitHub calls it where tokens are made."""
    assert f"it takes {right}:" in failed("https://api.github.com", method, path, status, "").hint


class Strange(BaseHTTPRequestHandler):
    """Answers everything with the same value, which is valid JSON and not what was asked for."""

    value: object = None

    def handle_any(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = json.dumps(self.value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = handle_any  # noqa: N815 - the names that http.server looks for

    def log_message(self, format: str, *args: object) -> None:
        """Tests are quiet."""


STRANGE: list[object] = [
    None,
    [],
    {},
    "words",
    7,
    [None],
    ["x"],
    [7],
    {"id": "x"},
    [{}],
    {"message": "no"},
    {"user": 3},
    {"statuses": 3},
    {"statuses": [3]},
]
CALLS: list[Callable[[GitHub], object]] = [
    lambda hub: hub.fetch_self(),
    lambda hub: hub.fetch_comment(7),
    lambda hub: hub.fetch_comments(THREAD),
    lambda hub: hub.post_comment(THREAD, "x"),
    lambda hub: hub.may_write("ada"),
    lambda hub: hub.find_pull_requests("feature"),
    lambda hub: hub.list_pull_requests(),
    lambda hub: hub.find_pull_requests_with("a" * 40),
    lambda hub: hub.fetch_pull_request(7),
    lambda hub: hub.fetch_status("a" * 40),
    lambda hub: hub.default_branch(),
    lambda hub: hub.dispatch("7k2fw9c3ab", "a" * 40),
    lambda hub: hub.is_ours("team/other"),
    lambda hub: hub.has_jobs(),
    lambda hub: hub.fetch_secret_names(),
    lambda hub: hub.react(Comment(7, THREAD, "x", Author("ada", 1), "", "", ""), "eyes"),
]  # fmt: skip


@pytest.mark.slow
def test_an_answer_of_another_shape_is_the_forges_failure() -> None:
    """Whatever valid JSON it sends for whatever is asked: no other error comes of it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Strange) as listening:
        thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        failures = 0
        for value in STRANGE:
            Strange.value = value
            for call in CALLS:
                web = Web(f"http://127.0.0.1:{listening.server_port}", "t", pauses=())
                try:
                    call(GitHub(web, "team/project", "https://x.example"))
                except ForgeFailed:
                    failures += 1
        listening.shutdown()
        thread.join(PATIENCE)
    assert failures > len(STRANGE) * len(CALLS) / 2


def test_a_comment_is_not_posted_twice(hub: GitHub, forge: Forge) -> None:
    """A 502 after the fact: whoever posts looks whether it is there, and nothing is repeated blindly."""
    forge.faults = [Fault(502, done=True, methods=("POST",))]
    with pytest.raises(ForgeFailed) as failed:
        hub.post_comment(THREAD, "hello")
    assert isinstance(failed.value, Unclear)
    assert len(forge.comments) == 1


def test_a_token_stays_out_of_sight(hub: GitHub) -> None:
    """Neither an error nor a log shows it."""
    assert "job-token" not in repr(hub)
    bad = GitHub(Web(hub.web.base, "wrong-token", headers=headers()), hub.repository, hub.site)
    with pytest.raises(ForgeFailed, match="401") as failed:
        bad.may_write("ada")
    assert "wrong-token" not in f"{failed.value} {failed.value.hint}"


def test_a_token_that_is_not_valid_names_what_counts_there(forge: Forge) -> None:
    """A token for github.com would be told to no other host, so that to set it would not help."""
    place = ForgePlace("github", "git.example.org", forge.api, "https://git.example.org/o/r", "o/r")
    with pytest.raises(ForgeFailed, match="401") as failed:
        web_to(place, "wrong-token").get("/user")
    assert "gh auth login --hostname git.example.org" in failed.value.hint
    assert " GITHUB_TOKEN" not in failed.value.hint


@pytest.mark.parametrize("address", ["http://github.example", "ftp://127.0.0.1", "file:///etc/passwd", "//x"])
def test_a_token_does_not_travel_in_the_open(address: str) -> None:
    """Other than to this very machine."""
    with pytest.raises(Failure, match="not https"):
        Web(address, "secret")


@pytest.mark.parametrize(
    "address",
    [
        "http://x:SEKRET@github.example/api/v3",
        "https://x:SEKRET@github.example/api/v3",
        "https://SEKRET@127.0.0.1:9",
        "http://x:SEKRET@127.0.0.1:9",
        "http://x:SEK/SEKRET@github.example",
        "https://x:SEKRET@[bad",
        "https://x:SEKRET@github.example:99999",
    ],
)
def test_a_password_in_the_address_is_not_repeated(address: str) -> None:
    """Such an address is refused at once: what fails later would name it."""
    with pytest.raises(Failure) as failed:
        Web(address, "token")
    assert "SEKRET" not in f"{failed.value.message} {failed.value.hint}"
    assert "forge's API" in failed.value.message


class Elsewhere(BaseHTTPRequestHandler):
    """Sends everybody on, and notes what it was told."""

    there = ""
    heard: list[str] = []  # noqa: RUF012 - one test, one class

    def do_GET(self) -> None:
        self.heard.append(self.headers.get("Authorization", ""))
        self.send_response(302 if self.there else 200)
        if self.there:
            self.send_header("Location", self.there)
            self.send_header("Link", f'<{self.there}>; rel="next"')
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"[]")

    def log_message(self, format: str, *args: object) -> None:
        """Tests are quiet."""


@pytest.fixture
def elsewhere() -> Iterator[tuple[type[Elsewhere], int]]:
    handler = type("Other", (Elsewhere,), {"heard": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield handler, listening.server_port
        listening.shutdown()
        thread.join(PATIENCE)


def test_no_other_host_hears_the_token(elsewhere: tuple[type[Elsewhere], int]) -> None:
    """A redirect to another origin is not followed."""
    handler, port = elsewhere
    handler.there = f"http://localhost:{port}/there"
    with pytest.raises(ForgeFailed, match="302"):
        Web(f"http://127.0.0.1:{port}", "secret").get("/here")
    assert handler.heard == ["Bearer secret"]


def test_a_renamed_repository_is_followed(elsewhere: tuple[type[Elsewhere], int]) -> None:
    """On the same origin, and not for ever."""
    handler, port = elsewhere
    handler.there = f"http://127.0.0.1:{port}/there"
    with pytest.raises(ForgeFailed, match="302"):
        Web(f"http://127.0.0.1:{port}", "secret").get("/here")
    assert 2 <= len(handler.heard) <= 5


class Odd(BaseHTTPRequestHandler):
    """Answers everything with the same status and headers, and an empty list."""

    status = 200
    sent: tuple[str, str] = ("", "")

    def handle_any(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(self.status)
        for name, word in dict([("Content-Length", "2"), self.sent]).items():
            self.send_header(name, word)
        if self.status == 403:
            self.send_header("X-RateLimit-Remaining", "0")
        self.end_headers()
        self.wfile.write(b"[]")

    do_GET = do_POST = handle_any  # noqa: N815 - the names that http.server looks for

    def log_message(self, format: str, *args: object) -> None:
        """Tests are quiet."""


@pytest.mark.parametrize(
    ("status", "name", "word"),
    [
        (301, "Location", "http://[bad"),
        (301, "Location", "http://127.0.0.1:abc/x"),
        (301, "Location", "http://127.0.0.1:99999/x"),
        (301, "Location", "/caf\u00e9"),
        (301, "Location", ""),
        (200, "Link", '<http://[bad>; rel="next"'),
        (200, "Link", '<http://127.0.0.1:abc/>; rel="next"'),
        (200, "Link", '<HERE/caf\u00e9>; rel="next"'),
        (200, "Link", '</x?page=2>; rel="next"'),
        (200, "Content-Length", "9" * 5000),
        (403, "X-RateLimit-Reset", "9" * 400),
        (403, "X-RateLimit-Reset", "9" * 5000),
        (403, "Retry-After", "9" * 5000),
    ],
    ids=range(13),
)
def test_a_header_that_is_odd_is_the_forges_failure(status: int, name: str, word: str) -> None:
    """Addresses that are none, numbers without end: no other error comes of it, and nobody waits that long."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Odd) as listening:
        Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        base = f"http://127.0.0.1:{listening.server_port}"
        Odd.status, Odd.sent = status, (name, word.replace("HERE", base))
        waited: list[float] = []
        web = Web(base, "secret", pauses=(), longest=0.5, pause=waited.append)
        with pytest.raises(ForgeFailed):
            list(web.pages("/list", {}))
        if name != "Link":
            with pytest.raises(ForgeFailed):
                web.send("POST", "/list", {})
        listening.shutdown()
    assert waited == []


@pytest.mark.parametrize(
    ("link", "there"),
    [
        ('<https://a/x?page=2>; rel="next", <https://a/x?page=9>; rel="last"', "https://a/x?page=2"),
        ('<https://a/x?page=9>; rel="last"', ""),
        ("", ""),
        ('https://a; rel="next"', ""),
    ],
)
def test_the_next_page(link: str, there: str) -> None:
    """As the forge names it."""
    assert next_page(link) == there
