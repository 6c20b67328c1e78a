"""Verify: each answer is judged by the policy as it was when it was given, not as it is now."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gitgate.acts import find_gate
from gitgate.audit import GRACE, Verified
from gitgate.audit.auditing import audit
from gitgate.errors import NotAllowed
from gitgate.model.gate import Answer, Gate
from gitgate.policy.permit import check_told
from gitgate.store.git.refs import OPEN
from gitgate.store.records import Signature
from gitgate.text import format_time
from support.deciding import DB, GO, approve, asked, gate_of, say
from support.resuming import Clock, Seat
from support.signing import make_key, publish_policy
from support.testbed.command import Command
from support.testbed.repositories import Clone

pytestmark = pytest.mark.slow

ADA, BOB = "Ada Lovelace <ada@example.org>", "Bob <bob@example.org>"
ANYONE, ONLY_BOB = "policy: {who: anyone}\n", "policy:\n  rules:\n    - {name: bobs, who: bob@example.org}\n"
DAY = 86_400
Rule = Callable[..., str]


@pytest.fixture
def ruled(bare: Clone, ann: Seat, bob: Seat, clock: Clock) -> Rule:
    """Puts a policy on the server's main branch, now by the test's clock, and lets both clones fetch it."""

    def rule(text: str, **more: Any) -> str:
        commit = publish_policy(bare, text, **{"at": clock.at, **more})
        for seat in (ann, bob):
            seat.clone.git("fetch", "-q", "origin")
        return commit

    return rule


def forge(seat: Seat, gate: Gate, by: str = ADA, **fields: Any) -> str:
    """An answer that was written past the command."""
    desk = seat.desk
    said = Answer(gate.id, {"answer": "Postgres"}, "answered", desk.now, gate.tip, by)
    after = desk.records.write_event(gate, "answered", replace(said, **fields), Signature(by, desk.at))
    seat.clone.git("update-ref", OPEN + gate.id, after.tip)
    return after.tip


def checked(seat: Seat) -> Verified:
    """Only what speaks of policies."""
    done = audit(seat.desk)
    assert {problem.kind for problem in done.problems} <= {"policy"}
    return done


def words(seat: Seat) -> list[str]:
    return [problem.words for problem in checked(seat).problems]


def test_an_answer_names_its_policy(ann: Seat, ruled: Rule) -> None:
    """The protected branch's commit; without a policy there is nothing to name."""
    bare_words = say(ann, gate_of(ann), push=False).answer
    assert "policy" not in bare_words.evidence
    commit = ruled(ANYONE)
    gate = say(ann, gate_of(ann)).gate
    assert gate.answer is not None
    assert gate.answer.answer.evidence == {"policy": commit}
    assert words(ann) == []


@pytest.mark.parametrize("named", [True, False])
def test_tightened_later(ann: Seat, clock: Clock, ruled: Rule, named: bool) -> None:
    """What was right when it was given stays so, whether the answer says by which policy or only when."""
    ruled(ANYONE)
    clock.pass_by(DAY)
    gate = gate_of(ann)
    if named:
        say(ann, gate)
    else:
        forge(ann, gate)
    clock.pass_by(3 * DAY)
    ruled(ONLY_BOB)
    clock.pass_by(3 * DAY)
    assert words(ann) == []
    forge(ann, gate_of(ann))
    assert len(words(ann)) == 1


def test_loosened_later(ann: Seat, clock: Clock, ruled: Rule) -> None:
    """What was wrong stays so: by its date; and naming what came later does not help."""
    ruled(ONLY_BOB)
    clock.pass_by(DAY)
    by_date, by_name = gate_of(ann), gate_of(ann)
    forge(ann, by_date)
    then = ann.desk.now
    clock.pass_by(3 * DAY)
    loose = ruled(ANYONE)
    forge(ann, by_name, at=then, evidence={"policy": loose})
    found = {problem.gate: problem.words for problem in checked(ann).problems}
    assert "the policy of its day does not allow it, by its rule 'bobs'" in found[by_date.id]
    assert ".gitgate.yml, line 3" in found[by_date.id]
    assert "which came later, on" in found[by_name.id]


