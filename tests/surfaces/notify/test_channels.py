"""What holds of every way of telling somebody, by its class alone; also of one that there is not."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from gitgate.surfaces.notify import Channel, Endpoint, Notification, NotSent
from gitgate.surfaces.notify.addresses import CHANNELS, split_address
from gitgate.surfaces.notify.desktop import arguments
from gitgate.surfaces.notify.webhook import is_here, signature, signing_key

from .conftest import SECRET, Listener

HOSTILE = "--help '$(touch owned)' \"; `touch owned` & <b>"


class Blackboard:
    """One more way: it writes on a wall."""

    kind = "blackboard"

    def misfit(self, target: Endpoint) -> str:
        return "" if target.words else "blackboard ROOM"

    def lacks(self, target: Endpoint) -> str:
        return "" if Path(target.words).is_dir() else f"there is no room {target.words}"

    def shown(self, target: Endpoint) -> str:
        return f"blackboard {Path(target.words).name}"

    def send(self, target: Endpoint, notification: Notification) -> None:
        try:
            (Path(target.words) / "board").write_text(json.dumps(notification.shape), encoding="utf-8")
        except OSError as failed:
            raise NotSent("the board is gone") from failed


EVERY: list[Channel] = [*CHANNELS.values(), Blackboard()]


@pytest.fixture(autouse=True)
def _one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CHANNELS, "blackboard", Blackboard())


def said(title: str = "Question: Which?", text: str = "git gate respond 7k2f") -> Notification:
    shape = {"schema": "gitgate.notification/v1", "event": "opened", "title": title, "text": text}
    return Notification("msg_1", "opened", "7k2fw9c3ab", title, text, False, shape)


def working(channel: Channel, tmp_path: Path, listener: Listener) -> Endpoint:
    """A target that gets what it is sent; what it got is for `arrived`."""
    program = tmp_path / "bin" / "hear"
    program.parent.mkdir(exist_ok=True)
    program.write_text(
        f'#!{sys.executable}\nimport sys, json\njson.dump([sys.argv[1:], sys.stdin.read()], open("{tmp_path}/got", "w"))\n'
    )
    program.chmod(0o755)
    shutil.copy(program, program.parent / "notify-send")
    env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    words = {
        "desktop": "",
        "command": "hear 'one word' two",
        "webhook": listener.url,
        "apprise": f"json://127.0.0.1:{listener.port}/secret-path",
        "blackboard": str(tmp_path),
    }
    return Endpoint(words[channel.kind], SECRET, env=env)


def arrived(tmp_path: Path, listener: Listener) -> str:
    """All that came, wherever it came."""
    files = [place.read_text("utf-8") for name in ("got", "board") if (place := tmp_path / name).exists()]
    return "".join([*files, *(json.dumps(one) for one in listener.said)])


def test_the_registry_is_what_an_address_names() -> None:
    """Each kind is found by its own word; a chat by what stands before `://`."""
    for kind, channel in CHANNELS.items():
        assert channel.kind == kind
        found, words = split_address("slack://a/b/c" if kind == "apprise" else f"{kind} x")
        assert (found, words) == (channel, "slack://a/b/c" if kind == "apprise" else "x")
    assert split_address("telegraph x")[0] is None
    assert split_address("apprise x")[0] is None


EACH = [
    # Apprise alone takes as long to load as all others take to send.
    pytest.param(one, id=one.kind, marks=[pytest.mark.slow] if one.kind == "apprise" else [])
    for one in EVERY
]


@pytest.mark.parametrize("channel", EACH)
def test_what_is_said_arrives(channel: Channel, tmp_path: Path, listener: Listener) -> None:
    """Title and text, or the JSON that has both; the address is shown without what is secret in it."""
    target = working(channel, tmp_path, listener)
    assert channel.misfit(target) == ""
    assert channel.lacks(target) == ""
    channel.send(target, said(HOSTILE))
    got = arrived(tmp_path, listener)
    assert "7k2f" in got
    assert "touch owned" in got
    assert "secret" not in channel.shown(target)
    assert not list(tmp_path.rglob("owned"))


@pytest.mark.parametrize("channel", EACH)
def test_what_cannot_arrive_says_so(channel: Channel, tmp_path: Path, listener: Listener) -> None:
    """NotSent, and no word of a secret."""
    target = working(channel, tmp_path, listener)
    listener.status = 500
    (tmp_path / "bin" / "hear").write_text("#!/bin/sh\necho no luck >&2; exit 3\n")
    shutil.copy(tmp_path / "bin" / "hear", tmp_path / "bin" / "notify-send")
    if channel.kind == "blackboard":
        target = Endpoint(str(tmp_path / "nowhere"))
    with pytest.raises(NotSent) as failed:
        channel.send(target, said())
    assert "secret" not in f"{failed.value.message}{failed.value.hint}"


@pytest.mark.parametrize("channel", EVERY, ids=lambda one: one.kind)
def test_an_address_that_is_none_is_refused(channel: Channel) -> None:
    """By its words alone, with what was expected."""
    wrong = {
        "desktop": "big",
        "command": "",
        "webhook": "not an address",
        "apprise": "slack",
        "blackboard": "",
    }
    assert channel.misfit(Endpoint(wrong[channel.kind]))


def test_the_signature_is_that_of_the_specification(listener: Listener) -> None:
    """As its own library signs this message; and each request's, reckoned here anew from the bytes that came."""
    body = b'{"test": 2432232314}'
    known = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert signature(SECRET, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body) == known
    CHANNELS["webhook"].send(Endpoint(listener.url, SECRET), said("Question: é"))
    ((headers, came),) = listener.got
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + came
    wanted = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{wanted}"
    assert headers["webhook-id"] == "msg_1"
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60


