"""Ended runs in the archive: folded, read again, never back, and what a shared repository takes of that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gitgate.audit.auditing import audit
from gitgate.context import Desk
from gitgate.errors import IllegalEvent
from gitgate.exchange.syncing import sync
from gitgate.flows.journal import HeldRun, begin_run, find_run, take_run
from gitgate.record.runs import Run, RunEvent, dump_run_event, run_id
from gitgate.sharing import refusals
from gitgate.sharing.archiving import fold_closed
from gitgate.store.git.objects import open_objects
from gitgate.store.git.refs import ARCHIVE, RUNS, Update
from gitgate.store.records import Signature
from gitgate.store.records.archive import Binder
from support.testbed.command import Command
from support.testbed.repositories import Clone, GitError

BY = Signature("mallory <mallory@example.org>", 1_780_000_000)


def over(desk: Desk, *, end: str = "completed", **said: Any) -> Run:
    """A run of two steps that has ended."""
    held = begin_run(desk, {"flow": "feature"})
    held.append("begun", step="step:a#1", kind="step", name="a")
    held.append("done", step="step:a#1", result=1)
    return held.leave(end, **said)


@pytest.mark.slow
def test_an_ended_run_is_folded_and_read_again(
    repo: Clone, cli: Command, desks: Callable[[Clone], Desk]
) -> None:
    """Its ref goes; its files are together in the tree; every verb that reads it finds it; one that waits stays."""
    desk = desks(repo)
    run = over(desk, result="done")
    waits = begin_run(desk, {"flow": "other"}).leave("waiting", gates=[])
    said = cli("archive", "--json", code=0).json
    assert (said["folded"], said["runs"], said["kept"]) == ([], [run.id], {})
    assert repo.refs(RUNS) == {RUNS + waits.id: waits.tip}
    (month,) = repo.refs(ARCHIVE)
    files = repo.git("ls-tree", "--name-only", f"{month}:runs/{run.id[:2]}/{run.id}").split()
    assert len(files) == len(run.events) == 5
    assert [row["id"] for row in cli("list", "--runs", "--json", code=0).json["runs"]] == [waits.id]
    rows = cli("list", "--runs", "--all", "--json", code=0).json["runs"]
    assert {row["id"]: row["status"] for row in rows} == {waits.id: "waiting_human", run.id: "completed"}
    shown = cli("show", run.id[:5], "--json", code=0).json
    assert (shown["id"], shown["archived"], shown["result"]) == (run.id, True, "done")
    assert cli("log", run.id, "--json", code=0).json["events"][0]["event"] == "completed"
    checked = cli("verify", "--json", code=0).json
    assert (checked["runs"], checked["problems"], checked["notes"]) == (2, [], [])
    assert cli("verify", run.id[:6], "--json", code=0).json["runs"] == 1
    assert cli("archive", "--json", code=0).json["runs"] == []


@pytest.mark.slow
def test_an_archived_run_is_not_gone_on_with(
    repo: Clone, cli: Command, desks: Callable[[Clone], Desk]
) -> None:
    desk = desks(repo)
    run = over(desk)
    fold_closed(desk)
    for words in (("resume", run.id), ("stop", run.id, "--reason", "x")):
        refused = cli(*words, code=5)
        assert "is over: completed" in refused.err
        assert f"git gate show {run.id[:6]}" in refused.err
    with pytest.raises(IllegalEvent, match="is over"):
        take_run(desk, run.id)
    assert repo.refs(RUNS) == {}


def test_one_that_ended_lately_stays(repo: Clone, cli: Command, desks: Callable[[Clone], Desk]) -> None:
    run = over(desks(repo))
    assert cli("archive", "--older-than", "1h", "--json", code=0).json["runs"] == []
    assert list(repo.refs(RUNS)) == [RUNS + run.id]


@pytest.mark.slow
def test_another_clone_keeps_it_no_longer_and_does_not_bring_it_back(
    bare: Clone, cli: Command, clone_of: Callable[..., Clone], desks: Callable[[Clone], Desk]
) -> None:
    """With the server's hook; a clone that knows of the run hears that it is archived. What is pushed by hand is refused."""
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    ann, bob = clone_of(bare, "ann"), clone_of(bare, "bob")
    run = over(desks(ann))
    sync(desks(bob))
    assert list(bob.refs(RUNS)) == [RUNS + run.id]
    assert fold_closed(desks(ann)).runs == (run.id,)
    assert RUNS + run.id not in bare.refs(RUNS)
    assert not bare.refs("refs/hitl/leases/")
    with pytest.raises(GitError, match="does not come back"):
        bob.git("push", "origin", f"{run.tip}:{RUNS}{run.id}")
    assert sync(desks(bob)).archived == (run.id,)
    assert bob.refs(RUNS) == {}
    assert find_run(desks(bob), run.id).tip == run.tip
    assert audit(desks(bob)).ok
    assert audit(desks(bare)).ok


