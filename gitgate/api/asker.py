"""Python: what an asker does: ask, wait, check, withdraw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.model import Gate as Folded
from .door import Directory, open_desk, seen, told
from .given import Choices, choices, from_file, read_attachments, seconds, with_terms
from .values import Answer, Gate

if TYPE_CHECKING:
    from ..service.desk import Desk


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
    quorum: int | None = None,
    agent: str | None = None,
    session: str | None = None,
    key: str | None = None,
    file: str | Path | None = None,
    no_work: bool = False,
    no_untracked: bool = False,
    include: Sequence[str] = (),
    push: bool | None = None,
    wait: bool = False,
    wait_for: str | int | None = None,
    directory: Directory = None,
) -> Gate:
    """Open a gate, with the partial work of the repository. With `wait` or `wait_for` it blocks until it is decided.

    >>> gate = gitgate.ask("Deploy?", type="approval", timeout="2h", push=False)
    >>> gate = gitgate.ask("Which?", options={"JWT": "stateless", "Sessions": ""}, key="auth")
    """
    from ..core import drafts
    from ..service import asking

    if file is None:
        question = drafts.question(
            prompt or "",
            type=type,
            options=choices(options),
            default=default,
            other=not no_other,
            schema=schema,
        )
        draft = drafts.Draft((question,))
    else:
        draft = from_file(file, prompt, (options, schema, default))
    terms = {
        "title": title,
        "context": context,
        "priority": priority,
        "confidence": confidence,
        "timeout": seconds(timeout),
        "on_timeout": on_timeout,
        "to": ((to,) if isinstance(to, str) else tuple(to)) or None,
        "quorum": quorum,
        "agent": agent,
        "session": session,
        "key": key,
    }
    draft = with_terms(draft, terms)
    blocks = wait or wait_for is not None
    wishes = asking.Wishes(
        work=not no_work, untracked=not no_untracked, include=tuple(include), push=push, wait=blocks
    )
    with open_desk(directory) as desk:
        asked = asking.ask(desk, draft, wishes, read_attachments(desk, (*draft.attach, *map(str, attach))))
        gate = waited(desk, asked.gate, wait_for) if blocks else asked.gate
        return seen(desk, gate, pushed=asked.published.pushed)


def wait(id: str | Gate, *, for_: str | int | None = None, directory: Directory = None) -> Gate:
    """Block until the gate is decided, or for so long at most; then its state is still `awaiting`.

    >>> gitgate.wait("7k2f", for_="30m").answer
    """
    with open_desk(directory) as desk:
        from ..service.reading import find_gate

        return seen(desk, waited(desk, find_gate(desk, str(id)).gate, for_))


def check(id: str | Gate, *, directory: Directory = None) -> Answer | None:
    """The answer, or None while there is none (or never will be: see `show(id).state`). NotAllowed: the policy does not
    accept the one that was given.
    """
    from ..service.policing import check_heard
    from ..service.reading import find_gate

    with open_desk(directory) as desk:
        found = find_gate(desk, str(id))
        if not found.archived:
            check_heard(desk, found.gate)
        return seen(desk, found.gate, pushed=found.pushed, archived=found.archived).answer


def withdraw(id: str | Gate, *, reason: str, push: bool | None = None, directory: Directory = None) -> Gate:
    """Take a question back. An agent withdraws only its own."""
    from ..service import reading, remarks

    with open_desk(directory) as desk:
        return told(desk, remarks.withdraw(desk, reading.open_gate(desk, str(id)), reason, push=push))


def waited(desk: Desk, gate: Folded, most: str | int | None) -> Folded:
    from ..core.times import parse_duration
    from ..service.waiting import Patience
    from ..service.waiting import wait as block

    return block(desk, gate, Patience(None if most is None else parse_duration(str(most))))
