"""Golden: the place in which everything is rendered: one server, two people and an agent; and the words that vary, named."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from support import PATIENCE
from support.testbed.command import COMMAND, Command, Outcome, call_main
from support.testbed.repositories import Clone, clone_repository, make_server
from support.testbed.seal import environment, write_global_config
from support.testbed.terminal import Terminal

HERE = Path(__file__).parent
BEGAN = 1_780_000_000
# A run of hexadecimal digits, which is a digest, the name of an object, or the beginning of one.
BEFORE = r"(?:(?<![0-9a-z])|(?<=\\n))"  # in JSON the end of a line is a letter, too
HEX = re.compile(rf"{BEFORE}(?=[a-f]*[0-9])[0-9a-f]{{7,64}}(?![0-9a-z])")
PEOPLE = {"ada": "Ada Lovelace", "bob": "Bob Byte"}


# Of what stands in the files and is to go, one line each: the file, and what is wrong there.
KNOWN = (
    "mcp: a form for a choice with words of one's own takes only the options' names, and tells the agent what else was said",
    "mcp: choices with words of one's own, forms and sessions are shown in no form at all",
    "web, editor: the form's fields have no defaults and no kinds; an array is a text in JSON",
    "desk (rendered by no file): two ticks of `choices` become the words `#13`",
)


def sealed(folder: Path) -> dict[str, str]:
    """Return the environment of the renderer, and of all that it starts."""
    top = HERE.parents[1]
    still = {
        "GOLDEN_CLOCK": str(folder / "clock"),
        "PYTHONPATH": os.pathsep.join([str(HERE / "still"), str(top / "tests"), str(top)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "COLUMNS": "100",
    }
    return {**environment(folder / "home"), **still}


@dataclass
class Scene:
    """A server with two clones, and the gates that were asked there, by name."""

    folder: Path
    gates: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    typed: int = 0

    def __post_init__(self) -> None:
        home = Path(os.environ["HOME"])
        home.mkdir(exist_ok=True)
        write_global_config(home, "[user]\n\tname = Ada Lovelace\n\temail = ada@example.org\n")
        self.turn(0)
        self.server = make_server(self.folder / "server.git")
        self.clones = {name: clone_repository(self.server.path, self.folder / name) for name in PEOPLE}
        for name, clone in self.clones.items():
            clone.git("config", "user.name", PEOPLE[name])
            clone.git("config", "user.email", f"{name}@example.org")
            clone.git("config", "gitgate.session", "push")
        os.chdir(self.clones["ada"].path)

    def apart(self, name: str, of: str = "bob") -> Path:
        """Copy somebody's clone for a surface on which gates are answered: what is said there stays there."""
        place = self.folder / name
        shutil.copytree(self.clones[of].path, place, symlinks=True)
        self.clones[name] = Clone(place)
        self.clones[name].git("config", "gitgate.push", "false")
        return place

    def turn(self, seconds: float) -> None:
        """Set the clock so many seconds on."""
        place = Path(os.environ["GOLDEN_CLOCK"])
        now = float(place.read_text("ascii")) if place.exists() else BEGAN
        place.write_text(f"{now + seconds:.3f}", "ascii")

    def __call__(
        self, *words: str, who: str = "ada", code: int | None = 0, said: str | bytes = b"", **env: str
    ) -> Outcome:
        """Run the command within this process, as one of the people."""
        self.typed += 1
        given = {"GOLDEN_SEED": str(self.typed), **env}
        with mock.patch.dict(os.environ, given):
            return Command().quick(*words, cwd=self.clones[who].path, input=said, env=given, code=code)

    def ask(
        self, name: str, *words: str, agent: str = "backend/91fe", session: str = "", code: int = 0
    ) -> str:
        """Ask, and remember the gate by a name."""
        of = ("--session", session) if session else ()
        done = self("ask", *words, "--agent", agent, *of, "-q", "--no-push", code=code)
        self.gates[name] = done.line
        return done.line

    def converse(self, *words: str, types: Sequence[str], who: str = "ada") -> str:
        """Run the command on a terminal, type each line when it is asked for, and then Ctrl-D; return what was shown."""
        self.typed += 1
        os.environ["GOLDEN_SEED"] = str(self.typed)
        lines = [f"{line}\r" for line in types]
        with ForkedTerminal(words, self.clones[who].path) as terminal:
            while terminal.stands():
                terminal.keys(lines.pop(0) if lines else "\x04")
            return f"{terminal.finish()}---- exit {terminal.process.wait(PATIENCE)}\n"

    def plain(self, text: str) -> str:
        """Return the text with each word that differs from run to run replaced by a name, the same for the same word."""
        self.names.clear()
        text = text.replace(str(self.folder), "<folder>").replace(sys.executable, "<python>")
        text = text.replace(str(COMMAND), "<git-gate>")
        for name, gate in self.gates.items():
            for size in (10, 6, 4):
                mark = f"<{name}>" if size == 10 else f"<{name}:{size}>"
                text = re.sub(rf"{BEFORE}{gate[:size]}(?![0-9a-z])", mark, text)
        return HEX.sub(self.name_of, text)

    def name_of(self, found: re.Match[str]) -> str:
        """Return the name of a digest: its length, and its place among those of that length."""
        word = found[0]
        if word.isdigit() and len(word) == 10:
            return word  # a moment of the clock, which stands still
        longer = next((whole for whole in self.names if whole.startswith(word)), None)
        if longer is None:
            count = sum(len(one) == len(word) for one in self.names) + 1
            self.names[word] = f"{len(word)}:{count}"
            longer = word
        cut = "" if longer == word else f":{len(word)}"
        return f"<{self.names[longer]}{cut}>"


@dataclass
class Child:
    """A process that this one forked, with what a terminal asks of one."""

    pid: int
    status: int | None = None

    def poll(self) -> int | None:
        if self.status is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if found else None
        return self.status

    def wait(self, seconds: float) -> int:
        until = time.monotonic() + seconds
        while (status := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("git-gate", seconds)
            time.sleep(0.005)
        return status

    def kill(self) -> None:
        os.kill(self.pid, 9)


class ForkedTerminal(Terminal):
    """A terminal before a copy of this process, which has loaded everything already."""

    def __init__(self, words: Sequence[str], place: Path) -> None:
        self.args = tuple(words)
        self.raw = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.read_to = self.typed_at = 0
        pid, self.master = pty.fork()
        if not pid:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
            os.chdir(place)
            sys.argv = [str(COMMAND), *words]
            status = 70
            try:
                status = call_main()
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(status)
        self.process = Child(pid)  # type: ignore[assignment]

    def stands(self) -> bool:
        """Wait until a prompt stands there; False when the program is over."""
        until = time.monotonic() + PATIENCE
        while not self.asks:
            if not self.take_some(until - time.monotonic()):
                return False
        return True
