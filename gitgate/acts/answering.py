"""Acts: a person answers. The answer binds to the commit that was seen, and is checked before anything is written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from .. import model
from ..context import Desk
from ..context.targets import remote_of
from ..document import dataclass, field, replace
from ..errors import BadAnswer, Conflict, GateError, IllegalEvent, NotAllowed, PushRefused, Stale
from ..exchange.syncing import Published, publish
from ..gates.recording import act, record, reload
from ..model import ANSWERED, AWAITING, refusal, split_person, traits
from ..model.gate import Answer, Edit, Entry, Event, Gate
from ..policy.permit import Permit, permit, signing, written_at
from ..policy.ruling import SaidHow, Who
from ..questions import Given
from ..questions.answers import read_answer
from ..questions.types import type_of
from ..record import Summary
from ..record.events import changed_terms, said_elsewhere, why_late
from ..store.git.refs import OPEN

if TYPE_CHECKING:
    from ..model.gate import Conversation


class Deliver(Protocol):
    """How a recorded answer goes on its way: published, or acted on at once with what publishes it. `work`: with the
    conversation that came to it.
    """

    def __call__(
        self, desk: Desk, gate: Gate, *, push: bool | None = None, work: bool = False
    ) -> Published: ...


@dataclass(frozen=True)
class Responded:
    """An answer that was written. `counted` is False while a quorum needs more."""

    gate: Gate
    answer: Answer
    published: Published
    counted: bool = True


@dataclass(frozen=True)
class Manner:
    """How an answer is given, apart from what it is."""

    note: str = ""
    via: str = "cli"
    seen: str | None = None
    amend: bool = False
    sign: bool | None = None
    push: bool | None = None
    who: str | None = None
    evidence: Mapping[str, object] = field(default_factory=dict)
    session: Conversation | None = None  # the conversation that came to this answer
    deliver: Deliver = publish


def respond(desk: Desk, gate: Gate, given: Given, manner: Manner = Manner()) -> Responded:
    """Answer `gate` as the person at this machine (or as `manner.who`, whom the surface has vouched for)."""
    if manner.who is None:
        desk.refuse_agents("respond")
    who = manner.who or desk.person()
    gate = act(desk, gate)
    seen = manner.seen or gate.tip
    check_open(gate, who, amend=manner.amend)
    permit = permitted(desk, gate, who, manner)
    values, verdict = read_answer(gate.opened.questions, given)

    def decide(current: Gate) -> tuple[str, Event]:
        check_open(current, who, amend=manner.amend)
        check_seen(current, seen)
        amends = current.answer.commit if manner.amend and current.answer else None
        return "answered", Answer(
            gate=current.id,
            values=values,
            verdict=verdict,
            at=desk.now,
            seen=seen,
            by=who,
            via=manner.via,
            note=manner.note.strip(),
            amends=amends,
            evidence={**manner.evidence, **permit.evidence},
            session=manner.session,
        )

    with signing(gate, permit):
        after = record(desk, gate, decide, who=who, sign=permit.sign, approve=permit.approve)
    said = after.history[-1].event
    published = manner.deliver(desk, after, push=manner.push)
    if not isinstance(said, Answer):
        raise TypeError("an answer was recorded as something else")
    refuse_archived(published)
    # A push that failed may have heard of another answer before: what is here now is what counts.
    unsure = published.remote is not None and not published.pushed
    final = reload(desk, gate.id) if unsure else published.gate
    refuse_late(final, said)
    return Responded(final, said, published, counted=final.state != AWAITING)


def permitted(desk: Desk, gate: Gate, who: str, manner: Manner) -> Permit:
    """Leave to answer, by the policy. A surface that names somebody else may vouch for their login, and for when they said it."""
    login = manner.evidence.get("login") if manner.who is not None else None
    known = Who(who, login=login if isinstance(login, str) else "")
    said = SaidHow(written_at(manner.evidence) or desk.now, manner.via)
    return permit(desk, gate, known, said, sign=manner.sign)


def check_open(gate: Gate, who: str, *, amend: bool) -> None:
    if amend:
        check_amendable(gate, who)
    elif gate.state != AWAITING:
        raise closed_error(gate)


def check_amendable(gate: Gate, who: str) -> None:
    if gate.state == AWAITING:
        raise BadAnswer(
            f"gate {gate.id} has no answer to amend yet", hint=f"git gate respond {gate.id} ANSWER"
        )
    if gate.state != ANSWERED or gate.answer is None:
        raise closed_error(gate, "amended")
    if not model.same_person(gate.answer.answer.by, who):
        raise NotAllowed(
            f"the answer is {split_person(gate.answer.answer.by) or 'nobody'}'s; only its author amends it"
        )


def closed_error(gate: Gate, event: str = "answered") -> Conflict:
    words = refusal(gate.state, event)
    if gate.answer is not None:
        by = split_person(gate.answer.answer.by) or "nobody (a default)"
        words += f"; by {by} at {gate.answer.answer.at}"
    elif gate.closing is not None and gate.closing.text:
        words = f"the gate is {gate.state}: {gate.closing.text}"
    return IllegalEvent(words, hint=f"git gate show {gate.id}")


def check_seen(gate: Gate, seen: str) -> None:
    """Whether what the person had before them is still what the gate says."""
    places = [place for place, entry in enumerate(gate.history) if seen in (entry.commit, *entry.parents[1:])]
    if not places:
        raise Stale(f"what you saw of gate {gate.id} is not part of it", hint=f"git gate show {gate.id}")
    since = [entry.name for entry in gate.history[places[0] + 1 :] if not is_harmless(entry)]
    if since and gate.state == AWAITING:
        raise Stale(
            f"gate {gate.id} was {', '.join(since)} after you read it", hint=f"git gate show {gate.id}"
        )


def is_harmless(entry: Entry) -> bool:
    """Whether whoever read the gate before it may still answer: what only puts it aside asks nothing else."""
    if isinstance(entry.event, Edit) and changed_terms(entry.event) == {"later"}:
        return True
    return traits(entry.name).harmless


def refuse_archived(published: Published) -> None:
    if published.archived:
        raise Conflict(
            f"gate {published.gate.id} was closed and archived before; your answer is kept beside it, with no effect",
            hint=f"git gate show {published.gate.id}",
        )


def refuse_late(gate: Gate, said: Answer) -> None:
    """After a race over the network the answer may be there, and not count, or have no place: its author is told."""
    became = next((entry.name for entry in gate.history if entry.event == said), None)
    if became not in (None, "late"):
        return
    kept = "is kept as late, with no effect" if became else "has no place in its record"
    own = said_elsewhere(gate, said)
    hint = (
        f"if it still holds, say it again: git gate respond {gate.id}" if own else f"git gate show {gate.id}"
    )
    raise Conflict(f"{why_late(gate, said)}; your answer {kept}", hint=hint)


def signal(desk: Desk, gate: Gate, status: str, message: str = "", *, push: bool | None = None) -> Responded:
    """Answer for a script. On a question that is decided in a session the status itself is kept, whatever it is."""
    desk.refuse_agents("signal")
    given = signal_given(gate, status, message)
    note = "" if given.text is not None and given.text == message.strip() else message
    manner = Manner(note=note, via="signal", push=push, session=held(gate, status, message))
    return respond(desk, gate, given, manner)


def held(gate: Gate, status: str, message: str) -> Conversation | None:
    """What a signal leaves of a session that nobody held here."""
    if all(question.type != "session" for question in gate.opened.questions):
        return None
    from ..model.gate import STATUS, Conversation

    word = status.strip()
    if not re.fullmatch(STATUS, word):
        return Conversation("completed", 0, message=message.strip(), source="person")
    return Conversation("completed", 0, status=word, message=message.strip(), source="person")


def signal_given(gate: Gate, status: str, message: str = "") -> Given:
    """What a script's status means as an answer to this gate."""
    word = status.strip().upper()
    if not word:
        raise BadAnswer("a signal needs a status", hint="git gate signal ID --status CONTINUE")
    decisive = next((one.signals for q in gate.opened.questions if (one := type_of(q)).signals), None)
    if decisive:
        if word not in decisive:
            raise BadAnswer(
                f"{status!r} decides nothing here: this gate asks for an approval",
                hint="--status CONTINUE approves, --status STOP rejects",
            )
        return Given(approve=decisive[word])
    only = gate.opened.questions[0]
    if message.strip() and only.type == "session" and type_of(only).entry != "lines":
        return Given(text=message.strip())  # a status is no label and no object: the message is
    return Given(text=status.strip())


