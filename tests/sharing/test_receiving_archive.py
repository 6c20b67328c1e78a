"""What a shared repository takes into its archive, and what it lets go: told by the judge of a push, without a push.

The repository of a seat stands for the shared one: what was taken is moved in it, what was refused is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from gitgate.acts.answering import stop
from gitgate.claims import claim, claim_outcome, finish
from gitgate.exchange.entering import Beyond
from gitgate.model.gate import Gate
from gitgate.sharing import refusals
from gitgate.store.git.objects import open_objects
from gitgate.store.git.refs import Update
from gitgate.store.records import Signature
from gitgate.store.records.archive import Binder, Late, archived
from support.resuming import Seat, claimant
from support.testbed.repositories import Clone

OPEN = "refs/hitl/open/"
MONTH, NEXT = "refs/hitl/archive/2026-01", "refs/hitl/archive/2026-02"
EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


@dataclass
class Vault:
    """The shared repository, and whoever pushes to it."""

    seat: Seat
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    @property
    def git(self) -> Clone:
        return self.seat.clone

    def at(self, ref: str) -> str | None:
        return self.git.refs("refs/hitl").get(ref)

    def fold(self, base: str | None, *gates: tuple[str, str], late: Sequence[Late] = ()) -> str:
        """A fold as the product makes it, of whatever it is given."""
        repo = self.git.repository
        objects = open_objects(repo, bulk=True)
        return Binder(repo, objects, Signature("M <m@example.org>", 5)).fold("2026-01", base, gates, late)

    def commit(self, tree: str, *parents: str, message: str = "fold\n") -> str:
        named = [part for parent in parents for part in ("-p", parent)]
        return self.git.git("commit-tree", tree, *named, "-m", message)

    def push(self, *moves: tuple[str, str | None], beyond: Beyond | None = None) -> str:
        """Why it is refused; empty when it was taken, and then everything is where it should be."""
        there = self.git.refs("refs/hitl")
        updates = [Update(there.get(ref), new, ref) for ref, new in moves]
        said = refusals(self.seat.desk, updates, beyond)
        for update in () if said else updates:
            self.git.git(
                "update-ref", *(["-d"] if update.new is None else []), update.ref, *filter(None, [update.new])
            )
        return " · ".join(said.values())

    def closed(self) -> Gate:
        gate = self.seat.ask()
        stop(self.seat.desk, gate, "over", push=False)
        return self.seat.now(gate)

    def archive(self, gate: Gate, ref: str = MONTH) -> str:
        """As the product does it: the archive gains, then the open ref goes."""
        fold = self.fold(self.at(ref), (gate.id, gate.tip))
        assert self.push((ref, fold)) == ""
        assert self.push((OPEN + gate.id, None)) == ""
        return fold


@pytest.fixture
def vault(alone: Seat) -> Vault:
    return Vault(alone)


def drawer(gate: Gate) -> str:
    return gate.id[:2]


def test_a_closed_gate_is_archived_and_does_not_come_back(vault: Vault) -> None:
    """It is taken in, leaves, and is opened again neither as it was nor as it had been before."""
    first, second = vault.closed(), vault.closed()
    vault.archive(first)
    vault.archive(second)
    assert archived(vault.git.repository, first.id) == first.tip
    for tip in (first.tip, first.history[0].commit):
        assert "not opened again" in vault.push((OPEN + first.id, tip))


def test_an_answered_gate_is_archived_once_it_is_resumed(vault: Vault) -> None:
    """While its agent has not heard the answer, it is not closed."""
    gate = vault.seat.answer(vault.seat.ask())
    fold = vault.fold(None, (gate.id, gate.tip))
    assert "answered, not closed" in vault.push((MONTH, fold))
    desk = vault.seat.desk
    held = claim(desk, gate, claimant())
    assert "resuming, not closed" in vault.push((MONTH, vault.fold(None, (gate.id, held.claim))))
    finish(desk, held, claim_outcome(desk, held, "resumed"))
    vault.archive(vault.seat.now(gate))


# a fold keeps all that its parent has


def without(vault: Vault, first: Gate, second: Gate) -> Mapping[str, str]:
    """Trees that lack a gate of the archive, or have it otherwise; by what they do."""
    git = vault.git.git
    line = "040000 tree {}\t{}"
    renamed = first.id[:-1] + ("3" if first.id.endswith("2") else "2")
    mine, other = (git("rev-parse", f"{gate.tip}^{{tree}}") for gate in (first, second))

    def tree(*lines: str) -> str:
        return git("mktree", input="".join(f"{one}\n" for one in lines))

    def top(**drawers: str) -> str:
        return tree(*(line.format(oid, name) for name, oid in drawers.items()))

    full = {drawer(gate): tree(line.format(oid, gate.id)) for gate, oid in ((first, mine), (second, other))}
    return {
        "empties it": EMPTY,
        "takes one out": top(**{drawer(second): full[drawer(second)]}),
        "empties a drawer": top(**{**full, drawer(first): EMPTY}),
        "puts another's record in its place": top(
            **{**full, drawer(first): tree(line.format(other, first.id))}
        ),
        "renames it": top(**{**full, drawer(first): tree(line.format(mine, renamed))}),
        "makes a file of it": tree(
            line.format(full[drawer(second)], drawer(second)),
            f"100644 blob {git('hash-object', '-w', '--stdin', input='x')}\t{drawer(first)}",
        ),
        "adds what nobody asked": top(**full, zz=tree(line.format(mine, "zzzzzzzzzz"))),
    }


def two_in_two_drawers(vault: Vault) -> tuple[Gate, Gate]:
    first = vault.closed()
    second = next(gate for gate in iter(vault.closed, None) if drawer(gate) not in (drawer(first), "zz"))
    vault.archive(first)
    vault.archive(second)
    return first, second


def test_a_fold_keeps_every_gate(vault: Vault) -> None:
    """Whatever it takes out of the archive, or changes in it, it is refused, and the gate is not opened again."""
    first, second = two_in_two_drawers(vault)
    base = vault.at(MONTH)
    assert base is not None
    for what, tree in without(vault, first, second).items():
        said = vault.push((MONTH, vault.commit(tree, base)))
        assert said.startswith("fold "), what
        assert vault.at(MONTH) == base
    assert "not opened again" in vault.push((OPEN + first.id, first.history[0].commit))


def test_every_fold_of_a_push_keeps_every_gate(vault: Vault) -> None:
    """One that takes a gate out is not made good by the next, which has it again."""
    first, second = two_in_two_drawers(vault)
    base = vault.at(MONTH)
    assert base is not None
    for tree in without(vault, first, second).values():
        bad = vault.commit(tree, base)
        good = vault.commit(vault.git.git("rev-parse", f"{base}^{{tree}}"), bad)
        assert vault.push((MONTH, good)).startswith("fold ")


def test_a_fold_is_what_it_says(vault: Vault) -> None:
    """Its message, its parents and its folders tell the same, each gate once."""
    gate, other = vault.closed(), vault.closed()
    honest = vault.fold(None, (gate.id, gate.tip))
    git = vault.git.git
    root, tree = (git("rev-parse", f"{honest}^"), git("rev-parse", f"{honest}^{{tree}}"))
    line = f"{gate.id} {gate.tip}"
    cases = {
        "which is no parent": (tree, [root], line),
        "does not take it in": (EMPTY, [root, gate.tip], line),
        "otherwise than as a record that it names": (tree, [root], "nothing"),
        "does not say what it is": (tree, [root, gate.tip, other.tip], line),
        "twice": (tree, [root, gate.tip], f"{line}\n{line}"),
        "belongs to gate": (
            git("rev-parse", f"{vault.fold(None, (gate.id, other.tip))}^{{tree}}"),
            [root, other.tip],
            f"{gate.id} {other.tip}",
        ),
    }
    for words, (found, parents, message) in cases.items():
        assert words in vault.push((MONTH, vault.commit(found, *parents, message=f"fold\n\n{message}\n")))
    assert "begins empty" in vault.push((MONTH, vault.commit(tree)))
    assert vault.push((MONTH, honest)) == ""


@pytest.mark.parametrize("how", ["a null byte", "another encoding"])
def test_a_fold_says_to_git_what_it_says_to_us(vault: Vault, how: str) -> None:
    """Where git reads another message than the hook, the archive has a gate and does not tell of it."""
    gate = vault.closed()
    honest = vault.fold(None, (gate.id, gate.tip))
    git = vault.git.git
    head, gap, words = git("cat-file", "commit", honest).partition("\n\n")
    told = f"{head}{gap}\0{words}" if how == "a null byte" else f"{head}\nencoding UTF-16{gap}{words}"
    hidden = git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", input=f"{told}\n")
    assert ("in its message" if how == "a null byte" else "its message is said") in vault.push(
        (MONTH, hidden)
    )
    assert vault.push((MONTH, honest)) == ""


@pytest.mark.parametrize("ref", ["refs/gitgate/origin/archive/2026-01", "refs/GitGate/x/open/2222222222"])
def test_what_a_repository_notes_for_itself_is_not_pushed(vault: Vault, ref: str) -> None:
    """As another remote's archive it would be believed, and the gates in it held for closed. It may be taken away."""
    gate = vault.closed()
    fold = vault.fold(None, (gate.id, gate.tip))
    why = vault.push((ref, fold))
    assert "never pushed" in why or "no such kind of ref" in why
    vault.git.git("update-ref", "refs/gitgate/origin/archive/2026-01", fold)
    assert vault.push(("refs/gitgate/origin/archive/2026-01", None)) == ""


