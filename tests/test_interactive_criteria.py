"""What a question that is decided in a conversation promises, one promise a test: each docstring is the promise.

First what the asker holds in hand, then what the record keeps, how such questions are opened, found and resolved, and what
each term of the conversation does. Those that open one drive the command at a terminal, with a program in Claude Code's stead.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import gitgate
from gitgate import errors
from gitgate.document import Field, codec
from gitgate.model.gate import Value
from support import PATIENCE
from support.conversing import held, open_gate, stop_talk, talk_to_answer
from support.talking import Meeting, meet
from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

Pty = Callable[..., Terminal]


@pytest.fixture
def desk(repo: Clone, cli: Command, tmp_path: Path) -> Meeting:
    return meet(repo, cli, tmp_path / "claude")


def document(repo: Clone, gate: str, folder: str = "") -> Field:
    """The question's file, or the only one of a kind of events."""
    ref = f"refs/hitl/open/{gate}"
    names = repo.git("ls-tree", "-r", "--name-only", ref).splitlines()
    (name,) = [name for name in names if (name.startswith(folder) if folder else name == "question.yaml")]
    return codec.parse_document(repo.git("show", f"{ref}:{name}").encode(), name)


def config(repo: Clone, gate: str) -> Field:
    return document(repo, gate).need("questions").items()[0].need("talk")


def asked(**terms: object) -> str:
    handle = gitgate.ask_interactive("Is the schema sound?", wait=False, **terms)  # type: ignore[call-overload]
    return str(handle.id)


def opened(desk: Meeting, pty_cli: Pty, gate: str) -> Terminal:
    """The conversation, as somebody opens it at their terminal."""
    terminal = pty_cli("join", gate)
    terminal.expect("0 earlier messages")
    return terminal


def leave(terminal: Terminal) -> None:
    """Out of the session, with nothing decided."""
    terminal.line("leave")
    terminal.expect("your answer (")
    terminal.line()
    terminal.finish(code=8)


# What the asker has in hand


def test_a_handle_asks_and_knows_its_status_and_its_gate(repo: Clone) -> None:
    """A handle offers to ask in a conversation, says how that stands, and which gate it is."""
    handle = gitgate.Interactive()
    assert (callable(handle.ask), handle.status, handle.id) == (True, "idle", None)
    handle.ask("Is the schema sound?")
    assert handle.id == gitgate.list()[0].id


@pytest.mark.slow
def test_asking_comes_back_when_the_conversation_is_over(desk: Meeting, pty_cli: Pty) -> None:
    """Whoever asks is blocked until a person has decided in the session, and has their decision then."""
    results: list[gitgate.SessionResult[Value]] = []
    place = desk.repo.path

    def ask() -> None:
        results.append(
            gitgate.ask_interactive(
                "Is the schema sound?", outcome="approval", wait_for="50s", directory=place
            )
        )

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        while not (waiting := gitgate.list(awaiting=True)):
            asker.join(0.05)
        terminal = opened(desk, pty_cli, waiting[0].id)
        terminal.line('outcome approve --summary "It has its index."')
        terminal.expect("claude: outcome done")
        assert results == []
        terminal.line("leave")
        terminal.expect("is that your answer?")
        terminal.line("y")
        terminal.finish(code=0)
    finally:
        asker.join(PATIENCE)
    (result,) = results
    assert (result.outcome, result.response, result.summary) == ("completed", True, "It has its index.")


def test_the_status_is_idle_then_pending_then_resolved(repo: Clone) -> None:
    """Idle before anything was asked, pending while it waits, resolved once it is decided or ended."""
    handle = gitgate.Interactive()
    seen = [handle.status]
    handle.ask("Is the schema sound?")
    seen.append(handle.status)
    gitgate.respond(str(handle.id), "yes")
    seen.append(handle.status)
    handle.ask("And the index?")
    gitgate.stop(str(handle.id), reason="enough")
    assert [*seen, handle.status] == ["idle", "pending", "resolved", "resolved"]


def test_the_result_has_outcome_response_and_duration(repo: Clone) -> None:
    """It says how it ended, what was decided, and for how many seconds people talked."""
    gate = asked(outcome="selection", options=["Staging", "Production"])
    talk_to_answer(gate, "Staging", held(seconds=342))
    result = gitgate.Interactive(gate).wait()
    assert result is not None
    assert (result.outcome, result.response, result.duration) == ("completed", "Staging", 342)


# What the record keeps


def test_a_question_may_be_of_this_type(repo: Clone) -> None:
    """`session` is a type of question, under the name that other systems have for it, too."""
    for name in ("session", "interactive_session"):
        gate = gitgate.ask("Is the schema sound?", type=name)
        assert document(repo, gate.id).need("questions").items()[0].need("type").text() == "session"


