"""Surfaces: what was missed is caught up with: deadlines, comments that no event told of, questions that nobody was shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...core.model import Gate
from ...core.times import parse_time
from ...errors import GateError
from ...service.deadlines import act
from ...service.desk import Desk
from ...service.listing import summaries
from ...service.publishing import publish, remote_of
from ...service.reading import find_gate
from ...service.syncing import sync
from . import telling
from .accept import Accepted, Case, accept_comment, answered_by
from .forge import Comment, Forge, Thread
from .posting import Board, load_board, post_once, post_status, show
from .proof import doubt
from .replies import may_answer
from .threads import Pulls, thread_of

PATIENCE = 600


@dataclass
class Swept:
    """What was found and done. `resume`: gates whose answer is proven and not acted on yet; `doubts`: why others are not."""

    accepted: list[Accepted] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    resume: list[str] = field(default_factory=list)
    doubts: dict[str, str] = field(default_factory=dict)
    trouble: list[str] = field(default_factory=list)


def sweep(desk: Desk, forge: Forge) -> Swept:
    """Everything once. Trouble with one gate or thread is no other one's."""
    done = Swept()
    if remote_of(desk) is not None:
        sync(desk)
    threads: dict[Thread, list[Gate]] = {}
    pulls = Pulls(forge)
    for gate in in_order(desk, done):
        try:
            thread = thread_of(desk, forge, gate, pulls)
        except GateError as trouble:
            done.trouble.append(f"gate {gate.id}: {trouble.message}")
            continue
        if thread is not None:
            threads.setdefault(thread, []).append(gate)
    for thread, gates in threads.items():
        try:
            sweep_thread(desk, forge, gates, load_board(forge, thread), done)
        except GateError as trouble:
            done.trouble.append(f"thread {thread}: {trouble.message}")
    places = {gate.id: thread for thread, gates in threads.items() for gate in gates}
    find_answered(desk, forge, places, done)
    return done


def in_order(desk: Desk, done: Swept) -> list[Gate]:
    """Every open gate, after what its deadline calls for."""
    found = []
    for summary in sorted(summaries(desk), key=lambda one: (one.at, one.id)):
        try:
            before = desk.records.load(summary.id, summary.tip)
            after = act(desk, before)
            if after.tip != before.tip:
                after = publish(desk, after).gate
            found.append(after)
        except GateError as trouble:
            done.trouble.append(f"gate {summary.id}: {trouble.message}")
    return found


def sweep_thread(desk: Desk, forge: Forge, gates: Sequence[Gate], board: Board, done: Swept) -> None:
    """The comments of one thread that were not heard, then ours brought up to date."""
    for comment in missed(desk, forge, board):
        accepted = accept_comment(desk, forge, comment.number, board, on_commit=bool(comment.commit))
        if accepted.outcome not in ("ignored", "again"):
            done.accepted.append(accepted)
        board = load_board(forge, board.thread)
    for gate in gates:
        now = find_gate(desk, gate.id).gate
        if now.closed and gate.id not in board.marks:
            continue  # it was never shown here, or somebody does not want to see it any more
        before, board = board, show(desk, forge, now, board)
        if board is not before:
            done.shown.append(gate.id)
    post_status(desk, forge, board)


def missed(desk: Desk, forge: Forge, board: Board) -> list[Comment]:
    """Comments of people that may answer what still waits, and that nothing was said to yet."""
    found = []
    ours = [one for one in board.comments if one.author.login == board.ours]
    for comment in board.comments:
        case = Case(desk, forge, board, comment)
        if comment.by_program or not may_answer(comment.body) or telling.was_told(comment, ours):
            continue
        if case.waiting and not any(is_taken(desk, gate, comment) for gate in board.marks):
            found.append(comment)
    return found


def is_taken(desk: Desk, gate: str, comment: Comment) -> bool:
    try:
        return answered_by(find_gate(desk, gate).gate, comment)
    except GateError:
        return False


def find_answered(desk: Desk, forge: Forge, places: Mapping[str, Thread], done: Swept) -> None:
    for summary in summaries(desk):
        if summary.state not in ("answered", "expired"):
            continue
        try:
            gate = desk.records.load(summary.id, summary.tip)
            if not gate.actionable or gate.opened.delivery != "resume":
                continue
            why = doubt(desk, forge, gate)
            if why and gate.id in places:
                say_doubt(desk, forge, gate, why, places[gate.id])
        except GateError as trouble:
            why = trouble.message
        if why:
            done.doubts[summary.id] = why
        else:
            done.resume.append(summary.id)


def say_doubt(desk: Desk, forge: Forge, gate: Gate, why: str, thread: Thread) -> None:
    """On the thread, once: people would wait for an agent that nobody starts. Who has just answered in a terminal may be at it."""
    if gate.answer is None:
        return
    said = gate.answer.answer
    if said.via != forge.name and parse_time(desk.now) - parse_time(said.at) < PATIENCE:
        return
    board = load_board(forge, thread)
    note = telling.not_acted_on(gate.id, gate.answer.commit, why)
    if not board.says(note.mark):
        post_once(forge, board, note.body)
