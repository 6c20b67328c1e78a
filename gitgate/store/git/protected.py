"""Store: a file as the protected branch has it. What an agent's own branch or working tree says of it does not count.

The protected branch of a clone is the remote's default branch; of a repository without a remote, its own default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...document.values import dataclass
from ...errors import Failure
from .repository import Repository

USUAL = ("main", "master", "trunk")
MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Protected:
    """The file, and where it was read: the branch and the path, and the branch's commit."""

    data: bytes
    source: str
    commit: str | None = None


def read_protected(repo: Repository, path: str, refs: Sequence[str]) -> Protected | None:
    """The file on the first of `refs` that is there; None where that branch has no such file, or no branch is there."""
    names = [part for ref in refs for part in (f"{ref}^{{commit}}", f"{ref}:{path}")]
    out = repo.git.run("cat-file", "--batch-check", input="".join(f"{name}\n" for name in names).encode()).out
    lines = out.decode("utf-8", "replace").splitlines()
    for ref, commit, file in zip(refs, lines[::2], lines[1::2], strict=True):
        if commit.endswith(" missing"):
            continue
        said = file.split(" ")
        if len(said) != 3 or said[1] != "blob":
            return None
        if int(said[2]) > MOST_BYTES:
            raise Failure(f"{path} on {ref} is larger than {MOST_BYTES} bytes", hint="make it smaller")
        data = repo.git.out("cat-file", "blob", said[0])
        return Protected(data, f"{ref.removeprefix('refs/')}:{path}", commit.partition(" ")[0])
    return None


def protected_tip(repo: Repository, refs: Sequence[str]) -> str | None:
    """The commit that the protected branch is at; None where no branch is there."""
    names = "".join(f"{ref}^{{commit}}\n" for ref in refs)
    out = repo.git.out("cat-file", "--batch-check=%(objectname)", input=names.encode())
    lines = out.decode("utf-8", "replace").splitlines()
    return next((line for line in lines if not line.endswith(" missing")), None)


class BranchChange(NamedTuple):
    """A commit of the branch, and when it came to it by its own word: who pushes there is trusted with both."""

    commit: str
    at: int


def load_changes(repo: Repository, ref: str, paths: Sequence[str]) -> list[BranchChange]:
    """The commits that changed one of these files, oldest first; a merge counts as what it brought to the branch."""
    said = repo.git.text(
        "log", "--first-parent", "--no-show-signature", "--format=tformat:%H %ct", ref, "--", *paths
    )
    found = [line.split(" ") for line in said.split("\n") if line]
    return [BranchChange(commit, int(at)) for commit, at in reversed(found)]


def load_line(repo: Repository, ref: str) -> dict[str, int]:
    """The place of each commit on the branch's first-parent line, counted from its beginning."""
    said = repo.git.text("rev-list", "--first-parent", ref).split("\n")
    return {commit: place for place, commit in enumerate(reversed(said))}


def left_line(repo: Repository, ref: str, commit: str) -> str | None:
    """Where a commit left the branch; None where it never was on it, or is not here."""
    said = repo.git.run("merge-base", ref, commit, check=False)
    return said.out.decode().strip() or None
