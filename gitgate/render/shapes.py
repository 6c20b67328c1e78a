"""Render: the JSON and XML that scripts rely on. They are apart from the domain, so that either may change alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from ..document import names_of
from ..errors import Usage
from ..model import UNSIGNED, VERIFIED, SignatureMark
from ..model.gate import (
    BY_NOBODY,
    PROPOSED,
    Answer,
    Asker,
    Claim,
    Conversation,
    Counted,
    Entry,
    Gate,
    Opened,
    Outcome,
    Question,
    Remark,
    Talk,
    Work,
)
from ..questions.file import RECORDED
from ..questions.types import TYPES
from ..text import format_duration, indent, neutral, one_line, parse_time, wrap

Json = dict[str, object]


def gate(
    given: Gate,
    *,
    pushed: bool = False,
    session_id: str | None = None,
    saved: bool | None = None,
    signed: Mapping[str, SignatureMark] | None = None,
    archived: bool = False,
    transcript: bool = True,
    comes_back: Mapping[str, Sequence[str]] | None = None,
) -> Json:
    """Everything about a gate but its history. `signed`: by commit, what its signature is worth. `comes_back`: what of the
    work its files do not show, by kind; None where nobody looked.

    Without `transcript` what was said in a conversation is left out: a list of gates would be long.
    """
    opened, session = given.opened, given.opened.session
    marks = signed or {}
    shape: Json = {
        "id": given.id,
        "state": given.state,
        "title": opened.title,
        "questions": [question_shape(item) for item in opened.questions],
        "context": opened.context,
        "asked": asker_shape(opened.asked),
        "work": work_shape(opened.work, comes_back),
        "session": {
            "agent": session.agent if session else None,
            "id": session_id,
            "saved": says_saved(given) if saved is None else saved,
        },
        "delivery": opened.delivery,
        "priority": given.priority,
        "confidence": opened.confidence,
        "to": list(given.to),
        "deadline": given.deadline,
        "later": given.later,
        "on_timeout": opened.on_timeout,
        "answer": answer_shape(given.answer, marks, transcript=transcript) if given.answer else None,
        "answers": [answer_shape(vote, marks, transcript=transcript) for vote in given.votes],
        "late": [answer_shape(vote, marks, transcript=transcript) for vote in given.late],
        "needed": opened.quorum,
        "claim": claim(given),
        "resume": resume(given),
        "closing": closing(given.closing, transcript=transcript) if given.closing else None,
        "proposal": proposal(given),
        "key": opened.key,
        "key_for": opened.key_for,
        "attachments": list(opened.attachments),
        "pushed": pushed,
        "archived": archived,
        "follows": opened.follows,
        "forked_from": opened.forked_from or None,
        "run": run_named(opened),
        "tip": given.tip,
    }
    more = {row.name: getattr(opened, row.name) for row in RECORDED if row.shown and row.name not in shape}
    return {**shape, **more}


def run_named(opened: Opened) -> Json | None:
    """The run of a flow that asks, and by which step; None where none does."""
    if not opened.run:
        return None
    flow, step = opened.config.get("flow"), opened.config.get("step")
    return {"id": opened.run, "flow": flow or None, "step": step or None}


def asker_shape(given: Asker) -> Json:
    return {
        "by": given.by,
        "logins": list(given.logins),
        "agent": given.agent,
        "at": given.at,
        "host": given.host,
        "directory": given.directory,
    }


def work_shape(given: Work, comes_back: Mapping[str, Sequence[str]] | None = None) -> Json:
    hidden = {name: list(comes_back[name]) if comes_back else None for name in ("staged_only", "in_conflict")}
    return {
        "branch": given.branch,
        "base": given.base,
        "staged": given.staged,
        "commit": given.commit,
        "dirty": given.changed,
        "files": given.files,
        "insertions": given.insertions,
        "deletions": given.deletions,
        "left_out": [{"path": path, "reason": reason} for path, reason in given.left_out],
        **hidden,
    }


def says_saved(given: Gate) -> bool:
    """Return whether the gate's record says that the conversation was saved when it was asked."""
    return given.opened.session is not None and given.opened.session.saved


