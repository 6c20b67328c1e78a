"""What git gate keeps on a machine, for all of a person's repositories, and what it puts into one's hooks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gitgate.context import Desk, earlier_presences, is_agent, machine, presence_file
from gitgate.context.machine import slot
from gitgate.errors import Conflict, Failure, Usage
from gitgate.gates import agency
from gitgate.gates.agency import (
    agent_settings,
    cannot_join,
    cannot_start,
    configured,
    current_session,
    foretold,
    said_of_push,
)
from gitgate.gates.recording import reload
from gitgate.setup import workflows
from gitgate.setup.managed import Step
from support.resuming import Seat
from support.testbed.command import COMMAND
from support.testbed.repositories import Clone

# repositories and slots


def test_repositories_are_listed_while_they_are_there(tmp_path: Path) -> None:
    """The one that was set up last is last, each stands there once, and those that are gone are left out."""
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    places = [tmp_path / name for name in ("one", "two")]
    for place in places:
        place.mkdir()
        machine.register(env, place)
    machine.register(env, places[0])
    assert machine.read_registry(env) == [places[1], places[0]]
    places[1].rmdir()
    assert machine.repositories(env) == [places[0]]
    machine.unregister(env, places[0])
    assert machine.repositories(env) == []


@pytest.mark.parametrize("env", [{}, {"HOME": ""}])
def test_who_has_no_home_has_no_list(env: dict[str, str], tmp_path: Path) -> None:
    """A service account without one is no error: nothing is kept, and as many agents run as are wanted."""
    machine.register(env, tmp_path)
    assert machine.read_registry(env) == []
    with slot(env, 1) as first, slot(env, 1) as second, slot(env, 0) as none:
        assert (first, second, none) == (True, True, False)


def test_as_many_agents_as_there_are_slots(tmp_path: Path) -> None:
    """One that ends makes room."""
    env = {"HOME": str(tmp_path)}
    with slot(env, 2) as first:
        with slot(env, 2) as second, slot(env, 2) as third:
            assert (first, second, third) == (True, True, False)
        with slot(env, 2) as again:
            assert again


def test_a_system_without_such_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every start is let through, and the list is kept all the same."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    env = {"HOME": str(tmp_path)}
    with slot(env, 1) as first, slot(env, 1) as second:
        assert first
        assert second
    machine.register(env, tmp_path)
    assert machine.repositories(env) == [tmp_path]


# hooks


def test_two_hooks_of_others(alone: Seat) -> None:
    """Neither is overwritten: a person decides which of them is needed."""
    folder = alone.clone.path / ".git/hooks"
    for name in ("post-receive", "post-receive.before-git-gate"):
        alone.clone.write(f".git/hooks/{name}", f"#!/bin/sh\n# {name}\n", executable=True)
    with pytest.raises(Conflict, match="two foreign hooks"):
        agency.install(folder, "post-receive")
    agency.remove(folder, "post-receive")
    assert (folder / "post-receive").read_text() == "#!/bin/sh\n# post-receive\n"
    assert (folder / "post-receive.before-git-gate").exists()


def test_an_installation_that_lost_its_shims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How to get them back is said."""
    monkeypatch.setattr(agency, "PACKAGE", tmp_path / "package")
    with pytest.raises(Failure) as broken:
        agency.shim("post-receive")
    assert broken.value.hint == "in a clone of git gate's repository: pipx install --force '.[forms]'"


# workflows


def github_steps(desk: Desk) -> list[Step]:
    """The steps that write GitHub's workflows."""
    return [part.write() for part in workflows.github_part(desk)]


