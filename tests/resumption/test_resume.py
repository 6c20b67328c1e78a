"""The loop without a server: an agent asks, a person answers, the agent goes on where it was, knowing the answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.resuming import Agent
from support.testbed.command import Command
from support.testbed.repositories import Clone

COMMITS = 'echo "db=$GITGATE_ANSWER" > db.conf; git add -A; git commit -qm "Use $GITGATE_ANSWER"'


def ask(cli: Command, *flags: str, cwd: Path | None = None) -> str:
    return cli.quick("ask", "Which database?", "--agent", "scripted", *flags, code=0, cwd=cwd).line


def shown(cli: Command, gate: str) -> dict[str, object]:
    found: dict[str, object] = cli.quick("show", gate, "--json", code=0).json
    return found


def test_the_agent_goes_on_where_it_was(repo: Clone, agent: Agent, cli: Command) -> None:
    """In its own directory, with its changes as it left them, and its commits tied to who decided."""
    agent.does(f"git status --porcelain > {agent.folder}/before; {COMMITS}")
    repo.write("staged", "s")
    repo.git("add", "staged")
    repo.write("untracked", "u")
    gate = ask(cli)
    cli.quick("respond", gate, "Postgres", code=0)
    done = cli.quick("resume", gate, "--json", code=0).json
    assert (agent.folder / "before").read_text() == "A  staged\n?? untracked\n"
    assert repo.git("log", "-1", "--format=%s%n%(trailers:unfold)").strip().splitlines() == [
        "Use Postgres",
        f"Gate: {gate}",
        "Decided-by: Ada Lovelace <ada@example.org>",
    ]
    assert done["gates"][0]["commits"] == [repo.git("rev-parse", "HEAD")]
    assert shown(cli, gate)["state"] == "resumed"
    assert agent.starts == [gate]


def test_the_answer_reaches_the_agent_in_every_way(repo: Clone, agent: Agent, cli: Command) -> None:
    """As a file, on its standard input and in its environment."""
    agent.does(
        f'cat > {agent.folder}/stdin; cp "$GITGATE_ANSWER_FILE" {agent.folder}/file; env > {agent.folder}/env;'
        f'cp "$GITGATE_PROMPT_FILE" {agent.folder}/prompt'
    )
    gate = ask(cli)
    cli.quick("respond", gate, "Postgres; $(touch pwned)", "--note", "after 18:00", code=0)
    cli.quick("resume", gate, code=0)
    said = json.loads((agent.folder / "file").read_text())
    assert said["answer"]["values"] == {"answer": "Postgres; $(touch pwned)"}
    assert (agent.folder / "stdin").read_text() == (agent.folder / "file").read_text()
    env = dict(line.partition("=")[::2] for line in (agent.folder / "env").read_text().splitlines())
    assert (env["GITGATE_NOTE"], env["GITGATE_GATE"], env["GITGATE_VERDICT"]) == (
        "after 18:00",
        gate,
        "answered",
    )
    assert not [name for name in env if name.startswith("GIT_")]
    assert "Which database?" in (agent.folder / "prompt").read_text()
    assert not (repo.path / "pwned").exists()


def test_a_signal_that_was_written_after_asking_is_no_edit(repo: Clone, agent: Agent, cli: Command) -> None:
    """The agent goes on in its own directory, and is not told of its own signal as of a person's change."""
    agent.does(f'cp "$GITGATE_PROMPT_FILE" {agent.folder}/prompt')
    repo.write("half.py", "half\n")
    gate = ask(cli)
    repo.write(".agents/signals/scripted.json", '{"status": "NEEDS_HUMAN", "reason": "Which database?"}')
    cli.quick("respond", gate, "Postgres", code=0)
    cli.quick("resume", gate, code=0)
    told = (agent.folder / "prompt").read_text()
    assert "Postgres" in told
    assert "scripted.json" not in told
    assert not [line for line in told.splitlines() if line.startswith(("diff --git", "+++", "---"))]


def test_a_waiting_gate_is_not_resumed(repo: Clone, agent: Agent, cli: Command) -> None:
    """It says that nobody has answered, and names the way into the agent's own session."""
    gate = ask(cli)
    said = cli.quick("resume", gate, code=8)
    assert "nobody has answered" in said.err
    assert "git gate join" in said.err
    assert agent.starts == []


