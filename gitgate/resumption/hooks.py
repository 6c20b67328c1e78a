"""Resumption: the hooks of ours that a resumed agent runs with, by program, in the program's own form.

They are the machine's, never the branch's: a working tree's own settings stay off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..agents import claude_hooks

HOOKS: dict[str, Callable[[], Mapping[str, object]]] = {"claude": claude_hooks.hooks}


def hooks_of(program: str) -> Mapping[str, object]:
    """What is passed to a program of that name when it is resumed."""
    return HOOKS[program]() if program in HOOKS else {}
