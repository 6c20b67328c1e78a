"""Flows: a run goes on where it was not begun, or by whoever acts on an answer: with what its branches did, each in its tree."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gitgate
from support.flowing import FlowBench
from support.resuming import until
from support.testbed.command import Command
from support.testbed.repositories import Clone

FLOWS = """
import asyncio

import gitgate


@gitgate.flow
def both(prompt: str):
    gitgate.run("drafter")
    said = gitgate.parallel(("coder", prompt), ("tester", prompt))
    gitgate.run("closer")
    return [one.status for one in said]


@gitgate.flow
def twice(prompt: str):
    gitgate.parallel(("asker", prompt), ("tester", prompt))
    return sorted(path.name for path in gitgate.workdir().glob("*.txt"))


@gitgate.flow
def raced(prompt: str):
    found = gitgate.first(
        lambda: gitgate.run("coder", prompt).status,
        lambda: gitgate.ask("Or do you know how?", wait=True).answer.text,
    )
    gitgate.run("closer")
    return found


@gitgate.flow
async def awaited(prompt: str):
    async def asked(words):
        return (await gitgate.soon(gitgate.ask, words, wait=True)).answer.text

    return await asyncio.gather(gitgate.soon(coded, prompt), asked("How is it called?"))


def coded(prompt):
    return gitgate.run("coder", prompt).status


@gitgate.flow
def afresh(number: int):
    gitgate.run("tester")
    said = gitgate.pause(f"Again after {number}?")
    if said and number < 2:
        gitgate.again(number + 1)
    return [number, bool(said)]
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
drafter*) echo draft > draft.txt;;
"asker start") echo 1 > asked.txt; echo '{"status": "NEEDS_HUMAN", "reason": "First?"}'; exit;;
"asker resume") [ -f two.txt ] || { mv asked.txt two.txt; echo '{"status": "NEEDS_HUMAN", "reason": "Second?"}'; exit; }
    echo 3 > three.txt;;
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
            for name in ("drafter", "coder", "tester", "closer", "asker"):
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
    cli("init", code=0)
    run = cli("run", "flows.py:both", "x", "--json", code=8).json["id"]
    (gate,) = cli("list", "--awaiting", "--json", code=0).json["gates"]
    assert "resuming here" in cli("respond", gate["id"], "this", code=0).err
    until(lambda: shown(cli, run, repo)["status"] == "completed", 60)
    until(lambda: shown(cli, gate["id"], repo)["state"] == "resumed", 60)
    assert {path.name for path in repo.path.iterdir()} - {".git"} >= DONE_HERE
    assert {"half", "rest"} <= set(repo.git("log", "--format=%s", "main").splitlines())
    steps: Any = shown(cli, run, repo)["steps"]
    (made,) = (step["commits"] for step in steps if step["name"] == "coder")
    assert repo.git("log", "--no-walk=unsorted", "--format=%s", *made).splitlines() == ["half", "rest"]
    assert set(made) <= set(
        repo.git("rev-list", "main").split()
    )  # as they are there, whatever was added to them
    assert f"Gate: {gate['id']}" in repo.git("log", "-1", "--format=%b", made[1])
    changed = repo.git("show", "--format=", "--name-only", made[1]).split()[0]
    (origin,) = cli("why", changed, "--json", code=0).json["lines"]
    assert (origin["commit"], origin["gate"], origin["verified"]) == (made[1], gate["id"], True)
    assert sorted(agents.starts[1:3]) == ["coder start", "tester start"]
    assert agents.starts[3:] == ["coder resume", "closer start"]
    assert len(repo.git("worktree", "list").splitlines()) == 1


