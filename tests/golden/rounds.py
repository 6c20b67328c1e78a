"""Golden: which tests kill, race, cut off and disturb, with their numbers of rounds: a redesign plays no fewer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
ABOUT = re.compile(
    r"kill|race|racing|round|outage|disturb|cut_off|dies|died|crash|at_once|lapse|take_?over|twice|exactly_once"
)
COUNTED = re.compile(r"ROUNDS|SEED|TIMES|KILLS|RUNNERS|WORKERS|EXAMPLES|MOMENTS|POINTS")


def list_rounds() -> str:
    """Return a line for each such test, and one for each number that says how often, sorted; no file's place is in it."""
    lines = sorted({line for place in sorted(TESTS.rglob("*.py")) for line in lines_of(place)})
    return "Tests of kills, races and outages, and their rounds.\n\n" + "\n".join(lines) + "\n"


def lines_of(place: Path) -> Iterator[str]:
    tree = ast.parse(place.read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name.isupper() and COUNTED.search(name) and ABOUT.search(place.stem):
                yield f"{place.stem}: {name} = {ast.unparse(node.value)}"
        elif isinstance(node, ast.FunctionDef) and ABOUT.search(f"{node.name} {place.stem}"):
            yield from [f"{node.name}{rounds_of(node)}"] if node.name.startswith("test_") else []


def rounds_of(test: ast.FunctionDef) -> str:
    """Return how many cases a test is given, where that stands there."""
    counts = [
        len(mark.args[1].elts)
        for mark in test.decorator_list
        if isinstance(mark, ast.Call)
        and len(mark.args) == 2
        and isinstance(mark.args[1], ast.List | ast.Tuple)
    ]
    return "".join(f" × {count}" for count in counts)
