"""Python: what goes in and what comes out: keyword arguments that functions share, a desk for one call, a gate as
callers get it; and the same inside a flow.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from .. import config, document
from ..errors import Usage
from ..model import SESSION_FIELDS
from ..model.gate import Answer, Gate, Option, Question, Value
from ..model.gate import Gate as Folded
from ..questions import Given, drafts
from ..questions.answers import printed

if TYPE_CHECKING:
    from ..acts.asking import Asked, AskWishes
    from ..context import Desk
    from ..exchange.syncing import Published
    from ..flows import Doing
    from ..flows.engine import Engine
    from ..model.gate import Conversation, Talk
    from ..questions.drafts import Draft


Directory = str | Path | None
FLOWS = f"{__package__.rpartition('.')[0]}.flows.engine"


@document.dataclass(frozen=True)
class ShownAnswer(Answer):
    """Answer with the questions that it is about. `text`: what `git gate check` prints."""

    questions: tuple[Question, ...] = document.field(default=(), repr=False)

    @property
    def text(self) -> str:
        return printed(self.questions, self)

    @property
    def value(self) -> Value | None:
        """Value of the answer to the only question; None where there are several."""
        return self.values.get(self.questions[0].key) if len(self.questions) == 1 else None


@dataclass(frozen=True, repr=False)
class ShownGate:
    """Gate as it is now, with what its record alone does not say.

    `details`: everything, in the shape of `git gate show --json`. `record`: the gate as its events make it.
    """

    record: Gate
    pushed: bool
    archived: bool = False
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def state(self) -> str:
        return self.record.state

    @property
    def title(self) -> str:
        return self.record.opened.title

    @property
    def answer(self) -> ShownAnswer | None:
        counted = self.record.answer
        return (
            None
            if counted is None
            else ShownAnswer(**vars(counted.answer), questions=self.record.opened.questions)
        )

    @property
    def session(self) -> Conversation | None:
        """Conversation that ended the gate, with an answer or without."""
        from ..render.shapes import held_of

        return held_of(self.record)

    def __str__(self) -> str:
        return self.id

    def __repr__(self) -> str:
        return f"<gate {self.id}, {self.state}: {self.title!r}>"


@dataclass(frozen=True)
class Event:
    """Line of the audit trail."""

    gate: str
    event: str
    at: str
    by: str | None
    text: str
    commit: str


@dataclass(frozen=True)
class Status:
    """Number of gates in each state, and what each agent waits for."""

    counts: Mapping[str, int]
    agents: tuple[Mapping[str, object], ...]


def flow_here() -> Engine | None:
    """Return the engine of the flow that the calling code belongs to. Where flows were never loaded, there is none."""
    engines = sys.modules.get(FLOWS)
    return engines.current() if engines is not None else None


@contextmanager
def open_desk(directory: Directory, said: Mapping[str, str] | None = None) -> Iterator[Desk]:
    """Open a desk for one call. `said`: settings that the caller gave.

    It works in bulk: a Python process lives long, so libgit2 is worth its loading.
    """
    from ..context import open_desk as opened

    config.refuse_system()
    desk = opened(absolute_directory(directory), config.environment(), flags=said, bulk=True)
    try:
        yield desk
    finally:
        desk.close()


def absolute_directory(directory: Directory) -> Path:
    """Return the directory of a call as an absolute path, so that it holds wherever the process goes afterwards."""
    return Path.cwd() if directory is None else Path(directory).absolute()


def published_gate(desk: Desk, published: Published) -> ShownGate:
    return seen(desk, published.gate, pushed=published.pushed)


def seen(desk: Desk, gate: Gate, *, pushed: bool | None = None, archived: bool = False) -> ShownGate:
    """Return a gate as callers get it."""
    from ..acts.sessions import session_facts
    from ..context.targets import remote_of
    from ..policy.ruling import marks
    from ..render import shapes

    if pushed is None:
        remote = None if archived else remote_of(desk)
        pushed = archived or (remote is not None and desk.tracked(remote, gate.id) == gate.tip)
    details = shapes.gate(
        gate,
        pushed=pushed,
        signed=marks(desk, [gate]),
        archived=archived,
        **session_facts(desk, [gate])[gate.id],
    )
    return ShownGate(gate, pushed, archived, details)


Choices = Sequence[str | tuple[str, str] | Mapping[str, str]] | Mapping[str, str]


def choices(given: Choices) -> tuple[Option, ...]:
    """Read options: labels (`LABEL=TEXT` as on the command line), pairs, or a mapping of labels to what they mean."""
    from ..questions.drafts import option

    if isinstance(given, Mapping):
        return tuple(Option(label.strip(), text.strip()) for label, text in given.items())
    if isinstance(given, str):
        raise Usage("options are a list of labels", hint='options=["Postgres", "SQLite"]')
    found = []
    for item in given:
        if isinstance(item, str):
            found.append(option(item))
        elif isinstance(item, Mapping):
            found.append(Option(item["label"].strip(), item.get("description", "").strip()))
        else:
            found.append(Option(item[0].strip(), item[1].strip()))
    return tuple(found)


def from_file(file: str | Path, prompt: str | None, beside: Sequence[object]) -> Draft:
    from ..document import codec

    if prompt is not None or any(beside):
        raise Usage("file brings the question; nothing of it can stand beside it")
    try:
        body = Path(file).read_bytes()
    except OSError as unreadable:
        raise Usage(f"file: {file} cannot be read: {unreadable.strerror}") from unreadable
    return drafts.read_draft(codec.parse_document(body, str(file)))


def with_terms(draft: Draft, said: Mapping[str, object]) -> Draft:
    """Return the draft with the fields that were given. None was not given, so that settings may decide."""
    from ..questions.file import ASKED

    given: dict[str, Any] = {}
    for row in ASKED:
        value: Any = said.get(row.name)
        if row.entry == "length":
            value = seconds(value)
        elif row.entry == "people":
            value = (value,) if isinstance(value, str) else tuple(value or ()) or None
        if value is not None:
            given[row.name] = value
    return replace(draft, **given)


def paths_given(paths: str | Path | Sequence[str | Path]) -> tuple[str, ...]:
    """Return paths as text. One path alone counts as a list of it: Python takes a `str` for a sequence of letters."""
    return (str(paths),) if isinstance(paths, str | Path) else tuple(map(str, paths))


def read_attachments(desk: Desk, paths: Sequence[str]) -> dict[str, bytes]:
    from ..acts.asking import read_attachment

    found: dict[str, bytes] = {}
    for path in paths:
        name, body = read_attachment(Path(path), desk.repo.place)
        if name in found:
            raise Usage(f"attach: {name} is there twice")
        found[name] = body
    return found


def seconds(given: str | int | None) -> int | None:
    """Read a duration: `"2h"` or a number of seconds."""
    if given is None:
        return None
    from ..text import parse_duration

    length = parse_duration(str(given))
    if length == 0:
        raise Usage("a deadline has to be in the future", hint='timeout="2h"')
    return length


def given_in_python(
    gate: Folded,
    answer: Value | None,
    answers: Mapping[str, object] | None,
    other: str | None,
    *,
    approve: bool | None,
) -> Given:
    """Read an answer given in one of the ways of Python's interface. True and False answer an approval."""
    ways = [answer is not None, answers is not None, other is not None, approve is not None]
    if sum(ways) != 1:
        raise Usage("give the answer once: as a value, as answers, as other, or with approve or reject")
    if isinstance(answer, str):
        return Given(text=answer)
    if answer is not None:
        return Given(values={gate.opened.questions[0].key: answer})
    return Given(approve=approve, other=other, values=answers)


