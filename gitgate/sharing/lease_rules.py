"""Sharing: what a shared repository takes of leases, claims, outcomes and runs: who holds what, and for how long.

A lease is moved by its holder, who proves it by the next link of its chain, or by a new claim. A claim that counts is
taken over only when its lease has lapsed: by this repository's clock, from when it received the last renewal.

A run's journal only grows, by events that the table has, from their holder. Who goes on with a run proves it as the holder
of a gate does, or by the link in the event that lets the run go. Anybody who may act may say that a run is to stop, or claim
one whose lease has lapsed.
"""

from __future__ import annotations

from ..errors import BrokenRecord
from ..exchange.entering import Push, fresh
from ..gates.leases import age_of, chain_of, parents_of, position, proven, read_lease, sightings, term_of
from ..model import RESUMING, STOPPING, misread
from ..model import lease as leases
from ..model.gate import Claim, Entry, Gate, Leased, Outcome
from ..model.lease import Lease, Link
from ..record.runs import (
    BY_ANYBODY,
    LETS_GO,
    MOST_EVENTS,
    MOST_SIGNAL,
    MOST_SPARE,
    MOST_TALK,
    OF_NO_CONSEQUENCE,
    Run,
    RunEntry,
    against_caller,
    dump_run_event,
    fold_run,
    run_message,
)
from ..store.git.refs import LEASES, OPEN, RUNS, Update
from ..store.records.journal import Journals


def against_record(push: Push, gate: Gate, old: str | None) -> str:
    """Return why the claims and outcomes that a push brings are refused; empty when they are accepted."""
    acts = [entry for entry in fresh(gate, old) if isinstance(entry.event, Claim | Outcome)]
    if not acts:
        return ""
    before = counting_claim(gate, old)
    lease = push.before(LEASES + gate.id)
    if before is not None:
        why = against_next(push, gate, before, lease, acts[0])
    else:
        why = against_waiter(push, gate, lease, acts) if lease is not None else ""
    if why or gate.state != RESUMING or gate.claim is None:
        return why
    after = push.after(LEASES + gate.id)
    if after is None or parents_of(push.desk, after)[:1] != (gate.claim.commit,):
        return f"the claim {gate.claim.commit[:10]} comes without its lease"
    return ""


def counting_claim(gate: Gate, old: str | None) -> Entry | None:
    """Return the claim that counted where the record was before the push; None where none did."""
    found: Entry | None = None
    for entry in gate.history:
        if isinstance(entry.event, Claim | Outcome):
            found = entry if isinstance(entry.event, Claim) else None
        if entry.commit == old:
            return found
    return None


def against_next(push: Push, gate: Gate, before: Entry, lease: str | None, act: Entry) -> str:
    """Return why the event that follows a claim that counts is refused; empty when it is accepted.

    Accepted are the claim's own outcome, proven by the next link, and the claim of somebody who saw its lease
    lapse.
    """
    claim = before.event
    if not isinstance(claim, Claim):
        return ""
    then = at_claim(gate, before)
    if isinstance(act.event, Claim):
        return against_takeover(push, then, lease)
    if not isinstance(act.event, Outcome) or not claim.anchor:
        return ""
    known = told_until(push, then, lease)
    if not leases.is_before(act.event.reveal, known):
        return f"only the holder of the claim {before.commit[:10]} says what came of it, and this does not prove to be it"
    return ""


def at_claim(gate: Gate, claim: Entry) -> Gate:
    """Return the gate with this claim, for the functions that read leases."""
    from ..document import replace

    return replace(gate, claim=claim)


def told_until(push: Push, gate: Leased, lease: str | None) -> Link:
    """Return the last link that was revealed here in the chain of the claim that counts."""
    chain = chain_of(gate) or Link("", 0)
    if lease is None or gate.claim is None or parents_of(push.desk, lease)[:1] != (gate.claim.commit,):
        return chain
    return proven(push.desk, gate.id, lease, chain) or chain


