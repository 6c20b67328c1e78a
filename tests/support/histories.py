"""Test bed: records without a repository. Commits are numbers, and a record is the list of its entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from gitgate.model import file_name
from gitgate.model.gate import (
    Answer,
    Asker,
    Claim,
    Edit,
    Entry,
    Event,
    Gate,
    Opened,
    Option,
    Outcome,
    Question,
    Remark,
    Value,
    Work,
)
from gitgate.record import events
from gitgate.record.events import apply, fold, original, told_commit

GATE = "abcdefghjk"
ADA, BOB, EVE = "Ada <ada@example.org>", "Bob <bob@example.org>", "Eve <eve@example.org>"
EARLY, DUE, LATER = "2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z", "2030-01-03T00:00:00Z"
CHOICE = Question(
    "answer", "Which?", "choice", (Option("Postgres"), Option("SQLite")), default="SQLite", other=True
)
APPROVAL = Question("answer", "Deploy?", "approval", default=False)
TEXT = Question("answer", "What?", "text")


def opened(*questions: Question, **terms: object) -> Opened:
    """A question as it is asked; `terms` are fields of `Opened`."""
    asked = Opened(
        "Which?", questions or (CHOICE,), Asker("coder", EARLY, ADA), Work(None, None, None), "nonce"
    )
    return replace(asked, **{"delivery": "resume", **terms})  # type: ignore[arg-type]


def remark(at: str = LATER, by: str = ADA, text: str = "words") -> Remark:
    return Remark(at, by, text)


@dataclass
class History:
    """A record that a test writes, event by event; a wrong event raises and leaves it as it was."""

    gate: Gate
    numbers: Callable[[], int] = field(default_factory=lambda: count(1).__next__)

    @classmethod
    def begin(cls, asked: Opened | None = None, numbers: Callable[[], int] | None = None) -> History:
        next_number = numbers or count(1).__next__
        entry = Entry(oid(next_number()), "opened", asked or opened(), (), "question.yaml")
        return cls(fold(GATE, [entry]), next_number)

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self.gate.history

    @property
    def names(self) -> list[str]:
        return [entry.name for entry in self.entries]

    @property
    def tip(self) -> str:
        return self.gate.tip

    def copy(self) -> History:
        return History(self.gate, self.numbers)

    def add(self, name: str, event: Event) -> Gate:
        path = f"{events.FOLDER_OF[name]}/{file_name(events.dump_event(event))}.yaml"
        self.gate = apply(self.gate, Entry(oid(self.numbers()), name, event, (self.tip,), path))
        return self.gate

    def answer(self, value: Value = "Postgres", by: str = ADA, **changes: object) -> Gate:
        return self.add("answered", self.said(value, by, **changes))

    def said(self, value: Value = "Postgres", by: str = ADA, **changes: object) -> Answer:
        verdict = (
            {True: "approved", False: "rejected"}.get(value, "answered")
            if isinstance(value, bool)
            else "answered"
        )
        plain = Answer(GATE, {"answer": value}, verdict, EARLY, self.tip, by)
        return replace(plain, **changes)  # type: ignore[arg-type]

    def default(self, value: Value = "SQLite", at: str = DUE) -> Gate:
        return self.add(
            "answered", Answer(GATE, {"answer": value}, "defaulted", at, self.tip, via="deadline")
        )

    def expire(self, at: str = DUE) -> Gate:
        return self.add("expired", Remark(at, text="nobody answered", via="deadline"))

    def claim(self) -> Gate:
        attempt = self.gate.attempts + 1
        return self.add("claimed", Claim(LATER, told_commit(self.gate), "n", "local", "host", attempt, 60))

    def end(self, result: str) -> Gate:
        claim = self.gate.claim.commit if self.gate.claim else oid(0)
        return self.add("outcome", Outcome(LATER, claim, result))

    def edit(self, **terms: object) -> Gate:
        return self.add("edited", Edit(LATER, ADA, **terms))  # type: ignore[arg-type]

    def repeat(self, entry: Entry, chain: Sequence[Entry] = ()) -> Gate:
        """Record again, on top of this, what was said elsewhere, after what `chain` has; as the store does it."""
        name = events.BY_FOLDER[entry.path.partition("/")[0]].name
        saw = tuple(known.commit for known in chain)
        here = {known.commit for known in self.entries}
        before = (*saw, *entry.parents[:1])
        fork = next((commit for commit in reversed(before) if commit in here), "")
        again = Entry(
            oid(self.numbers()), name, entry.event, (self.tip, original(entry)), entry.path, saw, fork
        )
        self.gate = apply(self.gate, again)
        return self.gate


def oid(number: int) -> str:
    return f"{number:040x}"


def refold(entries: Sequence[Entry]) -> Gate:
    """The gate that these entries make, named as their files are."""
    return fold(GATE, [replace(entry, name=file_said(entry)) for entry in entries])


def file_said(entry: Entry) -> str:
    folder, slash, _ = entry.path.partition("/")
    return events.BY_FOLDER[folder].name if slash else "opened"
