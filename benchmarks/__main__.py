"""Benchmarks: `python -m benchmarks [ROW…] [--json]` measures and prints; exit 1 when a row is over its limit.

`python -m benchmarks scale` and `python -m benchmarks simulation` are commands of their own: what many machines and many gates cost.
So are `python -m benchmarks peers`, other programs beside ours, and `python -m benchmarks parts`, what a command's time goes to.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from . import scenes
from .measure import Row, machine
from .rows import ROWS

# The brokers and workers that the tests have.
TESTS = Path(__file__).parents[1] / "tests"


def main() -> int:
    if sys.argv[1:2] == ["scale"]:
        sys.path.append(str(TESTS))
        from . import scale

        return scale.main(sys.argv[2:])
    if sys.argv[1:2] == ["simulation"]:
        from . import simulation

        return simulation.main(sys.argv[2:])
    if sys.argv[1:2] == ["peers"]:
        from . import peers

        return peers.main(sys.argv[2:])
    if sys.argv[1:2] == ["parts"]:
        from . import parts

        return parts.main(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "rows", nargs="*", metavar="ROW", help=f"which to measure: {', '.join(ROWS)} (default: all)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    given = parser.parse_args()
    strange = [name for name in given.rows if name not in ROWS]
    if strange:
        parser.error(f"there is no row {strange[0]}; the rows are {', '.join(ROWS)}")
    found: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="gitgate-bench-") as folder:
        scenes.seal(Path(folder))
        for name in given.rows or ROWS:
            room = Path(folder) / name
            room.mkdir()
            print(f"measuring {name} …", file=sys.stderr)
            found += ROWS[name](room)
    if given.json:
        print(json.dumps({"machine": machine(), "rows": [row.as_json() for row in found]}))
    else:
        print("\n".join(table(found)))
    return 0 if all(row.met for row in found) else 1


def table(found: list[Row]) -> list[str]:
    lines = [machine(), ""]
    wide = max(len(row.name) for row in found)
    for row in found:
        figures = f"{row.ours:10.1f} {row.unit:5}" + (
            f"{row.theirs:10.1f} {row.unit}" if row.theirs is not None else " " * 13
        )
        value = f"{row.value:8.2f}x" if row.theirs is not None else " " * 9
        limit = f"{row.limit:g}{'x' if row.theirs is not None else ' ' + row.unit}"
        lines.append(
            f"{row.name:{wide}} {figures} {value}  at most {limit:10} {'ok  ' if row.met else 'OVER'} {row.yardstick}"
        )
    return lines


if __name__ == "__main__":
    sys.exit(main())