def test_workflows_are_pinned_to_a_commit(installed: Callable[[str], None], alone: Seat) -> None:
    """A branch or a tag can be moved; where nothing says which commit, that is asked for."""
    installed("{}")
    alone.clone.git("config", "gitgate.workflows", "team/git-gate@v1")
    with pytest.raises(Usage, match="40 characters") as refused:
        github_steps(alone.desk)
    assert "can be moved" in refused.value.hint
    alone.clone.git("config", "--unset", "gitgate.workflows")
    with pytest.raises(Failure, match="no commit to pin") as unknown:
        github_steps(alone.desk)
    assert "git config gitgate.workflows" in unknown.value.hint


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """An installation of this package, with what pip noted of where it came from."""

    def note(said: str) -> None:
        info = tmp_path / "site/git_gate-9.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: git-gate\nVersion: 9\n")
        (info / "direct_url.json").write_text(said)
        monkeypatch.syspath_prepend(str(tmp_path / "site"))

    return note


HOSTED = "https://github.com/team/git-gate.git"


def test_workflows_come_from_where_git_gate_came_from(installed: Callable[[str], None], alone: Seat) -> None:
    """As pip noted it, repository and commit, in every file that is written."""
    commit = "b2" * 20
    installed(json.dumps({"url": HOSTED, "vcs_info": {"vcs": "git", "commit_id": commit}}))
    steps = github_steps(alone.desk)
    assert [step.done for step in steps] == [False, False]
    for step in steps:
        step.take()
    for name in workflows.NAMES:
        text = (alone.clone.path / ".github/workflows" / name).read_text()
        assert "uses: team/git-gate/.github/workflows/" in text
        assert f"@{commit}" in text
    assert all(step.done for step in github_steps(alone.desk))


@pytest.mark.parametrize(
    "said",
    [
        json.dumps({"url": HOSTED, "vcs_info": {"commit_id": "v1"}}),
        json.dumps({"url": "file:///srv/team/git-gate", "vcs_info": {"commit_id": "b2" * 20}}),
        json.dumps({"url": HOSTED}),
        "not json",
        "{}",
    ],
)
def test_an_installation_that_names_no_commit_on_github(installed: Callable[[str], None], said: str) -> None:
    """Nothing is guessed."""
    installed(said)
    assert workflows.installed_from(os.environ) is None


def test_a_build_names_its_commit(tmp_path: Path) -> None:
    """From an index pip notes nothing; what was built without a commit, or without an address, names none."""
    assert workflows.built_from(tmp_path, "team/git-gate") is None
    (tmp_path / "commit").write_text("b2" * 20 + "\n")
    assert workflows.built_from(tmp_path, "OWNER/git-gate") is None
    found = workflows.built_from(tmp_path, "team/git-gate")
    assert found == workflows.Source("team/git-gate", "b2" * 20, noted=False)


def test_a_checkout_names_what_its_origin_has(
    installed: Callable[[str], None], clone_of: Callable[..., Clone], bare: Clone
) -> None:
    """Its commit, once the origin has it; a checkout of no server of GitHub's, or without git, names none."""
    here = clone_of(bare, "checkout of ours")
    installed(json.dumps({"url": here.path.as_uri(), "dir_info": {"editable": True}}))
    assert workflows.installed_from(os.environ) is None
    here.git("remote", "set-url", "origin", HOSTED)
    commit = here.git("rev-parse", "HEAD")
    assert workflows.installed_from(os.environ) == workflows.Source("team/git-gate", commit)
    here.commit("mine alone")
    with pytest.raises(Failure, match="on no branch of its origin") as unpushed:
        workflows.installed_from(os.environ)
    assert unpushed.value.hint == f"git -C {here.path} push"
    installed(json.dumps({"url": (here.path / ".git").as_uri(), "dir_info": {"editable": True}}))
    assert workflows.installed_from(os.environ) is None


