"""Setup: what `git gate init` does besides the clone itself, and what `--remove --purge` takes away. A new part is one line.

For the part `x` its module has `x_steps(desk)` and `x_removal(desk)`, each a list of `setup.Step`.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from ..context import machine
from ..context.desk import Desk
from ..context.find import summaries
from ..context.machine import state_home
from ..document.values import NamedTuple, replace
from ..errors import Conflict
from ..gates.work import worktrees
from ..store.git.refs import TRACKING
from ..store.git.repository import Git
from ..store.work.restore import list_worktrees, without_place
from ..text.display import counted
from .mcp import mcp_removal, mcp_steps
from .steps import Step


class Part(NamedTuple):
    """A flag of `git gate init`: what it adds, and the module that knows how."""

    flag: str
    meaning: str
    module: str


PARTS: tuple[Part, ...] = (
    Part("claude", "Claude Code's hooks and skill, in this project.", "gitgate.setup.claude"),
    Part("agents", "Guidance for other agents, in AGENTS.md.", "gitgate.setup.steps"),
    Part("script", "scripts/ask-human.sh, by which any program asks.", "gitgate.setup.steps"),
    Part(
        "flows",
        "An example flow, its agents, and a workflow that runs it on a label.",
        "gitgate.setup.github",
    ),
    Part("github", "GitHub's workflows: pull requests as the place to answer.", "gitgate.setup.github"),
    Part("gitlab", "GitLab's pipeline: merge requests as the place to answer.", "gitgate.setup.gitlab"),
)


class InitChoice(NamedTuple):
    """What somebody wants of `init`. None: what was said before stands."""

    server: bool = False
    publish_work: bool | None = None
    resume: bool | None = None
    parts: Sequence[Part] = ()
    clients: Sequence[str] = ()


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
    found += [step for part in chosen.parts for step in steps_of(part, desk)]
    return [*found, *(mcp_steps(desk, chosen.clients) if chosen.clients else ())]


def permitted(desk: Desk, setting: str, said: bool | None) -> bool:
    """A no that was said before stands until somebody takes it back: `init` is run again for other reasons."""
    return desk.settings.git.get(f"gitgate.{setting}") != "false" if said is None else said


def planned_removal(
    desk: Desk, parts: Sequence[Part] = (), *, clients: Sequence[str] = (), purge: bool = False
) -> list[Step]:
    """With parts named, those alone; else everything that `init` did, and with `purge` all that was kept besides."""
    from . import manpage
    from . import steps as setup

    named = parts or clients
    found = [step for part in (parts if named else PARTS) for step in removal_of(part, desk)]
    found += mcp_removal(desk, clients) if named else mcp_removal(desk)
    if named:
        return found
    kept = [*manpage.link_removal(desk), *purge_steps(desk)] if purge else []
    return [*found, *setup.removal_steps(desk), *kept]


def steps_of(part: Part, desk: Desk) -> list[Step]:
    steps: list[Step] = getattr(import_module(part.module), f"{part.flag}_steps")(desk)
    return steps


def removal_of(part: Part, desk: Desk) -> list[Step]:
    steps: list[Step] = getattr(import_module(part.module), f"{part.flag}_removal")(desk)
    return steps


def take_steps(found: Sequence[Step]) -> list[Step]:
    """Take each that is to be taken; all of them as they are then."""
    for step in found:
        if not step.done:
            step.take()
    return [replace(step, done=True) for step in found]


ERASE = "git for-each-ref --format='delete %(refname)' refs/hitl | git update-ref --stdin"


def purge_steps(desk: Desk) -> list[Step]:
    """In the order in which they are taken; what is at work, or not committed, stops all of it beforehand."""
    busy = [one.id for one in summaries(desk) if one.state == "resuming"]
    if busy:
        raise Conflict(
            f"{counted(len(busy), 'gate')} is being acted on: {', '.join(busy)}",
            hint=f"git gate wait {busy[0][:6]}, or stop its agent; then run this again",
        )
    if desk.repo.standing_dir.exists():
        raise Conflict(
            "files that configure agents stand here as the protected branch has them, and the branch's own are not back yet",
            hint="git gate doctor",
        )
    found = (trees(desk), settings_step(desk), refs(desk), state_step(desk), home(desk))
    return [step for step in found if step is not None]


def trees(desk: Desk) -> Step | None:
    """Working trees of resumed agents."""
    ours = worktrees(desk)
    found = [one.path for one in list_worktrees(desk.repo) if one.path.is_relative_to(ours)]
    for place in found:
        if place.is_dir() and changed(desk, place):
            raise Conflict(
                f"an agent left uncommitted work in {place}",
                hint=f"commit it there, or: git worktree remove --force {place}",
            )

    def take() -> None:
        for place in found:
            desk.repo.git.run("worktree", "remove", "--force", "--", str(place), check=False)
        desk.repo.git.run("worktree", "prune")
        with suppress(OSError):  # others are in it, or it was never made
            ours.rmdir()

    name = f"{len(found)} working {'tree' if len(found) == 1 else 'trees'} of resumed agents"
    return Step(name, "taken away; their commits stay", False, take) if found else None


def changed(desk: Desk, place: Path) -> bool:
    said = Git(place, without_place(desk.repo.git.env)).run("status", "--porcelain", check=False)
    return bool(said.code or said.out.strip())


def settings_step(desk: Desk) -> Step | None:
    """Every `gitgate.*` of this repository, a person's own included; the machine's own settings stay."""
    said = desk.repo.git.run(
        "config", "--local", "--name-only", "-z", "--get-regexp", r"^gitgate\.", check=False
    )
    keys = [key for key in said.out.decode("utf-8", "surrogateescape").split("\0") if key]
    sections = sorted({key.rpartition(".")[0] for key in keys} | {"gitgate"})

    def take() -> None:
        for section in sections:
            desk.repo.git.run("config", "--local", "--remove-section", section, check=False)

    return Step("every gitgate.* of this repository", "forgotten", False, take) if keys else None


def refs(desk: Desk) -> Step | None:
    """What was seen at remotes, and what was put aside."""
    found = desk.refs.under(TRACKING)

    def take() -> None:
        lines = "".join(f"delete {name} {tip}\n" for name, tip in found.items())
        desk.repo.git.run("update-ref", "--stdin", input=lines.encode())

    return Step(f"{TRACKING}* ({counted(len(found), 'ref')})", "taken away", False, take) if found else None


def state_step(desk: Desk) -> Step | None:
    """Logs, notes, drafts and locks; another account's folder beside them is that account's. The outbox is all accounts'."""
    place, shared = desk.repo.state_dir, desk.repo.common_dir / "gitgate-outbox"
    locks = [file for file in desk.repo.common_dir.glob("gitgate-*.lock") if file.is_file()]

    def take() -> None:
        for folder in (place, shared):
            shutil.rmtree(folder, ignore_errors=True)
        for lock in locks:
            lock.unlink(missing_ok=True)

    there = place.exists() or shared.exists() or locks
    return Step(str(place), "logs, drafts, notes and locks taken away", False, take) if there else None


def home(desk: Desk) -> Step | None:
    """What is kept for all of a person's repositories, once this was the last of them."""
    place = state_home(desk.settings.env)
    others = [one for one in machine.repositories(desk.settings.env) if one != desk.repo.place]
    if place is None or others or not place.exists():
        return None

    def take() -> None:
        for folder in ("slots", "outbox"):
            shutil.rmtree(place / folder, ignore_errors=True)
        for name in ("repositories", "repositories.lock"):
            (place / name).unlink(missing_ok=True)
        for empty in (place / "worktrees", place):
            with suppress(OSError):  # something else is in it
                empty.rmdir()

    return Step(str(place), "taken away: no other repository is set up", False, take)
