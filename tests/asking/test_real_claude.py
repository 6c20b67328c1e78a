"""Asking, with the real Claude Code: a scripted model asks, a person answers, and the model sees it. Both versions."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gitgate.agents.claude.command import hook_settings, hooks, plugin_folder
from support.lab.fixtures import MakeMachine
from support.lab.model import Reply
from support.lab.office import Office, rules
from support.testbed.repositories import Clone

from .conftest import MakeOffice

TOP = Path(__file__).parents[2]
pytestmark = [pytest.mark.claude, pytest.mark.slow]


def asked(text: str, *labels: str, several: bool = False) -> dict[str, object]:
    options = [{"label": label, "description": f"about {label}"} for label in labels]
    return {"question": text, "header": text.split()[1], "multiSelect": several, "options": options}


DATABASE = asked("Which database?", "Postgres", "SQLite")
ASK = Reply("I looked at the code.", [("AskUserQuestion", {"questions": [DATABASE]})], when="GO")
OVER = Reply("Over.", repeat=True)


def answer(office: Office, *said: str) -> str:
    """Answer the gate that waits and resume it; its id."""
    gate = str(office.waiting()["id"])
    office.respond(gate, *said)
    office.resume(gate)
    return gate


def test_a_question_becomes_a_gate_and_its_answer_reaches_the_model(office: MakeOffice) -> None:
    """The run ends, the work and the conversation are kept, and the model goes on with the answer and who gave it."""
    here = office(ASK, OVER)
    here.clone.write("draft.py", "half = 1\n")
    ended = here.run("GO")
    assert ended["stop_reason"] == "tool_deferred"
    gate = here.only()
    assert (gate["state"], gate["delivery"], gate["session"]["saved"]) == ("awaiting", "resume", True)
    (question,) = gate["questions"]
    assert (question["prompt"], question["type"]) == ("Which database?", "choice")
    assert [option["label"] for option in question["options"]] == ["Postgres", "SQLite"]
    assert "I looked at the code." in gate["context"]
    assert gate["work"]["files"] == 1
    assert here.clone.git("status", "--porcelain") == "?? draft.py"
    here.respond(gate["id"], "SQLite", "--note", "one file is enough")
    here.resume(gate["id"])
    assert '\\"Which database?\\"=\\"SQLite\\"' in here.shown
    for words in ("one file is enough", "Ada Lovelace", f"Gate: {gate['id']}", "Decided-by: Ada Lovelace"):
        assert words in here.shown
    assert here.only()["state"] == "resumed"


def test_two_questions_in_one_call(office: MakeOffice) -> None:
    """One gate, an answer for each, also several labels, a label with a comma, and words of one's own."""
    both = [
        asked("Which database?", "Postgres", "SQLite"),
        asked("Which parts, if any?", "API, v2", "Web", several=True),
    ]
    here = office(Reply("", [("AskUserQuestion", {"questions": both})], when="GO"), OVER)
    here.run("GO")
    gate = here.only()
    assert [question["type"] for question in gate["questions"]] == ["choice", "choices"]
    keys = [question["key"] for question in gate["questions"]]
    said = ("-a", f"{keys[0]}=other:DuckDB, if it can", "-a", f"{keys[1]}=#1,Web")
    answer(here, *said)
    shown = json.loads(json.dumps(here.shown)).replace("\\", "")
    assert '"Which database?"="DuckDB, if it can"' in shown
    assert '"Which parts, if any?"=""API, v2", Web"' in shown


def test_a_question_in_a_shell_ends_the_run(office: MakeOffice) -> None:
    """`git gate ask` opens a gate with the session; the run ends there, and goes on with the answer as its next words."""
    command = "git-gate ask 'Which database?' -o Postgres -o SQLite"
    ask = Reply("Asking.", [("Bash", {"command": command})], when="GO")
    here = office(ask, Reply("Thanks.", when="SQLite"))
    ended = here.run("GO", "--allowedTools", "Bash")
    assert ended["terminal_reason"] == "hook_stopped"
    gate = here.only()
    assert (gate["delivery"], gate["session"]["saved"]) == ("resume", True)
    answer(here, "SQLite")
    assert f"gate {gate['id']}" in here.shown
    assert here.only()["resume"]["outcome"] == "resumed"
    assert len(here.machine.model.requests()) == 2


