"""Surfaces: the hooks of an agent's program. What Claude Code calls while it works: `git gate hook claude-…`.

Before a tool is used, a question becomes a gate and a call that needs approval waits. After `git gate ask` the run ends.
At a stop, last words that ask become a gate. When it is over, the conversation is saved. Whatever goes wrong before a tool
is used, the call is not made: it is denied, with the reason.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import GateError, NotARepository
from ...model.gate import SessionRef
from ...questions.calls import ASK_TOOL
from ...store import locked, private_folder, read_local_note
from ...text import neutral, shell
from ...text.digests import sha256
from . import tools
from .tools import NOTHING, HookEvent, HookReply, last_words, read_event

if TYPE_CHECKING:
    from ...context import Desk
    from ...model.gate import Gate


OURS = re.compile(r"mcp__.*git-?_?gate.*", re.IGNORECASE)
MOST_RESULT = 6000


def session_start(event: HookEvent) -> HookReply:
    """Leave the mark by which `wrap` knows that our hooks run, and say which rules count where nobody else does."""
    from ...acts.needs import note_session

    try:
        note_session(event.desk(), event.session)
    except NotARepository:
        return NOTHING
    return NOTHING if told_otherwise(event) else judge_once(event, tell_rules)


def tell_rules(event: HookEvent) -> HookReply:
    """Say which rules on calls count here, from which commit, and which do not yet, to whoever started the program."""
    from ...policy.rulebook import load_standing, standing_words

    desk = event.desk()
    words = [
        f"git gate: {neutral(each)}"
        for each in standing_words(load_standing(desk, *tools.family(event, desk)))
    ]
    return HookReply(json.dumps({"systemMessage": "\n".join(words)})) if words else NOTHING


def post_tool_use(event: HookEvent) -> HookReply:
    """Tell what an approved call gave, and end the run where the call has asked."""
    if not (event.env.get("GITGATE_GATE") or may_have_asked(event)):
        return NOTHING
    return judge_once(event, after_call)


def after_call(event: HookEvent) -> HookReply:
    if event.env.get("GITGATE_GATE") and event.tool != ASK_TOOL:
        told = made(event)
        if told.out:
            return told
    if not may_have_asked(event):
        return NOTHING
    from ...acts.needs import waiting

    try:
        desk = event.desk()
    except NotARepository:
        return NOTHING
    found = [gate for gate in waiting(desk, event.session) if has_asked(event, gate)]
    if not found:
        return NOTHING
    words = f"gate {found[0].id} waits for an answer; the run goes on with it"
    return HookReply(json.dumps({"continue": False, "stopReason": words}))


def may_have_asked(event: HookEvent) -> bool:
    """Return whether the call can have opened a gate, judged by the call alone, before anything is read."""
    if event.subagent:
        return False
    if event.tool in ("Bash", "PowerShell"):
        return "gate" in str(event.given.get("command", "")) or "ask" in str(event.given.get("command", ""))
    return OURS.fullmatch(event.tool) is not None


def has_asked(event: HookEvent, gate: Gate) -> bool:
    """Return whether this call opened that gate: its result names the gate, or its command is one that asks."""
    return shell.asks(str(event.given.get("command", ""))) or gate.id in json.dumps(event.response)


def made(event: HookEvent) -> HookReply:
    """Return the result of an approved call, in words for the agent.

    In a turn with several calls the program may show the agent no result of the call.
    """
    from ...acts.needs import gate_of_call

    gate = gate_of_call(event.desk(), event.call)
    if gate is None:
        return NOTHING
    text = (
        event.response if isinstance(event.response, str) else json.dumps(event.response, ensure_ascii=False)
    )
    clipped = (
        text
        if len(text) <= MOST_RESULT
        else f"{text[:MOST_RESULT]} … ({len(text) - MOST_RESULT} more characters)"
    )
    words = f"The call that gate {gate.id} approved was made once, just now. Its result: {clipped}"
    said = {"hookEventName": "PostToolUse", "additionalContext": words}
    return HookReply(json.dumps({"hookSpecificOutput": said}))


def run_stopped(event: HookEvent) -> HookReply:
    """Open a gate for a run that ends with `needs_input` or `NEEDS_HUMAN`, in its words or by a signal file."""
    if event.attended or event.subagent or not event.session:
        return NOTHING
    from ...acts import needs
    from ...questions.signals import find_need

    need = find_need(event.said or last_words(event))
    try:
        desk = event.desk()
    except NotARepository:
        return (
            cannot(event, "this is no git repository, so that no question can be kept") if need else NOTHING
        )
    try:
        since = needs.started(event.transcript)
        gates = needs.ask_for(desk, need, event.session, needs.signals(desk, since=since))
    except GateError as failed:
        return cannot(event, f"{failed.message} {failed.hint}")
    if not gates:
        return NOTHING
    named = " and ".join(gate.id for gate in gates)
    words = f"gates {named} wait for answers" if len(gates) > 1 else f"gate {named} waits for an answer"
    return HookReply(json.dumps({"systemMessage": f"git gate: {words}"}))


def cannot(event: HookEvent, reason: str) -> HookReply:
    """Tell the agent once that its question was not heard; a second time it may end."""
    words = f"Your question could not be asked: {reason}. Say so in your result."
    return NOTHING if event.again else HookReply(json.dumps({"decision": "block", "reason": words}))


def session_end(event: HookEvent) -> HookReply:
    """Save the conversation for the gates at which it waits: only now are its last words in it."""
    if not event.session:
        return NOTHING
    from ...acts.needs import save_sessions

    try:
        desk = event.desk()
    except NotARepository:
        return NOTHING
    saved = save_sessions(desk, SessionRef("claude", event.session, str(event.cwd), event.transcript))
    if saved and desk.settings.text("session") == "push":
        share(event, saved)
    return NOTHING if event.attended or told_otherwise(event) else still_waiting(event, desk)


def told_otherwise(event: HookEvent) -> bool:
    """Return whether another process says what waits: `wrap`, or whoever resumed the agent."""
    return bool(event.env.get("GITGATE_WRAPPED") or event.env.get("GITGATE_GATE"))


def still_waiting(event: HookEvent, desk: Desk) -> HookReply:
    """Return the words that say what the run asked, and how to answer it.

    The program itself ends with an empty line. At its end it shows words only of a hook that fails, and begins them
    with its own word for a failure.
    """
    from ...acts.needs import waiting
    from ...render.letter import waiting_words

    found = waiting(desk, event.session)
    words = ["nothing failed: the run ended at its question.", *(waiting_words(gate) for gate in found)]
    return HookReply(told="\n".join(words)) if found else NOTHING


def share(event: HookEvent, gates: list[str]) -> None:
    """Push in the background: the program waits a second and a half for this hook, and a network may take longer."""
    from ...store.git.programs import detach, our_command

    desk = event.desk()
    detach(
        our_command("hook", "claude-share-session", *gates),
        desk.repo.place,
        event.env,
        desk.repo.state_dir / "share.log",
    )


# The same hook may be a project's, a plugin's and `wrap`'s: the program starts each of them, for the same event, side by side. Who
# comes first judges it, and the others, who wait for that, say the same.


SLOTS = 2  # digits of an event's digest: so many files at most, whatever is judged


def judge_once(event: HookEvent, judge: Callable[[HookEvent], HookReply]) -> HookReply:
    """Judge an event once, however many of our hooks the agent's program starts for it.

    An event is what was told to the letter, by one process of the program: started again it may tell the same, which is another
    event. Where that process is not seen, each hook judges by itself.
    """
    run = program_above(event)
    key = sha256(f"{run}\n{event.digest}".encode()).hexdigest()
    place = place_of_judged(event, key[:SLOTS]) if run else None
    if place is None:
        return judge(event)
    with locked(place, wait=True):
        known = read_judged(place, key)
        if known is not None:
            return known.repeated()
        reply = judge(event)
        note = json.dumps({"key": key, "out": reply.out, "told": reply.told})
        with contextlib.suppress(OSError):  # the disk is full: each hook judges by itself
            place.write_text(note, encoding="utf-8")
        return reply


def place_of_judged(event: HookEvent, name: str) -> Path | None:
    """Return the file that says how an event was judged; None where nothing can be kept: no repository, or one that is read-only."""
    try:
        place = private_folder(event.desk().repo.state_dir / "judged") / name
        place.touch(mode=0o600)
    except (NotARepository, OSError):
        return None
    return place


def program_above(event: HookEvent) -> str:
    """Return the process of the agent's program that told of the event, under a name that no other process gets.

    Empty where that process is not seen.
    """
    from ...context import above
    from ...context.machine import boot_id, started

    pid = next((one.pid for one in above() if one.agent == "claude"), None)
    return f"{event.session} {pid} {started(pid)} {boot_id()}" if pid is not None else ""


def read_judged(place: Path, key: str) -> HookReply | None:
    try:
        said = read_local_note(place, out=str, told=str, key=str)
        return HookReply(said["out"], said["told"]) if said["key"] == key else None
    except (OSError, ValueError):
        return None


def once(judge: Callable[[HookEvent], HookReply]) -> Callable[[HookEvent], HookReply]:
    return lambda event: judge_once(event, judge)


HOOKS: dict[str, Callable[[HookEvent], HookReply]] = {
    "claude-session-start": session_start,
    "claude-pre-tool-use": once(tools.pre_tool_use),
    "claude-post-tool-use": post_tool_use,
    "claude-stop": once(run_stopped),
    "claude-session-end": once(session_end),
}
BEFORE = "claude-pre-tool-use"


def run_hook(name: str, raw: bytes, env: Mapping[str, str], cwd: Path) -> HookReply:
    """Return the reply of the hook of that name. Never raise: an exception would let the call pass."""
    try:
        event = read_event(raw, env, cwd)
        try:
            return HOOKS[name](event)
        finally:
            event.close()
    except GateError as failed:
        words = f"{failed.message}{f' ({failed.hint})' if failed.hint else ''}"
    except Exception as bug:  # noqa: BLE001 - the program goes on as if the hook had said yes
        words = f"a bug in git gate: {type(bug).__name__}: {bug}"
    if name == BEFORE:
        return tools.deny(f"git gate cannot tell whether this call may be made, so it is not: {words}")
    return HookReply(json.dumps({"systemMessage": f"git gate: {words}"}))
