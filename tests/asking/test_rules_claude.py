"""Rules that do not count, with the real Claude Code: the call waits, or is denied with the reason; it is made by a person's leave alone."""

from __future__ import annotations

import json

import pytest

from support.lab.model import Reply
from support.lab.office import rules

from .conftest import MakeOffice
from .test_real_claude import OVER, TERRAFORM, answer

pytestmark = [pytest.mark.claude, pytest.mark.slow]

RULE = "approvals:\n  - {call: Bash(touch applied*), to: [eve], why: it changes production}\n"
ALLOWED = ("--allowedTools", "Bash,Read,Write")


@pytest.mark.parametrize("where", ["untracked", "committed", "small letters"])
def test_its_call_waits_and_is_made_when_it_is_approved(office: MakeOffice, where: str) -> None:
    """Whatever the program was told to allow. Whom the rule of a working tree names is not asked for."""
    here = office(TERRAFORM, OVER)
    if where == "small letters":
        rules(here.clone, "approvals:\n  - bash(touch applied*)\n")
    else:
        here.clone.git("checkout", "-q", "-b", "agent")
        here.clone.write(".gitgate.yml", RULE)
        if where == "committed":
            here.clone.git("add", "-A")
            here.clone.git("commit", "-q", "-m", "rules")
    said = here.cli(
        "wrap", "--", *here.command("GO", *ALLOWED), cwd=here.clone.path, env=here.env, code=8, timeout=60
    )
    assert not (here.clone.path / "applied").exists()
    assert ("does not count yet" in said.err) == (where != "small letters")
    assert here.only()["to"] == []
    answer(here, "--approve")
    assert (here.clone.path / "applied").exists()


def test_a_misspelt_file_lets_the_agent_read_and_ask_alone(office: MakeOffice) -> None:
    """It hears why, reads a file, and asks; nothing else is done."""
    here = office(
        TERRAFORM,
        Reply("", [("Write", {"file_path": "written", "content": "x"})]),
        Reply("", [("Read", {"file_path": "README.md"})]),
        Reply("", [("Bash", {"command": "git gate ask 'Who mends the rules?'"})]),
        OVER,
    )
    here.clone.commit("readme", **{"README.md": "what it says\n"})
    rules(here.clone, RULE.replace("approvals", "aprovals"))
    said = here.cli(
        "wrap", "--", *here.command("GO", *ALLOWED), cwd=here.clone.path, env=here.env, code=8, timeout=60
    )
    assert "aprovals" in said.err
    assert not {"applied", "written"} & {one.name for one in here.clone.path.iterdir()}
    told = json.dumps(here.machine.model.requests())
    assert "call it approvals" in told
    assert "what it says" in told
    assert here.only()["questions"][0]["prompt"] == "Who mends the rules?"


def test_what_the_branch_allows_runs_and_its_neighbour_is_denied(office: MakeOffice) -> None:
    """The program is chosen by the environment; a second one of the same line is not allowed."""
    here = office(
        Reply("", [("Bash", {"command": '"$MAKER" made'})]),
        Reply("", [("Bash", {"command": '"$MAKER" second; "$OTHER" third'})]),
        OVER,
    )
    rules(here.clone, RULE + '  - allow: Bash("$MAKER" *)\n')
    env = {**here.env, "MAKER": "touch", "OTHER": "touch"}
    here.cli("wrap", "--", *here.command("GO", *ALLOWED), cwd=here.clone.path, env=env, code=0, timeout=60)
    assert {"made", "second", "third"} & {one.name for one in here.clone.path.iterdir()} == {"made"}
    assert "Write it plainly" in json.dumps(here.machine.model.requests())
