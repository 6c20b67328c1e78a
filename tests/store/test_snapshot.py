"""A snapshot is complete, leaves no trace, and is cheap where nothing has changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.errors import Usage, WorkFailed
from gitgate.store.git import Git, GitResult, Started, discover
from gitgate.store.work import snapshot
from gitgate.store.work.plan import changes_of_tree
from gitgate.store.work.snapshot import take
from store.hard_cases import AT, AUTHOR, fingerprint, reopen, snap, status
from support.testbed.repositories import Clone, make_clone, run_git


def tree(clone: Clone, commit: str) -> dict[str, str]:
    """The files of a commit and their blobs."""
    lines = clone.git("ls-tree", "-r", "-z", commit).split("\0")
    return {line.split("\t", 1)[1]: line.split("\t", 1)[0].split()[2] for line in lines if line}


def content(clone: Clone, commit: str, path: str) -> str:
    return clone.git("cat-file", "-p", f"{commit}:{path}")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The git commands that the product runs."""
    seen: list[str] = []
    true_run, true_begin = Git.run, Git.begin

    def run(self: Git, *args: str, **how: object) -> GitResult:
        seen.append(" ".join(args))
        return true_run(self, *args, **how)  # type: ignore[arg-type]

    def begin(self: Git, *args: str) -> Started:
        seen.append(" ".join(args))
        return true_begin(self, *args)

    monkeypatch.setattr(Git, "run", run)
    monkeypatch.setattr(Git, "begin", begin)
    return seen


def test_a_clean_tree_costs_one_git_process(repo: Clone, runs: list[str]) -> None:
    """Nothing changed: base, staged and work are HEAD, and nothing but `status` was asked."""
    here = repo.repository
    runs.clear()
    snapshot = snap(here)
    assert snapshot.base == snapshot.staged == snapshot.work == repo.git("rev-parse", "HEAD")
    assert (snapshot.branch, snapshot.dirty, snapshot.files) == ("main", False, 0)
    assert len(runs) == 1
    assert not here.state_dir.exists()


def test_the_tree_is_walked_once(repo: Clone, runs: list[str]) -> None:
    """A second look at every file would double the price in a large repository."""
    repo.write("README", "changed\n")
    repo.write("new", "new\n")
    here = repo.repository
    runs.clear()
    snap(here)
    walking = [
        run for run in runs if run.startswith(("status", "add", "ls-files", "diff-files", "diff-index"))
    ]
    assert len(walking) == 1
    assert len(runs) <= 6


