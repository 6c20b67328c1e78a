"""Acts: where things stand and how they came about, for `status` and `log`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from .. import text
from ..claims.attending import hear_remote
from ..context import Desk, machine
from ..context.targets import remote_of, summaries
from ..errors import GateError
from ..gates import Filter, list_gates
from ..gates.recording import act
from ..model import UNSIGNED
from ..model.gate import Answer, Claim, Gate, Opened
from ..record import Summary, loose_ends, summary_of
from ..store import read_local_note
from ..store.git.refs import OPEN
from ..text import one_line
from . import find_gate, find_open

if TYPE_CHECKING:
    from ..model.gate import Conversation


Json = dict[str, object]


def gate_status(desk: Desk, given: str) -> tuple[Json, str]:
    """One gate in a few lines."""
    from .needs import end_signalled

    end_signalled(desk)
    gate = find_gate(desk, given).gate
    asked = gate.opened.asked
    waiting = text.ago(desk.clock() - text.parse_time(asked.at))
    lines = [
        f"gate {gate.id}: {gate.state}",
        f"agent: {one_line(asked.agent)}",
        f"question: {one_line(gate.opened.questions[0].prompt)}",
        f"asked: {waiting} ago",
    ]
    if gate.closing is not None and gate.closing.text:
        lines.append(f"reason: {one_line(gate.closing.text)}")
    if gate.opened.session is not None:
        session = session_here(desk, gate)
        name = " ".join(one_line(str(session[key])) for key in ("agent", "id") if session[key])
        kept = "saved" if session["saved"] else "not saved" if session["id"] else "no saved conversation"
        lines.append(f"session: {name}, {kept}")
    if gate.deadline and gate.state == "awaiting":
        lines.append(f"deadline: {gate.deadline} ({gate.opened.on_timeout})")
    if gate.outcome is not None:
        lines += [f"left: {one_line(words)}" for words in loose_ends(gate.outcome)]
    stuck = is_stalled(desk, gate)
    if stuck:
        lines.append(f"stalled: {stuck}")
    from ..render.shapes import conversation_shape, held_of

    talked = held_of(gate)
    lines += talked_lines(talked) if talked is not None else []
    lines.append(f"next: {next_command(gate)}")
    if gate.state == "failed":
        lines.append(f"or: git gate stop {gate.id[:6]} --reason WHY")
    fields: Json = {
        "id": gate.id,
        "state": gate.state,
        "stalled": bool(stuck),
        "agent": asked.agent,
        "asked_at": asked.at,
        "session": session_here(desk, gate),
        "deadline": gate.deadline,
        "type": ",".join(dict.fromkeys(question.type for question in gate.opened.questions)),
        "talked": conversation_shape(talked, transcript=False),
        "next": next_command(gate),
    }
    return fields, "\n".join(lines)


def session_here(desk: Desk, gate: Gate) -> Json:
    """The conversation that asked: of which program, its id where this machine knows it, and whether it is saved."""
    from .sessions import session_facts

    said, facts = gate.opened.session, session_facts(desk, [gate])[gate.id]
    return {
        "agent": said.agent if said is not None else None,
        "id": facts["session_id"],
        "saved": facts["saved"],
    }


def talked_lines(talked: Conversation) -> list[str]:
    from ..render.shapes import held_line

    return [
        f"talked: {held_line(talked)}",
        *([f"summary: {one_line(talked.summary)}"] if talked.summary else []),
    ]


def is_stalled(desk: Desk, gate: Gate) -> str:
    """Return the reason why a person is needed although there is an answer; empty when none is."""
    if gate.state == "resuming" or gate.actionable:
        from ..gates.leases import may_stall, stalled

        summary = summary_of(gate.id, gate.tip, desk.records.commit(gate.tip).message)
        if may_stall(summary) and stalled(desk, summary):
            asked = gate.opened.asked
            where = " in ".join(one_line(word) for word in (asked.host, asked.directory) if word)
            ran = f"; it was asked on {where}" if where else ""
            return f"nobody acts on the answer{ran}" if gate.actionable else "whoever acted on it is gone"
    return ""


def next_command(gate: Gate) -> str:
    short = gate.id[:6]
    if gate.state == "awaiting" and gate.opened.questions[0].type == "session":
        return f"git gate join {short}"
    if gate.actionable and gate.opened.session is None:
        return f"git gate wait {short}"
    return {
        "awaiting": f"git gate respond {short} ANSWER",
        "answered": f"git gate resume {short}" if gate.actionable else f"git gate check {short}",
        "failed": f"git gate resume {short}",
    }.get(gate.state, f"git gate show {short}")


def overall_status(desk: Desk) -> tuple[Json, str]:
    """All gates counted, and each agent with how it is doing."""
    from .needs import end_signalled

    end_signalled(desk)
    found = list_gates(desk, Filter(all=True))
    counts: dict[str, int] = {}
    for summary in found:
        counts[summary.state] = counts.get(summary.state, 0) + 1
    words = " · ".join(f"{number} {one_line(state)}" for state, number in counts.items()) or "no gates"
    agents = roster(desk, found)
    shapes = [{**asdict(known), "pid": known.pid or None} for known in agents]
    here = machine.attentive_ones(desk)
    listening = [listener_line(who, desk.clock()) for who in here]
    told = ("by", "pid", "host", "dialog", "since")
    listeners = [{name: getattr(who, name) for name in told} for who in here]
    lines = [words, *(agent_line(known, desk.clock()) for known in agents), *listening]
    return {"counts": counts, "agents": shapes, "listeners": listeners}, "\n".join(lines)


def listener_line(here: machine.Attentive, now: float) -> str:
    from ..render import age

    who, by = one_line(here.by.partition(" <")[0], 60), one_line(here.dialog, 40)
    if here.dialog == machine.AT_DESK:
        by = "the desk"
    return f"  {who} listens here by {by}, pid {here.pid} on {one_line(here.host, 60)}, for {age(here.since, now)}"


def agent_line(known: Known, now: float) -> str:
    from ..render import age

    gates = known.resuming or known.waiting
    which = f" ({', '.join(gate[:6] for gate in gates)})" if gates else ""
    pid = f", pid {known.pid}" if known.pid and (known.alive or known.resuming) else ""
    asked = f"{known.questions} asked, last {age(known.last_seen, now)} ago"
    return f"  {one_line(known.agent)}: {known.state}{which}{pid}, {asked}"


def events_of_one(desk: Desk, given: str) -> list[Json]:
    gate = find_gate(desk, given).gate
    return marked(desk, [gate], list(reversed(events_of(gate))))


def events_of_all(desk: Desk) -> list[Json]:
    """Every event of every gate, open and archived, newest first. A broken record is said to be broken."""
    found: list[Json] = []
    gates: list[Gate] = []
    seen: set[str] = set()  # a fold that was cut short leaves a gate both open and archived
    for summary in summaries(desk):
        seen.add(summary.id)
        try:
            gates.append(desk.records.load(summary.id, summary.tip))
            found.extend(reversed(events_of(gates[-1])))
        except GateError as broken:
            desk.progress(f"{summary.id}: {broken.message}")
    from ..gates.history import archived_gates

    for gate in archived_gates(desk):
        if gate.id not in seen:
            gates.append(gate)
            found.extend(reversed(events_of(gate)))
    found.sort(key=lambda event: str(event["at"]), reverse=True)
    return marked(desk, gates, found)


def marked(desk: Desk, gates: Sequence[Gate], events: list[Json]) -> list[Json]:
    """Add to each answer among the events the result of checking its signature, and return the events."""
    from ..policy.ruling import marks, spoken_at
    from ..render.shapes import signature_shape

    said = {e.commit: spoken_at(e) for gate in gates for e in gate.history if isinstance(e.event, Answer)}
    found = marks(desk, gates)
    for event in events:
        where = said.get(str(event["commit"]))
        if where is not None:
            event["signature"] = signature_shape(found.get(where, UNSIGNED))
    return events


def events_of(gate: Gate) -> list[Json]:
    from ..questions.answers import printed
    from ..render.shapes import event

    found = []
    for entry in gate.history:
        shape: Json = {"gate": gate.id, **event(entry)}
        given = entry.event
        if isinstance(given, Opened):
            shape["text"] = given.title
            shape["work"] = given.work.commit
        elif isinstance(given, Answer):
            shape["text"] = printed(gate.opened.questions, given)
            shape.update(verdict=given.verdict, via=given.via, seen=given.seen)
            shape.update(approved=given.approved, confirmed=given.confirmed)
        elif isinstance(given, Claim):
            shape["text"] = f"attempt {given.attempt} by {given.runner} on {given.host}"
        found.append(shape)
    return found


UNACTED = ("awaiting", "answered", "failed")


@dataclass
class Known:
    """One agent. `pid` is 0 where its process is unknown; `started_at` is when it asked for the first time."""

    agent: str
    state: str = "idle"
    pid: int = 0
    started_at: str = ""
    last_seen: str = ""
    questions: int = 0
    waiting: list[str] = field(default_factory=list)
    resuming: list[str] = field(default_factory=list)
    program: str = ""
    directory: str = ""
    alive: bool = False
    here: bool = False


def roster(desk: Desk, found: Iterable[Summary]) -> list[Known]:
    """Every agent that has a gate here, those that need something first."""
    agents: dict[str, Known] = {}
    seen = {present.gate: present for present in machine.everyone_here(desk)}
    for summary in found:
        known = agents.setdefault(summary.agent, Known(summary.agent))
        known.questions += 1
        known.started_at = min(known.started_at or summary.at, summary.at)
        known.last_seen = max(known.last_seen, summary.at)
        if summary.state == "resuming":
            known.resuming.append(summary.id)
        elif summary.state in UNACTED and not summary.closed:
            known.waiting.append(summary.id)
        if summary.id in seen:
            meet(known, seen[summary.id])
    for known in agents.values():
        known.state = state_of(known)
        if known.resuming:
            known.pid = resumed_pid(desk, known.resuming[-1]) or known.pid
    order = ("resuming", "waiting", "active", "idle", "gone")
    return sorted(agents.values(), key=lambda known: (order.index(known.state), known.agent))


def meet(known: Known, present: machine.Presence) -> None:
    """Merge this machine's note of an agent into what is known of it; a process that still runs counts most."""
    known.here = True
    alive = present.alive
    if alive or not known.alive:
        known.pid, known.program, known.directory = present.pid, present.program, present.directory
    known.alive = known.alive or alive


