"""Store: programs of the person's own: the pager and the editor, as git starts them, one that is told something, one that has
the terminal for a while, one that works beside it; ours, in a process of its own; any that outlives us; and our own work in two.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ...document import NamedTuple
from ...errors import Failure, GitFailed
from . import Repository

# What git sets unless the person did: leave when it fits, keep colours, do not clear the screen.
DEFAULTS = {"LESS": "FRX", "LV": "-c"}
NOT_FOUND = (126, 127)


def page(command: str, text: bytes, env: Mapping[str, str]) -> bool:
    """Feed `text` to the pager and wait until the person leaves it; False if there is no such program."""
    try:
        pager = subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, env={**DEFAULTS, **env})
    except OSError:
        return False
    while True:
        try:
            pager.communicate(text)
        except KeyboardInterrupt:
            continue  # Ctrl-C is the pager's while it runs; it ends when the person leaves it.
        return pager.returncode not in NOT_FOUND


INTERRUPTED = (-2, 130)
HINT = "git config --global core.editor 'vim'"


def editor_of(repo: Repository, env: Mapping[str, str]) -> str:
    """Return the editor that git would open for a commit message: GIT_EDITOR, core.editor, VISUAL, EDITOR or vi."""
    chosen = {"GIT_EDITOR": env["GIT_EDITOR"]} if env.get("GIT_EDITOR") else {}
    try:
        return repo.git.run("var", "GIT_EDITOR", env=chosen).out.decode("utf-8", "surrogateescape").strip()
    except GitFailed as none:
        raise Failure("git knows no editor for this terminal", hint=HINT) from none


def edit_file(repo: Repository, path: Path, env: Mapping[str, str]) -> None:
    """Open the editor on `path` and wait until it is closed. Ctrl-C is the editor's own business meanwhile."""
    command = editor_of(repo, env)
    try:
        editor = subprocess.Popen(
            ["sh", "-c", f'{command} "$@"', command, str(path)], cwd=repo.place, env=dict(env)
        )
    except OSError as wrong:
        raise Failure(f"the editor {command!r} could not be started: {wrong.strerror}", hint=HINT) from wrong
    status = editor_code(editor)
    if status in INTERRUPTED:
        raise KeyboardInterrupt
    if status:
        raise Failure(f"the editor {command!r} ended with exit {status}; nothing was written", hint=HINT)


def editor_code(editor: subprocess.Popen[bytes]) -> int:
    while True:
        try:
            return editor.wait()
        except KeyboardInterrupt:
            continue


def open_folder(command: str, folder: Path, env: Mapping[str, str]) -> str:
    """Open the person's editor on a folder: a window of its own, or this terminal until it is closed. Return
    what went wrong.
    """
    try:
        editor = subprocess.Popen(
            ["sh", "-c", f'{command} "$@"', command, str(folder)], cwd=folder, env=dict(env)
        )
    except OSError as wrong:
        return f"the editor {command!r} could not be started: {wrong.strerror}"
    status = editor_code(editor)
    return f"the editor {command!r} ended with exit {status}" if status else ""


