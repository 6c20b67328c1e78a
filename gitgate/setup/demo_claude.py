"""Setup: the demonstration with the real Claude Code as the agent, against a model on loopback that has learnt its part.

No account, no key, no network. Of the person's environment only what a program needs to run at all is passed on: their own
Claude Code, its settings and credentials are neither read nor written.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..agents.agent import Launch
from ..agents.claude.adapter import last_result
from ..agents.claude.hooks import plugin_folder
from ..agents.claude.rehearsed import Message, ModelLine, RehearsedModel, rehearsed
from ..agents.process import run_launch
from ..errors import Failure
from ..text.display import one_line
from .demo import AGENT, HALF_DONE, SERVER, DemoActor, DemoStage, DemoStep, play

if TYPE_CHECKING:
    from ..agents.agent import Finished


MODEL = "model"
PASSED_ON = frozenset("PATH LANG LC_ALL TERM TZ TMPDIR TMP TEMP LD_LIBRARY_PATH PYTHONPATH".split())
WITHIN = 60.0
TASK = "Finish the login."
QUESTION = "Which database should the login use?"
OPTIONS = {"Postgres": "the cluster that we have", "SQLite": "one file, no server"}
# The answer is the call's own result; where the conversation was cut off before the call, it is told in words.
ANSWER = re.compile(rf'"{re.escape(QUESTION)}"="([^"]+)"|^<<< answer \w+\n(.+)\n>>>', re.MULTILINE)
DRIVERS = {"Postgres": "psycopg", "SQLite": "sqlite3"}
SHOWN_CELLS = 110


def find_claude(env: Mapping[str, str]) -> str:
    """Where Claude Code is."""
    found = shutil.which("claude", path=env.get("PATH"))
    if found is None:
        raise Failure(
            "Claude Code is not on PATH",
            hint="npm install -g @anthropic-ai/claude-code; git gate demo shows the same with a script",
        )
    return str(Path(found).absolute())


def play_claude(room: Path, env: Mapping[str, str]) -> Iterator[DemoStep]:
    """The steps, each as it is done, and at last what the model was shown."""
    program = find_claude(env)
    with rehearsed(learnt) as model:
        actor = DemoActor(partial(prepare, program), partial(ask_step, program), surroundings(room, model))
        yield from play(room, {name: env[name] for name in PASSED_ON & set(env)}, actor)
        yield conversation_step(model)


def surroundings(room: Path, model: RehearsedModel) -> dict[str, str]:
    """What makes Claude Code speak to this model and to nobody else."""
    quiet = "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC DISABLE_TELEMETRY DISABLE_AUTOUPDATER DISABLE_ERROR_REPORTING"
    return {
        "CLAUDE_CONFIG_DIR": str(room / "home" / ".claude"),
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "dummy-not-a-key",
        **dict.fromkeys(quiet.split(), "1"),
    }


def prepare(program: str, stage: DemoStage) -> None:
    stage.git(SERVER, "config", "gitgate.agent.claude.program", json.dumps([program]))
    stage.git(SERVER, "config", "gitgate.agent.claude.arguments", json.dumps(["--allowedTools", "Bash"]))
    stage.git(SERVER, "config", "gitgate.agentTimeout", f"{WITHIN:g}s")


def ask_step(program: str, stage: DemoStage) -> Iterator[DemoStep]:
    told = start_claude(stage, program, "--version")
    yield DemoStep(
        AGENT, "The agent is the real Claude Code.", ("claude", "--version"), output_text(told.out)
    )
    claude = ("claude", "-p", TASK, "--output-format", "json", "--permission-prompt-tool", "stdio",
        "--allowedTools", "Bash", "--plugin-dir", str(plugin_folder()))  # fmt: skip
    command = ("gate", "wrap", "--waiting-ok", "--", *claude)
    ended = last_result(stage.git(AGENT, *command).encode()) or {}
    call = ended.get("deferred_tool_use")
    if not isinstance(call, dict):
        raise Failure(
            f"Claude Code did not ask, or was not stopped: {ended.get('result') or ended}",
            hint="git gate demo shows the same with a script; git gate demo --claude --keep leaves everything to look at",
        )
    why = "It works until it must not decide alone. It asks, its conversation is kept, and its run ends: nothing runs now."
    yield DemoStep(
        AGENT, why, ("git", *command), f"{ended.get('stop_reason')}: {call.get('name')}, {QUESTION}"
    )


def start_claude(stage: DemoStage, program: str, *arguments: str) -> Finished:
    """Run Claude Code in the agent's clone, to its end."""
    folder = stage.room / "claude" / arguments[0].strip("-")
    return run_launch(Launch((program, *arguments), stage.room / AGENT, stage.env, folder, timeout=WITHIN))


