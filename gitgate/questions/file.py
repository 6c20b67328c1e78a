"""Questions: `question.yaml`, the file that opens a gate, and back. The only place that knows its fields' names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from ..document import (
    MOST_READ,
    Field,
    dataclass,
    mapping,
    moment,
    oid,
    one_of,
    replace,
    text_or_empty,
    texts,
)
from ..errors import BadAnswer, BadDocument, Usage
from ..model import AT_DEADLINE, DELIVERIES, ON_TIMEOUT, PRIORITIES
from ..model.gate import (
    Asker,
    Opened,
    Option,
    Question,
    Session,
    Work,
    aliased_schema,
    parse_talk,
    plain_talk,
)
from ..text import one_line, parse_duration
from . import article
from .types import TYPES, aliases, read_value, type_name

MOST_ATTACHMENTS = 20
MOST_BYTES = 5 << 20
MOST_TOTAL = 20 << 20
MOST_NAME = 200
MOST_DEPTH = 8

# Windows gives these to devices, with any extension.
DEVICES = r"(?i)(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?"
# What NTFS calls `.git` when it shortens names.
SHORT_GIT = r"(?i)git~\d+"
FORBIDDEN = '\\:*?"<>|'


def check_name(name: str, source: str, *, line: int = 0, field: str = "attachments") -> str:
    """Return `name` if it is a path that stays inside a record on every system; BadDocument says what was expected."""

    def fail(expected: str) -> NoReturn:
        raise BadDocument(
            one_line(source), line, field, f'expected {expected}; found "{one_line(name[:400], 80)}"'
        )

    problem = _whole(name) or next((wrong for part in name.split("/") if (wrong := _part(part))), "")
    if problem:
        fail(problem)
    return name


def check_names(
    names: Iterable[str], source: str, *, line: int = 0, field: str = "attachments"
) -> tuple[str, ...]:
    """Check every name, that there are few, and that they differ on systems that ignore case and composition."""
    checked: dict[str, str] = {}
    for name in names:
        check_name(name, source, line=line, field=field)
        if len(checked) == MOST_ATTACHMENTS:
            raise BadDocument(
                one_line(source), line, field, f"expected at most {MOST_ATTACHMENTS} files; found more"
            )
        folded = folded_name(name)
        if folded in checked:
            both = f'"{one_line(checked[folded], 80)}" and "{one_line(name, 80)}"'
            raise BadDocument(
                one_line(source), line, field, f"expected names that differ on every system; found {both}"
            )
        checked[folded] = name
    for folded, name in checked.items():
        above = next((f for f in _above(folded) if f in checked), None)
        if above is not None:
            both = f'"{one_line(checked[above], 80)}" and "{one_line(name, 80)}"'
            raise BadDocument(
                one_line(source), line, field, f"expected no file that is also a folder; found {both}"
            )
    return tuple(checked.values())


def folded_name(name: str) -> str:
    """Return `name` as systems see it that ignore case and Unicode composition; names that are equal so would
    collide.
    """
    if name.isascii():
        return name.lower()
    from unicodedata import normalize

    return normalize("NFKC", normalize("NFKC", name).casefold())


def _above(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _whole(name: str) -> str:
    """Return what was expected of the whole name where it is wrong; empty where it is right."""
    if not name:
        return "the path of a file"
    if one_line(name) != name:
        return "a path without control, invisible or repeated blank characters"
    if len(name.encode("utf-8")) > MOST_NAME:
        return f"a path of at most {MOST_NAME} bytes"
    if name.startswith(("/", "~")):
        return "a relative path"
    if name.startswith("-"):
        return "a path that does not start with a dash"
    bad = next((character for character in name if character in FORBIDDEN), None)
    if bad:
        return f"a relative path with `/` and without `{bad}`"
    if name.count("/") >= MOST_DEPTH:
        return f"a path of at most {MOST_DEPTH} parts"
    return ""


def _part(part: str) -> str:
    """Return what was expected of a part between slashes where it is wrong; empty where it is right."""
    if part in ("", "."):
        return "a path without empty parts or `.`"
    if part == "..":
        return "a path without `..`"
    if part != part.strip() or part.endswith("."):
        return "a path whose parts do not end with a dot or begin or end with a blank"
    folded = folded_name(part)
    if folded == ".git" or re.fullmatch(SHORT_GIT, folded):
        return "a path outside .git"
    if re.fullmatch(DEVICES, folded):
        return "a name that Windows does not give to a device"
    return ""


MOST_QUESTIONS = 20
MOST_OPTIONS = 100
KEY = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"


@dataclass(frozen=True)
class GateField:
    """Field of a gate: its flag, its keyword, its name in a question file and in the record. `usual`: the value if not
    given.

    `entry` is its form: words, a document, one of `choices`, a share, a count, a length of time, people, a moment.
    `told`: its sentence in the text view and in a comment, with `{}` for the value; without it each has its own.
    """

    name: str
    help: str = ""  # of its flag; without one nobody gives it
    entry: str = "words"
    usual: object = None
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()  # the same in the order of the flag's help
    in_file: str = ""
    also: tuple[str, ...] = ()
    recorded: bool = True
    always: bool = False  # written where it is usual, too
    shown: bool = True
    told: str = ""

    @property
    def word(self) -> str:
        return self.in_file or self.name

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    def read(self, field: Field) -> object:
        """Return the field's value from a question file."""
        if self.entry == "length":
            return read_length(field)
        return field.text(most=MOST_READ) if self.entry == "words" else self.parse(field)

    def parse(self, field: Field) -> object:
        """Return the field's value from a record."""
        if self.entry == "choice":
            meant = AT_DEADLINE.get(field.value) if isinstance(field.value, str) else None
            return meant if meant in self.choices else field.one_of(self.choices)
        value = PARSERS[self.entry](field)
        return self.usual if value in ("", ()) else value


