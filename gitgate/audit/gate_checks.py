"""Audit: one gate, checked against what its record, its work and its remote say. Writes nothing."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..context.desk import Desk
from ..errors import BrokenRecord, GateError, MissingExtra
from ..model.gate import Answer, Gate, Work
from ..questions.types import type_of
from ..store.git.refs import WORK
from ..store.git.signatures import Verdict

HEADS = "refs/heads/"


@dataclass(frozen=True)
class Problem:
    """Something that does not hold. `commit` is empty where it is about the gate as a whole."""

    gate: str
    commit: str
    kind: str
    words: str

    @property
    def problem(self) -> str:
        """Its words, by the name that they have in JSON."""
        return self.words

    @property
    def line(self) -> str:
        return f"{self.gate} {self.commit[:12] or '-'} {self.words}"


@dataclass
class Verified:
    """What was checked, what is wrong, and what could not be checked here and why (`notes`)."""

    gates: int = 0
    events: int = 0
    runs: int = 0
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    signatures: dict[str, int] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Nothing is wrong; what could not be checked here is not wrong."""
        return not self.problems

    def wrong(self, gate: str, commit: str, kind: str, words: str) -> None:
        self.problems += (Problem(gate, commit, kind, words),)

    def note(self, gate: str, commit: str, kind: str, words: str) -> None:
        self.notes += (Problem(gate, commit, kind, words),)


@dataclass(frozen=True)
class Around:
    """What lies around the gates in this repository, listed once: works, and what a remote had, by gate."""

    host: str
    place: str
    works: Mapping[str, str]
    remote: str | None
    theirs: Mapping[str, str]


def look_around(desk: Desk) -> Around:
    from ..context.remotes import remote_of
    from ..store.remote.remote import tracking_base

    remote = remote_of(desk)
    base = f"{tracking_base(remote)}open/" if remote is not None else ""
    works = {ref.removeprefix(WORK): oid for ref, oid in desk.refs.under(WORK).items()}
    theirs = {ref.removeprefix(base): oid for ref, oid in desk.refs.under(base).items()} if base else {}
    return Around(socket.gethostname(), str(desk.repo.place), works, remote, theirs)


def check_enclosed(desk: Desk, done: Verified, gate: Gate) -> None:
    """What no list and no decision reads: attachments, and forms against their schema."""
    for name in gate.opened.attachments:
        try:
            desk.records.attachment(gate, name)
        except GateError as absent:
            done.wrong(
                gate.id,
                gate.history[0].commit,
                "attachment",
                absent.message.removeprefix(f"gate {gate.id}: "),
            )
    forms = [question for question in gate.opened.questions if type_of(question).has_schema]
    for entry in gate.history:
        if forms and isinstance(entry.event, Answer):
            from ..questions.types import read_value

            for question in forms:
                try:
                    read_value(question, entry.event.values[question.key])
                except MissingExtra as missing:
                    done.note(gate.id, entry.commit, "form", missing.message)
                except GateError as wrong:
                    done.wrong(gate.id, entry.commit, "form", wrong.message)


def check_work(desk: Desk, done: Verified, gate: Gate, around: Around, *, archived: bool) -> None:
    """The work's ref, and base ← staged ← work as the question names them."""
    work, opened = gate.opened.work, gate.history[0].commit
    ref = None if archived else around.works.get(gate.id)
    if ref is not None and ref != work.commit:
        done.wrong(
            gate.id, ref, "work", f"{WORK}{gate.id} is not the work that the question names ({work.commit})"
        )
    if work.commit is None:
        return
    asked = gate.opened.asked
    here = (around.host, around.place) == (asked.host, asked.directory)
    if ref is None and here and not archived:
        done.wrong(
            gate.id, work.commit, "work", f"{WORK}{gate.id} is gone: git may delete the work at any time"
        )
    try:
        wrong = wrong_shape(desk, gate)
    except BrokenRecord:
        done.note(gate.id, work.commit, "work", "its work is not in this repository")
    else:
        if wrong:
            done.wrong(gate.id, opened, "work", wrong)


