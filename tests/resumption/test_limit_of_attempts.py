"""The limit of attempts: no text of an agent, and of its error, moves it. Only an outcome's `cause` says that nothing was tried."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from gitgate.model import ASKED_AGAIN, ENDED, HANDED_BACK
from gitgate.model.gate import Outcome
from gitgate.record.events import dump_event, parse_event
from support.testbed.command import Command
from support.testbed.repositories import Clone

ID = "0199c4f0-0000-7000-8000-000000000000"
# Sentences of ours, each with what it once decided: no attempt, a question of its own, a run that may go on, a refusal.
WORDS = (
    "handed back",
    "it asked again",
    "stalled: still waiting",
    "refused: as it is it can never be pushed",
)


def codex(home: Path, words: str) -> list[str]:
    kept = home / ".codex" / f"sessions/2026/01/02/rollout-2026-01-02T03-04-05-{ID}.jsonl"
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps({"type": "response_item", "payload": {"text": "hello"}}) + "\n")
    return [
        json.dumps({"type": "thread.started", "thread_id": ID}),
        json.dumps({"type": "turn.failed", "error": {"message": words}}),
    ]


def copilot(home: Path, words: str) -> list[str]:
    kept = home / ".copilot" / "session-state" / ID / "events.jsonl"
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps({"type": "user.message", "data": {"content": "hello"}}) + "\n")
    return [json.dumps({"type": "session.error", "data": {"message": words}})]


def is_failing_program(folder: Path, lines: list[str]) -> Path:
    """Write a program that fails with these events; after eight starts it is done, so that a limit that does not hold is seen."""
    program = folder / "agent"
    told = "\n".join(f"printf '%s\\n' {shlex.quote(line)}" for line in lines)
    program.write_text(
        f'#!/bin/sh\necho x >> {folder}/starts\n[ "$(wc -l < {folder}/starts)" -gt 8 ] && exit 0\n{told}\nexit 1\n'
    )
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("codex", WORDS[0]),
        ("codex", f"{WORDS[0]}: no room"),
        ("copilot", WORDS[0]),
        *(pytest.param("codex", words, marks=pytest.mark.slow) for words in WORDS[1:]),
        *(pytest.param("copilot", words, marks=pytest.mark.slow) for words in WORDS[1:]),
    ],
)
def test_an_error_text_does_not_lift_the_limit(
    name: str, words: str, repo: Clone, cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent whose error begins with a sentence of ours is started as often as any other, and the gate has failed."""
    home, folder = tmp_path / "home-of-it", tmp_path / "program"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(home))
    lines = {"codex": codex, "copilot": copilot}[name](home, words)
    repo.git("config", f"gitgate.agent.{name}.program", str(is_failing_program(folder, lines)))
    repo.git("config", "gitgate.retryAfter", "0s")
    repo.git("config", "gitgate.maxAttempts", "2")
    gate = cli.quick("ask", "Which?", "--agent", name, "--session", ID, code=0).line
    cli.quick("respond", gate, "Postgres", "--no-resume", code=0)
    cli.quick("resume", gate, code=1)
    assert len((folder / "starts").read_text().splitlines()) == 2
    found = cli.quick("show", gate, "--json", code=0).json
    assert found["state"] == "failed"
    assert words in found["resume"]["reason"]


CLAIM = "1" * 40


def read_back(**fields: object) -> Outcome:
    said = {"hitl": 1, "at": "2026-01-02T03:04:05Z", "claim": CLAIM, "result": "released", **fields}
    event = parse_event("outcomes", json.dumps(said).encode() + b"\n", "outcomes/x.yaml")
    assert isinstance(event, Outcome)
    return event


@pytest.mark.parametrize("reason", ["handed back", "handed back: no space left on device"])
def test_what_an_older_version_handed_back_is_no_attempt(reason: str) -> None:
    """It had no word for it but the reason. It named no log then, as it did wherever an agent had ended."""
    assert read_back(reason=reason).cause == HANDED_BACK


@pytest.mark.parametrize(
    "fields",
    [
        {"reason": "handed back", "log": "/repo/.git/gitgate/logs/7k2f.log"},
        {"reason": "handed back", "said": "I am done"},
        {"reason": "handed back", "result": "failed"},
        {"reason": "handed back in vain"},
        {"reason": "its job handed back"},
        {"reason": "handed back", "cause": "ended"},
        {"reason": "handed back", "cause": "unheard of"},
    ],
)
def test_what_only_says_so_is_an_attempt(fields: dict[str, object]) -> None:
    """An agent's own text stood in the reason of older outcomes as well; they named the log. A newer one names its cause."""
    assert read_back(**fields).cause == ENDED


@pytest.mark.parametrize("cause", [ENDED, HANDED_BACK, ASKED_AGAIN])
def test_an_outcome_always_names_its_cause(cause: str) -> None:
    """Whatever its reason is, it is never read as an older one."""
    said = Outcome("2026-01-02T03:04:05Z", CLAIM, "released", reason="handed back", cause=cause)
    assert parse_event("outcomes", dump_event(said), "outcomes/x.yaml") == said
