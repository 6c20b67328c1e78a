"""Model: the values that everything else is about: a gate, each event of its record, and the agent's conversation that it belongs to."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from ..document import MOST_READ, Field, Plain, dataclass, field, names_of, text_or_empty
from ..errors import Usage
from ..text import neutral, parse_duration
from . import ENDED, SESSION_OUTCOMES, is_id, is_prefix

# An agent's saved session; how a conversation about a question is to be held, and how one was.


OUTCOMES = SESSION_OUTCOMES
# `words` stands in older records alone: nothing that is said in prose is read as an outcome.
SOURCES = ("command", "mcp", "file", "json", "words", "prompt", "person")
PROPOSED = "proposed"
TIME_OUT = "timeout"
# What nobody confirms, also where a record does not say so.
BY_NOBODY = (PROPOSED, TIME_OUT)
LEFT = "left"  # somebody talked with the agent, and the gate waits as before
GRACE, SAVE_EVERY = 60, 300
MOST_TRANSCRIPT = 200_000  # bytes
MOST_STATUS, MOST_WORDS = 64, 32 * 1024
# It becomes an argument of the agent's command: it must not look like an option.
MODEL = r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,99}"
STATUS = r"[A-Za-z][A-Za-z0-9_-]{0,63}"
# Words that other systems use for our fields.
ALIASES = {
    "system": ("systemPrompt", "system_prompt"),
    "mcp": ("mcpConfig", "mcp_config"),
    "transcript": ("captureTranscript", "capture_transcript"),
    "resume": ("resumeSession", "resume_session"),
    "save_every": ("saveEvery",),
}
SCHEMA_ALIASES = ("outcomeSchema", "outcome_schema")


@dataclass(frozen=True)
class Talk:
    """Terms of a conversation. Its possible outcomes are in the question: the options, the schema."""

    outcome: str = "freeform"
    system: str = ""
    context: Plain = None
    model: str = ""
    cwd: str = ""
    mcp: Mapping[str, object] | None = None
    timeout: int | None = None
    grace: int = GRACE
    transcript: bool = False
    save_every: int = SAVE_EVERY
    resume: str = ""
    checkpoint: bool = False


# What may stand under `talk`, and under its `outcomeSchema`.
NAMES = (
    *names_of(Talk),
    *(word for words in ALIASES.values() for word in words),
    *SCHEMA_ALIASES,
)
OF_OUTCOME = ("type", "options", "schema")


@dataclass(frozen=True)
class Conversation:
    """Record of a conversation: how it ended, how many seconds it took, and where its outcome was read.

    `confirmed` is false where nobody confirmed the outcome. One that is only `proposed` has `value`, and by whose
    agent. `content` is the digest of the agent's own session as it was kept at the end.
    """

    outcome: str
    seconds: int
    status: str = ""
    summary: str = ""
    reason: str = ""
    message: str = ""
    source: str = ""
    confirmed: bool = True
    transcript: str = field(default="", repr=False)
    agent: str = ""
    value: Plain = None
    content: str = ""


def plain_talk(talk: Talk) -> dict[str, object]:
    """Return the conversation's outcome, and the terms that differ from their defaults."""
    usual = Talk()
    said = {name: getattr(talk, name) for name in names_of(talk)}
    return {"outcome": said.pop("outcome"), **{n: v for n, v in said.items() if v != getattr(usual, n)}}


def parse_talk(item: Field) -> Talk:
    """Return the terms in a question's field `talk`. `outcomeSchema` may give the outcome, as `outcome_of` reads it."""
    timeout, grace, save, context, mcp = (
        aliased_field(item, n) for n in ("timeout", "grace", "save_every", "context", "mcp")
    )
    checkpoint, resume = flag(item, "checkpoint"), aliased_field(item, "resume")
    outcome = outcome_of(item) or ("approval" if checkpoint else "freeform")
    if checkpoint and outcome != "approval":
        item.need("checkpoint").fail(f"a checkpoint is an approval; the outcome here is {outcome}")
    system = aliased_field(item, "system")
    return Talk(
        outcome=outcome,
        system=system.text(most=MOST_READ) if system else "",
        context=context.plain() if context else None,
        model=parse_model(item),
        cwd=parse_cwd(item),
        mcp=parse_mcp(mcp) if mcp else None,
        timeout=seconds(timeout, 1) if timeout else None,
        grace=seconds(grace, 0) if grace else GRACE,
        transcript=flag(item, "transcript"),
        save_every=seconds(save, 0) if save else SAVE_EVERY,
        resume=parse_resume(resume) if resume else "",
        checkpoint=checkpoint,
    )


