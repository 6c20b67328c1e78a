"""Model: ids, words, states and people. All that may happen to a gate is a row of the state table; what is not there changes nothing.

The diagram in `docs/states.md` is generated from this table. Below it are people as git knows them, and the trailers of a
commit's message, which tell who asked, answered or wrote what.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ..document import NamedTuple, dataclass
from ..errors import IllegalEvent

AWAITING = "awaiting"
ANSWERED = "answered"
RESUMING = "resuming"
RESUMED = "resumed"
WITHDRAWN = "withdrawn"
STOPPED = "stopped"
EXPIRED = "expired"
FAILED = "failed"
STATES = (AWAITING, ANSWERED, RESUMING, RESUMED, WITHDRAWN, STOPPED, EXPIRED, FAILED)


class StateRow(NamedTuple):
    state: str | None
    event: str
    to: str
    why: str


TABLE: tuple[StateRow, ...] = (
    StateRow(None, "opened", AWAITING, "an agent asks and exits"),
    StateRow(AWAITING, "answered", ANSWERED, "a person answers, and no more answers are needed"),
    StateRow(AWAITING, "voted", AWAITING, "a person answers, and the quorum needs more"),
    StateRow(
        AWAITING,
        "defaulted",
        ANSWERED,
        "the deadline passed and the declared default applies; nobody said it",
    ),
    StateRow(AWAITING, "expired", EXPIRED, "the deadline passed and nobody answered"),
    StateRow(
        AWAITING,
        "reminded",
        AWAITING,
        "the deadline passed; announced again with a new one, or put aside for as long",
    ),
    StateRow(AWAITING, "withdrawn", WITHDRAWN, "the asker no longer needs it"),
    StateRow(AWAITING, "stopped", STOPPED, "a person ends it; the agent does not go on"),
    StateRow(AWAITING, "edited", AWAITING, "reassigned, put aside, or another priority or deadline"),
    StateRow(AWAITING, "commented", AWAITING, "a remark that decides nothing"),
    StateRow(
        AWAITING, "late", AWAITING, "words from elsewhere whose author had said something else here by then"
    ),
    StateRow(ANSWERED, "amended", ANSWERED, "the person corrects the answer before anybody acted on it"),
    StateRow(ANSWERED, "claimed", RESUMING, "one runner or waiter takes the right to act"),
    StateRow(ANSWERED, "commented", ANSWERED, "a remark that decides nothing"),
    StateRow(ANSWERED, "late", ANSWERED, "an answer that arrived after the one that counts"),
    StateRow(RESUMING, "claimed", RESUMING, "the claim lapsed and another runner took over"),
    StateRow(RESUMING, "released", ANSWERED, "the start failed, or the claim was handed back"),
    StateRow(RESUMING, "returned", EXPIRED, "the same, where nobody had answered"),
    StateRow(RESUMING, "resumed", RESUMED, "the agent heard the answer"),
    StateRow(RESUMING, "failed", FAILED, "the attempts are used up; a person is needed"),
    StateRow(RESUMING, "commented", RESUMING, "a remark that decides nothing"),
    StateRow(RESUMING, "late", RESUMING, "an answer that arrived after the one that counts"),
    StateRow(FAILED, "claimed", RESUMING, "a person asks for another attempt"),
    StateRow(FAILED, "stopped", STOPPED, "a person gives it up"),
    StateRow(FAILED, "commented", FAILED, "a remark that decides nothing"),
    StateRow(FAILED, "late", FAILED, "an answer that arrived after the one that counts"),
    StateRow(EXPIRED, "claimed", RESUMING, "with `fail`: the agent is resumed to hear that nobody answered"),
    StateRow(EXPIRED, "late", EXPIRED, "an answer that arrived after the deadline"),
    StateRow(RESUMED, "late", RESUMED, "an answer that arrived after the one that counts"),
    StateRow(WITHDRAWN, "late", WITHDRAWN, "an answer to a question that was taken back"),
    StateRow(STOPPED, "late", STOPPED, "an answer to a gate that a person had ended"),
    *(
        StateRow(state, "repeated", state, "what the record has already, once more; it counts for nothing")
        for state in STATES
    ),
)

# A run of a flow has a record of its own kind, its journal (`record.runs`). These are its states and events.
RUNNING = "running"
WAITING_HUMAN = "waiting_human"
SLEEPING = "sleeping"
STOPPING = "stopping"
COMPLETED = "completed"
STUCK = "stuck"
RUN_STATES = (RUNNING, WAITING_HUMAN, SLEEPING, STOPPING, COMPLETED, STUCK, FAILED, STOPPED)

RUN_TABLE: tuple[StateRow, ...] = (
    StateRow(None, "started", RUNNING, "somebody starts a flow"),
    StateRow(RUNNING, "claimed", RUNNING, "one process takes the right to go on"),
    StateRow(RUNNING, "released", RUNNING, "it hands that back, and nothing waits for a person"),
    StateRow(RUNNING, "begun", RUNNING, "a step begins"),
    StateRow(RUNNING, "asked", RUNNING, "a step has opened a gate"),
    StateRow(RUNNING, "done", RUNNING, "a step is done; its result stands"),
    StateRow(RUNNING, "raised", RUNNING, "a step ended with an error; it stands"),
    StateRow(RUNNING, "patched", RUNNING, "the flow's code was changed here"),
    StateRow(RUNNING, "noted", RUNNING, "a remark that decides nothing"),
    StateRow(RUNNING, "waiting", WAITING_HUMAN, "nothing goes on before a person has answered"),
    StateRow(RUNNING, "sleeping", SLEEPING, "nothing goes on before a moment, or before a signal"),
    StateRow(RUNNING, "signalled", RUNNING, "somebody sends it a word, which it keeps until it asks for it"),
    StateRow(RUNNING, "completed", COMPLETED, "the flow returned"),
    StateRow(RUNNING, "stuck", STUCK, "the flow says that it cannot go on"),
    StateRow(RUNNING, "failed", FAILED, "the flow raised an error"),
    StateRow(RUNNING, "stopping", STOPPING, "a person ends it; no step begins any more"),
    StateRow(WAITING_HUMAN, "claimed", RUNNING, "an answer came, or somebody looks for one"),
    StateRow(WAITING_HUMAN, "noted", WAITING_HUMAN, "a remark that decides nothing"),
    StateRow(WAITING_HUMAN, "signalled", WAITING_HUMAN, "a word that it keeps; it may wait for that as well"),
    StateRow(WAITING_HUMAN, "stopping", STOPPING, "a person ends it"),
    StateRow(SLEEPING, "claimed", RUNNING, "the moment or the signal came, or somebody looks for it"),
    StateRow(SLEEPING, "noted", SLEEPING, "a remark that decides nothing"),
    StateRow(SLEEPING, "signalled", SLEEPING, "a word that it keeps; it may wait for that"),
    StateRow(SLEEPING, "stopping", STOPPING, "a person ends it"),
    StateRow(STOPPING, "claimed", STOPPING, "whoever ends it takes the right to"),
    StateRow(STOPPING, "released", STOPPING, "it hands that back"),
    StateRow(STOPPING, "asked", STOPPING, "the gate of a step that had begun"),
    StateRow(STOPPING, "done", STOPPING, "a step that had begun was done"),
    StateRow(STOPPING, "raised", STOPPING, "a step that had begun ended with an error"),
    StateRow(STOPPING, "stopped", STOPPED, "nothing of it runs any more"),
)

# Kept in the record, and of no consequence.
WITHOUT_EFFECT = ("late", "repeated")


class EventTraits(NamedTuple):
    """Traits of every event of one name. A new event needs a row here and its rows in the state table above."""

    color: str = ""
    said: bool = False
    """Somebody's word, so that it is recorded again where another push was first. Claims and outcomes never are."""
    silent: bool = False
    """A passed deadline brought it about. It may not be made up."""
    talk: bool = False
    """It decides nothing, and leaves room in the record for an answer."""
    harmless: bool = False
    """Whoever read the gate before it came may still answer."""


