"""The whole loop with the real Claude Code, as a user of the workflows has it: the template's own command, and a repository,
a home and settings in which nobody prepared anything.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyrage import x25519

from gitgate.agents.claude import last_result
from support.forges.jobs import Step, load, run_workflow
from support.forges.standin import Forge
from support.lab.claude import Machine
from support.lab.fixtures import MakeMachine, MakeModel
from support.lab.model import Reply
from support.servers import HttpServer
from support.testbed.command import Command
from support.testbed.repositories import Clone, run_git

from .conftest import THREAD
from .test_workflows import PIN, all_well, fresh_home, handed_on

pytestmark = [pytest.mark.claude, pytest.mark.slow]

DATABASE = {
    "question": "Which database?",
    "header": "Database",
    "multiSelect": False,
    "options": [{"label": name, "description": f"about {name}"} for name in ("Postgres", "SQLite")],
}
TASK = "--TASK-42: set up the database"  # with dashes: it is a task nevertheless


def wrote(name: str, text: str) -> list[tuple[str, dict[str, object]]]:
    return [("Write", {"file_path": name, "content": text})]


def ran(command: str) -> list[tuple[str, dict[str, object]]]:
    return [("Bash", {"command": command})]


ASKS = [("AskUserQuestion", {"questions": [DATABASE]})]


@dataclass
class Actions:
    """Jobs over http, each with a home and a clone of its own, and `claude` on PATH as npm would put it there."""

    forge: Forge
    bare: Clone
    web: HttpServer
    lab: Machine
    folder: Path
    monkeypatch: pytest.MonkeyPatch
    jobs: int = 0

    def __post_init__(self) -> None:
        self.bare.git("config", "http.receivepack", "true")
        self.monkeypatch.delenv("GITHUB_TOKEN")
        self.output = self.folder / "output"
        programs = self.folder / "programs"
        programs.mkdir()
        # The scripted model stands in a network of its own, which the program has to be led into.
        words = shlex.join([*self.lab.model.reach, str(self.lab.binary)])
        (programs / "claude").write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (programs / "claude").chmod(0o755)
        self.path = f"{programs}:{self.lab.env['PATH']}"
        self.known = {"inputs.task": TASK, "secrets.ANTHROPIC_API_KEY": "dummy-not-a-key"}

    def set_up(self, cli: Command, *flags: str) -> None:
        """What a person does: `init --github`, and the command stays as it was written."""
        source = self.folder / "source"
        run_git("clone", "-q", str(self.bare.path), str(source), cwd=self.folder)
        run_git("config", "gitgate.workflows", PIN, cwd=source)
        cli.quick("init", "--github", *flags, cwd=source, code=0)
        said = load(source / ".github/workflows/gitgate-agent.yml")
        self.known["inputs.command"] = str(said["jobs"]["agent"]["with"]["command"])
        run_git("add", "-A", cwd=source)
        run_git("commit", "-qm", "Answer agents on pull requests", cwd=source)
        run_git("push", "-q", "origin", "HEAD:main", cwd=source)
        run_git("push", "-q", "origin", "HEAD:feature", cwd=source)
        self.forge.open_pull(THREAD, "feature", self.bare.git("rev-parse", "feature"))

    def run(self, workflow: str, *, event: Path | None = None) -> list[Step]:
        """Its jobs, each on a machine of its own."""
        env = {**self.lab.env, "CI": "true", "PATH": self.path, "RUNNER_TEMP": str(self.folder / "temp")}
        asked = event is None
        event = event or self.event_file(
            self.forge.run_event("gitgate-agent.yml", branch="feature", task=TASK)
        )
        env |= {"GITHUB_EVENT_PATH": str(event), "GITHUB_OUTPUT": str(self.output)}
        env |= {"GITHUB_EVENT_NAME": "workflow_dispatch" if asked else "issue_comment"}
        for name in ("HOME", "CLAUDE_CONFIG_DIR"):
            env.pop(name, None)
        self.output.write_text("")
        known = {**self.known, "inputs.branch": "feature"}
        steps = [step for one in run_workflow(workflow, known, self.checkout, env) for step in one.steps]
        for place in self.folder.glob("job*"):
            shutil.rmtree(place)
        return steps

    def checkout(self, branch: str) -> Path:
        """A home and a clone for one job; those of the one before are gone."""
        for place in (*self.folder.glob("job*"), *self.folder.glob("home-*")):
            shutil.rmtree(place)
        self.jobs += 1
        home, place = self.folder / f"home-{self.jobs}", self.folder / f"job{self.jobs}"
        fresh_home(home, self.monkeypatch)
        self.monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / ".claude"))
        url = self.web.url(self.bare.path)
        run_git("clone", "-q", "-b", branch or "main", url, str(place), cwd=self.folder)
        return place

    def asked(self) -> str:
        assert "state=awaiting" in self.output.read_text()
        return str(re.findall(r"^gate=(\w+)", self.output.read_text(), re.MULTILINE)[0])

    def answer(self, words: str) -> Path:
        return self.event_file(self.forge.event(self.forge.write(THREAD, "ada", words)))

    def event_file(self, event: dict[str, object]) -> Path:
        place = self.folder / f"event{len(list(self.folder.glob('event*')))}.json"
        place.write_text(json.dumps(event))
        return place


@pytest.fixture
def scene(
    forge: Forge,
    bare: Clone,
    web: HttpServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    machine: MakeMachine,
    scripted: MakeModel,
) -> Callable[..., Actions]:
    """A repository without anything, and a model that says these replies."""

    def make(*replies: Reply) -> Actions:
        lab = machine("lab", scripted(*replies, Reply("Over.", repeat=True)))
        return Actions(forge, bare, web, lab, tmp_path, monkeypatch)

    return make


def hooks_that(mark: Path) -> str:
    hook = {"hooks": [{"type": "command", "command": f"touch {mark}"}]}
    return json.dumps({"hooks": {event: [hook] for event in ("SessionStart", "PreToolUse", "Stop")}})


def plant(bare: Clone, place: Path, mark: Path) -> None:
    """Hooks on the agent's branch, which the default branch has none of."""
    run_git("clone", "-q", "-b", "feature", str(bare.path), str(place), cwd=bare.path)
    source = Clone(place)
    source.commit("planted", **{".claude/settings.json": hooks_that(mark)})
    source.git("push", "-q", "origin", "feature")


