"""Record: what a list shows of a gate, read from the commit at its tip; of thousands by one regular expression.

The store hands over a run of tips as `git cat-file` prints them: a line `MARK REF KIND SIZE COMMIT`, the object, a newline.
The mark is made up for each run, so that nothing inside an object can pass for the beginning of the next one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple

from ..errors import BrokenRecord
from ..model import trailers
from ..model.states import PRIORITIES, STATES

BROKEN = "(its record breaks the protocol: git gate verify)"
FEW = 64  # up to here, compiling the expression would take longer than doing without
_RANK = {name: str(place) for place, name in enumerate(PRIORITIES)}


class Summary(NamedTuple):
    """What a list shows of one gate. The fields are in the order in which a commit's message has them."""

    id: str
    tip: str
    event: str = ""
    state: str = ""
    title: str = ""
    question: str = ""
    questions: str = "1"
    type: str = ""
    agent: str = ""
    by: str = ""
    at: str = ""
    branch: str = ""
    priority: str = "normal"
    delivery: str = ""
    deadline: str = ""
    on_timeout: str = ""
    to: str = ""
    key: str = ""
    pull_request: str = ""
    verdict: str = ""
    outcome: str = ""
    closed: str = ""


def by_pressure(found: Iterable[Summary]) -> list[Summary]:
    """The most pressing first: by priority, then the one that waits longest, then by id. Sorted by the last of these first,
    because that is stable, and a text is compared in a third of the time that a tuple takes.
    """
    oldest_first = sorted(sorted(found, key=attrgetter("id")), key=attrgetter("at"))
    if len({summary.priority for summary in oldest_first}) < 2:
        return oldest_first
    return sorted(oldest_first, key=lambda summary: _RANK.get(summary.priority, "9"))


# Trailer and field, in the order of `headline.trailers`. The first ones are always written.
ALWAYS = ("Event", "State", "Title", "Question", "Questions", "Type")
SOMETIMES = ("Agent", "Asked-By", "Asked-At", "Branch")
AT_THE_END = (
    "Delivery",
    "Deadline",
    "On-Timeout",
    "To",
    "Key",
    "Pull-Request",
    "Verdict",
    "Outcome",
    "Closed",
)
FIELDS = (*ALWAYS, *SOMETIMES, "Priority", *AT_THE_END)


def summary_of(gate: str, tip: str, message: str) -> Summary:
    """One gate. Where the trailers break the rules it still appears, as `broken`."""
    said = trailers.parse_trailers(message)
    if said is None or said.get("Gate") != gate or said.get("State") not in STATES:
        return broken(gate, tip)
    given = {
        field: said[name] for name, field in zip(FIELDS, Summary._fields[2:], strict=True) if name in said
    }
    return Summary(gate, tip, **given)


def broken(gate: str, tip: str) -> Summary:
    return Summary(gate, tip, state="broken", title=BROKEN)


def read_summaries(tips: bytes, mark: bytes, folder: str) -> Iterator[Summary]:
    """The gates of a run of tips, whose refs stand in `folder`. Where one is unusual, each is read by itself."""
    text = tips.decode("utf-8", "replace")
    count = text.count(mark.decode())
    if count > FEW:
        found = usual(mark.decode(), folder).findall(text)
        if len(found) == count:
            return map(Summary._make, found)
    return (read_one(tip, folder) for tip in tips.split(mark)[1:])


def usual(mark: str, folder: str) -> re.Pattern[str]:
    """A tip as we write it, in ASCII: whatever it matches, `trailers.parse_trailers` reads alike."""
    value = "[ -~]{1,200}"

    def line(name: str) -> str:
        return f"Hitl-{name}: ({'|'.join(STATES) if name == 'State' else value})\n"

    return re.compile(
        f"{mark} {folder}([2-9a-z]+) commit [0-9]+ ([0-9a-f]+)\n(?:[^\n]+\n)+\n[^\n]*\n\nHitl-Gate: \\1\n"
        + "".join(line(name) for name in ALWAYS)
        + "".join(f"(?:{line(name)})?" for name in SOMETIMES)
        + f"(?:Hitl-Head: {value}\n)?{line('Priority')}"
        + "".join(f"(?:{line(name)})?" for name in AT_THE_END)
        + f"\n(?={mark}|\\Z)"
    )


def read_one(tip: bytes, folder: str) -> Summary:
    head, _, rest = tip.partition(b"\n")
    ref, kind, size, oid = head.decode("utf-8", "replace").strip(" ").rsplit(" ", 3)
    whole, after = rest[: int(size)], rest[int(size) :].strip()
    if after:  # the next one, which has no line of its own
        raise absent(after)
    if kind != "commit" or len(whole) < int(size):
        return broken(ref.removeprefix(folder), oid)
    message = whole.partition(b"\n\n")[2].decode("utf-8", "replace")
    return summary_of(ref.removeprefix(folder), oid, message)


def absent(said: bytes) -> BrokenRecord:
    """What git prints of an object that is not there: `COMMIT missing`."""
    oid = said.decode("utf-8", "replace")[:12]
    return BrokenRecord(
        f"object {oid} is not in this repository", hint="git gate sync, then: git gate verify"
    )
