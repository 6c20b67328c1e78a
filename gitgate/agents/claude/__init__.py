"""Agents: Claude Code, headless.

Nothing of how it was started is restored when it is resumed, so every flag is passed each time. It would run hooks of
the worktree's `.claude/settings.json` and start servers of its `.mcp.json` in a directory that nobody trusted, so both
are off unless the machine's settings say otherwise. What is said to it goes through stdin: an argument would be seen by
everybody on the machine, is bounded, and could begin with a dash.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...document import replace
from ...errors import Usage
from ...model.gate import SavedSession, SessionRef
from ..agent import (
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
    killed,
    need_session_id,
    reason_of_end,
)

# AskUserQuestion is offered only where somebody could be asked for a permission; its calls are deferred by our hook.
ALWAYS = ("-p", "--output-format", "stream-json", "--verbose", "--permission-prompt-tool", "stdio")
SERVERS = "mcp.json"
GIVEN = "settings.json"
DEFERRED = "deferred"  # a file that says that a call waited for its answer
UNANSWERED = r"Tool permission request failed: \w*Error: Stream closed"
NO_CONVERSATION = "No conversation found with session ID"
# Ways to end that another attempt may better: the network, a limit, a kill. Others would end the same.
PASSING = frozenset((408, 409, 429))
API_ERROR = r"\AAPI Error: (\d{3})\b"
MOST_DENIED = 50
# What its result has, and that of no other program whose output ends in a line of the same type.
OF_RESULT = frozenset(("result", "session_id", "subtype", "is_error"))
TELLING = ("command", "file_path", "notebook_path", "path", "url", "query", "pattern")


# Its own variables begin so. Of these, what a person sets to configure it: the way to its model, and limits.
OWN = "CLAUDE_CODE_"
CONFIGURED = (
    r"CLAUDE_CODE_(?:OAUTH_TOKEN|USE_|SKIP_|DISABLE_|ENABLE_|MAX_|API_|CLIENT_|CERT_STORE|PROXY_|SUBAGENT_MODEL|GIT_BASH_PATH|SHELL"
    r"|AUTO_COMPACT|EFFORT_LEVEL|FILE_READ_|GLOB_|TMPDIR|OTEL_|RETRY_|OVERLOADED_|NONSTREAMING_)\w*"
)
NAMES_A_SESSION = ("--session-id", "--resume", "-r", "--session")


class Claude(Agent):
    name = "claude"
    marks = ("CLAUDECODE",)
    sessions = ("CLAUDE_CODE_SESSION_ID",)
    process_ids = ("CLAUDE_PID",)
    packages = ("@anthropic-ai/claude-code",)
    folders = (".claude",)
    files = ("claude.md", "claude.local.md", ".mcp.json")
    rules_file = ".claude/settings.json"
    unread = ("CLAUDE.md", "AGENTS.md")
    # Below the folder where it works: neither git's own files nor its own settings, which the program guards by itself.
    job_rules = (
        *("Edit(./**)", "Bash(git add:*)", "Bash(git commit:*)", "Bash(git rm:*)", "Bash(git mv:*)"),
        *("Bash(git gate ask:*)", "Bash(git-gate ask:*)"),
    )
    starts = True
    takes_servers = True
    instructed = True

    def leaves(self, variable: str) -> bool:
        if variable.startswith(OWN):
            return not re.fullmatch(CONFIGURED, variable)
        return variable == "CLAUDE_EFFORT" or super().leaves(variable)

    def hooks(self) -> Mapping[str, object]:
        from . import command as claude_hooks

        return claude_hooks.hooks()

    def collect(self, session: SessionRef, env: Mapping[str, str], most: int = SESSION_MOST) -> SavedSession:
        from . import transcript

        return transcript.collect(session, env, most)

    def place(
        self,
        saved: SavedSession,
        cwd: Path,
        env: Mapping[str, str],
        program: Sequence[str] = (),  # noqa: ARG002  it is not run
    ) -> None:
        from . import transcript

        transcript.place(saved, cwd, env)

    def forked(self, saved: SavedSession, drawn: str) -> SavedSession | None:
        """As `--fork-session` does it: each record says which conversation it belongs to. So do the paths of what lies beside it."""
        from . import transcript

        if transcript.TRANSCRIPT not in saved.files:
            return None
        old, new = need_session_id(saved.id), self.new_session(drawn)
        files = {name: content.replace(old.encode(), new.encode()) for name, content in saved.files.items()}
        return replace(saved, id=new, place=saved.place.replace(old, new), files=files)

    def erase(self, saved: SavedSession, cwd: Path, env: Mapping[str, str]) -> None:
        from . import transcript

        transcript.erase(saved.id, cwd, env)

    def start(self, request: Start) -> Launch:
        from . import transcript

        argv, files = self._command(request, *ALWAYS)
        argv += self._resuming(request)
        if request.deferred and "PreToolUse" not in request.hooks:
            # Nobody would answer the call, and one that a person refused would be made.
            raise Usage("a deferred call needs the hook that answers it", hint="git gate init --claude")
        # After an attempt that was interrupted the call has its result, and the program wants to be spoken to.
        waits = request.deferred and (
            request.session is None or transcript.still_waits(request.session, request.cwd, request.env)
        )
        prompt = request.prompt.encode("utf-8", "replace")
        env = request.environment
        if waits:
            # Nothing is said to it, so that our hook tells it the rest (who answered, what changed) with the answer.
            files[DEFERRED] = prompt
            env["GITGATE_PROMPT_FILE"] = str(request.folder / DEFERRED)
        stdin = b"" if waits else prompt
        return Launch(argv, request.cwd, env, request.folder, stdin, files, request.settings.timeout)

    def join(self, request: Start) -> Launch:
        import json

        meeting = request.meeting
        command, files = self._command(request)
        argv = [*command]
        if meeting.servers:
            # In a file for our eyes only: an argument is seen by everybody on the machine, and servers take secrets.
            files[SERVERS] = json.dumps({"mcpServers": dict(meeting.servers)}).encode()
            argv += ["--mcp-config", str(request.folder / SERVERS)]
        argv += ["--allowedTools", ",".join(meeting.allowed)] if meeting.allowed else []
        argv += ["--model", meeting.model] if meeting.model else []
        argv += ["--append-system-prompt", meeting.system] if meeting.system else []
        argv += ["--fork-session"] if meeting.id and request.session else []
        argv += ["--session-id", need_session_id(meeting.id)] if meeting.id else []
        argv += self._resuming(request)
        argv += ["--", request.prompt] if request.prompt else []
        return Launch(tuple(argv), request.cwd, request.environment, request.folder, files=files)

    def _command(self, request: Start, *flags: str) -> tuple[tuple[str, ...], dict[str, bytes]]:
        """The program with every flag that keeps the worktree's own settings out, and with our hooks and the project's rules,
        beside the settings that this machine's arguments name; and the file that those take.
        """
        from .command import SettingsFiles, joined_settings, parted

        files: dict[str, bytes] = {}

        def read(name: str) -> str:
            try:
                return (request.cwd / name).read_text("utf-8-sig")
            except (OSError, ValueError) as unreadable:
                hint = "git config gitgate.agent.claude.arguments"
                raise Usage(f"--settings of the agent cannot be read: {name}", hint=hint) from unreadable

        def keep(text: str) -> str:
            files[GIVEN] = text.encode("utf-8")
            return str(request.folder / GIVEN)

        settings = request.settings
        sources = "user,project" if settings.project_settings else "user"
        servers = () if settings.project_servers else ("--strict-mcp-config",)
        given = {"hooks": request.hooks, "permissions": request.permissions}
        ours = {name: value for name, value in given.items() if value}
        program = settings.program or (self.name,)
        said, theirs = parted(settings.arguments)
        joined = joined_settings(theirs, ours, SettingsFiles(read, keep)) if ours or theirs else ""
        last = ("--settings", joined) if joined else ()
        return (*program, *flags, "--setting-sources", sources, *servers, *said, *last), files

    def _resuming(self, request: Start) -> tuple[str, ...]:
        return ("--resume", need_session_id(request.session.id)) if request.session else ()

    def lasting(self, words: Sequence[str]) -> tuple[str, ...]:
        from .command import lasting_flags

        return lasting_flags(words)

    def lasting_in_line(self, line: str, saved: SavedSession) -> tuple[str, ...]:
        from . import transcript
        from .command import lasting_flags, words_of_line

        words = words_of_line(line, transcript.prompts(saved.files.get(transcript.TRANSCRIPT, b"")))
        return lasting_flags(words) if words else ()

    def read_outcome(self, finished: Finished) -> AgentOutcome:
        said = last_result(finished.out)
        if said is None or finished.ending is not ProcessEnding.EXITED:
            return without_result(finished)
        return replace(self._came_of(finished, said), denied=refused_calls(said))

    def _came_of(self, finished: Finished, said: Mapping[str, Any]) -> AgentOutcome:
        session = str(said.get("session_id") or "")
        text = said["result"] if isinstance(said.get("result"), str) else ""
        # An API error says `subtype: success`; an interruption says exit 0. Only `is_error` tells.
        if said.get("is_error") or finished.code:
            return AgentOutcome(
                AgentResult.FAILED, session, text, failure(said, finished), may_pass(said, finished)
            )
        if (finished.folder / DEFERRED).exists() and unanswered(finished.out):
            return AgentOutcome(
                AgentResult.FAILED,
                session,
                text,
                "no hook answered the call that waited: the agent went on without it",
            )
        call = said.get("deferred_tool_use")
        if said.get("stop_reason") == "tool_deferred" or isinstance(call, dict):
            return AgentOutcome(
                AgentResult.DEFERRED, session, text, call=call if isinstance(call, dict) else None
            )
        if said.get("terminal_reason") == "hook_stopped":
            return AgentOutcome(AgentResult.ASKED, session, text)
        return AgentOutcome(AgentResult.DONE, session, text)

    def read_end(self, argv: Sequence[str], out: bytes) -> EndedCommand | None:
        """The result object that ends its output, if it was asked for; the conversation may stand in the command as well."""
        said = last_result(out)
        if said is None or OF_RESULT.isdisjoint(said):
            return None
        text, call, structured = (
            said.get("result"),
            said.get("deferred_tool_use"),
            said.get("structured_output"),
        )
        session = said.get("session_id")
        return EndedCommand(
            text if isinstance(text, str) else "",
            session if isinstance(session, str) else session_in(argv),
            call=call if isinstance(call, dict) else None,
            structured=structured if isinstance(structured, dict) else None,
        )


def session_in(argv: Sequence[str]) -> str:
    """The conversation that a command line names, for a program whose output does not."""
    for word, after in zip(argv, (*argv[1:], ""), strict=False):
        flag, equals, value = word.partition("=")
        if flag in NAMES_A_SESSION and (equals or (after and not after.startswith("-"))):
            return value if equals else after
    return ""


def last_result(out: bytes) -> dict[str, Any] | None:
    """The result that ends the output, whether it stands alone or ends a stream of events."""
    return next(
        (found for found in events(reversed(out.splitlines())) if found.get("type") == "result"), None
    )


def without_result(finished: Finished) -> AgentOutcome:
    """Return the outcome of a process that was killed, ran out of time, or never spoke; at most its conversation's
    name is known.
    """
    ids = (
        found["session_id"]
        for found in events(finished.out.splitlines())
        if isinstance(found.get("session_id"), str)
    )
    lost = NO_CONVERSATION.encode() in finished.err
    return AgentOutcome(
        AgentResult.FAILED, next(ids, ""), reason=reason_of_end(finished), retry=killed(finished) and not lost
    )


def unanswered(out: bytes) -> bool:
    """Return whether the first call's result says that nobody could be asked: then the hook said nothing."""
    import json

    for event in events(out.splitlines()):
        if event.get("type") == "user":
            return bool(re.search(UNANSWERED, json.dumps(event.get("message"))))
    return False


