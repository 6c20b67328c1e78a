"""Agents: Codex, headless: `codex exec resume <id> -`, the prompt through stdin, its last words in a file.

A conversation is one file, `<home>/sessions/<yyyy>/<mm>/<dd>/rollout-<time>-<id>.jsonl`, found by its name from any
directory. It has no deferred calls: an answer is always the next thing that is said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import Failure, Usage
from ..model.conversation import SavedSession, SessionRef
from ..store.git.permissions import private_folder, write_private
from .agent import (
    SESSION_MOST,
    Agent,
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
    killed,
    need_session_id,
    reason_of_end,
)

ANSWER = "last-message.txt"
ANSWER_MOST = 1_000_000
ROLLOUT = r"sessions/\d{4}/\d{2}/\d{2}/rollout-[\w.-]{1,200}\.jsonl"
PLACED = ".placed-by-gitgate"
# Signed by the service: changed it would be refused.
SEALED = ("encrypted_content",)


class Codex(Agent):
    name = "codex"
    marks = (
        *("CODEX_CI", "CODEX_VERSION", "CODEX_TOOL_CALL_ID", "CODEX_SANDBOX"),
        "CODEX_SANDBOX_NETWORK_DISABLED",
    )
    sessions = ("CODEX_THREAD_ID", "CODEX_SESSION_ID")
    packages = ("@openai/codex",)
    folders = (".codex",)
    starts = True

    def collect(self, session: SessionRef, env: Mapping[str, str], most: int = SESSION_MOST) -> SavedSession:
        from ..text.secrets import secret_values

        home = codex_home(env)
        rollout = find_rollout(session, home)
        if rollout is None:
            return SavedSession(
                self.name, session.id, session.directory, left_out=(("rollout", "it was not found"),)
            )
        name = rollout.relative_to(home).as_posix()
        if rollout.stat().st_size > most:
            why = f"it is larger than {most / 1e6:g} MB"
            return SavedSession(self.name, session.id, session.directory, left_out=((name, why),))
        clean = clean_rollout(rollout.read_bytes(), secret_values(env))
        return SavedSession(self.name, session.id, session.directory, str(rollout.parent), {name: clean})

    def place(
        self,
        saved: SavedSession,
        cwd: Path,  # noqa: ARG002  the Protocol's: a rollout is found from anywhere
        env: Mapping[str, str],
    ) -> None:
        """The same place below this machine's home, whatever the directory; one that is there already stays."""
        home = codex_home(env)
        ending = f"-{need_session_id(saved.id)}.jsonl"
        names = [name for name in saved.files if re.fullmatch(ROLLOUT, name) and name.endswith(ending)]
        if not names:
            raise Failure(
                f"the saved session {saved.id[:8]} holds no conversation",
                hint="read the answer yourself: git gate list --all",
            )
        if find_rollout(SessionRef(self.name, saved.id), home) is None:
            target = home / names[0]
            private_folder(target.parent)
            write_private(target, saved.files[names[0]])
            write_private(target.with_suffix(PLACED), b"")

    def erase(self, saved: SavedSession, cwd: Path, env: Mapping[str, str]) -> None:  # noqa: ARG002  see `place`
        """Only where we put it: the same home may be that of whoever asked."""
        found = find_rollout(SessionRef(self.name, need_session_id(saved.id)), codex_home(env))
        if found is not None and found.with_suffix(PLACED).exists():
            found.unlink()
            found.with_suffix(PLACED).unlink()

    def start(self, request: Start) -> Launch:
        settings = request.settings
        resume = ("resume",) if request.session else ()
        session = (need_session_id(request.session.id),) if request.session else ()
        argv = (
            *(settings.program or ("codex",)),
            # Its own flags stand before `resume`, which does not know all of them (`-s`), and forgets what the first run had.
            *("exec", *settings.arguments, *resume, "--json", "-o", str(request.folder / ANSWER)),
            *(*session, "-"),
        )
        env = {**request.env, **request.extra_env}
        return Launch(
            argv,
            request.cwd,
            env,
            request.folder,
            request.prompt.encode("utf-8", "replace"),
            timeout=settings.timeout,
        )

    def join(self, request: Start) -> Launch:
        if request.meeting.id:
            raise Usage(
                "a conversation that begins with a person is not opened with codex: it could not be found again",
                hint="git config gitgate.joinAgent claude",
            )
        settings = request.settings
        resume = ("resume", need_session_id(request.session.id)) if request.session else ()
        argv = (*(settings.program or (self.name,)), *resume, *settings.arguments)
        return Launch(argv, request.cwd, {**request.env, **request.extra_env}, request.folder)

    def read_outcome(self, finished: Finished) -> AgentOutcome:
        session, reason = "", ""
        for event in events(finished.out.splitlines()):
            if event.get("type") == "thread.started":
                session = str(event.get("thread_id") or "")
            elif event.get("type") in ("error", "turn.failed"):
                error = event.get("error")
                reason = brief(str(error.get("message") if isinstance(error, dict) else event.get("message")))
        if finished.code or finished.ending is not ProcessEnding.EXITED:
            return AgentOutcome(
                AgentResult.FAILED,
                session,
                reason=reason or reason_of_end(finished),
                retry=killed(finished) or bool(reason),
            )
        return AgentOutcome(AgentResult.DONE, session, last_message(finished.folder))

    def read_end(self, argv: Sequence[str], out: bytes) -> EndedCommand | None:  # noqa: ARG002  its output names the conversation
        """The last message in the events of `codex exec --json`."""
        if b'"thread.started"' not in out:
            return None
        session, text = "", ""
        for event in events(out.splitlines()):
            item = event.get("item")
            if event.get("type") == "thread.started":
                session = str(event.get("thread_id") or "")
            elif isinstance(item, dict) and item.get("type") == "agent_message":
                text = str(item.get("text") or "")
        return EndedCommand(text, session, self.name)


def codex_home(env: Mapping[str, str]) -> Path:
    return Path(env["CODEX_HOME"]) if env.get("CODEX_HOME") else home_folder(env) / ".codex"


def find_rollout(session: SessionRef, home: Path) -> Path | None:
    found = (home / "sessions").glob(f"*/*/*/rollout-*-{need_session_id(session.id)}.jsonl")
    return max((path for path in found if path.is_file()), key=lambda path: path.name, default=None)


def clean_rollout(content: bytes, values: frozenset[str]) -> bytes:
    """Every text of every line redacted; a line that is no JSON is left out."""
    import json

    out = []
    for line in content.splitlines():
        try:
            record = json.loads(line.decode("utf-8", "replace"))
            out.append(json.dumps(_without_secrets(record, values), separators=(",", ":")).encode() + b"\n")
        except (ValueError, RecursionError):
            continue
    return b"".join(out)


def _without_secrets(value: object, values: frozenset[str]) -> object:
    from ..text.secrets import redact

    if isinstance(value, str):
        return redact(value, values)
    if isinstance(value, list):
        return [_without_secrets(item, values) for item in value]
    if isinstance(value, dict):
        return {key: item if key in SEALED else _without_secrets(item, values) for key, item in value.items()}
    return value


def last_message(folder: Path) -> str:
    try:
        with (folder / ANSWER).open("rb") as source:
            return source.read(ANSWER_MOST).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return ""
