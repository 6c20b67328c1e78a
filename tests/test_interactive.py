"""Python: questions that are decided in a conversation, with handles, models and checkpoints."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator

import gitgate
from gitgate import errors
from support import PATIENCE
from support.conversing import held, open_gate, stop_talk, talk_to_answer
from support.testbed.repositories import Clone

SCHEMA = {"type": "object", "required": ["approved"], "properties": {"approved": {"type": "boolean"}}}


class Finding(BaseModel):
    """One thing that was found."""

    title: str
    severity: Literal["low", "high"] = "low"


class Review(BaseModel):
    """What a review comes to."""

    approved: bool
    notes: str = ""
    findings: list[Finding] = Field(default_factory=list)

    @field_validator("notes")
    @classmethod
    def decent(cls, notes: str) -> str:
        if "darn" in notes:
            raise ValueError("no swearing")
        return notes


@contextmanager
def meanwhile(repo: Clone, act: Callable[[str], object]) -> Iterator[None]:
    """Somebody else does this with the gate that waits, as soon as there is one."""

    def look() -> None:
        for _ in range(20 * PATIENCE):
            waiting = gitgate.list(awaiting=True, directory=repo.path)
            if waiting:
                act(waiting[0].id)
                return
            done.wait(0.05)

    done = threading.Event()
    other = threading.Thread(target=look)
    other.start()
    try:
        yield
    finally:
        other.join()


def test_a_model_is_asked_for_and_given_back(repo: Clone) -> None:
    """A pydantic class is the schema of the outcome; the response is an instance of it, nested ones too."""
    handle = gitgate.ask_interactive("Is the audit sound?", schema=Review, wait=False)
    schema = open_gate(str(handle.id)).opened.questions[0].schema
    assert schema == Review.model_json_schema()
    with pytest.raises(errors.BadAnswer, match="approved"):
        gitgate.respond(str(handle.id), {"notes": "?"})
    gitgate.respond(str(handle.id), {"approved": True, "findings": [{"title": "index", "severity": "high"}]})
    result = handle.wait()
    assert result is not None
    assert result.response == Review(approved=True, findings=[Finding(title="index", severity="high")])
    again = gitgate.Interactive(str(handle.id), schema=Review).wait()
    assert again is not None
    assert again.response is not None
    assert again.response.findings[0].severity == "high"


def test_a_model_may_know_more_than_its_schema(repo: Clone) -> None:
    """What its own validators refuse is told with the gate; the record stays as it is."""
    handle = gitgate.ask_interactive("Sound?", schema=Review, wait=False)
    gitgate.respond(str(handle.id), {"approved": True, "notes": "darn"})
    with pytest.raises(errors.BadAnswer, match=r"fits the schema, but not Review: (?s:.*)no swearing"):
        handle.wait()


def test_a_schema_is_held_against_the_answer(repo: Clone) -> None:
    """As a mapping it gives a mapping."""
    handle = gitgate.ask_interactive("Sound?", schema=SCHEMA, wait=False)
    gitgate.respond(str(handle.id), {"approved": False})
    result = handle.wait()
    assert result is not None
    assert result.response == {"approved": False}
    with pytest.raises(errors.Usage, match="expected a JSON Schema as a mapping, or a pydantic model"):
        gitgate.ask_interactive("Sound?", schema=int, wait=False)  # type: ignore[call-overload]


def test_it_blocks_until_somebody_decided(repo: Clone) -> None:
    """The waiter hears it: the gate is over then, and nobody else acts on it."""
    with meanwhile(repo, lambda gate: gitgate.respond(gate, "staging", directory=repo.path)):
        result = gitgate.ask_interactive("Where?", options=["Staging", "Production"], push=False)
    assert (result.outcome, result.response, result.transcript) == ("completed", "Staging", None)
    assert result.gate.state == "resumed"
    with pytest.raises(FrozenInstanceError):
        result.response = "Production"  # type: ignore[misc]


def test_a_conversation_leaves_its_traces(repo: Clone) -> None:
    """How long it was, what the agent signalled, and what was said where that was asked for."""
    handle = gitgate.Interactive().ask("Why?", capture_transcript=True)
    said = held(seconds=342, status="DONE", summary="PKCE", message="as agreed", transcript="person: PKCE?\n")
    talk_to_answer(str(handle.id), "Use PKCE.", said)
    result = handle.result
    assert result is not None
    assert (result.response, result.duration, result.transcript) == ("Use PKCE.", 342, "person: PKCE?\n")
    assert (result.status, result.summary, result.message) == ("DONE", "PKCE", "as agreed")


@pytest.mark.parametrize(
    ("end", "outcome", "reason"),
    [
        (
            lambda gate: stop_talk(gate, held("cancelled", 5, reason="it went nowhere")),
            "cancelled",
            "it went nowhere",
        ),
        (lambda gate: stop_talk(gate, held("timeout", 1800)), "timeout", "the session ended"),
        (lambda gate: gitgate.stop(gate, reason="enough"), "cancelled", "enough"),
        (lambda gate: gitgate.withdraw(gate, reason="found it"), "cancelled", "found it"),
    ],
    ids=["cancelled", "timeout", "stopped", "withdrawn"],
)
def test_what_was_not_decided_has_no_response(
    repo: Clone, end: Callable[[str], object], outcome: str, reason: str
) -> None:
    """A conversation that was given up or ran out of time, and a gate that was ended without one."""
    handle = gitgate.Interactive().ask("Sound?", outcome="approval")
    end(str(handle.id))
    result = handle.wait()
    assert result is not None
    assert (result.outcome, result.response, result.reason) == (outcome, None, reason)
    assert handle.status == "resolved"


@pytest.mark.parametrize("default", [None, "Staging"])
@pytest.mark.slow
def test_a_deadline_is_nobody_s_answer(repo: Clone, default: str | None) -> None:
    """With a declared default too: silence is a timeout, and the default is where any gate has it."""
    how = {"on_timeout": "default", "default": default} if default else {}
    result = gitgate.ask_interactive("Where?", options=["Staging", "Production"], gate_timeout=1, **how)  # type: ignore[call-overload]
    assert (result.outcome, result.response) == ("timeout", None)
    assert (result.gate.answer.value if result.gate.answer else None) == default


def test_one_thing_at_a_time(repo: Clone) -> None:
    """A second question on the same handle is refused while the first waits, from another thread too; afterwards not."""
    handle = gitgate.Interactive()
    assert (handle.status, handle.id, handle.result) == ("idle", None, None)
    with pytest.raises(errors.Usage, match="nothing was asked"):
        handle.wait()

    def attempt(number: int) -> bool:
        try:
            handle.ask(f"{number}?", directory=repo.path)
        except errors.Conflict as second:
            return f"git gate withdraw {handle.id}" not in second.hint
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(attempt, range(4))) == [False, False, False, True]
    first, statuses = str(handle.id), [handle.status]
    gitgate.respond(first, "this")
    statuses.append(handle.status)
    assert handle.ask("Again?") is handle
    assert handle.id != first
    assert [*statuses, handle.status] == ["pending", "resolved", "pending"]


def test_a_context_takes_back_what_is_pending(repo: Clone) -> None:
    """Nobody is asked to decide for a process that went away; what was decided stays."""
    with contextlib.suppress(ZeroDivisionError), gitgate.Interactive() as left:
        left.ask("Sound?")
        _ = 1 / 0
    assert gitgate.show(str(left.id)).state == "withdrawn"
    with gitgate.Interactive() as talk:
        gitgate.respond(str(talk.ask("Sound?").id), "yes")
    assert gitgate.show(str(talk.id)).state == "answered"
    with gitgate.Interactive():
        pass


def test_another_process_goes_on_with_it(
    repo: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the gate's id, from wherever it stands."""
    asked = gitgate.ask_interactive("Sound?", outcome="approval", wait=False)
    monkeypatch.chdir(tmp_path)
    handle = gitgate.Interactive(str(asked.id)[:5], directory=repo.path)
    assert handle.status == "pending"
    assert handle.wait(0) is None
    gitgate.respond(str(asked.id), approve=True, directory=repo.path)
    result = handle.wait()
    assert result is not None
    assert (result.response, handle.id) == (True, asked.id)
    assert asked.status == "resolved"
    gitgate.archive(directory=repo.path)
    later = gitgate.Interactive(str(asked.id), directory=repo.path).wait()
    assert later is not None
    assert later.response is True


