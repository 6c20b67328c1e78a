"""Audit: whether what is recorded holds, each gate by what its record, its work and its remote say. Reads everything, believes
nothing, writes nothing; one line a problem.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from .. import model, record
from ..context import Desk
from ..context.machine import host_name
from ..context.targets import never_synced, remote_of
from ..document import nearest
from ..errors import AmbiguousGate, BrokenRecord, Failure, GateError, MissingExtra, UnknownGate
from ..model import address
from ..model.gate import Answer, Entry, Gate, Work
from ..policy import signers_of
from ..questions.types import read_value, type_of
from ..record.events import original, reconcile, stages
from ..record.runs import Run, against_caller, run_message
from ..store.git.refs import LEASES, OPEN, RUNS, SESSIONS, WORK
from ..store.git.signatures import BAD, GOOD, verify
from ..store.remote.fetch import ask_refs, ask_tips
from . import Problem, Verified, check_policies
from .gone import check_gone

HEADS = "refs/heads/"


@dataclass(frozen=True)
class Around:
    """Surroundings of the gates in this repository, listed once: this machine and place, the works, and a remote's
    gates, by gate.
    """

    host: str
    place: str
    works: Mapping[str, str]
    remote: str | None
    theirs: Mapping[str, str]


def look_around(desk: Desk) -> Around:
    from ..store.remote import tracking_base

    remote = remote_of(desk)
    base = f"{tracking_base(remote)}open/" if remote is not None else ""
    works = {ref.removeprefix(WORK): oid for ref, oid in desk.refs.under(WORK).items()}
    theirs = {ref.removeprefix(base): oid for ref, oid in desk.refs.under(base).items()} if base else {}
    return Around(host_name(), str(desk.repo.place), works, remote, theirs)


def check_enclosed(desk: Desk, done: Verified, gate: Gate) -> None:
    """Check the parts that no list and no decision reads: attachments, and forms against their schema."""
    for name in gate.opened.attachments:
        try:
            desk.records.attachment(gate, name)
        except GateError as absent:
            done.wrong(
                gate.id,
                gate.history[0].commit,
                "attachment",
                absent.words_without(f"gate {gate.id}"),
            )
    forms = [question for question in gate.opened.questions if type_of(question).has_schema]
    for entry in gate.history:
        if forms and isinstance(entry.event, Answer):
            for question in forms:
                try:
                    read_value(question, entry.event.values[question.key])
                except MissingExtra as missing:
                    done.note(gate.id, entry.commit, "form", missing.message)
                except GateError as wrong:
                    done.wrong(gate.id, entry.commit, "form", wrong.message)


def check_work(desk: Desk, done: Verified, gate: Gate, around: Around, *, archived: bool) -> None:
    """The work's ref, and base ← staged ← work as the question names them."""
    work, opened = gate.opened.work, gate.history[0].commit
    ref = None if archived else around.works.get(gate.id)
    if ref is not None and ref != work.commit:
        done.wrong(
            gate.id, ref, "work", f"{WORK}{gate.id} is not the work that the question names ({work.commit})"
        )
    if work.commit is None:
        return
    asked = gate.opened.asked
    here = (around.host, around.place) == (asked.host, asked.directory)
    if ref is None and here and not archived:
        done.wrong(
            gate.id, work.commit, "work", f"{WORK}{gate.id} is gone: git may delete the work at any time"
        )
    try:
        wrong = wrong_shape(desk, gate)
    except BrokenRecord:
        done.note(gate.id, work.commit, "work", "its work is not in this repository")
    else:
        if wrong:
            done.wrong(gate.id, opened, "work", wrong)


def is_empty(desk: Desk, work: Work) -> bool:
    """Return whether the saved work consists of empty trees, as it does in a repository without any commit."""
    from ..store.work import EMPTY_TREE

    trees = {desk.records.commit(name).tree for name in (work.staged, work.commit) if name}
    return trees <= set(EMPTY_TREE.values())


def wrong_shape(desk: Desk, gate: Gate) -> str:
    work = gate.opened.work
    parents = desk.records.commit(work.commit or "").parents
    if not work.dirty:
        clean = work.base == work.staged == work.commit or (work.base is None and is_empty(desk, work))
        return "" if clean else "it says that nothing was uncommitted, but names other work than its base"
    if parents != (work.staged,):
        return f"its work does not stand on what it says was staged ({(work.staged or 'nothing')[:12]})"
    below = desk.records.commit(work.staged or "").parents
    if work.base is not None and below[:1] != (work.base,):
        return f"what was staged does not stand on the base that it names ({work.base[:12]})"
    return ""


