"""Surfaces: from a comment to an answer; and the proof, before an answer is acted on in CI, that it is one that a person gave.

What an event says is only where to look: the comment is asked of the forge anew. One that names no gate counts only for a gate
whose question was on the thread before it, so that no old approval is ever taken for an answer to a later question.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...acts import find_gate, open_gate
from ...acts.answering import Manner, Vouched, respond, stop
from ...context import Desk
from ...context.targets import remote_of
from ...errors import (
    BadAnswer,
    Conflict,
    Failure,
    GateError,
    IllegalEvent,
    NotAllowed,
    Stale,
    UnknownGate,
    Usage,
)
from ...exchange.syncing import publish
from ...gates.leases import is_abandoned
from ...gates.recording import judged_at
from ...model.gate import Answer, Counted, Gate
from ...policy import load_book, ruling
from ...policy.permit import case, verdict_on
from ...questions.answers import read_answer
from ...setup.workflows import ANSWERS
from ...store.git.signatures import GOOD
from ...text import parse_time
from . import Near, ReplySaid, parse_reply, read_reply, word_reply
from . import words as telling
from .hosts import COMMIT, DIFF, NO_REPLY, Comment, Dispatched, Forge, Thread, evidence_of, nobodys, person_of
from .hosts.connect import KINDS, find_place, find_token, forge_at, way_to_token
from .hosts.web import ForgeFailed
from .posting import Board, bring_up_to_date, has_gate, is_waiting, load_board, post_once, thread_of
from .words import ReplyNote


def is_taken(desk: Desk, gate: str, comment: Comment) -> bool:
    """Return whether the gate's record has this comment, as an answer or as the reason why the gate was stopped."""
    with contextlib.suppress(UnknownGate):
        found = find_gate(desk, gate).gate
        return answered_by(found, comment) or ended_by(found, comment)
    return False


def ended_by(gate: Gate, comment: Comment) -> bool:
    return gate.closing is not None and f"({comment.url})" in gate.closing.text


def answered_by(gate: Gate, comment: Comment) -> bool:
    """Return whether this comment is in the record as an answer: the one that counts, a vote, or a late one."""
    events = [entry.event for entry in gate.history]
    return any(isinstance(said, Answer) and is_from(said, comment) for said in events)


def is_from(said: Answer, comment: Comment) -> bool:
    """Return whether the answer comes from this comment. Each kind of comment has numbers of its own."""
    told = (said.evidence.get("comment"), said.evidence.get("commit", ""), said.evidence.get("review", 0))
    return told == (comment.number, comment.commit, comment.review)


NONE = "none"  # no gate of this thread


@dataclass(frozen=True)
class Accepted:
    """Outcome of a comment: ignored, answered, stopped, again (taken before), refused, unclear, late, stale; or untold,
    where its author was to receive a note that can never be posted. `stranger`: its author may not write to the
    repository.
    """

    outcome: str
    words: str
    gate: str = ""
    stranger: bool = False

    @property
    def goes_on(self) -> bool:
        """Flag: the gate may now have an answer for which an agent is to be started."""
        return self.outcome in ("answered", "again")


@dataclass(frozen=True)
class CommentCase:
    """Comment that is being judged, with its thread."""

    desk: Desk
    forge: Forge
    board: Board
    comment: Comment

    @property
    def waiting(self) -> list[str]:
        """Gates that a reply without a name may mean: they were shown before it, and wait."""
        return [gate for gate in self.asked_before if is_waiting(self.desk, gate)]

    @property
    def asked_before(self) -> list[str]:
        return shown_before(self.board, self.comment)


def shown_before(board: Board, comment: Comment) -> list[str]:
    """Return the gates that the comment may be about: those that its thread already showed. Names are read against
    these alone, so that a later gate changes nothing.
    """
    return [gate for gate, (ours, _) in board.marks.items() if ours.place < comment.place]


