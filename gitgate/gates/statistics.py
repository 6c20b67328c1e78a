"""Gates: how many wait, how long people take, who answers through what, and what comes of it. From Git alone.

What waits is told by its tip, as for a list. Of the others the commits are read, by one git process: each says which event
it is, when it was and whose. As in a list the messages count, not the folded records; `verify` says where they differ.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..context.desk import Desk
from ..context.find import summaries
from ..errors import GateError
from ..model.states import AWAITING
from ..text import times

# One commit: its id, when it was written and by whom, and the message.
FORMAT = "--format=tformat:%H%x09%at%x09%an <%ae>%n%B%x00"
EVENT = re.compile(r"Hitl-Gate: (\S+)\nHitl-Event: (\S+)\n")
TRAILER = re.compile(r"^Hitl-([A-Za-z-]+): (.*)$", re.MULTILINE)
# Of an answer's file two lines, as they are always written; a record has one reader, which would take seconds for thousands.
VIA = re.compile(rb"^via: ([a-z][a-z0-9-]{0,40})$", re.MULTILINE)
WHO = re.compile(rb"^by: (.{1,1000})$", re.MULTILINE)
USUAL_VIA = "cli"
NOBODY = "nobody"
BY = ("agent", "person", "type", "branch")


@dataclass
class GateFacts:
    """What is reckoned of one gate. `seconds`: from the question to the answer that counts; None where nobody gave one."""

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
    """Of the gates asked since then, open and archived; what waits is counted whole. `by`: one of `BY`, or nothing."""
    every = [one for one in facts(desk) if one.state == AWAITING or one.asked >= since]
    groups: dict[str, list[GateFacts]] = {}
    for one in every if by else ():
        groups.setdefault(getattr(one, by) or NOBODY, []).append(one)
    largest = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return Statistics(reckon(every), {name: reckon(found) for name, found in largest})


def facts(desk: Desk) -> list[GateFacts]:
    from .archived import archived_tips

    found: list[GateFacts] = []
    tips: dict[str, str] = {}
    waiting: set[str] = set()
    for one in summaries(desk):
        if one.state == AWAITING:
            waiting.add(one.id)
            found.append(GateFacts(one.agent, one.type, one.branch, seconds_at(one.at), AWAITING))
        elif one.state != "broken":
            tips[one.tip] = one.id
    tips |= {tip: gate for gate, tip in archived_tips(desk) if tip and gate not in waiting}
    return [*found, *read_chains(desk, tips)]


def seconds_at(said: str) -> float:
    try:
        return times.parse_time(said)
    except GateError:
        return 0.0


def read_chains(desk: Desk, tips: Mapping[str, str]) -> Iterator[GateFacts]:
    """The gates whose records end at these commits."""
    if not tips:
        return
    gates: dict[str, GateFacts] = {}
    answers: dict[str, tuple[str, float, str]] = {}
    walk = ("log", "--first-parent", "--no-show-signature", "--stdin", FORMAT)
    for commit in desk.repo.git.records(*walk, input="".join(f"{tip}\n" for tip in tips).encode()):
        head, _, message = commit.partition("\n")
        oid, at, who = head.split("\t", 2)
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
    said_by = read_answers(desk, [oid for oid, _, _ in answers.values()])
    for gate, (oid, answered, author) in answers.items():
        one = gates[gate]
        who, one.via = said_by.get(oid, ("", USUAL_VIA))
        one.person, one.seconds = who or author, max(0, int(answered - one.asked))
    yield from (one for one in gates.values() if one.state)


def read_tip(one: GateFacts, said: Mapping[str, str]) -> None:
    """What every commit says of its gate, as the last one has it."""
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
    """Whose each of these answers is and through what it came, by its commit: from the file that the commit adds."""
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
    """As `git cat-file --batch` prints them."""
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
