"""Python: what agents and people do to gates, and what is seen of them: ask, wait, answer, remark, end; list, show, log, sync."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack, overload

from ..document import replace
from ..errors import Usage
from ..model import SESSION_FIELDS
from ..model.gate import BY_NOBODY, Conversation, Value, kept
from ..model.gate import Gate as Folded
from ..questions import Given, signals
from ..questions.types import TYPES, type_name, type_of
from .terms import (
    Asking,
    Choices,
    Directory,
    Event,
    SessionTerms,
    Status,
    Words,
    absolute_directory,
    asked_in_flow,
    checked_in_flow,
    flow_here,
    given_in_python,
    open_desk,
    paths_given,
    published_gate,
    refuse_unknown,
    seen,
    waited_in_flow,
    with_terms,
)
from .terms import ShownAnswer as Answer
from .terms import ShownGate as Gate

if TYPE_CHECKING:
    from ..acts.answering import Deliver
    from ..acts.reporting import Json
    from ..audit import Verified
    from ..audit.earlier import FoundDecision, Origin
    from ..context import Desk
    from ..exchange import Synced
    from ..gates import Filter
    from ..store.work.restore import Worktree

# What agents and people do to gates: ask, wait, take back; answer, remark, change, end.


def ask(
    prompt: str | None = None,
    *,
    type: str | None = None,
    options: Choices = (),
    no_other: bool = False,
    default: object = None,
    schema: Mapping[str, object] | None = None,
    title: str | None = None,
    context: str | None = None,
    attach: Sequence[str | Path] = (),
    priority: str | None = None,
    confidence: float | None = None,
    timeout: str | int | None = None,
    on_timeout: str | None = None,
    to: str | Sequence[str] = (),
    notify: str | Sequence[str] = (),
    quorum: int | None = None,
    agent: str | None = None,
    session: str | None = None,
    key: str | None = None,
    key_for: str | int | None = None,
    file: str | Path | None = None,
    no_work: bool = False,
    no_untracked: bool = False,
    include: Sequence[str] = (),
    push: bool | None = None,
    wait: bool = False,
    wait_for: str | int | None = None,
    directory: Directory = None,
    **conversation: Unpack[SessionTerms],
) -> Gate:
    """Open a gate, with the partial work of the repository. With `wait` or `wait_for` it blocks until it is decided.

    With `type="session"` it says how the conversation is to be held: `outcome`, `system_prompt`, `session_context`,
    `model`, `cwd`, `mcp_config`, `session_timeout`, `grace`, `transcript`, `resume_session`, `save_every`, `checkpoint`.

    >>> gate = gitgate.ask("Deploy?", type="approval", timeout="2h", push=False)
    >>> gate = gitgate.ask("Which?", options={"JWT": "stateless", "Sessions": ""}, key="auth")
    """
    from ..acts.asking import AskWishes
    from ..questions.file import ASKED

    said: dict[str, object] = {
        "title": title,
        "context": context,
        "priority": priority,
        "confidence": confidence,
        "timeout": timeout,
        "on_timeout": on_timeout,
        "to": to,
        "notify": notify,
        "quorum": quorum,
        "agent": agent,
        "session": session,
        "key": key,
        "key_for": key_for,
    }
    more = {row.name for row in ASKED} - set(said)
    refuse_unknown("ask", conversation, {*SESSION_FIELDS, *more})
    said |= {name: value for name, value in conversation.items() if name in more}
    talk = {name: value for name, value in conversation.items() if name not in more}
    words = Words(prompt, type, options, no_other, default, schema, file, talk)
    blocks = wait or wait_for is not None
    apart = () if file is None else (str(Path(file).absolute()),)
    wishes = AskWishes(not no_work, not no_untracked, paths_given(include), push, blocks, apart)
    asking = Asking(with_terms(words.draft(), said), wishes, paths_given(attach))
    if (flow := flow_here()) is not None:
        return asked_in_flow(flow, asking, wait=blocks)
    with open_desk(directory) as desk:
        asked = asking.open(desk)
        gate = waited(desk, asked.gate, wait_for) if blocks else asked.gate
        return seen(desk, gate, pushed=asked.published.pushed)


def wait(id: str | Gate, *, for_: str | int | None = None, directory: Directory = None) -> Gate:
    """Block until the gate is decided, or for so long at most; then its state is still `awaiting`.

    >>> gitgate.wait("7k2f", for_="30m").answer
    """
    if (flow := flow_here()) is not None:
        return waited_in_flow(flow, str(id))
    with open_desk(directory) as desk:
        from ..acts import find_gate

        return seen(desk, waited(desk, find_gate(desk, str(id)).gate, for_))


def check(id: str | Gate, *, directory: Directory = None) -> Answer | None:
    """The answer, or None while there is none (or never will be: see `show(id).state`). NotAllowed: the policy does not
    accept the one that was given.
    """
    from ..acts import find_gate
    from ..policy.permit import check_heard

    if (flow := flow_here()) is not None:
        return checked_in_flow(flow, str(id)).answer
    with open_desk(directory) as desk:
        found = find_gate(desk, str(id))
        if not found.archived:
            check_heard(desk, found.gate)
        return seen(desk, found.gate, pushed=found.pushed, archived=found.archived).answer


def withdraw(id: str | Gate, *, reason: str, push: bool | None = None, directory: Directory = None) -> Gate:
    """Take a question back. An agent withdraws only its own."""
    from .. import acts
    from ..acts import answering

    with open_desk(directory) as desk:
        return published_gate(
            desk, answering.withdraw(desk, acts.open_gate(desk, str(id)), reason, push=push)
        )


def waited(desk: Desk, gate: Folded, most: str | int | None) -> Folded:
    from ..claims.attending import WaitLimit
    from ..claims.attending import wait as block
    from ..text import parse_duration

    return block(desk, gate, WaitLimit(None if most is None else parse_duration(str(most))))


def respond(
    id: str | Gate | None = None,
    answer: Value | None = None,
    *,
    approve: bool = False,
    reject: bool = False,
    answers: Mapping[str, object] | None = None,
    other: str | None = None,
    note: str = "",
    sign: bool | None = None,
    amend: bool = False,
    seen: str | None = None,
    later: str | int | None = None,
    resume: bool = True,
    push: bool | None = None,
    directory: Directory = None,
) -> Gate:
    """Answer a gate as the person at this machine; `answers` holds one for each question by its key (`-a`).

    Where the agent ran here and `init` allowed it, the answer starts it again, unless `resume` is False. `later="2h"` is no
    answer: it puts the gate aside for so long.

    >>> gitgate.respond("7k2f", "Postgres", note="we have it already")
    >>> gitgate.respond("7k2f", approve=True)
    """
    from .. import acts
    from ..acts import answering

    if approve and reject:
        raise Usage("approve or reject, not both")
    with open_desk(directory) as desk:
        gate = acts.open_gate(desk, None if id is None else str(id))
        if later is not None:
            if any(one is not None for one in (answer, answers, other)) or approve or reject:
                raise Usage("later is no answer", hint='gitgate.respond(id, later="2h")')
            desk.refuse_agents("respond")
            return published_gate(desk, answering.edit(desk, gate, later=str(later), push=push))
        given = given_in_python(
            gate, answer, answers, other, approve=True if approve else False if reject else None
        )
        manner = answering.Manner(
            note=note,
            via="python",
            seen=seen or gate.tip,
            amend=amend,
            sign=sign,
            push=push,
            deliver=delivery(desk, resume=resume),
        )
        return published_gate(desk, answering.respond(desk, gate, given, manner).published)


def complete(
    id: str | Gate,
    outcome: Literal["completed", "cancelled", "timeout"],
    response: object = None,
    *,
    summary: str = "",
    reason: str = "",
    transcript: str | Sequence[tuple[str, str]] = "",
    seconds: float = 0,
    resume: bool = True,
    push: bool | None = None,
    directory: Directory = None,
) -> Gate:
    """Record what a conversation of your own with a person came to, as `git gate join` does with one that it opens.

    `completed` answers the gate with `response`, the value that `gitgate.check(id).value` gives then; `cancelled` and `timeout`
    end it. `transcript`: what was said, as a text or as (who, words); it is kept where the asker wanted it. Refused in an agent's process.

    >>> gitgate.complete("7k2f", "completed", "Postgres", transcript=[("person", "Postgres.")], seconds=40)
    """
    from .. import acts
    from ..acts import answering

    with open_desk(directory) as desk:
        desk.refuse_agents("join")
        gate = acts.open_gate(desk, str(id))
        held, given = completed(desk, gate, (outcome, response), (summary, reason), transcript, seconds)
        if given is None:
            words = (
                reason or f"the conversation was {'over in time' if outcome == 'timeout' else 'cancelled'}"
            )
            return published_gate(
                desk, answering.stop(desk, gate, words, push=push, session=held, via="python")
            )
        manner = answering.Manner(
            via="python",
            seen=gate.tip,
            push=push,
            session=held,
            deliver=delivery(desk, resume=resume),
        )
        return published_gate(desk, answering.respond(desk, gate, given, manner).published)


def completed(
    desk: Desk,
    gate: Folded,
    came: tuple[str, object],
    words: tuple[str, str],
    said: str | Sequence[tuple[str, str]],
    took: float,
) -> tuple[Conversation, Given | None]:
    """Return how the conversation was held, for the record, and the answer that it came to; None where it came to none."""
    from ..questions.answers import talk_question
    from ..text.secrets import redact, secret_values

    outcome, response = came
    if outcome not in ("completed", "cancelled", "timeout"):
        raise Usage(
            f"outcome: expected 'completed', 'cancelled' or 'timeout'; found {outcome!r}",
            hint='gitgate.complete(id, "completed", True)',
        )
    if (outcome == "completed") != (response is not None):
        raise Usage(
            "response: what a completed conversation came to, and of no other one",
            hint='gitgate.complete(id, "completed", True)   or: gitgate.complete(id, "cancelled")',
        )
    asked = talk_question(gate)
    text = said if isinstance(said, str) else "\n\n".join(f"{who}: {spoken}" for who, spoken in said)
    wanted = asked is not None and asked.talk is not None and asked.talk.transcript
    held = Conversation(
        outcome,
        max(0, int(took)),
        summary=words[0],
        reason=words[1],
        source="person",
        confirmed=outcome not in BY_NOBODY,
        transcript=kept(redact(text, secret_values(desk.settings.env))) if wanted else "",
    )
    if outcome != "completed":
        return held, None
    questions = gate.opened.questions
    if len(questions) > 1:
        if not isinstance(response, Mapping):
            keys = ", ".join(question.key for question in questions)
            raise Usage(f"response: expected a mapping with an answer for each of {keys}")
        return held, Given(values=dict(response))
    word = type_of(questions[0]).approves and isinstance(response, str)
    understood = signals.signalled({"status" if word else "value": response}, questions[0], "person")
    if understood.value is None:
        raise Usage(
            f"response: {response!r} decides nothing here; expected {type_of(questions[0]).example(questions[0])}"
        )
    return replace(held, status=understood.status), Given(values={questions[0].key: understood.value})


def delivery(desk: Desk, *, resume: bool) -> Deliver:
    """Return how to deliver an answer: where the agent ran, and if that is allowed there, it starts the agent."""
    if desk.settings.flag("resumeHere"):
        from ..resumption.calls import deliver_here, leave_here

        return deliver_here if resume else leave_here
    from ..exchange.syncing import publish

    return publish


@overload
def signal(
    id: str | Gate, *, status: str, message: str = "", push: bool | None = None, directory: Directory = None
) -> Gate: ...
@overload
def signal(id: str, *, topic: str, value: object = None, directory: Directory = None) -> None: ...
def signal(
    id: str | Gate,
    *,
    status: str = "",
    message: str = "",
    topic: str = "",
    value: object = None,
    push: bool | None = None,
    directory: Directory = None,
) -> Gate | None:
    """For scripts: `CONTINUE` approves, `STOP` rejects; other statuses reach a waiting workflow as they are.

    With `topic` a run of a flow is sent a value, for its `receive(topic)`. That approves nothing.
    """
    from .. import acts
    from ..acts import answering

    if bool(status) == bool(topic):
        raise Usage(
            "signal: expected status, for a gate, or topic, for a run", hint='signal(run, topic="deployed")'
        )
    if topic:
        from ..flows.journal import find_run, signal_run
        from ..resumption.calls import wake_due

        with open_desk(directory) as desk:
            signal_run(desk, find_run(desk, str(id)), topic, value)
            wake_due(desk)
        return None
    with open_desk(directory) as desk:
        desk.refuse_agents("signal")
        gate = acts.open_gate(desk, str(id))
        return published_gate(desk, answering.signal(desk, gate, status, message, push=push).published)


def stop(id: str | Gate, *, reason: str, push: bool | None = None, directory: Directory = None) -> Gate:
    """End a gate; the agent does not go on. To say no and let it go on, reject instead."""
    from .. import acts
    from ..acts import answering

    with open_desk(directory) as desk:
        return published_gate(desk, answering.stop(desk, acts.open_gate(desk, str(id)), reason, push=push))


def comment(id: str | Gate, text: str, *, push: bool | None = None, directory: Directory = None) -> Gate:
    """Ask back or add a remark, without deciding."""
    from .. import acts
    from ..acts import answering

    with open_desk(directory) as desk:
        return published_gate(desk, answering.comment(desk, acts.open_gate(desk, str(id)), text, push=push))


def edit(
    id: str | Gate,
    *,
    to: str | Sequence[str] | None = None,
    priority: str | None = None,
    timeout: str | int | None = None,
    later: str | int | None = None,
    push: bool | None = None,
    directory: Directory = None,
) -> Gate:
    """Reassign (`to="anyone"` for everybody), reprioritise, give another deadline (`timeout="never"` for none), or put it
    aside (`later="2h"`; `"now"` ends that).
    """
    from .. import acts
    from ..acts import answering

    named = None if to is None else (to,) if isinstance(to, str) else tuple(to)
    people = () if named == ("anyone",) else named
    until, aside = (None if given is None else str(given) for given in (timeout, later))
    with open_desk(directory) as desk:
        gate = acts.open_gate(desk, str(id))
        return published_gate(
            desk,
            answering.edit(desk, gate, to=people, priority=priority, timeout=until, later=aside, push=push),
        )


# Where things stand, gates and their work looked at, and both sides brought together.


def diff(id: str | Gate | None = None, *, stat: bool = False, directory: Directory = None) -> str:
    """Return the partial work as a diff against the commit that it stands on; empty where there is none."""
    from ..acts import find_gate
    from ..gates.work import diff_of

    with open_desk(directory) as desk:
        return diff_of(desk, find_gate(desk, None if id is None else str(id)).gate, stat=stat)


def worktree(id: str | Gate, place: str | Path | None = None, *, directory: Directory = None) -> Worktree:
    """Make the partial work a worktree, to look around and try things in: at `place`, or next to the repository.

    >>> looked_at = gitgate.worktree("7k2f").directory
    """
    from ..acts import find_gate
    from ..gates.work import beside, open_place

    start = absolute_directory(directory)
    with open_desk(directory) as desk:
        gate = find_gate(desk, str(id)).gate
        return open_place(desk, gate, beside(desk, gate) if place is None else start / place)


def tree(*, all: bool = False, directory: Directory = None) -> Mapping[str, tuple[Gate, ...]]:
    """Return gates by their work's branch, which is empty where there is none; with `all` closed ones too."""
    from ..gates import Filter, by_branch, list_gates

    states = () if all else ("awaiting", "answered", "resuming", "failed")
    with open_desk(directory) as desk:
        return {
            branch: tuple(
                seen(desk, desk.records.load(one.id, one.tip)) for one in found if one.state != "broken"
            )
            for branch, found in by_branch(list_gates(desk, Filter(all=all, states=states))).items()
        }