def test_patience_has_an_end(repo: Clone) -> None:
    """The gate still waits then, and the error names the way back to it."""
    with pytest.raises(errors.StillWaiting) as waiting:
        gitgate.ask_interactive("Sound?", wait_for=0)
    (gate,) = gitgate.list()
    assert waiting.value.hint == f"to wait on: git gate wait {gate.id}"
    with pytest.raises(errors.StillWaiting):
        gitgate.pause("Deploy?", wait_for=0)


@pytest.mark.parametrize(
    ("act", "proceed", "reason", "message"),
    [
        (
            lambda gate, at: gitgate.respond(gate, approve=True, note="after six", directory=at),
            True,
            "",
            "after six",
        ),
        (
            lambda gate, at: gitgate.respond(gate, reject=True, note="tests fail", directory=at),
            False,
            "tests fail",
            "",
        ),
        (lambda gate, at: gitgate.signal(gate, status="CONTINUE", directory=at), True, "", ""),
        (lambda gate, at: gitgate.signal(gate, status="STOP", message="no", directory=at), False, "no", ""),
        (lambda gate, at: gitgate.stop(gate, reason="other way", directory=at), False, "other way", ""),
    ],
    ids=["approve", "reject", "continue", "stop-signal", "stop"],
)
@pytest.mark.slow
def test_a_checkpoint_is_a_word_on_going_on(
    repo: Clone, act: Callable[[str, Path], object], proceed: bool, reason: str, message: str
) -> None:
    """True where a person said yes; why not is the reason, and what came with a yes is the message."""
    with meanwhile(repo, lambda gate: act(gate, repo.path)):
        word = gitgate.pause(
            "Approve deployment?", context={"version": "1.2"}, title="Deployment", push=False
        )
    assert (bool(word), word.proceed, word.reason, word.message) == (proceed, proceed, reason, message)
    assert word.gate is not None
    assert word.gate.title == "Deployment"


