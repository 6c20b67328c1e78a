"""Setup: the whole loop in a scratch folder, with a real server, its real hooks and the real command; and a model that has learnt its part, so that the real Claude Code needs no account there."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..agents.agent import Launch
from ..agents.claude import last_result
from ..agents.claude.command import plugin_folder
from ..agents.process import run_launch
from ..errors import Failure
from ..store.git import Git
from ..text import one_line

if TYPE_CHECKING:
    from ..agents.agent import Finished

# A model that has learnt its part, on loopback: it answers as Claude's Messages API does, by a function
# of what it is shown.
#
# The demonstration gives it to the real Claude Code, which then needs no account, no key and no network.
# It remembers nothing from one request to the next: what it goes on from is the conversation that the
# program sends along.


Message = Mapping[str, Any]
BODY_MOST = 32_000_000
NO_TOKENS = {"input_tokens": 1, "output_tokens": 1}


@dataclass(frozen=True)
class ModelLine:
    """Next line of the scripted model: a text, and a tool's name with its input, if one is to be called."""

    text: str
    tool: str = ""
    arguments: Mapping[str, object] = field(default_factory=dict)

    def blocks(self) -> list[dict[str, object]]:
        said: list[dict[str, object]] = [{"type": "text", "text": self.text}]
        if self.tool:
            # New every time: the program drops a call whose id it has seen.
            use = {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:24]}", "name": self.tool}
            said.append({**use, "input": dict(self.arguments)})
        return said


Part = Callable[[Sequence[Message]], ModelLine]


class RehearsedModel(ThreadingHTTPServer):
    """The model, listening. `shown` is the conversation of the last request."""

    daemon_threads = True

    def __init__(self, part: Part) -> None:
        super().__init__(("127.0.0.1", 0), ModelHandler)
        self.part = part
        self.shown: Sequence[Message] = ()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: the program drops its connections when it is done."""

    def reply(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A whole message. Requests without tools are for titles and the like, and no part of the conversation."""
        line = ModelLine("A demonstration")
        if body.get("tools"):
            self.shown = list(body.get("messages") or ())
            line = self.part(self.shown)
        about = {"id": f"msg_{uuid.uuid4().hex[:24]}", "type": "message", "role": "assistant"}
        ending = {"stop_reason": "tool_use" if line.tool else "end_turn", "stop_sequence": None}
        return {**about, "model": body.get("model"), "content": line.blocks(), **ending, "usage": NO_TOKENS}


class ModelHandler(BaseHTTPRequestHandler):
    server: RehearsedModel

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: standard error is the demonstration's."""

    def do_HEAD(self) -> None:
        self.answer(200, "application/json", b"")

    def do_GET(self) -> None:
        self.answer(404, "application/json", b"{}")

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        path = self.path.partition("?")[0]
        if path != "/v1/messages" or size > BODY_MOST:
            known = path.endswith("/count_tokens")
            self.answer(200 if known else 404, "application/json", json.dumps(NO_TOKENS).encode())
            return
        body = json.loads(self.rfile.read(size))
        whole = self.server.reply(body)
        if body.get("stream"):
            sent = "".join(
                f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in stream(whole)
            )
            self.answer(200, "text/event-stream", sent.encode())
        else:
            self.answer(200, "application/json", json.dumps(whole).encode())

    def answer(self, status: int, kind: str, body: bytes) -> None:
        with contextlib.suppress(OSError):  # the program was ended, or gave up
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)


