"""Command line: where a gate went. Apart from the verbs that say it, because each of them costs its loading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .screen import Screen

if TYPE_CHECKING:
    from ...context.desk import Desk
    from ...exchange.publishing import Published


SAVED = "saved, not pushed: git gate sync"


def tell_trouble(screen: Screen, published: Published) -> None:
    """Why it did not get further than here, where somebody wanted it to."""
    if published.remote is not None and not published.pushed:
        screen.warn(f"warning: not pushed, but safe here: {published.reason}")


def sharing(desk: Desk) -> str:
    """What makes sessions travel with the questions that are asked here."""
    shares = desk.settings.text("session") == "push"
    return (
        "git gate init publishes work and sessions"
        if shares
        else "git config gitgate.session push shares them"
    )


def where(desk: Desk, published: Published) -> str:
    if published.pushed:
        return f"pushed to {published.remote}"
    from ...context.remotes import remote_of

    return SAVED if published.remote or remote_of(desk) else "saved here"
