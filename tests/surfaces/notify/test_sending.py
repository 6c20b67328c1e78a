"""Each is told once: by whoever looks first, after failures, in several clones, whatever the address does meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import stat
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gitgate.acts.answering import edit, stop
from gitgate.acts.asking import AskWishes, ask
from gitgate.exchange.syncing import sync
from gitgate.gates.recording import is_told_of
from gitgate.model.gate import Gate, Question
from gitgate.questions.drafts import Draft
from gitgate.surfaces.notify.outbox import GIVEN_UP_AFTER, Outbox, open_outbox, outbox_folder, pause_after
from gitgate.surfaces.notify.sending import messenger_of
from support.resuming import Agent, Clock, Seat
from support.testbed.command import COMMAND, Command
from support.testbed.repositories import Clone

from .conftest import SECRET, Listener, send

PAGE = (Path(__file__).parents[3] / "docs" / "notifications.md").read_text("utf-8")
Told = Callable[[], list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def _by_hand(by_hand: list[Path]) -> None:
    """Nothing is sent but by `send`."""


def hook_up(clone: Clone, address: str, **options: str) -> None:
    clone.git("config", "--add", "gitgate.notify", address)
    clone.git("config", "gitgate.notify.secret", SECRET)
    for name, value in options.items():
        clone.git("config", f"gitgate.notify.{name}", value)


def asked(seat: Seat, prompt: str = "Which?", **fields: object) -> Gate:
    draft = Draft((Question("answer", prompt, "text"),), agent="scripted", session="session-1", **fields)  # type: ignore[arg-type]
    return ask(seat.desk, draft, AskWishes()).gate


def test_a_gate_is_told_once(alone: Seat, told: Told, tmp_path: Path) -> None:
    """However often anybody looks; the next gate is told by itself."""
    hook_up(alone.clone, f"command {tmp_path}/hear")
    first = asked(alone)
    assert [send(alone).sent for _ in range(3)] == [1, 0, 0]
    second = asked(alone, "And now?")
    assert send(alone).sent == 1
    assert [one["gate"]["id"] for one in told()] == [first.id, second.id]
    assert (tmp_path / "names").read_text() == f"opened {first.id}\nopened {second.id}\n"


def test_each_address_is_told_by_itself(alone: Seat, told: Told, listener: Listener, tmp_path: Path) -> None:
    """One that does not answer holds up no other, and is left alone longer each time."""
    hook_up(alone.clone, f"webhook {listener.url}")
    hook_up(alone.clone, f"command {tmp_path}/hear")
    listener.status = 503
    asked(alone)
    asked(alone)
    done = send(alone)
    assert (done.sent, done.failed) == (2, 1)
    assert len(told()) == 2
    assert len(listener.got) == 1
    assert done.next_at == alone.clock() + 5


def test_a_message_is_tried_again_under_the_same_name(alone: Seat, listener: Listener, clock: Clock) -> None:
    """After 5 s, 10 s, 20 s …, at most an hour; what waits goes as soon as the address answers."""
    hook_up(alone.clone, f"webhook {listener.url}")
    listener.status = 500
    asked(alone)
    send(alone)
    for pause in (5, 10, 20):
        clock.pass_by(pause - 1)
        assert send(alone).failed == 0
        clock.pass_by(1)
        assert send(alone).failed == 1
    listener.status = 200
    clock.pass_by(40)
    assert send(alone).sent == 1
    assert len(set(listener.ids)) == 1
    assert len(listener.ids) == 5
    assert [pause_after(n) for n in (1, 2, 3, 11, 50)] == [5, 10, 20, 3600, 3600]


def test_a_pause_that_is_asked_for_is_kept(alone: Seat, listener: Listener, clock: Clock) -> None:
    hook_up(alone.clone, f"webhook {listener.url}")
    listener.status, listener.headers = 429, {"Retry-After": "600"}
    asked(alone)
    assert send(alone).next_at == clock() + 600


def test_what_nobody_takes_is_given_up_after_days(alone: Seat, listener: Listener, clock: Clock) -> None:
    """And at once where the address says that it is gone."""
    hook_up(alone.clone, f"webhook {listener.url}")
    listener.status = 500
    asked(alone)
    send(alone)
    clock.pass_by(GIVEN_UP_AFTER + 1)
    assert send(alone).next_at is None
    listener.status = 410
    asked(alone)
    clock.pass_by(60)
    assert send(alone).next_at is None


def test_what_was_answered_meanwhile_is_not_told(alone: Seat, listener: Listener, clock: Clock) -> None:
    hook_up(alone.clone, f"webhook {listener.url}")
    listener.status = 500
    gate = asked(alone)
    send(alone)
    alone.answer(gate)
    listener.status = 200
    clock.pass_by(60)
    done = send(alone)
    assert (done.sent, done.over, done.next_at) == (0, 1, None)


def test_an_address_that_is_gone_from_the_settings_is_told_no_more(
    alone: Seat, listener: Listener, clock: Clock
) -> None:
    hook_up(alone.clone, f"webhook {listener.url}")
    listener.status = 500
    asked(alone)
    send(alone)
    alone.clone.git("config", "--unset-all", "gitgate.notify")
    clock.pass_by(60)
    assert send(alone).over == 1


def test_a_new_address_hears_of_the_day_before(alone: Seat, told: Told, tmp_path: Path, clock: Clock) -> None:
    """Not of everything that ever waited; and later of all that comes."""
    hook_up(alone.clone, "command true")
    asked(alone, "old")
    send(alone)
    clock.pass_by(2 * 86_400)
    young = asked(alone, "young")
    send(alone)
    hook_up(alone.clone, f"command {tmp_path}/hear")
    clock.pass_by(1)
    later = asked(alone, "later")
    send(alone)
    assert [one["gate"]["id"] for one in told()] == [young.id, later.id]


def test_several_clones_of_a_person_tell_a_gate_once(
    bare: Clone, ann: Seat, bob: Seat, told: Told, home: Path, tmp_path: Path
) -> None:
    """The outbox is the person's on this machine."""
    Clone(home).git("config", "--global", "gitgate.notify", f"command {tmp_path}/hear")
    gate = asked(ann)
    sync(bob.desk)
    assert (send(ann).sent, send(bob).sent) == (1, 0)
    assert [one["gate"]["id"] for one in told()] == [gate.id]