def outcome_of(item: Field) -> str:
    found = item.get("outcome")
    if found is None:
        described = aliased_schema(item)
        found = described.get("type") if described is not None else None
    return "" if found is None else found.one_of(OUTCOMES)


def aliased_schema(item: Field) -> Field | None:
    """Return `outcomeSchema: {type, options, schema}`, as other systems write it; None where there is none."""
    return next((f for name in SCHEMA_ALIASES if (f := item.get(name)) is not None), None)


def aliased_field(item: Field, name: str) -> Field | None:
    return next((f for n in (name, *ALIASES.get(name, ())) if (f := item.get(n)) is not None), None)


def flag(item: Field, name: str) -> bool:
    found = aliased_field(item, name)
    return found.boolean() if found is not None else False


def parse_model(item: Field) -> str:
    found = item.get("model")
    if found is None or found.value == "":
        return ""
    name = found.text(most=100)
    return name if re.fullmatch(MODEL, name) else found.fail("expected a model's name, such as sonnet")


def parse_cwd(item: Field) -> str:
    """Return a folder within the worktree, written with slashes; refuse one that leads out of it."""
    found = item.get("cwd")
    if found is None:
        return ""
    text = found.text(most=1000)
    parts = [part for part in text.split("/") if part not in ("", ".")]
    strange = text.startswith(("/", "~")) or "\\" in text or not text.isprintable() or ":" in text[:2]
    if strange or ".." in parts or any(part.casefold() == ".git" for part in parts):
        found.fail("expected a folder within the worktree, such as services/api")
    return "/".join(parts)


def parse_mcp(found: Field) -> Mapping[str, object]:
    """Return the content of an MCP configuration. It names commands, so only a person's word may ever start them."""
    if isinstance(found.value, str):
        found.fail("expected what the MCP configuration says (a mapping), not the name of its file")
    servers = found.need("mcpServers").mapping()
    for server in servers.values():
        server.mapping()
    return {key: field.plain() for key, field in found.mapping().items()}


def parse_resume(found: Field) -> str:
    text = found.text(most=40)
    return text if is_prefix(text) else found.fail("expected the id of an earlier gate")


def seconds(field: Field, least: int) -> int:
    """Return the seconds of a duration such as `30m`, or of a number."""
    if isinstance(field.value, str):
        try:
            spoken = parse_duration(field.text(most=40))
        except Usage as wrong:
            field.fail(wrong.message)
        field = Field(spoken, field.source, field.path, field.line)
    return field.integer(least, 10**7)


def plain_held(held: Conversation | None) -> dict[str, object] | None:
    """Return the fields of a conversation for a record, with texts cut to the length that is read back."""
    if held is None:
        return None
    said = {name: getattr(held, name) for name in names_of(held)}
    said |= {name: said[name][:MOST_WORDS] for name in ("summary", "reason", "message")}
    shown = {name: value for name, value in said.items() if value not in ("", None)}
    if held.confirmed and held.outcome not in BY_NOBODY:
        del shown["confirmed"]
    return shown


