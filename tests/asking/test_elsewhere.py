"""Resumed in another clone and another home, with the real Claude Code: what travels there, and what of it does not run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.agents.claude.transcript import waits_at_call
from support.lab.fixtures import MakeMachine, MakeModel
from support.lab.model import Reply
from support.lab.office import Office
from support.resuming import until
from support.testbed.repositories import Clone

pytestmark = [pytest.mark.claude, pytest.mark.slow]

OVER = Reply("Over.", repeat=True)
MakeOffices = Callable[..., tuple[Office, Office]]


def question(text: str, *labels: str) -> tuple[str, dict[str, object]]:
    options = [{"label": label, "description": f"about {label}"} for label in labels]
    asked = {"question": text, "header": "Which", "multiSelect": False, "options": options}
    return ("AskUserQuestion", {"questions": [asked]})


DATABASE = question("Which database?", "Postgres", "SQLite")


@pytest.fixture
def offices(
    machine: MakeMachine, scripted: MakeModel, bare: Clone, clone_of: Callable[..., Clone]
) -> MakeOffices:
    """Two machines, each with a clone of one server, that share their sessions."""

    def make(*replies: Reply) -> tuple[Office, Office]:
        model = scripted(*replies)
        here, there = (
            Office(machine(f"{name}-home", model), clone_of(bare, name)) for name in ("here", "there")
        )
        for office in (here, there):
            office.clone.git("config", "gitgate.session", "push")
            office.clone.git("config", "gitgate.publishWork", "true")
        return here, there

    return make


def shared_whole(bare: Clone, gate: str) -> bool:
    """Whether the server has the conversation as it ended, at the call that waits."""
    name = f"refs/hitl/sessions/{gate}"
    if name not in bare.refs("refs/hitl/sessions"):
        return False
    return waits_at_call(bare.git("show", f"{name}:files/transcript.jsonl").encode())


def asked_and_answered(here: Office, there: Office, bare: Clone, *arguments: str) -> str:
    """A gate that was asked here and that the other clone has the answer of."""
    here.run("GO", *arguments)
    gate = str(here.waiting()["id"])
    until(lambda: shared_whole(bare, gate))
    there.gate("sync")
    there.respond(gate, "SQLite")
    return gate


def test_a_second_question_travels_whole(offices: MakeOffices, bare: Clone) -> None:
    """A resumed agent that asks again is answered in its own call on the first machine, although it ended on the second."""
    here, there = offices(
        Reply("", [DATABASE], when="GO"),
        Reply("One more.", [question("Which port?", "80", "8080")], when="Which database"),
        OVER,
    )
    first = asked_and_answered(here, there, bare)
    there.resume(first)
    second = there.waiting()["id"]
    assert shared_whole(bare, second)
    here.gate("sync")
    here.respond(second, "8080")
    here.resume(second)
    assert '\\"Which port?\\"=\\"8080\\"' in here.shown
    assert "One more." in here.shown


def plant(clone: Clone, ran: Path, payload: str) -> None:
    """What a branch may carry for Claude Code to run."""
    touch = {"type": "command", "command": f"touch {shlex.quote(str(ran))}"}
    events = ("SessionStart", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")
    if payload == "hook":
        clone.write(
            ".claude/settings.json", json.dumps({"hooks": {event: [{"hooks": [touch]}] for event in events}})
        )
        return
    server = {"command": "sh", "args": ["-c", touch["command"]]}
    clone.write(".mcp.json", json.dumps({"mcpServers": {"planted": server}}))
    clone.write(".claude/settings.json", json.dumps({"enableAllProjectMcpServers": True}))


@pytest.mark.parametrize("payload", ["hook", "server"])
def test_what_a_branch_brings_for_claude_is_not_run(
    payload: str, offices: MakeOffices, bare: Clone, tmp_path: Path
) -> None:
    """Asked on a branch with hooks or servers of its own, resumed elsewhere: none runs; started plainly there, it does."""
    here, there = offices(Reply("", [DATABASE], when="GO"), OVER)
    ran = tmp_path / "ran"
    plant(here.clone, ran, payload)
    gate = asked_and_answered(here, there, bare, "--setting-sources", "user", "--strict-mcp-config")
    assert not ran.exists()
    there.clone.git(
        "commit", "-q", "--allow-empty", "-m", "went on, so that the agent has a place of its own"
    )
    there.resume(gate)
    assert '\\"Which database?\\"=\\"SQLite\\"' in there.shown
    assert not ran.exists()

    lines = there.clone.git("worktree", "list", "--porcelain").splitlines()
    place = next(Path(line.removeprefix("worktree ")) for line in lines if line.endswith(f"/{gate}"))
    assert (place / ".claude/settings.json").is_file(), "the agent worked beside it"
    plainly = Office(there.machine, Clone(place), hooks={})
    plainly.run("hello")
    assert ran.exists()


def guarded(place: Clone, ran: Path, word: str) -> None:
    """Settings with a hook whose program is beside them, and which says whose it is."""
    hook = {"type": "command", "command": '"$CLAUDE_PROJECT_DIR"/.claude/hooks/mark.sh'}
    place.write(".claude/settings.json", json.dumps({"hooks": {"SessionStart": [{"hooks": [hook]}]}}))
    place.write(
        ".claude/hooks/mark.sh", f"#!/bin/sh\necho {word} >> {shlex.quote(str(ran))}\n", executable=True
    )


@pytest.mark.parametrize("allowed", [True, False])
def test_allowed_hooks_are_the_protected_branchs(
    allowed: bool, offices: MakeOffices, bare: Clone, tmp_path: Path
) -> None:
    """Where the policy lets the project's settings take part, they and their programs are as on the protected branch."""
    works = (
        "Bash",
        {"command": "git add -A && git commit -qm Done; git show --stat --format=%s > shown.txt"},
    )
    here, there = offices(Reply("", [DATABASE], when="GO"), Reply("", [works], when="Which database"), OVER)
    ran = tmp_path / "ran"
    guarded(here.clone, ran, "trusted")
    rule = "policy: {agents: {claude: {project_settings: true}}}\n" if allowed else "policy: {}\n"
    here.clone.commit("rules", **{".gitgate.yml": rule, ".claude/settings.local.json": "{}"})
    here.clone.git("push", "-q", "origin", "main")
    here.clone.git("checkout", "-q", "-b", "topic")
    guarded(here.clone, ran, "planted")
    here.clone.write("notes", "half done\n")
    gate = asked_and_answered(here, there, bare, "--setting-sources", "user")
    there.clone.git("fetch", "-q", "origin")
    there.clone.git("config", "gitgate.agent.claude.arguments", '["--allowedTools", "Bash"]')
    there.resume(gate)
    assert '\\"Which database?\\"=\\"SQLite\\"' in there.shown
    assert (ran.read_text().split() if ran.exists() else []) == (["trusted"] if allowed else [])
    made = there.clone.git("log", "--all", "--format=%H", "-1", "--grep=^Done")
    assert there.clone.git("diff", "--name-only", f"{made}~1", made) == "notes"
    lines = there.clone.git("worktree", "list", "--porcelain").splitlines()
    place = next(Path(line.removeprefix("worktree ")) for line in lines if line.endswith(f"/{gate}"))
    assert "planted" in (place / ".claude/hooks/mark.sh").read_text(), "it was not committed, and is not lost"