PLAIN = EventTraits()
TRAITS = {
    "opened": EventTraits("yellow"),
    "answered": EventTraits("green", said=True),
    "voted": EventTraits("green", said=True, harmless=True),
    "defaulted": EventTraits("magenta", silent=True),
    "expired": EventTraits("magenta", silent=True),
    "reminded": EventTraits(silent=True, harmless=True),
    "withdrawn": EventTraits(said=True),
    "stopped": EventTraits("red", said=True),
    "edited": EventTraits(said=True, talk=True),
    "commented": EventTraits(said=True, talk=True, harmless=True),
    "late": EventTraits(said=True, harmless=True),
    "amended": EventTraits("green", said=True),
    "claimed": PLAIN,
    "released": PLAIN,
    "returned": PLAIN,
    "resumed": EventTraits("cyan"),
    "failed": EventTraits("red"),
    "repeated": EventTraits(harmless=True),
}


def traits(event: str) -> EventTraits:
    """Return the traits of an event's name. A name without a row, such as an outcome not yet known, has none."""
    return TRAITS.get(event, PLAIN)


_NEXT = {(row.state, row.event): row.to for row in TABLE}


def allows(state: str | None, event: str) -> bool:
    return (state, event) in _NEXT


def after(state: str | None, event: str) -> str:
    """Return the state after an event; IllegalEvent says why there is none."""
    try:
        return _NEXT[state, event]
    except KeyError:
        raise IllegalEvent(refusal(state, event), hint=advice(state)) from None


