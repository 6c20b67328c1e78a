"""What holds of every agent's program, by its adapter alone; also of one that there is not (tests/support/made_up.py)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitgate import agents
from gitgate.agents import AGENTS, scrubbed, seen_by_git
from gitgate.agents.agent import Agent, AgentSettings, Start
from gitgate.model.gate import SessionRef
from gitgate.policy.project import configures, configuring_files
from support.made_up import MadeUp
from support.servers import SshServer
from support.testbed.command import COMMAND, Command, run_seen, shell_called
from support.testbed.repositories import Clone

SESSION = "5d14f5dd-8cd5-4721-9788-2e415584672d"
PROGRAMS: list[Agent] = [*AGENTS.values(), MadeUp()]
MARKS = [(agent, mark) for agent in PROGRAMS for mark in agent.all_marks]
NAMED = [agent for agent in PROGRAMS if agent.name != "command"]
FOR_PEOPLE = {
    "respond": ("respond", "{id}", "Postgres"),
    "signal": ("signal", "{id}", "--status", "CONTINUE"),
    "stop": ("stop", "{id}", "--reason", "enough"),
    "join": ("join", "{id}"),
    "fork": ("fork", "{id}", "Postgres"),
}


def name_of(value: object) -> str:
    return value.name if isinstance(value, Agent) else str(value)


@pytest.fixture(autouse=True)
def _one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The made-up program is in the registry, as if its line stood there."""
    monkeypatch.setitem(AGENTS, "made-up", MadeUp())


def marked(mark: str, value: str = "x") -> dict[str, str]:
    name, equals, said = mark.partition("=")
    return {name: said if equals else value}


@pytest.mark.parametrize(("agent", "mark"), MARKS, ids=name_of)
def test_no_agent_answers_where_its_mark_is(agent: Agent, mark: str, repo: Clone, cli: Command) -> None:
    """Each mark by itself, and each verb that is for people: refused, and nothing is written."""
    gate = cli.quick("ask", "Which?", "-q", code=0).line
    before = repo.refs("refs/hitl")
    for words in FOR_PEOPLE.values():
        said = cli.quick(*(word.format(id=gate) for word in words), env=marked(mark), code=4)
        assert f"{mark.partition('=')[0]} is set" in said.err
    assert repo.refs("refs/hitl") == before


@pytest.mark.parametrize(("agent", "mark"), MARKS, ids=name_of)
def test_a_mark_that_is_empty_or_anothers_is_none(agent: Agent, mark: str, repo: Clone, cli: Command) -> None:
    """A person may have the variable, too, where only its value says whose it is."""
    gate = cli.quick("ask", "Which?", "-q", code=0).line
    name, equals, _ = mark.partition("=")
    cli.quick("respond", gate, "Postgres", env={name: "somebody's" if equals else ""}, code=0)


@pytest.mark.parametrize("agent", PROGRAMS, ids=name_of)
def test_nothing_of_it_is_inherited(agent: Agent) -> None:
    """What a program leaves in the environment does not reach one that is started."""
    left = {name: value for mark in agent.all_marks for name, value in marked(mark, SESSION).items()}
    assert scrubbed({**left, "PATH": "/bin"}) == {"PATH": "/bin"}
    assert all(map(agents.is_agents, left))


@pytest.mark.parametrize("agent", NAMED, ids=name_of)
def test_it_asks_under_its_own_name(agent: Agent, repo: Clone, cli: Command) -> None:
    """By its conversation, where its shell names one; else by its program and the number of that."""
    for variable in agent.sessions:
        env = {**marked((agent.marks or agent.sessions)[0]), variable: SESSION}
        said = cli.quick("ask", "Which?", "--json", env=env, code=0).json
        assert said["asked"]["agent"] == f"repo/{SESSION[:4]}"
        assert said["delivery"] == ("resume" if agent.starts else "none")
        assert said["session"]["agent"] == (agent.name if agent.starts else None)
    env = {name: value for mark in agent.marks for name, value in marked(mark, "1").items()}
    said = cli.quick("ask", "Who?", "--json", env=env, code=0).json
    assert said["asked"]["agent"].startswith(f"agent-{agent.name}-")
    for variable in agent.process_ids:
        said = cli.quick("ask", "Who?", "--json", env={**env, variable: "4711"}, code=0).json
        assert said["asked"]["agent"] == f"agent-{agent.name}-4711"


@pytest.mark.parametrize("agent", NAMED, ids=name_of)
def test_a_session_that_is_given_is_its_own(agent: Agent, repo: Clone, cli: Command) -> None:
    """By the name that its adapter has, or inside of it under any name: never taken for another program's."""
    mark = marked((agent.marks or agent.sessions)[0])
    for name, env in ((agent.name, {}), ("backend", mark), ("codex", {})):
        said = cli.quick("ask", "W?", "--agent", name, "--session", SESSION, "--json", env=env, code=0)
        assert said.json["session"]["agent"] == (name if name == "codex" else agent.name)
        assert "taken for" not in said.err
        assert (f"nothing here says how {agent.name} is started" in said.err) == (
            not agent.starts and name != "codex"
        )


