"""Git's configuration is put back as it was, or nothing is done with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitgate.errors import Failure
from gitgate.store import git
from gitgate.store.git import discover
from support.testbed.repositories import Clone


def test_files_are_put_back(repo: Clone, tmp_path: Path) -> None:
    """Changed, made and taken away ones; those that were left alone are not named."""
    here = discover(repo.path, os.environ)
    made, gone = tmp_path / "made", tmp_path / "gone"
    gone.write_text("as it was")
    kept = git.keep_config(here, [made, gone])
    assert git.put_back(here, kept) == []
    repo.git("config", "http.proxy", "http://127.0.0.1:9")
    made.write_text("x")
    gone.unlink()
    assert sorted(git.put_back(here, kept)) == sorted([here.common_dir / "config", made, gone])
    assert not made.exists()
    assert gone.read_text() == "as it was"
    assert git.put_back(here, kept) == []
    assert "proxy" not in repo.git("config", "--list")


def test_configuration_from_elsewhere_is_refused(repo: Clone, tmp_path: Path) -> None:
    """The folder of the repository was changed for another one: no file that was seen says so."""
    here = discover(repo.path, os.environ)
    kept = git.keep_config(here)
    (repo.path / ".git").rename(tmp_path / "elsewhere")
    (repo.path / ".git").write_text(f"gitdir: {tmp_path / 'elsewhere'}\n")
    with pytest.raises(Failure, match="cannot be put back"):
        git.put_back(here, kept)


def test_a_folder_in_place_of_a_file_is_refused(repo: Clone) -> None:
    """It cannot be read, and not be replaced."""
    here = discover(repo.path, os.environ)
    kept = git.keep_config(here)
    (here.common_dir / "config").unlink()
    (here.common_dir / "config").mkdir()
    with pytest.raises(Failure, match="cannot be put back"):
        git.put_back(here, kept)


def test_a_conversation_looks_first(repo: Clone, bare: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only in a process that watches: what a person sets meanwhile is theirs."""
    monkeypatch.setattr(git, "WATCHED", {})
    here = discover(repo.path, os.environ)
    repo.git("config", "first.key", "stays")
    assert git.look_after(here) == []
    git.watch_config(here)
    repo.git("config", "second.key", "goes")
    assert git.look_after(here) == [here.common_dir / "config"]
    assert repo.git("config", "first.key") == "stays"
    assert "second" not in repo.git("config", "--list")
