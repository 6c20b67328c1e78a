"""Surfaces: `git gate desk`: gates, runs and agents of every repository on one terminal. It decides nothing.

Here is what the desk shows, as it was read last, and what a key means: a command of git gate's, on a gate as it was shown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Any

from ...acts.reporting import Known, agent_line, roster
from ...context import Desk
from ...context.machine import everyone_here, repositories
from ...errors import GateError, Usage
from ...flows.checking import asked_at, details_of
from ...flows.journal import find_run
from ...gates import Filter, list_gates, own_word_last, runs_here
from ...model.gate import Gate, Question
from ...questions import Given
from ...questions.answers import read_answer
from ...questions.types import type_of
from ...record import Summary, by_pressure
from ...render import paint, table
from ...render.letter import answers, head, letter, proposed, question_part, remarks, section, work_part
from ...render.runs import run_page, run_rows, run_shape
from ...store.git.programs import our_command, run_beside
from ...text import clip, format_time, neutral, one_line, wrap

# What the desk shows: gates, runs and agents of several repositories, as they were read last; what is
# chosen, what is looked for, and what changed since. No terminal is needed for it.


VIEWS = ("gates", "runs", "agents")
# What has come to its end is in `git gate list --all`.
SHOWN = ("awaiting", "failed", "stalled", "broken", "answered", "resuming")
NEEDS_ANSWER = ("awaiting", "failed", "stalled", "broken")
MOST_RUNS = 200
HEAD_OF_AGENTS = "AGENT"


@dataclass(frozen=True)
class RepositoryState:
    """State of one repository as it was read. `elsewhere`: gates of which another clone on this machine knows more."""

    place: Path
    gates: tuple[Summary, ...] = ()
    runs: tuple[Mapping[str, Any], ...] = ()
    agents: tuple[Known, ...] = ()
    asked_here: frozenset[str] = frozenset()
    trouble: str = ""


@dataclass(frozen=True)
class GateChange:
    """Gate that waited, and does not any more."""

    place: Path
    id: str
    state: str


@dataclass(frozen=True)
class InboxRow:
    """Row of a list: its repository, and the key by which it is found again however the list changes."""

    key: str
    place: Path
    gate: Summary | None = None
    run: Mapping[str, Any] | None = None
    agent: Known | None = None

    @property
    def words(self) -> str:
        """Text of the row that the list's filter searches."""
        if self.gate is not None:
            one = self.gate
            parts = [one.id, one.state, one.priority, one.type, one.agent, one.by, one.branch, one.title]
            parts.append(one.question)
        elif self.run is not None:
            parts = [
                str(self.run[name] or "") for name in ("id", "flow", "name", "status", "agent", "waiting_for")
            ]
        else:
            parts = [self.agent.agent, self.agent.state] if self.agent is not None else []
        return " ".join([*parts, str(self.place)]).casefold()


def known_places(env: Mapping[str, str], here: Path | None) -> list[Path]:
    """Return the repository of the current directory, then those in which `git gate init` was run."""
    found = [here] if here is not None else []
    return list(dict.fromkeys([*found, *repositories(env)]))


def read_repository(desk: Desk) -> RepositoryState:
    """Read all that is shown of a repository; an error is shown, and hides no other repository."""
    place = desk.repo.place
    try:
        every = list_gates(desk, Filter(all=True))
        shown = own_word_last(desk, [one for one in every if one.state in SHOWN])
        runs = [shape for said in runs_here(desk)[:MOST_RUNS] if (shape := shape_of_run(desk, said["Run"]))]
        here = frozenset(present.gate for present in everyone_here(desk))
        return RepositoryState(place, tuple(shown), tuple(runs), tuple(roster(desk, every)), here)
    except GateError as unreadable:
        return RepositoryState(place, trouble=unreadable.message)


