"""`git gate doctor` about GitHub: what is written, what it may, whose token; and, when asked to, what GitHub itself says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.testbed.command import Command
from support.testbed.repositories import Clone

from .conftest import Team

PIN = "team/git-gate@" + "a1" * 20
Look = Callable[..., dict[str, tuple[str, str]]]


@pytest.fixture
def look(repo: Clone, cli: Command, monkeypatch: pytest.MonkeyPatch) -> Look:
    """A clone of a repository on GitHub; what `doctor` says of it, by name: the worst state, and all of the words."""
    repo.git("remote", "add", "origin", "https://github.com/team/project")
    repo.git("config", "gitgate.workflows", PIN)

    def looked(*flags: str) -> dict[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        for one in cli.quick("doctor", "--json", *flags).json["findings"]:
            state, words = found.get(one["name"], ("good", ""))
            worst = max(state, one["state"], key=["good", "missing", "wrong"].index)
            found[one["name"]] = (worst, f"{words} {one['words']} {one['mend']}")
        return found

    return looked


def answers(repo: Clone) -> Path:
    return repo.path / ".github/workflows/gitgate.yml"


def test_elsewhere_it_says_nothing(repo: Clone, cli: Command) -> None:
    """Whoever is not on GitHub hears nothing of it."""
    repo.git("remote", "add", "origin", "https://git.example.org/team/project")
    assert "github" not in cli.quick("doctor", "--json").out.lower()


def test_what_is_missing_is_said_with_the_command(look: Look) -> None:
    """Before anything was set up."""
    found = look()
    assert found["workflow gitgate.yml"][0] == "missing"
    assert "git gate init --github" in found["workflow gitgate.yml"][1]
    assert "gh auth login" in found["github token"][1]
    assert "forgeIssue" in found["github place"][1]


def test_what_is_written_is_looked_at(
    look: Look, repo: Clone, cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Committed to the default branch, at this commit, with an agent: good. The token's place is told, the token is not."""
    said = cli.quick("init", "--github", code=0).err
    assert said.endswith("git push\nwhat is missing then: git gate doctor\n")
    assert "agent-package is empty" in look()["workflow gitgate.yml"][1]
    for name in ("gitgate.yml", "gitgate-agent.yml"):
        place = repo.path / ".github/workflows" / name
        text = place.read_text().replace('agent-package: ""', 'agent-package: "reviewer@1.2.3"')
        place.write_text(text.replace('session-recipients: ""', 'session-recipients: "age1x"'))
    repo.git("update-ref", "refs/remotes/origin/main", "HEAD")
    repo.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    assert "not on the default branch" in look()["workflow gitgate.yml"][1]
    repo.git("add", "-A")
    repo.git("commit", "-qm", "Workflows")
    repo.git("update-ref", "refs/remotes/origin/main", "HEAD")
    monkeypatch.setenv("GH_TOKEN", "a-secret-token")
    monkeypatch.setenv("GITGATE_FORGE_ISSUE", "12")
    found = look()
    for name in ("workflow gitgate.yml", "workflow gitgate-agent.yml", "github token", "github place"):
        assert found[name][0] == "good"
    assert "GH_TOKEN" in found["github token"][1]
    assert "a-secret-token" not in str(found)
    assert "github sessions" not in found


def test_the_default_branch_before_anything_says_which_it_is(look: Look, repo: Clone, cli: Command) -> None:
    """A first push tells no clone which branch is the default one; where nothing was pushed, nothing is claimed."""
    cli.quick("init", "--github", code=0)
    said = look()["workflow gitgate.yml"][1]
    assert "of the default branch nothing is known yet" in said
    assert "in place" not in said
    repo.git("update-ref", "refs/remotes/origin/main", "HEAD")
    assert "not on the default branch" in look()["workflow gitgate.yml"][1]
    repo.git("add", "-A")
    repo.git("commit", "-qm", "Workflows")
    repo.git("update-ref", "refs/remotes/origin/main", "HEAD")
    assert "in place" in look()["workflow gitgate.yml"][1]


