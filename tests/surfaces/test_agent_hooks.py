"""Agent hooks: what each event is answered with. The same, with the real program, is in `asking/`."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitgate.model.gate import SessionRef
from support import PATIENCE
from support.readme import README, fenced
from support.testbed.command import Command, ForkedCommand
from support.testbed.repositories import Clone

from .conftest import Agent, new_call, question

DECISION, REASON, TOLD = "permissionDecision", "permissionDecisionReason", "additionalContext"


@pytest.fixture
def cli() -> Command:
    """Beside the hook, whoever answers is another process."""
    return ForkedCommand()


def put_rules(clone: Clone, text: str) -> None:
    clone.commit("rules", **{".gitgate.yml": text})


def test_a_question_waits_and_its_answer_is_given(agent: Agent, cli: Command) -> None:
    """Asked once however often the hook is called; deferred until there is an answer; then the call is allowed with it."""
    call = new_call()
    assert agent.ask(call=call)[DECISION] == "defer"
    assert agent.ask(call=call)[DECISION] == "defer"
    (gate,) = agent.gates()
    cli("respond", gate, "SQLite", "--note", "one file", code=0)
    said = agent.ask(call=call)
    assert said[DECISION] == "allow"
    assert said["updatedInput"] == {"questions": [question()], "answers": {"Which database?": "SQLite"}}
    for words in ("SQLite", "one file", "Ada Lovelace", f"Gate: {gate}"):
        assert words in said[TOLD]


def test_the_runner_s_words_are_told_where_there_are_any(agent: Agent, cli: Command, tmp_path: Path) -> None:
    """What changed meanwhile is known to whoever resumes; another gate's words are not this one's."""
    call = new_call()
    agent.ask(call=call)
    (gate,) = agent.gates()
    cli("respond", gate, "SQLite", code=0)
    (tmp_path / "told").write_text("ALL THE NEWS")
    agent.env |= {"GITGATE_GATE": gate, "GITGATE_PROMPT_FILE": str(tmp_path / "told")}
    assert agent.ask(call=call)[TOLD] == "ALL THE NEWS"
    agent.env["GITGATE_PROMPT_FILE"] = str(tmp_path / "missing")
    assert "SQLite" in agent.ask(call=call)[TOLD]


def test_a_question_of_a_resumed_agent_is_a_new_gate(agent: Agent, cli: Command) -> None:
    """It follows the one that it was resumed for."""
    agent.ask()
    (first,) = agent.gates()
    cli("respond", first, "SQLite", code=0)
    agent.env["GITGATE_GATE"] = first
    assert agent.ask(question("Which port?", "1", "2"))[DECISION] == "defer"
    (second,) = set(agent.gates()) - {first}
    assert cli("show", second, "--json").json["follows"] == first


def test_calls_made_together_take_turns(agent: Agent) -> None:
    """However they race, one waits and every other is told to ask again: two answers would start the run twice."""
    said: list[dict[str, Any]] = []
    racers = [threading.Thread(target=lambda: said.append(agent.ask())) for _ in range(4)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(PATIENCE)
    assert sorted(each[DECISION] for each in said) == ["defer", "deny", "deny", "deny"]
    (gate,) = agent.gates()
    assert all(
        gate in each[REASON] and "ask this again" in each[REASON] for each in said if each[DECISION] == "deny"
    )


@pytest.mark.parametrize("how", ["question", "shell", "approval"])
def test_a_second_question_ends_a_run_that_went_past_the_first(agent: Agent, cli: Command, how: str) -> None:
    """It is denied, the run is told to end, and makes no further call, until the first one was answered."""
    put_rules(agent.clone, RULES)
    agent.ask()
    (first,) = agent.gates()
    tool, given = {
        "question": ("AskUserQuestion", {"questions": [question("Which port?", "1", "2")]}),
        "shell": ("Bash", {"command": "git gate ask 'Which port?'"}),
        "approval": ("Bash", {"command": "terraform apply"}),
    }[how]
    event = agent.event("PreToolUse", tool_name=tool, tool_use_id=new_call(), tool_input=given)
    said = agent.hook("pre-tool-use", event)
    assert (said["hookSpecificOutput"][DECISION], said["continue"]) == ("deny", False)
    assert first in said["stopReason"]
    said = agent.before("Bash", command="git commit -am more")
    assert (said[DECISION], first in said[REASON], "end your turn" in said[REASON]) == ("deny", True, True)
    assert agent.gates() == [first]
    cli.quick("respond", first, "SQLite", code=0)
    assert agent.before("Bash", command="git commit -am more") == {}


def test_calls_of_one_turn_do_not_end_the_run(agent: Agent) -> None:
    """The run ends with the one that waits; what was called beside it is not held against it."""
    one, two = new_call(), new_call()
    transcript = Path(agent.event("Stop")["transcript_path"])
    blocks = [{"type": "tool_use", "id": call} for call in (one, two)]
    records = [{"type": "assistant", "message": {"id": "msg_1", "content": [block]}} for block in blocks]
    transcript.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert agent.ask(call=one)[DECISION] == "defer"
    event = agent.event(
        "PreToolUse", tool_name="AskUserQuestion", tool_use_id=two, tool_input={"questions": [question()]}
    )
    said = agent.hook("pre-tool-use", event)
    assert (said["hookSpecificOutput"][DECISION], "continue" in said) == ("deny", False)
    assert agent.before("Bash", command="ls") == {}


def test_another_conversation_is_not_kept_waiting(agent: Agent) -> None:
    """Each has its own question."""
    other = Agent(agent.clone, "0b9c4f0e-0000-4000-8000-000000000000")
    assert [agent.ask()[DECISION], other.ask()[DECISION]] == ["defer", "defer"]


def test_a_subagent_tells_its_caller(agent: Agent) -> None:
    """It would not be paused."""
    said = agent.ask(subagent=True)
    assert (said[DECISION], agent.gates()) == ("deny", [])
    assert "caller" in said[REASON]
    assert agent.before("Bash", command="git gate ask x", subagent=True)[DECISION] == "deny"
    assert agent.before("Bash", command="git gate ask x --wait", subagent=True)[DECISION] == "allow"


def test_to_ask_and_to_hear_needs_nobodys_leave(agent: Agent, tmp_path: Path) -> None:
    """A plain call of these verbs in the project's own repository, at a terminal as well; anything else is left to the program."""
    for env in ({}, {"CLAUDE_CODE_ENTRYPOINT": "cli"}):
        agent.env |= env
        for command in ("git gate ask 'Which?' -o A", "git-gate check 7k2f", "git gate wait 7k2f --for 1m"):
            assert agent.before("Bash", command=command)[DECISION] == "allow"
    agent.clone.write("notes.md", "notes")
    (agent.clone.path / "out").symlink_to(tmp_path)
    (tmp_path / "secret").write_text("secret")
    assert agent.before("Bash", command="git gate ask x --context @notes.md")[DECISION] == "allow"
    for command in (
        "git gate ask x; touch y",
        "git gate ask x --include .env",
        "git gate list",
        "git gate ask x --context @/etc/passwd",
        "git gate ask x --attach ../secret",
        "git gate ask x --file out/secret",
        "git gate ask x --context=@.git/config",
    ):
        assert agent.before("Bash", command=command) == {}
    put_rules(agent.clone, "approvals: ['Bash(git gate ask*)']\n")
    assert agent.before("Bash", command="git gate ask y")[DECISION] != "allow"


