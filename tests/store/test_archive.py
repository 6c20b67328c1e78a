"""Closed gates folded away, in this repository alone: found again by id, nothing lost, whoever folds at once."""

from __future__ import annotations

import pytest

from gitgate.errors import Usage
from gitgate.store.records import Signature
from gitgate.store.records.archive import archived, archived_ids, contents, listing, shelves
from gitgate.store.records.closing import Closed, fold, prune
from support.sharing import OPEN, answered, late_files, name, open_gates, start_closers
from support.testbed.repositories import Clone

BY = Signature("Ada Lovelace <ada@example.org>", 1_767_323_045)
MONTH = "2026-01"
ARCHIVE = f"refs/hitl/archive/{MONTH}"


def closed(tips: dict[str, str], month: str = MONTH) -> list[Closed]:
    return [Closed(gate, tip, month) for gate, tip in tips.items()]


def test_a_folded_gate_is_found_again(repo: Clone) -> None:
    """Its open ref is gone; its record is a parent of the fold, its files stand in its folder, its tip is found."""
    tips = open_gates(repo, range(3), "yes")
    gate, tip = next(iter(tips.items()))
    done = fold(repo.repository, closed({gate: tip}), by=BY)
    assert (done.gates, done.kept) == ((gate,), {})
    assert set(repo.refs(OPEN)) == {OPEN + other for other in tips if other != gate}
    assert archived(repo.repository, gate) == tip
    assert archived(repo.repository, name(1)) is None
    assert repo.git("rev-parse", f"{ARCHIVE}:{gate[:2]}/{gate}") == repo.git("rev-parse", f"{tip}^{{tree}}")
    assert repo.git("rev-parse", f"{ARCHIVE}^2") == tip
    assert repo.git("log", "-1", "--format=%s%n%b", ARCHIVE).startswith("fold 1 gate into 2026-01\n")
    root = repo.git("rev-list", "--max-parents=0", "--first-parent", ARCHIVE)
    assert repo.git("ls-tree", root) == ""
    repo.git("fsck", "--strict")


def test_months_are_apart_and_the_newest_is_asked_first(repo: Clone) -> None:
    """Each month is a ref of its own; a list has all of them."""
    tips = open_gates(repo, range(4))
    gates = sorted(tips)
    batch = closed({g: tips[g] for g in gates[:2]}, "2025-12") + closed({g: tips[g] for g in gates[2:]})
    fold(repo.repository, batch, by=BY)
    assert [shelf.month for shelf in shelves(repo.repository)] == ["2026-01", "2025-12"]
    assert {one.id: (one.month, one.tip) for one in listing(repo.repository)} == {
        gate: ("2025-12" if gate in gates[:2] else MONTH, tips[gate]) for gate in gates
    }
    assert archived_ids(repo.repository, gates[0][:4]) == [gates[0]]
    assert archived_ids(repo.repository, "2222") == []


def test_folds_take_at_most_a_hundred(repo: Clone) -> None:
    """250 gates are three folds, and every one is found with its own tip."""
    tips = open_gates(repo, range(250))
    fold(repo.repository, closed(tips), by=BY)
    sizes = repo.git("log", "--first-parent", "--format=%P", ARCHIVE).splitlines()
    assert [len(parents.split()) - 1 for parents in sizes if parents] == [50, 100, 100]
    assert {one.id: one.tip for one in listing(repo.repository)} == tips
    assert repo.refs(OPEN) == {}


def test_folding_again_changes_nothing(repo: Clone) -> None:
    """A repeat finds the gates archived and leaves the archive as it is."""
    tips = open_gates(repo, range(5))
    first = fold(repo.repository, closed(tips), by=BY)
    before = repo.refs()
    assert fold(repo.repository, closed(tips), by=BY) == first
    assert repo.refs() == before


def test_a_gate_that_changed_meanwhile_stays_open(repo: Clone) -> None:
    """Only the exact tip that was named is folded away."""
    tips = open_gates(repo, range(2))
    gate = name(0)
    newer = answered(repo, gate, tips[gate], "late")
    done = fold(repo.repository, closed(tips), by=BY)
    assert done.gates == (name(1),)
    assert "changed" in done.kept[gate]
    assert repo.refs(OPEN) == {OPEN + gate: newer}
    assert archived(repo.repository, gate) is None


