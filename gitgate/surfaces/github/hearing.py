"""Surfaces: replies that no event told of, or that an event tells of late: which ones nothing was said to, and in which order."""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from ...errors import BadAnswer, GateError
from ...service.deadlines import judged_at
from ...service.desk import Desk
from ...service.listing import summaries
from . import telling
from .accept import Accepted, accept_comment, is_meant, is_taken, shown_before
from .forge import Comment, Forge
from .posting import Board, is_waiting, load_board
from .refusals import final
from .replies import may_answer, parse
from .web import ForgeFailed


def missed(desk: Desk, board: Board) -> list[Comment]:
    """Comments of people that may be replies to what was asked here, and that nothing was said to yet."""
    return [comment for comment in board.comments if is_missed(desk, board, comment)]


def is_missed(desk: Desk, board: Board, comment: Comment) -> bool:
    if comment.by_program or not may_answer(comment.body) or telling.was_told(comment, board.own):
        return False
    asked = shown_before(board, comment)
    try:
        said = parse(comment.body, asked)
    except BadAnswer:  # several at once, which a gate that waits no more has no word for
        return any(is_waiting(desk, gate) for gate in asked)
    if said is None or not is_meant(desk, said, asked):
        return False
    return not any(is_known(desk, gate, comment) for gate in {*board.marks, said.gate or ""} if gate)


def missed_elsewhere(desk: Desk, board: Board, waiting: Collection[str]) -> list[Comment]:
    """Those of a thread without a question that name one which waits; whatever else looks like a name there is left alone."""
    return [one for one in missed(desk, board) if named(one, board) in waiting]


def named(comment: Comment, board: Board) -> str:
    try:
        said = parse(comment.body, shown_before(board, comment))
    except BadAnswer:
        return ""
    return (said.gate if said is not None else None) or ""


def is_known(desk: Desk, gate: str, comment: Comment) -> bool:
    """Whether its record has it; one that cannot be read keeps nobody from being heard."""
    with contextlib.suppress(GateError):
        return is_taken(desk, gate, comment)
    return False


def hear(desk: Desk, forge: Forge, number: int, *, on_commit: bool = False) -> list[Accepted]:
    """One comment that an event told of, the last. What was written before it and not heard comes first, where a deadline has
    passed meanwhile: to this one the gate is over, and to that one it may not be.
    """
    done: list[Accepted] = []
    with judged_at(desk):
        late = overdue(desk)
        comment = forge.fetch_comment(number, on_commit=on_commit) if late else None
        heard = comment is not None and may_answer(comment.body)
        board = load_board(forge, comment.thread) if comment is not None and heard else None
        if comment is not None and board is not None and not late.isdisjoint(board.marks):
            for earlier in missed(desk, board):
                if (earlier.created, earlier.number) < (comment.created, comment.number):
                    done.append(accept(desk, forge, earlier.number, board, on_commit=on_commit))
                    board = load_board(forge, board.thread)
        return [*done, accept(desk, forge, number, board, on_commit=on_commit)]


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
