"""Setup: what `git gate init` does besides the clone itself, and all of it together. A new part is one line here.

For the part `x` its module has `x_steps(desk)` and `x_removal(desk)`, each a list of `setup.Step`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from ..document.values import replace

if TYPE_CHECKING:
    from ..context.desk import Desk
    from .steps import Step


class Part(NamedTuple):
    """A flag of `git gate init`: what it adds, and the module that knows how."""

    flag: str
    meaning: str
    module: str


PARTS: tuple[Part, ...] = (
    Part("claude", "Claude Code's hooks and skill, in this project.", "gitgate.setup.claude"),
    Part("agents", "Guidance for other agents, in AGENTS.md.", "gitgate.setup.guidance"),
    Part("script", "scripts/ask-human.sh, by which any program asks.", "gitgate.setup.guidance"),
    Part("github", "GitHub's workflows: pull requests as the place to answer.", "gitgate.setup.github"),
)


class InitChoice(NamedTuple):
    """What somebody wants of `init`. None: what was said before stands."""

    server: bool = False
    publish_work: bool | None = None
    resume: bool | None = None
    parts: Sequence[Part] = ()


def wanted(desk: Desk, chosen: InitChoice) -> list[Step]:
    """Every step to take, those included that were taken already."""
    from .manpage import link_steps
    from .steps import CloneWishes, steps

    wishes = CloneWishes(
        chosen.server,
        permitted(desk, "publishwork", chosen.publish_work),
        permitted(desk, "resumehere", chosen.resume),
    )
    found = [*steps(desk, wishes), *link_steps(desk)]
    return [*found, *(step for part in chosen.parts for step in steps_of(part, desk))]


def permitted(desk: Desk, setting: str, said: bool | None) -> bool:
    """A no that was said before stands until somebody takes it back: `init` is run again for other reasons."""
    return desk.settings.git.get(f"gitgate.{setting}") != "false" if said is None else said


def removal(desk: Desk, parts: Sequence[Part] = (), *, purge: bool = False) -> list[Step]:
    """With parts named, those alone; else everything that `init` did, and with `purge` all that was kept besides."""
    from . import manpage, purging
    from . import steps as setup

    found = [step for part in parts or PARTS for step in removal_of(part, desk)]
    if parts:
        return found
    kept = [*manpage.removal(desk), *purging.steps(desk)] if purge else []
    return [*found, *setup.removal(desk), *kept]


def steps_of(part: Part, desk: Desk) -> list[Step]:
    steps: list[Step] = getattr(import_module(part.module), f"{part.flag}_steps")(desk)
    return steps


def removal_of(part: Part, desk: Desk) -> list[Step]:
    steps: list[Step] = getattr(import_module(part.module), f"{part.flag}_removal")(desk)
    return steps


def take(found: Sequence[Step]) -> list[Step]:
    """Take each that is to be taken; all of them as they are then."""
    for step in found:
        if not step.done:
            step.take()
    return [replace(step, done=True) for step in found]
