"""What is set under a name that nothing reads is named by every verb that reads settings, and fails the check-up."""

from __future__ import annotations

import pytest

from testbed.command import Command
from testbed.repositories import Clone


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
