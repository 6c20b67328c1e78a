"""Record: what an event's commit message says: a subject for people, and all that a list shows of the gate; and how a list reads it,
of thousands by one regular expression.

The store hands over a run of tips as `git cat-file` prints them: a line `MARK REF KIND SIZE COMMIT`, the object, a newline.
The mark is made up for each run, so that nothing inside an object can pass for the beginning of the next one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from ..document import NamedTuple
from ..errors import BrokenRecord
from ..model import PRIORITIES, STATES, misread, parse_trailers, trailer_message, traits
from ..text import counted

if TYPE_CHECKING:
    from ..model.gate import Event, Gate, Opened, Outcome

# Git takes a name with blanks or in other letters for the same; a list does not.
NAME = r"[A-Z][A-Za-z-]*"


def message(name: str, event: Event, gate: Gate) -> str:
    """Return the message of the commit that records `event`, after which the gate is `gate`."""
    return trailer_message(subject(name, event, gate.opened), trailers(name, gate))


def subject(name: str, event: Event, opened: Opened) -> str:
    from ..model.gate import Opened, Remark  # a list is read without them

    by = getattr(event, "by", "") or opened.asked.agent
    person = by.partition(" <")[0]
    if isinstance(event, Opened):
        return f"{person or 'an agent'} asks: {opened.title}"
    if traits(name).silent:
        return f"{name}: nobody answered in time"
    if isinstance(event, Remark) and event.session is not None and event.session.outcome == "timeout":
        return f"{name}: {event.text}"
    if isinstance(event, Remark) and event.text:
        return f"{name} by {person or 'nobody'}: {event.text}"
    return f"{name} by {person}"


def loose_ends(outcome: Outcome) -> list[str]:
    """Return in a few words each what an agent left for a person to look at. Older records do not note this."""
    return [
        *([f"commits on {outcome.branch}, not on {outcome.meant}"] if outcome.meant else []),
        *([f"{counted(len(outcome.left), 'path')} not committed"] if outcome.left else []),
        *([f"{counted(len(outcome.denied), 'call')} refused"] if outcome.denied else []),
    ]


def trailers(name: str, gate: Gate) -> list[tuple[str, str]]:
    """Return the trailers of the gate, with all that a list shows. Each event has them, so that its tip is enough."""
    opened = gate.opened
    return [
        ("Gate", gate.id),
        ("Event", name),
        ("State", gate.state),
        ("Title", opened.title),
        ("Question", opened.questions[0].prompt),
        ("Questions", str(len(opened.questions))),
        ("Type", ",".join(dict.fromkeys(q.type for q in opened.questions))),
        ("Agent", opened.asked.agent),
        ("Asked-By", opened.asked.by),
        ("Asked-At", opened.asked.at),
        ("Branch", opened.work.branch or ""),
        ("Head", opened.work.base or ""),
        ("Priority", gate.priority),
        ("Delivery", opened.delivery),
        ("Deadline", (gate.deadline or "") if gate.state == "awaiting" else ""),
        ("On-Timeout", opened.on_timeout),
        ("Later", (gate.later or "") if gate.state == "awaiting" else ""),
        ("To", ", ".join(gate.to)),
        ("Key", opened.key or ""),
        ("Pull-Request", str(opened.config.get("pull_request") or "")),
        ("Verdict", gate.answer.answer.verdict if gate.answer else ""),
        ("Outcome", "; ".join(loose_ends(gate.outcome)) if gate.outcome else ""),
        ("Closed", "yes" if gate.closed else ""),
    ]


class Stored(Protocol):
    """Message of a commit, as it is stored."""

    @property
    def encoding(self) -> bytes: ...

    @property
    def body(self) -> bytes: ...


def contradiction(commit: Stored, gate: Gate) -> str:
    """Return how the message of the gate's last commit differs from its record; empty where they agree. Lists, and
    people who read the record by git, see only the message.
    """
    why = misread(commit.encoding, commit.body)
    if why:
        return f"its message {why}"
    text = commit.body.decode("utf-8")
    name = gate.history[-1].name
    honest = message(name, gate.history[-1].event, gate)
    if text == honest:
        return ""
    said = parse_trailers(text)
    if said is None or not all(re.fullmatch(NAME, key) for key in said):
        return "its message does not end with trailers as they have to be (each once, one short line)"
    meant = parse_trailers(honest) or {}
    for key, value in meant.items():
        if said.get(key) != value:
            return f"its message says {key}: {said.get(key, 'nothing')!r}; the record means {value!r}"
    strange = sorted(key for key, _ in trailers(name, gate) if key in said and key not in meant)
    if strange:
        return f"its message says {strange[0]}: {said[strange[0]]!r}; the record has none"
    first, _, rest = text.partition("\n\n")
    well_made = first.isprintable() and "\n\n" not in rest.rstrip("\n")
    if not well_made:
        return "its message is not one line for people and one paragraph of trailers"
    subject_meant = honest.partition("\n\n")[0]
    return "" if first == subject_meant else f"its subject is {first!r}; the record means {subject_meant!r}"


BROKEN = "(its record breaks the protocol: git gate verify)"
DOUBTFUL = "(its last commit says otherwise: git gate verify)"
FEW = 64  # up to here, compiling the expression would take longer than doing without
_RANK = {name: str(place) for place, name in enumerate(PRIORITIES)}


class Summary(NamedTuple):
    """Summary of one gate, as a list shows it. The fields are in the order in which a commit's message has them."""

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
    later: str = ""
    to: str = ""
    key: str = ""
    pull_request: str = ""
    verdict: str = ""
    outcome: str = ""
    closed: str = ""


