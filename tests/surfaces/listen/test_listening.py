"""The listener as a process, with a dialog that is a script: what it shows, what it records, and what it leaves alone."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gitgate.surfaces.listen.listening import (
    QuestionListener,
    is_elsewhere,
    kind_of_mount,
    open_listened_repository,
)
from support import PATIENCE
from support.servers import ssh_server
from support.testbed.command import COMMAND, Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

from .conftest import FakeZenity, Listening, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
Listen = Callable[..., Listening]
# A person reads before they answer: what comes sooner counts for nothing.
READ = "sleep 1"


def asked(cli: Command, *words: str, **how: Path) -> str:
    return cli("ask", *words, "-q", code=0, **how).line  # type: ignore[arg-type]


def shown(cli: Command, gate: str) -> dict[str, object]:
    found: dict[str, object] = cli("show", gate, "--json", code=0).json
    return found


def test_what_waits_is_asked_one_by_one_the_most_pressing_first(
    listen: Listen, zenity: FakeZenity, cli: Command, set_up: Clone
) -> None:
    """A dialog names agent and repository and says how many more wait; what is answered goes through the same act as a command's."""
    first = asked(
        cli, "Which database?", "-o", "Postgres", "-o", "SQLite", "--no-other", "--agent", "backend"
    )
    second = asked(cli, "Deploy?", "--type", "approval", "--priority", "urgent", "--agent", "deployer")
    third = asked(cli, "Which are needed?", "--type", "choices", "-o", "A, B", "-o", "C", "--priority", "low")
    fourth = asked(cli, "Say why", "--priority", "low")
    zenity.does(
        f"{READ}; case $* in *--question*) echo Yes; exit 1 ;; *--checklist*) echo 1,2 ;; *--list*) echo 2 ;; *) printf '%s\\n' 'a\\b' ;; esac"
    )
    running = listen(**zenity.env)
    text = running.expect("answered:", times=4)
    order = [next(word for word in call if word.startswith("--title=")) for call in zenity.shown]
    repository = set_up.path.name
    assert order[:2] == [
        f"--title=git gate: deployer in {repository}",
        f"--title=git gate: backend in {repository}",
    ]
    assert "Deploy?\n\n3 more wait" in " ".join(zenity.shown[0])
    assert "1 more waits" in " ".join(zenity.shown[2])
    assert "more wait" not in " ".join(zenity.shown[3])
    assert "[backend] queued: Which database?" in text
    assert "[Status] 4 in queue, 3 agents" in text
    assert "[backend] answered: SQLite; " in text
    assert [cli("check", gate).out for gate in (first, second, third, fourth)] == [
        *("SQLite\n", "approved\n", "A, B, C\n", "a\\b\n")
    ]
    answer = shown(cli, first)["answer"]
    assert isinstance(answer, dict)
    assert (answer["via"], answer["by"]) == ("listen", "Ada Lovelace <ada@example.org>")
    assert running.stop() == 0
    assert running.text.endswith("stopped listening; 0 still wait\n")


def test_a_dialog_that_was_answered_elsewhere_closes(
    listen: Listen, zenity: FakeZenity, cli: Command
) -> None:
    """By itself, and it is said who was first."""
    gate = asked(cli, "Which database?", "-o", "Postgres", "-o", "SQLite", "--agent", "backend")
    zenity.does('echo $$ >"$0.d/pid"; exec sleep 600')
    running = listen(**zenity.env)
    wait_for((zenity.calls / "pid").exists)
    pid = int((zenity.calls / "pid").read_text())
    cli("respond", gate, "Postgres", code=0)
    text = running.expect("[backend] closed: Postgres (")
    assert "by Ada Lovelace" in text
    wait_for(lambda: not is_running(pid))
    stopped = asked(cli, "And now?")
    zenity.expect(2)
    cli("stop", stopped, "--reason", "no need", code=0)
    running.expect("closed: the gate is stopped: no need")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_what_changed_is_shown_anew(listen: Listen, zenity: FakeZenity, cli: Command) -> None:
    """An answer binds to what was shown: one that was given to an older question is recorded nowhere."""
    gate = asked(cli, "Which database?", "-o", "Postgres", "-o", "SQLite")
    # The question changes while the dialog is there, and it answers what it shows all the same.
    zenity.does(f"{READ}; [ $n -gt 0 ] || git gate edit {gate} --timeout 2h -q; echo 1")
    running = listen(**{**zenity.env, "PATH": f"{zenity.env['PATH']}:{COMMAND.parent}"})
    text = running.expect("answered: Postgres")
    assert "edited after you read it; shown anew" in text
    assert "Its deadline: " in " ".join(zenity.shown[-1])
    history = shown(cli, gate)["history"]
    assert isinstance(history, list)
    assert [event["event"] for event in history] == ["opened", "edited", "answered"]
    assert shown(cli, gate)["answer"]["seen"] == history[1]["commit"]  # type: ignore[index]


