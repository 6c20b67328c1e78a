"""Gates: what is over: gates and runs in the archive, read again; and how many there were, how long people took, and what came of them."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .. import text
from ..context import Desk
from ..context.targets import all_summaries, pays
from ..document import replace
from ..errors import AmbiguousGate, GateError
from ..model import AWAITING, is_id
from ..model.gate import Answer, Entry, Event, Gate
from ..questions.prompts import is_late_outcome
from ..record.events import counted_entry
from ..store import private_folder
from ..store.git.refs import OPEN
from ..store.records import NOBODY, Signature, archive, closing

if TYPE_CHECKING:
    from ..record.runs import Run

# Gates and runs in the archive, read again, and told apart from those that are only gone.


def prune_archived(desk: Desk) -> None:
    """Delete the refs of archived gates (work, sessions, leases) that are kept elsewhere or worth nothing."""
    closing.prune(desk.repo, lambda gate, tip: not has_partial_work(desk, gate, tip))


def has_partial_work(desk: Desk, gate: str, tip: str) -> bool:
    """Return whether the gate's work is more than the commit on which the agent stood; True where its record cannot be
    read, so that it is kept.
    """
    try:
        return desk.records.load(gate, tip).opened.work.changed
    except GateError:
        return True


def settle_archived(desk: Desk, remote: str, absent: Mapping[str, str]) -> closing.Folded:
    """Settle the gates that are open here and absent on the remote: find those that the remote archived, and why any
    stays open here.
    """
    by = Signature(desk.settings.identity() or NOBODY, desk.at)
    result = closing.settle(desk.repo, remote, absent, by=by, timeout=desk.network_timeout)
    if result.gates:
        prune_archived(desk)
    return result


def keep_beside(desk: Desk, gate: str, tip: str, remote: str | None) -> None:
    """Keep this clone's events of an archived gate with its archived record; leave a gate alone that is not archived."""
    if remote is not None:
        settle_archived(desk, remote, {gate: tip})
    elif archive.archived(desk.repo, gate):
        by = Signature(desk.settings.identity() or NOBODY, desk.at)
        closing.fold(desk.repo, [closing.Closed(gate, tip, desk.now[:7])], by=by)


OVERTAKEN_FOR = 7 * 86_400


def overtaken_folder(desk: Desk) -> Path:
    return desk.repo.state_dir / "overtaken"


def note_overtaken(desk: Desk, gate: str) -> None:
    """Note that this clone took the gate over from another runner, whose agent may finish later than ours."""
    with contextlib.suppress(OSError):
        private_folder(overtaken_folder(desk)).joinpath(gate).touch()


def late_of_archived(desk: Desk, remote: str) -> list[str]:
    """Return the late outcomes of gates that were taken over here and are archived since, each once. The remote does
    not announce its archive, and there is hardly ever a reason to ask; so the archive is fetched only for a week,
    and only where there is such a gate.
    """
    try:
        notes = [note for note in overtaken_folder(desk).iterdir() if is_id(note.name)]
    except OSError:
        return []
    notes = [note for note in notes if desk.refs.get(OPEN + note.name) is None]
    if not notes:
        return []
    from ..store.remote.fetch import fetch_folder

    fetch_folder(desk.repo, remote, "archive", timeout=desk.network_timeout)
    told = []
    for note in notes:
        one = the_archived(desk, note.name)
        came = late_outcomes(desk, one) if one is not None else []
        told += [f"{note.name} {entry.event.text}" for entry in came if is_late_outcome(entry.event)]
        with contextlib.suppress(OSError):
            if came or desk.clock() - note.stat().st_mtime > OVERTAKEN_FOR:
                note.unlink()
    return told


def load_archived(desk: Desk, prefix: str) -> Gate | None:
    """The archived gate that `prefix` names, from any month's archive, ours or a remote's."""
    one = the_archived(desk, prefix)
    return with_late(desk, desk.records.load(one.id, one.tip), one.late) if one and one.tip else None


def load_archived_run(desk: Desk, prefix: str) -> Run | None:
    """The archived run that `prefix` names."""
    one = the_archived(desk, prefix, runs=True)
    if one is None or not one.tip:
        return None
    from ..store.records.journal import Journals

    return Journals(desk.repo, desk.records).load(one.id, one.tip)


def the_archived(desk: Desk, prefix: str, *, runs: bool = False) -> archive.ArchivedGate | None:
    found = archive.archived_ids(desk.repo, prefix, runs=runs)
    if len(found) > 1:
        raise AmbiguousGate(f"{prefix} could be {', '.join(found[:8])}", hint="type more of the id")
    there = archive.find_archived(desk.repo, archive.shelves(desk.repo), found)
    return there[found[0]] if there else None