def test_another_repository_is_not_the_projects(agent: Agent, tmp_path: Path) -> None:
    """What it configures git would run: one that lies in the working tree, a bare one, one elsewhere."""
    agent.env["CLAUDE_PROJECT_DIR"] = str(agent.clone.path)
    inner, bare = agent.clone.path / "inner", agent.clone.path / "bare"
    for words in (
        ("init", "-q", str(inner)),
        ("init", "-q", "--bare", str(bare)),
        ("init", "-q", str(tmp_path / "far")),
    ):
        agent.clone.git(*words)
    deep = agent.clone.path / "src"
    deep.mkdir()
    ask = "git gate ask 'Which?'"
    assert agent.before("Bash", command=ask, cwd=str(deep))[DECISION] == "allow"
    for place in (inner, bare, tmp_path / "far", tmp_path):
        assert agent.before("Bash", command=ask, cwd=str(place)) == {}


def test_a_person_at_the_terminal_is_asked_there(agent: Agent) -> None:
    """Nothing is said; but a run that our runner started, or that says nobody attends, is not attended."""
    agent.env["CLAUDE_CODE_ENTRYPOINT"] = "cli"
    assert agent.ask() == {}
    agent.env["CLAUDE_CODE_SESSION_ATTENDED"] = "0"
    assert agent.ask()[DECISION] == "defer"


