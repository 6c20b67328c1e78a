"""The whole loop with the real Claude Code: asked in one job, answered by a comment, gone on with in another, elsewhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from pyrage import x25519

from forges.jobs import run_job
from forges.standin import Forge
from gitgate.agents.claude_hooks import hooks
from lab.fixtures import MakeMachine, MakeModel
from lab.model import Reply
from lab.office import HEADLESS
from servers import HttpServer
from testbed.repositories import Clone, run_git

from .conftest import THREAD
from .test_workflows import all_well, fresh_home, handed_on

pytestmark = [pytest.mark.claude, pytest.mark.slow]

DATABASE = {
    "question": "Which database?",
    "header": "Database",
    "multiSelect": False,
    "options": [{"label": name, "description": f"about {name}"} for name in ("Postgres", "SQLite")],
}
WORK = "echo half > half.txt"
FINISH = 'echo db=SQLite > db.conf && git add -A && git commit -qm "Use SQLite"'


def plant(bare: Clone, place: Path, mark: Path) -> None:
    """A branch with hooks of its own, which the default branch has none of."""
    run_git("clone", "-q", str(bare.path), str(place), cwd=bare.path)
    source = Clone(place)
    source.commit("no hooks", **{".claude/settings.json": "{}\n"})
    source.git("push", "-q", "origin", "main")
    source.git("checkout", "-q", "-b", "feature")
    hook = {"hooks": [{"type": "command", "command": f"touch {mark}"}]}
    evil = {"hooks": {event: [hook] for event in ("SessionStart", "PreToolUse", "Stop")}}
    source.commit("planted", **{".claude/settings.json": json.dumps(evil)})
    source.git("push", "-q", "origin", "feature")


@pytest.mark.timeout(120)  # three jobs, and the real program in two of them
def test_a_comment_resumes_claude_in_another_job(
    forge: Forge,
    bare: Clone,
    web: HttpServer,
    machine: MakeMachine,
    scripted: MakeModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Over http, by the workflows' own steps, each job with a home and a clone of its own: the work travels, and the
    session, which nobody reads on the way.
    """
    model = scripted(
        Reply("Half of it.", [("Bash", {"command": WORK})], when="TASK-42"),
        Reply("I need an answer.", [("AskUserQuestion", {"questions": [DATABASE]})]),
        Reply("On with it.", [("Bash", {"command": FINISH})], when="SQLite"),
        Reply("Over.", repeat=True),
    )
    lab = machine("lab", model)
    bare.git("config", "http.receivepack", "true")
    planted = tmp_path / "planted"
    plant(bare, tmp_path / "source", planted)
    forge.open_pull(THREAD, "feature", bare.git("rev-parse", "feature"))
    monkeypatch.delenv("GITHUB_TOKEN")
    program = [*model.reach, str(lab.binary)]
    command = [
        *program,
        *HEADLESS,
        "--settings",
        json.dumps({"hooks": hooks()}),
        "--allowedTools",
        "Bash",
        "--",
        "{task}",
    ]
    key = x25519.Identity.generate()
    known = {
        "inputs.session-recipients": str(key.to_public()),
        "secrets.SESSION_KEY": str(key),
        "inputs.command": json.dumps(command),
        "inputs.task": "TASK-42: set up the database",
        "secrets.ANTHROPIC_API_KEY": "dummy-not-a-key",
    }
    output = tmp_path / "output"
    output.touch()

    def job(name: str, branch: str) -> tuple[Path, dict[str, str]]:
        home = tmp_path / f"home-{name}"
        fresh_home(home, monkeypatch)
        place = tmp_path / name
        run_git("clone", "-q", "-b", branch, web.url(bare.path), str(place), cwd=tmp_path)
        run_git("config", "--global", "gitgate.agent.claude.program", json.dumps(program), cwd=place)
        run_git("config", "--global", "--add", "gitgate.agent.claude.arguments", "--allowedTools", cwd=place)
        run_git("config", "--global", "--add", "gitgate.agent.claude.arguments", "Bash", cwd=place)
        env = {**lab.env, "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude"), "CI": "true"}
        env["RUNNER_TEMP"] = str(tmp_path / f"temp-{name}")
        return place, {**env, "GITHUB_OUTPUT": str(output)}

    one, env = job("one", "feature")
    all_well(run_job("agent.yml", known, one, env))
    assert "state=awaiting" in output.read_text()
    gate = re.findall(r"gate=(\w+)", output.read_text())[0]
    (shown,) = forge.by("github-actions[bot]")
    assert "Which database?" in shown["body"]
    assert "half.txt" in shown["body"]
    stored = subprocess.run(
        ["git", "cat-file", "--batch", "--batch-all-objects"], cwd=bare.path, capture_output=True, check=True
    ).stdout
    assert b"age-encryption.org/v1" in stored
    assert b"TASK-42" not in stored
    shutil.rmtree(one)
    shutil.rmtree(tmp_path / "home-one")

    event = tmp_path / "event.json"
    event.write_text(
        json.dumps(forge.event(forge.write(THREAD, "ada", "/choose SQLite\none file is enough")))
    )
    output.write_text("")
    two, env = job("two", "main")
    all_well(run_job("answer.yml", known, two, {**env, "GITHUB_EVENT_PATH": str(event)}))
    assert handed_on(output) == [gate]
    shutil.rmtree(two)
    three, env = job("three", "main")
    known["matrix.gate"] = gate
    all_well(run_job("answer.yml", known, three, {**env, "GITHUB_EVENT_PATH": str(event)}, job="resume"))
    assert not planted.exists()
    assert "planted" in bare.git("show", "feature:.claude/settings.json")
    assert "one file is enough" in model.shown()
    assert bare.git("show", "feature:db.conf") == "db=SQLite"
    assert bare.git("show", "feature:half.txt") == "half"
    assert f"Gate: {gate}" in bare.git("log", "-1", "--format=%b", "feature")
    (shown,) = forge.by("github-actions[bot]")
    assert "### ✅ Answered, and acted on" in shown["body"]
    assert bare.git("rev-parse", "feature") in shown["body"]