def shape_of_run(desk: Desk, name: str) -> Mapping[str, Any] | None:
    try:
        run = find_run(desk, name)
    except GateError:
        return None
    return run_shape(run, asked_at(desk, run.waits_for))


@dataclass
class InboxModel:
    """State of the desk's lists.

    A list keeps its chosen row by id: rows that come or go above it move the line, never the choice.
    """

    clock: Callable[[], float]
    order: list[Path] = field(default_factory=list)
    states: dict[Path, RepositoryState] = field(default_factory=dict)
    view: str = "gates"
    wanted: str = ""
    chosen: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    """Note on the pending decision of each gate, by its id."""
    _at: dict[str, int] = field(default_factory=dict)

    def take(self, state: RepositoryState) -> list[GateChange]:
        """Show a repository as it is now; return the gates that waited there before, and do not any more."""
        before = self.states.get(state.place)
        if state.place not in self.order:
            self.order.append(state.place)
        if state.trouble and before is not None:
            state = replace(before, trouble=state.trouble)
        self.states[state.place] = state
        if before is None or state.trouble:
            return []
        now = {one.id: one.state for one in state.gates}
        waited = [one.id for one in before.gates if one.state == "awaiting"]
        return [
            GateChange(state.place, gate, now.get(gate, "")) for gate in waited if now.get(gate) != "awaiting"
        ]

    @property
    def several(self) -> bool:
        return len(self.states) > 1

    @property
    def rows(self) -> list[InboxRow]:
        """Rows of the list that is looked at, filtered."""
        rows = {"gates": self.gate_rows, "runs": self.run_rows, "agents": self.agent_rows}[self.view]()
        words = self.wanted.casefold().split()
        return [row for row in rows if all(word in row.words for word in words)] if words else rows

    def gate_rows(self) -> list[InboxRow]:
        """Return each gate once, most pressing first; then those put aside, and those that need nobody at the moment."""
        found: dict[str, tuple[Path, Summary]] = {}
        for place in self.order:
            state = self.states.get(place)
            for one in state.gates if state is not None else ():
                # Of two clones on this machine the one where the agent asked can also start it.
                if state is not None and (one.id not in found or one.id in state.asked_here):
                    found[one.id] = place, one
        now = self.now
        pressing = by_pressure(one for _, one in found.values())
        pressing.sort(key=lambda one: (one.state not in NEEDS_ANSWER, one.later > now, bool(one.outcome)))
        return [InboxRow(one.id, found[one.id][0], gate=one) for one in pressing]

    def run_rows(self) -> list[InboxRow]:
        """Return each run once: those that go on first, then the youngest."""
        found: dict[str, InboxRow] = {}
        for place in self.order:
            for run in self.states[place].runs if place in self.states else ():
                found.setdefault(str(run["id"]), InboxRow(str(run["id"]), place, run=run))
        rows = sorted(
            found.values(), key=lambda row: str(row.run["started"] if row.run else ""), reverse=True
        )
        goes_on = ("waiting_human", "sleeping", "running", "stalled")
        return sorted(rows, key=lambda row: row.run is None or row.run["status"] not in goes_on)

    def agent_rows(self) -> list[InboxRow]:
        return [
            InboxRow(f"{place}\0{known.agent}", place, agent=known)
            for place in self.order
            for known in (self.states[place].agents if place in self.states else ())
        ]

    @property
    def now(self) -> str:
        return format_time(self.clock())

    def lines(self, rows: Sequence[InboxRow], cells: int, *, color: bool) -> list[str]:
        """Return a heading and a line for each row, none longer than the terminal."""
        if self.view == "runs":
            return run_rows(
                [row.run for row in rows if row.run is not None], self.clock(), cells, color=color
            )
        if self.view == "agents":
            heading = clip(f"{HEAD_OF_AGENTS}{' (repository)' if self.several else ''}", cells)
            return [heading, *(clip(self.agent_words(row), cells) for row in rows)]
        shown = [self.shown_gate(row) for row in rows]
        return table([one for one in shown if one is not None], self.clock(), cells, color=color)

    def shown_gate(self, row: InboxRow) -> Summary | None:
        """Return a gate with its repository where there are several, and with its pending decision."""
        one = row.gate
        if one is None:
            return None
        if self.several:
            one = one._replace(branch=f"{row.place.name}:{one.branch}" if one.branch else row.place.name)
        return one._replace(outcome=self.notes[one.id]) if one.id in self.notes else one

    def agent_words(self, row: InboxRow) -> str:
        if row.agent is None:
            return ""
        where = f"  ({one_line(str(row.place))})" if self.several else ""
        return f"{agent_line(row.agent, self.clock()).strip()}{where}"

    @property
    def row(self) -> InboxRow | None:
        """Chosen row; where it is gone, the row that has come to its place."""
        rows = self.rows
        at = self.place_of(rows)
        return rows[at] if rows else None

    def place_of(self, rows: Sequence[InboxRow]) -> int:
        key = self.chosen.get(self.view)
        at = next((place for place, row in enumerate(rows) if row.key == key), None)
        if at is None:
            at = max(0, min(self._at.get(self.view, 0), len(rows) - 1))
            if rows:
                self.chosen[self.view] = rows[at].key
        self._at[self.view] = at
        return at

    def choose(self, at: int) -> None:
        """Choose the row at this place; the first or the last where there is none."""
        rows = self.rows
        if rows:
            at = max(0, min(at, len(rows) - 1))
            self.chosen[self.view], self._at[self.view] = rows[at].key, at

    def find(self, gate: str) -> InboxRow | None:
        return next((row for row in self.gate_rows() if row.key == gate), None)

    @property
    def headline(self) -> str:
        """Headline, such as `2 wait · 1 answered · 1 put aside`; what could not be read comes first."""
        now, counts = self.now, dict[str, int]()
        for row in self.gate_rows():
            if row.gate is not None:
                state = (
                    "put aside" if row.gate.state == "awaiting" and row.gate.later > now else row.gate.state
                )
                counts[state] = counts.get(state, 0) + 1
        waiting = counts.pop("awaiting", 0)
        words = [f"{waiting} wait{'s' if waiting == 1 else ''} for an answer"]
        words += [f"{count} {state}" for state, count in counts.items()]
        return " · ".join([*self.trouble, *words])

    @property
    def trouble(self) -> Iterable[str]:
        return [f"{one.place.name}: {one_line(one.trouble)}" for one in self.states.values() if one.trouble]


