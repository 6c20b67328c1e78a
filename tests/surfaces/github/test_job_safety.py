"""An agent in a job: what it leaves behind does not reach the token, and whose policy holds is certain or nothing is done."""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitgate.document import codec
from support.forges.jobs import ACTION, OUR_ACTION, TOP, WORKFLOWS, load, run_steps, run_workflow
from support.forges.standin import Forge
from support.resuming import Agent
from support.servers import HttpServer
from support.testbed.command import Command
from support.testbed.repositories import Clone, run_git

from .conftest import THREAD, Team
from .test_workflows import all_well, fresh_home

LOGIN = "x-access-token:job-token"
# What sends the token, or a command that has it, elsewhere; {leak} is where it would be seen.
TRICKS = {
    "helper": "git config --local --add credential.helper '!f() {{ cat >> {leak}; }}; f'",
    "helper of the user": "git config --global --add credential.helper '!f() {{ cat >> {leak}; }}; f'",
    "helper of the worktree": "git config extensions.worktreeConfig true;"
    " git config --worktree --add credential.helper '!f() {{ cat >> {leak}; }}; f'",
    "included": "printf '[credential]\\n\\thelper = \"!f() {{ cat >> {leak}; }}; f\"\\n' > {home}/more;"
    " git config --local include.path {home}/more",
    "ask": "printf '#!/bin/sh\\nenv >> {leak}\\n' > {home}/ask; chmod +x {home}/ask; git config core.askPass {home}/ask;"
    " git config --unset-all credential.{server}.helper",
    "address": "git config url.ext::tee.insteadOf {server}; git config protocol.ext.allow always",
    "environment": 'echo "GIT_TRACE_CURL={leak}" >> "$GITHUB_ENV"; echo "GIT_TRACE_REDACT=0" >> "$GITHUB_ENV"',
    "path": "mkdir {home}/bin; printf '#!/bin/sh\\nenv > {leak}\\n' > {home}/bin/git-gate; chmod +x {home}/bin/git-gate;"
    ' echo "{home}/bin" >> "$GITHUB_PATH"',
}
TEMPLATE = TOP / "gitgate/texts/workflows/gitgate-agent.yml"
MAKES = "; echo done > made.txt; git add made.txt; git commit -qm Made"


@pytest.fixture
def checkout(
    forge: Forge, bare: Clone, web: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Path]:
    """Clones of a repository behind a server that wants the job's token, each with a home of its own; no login is kept."""
    bare.git("config", "http.receivepack", "true")
    bare.git("branch", "feature", "main")
    forge.open_pull(THREAD, "feature", bare.git("rev-parse", "feature"))
    web.secret = LOGIN
    monkeypatch.delenv("GITHUB_TOKEN")
    monkeypatch.setenv("GITHUB_SERVER_URL", f"http://127.0.0.1:{web.port}")

    def clone(branch: str) -> Path:
        place = tmp_path / f"job-{branch}"
        fresh_home(tmp_path / f"home-{branch}", monkeypatch)
        run_git("clone", "-q", "-b", branch, web.url(bare.path, login=LOGIN), str(place), cwd=tmp_path)
        run_git("remote", "set-url", "origin", web.url(bare.path), cwd=place)
        return place

    return clone


def spelt(trick: str, leak: Path, home: Path) -> str:
    return TRICKS[trick].format(leak=leak, home=home, server=os.environ["GITHUB_SERVER_URL"])


@pytest.mark.slow
@pytest.mark.parametrize("trick", TRICKS)
def test_what_an_agent_leaves_behind_gets_no_token(
    checkout: Callable[[str], Path], bare: Clone, tmp_path: Path, trick: str
) -> None:
    """Git is set up as before when its work is pushed, and the step that pushes runs our command, in its own environment."""
    leak = tmp_path / "leak"
    body = spelt(trick, leak, tmp_path / "home-feature") + MAKES
    known = {"inputs.command": json.dumps(["sh", "-ec", body]), "inputs.task": "", "inputs.branch": "feature"}
    env = {"CI": "true", "RUNNER_TEMP": str(tmp_path / "temp")}
    agent, deliver = run_workflow("agent.yml", known, lambda ref: checkout(ref or "main"), env)
    all_well([*agent.steps, *deliver.steps])
    assert "put back as it was before the agent" in agent.steps[1].err
    assert bare.git("show", "feature:made.txt") == "done"
    assert not leak.exists()