LET_GO = (
    "stalled: ",
    "diverged: ",
)  # why a run was let go that another machine, or other code, may go on with


def run_status(state: str, reason: str = "") -> str:
    """Return a run's state in one word, for lists; a run that cannot go on here is stalled."""
    if state == RUNNING and reason.startswith(LET_GO):
        return "stalled"
    return RUNNING if state == STOPPING else state


_NEXT_OF_RUN = {(row.state, row.event): row.to for row in RUN_TABLE}


def after_in_run(state: str | None, event: str) -> str:
    """Return the state of a run after an event; IllegalEvent says why there is none."""
    try:
        return _NEXT_OF_RUN[state, event]
    except KeyError:
        possible = [row.event for row in RUN_TABLE if row.state == state]
        then = f"; what can happen now: {', '.join(possible)}" if possible else ": it is over"
        raise IllegalEvent(f"a run that is {state or 'not there'} cannot be {event}{then}") from None


def refusal(state: str | None, event: str) -> str:
    if state == ANSWERED and event in ("answered", "voted", "stopped", "withdrawn"):
        return "the gate is already answered"
    if state in (RESUMING, RESUMED) and event in ("answered", "voted", "amended", "stopped", "withdrawn"):
        return (
            "the gate is already answered, and the agent has been told"
            if state == RESUMED
            else ("the gate is already answered, and an agent is acting on it")
        )
    # That a late answer would be kept is no way on for whoever is refused.
    possible = [row.event for row in TABLE if row.state == state and row.event not in WITHOUT_EFFECT]
    then = f"; what can happen now: {', '.join(possible)}" if possible else ": it is over"
    return f"a gate that is {state or 'not there'} cannot be {event}{then}"


def advice(state: str | None) -> str:
    if state == ANSWERED:
        return "correct it with: git gate respond --amend ID ANSWER (until an agent takes it)"
    if state in (RESUMING, RESUMED, FAILED):
        return "see what came of it with: git gate show ID"
    return "see how it ended with: git gate show ID" if state else ""


PRIORITIES = ("urgent", "high", "normal", "low")  # most pressing first
DELIVERIES = ("resume", "wait", "none")
ON_TIMEOUT = ("stuck", "default", "remind", "defer", "fail")
# What else people write for one of these.
AT_DEADLINE = {"notify_again": "remind", "notify-again": "remind"}
VERDICTS = ("answered", "approved", "rejected", "defaulted")
SESSION_OUTCOMES = ("approval", "selection", "freeform", "structured")
OUTCOMES = ("resumed", "released", "failed")
# The cause of an outcome, beside its reason: how the attempt came to its end. Only what was handed back is no attempt.
ENDED = "ended"
HANDED_BACK = "handed_back"
ASKED_AGAIN = "asked_again"
CAUSES = (ENDED, HANDED_BACK, ASKED_AGAIN)
# The field of a conversation, by the flag and the keyword that set it.
SESSION_FIELDS = {
    "outcome": "outcome",
    "system_prompt": "system",
    "session_context": "context",
    "model": "model",
    "cwd": "cwd",
    "mcp_config": "mcp",
    "session_timeout": "timeout",
    "grace": "grace",
    "transcript": "transcript",
    "resume_session": "resume",
    "save_every": "save_every",
    "checkpoint": "checkpoint",
}


