"""Looking `.gitgate.yml` over: what of it holds, what refuses everything, and what nobody reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitgate.setup.checkup import Finding, examine
from support.resuming import Seat
from support.signing import publish_policy
from support.testbed.command import Command
from support.testbed.repositories import Clone


def found(seat: Seat) -> dict[str, Finding]:
    return {one.name: one for one in examine(seat.desk)}


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("policy: {rulez: []}\n", "policy", "origin/HEAD:.gitgate.yml, line 1: policy.rulez"),
        ("policy:\n  who: [nobody]\n", "policy", "origin/HEAD:.gitgate.yml, line 2: policy.who"),
        ("approvals: Bash(x)\n", "approvals", "origin/HEAD:.gitgate.yml, line 1: approvals"),
        ("approvals:\n  - {call: Bash, timeout: 5q}\n", "approvals", "line 2: approvals[0].timeout"),
    ],
)
def test_what_refuses_everything_is_wrong(ann: Seat, bare: Clone, text: str, name: str, words: str) -> None:
    """With its place on the protected branch; in the working tree nothing need be wrong."""
    publish_policy(bare, text)
    ann.clone.git("fetch", "-q", "origin")
    one = found(ann)[name]
    assert one.state == "wrong"
    assert words in one.words
    assert "mend" in one.mend


@pytest.mark.parametrize(
    ("rule", "meant"),
    [("Bsh(x*)", "Bash"), ("Wirte(migrations/**)", "Write"), ("WebFetsh", "WebFetch")],
)
def test_a_rule_about_a_misspelt_tool(ann: Seat, bare: Clone, cli: Command, rule: str, meant: str) -> None:
    """It holds only a tool of that name, and who wrote it thinks otherwise. The rules beside it hold."""
    publish_policy(bare, f"approvals:\n  - Bash(y)\n  - {rule}\n  - {{call: {rule}, quorum: 2}}\n")
    ann.clone.git("fetch", "-q", "origin")
    wrong, again, good = (one for one in examine(ann.desk) if one.name == "approvals")
    assert (wrong.state, again.state, good.state) == ("wrong", "wrong", "good")
    assert f"line 3: {rule}: no tool is known" in wrong.words
    assert f"did you mean {meant}?" in wrong.words
    assert "line 4" in again.words
    assert good.words.startswith("3 rules of remotes/origin/HEAD:.gitgate.yml")
    said = cli.quick("policy", "check", "--json", cwd=ann.clone.path, code=0).json
    assert f"did you mean {meant}?" in said["notes"][0]


def test_rules_about_tools_that_may_be_anybodys(ann: Seat, bare: Clone, cli: Command) -> None:
    """Those of servers have any name; a pattern that fits a known tool is none that is misspelt. Others are only told."""
    known = "['mcp__db__drop', 'mcp__*', 'm*', '*', 'Notebook*', 'Web?etch', 'Skill(deploy)', 'bash(x*)']"
    publish_policy(bare, f"approvals: {known}\n")
    ann.clone.git("fetch", "-q", "origin")
    (one,) = (one for one in examine(ann.desk) if one.name == "approvals")
    assert one.state == "good"
    assert cli.quick("policy", "check", "--json", cwd=ann.clone.path, code=0).json["notes"] == []
    publish_policy(bare, "approvals: [apply_patch_of_another_program]\n")
    ann.clone.git("fetch", "-q", "origin")
    one, count = (one for one in examine(ann.desk) if one.name == "approvals")
    assert (one.state, "no tool is known" in one.words, count.state) == ("good", True, "good")


def test_a_broken_policy_fails_the_command(repo: Clone, cli: Command) -> None:
    """A script hears of it too, before an agent asks and is refused."""
    repo.write(".gitgate.yml", "policy: {rulez: []}\n")
    repo.git("add", "-A")
    repo.git("commit", "-qm", "Rules")
    assert "!!  policy: the policy is broken" in cli.quick("doctor", code=1).out
    cli.quick("ask", "Which?", code=4)


def test_what_holds_is_said(ann: Seat, bare: Clone, tmp_path: Path) -> None:
    """Where the policy is from, and that there are rules; nothing where there are neither."""
    assert not {"policy", "approvals"} & set(found(ann))
    publish_policy(bare, "policy: {quorum: 2}\napprovals: ['Bash(x)']\n")
    ann.clone.git("fetch", "-q", "origin")
    file = tmp_path / "policy.yml"
    file.write_text("policy: {require_signed: true}\n")
    ann.clone.git("config", "gitgate.policyFile", str(file))
    said = [one for one in examine(ann.desk) if one.name in ("policy", "approvals")]
    assert {one.state for one in said} == {"good"}
    assert ["origin/HEAD:.gitgate.yml" in one.words for one in said] == [True, False, True]
    assert str(file) in said[1].words


@pytest.mark.parametrize(
    "text", ["", "\n", "# settings:\n#   timeout: 2h\n# policy: {who: [ann]}\n# approvals: [Bash]\n"]
)
def test_comments_alone_are_no_settings_and_no_policy(repo: Clone, cli: Command, text: str) -> None:
    """Neither said nor refused anywhere, in the working tree and on the protected branch."""
    repo.write(".gitgate.yml", text)
    repo.git("add", "-A")
    repo.git("commit", "-qm", "Comments")
    said = cli.quick("doctor", code=0)
    assert "!!" not in said.out
    assert ".gitgate.yml" not in said.out + said.err
    assert ".gitgate.yml" not in cli.quick("ask", "Which?", code=0).err


def test_a_broken_file_that_is_committed(repo: Clone, alone: Seat) -> None:
    """To check out what is committed would bring the same again."""
    repo.commit("Settings", **{".gitgate.yml": "settings: [\n"})
    one = found(alone)[".gitgate.yml"]
    assert one.state == "wrong"
    assert "line 1" in one.words
    assert "checkout" not in one.mend


@pytest.mark.parametrize(
    ("field", "state", "mend"),
    [
        ("policies", "wrong", "call it policy"),
        ("Policy", "wrong", "call it policy"),
        ("aprovals", "wrong", "call it approvals"),
        ("setings", "wrong", "call it settings"),
        ("colours", "wrong", "take it away"),
    ],
)
def test_a_field_that_nobody_reads_is_named(alone: Seat, field: str, state: str, mend: str) -> None:
    """With the one that was meant; as an error, since somebody may think that something is restricted."""
    alone.clone.write(".gitgate.yml", f"settings: {{push: true}}\n{field}: {{}}\n")
    one = found(alone)[".gitgate.yml"]
    assert (one.state, one.words.partition(":")[0]) == (state, ".gitgate.yml, line 2")
    assert field in one.words
    assert mend in one.mend


def test_a_field_that_nobody_reads_on_the_protected_branch(ann: Seat, bare: Clone) -> None:
    """The working tree need not have it; and what both have is named once."""
    publish_policy(bare, "policies: {quorum: 2}\n")
    ann.clone.git("fetch", "-q", "origin")
    assert "origin/HEAD:.gitgate.yml, line 1: policies" in found(ann)[".gitgate.yml"].words
    ann.clone.git("merge", "-q", "origin/main")
    assert [one.words[:12] for one in examine(ann.desk) if one.name == ".gitgate.yml"] == [".gitgate.yml"]


def test_a_setting_that_no_file_may_make(alone: Seat) -> None:
    """It is dropped, so that somebody has to be told; and it is not offered to whoever misspells one."""
    alone.clone.write(".gitgate.yml", "settings:\n  push: false\n  publishWork: true\n")
    one = found(alone)[".gitgate.yml"]
    assert one.state == "wrong"
    assert ".gitgate.yml, line 3: settings.publishWork" in one.words
    assert "git config gitgate.publishWork" in one.mend
    assert not alone.desk.settings.flag("push")
    alone.clone.write(".gitgate.yml", "settings: {timeuot: 2h}\n")
    words = found(alone)[".gitgate.yml"].words
    assert "agentTimeout" in words
    assert "publishWork" not in words
