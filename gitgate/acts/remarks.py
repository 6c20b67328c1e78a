"""Acts: what is said about a gate without answering it: a comment, an end, other terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import text as times
from ..context import Desk, check_choice
from ..context.targets import may_publish_work
from ..document import dataclass, replace
from ..errors import NotAllowed, Usage
from ..exchange.syncing import Published, publish
from ..gates.recording import act, record
from ..model import PRIORITIES
from ..model.gate import Edit, Event, Gate, Remark
from ..policy.permit import Permit, permit, permit_change, permit_words, signing
from ..policy.ruling import SaidHow, Who
from .askers import RUN, STEP, agent_here
from .sessions import session_digest

if TYPE_CHECKING:
    from ..model.gate import Conversation


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
    """That a person talked with the agent and decided nothing. It binds what was said: others take the session up by it."""
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
            from .answering import check_seen

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
    """Who says it. An agent's shell has the person's git identity; its words must not look like theirs."""
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
    """Whether the agent at this desk asked it: by the session's digest, or by the agent's name where it has none."""
    env, config = desk.settings.env, gate.opened.config
    if env.get(RUN) and config.get("run") == env[RUN] and env.get(STEP) in (None, config.get("step")):
        return True  # a run's own process, or the agent of the very step that asked
    session = gate.opened.session
    if session is not None:
        from ..agents import detect

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
    )
    gate = act(desk, gate)
    leave = permit_remark(desk, gate, event.by, who)
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
        raise Usage(f"--later: {wrong.message}", hint="git gate edit ID --later 2h, or --later now") from None
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