SessionOutcome = Literal["approval", "selection", "freeform", "structured"]


class SessionTerms(TypedDict, total=False):
    """Terms of a conversation, for `type="session"`, under the names of the long flags."""

    outcome: SessionOutcome | None
    system_prompt: str | None
    session_context: object
    model: str | None
    cwd: str | Path | None
    mcp_config: str | Path | Mapping[str, object] | None
    session_timeout: str | int | None
    grace: str | int | None
    transcript: bool
    resume_session: str | ShownGate | None
    save_every: str | int | None
    checkpoint: bool


class GateTerms(TypedDict, total=False):
    """Keywords that any question takes. `gate_timeout`: its deadline, apart from how long a session may last."""

    title: str | None
    attach: Sequence[str | Path]
    priority: str | None
    confidence: float | None
    gate_timeout: str | int | None
    on_timeout: str | None
    default: object
    to: str | Sequence[str]
    notify: str | Sequence[str]
    quorum: int | None
    agent: str | None
    session: str | None
    key: str | None
    key_for: str | int | None
    no_work: bool
    no_untracked: bool
    include: Sequence[str]
    push: bool | None
    directory: Directory


class InteractiveTerms(GateTerms, total=False):
    """Keywords that `ask_interactive` takes besides the prompt, the schema and how long to wait."""

    outcome: SessionOutcome | None
    options: Choices
    system_prompt: str | None
    context: object
    model: str | None
    cwd: str | Path | None
    mcp_config: str | Path | Mapping[str, object] | None
    timeout: str | int | None
    grace: str | int | None
    capture_transcript: bool
    resume_session: str | ShownGate | None
    save_every: str | int | None


