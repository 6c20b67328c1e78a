"""Real dialogs on a screen in memory: zenity and the window of our own, by clicks and keys; what is shown stays words."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.readme import fenced
from support.testbed.command import Command
from support.testbed.repositories import Clone

from .conftest import ROOM, Listening, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.screen, pytest.mark.timeout(600)]
Listen = Callable[..., Listening]
PAGE = Path(__file__).parents[3] / "docs/listening.md"
NASTY = "Which a_b & <b>one</b> </span> %s \\n $(touch run)?"


class Screen:
    """An X server that shows nothing, and a hand in front of it."""

    def __init__(self) -> None:
        read, write = os.pipe()
        # -noreset: else it starts anew when its last client goes, and nobody can open it meanwhile. A number of each worker's own.
        number = 100 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        words = [
            "Xvfb",
            f":{number}",
            "-displayfd",
            str(write),
            "-screen",
            "0",
            "1024x768x24",
            "-nolisten",
            "tcp",
        ]
        self.process = subprocess.Popen(words, pass_fds=[write], stderr=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as said:
            self.display = f":{said.readline().strip()}"
        self.env = {"DISPLAY": self.display, "NO_AT_BRIDGE": "1", "GDK_BACKEND": "x11"}
        # No other program of a desktop is there to be asked, and none is waited for.
        self.env |= {"DBUS_SESSION_BUS_ADDRESS": "disabled:", "GSETTINGS_BACKEND": "memory"}

    def hand(self, *words: str) -> str:
        done = subprocess.run(
            ["xdotool", *words], env={**os.environ, **self.env}, capture_output=True, text=True
        )
        return done.stdout.strip()

    @property
    def windows(self) -> list[str]:
        return self.hand("search", "--onlyvisible", "--name", "git gate: ").split()

    def title(self) -> str:
        wait_for(lambda: self.windows)
        return self.hand("getwindowname", self.windows[0])

    def click(self, right: int, up: int) -> None:
        """So far from the right and lower edge of the dialog."""
        for window in self.windows[:1]:
            said = self.hand("getwindowgeometry", "--shell", window)
            size = dict(line.split("=") for line in said.splitlines() if "=" in line)
            if {"WIDTH", "HEIGHT"} <= set(size):
                place = (str(int(size["WIDTH"]) - right), str(int(size["HEIGHT"]) - up))
                self.hand("mousemove", "--window", window, *place, "click", "1")

    def type(self, words: str, *keys: str) -> None:
        for window in self.windows[:1]:
            self.hand("windowfocus", window)
            if words:
                self.hand("type", words)
            self.hand("key", *keys)

    def until(self, listener: Listening, words: str, does: Callable[[], None]) -> str:
        """Do it again until it has come to that: a dialog that has just come up hears nothing for a moment."""
        until = time.monotonic() + 3 * ROOM
        while words not in listener.text:
            if time.monotonic() > until:
                pytest.fail(f"no {words!r} in:\n{listener.text}{listener.talk}")
            wait_for(lambda: self.windows or words in listener.text)
            time.sleep(1.5)
            does()
            time.sleep(0.5)
        return listener.text


@pytest.fixture
def screen() -> Iterator[Screen]:
    found = Screen()
    yield found
    found.process.terminate()
    found.process.wait(ROOM)


def asked(cli: Command, *words: str) -> str:
    return cli("ask", *words, "-q", "--agent", "backend", code=0).line


@pytest.mark.parametrize("dialog", ["zenity", "tkinter"])
def test_a_click_on_yes_approves(
    dialog: str, screen: Screen, listen: Listen, cli: Command, set_up: Clone
) -> None:
    """The dialog is named after agent and repository; its words are words, whatever they look like."""
    gate = asked(cli, NASTY, "--type", "approval", "--context", "<i>so</i> & \\n so")
    running = listen("--dialog", dialog, **screen.env)
    assert screen.title() == f"git gate: backend in {set_up.path.name}"
    screen.until(running, "answered: approved", lambda: screen.click(50, 25))
    assert cli("check", gate, code=0).out == "approved\n"
    assert not (set_up.path / "run").exists()
    wait_for(lambda: not screen.windows)
    assert "Warning" not in running.talk


@pytest.mark.parametrize(
    "line", [line for line in fenced(PAGE.read_text("utf-8"), "sh").splitlines() if line.startswith("git ")]
)
def test_the_commands_of_the_page(
    line: str, screen: Screen, listen: Listen, cli: Command, set_up: Clone
) -> None:
    """Each of them shows a question that waits, in a dialog."""
    asked(cli, "Deploy?", "--type", "approval")
    words = shlex.split(line, comments=True)
    assert words[:3] == ["git", "gate", "listen"]
    running = listen(*words[3:], **screen.env)
    assert screen.title() == f"git gate: backend in {set_up.path.name}"
    assert running.stop() == 0


@pytest.mark.parametrize("dialog", ["zenity", "tkinter"])
def test_closing_it_says_neither_yes_nor_no(
    dialog: str, screen: Screen, listen: Listen, cli: Command
) -> None:
    """Escape puts the question aside."""
    gate = asked(cli, "Deploy?", "--type", "approval")
    running = listen("--dialog", dialog, **screen.env)
    screen.until(running, "later: put aside", lambda: screen.type("", "Escape"))
    assert cli("check", gate).code == 8


@pytest.mark.parametrize(("dialog", "enter"), [("zenity", "Return"), ("tkinter", "ctrl+Return")])
def test_words_are_typed(dialog: str, enter: str, screen: Screen, listen: Listen, cli: Command) -> None:
    """And sent with a key."""
    gate = asked(cli, NASTY)
    running = listen("--dialog", dialog, **screen.env)
    screen.until(running, "answered: ", lambda: screen.type("eu west", enter))
    assert cli("check", gate, code=0).out.startswith("eu west")


@pytest.mark.parametrize(("dialog", "keys"), [("zenity", ("Down", "Return")), ("tkinter", ("2", "Return"))])
def test_a_choice_is_made_by_key(
    dialog: str, keys: tuple[str, ...], screen: Screen, listen: Listen, cli: Command
) -> None:
    """A digit in our own window, the arrows in zenity's list; markup in an option is shown as it is."""
    gate = asked(cli, NASTY, "-o", "Postgres <b>x</b>", "-o", "SQLite & more", "--no-other")
    running = listen("--dialog", dialog, **screen.env)
    screen.until(running, "answered: ", lambda: screen.type("", *keys))
    chosen = ("SQLite & more\n",) if dialog == "tkinter" else ("SQLite & more\n", "Postgres <b>x</b>\n")
    assert cli("check", gate, code=0).out in chosen


