"""Acts: one gate, wherever it is: open here, or folded into the archive."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .. import model
from ..context import Desk
from ..context.targets import find_tip, remote_of
from ..document import dataclass
from ..errors import GateError, IllegalEvent, UnknownGate
from ..gates.recording import act
from ..model import answerer_words
from ..model.gate import Gate


@dataclass(frozen=True)
class FoundGate:
    """A gate and where it was found. `pushed`: the remote is known to have exactly this."""

    gate: Gate
    archived: bool = False
    pushed: bool = False
    remote: str | None = None


T = TypeVar("T")


def find_anywhere(find: Callable[[Desk, str | None], T], desk: Desk, given: str | None) -> T:
    """Return the result of `find`. For the id of a gate that is not here, ask the remote once, within the network
    timeout.
    """
    try:
        return find(desk, given)
    except UnknownGate as unknown:
        remote = remote_of(desk)
        if given is None or remote is None or not model.is_prefix(given.strip().lower()):
            raise
        from ..exchange.syncing import news

        silent = news(desk)
        if silent:
            raise UnknownGate(f"{unknown.message}; {silent}", hint=unknown.hint) from None
    try:
        return find(desk, given)
    except UnknownGate:
        raise UnknownGate(
            f"there is no gate {given} here, nor on {remote}", hint="git gate list --all shows every gate"
        ) from None


def open_gate(desk: Desk, given: str | None) -> Gate:
    """The open gate that `given` names, for a verb that changes it. Its deadline is acted on first."""
    gate, tip = find_open(desk, given)
    return desk.records.load(gate, tip)


def find_open(desk: Desk, given: str | None) -> tuple[str, str]:
    """(id, tip) of the open gate that `given` names. One that is only in the archive is known, and closed for good."""
    try:
        return find_tip(desk, given)
    except UnknownGate:
        archived = find_archived(desk, given)
        if archived is None:
            raise
    raise IllegalEvent(
        f"gate {archived.id} is closed and archived; it was {archived.state}",
        hint=f"git gate show {archived.id}",
    )


def find_gate(desk: Desk, given: str | None) -> FoundGate:
    """The gate that `given` names, open or archived, for a verb that reads it."""
    try:
        gate, tip = find_tip(desk, given)
    except UnknownGate:
        archived = find_archived(desk, given)
        if archived is None:
            raise
        return FoundGate(archived, archived=True, pushed=True)
    loaded = desk.records.load(gate, tip)
    try:
        loaded = act(desk, loaded)
    except GateError as unwritable:
        desk.progress(
            f"the deadline of {gate} has passed, but that cannot be recorded here: {unwritable.message}"
        )
    remote = remote_of(desk)
    pushed = remote is not None and desk.tracked(remote, gate) == loaded.tip
    return FoundGate(loaded, pushed=pushed, remote=remote)


def find_archived(desk: Desk, given: str | None) -> Gate | None:
    if given is None or not model.is_prefix(given.strip().lower()):
        return None
    from ..gates.history import load_archived

    return load_archived(desk, given.strip().lower())


def what_became(gate: Gate) -> str:
    """Return in one line who ended a gate that waits no more, and what they said."""
    from ..text import one_line

    name = f"gate {gate.id[:6]}"
    if gate.answer is not None:
        from ..questions.answers import printed
        from ..text import one_line

        answer = gate.answer.answer
        by = answerer_words(answer.by)
        return one_line(f"{name} was answered by {by}: {printed(gate.opened.questions, answer)}", 300)
    if gate.closing is not None:
        by = gate.closing.by.partition(" <")[0]
        return one_line(f"{name} was {gate.state}{f' by {by}' if by else ''}: {gate.closing.text}", 300)
    return f"{name} is {gate.state} now"
