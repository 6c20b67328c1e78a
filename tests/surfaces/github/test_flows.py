"""`git gate init --flows`: the example that it writes, run as it is, and its workflow by its own steps."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from gitgate import testing
from gitgate.setup import TEXTS
from gitgate.setup.workflows import EXAMPLES, FLOW
from support.forges.jobs import load, run_workflow
from support.forges.standin import Forge
from support.servers import HttpServer
from support.testbed.command import Command
from support.testbed.repositories import Clone, run_git

from .conftest import THREAD, Team
from .test_workflows import PIN, fresh_home, handed_on, well

WORKFLOW = f".github/workflows/{FLOW}"
WORKER = """#!/bin/sh
# Stands for both agents: works a little, and says that it is well.
echo "$1" >> work.txt
git add -A && git -c user.name=w -c user.email=w@example.org commit -qm "$1"
echo '{"status": "APPROVED", "summary": "looked at it"}'
"""


def test_init_writes_an_example_once(repo: Clone, cli: Command) -> None:
    """What somebody changed stays, also when it is taken away again; the workflow follows the commit that it calls."""
    repo.git("config", "gitgate.workflows", PIN)
    cli.quick("init", "--flows", code=0)
    written = {name: (repo.path / name).read_text() for name in (*EXAMPLES, WORKFLOW)}
    assert "a1" * 20 in written[WORKFLOW]
    assert "OWNER" not in written[WORKFLOW]
    mine = repo.path / "flows/change.py"
    mine.write_text(written["flows/change.py"] + "\n# mine\n")
    repo.git("config", "gitgate.workflows", PIN.replace("a1", "b2"))
    cli.quick("init", "--flows", code=0)
    assert mine.read_text().endswith("# mine\n")
    assert "b2" * 20 in (repo.path / WORKFLOW).read_text()
    cli.quick("init", "--flows", "--remove", code=0)
    assert mine.exists()
    assert not (repo.path / ".github").exists()
    assert not (repo.path / ".gitgate").exists()
    mine.unlink()
    cli.quick("init", "--flows", code=0)
    cli.quick("init", "--remove", code=0)
    assert not (repo.path / "flows").exists()


def test_a_workflow_of_that_name_that_is_not_ours_stays(repo: Clone, cli: Command) -> None:
    repo.git("config", "gitgate.workflows", PIN)
    repo.write(WORKFLOW, "name: mine\n")
    assert "is not ours" in cli.quick("init", "--flows", code=2).err
    assert not (repo.path / "flows").exists()


def example() -> Any:
    """The flow as it is written."""
    place = TEXTS / "flows" / "change.txt"
    code = compile(place.read_text(), str(place), "exec")
    spec = importlib.util.spec_from_loader("change_example", loader=None)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    exec(code, vars(module))  # noqa: S102 - our own file
    return module.change


@pytest.mark.slow
def test_the_example_does_what_it_says() -> None:
    """The coder works again as long as the reviewer wants something; a person's no ends it."""
    change = example()
    reviews = [{"status": "CHANGES", "reason": "no test"}, {"status": "APPROVED"}]
    played = testing.play(change, "Add a page", agents={"reviewer": reviews}, people=[True])
    assert (played.status, played.result) == ("completed", "ready")
    assert played.starts == ("start coder", "start reviewer", "start coder", "start reviewer")
    refused = testing.play(
        change, "x", agents={"reviewer": {"status": "APPROVED"}}, people=[(False, "not yet")]
    )
    assert (refused.status, "not yet" in refused.reason) == ("stuck", True)


def test_its_workflow_runs_on_a_label(repo: Clone) -> None:
    """Of this repository's own branches alone, and with the protected branch's code of the flow."""
    said = load(TEXTS / "workflows" / FLOW)
    assert said["permissions"] == {}
    assert said["on"] == {"pull_request": {"types": ["labeled"]}}
    (job,) = said["jobs"].values()
    assert "head.repo.full_name == github.repository" in job["if"]
    assert json.loads(job["with"]["command"])[:3] == ["git-gate", "run", "--protected"]
    assert job["permissions"] == dict.fromkeys(
        ("contents", "pull-requests", "issues", "statuses", "checks"), "write"
    )


