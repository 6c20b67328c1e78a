"""Agents do not answer themselves: the ways round it that a shell has, tried in real process trees."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gitgate.context import agent_above, hides_others
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


def as_own(proc: Path, pid: int) -> None:
    """Have `proc` show process `pid` as the one that reads it."""
    (proc / "self").symlink_to(str(pid))


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
    process(tmp_path, 10, 1, "sh")
    process(tmp_path, 1, 0, "init")
    as_own(tmp_path, 30)
    assert agent_above(30, tmp_path) == told


def test_the_first_process_of_a_container_is_looked_at(tmp_path: Path) -> None:
    """An agent's program that a container was started with is its process 1."""
    process(tmp_path, 30, 1, "sh")
    process(tmp_path, 1, 0, "codex")
    as_own(tmp_path, 30)
    assert agent_above(30, tmp_path) == "process 1 is codex"


def test_a_tree_without_end_is_left(tmp_path: Path) -> None:
    """Numbers are used again; nothing is looked at for ever, and no person is seen in it."""
    process(tmp_path, 30, 31, "sh")
    process(tmp_path, 31, 30, "sh")
    as_own(tmp_path, 30)
    assert agent_above(30, tmp_path) == "more than 256 processes stand above it"


GONE = 2**22 + 1  # above the greatest number of a process


def test_what_is_not_shown_is_no_person(tmp_path: Path) -> None:
    """An empty `/proc`, one of other processes, one without a process above us, or with another in its place."""
    hidden = f"{tmp_path} does not show this very process, 30"
    assert agent_above(30, tmp_path) == hidden
    process(tmp_path, 30, GONE, "sh")
    assert agent_above(30, tmp_path) == hidden
    as_own(tmp_path, 31)
    assert agent_above(30, tmp_path) == hidden
    (tmp_path / "self").unlink()
    as_own(tmp_path, 30)
    above = f"{tmp_path} does not show process {GONE}, which stands above it"
    assert agent_above(30, tmp_path) == above
    process(tmp_path, GONE, 0, "sh")
    assert agent_above(30, tmp_path) == ""
    (tmp_path / str(GONE) / "stat").write_text("7 (sh) S 1 1 1 0")
    assert agent_above(30, tmp_path) == above


@pytest.mark.parametrize(
    ("options", "hidden"),
    [
        ("rw,hidepid=invisible", True),
        ("rw,hidepid=2", True),
        ("rw,hidepid=ptraceable", True),
        ("rw,hidepid=1", False),
        ("rw", False),
    ],
)
def test_only_hidepid_hides_others(tmp_path: Path, options: str, hidden: bool) -> None:
    """Of the mounts at one place the last one counts; a directory that stands for `/proc` hides nothing with a reason."""
    own = tmp_path / "self"
    own.mkdir()
    proc = f"20 1 0:5 / {tmp_path} rw,nosuid shared:3 - proc proc {options}\n"
    (own / "mountinfo").write_text(
        f"1 0 8:1 / / rw - ext4 /dev/root rw\n{proc}21 20 0:9 / {tmp_path}/x rw - proc proc\n"
    )
    assert hides_others(tmp_path) is hidden
    (own / "mountinfo").write_text(f"{proc}22 20 0:9 / {tmp_path} rw - tmpfs tmpfs rw,hidepid=2\n")
    assert not hides_others(tmp_path)
    (own / "mountinfo").write_text(f"20 1 0:5 / {tmp_path} rw\n")
    assert not hides_others(tmp_path)


UNSEEN = "whether an agent started this process cannot be seen"
SANDBOXES = {
    "an empty /proc": "unshare -Urm sh -c 'mount -t tmpfs none /proc; {command}'",
    "an empty /proc that somebody reads": "unshare -Urm sh -c 'mount -t tmpfs none /proc; ln -s /dev/null /proc/self; {command}'",
    "numbers of its own, and the other /proc": "unshare -Urpf sh -c '{command}; exit $?'",
    "its own entry alone": "unshare -Urm sh -c 'p=$$; mkdir {tmp}/p; mount --rbind /proc {tmp}/p; mount -t tmpfs none /proc; "
    "mkdir /proc/$p; ln -s $p /proc/self; mount --bind {tmp}/p/$p /proc/$p; exec {command}'",
    "a harmless process in its parent's place": "sleep 60 & unshare -Urm sh -c "
    "'mount --bind /proc/'$!' /proc/$PPID; exec {command}'; code=$?; kill $!; (exit $code)",
}


