"""Surfaces: what a hook is told, read without trusting it, and what it answers."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import NotARepository, Usage

if TYPE_CHECKING:
    from ...context.desk import Desk

# What Claude Code calls itself where a person sits before it, who can be asked at once.
ATTENDED = frozenset(("cli", "claude-vscode", "claude-desktop", "claude-jetbrains"))

TRANSCRIPT_TIMEOUT = 0.4


@dataclass(frozen=True)
class HookReply:
    """What a hook prints. Nothing at all means that it has nothing to say. What is `told` is for whoever started the run."""

    out: str = ""
    told: str = ""

    @property
    def value(self) -> dict[str, object]:
        return dict(json.loads(self.out)) if self.out else {}


NOTHING = HookReply()


@dataclass(frozen=True)
class HookEvent:
    """One event of an agent's program. What it did not say, or said in another shape, is empty."""

    session: str
    cwd: Path
    tool: str = ""
    given: Mapping[str, object] = field(default_factory=dict)
    call: str = ""
    subagent: str = ""
    transcript: str = ""
    said: str = ""
    again: bool = False
    response: object = None
    env: Mapping[str, str] = field(default_factory=dict)
    desks: list[Desk] = field(default_factory=list, repr=False, compare=False)

    @property
    def attended(self) -> bool:
        """Whether a person sits before the program, so that it asks them itself."""
        alone = self.env.get("CLAUDE_CODE_SESSION_ATTENDED") == "0" or bool(self.env.get("GITGATE_GATE"))
        return not alone and self.env.get("CLAUDE_CODE_ENTRYPOINT", "") in ATTENDED

    def desk(self) -> Desk:
        """The repository that the agent works in: where it stands, unless it wandered out of the one it was started in."""
        home = self.env.get("CLAUDE_PROJECT_DIR", "")
        try:
            here = self.open(self.cwd)
        except NotARepository:
            if not home or not Path(home).is_dir():
                raise
            return self.open(Path(home))
        if not home or not Path(home).is_dir() or Path(home) in (here.repo.top, self.cwd):
            return here
        try:
            started = self.open(Path(home))
        except NotARepository:
            return here
        return here if started.repo.common_dir == here.repo.common_dir else started

    def open(self, place: Path) -> Desk:
        """A desk there; `close` closes it."""
        from ...context.desk import open_desk

        env = {name: value for name, value in self.env.items() if name not in ("GIT_DIR", "GIT_WORK_TREE")}
        self.desks.append(open_desk(place, env))
        return self.desks[-1]

    def close(self) -> None:
        while self.desks:
            self.desks.pop().close()


def read_event(raw: bytes, env: Mapping[str, str], cwd: Path) -> HookEvent:
    """What came on standard input. A call that cannot be read is an error: nobody could say whether it may be made."""
    try:
        value = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as wrong:
        raise Usage(f"the hook was given what is not JSON: {wrong}") from wrong
    if not isinstance(value, dict):
        raise Usage("the hook was given something else than an object")

    def words(name: str) -> str:
        found = value.get(name)
        return found if isinstance(found, str) else ""

    given = value.get("tool_input")
    said = words("cwd")
    return HookEvent(
        session=words("session_id") or env.get("CLAUDE_CODE_SESSION_ID", ""),
        cwd=Path(said) if said and os.path.isdir(said) else cwd,  # noqa: PTH112 - Path's raises for a name too long
        tool=words("tool_name"),
        given=given if isinstance(given, dict) else {},
        call=words("tool_use_id"),
        subagent=words("agent_id"),
        transcript=words("transcript_path"),
        said=words("last_assistant_message"),
        again=value.get("stop_hook_active") is True,
        response=value.get("tool_response"),
        env=env,
    )


def last_words(event: HookEvent, most: int = 400_000) -> str:
    """What the agent said last, by its transcript; empty where that cannot be read.

    A call is written there after the words before it, and at times a moment after its hook was started.
    """
    for line in reversed(settled_tail(event, most).splitlines()):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        text = spoken(record)
        if text is not None:
            return text
    return ""


def settled_tail(event: HookEvent, most: int) -> bytes:
    """The end of the transcript, once it has the call that the event is about."""
    until = time.monotonic() + TRANSCRIPT_TIMEOUT
    while True:
        tail = tail_of(event.transcript, most)
        if not tail or not event.call or event.call.encode() in tail or time.monotonic() > until:
            return tail
        time.sleep(0.02)


def made_together(event: HookEvent, call: str, most: int = 400_000) -> bool:
    """Whether another call is of the same message of the agent as the event's, by the transcript."""
    of_message: dict[str, object] = {}
    for line in settled_tail(event, most).splitlines():
        if call.encode() not in line and event.call.encode() not in line:
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        said = record.get("message") if isinstance(record, dict) else None
        message = said if isinstance(said, dict) else {}
        content = message.get("content")
        for block in content if isinstance(content, list) else []:
            if isinstance(block, dict) and block.get("type") == "tool_use":
                of_message[str(block.get("id"))] = message.get("id")
    return event.call in of_message and of_message[event.call] == of_message.get(call)


def tail_of(transcript: str, most: int) -> bytes:
    try:
        with Path(transcript).open("rb") as source:
            source.seek(max(0, source.seek(0, 2) - most))
            return source.read(most)
    except (OSError, ValueError):
        return b""


def spoken(record: object) -> str | None:
    """The text of an assistant's record; None for a record of another kind, or one without words. A person's ends the search."""
    if not isinstance(record, dict) or record.get("isSidechain") is True:
        return None
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if record.get("type") == "user":
        return ""
    if record.get("type") != "assistant" or not isinstance(content, list):
        return None
    parts = [
        block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text"
    ]
    texts = [part for part in parts if isinstance(part, str) and part.strip()]
    return "\n".join(texts) if texts else None
