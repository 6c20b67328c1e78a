"""A disk without room: told by a number, a class, or the end of git's own line; never by what a path or an agent is called."""

from __future__ import annotations

import errno

import pytest

from gitgate.errors import DiskFull, Failure, GateError, PushRefused, WorkFailed, tells_of_full_disk
from gitgate.store.git import GitResult, failure


@pytest.mark.parametrize(
    "said",
    [
        "error: unable to write file README",
        "fatal: write error: No space left on device",
        "error: copy-fd: write returned: No space left on device\nfatal: cannot copy 'a' to 'b': Disk quota exceeded",
    ],
)
def test_git_had_no_room(said: str) -> None:
    """Also where another failure came of it."""
    failed = failure("checkout", GitResult(128, b"", said))
    assert tells_of_full_disk(failed)
    wrapped = WorkFailed("the work cannot be restored here")
    wrapped.__cause__ = failed
    assert tells_of_full_disk(wrapped)


@pytest.mark.parametrize(
    "said",
    [
        "fatal: cannot create directory at 'no space left on device/x': Not a directory",
        "error: unable to create file 'x: No space left on device': File name too long",
        "error: pathspec 'unable to write file' did not match",
    ],
)
def test_a_path_that_is_called_so(said: str) -> None:
    """An agent names its files; an attempt that fails by them counts."""
    assert not tells_of_full_disk(failure("checkout", GitResult(128, b"", said)))


@pytest.mark.parametrize(
    "failed",
    [
        GateError("the disk is full: no space left on device"),
        Failure("handed back: the disk is full"),
        PushRefused("origin refused: no space left on device"),
        OSError(errno.EACCES, "No space left on device"),
    ],
)
def test_words_alone_are_no_full_disk(failed: Exception) -> None:
    """Whoever wrote them."""
    assert not tells_of_full_disk(failed)


def test_what_the_system_says() -> None:
    """By its number, or in its own words where a library has no number."""
    assert tells_of_full_disk(OSError(errno.ENOSPC, "x"))
    assert tells_of_full_disk(OSError("failed to write chunk: No space left on device"))
    assert tells_of_full_disk(DiskFull("x"))
