"""Agents: opencode, headless: `opencode run --session <id>`, the prompt through stdin, its events as lines of JSON.

Its conversations are in a database of its own. It is read, never written: the program takes one in by `import`, which keeps
the id and moves it to the directory where that runs. Its shell names no conversation: it is the one in whose call we run.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..document import replace
from ..errors import Failure, Usage
from ..model.gate import SavedSession, SessionRef
from .agent import (
    SESSION_ID,
    SESSION_MOST,
    AgentOutcome,
    AgentResult,
    EndedCommand,
    Finished,
    Launch,
    ProcessEnding,
    Start,
    brief,
    events,
    home_folder,
    json_or_none,
    kept_flags,
    killed,
    need_session_id,
    no_conversation,
    reason_of_end,
    redacted_json,
    told_in_prompt,
    too_large,
    written,
)
from .command import FOR_PEOPLE, KnownProgram

EXPORTED = "session.json"
ITS_OWN = "ses_"
WITHIN = 120.0
KEPT = {"-m": "-m", "--model": "-m", "--agent": "--agent", "--variant": "--variant"}
REFUSED = {f"{gate} {verb}*": "deny" for gate in ("git gate", "git-gate") for verb in FOR_PEOPLE}
# The call that runs this very process: of the shell, not yet ended, and of git gate.
CALLING = """
select part.session_id from part join session on session.id = part.session_id
where session.directory = ? and json_extract(part.data, '$.state.status') = 'running'
and (part.data like '%git gate%' or part.data like '%git-gate%')
order by part.time_created desc limit 1
"""
LAST = "select id from session where directory = ? order by time_updated desc limit 1"
OF_SESSION = "select slug, title, agent, model, version, permission, time_created, time_updated from session where id = ?"
MESSAGES = "select id, data from message where session_id = ? order by time_created, id"
PARTS = "select id, message_id, data from part where session_id = ? order by id"


class OpenCode(KnownProgram):
    name = "opencode"
    marks = ("OPENCODE", "AGENT=1")
    process_ids = ("OPENCODE_PID",)
    packages = ("opencode-ai",)
    folders = (".opencode",)
    files = ("opencode.json", "opencode.jsonc")
    takes_servers = True

    def new_session(self, drawn: str) -> str:
        return own_id(drawn)

    def detect(self, env: Mapping[str, str]) -> SessionRef | None:
        place = env.get("PWD", "")
        if not env.get(self.marks[0]) or not place or not env.get("HOME"):
            return None
        found = ask_database(env, CALLING, str(Path(place).resolve())) or ask_database(env, CALLING, place)
        named = str(found[0][0]) if found else ""
        return SessionRef(self.name, named, place) if re.fullmatch(SESSION_ID, named) else None

    def collect(self, session: SessionRef, env: Mapping[str, str], most: int = SESSION_MOST) -> SavedSession:
        saved = SavedSession(self.name, session.id, session.directory)
        found = exported(session.id, env)
        if found is None:
            return replace(saved, left_out=((EXPORTED, "it was not found"),))
        from ..text.secrets import secret_values

        data = written(redacted_json(found, secret_values(env))).encode()
        if len(data) > most:
            return too_large(saved, EXPORTED, most)
        return replace(saved, place=str(database(env).parent), files={EXPORTED: data})

    def place(
        self, saved: SavedSession, cwd: Path, env: Mapping[str, str], program: Sequence[str] = ()
    ) -> None:
        """One that is here already has what was said since, and is only moved to `cwd`."""
        if EXPORTED not in saved.files:
            raise no_conversation(saved)
        here = exported(saved.id, env)
        if here is not None and here["info"].get("directory") == str(cwd.resolve()):
            return
        data = written(here).encode() if here is not None else saved.files[EXPORTED]
        self.take_in(data, cwd, env, program)

    def erase(self, saved: SavedSession, cwd: Path, env: Mapping[str, str]) -> None:
        """Erase the conversation where it belongs to this directory: whoever asked may share the home."""
        here = exported(saved.id, env)
        if here is not None and here["info"].get("directory") == str(cwd.resolve()):
            self.run_apart(("session", "delete", need_session_id(saved.id)), env, {})

    def take_in(self, data: bytes, cwd: Path, env: Mapping[str, str], program: Sequence[str]) -> None:
        """By the program itself, without what the directory brings."""
        ended = self.run_apart(("import", EXPORTED), env, {EXPORTED: data}, program, cwd)
        if ended.code or ended.ending is not ProcessEnding.EXITED:
            raise Failure(
                f"opencode does not take the saved session in: {reason_of_end(ended)}",
                hint="try it by hand: opencode session list",
            )

    def run_apart(
        self,
        words: Sequence[str],
        env: Mapping[str, str],
        files: Mapping[str, bytes],
        program: Sequence[str] = (),
        cwd: Path | None = None,
    ) -> Finished:
        """One of its own commands, by a folder for the files that it names."""
        import tempfile

        from .process import run_launch

        with tempfile.TemporaryDirectory(prefix="gitgate-session-") as room:
            named = [str(Path(room) / word) if word in files else word for word in words]
            argv = (*(program or (self.name,)), *named)
            alone = {**{name: value for name, value in env.items() if not self.leaves(name)}, **APART}
            return run_launch(Launch(argv, cwd or Path(room), alone, Path(room), files=files, timeout=WITHIN))

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
            raise Usage(
                "a conversation of opencode that branches off from another is not opened: it could not be found again",
                hint="begin one that knows nothing of it: git gate join ID --new",
            )
        if exported(own_id(session), env) is None:
            self.take_in(unsaid(own_id(session), cwd), cwd, env, program)

    def launch(self, request: Start) -> Launch:
        settings = request.settings
        session = ("--session", opencode_session(request)) if opencode_session(request) else ()
        program = settings.program or (self.name,)
        argv = (*program, "run", "--format", "json", *session, *settings.arguments)
        return request.headless(argv, {**request.environment, **self.told(request)})

    def open(self, request: Start) -> Launch:
        meeting = request.meeting
        argv = [*(request.settings.program or (self.name,)), *request.settings.arguments]
        argv += ["--session", opencode_session(request)] if opencode_session(request) else []
        argv += ["--model", meeting.model] if meeting.model else []
        # Where it goes on with a conversation it sends no first words.
        first = request.prompt and not opencode_session(request)
        argv += [f"--prompt={told_in_prompt(request)}"] if first else []
        env = {**request.environment, **self.told(request)}
        if meeting.servers:
            servers = {name: of_server(one) for name, one in meeting.servers.items() if isinstance(one, dict)}
            env["OPENCODE_CONFIG_CONTENT"] = written({"mcp": servers})
        return Launch(tuple(argv), request.cwd, env, request.folder)

    def told(self, request: Start) -> dict[str, str]:
        """Return the environment that forbids actions beyond the machine's own rules, and that ignores the directory's
        own settings unless those may take part.
        """
        before = json_or_none(request.env.get("OPENCODE_PERMISSION"))
        said = before if isinstance(before, dict) else {}
        shell = said.get("bash", {})
        rules = {"*": shell} if isinstance(shell, str) else shell if isinstance(shell, dict) else {}
        permission = written({**said, "bash": {**rules, **REFUSED}})
        own = {} if request.settings.project_settings else APART
        return {"OPENCODE_PERMISSION": permission, **own}

    def lasting(self, words: Sequence[str]) -> tuple[str, ...]:
        return kept_flags(words, KEPT)

    def outcome(self, finished: Finished) -> AgentOutcome:
        session, text, reason = read_opencode_events(finished.out)
        ended = finished.ending is ProcessEnding.EXITED and not finished.code
        # Refused a permission that nobody could be asked for, it ends at once and says exit 0.
        if ended and session and not reason:
            return AgentOutcome(AgentResult.DONE, session, text)
        return AgentOutcome(
            AgentResult.FAILED,
            session,
            text,
            reason or reason_of_end(finished),
            retry=killed(finished) or (bool(session) and not ended),
        )

    def read_end(self, argv: Sequence[str], out: bytes) -> EndedCommand | None:  # noqa: ARG002  its output names the conversation
        if b'"sessionID"' not in out:
            return None
        session, text, _ = read_opencode_events(out)
        return EndedCommand(text, session, self.name) if session else None


# What makes it read nothing of the directory that it works in: plugins there run without being asked about.
APART = {"OPENCODE_DISABLE_PROJECT_CONFIG": "1"}
REJECTED = "The user rejected permission"


def read_opencode_events(out: bytes) -> tuple[str, str, str]:
    """The conversation, its last words, and what went wrong, as its events say."""
    session, text, reason = "", "", ""
    for event in events(out.splitlines()):
        session = str(event.get("sessionID") or session)
        said = event.get("part")
        part: Mapping[str, Any] = said if isinstance(said, dict) else {}
        if event.get("type") == "step_start":
            text = ""
        elif event.get("type") == "text":
            text = "\n".join(filter(None, (text, str(part.get("text") or ""))))
        elif event.get("type") == "error":
            reason = reason_in(event.get("error"))
        elif event.get("type") == "tool_use":
            state = part.get("state")
            wrong = str(state.get("error") or "") if isinstance(state, dict) else ""
            reason = brief(wrong) if wrong.startswith(REJECTED) else reason
    return session, text, reason


def reason_in(error: object) -> str:
    if not isinstance(error, dict):
        return brief(str(error))
    data = error.get("data")
    words = data.get("message") if isinstance(data, dict) else error.get("message")
    return brief(str(words or error.get("name") or "error"))


def own_id(session: str) -> str:
    """An id as it wants them, which begin so; of another the same one each time."""
    return session if session.startswith(ITS_OWN) else ITS_OWN + re.sub(r"\W", "", session)[:26]


def opencode_session(request: Start) -> str:
    """The conversation: one that was made beforehand (`begin`), or one that goes on."""
    if request.meeting.id:
        return own_id(need_session_id(request.meeting.id))
    return need_session_id(request.session.id) if request.session else ""


def of_server(server: Mapping[str, Any]) -> dict[str, object]:
    """An MCP server as its configuration has it."""
    if "url" in server:
        return {"type": "remote", "url": server["url"], "headers": server.get("headers", {})}
    words = [str(server.get("command", "")), *map(str, server.get("args", ()))]
    return {"type": "local", "command": words, "environment": server.get("env", {})}


def database(env: Mapping[str, str]) -> Path:
    data = env.get("XDG_DATA_HOME")
    return (Path(data) if data else home_folder(env) / ".local" / "share") / "opencode" / "opencode.db"


def ask_database(env: Mapping[str, str], question: str, *given: str) -> list[tuple[Any, ...]]:
    """Query the program's database and return its rows; none where it is missing, or of a form that this does not
    know.
    """
    import sqlite3
    from contextlib import closing
    from urllib.parse import quote

    place = database(env)
    if not place.is_file():
        return []
    try:
        with closing(sqlite3.connect(f"file:{quote(str(place))}?mode=ro", uri=True, timeout=5)) as known:
            return known.execute(question, given).fetchall()
    except sqlite3.Error:
        return []


def exported(session: str, env: Mapping[str, str]) -> dict[str, Any] | None:
    """A conversation in the form in which the program gives and takes one; None where it is not here."""
    named = ask_database(env, OF_SESSION, session)
    if not named:
        return None
    slug, title, agent, model, version, permission, created, updated = named[0]
    told = {"agent": agent, "model": json_or_none(model), "permission": json_or_none(permission)}
    where = str(ask_database(env, "select directory from session where id = ?", session)[0][0])
    about = {"id": session, "slug": slug, "projectID": "global", "directory": where, "title": title}
    times = {"created": created, "updated": updated}
    info = {
        **about,
        **{name: value for name, value in told.items() if value},
        "version": version,
        "time": times,
    }
    parts: dict[str, list[dict[str, Any]]] = {}
    for name, message, data in ask_database(env, PARTS, session):
        part = {**(json_or_none(data) or {}), "id": name, "sessionID": session, "messageID": message}
        parts.setdefault(message, []).append(part)
    messages = [
        {
            "info": {**(json_or_none(data) or {}), "id": name, "sessionID": session},
            "parts": parts.get(name, []),
        }
        for name, data in ask_database(env, MESSAGES, session)
    ]
    return {"info": info, "messages": messages}


def unsaid(session: str, cwd: Path) -> bytes:
    """A conversation that has begun, and in which nothing was said."""
    now = int(time.time() * 1000)
    about = {
        "id": session,
        "slug": "gate",
        "projectID": "global",
        "directory": str(cwd),
        "title": "A question",
    }
    info = {**about, "version": "1", "time": {"created": now, "updated": now}}
    return written({"info": info, "messages": []}).encode()