def stream(whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The message in the events by which the API streams it."""
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            begun, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            begun = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


@contextlib.contextmanager
def rehearsed(part: Part) -> Iterator[RehearsedModel]:
    """The model that plays `part`, for as long as this lasts. It listens on loopback only, and keeps no key that it is sent."""
    with RehearsedModel(part) as model:
        thread = threading.Thread(target=model.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield model
        finally:
            model.shutdown()
            thread.join()


# The whole loop in a scratch folder, with a real server, its real hooks and the real command; no model is
# needed.
#
# With `--claude` the agent is the real Claude Code, against a model on loopback that has learnt its part.
# Nothing of the person's own configuration is read or written, and nothing else is contacted.


RESUME_TIMEOUT = 40.0
POLL = 0.1
SERVER, AGENT, PERSON = "server.git", "agent", "you"

PROGRAM = """\
def login(name, password):
    raise NotImplementedError("which database?")
"""
HALF_DONE = """\
import db


def login(name, password):
    user = db.find(name)
    return user is not None and user.check(password)
"""
# The agent of the demonstration: it finishes the module that its question was about, and commits. It is a script because
# the loop is what is shown; any program that can be started again does as well.
SCRIPT = """\
#!/bin/sh
# Started again with the answer, in the place that it left: the half-done work is there.
case "$GITGATE_ANSWER" in
Postgres*) line='import psycopg' ;;
*) line='import sqlite3' ;;
esac
printf '%s\\n\\n\\ndef find(name):\\n    return USERS[name]\\n' "$line" > db.py
git add -A
git commit -q -m "Log in with $GITGATE_ANSWER"
"""


@dataclass(frozen=True)
class DemoStep:
    """One command of the demonstration, who typed it where, and what it said."""

    who: str
    why: str
    command: tuple[str, ...]
    said: str

    @property
    def typed(self) -> str:
        return shlex.join(self.command)


class DemoStage:
    """The scratch folder: a server, the agent's clone and the person's. `given` is set for all of them."""

    def __init__(self, room: Path, env: Mapping[str, str], given: Mapping[str, str]) -> None:
        self.room = room
        home = room / "home"
        home.mkdir()
        (home / ".gitconfig").write_text("[init]\n\tdefaultBranch = main\n", encoding="utf-8")
        kept = {name: value for name, value in env.items() if not is_personal(name)}
        # `git gate` has to be this git-gate, whether or not its folder is on PATH.
        path = f"{Path(sys.executable).parent}:{kept.get('PATH', '')}"
        own = {"HOME": str(home), "PATH": path, "GIT_CONFIG_NOSYSTEM": "1", "NO_COLOR": "1"}
        self.env = {**kept, **own, **given}
        self.gate = ""

    def git(self, place: str, *command: str) -> str:
        """Run git in one of the places, as a person would; what it printed, talk included."""
        done = Git(self.room / place, self.env, hooks=True).run(*command, check=False)
        said = "\n".join(
            part for part in (done.out.decode("utf-8", "replace").rstrip("\n"), done.err) if part
        )
        if done.code:
            raise Failure(
                f"the demonstration failed at: git {shlex.join(command)}\n{said}",
                hint=f"look around in {self.room}; git gate doctor tells what this machine lacks",
            )
        return said

    def step(self, place: str, why: str, *command: str) -> DemoStep:
        return DemoStep(place, why, ("git", *command), self.git(place, *command))


def is_personal(name: str) -> bool:
    """Variables that would lead the demonstration to the person's own repositories, agents or jobs."""
    from ..agents import is_agents

    ours = name.startswith(("GIT_", "GITGATE_", "GITHUB_", "XDG_", "CLAUDE", "CODEX_")) or name == "CI"
    return ours or is_agents(name)


@dataclass(frozen=True)
class DemoActor:
    """Actor that plays the agent: its preparation of the server and its clone, and its work until it has asked."""

    prepare: Callable[[DemoStage], None]
    ask: Callable[[DemoStage], Iterator[DemoStep]]
    env: Mapping[str, str] = field(default_factory=dict)