def watch(
    id: str | Gate | None = None, *, for_: str | int | None = None, directory: Directory = None
) -> Iterator[Event]:
    """Yield what happens to gates, as it happens; ends with the gate when one is named, or after so long.

    >>> for event in gitgate.watch("7k2f", for_="10m"): ...
    """
    from ..text import parse_duration

    seconds = None if for_ is None else parse_duration(str(for_))
    return watched(None if id is None else str(id), seconds, absolute_directory(directory))


def watched(given: str | None, seconds: int | None, start: Path) -> Iterator[Event]:
    from ..acts.reporting import watch_events as follow

    with open_desk(start) as desk:
        for event in follow(desk, given, seconds):
            yield event_of(event)


def event_of(event: Json) -> Event:
    return Event(
        gate=str(event["gate"]),
        event=str(event["event"]),
        at=str(event["at"]),
        by=None if event["by"] is None else str(event["by"]),
        text=str(event.get("text", "")),
        commit=str(event["commit"]),
    )


def list(  # noqa: A001 - the verb's name
    *,
    all: bool = False,
    state: str | Sequence[str] = (),
    awaiting: bool = False,
    type: str | None = None,
    branch: str | None = None,
    pr: int | None = None,
    mine: bool = False,
    asked_by: str | None = None,
    sync: bool = False,
    directory: Directory = None,
) -> tuple[Gate, ...]:
    """List the gates that wait or need a person, most pressing first; with `all` any state, archived gates last.

    >>> [gate.title for gate in gitgate.list(branch="main")]
    """
    from .. import gates

    states = (state,) if isinstance(state, str) else tuple(state)
    kind = None if type is None else known_type(type)
    with open_desk(directory) as desk:
        if sync:
            from ..exchange.syncing import sync as bring_together

            bring_together(desk)
        chosen = gates.Filter(
            all=all,
            states=(*states, "awaiting") if awaiting else states,
            type=kind,
            branch=branch,
            pull_request=pr,
            mine=desk.person() if mine else None,
            asked_by=asked_by,
        )
        return found(desk, chosen)


