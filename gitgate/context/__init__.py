"""Context: the desk that every verb works at. Repository, settings, person and clock are handed in, once; and whether the person is an
agent, by the processes above this one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .. import config, text
from ..config import Settings
from ..document import dataclass, field, replace
from ..errors import Failure, NotAllowed, Usage
from ..store.git import Repository, begin_config, begin_discovery, git_at, parse_config, repository_told
from ..store.git.refs import Refs

if TYPE_CHECKING:
    from ..store.git import Piped, Started
    from ..store.index import Index
    from ..store.records import Records

# The desk that every verb works at. Repository, settings, person and clock are handed in, once.


@dataclass(frozen=False)
class Desk:
    """One repository, one person, one clock."""

    repo: Repository
    settings: Settings
    refs: Refs
    clock: Callable[[], float]
    bulk: bool
    entropy: Callable[[int], str] = lambda size: os.urandom(size).hex()
    progress: Callable[[str], None] = lambda _words: None
    judged: str = ""
    """The moment that deadlines are judged by, where that is not now: replies that were written before it may not be heard yet."""
    heard: float = 0.0
    """The shared repository has answered this command, and may be asked more: so many seconds it has for that."""
    hosts: dict[str, str] = field(default_factory=dict, repr=False)
    """What ssh means by names of hosts. To look one up may run what the person's own configuration of ssh names: once."""
    reader: Piped | None = field(default=None, repr=False)
    told: list[str] = field(default_factory=list, repr=False)
    """What was not as it should be, and is no reason to fail: for whoever reads along."""
    _above: list[Process] = field(default_factory=list, repr=False)
    _records: Records | None = field(default=None, repr=False)
    _index: Index | None = field(default=None, repr=False)

    @property
    def records(self) -> Records:
        """Imported at first need: a list needs none of them."""
        if self._records is None:
            from ..store.git.objects import open_objects
            from ..store.records import Records

            reader, self.reader = self.reader, None
            self._records = Records(self.repo, open_objects(self.repo, bulk=self.bulk, reader=reader))
        return self._records

    @property
    def index(self) -> Index:
        """Imported at first need: it costs more than it saves where there are few gates."""
        if self._index is None:
            from ..store.index import Index

            self._index = Index(self.repo.index, self.repo.zero)
        return self._index

    def processes_above(self) -> list[Process]:
        """Those that started this one, the nearest first: looked at once, and again where the nearest is gone."""
        first = os.getppid()
        if not self._above or self._above[0].pid != first:
            self._above = list(above(first))
        return self._above

    def work_in_bulk(self) -> None:
        """There is more to read than it costs to import pygit2."""
        self.close()
        self.bulk = True

    def leave_to_other_process(self) -> None:
        """What reads objects belongs to the process that this one was made from: here another is begun."""
        self._records, self.reader = None, None

    def close(self) -> None:
        """End what reads objects, and write what was learnt of many; whoever reads more begins anew."""
        if self._records is not None:
            self._records.objects.close()
            self._records = None
        if self._index is not None and (trouble := self._index.close()):
            self.told.append(trouble)

    @property
    def now(self) -> str:
        return text.format_time(self.clock())

    @property
    def at(self) -> int:
        return int(self.clock())

    @property
    def network_timeout(self) -> int:
        """Seconds that a remote has for its answer."""
        return self.settings.seconds("networkTimeout") or 60

    def person(self) -> str:
        """Who is at this machine; an answer in nobody's name is none."""
        who = self.settings.identity()
        if not who:
            raise Failure(
                "git does not know who you are, and an answer needs a name",
                hint=INTRODUCTION,
            )
        return who

    def refuse_agents(self, verb: str) -> None:
        """An agent never answers, stops or joins a gate: its shell has the person's git identity, not their judgement."""
        told = self.agent_here()
        if told:
            raise NotAllowed(
                f"`git gate {verb}` is for people, and this is an agent's process ({told})",
                hint="leave it to the person; an agent asks with: git gate ask, and reads with: git gate check ID",
            )

    def agent_here(self) -> str:
        """What tells that this is an agent's process; empty when nothing does."""
        marker = self.agents_mark()
        return f"{marker} is set" if marker else agent_above()

    def agents_mark(self) -> str:
        """The variable that an agent's program set in our environment, if one did."""
        from ..agents import mark_in

        return mark_in(self.settings.env)

    def tip(self, ref: str) -> str | None:
        """From the process that reads objects: the next thing that is asked is nearly always the commit there."""
        if self.refs.lacks(ref):
            return None
        return self.records.objects.tip(ref) or self.refs.get(ref)

    def tracked(self, remote: str, gate: str) -> str | None:
        from ..store.remote import tracking_base

        return self.tip(f"{tracking_base(remote)}open/{gate}")


