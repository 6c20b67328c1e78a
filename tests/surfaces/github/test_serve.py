"""The webhook receiver: signed, bounded, each taken once; and what it takes becomes an answer and starts the agent."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import socket
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlencode

import pytest

from gitgate.cli.jobs.serve import Office
from gitgate.cli.terminal import Screen
from gitgate.errors import Failure, Usage
from gitgate.record import Summary
from gitgate.surfaces.forge.hosts import Commented, signed
from gitgate.surfaces.forge.shown import markdown
from gitgate.surfaces.forge.webhook import (
    MOST_BODY,
    Receiver,
    Seen,
    is_local,
    open_server,
    page,
    serve_webhooks,
)
from gitgate.text import format_time
from support import PATIENCE
from support.forges.standin import Fault
from support.resuming import Agent, until
from support.servers import WEBHOOK_SECRET as SECRET
from support.servers import serving

from .conftest import THREAD, Team


def sign(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def headers(body: bytes, **changed: str) -> dict[str, str]:
    said = {"x-hub-signature-256": sign(body), "x-github-event": "issue_comment"}
    return {**said, "content-type": "application/json", **changed}


def form(payload: bytes) -> bytes:
    """As GitHub sends it where nobody chose JSON."""
    return urlencode({"payload": payload}).encode()


FORM = {"content-type": "application/x-www-form-urlencoded"}


def body_of(number: int = 1, text: str = "/approve") -> bytes:
    event = {
        "action": "created",
        "comment": {"id": number, "body": text},
        "issue": {"number": 7},
        "sender": {"login": "ada", "type": "User"},
        "repository": {"full_name": "team/project"},
    }
    return json.dumps(event).encode()


@pytest.fixture
def receiver(tmp_path: Path) -> Receiver:
    return Receiver(SECRET, Seen(tmp_path / "seen"))


def test_a_signed_comment_is_taken_once(receiver: Receiver, tmp_path: Path) -> None:
    """A replay is refused by its body, whatever number its delivery claims; over a restart too."""
    body = body_of()
    assert receiver.take(headers(body), body) == (202, "taken")
    assert receiver.take(headers(body, **{"x-github-delivery": "another"}), body) == (202, "taken before")
    again = Receiver(SECRET, Seen(tmp_path / "seen"))
    assert again.take(headers(body), body) == (202, "taken before")
    assert receiver.events.qsize() == 1
    assert again.events.qsize() == 0


@pytest.mark.parametrize(
    "signature", ["", "sha256=", "sha256=" + "0" * 64, "sha1=" + "0" * 40, sign(b"other"), sign(body_of(), "another secret"), "\u00e9"]
)  # fmt: skip
def test_what_is_not_signed_is_refused(receiver: Receiver, signature: str) -> None:
    """Nothing of it is looked at."""
    body = body_of()
    assert receiver.take(headers(body, **{"x-hub-signature-256": signature}), body)[0] == 401
    assert receiver.events.empty()


def test_the_forges_own_example_of_a_signature() -> None:
    """As GitHub's documentation gives it."""
    wanted = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert signed("It's a Secret to Everybody", b"Hello, World!", wanted)


@pytest.mark.parametrize(
    ("event", "body", "status"),
    [
        ("push", b"{}", 202),
        ("issue_comment", b"not json", 400),
        ("issue_comment", b"[]", 400),
        ("issue_comment", b"[" * 100_000, 400),
        ("issue_comment", body_of(text="only talk, which says more than an option's name does"), 202),
        ("ping", b'{"zen": "x"}', 202),
        ("issue_comment", b'{"inputs": {"gate": "7k2fw9c3ab", "commit": ""}, "sender": {"login": "ada", "type": "User"}}', 202),
    ],
)  # fmt: skip
def test_what_is_not_for_us_is_left(receiver: Receiver, event: str, body: bytes, status: int) -> None:
    """Other events, talk, and what is no event at all; a webhook dispatches nothing."""
    assert receiver.take(headers(body, **{"x-github-event": event}), body)[0] == status
    assert receiver.events.empty()