def parse_held(item: Field, endings: Sequence[str]) -> Conversation:
    """Return the field `session` of an event that ended a conversation in one of `endings`."""
    status, source, confirmed = item.get("status"), item.get("source"), item.get("confirmed")
    outcome, value = item.need("outcome").one_of(endings), item.get("value")
    return Conversation(
        outcome=outcome,
        seconds=item.need("seconds").integer(0, 10**9),
        status=parse_status(status) if status else "",
        summary=text_or_empty(item, "summary", MOST_WORDS),
        reason=text_or_empty(item, "reason", MOST_WORDS),
        message=text_or_empty(item, "message", MOST_WORDS),
        source=source.one_of(SOURCES) if source else "",
        confirmed=confirmed.boolean() if confirmed else outcome not in BY_NOBODY,
        transcript=text_or_empty(item, "transcript", MOST_TRANSCRIPT),
        agent=text_or_empty(item, "agent"),
        value=value.plain() if value else None,
        content=text_or_empty(item, "content", 128),
    )


def parse_status(found: Field) -> str:
    text = found.text(most=MOST_STATUS)
    return text if re.fullmatch(STATUS, text) else found.fail("expected a word such as DONE or NEEDS_REVIEW")


def kept(transcript: str) -> str:
    """Return a redacted transcript as an event may hold it: control characters spelt out, and only its end."""
    text = neutral(transcript).strip("\n")
    data = text.encode("utf-8", "replace")
    if len(data) <= MOST_TRANSCRIPT:
        return data.decode()
    mark = "[… the beginning is left out]\n"
    room = MOST_TRANSCRIPT - len(mark.encode())
    return mark + data[-room:].decode("utf-8", "ignore")


@dataclass(frozen=True)
class SessionRef:
    """Conversation of one agent's program. `directory` is where it runs, `transcript` the file, where known."""

    agent: str
    id: str
    directory: str = ""
    transcript: str = ""


@dataclass(frozen=True)
class SavedSession:
    """Conversation that can be resumed elsewhere: small files by relative name, clean enough to leave the machine.

    `place` is the folder that the agent's program kept it in: the conversation may mention files by that path.
    `left_out` says what is missing and why.
    """

    agent: str
    id: str
    directory: str = ""
    place: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        return sum(map(len, self.files.values()))


# The values that everything else is about. Each event of a record is one of them.


Value = str | bool | list[str] | Mapping[str, object]

QUESTION_FILE = "question.yaml"
ATTACHMENTS = "attachments"

# What the outcome of a conversation is read as.
KINDS = {"approval": "approval", "selection": "choice", "freeform": "text", "structured": "form"}


@dataclass(frozen=True)
class Option:
    label: str
    description: str = ""


@dataclass(frozen=True)
class Question:
    key: str
    prompt: str
    type: str
    options: tuple[Option, ...] = ()
    default: Value | None = None
    other: bool = False
    schema: Mapping[str, object] | None = None
    talk: Talk | None = None

    @property
    def kind(self) -> str:
        """Type of the question's answer: its own, or for a conversation that of the outcome."""
        if self.type != "session":
            return self.type
        return KINDS[self.talk.outcome] if self.talk is not None else "text"

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(option.label for option in self.options)


@dataclass(frozen=True)
class Asker:
    """Asker of a gate. `by` is the person whose agent asks, as git knows them; it may be empty.

    `logins`: the accounts on a forge that started the asking job; the agent is theirs first.
    """

    agent: str
    at: str
    by: str = ""
    host: str = ""
    directory: str = ""
    logins: tuple[str, ...] = ()


@dataclass(frozen=True)
class Work:
    """Partial work by full commit ids, so that an answer binds to exactly these trees.

    `shared`: the remote had the branch when it was asked, as far as the asking clone knew.
    """

    base: str | None
    staged: str | None
    commit: str | None
    branch: str | None = None
    dirty: bool = False
    files: int = 0
    insertions: int = 0
    deletions: int = 0
    left_out: tuple[tuple[str, str], ...] = ()
    intent_to_add: tuple[str, ...] = ()
    operation: str | None = None
    shared: bool = False

    @property
    def changed(self) -> bool:
        """Return whether the work had uncommitted changes. The commits count too: `dirty` is the asker's word."""
        return self.dirty or any(name not in (None, self.base) for name in (self.staged, self.commit))


@dataclass(frozen=True)
class Session:
    """Saved conversation of the agent. The record holds a salted digest of its id, never the id.

    `content` is the digest of what was saved with the question, `key` what proves the first one that is saved
    later. Both are empty where an older version asked.
    """

    agent: str
    digest: str
    salt: str
    saved: bool = False
    content: str = ""
    key: str = ""


