"""Python: what a person does to a gate, or a script in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..errors import Usage
from ..model.gate import Value
from .door import Directory, open_desk, told
from .door import ShownGate as Gate
from .terms import given_of

if TYPE_CHECKING:
    from ..acts.answering import Deliver
    from ..context.desk import Desk


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
    resume: bool = True,
    push: bool | None = None,
    directory: Directory = None,
) -> Gate:
    """Answer a gate as the person at this machine; `answers` holds one for each question by its key (`-a`).

    Where the agent ran here and `init` allowed it, the answer starts it again, unless `resume` is False.

    >>> gitgate.respond("7k2f", "Postgres", note="we have it already")
    >>> gitgate.respond("7k2f", approve=True)
    """
    from ..acts import answering, reading

    if approve and reject:
        raise Usage("approve or reject, not both")
    with open_desk(directory) as desk:
        gate = reading.open_gate(desk, None if id is None else str(id))
        given = given_of(gate, answer, answers, other, approve=True if approve else False if reject else None)
        manner = answering.Manner(
            note=note,
            via="python",
            seen=seen or gate.tip,
            amend=amend,
            sign=sign,
            push=push,
            deliver=delivery(desk, resume=resume),
        )
        return told(desk, answering.respond(desk, gate, given, manner).published)


def delivery(desk: Desk, *, resume: bool) -> Deliver:
    """An answer given where the agent ran starts it there; what that takes is loaded only where it is allowed."""
    if resume and desk.settings.flag("resumeHere"):
        from ..resumption.here import deliver_here

        return deliver_here
    from ..exchange.publishing import publish

    return publish


def signal(
    id: str | Gate, *, status: str, message: str = "", push: bool | None = None, directory: Directory = None
) -> Gate:
    """For scripts: `CONTINUE` approves, `STOP` rejects; other statuses reach a waiting workflow as they are."""
    from ..acts import answering, reading

    with open_desk(directory) as desk:
        desk.refuse_agents("signal")
        gate = reading.open_gate(desk, str(id))
        return told(desk, answering.signal(desk, gate, status, message, push=push).published)


def stop(id: str | Gate, *, reason: str, push: bool | None = None, directory: Directory = None) -> Gate:
    """End a gate; the agent does not go on. To say no and let it go on, reject instead."""
    from ..acts import reading, remarks

    with open_desk(directory) as desk:
        return told(desk, remarks.stop(desk, reading.open_gate(desk, str(id)), reason, push=push))


def comment(id: str | Gate, text: str, *, push: bool | None = None, directory: Directory = None) -> Gate:
    """Ask back or add a remark, without deciding."""
    from ..acts import reading, remarks

    with open_desk(directory) as desk:
        return told(desk, remarks.comment(desk, reading.open_gate(desk, str(id)), text, push=push))


def edit(
    id: str | Gate,
    *,
    to: str | Sequence[str] | None = None,
    priority: str | None = None,
    timeout: str | int | None = None,
    push: bool | None = None,
    directory: Directory = None,
) -> Gate:
    """Reassign (`to="anyone"` for everybody), reprioritise, or give another deadline (`timeout="never"` for none)."""
    from ..acts import reading, remarks

    named = None if to is None else (to,) if isinstance(to, str) else tuple(to)
    people = () if named == ("anyone",) else named
    until = None if timeout is None else str(timeout)
    with open_desk(directory) as desk:
        gate = reading.open_gate(desk, str(id))
        return told(desk, remarks.edit(desk, gate, to=people, priority=priority, timeout=until, push=push))