def with_late(desk: Desk, gate: Gate, tips: tuple[str, ...]) -> Gate:
    """Add to a gate the answers that came after it was archived, which change nothing, and the outcomes of agents
    whose runner was overtaken.
    """
    said = [entry.event for entry in gate.history]
    late = []
    for entry in late_entries(desk, gate.id, tips):
        if isinstance(entry.event, Answer) and entry.event not in said:
            said.append(entry.event)
            late.append(counted_entry(entry, entry.event))
    outcomes = tuple(late_outcomes_in(said, late_entries(desk, gate.id, tips)))
    return replace(gate, late=(*gate.late, *late), history=(*gate.history, *outcomes))


def late_outcomes(desk: Desk, one: archive.ArchivedGate) -> list[Entry]:
    """Return the late outcomes kept with an archived record: agents that finished after another runner had taken over."""
    said = [entry.event for entry in desk.records.load(one.id, one.tip).history] if one.tip else []
    return late_outcomes_in(said, late_entries(desk, one.id, one.late))


def late_outcomes_in(said: Sequence[Event], entries: Iterable[Entry]) -> list[Entry]:
    found = {
        entry.event: replace(entry, name="late")
        for entry in entries
        if is_late_outcome(entry.event) and entry.event not in said
    }
    return list(found.values())


def late_entries(desk: Desk, gate: str, tips: Iterable[str]) -> Iterator[Entry]:
    for tip in tips:
        try:
            yield from desk.records.load(gate, tip).history
        except GateError as broken:
            desk.progress(f"{gate}: what came late cannot be read: {broken.message}")


def archived_gates(desk: Desk) -> Iterator[Gate]:
    """Every archived gate. One whose record is broken is reported and left out."""
    for one in archive.listing(desk.repo):
        try:
            yield desk.records.load(one.id, one.tip)
        except GateError as broken:
            desk.progress(f"{one.id}: {broken.message}")


def archived_tips(desk: Desk) -> Iterator[tuple[str, str]]:
    """(id, tip) of every archived gate, for whoever checks them all."""
    return ((one.id, one.tip) for one in archive.listing(desk.repo))


def archived_runs(desk: Desk) -> Iterator[tuple[str, str]]:
    """(id, tip) of every archived run."""
    return ((one.id, one.tip) for one in archive.listing_of_runs(desk.repo))


# How many wait, how long people take, who answers through what, and what comes of it. From Git alone.
#
# What waits is told by its tip, as for a list. Of the others the commits are read, by one git process:
# each says which event it is, when it was and whose. As in a list the messages count, not the folded
# records; `verify` says where they differ. Of many, the index has what was reckoned of each record
# before: by the commit that it ends at, it is always the same.


# One commit: its id, its parents, when it was written and by whom, and the message.
FORMAT = "--format=tformat:%H%x09%P%x09%at%x09%an <%ae>%n%B%x00"
EVENT = re.compile(r"Hitl-Gate: (\S+)\nHitl-Event: (\S+)\n")
TRAILER = re.compile(r"^Hitl-([A-Za-z-]+): (.*)$", re.MULTILINE)
# Of an answer's file two lines, as they are always written; a record has one reader, which would take seconds for thousands.
VIA = re.compile(rb"^via: ([a-z][a-z0-9-]{0,40})$", re.MULTILINE)
WHO = re.compile(rb"^by: (.{1,1000})$", re.MULTILINE)
USUAL_VIA = "cli"
NO_NAME = "nobody"
NOWHERE = "-"
BY = ("agent", "person", "type", "branch")


@dataclass
class GateFacts:
    """Statistics of one gate. `seconds` lasts from the question to the answer that counts; None where nobody answered."""

    agent: str = ""
    type: str = ""
    branch: str = ""
    asked: float = 0.0
    state: str = ""
    verdict: str = ""
    person: str = ""
    via: str = ""
    seconds: int | None = None
    late: int = 0
    failed_resumes: int = 0
    expired: bool = False
    complete: bool = False
    """The whole record was read, and nothing else was counted: it can be kept."""


@dataclass(frozen=True)
class Figures:
    """Several gates reckoned together."""

    gates: int = 0
    waiting: int = 0
    answered: int = 0
    median_seconds: int | None = None
    p90_seconds: int | None = None
    seconds: int = 0
    approved: int = 0
    rejected: int = 0
    defaulted: int = 0
    expired: int = 0
    withdrawn: int = 0
    stopped: int = 0
    late: int = 0
    failed_resumes: int = 0
    people: Mapping[str, int] = field(default_factory=dict)
    via: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Statistics:
    """All of them, and each group by its name, the largest first."""

    whole: Figures
    groups: Mapping[str, Figures]


