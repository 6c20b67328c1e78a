"""Agents: what every adapter declares and is asked, and the values that go in and out.

An adapter is all that is known of one program: by what it is told that we run inside it, what configures it, which files
hold a conversation, how the program is started again, and how its ending is read. It decides nothing about gates and
starts nothing itself: `start` gives a `Launch`, which `process` runs.

Whoever asks or answers loads this and every adapter, so what costs is imported where it is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from ..document import dataclass, field, replace
from ..errors import Failure, Usage
from ..model.gate import SavedSession, SessionRef

SESSION_MOST = 4_000_000
REASON_CELLS = 300
SIX_HOURS = 6 * 3600.0
# An id becomes a file's name and an argument: it starts with neither a dot nor a dash, and names no folder.
# Before the id of what is no conversation: the program is simply started again.
NONE = "none-"
SESSION_ID = r"[A-Za-z0-9][A-Za-z0-9_-]{3,127}"

# What runs programs that are a script, by the name that its process goes by. Node calls its first thread `MainThread`.
INTERPRETERS = frozenset(("node", "nodejs", "bun", "deno", "MainThread", "node-MainThread"))
MOST_FLAGS = 16


@dataclass(frozen=True)
class AgentSettings:
    """Settings for starting an agent on this machine. They come from its git config or the protected branch: never
    from a gate or a session.
    """

    program: tuple[str, ...] = ()  # what to run instead of the agent's usual name
    arguments: tuple[
        str, ...
    ] = ()  # the agent's own flags; a program forgets them, so every start passes all
    start_template: tuple[str, ...] = ()  # `command` only
    resume_template: tuple[str, ...] = ()  # `command` only
    join_template: tuple[str, ...] = ()  # `command` only: how a person's conversation with it is opened
    stdin: str = "answer"  # `command` only: answer, prompt or none
    project_settings: bool = False  # let the worktree's own settings take part: they may run code
    project_servers: bool = False  # let the worktree's own MCP servers start: they run code
    timeout: float = SIX_HOURS


@dataclass(frozen=True)
class Meeting:
    """Input of a conversation that a person takes part in. The program forgets all of it, so that every start passes
    it anew.

    With `id` a conversation of that id begins; if there is a session as well, it branches off from that one.
    """

    id: str = ""
    system: str = ""
    model: str = ""
    servers: Mapping[str, object] = field(default_factory=dict)  # MCP servers by name
    allowed: tuple[str, ...] = ()  # tools that it uses without asking


@dataclass(frozen=True)
class Start:
    """Start of an agent: the program's input and its place. Without `session` a new conversation begins.

    `deferred`: the conversation stopped at a tool call that waits for its answer from our hook, so that nothing is
    said to it; without that hook the call would simply be made. `hooks` are ours, in the program's own form: they
    ask and they answer. `permissions` are the project's rules on tools, from its protected branch. `folder` is new
    and private to this start: files for the agent and its output go there. `answer` is the answer as a document,
    `told` its parts as plain texts (verdict, answer, note, by). The environment is `env`, which is handed in
    without what must not be inherited (`agents.scrubbed`), and `extra_env`.
    """

    gate: str
    cwd: Path
    folder: Path
    prompt: str = ""
    session: SessionRef | None = None
    deferred: bool = False
    hooks: Mapping[str, object] = field(default_factory=dict)
    permissions: Mapping[str, object] = field(default_factory=dict)
    answer: bytes = b""
    told: Mapping[str, str] = field(default_factory=dict)
    settings: AgentSettings = AgentSettings()
    env: Mapping[str, str] = field(default_factory=dict)
    extra_env: Mapping[str, str] = field(default_factory=dict)
    meeting: Meeting = Meeting()

    @property
    def environment(self) -> dict[str, str]:
        return {**self.env, **self.extra_env}

    @property
    def conversation(self) -> str:
        """The id of the conversation that begins or goes on; empty where the program gives it its id."""
        return self.meeting.id or (self.session.id if self.session else "")

    def headless(self, argv: tuple[str, ...], env: Mapping[str, str]) -> Launch:
        """A program that nobody watches, and that reads its prompt from stdin."""
        prompt = self.prompt.encode("utf-8", "replace")
        return Launch(argv, self.cwd, env, self.folder, prompt, timeout=self.settings.timeout)


@dataclass(frozen=True)
class Launch:
    """A process to run. `files` are written into `folder` first; stdin is these bytes and then ends."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    folder: Path
    stdin: bytes = b""
    files: Mapping[str, bytes] = field(default_factory=dict)
    timeout: float = SIX_HOURS


