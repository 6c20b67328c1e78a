"""Agents: GitHub's Copilot CLI, headless: `copilot --resume=<id>`, the prompt through stdin, its events as lines of JSON.

A conversation is `<home>/session-state/<id>/events.jsonl`; that file alone is enough on another machine. It forgets what it
may do, so that every start says so; without `-C` a resumed one goes back to the directory that it was in before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..document import replace
from ..model.gate import SavedSession, SessionRef
from ..store import private_folder, write_private
from .agent import (
    SESSION_MOST,
    AgentOutcome,
    AgentResult,
    EndedCommand,
    Finished,
    Launch,
    ProcessEnding,
    Start,
    as_another,
    brief,
    clean_lines,
    events,
    home_folder,
    kept_flags,
    killed,
    names_flag,
    need_session_id,
    no_conversation,
    of_program,
    reason_of_end,
    told_in_prompt,
    too_large,
    written,
)
from .command import FOR_PEOPLE, KnownProgram

EVENTS, SERVERS = "events.jsonl", "mcp.json"
PLACED = ".placed-by-gitgate"
# Calls of git gate are let through in its shell, and those that are for people are not; a refusal counts before a leave.
MAY_ASK = (
    "--allow-tool=shell(git gate:*)",
    *(f"--deny-tool=shell(git gate {verb}:*)" for verb in FOR_PEOPLE),
)
TOOLS = ("--allow-tool", "--deny-tool", "--available-tools", "--excluded-tools", "--allow-url", "--deny-url")
KEPT = {flag: flag for flag in (*TOOLS, "--model", "--agent", "--add-dir", "--reasoning-effort")}
GOES_ON = ("--resume", "-r", "--continue", "--session-id", "--connect")


class Copilot(KnownProgram):
    name = "copilot"
    marks = ("COPILOT_CLI",)
    sessions = ("COPILOT_AGENT_SESSION_ID",)
    packages = ("@github/copilot",)
    folders = (".github/hooks", ".github/instructions", ".github/agents")
    files = ("copilot-instructions.md",)
    takes_servers = True

    def collect(self, session: SessionRef, env: Mapping[str, str], most: int = SESSION_MOST) -> SavedSession:
        said = session_folder(session.id, env) / EVENTS
        saved = SavedSession(self.name, session.id, session.directory)
        if not said.is_file():
            return replace(saved, left_out=((EVENTS, "it was not found"),))
        if said.stat().st_size > most:
            return too_large(saved, EVENTS, most)
        return replace(saved, place=str(said.parent), files={EVENTS: clean_lines(said.read_bytes(), env)})

    def place(
        self,
        saved: SavedSession,
        cwd: Path,  # noqa: ARG002  it is found from anywhere
        env: Mapping[str, str],
        program: Sequence[str] = (),  # noqa: ARG002  it is not run
    ) -> None:
        """One that is there already stays: it may have gone on since."""
        if EVENTS not in saved.files:
            raise no_conversation(saved)
        folder = session_folder(saved.id, env)
        if not (folder / EVENTS).is_file():
            private_folder(folder)
            write_private(folder / EVENTS, saved.files[EVENTS])
            write_private(folder / PLACED, b"")

    def erase(self, saved: SavedSession, cwd: Path, env: Mapping[str, str]) -> None:  # noqa: ARG002  see `place`
        """Only where we put it: the same home may be that of whoever asked."""
        folder = session_folder(saved.id, env)
        if (folder / PLACED).is_file():
            from shutil import rmtree  # late: it loads what reads archives

            rmtree(folder)

    def begin(
        self,
        session: str,
        cwd: Path,
        env: Mapping[str, str],
        *,
        saved: SavedSession | None = None,
        program: Sequence[str] = (),
    ) -> None:
        if saved is not None:
            self.place(as_another(saved, session), cwd, env, program)

    def launch(self, request: Start) -> Launch:
        argv = (*self.words_for(request), "--output-format", "json", *MAY_ASK, *request.settings.arguments)
        return request.headless(argv, request.environment)

    def open(self, request: Start) -> Launch:
        meeting, files = request.meeting, {}
        argv = [*self.words_for(request), *MAY_ASK, *request.settings.arguments]
        argv += ["--model", meeting.model] if meeting.model else []
        if meeting.servers:
            files[SERVERS] = written({"mcpServers": with_tools(meeting.servers)}).encode()
            argv += ["--additional-mcp-config", f"@{request.folder / SERVERS}"]
        argv += [f"--interactive={told_in_prompt(request)}"] if request.prompt else []
        return Launch(tuple(argv), request.cwd, request.environment, request.folder, files=files)

    def words_for(self, request: Start) -> tuple[str, ...]:
        """The program, where it works, and its conversation. It makes one of an id that there is not, and takes one that there is."""
        named = request.conversation
        flag = "--resume" if request.session else "--session-id"
        session = (f"{flag}={need_session_id(named)}",) if named else ()
        return (*(request.settings.program or (self.name,)), "-C", str(request.cwd), *session)

    def lasting(self, words: Sequence[str]) -> tuple[str, ...]:
        return kept_flags(words, KEPT, frozenset(TOOLS))

    def able_to_ask(self, words: Sequence[str], session: str) -> tuple[str, ...]:
        if not of_program(words, self.name) or not names_flag(words, "-p", "--prompt"):
            return tuple(words)
        called = () if names_flag(words, *GOES_ON) else (f"--session-id={session}",)
        return (words[0], *called, *MAY_ASK, *words[1:])

    def outcome(self, finished: Finished) -> AgentOutcome:
        session, text, reason = read_copilot_events(finished.out)
        ended = finished.ending is ProcessEnding.EXITED and not finished.code
        # Interrupted it says exit 0: only the line that ends its output tells.
        if ended and session:
            return AgentOutcome(AgentResult.DONE, session, text)
        return AgentOutcome(
            AgentResult.FAILED,
            session,
            text,
            reason or reason_of_end(finished),
            retry=killed(finished) or bool(reason) or ended,
        )

    def read_end(self, argv: Sequence[str], out: bytes) -> EndedCommand | None:  # noqa: ARG002  its output names the conversation
        if b'"assistant.' not in out:
            return None
        session, text, _ = read_copilot_events(out)
        return EndedCommand(text, session, self.name) if session else None


def read_copilot_events(out: bytes) -> tuple[str, str, str]:
    """The conversation, its last words, and what went wrong, as its events say."""
    session, text, reason = "", "", ""
    for event in events(out.splitlines()):
        said = event.get("data")
        data = said if isinstance(said, dict) else {}
        if event.get("type") == "result":
            session = str(event.get("sessionId") or "")
        elif event.get("type") == "assistant.message" and data.get("content"):
            text = str(data["content"])
        elif event.get("type") == "session.error":
            reason = brief(str(data.get("message") or "session.error"))
    return session, text, reason


def with_tools(servers: Mapping[str, object]) -> dict[str, object]:
    """MCP servers as it wants them: each says which of its tools are taken."""
    return {
        name: {"type": "local", **server, "tools": ["*"]} if isinstance(server, dict) else server
        for name, server in servers.items()
    }


def session_folder(session: str, env: Mapping[str, str]) -> Path:
    home = Path(env["COPILOT_HOME"]) if env.get("COPILOT_HOME") else home_folder(env) / ".copilot"
    return home / "session-state" / need_session_id(session)