@pytest.mark.parametrize(
    "secret", ["", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_####", "whsec_YWJj", "whsec_" + "YWJj" * 30]
)
def test_a_secret_that_is_none_is_refused(secret: str) -> None:
    """Nothing is signed with too short a key, and none of it is said."""
    with pytest.raises(ValueError, match="a webhook needs a secret") as wrong:
        signing_key(secret)
    assert not secret or secret not in str(wrong.value)


@pytest.mark.parametrize(
    ("address", "own", "fits"),
    [
        ("https://example.org/gates", False, True),
        ("https://example.org:8443/gates?a=b", False, True),
        ("http://127.0.0.1:8000/", True, True),
        ("http://[::1]:8000/", True, True),
        ("http://127.0.0.1:8000/", False, False),
        ("http://example.org/", True, False),
        ("http://127.0.0.1.example.org/", True, False),
        ("ftp://example.org/", True, False),
        ("file:///etc/passwd", True, False),
        ("https://", True, False),
        ("https://example.org/ x", True, False),
        ("https://example.org/\nx", True, False),
        ("https://example.org:99999/", True, False),
    ],
)
def test_a_webhook_goes_over_https(address: str, own: bool, fits: bool) -> None:
    """Or to this machine itself, if its own configuration says so: the branch reaches none of its services."""
    assert (CHANNELS["webhook"].misfit(Endpoint(address, own=own)) == "") is fits


def test_who_is_here() -> None:
    assert [is_here(host) for host in ("localhost", "127.0.0.1:80", "[::1]:80", "example.org")] == [
        True
    ] * 3 + [False]


@pytest.mark.parametrize(
    ("status", "gone", "after"), [(410, True, 0.0), (302, False, 0.0), (429, False, 90.0), (404, False, 0.0)]
)
def test_what_a_refusal_means(listener: Listener, status: int, gone: bool, after: float) -> None:
    """410 is for ever; a pause that is asked for is kept; where it leads elsewhere, nobody follows."""
    listener.status = status
    listener.headers = {"Retry-After": "90", "Location": f"{listener.url}/elsewhere"}
    with pytest.raises(NotSent) as failed:
        CHANNELS["webhook"].send(Endpoint(listener.url, SECRET), said())
    assert (failed.value.gone, failed.value.after) == (gone, after)
    assert len(listener.got) == 1


def test_each_desktop_is_given_words_and_no_script() -> None:
    """Linux and macOS as arguments after `--`; Windows on standard input. The script is the same whatever is said."""
    hostile, plain = said(HOSTILE), said()
    assert arguments("notify-send", hostile)[-3:] == ["--", HOSTILE, hostile.text]
    assert arguments("osascript", hostile)[-3:] == ["--", HOSTILE, hostile.text]
    assert arguments("osascript", hostile)[:-2] == arguments("osascript", plain)[:-2]
    assert arguments("powershell.exe", hostile) == arguments("powershell.exe", plain)
    assert arguments("osascript", plain)[:2] == ["-e", "on run argv"]


def test_a_program_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what it started; nobody waits for longer than was said."""
    monkeypatch.setattr("gitgate.surfaces.notify.command.LONGEST", 0.3)
    program = tmp_path / "slow"
    program.write_text("#!/bin/sh\nsleep 60\n")
    program.chmod(0o755)
    with pytest.raises(NotSent, match="did not end within"):
        CHANNELS["command"].send(Endpoint(str(program), env=dict(os.environ)), said())


def test_what_a_program_leaves_running_is_not_waited_for(tmp_path: Path) -> None:
    """It may show a window that stays."""
    program = tmp_path / "leaves"
    program.write_text("#!/bin/sh\nsleep 90 &\n")
    program.chmod(0o755)
    began = time.monotonic()
    CHANNELS["command"].send(Endpoint(str(program), env=dict(os.environ)), said())
    assert time.monotonic() - began < 45


def test_a_program_of_the_working_tree_is_none(tmp_path: Path) -> None:
    """Agents write there: what is started has to be the machine's."""
    program = tmp_path / "repo" / "hear"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    command = CHANNELS["command"]
    assert "working tree" in command.lacks(
        Endpoint(str(program), env=dict(os.environ), tree=tmp_path / "repo")
    )
    assert command.misfit(Endpoint("./hear"))
    assert command.lacks(Endpoint("hear", env={"PATH": f".:{tmp_path}/nothing"}))


def test_without_apprise_it_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    chat = CHANNELS["apprise"]
    assert "pip install 'git-gate[notify]'" in chat.lacks(Endpoint("slack://a/b/c"))
    with pytest.raises(NotSent, match="slack://… takes Apprise"):
        chat.send(Endpoint("slack://a/b/c"), said())


def test_what_apprise_does_not_know_is_named() -> None:
    assert "cannot read the address nosuchthing://…" in CHANNELS["apprise"].lacks(
        Endpoint("nosuchthing://a/b")
    )