# an archived gate stays archived, however the push is put together


def test_archived_and_opened_in_one_push(vault: Vault) -> None:
    """In either order, at whatever tip, new or open before."""
    gate = vault.closed()
    fold = vault.fold(None, (gate.id, gate.tip))
    grown = vault.seat.ask()
    stop(vault.seat.desk, grown, "over", push=False)
    vault.git.git("update-ref", "-d", OPEN + gate.id)
    for tip in (gate.tip, gate.history[0].commit):
        for moves in (((MONTH, fold), (OPEN + gate.id, tip)), ((OPEN + gate.id, tip), (MONTH, fold))):
            assert "by this very push" in vault.push(*moves)
    now = vault.seat.now(grown)
    vault.git.git("update-ref", OPEN + now.id, now.history[0].commit)
    both = vault.fold(None, (now.id, now.tip))
    assert "by this very push" in vault.push((MONTH, both), (OPEN + now.id, now.tip))
    assert "archive it first" in vault.push((MONTH, both), (OPEN + now.id, None))


def test_a_gate_is_in_one_month_alone(vault: Vault) -> None:
    """Neither in a later month, with another record, nor in two months of one push."""
    gate = vault.closed()
    open_tip = gate.history[0].commit
    vault.archive(gate)
    vault.git.git("update-ref", OPEN + gate.id, open_tip)
    stop(vault.seat.desk, vault.seat.now(gate), "otherwise", push=False)
    other = vault.seat.now(gate)
    vault.git.git("update-ref", "-d", OPEN + gate.id)
    for tip in (gate.tip, other.tip):
        assert "in the archive of 2026-01 already" in vault.push((NEXT, vault.fold(None, (gate.id, tip))))
    second = vault.closed()
    folds = (
        (MONTH, vault.fold(vault.at(MONTH), (second.id, second.tip))),
        (
            NEXT,
            vault.fold(None, (second.id, second.tip)),
        ),
    )
    assert "archived twice" in vault.push(*folds)
    assert "another" not in vault.push((MONTH, folds[0][1]))


