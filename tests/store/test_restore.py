"""Saved work is put on a branch that nobody else holds, wherever it is asked for, or nothing is left behind."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gitgate.errors import WorkFailed
from gitgate.store.git import Git, GitResult
from gitgate.store.work import restore
from gitgate.store.work.restore import diff, matches, open_worktree, remove_worktree
from gitgate.store.work.snapshot import Snapshot
from store.hard_cases import CASES, listing, reopen, snap, status
from support.testbed.repositories import Clone, run_git


@pytest.fixture
def asked(repo: Clone) -> Snapshot:
    """Work saved from `repo`, staged, unstaged and untracked."""
    CASES["plain"](repo)
    return snap(repo)


def leave(repo: Clone) -> None:
    """Put the agent's own working tree on another branch, with nothing in it."""
    repo.git("reset", "-q", "--hard")
    repo.git("clean", "-qfdx")
    repo.git("checkout", "-q", "-b", "elsewhere")


def test_a_branch_that_is_free_and_unmoved_is_taken_up(repo: Clone, asked: Snapshot, tmp_path: Path) -> None:
    """The agent goes on on its own branch, and nothing needs saying."""
    leave(repo)
    place = reopen(repo, asked, tmp_path / "w")
    assert (place.branch, place.new_branch, place.notes) == ("main", False, ())
    assert run_git("rev-parse", "--abbrev-ref", "HEAD", cwd=place.directory) == b"main\n"


def test_a_branch_that_is_checked_out_elsewhere(repo: Clone, asked: Snapshot, tmp_path: Path) -> None:
    """Two working trees on one branch would undo each other's commits: a new branch, and the reason."""
    place = reopen(repo, asked, tmp_path / "w")
    assert (place.branch, place.new_branch) == ("gate/7k2f", True)
    assert str(repo.path) in place.notes[0]
    assert repo.git("rev-parse", "gate/7k2f") == asked.base
    assert status(place.directory) == status(repo.path)


def test_a_branch_that_has_moved(repo: Clone, asked: Snapshot, tmp_path: Path) -> None:
    """The work was made on base; on another commit it would look like undoing what came since."""
    leave(repo)
    repo.git("branch", "-f", "main", repo.commit("on"))
    place = reopen(repo, asked, tmp_path / "w")
    assert place.branch == "gate/7k2f"
    assert "has moved" in place.notes[0]
    assert repo.git("rev-parse", "gate/7k2f") == asked.base


def test_a_branch_in_the_middle_of_a_rebase_is_held(repo: Clone, tmp_path: Path) -> None:
    """Its HEAD is detached for the while, and git will move the branch when the rebase is through."""
    CASES["rebase"](repo)
    onto = repo.git("rev-parse", "topic")
    repo.git("worktree", "add", "-q", "--detach", str(tmp_path / "other"), onto)
    other = Clone(tmp_path / "other")
    other.write("f", "edited\n")
    snapshot = snap(other)
    place = open_worktree(
        repo.repository,
        base=snapshot.base,
        staged=snapshot.staged,
        work=snapshot.work,
        directory=tmp_path / "w",
        branch="topic",
        fallback_branch="gate/7k2f",
    )
    assert place.branch == "gate/7k2f"


def test_a_branch_that_is_gone_is_made_again(repo: Clone, asked: Snapshot, tmp_path: Path) -> None:
    """On another machine the agent's branch was never there."""
    leave(repo)
    repo.git("branch", "-q", "-D", "main")
    place = reopen(repo, asked, tmp_path / "w")
    assert (place.branch, place.new_branch) == ("main", True)
    assert repo.git("rev-parse", "main") == asked.base
    assert "main" in place.notes[0]


def test_a_second_time_takes_another_name(repo: Clone, asked: Snapshot, tmp_path: Path) -> None:
    """What the first one committed is not lost; a fallback that stands unused at base is taken again."""
    first = reopen(repo, asked, tmp_path / "one")
    second = reopen(repo, asked, tmp_path / "two")
    assert (first.branch, second.branch) == ("gate/7k2f", "gate/7k2f-2")
    remove_worktree(repo.repository, second.directory, force=True)
    assert reopen(repo, asked, tmp_path / "three").branch == "gate/7k2f-2"


def test_detached_on_request_or_as_it_was(repo: Clone, asked: Snapshot, tmp_path: Path) -> None:
    """A person who only looks holds no branch; an agent that had none gets none."""
    place = reopen(repo, asked, tmp_path / "look", detach=True)
    assert (place.branch, place.new_branch) == (None, False)
    repo.git("checkout", "-q", "--detach")
    assert reopen(repo, snap(repo), tmp_path / "again").branch is None
    assert not repo.git("branch", "--list", "gate/*")


