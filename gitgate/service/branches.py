"""Service: the branch that an agent worked on, on its way to the shared repository; by fast-forward only."""

from __future__ import annotations

from ..errors import Failure
from ..store.remote import RefMove
from .desk import Desk
from .publishing import may_publish_work, push_moves, remote_of

HEADS = "refs/heads/"


def publish_branch(desk: Desk) -> str:
    """Push what the branch of this checkout gained; its name, or nothing where there is nothing to push."""
    from ..store import commits
    from ..store.branches import fetch_branch

    remote = remote_of(desk)
    said = desk.repo.git.run("symbolic-ref", "-q", "HEAD", check=False).out.decode("utf-8", "replace").strip()
    tip = desk.refs.get("HEAD^{commit}")
    if remote is None or tip is None or not said.startswith(HEADS) or not may_publish_work(desk):
        return ""
    branch = said.removeprefix(HEADS)
    there = fetch_branch(desk.repo, remote, branch, timeout=desk.settings.seconds("networkTimeout") or 60)
    if there == tip or (there is not None and commits.is_ancestor(desk.repo.git, tip, there)):
        return ""
    if there is not None and not commits.is_ancestor(desk.repo.git, there, tip):
        raise Failure(
            f"{branch} went another way on {remote} meanwhile, so that it was not pushed",
            hint=f"git fetch {remote} && git merge {remote}/{branch}",
        )
    for fate in push_moves(desk, remote, [RefMove(said, tip, there)]):
        if not fate.ok:
            raise Failure(
                f"{branch} was not pushed to {remote}: {fate.reason}", hint=f"git push {remote} {branch}"
            )
    return branch
