"""Surfaces: when a run ends. Last words that ask become a gate, and the conversation is saved as it now is."""

from __future__ import annotations

import json

from ...core.session import SessionRef
from ...errors import GateError, NotARepository
from .event import NOTHING, Event, Reply, last_words


def stop(event: Event) -> Reply:
    """A run that ends with `needs_input` or `NEEDS_HUMAN`, said or signalled, has asked."""
    if event.attended or event.subagent or not event.session:
        return NOTHING
    from ...core.needs import find_need
    from ...service import needing

    need = find_need(event.said or last_words(event))
    try:
        desk = event.desk()
    except NotARepository:
        return (
            cannot(event, "this is no git repository, so that no question can be kept") if need else NOTHING
        )
    try:
        since = needing.started(event.transcript)
        gates = needing.ask_for(desk, need, event.session, needing.signals(desk, since=since))
    except GateError as failed:
        return cannot(event, f"{failed.message} {failed.hint}")
    if not gates:
        return NOTHING
    named = " and ".join(gate.id for gate in gates)
    words = f"gates {named} wait for answers" if len(gates) > 1 else f"gate {named} waits for an answer"
    return Reply(json.dumps({"systemMessage": f"git gate: {words}"}))


def cannot(event: Event, reason: str) -> Reply:
    """The agent is told once that it was not heard; a second time it may end."""
    words = f"Your question could not be asked: {reason}. Say so in your result."
    return NOTHING if event.again else Reply(json.dumps({"decision": "block", "reason": words}))


def session_end(event: Event) -> Reply:
    """Save the conversation for the gates that it waits at: only now are the last words in it."""
    if not event.session:
        return NOTHING
    from ...service.calling import save_sessions

    try:
        desk = event.desk()
    except NotARepository:
        return NOTHING
    saved = save_sessions(desk, SessionRef("claude", event.session, str(event.cwd), event.transcript))
    if saved and desk.settings.text("session") == "push":
        share(event, saved)
    return NOTHING


def share(event: Event, gates: list[str]) -> None:
    """Push in the background: the program waits for this hook for a second and a half, and a network may take longer."""
    import sys

    from ...agents.process import detach

    desk = event.desk()
    argv = [sys.executable, "-P", "-m", "gitgate", "hook", "claude-share-session", *gates]
    detach(argv, desk.repo.place, event.env, desk.repo.state_dir / "share.log")