INTRODUCTION = 'git config --global user.name "Your Name" && git config --global user.email you@example.com'


def open_desk(
    start: Path,
    env: Mapping[str, str],
    *,
    flags: Mapping[str, str] | None = None,
    bulk: bool = False,
    clock: Callable[[], float] = time.time,
    progress: Callable[[str], None] | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Desk:
    """`meanwhile` is done while git says where the repository is."""
    if config.may_hide_git(env):
        from ..agents import seen_by_git

        env = seen_by_git(env)
    git = git_at(start, env)
    begun = [begin_config(git)]
    try:
        begun.append(begin_discovery(git))  # Two questions to git, answered at the same time.
        if meanwhile is not None:
            meanwhile()
        told, found = (one.result() for one in begun)
    finally:
        for one in begun:
            one.close()
    repo = replace(repository_told(found, start, env), configured=parse_config(told.out))
    known = last_values(repo.configured)
    desk = Desk(repo, config.load_settings(env, known, repo.top, flags), Refs(repo), clock, bulk)
    if progress is not None:
        desk.progress = progress
    return desk


def machine_settings(env: Mapping[str, str]) -> Settings:
    """What this machine and its person have set, outside of any repository."""
    return config.load_settings(env, read_git_config(begin_config(git_at(Path("/"), env))), None)


def read_git_config(begun: Started) -> dict[str, str]:
    """Every setting of git's, the last one winning, as git itself reads them."""
    return last_values(parse_config(begun.result().out))


def last_values(configured: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {key: values[-1] for key, values in configured.items()}


def check_choice(name: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise Usage(f"{name} is {value!r}; expected one of {', '.join(allowed)}")
    return value


# The processes that started this one, and whether an agent is among them. What it clears from its
# children's environment is still in its own, and its name and its command line stay: where the system
# shows them (`/proc`), they are looked at.
#
# Best effort: a process that cuts itself off from its parents, or plain git, is not seen here. What stops
# those are signed answers and the server's rules.


ALL = PROC = Path("/proc")  # of the second only what is above this process is asked
MOST_ABOVE = 64
LONGEST_COMMAND = 65_536


@dataclass(frozen=True)
class Process:
    """One of the processes above: its number, what the system calls it, and its command line."""

    pid: int
    called: str
    words: tuple[str, ...]
    place: Path

    @property
    def agent(self) -> str:
        """The name of the agent's program that it is; empty when it is none."""
        from ..agents import program_of_process

        found = program_of_process(self.called, self.words)
        return found.name if found else ""


def above(pid: int | None = None, proc: Path | None = None) -> Iterator[Process]:
    """This process and those above it, the nearest first, as far as they can be seen."""
    place = PROC if proc is None else proc
    here = os.getpid() if pid is None else pid
    for _ in range(MOST_ABOVE):
        try:
            head, _, tail = (place / str(here) / "stat").read_text("utf-8", "replace").rpartition(")")
        except OSError:
            return
        yield Process(here, head.partition("(")[2], command_line(place / str(here)), place / str(here))
        here = int(tail.split()[1])
        if here <= 1:
            return


def agent_above(pid: int | None = None, proc: Path | None = None) -> str:
    """What tells of an agent among this process and those above it; empty when nothing does."""
    for process in above(pid, proc):
        mark = marker_of(process.place)
        if mark:
            return f"{mark} is set in process {process.pid}, {process.called}"
        if agent := process.agent:
            return f"process {process.pid} is {agent}"
    return ""


def is_agent(pid: int) -> bool:
    """Whether the process of that number is an agent's program."""
    found = next(above(pid, ALL), None)
    return found is not None and bool(found.agent)


def command_line(place: Path) -> tuple[str, ...]:
    try:
        with (place / "cmdline").open("rb") as source:
            said = source.read(LONGEST_COMMAND)
    except OSError:
        return ()
    return tuple(word.decode("utf-8", "replace") for word in said.split(b"\0")[:-1])


def marker_of(place: Path) -> str:
    """The mark in the environment that a process was started with, if it has one and may be read."""
    from ..agents import mark_in

    try:
        said = (place / "environ").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
    pairs = (entry.partition("=") for entry in said.split("\0"))
    return mark_in({name: value for name, _, value in pairs})
