"""Restoring and showing work runs no program that the work, or whoever wrote it, has chosen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.store.work.restore import diff
from store.hard_cases import listing, reopen, snap, status
from support.testbed.repositories import Clone

NAMES = ("trap", "with space", "a=b", "Up.per", "ünï")


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """A file that exists as soon as any of the planted programs has run."""
    return tmp_path / "ran"


@pytest.fixture
def trap(mark: Path, tmp_path: Path) -> str:
    """A program that leaves the mark and passes its input on."""
    program = tmp_path / "trap.sh"
    program.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{mark}'\ncat\n")
    program.chmod(0o755)
    return str(program)


def with_filters(repo: Clone, trap: str, keys: tuple[str, ...]) -> None:
    for name in NAMES:
        for key in keys:
            repo.git("config", f"filter.{name}.{key}", trap)
        repo.git("config", f"filter.{name}.required", "true")


@pytest.mark.parametrize(
    "keys", [("smudge",), ("smudge", "clean"), ("process",), ("process", "smudge", "clean")]
)
def test_untrusted_work_runs_no_filter(
    repo: Clone, trap: str, mark: Path, tmp_path: Path, keys: tuple[str, ...]
) -> None:
    """Attributes of the work choose among the filters of this machine; whatever they are called, none runs."""
    repo.write(".gitattributes", "*.t filter=trap\n*.e filter=a=b\n*.u filter=Up.per\n*.n filter=ünï\n")
    for suffix in "teun":
        repo.write(f"f.{suffix}", "text\n")
    repo.commit()
    for suffix in "teun":
        repo.write(f"f.{suffix}", "changed\n")
    repo.write("intended.t", "intended\n")
    repo.git("add", "-N", "intended.t")
    snapshot = snap(repo)
    expected = status(repo.path)
    with_filters(repo, trap, keys)
    place = reopen(repo, snapshot, tmp_path / "w", trusted=False)
    assert not mark.exists()
    assert listing(place.directory) == listing(repo.path)
    assert any("filters were off" in note and "a=b" in note for note in place.notes)
    for name in NAMES:
        repo.git("config", "--remove-section", f"filter.{name}")
    assert status(place.directory) == expected


def test_untrusted_is_what_work_is_unless_somebody_says_otherwise(
    repo: Clone, trap: str, mark: Path, tmp_path: Path
) -> None:
    """Forgetting to say it is safe."""
    from gitgate.store.work.restore import open_worktree

    repo.write(".gitattributes", "* filter=trap\n")
    snapshot = snap(repo)
    repo.git("config", "filter.trap.smudge", trap)
    open_worktree(
        repo.repository,
        base=snapshot.base,
        staged=snapshot.staged,
        work=snapshot.work,
        directory=tmp_path / "w",
        branch=None,
        fallback_branch="x",
    )
    assert not mark.exists()


def test_trusted_work_passes_the_machines_filters(repo: Clone, trap: str, mark: Path, tmp_path: Path) -> None:
    """A developer's own large files come back whole."""
    repo.write(".gitattributes", "*.t filter=trap\n")
    repo.write("f.t", "text\n")
    snapshot = snap(repo)
    repo.git("config", "filter.trap.smudge", trap)
    place = reopen(repo, snapshot, tmp_path / "w", trusted=True)
    assert mark.exists()
    assert place.notes[1:] == ()


def test_a_configuration_within_the_work_is_nobodys_machine(
    repo: Clone, trap: str, mark: Path, tmp_path: Path
) -> None:
    """`include.path = ../.gitconfig` is common; a filter from there comes with the work, trusted or not."""
    repo.write(".gitconfig", f'[filter "trap"]\n\tsmudge = {trap}\n\trequired = true\n')
    repo.write(".gitattributes", "*.t filter=trap\n")
    repo.write("f.t", "text\n")
    snapshot = snap(repo)
    repo.git("config", "include.path", "../.gitconfig")
    reopen(repo, snapshot, tmp_path / "w", trusted=True)
    assert not mark.exists()


