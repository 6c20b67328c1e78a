"""Golden: each type of question, as each surface shows it, and what an answer given there becomes."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, ProxyHandler, build_opener

from support import PATIENCE
from support.testbed.command import COMMAND

from .scene import Scene

SCHEMA = {
    "type": "object",
    "required": ["region"],
    "properties": {
        "region": {"type": "string", "enum": ["eu", "us"], "description": "Where it runs"},
        "nodes": {"type": "integer", "minimum": 1, "default": 3},
        "share": {"type": "number"},
        "backup": {"type": "boolean", "default": True},
        "owner": {"type": "string", "title": "Owner", "format": "email"},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["hot", "cold"]}},
        "limits": {"type": "object"},
    },
}
OPTIONS = ("-o", "Postgres", "-o", "SQLite=one file, no server", "-o", "A,B <c> & `d`")
# By a name: what an agent types to ask it.
ASKED: Mapping[str, tuple[str, ...]] = {
    "text": ("Why is the *cache* needed?", "--type", "text"),
    "text-default": ("Which prefix?", "--type", "text", "--default", "app_", "--timeout", "2h", "--on-timeout", "default"),
    "approval": ("Deploy to production?", "--type", "approval", "--context", "After 18:00 only.", "--priority", "high"),
    "choice": ("Which database?", *OPTIONS, "--default", "SQLite", "--timeout", "1d", "--on-timeout", "default", "--title", "Database"),
    "choice-only": ("Which database, of these?", *OPTIONS, "--no-other"),
    "choices": ("Which targets?", "--type", "choices", *OPTIONS),
    "choices-only": ("Which targets, of these?", "--type", "choices", *OPTIONS, "--no-other"),
    "form": ("What shall it have?", "--type", "form", "--schema", "schema.json"),
    "session": ("Is the new schema sound?", "--type", "session", "--outcome", "approval", "--session-timeout", "30m"),
    "session-selection": ("Which of them, after a look?", "--type", "session", "--outcome", "selection", "-o", "A", "-o", "B"),
    "session-freeform": ("How shall errors look?", "--type", "session", "--outcome", "freeform"),
    "session-structured": ("What is the plan?", "--type", "session", "--outcome", "structured", "--schema", "schema.json"),
    "checkpoint": ("Look at it so far", "--type", "session", "--checkpoint"),
    "several": ("--file", "several.json"),
}  # fmt: skip
SEVERAL = {
    "title": "Three things at once",
    "questions": [
        {"key": "db", "prompt": "Which database?", "type": "choice", "options": ["Postgres", "SQLite"]},
        {"key": "go", "prompt": "Deploy?", "type": "approval"},
        {"key": "name", "prompt": "Which name?", "type": "text"},
    ],
}
# By the gate, in the words of each question: what does not fit first, then what does.
TYPED: Mapping[str, tuple[str, ...]] = {
    "text": ("?", "It is slow."),
    "text-default": ("", "web_"),
    "approval": ("perhaps", "n"),
    "choice": ("4", "MySQL, we have it", "y"),
    "choice-only": ("MySQL", "2"),
    "choices": ("1,9", "1, sql"),
    "choices-only": ("nothing of these", "1 2"),
    "form": ("mars", "eu", "no number", "5", "0.5", "n", "ada@example.org", '["hot"]', ""),
    "several": ("1", "y", "web"),
}
WAYS = (
    "text",
    "text-default",
    "approval",
    "choice",
    "choice-only",
    "choices",
    "choices-only",
    "form",
    "several",
)
"""Those that are answered by words; a session is decided in a conversation."""

Render = Callable[[Scene], Iterator[tuple[str, str]]]


def set_the_scene(scene: Scene) -> None:
    """Ask all of them, with a little work."""
    ada = scene.clones["ada"]
    ada.write("schema.json", json.dumps(SCHEMA))
    ada.write("several.json", json.dumps(SEVERAL))
    ada.commit("what is asked")
    ada.git("push", "-q", "origin", "main")
    ada.write("README", "A project.\nHalf done.\n")
    ada.write("new file.txt", "x\n")
    for name, words in ASKED.items():
        scene.turn(1)
        scene.ask(name, *words)
    scene("sync", "-q")
    scene("init", "--no-resume", "-q", who="bob")
    scene("sync", "-q", who="bob")


def letters(scene: Scene) -> Iterator[tuple[str, str]]:
    """`git gate show`: what a person reads."""
    for name, gate in scene.gates.items():
        yield name, scene("show", gate, who="bob").out


def objects(scene: Scene) -> Iterator[tuple[str, str]]:
    """`git gate show --json`: what a script reads."""
    for name, gate in scene.gates.items():
        yield name, json.dumps(scene("show", gate, "--json", who="bob").json, indent=1) + "\n"


def comments(scene: Scene) -> Iterator[tuple[str, str]]:
    """`git gate github show`: the comment on a pull request."""
    for name, gate in scene.gates.items():
        yield name, scene("github", "show", gate, who="bob").out


def templates(scene: Scene) -> Iterator[tuple[str, str]]:
    """`git gate respond --edit`: what the editor opens; nothing is written there, and so nothing is answered."""
    seen = scene.folder / "seen"
    script = scene.folder / "editor"
    script.write_text(f'#!/bin/sh\ncat "$1" > {shlex.quote(str(seen))}\nexit 1\n', "utf-8")
    script.chmod(0o755)
    for name, gate in scene.gates.items():
        seen.write_text("", "utf-8")
        done = scene(
            "respond", gate, "--edit", who="bob", code=None, VISUAL=str(script), GIT_EDITOR=str(script)
        )
        yield name, f"{seen.read_text('utf-8')}---- exit {done.code}\n{done.err}"


def prompts(scene: Scene) -> Iterator[tuple[str, str]]:
    """`git gate respond` on a terminal: with words that do not fit first, and what is recorded."""
    scene.apart("prompt")
    for name in WAYS:
        gate = scene.gates[name]
        shown = scene.converse("respond", gate, types=TYPED[name], who="prompt")
        yield name, f"{shown}{answer_of(scene, gate, 'prompt')}"


def answer_of(scene: Scene, gate: str, who: str) -> str:
    """Return what was recorded as the answer."""
    said = scene("show", gate, "--json", who=who).json["answer"]
    kept = {name: said[name] for name in ("values", "verdict", "note", "via")} if said else None
    return f"recorded: {json.dumps(kept, ensure_ascii=False)}\n"


def page_forms(scene: Scene) -> Iterator[tuple[str, str]]:
    """`git gate serve --desk`: the form of each gate's page, and what is recorded of it filled in: the last of each choice,
    the first two boxes, a word in each field.
    """
    served = subprocess.Popen(
        [str(COMMAND), "serve", "--desk", "--port", "0"],
        cwd=scene.apart("web"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert served.stdout is not None
        link = served.stdout.readline().strip()
        visit = build_opener(ProxyHandler({}), HTTPCookieProcessor())
        visit.open(link, timeout=PATIENCE).read()
        address = link.partition("/login")[0]
        visit.addheaders.append(("Origin", address))
        for name, gate in scene.gates.items():
            page = visit.open(f"{address}/g/{gate}", timeout=PATIENCE).read().decode()
            shown = form_of(page)
            if shown != NO_FORM:
                sent = urlencode(filled(shown), doseq=True).encode()
                with suppress(HTTPError):
                    visit.open(f"{address}/g/{gate}/answer", sent, timeout=PATIENCE).read()
                shown += answer_of(scene, gate, "web")
            yield name, shown
    finally:
        served.terminate()
        served.communicate()


def form_of(page: str) -> str:
    """Return the page's form for the answer, a tag a line, or that there is none."""
    found = re.search(r'<form[^>]*id="answer".*?</form>', page, re.DOTALL)
    if found is None:
        return NO_FORM
    pieces = [piece.strip() for piece in re.split(r"(?=<)|(?<=>)", found[0])]
    return "\n".join(piece for piece in pieces if piece) + "\n"


