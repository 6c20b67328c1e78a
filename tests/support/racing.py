"""Test bed: the same small program in many processes that start at the same moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HEAD = """
import os, sys
from pathlib import Path
from gitgate.errors import GateError
from gitgate.context import open_desk

desk = open_desk(Path(sys.argv[1]), os.environ)
who = int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
"""


def race(path: Path, program: str, racers: int, *args: str, timeout: float = 100) -> list[list[str]]:
    """What each of `racers` processes printed. They find `desk`, `who` and `sys.argv[3:]`, and all of them go at once."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", HEAD + program, str(path), str(number), *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(racers)
    ]
    for racer in running:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in running:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    said = [racer.communicate(timeout=timeout)[0].splitlines() for racer in running]
    assert [racer.returncode for racer in running] == [0] * racers
    return said
