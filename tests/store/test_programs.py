"""The programs that this room starts for others: an editor, a pager, git itself; and what is said when they are not there."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from gitgate.errors import Failure, GitFailed, LostRace, Usage
from gitgate.store import work
from gitgate.store.git import Git
from gitgate.store.git.programs import begin_beside, edit_file, editor_of, open_folder, page
from gitgate.store.remote.fetch import branch_ref, fetch_branch, fetch_refs
from gitgate.store.work import touched
from gitgate.store.work.commits import (
    add_trailers,
    conflicts,
    known_tips,
    load_commits,
    made_since,
    move_head,
)
from support.testbed.repositories import Clone, make_bare, run_git

NOWHERE = {"PATH": "/no/such/place"}
WANTED = (("Gate", "7k2fabcdef"),)

# an editor


def test_an_editor_ends_as_it_likes(repo: Clone) -> None:
    """Done, failed, or left with Ctrl-C: which is no failure but the person's wish to stop."""
    place = repo.write("draft")
    edit_file(repo.repository, place, {**os.environ, "GIT_EDITOR": "echo written >"})
    assert place.read_text() == "written\n"
    with pytest.raises(Failure, match="ended with exit 3"):
        edit_file(repo.repository, place, {**os.environ, "GIT_EDITOR": "exit 3;"})
    with pytest.raises(KeyboardInterrupt):
        edit_file(repo.repository, place, {**os.environ, "GIT_EDITOR": "exit 130;"})


def test_an_editor_that_cannot_be_started(repo: Clone) -> None:
    """Which one, and how to choose another."""
    place = repo.write("draft")
    with pytest.raises(Failure, match="'mine' could not be started") as failed:
        edit_file(repo.repository, place, {**NOWHERE, "GIT_EDITOR": "mine"})
    assert failed.value.hint.startswith("git config --global core.editor")
    assert "could not be started" in open_folder("mine", repo.path, NOWHERE)


