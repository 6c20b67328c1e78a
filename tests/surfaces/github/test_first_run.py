"""An agent's first run in a job: what it cannot change there is told before, and what the job would lose is told after."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support.testbed.command import Outcome
from support.testbed.repositories import Clone

from .conftest import Team

pytestmark = pytest.mark.slow  # each takes a good part of a second

JOB = {"GITHUB_ACTIONS": "true"}
OLD, NEW = '{"model": "old"}', '{"model": "new"}'


def started(team: Team, job: Clone, *words: str, task: str = "Do it", **env: str) -> Outcome:
    given = {**JOB, "GITGATE_AGENT_COMMAND": json.dumps(words), "GITGATE_TASK": task, **env}
    return team.cli.quick("github", "run", cwd=job.path, env=given)


def branch(team: Team, **files: str) -> Clone:
    """A job's checkout of a branch that has these files, and the default branch has not."""
    source = team.clone_of(team.bare, "source")
    source.git("checkout", "-q", "-b", "topic")
    source.commit("Topic", **files)
    source.git("push", "-q", "origin", "topic")
    return team.clone_of(team.bare, "job", "-b", "topic")


def behind(team: Team, *, doubted: bool = True) -> Clone:
    """One that has not caught up on the default branch's settings; a link among them leads to what is the branch's own."""
    source = team.clone_of(team.bare, "source")
    source.git("checkout", "-q", "main")
    source.commit("Old", **{".claude/settings.json": OLD, "CLAUDE.md": "Rules\n"})
    source.git("push", "-q", "origin", "main", "main:topic")
    source.write(".claude/settings.json", NEW)
    if doubted:
        (source.path / ".claude/rules.md").symlink_to("../rules.md")
    source.commit("New")
    source.git("push", "-q", "origin", "main")
    return team.clone_of(team.bare, "job", "-b", "topic")


def test_an_agent_that_is_to_change_its_instructions_is_told(team: Team) -> None:
    """And so is the job: what it wrote to them all the same is named, and the step fails. The rest is committed."""
    job = branch(team, **{"CLAUDE.md": "the branch's\n"})
    body = 'printf %s "$1" > told.txt; echo more >> CLAUDE.md; git add -A; git commit -qm Made'
    output = team.folder / "output"
    words = ("sh", "-ec", body, "sh", "{task}")
    said = started(team, job, *words, task="Extend CLAUDE.md", GITHUB_OUTPUT=str(output))
    assert said.code == 1
    assert output.read_text().splitlines()[-1] == "state=failed"
    assert "lost with this checkout: what the agent wrote to CLAUDE.md" in said.err
    told = (job.path / "told.txt").read_text()
    assert told.startswith("Extend CLAUDE.md\n\n(gitgate) ")
    assert "commits nothing that you write there" in told
    assert "CLAUDE.md\n>>> paths" in told
    assert job.git("show", "HEAD:CLAUDE.md") == "the branch's"
    assert job.git("diff", "--name-only", "HEAD~1", "HEAD") == "told.txt"
    assert "left uncommitted" not in said.err


def test_an_agent_that_leaves_them_alone_is_well(team: Team) -> None:
    """Its own code is passed on, and nothing is said of what is not lost."""
    job = branch(team, **{"CLAUDE.md": "the branch's\n"})
    said = started(team, job, "sh", "-c", "echo 1 > made.txt; git add -A; git commit -qm Made; exit 7")
    assert said.code == 7
    said = started(team, job, "true")
    assert said.code == 0
    assert "lost" not in said.err
    assert "uncommitted" not in said.err
    assert (job.path / "CLAUDE.md").read_text() == "the branch's\n"


def test_where_nothing_stands_the_task_is_as_it_was_given(team: Team) -> None:
    job = team.clone_of(team.bare, "plain")
    started(team, job, "sh", "-c", 'printf %s "$1" > told.txt', "sh", "{task}", task="Do it")
    assert (job.path / "told.txt").read_text() == "Do it"


def test_what_is_left_uncommitted_is_counted(team: Team) -> None:
    """Of the agent's own, not what earlier steps made; and not where it asked, since its work went along."""
    job = team.clone_of(team.bare, "job")
    job.write("fixture", "made before\n")
    said = started(team, job, "sh", "-c", "echo 1 > one; mkdir two; echo 2 > two/three; echo 3 >> README")
    assert said.code == 0
    assert "3 files were left uncommitted by the agent, and will be gone: README, one, two/three" in said.err
    said = started(team, job, "sh", "-c", "echo 1 > four")
    assert "1 file was left uncommitted by the agent, and will be gone: four" in said.err
    said = started(team, job, "sh", "-c", "echo 1 > five; git-gate ask 'Which?'", GITGATE_PUSH="false")
    assert "the agent waits for an answer" in said.err
    assert "left uncommitted" not in said.err


def test_a_persons_own_tree_stays_as_it_is(team: Team) -> None:
    """Outside of a job nothing is put in place of their files, and nothing of theirs is gone."""
    job = branch(team, **{"CLAUDE.md": "the branch's\n"})
    body = "cp CLAUDE.md seen.txt; echo more >> CLAUDE.md"
    said = started(team, job, "sh", "-ec", body, GITHUB_ACTIONS="")
    assert said.code == 0
    assert "CLAUDE.md differs" in said.err
    assert "gone" not in said.err
    assert (job.path / "seen.txt").read_text() == "the branch's\n"
    assert (job.path / "CLAUDE.md").read_text() == "the branch's\nmore\n"