def test_what_may_be_an_options_name_is_looked_at(receiver: Receiver) -> None:
    """With its words, by which whoever has the gates tells it from talk."""
    body = body_of(7, "Postgres")
    assert receiver.take(headers(body), body)[0] == 202
    assert receiver.events.get() == Commented(7, "team/project", words="Postgres")


def test_githubs_own_content_type_is_taken(receiver: Receiver) -> None:
    """A form is what a webhook sends unless somebody chooses JSON; what is signed is the form as it came."""
    body = form(body_of(7, "/approve \u00fc & = +%"))
    assert receiver.take(headers(body, **FORM), body) == (202, "taken")
    assert receiver.events.get() == Commented(7, "team/project")
    assert receiver.take(headers(body, **FORM), body) == (202, "taken before")
    other = body_of(8)
    assert (
        receiver.take(headers(form(other), **FORM, **{"x-hub-signature-256": sign(other)}), form(other))[0]
        == 401
    )
    utf = {"content-type": "Application/JSON; charset=utf-8"}
    assert receiver.take(headers(other, **utf), other) == (202, "taken")


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "multipart/form-data; boundary=x", "application/xml", "json"]
)
def test_other_content_types_are_refused_in_words(receiver: Receiver, kind: str) -> None:
    """What to choose is said where GitHub lists its deliveries."""
    body = body_of()
    status, words = receiver.take(headers(body, **{"content-type": kind}), body)
    assert status == 415
    assert "content type has to be application/json" in words
    assert receiver.events.empty()


@pytest.mark.parametrize(
    "body", [b"", b"payload", b"payload=", b"payload=%ff%fe", b"other=1", b"payload=[]", b"&" * 1000, b"a=1&" * 100, b"payload=%7B"]
)  # fmt: skip
def test_a_form_without_an_event_is_none(receiver: Receiver, body: bytes) -> None:
    """However it is made."""
    assert receiver.take(headers(body, **FORM), body)[0] == 400
    assert receiver.events.empty()


@pytest.mark.parametrize(
    "change",
    [
        {"comment": {"id": True, "body": "/approve"}}, {"comment": {"id": 10**30, "body": "/approve"}},
        {"comment": {"id": 1.5, "body": "/approve"}}, {"comment": {"body": "/approve"}}, {"comment": "x"}, {"comment": None},
        {"comment": {"id": 1, "body": ["/approve"]}}, {"comment": {"id": 1, "body": {"a": 1}}}, {"action": ["created"]},
        {"action": {"a": "b"}},
    ],
)  # fmt: skip
def test_an_event_of_another_shape_is_left(receiver: Receiver, change: dict[str, object]) -> None:
    """Signed, and hostile all the same: nothing breaks, nothing is queued."""
    body = json.dumps({**json.loads(body_of()), **change}).encode()
    assert receiver.take(headers(body), body)[0] == 202
    assert receiver.events.empty()


def test_what_could_not_be_remembered_may_come_again(receiver: Receiver, tmp_path: Path) -> None:
    """A full disk is no reason to call the next try a replay."""
    body = body_of()
    receiver.seen.place = tmp_path / "seen.d" / "x"
    (tmp_path / "seen.d").write_text("no folder")
    with pytest.raises(OSError, match="seen"):
        receiver.take(headers(body), body)
    receiver.seen.place = tmp_path / "seen"
    assert receiver.take(headers(body), body) == (202, "taken")


def test_a_flood_fills_a_queue_and_no_more(receiver: Receiver) -> None:
    """What does not fit may be sent again later."""
    for number in range(1, 257):
        body = body_of(number)
        assert receiver.take(headers(body), body)[0] == 202
    late = body_of(999)
    assert receiver.take(headers(late), late)[0] == 503
    receiver.events.get()
    assert receiver.take(headers(late), late) == (202, "taken")


def test_a_short_secret_is_none(tmp_path: Path) -> None:
    """It could be guessed."""
    with pytest.raises(Usage, match="at least 16"):
        Receiver("short", Seen(tmp_path / "seen"))


