"""Test bed: a job of ours, step by step, as its workflow file says it: each `run:` that calls our command, with its `env:`.

There is no runner for workflows to be had offline, which is why each step is one call. An expression that this does not know
fails the test, and so does a step that is neither one call of ours nor one of `OTHERS`. Between steps it does as the runner
does: outputs of a step with an `id`, and what was written to GITHUB_ENV and GITHUB_PATH, are there for those after it.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gitgate.document import codec

from .expressions import FAILURE, SUCCESS, filled, holds, value_of

TOP = Path(__file__).parents[3]
WORKFLOWS = TOP / ".github/workflows"
ACTION = TOP / ".github/actions/git-gate/action.yml"
OUR_ACTION = "/.github/actions/git-gate@"
# One call of ours, of plain words and variables: nothing that a shell would make more of.
CALL = re.compile(r'git-gate github( ([a-z-]+|"\$[A-Z_]+"))+')
PIP = "python -I -m pip install --quiet"
LOCKED = "--require-hashes --only-binary :all:"
ALONE = "--no-index --no-deps --no-build-isolation"
NAMED = f'{PIP} --no-deps --no-build-isolation -r /dev/stdin <<< "$PACKAGE"'
# The only other command lines that a job of ours may run, each with why. They fetch programs: a test has them already.
OTHERS = {
    f"{PIP} {LOCKED} -r .github/requirements/gate.txt": "our command is not there yet; what it needs, by the lock's hashes",
    f"{PIP} {ALONE} .": "our command, from the commit that is checked out, and nothing besides",
    NAMED: "our command as the caller names it, and nothing besides",
    f'{PIP} {LOCKED} -r "$SOURCE/.github/requirements/gate.txt"': "the same in the action, by its own lock",
    f'{PIP} {ALONE} "$SOURCE"': "and from its own commit",
    'npm install --global --silent --no-audit --no-fund -- "$AGENT_PACKAGE"': "the agent's program, in the version"
    " that the caller names",
}


@dataclass(frozen=True)
class Step:
    """What one step said."""

    name: str
    code: int
    out: str
    err: str


@dataclass
class Runner:
    """What is carried from one step to the next."""

    folder: Path
    env: dict[str, str]
    context: dict[str, str]
    done: list[Step] = field(default_factory=list)

    def run(self, step: Mapping[str, Any]) -> None:
        """One step of ours, where its condition holds; without one, and after a failed step, it does not."""
        command = str(step["run"])
        if not holds(step.get("if"), self.context, FAILURE if self.failed else SUCCESS) or command in OTHERS:
            return
        assert CALL.fullmatch(command), f"neither one call of ours nor an exception: {command}"
        with tempfile.TemporaryDirectory() as folder:
            files = {name: Path(folder) / name for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH")}
            for file in files.values():
                file.touch()
            mine = {name: filled(str(value), self.context) for name, value in step.get("env", {}).items()}
            ended = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", command],
                cwd=self.folder,
                env={**os.environ, **self.env, **{name: str(file) for name, file in files.items()}, **mine},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=100,
                check=False,
            )
            self.take(str(step.get("id", "")), {name: file.read_text() for name, file in files.items()})
        self.done.append(Step(str(step.get("name", command)), ended.returncode, ended.stdout, ended.stderr))

    def act(self, step: Mapping[str, Any]) -> None:
        """The steps of our composite action, and its outputs as those of this one."""
        said, context = load(ACTION), self.context
        given = {name: str(one["default"]) for name, one in said["inputs"].items()}
        given |= {name: str(value) for name, value in step.get("with", {}).items()}
        inside = {f"inputs.{name}": filled(value, context) for name, value in given.items()}
        self.context = {**inside, "github.action_path": str(ACTION.parent)}
        for one in said["runs"]["steps"]:
            if "run" in one:
                self.run(one)
        for name, output in said["outputs"].items():
            context[f"steps.{step['id']}.outputs.{name}"] = filled(output["value"], self.context)
        self.context = context

    def take(self, step: str, said: Mapping[str, str]) -> None:
        for name, value in pairs(said["GITHUB_OUTPUT"]):
            self.context[f"steps.{step}.outputs.{name}"] = value
        self.env |= dict(pairs(said["GITHUB_ENV"]))
        for folder in said["GITHUB_PATH"].splitlines():
            self.env["PATH"] = f"{folder}:{self.env.get('PATH', os.environ['PATH'])}"
        if self.env.get("GITHUB_OUTPUT"):
            with Path(self.env["GITHUB_OUTPUT"]).open("a") as out:
                out.write(said["GITHUB_OUTPUT"])

    @property
    def failed(self) -> bool:
        return any(one.code for one in self.done)


def pairs(text: str) -> list[tuple[str, str]]:
    return [
        (name, value) for name, equals, value in (line.partition("=") for line in text.splitlines()) if equals
    ]


def load(path: Path) -> dict[str, Any]:
    value = codec.parse_document(path.read_bytes(), path.name).plain()
    assert isinstance(value, dict)
    return value


def run_job(
    name: str, known: Mapping[str, str], folder: Path, env: Mapping[str, str], *, job: str = ""
) -> list[Step]:
    """The steps of a workflow's first job, or of the one named, in a checkout. GITHUB_OUTPUT of `env`, if any, gets it all."""
    said = load(WORKFLOWS / name)
    chosen = said["jobs"][job] if job else next(iter(said["jobs"].values()))
    called = said["on"]["workflow_call"]
    context = {**defaults(called["inputs"], called["secrets"]), **known}
    return run_steps(chosen["steps"], context, folder, env)


