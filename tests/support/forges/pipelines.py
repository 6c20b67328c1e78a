"""Test bed: a pipeline of GitLab's, as its files say it: inputs put in their places, includes brought in, rules asked, each job's
lines run in one shell, what its artifacts hold handed to the jobs that need it.

There is no runner to be had offline. What this does not know fails the test: a key of a job, a rule, an input without a value.
A job gets the variables of its own environment alone, as those of a project are kept. The lines that install git gate are left
out, since a test has it already, and are looked at by a test of their own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from support.testbed.command import COMMAND

INPUT = re.compile(r"\$\[\[ inputs\.([\w-]+) \]\]")
INSTALL = ".gitgate-install"
KEYS = frozenset(
    "artifacts environment extends image interruptible needs rules script stage timeout variables".split()
)
CLAUSE = re.compile(r'^(\$\w+|"[^"]*") (==|!=) (\$\w+|"[^"]*")$')


class Loader(yaml.SafeLoader):
    """With GitLab's own tag."""


class Reference(tuple[str, ...]):
    """A place elsewhere in the file."""

    __slots__ = ()


Loader.add_constructor(
    "!reference",
    lambda loader, node: Reference(loader.construct_sequence(node)),  # type: ignore[arg-type]
)


def documents(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inputs that a file takes, and what it says."""
    first, *rest = list(yaml.load_all(text, Loader))
    return (first["spec"]["inputs"], rest[0]) if rest else ({}, first)


def filled(value: Any, given: Mapping[str, str]) -> Any:
    """Inputs are put into words of the file that was read: no value of one can be anything else of it."""
    if isinstance(value, str):
        return INPUT.sub(lambda found: given[found[1]], value)
    if isinstance(value, Reference):
        return value
    if isinstance(value, list):
        return [filled(one, given) for one in value]
    if isinstance(value, dict):
        return {name: filled(one, given) for name, one in value.items()}
    return value


def inputs_of(wanted: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, str]:
    strange = set(given) - set(wanted)
    assert not strange, f"inputs that the file does not take: {strange}"
    found = {}
    for name, said in wanted.items():
        word = given.get(name, (said or {}).get("default"))
        assert isinstance(word, str), f"input {name} has no value"
        assert re.search((said or {}).get("regex", ""), word), f"input {name} is {word!r}"
        assert word in (said or {}).get("options", [word]), f"input {name} is {word!r}"
        found[name] = word
    return found


@dataclass
class PipelineFiles:
    """The default branch's files, and what is included from elsewhere by its commit."""

    root: str
    local: Mapping[str, str]
    included: str
    """What has to be included: the jobs of ours."""
    asked: list[dict[str, Any]] = field(default_factory=list)

    def jobs(self, given: Mapping[str, str]) -> dict[str, Any]:
        return self.read(self.root, given)

    def read(self, text: str, given: Mapping[str, str]) -> dict[str, Any]:
        wanted, said = documents(text)
        said = filled(said, inputs_of(wanted, given))
        found = {name: job for name, job in said.items() if name != "include"}
        for one in said.get("include", []):
            self.asked.append(one)
            text = self.local[one["local"]] if "local" in one else self.included
            found |= self.read(text, one.get("inputs", {}))
        return found


@dataclass(frozen=True)
class RanJob:
    """What one job said."""

    name: str
    code: int
    out: str
    env: Mapping[str, str]


@dataclass
class Pipeline:
    """One pipeline. `variables`: by environment, with those that every job has under its empty name."""

    jobs: dict[str, Any]
    folder: Path
    env: Mapping[str, str]
    variables: Mapping[str, Mapping[str, str]]
    ran: dict[str, RanJob] = field(default_factory=dict)
    artifacts: dict[str, Path] = field(default_factory=dict)
    planted: Mapping[str, str] = field(default_factory=dict)
    """What somebody puts into the artifact of the agent's job, by GitLab's own token."""

    def run(self) -> dict[str, RanJob]:
        for name in self.jobs:
            job = self.job(name)
            when = None if name.startswith(".") else self.when(job["rules"])
            if when is not None and (when == "always" or self.went_well(job)):
                self.run_job(name, job)
        return self.ran

    def job(self, name: str) -> dict[str, Any]:
        said = {part: self.meant(value) for part, value in self.jobs[name].items()}
        above = self.job(said["extends"]) if "extends" in said else {}
        merged = {**above, **said, "variables": {**above.get("variables", {}), **said.get("variables", {})}}
        assert name.startswith(".") or set(merged) <= KEYS, set(merged) - KEYS
        return merged

    def meant(self, value: Any) -> Any:
        if isinstance(value, Reference):
            found = self.jobs
            for part in value:
                found = found[part]
            return self.meant(found)
        return value

    def when(self, rules: Sequence[Mapping[str, str]]) -> str | None:
        for rule in rules:
            if self.holds(rule["if"]):
                when = rule.get("when", "on_success")
                return None if when == "never" else when
        return None

    def holds(self, words: str) -> bool:
        return any(all(self.clause(one) for one in part.split(" && ")) for part in words.split(" || "))

    def clause(self, words: str) -> bool:
        found = CLAUSE.match(words)
        assert found, f"a rule that this does not know: {words}"
        left, right = (self.env.get(w[1:], "") if w[0] == "$" else w[1:-1] for w in (found[1], found[3]))
        return (left == right) == (found[2] == "==")

    def went_well(self, job: Mapping[str, Any]) -> bool:
        return all(self.ran[one["job"]].code == 0 for one in job.get("needs", []) if one["job"] in self.ran)

    def lines(self, script: Sequence[Any]) -> list[str]:
        found: list[str] = []
        for one in script:
            if isinstance(one, Reference):
                found += [] if one[0] == INSTALL else self.lines(self.meant(one))
            else:
                found.append(str(one))
        return found

    def run_job(self, name: str, job: Mapping[str, Any]) -> None:
        place = self.folder / re.sub(r"\W", "-", name) / "builds"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        # The agent's last, which is the worst order.
        for one in sorted(job.get("needs", []), key=lambda one: one["job"] == "gitgate:agent"):
            if one["artifacts"] and one["job"] in self.artifacts:
                shutil.copytree(self.artifacts[one["job"]], place, dirs_exist_ok=True, symlinks=True)
        scope = job.get("environment", {}).get("name", "")
        known = {n: v["value"] if isinstance(v, dict) else v for n, v in job["variables"].items()}
        env = {
            **self.env,
            **known,
            **self.variables.get("", {}),
            **self.variables.get(scope, {}),
            "CI_PROJECT_DIR": str(place),
            "CI_JOB_NAME": name,
            "PATH": f"{COMMAND.parent}{os.pathsep}{self.env['PATH']}",
        }
        script = "\n".join(["set -eo pipefail", *self.lines(job["script"])])
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=place,
            env=env,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        self.ran[name] = RanJob(name, done.returncode, done.stdout + done.stderr, env)
        kept = self.folder / re.sub(r"\W", "-", name) / "artifacts"
        shutil.rmtree(kept, ignore_errors=True)
        for path in job.get("artifacts", {}).get("paths", []):
            if (place / path).exists():
                shutil.copytree(place / path, kept / path, symlinks=True)
                self.artifacts[name] = kept
        if name == "gitgate:agent":
            for path, text in self.planted.items():
                (kept / path).parent.mkdir(parents=True, exist_ok=True)
                (kept / path).write_text(text)


def whole(top: Path) -> dict[str, Any]:
    """All jobs of a new project, as GitLab has them when everything is in its place."""
    ours = (
        (top / "gitgate.yml").read_text(encoding="utf-8").replace("  - SOURCE", "  - project: tools/git-gate")
    )
    root, jobs = ((top / name).read_text(encoding="utf-8") for name in ("root.yml", "jobs.yml"))
    found = PipelineFiles(root, {".gitlab/gitgate.yml": ours}, jobs).jobs({})
    made = Pipeline(found, top, {}, {})
    return {name: plain(made, job) for name, job in found.items()}


def plain(made: Pipeline, value: Any) -> Any:
    if isinstance(value, Reference):
        return plain(made, made.meant(value))
    if isinstance(value, list):
        return [plain(made, one) for one in value]
    if isinstance(value, dict):
        return {name: plain(made, one) for name, one in value.items()}
    return value


if __name__ == "__main__":
    sys.stdout.write(json.dumps(whole(Path(__file__).parents[3] / "gitgate" / "texts" / "gitlab")))