def accept_comment(
    desk: Desk,
    forge: Forge,
    number: int,
    board: Board | None = None,
    *,
    kind: str = "",
    thread: Thread | None = None,
) -> Accepted:
    """Process one comment completely. This clone's gates have to be as the remote has them."""
    thread = thread if board is None else board.thread
    comment = forge.fetch_comment(number, kind=kind, thread=thread)
    if comment is None or nobodys(comment):
        return Accepted("ignored", nobodys(comment))
    case = CommentCase(desk, forge, board or load_board(forge, comment.thread), comment)
    with judged_at(desk, comment.created):  # it was in time if it was written in time
        return weigh(case)


def weigh(case: CommentCase) -> Accepted:
    """Decide what becomes of a comment: whether it is a reply and whose it is comes before what it says."""
    try:
        said = parse_reply(case.comment.body, case.asked_before)
    except BadAnswer as confusing:
        return confused(case, confusing)
    if said is None:
        return take_word(case)
    if not is_meant(case.desk, said, case.asked_before):
        return Accepted("ignored", NO_REPLY)
    return see(case, said) or take(case, said)


def take_word(case: CommentCase) -> Accepted:
    """Take a plain word as an answer where the protected branch allows it; else send writers the right commands."""
    for known in case.asked_before:
        if is_taken(case.desk, known, case.comment):
            return catch_up(case, known)
    gate = alone(case.desk, case.waiting) if not case.comment.review else None  # there it is about the line
    said = word_reply(case.comment.body, gate) if gate is not None else None
    if gate is None or said is None:
        return Accepted("ignored", NO_REPLY)
    if not case.forge.may_write(case.comment.author.login):
        return Accepted("ignored", NO_REPLY, stranger=True)
    eye(case)
    if plain_word(case.desk, case.board, case.comment, gate) is not None:
        return take(case, said)
    return tell_thread(
        case,
        "unclear",
        telling.word_hint(case.comment, gate, telling.whose_reply(case.desk, gate), case.forge.customs.taken),
        gate.id,
    )


def alone(desk: Desk, waiting: Sequence[str]) -> Gate | None:
    """Return the only waiting gate, which a word without a name may answer; None where none or several wait."""
    return find_gate(desk, waiting[0]).gate if len(waiting) == 1 else None


def plain_word(desk: Desk, board: Board, comment: Comment, gate: Gate) -> ReplySaid | None:
    """Return the answer that a plain word gives, or None. Once a note said that it is no answer to this gate, its
    author has to write a command: the policy may have said otherwise then.
    """
    if not telling.takes_plain(desk) or telling.was_worded(comment, gate.id, board.own):
        return None
    said = word_reply(comment.body, gate)
    return said if said is not None and said.verb else None


def confused(case: CommentCase, said: BadAnswer) -> Accepted:
    """Send a note to the author of an unclear comment; where it may be mere talk, only to one who may answer."""
    near = said if isinstance(said, Near) else None
    waiting = case.waiting
    meant = near.meant(waiting) if near is not None else waiting
    if not meant:
        return Accepted("ignored", "no gate waits in this thread")
    if near is None:
        return see(case, None) or unclear(case, said.message, meant)
    if not case.forge.may_write(case.comment.author.login):
        return Accepted("ignored", NO_REPLY, stranger=True)
    eye(case)
    if near.command:
        return unclear(case, said.message, meant)
    return tell_thread(
        case,
        "unclear",
        telling.hint(case.comment, find_gate(case.desk, meant[0]).gate, waiting, case.forge.customs.taken),
        meant[0],
    )


def is_meant(desk: Desk, said: ReplySaid, asked: Sequence[str]) -> bool:
    """Return whether a reply is for a gate. Many numbers look like a name, so without a command a gate must have it."""
    if said.plain and said.gate is not None and said.gate not in asked:
        return has_gate(desk, said.gate)
    return bool(asked or said.gate)