def test_quiet_hours_put_off_and_urgent_ones_come_through(
    alone: Seat, told: Told, tmp_path: Path, clock: Clock
) -> None:
    """They are told when the hours are over."""
    import time

    clock.at = time.mktime(time.strptime("2030-05-05 23:00:00", "%Y-%m-%d %H:%M:%S"))
    hook_up(alone.clone, f"command {tmp_path}/hear", quiet="22:00-07:00")
    asked(alone, "calm")
    urgent = asked(alone, "hot", priority="urgent")
    assert send(alone).sent == 1
    assert [one["gate"]["id"] for one in told()] == [urgent.id]
    clock.pass_by(8 * 3600)
    assert send(alone).sent == 1


def test_a_deadline_that_is_near_is_told(alone: Seat, told: Told, tmp_path: Path, clock: Clock) -> None:
    """Not where somebody answered before."""
    hook_up(alone.clone, f"command {tmp_path}/hear")
    asked(alone, timeout=3600)
    answered = asked(alone, timeout=3600)
    assert send(alone).next_at == clock() + 2700
    alone.answer(answered)
    clock.pass_by(2701)
    send(alone)
    assert [one["event"] for one in told()] == ["opened", "opened", "deadline"]


def test_a_reminder_is_told_by_whoever_looks(alone: Seat, told: Told, tmp_path: Path, clock: Clock) -> None:
    """The look acts on the deadline that passed."""
    hook_up(alone.clone, f"command {tmp_path}/hear")
    asked(alone, timeout=600, on_timeout="remind")
    send(alone)
    clock.pass_by(601)
    send(alone)
    assert [one["event"] for one in told()] == ["opened", "reminded"]


def test_nobody_hears_of_what_was_put_aside_until_then(
    alone: Seat, told: Told, tmp_path: Path, clock: Clock
) -> None:
    """Not that it was asked, not of its deadline; then that it still waits, once."""
    hook_up(alone.clone, f"command {tmp_path}/hear")
    gate = asked(alone, timeout=600, on_timeout="remind")
    edit(alone.desk, gate, later="1h")
    send(alone)
    clock.pass_by(601)
    send(alone)
    assert alone.now(gate).history[-1].name == "reminded"
    assert told() == []
    clock.pass_by(3000)
    send(alone)
    send(alone)
    assert [one["event"] for one in told()] == ["reminded"]