def question_shape(given: Question) -> Json:
    shape: Json = {
        "key": given.key,
        "prompt": given.prompt,
        "type": given.type,
        "options": [{"label": option.label, "description": option.description} for option in given.options],
        "default": given.default,
    }
    if TYPES[given.type].has_options:
        shape["other"] = given.other
    if given.schema is not None:
        shape["schema"] = dict(given.schema)
    if given.type == "session":
        shape["talk"] = talk_shape(given.talk)
    return shape


def conversation_shape(given: Conversation | None, *, transcript: bool = True) -> Json | None:
    """Return how a conversation was held; most gates have none, and their shapes load nothing for it."""
    if given is None:
        return None

    return held_shape(given, transcript=transcript)


def proposal(gate: Gate) -> Json | None:
    """Return the value that a conversation proposed and nobody has confirmed, while the gate waits. It approves
    nothing.
    """
    from ..questions.answers import proposal_of

    said = proposal_of(gate)
    if said is None or said.session is None:
        return None
    held = said.session
    return {
        "value": held.value,
        "agent": held.agent,
        "by": said.by or None,
        "at": said.at,
        **{name: getattr(held, name) for name in ("status", "summary", "reason", "message", "source")},
        "approved": False,
        "confirmed": False,
    }


def held_of(gate: Gate) -> Conversation | None:
    """Return the conversation that ended this gate."""
    if gate.answer is not None:
        return gate.answer.answer.session
    return gate.closing.session if gate.closing is not None else None


def closing(given: Remark, *, transcript: bool = True) -> Json:
    session = conversation_shape(given.session, transcript=transcript)
    return {"by": who_ended(given), "at": given.at, "reason": given.text, "session": session}


def who_ended(given: Remark) -> str | None:
    """Nobody, where a session's time was over: whoever had opened it did not end the gate."""
    over = given.session is not None and given.session.outcome == "timeout"
    return None if over else given.by


def answer_shape(counted: Counted, signed: Mapping[str, SignatureMark], *, transcript: bool = True) -> Json:
    said: Answer = counted.answer
    mark = signed.get(counted.signed_commit, UNSIGNED)
    return {
        "values": dict(said.values),
        "verdict": said.verdict,
        "approved": said.approved,
        "confirmed": said.confirmed,
        "note": said.note,
        "by": said.by or None,
        "via": said.via,
        "at": said.at,
        "seen": said.seen,
        "signed": mark.word == VERIFIED,
        "signature": signature_shape(mark),
        "evidence": dict(said.evidence),
        "session": conversation_shape(said.session, transcript=transcript),
        "commit": counted.commit,
    }


def signature_shape(mark: SignatureMark) -> Json:
    return {"verdict": mark.word, "by": mark.by or None, "key": mark.key or None}


def claim(given: Gate) -> Json | None:
    if given.claim is None or not isinstance(given.claim.event, Claim) or given.state != "resuming":
        return None
    event = given.claim.event
    return {
        "runner": event.runner,
        "host": event.host,
        "attempt": event.attempt,
        "at": event.at,
        "term": event.term,
        "by": event.by,
        "commit": given.claim.commit,
    }


def resume(given: Gate) -> Json | None:
    """Return the last claim on the answer with its outcome; None without a claim."""
    claims = [entry for entry in given.events if isinstance(entry.event, Claim)]
    if not claims or not isinstance(claims[-1].event, Claim):
        return None
    last = claims[-1].event
    outcomes = [
        e.event for e in given.events if isinstance(e.event, Outcome) and e.event.claim == claims[-1].commit
    ]
    ended = outcomes[-1] if outcomes else None
    return {
        "runner": last.runner,
        "host": last.host,
        "attempt": last.attempt,
        "log": ended.log if ended else "",
        "outcome": ended.result if ended else None,
        "reason": ended.reason if ended else "",
        "branch": ended.branch if ended else "",
        "commits": list(ended.commits) if ended else [],
        "said": ended.said if ended else "",
        "denied": list(ended.denied) if ended else [],
        "left": list(ended.left) if ended else [],
        "place": ended.place if ended else "",
        "meant": ended.meant if ended else "",
    }


