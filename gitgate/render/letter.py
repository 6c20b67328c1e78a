"""Render: one gate as a short letter: the question, its context, the options, what the agent did, how to answer; and the audit trail,
a line an event.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING

from ..model import UNSIGNED, SignatureMark, traits
from ..model.gate import Answer, Counted, Gate, Opened, Outcome, Question, Remark
from ..questions.answers import value_words
from ..questions.file import told_fields
from ..questions.types import plain_word, type_of
from ..text import clip, hang, indent, neutral, one_line, width, wrap
from . import STATE_COLORS, age, aside, due, paint
from .shapes import event, event_words, held_lines, proposal, resume, talk_terms, who_ended

if TYPE_CHECKING:
    from ..model.gate import Conversation


def ways_to_answer(gate: Gate) -> list[str]:
    """Return the ways to answer a gate. A session may be decided by conversation, and its answer may be typed too."""
    questions = gate.opened.questions
    joined = [join_line(gate)] if any(question.type == "session" for question in questions) else []
    return [*joined, *typed(gate)]


def waiting_words(gate: Gate) -> str:
    """Return the message that a run ended by asking this gate, for whoever started the run: what waits, what its
    answer does, and how to answer.
    """
    short, named = gate.id[:6], f"gate {gate.id}: {gate.opened.title}"
    if gate.state != "awaiting":
        return named
    starts = gate.opened.delivery == "resume"
    acts = "its answer starts it again" if starts else f"read the answer: git gate check {short}"
    return (
        f"{named}\nthe agent waits for an answer; {acts}\n"
        f"to see all of it: git gate show {short}   to answer: {ways_to_answer(gate)[0]}"
    )


def join_line(gate: Gate) -> str:
    """Return the line that says how to hold the conversation."""
    checkpoint = any(q.talk is not None and q.talk.checkpoint for q in gate.opened.questions)
    words = "it asks whether to go on" if checkpoint else "talk it over with the agent, then decide"
    return f"git gate join {gate.id[:6]}    ({words})"


def after_failure(gate: Gate) -> list[str]:
    """Return the commands for an agent that could not be resumed, or that failed."""
    short = gate.id[:6]
    return [
        f"git gate resume {short}    (try again)",
        f"git gate stop {short} --reason WHY    (the agent does not go on)",
    ]


def typed(gate: Gate) -> list[str]:
    questions = gate.opened.questions
    start = f"git gate respond {gate.id[:6]}"
    if len(questions) > 1:
        return [start + " " + " ".join(f"-a {question.key}=…" for question in questions)]
    only = questions[0]
    return type_of(only).ways(only, start)


MOST_LISTED = 20
SUM = re.compile(r" \d+ files? changed(, \d+ insertions?\(\+\))?(, \d+ deletions?\(-\))?")


def letter(
    gate: Gate,
    now: float | None,
    cells: int,
    *,
    stat: str = "",
    signed: Mapping[str, SignatureMark] | None = None,
    archived: bool = False,
    color: bool = False,
) -> str:
    """The whole letter. Every word that came out of the gate is neutralised.

    Without `now` it says moments instead of ages, and nothing of what can be done: for whoever reads it later, elsewhere.
    """
    parts = [
        head(gate, now, cells, archived=archived, color=color),
        "\n\n".join(
            question_part(question, cells, several=len(gate.opened.questions) > 1)
            for question in gate.opened.questions
        ),
        section("Context", wrap(neutral(gate.opened.context), cells, "  "), color=color),
        section("The conversation", conversation_part(gate, cells), color=color),
        section("The work so far", work_part(gate, stat, cells), color=color),
        section("Attached", attached(gate, cells), color=color),
        section("Remarks", remarks(gate, cells), color=color),
        section("Proposed, and confirmed by nobody", proposed(gate, cells), color=color),
        answers(gate, signed or {}, cells, color=color),
        section("What came of it", outcome_part(gate, cells), color=color),
        how(gate, cells, color=color) if now is not None else "",
        section("History", history(gate, cells), color=color),
    ]
    return "\n\n".join(part for part in parts if part)


def opening(gate: Gate, now: float, cells: int, *, stat: str = "", color: bool = False) -> str:
    """Return the text that a person needs before the questions are asked one by one."""
    parts = [
        head(gate, now, cells, archived=False, color=color),
        section("Context", wrap(neutral(gate.opened.context), cells, "  "), color=color),
        section("The conversation", conversation_part(gate, cells), color=color),
        section("The work so far", work_part(gate, stat, cells), color=color),
        section("Attached", attached(gate, cells), color=color),
        section("Proposed, and confirmed by nobody", proposed(gate, cells), color=color),
    ]
    return "\n\n".join(part for part in parts if part)


def head(gate: Gate, now: float | None, cells: int, *, archived: bool, color: bool) -> str:
    state = paint(gate.state, STATE_COLORS.get(gate.state, ""), "bold", on=color)
    opened = gate.opened
    line = f"{paint(gate.id, 'bold', on=color)}  {state}"
    extra = [
        gate.priority if gate.priority != "normal" else "",
        *until_when(gate, now),
        f"for {', '.join(gate.to)}" if gate.to else "",
        f"needs {opened.quorum} answers alike" if opened.quorum > 1 else "",
        *told_fields(opened),
        f"follows {opened.follows}" if opened.follows else "",
        f"forked from {opened.forked_from}" if opened.forked_from else "",
        f"a step of run {opened.run}" if opened.run else "",
        "archived" if archived else "",
    ]
    tail = " · ".join(one_line(word) for word in extra if word)
    who = one_line(opened.asked.agent) + requester(opened)
    first = line + (f" · {tail}" if tail else "")
    title = one_line(opened.title)
    # A title that nobody gave is the beginning of the question, which follows.
    begins = one_line(opened.questions[0].prompt).startswith(title.removesuffix("…"))
    if len(opened.questions) > 1 or not begins:
        first += "".join(f"\n{paint(line, 'bold', on=color)}" for line in wrap(title, cells).split("\n"))
    when = f"{age(opened.asked.at, now)} ago" if now is not None else one_line(opened.asked.at)
    return f"{first}\n{wrap(f'asked by {who}, {when}', cells)}"


def until_when(gate: Gate, now: float | None) -> list[str]:
    """Return until when a gate is postponed, and when it is due, while it waits."""
    if gate.state != "awaiting":
        return []
    if now is None:
        said = (("later until", gate.later), ("due", gate.deadline))
        return [f"{words} {moment}" for words, moment in said if moment]
    return [aside(gate.later or "", now).strip(" ·"), due(gate.deadline, now) if gate.deadline else ""]


def requester(opened: Opened) -> str:
    """Return the person whose agent asks, in parentheses; in a job the accounts that started it, which a forge vouches
    for.
    """
    whose = ", ".join(f"@{one_line(login, 60)}" for login in opened.asked.logins) or one_line(opened.asked.by)
    return f" (of {whose})" if whose else ""


def question_part(question: Question, cells: int, *, several: bool, numbered: bool = False) -> str:
    """One question with what may be answered. `numbered`: somebody may type the number of `something else` too."""
    lead = f"[{question.key}] " if several else ""
    lines = [wrap(lead + neutral(question.prompt), cells, "  ")]
    for place, option in enumerate(question.options, 1):
        lines.append(hang(f"#{place} {one_line(option.label)}", cells, "    "))
        if option.description:
            lines.append(wrap(neutral(option.description), cells, "        "))
    if question.other:
        lead = f"#{len(question.options) + 1}" if numbered else "or"
        lines.append(f"    {lead} something else, in your own words")
    legend = type_of(question).legend(question, cells)
    lines += [legend] if legend else []
    if question.default is not None:
        lines.append(hang(f"default: {one_line(value_words(question.default))}", cells, "    "))
    return "\n".join(lines)


def conversation_part(gate: Gate, cells: int) -> str:
    """Return how to talk about the questions that are decided in a conversation."""
    questions = gate.opened.questions
    if all(question.talk is None for question in questions):
        return ""
    several = len(questions) > 1
    return "\n".join(talk_terms(q, cells, several=several) for q in questions if q.talk is not None)


def talked(held: Conversation | None, cells: int) -> str:
    if held is None:
        return ""
    return held_lines(held, cells)


def attached(gate: Gate, cells: int) -> str:
    return "\n".join(hang(one_line(name), cells, "  ") for name in gate.opened.attachments)


def remarks(gate: Gate, cells: int) -> str:
    """Return all remarks in full: the history has room for their beginning only."""
    lines = []
    for entry in gate.history:
        said = entry.name in ("commented", "late") and isinstance(entry.event, Remark)
        if said and getattr(entry.event, "session", None) is None:
            shape = event(entry)
            lines.append(wrap(neutral(str(shape.get("text", ""))), cells, "  "))
            lines.append(hang(f"— {one_line(str(shape['by'] or 'nobody'))}, {shape['at']}", cells, "  "))
    return "\n".join(lines)


def proposed(gate: Gate, cells: int) -> str:
    """Return the value that the agent of a conversation proposes, while the gate waits for a person."""
    found = proposal(gate)
    if found is None:
        return ""
    value = "no answer yet" if found["value"] is None else plain_word(found["value"])
    lines = [indent(neutral(value_words(value)), "  ")]
    names = ("status", "summary", "reason", "message")
    lines += [wrap(f"{name}: {neutral(str(found[name]))}", cells, "  ") for name in names if found[name]]
    return "\n".join([*lines, f"  — {one_line(str(found['agent']))}, {found['at']}"])


def outcome_part(gate: Gate, cells: int) -> str:
    """Return the agent's outcome, for whoever asks later, with what it left for them to look at."""
    came = resume(gate)
    if came is None or not came["outcome"]:
        return ""
    host = f" on {one_line(str(came['host']))}" if came["host"] else ""
    by = f"by {one_line(str(came['runner']))}{host}, attempt {came['attempt']}"
    made = came["commits"]
    commits = " ".join(one_line(str(commit))[:10] for commit in (made if isinstance(made, list) else ()))
    branch = f" on {one_line(str(came['branch']))}" if came["branch"] else ""
    lines = [f"{came['outcome']}: {by}"]
    lines += [f"commits{branch}: {commits}"] if commits else []
    lines += [one_line(str(came["reason"]))] if came["reason"] else []
    text = "\n".join(hang(line, cells, "  ") for line in lines)
    return (
        "\n".join([text, *loose_end_lines(gate.outcome, host, cells)]) if gate.outcome is not None else text
    )


