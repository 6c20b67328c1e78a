"""Core: each event as a file, and back. The only place that knows the fields' names; one row an event."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..errors import BadAnswer, BadDocument
from . import codec
from .codec import Field
from .model import (
    Answer,
    Asker,
    Claim,
    Edit,
    Event,
    Opened,
    Option,
    Outcome,
    Question,
    Remark,
    Session,
    Value,
    Work,
)
from .questions import ALIASES, TYPES, read_value, type_name
from .words import DELIVERIES, ON_TIMEOUT, OUTCOMES, PRIORITIES, VERDICTS

VERSION = 1
MOST_QUESTIONS = 20
MOST_OPTIONS = 100
MOST_TEXT = 256 * 1024
KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Kind(NamedTuple):
    """How an event's name goes with its folder and its file."""

    name: str
    folder: str
    parse: Callable[[Field], Event]


def dump(event: Event) -> bytes:
    """The file of an event."""
    return codec.dump(
        {"hitl": VERSION, **{k: v for k, v in plain(event).items() if v not in (None, "", [], {})}}
    )


def plain(event: Event) -> dict[str, object]:
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
        }
    if isinstance(event, Edit):
        listed = None if event.to is None else {"to": list(event.to) or "anyone"}
        fields = {"at": event.at, "by": event.by, **(listed or {}), "priority": event.priority}
        return {**fields, "deadline": cleared(event.deadline), "timeout": event.timeout}
    flat = {name: getattr(event, name) for name in event.__dataclass_fields__}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in flat.items()}


def cleared(deadline: str | None) -> str | None:
    return "never" if deadline == "" else deadline


def plain_opened(opened: Opened) -> dict[str, object]:
    session = opened.session
    return {
        "title": opened.title,
        "questions": [plain_question(question) for question in opened.questions],
        "context": opened.context,
        "asked": filled({n: getattr(opened.asked, n) for n in ("by", "agent", "at", "host", "directory")}),
        "delivery": opened.delivery,
        "priority": opened.priority,
        "confidence": opened.confidence,
        "deadline": opened.deadline,
        "timeout": opened.timeout,
        "on_timeout": opened.on_timeout if opened.deadline else None,
        "to": list(opened.to),
        "quorum": opened.quorum if opened.quorum > 1 else None,
        "key": opened.key,
        "follows": opened.follows,
        "attachments": list(opened.attachments),
        "work": plain_work(opened.work),
        "session": None
        if session is None
        else {n: getattr(session, n) for n in session.__dataclass_fields__},
        "config": dict(opened.config),
        "nonce": opened.nonce,
    }


def plain_question(question: Question) -> dict[str, object]:
    return filled(
        {
            "key": question.key,
            "prompt": question.prompt,
            "type": question.type,
            "options": [filled({"label": o.label, "description": o.description}) for o in question.options],
            "default": question.default,
            "other": question.other if question.type in ("choice", "choices") else None,
            "schema": dict(question.schema) if question.schema is not None else None,
        }
    )


def plain_work(work: Work) -> dict[str, object]:
    return filled(
        {
            "branch": work.branch,
            "base": work.base,
            "staged": work.staged,
            "commit": work.commit,
            "dirty": work.dirty or None,
            "files": work.files or None,
            "insertions": work.insertions or None,
            "deletions": work.deletions or None,
            "left_out": [{"path": path, "reason": reason} for path, reason in work.left_out],
            "intent_to_add": list(work.intent_to_add),
            "operation": work.operation,
        }
    )