def known_type(given: str) -> str:
    kind = type_name(given)
    if kind is None:
        raise Usage(f"{given!r} is not a type of question; expected one of {', '.join(TYPES)}")
    return kind


def found(desk: Desk, chosen: Filter) -> tuple[Gate, ...]:
    """Return the gates whose records are whole; those of the archive last."""
    from .. import gates

    here = [one for one in gates.list_gates(desk, chosen) if one.state != "broken"]
    if chosen.mine is not None:
        from ..policy.permit import mine

        here = mine(desk, here)
    away = gates.archived(desk, chosen) if chosen.all else []
    return (
        *(seen(desk, desk.records.load(one.id, one.tip)) for one in here),
        *(seen(desk, desk.records.load(one.id, one.tip), archived=True) for one in away),
    )


def show(id: str | Gate | None = None, *, directory: Directory = None) -> Gate:
    """Return one gate, open or archived; `details["history"]` has every event.

    >>> gitgate.show("7k2f").details["work"]
    """
    from ..acts import find_gate
    from ..render import shapes

    with open_desk(directory) as desk:
        found = find_gate(desk, None if id is None else str(id))
        gate = seen(desk, found.gate, pushed=found.pushed, archived=found.archived)
        details = {**gate.details, "history": shapes.history(found.gate.history)}
        return replace_fields(gate, details=details)