@pytest.mark.parametrize("agent", NAMED, ids=name_of)
def test_it_takes_back_and_changes_what_it_asked_itself(agent: Agent, repo: Clone, cli: Command) -> None:
    """And nothing that another agent asked."""
    env = dict.fromkeys((*agent.sessions[:1], *agent.process_ids), SESSION)
    env |= marked((agent.marks or agent.sessions)[0], "1")
    env |= dict.fromkeys(agent.process_ids, "4711")
    own = cli.quick("ask", "Mine?", "-q", env=env, code=0).line
    others = cli.quick("ask", "Yours?", "-q", "--agent", "somebody", code=0).line
    assert "only its own" in cli.quick("withdraw", others, "--reason", "found", env=env, code=4).err
    cli.quick("withdraw", own, "--reason", "found", env=env, code=0)


@pytest.mark.parametrize("agent", PROGRAMS, ids=name_of)
def test_what_configures_it_is_restored(agent: Agent) -> None:
    """Each place that it names, in any folder and in any case, is looked for and counts as configuration."""
    places = [*agent.files, *(f"{folder}/deep/x.json" for folder in agent.folders)]
    for place in (*places, agent.rules_file) if agent.rules_file else places:
        assert configures(place.encode())
        assert configures(f"a/b/{place.upper()}".encode())
        assert not configures(f"{place}.txt".encode()) or "/" in place
    assert all(any(f"**/{name}" in spec for spec in configuring_files().specs) for name in agent.files)


def request(agent: Agent, folder: Path, settings: AgentSettings) -> Start:
    """As whoever starts it asks: what must not be inherited is taken off before."""
    env = {name: value for mark in agent.all_marks for name, value in marked(mark).items()}
    conversation = SessionRef(agent.name, SESSION)
    return Start(
        "gate",
        folder,
        folder / "run",
        "Go on.",
        conversation,
        settings=settings,
        env=scrubbed({**env, "PATH": "/bin"}),
    )


@pytest.mark.parametrize("agent", PROGRAMS, ids=name_of)
def test_it_is_started_as_itself(agent: Agent, tmp_path: Path) -> None:
    """By its own name where its adapter knows how, else as the machine says; without its marks, with its conversation."""
    line = AgentSettings(resume_template=("any-program", "{session}"))
    launch = agent.start(request(agent, tmp_path, AgentSettings() if agent.starts else line))
    own = agent.executable or agent.name
    assert launch.argv[0] == (own if agent.starts else "any-program")
    assert any(SESSION in word for word in launch.argv)
    marks = {mark.partition("=")[0] for mark in agent.all_marks} - {"GITGATE_SESSION"}
    assert marks.isdisjoint(launch.env)


# The processes above, in real trees.


def ways_to_run(agent: Agent, folder: Path) -> Iterator[tuple[str, str]]:
    """How its process may look: its own program; a script of its package, or of its name, run by an interpreter."""
    for name in (agent.name, *agent.processes):
        yield name, str(shell_called(folder / "own", name))
    for interpreter in ("node", "MainThread"):
        program = shell_called(folder / "by", interpreter)
        for package in agent.packages:
            script = folder / "node_modules" / package / "dist" / "index.js"
            script.parent.mkdir(parents=True, exist_ok=True)
            script.write_text('sh -c "$1"\n:\n')
            yield interpreter, f"{program} {script}"
        named = folder / "bin" / agent.name
        named.parent.mkdir(exist_ok=True)
        named.write_text('sh -c "$1"\n:\n')
        yield interpreter, f"{program} -u {named}"


@pytest.mark.parametrize(
    "agent",
    [
        # Of one agent in every run: the way through real processes is the same for all, and takes long.
        pytest.param(one, id=one.name, marks=[] if one.name == "codex" else [pytest.mark.slow])
        for one in AGENTS.values()
        if one.packages
    ],
)
def test_its_process_is_known(agent: Agent, repo: Clone, cli: Command, tmp_path: Path) -> None:
    """Also where its shell was given none of its marks: it does not answer, and asks under its name."""
    gate = cli.quick("ask", "Which?", "-q", code=0).line
    for number, (called, program) in enumerate(ways_to_run(agent, tmp_path / "programs")):
        flag = "" if called in ("node", "MainThread") else "-c "
        answer = f"{COMMAND} respond {gate} Postgres; exit $?"
        said = run_seen(f"{program} {flag}{shlex.quote(answer)}", repo.path)
        assert f"is {agent.name})" in said.err, program
        if number == 0:
            asks = run_seen(
                f"{program} {flag}{shlex.quote(f'{COMMAND} ask Who? --json; exit $?')}", repo.path
            )
            assert f'"agent": "agent-{agent.name}-' in asks.out
    assert cli.quick("show", gate, "--json", code=0).json["state"] == "awaiting"


