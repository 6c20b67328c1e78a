"""Test bed: clones of one shared record, brought together as a sync does it, on objects in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from gitgate.errors import BrokenRecord, IllegalEvent
from gitgate.model.gate import Answer, Entry, Event, Gate, Opened
from gitgate.record.events import original, reconcile
from gitgate.store.records import Records, Signature
from support.histories import ADA, EARLY
from support.testbed.memory import memory_records

SIGNATURE = Signature("tester <tester@example.org>", 1_800_000_000)


@dataclass
class Shared:
    """The shared repository, and the objects of everybody: objects are never what two clones disagree about."""

    tip: str
    id: str
    records: Records = field(repr=False)

    @classmethod
    def begin(cls, opened: Opened) -> Shared:
        records = memory_records()
        gate = records.write_opened(opened, {}, SIGNATURE)
        return cls(gate.tip, gate.id, records)

    @property
    def gate(self) -> Gate:
        return self.records.load(self.id, self.tip)


@dataclass
class Peer:
    """One clone: its own tip, and what it was told."""

    shared: Shared
    tip: str
    lost: list[Event] = field(default_factory=list)

    @classmethod
    def clone(cls, shared: Shared) -> Peer:
        return cls(shared, shared.tip)

    @property
    def gate(self) -> Gate:
        return self.shared.records.load(self.shared.id, self.tip)

    def add(self, name: str, event: Event) -> Gate:
        gate = self.shared.records.write_event(self.gate, name, event, SIGNATURE)
        self.tip = gate.tip
        return gate

    def answer(self, value: str = "Postgres", by: str = ADA, at: str = EARLY, **changes: object) -> Gate:
        fields: dict[str, object] = {"seen": self.tip, **changes}
        said = Answer(self.shared.id, {"answer": value}, "answered", at, by=by, **fields)  # type: ignore[arg-type]
        return self.add("answered", said)

    def sync(self) -> None:
        """Fetch, bring together, push."""
        records, name = self.shared.records, self.shared.id
        plan = reconcile(records.load(name, self.tip).history, self.shared.gate.history)
        if plan.keep == "remote":
            self.tip = self.say_again(plan.again)
            self.lost.extend(entry.event for entry in plan.dropped)
        assert self.shared.tip in [oid for oid, _ in records.chain(name, self.tip)]
        self.shared.tip = self.tip

    def say_again(self, entries: tuple[Entry, ...]) -> str:
        current = self.shared.gate
        for entry in entries:
            try:
                current = self.shared.records.repeat(current, entry, SIGNATURE, original(entry))
            except (IllegalEvent, BrokenRecord):
                self.lost.append(entry.event)
        return current.tip
