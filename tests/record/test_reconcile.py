"""Reconcile: two clones went on by themselves. One answer counts, and nothing that anybody said is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitgate.errors import BrokenRecord, GateError
from gitgate.model.gate import Answer, Claim, Edit, Outcome, Remark
from gitgate.record.events import reconcile, told_commit
from support.histories import ADA, APPROVAL, BOB, DUE, EARLY, EVE, LATER, History, opened, remark
from support.sharing_records import SIGNATURE, Peer, Shared


def test_the_same_and_the_longer() -> None:
    """Where one goes on from the other, the longer one is kept as it is."""
    gate = History.begin()
    before = gate.entries
    gate.answer()
    assert reconcile(before, before).keep == "same"
    assert reconcile(gate.entries, before).keep == "local"
    plan = reconcile(before, gate.entries)
    assert (plan.keep, plan.again, plan.dropped) == ("remote", (), ())


def test_records_that_begin_apart_are_not_brought_together() -> None:
    """The same question with another first commit: somebody rewrote one of them."""
    one, other = History.begin(), History.begin()
    other.answer()
    with pytest.raises(BrokenRecord, match="begin with different commits"):
        reconcile(one.entries, History.begin(opened(), lambda: 500).entries)
    assert reconcile(one.entries, other.entries).keep == "remote"


def test_a_shared_record_that_does_not_go_on_from_what_it_had() -> None:
    """An answer dropped, or another slipped in before it: no divergence, whatever its merge has as second parent."""
    shared = Shared.begin(opened())
    ann, eve = Peer.clone(shared), Peer.clone(shared)
    ann.answer()
    had = ann.tip
    eve.answer("SQLite", EVE)
    slipped = shared.records.repeat(eve.gate, ann.gate.history[-1], SIGNATURE, had)
    for rewritten in (eve.gate, slipped):
        with pytest.raises(BrokenRecord, match="no longer goes on from"):
            reconcile(ann.gate.history, rewritten.history, had)
    assert reconcile(ann.gate.history, ann.gate.history, had).keep == "same"
    assert reconcile(ann.gate.history, slipped.history, shared.tip).keep == "remote"


def test_claims_outcomes_and_silence_are_never_recorded_again() -> None:
    """Two runners must not both believe that they hold it, and a default is not anybody's word."""
    gate = History.begin(opened(deadline=DUE, on_timeout="default"))
    away = gate.copy()
    gate.add("commented", remark())
    away.default()
    away.claim()
    away.end("released")
    plan = reconcile(away.entries, gate.entries)
    assert plan.again == ()
    assert [entry.name for entry in plan.dropped] == ["defaulted", "claimed", "released"]


@pytest.mark.parametrize("how", ["expired", "reminded"])
def test_what_a_deadline_brought_is_dropped(how: str) -> None:
    """It would happen again where it is still due."""
    gate = History.begin(opened(deadline=DUE, on_timeout="remind"))
    away = gate.copy()
    gate.add("commented", remark())
    away.add(how, Remark(DUE) if how == "expired" else Edit(DUE, deadline=LATER))
    assert [entry.name for entry in reconcile(away.entries, gate.entries).dropped] == [how]


@pytest.mark.parametrize("end", ["stopped", "withdrawn", "edited", "commented"])
def test_what_a_person_wanted_is_said_again(end: str) -> None:
    """A stop is not lost because somebody commented meanwhile."""
    shared = Shared.begin(opened())
    ann, bob = Peer.clone(shared), Peer.clone(shared)
    bob.add("commented", remark(by=BOB))
    bob.sync()
    ann.add(end, Edit(LATER, ADA, priority="urgent") if end == "edited" else remark(text="ours"))
    ann.sync()
    assert [entry.name for entry in shared.gate.history] == ["opened", "commented", end]
    assert ann.lost == []


def test_a_stop_that_came_after_an_answer_is_told() -> None:
    """It has no place any more; whoever stopped it is told so."""
    shared = Shared.begin(opened())
    ann, bob = Peer.clone(shared), Peer.clone(shared)
    bob.answer(by=BOB)
    bob.sync()
    ann.add("stopped", remark())
    ann.sync()
    assert ann.lost == [remark()]
    assert ann.tip == bob.tip


def test_words_that_are_there_already_are_not_said_twice() -> None:
    """The same event by another way, and one that was recorded again before its sender was killed."""
    shared = Shared.begin(opened())
    ann, bob = Peer.clone(shared), Peer.clone(shared)
    bob.answer(by=BOB)
    ann.answer(by=ADA)
    before = ann.tip
    bob.sync()
    ann.sync()
    ann.tip = before  # killed before its own ref had moved
    ann.sync()
    assert [entry.name for entry in shared.gate.history] == ["opened", "answered", "late"]
    one = History.begin()
    other = one.copy()
    one.add("commented", remark())
    other.add("commented", remark())
    other.add("commented", remark(text="more"))
    assert [entry.event for entry in reconcile(other.entries, one.entries).again] == [remark(text="more")]