@pytest.mark.timeout(300)  # three jobs, and the real program in two of them
def test_a_comment_resumes_claude_in_another_job(
    scene: Callable[..., Actions], cli: Command, tmp_path: Path
) -> None:
    """It edits, asks, is answered by a comment, and goes on elsewhere: edits and commits. The work travels, and the session,
    which nobody reads on the way.
    """
    on = scene(
        Reply("Half of it.", wrote("half.txt", "half\n"), when="TASK-42"),
        Reply("I need an answer.", ASKS),
        Reply("On with it.", wrote("db.conf", "db=SQLite\n"), when="SQLite"),
        Reply("And that is it.", ran('git add -A && git commit -qm "Use SQLite"')),
    )
    on.set_up(cli)
    planted = tmp_path / "planted"
    plant(on.bare, tmp_path / "planting", planted)
    on.forge.pulls[THREAD]["head"]["sha"] = on.bare.git("rev-parse", "feature")
    key = x25519.Identity.generate()
    on.known |= {"inputs.session-recipients": str(key.to_public()), "secrets.SESSION_KEY": str(key)}

    all_well(on.run("agent.yml"))
    gate = on.asked()
    (shown,) = on.forge.by("github-actions[bot]")
    assert "Which database?" in shown["body"]
    assert "half.txt" in shown["body"]
    stored = subprocess.run(
        ["git", "cat-file", "--batch", "--batch-all-objects"],
        cwd=on.bare.path,
        capture_output=True,
        check=True,
    ).stdout
    assert b"age-encryption.org/v1" in stored
    assert b"TASK-42" not in stored

    event = on.answer("/choose SQLite\none file is enough")
    all_well(on.run("answer.yml", event=event))
    assert handed_on(on.output) == [gate]
    assert not planted.exists()
    assert "planted" in on.bare.git("show", "feature:.claude/settings.json")
    assert "one file is enough" in on.lab.model.shown()
    assert on.bare.git("show", "feature:db.conf") == "db=SQLite"
    assert on.bare.git("show", "feature:half.txt") == "half"
    assert f"Gate: {gate}" in on.bare.git("log", "-1", "--format=%b", "feature")
    shown, came = on.forge.by("github-actions[bot]")
    assert "### ✅ Answered, and acted on" in shown["body"]
    assert on.bare.git("rev-parse", "feature") in shown["body"]
    assert f"Gate **{gate}**: ✅ the agent went on" in came["body"]