def test_a_copy_of_a_clone_names_the_commit_that_was_built(
    installed: Callable[[str], None],
    clone_of: Callable[..., Clone],
    bare: Clone,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As `pipx install .` leaves it: the build's commit, however far the clone went since; without one nothing is guessed."""
    here, texts = clone_of(bare, "clone of ours"), tmp_path / "texts"
    texts.mkdir()
    monkeypatch.setattr(workflows, "TEXTS", texts)
    here.git("remote", "set-url", "origin", HOSTED)
    commit = here.git("rev-parse", "HEAD")
    here.commit("later")
    installed(json.dumps({"url": here.path.as_uri(), "dir_info": {}}))
    assert workflows.installed_from(os.environ) is None
    (texts / "commit").write_text(commit + "\n")
    assert workflows.installed_from(os.environ) == workflows.Source("team/git-gate", commit)
    (texts / "commit").write_text(here.git("rev-parse", "HEAD") + "\n")
    with pytest.raises(Failure, match="on no branch of its origin"):
        workflows.installed_from(os.environ)


# agents


@pytest.mark.parametrize("value", ["'open", "[1, 2]", '["open"'])
def test_a_command_that_is_no_list_of_words(alone: Seat, value: str) -> None:
    """It is named with how to write one."""
    alone.clone.git("config", "--global", "gitgate.agent.scripted.resume", value)
    with pytest.raises(Usage, match="is not a list of words") as refused:
        agent_settings(alone.desk, "scripted")
    assert refused.value.hint.startswith("git config gitgate.agent.scripted.resume")


def test_an_agent_s_settings(alone: Seat) -> None:
    """What its input is is one of three things; no command means that it cannot be started, and says which to set."""

    def put(name: str, value: str) -> None:
        alone.clone.git("config", "--global", f"gitgate.agent.scripted.{name}", value)

    assert configured(alone.desk, "two\nlines") == {}
    assert "no command is set that starts 'scripted'" in cannot_start(alone.desk, "scripted")
    assert "no command is set that opens a conversation" in cannot_join(alone.desk, "scripted")
    put("resume", "{program} --now")
    assert cannot_start(alone.desk, "scripted") == ""
    put("join", "sh")
    assert cannot_join(alone.desk, "scripted") == ""
    put("stdin", "everything")
    with pytest.raises(Usage, match="expected one of answer, prompt, none"):
        agent_settings(alone.desk, "scripted")


def test_a_repository_s_own_command_stands_in_place_of_the_person_s(alone: Seat) -> None:
    """The two are not one list of words; several values in one place are."""
    key = "gitgate.agent.scripted.resume"
    alone.clone.git("config", "--global", key, "theirs --flag")
    assert agent_settings(alone.desk, "scripted").resume_template == ("theirs", "--flag")
    alone.clone.git("config", key, "ours --now")
    assert agent_settings(alone.desk, "scripted").resume_template == ("ours", "--now")
    alone.clone.git("config", "--add", key, "two words")
    assert agent_settings(alone.desk, "scripted").resume_template == ("ours --now", "two words")


def test_a_program_that_is_started_again_needs_no_conversation(alone: Seat) -> None:
    """One is made up for it, another each time; a name that is set up nowhere is only a name."""
    assert current_session(alone.desk, "scripted", None) is None
    alone.clone.git("config", "--global", "gitgate.agent.scripted.resume", "sh")
    first, second = (current_session(alone.desk, "scripted", None) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.agent == "scripted"
    assert first.id != second.id


def test_whoever_pushes_hears_why_an_agent_does_not_go_on(bare: Clone) -> None:
    """A broken setting of the server's is one reason, and what was said is understood at the other end."""
    bare.git("config", "gitgate.resumeHere", "true")
    bare.git("config", "gitgate.server", "true")
    bare.write("hooks/post-receive", "#!/bin/sh\n", executable=True)
    bare.git("config", "--global", "gitgate.agent.scripted.resume", '["')
    with Seat(bare) as server:
        gate = server.answer(server.ask())
        (line,) = foretold(server.desk, [gate], [])
    assert "is not a list of words" in line
    assert "is not a list of words" in str(said_of_push([line], gate.id))
    assert said_of_push([line], "2222222222") is None


# processes


def test_processes_that_are_gone() -> None:
    """Nothing is known of them, and that is no error."""
    gone = 2**22 + 1
    assert (machine.started(gone), is_agent(gone)) == ("", False)
    assert machine.started(os.getpid()) != ""


def test_who_asked_through_many_shells(alone: Seat) -> None:
    """Shells are messengers; where there are only messengers, it is just a process."""
    command = f"'{COMMAND}' ask Which? -q"
    for number in range(10):
        place = alone.clone.write(f"shell{number}", f"{command}\nexit $?\n")
        command = f"sh '{place}'"
    how = ["sh", "-c", f"{command}; exit $?"]
    done = subprocess.run(how, cwd=alone.clone.path, capture_output=True, text=True, check=True)
    desk = alone.desk
    assert reload(desk, done.stdout.strip()).opened.asked.agent.startswith("agent-process-")


def test_what_is_remembered_of_askers(alone: Seat) -> None:
    """A line that was cut short is passed over, and takes nothing along of what is written after it."""
    gate = alone.ask()
    place = presence_file(alone.desk)
    whole = place.read_bytes()
    for kept in (0, 1, len(whole) // 2, len(whole) - 2):
        place.write_bytes(whole + whole.replace(gate.id.encode(), b"2222222222")[:kept])
        assert machine.find_presence(alone.desk, "2222222222") is None
        other = alone.ask()
        assert {known.gate for known in machine.everyone_here(alone.desk)} == {gate.id, other.id}
        assert machine.find_presence(alone.desk, other.id) != machine.find_presence(alone.desk, gate.id)


def test_what_earlier_versions_remembered_of_askers(alone: Seat) -> None:
    """They kept a file for each gate. Those are read; what is no note is passed over, and what was written later counts."""
    gate, other = alone.ask(), alone.ask()
    first, second = presence_file(alone.desk).read_text().splitlines()
    folder = earlier_presences(alone.desk)
    folder.mkdir()
    (folder / gate.id).write_text(first)
    (folder / other.id).write_text(second.replace("session-1", "session-0"))
    (folder / "notes").write_text("x")
    (folder / "2222222222").write_text('{"gate": "2222222222"')
    presence_file(alone.desk).write_text(f"{second}\n")
    assert {known.gate for known in machine.everyone_here(alone.desk)} == {gate.id, other.id}
    for each in (gate, other):
        found = machine.find_presence(alone.desk, each.id)
        assert found is not None
        assert (found.gate, found.session) == (each.id, "session-1")


def test_who_says_the_form_of_a_note_is_taken_for_none(alone: Seat) -> None:
    """A folder's name may be anything."""
    gate = alone.ask()
    known = machine.find_presence(alone.desk, gate.id)
    assert known is not None
    machine.note_presence(alone.desk, replace(known, directory='/{"gate": "2222222222", "agent": "x"}'))
    assert machine.find_presence(alone.desk, "2222222222") is None
    assert machine.find_presence(alone.desk, gate.id) != known


NOTING = """
import os, sys
from dataclasses import replace
from pathlib import Path
from gitgate.context import machine
from gitgate.context import open_desk
desk = open_desk(Path.cwd(), dict(os.environ))
known = next(machine.everyone_here(desk))
for number in range(300):
    machine.note_presence(desk, replace(known, gate=f"{sys.argv[1]}{number:09}", directory="/" * 500))
    os.write(1, b".")
"""


@pytest.mark.slow
def test_nothing_is_lost_of_many_who_ask_at_once(alone: Seat) -> None:
    """Also where some are killed in the middle: of each, all that it said it had written down is there."""
    gate = alone.ask()
    asking = [
        subprocess.Popen([sys.executable, "-c", NOTING, name], cwd=alone.clone.path, stdout=subprocess.PIPE)
        for name in "bcdf"
    ]
    for name, each in zip("bcdf", asking, strict=True):
        assert each.stdout is not None
        said = each.stdout.read(20)
        each.kill()
        said += each.communicate()[0]
        known = {present.gate for present in machine.everyone_here(alone.desk)}
        assert {f"{name}{number:09}" for number in range(len(said))} <= known
    after = alone.ask()
    assert {gate.id, after.id} <= {present.gate for present in machine.everyone_here(alone.desk)}