def history(entries: tuple[Entry, ...]) -> list[Json]:
    return [event(entry) for entry in entries]


def event(entry: Entry) -> Json:
    given = entry.event
    asked = getattr(given, "asked", None)
    by = who_ended(given) if isinstance(given, Remark) else getattr(given, "by", "")
    shape: Json = {
        "event": entry.name,
        "at": asked.at if asked else getattr(given, "at", ""),
        "by": (asked.by or asked.agent) if asked else by or None,
        "commit": entry.commit,
    }
    words = getattr(given, "text", "") or getattr(given, "reason", "") or getattr(given, "note", "")
    if words:
        shape["text"] = words
    if (talked := getattr(given, "session", None)) is not None and not isinstance(given, Opened):
        shape["session"] = conversation_shape(talked, transcript=False)
    return shape


def event_words(event: Mapping[str, object]) -> str:
    """Return the words for an event of the history, with how long people talked to get there."""
    text, talked = str(event.get("text") or ""), event.get("session")
    if not isinstance(talked, Mapping):
        return text
    seconds, summary = talked.get("seconds"), str(talked.get("summary") or "")
    lasted = format_duration(seconds) if isinstance(seconds, int) else "?"
    said_so = talked.get("confirmed", True) or talked.get("outcome") in BY_NOBODY
    doubt = "" if said_so else ", nobody confirmed it"
    told = f"{text} ({talked.get('outcome')} after {lasted}{doubt})".strip()
    return f"{told} · {summary}" if summary and summary != text else told


def error(code: str, message: str, hint: str) -> Json:
    return {"schema": "gitgate.error/v1", "error": {"code": code, "message": message, "hint": hint}}


def thing(name: str, fields: Mapping[str, object]) -> Json:
    """One object of the contract: `{"schema": "gitgate.<thing>/v1", …}`."""
    return {"schema": f"gitgate.{name}/v1", **fields}


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
    return {name: getattr(talk, name) for name in names_of(talk)}


def held_shape(held: Conversation | None, *, transcript: bool = True) -> Json | None:
    if held is None:
        return None
    hidden = () if held.outcome == PROPOSED else ("agent", "value")
    shape: Json = {name: getattr(held, name) for name in names_of(held) if name not in hidden}
    if not transcript:
        del shape["transcript"]
    return {**shape, "source": held.source or None}


def talk_terms(question: Question, cells: int, *, several: bool = False) -> str:
    """Return the terms for the conversation about this question."""
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
    """Return the beginning of a context as JSON; `show --json` has all."""
    text = json.dumps(context, ensure_ascii=False, indent=2)
    return neutral(text if len(text) <= MOST_CONTEXT else text[:MOST_CONTEXT] + "\n… (all of it: --json)")


def lasting(talk: Talk) -> str:
    if talk.timeout is None:
        return ""
    return f"at most {format_duration(talk.timeout)}, and {format_duration(talk.grace)} to come to an end"


def servers(mcp: Mapping[str, object]) -> str:
    named = mcp.get("mcpServers")
    return one_line(", ".join(map(str, named)), 200) if isinstance(named, Mapping) and named else "none"


def held_line(held: Conversation) -> str:
    """Return how a conversation was held, in a line: `conversation of 5m42s · NEEDS_REVIEW · read from …`."""
    took = f"conversation of {format_duration(held.seconds)}"
    how = READ_FROM.get(held.source, "")
    words = [
        took if held.outcome == "completed" else f"{held.outcome}, {took}",
        one_line(held.status, 64),
        f"read {how}" if how else "",
        "" if held.confirmed or held.outcome in BY_NOBODY else "nobody confirmed it",
        "transcript kept: --json" if held.transcript else "",
    ]
    return " · ".join(word for word in words if word)


