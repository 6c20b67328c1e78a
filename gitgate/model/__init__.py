"""Model: ids, words and states. All that may happen to a gate is a row of the state table; what is not there changes nothing.

The diagram in `docs/states.md` is generated from this table.
"""

from __future__ import annotations

from ..document import NamedTuple
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
    """What is so of each event of a name, whatever it says. A new event has a row here and its rows in the table above."""

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
    """Of what no row names, such as an outcome before it is known which, nothing is so."""
    return TRAITS.get(event, PLAIN)


_NEXT = {(row.state, row.event): row.to for row in TABLE}


def allows(state: str | None, event: str) -> bool:
    return (state, event) in _NEXT


def after(state: str | None, event: str) -> str:
    """The state that follows, or IllegalEvent that says why not."""
    try:
        return _NEXT[state, event]
    except KeyError:
        raise IllegalEvent(refusal(state, event), hint=advice(state)) from None


LET_GO = (
    "stalled: ",
    "diverged: ",
)  # why a run was let go that another machine, or other code, may go on with


def run_status(state: str, reason: str = "") -> str:
    """A run's state in one word, as lists have it: one that cannot go on here is stalled."""
    if state == RUNNING and reason.startswith(LET_GO):
        return "stalled"
    return RUNNING if state == STOPPING else state


_NEXT_OF_RUN = {(row.state, row.event): row.to for row in RUN_TABLE}


def after_in_run(state: str | None, event: str) -> str:
    """The state of a run that follows, or IllegalEvent that says why not."""
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
    """The id of the gate that this `question.yaml` opens; the document holds a nonce, so that ids never repeat."""
    from hashlib import sha256  # late: a list makes no names

    number = int.from_bytes(sha256(opened).digest()[:8], "big")
    return "".join(ALPHABET[(number >> (5 * place)) & 31] for place in range(LENGTH))


def no_word(gate: str) -> bool:
    """Whether the letters that people type of this name hold a digit: it can then be no word of a reply."""
    return any(letter.isdigit() for letter in gate[:SHORTEST_PREFIX])


def is_id(text: str) -> bool:
    return len(text) == LENGTH and _LETTERS.issuperset(text)


def is_prefix(text: str) -> bool:
    return SHORTEST_PREFIX <= len(text) <= LENGTH and _LETTERS.issuperset(text)


def file_name(contents: bytes) -> str:
    """The unique part of an event's file: the same words said again are the same file, so a repeat adds nothing."""
    from hashlib import sha256

    return sha256(contents).hexdigest()[:16]