def test_a_program_that_is_not_there(team: Team) -> None:
    """The setting that installs it is named where a job's machine lacks it."""
    job = team.clone_of(team.bare, "job")
    said = started(team, job, "no-such-agent")
    assert said.code == 1
    assert "agent-package" in said.err
    assert "npm install --global" in said.err
    assert "agent-package" not in started(team, job, "no-such-agent", GITHUB_ACTIONS="").err


# what cannot be replaced


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A program by the name of Claude Code, which notes its words."""
    (tmp_path / "programs").mkdir()
    program = tmp_path / "programs/claude"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > words.txt\n')
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


def test_doubted_settings_take_no_part(team: Team, path: str) -> None:
    """What a link of the default branch leads to is the branch's own. The instructions there are named instead."""
    job = behind(team)
    said = started(team, job, "claude", "-p", "--", "{task}", PATH=path)
    assert ".claude/rules.md leads elsewhere" in said.err
    assert "servers take no part" in said.err
    words = (job.path / "words.txt").read_text()
    flags = words.partition("\n--\n")[0]
    assert "\n--setting-sources\nuser\n--strict-mcp-config\n" in flags
    assert flags.count("--settings\n") == 1  # of two the program would take the last
    assert "not loaded by themselves; read them" in words
    assert "CLAUDE.md\n>>> paths" in words


@pytest.mark.parametrize("own", [("--setting-sources", "user,project"), ("--setting-sources=project",)])
def test_a_command_may_say_what_is_loaded(team: Team, path: str, own: tuple[str, ...]) -> None:
    """Then it is its own doing, and the job says so."""
    job = behind(team)
    said = started(team, job, "claude", "-p", *own, "--", "{task}", PATH=path)
    assert "names --setting-sources, and may load that" in said.err
    words = (job.path / "words.txt").read_text()
    assert words.count("--setting-sources") == 1
    assert "not loaded by themselves" not in words


def test_a_task_names_no_settings(team: Team, path: str) -> None:
    """What stands after `--` is no flag. Where nothing is in doubt none is added."""
    job = behind(team)
    started(team, job, "claude", "-p", "--", "--setting-sources", PATH=path)
    flags, _, task = (job.path / "words.txt").read_text().partition("\n--\n")
    assert "\n--setting-sources\nuser\n" in flags
    assert task == "--setting-sources\n"


def test_settings_of_today_take_part(team: Team, path: str) -> None:
    """A branch that has not caught up on them has them nevertheless, and no flag is added."""
    job = behind(team, doubted=False)
    said = started(team, job, "claude", "-p", "--", "{task}", PATH=path)
    assert "as on the protected branch meanwhile: .claude/settings.json" in said.err
    assert "--setting-sources" not in (job.path / "words.txt").read_text()


# words that are no list


@pytest.mark.parametrize("words", ['{"a": 1}', "[" * 50_000, '{"a":' * 15_000])
def test_flags_are_a_list_or_a_line(team: Team, words: str) -> None:
    """Anything else is refused before an answer is there, however deep it goes."""
    job = team.clone_of(team.bare, "job")
    said = team.cli.quick("github", "prepare", cwd=job.path, env={**JOB, "GITGATE_AGENT_ARGUMENTS": words})
    assert said.code == 2
    assert "not a list of words" in said.err


def test_a_line_may_begin_with_a_placeholder(team: Team) -> None:
    """It is no object."""
    job = team.clone_of(team.bare, "job")
    env = {**JOB, "GITGATE_AGENT_ARGUMENTS": "{session} --model 'opus'"}
    team.cli.quick("github", "prepare", cwd=job.path, env=env, code=0)


def test_a_command_that_goes_too_deep(team: Team) -> None:
    job = team.clone_of(team.bare, "job")
    said = team.cli.quick(
        "github", "run", cwd=job.path, env={**JOB, "GITGATE_AGENT_COMMAND": "[" * 50_000}, code=2
    )
    assert "no JSON list of words" in said.err


# what the step with the token pushes


ON_MAIN = "git switch -q main; echo 'policy: {}' > .gitgate.yml; git add .gitgate.yml; git commit -qm Policy"


def test_a_job_pushes_the_branch_that_it_is_about(team: Team) -> None:
    """Its agent, which has no token, ended on the default branch and changed the policy there: nobody is ruled by that."""
    job = branch(team, x="1\n")
    before = team.bare.git("rev-parse", "main")
    team.cli.quick("github", "prepare", cwd=job.path, env=JOB, code=0)
    assert started(team, job, "sh", "-ec", ON_MAIN).code == 0
    said = team.cli.quick("github", "publish", cwd=job.path, env=JOB, code=0)
    own = f"gate/{job.git('rev-parse', 'HEAD')[:10]}"
    assert f"pushed {own}" in said.err
    assert "the agent was put on topic, and main is not moved for it" in said.err
    assert (team.bare.git("rev-parse", "main"), team.bare.git("show", f"{own}:.gitgate.yml")) == (
        before,
        "policy: {}",
    )