def defaults(inputs: Mapping[str, Any], secrets: Mapping[str, Any]) -> dict[str, str]:
    found = {f"inputs.{name}": str(one.get("default", "")) for name, one in inputs.items()}
    return {**found, **{f"secrets.{name}": "" for name in secrets}, "github.token": "job-token"}


def run_steps(
    steps: list[dict[str, Any]], context: Mapping[str, str], folder: Path, env: Mapping[str, str]
) -> list[Step]:
    return ran(steps, context, folder, env).done


def ran(
    steps: list[dict[str, Any]], context: Mapping[str, str], folder: Path, env: Mapping[str, str]
) -> Runner:
    runner = Runner(folder, {"GITHUB_ACTIONS": "true", **env}, dict(context))
    for step in steps:
        if "run" in step:
            runner.run(step)
        elif OUR_ACTION in step.get("uses", ""):
            runner.act(step)
    return runner


@dataclass(frozen=True)
class Ran:
    """One job of a workflow that was called. `gate`: which of the matrix, if it has one."""

    job: str
    gate: str
    steps: list[Step]


def run_workflow(
    name: str, known: Mapping[str, str], checkout: Callable[[str], Path], env: Mapping[str, str]
) -> list[Ran]:
    """All jobs of a workflow, each in a checkout of its own, with what those before it gave out."""
    done: list[Ran] = []
    given: dict[str, dict[str, str]] = {}
    for job, one in load(WORKFLOWS / name)["jobs"].items():
        here = dict(known)
        for needed in needs(one):
            here |= given[needed]
        given[job] = {f"needs.{job}.outputs.{output}": "" for output in one.get("outputs", {})}
        failed = any(step.code for before in done for step in before.steps)
        if not holds(one.get("if"), here, FAILURE if failed else SUCCESS):
            continue
        for gate in matrix(one, here):
            inside = here if gate is None else {**here, "matrix.gate": gate}
            runner = ran(one["steps"], inside, checkout(ref_of(one, inside)), env)
            done.append(Ran(job, gate or "", runner.done))
            for output, value in one.get("outputs", {}).items():
                given[job][f"needs.{job}.outputs.{output}"] = filled(value, runner.context)
    return done


def needs(job: Mapping[str, Any]) -> list[str]:
    named = job.get("needs", [])
    return [named] if isinstance(named, str) else list(named)


def matrix(job: Mapping[str, Any], known: Mapping[str, str]) -> list[str | None]:
    """A job for each gate that was handed on; one where it has no matrix."""
    if "strategy" not in job:
        return [None]
    assert list(job["strategy"]["matrix"]) == ["gate"]
    return list(value_of(job["strategy"]["matrix"]["gate"], known))


def ref_of(job: Mapping[str, Any], known: Mapping[str, str]) -> str:
    """What of the caller's repository is checked out."""
    (found,) = [one["with"] for one in job["steps"] if is_own_checkout(one)]
    return filled(found["ref"], known)


def is_own_checkout(step: Mapping[str, Any]) -> bool:
    """Git gate's own code, which a job installs first, is another repository's."""
    return str(step.get("uses", "")).startswith("actions/checkout@") and "repository" not in step["with"]
