"""Surfaces: which accounts are ourselves. A mark counts only in our own comment, so whose comments are ours is never assumed."""

from __future__ import annotations

from collections.abc import Iterable

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