def read_length(field: Field) -> int:
    """Return the seconds that `2h` or a number of seconds means."""
    if isinstance(field.value, int) and not isinstance(field.value, bool):
        return field.integer(1, 10**9)
    try:
        return parse_duration(field.text(most=40))
    except Usage as wrong:
        field.fail(wrong.message)


PARSERS: Mapping[str, Callable[[Field], object]] = {
    "words": lambda field: field.text(most=1000),
    "document": lambda field: field.text(most=MOST_READ),
    "share": lambda field: field.number(0, 1),
    "count": lambda field: field.integer(1, 100),
    "length": lambda field: field.integer(1, 10**10),
    "people": lambda field: tuple(entry.text(most=1000) for entry in field.items()),
    "moment": moment,
    "flag": lambda field: field.boolean(),
}
# In the order of the record. A new one stands here, and as an attribute of `Draft` and `Opened`.
FIELDS = (
    GateField("title", "A short title; otherwise the question's beginning.", usual="", always=True),
    GateField("context", "What the person needs to know.", "document", "", "TEXT|@FILE|-", always=True),
    GateField(
        "priority",
        "How pressing it is.",
        "choice",
        "normal",
        choices=PRIORITIES,
        offered=tuple(reversed(PRIORITIES)),
        always=True,
    ),
    GateField("confidence", "How sure you are of your own view, 0 to 1.", "share", told="confidence {:g}"),
    GateField("deadline", entry="moment"),
    GateField("timeout", "The deadline; none unless set.", "length", metavar="2h", shown=False),
    GateField("on_timeout", "What happens at the deadline.", "choice", "stuck", choices=ON_TIMEOUT),
    GateField("to", "Whom it is for, and who alone may answer; repeatable.", "people", (), "WHO"),
    GateField("to_holds", entry="flag", usual=False, shown=False),
    GateField(
        "notify",
        "Which of the addresses of gitgate.notify are told of it; repeatable.",
        "people",
        (),
        "NAME",
        shown=False,
    ),
    GateField("quorum", "How many people must agree.", "count", 1, shown=False),
    GateField("refusals", entry="count", usual=1, shown=False),
    GateField(
        "key", "The same key while its gate is open returns the same gate.", metavar="K", in_file="gate_key"
    ),
    GateField(
        "key_for", "With --key: also once it is closed, for so long from its asking.", "length", metavar="7d"
    ),
    GateField("follows"),
    GateField("agent", "The asking agent's name.", metavar="NAME", also=("agent_name",), recorded=False),
    GateField("session", "The agent's session, to be resumed with the answer.", metavar="ID", recorded=False),
)
ASKED = tuple(row for row in FIELDS if row.help)
RECORDED = tuple(row for row in FIELDS if row.recorded)
BY_NAME = {row.name: row for row in RECORDED if row.name != "title"}
USUAL = {name: row.usual for name, row in BY_NAME.items()}