def status(*, directory: Directory = None) -> Status:
    """Count all gates by their state, and return each agent with what it waits for."""
    from ..acts.reporting import overall_status

    with open_desk(directory) as desk:
        fields, _ = overall_status(desk)
        counts, agents = fields["counts"], fields["agents"]
        return Status(
            counts if isinstance(counts, dict) else {},
            tuple(agents) if isinstance(agents, builtins.list) else (),
        )


def log(
    id: str | Gate | None = None, *, n: int | None = None, directory: Directory = None
) -> tuple[Event, ...]:
    """Return the audit trail of one gate or of all, newest first."""
    from ..acts.reporting import events_of_all, events_of_one

    with open_desk(directory) as desk:
        events = events_of_all(desk) if id is None else events_of_one(desk, str(id))
        return tuple(map(event_of, events[:n]))


def sync(
    remote: str | None = None, *, put_aside: str | Gate | None = None, directory: Directory = None
) -> Synced:
    """Fetch and push gates, and bring the two sides together. Never loses a local one.

    Of the gate `put_aside`, all that the remote does not have is put aside first: for what the remote does not take.

    >>> [one.ref for one in gitgate.sync(put_aside="7k2f").aside]
    """
    from ..exchange.syncing import sync as bring_together

    with open_desk(directory) as desk:
        return bring_together(desk, remote, aside=None if put_aside is None else str(put_aside))