@pytest.mark.timeout(300)
def test_hooks_that_the_project_has_as_well_ask_once(scene: Callable[..., Actions], cli: Command) -> None:
    """Both are called for one question; it is one gate, and the run ends."""
    on = scene(Reply("I need an answer.", ASKS, when="TASK-42"))
    on.set_up(cli, "--claude")
    assert "PreToolUse" in on.bare.git("show", "feature:.claude/settings.json")
    all_well(on.run("agent.yml"))
    on.asked()
    assert len(on.forge.by("github-actions[bot]")) == 1
    assert len(on.lab.model.requests()) == 1


@pytest.mark.timeout(300)
def test_claude_asks_by_the_command_line_too(scene: Callable[..., Actions], cli: Command) -> None:
    """In Bash, which a job permits for this; the run ends after it."""
    on = scene(Reply("I ask.", ran("git gate ask 'Which?' -o A -o B"), when="TASK-42"))
    on.set_up(cli)
    all_well(on.run("agent.yml"))
    on.asked()
    assert "Which?" in on.forge.by("github-actions[bot]")[0]["body"]


@pytest.mark.timeout(300)
def test_hooks_that_the_default_branch_took_out_run_no_more(
    scene: Callable[..., Actions], cli: Command, tmp_path: Path
) -> None:
    """The agent's branch has not caught up on that. It asks and works as the default branch has it."""
    on = scene(
        Reply("Half of it.", wrote("half.txt", "half\n"), when="TASK-42"), Reply("I need an answer.", ASKS)
    )
    on.set_up(cli)
    source, mark = Clone(on.folder / "source"), tmp_path / "hooked"
    source.commit("Hooks", **{".claude/settings.json": hooks_that(mark)})
    source.git("push", "-q", "origin", "HEAD:main", "HEAD:feature")
    source.commit("No hooks", **{".claude/settings.json": "{}"})
    source.git("push", "-q", "origin", "HEAD:main")
    steps = on.run("agent.yml")
    all_well(steps)
    on.asked()
    assert "half.txt" in on.forge.by("github-actions[bot]")[0]["body"]
    assert not mark.exists()
    assert any("as on the protected branch meanwhile: .claude/settings.json" in step.err for step in steps)


@pytest.mark.timeout(300)
def test_the_projects_own_word_stands(scene: Callable[..., Actions], cli: Command) -> None:
    """On the default branch: what it permits besides is permitted, what it forbids is not done. So does a person's own
    `--settings`, which git gate's go beside.
    """
    on = scene(
        Reply("One.", wrote("kept.txt", "no\n"), when="TASK-42"),
        Reply("Two.", ran("touch made-by-shell")),
        Reply("Three.", ran("mkdir given-by-flag")),
        Reply("Four.", ran("rmdir given-by-flag")),
        Reply("I need an answer.", ASKS),
    )
    on.set_up(cli)
    source = Clone(on.folder / "source")
    rules = {"permissions": {"allow": ["Bash(touch:*)"], "deny": ["Edit(./kept.txt)"]}}
    source.commit("Rules", **{".claude/settings.json": json.dumps(rules)})
    source.git("push", "-q", "origin", "HEAD:main")
    command = json.loads(on.known["inputs.command"])
    own = json.dumps({"permissions": {"allow": ["Bash(mkdir:*)"]}})
    on.known["inputs.command"] = json.dumps([command[0], "--settings", own, *command[1:]])
    steps = on.run("agent.yml")
    all_well(steps)
    on.asked()
    (shown,) = on.forge.by("github-actions[bot]")
    assert "made-by-shell" in shown["body"]
    assert "kept.txt" not in shown["body"]
    (result,) = [last_result(step.out.encode()) for step in steps if step.name == "Run the agent"]
    assert result is not None
    denied = [one["tool_input"].get("command") for one in result["permission_denials"]]
    assert [command for command in denied if command] == ["rmdir given-by-flag"]
