"""The way to a forge: patient where it helps, and no token is told to anybody else."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from forges.standin import START, Fault, Forge
from gitgate.errors import Failure
from gitgate.surfaces.github.client import GitHub, headers
from gitgate.surfaces.github.web import ForgeFailed, Unclear, Web, next_page

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


@pytest.mark.parametrize("address", ["http://github.example", "ftp://127.0.0.1", "file:///etc/passwd", "//x"])
def test_a_token_does_not_travel_in_the_open(address: str) -> None:
    """Other than to this very machine."""
    with pytest.raises(Failure, match="not https"):
        Web(address, "secret")


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
        thread.join(10)


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
