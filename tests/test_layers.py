"""The house: imports point downward, each power (git, processes, talk, environment) has its one room, and names are found.

What asks for the syntax trees of all modules stands here together: they are read once for all of it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import cache

import pytest

from support.testbed.rooms import ROOMS, Finding, Module, Told, circles, findings, modules, told_by

MODULES = modules()


@cache
def found_in_the_house() -> list[Finding]:
    """Everything that breaks a rule, whether it is allowed or not."""
    return [finding for module in MODULES for finding in findings(module)]


# A line that may stay although a rule forbids it: (module, rule) and the reason.
ALLOWED: dict[tuple[str, str], str] = {
    ("store/git/programs.py", "talk"): "a process made from ours ends there, and says nothing",
    ("flows/endings.py", "talk"): "an exit that a flow's own code makes is caught there; none is made",
}

LONG_FUNCTIONS: dict[str, str] = {
    "gitgate/render/shapes.py:gate": "one literal: the JSON shape of a gate, field by field",
}

# Loaded when they are used, never to list gates or to print help: each costs as much as all of the start-up.
HEAVY = (
    *(
        "yaml",
        "pygit2",
        "git",
        "gitdb",
        "jsonschema_rs",
        "markdown_it",
        "asyncio",
        "http",
        "urllib.request",
        "ssl",
        "email",
    ),
    *("rich", "textual", "importlib.metadata", "multiprocessing", "tempfile", "unittest", "logging"),
)


def test_every_module_keeps_the_rules_of_its_room() -> None:
    """No import points upward, no surface knows another, and no power is used outside its room."""
    broken = [finding for finding in found_in_the_house() if (finding.path, finding.rule) not in ALLOWED]
    assert not broken, "\n".join(map(str, broken))


def test_every_allowance_is_still_needed() -> None:
    """An exception that nothing uses any more is taken off the list."""
    used = {(finding.path, finding.rule) for finding in found_in_the_house()}
    assert set(ALLOWED) <= used


def test_no_modules_import_one_another() -> None:
    """Whoever reads one has an end to it: no circle, neither by an import inside a function nor by one for types."""
    assert circles(MODULES) == []


def test_a_circle_is_seen() -> None:
    """Also a long one, one that is closed by a late import, and one through a package."""
    house = [
        Module("acts/one.py", "from . import two"),
        Module("acts/two.py", "def late():\n    from ..store.three import name"),
        Module("store/three.py", "if TYPE_CHECKING:\n    from ..acts.one import Name"),
        Module("store/four.py", "from .three import name"),
        Module("agents/__init__.py", "from .codex import Codex"),
        Module("agents/codex.py", "from . import AGENTS"),
    ]
    assert circles(house) == [
        ["gitgate.acts.one", "gitgate.acts.two", "gitgate.store.three"],
        ["gitgate.agents", "gitgate.agents.codex"],
    ]


def test_the_whole_house_is_read() -> None:
    """The rules are held over the real package: its lowest and its highest rooms are among what was read."""
    assert {"errors", "model", "store", "cli"} <= {module.room for module in MODULES} <= set(ROOMS)


@pytest.mark.parametrize(
    ("path", "line", "rule"),
    [
        ("record/events.py", "from ..store import git", "direction"),
        ("record/events.py", "from gitgate.acts import asking", "direction"),
        ("record/events.py", "import gitgate.cli.main", "direction"),
        ("record/events.py", "from gitgate import ask", "direction"),
        ("record/events.py", "def late():\n    from ..store.git import Git", "direction"),
        (
            "record/events.py",
            "import importlib\nimportlib.import_module('gitgate.store.git.repository')",
            "direction",
        ),
        ("errors.py", "from .model import states", "direction"),
        ("errors.py", "from . import model", "direction"),
        (
            "store/git/repository.py",
            "if TYPE_CHECKING:\n    from gitgate.acts.asking import Ask",
            "direction",
        ),
        ("acts/asking.py", "from .. import ask", "direction"),
        ("surfaces/tui.py", "from . import mcp", "neighbour"),
        ("surfaces/tui/screen.py", "from ..mcp import server", "neighbour"),
        ("surfaces/tui.py", "from ..cli import main", "direction"),
        ("acts/asking.py", "import pygit2", "owner"),
        ("acts/asking.py", "from git import Repo", "owner"),
        ("acts/asking.py", "def late():\n    __import__('git')", "owner"),
        ("store/records/archive.py", "import yaml", "owner"),
        ("render/text.py", "import click", "owner"),
        ("acts/asking.py", "import subprocess", "owner"),
        ("acts/asking.py", "import os\nos.system('ls')", "process"),
        ("resumption/start.py", "from os import execvp as go\ngo('a', ['a'])", "process"),
        ("cli/verbs/ask.py", "import asyncio\nasyncio.create_subprocess_exec('a')", "process"),
        ("acts/asking.py", "print('hello')", "talk"),
        ("render/text.py", "import sys\nsys.stdout.write('a')", "talk"),
        ("store/git/repository.py", "from sys import exit as leave\nleave(1)", "talk"),
        ("store/git/repository.py", "raise SystemExit(2)", "talk"),
        ("store/git/repository.py", "import os\nos.environ['HOME']", "environment"),
        ("cli/main.py", "from os import environ as e\ne.get('A')", "environment"),
        ("cli/main.py", "import os as o\no.getenv('A')", "environment"),
        ("render/text.py", "from pathlib import Path\nPath.home()", "environment"),
        ("document/codec.py", "import time", "pure"),
        ("text/times.py", "from time import monotonic", "pure"),
        ("document/codec.py", "import os.path", "pure"),
        ("document/codec.py", "from datetime import datetime\ndatetime.now()", "pure"),
        ("document/codec.py", "open('a')", "pure"),
        ("document/codec.py", "import urllib.request", "pure"),
        ("utils.py", "x = 1", "room"),
        ("helpers/text.py", "x = 1", "room"),
    ],
)
def test_a_broken_rule_is_seen(path: str, line: str, rule: str) -> None:
    """Each rule notices the line that breaks it, also inside a function, behind an alias, or under a condition."""
    assert rule in {finding.rule for finding in findings(Module(path, line))}


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (
            "store/git/repository.py",
            "import subprocess\nfrom ..errors import Failure\nfrom ..model import states",
        ),
        ("store/records/archive.py", "import pygit2\nimport git"),
        ("document/codec.py", "import yaml\nfrom ..errors import BadDocument\nfrom .text import clip"),
        ("text/times.py", "from time import gmtime"),
        ("config.py", "import os\nos.environ"),
        ("cli/main.py", "import click, sys\nprint('a')\nsys.exit(1)"),
        (
            "surfaces/tui/screen.py",
            "from . import colours\nfrom ..tui import keys\nfrom ...acts import asking",
        ),
        ("__init__.py", "from .acts import asking"),
        ("__main__.py", "from .cli.main import main\nraise SystemExit(main())"),
        ("acts/asking.py", "def feed(input):\n    self.print(input)\nrecord.exit\nimportant.sys.exit"),
    ],
)
def test_a_kept_rule_is_left_alone(path: str, line: str) -> None:
    """What a room may do is not reported."""
    assert findings(Module(path, line)) == []


def test_a_finding_says_where() -> None:
    """A report names file, line, rule and what was found."""
    (found,) = findings(Module("record/events.py", "\nimport time"))
    assert found == Finding("record/events.py", 2, "pure", "time")
    assert str(found) == "gitgate/record/events.py:2: pure: time"


def told() -> Iterator[tuple[str, Told]]:
    """Each module of the package, by its file, with what its syntax tree says."""
    return ((f"gitgate/{module.path}", told_by(module)) for module in MODULES)


def test_a_class_is_found_by_its_name() -> None:
    """No two modules of the package have a public class of one name."""
    homes: dict[str, list[str]] = {}
    for name, module in told():
        for one in module.classes:
            if not one.startswith("_"):
                homes.setdefault(one, []).append(name)
    assert {"Gate", "Desk"} <= set(homes)
    assert {one: where for one, where in homes.items() if len(where) > 1} == {}


def test_a_function_is_found_by_its_name() -> None:
    """At most two modules of the package have a function of one name: with more, nobody finds the one that is meant."""
    homes: dict[str, set[str]] = {}
    for name, module in told():
        for one in module.functions:
            if not one.startswith("_"):
                homes.setdefault(one, set()).add(name)
    assert {"ask", "main"} <= set(homes)
    del homes["main"]  # where a process begins
    assert {one: sorted(where) for one, where in homes.items() if len(where) > 2} == {}


def test_functions_are_short() -> None:
    """About 60 lines at most; a longer one is on the list with its reason."""
    found = {f"{name}:{function}": lines for name, module in told() for function, lines in module.long}
    assert {place: lines for place, lines in found.items() if place not in LONG_FUNCTIONS} == {}


def test_exceptions_name_modules_that_exist() -> None:
    """An exception that nothing needs any more is taken off the list."""
    assert {key.partition(":")[0] for key in LONG_FUNCTIONS} <= {
        f"gitgate/{module.path}" for module in MODULES
    }


def test_long_functions_are_seen() -> None:
    """A function is measured by its body, not by its docstring."""
    long = "def long():\n" + "    a = 1\n" * 70
    described = 'def told():\n    """' + "word\n" * 70 + '    """\n    a = 1\n'
    assert told_by(Module("acts/asking.py", long + described)).long == [("long", 70)]


def test_a_docstring_stands_alone() -> None:
    """A docstring begins with a verb or a noun, and not as a riddle that only the code answers."""
    assert {name: found for name, module in told() if (found := module.riddles)} == {}


def test_a_riddle_is_seen() -> None:
    """A function's and a class's docstring are read; a word that only begins like one of the list is none."""
    source = 'def one():\n    """What it gives."""\nclass Two:\n    """The same, twice."""\ndef three():\n    """Whoa."""\n'
    assert told_by(Module("acts/asking.py", source)).riddles == ["one", "Two"]


def test_starting_up_loads_nothing_heavy() -> None:
    """`git gate`, before it knows the verb, has loaded neither YAML nor any git library nor an event loop."""
    asked = f"import gitgate.cli.main, sys; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    # Some are loaded by click itself; they are in the yardstick too.
    click = f"import click, sys; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    base = subprocess.run([sys.executable, "-c", click], capture_output=True, text=True, check=True).stdout
    assert set(said.split()) <= set(base.split())
