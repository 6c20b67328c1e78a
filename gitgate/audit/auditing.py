"""Audit: whether what is recorded holds. Reads everything, believes nothing, writes nothing; one line a problem."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..context.desk import Desk
from ..context.remotes import remote_of
from ..document.field import nearest
from ..errors import AmbiguousGate, BrokenRecord, Failure, GateError, UnknownGate
from ..model import states, trailers
from ..model.gate import Answer, Entry, Gate
from ..model.people import address
from ..policy.book import signers_of
from ..record import headline
from ..record.fold import stages
from ..record.runs import run_message
from ..store.git.refs import LEASES, OPEN, RUNS, SESSIONS, WORK
from ..store.git.signatures import BAD, GOOD, verify
from ..store.remote.fetch import ask_refs
from .gate_checks import (
    Problem,
    Verified,
    check_delivered,
    check_enclosed,
    check_shared,
    check_work,
    look_around,
)
from .policies import check_policies

EVERY = 200
_COMMIT = re.compile(r"\b(?:commit )?([0-9a-f]{12})\b")


@dataclass(frozen=True)
class Checked:
    """A gate whose record holds, with the signed commits that stand for its events."""

    gate: Gate
    archived: bool
    signed: Mapping[str, Entry] = field(default_factory=dict)


def audit(desk: Desk, given: Sequence[str] = (), branch: str | None = None) -> Verified:
    """Check the gates and runs that `given` names (none: all), or the gates whose work is on `branch`."""
    from ..gates.archived import archived_runs, archived_tips

    done = Verified()
    is_open = open_tips(desk)
    archived = dict(archived_tips(desk))
    runs = {ref.removeprefix(RUNS): tip for ref, tip in desk.refs.under(RUNS).items()}
    ended = dict(archived_runs(desk))
    chosen = {full_id(word, {*is_open, *archived, *runs, *ended}) for word in given}
    wanted = chosen if given else {*is_open, *archived}
    found = [
        *check_all(desk, done, one_of(is_open, wanted), archived=False, branch=branch),
        *check_all(desk, done, one_of(archived, wanted), archived=True, branch=branch),
    ]
    check_signatures(desk, done, found)
    check_policies(desk, done, [checked.gate for checked in found])
    if branch is not None:
        for checked in found:
            check_resolved(done, checked.gate)
        if not found:
            refuse_unknown_branch(desk, branch)
        return done
    for gate in sorted(wanted & set(is_open) & set(archived)):
        check_twice(done, gate, is_open[gate], archived[gate])
    chosen = chosen if given else {*runs, *ended}
    check_runs(desk, done, one_of(runs, chosen))
    check_runs(desk, done, one_of(ended, chosen), archived=True)
    for run in sorted(chosen & set(runs) & set(ended)):
        check_twice(done, run, runs[run], ended[run])
    if not given:
        check_orphans(desk, done, is_open, {**archived, **ended})
        check_archive(desk, done)
    return done


def open_tips(desk: Desk) -> dict[str, str]:
    return {ref.removeprefix(OPEN): oid for ref, oid in desk.refs.under(OPEN).items()}


def one_of(tips: Mapping[str, str], wanted: set[str]) -> list[tuple[str, str]]:
    return [(gate, tip) for gate, tip in tips.items() if gate in wanted]


def full_id(given: str, known: Iterable[str]) -> str:
    """The one gate or run that `given` names, open or archived."""
    word = given.strip().lower()
    named = sorted(gate for gate in known if gate.startswith(word)) if states.is_prefix(word) else []
    if not named:
        raise UnknownGate(
            f"there is no gate and no run {given} here, open or archived", hint="git gate list --all"
        )
    if len(named) > 1:
        raise AmbiguousGate(f"{given} could be {', '.join(named[:8])}", hint="type more of the id")
    return named[0]


def check_all(
    desk: Desk, done: Verified, tips: Sequence[tuple[str, str]], *, archived: bool, branch: str | None
) -> Iterator[Checked]:
    """Every gate that can be read, after saying what is wrong with it."""
    around = look_around(desk)
    for count, (gate, tip) in enumerate(tips, 1):
        if count % EVERY == 0:
            desk.progress(f"checking gates: {count} of {len(tips)}")
        try:
            checked, problems = check_record(desk, gate, tip, archived=archived)
        except GateError as broken:
            if branch is None or branch_said(desk, tip) in (branch, None):
                done.gates += 1
                done.problems += (broken_at(gate, tip, broken),)
            continue
        if branch is not None and checked.gate.opened.work.branch != branch:
            continue
        done.gates += 1
        done.events += len(checked.gate.history)
        done.problems += tuple(problems)
        check_work(desk, done, checked.gate, around, archived=archived)
        check_enclosed(desk, done, checked.gate)
        if not archived:
            check_shared(desk, done, checked.gate, around)
            check_delivered(desk, done, checked.gate, around)
        elif not checked.gate.closed:
            done.wrong(
                gate, tip, "archive", f"it is archived, and was not closed: it is {checked.gate.state}"
            )
        yield checked


def broken_at(gate: str, tip: str, broken: GateError) -> Problem:
    """A record that cannot be read, with the commit that its error names."""
    words = broken.message.removeprefix(f"gate {gate}: ")
    found = _COMMIT.search(words)
    return Problem(gate, found[1] if found else tip, "record", words)


def branch_said(desk: Desk, tip: str) -> str | None:
    """The branch in the tip's trailers, for a record that says it nowhere else; None when not even they are there."""
    try:
        said = trailers.parse_trailers(desk.records.commit(tip).message)
    except GateError:
        return None
    return None if said is None else said.get("Branch", "")


