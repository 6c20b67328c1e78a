"""Render: the JSON shapes that scripts rely on. They are apart from the domain, so that either may change alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..core.marks import UNSIGNED, VERIFIED, Mark
from ..core.model import Answer, Asker, Claim, Counted, Entry, Gate, Opened, Outcome, Question, Remark, Work

if TYPE_CHECKING:
    from ..core.talks import Held

Json = dict[str, object]


def gate(
    given: Gate,
    *,
    pushed: bool = False,
    session_id: str | None = None,
    saved: bool | None = None,
    signed: Mapping[str, Mark] | None = None,
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
    return {
        "id": given.id,
        "state": given.state,
        "title": opened.title,
        "questions": [question(item) for item in opened.questions],
        "context": opened.context,
        "asked": asked(opened.asked),
        "work": work(opened.work, comes_back),
        "session": {
            "agent": session.agent if session else None,
            "id": session_id,
            "saved": named(given) if saved is None else saved,
        },
        "delivery": opened.delivery,
        "priority": given.priority,
        "confidence": opened.confidence,
        "to": list(given.to),
        "deadline": given.deadline,
        "on_timeout": opened.on_timeout,
        "answer": answer(given.answer, marks, transcript=transcript) if given.answer else None,
        "answers": [answer(vote, marks, transcript=transcript) for vote in given.votes],
        "late": [answer(vote, marks, transcript=transcript) for vote in given.late],
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


def asked(given: Asker) -> Json:
    return {
        "by": given.by,
        "logins": list(given.logins),
        "agent": given.agent,
        "at": given.at,
        "host": given.host,
        "directory": given.directory,
    }


def work(given: Work, comes_back: Mapping[str, Sequence[str]] | None = None) -> Json:
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


def named(given: Gate) -> bool:
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
    if given.type in ("choice", "choices"):
        shape["other"] = given.other
    if given.schema is not None:
        shape["schema"] = dict(given.schema)
    if given.type == "session":
        from .talks import talk_shape

        shape["talk"] = talk_shape(given.talk)
    return shape


def held(given: Held | None, *, transcript: bool = True) -> Json | None:
    """How a conversation was held; most gates have none, and their shapes load nothing for it."""
    if given is None:
        return None
    from .talks import held_shape

    return held_shape(given, transcript=transcript)


def proposal(gate: Gate) -> Json | None:
    """What a conversation proposed and nobody has confirmed, while the gate waits. It approves nothing."""
    from ..core.endings import proposal_of

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


def held_of(gate: Gate) -> Held | None:
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


def answer(counted: Counted, signed: Mapping[str, Mark], *, transcript: bool = True) -> Json:
    said: Answer = counted.answer
    mark = signed.get(counted.signed_commit, UNSIGNED)
    return {
        "values": dict(said.values),
        "verdict": said.verdict,
        "approved": said.verdict == "approved" and said.confirmed,
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


def words_of(event: Mapping[str, object]) -> str:
    """What an event of the history says, in words, with how long people talked to get there."""
    text, talked = str(event.get("text") or ""), event.get("session")
    if not isinstance(talked, Mapping):
        return text
    from ..core.times import format_duration

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
