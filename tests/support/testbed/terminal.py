"""Test bed: a pseudo-terminal, for what the command does only when a person sits in front of it."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import pytest

from support import PATIENCE

from .command import COMMAND

# Colours, cursor moves, titles: what a terminal acts on and a reader does not see.
ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")

# The child makes the terminal its own (Ctrl-C and hanging up then reach it) and becomes the program.
TAKE_TERMINAL = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"

# How an unfinished line ends where a program asks for one.
PROMPTS = (": ", "? ", "] ", "> ", "# ", "$ ", "… ")


def as_read(raw: str) -> str:
    return ESCAPES.sub("", raw).replace("\r\n", "\n")


class Terminal:
    """A command under a terminal of its own: wait for words with `expect`, type with `line` and `keys`."""

    def __init__(
        self,
        *args: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        rows: int = 40,
        columns: int = 100,
        program: str = str(COMMAND),
    ) -> None:
        self.args = args
        self.raw = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.read_to = 0
        self.typed_at = 0
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-IS", "-c", TAKE_TERMINAL, program, *args],
            start_new_session=True,
            cwd=cwd,
            env={**os.environ, "TERM": "xterm-256color", **(env or {})},
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def text(self) -> str:
        """Everything so far, as read by a person: without escapes, lines ending in a plain newline."""
        return as_read(self.raw)

    def expect(self, words: str, *, timeout: float = PATIENCE) -> str:
        """Wait until `words` appear after what was last expected; give back what came before them."""
        until = time.monotonic() + timeout
        while (found := self.text.find(words, self.read_to)) < 0:
            if not self.take_some(until - time.monotonic()):
                pytest.fail(f"git-gate {' '.join(self.args)}: no {words!r} on the terminal:\n{self.text}")
        before = self.text[self.read_to : found]
        self.read_to = found + len(words)
        return before

    @property
    def asks(self) -> bool:
        """Whether a prompt stands there: after what was typed last, a line that is not finished."""
        _, after_typed, line = as_read(self.raw[self.typed_at :]).rpartition("\n")
        return line.endswith(PROMPTS) and bool(after_typed or not self.typed_at)

    def keys(self, text: str) -> None:
        """Type at once, without Enter. What a program drops that comes before its prompt is lost."""
        os.write(self.master, text.encode())
        self.typed_at = len(self.raw)

    def line(self, text: str = "", *, timeout: float = PATIENCE) -> None:
        """Type a line and Enter, when the program asks for it."""
        until = time.monotonic() + timeout
        while not self.asks:
            if not self.take_some(until - time.monotonic()):
                pytest.fail(
                    f"git-gate {' '.join(self.args)}: no prompt for {text!r} on the terminal:\n{self.text}"
                )
        self.keys(text + "\r")

    def interrupt(self, typed: str = "", *, code: int = 130) -> str:
        """Ctrl-C, after what is `typed`, and once more where nothing came of it: Python does not see one that comes after a prompt
        was shown, and before it waits for what is typed there.
        """
        self.keys(f"{typed}\x03")
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        if self.process.poll() is None:
            self.keys("\x03")
        return self.finish(code=code)

    def finish(self, *, code: int | None = None, timeout: float = PATIENCE) -> str:
        """Wait for the end; with `code`, any other exit fails the test. Gives back everything that was shown."""
        until = time.monotonic() + timeout
        while self.take_some(until - time.monotonic()):
            pass
        try:
            status = self.process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            pytest.fail(f"git-gate {' '.join(self.args)}: still running after {timeout:g} s:\n{self.text}")
        if code is not None and status != code:
            pytest.fail(f"git-gate {' '.join(self.args)}: exit {status}, expected {code}:\n{self.text}")
        return self.text

    def take_some(self, seconds: float) -> bool:
        """Read what is there within `seconds`; False when the program hung up or the time is over."""
        if seconds <= 0 or not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            got = os.read(self.master, 65536)
        except OSError:  # Linux says EIO when the last writer has gone.
            return False
        self.raw += self.decoder.decode(got)
        return bool(got)

    def end(self) -> None:
        """Hang up, as closing the window would, and leave nothing behind."""
        if self.master >= 0:
            os.close(self.master)
            self.master = -1
        if self.process.poll() is None:
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(5)
