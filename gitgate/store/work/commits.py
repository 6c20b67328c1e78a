"""Store: the commits that agents made: found, tied to the decision behind them, told apart from others', replayed; and the work of
several working trees, which becomes one.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ...document import NamedTuple, dataclass
from ...errors import GitFailed, LostRace, WorkFailed
from ...model import with_trailers
from ..git import Git, Repository
from ..git.canonical import Commit, NotCanonical, dump_commit, parse_history
from ..git.refs import HEAD, Refs, read_ref
from . import printable
from .restore import as_environment, plain_drivers
from .snapshot import scratch_index


def known_tips(repo: Repository) -> list[str]:
    """Return the tips of all branches and tags now: what an agent makes from here on is not below any of them."""
    listed = repo.git.text(
        "for-each-ref", "--format=%(objectname)", "refs/heads", "refs/remotes", "refs/tags"
    )
    return sorted(set(listed.split()))


def made_since(there: Git, known: Sequence[str]) -> list[str]:
    """Return the commits of this working tree that nobody had when the agent began, oldest first.

    Published ones are left out, and those of a branch that is checked out elsewhere: whoever works there made them.
    """
    head = read_ref(there, HEAD)
    if head is None:
        return []
    others = [branch.tip for branch in local_branches(there) if branch.taken and not branch.ours]
    fed = "".join(f"^{tip}\n" for tip in (*known, *others)).encode()
    how = ("--topo-order", "--reverse", "--ignore-missing", "--stdin")
    listed = there.text("rev-list", *how, head, "--not", "--remotes", input=fed)
    return listed.split()


def new_commits(git: Git, tips: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the commits of these tips, oldest first, that are not below a known one; a tip that is not here has
    none.
    """
    fed = "".join([*(f"{tip}\n" for tip in tips), *(f"^{tip}\n" for tip in known)]).encode()
    return git.text("rev-list", "--topo-order", "--reverse", "--ignore-missing", "--stdin", input=fed).split()


