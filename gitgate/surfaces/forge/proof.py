"""Surfaces: an answer from a terminal, on its way to CI; and whether one that is found there is one that a person gave.

In CI, whoever may push can write one. The proof is the comment itself, asked of the forge anew and read again; or a good
signature; or a person who may write and asked for exactly this answer to be acted on.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...acts import find_gate
from ...context import Desk
from ...errors import BadAnswer, Conflict, Failure, GateError, IllegalEvent, UnknownGate
from ...gates.leases import is_abandoned
from ...model.gate import Answer, Counted, Gate
from ...policy import load_book, ruling
from ...policy.permit import case
from ...questions.answers import read_answer
from ...setup.workflows import ANSWERS
from ...text import parse_time
from . import parse_reply, read_reply, words
from .accept import answered_by, evidence_of, person_of, plain_word, shown_before
from .hosts import COMMIT, DIFF, Comment, Dispatched, Forge
from .hosts.connect import KINDS, find_place, find_token, forge_at, way_to_token
from .posting import Board, load_board

WORDS = {"at": "time"}  # of evidence, where its own name is none
CLOCKS = 300  # seconds by which those of a forge and of whoever hears it may differ


def doubt(desk: Desk, forge: Forge, gate: Gate, vouched: str = "") -> str:
    """Why the answer of this gate is not acted on by itself; empty when it may be."""
    if gate.answer is None:
        return "" if gate.tells_of_expiry else f"nobody has answered gate {gate.id}"
    if gate.defaulted:
        return ""
    for counted in deciding(gate):
        why = against_proof(desk, forge, gate, counted, vouched)
        if why:
            return f"gate {gate.id}: {why}"
    return ""


def deciding(gate: Gate) -> list[Counted]:
    """The answer that counts, and every other that it took."""
    if gate.answer is None:
        return []
    others = [vote for vote in gate.votes if vote.answer.values == gate.answer.answer.values]
    return [gate.answer, *(vote for vote in others if vote.commit != gate.answer.commit)]


def against_proof(desk: Desk, forge: Forge, gate: Gate, counted: Counted, vouched: str) -> str:
    if vouched and vouched in (counted.commit, counted.signed_commit):
        return ""
    if is_signed(desk, counted.signed_commit):
        return ""
    if counted.answer.via == forge.name:
        return against_comment(desk, forge, gate, counted.answer)
    return (
        f"its answer by {counted.answer.via} is not signed by a known key; the one who gave it may start it, unless the "
        f"policy keeps them from answering: git gate github dispatch {gate.id}"
    )


def is_signed(desk: Desk, commit: str) -> bool:
    if not desk.records.commit(commit).signed:
        return False
    from ...policy.permit import verdict_on
    from ...store.git.signatures import GOOD

    verdict = verdict_on(desk, load_book(desk), commit)
    return verdict is not None and verdict.word == GOOD


def against_comment(desk: Desk, forge: Forge, gate: Gate, said: Answer) -> str:
    """What speaks against the comment that an answer names as where it comes from."""
    number = said.evidence.get("comment")
    kind = DIFF if said.evidence.get("review") else COMMIT if said.evidence.get("commit") else ""
    named = isinstance(number, int) and number > 0
    thread = said.evidence.get("thread")
    place = thread if isinstance(thread, int) and not isinstance(thread, bool) else None
    comment = (
        forge.fetch_comment(number, kind=kind, thread=place) if named and isinstance(number, int) else None
    )
    if comment is None:
        return "the comment that it was is not there"
    if comment.by_program:
        return "a program wrote that comment"
    if comment.edited:
        return "the comment was edited afterwards"
    if person_of(forge, comment.author) != said.by:
        return f"the comment is by {comment.author.login}"
    strange = misquoted(forge, said, comment)
    if strange:
        return f"the comment has another {WORDS.get(strange, strange)} than the answer says"
    if parse_time(said.at) + CLOCKS < parse_time(comment.created):
        return "the answer says that it was given before the comment was written"
    if not forge.may_write(comment.author.login):
        return f"{comment.author.login} may not write to this repository"
    return against_words(desk, forge, gate, said, comment)


def misquoted(forge: Forge, said: Answer, comment: Comment) -> str:
    """What the record says otherwise of the comment than the forge, or leaves out: the policy goes by it. Nothing goes by its
    address, which is another one once the repository was renamed.
    """
    told = {"commit": "", "review": "", **evidence_of(forge, comment)}
    del told["url"]
    return next((name for name in told if folded(said.evidence.get(name, "")) != folded(told[name])), "")


def folded(word: object) -> str:
    """Capitals make no other login."""
    return str(word).casefold()


def against_words(desk: Desk, forge: Forge, gate: Gate, said: Answer, comment: Comment) -> str:
    """Whether the comment, read again as it was when it was taken, is this answer to this gate."""
    board = load_board(forge, comment.thread)
    if board.says(words.about(comment)):
        return "the comment was refused, and its author told so"
    try:
        reply = parse_reply(comment.body, shown_before(board, comment))
        reply = reply or plain_word(desk, board, comment, gate)
        if reply is None or reply.verb == "stop":
            return "the comment is no answer"
        if reply.gate not in (None, gate.id):
            return "the comment is about another gate"
        given, note = read_reply(reply, gate)
        values, verdict = read_answer(gate.opened.questions, given)
    except BadAnswer:
        return "the comment says something else"
    if (values, verdict, note.strip()) != (dict(said.values), said.verdict, said.note):
        return "the comment says something else"
    return "" if reply.gate is not None else against_place(desk, board, gate, comment)


def against_place(desk: Desk, board: Board, gate: Gate, comment: Comment) -> str:
    """A comment that names no gate is an answer to what was asked on its thread before it, and to that alone.

    Where the thread is does not matter: a question of ours stands there or does not, whatever became of the pull request.
    """
    if gate.id not in board.marks:
        return "the question does not stand where the comment does"
    if gate.id not in shown_before(board, comment):
        return "the comment is older than the question"
    return "the comment answered another gate" if used_elsewhere(desk, board, gate.id, comment) else ""


def used_elsewhere(desk: Desk, board: Board, gate: str, comment: Comment) -> bool:
    for other in board.marks:
        try:
            if other != gate and answered_by(find_gate(desk, other).gate, comment):
                return True
        except UnknownGate:
            continue
    return False


def against_dispatch(forge: Forge, asked: Dispatched) -> str:
    """Whether the one who asked for it is a person whose word counts."""
    if asked.repository and not forge.is_ours(asked.repository):
        return "it is another repository's event"
    if asked.bot or not asked.login:
        return "a program asked for it, and its word is nobody's"
    if not forge.may_write(asked.login):
        return f"{asked.login} may not write to this repository"
    return ""


def vouched_by(desk: Desk, forge: Forge, asked: Dispatched) -> str:
    """The commit of the answer that whoever dispatched vouches for; empty where their word for it does not count.

    Where the policy wants another's answer than that of whose agent asked, theirs does not: any name may stand in an unsigned one.
    """
    if not asked.gate or against_dispatch(forge, asked):
        return ""
    gate = find_gate(desk, asked.gate).gate
    book = load_book(desk)
    terms = ruling.deciding(book.policies, case(desk, book, gate)) if book.policies else ()
    if all(term.requester_may_answer for term in terms):
        return asked.commit
    why = ruling.against_requester(book.policies, ruling.Who("", login=asked.login), case(desk, book, gate))
    return "" if why else asked.commit


@dataclass(frozen=True)
class Sent:
    """Whether CI was asked to act on an answer: where to watch it, or why not and what else picks it up."""

    url: str = ""
    why: str = ""


def dispatch(desk: Desk, forge: Forge, gate: Gate | None) -> str:
    """Ask CI to act on this answer, or with no gate on whatever is to be done. The commit says which answer is meant.

    A job sees what is shared, so the answer is shared first.
    """
    if gate is None:
        return forge.dispatch("", "")
    refuse_idle(gate)
    gate = shared(desk, gate)
    refuse_idle(gate)
    return forge.dispatch(gate.id, commit_meant(gate))


def commit_meant(gate: Gate) -> str:
    return gate.answer.commit if gate.answer is not None else gate.tip


def may_go_on(desk: Desk, gate: Gate) -> bool:
    """Whether its agent may be started: nobody acts on its answer, or jobs began to and are gone."""
    return gate.actionable or (gate.state == "resuming" and is_abandoned(desk, gate))


def is_retried(gate: Gate, vouched: str) -> bool:
    """Whether a person asks for another attempt, of exactly this answer."""
    return gate.state == "failed" and bool(vouched) and vouched == commit_meant(gate)


def refuse_idle(gate: Gate) -> None:
    hint = f"git gate show {gate.id}"
    if not gate.actionable and gate.state != "failed":
        raise IllegalEvent(f"gate {gate.id} is {gate.state}: nothing is to be resumed", hint=hint)
    if gate.opened.delivery != "resume":
        raise IllegalEvent(
            f"whoever asked gate {gate.id} waits for the answer where it was asked: no job is to go on with it",
            hint=hint,
        )


def shared(desk: Desk, gate: Gate) -> Gate:
    """The gate as the server has it. Whoever dispatches vouches for the answer that they see, not for one that came first."""
    from ...exchange.syncing import publish

    done = publish(desk, gate, push=True)
    if not done.pushed:
        raise Failure(
            f"gate {gate.id} is not shared, so no job finds its answer: {done.reason}", hint="git gate sync"
        )
    ours, theirs = gate.answer, done.gate.answer
    if ours is not None and theirs is not None and ours.answer != theirs.answer:
        raise Conflict(
            f"another answer to gate {gate.id} was shared before this one, and counts",
            hint=f"read it, then ask again: git gate show {gate.id}",
        )
    return done.gate


def after_answer(desk: Desk, gate: Gate) -> Sent | None:
    """What a person who just answered hears of it; None where the remote is no forge, or nobody is to be resumed."""
    place = find_place(desk)
    if place is None or not KINDS[place.kind].jobs or not gate.actionable or gate.opened.delivery != "resume":
        return None
    try:
        token = find_token(desk, place)
        if not token:
            return Sent(
                why=f"no token for {place.host}, so no job was started ({way_to_token(place)}); {picked_up(desk, gate)}"
            )
        return Sent(dispatch(desk, forge_at(place, token, hurried=True), gate))
    except GateError as refused:
        return Sent(why=f"no job was started: {refused.message}; {picked_up(desk, gate)}")


def picked_up(desk: Desk, gate: Gate) -> str:
    """What finds the answer all the same, and when; else who may start it. Jobs take no unsigned commit for a person's word."""
    dispatch = f"git gate github dispatch {gate.id[:6]}"
    if all(is_signed(desk, one.signed_commit) for one in deciding(gate)):
        return f"it is signed, so the next sweep of {ANSWERS} resumes it, by default within half an hour; sooner: {dispatch}"
    commit = f" -f commit={gate.answer.commit}" if gate.answer is not None else ""
    return (
        "it is not signed by a key that the policy knows, so no sweep acts on it by itself; "
        f"later: {dispatch}   or: gh workflow run {ANSWERS} -f gate={gate.id}{commit}"
    )