def test_of_two_who_answer_at_once_one_is_told(listen: Listen, zenity: FakeZenity, cli: Command) -> None:
    """Whoever came first counts; the other hears who that was, and nothing of theirs is recorded."""
    gate = asked(cli, "Which database?", "-o", "Postgres", "-o", "SQLite")
    zenity.does(f"{READ}; git gate respond {gate} Postgres -q; echo 2")
    running = listen(**{**zenity.env, "PATH": f"{zenity.env['PATH']}:{COMMAND.parent}"})
    wait_for(lambda: "late: " in running.text or "closed: " in running.text, lambda: running.text)
    assert "already answered; by Ada Lovelace" in running.text
    assert cli("check", gate, code=0).line == "Postgres"
    history = shown(cli, gate)["history"]
    assert isinstance(history, list)
    assert [event["event"] for event in history] == ["opened", "answered"]


def test_only_what_the_person_may_answer_is_asked(
    listen: Listen, zenity: FakeZenity, cli: Command, set_up: Clone
) -> None:
    """Not what is for somebody else, what was put aside, or what they have answered and waits for others."""
    asked(cli, "For Bob?", "--to", "bob@example.org", "--agent", "one")
    aside = asked(cli, "Later?", "--agent", "two")
    cli("respond", aside, "--later", "2h", code=8)
    both = asked(cli, "Deploy?", "--type", "approval", "--quorum", "2", "--agent", "three")
    zenity.does(f"{READ}; case $* in *--question*) echo Yes; exit 1 ;; *) echo this ;; esac")
    running = listen(**zenity.env)
    running.expect("[three] answered: approved; your answer is one of the 2 answers alike that are needed")
    last = asked(cli, "Last?", "--agent", "four")
    running.expect("[four] answered: this")
    assert "[one]" not in running.text
    assert "[two]" not in running.text
    assert len(zenity.shown) == 2
    assert shown(cli, both)["state"] == "awaiting"
    assert cli("check", last, code=0).line == "this"


def test_a_listener_tells_people_as_well(listen: Listen, cli: Command, set_up: Clone, tmp_path: Path) -> None:
    """Those who want to hear of gates: also of one that was asked before anybody was told from here."""
    gate = asked(cli, "Which?")
    program = tmp_path / "told"
    program.write_text(f'#!/bin/sh\necho "$GITGATE_EVENT $GITGATE_ID" >>"{tmp_path}/heard"\n')
    program.chmod(0o755)
    set_up.git("config", "gitgate.notify", f"command {program}")
    listen("--dialog", "none")
    wait_for((tmp_path / "heard").exists)
    wait_for(lambda: (tmp_path / "heard").read_text() == f"opened {gate}\n")


def test_later_lets_the_next_one_through(listen: Listen, zenity: FakeZenity, cli: Command) -> None:
    """What is put aside waits on as it was; nothing is recorded of it."""
    gate = asked(cli, "Which?", "--priority", "high", "--agent", "one")
    other = asked(cli, "And which?", "--agent", "two")
    zenity.does("echo Later; exit 1")
    running = listen(**zenity.env)
    text = running.expect("later: put aside; it still waits, and is asked again in 10 minutes", times=2)
    assert text.index("[one] later") < text.index("[two] later")
    for each in (gate, other):
        assert [event["event"] for event in shown(cli, each)["history"]] == ["opened"]  # type: ignore[attr-defined]
    assert running.stop() == 0
    assert running.text.endswith("stopped listening; 2 still wait\n")


