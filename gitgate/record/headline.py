"""Record: what an event's commit message says: a subject for people, and all that a list shows of the gate."""

from __future__ import annotations

import re

from ..model.gate import Event, Gate, Opened, Outcome, Remark
from ..model.states import traits
from ..model.trailers import misread, parse_trailers, trailer_message
from ..text.display import counted

# Git takes a name with blanks or in other letters for the same; a list does not.
NAME = re.compile(r"[A-Z][A-Za-z-]*")


def message(name: str, event: Event, gate: Gate) -> str:
    """The message of the commit that records `event`, after which the gate is `gate`."""
    return trailer_message(subject(name, event, gate.opened), trailers(name, gate))


def subject(name: str, event: Event, opened: Opened) -> str:
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
    """What an agent left for a person to look at, in a few words each. An old record says nothing of it."""
    return [
        *([f"commits on {outcome.branch}, not on {outcome.meant}"] if outcome.meant else []),
        *([f"{counted(len(outcome.left), 'path')} not committed"] if outcome.left else []),
        *([f"{counted(len(outcome.denied), 'call')} refused"] if outcome.denied else []),
    ]


def trailers(name: str, gate: Gate) -> list[tuple[str, str]]:
    """All that a list shows of the gate, carried by every event so that its tip alone is enough."""
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
        ("To", ", ".join(gate.to)),
        ("Key", opened.key or ""),
        ("Pull-Request", str(opened.config.get("pull_request") or "")),
        ("Verdict", gate.answer.answer.verdict if gate.answer else ""),
        ("Outcome", "; ".join(loose_ends(gate.outcome)) if gate.outcome else ""),
        ("Closed", "yes" if gate.closed else ""),
    ]


def contradiction(payload: bytes, gate: Gate) -> str:
    """What the message of the gate's last commit says otherwise than its record, to lists or to whoever reads it by git."""
    why = misread(payload)
    if why:
        return f"its message {why}"
    text = payload.partition(b"\n\n")[2].decode("utf-8")
    name = gate.history[-1].name
    honest = message(name, gate.history[-1].event, gate)
    if text == honest:
        return ""
    said = parse_trailers(text)
    if said is None or not all(NAME.fullmatch(key) for key in said):
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
