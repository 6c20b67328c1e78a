"""Listening: a listener as a process, and dialogs that are scripts, or real windows on a screen in memory."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.testbed.command import COMMAND, Command
from support.testbed.repositories import Clone

ROOM = 120.0


class Listening:
    """`git gate listen` as a process, whose lines are waited for."""

    def __init__(self, cwd: Path, log: Path, *args: str, **env: str) -> None:
        self.out, self.err = log.with_suffix(".out"), log.with_suffix(".err")
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [str(COMMAND), "listen", *args],
                cwd=cwd,
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    @property
    def text(self) -> str:
        return self.out.read_text(encoding="utf-8")

    @property
    def talk(self) -> str:
        return self.err.read_text(encoding="utf-8")

    def expect(self, words: str, *, times: int = 1) -> str:
        """Wait until the words have come so often."""
        wait_for(lambda: self.text.count(words) >= times, lambda: f"no {words!r} in:\n{self.text}{self.talk}")
        return self.text

    def stop(self, number: int = signal.SIGINT) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(ROOM)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(ROOM)


def wait_for(what: Callable[[], object], words: Callable[[], str] = lambda: "it did not come") -> None:
    until = time.monotonic() + ROOM
    while not what():
        if time.monotonic() > until:
            pytest.fail(words())
        time.sleep(0.05)


@pytest.fixture
def set_up(repo: Clone, cli: Command) -> Clone:
    """A clone that `init` was run in."""
    cli.quick("init", "--no-resume", "-q", code=0)
    return repo


@pytest.fixture
def listen(set_up: Clone, tmp_path: Path) -> Iterator[Callable[..., Listening]]:
    """Start a listener in the clone, or in `cwd`; it has begun when this returns, unless `begun=False`."""
    with ExitStack() as open_ones:
        number = 0

        def start(*args: str, begun: bool = True, cwd: Path | None = None, **env: str) -> Listening:
            nonlocal number
            number += 1
            found = Listening(cwd or set_up.path, tmp_path / f"listener{number}", *args, **env)
            open_ones.callback(found.end)
            if begun:
                found.expect("listening, by")
            return found

        yield start


FAKE = r"""#!/bin/sh
# Shows nothing: notes what it was started with and reads what it is given, as call $n; then it does what the script says.
n=0
while ! mkdir "$0.d/$n" 2>/dev/null; do n=$((n + 1)); done
cat >"$0.d/$n/in"
printf '%s\0' "$@" >"$0.d/$n/new"
mv "$0.d/$n/new" "$0.d/$n/args"
"""


class FakeZenity:
    """A script that is called zenity: each call is kept, and answered by shell code."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "zenity"
        self.calls = folder / "zenity.d"
        self.calls.mkdir(parents=True)
        self.env = {"PATH": f"{folder}:{os.environ['PATH']}", "DISPLAY": ":none"}
        self.does("sleep 600")

    def does(self, script: str) -> None:
        new = self.program.with_suffix(".new")
        new.write_text(f"{FAKE}{script}\n", encoding="utf-8")
        new.chmod(0o755)
        new.replace(self.program)

    @property
    def shown(self) -> list[list[str]]:
        """What each call was started with."""
        places = sorted(self.calls.glob("*/args"), key=lambda place: int(place.parent.name))
        return [place.read_text(encoding="utf-8").split("\0")[:-1] for place in places]

    def expect(self, count: int) -> list[str]:
        """What the call of that number was started with, once it was."""
        wait_for(lambda: len(self.shown) >= count, lambda: f"shown: {self.shown}")
        return self.shown[count - 1]


@pytest.fixture
def zenity(tmp_path: Path) -> FakeZenity:
    return FakeZenity(tmp_path / "fake")
