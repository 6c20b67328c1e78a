"""Flows: each example is killed at every place, in memory and with SIGKILL, goes on elsewhere, and comes to what it would have.

Each agent is started once a step, each person is asked once. The processes are those of two machines: each has a clone of its
own, a home of its own, and another name, and they meet in one bare repository.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from gitgate import testing
from support import examples
from support.flowing import Actors, was_killed
from support.testbed.command import Command, Outcome
from support.testbed.repositories import Clone
from support.testbed.seal import environment, write_global_config

DONE = {"status": "DONE", "summary": "did it"}
NEEDS = {"status": "NEEDS_HUMAN", "reason": "Which authentication?"}
BUILD = {"coder": [NEEDS, DONE, DONE]}
REVIEWED = {**BUILD, "reviewer": [{"status": "CHANGES"}, {"status": "APPROVED"}]}
TWICE = ("architect", "coder", "reviewer", "coder", "reviewer")
MOST_PROCESSES, MOST_ROUNDS = 400, 12
TERM = 3
# Where it is killed is dealt out over so many tests: each death costs a lease's time, and tests wait side by side.
PARTS = 3
Said = str | bool | tuple[bool, str]


@dataclass(frozen=True)
class Example:
    """What agents say, one thing a start and one an answer; what people say beside yes and OAuth2; and what it comes to."""

    starts: tuple[str, ...]
    asked: tuple[str, ...] = ()
    agents: Mapping[str, Any] = field(default_factory=dict)
    people: Mapping[str, Said] = field(default_factory=dict)
    status: str = "completed"
    reason: str = ""
    result: Mapping[str, Any] | str | None = None


EXAMPLES = {
    "simple": Example(("architect", "coder", "reviewer"), ("Which authentication?",), BUILD),
    "approval": Example(
        ("architect", "coder", "test-runner", "deployer"),
        ("Which authentication?", "Approve for production deployment?"),
        BUILD,
    ),
    "autonomous": Example(
        ("autonomous-agent",),
        agents={"autonomous-agent": NEEDS},
        status="stuck",
        reason="Unexpected: Which authentication?",
    ),
    "reviews": Example(
        (*TWICE, "deployer"),
        ("Approve architecture?", "Which authentication?", "Approve deployment?"),
        REVIEWED,
        result="deployed",
    ),
    "reviews, and no": Example(
        TWICE,
        ("Approve architecture?", "Which authentication?", "Approve deployment?"),
        REVIEWED,
        {"Approve deployment?": (False, "not on a Friday")},
        status="stuck",
        reason="Deployment rejected: not on a Friday",
    ),
    "planned": Example(
        ("planner", "planner", "executor"),
        ("Approve A?", "Approve B?"),
        {"planner": [{"plan": "A"}, {"plan": "B"}], "executor": {"did": "it"}},
        {"A?": (False, "shorter")},
        result={"plan": "B", "did": "it", "approved": True},
    ),
    "conditional": Example(
        ("classifier",),
        ("Verify cat?",),
        {"classifier": {"label": "cat", "confidence": 0.4}},
        result={"label": "cat", "approved": True},
    ),
    "conditional, and sure": Example(
        ("classifier",),
        agents={"classifier": {"label": "cat", "confidence": 0.9}},
        result={"label": "cat", "approved": False},
    ),
    "dynamic": Example(
        ("coder", "reviewer", "planner", "coder", "reviewer", "coder", "reviewer"),
        ("How?",),
        {
            "reviewer": [{"unsure": True, "why": "How?"}, {"unsure": False}, {"fine": True}],
            "planner": {"plan": "new"},
        },
        {"How?": "Redesign"},
        result={"plan": "new", "fine": True, "approved": False},
    ),
    "branching": Example(
        ("planner", "thorough"),
        ("Choose approach:",),
        {"thorough": {"went": "thorough"}},
        {"Choose": "Thorough"},
        result={"went": "thorough"},
    ),
    "human_only": Example(
        ("planner", "executor"),
        ("What do you want to build?",),
        people={"build": "API"},
        result={"plan": "an API"},
    ),
    "refinement": Example(
        ("writer", "writer", "publisher"),
        ("first: good?", "second: good?"),
        {"writer": [{"text": "first"}, {"text": "second"}], "publisher": {"published": True}},
        {"first": "with an example", "second": "Good"},
        result={"text": "second", "published": True},
    ),
    "several": Example(
        ("researcher", "writer", "publisher"),
        ("Is it enough?", "Publish it?"),
        {"publisher": {"published": True}},
        result={"published": True, "approved": True},
    ),
}


def flow_of(name: str) -> str:
    return name.partition(",")[0]


def without_time(result: Any) -> Any:
    """What it came to, without when and by whom it was answered."""
    kept = isinstance(result, Mapping)
    return {key: value for key, value in result.items() if key != "human_response"} if kept else result


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_is_killed_at_every_event(name: str) -> None:
    """In memory, before each and after it: no agent is started again, nobody is asked again, and each is told the same."""
    expected, flow = EXAMPLES[name], getattr(examples, flow_of(name))
    how: dict[str, Any] = {"agents": expected.agents, "people": {"Which": "OAuth2", **expected.people}}
    whole = testing.play(flow, "x", **how)
    assert (whole.status, whole.reason, whole.asked) == (expected.status, expected.reason, expected.asked)
    assert starts_of(whole.starts) == [*expected.starts]
    assert_result(whole.value, expected)
    places = 0
    for crash in testing.crashes(flow, "x", **how):
        places += 1
        assert (crash.status, crash.reason) == (whole.status, whole.reason), crash.crash
        assert without_time(crash.value) == without_time(whole.value), crash.crash
        assert (crash.starts, crash.asked, crash.steps) == (whole.starts, whole.asked, whole.steps), (
            crash.crash
        )
        assert (crash.told, crash.doubted) == (whole.told, ()), crash.crash
    assert places > 2 * len(expected.starts)


def starts_of(starts: Any) -> list[str]:
    return [how.removeprefix("start ") for how in starts if how.startswith("start ")]


def assert_result(result: Any, expected: Example) -> None:
    if isinstance(expected.result, Mapping):
        assert {key: result[key] for key in expected.result} == expected.result
    else:
        assert result == expected.result


# An agent that says the next thing in each new conversation and after an answer. The first time in each it does not end
# before it is let go, or whoever started it is killed. Told to go on with what was interrupted, it says what it would have said.
AGENT = """#!/bin/sh
name=$1 how=$2 session=$3
cd "$4" || exit 1
echo "$how $name $session" >> starts.log
prompt=$(cat)
case "$how $prompt" in
    start*) number=$(cat "$name.next" 2>/dev/null || echo 0); echo "$number" > "$name.$session";;
    "resume You were interrupted"*) number=$(cat "$name.$session.last");;
    *) number=$(($(cat "$name.$session") + 1));;
