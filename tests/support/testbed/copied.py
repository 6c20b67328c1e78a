"""Test bed: a copy of the package, for what a change would take: written there, and driven as a user drives it.

One process answers all commands of a copy, as `Command.quick` does in this one: each start would take longer than the test.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Self

import gitgate
from support import PATIENCE
from support.testbed.command import Outcome, checked
from support.testbed.seal import OUTSIDE

DRIVER = """
import contextlib, io, json, os, sys
from gitgate import context
from gitgate.cli.main import main

context.PROC = None  # whoever runs the tests may be an agent's child
own = dict(os.environ)
for line in sys.stdin:
    given = json.loads(line)
    os.environ.clear()
    os.environ.update({**own, **given["env"]})
    os.chdir(given["cwd"])
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        if given["script"]:
            exec(given["script"], {})
            code = 0
        else:
            code = main(given["words"])
    said = [stream.buffer.getvalue().decode() for stream in streams]
    print(json.dumps([code, *said]), flush=True)
"""


class PackageCopy:
    """`touched` names each file of it that was written, so that a test can say what a change costs."""

    def __init__(self, folder: Path) -> None:
        self.site = folder / "site"
        self.package = self.site / "gitgate"
        self.touched: set[str] = set()
        self.driver: subprocess.Popen[str] | None = None
        # A room is copied when something in it is written; until then it is the package's own.
        self.package.mkdir(parents=True)
        for entry in Path(gitgate.__file__).parent.iterdir():
            (self.package / entry.name).symlink_to(entry)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.driver is not None:
            self.driver.communicate(timeout=PATIENCE)

    def add(self, name: str, text: str) -> None:
        """A file that was not there."""
        place = self.own(name)
        assert not place.exists()
        place.write_text(text, encoding="utf-8")

    def put(self, name: str, line: str, *, before: str) -> None:
        """One more line, before the only place that has these words."""
        self.change(name, before, f"{line}{before}")

    def change(self, name: str, old: str, new: str) -> None:
        place = self.own(name)
        text = place.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{name} has {text.count(old)} times {old!r}"
        place.write_text(text.replace(old, new), encoding="utf-8")

    def own(self, name: str) -> Path:
        """A file to be written, in a room that is the copy's."""
        assert self.driver is None, "a change comes before the first command"
        room = self.package / name.partition("/")[0]
        if room.is_symlink():
            origin = room.resolve()
            room.unlink()
            # With what is compiled: a file keeps its time, so that only what is changed is compiled anew.
            (shutil.copytree if origin.is_dir() else shutil.copy2)(origin, room)
        self.touched.add(name)
        return self.package / name

    def __call__(self, *words: str, cwd: Path, code: int | None = None, **env: str) -> Outcome:
        """A command line, from its words to its exit code."""
        return checked(words, self.ask(cwd, env, words=words), code)

    def script(self, text: str, cwd: Path, **env: str) -> str:
        """What a program prints that uses the copy from Python."""
        return self.ask(cwd, env, script=text).out

    def ask(self, cwd: Path, env: dict[str, str], **given: object) -> Outcome:
        if self.driver is None:
            lead = {"PYTHONPATH": os.pathsep.join((str(self.site), str(OUTSIDE)))}
            self.driver = subprocess.Popen(
                [sys.executable, "-c", DRIVER],
                env={**os.environ, **lead},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self.driver.stdin is not None
        assert self.driver.stdout is not None
        wanted = {"cwd": str(cwd), "env": env, "words": (), "script": "", **given}
        self.driver.stdin.write(f"{json.dumps(wanted)}\n")
        self.driver.stdin.flush()
        said = self.driver.stdout.readline()
        assert said, "the copy ended before its answer"
        return Outcome(*json.loads(said))