def statistics(desk: Desk, since: float = 0.0, by: str = "") -> Statistics:
    """Return the statistics of the gates asked since then, open and archived; waiting gates are all counted. `by`: one
    of `BY`, or nothing.
    """
    every = [one for one in facts(desk) if one.state == AWAITING or one.asked >= since]
    groups: dict[str, list[GateFacts]] = {}
    for one in every if by else ():
        groups.setdefault(getattr(one, by) or NO_NAME, []).append(one)
    largest = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return Statistics(reckon(every), {name: reckon(found) for name, found in largest})


def facts(desk: Desk) -> list[GateFacts]:

    found: list[GateFacts] = []
    tips: dict[str, str] = {}
    waiting: set[str] = set()
    for one in all_summaries(desk):
        if one.state == AWAITING:
            waiting.add(one.id)
            found.append(GateFacts(one.agent, one.type, one.branch, seconds_at(one.at), AWAITING))
        elif one.state != "broken":
            tips[one.tip] = one.id
    tips |= {tip: gate for gate, tip in archived_tips(desk) if tip and gate not in waiting}
    return [*found, *(known_facts(desk, tips) if pays(len(tips)) else read_chains(desk, tips).values())]


def known_facts(desk: Desk, tips: Mapping[str, str]) -> Iterator[GateFacts]:
    """Yield the facts of the gates like `read_chains`, but take most of them from the index."""
    from ..store.index import RECORDS

    kept = desk.index.known(RECORDS)
    ends = Counter(tips.values())  # a fold that was cut short may leave a gate two: they are counted together
    known = ((tip, kept.get(f"{gate}\t{tip}".encode())) for tip, gate in tips.items() if ends[gate] == 1)
    rows = {tip: row for tip, row in known if row}
    yield from map(facts_in, rows.values())
    missing = {tip: gate for tip, gate in tips.items() if tip not in rows}
    fresh = read_chains(desk, missing)
    yield from fresh.values()
    asked = [(gate, tip, fresh[gate]) for tip, gate in missing.items() if gate in fresh]
    desk.index.learn(RECORDS, [row for one in asked if (row := row_of_facts(*one))])
    desk.index.drop_dead(RECORDS, list(rows.values()))


def row_of_facts(gate: str, tip: str, one: GateFacts) -> bytes:
    """A line for the index; empty where it is not to be kept."""
    texts = (gate, tip, one.agent, one.type, one.branch, one.state, one.verdict, one.person, one.via)
    numbers = (one.asked, one.late, one.failed_resumes, int(one.expired), one.seconds)
    row = "\t".join([*texts, *("" if number is None else repr(number) for number in numbers)])
    plain = is_id(gate) and row.count("\t") == len(texts) + len(numbers) - 1
    return row.encode("utf-8", "surrogatepass") if plain and one.complete else b""


def facts_in(row: bytes) -> GateFacts:
    _, _, agent, type_, branch, state, verdict, person, via, *numbers = row.decode(
        "utf-8", "surrogatepass"
    ).split("\t")
    asked, late, failed, expired, seconds = numbers
    return GateFacts(
        agent,
        type_,
        branch,
        float(asked),
        state,
        verdict,
        person,
        via,
        int(seconds) if seconds else None,
        int(late),
        int(failed),
        expired == "1",
        complete=True,
    )


def seconds_at(said: str) -> float:
    try:
        return text.parse_time(said)
    except GateError:
        return 0.0


def read_chains(desk: Desk, tips: Mapping[str, str]) -> dict[str, GateFacts]:
    """Return by gate the facts of those whose records end at these commits."""
    if not tips:
        return {}
    gates: dict[str, GateFacts] = {}
    answers: dict[str, tuple[str, float, str]] = {}
    next_ones = {gate: tip for tip, gate in tips.items()}
    walk = ("log", "--first-parent", "--no-show-signature", "--stdin", FORMAT)
    for commit in desk.repo.git.records(*walk, input="".join(f"{tip}\n" for tip in tips).encode()):
        head, _, message = commit.partition("\n")
        oid, parents, at, who = head.split("\t", 3)
        last = message.rstrip("\n").rpartition("\n\n")[2]
        found = EVENT.match(last)
        if found is None:
            continue  # no commit of ours: `verify` says so
        gate, event = found.groups()
        one = gates.setdefault(gate, GateFacts())
        if tips.get(oid) == gate:
            read_tip(one, dict(TRAILER.findall(last)))
        count_event(one, event)
        if event == "answered":
            answers[gate] = (oid, float(at), who)
        # One commit after the other, from the one that it ends at to the one that opened it: else something is missing or too much.
        in_line = next_ones.get(gate) == oid
        next_ones[gate] = parents.partition(" ")[0] if in_line else NOWHERE
        one.complete = in_line and event == "opened" and not parents
    said_by = read_answers(desk, [oid for oid, _, _ in answers.values()])
    for gate, (oid, answered, author) in answers.items():
        one = gates[gate]
        who, one.via = said_by.get(oid, ("", USUAL_VIA))
        one.person, one.seconds = who or author, max(0, int(answered - one.asked))
        one.complete = one.complete and oid in said_by
    return {gate: one for gate, one in gates.items() if one.state}


