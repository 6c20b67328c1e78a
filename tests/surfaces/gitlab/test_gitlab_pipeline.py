"""GitLab's whole loop in the pipelines that `git gate init --gitlab` writes: each job's own lines, with the variables of its own
environment, and the artifacts that it needs.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gitgate.setup.workflows import JOBS, OURS_IN, ROOT
from support.forges.gitlab import GitLabForge
from support.forges.pipelines import Pipeline, PipelineFiles, RanJob
from support.testbed.command import COMMAND, Command
from support.testbed.repositories import Clone

from .conftest import THREAD
from .test_gitlab_page import blocks

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("person")]

TOP = Path(__file__).parents[3]
COMMIT = "c0ffee" * 6 + "beef"
BOT = "project_42_bot_1a2b"
NAMED = """      agent-name: mine
      agent-resume: '["goes-on", "{answer_file}"]'
      command: '["asks", "{task}"]'
"""
USUAL = """      command: >-
        ["claude", "-p", "--output-format", "json", "--permission-prompt-tool", "stdio", "--", "{task}"]
"""
ASKS = """#!/bin/sh
env > "$SEEN/first.env"
echo work > work.txt && git add work.txt && git commit -q -m "Begin"
git-gate ask "Which session store?" -o Memory -o Redis --agent mine --session 4711
"""
GOES_ON = """#!/bin/sh
env > "$SEEN/on.env"
grep -q Redis "$1" || exit 9
echo Redis > store.txt && git add store.txt && git commit -q -m "Use Redis"
"""


@dataclass
class Project:
    """A project whose default branch has the pipelines, and whose merge request !7 is of the branch `login`."""

    forge: GitLabForge
    bare: Clone
    clone: Clone
    folder: Path
    env: dict[str, str]
    included: str = ""
    number: int = 4710
    ran: list[dict[str, RanJob]] = field(default_factory=list)

    def put(self, name: str, text: str) -> None:
        place = self.folder / "bin" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
        place.chmod(0o755)

    def pipeline(
        self,
        source: str,
        user: str = "ada",
        on: str = "main",
        payload: object = None,
        planted: dict[str, str] | None = None,
        **given: str,
    ) -> dict[str, RanJob]:
        """What GitLab runs of the files of that branch."""
        self.number += 1
        env = {
            **self.env,
            "CI_PIPELINE_SOURCE": source,
            "CI_PIPELINE_ID": str(self.number),
            "CI_COMMIT_BRANCH": on,
            "GITLAB_USER_LOGIN": user,
            "GITLAB_USER_ID": str(self.forge.members[user].id),
        }
        if payload is not None:
            place = self.folder / f"payload{self.number}.json"
            place.write_text(json.dumps(payload))
            env["TRIGGER_PAYLOAD"] = str(place)
        root = self.bare.git("show", f"{on}:{ROOT}")
        local = {OURS_IN: self.bare.git("show", f"{on}:{OURS_IN}")}
        files = PipelineFiles(root, local, (TOP / JOBS).read_text())
        # The token is a protected variable of its environment: only pipelines of protected branches have it.
        ours = {
            "gitgate": {"GITGATE_GITLAB_TOKEN": "bot-token"},
            "gitgate-agent": {"AGENT_KEY": "its-own-key"},
        }
        variables = ours if on == "main" else {}
        everywhere = {"": {"CI_JOB_TOKEN": "job-token"}}
        made = Pipeline(files.jobs(given), self.folder / f"p{self.number}", env, {**variables, **everywhere})
        made.planted = planted or {}
        self.ran.append(made.run())
        return self.ran[-1]

    def notes(self) -> list[str]:
        return [str(one["body"]) for one in self.forge.by(BOT)]

    def asked(self) -> str:
        """An agent was started on the branch, and asked: its gate."""
        ran = self.pipeline("web", gitgate="agent", branch="login", task="A login page; $CI_JOB_TOKEN")
        assert codes(ran) == {"gitgate:first": 0, "gitgate:publish": 0}, failures(ran)
        return self.bare.git("for-each-ref", "--format=%(refname:lstrip=3)", "refs/hitl/open").split()[-1]


def codes(ran: dict[str, RanJob]) -> dict[str, int]:
    return {name: job.code for name, job in ran.items()}


def failures(ran: dict[str, RanJob]) -> str:
    return "\n".join(f"== {name}\n{job.out}" for name, job in ran.items() if job.code)


def typed(line: str, clone: Clone) -> None:
    """As somebody does who reads docs/gitlab.md."""
    path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path}
    subprocess.run(
        ["bash", "-c", line], cwd=clone.path, env=env, timeout=120, check=True, capture_output=True
    )


@pytest.fixture
def project(
    forge: GitLabForge,
    bare: Clone,
    clone_of: Callable[..., Clone],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Project:
    for name in forge.env:
        monkeypatch.delenv(name)
    clone = clone_of(bare, "ada")
    clone.git("config", "gitgate.workflows", f"{forge.server}/tools/git-gate@{COMMIT}")
    clone.git("config", "gitgate.forgeAt", forge.site)
    clone.git("config", "gitgate.forge", "gitlab")
    init, commit = next(block for block in blocks("sh") if "--gitlab" in block).splitlines()
    typed(init, clone)
    place = clone.path / OURS_IN
    assert USUAL in place.read_text()
    place.write_text(place.read_text().replace(USUAL, NAMED))
    typed(commit, clone)
    clone.git("push", "-q", "origin", "HEAD:login")
    forge.open_merge(THREAD, "login", clone.git("rev-parse", "HEAD"))
    clone.git("config", "--global", f"url.{bare.path}.insteadOf", f"{forge.site}.git")
    seen = tmp_path / "seen"
    seen.mkdir()
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, **forge.env, "PATH": path, "SEEN": str(seen)}
    del env["GITGATE_GITLAB_TOKEN"]
    found = Project(forge, bare, clone, tmp_path, env)
    found.put("asks", ASKS)
    found.put("goes-on", GOES_ON)
    return found


def test_from_a_task_to_its_outcome(project: Project) -> None:
    """An agent is started, asks on the merge request, somebody replies, GitLab's webhook starts a pipeline, the agent goes on,
    and what came of it is a note. No job of an agent has the token, nor has it what ends the claim.
    """
    gate = project.asked()
    (question,) = project.notes()
    assert gate in question
    assert "Which session store?" in question
    assert f"{project.forge.site}/-/pipelines/4711" in question
    assert project.forge.statuses[-1]["status"] == "pending"
    note = project.forge.write(THREAD, "grace.h", "/choose 2")
    ran = project.pipeline("trigger", payload=project.forge.event(note))
    wanted = dict.fromkeys(("gitgate:answer", "gitgate:hand", "gitgate:agent", "gitgate:deliver"), 0)
    assert codes(ran) == wanted, failures(ran)
    assert project.bare.git("log", "--format=%s", "-1", "login") == "Use Redis"
    assert any("the agent went on" in body for body in project.notes())
    for name, job in {**project.ran[0], **ran}.items():
        has = "GITGATE_GITLAB_TOKEN" in job.env
        assert has is (name in ("gitgate:answer", "gitgate:deliver", "gitgate:publish")), name
    for name in ("first.env", "on.env"):
        said = (project.folder / "seen" / name).read_text()
        assert "its-own-key" in said
        assert "job-token" not in said
        assert "bot-token" not in said
    claim = json.loads((project.folder / "p4712/gitgate-agent/builds/gitgate-claim/claim.json").read_text())
    assert claim["seed"] == ""
    assert not (project.folder / "p4712/gitgate-agent/builds/gitgate-answer").exists()


def test_a_look_finds_what_was_missed_and_a_quiet_one_starts_nobody(project: Project) -> None:
    """On a schedule."""
    gate = project.asked()
    quiet = project.pipeline("schedule")
    assert set(codes(quiet).values()) == {0}, failures(quiet)
    assert not (project.folder / "seen/on.env").exists()
    project.forge.write(THREAD, "ada", "/choose 2")
    ran = project.pipeline("schedule")
    assert set(codes(ran).values()) == {0}, failures(ran)
    assert "Answered, and acted on" in next(body for body in project.notes() if f"gate={gate} seen" in body)


def test_an_answer_from_a_terminal_is_vouched_for_by_who_starts_the_pipeline(
    project: Project, cli: Command
) -> None:
    """By its commit; who may not write vouches for nothing, and a webhook's payload vouches for nobody."""
    gate = project.asked()
    project.clone.git("config", "gitgate.push", "true")
    cli.quick("sync", cwd=project.clone.path, code=0)
    cli.quick("respond", gate, "Redis", cwd=project.clone.path, code=0)
    said = cli.quick("show", gate, "--json", cwd=project.clone.path, code=0).json
    commit = said["answer"]["commit"]
    forged = {
        "inputs": {"gate": gate, "commit": commit},
        "sender": {"login": "ada", "type": "User"},
        "repository": {"full_name": project.forge.repository},
    }
    ran = project.pipeline("trigger", payload=forged)
    assert "asks for nothing in anybody's name" in ran["gitgate:answer"].out
    ran = project.pipeline("api", "eve", gitgate="answer", gate=gate, commit=commit)
    assert ran["gitgate:answer"].code != 0
    assert not (project.folder / "seen/on.env").exists()
    ran = project.pipeline("api", "ada", gitgate="answer", gate=gate, commit=commit)
    assert set(codes(ran).values()) == {0}, failures(ran)
    assert (project.folder / "seen/on.env").exists()


