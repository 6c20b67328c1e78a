"""What is set under a name that nothing reads is named by every verb that reads settings, and fails the check-up."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitgate.acts import askers
from gitgate.config import OTHER_VARIABLES
from support.testbed.command import Command
from support.testbed.repositories import Clone


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("gitgate.maxAgent", "there is no setting gitgate.maxagent (did you mean maxAgents?)"),
        ("gitgate.agnt.coder.resume", "there is no setting gitgate.agnt.coder.resume (did you mean agent?)"),
        ("gitgate.agent", "there is no setting gitgate.agent"),
        ("gitgate.leaseTerm.x", "there is no setting gitgate.leaseTerm.x"),
    ],
)
def test_a_misspelt_setting_of_git_is_named(cli: Command, repo: Clone, key: str, words: str) -> None:
    """Once in each call, on standard error; the verb does its work."""
    repo.git("config", key, "3")
    said = cli.quick("list", code=0).err
    assert said.count(words) == 1
    assert words in cli.quick("doctor", code=1).out


def test_settings_with_names_of_ones_own_are_known(cli: Command, repo: Clone) -> None:
    """Agents and templates have sections."""
    repo.git("config", "gitgate.agent.my.own.resume", "x")
    repo.git("config", "gitgate.template.lgtm", "approve")
    assert "there is no setting" not in cli.quick("list", code=0).err


def test_a_part_of_the_file_that_nobody_reads_is_named(cli: Command, repo: Clone) -> None:
    """By a verb that reads the file; its settings count nevertheless."""
    (repo.path / ".gitgate.yml").write_text("polcy: {}\nsettings: {priority: high}\n", encoding="utf-8")
    asked = cli.quick("ask", "Which?", "--json", code=0)
    assert asked.json["priority"] == "high"
    assert asked.err.count("line 1: nobody reads polcy (did you mean policy?)") == 1
    assert "call it policy" in cli.quick("doctor", code=1).out


def test_a_misspelt_setting_of_the_file_is_named(cli: Command, repo: Clone) -> None:
    """With the one that was meant."""
    (repo.path / ".gitgate.yml").write_text("settings: {priorty: high}\n", encoding="utf-8")
    assert "did you mean priority?" in cli.quick("ask", "Which?", code=0).err


def test_a_remote_that_does_not_answer_fails_the_check_up(cli: Command, repo: Clone) -> None:
    """Gates would go nowhere; the command to try is named."""
    repo.git("remote", "add", "origin", str(repo.path / "nowhere.git"))
    said = cli.quick("doctor", code=1).out
    assert "gates go to origin, which cannot be reached" in said
    assert "git ls-remote origin HEAD" in said


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("GITGATE_PRIORTY", "nothing reads GITGATE_PRIORTY (did you mean GITGATE_PRIORITY?)"),
        ("GITGATE_RESUME_HERE", "GITGATE_RESUME_HERE does not count: only git's configuration sets that"),
    ],
)
def test_a_variable_that_nothing_reads_is_named(cli: Command, repo: Clone, name: str, words: str) -> None:
    """One that is all but ours, or that sets what no environment may; a program's own stays unnamed."""
    env = {name: "1", "GITGATE_OF_MY_OWN": "1", "GITGATE_AGENT_NAME": "x"}
    said = cli.quick("list", env=env, code=0).err
    assert said.count("GITGATE_") == said.count(words) * words.count("GITGATE_") > 0
    assert f"unset {name}" in cli.quick("doctor", env=env, code=1).out


def test_a_value_of_the_environment_is_told_of_by_its_name(cli: Command, repo: Clone) -> None:
    """No setting of git's would mend it."""
    said = cli.quick("ask", "Which?", env={"GITGATE_PRIORITY": "hihg"}, code=2).err
    assert said == (
        "git gate: GITGATE_PRIORITY is 'hihg'; expected one of urgent, high, normal, low\n"
        "  unset GITGATE_PRIORITY\n"
    )


def test_an_agents_misspelt_setting_is_named(cli: Command, repo: Clone) -> None:
    """By its last word; those that are ones are not."""
    repo.git("config", "gitgate.agent.x.resmue", "run-x")
    repo.git("config", "gitgate.agent.x.resume", "run-x")
    repo.git("config", "gitgate.agent.x.y.projectSettings", "true")
    said = cli.quick("list", code=0).err
    assert said.count("there is no setting") == 1
    assert "gitgate.agent.x.resmue (did you mean resume?)" in said


def test_the_users_own_file_is_held_to_the_same(cli: Command, repo: Clone, home: Path) -> None:
    """A part that nobody reads is named; a wrong setting is refused with its line, and the check-up goes on."""
    file = home / ".config" / "gitgate" / "config.yml"
    file.parent.mkdir(parents=True)
    file.write_text("setting: {priority: high}\n", encoding="utf-8")
    assert "nobody reads setting (did you mean settings?)" in cli.quick("ask", "Which?", code=0).err
    file.write_text("\nsettings: {priorty: high}\n", encoding="utf-8")
    said = cli.quick("ask", "Which?", code=2).err
    assert "did you mean priority?" in said
    assert f"mend line 2 of {file}" in said
    looked = cli.quick("doctor", code=1).out
    assert looked.count("did you mean priority?") == 1
    assert "remote" in looked


def test_what_a_flow_tells_its_agents_is_no_slip() -> None:
    """A variable that we set ourselves is not taken for a misspelt setting."""
    assert {askers.RUN, askers.STEP, askers.TERMS} <= OTHER_VARIABLES


def test_a_setting_that_is_gone_is_named_with_what_replaces_it(cli: Command, repo: Clone) -> None:
    """It does nothing, in git's configuration, in the environment and in the file; no other setting there is lost with it."""
    repo.git("config", "gitgate.deskKeys", "approve=y")
    repo.git("config", "gitgate.notify.team.detail", "diff")
    repo.write(".gitgate.yml", "settings:\n  editor: vi\n  priority: high\n")
    done = cli.quick("doctor", "--json")
    found = {one["name"]: one for one in done.json["findings"]}
    assert "counts no more: the keys of `git gate desk` are fixed" in found["gitgate.deskkeys"]["words"]
    assert found["gitgate.deskkeys"]["mend"] == "take it away: git config --unset-all gitgate.deskkeys"
    assert "counts no more: people are told the title" in found["gitgate.notify.team.detail"]["words"]
    gate = cli.quick("ask", "Which?", "-q", code=0)
    assert "line 2: editor counts no more: VISUAL" in gate.err
    assert cli.quick("show", gate.line, "--json", code=0).json["priority"] == "high"