@dataclass(frozen=True)
class GateOnScreen:
    """Gate as it is on the screen: a decision is bound to this version of it."""

    place: Path
    gate: Gate
    lines: tuple[str, ...]
    archived: bool = False


def read_gate(desk: Desk, name: str, cells: int, *, color: bool, whole: bool) -> GateOnScreen:
    """Read a gate's letter with the diff of its work.

    Without `whole`, only what an answer needs, to be shown below a list.
    """
    from ...acts import find_gate
    from ...gates.work import diff_of
    from ...policy.ruling import marks

    found = find_gate(desk, name)
    gate = found.gate
    changed = gate.opened.work.changed
    stat = diff_of(desk, gate, stat=True, cells=cells - 3) if changed else ""
    if not whole:
        text = brief(gate, desk.clock(), cells, stat, color=color)
        return GateOnScreen(desk.repo.place, gate, tuple(text.split("\n")), found.archived)
    text = letter(
        gate, desk.clock(), cells, stat=stat, signed=marks(desk, [gate]), archived=found.archived, color=color
    )
    if changed:
        try:
            diff = diff_of(desk, gate, color=color)
        except GateError as absent:
            diff = absent.message
        text += f"\n\n{paint('The work, line by line', 'bold', on=color)}\n{diff}"
    return GateOnScreen(desk.repo.place, gate, tuple(text.split("\n")), found.archived)


