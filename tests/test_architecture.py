"""The page on architecture: every room is told of, and what it says of the functions is so."""

from __future__ import annotations

import ast
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from support.testbed.rooms import PURE, ROOMS, Module, modules, named_in, uses

PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
LIVES = dict(re.findall(r"^## The life of (.+?)\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL))
STEP = re.compile(r"^( *)- `([\w.]+)`", re.MULTILINE)
HOUSE = modules()


class Step(NamedTuple):
    """A function of a life, and where it stands under which other one."""

    depth: int
    name: str


def steps(text: str) -> list[Step]:
    return [Step(len(indent) // 2, name) for indent, name in STEP.findall(text)]


def module_of(name: str) -> Module:
    """The module whose path is the longest beginning of the name."""
    return max(
        (one for one in HOUSE if f"{name}.".startswith(".".join([*one.parts, ""]))),
        key=lambda one: len(one.parts),
    )


@cache
def names_in(module: Module) -> dict[str, ast.AST]:
    return named_in([module])


def node_of(name: str) -> ast.AST | None:
    return names_in(module_of(name)).get(name)


@cache
def used_by(name: str) -> dict[str, list[int]]:
    node = node_of(name)
    return uses(module_of(name), node) if node is not None else {}


def lines_of_use(caller: str, called: str) -> list[int]:
    """Where one function calls another, or hands it on; a method is known by its name alone."""
    found, (above, _, last) = used_by(caller), called.rpartition(".")
    is_method = above.rpartition(".")[2][:1].isupper()
    return found.get(f".{last}" if is_method else called, [])


def wrong_in(text: str) -> list[str]:
    """Each step that is not called by the one that it stands under, or not in this order."""
    wrong: list[str] = []
    stack: list[str] = []
    lines: dict[str, int] = {}  # of each function above: where it called the step before
    for depth, name in steps(text):
        del stack[depth:]
        if len(stack) != depth or node_of(name) is None:
            wrong.append(f"{name}: there is no such function, or it stands too deep")
            continue
        if stack:
            found = lines_of_use(stack[-1], name)
            later = [line for line in found if line >= lines[stack[-1]]]
            if not later:
                wrong.append(
                    f"{stack[-1]} does not call {name}{' after what stands above it' if found else ''}"
                )
            lines[stack[-1]] = min(later, default=lines[stack[-1]])
        stack.append(name)
        lines[name] = 0
    return wrong


def test_every_room_is_described() -> None:
    """In its order from the top, with what it may not do; and the rooms without input or output as such."""
    rows = dict(re.findall(r"^\| `(\w+)` \|[^|]+\| ([^|]+) \|$", PAGE, re.MULTILINE))
    assert set(rows) == set(ROOMS)
    order = [room for room in reversed(ROOMS) if room in rows]
    assert {a for a, b in pairwise(rows) if order.index(a) > order.index(b)} == set()
    assert {room for room, never in rows.items() if never == "any input or output"} == PURE - {"version"}


def test_each_life_is_told() -> None:
    """Each of these, from its beginning; none of them is a list of two."""
    told = {
        "an ask",
        "a respond",
        "a push that resumes",
        "a PR reply",
        "a notification",
        "a dialog",
        "a flow's step",
    }
    assert set(LIVES) == told
    assert all(len(steps(text)) >= 10 for text in LIVES.values())


@pytest.mark.parametrize("title", LIVES)
def test_each_function_calls_what_stands_under_it(title: str) -> None:
    """As the code has it, in the order of the page."""
    assert wrong_in(LIVES[title]) == []


def test_what_is_named_is_there() -> None:
    """Functions, tables, classes, modules and files."""
    top, paths = Path(__file__).parents[1], {".".join(one.parts) for one in HOUSE}
    files = set(re.findall(r"`((?:agents|questions|surfaces|runners|cli|tests|hooks)/[\w/.-]+)`", PAGE))
    assert len(files) > 5
    assert not [path for path in files if not ((top / path).exists() or (top / "gitgate" / path).exists())]
    names = {name for name in re.findall(r"`((?:[a-z_]+\.)+[A-Za-z_]+)`", PAGE) if not name.endswith(".py")}
    assert len(names) > 60
    assert [name for name in names - {"desk.settings"} if name not in paths and node_of(name) is None] == []


def test_a_wrong_step_is_seen() -> None:
    """One that is not called, one in another order, one that is not there, one that stands too deep."""
    caller = "- `acts.answering.respond`\n"
    assert wrong_in(f"{caller}  - `gates.recording.record`\n") == []
    assert "does not call" in wrong_in(f"{caller}  - `acts.asking.ask`\n")[0]
    after = "  - `acts.answering.refuse_late`\n  - `questions.answers.read_answer`\n"
    assert "after what stands above" in wrong_in(f"{caller}{after}")[0]
    assert "no such function" in wrong_in("- `acts.answering.reply`\n")[0]
    assert "too deep" in wrong_in(f"{caller}    - `gates.recording.record`\n")[0]
