"""Gates: many gates at once, from what their tips' trailers say. No record is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..context import Desk
from ..context.targets import all_summaries, pays
from ..document import dataclass
from ..errors import GateError
from ..model import parse_trailers, run_status, same_person
from ..record import Summary, by_pressure, summary_of
from ..store.git.refs import LEASES, OPEN, RUNS

if TYPE_CHECKING:
    from pathlib import Path

    from ..store.git import Repository

NEEDS_A_PERSON = ("awaiting", "failed", "stalled")
MOST_LOOKED_INTO = 50
RECENT = 7 * 86400.0
ACTED_ON = ("answered", "resuming", "expired")


@dataclass(frozen=True)
class Filter:
    """Filter of a list of gates; with nothing set it keeps those that need a person."""

    all: bool = False
    states: tuple[str, ...] = ()
    type: str | None = None
    branch: str | None = None
    pull_request: int | None = None
    mine: str | None = None
    asked_by: str | None = None

    def keeps(self, summary: Summary) -> bool:
        return (
            ((self.all and not self.states) or summary.state in (self.states or NEEDS_A_PERSON))
            and (self.type is None or self.type in summary.type.split(","))
            and (self.branch is None or summary.branch == self.branch)
            and (self.pull_request is None or summary.pull_request == str(self.pull_request))
            and (self.mine is None or is_meant_for(summary, self.mine))
            and (self.asked_by is None or self.asked_by.lower() in f"{summary.agent} {summary.by}".lower())
        )


def is_meant_for(summary: Summary, person: str) -> bool:
    """Return whether the gate is for anybody, or names this person by name, address or `@login`."""
    if not summary.to:
        return True
    name, _, rest = person.partition(" <")
    known = {name.lower(), rest.rstrip(">").lower(), rest.partition("@")[0].lower()}
    words = [word.strip() for word in summary.to.split(",")]
    # Whose key it is, the policy or git's configuration knows.
    return any(("@" not in word and ":" in word) or word.lstrip("@").lower() in known for word in words)


def list_gates(desk: Desk, chosen: Filter, *, begin: bool = True) -> list[Summary]:
    """The gates that a list shows, most pressing first; a deadline that has passed is acted on first. `begin`: see `all_summaries`."""
    now = desk.now
    found, every = (
        [],
        [
            settled_summary(desk, summary) if summary.deadline and overdue(summary, now) else summary
            for summary in all_summaries(desk, begin=begin)
        ],
    )
    if desk.heard:
        look_again(desk, every)
    for summary in every:
        acted_on = summary.state in ACTED_ON and not chosen.states
        current = with_stall(desk, summary) if acted_on else summary
        if chosen.keeps(current) or (current.state == "broken" and not chosen.states):
            found.append(current)
    pressing = by_pressure(found)
    if not any(one.later for one in found):
        return pressing
    return sorted(pressing, key=lambda one: one.later > now)  # what was put aside comes behind the others


def runs_here(desk: Desk) -> list[Mapping[str, str]]:
    """Return for each run of a flow in this clone its last event's message, and `At`, the time of that."""
    if not desk.refs.beginning(RUNS):
        return []
    form = "--format=%(refname)%00%(committerdate:unix)%00%(contents)%00"
    parts = desk.repo.git.out("for-each-ref", form, RUNS).decode("utf-8", "replace").split("\0")
    return [
        {**(parse_trailers(message) or {}), "Run": ref.strip().removeprefix(RUNS), "At": at}
        for ref, at, message in zip(parts[::3], parts[1::3], parts[2::3], strict=False)
    ]


def due_runs(desk: Desk) -> list[str]:
    """The runs that slept until now, or were sent what they wait for."""
    now = desk.now
    return [said["Run"] for said in runs_here(desk) if said.get("Wakes") and said["Wakes"] <= now]


def troubled_runs(desk: Desk) -> dict[str, int]:
    """Count by status the runs of the last week that came to no good end, or to none here."""
    counts: dict[str, int] = {}
    for said in runs_here(desk):
        if said.get("Parent"):
            continue  # what came of it is told of the run that has called it
        status = run_status(said.get("State", ""), said.get("Reason", ""))
        if status in ("stuck", "failed", "stalled") and float(said["At"] or 0) > desk.clock() - RECENT:
            counts[status] = counts.get(status, 0) + 1
    return counts


