"""House rule: no branch goes by the words of a text, ours or another program's. What reads a *format* is listed here, with the format.

A text that decides is one that somebody else may write: an agent's error, a remote's reason, a person's note. So a cause is a
field, an enum or a class, set where it is known.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "gitgate"
# What texts are called here, in which sentences stand.
TOLD = frozenset(
    "reason message words remark said text note failed error line lines why hint err stderr heard summary".split()
)
ASKS = frozenset(
    "startswith endswith removeprefix removesuffix partition rpartition split rsplit find index".split()
)
SEARCHES = frozenset(("search", "match", "fullmatch", "findall", "finditer"))


def is_told(node: ast.expr) -> bool:
    """Whether this is a text by its name, also where it was made small or cut at its ends."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        return is_told(node.func.value)
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name in TOLD


def is_prose(node: ast.expr) -> bool:
    """Whether this is a sentence in the code: two words of letters beside one another."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    parts = node.value.split(" ")
    return any(a.isalpha() and b.isalpha() for a, b in itertools.pairwise(parts))


def is_decided_by_words(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in ASKS:
            return is_told(node.func.value) or any(map(is_prose, node.args))
        return node.func.attr in SEARCHES and any(map(is_told, node.args))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        (right,) = node.comparators
        if isinstance(node.ops[0], ast.In | ast.NotIn):
            return is_told(right) or is_prose(node.left)
        return isinstance(node.ops[0], ast.Eq | ast.NotEq) and any(map(is_prose, (node.left, right)))
    return False


def functions_of(tree: ast.AST, within: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Each node with the name of the function, or the class's method, that it stands in."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from functions_of(child, f"{within}.{child.name}" if within else child.name)
        else:
            yield within, child
            yield from functions_of(child, within)


def places() -> dict[str, list[int]]:
    """The functions that decide by words, or may, each with its lines."""
    found: dict[str, list[int]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        module = (
            path.relative_to(PACKAGE).with_suffix("").as_posix().removesuffix("/__init__").replace("/", ".")
        )
        for function, node in functions_of(ast.parse(path.read_text(encoding="utf-8"))):
            if is_decided_by_words(node):
                found.setdefault(f"{module}:{function}", []).append(node.lineno)  # type: ignore[attr-defined]
    return found


LIST = Path(__file__).parent / "words.txt"


def listed() -> dict[str, str]:
    """The functions of the list, each with the format that it stands under."""
    found: dict[str, str] = {}
    under = ""
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            under, _, reason = line[3:].partition(": ")
            assert reason, f"{line!r} gives no reason"
        elif line and not line.startswith("#"):
            module, _, functions = line.partition(": ")
            for function in functions.split():
                name = f"{module}:{'' if function == '-' else function}"
                assert under, f"{name} stands under no format"
                assert name not in found, f"{name} is listed twice"
                found[name] = under
    return found


def test_words_decide_nothing() -> None:
    """Each function that looks into a text is in `words.txt`, under the format that it reads."""
    new = {place: lines for place, lines in places().items() if place not in listed()}
    assert new == {}, (
        "give it a field, an enum or a class; where it reads a format, list it in tests/words.txt"
    )


def test_the_list_is_no_longer_than_it_has_to_be() -> None:
    """What looks into no text any more leaves the list."""
    assert sorted(set(listed()) - set(places())) == []


@pytest.mark.parametrize(
    ("code", "by_words"),
    [
        ('gone.reason.startswith("handed back")', True),
        ('"refused" in failed.message', True),
        ('fate.reason.split(" · ")', True),
        ('wrong.message.removeprefix("answer: ")', True),
        ('re.search("stale", said.err)', True),
        ('outcome.reason.strip().lower().startswith("no")', True),
        ('why == "there is no remote"', True),
        ('"no such path" in anything', True),
        ('found.partition("it asked again")', True),
        ("outcome.cause == HANDED_BACK", False),
        ("fate.kind is FateKind.STALE", False),
        ('name.startswith("refs/heads/")', False),
        ('ref.partition("/")', False),
    ],
)
def test_what_counts_as_words(code: str, *, by_words: bool) -> None:
    """The lint finds each shape in which a sentence has decided here, and no other."""
    found = [node for node in ast.walk(ast.parse(code)) if is_decided_by_words(node)]
    assert bool(found) is by_words