def test_no_git_is_left_by_what_failed_meanwhile(repo: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done while git looks may fail for reasons of its own."""
    begun: list[Started] = []
    real = Git.begin

    def begin(self: Git, *args: str) -> Started:
        begun.append(real(self, *args))
        return begun[-1]

    def fail() -> None:
        raise KeyError

    monkeypatch.setattr(Git, "begin", begin)
    with pytest.raises(KeyError):
        changes_of_tree(repo.repository.git, untracked=True, meanwhile=fail)
    assert begun[-1].process.returncode is not None


def test_it_counts_what_a_person_would(repo: Clone) -> None:
    """Tracked files changed, untracked files taken, and the lines from base to work."""
    repo.commit(a="1\n2\n3\n", b="b\n")
    repo.write("a", "1\n2\nthree\nfour\n")
    repo.git("rm", "-q", "b")
    repo.write("n", "new\n")
    snapshot = snap(repo)
    assert (snapshot.changed, snapshot.untracked) == (2, 1)
    assert (snapshot.files, snapshot.insertions, snapshot.deletions) == (3, 3, 2)


def test_work_stands_on_staged_and_staged_on_base(repo: Clone) -> None:
    """The line of commits is the one that the protocol names, with the identity that was handed in."""
    repo.write("README", "changed\n")
    snapshot = snap(repo)
    assert repo.git("log", "--format=%H", snapshot.work).splitlines()[:3] == [
        snapshot.work,
        snapshot.staged,
        snapshot.base,
    ]
    who = repo.git("log", "-1", "--format=%an <%ae> %at %cn <%ce> %ct", snapshot.work)
    assert who == f"gitgate <gitgate@example.org> {AT} gitgate <gitgate@example.org> {AT}"


def test_the_same_work_has_the_same_name(repo: Clone) -> None:
    """Nothing of the machine or the moment gets into the commits."""
    repo.write("README", "changed\n")
    repo.git("config", "commit.gpgSign", "true")
    repo.git("config", "i18n.commitEncoding", "ISO-8859-1")
    assert snap(repo) == snap(repo)
    assert "encoding" not in repo.git("cat-file", "-p", snap(repo).work)


def test_nobody_needs_a_name_in_the_configuration(repo: Clone, nobody: None) -> None:
    """Agents ask on machines where `user.email` was never set."""
    repo.write("README", "changed\n")
    assert snap(repo).dirty


def test_an_edit_in_the_same_tick_is_not_lost(repo: Clone) -> None:
    """The copied index keeps its time: a younger one makes git trust a size and time that have not changed."""
    repo.git("config", "core.trustctime", "false")
    repo.git("config", "core.checkStat", "minimal")
    file = repo.write("README", "before\n")
    repo.git("add", "README")
    # Long ago, so that the copy made now is in another second whichever way git counts them.
    when = 1_600_000_000 * 10**9
    os.utime(file, ns=(when, when))
    repo.git("update-index", "--really-refresh")
    os.utime(repo.path / ".git/index", ns=(when, when))
    file.write_text("after!\n")
    os.utime(file, ns=(when, when))
    snapshot = snap(repo)
    assert content(repo, snapshot.staged, "README") == "before"
    assert content(repo, snapshot.work, "README") == "after!"


def test_a_persons_settings_change_nothing(repo: Clone) -> None:
    """What somebody likes `git status` to show says nothing about what an agent has done."""
    repo.commit(old="one\ntwo\nthree\n")
    repo.git("mv", "old", "moved")
    repo.write("deep/new", "new\n")
    plain = snap(repo)
    for setting in (
        "status.showUntrackedFiles=no",
        "status.renames=copies",
        "status.short=true",
        "status.relativePaths=true",
        "status.showStash=true",
        "core.quotePath=false",
        "diff.ignoreSubmodules=all",
        "color.ui=always",
        "core.untrackedCache=true",
        "diff.renames=false",
        "add.ignoreErrors=true",
    ):
        repo.git("config", *setting.split("="))
    assert snap(repo) == plain


def test_no_hook_and_no_watcher_runs(repo: Clone, tmp_path: Path) -> None:
    """Neither hooks nor a file-system watcher of the repository see a snapshot or a restoration."""
    repo.write("README", "changed\n")
    mark = tmp_path / "ran"
    for name in ("post-index-change", "post-checkout", "reference-transaction", "pre-commit", "watcher"):
        repo.write(f".git/hooks/{name}", f"#!/bin/sh\necho {name} >> '{mark}'\n", executable=True)
    repo.git("config", "core.fsmonitor", ".git/hooks/watcher")
    snapshot = snap(repo)
    reopen(repo, snapshot, tmp_path / "again")
    assert not mark.exists()


def test_untracked_files_can_stay_out(repo: Clone) -> None:
    """Without untracked files only what git tracks is taken."""
    repo.write("README", "changed\n")
    repo.write("new", "new\n")
    snapshot = snap(repo, untracked=False)
    assert set(tree(repo, snapshot.work)) == {"README"}
    assert snapshot.untracked == 0


def test_ignored_files_go_only_when_they_are_named(repo: Clone) -> None:
    """`--include` names a file or a directory; everything else that git ignores stays."""
    repo.commit(**{".gitignore": "*.log\nbuild/\n"})
    for name in ("a.log", "b.log", "build/x", "build/deep/y", "-odd.log"):
        repo.write(name, "ignored\n")
    assert not snap(repo).dirty
    snapshot = snap(repo, include=("a.log", "build", "-odd.log"))
    assert set(tree(repo, snapshot.work)) - set(tree(repo, "HEAD")) == {
        "a.log",
        "build/x",
        "build/deep/y",
        "-odd.log",
    }
    assert snapshot.untracked == 4


def test_including_what_is_tracked_and_unchanged_changes_nothing(repo: Clone) -> None:
    """Naming a file that goes anyway is no error and makes nothing dirty."""
    assert not snap(repo, include=("README", ".")).dirty


@pytest.mark.parametrize("name", ["missing", "../outside", "/etc/passwd", "loop/x"])
def test_including_what_is_not_there_is_refused(repo: Clone, name: str) -> None:
    """A typing error must not pass as `nothing to include`; and nothing from elsewhere is ever taken."""
    repo.write("../outside", "o\n")
    (repo.path / "loop").symlink_to("loop")
    with pytest.raises(Usage):
        snap(repo, include=(name,))


def test_an_absolute_path_through_a_link_is_found(repo: Clone, tmp_path: Path) -> None:
    """The top of a working tree often has a second name (`/tmp` on a Mac)."""
    repo.commit(**{".gitignore": "x\n"})
    repo.write("x", "x\n")
    (tmp_path / "alias").symlink_to(repo.path)
    assert set(tree(repo, snap(repo, include=(str(tmp_path / "alias" / "x"),)).work)) > {"x"}


def test_an_unborn_branch(person: object, tmp_path: Path) -> None:
    """Before the first commit there is no base; staged stands on nothing."""
    run_git("init", "-q", "young", cwd=tmp_path)
    clone = Clone(tmp_path / "young")
    empty = snap(clone)
    assert (empty.base, empty.dirty, tree(clone, empty.work)) == (None, False, {})
    clone.write("staged", "s\n")
    clone.git("add", "staged")
    clone.write("untracked", "u\n")
    before = fingerprint(clone)
    snapshot = snap(clone)
    assert fingerprint(clone) == before
    assert (snapshot.base, snapshot.branch, snapshot.files) == (None, "main", 2)
    assert clone.git("rev-list", snapshot.work).split() == [snapshot.work, snapshot.staged]
    assert (set(tree(clone, snapshot.staged)), set(tree(clone, snapshot.work))) == (
        {"staged"},
        {"staged", "untracked"},
    )


def test_a_clone_without_checkout_has_no_index(bare: Clone, clone_of: Callable[..., Clone]) -> None:
    """A missing index means that everything is deleted, as git itself takes it."""
    clone = clone_of(bare, "none", "--no-checkout")
    snapshot = snap(clone)
    assert tree(clone, snapshot.work) == {}
    assert snapshot.changed == 1


def test_sha256(person: object, tmp_path: Path) -> None:
    """The other kind of object name works alike."""
    run_git("init", "-q", "--object-format=sha256", "new", cwd=tmp_path)
    clone = Clone(tmp_path / "new")
    clone.write("a", "a\n")
    unborn = snap(clone)
    assert (unborn.files, len(unborn.work)) == (1, 64)
    clone.commit()
    clone.write("a", "b\n")
    (clone.path / "deleted").symlink_to("a")
    snapshot = snap(clone)
    place = reopen(clone, snapshot, tmp_path / "again")
    assert status(place.directory) == status(clone.path)


def test_a_shallow_clone(bare: Clone, clone_of: Callable[..., Clone], tmp_path: Path) -> None:
    """A clone of depth one has no parent of base, and needs none."""
    seed = clone_of(bare, "seed2")
    seed.commit(a="a\n")
    seed.git("push", "-q", "origin", "main")
    run_git("clone", "-q", "--depth=1", f"file://{bare.path}", "shallow", cwd=tmp_path)
    clone = Clone(tmp_path / "shallow")
    clone.write("a", "changed\n")
    place = reopen(clone, snap(clone), tmp_path / "again")
    assert status(place.directory) == status(clone.path)


def test_a_linked_working_tree_is_seen_apart_from_the_main_one(repo: Clone, tmp_path: Path) -> None:
    """Its own index, HEAD and operation count; the main one's do not."""
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    linked = Clone(tmp_path / "linked")
    repo.write("README", "changed in main\n")
    linked.write("README", "changed in linked\n")
    before = fingerprint(linked), fingerprint(repo)
    snapshot = snap(linked)
    assert (fingerprint(linked), fingerprint(repo)) == before
    assert (snapshot.branch, content(repo, snapshot.work, "README")) == ("side", "changed in linked")
    place = reopen(linked, snapshot, tmp_path / "again")
    assert status(place.directory) == status(linked.path)


def test_foreign_git_variables_do_not_redirect_it(repo: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that asks from within a hook has GIT_INDEX_FILE set to something else."""
    repo.write("README", "changed\n")
    expected = snap(repo)
    monkeypatch.setenv("GIT_INDEX_FILE", str(repo.path / "nowhere"))
    assert snap(repo) == expected


def test_what_git_was_told_to_overlook_is_overlooked(repo: Clone) -> None:
    """`assume-unchanged` is a person's word that a file's changes are not to be looked at."""
    repo.commit(a="a\n")
    repo.git("update-index", "--assume-unchanged", "a")
    repo.write("a", "local setting\n")
    repo.write("README", "changed\n")
    assert content(repo, snap(repo).work, "a") == "a"


def test_a_merge_carries_its_other_side_and_the_conflict(repo: Clone) -> None:
    """Three sides of a path have no place in a tree; both they and MERGE_HEAD travel as parents of staged."""
    from store.hard_cases import CASES

    CASES["merge"](repo)
    snapshot = snap(repo)
    assert snapshot.operation == "merge"
    first, side, conflict = repo.git("log", "-1", "--format=%P", snapshot.staged).split()
    assert (first, side) == (snapshot.base, repo.git("rev-parse", "MERGE_HEAD"))
    assert content(repo, conflict, "1/both") == "base"
    assert content(repo, conflict, "2/both") == "ours"
    assert content(repo, conflict, "3/both") == "theirs"
    assert "2/gone" not in tree(repo, conflict)
    assert content(repo, snapshot.staged, "both") == "ours"
    assert "<<<<<<<" in content(repo, snapshot.work, "both")


@pytest.mark.parametrize(
    ("begin", "operation"),
    [
        (("rebase", "main"), "rebase"),
        (("rebase", "--apply", "main"), "rebase"),
        (("cherry-pick", "main"), "cherry-pick"),
        (("revert", "HEAD~1"), "revert"),
        (("merge", "main"), "merge"),
        (("bisect", "start"), "bisect"),
        (("am", "../0001-change.patch"), "am"),
    ],
)
def test_it_says_what_git_is_in_the_middle_of(repo: Clone, begin: tuple[str, ...], operation: str) -> None:
    """The operation goes on only where it began, so whoever resumes has to know."""
    repo.commit(f="base\n")
    repo.git("checkout", "-q", "-b", "topic")
    repo.commit(f="one\n")
    repo.commit(f="topic\n")
    repo.git("checkout", "-q", "main")
    repo.commit(f="main\n")
    repo.git("format-patch", "-q", "-1", "-o", "..")
    repo.git("checkout", "-q", "topic")
    repo.git(*begin, check=False)
    assert snap(repo).operation == operation


@pytest.mark.usefixtures("person")
def test_another_git_at_work_is_waited_for_and_then_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a checkout is nobody's work; a lock that stays is an error that says what to do."""
    monkeypatch.setattr(snapshot, "LONGEST_WAIT", 0.1)
    repo = make_clone(tmp_path / "re po")
    lock = repo.write(".git/index.lock")
    repo.write("README", "changed\n")
    with pytest.raises(WorkFailed) as failed:
        snap(repo)
    assert failed.value.hint.endswith(f"rm '{lock}'")
    lock.unlink()
    assert snap(repo).dirty


def test_a_lock_that_goes_is_no_error(repo: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor's own `git status` holds the lock for a moment."""
    lock = repo.write(".git/index.lock")
    monkeypatch.setattr("gitgate.store.work.snapshot.time.sleep", lambda _: lock.unlink())
    assert not snap(repo).dirty


def test_an_index_that_changes_meanwhile_is_read_again(repo: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit between the look and the copy would give a snapshot of neither state."""
    repo.write("README", "changed\n")
    true_result = Started.result
    left = [1]

    def result(self: Started) -> GitResult:
        done = true_result(self)
        if self.name == "status" and left[0]:
            left[0] -= 1
            repo.commit("meanwhile")
            repo.write("README", "changed again\n")
        return done

    monkeypatch.setattr(Started, "result", result)
    snapshot = snap(repo)
    assert snapshot.base == repo.git("rev-parse", "HEAD")
    assert content(repo, snapshot.work, "README") == "changed again"
    left[0] = 9
    with pytest.raises(WorkFailed, match="keeps changing"):
        snap(repo)


def test_a_required_filter_that_is_missing_says_what_to_install(repo: Clone) -> None:
    """Without it a secret or a large file would be stored as it is; nothing is written instead."""
    repo.git("config", "filter.vault.clean", "no-such-program-here")
    repo.git("config", "filter.vault.required", "true")
    repo.commit(**{".gitattributes": "*.safe filter=vault\n"})
    repo.write("x.safe", "plain\n")
    before = fingerprint(repo)
    with pytest.raises(WorkFailed, match="'vault'") as failed:
        snap(repo)
    assert "install" in failed.value.hint
    assert fingerprint(repo) == before
    assert not list((repo.path / ".git/gitgate").iterdir())


def test_a_killed_snapshot_is_swept_a_day_later(repo: Clone) -> None:
    """What a killed process left goes; what another one is using stays."""
    repo.write("README", "changed\n")
    rooms = repo.path / ".git/gitgate"
    old, new = rooms / "index-old", rooms / "index-new"
    for room in (old, new):
        room.mkdir(parents=True)
    os.utime(old, (1, 1))
    snap(repo)
    assert (old.exists(), new.exists()) == (False, True)


def test_a_bare_repository_has_no_work(bare: Clone) -> None:
    """An error that says so, rather than git's."""
    with pytest.raises(WorkFailed):
        snap(bare)


def test_files_that_cannot_be_read(person: object, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Untracked ones are named and stay; a tracked one fails the snapshot, since its change would be lost unseen."""
    import tempfile

    with tempfile.TemporaryDirectory() as room:
        clone = make_clone(Path(room) / "r")
        clone.write("secret-room/x", "x\n")
        clone.write("unreadable", "u\n").chmod(0)
        (clone.path / "secret-room").chmod(0)
        env = {"PATH": os.environ["PATH"], "HOME": room, "GIT_CONFIG_NOSYSTEM": "1"}
        as_root = os.geteuid() == 0
        if as_root:  # root reads everything; nobody does not
            for path in (Path(room), *Path(room).rglob("*")):
                os.chown(path, 65534, 65534, follow_symlinks=False)
            os.seteuid(65534)
        try:
            here = discover(clone.path, env)
            snapshot = take(here, at=AT, author=AUTHOR)
            assert {left.path for left in snapshot.left_out} == {"unreadable", "secret-room/"}
            clone.write("README", "changed\n").chmod(0)
            with pytest.raises(WorkFailed, match="README"):
                take(here, at=AT, author=AUTHOR)
        finally:
            if as_root:
                os.seteuid(0)
            (clone.path / "secret-room").chmod(0o700)


def test_a_full_or_broken_place_is_an_error_and_not_a_crash(repo: Clone) -> None:
    """Where the copy of the index cannot be written, nothing else is."""
    repo.write("README", "changed\n")
    repo.write(".git/gitgate", "a file in the way\n")
    before = fingerprint(repo)
    with pytest.raises(WorkFailed) as failed:
        snap(repo)
    assert failed.value.hint
    assert fingerprint(repo) == before


def test_a_branch_that_cannot_be_written_down_counts_as_none(repo: Clone) -> None:
    """A question is UTF-8; a branch of another encoding is told as no branch rather than as a wrong one."""
    repo.git("checkout", "-q", "-b", os.fsdecode(b"caf\xe9"))
    assert snap(repo).branch is None


def test_line_ends_that_git_warns_about_are_no_reason_to_fail(repo: Clone) -> None:
    """`core.safecrlf = true` makes `git add` die on a file whose line ends a checkout would change."""
    repo.git("config", "core.autocrlf", "true")
    repo.git("config", "core.safecrlf", "true")
    repo.write("unix", "one\ntwo\n")
    assert content(repo, snap(repo).work, "unix") == "one\ntwo"