def against_takeover(push: Push, gate: Leased, lease: str | None) -> str:
    """Return why a claim in place of another one, or of a waiter, is refused; empty when it is accepted.

    The lease that it replaces must not have moved for its whole term.
    """
    found = None if lease is None else (lease, read_lease(push.desk, gate.id, lease))
    said = found[1] if found is not None else None
    if said is not None and said.over:
        return ""
    term = max(term_of(gate), float(said.term) if said is not None else 0.0)
    age = age_of(push.desk, gate.id)
    seen = sightings(push.desk).look(gate.id, *position(push.desk, gate, found), age)
    if seen.unmoved >= term:
        return ""
    who = said.runner if said is not None else "a runner"
    return f"{who} acts on gate {gate.id}: it gave a sign of life {seen.unmoved:.0f} s ago, and has {term:.0f} s for the next"


def against_waiter(push: Push, gate: Gate, lease: str, acts: list[Entry]) -> str:
    """Return why a claim is refused while a waiter has the lease; empty when it is accepted.

    Accepted are the waiter's own claim with its outcome, and a claim that comes when the waiter's lease has
    lapsed.
    """
    if is_left_over(push, gate, lease):
        return ""
    then = without_claim(gate)
    known = proven(push.desk, gate.id, lease, None)
    outcomes = [entry.event for entry in acts if isinstance(entry.event, Outcome)]
    if known is not None and outcomes and leases.is_before(outcomes[0].reveal, known):
        return ""
    return against_takeover(push, then, lease)


def without_claim(gate: Gate) -> Gate:
    from ..document import replace

    return replace(gate, claim=None)


# the lease itself


def against_lease(push: Push, update: Update, gate: str) -> str:
    """Return why a push may not move a gate's lease; empty when it may."""
    tip = push.after(OPEN + gate)
    if update.new is None:
        return against_end(push, update, gate, tip)
    said = read_lease(push.desk, gate, update.new)
    if said is None:
        return f"it is no lease of gate {gate}"
    if tip is None:
        return f"there is no open gate {gate} to act on"
    after = push.gate(gate, tip)
    if after.state == RESUMING and after.claim is not None:
        why = against_holder(push, update, after, said)
    else:
        why = against_attendance(push, update, after, said)
    why = why or (push.acting() if push.acting is not None else "")
    if not why:
        push.received[gate] = (update.new, after)
    return why


def against_end(push: Push, update: Update, gate: str, tip: str | None) -> str:
    """Return why a push may not delete a gate's lease; empty when it may.

    A lease goes with the outcome of its claim, or with its gate. Anybody may delete a lease that is left over.
    """
    if tip is None or update.old is None:
        return ""
    after = push.gate(gate, tip)
    if after.state == RESUMING:
        return f"gate {gate} is being acted on: its lease goes with the outcome"
    if after.closed or ends_here(push, after) or is_left_over(push, after, update.old):
        return ""
    said = read_lease(push.desk, gate, update.old)
    return "" if said is None or said.over else f"gate {gate} is waited for: the lease is its waiter's"


def is_left_over(push: Push, gate: Gate, lease: str) -> bool:
    """Return whether the lease belongs to a claim that is over."""
    above = parents_of(push.desk, lease)[:1]
    return any((entry.commit,) == above and isinstance(entry.event, Claim) for entry in gate.history)


def ends_here(push: Push, gate: Gate) -> bool:
    """Return whether this push brings an outcome for the gate. That outcome was judged with the record."""
    new = fresh(gate, push.before(OPEN + gate.id))
    return any(isinstance(entry.event, Outcome) for entry in new)


def against_holder(push: Push, update: Update, gate: Gate, said: Lease) -> str:
    """Return why the lease of the claim that counts may not move; empty when it may.

    The first lease comes with the claim, and each later one with the next link of the chain.
    """
    claim, chain = gate.claim, chain_of(gate)
    above = parents_of(push.desk, update.new or "")
    if claim is None or above[:1] != (claim.commit,):
        return "it does not stand on the claim that counts"
    if chain is None:
        return ""  # a claim of an older version, which has no chain
    if said.beat == 0:
        new = fresh(gate, push.before(OPEN + gate.id))
        why = "" if any(entry.commit == claim.commit for entry in new) else not_the_holder(said)
        return why or (
            "" if not said.reveal and not said.anchor and len(above) == 1 else not_the_holder(said)
        )
    return against_link(push, update, said, told_until(push, gate, update.old), above)


