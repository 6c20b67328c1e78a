"""Audit: whether what is recorded holds. Here are the values that a check ends with."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..store.git.signatures import Verdict


@dataclass(frozen=True)
class Problem:
    """Something that does not hold. `commit` is empty where it is about the gate as a whole."""

    gate: str
    commit: str
    kind: str
    words: str

    @property
    def problem(self) -> str:
        """Its words, by the name that they have in JSON."""
        return self.words

    def shape(self) -> dict[str, str]:
        return {"gate": self.gate, "commit": self.commit, "kind": self.kind, "problem": self.problem}

    @property
    def line(self) -> str:
        return f"{self.gate} {self.commit[:12] or '-'} {self.words}"


@dataclass
class Verified:
    """What was checked, what is wrong, and what could not be checked here and why (`notes`)."""

    gates: int = 0
    events: int = 0
    runs: int = 0
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    signatures: dict[str, int] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    def shape(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "ok": self.ok,
            "gates": self.gates,
            "events": self.events,
            "runs": self.runs,
            "signatures": self.signatures,
            "problems": [problem.shape() for problem in self.problems],
            "notes": [note.shape() for note in self.notes],
        }

    @property
    def ok(self) -> bool:
        """Nothing is wrong; what could not be checked here is not wrong."""
        return not self.problems

    def wrong(self, gate: str, commit: str, kind: str, words: str) -> None:
        self.problems += (Problem(gate, commit, kind, words),)

    def note(self, gate: str, commit: str, kind: str, words: str) -> None:
        self.notes += (Problem(gate, commit, kind, words),)
