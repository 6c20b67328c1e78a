"""Acts: what a person says to a gate. An answer binds to the commit that was seen, and is checked before anything is written; what is
said without answering is a comment, an end, or other terms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from .. import model
from .. import text as times
from ..context import Desk, check_choice
from ..context.targets import may_publish_work, remote_of
from ..document import dataclass, field, replace
from ..errors import BadAnswer, Conflict, GateError, IllegalEvent, NotAllowed, PushRefused, Stale, Usage
from ..exchange.syncing import Published, publish, sync
from ..gates.recording import act, record, reload
from ..model import ANSWERED, AWAITING, PRIORITIES, refusal, split_person, traits
from ..model.gate import STATUS, Answer, Conversation, Edit, Entry, Event, Gate, Remark
from ..policy import load_book
from ..policy.addressees import check_addressees
from ..policy.permit import Permit, permit, permit_change, permit_words, signing, written_at
from ..policy.ruling import SaidHow, Who
from ..questions import Given
from ..questions.answers import read_answer
from ..questions.types import type_of
from ..record import Summary
from ..record.events import said_elsewhere, why_late
from ..record.terms import changed_terms, names_others
from ..store.git.refs import OPEN


class Deliver(Protocol):
    """Delivery of a recorded answer: published, or acted on at once, which publishes it too. `work`: with the
    conversation that belongs to it.
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
    """Manner in which an answer is given, apart from its content."""

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
    """Refuse an answer whose person saw an older version of the gate than the one that is recorded now."""
    places = [place for place, entry in enumerate(gate.history) if seen in (entry.commit, *entry.parents[1:])]
    if not places:
        raise Stale(f"what you saw of gate {gate.id} is not part of it", hint=f"git gate show {gate.id}")
    since = [entry.name for entry in gate.history[places[0] + 1 :] if not is_harmless(entry)]
    if since and gate.state == AWAITING:
        raise Stale(
            f"gate {gate.id} was {', '.join(since)} after you read it", hint=f"git gate show {gate.id}"
        )


def is_harmless(entry: Entry) -> bool:
    """Return whether whoever read the gate before this event may still answer. An event that only postpones the gate
    changes no question.
    """
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
    """Return the conversation that a signal records for a session gate on which nobody talked here; None where no
    question is a session.
    """
    if all(question.type != "session" for question in gate.opened.questions):
        return None
    word = status.strip()
    if not re.fullmatch(STATUS, word):
        return Conversation("completed", 0, message=message.strip(), source="person")
    return Conversation("completed", 0, status=word, message=message.strip(), source="person")


def signal_given(gate: Gate, status: str, message: str = "") -> Given:
    """Translate the status that a script signals into an answer to this gate."""
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
    """Fate of one gate in a batch of answers: what was recorded, or the error that prevented it."""

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


# What is said about a gate without answering it: a comment, an end, other terms.


@dataclass(frozen=True)
class Vouched:
    """Somebody whom a surface knows by their login, which surface that is, and when they said it there. `sign`: False where the
    key of this machine is a person's own, who signs nobody else's words.
    """

    by: str
    login: str
    via: str
    at: str
    sign: bool | None = None


def comment(
    desk: Desk,
    gate: Gate,
    text: str,
    *,
    push: bool | None = None,
    via: str = "cli",
    who: Vouched | None = None,
    seen: str = "",
) -> Published:
    """`seen`: the commit that whoever says it had before them; `who`: whom a surface has vouched for."""
    words = needed(text, "a comment needs words", 'git gate comment ID "which region?"')
    event = Remark(at=desk.now, by=who.by if who else speaker(desk, gate), text=words, via=via)
    leave = permit_words(desk, gate, event.by)
    if who is not None and who.sign is False:
        leave = replace(leave, sign=False)
    return publish(desk, record_remark(desk, gate, "commented", event, leave, who=who, seen=seen), push=push)


def tell_of_talk(
    desk: Desk, gate: Gate, text: str, session: Conversation, *, push: bool | None = None
) -> Published:
    """Record that a person talked with the agent and decided nothing. The event binds the conversation's content, so
    that other clones accept the longer session.
    """
    event = Remark(at=desk.now, by=desk.person(), text=text, via="join", session=session)
    return publish(
        desk,
        record_remark(desk, gate, "commented", event, permit_words(desk, gate, event.by)),
        push=push,
        work=may_publish_work(desk),
    )