def test_an_unborn_branch_comes_back_unborn(person: object, tmp_path: Path) -> None:
    """The first commit of the repository is still to be made, with what was staged for it."""
    run_git("init", "-q", "young", cwd=tmp_path)
    clone = Clone(tmp_path / "young")
    clone.write("staged", "s\n")
    clone.git("add", "staged")
    clone.write("untracked", "u\n")
    snapshot = snap(clone)
    place = reopen(clone, snapshot, tmp_path / "w")
    assert place.branch == "gate/7k2f"
    assert status(place.directory) == status(clone.path)
    there = Clone(place.directory)
    there.git("commit", "-q", "-m", "first")
    assert there.git("log", "--format=%P%s") == "first"
    assert matches(clone.repository, snapshot.work, snapshot.staged)


def test_an_unborn_branch_that_was_born_meanwhile(person: object, tmp_path: Path) -> None:
    """Somebody else made the first commit: this work gets a branch of its own."""
    run_git("init", "-q", "young", cwd=tmp_path)
    clone = Clone(tmp_path / "young")
    clone.write("f", "f\n")
    snapshot = snap(clone)
    clone.commit("first")
    clone.git("checkout", "-q", "--detach")
    place = reopen(clone, snapshot, tmp_path / "w")
    assert place.branch == "gate/7k2f"
    assert status(place.directory) == [b"? f"]


def test_a_merge_goes_on_where_it_is_restored(repo: Clone, tmp_path: Path) -> None:
    """Conflicts, MERGE_HEAD and all: finishing it makes a merge of the same two parents."""
    CASES["merge"](repo)
    place = reopen(repo, snap(repo), tmp_path / "w")
    there = Clone(place.directory)
    for name in ("both", "twice"):
        there.write(name, "solved\n")
    there.git("rm", "-q", "-f", "--", "gone")
    there.git("add", "both", "twice", "kept")
    there.git("commit", "-q", "--no-edit")
    assert (
        there.git("log", "-1", "--format=%P")
        == f"{repo.git('rev-parse', 'HEAD')} {repo.git('rev-parse', 'side')}"
    )


def test_another_operation_is_told(repo: Clone, tmp_path: Path) -> None:
    """A rebase cannot be moved: its steps are files of the one working tree."""
    CASES["rebase"](repo)
    place = reopen(repo, snap(repo), tmp_path / "w")
    assert any("rebase" in note for note in place.notes)


@pytest.mark.parametrize("name", ["with space/ünï", "-dash", os.fsdecode(b"not-\xff-utf8")])
def test_any_directory(repo: Clone, asked: Snapshot, tmp_path: Path, name: str) -> None:
    """Spaces, other scripts, a leading dash, no text at all; folders above are made."""
    place = reopen(repo, asked, tmp_path / name)
    assert listing(place.directory) == listing(repo.path)
    assert matches(Clone(place.directory).repository, asked.work, asked.staged)
    remove_worktree(repo.repository, place.directory, force=True)
    assert not place.directory.exists()


