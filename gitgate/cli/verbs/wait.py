"""Command line: `git gate wait` and `git gate check`, which print only the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ...questions.answers import printed
from .. import exits
from ..terminal.screen import Screen, gate_argument, read_duration, verb

if TYPE_CHECKING:
    from ...context.desk import Desk
    from ...model.gate import Gate


@click.command("wait")
@gate_argument()
@click.option("--for", "for_", metavar="30m", help="How long at most; then exit 8, and the gate still waits.")
@verb
def wait_command(screen: Screen, gate_id: str, for_: str | None) -> int:
    """Block until a gate is answered, and print only the answer.

    Killing the waiter leaves the gate open; type the same again to go on waiting.

    \b
    git gate wait 7k2f
    git gate wait 7k2f --for 30m
    """
    desk = screen.desk()
    from ...acts.reading import asking, find_gate

    return wait_for(screen, desk, asking(find_gate, desk, gate_id).gate, for_)


@click.command("check")
@gate_argument()
@verb
def check_command(screen: Screen, gate_id: str) -> int:
    """Print the answer; exit 8 while there is none.

    \b
    git gate check 7k2f
    git gate check 7k2f --json
    """
    desk = screen.desk()
    from ...acts.reading import asking, find_gate
    from ...policy.permit import check_heard
    from ..machinery.sync import looked, tell_age

    found = asking(find_gate, desk, gate_id)
    known = None
    if found.gate.state == "awaiting" and found.pushed:
        known = looked(screen, desk)
        found = find_gate(desk, gate_id) if known is not None and known.heard is not None else found
    if not found.archived:
        check_heard(desk, found.gate)
    code = tell_answer(screen, found.gate, pushed=found.pushed, archived=found.archived)
    if known is not None and known.heard is not None:
        tell_age(screen, desk, known)
    elif found.gate.state == "awaiting":
        tell_of_elsewhere(screen, desk)
    return code


def tell_of_elsewhere(screen: Screen, desk: Desk) -> None:
    """Looking asks no remote: whoever looks again and again would never hear of an answer from another clone."""
    from ...context.remotes import remote_of

    if remote_of(desk) is not None:
        screen.say("that is what this clone knows; to hear of answers given elsewhere: git gate sync")


def wait_for(screen: Screen, desk: Desk, gate: Gate, most: str | None) -> int:
    from ...claims.attending import WaitLimit, wait
    from ...context.remotes import remote_of

    seconds = read_duration(most, "--for", "30m") if most is not None else None
    if gate.state == "awaiting":
        screen.say(f"waiting for an answer to {gate.id}; if this is interrupted: git gate wait {gate.id}")
    heard = wait(desk, gate, WaitLimit(seconds))
    remote = remote_of(desk)
    return tell_answer(
        screen, heard, pushed=remote is not None and desk.tracked(remote, heard.id) == heard.tip
    )


def tell_answer(screen: Screen, gate: Gate, *, pushed: bool, archived: bool = False) -> int:
    """The answer on stdout, the circumstances on stderr, the verdict as the exit code."""
    from ...render import shapes
    from ...text.display import neutral

    answer = gate.answer.answer if gate.answer else None
    verdict = answer.verdict if answer else None
    text = neutral(printed(gate.opened.questions, answer)) if answer else ""
    fields = {**shapes.gate(gate, pushed=pushed, archived=archived), "verdict": verdict}
    if any(question.type == "session" for question in gate.opened.questions):
        from ...questions.answers import plain

        fields["result"] = plain(gate)
    screen.emit("answer", fields, text)
    screen.say(circumstances_line(gate))
    return exits.of_gate(gate.state, verdict, expired=gate.expired)


def circumstances_line(gate: Gate) -> str:
    """What a reader of the bare answer must not miss."""
    if gate.state == "awaiting":
        return f"gate {gate.id} still waits for an answer; look again with: git gate check {gate.id}"
    if gate.defaulted:
        return "nobody answered before the deadline; this is the declared default"
    if gate.expired:
        return "nobody answered before the deadline"
    if gate.closing is not None:
        from ...render.shapes import who_ended

        by = (who_ended(gate.closing) or "").partition(" <")[0]
        return f"gate {gate.id} was {gate.state}{f' by {by}' if by else ''}: {gate.closing.text}"
    if gate.answer is not None and not gate.answer.answer.confirmed:
        return "nobody confirmed this: a session proposed it, and the policy takes that for an answer"
    return ""
