"""Surfaces: from a comment to an answer. What the event says is only where to look: the comment is asked of the forge anew.

A comment that names no gate counts only for a gate whose question was on the thread before it, so that no old approval is
ever taken for an answer to a later question.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...core.model import Answer, Gate
from ...errors import BadAnswer, Conflict, Failure, NotAllowed, Stale, UnknownGate, Usage
from ...service.answering import Manner, respond
from ...service.desk import Desk, split_person
from ...service.publishing import remote_of
from ...service.reading import find_gate, open_gate
from . import telling
from .forge import Author, Comment, Forge
from .posting import Board, bring_up_to_date, is_waiting, load_board, post_once
from .replies import Said, parse, read
from .telling import Note
from .web import ForgeFailed


@dataclass(frozen=True)
class Accepted:
    """What became of a comment: ignored, answered, stopped, again (it was taken before), refused, unclear, late or stale."""

    outcome: str
    words: str
    gate: str = ""


@dataclass(frozen=True)
class Case:
    """One comment before us, on its thread."""

    desk: Desk
    forge: Forge
    board: Board
    comment: Comment

    @property
    def waiting(self) -> list[str]:
        """The gates that a reply without a name may mean."""
        return [gate for gate in self.asked_before if is_waiting(self.desk, gate)]

    @property
    def asked_before(self) -> list[str]:
        marks = self.board.marks.items()
        return [gate for gate, (ours, _) in marks if ours.created <= self.comment.created]


def accept_comment(
    desk: Desk, forge: Forge, number: int, board: Board | None = None, *, on_commit: bool = False
) -> Accepted:
    """One comment, to its end. The gates of this clone are as the remote has them."""
    comment = forge.fetch_comment(number, on_commit=on_commit)
    if comment is None:
        return Accepted("ignored", "the comment is gone")
    if comment.by_program:
        return Accepted("ignored", "a program wrote it")
    case = Case(desk, forge, board or load_board(forge, comment.thread), comment)
    try:
        said = parse(comment.body, list(case.board.marks))
    except BadAnswer as confusing:
        if not case.waiting:
            return Accepted("ignored", "no gate waits in this thread")
        return tell(case, "unclear", telling.unclear(comment, confusing.message, None, case.waiting))
    if said is None or (said.gate is None and not case.asked_before):
        return Accepted("ignored", "it is no reply to a gate")
    return take(case, said)


def take(case: Case, said: Said) -> Accepted:
    """A reply that is meant for us: seen at once, then weighed."""
    chosen = choose(case, said)
    if isinstance(chosen, Accepted):
        return chosen
    with contextlib.suppress(ForgeFailed):  # a courtesy
        case.forge.react(case.comment, "eyes")
    if case.comment.edited:
        return tell(case, "refused", telling.edited(case.comment), chosen)
    if not case.forge.may_write(case.comment.author.login):
        return tell(case, "refused", telling.unpermitted(case.comment, chosen), chosen)
    try:
        gate = open_gate(case.desk, chosen)
    except UnknownGate as unknown:
        return tell(
            case, "unclear", telling.unclear(case.comment, unknown.message, None, case.waiting), chosen
        )
    return give(case, said, gate)


def choose(case: Case, said: Said) -> str | Accepted:
    """The gate that is meant."""
    if said.gate is not None:
        return said.gate
    for gate in case.asked_before:
        if taken_before(case, gate):
            return Accepted("again", f"gate {gate} has this answer already", gate)
    waiting = case.waiting
    if len(waiting) == 1:
        return waiting[0]
    if waiting:
        why = f"{len(waiting)} gates wait here"
        return tell(case, "unclear", telling.unclear(case.comment, why, None, waiting))
    last = case.asked_before[-1]
    return tell(case, "late", telling.too_late(case.comment, ending_of(case.desk, last)), last)


def taken_before(case: Case, gate: str) -> bool:
    with contextlib.suppress(UnknownGate):
        return answered_by(find_gate(case.desk, gate).gate, case.comment)
    return False


def answered_by(gate: Gate, comment: Comment) -> bool:
    """Whether this comment is in the record: counted, as a vote, or late."""
    events = [entry.event for entry in gate.history]
    return any(isinstance(said, Answer) and is_from(said, comment) for said in events)


def is_from(said: Answer, comment: Comment) -> bool:
    """Comments on commits are counted by themselves, so the same number may be another one's elsewhere."""
    return (said.evidence.get("comment"), said.evidence.get("commit", "")) == (comment.number, comment.commit)