def check_record(desk: Desk, gate: str, tip: str, *, archived: bool) -> tuple[Checked, list[Problem]]:
    """The gate folded, and each message that contradicts it. A record that breaks the rules raises."""
    if not states.is_id(gate):
        raise BrokenRecord(f"{gate!r} is no gate's id")
    problems: list[Problem] = []
    signed: dict[str, Entry] = {}
    entries = desk.records.entries(gate, tip)
    last: Gate | None = None
    for last in stages(gate, entries):
        entry = last.history[-1]
        kind, payload = desk.records.objects.read(entry.commit)
        wrong = headline.contradiction(payload, last) if kind == "commit" else "it is no commit"
        if entry.repeats:
            words = f"it is what {entry.repeats[:12]} recorded, once more; it counts for nothing"
            problems.append(Problem(gate, entry.commit, "repeated", words))
        elif wrong:
            problems.append(Problem(gate, entry.commit, "message", wrong))
        for oid in (entry.commit, *entry.parents[1:]):
            if desk.records.commit(oid).signed:
                signed[oid] = entry
    if last is None:
        raise BrokenRecord(f"gate {gate}: it has no events")
    return Checked(last, archived, signed), problems


def check_signatures(desk: Desk, done: Verified, found: Sequence[Checked]) -> None:
    """All signatures in one go; and that an answer is signed by the one whose name it bears."""
    wanted = [oid for checked in found for oid in checked.signed]
    if wanted:
        desk.progress(f"checking {len(wanted)} signatures")
    done.verdicts = verify(desk.repo.git, wanted, signers_of(desk))
    for checked in found:
        for oid, entry in checked.signed.items():
            verdict = done.verdicts[oid]
            done.signatures[verdict.word] = done.signatures.get(verdict.word, 0) + 1
            if verdict.word == BAD:
                done.wrong(checked.gate.id, oid, "signature", "its signature is bad")
            elif verdict.word == GOOD and is_another(entry, oid, verdict.signer):
                by = getattr(entry.event, "by", "")
                done.wrong(
                    checked.gate.id,
                    oid,
                    "signature",
                    f"it is signed by {verdict.signer}, but in the name of {by}",
                )


def is_another(entry: Entry, oid: str, signer: str) -> bool:
    """Whether an answer bears another's name than its signature's. What is recorded again is signed by whoever did that."""
    if not isinstance(entry.event, Answer) or (len(entry.parents) > 1 and oid == entry.commit):
        return False
    by = entry.event.by
    return "@" in address(signer) and "<" in by and address(signer) != address(by)


