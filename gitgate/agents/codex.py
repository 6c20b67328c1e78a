"""Agents: Codex, headless: `codex exec resume <id> -`, the prompt through stdin, its last words in a file.

A conversation is one file, `<home>/sessions/<yyyy>/<mm>/<dd>/rollout-<time>-<id>.jsonl`, found by its name from any
directory. It has no deferred calls: an answer is always the next thing that is said. No flag gives a new conversation
an id: such a file with nothing but its first line does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..document import replace
from ..model.gate import SavedSession, SessionRef
from ..store import private_folder, write_private
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
    as_another,
    brief,
    clean_lines,
    events,
    home_folder,
    kept_flags,
    killed,
    need_session_id,
    no_conversation,
    of_program,
    reason_of_end,
    too_large,
    written,
)

ANSWER = "last-message.txt"
ANSWER_MOST = 1_000_000
ROLLOUT = r"sessions/\d{4}/\d{2}/\d{2}/rollout-[\w.-]{1,200}\.jsonl"
PLACED = ".placed-by-gitgate"
# Signed by the service: changed it would be refused.
SEALED = ("encrypted_content",)
# A login shell sets PATH anew, so that `git gate` may not be found in it.
PATH_STAYS = ("-c", "allow_login_shell=false")
KEPT = {"-s": "-s", "--sandbox": "-s", "-m": "-m", "--model": "-m", "-p": "-p", "--profile": "-p"}
KEPT |= {"--add-dir": "--add-dir"}
BOUNDLESS = ("danger-full-access",)  # what nobody watched is not given again by itself
RULES = "rules/default.rules"
RULE = 'prefix_rule(pattern=["git","gate","ask"], decision="allow")'
RULE_SAYS = r'prefix_rule\(\s*pattern\s*=\s*\[\s*"git"\s*,\s*"gate"(?:\s*,\s*"ask")?\s*\]'


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
    instructed = True

    def collect(self, session: SessionRef, env: Mapping[str, str], most: int = SESSION_MOST) -> SavedSession:
        home = codex_home(env)
        rollout = find_rollout(session, home)
        saved = SavedSession(self.name, session.id, session.directory)
        if rollout is None:
            return replace(saved, left_out=(("rollout", "it was not found"),))
        name = rollout.relative_to(home).as_posix()
        if rollout.stat().st_size > most:
            return too_large(saved, name, most)
        clean = clean_lines(rollout.read_bytes(), env, SEALED)
        return replace(saved, place=str(rollout.parent), files={name: clean})

    def place(
        self,
        saved: SavedSession,
        cwd: Path,  # noqa: ARG002  a rollout is found from anywhere
        env: Mapping[str, str],
        program: Sequence[str] = (),  # noqa: ARG002  it is not run
    ) -> None:
        """Put the conversation at its relative path in this machine's Codex home, whatever the directory; one that is
        there already stays.
        """
        home = codex_home(env)
        ending = f"-{need_session_id(saved.id)}.jsonl"
        names = [name for name in saved.files if re.fullmatch(ROLLOUT, name) and name.endswith(ending)]
        if not names:
            raise no_conversation(saved)
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

    def begin(
        self,
        session: str,
        cwd: Path,
        env: Mapping[str, str],
        *,
        saved: SavedSession | None = None,
        program: Sequence[str] = (),
    ) -> None:
        made = as_another(saved, session) if saved else unsaid(session, cwd)
        self.place(made, cwd, env, program)

    def start(self, request: Start) -> Launch:
        settings = request.settings
        known = codex_session(request)
        argv = (
            *(settings.program or (self.name,)),
            # Its own flags stand before `resume`, which does not know all of them (`-s`), and forgets what the first run had.
            *("exec", *PATH_STAYS, *settings.arguments, *(("resume",) if known else ())),
            *("--json", "-o", str(request.folder / ANSWER), *known, "-"),
        )
        return request.headless(argv, request.environment)

    def join(self, request: Start) -> Launch:
        settings, meeting = request.settings, request.meeting
        known = codex_session(request)
        argv = [*(settings.program or (self.name,)), *(("resume",) if known else ()), *PATH_STAYS]
        argv += settings.arguments
        argv += ["-m", meeting.model] if meeting.model else []
        for name, server in meeting.servers.items():
            if re.fullmatch(r"[\w-]+", name) and isinstance(server, dict):
                argv += ["-c", f"mcp_servers.{name}={as_toml(of_server(server))}"]
        argv += ["-c", f"developer_instructions={as_toml(meeting.system)}"] if meeting.system else []
        argv += [*known, *(("--", request.prompt) if request.prompt else ())]
        return Launch(tuple(argv), request.cwd, request.environment, request.folder)

    def lasting(self, words: Sequence[str]) -> tuple[str, ...]:
        return kept_flags(words, KEPT, left=BOUNDLESS)

    def able_to_ask(self, words: Sequence[str], session: str) -> tuple[str, ...]:  # noqa: ARG002  it takes none
        headless = of_program(words, self.name) and len(words) > 1 and words[1] in ("exec", "e")
        if not headless or any("allow_login_shell" in word for word in words):
            return tuple(words)
        return (*words[:2], *PATH_STAYS, *words[2:])

    def wants(self, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        try:
            rules = (codex_home(env) / RULES).read_text("utf-8", "replace")
        except OSError:
            rules = ""
        if not re.search(RULE_SAYS, rules):
            words = "its sandbox writes neither .git nor to a network, so that git gate ask fails in it"
            place = "${CODEX_HOME:-$HOME/.codex}/" + RULES
            yield words, f'mkdir -p "${{CODEX_HOME:-$HOME/.codex}}/rules" && echo \'{RULE}\' >> "{place}"'

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


def codex_session(request: Start) -> tuple[str, ...]:
    """The id of the conversation: one that goes on, or one that was made beforehand (`begin`)."""
    return (need_session_id(request.conversation),) if request.conversation else ()


def unsaid(session: str, cwd: Path) -> SavedSession:
    """A conversation that has begun, and in which nothing was said."""
    from datetime import UTC, datetime

    now = datetime.now(UTC)
    at = now.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    about = {"id": need_session_id(session), "timestamp": at, "cwd": str(cwd), "originator": "git-gate"}
    first = {
        "timestamp": at,
        "type": "session_meta",
        "payload": {**about, "cli_version": "", "source": "cli"},
    }
    name = f"{now:sessions/%Y/%m/%d}/rollout-{now:%Y-%m-%dT%H-%M-%S}-{session}.jsonl"
    return SavedSession(Codex.name, session, str(cwd), files={name: written(first).encode() + b"\n"})


def of_server(server: Mapping[str, object]) -> dict[str, object]:
    """An MCP server's description, as far as its own configuration has those fields."""
    return {name: server[name] for name in ("command", "args", "env", "cwd", "url") if name in server}


def as_toml(value: object) -> str:
    """A value as TOML has it in one line. Its basic strings are written as those of JSON are."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{as_toml(str(key))}={as_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(as_toml, value)) + "]"
    if isinstance(value, str):
        return written(value).replace("\x7f", "\\u007f")
    return written(value)


def last_message(folder: Path) -> str:
    try:
        with (folder / ANSWER).open("rb") as source:
            return source.read(ANSWER_MOST).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return ""
