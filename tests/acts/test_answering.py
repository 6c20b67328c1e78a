"""Answering: it binds to what was seen, one counts, and whoever is too late or too stale is told, with nothing written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gitgate.acts import answering
from gitgate.acts.answering import Manner, respond, signal_given
from gitgate.errors import (
    BadAnswer,
    BadDocument,
    Conflict,
    Failure,
    GateError,
    IllegalEvent,
    NotAllowed,
    Stale,
)
from gitgate.exchange.syncing import sync
from gitgate.model.gate import Gate, Question
from gitgate.questions import Given
from gitgate.store.git.refs import OPEN
from gitgate.store.records import Signature
from support.deciding import DB, GO, TEXT, approve, gate_of, say
from support.histories import ADA, BOB, EVE, remark
from support.racing import race
from support.resuming import Clock, Seat
from support.testbed.repositories import Clone

ADA_HERE = "Ada Lovelace <ada@example.org>"


def answer_of(gate: Gate) -> tuple[object, str, str]:
    assert gate.answer is not None
    said = gate.answer.answer
    return said.values["answer"], said.verdict, said.by


def unchanged(seat: Seat, gate: Gate) -> None:
    assert seat.clone.git("rev-parse", OPEN + gate.id) == gate.tip


def test_an_answer_says_everything_about_itself(alone: Seat) -> None:
    """What, who, when, how, and what was seen."""
    gate = gate_of(alone)
    done = say(alone, gate, "post", note=" because \n", via="tui", evidence={"comment": 7})
    assert done.counted
    assert done.gate == alone.now(gate)
    said = done.answer
    assert (said.values, said.verdict, said.note, said.via) == (
        {"answer": "Postgres"},
        "answered",
        "because",
        "tui",
    )
    assert (said.by, said.at, said.seen, said.evidence) == (
        ADA_HERE,
        "2026-05-28T20:26:40Z",
        gate.tip,
        {"comment": 7},
    )


@pytest.mark.parametrize(("yes", "verdict"), [(True, "approved"), (False, "rejected")])
def test_an_approval(alone: Seat, yes: bool, verdict: str) -> None:
    """A refusal is an answer: the agent goes on, knowing no."""
    gate = gate_of(alone, GO, session="session-1")
    after = approve(alone, gate, yes=yes).gate
    assert answer_of(after) == (yes, verdict, ADA_HERE)
    assert after.actionable


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (Given(text="MySQL"), BadAnswer),
        (Given(text=" "), BadAnswer),
        (Given(), BadAnswer),
        (Given(approve=True), BadAnswer),
        (Given(other="\0"), BadDocument),
        (Given(other="x" * 2_000_000), BadDocument),
    ],
)
def test_an_answer_that_does_not_fit_writes_nothing(
    alone: Seat, given: Given, error: type[GateError]
) -> None:
    """Usage, code 2."""
    gate = gate_of(alone)
    with pytest.raises(error) as refused:
        respond(alone.desk, gate, given)
    assert refused.value.kind == "usage"
    unchanged(alone, gate)


def test_a_note_that_is_too_long_writes_nothing(alone: Seat) -> None:
    """It would be a record that nobody can read."""
    gate = gate_of(alone)
    with pytest.raises(BadDocument, match="note"):
        say(alone, gate, note="x" * 300_000)
    unchanged(alone, gate)


def test_an_answer_needs_a_name(alone: Seat, nobody: None) -> None:
    """One in nobody's name is none."""
    gate = gate_of(alone)
    with pytest.raises(Failure, match="needs a name") as refused:
        say(alone, gate)
    assert "git config" in refused.value.hint
    unchanged(alone, gate)
    assert answer_of(say(alone, gate, who=BOB).gate)[2] == BOB


@pytest.mark.parametrize("marker", ["CLAUDECODE", "CODEX_SESSION_ID", "GITGATE_AGENT"])
def test_an_agent_never_answers(alone: Seat, monkeypatch: pytest.MonkeyPatch, marker: str) -> None:
    """Its shell has the person's identity, not their judgement; a surface vouches for whom it names."""
    gate = gate_of(alone)
    monkeypatch.setenv(marker, "1")
    with pytest.raises(NotAllowed, match=f"{marker} is set") as refused:
        say(alone, gate)
    assert refused.value.kind == "not_allowed"
    unchanged(alone, gate)
    assert say(alone, gate, who=BOB).counted


# Stale


def test_what_was_seen_has_to_be_part_of_the_gate(alone: Seat) -> None:
    """Anything else is stale: code 6, and nothing is written."""
    gate, other = gate_of(alone), gate_of(alone)
    for seen in (other.tip, "1" * 40, gate.tip[:12], alone.clone.git("rev-parse", "HEAD")):
        with pytest.raises(Stale, match="is not part of it") as refused:
            say(alone, gate, seen=seen)
        assert refused.value.kind == "stale"
    unchanged(alone, gate)