def test_a_question_names_addresses_and_silences_nobody(
    alone: Seat, told: Told, listener: Listener, tmp_path: Path, cli: Command
) -> None:
    """Where this machine knows a name, that one is told alone; where it knows none, everybody is. What is asked here names
    those who are known here, and no address.
    """
    unknown = asked(alone, notify=("nobody-of-this-name",))
    hook_up(alone.clone, f"team=webhook {listener.url}")
    hook_up(alone.clone, f"command {tmp_path}/hear")
    named = asked(alone, notify=("team",))
    send(alone)
    assert {one["gate"]["id"] for one in listener.said} == {named.id, unknown.id}
    assert [one["gate"]["id"] for one in told()] == [unknown.id]
    assert alone.now(named).opened.notify == ("team",)
    where = alone.clone.path
    refused = cli.quick("ask", "Which?", "--notify", "slack://a/b/c", cwd=where, code=2)
    assert "expected the name of an address" in refused.err
    branch = "notify:\n  - {address: 'slack://a/b/c'}\n  - {address: 'slack://d/e/f', name: ops}\n"
    alone.clone.commit(**{".gitgate.yml": branch})
    refused = cli.quick("ask", "Which?", "--notify", "tema", cwd=where, code=2)
    assert "there are command, ops, slack, team" in refused.err
    cli.quick("ask", "Which?", "--notify", "slack", cwd=where, code=0)


def test_those_named_by_an_edit_hear_of_it_then(
    alone: Seat, told: Told, tmp_path: Path, cli: Command
) -> None:
    hook_up(alone.clone, f"command {tmp_path}/hear")
    gate = asked(alone, to=("@bob",))
    assert send(alone).sent == 0
    cli.quick("edit", gate.id, "--to", "ada@example.org", cwd=alone.clone.path, code=0)
    assert send(alone).sent == 1


def test_one_sender_at_a_time(alone: Seat, told: Told, tmp_path: Path) -> None:
    """A second one leaves its call to the first, which looks once more before it goes."""
    hook_up(alone.clone, f"command {tmp_path}/hear")
    box = open_outbox(alone.desk)
    with box.alone("sending") as got:
        assert got
        asked(alone)
        second = messenger_of(alone.desk)
        assert second.run() is None
        second.outbox.close()
        assert box.called.exists()
    box.close()
    assert send(alone).sent == 1
    assert len(told()) == 1


def test_a_sender_that_is_told_to_stop_stops(alone: Seat, listener: Listener) -> None:
    """Also one that stays for what is due later."""
    hook_up(alone.clone, f"webhook {listener.url}")
    listener.status = 500
    asked(alone)
    reading: list[bool] = []
    desk = alone.desk

    class Interrupted(threading.Event):
        """It is told to stop as soon as it waits."""

        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            reading.append(desk._records is not None)
            self.set()
            return True

    sender = messenger_of(desk, stopping=Interrupted())
    assert sender.run(stay=True) is not None
    assert len(listener.got) == 1
    assert reading == [False]  # no git of ours waits with it


def test_the_outbox_holds_no_address_and_no_word(alone: Seat, listener: Listener) -> None:
    """Digests and ids; for this account alone."""
    hook_up(alone.clone, f"webhook {listener.url}")
    asked(alone, "A very secret question?")
    send(alone)
    box = open_outbox(alone.desk)
    content = (box.folder / "messages").read_bytes()
    mode = box.folder.stat().st_mode & 0o077
    box.close()
    assert b"secret" not in content
    assert b"127.0.0.1" not in content
    assert mode == 0


def test_where_nobody_is_told_nothing_is_started(alone: Seat, by_hand: list[Path]) -> None:
    """Neither by asking nor by answering; where somebody is, one process is, by the question alone."""
    alone.answer(alone.ask())
    assert by_hand == []
    hook_up(alone.clone, "command true")
    gate = alone.ask()
    alone.answer(gate)
    assert by_hand == [alone.clone.path]


