"""Command line: `git gate github run`: a job's agent is started on its task, and what the job would lose of its work is said.

The checkout is gone after the job. What gets out is what was committed, and what went along with a question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ...errors import Failure
from .. import exits
from ..terminal.screen import Screen

if TYPE_CHECKING:
    from ...context.desk import Desk
    from ...policy.project import InForce


NAMED = 10  # so many files are named where many are left
PACKAGE = (
    'agent-package: "@anthropic-ai/claude-code@VERSION" in gitgate-agent.yml; in a job of your own, a step before this one: '
    "npm install --global @anthropic-ai/claude-code@VERSION"
)


def run_first(screen: Screen) -> int:
    from ...policy.project import in_force
    from ...setup.equipping import in_job
    from ..verbs.wrap import ASKED, SETTINGS, wrap_command
    from .jobs import agent_command, need_protected, note, undisturbed

    desk = screen.desk()
    need_protected(screen, desk)
    words, job = agent_command(screen), in_job(screen.env)
    if job:
        need_program(screen, words[0])
    before, written = uncommitted(desk) if job else frozenset(), list[str]()
    context = click.get_current_context()
    held = in_force(desk, desk.repo, ours=job, say=screen.warn, written=written)
    with undisturbed(screen, desk), held as project:
        context.meta[SETTINGS] = project.settings
        given = {"command": ready(screen, desk, words, project), "waiting_ok": True, "agent": None}
        told = {"as_json": screen.as_json, "quiet": screen.quiet, "color": screen.color}
        code = int(context.invoke(wrap_command, **given, **told) or exits.DONE)
    if not job:
        return code
    asked = context.meta.get(ASKED)
    if lost_nothing(screen, desk, written, None if asked else before):
        return code
    if not asked:
        note(screen, state="failed")  # of an output that is written twice the last counts
    return code or exits.FAILURE


def need_program(screen: Screen, program: str) -> None:
    """A job's machine is new: whoever wants a program there installs it."""
    import shutil

    if shutil.which(program, path=screen.env.get("PATH")) is None:
        raise Failure(f"{program} cannot be started: there is no such program on PATH", hint=PACKAGE)


def ready(screen: Screen, desk: Desk, words: Sequence[str], project: InForce) -> tuple[str, ...]:
    """The command with what it is given by us. The task is one word, whatever it says: no shell ever reads it."""
    from ...questions.prompts import Circumstances, first_prompt
    from ...setup.equipping import equipped

    unread = held_back(screen, desk, words, project.doubt)
    now = Circumstances(unread=unread, replaced=project.replaced)
    task = first_prompt(screen.env.get("GITGATE_TASK", ""), now)
    return tuple(task if word == "{task}" else word for word in equipped(desk, words, project.doubt))


def held_back(screen: Screen, desk: Desk, words: Sequence[str], doubt: str) -> tuple[str, ...]:
    """Say what takes no part because of a doubt, and why; the instructions that Claude Code does not load by itself then."""
    from ...agents.claude.command import is_claude
    from ...setup.equipping import SOURCES, names

    if not doubt:
        return ()
    screen.warn(f"what configures the agent is the branch's own: {doubt}")
    if not is_claude(words):
        return ()
    if names(words, SOURCES):
        screen.warn(f"its command names {SOURCES}, and may load that; the project's servers stay off")
        return ()
    screen.warn("so the project's own settings, hooks and servers take no part")
    from ...agents.claude.adapter import Claude

    return tuple(name for name in Claude.unread if (desk.repo.place / name).is_file())


def uncommitted(desk: Desk) -> frozenset[str]:
    """Files that are otherwise than the last commit has them, by name; not those that git ignores, nor signal files."""
    from ...store.work.leftout import printable
    from ...store.work.plan import is_signal
    from ...store.work.snapshot import signals_below

    said = desk.repo.git.out("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames")
    signals = signals_below(desk.repo, desk.settings.text("signals"))
    paths = (entry[3:] for entry in said.split(b"\0") if entry)
    return frozenset(printable(path) for path in paths if not is_signal(path, signals))


def lost_nothing(screen: Screen, desk: Desk, written: Sequence[str], before: frozenset[str] | None) -> bool:
    """Whether git could commit all that the agent wrote. What it left uncommitted is said either way, unless it asked:
    then `before` is None, and its work went along.
    """
    from ...store.work.aside import is_standing

    left = uncommitted(desk)
    lost = [path for path in written if path in left]
    if lost:
        screen.warn(
            f"lost with this checkout: what the agent wrote to {named(lost)}. What configures agents stands there as the "
            "protected branch has it, and git commits nothing of it; a person has to change it"
        )
    forgotten = sorted(left - before - set(lost)) if before is not None else []
    if forgotten:
        many = f"{len(forgotten)} files were" if len(forgotten) > 1 else "1 file was"
        screen.warn(f"{many} left uncommitted by the agent, and will be gone: {named(forgotten)}")
    return not lost and not is_standing(desk.repo)


def named(paths: Sequence[str]) -> str:
    more = f", and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return f"{', '.join(paths[:NAMED])}{more}"
