"""Surfaces: which accounts are ourselves. A mark counts only in our own comment, so whose comments are ours is never assumed."""

from __future__ import annotations

from collections.abc import Iterable

from ....context.desk import Desk
from ....errors import GateError
from .forge import BEGIN, Comment, Forge


def logins(forge: Forge, comments: Iterable[Comment]) -> tuple[str, ...]:
    """That of this repository's jobs, where it has ours or we are one of them; and the one whose token we have.

    A program's token may not ask whose it is. It is not the jobs' own where a program of another name has written what looks
    like ours: a reaction to that, whose answer names who reacted, tells whether it was us, before it is all posted once more.
    """
    begun = [one for one in comments if one.body.startswith(BEGIN)]
    me = forge.fetch_self()
    strange = [one for one in begun if one.author.bot and one.author.login != forge.robot]
    if not me and strange:
        forge.react(strange[0], "eyes")
        me = forge.fetch_self()
    known = [forge.robot] if me == forge.robot or forge.job or has_theirs(forge, begun) else []
    return tuple(dict.fromkeys([*known, me] if me else known))


def has_theirs(forge: Forge, begun: Iterable[Comment]) -> bool:
    """Outside a job the jobs' word is ours where the repository has our workflow: any workflow of it writes by that name."""
    return any(one.author.login == forge.robot for one in begun) and forge.has_jobs()


def has_workflow(desk: Desk) -> bool:
    """Whether the default branch, as it was last fetched, has the workflow whose jobs take replies."""
    from ....policy.book import protected_refs
    from ....setup.github import ANSWERS, FOLDER
    from ....store.git.protected import read_protected

    return read_protected(desk.repo, f"{FOLDER}/{ANSWERS}", protected_refs(desk)) is not None


def foreign_token(desk: Desk, forge: Forge) -> str:
    """What is wrong with a token in a job where others of the repository take the replies; empty where it is the job's own."""
    try:
        me = forge.fetch_self() if forge.job and forge.name == "github" and has_workflow(desk) else ""
    except GateError:
        return ""  # a warning is worth no failure
    if me in ("", forge.robot):
        return ""
    return (
        f"this job posts as {me}, and gitgate.yml takes only replies to what {forge.robot} wrote: such replies may be lost; "
        "give this step the job's own token: GITGATE_GITHUB_TOKEN: ${{ github.token }}"
    )