def propose(
    desk: Desk,
    gate: Gate,
    text: str,
    session: Conversation,
    *,
    push: bool | None = None,
    via: str = "join --yes",
) -> Published:
    """Keep what a conversation proposed, for whoever decides: a remark, and nobody's answer."""
    by = desk.person() if via == "join --yes" else speaker(desk, gate)
    event = Remark(at=desk.now, by=by, text=text, via=via, session=session)
    return publish(
        desk, record_remark(desk, gate, "commented", event, permit_words(desk, gate, event.by)), push=push
    )


def stop(
    desk: Desk,
    gate: Gate,
    reason: str,
    *,
    push: bool | None = None,
    session: Conversation | None = None,
    via: str = "",
    who: Vouched | None = None,
    seen: str = "",
) -> Published:
    """A person ends it; the agent does not go on. `session` is a conversation that came to no answer."""
    if who is None:
        desk.refuse_agents("stop")
    words = needed(reason, "say why it is stopped", "git gate stop ID --reason 'we do it differently'")
    via = via or ("join" if session is not None else "cli")
    event = Remark(at=desk.now, by=who.by if who else desk.person(), text=words, via=via, session=session)
    gate = act(desk, gate)
    leave = permit_remark(desk, gate, event.by, who)
    return publish(desk, record_remark(desk, gate, "stopped", event, leave, who=who, seen=seen), push=push)


def permit_remark(desk: Desk, gate: Gate, by: str, who: Vouched | None) -> Permit:
    """Leave to end a gate or to change its terms; whom a surface names is judged by their login, as for an answer."""
    if who is None:
        return permit_change(desk, gate, by)
    return permit(desk, gate, Who(who.by, login=who.login), SaidHow(who.at, who.via), sign=who.sign)


def record_remark(
    desk: Desk,
    gate: Gate,
    name: str,
    event: Event,
    leave: Permit,
    *,
    who: Vouched | None = None,
    seen: str = "",
) -> Gate:
    """One of these, recorded; signed where that is wanted. With `seen` only where the gate still asks the same."""

    def decide(now: Gate) -> tuple[str, Event]:
        if seen:
            check_seen(now, seen)
        return name, event

    by = who.by if who else signer(desk)
    with signing(gate, leave):
        return record(desk, gate, decide, who=by, sign=leave.sign, approve=leave.approve)


def withdraw(desk: Desk, gate: Gate, reason: str, *, push: bool | None = None, via: str = "cli") -> Published:
    """The asker takes the question back; an agent only its own."""
    words = needed(reason, "say why it is withdrawn", "git gate withdraw ID --reason 'found it in the docs'")
    if desk.agent_here():
        refuse_others(desk, gate, "withdraws")
    event = Remark(at=desk.now, by=speaker(desk, gate), text=words, via=via)
    gate = act(desk, gate)
    return publish(
        desk, record_remark(desk, gate, "withdrawn", event, permit_change(desk, gate, event.by)), push=push
    )


def speaker(desk: Desk, gate: Gate) -> str:
    """Return the name of the speaker. An agent's shell has the person's git identity, but its words must not look like
    the person's.
    """
    if not desk.agent_here():
        return desk.settings.identity() or gate.opened.asked.agent
    own = gate.opened.asked.agent if is_own(desk, gate) else ""
    marker = desk.agents_mark() or "by its processes"
    return own or desk.settings.env.get("GITGATE_AGENT") or f"an agent ({marker})"


def refuse_others(desk: Desk, gate: Gate, does: str) -> None:
    if not is_own(desk, gate):
        raise NotAllowed(
            f"gate {gate.id} is {gate.opened.asked.agent}'s: an agent {does} only its own",
            hint="leave it to its asker, or to a person",
        )


def is_own(desk: Desk, gate: Gate) -> bool:
    """Return whether the agent at this desk asked the gate: by the session's digest, or by the agent's name where
    there is no session.
    """
    from .askers import RUN, STEP, agent_here

    env, config = desk.settings.env, gate.opened.config
    if env.get(RUN) and config.get("run") == env[RUN] and env.get(STEP) in (None, config.get("step")):
        return True  # a run's own process, or the agent of the very step that asked
    session = gate.opened.session
    if session is not None:
        from ..agents import detect
        from .sessions import session_digest

        here = detect(env)
        return here is not None and session_digest(session.salt, here.id) == session.digest
    own = (env.get("GITGATE_AGENT"), agent_here(desk))
    return bool(gate.opened.asked.agent) and gate.opened.asked.agent in own