@pytest.mark.parametrize(
    ("old", "new", "state", "words"),
    [
        ("a1" * 20, "main", "wrong", "can be moved"),
        ("a1" * 20, "b2" * 20, "missing", "another commit"),
        ('commit: "' + "a1" * 20, 'commit: "' + "b2" * 20, "wrong", "several commits of git gate"),
        ("sweep.yml@" + "a1" * 20, "sweep.yml@" + "b2" * 20, "wrong", "several commits of git gate"),
        ("      statuses: write\n", "", "wrong", "may not write statuses"),
        ("      checks: write\n", "", "wrong", "may not write checks"),
        ("  schedule:\n", "  page_build:\n", "wrong", "does not run on schedule"),
        ("# Written by", "# Not written by", "missing", "somebody else's"),
        ("jobs:", "jobs: [", "wrong", "gitgate.yml"),
        ('session-recipients: ""', 'session-recipients: "age1x"\n      x: y', "good", ""),
        ("      SESSION_KEY: ${{ secrets.SESSION_KEY }}\n", "", "good", ""),
    ],
)
def test_what_is_wrong_with_it(
    look: Look, repo: Clone, cli: Command, old: str, new: str, state: str, words: str
) -> None:
    """Each with what mends it; a key is needed only for sessions that are encrypted."""
    cli.quick("init", "--github", code=0)
    text = answers(repo).read_text().replace('agent-package: ""', 'agent-package: "reviewer@1.2.3"')
    assert old in text
    answers(repo).write_text(text.replace(old, new))
    found = look()
    said = found.get("github workflows") or found["workflow gitgate.yml"]
    assert said[0] == state
    assert words in said[1]


def test_encrypted_sessions_need_their_key(look: Look, repo: Clone, cli: Command) -> None:
    """A job that encrypts and cannot open goes nowhere."""
    cli.quick("init", "--github", code=0)
    text = answers(repo).read_text().replace('session-recipients: ""', 'session-recipients: "age1x"')
    answers(repo).write_text(text.replace("      SESSION_KEY: ${{ secrets.SESSION_KEY }}\n", ""))
    assert "not given the key" in look()["workflow gitgate.yml"][1]