def held_lines(held: Conversation, cells: int) -> str:
    """Return the lines about a conversation: how it was held, its summary, its reason and its message."""
    said = {"summary": held.summary, "reason": held.reason, "message": held.message}
    lines = [wrap(held_line(held), cells, "  ")]
    lines += [wrap(f"{name}: {neutral(words)}", cells, "  ") for name, words in said.items() if words]
    return "\n".join(lines)


# What XML 1.0 has no way to write, not even escaped. Compiled where XML is written: that takes longer than to make JSON.
IMPOSSIBLE = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
STATUS = {"awaiting": "pending", "withdrawn": "cancelled", "stopped": "cancelled", "expired": "timeout"}
WORK = ("branch", "base", "commit", "dirty", "files", "insertions", "deletions")
ANSWER = ("verdict", "approved", "confirmed", "by", "via", "at", "signed", "commit")
PROPOSAL = ("approved", "agent", "at", "status", "source", "summary")
HELD = ("status", "summary", "reason", "message")
OUTCOME = {"answered": "completed"}


def document(shape: Mapping[str, object]) -> str:
    """`shape` is what `show --json` prints. One element a question, in the order they were asked."""
    questions = mappings_in(shape.get("questions"))
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    head = attributes(
        id=shape.get("id"), state=shape.get("state"), status=status(shape), title=shape.get("title")
    )
    lines.append(f"<gate{head}>")
    lines += ["  " + line for question in questions for line in interaction(question, shape)]
    lines += ["  " + line for line in circumstance_elements(shape)]
    lines.append("</gate>")
    return "\n".join(lines)


def interaction(question: Mapping[str, object], shape: Mapping[str, object]) -> Iterator[str]:
    said = mapping(shape.get("answer"))
    values = mapping(said.get("values"))
    kind = "interactive_session" if question.get("type") == "session" else question.get("type")
    yield f"<human-interaction{attributes(key=question.get('key'), type=kind, status=status(shape))}>"
    yield "  " + element("prompt", question.get("prompt"))
    for option in mappings_in(question.get("options")):
        yield "  " + element("option", option.get("description") or "", label=option.get("label"))
    yield from ("  " + line for line in config(question, shape))
    held = conversation_element(shape) if question.get("type") == "session" else {}
    if said:
        yield "  " + element("outcome", OUTCOME.get(str(said.get("verdict")), said.get("verdict")))
    elif held:
        yield "  " + element("outcome", held.get("outcome"))
    if (spent := in_milliseconds(held.get("seconds")) if held else duration(shape)) is not None:
        yield "  " + element("duration", spent)
    if question.get("key") in values:
        yield "  " + element("response", values[str(question.get("key"))])
    yield from ("  " + element(name, held.get(name)) for name in HELD if held.get(name))
    if not said and not held.get("message"):
        yield "  " + element("message", message(shape, question))
    yield "</human-interaction>"


def conversation_element(shape: Mapping[str, object]) -> Mapping[str, object]:
    """Return the conversation that ended the gate, with an answer or without."""
    return mapping(mapping(shape.get("answer") or shape.get("closing")).get("session"))


def config(question: Mapping[str, object], shape: Mapping[str, object]) -> Iterator[str]:
    """Yield the question's terms as XML, apart from its text."""
    said = {
        "priority": shape.get("priority"),
        "deadline": shape.get("deadline"),
        "on-timeout": shape.get("on_timeout") if shape.get("deadline") else None,
        "delivery": shape.get("delivery"),
        "confidence": shape.get("confidence"),
        "default": question.get("default"),
        "schema": question.get("schema"),
        **talk_config(mapping(question.get("talk"))),
    }
    yield "<config>"
    for name, value in said.items():
        if value is not None:
            yield "  " + element(name, value)
    yield "</config>"