def verify(*ids: str | Gate, branch: str | None = None, directory: Directory = None) -> Verified:
    """Check every gate's chain, bindings and signatures, or only those named.

    >>> assert gitgate.verify().ok
    """
    from ..audit.auditing import audit, refuse_unsynced

    with open_desk(directory) as desk:
        if branch is not None:
            refuse_unsynced(desk)
        return audit(desk, tuple(map(str, ids)), branch)


def why(file: str | Path, *, rev: str | None = None, directory: Directory = None) -> tuple[Origin, ...]:
    """Return the decisions that led to these lines: of a whole file, of `FILE:LINE` or of `FILE:LINE,LINE`.

    >>> [one.gate for one in gitgate.why("src/db.py:40,60") if one.verified]
    """
    from ..audit.earlier import origins, read_asked

    with open_desk(directory) as desk:
        return tuple(origins(desk, read_asked(desk, absolute_directory(directory), str(file), rev)))


def search(
    *words: str,
    type: str | None = None,
    by: str | None = None,
    since: str | None = None,
    limit: int = 20,
    directory: Directory = None,
) -> tuple[FoundDecision, ...]:
    """Find earlier decisions with all these words, the most fitting first, then the newest; open gates and archived
    ones.

    >>> [one.gate.opened.title for one in gitgate.search("which database", since="90d")]
    """
    from ..audit.earlier import SearchTerms
    from ..audit.earlier import search as look_through
    from ..text import parse_since

    kind = None if type is None else known_type(type)
    with open_desk(directory) as desk:
        moment = 0.0 if since is None else parse_since(since, desk.clock())
        return tuple(look_through(desk, SearchTerms(words, kind, by, moment, limit))[0])