def test_news_of_others_are_told_of(bare: Clone, ann: Seat, bob: Seat, by_hand: list[Path]) -> None:
    """A clone that hears of a gate starts a sender; one that hears nothing new does not."""
    hook_up(bob.clone, "command true")
    asked(ann)
    sync(bob.desk)
    sync(bob.desk)
    assert by_hand == [bob.clone.path]


def test_the_command_says_what_it_did(
    alone: Seat, told: Told, listener: Listener, tmp_path: Path, cli: Command
) -> None:
    """`test` by name and in JSON, exit 1 where one fails; `send`; and the list of addresses with how they stand."""
    hook_up(alone.clone, f"hear=command {tmp_path}/hear")
    where = alone.clone.path
    assert "hear: sent to command" in cli.quick("notify", "test", cwd=where, code=0).err
    assert told()[0]["event"] == "test"
    hook_up(alone.clone, f"team=webhook {listener.url}")
    listener.status = 500
    tried = cli.quick("notify", "test", "team", "--json", cwd=where, code=1).json
    assert tried["schema"] == "gitgate.notify/v1"
    assert tried["tried"][0]["sent"] is False
    asked_id = cli.quick("ask", "Which?", "-q", cwd=where, code=0).line
    sent = cli.quick("notify", "send", "--json", cwd=where, code=1).json
    assert (sent["sent"], sent["failed"], sent["busy"]) == (1, 1, False)
    listed = cli.quick("notify", "--json", cwd=where, code=0).json["addresses"]
    assert [(one["name"], one["sent"], one["waiting"]) for one in listed] == [("hear", 1, 0), ("team", 0, 1)]
    assert "secret" not in json.dumps(listed)
    assert told()[-1]["gate"]["id"] == asked_id
    assert "answered 500" in cli.quick("notify", cwd=where, code=0).out
    assert "no address has the name" in cli.quick("notify", "test", "nobody", cwd=where, code=2).err


def test_what_a_webhook_lacks_is_said_once(alone: Seat, listener: Listener, cli: Command) -> None:
    """With the command that makes a secret; `doctor` has that as well."""
    alone.clone.git("config", "gitgate.notify", f"webhook {listener.url}")
    made = "git config gitgate.notify.secret"
    said = cli.quick("notify", "test", cwd=alone.clone.path, code=1).err
    assert "a webhook needs a secret" in said
    assert said.count(made) == 1
    assert made in cli.quick("doctor", cwd=alone.clone.path).out
    assert listener.got == []


def test_without_an_address_it_says_how_to_add_one(alone: Seat, cli: Command) -> None:
    where = alone.clone.path
    assert "git config --global --add gitgate.notify desktop" in cli.quick("notify", cwd=where, code=0).err
    assert "nobody is told" in cli.quick("notify", "test", cwd=where, code=1).err
    alone.clone.git("config", "gitgate.notify", "carrier pigeon")
    error = cli.quick("notify", "test", "--json", cwd=where, code=1).json["error"]
    assert (
        "nobody is told of gates from here: gitgate.notify is 'carrier…'; expected desktop"
        in error["message"]
    )


def test_a_gate_that_was_stopped_is_not_told(alone: Seat, told: Told, tmp_path: Path) -> None:
    hook_up(alone.clone, f"command {tmp_path}/hear")
    gate = asked(alone)
    stop(alone.desk, gate, "enough")
    assert send(alone).sent == 0


def test_the_page_leads_to_a_notification(alone: Seat, home: Path, tmp_path: Path, cli: Command) -> None:
    """Its first lines, as they stand there, where the desktop has a `notify-send`."""
    lines = PAGE.split("```sh\n")[1].split("```")[0].splitlines()
    shown = tmp_path / "bin" / "notify-send"
    shown.parent.mkdir()
    shown.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {tmp_path}/shown\n')
    shown.chmod(0o755)
    env = {"PATH": f"{shown.parent}:{os.environ['PATH']}"}
    Clone(home).git(*shlex.split(lines[0])[1:])
    cli.quick(*shlex.split(lines[1], comments=True)[2:], cwd=alone.clone.path, env=env, code=0)
    assert "Test: git gate can reach you" in (tmp_path / "shown").read_text("utf-8")
    cli.quick("ask", "Which?", "-q", cwd=alone.clone.path, code=0)
    cli.quick("notify", "send", cwd=alone.clone.path, env=env, code=0)
    assert "Question: Which?" in (tmp_path / "shown").read_text("utf-8")