class PauseTerms(GateTerms, total=False):
    """Keywords that `pause` takes besides the prompt and how long to wait."""

    context: object


@dataclass(frozen=True)
class Words:
    """Question as its asker gave it, in keywords or in a file."""

    prompt: str | None
    type: str | None = None
    options: Choices = ()
    no_other: bool = False
    default: object = None
    schema: Mapping[str, object] | None = None
    file: str | Path | None = None
    conversation: Mapping[str, object] = field(default_factory=dict)

    def draft(self) -> Draft:
        used = {
            name: value
            for name, value in self.conversation.items()
            if value is not None and value is not False
        }
        if self.file is not None:
            return from_file(self.file, self.prompt, (self.options, self.schema, self.default, used))
        options = choices(self.options)
        question = drafts.question(
            self.prompt or "",
            type=self.type,
            options=options,
            default=self.default,
            other=not self.no_other,
            schema=self.schema,
            talk=self.talk(used, options),
        )
        return drafts.Draft((question,))

    def talk(self, used: Mapping[str, object], options: Sequence[Option]) -> Talk | None:
        """Return the conversation that is described; None where nothing is said of one."""
        if not used and self.type is None:
            return None
        from ..questions.drafts import refuse_elsewhere, talk_of
        from ..questions.types import type_name

        said = {SESSION_FIELDS[name]: as_in_file(name, value) for name, value in used.items()}
        refuse_elsewhere(self.type, said, keyword_of)
        rest = bool(options) or self.schema is not None
        if type_name(self.type or "") != "session" or not (used or rest):
            return None
        return talk_of(said, keyword_of, options=bool(options), schema=self.schema is not None)


def keyword_of(name: str) -> str:
    """Return a field of the conversation as its keyword is written."""
    word = next((word for word, field in SESSION_FIELDS.items() if field == name), name)
    return 'type="session"' if name == "type" else word


def refuse_unknown(function: str, given: Mapping[str, object], known: Container[str]) -> None:
    """Raise Python's own TypeError for a keyword that no parameter has."""
    strange = next((name for name in given if name not in known), None)
    if strange is not None:
        raise TypeError(f"{function}() got an unexpected keyword argument {strange!r}")


def as_in_file(name: str, value: object) -> object:
    """Return one value as a question file would have it."""
    from ..questions.drafts import as_json, parse_json

    if name == "mcp_config" and isinstance(value, str | Path):
        try:
            return parse_json(Path(value).read_bytes(), str(value))
        except OSError as unreadable:
            raise Usage(f"mcp_config: {value} cannot be read: {unreadable.strerror}") from unreadable
    if name == "cwd" and isinstance(value, Path):
        return value.as_posix()
    return str(value) if isinstance(value, ShownGate) else as_json(value, name)


