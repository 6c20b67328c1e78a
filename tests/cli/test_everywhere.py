"""Every verb, used rightly and wrongly, in every kind of place where people have repositories.

What each cell has to keep: an exit code of the contract, no traceback, nothing on standard output beside the result, one
object under `--json` whatever happens, and an error that says what to do next.
"""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import subprocess
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from gitgate.audit import Verified
from gitgate.audit.auditing import check_orphans
from gitgate.cli import CONFLICT, FAILURE, NOT_ALLOWED, STALE, USAGE
from gitgate.context import open_desk
from support.everywhere import CELLS, NONE, PLACES, Place, homeless
from support.testbed.command import COMMAND, Command, Outcome
from support.testbed.repositories import Clone

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.timeout(300)]


@dataclass
class Used:
    """The command in a place, with gates to use it on."""

    cli: Command
    place: Place
    folder: Path
    old: str = NONE
    made: int = 0

    def __call__(self, typed: str, *more: str) -> Outcome:
        new = self.ask() if "{new}" in typed else NONE
        values = {
            "{new}": new,
            "{old}": self.old,
            "{none}": NONE,
            "{place}": f"{self.folder}/looked-at-{self.made}",
        }
        words = [values.get(word, word) for word in shlex.split(typed)]
        at = words.index("--") if "--" in words else len(words)
        return self.run(*words[:at], *more, *words[at:])

    def run(self, *words: str) -> Outcome:
        return self.cli.quick(*words, cwd=self.place.directory, env=self.place.env)

    def ask(self) -> str:
        self.made += 1
        return self.run("ask", "Go?", "--type", "approval", "--no-push", "-q").out.strip() or NONE

    def expected(self, typed: str) -> int:
        return self.place.other.get(typed, CELLS[typed])


@pytest.fixture(params=PLACES, ids=lambda make: make.__name__)
def used(request: pytest.FixtureRequest, cli: Command, bare: Clone, tmp_path: Path) -> Used:
    used = Used(cli, request.param(tmp_path, bare), tmp_path)
    if request.param is homeless:
        for name in ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"):
            request.getfixturevalue("monkeypatch").delenv(name)
    used.old = used.ask()
    return used


def flaws(typed: str, said: Outcome, expected: int) -> list[str]:
    """What is wrong with a cell of text."""
    found = []
    if said.code != expected:
        found.append(f"exit {said.code}, expected {expected}")
    if "Traceback" in said.err + said.out:
        found.append("a traceback")
    if typed == "doctor" and said.code == FAILURE and said.out:
        # What it found is what was asked for, and each thing that is wrong has its command.
        if "\n      git " not in said.out:
            found.append("nothing that mends it")
    elif said.code in (FAILURE, USAGE, NOT_ALLOWED, CONFLICT, STALE):
        if said.out:
            found.append("standard output beside an error")
        lines = said.err.splitlines()
        # What a program that was run says of itself is its own; ours has a way on below it.
        if not any(line.startswith("git gate: ") for line in lines) or not lines[-1].startswith("  "):
            found.append("an error that does not say what to do next")
    return [f"{typed!r}: {flaw}\n{said.err}" for flaw in found]


def test_in_words(used: Used) -> None:
    """Its exit code, and an error that helps."""
    assert not [flaw for typed in CELLS for flaw in flaws(typed, used(typed), used.expected(typed))]


def test_as_json(used: Used) -> None:
    """One object of a known schema, or one a line where there is no end, with the same exit code."""
    wrong = []
    for typed in CELLS:
        said = used(typed, "--json")
        if typed in ("-h", "completion bash"):
            continue
        try:
            shapes = [json.loads(line) for line in said.out.splitlines()]
        except ValueError:
            shapes = []
        if len(shapes) != 1 and not typed.startswith("watch"):
            wrong.append(f"{typed!r}: {said.out[:200]!r} {said.err[:200]!r}")
        if any(not shape["schema"].startswith("gitgate.") for shape in shapes):
            wrong.append(f"{typed!r}: {shapes[0]['schema']}")
        if said.code != used.expected(typed):
            wrong.append(
                f"{typed!r}: exit {said.code}, expected {used.expected(typed)}\n{said.out}{said.err}"
            )
    assert not wrong


# where only a process of its own shows it


