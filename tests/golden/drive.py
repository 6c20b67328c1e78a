"""Golden: `python -m golden.drive FOLDER PART`: renders one part into a folder, in a process whose clock stands still."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from .records import RECORDS
from .scene import Scene
from .surfaces import QUICK, STARTED, set_the_scene

PARTS = {"quick": QUICK, "started": STARTED, "records": RECORDS}


def main(folder: Path, part: str) -> None:
    scene = Scene(folder)
    (folder / "out").mkdir()
    if part != "records":
        set_the_scene(scene)
    for name, render in PARTS[part].items():
        began = time.process_time()
        write(scene, folder / "out" / f"{name}.txt", render.__doc__ or "", render(scene))
        sys.stderr.write(f"{name}: {time.process_time() - began:.2f} s of its own\n")


def write(scene: Scene, place: Path, title: str, pieces: Iterator[tuple[str, str]]) -> None:
    """Write a golden file: a piece below each name."""
    shown = [f"\n==== {name}\n{piece}" for name, piece in pieces]
    words = " ".join(line.strip() for line in title.splitlines()).strip()
    text = scene.plain(f"{words}\n{''.join(shown)}")
    # YAML quotes a word of digits alone.
    place.write_text(
        re.sub(r'^([\w -]*: |[ -]*- )"(<[^<>"\s]+>)"$', r"\1\2", text, flags=re.MULTILINE), "utf-8"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
