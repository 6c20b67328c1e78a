"""Store: whether the signatures on commits hold, by git's own verdict, for all of them in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .git import Git

GOOD, BAD, UNKNOWN = "good", "bad", "unknown"
# Git's letters. A good signature by a key that nobody vouches for is `U`, one that cannot be checked is `E`, and where
# git has no means to check at all it says `N`, none: whoever asks here knows that there is one.
_LETTERS = {"G": GOOD, "B": BAD, "R": BAD}


class Verdict(NamedTuple):
    """What a signature is worth, and whose it is, in the words of whoever vouches for the key."""

    word: str
    signer: str = ""


def verify(git: Git, commits: Sequence[str]) -> dict[str, Verdict]:
    """By commit; each of these carries a signature. An unknown key never reads as good."""
    if not commits:
        return {}
    form = "--format=tformat:%H%x00%G?%x00%GS"
    asked = "".join(f"{oid}\n" for oid in dict.fromkeys(commits)).encode()
    said = git.text("log", "--no-walk=unsorted", "--no-show-signature", "--stdin", form, input=asked)
    found = dict.fromkeys(commits, Verdict(UNKNOWN))
    for line in said.split("\n"):
        oid, letter, signer = line.split("\0", 2)
        found[oid] = Verdict(_LETTERS.get(letter, UNKNOWN), signer if letter in "GUXY" else "")
    return found
