"""Looking a clone over: each finding says what is wrong, and what mends it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gitgate.errors import Failure, Usage
from gitgate.exchange.syncing import sync
from gitgate.setup import checkup, parts
from gitgate.setup.checkup import Finding, examine
from gitgate.store.git.refs import OPEN
from support.resuming import Agent, Seat
from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.seal import write_global_config


def found(seat: Seat) -> dict[str, Finding]:
    return {one.name: one for one in examine(seat.desk)}


def test_a_git_that_is_too_old(alone: Seat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked which it is, and told which is needed."""
    desk = alone.desk
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "git").write_text("#!/bin/sh\necho git version 2.30.2\n")
    (folder / "git").chmod(0o755)
    desk.repo.git.env["PATH"] = str(folder)
    (one,) = checkup.git_version(desk)
    assert one.state == "wrong"
    assert "2.30.2" in one.words
    assert "install git" in one.mend


def test_nobody(alone: Seat, nobody: None) -> None:
    """Who git does not know cannot answer."""
    assert found(alone)["identity"].mend.startswith("git config --global user.name")


@pytest.mark.parametrize(
    ("value", "words"),
    [("5q", "such as 90s"), ("30m2h", "the largest first"), ("9000d", "at most ten years")],
)
def test_a_setting_that_is_no_duration(alone: Seat, value: str, words: str) -> None:
    """It is found before it is needed, and whoever needs it hears which it is."""
    alone.clone.git("config", "gitgate.timeout", value)
    one = found(alone)["gitgate.timeout"]
    assert one.state == "wrong"
    assert words in one.words
    with pytest.raises(Usage, match=f"the setting gitgate.timeout is '{value}'; expected a duration"):
        alone.ask()


def test_a_file_of_settings_that_cannot_be_read(alone: Seat) -> None:
    """It stops nobody, and is named."""
    (alone.clone.path / ".gitgate.yml").write_text("priority: [\n")
    assert found(alone)[".gitgate.yml"].state == "wrong"


@pytest.mark.parametrize("email", ["", "\temail =\n", "\temail = <>\n"])
def test_a_name_without_an_address(alone: Seat, home: Path, email: str) -> None:
    """Git commits nothing for it, and no answer is recorded for it; asking goes on, as nobody."""
    write_global_config(home, f"[user]\n\tname = Ada\n{email}")
    assert "user.email" in found(alone)["identity"].mend
    gate = alone.ask()
    assert gate.opened.asked.by == ""
    assert alone.clone.git("log", "-1", "--format=%an %ae", gate.tip) == "gitgate nobody@gitgate.invalid"
    with pytest.raises(Failure, match="does not know who you are") as refused:
        alone.answer(gate)
    assert "user.name" in refused.value.hint
    assert "user.email" in refused.value.hint


