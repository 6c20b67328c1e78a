"""A person opens an agent's own session in this terminal, leaves it, and decides."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gitgate.agents.claude.transcript import project_folder
from gitgate.context.machine import started
from support.resuming import until
from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

pytestmark = pytest.mark.slow  # each takes a second or more

Pty = Callable[..., Terminal]
SESSION = "0b9c4f0e-0000-4000-8000-000000000000"

# Stands in for Claude Code at a terminal: notes how it was started, and does what is typed.
PROGRAM = """\
import json, os, signal, sys, termios, time, tty
from pathlib import Path

here = Path(__file__).parent
session = sys.argv[sys.argv.index("--resume") + 1]
names = ("GITGATE_GATE", "GITGATE_AGENT", "GIT_DIR")
env = {name: os.environ[name] for name in names if name in os.environ}
with (here / "runs").open("a") as runs:
    print(json.dumps({"argv": sys.argv[1:], "cwd": os.getcwd(), "env": env, "pid": os.getpid()}), file=runs)
transcript = next(Path.home().glob(f".claude/projects/{''.join(c if c.isalnum() else '-' for c in os.getcwd())}/*.jsonl"))
said = [json.loads(line) for line in transcript.read_text().splitlines()]


def asked():
    print("> ", end="", flush=True)
    return sys.stdin.readline()


