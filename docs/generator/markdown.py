"""Documentation: tables, the diagram and the reference as Markdown."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from gitgate.cli import Meaning
from gitgate.config import Setting
from gitgate.model import StateRow

from .tree import Entry, Verb, anywhere, paragraphs, shared


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a bar within a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def diagram(rows: Sequence[StateRow]) -> str:
    """The state table as a Mermaid diagram: one arrow for each way, remarks that move nothing left to the table."""
    ways: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.state != row.to or row.event in ("reminded", "voted"):
            ways.setdefault((row.state or "[*]", row.to), []).append(row.event)
    arrows = [f"    {start} --> {end}: {', '.join(events)}" for (start, end), events in ways.items()]
    last = [f"    {state} --> [*]" for state in finals(rows)]
    return "\n".join(["```mermaid", "stateDiagram-v2", *arrows, *last, "```"])


def finals(rows: Sequence[StateRow]) -> list[str]:
    """The states that no event leaves."""
    left = {row.state for row in rows if row.state != row.to}
    return [state for state in dict.fromkeys(row.to for row in rows) if state not in left]


def events(rows: Sequence[StateRow]) -> str:
    """The same table in words."""
    return table(
        ["state", "event", "becomes", "when"],
        ([row.state or "–", row.event, row.to, row.why] for row in rows),
    )


def settings(every: Sequence[Setting]) -> str:
    """Each setting with its places; one that grants power has no variable and stands in no file."""
    return table(
        ["`git config`", "variable", "value", "default", "what it is"],
        (
            [
                f"`gitgate.{one.name}`",
                "–" if one.power else f"`{one.variable}`",
                kind(one),
                f"`{one.default}`" if one.default else "–",
                one.meaning,
            ]
            for one in every
        ),
    )


def kind(setting: Setting) -> str:
    """What may be written as its value."""
    name, _, words = setting.kind.partition(":")
    return ", ".join(f"`{word}`" for word in words.split(",")) if words else name


def exits(every: Sequence[Meaning]) -> str:
    return table(["code", "meaning"], ([str(row.code), row.words] for row in every))


def reference(root: Verb, found: list[Verb]) -> str:
    """Every command: how it is written, what it does, its options."""
    common = shared(found)
    parts = [
        "## git gate",
        f"```\n{root.usage}\n```",
        *told(root.text),
        entry_list(root.entries),
        anywhere(root, found),
    ]
    for family, verbs in itertools.groupby(found, lambda verb: verb.family):
        if family:
            parts.append(f"## {family}")
        for verb in verbs:
            parts += [f"### git gate {verb.name}", f"```\n{verb.usage}\n```", *told(verb.text)]
            own = [entry for entry in verb.entries if entry not in common]
            parts += [entry_list(own)] if own else []
    return "\n\n".join(part for part in parts if part)


def told(text: str) -> list[str]:
    """Help as Markdown."""
    return [f"```\n{part}\n```" if verbatim else part for part, verbatim in paragraphs(text)]


def entry_list(entries: Iterable[Entry]) -> str:
    return "\n".join(
        f"- `{entry.written}`: {entry.meaning}" if entry.meaning else f"- `{entry.written}`"
        for entry in entries
    )
