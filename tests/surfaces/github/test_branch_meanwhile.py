"""What happened to the pull request's branch while its agent waited: joined where it can be, else said, and nothing made anew."""

from __future__ import annotations

import pytest

from support.forges.routes import ROBOT
from support.resuming import Agent
from support.testbed.repositories import Clone

from .conftest import THREAD, Team
from .test_jobs import COMMITS

pytestmark = pytest.mark.slow  # each takes a second or more


@pytest.fixture
def colleague(team: Team) -> Clone:
    """Somebody else who works on the pull request's branch."""
    return team.clone_of(team.bare, "colleague", "-b", "feature")


def push(team: Team, colleague: Clone, *flags: str) -> str:
    """What they pushed is the pull request's head then."""
    colleague.git("push", "-q", *flags, "origin", "feature")
    head = colleague.git("rev-parse", "HEAD")
    team.forge.pulls[THREAD]["head"]["sha"] = head
    return head


def answer(team: Team, gate: str = "") -> None:
    team.hear(team.forge.write(THREAD, "ada", f"/answer {gate} Postgres"), "--resume")


def with_head(team: Team) -> None:
    """The forge sees what was pushed."""
    team.forge.pulls[THREAD]["head"]["sha"] = team.bare.git("rev-parse", "feature")


def left_behind(team: Team) -> list[str]:
    return [body for body in team.told() if "told=b" in body]


def status(team: Team) -> tuple[str, str]:
    team.cli.quick("github", "status", str(THREAD), cwd=team.job().path, code=0)
    return team.forge.statuses[-1]["state"], team.forge.statuses[-1]["description"]


def test_a_push_during_the_wait_is_merged(team: Team, agent: Agent, colleague: Clone, bare: Clone) -> None:
    """Both are on the branch, each commit as it was made; that it was merged is recorded, and told on the thread."""
    agent.does(COMMITS)
    gate = team.ask("Which?")
    colleague.commit("Theirs", **{"theirs.txt": "t"})
    head = push(team, colleague)
    answer(team)
    assert bare.git("show", "feature:db.conf") == "db=Postgres"
    assert bare.git("show", "feature:theirs.txt") == "t"
    assert bare.git("rev-parse", "feature^1") == head
    assert bare.git("log", "-1", "--format=%s", "feature^2") == "Use Postgres"
    assert f"Gate: {gate}" in bare.git("log", "-1", "--format=%B", "feature")
    resume = team.gate(gate)["resume"]
    assert resume["branch"] == "feature"
    assert resume["commits"][-1] == bare.git("rev-parse", "feature")
    assert "merged with 1 commit that reached feature meanwhile" in resume["reason"]
    assert "merged with 1 commit" in team.shown(gate)
    assert "gate/" not in bare.git("for-each-ref", "--format=%(refname)", "refs/heads")
    with_head(team)
    assert (status(team)[0], left_behind(team)) == ("success", [])


def test_a_rebase_during_the_wait_is_followed(
    team: Team, agent: Agent, colleague: Clone, bare: Clone
) -> None:
    """Merging would bring the old commits back. A signed or dropped one is nobody's to replay."""
    colleague.commit("Before", **{"before.txt": "b"})
    push(team, colleague)
    team.agents.git("pull", "-q", "origin", "feature")
    agent.does(COMMITS)
    gate = team.ask("Which?")
    colleague.git("checkout", "-q", "main")
    colleague.commit("Main", **{"main.txt": "m"})
    colleague.git("push", "-q", "origin", "main")
    colleague.git("checkout", "-q", "feature")
    colleague.git("rebase", "-q", "main")
    head = push(team, colleague, "--force")
    answer(team)
    assert bare.git("rev-parse", "feature^") == head
    assert bare.git("log", "--format=%s", "main..feature") == "Use Postgres\nBefore"
    assert "rebased onto feature" in team.gate(gate)["resume"]["reason"]


def test_a_commit_that_was_taken_out_does_not_come_back(
    team: Team, agent: Agent, colleague: Clone, bare: Clone
) -> None:
    """Neither by a merge nor by a rebase: what the agent made is beside the branch, and the status says so."""
    colleague.commit("Before", **{"before.txt": "b"})
    push(team, colleague)
    team.agents.git("pull", "-q", "origin", "feature")
    agent.does(COMMITS)
    gate = team.ask("Which?")
    colleague.git("reset", "-q", "--hard", "HEAD~1")
    colleague.commit("Another", **{"another.txt": "a"})
    head = push(team, colleague, "--force")
    answer(team)
    assert bare.git("rev-parse", "feature") == head
    assert bare.git("show", f"gate/{gate}:db.conf") == "db=Postgres"
    assert status(team) == ("failure", f"{gate}: its commits are on gate/{gate}")
    assert "feature was rewritten meanwhile" in left_behind(team)[0]