def test_several_are_chosen_by_their_digits(screen: Screen, listen: Listen, cli: Command) -> None:
    """In our own window."""
    gate = asked(
        cli, "Which?", "--type", "choices", "-o", "A, with a comma", "-o", "B", "-o", "C", "--no-other"
    )
    running = listen("--dialog", "tkinter", **screen.env)
    screen.until(running, "answered: ", lambda: screen.type("", "1", "3", "Return"))
    assert cli("check", gate, code=0).out == "A, with a comma, C\n"


@pytest.mark.parametrize("dialog", ["zenity", "tkinter"])
def test_a_real_dialog_closes_when_somebody_was_first(
    dialog: str, screen: Screen, listen: Listen, cli: Command
) -> None:
    """It is gone from the screen within seconds, and the next question has its place."""
    gate = asked(cli, "Which?", "--priority", "high")
    running = listen("--dialog", dialog, **screen.env)
    wait_for(lambda: screen.windows)
    cli("respond", gate, "elsewhere", code=0)
    running.expect("closed: elsewhere (")
    wait_for(lambda: not screen.windows)


@pytest.mark.parametrize("dialog", ["zenity", "tkinter"])
def test_no_dialog_outlives_a_listener_that_was_killed(
    dialog: str, screen: Screen, listen: Listen, cli: Command
) -> None:
    """What was typed there would be read by nobody."""
    asked(cli, "Which?")
    running = listen("--dialog", dialog, **screen.env)
    wait_for(lambda: screen.windows)
    running.end()
    wait_for(lambda: not screen.windows)