def demo_steps(
    room: Path,
    env: Mapping[str, str],
    actor: DemoActor | None = None,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[DemoStep]:
    """The steps, each as it is done."""
    actor = actor or DemoActor(set_up_script, ask_as_script)
    stage = DemoStage(room, env, actor.env)
    yield from set_up(stage, actor)
    yield from actor.ask(stage)
    refs = stage.git(AGENT, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/hitl/open")
    stage.gate = refs.splitlines()[0]
    yield from answer_step(stage)
    yield from resumed(stage, sleep)


def set_up(stage: DemoStage, actor: DemoActor) -> Iterator[DemoStep]:
    stage.git("", "init", "-q", "--bare", SERVER)
    for name, person in ((SERVER, "Resumed Agent"), (AGENT, "Agent's Owner"), (PERSON, "You")):
        if name != SERVER:
            stage.git("", "clone", "-q", SERVER, name)
        stage.git(name, "config", "user.name", person)
        stage.git(name, "config", "user.email", f"{name.partition('.')[0]}@example.invalid")
    clone = stage.room / AGENT
    (clone / "login.py").write_text(PROGRAM, encoding="utf-8")
    stage.git(AGENT, "add", "login.py")
    stage.git(AGENT, "commit", "-q", "-m", "Plan the login")
    tip = stage.git(AGENT, "show-ref", "--verify", "--hash", "HEAD")
    stage.git(AGENT, "push", "-q", "origin", f"{tip}^{{object}}:refs/heads/main")
    stage.git(AGENT, "checkout", "-q", "-b", "login")
    stage.git(AGENT, "push", "-q", "-u", "origin", "login")
    actor.prepare(stage)
    yield stage.step(
        SERVER,
        "A bare repository becomes the server: its hooks guard gates and resume agents.",
        "gate",
        "init",
        "--server",
    )
    stage.git(AGENT, "config", "gitgate.session", "push")
    stage.git(AGENT, "gate", "init", "--no-resume", "-q")
    stage.git(PERSON, "gate", "init", "--no-resume", "-q")


def set_up_script(stage: DemoStage) -> None:
    script = stage.room / "agent.sh"
    script.write_text(SCRIPT, encoding="utf-8")
    for place in (SERVER, AGENT):
        stage.git(place, "config", "gitgate.agent.demo.resume", f"sh {shlex.quote(str(script))}")


def ask_as_script(stage: DemoStage) -> Iterator[DemoStep]:
    clone = stage.room / AGENT
    (clone / "login.py").write_text(HALF_DONE, encoding="utf-8")
    (clone / "notes.txt").write_text("Both drivers are installed.\n", encoding="utf-8")
    yield stage.step(AGENT, "An agent is half-way, and must not decide alone. It asks, and exits: nothing runs now.",
        "gate", "ask", "Which database should the login use?", "-o", "Postgres=the cluster that we have",
        "-o", "SQLite=one file, no server", "--context", "Users come in the hundreds.", "--agent", "demo")  # fmt: skip


def answer_step(stage: DemoStage) -> Iterator[DemoStep]:
    stage.git(PERSON, "gate", "sync", "-q")
    yield stage.step(PERSON, "In another clone, you look what waits for you.", "gate")
    yield stage.step(
        PERSON, "You read the question, and see what the agent did so far.", "gate", "show", stage.gate[:6]
    )
    yield stage.step(PERSON, "You answer. The answer is a commit; the server's hook acts on it.",
        "gate", "respond", stage.gate[:6], "postgres", "--note", "The cluster has room.")  # fmt: skip


def resumed(stage: DemoStage, sleep: Callable[[float], None]) -> Iterator[DemoStep]:
    until_resumed(stage, sleep)
    stage.git(PERSON, "fetch", "-q", "origin")
    yield stage.step(PERSON, "The agent was started again on its half-done work, with your answer, and finished it.",
        "log", "-1", "--stat", "--format=%h %s%n%n%b", "origin/login")  # fmt: skip
    yield stage.step(
        PERSON, "Who asked, who decided, what came of it: all of it is in Git.", "gate", "log", stage.gate[:6]
    )
    yield stage.step(PERSON, "And it can be checked.", "gate", "verify")


def until_resumed(stage: DemoStage, sleep: Callable[[float], None]) -> None:
    import json

    for _ in range(int(RESUME_TIMEOUT / POLL)):
        stage.git(PERSON, "gate", "sync", "-q")
        state = json.loads(stage.git(PERSON, "gate", "show", stage.gate, "--json"))["state"]
        if state == "resumed":
            return
        if state == "failed":
            break
        sleep(POLL)
    raise Failure(
        "the agent of the demonstration was not resumed",
        hint=f"its log is in {stage.room / SERVER / 'gitgate' / 'logs'}",
    )


MODEL = "model"
PASSED_ON = frozenset("PATH LANG LC_ALL TERM TZ TMPDIR TMP TEMP LD_LIBRARY_PATH PYTHONPATH".split())
AGENT_TIMEOUT = 60.0
TASK = "Finish the login."
QUESTION = "Which database should the login use?"
OPTIONS = {"Postgres": "the cluster that we have", "SQLite": "one file, no server"}
# The answer is the call's own result; where the conversation was cut off before the call, it is told in words.
ANSWER = re.compile(rf'"{re.escape(QUESTION)}"="([^"]+)"|^<<< answer \w+\n(.+)\n>>>', re.MULTILINE)
DRIVERS = {"Postgres": "psycopg", "SQLite": "sqlite3"}
SHOWN_CELLS = 110


def find_claude(env: Mapping[str, str]) -> str:
    """Return the path of Claude Code; refuse if it is not on PATH."""
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
        actor = DemoActor(
            partial(prepare_demo, program), partial(ask_step, program), model_environment(room, model)
        )
        yield from demo_steps(room, {name: env[name] for name in PASSED_ON & set(env)}, actor)
        yield conversation_step(model)


def model_environment(room: Path, model: RehearsedModel) -> dict[str, str]:
    """Return the environment that makes Claude Code connect to this model and to nothing else."""
    quiet = "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC DISABLE_TELEMETRY DISABLE_AUTOUPDATER DISABLE_ERROR_REPORTING"
    return {
        "CLAUDE_CONFIG_DIR": str(room / "home" / ".claude"),
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "dummy-not-a-key",
        **dict.fromkeys(quiet.split(), "1"),
    }


def prepare_demo(program: str, stage: DemoStage) -> None:
    stage.git(SERVER, "config", "gitgate.agent.claude.program", json.dumps([program]))
    stage.git(SERVER, "config", "gitgate.agent.claude.arguments", json.dumps(["--allowedTools", "Bash"]))
    stage.git(SERVER, "config", "gitgate.agentTimeout", f"{AGENT_TIMEOUT:g}s")


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
    return run_launch(
        Launch((program, *arguments), stage.room / AGENT, stage.env, folder, timeout=AGENT_TIMEOUT)
    )


def output_text(said: bytes) -> str:
    return said.decode("utf-8", "replace").strip()


def learnt(messages: Sequence[Message]) -> ModelLine:
    """The model's part, from nothing but the conversation so far: begin, ask, finish with the answer, say so."""
    used = [str(block["input"]) for block in blocks(messages) if block.get("type") == "tool_use"]
    answer = answer_in(messages)
    if answer is not None:
        return (
            ModelLine(f"The login uses {answer} now.")
            if "git commit" in used[-1]
            else last_line_of_model(answer)
        )
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


def last_line_of_model(answer: str) -> ModelLine:
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
    """Return the text of a block; for a tool's result the text in it."""
    said = block.get("text") or block.get("content") or ""
    return said.strip() if isinstance(said, str) else "\n".join(map(text_of, said))


def answer_in(messages: Sequence[Message]) -> str | None:
    """Return the answer that somebody gave, from the messages; the model itself writes nothing of that form."""
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
