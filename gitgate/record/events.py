"""Record: each event as a file, and back; one row an event. The question's own file is told in `questions.file`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..document import codec
from ..document.field import (
    MOST_READ,
    Field,
    digest,
    mapping,
    moment,
    oid,
    oids,
    one_of,
    text_or_empty,
    texts,
)
from ..document.values import NamedTuple, names_of, replace
from ..errors import BadDocument
from ..model.gate import Answer, Claim, Edit, Event, Opened, Outcome, Remark, Value
from ..model.states import OUTCOMES, PRIORITIES, VERDICTS
from ..questions.file import parse_opened, plain_opened

if TYPE_CHECKING:
    from ..model.conversation import Conversation


VERSION = 1


class EventKind(NamedTuple):
    """How an event's name goes with its folder and its file."""

    name: str
    folder: str
    parse: Callable[[Field], Event]


def dump_event(event: Event) -> bytes:
    """The file of an event."""
    return codec.dump_document(
        {"hitl": VERSION, **{k: v for k, v in plain_event(event).items() if v not in (None, "", [], {})}}
    )


def plain_event(event: Event) -> dict[str, object]:
    if isinstance(event, Opened):
        return plain_opened(event)
    if isinstance(event, Answer):
        return {
            "gate": event.gate,
            "values": dict(event.values),
            "verdict": event.verdict,
            "note": event.note,
            "by": event.by,
            "via": event.via,
            "at": event.at,
            "seen": event.seen,
            "amends": event.amends,
            "evidence": dict(event.evidence),
            "session": plain_session(event.session),
        }
    if isinstance(event, Remark):
        said = {"at": event.at, "by": event.by, "text": event.text, "via": event.via}
        return {**said, "session": plain_session(event.session)}
    if isinstance(event, Edit):
        listed = None if event.to is None else {"to": list(event.to) or "anyone"}
        fields = {"at": event.at, "by": event.by, **(listed or {}), "priority": event.priority}
        return {
            **fields,
            "deadline": cleared(event.deadline),
            "timeout": event.timeout,
            "later": "now" if event.later == "" else event.later,
        }
    flat = {name: getattr(event, name) for name in names_of(event)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in flat.items()}


def plain_session(held: Conversation | None) -> dict[str, object] | None:
    if held is None:
        return None
    from ..model.conversation import plain_held

    return plain_held(held)


def parse_session(root: Field, *endings: str) -> Conversation | None:
    """How a conversation went that ended with this event."""
    found = root.get("session")
    if found is None:
        return None
    from ..model.conversation import parse_held

    return parse_held(found, endings)


def cleared(deadline: str | None) -> str | None:
    return "never" if deadline == "" else deadline


def parse_answer(root: Field) -> Answer:
    values = root.need("values")
    return Answer(
        gate=root.need("gate").text(most=20),
        values={key: as_value(field) for key, field in values.mapping().items()},
        verdict=root.need("verdict").one_of(VERDICTS),
        at=moment(root.need("at")),
        seen=oid(root, "seen") or root.fail("expected the commit that was seen"),
        by=text_or_empty(root, "by"),
        via=text_or_empty(root, "via") or "cli",
        note=text_or_empty(root, "note", MOST_READ),
        amends=oid(root, "amends"),
        evidence=mapping(root, "evidence"),
        session=parse_session(root, "completed"),
    )


def parse_remark(root: Field) -> Remark:
    return Remark(
        at=moment(root.need("at")),
        by=text_or_empty(root, "by"),
        text=text_or_empty(root, "text", MOST_READ),
        via=text_or_empty(root, "via") or "cli",
    )


def parse_comment(root: Field) -> Remark:
    """A remark may be what a conversation proposed, and nobody has confirmed."""
    return replace(parse_remark(root), session=parse_session(root, "proposed", "left"))


def parse_stop(root: Field) -> Remark:
    """A stop may be the end of a conversation that came to no answer."""
    return replace(parse_remark(root), session=parse_session(root, "cancelled", "timeout"))


