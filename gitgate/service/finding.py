"""Service: what a look at this clone found, in the one form that all who look share."""

from __future__ import annotations

from dataclasses import dataclass

GOOD, MISSING, WRONG = "good", "missing", "wrong"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `missing` is a choice that was not made; `wrong` has to be mended."""

    name: str
    state: str
    words: str
    mend: str = ""
