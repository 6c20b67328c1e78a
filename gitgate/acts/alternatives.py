"""Acts: one question, answered in two ways: asked once more from where its agent stood, and what came of each side by side.

    question   Which database?   the same
    answer     Postgres          SQLite
    changed    2 files, +40 -3   1 file, +12 -0

A fork stands on the same work, with a copy of the conversation as it was when the agent asked, on a branch of its own: nothing of
the first gate is touched. To compare changes nothing; of an outcome nothing is fetched, its commits are on branches.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..context import Desk, machine, session_proof
from ..context.targets import may_publish_work
from ..document import dataclass, field, replace
from ..errors import BrokenRecord, Failure, GateError, Usage
from ..exchange.syncing import Published, publish
from ..gates.agency import adapter, stayed
from ..gates.recording import tell_people
from ..gates.work import bring_work, painted
from ..model import UNSIGNED, SignatureMark
from ..model.gate import Answer, Claim, Gate, Outcome, Remark, SavedSession, Work
from ..questions import Given
from ..questions.answers import printed, read_answer
from ..questions.drafts import Draft
from ..store.records import NOBODY, Signature
from . import find_anywhere, find_gate, sessions
from .asking import Asked, AskWishes, check_draft, check_enclosed, moves, opened_by, with_nonce


@dataclass(frozen=True)
class GateOutcome:
    """A gate with what came of it. `end`: the commit that it came to; None where it came to none, and `missing` says why.

    The counts are of its own commits, from before the first to the last.
    """

    gate: Gate
    archived: bool = False
    answer: str | None = None
    signature: SignatureMark = UNSIGNED
    branch: str = ""
    commits: tuple[str, ...] = ()
    files: int = 0
    insertions: int = 0
    deletions: int = 0
    said: str = ""
    end: str | None = None
    missing: str = ""


@dataclass(frozen=True)
class Comparison:
    """Two gates. `differs`: what of the question does. `diff` leads from the first outcome to the second; None where one is missing.

    `doubt`: what else than the two answers may be behind the difference.
    """

    first: GateOutcome
    second: GateOutcome
    differs: tuple[str, ...] = field(default=())
    diff: str | None = None
    files: int = 0
    insertions: int = 0
    deletions: int = 0
    doubt: str = ""


# What is asked, by the name of what may differ.
ASKED = ("prompt", "type", "options", "default", "schema", "talk")


def compare_gates(
    desk: Desk, one: str, other: str, *, patch: bool = False, cells: int = 80, color: bool = False
) -> Comparison:
    """`patch`: the whole difference between the outcomes instead of a summary of so many cells."""
    found = [find_anywhere(find_gate, desk, given) for given in (one, other)]
    first, second = found[0].gate, found[1].gate
    if first.id == second.id:
        raise Usage(
            f"both are gate {first.id}", hint=f"git gate compare {first.id[:6]} ID   git gate search WORDS"
        )
    from ..policy.ruling import marks

    signed = marks(desk, (first, second))
    sides = [
        outcome_of(desk, entry.gate, signed=mark_in(entry.gate, signed), archived=entry.archived)
        for entry in found
    ]
    told = Comparison(sides[0], sides[1], differences(first, second))
    return with_diff(desk, told, patch=patch, cells=cells, color=color)


def mark_in(gate: Gate, signed: dict[str, SignatureMark]) -> SignatureMark:
    return signed.get(gate.answer.signed_commit, UNSIGNED) if gate.answer is not None else UNSIGNED


def differences(one: Gate, other: Gate) -> tuple[str, ...]:
    """Return the names of the parts in which two questions differ; `base` where they were asked on different commits."""
    asked, others = one.opened.questions, other.opened.questions
    named = ["questions"] if len(asked) != len(others) else []
    named += [
        name
        for name in ASKED
        if any(getattr(q, name) != getattr(r, name) for q, r in zip(asked, others, strict=False))
    ]
    named += [
        name for name in ("title", "context") if getattr(one.opened, name) != getattr(other.opened, name)
    ]
    works = [(work.base, work.staged, work.commit) for work in (one.opened.work, other.opened.work)]
    if works[0] != works[1]:
        named.append("base" if works[0][0] != works[1][0] else "work")
    return tuple(named)


def outcome_of(desk: Desk, gate: Gate, *, signed: SignatureMark, archived: bool) -> GateOutcome:
    outcomes = [entry.event for entry in gate.events if isinstance(entry.event, Outcome)]
    commits = tuple(dict.fromkeys(oid for one in outcomes for oid in one.commits))
    last = outcomes[-1] if outcomes else None
    counted = gate.answer.answer if gate.answer is not None else None
    answer = printed(gate.opened.questions, replace(counted, note="")) if counted is not None else None
    said, branch = (last.said, last.branch) if last is not None else ("", "")
    missing = "" if commits or gate.state == "resumed" else why_missing(gate)
    counts, end = (0, 0, 0), None if missing else gate.opened.work.base
    if commits:
        try:
            counts, end = count_of(desk, commits), commits[-1]
        except GateError:
            missing, end = f"its commits are not here, {commits[-1][:12]} is the last: git fetch", None
    return GateOutcome(
        gate, archived, answer, signed, branch, commits, *counts, said=said, end=end, missing=missing
    )


def count_of(desk: Desk, commits: Sequence[str]) -> tuple[int, int, int]:
    """Files, insertions and deletions, from what the first of them stands on to the last. Oldest first, as they are recorded."""
    from ..store.work.snapshot import count_changes

    before = next(iter(desk.records.history(commits[0]).parents), None)
    desk.records.history(commits[-1])
    return count_changes(desk.repo.git, before, commits[-1])


def why_missing(gate: Gate) -> str:
    """Return the reason why a gate has no outcome, in words."""
    short = gate.id[:6]
    if gate.state == "answered":
        then = (
            "nobody is resumed with it" if gate.opened.delivery == "none" else "its agent was not resumed yet"
        )
        return f"answered, and {then}: git gate status {short}"
    if gate.state == "failed":
        reason = gate.outcome.reason if gate.outcome is not None else ""
        return f"the agent failed{f': {reason}' if reason else ''}"
    if gate.closing is not None:
        return f"{gate.state}{f': {gate.closing.text}' if gate.closing.text else ''}"
    words = {"awaiting": "it waits for an answer", "resuming": "its agent is at work"}
    return f"{words.get(gate.state, gate.state)}: git gate status {short}"


def with_diff(desk: Desk, told: Comparison, *, patch: bool, cells: int, color: bool) -> Comparison:
    """Add to a comparison how the second outcome's files differ from the first's, as far as both outcomes are in this
    clone.
    """
    from ..store.work.restore import diff
    from ..store.work.snapshot import count_changes
    from ..text import neutral

    one, other = told.first.end, told.second.end
    if one is None or other is None:
        return told
    try:
        raw = diff(desk.repo, one, other, stat=not patch, cells=cells)
        counts = count_changes(desk.repo.git, one, other)
    except GateError as absent:
        return replace(told, doubt=f"they cannot be compared here: {absent.message}")
    text = neutral(raw.decode("utf-8", "replace"))
    doubt = ""
    if "base" in told.differs:
        doubt = "they stand on different commits: what differs there is in it, too"
    shown = painted(text) if color and patch else text
    return replace(told, diff=shown, files=counts[0], insertions=counts[1], deletions=counts[2], doubt=doubt)


# The same question once more.


# Of the first gate's surroundings: the job and the pull request that asked are not those of a fork.
NOT_ITS_OWN = ("pull_request", "job_run", "fork")


def fork_gate(desk: Desk, given: str, answer: Given | None = None, *, push: bool | None = None) -> Asked:
    """Open a gate with the question, work and conversation of another. An `answer` that does not fit is refused before that."""
    desk.refuse_agents("fork")
    first = find_anywhere(find_gate, desk, given).gate
    if first.opened.run:
        run = first.opened.run[:6]
        raise Usage(
            f"gate {first.id} was asked by run {first.opened.run}: what is forked is the run",
            hint=f"git gate run {run} --from STEP   its steps: git gate show {run}",
        )
    if answer is not None:
        read_answer(first.opened.questions, answer)
    draft = draft_of_gate(first)
    attached = {name: desk.records.attachment(first, name) for name in first.opened.attachments}
    check_draft(desk, draft)
    check_enclosed(draft, attached)
    work = work_of_fork(desk, first)
    saved = conversation_of_fork(desk, first)
    asked = compose_fork(desk, first, draft, work, saved, attached)
    desk.refs.update(moves(asked, None, None))
    remember_fork(desk, first, asked)
    tell_people(desk)
    published = publish(desk, asked.gate, push=push, work=may_publish_work(desk))
    return replace(asked, gate=published.gate, published=published)


def draft_of_gate(first: Gate) -> Draft:
    """Return a draft that repeats the question of `first` on its terms; a deadline counts from now."""
    opened = first.opened
    own = {name: value for name, value in opened.config.items() if name not in NOT_ITS_OWN}
    return Draft(
        questions=opened.questions,
        title=opened.title,
        context=opened.context,
        priority=opened.priority,
        confidence=opened.confidence,
        timeout=opened.timeout,
        on_timeout=opened.on_timeout if opened.timeout else None,
        to=opened.to,
        quorum=opened.quorum,
        agent=opened.asked.agent,
        config={**own, "fork": first.id},
        notify=opened.notify,
    )


def work_of_fork(desk: Desk, first: Gate) -> Work:
    """Return the work of `first` for a fork, on a new branch of its own, so that the first outcome stays where it is."""
    work = first.opened.work
    if work.commit is not None:
        bring_work(desk, first)
    return replace(work, branch=f"fork/{first.id[:6]}-{desk.entropy(3)}", shared=False)


def conversation_of_fork(desk: Desk, first: Gate) -> SavedSession | None:
    """A copy of the conversation as it was when the agent asked, under an id of its own. None where none belongs to the gate."""
    session = first.opened.session
    if session is None:
        return None
    oid = sessions.find_oid(desk, first.id)
    if oid is None:
        raise gone(first) if sessions.is_gone(desk, first.id) else stayed(first, "here")
    picked = as_asked(desk, first, oid)
    if wrong := session_proof.against_session(desk, first, picked):
        raise BrokenRecord(
            f"the saved session was changed by somebody else: {wrong}",
            hint="git gate verify",
            about=f"gate {first.id}",
        )
    saved = sessions.read_session(desk, picked)
    if sessions.session_digest(session.salt, saved.id) != session.digest:
        raise BrokenRecord(
            "the saved session is not the one that asked", hint="git gate verify", about=f"gate {first.id}"
        )
    found = adapter(session.agent).forked(replace(saved, agent=session.agent), desk.entropy(16))
    if found is None:
        raise Failure(
            f"the conversation of gate {first.id} cannot be forked: a copy would go on in that of {first.opened.asked.agent}",
            hint=f"what was decided: git gate show {first.id[:6]}   to ask anew: git gate ask",
        )
    return found


def as_asked(desk: Desk, first: Gate, oid: str) -> str:
    """Its session as it was before anybody talked in it, or an agent went on with it. It is saved more than once while it waits:
    what was asked by a hook ends only after that.
    """
    from ..gates.history import seconds_at

    until = float("inf")
    for entry in first.events:
        event = entry.event
        if isinstance(event, Answer | Remark) and event.session is not None:
            until = min(until, seconds_at(event.at) - event.session.seconds - 1)
        elif isinstance(event, Answer | Claim):
            until = min(until, seconds_at(event.at))
    saved = [name for name, _ in session_proof.chain(desk, oid)]
    return next((name for name in saved if committed_at(desk, name) <= until), saved[-1])


def committed_at(desk: Desk, oid: str) -> int:
    return desk.records.commit(oid).committed_at


def gone(first: Gate) -> Failure:
    return Failure(
        f"the session of gate {first.id} is gone: nobody can go on from where it was asked",
        hint=f"what was decided: git gate show {first.id[:6]}   to ask anew: git gate ask",
    )


def compose_fork(
    desk: Desk,
    first: Gate,
    draft: Draft,
    work: Work,
    saved: SavedSession | None,
    attached: dict[str, bytes],
) -> Asked:
    """Objects; no ref names them yet."""
    from ..policy.permit import tightened

    tree = sessions.tree_of(desk, saved) if saved is not None else ""
    wanted = opened_by(desk, draft, work, saved, tree, AskWishes(), tuple(attached))
    opened = with_nonce(desk, tightened(desk, replace(wanted, follows=None, to_holds=first.opened.to_holds)))
    who = desk.settings.identity() or opened.asked.by or NOBODY
    gate = desk.records.write_opened(opened, attached, Signature(who, desk.at))
    session = sessions.write(desk, gate.id, saved.agent, tree) if saved is not None else None
    return Asked(gate, Published(gate), saved=saved, session=session)


def remember_fork(desk: Desk, first: Gate, asked: Asked) -> None:
    """Note on this machine that the fork was asked from here. Where `first` was asked from here on its own work, the
    fork's agent may do what the first agent might.
    """
    gate, saved = asked.gate, asked.saved
    before = machine.find_presence(desk, first.id)
    own = before is not None and before.work == (first.opened.work.commit or "")
    note = machine.Presence(
        gate=gate.id,
        agent=gate.opened.asked.agent,
        program=saved.agent if saved is not None else "",
        session=saved.id if saved is not None else "",
        directory=str(desk.repo.place),
        work=gate.opened.work.commit or "",
        pid=0,
        started="",
        boot="",
        at=gate.opened.asked.at,
        trusted=before.trusted if before is not None and own else False,
        flags=before.flags if before is not None and own else (),
    )
    machine.note_presence(desk, note)