# a gate that waits is not taken away


def test_a_waiting_gate_is_not_archived(vault: Vault) -> None:
    """Not alone, not among others, not as words that came late; so its open ref cannot go either."""
    waiting, over = vault.seat.ask(), vault.closed()
    pair = (waiting.id, waiting.tip)
    assert "awaiting, not closed" in vault.push((MONTH, vault.fold(None, pair)))
    assert "awaiting, not closed" in vault.push((MONTH, vault.fold(None, (over.id, over.tip), pair)))
    late = vault.fold(None, (over.id, over.tip))
    assert "nothing can come late" in vault.push((MONTH, vault.fold(late, late=[Late(*pair)])))
    assert vault.push((MONTH, late)) == ""
    assert "nothing can come late" in vault.push((MONTH, vault.fold(late, late=[Late(*pair)])))
    assert "archive it first" in vault.push((OPEN + waiting.id, None))


def test_what_an_archive_took_before_there_was_a_hook(vault: Vault) -> None:
    """A waiting gate that it names is not let go for that."""
    waiting = vault.seat.ask()
    vault.git.git("update-ref", MONTH, vault.fold(None, (waiting.id, waiting.tip)))
    assert "was not closed" in vault.push((OPEN + waiting.id, None))


def test_a_gate_is_archived_as_it_is_here(vault: Vault) -> None:
    """Not as it was before somebody spoke, nor as another end of it that was never here."""
    gate = vault.closed()
    vault.git.git("update-ref", OPEN + gate.id, gate.history[0].commit)
    vault.seat.answer(gate, "Postgres", push=False)
    assert "has changed since" in vault.push((MONTH, vault.fold(None, (gate.id, gate.tip))))