@pytest.mark.slow
@pytest.mark.parametrize("trick", ["helper", "included", "ask"])
def test_a_resumed_agent_gets_no_token_either(
    checkout: Callable[[str], Path], bare: Clone, cli: Command, tmp_path: Path, trick: str
) -> None:
    """It works beside the process that pushes: git is set up as before whenever that one speaks to the server."""
    agent = Agent(tmp_path / "agent")
    agent.folder.mkdir()
    leak, place = tmp_path / "leak", checkout("feature")
    agent.does(spelt(trick, leak, tmp_path / "home-feature") + MAKES)
    env = {
        "GITGATE_GITHUB_TOKEN": "job-token",
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "GITHUB_ACTIONS": "true",
    }
    env |= {
        "GITGATE_AGENT_NAME": "scripted",
        "GITGATE_AGENT_RESUME": json.dumps([str(agent.folder / "agent.sh")]),
    }
    cli.quick("github", "prepare", cwd=place, env=env, code=0)
    gate = cli.quick("ask", "Which?", "--agent", "scripted", cwd=place, env=env, code=0).line
    cli.quick("respond", gate, "SQLite", "--no-resume", cwd=place, env=env, code=0)
    commit = cli.quick("show", gate, "--json", cwd=place, env=env, code=0).json["answer"]["commit"]
    event = tmp_path / "event.json"
    event.write_text(dispatched(gate, commit))
    cli.quick("github", "resume", gate, "--event", str(event), cwd=place, env=env, code=0)
    assert agent.starts == [gate]
    assert bare.git("show", "feature:made.txt") == "done"
    assert not leak.exists()


def dispatched(gate: str, commit: str) -> str:
    sender = {"login": "ada", "type": "User", "id": 1000}
    return json.dumps(
        {
            "inputs": {"gate": gate, "commit": commit},
            "repository": {"full_name": "team/project"},
            "sender": sender,
        }
    )


def test_what_was_not_put_back_is_not_used(team: Team) -> None:
    """The agent's step was cut off: what is pushed with the token waits for somebody to look."""
    place = team.clone_of(team.bare, "cut-off").path
    output = team.folder / "outputs"
    env = {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(output)}
    team.cli.quick("github", "prepare", cwd=place, env=env, code=0)
    settings = output.read_text().partition("settings=")[2].strip()
    assert len(settings) == 64
    team.cli.quick("github", "publish", cwd=place, env={**env, "GITGATE_PREPARED": settings}, code=0)
    run_git("config", "http.proxy", "http://127.0.0.1:9", cwd=place)
    said = team.cli.quick("github", "publish", cwd=place, env={**env, "GITGATE_PREPARED": settings}, code=1)
    assert "nothing is sent with it" in said.err


# whose policy holds


def develop(team: Team) -> Clone:
    """A job's checkout of a repository whose default branch has another name, with a policy on it, as `checkout` makes one."""
    seed = team.clone_of(team.bare, "policy")
    seed.git("checkout", "-q", "-b", "develop")
    seed.commit("Policy", **{".gitgate.yml": "policy:\n  who: ['@grace']\n"})
    seed.git("push", "-q", "origin", "develop")
    job = team.clone_of(team.bare, "scheduled")
    job.git("remote", "set-head", "origin", "--delete")
    return job


JOB = {"GITHUB_ACTIONS": "true"}


@pytest.mark.slow
def test_a_schedule_names_the_default_branch(team: Team) -> None:
    """Its event may hold no repository; what it runs on is the default branch."""
    job = develop(team)
    event = team.event_file({"schedule": "*/30 * * * *"})
    env = {
        **JOB,
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_EVENT_NAME": "schedule",
        "GITHUB_REF": "refs/heads/develop",
    }
    gate = team.ask("Deploy?", "--type", "approval")
    team.forge.write(THREAD, "ada", "/approve")
    team.cli.quick("github", "prepare", cwd=job.path, env=env, code=0)
    assert job.git("config", "gitgate.protectedBranch") == "develop"
    team.cli.quick("github", "sweep", cwd=job.path, env=env, code=0)
    assert team.gate(gate)["state"] == "awaiting"
    assert "policy" in team.told()[0]


def test_the_server_is_asked_where_no_event_names_it(team: Team) -> None:
    """Whatever branch is checked out."""
    job = develop(team)
    team.bare.git("symbolic-ref", "HEAD", "refs/heads/develop")
    team.cli.quick("github", "prepare", cwd=job.path, env={**JOB, "GITHUB_REF": "refs/heads/feature"}, code=0)
    assert job.git("config", "gitgate.protectedBranch") == "develop"