@pytest.mark.parametrize(
    ("verb", "decision", "words"),
    [(("stop", "--reason", "no need"), "deny", "stopped: no need"), (("withdraw", "--reason", "found it"), "deny", "withdrawn: found it")],
)  # fmt: skip
def test_a_gate_that_ended_without_an_answer(
    agent: Agent, cli: Command, verb: tuple[str, ...], decision: str, words: str
) -> None:
    """The agent hears why, and does not go on with it."""
    call = new_call()
    agent.ask(call=call)
    (gate,) = agent.gates()
    cli(verb[0], gate, *verb[1:], code=0)
    said = agent.ask(call=call)
    assert said[DECISION] == decision
    assert words in said[REASON]


@pytest.mark.slow
def test_silence_is_not_consent(agent: Agent, git: Any) -> None:
    """At a deadline nobody has answered: the question is denied, and nothing looks like a person's words."""
    git("config", "gitgate.timeout", "1s")
    git("config", "gitgate.onTimeout", "default")
    put_rules(agent.clone, "approvals:\n  - Bash(deploy*)\n")
    call, other = new_call(), new_call()
    agent.ask(call=call)
    again = Agent(agent.clone, "0b9c4f0e-0000-4000-8000-000000000000")
    again.before("Bash", other, command="deploy")
    threading.Event().wait(2.1)
    for said in (agent.ask(call=call), again.before("Bash", other, command="deploy")):
        assert said[DECISION] == "deny"
        assert "silence is not consent" in said[REASON]
        assert "Ada" not in said[TOLD]


RULES = "approvals:\n  - call: Bash(terraform apply*)\n    why: it changes production\n    to: [ada@example.org]\n  - Write(migrations/**)\n  - mcp__*\n"


def test_a_call_under_a_rule_waits_for_a_person(agent: Agent, cli: Command) -> None:
    """With the exact call and its reason; allowed when approved; a call that was changed is not the approved one."""
    put_rules(agent.clone, RULES)
    agent.clone.write("half.txt", "half\n")
    call = new_call()
    secret = "ghp" + "_" + "a1B2c3D4e5" * 4
    command = f"cd infra && terraform apply -var token={secret}"
    assert agent.before("Bash", call, command=command, description="go")[DECISION] == "defer"
    (gate,) = agent.gates()
    shown = cli("show", gate, "--json").json
    assert shown["questions"][0]["type"] == "approval"
    assert shown["to"] == ["ada@example.org"]
    assert shown["work"]["files"] == 1
    assert "terraform apply -var token=" in shown["questions"][0]["prompt"]
    assert "it changes production" in shown["context"]
    assert secret not in json.dumps(shown)
    cli("respond", gate, "--approve", code=0)
    assert agent.before("Bash", call, command=command, description="go")[DECISION] == "allow"
    changed = agent.before("Bash", call, command=command + " -destroy", description="go")
    assert changed[DECISION] == "deny"
    assert "changed" in changed[REASON]


@pytest.mark.slow
def test_the_readmes_rules_hold_as_it_says(agent: Agent, bare: Clone) -> None:
    """Once they are on the protected branch: without a remote in a commit of `main`, with one pushed to its default branch."""
    page = README.read_text("utf-8")
    rules, calls = fenced(page, "yaml"), ("terraform apply -auto-approve", "cd infra && terraform apply")
    put_rules(agent.clone, rules)
    path = str(agent.clone.path / "migrations/1.sql")
    assert [agent.before("Bash", command=words)[DECISION] for words in calls[:1]] == ["defer"]
    other = Agent(agent.clone, str(uuid4()))
    assert other.before("Write", file_path=path, content="x")[DECISION] == "defer"
    third = Agent(agent.clone, str(uuid4()))
    assert third.before("Bash", command="terraform plan") == {}
    agent.clone.git("remote", "add", "origin", str(bare.path))
    agent.clone.git("push", "-q", "-f", "origin", "main")
    agent.clone.git("fetch", "-q", "origin")
    assert third.before("Bash", command=calls[1])[DECISION] == "defer"


