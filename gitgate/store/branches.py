"""Store: one branch of a remote, looked at. Kept with the rest of what we remember of it, apart from the user's own refs."""

from __future__ import annotations

from ..errors import Failure, Usage
from .fetch import Ask, Listening
from .refs import Refs
from .remote import RefMove, read_remote, tracking_base, validate_move
from .repository import Repository
from .wire import converse


def branch_ref(branch: str) -> str:
    """Its ref, or Usage where the name is none."""
    ref = f"refs/heads/{branch}"
    validate_move(RefMove(ref, "0" * 40, None))
    if branch.startswith("-") or branch == "HEAD":
        raise Usage(f"not a name for a branch: {branch!r}")
    return ref


def default_branch_of(repo: Repository, remote: str, *, timeout: float = 60) -> str:
    """The remote's default branch, as it says itself; empty where it says none."""
    place = read_remote(repo, remote)
    said = converse(repo, place, (), ("ls-remote", "--symref", "--", remote, "HEAD"), timeout=timeout)
    for line in said.out if said.code == 0 else ():
        named, tab, what = line.partition("\t")
        if tab and what == "HEAD" and named.startswith("ref: refs/heads/"):
            return named.removeprefix("ref: refs/heads/")
    return ""


def fetch_branch(repo: Repository, remote: str, branch: str, *, timeout: float = 60) -> str | None:
    """Where the branch is on the remote now; None when it is not there."""
    ref = branch_ref(branch)
    into = f"{tracking_base(remote)}heads/{branch}"
    listening = Listening(repo, read_remote(repo, remote), timeout, None, None)
    try:
        listening.run(Ask([f"+{ref}:{into}"]))
    except Failure as failed:
        if "find remote ref" not in failed.message:
            raise
        return None
    return Refs(repo).under(into).get(into)
