"""An answer from a terminal, where the remote is a forge: what picks it up, and when."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from gitgate.acts import open_gate
from gitgate.context import open_desk
from gitgate.context.targets import read_address
from gitgate.errors import Failure
from gitgate.gates.agency import kept_back
from gitgate.runners.github import ssh_host
from gitgate.surfaces.forge.hosts.connect import ForgePlace, connect, find_place, find_token
from support.forges.standin import Fault
from support.resuming import Agent
from support.signing import make_key, publish_policy
from support.testbed.command import Command
from support.testbed.repositories import Clone

from .conftest import Team


@pytest.mark.slow
@pytest.mark.usefixtures("agent")
def test_answering_starts_a_job(team: Team) -> None:
    """With the person's token; the id and the commit go, the answer does not."""
    gate = team.ask("Which?")
    said = team.cli.quick("respond", gate, "secret words", cwd=team.agents.path, code=0)
    assert f"a job resumes it: {team.forge.site}/actions/runs/7" in said.err
    (sent,) = team.forge.dispatched
    assert sent["inputs"] == {"gate": gate, "commit": team.gate(gate)["answer"]["commit"]}
    assert "secret" not in json.dumps(sent)


@pytest.mark.slow
def test_the_job_that_is_started_acts_on_it(team: Team, agent: Agent) -> None:
    """The dispatch's own event, as the forge makes it of what was sent."""
    gate = team.ask("Which?")
    team.cli.quick("respond", gate, "Postgres", cwd=team.agents.path, code=0)
    (sent,) = team.forge.dispatched
    event = {
        "inputs": sent["inputs"],
        "ref": f"refs/heads/{sent['ref']}",
        "repository": {"full_name": team.forge.repository},
        "sender": team.forge.accounts["ada"].shape,
    }
    team.cli.quick("github", "accept", str(team.event_file(event)), "--resume", cwd=team.job().path, code=0)
    assert agent.starts == [gate]


@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize(
    ("flags", "words"),
    [(("--no-resume",), "git gate github dispatch"), (("--no-push",), "saved, not pushed: git gate sync")],
)
def test_nobody_is_asked_where_it_is_not_wanted(team: Team, flags: tuple[str, ...], words: str) -> None:
    """And it says what would do it."""
    gate = team.ask("Which?")
    assert words in team.cli.quick("respond", gate, "Postgres", *flags, cwd=team.agents.path, code=0).err
    assert team.forge.dispatched == []