@dataclass(frozen=True)
class Asking:
    """Question with everything that belongs to it, before there is a desk."""

    draft: Draft
    wishes: AskWishes
    attach: Sequence[str | Path] = ()

    def open(self, desk: Desk) -> Asked:
        from ..acts import asking

        enclosed = read_attachments(desk, (*self.draft.attach, *map(str, self.attach)))
        return asking.ask(desk, self.draft, self.wishes, enclosed)


def pausing(prompt: str, terms: PauseTerms) -> Asking:
    conversation = {"checkpoint": True, "session_context": terms.get("context")}
    return asked_as(prompt, None, (), conversation, terms, blocks=True)


def interactive(
    prompt: str, schema: Mapping[str, object] | None, terms: InteractiveTerms, *, blocks: bool
) -> Asking:
    conversation = {
        "outcome": terms.get("outcome"),
        "system_prompt": terms.get("system_prompt"),
        "session_context": terms.get("context"),
        "model": terms.get("model"),
        "cwd": terms.get("cwd"),
        "mcp_config": terms.get("mcp_config"),
        "session_timeout": terms.get("timeout"),
        "grace": terms.get("grace"),
        "transcript": terms.get("capture_transcript"),
        "resume_session": terms.get("resume_session"),
        "save_every": terms.get("save_every"),
    }
    return asked_as(prompt, schema, terms.get("options", ()), conversation, terms, blocks=blocks)


def asked_as(
    prompt: str,
    schema: Mapping[str, object] | None,
    options: Choices,
    conversation: Mapping[str, object],
    terms: GateTerms | InteractiveTerms | PauseTerms,
    *,
    blocks: bool,
) -> Asking:
    """Return a question of type session, with the terms that any question has."""
    from ..acts.asking import AskWishes

    words = Words(
        prompt,
        "session",
        options,
        default=terms.get("default"),
        schema=schema,
        conversation=conversation,
    )
    # What these two say is of the conversation; the gate's own deadline has a name of its own.
    own = {**terms, "timeout": terms.get("gate_timeout"), "context": None}
    wishes = AskWishes(
        work=not terms.get("no_work", False),
        untracked=not terms.get("no_untracked", False),
        include=paths_given(terms.get("include", ())),
        push=terms.get("push"),
        wait=blocks,
    )
    return Asking(with_terms(words.draft(), own), wishes, paths_given(terms.get("attach", ())))


# What `ask`, `wait` and `check` do inside a flow: each is a step, and gives in replay what it gave the first time.


def asked_in_flow(engine: Engine, asking: Asking, *, wait: bool) -> ShownGate:
    """Do `ask` as a step of a flow."""
    return shown(engine, open_in_flow(engine, asking, wait=wait, kind="ask", name=asking.draft.key or ""))


def open_in_flow(engine: Engine, asking: Asking, *, wait: bool, kind: str, name: str) -> Folded:
    from ..flows.steps import noting

    draft = asking.draft
    enclosed = read_attachments(engine.desk, (*draft.attach, *map(str, asking.attach)))
    return noting(engine, engine.ask(draft, asking.wishes, enclosed, wait=wait, kind=kind, name=name))


def shown(engine: Engine, gate: Folded) -> ShownGate:
    with engine.turn:
        return seen(engine.desk, gate)


def waited_in_flow(engine: Engine, gate: str) -> ShownGate:
    """Do `wait` as a step of a flow."""
    from ..flows.steps import noting

    def act(_doing: Doing) -> dict[str, str]:
        decided = engine.decided(engine.find(gate).id, stuck=False)
        return {"gate": decided.id, "tip": decided.tip}

    return shown(engine, noting(engine, engine.gate_at(engine.perform("wait", gate, act))))


def checked_in_flow(engine: Engine, gate: str) -> ShownGate:
    """Do `check` as a step of a flow. A replay returns what it saw the first time."""

    def act(_doing: Doing) -> dict[str, str]:
        found = engine.find(gate)
        return {"gate": found.id, "tip": found.tip}

    return shown(engine, engine.gate_at(engine.perform("check", gate, act, brief=True)))