def test_terms_that_changed_after_reading_are_stale(alone: Seat) -> None:
    """Whom it is for, how pressing: read it again."""
    gate = gate_of(alone)
    edited = answering.edit(alone.desk, gate, priority="urgent").gate
    with pytest.raises(Stale, match="was edited after you read it"):
        say(alone, gate, seen=gate.tip)
    unchanged(alone, edited)
    assert say(alone, gate, seen=edited.tip).counted


def test_words_and_votes_do_not_make_it_stale(alone: Seat) -> None:
    """Other people's votes, remarks and reminders leave the question as it was read."""
    gate = gate_of(alone, quorum=2, timeout=60, on_timeout="remind")
    say(alone, gate, who=BOB)
    answering.comment(alone.desk, alone.now(gate), "hm")
    assert isinstance(alone.clock, Clock)
    alone.clock.pass_by(61)
    done = say(alone, gate, seen=gate.tip)
    assert done.counted
    assert [entry.name for entry in done.gate.history[1:]] == ["voted", "commented", "reminded", "answered"]


# Somebody was first


def test_a_second_answer_is_told_who_was_first(alone: Seat) -> None:
    """Code 5, with the name and the time."""
    gate = gate_of(alone)
    after = say(alone, gate, who=BOB).gate
    with pytest.raises(Conflict, match=r"already answered; by Bob at 2026-05-28T20:26:40Z") as refused:
        say(alone, gate)
    assert refused.value.kind == "conflict"
    unchanged(alone, after)


@pytest.mark.parametrize(("verb", "state"), [(answering.stop, "stopped"), (answering.withdraw, "withdrawn")])
def test_a_gate_that_was_ended_says_why(alone: Seat, verb: object, state: str) -> None:
    """In the words of whoever ended it."""
    gate = gate_of(alone)
    assert callable(verb)
    verb(alone.desk, gate, "we do it differently")
    with pytest.raises(IllegalEvent, match=f"the gate is {state}: we do it differently"):
        say(alone, gate)


def test_an_answer_after_the_deadline(alone: Seat, clock: Clock) -> None:
    """The deadline acts first, although nobody had looked."""
    gate = gate_of(alone, timeout=60)
    clock.pass_by(60)
    with pytest.raises(IllegalEvent, match="nobody answered before the deadline"):
        say(alone, gate)
    assert alone.now(gate).state == "expired"
    other = gate_of(alone, replace(DB, default="SQLite"), timeout=60, on_timeout="default")
    clock.pass_by(60)
    with pytest.raises(IllegalEvent, match=r"by nobody \(a default\)"):
        say(alone, other)


@pytest.mark.parametrize("first", ["ann", "bob"])
def test_offline_answers_meet(ann: Seat, bob: Seat, first: str) -> None:
    """The first to reach the shared repository counts; the other is kept as late, and its author told."""
    gate = gate_of(ann)
    sync(bob.desk)
    early, late = (ann, bob) if first == "ann" else (bob, ann)
    say(early, gate, "Postgres", who=BOB, push=False)
    sync(early.desk)
    with pytest.raises(Conflict, match=r"Bob was first, at .*; your answer is kept as late, with no effect"):
        say(late, gate, "SQLite", who=EVE)
    sync(early.desk)
    assert early.now(gate) == late.now(gate)
    assert answer_of(early.now(gate))[2] == BOB
    assert [counted.answer.by for counted in early.now(gate).late] == [EVE]


def test_an_answer_to_a_gate_that_was_ended_elsewhere(ann: Seat, bob: Seat) -> None:
    """Kept as late; its author is not told that it was answered."""
    gate = gate_of(ann)
    sync(bob.desk)
    answering.withdraw(ann.desk, gate, "found it")
    with pytest.raises(Conflict, match="was withdrawn first; your answer is kept as late"):
        say(bob, gate)
    assert len(bob.now(gate).late) == 1


def test_a_quorum_takes_what_was_said_offline(ann: Seat, bob: Seat) -> None:
    """A vote that comes by another way is a vote."""
    gate = gate_of(ann, quorum=2)
    sync(bob.desk)
    assert not say(ann, gate, who=ADA).counted
    done = say(bob, gate, who=BOB)
    assert done.counted
    assert done.gate.state == "answered"
    sync(ann.desk)
    assert ann.now(gate) == bob.now(gate)


