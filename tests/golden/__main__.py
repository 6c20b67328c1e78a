"""Golden: `python -m tests.golden [PART …] [--write]`: says what differs from the files that are kept, or renews them."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from .compare import EXPECTED, differences, render
from .rounds import list_rounds

PARTS = ("quick", "started", "records")


def main(words: list[str]) -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    asked.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}, rounds; none: all")
    asked.add_argument("--write", action="store_true", help="renew the files")
    given = asked.parse_args(words)
    shown: dict[str, str] = {}
    for part in given.parts or (*PARTS, "rounds"):
        if part == "rounds":
            shown["rounds.txt"] = list_rounds()
            continue
        with tempfile.TemporaryDirectory() as folder:
            shown |= render(part, Path(folder).resolve())
    found = list(differences(shown))
    if given.write:
        for name, text in shown.items():
            (EXPECTED / name).write_text(text, "utf-8")
    sys.stdout.write("\n\n".join(found) + ("\n" if found else "nothing differs\n"))
    return 1 if found and not given.write else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