def test_a_conflict_is_a_failure_and_a_new_comment(
    team: Team, agent: Agent, colleague: Clone, bare: Clone
) -> None:
    """With a link that compares, once, however many sweeps; until somebody merges it."""
    agent.does(COMMITS)
    gate = team.ask("Which?")
    colleague.commit("Theirs", **{"db.conf": "db=MySQL\n"})
    head = push(team, colleague)
    answer(team)
    own = f"gate/{gate}"
    assert (bare.git("rev-parse", "feature"), bare.git("log", "-1", "--format=%s", own)) == (
        head,
        "Use Postgres",
    )
    assert status(team) == ("failure", f"{gate}: its commits are on {own}")
    for _ in range(2):
        team.cli.quick("github", "sweep", cwd=team.job().path, code=0)
    (told,) = left_behind(team)
    assert f"]({team.forge.site}/compare/feature...{own})" in told
    assert "conflicts in db.conf" in told
    colleague.git("fetch", "-q")
    colleague.git("merge", "-q", "-s", "ours", f"origin/{own}")
    push(team, colleague)
    assert status(team)[0] == "success"


def test_a_branch_that_somebody_deletes_holds_nothing_back(
    team: Team, agent: Agent, colleague: Clone, bare: Clone
) -> None:
    """What the agent made is left then, by a person's word."""
    agent.does(COMMITS)
    gate = team.ask("Which?")
    colleague.commit("Theirs", **{"db.conf": "db=MySQL\n"})
    push(team, colleague)
    answer(team)
    assert status(team)[0] == "failure"
    colleague.git("push", "-q", "origin", "--delete", f"gate/{gate}")
    assert status(team)[0] == "success"


def test_a_renamed_branch_is_the_pull_requests_present_one(
    team: Team, agent: Agent, colleague: Clone, bare: Clone
) -> None:
    """The old name is not made again. The agent is told."""
    prompt = agent.folder / "prompt"
    agent.does(f'cp "$GITGATE_PROMPT_FILE" {prompt}; {COMMITS}')
    gate = team.ask("Which?")
    bare.git("branch", "-m", "feature", "better-name")
    team.forge.pulls[THREAD]["head"]["ref"] = "better-name"
    team.forge.commits[team.agents.git("rev-parse", "HEAD")] = [8, THREAD]
    team.forge.open_pull(8, "stacked", "e" * 40)
    answer(team)
    assert bare.git("log", "-1", "--format=%s", "better-name") == "Use Postgres"
    assert bare.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split() == [
        "better-name",
        "main",
    ]
    assert team.gate(gate)["resume"]["branch"] == "better-name"
    assert "branch feature is called better-name now" in prompt.read_text()


def test_a_push_while_the_resumed_agent_worked_is_merged(
    team: Team, agent: Agent, colleague: Clone, bare: Clone
) -> None:
    """It came between the start of the agent and its end."""
    colleague.commit("Theirs", **{"theirs.txt": "t"})
    agent.does(f"env -u GIT_DIR git -C {colleague.path} push -q origin feature; {COMMITS}")
    team.ask("Which?")
    answer(team)
    assert bare.git("show", "feature:db.conf") == "db=Postgres"
    assert bare.git("show", "feature:theirs.txt") == "t"


def test_a_branch_made_anew_from_nothing_is_not_joined(
    team: Team, agent: Agent, colleague: Clone, bare: Clone
) -> None:
    """Deleted, and begun again without a common past: what the agent made stays beside it, and the status fails."""
    agent.does(COMMITS)
    gate = team.ask("Which?")
    colleague.git("checkout", "-q", "--orphan", "anew")
    head = colleague.commit("Anew", **{"new.txt": "n"})
    colleague.git("push", "-q", "-f", "origin", "HEAD:feature")
    with_head(team)
    answer(team)
    assert bare.git("rev-parse", "feature") == head
    assert status(team) == ("failure", f"{gate}: its commits are on gate/{gate}")


@pytest.mark.parametrize("pull", [False, True])
def test_an_old_name_that_others_use_now_is_theirs(
    team: Team, agent: Agent, colleague: Clone, bare: Clone, pull: bool
) -> None:
    """Somebody began another branch of that name, with a pull request or without: nothing of this gate reaches it."""
    colleague.commit("Before", **{"before.txt": "b"})
    push(team, colleague)
    team.agents.git("pull", "-q", "origin", "feature")
    agent.does(COMMITS)
    team.ask("Which?")
    bare.git("branch", "-m", "feature", "better-name")
    team.forge.pulls[THREAD]["head"]["ref"] = "better-name"
    team.forge.commits[team.agents.git("rev-parse", "HEAD")] = [THREAD]
    colleague.git("checkout", "-q", "-B", "theirs", "origin/main")
    theirs = colleague.commit("Another", **{"another.txt": "a"})
    colleague.git("push", "-q", "origin", "HEAD:feature")
    if pull:
        team.forge.open_pull(9, "feature", theirs)
    answer(team)
    assert bare.git("rev-parse", "feature") == theirs
    if (
        not pull
    ):  # Else the forge itself says that the name is another pull request's, and nothing is known of ours.
        assert bare.git("log", "-1", "--format=%s", "better-name") == "Use Postgres"


