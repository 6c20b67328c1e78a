"""Agents: Gemini CLI, headless: `gemini --resume <id>`, the prompt through stdin, its events as lines of JSON.

A conversation is a file of the project's folder below its home, whose name holds the time and the beginning of the id; its
first line is the whole id. Which folder a project has says a file of all of them. Its shell names no conversation: it is the
one that it was started with, or else the one of this project that was written to last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..document import replace
from ..model.gate import SavedSession, SessionRef
from ..store import private_folder, write_private
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
    as_another,
    brief,
    clean_lines,
    events,
    home_folder,
    json_or_none,
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
from .command import KnownProgram

POLICY = Path(__file__).parents[1] / "texts" / "gemini-gate.toml"
PROJECTS, TOP, TEMPORARY, CHATS = "projects.json", ".project_root", "tmp", "chats"
CHAT = r"session-[\w.-]{1,100}\.jsonl"
FIRST_LINE = 4096
KEPT = {
    "-m": "-m",
    "--model": "-m",
    "--approval-mode": "--approval-mode",
    "--allowed-tools": "--allowed-tools",
}
KEPT |= {"--include-directories": "--include-directories"}
BOUNDLESS = ("yolo",)  # what nobody watched is not given again by itself
GOES_ON = ("--resume", "-r", "--session-id", "--session-file")
NO_SESSION = 42
RETENTION = '{"general": {"sessionRetention": {"enabled": false}}}'


class Gemini(KnownProgram):
    name = "gemini"
    marks = ("GEMINI_CLI", "GEMINI_CLI_NO_RELAUNCH")
    sessions = ("GEMINI_SESSION_ID",)  # its hooks have it, its shell does not
    packages = ("@google/gemini-cli",)
    folders = (".gemini",)
    files = ("gemini.md",)
    # All of the person's configuration is switched off in its shell: their name, their key for ssh, their credentials.
    hides_from_git = (
        *("GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_NOSYSTEM=1"),
        *("core.sshcommand=", "core.hookspath=", "credential.helper="),
    )
    # It reads GEMINI.md alone, unless its own settings name others.
    unread = ("AGENTS.md",)

    def leaves(self, variable: str) -> bool:
        # It trusts the folder that it was started in, and says so to all that it starts: of another folder that says nothing.
        return variable == "GEMINI_CLI_TRUST_WORKSPACE" or super().leaves(variable)

    def detect(self, env: Mapping[str, str]) -> SessionRef | None:
        found = super().detect(env)
        if found is not None or not env.get(self.marks[0]):
            return found
        place = env.get("PWD", "")
        named = env.get("GITGATE_SESSION", "") or wrapped_session(env)
        if re.fullmatch(SESSION_ID, named):
            return SessionRef(self.name, named, place)
        last = newest_chat(Path(place), env) if place and has_home(env) else None
        return SessionRef(self.name, id_of(last), place) if last and id_of(last) else None

    def collect(self, session: SessionRef, env: Mapping[str, str], most: int = SESSION_MOST) -> SavedSession:
        saved = SavedSession(self.name, session.id, session.directory)
        chats = chats_of(session.id, gemini_home(env))
        if not chats:
            return replace(saved, left_out=(("the conversation", "it was not found"),))
        chat = chats[-1]
        if chat.stat().st_size > most:
            return too_large(saved, chat.name, most)
        files = {chat.name: clean_lines(chat.read_bytes(), env)}
        return replace(saved, place=str(chat.parent), files=files)

    def place(
        self,
        saved: SavedSession,
        cwd: Path,
        env: Mapping[str, str],
        program: Sequence[str] = (),  # noqa: ARG002  it is not run
    ) -> None:
        """Put the conversation into the folder of the project in which it is to go on: as it is on this machine now,
        else as it was saved.

        Of several files with one id it removes all, so that only the one that was written to last is left.
        """
        names = [name for name in saved.files if re.fullmatch(CHAT, name)]
        if not names:
            raise no_conversation(saved)
        home = gemini_home(env)
        folder = project_folder(cwd, home)
        here = chats_of(saved.id, home)
        there = [chat for chat in here if chat.parent == folder]
        if not there:
            private_folder(folder)
            write_private(folder / names[0], here[-1].read_bytes() if here else saved.files[names[0]])
        for chat in there[:-1]:
            chat.unlink()

    def erase(self, saved: SavedSession, cwd: Path, env: Mapping[str, str]) -> None:
        """Erase the conversation in the folder of that project alone: in another one it is somebody else's."""
        home = gemini_home(env)
        if slug_of(cwd.resolve(), home):
            folder = project_folder(cwd, home)
            for chat in chats_of(saved.id, home):
                if chat.parent == folder:
                    chat.unlink()

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
            other = as_another(saved, session)
            files = {name.replace(saved.id[:8], session[:8]): data for name, data in other.files.items()}
            self.place(replace(other, files=files), cwd, env, program)

    def launch(self, request: Start) -> Launch:
        argv = (*self.words_for(request), "-o", "stream-json", *request.settings.arguments)
        return request.headless(argv, self.environment(request))

    def open(self, request: Start) -> Launch:
        argv = [*self.words_for(request), *request.settings.arguments]
        argv += ["-m", request.meeting.model] if request.meeting.model else []
        argv += [f"--prompt-interactive={told_in_prompt(request)}"] if request.prompt else []
        return Launch(tuple(argv), request.cwd, self.environment(request), request.folder)

    def words_for(self, request: Start) -> tuple[str, ...]:
        """The program and its conversation. A folder that nobody trusts it refuses; with this flag it still runs nothing of its own."""
        named = request.conversation
        session = ("--resume" if request.session else "--session-id", need_session_id(named)) if named else ()
        program = request.settings.program or (self.name,)
        return (*program, "--skip-trust", "--policy", str(POLICY), *session)

    def environment(self, request: Start) -> dict[str, str]:
        """Return the environment with the conversation's id, which the program's shell does not set by itself."""
        named = request.conversation
        return {**request.environment, **({"GITGATE_SESSION": named} if named else {})}

    def lasting(self, words: Sequence[str]) -> tuple[str, ...]:
        return kept_flags(words, KEPT, left=BOUNDLESS)

    def able_to_ask(self, words: Sequence[str], session: str) -> tuple[str, ...]:
        if not of_program(words, self.name) or not names_flag(words, "-p", "--prompt"):
            return tuple(words)
        called = () if names_flag(words, *GOES_ON) else ("--session-id", session)
        return (words[0], *called, "--policy", str(POLICY), *words[1:])

    def wants(self, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        place = gemini_home(env) / "settings.json"
        settings = read_json_file(place)
        general = settings.get("general")
        kept = general.get("sessionRetention") if isinstance(general, dict) else None
        if not isinstance(kept, dict) or kept.get("enabled") is not False:
            words = "it may delete a conversation that was gone on with, as part of its cleaning up"
            yield words, f"put {RETENTION} into {place}"

    def outcome(self, finished: Finished) -> AgentOutcome:
        session, text, status, reason = read_gemini_events(finished.out)
        ended = finished.ending is ProcessEnding.EXITED
        # Interrupted it says exit 0: only the line that ends its output tells.
        if ended and not finished.code and status == "success":
            return AgentOutcome(AgentResult.DONE, session, text)
        # An error of its service ends it with the status, of which an exit code has room for a part.
        passing = ended and finished.code != NO_SESSION and (status != "" or not finished.code)
        return AgentOutcome(
            AgentResult.FAILED,
            session,
            text,
            reason or reason_of_end(finished),
            retry=passing or (killed(finished) and not ended),
        )

    def read_end(self, argv: Sequence[str], out: bytes) -> EndedCommand | None:  # noqa: ARG002  its output names the conversation
        if b'"session_id"' not in out or b'"type":"init"' not in out:
            return None
        session, text, _, _ = read_gemini_events(out)
        return EndedCommand(text, session, self.name)


def read_gemini_events(out: bytes) -> tuple[str, str, str, str]:
    """The conversation, its last words, how it ended, and what went wrong, as its events say."""
    session, text, status, reason = "", "", "", ""
    for event in events(out.splitlines()):
        kind = event.get("type")
        if kind == "init":
            session = str(event.get("session_id") or "")
        elif kind == "message" and event.get("role") == "assistant":
            text += str(event.get("content") or "")
        elif kind in ("tool_use", "tool_result"):
            text = ""
        elif kind in ("result", "error"):
            status = str(event.get("status") or "") if kind == "result" else status
            error = event.get("error")
            words = error.get("message") if isinstance(error, dict) else event.get("message")
            reason = brief(str(words)) if words else reason
    return session, text, status, reason


def has_home(env: Mapping[str, str]) -> bool:
    return bool(env.get("GEMINI_CLI_HOME") or env.get("HOME"))


def gemini_home(env: Mapping[str, str]) -> Path:
    return Path(env["GEMINI_CLI_HOME"] if env.get("GEMINI_CLI_HOME") else home_folder(env)) / ".gemini"


def wrapped_session(env: Mapping[str, str]) -> str:
    """The conversation by whose name `git gate wrap` started it."""
    said = json_or_none(env.get("GITGATE_WRAPPED"))
    return str(said.get("session") or "") if isinstance(said, dict) else ""


def read_json_file(place: Path) -> dict[str, Any]:
    try:
        found = json_or_none(place.read_bytes())
    except OSError:
        return {}
    return found if isinstance(found, dict) else {}


def slug_of(cwd: Path, home: Path) -> str:
    """The name of the folder that a project has; empty where it has none yet."""
    known = read_json_file(home / PROJECTS).get("projects")
    found = known.get(str(cwd)) if isinstance(known, dict) else ""
    return found if isinstance(found, str) and re.fullmatch(r"[\w.-]{1,200}", found) else ""


def project_folder(cwd: Path, home: Path) -> Path:
    """Return the folder of a project's conversations. A project without a folder name gets one, which is registered."""
    cwd = cwd.resolve()
    slug = slug_of(cwd, home)
    if not slug:
        plain = re.sub(r"[^a-z0-9]+", "-", cwd.name.lower()).strip("-") or "project"
        known = read_json_file(home / PROJECTS)
        projects = known.get("projects")
        taken = dict(projects) if isinstance(projects, dict) else {}
        names = (plain if number == 0 else f"{plain}-{number}" for number in range(len(taken) + 1_000))
        slug = next(name for name in names if name not in taken.values() and is_free(home, name, cwd))
        private_folder(home)
        write_private(home / PROJECTS, written({**known, "projects": {**taken, str(cwd): slug}}).encode())
        for folder in (home / TEMPORARY / slug, home / "history" / slug):
            private_folder(folder)
            write_private(folder / TOP, str(cwd).encode())
    return home / TEMPORARY / slug / CHATS


def is_free(home: Path, slug: str, cwd: Path) -> bool:
    try:
        return (home / TEMPORARY / slug / TOP).read_text("utf-8", "replace").strip() == str(cwd)
    except OSError:
        return not (home / TEMPORARY / slug).exists()


def chats_of(session: str, home: Path) -> list[Path]:
    """The files of a conversation in whatever project, the one that was written to last at the end."""
    named = (home / TEMPORARY).glob(f"*/{CHATS}/session-*-{need_session_id(session)[:8]}.jsonl")
    found = [chat for chat in named if chat.is_file() and id_of(chat) == session]
    return sorted(found, key=lambda chat: chat.stat().st_mtime_ns)


def newest_chat(cwd: Path, env: Mapping[str, str]) -> Path | None:
    """The conversation of a project that was written to last; those of its helpers are none."""
    home = gemini_home(env)
    slug = slug_of(cwd.resolve(), home)
    if not slug:
        return None
    found = [chat for chat in (home / TEMPORARY / slug / CHATS).glob("session-*.jsonl") if chat.is_file()]
    return max(found, key=lambda chat: chat.stat().st_mtime_ns, default=None)


def id_of(chat: Path) -> str:
    """The id that stands in its first line."""
    try:
        with chat.open("rb") as source:
            first = next(events(source.read(FIRST_LINE).splitlines()[:1]), {})
    except OSError:
        return ""
    found = first.get("sessionId")
    return found if isinstance(found, str) and re.fullmatch(SESSION_ID, found) else ""