@pytest.mark.slow
def test_silence_is_no_yes_at_a_checkpoint(repo: Clone) -> None:
    """A deadline that passed says so."""
    word = gitgate.pause("Deploy?", gate_timeout=1)
    assert not word
    assert word.reason == "nobody answered before the deadline"


def test_a_checkpoint_says_that_it_is_one(repo: Clone) -> None:
    """Whoever joins it opens a small prompt, and no agent."""
    with pytest.raises(errors.StillWaiting):
        gitgate.pause("Deploy?", context=["a"], wait_for=0)
    (gate,) = gitgate.list(type="session")
    question = open_gate(gate.id).opened.questions[0]
    assert question.talk is not None
    assert (question.talk.checkpoint, question.talk.outcome, question.talk.context) == (
        True,
        "approval",
        ["a"],
    )


WRONG = {
    "options with an approval": ({"outcome": "approval", "options": ["A"]}, "has no options"),
    "selection without options": ({"outcome": "selection"}, "needs options"),
    "structured without schema": ({"outcome": "structured"}, "needs a schema"),
    "out of the worktree": ({"cwd": ".."}, "cwd: expected a folder within the worktree"),
    "no such folder": ({"cwd": Path("nowhere")}, "there is no such folder"),
    "not JSON": ({"context": {"path": Path("/")}}, "context: expected values that JSON has"),
    "not a number": ({"context": float("nan")}, "context: expected values that JSON has"),
    "too large": ({"context": "x" * 300_000}, "at most 262,144 bytes"),
    "no MCP file": ({"mcp_config": "none.json"}, "mcp_config: none.json cannot be read"),
    "torn MCP file": ({"mcp_config": "torn.json"}, "torn.json, line 1: column 2: expected JSON"),
    "no MCP servers": ({"mcp_config": {"servers": {}}}, "mcp_config: mcpServers: expected a value"),
    "no duration": ({"timeout": "soon"}, "timeout: expected a duration"),
    "no time at all": ({"timeout": 0}, "timeout: "),
    "not a model's name": ({"model": "-p"}, "model: expected a model's name"),
    "no deadline": ({"gate_timeout": 0}, "a deadline has to be in the future"),
}