# the judge of a push


class Vault:
    """The shared repository, and whoever pushes a fold to it."""

    def __init__(self, clone: Clone, desk: Desk) -> None:
        self.clone, self.desk = clone, desk
        self.objects = open_objects(clone.repository, bulk=True)

    def fold(self, base: str | None, *runs: tuple[str, str]) -> str:
        return Binder(self.clone.repository, self.objects, BY).fold("2026-01", base, (), (), runs)

    def fold_of(self, tree: str, base: str, run: Run) -> str:
        """A fold that names a run, with a tree of its own making."""
        words = f"fold\n\n{run.id} run {run.tip}\n"
        return self.clone.git("commit-tree", tree, "-p", base, "-p", run.tip, "-m", words)

    def push(self, *moves: tuple[str, str | None]) -> str:
        there = self.clone.refs("refs/hitl")
        said = refusals(self.desk, [Update(there.get(ref), new, ref) for ref, new in moves])
        for ref, new in () if said else moves:
            self.clone.git("update-ref", *(["-d", ref] if new is None else [ref, new]))
        return " · ".join(said.values())


MONTH, NEXT = f"{ARCHIVE}2026-01", f"{ARCHIVE}2026-02"


@pytest.fixture
def vault(repo: Clone, desks: Callable[[Clone], Desk]) -> Vault:
    return Vault(repo, desks(repo))


def test_a_run_leaves_only_through_the_archive(vault: Vault) -> None:
    """First the archive gains it, then its journal goes, at the tip that was archived; and it never comes back."""
    run = over(vault.desk)
    assert "is kept" in vault.push((RUNS + run.id, None))
    fold = vault.fold(None, (run.id, run.tip))
    assert "is kept" in vault.push((MONTH, fold), (RUNS + run.id, None))
    assert vault.push((MONTH, fold)) == ""
    assert vault.push((RUNS + run.id, None)) == ""
    assert "does not come back" in vault.push((RUNS + run.id, run.tip))
    assert "in the archive of 2026-01 already" in vault.push((NEXT, vault.fold(None, (run.id, run.tip))))


def test_only_an_ended_run_is_taken_into_the_archive(vault: Vault) -> None:
    """And only as it stands here: not cut short, not gone on with by the fold itself."""
    waits = begin_run(vault.desk, {"flow": "feature"}).leave("waiting", gates=[])
    assert "has ended" in vault.push((MONTH, vault.fold(None, (waits.id, waits.tip))))
    held: HeldRun = take_run(vault.desk, waits.id)
    before = held.run.tip
    ended = held.leave("completed")
    vault.clone.git("update-ref", RUNS + waits.id, before)
    assert "is another one here" in vault.push((MONTH, vault.fold(None, (ended.id, ended.tip))))
    vault.clone.git("update-ref", RUNS + waits.id, ended.tip)
    assert "by this very push" in vault.push(
        (MONTH, vault.fold(None, (ended.id, ended.tip))),
        (RUNS + "abcdefghjk", ended.tip),
        (RUNS + ended.id, before),
    )


def test_a_run_that_was_never_shared_is_judged_as_it_is_archived(vault: Vault) -> None:
    run = over(vault.desk)
    fold = vault.fold(None, (run.id, run.tip))
    vault.clone.git("update-ref", "-d", RUNS + run.id)
    assert "belongs to run" in vault.push((MONTH, vault.fold(None, ("abcdefghjk", run.tip))))
    assert vault.push((MONTH, fold)) == ""


