"""Core: what an answer's signature says of whose it is, as it is shown. Unsigned and signed by an unknown key are alike."""

from __future__ import annotations

from typing import NamedTuple

VERIFIED, UNVERIFIED, INVALID = "verified", "unverified", "invalid"


class Mark(NamedTuple):
    """`by`: whose signature it is, where that is known; `key`: its key."""

    word: str = UNVERIFIED
    by: str = ""
    key: str = ""

    @property
    def words(self) -> str:
        """For people: the word, and by whom where that is another name than the answer's."""
        return f"{self.word}, signed by {self.by}" if self.by else self.word


UNSIGNED = Mark()