def failure(said: Mapping[str, Any], finished: Finished) -> str:
    """Return the reason of a failure in a line: the program's own words, else the kind of ending."""
    errors = said.get("errors")
    words = [str(error) for error in errors] if isinstance(errors, list) else []
    kind = said.get("terminal_reason") or said.get("stop_reason") or said.get("subtype")
    words += [text for text in (said.get("result"), reason_of_end(finished)) if isinstance(text, str)]
    text = next(word.strip().splitlines()[0] for word in words if word.strip())
    return brief(text if kind in (None, "success", "completed") else f"{kind}: {text}")


def may_pass(said: Mapping[str, Any], finished: Finished) -> bool:
    """Return whether another attempt may succeed. The model's service repeats a refusal that is final."""
    if killed(finished):
        return True
    words = str(said.get("result") or "")
    status = said.get("api_error_status") or next(map(int, re.findall(API_ERROR, words)), None)
    if isinstance(status, int):
        return status in PASSING or status >= 500
    return said.get("terminal_reason") == "api_error" or words.startswith("API Error: Unable to connect")


def refused_calls(said: Mapping[str, Any]) -> tuple[str, ...]:
    """The calls that it was not let make, each in a line: the tool, and what tells one call of it from another."""
    listed = said.get("permission_denials")
    found = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return tuple(dict.fromkeys(call_line(one) for one in found[:MOST_DENIED]))


def call_line(denial: Mapping[str, Any]) -> str:
    import json

    tool, given = str(denial.get("tool_name") or "a tool"), denial.get("tool_input")
    if not isinstance(given, dict) or not given:
        return brief(tool)
    told = next((given[name] for name in TELLING if isinstance(given.get(name), str)), None)
    return brief(f"{tool}: {told if told is not None else json.dumps(given, ensure_ascii=False)}")