@pytest.fixture
def two(
    repo: Clone, bare: Clone, clone_of: Callable[..., Clone], cli: Command, agents: Agents
) -> tuple[Clone, Clone]:
    """Two clones of a server whose hook judges what is pushed, and starts nothing; sessions and work go along."""
    cli("init", "--server", "--no-resume", cwd=bare.path, code=0)
    repo.git("remote", "add", "origin", str(bare.path))
    repo.commit(**{"flows.py": FLOWS})
    repo.git("push", "-q", "--force", "origin", "main")
    repo.git("fetch", "-q", "origin")
    there = clone_of(bare, "there")
    for clone in (repo, there):
        clone.git("config", "gitgate.session", "push")
        cli("init", "--no-resume", cwd=clone.path, code=0)
    agents.known_to(repo, there)
    return repo, there


def awaited(cli: Command, clone: Clone) -> str:
    cli("sync", cwd=clone.path, code=0)
    (gate,) = cli("list", "--awaiting", "--json", cwd=clone.path, code=0).json["gates"]
    return str(gate["id"])


@pytest.mark.slow
def test_another_clone_goes_on_with_what_the_branches_did(
    two: tuple[Clone, Clone], bare: Clone, cli: Command, agents: Agents
) -> None:
    """Committed or not, asked or over: as commits of the run, whose trees are made anew there."""
    repo, there = two
    run = cli("run", "flows.py:both", "x", "--json", code=8).json["id"]
    ref = f"refs/hitl/work/{run}"
    kept = bare.refs(ref)[ref]
    for forged, why in (
        ("HEAD:", f"run {run} names {kept[:10]} as its work"),
        (":", "its work stays with it"),
    ):
        push = ["git", "push", "--force", "origin", f"{forged}{ref}"]
        said = subprocess.run(push, cwd=there.path, capture_output=True, text=True, check=False)
        assert why in said.stderr
        assert bare.refs(ref) == {ref: kept}
    cli("respond", awaited(cli, there), "this", cwd=there.path, code=0)
    cli("resume", run, cwd=there.path, code=0)
    assert shown(cli, run, there)["result"] == ["DONE", "DONE"]
    assert {path.name for path in there.path.iterdir()} - {".git"} >= DONE_HERE
    assert {"half", "rest"} <= set(there.git("log", "--format=%s", "main").splitlines())
    assert "tested.txt" in there.git("status", "--porcelain")
    assert agents.starts[3:] == ["coder resume", "closer start"]
    assert len(there.git("worktree", "list").splitlines()) == 1
    for clone in (bare, repo):
        cli("sync", cwd=clone.path)
        assert f"refs/hitl/work/{run}" not in bare.refs("refs/hitl/work")
        assert json.loads(cli("verify", "--json", cwd=clone.path, code=0).out)["problems"] == []


@pytest.mark.slow
def test_the_trees_go_to_another_clone_and_come_back(
    two: tuple[Clone, Clone], cli: Command, agents: Agents
) -> None:
    """What is left of them in the first clone is not what is so any more."""
    repo, there = two
    run = cli("run", "flows.py:twice", "x", "--json", code=8).json["id"]
    cli("respond", awaited(cli, there), "this", cwd=there.path, code=0)
    cli("resume", run, cwd=there.path, code=8)
    cli("respond", awaited(cli, repo), "that", code=0)
    cli("resume", run, code=0)
    assert shown(cli, run, repo)["result"] == ["tested.txt", "three.txt", "two.txt"]
    assert sorted(agents.starts) == ["asker resume", "asker resume", "asker start", "tester start"]
    assert len(repo.git("worktree", "list").splitlines()) == 1
    assert repo.git("branch", "--list", "gitgate/*") == ""
    assert json.loads(cli("verify", "--json", code=0).out)["problems"] == []


def gates_of(cli: Command, clone: Clone) -> dict[str, str]:
    """By what is asked, the gates that wait."""
    cli("sync", cwd=clone.path, code=0)
    listed = cli("list", "--awaiting", "--json", cwd=clone.path, code=0).json["gates"]
    return {gate["title"]: gate["id"] for gate in listed}