def test_a_push_that_fails_after_hearing_of_another_answer(
    ann: Seat, bob: Seat, bare: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What this clone has learned meanwhile is what its person is told."""
    gate = gate_of(ann)
    sync(bob.desk)
    say(ann, gate, who=ADA)
    desk = bob.desk
    from gitgate.exchange import syncing

    heard = syncing.catch_up

    def then_gone(*args: object) -> Gate:
        after = heard(*args)  # type: ignore[arg-type]
        bob.clone.git("remote", "set-url", "origin", str(bare.path) + "-gone")
        return after

    monkeypatch.setattr(syncing, "catch_up", then_gone)
    with pytest.raises(Conflict, match="Ada was first"):
        respond(desk, bob.now(gate), Given(text="SQLite"), Manner(who=BOB))


# Quorum


def test_a_quorum_says_how_far_it_is(alone: Seat) -> None:
    """Not counted while it needs more; each vote is kept."""
    gate = gate_of(alone, GO, quorum=3)
    for person in (ADA, BOB):
        done = approve(alone, gate, person)
        assert (done.counted, done.gate.state) == (False, "awaiting")
    assert approve(alone, gate, ADA).gate.state == "awaiting"
    final = approve(alone, gate, EVE)
    assert (final.counted, len(final.gate.votes)) == (True, 3)


VOTES = """
from gitgate.questions import Given
from gitgate.acts.answering import Manner, respond
from gitgate.gates.recording import reload
done = respond(desk, reload(desk, sys.argv[3]), Given(approve=True), Manner(who=f"P{who} <p{who}@example.org>"))
print(done.counted)
"""


@pytest.mark.slow
def test_votes_at_once_all_count(alone: Seat) -> None:
    """Five are needed, five vote at the same moment: the last of them decides."""
    gate = gate_of(alone, GO, quorum=5)
    said = race(alone.clone.path, VOTES, 5, gate.id)
    assert sorted(line for lines in said for line in lines) == ["False"] * 4 + ["True"]
    assert len(alone.now(gate).votes) == 5


# Amending


def test_amending_until_an_agent_takes_it(alone: Seat) -> None:
    """The author alone, however their name is spelt; afterwards it is too late."""
    gate = gate_of(alone, session="session-1")
    with pytest.raises(BadAnswer, match="has no answer to amend yet"):
        say(alone, gate, amend=True)
    say(alone, gate, "Postgres")
    with pytest.raises(NotAllowed, match="the answer is Ada Lovelace's; only its author amends it"):
        say(alone, gate, "SQLite", who=BOB, amend=True)
    after = say(alone, gate, "SQLite", who="Ada <ADA@example.org>", amend=True).gate
    assert answer_of(after)[0] == "SQLite"
    desk = alone.desk
    from support.histories import History

    held = History(after)
    held.claim()
    claim = held.entries[-1].event
    claimed = desk.records.write_event(after, "claimed", claim, Signature(ADA, 5))
    alone.clone.git("update-ref", OPEN + gate.id, claimed.tip)
    with pytest.raises(IllegalEvent, match="an agent is acting on it"):
        say(alone, gate, "Postgres", amend=True)


def test_nobody_amends_a_default_or_a_quorum(alone: Seat, clock: Clock) -> None:
    """The one is nobody's, the other everybody's."""
    gate = gate_of(alone, replace(DB, default="SQLite"), timeout=60, on_timeout="default")
    clock.pass_by(60)
    with pytest.raises(NotAllowed, match="the answer is nobody's"):
        say(alone, gate, amend=True)
    shared = gate_of(alone, quorum=2)
    say(alone, shared, who=BOB)
    decided = say(alone, shared).gate
    with pytest.raises(IllegalEvent, match="needs 2 who agree"):
        say(alone, shared, "SQLite", amend=True)
    unchanged(alone, decided)


# Signals


@pytest.mark.parametrize(
    ("question", "status", "given"),
    [
        (GO, "CONTINUE", Given(approve=True)),
        (GO, " stop ", Given(approve=False)),
        (TEXT, "DONE", Given(text="DONE")),
        (DB, " Postgres ", Given(text="Postgres")),
    ],
)
def test_a_scripts_status(alone: Seat, question: Question, status: str, given: Given) -> None:
    """Approves and rejects where that is asked; elsewhere it is passed through."""
    assert signal_given(gate_of(alone, question), status) == given


@pytest.mark.parametrize(
    ("question", "status", "words"), [(GO, "YES", "decides nothing here"), (TEXT, " ", "needs a status")]
)
def test_a_status_that_means_nothing(alone: Seat, question: Question, status: str, words: str) -> None:
    """No guess where a yes or no is asked."""
    with pytest.raises(BadAnswer, match=words):
        signal_given(gate_of(alone, question), status)


def test_an_answer_that_has_no_place_is_told_as_well(alone: Seat) -> None:
    """Should it not even be kept."""
    gate = gate_of(alone)
    said = say(alone, gate).answer
    assert answering.refuse_late(alone.now(gate), said) is None  # type: ignore[func-returns-value]
    with pytest.raises(Conflict, match="has no place in its record"):
        answering.refuse_late(gate, said)


def test_an_answer_stays_itself(alone: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something else in its place would be a bug of ours, not an answer."""
    gate = gate_of(alone)
    other = alone.desk.records.write_event(gate, "commented", remark(), Signature(ADA, 5))
    monkeypatch.setattr(answering, "record", lambda *_args, **_how: other)
    with pytest.raises(TypeError):
        say(alone, gate)