def loose_end_lines(came: Outcome, host: str, cells: int) -> list[str]:
    """Each with what a person needs to go on from there."""
    lines = []
    if came.meant:
        words = f"its commits are not on {one_line(came.meant)}: git merge {quote(one_line(came.branch))}"
        lines.append(hang(words, cells, "  "))
    if came.left:
        where = f"{host} in {one_line(came.place)}" if came.place else ""
        # Paths stay whole, to be copied: where one is too long the terminal breaks it.
        lines.append(f"  not committed{where}:")
        lines += [f"    {one_line(path)}" for path in came.left[:MOST_LISTED]]
        lines += [f"    and {len(came.left) - MOST_LISTED} more"] if len(came.left) > MOST_LISTED else []
    if came.denied:
        lines.append("  refused to it:")
        lines += [wrap(one_line(call), cells, "    ") for call in came.denied[:MOST_LISTED]]
    if came.said:
        lines += ["  its last words:", wrap(neutral(came.said), cells, "    ")]
    return lines


def section(title: str, body: str, *, color: bool) -> str:
    return f"{paint(title, 'bold', on=color)}\n{body}" if body.strip() else ""


def work_part(gate: Gate, stat: str, cells: int) -> str:
    done = gate.opened.work
    where = f"on {one_line(done.branch)}" if done.branch else "on no branch"
    base = f" at {done.base[:10]}" if done.base else ", which has no commit yet"
    files = "1 file" if done.files == 1 else f"{done.files} files"
    words = (
        f": {files} changed, +{done.insertions} -{done.deletions}"
        if done.changed
        else ", nothing uncommitted"
    )
    lines = [hang(f"{where}{base}{words}", cells, "  ")]
    if stat.strip():
        lines.append(indent(neutral(without_sum(stat)), "   "))
    if done.operation:
        lines.append(f"  in the middle of a {one_line(done.operation)}")
    lines += [
        wrap(f"left out: {one_line(path)} ({one_line(reason)})", cells, "  ")
        for path, reason in done.left_out
    ]
    return "\n".join(lines)