def test_the_terms_are_kept_with_the_question(repo: Clone) -> None:
    """Everything that was said of the conversation stands in the record, and nothing that was not."""
    gate = asked(
        outcome="approval",
        system_prompt="Be brief.",
        context={"files": ["a.sql"]},
        model="opus",
        timeout="30m",
    )
    assert config(repo, gate).plain() == {
        "outcome": "approval",
        "system": "Be brief.",
        "context": {"files": ["a.sql"]},
        "model": "opus",
        "timeout": 1800,
    }


def test_a_transcript_is_kept_with_the_answer(repo: Clone) -> None:
    """What was said is part of the answer's record, where there is any."""
    gate, without = asked(capture_transcript=True), asked()
    talk_to_answer(gate, "Yes.", held(transcript="person: why?\nassistant: because."))
    talk_to_answer(without, "Yes.", held())
    kept = document(repo, gate, "answers/").need("session").need("transcript").text()
    assert kept == "person: why?\nassistant: because."
    assert document(repo, without, "answers/").need("session").get("transcript") is None


def test_how_long_it_lasted_is_kept(repo: Clone) -> None:
    """In seconds, with an answer and with an end that came to none."""
    answered, ended = asked(), asked()
    talk_to_answer(answered, "Yes.", held(seconds=342))
    stop_talk(ended, held("timeout", 1800))
    assert document(repo, answered, "answers/").need("session").need("seconds").value == 342
    assert document(repo, ended, "stops/").need("session").need("seconds").value == 1800


# How they are opened, resolved and found


def test_asking_opens_one(repo: Clone, cli: Command) -> None:
    """From Python and from the command line: a gate that waits for an answer."""
    typed = cli.quick("ask", "Is the index used?", "--type", "session", "-q", code=0).line
    for gate in (asked(), typed):
        assert open_gate(gate).state == "awaiting"


@pytest.mark.parametrize(
    ("outcome", "state"), [("completed", "answered"), ("cancelled", "stopped"), ("timeout", "stopped")]
)
def test_each_way_to_end_resolves_it(repo: Clone, outcome: str, state: str) -> None:
    """With an answer, given up, or out of time: the gate no longer waits, and says which it was."""
    gate = asked(outcome="approval")
    if outcome == "completed":
        talk_to_answer(gate, "yes", held())
    else:
        stop_talk(gate, held(outcome))
    result = gitgate.Interactive(gate).wait()
    assert result is not None
    assert (open_gate(gate).state, result.outcome) == (state, outcome)
    assert result.response is (True if outcome == "completed" else None)


def test_the_list_has_them(repo: Clone) -> None:
    """Among all that waits, and by their type alone."""
    gate, other = asked(), gitgate.ask("Which?").id
    assert {one.id for one in gitgate.list()} == {gate, other}
    assert [one.id for one in gitgate.list(type="session")] == [gate]
    gitgate.respond(gate, "yes")
    assert gitgate.list(type="session") == ()


# What each term does


@pytest.mark.slow
def test_the_system_prompt_is_the_agents(desk: Meeting, pty_cli: Pty) -> None:
    """It is added to what the session's program is told, beside its own instructions."""
    opened(desk, pty_cli, asked(system_prompt="Speak like a schema designer."))
    assert "Speak like a schema designer." in desk.flag("--append-system-prompt")


@pytest.mark.slow
def test_the_context_is_in_the_session(desk: Meeting, pty_cli: Pty) -> None:
    """Any JSON, in the session's first words, after the question."""
    opened(desk, pty_cli, asked(context={"severity": "high", "files": ["a.sql"]}))
    assert "Is the schema sound?" in desk.prompt
    assert '"severity": "high"' in desk.prompt


@pytest.mark.slow
def test_the_model_is_chosen(desk: Meeting, pty_cli: Pty) -> None:
    """The program is started with it; unless one is named, with none of ours."""
    leave(opened(desk, pty_cli, asked(model="opus")))
    assert desk.flag("--model") == "opus"
    opened(desk, pty_cli, asked())
    assert "--model" not in desk.runs[-1]["argv"]


@pytest.mark.slow
def test_the_folder_is_chosen(desk: Meeting, pty_cli: Pty) -> None:
    """By default the session begins at the top of a worktree of the work; a folder within it may be named."""
    desk.repo.write("services/api.py", "pass\n")
    terminal = opened(desk, pty_cli, asked())
    top = Path(desk.runs[-1]["cwd"])
    assert (top / "services" / "api.py").exists()
    assert top != desk.repo.path
    leave(terminal)
    opened(desk, pty_cli, asked(cwd="services"))
    inner = Path(desk.runs[-1]["cwd"])
    assert inner.name == "services"
    assert (inner / "api.py").exists()


