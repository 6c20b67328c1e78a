"""Golden: time, chance and this machine's name stand still, in every Python that the renderer starts. Python loads this first."""

import hashlib
import itertools
import os
import runpy
import time
from pathlib import Path

if "GOLDEN_CLOCK" in os.environ:
    CLOCK = Path(os.environ["GOLDEN_CLOCK"])
    DRAWN = itertools.count()
    NAMES = os.uname_result(("Linux", "golden", "6", "1", "x86_64"))

    def moment() -> float:
        """Return the time that stands in the renderer's file."""
        return float(CLOCK.read_text("ascii"))

    def draw(size: int) -> bytes:
        """Return bytes that are the same in each run of the same program: by their number, and by what was typed."""
        seed = f"{next(DRAWN)} {os.environ.get('GOLDEN_SEED', '')}".encode()
        return hashlib.shake_256(seed).digest(size)

    time.time = moment
    os.urandom = draw
    os.uname = lambda: NAMES

runpy.run_path(str(Path(__file__).parents[2] / "support/testbed/outside/sitecustomize.py"))