esac
echo "$number" > "$name.$session.last"
echo $((number + 1)) > "$name.next"
if [ -f hang ] && [ ! -f "$name.$session.$number.hung" ]; then
    touch "$name.$session.$number.hung" hangs
    for _ in $(seq 600); do [ -f hangs ] || break; sleep 0.1; done
fi
rm -f hangs
while [ "$number" -gt 0 ] && [ ! -f "$name.$number" ]; do number=$((number - 1)); done
cat "$name.$number"
"""

# Runs the command on a machine of that name. With a file of places it dies by SIGKILL at the first one of its part that is not
# in there yet: at each event of the journal, while an agent works, and between what is written here and what is shared.
MACHINE = """
import os, signal, sys
from pathlib import Path
from zlib import crc32

host, places, hangs, part, parts = sys.argv[1:6]
here = os.uname()
os.uname = lambda: os.uname_result((here[0], host, *here[2:]))
sys.argv = ["git-gate", *sys.argv[6:]]


def at(*place):
    log, name = Path(places), " ".join(place) + "\\n"
    if crc32(name.encode()) % int(parts) != int(part):
        return
    if not log.exists() or name not in log.read_text().splitlines(True):
        with log.open("a") as out:
            out.write(name)
        os.kill(os.getpid(), signal.SIGKILL)