def check_shared(desk: Desk, done: Verified, gate: Gate, around: Around) -> None:
    """Against what the remote had at the last sync: its record has to go on from ours, or ours from its."""
    remote, theirs = around.remote, around.theirs.get(gate.id)
    if theirs is None or theirs == gate.tip:
        return
    try:
        shared = desk.records.load(gate.id, theirs).history
        plan = reconcile(gate.history, shared)
    except GateError as broken:
        done.wrong(gate.id, theirs, "shared", f"what {remote} has of it is broken: {broken.message}")
        return
    if plan.keep != "remote" or any(entry.commit == gate.tip for entry in shared):
        return
    again = {parent for entry in shared for parent in entry.parents[1:]}
    known = {entry.commit for entry in shared}
    for entry in gate.history:
        if entry.commit in known:
            continue
        if original(entry) in again:
            words = (
                f"{remote} counts it only after something else: that was slipped in before it, or was first"
            )
        else:
            words = f"{remote} has it not: it was dropped there, or both sides went on"
        done.wrong(
            gate.id, entry.commit, "shared", f"{entry.name}: {words}; git gate sync brings them together"
        )


def check_delivered(desk: Desk, done: Verified, gate: Gate, around: Around) -> None:
    """Check that the agent's commits are on the branch that its outcome names: a server may be killed between the two.

    A branch that was deleted, rewritten or squashed has a history of its own, and is not reported; nor is one that
    had the commits, as far as is known here. A branch at its old commit may have been reset elsewhere, so it gets a
    note and is no problem.
    """
    said = gate.outcome
    if said is None or not said.branch or not said.commits:
        return
    shared = around.remote if gate.id in around.theirs else None
    made, ref = said.commits[-1], f"refs/remotes/{shared}/{said.branch}" if shared else HEADS + said.branch
    if not stays_behind(desk, gate, desk.refs.get(ref), made) or made in past_of(desk, ref):
        return
    tip = where_now(desk, shared, said.branch) if shared else desk.refs.get(ref)
    if tip is not None and stays_behind(desk, gate, tip, made):
        mend = (
            f"git push {shared} {made}:{HEADS}{said.branch}"
            if shared
            else f"git update-ref {ref} {made} {tip}"
        )
        words = f"{said.branch} is where it was before its outcome, and has not got {made[:12]}; if nobody put it back: {mend}"
        done.note(gate.id, gate.tip, "branch", words)


def check_unread(desk: Desk, done: Verified, gates: Collection[str]) -> None:
    """The gates that the remote has open and that are not here: a sync leaves there what it cannot read."""
    if not gates:
        return
    around = look_around(desk)
    for gate in sorted(set(gates) & set(around.theirs)):
        try:
            desk.records.load(gate, around.theirs[gate])
        except GateError as broken:
            done.gates += 1
            words = f"{around.remote} has it, and it is not here since it cannot be read: {broken.message}"
            done.wrong(gate, around.theirs[gate], "shared", words)
        else:
            done.note(
                gate,
                around.theirs[gate],
                "shared",
                f"{around.remote} has it, and it is not here: git gate sync",
            )


def stays_behind(desk: Desk, gate: Gate, tip: str | None, made: str) -> bool:
    from ..store.work.commits import is_ancestor

    if tip is None or tip == made:
        return False
    return tip == gate.opened.work.base or is_ancestor(desk.repo.git, tip, made)


def past_of(desk: Desk, ref: str) -> list[str]:
    """Return the earlier commits of a branch, as far as this repository's reflog has them."""
    if not desk.repo.git.ok("reflog", "exists", ref):  # of this very ref; git would show that of another one
        return []
    shown = desk.repo.git.run("reflog", "show", "--format=%H", ref, check=False, completes=True)
    return shown.out.decode().split()


def where_now(desk: Desk, remote: str, branch: str) -> str | None:
    """Ask the remote for the branch's commit now: the last fetch may be old. None also where the remote cannot be
    asked.
    """
    try:
        return ask_tips(desk.repo, remote, [HEADS + branch], timeout=20).get(HEADS + branch)
    except GateError:
        return None


EVERY = 200
_COMMIT = re.compile(r"\b(?:commit )?([0-9a-f]{12})\b")


@dataclass(frozen=True)
class Checked:
    """A gate whose record holds, with the signed commits that stand for its events."""

    gate: Gate
    archived: bool
    signed: Mapping[str, Entry] = field(default_factory=dict)