def parse_edit(root: Field) -> Edit:
    to, deadline, timeout = root.get("to"), root.get("deadline"), root.get("timeout")
    later = root.get("later")
    listed = None if to is None else (() if to.value == "anyone" else texts(root, "to"))
    return Edit(
        at=moment(root.need("at")),
        by=text_or_empty(root, "by"),
        to=listed,
        priority=one_of(root, "priority", PRIORITIES, "") or None,
        deadline=None if deadline is None else "" if deadline.value == "never" else moment(deadline),
        timeout=timeout.integer(0, 10**10) if timeout else None,
        later=None if later is None else "" if later.value == "now" else moment(later),
    )


def parse_reminder(root: Field) -> Edit:
    """A reminder moves the deadline, or puts the gate aside as well, and nothing else: it is nobody's wish."""
    later = root.get("later")
    return Edit(
        at=moment(root.need("at")),
        deadline=moment(root.need("deadline")),
        later=moment(later) if later is not None else None,
    )


def parse_claim(root: Field) -> Claim:
    return Claim(
        at=moment(root.need("at")),
        answer=oid(root, "answer") or root.fail("expected the commit of the answer"),
        nonce=root.need("nonce").text(most=100),
        runner=root.need("runner").text(most=100),
        host=text_or_empty(root, "host"),
        attempt=root.need("attempt").integer(1, 10**6),
        term=root.need("term").integer(1, 10**7),
        by=text_or_empty(root, "by"),
        anchor=digest(root, "anchor"),
    )


def parse_outcome(root: Field) -> Outcome:
    return Outcome(
        at=moment(root.need("at")),
        claim=oid(root, "claim") or root.fail("expected the commit of the claim"),
        result=root.need("result").one_of(OUTCOMES),
        by=text_or_empty(root, "by"),
        reason=text_or_empty(root, "reason", MOST_READ),
        log=text_or_empty(root, "log", 4096),
        branch=text_or_empty(root, "branch", 1000),
        commits=oids(root, "commits"),
        reveal=digest(root, "reveal"),
        said=text_or_empty(root, "said", MOST_READ),
        denied=texts(root, "denied"),
        left=texts(root, "left"),
        place=text_or_empty(root, "place", 4096),
        meant=text_or_empty(root, "meant", 1000),
    )


KINDS = (
    EventKind("answered", "answers", parse_answer),
    EventKind("commented", "comments", parse_comment),
    EventKind("edited", "edits", parse_edit),
    EventKind("reminded", "reminders", parse_reminder),
    EventKind("withdrawn", "withdrawals", parse_remark),
    EventKind("stopped", "stops", parse_stop),
    EventKind("expired", "expiries", parse_remark),
    EventKind("claimed", "claims", parse_claim),
    EventKind("outcome", "outcomes", parse_outcome),
)
BY_FOLDER = {kind.folder: kind for kind in KINDS}
FOLDER_OF = {kind.name: kind.folder for kind in KINDS}


def parse_event(folder: str | None, data: bytes, source: str) -> Event:
    """The event that this file is: `question.yaml` when there is no folder."""
    root = codec.parse_document(data, source)
    version = root.need("hitl")
    if type(version.value) is not int or version.value != VERSION:
        version.fail(f"this gitgate reads version {VERSION} of the format; upgrade it to read this gate")
    if folder is None:
        return parse_opened(root)
    if folder not in BY_FOLDER:
        raise BadDocument(source, 0, "", f"{folder}/ is not a folder of events")
    return BY_FOLDER[folder].parse(root)


def as_value(field: Field) -> Value:
    value = field.plain()
    if isinstance(value, (str, bool, dict)):
        return value
    if isinstance(value, list):
        labels = [part for part in value if isinstance(part, str)]
        if len(labels) == len(value):
            return labels
    return field.fail("expected text, true or false, a list of labels, or a form")
