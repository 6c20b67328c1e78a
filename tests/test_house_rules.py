"""The house: sizes, names, and what must not stand in a repository that others read."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]

# A module is one idea, whole. Beyond these lengths it is two, or is on the list with its reason; a lower limit made fragments.
FILE_LINES = 600
# A file of tests is read by its cases, one at a time, and a table of them grows with what it holds down.
TEST_LINES = 900
LONG_FILES: dict[str, str] = {}

VAGUE = {"utils", "util", "helpers", "helper", "manager", "data", "misc", "common", "stuff"}

# What stands in nobody's repository: a path of one machine, an unfinished thought, a merge that was not, a test switched off.
UNWANTED = {
    "path of a machine": re.compile(
        r"(?<![\w.}\]>*/-])/(?:work|root|tmp/v|(?:home|Users)/(?!some(?:body|one)|ada\b|bob\b)\w+)/[\w.]"
    ),
    "unfinished": re.compile(r"\b(?:TODO|FIXME|XXX|HACK|WIP)\b"),
    "left from a merge": re.compile(r"^(?:<{7}|>{7}|={7})(?: |$)", re.MULTILINE),
    "private address": re.compile(r"\b(?:10\.\d+|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d+\.\d+\b"),
    "switched-off check": re.compile(
        r"mark\.(?:skip|xfail)|pytest\.(?:skip|xfail|importorskip)\(|@unittest\.skip|# type: ignore(?!\[)|# noqa(?!:)"
    ),
    "shell": re.compile(r"shell=True|os\.system\("),
}
# The two files that name what they forbid.
NAMES_THEM = {"tests/test_house_rules.py", "tests/test_layers.py"}


def listed() -> list[str]:
    """Every file that belongs to the project: tracked, or new and not ignored."""
    said = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=TOP, capture_output=True, check=True
    ).stdout
    return sorted(name for name in said.decode().split("\0") if name and (TOP / name).is_file())


FILES = listed()
PYTHON = [name for name in FILES if name.endswith(".py")]


@cache
def text_of(name: str) -> str:
    return (TOP / name).read_bytes().decode("utf-8", "replace")


def unwanted(text: str) -> list[str]:
    """What of `UNWANTED` a text contains, with its line."""
    return [
        f"line {text.count(chr(10), 0, found.start()) + 1}: {rule}: {found.group()!r}"
        for rule, pattern in UNWANTED.items()
        for found in pattern.finditer(text)
    ]


def test_the_project_is_read() -> None:
    """The rules are held over the real files."""
    assert {"pyproject.toml", "gitgate/errors.py", "tests/conftest.py"} <= set(FILES)


def test_no_file_has_what_nobody_wants_to_read() -> None:
    """No machine's paths, no unfinished thoughts, no checks switched off."""
    found = {name: unwanted(text_of(name)) for name in FILES if name not in NAMES_THEM}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_a_module_says_which_room_it_is() -> None:
    """Every module, of the tests too, begins with a docstring."""
    begins = re.compile(r'(?:#.*\n|\n)*r?"""')  # to parse them all takes a second
    assert [name for name in PYTHON if not begins.match(text_of(name))] == []


def test_names_say_something() -> None:
    """No module or folder has a name that would fit anything."""
    parts = {name: set(name.removesuffix(".py").replace("test_", "").split("/")) for name in PYTHON}
    assert [name for name, words in parts.items() if not VAGUE.isdisjoint(words)] == []


def test_files_are_short() -> None:
    """About 600 lines at most, 900 for tests; a longer one is on the list with its reason."""
    lines = {name: text_of(name).count("\n") for name in PYTHON if name not in LONG_FILES}
    most = {name: (TEST_LINES if name.startswith("tests/") else FILE_LINES) * 1.1 for name in lines}
    assert {name: count for name, count in lines.items() if count > most[name]} == {}


def test_exceptions_name_files_that_exist() -> None:
    """An exception that nothing needs any more is taken off the list."""
    assert set(LONG_FILES) <= set(FILES)


@pytest.mark.parametrize(
    "text",
    [
        "see /work/thing", 'open("/root/.x")', "cd /home/me/project", "`/Users/me/x`", "# TODO later", "<<<<<<< HEAD",
        "=======\n", "http://192.168.1.4/", "@pytest.mark.skip", "pytest.importorskip('x')", "x = 1  # type: ignore",
        "import a  # noqa", "run(c, shell=True)",
    ],
)  # fmt: skip
def test_unwanted_things_are_seen(text: str) -> None:
    """The patterns find what they are for."""
    assert unwanted(text)


@pytest.mark.parametrize(
    "text",
    [
        "refs/hitl/work/7k2f", "{home}/work/x", "https://example.org/home/page", "x = 1  # type: ignore[attr-defined]",
        "import a  # noqa: F401", "127.0.0.1", "=========== results", "$HOME/root/x", "/home/ada/x", "<id>/work/x", "../work/x",
    ],
)  # fmt: skip
def test_harmless_things_are_left_alone(text: str) -> None:
    """The patterns do not find what only looks alike."""
    assert unwanted(text) == []