NO_FORM = "(no form)\n"
TAG = re.compile(r"<(input|textarea|select|option)\b([^>]*)>")
ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')


def filled(form: str) -> dict[str, list[str]]:
    """Return the fields of a form as somebody sends them."""
    sent: dict[str, list[str]] = {}
    name = ""
    for tag, text in TAG.findall(form):
        said = {key: html.unescape(value) for key, value in ATTRIBUTE.findall(text)}
        name = said.get("name", name)
        kind = said.get("type", tag)
        values = sent.setdefault(name, [])
        if kind in ("radio", "option", "hidden"):
            sent[name] = [said.get("value", "")]
        elif kind == "checkbox":
            sent[name] = [*values, said.get("value", "on")][:2]
        elif kind != "select" and not name.endswith(".own"):
            sent[name] = [WORDS.get(name, "a word")]
    return sent


# By the place of the field in SCHEMA.
WORDS = {"q0.1": "5", "q0.2": "0.5", "q0.4": "ada@example.org", "q0.5": '["hot"]', "q0.6": "{}"}


def dialogs(scene: Scene) -> Iterator[tuple[str, str]]:
    """`git gate listen --dialog zenity`: how the program is started for each, and what it is given; it says "later"."""
    bin_, calls = scene.folder / "fake", scene.folder / "calls"
    bin_.mkdir()
    calls.mkdir()
    zenity = bin_ / "zenity"
    zenity.write_text(FAKE.format(calls=shlex.quote(str(calls))), "utf-8")
    zenity.chmod(0o755)
    env = {**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}", "DISPLAY": ":none"}
    process = subprocess.Popen(
        [str(COMMAND), "listen", "--dialog", "zenity"],
        cwd=scene.clones["bob"].path,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        until = time.monotonic() + PATIENCE
        while len(list(calls.glob("*.done"))) < len(ASKED) and time.monotonic() < until:
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE)
    for number, done in enumerate(sorted(calls.glob("*.done"))):
        words = done.read_text("utf-8").split("\0")[:-1]
        given = done.with_suffix(".in").read_text("utf-8")
        yield f"call {number + 1}", "\n".join([*map(repr, words), "---- stdin", given])
    yield "what it says", said


