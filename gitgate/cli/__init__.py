"""Command line: the one room that prints, exits and turns errors into exit codes. Here are the codes, all of them. Scripts rely on each."""

from __future__ import annotations

DONE = 0
FAILURE = 1
USAGE = 2
SAID_NO = 3
NOT_ALLOWED = 4
CONFLICT = 5
STALE = 6
WAITING = 8
CLOSED = 9
BUG = 70
DEADLINE = 124
INTERRUPTED = 130


class Meaning:
    """Row of the table of exit codes. `kind`: of the errors that end so (`gitgate.errors`).

    The class is as plain as it is so that nothing is loaded for it.
    """

    def __init__(self, code: int, words: str, kind: str = "") -> None:
        self.code, self.words, self.kind = code, words, kind


MEANINGS = (
    Meaning(DONE, "done; answered or approved, also while the agent is being resumed or after that failed"),
    Meaning(FAILURE, "failure: unknown or ambiguous id, no repository, network", "failure"),
    Meaning(USAGE, "usage, or an answer that does not fit", "usage"),
    Meaning(SAID_NO, "a person said no"),
    Meaning(NOT_ALLOWED, "not allowed", "not_allowed"),
    Meaning(CONFLICT, "somebody was first: already answered, closed, or a race was lost", "conflict"),
    Meaning(STALE, "stale: the work or the gate changed since it was read", "stale"),
    Meaning(WAITING, "still waiting, also when a bounded wait ran out", "waiting"),
    Meaning(CLOSED, "closed without an answer: stopped or withdrawn"),
    Meaning(BUG, "a bug in gitgate; it says where the report is"),
    Meaning(DEADLINE, "the gate's deadline passed: expired, or a default applied"),
    Meaning(INTERRUPTED, "interrupted"),
)
BY_KIND = {row.kind: row.code for row in MEANINGS if row.kind}


def exit_of_gate(state: str, verdict: str | None, *, expired: bool = False) -> int:
    """Return the exit code of `check` and `wait` for a gate.

    A default or a passed deadline never looks like a person's answer.
    """
    if state == "awaiting":
        return WAITING
    if state in ("withdrawn", "stopped") and verdict is None:
        return CLOSED
    if expired or state == "expired" or verdict == "defaulted":
        return DEADLINE
    return SAID_NO if verdict == "rejected" else DONE
