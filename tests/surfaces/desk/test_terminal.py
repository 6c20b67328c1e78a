"""The desk in a real terminal, of each width: what is drawn, what is left when it ends, and a terminal that is lent and taken back."""

from __future__ import annotations

import json
import os
import pwd
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.servers import ssh_server
from support.testbed.command import COMMAND, Command
from support.testbed.repositories import Clone
from support.testbed.tmux import Tmux

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
WAIT = 60.0


def opened(repo: Clone, columns: int = 100, rows: int = 36, **env: str) -> Tmux:
    return Tmux(str(COMMAND), "desk", cwd=repo.path, env={**os.environ, **env}, columns=columns, rows=rows)


def until(holds: Callable[[], bool], window: Tmux) -> None:
    """Wait for the state itself."""
    end = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < end, window.screen
        time.sleep(0.1)


def chosen(window: Tmux, gate: str, question: str) -> None:
    """Until the gate is chosen, and what it asks stands below the list."""
    until(lambda: f"> {gate}" in window.screen and window.screen.count(question) == 2, window)


def state(cli: Command, gate: str) -> str:
    return str(cli.quick("show", gate, "--json", code=0).json["state"])


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_a_gate_is_answered_at_every_width(repo: Clone, cli: Command, columns: int) -> None:
    """No line is broken by the terminal; after `q` the decision is sent, and the terminal is as it was."""
    gate = cli.quick("ask", "Deploy?", "--type", "approval", "-q", code=0).line
    cli.quick(
        "ask", "Which 問題 is it, of all of those that stand here? " * 3, "--priority", "low", "-q", code=0
    )
    with opened(repo, columns) as window:
        chosen(window, gate, "Deploy?")
        plain = window.tmux("capture-pane", "-p").splitlines()
        assert len(plain) <= 36
        assert any(line.strip().endswith("q leave") for line in plain)
        assert f"$ git gate show {gate[:6]}" in window.screen
        window.keys("a")
        window.until("u takes it back", WAIT)
        window.keys("q")
        screen = window.ended(0, WAIT)
    assert f"sending: git gate respond {gate[:6]} --approve" in " ".join(screen.split())
    assert f"gate {gate} approved" in " ".join(screen.split())
    assert state(cli, gate) == "answered"


def test_over_ssh_it_is_opened_answers_and_leaves(
    repo: Clone, cli: Command, home: Path, tmp_path: Path
) -> None:
    """At 80 columns, on a terminal that sshd made. Whoever waits meanwhile is not told that nobody listens, and `status` says who
    has it open. A question that is asked then comes up by itself. Afterwards the terminal is as it was.
    """
    first = cli.quick(
        "ask", "Which of the two?", "-o", "A", "-o", "B", "--priority", "low", "-q", code=0
    ).line
    nobody = "nobody listens here"
    assert nobody in cli.quick("wait", first, "--for", "0s", code=8).err
    there = f"cd {repo.path} && stty -a > {tmp_path}/before; {COMMAND} desk; said=$?; stty -a > {tmp_path}/after; exit $said"
    account = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    with ssh_server(tmp_path / "ssh", env=account) as sshd:
        words = shlex.split(sshd.command)
        goal = ("-tt", "-p", str(sshd.port), f"{pwd.getpwuid(os.geteuid()).pw_name}@127.0.0.1", there)
        with Tmux(*words, *goal, cwd=tmp_path, env=dict(os.environ), columns=80, rows=30) as window:
            chosen(window, first, "Which of the two?")
            assert window.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}").split() == [
                "1",
                "0",
            ]
            assert nobody not in cli.quick("wait", first, "--for", "0s", code=8).err
            (here,) = cli.quick("status", "--json", code=0).json["listeners"]
            assert (here["by"], here["dialog"]) == ("Ada Lovelace <ada@example.org>", "desk")
            assert "Ada Lovelace listens here by the desk, pid " in cli.quick("status", code=0).out
            gate = cli.quick("ask", "Deploy?", "--type", "approval", "-q", code=0).line
            until(lambda: f"  {gate}" in window.screen, window)
            window.press("Up")
            chosen(window, gate, "Deploy?")
            window.keys("a")
            window.until("u takes it back", WAIT)
            window.keys("q")
            screen = window.ended(0, WAIT)
            modes = "#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{keypad_flag}"
            assert window.tmux("display-message", "-p", modes).split() == ["0", "1", "0", "0"]
    assert f"gate {gate} approved" in " ".join(screen.split())
    assert (tmp_path / "before").read_text("utf-8") == (tmp_path / "after").read_text("utf-8")
    assert cli.quick("show", gate, "--json", code=0).json["answer"]["via"] == "desk"
    assert cli.quick("status", "--json", code=0).json["listeners"] == []


