"""Render: how a conversation is to be held, and how one was. Loaded only where a gate has either.

What somebody wrote is neutralised here. A transcript is never part of what is shown: it is long, and `show --json` has it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..core.model import Question
from ..core.talks import PROPOSED, Held, Talk
from ..core.text import indent, neutral, one_line, wrap
from ..core.times import format_duration

Json = dict[str, object]
ENDS = {
    "approval": "approved or rejected",
    "selection": "one of the options",
    "freeform": "free text",
    "structured": "an object that fits its schema",
}
READ_FROM = {
    "command": "from the agent's own signal",
    "mcp": "from the agent's own signal",
    "file": "from the agent's own signal",
    "json": "from the object that it ended with",
    "words": "from what was said last",
    "prompt": "at the prompt",
    "person": "from the person",
}
MOST_CONTEXT = 4000


def talk_shape(talk: Talk | None) -> Json:
    """All terms, also those that nobody set."""
    talk = talk or Talk()
    return {name: getattr(talk, name) for name in talk.__dataclass_fields__}


def held_shape(held: Held | None, *, transcript: bool = True) -> Json | None:
    if held is None:
        return None
    hidden = () if held.outcome == PROPOSED else ("agent", "value")
    shape: Json = {name: getattr(held, name) for name in held.__dataclass_fields__ if name not in hidden}
    if not transcript:
        del shape["transcript"]
    return {**shape, "source": held.source or None}


def terms(question: Question, cells: int, *, several: bool = False) -> str:
    """How the conversation about this question is to be held."""
    talk = question.talk or Talk()
    lines = [f"[{question.key}]"] if several else []
    ends = ENDS[talk.outcome]
    lines.append("a small prompt asks: go on, or stop" if talk.checkpoint else f"it ends with {ends}")
    where = [
        f"model {one_line(talk.model)}" if talk.model else "",
        f"in {one_line(talk.cwd)}" if talk.cwd else "",
        lasting(talk),
        f"goes on from gate {one_line(talk.resume)}" if talk.resume else "",
        "its transcript is kept" if talk.transcript else "",
    ]
    if any(where):
        lines.append(" · ".join(word for word in where if word))
    if talk.mcp is not None:
        lines.append(f"MCP servers, which are commands: {servers(talk.mcp)}; none runs unless you confirm it")
    text = wrap("\n".join(lines), cells, "  ")
    if talk.system:
        text += "\n" + wrap("the agent is told:\n" + neutral(talk.system), cells, "  ")
    if talk.context is not None:
        text += "\n  given to the agent:\n" + indent(shown_context(talk.context), "    ")
    return text


def shown_context(context: object) -> str:
    """As JSON, the beginning of it; `show --json` has all."""
    text = json.dumps(context, ensure_ascii=False, indent=2)
    return neutral(text if len(text) <= MOST_CONTEXT else text[:MOST_CONTEXT] + "\n… (all of it: --json)")


def lasting(talk: Talk) -> str:
    if talk.timeout is None:
        return ""
    return f"at most {format_duration(talk.timeout)}, and {format_duration(talk.grace)} to come to an end"


def servers(mcp: Mapping[str, object]) -> str:
    named = mcp.get("mcpServers")
    return one_line(", ".join(map(str, named)), 200) if isinstance(named, Mapping) and named else "none"


def held_line(held: Held) -> str:
    """How it was held, in a line: `conversation of 5m42s · NEEDS_REVIEW · read from …`."""
    took = f"conversation of {format_duration(held.seconds)}"
    how = READ_FROM.get(held.source, "")
    words = [
        took if held.outcome == "completed" else f"{held.outcome}, {took}",
        one_line(held.status, 64),
        f"read {how}" if how else "",
        "" if held.confirmed else "nobody confirmed it",
        "transcript kept: --json" if held.transcript else "",
    ]
    return " · ".join(word for word in words if word)


def held_lines(held: Held, cells: int) -> str:
    """The same, with what was said of it."""
    said = {"summary": held.summary, "reason": held.reason, "message": held.message}
    lines = [wrap(held_line(held), cells, "  ")]
    lines += [wrap(f"{name}: {neutral(words)}", cells, "  ") for name, words in said.items() if words]
    return "\n".join(lines)