def lend_terminal(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> int:
    """Give this terminal to a program until it ends; return its exit code, or 128 and the signal that ended it.

    Ctrl-C is the program's meanwhile. However it ends, the terminal is as it was before.
    """
    import signal
    import termios

    modes = None
    with suppress(OSError, ValueError, termios.error):
        modes = termios.tcgetattr(0)
    # A handler, not "ignored": that would be the program's as well.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        code = subprocess.Popen(list(argv), cwd=cwd, env=dict(env)).wait()
    except OSError as wrong:
        raise Failure(f"{argv[0]} could not be started in {cwd}: {wrong.strerror}") from wrong
    finally:
        signal.signal(signal.SIGINT, before)
        if modes is not None:
            with suppress(OSError, termios.error):
                termios.tcsetattr(0, termios.TCSADRAIN, modes)
    return code if code >= 0 else 128 - code


def run_beside(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> ProgramSaid:
    """Run a program without this terminal: it can neither read from it nor write to it, nor is Ctrl-C there its own."""
    try:
        done = subprocess.run(
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            start_new_session=True,
            check=False,
        )
    except OSError as wrong:
        return ProgramSaid(127, "", f"{argv[0]} could not be started in {cwd}: {wrong.strerror}")
    return ProgramSaid(
        done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    )


class ProgramEnd(NamedTuple):
    """End of a program. `late`: it did not end in time, and was killed. Only the beginning of its output is kept."""

    code: int
    err: bytes = b""
    late: bool = False
    out: bytes = b""


def tell_program(
    argv: Sequence[str], said: bytes, env: Mapping[str, str], folder: Path, seconds: float
) -> ProgramEnd:
    """Run a program with these words on its standard input.

    Files in place of pipes: what it leaves running in the background may keep them, and nobody waits for that.
    """
    import os
    import signal
    import tempfile

    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as out:
        source.write(said)
        source.seek(0)
        try:
            running = subprocess.Popen(
                list(argv),
                cwd=folder,
                env=dict(env),
                stdin=source,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as wrong:
            return ProgramEnd(127, str(wrong.strerror).encode())
        late = False
        try:
            code = running.wait(seconds)
        except subprocess.TimeoutExpired:
            late = True
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            code = running.wait()
        err.seek(0)
        out.seek(0)
        return ProgramEnd(code, err.read(4096), late, out.read(4096))


def find_program(name: str, env: Mapping[str, str]) -> str:
    """Return the path of a program; empty where there is none.

    A folder of PATH that is not named from the root is left out: it would be another one in each directory, and an
    agent may have written what is in it.
    """
    import shutil

    folders = [one for one in env.get("PATH", "").split(":") if Path(one).is_absolute()]
    return shutil.which(name, path=":".join(folders) or "/usr/bin:/bin") or ""


def our_command(*words: str, at: Path | None = None) -> list[str]:
    """Return the command `git gate WORDS` of this very installation.

    -P: the directory that it works in never takes part in finding our own code.
    """
    place = () if at is None else ("-C", str(at))
    return [sys.executable, "-P", "-m", "gitgate", *place, *words]


def take_place(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
    """Replace this process by another program, at the same terminal and under the same number. Return only where
    that fails.
    """
    import os

    with suppress(OSError):
        os.chdir(cwd)
        os.execve(argv[0], list(argv), dict(env))  # noqa: S606 - a program of ours, without a shell


class ProgramSaid(NamedTuple):
    """Exit code and output of a program."""

    code: int
    out: str
    err: str


class ShownProgram:
    """Program that shows something next to us: a dialog, or with `terminal` a prompt in our terminal. It is polled, or
    closed.

    Its standard input is a file, so that it reads at leisure. Where the system can, a dialog does not outlive us.
    """

    GRACE = 3.0

    def __init__(
        self, argv: Sequence[str], said: bytes, env: Mapping[str, str], *, terminal: bool = False
    ) -> None:
        import tempfile

        # Open until `close`.
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        self.failed = ""
        self.running: subprocess.Popen[bytes] | None = None
        with tempfile.TemporaryFile() as source:
            source.write(said)
            source.seek(0)
            try:
                self.running = subprocess.Popen(
                    list(argv) if terminal else [*dies_with_us(env), *argv],
                    env=dict(env),
                    stdin=None if terminal else source,
                    stdout=self.out,
                    stderr=None if terminal else self.err,
                    start_new_session=not terminal,  # Ctrl-C in the terminal is ours
                )
            except OSError as wrong:
                self.failed = wrong.strerror or "it cannot be started"

    def ended(self) -> ProgramSaid | None:
        """Return its exit code and output once it has ended; None while it runs."""
        if self.running is None:
            return ProgramSaid(127, "", self.failed)
        if self.running.poll() is None:
            return None
        self.out.seek(0)
        self.err.seek(0)
        out, err = self.out.read(MOST_SAID), self.err.read(MOST_SAID)
        return ProgramSaid(
            self.running.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
        )

    def close(self) -> None:
        """End it, if it has not ended, and drop its output."""
        if self.running is not None and self.running.poll() is None:
            self.running.terminate()
            try:
                self.running.wait(self.GRACE)
            except subprocess.TimeoutExpired:
                self.running.kill()
                self.running.wait()
        self.out.close()
        self.err.close()


MOST_SAID = 1 << 20


def dies_with_us(env: Mapping[str, str]) -> list[str]:
    """Return the words before a command that end the program when we end, however we end; none without
    util-linux's `setpriv`.
    """
    import shutil

    found = shutil.which("setpriv", path=env.get("PATH"))
    return [found, "--pdeathsig", "TERM"] if found else []


def detach(argv: Sequence[str], cwd: Path, env: Mapping[str, str], log: Path) -> int:
    """Start a program that may outlive us, in a session of its own; its output goes to `log`. Return its process id.

    Where our process lives on, as a library in somebody's process does, it waits for the program's end: no zombie
    stays.
    """
    import os
    from threading import Thread

    log.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as out:
        started = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    Thread(target=started.wait, daemon=True).start()
    return started.pid


def begin_beside(work: Callable[[], bytes]) -> Callable[[], bytes] | None:
    """Have `work` done by a process forked from this one, which goes on meanwhile. Return a function that waits for
    its result.

    The result is empty where the work failed or was killed. None where there may be no more processes or files.
    """
    ends: tuple[int, ...] = ()
    try:
        ends = os.pipe()
        process = os.fork()
    except OSError:
        for end in ends:
            os.close(end)
        return None
    reading, writing = ends
    if process == 0:
        status = 1
        try:
            with os.fdopen(writing, "wb") as out:
                out.write(work())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)

    def result() -> bytes:
        with os.fdopen(reading, "rb") as said:
            found = said.read()
        return found if os.waitpid(process, 0)[1] == 0 else b""

    return result