def test_without_colour_the_choice_is_seen(repo: Clone, cli: Command) -> None:
    """NO_COLOR: no colour is written at all; the chosen line is marked, and reversed."""
    gate = cli.quick("ask", "Deploy?", "--type", "approval", "--priority", "urgent", "-q", code=0).line
    with opened(repo, NO_COLOR="1") as window:
        chosen(window, gate, "Deploy?")
        drawn = window.tmux("capture-pane", "-p", "-e")
        window.keys("q")
        window.ended(0, WAIT)
    codes = {code for part in drawn.split("\x1b[")[1:] for code in part.partition("m")[0].split(";") if code}
    assert {code for code in codes if len(code) > 1} <= {"39", "49"}
    assert "7" in codes


EDITOR = """#!{python}
import sys, termios, tty, os, signal
tty.setraw(0)
sys.stdout.write("\\x1b[?25lspoilt")
sys.stdout.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


def script(folder: Path, name: str, text: str) -> str:
    place = folder / name
    place.write_text(text.replace("{python}", sys.executable), encoding="utf-8")
    place.chmod(0o755)
    return str(place)


def test_the_editor_answers_and_the_desk_is_back(repo: Clone, cli: Command, tmp_path: Path) -> None:
    """The answer is recorded; the list is there again, and takes keys."""
    gate = cli.quick("ask", "How should errors look?", "-q", code=0).line
    editor = script(tmp_path, "editor", "#!/bin/sh\necho 'as exceptions' >> \"$1\"\n")
    with opened(repo, GIT_EDITOR=editor) as window:
        chosen(window, gate, "How should errors look?")
        window.keys("e")
        until(lambda: state(cli, gate) == "answered", window)
        window.until("1 answered", WAIT)
        window.keys("q")
        window.ended(0, WAIT)
    assert cli.quick("check", gate, code=0).out.strip() == "as exceptions"


def test_the_editor_opens_on_the_work(repo: Clone, cli: Command, tmp_path: Path) -> None:
    """In a working tree beside the repository, which holds what the agent left."""
    repo.write("draft.txt", "half done\n")
    gate = cli.quick("ask", "How should errors look?", "-q", code=0).line
    note = tmp_path / "note"
    editor = script(
        tmp_path,
        "editor",
        f'#!/bin/sh\ncat "$1/draft.txt" > {note}.new; pwd >> {note}.new; mv {note}.new {note}\n',
    )
    with opened(repo, VISUAL=editor) as window:
        chosen(window, gate, "How should errors look?")
        window.keys("o")
        until(note.exists, window)
        window.until("opened ", WAIT)
        window.keys("q")
        window.ended(0, WAIT)
    assert note.read_text("utf-8") == f"half done\n{repo.path.parent / f'{repo.path.name}-{gate[:6]}'}\n"


def test_an_agent_opens_no_desk(repo: Clone) -> None:
    """Its terminal has the person's git identity, not their judgement."""
    with opened(repo, CLAUDECODE="1") as window:
        assert "is for people" in window.ended(4, WAIT)


def test_a_program_that_dies_in_raw_mode_leaves_the_desk_whole(
    repo: Clone, cli: Command, tmp_path: Path
) -> None:
    """The terminal is as it was before: Enter is read as a line, and the desk is back with its list."""
    gate = cli.quick("ask", "How should errors look?", "-q", code=0).line
    editor = script(tmp_path, "editor", EDITOR)
    with opened(repo, GIT_EDITOR=editor) as window:
        chosen(window, gate, "How should errors look?")
        window.keys("e")
        window.until("Enter: back to the desk", WAIT)
        window.press("Enter")
        chosen(window, gate, "How should errors look?")
        window.until("respond ended with exit", WAIT)
        window.keys("q")
        window.ended(0, WAIT)
    assert state(cli, gate) == "awaiting"