@pytest.mark.slow
@pytest.mark.machine
@pytest.mark.parametrize("how", SANDBOXES)
def test_a_sandbox_that_hides_who_is_above_is_no_person(alone: Seat, tmp_path: Path, how: str) -> None:
    """Refused with code 4, with words on what is not seen; whoever started it may be an agent of any program."""
    said = attempt(alone, SANDBOXES[how].replace("{tmp}", str(tmp_path)))
    assert said.code == 4, said.err
    assert UNSEEN in said.err
    assert "mount -t proc proc /proc" in said.err


@pytest.mark.slow
@pytest.mark.machine
@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("unshare -mpf --mount-proc {command}", 0),  # as `docker run` shows it: the first process is ours
        ("unshare -mpf --mount-proc sh -c '{command}; exit $?'", 0),
        (
            "unshare -mpf --mount-proc sh -c 'CLAUDECODE=1 sh -c \"env -u CLAUDECODE {command}; exit \\$?\"; exit $?'",
            4,
        ),
        ("CLAUDECODE=1 unshare -mpf --mount-proc env -u CLAUDECODE sh -c '{command}; exit $?'", 0),
    ],
    ids=["run", "in its shell", "an agent inside", "an agent outside, not told apart"],
)
def test_a_container_of_its_own(alone: Seat, how: str, code: int) -> None:
    """Its first process has no parent here: a person, unless a mark inside it speaks against that."""
    assert attempt(alone, how).code == code


@pytest.mark.slow
@pytest.mark.machine
@pytest.mark.parametrize("agent", [False, True])
def test_what_is_started_from_outside_a_container(alone: Seat, agent: bool) -> None:
    """As by `docker exec`: its parent's number is 0. A container whose first process is an agent's still holds a person
    who comes in from outside; the command that an agent runs there carries its mark.
    """
    inside = subprocess.Popen(
        ["unshare", "-mpf", "--mount-proc", "sh", "-c", "echo up; read line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert inside.stdout is not None
        assert inside.stdout.readline() == "up\n"
        children = Path(f"/proc/{inside.pid}/task/{inside.pid}/children").read_text().split()
        mark = "CLAUDECODE=1 " if agent else ""
        there = f"cd {alone.clone.path}; env -u CLAUDECODE {{command}}; exit $?"
        said = attempt(alone, f"{mark}nsenter -t {children[0]} -m -p sh -c '{there}'")
        assert said.code == (4 if agent else 0), said.err
    finally:
        inside.communicate("over\n", timeout=60)


# Another user, without the right to look at or to signal anybody else's process, who may still read this Python.
OTHER = (
    "setpriv --securebits +no_setuid_fixup --reuid 12345 --regid 12345 --clear-groups --inh-caps=-all,+dac_override --ambient-caps=-all,+dac_override "
    "--bounding-set=-all,+dac_override"
)
HIDING = "unshare -m sh -c 'mount -o remount,hidepid=2 /proc && {rest}; exit $?'"


@pytest.mark.slow
@pytest.mark.machine
@pytest.mark.parametrize(
    ("rest", "code"),
    [
        ("{other} {command}", 0),
        ('{other} sh -c "{command}; exit \\$?"', 0),
        ('CLAUDECODE=1 {other} sh -c "env -u CLAUDECODE {command}; exit \\$?"', 4),
        # Hidden with no such reason: only `hidepid` makes another user's process one that need not be seen.
        ("mount -t tmpfs none /proc && {other} {command}", 4),
    ],
    ids=["below root", "in a shell", "an agent's shell", "an empty /proc"],
)
def test_where_users_see_their_own_processes_alone(alone: Seat, rest: str, code: int) -> None:
    """`hidepid=2`: the login above a person's shell is root's and hidden; whatever of theirs is above is looked at."""
    alone.clone.git("config", "--global", "safe.directory", "*")
    how = HIDING.replace("{rest}", rest).replace("{other}", OTHER)
    assert attempt(alone, how).code == code