def test_an_agent_is_stopped_with_a_reason(listen: Listen, zenity: FakeZenity, cli: Command) -> None:
    """The button alone ends nothing: why is asked next, and Back leads to the question."""
    gate = asked(cli, "Deploy?", "--type", "approval")
    zenity.does(
        f"{READ}; case $n:$* in 1:*) exit 1 ;; *--entry*) echo 'not on a Friday' ;; *) echo 'Stop the agent…'; exit 1 ;; esac"
    )
    running = listen(**zenity.env)
    running.expect("stopped: not on a Friday")
    assert "--cancel-label=Back" in zenity.shown[1]
    found = shown(cli, gate)
    assert found["state"] == "stopped"
    assert cli("check", gate).code == 9


def test_own_words_are_asked_for_where_they_are_allowed(
    listen: Listen, zenity: FakeZenity, cli: Command
) -> None:
    """The last row of a choice; and an answer that does not fit is asked again, with why."""
    gate = asked(cli, "Which?", "-o", "Postgres", "-o", "SQLite")
    zenity.does(
        f"{READ}; case $n:$* in 1:*) echo ;; *--entry*) echo 'MySQL: we have it' ;; *) echo 3 ;; esac"
    )
    running = listen(**zenity.env)
    running.expect("answered: MySQL: we have it")
    assert b"something else, in your own words" in (zenity.calls / "0/in").read_bytes()
    assert "Not recorded: an empty answer is not an answer" in " ".join(zenity.shown[2])
    assert cli("check", gate).line == "MySQL: we have it"


def test_what_no_dialog_has_room_for_is_named_with_its_command(
    listen: Listen, zenity: FakeZenity, cli: Command, set_up: Clone
) -> None:
    """A conversation, a form, several questions: a dialog says that they wait, and where they are answered."""
    gate = asked(cli, "Is it sound?", "--type", "session")
    zenity.does(f"{READ}; echo 'In the terminal'; exit 1")
    running = listen(**zenity.env)
    running.expect(f"terminal: git -C {set_up.path} gate join {gate[:6]}")
    assert f"answered in a terminal: git gate join {gate[:6]}" in " ".join(zenity.shown[0])
    assert "Yes" not in " ".join(zenity.shown[0])


def test_what_is_answered_before_it_can_be_read_does_not_count(
    listen: Listen, zenity: FakeZenity, cli: Command
) -> None:
    """A key that was meant for another window, when the dialog came up, decides nothing."""
    gate = asked(cli, "Deploy?", "--type", "approval")
    zenity.does(f"[ $n -eq 0 ] || {READ}; [ $n -eq 0 ] && echo Yes || echo No; exit 1")
    listen(**zenity.env).expect("answered: rejected")
    assert cli("check", gate).code == 3


def test_a_dialog_that_does_not_work_gives_way(listen: Listen, zenity: FakeZenity, cli: Command) -> None:
    """What it said is told; without another one what waits is still told, and left alone."""
    gate = asked(cli, "Deploy?", "--type", "approval")
    zenity.does("echo 'no such display' >&2; exit 255")
    running = listen("--dialog", "zenity", **zenity.env)
    running.expect("zenity does not work here (no such display); answer with: git gate respond")
    asked(cli, "And now?", "--agent", "other")
    running.expect("[other] queued: And now?")
    assert cli("check", gate).code == 8


def test_only_news_are_told_where_no_dialog_is_wanted(listen: Listen, cli: Command) -> None:
    """One line of JSON each, for a program; nothing is asked."""
    running = listen("--dialog", "none", "--json", begun=False)
    running.expect('"listening"')
    gate = asked(cli, "Which\u2028one?", "--agent", "backend")
    running.expect('"queued"')
    cli("respond", gate, "this", code=0)
    running.expect('"closed"')
    running.stop()
    lines = [json.loads(line) for line in running.text.splitlines()]
    assert {line["schema"] for line in lines} == {"gitgate.listen/v1"}
    assert [line["event"] for line in lines if line["event"] != "status"] == [
        "listening",
        "queued",
        "closed",
        "ended",
    ]
    assert [line["id"] for line in lines if line["event"] == "queued"] == [gate]