@pytest.mark.parametrize("how", ["other files", "one less", "unnamed", "no run of that name", "taken out"])
def test_a_fold_that_is_not_what_it_says(vault: Vault, how: str) -> None:
    """The folder of a run has the files of its journal, and nothing else; what the archive has, it keeps."""
    run, other = over(vault.desk), over(vault.desk, end="failed", error={"class": "a:B", "message": "x"})
    first = vault.fold(None, (run.id, run.tip))
    assert vault.push((MONTH, first)) == ""
    whole = vault.fold(first, (other.id, other.tip))
    git, tree = vault.clone.git, vault.clone.git("rev-parse", f"{whole}^{{tree}}")
    folder = f"runs/{other.id[:2]}/{other.id}"

    def with_folder(entries: str, *, at: str = folder) -> str:
        """The same tree with something else at that place."""
        parts, new = at.split("/"), git("mktree", input=entries) if entries else ""
        for depth in range(len(parts) - 1, -1, -1):
            path = "/".join(parts[:depth])
            there = git("ls-tree", f"{tree}:{path}" if path else tree).splitlines()
            kept = [line for line in there if line.rpartition("\t")[2] != parts[depth]]
            new = git("mktree", input="".join(f"{line}\n" for line in [*kept, *([f"040000 tree {new}\t{parts[depth]}"] if new else [])]))  # fmt: skip
        return new

    files = git("ls-tree", f"{tree}:{folder}").splitlines()
    blob = git("hash-object", "-w", "--stdin", input="x")
    forged = {
        "other files": lambda: with_folder(
            "".join(f"{line}\n" for line in [*files, f"100644 blob {blob}\tmore.json"])
        ),
        "one less": lambda: with_folder("".join(f"{line}\n" for line in files[1:])),
        "unnamed": lambda: tree,
        "no run of that name": lambda: git("rev-parse", f"{first}^{{tree}}"),
        "taken out": lambda: with_folder("", at=f"runs/{run.id[:2]}/{run.id}"),
    }[how]()
    bad = (
        git("commit-tree", forged, "-p", first, "-m", "fold\n")
        if how == "unnamed"
        else vault.fold_of(forged, first, other)
    )
    said = vault.push((MONTH, bad))
    assert any(words in said for words in ("otherwise than", "does not take it in", "out of the archive")), (
        said
    )
    assert vault.push((MONTH, whole)) == ""


def called(desk: Desk) -> tuple[HeldRun, Run]:
    """A run that goes on, and one that is a step of it and has ended."""
    above, at = begin_run(desk, {"flow": "outer"}), desk.now
    said = {"flow": "inner", "parent": above.run.id, "parent_step": "flow:inner#1", "nonce": "n"}
    run = run_id(dump_run_event(RunEvent("started", 0, at, said)))
    above.append("begun", step="flow:inner#1", kind="flow", name="inner", run=run)
    return above, begin_run(desk, said, at=at).leave("completed")


@pytest.mark.slow
def test_a_run_is_folded_with_the_one_that_called_it(
    repo: Clone, cli: Command, desks: Callable[[Clone], Desk]
) -> None:
    """Not before: that one may still look at what it came to."""
    above, below = called(desks(repo))
    assert cli("archive", "--json", code=0).json["runs"] == []
    above.append("done", step="flow:inner#1")
    above.leave("completed")
    assert sorted(cli("archive", "--json", code=0).json["runs"]) == sorted([above.run.id, below.id])
    assert cli("show", below.id, "--json", code=0).json["parent"]["run"] == above.run.id
    assert audit(desks(repo)).problems == ()


def test_a_step_is_not_taken_into_the_archive_before_its_run(vault: Vault) -> None:
    above, below = called(vault.desk)
    assert "archived with that one, or after it" in vault.push(
        (MONTH, vault.fold(None, (below.id, below.tip)))
    )
    above.append("done", step="flow:inner#1")
    ended = above.leave("completed")
    fold = vault.fold(None, (below.id, below.tip), (ended.id, ended.tip))
    assert vault.push((MONTH, fold)) == ""


def test_verify_finds_a_run_that_no_step_names(repo: Clone, desks: Callable[[Clone], Desk]) -> None:
    above = over(desks(repo))
    said = {"flow": "inner", "parent": above.id, "parent_step": "flow:inner#1"}
    run = begin_run(desks(repo), said).leave("completed")
    (problem,) = audit(desks(repo)).problems
    assert (problem.gate, problem.kind) == (run.id, "caller")
