"""The demonstration's model: what it says follows from the conversation that it is shown, and from nothing else."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from gitgate.errors import Failure
from gitgate.setup import demo
from gitgate.setup.demo import (
    QUESTION,
    DemoStep,
    ModelLine,
    RehearsedModel,
    answer_in,
    conversation_step,
    learnt,
    play_claude,
    rehearsed,
)
from support import PATIENCE
from support.testbed.command import Command

BEGIN: dict[str, Any] = {"role": "user", "content": "Finish the login."}
REMINDER = {"type": "text", "text": f'<system-reminder>\n"{QUESTION}"="SQLite"\n</system-reminder>'}


def said_by_model(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "assistant", "content": learnt(messages).blocks()}


def result(text: object) -> dict[str, Any]:
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": text}, REMINDER],
    }


def asked() -> list[dict[str, Any]]:
    """The conversation until the question."""
    messages = [BEGIN]
    messages += [said_by_model(messages), result("(no output)")]
    return [*messages, said_by_model(messages)]


ANSWERS = {
    "as the call's result": result(f'Your questions have been answered: "{QUESTION}"="Postgres". Go on.'),
    "as the call's result in blocks": result([{"type": "text", "text": f'"{QUESTION}"="Postgres"'}]),
    "in words": {"role": "user", "content": "(gitgate)\n<<< answer 4436\nPostgres\n>>> answer 4436"},
}


@pytest.mark.parametrize("way", ANSWERS)
def test_the_model_begins_asks_and_finishes_with_the_answer(way: str) -> None:
    """However the answer is told; what others say of an answer is none."""
    messages = asked()
    assert [block.get("name") for block in messages[-1]["content"]] == [None, "AskUserQuestion"]
    assert answer_in(messages) is None
    messages.append(ANSWERS[way])
    assert answer_in(messages) == "Postgres"
    line = learnt(messages)
    assert line.tool == "Bash"
    command = str(line.arguments["command"])
    assert "import psycopg" in command
    assert "git commit -q -m 'Log in with Postgres'" in command
    messages += [said_by_model(messages), result("(no output)")]
    assert learnt(messages) == ModelLine("The login uses Postgres now.")


def test_a_question_that_nobody_answered_is_not_guessed() -> None:
    """Told that its call was denied, the model stops."""
    assert learnt([*asked(), result("denied")]).tool == ""


def post(model: RehearsedModel, path: str, body: dict[str, object] | None = None) -> tuple[int, bytes]:
    """A request as it is; without a body it is no more than a look."""
    there = HTTPConnection("127.0.0.1", model.server_address[1], timeout=PATIENCE)
    there.request("POST" if body else "GET", path, json.dumps(body or {}).encode())
    reply = there.getresponse()
    return reply.status, reply.read()


def test_the_model_speaks_as_the_api_does() -> None:
    """Whole or in events; what is asked without tools is no part of the conversation."""
    with rehearsed(learnt) as model:
        body: dict[str, object] = {"model": "m", "messages": [BEGIN], "tools": [{"name": "Bash"}]}
        whole = json.loads(post(model, "/v1/messages", body)[1])
        title = json.loads(post(model, "/v1/messages?beta=true", {"messages": [BEGIN]})[1])
        events = post(model, "/v1/messages", {**body, "stream": True})[1].decode()
        assert b"input_tokens" in post(model, "/v1/messages/count_tokens", body)[1]
        assert [post(model, "/v1/other", body)[0], post(model, "/")[0]] == [404, 404]
        assert model.shown == [BEGIN]
        with pytest.raises(Failure, match="did not reach"):
            conversation_step(model)
        model.shown = [*asked(), ANSWERS["as the call's result"]]
        told = conversation_step(model).said.splitlines()
    assert (whole["stop_reason"], whole["content"][1]["name"]) == ("tool_use", "Bash")
    assert title["stop_reason"] == "end_turn"
    deltas = [json.loads(line[6:]) for line in events.splitlines() if line.startswith("data: ")]
    sent = "".join(event["delta"].get("partial_json", "") for event in deltas if "delta" in event)
    assert json.loads(sent) == whole["content"][1]["input"]
    assert (told[0], told[-1].partition(":")[0]) == ("user: Finish the login.", "user")


def program(place: Path, body: str) -> str:
    place.mkdir()
    (place / "claude").write_text(f"#!/bin/sh\n{body}\n")
    (place / "claude").chmod(0o755)
    return str(place)


@pytest.mark.slow
def test_a_program_that_does_not_ask_is_told_of(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demonstration shows what happened or nothing; and the person's own environment reaches no program of it."""
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "the-persons-own")
    seen = tmp_path / "seen"
    body = f'env > {seen}; [ "$1" = --version ] && echo 9.9 || echo \'{{"type": "result", "result": "I will not"}}\''
    path = f"{program(tmp_path / 'bin', body)}:/usr/bin:/bin"
    room = tmp_path / "room"
    room.mkdir()
    steps: list[DemoStep] = []
    with pytest.raises(Failure, match="I will not"):
        steps.extend(
            play_claude(room, {"PATH": path, "ANTHROPIC_AUTH_TOKEN": "the-persons-own", "HOME": str(home)})
        )
    assert [step.command[0] for step in steps] == ["git", "claude"]
    told = dict(line.partition("=")[::2] for line in seen.read_text().splitlines())
    assert told["ANTHROPIC_API_KEY"] == "dummy-not-a-key"
    assert told["ANTHROPIC_BASE_URL"].startswith("http://127.0.0.1:")
    assert (told["HOME"], told["CLAUDE_CONFIG_DIR"]) == (str(room / "home"), str(room / "home/.claude"))
    assert "the-persons-own" not in told.values()


def test_without_the_program_it_says_how_to_get_it(cli: Command, tmp_path: Path) -> None:
    """Before anything is made."""
    (tmp_path / "scratch").mkdir()
    said = cli("demo", "--claude", env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path / "scratch")}, code=1)
    assert "npm install -g @anthropic-ai/claude-code" in said.err
    assert list((tmp_path / "scratch").iterdir()) == []
    assert "--claude" in cli("demo", "--help", code=0).out
    assert demo.PASSED_ON.isdisjoint({"HOME", "ANTHROPIC_API_KEY", "HTTPS_PROXY"})
