"""Render: the JSON shapes that scripts rely on. They are apart from the domain, so that either may change alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ..model.conversation import PROPOSED, Conversation, Talk
from ..model.gate import Answer, Asker, Claim, Counted, Entry, Gate, Opened, Outcome, Question, Remark, Work
from ..model.people import UNSIGNED, VERIFIED, SignatureMark
from ..questions.file import RECORDED
from ..questions.types import TYPES
from ..text.display import indent, neutral, one_line, wrap
from ..text.times import format_duration

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
        "questions": [question(item) for item in opened.questions],
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
        "tip": given.tip,
    }
    more = {row.name: getattr(opened, row.name) for row in RECORDED if row.shown and row.name not in shape}
    return {**shape, **more}


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
    """Whether its record says that the conversation was saved, when it was asked."""
    return given.opened.session is not None and given.opened.session.saved


def question(given: Question) -> Json:
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


def held(given: Conversation | None, *, transcript: bool = True) -> Json | None:
    """How a conversation was held; most gates have none, and their shapes load nothing for it."""
    if given is None:
        return None

    return held_shape(given, transcript=transcript)


def proposal(gate: Gate) -> Json | None:
    """What a conversation proposed and nobody has confirmed, while the gate waits. It approves nothing."""
    from ..questions.endings import proposal_of

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
    """How the conversation was held that came to this gate's end."""
    if gate.answer is not None:
        return gate.answer.answer.session
    return gate.closing.session if gate.closing is not None else None


def closing(given: Remark, *, transcript: bool = True) -> Json:
    session = held(given.session, transcript=transcript)
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
        "signature": {"verdict": mark.word, "by": mark.by or None, "key": mark.key or None},
        "evidence": dict(said.evidence),
        "session": held(said.session, transcript=transcript),
        "commit": counted.commit,
    }


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
    """What came of acting on the answer: the last claim, with its outcome."""
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
        shape["session"] = held(talked, transcript=False)
    return shape


def event_words(event: Mapping[str, object]) -> str:
    """What an event of the history says, in words, with how long people talked to get there."""
    text, talked = str(event.get("text") or ""), event.get("session")
    if not isinstance(talked, Mapping):
        return text
    from ..text.times import format_duration

    seconds, summary = talked.get("seconds"), str(talked.get("summary") or "")
    lasted = format_duration(seconds) if isinstance(seconds, int) else "?"
    said_so = talked.get("confirmed", True) or talked.get("outcome") == "proposed"
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
    return {name: getattr(talk, name) for name in talk.__dataclass_fields__}


def held_shape(held: Conversation | None, *, transcript: bool = True) -> Json | None:
    if held is None:
        return None
    hidden = () if held.outcome == PROPOSED else ("agent", "value")
    shape: Json = {name: getattr(held, name) for name in held.__dataclass_fields__ if name not in hidden}
    if not transcript:
        del shape["transcript"]
    return {**shape, "source": held.source or None}


def talk_terms(question: Question, cells: int, *, several: bool = False) -> str:
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


def held_line(held: Conversation) -> str:
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


def held_lines(held: Conversation, cells: int) -> str:
    """The same, with what was said of it."""
    said = {"summary": held.summary, "reason": held.reason, "message": held.message}
    lines = [wrap(held_line(held), cells, "  ")]
    lines += [wrap(f"{name}: {neutral(words)}", cells, "  ") for name, words in said.items() if words]
    return "\n".join(lines)