def against_link(push: Push, update: Update, said: Lease, known: Link, above: tuple[str, ...]) -> str:
    """Return why a renewed lease is refused; empty when it is accepted.

    It must go on from the lease that is here, and name the lease that began the chain as its second parent.
    """
    if not leases.leads_to(said.reveal, said.beat, known):
        return not_the_holder(said)
    if update.old is None or parents_of(push.desk, update.old)[:1] != above[:1]:
        return ""
    old = read_lease(push.desk, said.gate, update.old)
    began = (update.old,) if old is not None and old.anchor else parents_of(push.desk, update.old)[1:2]
    return "" if above[1:] == began else "it does not name the lease that began its chain"


def not_the_holder(said: Lease) -> str:
    return f"only its holder moves a lease, and this does not prove to be {said.runner or 'the runner'}"


def against_attendance(push: Push, update: Update, gate: Gate, said: Lease) -> str:
    """Return why a waiter's lease is refused; empty when it is accepted.

    It may be made where there is none, renewed by its waiter, and replaced when that waiter is gone.
    """
    if gate.opened.delivery != "wait" or gate.closed:
        return f"nobody acts on gate {gate.id}: a lease comes with a claim"
    above = parents_of(push.desk, update.new or "")
    if all((entry.commit,) != above[:1] for entry in gate.history):
        return "it does not stand on the record"
    if update.old is None:
        return "" if said.beat == 0 else "a lease begins at its beginning"
    then = without_claim(gate)
    known = proven(push.desk, gate.id, update.old, None)
    if known is not None and parents_of(push.desk, update.old)[:1] == above[:1] and said.reveal:
        return against_link(push, update, said, known, above)
    return against_takeover(push, then, update.old)


def note_received(push: Push) -> None:
    """Note that the terms of the accepted leases begin now.

    The present values of the refs are read here: whoever pushes may name other ones, and then git moves
    nothing. Without this check, an old link of a chain would count as a sign of life.
    """
    named = {update.ref: update.old for update in push.updates}
    for gate, (oid, after) in push.received.items():
        if push.here(LEASES + gate) != named[LEASES + gate]:
            continue
        try:
            found = (oid, read_lease(push.desk, gate, oid))
            sightings(push.desk).note(gate, *position(push.desk, after, found), received=True)
        except (OSError, BrokenRecord) as unnoted:
            push.desk.progress(f"the lease of gate {gate} is watched from its next look on: {unnoted}")


def load_pushed(push: Push, run: str, tip: str) -> Run:
    """Load the run with this tip, once for each push."""
    if (run, tip) not in push.runs:
        push.runs[run, tip] = Journals(push.desk.repo, push.desk.records).load(run, tip)
    return push.runs[run, tip]


def against_run(push: Push, update: Update, run: str) -> str:
    """Return why a push may not move a run's journal; empty when it may."""
    if update.new is None:
        return against_leaving(push, update, run)
    if run in push.folded_by():
        return f"run {run} is archived by this very push: nothing is written to it as well"
    known = push.archived.get(run) if update.old is None else None
    if known is not None:
        return (
            f"run {run} is over, and in the archive of {known.month}: it does not come back (git gate sync)"
        )
    return against_events(push, update, run)


def against_events(push: Push, update: Update, run: str) -> str:
    """Return why the events that a journal gains are refused; empty when they are accepted."""
    tip = str(update.new)
    after = load_pushed(push, run, tip)
    places = {entry.commit: number for number, entry in enumerate(after.events)}
    if update.old is not None and update.old not in places:
        return (
            f"run {run} only grows, by first parents: {tip[:10]} does not go on from {update.old[:10]}, "
            "which is there now (git gate sync)"
        )
    count = 0 if update.old is None else places[update.old] + 1
    new = after.events[count:]
    return (
        (against_caller(after, caller_of(push, after)) if count == 0 and after.called_by[0] else "")
        or against_holders(push, run, after, count, new)
        or against_talk(after, new)
        or against_message(push, after)
        or (push.acting() if push.acting is not None else "")
    )


def caller_of(push: Push, run: Run) -> Run | None:
    """Return the run that called this one, as this push leaves it, or as the archive has it; None where neither
    has it.
    """
    parent = run.called_by[0]
    known = push.archived.get(parent)
    folded = push.folded_by().get(parent)
    tip = push.after(RUNS + parent) or push.before(RUNS + parent) or (folded[0] if folded else None)
    tip = tip or (known.tip if known is not None and known.run else None)
    return load_pushed(push, parent, tip) if tip is not None else None


