"""Acts: an agent ended by saying that it needs a person. What it said becomes a gate, once; its work stays as it is."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ..context.desk import Desk
from ..errors import GateError, NotAllowed, Usage
from ..model.gate import Gate
from ..model.states import AWAITING
from ..questions.calls import Call, config_of, digest_of_call, questions_of
from ..questions.drafts import Draft
from ..questions.signals import Need, draft_of, plain_draft, read_need
from ..store.records.attach import read_attachment
from ..text import times
from ..text.digests import sha256
from .asking import AskWishes, ask
from .calling import context_of, gate_of_key, key_of_call, turn, waiting

MOST_FILES, MOST_SIGNALS, MOST_BYTES, MOST_ROUNDS = 1000, 50, 1 << 20, 50
SAID = "said"


@dataclass(frozen=True)
class Signal:
    """A signal file that says that a person is needed. `agent` is its name without the extension.

    `writing` tells this writing of the file from every other, also of the same words.
    """

    agent: str
    path: str
    need: Need
    writing: str


def signals(desk: Desk, *, since: float = 0.0, before: Collection[str] = ()) -> list[Signal]:
    """The signals that were written since then, and are no writing that was there before."""
    found = []
    for place in signal_files(desk.repo.place / desk.settings.text("signals")):
        with suppress(OSError, ValueError, RecursionError):
            seen = place.stat()
            if seen.st_mtime < since or seen.st_size > MOST_BYTES:
                continue
            said = place.read_bytes()
            value = json.loads(said.decode("utf-8-sig"))
            need = read_need(value) if isinstance(value, dict) else None
            writing = writing_of(place, seen, said)
            if need is not None and writing not in before:
                path = str(place.relative_to(desk.repo.place))
                found.append(Signal(place.stem, path, need, writing))
    return sorted(found[:MOST_SIGNALS], key=lambda signal: signal.path)


def signal_files(folder: Path) -> list[Path]:
    """The newest first: whatever piles up there, what was written last is seen."""
    found: list[tuple[int, Path]] = []
    with suppress(OSError):
        for place in folder.glob("*.json"):
            with suppress(OSError):
                found.append((place.stat().st_mtime_ns, place))
    return [place for _, place in sorted(found, reverse=True)[:MOST_FILES]]


def writing_of(place: Path, seen: os.stat_result, said: bytes) -> str:
    """A file that is replaced is another one, and one that is written anew is of another time."""
    parts = (os.path.realpath(place), seen.st_ino, seen.st_mtime_ns, sha256(said).hexdigest())
    return sha256(repr(parts).encode("utf-8", "replace")).hexdigest()[:24]


def writings(desk: Desk, directory: Path | None = None) -> frozenset[str]:
    """The writings that are there now, in this working tree or in another one."""
    found = set()
    for place in signal_files((directory or desk.repo.place) / desk.settings.text("signals")):
        with suppress(OSError):
            seen = place.stat()
            if seen.st_size <= MOST_BYTES:
                found.add(writing_of(place, seen, place.read_bytes()))
    return frozenset(found)


def note_writings(desk: Desk, directory: Path) -> None:
    """What lies in a working tree that an agent is about to be started in was said before: it is no request of that run."""
    here = writings(desk, directory)
    if here:
        mark_seen(desk, here)


def mark_seen(desk: Desk, found: Collection[str]) -> None:
    folder = desk.repo.state_dir / "signals"
    folder.mkdir(parents=True, exist_ok=True)
    for writing in found:
        (folder / writing).touch(mode=0o600)


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
    asked: Sequence[Gate] = (),
) -> list[Gate]:
    """The gates for what agents need at the end of a run: those that were opened meanwhile (`asked`), then new ones.

    Last words are one request, and so is each writing of a signal file. One conversation waits at one gate: the others
    have no session, and are read. They are called `agent`, else as the signal says, else `otherwise`.
    """
    with turn(desk, session or "none"):
        found = [*asked, *(waiting(desk, session)[-1:] if session and not asked else ())]
        new = [signal for signal in signalled if not is_old(desk, signal)]
        if need is not None and not found:
            found.append(open_gate(desk, need, session, SAID, agent or otherwise))
        for signal in new:
            if any(says_the_same(gate, signal.need) for gate in found):
                mark_seen(desk, [signal.writing])
                continue
            main = not found
            name = (agent if main else None) or signal.agent
            key = f"signal:{signal.writing}"
            with nullcontext() if main else no_conversation(desk):
                found.append(
                    open_gate(desk, signal.need, session if main else "", signal.path, name, key=key)
                )
        return found


def says_the_same(gate: Gate, need: Need) -> bool:
    """Whether a gate of this run asks what a signal file of it says: the agent said it twice."""
    said = gate.opened.config.get("need")
    same = isinstance(said, Mapping) and said.get("source") == SAID and said.get("digest") == need.digest
    own = not isinstance(said, Mapping) or said.get("source") == SAID
    return same or (own and need.question in (question.prompt for question in gate.opened.questions))


def is_old(desk: Desk, signal: Signal) -> bool:
    """Whether this very writing was asked before, or lay there before the agent began: it need not take its signal away."""
    seen = (desk.repo.state_dir / "signals" / signal.writing).exists()
    return seen or gate_of_key(desk, f"signal:{signal.writing}") is not None


@contextmanager
def no_conversation(desk: Desk) -> Iterator[None]:
    """While this lasts the desk is in no conversation: what is asked there is no part of the one that we run inside."""
    from ..agents import without_conversation

    settings = desk.settings
    desk.settings = replace(settings, env=without_conversation(settings.env))
    try:
        yield
    finally:
        desk.settings = settings


def open_gate(
    desk: Desk, need: Need, session: str, source: str, agent: str | None, *, key: str | None = None
) -> Gate:
    draft, enclosed = draft_of(need), dict[str, bytes]()
    for path in draft.attach:
        try:
            name, body = read_attachment(Path(path), desk.repo.place)
        except GateError as wrong:
            draft = replace(draft, context=f"{draft.context}\n\nNot attached: {wrong.message}".strip())
        else:
            enclosed[name] = body
    draft = replace(
        draft,
        context=context_of(desk.settings.env, draft.context, 60_000),
        agent=agent,
        session=session or None,
        config={"need": {"source": source, "digest": need.digest}},
        key=key,
    )
    # Words may be said again in a conversation that went on. Without one, every run is a request of its own.
    for number in range(MOST_ROUNDS if session and key is None else 0):
        words = key_of(need, session, number)
        held = gate_of_key(desk, words)
        if held is None or held.state == AWAITING:
            return ask_anyhow(desk, replace(draft, key=words), need, enclosed)
    return ask_anyhow(desk, draft, need, enclosed)


def ask_anyhow(desk: Desk, draft: Draft, need: Need, enclosed: Mapping[str, bytes]) -> Gate:
    """Ask on the terms that the request names; where they cannot be had here, its words alone, with the reason."""
    try:
        return ask(desk, draft, AskWishes(), enclosed).gate
    except (Usage, NotAllowed) as refused:
        plain = plain_draft(need)
        words = f"{draft.context}\n\nAsked without its terms: {refused.message}".strip()
        kept = {name: getattr(draft, name) for name in ("key", "agent", "session", "config")}
        return ask(desk, replace(plain, context=words, **kept), AskWishes()).gate


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
        desk, replace(draft, key=key_of_call(name_of_call), session=session or None, config=said), AskWishes()
    ).gate


def draft_of_call(desk: Desk, tool: str, given: Mapping[str, object]) -> Draft:
    from ..questions import calls

    if tool == calls.ASK_TOOL:
        return Draft(questions_of(given))
    exact = context_of(desk.settings.env, calls.exact(tool, given), 60_000)
    question = calls.approval(tool, {"command": exact})
    return Draft((question,), title=f"Allow {tool}", context=calls.indented(exact))