def see(case: CommentCase, said: ReplySaid | None) -> Accepted | None:
    """Mark the comment as seen. Refuse it with one note if its author may not write; return None if they may."""
    eye(case)
    if case.forge.may_write(case.comment.author.login):
        return None
    meant = spoken_of(case, said)
    told = [gate for gate in meant if case.board.says(telling.unpermitted(case.comment, gate).mark)]
    gate = [*told, *meant][0]
    note = telling.unpermitted(case.comment, gate)
    return replace(tell_thread(case, "refused", note, "" if gate == NONE else gate), stranger=True)


def eye(case: CommentCase) -> None:
    with contextlib.suppress(ForgeFailed):  # a courtesy
        case.forge.react(case.comment, "eyes")


def spoken_of(case: CommentCase, said: ReplySaid | None) -> list[str]:
    """Return the gates of this thread that a reply may be about. A note to its author on one of them is enough."""
    if said is not None and said.gate is not None:
        return [said.gate if said.gate in case.board.marks else NONE]
    return case.waiting or case.asked_before[-1:] or [NONE]


def unclear(case: CommentCase, why: str, meant: Sequence[str]) -> Accepted:
    gates = [find_gate(case.desk, gate).gate for gate in meant[:20]]
    return tell_thread(
        case, "unclear", telling.unclear(case.comment, why, gates, case.waiting, case.forge.customs.taken)
    )


def take(case: CommentCase, said: ReplySaid) -> Accepted:
    """Act on the reply of somebody who may write."""
    chosen = choose(case, said)
    if isinstance(chosen, Accepted):
        return chosen
    if case.comment.edited:
        return tell_thread(case, "refused", telling.edited(case.comment), chosen)
    try:
        gate = open_gate(case.desk, chosen)
    except UnknownGate as unknown:
        return unclear(case, unknown.message, case.waiting)
    except Conflict as over:
        return tell_thread(case, "late", telling.too_late(case.comment, over.message), chosen)
    return give(case, said, gate)


def choose(case: CommentCase, said: ReplySaid) -> str | Accepted:
    """Return the gate that is meant, or the outcome. A comment that was refused once is no answer later."""
    for gate in [said.gate] if said.gate is not None else case.asked_before:
        if is_taken(case.desk, gate, case.comment):
            return catch_up(case, gate)
    if case.board.says(telling.about(case.comment)):
        return Accepted("refused", "its author was told before", said.gate or "")
    if said.gate is not None:
        return said.gate
    waiting = case.waiting
    if len(waiting) == 1:
        return waiting[0]
    if waiting:
        return unclear(case, f"{len(waiting)} gates wait here, and it names none", waiting)
    last = case.asked_before[-1]
    return tell_thread(case, "late", telling.too_late(case.comment, how_it_ended(case.desk, last)), last)


def catch_up(case: CommentCase, gate: str) -> Accepted:
    """Update the gate's comment for a reply that is already recorded: the process that took it may have ended early."""
    found = find_gate(case.desk, gate)
    if not found.archived and gate in case.board.marks:
        bring_up_to_date(case.desk, case.forge, found.gate, case.board)
    return Accepted("again", f"gate {gate} has this reply already", gate)


def give(case: CommentCase, said: ReplySaid, gate: Gate) -> Accepted:
    """Record the reply at the gate. Post a note to its author on whatever is wrong with it."""
    comment = case.comment
    home = board_of_gate(case, gate)
    try:
        after, outcome, words = (
            stop_by_reply(case, said, gate)
            if said.verb == "stop"
            else answer_by_reply(case, said, gate, home)
        )
    except Usage as unfit:  # what no answer, or no document, can be
        why = unfit.words_without("answer")
        return tell_thread(
            case,
            "unclear",
            telling.unclear(comment, why, [gate], case.waiting, case.forge.customs.taken),
            gate.id,
        )
    except Stale as stale:
        return tell_thread(case, "stale", telling.changed(comment, stale.message), gate.id)
    except NotAllowed as forbidden:
        return tell_thread(case, "refused", telling.refused(comment, forbidden.message), gate.id)
    except Conflict as late:
        return lost(case, gate, late)
    trouble = bring_up_to_date(case.desk, case.forge, after, home) if home is not None else ""
    with contextlib.suppress(ForgeFailed):
        case.forge.react(comment, "+1")
    if home is not case.board:
        point_home(case, gate.id, home)
    return Accepted(outcome, "; ".join(part for part in (words, trouble) if part), gate.id)