def audit(
    desk: Desk, given: Sequence[str] = (), branch: str | None = None, *, noted: bool = True
) -> Verified:
    """Check the gates and runs that `given` names (none: all), or the gates whose work is on `branch`. `noted`: also by what this clone
    alone remembers.
    """
    from ..gates.history import archived_runs, archived_tips

    done = Verified()
    is_open = open_tips(desk)
    archived = dict(archived_tips(desk))
    runs = {ref.removeprefix(RUNS): tip for ref, tip in desk.refs.under(RUNS).items()}
    ended = dict(archived_runs(desk))
    theirs = look_around(desk).theirs
    chosen = {full_id(word, {*is_open, *archived, *runs, *ended, *theirs}) for word in given}
    wanted = chosen if given else {*is_open, *archived}
    found = [
        *check_all(desk, done, chosen_tips(is_open, wanted), archived=False, branch=branch),
        *check_all(desk, done, chosen_tips(archived, wanted), archived=True, branch=branch),
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
    check_runs(desk, done, chosen_tips(runs, chosen))
    check_runs(desk, done, chosen_tips(ended, chosen), archived=True)
    for run in sorted(chosen & set(runs) & set(ended)):
        check_twice(done, run, runs[run], ended[run])
    check_unread(desk, done, {*(chosen if given else theirs)} - {*is_open, *archived})
    if noted:
        check_gone(desk, done, chosen if given else ())
    if not given:
        check_orphans(desk, done, is_open, {**archived, **ended})
        check_archive(desk, done)
    return done


def open_tips(desk: Desk) -> dict[str, str]:
    return {ref.removeprefix(OPEN): oid for ref, oid in desk.refs.under(OPEN).items()}


def chosen_tips(tips: Mapping[str, str], wanted: set[str]) -> list[tuple[str, str]]:
    return [(gate, tip) for gate, tip in tips.items() if gate in wanted]


def full_id(given: str, known: Iterable[str]) -> str:
    """The one gate or run that `given` names, open or archived."""
    word = given.strip().lower()
    named = sorted(gate for gate in known if gate.startswith(word)) if model.is_prefix(word) else []
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
    words = broken.words_without(f"gate {gate}")
    found = _COMMIT.search(words)
    return Problem(gate, found[1] if found else tip, "record", words)


def branch_said(desk: Desk, tip: str) -> str | None:
    """The branch in the tip's trailers, for a record that says it nowhere else; None when not even they are there."""
    try:
        said = model.parse_trailers(desk.records.commit(tip).message)
    except GateError:
        return None
    return None if said is None else said.get("Branch", "")


def check_record(desk: Desk, gate: str, tip: str, *, archived: bool) -> tuple[Checked, list[Problem]]:
    """The gate folded, and each message that contradicts it. A record that breaks the rules raises."""
    if not model.is_id(gate):
        raise BrokenRecord(f"{gate!r} is no gate's id")
    problems: list[Problem] = []
    signed: dict[str, Entry] = {}
    entries = desk.records.entries(gate, tip)
    last: Gate | None = None
    for last in stages(gate, entries):
        entry = last.history[-1]
        wrong = record.contradiction(desk.records.commit(entry.commit), last)
        if entry.repeats:
            words = f"it is what {entry.repeats[:12]} recorded, once more; it counts for nothing"
            problems.append(Problem(gate, entry.commit, "repeated", words))
        elif wrong:
            problems.append(Problem(gate, entry.commit, "message", wrong))
        for oid in (entry.commit, *entry.parents[1:]):
            if desk.records.commit(oid).signed:
                signed[oid] = entry
    if last is None:
        raise BrokenRecord("it has no events", about=f"gate {gate}")
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
    """Return whether an answer bears another name than its signature. An answer that is recorded again is signed by
    whoever recorded it.
    """
    if not isinstance(entry.event, Answer) or (len(entry.parents) > 1 and oid == entry.commit):
        return False
    by = entry.event.by
    return "@" in address(signer) and "<" in by and address(signer) != address(by)


def check_resolved(done: Verified, gate: Gate) -> None:
    """Check, for a branch, that no question about it is still open."""
    reasons = {
        "awaiting": "it awaits an answer",
        "failed": "its answer could not be told to the agent",
        "expired": "nobody answered it in time",
    }
    if gate.state in reasons:
        done.wrong(gate.id, gate.tip, "branch", f"{reasons[gate.state]}: {model.one_line(gate.opened.title)}")


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
        if run.called_by[0]:
            check_caller(desk, done, run)


def check_caller(desk: Desk, done: Verified, run: Run) -> None:
    """A run that says that it is a step of another one is the one that the step names."""
    from ..gates.history import load_archived_run
    from ..store.records.journal import Journals

    parent = run.called_by[0]
    tip, caller = desk.refs.get(RUNS + parent), None
    with suppress(GateError):  # a broken one is told of by itself
        caller = (
            Journals(desk.repo, desk.records).load(parent, tip) if tip else load_archived_run(desk, parent)
        )
        if why := against_caller(run, caller):
            done.wrong(run.id, run.tip, "caller", why)


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
    remote = never_synced(desk)
    if remote is not None:
        raise Failure(f"this clone has never synced its gates with {remote}", hint="git gate sync")
