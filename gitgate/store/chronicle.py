"""Store: how files changed on a protected branch, along its first parents: what it said when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .repository import Repository


class Change(NamedTuple):
    """A commit of the branch, and when it came to it by its own word: who pushes there is trusted with both."""

    commit: str
    at: int


def load_changes(repo: Repository, ref: str, paths: Sequence[str]) -> list[Change]:
    """The commits that changed one of these files, oldest first; a merge counts as what it brought to the branch."""
    said = repo.git.text(
        "log", "--first-parent", "--no-show-signature", "--format=tformat:%H %ct", ref, "--", *paths
    )
    found = [line.split(" ") for line in said.split("\n") if line]
    return [Change(commit, int(at)) for commit, at in reversed(found)]


def load_line(repo: Repository, ref: str) -> dict[str, int]:
    """The place of each commit on the branch's first-parent line, counted from its beginning."""
    said = repo.git.text("rev-list", "--first-parent", ref).split("\n")
    return {commit: place for place, commit in enumerate(reversed(said))}


def left_line(repo: Repository, ref: str, commit: str) -> str | None:
    """Where a commit left the branch; None where it never was on it, or is not here."""
    said = repo.git.run("merge-base", ref, commit, check=False)
    return said.out.decode().strip() or None
