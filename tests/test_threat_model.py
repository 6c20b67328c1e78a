"""Documentation: each row of the threat model names tests, and they are there."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "threat-model.md"
ROW = re.compile(r"^\| (\d+) \|.*\| (.+) \|$", re.MULTILINE)
NAME = re.compile(r"`(?:([\w./]+): )?(test_\w+)`")


def named() -> dict[int, list[tuple[str, str]]]:
    """By row, the tests that it names: folder and function. A name alone is in the folder before it."""
    found: dict[int, list[tuple[str, str]]] = {}
    for number, cell in ROW.findall(PAGE.read_text(encoding="utf-8")):
        folder = ""
        for place, test in NAME.findall(cell):
            folder = place or folder
            found.setdefault(int(number), []).append((folder, test))
    return found


def test_every_row_names_its_tests() -> None:
    """They are numbered without a gap, none twice, and none names a test that is not there."""
    rows = named()
    assert [int(number) for number, _ in ROW.findall(PAGE.read_text(encoding="utf-8"))] == list(rows)
    assert len(rows) >= 17
    assert sorted(rows) == list(range(1, len(rows) + 1))
    missing = [
        f"row {number}: {folder}: {test}"
        for number, tests in rows.items()
        for folder, test in tests
        if not is_there(folder, test)
    ]
    assert missing == []


def is_there(folder: str, test: str) -> bool:
    head = re.compile(rf"^\s*def {test}\(", re.MULTILINE)
    return any(head.search(file.read_text(encoding="utf-8")) for file in (TESTS / folder).rglob("test_*.py"))