def load_commits(git: Git, commits: Sequence[str]) -> list[Commit]:
    out = git.out("cat-file", "--batch", input="".join(f"{oid}\n" for oid in commits).encode())
    found = []
    for oid in commits:
        head, _, out = out.partition(b"\n")
        size = head.split(b" ")
        if len(size) != 3 or size[1] != b"commit":
            raise GitFailed(f"git cat-file: {oid} is no commit")
        raw, out = out[: int(size[2])], out[int(size[2]) + 1 :]
        try:
            found.append(parse_history(raw, len(oid) // 2))
        except NotCanonical as wrong:
            raise GitFailed(f"commit {oid[:12]} {wrong.message}") from wrong
    return found


def add_trailers(
    there: Git, commits: Sequence[str], trailers: Sequence[tuple[str, str]], keep: Collection[str] = ()
) -> list[str]:
    """Add the trailers to the end of each commit's message; return the new commits.

    HEAD is moved to the last, and each branch that ends at one with it. Only what an agent just made and nobody else
    has is ever rewritten. Where one carries a signature, all of them stay as they are. So do those of `keep`, which
    holds the ancestors of each, too.
    """
    raws = load_commits(there, commits)
    wanted = [
        oid not in keep and raw.body != amended(raw, trailers) for oid, raw in zip(commits, raws, strict=True)
    ]
    if not any(wanted):
        return list(commits)
    first = wanted.index(True)
    if any(raw.signed for raw in raws[first:]):
        return list(commits)
    new: dict[str, str] = {}
    for oid, raw in zip(commits, raws, strict=True):
        rest = raw.rest if oid in keep else b"\n" + amended(raw, trailers)
        written = raw._replace(parents=tuple(new.get(above, above) for above in raw.parents), rest=rest)
        if written != raw:
            new[oid] = write_commit(there, written)
    last = read_ref(there, HEAD)
    if last is not None and last in new:
        move_head(there, new[last], last)
    move_branches(there, new)
    return [new.get(oid, oid) for oid in commits]


def write_commit(git: Git, commit: Commit) -> str:
    return git.text("hash-object", "-t", "commit", "-w", "--stdin", input=commit.dump())


def amended(raw: Commit, trailers: Sequence[tuple[str, str]]) -> bytes:
    """Return the commit's message with the trailers. In another encoding than ours it stays as it is: we could
    only break it.
    """
    if raw.encoding:
        return raw.body
    return with_trailers(raw.body.decode("utf-8", "surrogateescape"), trailers).encode(
        "utf-8", "surrogateescape"
    )


def move_head(there: Git, new: str, old: str) -> None:
    """Move HEAD to a commit with the same tree, so that index and files need not be touched."""
    try:
        there.run("update-ref", "-m", "gitgate: trailers", "HEAD", new, old)
    except GitFailed as failed:
        raise LostRace("HEAD was moved while the agent's commits were read", hint="git log") from failed


def move_branches(there: Git, new: dict[str, str]) -> None:
    """Move the other branches that end at a rewritten commit, such as the one that an agent left for none.

    Else they keep a copy that none goes on from. A branch that is checked out is its working tree's.
    """
    for branch in local_branches(there):
        if branch.tip in new and not branch.taken:
            there.run(
                "update-ref", "-m", "gitgate: trailers", branch.ref, new[branch.tip], branch.tip, check=False
            )


class LocalBranch(NamedTuple):
    """Local branch. `taken`: checked out in some working tree; `ours`: in this one."""

    ref: str
    tip: str
    taken: bool
    ours: bool


def local_branches(there: Git) -> list[LocalBranch]:
    form = "%(objectname)%(if)%(worktreepath)%(then)+%(else)-%(end)%(HEAD)%(refname)"
    # Only a newline ends a line: a branch's name may hold what Unicode calls a line separator.
    lines = filter(None, there.text("for-each-ref", f"--format={form}", "refs/heads").split("\n"))
    found = [(line, line.index("refs/heads/")) for line in lines]
    return [
        LocalBranch(line[at:], line[: at - 2], line[at - 2] == "+", line[at - 1] == "*") for line, at in found
    ]


def head_branch(there: Git) -> str | None:
    """Return the branch that is checked out; None where HEAD is on none."""
    # Not `--short`: with a tag that is called as the branch, that is another name.
    said = there.run("symbolic-ref", "-q", HEAD, check=False).out.decode("utf-8", "surrogateescape")
    return said.removesuffix("\n").removeprefix("refs/heads/") or None


def is_ancestor(git: Git, older: str, newer: str) -> bool:
    return git.ok("merge-base", "--is-ancestor", older, newer)


def conflicts(git: Git, ours: str, theirs: str) -> list[str]:
    """List the paths that would conflict if these two were merged; nothing is written but objects, and no driver
    is run.
    """
    how = ("--write-tree", "--name-only", "--no-messages", "-z")
    plain = as_environment(plain_drivers(git), git.env)
    said = git.run("merge-tree", *how, ours, theirs, check=False, env=plain)
    if said.code not in (0, 1):
        return []
    paths = [part for part in said.out.split(b"\0")[1:] if part]
    return [path.decode("utf-8", "replace") for path in paths] if said.code == 1 else []


def write_merge(git: Git, ours: str, theirs: str, message: str, who: str, at: int) -> str | None:
    """Write both as one merge commit, which no ref names yet; None where they conflict."""
    tree = merged_tree(git, ours, theirs)
    if tree is None:
        return None
    payload = dump_commit(tree, (ours, theirs), who, at, f"{message}\n")
    return git.text("hash-object", "-t", "commit", "-w", "--stdin", input=payload)


def merged_tree(git: Git, ours: str, theirs: str) -> str | None:
    """Return the tree of a merge without conflicts; None where there are any. No driver is run."""
    plain = as_environment(plain_drivers(git), git.env)
    said = git.run("merge-tree", "--write-tree", "--no-messages", ours, theirs, check=False, env=plain)
    return said.out.decode().strip() if said.code == 0 else None


def replay(git: Git, commits: Sequence[str], onto: str) -> list[str] | None:
    """Write the commits on top of `onto`, oldest first, as a rebase would have them; what is there already is left
    out.

    None where one conflicts, is a merge, or is signed: a signature is for the commit as it was.
    """
    done: list[str] = []
    tip = onto
    for oid, raw in zip(commits, load_commits(git, commits), strict=True):
        if raw.signed or len(raw.parents) != 1:
            return None
        # The tip's files, as if they had been made on the commit's own parent: then that is what both have in common.
        beside = git.text("commit-tree", f"{tip}^{{tree}}", "-p", raw.parents[0], "-m", "x")
        tree = merged_tree(git, beside, oid)
        if tree is None:
            return None
        if tree == git.text("rev-parse", f"{tip}^{{tree}}"):
            continue
        tip = write_commit(git, raw._replace(tree=tree, parents=(tip,)))
        done.append(tip)
    return done


def only_replayed(git: Git, old: str, new: str) -> bool:
    """Return whether a rewritten branch still has every change that it had, each in its own commit, as after a
    rebase.
    """
    return not git.text("rev-list", "--max-count=1", "--cherry-pick", "--right-only", f"{new}...{old}")


# Work of several working trees becomes one: merged as objects, and brought into a tree file by file.
#
# Nothing here needs a working tree but `bring_in`. That may be killed at any moment and done again: each file is what it was
# or what it is to be, and whoever changed one meanwhile is not overwritten.


GITLINK = "160000"
NOBODY = {
    **{f"GIT_{role}_NAME": "gitgate" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "gitgate@localhost" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_DATE": "@0 +0000" for role in ("AUTHOR", "COMMITTER")},
}
Entry = tuple[str, str]


@dataclass(frozen=True)
class MergedWork:
    """Result of a merge. Where it is in conflict, the tree has git's marks in those files."""

    tree: str
    conflicting: tuple[bytes, ...] = ()


def merge_trees(git: Git, base: str, ours: str, theirs: str) -> MergedWork:
    """Merge three trees, or commits for theirs. No driver of the machine's is run."""
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
    """Write a commit that only stands for a tree; it is the same one each time."""
    above = (part for parent in parents for part in ("-p", parent))
    return git.text("commit-tree", f"{tree}^{{tree}}", *above, "-m", "work", env=NOBODY)


def with_paths_of(repo: Repository, tree: str, side: str, paths: Sequence[bytes]) -> str:
    """Write the tree with these paths as that side has them."""
    zero = repo.zero.encode()
    with scratch_index(repo, copied=False) as scratch:
        scratch.run("read-tree", tree)
        scratch.index_info([b"0 " + zero + b"\t" + path for path in paths])
        scratch.index_info([line(path, entry) for path, entry in entries(repo.git, side, paths).items()])
        return scratch.write_tree()


def line(path: bytes, entry: Entry) -> bytes:
    return f"{entry[0]} {entry[1]}\t".encode() + path


def entries(git: Git, tree: str, paths: Sequence[bytes]) -> dict[bytes, Entry]:
    """Return mode and object of each of these paths that the tree has."""
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
    """Join both lines of commits: the later where one is based on the other. `tree` is taken where they conflict."""
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
    """Return each path that differs, as it was and as it is to be; None where it is not there."""
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
    """Make the working tree, which has `before` at `head`, have `after` at `new_head`.

    What was brought in before is left as it is. Return the paths that somebody changed meanwhile: then nothing is
    touched.
    """
    if repo.top is None:
        raise WorkFailed("there is no working tree to bring the work into", hint="git worktree add DIR")
    moved = changed_between(repo.git, f"{before}^{{tree}}", f"{after}^{{tree}}")
    moved = {path: both for path, both in moved.items() if GITLINK not in (m[0] for m in both if m)}
    now = files_now(repo, repo.top, list(moved))
    held = Refs(repo).get(HEAD)
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
    """Return these paths as they are in the working tree now."""
    with scratch_index(repo) as scratch:
        scratch.index_info([b"0 " + repo.zero.encode() + b"\t" + path for path in paths])
        there = [path for path in paths if os.path.lexists(top / os.fsdecode(path))]
        scratch.add(there)
        return entries(repo.git, scratch.write_tree(), paths)


def place_files(repo: Repository, top: Path, after: str, wanted: Mapping[bytes, Entry | None]) -> None:
    """Replace each file at once: it is written under another name, and then takes its place."""
    for path in [path for path, entry in wanted.items() if entry is None]:
        remove_file(top, Path(os.fsdecode(path)))
    new = [path for path, entry in wanted.items() if entry is not None]
    if not new:
        return
    import tempfile

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
        import shutil

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
    """Bring the index to the new commit, except paths that were staged otherwise."""
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