def without_sum(stat: str) -> str:
    """Git's lines about each file; its last one adds up what the line above them says already."""
    lines = stat.rstrip("\n").split("\n")
    return "\n".join(line for line in lines if not SUM.fullmatch(line))


def answers(gate: Gate, signed: Mapping[str, SignatureMark], cells: int, *, color: bool) -> str:
    parts = []
    if gate.answer is not None:
        parts.append(section("Answer", answer_part(gate, gate.answer, signed, cells), color=color))
    elif gate.votes:
        votes = "\n".join(answer_part(gate, vote, signed, cells) for vote in gate.votes)
        parts.append(
            section(f"Answers so far ({len(gate.votes)} of {gate.opened.quorum})", votes, color=color)
        )
    if gate.closing is not None:
        parts.append(section("How it ended", ended(gate, gate.closing, cells), color=color))
    if gate.late:
        late = "\n".join(answer_part(gate, vote, signed, cells) for vote in gate.late)
        parts.append(section("Late, with no effect", late, color=color))
    return "\n\n".join(part for part in parts if part)


def ended(gate: Gate, closing: Remark, cells: int) -> str:
    lines = [f"  {gate.state}: {neutral(closing.text)}"]
    if closing.session is not None:
        lines += [
            talked(closing.session, cells),
            f"  — {one_line(who_ended(closing) or 'nobody')}, {closing.at}",
        ]
    return "\n".join(lines)