@pytest.mark.usefixtures("agent")
def test_without_a_token_it_says_what_will_pick_it_up(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is safe and pushed; nothing failed."""
    gate = team.ask("Which?")
    monkeypatch.delenv("GITHUB_TOKEN")
    said = team.cli.quick("respond", gate, "Postgres", cwd=team.agents.path, code=0)
    assert "no token" in said.err
    assert "no sweep acts on it" in said.err
    commit = team.gate(gate)["answer"]["commit"]
    assert f"gh workflow run gitgate.yml -f gate={gate} -f commit={commit}" in said.err
    assert f"git gate github dispatch {gate[:6]}" in said.err
    assert team.gate(gate)["state"] == "answered"


@pytest.fixture
def kept(team: Team, agent: Agent) -> str:
    """A gate whose session stays in the clone that asked, as by default."""
    team.agents.git("config", "gitgate.session", "local")
    return team.ask("Which?")


@pytest.mark.parametrize("flags", [(), ("--no-resume",)])
@pytest.mark.parametrize("token", [True, False])
def test_no_job_is_promised_that_has_no_session(
    team: Team, kept: str, flags: tuple[str, ...], token: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would fail. Where the session is, it says what starts it, and what shares the next one."""
    if not token:
        monkeypatch.delenv("GITHUB_TOKEN")
    said = team.cli.quick("respond", kept, "Postgres", *flags, cwd=team.agents.path, code=0).err
    assert "no job has its session (git config gitgate.session push shares them)" in said
    assert f"nothing will resume this by itself: git gate resume {kept[:4]}" in said
    assert "dispatch" not in said
    assert team.forge.dispatched == []


@pytest.mark.slow
def test_whoever_answers_elsewhere_is_told_where_the_session_is(team: Team, kept: str) -> None:
    """The record names the place; a job that is asked for all the same is refused with it."""
    bob = team.job()
    team.cli.quick("sync", cwd=bob.path, code=0)
    said = team.cli.quick("respond", kept, "Postgres", cwd=bob.path, code=0).err
    place = f"on {socket.gethostname()} in {team.agents.path}"
    assert f"no job has its session; it was asked {place}: there, git gate resume {kept[:4]}" in said
    refused = team.cli.quick("github", "dispatch", kept, cwd=bob.path, code=1).err
    assert f"it stayed where scripted asked ({place})" in refused
    assert team.forge.dispatched == []


@pytest.mark.usefixtures("agent")
def test_whoever_answers_elsewhere_starts_a_job_that_has_the_session(team: Team) -> None:
    """Their clone does not know it, and asks the shared repository; it brings nothing of the conversation."""
    gate = team.ask("Which?")
    bob = team.job()
    team.cli.quick("sync", cwd=bob.path, code=0)
    said = team.cli.quick("respond", gate, "Postgres", cwd=bob.path, code=0)
    assert "a job resumes it" in said.err
    assert [one for one in bob.refs() if "sessions" in one] == []


@pytest.mark.slow
def test_a_sweep_hands_on_no_gate_whose_session_stayed(team: Team, kept: str, agent: Agent) -> None:
    """It says so, once on the thread as well; on the machine that has the session it starts the agent."""
    team.reply("/answer Postgres")
    for _ in range(2):
        swept = team.cli.quick("github", "sweep", "--json", cwd=team.job().path, code=0).json
        assert swept["resume"] == []
        assert "it stayed where scripted asked" in swept["doubts"][kept]
    (told,) = [words for words in team.told() if f"git gate resume {kept}" in words]
    assert "dispatch" not in told
    team.cli.quick("github", "sweep", "--resume", cwd=team.agents.path, code=0)
    assert agent.starts == [kept]


@pytest.mark.usefixtures("agent")
def test_who_cannot_ask_where_a_session_is_says_nothing_of_it(team: Team) -> None:
    """A repository that is away has nothing to say."""
    team.agents.git("config", "gitgate.session", "local")
    name = team.ask("Which?")
    desk = open_desk(team.agents.path, os.environ)
    assert kept_back(desk, [open_gate(desk, name)]) == {name}
    team.agents.git("remote", "set-url", "origin", "file:///nonexistent/x.git")
    assert kept_back(desk, [open_gate(desk, name)]) == frozenset()
    desk.close()


@pytest.mark.slow
def test_a_signed_answer_is_picked_up_by_the_sweep(
    team: Team, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so, and when; and the sweep does."""
    ada = make_key(tmp_path / "keys", "ada", "ada@example.org")
    publish_policy(team.bare, "policy:\n  rules: []\n", signers=ada.line)
    team.agents.git("fetch", "-q", "origin")
    ada.used_by(team.agents)
    gate = team.ask("Which?")
    monkeypatch.delenv("GITHUB_TOKEN")
    said = team.cli.quick("respond", gate, "Postgres", "--sign", cwd=team.agents.path, code=0)
    assert "the next sweep of gitgate.yml resumes it, by default within half an hour" in said.err
    monkeypatch.setenv("GITHUB_TOKEN", "job-token")
    team.cli.quick("github", "sweep", "--resume", cwd=team.job().path, code=0)
    assert agent.starts == [gate]


@pytest.mark.slow
@pytest.mark.usefixtures("agent")
def test_nobody_waits_long_before_a_terminal(team: Team) -> None:
    """A rate limit of a minute is said, not waited for."""
    gate = team.ask("Which?")
    team.forge.faults = [Fault(403, words="You have exceeded a secondary rate limit", methods=("POST",))]
    said = team.cli.quick("respond", gate, "Postgres", cwd=team.agents.path, code=0)
    assert "secondary rate limit" in said.err
    assert team.forge.dispatched == []


@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize("status", [401, 404, 422])
def test_a_forge_that_refuses_is_no_failure_of_the_answer(team: Team, status: int) -> None:
    """It says why, and what to do later."""
    gate = team.ask("Which?")
    team.forge.faults = [Fault(status, methods=("POST",))]
    said = team.cli.quick("respond", gate, "Postgres", cwd=team.agents.path, code=0)
    assert f"answered {status}" in said.err
    assert "later: git gate github dispatch" in said.err


@pytest.mark.usefixtures("agent")
def test_an_agent_vouches_for_nothing(team: Team) -> None:
    """Row 1: its shell may have the person's token, not their judgement."""
    gate = team.ask("Which?")
    team.cli.quick("respond", gate, "Postgres", "--no-resume", cwd=team.agents.path, code=0)
    team.cli.quick("github", "dispatch", gate, cwd=team.agents.path, env={"CLAUDECODE": "1"}, code=4)
    assert team.forge.dispatched == []


@pytest.mark.parametrize(
    ("address", "host", "path"),
    [
        ("https://github.com/team/project.git", "github.com", "team/project"),
        ("https://ada:token@github.com/team/project", "github.com", "team/project"),
        ("git@github.com:team/project.git", "github.com", "team/project"),
        ("ssh://git@ssh.github.com:443/team/project.git", "github.com", "team/project"),
        ("git@ssh.github.com:team/project.git", "github.com", "team/project"),
        ("https://www.github.com/team/project", "github.com", "team/project"),
        ("git+ssh://git@github.com/team/project", "github.com", "team/project"),
        ("work:team/project", "work", "team/project"),
        ("https://gitlab.example.org/group/inner/project.git", "gitlab.example.org", "group/inner/project"),
        ("git@gitlab.example.org:group/inner/deeper/project.git", "gitlab.example.org", "group/inner/deeper/project"),
        ("https://git.example.org:8443/team/project", "git.example.org:8443", "team/project"),
        ("https://git.example.org:443/team/project", "git.example.org", "team/project"),
        ("ssh://git@git.example.org:2222/team/project", "git.example.org", "team/project"),
        ("https://git.example.org:port/team/project", "", ""),
        ("https://[::1/team/project", "", ""),
        ("./a:b", "", ""),
        ("ssh://git@git.example.org/team/project.git", "git.example.org", "team/project"),
        ("/srv/git/project.git", "", ""),
        ("https://github.com.evil.example/team/project", "github.com.evil.example", "team/project"),
    ],
)  # fmt: skip
def test_an_address_is_read(address: str, host: str, path: str) -> None:
    """In any of git's spellings."""
    found = read_address(address)
    assert (found.host, found.path) == (host, path)


def place_of(repo: Clone, address: str, **settings: str) -> ForgePlace | None:
    repo.git("remote", "add", "origin", address)
    for key, value in settings.items():
        repo.git("config", f"gitgate.{key}", value)
    desk = open_desk(repo.path, os.environ)
    try:
        return find_place(desk)
    finally:
        desk.close()


@pytest.mark.parametrize(
    ("address", "settings", "api"),
    [
        ("git@github.com:team/project.git", {}, "https://api.github.com"),
        ("ssh://git@ssh.github.com:443/team/project.git", {}, "https://api.github.com"),
        ("https://git.example.org:8443/team/project", {"forge": "github"}, "https://git.example.org:8443/api/v3"),
        ("git@work:team/project", {"forge": "github", "forgeApi": "https://git.example.org/api/v3"}, "https://git.example.org/api/v3"),
        ("git@work:team/project", {}, None),
        ("https://git.example.org/group/inner/project", {"forge": "gitea"}, None),
        ("https://team.ghe.com/team/project", {}, "https://api.team.ghe.com"),
        ("https://git.example.org/team/project", {"forge": "github"}, "https://git.example.org/api/v3"),
        ("https://git.example.org/team/project", {"forge": "gitea"}, "https://git.example.org/api/v1"),
        ("http://git.example.org:3000/team/project.git", {"forge": "gitea"}, "http://git.example.org:3000/api/v1"),
        ("http://git.example.org:80/team/project", {"forge": "gitea"}, "https://git.example.org/api/v1"),
        ("http://git.example.org/team/project", {"forge": "gitea"}, "https://git.example.org/api/v1"),
        ("http://github.com:8080/team/project", {}, None),
        ("ssh://git@git.example.org:2222/team/project", {"forge": "gitea"}, "https://git.example.org/api/v1"),
        ("https://git.example.org/team/project", {}, None),
        ("https://github.com.evil.example/team/project", {}, None),
        ("https://github.com/team/project/more", {}, None),
    ],
)  # fmt: skip
def test_a_forge_is_known_by_its_address(
    repo: Clone, address: str, settings: dict[str, str], api: str | None
) -> None:
    """Or by this machine's configuration; nobody else gets a token."""
    found = place_of(repo, address, **settings)
    assert (found.api if found else None) == api


@pytest.mark.parametrize("address", ["ssh://git@ssh.github.com:443/team/project.git", "company:team/project"])
def test_other_ways_to_github_lead_to_its_own_pages(
    repo: Clone, address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The port for those behind a firewall, and what `url.*.insteadOf` makes of an address: links and tokens are github.com's."""
    repo.git("config", "url.https://github.com/.insteadOf", "company:")
    found = place_of(repo, address)
    assert found is not None
    assert (found.host, found.site) == ("github.com", "https://github.com/team/project")
    put_program(tmp_path, monkeypatch, "gh", 'test "$*" = "auth token --hostname github.com" && echo from-gh')
    desk = open_desk(repo.path, os.environ)
    assert find_token(desk, found) == "from-gh"
    desk.close()


def put_program(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, script: str) -> None:
    place = folder / "bin" / name
    place.parent.mkdir(exist_ok=True)
    place.write_text(f"#!/bin/sh\n{script}\n")
    place.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place.parent}:{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("said", "site"),
    [
        ("hostname github.com", "https://github.com/team/project"),
        ("hostname ssh.github.com", "https://github.com/team/project"),
        ("hostname github.com.evil.example", None),
        ("hostname git.example.org", None),
        ("", None),
    ],
)
def test_an_alias_of_ssh_is_looked_up(
    repo: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, site: str | None
) -> None:
    """As ssh itself reads its configuration; it is asked what it would do, and connects to nobody."""
    put_program(tmp_path, monkeypatch, "ssh", f'test "$*" = "-G -- github.com-work" && echo "{said}"')
    found = place_of(repo, "git@github.com-work:team/project.git")
    assert (found.site if found else None) == site


@pytest.mark.parametrize(
    "address", ["-oProxyCommand=id:team/project", "a b:team/project", "$(id):team/project"]
)
def test_no_strange_name_reaches_ssh(
    repo: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """Nothing is started for it."""
    put_program(tmp_path, monkeypatch, "ssh", f"touch {tmp_path}/started; echo hostname github.com")
    repo.git("config", "remote.origin.url", address)
    desk = open_desk(repo.path, os.environ)
    assert find_place(desk) is None
    desk.close()
    assert not (tmp_path / "started").exists()


def test_ssh_is_asked_once(
    repo: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Command
) -> None:
    """However often the address is looked at: its configuration may run programs of the person's each time."""
    script = f'echo "$*" >>{tmp_path}/asked; echo hostname git.example.org'
    put_program(tmp_path, monkeypatch, "ssh", script)
    repo.git("remote", "add", "origin", "git@work:team/project.git")
    cli.quick("doctor", cwd=repo.path)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [line for line in asked if line.startswith("-G")] == ["-G -- work"]


def test_without_ssh_a_name_is_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also where ssh does not know what to say."""
    assert ssh_host("work", {"PATH": str(tmp_path)}) == "work"
    put_program(tmp_path, monkeypatch, "ssh", "exit 255")
    assert ssh_host("work", os.environ) == "work"


@pytest.mark.parametrize(
    ("address", "setting"), [("git@work:team/project", "forgeApi"), ("/srv/git/x.git", "forge")]
)
def test_an_unknown_forge_is_said_with_what_to_set(repo: Clone, address: str, setting: str) -> None:
    """By what the remote looks like."""
    repo.git("remote", "add", "origin", address)
    desk = open_desk(repo.path, os.environ)
    with pytest.raises(Failure, match="no forge that is known") as failed:
        connect(desk)
    desk.close()
    assert f"git config gitgate.{setting} " in failed.value.hint
    assert ("(work)" in failed.value.message) == ("work" in address)


def test_no_branch_says_where_a_token_goes(repo: Clone) -> None:
    """What grants power is not read from the working tree."""
    at = "  forgeApi: https://evil.example\n  forgeAt: https://evil.example/a/b\n"
    repo.write(".gitgate.yml", f"settings:\n  forge: github\n{at}")
    assert place_of(repo, "https://git.example.org/team/project") is None


def test_tokens_are_found_in_their_order(
    repo: Clone, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The environment's, then that of `gh`, then what git would log in with; for another host only that host's."""
    found = place_of(repo, "https://github.com/team/project")
    assert found is not None
    other = ForgePlace("github", "git.example.org", "https://git.example.org/api/v3", "", "team/project")
    repo.git("config", "credential.helper", "!f() { echo username=ada; echo password=from-git; }; f")

    def token(place: ForgePlace) -> str:
        desk = open_desk(repo.path, os.environ)
        try:
            return find_token(desk, place)
        finally:
            desk.close()

    assert token(found) == "from-git"
    put_program(tmp_path, monkeypatch, "gh", 'test "$*" = "auth token --hostname github.com" && echo from-gh')
    assert token(found) == "from-gh"
    monkeypatch.setenv("GITHUB_TOKEN", "from-env")
    assert token(found) == "from-env"
    assert token(other) == "from-git"