def test_a_branchs_own_pipeline_has_no_token_and_runs_nothing_of_ours(project: Project) -> None:
    """Whatever its file says: our jobs run on the default branch alone, and protected variables are there alone."""
    project.clone.git("push", "-q", "origin", "HEAD:refs/heads/evil")
    assert project.pipeline("push", on="evil") == {}
    assert project.pipeline("api", on="evil", gitgate="answer") == {}
    assert project.pipeline("push") == {}
    for source in ("trigger", "schedule", "pipeline", "parent_pipeline", "merge_request_event"):
        ran = project.pipeline(source, gitgate="agent", branch="login", task="Whatever")
        assert ran == {}, source  # a trigger token is nobody's word


HOSTILE = """#!/bin/sh
mkdir -p "$CI_PROJECT_DIR/gitgate-made/.git" "$CI_PROJECT_DIR/gitgate-answer"
echo other > "$CI_PROJECT_DIR/gitgate-answer/gate"
printf '[core]\\n\\tfsmonitor = touch %s/seen-by-the-next-job\\n' "$SEEN" > "$CI_PROJECT_DIR/gitgate-made/.git/config"
exit 9
"""


def test_what_an_agent_leaves_in_its_job_ends_in_its_job(project: Project) -> None:
    """Of its folder only what is to be handed on goes on, and nothing of that is run; its failure is recorded, and said."""
    gate = project.asked()
    project.put("goes-on", HOSTILE)
    project.forge.write(THREAD, "ada", "/choose 2")
    ran = project.pipeline("schedule")
    assert ran["gitgate:agent"].code == 1
    handed = project.folder / "p4712/gitgate-deliver/builds"
    assert (handed / "gitgate-answer/gate").read_text() == gate
    assert (
        len([one for one in (handed / "gitgate-made").rglob("*") if one.is_file()]) == 2
    )  # what `pack` wrote
    assert not (project.folder / "seen/seen-by-the-next-job").exists()
    assert "failed" in record_of(project, gate)


