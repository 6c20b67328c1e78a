"""What a change costs: each is made in a copy of the package, in three files at the most."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.testbed.copied import PackageCopy

MOST_FILES = 3


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[PackageCopy]:
    """The package, to be changed; whoever changed more files than the guide allows has shown that the design slipped."""
    with PackageCopy(tmp_path) as made:
        yield made
    assert 1 <= len(made.touched) <= MOST_FILES, sorted(made.touched)