def test_a_second_resume_changes_nothing(repo: Clone, agent: Agent, cli: Command) -> None:
    """What was acted on is not acted on again."""
    gate = ask(cli)
    cli.quick("respond", gate, "Postgres", code=0)
    cli.quick("resume", gate, code=0)
    cli.quick("resume", gate, code=5)
    cli.quick("resume", "--all", code=0)
    assert agent.starts == [gate]


def test_what_a_person_changed_meanwhile_is_kept_and_told(repo: Clone, agent: Agent, cli: Command) -> None:
    """Edits in the agent's directory stay, and the agent hears of them as a diff."""
    agent.does(f'cp "$GITGATE_PROMPT_FILE" {agent.folder}/prompt; cp notes {agent.folder}/notes')
    repo.write("notes", "by the agent\n")
    gate = ask(cli)
    repo.write("notes", "by the agent\nand by Ada\n")
    cli.quick("respond", gate, "Postgres", code=0)
    cli.quick("resume", gate, code=0)
    assert (agent.folder / "notes").read_text() == "by the agent\nand by Ada\n"
    assert "+and by Ada" in (agent.folder / "prompt").read_text()


def worktree_of(repo: Clone, gate: str) -> Path:
    """Where git says that the working tree of the gate's agent is."""
    lines = repo.git("worktree", "list", "--porcelain").splitlines()
    places = [Path(line.removeprefix("worktree ")) for line in lines if line.startswith("worktree ")]
    return next(place for place in places if place.name == gate)


def test_a_directory_that_went_on_is_left_alone(repo: Clone, agent: Agent, cli: Command) -> None:
    """Somebody committed there: the agent gets a working tree of its own, told how the branch moved, and cleaned up."""
    agent.does(f'pwd > {agent.folder}/pwd; cp "$GITGATE_PROMPT_FILE" {agent.folder}/prompt; {COMMITS}')
    repo.write("README", "by the agent\n")
    gate = ask(cli)
    repo.commit("Ada's own", README="by Ada\n")
    cli.quick("respond", gate, "Postgres", code=0)
    done = cli.quick("resume", gate, "--json", code=0).json["gates"][0]
    place = Path((agent.folder / "pwd").read_text().strip())
    assert place.name == gate
    assert ".git" not in place.parts, "Claude Code would refuse to write there"
    assert not place.exists()
    prompt = (agent.folder / "prompt").read_text()
    assert "went on by 1 commit meanwhile" in prompt
    assert "README" in prompt
    assert done["branch"] == f"gate/{gate}"
    assert repo.git("log", "-1", "--format=%s", f"gate/{gate}") == "Use Postgres"
    assert (repo.path / "README").read_text() == "by Ada\n"
    assert repo.git("worktree", "list").count("\n") == 0


@pytest.mark.slow
def test_a_worktree_with_uncommitted_changes_stays(repo: Clone, agent: Agent, cli: Command) -> None:
    """Nothing that the agent left uncommitted is thrown away; it is named."""
    agent.does("echo more > left")
    gate = ask(cli)
    repo.commit("moved on")
    cli.quick("respond", gate, "Postgres", code=0)
    said = cli.quick("resume", gate, code=0)
    place = worktree_of(repo, gate)
    assert str(place) in said.err
    assert (place / "left").read_text() == "more\n"


@pytest.mark.slow
def test_a_failing_agent_is_not_tried_for_ever(repo: Clone, agent: Agent, cli: Command) -> None:
    """One that decides to fail ends the gate as failed, with its own words and the place of its log; a person may retry."""
    agent.does("echo broken >&2; exit 3")
    gate = ask(cli)
    cli.quick("respond", gate, "Postgres", code=0)
    said = cli.quick("resume", gate, code=1)
    assert "broken" in said.err
    found = shown(cli, gate)
    assert found["state"] == "failed"
    resume = found["resume"]
    assert isinstance(resume, dict)
    assert "broken" in resume["reason"]
    assert "| broken\n" in Path(resume["log"]).read_text()
    agent.does("")
    cli.quick("resume", "--all", code=0)
    assert shown(cli, gate)["state"] == "failed"
    cli.quick("resume", gate, code=0)
    assert shown(cli, gate)["state"] == "resumed"


