"""Fuzz: our reader of commits and trees beside git's own: a sample of what `python -m tests.fuzz.objects` tries; and that a wrong reader would be noticed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from fuzz import objects
from gitgate.errors import BrokenRecord
from gitgate.store.git.canonical import Commit, TreeEntry, parse_history
from support.misreading import read_any_tree, read_leniently


def test_what_ours_reads_git_reads_alike(tmp_path: Path) -> None:
    """Of each kind some are taken, so that there is something to compare; of tags none."""
    figures = objects.compare(1500, 1, tmp_path)
    assert figures.found == []
    assert min(figures.taken[kind] for kind in ("commit", "history", "tree")) > 50
    assert (figures.made["tag"] > 20, figures.taken["tag"]) == (True, 0)


def lenient_commit(payload: bytes, _parse: object) -> Commit | None:
    with contextlib.suppress(IndexError, ValueError):
        return read_leniently(payload)
    return None


def careless_commit(payload: bytes, _parse: object) -> Commit | None:
    with contextlib.suppress(BrokenRecord):
        return parse_history(payload)
    return None


def lenient_tree(payload: bytes) -> list[TreeEntry] | None:
    with contextlib.suppress(ValueError):
        return read_any_tree(payload)
    return None


@pytest.mark.parametrize(
    "lenient",
    [
        careless_commit,
        pytest.param(lenient_commit, marks=pytest.mark.slow),
        pytest.param(lenient_tree, marks=pytest.mark.slow),
    ],
)
def test_a_lenient_reader_is_found_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lenient: Callable[..., object]
) -> None:
    """One that takes lines wherever they stand, people as they come, or entries in any order."""
    monkeypatch.setattr(objects, "read_tree" if lenient is lenient_tree else "read_commit", lenient)
    assert objects.compare(400, 1, tmp_path).found
