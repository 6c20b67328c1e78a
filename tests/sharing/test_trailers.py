"""What a commit's message tells lists is what its record amounts to: else the hook refuses it, and a list says so."""

from __future__ import annotations

from functools import partial

import pytest

from gitgate.acts import answering
from gitgate.context import targets
from gitgate.context.targets import all_summaries, summaries
from gitgate.exchange import entering
from gitgate.exchange.syncing import sync
from gitgate.model.gate import Gate
from gitgate.record import DOUBTFUL, Summary, message
from gitgate.sharing import refusals
from gitgate.store.git.canonical import dump_commit
from gitgate.store.git.refs import DOUBTED, OPEN, Update
from support.deciding import DB, gate_of, say
from support.resuming import Seat
from support.testbed.command import Command
from support.testbed.repositories import Clone

LIES = {
    "another title": (("Hitl-Title: ", "Hitl-Title: not "), "its message says Title: 'not Which database?'"),
    "another state": (("Hitl-State: awaiting", "Hitl-State: resumed"), "says State: 'resumed'"),
    "closed": (("Hitl-Priority: ", "Hitl-Closed: yes\nHitl-Priority: "), "says Closed: 'yes'; the record has none"),
    "a verdict": (("Hitl-Priority: ", "Hitl-Verdict: approved\nHitl-Priority: "), "says Verdict: 'approved'"),
    "another gate": (("Hitl-Gate: ", "Hitl-Gate: 2"), "says Gate: "),
    "one left out": (("Hitl-Priority: normal\n", ""), "says Priority: 'nothing'; the record means 'normal'"),
    "for others": (("Hitl-Priority: ", "Hitl-To: eve\nHitl-Priority: "), "says To: 'eve'"),
    "twice": (("Hitl-State: ", "Hitl-State: awaiting\nHitl-State: "), "does not end with trailers"),
    "none": (("Hitl-", "X-"), "does not end with trailers"),
    "no UTF-8": (("Hitl-Title: ", "Hitl-Title: \udcff"), "is not UTF-8"),
    "others before them": (("\n\n", "\n\nHitl-State: resumed\nHitl-Closed: yes\n\n"), "one paragraph of trailers"),
    "others in the subject": (("\n\n", "\nHitl-State: resumed\n\n"), "not one line for people"),
    "another subject": (("\n\n", ", and approved\n\n"), "its subject is "),
    "a subject with a blank at its end": (("\n\n", " \n\n"), "its subject is "),
    "a name with a blank": (("Hitl-State: ", "Hitl-State : resumed\nHitl-State: "), "does not end with trailers"),
}  # fmt: skip


def retold(seat: Seat, gate: Gate, old: str, new: str) -> str:
    """The gate's last commit with another message."""
    records = seat.desk.records
    commit = records.commit(gate.tip)
    said = message(gate.history[-1].name, gate.history[-1].event, gate)
    assert old in said
    words = said.replace(old, new).encode("utf-8", "surrogateescape")
    return records.objects.write("commit", dump_commit(commit.tree, commit.parents, "M <m@m>", 1, "") + words)


def hook_says(seat: Seat, gate: Gate, tip: str, old: str | None) -> str:
    """What the receiving hook has against this, where the gate is as it was."""
    desk, ref = seat.desk, OPEN + gate.id
    return refusals(desk, [Update(old, tip, ref)], partial(entering.against_events, desk)).get(ref, "")


@pytest.mark.parametrize("lie", LIES)
def test_the_hook_compares_trailers_with_the_record(alone: Seat, lie: str) -> None:
    """Of a new gate and of an event; also of one that has honest ones after it."""
    (old, new), words = LIES[lie]
    gate = gate_of(alone, DB)
    assert hook_says(alone, gate, gate.tip, None) == ""
    assert words in hook_says(alone, gate, retold(alone, gate, old, new), None)
    said = answering.comment(alone.desk, gate, "hm", push=False).gate
    tip = retold(alone, said, old, new)
    assert words in hook_says(alone, said, tip, gate.tip)
    alone.clone.git("update-ref", OPEN + gate.id, tip)
    after = say(alone, gate).gate
    assert words in hook_says(alone, after, after.tip, gate.tip)
    assert hook_says(alone, after, after.tip, tip) == ""


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-7", "IBM037", ""])
def test_git_shows_the_message_that_the_hook_read(alone: Seat, encoding: str) -> None:
    """A header that makes git read other letters out of the same bytes is refused; that of UTF-8 changes nothing."""
    gate = gate_of(alone, DB)
    objects = alone.desk.records.objects
    honest = objects.read(gate.tip)[1]
    for named, words in ((encoding, "is said to be in" if encoding else "as its encoding"), ("UTF-8", "")):
        told = honest.replace(b"\n\n", b"\nencoding %s\n\n" % named.encode(), 1)
        tip = objects.write("commit", told)
        assert words in hook_says(alone, gate, tip, None)
        assert bool(words) == bool(hook_says(alone, gate, tip, None))