class ProcessEnding(StrEnum):
    """Way in which a process ended."""

    EXITED = "exited"
    TIMED_OUT = "timed out"
    STOPPED = "stopped"  # by us, or because the runner that started it died
    UNSTARTABLE = "not started"


@dataclass(frozen=True)
class Finished:
    """An ended process: `code` is its exit code, 128 + n after signal n; the ends of its output; its folder."""

    ending: ProcessEnding
    code: int
    out: bytes
    err: bytes
    folder: Path


class AgentResult(StrEnum):
    """Result of an agent's run."""

    DONE = "done"
    ASKED = "asked"  # it stopped by itself because it has asked again
    DEFERRED = "deferred"  # it stopped at a tool call that waits for an answer
    FAILED = "failed"


@dataclass(frozen=True)
class AgentOutcome:
    """`retry`: another attempt may go better (the network, a kill), as opposed to one that would end the same."""

    result: AgentResult
    session: str = ""
    text: str = ""
    reason: str = ""
    retry: bool = False
    call: Mapping[str, object] | None = None
    denied: tuple[str, ...] = ()  # calls that it was refused, each in a line


@dataclass(frozen=True)
class EndedCommand:
    """End of a command, as much of it as could be read. `agent`: the program whose conversation it was, where that is
    known.
    """

    text: str = ""
    session: str = ""
    agent: str = "claude"
    call: Mapping[str, object] | None = None
    structured: Mapping[str, object] | None = None