def test_an_artifact_with_another_claim_ends_nothing(project: Project) -> None:
    """GitLab's own token lets an agent put anything into its job's artifact: another gate, another claim, git's configuration."""
    gate = project.asked()
    project.put("goes-on", "#!/bin/sh\nexit 9\n")
    project.forge.write(THREAD, "ada", "/choose 2")
    files = {
        "gitgate-answer/gate": gate,
        "gitgate-answer/held.json": json.dumps({"gate": gate, "claim": "a" * 40, "lease": "b" * 40}),
        ".git/config": "[core]\n\tfsmonitor = touch seen-by-the-next-job\n",
    }
    ran = project.pipeline("schedule", planted=files)
    assert ran["gitgate:deliver"].code != 0
    assert "no longer this run's" in ran["gitgate:deliver"].out
    assert not list((project.folder / "p4712").rglob("seen-by-the-next-job"))
    assert "failed" not in record_of(project, gate)  # its lease passes, and the next look tries again


def record_of(project: Project, gate: str) -> str:
    """The messages of its commits, as the shared repository has them."""
    return project.bare.git("log", "--format=%B", f"refs/hitl/open/{gate}")


STEALS = """#!/bin/sh
git push -q origin HEAD:refs/heads/main
git push -q origin +HEAD:refs/heads/stolen
git config --global core.hooksPath /nowhere
echo x > x && git add x && git commit -q -m "Of its own"
"""


def test_what_an_agent_hands_over_is_not_believed(project: Project) -> None:
    """What it pushed in its job reached a copy there; of that only its own commits are taken, to its own branch."""
    project.asked()
    before = project.bare.git("rev-parse", "main")
    project.put("goes-on", STEALS)
    project.forge.write(THREAD, "ada", "/choose 2")
    ran = project.pipeline("schedule")
    assert ran["gitgate:deliver"].code == 0, failures(ran)
    assert project.bare.git("rev-parse", "main") == before
    assert project.bare.git("for-each-ref", "refs/heads/stolen") == ""
    assert project.bare.git("log", "--format=%s", "-1", "login") == "Of its own"