def told_by_list(seat: Seat, gate: Gate) -> Summary:
    found = [one for one in summaries(seat.desk) if one.id == gate.id]
    seat.desk.close()
    assert found == [one for one in all_summaries(seat.desk) if one.id == gate.id]
    return found[0]


@pytest.mark.parametrize(
    "lie",
    [
        lie if lie in ("closed", "another title", "none") else pytest.param(lie, marks=pytest.mark.slow)
        for lie in LIES
    ],
)
@pytest.mark.parametrize("indexed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_list_goes_by_the_record(
    ann: Seat, bob: Seat, bare: Clone, lie: str, indexed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a remote without our hook took the lie: what the record says is shown, with a mark, until an honest event follows."""
    if indexed:
        monkeypatch.setattr(targets, "MANY", 1)
    gate = gate_of(ann, DB)
    sync(bob.desk)
    before = told_by_list(bob, gate)
    said = answering.comment(ann.desk, gate, "hm", push=False).gate
    lying = retold(ann, said, *LIES[lie][0])
    ann.clone.git("push", "-q", "origin", f"{lying}:{OPEN}{gate.id}")
    heard = sync(bob.desk)
    assert LIES[lie][1] in heard.doubted[gate.id]
    shown = told_by_list(bob, gate)
    assert shown == before._replace(
        tip=lying,
        event="commented",
        title=f"{DOUBTFUL} {before.title}",
        question=f"{DOUBTFUL} {before.question}",
    )
    assert sync(bob.desk).doubted == {}
    assert told_by_list(bob, gate) == shown
    after = answering.comment(bob.desk, bob.now(gate), "aha", push=True).gate
    assert told_by_list(bob, gate) == before._replace(tip=after.tip, event="commented")
    sync(ann.desk)
    assert ann.clone.refs(DOUBTED) == {}
    for place in (ann.clone, bare):
        place.git("update-ref", "-d", OPEN + gate.id)
    gate_of(ann, DB)
    sync(bob.desk)
    assert bob.clone.refs(DOUBTED) == {}


def test_what_is_typed_goes_by_the_record(ann: Seat, bob: Seat, bare: Clone, cli: Command) -> None:
    """A gate that waits is not hidden by a commit that calls it closed: it is listed, counted, and answered without its id."""
    gate = gate_of(ann, DB)
    lying = retold(ann, gate, "Hitl-State: awaiting", "Hitl-State: resumed")
    ann.clone.git("push", "-q", "-f", "origin", f"{lying}:{OPEN}{gate.id}")
    told = cli.quick("sync", cwd=bob.clone.path, code=0)
    assert f"{gate.id}: its message says State: 'resumed'; the record means 'awaiting'" in told.err
    assert (
        "its last commit says otherwise: git gate verify" in cli.quick("list", cwd=bob.clone.path, code=0).out
    )
    (listed,) = cli.quick("list", "--json", cwd=bob.clone.path, code=0).json["gates"]
    assert (listed["id"], listed["state"]) == (gate.id, "awaiting")
    assert cli.quick(cwd=bob.clone.path).out.startswith("1 waits for you")
    assert gate.id in cli.quick("verify", cwd=bob.clone.path, code=1).out
    cli.quick("respond", "-m", "Postgres", "--no-resume", cwd=bob.clone.path, code=0)
    assert cli.quick("check", gate.id, cwd=bob.clone.path, code=0).out == "Postgres\n"
