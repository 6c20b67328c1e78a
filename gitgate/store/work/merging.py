"""Store: work of several working trees becomes one: merged as objects, and brought into a tree file by file.

Nothing here needs a working tree but `bring_in`. That may be killed at any moment and done again: each file is what it was
or what it is to be, and whoever changed one meanwhile is not overwritten.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ...document import dataclass
from ...errors import GitFailed, WorkFailed
from ..git import Git, Repository
from . import printable
from .restore import as_environment, plain_drivers
from .snapshot import scratch_index

GITLINK = "160000"
NOBODY = {
    **{f"GIT_{role}_NAME": "gitgate" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "gitgate@localhost" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_DATE": "@0 +0000" for role in ("AUTHOR", "COMMITTER")},
}
Entry = tuple[str, str]


@dataclass(frozen=True)
class MergedWork:
    """What merging gives. Where it is in conflict, the tree has git's marks in those files."""

    tree: str
    conflicting: tuple[bytes, ...] = ()


def merge_trees(git: Git, base: str, ours: str, theirs: str) -> MergedWork:
    """Three trees, or commits for theirs, merged. No driver of the machine's is run."""
    below = commit_of(git, base)
    sides = (commit_of(git, side, below) for side in (ours, theirs))
    plain = as_environment(plain_drivers(git), git.env)
    how = ("--write-tree", "--name-only", "--no-messages", "-z")
    said = git.run("merge-tree", *how, *sides, check=False, env=plain)
    if said.code not in (0, 1):
        raise GitFailed(f"git merge-tree failed: {said.err}", status=said.code, stderr=said.err)
    tree, *paths = said.out.split(b"\0")
    return MergedWork(tree.decode().strip(), tuple(dict.fromkeys(path for path in paths if path)))


def commit_of(git: Git, tree: str, *parents: str) -> str:
    """A commit that only stands for a tree, the same one each time."""
    above = (part for parent in parents for part in ("-p", parent))
    return git.text("commit-tree", f"{tree}^{{tree}}", *above, "-m", "work", env=NOBODY)


def with_paths_of(repo: Repository, tree: str, side: str, paths: Sequence[bytes]) -> str:
    """The tree with these paths as that side has them."""
    zero = repo.zero.encode()
    with scratch_index(repo, copied=False) as scratch:
        scratch.run("read-tree", tree)
        scratch.index_info([b"0 " + zero + b"\t" + path for path in paths])
        scratch.index_info([line(path, entry) for path, entry in entries(repo.git, side, paths).items()])
        return scratch.write_tree()


def line(path: bytes, entry: Entry) -> bytes:
    return f"{entry[0]} {entry[1]}\t".encode() + path


def entries(git: Git, tree: str, paths: Sequence[bytes]) -> dict[bytes, Entry]:
    """Mode and object of each of these paths that the tree has."""
    if not paths:
        return {}
    found: dict[bytes, Entry] = {}
    out = git.out("ls-tree", "-r", "-z", "--full-tree", f"{tree}^{{tree}}")
    wanted = set(paths)
    folders = tuple(path + b"/" for path in paths)
    for item in out.split(b"\0"):
        head, _, path = item.partition(b"\t")
        if path and (path in wanted or path.startswith(folders)):
            mode, _, oid = head.decode().split(" ")
            found[path] = mode, oid
    return found


def merge_commits(git: Git, ours: str, theirs: str, tree: str, message: str, env: Mapping[str, str]) -> str:
    """Both lines of commits as one: the later where one stands on the other. `tree` is taken where they conflict."""
    if git.ok("merge-base", "--is-ancestor", theirs, ours):
        return ours
    if git.ok("merge-base", "--is-ancestor", ours, theirs):
        return theirs
    plain = as_environment(plain_drivers(git), git.env)
    said = git.run("merge-tree", "--write-tree", "--no-messages", ours, theirs, check=False, env=plain)
    merged = said.out.decode().strip() if said.code == 0 else f"{tree}^{{tree}}"
    return git.text("commit-tree", merged, "-p", ours, "-p", theirs, "-m", message, env=env)


# into a working tree


def changed_between(git: Git, before: str, after: str) -> dict[bytes, tuple[Entry | None, Entry | None]]:
    """Each path that differs, as it was and as it is to be; None where it is not there."""
    out = git.out("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", before, after)
    found: dict[bytes, tuple[Entry | None, Entry | None]] = {}
    parts = iter(out.split(b"\0"))
    for head in parts:
        if not head.startswith(b":"):
            continue
        path = next(parts)
        modes = head[1:].decode().split(" ")
        old, new, was, now = modes[:4]
        found[path] = (None if set(old) == {"0"} else (old, was), None if set(new) == {"0"} else (new, now))
    return found