@dataclass(frozen=True)
class Opened:
    title: str
    questions: tuple[Question, ...]
    asked: Asker
    work: Work
    nonce: str
    context: str = ""
    session: Session | None = None
    delivery: str = "none"
    priority: str = "normal"
    confidence: float | None = None
    deadline: str | None = None
    timeout: int | None = None
    on_timeout: str = "stuck"
    to: tuple[str, ...] = ()
    to_holds: bool = False  # others than these may not answer, where no policy says who may
    quorum: int = 1
    refusals: int = 1
    key: str | None = None
    key_for: int | None = None  # seconds from asking in which the key stands for this gate, closed or not
    follows: str | None = None
    attachments: tuple[str, ...] = ()
    config: Mapping[str, object] = field(default_factory=dict)

    @property
    def run(self) -> str:
        """Run of a flow that asks, itself or by an agent, and that the answer resumes; empty for none."""
        found = self.config.get("run")
        return found if isinstance(found, str) and is_id(found) else ""

    @property
    def forked_from(self) -> str:
        """Gate whose question this repeats, from the same work and conversation; empty if no fork."""
        found = self.config.get("fork")
        return found if isinstance(found, str) and is_id(found) else ""

    @property
    def program(self) -> str:
        """Program that the answer starts: the run, else the asker's program; empty for none."""
        return "flow" if self.run else self.session.agent if self.session is not None else ""

    notify: tuple[str, ...] = ()


# A flow's own program answers: by a rule, by its own code, or by whoever is at its terminal, whom nobody knows.
PROGRAMS = frozenset(("automatic", "handler", "prompt", "mcp"))


@dataclass(frozen=True)
class Answer:
    """Answer to a gate. `seen` is the commit of the record that its author was shown."""

    gate: str
    values: Mapping[str, Value]
    verdict: str
    at: str
    seen: str
    by: str = ""
    via: str = "cli"
    note: str = ""
    amends: str | None = None
    evidence: Mapping[str, object] = field(default_factory=dict)
    session: Conversation | None = None

    @property
    def approved(self) -> bool:
        """Return whether a person said yes. A default does not count as one, nor does an unconfirmed answer."""
        return self.verdict == "approved" and self.confirmed

    @property
    def confirmed(self) -> bool:
        """Return whether a person gave or confirmed the answer. A default is nobody's, nor is an outcome that a session
        proposed and no person looked at, nor a program's answer to itself.
        """
        if self.verdict == "defaulted" or self.via in PROGRAMS:
            return False
        return self.session is None or self.session.confirmed


@dataclass(frozen=True)
class Remark:
    """Event of words alone: a comment (also what a conversation proposed), a withdrawal, an expiry, a stop."""

    at: str
    by: str = ""
    text: str = ""
    via: str = "cli"
    session: Conversation | None = None


@dataclass(frozen=True)
class Edit:
    """Changed terms of a gate: addressees, priority, deadline, and until when it is put off. None leaves a term as it
    was.
    """

    at: str
    by: str = ""
    to: tuple[str, ...] | None = None
    priority: str | None = None
    deadline: str | None = None
    timeout: int | None = None
    later: str | None = None
    to_holds: bool = False

    @property
    def text(self) -> str:
        """Changed terms in words, so that an audit trail does not say only `edited`."""
        terms = [
            f"for {', '.join(self.to) or 'anyone'}" if self.to is not None else "",
            f"priority {self.priority}" if self.priority else "",
            f"due {self.deadline or 'never'}" if self.deadline is not None else "",
            (f"later until {self.later}" if self.later else "not later") if self.later is not None else "",
        ]
        return ", ".join(term for term in terms if term)