def edit(
    desk: Desk,
    gate: Gate,
    *,
    to: tuple[str, ...] | None = None,
    priority: str | None = None,
    timeout: str | None = None,
    later: str | None = None,
    push: bool | None = None,
    who: Vouched | None = None,
    seen: str = "",
) -> Published:
    """Reassign, reprioritise, give another deadline (`never` takes it away), or put it aside for so long (`now` ends that)."""
    if to is None and priority is None and timeout is None and later is None:
        raise Usage(
            "nothing to change", hint="git gate edit ID --priority high, --to WHO, --timeout 2h, --later 2h"
        )
    if to and not all(who.strip("@ ") for who in to):
        raise Usage("--to needs somebody's name, address or @login", hint="git gate edit ID --to anyone")
    check_addressees(desk, to or (), gate.opened.quorum, again=f"git gate edit {gate.id[:6]} --to")
    if priority is not None:
        check_choice("--priority", priority, PRIORITIES)
    deadline, seconds = new_deadline(desk, timeout)
    if who is None and desk.agent_here():
        refuse_others(desk, gate, "changes")
        refuse_loosening(gate, to, priority, timeout, later)
    event = Edit(
        at=desk.now,
        by=who.by if who else speaker(desk, gate),
        to=to,
        priority=priority,
        deadline=deadline,
        timeout=seconds,
        later=put_aside(desk, later),
        to_holds=bool(to) and not load_book(desk).policies,
    )
    gate = act(desk, gate)
    leave = permit_remark(desk, gate, event.by, who)
    if not names_others(gate, event):
        raise NotAllowed(
            f"gate {gate.id} is for {', '.join(gate.to)}: {event.by} does not name others",
            hint="leave it to whoever asked, or to one of those by their address",
        )
    return publish(desk, record_remark(desk, gate, "edited", event, leave, who=who, seen=seen), push=push)


def refuse_loosening(
    gate: Gate, to: tuple[str, ...] | None, priority: str | None, timeout: str | None, later: str | None
) -> None:
    """An agent may make its question more pressing, and for fewer. Sooner, silence would decide; later, an answer would
    be taken that was given under other terms.
    """
    why = ""
    if timeout is not None:
        why = "moves no deadline"
    elif later is not None:
        why = "puts no question aside"
    elif to is not None and (not to or (gate.to and not set(to) <= set(gate.to))):
        why = f"does not give it to others: it is for {', '.join(gate.to) or 'anyone'}"
    elif priority is not None and PRIORITIES.index(priority) > PRIORITIES.index(gate.priority):
        why = f"does not make it less pressing: it is {gate.priority}"
    if why:
        raise NotAllowed(
            f"gate {gate.id}: an agent {why}", hint="leave it to a person; git gate comment tells them why"
        )


def new_deadline(desk: Desk, timeout: str | None) -> tuple[str | None, int | None]:
    if timeout is None:
        return None, None
    if timeout.strip().lower() in ("never", "none"):
        return "", 0
    try:
        seconds = times.parse_duration(timeout)
    except Usage as wrong:
        raise Usage(
            f"--timeout: {wrong.message}", hint="git gate edit ID --timeout 1d, or --timeout never"
        ) from None
    if seconds <= 0:
        raise Usage("a deadline has to be in the future", hint="--timeout 2h, or --timeout never")
    return times.format_time(desk.clock() + seconds), seconds


def put_aside(desk: Desk, later: str | None) -> str | None:
    """Until when; empty where it is no longer put aside."""
    if later is None or later.strip().lower() == "now":
        return None if later is None else ""
    try:
        seconds = times.parse_duration(later)
    except Usage as wrong:
        raise Usage(
            wrong.message, hint="git gate edit ID --later 2h, or --later now", about="--later"
        ) from None
    if seconds <= 0:
        raise Usage("it is put aside for some time", hint="--later 2h, or --later now to have it back")
    return times.format_time(desk.clock() + seconds)


def needed(text: str, complaint: str, hint: str) -> str:
    words = text.strip()
    if not words:
        raise Usage(complaint, hint=hint)
    return words


def signer(desk: Desk) -> str:
    return desk.settings.identity()
