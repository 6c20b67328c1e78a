"""Sharing: what a shared repository takes of a push, the archive of closed gates, and agents' branches on their way there.

Here every ref of a push is judged, from the objects it brings; one bad one stops all.

Gates only grow, by their first parents, an event at a time; they leave through the archive, which keeps all that it has, and
never come back.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from ..context import Desk
from ..errors import BrokenRecord, GateError
from ..model import AWAITING, is_id
from ..store.git.refs import ARCHIVE, ERASED, EVIDENCE, LEASES, OPEN, RUNS, SESSIONS, WAKE, WORK, Update
from ..store.records import AT_ONCE

if TYPE_CHECKING:
    from ..exchange.entering import Beyond, Push

LIKES = r"(?i)refs/(?:(?:heads|tags|remotes|notes)/)?refs/"
LIKE = "git could not tell it from {}: another name is needed, which does not begin with refs/"

HITL = "refs/hitl/"
OWN = "refs/gitgate/"
MOST_REFS = 20_000
MANY = 400
Rule = Callable[["Push", "Update", str], str]


def refusals(
    desk: Desk,
    updates: Iterable[Update],
    beyond: Beyond | None = None,
    acting: Callable[[], str] | None = None,
) -> dict[str, str]:
    """Return by ref why a push is refused, in words for whoever pushed; empty when all of it is accepted."""
    from ..exchange.entering import Push  # whoever sends a branch does without it

    # Where a file system does not tell letters' cases apart, a name that is only like ours is ours.
    ours = [update for update in updates if update.ref.lower().startswith((HITL, OWN)) or is_like(update.ref)]
    push = Push(desk, ours, beyond, acting)
    if len(push.updates) > MOST_REFS:
        return {HITL: f"expected at most {MOST_REFS:,} refs in a push; found {len(push.updates):,}"}
    if len({update.ref for update in push.updates}) < len(push.updates):
        return {HITL: "a push names the same ref twice"}
    half, sound = judged_beside(push)
    found = judge_all(push, [update for update in push.updates if update.ref not in half])
    found |= judge_all(push, [update for update in half.values() if update.ref not in sound()])
    if not found and any(update.new for update in push.updates):
        from .objects import against_objects

        found = against_objects(push)
    if push.received and not found:
        from .lease_rules import note_received

        note_received(push)
    return found or note_erased(push)


def judge_all(push: Push, updates: Sequence[Update]) -> dict[str, str]:
    """Return by ref why some updates of the push are refused; empty when they are accepted."""
    found = {}
    for start in range(0, len(updates), AT_ONCE):
        some = updates[start : start + AT_ONCE]
        push.desk.records.read_ahead(tip for one in some if one.ref.startswith(OPEN) and (tip := one.new))
        found.update({update.ref: reason for update in some if (reason := judge(push, update))})
    return found


def judged_beside(push: Push) -> tuple[dict[str, Update], Callable[[], Collection[str]]]:
    """Start a second process to judge half of the gates that a push opens, where it opens many. Return that
    half, and a function that returns the accepted refs of it. To read a thousand gates takes longer than all
    that git does with them.

    The second process names only gates that wait for an answer and are accepted: no other ref's judgement
    depends on those. This process judges whatever it does not name, because it failed or for any other reason.
    """
    openings = [one for one in push.updates if one.ref.startswith(OPEN) and one.old is None and one.new]
    if len(openings) < MANY or push.desk.bulk or (os.cpu_count() or 1) < 2:
        return {}, frozenset
    from ..store.git.programs import begin_beside

    half = {update.ref: update for update in openings[len(openings) // 2 :]}
    told = begin_beside(lambda: tell_sound(push, list(half.values())))
    if told is None:
        return {}, frozenset
    return half, cache(lambda: frozenset(told().decode("utf-8", "surrogateescape").split("\0")))


def tell_sound(push: Push, updates: Sequence[Update]) -> bytes:
    """Return the accepted refs of waiting gates, separated by NUL; runs in the second process.

    That process starts a git of its own, since two processes cannot read the answers of one git.
    """
    push.desk.leave_to_other_process()
    refused = judge_all(push, updates)
    sound = [one.ref for one in updates if one.ref not in refused and is_waiting(push, one)]
    push.desk.close()
    return "\0".join(sound).encode("utf-8", "surrogateescape")


def is_waiting(push: Push, update: Update) -> bool:
    gate = push.gate(update.ref.removeprefix(OPEN), str(update.new))
    return gate.state == AWAITING and gate.attempts == 0


def judge(push: Push, update: Update) -> str:
    if update.old == update.new:
        return ""
    if is_like(update.ref):
        return "" if update.new is None else LIKE.format(update.ref[update.ref.lower().index("/refs/") + 1 :])
    for prefix, rule in RULES.items():
        if update.ref.startswith(prefix):
            try:
                return rule(push, update, update.ref.removeprefix(prefix))
            except GateError as wrong:
                return wrong.message
            except RecursionError:
                return "it is nested too deeply"
    return "this gitgate knows no such kind of ref; upgrade it on the server, or mend the name"


def is_like(ref: str) -> bool:
    """Return whether a branch or a tag is named like a whole ref, as `refs/heads/refs/hitl/…` is.

    Where the ref of that whole name is missing, git completes the name to this one. Where both exist, git can
    push neither.
    """
    return re.match(LIKES, ref) is not None


def judge_open(push: Push, update: Update, gate: str) -> str:
    """Return why a push may not move a gate's record; empty when it may.

    A record is opened whole, grows by its first parents, and leaves only once the archive has it.
    """
    if not is_id(gate):
        return "it is not named like a gate"
    if update.new is None:
        return judge_closing(push, update, gate)
    if gate in push.folded_by():
        return f"gate {gate} is closed by this very push, which archives it: it is not opened by it as well"
    # One that is open here is not opened again, whatever is archived; asking costs a git.
    known = push.archived.get(gate) if update.old is None else None
    if known is not None:
        return f"gate {gate} is closed, and in the archive of {known.month}: it is not opened again (git gate sync)"
    after = push.gate(gate, update.new)
    if update.old is not None and all(entry.commit != update.old for entry in after.history):
        return (
            f"gate {gate} only grows, by first parents: {update.new[:10]} does not go on from {update.old[:10]}, "
            "which is there now (git gate sync)"
        )
    why = push.beyond(after, update.old) if push.beyond else ""
    if why or after.attempts == 0:
        return why
    from .lease_rules import against_record

    return against_record(push, after, update.old)


def judge_closing(push: Push, update: Update, gate: str) -> str:
    """Return why a push may not delete a gate's record; empty when it may.

    The archive here must have had the record, as it is now, before this push, and the gate must be closed
    there.
    """
    known = push.archived.get(gate)
    if known is None or update.old not in known.tips:
        return f"gate {gate} is not in the archive as it is now: archive it first (git gate archive)"
    if not push.gate(gate, known.tip).closed:
        return f"gate {gate} is in the archive of {known.month}, but was not closed: it waits for an answer"
    return ""


def judge_work(push: Push, update: Update, gate: str) -> str:
    """Return why a push may not move a work ref; empty when it may.

    The work is the commit that the record names, for as long as the gate is open, or the run that names it
    waits.
    """
    tip = push.after(OPEN + gate)
    journal = push.after(RUNS + gate) if tip is None and is_id(gate) else None
    if journal is not None:
        from .lease_rules import against_run_work

        return against_run_work(push, update, gate, journal)
    if update.new is None:
        return "" if tip is None else f"gate {gate} is open: its work stays with it"
    if not is_id(gate) or tip is None:
        return f"there is no gate {gate} that this could be the work of"
    named = push.gate(gate, tip).opened.work.commit
    if update.new != named:
        return f"gate {gate} names {(named or 'no work')[:10]} as its work, and this is {update.new[:10]}"
    return ""


def judge_session(push: Push, update: Update, gate: str) -> str:
    """Return why a push may not move a session ref; empty when it may.

    A session is saved anew by whoever asked, or with an event that names its content. It may be erased at any
    time, for good.
    """
    tip = push.after(OPEN + gate) if is_id(gate) else None
    if update.new is None:
        if tip is not None:
            push.erased.append(gate)
        return ""
    if tip is None:
        return f"there is no open gate {gate} that this could be the session of"
    push.desk.records.tree(push.desk.records.commit(update.new).tree)
    from ..context.session_proof import against_session, is_from_before, is_older

    known = push.gate(gate, tip)
    wrong = against_session(push.desk, known, update.new)
    if wrong:
        return f"this is not the session of gate {gate}: {wrong}"
    if update.old is not None:
        older = is_older(push.desk, known, update.new, update.old)
        return f"a session of gate {gate} that was saved later is here already" if older else ""
    erased = push.here(ERASED + gate)
    if erased is not None and is_from_before(push.desk, known, update.new, erased):
        return f"the session of gate {gate} was erased: what was saved before that does not come back"
    return ""


def note_erased(push: Push) -> dict[str, str]:
    """Note, for each session that is deleted while its gate is open, where the gate's record was at that time.
    Return by ref why that could not be noted.

    The present values of the refs are read here, since whoever pushes may name other ones. Git moves no ref
    while a push is judged, lest the ref lead to objects that are thrown away; the record was here before. The
    note is a ref, so that all accounts that share the repository can read it.
    """
    refused: dict[str, str] = {}
    if not push.erased:
        return refused
    from ..store.remote import RefMove

    for gate in push.erased:
        try:
            session, tip = push.here(SESSIONS + gate), push.desk.refs.get(OPEN + gate)
            if session is not None and tip is not None and is_to_be_noted(push, gate, tip, session):
                ref = ERASED + gate
                push.desk.refs.outside_of_push().update([RefMove(ref, tip, push.here(ref))])
        except GateError as failed:
            refused[SESSIONS + gate] = f"that it was erased could not be noted: {failed.message}"
    return refused


def is_to_be_noted(push: Push, gate: str, tip: str, session: str) -> bool:
    """Return whether the deletion of this session has to be noted.

    No note is made where it is no session of this gate, or cannot be read: the right session may still be saved
    after that.
    """
    from ..context.session_proof import is_proven

    if push.here(ERASED + gate) == tip:
        return False
    try:
        return is_proven(push.desk, push.gate(gate, tip), session)
    except BrokenRecord:
        return False


def judge_lease(push: Push, update: Update, gate: str) -> str:
    """Return why a push may not move a lease; empty when it may.

    A lease is moved by its holder or by a claim, and ends with the outcome of its claim.
    """
    if not is_id(gate):
        return "it is not named like a gate"
    journal = push.after(RUNS + gate) if push.after(OPEN + gate) is None else None
    if journal is not None:
        from .lease_rules import against_run_lease

        return against_run_lease(push, update, gate, journal)
    from .lease_rules import against_lease

    return against_lease(push, update, gate)


def judge_run(push: Push, update: Update, run: str) -> str:
    """Return why a push may not move a run's journal; empty when it may.

    A journal only grows, by events of its holder. A ref that is not named like a run may always be deleted.
    """
    if not is_id(run):
        return "" if update.new is None else "it is not named like a run"
    from .lease_rules import against_run

    return against_run(push, update, run)


def judge_archive(push: Push, update: Update, month: str) -> str:
    """Return why a push may not move a month of the archive; empty when it may.

    The archive keeps all that it has. It gains only closed gates and ended runs, and none that it has already.
    """
    from ..store.records.archive import is_month

    if not is_month(month):
        return "an archive is named by its month, as 2026-01"
    if update.new is None:
        return "the archive is not deleted"
    from .lease_rules import against_folded

    for fold in push.folds(update):
        reasons = (
            *(judge_folded(push, gate, tip) for gate, tip in fold.gates.items()),
            *(judge_late(push, gate, tip) for gate, tip in fold.late),
            *(against_folded(push, run, tip) for run, tip in fold.runs.items()),
        )
        if why := next(filter(None, reasons), ""):
            return why
    return ""


def judge_folded(push: Push, gate: str, tip: str) -> str:
    """Return why a gate may not go into the archive; empty when it may.

    The gate must be closed, and be as it is here. A gate that was never here is judged as if it were pushed
    now.
    """
    known = push.archived.get(gate)
    if known is not None:
        return f"gate {gate} is in the archive of {known.month} already (git gate sync)"
    if len(push.folded_by().get(gate, ())) > 1:
        return f"gate {gate} is archived twice by this push"
    closed = push.gate(gate, tip)
    if not closed.closed:
        return f"gate {gate} is {closed.state}, not closed: only a closed gate is archived"
    here = push.here(OPEN + gate)
    if here is not None and here != tip:
        # One that goes on from there would be archived and stay open, and be answered while it is over.
        return f"gate {gate} has changed since: {tip[:10]} is not {here[:10]}, which is there now (git gate sync)"
    return push.beyond(closed, here) if push.beyond else ""


def judge_late(push: Push, gate: str, tip: str) -> str:
    """Return why events that came after their gate was archived are refused; empty when they are accepted.

    They change nothing, but somebody is their author, as of any other event.
    """
    known = push.archived.get(gate)
    late = push.gate(gate, tip)
    closed = known.tip if known else push.folded_by()[gate][0]
    had = {entry.commit for entry in push.gate(gate, closed).history}
    last = next((entry.commit for entry in reversed(late.history) if entry.commit in had), None)
    return push.beyond(late, last) if push.beyond else ""


def judge_wake(push: Push, update: Update, gate: str) -> str:
    """Return why a push may not move a wake ref; empty when it may.

    The ref has no content of its own: the push itself is enough for the runner to look.
    """
    tip = push.before(OPEN + gate)
    if update.new is None or (tip is not None and update.new == tip):
        return ""
    return f"expected the tip of the open gate {gate}, which is {tip or 'not here'}"


def judge_own(_push: Push, update: Update, _name: str) -> str:
    """Refuse refs that this repository keeps as notes of its own, of other remotes and of its gates.

    Whoever pushes knows nothing of these notes. Deletion is refused only for the note of an erased session.
    """
    if update.new is None:
        noted = update.ref.lower().startswith(ERASED)
        return f"{ERASED} says which sessions were erased: it goes when their gates do" if noted else ""
    return f"{OWN} holds what a repository notes for itself: it is never pushed"


def judge_evidence(_push: Push, _update: Update, month: str) -> str:
    """Return why a push may not move a ref of evidence: its name is no month.

    The work of closed gates may be rewritten, since that is how it is erased.
    """
    from ..store.records.archive import is_month

    return "" if is_month(month) else "evidence is named by its month, as 2026-01"


RULES: dict[str, Rule] = {
    OPEN: judge_open,
    WORK: judge_work,
    SESSIONS: judge_session,
    LEASES: judge_lease,
    WAKE: judge_wake,
    RUNS: judge_run,
    ARCHIVE: judge_archive,
    EVIDENCE: judge_evidence,
    OWN: judge_own,
}