FAKE = """#!/bin/sh
n=10
while ! mkdir {calls}/$n 2>/dev/null; do n=$((n + 1)); done
cat >{calls}/$n.in
printf '%s\\0' "$@" >{calls}/$n.new
mv {calls}/$n.new {calls}/$n.done
echo Later
exit 1
"""


def elicitations(scene: Scene) -> Iterator[tuple[str, str]]:
    """`git gate mcp`: its tools; for each gate the form that a client is shown while it waits, what somebody fills in there
    (the last that is offered), and what the agent is told.
    """
    with Talk(scene) as talk:
        yield "tools", dumped(talk.ask("tools/list")["result"]["tools"])
        waits = {name: talk.send("tools/call", wait_for(gate)) for name, gate in scene.gates.items()}
        replies = {name: talk.reply(number) for name, number in waits.items()}
        for name, gate in scene.gates.items():
            prompt = scene("show", gate, "--json", who="bob").json["questions"][0]["prompt"]
            shown = [form for form in talk.shown if prompt in form["asked"]["message"]]
            told = replies[name].get("result", replies[name].get("error"))
            yield name, dumped({"shown": shown, "result": told})


def wait_for(gate: str) -> Mapping[str, Any]:
    return {"name": "wait", "arguments": {"id": gate, "seconds": 1}}


def last_offered(schema: Mapping[str, Any]) -> Any:
    """Return a value of that schema."""
    if schema.get("enum"):
        return schema["enum"][-1]
    if schema.get("type") == "array":
        return [last_offered(schema["items"])]
    return {"boolean": True, "integer": 5, "number": 0.5}.get(str(schema.get("type")), "my own words")


