"""Core: the commit message of an event. A subject for people, trailers for lists; no decision is taken from them."""

from __future__ import annotations

from collections.abc import Iterable

from .model import Event, Gate, Opened, Remark

PREFIX = "Hitl-"
MOST_BYTES = 200


def one_line(text: str, most: int = MOST_BYTES) -> str:
    """One line of UTF-8 without control characters, at most `most` bytes, cut between characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    raw = line.encode("utf-8", "replace")
    if len(raw) <= most:
        return raw.decode("utf-8")
    return raw[: most - 3].decode("utf-8", "ignore").rstrip() + "…"


def dump(subject: str, trailers: Iterable[tuple[str, str]]) -> str:
    lines = [f"{PREFIX}{name}: {one_line(value)}" for name, value in trailers if value]
    return f"{one_line(subject, 120) or 'gate'}\n\n" + "\n".join(lines) + "\n"


def parse(message: str) -> dict[str, str] | None:
    """The trailers of the last paragraph, or None when they break the rules (duplicate, overlong, not one of ours).

    Git's own trailer formats mix values and obey the user's settings, so we read the paragraph ourselves.
    """
    found: dict[str, str] = {}
    for line in message.rstrip("\n").rpartition("\n\n")[2].split("\n"):
        name, colon, value = line.partition(": ")
        if not colon or not name.startswith(PREFIX) or name in found or len(value) > MOST_BYTES:
            return None
        found[name] = value
    return {name.removeprefix(PREFIX): value for name, value in found.items()}


def subject(name: str, event: Event, opened: Opened) -> str:
    by = getattr(event, "by", "") or opened.asked.agent
    person = by.partition(" <")[0]
    if isinstance(event, Opened):
        return f"{person or 'an agent'} asks: {opened.title}"
    if isinstance(event, Remark) and event.text:
        return f"{name} by {person or 'nobody'}: {event.text}"
    if name in ("expired", "defaulted", "reminded"):
        return f"{name}: nobody answered in time"
    return f"{name} by {person}"


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
        ("Closed", "yes" if gate.closed else ""),
    ]