def test_the_page_leads_to_a_webhook(bare: Clone, listener: Listener, tmp_path: Path, cli: Command) -> None:
    """Its lines for a server, where the address is one on loopback; what makes the secret may be no openssl."""
    block = PAGE.split("```sh\n")[2].split("```")[0].replace("https://hooks.example.org/gates", listener.url)
    program = tmp_path / "bin" / "openssl"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\ntest "$*" = "rand -base64 32" && echo {b64encode(bytes(range(32))).decode()}\n'
    )
    program.chmod(0o755)
    (program.parent / "git-gate").symlink_to(COMMAND)
    path = f"{program.parent}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["sh", "-ec", block],
        cwd=bare.path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert listener.said[0]["event"] == "test"


class Killed(BaseException):
    """The process is gone: nothing that it would have done afterwards is done."""


@pytest.mark.parametrize(
    "step", [0, 5, 9, *(pytest.param(step, marks=pytest.mark.slow) for step in (1, 2, 3, 4, 6, 7, 8, 10, 11))]
)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_any_write_none_is_lost_and_one_repeated_at_most(
    alone: Seat, listener: Listener, monkeypatch: pytest.MonkeyPatch, step: int, after: bool
) -> None:
    """Two gates, killed before or after each change of the outbox: the next sender tells the rest, under the same names."""
    hook_up(alone.clone, f"webhook {listener.url}")
    gates = {asked(alone).id, asked(alone).id}
    real, count = Outbox.writing, iter(range(1000))

    @contextlib.contextmanager
    def writing(box: Outbox) -> Iterator[None]:
        now = next(count) == step
        with real(box):
            yield
            if now and not after:
                raise Killed
        if now:
            raise Killed

    with monkeypatch.context() as patch, contextlib.suppress(Killed):
        patch.setattr(Outbox, "writing", writing)
        send(alone)
    send(alone)
    assert {one["gate"]["id"] for one in listener.said} == gates
    assert len(set(listener.ids)) == 2
    assert len(listener.ids) - 2 <= 1
    assert send(alone).next_at is None


def test_a_worker_tells_people(alone: Seat, told: Told, tmp_path: Path, cli: Command) -> None:
    """Of what waits when it is done; without an address it makes no outbox."""
    where = alone.clone.path
    cli.quick("worker", "--once", "-q", cwd=where, code=0)
    assert not outbox_folder(alone.desk)[0].exists()
    hook_up(alone.clone, f"command {tmp_path}/hear")
    gate = cli.quick("ask", "Which?", "-q", cwd=where, code=0).line
    cli("worker", "--once", "-q", cwd=where, code=0)
    assert [one["gate"]["id"] for one in told()] == [gate]


@pytest.mark.parametrize(("shared", "folder", "file"), [("group", 0o2770, 0o660), ("umask", 0o700, 0o600)])
def test_accounts_that_share_a_server_share_its_outbox(
    bare: Clone, ann: Seat, told: Told, tmp_path: Path, clock: Clock, shared: str, folder: int, file: int
) -> None:
    """What one account told, no other one tells again; for itself an account keeps its own in a folder of its own."""
    bare.git("config", "core.sharedRepository", shared)
    hook_up(bare, f"command {tmp_path}/hear")
    asked(ann)
    with Seat(bare, clock) as server:
        assert send(server).sent == 1
        place = outbox_folder(server.desk)[0]
    assert place.parent == (bare.path if shared == "group" else bare.path / "gitgate")
    assert stat.S_IMODE(place.stat().st_mode) == folder
    assert (place / "messages").stat().st_mode & file == file
    assert len(told()) == 1