def dying(owner, method, place):
    plain = getattr(owner, method)

    def wrapped(self, *args, **said):
        where = place(self, *args, **said)
        if where[0] != "begun":  # until then all is as it was after the step before
            at("before", *where)
        found = plain(self, *args, **said)
        at("after", *where)
        return found

    setattr(owner, method, wrapped)


if places:
    from gitgate.flows.agents import AgentRun
    from gitgate.flows.journal import HeldRun

    looks = AgentRun.check_wanted

    def look(self):
        if Path(hangs).exists():
            at("during", self.doing.id, str(len(self.gates)))
            Path(hangs).unlink(missing_ok=True)  # another part's
        looks(self)

    AgentRun.check_wanted = look
    dying(HeldRun, "append", lambda _run, event, **said: (event, said.get("step", "")))
    dying(HeldRun, "leave", lambda _run, event, **said: (event, *said.get("gates", ())))
    dying(HeldRun, "end_there", lambda run: ("shared", run.run.state))
    dying(HeldRun, "keep", lambda _run: ("claimed",))

from gitgate.cli.process import run
run()
"""


@dataclass(frozen=True)
class Machine:
    """A clone, a home and a name of its own. Agents are started as everywhere else, and what they do is seen in one place."""

    name: str
    clone: Clone
    home: Path
    agents: Path

    def call(self, *words: str, dies: bool = False, part: int = 0, parts: int = 1) -> Outcome:
        return Command().scripted(
            *(MACHINE, *self.script_words(dies), str(part), str(parts), *words),
            cwd=self.clone.path,
            env=environment(self.home),
            timeout=120,
        )

    def __call__(self, *words: str, code: int = 0) -> Outcome:
        done = self.call(*words)
        assert done.code == code, (words, done)
        return done

    def script_words(self, dies: bool) -> tuple[str, str, str]:
        places = (str(self.agents / "places"), str(self.agents / "hangs")) if dies else ("", "")
        return (self.name, *places)

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        """Beside what else is done."""
        return subprocess.Popen(
            [sys.executable, "-c", MACHINE, *self.script_words(False), "0", "1", *words],
            cwd=self.clone.path,
            env=environment(self.home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def answer(self, expected: Example) -> None:
        """Whatever waits, as the people of an example do."""
        self("sync")
        for gate in self("list", "--awaiting", "--json").json["gates"]:
            (asked,) = gate["questions"]
            said = next((say for words, say in expected.people.items() if words in asked["prompt"]), None)
            if said is None:
                said = "OAuth2" if asked["type"] == "text" else True
            own = asked["type"] == "choice" and said not in [option["label"] for option in asked["options"]]
            self("respond", gate["id"], *(["--other"] if own else []), *in_words(said))

    def show(self, run: str) -> Any:
        self("sync")
        return self("show", run, "--json").json


def in_words(said: Said) -> list[str]:
    if isinstance(said, str):
        return [said]
    yes, note = said if isinstance(said, tuple) else (said, "")
    return ["--approve" if yes else "--reject", *(["--note", note] if note else [])]


@dataclass
class Pair:
    """Two machines that a run of an example goes on at in turn."""

    example: Example
    actors: Actors
    machines: tuple[Machine, Machine]
    run: str = ""

    def other(self, one: Machine) -> Machine:
        first, second = self.machines
        return second if one is first else first

    def named(self, name: str) -> Machine:
        return next(one for one in self.machines if one.name == name)

    def known_run(self, at: Machine) -> str:
        if not self.run:
            at("sync")
            (row,) = at("list", "--runs", "--json").json["runs"]
            self.run = row["id"]
        return self.run

    def check_end(self) -> None:
        """What the run has come to, as both know it."""
        steps: list[Any] = []
        for machine in self.machines:
            shown = machine.show(self.run)
            steps = [step for step in shown["steps"] if step["kind"] == "run"]
            assert (shown["status"], shown["reason"] or "") == (self.example.status, self.example.reason)
            assert_result(shown["result"], self.example)
            machine("verify")
        gates = self.machines[0]("list", "--all", "--json").json["gates"]
        assert Counter(gate["title"] for gate in gates) == Counter(self.example.asked)
        assert Counter(starts_of(self.actors.starts)) == Counter(self.example.starts)
        assert len(steps) == len(self.example.starts)
        assert sum(map(len, self.actors.sessions.values())) == len(steps)  # one conversation each


@pytest.fixture
def pair(name: str, repo: Clone, bare: Clone, clone_of: Callable[..., Clone], tmp_path: Path) -> Pair:
    expected, actors = EXAMPLES[name], Actors(repo, tmp_path / "agents")
    said = {agent: expected.agents.get(agent, DONE) for agent in expected.starts}
    for agent, words in said.items():
        actors.says(agent, *(words if isinstance(words, list) else [words]))
    (actors.folder / "agent.sh").write_text(AGENT)
    repo.git("remote", "add", "origin", str(bare.path))
    repo.commit(**{"flows.py": Path(examples.__file__).read_text(encoding="utf-8")})
    repo.git("push", "-q", "--force", "origin", "main")
    repo.git("fetch", "-q", "origin")
    there = clone_of(bare, "there")
    for line in repo.git("config", "--get-regexp", r"^gitgate\.agent\.").splitlines():
        there.git("config", *line.split(" ", 1))
    machines = []
    for called, clone in (("here", repo), ("there", there)):
        clone.git("config", "gitgate.leaseTerm", f"{TERM}s")
        clone.git("config", "gitgate.session", "push")
        home = tmp_path / f"home-{called}"
        home.mkdir()
        write_global_config(home, f"[user]\n\tname = {called}\n\temail = {called}@example.org\n")
        machines.append(Machine(called, clone, home, actors.folder))
    return Pair(expected, actors, (machines[0], machines[1]))


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_is_killed_everywhere_and_goes_on_on_the_other_machine(
    name: str, part: int, pair: Pair
) -> None:
    """With SIGKILL: within each step and between them. An agent whose conversation is on one machine alone goes on there."""
    (pair.actors.folder / "hang").touch()
    at, trace = pair.machines[0], []
    here: dict[str, Any] = {"dies": True, "part": part, "parts": PARTS}
    done = at.call("run", f"flows.py:{flow_of(name)}", "x", **here)
    for _ in range(MOST_PROCESSES):
        trace.append(f"{at.name}: {done.code}: {done.err[-300:]}")
        needs = re.search("needs (here|there):", done.err)
        if was_killed(done):
            at = pair.other(at)
        elif done.code == 8:
            at = pair.other(at)
            at.answer(pair.example)
        elif needs is not None:
            at = pair.named(needs[1])
        elif done.code == 5 and "takes over" in done.err:
            time.sleep(TERM)
        else:
            break
        done = at.call("resume", pair.known_run(at), **here)
    assert done.code in (0, 3, 9) or "is over" in done.err, "\n".join(trace)
    pair.check_end()
    died = (pair.actors.folder / "places").read_text().splitlines()
    for step in pair.machines[0].show(pair.run)["steps"]:
        name = step["path"]
        within = f"during {name} 0" if step["kind"] == "run" else f"after asked {name}"
        for place in (f"after begun {name}", within, f"before done {name}", f"after done {name}"):
            assert (place in died) == (crc32(f"{place}\n".encode()) % PARTS == part), died


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", EXAMPLES)
def test_two_machines_that_go_on_at_once_start_nothing_twice(name: str, pair: Pair) -> None:
    """From its first step on, and after each answer, two processes on each: one goes on, and the others are told so."""
    first, second = pair.machines
    for machine in pair.machines:
        machine.clone.git("config", "gitgate.leaseTerm", "2m")  # nobody dies here
    assert was_killed(first.call("run", f"flows.py:{flow_of(name)}", "x", dies=True))
    run = pair.known_run(first)
    second("sync")
    for _ in range(MOST_ROUNDS):
        every = [machine.begin("resume", run) for machine in pair.machines * 2]
        said = [one.communicate(timeout=600)[1].decode() for one in every]
        for needs in filter(None, (re.search("needs (here|there):", words) for words in said)):
            pair.named(needs[1]).call("resume", run)  # a conversation that is there alone
        assert {one.returncode for one in every} <= {0, 1, 3, 5, 8, 9}, said
        if second.show(run)["status"] in ("completed", "stuck"):
            break
        second.answer(pair.example)
    pair.check_end()