def test_a_relative_directory_is_where_the_caller_stands(
    repo: Clone, asked: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not where git happens to run."""
    monkeypatch.chdir(tmp_path)
    assert reopen(repo, asked, Path("w")).directory == tmp_path / "w"
    assert (tmp_path / "w" / "a").exists()


def test_a_directory_that_is_taken_is_left_alone(repo: Clone, asked: Snapshot, tmp_path: Path) -> None:
    """A file, a folder with something in it, a link: an error with what to do, and no branch made."""
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    (tmp_path / "broken").symlink_to("nowhere")
    for name in ("file", "full", "link", "broken", "line\nend"):
        with pytest.raises(WorkFailed, match=r"already there|one line") as failed:
            reopen(repo, asked, tmp_path / name)
        assert failed.value.hint
    assert (tmp_path / "full" / "mine").read_text() == "mine"
    assert set(repo.refs()) == {"refs/heads/main"}
    assert listing(reopen(repo, asked, tmp_path / "empty").directory) == listing(repo.path)


def test_a_directory_that_was_deleted_by_hand_can_be_made_again(
    repo: Clone, asked: Snapshot, tmp_path: Path
) -> None:
    """Git still has it registered, and refuses."""
    place = reopen(repo, asked, tmp_path / "w")
    shutil.rmtree(place.directory)
    assert listing(reopen(repo, asked, tmp_path / "w").directory) == listing(repo.path)


def test_a_bare_repository_is_a_source(bare: Clone, clone_of: Callable[..., Clone], tmp_path: Path) -> None:
    """A build box that has only the server's repository."""
    clone = clone_of(bare, "agent")
    CASES["plain"](clone)
    snapshot = snap(clone)
    clone.git("push", "-q", "origin", f"{snapshot.work}:refs/hitl/work/x")
    place = reopen(bare, snapshot, tmp_path / "w")
    assert status(place.directory) == status(clone.path)
    assert listing(place.directory) == listing(clone.path)
    remove_worktree(bare.repository, place.directory, force=True)


def test_from_another_clone_and_from_a_linked_tree(
    bare: Clone, clone_of: Callable[..., Clone], tmp_path: Path
) -> None:
    """Everything that is needed travels with the one ref: conflicts and the other side of a merge, too."""
    clone = clone_of(bare, "agent")
    CASES["merge"](clone)
    snapshot = snap(clone)
    clone.git("push", "-q", "origin", f"{snapshot.work}:refs/hitl/work/x")
    other = clone_of(bare, "other")
    other.git("fetch", "-q", "origin", "refs/hitl/work/x")
    other.git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    place = reopen(Clone(tmp_path / "linked"), snapshot, tmp_path / "w")
    assert status(place.directory) == status(clone.path)
    assert listing(place.directory) == listing(clone.path)


def test_work_that_is_not_here_says_how_to_get_it(repo: Clone, asked: Snapshot, tmp_path: Path) -> None:
    """The record was fetched, the work was not."""
    for missing in ({"work": "1" * 40}, {"staged": "1" * 40, "work": "1" * 40}):
        ids = {"base": asked.base, "staged": asked.staged, "work": asked.work, **missing}
        with pytest.raises(WorkFailed, match="not in this clone") as failed:
            open_worktree(
                repo.repository,
                **ids,  # type: ignore[arg-type]
                directory=tmp_path / "w",
                branch=None,
                fallback_branch="x",
            )
        assert "sync" in failed.value.hint
    with pytest.raises(WorkFailed, match="not in this clone"):
        diff(repo.repository, asked.base, "1" * 40)
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize(
    "step", ["worktree add", "symbolic-ref", "read-tree --reset -u", "read-tree --reset"]
)
def test_a_failure_on_the_way_leaves_nothing(
    repo: Clone, asked: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Whichever step fails: no directory, no branch, no registered working tree."""
    true_run = Git.run

    def run(self: Git, *args: str, **how: object) -> GitResult:
        line = " ".join(args)
        if step in line and (step != "read-tree --reset" or "-u" not in args):
            true_run(self, "cat-file", "blob", "no-such-object")
        return true_run(self, *args, **how)  # type: ignore[arg-type]

    before = repo.refs()
    monkeypatch.setattr(Git, "run", run)
    with pytest.raises(WorkFailed):
        reopen(repo, asked, tmp_path / "w")
    monkeypatch.undo()
    assert repo.refs() == before
    assert not (tmp_path / "w").exists()
    assert len(run_git("worktree", "list", cwd=repo.path).splitlines()) == 1


def test_removing_keeps_what_would_be_lost(repo: Clone, asked: Snapshot, tmp_path: Path) -> None:
    """Work in it: refused without force, with the command that forces; the branch always stays."""
    place = reopen(repo, asked, tmp_path / "w t")
    with pytest.raises(WorkFailed) as failed:
        remove_worktree(repo.repository, place.directory)
    assert failed.value.hint == f"git worktree remove --force '{place.directory}'"
    assert listing(place.directory) == listing(repo.path)
    remove_worktree(Clone(place.directory).repository, place.directory, force=True)
    assert not place.directory.exists()
    assert repo.git("rev-parse", "gate/7k2f") == asked.base
    with pytest.raises(WorkFailed):
        remove_worktree(repo.repository, tmp_path, force=True)
    assert tmp_path.exists()


def test_a_place_that_cannot_be_made_is_an_error(repo: Clone, asked: Snapshot, tmp_path: Path) -> None:
    """A file where a folder has to be."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(WorkFailed):
        reopen(repo, asked, tmp_path / "file" / "w")


def test_when_every_name_is_taken_it_says_so(
    repo: Clone, asked: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rather than looking for ever."""
    monkeypatch.setattr(restore, "MOST_NAMES", 3)
    other = repo.git("commit-tree", "-m", "x", "HEAD^{tree}")
    for name in ("gate/7k2f", "gate/7k2f-2"):
        repo.git("branch", name, other)
    with pytest.raises(WorkFailed, match="is taken"):
        reopen(repo, asked, tmp_path / "w")


@pytest.mark.slow
@pytest.mark.thorough
def test_many_working_trees_made_at_once(repo: Clone, asked: Snapshot, tmp_path: Path) -> None:
    """Git gives up over one that another git is just making; ours are made in turn."""
    leave(repo)
    with ThreadPoolExecutor(8) as hands:
        for turn in range(6):
            places = [tmp_path / f"{turn}-{number}" for number in range(8)]
            made = list(hands.map(lambda place: reopen(repo, asked, place, detach=True), places))
            assert [place.directory for place in made] == places
            list(hands.map(lambda place: remove_worktree(repo.repository, place, force=True), places))
