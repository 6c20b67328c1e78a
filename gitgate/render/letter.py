"""Render: one gate as a short letter: the question, its context, the options, what the agent did, how to answer."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote

from ..core.answers import shown
from ..core.model import Answer, Counted, Gate, Question
from ..core.text import indent, neutral, one_line, wrap
from .paint import STATE_COLORS, paint
from .shapes import event
from .table import age, due


def letter(
    gate: Gate,
    now: float,
    cells: int,
    *,
    stat: str = "",
    signed: Mapping[str, bool] | None = None,
    archived: bool = False,
    color: bool = False,
) -> str:
    """The whole letter. Every word that came out of the gate is neutralised."""
    parts = [
        head(gate, now, archived=archived, color=color),
        "\n\n".join(asked(question, cells, several=len(gate.opened.questions) > 1) for question in gate.opened.questions),
        section("Context", wrap(neutral(gate.opened.context), cells, "  "), color=color) if gate.opened.context else "",
        section("The work so far", work(gate, stat), color=color),
        section("Attached", indent("\n".join(gate.opened.attachments), "  "), color=color) if gate.opened.attachments else "",
        answers(gate, signed or {}, color=color),
        how(gate, color=color),
        section("History", history(gate), color=color),
    ]
    return "\n\n".join(part for part in parts if part)


def head(gate: Gate, now: float, *, archived: bool, color: bool) -> str:
    state = paint(gate.state, STATE_COLORS.get(gate.state, ""), "bold", on=color)
    opened = gate.opened
    line = f"{paint(gate.id, 'bold', on=color)}  {state}"
    extra = [
        gate.priority if gate.priority != "normal" else "",
        due(gate.deadline, now) if gate.deadline and gate.state == "awaiting" else "",
        f"for {', '.join(gate.to)}" if gate.to else "",
        f"needs {opened.quorum} answers alike" if opened.quorum > 1 else "",
        f"confidence {opened.confidence:g}" if opened.confidence is not None else "",
        f"follows {opened.follows}" if opened.follows else "",
        "archived" if archived else "",
    ]
    tail = " · ".join(one_line(word) for word in extra if word)
    who = one_line(opened.asked.agent) + (f" (of {one_line(opened.asked.by)})" if opened.asked.by else "")
    first = line + (f" · {tail}" if tail else "")
    return f"{first}\n{paint(one_line(opened.title), 'bold', on=color)}\nasked by {who}, {age(opened.asked.at, now)} ago"


def asked(question: Question, cells: int, *, several: bool) -> str:
    lead = f"[{question.key}] " if several else ""
    lines = [wrap(lead + neutral(question.prompt), cells, "  ")]
    for place, option in enumerate(question.options, 1):
        lines.append(f"    #{place} {one_line(option.label)}")
        if option.description:
            lines.append(wrap(neutral(option.description), cells, "        "))
    if question.other:
        lines.append("    or something else, in your own words")
    if question.type == "approval":
        lines.append("    yes or no")
    if question.type == "form":
        lines.append(form_fields(question))
    if question.default is not None:
        lines.append(f"    default: {one_line(shown(question.default))}")
    return "\n".join(lines)


def form_fields(question: Question) -> str:
    schema = question.schema or {}
    fields = schema.get("properties")
    needed = schema.get("required")
    if not isinstance(fields, Mapping):
        return "    a form, as JSON"
    required = needed if isinstance(needed, list) else []
    lines = []
    for name, detail in fields.items():
        kind = detail.get("type", "any") if isinstance(detail, Mapping) else "any"
        lines.append(f"    {one_line(str(name))}: {one_line(str(kind))}{'' if name in required else ' (optional)'}")
    return "\n".join(lines)


def section(title: str, body: str, *, color: bool) -> str:
    return f"{paint(title, 'bold', on=color)}\n{body}" if body.strip() else ""


def work(gate: Gate, stat: str) -> str:
    done = gate.opened.work
    where = f"on {one_line(done.branch)}" if done.branch else "on no branch"
    base = f" at {done.base[:10]}" if done.base else ", which has no commit yet"
    if not done.dirty:
        lines = [f"  {where}{base}, nothing uncommitted"]
    else:
        files = "1 file" if done.files == 1 else f"{done.files} files"
        lines = [f"  {where}{base}: {files} changed, +{done.insertions} -{done.deletions}"]
    if stat.strip():
        lines.append(indent(neutral(stat.rstrip("\n")), "  "))
    if done.operation:
        lines.append(f"  in the middle of a {one_line(done.operation)}")
    lines += [f"  left out: {one_line(path)} ({one_line(reason)})" for path, reason in done.left_out]
    return "\n".join(lines)


def answers(gate: Gate, signed: Mapping[str, bool], *, color: bool) -> str:
    parts = []
    if gate.answer is not None:
        parts.append(section("Answer", said(gate, gate.answer, signed), color=color))
    elif gate.votes:
        votes = "\n".join(said(gate, vote, signed) for vote in gate.votes)
        parts.append(section(f"Answers so far ({len(gate.votes)} of {gate.opened.quorum})", votes, color=color))
    if gate.closing is not None:
        parts.append(section("How it ended", f"  {gate.state}: {neutral(gate.closing.text)}", color=color))
    if gate.late:
        late = "\n".join(said(gate, vote, signed) for vote in gate.late)
        parts.append(section("Late, with no effect", late, color=color))
    return "\n\n".join(part for part in parts if part)


def said(gate: Gate, counted: Counted, signed: Mapping[str, bool]) -> str:
    answer: Answer = counted.answer
    several = len(gate.opened.questions) > 1
    lines = []
    for question in gate.opened.questions:
        lead = f"[{question.key}] " if several else ""
        lines.append(indent(lead + neutral(shown(answer.values.get(question.key))), "  "))
    if answer.note:
        lines.append(indent(neutral(answer.note), "  "))
    mark = "signed" if signed.get(counted.signed_commit) else "unverified"
    # A default never looks like a person: nobody's name stands under it.
    who = f"{one_line(answer.by)} ({mark})" if answer.by else "nobody: the declared default, when the deadline passed"
    lines.append(f"  — {who}, {answer.at}, by {one_line(answer.via)}")
    return "\n".join(lines)


def how(gate: Gate, *, color: bool) -> str:
    if gate.state != "awaiting":
        return ""
    return section("How to answer", indent("\n".join(ways(gate)), "  "), color=color)


def ways(gate: Gate) -> list[str]:
    """The commands that answer it, ready to type."""
    questions = gate.opened.questions
    start = f"git gate respond {gate.id[:6]}"
    if len(questions) > 1:
        return [start + " " + " ".join(f"-a {question.key}=…" for question in questions)]
    only = questions[0]
    if only.type == "approval":
        return [f"{start} --approve", f"{start} --reject --note WHY"]
    if only.type in ("choice", "choices"):
        example = quote(one_line(only.options[0].label))
        return [f"{start} {example}    (or '#1')", *([f"{start} --other TEXT"] if only.other else [])]
    if only.type == "form":
        return [f"{start} -a FIELD=VALUE …"]
    return [f"{start} TEXT    (or --edit, to write it in your editor)"]


def history(gate: Gate) -> str:
    lines = []
    for entry in gate.history:
        shape = event(entry)
        by = one_line(str(shape["by"] or "nobody").partition(" <")[0])
        words = f": {one_line(str(shape['text']), 60)}" if shape.get("text") else ""
        lines.append(f"  {shape['at']}  {entry.name:<10} {by}{words}  ({entry.commit[:10]})")
    return "\n".join(lines)
