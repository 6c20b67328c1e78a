"""Fuzz: what one input may do. It is read, or refused with an error of ours; at once, and without touching anything."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from gitgate.errors import GateError

SECONDS = 1.0
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# What leaves a trace or starts something, by the names under which Python tells of it.
ACTS = (
    *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown"),
    *("os.utime", "os.setxattr", "os.removexattr", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork"),
    *("os.forkpty", "os.kill", "os.putenv", "os.unsetenv", "os.chdir", "subprocess.Popen", "shutil.", "tempfile."),
    *("socket.connect", "socket.bind", "socket.sendto", "ctypes.dlopen", "signal.pthread_kill"),
)  # fmt: skip


@dataclass
class Log:
    """What was done while an input was being read; `armed` in between, and at no other time."""

    armed: bool = False
    installed: bool = False
    acts: list[str] | None = None


LOG = Log()


class Finding(Exception):
    """An input that did what none may."""


def listen(event: str, args: tuple[object, ...]) -> None:
    """Python's own hook for audits: it cannot be taken away again, so that it is quiet unless it is armed."""
    if LOG.armed and LOG.acts is not None and (event.startswith(ACTS) or is_write(event, args)):
        LOG.acts.append(f"{event} {args!r}"[:300])


def is_write(event: str, args: tuple[object, ...]) -> bool:
    if event != "open" or len(args) < 3:
        return False
    mode, flags = args[1], args[2]
    by_mode = isinstance(mode, str) and any(letter in mode for letter in "wax+")
    return by_mode or (isinstance(flags, int) and bool(flags & WRITING))


def install() -> None:
    if not LOG.installed:
        LOG.installed = True
        sys.addaudithook(listen)
        sys.dont_write_bytecode = True


def watched(check: Callable[[bytes], object], data: bytes) -> float:
    """Give one input to a parser; the seconds of work that it took, or a Finding. Any error that is not ours is let out."""
    install()
    LOG.acts, LOG.armed = [], True
    start = time.thread_time()
    try:
        check(data)
    except GateError as refused:
        if not refused.message.strip():
            raise Finding("it was refused without a word") from refused
    finally:
        took = time.thread_time() - start
        LOG.armed = False
    if LOG.acts:
        raise Finding(f"it did more than read: {LOG.acts[0]}")
    return took