def against_talk(after: Run, new: list[RunEntry]) -> str:
    """Return why signals and other words that anybody may write to a run are refused; empty when they are
    accepted.

    They must leave room in the journal for the events of its holder, and for its end.
    """
    said = [entry.event for entry in new if entry.event.name in OF_NO_CONSEQUENCE]
    if not said or any(entry.event.name not in (*OF_NO_CONSEQUENCE, STOPPING) for entry in new):
        return ""
    if any(len(dump_run_event(event)) > MOST_SIGNAL + (1 << 12) for event in said):
        return f"what is said to run {after.id} has at most {MOST_SIGNAL:,} bytes each"
    every = (entry.event for entry in after.events if entry.event.name in OF_NO_CONSEQUENCE)
    full = len(after.events) > MOST_EVENTS - 2 * MOST_SPARE
    if full or sum(len(dump_run_event(event)) for event in every) > MOST_TALK:
        return f"run {after.id} has no room for more that is not its holder's"
    return ""


def against_run_work(push: Push, update: Update, run: str, tip: str) -> str:
    """Return why a push may not move the work of a run; empty when it may. While the run waits, its journal
    names the work.
    """
    rest = load_pushed(push, run, tip).rest
    named = rest.text("work") if rest is not None else ""
    if update.new is None:
        return f"run {run} waits: its work stays with it" if named else ""
    if update.new != named:
        return f"run {run} names {named[:10] or 'no work'} as its work, and this is {update.new[:10]}"
    return ""


def against_leaving(push: Push, update: Update, run: str) -> str:
    """Return why a push may not delete a journal; empty when it may.

    The archive here must have had the journal, as it is, before this push.
    """
    known = push.archived.get(run)
    if known is None or not known.run or update.old != known.tip:
        return f"run {run} is kept: a journal is not deleted unless the archive has it as it is (git gate archive)"
    return ""


def against_folded(push: Push, run: str, tip: str) -> str:
    """Return why a run may not go into the archive; empty when it may.

    The run must have ended, and be as it is here. A run that was never here is judged as if it were pushed now.
    """
    if (known := push.archived.get(run)) is not None:
        return f"run {run} is in the archive of {known.month} already (git gate sync)"
    if len(push.folded_by().get(run, ())) > 1:
        return f"run {run} is archived twice by this push"
    after = load_pushed(push, run, tip)
    if not after.closed:
        return f"run {run} is {after.state}, not over: only a run that has ended is archived"
    caller = caller_of(push, after) if after.called_by[0] else None
    if caller is not None and not caller.closed:
        return f"run {run} is a step of run {caller.id}, which is {caller.state}: it is archived with that one, or after it"
    here = push.here(RUNS + run)
    if here is None:
        return against_events(push, Update(None, tip, RUNS + run), run)
    if here != tip:
        return f"run {run} is another one here: {tip[:10]} is not {here[:10]}, which is there now (git gate sync)"
    return ""


def against_message(push: Push, run: Run) -> str:
    """Return why the message of a journal's tip is refused. Lists read it, so that it must say what the journal
    means.
    """
    commit = push.desk.records.commit(run.tip)
    why = misread(commit.encoding, commit.body)
    if why:
        return f"its message {why}"
    meant = run_message(run).encode("utf-8", "replace")
    return "" if commit.body == meant else "its message says something else than its journal means"


def against_holders(push: Push, run: str, after: Run, count: int, new: list[RunEntry]) -> str:
    """Return why new events of a journal are refused because they are not their holder's; empty when they are
    accepted.

    The first events belong to the holder from before the push, the later ones to whoever claims the run in it.
    """
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
    """Return why events of the holder from before the push are refused; empty when they are accepted.

    The run's lease must move with them, or the event that lets the run go must reveal the next link.
    """
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
    """Return the run as it was after its first `count` events."""
    return fold_run(run, after.events[:count])


def claim_before(after: Run, count: int) -> Entry | None:
    """Return the claim that counted after the run's first `count` events; None where none did."""
    return as_of(after.id, after, count).claim if count else None


# the lease


def against_run_lease(push: Push, update: Update, run: str, tip: str) -> str:
    """Return why a push may not move a run's lease; empty when it may."""
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
    """Return why a run's lease is refused as not its holder's; empty when it is accepted.

    The first lease comes with its claim, and each later one with the next link of the chain.
    """
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
