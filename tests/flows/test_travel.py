"""Flows: a run goes on where it was not begun, or by whoever acts on an answer: with what its branches did, each in its tree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.resuming import until
from support.testbed.command import Command
from support.testbed.repositories import Clone

FLOWS = """
import gitgate


@gitgate.flow
def both(prompt: str):
    said = gitgate.parallel(("coder", prompt), ("tester", prompt))
    gitgate.run("closer")
    return [one.status for one in said]
"""
# Each agent notes its start. The coder commits half of its work, asks, and commits the rest; the tester commits nothing.
AGENT = """#!/bin/sh
cat > /dev/null
echo "$1 $2" >> "$3"
git config user.name >/dev/null || git config user.email a@localhost
case "$1 $2" in
"coder start")
    echo half > half.txt; git add half.txt; git commit -qm half; echo draft > coder-draft.txt
    echo '{"status": "NEEDS_HUMAN", "reason": "Which?"}'; exit;;
"coder resume") echo rest > rest.txt; git add rest.txt; git commit -qm rest;;
tester*) echo tested > tested.txt;;
closer*) ls > closed.txt;;
esac
echo '{"status": "DONE"}'
"""
DONE_HERE = {"half.txt", "rest.txt", "coder-draft.txt", "tested.txt", "closed.txt", "draft.txt", "flows.py"}


class Agents:
    """The programs of those agents, for whichever clones, and what they noted."""

    def __init__(self, folder: Path) -> None:
        self.script, self.log = folder / "agent.sh", folder / "starts.log"
        self.script.write_text(AGENT)
        self.script.chmod(0o755)

    def known_to(self, *clones: Clone) -> None:
        for clone in clones:
            for name in ("coder", "tester", "closer"):
                for how in ("start", "resume"):
                    line = json.dumps([str(self.script), name, how, str(self.log)])
                    clone.git("config", f"gitgate.agent.{name}.{how}", line)

    @property
    def starts(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.fixture
def agents(tmp_path: Path) -> Agents:
    return Agents(tmp_path)


def shown(cli: Command, run: str, clone: Clone) -> dict[str, object]:
    found: dict[str, object] = cli("show", run, "--json", cwd=clone.path, code=0).json
    return found


@pytest.mark.slow
def test_an_answer_goes_on_in_the_runs_own_tree(repo: Clone, cli: Command, agents: Agents) -> None:
    """Not in that of the branch which asked: what the branches did is joined where the run began."""
    agents.known_to(repo)
    repo.commit(**{"flows.py": FLOWS})
    repo.write("draft.txt", "draft\n")
    cli("init", code=0)
    run = cli("run", "flows.py", "x", "--json", code=8).json["id"]
    (gate,) = cli("list", "--awaiting", "--json", code=0).json["gates"]
    assert "resuming here" in cli("respond", gate["id"], "this", code=0).err
    until(lambda: shown(cli, run, repo)["status"] == "completed", 60)
    until(lambda: shown(cli, gate["id"], repo)["state"] == "resumed", 60)
    assert {path.name for path in repo.path.iterdir()} - {".git"} >= DONE_HERE
    assert {"half", "rest"} <= set(repo.git("log", "--format=%s", "main").splitlines())
    assert sorted(agents.starts[:2]) == ["coder start", "tester start"]
    assert agents.starts[2:] == ["coder resume", "closer start"]
    assert len(repo.git("worktree", "list").splitlines()) == 1
