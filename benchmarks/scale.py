"""Benchmarks: `python -m benchmarks scale [PART…]`: what many workers, many answers and many gates cost. A small run takes a minute or two;
`--large` is for a quiet machine and takes an hour.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from . import scenes
from .measure import Table, machine

SMALL = {
    "workers": "1,2",
    "each": 4,
    "sleep": 2.0,
    "tasks": 500,
    "rounds": 3,
    "burst": 100,
    "gates": "100,1000",
}
LARGE = {
    "workers": "1,2,4,8",
    "each": 10,
    "sleep": 5.0,
    "tasks": 5000,
    "rounds": 10,
    "burst": 1000,
    "gates": "1000,10000,100000",
}


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def workers_part(room: Path, given: argparse.Namespace) -> list[Table]:
    from .fleet import throughput

    return throughput(room, numbers(given.workers), given.each, given.sleep, given.tasks)


def start_part(room: Path, given: argparse.Namespace) -> list[Table]:
    from .fleet import from_push_to_start

    return from_push_to_start(room, given.rounds)


def burst_part(room: Path, given: argparse.Namespace) -> list[Table]:
    from .fleet import one_push

    return one_push(room, given.burst)


def one_part(room: Path, _given: argparse.Namespace) -> list[Table]:
    from .fleet import cost_of_one

    return cost_of_one(room)


def gates_part(room: Path, given: argparse.Namespace) -> list[Table]:
    from .growth import growth

    return growth(room, numbers(given.gates), given.kinds.split(","), given.rounds)


PARTS: dict[str, Callable[[Path, argparse.Namespace], list[Table]]] = {
    "workers": workers_part,
    "start": start_part,
    "burst": burst_part,
    "one": one_part,
    "gates": gates_part,
}


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks scale", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--large", action="store_true", help="other sizes where none are given")
    parser.add_argument("--workers", metavar="N,N", help="how many workers")
    parser.add_argument("--each", type=int, metavar="N", help="answers for each worker")
    parser.add_argument("--sleep", type=float, metavar="S", help="how long the agent sleeps")
    parser.add_argument("--tasks", type=int, metavar="N", help="empty tasks of Celery's")
    parser.add_argument("--rounds", type=int, metavar="N", help="how often what is brief is measured")
    parser.add_argument("--burst", type=int, metavar="N", help="answers in one push")
    parser.add_argument("--gates", metavar="N,N", help="open gates in one repository")
    parser.add_argument(
        "--kinds", default="loose,packed,reftable", help="how refs are kept (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    given = parser.parse_args(words)
    for name, size in (LARGE if given.large else SMALL).items():
        if getattr(given, name) is None:
            setattr(given, name, size)
    strange = [name for name in given.parts if name not in PARTS]
    if strange:
        parser.error(f"there is no part {strange[0]}; the parts are {', '.join(PARTS)}")
    return given


def measure(given: argparse.Namespace, room: Path) -> list[Table]:
    found: list[Table] = []
    for name in given.parts or PARTS:
        print(f"measuring {name} …", file=sys.stderr)
        found += PARTS[name](room / name, given)
    return found


def main(words: Sequence[str]) -> int:
    given = parse(words)
    where = f"{machine()}, load {os.getloadavg()[0]:.1f} at the beginning"
    with tempfile.TemporaryDirectory(prefix="gitgate-scale-") as folder:
        scenes.seal(Path(folder))
        found = measure(given, Path(folder))
    if given.json:
        print(json.dumps({"machine": where, "tables": [table.as_json() for table in found]}))
    else:
        print("\n\n".join([where, *map(str, found)]))
    return 0