def told_fields(opened: Opened) -> list[str]:
    """Return the sentences about the gate's other fields that a reader is shown, in the order of the table."""
    found = ((row, getattr(opened, row.name)) for row in RECORDED if row.told)
    return [row.told.format(value) for row, value in found if value != row.usual]


def plain_fields(opened: Opened) -> dict[str, object]:
    said: dict[str, object] = {}
    for row in RECORDED:
        value = getattr(opened, row.name)
        kept = list(value) if isinstance(value, tuple) else value
        said[row.name] = kept if row.always or value != row.usual else None
    if opened.deadline:
        said["on_timeout"] = opened.on_timeout
    return said


def parse_fields(root: Field) -> dict[str, Any]:
    found = dict(USUAL)
    for name, field in root.mapping().items():
        if name in USUAL and field.value is not None:
            found[name] = BY_NAME[name].parse(field)
    return found


def plain_opened(opened: Opened) -> dict[str, object]:
    session = opened.session
    return {
        "title": opened.title,
        "questions": [plain_question(question) for question in opened.questions],
        "context": opened.context,
        "asked": plain_asker(opened.asked),
        "delivery": opened.delivery,
        **plain_fields(opened),
        "attachments": list(opened.attachments),
        "work": plain_work(opened.work),
        "session": None
        if session is None
        else filled({n: getattr(session, n) for n in session.__dataclass_fields__}),
        "config": dict(opened.config),
        "nonce": opened.nonce,
    }


def plain_asker(asked: Asker) -> dict[str, object]:
    said: dict[str, object] = {n: getattr(asked, n) for n in ("by", "agent", "at", "host", "directory")}
    return filled({**said, "logins": list(asked.logins)})


def plain_question(question: Question) -> dict[str, object]:
    options = [filled({"label": o.label, "description": o.description}) for o in question.options]
    said: dict[str, object] = {"key": question.key, "prompt": question.prompt, "type": question.type}
    if options:
        said["options"] = options
    # An empty form is a default, and an empty schema a schema: only what was not said is left out.
    if question.default is not None:
        said["default"] = question.default
    known = TYPES.get(question.type)
    if known is not None and known.has_options:
        said["other"] = question.other
    if question.schema is not None:
        said["schema"] = dict(question.schema)
    if question.talk is not None:
        said["talk"] = plain_talk(question.talk)
    return said


