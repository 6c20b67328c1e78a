"""Setup: what `git gate init` does besides the clone itself, and all of it together. A new part is one line here.

Its module has `steps(desk)` and `removal(desk)`, each a list of `setup.Step`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..document.values import replace

if TYPE_CHECKING:
    from types import ModuleType

    from ..context.desk import Desk
    from .steps import Step


class Part(NamedTuple):
    """A flag of `git gate init`: what it adds, and the module that knows how."""

    flag: str
    meaning: str
    module: str


PARTS: tuple[Part, ...] = (
    Part("claude", "Claude Code's hooks and skill, in this project.", "gitgate.setup.claude"),
    Part("agents", "Guidance for other agents, in AGENTS.md.", "gitgate.setup.agents"),
    Part("script", "scripts/ask-human.sh, by which any program asks.", "gitgate.setup.script"),
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
    from .steps import CloneWishes, steps

    wishes = CloneWishes(
        chosen.server,
        permitted(desk, "publishwork", chosen.publish_work),
        permitted(desk, "resumehere", chosen.resume),
    )
    return [*steps(desk, wishes), *(step for part in chosen.parts for step in loaded(part).steps(desk))]


def permitted(desk: Desk, setting: str, said: bool | None) -> bool:
    """A no that was said before stands until somebody takes it back: `init` is run again for other reasons."""
    return desk.settings.git.get(f"gitgate.{setting}") != "false" if said is None else said


def removal(desk: Desk, parts: Sequence[Part] = (), *, purge: bool = False) -> list[Step]:
    """With parts named, those alone; else everything that `init` did, and with `purge` all that was kept besides."""
    from . import purging
    from . import steps as setup

    found = [step for part in parts or PARTS for step in loaded(part).removal(desk)]
    if parts:
        return found
    return [*found, *setup.removal(desk), *(purging.steps(desk) if purge else [])]


def loaded(part: Part) -> ModuleType:
    from importlib import import_module

    return import_module(part.module)


def take(found: Sequence[Step]) -> list[Step]:
    """Take each that is to be taken; all of them as they are then."""
    for step in found:
        if not step.done:
            step.take()
    return [replace(step, done=True) for step in found]