@pytest.mark.slow
def test_the_time_is_bounded(desk: Meeting, pty_cli: Pty) -> None:
    """When it is over, and the grace too, the session is ended, and the asker hears of a timeout."""
    gate = asked(timeout=1, grace=3)
    terminal = opened(desk, pty_cli, gate)
    terminal.finish(code=9)
    result = gitgate.Interactive(gate).wait()
    assert result is not None
    assert (result.outcome, result.response) == ("timeout", None)
    assert result.duration >= 4


@pytest.mark.slow
def test_a_schema_is_what_the_outcome_is_read_by(desk: Meeting, pty_cli: Pty) -> None:
    """What the session ends with is read as its schema says, confirmed by the person, and given to the asker as an object."""
    schema = {"type": "object", "required": ["approved"], "properties": {"approved": {"type": "boolean"}}}
    gate = asked(schema=schema)
    assert document(desk.repo, gate).need("questions").items()[0].need("schema").plain() == schema
    terminal = opened(desk, pty_cli, gate)
    terminal.line('reply Here:|```json|{"decision": {"approved": true}}|```')
    terminal.expect("claude: reply done")
    terminal.line("leave")
    terminal.expect("is that your answer?")
    terminal.line("y")
    terminal.finish(code=0)
    result = gitgate.Interactive(gate).wait()
    assert result is not None
    assert result.response == {"approved": True}


@pytest.mark.slow
def test_its_servers_are_started_only_with_a_yes(desk: Meeting, pty_cli: Pty) -> None:
    """The MCP servers that the asker named are shown to whoever joins, and come into the session with their word alone."""
    gate = asked(mcp_config={"mcpServers": {"logs": {"command": "logs-server"}}})
    terminal = pty_cli("join", gate)
    assert '"logs-server"' in terminal.expect("start them? [y/N] ")
    terminal.line("y")
    terminal.expect("0 earlier messages")
    assert "logs" in json.loads(Path(desk.flag("--mcp-config")).read_text("utf-8"))["mcpServers"]


# What was decided where a choice was open


def test_no_transcript_unless_it_was_asked_for(repo: Clone) -> None:
    """Sessions may hold anything: what is said in one is not kept by itself."""
    assert config(repo, asked(model="opus")).get("transcript") is None
    assert config(repo, asked(capture_transcript=True)).need("transcript").boolean()


def test_a_session_is_warned_a_minute_before_it_ends(repo: Clone) -> None:
    """The grace is 60 seconds, unless another was named."""
    for terms, grace in (({"timeout": "30m"}, 60), ({"timeout": "30m", "grace": "5m"}, 300)):
        talk = open_gate(asked(**terms)).opened.questions[0].talk
        assert talk is not None
        assert (talk.timeout, talk.grace) == (1800, grace)


def test_one_at_a_time(repo: Clone) -> None:
    """A handle that waits for one session asks for no second one."""
    handle = gitgate.Interactive().ask("Is the schema sound?")
    with pytest.raises(errors.Conflict, match=f"gate {handle.id} still waits"):
        handle.ask("And the index?")


def test_an_earlier_session_may_be_gone_on_with(repo: Clone) -> None:
    """By the id of its gate, a beginning of it or the gate itself; the record has all of it."""
    first = asked()
    for named in (first[:5], gitgate.show(first)):
        assert config(repo, asked(resume_session=named)).need("resume").text() == first


def test_it_is_saved_every_five_minutes(repo: Clone) -> None:
    """Unless another time was named, or only its end is wanted."""
    for terms, every in (({}, 300), ({"save_every": "1m"}, 60), ({"save_every": 0}, 0)):
        talk = open_gate(asked(model="opus", **terms)).opened.questions[0].talk
        assert talk is not None
        assert talk.save_every == every


# The checkpoint


@pytest.mark.slow
def test_a_pause_goes_on_or_stops_by_a_persons_word(repo: Clone, pty_cli: Pty) -> None:
    """Whoever joins a checkpoint meets no agent: they go on or stop, with a reason, and the workflow hears it."""
    words: list[gitgate.Checkpoint] = []

    def pause() -> None:
        words.append(gitgate.pause("Approve deployment?", wait_for="50s", directory=repo.path))

    workflow = threading.Thread(target=pause)
    workflow.start()
    try:
        while not (waiting := gitgate.list(awaiting=True)):
            workflow.join(0.05)
        terminal = pty_cli("join", waiting[0].id)
        terminal.expect("[d/m/c/s/t/q]: ")
        terminal.line("s")
        terminal.expect("why: ")
        terminal.line("the tests fail")
        terminal.finish(code=0)
    finally:
        workflow.join(PATIENCE)
    (word,) = words
    assert (word.proceed, word.reason, word.message) == (False, "the tests fail", "")
