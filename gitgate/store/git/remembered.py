"""Store: tips that records were seen at: here, where others push to this repository, and at each remote. A fetch forgets what a
remote has no more, and git notes nothing of a ref that goes: without a note, nobody would miss a record that was there.

One line for each tip: when, which, and at which ref. Lines are added; once there are many, those go that later ones go on from, and
those of records that are archived.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...document import NamedTuple
from .. import locked, may_keep, private_folder, read_local, write_private
from . import Repository
from .refs import ARCHIVE, OPEN, RUNS

if TYPE_CHECKING:
    from ..records.archive import ArchivedGate

FILE = "seen-tips"
RECORDS = (OPEN, RUNS, ARCHIVE)
# Some ninety bytes a line: room for forty thousand records and their moves.
MOST = 8 << 20
LEAST = 80
_LINE = rb"(?m)^([0-9]{1,12}) ([0-9a-f]{40}|[0-9a-f]{64}) (refs/(?:gitgate|hitl)/[^ \n]+)$"


class SeenTip(NamedTuple):
    """Tip that a ref had, and when."""

    tip: str
    at: int


def seen_place(repo: Repository) -> Path:
    return repo.state_dir / FILE


def has_lines(repo: Repository, count: int) -> bool:
    """Return whether the file of noted tips is long enough for so many lines; it is not read for that."""
    try:
        return seen_place(repo).stat().st_size >= LEAST * count
    except OSError:
        return False


def remember_tips(repo: Repository, tips: Mapping[str, str]) -> None:
    """Note where these refs are now, here or at a remote. What cannot be noted stops nobody."""
    if not tips or not may_keep(repo.state_dir):
        return
    place, now = seen_place(repo), int(time.time())
    # It begins with the end of a line: what was written before may have been cut off.
    lines = "\n" + "".join(f"{now} {tip} {ref}\n" for ref, tip in tips.items())
    with suppress(OSError):
        private_folder(place.parent)
        with locked(place.with_name(f"{FILE}.lock"), wait=True):
            if not place.is_file():
                write_private(place, b"")  # also where something else is in its place
            with place.open("ab") as out:
                out.write(lines.encode())
            if place.stat().st_size > MOST:
                write_private(place, shortened(repo, read_seen_tips(repo)))


def remember_here(repo: Repository, now: Mapping[str, str]) -> None:
    """Note which of these refs of this repository are elsewhere than they were last seen."""
    before = read_seen_tips(repo)
    remember_tips(
        repo, {ref: tip for ref, tip in now.items() if ref not in before or before[ref][-1].tip != tip}
    )


def read_seen_tips(repo: Repository) -> dict[str, list[SeenTip]]:
    """Read what was noted, by ref, oldest first. What is no such line was cut off, and says nothing."""
    try:
        data = read_local(seen_place(repo))
    except OSError:
        return {}
    found: dict[str, list[SeenTip]] = {}
    for at, tip, ref in re.findall(_LINE, data):
        found.setdefault(os.fsdecode(ref), []).append(SeenTip(tip.decode(), int(at)))
    return found


def commits_below(repo: Repository, tips: Iterable[str]) -> frozenset[str]:
    """Return every commit that these tips go on from, along first parents."""
    asked = "".join(f"{tip}\n" for tip in dict.fromkeys(tips))
    if not asked:
        return frozenset()
    how = ("--first-parent", "--ignore-missing", "--stdin")
    return frozenset(repo.git.text("rev-list", *how, input=asked.encode()).split())


def shortened(repo: Repository, found: Mapping[str, list[SeenTip]]) -> bytes:
    """Return the lines that are still needed; of too many, the newer half."""
    from ..records.archive import contents, shelves

    over = contents(repo, shelves(repo))
    waiting = {ref: seen for ref, seen in found.items() if not is_shelved(over, ref, seen)}
    below = commits_below(repo, (seen[-1].tip for seen in waiting.values()))
    lines = [
        (one.at, f"{one.at} {one.tip} {ref}\n".encode())
        for ref, seen in waiting.items()
        for one in dict.fromkeys(seen)
        if one.tip == seen[-1].tip or one.tip not in below
    ]
    kept, size = [], 0
    for _, line in sorted(lines, reverse=True):
        size += len(line)
        if size > MOST // 2:
            break
        kept.append(line)
    return b"".join(reversed(kept))


def is_shelved(over: Mapping[str, ArchivedGate], ref: str, seen: Sequence[SeenTip]) -> bool:
    """Return whether the archive has the record as it was last seen."""
    one = over.get(ref.rpartition("/")[2])
    return one is not None and seen[-1].tip in one.tips