def is_empty(desk: Desk, work: Work) -> bool:
    """Where nothing was ever committed, nothing is saved as commits that hold nothing."""
    from ..store.work.saved import EMPTY_TREE

    trees = {desk.records.commit(name).tree for name in (work.staged, work.commit) if name}
    return trees <= set(EMPTY_TREE.values())


def wrong_shape(desk: Desk, gate: Gate) -> str:
    work = gate.opened.work
    parents = desk.records.commit(work.commit or "").parents
    if not work.dirty:
        clean = work.base == work.staged == work.commit or (work.base is None and is_empty(desk, work))
        return "" if clean else "it says that nothing was uncommitted, but names other work than its base"
    if parents != (work.staged,):
        return f"its work does not stand on what it says was staged ({(work.staged or 'nothing')[:12]})"
    below = desk.records.commit(work.staged or "").parents
    if work.base is not None and below[:1] != (work.base,):
        return f"what was staged does not stand on the base that it names ({work.base[:12]})"
    return ""


def check_shared(desk: Desk, done: Verified, gate: Gate, around: Around) -> None:
    """Against what the remote had at the last sync: its record has to go on from ours, or ours from its."""
    from ..record.fold import original, reconcile

    remote, theirs = around.remote, around.theirs.get(gate.id)
    if theirs is None or theirs == gate.tip:
        return
    try:
        shared = desk.records.load(gate.id, theirs).history
        plan = reconcile(gate.history, shared)
    except GateError as broken:
        done.wrong(gate.id, theirs, "shared", f"what {remote} has of it is broken: {broken.message}")
        return
    if plan.keep != "remote" or any(entry.commit == gate.tip for entry in shared):
        return
    again = {parent for entry in shared for parent in entry.parents[1:]}
    known = {entry.commit for entry in shared}
    for entry in gate.history:
        if entry.commit in known:
            continue
        if original(entry) in again:
            words = (
                f"{remote} counts it only after something else: that was slipped in before it, or was first"
            )
        else:
            words = f"{remote} has it not: it was dropped there, or both sides went on"
        done.wrong(
            gate.id, entry.commit, "shared", f"{entry.name}: {words}; git gate sync brings them together"
        )


def check_delivered(desk: Desk, done: Verified, gate: Gate, around: Around) -> None:
    """Whether the agent's commits are on the branch that its outcome names: a server may be killed between the two.

    A branch that was deleted, rewritten or squashed has a history of its own, and is not spoken of; nor is one that had them,
    as far as is known here. One that stands where it was may have been put back there elsewhere: so it is no problem, but said.
    """
    said = gate.outcome
    if said is None or not said.branch or not said.commits:
        return
    shared = around.remote if gate.id in around.theirs else None
    made, ref = said.commits[-1], f"refs/remotes/{shared}/{said.branch}" if shared else HEADS + said.branch
    if not stays_behind(desk, gate, desk.refs.get(ref), made) or made in past_of(desk, ref):
        return
    tip = where_now(desk, shared, said.branch) if shared else desk.refs.get(ref)
    if tip is not None and stays_behind(desk, gate, tip, made):
        mend = (
            f"git push {shared} {made}:{HEADS}{said.branch}"
            if shared
            else f"git update-ref {ref} {made} {tip}"
        )
        words = f"{said.branch} is where it was before its outcome, and has not got {made[:12]}; if nobody put it back: {mend}"
        done.note(gate.id, gate.tip, "branch", words)


def stays_behind(desk: Desk, gate: Gate, tip: str | None, made: str) -> bool:
    from ..store.git.commits import is_ancestor

    if tip is None or tip == made:
        return False
    return tip == gate.opened.work.base or is_ancestor(desk.repo.git, tip, made)


def past_of(desk: Desk, ref: str) -> list[str]:
    """Where a branch was, as far as this repository noted it."""
    return desk.repo.git.run("reflog", "show", "--format=%H", ref, check=False).out.decode().split()


def where_now(desk: Desk, remote: str, branch: str) -> str | None:
    """What was fetched last may be old. None also where the remote cannot be asked."""
    from ..store.remote.fetch import ask_tips

    try:
        return ask_tips(desk.repo, remote, [HEADS + branch], timeout=20).get(HEADS + branch)
    except GateError:
        return None
