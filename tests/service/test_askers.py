"""The name of an agent that gave none: of the program that called, in words that a list can show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from testbed.repositories import Clone

CALLS = """
import pathlib, subprocess, sys
pathlib.Path("/proc/self/comm").write_bytes(bytes.fromhex(sys.argv[1]))
subprocess.run([sys.executable, "-m", "gitgate", "ask", "Which?", "--no-work", "--json"], check=True)
"""


@pytest.mark.skipif(not Path("/proc/self/comm").exists(), reason="Linux alone lets a process name itself so")
@pytest.mark.parametrize(
    ("named", "shown"),
    [
        (b"coder", "coder"),
        (b"memfd:sealed", "sealed"),
        (b"my agent (2)", "my-agent-2"),
        ("агент".encode(), "агент"),
        (b"\x1b[2J:;\xff", "process"),
    ],
)
def test_the_calling_programs_name(repo: Clone, named: bytes, shown: str) -> None:
    """Whatever it calls itself: no escapes, blanks or marks of the system's get into the name."""
    import json

    done = subprocess.run(
        [sys.executable, "-c", CALLS, named.hex()], cwd=repo.path, capture_output=True, timeout=30, check=True
    )
    name = json.loads(done.stdout)["asked"]["agent"]
    assert name.rpartition("-")[0] == f"agent-{shown}"
