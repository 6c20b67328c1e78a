"""How the workflows hang together: what starts them, what their conditions let through, what one job gives to the next."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from forges.jobs import ACTION, OTHERS, TOP, WORKFLOWS, load

OURS = [*sorted(WORKFLOWS.glob("*.yml")), ACTION]


# what is started


def lines_of(path: Path) -> list[str]:
    """Each line of each `run:`."""
    said = load(path)
    each: list[dict[str, Any]] = [said["runs"]] if "runs" in said else list(said["jobs"].values())
    return [
        line
        for one in each
        for step in one["steps"]
        for line in str(step.get("run", "")).splitlines()
        if line
    ]


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_no_step_runs_python_from_where_it_stands(path: Path) -> None:
    """It would take a module of the checkout for its own: before anything else, with `-m` as with a program on its input."""
    lines = lines_of(path)
    assert lines
    for line in lines:
        for found in re.finditer(r"(?:^|[\s;&|(/\"'])python[\d.]*\s+(\S+)", line):
            assert found[1] in ("-I", "-P"), line


@pytest.mark.parametrize("line", [line for line in OTHERS if "pip" in line])
def test_installing_runs_nothing_of_the_checkout(tmp_path: Path, line: str) -> None:
    """In a job the folder is the agent's branch, which may have a `pip.py`: pip's own answers, that there is no such package."""
    for name in ("pip", "runpy", "json", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w').close()\n")
    none = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    given = {"PACKAGE": "no-such-package", "SOURCE": "no-such-package", **none}
    env = {**os.environ, **given, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    said = subprocess.run(
        ["bash", "-ec", line], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert not (tmp_path / "ran").exists()
    assert "No matching distribution found for no-such-package" in said.stderr
    assert any(line in path.read_text() for path in (ACTION, TOP / ".github/workflows/answer.yml"))