def test_a_gate_that_is_open_here_is_not_archived_ahead_of_it(vault: Vault) -> None:
    """As somebody closed it elsewhere, or will close it: it would be over in the archive, and go on as an open one."""
    gate, other = vault.closed(), vault.closed()
    begun = gate.history[0].commit
    vault.git.git("update-ref", OPEN + gate.id, begun)
    ahead = (gate.id, gate.tip)
    assert "has changed since" in vault.push((MONTH, vault.fold(None, ahead)))
    assert "has changed since" in vault.push((MONTH, vault.fold(None, (other.id, other.tip), ahead)))
    both = ((MONTH, vault.fold(None, ahead)), (OPEN + gate.id, gate.tip))
    assert "closed by this very push" in vault.push(*both)
    assert vault.push((OPEN + gate.id, gate.tip)) == ""
    vault.archive(gate)


def test_who_may_end_it_is_asked(vault: Vault) -> None:
    """The policy hears of what the fold's record has beyond the one here: all of it, where none is here."""
    gate = vault.closed()
    fold = vault.fold(None, (gate.id, gate.tip))
    asked: list[tuple[str, str | None]] = []

    def refuse(found: Gate, old: str | None) -> str:
        asked.append((found.tip, old))
        return "the policy says no"

    for here in (gate.tip, None):
        vault.git.git("update-ref", *(("-d", OPEN + gate.id) if here is None else (OPEN + gate.id, here)))
        assert vault.push((MONTH, fold), beyond=refuse) == "the policy says no"
    assert asked == [(gate.tip, gate.tip), (gate.tip, None)]


def test_words_that_came_late_are_somebodys(vault: Vault) -> None:
    """They are kept beside the gate, and judged from where their author stood; nothing else is put there."""
    gate = vault.closed()
    begun = gate.history[0].commit
    vault.git.git("update-ref", OPEN + gate.id, begun)
    late = vault.seat.answer(gate, "Later", push=False)
    vault.git.git("update-ref", OPEN + gate.id, gate.tip)
    vault.archive(gate)
    (name, blob) = vault.git.git("ls-tree", f"{late.tip}:answers").split("\t")[::-1]
    oid = blob.split()[2]
    honest = vault.fold(vault.at(MONTH), late=[Late(gate.id, late.tip, {name: oid})])
    asked: list[tuple[str, str | None]] = []

    def judge(found: Gate, old: str | None) -> str:
        asked.append((found.tip, old))
        return "not in that name"

    assert vault.push((MONTH, honest), beyond=judge) == "not in that name"
    assert asked == [(late.tip, begun)]
    planted = vault.git.git("hash-object", "-w", "--stdin", input="values: {answer: Eve}\n")
    for files in ({name: planted}, {name: oid, "more.yaml": planted}):
        wrong = vault.fold(vault.at(MONTH), late=[Late(gate.id, late.tip, files)])
        assert "no answer that came late" in vault.push((MONTH, wrong))
    assert vault.push((MONTH, honest)) == ""
    again = vault.fold(vault.at(MONTH), late=[Late(gate.id, late.tip, {name: planted})])
    assert "no answer that came late" in vault.push((MONTH, again))
