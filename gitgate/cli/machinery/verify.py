"""Command line: `git gate verify`, for auditors and for CI."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .. import exits
from ..terminal.screen import Screen, complete_ids, verb

if TYPE_CHECKING:
    from ...audit.gate_checks import Problem, Verified


@click.command("verify")
@click.argument("gate_ids", metavar="[ID]...", nargs=-1, shell_complete=complete_ids)
@click.option(
    "--branch", metavar="B", help="As a check in CI: every gate of this branch is resolved, and holds."
)
@verb
def verify_command(screen: Screen, gate_ids: tuple[str, ...], branch: str | None) -> int:
    """Check every gate, open and archived; exit 1 names what is wrong.

    Chain, ids, bindings, messages, work, signatures, and that nothing is there twice or without its gate.

    \b
    git gate verify
    git gate verify 7k2f
    git gate verify --branch main
    """
    from ...audit.auditing import audit, refuse_unsynced

    desk = screen.desk(bulk=True)
    if branch is not None:
        refuse_unsynced(desk)
    done = audit(desk, gate_ids, branch)
    fields = {
        "ok": done.ok,
        "gates": done.gates,
        "events": done.events,
        "signatures": done.signatures,
        "problems": [shape(problem) for problem in done.problems],
        "notes": [shape(note) for note in done.notes],
    }
    from ...text.display import one_line

    screen.emit("verify", fields, "\n".join(one_line(problem.line) for problem in done.problems))
    for note in done.notes:
        screen.say(f"note: {one_line(note.line)}")
    screen.say(summary(done))
    return exits.DONE if done.ok else exits.FAILURE


def shape(problem: Problem) -> dict[str, str]:
    return {"gate": problem.gate, "commit": problem.commit, "kind": problem.kind, "problem": problem.problem}


def summary(done: Verified) -> str:
    from ...text.display import counted

    words = [counted(done.gates, "gate"), counted(done.events, "event")]
    words += [counted(count, f"{word} signature") for word, count in sorted(done.signatures.items())]
    wrong = counted(len(done.problems), "problem") if done.problems else "nothing is wrong"
    return f"{', '.join(words)}: {wrong}"