def read_tip(one: GateFacts, said: Mapping[str, str]) -> None:
    """Copy into `one` the facts that every commit's message states of its gate, from the last commit."""
    one.agent, one.type, one.branch = said.get("Agent", ""), said.get("Type", ""), said.get("Branch", "")
    one.asked, one.state, one.verdict = (
        seconds_at(said.get("Asked-At", "")),
        said.get("State", ""),
        said.get("Verdict", ""),
    )


def count_event(one: GateFacts, event: str) -> None:
    one.late += event == "late"
    one.failed_resumes += event == "failed"
    one.expired = one.expired or event == "expired"


def read_answers(desk: Desk, commits: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the author and the channel of each of these answers, by its commit, from the file that the commit adds."""
    if not commits:
        return {}
    git = desk.repo.git
    asked = "".join(f"{oid}\n" for oid in commits).encode()
    listed = git.out(
        "diff-tree", "--stdin", "--root", "-r", "--no-abbrev", "-m", "--first-parent", input=asked
    )
    blobs: dict[str, str] = {}
    commit = ""
    for line in listed.decode("utf-8", "replace").splitlines():
        if not line.startswith(":"):
            commit = line.split(" ")[0]
        elif "\tanswers/" in line:
            blobs[line.split(" ")[3]] = commit
    out = git.out("cat-file", "--batch", input="".join(f"{oid}\n" for oid in blobs).encode())
    return {blobs[oid]: read_answer_file(data) for oid, data in each_object(out)}


def each_object(out: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the objects that `git cat-file --batch` printed."""
    at = 0
    while at < len(out):
        end = out.index(b"\n", at)
        oid, _, size = out[at:end].decode().split(" ")
        at = end + 2 + int(size)
        yield oid, out[end + 1 : at - 1]


def read_answer_file(data: bytes) -> tuple[str, str]:
    via, who = VIA.search(data), WHO.search(data)
    name = who.group(1).decode("utf-8", "replace").strip() if who else ""
    if name.startswith(('"', "'")):
        from ..document.codec import parse_document

        with contextlib.suppress(GateError):  # then it stays as it is written
            name = str(parse_document(who.group(0) if who else b"", "an answer").need("by").value)
    return name, via.group(1).decode() if via else USUAL_VIA


def reckon(found: Sequence[GateFacts]) -> Figures:
    """A default is nobody's answer: it takes no part in how long people take."""
    took = sorted(one.seconds for one in found if one.seconds is not None)

    def count(true: Callable[[GateFacts], bool]) -> int:
        return sum(1 for one in found if true(one))

    return Figures(
        gates=len(found),
        waiting=count(lambda one: one.state == AWAITING),
        answered=len(took),
        median_seconds=median(took),
        p90_seconds=took[-(-len(took) * 9 // 10) - 1] if took else None,
        seconds=sum(took),
        approved=count(lambda one: one.verdict == "approved"),
        rejected=count(lambda one: one.verdict == "rejected"),
        defaulted=count(lambda one: one.verdict == "defaulted"),
        expired=count(lambda one: one.expired),
        withdrawn=count(lambda one: one.state == "withdrawn"),
        stopped=count(lambda one: one.state == "stopped"),
        late=sum(one.late for one in found),
        failed_resumes=sum(one.failed_resumes for one in found),
        people=counted_by(one.person for one in found if one.seconds is not None),
        via=counted_by(one.via for one in found if one.seconds is not None),
    )


def median(took: Sequence[int]) -> int | None:
    """The middle one, or what is between the two in the middle."""
    if not took:
        return None
    half = len(took) // 2
    return took[half] if len(took) % 2 else (took[half - 1] + took[half]) // 2


def counted_by(names: Iterator[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
