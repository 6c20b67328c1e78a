"""Surfaces: what the pages show, as plain values: the list of what waits, and the letter of one gate. Nothing here is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ...acts import find_gate, what_became
from ...acts.answering import check_amendable
from ...acts.reporting import events_of_all
from ...context import Desk
from ...context import open_desk as opened
from ...errors import GateError, UnknownGate
from ...flows.checking import asked_at, details_of
from ...flows.journal import find_run
from ...gates import Filter, list_gates, own_word_last, runs_here
from ...gates.work import diff_of
from ...model import AWAITING, allows
from ...model.gate import Gate, Question
from ...policy.ruling import marks
from ...questions import Control, Given
from ...questions.answers import value_words
from ...questions.file import told_fields
from ...questions.types import plain_word, type_of
from ...record import Summary, by_pressure
from ...render import shapes
from ...render.letter import attached, conversation_part, outcome_part, requester, ways_to_answer, work_part
from ...render.runs import run_shape
from ...text import format_time

NEEDS_ANSWER = ("awaiting", "failed", "stalled", "broken")
SHOWN = (*NEEDS_ANSWER, "answered", "resuming")
# What can be said of a gate without answering it, and the event that it comes to.
REMARKS = {"comment": "commented", "later": "edited", "stop": "stopped"}
MOST_LISTED = 2000
MOST_RUNS = MOST_EVENTS = 200
MOST_DIFF = 300_000
CELLS = 10_000  # a browser breaks lines itself
T = TypeVar("T")


@dataclass(frozen=True)
class WebWorld:
    """Which repositories the pages are of, and how one is opened: for each request anew, with the rules as they are then."""

    places: Sequence[Path]
    env: Mapping[str, str]
    clock: Callable[[], float]

    def open_desk(self, place: Path) -> Desk:
        return opened(place, self.env, clock=self.clock)


@dataclass(frozen=True)
class ListedGate:
    """A line of the list, and of which repository it is."""

    gate: Summary
    repository: str


@dataclass(frozen=True)
class WaitingList:
    """What waits, what was put aside, and what is being acted on; of repositories that cannot be read, why."""

    waiting: list[ListedGate] = field(default_factory=list)
    others: list[ListedGate] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    more: int = 0


def gathered(world: WebWorld, read: Callable[[Desk], Sequence[T]]) -> tuple[list[tuple[T, str]], list[str]]:
    """What `read` finds in each repository, with its name; and of those that cannot be read, why."""
    found: list[tuple[T, str]] = []
    trouble = []
    for place in world.places:
        try:
            desk = world.open_desk(place)
            try:
                found += [(one, desk.repo.place.name) for one in read(desk)]
            finally:
                desk.close()
        except (GateError, OSError) as unreadable:
            trouble.append(f"{place.name}: {getattr(unreadable, 'message', unreadable)}")
    return found, trouble


def first_found(world: WebWorld, missing: GateError, find: Callable[[Desk], T]) -> T:
    """What `find` gives in the first repository that has it. One that cannot be opened is in the way of no other."""
    unread: GateError | None = None
    for place in world.places:
        try:
            desk = world.open_desk(place)
        except GateError as shut:
            unread = shut
            continue
        try:
            return find(desk)
        except UnknownGate as absent:
            missing = absent
        finally:
            desk.close()
    raise unread or missing


def read_list(world: WebWorld) -> WaitingList:
    """Each gate once, the most pressing first."""

    def shown(desk: Desk) -> list[Summary]:
        return own_word_last(desk, [one for one in list_gates(desk, Filter(all=True)) if one.state in SHOWN])

    listed, trouble = gathered(world, shown)
    found: dict[str, ListedGate] = {}
    for summary, repository in listed:
        found.setdefault(summary.id, ListedGate(summary, repository))
    now = format_time(world.clock())
    pressing = [found[one.id] for one in by_pressure(one.gate for one in found.values())]
    waiting = [one for one in pressing if one.gate.state in NEEDS_ANSWER and one.gate.later <= now]
    others = [one for one in pressing if one not in waiting]
    left = max(0, len(waiting) + len(others) - MOST_LISTED)
    return WaitingList(waiting[:MOST_LISTED], others[: max(0, MOST_LISTED - len(waiting))], trouble, left)


@dataclass(frozen=True)
class FilledControl:
    """A control of a question as the page has it: its whole name, and what stands in it."""

    control: Control
    name: str
    given: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        return self.given[0] if self.given else ""


@dataclass(frozen=True)
class AskedQuestion:
    """A question with what is filled in for it."""

    question: Question
    shape: Mapping[str, Any]
    controls: tuple[FilledControl, ...]


@dataclass(frozen=True)
class LetterShown:
    """All that the page of one gate says. `may`: "answer", "amend", or nothing; `remarks`: what else may be said of it;
    `aside`: until when it is put aside.
    """

    gate: Gate
    shape: Mapping[str, Any]
    place: Path
    questions: tuple[AskedQuestion, ...]
    may: str
    remarks: Sequence[str]
    aside: str
    parts: Mapping[str, str]
    history: Sequence[Mapping[str, Any]]
    diff: str
    diff_trouble: str
    commands: Sequence[str]
    became: str


Json = Mapping[str, Any]


Named = list[tuple[Json, str]]
"""Each with the name of its repository."""


def read_runs(world: WebWorld) -> tuple[Named, list[str]]:
    """Runs of flows, the youngest first, and what could not be read; one that cannot be read is left to `git gate list --runs`."""

    def runs(desk: Desk) -> list[Json]:
        shown: list[Json] = []
        for said in runs_here(desk)[:MOST_RUNS]:
            try:
                run = find_run(desk, said["Run"])
            except GateError:
                continue
            shown.append(run_shape(run, asked_at(desk, run.waits_for)))
        return shown

    found, trouble = gathered(world, runs)
    return sorted(found, key=lambda one: str(one[0]["started"]), reverse=True), trouble


def read_run(world: WebWorld, name: str) -> tuple[Json, str]:
    """One run with its steps."""
    missing = UnknownGate(f"there is no run {name} here", hint="git gate list --runs --all")
    return first_found(
        world, missing, lambda desk: (details_of(desk, find_run(desk, name)), desk.repo.place.name)
    )


def read_trail(world: WebWorld) -> tuple[Named, list[str]]:
    """What happened last, the newest first, and what could not be read."""

    def events(desk: Desk) -> Sequence[Json]:
        return events_of_all(desk)[:MOST_EVENTS]

    found, trouble = gathered(world, events)
    return sorted(found, key=lambda one: str(one[0]["at"]), reverse=True)[:MOST_EVENTS], trouble


Fields = Mapping[str, list[str]]


def with_gate(world: WebWorld, name: str, do: Callable[[Desk, Gate, bool], T]) -> T:
    """What `do` gives for the gate in whichever repository has it."""
    missing = UnknownGate(f"there is no gate {name} here", hint="git gate list --all")

    def found(desk: Desk) -> T:
        gate = find_gate(desk, name)
        return do(desk, gate.gate, gate.archived)

    return first_found(world, missing, found)


def read_letter(desk: Desk, gate: Gate, archived: bool, who: str, fields: Fields) -> LetterShown:
    """`fields`: what was filled in before, and not taken."""
    diff, trouble = diff_of_work(desk, gate)
    shape = shapes.gate(gate, signed=marks(desk, [gate]), archived=archived)
    return LetterShown(
        gate=gate,
        shape=shape,
        place=desk.repo.place,
        questions=tuple(
            asked_question(place, one, shapes.question_shape(one), fields)
            for place, one in enumerate(gate.opened.questions)
        ),
        may=what_may(gate, who),
        remarks=[one for one, event in REMARKS.items() if not archived and allows(gate.state, event)],
        aside=gate.later if gate.state == AWAITING and gate.later and gate.later > desk.now else "",
        parts=letter_parts(gate),
        history=shapes.history(gate.history),
        diff=diff,
        diff_trouble=trouble,
        became=what_became(gate) if gate.state != AWAITING else "",
        commands=ways_to_answer(gate) if gate.state == AWAITING else [f"git gate show {gate.id[:6]}"],
    )


def letter_parts(gate: Gate) -> dict[str, str]:
    """What a letter says in words, as in a terminal but for its lines."""
    return {
        "who": f"{gate.opened.asked.agent}{requester(gate.opened)}",
        "told": " · ".join(told_fields(gate.opened)),
        "work": work_part(gate, "", CELLS),
        "talk": conversation_part(gate, CELLS),
        "attached": attached(gate, CELLS),
        "outcome": outcome_part(gate, CELLS),
    }


def what_may(gate: Gate, who: str) -> str:
    if gate.state == AWAITING:
        return "answer"
    try:
        check_amendable(gate, who)
    except GateError:
        return ""
    return "amend"


def diff_of_work(desk: Desk, gate: Gate) -> tuple[str, str]:
    if not gate.opened.work.changed:
        return "", ""
    try:
        text = diff_of(desk, gate)
    except GateError as absent:
        return "", absent.message
    if len(text) <= MOST_DIFF:
        return text, ""
    return text[:MOST_DIFF].rpartition("\n")[
        0
    ], f"this is its beginning; all of it: git gate diff {gate.id[:6]}"


def control_name(place: int, control: Control) -> str:
    return f"q{place}.{control.name}"


def asked_question(place: int, question: Question, shape: Mapping[str, Any], fields: Fields) -> AskedQuestion:
    kind = type_of(question)
    controls = tuple(
        FilledControl(
            control, control_name(place, control), tuple(fields.get(control_name(place, control), ()))
        )
        for control in kind.controls(question)
    )
    return AskedQuestion(question, shape, controls)


def given_of(gate: Gate, fields: Fields) -> Given:
    """What was filled in, as an answer."""
    values = {}
    for place, question in enumerate(gate.opened.questions):
        kind = type_of(question)
        said = {one.name: fields.get(control_name(place, one), []) for one in kind.controls(question)}
        values[question.key] = kind.filled(question, said)
    return Given(values=values)


def value_shown(value: Any) -> str:
    return value_words(value) if value is not None else ""


def proposed_value(value: Any) -> str:
    return "no answer yet" if value is None else value_words(plain_word(value))