def test_a_failed_gate_says_what_can_be_done(repo: Clone, agent: Agent, cli: Command) -> None:
    """Wherever it is met: whoever resumed it, `show`, `status` and the list name the way on and the way out; both work."""
    agent.does("exit 3")
    gate = ask(cli)
    again, out = f"git gate resume {gate[:6]}", f"git gate stop {gate[:6]} --reason WHY"
    cli.quick("respond", gate, "Postgres", code=0)
    for said in (
        cli.quick("resume", gate, code=1).err,
        cli.quick("show", gate).out,
        cli.quick("status", gate).out,
    ):
        assert again in said
        assert out in said
    assert "resume or stop" in cli.quick("list").out
    cli.quick("stop", gate, "--reason", "not worth it", code=0)
    assert shown(cli, gate)["state"] == "stopped"


def test_what_the_agent_left_is_told(
    repo: Clone, agent: Agent, cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last words, without secrets, and what it did not commit, with the place: in `show`, the list and as JSON."""
    monkeypatch.setenv("SERVICE_TOKEN", "tok-31415926535")
    agent.does("echo more > left; mkdir sub; echo x > sub/deep; echo 'All done \x1b[2J with tok-31415926535'")
    gate = ask(cli)
    repo.commit("moved on")
    cli.quick("respond", gate, "Postgres", code=0)
    cli.quick("resume", gate, code=0)
    place, found = worktree_of(repo, gate), shown(cli, gate)["resume"]
    assert isinstance(found, dict)
    assert (found["left"], found["place"]) == (["left", "sub/"], str(place))
    assert "All done" in found["said"]
    letter = cli.quick("show", gate).out
    assert f" in {place}:\n    left\n    sub/\n" in letter
    assert "its last words:\n    All done" in letter
    listed = cli.quick("list", "--all").out
    assert "2 paths not committed" in listed
    assert "left: 2 paths not committed" in cli.quick("status", gate).out
    for said in (letter, listed, str(found), repo.git("log", "-p", f"refs/hitl/open/{gate}")):
        assert "31415926535" not in said
        assert "\x1b" not in said.replace("\\x1b", "")
    cli.quick("verify", code=0)


@pytest.mark.parametrize(
    "attempts", ["1", pytest.param("2", marks=pytest.mark.slow)]
)  # half a minute between them
def test_what_a_failed_agent_left_is_told(
    repo: Clone, agent: Agent, cli: Command, monkeypatch: pytest.MonkeyPatch, attempts: str
) -> None:
    """As of one that did its part, at its last attempt and where another follows; and how to go on, or not."""
    monkeypatch.setenv("SERVICE_TOKEN", "tok-31415926535")
    repo.git("config", "gitgate.maxAttempts", attempts)
    agent.does("echo more > left; echo 'The tests need tok-31415926535 and a database'; kill -9 $$")
    gate = ask(cli)
    repo.commit("moved on")
    cli.quick("respond", gate, "Postgres", code=0)
    cli.quick("resume", gate, code=1)
    record = repo.git("log", "-p", f"refs/hitl/open/{gate}")
    assert "The tests need" in record
    assert "31415926535" not in record
    if attempts == "1":
        place, found = worktree_of(repo, gate), shown(cli, gate)["resume"]
        assert isinstance(found, dict)
        assert (found["outcome"], found["left"], found["place"]) == ("failed", ["left"], str(place))
        letter = cli.quick("show", gate).out
        assert f" in {place}:\n    left\n" in letter
        assert "its last words:\n    The tests need" in letter
        assert f"git gate resume {gate[:6]}" in letter
        assert f"git gate stop {gate[:6]}" in letter


@pytest.mark.slow
def test_commits_that_did_not_reach_their_branch_are_told(repo: Clone, agent: Agent, cli: Command) -> None:
    """They are on a branch of their own, and it is said which one they were meant for; nothing else is left to tell."""
    agent.does(COMMITS)
    repo.write("README", "by the agent\n")
    gate = ask(cli)
    repo.commit("Ada's own", README="by Ada\n")
    cli.quick("respond", gate, "Postgres", code=0)
    cli.quick("resume", gate, code=0)
    found = shown(cli, gate)["resume"]
    assert isinstance(found, dict)
    assert (found["branch"], found["meant"], found["left"]) == (f"gate/{gate}", "main", [])
    assert f"its commits are not on main: git merge gate/{gate}" in cli.quick("show", gate).out
    assert f"commits on gate/{gate}, not on main" in cli.quick("list", "--all").out.replace("\n", "")


def test_an_agent_that_asked_again_left_nothing(repo: Clone, agent: Agent, cli: Command) -> None:
    """What it did not commit goes on with its new question: that is where it is shown."""
    agent.does("echo more > left; git gate ask 'And now?' --agent scripted; exit 8")
    gate = ask(cli)
    cli.quick("respond", gate, "Postgres", code=0)
    cli.quick("resume", gate, code=0)
    found = shown(cli, gate)["resume"]
    assert isinstance(found, dict)
    assert (found["outcome"], found["left"]) == ("resumed", [])


@pytest.mark.slow
def test_attempts_that_may_pass_are_repeated(repo: Clone, agent: Agent, cli: Command) -> None:
    """An agent that is killed is started again after a while, up to the number that is set; then the gate has failed."""
    repo.git("config", "gitgate.retryAfter", "0s")
    agent.does("kill -KILL $$")
    gate = ask(cli)
    cli.quick("respond", gate, "Postgres", code=0)
    cli.quick("resume", gate, code=1)
    assert agent.starts == [gate] * 3
    assert [event["event"] for event in shown_history(cli, gate)][2:] == ["claimed", "released"] * 2 + [
        "claimed",
        "failed",
    ]


def shown_history(cli: Command, gate: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = cli.quick("show", gate, "--json", code=0).json["history"]
    return found


def test_an_agent_that_asks_again_opens_a_gate_that_follows(repo: Clone, agent: Agent, cli: Command) -> None:
    """The first gate is resumed; the second one names it, waits, and is resumed in the same place."""
    agent.does('[ "$GITGATE_ANSWER" = yes ] || { git gate ask "Really?" --agent scripted; exit 8; }')
    first = ask(cli)
    cli.quick("respond", first, "perhaps", code=0)
    cli.quick("resume", first, code=0)
    (second,) = cli.quick("list", "--json", code=0).json["gates"]
    assert second["follows"] == first
    cli.quick("respond", second["id"], "yes", code=0)
    cli.quick("resume", second["id"], code=0)
    assert agent.starts == [first, second["id"]]


def test_a_resumed_agent_does_not_answer(repo: Clone, agent: Agent, cli: Command) -> None:
    """It runs as the person's process, with their identity; answering is refused all the same."""
    agent.does(f'git gate respond "$GITGATE_ID" again 2> {agent.folder}/said; echo $? >> {agent.folder}/said')
    gate = ask(cli)
    cli.quick("respond", gate, "Postgres", code=0)
    cli.quick("resume", gate, code=0)
    assert (agent.folder / "said").read_text().endswith("4\n")


@pytest.mark.parametrize("where", ["include", "gate"])
def test_a_branch_does_not_say_what_is_run(repo: Clone, agent: Agent, cli: Command, where: str) -> None:
    """Neither a file that the configuration includes from the working tree nor the name in a gate becomes a command."""
    name = "planted" if where == "include" else f"{agent.folder}/agent.sh"
    repo.write("planted.config", f'[gitgate "agent.planted"]\n\tresume = {agent.folder}/agent.sh\n')
    repo.git("config", "include.path", "../planted.config")
    gate = cli.quick("ask", "Which?", "--agent", name, "--session", "session-1", code=0).line
    cli.quick("respond", gate, "Postgres", code=0)
    cli.quick("resume", gate, code=1, env={"PATH": f"{Path('/usr/bin')}:{Path('/bin')}"})
    assert agent.starts == []


def test_a_session_that_is_not_the_asker_s_is_refused(repo: Clone, agent: Agent, cli: Command) -> None:
    """The record holds a digest of the conversation's name; another one under the same gate is not taken up."""
    gate, other = (ask(cli, "--session", f"session-{n}") for n in (1, 2))
    (repo.path / ".git/gitgate/asked.jsonl").unlink()
    repo.git("update-ref", f"refs/hitl/sessions/{gate}", repo.git("rev-parse", f"refs/hitl/sessions/{other}"))
    cli.quick("respond", gate, "Postgres", code=0)
    said = cli.quick("resume", gate, code=1)
    assert "changed by somebody else" in said.err
    assert agent.starts == []
