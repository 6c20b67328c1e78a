"""Golden: what each surface shows, and what each record holds, is what the kept files say."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden.compare import EXPECTED, differences, render
from golden.rounds import list_rounds

RENEW = "if that is meant: python -m tests.golden --write, and look at the difference"


@pytest.mark.parametrize("part", ["quick", "records", pytest.param("started", marks=pytest.mark.slow)])
def test_nothing_differs_from_what_is_kept(part: str, tmp_path: Path) -> None:
    """Every type of question on every surface, and every event, claim and lease, to the byte."""
    found = list(differences(render(part, tmp_path)))
    assert not found, "\n\n".join([*found, RENEW])


def test_no_kept_file_is_left_over() -> None:
    """Each is rendered by a part."""
    from golden.drive import PARTS

    rendered = {f"{name}.txt" for part in PARTS.values() for name in part}
    assert {place.name for place in EXPECTED.iterdir()} == {*rendered, "rounds.txt"}


def test_no_round_is_lost() -> None:
    """Each test of kills, races and outages is still there, with as many cases and rounds, in whatever file."""
    kept = (EXPECTED / "rounds.txt").read_text("utf-8").splitlines()[2:]
    now = set(list_rounds().splitlines())
    assert len(kept) > 100
    assert [line for line in kept if line not in now] == [], RENEW
