#!/usr/bin/env python3
"""Documentation: render from the code what the code knows: the reference, the manual page, states, settings, exits.

`docs/generate.py` writes; `--check` only says what is out of date. In a page that people write, only what stands between
`<!-- generated: NAME -->` and `<!-- end -->` is replaced. The repository's address is carried from gitgate/version.py to
every file that names it; which address stood there until now, pyproject.toml says.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from generator import manual, markdown, tree

from gitgate.cli import MEANINGS
from gitgate.cli.main import SECTIONS, cli
from gitgate.config import SETTINGS
from gitgate.model import RUN_TABLE, TABLE
from gitgate.version import REPOSITORY, VERSION

DOCS = Path(__file__).parent
TOP = DOCS.parent
ADDRESS = re.compile(r'^Source = "https://github\.com/([\w.-]+/[\w.-]+)"$', re.MULTILINE)
ADDRESSED = (
    "pyproject.toml",
    "mkdocs.yml",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs/*.md",
    "plugin/**/*.md",
    "gitgate/texts/**/*.yml",
)
BLOCK = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(\n<!-- end -->)", re.DOTALL)


def blocks() -> dict[str, str]:
    """Every piece that a page may hold, by name."""
    return {
        "reference": markdown.reference(tree.root(cli), tree.read(cli, SECTIONS)),
        "states": markdown.diagram(TABLE),
        "run-states": markdown.diagram(RUN_TABLE),
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
    return {**found, **addressed(found)}


def addressed(pages: dict[Path, str]) -> dict[Path, str]:
    """Each file that names the repository, with the address that it has now."""
    named = ADDRESS.search((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    if named is None:
        raise SystemExit('pyproject.toml has no line: Source = "https://github.com/…"')
    old = re.compile(
        rf"(?<![\w./-]){re.escape(named[1])}(?![\w-])|(?<=github\.com/){re.escape(named[1])}(?![\w-])"
    )
    files = sorted({path for pattern in ADDRESSED for path in TOP.glob(pattern)})
    texts = {path: pages[path] if path in pages else path.read_text(encoding="utf-8") for path in files}
    return {path: old.sub(REPOSITORY, text) for path, text in texts.items() if old.search(text)}


def main(arguments: list[str]) -> int:
    """Write what differs, or with `--check` name it and fail."""
    stale = [
        (path, text)
        for path, text in rendered().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        if arguments == ["--check"]:
            print(f"{path.relative_to(TOP)} is out of date: python docs/generate.py")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"{path.relative_to(TOP)} written")
    return 1 if stale and arguments == ["--check"] else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
