"""Setting a clone up, looking at it, and taking it all back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

SPEC = "+refs/hitl/open/*:refs/gitgate/origin/open/*"


@pytest.fixture
def ann(bare: Clone, clone_of: Callable[..., Clone], monkeypatch: pytest.MonkeyPatch) -> Clone:
    clone = clone_of(bare, "ann")
    monkeypatch.chdir(clone.path)
    return clone


def config(clone: Clone) -> str:
    return (clone.path / ".git/config").read_text()


def findings(cli: Command, code: int = 0) -> dict[str, str]:
    found = cli.quick("doctor", "--json", code=code).json["findings"]
    return {one["name"]: one["state"] for one in found}


def test_it_says_what_it_permits(ann: Clone, cli: Command) -> None:
    """Publishing work and starting agents are consented to in plain words."""
    said = cli.quick("init", code=0).err
    assert "unpublished commits, changed and untracked files" in said
    assert "starts the agent again on this machine" in said
    assert ann.git("config", "gitgate.publishWork") == "true"
    assert SPEC in ann.git("config", "--get-all", "remote.origin.fetch")


def test_its_lines_fit_a_terminal(ann: Clone, pty_cli: Callable[..., Terminal]) -> None:
    """Broken between words, and what goes on stands below the words."""
    said = pty_cli("init", columns=60, cwd=ann.path).finish(code=0).splitlines()
    assert max(map(len, said)) <= 60
    assert any(line.startswith(" " * 11) for line in said)
    assert "done       hook pre-receive: a push that would change or" in said


def test_consent_can_be_withheld_and_withdrawn(ann: Clone, cli: Command) -> None:
    """Each by its own flag, at any later init too."""
    cli.quick("init", code=0)
    said = cli.quick("init", "--no-publish-work", "--no-resume", code=0).err
    assert "stays in this clone" in said
    assert ann.git("config", "gitgate.publishWork") == "false"
    assert ann.git("config", "gitgate.resumeHere") == "false"


def test_a_no_stands_until_it_is_taken_back(cli: Command, repo: Clone) -> None:
    """Running it again, for another part or an update, permits nothing that was refused."""
    cli.quick("init", "--no-publish-work", "--no-resume", code=0)
    again = cli.quick("init", "--agents", code=0).err
    assert "as it was  config gitgate.publishWork false" in again
    assert "as it was  config gitgate.resumeHere false" in again
    assert "done       config gitgate.resumeHere true" in cli.quick("init", "--resume", code=0).err
    assert repo.git("config", "gitgate.publishWork") == "false"
    assert repo.git("config", "gitgate.resumeHere") == "true"


def test_a_dry_run_changes_nothing(ann: Clone, cli: Command) -> None:
    """It says what would be done."""
    before = config(ann), sorted((ann.path / ".git/hooks").iterdir())
    said = cli.quick("init", "--dry-run", "--json", code=0)
    assert all(step["done"] is False for step in said.json["steps"])
    assert (config(ann), sorted((ann.path / ".git/hooks").iterdir())) == before


def test_a_second_init_finds_everything_done(ann: Clone, cli: Command) -> None:
    """Nothing is added twice."""
    cli.quick("init", code=0)
    before = config(ann)
    said = cli.quick("init", code=0).err
    assert config(ann) == before
    assert "done  " not in said.replace("as it was", "")


def test_an_old_hook_is_brought_up_to_date(ann: Clone, cli: Command) -> None:
    """Recognised by its mark, replaced, and not chained to itself."""
    cli.quick("init", code=0)
    hook = ann.path / ".git/hooks/post-receive"
    current = hook.read_text()
    hook.write_text(current.replace("gitgate.cli", "elsewhere.cli"))
    assert findings(cli, code=1)["hook post-receive"] == "wrong"
    cli.quick("init", code=0)
    assert hook.read_text() == current
    assert not hook.with_name("post-receive.before-git-gate").exists()


def test_removing_leaves_nothing_of_it(ann: Clone, cli: Command) -> None:
    """Settings, refspec and hooks are as before; gates stay."""
    before = config(ann)
    cli.quick("init", code=0)
    gate = cli.quick("ask", "Which?", code=0).line
    cli.quick("init", "--remove", code=0)
    assert [line for line in config(ann).splitlines() if line != "[gitgate]"] == before.splitlines()
    assert not (ann.path / ".git/hooks/post-receive").exists()
    assert f"refs/hitl/open/{gate}" in ann.refs()


def test_removing_tells_what_it_undid(ann: Clone, cli: Command) -> None:
    """Of what was never there nothing is said to have been taken away."""
    hook = ann.path / ".git/hooks/post-receive"
    hook.write_text("#!/bin/sh\n", encoding="utf-8")
    hook.chmod(0o755)
    cli.quick("init", code=0)
    trial = cli.quick("init", "--remove", "--dry-run", code=0).err
    assert "to undo    hook pre-receive: taken away\n" in trial
    done = cli.quick("init", "--remove", code=0).err
    assert "undone     hook post-receive: taken away; what was there before is back\n" in done
    assert "git gate init" in done
    assert all(words not in done for words in ("AGENTS.md", ".claude", "as it was"))
    assert cli.quick("init", "--remove", code=0).err == "there is nothing of init to undo here\n"


def test_hooks_shared_with_others_are_not_touched(ann: Clone, cli: Command, tmp_path: Path) -> None:
    """Where core.hooksPath leads elsewhere, it says what to call from there."""
    ann.git("config", "core.hooksPath", str(tmp_path / "shared"))
    said = cli.quick("init", code=0)
    assert "git gate hook post-receive" in said.err
    assert not (tmp_path / "shared").exists()
    assert findings(cli)["hooks"] == "missing"


def test_a_server_says_that_it_is_one(bare: Clone, ann: Clone, cli: Command) -> None:
    """`init` in a bare repository asks for --server, and --server in a clone is refused."""
    assert "--server" in cli.quick("init", cwd=bare.path, code=2).err
    cli.quick("init", "--server", cwd=ann.path, code=2)
    cli.quick("init", "--server", cwd=bare.path, code=0)
    assert bare.git("config", "gitgate.server") == "true"


def test_an_agent_does_not_consent(ann: Clone, cli: Command) -> None:
    """Consent is a person's."""
    cli.quick("init", env={"CLAUDECODE": "1"}, code=4)


