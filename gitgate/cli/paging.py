"""Command line: colour and pager, decided as git decides them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..config import FALSE, TRUE

if TYPE_CHECKING:
    from ..config import Settings

NO_PAGER = ("", "cat")


def wants_color(
    flag: str | None, env: Mapping[str, str], settings: Settings | None, *, terminal: bool
) -> bool:
    """Flag and our own setting first; then NO_COLOR; then git's `color.ui`; then whether somebody sees it."""
    said = flag or (settings.text("color") if settings else env.get("GITGATE_COLOR", "auto"))
    if said in ("always", "never"):
        return said == "always"
    if env.get("NO_COLOR"):
        return False
    git = settings.git if settings else {}
    ui = git.get("color.gate", git.get("color.ui", "auto")).lower()
    if ui in ("always", "never", *FALSE):
        return ui == "always"
    return (terminal or bool(env.get("GIT_PAGER_IN_USE"))) and env.get("TERM") != "dumb"


def pager_of(env: Mapping[str, str], settings: Settings | None) -> str:
    """The command that long text goes through; empty for none. In git's order."""
    git = settings.git if settings else {}
    own = git.get("pager.gate")
    if (own is not None and own.lower() in FALSE) or env.get("TERM") == "dumb":
        return ""
    if settings is not None and not settings.flag("pager"):
        return ""
    command = None if own is None or own.lower() in TRUE else own
    for said in (env.get("GIT_PAGER"), command, git.get("core.pager"), env.get("PAGER"), "less"):
        if said is not None:
            return "" if said.strip() in NO_PAGER else said
    return ""


def show_paged(command: str, text: str, env: Mapping[str, str]) -> bool:
    """Whether the pager took it; if it cannot be started, the text is printed."""
    from ..store.pager import page

    sys.stdout.flush()
    return page(command, (text + "\n").encode(sys.stdout.encoding or "utf-8", "backslashreplace"), env)
