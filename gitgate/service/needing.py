"""Service: an agent ended by saying that it needs a person. What it said becomes a gate, once; its work stays as it is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from ..core import times
from ..core.calls import Call, config_of, digest_of_call, questions_of
from ..core.drafts import Draft
from ..core.model import Gate
from ..core.needs import Need, draft_of, read_need
from ..core.states import AWAITING
from ..errors import GateError
from .asking import Wishes, ask
from .calling import context_of, gate_of_key, key_of_call, named_gate, turn, waiting
from .desk import Desk

MOST_SIGNALS, MOST_BYTES, MOST_ROUNDS = 50, 1 << 20, 50
SAID = "said"


@dataclass(frozen=True)
class Signal:
    """A signal file that says that a person is needed. `agent` is its name without the extension."""

    agent: str
    path: str
    need: Need


def signals(desk: Desk, *, since: float = 0.0, before: Mapping[str, float] | None = None) -> list[Signal]:
    """The signals that were written since then; with `before`, those that differ from what was there."""
    folder = desk.repo.place / desk.settings.text("signals")
    found = []
    for place in sorted(folder.glob("*.json"))[:MOST_SIGNALS]:
        with suppress(OSError, ValueError, RecursionError):
            at = place.stat().st_mtime
            if at < since or (before or {}).get(place.name) == at or place.stat().st_size > MOST_BYTES:
                continue
            value = json.loads(place.read_text(encoding="utf-8-sig"))
            need = read_need(value) if isinstance(value, dict) else None
            if need is not None:
                found.append(Signal(place.stem, str(place.relative_to(desk.repo.place)), need))
    return found


def signal_times(desk: Desk) -> dict[str, float]:
    """The signal files that are there, and when each was written."""
    found = {}
    with suppress(OSError):
        for place in (desk.repo.place / desk.settings.text("signals")).glob("*.json"):
            found[place.name] = place.stat().st_mtime
    return found


def started(transcript: str) -> float:
    """When a conversation began, as its first dated record says; a signal from before is not its own."""
    with suppress(OSError, ValueError, GateError), Path(transcript).open("rb") as source:
        for _ in range(50):
            record = json.loads(source.readline())
            if isinstance(record, dict) and isinstance(record.get("timestamp"), str):
                return times.parse_time(record["timestamp"])
    return 0.0


def ask_for(
    desk: Desk,
    need: Need | None,
    session: str,
    signalled: Sequence[Signal],
    agent: str | None = None,
    otherwise: str | None = None,
) -> Gate | None:
    """The gate for what an agent needs: one that it has opened itself already, or a new one; None when it needs nothing.

    It is called `agent`, else as its signal says, else `otherwise`.
    """
    with turn(desk, session or "none"):
        own = waiting(desk, session) if session else []
        if own:
            return own[-1]
        if need is not None:
            return open_gate(desk, need, session, SAID, agent or otherwise)
        signal = next((each for each in signalled if not is_old(desk, each)), None)
        return open_gate(desk, signal.need, session, signal.path, agent or signal.agent) if signal else None


def is_old(desk: Desk, signal: Signal) -> bool:
    """Whether a signal is still the one that was answered: the agent went on and did not take it away."""
    gate = named_gate(desk)
    said = gate.opened.config.get("need") if gate is not None else None
    if isinstance(said, Mapping) and said.get("digest") == signal.need.digest:
        return True
    return gate_of_key(desk, key_of(signal.need, "", 0)) is not None


def open_gate(desk: Desk, need: Need, session: str, source: str, agent: str | None) -> Gate:
    draft = draft_of(need)
    draft = replace(
        draft,
        context=context_of(desk.settings.env, draft.context, 60_000),
        agent=agent,
        session=session or None,
        config={"need": {"source": source, "digest": need.digest}},
    )
    # A signal is told by its content alone; words may be said again in a conversation that went on.
    who = session if source == SAID else ""
    for number in range(MOST_ROUNDS):
        key = key_of(need, who, number)
        held = gate_of_key(desk, key)
        if held is None or (held.state == AWAITING and source == SAID):
            return ask(desk, replace(draft, key=key), Wishes()).gate
    return ask(desk, draft, Wishes()).gate


def key_of(need: Need, session: str, number: int) -> str:
    """The session's id stays out of the record, and the key is in it."""
    return f"need:{sha256(f'{session}:{need.digest}:{number}'.encode('utf-8', 'replace')).hexdigest()[:24]}"


def ask_for_call(desk: Desk, call: Mapping[str, object], session: str) -> Gate | None:
    """The gate for a call that was deferred: the one that our hook opened, or, where another hook deferred it, a new one."""
    name, name_of_call, given = call.get("name"), call.get("id"), call.get("input")
    if not isinstance(name, str) or not isinstance(name_of_call, str) or not isinstance(given, dict):
        return None
    gate = gate_of_key(desk, key_of_call(name_of_call))
    if gate is not None:
        return gate
    draft = draft_of_call(desk, name, given)
    said = config_of(Call(name, name_of_call, digest_of_call(name, given)))
    return ask(
        desk, replace(draft, key=key_of_call(name_of_call), session=session or None, config=said), Wishes()
    ).gate


def draft_of_call(desk: Desk, tool: str, given: Mapping[str, object]) -> Draft:
    from ..core import calls

    if tool == calls.ASK_TOOL:
        return Draft(questions_of(given))
    exact = context_of(desk.settings.env, calls.exact(tool, given), 60_000)
    question = calls.approval(tool, {"command": exact})
    return Draft((question,), title=f"Allow {tool}", context=calls.indented(exact))