@pytest.mark.slow
@pytest.mark.needs("bash")
def test_the_whole_loop_of_a_flow(
    forge: Forge, bare: Clone, web: HttpServer, cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked in a job on a pull request with commits of its own, answered by a comment, gone on with in another job."""
    bare.git("config", "http.receivepack", "true")
    monkeypatch.delenv("GITHUB_TOKEN")
    work = tmp_path / "setup"
    run_git("clone", "-q", str(bare.path), str(work), cwd=tmp_path)
    clone = Clone(work)
    clone.commit(**{name: (TEXTS / "flows" / text).read_text() for name, text in EXAMPLES.items()})
    clone.git("push", "-q", "origin", "HEAD:main")
    clone.git("checkout", "-qb", "feature")
    # The flow's code on this branch is another one; what runs is the protected branch's.
    clone.commit(**{"flows/change.py": "raise SystemExit('the code of the branch was run')\n"})
    clone.git("push", "-q", "origin", "feature")
    forge.open_pull(THREAD, "feature", bare.git("rev-parse", "feature"))
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "worker").write_text(WORKER)
    (programs / "worker").chmod(0o755)
    output = tmp_path / "output"
    output.touch()
    env = {"CI": "true", "PATH": f"{programs}:{os.environ['PATH']}", "RUNNER_TEMP": str(tmp_path)}
    (job,) = load(TEXTS / "workflows" / FLOW)["jobs"].values()
    known = {
        "inputs.command": job["with"]["command"],
        "inputs.task": "Add a page",
        "inputs.branch": "feature",
    }

    def checkout(branch: str) -> Path:
        name = f"job{len(list(tmp_path.glob('job*')))}"
        fresh_home(tmp_path / f"home-{name}", monkeypatch)
        for agent in ("coder", "reviewer"):
            run_git("config", "--global", f"gitgate.agent.{agent}.start", f"worker {agent}", cwd=tmp_path)
        run_git("clone", "-q", "-b", branch or "main", web.url(bare.path), str(tmp_path / name), cwd=tmp_path)
        return tmp_path / name

    def event(name: str, said: dict[str, Any]) -> dict[str, str]:
        place = tmp_path / f"event-{name}.json"
        place.write_text(json.dumps(said))
        return {"GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": str(place), "GITHUB_OUTPUT": str(output)}

    begun = event("workflow_dispatch", forge.run_event("gitgate-agent.yml", branch="feature", task="x"))
    assert well(run_workflow("agent.yml", known, checkout, {**env, **begun})) == ["agent", "deliver"]
    (gate,) = set(re.findall(r"^gate=(\w+)", output.read_text(), re.MULTILINE))
    (ref,) = bare.refs("refs/hitl/runs/")
    run = ref.rpartition("/")[2]
    (shown,) = forge.by("github-actions[bot]")
    assert "Is this ready to be merged?" in shown["body"]
    assert f"run `{run}` of flow `change`" in shown["body"]
    assert bare.git("show", "feature:work.txt").split() == ["coder", "reviewer"]

    reply = event("issue_comment", forge.event(forge.write(THREAD, "ada", "/approve")))
    output.write_text("")
    done = run_workflow("answer.yml", known, checkout, {**env, **reply})
    assert well(done) == ["answer", "claim", "agent", "deliver"]
    assert handed_on(output) == [gate]
    ended = cli.quick("show", run, "--json", cwd=bare.path, code=0).json
    assert (ended["status"], ended["result"]) == ("completed", "ready")
    assert bare.git("show", "feature:work.txt").split() == ["coder", "reviewer"]


NIGHTLY = """
import gitgate


@gitgate.flow
def nightly():
    return gitgate.receive("built").value
"""


@pytest.mark.slow
def test_a_sweep_names_runs_that_no_job_goes_on_with(team: Team) -> None:
    """Once they have what they waited for; somebody has to look after them."""
    team.agents.commit(**{"flows.py": NIGHTLY})
    run = team.cli("run", "flows.py", "--json", cwd=team.agents.path, code=8).json["id"]
    team.cli("sync", cwd=team.agents.path, code=0)

    def noted() -> list[str]:
        return list(team.cli.quick("github", "sweep", "--json", cwd=team.job().path, code=0).json["noted"])

    assert not [words for words in noted() if run in words]
    team.cli("signal", run, "--topic", "built", "v1", cwd=team.agents.path, code=0)
    (words,) = [words for words in noted() if run in words]
    assert f"no job goes on with it: git gate resume {run[:6]}" in words