def test_a_rule_that_vanished_does_not_free_a_call(agent: Agent, cli: Command) -> None:
    """What a call waited for decides, whatever the rules are when it is resumed."""
    put_rules(agent.clone, RULES)
    call = new_call()
    agent.before("Bash", call, command="terraform apply")
    (gate,) = agent.gates()
    put_rules(agent.clone, "settings:\n  push: false\n")
    cli("respond", gate, "--reject", "--note", "not on a friday", code=0)
    agent.env["GITGATE_GATE"] = gate
    said = agent.before("Bash", call, command="terraform apply")
    assert said[DECISION] == "deny"
    assert "not on a friday" in said[REASON]


def test_rules_come_from_the_protected_branch(agent: Agent, bare: Clone, git: Any) -> None:
    """Neither the working tree nor the agent's branch nor, in a clone, the local default branch has a say."""
    put_rules(agent.clone, RULES)
    agent.clone.git("checkout", "-q", "-b", "agent")
    put_rules(agent.clone, "approvals: []\n")
    agent.clone.write(".gitgate.yml", "approvals: nonsense\n")
    assert agent.before("mcp__x__y", a=1)[DECISION] == "defer"
    git("remote", "add", "origin", str(bare.path))
    git("fetch", "-q", "origin")
    assert agent.before("Bash", command="terraform apply") == {}


def test_other_calls_are_not_spoken_of(agent: Agent) -> None:
    """With rules or without, the hook has nothing to say about what they do not name."""
    for _ in range(2):
        assert agent.before("Bash", command="terraform plan") == {}
        assert agent.before("Write", file_path=str(agent.clone.path / "src/x"), content="") == {}
        assert agent.before("Read", file_path="migrations/x") == {}
        put_rules(agent.clone, RULES)
    assert (
        agent.before(
            "Edit", file_path=str(agent.clone.path / "migrations/x"), old_string="a", new_string="b"
        )[DECISION]
        == "defer"
    )


def test_rules_that_cannot_be_read_let_nothing_through(agent: Agent) -> None:
    """A misspelt rule might have been one for this call."""
    put_rules(agent.clone, "approvals:\n  - {cal: Bash}\n")
    said = agent.before("Bash", command="ls")
    assert said[DECISION] == "deny"
    assert ".gitgate.yml" in said[REASON]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_rules_in_another_encoding_let_nothing_through(agent: Agent, encoding: str) -> None:
    """An editor may write that; it is no file without rules."""
    (agent.clone.path / ".gitgate.yml").write_bytes(RULES.encode(encoding))
    agent.clone.git("add", ".gitgate.yml")
    agent.clone.git("commit", "-q", "-m", "rules")
    assert agent.before("Bash", command="ls")[DECISION] == "deny"


def test_a_rule_at_the_terminal_asks_there(agent: Agent) -> None:
    """A person is present, and a subagent's call is asked, too."""
    put_rules(agent.clone, RULES)
    agent.env["CLAUDE_CODE_ENTRYPOINT"] = "cli"
    assert agent.before("Bash", command="terraform apply")[DECISION] == "ask"
    assert agent.gates() == []


@pytest.mark.parametrize("line", ["curl -s u | sh", "$TOOL plan", 'eval "$X"', "true " + "x" * 70_000])
def test_a_line_that_nobody_can_read_is_denied(agent: Agent, line: str) -> None:
    """No gate is made of it: an agent alone writes it plainly, a person is asked. Where no rule names a command, it is nobody's business."""
    assert agent.before("Bash", command=line) == {}
    put_rules(agent.clone, "approvals:\n  - Write(db/**)\n")
    assert agent.before("Bash", command=line) == {}
    put_rules(agent.clone, RULES)
    said = agent.before("Bash", command=line)
    assert (said[DECISION], agent.gates()) == ("deny", [])
    assert "plainly" in said[REASON]
    agent.env["CLAUDE_CODE_ENTRYPOINT"] = "cli"
    assert agent.before("Bash", command=line)[DECISION] == "ask"
    agent.env.pop("CLAUDE_CODE_ENTRYPOINT")
    assert agent.before("Bash", command=f"{line}; # terraform")[DECISION] == "defer"


def test_outside_of_a_repository(agent: Agent, tmp_path: Path) -> None:
    """A question cannot be kept, so it is denied; nobody made rules for other calls. A wanderer stays bound by its project."""
    put_rules(agent.clone, RULES)
    outside = Agent(Clone(tmp_path / "out"))
    outside.clone.path.mkdir()
    assert outside.ask()[DECISION] == "deny"
    assert outside.before("Bash", command="terraform apply") == {}
    outside.env["CLAUDE_PROJECT_DIR"] = str(agent.clone.path)
    assert outside.before("Bash", command="terraform apply")[DECISION] == "defer"


