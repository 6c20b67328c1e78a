"""Test bed: the command, as its users start it (a process), as a process that was loaded before, or within this one."""

from __future__ import annotations

import gc
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from support import PATIENCE

from .loaded import LOADED

COMMAND = Path(sys.executable).parent / "git-gate"


@dataclass(frozen=True)
class Outcome:
    """What a run left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one JSON document that it has to be."""
        return json.loads(self.out)

    @property
    def line(self) -> str:
        """Standard output as the one line that it has to be."""
        (only,) = self.out.splitlines()
        return only


class Command:
    """`cli(…)` starts the installed command; `cli.forked(…)` is a process too, whose modules were loaded before;
    `cli.quick(…)` calls the same entry in this process.
    """

    def __call__(
        self,
        *args: str,
        cwd: Path | None = None,
        input: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        code: int | None = None,
        timeout: float = PATIENCE,
    ) -> Outcome:
        """Run to the end; with `code`, any other exit fails the test and shows what was said."""
        done = subprocess.run(
            [str(COMMAND), *args],
            cwd=cwd,
            input=input.encode() if isinstance(input, str) else input,
            env={**os.environ, **(env or {})},
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        return checked(args, Outcome(done.returncode, *map(decoded, (done.stdout, done.stderr))), code)

    def forked(
        self,
        *args: str,
        cwd: Path | None = None,
        input: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        code: int | None = None,
        timeout: float = PATIENCE,
    ) -> Outcome:
        """As `cli(…)` without its start-up, which is most of what a process costs: for all but how it starts."""
        surroundings = {**os.environ, **(env or {})}
        if not LOADED.may_run(surroundings):
            return self(*args, cwd=cwd, input=input, env=env, code=code, timeout=timeout)
        fed = input.encode() if isinstance(input, str) else input
        words = [str(COMMAND), *args]
        done = LOADED.run(words, cwd=cwd, env=surroundings, input=fed, timeout=timeout)
        return checked(args, Outcome(done.code, *map(decoded, (done.out, done.err))), code)

    def scripted(
        self,
        script: str,
        *args: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = PATIENCE,
    ) -> Outcome:
        """Python code in a process of its own, as by `python -c`: the command with something of it replaced."""
        surroundings = {**os.environ, **(env or {})}
        if LOADED.may_run(surroundings):
            words = [str(COMMAND), *args]
            done = LOADED.run(words, cwd=cwd, env=surroundings, timeout=timeout, script=script)
            return Outcome(done.code, *map(decoded, (done.out, done.err)))
        called = [sys.executable, "-c", script, *args]
        ended = subprocess.run(
            called, cwd=cwd, env=surroundings, capture_output=True, timeout=timeout, check=False
        )
        return Outcome(ended.returncode, *map(decoded, (ended.stdout, ended.stderr)))

    def start(
        self, *args: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start without waiting, for what blocks or races; the caller ends it."""
        return subprocess.Popen(
            [str(COMMAND), *args],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def quick(
        self,
        *args: str,
        cwd: Path | None = None,
        input: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        code: int | None = None,
    ) -> Outcome:
        """The same without a new process: no start-up, no terminal, not for what forks or takes signals."""
        fed = input.encode() if isinstance(input, str) else input
        out, err = io.BytesIO(), io.BytesIO()
        with (
            mock.patch.dict(os.environ, env or {}),
            mock.patch.object(sys, "argv", [str(COMMAND), *args]),
            mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(fed), encoding="utf-8")),
            chdir(cwd or Path.cwd()),
            redirect_stdout(io.TextIOWrapper(out, encoding="utf-8", write_through=True)),
            redirect_stderr(io.TextIOWrapper(err, encoding="utf-8", write_through=True)),
        ):
            status = call_main()
            gc.enable()  # A list looks for no garbage any more, and takes it that its process ends.
            said = Outcome(status, decoded(out.getvalue()), decoded(err.getvalue()))
        return checked(args, said, code)


class ForkedCommand(Command):
    """Its `cli(…)` is `cli.forked(…)`."""

    def __call__(self, *args: str, **how: Any) -> Outcome:
        if LOADED.may_run({**os.environ, **(how.get("env") or {})}):
            return self.forked(*args, **how)
        return super().__call__(*args, **how)


def call_main() -> int:
    """The console entry's exit status, found as the console script finds it."""
    from gitgate.cli.main import main

    try:
        status: object = main()
    except SystemExit as leaving:
        status = leaving.code
    if status is None:
        return 0
    return status if isinstance(status, int) else 1


def checked(args: tuple[str, ...], outcome: Outcome, code: int | None) -> Outcome:
    if code is not None and outcome.code != code:
        pytest.fail(
            f"git-gate {' '.join(args)}: exit {outcome.code}, expected {code}\n"
            f"--- stdout\n{outcome.out}\n--- stderr\n{outcome.err}"
        )
    return outcome


def decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def shell_called(folder: Path, name: str) -> Path:
    """A shell that the system takes for the program of this name."""
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy("/bin/sh", folder / name))


def run_seen(script: str, cwd: Path, **env: str) -> Outcome:
    """In a process tree that is looked at, as outside of tests."""
    known = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = ["sh", "-c", f"{script}\n:"]
    said = subprocess.run(words, cwd=cwd, env={**known, **env}, capture_output=True, text=True, timeout=60)
    return Outcome(said.returncode, said.stdout, said.stderr)