class Agent:
    """One program that asks, and all that is known of it. What a program does not say of itself is as it stands here.

    Who is an agent's process, what a program that is started must not inherit, what configures agents in a repository:
    all of that is derived from these declarations, over every adapter in `AGENTS`.
    """

    name = ""

    # What the program sets in the shell that it gives its agent: NAME, or NAME=VALUE where others use the name as well.
    marks: tuple[str, ...] = ()
    # Variables there that hold the id of the conversation, and the number of the program's process. Both are marks, too.
    sessions: tuple[str, ...] = ()
    process_ids: tuple[str, ...] = ()
    # What its process may be called besides its own name; and where an interpreter runs it, a part of its script's path.
    # Without either, its name alone says nothing of a process.
    processes: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    # What its shell says to git, so that git does not find what is the person's: NAME=VALUE, a variable or a git setting.
    hides_from_git: tuple[str, ...] = ()

    # What configures it in a repository, in whatever folder: names of folders and of files, in lower case.
    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    # Of these, the JSON file whose `permissions` are the project's rules on tools.
    rules_file = ""
    # Instructions that it does not load by itself where the project's own settings take no part.
    unread: tuple[str, ...] = ()
    # The rules that it needs to work and to ask in a job of its own, whose checkout is gone afterwards.
    job_rules: tuple[str, ...] = ()

    # What is run for it where that is not called as it is.
    executable = ""
    # Whether it is known here how it is started; else the machine's `gitgate.agent.NAME.*` has to say.
    starts = False
    # Whether what the machine says counts in place of that.
    templated = False
    # Whether a conversation that a person takes part in can be given MCP servers, and its instructions apart from its prompt.
    takes_servers = False
    instructed = False

    @property
    def all_marks(self) -> tuple[str, ...]:
        return (*self.marks, *self.sessions, *self.process_ids)

    def is_process(self, called: str, words: Sequence[str]) -> bool:
        """Return whether a process is this program, by the system's name for it and by its command line."""
        if not (self.processes or self.packages):
            return False
        names = (self.name, *self.processes)
        program = called_by(words[0]) if words else called
        if called in names or program in names:
            return True
        # An interpreter goes by many names (`node`, `MainThread`); what it runs is its first word that is no flag, or the
        # second, where the first is a flag's.
        scripts = [word for word in words[1:MOST_FLAGS] if not word.startswith("-")][:2]
        if not INTERPRETERS.isdisjoint((called, program)):
            return any(
                called_by(script) in names or any(f"/{part}/" in script for part in self.packages)
                for script in scripts
            )
        return False

    def leaves(self, variable: str) -> bool:
        """Return whether the program leaves this variable to its children. A program that inherits it would take
        itself for a part of its parent.
        """
        return variable in (mark.partition("=")[0] for mark in self.all_marks)

    def detect(self, env: Mapping[str, str]) -> SessionRef | None:
        """The conversation that this process runs inside, by the variables that name one."""
        found = (env.get(name, "") for name in self.sessions)
        session = next((text for text in found if re.fullmatch(SESSION_ID, text)), "")
        return SessionRef(self.name, session, env.get("PWD", "")) if session else None

    def hooks(self) -> Mapping[str, object]:
        """Our hooks in the program's own form, for one that this machine starts; empty where it takes none of ours."""
        return {}

    def new_session(self, drawn: str) -> str:
        """The id of a conversation that is to begin, of 32 random hexadecimal digits."""
        import uuid

        return str(uuid.UUID(drawn, version=4))

    def begin(
        self,
        session: str,
        cwd: Path,
        env: Mapping[str, str],
        *,
        saved: SavedSession | None = None,
        program: Sequence[str] = (),
    ) -> None:
        """Make the conversation `session` in which nothing was said yet, for a program that cannot be told an id as it starts;
        or one that goes on from `saved`, for a program that cannot branch off by itself.
        """

    def able_to_ask(self, words: Sequence[str], session: str) -> tuple[str, ...]:  # noqa: ARG002  for those that take an id
        """A person's own headless command with what it takes to ask, as far as it does not say otherwise; `session` is the id
        of a conversation that begins.
        """
        return tuple(words)

    def wants(self, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:  # noqa: ARG002  for those that have settings of their own
        """Yield what the program's own settings on this machine lack to ask and be resumed, each with the command that
        mends it.
        """
        return iter(())

    def collect(
        self,
        session: SessionRef,
        env: Mapping[str, str],  # noqa: ARG002  for those who look for files
        most: int = SESSION_MOST,  # noqa: ARG002  for those who keep files
    ) -> SavedSession:
        """The conversation's files, small and without secrets; what could not be kept is named in `left_out`.

        Here its id alone: what the program keeps is its own business.
        """
        return SavedSession(self.name, session.id, session.directory)

    def place(
        self, saved: SavedSession, cwd: Path, env: Mapping[str, str], program: Sequence[str] = ()
    ) -> None:
        """Put the files where the program looks for them when it runs in `cwd`; `program` is what is run instead of it."""

    def forked(self, saved: SavedSession, drawn: str) -> SavedSession | None:
        """Return a copy of the conversation under a new id, made of 32 random hexadecimal digits, so that going on in
        it leaves the first one as it is. None where that is impossible.

        The base class copies only a session without a conversation: the program is simply started again.
        """
        return replace(saved, id=f"{NONE}{drawn}") if saved.id.startswith(NONE) else None

    def erase(self, saved: SavedSession, cwd: Path, env: Mapping[str, str]) -> None:
        """Take away what `place` put there, and what the program made of it."""

    def start(self, request: Start) -> Launch:
        """Return the launch that starts or resumes the program."""
        raise NotImplementedError

    def join(self, request: Start) -> Launch:
        """Return the launch by which a person opens the conversation at a terminal; its stdin and its timeout do not
        count.
        """
        raise NotImplementedError

    def read_outcome(self, finished: Finished) -> AgentOutcome:
        """Return the outcome of a process that `start` described, read from its exit and its output."""
        raise NotImplementedError

    def lasting(self, words: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002  for programs that forget them
        """Return the flags of a command line that a run of the same conversation needs again: its permissions and its
        model.
        """
        return ()

    def lasting_in_line(self, line: str, saved: SavedSession) -> tuple[str, ...]:  # noqa: ARG002
        """Return the flags to repeat, from a command line whose words are not separated. The conversation tells which
        part of it is a prompt.
        """
        return ()

    def read_end(self, argv: Sequence[str], out: bytes) -> EndedCommand | None:  # noqa: ARG002  for those who know their output
        """Return the end of a person's own command, if its output is this program's; None where it is not."""
        return None


def need_session_id(text: str) -> str:
    """A conversation's id that is safe as a file name and as an argument."""
    if not re.fullmatch(SESSION_ID, text):
        raise Usage(
            f"not a session id: {text[:80]!r}", hint="--session ID: 4 to 128 letters, digits, - and _"
        )
    return text


def events(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The JSON objects among the lines of an output; a line cut short is passed over."""
    import json

    for line in lines:
        if b"{" not in line:
            continue  # No object is on it; to hear that from `json` takes twenty times as long.
        try:
            found = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def no_conversation(saved: SavedSession) -> Failure:
    return Failure(
        f"the saved session {saved.id[:8]} holds no conversation",
        hint="read the answer yourself: git gate list --all",
    )


def called_by(path: str) -> str:
    return path.rpartition("/")[2]


def home_folder(env: Mapping[str, str]) -> Path:
    home = env.get("HOME") or env.get("USERPROFILE")
    if not home:
        raise Failure("HOME is not set, so the agent's own files cannot be found", hint="set HOME")
    return Path(home)


def reason_of_end(finished: Finished) -> str:
    """Return why a process that said nothing readable ended: its last line of talk, or its exit code."""
    lines = [line.strip() for line in finished.err.decode("utf-8", "replace").splitlines() if line.strip()]
    ended = f"exit {finished.code}" if finished.ending is ProcessEnding.EXITED else str(finished.ending)
    return brief(f"{ended}: {lines[-1]}") if lines else ended


def brief(text: str) -> str:
    """A reason in one line without secrets: it is recorded, and others read it."""
    from ..text import one_line
    from ..text.secrets import redact

    return one_line(redact(text), REASON_CELLS)


def killed(finished: Finished) -> bool:
    """Ended from outside rather than by its own decision, so that another attempt may go better."""
    return finished.ending is not ProcessEnding.EXITED or finished.code > 128


def json_or_none(text: object) -> Any:
    """Parse a text as JSON; None where it is none."""
    import json

    try:
        return json.loads(text) if isinstance(text, (str, bytes)) else None
    except (ValueError, RecursionError):
        return None


def written(value: object) -> str:
    """A value as JSON, in one line."""
    import json

    return json.dumps(value, separators=(",", ":"))


def clean_lines(content: bytes, env: Mapping[str, str], sealed: Sequence[str] = ()) -> bytes:
    """Every text of every line redacted, but what stands under a name in `sealed`; a line that is no object is left out."""
    from ..text.secrets import secret_values

    values = secret_values(env)
    cleaned = (redacted_json(found, values, sealed) for found in events(content.splitlines()))
    return b"".join(written(each).encode() + b"\n" for each in cleaned)


def redacted_json(value: object, values: frozenset[str], sealed: Sequence[str] = ()) -> object:
    """A value as JSON has it, every text in it redacted."""
    from ..text.secrets import redact

    if isinstance(value, str):
        return redact(value, values)
    if isinstance(value, list):
        return [redacted_json(item, values, sealed) for item in value]
    if isinstance(value, dict):
        return {
            key: item if key in sealed else redacted_json(item, values, sealed) for key, item in value.items()
        }
    return value


def kept_flags(
    words: Sequence[str],
    known: Mapping[str, str],
    lists: frozenset[str] = frozenset(),
    left: Sequence[str] = (),
) -> tuple[str, ...]:
    """The flags of a command line that are `known`, by the names that are kept for them, each with one value.

    One of `lists` takes every word up to the next flag. A flag whose value is among `left` is not kept.
    """
    kept: list[str] = []
    current = ""
    for word in words[1 : words.index("--") if "--" in words else None]:
        flag, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
        if flag and not equals:
            current = known.get(flag, "")
            continue
        name = known.get(flag, "") if flag else current
        if name and value not in left:
            kept += [name, value]
        current = name if name in lists and not equals else ""
    return tuple(kept)


def names_flag(words: Sequence[str], *flags: str) -> bool:
    """Return whether one of the flags is in a command line."""
    before = words[: words.index("--")] if "--" in words else words
    return any(word.partition("=")[0] in flags for word in before)


def of_program(words: Sequence[str], name: str) -> bool:
    return bool(words) and called_by(words[0]) == name


def as_another(saved: SavedSession, session: str) -> SavedSession:
    """Return a copy of the conversation under another id, in the names of its files and in their content."""
    old, new = need_session_id(saved.id), need_session_id(session)
    files = {
        name.replace(old, new): content.replace(old.encode(), new.encode())
        for name, content in saved.files.items()
    }
    return replace(saved, id=session, files=files)


def too_large(saved: SavedSession, name: str, most: int) -> SavedSession:
    return replace(saved, left_out=((name, f"it is larger than {most / 1e6:g} MB"),))


def told_in_prompt(request: Start) -> str:
    """The prompt of a program that takes no instructions apart: they stand before it."""
    parts = (request.meeting.system, request.prompt)
    return "\n\n".join(part for part in parts if part) if request.prompt else ""