@dataclass(frozen=True)
class BatchFate:
    """What became of one gate of the batch: answered, or why not."""

    id: str
    title: str
    done: Responded | None = None
    error: GateError | None = None


def matching(found: Sequence[Summary], words: str) -> list[Summary]:
    """Those whose title or question holds `words`; case does not matter."""
    wanted = words.casefold()
    return [s for s in found if wanted in s.title.casefold() or wanted in s.question.casefold()]


def respond_all(desk: Desk, chosen: Sequence[Summary], given: Given, manner: Manner) -> list[BatchFate]:
    """One answer for all of them; a gate that it does not fit is left alone and named."""
    local = replace(manner, push=False)
    fates = [recorded(desk, summary, given, local) for summary in chosen]
    if manner.push is False or (manner.push is None and not desk.settings.flag("push")):
        return fates
    return published(desk, fates, insist=bool(manner.push) or desk.settings.in_ci)


def recorded(desk: Desk, summary: Summary, given: Given, manner: Manner) -> BatchFate:
    try:
        gate = desk.records.load(summary.id, summary.tip)
        done = respond(desk, gate, given, replace(manner, seen=gate.tip))
    except GateError as refused:
        return BatchFate(summary.id, summary.title, error=refused)
    return BatchFate(summary.id, summary.title, done)


def published(desk: Desk, fates: list[BatchFate], *, insist: bool) -> list[BatchFate]:
    """All of them to the shared repository in one go; each with its own fate there."""
    remote = remote_of(desk)
    if remote is None or not any(fate.done for fate in fates):
        return fates
    from ..exchange.syncing import sync

    try:
        refused = sync(desk, remote)
        reasons = {**refused.refused, **refused.broken}
    except GateError as down:
        if insist:
            return [replace(fate, error=fate.error or down) for fate in fates]
        return [there(desk, fate, remote, down.message) for fate in fates]
    return [there(desk, fate, remote, reasons.get(fate.id, ""), insist=insist) for fate in fates]


def there(desk: Desk, fate: BatchFate, remote: str, reason: str, *, insist: bool = False) -> BatchFate:
    if fate.done is None:
        return fate
    if reason and insist:
        return replace(fate, error=PushRefused(f"gate {fate.id} is safe here, but not pushed: {reason}"))
    tip = desk.refs.get(OPEN + fate.id)
    gate: Gate = fate.done.gate if tip is None else desk.records.load(fate.id, tip)
    said: Answer = fate.done.answer
    try:
        refuse_late(gate, said)
    except Conflict as late:
        return replace(fate, error=late)
    went = Published(gate, remote, pushed=not reason, reason=reason)
    return replace(fate, done=replace(fate.done, gate=gate, published=went))
