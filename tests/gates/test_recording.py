"""Recording: one more event on exactly the gate that was read; whoever loses a race looks again, and nothing is lost."""

from __future__ import annotations

from collections import Counter

import pytest

from gitgate.context import Desk
from gitgate.errors import IllegalEvent, LostRace, RefLocked, UnknownGate
from gitgate.gates.recording import MOST_LOCKED, append, record, reload
from gitgate.model.gate import Event, Gate
from gitgate.store.git.refs import OPEN, Refs
from gitgate.store.records import NOBODY
from gitgate.store.remote import RefMove
from support.deciding import gate_of, say
from support.histories import ADA, remark
from support.racing import race
from support.resuming import Seat


def comment(text: str) -> tuple[str, Event]:
    return "commented", remark(text=text)


def test_an_event_moves_the_ref(alone: Seat) -> None:
    """To the gate that is given back; in the name of who did it, or of nobody."""
    gate = gate_of(alone)
    after = record(alone.desk, gate, lambda _now: comment("one"), who=ADA)
    assert alone.now(gate) == after
    later = record(alone.desk, after, lambda _now: comment("two"), who="")
    authors = [alone.clone.git("log", "-1", "--format=%an <%ae>", oid) for oid in (after.tip, later.tip)]
    assert authors == [ADA, NOBODY]


def test_a_lost_race_is_tried_again_on_what_is_there_now(alone: Seat) -> None:
    """What is recorded is decided anew, of the gate as it is."""
    gate = gate_of(alone)
    desk = alone.desk
    seen: list[str] = []

    def decide(current: Gate) -> tuple[str, Event]:
        seen.append(current.tip)
        if len(seen) == 1:
            record(alone.desk, current, lambda _now: comment("theirs"), who=ADA)
        return comment("ours")

    after = record(desk, gate, decide, who=ADA)
    assert len(seen) == 2
    assert [entry.event for entry in after.history[1:]] == [remark(text="theirs"), remark(text="ours")]


def test_what_cannot_be_decided_any_more_is_not_recorded(alone: Seat) -> None:
    """Somebody was first."""
    gate = gate_of(alone)

    def decide(current: Gate) -> tuple[str, Event]:
        if current.state == "awaiting":
            say(alone, current)
        return "stopped", remark()

    with pytest.raises(IllegalEvent):
        record(alone.desk, gate, decide, who=ADA)
    assert alone.now(gate).state == "answered"


def test_other_refs_move_along_or_nothing_does(alone: Seat) -> None:
    """One transaction; one that is always lost ends with an error that says so."""
    gate = gate_of(alone)
    head = alone.clone.git("rev-parse", "HEAD")
    lease = f"refs/hitl/leases/{gate.id}"
    after = record(alone.desk, gate, lambda _now: comment("x"), who=ADA, also=[RefMove(lease, head, None)])
    assert alone.clone.refs("refs/hitl/leases") == {lease: head}
    with pytest.raises(LostRace, match="keeps being changed"):
        record(alone.desk, after, lambda _now: comment("y"), who=ADA, also=[RefMove(lease, head, None)])
    assert alone.now(gate) == after