def test_a_fork_goes_on_in_a_conversation_of_its_own(office: MakeOffice) -> None:
    """From where the agent asked: it never hears the first answer. What the first one said and kept stays as it is."""
    here = office(ASK, OVER)
    here.run("GO")
    gate = answer(here, "SQLite")
    first = {file: file.read_bytes() for file in here.machine.home.glob(".claude/projects/*/*.jsonl")}
    kept = here.clone.refs("refs/hitl")
    assert '\\"Which database?\\"=\\"SQLite\\"' in here.shown
    fork = here.gate("fork", gate, "Postgres", "--no-resume").line
    here.resume(fork)
    assert here.show(fork)["state"] == "resumed"
    assert '\\"Which database?\\"=\\"Postgres\\"' in here.shown
    assert "I looked at the code." in here.shown
    assert '=\\"SQLite' not in here.shown
    assert {file: file.read_bytes() for file in first} == first
    names = {file.name for file in here.machine.home.glob(".claude/projects/*/*.jsonl")}
    assert len(names) == 2
    now = here.clone.refs("refs/hitl")
    assert {ref: now[ref] for ref in kept} == kept


def test_a_second_gate_follows_the_first(office: MakeOffice) -> None:
    """A resumed agent asks again; the new gate names the old one, and is answered in its turn."""
    second = asked("Which port?", "80", "8080")
    here = office(ASK, Reply("", [("AskUserQuestion", {"questions": [second]})], when="Which database"), OVER)
    here.run("GO")
    first = answer(here, "Postgres")
    again = here.waiting()
    assert (again["follows"], again["questions"][0]["prompt"]) == (first, "Which port?")
    answer(here, "8080")
    assert '\\"Which port?\\"=\\"8080\\"' in here.shown
    assert [gate["state"] for gate in here.gates()] == ["resumed", "resumed"]


def test_two_calls_in_one_turn_lose_none(office: MakeOffice) -> None:
    """One waits; the other is told to ask again, does, and both answers reach the model."""
    other = {"questions": [asked("Which port?", "80", "8080")]}
    both = Reply("", [("AskUserQuestion", {"questions": [DATABASE]}), ("AskUserQuestion", other)], when="GO")
    here = office(
        both,
        Reply("", [("AskUserQuestion", other)]),
        Reply("", [("AskUserQuestion", {"questions": [DATABASE]})]),
        OVER,
    )
    here.run("GO")
    first = here.waiting()
    prompts = {"Which database?": "Postgres", "Which port?": "8080"}
    answer(here, prompts[first["questions"][0]["prompt"]])
    assert prompts[first["questions"][0]["prompt"]] in here.shown
    assert "ask this again" in here.shown
    assert here.waiting()["follows"] == first["id"]


@pytest.mark.parametrize("first", ["question", "shell"])
def test_a_second_question_ends_a_run_that_went_past_the_first(office: MakeOffice, first: str) -> None:
    """Started by hand while its question waits: the next question is denied, and no further call is made."""
    shell = Reply("", [("Bash", {"command": "git-gate ask 'Which database?'"})], when="GO")
    here = office(
        ASK if first == "question" else shell,
        Reply("", [("AskUserQuestion", {"questions": [asked("Which port?", "80", "8080")]})], when="never"),
        Reply("", [("Bash", {"command": "touch past"})]),
        OVER,
    )
    session = here.run("GO", "--allowedTools", "Bash")["session_id"]
    gate = here.only()["id"]
    here.run("never mind, go on", "--resume", session, "--allowedTools", "Bash")
    assert not (here.clone.path / "past").exists()
    assert here.only()["state"] == "awaiting"
    here.respond(gate, "SQLite")
    here.resume(gate)
    assert here.only()["state"] == "resumed"


TERRAFORM = Reply("Applying.", [("Bash", {"command": "cd . && touch applied # terraform apply"})], when="GO")
RULES = "approvals:\n  - call: Bash(touch applied*)\n    why: it changes production\n"


def test_a_call_that_needs_approval_is_made_when_it_is_given(office: MakeOffice) -> None:
    """Nothing happens before; then the very call is made, once, although nobody else allowed it."""
    here = office(TERRAFORM, OVER)
    rules(here.clone, RULES)
    here.run("GO")
    gate = here.only()
    assert gate["questions"][0]["type"] == "approval"
    assert "touch applied" in gate["questions"][0]["prompt"]
    assert "it changes production" in gate["context"]
    assert not (here.clone.path / "applied").exists()
    answer(here, "--approve")
    assert (here.clone.path / "applied").exists()
    assert "approved" in here.shown


def test_a_call_that_was_refused_is_not_made(office: MakeOffice) -> None:
    """The person's words are its result."""
    here = office(TERRAFORM, OVER)
    rules(here.clone, RULES)
    here.run("GO", "--allowedTools", "Bash")
    answer(here, "--reject", "--note", "not on a friday")
    assert not (here.clone.path / "applied").exists()
    assert "not on a friday" in here.shown
    assert here.only()["answer"]["verdict"] == "rejected"


