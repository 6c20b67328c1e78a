"""Talking: a program that stands in for Claude Code at a terminal, and the desk of a person who talks to it."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.testbed.command import Command
from support.testbed.repositories import Clone

# Notes how it was started, keeps a conversation as Claude Code keeps it, and does what is typed.
PROGRAM = """\
import json, os, shlex, signal, subprocess, sys, time, uuid
from datetime import datetime, timezone
from pathlib import Path

here, argv = Path(__file__).parent, sys.argv[1:]


def flag(name):
    return argv[argv.index(name) + 1] if name in argv else ""


names = ("GITGATE_GATE", "GITGATE_AGENT", "GITGATE_OUTCOME", "GIT_DIR", "GITGATE_PROMPT_FILE")
env = {name: os.environ[name] for name in names if name in os.environ}
with (here / "runs").open("a") as runs:
    print(json.dumps({"argv": argv, "cwd": os.getcwd(), "env": env, "pid": os.getpid()}), file=runs)
folder = Path.home() / ".claude/projects" / "".join(c if c.isalnum() else "-" for c in os.getcwd())
name = flag("--session-id") or flag("--resume")
transcript = folder / f"{name}.jsonl"
if "--fork-session" in argv:
    transcript.write_bytes((folder / f"{flag('--resume')}.jsonl").read_bytes())
said = [json.loads(line) for line in transcript.read_text().splitlines()] if transcript.exists() else []


def keep(kind, text):
    role = "user" if kind == "user" else "assistant"
    content = text if kind == "user" else [{"type": "text", "text": text}]
    parent = said[-1]["uuid"] if said else None
    at = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    record = {"type": kind, "uuid": str(uuid.uuid4()), "parentUuid": parent, "timestamp": at,
              "message": {"role": role, "content": content}}
    said.append(record)
    folder.mkdir(parents=True, exist_ok=True)
    with transcript.open("a") as out:
        print(json.dumps(record), file=out)


at_once = here / "at-once"
typed = iter(at_once.read_text().splitlines() if at_once.exists() else ())


def asked():
    if line := next(typed, ""):
        return line
    print("> ", end="", flush=True)
    return sys.stdin.readline()


print(f"claude: {len(said)} earlier messages", flush=True)
if "--" in argv:
    keep("user", argv[argv.index("--") + 1])
while line := asked():
    word, _, rest = line.strip().partition(" ")
    if word == "say":
        keep("user", rest)
    elif word == "reply":
        keep("assistant", rest.replace("|", chr(10)))
    elif word == "outcome":
        done = subprocess.run([sys.executable, "-m", "gitgate", "outcome", *shlex.split(rest)], capture_output=True, text=True)
        print(f"[{done.returncode}] {done.stdout}{done.stderr}", flush=True)
    elif word == "tool":
        server = json.loads(Path(flag("--mcp-config")).read_text())["mcpServers"]["gitgate"]
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "outcome", "arguments": json.loads(rest)}}
        lines = "".join(json.dumps(each) + chr(10) for each in (hello, call))
        done = subprocess.run([server["command"], *server["args"]], input=lines, capture_output=True, text=True,
                              env={**os.environ, **server["env"]})
        print(done.stdout + done.stderr, flush=True)
    elif word == "file":
        Path(os.environ["GITGATE_OUTCOME"]).write_text(rest)
    elif word == "edit":
        place = Path(rest)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("edited while we talked" + chr(10))
    elif word == "signal":
        place = Path(".agents/signals/coder.json")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(rest)
    elif word == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif word == "leave":
        sys.exit(int(rest or 0))
    print(f"claude: {word} done", flush=True)
"""


@dataclass(frozen=True)
class Meeting:
    """A repository in which somebody asked, and the program that a person talks to about it."""

    repo: Clone
    cli: Command
    folder: Path

    def ask(self, *args: str, code: int = 0) -> str:
        """A gate without a session, about a file that is not committed."""
        (self.repo.path / "draft.txt").write_text("half done\n", encoding="utf-8")
        return self.cli.quick("ask", *args, "-q", code=code).line

    def talk(self, prompt: str = "Shall we migrate?", *args: str) -> str:
        """A gate that is decided in a conversation."""
        return self.ask(prompt, "--type", "session", *args)

    @property
    def runs(self) -> list[dict[str, Any]]:
        place = self.folder / "runs"
        return [json.loads(line) for line in place.read_text("utf-8").splitlines()] if place.exists() else []

    def at_once(self, *lines: str) -> None:
        """What is typed to the program as soon as it is there: before its time is over, however slow the machine is."""
        (self.folder / "at-once").write_text("\n".join(lines), encoding="utf-8")

    @property
    def prompt(self) -> str:
        """What the program was told first, the last time."""
        argv = self.runs[-1]["argv"]
        return str(argv[argv.index("--") + 1])

    def flag(self, name: str) -> str:
        argv = self.runs[-1]["argv"]
        return str(argv[argv.index(name) + 1])

    def show(self, gate: str) -> Any:
        return self.cli.quick("show", gate, "--json", code=0).json

    def answer(self, gate: str) -> Any:
        return self.show(gate)["answer"]

    def held(self, gate: str) -> dict[str, Any]:
        """How the conversation went, as the record's own file says it."""
        import yaml

        names = self.repo.git("ls-tree", "-r", "--name-only", f"refs/hitl/open/{gate}").splitlines()
        for name in names:
            if name.startswith(("answers/", "stops/")):
                said = yaml.safe_load(self.repo.git("show", f"refs/hitl/open/{gate}:{name}"))
                return dict(said["session"])
        raise AssertionError(names)

    def saved(self, gate: str) -> str:
        return self.repo.git("show", f"refs/hitl/sessions/{gate}:files/transcript.jsonl")


def meet(repo: Clone, cli: Command, folder: Path) -> Meeting:
    """Somebody who has the program on their machine."""
    folder.mkdir()
    (folder / "claude.py").write_text(PROGRAM, encoding="utf-8")
    program = json.dumps([sys.executable, str(folder / "claude.py")])
    repo.git("config", "--global", "gitgate.agent.claude.program", program)
    return Meeting(repo, cli, folder)
