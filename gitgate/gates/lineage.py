"""Gates: which gate came of which. A resumed agent that asks again opens a gate that names the one it follows.

Such a gate goes on with the branch of the one that it follows, whatever branch its agent was put on meanwhile, and stands on
commits that are as they will be published: they are tied to their decision before it is opened, since a record cannot change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ..context.desk import Desk
from ..document.values import dataclass, replace
from ..errors import GateError
from ..model.gate import Gate, Work
from ..model.states import is_id
from ..record.headline import Summary, by_pressure, summary_of
from ..store.git.refs import OPEN
from ..store.git.repository import Repository

MOST_STEPS = 100
FOLLOWED = "GITGATE_GATE"
SERVED = "gitgate-serves"


@dataclass(frozen=True)
class Stand:
    """Where a runner of this machine put the agent of a gate. `known`: the branches' tips when it was put there."""

    gate: str
    directory: Path
    branch: str | None
    known: tuple[str, ...] = ()
    trusted: bool = False


def took_place(desk: Desk, gate: str) -> Path:
    """The file in which a runner notes where it put the agent."""
    return desk.repo.state_dir / "places" / f"{gate}.json"


def stand_of(desk: Desk, gate: str) -> Stand | None:
    if not is_id(gate):
        return None
    try:
        said = json.loads(took_place(desk, gate).read_text(encoding="utf-8"))
        return Stand(
            gate, Path(said["directory"]), said["branch"], tuple(said["known"]), bool(said["trusted"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def stands_here(desk: Desk) -> Iterator[Stand]:
    """The gates whose agents were put into this very directory: one that asked again may be in it for several."""
    with suppress(OSError):
        for note in sorted((desk.repo.state_dir / "places").glob("*.json")):
            stand = stand_of(desk, note.stem)
            if stand is not None and is_here(desk, stand):
                yield stand


def is_here(desk: Desk, stand: Stand) -> bool:
    return stand.directory.resolve() == desk.repo.place.resolve()


def followed(desk: Desk) -> Gate | None:
    """The gate that this process was resumed for."""
    named = desk.settings.env.get(FOLLOWED, "")
    tip = desk.refs.get(OPEN + named) if is_id(named) else None
    with suppress(GateError):
        return desk.records.load(named, tip) if tip else None
    return None


def tie_commits(desk: Desk) -> None:
    """End the commits that a resumed agent made so far with the trailers of what was decided, before it asks again.

    Best effort: in the middle of a rebase, say, they stay as they are, and so they do when the agent has ended.
    """
    gate = followed(desk)
    stand = stand_of(desk, gate.id) if gate is not None else None
    if gate is None or stand is None or desk.repo.top is None or not is_here(desk, stand):
        return
    from ..questions.prompts import trailers
    from ..store.git import commits
    from ..store.work.snapshot import operation_in

    if operation_in(desk.repo.git_dir) is not None:
        return
    with suppress(GateError):
        made = commits.made_since(desk.repo.git, before(gate, stand.known))
        if made:
            commits.add_trailers(desk.repo.git, made, trailers(gate))


def before(gate: Gate, known: Sequence[str]) -> list[str]:
    """The commits below which an agent made nothing since the answer: the branches, and what its own question stood on."""
    base = gate.opened.work.base
    return [*known, *([base] if base else [])]


def on_its_branch(desk: Desk, work: Work) -> Work:
    """The work of a question as it is recorded: one that follows is on the branch of the gate that it follows, and one in a tree
    that was made for a run on the run's.

    Not where the agent went to another branch itself. One that is on none, as after `git checkout --detach`, went to no other.
    """
    gate = followed(desk)
    stand = stand_of(desk, gate.id) if gate is not None else None
    placed = gate is not None and stand is not None and is_here(desk, stand)
    if gate is not None and stand is not None and placed and work.branch in (stand.branch, None):
        return replace(work, branch=gate.opened.work.branch or work.branch)
    served = served_in(desk.repo)
    if served is not None and served.own == work.branch:
        return replace(work, branch=served.branch or work.branch)
    return work


@dataclass(frozen=True)
class Served:
    """What a working tree is for that was made for a run which did not begin here: what is committed on `own` is for `branch`,
    empty where the run was on none. `began`: where it stood when it was last brought there.
    """

    own: str
    branch: str
    began: str


def note_served(there: Repository, served: Served) -> None:
    """Beside what git keeps of this working tree, so that it goes with it."""
    place = there.git_dir / SERVED
    new = place.with_suffix(".new")
    new.write_text(json.dumps(vars(served)), encoding="utf-8")
    new.replace(place)


def served_in(there: Repository) -> Served | None:
    try:
        return Served(**json.loads((there.git_dir / SERVED).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def followers(desk: Desk, gate: Gate, since: str = "") -> list[Gate]:
    """The gates that the agent of this one opened since it was resumed, and that go on in its stead.

    Not one that it took back itself, nor another program's, which it may have started, nor one whose waiter heard the answer:
    that run went on. Asked `since` a time, where one clock is known to have told both.
    """
    from ..context.targets import summaries

    found: list[Gate] = []
    for one in summaries(desk):
        if one.at and one.at < since:
            continue
        with suppress(GateError):
            later = desk.records.load(one.id, one.tip)
            if later.opened.follows == gate.id and continues_gate(later, gate):
                found.append(later)
    return found


def continues_gate(later: Gate, gate: Gate) -> bool:
    ours, theirs = gate.opened.session, later.opened.session
    if ours is None or theirs is None or ours.agent != theirs.agent or later.state == "withdrawn":
        return False
    return later.opened.delivery == "resume" or (later.opened.delivery == "wait" and not later.closed)


@dataclass(frozen=True)
class Lineage:
    """Gates of a branch, and by gate the one that it follows; `found` has those that are followed, too."""

    found: tuple[Summary, ...]
    follows: dict[str, str]

    def children(self, of: str) -> list[Summary]:
        return [one for one in self.found if self.follows.get(one.id) == of]

    @property
    def first(self) -> list[Summary]:
        """Those that follow none of the others."""
        return [one for one in self.found if one.id not in self.follows]


def families(desk: Desk, branches: dict[str, list[Summary]]) -> dict[str, Lineage]:
    return {branch: family(desk, branch, found) for branch, found in branches.items()}


def family(desk: Desk, branch: str, found: Sequence[Summary]) -> Lineage:
    """With what each of them follows on the same branch, over or not; what is archived is left out."""
    members = {one.id: one for one in found}
    follows: dict[str, str] = {}
    for one in found:
        current = one
        for _ in range(MOST_STEPS):  # who writes records may close a circle; a gate is entered once
            before = predecessor(desk, current)
            if (
                before is None
                or before.branch != branch
                or current.id in follows
                or circular(follows, current.id, before.id)
            ):
                break
            follows[current.id] = before.id
            members.setdefault(before.id, before)
            current = before
    return Lineage(tuple(by_pressure(members.values())), follows)


def circular(follows: dict[str, str], gate: str, before: str) -> bool:
    seen: str | None = before
    while seen is not None and seen != gate:
        seen = follows.get(seen)
    return seen == gate


def predecessor(desk: Desk, one: Summary) -> Summary | None:
    try:
        name = desk.records.load(one.id, one.tip).opened.follows
        tip = desk.refs.get(OPEN + name) if name else None
        return summary_of(name, tip, desk.records.commit(tip).message) if name and tip else None
    except GateError:
        return None