def plain_work(work: Work) -> dict[str, object]:
    return filled(
        {
            "branch": work.branch,
            "shared": work.shared or None,
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
    attachments = root.get("attachments")
    return Opened(
        title=root.need("title").text(most=1000, least=1),
        questions=questions,
        asked=Asker(
            at=moment(asked.need("at")),
            directory=text_or_empty(asked, "directory", 4096),
            logins=texts(asked, "logins"),
            **{name: text_or_empty(asked, name) for name in ("agent", "by", "host")},
        ),
        work=parse_work(work) if work else Work(None, None, None),
        nonce=root.need("nonce").text(most=100),
        session=parse_session(session) if session else None,
        delivery=one_of(root, "delivery", DELIVERIES, "none"),
        attachments=parse_attachments(attachments) if attachments else (),
        config=mapping(root, "config"),
        **parse_fields(root),
    )


def parse_attachments(listed: Field) -> tuple[str, ...]:
    names = [entry.text(most=1000) for entry in listed.items()]
    return check_names(names, listed.source, line=listed.line, field=listed.path)


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
    if kind == "session":
        return parse_conversation(item)
    if item.get("talk"):
        item.need("talk").fail(f"{article(kind)} question is not a conversation; its type would be session")
    options = parse_options(item)
    choosing, filling = TYPES[kind].has_options, TYPES[kind].has_schema
    if choosing and len(options) < 1:
        item.fail(f"{article(kind)} question needs options")
    if options and not choosing:
        item.need("options").fail(f"{article(kind)} question has no options")
    other, schema = item.get("other"), mapping(item, "schema") if item.get("schema") else None
    if filling and schema is None:
        item.fail(f"{article(kind)} question needs a schema")
    question = Question(
        key=parse_key(item),
        prompt=item.need("prompt").text(most=MOST_READ, least=1),
        type=kind,
        options=options,
        other=choosing and (other.boolean() if other else True),
        schema=schema if filling else None,
    )
    return with_default(item, question)


def parse_conversation(item: Field) -> Question:
    """Return the question that a field describes, to be decided in a conversation; its outcome says which options or
    schema it takes.
    """
    found = item.get("talk") or item.get("session_config") or item.get("sessionConfig")
    talk, described = None, item
    if found is not None:
        talk, described = parse_talk(found), aliased_schema(found) or item
    options = parse_options(item) or parse_options(described)
    schema = mapping(item, "schema") or mapping(described, "schema")
    question = Question(
        key=parse_key(item),
        prompt=item.need("prompt").text(most=MOST_READ, least=1),
        type="session",
        options=options,
        schema=schema or None,
        talk=talk,
    )
    wrong = unfit(question)
    if wrong:
        item.fail(wrong)
    return with_default(item, question)


def unfit(question: Question) -> str:
    """Return which option or schema a conversation's outcome lacks, or has without a use; empty where all fits."""
    outcome = question.talk.outcome if question.talk is not None else "freeform"
    if outcome == "selection" and not question.options:
        return "a session that ends in a selection needs options"
    if question.options and outcome != "selection":
        return f"a session that ends in {ARTICLES[outcome]} has no options"
    if outcome == "structured" and question.schema is None:
        return "a session with a structured outcome needs a schema"
    if question.schema is not None and outcome != "structured":
        return f"a session that ends in {ARTICLES[outcome]} has no schema"
    return ""


ARTICLES = {
    "approval": "an approval",
    "selection": "a selection",
    "freeform": "free text",
    "structured": "a structured outcome",
}


def parse_key(item: Field) -> str:
    key = item.need("key").text(most=64)
    if not re.fullmatch(KEY, key):
        item.need("key").fail("expected letters, digits, dot, dash or underscore")
    return key


def parse_type(item: Field) -> str:
    given = item.get("type")
    if given is None:
        return "choice" if item.get("options") else "text"
    name = type_name(given.text(most=40))
    return name if name is not None else given.one_of((*TYPES, *aliases()))


def parse_options(item: Field) -> tuple[Option, ...]:
    listed = item.get("options")
    if listed is None:
        return ()
    options = []
    seen: set[str] = set()
    for entry in listed.items():
        option = parse_option(entry)
        if option.label.casefold() in seen:
            entry.fail(f"expected each label once; found {option.label!r} twice")
        seen.add(option.label.casefold())
        options.append(option)
    if len(options) > MOST_OPTIONS:
        listed.fail(f"expected at most {MOST_OPTIONS} options, found {len(options)}")
    return tuple(options)


def parse_option(entry: Field) -> Option:
    if not isinstance(entry.value, (dict, list)):
        return Option(entry.text(most=1000, least=1).strip())
    label = entry.need("label").text(most=1000, least=1)
    return Option(label.strip(), text_or_empty(entry, "description", MOST_READ))


def with_default(item: Field, question: Question) -> Question:
    given = item.get("default")
    if given is None:
        return question
    try:
        value = read_value(question, given.plain())
    except BadAnswer as wrong:
        given.fail(wrong.message)
    return replace(question, default=value)


def parse_work(item: Field) -> Work:
    left_out = item.get("left_out")
    numbers = {
        n: f.integer(0, 10**12) if (f := item.get(n)) else 0 for n in ("files", "insertions", "deletions")
    }
    dirty, shared = item.get("dirty"), item.get("shared")
    return Work(
        base=oid(item, "base"),
        staged=oid(item, "staged"),
        commit=oid(item, "commit"),
        branch=text_or_empty(item, "branch") or None,
        dirty=dirty.boolean() if dirty else False,
        shared=shared.boolean() if shared else False,
        left_out=tuple((text_or_empty(e, "path", 4096), text_or_empty(e, "reason")) for e in left_out.items())
        if left_out
        else (),
        intent_to_add=texts(item, "intent_to_add", 4096),
        operation=text_or_empty(item, "operation") or None,
        **numbers,
    )


def parse_session(item: Field) -> Session:
    saved, content, key = item.get("saved"), item.get("content"), item.get("key")
    return Session(
        agent=item.need("agent").text(most=100),
        digest=item.need("digest").text(most=128),
        salt=item.need("salt").text(most=128),
        saved=saved.boolean() if saved else False,
        content=content.text(most=128) if content else "",
        key=key.text(most=128) if key else "",
    )