@pytest.mark.slow
def test_github_is_asked_only_when_told_to(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """The token's rights, the workflows as Actions knows them, and the names of secrets, for whom it tells them."""
    agents, cli = team.agents, team.cli
    agents.git("config", "gitgate.workflows", PIN)
    cli.quick("init", "--github", cwd=agents.path, code=0)

    def asked(token: str) -> str:
        monkeypatch.setenv("GITHUB_TOKEN", token)
        return cli.quick("doctor", "--online", cwd=agents.path).out

    before = len(team.forge.asked)
    cli.quick("doctor", cwd=agents.path)
    assert len(team.forge.asked) == before
    said = asked("ada-token")
    assert "the token may write to team/project" in said
    assert "GitHub knows no such workflow" in said
    assert "gh secret set ANTHROPIC_API_KEY" in said
    assert "gh secret set SESSION_KEY" not in said
    team.forge.workflows = {"gitgate.yml": "active", "gitgate-agent.yml": "disabled_manually"}
    team.forge.secrets = ["ANTHROPIC_API_KEY"]
    said = asked("ada-token")
    assert "gh workflow enable gitgate-agent.yml" in said
    assert "github secret ANTHROPIC_API_KEY: it is there" in said
    team.forge.join("eve", token="eve-token")
    said = asked("eve-token")
    assert "may not write" in said
    assert "only an administrator's token" in said
    assert "401" in asked("wrong-token")


@pytest.mark.parametrize("forge", ["github", "gitea"])
def test_a_token_that_does_not_count_there_is_not_asked_for(
    repo: Clone, cli: Command, monkeypatch: pytest.MonkeyPatch, forge: str
) -> None:
    """Another host is told no token that is meant for github.com, and the variables that count for it are named."""
    repo.git("remote", "add", "origin", "https://git.example.org/team/project")
    repo.git("config", "gitgate.forge", forge)
    monkeypatch.setenv("GITHUB_TOKEN", "for-github-com")
    said = cli.quick("github", "sweep", code=1).err
    assert "no token for git.example.org" in said
    assert "set GITGATE_GITHUB_TOKEN, GH_ENTERPRISE_TOKEN or GITHUB_ENTERPRISE_TOKEN" in said
    assert ("gh auth login --hostname git.example.org, or" in said) == (forge == "github")


def test_on_line_where_there_is_no_github(repo: Clone, cli: Command) -> None:
    """What is set up for another forge is not to be set up otherwise, and where nothing is, that is said."""

    def said() -> list[str]:
        found = cli.quick("doctor", "--online", "--json").json["findings"]
        return [f"{one['words']} {one['mend']}" for one in found if one["name"] == "github"]

    (alone,) = said()
    assert "no remote" in alone
    assert "gitgate.forge" not in alone
    repo.git("remote", "add", "origin", "https://git.example.org/team/project")
    assert "git config gitgate.forge github   (or gitea, gitlab)" in said()[0]
    repo.git("config", "gitgate.forge", "gitea")
    (gitea,) = said()
    assert "git.example.org (gitea) is not asked" in gitea
    assert "git config" not in gitea


# the agent of a job


def written(repo: Clone, cli: Command, **given: str) -> None:
    """The workflows, the agent's with other inputs."""
    cli.quick("init", "--github", code=0)
    place = repo.path / ".github/workflows/gitgate-agent.yml"
    before, with_, after = place.read_text().partition("    with:\n")
    head, package, rest = after.partition("      task:")
    command = given.pop("command", "")
    head = f"      command: '{command}'\n" if command else head
    more = "".join(f"      {name}: '{value}'\n" for name, value in given.items())
    place.write_text(f"{before}{with_}{head}{more}{package}{rest}")


def test_the_agent_as_it_is_written_can_ask(look: Look, repo: Clone, cli: Command) -> None:
    """And edit, and commit; with what the project permits besides."""
    written(repo, cli)
    repo.git("branch", "-M", "main")
    assert look()["agent of the job agent"] == ("good", " Claude Code asks, edits files and commits there ")
    repo.git("config", "gitgate.protectedBranch", "main")
    repo.commit("rules", **{".claude/settings.json": '{"permissions": {"allow": ["Bash(make:*)"]}}'})
    repo.git("update-ref", "refs/remotes/origin/main", "HEAD")
    assert "what 1 rules of .claude/settings.json permit" in look()["agent of the job agent"][1]


@pytest.mark.parametrize(
    ("given", "state", "words"),
    [
        ({"command": "claude -p"}, "wrong", "no JSON list"),
        ({"command": "[" * 50_000}, "wrong", "no JSON list"),
        ({"command": '["claude", "-p", "{task}"]'}, "wrong", "not offered to ask"),
        (
            {"command": '["claude", "-p", "--permission-prompt-tool=stdio", "{task}"]'},
            "wrong",
            "which session",
        ),
        ({"command": '["npx", "@anthropic-ai/claude-code", "-p"]'}, "wrong", "not offered to ask"),
        ({"command": '["./claude.sh", "{task}"]'}, "missing", "its questions are refused"),
        ({"command": '["./agent.sh", "{task}"]'}, "missing", "started again with an answer"),
        (
            {"command": '["./agent.sh"]', "agent-name": "reviewer", "agent-resume": '["./agent.sh"]'},
            "good",
            "started again as reviewer",
        ),
    ],
)
def test_an_agent_that_cannot_ask_is_found(
    look: Look, repo: Clone, cli: Command, given: dict[str, str], state: str, words: str
) -> None:
    """Before a job is green in which nobody was asked."""
    written(repo, cli, **given)
    found = look()["agent of the job agent"]
    assert found[0] == state
    assert words in found[1]


@pytest.mark.parametrize("name", ["gitgate-agent.yml", "gitgate.yml"])
@pytest.mark.parametrize("given", ["", " []", " word", " 3"])
def test_a_job_that_is_given_nothing(look: Look, repo: Clone, cli: Command, name: str, given: str) -> None:
    """An empty `with:`, or one that is no mapping, is told as what it lacks; so are its other parts."""
    cli.quick("init", "--github", code=0)
    place = repo.path / ".github/workflows" / name
    head = place.read_text().partition("    with:\n")[0]
    place.write_text(f"{head}    with:{given}\n    secrets:{given}\n")
    found = look()
    assert "agent-package is empty" in found[f"workflow {name}"][1]
    if name == "gitgate-agent.yml":
        assert "no JSON list" in found["agent of the job agent"][1]


@pytest.mark.parametrize(
    "said", ["on: 3\njobs: []\n", "on: issue_comment\njobs: word\n", "on:\njobs:\n", "- on\n"]
)
def test_a_workflow_that_says_something_else(look: Look, repo: Clone, cli: Command, said: str) -> None:
    cli.quick("init", "--github", code=0)
    head = answers(repo).read_text().partition("name:")[0]
    answers(repo).write_text(head + said)
    found = look()
    assert (found.get("github workflows") or found["workflow gitgate.yml"])[0] == "wrong"


def test_a_project_that_forbids_all_work_is_told(look: Look, repo: Clone, cli: Command) -> None:
    """And one whose rules cannot be read: its agents are not started."""
    written(repo, cli)
    repo.git("config", "gitgate.protectedBranch", "main")
    for text, name, state in (
        ('{"permissions": {"deny": ["Edit"]}}', "agent of the job agent", "missing"),
        ("{", "github agents", "wrong"),
    ):
        repo.commit("rules", **{".claude/settings.json": text})
        repo.git("update-ref", "refs/remotes/origin/main", "HEAD")
        assert look()[name][0] == state
