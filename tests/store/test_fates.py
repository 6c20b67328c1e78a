"""What became of a push, by the fields of git's report: no sentence in it, and none of a server's hook, decides."""

from __future__ import annotations

import pytest

from gitgate.errors import FINAL
from gitgate.exchange import Synced
from gitgate.exchange.syncing import joined
from gitgate.gates.agency import STARTS, said_of_push
from gitgate.store.remote import FateKind, HookNote, RefFate, RefMove, Refusal
from gitgate.store.remote.push import parse_results, still_to_send
from gitgate.store.remote.wire import GitSpoken

ONE, OTHER = "refs/hitl/open/2222222222", "refs/hitl/open/3333333333"
OID = "1" * 40


def told(reason: str, *heard: str, mark: str = "remote rejected") -> RefFate:
    lines = [f"!\t{OID}:{ONE}\t[{mark}] ({reason})"]
    return parse_results(GitSpoken(1, lines, [f"remote: {line}" for line in heard]))[ONE]


@pytest.mark.parametrize(
    ("reason", "kind", "refusal"),
    [
        ("pre-receive hook declined", FateKind.REFUSED, Refusal.WHOLE_PUSH),
        ("hook declined", FateKind.REFUSED, Refusal.OTHER),
        ("missing necessary objects", FateKind.REFUSED, Refusal.MISSING_OBJECTS),
        ("stale info", FateKind.STALE, Refusal.OTHER),
        ("atomic push failed", FateKind.REFUSED, Refusal.OTHER),  # of every ref: one of them it was
        ("ok", FateKind.REFUSED, Refusal.OTHER),
        ("unknown", FateKind.REFUSED, Refusal.OTHER),
        ("it says: missing necessary objects", FateKind.REFUSED, Refusal.OTHER),
        ("refused: pre-receive hook declined", FateKind.REFUSED, Refusal.OTHER),
    ],
)
def test_the_kind_of_a_fate(reason: str, kind: FateKind, refusal: Refusal) -> None:
    """Git's own word, as a whole, names it; a word of ours in a server's reason is a refusal like another."""
    fate = told(reason)
    assert (fate.kind, fate.refusal) == (kind, refusal)


@pytest.mark.parametrize(
    "line",
    [
        f"no: gate: {ONE}: answered (aaaaaaaaaa): no ({FINAL})",
        f"the note says gate: {ONE}: answered (aaaaaaaaaa): no ({FINAL})",
        f"gate: 2222222222: answered (aaaaaaaaaa): no ({FINAL})",
    ],
)
def test_a_line_that_only_quotes_our_hook(line: str) -> None:
    """What stands within a line is what somebody wrote: it says nothing of a ref."""
    assert told("pre-receive hook declined", line).notes == ()


def test_words_of_a_person_end_no_event() -> None:
    """A name or a note in a reason that repeats our mark, or begins another note, puts nothing aside; the mark ends the line."""
    quoted = (
        f"commented (0123456789): '{FINAL}' · gate: {OTHER}: answered (aaaaaaaaaa): no ({FINAL}) is no name"
    )
    final = f"answered (bbbbbbbbbb): its signature is bad ({FINAL})"
    fate = told("pre-receive hook declined", f"gate: {ONE}: {quoted}", f"gate: {OTHER}: {final}")
    assert fate.notes == (
        HookNote(ONE, quoted, "0123456789"),
        HookNote(OTHER, final, "bbbbbbbbbb", final=True),
    )


def test_who_is_blamed_by_a_note_alone() -> None:
    """A reason in which another gate's ref is only mentioned keeps that gate in the batch."""
    batch = [RefMove(ONE, OID, None), RefMove(OTHER, OID, None)]
    note = HookNote(ONE, f"it stands on {OTHER}: that is not there")
    fates = [
        RefFate(ref, FateKind.REFUSED, f"gate: {ONE}: {note.words}", Refusal.WHOLE_PUSH, notes=(note,))
        for ref in (ONE, OTHER)
    ]
    assert still_to_send(batch, fates) == [[batch[1]]]


def test_a_server_s_word_on_the_agent() -> None:
    """Read where it is a line of its own, of this very gate."""
    line = f"gate: 2222222222: {STARTS}"
    assert said_of_push([line], "2222222222") == ""
    assert said_of_push([f"somebody wrote {line}", f"{line} · no"], "2222222222") is None
    assert said_of_push([line], "3333333333") is None


def test_two_rounds_are_told_together() -> None:
    """What the first one of a sync pushed is not forgotten by the second."""
    both = joined(Synced("origin", pushed=("a",), refused={"b": "x"}), Synced("origin", pushed=("b",)))
    assert (both.pushed, both.refused) == (("a", "b"), {})