@pytest.mark.parametrize("interpreter", ["node", "MainThread", "bun"])
def test_a_person_behind_an_interpreter_is_nobodys_agent(
    interpreter: str, repo: Clone, cli: Command, tmp_path: Path
) -> None:
    """An editor is run by one as well, and may have a file of such a name open."""
    gate = cli.quick("ask", "Which?", "-q", code=0).line
    program = shell_called(tmp_path / "by", interpreter)
    editor = tmp_path / "editor.js"
    editor.write_text('sh -c "$1"\n:\n')
    words = f"{program} {editor} {shlex.quote(f'{COMMAND} respond {gate} Postgres')} notes/gemini codex"
    said = run_seen(words, repo.path)
    assert cli.quick("show", gate, "--json", code=0).json["state"] == "answered", said.err


# What a shell says to git.

GEMINIS = {
    "GEMINI_CLI": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "4",
    "GIT_CONFIG_KEY_0": "core.sshCommand",
    "GIT_CONFIG_VALUE_0": "",
    "GIT_CONFIG_KEY_1": "core.hooksPath",
    "GIT_CONFIG_VALUE_1": "",
    "GIT_CONFIG_KEY_2": "user.name",
    "GIT_CONFIG_VALUE_2": "Somebody",
    "GIT_CONFIG_KEY_3": "credential.helper",
    "GIT_CONFIG_VALUE_3": "",
}


def test_git_asks_as_the_person_where_a_shell_hides_them(repo: Clone, cli: Command) -> None:
    """The name, the settings and the way to the remote are theirs; what somebody else set besides stays."""
    seen = seen_by_git(GEMINIS)
    assert seen == {
        "GEMINI_CLI": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "user.name",
        "GIT_CONFIG_VALUE_0": "Somebody",
    }
    repo.git("config", "--global", "gitgate.priority", "high")
    env = {name: value for name, value in GEMINIS.items() if "_2" not in name} | {"GIT_CONFIG_COUNT": "2"}
    said = cli("ask", "Which?", "--json", env=env, code=0).json
    assert (said["asked"]["by"], said["priority"]) == ("Ada Lovelace <ada@example.org>", "high")


@pytest.mark.slow
def test_git_reaches_a_server_where_a_shell_hides_the_way(
    sshd: SshServer, bare: Clone, repo: Clone, cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the person's own command for ssh, which their configuration names."""
    monkeypatch.delenv("GIT_SSH_COMMAND")
    repo.git("config", "--global", "core.sshCommand", sshd.command)
    repo.git("remote", "add", "origin", sshd.url(bare.path))
    asked = cli("ask", "Which?", "--push", "--json", env=GEMINIS, code=0).json
    assert asked["pushed"] is True
    assert f"refs/hitl/open/{asked['id']}" in bare.refs("refs/hitl")


@pytest.mark.parametrize("count", ["", "x", "-1", "99999", "2"])
def test_settings_of_ones_own_are_left_alone(count: str) -> None:
    """Outside of such a shell nothing is changed, and a count that is none is git's to complain about."""
    own = {**GEMINIS, "GEMINI_CLI": "", "GIT_CONFIG_COUNT": count}
    assert seen_by_git(own) is own
    assert (
        seen_by_git({"GEMINI_CLI": "1", "GIT_CONFIG_GLOBAL": "/my/own", "GIT_CONFIG_COUNT": count})[
            "GIT_CONFIG_GLOBAL"
        ]
        == "/my/own"
    )


EXPLICIT = {
    "COPILOT_CLI": "1",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.bareRepository",
    "GIT_CONFIG_VALUE_0": "explicit",
}


def test_a_shell_in_which_a_bare_repository_has_to_be_named(
    bare: Clone, clone_of: Callable[..., Clone], cli: Command
) -> None:
    """A clone asks, pushes and hears as ever; in the bare one the way to name it is told, and works."""
    clone = clone_of(bare)
    asked = cli("ask", "Which?", "--json", cwd=clone.path, env=EXPLICIT, code=0).json
    assert asked["pushed"] is True
    cli("sync", cwd=clone.path, env=EXPLICIT, code=0)
    cli("check", asked["id"], cwd=clone.path, env=EXPLICIT, code=8)
    refused = cli("list", cwd=bare.path, env=EXPLICIT, code=1)
    assert f"GIT_DIR={bare.path} git gate" in refused.err
    named = cli("list", "--json", cwd=bare.path, env={**EXPLICIT, "GIT_DIR": str(bare.path)}, code=0)
    assert [gate["id"] for gate in named.json["gates"]] == [asked["id"]]
