"""Test bed: a real terminal: tmux with a server of its own. Keys are typed into it, and its screen is read as a person sees it."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import pytest

ENDED = "the command ended with"


class Tmux:
    """A command in a window of tmux; when it is over, the window says how and stays."""

    def __init__(
        self, *command: str, cwd: Path, env: Mapping[str, str], columns: int = 120, rows: int = 45
    ) -> None:
        self.server = f"gitgate-{uuid.uuid4().hex[:12]}"
        clean = ["env", "-i", *(f"{name}={value}" for name, value in env.items()), "TERM=xterm-256color"]
        line = f'{shlex.join([*clean, *command])}; echo "{ENDED} $?"; exec sleep 600'
        size = ("-x", str(columns), "-y", str(rows))
        self.tmux("-f", "/dev/null", "new-session", "-d", *size, "-c", str(cwd), "sh", "-c", line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def tmux(self, *args: str, check: bool = True) -> str:
        done = subprocess.run(
            ["tmux", "-L", self.server, *args], capture_output=True, text=True, check=check, timeout=30
        )
        return done.stdout

    @property
    def screen(self) -> str:
        """What is on the screen, and what has been scrolled out of it."""
        return self.tmux("capture-pane", "-p", "-J", "-S", "-500")

    @property
    def title(self) -> str:
        return self.tmux("display-message", "-p", "#{pane_title}").strip()

    def shows(self, words: str, seconds: float) -> bool:
        """Whether these words are to be seen within that time."""
        end = time.monotonic() + seconds
        while words not in self.screen:
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
        return True

    def until(self, words: str, timeout: float = 60) -> str:
        """Wait until these words are to be seen."""
        end = time.monotonic() + timeout
        while words not in (screen := self.screen):
            if time.monotonic() > end:
                pytest.fail(f"no {words!r} on the screen:\n{screen}")
            time.sleep(0.2)
        return screen

    def keys(self, text: str) -> None:
        """Type, without Enter."""
        self.tmux("send-keys", "-l", "--", text)

    def press(self, *names: str) -> None:
        """Keys by their names: Enter, C-c."""
        self.tmux("send-keys", *names)

    def line(self, text: str = "") -> None:
        """As a person types: what comes with its Enter at once is taken for pasted."""
        if text:
            self.keys(text)
            time.sleep(0.7)
        self.press("Enter")

    def ended(self, code: int, timeout: float = 60) -> str:
        """Wait for the end; any other exit fails the test."""
        screen = self.until(ENDED, timeout)
        if f"{ENDED} {code}\n" not in screen:
            pytest.fail(f"expected exit {code}:\n{screen}")
        return screen

    def close(self) -> None:
        """As closing the window does: everything in it is hung up on. Its socket outlives the server."""
        self.tmux("kill-server", check=False)
        Path(f"/tmp/tmux-{os.getuid()}", self.server).unlink(missing_ok=True)