def test_different_words_in_files_of_one_name_are_both_kept() -> None:
    """Another tool may call its files anything; what counts is what they say."""
    one = History.begin()
    other = one.copy()
    one.add("commented", remark(text="one"))
    other.add("commented", remark(text="other"))
    path = one.entries[-1].path
    ours = [*other.entries[:-1], replace(other.entries[-1], path=path)]
    assert [entry.event for entry in reconcile(ours, one.entries).again] == [remark(text="other")]


# Two and three clones, in any order


def attempts() -> st.SearchStrategy[Callable[[Peer], object]]:
    """What somebody at a clone may try; some of it is refused there."""
    people = st.sampled_from([ADA, BOB, EVE])
    values = st.sampled_from(["Postgres", "SQLite"])
    times = st.sampled_from([EARLY, DUE, LATER])
    own = st.builds(lambda v, w, t: lambda p: p.answer(v, w, t), values, people, times)
    amended = st.builds(
        lambda v, w, t: lambda p: p.answer(v, w, t, amends=last_answer(p)), values, people, times
    )
    words = st.builds(
        lambda name, w, t: lambda p: p.add(name, remark(t, w, "so")),
        st.sampled_from(["commented", "commented", "withdrawn", "stopped"]),
        people,
        times,
    )
    silence = st.sampled_from(
        [
            lambda p: p.add("expired", Remark(LATER)),
            lambda p: p.add("reminded", Edit(LATER, deadline=LATER)),
            lambda p: p.add("edited", Edit(LATER, ADA, priority="high")),
            lambda p: p.add("edited", Edit(LATER, ADA, later="")),
            lambda p: p.add("answered", default(p)),
            claim,
            lambda p: p.add(
                "outcome", Outcome(LATER, p.gate.claim.commit if p.gate.claim else p.tip, "released")
            ),
            Peer.sync,
        ]
    )
    return st.one_of(own, own, amended, words, silence)


def last_answer(peer: Peer) -> str:
    found = [entry.commit for entry in peer.gate.history if isinstance(entry.event, Answer)]
    return found[-1] if found else peer.tip


def default(peer: Peer) -> Answer:
    return Answer(peer.shared.id, {"answer": "SQLite"}, "defaulted", LATER, peer.tip, via="deadline")


def claim(peer: Peer) -> object:
    return peer.add("claimed", Claim(LATER, told_commit(peer.gate), "n", "local", "host", 1, 60))


MOVES = st.lists(st.tuples(st.integers(0, 2), attempts()), max_size=12)
TERMS = st.fixed_dictionaries(
    {
        "quorum": st.integers(1, 3),
        "on_timeout": st.sampled_from(["stuck", "fail", "remind", "default"]),
        "deadline": st.sampled_from([None, DUE]),
    }
)


@settings(max_examples=settings().max_examples // 2)
@given(TERMS, MOVES, st.permutations([0, 1, 2]))
def test_clones_agree_in_whichever_order_they_sync(
    terms: dict[str, object], moves: list[tuple[int, Callable[[Peer], object]]], order: list[int]
) -> None:
    """All have the same record; one answer counts at most; every answer and comment is in it; syncing again is nothing."""
    shared = Shared.begin(opened(**terms))
    peers = [Peer.clone(shared) for _ in order]
    said: list[object] = []
    for who, attempt in moves:
        length = len(peers[who].gate.history)
        try:
            attempt(peers[who])
        except GateError:
            continue
        new = peers[who].gate.history[length:] if attempt is not Peer.sync else ()
        said += [entry.event for entry in new if kept(entry.event, entry.name)]
    for who in (*order, *order):
        peers[who].sync()
    assert {peer.tip for peer in peers} == {shared.tip}
    gate = shared.gate
    history = [entry.event for entry in gate.history]
    assert [event for event in said if event not in history] == []
    assert len([entry for entry in gate.history if entry.name in ("answered", "defaulted")]) <= 1
    assert [peer.lost for peer in peers if any(kept(event, "") for event in peer.lost)] == []
    tip = shared.tip
    for peer in peers:
        peer.sync()
    assert shared.tip == tip


def kept(event: object, name: str) -> bool:
    """An answer of a person's, or a comment: neither is ever lost. (Ends and terms may lose their place, and are told.)"""
    if isinstance(event, Answer):
        return event.verdict != "defaulted"
    return name == "commented"


@settings(max_examples=60)
@given(st.booleans(), st.booleans())
def test_two_offline_answers_end_in_one_counted_and_one_late(first: bool, second: bool) -> None:
    """On both sides, in whichever order they sync; the later author's own commit stays reachable."""
    shared = Shared.begin(opened(APPROVAL))
    ann, bob = Peer.clone(shared), Peer.clone(shared)
    for peer, by, yes in ((ann, ADA, first), (bob, BOB, second)):
        verdict = "approved" if yes else "rejected"
        peer.add("answered", Answer(shared.id, {"answer": yes}, verdict, EARLY, peer.tip, by))
    own = {ADA: ann.tip, BOB: bob.tip}
    early, late = (ann, bob) if first else (bob, ann)
    for peer in (early, late, early):
        peer.sync()
    gate = shared.gate
    assert early.tip == late.tip
    assert gate.answer is not None
    assert gate.answer.answer.by == (ADA if early is ann else BOB)
    assert [counted.signed_commit for counted in gate.late] == [
        own[counted.answer.by] for counted in gate.late
    ]
    assert len(gate.late) == 1