def filled(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def parse_opened(root: Field) -> Opened:
    questions = tuple(parse_questions(root.need("questions")))
    work, asked, session = root.get("work"), root.need("asked"), root.get("session")
    confidence, timeout, quorum = root.get("confidence"), root.get("timeout"), root.get("quorum")
    deadline, context, config = root.get("deadline"), root.get("context"), root.get("config")
    return Opened(
        title=root.need("title").text(most=1000),
        questions=questions,
        asked=Asker(**{n: words(asked, n) for n in ("agent", "at", "by", "host", "directory")}),
        work=parse_work(work) if work else Work(None, None, None),
        nonce=root.need("nonce").text(most=100),
        context=context.text(most=MOST_TEXT) if context else "",
        session=parse_session(session) if session else None,
        delivery=one_of(root, "delivery", DELIVERIES, "none"),
        priority=one_of(root, "priority", PRIORITIES, "normal"),
        confidence=confidence.number(0, 1) if confidence else None,
        deadline=deadline.text(most=40) if deadline else None,
        timeout=timeout.integer(1, 10**10) if timeout else None,
        on_timeout=one_of(root, "on_timeout", ON_TIMEOUT, "stuck"),
        to=texts(root, "to"),
        quorum=quorum.integer(1, 100) if quorum else 1,
        key=words(root, "key") or None,
        follows=words(root, "follows") or None,
        attachments=texts(root, "attachments"),
        config=as_object(config.plain()) if config else {},
    )


def parse_questions(listed: Field) -> list[Question]:
    items = listed.items()
    if not 1 <= len(items) <= MOST_QUESTIONS:
        listed.fail(f"expected 1 to {MOST_QUESTIONS} questions, found {len(items)}")
    questions = [parse_question(item) for item in items]
    keys = [question.key for question in questions]
    for index, key in enumerate(keys):
        if key in keys[:index]:
            items[index].need("key").fail(f"each key once; {key!r} is there twice")
    return questions


def parse_question(item: Field) -> Question:
    kind = parse_type(item)
    options = parse_options(item)
    choosing = kind in ("choice", "choices")
    if choosing and len(options) < 1:
        item.fail(f"a {kind} question needs options")
    if options and not choosing:
        item.need("options").fail(f"a {kind} question has no options")
    other, schema = item.get("other"), item.get("schema")
    if kind == "form" and schema is None:
        item.fail("a form question needs a schema")
    question = Question(
        key=parse_key(item),
        prompt=item.need("prompt").text(most=MOST_TEXT),
        type=kind,
        options=options,
        other=choosing and (other.boolean() if other else True),
        schema=as_object(schema.plain()) if schema and kind == "form" else None,
    )
    return with_default(item, question)


def parse_key(item: Field) -> str:
    key = item.need("key").text(most=64)
    if not KEY.fullmatch(key):
        item.need("key").fail("expected letters, digits, dot, dash or underscore")
    return key


def parse_type(item: Field) -> str:
    given = item.get("type")
    if given is None:
        return "choice" if item.get("options") else "text"
    name = type_name(given.text(most=40))
    return name if name is not None else given.one_of((*TYPES, *ALIASES))


def parse_options(item: Field) -> tuple[Option, ...]:
    listed = item.get("options")
    if listed is None:
        return ()
    options = []
    for entry in listed.items():
        if isinstance(entry.value, str):
            options.append(Option(entry.text(most=1000, least=1)))
        else:
            options.append(
                Option(entry.need("label").text(most=1000, least=1), words(entry, "description", MOST_TEXT))
            )
        if options[-1].label.strip().casefold() in [o.label.strip().casefold() for o in options[:-1]]:
            entry.fail(f"each label once; {options[-1].label!r} is there twice")
    if len(options) > MOST_OPTIONS:
        listed.fail(f"expected at most {MOST_OPTIONS} options, found {len(options)}")
    return tuple(options)


def with_default(item: Field, question: Question) -> Question:
    given = item.get("default")
    if given is None:
        return question
    try:
        value = read_value(question, given.plain())
    except BadAnswer as wrong:
        given.fail(wrong.message)
    from dataclasses import replace

    return replace(question, default=value)


def parse_work(item: Field) -> Work:
    left_out = item.get("left_out")
    numbers = {
        n: f.integer(0, 10**12) if (f := item.get(n)) else 0 for n in ("files", "insertions", "deletions")
    }
    dirty = item.get("dirty")
    return Work(
        base=oid(item, "base"),
        staged=oid(item, "staged"),
        commit=oid(item, "commit"),
        branch=words(item, "branch") or None,
        dirty=dirty.boolean() if dirty else False,
        left_out=tuple((words(e, "path", 4096), words(e, "reason")) for e in left_out.items())
        if left_out
        else (),
        intent_to_add=texts(item, "intent_to_add", 4096),
        operation=words(item, "operation") or None,
        **numbers,
    )


def parse_session(item: Field) -> Session:
    saved = item.get("saved")
    return Session(
        agent=item.need("agent").text(most=100),
        digest=item.need("digest").text(most=128),
        salt=item.need("salt").text(most=128),
        saved=saved.boolean() if saved else False,
    )


def parse_answer(root: Field) -> Answer:
    values = root.need("values")
    evidence = root.get("evidence")
    return Answer(
        gate=root.need("gate").text(most=20),
        values={key: as_value(field) for key, field in values.mapping().items()},
        verdict=root.need("verdict").one_of(VERDICTS),
        at=root.need("at").text(most=40),
        seen=oid(root, "seen") or root.fail("expected the commit that was seen"),
        by=words(root, "by"),
        via=words(root, "via") or "cli",
        note=words(root, "note", MOST_TEXT),
        amends=oid(root, "amends"),
        evidence=as_object(evidence.plain()) if evidence else {},
    )


def parse_remark(root: Field) -> Remark:
    return Remark(
        at=root.need("at").text(most=40),
        by=words(root, "by"),
        text=words(root, "text", MOST_TEXT),
        via=words(root, "via") or "cli",
    )


def parse_edit(root: Field) -> Edit:
    to, deadline, timeout = root.get("to"), words(root, "deadline"), root.get("timeout")
    listed = None if to is None else (() if to.value == "anyone" else texts(root, "to"))
    return Edit(
        at=root.need("at").text(most=40),
        by=words(root, "by"),
        to=listed,
        priority=one_of(root, "priority", PRIORITIES, "") or None,
        deadline="" if deadline == "never" else deadline or None,
        timeout=timeout.integer(0, 10**10) if timeout else None,
    )


def parse_claim(root: Field) -> Claim:
    return Claim(
        at=root.need("at").text(most=40),
        answer=oid(root, "answer") or root.fail("expected the commit of the answer"),
        nonce=root.need("nonce").text(most=100),
        runner=root.need("runner").text(most=100),
        host=words(root, "host"),
        attempt=root.need("attempt").integer(1, 10**6),
        term=root.need("term").integer(1, 10**7),
        by=words(root, "by"),
    )


def parse_outcome(root: Field) -> Outcome:
    return Outcome(
        at=root.need("at").text(most=40),
        claim=oid(root, "claim") or root.fail("expected the commit of the claim"),
        result=root.need("result").one_of(OUTCOMES),
        by=words(root, "by"),
        reason=words(root, "reason", MOST_TEXT),
        log=words(root, "log", 4096),
        branch=words(root, "branch", 1000),
        commits=texts(root, "commits"),
    )


KINDS = (
    Kind("answered", "answers", parse_answer),
    Kind("commented", "comments", parse_remark),
    Kind("edited", "edits", parse_edit),
    Kind("reminded", "reminders", parse_edit),
    Kind("withdrawn", "withdrawals", parse_remark),
    Kind("stopped", "stops", parse_remark),
    Kind("expired", "expiries", parse_remark),
    Kind("claimed", "claims", parse_claim),
    Kind("outcome", "outcomes", parse_outcome),
)
BY_FOLDER = {kind.folder: kind for kind in KINDS}
FOLDER_OF = {kind.name: kind.folder for kind in KINDS}


def parse(folder: str | None, data: bytes, source: str) -> Event:
    """The event that this file is: `question.yaml` when there is no folder."""
    root = codec.parse(data, source)
    version = root.need("hitl")
    if version.value != VERSION:
        version.fail(f"this gitgate reads version {VERSION} of the format; upgrade it to read this gate")
    if folder is None:
        return parse_opened(root)
    if folder not in BY_FOLDER:
        raise BadDocument(source, 0, "", f"{folder}/ is not a folder of events")
    return BY_FOLDER[folder].parse(root)


def words(item: Field, name: str, most: int = 1000) -> str:
    found = item.get(name)
    return "" if found is None or found.value is None else found.text(most=most)


def texts(item: Field, name: str, most: int = 1000) -> tuple[str, ...]:
    found = item.get(name)
    return () if found is None else tuple(entry.text(most=most) for entry in found.items())


def one_of(item: Field, name: str, allowed: tuple[str, ...], otherwise: str) -> str:
    found = item.get(name)
    return otherwise if found is None else found.one_of(allowed)


def oid(item: Field, name: str) -> str | None:
    found = item.get(name)
    if found is None:
        return None
    text = found.text(most=64)
    if not OID.fullmatch(text):
        found.fail("expected a full commit id")
    return text


def as_object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {"value": value}


def as_value(field: Field) -> Value:
    value = field.plain()
    if isinstance(value, (str, bool, dict)):
        return value
    if isinstance(value, list):
        labels = [part for part in value if isinstance(part, str)]
        if len(labels) == len(value):
            return labels
    return field.fail("expected text, true or false, a list of labels, or a form")