def give(case: Case, said: Said, gate: Gate) -> Accepted:
    """Say it to the gate; whatever is wrong with it is told to its author."""
    comment = case.comment
    if answered_by(gate, comment):
        bring_up_to_date(case.desk, case.forge, gate, case.board)
        return Accepted("again", f"gate {gate.id} has this answer already", gate.id)
    try:
        after, outcome, words = stop(case, said, gate) if said.verb == "stop" else answer(case, said, gate)
    except Usage as unfit:  # what no answer, or no document, can be
        why = unfit.message.removeprefix("answer: ")
        return tell(case, "unclear", telling.unclear(comment, why, gate, case.waiting), gate.id)
    except Stale as stale:
        return tell(case, "stale", telling.changed(comment, stale.message), gate.id)
    except NotAllowed as forbidden:
        return tell(case, "refused", telling.refused(comment, forbidden.message), gate.id)
    except Conflict as late:
        return lost(case, gate, late)
    trouble = bring_up_to_date(case.desk, case.forge, after, case.board)
    with contextlib.suppress(ForgeFailed):
        case.forge.react(comment, "+1")
    return Accepted(outcome, "; ".join(part for part in (words, trouble) if part), gate.id)


def lost(case: Case, gate: Gate, late: Conflict) -> Accepted:
    """Somebody was first, unless it was this very comment, delivered twice."""
    now = find_gate(case.desk, gate.id).gate
    if now.answer is not None and is_from(now.answer.answer, case.comment):
        return Accepted("again", f"gate {gate.id} has this answer already", gate.id)
    return tell(case, "late", telling.too_late(case.comment, late.message), gate.id)


def answer(case: Case, said: Said, gate: Gate) -> tuple[Gate, str, str]:
    given, note = read(said, gate)
    manner = Manner(
        note=note,
        via=case.forge.name,
        seen=seen(case, gate),
        push=True if remote_of(case.desk) else None,
        who=person_of(case.forge, case.comment.author),
        evidence=evidence_of(case.comment),
    )
    done = respond(case.desk, gate, given, manner)
    by = case.comment.author.login
    if not done.counted:
        return done.gate, "answered", f"gate {gate.id}: {by}'s answer is one of those that are needed"
    return done.gate, "answered", f"gate {gate.id} {done.answer.verdict} by {by}"


def stop(case: Case, said: Said, gate: Gate) -> tuple[Gate, str, str]:
    from ...service.vouching import Vouched, stop_for

    author = case.comment.author
    who = Vouched(person_of(case.forge, author), author.login, case.forge.name)
    if not said.text:
        raise BadAnswer("/stop needs a reason")
    reason = f"{said.text}\n\n({case.comment.url})"
    push = True if remote_of(case.desk) else None
    done = stop_for(case.desk, gate, who, reason, push=push)
    return done.gate, "stopped", f"gate {gate.id} stopped by {author.login}"


def seen(case: Case, gate: Gate) -> str:
    """The commit that the author had before them: what our comment showed then; else what was asked at first."""
    shown = case.board.marks.get(gate.id)
    if shown is not None and shown[0].updated <= case.comment.created:
        return shown[1].seen
    return gate.history[0].commit


def evidence_of(comment: Comment) -> Mapping[str, object]:
    return {
        "comment": comment.number,
        "url": comment.url,
        "login": comment.author.login,
        "account": comment.author.number,
        "at": comment.created,
        **({"commit": comment.commit} if comment.commit else {}),
    }


def person_of(forge: Forge, author: Author) -> str:
    """As the forge itself writes an account into commits: the number stays when a login is given to somebody else."""
    host = re.sub(r"^https?://([^/:]+).*", r"\1", forge.site)
    login = re.sub(r"[^\w.-]", "", author.login, flags=re.ASCII) or "ghost"
    return f"{login} <{author.number}+{login}@users.noreply.{host}>"


def ending_of(desk: Desk, gate: str) -> str:
    try:
        found = find_gate(desk, gate).gate
    except Failure:
        return f"gate {gate} is over"
    if found.answer is not None:
        by = split_person(found.answer.answer.by) or "a default"
        return f"{by} was first, at {found.answer.answer.at}"
    return f"gate {gate} is {found.state}"


def tell(case: Case, outcome: str, note: Note, gate: str = "") -> Accepted:
    """Say it on the thread, unless it was said before; and mark the comment, so that its author sees it is not overlooked."""
    plain = note.text.partition(": ")[2].split("\n", 1)[0]
    if case.board.says(note.mark):
        return Accepted(outcome, f"{plain} (told before)", gate)
    with contextlib.suppress(ForgeFailed):
        case.forge.react(case.comment, "confused")
    post_once(case.forge, case.board, note.body)
    return Accepted(outcome, plain, gate)