def without_rights() -> None:
    """Root may write anywhere; without this right of root's only where it is allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    for right in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        libc.prctl(24, right, 0, 0, 0)  # PR_CAPBSET_DROP; without leave to do so there is nothing to drop


READS = (
    "",
    "list",
    "list --json",
    "show {old}",
    "check {old}",
    "status",
    "tree",
    "log",
    "verify",
    "doctor",
    "resume --all",
)
WRITES = (
    "ask What?",
    "respond {old} yes",
    "comment {old} hi",
    "stop {old} --reason r",
    "init",
    "worktree {old} {place}",
)


def started(typed: str, gate: str, clone: Clone, **env: str) -> subprocess.CompletedProcess[str]:
    words = [
        {"{old}": gate, "{place}": f"{clone.path}-looked-at"}.get(word, word) for word in shlex.split(typed)
    ]
    return subprocess.run(
        [str(COMMAND), *words],
        cwd=clone.path,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=without_rights,
    )


def test_where_nothing_may_be_written(cli: Command, repo: Clone) -> None:
    """Looking works; whatever would write says that it may not, and where, and changes nothing."""
    gate = cli.quick("ask", "Which?", "-q", code=0).line
    before = repo.refs()
    folders = [place for place in repo.path.rglob("*") if place.is_dir()] + [repo.path]
    for place in folders:
        place.chmod(0o555)
    for place in (repo.path / ".git").glob("*"):
        if place.is_file():
            place.chmod(0o444)
    try:
        read = {typed: started(typed, gate, repo) for typed in READS}
        written = {typed: started(typed, gate, repo) for typed in WRITES}
    finally:
        for place in folders:
            place.chmod(0o755)
    assert {typed: said.returncode for typed, said in read.items()} == {
        typed: {"check {old}": 8, "doctor": 1}.get(typed, 0) for typed in READS
    }
    assert "it may only be read" in read["doctor"].stdout
    for said in written.values():
        assert said.returncode == FAILURE
        assert "Permission denied" in said.stderr or "insufficient permission" in said.stderr, said.stderr
        assert "chmod u+r" not in said.stderr
        assert "Traceback" not in said.stderr
    assert repo.refs() == before


@pytest.mark.parametrize("typed", ["list", "show {old}", "log", "tree", "list --json"])
def test_in_ascii(cli: Command, repo: Clone, typed: str) -> None:
    """Where the language of the machine is C, words are shown as git shows them, and an object has JSON's own escapes."""
    gate = cli.quick("ask", "Größe – 日本?", "-q", code=0).line
    said = started(typed, gate, repo, LC_ALL="C", LANG="C", PYTHONIOENCODING="ascii")
    assert said.returncode == 0
    assert "Traceback" not in said.stderr
    assert said.stdout.isascii() if typed == "list --json" else "Größe – 日本?" in said.stdout


def test_from_a_hook(cli: Command, repo: Clone) -> None:
    """Git tells its hooks where they are, by an index of its own; the question goes to the same repository."""
    hook = repo.path / ".git/hooks/post-commit"
    hook.write_text(f"#!/bin/sh\n'{COMMAND}' ask 'From the hook?' -q\n", encoding="utf-8")
    hook.chmod(0o755)
    repo.git("worktree", "add", "-q", str(repo.path.parent / "side"))
    for place in (repo, Clone(repo.path.parent / "side")):
        place.write("new", "x")
        place.git("add", "new")
        place.git("commit", "-q", "-m", "new")
        place.git("fsck", "--strict")
    gates = cli.quick("list", "--json", code=0).json["gates"]
    assert {one["asked"]["directory"] for one in gates} == {str(repo.path), str(repo.path.parent / "side")}


def test_a_repository_that_is_named_and_none(cli: Command, repo: Clone) -> None:
    """GIT_DIR says which one is meant; where it names none, that is what is wrong."""
    del repo
    said = cli.quick("list", env={"GIT_DIR": "/nonexistent"}, code=1)
    assert "GIT_DIR is '/nonexistent'" in said.err
    assert "unset GIT_DIR" in said.err


def test_ids_that_could_be_several(cli: Command, repo: Clone) -> None:
    """Too short, unknown, or not unique: each is said, with what to type."""
    gate = cli.quick("ask", "Which?", "-q", code=0).line
    twin = gate[:4] + "".join("3" if letter != "3" else "4" for letter in gate[4:])
    repo.git("update-ref", f"refs/hitl/open/{twin}", f"refs/hitl/open/{gate}")
    for verb in ("check", "show", "diff", "status", "log", "resume"):
        said = cli.quick(verb, gate[:4], code=1)
        assert gate in said.err
        assert twin in said.err
        assert "type more" in said.err


def test_a_push_that_is_insisted_on_has_nowhere_to_go(cli: Command, repo: Clone) -> None:
    """The gate was opened, and the error names it."""
    said = cli.quick("ask", "Which?", "--push", code=1)
    (gate,) = (ref.rpartition("/")[2] for ref in repo.refs("refs/hitl/open"))
    assert f"gate {gate} is safe here, but not pushed: there is no remote" in said.err


def test_a_server_has_nothing_to_sync_with(cli: Command, bare: Clone) -> None:
    """It is told so, and not to add a remote."""
    cli.quick("init", "--server", cwd=bare.path, code=0)
    said = cli.quick("sync", cwd=bare.path, code=1)
    assert "others sync with this repository" in said.err
    assert "remote add" not in said.err


@pytest.mark.parametrize("flags", [[], ["--server"]])
def test_inside_its_own_folder(cli: Command, repo: Clone, flags: list[str]) -> None:
    """A clone's `.git` is no server."""
    said = cli.quick("init", *flags, cwd=repo.path / ".git", code=2)
    assert "cd ..; git gate init" in said.err
    assert "gitgate" not in repo.git("config", "--local", "--list")


def test_without_a_key_to_sign_with(cli: Command, repo: Clone) -> None:
    """What is missing is said, and how it is set up."""
    gate = cli.quick("ask", "Which?", "-q", code=0).line
    repo.git("config", "gpg.program", "/nonexistent")
    said = cli.quick("respond", gate, "yes", "--sign", code=1)
    assert "it cannot be signed" in said.err
    assert "user.signingKey" in said.err
    cli.quick("check", gate, code=8)


def test_a_gate_opened_while_others_are_verified(cli: Command, repo: Clone) -> None:
    """Its work belongs to a gate, though it was not among those that are checked."""
    gate = cli.quick("ask", "Which?", "-q", code=0).line
    with closing(open_desk(repo.path, os.environ)) as desk:
        found = Verified()
        check_orphans(desk, found, {}, {})
    assert gate in "".join(repo.refs("refs/hitl/work"))
    assert not found.problems
