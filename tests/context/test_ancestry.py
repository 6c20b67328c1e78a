"""Agents do not answer themselves: the ways round it that a shell has, tried in real process trees."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gitgate.context import agent_above
from gitgate.errors import NotAllowed
from gitgate.policy.permit import check_told
from support.deciding import gate_of
from support.resuming import Seat
from support.signing import make_key, publish_policy
from support.testbed.command import COMMAND, Outcome
from support.testbed.repositories import Clone

VERBS = {
    "respond": "respond {id} Postgres",
    "signal": "signal {id} --status CONTINUE",
    "stop": "stop {id} --reason enough",
}


def run(script: str, cwd: Path, **env: str) -> Outcome:
    """A shell's script in a process tree that is looked at, as outside of tests."""
    known = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    said = subprocess.run(
        ["sh", "-c", f"{script}\n:"],
        cwd=cwd,
        env={**known, **env},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return Outcome(said.returncode, said.stdout, said.stderr)


def attempt(seat: Seat, how: str, verb: str = "respond", **env: str) -> Outcome:
    """`how` with `{command}` in it, as an agent would type it; its own exit code is the last line."""
    gate = gate_of(seat)
    command = f"{COMMAND} {VERBS[verb].format(id=gate.id)}"
    said = run(how.format(command=command) + "; echo $?", seat.clone.path, **env)
    assert seat.now(gate).state == ("answered" if said.out.endswith("0\n") else "awaiting")
    return Outcome(int(said.out.split()[-1]), said.out, said.err)


NEEDS_SETSID = pytest.mark.needs("setsid")
WAYS = {
    "plainly": "{command}",
    "unset": "env -u CLAUDECODE {command}",
    "empty": "CLAUDECODE= {command}",
    "cleared": 'env -i PATH="$PATH" HOME="$HOME" {command}',
    "two shells deep": "unset CLAUDECODE; sh -c 'sh -c \"{command}\"'",
    "from Python": sys.executable + " -c \"import os, subprocess; os.environ.pop('CLAUDECODE', 0); "
    "raise SystemExit(subprocess.call('{command}'.split()))\"",
    "in a session of its own": "env -u CLAUDECODE setsid -w {command}",
    "as an alias of git": "git -c alias.x='!env -u CLAUDECODE {command}' x",
}


@pytest.mark.parametrize(
    "how", [pytest.param(how, marks=NEEDS_SETSID if "setsid" in WAYS[how] else ()) for how in WAYS]
)
def test_a_shell_that_clears_its_marker_is_still_an_agents(alone: Seat, how: str) -> None:
    """Refused with code 4, and nothing is written."""
    said = attempt(alone, WAYS[how], CLAUDECODE="1")
    assert said.code == 4, said.err
    assert "this is an agent's process (CLAUDECODE is set" in said.err


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("marker", ["CODEX_SANDBOX", "GITGATE_AGENT", "CLAUDE_CODE_SESSION_ID"])
def test_every_verb_of_a_person(alone: Seat, verb: str, marker: str) -> None:
    """Under each marker."""
    assert attempt(alone, f"env -u {marker} {{command}}", verb, **{marker: "x"}).code == 4


def test_an_agents_program_is_known_by_its_name(alone: Seat, tmp_path: Path) -> None:
    """Whatever its environment."""
    program = tmp_path / "claude"
    shutil.copy("/bin/sh", program)
    said = attempt(alone, f"{program} -c '{{command}}; exit $?'")
    assert said.code == 4
    assert "is claude" in said.err


@pytest.mark.parametrize(
    "how",
    [
        "{command}",
        "sh -c '{command}'",
        "nohup {command} 2>&1",
        "CI=true {command}",
        pytest.param("setsid -w {command}", marks=NEEDS_SETSID),
    ],
)
def test_a_person_is_never_taken_for_one(alone: Seat, how: str) -> None:
    """In a shell, in a script, in a job: the same answer is taken."""
    assert attempt(alone, how).code == 0


def test_the_python_functions_are_no_way_round(alone: Seat) -> None:
    """The environment that the process began with counts, not what it made of it."""
    gate = gate_of(alone)
    code = (
        f"import os; os.environ.pop('CLAUDECODE'); import gitgate; gitgate.respond('{gate.id}', 'Postgres')"
    )
    said = run(f"{sys.executable} -c {shlex.quote(code)}", alone.clone.path, CLAUDECODE="1")
    assert "NotAllowed" in said.err
    assert alone.now(gate).state == "awaiting"


def test_another_clone_is_no_way_round(ann: Seat, bob: Seat) -> None:
    """It is the process that counts, not the place."""
    gate = gate_of(ann)
    script = f"cd {bob.clone.path} && git fetch -q origin '+refs/hitl/open/*:refs/hitl/open/*' && "
    said = run(
        f"{script} env -u CLAUDECODE {COMMAND} respond {gate.id} Postgres", ann.clone.path, CLAUDECODE="1"
    )
    assert "this is an agent's process" in said.err
    assert bob.now(gate).state == "awaiting"


@pytest.mark.needs("ssh-keygen")
def test_plain_git_is_a_way_round_that_signatures_stop(ann: Seat, bare: Clone, tmp_path: Path) -> None:
    """And so is cutting oneself off: nobody acts on an answer that an agent wrote so, where signatures are asked for."""
    ada = make_key(tmp_path / "keys", "ada", "ada@example.org")
    publish_policy(bare, "policy: {require_signed: true}\n", signers=ada.line)
    ann.clone.git("fetch", "-q", "origin")
    gate = gate_of(ann)
    forged = forged_by_plain_git(ann.clone, gate.id, gate.tip)
    ann.clone.git("update-ref", f"refs/hitl/open/{gate.id}", forged)
    answered = ann.now(gate)
    assert answered.state == "answered"
    with pytest.raises(NotAllowed, match="has to be signed"):
        check_told(ann.desk, answered)


def forged_by_plain_git(clone: Clone, gate: str, tip: str) -> str:
    """An answer in the person's name, without the command."""
    said = (
        f"hitl: 1\ngate: {gate}\nvalues: {{answer: Postgres}}\nverdict: answered\n"
        f'by: Ada Lovelace <ada@example.org>\nat: "2026-01-02T03:04:05Z"\nseen: {tip}\n'
    )
    blob = clone.git("hash-object", "-w", "--stdin", input=said)
    answers = clone.git("mktree", input=f"100644 blob {blob}\tx.yaml\n")
    tree = clone.git("mktree", input=f"{clone.git('ls-tree', tip)}\n040000 tree {answers}\tanswers\n")
    return clone.git("commit-tree", tree, "-p", tip, "-m", "Answered")


def process(proc: Path, pid: int, parent: int, name: str, environ: bytes | None = b"") -> None:
    place = proc / str(pid)
    place.mkdir(parents=True)
    (place / "stat").write_text(f"{pid} ({name}) S {parent} 1 1 0")
    if environ is not None:
        (place / "environ").write_bytes(environ)


@pytest.mark.parametrize(
    ("name", "environ", "told"),
    [
        ("bash", b"A=1\0CLAUDECODE=1\0", "CLAUDECODE is set in process 20, bash"),
        ("codex", None, "process 20 is codex"),
        ("a) S 99 (b", b"CODEX_SESSION_ID=x", "CODEX_SESSION_ID is set in process 20, a) S 99 (b"),
        ("claude-notes", b"CLAUDECODE=\0XCLAUDECODE=1\0", ""),
        ("bash", None, ""),
    ],
)
def test_what_a_process_tells(tmp_path: Path, name: str, environ: bytes | None, told: str) -> None:
    """Its name, whatever is in it, and its environment, where it may be read; an empty marker is none."""
    process(tmp_path, 30, 20, "sh")
    process(tmp_path, 20, 10, name, environ)
    process(tmp_path, 10, 1, "init")
    assert agent_above(30, tmp_path) == told
    assert agent_above(40, tmp_path) == ""


def test_a_tree_without_end_is_left(tmp_path: Path) -> None:
    """Numbers are used again; nothing is looked at for ever."""
    process(tmp_path, 30, 31, "sh")
    process(tmp_path, 31, 30, "sh")
    assert agent_above(30, tmp_path) == ""