@dataclass(frozen=True)
class Claim:
    """Claim of one runner or waiter: the right to act on the answer. `anchor` is the end of its lease's chain."""

    at: str
    answer: str
    nonce: str
    runner: str
    host: str
    attempt: int
    term: int
    by: str = ""
    anchor: str = ""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a claim. `reveal` is a link of its lease's chain that was not shown before; only the lease's holder
    can name it.

    `cause`, one of `model.CAUSES`, decides whether it counts as an attempt; `reason` is for people alone. `said`:
    the agent's last words; `denied`: calls that it was refused; `left`: paths that it did not commit, which are in
    the directory `place`; `meant`: the branch that its commits were to go to, where they are on another one.
    """

    at: str
    claim: str
    result: str
    by: str = ""
    reason: str = ""
    log: str = ""
    branch: str = ""
    commits: tuple[str, ...] = ()
    reveal: str = ""
    said: str = ""
    denied: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    place: str = ""
    meant: str = ""
    cause: str = ENDED


Event = Opened | Answer | Remark | Edit | Claim | Outcome


@dataclass(frozen=True)
class Entry:
    """Commit of a record, with the event that it adds.

    `saw`, of an event recorded again after a race: the commits that the record had where it was first written,
    after `fork`, the last one that this record has too. `repeats`: the commit that recorded the very same file
    before.
    """

    commit: str
    name: str
    event: Event
    parents: tuple[str, ...] = ()
    path: str = ""
    saw: Collection[str] = field(default=(), compare=False)
    fork: str = ""
    repeats: str = ""


class Leased(Protocol):
    """Record that one process at a time acts on: a gate, or a run. `claim` is the event that gives the right to."""

    @property
    def id(self) -> str: ...

    @property
    def tip(self) -> str: ...

    @property
    def claim(self) -> Entry | None: ...


@dataclass(frozen=True)
class Counted:
    """Answer with the commit that recorded it; `signed_commit` is where its author's signature is."""

    commit: str
    answer: Answer
    signed_commit: str


@dataclass(frozen=True)
class Tally:
    """Index of a record for the fold. A record may have two thousand events, and a search would read all before each
    one.

    `votes`: by their authors' addresses. `alike`: who gave the same values, or refused. `places`: where in the
    record a commit counts, be it an event's own or the one that this was recorded again from.
    """

    votes: Mapping[str, Counted] = field(default_factory=dict)
    alike: Mapping[object, frozenset[str]] = field(default_factory=dict)
    places: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Gate:
    """Gate folded from its record: all that can be said of it without a clock."""

    id: str
    tip: str
    opened: Opened
    state: str
    priority: str
    to: tuple[str, ...]
    deadline: str | None
    timeout: int | None
    history: tuple[Entry, ...]
    later: str | None = None
    answer: Counted | None = None
    votes: tuple[Counted, ...] = ()
    tally: Tally = field(default_factory=Tally, compare=False, repr=False)
    late: tuple[Counted, ...] = ()
    claim: Entry | None = None
    outcome: Outcome | None = None
    attempts: int = 0
    expired: bool = False
    closing: Remark | None = None
    to_holds: bool = False

    @property
    def holds_to(self) -> bool:
        """Return whether only the addressees may answer, where no policy says who may."""
        return self.to_holds and bool(self.to)

    @property
    def events(self) -> tuple[Entry, ...]:
        """History without repeated events."""
        return tuple(entry for entry in self.history if entry.name != "repeated")

    @property
    def defaulted(self) -> bool:
        return self.answer is not None and self.answer.answer.verdict == "defaulted"

    @property
    def closed(self) -> bool:
        """Return whether nothing more will happen, so that the gate may be archived."""
        if self.state == "answered":
            return self.opened.delivery == "none"
        if self.state == "expired":
            return not self.tells_of_expiry
        return self.state in ("resumed", "withdrawn", "stopped")

    @property
    def tells_of_expiry(self) -> bool:
        """Return whether the asker still has to hear that nobody answered."""
        return self.state == "expired" and self.opened.on_timeout == "fail" and self.opened.delivery != "none"

    @property
    def actionable(self) -> bool:
        """Return whether somebody may claim the gate now: there is something to tell the asker."""
        return (self.state == "answered" and self.opened.delivery != "none") or self.tells_of_expiry