def output_text(said: bytes) -> str:
    return said.decode("utf-8", "replace").strip()


def learnt(messages: Sequence[Message]) -> ModelLine:
    """The model's part, from nothing but the conversation so far: begin, ask, finish with the answer, say so."""
    used = [str(block["input"]) for block in blocks(messages) if block.get("type") == "tool_use"]
    answer = answer_in(messages)
    if answer is not None:
        return ModelLine(f"The login uses {answer} now.") if "git commit" in used[-1] else finish(answer)
    if not used:
        begin = (
            f"printf %s {shlex.quote(HALF_DONE)} > login.py && echo 'Both drivers are installed.' > notes.txt"
        )
        return ModelLine("I write what does not depend on the database.", "Bash", {"command": begin})
    if QUESTION in used[-1]:
        return ModelLine("Nobody decided, so I leave it as it is.")
    options = [{"label": label, "description": about} for label, about in OPTIONS.items()]
    asked = {"question": QUESTION, "header": "Database", "multiSelect": False, "options": options}
    return ModelLine("Which database is not mine to decide.", "AskUserQuestion", {"questions": [asked]})


def finish(answer: str) -> ModelLine:
    text = f"import {DRIVERS.get(answer, 'sqlite3')}\n\n\ndef find(name):\n    return USERS[name]\n"
    commit = f"git add -A && git commit -q -m {shlex.quote(f'Log in with {answer}')}"
    return ModelLine(
        f"{answer} it is.", "Bash", {"command": f"printf %s {shlex.quote(text)} > db.py && {commit}"}
    )


def blocks(messages: Sequence[Message]) -> Iterator[Message]:
    """Every block that one of the two said, a bare text too; what the program tells the model of itself is left out."""
    for message in messages:
        content = message.get("content")
        found = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in found or ():
            if message.get("role") != "system" and not text_of(block).startswith("<system-reminder>"):
                yield {"role": message.get("role"), **block}


def text_of(block: Message) -> str:
    """What a block says; of a tool's result the text in it."""
    said = block.get("text") or block.get("content") or ""
    return said.strip() if isinstance(said, str) else "\n".join(map(text_of, said))


def answer_in(messages: Sequence[Message]) -> str | None:
    """What somebody answered; the model itself says nothing of that form."""
    texts = (text_of(block) for block in blocks(messages) if block["role"] == "user")
    found = next((match for text in texts if (match := ANSWER.search(text))), None)
    return (found[1] or found[2]) if found else None


def conversation_step(model: RehearsedModel) -> DemoStep:
    """The last request, for a person to see that it goes back to the beginning and holds the answer."""
    if answer_in(model.shown) is None:
        raise Failure("the answer did not reach the model", hint="git gate demo --claude --keep shows more")
    lines = [f"{block['role']}: {one_line(block_text(block), SHOWN_CELLS)}" for block in blocks(model.shown)]
    why = "What the model was shown when it went on, on the server: all of it, and your answer."
    return DemoStep(MODEL, why, ("POST", "/v1/messages"), "\n".join(lines))


def block_text(block: Message) -> str:
    used = block.get("type") == "tool_use"
    return f"{block['name']} {json.dumps(block['input'])}" if used else text_of(block)
