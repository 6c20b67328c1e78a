"""Command line: the hooks of a repository that others push to, and the runner that they start."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from . import exits

if TYPE_CHECKING:
    from .screen import Screen


def runner(screen: Screen, args: tuple[str, ...]) -> int:
    """Acts on everything that can be acted on here, then ends. Its talk is the log."""
    from ..resume.calls import answer_calls
    from .resume import stop_on_signal

    del args
    desk = screen.desk()

    def say(words: str) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        print(f"{stamp} {words}", file=sys.stderr, flush=True)

    with stop_on_signal() as stopping:
        shift = answer_calls(desk, say, stopping)
    return exits.DONE if shift is None or not shift.failed else exits.FAILURE


def post_receive(screen: Screen, args: tuple[str, ...]) -> int:
    """The same, started by a push; only where somebody allowed it."""
    import os
    from contextlib import suppress
    from dataclasses import replace
    from pathlib import Path

    from ..runners.local import without_caller

    with suppress(OSError):
        os.setsid()  # Whoever pushed may be cut off; this goes on.
    place = Path.cwd()
    # Git starts a hook in the repository itself, whether it has a working tree or not.
    place = place.parent if place.name == ".git" else place
    here = replace(screen, directory=str(place), env=without_caller(screen.env))
    desk = here.desk()
    if not desk.settings.flag("resumeHere"):
        print("agents are not started here by themselves: git gate init allows it", file=sys.stderr)
        return exits.DONE
    return runner(here, args)


BULK = 12
"""From so many refs on, reading them within this process is cheaper than its start."""


def pre_receive(screen: Screen, args: tuple[str, ...]) -> int:
    """Refuses a push that would change or lose a gate, and says which ref and why."""
    from pathlib import Path

    from ..service.desk import open_desk
    from ..service.receiving import parse_updates, refusals

    del args
    text = sys.stdin.read()
    desk = open_desk(Path.cwd(), screen.env, bulk=text.count(" refs/hitl/") >= BULK)
    refused = refusals(desk, parse_updates(text, desk.repo.zero))
    desk.close()
    for ref, reason in list(refused.items())[:20]:
        print(f"gate: {ref}: {reason}", file=sys.stderr)
    if len(refused) > 20:
        print(f"gate: and {len(refused) - 20} more", file=sys.stderr)
    return exits.FAILURE if refused else exits.DONE
