"""Exchange: what is new in a gate that is pushed, whoever pushes it: silence that this clock bears out, files as they are named."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from ..context.desk import Desk
from ..errors import FINAL
from ..model.gate import ATTACHMENTS, Entry, Gate, Opened
from ..model.states import traits
from ..questions.file import MOST_BYTES, MOST_TOTAL
from ..record.fold import stages
from ..record.headline import contradiction
from ..store.git.objects import FOLDER, REGULAR
from ..text import times

SLACK = 600  # seconds that clocks may differ by


def fresh(gate: Gate, old: str | None) -> Sequence[Entry]:
    """The events after the commit that was there before the push."""
    commits = [entry.commit for entry in gate.history]
    return gate.history[commits.index(old) + 1 if old in commits else 0 :]


def against_events(desk: Desk, gate: Gate, old: str | None) -> str:
    """What speaks against the events after `old`; empty when nothing does."""
    for entry in fresh(gate, old):
        why = against_repeats(entry) or against_clock(desk, entry) or against_files(desk, gate, entry)
        if why:
            return at(entry, why)
    return against_messages(desk, gate, len(fresh(gate, old)))


def against_messages(desk: Desk, gate: Gate, count: int) -> str:
    """Of the last `count` events: what a message tells lists has to be what the record amounts to there."""
    then = [gate] if count == 1 else islice(stages(gate.id, gate.history), len(gate.history) - count, None)
    for each in then:
        why = contradiction(desk.records.objects.read(each.tip)[1], each)
        if why:
            return at(each.history[-1], f"{why} ({FINAL})")
    return ""


def at(entry: Entry, why: str) -> str:
    return f"{entry.name} ({entry.commit[:10]}): {why}"


def against_repeats(entry: Entry) -> str:
    """An event counts once. What is in the record already would bring back words that their author has replaced since."""
    if not entry.repeats:
        return ""
    return f"it is what {entry.repeats[:10]} recorded, once more: an event counts once ({FINAL})"


def against_clock(desk: Desk, entry: Entry) -> str:
    """Silence is not made up: a deadline passes by this clock too."""
    said = getattr(entry.event, "at", "")
    if traits(entry.name).silent and said > times.format_time(desk.clock() + SLACK):
        return f"it is of {said}, and here it is {desk.now}"
    return ""


def against_files(desk: Desk, gate: Gate, entry: Entry) -> str:
    """What is attached: the files that the question names, regular ones, no more and not too large."""
    if not isinstance(entry.event, Opened):
        return ""
    sizes = [len(desk.records.attachment(gate, name)) for name in gate.opened.attachments]
    if any(size > MOST_BYTES for size in sizes) or sum(sizes) > MOST_TOTAL:
        return f"its attachments are larger than {MOST_BYTES:,} bytes each, or {MOST_TOTAL:,} together"
    top = desk.records.tree(desk.records.commit(entry.commit).tree).get(ATTACHMENTS.encode())
    found = [] if top is None else files(desk, top.oid, "", 0)
    strange = sorted(set(found) - set(gate.opened.attachments))
    return f"it holds {ATTACHMENTS}/{strange[0]}, which the question does not name" if strange else ""


def files(desk: Desk, tree: str, above: str, depth: int) -> list[str]:
    """Every path below a tree; what is no regular file and no folder has a name that no question can give."""
    found: list[str] = []
    for name, item in desk.records.tree(tree).items():
        path = above + name.decode("utf-8", "replace")
        if item.mode == FOLDER and depth < 10:
            found += files(desk, item.oid, f"{path}/", depth + 1)
        else:
            found.append(path if item.mode == REGULAR else f"{path} (no regular file)")
    return found