def test_a_filter_that_only_the_new_place_has_is_off_too(
    repo: Clone, trap: str, mark: Path, tmp_path: Path
) -> None:
    """A condition in the configuration may hold only within the new working tree."""
    more = tmp_path / "more"
    more.write_text(f'[filter "trap"]\n\tsmudge = {trap}\n')
    repo.write(".gitattributes", "* filter=trap\n")
    snapshot = snap(repo)
    repo.git("config", "includeIf.gitdir:**/worktrees/**.path", str(more))
    reopen(repo, snapshot, tmp_path / "w", trusted=False)
    assert not mark.exists()


def test_a_required_filter_that_is_missing_leaves_nothing(repo: Clone, tmp_path: Path) -> None:
    """Trusted work whose filter is not installed: an error that names it, and no half-filled place."""
    from gitgate.errors import WorkFailed

    repo.write(".gitattributes", "*.t filter=gone\n")
    repo.write("f.t", "text\n")
    snapshot = snap(repo)
    repo.git("config", "filter.gone.smudge", "no-such-program-here")
    repo.git("config", "filter.gone.required", "true")
    with pytest.raises(WorkFailed, match="gone"):
        reopen(repo, snapshot, tmp_path / "w", trusted=True)
    assert not (tmp_path / "w").exists()


def test_showing_a_diff_runs_nothing(repo: Clone, trap: str, mark: Path) -> None:
    """Neither a diff driver, nor a text conversion, nor an external diff, from whichever side."""
    repo.write(".gitattributes", "* diff=trap filter=trap\n")
    repo.write("f", "text\n")
    snapshot = snap(repo)
    for key in (
        "diff.trap.command",
        "diff.trap.textconv",
        "diff.external",
        "core.pager",
        "filter.trap.smudge",
    ):
        repo.git("config", key, trap)
    for stat in (True, False):
        assert b"f" in diff(repo.repository, snapshot.base, snapshot.work, stat=stat, color=True)
    assert not mark.exists()


def test_a_settings_file_changes_no_diff(repo: Clone) -> None:
    """A diff reads alike for everybody, and can be applied."""
    repo.write("README", "changed\n")
    snapshot = snap(repo)
    plain = diff(repo.repository, snapshot.base, snapshot.work)
    for setting in (
        "diff.noprefix=true",
        "diff.mnemonicPrefix=true",
        "color.ui=always",
        "diff.context=0",
        "diff.srcPrefix=x/",
    ):
        repo.git("config", *setting.split("="))
    assert diff(repo.repository, snapshot.base, snapshot.work) == plain


def test_work_reaches_nothing_outside(bare: Clone, clone_of: Callable[..., Clone], tmp_path: Path) -> None:
    """A planted tree with a link in a directory's place, or with `.git` in it, writes nowhere else."""
    from gitgate.errors import WorkFailed
    from gitgate.store.work.restore import open_worktree

    clone = clone_of(bare, "agent")
    base = clone.git("rev-parse", "HEAD")
    blob = clone.git("hash-object", "-w", "--stdin", input="#!/bin/sh\n")
    inner = clone.git("mktree", input=f"100755 blob {blob}\tpost-checkout\n")
    hooks = clone.git("mktree", input=f"040000 tree {inner}\thooks\n")
    for planted in (".git", ".GIT", ".."):
        tree = clone.git("mktree", input=f"040000 tree {hooks}\t{planted}\n")
        staged = clone.git("commit-tree", "-p", base, "-m", "s", tree)
        work = clone.git("commit-tree", "-p", staged, "-m", "w", tree)
        with pytest.raises(WorkFailed):
            open_worktree(
                clone.repository,
                base=base,
                staged=staged,
                work=work,
                directory=tmp_path / "w",
                branch=None,
                fallback_branch="x",
            )
        assert not (tmp_path / "w").exists()
    assert not (tmp_path / "hooks").exists()