@pytest.mark.slow
def test_a_lock_that_stays_is_said(alone: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """A git that was killed leaves one: after a few tries, in seconds, with what frees it; nobody is said to have been first."""
    gate = gate_of(alone)
    lock = alone.clone.path / ".git" / f"{OPEN}{gate.id}.lock"
    lock.touch()
    tried: list[str] = []

    def reloaded(desk: Desk, name: str) -> Gate:
        tried.append(name)
        return reload(desk, name)

    monkeypatch.setattr("gitgate.gates.recording.reload", reloaded)
    with pytest.raises(RefLocked, match="is locked by another git") as said:
        record(alone.desk, gate, lambda _now: comment("x"), who=ADA)
    assert "git gate worker --once" in said.value.hint
    assert len(tried) == MOST_LOCKED
    lock.unlink()
    assert record(alone.desk, gate, lambda _now: comment("x"), who=ADA).history[-1].event == remark(text="x")


def test_one_try_is_one_try(alone: Seat) -> None:
    """`append` says that the gate moved, and leaves it."""
    gate = gate_of(alone)
    append(alone.desk, gate, *comment("one"))
    with pytest.raises(LostRace):
        append(alone.desk, gate, *comment("two"))


def test_a_gate_that_is_gone(alone: Seat) -> None:
    """Is not there to be read again."""
    gate = gate_of(alone)
    alone.clone.git("update-ref", "-d", OPEN + gate.id)
    with pytest.raises(UnknownGate):
        reload(alone.desk, gate.id)


def test_another_failure_is_no_lost_race(alone: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not tried again."""
    gate = gate_of(alone)
    tries: list[object] = []

    def fail(_self: Refs, moves: object) -> None:
        tries.append(moves)
        raise OSError("disk full")

    monkeypatch.setattr(Refs, "update", fail)
    with pytest.raises(OSError, match="disk full"):
        record(alone.desk, gate, lambda _now: comment("x"), who=ADA)
    assert len(tries) == 1


COMMENTS = """
from gitgate.gates.recording import reload
from gitgate.acts.answering import comment
for number in range(5):
    comment(desk, reload(desk, sys.argv[3]), f"{who} {number}")
"""


@pytest.mark.slow
def test_many_who_speak_at_once_are_all_heard(alone: Seat) -> None:
    """Eight processes, five remarks each, one gate: forty remarks."""
    gate = gate_of(alone)
    race(alone.clone.path, COMMENTS, 8, gate.id)
    said = Counter(getattr(entry.event, "text", "") for entry in alone.now(gate).history[1:])
    assert said == Counter(f"{who} {number}" for who in range(8) for number in range(5))


ANSWERS = """
from gitgate.questions import Given
from gitgate.acts.answering import Manner, respond
from gitgate.gates.recording import reload
try:
    respond(desk, reload(desk, sys.argv[3]), Given(text="Postgres"), Manner(who=f"P{who} <p{who}@example.org>"))
    print("won")
except GateError as lost:
    print(lost.kind)
"""


@pytest.mark.slow
def test_of_many_answers_one_counts_and_the_others_are_told(alone: Seat) -> None:
    """Nobody believes to have decided who has not."""
    gate = gate_of(alone)
    said = race(alone.clone.path, ANSWERS, 8, gate.id)
    assert Counter(line for lines in said for line in lines) == {"won": 1, "conflict": 7}
    after = alone.now(gate)
    assert [entry.name for entry in after.history] == ["opened", "answered"]
    assert after.answer is not None
    winner = said.index(["won"])
    assert after.answer.answer.by == f"P{winner} <p{winner}@example.org>"


ASKS = """
from gitgate.questions.drafts import Draft, question
from gitgate.acts.asking import AskWishes, ask
for number in range(int(sys.argv[3])):
    print(ask(desk, Draft((question(f"{who} {number}"),), agent=f"agent-{who}"), AskWishes(work=who % 2 == 0)).gate.id)
"""


def asks(seat: Seat, processes: int, each: int) -> None:
    seat.clone.write("README", "changed\n")
    said = [gate for lines in race(seat.clone.path, ASKS, processes, str(each)) for gate in lines]
    assert len(set(said)) == len(said) == processes * each
    assert {ref.removeprefix(OPEN) for ref in seat.clone.refs("refs/hitl/open")} == set(said)
    desk = seat.desk
    desk.work_in_bulk()
    tips = desk.refs.under(OPEN)
    prompts = {
        desk.records.load(ref.removeprefix(OPEN), tip).opened.questions[0].prompt for ref, tip in tips.items()
    }
    assert prompts == {f"{who} {number}" for who in range(processes) for number in range(each)}


@pytest.mark.slow
def test_many_who_ask_at_once_all_get_their_gate(alone: Seat) -> None:
    """Four processes, five gates each, in one working tree: twenty gates."""
    asks(alone, 4, 5)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_eight_processes_keep_four_hundred_of_four_hundred_gates(alone: Seat) -> None:
    """Fifty each, into one clone."""
    asks(alone, 8, 50)