@pytest.mark.slow
@pytest.mark.parametrize("wins", ["Which?", "Or do you know how?"])
def test_a_race_is_decided_in_another_clone(
    two: tuple[Clone, Clone], cli: Command, agents: Agents, wins: str
) -> None:
    """Whoever is first there, its work is joined there, and the other question is taken back."""
    repo, there = two
    run = cli("run", "flows.py:raced", "x", "--json", code=8).json["id"]
    gates = gates_of(cli, there)
    cli("respond", gates.pop(wins), "this", cwd=there.path, code=0)
    cli("resume", run, cwd=there.path, code=0)
    by_agent = wins == "Which?"
    assert shown(cli, run, there)["result"] == ("DONE" if by_agent else "this")
    files = {path.name for path in there.path.iterdir()}
    assert ("half.txt" in files, "rest.txt" in files, "closed.txt" in files) == (by_agent, by_agent, True)
    assert agents.starts == ["coder start", *(["coder resume"] if by_agent else []), "closer start"]
    (other,) = gates.values()
    assert shown(cli, other, there)["state"] == "withdrawn"
    cli("sync", code=0)
    assert shown(cli, run, repo)["status"] == "completed"


@pytest.mark.slow
def test_async_lines_are_gone_on_with_in_another_clone(
    two: tuple[Clone, Clone], cli: Command, agents: Agents
) -> None:
    """Each line where it was; what they did in the run's own tree is there as well."""
    _, there = two
    run = cli("run", "flows.py:awaited", "x", "--json", code=8).json["id"]
    gates = gates_of(cli, there)
    cli("respond", gates["How is it called?"], "Rose", cwd=there.path, code=0)
    cli("resume", run, cwd=there.path, code=8)
    cli("sync", code=0)
    cli("respond", gates["Which?"], "this", code=0)
    cli("sync", cwd=there.path, code=0)
    cli("resume", run, cwd=there.path, code=0)
    assert shown(cli, run, there)["result"] == ["DONE", "Rose"]
    assert agents.starts == ["coder start", "coder resume"]
    assert {"half.txt", "rest.txt", "coder-draft.txt"} <= {path.name for path in there.path.iterdir()}


@pytest.mark.slow
def test_a_flow_starts_afresh_in_another_clone(
    two: tuple[Clone, Clone], cli: Command, agents: Agents
) -> None:
    """And goes on in the first again: in one run after the other, each begun once."""
    repo, there = two
    run = str(cli("run", "flows.py:afresh", "1", "--json", code=8).json["id"])
    cli("respond", awaited(cli, there), "--approve", cwd=there.path, code=0)
    cli("resume", run, cwd=there.path, code=8)
    following = str(shown(cli, run, there)["next"])
    cli("respond", awaited(cli, repo), "--reject", code=0)
    cli("resume", following, code=0)
    assert shown(cli, following, repo)["result"] == [2, False]
    assert agents.starts == ["tester start", "tester start"]
    assert len(cli("list", "--runs", "--json", code=0).json["runs"]) == 2


@pytest.mark.slow
def test_an_answer_that_only_the_journal_tells_of_is_brought_home(
    bench: FlowBench, repo: Clone, bare: Clone, clone_of: Callable[..., Clone], cli: Command
) -> None:
    """Another clone takes a run over whose last step names a gate as it became there since: its journal alone is fetched."""
    repo.git("remote", "add", "origin", str(bare.path))
    repo.git("push", "-q", "--force", "origin", "main")
    repo.git("fetch", "-q", "origin")

    @gitgate.flow
    def twice_asked() -> list[str]:
        answers = [gitgate.ask(words, wait=True).answer for words in ("First?", "Second?")]
        return [answer.text for answer in answers if answer]

    begun = bench.begin(twice_asked)
    there = FlowBench(clone_of(bare, "there"))
    cli("sync", cwd=there.clone.path, code=0)
    cli("respond", "-m", "one", code=0)
    assert bench.again(twice_asked, begun.id).status == "waiting_human"
    cli("respond", "-m", "two", code=0)
    bench.close()
    cli("sync", code=0)
    try:
        ended = there.again(twice_asked, begun.id)
    finally:
        there.close()
    assert (ended.status, ended.value) == ("completed", ["one", "two"])