def board_of_gate(case: CommentCase, gate: Gate) -> Board | None:
    """Return the board of the thread that shows the gate: a reply that names the gate may be on another thread."""
    if gate.id in case.board.marks:
        return case.board
    thread = thread_of(case.desk, case.forge, gate)
    if thread is None:
        return None
    return case.board if thread == case.board.thread else load_board(case.forge, thread)


def point_home(case: CommentCase, gate: str, home: Board | None) -> None:
    """Post a note on the reply's own thread that says where the gate is shown."""
    with contextlib.suppress(ForgeFailed):
        if home is not None and gate not in home.marks:
            home = load_board(case.forge, home.thread)  # it was posted just now
        shown = home.marks.get(gate) if home is not None else None
        note = telling.elsewhere(case.comment, gate, shown[0].url if shown else "")
        post_once(case.forge, case.board, note.body)


def lost(case: CommentCase, gate: Gate, late: Conflict) -> Accepted:
    """Return the outcome of a reply that came second, or that is the same comment, delivered twice."""
    now = find_gate(case.desk, gate.id).gate
    if now.answer is not None and is_from(now.answer.answer, case.comment):
        return Accepted("again", f"gate {gate.id} has this answer already", gate.id)
    return tell_thread(case, "late", telling.too_late(case.comment, late.message), gate.id)


def answer_by_reply(
    case: CommentCase, said: ReplySaid, gate: Gate, home: Board | None
) -> tuple[Gate, str, str]:
    given, note = read_reply(said, gate)
    manner = Manner(
        note=note,
        via=case.forge.name,
        seen=seen(case.comment, gate, home),
        push=True if remote_of(case.desk) else None,
        who=person_of(case.forge, case.comment.author),
        evidence=evidence_of(case.forge, case.comment),
    )
    done = respond(case.desk, gate, given, manner)
    by = case.comment.author.login
    if not done.counted:
        return done.gate, "answered", f"gate {gate.id}: {by}'s answer is one of those that are needed"
    return done.gate, "answered", f"gate {gate.id} {done.answer.verdict} by {by}"


def stop_by_reply(case: CommentCase, said: ReplySaid, gate: Gate) -> tuple[Gate, str, str]:
    author = case.comment.author
    who = Vouched(person_of(case.forge, author), author.login, case.forge.name, case.comment.created)
    if not said.text:
        raise BadAnswer("/stop needs a reason")
    reason = f"{said.text}\n\n({case.comment.url})"
    done = stop(case.desk, gate, reason, push=True if remote_of(case.desk) else None, via=who.via, who=who)
    return done.gate, "stopped", f"gate {gate.id} stopped by {author.login}"


def seen(comment: Comment, gate: Gate, home: Board | None) -> str:
    """Return the commit that the author had read: the one that our comment showed then, else that of the question."""
    shown = home.marks.get(gate.id) if home is not None else None
    if shown is not None and shown[0].updated <= comment.place[0]:
        return shown[1].seen
    return gate.history[0].commit


def how_it_ended(desk: Desk, gate: str) -> str:
    with contextlib.suppress(Failure):
        return telling.ending_words(find_gate(desk, gate).gate)
    return f"gate {gate} is over"


def tell_thread(case: CommentCase, outcome: str, note: ReplyNote, gate: str = "") -> Accepted:
    """Post a note on the thread unless it is there, and react to the comment, so that its author notices."""
    plain = note.text.partition(": ")[2].split("\n", 1)[0]
    if case.board.says(note.mark):
        return Accepted(outcome, f"{plain} (told before)", gate)
    with contextlib.suppress(ForgeFailed):
        case.forge.react(case.comment, "confused")
    post_once(case.forge, case.board, note.body)
    return Accepted(outcome, plain, gate)


