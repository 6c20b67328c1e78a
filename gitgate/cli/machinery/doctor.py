"""Command line: `git gate doctor`: what is set up, what is missing, and the command that mends it."""

from __future__ import annotations

import click

from .. import exits
from ..terminal.screen import Screen, verb

SIGNS = {"good": "ok", "missing": "--", "wrong": "!!"}


@click.command("doctor")
@click.option(
    "--online",
    is_flag=True,
    help="Ask GitHub too: the token's rights, the workflows, the names of the secrets.",
)
@click.option(
    "--claude",
    is_flag=True,
    help="Rehearse with the real Claude Code in a scratch repository: it asks, is answered, goes on. No account is needed.",
)
@verb
def doctor_command(screen: Screen, online: bool, claude: bool) -> int:
    """What is set up, what is missing, and the command that mends it. Changes nothing; exit 1 when something is wrong.

    \b
    git gate doctor
    git gate doctor --json
    git gate doctor --claude
    """
    from dataclasses import asdict

    from ...setup.checkup import WRONG, examine
    from ...surfaces.forge.checkup import examine_github
    from ...text.display import hang, one_line

    desk = screen.desk()
    desk.settings = screen.settings = desk.settings.forgiving()
    found = [*examine(desk), *examine_github(desk, online=online)]
    if claude:
        from ...setup.claude_checkup import rehearse

        screen.progress("Claude Code is tried out, which takes some seconds")
        found.extend(rehearse(desk))
    lines = []
    for one in found:
        told = f"{SIGNS[one.state]}  {one.name}: {one_line(one.words)}"
        lines.append(hang(told, screen.width))
        if one.mend:
            lines.append(hang(one_line(one.mend), screen.width, "      "))
    screen.emit("doctor", {"findings": [asdict(one) for one in found]}, "\n".join(lines))
    return exits.FAILURE if any(one.state == WRONG for one in found) else exits.DONE