def answer_part(gate: Gate, counted: Counted, signed: Mapping[str, SignatureMark], cells: int) -> str:
    answer: Answer = counted.answer
    several = len(gate.opened.questions) > 1
    lines = []
    for question in gate.opened.questions:
        lead = f"[{question.key}] " if several else ""
        lines.append(wrap(lead + neutral(value_words(answer.values.get(question.key))), cells, "  "))
    if answer.note:
        lines.append(wrap(neutral(answer.note), cells, "  "))
    if answer.session is not None:
        lines.append(talked(answer.session, cells))
    mark = one_line(signed.get(counted.signed_commit, UNSIGNED).words)
    # A default never looks like a person: nobody's name stands under it.
    who = (
        f"{one_line(answer.by)} ({mark})"
        if answer.by
        else "nobody: the declared default, when the deadline passed"
    )
    who = who if answer.confirmed or not answer.by else f"nobody confirmed it; recorded for {who}"
    lines.append(wrap(f"— {who}, {answer.at}, by {one_line(answer.via)}", cells, "  "))
    return "\n".join(lines)


def how(gate: Gate, cells: int, *, color: bool) -> str:
    if gate.state not in ("failed", "awaiting"):
        return ""
    title, lines = (
        ("What can be done", after_failure(gate))
        if gate.state == "failed"
        else ("How to answer", ways_to_answer(gate))
    )
    return section(title, "\n".join(hang(line, cells, "  ") for line in lines), color=color)


def history(gate: Gate, cells: int) -> str:
    lines = []
    for entry in gate.history:
        shape = event(entry)
        by = one_line(str(shape["by"] or "nobody").partition(" <")[0])
        said = event_words(shape)
        words = f": {one_line(said, 60)}" if said else ""
        told = f"{shape['at']}  {entry.name:<10} {by}{words}  ({entry.commit[:10]})"
        lines.append(hang(told, cells, "  "))
    return "\n".join(lines)


NARROW = 72


def trail_line(event: Mapping[str, object], cells: int = 10_000, *, color: bool = False) -> str:
    """One event, its words cut to what the line has left."""
    name = str(event["event"])
    who = one_line(str(event.get("by") or "nobody").partition(" <")[0])
    words = one_line(" · ".join(event_words(event).split("\n")))
    mark = event.get("signature")
    if isinstance(mark, Mapping):
        who = f"{who} ({one_line(str(mark['verdict']))})"
    at, gate = str(event["at"]), str(event["gate"])
    if cells < NARROW:  # to the minute, and of the id what a person types
        at, gate = at[:16] + at[-1:], gate[:6]
    head = f"{at}  {gate[:10]}  "
    painted = paint(f"{name:<10}", traits(name).color, on=color)
    left = max(1, cells - width(head) - max(len(name), 10) - 1)
    return f"{head}{painted} {clip(f'{who}: {words}' if words else who, left)}"


def trail(events: Sequence[Mapping[str, object]], cells: int, *, color: bool = False) -> list[str]:
    return [trail_line(event, cells, color=color) for event in events]