def test_the_doctor_names_what_mends_it(ann: Clone, cli: Command) -> None:
    """Before init it misses things, and says what to type; after it all is good."""
    found = cli.quick("doctor", code=0)
    assert "git gate init" in found.out
    cli.quick("init", code=0)
    found_then = findings(cli)
    del found_then["manual"]  # that is the machine's: it may have no `man`
    assert set(found_then.values()) == {"good"}


def test_the_doctor_knows_a_server_and_an_agents_program(bare: Clone, cli: Command) -> None:
    """A bare repository without a remote is to be set up as a server; what is to be installed is the program, not its name here."""
    bare.git("config", "gitgate.agent.mine.resume", "no-such-agent --continue {session}")
    found = cli.quick("doctor", cwd=bare.path, code=0).out
    assert "gates stay here: there is no remote\n      git gate init --server" in found
    assert "no-such-agent is not on PATH\n      install no-such-agent" in found


@pytest.mark.slow
def test_the_doctor_sees_what_hands_out_no_answer(bare: Clone, cli: Command) -> None:
    """On a server whose answers go to a program: without one, with one that is not there, and with one."""
    cli.quick("init", "--server", cwd=bare.path, code=0)
    bare.git("config", "gitgate.runner", "command")
    for program, said in (
        ("", "no program is set that hands out answers"),
        ("/nowhere/job x", "/nowhere/job is not there, or may not be started"),
    ):
        if program:
            bare.git("config", "gitgate.runnerCommand", program)
        found = cli.quick("doctor", cwd=bare.path, code=1).out
        assert (said in found, "git config gitgate.runnerAddress" in found) == (True, True)
        assert "starts its agent on this machine" not in found
    bare.git("config", "gitgate.runnerCommand", "/bin/true")
    bare.git("config", "gitgate.runnerAddress", "ssh://git@git.example.org/srv/project.git")
    found = cli.quick("doctor", cwd=bare.path, code=0).out
    assert "answers are handed out (gitgate.runner command)" in found
    assert "runner address" not in found


def test_the_doctor_refuses_mirrors(ann: Clone, cli: Command) -> None:
    """A mirror clone overwrites gates with every fetch, and a push mirror deletes others' with every push."""
    ann.git("config", "remote.origin.mirror", "true")
    assert findings(cli, code=1)["remote"] == "wrong"
    ann.git("config", "--unset", "remote.origin.mirror")
    ann.git("config", "remote.origin.fetch", "+refs/*:refs/*")
    assert findings(cli, code=1)["remote"] == "wrong"


def test_the_doctor_sees_wrong_settings(ann: Clone, cli: Command) -> None:
    """A setting that nobody can read is named."""
    ann.git("config", "gitgate.maxAttempts", "many")
    assert findings(cli, code=1)["gitgate.maxAttempts"] == "wrong"
