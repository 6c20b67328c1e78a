"""Surfaces: refusals that no later try changes, and that are nobody's mistake: said once, and no reason for a red job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from .events import MOST_EVENT
from .web import ForgeFailed

LOCKED = "is locked"
ARCHIVED = "was archived"
FORBIDDEN = "Resource not accessible by integration"
GONE = "the thread was deleted, so nothing can be shown there"
SHUT = "the thread is locked, so nothing can be said there; replies that stand there are heard"
LATER = "this run may only read, and has no secrets: the next scheduled sweep does what is to be done"
DEPENDABOT = "dependabot[bot]"


def final(refused: ForgeFailed, env: Mapping[str, str]) -> str:
    """Why it is of no use to ask again; empty where it may be, or where somebody has to mend something."""
    said = refused.message
    if refused.status == 410:
        return GONE
    if refused.status != 403:
        return ""
    if LOCKED in said:
        return SHUT
    if ARCHIVED in said:
        return "the repository is archived: nothing in it can be changed"
    if FORBIDDEN in said and may_only_read(env):
        return LATER
    return ""


def is_of_thread(why: str) -> bool:
    """Whether it is one thread's; the others are the whole run's."""
    return why in (GONE, SHUT)


def may_only_read(env: Mapping[str, str]) -> bool:
    """A job of a pull request of Dependabot's or of a fork has such a token by GitHub's own rule; any other by mistake."""
    if env.get("GITHUB_EVENT_NAME") != "pull_request":
        return False
    return DEPENDABOT in (env.get("GITHUB_ACTOR"), env.get("GITHUB_TRIGGERING_ACTOR")) or of_a_fork(env)


def of_a_fork(env: Mapping[str, str]) -> bool:
    try:
        with Path(env.get("GITHUB_EVENT_PATH") or "-").open("rb") as event:
            said = json.loads(event.read(MOST_EVENT))
        head, base = (said["pull_request"][side]["repo"] for side in ("head", "base"))
        return head is None or bool(head["full_name"] != base["full_name"])  # None: it was deleted meanwhile
    except (OSError, ValueError, TypeError, KeyError):
        return False
