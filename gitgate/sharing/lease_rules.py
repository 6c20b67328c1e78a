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
    """What speaks against the claims and outcomes that a push brings; empty when nothing does."""
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
    """The claim that counted where the record was before the push."""
    found: Entry | None = None
    for entry in gate.history:
        if isinstance(entry.event, Claim | Outcome):
            found = entry if isinstance(entry.event, Claim) else None
        if entry.commit == old:
            return found
    return None


def against_next(push: Push, gate: Gate, before: Entry, lease: str | None, act: Entry) -> str:
    """What follows a claim that counts: its own outcome, or the claim of somebody who saw its lease lapse."""
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
    """The gate as far as leases are concerned, with that claim."""
    from ..document import replace

    return replace(gate, claim=claim)


def told_until(push: Push, gate: Leased, lease: str | None) -> Link:
    """How far the chain of the claim that counts was told here."""
    chain = chain_of(gate) or Link("", 0)
    if lease is None or gate.claim is None or parents_of(push.desk, lease)[:1] != (gate.claim.commit,):
        return chain
    return proven(push.desk, gate.id, lease, chain) or chain


def against_takeover(push: Push, gate: Leased, lease: str | None) -> str:
    """A claim in place of another one, or of a waiter: its lease has to have stood still for its whole term."""
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
    """A claim where a waiter has the lease: the waiter's own, with its outcome, or one that comes when that has lapsed."""
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
    """What speaks against a lease's move; empty when nothing does."""
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
    """A lease goes with the outcome of its claim, or with its gate; one that is left is anybody's to take away."""
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
    """Whether it is the lease of a claim that is over."""
    above = parents_of(push.desk, lease)[:1]
    return any((entry.commit,) == above and isinstance(entry.event, Claim) for entry in gate.history)


def ends_here(push: Push, gate: Gate) -> bool:
    """Whether this push brings an outcome for the gate: that was judged with the record."""
    new = fresh(gate, push.before(OPEN + gate.id))
    return any(isinstance(entry.event, Outcome) for entry in new)


def against_holder(push: Push, update: Update, gate: Gate, said: Lease) -> str:
    """The lease of the claim that counts: its first one comes with the claim, each other one with the next link."""
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
    """It goes on from the lease that is there, and names the one that began the chain as its second parent."""
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
    """A waiter's lease: made where there is none, renewed by its waiter, replaced when that one is gone."""
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
    """From now on the terms of these leases run. What is there now is looked up: whoever pushes may name another value, and then
    git moves nothing. An old link of a chain would be a sign of life otherwise.
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
    """The run with this tip, read once."""
    if (run, tip) not in push.runs:
        push.runs[run, tip] = Journals(push.desk.repo, push.desk.records).load(run, tip)
    return push.runs[run, tip]


def against_run(push: Push, update: Update, run: str) -> str:
    """What speaks against a journal's move; empty when nothing does."""
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
    """What speaks against the events that a journal gains."""
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
    """The run whose step this one says that it is, as this push leaves it, or as the archive has it."""
    parent = run.called_by[0]
    known = push.archived.get(parent)
    folded = push.folded_by().get(parent)
    tip = push.after(RUNS + parent) or push.before(RUNS + parent) or (folded[0] if folded else None)
    tip = tip or (known.tip if known is not None and known.run else None)
    return load_pushed(push, parent, tip) if tip is not None else None


def against_talk(after: Run, new: list[RunEntry]) -> str:
    """What anybody may say of a run leaves room for what its holder has to say, and for its end."""
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
    """What speaks against the work of a run: while it waits, it is what its journal names."""
    rest = load_pushed(push, run, tip).rest
    named = rest.text("work") if rest is not None else ""
    if update.new is None:
        return f"run {run} waits: its work stays with it" if named else ""
    if update.new != named:
        return f"run {run} names {named[:10] or 'no work'} as its work, and this is {update.new[:10]}"
    return ""


def against_leaving(push: Push, update: Update, run: str) -> str:
    """A journal goes only once the archive here had it, as it is, before this push."""
    known = push.archived.get(run)
    if known is None or not known.run or update.old != known.tip:
        return f"run {run} is kept: a journal is not deleted unless the archive has it as it is (git gate archive)"
    return ""


def against_folded(push: Push, run: str, tip: str) -> str:
    """A run that goes into the archive: ended, and as it is here; one that was never here is judged as if it came now."""
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
    """Lists go by the tip's message, so that it has to say what the journal means."""
    commit = push.desk.records.commit(run.tip)
    why = misread(commit.encoding, commit.body)
    if why:
        return f"its message {why}"
    meant = run_message(run).encode("utf-8", "replace")
    return "" if commit.body == meant else "its message says something else than its journal means"


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