def test_a_terminal_for_which_git_knows_no_editor(repo: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is guessed."""
    for name in ("GIT_EDITOR", "VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    with pytest.raises(Failure, match="git knows no editor"):
        editor_of(repo.repository, os.environ)


def test_a_folder_is_opened(repo: Clone) -> None:
    """The editor starts in it and is given it; what went wrong is an answer, not an end."""
    assert open_folder("test -d", repo.path, os.environ) == ""
    assert "ended with exit 4" in open_folder("exit 4;", repo.path, os.environ)


# a pager


def test_a_pager_that_is_not_there(tmp_path: Path) -> None:
    """Whoever wanted to show something shows it without; one that was left early has been seen."""
    seen = tmp_path / "seen"
    assert page(f"cat > '{seen}'", b"text\n", os.environ)
    assert seen.read_bytes() == b"text\n"
    assert page("exit 1", b"text\n" * 100_000, os.environ)
    assert not page("no-such-pager-here", b"text\n", os.environ)
    assert not page("cat", b"text\n", NOWHERE)


# git


def test_a_git_that_takes_too_long(repo: Clone) -> None:
    """It is ended, and is told apart from one that failed."""
    git = Git(repo.path, os.environ, config=["alias.slow=!sleep 2"])
    with pytest.raises(GitFailed, match="did not finish within") as late:
        git.run("slow", timeout=0.2)
    assert late.value.status == 124


def test_no_git(repo: Clone, tmp_path: Path) -> None:
    """Told apart: no program, and no folder to run it in."""
    with pytest.raises(Failure, match="git is not on PATH"):
        Git(repo.path, NOWHERE).text("version")
    with pytest.raises(Failure, match="git is not on PATH"):
        Git(repo.path, NOWHERE).begin("version")
    with pytest.raises(Failure, match="is not a directory"):
        Git(tmp_path / "none", os.environ).text("version")
    (tmp_path / "file").touch()
    with pytest.raises(Failure, match="file is not a directory"):
        Git(tmp_path / "file", os.environ).begin("version")


def test_a_listing_that_breaks_off_is_no_short_listing(repo: Clone) -> None:
    """Whoever reads it to its end learns that it was not all."""
    with pytest.raises(GitFailed, match="rev-list"):
        list(repo.repository.git.records("rev-list", "no-such-commit"))


# commits, paths and branches, where something is missing


def test_commits_where_there_are_none(person: object, tmp_path: Path, repo: Clone) -> None:
    """An agent that has committed nothing made nothing; what is no commit cannot be tied to a decision."""
    run_git("init", "-q", "empty", cwd=tmp_path)
    assert made_since(Git(tmp_path / "empty", os.environ), []) == []
    with pytest.raises(GitFailed, match="is no commit"):
        load_commits(repo.repository.git, [repo.git("rev-parse", "HEAD:README")])


def test_a_message_in_another_encoding_stays_as_it_is(repo: Clone) -> None:
    """We could only break it; the commit above it gets its trailer, and its parent stays."""
    known = known_tips(repo.repository)
    repo.git(
        "-c", "i18n.commitEncoding=latin1", "commit", "-q", "--allow-empty", "-F", "-", input=b"caf\xe9\n"
    )
    repo.commit("plain")
    before = made_since(repo.repository.git, known)
    after = add_trailers(repo.repository.git, before, WANTED)
    assert after[0] == before[0]
    assert after[1] != before[1]
    assert repo.git("rev-parse", "HEAD", "HEAD^") == f"{after[1]}\n{after[0]}"


def test_commits_that_head_is_not_at(repo: Clone) -> None:
    """An agent that went back to an older commit stays there; the trailers are put on what it made."""
    known = known_tips(repo.repository)
    made = repo.commit("made")
    repo.git("checkout", "-q", "--detach", "HEAD^")
    stands = repo.git("rev-parse", "HEAD")
    (new,) = add_trailers(repo.repository.git, [made], WANTED)
    assert new != made
    assert repo.git("rev-parse", "HEAD") == stands
    assert (stands in known, made in known) == (True, False)


def test_head_that_moved_meanwhile(repo: Clone) -> None:
    """Somebody works there: it is left where it is."""
    old, new = repo.git("rev-parse", "HEAD"), repo.commit("new")
    with pytest.raises(LostRace, match="HEAD was moved"):
        move_head(repo.repository.git, old, old)
    assert repo.git("rev-parse", "HEAD") == new


def test_conflicts_that_git_cannot_tell(repo: Clone) -> None:
    """With a commit that is not here there are none to name."""
    assert conflicts(repo.repository.git, repo.head(), "1" * 40) == []


def test_what_work_touches_without_a_base(repo: Clone) -> None:
    """Everything in it; where its objects, or those that it is compared with, are not here, nobody knows."""
    repo.commit("more", other="o")
    head = repo.git("rev-parse", "HEAD")
    assert touched(repo.repository, None, None, head) == ("README", "other")
    assert touched(repo.repository, None, f"{head}^", head) == ("other",)
    assert touched(repo.repository, None, None, "1" * 40) is None
    assert touched(repo.repository, None, "1" * 40, head) is None
    unrelated = repo.git("commit-tree", "HEAD^{tree}", "-m", "unrelated")
    assert touched(repo.repository, unrelated, f"{head}^", head) == ("README", "other")


@pytest.mark.parametrize("name", ["-x", "HEAD", "a..b", "a b"])
def test_names_that_no_branch_has(name: str) -> None:
    """They are refused before git is asked."""
    with pytest.raises(Usage):
        branch_ref(name)


def test_a_branch_that_is_not_there(repo: Clone, tmp_path: Path) -> None:
    """It is none; a repository that is not there is another thing."""
    server = make_bare(tmp_path / "server.git")
    repo.git("remote", "add", "origin", str(server.path))
    repo.git("push", "-q", "origin", "main")
    assert fetch_branch(repo.repository, "origin", "main") == repo.git("rev-parse", "main")
    assert fetch_branch(repo.repository, "origin", "topic") is None
    server.path.rename(tmp_path / "away")
    with pytest.raises(Failure):
        fetch_branch(repo.repository, "origin", "main")


@pytest.mark.parametrize("name", ["open/a/b", "open/*", "Open/a", "refs/hitl/open/..", "open"])
def test_names_that_no_gate_has(repo: Clone, name: str) -> None:
    """A pattern would bring in what nobody asked for."""
    with pytest.raises(Usage, match="not a gate's ref"):
        fetch_refs(repo.repository, "origin", [name])


def test_work_that_cannot_be_restored_is_not_told_as_work_that_cannot_be_saved() -> None:
    """Whoever restores has nothing to ask again."""
    failed = GitFailed("git worktree add failed", stderr="fatal: no space left on device")
    restoring, saving = work.missing_or_failed(failed), work.work_failed(failed)
    assert (restoring.message, restoring.hint) == (
        "the work cannot be restored here: fatal: no space left on device",
        "mend that, and try again",
    )
    assert "cannot be saved: fatal: no space" in saving.message
    assert "--no-work" in saving.hint


@pytest.mark.parametrize("how", ["done", "failed", "killed in the middle"])
def test_our_own_work_in_a_second_process(how: str) -> None:
    """All that it gave, or nothing."""

    def work() -> bytes:
        if how == "failed":
            raise MemoryError
        if how != "done":
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(
                signal.ITIMER_REAL, 0.1
            )  # more than a pipe holds is written, and nobody reads yet
        return b"x" * 200_000

    told = begin_beside(work)
    assert told is not None
    if how.startswith("killed"):
        time.sleep(0.3)
    assert told() == (b"x" * 200_000 if how == "done" else b"")
