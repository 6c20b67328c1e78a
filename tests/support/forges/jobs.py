"""Test bed: a job of ours, step by step, as its workflow file says it: each `run:` that calls our command, with its `env:`.

There is no runner for workflows to be had offline, which is why each step is one call. An expression that this does not know
fails the test, and so does a step that is neither one call of ours nor one of `OTHERS`. Between steps it does as the runner
does: outputs of a step with an `id`, and what was written to GITHUB_ENV and GITHUB_PATH, are there for those after it. An
artifact is a copy of a folder's files, which a later job of the same run finds by its number.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gitgate.document import codec

from .expressions import FAILURE, SUCCESS, filled, flat, holds, value_of

TOP = Path(__file__).parents[3]
WORKFLOWS = TOP / ".github/workflows"
ACTION = TOP / ".github/actions/git-gate/action.yml"
OUR_ACTION = "/.github/actions/git-gate@"
# One call of ours, of plain words and variables: nothing that a shell would make more of.
CALL = re.compile(r'git-gate github( ([a-z-]+|"\$[A-Z_]+(/[a-z-]+)?"))+')
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
    artifacts: dict[str, Path] = field(default_factory=dict)
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

    def keep(self, step: Mapping[str, Any]) -> None:
        """What `actions/upload-artifact` does: without a file there is none."""
        place = Path(filled(step["with"]["path"], self.context))
        assert (step["if"], step["with"]["if-no-files-found"]) == ("always()", "ignore")
        if place.is_dir() and any(place.iterdir()):
            number = str(len(self.artifacts) + 1)
            self.artifacts[number] = Path(tempfile.mkdtemp(dir=self.env["RUNNER_TEMP"])) / "kept"
            shutil.copytree(place, self.artifacts[number], symlinks=True)
            self.context[f"steps.{step['id']}.outputs.artifact-id"] = number

    def bring(self, step: Mapping[str, Any]) -> None:
        """What `actions/download-artifact` does, with one that is named by its number."""
        if not holds(step.get("if"), self.context, FAILURE if self.failed else SUCCESS):
            return
        assert set(step["with"]) == {"artifact-ids", "path"}
        place = Path(filled(step["with"]["path"], self.context))
        shutil.rmtree(place, ignore_errors=True)
        kept = self.artifacts[filled(step["with"]["artifact-ids"], self.context)]
        shutil.copytree(kept, place, symlinks=True)

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


def defaults(inputs: Mapping[str, Any], secrets: Mapping[str, Any]) -> dict[str, str]:
    found = {f"inputs.{name}": str(one.get("default", "")) for name, one in inputs.items()}
    return {**found, **{f"secrets.{name}": "" for name in secrets}, "github.token": "job-token"}


def run_steps(
    steps: list[dict[str, Any]], context: Mapping[str, str], folder: Path, env: Mapping[str, str]
) -> list[Step]:
    return ran(steps, context, folder, env).done


def ran(
    steps: list[dict[str, Any]],
    context: Mapping[str, str],
    folder: Path,
    env: Mapping[str, str],
    artifacts: dict[str, Path] | None = None,
) -> Runner:
    temp = env.get("RUNNER_TEMP") or tempfile.mkdtemp(dir=folder.parent)
    Path(temp).mkdir(exist_ok=True)
    shutil.rmtree(Path(temp) / "gitgate-made", ignore_errors=True)  # another machine's
    given = {"GITHUB_ACTIONS": "true", **env, "RUNNER_TEMP": temp}
    runner = Runner(folder, given, {**context, "runner.temp": temp}, {} if artifacts is None else artifacts)
    for step in steps:
        uses = step.get("uses", "")
        if "run" in step:
            runner.run(step)
        elif OUR_ACTION in uses:
            runner.act(step)
        elif uses.startswith("actions/upload-artifact@"):
            runner.keep(step)
        elif uses.startswith("actions/download-artifact@"):
            runner.bring(step)
    return runner


@dataclass(frozen=True)
class Ran:
    """One job of a workflow that was called. `gate`: which of the matrix, if it has one."""

    job: str
    gate: str
    steps: list[Step]


Change = Callable[[str, Path], None]
"""What somebody does to the artifact of a job, by that job's name, before another one takes it."""


def run_workflow(
    name: str,
    known: Mapping[str, str],
    checkout: Callable[[str], Path],
    env: Mapping[str, str],
    *,
    change: Change | None = None,
) -> list[Ran]:
    """All jobs of a workflow, each in a checkout of its own, with what those before it gave out; those of one that it calls, too."""
    done: list[Ran] = []
    given: dict[str, dict[str, str]] = {}
    artifacts: dict[str, Path] = {}
    said = load(WORKFLOWS / name)
    called = said["on"]["workflow_call"]
    known = {**defaults(called["inputs"], called["secrets"]), **of_event(env), **known}
    for job, one in said["jobs"].items():
        here = dict(known)
        for needed in needs(one):
            here |= given[needed]
        given[job] = {f"needs.{job}.outputs.{output}": "" for output in one.get("outputs", {})}
        failed = any(step.code for before in done for step in before.steps)
        if not holds(one.get("if"), here, FAILURE if failed else SUCCESS):
            continue
        for gate in matrix(one, here):
            inside = here if gate is None else {**here, "matrix.gate": gate}
            if "uses" in one:
                called = one["uses"].removeprefix("./.github/workflows/")
                inner = {n: w for n, w in inside.items() if n.startswith("github.")} | inputs_of(
                    one, called, inside
                )
                more = run_workflow(called, inner, checkout, env, change=change)
                done += [Ran(ended.job, gate or "", ended.steps) for ended in more]
                continue
            had = set(artifacts)
            runner = ran(one["steps"], inside, checkout(ref_of(one, inside)), env, artifacts)
            for number in set(artifacts) - had:
                if change is not None:
                    change(job, artifacts[number])
            done.append(Ran(job, gate or "", runner.done))
            for output, value in one.get("outputs", {}).items():
                given[job][f"needs.{job}.outputs.{output}"] = filled(value, runner.context)
    return done


def of_event(env: Mapping[str, str]) -> dict[str, str]:
    """What an expression knows of the event that a job has in its environment."""
    about = {"event_name": env.get("GITHUB_EVENT_NAME", ""), "repository": "team/project", "actor": "ada"}
    place = env.get("GITHUB_EVENT_PATH")
    said = json.loads(Path(place).read_text(encoding="utf-8")) if place else {}
    return {**flat(about, "github."), **flat(said, "github.event.")}


def inputs_of(job: Mapping[str, Any], called: str, known: Mapping[str, str]) -> dict[str, str]:
    """What a workflow of ours hands to another one of ours: all that it declares, and nothing else."""
    declared = load(WORKFLOWS / called)["on"]["workflow_call"]
    assert (set(job["with"]), set(job["secrets"])) == (set(declared["inputs"]), set(declared["secrets"]))
    found = defaults(declared["inputs"], declared["secrets"])
    for kind, part in (("inputs", "with"), ("secrets", "secrets")):
        found |= {f"{kind}.{name}": filled(str(word), known) for name, word in job[part].items()}
    return found


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
