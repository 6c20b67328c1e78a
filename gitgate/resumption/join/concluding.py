"""Resumption: what a conversation came to, found out when the person has left it. It is a proposal: to decide is the person's part."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...acts import channel, sessions
from ...agents.claude.transcript import TRANSCRIPT
from ...context import session_proof
from ...context.desk import Desk
from ...context.recording import reload
from ...document.field import field_of
from ...errors import GateError
from ...gates import agency
from ...model.conversation import LEFT, PROPOSED, Conversation, kept
from ...questions import proposals
from ...questions.needs import read_need
from ...store.git.refs import SESSIONS
from ...text.secrets import redact, secret_values
from .joining import JoinedConversation
from .meeting import digest, folder_of, signal_files, talk_of

if TYPE_CHECKING:
    from ...questions.proposals import Understood, Utterance


# An object in the agent's last message may repeat an older one, or be an example: only a person takes it for the answer.
UNMISTAKEN = frozenset(("command", "mcp", "file"))


@dataclass(frozen=True)
class HeardProposal:
    """What the session proposes, if anything, beside what the person said last, and whether the two may differ."""

    said: Understood | None = None
    last: str = ""
    differs: bool = False

    @property
    def plain(self) -> bool:
        """Whether it was said by a tool, a command or a file, and the person said nothing after that."""
        said = self.said
        return said is not None and said.value is not None and said.source in UNMISTAKEN and not self.differs


def understand(desk: Desk, talk: JoinedConversation, since: float) -> HeardProposal:
    """What the session said was decided, else the object that ends its last message.

    BadAnswer where it left an outcome that does not answer the question.
    """
    from ...questions.proposals import ended, last_word, may_differ

    spoken = utterances_of(desk, talk)
    word = last_word(spoken)
    last = word.text if word is not None else ""
    if talk.question is None:
        return HeardProposal(last=last)
    said = channel.heard(folder_of(desk, talk.gate) / channel.SAID, talk.question)
    said = said or signal_in(desk, talk, since) or ended(spoken, talk.question)
    return HeardProposal(said, last, said is not None and may_differ(said, spoken))


def utterances_of(desk: Desk, talk: JoinedConversation) -> list[Utterance]:
    """What was said while the person was there."""
    with contextlib.suppress(GateError, OSError):
        saved = agency.adapter(talk.saved.agent).collect(talk.ref, desk.settings.env)
        return proposals.spoken(saved.files.get(TRANSCRIPT, b""), talk.before)
    return []


def signal_in(desk: Desk, talk: JoinedConversation, since: float) -> Understood | None:
    """The newest signal file that was written meanwhile, unless it says that a person is still needed.

    One that says what some file said when the session was opened is an old word, whatever its date and its name.
    """
    found: list[tuple[float, Mapping[str, object]]] = []
    for place in signal_files(desk, talk.place.directory):
        with contextlib.suppress(OSError, ValueError, RecursionError):
            at, data = place.stat().st_mtime, place.read_bytes()
            if at < since or digest(data) in talk.signals:
                continue
            value = json.loads(data.decode("utf-8-sig"))
            if isinstance(value, dict) and "status" in value and read_need(value) is None:
                found.append((at, value))
    if not found or talk.question is None:
        return None
    with contextlib.suppress(GateError):
        at, value = max(found, key=lambda each: each[0])
        return replace(channel.meaning(value, talk.question, "file"), at=at)
    return None


def held(
    desk: Desk,
    talk: JoinedConversation,
    outcome: str,
    seconds: int,
    said: Understood | None = None,
    *,
    source: str = "",
    reason: str = "",
    confirmed: bool = True,
) -> Conversation:
    """How the conversation went, for the record; its words only where the asker wanted them."""
    words = said.__dict__ if said is not None else {}
    return Conversation(
        outcome=outcome,
        seconds=max(0, seconds),
        status=str(words.get("status", "")),
        summary=str(words.get("summary", "")),
        reason=reason or str(words.get("reason", "")),
        message=str(words.get("message", "")),
        source=source or str(words.get("source", "")),
        confirmed=confirmed,
        transcript=transcript(desk, talk) if talk_of(talk.gate).transcript else "",
        content=sessions.content_here(desk, talk.gate) if talk.own else "",
    )


def proposed(desk: Desk, talk: JoinedConversation, seconds: int, said: Understood) -> Conversation:
    """What is kept of an outcome that nobody has confirmed: all of it, and whose it is, but not what was said."""
    whole = held(desk, talk, PROPOSED, seconds, said, confirmed=False)
    value = field_of(said.value, "the outcome").plain()
    return replace(whole, transcript="", agent=talk.saved.agent, value=value)


def left(desk: Desk, talk: JoinedConversation, seconds: int) -> Conversation | None:
    """A conversation that nobody ended in an answer, where others would not take it up without a word of whoever held it."""
    oid = desk.refs.get(SESSIONS + talk.gate.id) if talk.own else None
    if oid is None or not session_proof.against_session(desk, reload(desk, talk.gate.id), oid):
        return None
    return replace(held(desk, talk, LEFT, seconds), transcript="")


def transcript(desk: Desk, talk: JoinedConversation) -> str:
    """Without secrets, and no longer than a record may hold; the end of it is what counts."""
    text = proposals.transcript_text(utterances_of(desk, talk))
    return kept(redact(text, secret_values(desk.settings.env)))