def state_of(known: Known) -> str:
    if known.resuming:
        return "resuming"
    if known.waiting:
        return "waiting"
    if known.alive:
        return "active"
    return "gone" if known.here else "idle"


def resumed_pid(desk: Desk, gate: str) -> int:
    """The process of an agent that was resumed on this machine, while it runs."""
    try:
        run = read_local_note(desk.repo.state_dir / "places" / f"{gate}.json", run=str)["run"]
        said = read_local_note(desk.repo.state_dir / "runs" / gate / run / "started.json", pid=int)
        return int(said["pid"])
    except (OSError, ValueError):
        return 0


POLL = 0.5
FETCH_EVERY = 10.0


def watch_events(
    desk: Desk,
    given: str | None,
    seconds: float | None = None,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Json]:
    """Each event that is new since the watch began; with one gate, its past too, until it closes."""
    only = find_open(desk, given)[0] if given else None
    known = {} if only else tips(desk, None)
    counted = {gate: len(load_gate(desk, gate, tip).history) for gate, tip in known.items()}
    start = last_fetch = monotonic()
    remote = remote_of(desk)
    from .needs import end_signalled

    while True:
        end_signalled(desk)
        for gate, tip in tips(desk, only).items():
            loaded = settled_gate(desk, gate, tip)
            if known.get(gate) != loaded.tip:
                yield from events_of(loaded)[counted.get(gate, 0) :]
                known[gate], counted[gate] = loaded.tip, len(loaded.history)
            if only is not None and loaded.closed:
                return
        if seconds is not None and monotonic() - start >= seconds:
            return
        if remote is not None and monotonic() - last_fetch >= FETCH_EVERY:
            hear_remote(desk, remote)
            last_fetch = monotonic()
        sleep(POLL)


def tips(desk: Desk, only: str | None) -> dict[str, str]:
    found = desk.refs.under(OPEN + only if only else OPEN.rstrip("/"))
    return {ref.removeprefix(OPEN): oid for ref, oid in found.items()}


def load_gate(desk: Desk, gate: str, tip: str) -> Gate:
    return desk.records.load(gate, tip)


def settled_gate(desk: Desk, gate: str, tip: str) -> Gate:
    loaded = load_gate(desk, gate, tip)
    try:
        return act(desk, loaded)
    except GateError:
        return loaded
