"""Test bed: what GitHub makes of an event and a workflow of a repository: which of its jobs start, and what they hand to ours.

A job that calls with an input or a secret that is not declared, or without one that is required, fails the test: GitHub would
start none of that file's jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .expressions import SUCCESS, filled, flat, holds
from .jobs import WORKFLOWS, defaults, load, needs

REPOSITORY = "team/project"
SECRETS = {"ANTHROPIC_API_KEY": "the agent's key", "SESSION_KEY": "the sessions' key"}
# What starts a workflow that names no types: all that GitHub has of the first kind, these of the second.
ALL_TYPES = {
    "issue_comment": ("created", "edited", "deleted"),
    "pull_request": ("opened", "synchronize", "reopened"),
}


@dataclass(frozen=True)
class Event:
    """Something that happened, and by whom. `kind`: its action, or the type of a `repository_dispatch`."""

    name: str
    kind: str = ""
    said: Mapping[str, Any] = field(default_factory=dict)
    actor: str = "ada"

    @property
    def payload(self) -> dict[str, Any]:
        """As it stands in the file that GITHUB_EVENT_PATH names. That of a schedule says nothing of the repository."""
        if self.name == "schedule":
            return {"schedule": self.kind}
        where = {"full_name": REPOSITORY, "default_branch": "main"}
        sender = {"login": self.actor, "type": "Bot" if "[bot]" in self.actor else "User"}
        named = {"repository_dispatch": {"action": self.kind}, "workflow_dispatch": {}}
        return {
            **named.get(self.name, {"action": self.kind}),
            **self.said,
            "repository": where,
            "sender": sender,
        }

    @property
    def context(self) -> dict[str, str]:
        about = {"event_name": self.name, "repository": REPOSITORY, "actor": self.actor, "token": "job-token"}
        return {**flat(about, "github."), **flat(self.payload, "github.event.")}


@dataclass(frozen=True)
class Call:
    """A job of a caller that calls a workflow of ours, and what is known in there."""

    workflow: str
    known: dict[str, str]

    def jobs(self, status: str = SUCCESS, **handed_on: str) -> list[str]:
        """Those of its jobs that would run: those that need none, or with what the job that they need handed on."""
        found = []
        for name, one in load(WORKFLOWS / self.workflow)["jobs"].items():
            needed = needs(one)
            given = {f"needs.{one}.outputs.{out}": word for one in needed for out, word in handed_on.items()}
            if bool(needed) == bool(handed_on) and holds(one.get("if"), {**self.known, **given}, status):
                found.append(str(name))
        return found


def starts(on: Mapping[str, Any], event: Event) -> bool:
    """Whether an event starts a workflow."""
    if event.name not in on:
        return False
    if event.name == "schedule":
        return event.kind in [one["cron"] for one in on["schedule"]]
    wanted = on[event.name] or {}
    assert set(wanted) <= {"types", "inputs"}, f"not known: {wanted}"
    types = wanted.get("types", ALL_TYPES.get(event.name, (event.kind,)))
    return event.kind in types


def calls(path: Path, event: Event, secrets: Mapping[str, str] = SECRETS) -> list[Call]:
    """What of ours is called, in order."""
    said = load(path)
    if not starts(said["on"], event):
        return []
    known = {**event.context, **{f"secrets.{name}": word for name, word in secrets.items()}}
    if event.name == "workflow_dispatch":
        known |= given_to(said["on"]["workflow_dispatch"]["inputs"], event.said.get("inputs", {}), "inputs")
    return [call(job, known) for job in said["jobs"].values() if holds(job.get("if"), known)]


def call(job: Mapping[str, Any], known: Mapping[str, str]) -> Call:
    name = job["uses"].partition("/.github/workflows/")[2].partition("@")[0]
    declared = load(WORKFLOWS / name)["on"]["workflow_call"]
    inside = {one: word for one, word in known.items() if one.startswith("github.")}
    inside |= defaults(declared["inputs"], declared["secrets"])
    for kind, part in (("inputs", "with"), ("secrets", "secrets")):
        given = {one: filled(str(word), known) for one, word in job.get(part, {}).items()}
        inside |= given_to(declared[kind], given, kind)
    return Call(name, inside)


def given_to(declared: Mapping[str, Any], given: Mapping[str, str], kind: str) -> dict[str, str]:
    """By their dotted names; GitHub takes none that is not declared, and misses those that are required."""
    assert set(given) <= set(declared), f"no such {kind}: {set(given) - set(declared)}"
    missing = [
        name
        for name, one in declared.items()
        if one.get("required") in (True, "true") and not given.get(name)
    ]
    assert not missing, f"required {kind} are missing: {missing}"
    rest = {name: str(one.get("default", "")) for name, one in declared.items()}
    return {f"{kind}.{name}": word for name, word in {**rest, **given}.items()}
