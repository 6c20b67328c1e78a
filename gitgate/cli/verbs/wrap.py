"""Command line: `git gate wrap -- CMD…`: runs an agent, and opens the gate when it ends by asking."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...errors import Failure, Usage
from .. import exits
from ..terminal.screen import Screen, verb

if TYPE_CHECKING:
    from ...model.gate import Gate


OUTPUT = "GITHUB_OUTPUT"
SETTINGS = "gitgate.git-settings"  # git's, for the command alone, from a verb that runs this one
ASKED = "gitgate.asked"  # and back to it: whether the command asked


@click.command("wrap", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--waiting-ok", is_flag=True, help="Exit 0 when the agent waits for an answer, instead of 8.")
@click.option("--agent", metavar="NAME", help="The agent's name.")
@verb
def wrap_command(screen: Screen, command: tuple[str, ...], waiting_ok: bool, agent: str | None) -> int:
    """Run an agent's command; when it ends by asking, open the gate for it and exit 8.

    It has asked when it opened a gate itself, stopped at a deferred tool call, ended with a `needs_input` or
    `NEEDS_HUMAN` object, or left a signal file. Otherwise its own exit code is passed on. Its work is left as it is.

    Claude Code (`claude -p`) is given what it needs to ask: the flag by which its tool for questions is offered, our hooks where
    the project has none, and a name for its conversation.

    \b
    git gate wrap -- claude -p "Add a login page"
    git gate wrap -- claude -p "$TASK" --output-format json
    """
    if not command:
        raise Usage("what is to be run?", hint="git gate wrap -- claude -p 'The task'")
    desk = screen.desk()
    from uuid import uuid4

    from ...acts.needing import asker_of, environment_of, gates_of, look, read_end
    from ...agents.terminal import run_wrapped
    from ...setup.claude import able_to_ask

    command = able_to_ask(desk, command, str(uuid4()))
    before = look(desk)
    # With --json our object is all there is on standard output, and what the command says is talk.
    out = sys.stderr.buffer if screen.as_json else sys.stdout.buffer

    blank: list[bytes] = []  # all that was printed, while that is nothing to see
    seen = False

    def forward(piece: bytes) -> None:
        nonlocal seen
        seen = seen or bool(piece.strip())
        blank.append(piece)
        if seen:
            out.write(b"".join(blank))
            out.flush()
            blank.clear()

    settings = click.get_current_context().meta.get(SETTINGS, ())
    heard = run_wrapped(command, Path.cwd(), environment_of(desk, command, settings), forward)
    gates = gates_of(desk, before, read_end(command, heard.out), asker_of(desk, command, heard.pid, agent))
    if not gates:  # else it is the empty line of a run that its question ended: what we say instead says more
        out.write(b"".join(blank))
        out.flush()
    click.get_current_context().meta[ASKED] = bool(gates)
    tell_ci(screen, gates, heard.code)
    return tell_waiting(screen, gates, heard.code, waiting_ok=waiting_ok)


def tell_waiting(screen: Screen, gates: Sequence[Gate], code: int, *, waiting_ok: bool) -> int:
    """What waits now, and how to answer it."""
    from ...render.letter import waiting_words

    if screen.as_json:
        from ...render import shapes

        found = [shapes.gate(gate) for gate in gates]
        first = found[0] if found else None
        screen.emit("wrap", {"gate": first, "gates": found, "state": state_of(gates, code), "code": code}, "")
    if not gates:
        return code
    for gate in gates:
        screen.say(waiting_words(gate))
    return exits.DONE if waiting_ok else exits.WAITING


def state_of(gates: Sequence[Gate], code: int) -> str:
    return gates[0].state if gates else "failed" if code else "done"


def tell_ci(screen: Screen, gates: Sequence[Gate], code: int) -> None:
    """For the steps that follow in a CI job. All are words of our own: no line of them can be somebody else's."""
    name = screen.env.get(OUTPUT)
    if not name:
        return
    lines = [f"gate={gates[0].id if gates else ''}", f"state={state_of(gates, code)}"]
    lines += [f"gates={' '.join(gate.id for gate in gates)}"] if len(gates) > 1 else []
    try:
        with Path(name).open("a", encoding="utf-8") as out:
            out.write("\n".join([*lines, ""]))
    except OSError as unwritable:
        raise Failure(
            f"{OUTPUT} cannot be written: {unwritable.strerror}", hint=f"check {name}"
        ) from unwritable
