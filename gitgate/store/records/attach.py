"""Store: reads a file that is to be attached, and nothing else: no link that leads away, no folder, pipe or device."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from shlex import quote

from ...errors import Usage
from ...questions.file import MOST_BYTES, check_name
from ...text.display import one_line


def read_attachment(path: Path, root: Path) -> tuple[str, bytes]:
    """The file's path below `root`, with slashes, and its bytes. A relative `path` begins at `root`."""
    shown = f'"{one_line(os.fspath(path), 120)}"'
    outside = Usage(
        f"{shown}: expected a file below {one_line(os.fspath(root), 120)}; it leads out of it",
        hint=f"cp {quote(os.fspath(path))} . && git gate ask … --attach {quote(path.name)}",
    )
    # Not resolved: the name is the one that the person gave, and `..` is refused rather than followed.
    whole = root / path
    if not whole.is_relative_to(root):
        raise outside
    name = check_name(whole.relative_to(root).as_posix(), shown, field="attachment")
    try:
        base, real = root.resolve(strict=True), whole.resolve(strict=True)
    except (OSError, RuntimeError) as wrong:  # RuntimeError: a link that leads to itself, before Python 3.13
        raise Usage(f"{shown}: expected a file; {reason(wrong)}") from wrong
    if not real.is_relative_to(base) or real == base:
        raise outside
    check_name(real.relative_to(base).as_posix(), shown, field="attachment")  # a link to .git/config, say
    return name, _bytes(real, shown)


def _bytes(path: Path, shown: str) -> bytes:
    """Opened without following a link or waiting for a pipe, judged by what was opened, then read."""
    flags = (
        os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    )
    try:
        kind = os.lstat(path).st_mode
        if not stat.S_ISREG(kind):  # opening a device can have effects of its own
            raise Usage(f"{shown}: expected a regular file; found {mode_words(kind)}")
        descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0))
    except OSError as wrong:
        raise Usage(f"{shown}: expected a file that can be read; {reason(wrong)}") from wrong
    with os.fdopen(descriptor, "rb") as file:
        opened = os.fstat(descriptor)
        if not stat.S_ISREG(opened.st_mode):
            raise Usage(f"{shown}: expected a regular file; found {mode_words(opened.st_mode)}")
        try:
            content = file.read(MOST_BYTES + 1)
        except OSError as wrong:
            raise Usage(f"{shown}: expected a file that can be read; {reason(wrong)}") from wrong
    if len(content) > MOST_BYTES:
        size = max(opened.st_size, len(content))
        raise Usage(
            f"{shown}: expected at most {MOST_BYTES:,} bytes; found {size:,}",
            hint="attach the part that matters, or commit the file and name it in the question",
        )
    return content


def mode_words(mode: int) -> str:
    """What a file's mode says that it is."""
    kinds = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISLNK, "a symbolic link"),
    )
    return next((words for test, words in kinds if test(mode)), "a device")


def reason(wrong: Exception) -> str:
    """The system's own words, without its number."""
    return (
        (wrong.strerror or "it cannot be read").lower()
        if isinstance(wrong, OSError)
        else "the link leads to itself"
    )
