"""Service: the desk that every verb works at. Repository, settings, person and clock are handed in, once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .. import config
from ..config import Settings
from ..core import ids, times
from ..core.values import dataclass, field
from ..errors import AmbiguousGate, Failure, NotAllowed, UnknownGate, Usage
from ..store.refs import OPEN, Refs
from ..store.repository import Repository, begin_config, discover

if TYPE_CHECKING:
    from ..store.git import Piped, Started
    from ..store.records import Records


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
    _records: Records | None = field(default=None, repr=False)

    @property
    def records(self) -> Records:
        """Imported at first need: a list needs none of them."""
        if self._records is None:
            from ..store.objects import open_objects
            from ..store.records import Records

            reader, self.reader = self.reader, None
            self._records = Records(self.repo, open_objects(self.repo, bulk=self.bulk, reader=reader))
        return self._records

    def work_in_bulk(self) -> None:
        """There is more to read than it costs to import pygit2."""
        self.close()
        self.bulk, self._records = True, None

    def close(self) -> None:
        if self._records is not None:
            self._records.objects.close()

    @property
    def now(self) -> str:
        return times.format_time(self.clock())

    @property
    def at(self) -> int:
        return int(self.clock())

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
        from .ancestry import agent_above

        marker = self.agents_mark()
        return f"{marker} is set" if marker else agent_above()

    def agents_mark(self) -> str:
        """The variable that an agent's program set in our environment, if one did."""
        from ..agents import mark_in

        return mark_in(self.settings.env)

    # finding

    def find(self, given: str | None, *, waiting: str = "waits for an answer") -> tuple[str, str]:
        """(id, tip) of the open gate that `given` names, or of the only one that waits."""
        if given is None:
            return self.only_waiting(waiting)
        word = given.strip().lower()
        if ids.is_id(word):
            return self.one_of(given, [OPEN + word])
        if not ids.is_prefix(word):
            raise UnknownGate(
                f"{given!r} is not a gate's id: they have 10 letters and digits, 4 are enough", hint=LISTING
            )
        return self.one_of(given, self.refs.beginning(OPEN + word))

    def one_of(self, given: str, refs: Iterable[str]) -> tuple[str, str]:
        found = {ref.removeprefix(OPEN): tip for ref in refs if (tip := self.tip(ref)) is not None}
        if not found:
            raise self.unknown(given)
        if len(found) > 1:
            raise AmbiguousGate(
                f"{given} could be {', '.join(sorted(found)[:8])}", hint="type more of the id"
            )
        return found.popitem()

    def tip(self, ref: str) -> str | None:
        """From the process that reads objects: the next thing that is asked is nearly always the commit there."""
        return self.records.objects.tip(ref) or self.refs.get(ref)

    def unknown(self, given: str) -> UnknownGate:
        from .listing import never_synced
        from .publishing import remote_of

        remote = never_synced(self)
        if remote is not None:
            return UnknownGate(
                f"there is no gate {given} here, and this clone has never synced with {remote}", hint=SYNC
            )
        more = f"; {SYNC} fetches those of the remote" if remote_of(self) else ""
        return UnknownGate(
            f"there is no gate {given} here", hint=f"{LISTING} --all shows every gate here{more}"
        )

    def only_waiting(self, what: str) -> tuple[str, str]:
        from .listing import never_synced, summaries

        waiting = [summary for summary in summaries(self) if summary.state == "awaiting"]
        if not waiting:
            remote = never_synced(self)
            if remote is not None:
                raise UnknownGate(
                    f"no gate {what} here, and this clone has never synced with {remote}", hint=SYNC
                )
            raise UnknownGate(f"no gate {what}", hint=LISTING)
        if len(waiting) > 1:
            names = ", ".join(summary.id[:6] for summary in waiting[:8])
            raise AmbiguousGate(
                f"{len(waiting)} gates wait: {names}", hint="name one of them; what each asks: git gate list"
            )
        return waiting[0].id, waiting[0].tip

    def tracked(self, remote: str, gate: str) -> str | None:
        from ..store.remote import tracking_base

        return self.refs.get(f"{tracking_base(remote)}open/{gate}")


LISTING = "git gate list"
INTRODUCTION = 'git config --global user.name "Your Name" && git config --global user.email you@example.com'
SYNC = "git gate sync"


def open_desk(
    start: Path,
    env: Mapping[str, str],
    *,
    flags: Mapping[str, str] | None = None,
    bulk: bool = False,
    clock: Callable[[], float] = time.time,
    progress: Callable[[str], None] | None = None,
) -> Desk:
    if config.may_hide_git(env):
        from ..agents import seen_by_git

        env = seen_by_git(env)
    repo = discover(start, env)
    desk = Desk(repo, config.load(env, read_git_config(repo), repo.top, flags), Refs(repo), clock, bulk)
    if progress is not None:
        desk.progress = progress
    return desk


def read_git_config(repo: Repository, begun: Started | None = None) -> dict[str, str]:
    """Every setting of git's, the last one winning, as git itself reads them."""
    asked = begun or begin_config(repo.git)
    listed = asked.result().out.decode("utf-8", "surrogateescape")
    found: dict[str, str] = {}
    for item in listed.split("\0"):
        key, newline, value = item.partition("\n")
        if key:
            found[key] = value if newline else "true"
    return found


def split_person(who: str) -> str:
    return who.partition(" <")[0]


def check_choice(name: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise Usage(f"{name} is {value!r}; expected one of {', '.join(allowed)}")
    return value