@pytest.mark.parametrize(
    ("said", "written", "counts"),
    [(7200, 0, True), (0, 7200, False), (0, None, True), (7200, None, False), (0, "soon", True), (7200, "soon", False)],
)  # fmt: skip
def test_what_was_written_on_a_forge_is_of_that_time(
    ann: Seat, clock: Clock, ruled: Rule, said: int, written: int | str | None, counts: bool
) -> None:
    """Acted on and verified alike, however late it was recorded; a time that is none is not gone by."""
    ruled("policy: {within: 1h}\n")
    at = format_time(clock.at + written) if isinstance(written, int) else written
    gate = gate_of(ann)
    forge(ann, gate, at=format_time(clock.at + said), via="github", evidence={"at": at} if at else {})
    clock.pass_by(7200)
    assert ["its time is over" in line for line in words(ann)] == [True] * (not counts)
    with contextlib.nullcontext() if counts else pytest.raises(NotAllowed, match="its time is over"):
        check_told(ann.desk, ann.now(gate))


def test_a_policy_that_was_replaced_long_ago(ann: Seat, clock: Clock, ruled: Rule) -> None:
    """Naming it does not help either; a clone that had not fetched for some hours is believed."""
    loose = ruled(ANYONE)
    early = gate_of(ann)
    clock.pass_by(DAY)
    ruled(ONLY_BOB)
    clock.pass_by(GRACE // 2)
    forge(ann, early, evidence={"policy": loose})
    assert words(ann) == []
    clock.pass_by(GRACE)
    forge(ann, gate_of(ann), evidence={"policy": loose})
    assert ["which was replaced on" in line for line in words(ann)] == [True]


def test_an_answer_is_younger_than_the_work(ann: Seat, clock: Clock, ruled: Rule) -> None:
    """Whatever day it says that it is of: what the work stands on was there before."""
    loose = ruled(ANYONE)
    then = ann.desk.now
    clock.pass_by(3 * DAY)
    ruled(ONLY_BOB)
    ann.clone.git("reset", "-q", "--hard", "origin/main")
    ann.clone.commit("mine")
    forge(ann, gate_of(ann), at=then, evidence={"policy": loose})
    forge(ann, gate_of(ann), at=then)
    assert ["by its rule 'bobs'" in line for line in words(ann)] == [True, True]


@pytest.mark.parametrize("named", ["1" * 40, "main", 5])
def test_a_policy_of_nowhere(ann: Seat, ruled: Rule, named: object) -> None:
    """A commit that the branch never had: an agent's own, with a policy of its own."""
    ruled(ANYONE)
    own = ann.clone.commit("mine", **{".gitgate.yml": "policy: {}\n"}) if named == "main" else named
    forge(ann, gate_of(ann), evidence={"policy": own})
    assert ["which is no commit of refs/remotes/origin/" in line for line in words(ann)] == [True]


def test_before_there_was_any(ann: Seat, clock: Clock, ruled: Rule) -> None:
    """The first policy does not reach back."""
    say(ann, gate_of(ann))
    clock.pass_by(DAY)
    ruled(ONLY_BOB)
    assert words(ann) == []


def test_a_broken_policy_allowed_nothing(ann: Seat, clock: Clock, ruled: Rule) -> None:
    """Mended since, it still had not."""
    ruled("policy: {x: 1}\n")
    clock.pass_by(60)
    ruled(ANYONE, at=clock.at + 60)
    clock.pass_by(30)
    forge(ann, gate_of(ann))
    assert ["the policy is broken" in line for line in words(ann)] == [True]


def test_signers_of_the_day(ann: Seat, clock: Clock, ruled: Rule, tmp_path: Any) -> None:
    """A key that was taken out since still speaks for what it signed; one that was put in since does not."""
    ada = make_key(tmp_path / "keys", "ada", "ada@example.org")
    eve = make_key(tmp_path / "keys", "eve", "eve@example.org")
    ruled("policy: {require_signed: true}\n", signers=ada.line)
    ada.used_by(ann.clone)
    clock.pass_by(DAY)
    say(ann, gate_of(ann))
    clock.pass_by(DAY)
    ruled("policy: {require_signed: true}\n", signers=eve.line)
    clock.pass_by(DAY)
    done = checked(ann)
    assert (done.problems, done.signatures) == ((), {"unknown": 1})
    ruled("policy: {require_signed: true}\n", signers=ada.line + eve.line)
    desk = ann.desk
    gate = gate_of(ann)
    said = Answer(gate.id, {"answer": "SQLite"}, "answered", "2026-05-29T00:00:00Z", gate.tip, ADA)
    signed = desk.records.write_event(gate, "answered", said, Signature(ADA, desk.at, True))
    ann.clone.git("update-ref", OPEN + gate.id, signed.tip)
    assert checked(ann).problems == ()


def test_as_many_as_were_needed_then(ann: Seat, clock: Clock, ruled: Rule) -> None:
    """Two who agree where two had to; one alone, past the command, is not enough; a vote too many is a note."""
    ruled("policy: {quorum: 2, who: [ada@example.org, bob@example.org]}\n")
    gate = gate_of(ann, GO)
    approve(ann, gate)
    approve(ann, gate, BOB)
    assert words(ann) == []
    desk = ann.desk
    one = gate_of(ann, GO)
    said = Answer(one.id, {"answer": True}, "approved", desk.now, one.tip, "Eve <eve@example.org>")
    after = desk.records.write_event(one, "answered", said, Signature(ADA, desk.at))
    ann.clone.git("update-ref", OPEN + one.id, after.tip)
    assert checked(ann).problems == ()
    assert ["'default'" in note.words for note in checked(ann).notes if note.kind == "policy"] == [True]
    with pytest.raises(NotAllowed, match=r"Eve .* is not among them"):
        approve(ann, after)
    mine = replace(said, by=ADA)
    both = desk.records.write_event(after, "answered", mine, Signature(ADA, desk.at))
    ann.clone.git("update-ref", OPEN + one.id, both.tip)
    assert ["eve@example.org" in line for line in words(ann)] == [True]


def test_defaults_of_the_day(ann: Seat, clock: Clock, ruled: Rule) -> None:
    """A default that was allowed to apply stays good."""
    ruled("policy: {defaults: true}\n")
    gate = asked(ann, replace(DB, default="SQLite"), timeout=60, on_timeout="default").gate
    clock.pass_by(61)
    assert find_gate(ann.desk, gate.id).gate.state == "answered"
    ruled("policy: {defaults: false}\n", at=clock.at + DAY)
    assert words(ann) == []
    late = asked(ann, replace(DB, default="SQLite"), timeout=60, on_timeout="default").gate
    clock.pass_by(2 * DAY)
    desk = ann.desk
    said = Answer(late.id, {"answer": "SQLite"}, "defaulted", desk.now, late.tip)
    after = desk.records.write_event(late, "answered", said, Signature(ADA, desk.at))
    ann.clone.git("update-ref", OPEN + late.id, after.tip)
    assert ["its declared default does not apply" in line for line in words(ann)] == [True]


def test_the_command_says_so(ann: Seat, clock: Clock, ruled: Rule) -> None:
    """One line, exit 1, and the kind in JSON."""
    ruled(ONLY_BOB)
    gate = gate_of(ann)
    clock.pass_by(60)
    tip = forge(ann, gate)
    said = Command().quick("verify", cwd=ann.clone.path, code=1)
    assert said.out.startswith(f"{gate.id} {tip[:12]} the policy of its day does not allow it")
    whole = Command().quick("verify", "--json", cwd=ann.clone.path, code=1).json
    assert [problem["kind"] for problem in whole["problems"]] == ["policy"]


def test_a_branch_that_is_not_here_whole(ann: Seat, bare: Clone, ruled: Rule, tmp_path: Any) -> None:
    """In a shallow clone a policy that is not here is a note: nobody can say."""
    commit = ruled(ANYONE)
    say(ann, gate_of(ann))
    publish_policy(bare, ANYONE + "# more\n", at=1_790_000_000)
    ann.clone.git("clone", "-q", "--depth=1", bare.path.as_uri(), str(tmp_path / "shallow"))
    with Seat(Clone(tmp_path / "shallow"), ann.clock) as seat:
        seat.clone.git("fetch", "-q", "origin", "+refs/hitl/open/*:refs/hitl/open/*")
        done = checked(seat)
        assert done.problems == ()
        assert any(commit[:12] in note.words for note in done.notes)
