"""Surfaces: replies that no event told of, or that an event tells of late: which ones nothing was said to, and in which order."""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from ...acts.reading import find_gate
from ...context.desk import Desk
from ...context.find import summaries
from ...errors import BadAnswer, GateError
from ...gates.deadlines import judged_at
from .accept import Accepted, accept_comment, is_meant, is_taken, shown_before
from .hosts.events import final, nobodys
from .hosts.forge import Comment, Forge
from .hosts.web import ForgeFailed
from .replies.nearly import Near
from .replies.replies import may_answer, parse_reply
from .thread import telling
from .thread.posting import Board, is_waiting, load_board
from .thread.threads import thread_of


def missed(desk: Desk, board: Board) -> list[Comment]:
    """Comments of people that may be replies to what was asked here, and that nothing was said to yet."""
    found = [comment for comment in board.comments if is_missed(desk, board, comment)]
    return sorted(
        found, key=lambda one: is_near(one, board)
    )  # last, so that a stranger's real reply is heard


def is_missed(desk: Desk, board: Board, comment: Comment) -> bool:
    if comment.by_program or not may_answer(comment.body) or telling.was_told(comment, board.own):
        return False
    asked = shown_before(board, comment)
    try:
        said = parse_reply(comment.body, asked)
    except Near as talk:
        about = talk.meant([gate for gate in asked if is_waiting(desk, gate)])
        return bool(about) and (talk.command or not telling.was_hinted(comment, about[0], board.own))
    except BadAnswer:  # several at once, which a gate that waits no more has no word for
        return any(is_waiting(desk, gate) for gate in asked)
    if said is None or not is_meant(desk, said, asked):
        return False
    return not any(is_known(desk, gate, comment) for gate in {*board.marks, said.gate or ""} if gate)


def is_near(comment: Comment, board: Board) -> bool:
    """Whether it may be a reply, and mere talk: then a stranger hears nothing of it."""
    try:
        parse_reply(comment.body, shown_before(board, comment))
    except BadAnswer as unclear:
        return isinstance(unclear, Near)
    return False


def missed_elsewhere(desk: Desk, board: Board, waiting: Collection[str]) -> list[Comment]:
    """Those of a thread without a question that name one which waits; whatever else looks like a name there is left alone."""
    return [one for one in missed(desk, board) if gate_in_comment(one, board) in waiting]


def gate_in_comment(comment: Comment, board: Board) -> str:
    try:
        said = parse_reply(comment.body, shown_before(board, comment))
    except BadAnswer:
        return ""
    return (said.gate if said is not None else None) or ""


def is_known(desk: Desk, gate: str, comment: Comment) -> bool:
    """Whether its record has it; one that cannot be read keeps nobody from being heard."""
    with contextlib.suppress(GateError):
        return is_taken(desk, gate, comment)
    return False


def hear(desk: Desk, forge: Forge, number: int, *, on_commit: bool = False) -> list[Accepted]:
    """One comment that an event told of, the last; before it what was written earlier and not heard yet. Events come in any
    order, and of two answers the one that was written first counts.
    """
    done: list[Accepted] = []
    with judged_at(desk):
        try:
            comment = forge.fetch_comment(number, on_commit=on_commit)
            if comment is None or nobodys(comment):
                return [Accepted("ignored", nobodys(comment))]
            board: Board | None = hear_earlier(desk, forge, comment, done)
        except ForgeFailed as refused:
            if not final(refused, desk.settings.env):
                raise
            board = None
        return [*done, accept(desk, forge, number, board, on_commit=on_commit)]


def hear_earlier(desk: Desk, forge: Forge, comment: Comment, done: list[Accepted]) -> Board:
    """What becomes of the others, into `done`; and the comment's thread as it is then. They are heard while a gate waits to
    which it makes a difference: where that is over, their own events and sweeps say so, and of twenty at once no job hears all.
    """
    board = load_board(forge, comment.thread)
    home = home_of(desk, forge, gate_in_comment(comment, board), board)
    boards, stakes = {one.thread: one for one in (board, home)}, at_stake(desk, board, comment)
    found = [
        one
        for each in boards.values()
        for one in missed(desk, each)
        if comment_order(one) < comment_order(comment)
    ]
    strangers: set[int] = set()  # told once, however much they wrote
    for one in sorted(found, key=comment_order):
        if not any(is_waiting(desk, gate) for gate in stakes):
            break
        if one.author.number in strangers:
            continue
        done.append(accept(desk, forge, one.number, boards[one.thread], on_commit=bool(one.commit)))
        boards = {thread: load_board(forge, thread) for thread in boards}
        if done[-1].stranger:
            strangers.add(one.author.number)
    return boards[comment.thread]


def comment_order(comment: Comment) -> tuple[str, int]:
    """In this order."""
    return comment.created, comment.number


def at_stake(desk: Desk, board: Board, comment: Comment) -> set[str]:
    """The gate that a comment names, else all that it may mean; and those here whose deadline has passed: whoever hears a later
    comment first would find them over.
    """
    gate = gate_in_comment(comment, board)
    return {*([gate] if gate else shown_before(board, comment)), *(overdue(desk) & set(board.marks))}


def home_of(desk: Desk, forge: Forge, gate: str, board: Board) -> Board:
    """Where the gate is shown that is meant: other answers to it stand there, though this one stands elsewhere."""
    if not gate or gate in board.marks or not is_waiting(desk, gate):
        return board
    thread = thread_of(desk, forge, find_gate(desk, gate).gate)
    return board if thread is None or thread == board.thread else load_board(forge, thread)


def accept(desk: Desk, forge: Forge, number: int, board: Board | None, *, on_commit: bool) -> Accepted:
    """One comment; `untold` where its author was to hear something and nothing can ever be said there."""
    try:
        return accept_comment(desk, forge, number, board, on_commit=on_commit)
    except ForgeFailed as refused:
        why = final(refused, desk.settings.env)
        if not why:
            raise
        return Accepted("untold", why)


def overdue(desk: Desk) -> set[str]:
    """The gates that wait although their deadline has passed."""
    waiting = [one for one in summaries(desk) if one.state == "awaiting"]
    return {one.id for one in waiting if one.deadline and one.deadline <= desk.now}