def post(place: tuple[str, int], body: bytes, path: str = "/", **changed: str) -> int:
    connection = http.client.HTTPConnection(*place, timeout=PATIENCE)
    connection.request("POST", path, body, headers(body, **changed))
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.slow
def test_a_webhook_answers_a_gate_and_starts_its_agent(team: Team, agent: Agent) -> None:
    """A comment, its webhook, the answer in the shared repository, the agent started here; a stranger's does nothing."""
    gate = team.ask("Which?")
    here = team.job()
    here.git("config", "gitgate.resumeHere", "true")
    with serving(here.path) as place:
        assert place[0] == "127.0.0.1"
        outside = json.dumps(team.forge.event(team.forge.write(THREAD, "eve", "/answer MySQL"))).encode()
        assert post(place, outside) == 202
        event = json.dumps(team.forge.event(team.forge.write(THREAD, "ada", "/answer Postgres"))).encode()
        assert post(place, event, **{"x-hub-signature-256": sign(event, "wrong")}) == 401
        for _ in range(3):
            assert post(place, event) == 202
        until(lambda: agent.ends == [gate])
        until(lambda: "### ✅ Answered, and acted on" in team.shown(gate))
        assert len(team.told()) == 1
    assert agent.starts == [gate]
    assert team.gate(gate)["state"] == "resumed"


def raw(place: tuple[str, int], lines: bytes) -> bytes:
    """What a request of any shape is answered."""
    with socket.create_connection(place, timeout=PATIENCE) as stream:
        stream.sendall(lines)
        found = b""
        while chunk := stream.recv(65_536):
            found += chunk
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("length", "status"), [("9" * 5000, 413), ("1" * 13, 413), ("-1", 411), ("+1", 411), ("1_0", 411), ("", 411), ("\u00b2", 411)])  # fmt: skip
def test_a_length_is_a_number_of_some_digits(team: Team, length: str, status: int) -> None:
    """It is read before anything is known of who sends it."""
    with serving(team.job().path, "--sweep", "0s") as place:
        said = raw(place, f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode("latin-1"))
        assert int(said.split()[1]) == status


@pytest.mark.slow
def test_one_bad_delivery_is_not_the_end(team: Team) -> None:
    """A comment that the forge gives without its fields, one that it answers strangely, and then a good one, before which
    the first is heard after all.
    """
    gate = team.ask("Which?")
    strange = team.forge.write(THREAD, "ada", "/answer MySQL")
    event = json.dumps(team.forge.event(strange)).encode()
    team.forge.faults = [
        Fault(200, path=f"/issues/comments/{strange['id']}")
    ]  # {"message": …}, and no comment
    with serving(team.job().path, "--sweep", "0s") as place:
        assert post(place, event) == 202
        until(lambda: not team.forge.faults)
        good = json.dumps(team.forge.event(team.forge.write(THREAD, "ada", "/answer Postgres"))).encode()
        assert post(place, form(good), **FORM) == 202
        until(lambda: "### ✅ Answered" in team.shown(gate))
    assert team.gate(gate)["answer"]["values"] == {"answer": "MySQL"}


