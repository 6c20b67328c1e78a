"""Setup: a command of Claude Code with what it takes to ask: our hooks, the project's rules on tools, and the flags beside them.

Our hooks always come by `--settings`: what stands in a project's settings is read only where the program was started, so that
in a folder below nothing would be asked. What would keep those hooks from running is found beforehand; whether they ran is
told afterwards by the mark that one of them leaves.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..acts.needs import MARKS, is_session, program_name
from ..agents import AGENTS, scrubbed
from ..agents.agent import Launch
from ..agents.claude import command, session_in, transcript
from ..agents.claude.command import END, SettingsFiles, claude_at, own_words
from ..agents.claude.switches import Switches, read_switches
from ..agents.process import CommandEnd
from ..context import Desk
from ..document import dataclass, field, replace
from ..errors import GateError, NotAllowed, Usage
from ..gates.agency import settings_for_start
from ..policy.rulebook import has_rules
from ..store import private_folder, write_private
from . import permissions_of

MOST_CHARACTERS = 1 << 20
# What a project's folder says of settings and servers, left out as it is for a resumed agent.
SOURCES, SERVERS = "--setting-sources", "--strict-mcp-config"
PROMPTS = ("--permission-prompt-tool", "stdio")
SESSION, FORK = "--session-id", "--fork-session"
GOES_ON = ("--resume", "--continue", "--from-pr", "--teleport", SESSION)
KEEPS_NOTHING = "--no-session-persistence"
PASSES = "such a run would pass the rules for approvals"


def equipped(desk: Desk, words: Sequence[str], doubt: str = "") -> tuple[str, ...]:
    """Return the command of a program that takes hooks, with them; any other as it is.

    Where there is a `doubt` about what the folder says, nothing of that takes part, unless the command itself says what does.
    """
    at = claude_at(words)
    if at is None:
        return tuple(words)
    ours: dict[str, object] = {"hooks": command.hooks()}
    may = permissions_of(desk, "claude")
    if may:
        ours["permissions"] = may
    given = command.with_settings(words, ours, files_of(desk, desk.repo.place))
    return (*given[: at + 1], *(held_back(words) if doubt else ()), *given[at + 1 :])


def able_to_ask(desk: Desk, words: Sequence[str], session: str, cwd: Path) -> tuple[str, ...]:
    """Return a person's own command of Claude Code with what it takes to ask, as far as it does not say otherwise; any other as
    it is. `cwd` is the folder that it is started in.

    It is headless also without `-p`, since its output is read. Its own tool for questions is offered only where somebody could
    be asked. A new conversation is called `session`, so that it is known whatever form its output has.
    """
    at = claude_at(words)
    if at is None:
        return tuple(words)
    given = command.with_settings(words, {"hooks": command.hooks()}, files_of(desk, cwd))
    prompts = () if names_flag(words, PROMPTS[0]) else PROMPTS
    called = () if goes_on(words) else (SESSION, session)
    return (*given[: at + 1], *prompts, *called, *given[at + 1 :])


def goes_on(words: Sequence[str]) -> bool:
    """Return whether a command of Claude Code names its conversation, or goes on with one; `-cp` is `-c -p`."""
    short = any(
        word[:1] == "-" and word[1:2] != "-" and not {"c", "r"}.isdisjoint(word) for word in flags_in(words)
    )
    return short or any(names_flag(words, flag) for flag in GOES_ON)


def held_back(words: Sequence[str]) -> tuple[str, ...]:
    """Return the flags by which Claude Code loads nothing of the folder's own, as far as its command does not say otherwise."""
    sources = () if names_flag(words, SOURCES) else (SOURCES, "user")
    return (*sources, *(() if names_flag(words, SERVERS) else (SERVERS,)))


def names_flag(words: Sequence[str], flag: str) -> bool:
    return any(word.partition("=")[0] == flag for word in flags_in(words))


def flags_in(words: Sequence[str]) -> Sequence[str]:
    """Return the words of Claude Code's own that may be flags."""
    own = own_words(words)
    return own[: own.index(END)] if END in own else own


def files_of(desk: Desk, cwd: Path) -> SettingsFiles:
    """Return the ways to files of settings for a command that is started in `cwd`."""

    def read(name: str) -> str:
        try:
            with (cwd / name).open(encoding="utf-8-sig") as file:
                return file.read(MOST_CHARACTERS)
        except (OSError, ValueError) as unreadable:
            raise Usage(
                f"--settings of the agent's command cannot be read: {name}",
                hint=f"a file, from {cwd}, or JSON",
            ) from unreadable

    def keep(text: str) -> str:
        place = kept_settings(desk)
        private_folder(place.parent)
        write_private(place, text.encode("utf-8"))
        return str(place)

    return SettingsFiles(read, keep)


def kept_settings(desk: Desk) -> Path:
    """Return the file for the settings of the command that this process starts."""
    return desk.repo.state_dir / "settings" / f"{os.getpid()}.json"


def need_hooks(desk: Desk, words: Sequence[str], cwd: Path, env: Mapping[str, str]) -> tuple[str, ...]:
    """Refuse a command of Claude Code in which our hooks would not run, where calls need approval; else return what is to be said.

    Without rules it may run: nothing of it has to wait, and nothing of it can ask.
    """
    if claude_at(words) is None:
        return ()
    return refuse_unhooked(desk, words, cwd, env)


