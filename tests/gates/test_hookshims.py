"""The shims that git starts: who is told of which lines, whatever stands first and whoever was there before."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support import PATIENCE
from support.resuming import until

SHIMS = Path(__file__).parents[2] / "hooks"
OLD, NEW = "1" * 40, "2" * 40
BRANCH, GATE, LEASE, ODD = (
    f"{OLD} {NEW} {ref}\n".encode("utf-8", "surrogateescape")
    for ref in (
        "refs/heads/main",
        "refs/hitl/open/abcdefghjk",
        "refs/hitl/leases/abcdefghjk",
        "refs/heads/\udcff'$x",
    )
)
LINES = [
    b"", BRANCH, GATE, LEASE, BRANCH + GATE, GATE + BRANCH, LEASE + GATE, GATE + LEASE, ODD + GATE, GATE + ODD,
    BRANCH * 3 + GATE * 3000 + BRANCH,
]  # fmt: skip

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """A shim whose command writes down what it was given, as ours puts it together: first arguments, then input."""

    def make(name: str, before: int | None = None) -> Path:
        command = tmp_path / "command"
        command.write_text(
            '#!/bin/sh\nshift\n{ [ "$#" = 0 ] || printf "%s\\n" "$@"; cat; } >told.new\nmv told.new told\nexit 3\n'
        )
        command.chmod(0o755)
        hook = tmp_path / name
        text = (SHIMS / name).read_text(encoding="utf-8")
        hook.write_text(text.replace("@COMMAND@", str(command)).replace("@PROGRAM@", str(command)))
        hook.chmod(0o755)
        if before is not None:
            earlier = hook.with_name(f"{name}.before-git-gate")
            earlier.write_text(f"#!/bin/sh\ncat >heard\nexit {before}\n")
            earlier.chmod(0o755)
        return hook

    return make


def push(hook: Path, lines: bytes) -> int:
    done = subprocess.run(
        [hook], cwd=hook.parent, input=lines, env={"GIT_DIR": "."}, check=False, timeout=PATIENCE
    )
    return done.returncode


def told(hook: Path) -> bytes | None:
    place = hook.parent / "told"
    return place.read_bytes() if place.exists() else None


@pytest.mark.parametrize("before", [None, 0])
@pytest.mark.parametrize("lines", LINES)
def test_a_push_is_judged_whole(install: Install, lines: bytes, before: int | None) -> None:
    """By us where any line is about a gate, with our verdict; by the hook that was there in any case, all of it."""
    hook = install("pre-receive", before)
    ours = b" refs/hitl/" in lines
    assert push(hook, lines) == (3 if ours else 0)
    assert told(hook) == (lines if ours else None)
    if before is not None and lines:
        assert (hook.parent / "heard").read_bytes() == lines


@pytest.mark.parametrize("name", ["pre-receive", "post-receive"])
def test_the_hook_that_was_there_has_the_last_word(install: Install, name: str) -> None:
    """What it refuses is refused, and nothing of ours is started."""
    hook = install(name, before=7)
    assert push(hook, GATE) == 7
    assert (hook.parent / "heard").read_bytes() == GATE
    assert told(hook) is None
    assert not (hook.parent / "gitgate").exists()


@pytest.mark.parametrize("before", [None, 0])
@pytest.mark.parametrize("lines", LINES)
def test_a_runner_is_started_where_a_gate_moved(install: Install, lines: bytes, before: int | None) -> None:
    """In the background, without the lines: it looks for itself. A lease that is renewed starts nothing."""
    hook = install("post-receive", before)
    ours = b" refs/hitl/open/" in lines
    assert push(hook, lines) == 0
    assert (hook.parent / "gitgate/called").exists() == ours
    until(lambda: not ours or told(hook) is not None)
    assert told(hook) == (b"" if ours else None)
    if before is not None and lines:
        assert (hook.parent / "heard").read_bytes() == lines


def tip_with(place: Path, *states: str) -> None:
    """A repository whose open gates say this of themselves."""
    subprocess.run(["git", "init", "-q", "--bare", place], check=True, timeout=PATIENCE)
    tree = subprocess.run(["git", "mktree"], cwd=place, input=b"", capture_output=True, check=True).stdout
    who = {f"GIT_{role}_{part}": "a@b" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    for number, state in enumerate(states):
        words = ["-m", "subject", "-m", f"Hitl-Gate: {number}\n{state}"]
        made = subprocess.run(
            ["git", "commit-tree", tree.decode().strip(), *words],
            cwd=place,
            env={**os.environ, **who},
            capture_output=True,
            check=True,
        )
        name = f"refs/hitl/open/{number}"
        subprocess.run(["git", "update-ref", name, made.stdout.decode().strip()], cwd=place, check=True)


ANSWERED, CLOSED = "Hitl-State: answered", "Hitl-State: answered\nHitl-Type: text\nHitl-Closed: yes"
AWAITING, RESUMING = "Hitl-State: awaiting", "Hitl-State: resuming\nHitl-Type: text"


@pytest.mark.parametrize(
    ("states", "lines", "starts"),
    [
        ((AWAITING, RESUMING), BRANCH, True),
        ((ANSWERED,), BRANCH, True),
        ((CLOSED, "Hitl-State: expired", AWAITING), BRANCH + LEASE.replace(b"leases", b"work"), True),
        ((AWAITING, CLOSED, "Hitl-Title: Hitl-State: answered", "Hitl-State: failed"), BRANCH, False),
        pytest.param((), BRANCH, False, marks=pytest.mark.slow),
        pytest.param((RESUMING,), LEASE, False, marks=pytest.mark.slow),
        pytest.param((RESUMING,), b"", False, marks=pytest.mark.slow),
    ],
)
def test_another_push_starts_a_runner_where_one_is_missing(
    install: Install, states: tuple[str, ...], lines: bytes, starts: bool
) -> None:
    """Something is answered, or was begun: its runner may have been killed. A lease that is renewed shows one that was not."""
    hook = install("post-receive")
    tip_with(hook.parent, *states)
    env = {"GIT_DIR": ".", "PATH": os.environ["PATH"]}
    subprocess.run([hook], cwd=hook.parent, input=lines, env=env, check=True, timeout=PATIENCE)
    if starts:
        until(lambda: told(hook) is not None)
        assert told(hook) == b""
    else:
        time.sleep(0.5)
        assert told(hook) is None
        assert not (hook.parent / "gitgate").exists()


def test_no_gate_is_taken_without_a_program_to_judge_it(install: Install) -> None:
    """A server from which git-gate was removed refuses gates, and nothing else."""
    hook = install("pre-receive")
    (hook.parent / "command").unlink()
    assert push(hook, BRANCH) == 0
    assert push(hook, GATE) == 1
    assert push(hook, BRANCH + GATE) == 1


def test_what_the_runner_leaves_is_for_its_owner_alone(install: Install) -> None:
    """The log may quote what somebody asked: nobody else gets into the folder."""
    hook = install("post-receive")
    push(hook, GATE)
    for place in ("gitgate", "gitgate/logs", "gitgate/logs/runner.log"):
        assert (hook.parent / place).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("mask", ["022", "002", "027"])
def test_what_the_runner_has_git_write_is_as_the_account_wants_it(install: Install, mask: str) -> None:
    """Refs and objects of a runner are for whoever may fetch: the hook leaves the umask as it is."""
    hook = install("post-receive")
    (hook.parent / "command").write_text("#!/bin/sh\numask >told.new\nmv told.new told\n")
    again = ["sh", "-c", f"umask {mask}; exec ./post-receive"]
    for _ in range(2):  # with the folder still to be made, and with one that is there
        subprocess.run(again, cwd=hook.parent, input=GATE, env={"GIT_DIR": "."}, check=True, timeout=PATIENCE)
        until(lambda: told(hook) is not None)
        assert told(hook) == f"0{mask}\n".encode()
        (hook.parent / "told").unlink()