def by_pressure(found: Iterable[Summary]) -> list[Summary]:
    """Return the gates with the most pressing first: by priority, then the one that waits longest, then by id. Sorting
    begins with the last of these keys: the sort is stable, and texts compare in a third of the time that tuples
    take.
    """
    oldest_first = sorted(sorted(found, key=attrgetter("id")), key=attrgetter("at"))
    if len({summary.priority for summary in oldest_first}) < 2:
        return oldest_first
    return sorted(oldest_first, key=lambda summary: _RANK.get(summary.priority, "9"))


# Trailer and field, in the order of `trailers`. The first ones are always written.
ALWAYS = ("Event", "State", "Title", "Question", "Questions", "Type")
SOMETIMES = ("Agent", "Asked-By", "Asked-At", "Branch")
AT_THE_END = (
    "Delivery",
    "Deadline",
    "On-Timeout",
    "Later",
    "To",
    "Key",
    "Pull-Request",
    "Verdict",
    "Outcome",
    "Closed",
)
FIELDS = (*ALWAYS, *SOMETIMES, "Priority", *AT_THE_END)


def summary_of(gate: str, tip: str, message: str) -> Summary:
    """Return the summary of one gate. Where its trailers break the rules it is still listed, as `broken`."""
    said = parse_trailers(message)
    if said is None or said.get("Gate") != gate or said.get("State") not in STATES:
        return broken_summary(gate, tip)
    given = {
        field: said[name] for name, field in zip(FIELDS, Summary._fields[2:], strict=True) if name in said
    }
    return Summary(gate, tip, **given)


def broken_summary(gate: str, tip: str) -> Summary:
    return Summary(gate, tip, state="broken", title=BROKEN)


IsSound = Callable[[bytes, int], bool]


def read_summaries(tips: bytes, mark: bytes, folder: str, is_sound: IsSound) -> Iterator[Summary]:
    """Return the summaries of a run of tips, whose refs are in `folder`. If one is unusual, each is read alone.

    `is_sound` says of a commit, and how long its ids are, whether the one reader of commits takes it: another one is broken.
    """
    text = tips.decode("utf-8", "replace")
    count = text.count(mark.decode())
    if count > FEW:
        digits = len(text.partition("\n")[0].rpartition(" ")[2])
        found = usual(mark.decode(), folder, digits).findall(text)
        if len(found) == count:
            return map(Summary._make, found)
    return (read_one(tip, folder, is_sound) for tip in tips.split(mark)[1:])


def usual(mark: str, folder: str, digits: int) -> re.Pattern[str]:
    """Return the pattern of a tip as we write it: `parse_trailers` reads whatever it matches alike, and the one reader takes it."""
    value = "[ -~]{1,200}"
    oid, person = f"[0-9a-f]{{{digits}}}", r"[^<>\n\0]* <[^<>\n\0]*> (?:0|[1-9][0-9]{0,11}) [+-][0-9]{4}"

    signature = r"(?:gpgsig [^\n\0]*\n(?: [^\n\0]*\n)*)?"

    def line(name: str) -> str:
        return f"Hitl-{name}: ({'|'.join(STATES) if name == 'State' else value})\n"

    return re.compile(
        f"{mark} {folder}([2-9a-z]+) commit [0-9]+ ({oid})\n"
        f"tree {oid}\n(?:parent {oid}\n)*author {person}\ncommitter {person}\n{signature}\n[^\n\0]*\n\nHitl-Gate: \\1\n"
        + "".join(line(name) for name in ALWAYS)
        + "".join(f"(?:{line(name)})?" for name in SOMETIMES)
        + f"(?:Hitl-Head: {value}\n)?{line('Priority')}"
        + "".join(f"(?:{line(name)})?" for name in AT_THE_END)
        + f"\n(?={mark}|\\Z)"
    )


def read_one(tip: bytes, folder: str, is_sound: IsSound) -> Summary:
    head, _, rest = tip.partition(b"\n")
    ref, kind, size, oid = head.decode("utf-8", "replace").strip(" ").rsplit(" ", 3)
    whole, after = rest[: int(size)], rest[int(size) :].strip()
    if after:  # the next one, which has no line of its own
        raise absent(after)
    if kind != "commit" or len(whole) < int(size) or not is_sound(whole, len(oid) // 2):
        return broken_summary(ref.removeprefix(folder), oid)
    message = whole.partition(b"\n\n")[2].decode("utf-8", "replace")
    return summary_of(ref.removeprefix(folder), oid, message)


def absent(said: bytes) -> BrokenRecord:
    """Return the error for an object that is not in the repository. Git's text about it is `COMMIT missing`."""
    oid = said.decode("utf-8", "replace")[:12]
    return BrokenRecord(
        f"object {oid} is not in this repository", hint="git gate sync, then: git gate verify"
    )