ALPHABET = "23456789abcdefghijkmnpqrstuvwxyz"  # base32 without the look-alikes 0 o 1 l
LENGTH = 10
SHORTEST_PREFIX = 4
_LETTERS = frozenset(ALPHABET)


def gate_id(opened: bytes) -> str:
    """Return the id of the gate that this `question.yaml` opens. The document holds a nonce, so ids never repeat."""
    from ..text.digests import sha256  # late: a list makes no names

    number = int.from_bytes(sha256(opened).digest()[:8], "big")
    return "".join(ALPHABET[(number >> (5 * place)) & 31] for place in range(LENGTH))


def no_word(gate: str) -> bool:
    """Return whether the letters that people type of a gate's id contain a digit, and so are no word of a reply."""
    return any(letter.isdigit() for letter in gate[:SHORTEST_PREFIX])


def is_id(text: str) -> bool:
    return len(text) == LENGTH and _LETTERS.issuperset(text)


def is_prefix(text: str) -> bool:
    return SHORTEST_PREFIX <= len(text) <= LENGTH and _LETTERS.issuperset(text)


def file_name(contents: bytes) -> str:
    """Return the unique part of an event's file name: equal content is the same file, so a repeat adds nothing."""
    from ..text.digests import sha256

    return sha256(contents).hexdigest()[:16]


# When two names are one person. A quorum counts people, and only an answer's author amends it.


# As forges write an account into commits: `ID+LOGIN@users.noreply.HOST`, before they had numbers `LOGIN@…`.
NOREPLY = r"(?:[0-9]+\+)?([^@+\s]+)@users\.noreply\.[^@\s]+"
ROBOT = "[bot]"


@lru_cache(4096)  # A record names few people, and asks often.
def address(by: str) -> str:
    """Return the part of `Name <email>` that identifies a person: the address, or the whole text where there is none.
    A name alone may be spelt in any way.
    """
    _, mark, rest = by.rpartition("<")
    email = rest.partition(">")[0] if mark else ""
    return (email.strip() or by.strip()).casefold()


def has_address(by: str) -> bool:
    """Return whether a name has an address: `Name <email>`, or an address alone. Anybody could write a bare name."""
    return "@" in address(by)


def same_person(one: str, other: str) -> bool:
    """Return whether both names mean the same person; an empty name is nobody, and equals none."""
    return bool(one) and address(one) == address(other)


def login_of(by: str) -> str:
    """Return the account of a forge that an address names; empty where it names none. Anybody can write an address."""
    known = address(by)
    found = re.fullmatch(NOREPLY, known) if "@users.noreply." in known else None
    return found.group(1) if found else ""


def is_robot(by: str) -> bool:
    """Return whether this is the account of a program, by the name that forges give such accounts."""
    return login_of(by).endswith(ROBOT)


def as_account(login: str, number: str, host: str) -> str:
    """Return an account as the forge writes it into commits: its number stays when somebody else gets the login."""
    return f"{login} <{f'{number}+' if number else ''}{login}@users.noreply.{host}>"


def split_person(who: str) -> str:
    return who.partition(" <")[0]


def answerer_words(by: str) -> str:
    """Return the name of whoever answered; where nobody did, words for the default."""
    return split_person(by) or "nobody (its default)"


VERIFIED, UNVERIFIED, INVALID = "verified", "unverified", "invalid"


@dataclass(frozen=True)
class SignatureMark:
    """Mark of a signature. `by`: the signer, where known; `key`: the signer's key."""

    word: str = UNVERIFIED
    by: str = ""
    key: str = ""

    @property
    def words(self) -> str:
        """Mark in words, with the signer where that name differs from the answer's."""
        return f"{self.word}, signed by {self.by}" if self.by else self.word