def test_ctrl_c_in_a_program_is_its_own(repo: Clone, cli: Command, tmp_path: Path) -> None:
    """It ends the program, not the desk."""
    gate = cli.quick("ask", "How should errors look?", "-q", code=0).line
    editor = script(tmp_path, "editor", "#!/bin/sh\necho editing now\nexec sleep 600\n")
    shell = ("bash", "-mc", f"{COMMAND} desk; exit $?")  # as at a prompt: Ctrl-C is for what it started alone
    with Tmux(*shell, cwd=repo.path, env={**os.environ, "GIT_EDITOR": editor}, rows=36) as window:
        chosen(window, gate, "How should errors look?")
        window.keys("e")
        window.until("editing now", WAIT)
        window.press("C-c")
        window.until("Enter: back to the desk", WAIT)
        window.press("Enter")
        chosen(window, gate, "How should errors look?")
        window.keys("q")
        window.ended(0, WAIT)
    assert state(cli, gate) == "awaiting"


TALKER = """import sys
print("session of", sys.argv[sys.argv.index("--resume") + 1], flush=True)
sys.stdin.readline()
print("session over", flush=True)
"""
SESSION = "0b9c4f0e-0000-4000-8000-000000000000"


def test_an_agents_session_is_joined_and_left(repo: Clone, cli: Command, tmp_path: Path) -> None:
    """A panel names agent and reason first; the session opens; the person decides; the desk is back and shows it."""
    from gitgate.agents.claude.transcript import project_folder

    (tmp_path / "claude.py").write_text(TALKER, encoding="utf-8")
    program = json.dumps([sys.executable, str(tmp_path / "claude.py")])
    repo.git("config", "--global", "gitgate.agent.claude.program", program)
    place = project_folder(os.environ, repo.path)
    place.mkdir(parents=True, exist_ok=True)
    said = {"type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": "hello"}}
    (place / f"{SESSION}.jsonl").write_text(json.dumps(said) + "\n", encoding="utf-8")
    asked = ("--agent", "claude", "--session", SESSION, "--type", "approval")
    gate = cli.quick("ask", "May I rewrite the parser?", *asked, "-q", code=0).line
    with opened(repo) as window:
        chosen(window, gate, "May I rewrite the parser?")
        window.keys("c")
        window.until("Enter opens it, Esc does not", WAIT)
        assert "Agent: claude" in window.screen
        assert "Reason: May I rewrite the parser?" in window.screen
        window.press("Enter")
        window.until(f"session of {SESSION}", WAIT)
        window.press("Enter")
        window.until("[y/n]", WAIT)
        time.sleep(0.5)  # what was typed before the prompt stood there is dropped
        window.line("y")
        until(lambda: state(cli, gate) == "answered", window)
        window.until("1 answered", WAIT)
        window.keys("q")
        window.ended(0, WAIT)


def test_a_desk_outside_of_any_repository(repo: Clone, cli: Command, tmp_path: Path) -> None:
    """It shows what `git gate init` noted; where nothing is known, it says what to type."""
    lost = tmp_path / "elsewhere"
    lost.mkdir()
    with Tmux(str(COMMAND), "desk", cwd=lost, env=dict(os.environ)) as window:
        screen = window.ended(1, WAIT)
        assert "git gate init, in each of your clones" in screen
    gate = cli.quick("ask", "Deploy?", "--type", "approval", "-q", code=0).line
    cli.quick("init", code=0)
    with Tmux(str(COMMAND), "desk", cwd=lost, env=dict(os.environ)) as window:
        chosen(window, gate, "Deploy?")
        assert f"git gate -C {repo.path} show {gate[:6]}" in window.screen
        window.keys("q")
        window.ended(0, WAIT)


def test_a_terminal_that_is_closed_loses_no_decision(repo: Clone, cli: Command) -> None:
    """What could still have been taken back is sent, as if the person had left."""
    repo.git("config", "gitgate.deskUndo", "600")
    gate = cli.quick("ask", "Deploy?", "--type", "approval", "-q", code=0).line
    with opened(repo) as window:
        chosen(window, gate, "Deploy?")
        window.keys("a")
        window.until("u takes it back", WAIT)
        window.tmux("kill-server")
        end = time.monotonic() + WAIT
        while state(cli, gate) != "answered":
            assert time.monotonic() < end
            time.sleep(0.2)
