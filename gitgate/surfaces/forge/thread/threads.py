"""Surfaces: where a gate is shown: its pull request, that of its branch or its commit, else an issue or its commit, by setting."""

from __future__ import annotations

from dataclasses import dataclass, field

from ....context.desk import Desk
from ....context.remotes import remote_of
from ....model.gate import Gate
from ....model.people import is_robot
from ....resumption.place import Course
from ....sharing.branches import tip_there
from ..hosts.events import MOST_NUMBER
from ..hosts.forge import Forge, PullRequest, Thread
from .posting import Board, load_board

MOST_LOOKED_AT = 5  # so many pull requests with one commit


@dataclass
class Pulls:
    """What the forge said of pull requests, remembered for as long as one look at everything takes."""

    forge: Forge
    listed: list[PullRequest] | None = None
    """All open ones, where somebody asked for them."""
    branches: dict[tuple[str, bool], list[PullRequest]] = field(default_factory=dict)
    commits: dict[str, list[PullRequest]] = field(default_factory=dict)
    boards: dict[Thread, Board] = field(default_factory=dict)
    there: dict[int, bool] = field(default_factory=dict)

    def has(self, number: int) -> bool:
        """Whether that is a pull request's."""
        if any(one.number == number for one in self.listed or []):
            return True
        if number not in self.there:
            self.there[number] = self.forge.fetch_pull_request(number) is not None
        return self.there[number]

    def of_branch(self, branch: str, *, closed: bool = False) -> list[PullRequest]:
        if self.listed is not None and not closed:
            return [one for one in self.listed if one.branch == branch and not one.foreign]
        if (branch, closed) not in self.branches:
            self.branches[branch, closed] = self.forge.find_pull_requests(branch, closed=closed)
        return self.branches[branch, closed]

    def board(self, thread: Thread) -> Board:
        """A thread's comments, listed once however many gates are looked for there; for as long as nothing is said."""
        if thread not in self.boards:
            self.boards[thread] = load_board(self.forge, thread)
        return self.boards[thread]

    def of_commit(self, commit: str) -> list[PullRequest]:
        """Those whose head it is; else those that bring it. Not a fork's, which may bring any commit that its owner saw."""
        if commit not in self.commits:
            found = [one for one in self.forge.find_pull_requests_with(commit) if not one.foreign]
            self.commits[commit] = [one for one in found if one.head == commit] or found
        return self.commits[commit]


def thread_of(desk: Desk, forge: Forge, gate: Gate, pulls: Pulls | None = None) -> Thread | None:
    """Where the gate is, or is to be, shown; None where no pull request is open and no setting names another place.

    What the record names was asked in a job of that pull request; but whoever can push may name one that is nowhere.
    """
    known = pulls or Pulls(forge)
    number = gate.opened.config.get("pull_request")
    if isinstance(number, int) and 0 < number < MOST_NUMBER and known.has(number):
        return number
    found = of_work(known, gate)
    if found is not None:
        return found.number
    shown = shown_on_closed(known, gate)
    if shown is not None:
        return shown
    if desk.settings.number("forgeIssue"):
        return desk.settings.number("forgeIssue")
    return gate.opened.work.base if desk.settings.flag("forgeCommit") else None


def of_work(pulls: Pulls, gate: Gate) -> PullRequest | None:
    """The open one of the gate's branch; else the only one that brings the commit that the agent began at, or of several the
    one that shows it already: its branch may have another name by now.
    """
    work = gate.opened.work
    found = pulls.of_branch(work.branch) if work.branch else []
    if found:
        return found[0]
    bringing = pulls.of_commit(work.base) if work.base else []
    if len(bringing) > 1:
        bringing = [one for one in bringing[:MOST_LOOKED_AT] if gate.id in pulls.board(one.number).marks]
    return bringing[0] if len(bringing) == 1 else None


def shown_on_closed(pulls: Pulls, gate: Gate) -> int | None:
    """A pull request that was closed or merged while the gate waits goes on showing it; a new gate does not begin there."""
    branch = gate.opened.work.branch
    found = pulls.of_branch(branch, closed=True) if branch else []
    for pull in found[:1]:
        if gate.id in pulls.board(pull.number).marks:
            return pull.number
    return None


def course_of(desk: Desk, forge: Forge, gate: Gate) -> Course:
    """Where the agent's commits go now: its branch, or what its pull request has in place of it. One that was deleted is not
    made again, while one that was in the asker's clone alone is made now.
    """
    work, remote = gate.opened.work, remote_of(desk)
    if not work.branch or remote is None:
        return Course(joins=True)
    thread = thread_of(desk, forge, gate)
    pull = forge.fetch_pull_request(thread) if isinstance(thread, int) else None
    ended = (
        "" if pull is None or pull.open else f"its pull request was {'merged' if pull.merged else 'closed'}"
    )
    if tip_there(desk, remote, work.branch) is not None:
        return Course(work.branch, note=f"{ended} meanwhile" if ended else "", joins=True)
    if not was_there(gate):
        return Course(work.branch, joins=True)
    if (
        pull is not None
        and pull.open
        and not pull.foreign
        and tip_there(desk, remote, pull.branch) is not None
    ):
        return Course(pull.branch, joins=True)
    and_ended = f", and {ended}" if ended else ""
    return Course(work.branch, f"branch {work.branch} was deleted meanwhile{and_ended}", joins=True)


def was_there(gate: Gate) -> bool:
    """Whether the remote had the branch: the asker's clone knew it there, or it was a job's, which has it from there."""
    asked = gate.opened.asked
    return gate.opened.work.shared or bool(asked.logins) or is_robot(asked.by)
