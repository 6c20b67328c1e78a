"""Python: what an asker does: ask, wait, check, withdraw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from ..model.gate import Gate as Folded
from ..text.words import SESSION_FIELDS
from .door import Directory, open_desk, seen, told
from .door import ShownAnswer as Answer
from .door import ShownGate as Gate
from .terms import Asking, AskTerms, Choices, SessionTerms, Words, refuse_unknown

if TYPE_CHECKING:
    from ..context.desk import Desk


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

    refuse_unknown("ask", conversation, SESSION_FIELDS)
    words = Words(prompt, type, options, no_other, default, schema, file, conversation)
    terms = AskTerms(
        title, context, priority, confidence, timeout, on_timeout, to, quorum, agent, session, key, key_for
    )
    blocks = wait or wait_for is not None
    apart = () if file is None else (str(Path(file).absolute()),)
    wishes = AskWishes(not no_work, not no_untracked, tuple(include), push, blocks, apart)
    asking = Asking(terms.onto(words.draft()), wishes, attach)
    with open_desk(directory) as desk:
        asked = asking.open(desk)
        gate = waited(desk, asked.gate, wait_for) if blocks else asked.gate
        return seen(desk, gate, pushed=asked.published.pushed)


def wait(id: str | Gate, *, for_: str | int | None = None, directory: Directory = None) -> Gate:
    """Block until the gate is decided, or for so long at most; then its state is still `awaiting`.

    >>> gitgate.wait("7k2f", for_="30m").answer
    """
    with open_desk(directory) as desk:
        from ..acts.reading import find_gate

        return seen(desk, waited(desk, find_gate(desk, str(id)).gate, for_))


def check(id: str | Gate, *, directory: Directory = None) -> Answer | None:
    """The answer, or None while there is none (or never will be: see `show(id).state`). NotAllowed: the policy does not
    accept the one that was given.
    """
    from ..acts.reading import find_gate
    from ..policy.permit import check_heard

    with open_desk(directory) as desk:
        found = find_gate(desk, str(id))
        if not found.archived:
            check_heard(desk, found.gate)
        return seen(desk, found.gate, pushed=found.pushed, archived=found.archived).answer


def withdraw(id: str | Gate, *, reason: str, push: bool | None = None, directory: Directory = None) -> Gate:
    """Take a question back. An agent withdraws only its own."""
    from ..acts import reading, remarks

    with open_desk(directory) as desk:
        return told(desk, remarks.withdraw(desk, reading.open_gate(desk, str(id)), reason, push=push))


def waited(desk: Desk, gate: Folded, most: str | int | None) -> Folded:
    from ..claims.waiting import WaitLimit
    from ..claims.waiting import wait as block
    from ..text.times import parse_duration

    return block(desk, gate, WaitLimit(None if most is None else parse_duration(str(most))))