print(f"claude: {len(said)} earlier messages", flush=True)
while line := asked():
    word, _, rest = line.strip().partition(" ")
    if word == "say":
        record = {"type": "user", "uuid": rest, "parentUuid": said[-1]["uuid"], "message": {"role": "user", "content": rest}}
        said.append(record)
        with transcript.open("a") as out:
            print(json.dumps(record), file=out)
    elif word == "edit":
        Path(rest).write_text("edited while we talked\\n")
    elif word == "spoil":
        tty.setraw(0)
        print("\\x1b[?25lspoilt", end="", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    elif word == "leave":
        sys.exit(int(rest or 0))
    print(f"claude: {word} done", flush=True)
"""


def record(word: str, parent: str | None = None) -> str:
    said = {
        "type": "user",
        "uuid": word,
        "parentUuid": parent,
        "message": {"role": "user", "content": word},
    }
    return json.dumps(said) + "\n"


@dataclass(frozen=True)
class Desk:
    """A repository where an agent asked, and the program that its session is opened with."""

    repo: Clone
    cli: Command
    folder: Path

    def ask(self, *args: str, session: bool = True) -> str:
        """A gate of an agent whose conversation is on this machine, about a file that is not committed."""
        (self.repo.path / "draft.txt").write_text("half done\n", encoding="utf-8")
        place = project_folder(os.environ, self.repo.path)
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{SESSION}.jsonl").write_text(record("u1"), encoding="utf-8")
        named = ("--agent", "claude", "--session", SESSION) if session else ()
        return self.cli.quick("ask", *(args or ("Which database?",)), *named, "-q", code=0).line

    @property
    def runs(self) -> list[dict[str, Any]]:
        place = self.folder / "runs"
        return [json.loads(line) for line in place.read_text("utf-8").splitlines()] if place.exists() else []

    def state(self, gate: str) -> Any:
        return self.cli.quick("show", gate, "--json", code=0).json

    def saved(self, gate: str) -> str:
        return self.repo.git("show", f"refs/hitl/sessions/{gate}:files/transcript.jsonl")


@pytest.fixture
def desk(repo: Clone, cli: Command, tmp_path: Path) -> Desk:
    folder = tmp_path / "claude"
    folder.mkdir()
    (folder / "claude.py").write_text(PROGRAM, encoding="utf-8")
    program = json.dumps([sys.executable, str(folder / "claude.py")])
    repo.git("config", "--global", "gitgate.agent.claude.program", program)
    return Desk(repo, cli, folder)


def state_of(pid: int) -> str:
    """How a process is, in one letter."""
    shown = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True)
    return shown.stdout.strip()[:1]


def talk(terminal: Terminal, *lines: str) -> None:
    """Type to the program, one line after the other has had its effect."""
    terminal.expect("earlier messages")
    for line in lines:
        terminal.line(line)
        terminal.expect(f"claude: {line.split()[0]} done")


def test_the_session_is_opened_where_it_was_and_then_answered(desk: Desk, pty_cli: Pty) -> None:
    """The question first, then the agent's own conversation in its own directory; after it the answer, recorded as given so."""
    gate = desk.ask()
    terminal = pty_cli("join", gate[:6])
    shown = terminal.expect("opening claude's session where it was")
    assert "Which database?" in shown
    talk(terminal, "say look-at-the-index")
    terminal.line("leave")
    dialogue = terminal.expect("your answer (")
    assert "the session is over" in dialogue
    terminal.line("Postgres")
    terminal.finish(code=0)
    (run,) = desk.runs
    assert Path(run["cwd"]) == desk.repo.path.resolve()
    assert run["argv"][-2:] == ["--resume", SESSION]
    assert "-p" not in run["argv"]
    assert run["env"] == {"GITGATE_AGENT": "claude"}
    answer = desk.state(gate)["answer"]
    assert (answer["values"], answer["via"]) == ({"answer": "Postgres"}, "join")
    assert "look-at-the-index" in desk.saved(gate)


@pytest.mark.parametrize("leaves", ["\r", "\x04"], ids=["empty", "Ctrl-D"])
@pytest.mark.parametrize(
    "asks", [("Which?",), ("Go?", "--type", "approval"), ("Which?", "-o", "A", "-o", "B")]
)
def test_the_answer_may_wait(desk: Desk, pty_cli: Pty, asks: tuple[str, ...], leaves: str) -> None:
    """An empty line or Ctrl-D after the session decides nothing, and says how to come back."""
    gate = desk.ask(*asks)
    terminal = pty_cli("continue", gate)
    talk(terminal, "say hello")
    terminal.line("leave")
    terminal.expect("the session is over")
    terminal.expect(": ")
    terminal.expect("your " if "--type" not in asks else "[y/n]")
    terminal.keys(leaves)
    assert f"the gate still waits: git gate join {gate[:6]}" in terminal.finish(code=8)
    assert desk.state(gate)["state"] == "awaiting"
    again = pty_cli("join", gate)
    again.expect("claude: 2 earlier messages")


def test_elsewhere_it_is_opened_in_a_worktree(desk: Desk, pty_cli: Pty, cli: Command) -> None:
    """Where the agent's directory went on without it, the work is put into a worktree, on no branch; unchanged, it goes."""
    gate = desk.ask()
    desk.repo.git("add", "draft.txt")
    desk.repo.git("commit", "-qm", "go on")
    terminal = pty_cli("join", gate)
    terminal.expect("in a worktree of its work")
    talk(terminal, "say hello")
    place = Path(desk.runs[0]["cwd"])
    assert place != desk.repo.path
    assert (place / "draft.txt").read_text("utf-8") == "half done\n"
    terminal.line("leave")
    terminal.expect("your answer (")
    terminal.line()
    terminal.finish(code=8)
    assert not place.exists()
    assert "hello" in desk.saved(gate)
    assert str(place) not in desk.repo.git("worktree", "list")


def test_what_was_changed_in_the_worktree_is_kept(desk: Desk, pty_cli: Pty) -> None:
    """Left waiting, it stays and is gone on with; answered, it is where the agent goes on."""
    gate = desk.ask()
    desk.repo.git("add", "draft.txt")
    desk.repo.git("commit", "-qm", "go on")
    first = pty_cli("join", gate)
    talk(first, "edit draft.txt")
    first.line("leave")
    first.expect("your answer (")
    first.line()
    place = Path(desk.runs[0]["cwd"])
    assert f"what was changed stays in {place}" in first.finish(code=8)
    second = pty_cli("join", gate)
    talk(second)
    second.line("leave")
    second.expect("your answer (")
    second.line("Postgres")
    second.finish(code=0)
    assert [run["cwd"] for run in desk.runs] == [str(place)] * 2
    resumed = desk.folder / "resumed"
    (desk.folder / "claude.py").write_text(
        f"import os, sys\nopen({str(resumed)!r}, 'w').write(os.getcwd() + '\\n' + open('draft.txt').read() + sys.stdin.read())\n"
        'print(\'{"type": "result", "is_error": false, "result": "done", "session_id": "x"}\')\n',
        encoding="utf-8",
    )
    desk.cli("resume", gate, code=0)
    told = resumed.read_text("utf-8")
    assert told.startswith(f"{place}\nedited while we talked\n")
    assert "Postgres" in told
    assert "you were here before" in told


def test_a_worktree_without_changes_goes_with_the_answer(desk: Desk, pty_cli: Pty) -> None:
    """Whoever only talked leaves nothing behind."""
    gate = desk.ask()
    desk.repo.git("add", "draft.txt")
    desk.repo.git("commit", "-qm", "go on")
    terminal = pty_cli("join", gate)
    talk(terminal, "say hello")
    terminal.line("leave")
    terminal.expect("your answer (")
    terminal.line("Postgres")
    terminal.finish(code=0)
    assert not Path(desk.runs[0]["cwd"]).exists()


def test_what_was_committed_where_it_was_is_gone_on_with(desk: Desk, pty_cli: Pty) -> None:
    """A commit made in the agent's own directory while they talked does not send it back to its work as saved."""
    gate = desk.ask()
    terminal = pty_cli("join", gate)
    talk(terminal, "say hello")
    desk.repo.git("add", "draft.txt")
    desk.repo.git("commit", "-qm", "made while we talked")
    terminal.line("leave")
    terminal.expect("your answer (")
    terminal.line("Postgres")
    terminal.finish(code=0)
    place = desk.folder / "resumed-in"
    (desk.folder / "claude.py").write_text(
        f"import os\nopen({str(place)!r}, 'w').write(os.getcwd())\n"
        'print(\'{"type": "result", "is_error": false, "result": "done", "session_id": "x"}\')\n',
        encoding="utf-8",
    )
    desk.cli("resume", gate, code=0)
    assert Path(place.read_text("utf-8")) == desk.repo.path.resolve()
    assert desk.repo.path.is_dir()


def test_one_at_a_time(desk: Desk, pty_cli: Pty) -> None:
    """A second session of the same person in the same clone is refused with the first one's name; its end frees the place."""
    one, two = desk.ask("One?"), desk.ask("Two?")
    first = pty_cli("join", one)
    first.expect("earlier messages")
    said = pty_cli("join", two).finish(code=5)
    assert f"you are in a session already: gate {one}" in said
    assert f"git gate respond {two[:6]}" in said
    first.process.kill()
    first.end()
    assert desk.state(one)["state"] == "awaiting"
    pty_cli("join", two).expect("earlier messages")


def test_the_terminal_is_as_it_was(desk: Desk, pty_cli: Pty) -> None:
    """A program that is killed with the terminal upside down leaves one that can be typed on; the session is saved."""
    gate = desk.ask()
    terminal = pty_cli("join", gate)
    talk(terminal, "say before-the-crash")
    terminal.line("spoil")
    terminal.expect("claude ended with exit code 137")
    terminal.expect("your answer (")
    assert "\x1b[?25h" in terminal.raw.partition("spoilt")[2]
    terminal.line("Postgres")
    terminal.finish(code=0)
    assert "before-the-crash" in desk.saved(gate)
    assert desk.state(gate)["answer"]["values"] == {"answer": "Postgres"}


def test_hanging_up_loses_nothing(desk: Desk, pty_cli: Pty) -> None:
    """A killed terminal leaves the gate waiting and the way free; joined again, the conversation is there."""
    gate = desk.ask()
    terminal = pty_cli("join", gate)
    talk(terminal, "say half-a-word")
    terminal.end()
    assert terminal.process.poll() is not None
    assert desk.state(gate)["state"] == "awaiting"
    pty_cli("join", gate).expect("claude: 2 earlier messages")


def test_whoever_ends_it_ends_the_program_too(desk: Desk, pty_cli: Pty) -> None:
    """A polite signal to the command reaches the program; what was said until then is saved, and nothing is decided."""
    gate = desk.ask()
    terminal = pty_cli("join", gate)
    talk(terminal, "say until-now")
    terminal.process.send_signal(signal.SIGTERM)
    terminal.finish(code=130)
    assert "until-now" in desk.saved(gate)
    assert desk.state(gate)["state"] == "awaiting"


def test_somebody_else_may_be_first(desk: Desk, pty_cli: Pty, cli: Command) -> None:
    """Answered while they talked: told when they leave, and nothing is asked."""
    gate = desk.ask()
    terminal = pty_cli("join", gate)
    talk(terminal, "say hello")
    cli("respond", gate, "SQLite", code=0)
    terminal.line("leave")
    said = terminal.finish(code=5)
    assert "already answered" in said or "Ada Lovelace" in said
    assert "your answer (" not in said
    assert desk.state(gate)["answer"]["values"] == {"answer": "SQLite"}


def test_of_several_one_has_to_be_named(desk: Desk, pty_cli: Pty) -> None:
    desk.ask("Later?")
    desk.ask("Now?", "--priority", "urgent")
    assert "name one: git gate join ID" in pty_cli("join").finish(code=1)


def test_what_cannot_be_joined_says_what_can_be_done(
    desk: Desk, pty_cli: Pty, cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each refusal says what happened, or what can be done instead; no program is started that the person did not agree to."""
    desk.repo.git("config", "gitgate.agent.mine.resume", "mine {session}")
    other = cli.quick("ask", "B?", "--agent", "mine", "--session", "abcd-1234", "-q", code=0).line
    done = desk.ask("C?")
    cli.quick("respond", done, "no", code=0)
    terminal = pty_cli("join", other)
    terminal.expect("open a new session with the question instead? [y/N] ")
    terminal.line("")
    said = terminal.finish(code=2)
    assert f"git gate worktree {other}" in said
    assert f"git gate respond {other}" in said
    assert "Ada Lovelace" in pty_cli("join", done).finish(code=5)
    bare = desk.ask("A?", session=False)
    desk.repo.git("config", "--global", "gitgate.agent.claude.program", "no-such-program")
    said = pty_cli("join", bare).finish(code=1)
    assert "no-such-program is not on PATH" in " ".join(said.split())
    assert f"git gate worktree {bare[:6]}" in said
    assert f"git gate respond {bare[:6]}" in said
    assert desk.runs == []


def test_a_session_that_still_runs_is_not_opened_twice(desk: Desk, pty_cli: Pty, tmp_path: Path) -> None:
    """While the agent's own process is there, its conversation is to be had where it runs; afterwards here."""
    gate = desk.ask()
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    shutil.copy(shutil.which("sleep") or "", program)
    running = subprocess.Popen([str(program), "60"])
    try:
        place = desk.repo.path / ".git" / "gitgate" / "asked.jsonl"
        said = {**json.loads(place.read_text("utf-8")), "pid": running.pid, "started": started(running.pid)}
        place.write_text(json.dumps(said), encoding="utf-8")
        assert f"still runs (process {running.pid})" in pty_cli("join", gate).finish(code=5)
    finally:
        running.kill()
        running.wait()
    pty_cli("join", gate).expect("earlier messages")


def test_it_needs_a_terminal_and_a_person(desk: Desk, cli: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal it says what to type; inside an agent it is refused before anything else."""
    gate = desk.ask()
    said = cli("join", gate, code=2).err
    assert f"git gate join {gate}" in said
    assert f"git gate respond {gate} ANSWER" in said
    for verb in ("join", "continue"):
        assert "for people" in cli(verb, gate, env={"CLAUDECODE": "1"}, code=4).err
    assert desk.runs == []


def test_another_machine_joins_too(
    desk: Desk,
    pty_cli: Pty,
    cli: Command,
    bare: Clone,
    clone_of: Callable[..., Clone],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where sessions are shared, the conversation is opened from another clone, and goes back with what was said there."""
    ann, bob = clone_of(bare, "ann"), clone_of(bare, "bob")
    for name in ("gitgate.session push", "gitgate.publishWork true"):
        ann.git("config", "--global", *name.split())
    monkeypatch.chdir(ann.path)
    gate = Desk(ann, cli, desk.folder).ask()
    (project_folder(os.environ, ann.path) / f"{SESSION}.jsonl").unlink()
    cli("sync", cwd=bob.path, code=0)
    terminal = pty_cli("join", gate, cwd=bob.path)
    terminal.expect("in a worktree of its work")
    talk(terminal, "say from-bob")
    place = Path(desk.runs[0]["cwd"])
    assert (place / "draft.txt").read_text("utf-8") == "half done\n"
    terminal.line("leave")
    terminal.expect("your answer (")
    terminal.line()
    terminal.finish(code=8)
    assert not place.exists()
    assert "from-bob" in bare.git("show", f"refs/hitl/sessions/{gate}:files/transcript.jsonl")


@pytest.mark.parametrize("program", ["git-gate", "git"])
def test_keys_that_interrupt_are_the_programs(desk: Desk, pty_cli: Pty, program: str) -> None:
    """Ctrl-C in the session reaches the program alone: when it ends by that, the person is still asked."""
    gate = desk.ask()
    terminal = pty_cli(*(["gate"] if program == "git" else []), "join", gate, program=program)
    talk(terminal, "say hello")
    terminal.keys("\x03")
    terminal.expect("claude ended with exit code 130")
    terminal.expect("your answer (")
    terminal.line("Postgres")
    terminal.expect("answered")
    terminal.finish()
    assert desk.state(gate)["answer"]["values"] == {"answer": "Postgres"}


@pytest.mark.parametrize("command", ["git-gate", "git gate"])
def test_it_goes_into_the_background_with_the_program(desk: Desk, pty_cli: Pty, command: str) -> None:
    """Ctrl-Z gives the terminal back to the shell above, and `fg` brings the session back, also when git is between."""
    gate = desk.ask()
    shell = pty_cli("--norc", "--noprofile", "-i", program=shutil.which("bash") or "bash")
    shell.line(f"PS1='READY> '; {command} join {gate}")
    talk(shell, "say hello")
    shell.keys("\x1a")
    shell.expect("READY> ")
    # The shell waits for git alone: what is typed before the program has stopped, too, the program would still read.
    until(lambda: state_of(desk.runs[0]["pid"]) == "T")
    shell.line("echo $((40 + 2))-in-the-shell")
    shell.expect("42-in-the-shell")
    shell.line("fg")
    shell.expect(f"{command} join")
    shell.keys("say again\r")  # its prompt stood there before it was stopped
    shell.expect("claude: say done")
    shell.line("leave")
    shell.expect("your answer (")
    shell.line("Postgres")
    shell.expect("READY> ")
    shell.line("exit")
    shell.finish(code=0)
    assert desk.state(gate)["answer"]["values"] == {"answer": "Postgres"}
