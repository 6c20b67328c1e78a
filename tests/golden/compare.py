"""Golden: renders the parts, each in a process of its own, and compares them with the files that are kept."""

from __future__ import annotations

import difflib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

EXPECTED = Path(__file__).parent / "expected"
TESTS = Path(__file__).parents[1]
MOST = 120  # lines of a difference; who needs more runs the command


def render(part: str, folder: Path) -> dict[str, str]:
    """Return the files of a part, as the product renders them now."""
    sys.path.insert(0, str(TESTS))
    from golden.scene import sealed

    (folder / "clock").write_text("1780000000.000", "ascii")
    done = subprocess.run(
        [sys.executable, "-m", "golden.drive", str(folder), part],
        env=sealed(folder),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"rendering {part} failed:\n{done.stdout}{done.stderr}")
    return {place.name: place.read_text("utf-8") for place in sorted((folder / "out").iterdir())}


def differences(shown: dict[str, str]) -> Iterator[str]:
    """Say of each file how it differs from the one that is kept."""
    for name, text in shown.items():
        kept = EXPECTED / name
        before = kept.read_text("utf-8").splitlines() if kept.exists() else []
        found = list(difflib.unified_diff(before, text.splitlines(), f"expected/{name}", "now", lineterm=""))
        if found:
            yield "\n".join(found[:MOST])