# An answer from a terminal, on its way to CI; and whether one that is found there is one that a person gave.
#
# In CI, whoever may push can write one. The proof is the comment itself, asked of the forge anew and read again; or a good
# signature; or a person who may write and asked for exactly this answer to be acted on.

WORDS = {"at": "time"}  # of evidence, where its own name is none
CLOCKS = 300  # seconds by which those of a forge and of whoever hears it may differ


def doubt(desk: Desk, forge: Forge, gate: Gate, vouched: str = "") -> str:
    """Return why the answer of this gate is not acted on by itself; empty where it may be."""
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
    """Return the answer that counts, and every other vote that agrees with it."""
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
    verdict = verdict_on(desk, load_book(desk), commit)
    return verdict is not None and verdict.word == GOOD


def against_comment(desk: Desk, forge: Forge, gate: Gate, said: Answer) -> str:
    """Return what contradicts the comment that an answer names as its source; empty where nothing does."""
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
    """Return the first field of the comment that the record omits or states differently from the forge; empty where all
    agree. The policy relies on these fields. The address is not compared, since it changes when the repository is
    renamed.
    """
    told = {"commit": "", "review": "", **evidence_of(forge, comment)}
    del told["url"]
    return next((name for name in told if folded(said.evidence.get(name, "")) != folded(told[name])), "")


def folded(word: object) -> str:
    """Return the word without regard to case, since logins that differ in capitals alone are equal."""
    return str(word).casefold()


def against_words(desk: Desk, forge: Forge, gate: Gate, said: Answer, comment: Comment) -> str:
    """Return why the comment, read again as it was when taken, is not this answer to this gate; empty where it is."""
    board = load_board(forge, comment.thread)
    if board.says(telling.about(comment)):
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
    """Return why a comment that names no gate is not about this one; empty where it is. It answers only what its thread
    asked before it. The state of the pull request does not matter.
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
    """Return why the word of whoever dispatched does not count; empty where it does."""
    if asked.repository and not forge.is_ours(asked.repository):
        return "it is another repository's event"
    if asked.bot or not asked.login:
        return "a program asked for it, and its word is nobody's"
    if not forge.may_write(asked.login):
        return f"{asked.login} may not write to this repository"
    return ""


def vouched_by(desk: Desk, forge: Forge, asked: Dispatched) -> str:
    """Return the commit of the answer that whoever dispatched vouches for; empty where their word does not count. It
    does not where the policy forbids the requester to answer and they are the requester: an unsigned answer bears any
    name.
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
    """Result of asking CI to act on an answer: where to watch it, or why it was not asked and what else acts on it."""

    url: str = ""
    why: str = ""


def dispatch(desk: Desk, forge: Forge, gate: Gate | None) -> str:
    """Ask CI to act on this answer, or without a gate on all that is due. Return where to watch it. The commit says
    which answer is meant. A job sees only what is shared, so the answer is shared first.
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
    """Return whether the gate's agent may be started: nobody acts on its answer, or the jobs that began to are gone."""
    return gate.actionable or (gate.state == "resuming" and is_abandoned(desk, gate))


def is_retried(gate: Gate, vouched: str) -> bool:
    """Return whether a person asks for another attempt at exactly this answer."""
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
    """Share the gate, and return the server's record. Refuse if another answer came first: nobody vouches for it."""
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
    """Ask CI to act on a new answer. Return None where the remote is no forge, or nobody is to be resumed."""
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
    """Return what acts on the answer without a job started now, and when; else who may start one. No job takes an
    unsigned commit for a person's word.
    """
    dispatch = f"git gate github dispatch {gate.id[:6]}"
    if all(is_signed(desk, one.signed_commit) for one in deciding(gate)):
        return f"it is signed, so the next sweep of {ANSWERS} resumes it, by default within half an hour; sooner: {dispatch}"
    commit = f" -f commit={gate.answer.commit}" if gate.answer is not None else ""
    return (
        "it is not signed by a key that the policy knows, so no sweep acts on it by itself; "
        f"later: {dispatch}   or: gh workflow run {ANSWERS} -f gate={gate.id}{commit}"
    )
