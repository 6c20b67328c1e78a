"""Policy: how a project configures its agents: as its protected branch has it, not as the branch they work on has.

Whoever pushed that branch may have written hooks, servers and instructions into it. While an agent is in a working tree of
ours, those files stand as they are on the protected branch. They are read only where the machine or the policy says so; what
the project permits and forbids its agents holds either way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ..context import Desk
from ..document import dataclass, replace
from ..errors import Failure, GateError
from ..store.git import Repository
from ..store.git.protected import protected_tip, read_protected
from ..store.work import pinned, printable
from ..store.work import pinned as hiding
from ..store.work.aside import Difference, Files, compare
from . import protected_refs

if TYPE_CHECKING:
    from ..agents.agent import AgentSettings


LISTS = ("allow", "deny", "ask")
SAID = 5  # so many files are named where many are in doubt
# In a folder that configures agents, and yet no configuration: a file there says that an agent needs a person.
SIGNAL = r"(?:^|/)\.agents/signals/[^/]+\.json$"


def permissions(desk: Desk, program: str) -> Mapping[str, list[str]]:
    """Return the project's rules on tools for a program of that name; empty where there are none."""
    from ..agents import adapter

    path = adapter(program).rules_file
    found = read_protected(desk.refs, desk.records.objects, path, protected_refs(desk)) if path else None
    if found is None:
        return {}
    import json

    try:
        said = json.loads(found.data.decode("utf-8-sig"))
        rules = said.get("permissions", {})
        chosen = {name: rules[name] for name in LISTS if rules.get(name)}
    except (ValueError, AttributeError, RecursionError) as wrong:
        raise unreadable(found.source, str(wrong)) from None
    for name, each in chosen.items():
        if not isinstance(each, list) or not all(isinstance(rule, str) for rule in each):
            raise unreadable(found.source, f"permissions.{name} is not a list of texts")
    return chosen


def unreadable(source: str, why: str) -> Failure:
    """Return the error for rules that cannot be read: as nobody knows what they forbid, nothing is started."""
    return Failure(f"{source} cannot be read: {why}", hint="mend it on the protected branch")


@dataclass(frozen=True)
class InForce:
    """Configuration of agents in force where one works.

    `replaced`: files that are as the protected branch has them. `doubt`: why the configuration there cannot be
    relied on. `settings`: git's settings, for whoever works there meanwhile.
    """

    replaced: tuple[str, ...] = ()
    doubt: str = ""
    settings: Sequence[tuple[str, str]] = ()


def configures(path: bytes) -> bool:
    """Return whether agents take settings or instructions from a file of this name, in any folder and in any case: a
    system may not tell `.Claude` from `.claude`.
    """
    import re

    from ..agents import configuration

    name = path.decode("utf-8", "surrogateescape").casefold()
    folders, files = configuration()
    inside = f"/{re.sub(SIGNAL, '', name)}/"
    return name.rpartition("/")[2] in files or any(f"/{folder}/" in inside for folder in folders)


def configuring_files() -> Files:
    """Return the patterns of all files that configure agents, as git matches them."""
    from ..agents import configuration

    folders, files = configuration()
    return Files(
        (
            *(f":(glob,icase)**/{name}" for name in (*files, *folders)),
            *(f":(glob,icase)**/{name}/**" for name in folders),
        ),
        configures,
    )


@contextlib.contextmanager
def in_force(
    desk: Desk,
    there: Repository,
    *,
    ours: bool = True,
    say: Callable[[str], None] = lambda _words: None,
    written: list[str] | None = None,
) -> Iterator[InForce]:
    """Put the protected branch's configuration in force in a working tree of `ours`; a person's own tree is only
    checked.

    `written` gets the files that somebody wrote meanwhile.
    """
    lift(there)
    tip = protected_tip(desk.refs, desk.records.objects, protected_refs(desk))
    if tip is None:
        yield InForce(doubt="no protected branch is here: git gate doctor")
        return
    found = compare(there, tip, configuring_files())
    paths = tuple(printable(path) for path in found.stand)
    if not ours:
        yield InForce(doubt=doubt_of(found, paths))
        return
    try:
        pinned.put_on(there, found.stand)
        if paths:
            say(f"as on the protected branch meanwhile: {', '.join(paths)}")
        yield InForce(paths, doubt_of(found), hiding.git_settings(there))
    finally:
        try:
            for path in lift(there):
                if written is not None:
                    written.append(path)
                say(f"{path} was written meanwhile, and was left so")
        except (GateError, OSError, ValueError) as failed:
            # What the agent did counts nevertheless. The working tree stays, and the next to come here lifts it.
            say(f"the agent's configuration stands as on the protected branch yet: {failed}")


def doubt_of(found: Difference, changed: tuple[str, ...] = ()) -> str:
    """Return why the files there are not the protected branch's as it is today; empty where they are."""
    parts = [*(f"{path} differs" for path in changed), *found.odd]
    more = f", and {len(parts) - SAID} more" if len(parts) > SAID else ""
    return f"{', '.join(parts[:SAID])}{more}" if parts else ""


def without_doubt(settings: AgentSettings, project: InForce) -> AgentSettings:
    """Return the agent's settings, with the project's own only where these are known to be the protected branch's."""
    return replace(settings, project_settings=False, project_servers=False) if project.doubt else settings


def lift(there: Repository) -> tuple[str, ...]:
    """Restore the branch's own files; return those that the agent wrote meanwhile, which stay as they are."""
    return tuple(printable(path) for path in pinned.take_off(there))
