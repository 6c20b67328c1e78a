#!/usr/bin/env python3
"""Documentation: render from the code what the code knows: the reference, the manual page, states, settings, exits.

`docs/generate.py` writes; `--check` only says what is out of date. In a page that people write, only what stands between
`<!-- generated: NAME -->` and `<!-- end -->` is replaced.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from generator import manual, markdown, tree

from gitgate.cli.exits import MEANINGS
from gitgate.cli.main import SECTIONS, cli
from gitgate.config import SETTINGS
from gitgate.core.states import TABLE
from gitgate.version import VERSION

DOCS = Path(__file__).parent
BLOCK = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(\n<!-- end -->)", re.DOTALL)


def blocks() -> dict[str, str]:
    """Every piece that a page may hold, by name."""
    return {
        "reference": markdown.reference(tree.root(cli), tree.read(cli, SECTIONS)),
        "states": markdown.diagram(TABLE),
        "events": markdown.events(TABLE),
        "settings": markdown.settings(SETTINGS),
        "exits": markdown.exits(MEANINGS),
    }


def rendered() -> dict[Path, str]:
    """Each file that has something generated, as it should be."""
    pieces = blocks()
    pages = {page: page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("*.md"))}
    found = {
        page: BLOCK.sub(lambda block: block[1] + pieces[block[2]] + block[3], text)
        for page, text in pages.items()
    }
    found[DOCS / "git-gate.1"] = manual.page(
        tree.root(cli), tree.read(cli, SECTIONS), SETTINGS, MEANINGS, VERSION
    )
    return found


def main(arguments: list[str]) -> int:
    """Write what differs, or with `--check` name it and fail."""
    stale = [
        (path, text)
        for path, text in rendered().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        if arguments == ["--check"]:
            print(f"docs/{path.name} is out of date: python docs/generate.py")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"docs/{path.name} written")
    return 1 if stale and arguments == ["--check"] else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
