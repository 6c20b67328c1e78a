"""Sharing: what a shared repository takes of runs: journals that only grow, by events that the table has, from their holder.

Who goes on with a run proves it as the holder of a gate does: by the lease that comes with the push, moved by the next link of
its chain, or by that link in the event that lets the run go. Anybody who may act may say that a run is to stop, or claim one
whose lease has lapsed.
"""

from __future__ import annotations

from ..gates.leases import parents_of, read_lease
from ..model import lease as leases
from ..model.gate import Claim, Entry
from ..model.lease import Lease
from ..model.trailers import misread
from ..record.runs import BY_ANYBODY, LETS_GO, Run, RunEntry, fold_run, run_message
from ..store.git.refs import LEASES, RUNS, Update
from ..store.records.journal import Journals
from .lease_rules import against_link, against_takeover, not_the_holder, told_until
from .pushed import Push


def load_pushed(push: Push, run: str, tip: str) -> Run:
    """The run with this tip, read once."""
    if (run, tip) not in push.runs:
        push.runs[run, tip] = Journals(push.desk.repo, push.desk.records).load(run, tip)
    return push.runs[run, tip]


def against_run(push: Push, update: Update, run: str) -> str:
    """What speaks against a journal's move; empty when nothing does."""
    if update.new is None:
        return f"run {run} is kept: a journal is not deleted"
    after = load_pushed(push, run, update.new)
    places = {entry.commit: number for number, entry in enumerate(after.events)}
    if update.old is not None and update.old not in places:
        return (
            f"run {run} only grows, by first parents: {update.new[:10]} does not go on from {update.old[:10]}, "
            "which is there now (git gate sync)"
        )
    count = 0 if update.old is None else places[update.old] + 1
    new = after.events[count:]
    return (
        against_holders(push, run, after, count, new)
        or against_message(push, after)
        or (push.acting() if push.acting is not None else "")
    )


def against_message(push: Push, run: Run) -> str:
    """Lists go by the tip's message, so that it has to say what the journal means."""
    payload = push.desk.records.objects.read(run.tip)[1]
    said, meant = payload.partition(b"\n\n")[2], run_message(run).encode("utf-8", "replace")
    why = misread(payload)
    if why:
        return f"its message {why}"
    return "" if said == meant else "its message says something else than its journal means"


def against_holders(push: Push, run: str, after: Run, count: int, new: list[RunEntry]) -> str:
    """Each stretch of new events is its holder's: the one that held the run before, then whoever claims it."""
    lease = push.before(LEASES + run)
    before = claim_before(after, count)
    for number, entry in enumerate(new, count):
        name = entry.event.name
        if name == "claimed":
            if before is not None:
                then = as_of(run, after, number)
                why = against_takeover(push, then, lease)
                if why:
                    return why
            before = None  # from here on it is the push's own claim, which comes with its lease
        elif name not in BY_ANYBODY and before is not None:
            return against_words(push, run, after, count, new)
    return against_first_lease(push, run, after, new)


def against_words(push: Push, run: str, after: Run, count: int, new: list[RunEntry]) -> str:
    """What the holder from before the push says: the lease goes on with it, or its last event tells the next link."""
    then = as_of(run, after, count)
    known = told_until(push, then, push.before(LEASES + run))
    last = next((entry.event for entry in new if entry.event.name in LETS_GO), None)
    if last is not None:
        proves = leases.is_before(last.text("reveal"), known)
        return "" if proves else f"only the holder of run {run} lets it go, and this does not prove to be it"
    moved = push.after(LEASES + run)
    if moved is None or moved == push.before(LEASES + run):
        return f"only the holder of run {run} writes its journal: its lease comes with it"
    return ""  # that it is its holder who moves the lease is judged with the lease


def against_first_lease(push: Push, run: str, after: Run, new: list[RunEntry]) -> str:
    if after.claim is None or all(entry.commit != after.claim.commit for entry in new):
        return ""
    moved = push.after(LEASES + run)
    if moved is None or parents_of(push.desk, moved)[:1] != (after.claim.commit,):
        return f"the claim {after.claim.commit[:10]} comes without its lease"
    return ""


def as_of(run: str, after: Run, count: int) -> Run:
    """The run as it was after so many of its events."""
    return fold_run(run, after.events[:count])


def claim_before(after: Run, count: int) -> Entry | None:
    """The claim that counted after so many events."""
    return as_of(after.id, after, count).claim if count else None


# the lease


def against_run_lease(push: Push, update: Update, run: str, tip: str) -> str:
    """What speaks against the move of a run's lease."""
    after = load_pushed(push, run, tip)
    if update.new is None:
        return (
            f"run {run} is gone on with: its lease goes when it is let go" if after.claim is not None else ""
        )
    said = read_lease(push.desk, run, update.new)
    if said is None:
        return f"it is no lease of run {run}"
    if after.claim is None:
        return f"nobody goes on with run {run}: a lease comes with a claim"
    why = against_run_holder(push, update, after, said) or (push.acting() if push.acting is not None else "")
    if not why:
        push.received[run] = (update.new, after)
    return why


def against_run_holder(push: Push, update: Update, run: Run, said: Lease) -> str:
    """The first lease comes with its claim, each other one with the next link."""
    above = parents_of(push.desk, update.new or "")
    claim = run.claim
    if claim is None or above[:1] != (claim.commit,):
        return "it does not stand on the claim that counts"
    if not isinstance(claim.event, Claim) or not claim.event.anchor:
        return "its claim names no chain"
    if said.beat == 0:
        old = push.before(RUNS + run.id)
        known = load_pushed(push, run.id, old).events if old is not None else []
        first = not any(entry.commit == claim.commit for entry in known)
        plain = not said.reveal and not said.anchor and len(above) == 1
        return "" if first and plain else not_the_holder(said)
    return against_link(push, update, said, told_until(push, run, update.old), above)
