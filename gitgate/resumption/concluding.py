"""Resumption: what a conversation came to, read when the person has left it. Read, not decided: that is the person's part."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..agents.claude_files import TRANSCRIPT
from ..core import dialogue
from ..core.needs import read_need
from ..core.secrets import redact, secret_values
from ..core.talks import Held, kept
from ..errors import GateError
from ..service import agency, channel
from ..service.desk import Desk
from ..service.needing import MOST_BYTES, MOST_SIGNALS
from .joining import Conversation
from .meeting import folder_of, talk_of

if TYPE_CHECKING:
    from ..core.outcomes import Spoken, Understood


def understand(desk: Desk, talk: Conversation, since: float) -> Understood | None:
    """What the session said was decided, else what its last words say; None where neither is plain.

    BadAnswer where it left an outcome that does not answer the question.
    """
    if talk.question is None:
        return None
    said = channel.heard(folder_of(desk, talk.gate) / channel.SAID, talk.question)
    said = said or signal_in(desk, talk, since)
    if said is not None:
        return said
    from ..core.outcomes import read

    said = read(conversation(desk, talk), talk.question)
    # The last words of an agent that asked a plain question are no answer to it.
    loose = said is not None and said.source == "words" and talk.question.kind == "text"
    return None if loose and talk.question.type != "session" else said


def conversation(desk: Desk, talk: Conversation) -> list[Spoken]:
    """What was said while the person was there."""
    with contextlib.suppress(GateError, OSError):
        saved = agency.adapter(talk.saved.agent).collect(talk.ref, desk.settings.env)
        return dialogue.spoken(saved.files.get(TRANSCRIPT, b""), talk.before)
    return []


def signal_in(desk: Desk, talk: Conversation, since: float) -> Understood | None:
    """The newest signal file that was written meanwhile, unless it says that a person is still needed."""
    folder = talk.place.directory / desk.settings.text("signals")
    found: list[tuple[float, Mapping[str, object]]] = []
    for place in sorted(folder.glob("*.json"))[:MOST_SIGNALS]:
        with contextlib.suppress(OSError, ValueError, RecursionError):
            at = place.stat().st_mtime
            if at < since or place.is_symlink() or place.stat().st_size > MOST_BYTES:
                continue
            value = json.loads(place.read_text(encoding="utf-8-sig"))
            if isinstance(value, dict) and "status" in value and read_need(value) is None:
                found.append((at, value))
    if not found or talk.question is None:
        return None
    with contextlib.suppress(GateError):
        return channel.meaning(max(found, key=lambda each: each[0])[1], talk.question, "file")
    return None


def held(
    desk: Desk,
    talk: Conversation,
    outcome: str,
    seconds: int,
    said: Understood | None = None,
    *,
    source: str = "",
    reason: str = "",
    confirmed: bool = True,
) -> Held:
    """How the conversation went, for the record; its words only where the asker wanted them."""
    words = said.__dict__ if said is not None else {}
    return Held(
        outcome=outcome,
        seconds=max(0, seconds),
        status=str(words.get("status", "")),
        summary=str(words.get("summary", "")),
        reason=reason or str(words.get("reason", "")),
        message=str(words.get("message", "")),
        source=source or str(words.get("source", "")),
        confirmed=confirmed,
        transcript=transcript(desk, talk) if talk_of(talk.gate).transcript else "",
    )


def transcript(desk: Desk, talk: Conversation) -> str:
    """Without secrets, and no longer than a record may hold; the end of it is what counts."""
    text = dialogue.told(conversation(desk, talk))
    return kept(redact(text, secret_values(desk.settings.env)))