def test_a_call_of_a_subagent_tells_its_caller(office: MakeOffice) -> None:
    """It cannot wait: nothing is opened and nothing is made, and it is told what to do."""
    task = {
        "description": "look",
        "prompt": "SUB-TASK",
        "subagent_type": "general-purpose",
        "run_in_background": False,
    }
    here = office(
        Reply("", [("Task", task)], when="GO"),
        Reply("", [("Bash", {"command": "touch applied"})], when="SUB-TASK"),
        Reply("", [("Bash", {"command": "git gate ask 'May I?'"})], when="You are a subagent"),
        OVER,
    )
    rules(here.clone, RULES)
    here.run("GO", "--allowedTools", "Bash,Task,Agent")
    said = json.dumps(here.machine.model.requests())
    assert said.count("You are a subagent, and cannot wait") >= 2
    assert not (here.clone.path / "applied").exists()
    assert here.gates() == []


def test_an_agent_does_not_answer_its_own_gate(office: MakeOffice) -> None:
    """The command is refused before it is run, however it is dressed."""
    here = office(
        ASK,
        Reply("", [("Bash", {"command": "env -u CLAUDECODE sh -c 'git gate respond --all'"})]),
        OVER,
    )
    here.run("GO")
    here.run("TWO", "--allowedTools", "Bash")
    assert "is for people" in json.dumps(here.machine.model.requests())
    assert here.only()["state"] == "awaiting"


def test_last_words_that_ask_become_a_gate(office: MakeOffice) -> None:
    """A run that ends with a `needs_input` object has asked, and is resumed with the answer."""
    need = {
        "status": "needs_input",
        "question": "JWT or sessions?",
        "summary": "Auth",
        "details": "registered users",
    }
    here = office(
        Reply("Done so far.\n```json\n" + json.dumps(need) + "\n```", when="GO"),
        Reply("Thanks.", when="JWT, please"),
    )
    here.run("GO")
    gate = here.only()
    assert (gate["title"], gate["questions"][0]["prompt"], gate["delivery"]) == (
        "Auth",
        "JWT or sessions?",
        "resume",
    )
    assert "registered users" in gate["context"]
    answer(here, "JWT, please")
    assert len(here.machine.model.requests()) == 2
    assert len(here.gates()) == 1


def test_a_signal_file_becomes_a_gate_once(office: MakeOffice) -> None:
    """It stays where it is; one from before is nobody's, and an agent that goes on beside it does not ask again."""
    signal = json.dumps({"status": "NEEDS_HUMAN", "reason": "which auth?"})
    write = Reply("", [("Bash", {"command": f"echo '{signal}' > .agents/signals/coder.json"})], when="GO")
    here = office(write, OVER)
    here.clone.write(
        ".agents/signals/older.json", json.dumps({"status": "NEEDS_HUMAN", "reason": "long ago"})
    )
    here.run("GO", "--allowedTools", "Bash")
    gate = here.only()
    assert (gate["questions"][0]["prompt"], gate["asked"]["agent"]) == ("which auth?", "coder")
    answer(here, "sessions")
    assert "sessions" in here.shown
    assert len(here.gates()) == 1
    assert here.clone.git("status", "--porcelain") == "?? .agents/"


def test_the_answer_is_taken_elsewhere(
    office: MakeOffice, machine: MakeMachine, bare: Clone, clone_of: Callable[..., Clone]
) -> None:
    """Another home, another clone: the gate travels with work and session, and the call that waited is answered there."""
    here = office(ASK, OVER)
    here.clone.git("remote", "add", "origin", str(bare.path))
    here.clone.git("fetch", "-q", "origin")
    here.clone.git("config", "gitgate.session", "push")
    here.clone.git("config", "gitgate.publishWork", "true")
    here.clone.write("draft.py", "half = 1\n")
    here.run("GO")
    gate = here.only()["id"]
    deadline = time.monotonic() + 20
    while f"refs/hitl/sessions/{gate}" not in bare.refs("refs/hitl/sessions") and time.monotonic() < deadline:
        time.sleep(0.1)
    there = Office(machine("elsewhere", here.machine.model), clone_of(bare, "elsewhere-clone"))
    there.gate("sync")
    there.respond(gate, "SQLite")
    there.resume(gate)
    assert '\\"Which database?\\"=\\"SQLite\\"' in there.shown
    assert "GO" in there.shown
    assert there.show(gate)["state"] == "resumed"


def test_a_wrapped_run_says_that_it_waits(office: MakeOffice, tmp_path: Path) -> None:
    """Exit 8, the gate in the job's outputs, and the conversation saved as it ended."""
    here = office(ASK, OVER)
    output = tmp_path / "output"
    said = here.cli(
        "wrap",
        "--",
        *here.command("GO"),
        cwd=here.clone.path,
        env={**here.env, "GITHUB_OUTPUT": str(output)},
        code=8,
        timeout=60,
    )
    assert json.loads(said.out)["stop_reason"] == "tool_deferred"
    gate = here.only()
    assert output.read_text() == f"gate={gate['id']}\nstate=awaiting\n"
    assert "hook_deferred_tool" in here.clone.git(
        "show", f"refs/hitl/sessions/{gate['id']}:files/transcript.jsonl"
    )
    answer(here, "Postgres")
    assert '\\"Which database?\\"=\\"Postgres\\"' in here.shown


