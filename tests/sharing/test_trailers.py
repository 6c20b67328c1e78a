"""What a commit's message tells lists is what its record amounts to: else the hook refuses it, and a list says so."""

from __future__ import annotations

from functools import partial

import pytest

from gitgate.acts import remarks
from gitgate.exchange import entering
from gitgate.model.gate import Gate
from gitgate.record import message
from gitgate.sharing.receiving import refusals
from gitgate.store.git.objects import dump_commit
from gitgate.store.git.refs import OPEN, Update
from support.deciding import DB, gate_of, say
from support.resuming import Seat

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
    "others before a null byte": (("\n\n", "\n\nHitl-State: resumed\n\0\n\n"), "has a null byte"),
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
    said = remarks.comment(alone.desk, gate, "hm", push=False).gate
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
    for named, words in ((encoding, "is said to be in"), ("UTF-8", "")):
        told = honest.replace(b"\n\n", b"\nencoding %s\n\n" % named.encode(), 1)
        tip = objects.write("commit", told)
        assert words in hook_says(alone, gate, tip, None)
        assert bool(words) == bool(hook_says(alone, gate, tip, None))
