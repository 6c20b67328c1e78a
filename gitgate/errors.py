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
    """A failure that a user may meet. `hint` is what to do next, with the command to type.

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
        """The message, for whoever sees already what it is about."""
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
    """Something did not work: the machine, the network, the repository."""


class UnsupportedSystem(Failure):
    code = "unsupported_system"


class NotARepository(Failure):
    code = "not_a_repository"


class UnknownGate(Failure):
    code = "unknown_gate"


class AmbiguousGate(Failure):
    code = "ambiguous_gate"


class DiskFull(Failure):
    """There is no room where something was to be written here."""


class GitFailed(Failure):
    """A git command failed; its own words are in the message. `full`: because there is no room."""

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
    """It answered, and could not do what it was asked to: locked, full, not writable. It judged nothing, and may do it later."""

    code = "remote_unable"


class PushRefused(Failure):
    code = "push_refused"


class NeverTaken(PushRefused):
    """It was refused for what no later push can mend."""


class UnsafeRemote(Failure):
    """The remote is set up in a way that would overwrite or delete gates, or its address could run a program."""

    code = "unsafe_remote"


class BrokenRecord(Failure):
    """A gate's record breaks the protocol; nothing is decided from it."""

    code = "broken_record"


class MissingExtra(Failure):
    """A part of the product needs an extra that is not installed."""

    code = "missing_extra"


class WorkFailed(Failure):
    """The partial work could not be saved or restored; nothing was changed."""

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
    """A file does not say what it should: names the file, the line and the field."""

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
    """The policy cannot be read; until it can, nothing is allowed."""

    code = "broken_policy"


class Conflict(GateError):
    """Somebody was first: already answered, closed, or a race that was lost."""

    code = "conflict"
    kind = "conflict"


class LostRace(Conflict):
    """A ref was not where it was expected: another process moved it."""

    code = "lost_race"


class RefLocked(LostRace):
    """A ref could not be moved, since another git holds its lock, or was killed while it did. Nobody was first."""

    code = "ref_locked"
    kind = "failure"


class IllegalEvent(Conflict):
    """The state table has no row for this event in this state; nothing changed."""

    code = "illegal_event"


class StillWaiting(Conflict):
    """Not an error of anybody's: the answer is not there yet."""

    code = "waiting"
    kind = "waiting"


class Stale(GateError):
    """The gate or its work changed since it was read."""

    code = "stale"
    kind = "stale"