UNSIGNED = SignatureMark()


# The commit message of an event. A subject for people, trailers for lists; no decision is taken from
# them.


PREFIX = "Hitl-"
MOST_BYTES = 200
MOST_NAME = 24


def one_line(text: str, most: int = MOST_BYTES) -> str:
    """Return one line of UTF-8 without control characters, of at most `most` bytes, cut between characters."""
    if len(text) <= most and text.isascii() and text.isprintable() and "  " not in text:
        return text.strip(" ")  # as most are
    # Without their joiner, pictures that were one stand beside one another.
    line = " ".join("".join(c if c.isprintable() else " " for c in text.replace("\u200d", "")).split())
    raw = line.encode("utf-8", "replace")
    if len(raw) <= most:
        return raw.decode("utf-8")
    return raw[: most - 3].decode("utf-8", "ignore").rstrip() + "…"


def trailer_message(subject: str, trailers: Iterable[tuple[str, str]]) -> str:
    lines = [f"{PREFIX}{name}: {one_line(value)}" for name, value in trailers if value]
    return f"{one_line(subject, 120) or 'gate'}\n\n" + "\n".join(lines) + "\n"


def parse_trailers(message: str) -> dict[str, str] | None:
    """Return the trailers of the last paragraph; None when they break the rules: duplicate, overlong, unprintable, not
    ours.

    Git's own trailer formats mix values and obey the user's settings, so the paragraph is read here.
    """
    paragraph = message.rstrip("\n").rpartition("\n\n")[2]
    lines = paragraph.split("\n")
    # Checked as a whole, then split as a whole: a list does this ten thousand times.
    ours = paragraph.startswith(PREFIX) and paragraph.count(f"\n{PREFIX}") == len(lines) - 1
    longest = len(max(lines, key=len))
    if not ours or longest > MOST_BYTES + MOST_NAME or not "".join(lines).isprintable():
        return None
    try:
        found = dict([line[len(PREFIX) :].split(": ", 1) for line in lines])
    except ValueError:
        return None
    if len(found) != len(lines):
        return None
    short = longest <= MOST_BYTES and paragraph.isascii()
    return (
        found
        if short or all(len(v.encode("utf-8", "replace")) <= MOST_BYTES for v in found.values())
        else None
    )


def misread(encoding: bytes, body: bytes) -> str:
    """Return why git would show another message than this commit's bytes hold; empty when it shows them as they are.

    Git decodes them by the header `encoding`, which is empty where there is none.
    """
    if encoding.lower() not in (b"", b"utf-8", b"utf8"):
        return f"is said to be in {one_line(encoding.decode('ascii', 'replace'), 40)}, not in UTF-8"
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return "is not UTF-8"
    return ""


_TRAILER = r"[A-Za-z0-9][A-Za-z0-9-]*: ?\S"


def with_trailers(message: str, wanted: Sequence[tuple[str, str]]) -> str:
    """Return `message` with each of `wanted` as one of its trailers; one that is there already is not repeated."""
    body = message.rstrip("\n")
    before, gap, last = body.rpartition("\n\n")
    block = last.split("\n") if gap and is_block(last) else []
    missing = [f"{name}: {value}" for name, value in wanted if f"{name}: {value}" not in block]
    if not missing:
        return message
    if block:
        return f"{before}\n\n" + "\n".join([*block, *missing]) + "\n"
    return (f"{body}\n\n" if body else "\n\n") + "\n".join(missing) + "\n"


def is_block(paragraph: str) -> bool:
    """Return whether every line of the last paragraph is a trailer, or continues one."""
    lines = paragraph.split("\n")
    return bool(re.match(_TRAILER, lines[0])) and all(
        re.match(_TRAILER, line) or line[:1] in " \t" for line in lines
    )


def trailer_values(message: str, name: str) -> list[str]:
    """Return the values of all lines with this name in a commit's message, anywhere in it.

    None is missed: `cherry-pick -x` writes a line below the trailers that is none, and `merge --squash` indents
    them. The caller has to check the values.
    """
    return [said.strip() for said in re.findall(rf"(?m)^[ \t]*{re.escape(name)}: (.*)$", message)]