def bring_in(repo: Repository, *, before: str, after: str, head: str, new_head: str) -> list[str]:
    """Make the working tree, which has `before` and stands on `head`, have `after` and stand on `new_head`.

    What was brought in before is left as it is. The paths that somebody changed meanwhile: then nothing is touched.
    """
    if repo.top is None:
        raise WorkFailed("there is no working tree to bring the work into", hint="git worktree add DIR")
    moved = changed_between(repo.git, f"{before}^{{tree}}", f"{after}^{{tree}}")
    moved = {path: both for path, both in moved.items() if GITLINK not in (m[0] for m in both if m)}
    now = files_now(repo, repo.top, list(moved))
    held = repo.git.text("rev-parse", "HEAD")
    theirs = [path for path, both in moved.items() if now.get(path) not in both]
    if theirs or held not in (head, new_head):
        return [printable(path) for path in theirs] or ["HEAD"]
    place_files(
        repo, repo.top, after, {path: new for path, (_, new) in moved.items() if now.get(path) != new}
    )
    if held != new_head:
        repo.git.run("update-ref", "-m", "gitgate: branches joined", "HEAD", new_head, head)
    follow_index(repo, head, new_head)
    return []


def files_now(repo: Repository, top: Path, paths: Sequence[bytes]) -> dict[bytes, Entry]:
    """These paths as they are in the working tree now."""
    with scratch_index(repo) as scratch:
        scratch.index_info([b"0 " + repo.zero.encode() + b"\t" + path for path in paths])
        there = [path for path in paths if os.path.lexists(top / os.fsdecode(path))]
        scratch.add(there)
        return entries(repo.git, scratch.write_tree(), paths)


def place_files(repo: Repository, top: Path, after: str, wanted: Mapping[bytes, Entry | None]) -> None:
    """Each file at once: it is written beside, and then takes its place."""
    for path in [path for path, entry in wanted.items() if entry is None]:
        remove_file(top, Path(os.fsdecode(path)))
    new = [path for path, entry in wanted.items() if entry is not None]
    if not new:
        return
    with (
        scratch_index(repo, copied=False) as scratch,
        tempfile.TemporaryDirectory(prefix=".joined-", dir=repo.git_dir) as room,
    ):
        scratch.run("read-tree", f"{after}^{{tree}}")
        scratch.run(
            "checkout-index",
            "-f",
            "-z",
            f"--prefix={room}/",
            "--stdin",
            input=b"".join(p + b"\0" for p in new),
        )
        for path in new:
            relative = Path(os.fsdecode(path))
            (top / relative).parent.mkdir(parents=True, exist_ok=True)
            put(Path(room) / relative, top / relative)


def put(source: Path, target: Path) -> None:
    try:
        source.replace(target)
    except OSError:  # another file system
        beside = target.with_name(f".{target.name}.joined")
        with suppress(FileNotFoundError):
            beside.unlink()
        shutil.copy2(source, beside, follow_symlinks=False)
        beside.replace(target)


def remove_file(top: Path, path: Path) -> None:
    with suppress(FileNotFoundError):
        (top / path).unlink()
    for folder in path.parents[:-1]:
        try:
            (top / folder).rmdir()
        except OSError:
            return


def follow_index(repo: Repository, head: str, new_head: str) -> None:
    """What was not staged otherwise is in the index as the new commit has it."""
    moved = changed_between(repo.git, f"{head}^{{tree}}", f"{new_head}^{{tree}}")
    if not moved:
        return
    staged: dict[bytes, Entry] = {}
    for item in repo.git.out("ls-files", "-s", "-z").split(b"\0"):
        about, _, path = item.partition(b"\t")
        if path in moved:
            mode, oid, _ = about.decode().split(" ")
            staged[path] = mode, oid
    zero = repo.zero.encode()
    gone = [
        b"0 " + zero + b"\t" + path
        for path, (old, new) in moved.items()
        if new is None and staged.get(path) == old
    ]
    come = [
        line(path, new) for path, (old, new) in moved.items() if new is not None and staged.get(path) == old
    ]
    fed = b"".join(item + b"\0" for item in [*gone, *come])
    repo.git.run("update-index", "-z", "--replace", "--index-info", input=fed)
    repo.git.run("update-index", "-q", "--refresh", check=False)