def test_several_agents_at_once_each_hear_their_own_answer(
    listen: Listen, zenity: FakeZenity, cli: Command, set_up: Clone
) -> None:
    """Scripts that begin together, one listener: one dialog at a time, and what is answered reaches whoever asked that."""
    cli("init", "--script", "--no-resume", "-q", code=0)
    # Only one dialog is there at a time: a second one would find the folder, and answer nothing.
    zenity.does(
        f'mkdir "$0.d/only" || exit 7; {READ}; for word in "$@"; do case $word in --text=*) printf "to %s" "$word" ;; esac; done; rmdir "$0.d/only"'
    )
    running = listen(**zenity.env)
    asking = [
        subprocess.Popen(
            ["./scripts/ask-human.sh", f"Question {name}?"],
            cwd=set_up.path,
            env={**os.environ, "ASK_HUMAN_AGENT": name},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for name in ("one", "two", "three")
    ]
    said = [each.communicate(timeout=PATIENCE)[0] for each in asking]
    assert [
        (each.returncode, f"Question {name}?" in out)
        for each, out, name in zip(asking, said, ("one", "two", "three"), strict=True)
    ] == [(0, True)] * 3
    assert len(set(said)) == len(zenity.shown) == 3
    assert all(f"[{name}] answered: " in running.text for name in ("one", "two", "three"))


def test_what_cannot_be_read_hides_nothing_else(
    listen: Listen, zenity: FakeZenity, cli: Command, set_up: Clone
) -> None:
    """A gate's name on something that is none: the others are asked, and the listener goes on."""
    running = listen(**zenity.env)
    zenity.does(f"{READ}; echo this")
    set_up.git("update-ref", "refs/hitl/open/7k2fw3x9ab", "HEAD")
    gate = asked(cli, "Which?", "--agent", "backend")
    running.expect("[backend] answered: this")
    assert cli("check", gate, code=0).line == "this"
    assert running.process.poll() is None
    assert "7k2fw3" in cli("list", code=0).out


def test_an_answer_that_cannot_be_written_is_said(
    listen: Listen, zenity: FakeZenity, cli: Command, set_up: Clone
) -> None:
    """The question waits, and is asked again in a minute; others are asked meanwhile."""
    gate = asked(cli, "Which?", "--priority", "high", "--agent", "one")
    other = asked(cli, "And which?", "--agent", "two")
    zenity.does(f"{READ}; echo this")
    (set_up.path / ".git/refs/hitl/open" / f"{gate}.lock").touch()  # as a git that was killed leaves it
    running = listen(**zenity.env)
    text = running.expect("[two] answered: this")
    assert "[one] trouble: " in text
    assert "asked again in a minute" in text
    assert cli("check", gate).code == 8
    assert cli("check", other, code=0).line == "this"


def test_several_repositories_have_one_queue(
    listen: Listen,
    zenity: FakeZenity,
    cli: Command,
    set_up: Clone,
    tmp_path: Path,
    clone_of: Callable[..., Clone],
) -> None:
    """Named in each line; the one that presses most comes first, wherever it is. `--everywhere` knows both."""
    other = clone_of(set_up, "shop")
    cli("init", "--no-resume", "-q", cwd=other.path, code=0)
    asked(cli, "Which?", "--agent", "one", "--no-push")
    asked(cli, "Deploy?", "--priority", "urgent", "--agent", "two", "--no-push", cwd=other.path)
    zenity.does(f"{READ}; echo this")
    asked(cli, "Nothing?", cwd=clone_of(set_up, "other").path)
    running = listen(str(set_up.path), str(other.path), str(tmp_path / "other"), **zenity.env, cwd=tmp_path)
    running.expect("[two in shop] answered: this")
    text = running.expect(f"[one in {set_up.path.name}] answered: this")
    assert f"not listened in: {tmp_path / 'other'} is not set up for gates" in running.talk
    running.stop()
    everywhere = listen("--everywhere", "--dialog", "none", cwd=tmp_path)
    assert {str(set_up.path), str(other.path)} <= {line.strip() for line in everywhere.talk.splitlines()}
    assert text.index("[two in shop] answered") < text.index(f"[one in {set_up.path.name}] answered")


def test_nobody_is_asked_again_for_a_copy_of_what_they_answered(
    listen: Listen, zenity: FakeZenity, cli: Command, set_up: Clone, clone_of: Callable[..., Clone]
) -> None:
    """Two repositories have the gate; the answer did not reach the second one, where it still waits."""
    other = clone_of(set_up, "shop")
    cli("init", "--no-resume", "-q", cwd=other.path, code=0)
    gate = asked(cli, "Deploy?", "--agent", "one", cwd=other.path)
    assert shown(cli, gate)["state"] == "awaiting"
    refuse = set_up.path / ".git" / "hooks" / "pre-receive"
    refuse.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    refuse.chmod(0o755)
    zenity.does(f"{READ}; echo this")
    running = listen(str(other.path), str(set_up.path), **zenity.env)
    running.expect("[one in shop] answered: this")
    asked(cli, "Which?", "--agent", "two", "--no-push")
    running.expect(f"[two in {set_up.path.name}] answered: this")
    assert len(zenity.shown) == 2
    assert shown(cli, gate)["state"] == "awaiting"


def test_what_others_ask_is_fetched(
    listen: Listen, cli: Command, bare: Clone, clone_of: Callable[..., Clone], zenity: FakeZenity
) -> None:
    """From another clone, by way of the server: within seconds, without anybody who syncs."""
    here, there = clone_of(bare, "here"), clone_of(bare, "there")
    for clone in (here, there):
        cli("init", "--no-resume", "-q", cwd=clone.path, code=0)
    zenity.does(f"{READ}; echo this")
    running = listen(cwd=here.path, **zenity.env)
    gate = asked(cli, "Which?", "--agent", "far", cwd=there.path)
    running.expect("[far] answered: this; pushed to origin")
    assert cli("wait", gate, "--for", "30s", cwd=there.path, timeout=40).out == "this\n"


# Who is there


def test_who_waits_hears_whether_anybody_listens(listen: Listen, zenity: FakeZenity, cli: Command) -> None:
    """`ask --wait` and `wait` say that nobody does, with the command; `status` says who does."""
    nobody = "nobody listens here: git gate listen"
    said = cli("ask", "Which?", "--wait-for", "0s", code=8)
    assert nobody in said.err
    gate = asked(cli, "And which?")
    assert nobody in cli("wait", gate, "--for", "0s", code=8).err
    assert nobody not in cli("wait", gate, "--for", "0s", env={"CI": "true"}, code=8).err
    assert cli("status", "--json", code=0).json["listeners"] == []
    running = listen(**zenity.env)
    assert nobody not in cli("wait", gate, "--for", "0s", code=8).err
    (here,) = cli("status", "--json", code=0).json["listeners"]
    assert (here["by"], here["pid"], here["dialog"]) == (
        "Ada Lovelace <ada@example.org>",
        running.process.pid,
        "zenity",
    )
    assert f"Ada Lovelace listens here by zenity, pid {running.process.pid}" in cli("status", code=0).out
    running.stop()
    assert nobody in cli("wait", gate, "--for", "0s", code=8).err


def test_one_that_is_killed_leaves_everything_as_it_was(
    listen: Listen, zenity: FakeZenity, cli: Command, set_up: Clone
) -> None:
    """Its gate waits, its dialog ends with it, nobody is said to listen, and the next one begins at once."""
    gate = asked(cli, "Which?")
    zenity.does('echo $$ >"$0.d/pid"; exec sleep 600')
    running = listen(**zenity.env)
    wait_for((zenity.calls / "pid").exists)
    pid = int((zenity.calls / "pid").read_text())
    running.stop(signal.SIGKILL)
    wait_for(lambda: not is_running(pid))
    assert cli("status", "--json", code=0).json["listeners"] == []
    assert shown(cli, gate)["state"] == "awaiting"
    zenity.does(f"{READ}; echo this")
    listen(**zenity.env).expect("answered: this")


def test_a_second_one_is_told_who_is_there_or_takes_over(
    listen: Listen, zenity: FakeZenity, cli: Command, set_up: Clone
) -> None:
    """Exit 5, with who and since when; `--take-over` ends that one, and its own word is not taken back with it."""
    first = listen(**zenity.env)
    said = cli("listen", env=zenity.env, code=5)
    assert "Ada Lovelace listens here already, since 20" in said.err
    assert f"(pid {first.process.pid} on " in said.err
    assert "git gate listen --take-over" in said.err
    assert first.process.poll() is None
    second = listen("--take-over", **zenity.env)
    assert first.process.wait(30) == 0
    (here,) = cli("status", "--json", code=0).json["listeners"]
    assert here["pid"] == second.process.pid
    second.stop()
    state = set_up.path / ".git/gitgate"
    assert [place.name for place in state.iterdir() if place.name.startswith("listening")] == [
        "listening.lock"
    ]


def test_ctrl_c_takes_away_only_its_own(
    listen: Listen, zenity: FakeZenity, cli: Command, set_up: Clone
) -> None:
    """What agents and others keep beside the repository stays."""
    asked(cli, "Which?")
    state = set_up.path / ".git/gitgate"
    (state / "mine").write_text("mine")
    before = {place.name for place in state.rglob("*")}
    running = listen(**zenity.env)
    zenity.expect(1)
    assert running.stop() == 0
    assert {place.name for place in state.rglob("*")} - {"listening.lock"} == before - {"listening.lock"}


def test_where_there_is_nothing_to_listen_in(
    cli: Command, repo: Clone, home: Path, zenity: FakeZenity
) -> None:
    """Exit 1 with the command to type; and an agent listens nowhere."""
    assert "git init" in cli("listen", cwd=home, env=zenity.env, code=1).err
    said = cli("listen", env=zenity.env, code=1)
    assert "is not set up for gates" in said.err
    assert "git gate init" in said.err
    cli("init", "--no-resume", "-q", code=0)
    refused = cli("listen", env={**zenity.env, "CLAUDECODE": "1"}, code=4)
    assert "for people" in refused.err
    none = cli("listen", env={"PATH": "/usr/bin:/bin"}, code=1)
    assert "no desktop with dialogs, and no terminal" in none.err
    assert "--dialog none" in none.err
    named = cli("listen", "--dialog", "osascript", env={**zenity.env, "PATH": zenity.env["PATH"]}, code=1)
    assert "it comes with macOS" in named.err
    assert "usable here: zenity" in named.err
    assert "no terminal" in cli("listen", "--dialog", "terminal", env=zenity.env, code=1).err


# In the terminal


def test_the_terminal_asks_where_there_is_no_desktop(
    pty_cli: Callable[..., Terminal], set_up: Clone, cli: Command
) -> None:
    """Every type, with what leads on: Enter, `:stop`, `:q`; what was answered elsewhere is taken off the terminal."""
    first = asked(cli, "Which?", "-o", "Postgres", "-o", "SQLite", "--priority", "urgent", "--agent", "one")
    second = asked(cli, "Deploy?", "--type", "approval", "--priority", "high", "--agent", "two")
    third = asked(cli, "Name?", "--agent", "three")
    fourth = asked(cli, "Not yet?", "--priority", "low", "--agent", "four")
    fifth = asked(cli, "Last?", "--priority", "low", "--agent", "five")
    terminal = pty_cli("listen")
    terminal.expect("listening, by terminal")
    terminal.expect("(4 questions more)")
    terminal.expect("your choice [1-3, or its name]: ")
    terminal.line("2")
    terminal.expect("[one] answered: SQLite")
    terminal.expect("[y/n]: ")
    terminal.line(":stop not on a Friday")
    terminal.expect("[two] stopped: not on a Friday")
    terminal.expect("opens your editor): ")
    terminal.keys("half of an ans")
    cli("respond", third, "elsewhere", code=0)
    terminal.expect("half of an ans\n[three] closed: elsewhere (")
    terminal.expect("opens your editor): ")
    terminal.line("?")
    terminal.expect(":stop WHY")
    terminal.expect("opens your editor): ")
    terminal.line("")
    terminal.expect("] later: put aside; it still waits")
    terminal.expect("opens your editor): ")
    terminal.line(":q")
    terminal.expect("stopped listening; 2 still wait")
    terminal.finish(code=0)
    gates = (first, second, third, fourth, fifth)
    assert [cli("check", gate).code for gate in gates] == [0, 9, 0, 8, 8]


def test_a_form_is_answered_in_the_terminal(
    pty_cli: Callable[..., Terminal], set_up: Clone, cli: Command, tmp_path: Path
) -> None:
    """Field by field, as `git gate respond` asks it; the record says that it came from here."""
    schema = {"type": "object", "properties": {"region": {"type": "string"}}, "required": ["region"]}
    (tmp_path / "form.json").write_text(json.dumps(schema))
    gate = asked(cli, "Where to?", "--type", "form", "--schema", str(tmp_path / "form.json"))
    terminal = pty_cli("listen", "--dialog", "terminal")
    terminal.expect("region (text): ")
    terminal.line("eu")
    terminal.expect("answered: ")
    terminal.keys("\x03")
    terminal.expect("stopped listening; 0 still wait")
    terminal.finish(code=0)
    answer = shown(cli, gate)["answer"]
    assert isinstance(answer, dict)
    assert (answer["via"], answer["values"]) == ("listen", {"answer": {"region": "eu"}})


# Where files tell nothing


@contextmanager
def mounted(place: Path, at: Path, keys: Path) -> Iterator[Path]:
    """A folder as another machine has it: by sshfs, through a real sshd."""
    at.mkdir()
    if not Path("/dev/fuse").exists():
        subprocess.run(["mknod", "/dev/fuse", "c", "10", "229"], check=True)
    with ssh_server(keys) as sshd:
        how = (
            "-o",
            "sftp_server=/usr/lib/openssh/sftp-server",
            "-o",
            f"ssh_command={sshd.command} -p {sshd.port}",
        )
        account = pwd.getpwuid(os.geteuid()).pw_name
        subprocess.run(["sshfs", *how, f"{account}@127.0.0.1:{place}", str(at)], check=True, timeout=PATIENCE)
        try:
            yield at
        finally:
            subprocess.run(["fusermount3", "-u", "-z", str(at)], check=True, timeout=PATIENCE)


@pytest.mark.machine
@pytest.mark.server
def test_on_a_network_mount_what_others_ask_is_heard(
    listen: Listen, cli: Command, set_up: Clone, zenity: FakeZenity, tmp_path: Path
) -> None:
    """The listener says how often it looks; a gate that is asked on the other side of the mount comes up, and its answer is there."""
    zenity.does(f"{READ}; echo this")
    with mounted(set_up.path, tmp_path / "mounted", tmp_path / "sshd") as here:
        running = listen(cwd=here, **zenity.env)
        assert f"{here}   on a network: looked at every 2 s" in running.talk
        gate = asked(cli, "Which?", "--agent", "far", cwd=set_up.path)
        running.expect("[far] answered: this")
        assert cli("check", gate, cwd=set_up.path, code=0).line == "this"
        assert running.stop() == 0


MOUNTS = """\
21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 21 0:40 / /srv/shared\\040files rw shared:5 - nfs4 server:/x rw
31 30 8:2 / /srv/shared\\040files/local rw - xfs /dev/sdb rw
32 21 0:50 / /mnt/c rw - 9p C:\\134 rw
33 21 0:51 / /mnt/c/own rw master:1 - tmpfs none rw
nonsense
"""


@pytest.mark.parametrize(
    ("place", "kind", "elsewhere"),
    [
        ("/home/ada/repo", "ext4", False),
        ("/srv/shared files/repo/.git", "nfs4", True),
        ("/srv/shared files/local/repo", "xfs", False),
        ("/mnt/c/repo", "9p", True),
        ("/mnt/c/own/repo", "tmpfs", False),
        ("/mnt/code", "ext4", False),
    ],
)
def test_a_network_or_windows_mount_is_known(place: str, kind: str, elsewhere: bool, tmp_path: Path) -> None:
    """By the kernel's list of mounts: the longest that holds the place."""
    (tmp_path / "mountinfo").write_text(MOUNTS)
    assert kind_of_mount(Path(place), MOUNTS) == kind
    assert is_elsewhere(Path(place), tmp_path / "mountinfo") is elsewhere
    assert not is_elsewhere(Path(place), tmp_path / "none")


@pytest.mark.parametrize("elsewhere", [True, False])
def test_where_files_tell_nothing_git_is_asked(
    elsewhere: bool,
    set_up: Clone,
    cli: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a network the files that git writes may seem unchanged: a gate is found all the same within two seconds."""
    now = 0.0
    repository = open_listened_repository(set_up.path, os.environ)
    repository.elsewhere = elsewhere
    monkeypatch.setattr(type(repository), "stamp", lambda _self: "the same")
    heard: list[str] = []
    listener = QuestionListener(
        repositories=[repository],
        tell=lambda event, _words, _fields: heard.append(event),
        dialogs=[],
        terminal=None,
        words_of=lambda _desk, _done: "",
        delivery=lambda _desk: {},
        stopping=threading.Event(),
        monotonic=lambda: now,
    )
    listener.look()
    cli.quick("ask", "Which?", "-q", code=0)
    now = 2.5
    listener.look()
    assert heard.count("queued") == int(elsewhere)
    now = 12.0
    listener.look()
    assert heard.count("queued") == 1
    repository.desk.close()