def test_what_nobody_foresaw_is_answered_and_said(tmp_path: Path) -> None:
    """A delivery, and the page: 500, a line in the log with nothing in it that a terminal obeys, and the next one is served."""

    class Broken(Receiver):
        def take(self, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
            if body == b"bad":
                raise RuntimeError("\x1b[31m" + "x" * 10_000)
            return super().take(headers, body)

    def no_page() -> str:
        raise RuntimeError("no page")

    said: list[str] = []
    server = open_server(Broken(SECRET, Seen(tmp_path / "seen")), "127.0.0.1", 0, no_page, said.append)
    place = ("127.0.0.1", server.server_port)
    stopping = Event()
    thread = Thread(target=lambda: serve_webhooks(server, stopping, lambda: time.sleep(0.02)))
    thread.start()
    try:
        assert post(place, b"bad") == 500
        assert get(place, Host=f"127.0.0.1:{place[1]}")[0] == 500
        assert post(place, body_of()) == 202
    finally:
        stopping.set()
        thread.join(PATIENCE)
    assert len(said) == 2
    assert all(len(words) < 400 and "\x1b" not in words for words in said)


@pytest.mark.slow
def test_nothing_that_is_done_with_a_delivery_ends_it(
    team: Team, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither working at it, nor an agent that was started for it, nor a sweep, which is not tried again at once."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr("gitgate.cli.jobs.serve.connect", fail)  # all three begin so
    screen = Screen(directory=str(team.job().path))
    receiver = Receiver(SECRET, Seen(tmp_path / "seen"))
    with ThreadPoolExecutor(1) as hands:
        office = Office(screen, receiver, Event(), hands, 1000)
        for number in (1, 2):
            receiver.events.put(Commented(number, "team/project"))
            office.work()
        office.swept -= 2000
        office.work()
        office.work()
        hands.submit(office.act, ["7k2fw9c3ab"]).result(20)
    assert capsys.readouterr().err.count("nobody foresaw this") == 4


@pytest.mark.slow
def test_all_that_one_delivery_or_sweep_found_is_said_and_goes_on(
    team: Team, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a reply that was heard before the delivery's own comment, and a place where nothing can be said."""
    gate = team.ask("Which?", "--timeout", "1h")
    team.forge.write(THREAD, "grace", "/answer Postgres")
    team.pass_time(3600)
    comment = team.forge.write(THREAD, "ada", "/answer SQLite")
    comment["created_at"] = comment["updated_at"] = format_time(team.clock())
    started: list[list[str]] = []
    receiver = Receiver(SECRET, Seen(tmp_path / "seen"))
    receiver.events.put(Commented(comment["id"], "team/project"))
    with ThreadPoolExecutor(1) as hands:
        office = Office(Screen(directory=str(team.job().path)), receiver, Event(), hands, 1000)
        monkeypatch.setattr(office, "start", lambda _desk, gates: started.append(gates))
        office.work()
        said = capsys.readouterr().err
        assert ("answered: " in said, "late: " in said, started) == (True, True, [[gate]])
        team.ask("And which?", show=False)
        words = "Unable to create comment because issue is locked."
        team.forge.faults = [Fault(403, words=words, methods=("POST", "PATCH"), path="/comments")] * 3
        office.swept -= 2000
        office.work()
    assert "the thread is locked" in capsys.readouterr().err


@pytest.mark.slow
def test_strangers_get_little(team: Team) -> None:
    """Other paths, other methods, no length, too much of it, and a connection that says nothing."""
    here = team.job()
    with serving(here.path, "--sweep", "0s") as place, socket.create_connection(place, timeout=PATIENCE):
        assert post(place, b"{}", "/other") == 404
        connection = http.client.HTTPConnection(*place, timeout=PATIENCE)
        connection.putrequest("POST", "/")
        connection.putheader("Content-Length", str(MOST_BODY + 1))
        connection.endheaders()
        assert connection.getresponse().status == 413
        connection.close()
        for method, status in (("GET", 200), ("PUT", 501), ("DELETE", 501)):
            connection = http.client.HTTPConnection(*place, timeout=PATIENCE)
            connection.request(method, "/")
            assert connection.getresponse().status == status
            connection.close()


@pytest.mark.slow
def test_what_was_missed_is_swept_up(team: Team) -> None:
    """Comments that came while nobody listened."""
    gate = team.ask("Which?")
    team.forge.write(THREAD, "ada", "/answer Postgres")
    with serving(team.job().path, "--sweep", "1s"):
        until(lambda: "### ✅ Answered" in team.shown(gate))


def test_a_port_that_is_taken_and_a_host_that_is_none(receiver: Receiver) -> None:
    """Each is told what helps; another port does not where the name leads nowhere."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(Failure) as refused:
            open_server(receiver, "127.0.0.1", taken.getsockname()[1])
    assert "--port 0" in refused.value.hint
    with pytest.raises(Failure) as refused:
        open_server(receiver, "no-such-host.invalid", 0)
    assert "--port" not in refused.value.hint
    assert "--host" in refused.value.hint


def test_it_needs_a_secret(team: Team) -> None:
    """And says how to make one; what was made reaches the next command."""
    said = team.cli.quick("serve", "--port", "0", cwd=team.job().path, code=2)
    assert "export GITGATE_WEBHOOK_SECRET=$(openssl rand -hex 32)" in said.err


def test_without_what_reads_comments_it_does_not_begin(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every delivery would fail."""
    markdown.cache_clear()
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    said = team.cli.quick(
        "serve", "--port", "0", cwd=team.job().path, env={"GITGATE_WEBHOOK_SECRET": SECRET}, code=1
    )
    assert "pip install 'git-gate[forge]'" in said.err


# the page


def get(place: tuple[str, int], path: str = "/", **headers: str) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection(*place, timeout=PATIENCE)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    said = answer.status, answer.read().decode(), {name.lower(): word for name, word in answer.getheaders()}
    connection.close()
    return said


@pytest.mark.slow
def test_the_page_lists_what_waits(team: Team) -> None:
    """Only where it is wanted, to this machine by its own name; words are words; a deadline is not acted on for a look."""
    gate = team.ask('Which <script>alert(1)</script> & "this"?', "--timeout", "1s", show=False)
    here = team.agents
    time.sleep(1)
    before = here.git("for-each-ref", "refs/hitl")
    with serving(here.path, "--sweep", "0s") as place:
        assert gate not in get(place)[1]
    with serving(here.path, "--sweep", "0s", "--page") as place:
        status, said, headers = get(place)
        assert (status, said.count(gate)) == (200, 1)
        assert "Which &lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;this&quot;?" in said
        assert "<script" not in said
        assert "default-src 'none'" in headers["content-security-policy"]
        assert get(place, "/other")[0] == 404
        for name, word in (
            ("Host", "evil.example"),
            ("X-Forwarded-For", "203.0.113.7"),
            ("Forwarded", "for=x"),
        ):
            assert gate not in get(place, **{name: word})[1]
        until(lambda: get(place)[0] == 200)
    assert here.git("for-each-ref", "refs/hitl") == before


def test_the_page_is_for_this_machine(team: Team) -> None:
    """Where others could ask for it, there is none."""
    env = {"GITGATE_WEBHOOK_SECRET": SECRET}
    words = ("serve", "--port", "0", "--host", "198.51.100.1", "--page")
    assert "this machine" in team.cli.quick(*words, cwd=team.job().path, env=env, code=2).err


@pytest.mark.parametrize(
    ("address", "host", "local"),
    [
        ("127.0.0.1", "127.0.0.1:80", True), ("::1", "[::1]:80", True), ("127.0.0.1", "localhost:80", True),
        ("203.0.113.7", "127.0.0.1:80", False), ("127.0.0.1", "localhost.evil.example:80", False),
        ("127.0.0.1", "localhost:81", False), ("127.0.0.1", "", False), ("x", "localhost:80", False),
    ],
)  # fmt: skip
def test_who_is_local(address: str, host: str, local: bool) -> None:
    """By the connection and by the name that was asked for: a page elsewhere may point its own name here."""
    assert is_local(address, {"host": host}, 80) is local


def test_the_page_is_bounded_and_says_nothing_by_itself() -> None:
    """Thousands of gates are some hundreds of lines; what hides or turns text is made visible."""
    one = Summary("7k2fw9c3ab", "a" * 40, "opened", "awaiting", "\u202egnp.exe\x1b[31m" + "x" * 5000)
    said = page([one] * 3000, "/srv/<b>project")
    assert len(said) < 500_000
    assert "and 2500 more" in said
    assert "/srv/&lt;b&gt;project" in said
    assert "\u202e" not in said
    assert "\x1b" not in said
    assert "nothing waits" in page([], "here")