@pytest.mark.parametrize(("terms", "said"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_refused(repo: Clone, terms: dict[str, object], said: str) -> None:
    """By the keyword's own name, before anything is written."""
    repo.write("torn.json", "{")
    with pytest.raises(errors.Usage, match=said):
        gitgate.ask_interactive("Sound?", wait=False, **terms)  # type: ignore[call-overload]
    assert gitgate.list(all=True) == ()


def test_keywords_are_checked(repo: Clone) -> None:
    """As Python itself does it, whichever function they are given to."""
    calls: list[Callable[[], object]] = [
        lambda: gitgate.ask_interactive("Sound?", wait=False, sytem_prompt="x"),  # type: ignore[call-overload]
        lambda: gitgate.Interactive().ask("Sound?", wait=True),  # type: ignore[call-overload]
        lambda: gitgate.pause("Deploy?", model="opus"),  # type: ignore[call-arg]
    ]
    for call in calls:
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            call()


def test_an_ordinary_ask_takes_the_flags(repo: Clone) -> None:
    """With `type="session"`, by the long flags' names; with another type they are refused."""
    gate = gitgate.ask(
        "Sound?", type="session", outcome="approval", session_timeout="30m", session_context={"a": 1}
    )
    talk = open_gate(gate.id).opened.questions[0].talk
    assert talk is not None
    assert (talk.outcome, talk.timeout, talk.context) == ("approval", 1800, {"a": 1})
    with pytest.raises(errors.Usage, match="model is for a question that is decided in a session"):
        gitgate.ask("Sound?", model="opus")
    with pytest.raises(errors.Usage, match="file brings the question"):
        gitgate.ask(file="q.yaml", transcript=True)


def harness_of_the_docs(folder: Path) -> Path:
    """The program that the documentation shows, as a file."""
    text = (Path(__file__).parents[1] / "docs" / "python.md").read_text("utf-8")
    (code,) = (block.partition("```")[0] for block in text.split("```python\n")[1:] if "def harness" in block)
    assert len([line for line in code.splitlines() if line.strip()]) <= 25
    place = folder / "harness.py"
    place.write_text(code, "utf-8")
    return place


@pytest.mark.parametrize("last", ["yes", "no", "/quit"])
def test_a_harness_of_ones_own_records_what_join_does(repo: Clone, tmp_path: Path, last: str) -> None:
    """The documentation's, as a program that a person talks to: what was said, how long, and what it came to."""
    handle = gitgate.Interactive().ask("May we?", outcome="approval", capture_transcript=True)
    words = [sys.executable, str(harness_of_the_docs(tmp_path)), str(handle.id)]
    done = subprocess.run(words, cwd=repo.path, input=f"why?\n{last}\n", text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    result = handle.wait("10s")
    assert result is not None
    assert result.transcript is not None
    assert result.transcript.startswith("person: why?\n\nagent: Is that all")
    gate = gitgate.show(str(handle.id))
    assert gate.session is not None
    if last == "/quit":
        assert (result.outcome, gate.state, result.reason) == ("cancelled", "stopped", "given up")
        return
    assert (result.outcome, result.response) == ("completed", last == "yes")
    assert gate.answer is not None
    assert (gate.answer.via, gate.session.source, gate.session.confirmed) == ("python", "person", True)


@pytest.mark.parametrize(
    ("outcome", "response", "said"),
    [
        ("completed", None, "what a completed conversation came to"),
        ("cancelled", True, "what a completed conversation came to"),
        ("done", True, "expected 'completed', 'cancelled' or 'timeout'"),
        ("completed", "PERHAPS", "decides nothing"),
    ],
)
def test_what_no_conversation_comes_to_is_refused(
    repo: Clone, outcome: Any, response: object, said: str
) -> None:
    """And the gate waits."""
    gate = gitgate.ask("May we?", type="approval")
    with pytest.raises(errors.GateError, match=said):
        gitgate.complete(gate, outcome, response)
    assert gitgate.show(gate.id).state == "awaiting"


def test_an_agent_completes_nothing(repo: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its words are no person's; a status of a checkpoint is as good as a yes, from a person."""
    gate = gitgate.ask("Go on?", type="session", checkpoint=True)
    monkeypatch.setenv("GITGATE_AGENT", "coder")
    with pytest.raises(errors.NotAllowed, match="for people"):
        gitgate.complete(gate, "completed", True)
    monkeypatch.delenv("GITGATE_AGENT")
    after = gitgate.complete(gate, "completed", "CONTINUE", summary="all read", seconds=4.2)
    assert after.answer is not None
    assert after.answer.value is True
    assert after.session is not None
    assert (after.session.status, after.session.summary, after.session.seconds) == ("CONTINUE", "all read", 4)
