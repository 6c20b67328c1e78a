"""Command line: git begun before the verb's code is imported. Most of a short command is imports, and git needs no Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import GateError

if TYPE_CHECKING:
    from ..store.ahead import Ahead

# The verbs that work in the repository where they are called, whatever else is said; these are called most.
BEGUN = frozenset(("list", "show", "respond", "ask", "check", "wait", "comment", "status", "sync"))
READING = frozenset(("show", "respond", "check", "wait", "comment"))
# With these a list is not, or not at once, about what is open here.
NOT_HERE = frozenset(("-h", "--help", "--everywhere", "--sync"))
COMPLETING = "_GIT_GATE_COMPLETE"  # set when it is the shell that asks, for what may be typed next


def head_start(args: Sequence[str], env: Mapping[str, str]) -> Ahead | None:
    """What the verb will ask git first, under way; None where the first word does not tell."""
    verb = args[0] if args else "list"
    if verb not in BEGUN or not NOT_HERE.isdisjoint(args) or COMPLETING in env:
        return None
    from ..config import may_hide_git
    from ..store.ahead import Ahead

    if may_hide_git(env):
        from ..agents import seen_by_git

        env = seen_by_git(env)
    try:
        return Ahead(Path.cwd(), env, tips=verb == "list", reader=verb in READING)
    except (GateError, OSError):
        return None  # The verb meets the same, and says so.
