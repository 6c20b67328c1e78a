"""Test bed: what is typed, and the kinds of places where it is typed, with the exit code that each cell has to have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from support.testbed.command import Command
from support.testbed.repositories import Clone, run_git

NONE = "7k2fw9c3ab"
"""An id that no gate has."""

# What is typed, with `{new}` for a gate of its own and `{old}` for one that is only looked at, and the exit code that it
# has in a repository.
CELLS: Mapping[str, int] = {
    "": 0,
    "-h": 0,
    "--version": 0,
    "nonsense": 2,
    "ask": 2,
    "ask What?": 0,
    "ask What? --no-work --no-push": 0,
    "ask What? --wait-for 0s": 8,
    "ask What? --type nope": 2,
    "ask two words": 2,
    "ask What? --timeout banana": 2,
    "ask What? --attach nope": 2,
    "wait": 2,
    "wait {old} --for 0s": 8,
    "wait {none} --for 0s": 1,
    "check {old}": 8,
    "check {none}": 1,
    "check ab": 1,
    "withdraw {old}": 2,
    "withdraw {new} --reason r": 0,
    "wrap": 2,
    "wrap -- true": 0,
    "wrap -- nothing-of-that-name": 1,
    "list": 0,
    "list -v": 0,
    "list --all": 0,
    "list --state nope": 2,
    "list --pr 3": 0,
    "list --everywhere": 0,
    "show {old}": 0,
    "show {none}": 1,
    "diff {old}": 0,
    "diff {none}": 1,
    "worktree": 2,
    "worktree {new} {place}": 0,
    "respond {new} Yes": 0,
    "respond {new} --reject --note why": 0,
    "respond {old} perhaps": 2,
    "respond {old}": 2,
    "respond {old} a b c": 2,
    "respond {none} Yes": 1,
    "respond --each": 2,
    "join {old}": 2,
    "continue {old}": 2,
    "comment {old} hello": 0,
    "comment {old}": 2,
    "edit {old} --priority high": 0,
    "edit {old}": 2,
    "edit {none} --priority low": 1,
    "stop {new} --reason r": 0,
    "stop {old}": 2,
    "signal {new} --status STOP": 0,
    "signal {old}": 2,
    "status": 0,
    "status {old}": 0,
    "status {none}": 1,
    "tree": 0,
    "stats": 0,
    "stats --by nope": 2,
    "search": 2,
    "search Go": 0,
    "search ..": 2,
    "search Go --type nope": 2,
    "fork {none}": 1,
    "fork {old} perhaps": 2,
    "fork {new} --no-push": 0,
    "compare {old} {old}": 2,
    "compare {old} {none}": 1,
    "compare {old} {new}": 0,
    "export -o {place}": 0,
    "export {none}": 1,
    "export {old} --since 1d": 2,
    "why": 2,
    "why nothing-of-that-name": 1,
    "notify": 0,
    "run": 2,
    "log": 0,
    "log {old}": 0,
    "log -n 0": 2,
    "watch --for 0s": 0,
    "watch --for banana": 2,
    "init --dry-run": 0,
    "init --remove --dry-run": 0,
    "sync": 0,
    "sync nope": 1,
    "resume": 2,
    "resume {old}": 8,
    "resume --all": 0,
    "worker --once": 0,
    "archive": 0,
    "archive --older-than banana": 2,
    "session": 0,
    "session drop {old}": 1,
    "verify": 0,
    "verify {none}": 1,
    "policy": 0,
    "policy check": 0,
    "policy check {old}": 0,
    "doctor": 0,
    "github show {old}": 0,
    "github status 1": 1,
    "serve": 2,
    "outcome approve": 4,
    "hook nope": 2,
    "demo --nope": 2,
    "listen --dialog nope": 2,
    "desk --nope": 2,
    "mcp --nope": 2,
    "help ask": 0,
    "help nope": 2,
    "completion bash": 0,
}
# These need no repository, or say what is wrong with the words before they look for one.
ANYWHERE = (
    "-h,--version,list --everywhere,session,policy,help ask,completion bash,"
    "outcome approve,github status 1".split(",")
)
NO_REMOTE = {"sync": 1}
NOBODY = dict.fromkeys(
    (
        "respond {new} Yes",
        "respond {new} --reject --note why",
        "stop {new} --reason r",
        "signal {new} --status STOP",
    ),
    1,
) | {"respond {old} perhaps": 1, "respond {old}": 1, "policy check {old}": 1}


@dataclass(frozen=True)
class Place:
    """Where the command is used, and what is different there."""

    directory: Path
    env: Mapping[str, str] = field(default_factory=dict)
    other: Mapping[str, int] = field(default_factory=dict)


Make = Callable[[Path, Clone], Place]


def cloned(tmp_path: Path, bare: Clone, name: str = "clone", *how: str) -> Clone:
    run_git("clone", "-q", *how, "--", bare.path.as_uri(), str(tmp_path / name), cwd=tmp_path)
    return Clone(tmp_path / name)


def fresh(tmp_path: Path, bare: Clone) -> Place:
    return Place(cloned(tmp_path, bare).path)


def set_up(tmp_path: Path, bare: Clone) -> Place:
    clone = cloned(tmp_path, bare)
    Command().quick("init", cwd=clone.path, code=0)
    return Place(clone.path)


def linked(tmp_path: Path, bare: Clone) -> Place:
    cloned(tmp_path, bare).git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    return Place(tmp_path / "linked")


def server(tmp_path: Path, bare: Clone) -> Place:
    Command().quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    return Place(bare.path, other={**NO_REMOTE, "init --dry-run": 2, "why nothing-of-that-name": 2})


def own_folder(tmp_path: Path, bare: Clone) -> Place:
    return Place(
        cloned(tmp_path, bare).path / ".git", other={"init --dry-run": 2, "why nothing-of-that-name": 2}
    )


def outside(tmp_path: Path, bare: Clone) -> Place:
    del bare
    (tmp_path / "outside").mkdir()
    other = {words: 1 for words, code in CELLS.items() if code != 2 and words not in ANYWHERE}
    early = (
        "join",
        "continue",
        "serve",
        "respond {old}",
        "respond --each",
        "ask What? --attach",
        "edit {old}",
        "compare {old} {old}",
        "fork {old}",
        "watch --for b",
    )
    late = {
        words: 1
        for words in CELLS
        if words.startswith(early) and CELLS[words] == 2 and words != "respond {old} a b c"
    }
    return Place(tmp_path / "outside", other={**other, **late, "archive --older-than banana": 1})


def no_remote(tmp_path: Path, bare: Clone) -> Place:
    clone = cloned(tmp_path, bare)
    clone.git("remote", "remove", "origin")
    return Place(clone.path, other=NO_REMOTE)


def unreachable(tmp_path: Path, bare: Clone) -> Place:
    clone = cloned(tmp_path, bare)
    clone.git("remote", "set-url", "origin", f"file://{tmp_path}/gone.git")
    return Place(clone.path, other={"sync": 1, "archive": 1, "doctor": 1})


def odd_path(tmp_path: Path, bare: Clone) -> Place:
    return Place(cloned(tmp_path, bare, "naïve 'wo bist dü' \u2028 日本 $HOME;x").path)


def shallow(tmp_path: Path, bare: Clone) -> Place:
    return Place(cloned(tmp_path, bare, "shallow", "--depth", "1").path)


def empty(tmp_path: Path, bare: Clone) -> Place:
    del bare
    run_git("init", "-q", "-b", "main", "empty", cwd=tmp_path)
    return Place(tmp_path / "empty", other=NO_REMOTE)


def detached(tmp_path: Path, bare: Clone) -> Place:
    clone = cloned(tmp_path, bare)
    clone.git("checkout", "-q", "--detach")
    return Place(clone.path)


def git_dir(tmp_path: Path, bare: Clone) -> Place:
    clone = cloned(tmp_path, bare)
    (tmp_path / "outside").mkdir()
    return Place(tmp_path / "outside", {"GIT_DIR": str(clone.path / ".git")})


def git_work_tree(tmp_path: Path, bare: Clone) -> Place:
    place = git_dir(tmp_path, bare)
    return Place(place.directory, {**place.env, "GIT_WORK_TREE": str(tmp_path / "clone")})


def homeless(tmp_path: Path, bare: Clone) -> Place:
    return Place(cloned(tmp_path, bare).path, other=NOBODY)


PLACES: tuple[Make, ...] = (
    *(fresh, set_up, linked, server, own_folder, outside, no_remote, unreachable, odd_path, shallow, empty),
    *(detached, git_dir, git_work_tree, homeless),
)