def why_not_resumed(desk: Desk, agent: str) -> str:
    """Return why an agent is not started again by what this machine says of it: our hooks would not run; empty where nothing is."""
    if agent != "claude":
        return ""
    settings = settings_for_start(desk, agent)
    sources = "user,project" if settings.project_settings else "user"
    words = (agent, SOURCES, sources, *settings.arguments)
    try:
        refuse_unhooked(desk, words, desk.repo.place, scrubbed(desk.settings.env))
    except NotAllowed as refused:
        return refused.message
    return ""


def with_hooks_running(desk: Desk, agent: str, launch: Launch) -> Launch:
    """Return how an agent is started again; refuse it where our hooks would not run in it, and calls need approval."""
    if agent == "claude":
        refuse_unhooked(desk, launch.argv, launch.cwd, launch.env)
    return launch


def refuse_unhooked(desk: Desk, words: Sequence[str], cwd: Path, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return what is to be said of what is switched off in a command; refuse it where calls need approval and hooks are off."""
    found = read_switches(words, cwd, env)
    if found.hooks and has_rules(desk):
        raise NotAllowed(
            f"git gate's hooks would not run: {', '.join(found.hooks)}; {PASSES}",
            hint="take it out of the command or the settings; against a setting also: --settings '{\"disableAllHooks\": false}'",
        )
    return tuple(notes_of(found))


def notes_of(found: Switches) -> list[str]:
    hooks = f"git gate's hooks do not run ({', '.join(found.hooks)}): its questions become no gates"
    asks = f"the agent cannot ask by its own tool, or in its shell: {', '.join(found.questions)}"
    return [*([hooks] if found.hooks else []), *([asks] if found.questions else [])]


# Whether the hooks ran, told at the end by the mark that the hook of a session's start left.


# Said of a run of Claude Code in which no hook of ours left its mark.
UNHEARD = "Claude Code ran without git gate's hooks: none of its questions and calls could become a gate"
PASSED = f"{UNHEARD}, although calls need approval here. Look at what it did, and at: git gate doctor"


@dataclass(frozen=True)
class HookWatch:
    """Look at a command before it runs, for whoever asks at its end whether our hooks ran in it. `before` has the conversations
    that were there, and when each was written last; `ruled`: calls need approval.
    """

    token: str
    mark: Path
    words: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    ruled: bool
    before: Mapping[Path, int] = field(default_factory=dict)

    @property
    def session(self) -> str:
        """The conversation that the command names, where it goes on under that name."""
        forks = names_flag(self.words, FORK) and not names_flag(self.words, SESSION)
        return "" if forks else named_session(self.words)

    def missed(self, ended: CommandEnd) -> str:
        """Return what is to be said where a session of Claude Code began and our hooks did not run; else nothing."""
        if not self.began(ended) or self.marked():
            return ""
        return PASSED if self.ruled else UNHEARD

    def marked(self) -> bool:
        """Return whether the hook of its session's start left its mark."""
        try:
            told = self.mark.read_text("utf-8").split()
        except OSError:
            return False
        return self.session in told if self.session else bool(told)

    def began(self, ended: CommandEnd) -> bool:
        """Return whether a session of Claude Code began: its output ends in its result, or a conversation was written.

        Where none is kept, and it printed no result, one that ended well is taken for one that began. A program that we do not
        know may have started it: then a conversation has to be new in this folder.
        """
        if is_other(self.words):
            return False
        if AGENTS["claude"].read_end(self.words, ended.out) is not None:
            return True
        if claude_at(self.words) is None:
            return any(place not in self.before for place in conversations(self.env, self.cwd, ""))
        if names_flag(self.words, KEEPS_NOTHING):
            return ended.code == 0
        written = stamps(conversations(self.env, self.cwd, self.session))
        return any(self.before.get(place) != stamp for place, stamp in written.items())


def is_other(words: Sequence[str]) -> bool:
    """Return whether a command is that of another program that we know."""
    name = program_name(words)
    return name in AGENTS and name not in ("claude", "command")


@contextlib.contextmanager
def watched(desk: Desk, words: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Iterator[HookWatch]:
    """Watch a command that is about to be started; afterwards nothing of that is left, nor of the settings that it was given."""
    token = desk.entropy(12)
    mark = desk.repo.state_dir / MARKS / token
    around = {**env, **command.assigned(words)}
    ruled = not is_other(words) and has_rules(desk)
    watch = HookWatch(token, mark, tuple(words), around, cwd, ruled)
    try:
        yield replace(watch, before=stamps(conversations(around, cwd, watch.session)))
    finally:
        mark.unlink(missing_ok=True)
        kept_settings(desk).unlink(missing_ok=True)


def named_session(words: Sequence[str]) -> str:
    """Return the id of the conversation in a command line; empty where that is no id."""
    found = session_in(own_words(words))
    return found if is_session(found) else ""


def conversations(env: Mapping[str, str], cwd: Path, session: str) -> list[Path]:
    """Return the files of that conversation in any folder; without a name those of every one that was held in `cwd`."""
    try:
        if session:
            return list((transcript.config_home(env) / "projects").glob(f"*/{session}.jsonl"))
        return list(transcript.project_folder(env, cwd).glob("*.jsonl"))
    except (GateError, OSError):
        return []


def stamps(places: Sequence[Path]) -> dict[Path, int]:
    """Return when each was written last."""
    found = {}
    for place in places:
        try:
            found[place] = place.stat().st_mtime_ns
        except OSError:
            continue
    return found