@pytest.mark.parametrize("broken", ["missing", "failing"])
def test_without_git_gate_a_question_is_denied(broken: str, office: MakeOffice, tmp_path: Path) -> None:
    """The model hears why, and goes on knowing that nobody was asked."""
    here = office(ASK, OVER)
    program = tmp_path / "git-gate"
    if broken == "failing":
        program.write_text("#!/bin/sh\nexit 1\n")
        program.chmod(0o755)
    here.hooks = hooks([str(program)])
    ended = here.run("GO")
    assert ended["result"] == "Over."
    assert "Your question could not be asked" in here.shown
    assert here.gates() == []


def test_without_its_shim_no_call_is_made(office: MakeOffice, tmp_path: Path) -> None:
    """A plugin that lost its script would pass everything; every call is refused instead."""
    touch = Reply("", [("Bash", {"command": "touch made"})], when="GO")
    here = office(touch, OVER)
    here.hooks = hook_settings(f"sh {tmp_path}/nowhere")
    here.run("GO", "--allowedTools", "Bash")
    assert not (here.clone.path / "made").exists()


def test_the_plugin_is_valid(claude_binary: Path, tmp_path: Path) -> None:
    """The program's own check, at its strictest, of the marketplace and of the plugin."""
    for place in (TOP, plugin_folder()):
        said = plugin(claude_binary, tmp_path, "validate", "--strict", str(place))
        assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize("way", ["marketplace", "directory", "project"])
def test_the_plugin_asks_however_it_is_installed(way: str, office: MakeOffice) -> None:
    """From this repository's marketplace, from its directory, and by `git gate init --claude` in a project."""
    here = office(ASK, OVER)
    here.hooks = {}
    extra: tuple[str, ...] = ()
    if way == "marketplace":
        home = here.machine.home
        for words in (("marketplace", "add", str(TOP)), ("install", "gitgate@gitgate")):
            said = plugin(here.machine.binary, home, *words, env=here.env)
            assert said.returncode == 0, said.stdout + said.stderr
    elif way == "directory":
        extra = ("--plugin-dir", str(plugin_folder()))
    else:
        here.gate("init", "--claude", "--no-resume")
        here.clone.commit("hooks")
    ended = here.run("GO", *extra)
    assert ended["stop_reason"] == "tool_deferred"
    assert here.only()["state"] == "awaiting"
    assert "asking-a-person" in json.dumps(here.machine.model.requests())
    answer(here, "SQLite")
    assert '\\"Which database?\\"=\\"SQLite\\"' in here.shown


def plugin(
    binary: Path, home: Path, *words: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    sealed = {"PATH": "/usr/bin:/bin", "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude"), **quiet}
    return subprocess.run(
        [str(binary), "plugin", *words],
        env=dict(env or sealed),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_an_attempt_that_was_interrupted_loses_no_answer(office: MakeOffice) -> None:
    """Killed after the call had its answer, the conversation is told again in the next attempt."""
    here = office(ASK, Reply("late", delay=30), OVER)
    here.run("GO")
    gate = here.only()["id"]
    here.respond(gate, "SQLite")
    for name, value in (("agentTimeout", "5s"), ("maxAttempts", "1")):
        here.clone.git("config", f"gitgate.{name}", value)
    here.gate("resume", gate, code=1)
    here.clone.git("config", "gitgate.agentTimeout", "50s")
    here.resume(gate)
    assert here.show(gate)["state"] == "resumed"
    assert "<<< answer" in here.shown


def test_an_approved_call_is_not_made_twice(office: MakeOffice) -> None:
    """Killed while it was made, nobody knows how far it came: the next attempt is told so instead of making it again."""
    slow = Reply("", [("Bash", {"command": "echo once >> applied; sleep 30"})], when="GO")
    here = office(slow, OVER)
    rules(here.clone, "approvals:\n  - Bash(echo once*)\n")
    here.run("GO")
    gate = here.only()["id"]
    here.respond(gate, "--approve")
    for name, value in (("agentTimeout", "5s"), ("maxAttempts", "1")):
        here.clone.git("config", f"gitgate.{name}", value)
    here.gate("resume", gate, code=1)
    here.clone.git("config", "gitgate.agentTimeout", "50s")
    here.resume(gate)
    assert (here.clone.path / "applied").read_text() == "once\n"
    assert "interrupted" in here.shown
