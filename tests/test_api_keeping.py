"""Python: the verbs that look around in a gate's work, and those that look after a repository."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

import gitgate
from gitgate import errors
from support.resuming import Agent, until
from support.testbed.repositories import Clone


@pytest.fixture
def agent(tmp_path: Path, person: object) -> Agent:
    """A program that can be started again on this machine."""
    scripted = Agent(tmp_path / "agent")
    scripted.set_up()
    return scripted


def test_errors_are_at_the_top() -> None:
    """What is caught is named by the package itself."""
    assert gitgate.GateError is errors.GateError
    assert gitgate.errors is errors
    with pytest.raises(gitgate.GateError):
        gitgate.list(directory="/nowhere")


def test_the_work_is_looked_at(repo: Clone, tmp_path: Path) -> None:
    """As a diff, as how much of which file, and as a worktree beside the repository or where one says."""
    repo.write("README", "changed\n")
    gate = gitgate.ask("Which?")
    assert "+changed" in gitgate.diff(gate)
    assert gitgate.diff(stat=True).startswith(" README | 2 ")
    beside = gitgate.worktree(gate)
    assert beside.directory == repo.path.parent / f"repo-{gate.id[:6]}"
    assert (beside.directory / "README").read_text() == "changed\n"
    with pytest.raises(errors.Failure, match="already there"):
        gitgate.worktree(gate)
    named = gitgate.worktree(gate.id[:5], "../elsewhere", directory=repo.path)
    assert named.directory.resolve() == (tmp_path / "elsewhere").resolve()
    assert named.gate == gate.id
    repo.git("checkout", "-q", "--", ".")
    assert gitgate.diff(gitgate.ask("And?")) == ""


def test_gates_stand_under_their_branches(repo: Clone) -> None:
    """Closed ones only when everything is wanted."""
    first = gitgate.ask("One?")
    repo.git("switch", "-q", "-c", "topic")
    second = gitgate.ask("Two?")
    gitgate.withdraw(second, reason="found it")
    third = gitgate.ask("Three?")
    assert {name: [g.id for g in gates] for name, gates in gitgate.tree().items()} == {
        "main": [first.id],
        "topic": [third.id],
    }
    assert {gate.id for gate in gitgate.tree(all=True)["topic"]} == {second.id, third.id}


@pytest.mark.slow
def test_what_happens_is_watched(repo: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """One gate with its past until it closes; the place counts where the watch began, not where the process went."""
    gate = gitgate.ask("Which?")
    later = threading.Timer(0.3, gitgate.respond, (gate, "this"), {"directory": repo.path})
    later.start()
    events = gitgate.watch(gate, for_="20s")
    monkeypatch.chdir("/")
    try:
        seen = [(event.event, event.gate) for event in events]
    finally:
        later.join()
    assert seen == [("opened", gate.id), ("answered", gate.id)]
    assert list(gitgate.watch(for_=0, directory=repo.path)) == []


def test_the_list_knows_what_the_policy_says(repo: Clone) -> None:
    """What is mine is what I may answer, by the policy too."""
    repo.commit(
        "policy",
        **{".gitgate.yml": "policy:\n  people:\n    grace: {email: grace@example.org}\n  who: [grace]\n"},
    )
    gate = gitgate.ask("Which?")
    assert [one.id for one in gitgate.list()] == [gate.id]
    assert gitgate.list(mine=True) == ()


def test_who_may_answer_is_explained(repo: Clone) -> None:
    """The rules as they were read; one person and one gate with the rule that decides; a broken policy is an error."""
    gate = gitgate.ask("Which?")
    assert gitgate.policy_check() == gitgate.policy_check(directory=repo.path)
    assert dict(gitgate.policy_check().sources) == {}
    assert (gitgate.policy_check(gate).allowed, gitgate.policy_check(gate).rule) == (True, None)
    repo.commit(
        "policy",
        **{".gitgate.yml": "policy:\n  people:\n    grace: {email: grace@example.org}\n  who: [grace]\n"},
    )
    (rules,) = gitgate.policy_check().sources.values()
    assert [rule["who"] for rule in rules] == [["grace"]]
    mine = gitgate.policy_check(gate)
    assert (mine.allowed, mine.who, mine.rule) == (False, "Ada Lovelace <ada@example.org>", "default")
    assert gitgate.policy_check(gate, who="grace@example.org").allowed
    with pytest.raises(errors.Usage, match="asked of one gate"):
        gitgate.policy_check(who="@ada")  # type: ignore[call-overload]
    repo.commit("worse", **{".gitgate.yml": "policy:\n  nobody: knows\n"})
    with pytest.raises(errors.BrokenPolicy):
        gitgate.policy_check()


def test_a_clone_is_set_up_and_examined(repo: Clone) -> None:
    """Steps are told before they are taken, taken once, and taken back; what is missing has a command that mends it."""
    unset = {found.name: found for found in gitgate.doctor()}
    assert (unset["init"].state, unset["init"].mend) == ("missing", "git gate init")
    told = gitgate.init(dry_run=True, agents=True)
    assert not any(step.done for step in told)
    assert {found.name: found.state for found in gitgate.doctor()}["init"] == "missing"
    done = gitgate.init(resume=False, agents=True)
    assert all(step.done and step.means for step in done)
    assert (repo.path / "AGENTS.md").exists()
    assert repo.git("config", "gitgate.resumeHere") == "false"
    assert {found.name: found.state for found in gitgate.doctor()}["init"] == "good"
    repo.git("remote", "add", "origin", "https://github.com/team/project")
    assert {found.name: found.state for found in gitgate.doctor()}["workflow gitgate.yml"] == "missing"
    gitgate.init(remove=True)
    assert not (repo.path / "AGENTS.md").exists()
    with pytest.raises(errors.Usage, match="--server is for a bare repository"):
        gitgate.init(server=True)


def test_what_jobs_install_and_what_goes_with_a_purge(repo: Clone) -> None:
    """As the flags of `git gate init` say it, and refused where they would mean nothing."""
    repo.git("remote", "add", "origin", "https://github.com/team/project")
    repo.git("config", "gitgate.workflows", f"team/git-gate@{'a' * 40}")
    gitgate.init(github=True, package="git-gate[all]==0.1.0")
    workflows = "".join(place.read_text() for place in (repo.path / ".github").rglob("*") if place.is_file())
    assert "git-gate[all]==0.1.0" in workflows
    with pytest.raises(errors.Usage, match="what the jobs of github install"):
        gitgate.init(package="git-gate")
    with pytest.raises(errors.Usage, match="together with remove"):
        gitgate.init(purge=True)
    gate = gitgate.ask("Which?")
    state = repo.path / ".git" / "gitgate"
    assert state.exists()
    gitgate.init(remove=True, purge=True)
    assert not state.exists()
    assert repo.git("rev-parse", "--verify", f"refs/hitl/open/{gate.id}")


def test_closed_gates_are_folded(repo: Clone) -> None:
    """They stay readable; one that has not been closed for so long stays where it is."""
    closed, waits = gitgate.ask("One?"), gitgate.ask("Two?")
    gitgate.stop(closed, reason="enough")
    assert gitgate.archive(older_than="1h").folded == ()
    done = gitgate.archive()
    assert (done.remote, done.folded, dict(done.kept)) == (None, (closed.id,), {})
    assert [gate.id for gate in gitgate.list()] == [waits.id]
    assert gitgate.show(closed).archived
    assert gitgate.watch(waits, for_=0) is not None


def test_a_session_is_erased(repo: Clone, agent: Agent) -> None:
    """The record stays whole; a second time there is nothing left to erase."""
    gate = gitgate.ask("Which?", agent="scripted", session="session-1")
    dropped = gitgate.session_drop(gate)
    assert (dropped.gate, dropped.here, dropped.remote) == (gate.id, True, None)
    assert repo.git("for-each-ref", "refs/hitl/sessions") == ""
    with pytest.raises(errors.UnknownGate, match="no saved session"):
        gitgate.session_drop(gate)
    assert gitgate.verify().ok


def test_an_answer_is_acted_on(repo: Clone, agent: Agent) -> None:
    """One gate that is named, or all of them; what is not to be resumed is said."""
    first = gitgate.ask("One?", agent="scripted", session="session-1")
    second = gitgate.ask("Two?", agent="scripted", session="session-1")
    with pytest.raises(errors.StillWaiting, match="nobody has answered"):
        gitgate.resume(first)
    for gate in (first, second):
        gitgate.respond(gate, "this")
    (done,) = gitgate.resume(first)
    assert (done.gate, done.result, done.attempt) == (first.id, "resumed", 1)
    assert [one.gate for one in gitgate.resume(all=True)] == [second.id]
    assert agent.starts == [first.id, second.id]
    assert gitgate.resume(all=True) == ()
    for wrong in ({}, {"id": first.id, "all": True}):
        with pytest.raises(errors.Usage, match="name a gate, or all=True"):
            gitgate.resume(**wrong)  # type: ignore[arg-type]
    with pytest.raises(errors.Conflict):
        gitgate.resume(first)


def test_a_failed_resumption_is_an_error(repo: Clone, agent: Agent) -> None:
    """With what went wrong; among all of them it is one of the results."""
    repo.git("config", "gitgate.maxAttempts", "1")
    agent.does("exit 3")
    named, other = (gitgate.ask("One?", agent="scripted", session="session-1") for _ in range(2))
    for gate in (named, other):
        gitgate.respond(gate, "this")
    with pytest.raises(errors.Failure, match="was not resumed"):
        gitgate.resume(named)
    (failed,) = gitgate.resume(all=True)
    assert (failed.gate, failed.result) == (other.id, "failed")
    assert failed.reason


@pytest.mark.slow
def test_an_answer_resumes_where_that_is_allowed(repo: Clone, agent: Agent) -> None:
    """As on the command line: after `init`, here where the agent ran, and not when it is not wanted."""
    gitgate.init()
    left, resumed, detached = (gitgate.ask(f"{n}?", agent="scripted", session="session-1") for n in range(3))
    gitgate.respond(left, "this", resume=False)
    assert agent.starts == []
    gitgate.respond(resumed, "this")
    until(lambda: gitgate.show(resumed).state == "resumed")
    assert resumed.id in agent.starts
    gitgate.respond(detached, "this", resume=False)
    (started,) = gitgate.resume(detached, detach=True)
    assert (started.result, started.gate) == ("started", detached.id)
    until(lambda: gitgate.show(detached).state == "resumed")
    assert gitgate.show(left).state == "answered"
    assert left.id not in agent.starts


def test_an_agent_sets_nothing_up(repo: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in Python either."""
    monkeypatch.setitem(os.environ, "CLAUDECODE", "1")
    with pytest.raises(errors.NotAllowed):
        gitgate.init()
    with pytest.raises(errors.NotAllowed):
        gitgate.session_drop("zzzz")