def test_words_that_come_after_are_kept_beside_the_record(repo: Clone) -> None:
    """A tip with one more answer than the archive's: the answer is in late/, the commit alive, the ref gone."""
    tips = open_gates(repo, [0, 1], "yes")
    gate, tip = name(0), tips[name(0)]
    fold(repo.repository, closed(tips), by=BY)
    newer = answered(repo, gate, answered(repo, gate, tip, "no"), "never")
    done = fold(repo.repository, closed({gate: newer}, "2026-02"), by=BY)
    assert (done.gates, done.late) == ((gate,), (gate,))
    assert archived(repo.repository, gate) == tip
    assert late_files(repo, gate) == {"no.yaml": "note: no", "never.yaml": "note: never"}
    repo.git("merge-base", "--is-ancestor", newer, ARCHIVE)
    assert repo.refs(OPEN) == {}
    assert [shelf.month for shelf in shelves(repo.repository)] == [MONTH]
    assert repo.git("ls-tree", "--name-only", f"{ARCHIVE}:{gate[:2]}/{gate}").split() == [
        "answers",
        "late",
        "question.yaml",
    ]
    assert fold(repo.repository, closed({gate: newer}), by=BY).late == ()


def test_an_older_tip_than_the_archives_brings_nothing_back(repo: Clone) -> None:
    """A stale ref whose every commit the archive has is removed without a fold."""
    gate = name(0)
    old = open_gates(repo, [0])[gate]
    new = answered(repo, gate, old, "yes")
    fold(repo.repository, closed({gate: new}), by=BY)
    before = repo.refs("refs/hitl/archive")
    repo.git("update-ref", OPEN + gate, old)
    assert fold(repo.repository, closed({gate: old}), by=BY).gates == (gate,)
    assert repo.refs("refs/hitl") == before


def test_work_becomes_evidence(repo: Clone) -> None:
    """The work of a closed gate is kept by month; the work's, session's and lease's refs go."""
    tips = open_gates(repo, range(2))
    base = repo.git("rev-parse", "HEAD")
    work = repo.git("commit-tree", "-p", base, "-m", "work", f"{base}^{{tree}}")
    for gate in tips:
        for kind in ("work", "sessions", "leases"):
            repo.git("update-ref", f"refs/hitl/{kind}/{gate}", work)
    done = fold(repo.repository, [Closed(name(0), tips[name(0)], MONTH, work)], by=BY)
    assert done.gates == (name(0),)
    repo.git("merge-base", "--is-ancestor", work, f"refs/hitl/evidence/{MONTH}")
    assert [ref for ref in repo.refs("refs/hitl") if name(0) in ref] == []
    assert len([ref for ref in repo.refs("refs/hitl") if name(1) in ref]) == 4


def test_prune_takes_what_lies_beside_archived_gates(repo: Clone) -> None:
    """Sessions and leases of archived gates go; their work only where evidence has it; open gates keep all."""
    tips = open_gates(repo, range(3))
    base = repo.git("rev-parse", "HEAD")
    fold(repo.repository, [Closed(name(0), tips[name(0)], MONTH, base)], by=BY)
    fold(repo.repository, [Closed(name(1), tips[name(1)], MONTH)], by=BY)
    for gate in tips:
        for kind in ("work", "sessions", "leases"):
            repo.git("update-ref", f"refs/hitl/{kind}/{gate}", base)
    gone = prune(repo.repository)
    kinds = {gate: sorted(ref.split("/")[2] for ref in gone if ref.endswith(gate)) for gate in tips}
    assert kinds == {name(0): ["leases", "sessions", "work"], name(1): ["leases", "sessions"], name(2): []}
    assert prune(repo.repository) == []


def test_a_line_whose_commit_is_no_parent_does_not_count(repo: Clone) -> None:
    """A fold's message cannot claim a gate that the fold does not hold."""
    tips = open_gates(repo, range(2))
    fold(repo.repository, closed({name(0): tips[name(0)]}), by=BY)
    before = repo.git("rev-parse", ARCHIVE)
    forged = repo.git(
        "commit-tree", "-p", before, "-m", f"fold\n\n{name(1)} {tips[name(1)]}", f"{before}^{{tree}}"
    )
    repo.git("update-ref", ARCHIVE, forged)
    assert archived(repo.repository, name(1)) is None
    assert set(contents(repo.repository, shelves(repo.repository))) == {name(0)}


@pytest.mark.parametrize("month", ["2026-13", "2026-1", "../x", "2026-01/x", ""])
def test_a_month_is_a_month(repo: Clone, month: str) -> None:
    """No other ref can be made by folding."""
    with pytest.raises(Usage):
        fold(repo.repository, [Closed(name(0), "1" * 40, month)], by=BY)


@pytest.mark.slow
def test_eight_closers_in_one_clone_lose_nothing(repo: Clone) -> None:
    """8 processes fold 50 gates each into the same month at once: 400 of 400 are found, none is open."""
    tips = open_gates(repo, range(400))
    start_closers([repo.path] * 8, tips, "")
    assert {one.id: one.tip for one in listing(repo.repository)} == tips
    assert repo.refs(OPEN) == {}