def test_a_branch_deleted_while_the_agent_worked_is_not_made_again(
    team: Team, agent: Agent, bare: Clone
) -> None:
    """It was there when the agent began: its commits are beside it, and the thread says why."""
    agent.does(f"git -C {bare.path} update-ref -d refs/heads/feature; {COMMITS}")
    gate = team.ask("Which?")
    answer(team)
    heads = bare.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split()
    assert heads == [f"gate/{gate}", "main"]
    assert "branch feature was deleted meanwhile" in left_behind(team)[0]


def test_a_branch_that_the_agent_made_is_no_deleted_one(team: Team, agent: Agent, bare: Clone) -> None:
    """One that it switched to while it worked never was there: it is not taken for one that somebody deleted."""
    agent.does(f"git checkout -q -b of-its-own; {COMMITS}")
    gate = team.ask("Which?")
    answer(team)
    assert "deleted meanwhile" not in team.gate(gate)["resume"]["reason"]
    assert bare.git("show", "of-its-own:db.conf") == "db=Postgres"


@pytest.mark.parametrize("merged", [False, True])
def test_what_was_deleted_is_not_made_again(team: Team, agent: Agent, bare: Clone, merged: bool) -> None:
    """Its pull request was merged or closed: the commits are kept on a branch of their own, and the thread says so."""
    agent.does(COMMITS)
    gate = team.ask("Which?")
    team.forge.pulls[THREAD] |= {"state": "closed", "merged": merged}
    bare.git("update-ref", "-d", "refs/heads/feature")
    answer(team)
    assert agent.starts == [gate]
    assert bare.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split() == [
        f"gate/{gate}",
        "main",
    ]
    (told,) = left_behind(team)
    assert f"its pull request was {'merged' if merged else 'closed'}" in told
    assert f"/compare/main...gate/{gate})" in told


def test_a_branch_that_was_never_pushed_is_made(team: Team, agent: Agent, bare: Clone) -> None:
    """Nobody deleted it: the agent's branch was in its clone alone."""
    team.agents.git("checkout", "-q", "-b", "of-its-own")
    agent.does(COMMITS)
    team.forge.commits[team.agents.git("rev-parse", "HEAD")] = [THREAD]
    team.ask("Which?")
    answer(team)
    assert bare.git("log", "-1", "--format=%s", "of-its-own") == "Use Postgres"


def test_commits_for_a_closed_pull_request_are_said_to_be_late(team: Team, agent: Agent, bare: Clone) -> None:
    """The branch is still there, and goes on; whoever merged it learns that there is more."""
    agent.does(COMMITS)
    gate = team.ask("Which?")
    team.forge.pulls[THREAD] |= {"state": "closed", "merged": True}
    answer(team)
    assert bare.git("log", "-1", "--format=%s", "feature") == "Use Postgres"
    assert team.gate(gate)["resume"]["branch"] == "feature"
    assert "merged" in team.gate(gate)["resume"]["reason"]


def test_who_answers_on_goes_on_on_the_branch(
    team: Team, agent: Agent, colleague: Clone, bare: Clone
) -> None:
    """A push before each of two answers: both are merged, and each of the agent's commits is there once."""
    agent.does(
        'echo "$GITGATE_ID" > "f$GITGATE_ID"; git add -A; git commit -qm "Made $GITGATE_ID"; git-gate ask "And now?" --agent scripted'
    )
    first = team.ask("Which?")
    colleague.commit("One", one="1")
    push(team, colleague)
    answer(team, first)
    (second,) = [c["body"][22:32] for c in team.forge.by(ROBOT) if f"follows gate `{first}`" in c["body"]]
    colleague.git("pull", "-q", "origin", "feature")
    colleague.commit("Two", two="2")
    push(team, colleague)
    agent.does('echo 2 > last; git add -A; git commit -qm "Last"')
    answer(team, second)
    made = bare.git("log", "--format=%s", "--no-merges", "main..feature").splitlines()
    assert sorted(made) == sorted([f"Made {first}", "Last", "One", "Two"])


@pytest.mark.parametrize("conflicts", [False, True])
def test_a_push_while_the_first_run_worked(
    team: Team, colleague: Clone, bare: Clone, conflicts: bool
) -> None:
    """Merged, or kept beside the branch with a red step and a comment: before, all of it was lost with the checkout."""
    job = team.clone_of(team.bare, "first", "-b", "feature")
    team.cli.quick("github", "prepare", cwd=job.path, env={"CI": "true"}, code=0)
    job.commit("Made", made="by the agent")
    team.cli.quick("ask", "Which?", "--no-push", "--agent", "scripted", cwd=job.path, code=0)
    tip = job.git("rev-parse", "HEAD")
    colleague.commit("Theirs", **{"made" if conflicts else "theirs": "t"})
    push(team, colleague)
    said = team.cli.quick("github", "publish", cwd=job.path, code=1 if conflicts else 0)
    assert len(bare.git("for-each-ref", "refs/hitl/open").splitlines()) == 1
    if not conflicts:
        assert "pushed feature, merged with 1 commit" in said.err
        assert (bare.git("rev-parse", "feature^2"), left_behind(team)) == (tip, [])
        return
    (told,) = left_behind(team)
    assert f"]({team.forge.site}/compare/feature...gate/{tip[:10]})" in told
    assert bare.git("rev-parse", f"gate/{tip[:10]}") == tip
