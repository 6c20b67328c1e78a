"""Benchmarks: `python -m benchmarks parts`: where the processor time of `show`, `ask` and `respond` goes: Python's own start, imports by
where they come from, git's processes one by one, and our functions. Nothing is pushed. Other work on the machine has no part in it.
"""

from __future__ import annotations

import argparse
import json
import os
import pstats
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from . import scenes
from .measure import Table, machine, run

INSIDE = str(Path(__file__).with_name("inside.py"))
IMPORTED = "imports: "
STARTED = "process: "
REST = "what git gate itself does"
TITLE = "milliseconds of a processor"
Function = tuple[str, int, str]


class Verbs:
    """A repository with open gates, and the words of each verb, as they are typed."""

    def __init__(self, room: Path, gates: int, rounds: int) -> None:
        self.place = scenes.repository(room / "place")
        self.ids = iter(scenes.with_gates(self.place, max(gates, 2 * rounds + 4)))
        self.first = next(self.ids)

    def words(self, verb: str) -> list[str]:
        if verb == "show":
            return ["show", self.first]
        if verb == "ask":
            return ["ask", "Which way?", "--type", "choice", "-o", "Left", "-o", "Right", "-q"]
        return ["respond", next(self.ids), "Left", "-q"]


def take_apart(verbs: Verbs, verb: str, profile: Path | None = None) -> dict[str, Any]:
    """What one command reports of itself."""
    place = verbs.place.parent / "report.json"
    place.unlink(missing_ok=True)
    command = [sys.executable, "-P", INSIDE, str(place), *verbs.words(verb)]
    if profile is not None:
        command = ["env", f"GITGATE_PROFILE={profile}", *command]
    run(command, verbs.place)
    return dict(json.loads(place.read_text("utf-8")))


def source(module: str) -> str:
    """Where a module comes from, in a word."""
    name = module.partition(".")[0]
    if name in ("pygit2", "_cffi_backend", "cffi", "_pygit2"):
        return "pygit2"
    if name in sys.stdlib_module_names:
        return "Python's own library"
    return "git gate's own modules" if name == "gitgate" else name


def command_of(words: Sequence[str]) -> str:
    """A process by its program and verb: `git update-ref`."""
    rest = iter(words[1:])
    for word in rest:
        if word == "-c":
            next(rest, None)
        elif not word.startswith("-"):
            return f"{Path(words[0]).name} {word}"
    return Path(words[0]).name


def rows_of(found: dict[str, Any]) -> dict[str, float]:
    """One command's milliseconds, by what they went to; they add up to the last one."""
    rows = {"Python's start": found["interpreter"] * 1000}
    for module, took in found["modules"].items():
        name = IMPORTED + source(module)
        rows[name] = rows.get(name, 0.0) + took * 1000
    own = found["whole"] - sum(found["modules"].values()) - found["starting"]
    rows[REST] = own * 1000
    rows["starting processes"] = found["starting"] * 1000
    for words, took in found["processes"]:
        name = STARTED + command_of(words)
        rows[name] = rows.get(name, 0.0) + took * 1000
    rows["all of it"] = (found["interpreter"] + found["whole"] + found["children"]) * 1000
    return rows


def medians(taken: Sequence[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for one in taken for name in one)
    return {name: statistics.median(one.get(name, 0.0) for one in taken) for name in names}


def order(name: str) -> tuple[int, str]:
    kinds = ("Python", IMPORTED, REST, "starting", STARTED, "all")
    return next(place for place, kind in enumerate(kinds) if name.startswith(kind)), name


def whole_table(found: dict[str, dict[str, float]], rounds: int) -> Table:
    names = sorted({name for column in found.values() for name in column}, key=order)
    rows = [[name, *(column.get(name, "-") for column in found.values())] for name in names]
    return Table(f"{TITLE}, the median of {rounds} rounds", ["", *found], rows)


def is_ours(function: Function) -> bool:
    """Ours, and not what a module does while it is imported."""
    return f"{os.sep}gitgate{os.sep}" in function[0] and function[2] != "<module>"


def is_import(function: Function) -> bool:
    return "importlib" in function[0] or function[2] == "<module>" or "find_and_load" in function[2]


def shares(statistic: dict[Function, Any]) -> Iterator[tuple[str, float]]:
    """Each of our functions with what it did itself, what it called of others' included: `store.git.refs.read` and seconds."""

    def handed(function: Function, amount: float, path: frozenset[Function]) -> Iterator[tuple[str, float]]:
        if is_ours(function):
            yield named(function), amount
            return
        callers = statistic[function][4]
        total = sum(one[3] for one in callers.values())
        if is_import(function) or function in path or not total or amount < 1e-6:
            return
        for caller, (_, _, _, took) in callers.items():
            yield from handed(caller, amount * took / total, path | {function})

    for function, (_, _, own, _, _) in statistic.items():
        yield from handed(function, own, frozenset())


def named(function: Function) -> str:
    inside = function[0].rpartition(f"{os.sep}gitgate{os.sep}")[2].removesuffix(".py")
    return f"{inside.replace(os.sep, '.')}.{function[2]}"


def functions_table(verb: str, profiles: Sequence[Path], most: int) -> Table:
    """Counting calls takes time of its own: the shares say something, milliseconds would not."""
    took: dict[str, float] = {}
    for place in profiles:
        loaded: Any = pstats.Stats(str(place))
        for name, amount in shares(loaded.stats):
            took[name] = took.get(name, 0.0) + amount
    whole = sum(took.values())
    first = sorted(took, key=lambda name: -took[name])[:most]
    rows: list[list[object]] = [[name, f"{took[name] / whole:.0%}"] for name in first]
    rows.append([f"{len(took) - len(first)} others", f"{1 - sum(took[name] for name in first) / whole:.0%}"])
    return Table(f"{verb}: {REST}, by function", ["", "share"], rows)


def measure(room: Path, gates: int, rounds: int, most: int) -> list[Table]:
    verbs = Verbs(room, gates, rounds)
    names = ("show", "ask", "respond")
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for number in range(rounds + 1):
        for name in names:
            found = rows_of(take_apart(verbs, name))
            if number:  # The first one warms up.
                taken[name].append(found)
    profiles = {name: [room / f"{name}-{number}" for number in range(rounds)] for name in names}
    for name, places in profiles.items():
        for place in places:
            take_apart(verbs, name, place)
    tables: list[Table] = [whole_table({name: medians(found) for name, found in taken.items()}, rounds)]
    return [*tables, *(functions_table(name, places, most) for name, places in profiles.items())]


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks parts", description=__doc__)
    whole: Callable[[str], int] = int
    parser.add_argument("--gates", type=whole, default=10, metavar="N", help="open gates in the repository")
    parser.add_argument("--rounds", type=whole, default=9, metavar="N", help="how often each verb is run")
    parser.add_argument("--most", type=whole, default=6, metavar="N", help="how many functions are named")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="gitgate-parts-") as folder:
        scenes.seal(Path(folder))
        found = measure(Path(folder), given.gates, given.rounds, given.most)
    if given.json:
        print(json.dumps({"machine": machine(), "tables": [one.as_json() for one in found]}))
    else:
        print("\n\n".join([machine(), *map(str, found)]))
    return 0
