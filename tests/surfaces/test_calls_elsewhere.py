"""Agent hooks: a call that was approved for one directory, and an agent that goes on in another. Only that one is changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.testbed.command import Command
from support.testbed.repositories import Clone

from .conftest import Agent, new_call

DECISION, REASON, TOLD, UPDATED = (
    "permissionDecision",
    "permissionDecisionReason",
    "additionalContext",
    "updatedInput",
)
RULES = """approvals:
  - Write(migrations/**)
  - Write(/**)
  - NotebookEdit(**)
  - Bash(touch*)
  - mcp__files__*
"""


@pytest.fixture
def here(agent: Agent, home: Path) -> Agent:
    agent.clone.commit("rules", **{".gitgate.yml": RULES, "sub/x": "", "migrations/0.sql": ""})
    agent.env["HOME"] = str(home)
    return agent


@pytest.fixture
def elsewhere(here: Agent, tmp_path: Path) -> Callable[..., Agent]:
    """Go on with a gate in another working tree of the repository."""

    def go(gate: str, name: str = "elsewhere") -> Agent:
        place = tmp_path / name
        here.clone.git("worktree", "add", "-q", "--detach", str(place))
        return Agent(Clone(place), env={**here.env, "GITGATE_GATE": gate})

    return go


def approved(here: Agent, cli: Command, tool: str, **given: Any) -> tuple[str, str]:
    """A call that waited and was approved: its id and its gate."""
    call = new_call()
    assert here.before(tool, call, **given)[DECISION] == "defer"
    (gate,) = here.gates()
    cli.quick("respond", gate, "--approve", "--no-resume", cwd=here.clone.path, code=0)
    return call, gate


def said_of(there: Agent, gate: str) -> str:
    """What was noted for whoever records what came of it."""
    folder = next(there.clone.repository.common_dir.glob("gitgate*/let-through"))
    note = folder / f"{gate}.told"
    return note.read_text() if note.exists() else ""


def linked(here: Agent, path: str) -> str:
    """The same file through a link to the repository."""
    link = here.clone.path.parent / "link"
    link.symlink_to(here.clone.path)
    return f"{link}/{path}"


SPELLINGS: dict[str, Callable[[Agent], str]] = {
    "absolute": lambda here: f"{here.clone.path}/migrations/1.sql",
    "relative": lambda _: "migrations/1.sql",
    "by a detour": lambda here: f"{here.clone.path}/sub/../migrations//1.sql",
    "through a link": lambda here: linked(here, "migrations/1.sql"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_file_is_the_same_file_in_the_new_place(
    here: Agent, elsewhere: Callable[..., Agent], cli: Command, spelling: str
) -> None:
    """However it was spelt; the agent is told, the person before they answer, and the record may say it afterwards."""
    given = {"file_path": SPELLINGS[spelling](here), "content": "create;\n"}
    call, gate = approved(here, cli, "Write", **given)
    context = cli.quick("show", gate, "--json", cwd=here.clone.path, code=0).json["context"]
    assert "in another place, the call is made for migrations/1.sql there" in context
    there = elsewhere(gate)
    said = there.before("Write", call, **given)
    wanted = str(there.clone.path / "migrations/1.sql")
    assert (said[DECISION], said[UPDATED]) == ("allow", {**given, "file_path": wanted})
    assert wanted in said[REASON]
    assert wanted in said[TOLD]
    assert wanted in said_of(there, gate)
    again = there.before("Write", call, **said[UPDATED])
    assert (again[DECISION], again.get(UPDATED, said[UPDATED])) == ("allow", said[UPDATED])


def test_a_notebook_too(here: Agent, elsewhere: Callable[..., Agent], cli: Command) -> None:
    """By the field that names it; what else stands in the call stays, also where it names the old place."""
    given = {"notebook_path": f"{here.clone.path}/a.ipynb", "new_source": f"open('{here.clone.path}/x')"}
    call, gate = approved(here, cli, "NotebookEdit", **given)
    there = elsewhere(gate)
    said = there.before("NotebookEdit", call, **given)
    assert said[UPDATED] == {**given, "notebook_path": str(there.clone.path / "a.ipynb")}


def test_where_it_was_asked_it_is_made_as_it_was(here: Agent, cli: Command) -> None:
    """Nothing is changed, and nothing to be told."""
    given = {"file_path": f"{here.clone.path}/migrations/1.sql", "content": "x"}
    call, gate = approved(here, cli, "Write", **given)
    said = here.before("Write", call, **given)
    assert (said[DECISION], UPDATED in said, said_of(here, gate)) == ("allow", False, "")


def refused(there: Agent, gate: str, tool: str, call: str, **given: Any) -> str:
    said = there.before(tool, call, **given)
    assert said[DECISION] == "deny", said
    assert "it will be asked again" in said[REASON]
    assert "was not made here" in said_of(there, gate)
    return str(said[REASON])


OUTSIDE: dict[str, Callable[[Agent], str]] = {
    "a look-alike": lambda here: f"{here.clone.path}2/migrations/1.sql",
    "beside it": lambda here: f"{here.clone.path}/../other/1.sql",
    "the machine's": lambda here: f"{here.clone.path.parent}/etc/passwd",
}


@pytest.mark.parametrize("where", OUTSIDE)
def test_a_file_outside_is_not_written_from_elsewhere(
    here: Agent, elsewhere: Callable[..., Agent], cli: Command, where: str
) -> None:
    """Nobody can say what it is there."""
    given = {"file_path": OUTSIDE[where](here), "content": "x"}
    call, gate = approved(here, cli, "Write", **given)
    assert "not" in refused(elsewhere(gate), gate, "Write", call, **given)


def test_a_link_in_the_new_place_does_not_lead_out(
    here: Agent, elsewhere: Callable[..., Agent], cli: Command, tmp_path: Path
) -> None:
    """The work may bring a link where a folder was."""
    given = {"file_path": f"{here.clone.path}/migrations/1.sql", "content": "x"}
    call, gate = approved(here, cli, "Write", **given)
    there = elsewhere(gate)
    (there.clone.path / "migrations/0.sql").unlink()
    (there.clone.path / "migrations").rmdir()
    (there.clone.path / "migrations").symlink_to(tmp_path)
    assert "leads out" in refused(there, gate, "Write", call, **given)


COMMANDS: dict[str, Callable[[Agent], str]] = {
    "its name": lambda here: f"touch {here.clone.path}/x",
    "in quotes": lambda here: f"touch \"{here.clone.path}\"'/x'",
    "climbing out": lambda _: "touch ../x",
    "climbing out later": lambda _: "touch sub/../../x",
}


@pytest.mark.parametrize("how", COMMANDS)
def test_a_command_that_names_the_old_place_is_not_run_elsewhere(
    here: Agent, elsewhere: Callable[..., Agent], cli: Command, how: str
) -> None:
    """What it would do there nobody approved. Where it was asked it is run."""
    command = COMMANDS[how](here)
    call, gate = approved(here, cli, "Bash", command=command)
    context = cli.quick("show", gate, "--json", cwd=here.clone.path, code=0).json["context"]
    assert "the call is not made there: it names this one" in context
    assert str(here.clone.path) in refused(elsewhere(gate), gate, "Bash", call, command=command)
    assert here.before("Bash", call, command=command)[DECISION] == "allow"


@pytest.mark.parametrize("command", ["touch x", "touch sub/x", "touch a..b", "touch /repo2/x"])
def test_a_command_that_names_no_place_is_run(
    here: Agent, elsewhere: Callable[..., Agent], cli: Command, command: str
) -> None:
    """It is about where the agent is."""
    call, gate = approved(here, cli, "Bash", command=command)
    assert elsewhere(gate).before("Bash", call, command=command)[DECISION] == "allow"


def test_a_command_is_run_in_the_folder_that_it_was_approved_for(here: Agent, cli: Command) -> None:
    """One for a folder of the repository is no other one for its top, on the same machine either."""
    call = new_call()
    event = here.event("PreToolUse", tool_name="Bash", tool_use_id=call, tool_input={"command": "touch x"})
    below = {**event, "cwd": str(here.clone.path / "sub")}
    assert here.hook("pre-tool-use", below)["hookSpecificOutput"][DECISION] == "defer"
    (gate,) = here.gates()
    cli.quick("respond", gate, "--approve", "--no-resume", cwd=here.clone.path, code=0)
    assert "approved in sub" in refused(here, gate, "Bash", call, command="touch x")
    assert here.hook("pre-tool-use", below)["hookSpecificOutput"][DECISION] == "allow"


def test_a_tool_that_nobody_knows_names_the_old_place(
    here: Agent, elsewhere: Callable[..., Agent], cli: Command
) -> None:
    """What its texts mean cannot be told, so that they are not changed; it is not called."""
    given = {"source": {"uri": f"file://{here.clone.path}/x"}}
    call, gate = approved(here, cli, "mcp__files__put", **given)
    assert "names" in refused(elsewhere(gate), gate, "mcp__files__put", call, **given)


def test_another_call_is_not_let_through_as_a_moved_one(
    here: Agent, elsewhere: Callable[..., Agent], cli: Command
) -> None:
    """What was approved is held to its digest, in the new place as in the old one."""
    given = {"file_path": f"{here.clone.path}/migrations/1.sql", "content": "x"}
    call, gate = approved(here, cli, "Write", **given)
    there = elsewhere(gate)
    for changed in (
        {**given, "content": "y"},
        {**given, "file_path": str(there.clone.path / "migrations/2.sql")},
        {"file_path": str(there.clone.path / "migrations/1.sql"), "content": "y"},
    ):
        said = there.before("Write", call, **changed)
        assert (said[DECISION], "it was changed since" in said[REASON]) == ("deny", True)
    mapped = {**given, "file_path": str(there.clone.path / "migrations/1.sql")}
    assert there.before("Write", call, **mapped)[DECISION] == "allow"


def test_a_gate_of_an_earlier_version_is_kept_to_its_place(
    here: Agent, elsewhere: Callable[..., Agent], cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not say where its call was to be made: elsewhere it is not, where it was asked it is."""
    monkeypatch.setattr("gitgate.questions.calls.Placed.plain", lambda _: None)
    given = {"file_path": f"{here.clone.path}/migrations/1.sql", "content": "x"}
    call, gate = approved(here, cli, "Write", **given)
    assert "it was approved for" in refused(elsewhere(gate), gate, "Write", call, **given)
    assert here.before("Write", call, **given)[DECISION] == "allow"


def test_a_resumed_agent_leaves_the_old_place_alone(
    here: Agent, elsewhere: Callable[..., Agent], cli: Command
) -> None:
    """It has the old paths in mind; a file that it would write there is named as it is called in the new place."""
    given = {"file_path": f"{here.clone.path}/migrations/1.sql", "content": "x"}
    _, gate = approved(here, cli, "Write", **given)
    there = elsewhere(gate)
    for name in ("free.txt", "migrations/2.sql"):
        said = there.before("Write", file_path=f"{here.clone.path}/{name}", content="y")
        assert said[DECISION] == "deny"
        assert str(there.clone.path / name) in said[REASON]
    said = there.before("Edit", file_path=str(there.clone.path / "free.txt"))
    assert said[DECISION] == "defer", "a rule of the project"