def brief(gate: Gate, now: float, cells: int, stat: str, *, color: bool) -> str:
    """Return the letter without its history."""
    questions = gate.opened.questions
    parts = [
        head(gate, now, cells, archived=False, color=color),
        *(question_part(one, cells, several=len(questions) > 1) for one in questions),
        section("Context", wrap(neutral(gate.opened.context), cells, "  "), color=color),
        section("The work so far", work_part(gate, stat, cells), color=color),
        section("Remarks", remarks(gate, cells), color=color),
        section("Proposed, and confirmed by nobody", proposed(gate, cells), color=color),
        answers(gate, {}, cells, color=color),
    ]
    return "\n\n".join(part for part in parts if part)


def read_run(desk: Desk, name: str, cells: int, *, color: bool) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Read a run with its steps: glyph, agent, and how long each took."""
    shape = details_of(desk, find_run(desk, name))
    return shape, tuple(run_page(shape, desk.clock(), cells, color=color).split("\n"))


# What a key on the desk means: a command of git gate's on a gate as it was shown; and the seconds in
# which it can be taken back before it is run.


STALE = 6
SEEN = "--seen"
# What the person did is recorded as done here; who types the same does it by the command line.
HERE = ("--via", "desk")


@dataclass(frozen=True)
class GateCommand:
    """Command after `git gate`, with its place, and with what it does in a word or two."""

    place: Path
    gate: str
    words: tuple[str, ...]
    does: str

    def shown(self, *, there: bool) -> str:
        """Return the command as the person would type it. `there`: it is of another repository than the current one."""
        where = f"-C {quote(str(self.place))} " if there else ""
        words = self.words[:-2] if self.words[-2:] == HERE else self.words
        words = words[:-2] if words[-2:-1] == (SEEN,) else words
        return f"git gate {where}{' '.join(map(quote, words))}"

    @property
    def argv(self) -> list[str]:
        return our_command(*self.words, at=self.place)


def short(gate: Gate) -> str:
    return gate.id[:6]


def the_only(gate: Gate) -> Question:
    """Return a gate's only question, since a key answers just one; several are answered in the editor."""
    questions = gate.opened.questions
    if len(questions) > 1:
        raise Usage(
            f"gate {short(gate)} asks {len(questions)} questions at once: e answers them in your editor",
            hint=f"git gate respond {short(gate)} --edit",
        )
    return questions[0]


def approving(place: Path, gate: Gate, *, yes: bool, amend: bool = False) -> GateCommand:
    """Return the command for `a` or `r`; refuse at once where that is no answer to the question."""
    the_only(gate)
    read_answer(gate.opened.questions, Given(approve=yes))
    does = "approve" if yes else "reject"
    return respond_with(place, gate, (f"--{does}",), does, amend=amend)


def choosing(place: Path, gate: Gate, number: int, *, amend: bool = False) -> GateCommand:
    """Return the command for a digit, which chooses the option at that place."""
    question = the_only(gate)
    labels = question.labels
    if type_of(question).approves and not labels:
        raise Usage(f"gate {short(gate)} asks yes or no: a approves, r rejects")
    if not 1 <= number <= len(labels):
        expected = (
            f"options 1 to {len(labels)}"
            if labels
            else "no options; e answers it in your editor, m in a line"
        )
        raise Usage(f"gate {short(gate)} has {expected}")
    label = labels[number - 1]
    return respond_with(place, gate, answer_words(question, label), label, amend=amend)


def saying(place: Path, gate: Gate, words: str, *, amend: bool = False) -> GateCommand:
    """Return the command for an answer in one line; for a choice that is a label, a number, or the person's own words."""
    question = the_only(gate)
    try:
        read_answer(gate.opened.questions, Given(text=words))
    except GateError:
        if not question.other:
            raise
        read_answer(gate.opened.questions, Given(other=words))
        return respond_with(place, gate, ("--other", words), words, amend=amend)
    return respond_with(place, gate, answer_words(question, words), words, amend=amend)