def check_resolved(done: Verified, gate: Gate) -> None:
    """For a check of a branch: nothing may still be open about it."""
    reasons = {
        "awaiting": "it awaits an answer",
        "failed": "its answer could not be told to the agent",
        "expired": "nobody answered it in time",
    }
    if gate.state in reasons:
        done.wrong(
            gate.id, gate.tip, "branch", f"{reasons[gate.state]}: {trailers.one_line(gate.opened.title)}"
        )


def check_twice(done: Verified, gate: str, tip: str, archived: str) -> None:
    if tip == archived:
        done.note(gate, tip, "duplicate", "it is archived, and its open ref not yet gone: git gate archive")
    else:
        done.wrong(gate, tip, "duplicate", f"it is archived ({archived[:12]}), and open again: git gate sync")


def check_archive(desk: Desk, done: Verified) -> None:
    """Every fold keeps all that the one before it has, ours and those of remotes."""
    from ..store.records.archive import load_fold, shelves

    for shelf in shelves(desk.repo):
        oid = shelf.fold
        while oid:
            try:
                load_fold(desk.records, oid)
                oid = next(iter(desk.records.commit(oid).parents), "")
            except GateError as broken:
                done.wrong(shelf.month, oid, "archive", broken.message)
                break


def check_runs(
    desk: Desk, done: Verified, tips: Sequence[tuple[str, str]], *, archived: bool = False
) -> None:
    """The journal of each run: its chain, its events, and what its message says; one that is archived has ended."""
    from ..store.records.journal import Journals

    for name, tip in tips:
        done.runs += 1
        try:
            run = Journals(desk.repo, desk.records).load(name, tip)
        except GateError as broken:
            done.wrong(name, tip, "journal", broken.message)
            continue
        done.events += len(run.events)
        if archived and not run.closed:
            done.wrong(name, tip, "archive", f"it is archived, and has not ended: it is {run.state}")
        if desk.records.commit(tip).message != run_message(run):
            done.wrong(run.id, tip, "message", "its message says something else than its journal means")


def check_orphans(
    desk: Desk, done: Verified, is_open: Mapping[str, str], archived: Mapping[str, str]
) -> None:
    """Refs that belong to no gate; one that was opened while the others were checked is a gate, too."""
    beside = desk.refs.under(WORK, SESSIONS, LEASES)
    known = {*is_open, *open_tips(desk), *(ref.removeprefix(RUNS) for ref in desk.refs.under(RUNS))}
    for ref, oid in beside.items():
        folder, _, gate = ref.rpartition("/")
        if gate in known:
            continue
        if gate in archived:
            done.note(gate, oid, "orphan", f"{folder}/{gate} is left of an archived gate")
        else:
            done.wrong(gate, oid, "orphan", f"{folder}/{gate} belongs to no gate here")


def refuse_unknown_branch(desk: Desk, branch: str) -> None:
    """A branch without gates holds; a name that no branch has is a mistake, and a check of it would pass everything."""
    heads, tracking = "refs/heads/", "refs/remotes/"
    refs = desk.refs.under(heads, tracking)
    named = {ref.removeprefix(heads) for ref in refs if ref.startswith(heads)}
    named |= {ref.removeprefix(tracking).partition("/")[2] for ref in refs if ref.startswith(tracking)}
    # A job checks a merge out, and has no ref of the branch that it is about.
    if branch in named or branch == desk.settings.env.get("GITHUB_HEAD_REF"):
        return
    remote = remote_of(desk)
    if remote is not None and ask_refs(desk.repo, remote, [heads + branch], timeout=20):
        return
    close = nearest(branch, sorted(named))
    raise Failure(
        f"there is no branch {branch}, here or at {remote or 'a remote'}, and no gate of it",
        hint=f"git gate verify --branch {close}" if close else "git branch --all",
    )


def refuse_unsynced(desk: Desk) -> None:
    """A check that passes because nothing was ever fetched would pass everything."""
    from ..context.remotes import never_synced

    remote = never_synced(desk)
    if remote is not None:
        raise Failure(f"this clone has never synced its gates with {remote}", hint="git gate sync")