def test_an_address_that_git_takes_from_the_environment(
    alone: Seat, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As git does, where its configuration has none."""
    write_global_config(home, "[user]\n\tname = Ada\n")
    monkeypatch.setenv("EMAIL", "ada@example.org")
    answer = alone.answer(alone.ask()).answer
    assert answer is not None
    assert answer.answer.by == "Ada <ada@example.org>"
    assert "Ada <ada@example.org>'s" in found(alone)["identity"].words


def test_a_server_that_hides_what_it_is_for(bare: Clone) -> None:
    """Hidden refs cannot be pushed: gates would never arrive."""
    bare.git("config", "gitgate.server", "true")
    with Seat(bare) as server:
        assert found(server)["remote"].state == "good"
        for hidden in ("refs/hitl", "refs/hitl/open", "refs", "^refs/hitl"):
            bare.git("config", "transfer.hideRefs", hidden)
            assert found(server)["remote"].mend == "git config --unset-all transfer.hideRefs"
        bare.git("config", "transfer.hideRefs", "refs/internal")
        assert found(server)["remote"].state == "good"


def test_no_remote(alone: Seat) -> None:
    """Gates stay here, and that is said."""
    one = found(alone)["remote"]
    assert (one.state, one.mend) == ("missing", "git remote add origin URL")


def test_remotes_of_which_none_is_chosen(alone: Seat) -> None:
    """Which is meant is not guessed, and nobody is told to add another one."""
    alone.clone.git("remote", "add", "backup", "/nowhere/backup.git")
    assert found(alone)["remote"].mend == "git config gitgate.remote backup"
    alone.clone.git("remote", "add", "upstream", "/nowhere/upstream.git")
    one = found(alone)["remote"]
    assert (one.state, one.mend) == ("missing", "git config gitgate.remote NAME")
    assert "backup, upstream" in one.words
    with pytest.raises(Failure, match="none of the remotes here is chosen: backup, upstream") as refused:
        sync(alone.desk)
    assert refused.value.hint == "git config gitgate.remote NAME"
    alone.clone.git("config", "gitgate.remote", "upstream")
    assert found(alone)["remote"].words.startswith("gates go to upstream, which cannot be reached")


def test_hooks_that_are_shared_with_others(ann: Seat, tmp_path: Path) -> None:
    """Not ours to change; what calls ours from there is said."""
    ann.clone.git("config", "core.hooksPath", str(tmp_path / "shared"))
    assert "git gate hook post-receive" in found(ann)["hooks"].mend


@pytest.mark.parametrize(
    ("text", "words"),
    [("#!/bin/sh\n# git-gate hook: of before\n", "another git-gate"), ("#!/bin/sh\n", "else's")],
)
def test_a_hook_that_is_not_this_ones(ann: Seat, text: str, words: str) -> None:
    """Another version's, or somebody else's."""
    ann.clone.git("config", "gitgate.initialised", "true")
    hook = ann.clone.path / ".git/hooks/post-receive"
    hook.write_text(text)
    hook.chmod(0o755)
    one = found(ann)["hook post-receive"]
    assert one.state == "wrong"
    assert words in one.words
    assert one.mend == "git gate init"


def test_agents_that_can_be_started_and_those_that_cannot(ann: Seat, tmp_path: Path) -> None:
    """Each that is set up here, or asked here."""
    agent = Agent(tmp_path / "agent")
    agent.set_up()
    ann.clone.git("config", "gitgate.agent.other.model", "small")
    ann.clone.git("config", "gitgate.agent.gone.resume", "no-such-program-here {prompt_file}")
    states = {name: one for name, one in found(ann).items() if name.startswith("agent ")}
    assert states["agent scripted"].state == "good"
    assert states["agent other"].mend.startswith("git config gitgate.agent.other.resume")
    assert states["agent gone"].state == "missing"


def test_extras_that_are_asked_for_and_missing(ann: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Encryption that was asked for is not left out silently."""
    ann.clone.git("config", "gitgate.sessionRecipients", "age1abc")
    monkeypatch.setitem(sys.modules, "pyrage", None)
    monkeypatch.setattr(checkup, "find_spec", lambda _name: None)
    findings = found(ann)
    assert (findings["extra age"].state, findings["extra forms"].state) == ("wrong", "missing")
    assert "git-gate[age]" in findings["extra age"].mend


def test_what_was_left_behind(ann: Seat, clone_of: Callable[..., Clone]) -> None:
    """A working tree of an agent that did not come to its end."""
    from gitgate.gates.work import worktrees

    place = worktrees(ann.desk) / "left over"
    place.mkdir(parents=True)
    assert found(ann)["worktree"].mend.endswith(f"git worktree remove '{place}'")


def test_a_page_that_git_does_not_find(alone: Seat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`init` links it, a folder on MANPATH counts, and where there is no `man` that is said."""
    programs, manuals = tmp_path / "bin", tmp_path / "pages/man1"
    programs.mkdir()
    manuals.mkdir(parents=True)
    monkeypatch.setattr(parts, "EVERYWHERE", ())

    env = {"PATH": str(programs)}

    def manual() -> Finding:
        desk = alone.desk
        desk.settings = replace(desk.settings, env=env)
        (one,) = checkup.manual(desk)
        return one

    assert (manual().state, manual().mend) == ("missing", "git gate help")
    for name in ("man", "git-gate"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    assert (manual().state, manual().mend) == ("missing", "git gate init")
    env["MANPATH"] = str(tmp_path / "elsewhere")  # which stands in place of all that the PATH leads to
    assert manual().mend == "git gate help"
    (manuals / "git-gate.1.gz").touch()
    env["MANPATH"] = f":{manuals.parent}"
    assert manual().state == "good"


def test_what_blocks_a_gate_is_named(ann: Seat, bare: Clone) -> None:
    """With the gate that cannot be pushed and the command that removes it; deleted by that, nothing is found any more."""
    gate = ann.ask()
    assert "names of refs" not in found(ann)
    like = f"refs/heads/{OPEN}{gate.id}"
    bare.git("update-ref", like, "main")
    one = found(ann)["names of refs"]
    assert (one.state, one.mend) == ("wrong", f"git push origin --delete {like}")
    assert f"origin has {like}" in one.words
    assert f"gate {gate.id} is not pushed" in one.words
    ann.clone.git(*one.mend.split()[1:])
    assert "names of refs" not in found(ann)


@pytest.mark.parametrize("start", ["refs/tags/", "refs/notes/", "refs/"])
def test_other_names_that_stand_for_refs_are_named(ann: Seat, bare: Clone, start: str) -> None:
    """Of which no gate is blocked: the ref that git cannot tell from it. Many are counted."""
    bare.git("update-ref", f"{start}refs/heads/main", "main")
    one = found(ann)["names of refs"]
    assert one.state == "wrong"
    assert f"{start}refs/heads/main: git cannot tell refs/heads/main from it" in one.words
    assert "gate" not in one.words.partition("from it")[2].partition("(")[0]
    for number in range(30):
        bare.git("update-ref", f"{start}refs/x/{number}", "main")
    several = [one for one in examine(ann.desk) if one.name == "names of refs"]
    assert len(several) < 15
    assert "more of them" in several[-1].words


def test_a_server_names_what_blocks_its_gates(bare: Clone, cli: Command) -> None:
    """There the ref is deleted by itself."""
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    like = f"refs/heads/{OPEN}2222222222"
    bare.git("update-ref", like, "main")
    with Seat(bare) as there:
        one = found(there)["names of refs"]
        assert one.mend == f"git update-ref -d {like}"
        assert "gate 2222222222 is not pushed" in one.words
        bare.git(*one.mend.split()[1:])
        assert "names of refs" not in found(there)


def test_sync_and_respond_name_what_is_in_the_way(ann: Seat, bob: Seat, bare: Clone, cli: Command) -> None:
    """The gate that is blocked, the branch, and how it goes; the others' answers are there at once, this one with the next sync."""
    gates = [ann.ask(f"Which, {number}?") for number in range(2)]
    sync(bob.desk)
    like = f"refs/heads/{OPEN}{gates[0].id}"
    bare.git("update-ref", like, "main")
    mend = f"git push origin :{like}"
    said = cli.quick("respond", gates[0].id, "Postgres", cwd=bob.clone.path)
    assert like in said.err + said.out
    assert mend in said.err + said.out
    before = bare.refs(OPEN)[OPEN + gates[0].id]
    bob.answer(gates[1], push=False)
    told = cli.quick("sync", cwd=bob.clone.path)
    assert gates[0].id in told.out + told.err
    assert mend in told.out + told.err
    there = bare.refs(OPEN)
    assert (there[OPEN + gates[0].id], there[OPEN + gates[1].id]) == (before, bob.now(gates[1]).tip)
    bob.clone.git(*mend.split()[1:])
    cli.quick("sync", cwd=bob.clone.path, code=0)
    assert bare.refs(OPEN)[OPEN + gates[0].id] == bob.now(gates[0]).tip
