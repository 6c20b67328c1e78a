"""Test bed: a job of ours, step by step, as its workflow file says it: each `run:` that calls our command, with its `env:`.

There is no runner for workflows to be had offline, which is why each step is one call. An expression that this does not know
fails the test; what other steps do (check out, install) is the test's own business.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gitgate.core import codec

TOP = Path(__file__).parents[2]
WORKFLOWS = TOP / ".github/workflows"
EXPRESSION = re.compile(r"\$\{\{\s*(.+?)\s*\}\}")


@dataclass(frozen=True)
class Step:
    """What one step said."""

    name: str
    code: int
    out: str
    err: str


def load(path: Path) -> dict[str, Any]:
    value = codec.parse(path.read_bytes(), path.name).plain()
    assert isinstance(value, dict)
    return value


def filled(text: str, known: Mapping[str, str]) -> str:
    """The text with its expressions as the runner would fill them in."""
    return EXPRESSION.sub(lambda found: known[found.group(1)], text)


def run_job(
    name: str, known: Mapping[str, str], folder: Path, env: Mapping[str, str], *, job: str = ""
) -> list[Step]:
    """The steps of a workflow's first job, or of the one named, in a checkout, until one fails; those for any case run on."""
    said = load(WORKFLOWS / name)
    chosen = said["jobs"][job] if job else next(iter(said["jobs"].values()))
    inputs = {
        f"inputs.{key}": str(one.get("default", ""))
        for key, one in said["on"]["workflow_call"]["inputs"].items()
    }
    secrets = {f"secrets.{key}": "" for key in said["on"]["workflow_call"]["secrets"]}
    context = {**inputs, **secrets, "github.token": "job-token", **known}
    done: list[Step] = []
    for step in chosen["steps"]:
        if not str(step.get("run", "")).startswith("git-gate "):
            continue
        if any(one.code for one in done) and step.get("if") != "always()":
            continue
        mine = {key: filled(str(value), context) for key, value in step.get("env", {}).items()}
        assert "${{" not in step["run"], "an expression in a command would be read by the shell"
        ended = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=folder,
            env={**os.environ, **env, **mine},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        done.append(Step(str(step["name"]), ended.returncode, ended.stdout, ended.stderr))
    return done