def answer_words(question: Question, text: str) -> tuple[str, ...]:
    """Return the arguments of an answer: words that begin with `-` or `@` need a flag, or are read as something else."""
    return ("-a", f"{question.key}={text}") if text[:1] in ("-", "@") else (text,)


def respond_with(place: Path, gate: Gate, words: tuple[str, ...], does: str, *, amend: bool) -> GateCommand:
    """Return a command that answers a gate, bound to the very commit that was shown."""
    more = ("--amend",) if amend else ()
    argv = ("respond", short(gate), *words, *more, SEEN, gate.tip, *HERE)
    return GateCommand(place, gate.id, argv, one_line(does, 40))


def stopping(place: Path, name: str, reason: str) -> GateCommand:
    """Return the command that ends a gate or a run."""
    return GateCommand(place, name, ("stop", name[:6], "--reason", reason, *HERE), "stop")


def deferring(place: Path, gate: Gate, duration: str) -> GateCommand:
    return GateCommand(place, gate.id, ("edit", short(gate), "--later", duration), f"later: {duration}")


@dataclass(frozen=True)
class CommandResult:
    """Result of a command: its words and its exit code."""

    command: GateCommand
    code: int
    words: str

    @property
    def stale(self) -> bool:
        return self.code == STALE


def run_gate_command(command: GateCommand, env: Mapping[str, str]) -> CommandResult:
    """Run a command in a process of its own, and return its words; `--json` gives an error as words and a hint."""
    said = run_beside([*command.argv, "--json"], command.place, env)
    if said.code == 0:
        return CommandResult(command, 0, one_line(said.err.strip()) or f"gate {command.gate[:6]}: done")
    try:
        error = json.loads(said.out)["error"]
        words = f"{error['message']}{f' — {hint}' if (hint := error.get('hint')) else ''}"
    except (ValueError, KeyError, TypeError):
        words = said.err.strip() or said.out.strip() or f"exit {said.code}"
    return CommandResult(command, said.code, one_line(words))


@dataclass(frozen=True)
class PendingCommand:
    command: GateCommand
    due: float


@dataclass
class DecisionQueue:
    """Decisions that can still be taken back: each is sent when its seconds are over, or when the desk is left."""

    seconds: float
    monotonic: Callable[[], float]
    waiting: list[PendingCommand] = field(default_factory=list)

    def add(self, command: GateCommand) -> None:
        """Add a decision; of one gate the last one counts."""
        self.drop(command.gate)
        self.waiting.append(PendingCommand(command, self.monotonic() + self.seconds))

    def drop(self, gate: str) -> GateCommand | None:
        found = next((one for one in self.waiting if one.command.gate == gate), None)
        if found is not None:
            self.waiting.remove(found)
        return found.command if found is not None else None

    def undo(self, gate: str | None = None) -> GateCommand | None:
        """Take back the pending decision on this gate, else the latest one; None where nothing is pending."""
        if gate is not None and any(one.command.gate == gate for one in self.waiting):
            return self.drop(gate)
        return self.waiting.pop().command if self.waiting else None

    def due(self) -> list[GateCommand]:
        """Take out the decisions whose time is over; they cannot be taken back any more."""
        now = self.monotonic()
        ready = [one for one in self.waiting if one.due <= now]
        self.waiting = [one for one in self.waiting if one.due > now]
        return [one.command for one in ready]

    def all(self) -> list[GateCommand]:
        """Take out all decisions now: whoever leaves the desk does not wait."""
        ready, self.waiting = self.waiting, []
        return [one.command for one in ready]

    @property
    def notes(self) -> dict[str, str]:
        """Note for each gate that has a pending decision, as the list shows it."""
        now = self.monotonic()
        return {
            one.command.gate: f"{one.command.does} in {max(0, round(one.due - now))} s"
            for one in self.waiting
        }
