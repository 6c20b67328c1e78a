"""The webhook receiver: signed, bounded, each taken once; and what it takes becomes an answer and starts the agent."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gitgate.core.summary import Summary
from gitgate.errors import Usage
from gitgate.surfaces.github.page import is_local, page
from gitgate.surfaces.github.webhook import MOST_BODY, Receiver, Seen, signed
from resuming import Agent, until
from testbed.command import COMMAND

from .conftest import THREAD, Team

SECRET = "0123456789abcdef0123456789abcdef"


def sign(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def headers(body: bytes, **changed: str) -> dict[str, str]:
    return {"x-hub-signature-256": sign(body), "x-github-event": "issue_comment", **changed}


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
        ("issue_comment", body_of(text="only talk"), 202),
        ("ping", b'{"zen": "x"}', 202),
        ("issue_comment", b'{"inputs": {"gate": "7k2fw9c3ab", "commit": ""}, "sender": {"login": "ada", "type": "User"}}', 202),
    ],
)  # fmt: skip
def test_what_is_not_for_us_is_left(receiver: Receiver, event: str, body: bytes, status: int) -> None:
    """Other events, talk, and what is no event at all; a webhook dispatches nothing."""
    assert receiver.take(headers(body, **{"x-github-event": event}), body)[0] == status
    assert receiver.events.empty()


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


@contextmanager
def serving(folder: Path, *flags: str) -> Iterator[tuple[str, int]]:
    """The command itself, as long as the `with` lasts; it ends cleanly."""
    running = subprocess.Popen(
        [str(COMMAND), "serve", "--port", "0", *flags],
        cwd=folder,
        env={**os.environ, "GITGATE_WEBHOOK_SECRET": SECRET},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert running.stdout is not None
        place = urlsplit(running.stdout.readline().strip())
        assert place.hostname is not None
        assert place.port is not None
        yield place.hostname, place.port
    finally:
        running.send_signal(signal.SIGTERM)
        _, err = running.communicate(timeout=20)
    assert running.returncode == 0, err


def post(place: tuple[str, int], body: bytes, path: str = "/", **changed: str) -> int:
    connection = http.client.HTTPConnection(*place, timeout=10)
    connection.request("POST", path, body, headers(body, **changed))
    status = connection.getresponse().status
    connection.close()
    return status


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


def test_strangers_get_little(team: Team) -> None:
    """Other paths, other methods, no length, too much of it, and a connection that says nothing."""
    here = team.job()
    with serving(here.path, "--sweep", "0s") as place, socket.create_connection(place, timeout=10):
        assert post(place, b"{}", "/other") == 404
        connection = http.client.HTTPConnection(*place, timeout=10)
        connection.putrequest("POST", "/")
        connection.putheader("Content-Length", str(MOST_BODY + 1))
        connection.endheaders()
        assert connection.getresponse().status == 413
        connection.close()
        for method, status in (("GET", 200), ("PUT", 501), ("DELETE", 501)):
            connection = http.client.HTTPConnection(*place, timeout=10)
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


def test_it_needs_a_secret(team: Team) -> None:
    """And says how to make one."""
    said = team.cli.quick("serve", "--port", "0", cwd=team.job().path, code=2)
    assert "openssl rand" in said.err


# the page


def get(place: tuple[str, int], path: str = "/", **headers: str) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection(*place, timeout=10)
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
    one = Summary("7k2fw9c3ab", "a" * 40, "awaiting", "\u202egnp.exe\x1b[31m" + "x" * 5000)
    said = page([one] * 3000, "/srv/<b>project")
    assert len(said) < 500_000
    assert "and 2500 more" in said
    assert "/srv/&lt;b&gt;project" in said
    assert "\u202e" not in said
    assert "\x1b" not in said
    assert "nothing waits" in page([], "here")
