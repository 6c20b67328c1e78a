"""An agent that asks again and again: each question follows the last, and what it commits reaches its branch, once."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from support.resuming import Agent, until
from support.testbed.command import Command
from support.testbed.repositories import Clone, run_git

SLOW = pytest.mark.slow
LONG = 5
# Asks until it was answered `LONG` times; commits before each question if it is to, and in the end at any rate.
ASKS = """
echo x >> {folder}/count
n=$(wc -l < {folder}/count)
if [ "$n" -lt {long} ]; then
    {between}
    echo "half $n" > half
    git gate ask "And then, $n?" --agent scripted || exit 1
    exit 8
fi
echo "$n" > done; git add -A; git commit -qm "last"
"""
COMMITS = 'echo "$n" > "part-$n"; git add -A; git commit -qm "part $n"'


@dataclass
class Chain:
    """A repository in which the agent asks and is resumed, and where what it made is to arrive."""

    asking: Clone
    shared: Clone | None
    cli: Command
    agent: Agent
    resume: Callable[[str], None]

    def follow(self, first: str) -> list[str]:
        """Answer every question to the end; the gates in their order."""
        gates = [first]
        while True:
            self.answer(gates[-1])
            until(lambda: self.shown(gates[-1])["state"] in ("resumed", "failed"))
            assert self.shown(gates[-1])["state"] == "resumed", self.shown(gates[-1])["resume"]
            later = [gate for gate in self.waiting() if gate["follows"] == gates[-1]]
            if not later:
                return gates
            assert later[0]["work"]["branch"] == "feature"
            gates.append(str(later[0]["id"]))

    def answer(self, gate: str) -> None:
        self.cli.quick("respond", gate, "go on", "--no-resume", cwd=self.asking.path, code=0)
        self.resume(gate)

    def shown(self, gate: str) -> dict[str, Any]:
        if self.shared is not None:
            self.cli.quick("sync", cwd=self.asking.path, code=0)
        found: dict[str, Any] = self.cli.quick("show", gate, "--json", cwd=self.asking.path, code=0).json
        return found

    def waiting(self) -> list[dict[str, Any]]:
        found = self.cli.quick("list", "--awaiting", "--json", cwd=self.asking.path, code=0).json["gates"]
        return list(found)

    @property
    def subjects(self) -> list[str]:
        """What the branch gained, oldest first."""
        there = self.shared or self.asking
        return there.git("log", "--reverse", "--format=%s", "main..feature").splitlines()


MakeChain = Callable[[str], Chain]


@pytest.fixture
def chain(bare: Clone, ann: Clone, bob: Clone, repo: Clone, agent: Agent, cli: Command) -> MakeChain:
    def make(way: str) -> Chain:
        asking = repo if way == "alone" else ann
        for clone in (asking, bob):
            clone.git("config", "gitgate.session", "push")
            clone.git("config", "gitgate.publishWork", "true")
        clones = [asking, bob] if way == "two clones" else [asking]
        asking.git("checkout", "-q", "-b", "feature")
        if way != "alone":
            asking.git("push", "-q", "-u", "origin", "feature")

        def resume(gate: str) -> None:
            if way == "worker":
                cli.quick("worker", "--once", cwd=asking.path, code=0)
            elif way != "hook":
                clones.append(clones.pop(0))
                cli.quick("sync", cwd=clones[0].path) if way != "alone" else None
                cli.quick("resume", gate, cwd=clones[0].path, code=0)

        if way == "hook":
            cli.quick("init", "--server", cwd=bare.path, code=0)
        return Chain(asking, None if way == "alone" else bare, cli, agent, resume)

    return make


WAYS = [
    (way, moved, between)
    for way in ("hook", "worker", "clone", "two clones", "alone")
    for moved in (False, True)
    for between in (True, False)
]


@SLOW  # each takes seconds
@pytest.mark.parametrize(("way", "moved", "between"), WAYS)
def test_a_chain_of_questions_ends_on_its_branch(
    chain: MakeChain, agent: Agent, way: str, moved: bool, between: bool
) -> None:
    """Each commit once, each tied to the answer that it followed, and nothing left over beside it."""
    there = chain(way)
    agent.does(ASKS.format(folder=agent.folder, long=LONG, between=COMMITS if between else ":"))
    first = there.cli.quick("ask", "Which?", "--agent", "scripted", cwd=there.asking.path, code=0).line
    if moved:
        there.asking.git("checkout", "-q", "main")
    gates = there.follow(first)
    assert agent.starts == gates
    assert len(gates) == LONG
    parts = [f"part {number}" for number in range(1, LONG)] if between else []
    assert there.subjects == [*parts, "last"]
    shared = there.shared or there.asking
    tied = shared.git("log", "--reverse", "--format=%(trailers:key=Gate,valueonly)", "main..feature").split()
    assert tied == (gates if between else gates[-1:])
    if way == "two clones":
        return  # What one of them keeps for its agent it does not know to be over.
    for repository in {shared.path: shared, there.asking.path: there.asking}.values():
        assert set(repository.refs("refs/heads")) <= {"refs/heads/main", "refs/heads/feature"}
        assert repository.git("worktree", "list").count("\n") == 0


LEAVES = "git checkout -q --detach"


@SLOW
@pytest.mark.parametrize("way", ["hook", "clone", "alone"])
def test_a_chain_whose_agent_left_its_branch_for_none(chain: MakeChain, agent: Agent, way: str) -> None:
    """As before a look at an older commit: what it commits is for its branch all the same."""
    there = chain(way)
    agent.does(ASKS.format(folder=agent.folder, long=3, between=f"{COMMITS}; {LEAVES}"))
    first = there.cli.quick("ask", "Which?", "--agent", "scripted", cwd=there.asking.path, code=0).line
    assert len(there.follow(first)) == 3
    assert there.subjects == ["part 1", "part 2", "last"]


@SLOW
@pytest.mark.parametrize("way", ["hook", "alone"])
def test_what_an_agent_without_a_branch_commits_has_one(chain: MakeChain, agent: Agent, way: str) -> None:
    """It asked on none: what it makes would be on none either, and gone with its working tree."""
    there = chain(way)
    there.asking.git("checkout", "-q", "--detach")
    agent.does("git checkout -q --detach; echo 1 > one; git add -A; git commit -qm one")
    gate = there.cli.quick("ask", "Which?", "--agent", "scripted", cwd=there.asking.path, code=0).line
    there.answer(gate)
    until(lambda: there.shown(gate)["state"] == "resumed")
    came = there.shown(gate)["resume"]
    assert came["branch"] == f"gate/{gate}"
    shared = there.shared or there.asking
    assert shared.git("rev-parse", f"gate/{gate}") == came["commits"][-1]


ONE_MORE = """
if [ "$GITGATE_ANSWER" = "no more" ]; then echo end > end; git add -A; git commit -qm end; exit 0; fi
echo half > half; git add -A; git commit -qm half
q=$(git gate ask "One more?" --agent {agent}) || exit 1
{after}
"""


def asked_once(ann: Clone, cli: Command) -> str:
    """A gate on a branch of its own, answered."""
    for name, value in (
        ("session", "push"),
        ("publishWork", "true"),
        ("leaseTerm", "1s"),
        ("retryAfter", "0s"),
    ):
        ann.git("config", f"gitgate.{name}", value)
    ann.git("checkout", "-q", "-b", "feature")
    ann.git("push", "-q", "-u", "origin", "feature")
    gate = cli.quick("ask", "Which?", "--agent", "scripted", cwd=ann.path, code=0).line
    cli.quick("respond", gate, "Postgres", "--no-resume", cwd=ann.path, code=0)
    return gate


def waits(cli: Command, clone: Clone, before: str) -> str | None:
    """The question that follows a gate, once there is one."""
    found = cli.quick("list", "--awaiting", "--json", cwd=clone.path, code=0).json["gates"]
    return next((str(gate["id"]) for gate in found if gate["follows"] == before), None)


def state(cli: Command, clone: Clone, gate: str) -> dict[str, Any]:
    cli.quick("sync", cwd=clone.path)
    found: dict[str, Any] = cli.quick("show", gate, "--json", cwd=clone.path, code=0).json
    return found


def taken_over(cli: Command, clone: Clone, gate: str) -> bool:
    """Try until it works, as a person or a worker would."""
    if state(cli, clone, gate)["state"] == "resumed":
        return True
    return cli.quick("resume", gate, cwd=clone.path).code == 0


def ended(cli: Command, clone: Clone, bare: Clone, second: str) -> None:
    """The second question is answered; all that was made is on the branch, once."""
    cli.quick("respond", second, "no more", "--no-resume", cwd=clone.path, code=0)
    cli.quick("resume", second, cwd=clone.path, code=0)
    assert bare.git("log", "--reverse", "--format=%s", "main..feature").splitlines() == ["half", "end"]


@pytest.mark.parametrize("where", ["here", "elsewhere"])
@SLOW
def test_a_runner_killed_when_its_agent_had_asked(
    ann: Clone, bob: Clone, bare: Clone, agent: Agent, cli: Command, where: str
) -> None:
    """The next one finds the question, says that it asked again, and starts nothing: nobody goes on past it."""
    agent.does(ONE_MORE.format(agent="scripted", after="sleep 30"))
    gate = asked_once(ann, cli)
    running = cli.start("resume", gate, cwd=ann.path)
    until(lambda: waits(cli, ann, gate) is not None)
    second = str(waits(cli, ann, gate))
    until(lambda: f"refs/hitl/sessions/{second}" in bare.refs())
    running.send_signal(signal.SIGKILL)
    running.communicate()
    next_one = ann if where == "here" else bob
    for name, value in (("leaseTerm", "1s"), ("session", "push"), ("publishWork", "true")):
        next_one.git("config", f"gitgate.{name}", value)
    until(lambda: taken_over(cli, next_one, gate))
    came = state(cli, next_one, gate)["resume"]
    assert (came["attempt"], came["outcome"], came["reason"]) == (2, "resumed", "it asked again")
    assert agent.starts == [gate]
    assert bare.git("log", "--format=%s", "main..feature") == "half"
    ended(cli, next_one, bare, second)
    assert agent.starts == [gate, second]


@pytest.mark.slow
@pytest.mark.parametrize(
    "after", ["kill -KILL $$", pytest.param("echo lost its nerve >&2; exit 3", marks=SLOW)]
)
def test_an_agent_that_fails_when_it_has_asked(
    ann: Clone, bare: Clone, agent: Agent, cli: Command, after: str
) -> None:
    """It is neither tried again nor counted as failed: its question is what it goes on with."""
    agent.does(ONE_MORE.format(agent="scripted", after=after))
    gate = asked_once(ann, cli)
    cli.quick("resume", gate, cwd=ann.path, code=0)
    came = state(cli, ann, gate)["resume"]
    assert (came["attempt"], came["outcome"]) == (1, "resumed")
    assert came["reason"].startswith("it asked again, and then: ")
    ended(cli, ann, bare, str(waits(cli, ann, gate)))


@pytest.mark.parametrize("why", ["taken back", "another program"])
@SLOW
def test_a_question_that_nobody_goes_on_with(ann: Clone, agent: Agent, cli: Command, why: str) -> None:
    """One that the agent took back, or that a program asked which it had started: the answer has not been acted on."""
    back = 'CLAUDE_CODE_SESSION_ID="$GITGATE_SESSION" git gate withdraw "$q" --reason r || exit 4; '
    agent.does(
        f"[ -e {agent.folder}/again ] && exit 0; touch {agent.folder}/again;"
        + ONE_MORE.format(
            agent="scripted" if why == "taken back" else "other",
            after=(back if why == "taken back" else "") + "kill -KILL $$",
        )
    )
    run_git("config", "--global", "gitgate.agent.other.resume", "other", cwd=ann.path)
    gate = asked_once(ann, cli)
    cli.quick("resume", gate, cwd=ann.path, code=0)
    assert agent.starts == [gate, gate]
    assert state(cli, ann, gate)["resume"]["reason"] == ""
