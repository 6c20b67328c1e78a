"""Test bed: what a record may amount to, told without the fold: by who said what, and what they had before them then.

A word is known by its time, which no two of a test share. `view` is what its author had in view when they said it, whichever
clone they sat at: the record does not tell, so that nothing that the record claims is believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gitgate.model.gate import Answer, Edit, Entry, Gate

COUNTING = ("answered", "voted", "amended", "edited", "commented", "stopped", "withdrawn")
ACTS = {"claimed": "resuming", "released": "answered", "resumed": "resumed", "failed": "failed"}


@dataclass(frozen=True)
class Word:
    """What somebody said. `terms`: what an edit changes."""

    at: str
    kind: str
    by: str
    value: str = ""
    view: frozenset[str] = frozenset()
    terms: frozenset[str] = frozenset()

    def rivals(self, other: Word) -> bool:
        """Whether each says what takes the place of what the other says: of one person, of one matter."""
        if self.by != other.by or self.kind != other.kind:
            return False
        return self.kind == "vote" or bool(self.terms & other.terms)


@dataclass
class Course:
    """A gate as it goes when words arrive one after another at one place, by the rules as they are written for people."""

    quorum: int
    state: str = "awaiting"
    told: str = ""
    votes: dict[str, str] = field(default_factory=dict)
    priority: str = "normal"
    to: tuple[str, ...] = ()

    def hear(self, word: Word) -> None:
        if word.kind == "vote":
            self.hear_vote(word)
            return
        assert word.kind == "comment" or self.state == "awaiting", (
            f"{word} counts where the gate is {self.state}"
        )
        if word.kind == "edit":
            self.priority = word.value if "priority" in word.terms else self.priority
            self.to = (word.value,) if "to" in word.terms else self.to
        elif word.kind != "comment":
            self.state = {"stop": "stopped", "withdrawal": "withdrawn"}[word.kind]

    def hear_vote(self, word: Word) -> None:
        assert self.state in ("awaiting", "answered"), f"{word} counts where the gate is {self.state}"
        if self.state == "answered":
            assert self.votes.get(word.by) == self.told, f"{word} amends an answer that is not its author's"
        self.votes[word.by] = word.value
        if list(self.votes.values()).count(word.value) >= self.quorum:
            self.state, self.told = "answered", word.value
        else:
            assert self.state == "awaiting", f"{word} undecides what is decided"


def check(gate: Gate, words: Mapping[str, Word]) -> None:
    """That the gate is what these words make it, each heard once, in an order in which their authors may have said them."""
    course = Course(gate.opened.quorum)
    counting: list[Word] = []
    for entry in gate.history[1:]:
        if entry.name in COUNTING:
            word = said(entry, words)
            assert word not in counting, f"{word} counts twice"
            for before in counting:
                if word.rivals(before):
                    assert before.at in word.view, (
                        f"{word} takes the place of {before}, which its author did not know"
                    )
            course.hear(word)
            counting.append(word)
        elif entry.name == "late":
            check_late(course, said(entry, words), counting)
        elif entry.name != "repeated":
            course.state = ACTS[entry.name]
    found = {vote.answer.by: str(vote.answer.values["answer"]) for vote in gate.votes}
    told = "" if gate.answer is None else str(gate.answer.answer.values["answer"])
    assert (gate.state, told, found) == (course.state, course.told, course.votes)
    assert (gate.priority, gate.to) == (course.priority, course.to)


def check_late(course: Course, word: Word, counting: Iterable[Word]) -> None:
    """Words are put off only where the gate was decided, or their author had said something else that they did not know of."""
    overtaken = any(word.rivals(before) and before.at not in word.view for before in counting)
    assert overtaken or course.state != "awaiting", f"{word} is without effect, and nothing speaks against it"


def said(entry: Entry, words: Mapping[str, Word]) -> Word:
    """Whose word it is: of nobody's but what somebody said, the event says the same."""
    word = words.get(getattr(entry.event, "at", ""))
    assert word is not None, f"{entry} is nobody's word"
    event = entry.event
    assert getattr(event, "by", "") == word.by
    if isinstance(event, Answer):
        assert (word.kind, event.values) == ("vote", {"answer": word.value})
    else:
        assert isinstance(event, Edit) is (word.kind == "edit")
    return word
