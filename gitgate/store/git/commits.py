"""Store: the commits that a resumed agent made: found, tied to the decision behind them, and told apart from others'."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...document import NamedTuple
from ...errors import GitFailed, LostRace
from ...model import with_trailers
from ..work.restore import as_environment, plain_drivers
from . import Git, Repository


def known_tips(repo: Repository) -> list[str]:
    """Where every branch and tag is now: what an agent makes from here on is not below any of them."""
    listed = repo.git.text(
        "for-each-ref", "--format=%(objectname)", "refs/heads", "refs/remotes", "refs/tags"
    )
    return sorted(set(listed.split()))


def made_since(there: Git, known: Sequence[str]) -> list[str]:
    """The commits of this working tree that nobody had when the agent began, oldest first; published ones left out, and those
    of a branch that is checked out elsewhere: whoever works there made them.
    """
    if not there.ok("rev-parse", "--verify", "-q", "HEAD^{commit}"):
        return []
    others = [branch.tip for branch in local_branches(there) if branch.taken and not branch.ours]
    fed = "".join(f"^{tip}\n" for tip in (*known, *others)).encode()
    how = ("--topo-order", "--reverse", "--ignore-missing", "--stdin")
    listed = there.text("rev-list", *how, "HEAD", "--not", "--remotes", input=fed)
    return listed.split()


def new_commits(git: Git, tips: Sequence[str], known: Sequence[str]) -> list[str]:
    """The commits of these tips, oldest first, that are not below a known one; a tip that is not here has none."""
    fed = "".join([*(f"{tip}\n" for tip in tips), *(f"^{tip}\n" for tip in known)]).encode()
    return git.text("rev-list", "--topo-order", "--reverse", "--ignore-missing", "--stdin", input=fed).split()


class Raw(NamedTuple):
    """A commit as git stores it: its header lines and its message."""

    headers: list[bytes]
    message: bytes

    @property
    def signed(self) -> bool:
        return any(line.startswith(b"gpgsig") for line in self.headers)


def load_raw(git: Git, commits: Sequence[str]) -> list[Raw]:
    out = git.out("cat-file", "--batch", input="".join(f"{oid}\n" for oid in commits).encode())
    found = []
    for oid in commits:
        head, _, out = out.partition(b"\n")
        size = head.split(b" ")
        if len(size) != 3 or size[1] != b"commit":
            raise GitFailed(f"git cat-file: {oid} is no commit")
        raw, out = out[: int(size[2])], out[int(size[2]) + 1 :]
        headers, _, message = raw.partition(b"\n\n")
        found.append(Raw(headers.split(b"\n"), message))
    return found


def add_trailers(
    there: Git, commits: Sequence[str], trailers: Sequence[tuple[str, str]], keep: Collection[str] = ()
) -> list[str]:
    """The same commits, each ending with the trailers; HEAD is moved to the last, and each branch that ends at one with it.

    Only what an agent just made and nobody else has is ever rewritten, and nothing that carries a signature: then all
    of them stay as they are. So do those of `keep`, which holds the ancestors of each, too.
    """
    raws = load_raw(there, commits)
    wanted = [
        oid not in keep and raw.message != amended(raw, trailers)
        for oid, raw in zip(commits, raws, strict=True)
    ]
    if not any(wanted):
        return list(commits)
    first = wanted.index(True)
    if any(raw.signed for raw in raws[first:]):
        return list(commits)
    new: dict[str, str] = {}
    for oid, raw in zip(commits, raws, strict=True):
        headers = [with_parent(line, new) for line in raw.headers]
        message = raw.message if oid in keep else amended(raw, trailers)
        if headers != raw.headers or message != raw.message:
            payload = b"\n".join(headers) + b"\n\n" + message
            new[oid] = there.text("hash-object", "-t", "commit", "-w", "--stdin", input=payload)
    last = there.text("rev-parse", "HEAD")
    if last in new:
        move_head(there, new[last], last)
    move_branches(there, new)
    return [new.get(oid, oid) for oid in commits]


def amended(raw: Raw, trailers: Sequence[tuple[str, str]]) -> bytes:
    """Its message with the trailers. In another encoding than ours it stays as it is: we could only break it."""
    if any(line.startswith(b"encoding ") for line in raw.headers):
        return raw.message
    return with_trailers(raw.message.decode("utf-8", "surrogateescape"), trailers).encode(
        "utf-8", "surrogateescape"
    )


def with_parent(line: bytes, new: dict[str, str]) -> bytes:
    kind, _, oid = line.partition(b" ")
    return b"parent " + new[oid.decode()].encode() if kind == b"parent" and oid.decode() in new else line


def move_head(there: Git, new: str, old: str) -> None:
    """The tree is the same, so that index and files need not be touched."""
    try:
        there.run("update-ref", "-m", "gitgate: trailers", "HEAD", new, old)
    except GitFailed as failed:
        raise LostRace("HEAD was moved while the agent's commits were read", hint="git log") from failed


def move_branches(there: Git, new: dict[str, str]) -> None:
    """The other branches that end there, such as the one that an agent left for none: else they keep a copy that none goes on
    from. One that is checked out is its working tree's.
    """
    for branch in local_branches(there):
        if branch.tip in new and not branch.taken:
            there.run(
                "update-ref", "-m", "gitgate: trailers", branch.ref, new[branch.tip], branch.tip, check=False
            )


class LocalBranch(NamedTuple):
    """`taken`: checked out in some working tree; `ours`: in this one."""

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
    said = there.run("symbolic-ref", "-q", "--short", "HEAD", check=False)
    return said.out.decode("utf-8", "surrogateescape").strip() or None


def is_ancestor(git: Git, older: str, newer: str) -> bool:
    return git.ok("merge-base", "--is-ancestor", older, newer)


def conflicts(git: Git, ours: str, theirs: str) -> list[str]:
    """The paths that would conflict if these two were merged; nothing is written but objects, and no driver is run."""
    how = ("--write-tree", "--name-only", "--no-messages", "-z")
    plain = as_environment(plain_drivers(git), git.env)
    said = git.run("merge-tree", *how, ours, theirs, check=False, env=plain)
    if said.code not in (0, 1):
        return []
    paths = [part for part in said.out.split(b"\0")[1:] if part]
    return [path.decode("utf-8", "replace") for path in paths] if said.code == 1 else []


def write_merge(git: Git, ours: str, theirs: str, message: str, who: str, at: int) -> str | None:
    """Both as one commit, which no ref names yet; None where they conflict."""
    tree = merged_tree(git, ours, theirs)
    if tree is None:
        return None
    by = f"{who} {at} +0000"
    head = f"tree {tree}\nparent {ours}\nparent {theirs}\nauthor {by}\ncommitter {by}"
    payload = f"{head}\n\n{message}\n".encode("utf-8", "surrogateescape")
    return git.text("hash-object", "-t", "commit", "-w", "--stdin", input=payload)


def merged_tree(git: Git, ours: str, theirs: str) -> str | None:
    """What merging gives, where it gives something without a conflict. No driver is run."""
    plain = as_environment(plain_drivers(git), git.env)
    said = git.run("merge-tree", "--write-tree", "--no-messages", ours, theirs, check=False, env=plain)
    return said.out.decode().strip() if said.code == 0 else None


def replay(git: Git, commits: Sequence[str], onto: str) -> list[str] | None:
    """The commits on top of `onto`, oldest first, as a rebase would have them; what is there already is left out.

    None where one conflicts, is a merge, or is signed: a signature is for the commit as it was.
    """
    done: list[str] = []
    tip = onto
    for oid, raw in zip(commits, load_raw(git, commits), strict=True):
        parents = [line.partition(b" ")[2].decode() for line in raw.headers if line.startswith(b"parent ")]
        if raw.signed or len(parents) != 1:
            return None
        # The tip's files, as if they had been made on the commit's own parent: then that is what both have in common.
        beside = git.text("commit-tree", f"{tip}^{{tree}}", "-p", parents[0], "-m", "x")
        tree = merged_tree(git, beside, oid)
        if tree is None:
            return None
        if tree == git.text("rev-parse", f"{tip}^{{tree}}"):
            continue
        rest = [line for line in raw.headers if not line.startswith((b"tree ", b"parent "))]
        headers = [f"tree {tree}".encode(), f"parent {tip}".encode(), *rest]
        payload = b"\n".join(headers) + b"\n\n" + raw.message
        tip = git.text("hash-object", "-t", "commit", "-w", "--stdin", input=payload)
        done.append(tip)
    return done


def only_replayed(git: Git, old: str, new: str) -> bool:
    """Whether a branch that was rewritten has all that it had, each change in a commit of its own, as after a rebase."""
    return not git.text("rev-list", "--max-count=1", "--cherry-pick", "--right-only", f"{new}...{old}")
