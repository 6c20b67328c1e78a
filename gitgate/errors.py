"""Errors: one tree, lowest room of the house.

Each class has a stable `code` that scripts may rely on, and a `hint` that says what to do next. Which exit code a
failure has is the command line's business: its table is keyed by `kind`.
"""

from __future__ import annotations

import errno

# In a server's refusal of what no later push can mend. Clones look for these words, and put such an event aside.
FINAL = "as it is it can never be pushed"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
# How libgit2's error ends then, which has no number: the system's own words.
SAID_OF_NO_ROOM = (": No space left on device", ": Disk quota exceeded")


class GateError(Exception):
    """Error that a user may meet. `hint` is what to do next, with the command to type.

    `about`: the question, gate or flag that it is about, which begins the message; `words` is the rest of it.
    """

    code = "failed"
    kind = "failure"

    def __init__(self, message: str, *, hint: str = "", about: str = "") -> None:
        self.words = message
        self.about = about
        self.message = f"{about}: {message}" if about else message
        super().__init__(self.message)
        self.hint = hint

    def words_without(self, subject: str) -> str:
        """Return the message without what it is about, for a reader who sees that already."""
        return self.words if self.about == subject else self.message


def tells_of_full_disk(failed: BaseException) -> bool:
    """Return whether an error means that this machine's disk is full, itself or by its cause; not a remote's disk."""
    cause: BaseException | None = failed
    for _ in range(10):
        if cause is None or isinstance(cause, PushRefused | RemoteUnable):
            return False
        if isinstance(cause, DiskFull) or (isinstance(cause, GitFailed) and cause.full):
            return True
        if isinstance(cause, OSError) and (cause.errno in NO_ROOM or str(cause).endswith(SAID_OF_NO_ROOM)):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


class Failure(GateError):
    """Error of the machine, the network or the repository."""


class UnsupportedSystem(Failure):
    code = "unsupported_system"


class NotARepository(Failure):
    code = "not_a_repository"


class UnknownGate(Failure):
    code = "unknown_gate"


class AmbiguousGate(Failure):
    code = "ambiguous_gate"


class DiskFull(Failure):
    """Error for a full disk at the place where something was to be written here."""


class GitFailed(Failure):
    """Error of a git command; its own words are in the message. `full`: the disk was full."""

    code = "git_failed"

    def __init__(
        self, message: str, *, hint: str = "", status: int = 1, stderr: str = "", full: bool = False
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.stderr = stderr
        self.full = full


class RemoteUnreachable(Failure):
    code = "remote_unreachable"


class RemoteUnable(RemoteUnreachable):
    """Error of a remote that answered but could not act: locked, full, not writable. It judged nothing, and may act
    later.
    """

    code = "remote_unable"


class PushRefused(Failure):
    code = "push_refused"


class NeverTaken(PushRefused):
    """Error for a push that was refused for a reason that no later push can mend."""


class UnsafeRemote(Failure):
    """Error for a remote that would overwrite or delete gates, or whose address could run a program."""

    code = "unsafe_remote"


class BrokenRecord(Failure):
    """Error for a gate's record that breaks the protocol; nothing is decided from it."""

    code = "broken_record"


class MissingExtra(Failure):
    """Error for a part of the product that needs an extra that is not installed."""

    code = "missing_extra"


class WorkFailed(Failure):
    """Error for partial work that could not be saved or restored; nothing was changed."""

    code = "work_failed"


class Usage(GateError):
    """Error for a request that does not fit; nothing was written."""

    code = "usage"
    kind = "usage"


class BadAnswer(Usage):
    """Error for an input that is no answer. `tells`: its message says already what would be one."""

    code = "bad_answer"

    def __init__(self, message: str, *, hint: str = "", about: str = "", tells: bool = True) -> None:
        super().__init__(message, hint=hint, about=about)
        self.tells = tells


class UnknownOption(BadAnswer):
    """Error for an input that is none of the options. A question that takes other words may mean it as those."""


class BadDocument(Usage):
    """Error for a file that does not have what it should: names the file, the line and the field."""

    code = "bad_document"

    def __init__(self, source: str, line: int, field: str, expected: str, *, hint: str = "") -> None:
        place = f"{source}, line {line}" if line else source
        super().__init__(f"{place}: {field}: {expected}" if field else f"{place}: {expected}", hint=hint)
        self.source = source
        self.line = line
        self.field = field
        self.expected = expected


class NotAllowed(GateError):
    code = "not_allowed"
    kind = "not_allowed"


class BrokenPolicy(NotAllowed):
    """Error for a policy that cannot be read; until it can, nothing is allowed."""

    code = "broken_policy"


class Conflict(GateError):
    """Error for an act that came second: the gate is answered or closed already, or a race was lost."""

    code = "conflict"
    kind = "conflict"


class LostRace(Conflict):
    """Error for a ref that was not where it was expected: another process moved it."""

    code = "lost_race"


class RefLocked(LostRace):
    """Error for a ref whose lock another git holds, or left when it was killed. No other change came first."""

    code = "ref_locked"
    kind = "failure"


class IllegalEvent(Conflict):
    """Error for an event that the state table does not have in this state; nothing changed."""

    code = "illegal_event"


class StillWaiting(Conflict):
    """Signal that the answer is not there yet, which is no failure."""

    code = "waiting"
    kind = "waiting"


class Stale(GateError):
    """Error for a gate, or its work, that changed since it was read."""

    code = "stale"
    kind = "stale"