class Talk:
    """A client of `git gate mcp`, which declines each form that it is shown."""

    def __init__(self, scene: Scene) -> None:
        self.process = subprocess.Popen(
            [str(COMMAND), "mcp"],
            cwd=scene.apart("mcp"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.number = 0

        self.shown: list[dict[str, Any]] = []
        self.replies: dict[int, Any] = {}

    def __enter__(self) -> Self:
        client = {"name": "golden", "version": "1"}
        can: dict[str, dict[str, str]] = {"elicitation": {}}
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": can, "clientInfo": client})
        self.put({"method": "notifications/initialized"})
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def put(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def send(self, method: str, given: Mapping[str, Any] | None = None) -> int:
        self.number += 1
        self.put({"id": self.number, "method": method, **({"params": given} if given else {})})
        return self.number

    def reply(self, number: int) -> Any:
        """Return the reply to a request; each form that is shown meanwhile is filled in."""
        assert self.process.stdout is not None
        while number not in self.replies:
            line = self.process.stdout.readline()
            assert line, "git gate mcp hung up"
            said = json.loads(line)
            if "method" in said and "id" in said:
                fields = said["params"]["requestedSchema"]["properties"]
                content = {name: last_offered(field) for name, field in fields.items()}
                self.shown.append({"asked": said["params"], "filled in": content})
                self.put({"id": said["id"], "result": {"action": "accept", "content": content}})
            elif "id" in said:
                self.replies[said["id"]] = said
        return self.replies.pop(number)

    def ask(self, method: str, given: Mapping[str, Any] | None = None) -> Any:
        return self.reply(self.send(method, given))


def dumped(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def tools(scene: Scene) -> Iterator[tuple[str, str]]:
    """`git gate hook claude-pre-tool-use`: a call of AskUserQuestion, the gate that it opens, and the call once it is answered."""
    several = ["Postgres", "SQLite"]
    for name, labels, many, words in (
        ("one", several, False, ["SQLite", "--note", "one file"]),
        ("own words", several, False, ["--other", "MySQL, we have it"]),
        ("many", several, True, ["1,2"]),
    ):
        options = [{"label": label, "description": f"about {label}"} for label in labels]
        asked = {"question": f"Which ({name})?", "header": "Store", "multiSelect": many, "options": options}
        event = {
            "session_id": f"5d14f5dd-8cd5-4721-9788-2e41558467{len(name):02}",
            "transcript_path": str(scene.folder / f"{name}.jsonl"),
            "cwd": str(scene.clones["ada"].path),
            "hook_event_name": "PreToolUse",
            "permission_mode": "default",
            "tool_name": "AskUserQuestion",
            "tool_use_id": f"toolu_{name.replace(' ', '_')}",
            "tool_input": {"questions": [asked]},
        }
        told = [calls(scene, event)]
        (gate,) = {one["id"] for one in scene("list", "--json").json["gates"]} - set(scene.gates.values())
        scene.gates[f"claude-{name.replace(' ', '-')}"] = gate
        told.append(dumped(scene("show", gate, "--json").json["questions"]))
        scene("respond", gate, *words, "--no-push")
        told.append(calls(scene, event))
        yield name, "---- \n".join([dumped(event), *told])


def calls(scene: Scene, event: Mapping[str, Any]) -> str:
    done = scene(
        "hook", "claude-pre-tool-use", said=json.dumps(event), code=None, CLAUDE_CODE_ENTRYPOINT="sdk-cli"
    )
    return f"{dumped(json.loads(done.out)) if done.out else ''}{done.err}exit {done.code}\n"


# Within the renderer's own process, and by processes of their own. Where gates are answered, that is done in a clone apart.
QUICK: Mapping[str, Render] = {
    "letter": letters,
    "json": objects,
    "comment": comments,
    "editor": templates,
    "prompt": prompts,
    "claude": tools,
}
STARTED: Mapping[str, Render] = {"dialog": dialogs, "web": page_forms, "mcp": elicitations}
