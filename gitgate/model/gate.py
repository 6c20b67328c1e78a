"""Model: the values that everything else is about. Each event of a record is one of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Protocol

from ..document import dataclass, field
from . import is_id

if TYPE_CHECKING:
    from .conversation import Conversation, Talk


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
        """The type that its answer has: its own, or for a conversation that of the outcome."""
        if self.type != "session":
            return self.type
        return KINDS[self.talk.outcome] if self.talk is not None else "text"

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(option.label for option in self.options)


@dataclass(frozen=True)
class Asker:
    """Who asks. `by` is the person whose agent it is, as git knows them; it may be empty.

    `logins`: the accounts on a forge that started the job which asked, whose agent it is first.
    """

    agent: str
    at: str
    by: str = ""
    host: str = ""
    directory: str = ""
    logins: tuple[str, ...] = ()


@dataclass(frozen=True)
class Work:
    """The partial work by full commit ids, so that an answer binds to exactly these trees.

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
        """Whether anything was uncommitted. By the commits too: what `dirty` says is the asker's word."""
        return self.dirty or any(name not in (None, self.base) for name in (self.staged, self.commit))


@dataclass(frozen=True)
class Session:
    """The agent's saved conversation. The record holds a salted digest of its id, never the id.

    `content` is the digest of what was saved with the question, `key` what proves the first one that is saved later.
    Both are empty where an older version asked.
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
    quorum: int = 1
    refusals: int = 1
    key: str | None = None
    key_for: int | None = None  # seconds from asking in which the key stands for this gate, closed or not
    follows: str | None = None
    attachments: tuple[str, ...] = ()
    config: Mapping[str, object] = field(default_factory=dict)

    @property
    def run(self) -> str:
        """The run of a flow that asks, itself or by an agent of it: what goes on with the answer. Empty where none does."""
        found = self.config.get("run")
        return found if isinstance(found, str) and is_id(found) else ""

    @property
    def program(self) -> str:
        """What is started with the answer: the run, else the asker's own program. Empty where nothing is."""
        return "flow" if self.run else self.session.agent if self.session is not None else ""

    notify: tuple[str, ...] = ()


# A flow's own program answers: by a rule, by its own code, or by whoever is at its terminal, whom nobody knows.
PROGRAMS = frozenset(("automatic", "handler", "prompt", "mcp"))


@dataclass(frozen=True)
class Answer:
    """What somebody said. `seen` is the commit of the record that they had before them."""

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
        """Whether a person said yes. A default is nobody's yes, nor is what nobody confirmed."""
        return self.verdict == "approved" and self.confirmed

    @property
    def confirmed(self) -> bool:
        """Whether somebody said it. A default is nobody's word, nor is what a session proposed and no person looked at, or what
        a program answered itself.
        """
        if self.verdict == "defaulted" or self.via in PROGRAMS:
            return False
        return self.session is None or self.session.confirmed


@dataclass(frozen=True)
class Remark:
    """An event that is only words: a comment (also what a conversation proposed), a withdrawal, an expiry, a stop."""

    at: str
    by: str = ""
    text: str = ""
    via: str = "cli"
    session: Conversation | None = None


@dataclass(frozen=True)
class Edit:
    """Changed terms: whom it is for, how pressing, until when, and until when it is put aside. None leaves a term as it was."""

    at: str
    by: str = ""
    to: tuple[str, ...] | None = None
    priority: str | None = None
    deadline: str | None = None
    timeout: int | None = None
    later: str | None = None

    @property
    def text(self) -> str:
        """What changed, in words: an audit trail that says only `edited` says nothing."""
        terms = [
            f"for {', '.join(self.to) or 'anyone'}" if self.to is not None else "",
            f"priority {self.priority}" if self.priority else "",
            f"due {self.deadline or 'never'}" if self.deadline is not None else "",
            (f"later until {self.later}" if self.later else "not later") if self.later is not None else "",
        ]
        return ", ".join(term for term in terms if term)


@dataclass(frozen=True)
class Claim:
    """The right to act on the answer, taken by one runner or waiter. `anchor` is the end of its lease's chain."""

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
    """What came of a claim. `reveal` is a link of its lease's chain that was not told before: its holder says it.

    `said`: the agent's last words; `denied`: calls that it was refused; `left`: paths that it did not commit, which are in
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


Event = Opened | Answer | Remark | Edit | Claim | Outcome


@dataclass(frozen=True)
class Entry:
    """One commit of a record, with what it adds.

    `saw`, of an event recorded again after a race: the commits that the record had where it was first written, after
    `fork`, the last one that this record has too. `repeats`: the commit that recorded the very same file before.
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
    """A record that one process at a time acts on: a gate, or a run. `claim` is the event that gives the right to."""

    @property
    def id(self) -> str: ...

    @property
    def tip(self) -> str: ...

    @property
    def claim(self) -> Entry | None: ...


@dataclass(frozen=True)
class Counted:
    """An answer and the commit that recorded it; `signed_commit` is where its author's signature is."""

    commit: str
    answer: Answer
    signed_commit: str


@dataclass(frozen=True)
class Tally:
    """What the fold looks up of a record, which may have two thousand events: searched for, each would cost all before it.

    `votes`: by their authors' addresses. `alike`: who gave the same values, or refused. `places`: where in the record a
    commit counts, be it an event's own or what that was recorded again from.
    """

    votes: Mapping[str, Counted] = field(default_factory=dict)
    alike: Mapping[object, frozenset[str]] = field(default_factory=dict)
    places: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Gate:
    """A record folded: all that can be said of a gate without a clock."""

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

    @property
    def events(self) -> tuple[Entry, ...]:
        """The history without what it has twice."""
        return tuple(entry for entry in self.history if entry.name != "repeated")

    @property
    def defaulted(self) -> bool:
        return self.answer is not None and self.answer.answer.verdict == "defaulted"

    @property
    def closed(self) -> bool:
        """Nothing more will happen: the gate may be archived."""
        if self.state == "answered":
            return self.opened.delivery == "none"
        if self.state == "expired":
            return not self.tells_of_expiry
        return self.state in ("resumed", "withdrawn", "stopped")

    @property
    def tells_of_expiry(self) -> bool:
        """The asker is still to hear that nobody answered."""
        return self.state == "expired" and self.opened.on_timeout == "fail" and self.opened.delivery != "none"

    @property
    def actionable(self) -> bool:
        """Somebody may claim it now: there is something to tell the asker."""
        return (self.state == "answered" and self.opened.delivery != "none") or self.tells_of_expiry