def test_without_the_default_branch_nothing_is_done(team: Team) -> None:
    """Not made ready, no answer taken, no agent started; each says what to do."""
    job = develop(team)
    event = str(team.event_file({"repository": {"default_branch": "elsewhere"}}))
    env = {**JOB, "GITHUB_EVENT_PATH": event, "GITGATE_AGENT_COMMAND": '["touch", "started"]'}
    gate = team.ask("Deploy?", "--type", "approval")
    comment = team.forge.write(THREAD, "ada", "/approve")
    said = str(team.event_file(team.forge.event(comment)))
    for words in (("prepare",), ("accept", said), ("sweep",), ("resume", gate), ("run",), ("publish",)):
        told = team.cli.quick("github", *words, cwd=job.path, env=env, code=4)
        assert "fetch-depth: 0" in told.err
    assert team.gate(gate)["state"] == "awaiting"
    assert not (job.path / "started").exists()


# the action

# The steps of it that are a person's own: the agent is installed, and what they have besides is run.
THEIRS = ("npm install --global @anthropic-ai/claude-code@2.1.329", "make fixtures")


def documented() -> list[dict[str, Any]]:
    """The steps of a job of one's own, as `docs/github.md` shows them."""
    (block,) = re.findall(
        r"```yaml\n( +permissions: \{contents.*?)```", (TOP / "docs/github.md").read_text(), re.DOTALL
    )
    said = codec.parse_document(textwrap.dedent(block).encode(), "docs/github.md").plain()
    assert isinstance(said, dict)
    needed = dict.fromkeys(("contents", "pull-requests", "issues", "statuses", "checks"), "write")
    assert said["permissions"] == needed
    steps: Any = said["steps"]
    return list(steps)


@pytest.mark.slow
def test_a_job_of_ones_own_by_the_action(
    checkout: Callable[[str], Path], forge: Forge, tmp_path: Path
) -> None:
    """The documented steps, with another agent's command: it asks, its question is shown, and nothing of it is in the token's way."""
    place = checkout("feature")
    ours = [step for step in documented() if step.get("run") not in THEIRS]
    assert (len(documented()), len(ours)) == (6, 4)
    assert (ACTION.parent / "../../..").resolve() == TOP
    assert (TOP / "pyproject.toml").is_file()
    (run,) = [step for step in ours if step.get("run") == "git-gate github run"]
    words = json.loads(run["env"]["GITGATE_AGENT_COMMAND"])
    assert words == json.loads(load(TEMPLATE)["jobs"]["agent"]["with"]["command"])
    (first,) = [s for s in load(WORKFLOWS / "agent.yml")["jobs"]["agent"]["steps"] if s.get("id") == "run"]
    assert set(run["env"]) == set(first["env"])
    asks = "git config credential.helper store; echo w > w.txt; git-gate ask 'Which?' -o A -o B"
    run["env"]["GITGATE_AGENT_COMMAND"] = json.dumps(["sh", "-ec", asks])
    known = {"github.token": "job-token", "secrets.ANTHROPIC_API_KEY": "dummy-not-a-key"}
    steps = run_steps(ours, known, place, {"CI": "true", "RUNNER_TEMP": str(tmp_path / "temp")})
    all_well(steps)
    assert [step.name for step in steps] == ["Prepare", "git-gate github run", "git-gate github publish"]
    assert "Which?" in forge.by("github-actions[bot]")[0]["body"]


@pytest.mark.slow
@pytest.mark.needs("bash")
def test_the_action_says_how_agents_are_started(team: Team, tmp_path: Path) -> None:
    """A program of one's own, Claude Code's flags, and the key of sessions, which nobody else can read."""
    job = team.clone_of(team.bare, "by-action")
    given = {"agent-name": "helper", "agent-resume": '["./helper.sh"]', "session-key": "AGE-KEY"}
    given["agent-arguments"] = '["--model", "opus"]'
    uses = {"id": "gate", "uses": f"team/git-gate{OUR_ACTION}{'a1' * 20}", "with": given}
    env = {"RUNNER_TEMP": str(tmp_path / "temp")}
    all_well(run_steps([uses], {"github.token": "job-token"}, job.path, env))
    assert job.git("config", "gitgate.agent.helper.resume") == '["./helper.sh"]'
    assert job.git("config", "gitgate.agent.claude.arguments") == '["--model", "opus"]'
    key = Path(job.git("config", "gitgate.sessionIdentity"))
    assert key.read_text() == "AGE-KEY\n"
    assert key.stat().st_mode & 0o77 == 0
    given["agent-arguments"] = '["--model", 4]'
    (failed,) = run_steps([uses], {"github.token": "job-token"}, job.path, env)
    assert "not a list of words" in failed.err