def talk_config(talk: Mapping[str, object]) -> dict[str, object]:
    """The terms of a conversation that were set, durations in milliseconds as they are elsewhere in this form."""
    lasts = talk.get("timeout")
    said = {
        "outcome-type": talk.get("outcome"),
        "model": talk.get("model"),
        "cwd": talk.get("cwd"),
        "timeout": in_milliseconds(lasts),
        "grace": in_milliseconds(talk.get("grace")) if lasts else None,
        "system-prompt": talk.get("system"),
        "session-context": talk.get("context"),
        "mcp-config": talk.get("mcp"),
        "resume-session": talk.get("resume"),
        "capture-transcript": talk.get("transcript") or None,
        "checkpoint": talk.get("checkpoint") or None,
    }
    return {name: value for name, value in said.items() if value != ""}


def in_milliseconds(seconds: object) -> int | None:
    return seconds * 1000 if isinstance(seconds, int) else None


def circumstance_elements(shape: Mapping[str, object]) -> Iterator[str]:
    asked, work, said = mapping(shape.get("asked")), mapping(shape.get("work")), mapping(shape.get("answer"))
    if shape.get("context"):
        yield element("context", shape["context"])
    yield f"<asked{attributes(by=asked.get('by') or None, agent=asked.get('agent'), at=asked.get('at'))}/>"
    yield f"<work{attributes(**{name: work.get(name) for name in WORK})}/>"
    if said:
        yield element("answer", said.get("note") or "", **{name: said.get(name) for name in ANSWER})
    if proposed := mapping(shape.get("proposal")):
        yield element("proposal", proposed.get("value"), **{name: proposed.get(name) for name in PROPOSAL})
    if closing := mapping(shape.get("closing")):
        yield element("closing", closing.get("reason"), by=closing.get("by"), at=closing.get("at"))
    for event in mappings_in(shape.get("history")):
        names = {
            "name": event.get("event"),
            "at": event.get("at"),
            "by": event.get("by"),
            "commit": event.get("commit"),
        }
        yield element("event", event.get("text") or "", **names)


def status(shape: Mapping[str, object]) -> str:
    held = mapping(mapping(shape.get("closing")).get("session"))
    return str(held["outcome"]) if held.get("outcome") else STATUS.get(str(shape.get("state")), "completed")


def message(shape: Mapping[str, object], question: Mapping[str, object]) -> str:
    state = str(shape.get("state"))
    if state != "awaiting":
        why = mapping(shape.get("closing")).get("reason") if question.get("type") == "session" else ""
        return f"Closed without an answer: {state}{f': {why}' if why else '.'}"
    if question.get("type") == "session":
        return f"Waiting for the session to be held: git gate join {str(shape.get('id'))[:6]}"
    return "Waiting for an answer."


def duration(shape: Mapping[str, object]) -> int | None:
    """Milliseconds from the question to its answer."""
    asked, said = mapping(shape.get("asked")), mapping(shape.get("answer"))
    try:
        return max(0, int((parse_time(str(said.get("at"))) - parse_time(str(asked.get("at")))) * 1000))
    except Usage:
        return None


def element(name: str, value: object, /, **given: object) -> str:
    body = escaped(text_or_json(value))
    return f"<{name}{attributes(**given)}>{body}</{name}>" if body else f"<{name}{attributes(**given)}/>"


def attributes(**given: object) -> str:
    return "".join(
        f' {name.replace("_", "-")}="{escaped(text_or_json(value), attribute=True)}"'
        for name, value in given.items()
        if value is not None
    )


def text_or_json(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def escaped(text: str, *, attribute: bool = False) -> str:
    r"""Text as XML: what cannot be there is spelt out (`\x1b`); what hides or acts is a reference, exact and harmless."""
    text = re.sub(IMPOSSIBLE, lambda found: spelt(ord(found.group())), text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")
    if neutral(text) != text:
        text = "".join(
            character if character == neutral(character) else f"&#{ord(character)};" for character in text
        )
    if attribute:
        text = text.replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")
    return text


def spelt(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def mappings_in(value: object) -> list[Mapping[str, object]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, (list, tuple)) else []
