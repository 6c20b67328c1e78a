"""Setup: `git gate init --remove --purge`: takes away what git gate keeps in a repository and at home, all but the gates.

Gates (`refs/hitl`) are the audit trail, and often somebody else's word: `ERASE` says how a person erases them.
Nothing is taken from an agent that is at work, and no uncommitted work of one.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from ..context import registry
from ..context.desk import Desk
from ..context.find import summaries
from ..context.registry import state_home
from ..errors import Conflict
from ..gates.work import worktrees
from ..store.git.process import Git
from ..store.git.refs import TRACKING
from ..store.work.worktrees import list_worktrees, without_place
from ..text.display import counted
from .steps import Step

ERASE = "git for-each-ref --format='delete %(refname)' refs/hitl | git update-ref --stdin"


def steps(desk: Desk) -> list[Step]:
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
    """Logs, notes, drafts and locks; another account's folder beside them is that account's."""
    place = desk.repo.state_dir
    locks = [file for file in desk.repo.common_dir.glob("gitgate-*.lock") if file.is_file()]

    def take() -> None:
        shutil.rmtree(place, ignore_errors=True)
        for lock in locks:
            lock.unlink(missing_ok=True)

    there = place.exists() or locks
    return Step(str(place), "logs, drafts, notes and locks taken away", False, take) if there else None


def home(desk: Desk) -> Step | None:
    """What is kept for all of a person's repositories, once this was the last of them."""
    place = state_home(desk.settings.env)
    others = [one for one in registry.places(desk.settings.env) if one != desk.repo.place]
    if place is None or others or not place.exists():
        return None

    def take() -> None:
        shutil.rmtree(place / "slots", ignore_errors=True)
        for name in ("repositories", "repositories.lock"):
            (place / name).unlink(missing_ok=True)
        for empty in (place / "worktrees", place):
            with suppress(OSError):  # something else is in it
                empty.rmdir()

    return Step(str(place), "taken away: no other repository is set up", False, take)