def test_asking_in_a_shell_ends_the_run(agent: Agent, cli: Command) -> None:
    """When a gate of this conversation waits because of it; not after `--wait`, nor after looking."""
    asked = cli("ask", "Which?", env={"CLAUDE_CODE_SESSION_ID": agent.session}, code=0).line
    ended = after(agent, "git gate ask 'Which?'", asked)
    assert ended["continue"] is False
    assert asked in ended["stopReason"]
    assert after(agent, "./my-asker", asked)["continue"] is False
    assert after(agent, "git gate list", "other words") == {}
    assert after(agent, "ls", "") == {}
    assert after(Agent(agent.clone, "other-session"), "git gate ask x", asked) == {}
    assert agent.before("Bash", command="git gate ask 'And this?'")[DECISION] == "deny"


def after(agent: Agent, command: str, out: str) -> dict[str, Any]:
    response = {"stdout": out, "stderr": "", "interrupted": False}
    event = agent.event(
        "PostToolUse",
        tool_name="Bash",
        tool_use_id=new_call(),
        tool_input={"command": command},
        tool_response=response,
    )
    return agent.hook("post-tool-use", event)


def test_what_an_approved_call_gave_is_told(agent: Agent, cli: Command) -> None:
    """A program that made it beside other calls may show no result of it."""
    put_rules(agent.clone, RULES)
    call = new_call()
    agent.before("Bash", call, command="terraform apply")
    (gate,) = agent.gates()
    cli("respond", gate, "--approve", code=0)
    agent.env["GITGATE_GATE"] = gate
    event = agent.event(
        "PostToolUse",
        tool_name="Bash",
        tool_use_id=call,
        tool_input={"command": "terraform apply"},
        tool_response={"stdout": "applied 3"},
    )
    assert "applied 3" in agent.hook("post-tool-use", event)["hookSpecificOutput"][TOLD]


def test_last_words_are_asked_once(agent: Agent, cli: Command) -> None:
    """However often the run stops with them; said again after an answer, they ask again."""
    need = json.dumps({"status": "needs_input", "question": "JWT?"})
    stop = agent.event("Stop", stop_hook_active=False, last_assistant_message=f"Done.\n{need}")
    assert "waits" in agent.hook("stop", stop)["systemMessage"]
    agent.hook("stop", stop)
    (gate,) = agent.gates()
    cli("respond", gate, "JWT", code=0)
    agent.hook("stop", stop)
    assert len(agent.gates()) == 2
    assert "decision" not in agent.hook("stop", agent.event("Stop", last_assistant_message="Done."))


def test_last_words_that_cannot_be_asked_are_said_back(agent: Agent, tmp_path: Path) -> None:
    """Once; the second time the run may end."""
    outside = Agent(Clone(tmp_path / "out"))
    outside.clone.path.mkdir()
    stop = outside.event("Stop", last_assistant_message='{"status": "needs_input", "question": "JWT?"}')
    assert outside.hook("stop", stop)["decision"] == "block"
    assert outside.hook("stop", {**stop, "stop_hook_active": True}) == {}


def test_the_last_words_are_found_in_the_transcript(agent: Agent) -> None:
    """Where the event does not have them."""
    stop = agent.event("Stop")
    records = [
        {"type": "user", "message": {"content": "go"}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "NEEDS_HUMAN: which auth?"}]}},
        {"type": "system", "subtype": "x"},
    ]
    Path(stop["transcript_path"]).write_text("\n".join(map(json.dumps, records)) + "\n{broken")
    agent.hook("stop", stop)
    assert len(agent.gates()) == 1


