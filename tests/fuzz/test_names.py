"""Fuzz: our reading of refs beside git's own: a sample of what `python -m tests.fuzz.names` tries; and that a wrong reading would be noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz import names
from gitgate.store.git import refs
from gitgate.store.git.refs import PACKED_HEAD, Refs


def test_what_ours_says_of_refs_git_says(tmp_path: Path) -> None:
    """Of each kind some are answered without git, so that there is something to compare."""
    figures = names.compare(1000, 1, tmp_path)
    assert figures.found == []
    assert min(figures.taken.values()) > 10
    assert figures.taken.keys() == {"packed", "loose", "name", "shape"}


def lenient_lines(packed: bytes) -> dict[bytes, bytes]:
    lines = packed.removeprefix(PACKED_HEAD).splitlines(keepends=True)
    return {name: line for line in lines if (name := line.partition(b" ")[2].rstrip(b"\n"))}


def lenient_line(_self: Refs, line: bytes) -> str | None:
    return line.decode("latin-1").strip()[:40] or None


@pytest.mark.parametrize("lenient", ["packed", "loose", "names"])
def test_a_lenient_reading_is_found_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lenient: str
) -> None:
    """One that takes lines as they come, what looks like an id, or names that are none."""
    if lenient == "packed":
        monkeypatch.setattr(refs, "packed_lines", lenient_lines)
    elif lenient == "loose":
        monkeypatch.setattr(Refs, "plain", lenient_line)
    else:
        monkeypatch.setattr(names, "PLAIN", r"refs/[^ ]+/[^ ]+")
    assert names.compare(1000, 1, tmp_path).found
