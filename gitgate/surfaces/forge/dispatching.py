"""Surfaces: an answer from a terminal, on its way to CI. GitHub starts nothing by itself when a gate's ref is pushed."""

from __future__ import annotations

from dataclasses import dataclass

from ...context.desk import Desk
from ...errors import Conflict, Failure, GateError, IllegalEvent
from ...model.gate import Gate
from ...setup.github import ANSWERS
from .hosts.connect import KINDS, find_place, find_token, forge_at, way_to_token
from .hosts.forge import Forge


@dataclass(frozen=True)
class Sent:
    """Whether CI was asked to act on an answer: where to watch it, or why not and what else picks it up."""

    url: str = ""
    why: str = ""


def dispatch(desk: Desk, forge: Forge, gate: Gate | None) -> str:
    """Ask CI to act on this answer, or with no gate on whatever is to be done. The commit says which answer is meant.

    A job sees what is shared, so the answer is shared first.
    """
    if gate is None:
        return forge.dispatch("", "")
    refuse_idle(gate)
    gate = shared(desk, gate)
    refuse_idle(gate)
    return forge.dispatch(gate.id, commit_meant(gate))


def commit_meant(gate: Gate) -> str:
    return gate.answer.commit if gate.answer is not None else gate.tip


def refuse_idle(gate: Gate) -> None:
    hint = f"git gate show {gate.id}"
    if not gate.actionable:
        raise IllegalEvent(f"gate {gate.id} is {gate.state}: nothing is to be resumed", hint=hint)
    if gate.opened.delivery != "resume":
        raise IllegalEvent(
            f"whoever asked gate {gate.id} waits for the answer where it was asked: no job is to go on with it",
            hint=hint,
        )


def shared(desk: Desk, gate: Gate) -> Gate:
    """The gate as the server has it. Whoever dispatches vouches for the answer that they see, not for one that came first."""
    from ...exchange.publishing import publish

    done = publish(desk, gate, push=True)
    if not done.pushed:
        raise Failure(
            f"gate {gate.id} is not shared, so no job finds its answer: {done.reason}", hint="git gate sync"
        )
    ours, theirs = gate.answer, done.gate.answer
    if ours is not None and theirs is not None and ours.answer != theirs.answer:
        raise Conflict(
            f"another answer to gate {gate.id} was shared before this one, and counts",
            hint=f"read it, then ask again: git gate show {gate.id}",
        )
    return done.gate


def after_answer(desk: Desk, gate: Gate) -> Sent | None:
    """What a person who just answered hears of it; None where the remote is no forge, or nobody is to be resumed."""
    place = find_place(desk)
    if place is None or not KINDS[place.kind].jobs or not gate.actionable or gate.opened.delivery != "resume":
        return None
    try:
        token = find_token(desk, place)
        if not token:
            return Sent(
                why=f"no token for {place.host}, so no job was started ({way_to_token(place)}); {picked_up(desk, gate)}"
            )
        return Sent(dispatch(desk, forge_at(place, token, hurried=True), gate))
    except GateError as refused:
        return Sent(why=f"no job was started: {refused.message}; {picked_up(desk, gate)}")


def picked_up(desk: Desk, gate: Gate) -> str:
    """What finds the answer all the same, and when; else who may start it. Jobs take no unsigned commit for a person's word."""
    from .proof import deciding, is_signed

    dispatch = f"git gate github dispatch {gate.id[:6]}"
    if all(is_signed(desk, one.signed_commit) for one in deciding(gate)):
        return f"it is signed, so the next sweep of {ANSWERS} resumes it, by default within half an hour; sooner: {dispatch}"
    commit = f" -f commit={gate.answer.commit}" if gate.answer is not None else ""
    return (
        "it is not signed by a key that the policy knows, so no sweep acts on it by itself; "
        f"later: {dispatch}   or: gh workflow run {ANSWERS} -f gate={gate.id}{commit}"
    )