def test_words_that_are_written_a_moment_late(
    agent: Agent, cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hook may be started before the call, and what was said before it, are in the transcript."""
    monkeypatch.setattr("gitgate.surfaces.agent_hooks.tools.TRANSCRIPT_TIMEOUT", PATIENCE)
    call = new_call()
    transcript = Path(agent.event("Stop")["transcript_path"])
    transcript.parent.mkdir(parents=True, exist_ok=True)
    asked = {"type": "user", "message": {"content": "go"}}
    said = {"type": "assistant", "message": {"content": [{"type": "text", "text": "I looked at the code."}]}}
    called = {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": call}]}}
    transcript.write_text(json.dumps(asked) + "\n")

    def write() -> None:
        with transcript.open("a") as out:
            out.write(json.dumps(said) + "\n" + json.dumps(called) + "\n")

    late = threading.Timer(0.1, write)
    late.start()
    agent.ask(call=call)
    late.join()
    (gate,) = agent.gates()
    assert "I looked at the code." in cli("show", gate, "--json", code=0).json["context"]


def test_the_conversation_is_saved_at_its_end(agent: Agent, cli: Command, home: Path) -> None:
    """With what was written after the question was asked."""
    agent.ask()
    (gate,) = agent.gates()
    folder = home / ".claude" / "projects" / "x"
    folder.mkdir(parents=True)
    transcript = folder / f"{agent.session}.jsonl"
    record = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": agent.session,
        "message": {"role": "user", "content": "LATE-WORDS"},
    }
    transcript.write_text(json.dumps(record) + "\n")
    event = {**agent.event("SessionEnd", reason="other"), "transcript_path": str(transcript)}
    assert agent.hook("session-end", event) == {}
    assert "LATE-WORDS" in agent.clone.git("show", f"refs/hitl/sessions/{gate}:files/transcript.jsonl")
    assert SessionRef("claude", agent.session).id not in agent.clone.git(
        "show", f"refs/hitl/open/{gate}:question.yaml"
    )


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    "session_id",
    "transcript_path",
    "cwd",
    "tool_use_id",
    "agent_id",
    "last_assistant_message",
    "tool_response",
    "stop_hook_active",
)
EVENT = st.fixed_dictionaries(
    {"tool_name": st.just("AskUserQuestion")},
    optional={"tool_input": JSON | st.fixed_dictionaries({"questions": JSON}), **dict.fromkeys(FIELDS, JSON)},
)


@given(event=EVENT, raw=st.none() | st.binary(max_size=40))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_question_passes_silently(agent: Agent, event: dict[str, object], raw: bytes | None) -> None:
    """Whatever the hook is given, a question is deferred or denied; it never crashes, and never says nothing."""
    said = agent.hook("pre-tool-use", raw if raw is not None else event)["hookSpecificOutput"]
    assert said[DECISION] in ("defer", "deny")
    assert said[DECISION] == "defer" or said[REASON]


@given(
    event=EVENT,
    raw=st.none() | st.binary(max_size=40),
    name=st.sampled_from(["post-tool-use", "stop", "session-end"]),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_other_event_breaks_a_run(
    agent: Agent, event: dict[str, object], raw: bytes | None, name: str
) -> None:
    """A hook that has nothing to decide says what is wrong, and leaves the run alone."""
    said = agent.hook(name, raw if raw is not None else event)
    assert set(said) <= {"systemMessage", "continue", "stopReason", "decision", "reason"}


def test_an_approved_call_is_let_through_in_one_attempt(agent: Agent, cli: Command) -> None:
    """Asked twice in that attempt it is the same yes; a later attempt cannot know what came of it."""
    put_rules(agent.clone, RULES)
    call = new_call()
    agent.before("Bash", call, command="terraform apply")
    (gate,) = agent.gates()
    cli("respond", gate, "--approve", code=0)
    assert [agent.before("Bash", call, command="terraform apply")[DECISION] for _ in range(2)] == [
        "allow",
        "allow",
    ]
    (agent.clone.path / ".git/gitgate/let-through" / gate).write_text("an earlier claim")
    said = agent.before("Bash", call, command="terraform apply")
    assert said[DECISION] == "deny"
    assert "interrupted" in said[REASON]


def test_an_answer_that_the_policy_does_not_accept_frees_nothing(agent: Agent, cli: Command) -> None:
    """A record may hold anybody's words; only those whom the policy names let a call through."""
    put_rules(agent.clone, RULES)
    call = new_call()
    agent.before("Bash", call, command="terraform apply")
    (gate,) = agent.gates()
    cli("respond", gate, "--approve", code=0)
    put_rules(agent.clone, RULES + "policy:\n  require_signed: true\n")
    said = agent.before("Bash", call, command="terraform apply")
    assert said[DECISION] == "deny"
    assert "sign" in said[REASON]
