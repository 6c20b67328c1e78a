"""Fuzz: which inputs are worth keeping: small ones that reach what no other in the corpus does."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from .watch import watched

KEPT_MOST = 2_000
HOME = str(Path(__file__).parents[2] / "gitgate")
Arc = tuple[str, int, int]


def arcs(check: Callable[[bytes], object], data: bytes) -> set[Arc]:
    """The steps from line to line that the product takes with one input."""
    found: set[Arc] = set()

    def follow(frame: FrameType, _event: str, _arg: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(HOME):
            return None
        last = 0

        def step(inner: FrameType, event: str, _given: Any) -> Any:
            nonlocal last
            if event == "line":
                found.add((name, last, inner.f_lineno))
                last = inner.f_lineno
            return step

        return step

    before = sys.gettrace()
    sys.settrace(follow)
    try:
        watched(check, data)
    except Exception:  # noqa: BLE001 - what is found is the fuzzer's to tell
        return set()
    finally:
        sys.settrace(before)
    return found


def keep(check: Callable[[bytes], object], fresh: Iterable[bytes], corpus: Path) -> int:
    """Add what takes new steps, the smallest first; how many."""
    kept = [place.read_bytes() for place in sorted(corpus.iterdir())]
    for data in kept:
        arcs(check, data)  # the first time modules are loaded, and patterns compiled
    known = {arc for data in kept for arc in arcs(check, data)}
    added = 0
    for data in sorted(
        {data for data in fresh if len(data) <= KEPT_MOST}, key=lambda data: (len(data), data)
    ):
        new = arcs(check, data) - known
        if new:
            known |= new
            added += 1
            (corpus / hashlib.sha256(data).hexdigest()[:12]).write_bytes(data)
    return added