def look_again(desk: Desk, every: Sequence[Summary]) -> None:
    """Check the leases of running gates against the shared repository if that was just read, so that a list also shows
    whether their runners still work.
    """
    running = [summary for summary in every if summary.state == "resuming"]
    if running:
        from .leases import look_at_leases

        look_at_leases(desk, running, within=desk.heard)


def own_word_last(desk: Desk, found: Sequence[Summary]) -> list[Summary]:
    """Return the gates with those last that this person has answered and that wait for others; those say how many
    answers are missing.

    Only few records are read for it: the list does not show beforehand which gates need several people to agree.
    """
    me, looked, mine = desk.settings.identity(), 0, []
    for place, summary in enumerate(found):
        if summary.state == "awaiting" and summary.event != "opened" and me and looked < MOST_LOOKED_INTO:
            looked += 1
            missing = missing_beside(desk, summary, me)
            if missing:
                mine.append((place, summary._replace(outcome=f"you answered; {missing} more needed")))
    places = dict(mine)
    return [one for place, one in enumerate(found) if place not in places] + [one for _, one in mine]


def missing_beside(desk: Desk, summary: Summary, me: str) -> int:
    """Return how many agreeing answers are missing where this person has given theirs; 0 where they have not, or the
    record is broken.
    """
    try:
        gate = desk.records.load(summary.id, summary.tip)
    except GateError:
        return 0  # it is broken, and they have to see it
    if gate.state != "awaiting" or not any(same_person(vote.answer.by, me) for vote in gate.votes):
        return 0
    return gate.opened.quorum - max(map(len, gate.tally.alike.values()), default=0)


def with_stall(desk: Desk, summary: Summary) -> Summary:
    """A gate that is to be acted on; `stalled` where whoever did so is gone or nobody begins, and a person is needed."""
    from .leases import may_stall, stalled

    return summary._replace(state="stalled") if may_stall(summary) and stalled(desk, summary) else summary


def overdue(summary: Summary, now: str) -> bool:
    """RFC 3339 in UTC compares as text."""
    return summary.state == "awaiting" and bool(summary.deadline) and summary.deadline <= now


def settled_summary(desk: Desk, summary: Summary) -> Summary:
    """The summary of a gate whose deadline passed, after acting on it. One that cannot be acted on stays as it is."""
    from .recording import act

    try:
        gate = act(desk, desk.records.load(summary.id, summary.tip))
    except GateError:
        return summary
    return last_summary(desk, gate.id, gate.tip)


def archived(desk: Desk, chosen: Filter) -> list[Summary]:
    """The gates of the archive that a list of everything shows: their last commits carry the same trailers."""
    from .history import archived_tips

    still_open = desk.refs.under(OPEN)  # a fold that was cut short has archived a gate and not yet closed it
    tips = [(gate, tip) for gate, tip in archived_tips(desk) if OPEN + gate not in still_open]
    if pays(len(tips)):
        from ..store.index import archived_summaries

        found = archived_summaries(desk.index, tips, lambda gate, tip: last_summary(desk, gate, tip))
    else:
        found = [last_summary(desk, gate, tip) for gate, tip in tips]
    return by_pressure([summary for summary in found if chosen.keeps(summary)])


def last_summary(desk: Desk, gate: str, tip: str) -> Summary:
    return summary_of(gate, tip, desk.records.commit(tip).message)


def by_branch(found: Sequence[Summary]) -> dict[str, list[Summary]]:
    """Group gates by the branch of their work, for the tree."""
    tree: dict[str, list[Summary]] = {}
    for summary in found:
        tree.setdefault(summary.branch, []).append(summary)
    return tree


def fingerprint(repo: Repository) -> tuple[int, ...]:
    """Differs as soon as a ref of ours has moved or an agent has asked here: no process is started to see that."""
    top = repo.common_dir
    watched = [top / OPEN, top / RUNS, top / LEASES, top / "packed-refs", top / "reftable" / "tables.list"]
    return tuple(map(changed_at, [*watched, repo.state_dir / "asked.jsonl", repo.state_dir / "places"]))


def changed_at(place: Path) -> int:
    try:
        return place.stat().st_mtime_ns
    except OSError:
        return 0