def test_an_agent_that_fails_is_told_of(
    alone: Seat, told: Told, tmp_path: Path, cli: Command, by_hand: list[Path]
) -> None:
    """By whoever ran it: once for each outcome."""
    agent = Agent(tmp_path / "agent")
    agent.set_up()
    agent.does("echo broken >&2; exit 3")
    where = alone.clone.path
    hook_up(alone.clone, f"command {tmp_path}/hear")
    gate = cli.quick("ask", "Which?", "--agent", "scripted", "-q", cwd=where, code=0).line
    cli.quick("respond", gate, "Postgres", cwd=where, code=0)
    by_hand.clear()
    cli.quick("resume", gate, cwd=where, code=1)
    assert by_hand == [where]
    for _ in range(2):
        cli.quick("notify", "send", "-q", cwd=where, code=0)
    (failed,) = told()
    assert (failed["event"], failed["gate"]["id"], failed["gate"]["state"]) == ("failed", gate, "failed")
    assert failed["command"] == f"git gate show {gate[:6]}"


def test_an_agent_that_stops_short_is_told_of(alone: Seat, told: Told, tmp_path: Path, cli: Command) -> None:
    """It left what it did not commit."""
    agent = Agent(tmp_path / "agent")
    agent.set_up()
    agent.does("echo more > left")
    where = alone.clone.path
    hook_up(alone.clone, f"command {tmp_path}/hear")
    gate = cli.quick("ask", "Which?", "--agent", "scripted", "-q", cwd=where, code=0).line
    alone.clone.commit("moved on")
    cli.quick("respond", gate, "Postgres", cwd=where, code=0)
    cli.quick("resume", gate, cwd=where, code=0)
    cli.quick("notify", "send", "-q", cwd=where, code=0)
    assert [one["event"] for one in told()] == ["unfinished"]


def test_an_outbox_that_is_damaged_says_so(alone: Seat, cli: Command) -> None:
    """What is wrong is no bug, and a gate is asked all the same; `doctor` gets to its end."""
    hook_up(alone.clone, "command true")
    folder = outbox_folder(alone.desk)[0]
    folder.mkdir(parents=True)
    (folder / "messages").write_text("no database " * 200)
    where = alone.clone.path
    cli.quick("ask", "Which?", "-q", cwd=where, code=0)
    said = cli.quick("notify", "send", cwd=where, code=1).err
    assert "cannot be used" in said
    assert "mv " in said
    assert "cannot be used" in " ".join(cli.quick("doctor", cwd=where, code=1).out.split())


def test_without_sqlite_it_says_so(alone: Seat, cli: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    hook_up(alone.clone, "command true")
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    assert "without sqlite3" in cli.quick("notify", "send", cwd=alone.clone.path, code=1).err


def test_what_waits_for_long_is_not_read_for_a_new_address(
    alone: Seat, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are: the list's reading tells their age."""
    for _ in range(3):
        asked(alone)
    clock.pass_by(2 * 86_400)
    hook_up(alone.clone, "command true")
    monkeypatch.setattr("gitgate.store.records.Records.load", lambda *_: pytest.fail("a record was read"))
    assert send(alone).sent == 0


def test_a_purge_takes_the_outbox_along(bare: Clone, ann: Seat, clock: Clock, cli: Command) -> None:
    """A server's that accounts share, and the person's own with their last repository."""
    bare.git("config", "core.sharedRepository", "group")
    hook_up(bare, "command true")
    hook_up(ann.clone, "command true")
    asked(ann)
    with Seat(bare, clock) as server:
        send(server)
        places = [outbox_folder(one.desk)[0] for one in (server, ann)]
    send(ann)
    assert all(place.is_dir() for place in places)
    for clone in (bare, ann.clone):
        cli.quick("init", "--remove", "--purge", cwd=clone.path, code=0)
    assert not any(place.exists() for place in places)


def test_a_servers_branch_is_read_when_it_has_moved(
    bare: Clone, ann: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In between a push starts no git to learn that nobody is to be told."""
    bare.git("config", "gitgate.server", "true")
    with Seat(bare) as server:
        desk = server.desk
        assert not is_told_of(desk)
        with monkeypatch.context() as patch:
            patch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a process was started"))
            assert not is_told_of(desk)
        ann.clone.commit("rules", **{".gitgate.yml": "notify:\n  - address: json://example.org\n"})
        ann.clone.git("push", "-q", "origin", "main")
        assert is_told_of(desk)
        assert is_told_of(desk)
        bare.git("pack-refs", "--all")
        ann.clone.commit("rules", **{".gitgate.yml": "{}\n"})
        ann.clone.git("push", "-q", "origin", "main")
        assert not is_told_of(desk)
