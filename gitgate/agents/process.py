"""Agents: runs what an adapter wants run, in one of two ways.

For a runner: bounded in time, in a process group of its own, with nothing of our stdio. `begin` gives a `Running` that its runner
looks at between renewals of its claim; when the runner stops or dies, the keeper ends the agent.

On the person's own terminal, with nothing between them: nothing is kept, bounded or hidden, it is the person who ends it, and
afterwards the terminal is as it was.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from ..document import dataclass, field
from ..errors import Conflict, Failure
from ..store import read_local, write_private
from . import keeper
from .agent import Finished, Launch, ProcessEnding

GRACE = 10.0
PS_TIMEOUT = 3.0
KEEPER_MARGIN = 10.0
# The end of the output is where a program says what came of it; all of it stays in the folder.
OUT_MOST, ERR_MOST = 4_000_000, 64_000


@dataclass(frozen=False)
class Running:
    """An agent that was started. Whoever holds it holds its lifeline: closed, the agent ends."""

    folder: Path
    keeper: subprocess.Popen[bytes] = field(repr=False)
    lifeline: int = -1
    grace: float = GRACE

    def wait(self, seconds: float | None = None) -> Finished | None:
        """Wait for the end and return how the process ended; None if it still runs after `seconds`."""
        try:
            self.keeper.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._let_go()
        return recall(self.folder) or self._orphaned()

    def stop(self) -> Finished:
        """End it, politely first, and everything that it left running."""
        self._let_go()
        ended = self.wait(self.grace + KEEPER_MARGIN)
        if ended is None:
            self.keeper.kill()
            self.keeper.wait()
            ended = recall(self.folder) or self._orphaned()
        return ended

    def _let_go(self) -> None:
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1

    def _orphaned(self) -> Finished:
        """The keeper itself was killed: end what it kept."""
        if pid := _read_json(self.folder / keeper.STARTED).get("pid"):
            keeper.signal_group(int(pid), signal.SIGKILL)
        return _finished(self.folder, ProcessEnding.STOPPED, 128 + signal.SIGKILL)


def begin(launch: Launch, grace: float = GRACE) -> Running:
    """Start it; its folder is new, and only ours to read."""
    try:
        launch.folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        (launch.folder / keeper.ORDER).touch(mode=0o600, exist_ok=False)
    except FileExistsError as taken:
        raise Conflict(
            f"something was already started in {launch.folder}", hint="every start takes a new folder"
        ) from taken
    for name, content in {**launch.files, **({keeper.STDIN: launch.stdin} if launch.stdin else {})}.items():
        write_private(launch.folder / name, content)
    lifeline, ours = os.pipe()
    order = {
        "argv": launch.argv,
        "cwd": str(launch.cwd),
        "timeout": launch.timeout,
        "grace": grace,
        "lifeline": lifeline,
    }
    (launch.folder / keeper.ORDER).write_text(json.dumps(order), encoding="utf-8")
    try:
        started = subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__, str(launch.folder / keeper.ORDER)],
            env=dict(launch.env),
            cwd=launch.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(lifeline,),
            start_new_session=True,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(lifeline)
    return Running(launch.folder, started, ours, grace)


def run_launch(launch: Launch, grace: float = GRACE) -> Finished:
    """Start it and wait for its end, which the launch's timeout bounds; an interruption ends it too."""
    running = begin(launch, grace)
    try:
        return running.wait(launch.timeout + grace + KEEPER_MARGIN) or running.stop()
    except BaseException:
        running.stop()
        raise


def recall(folder: Path) -> Finished | None:
    """Return how the agent of that folder ended, also for a process that did not start it; None if no end was
    recorded.
    """
    told = _read_json(folder / keeper.ENDED)
    return _finished(folder, ProcessEnding(told["ending"]), int(told["code"])) if told else None


def shown_by_ps(pid: int) -> tuple[int, str]:
    """The process above this one and the line that started it, as POSIX has them told; (0, "") where nobody tells."""
    argv = ["ps", "-ww", "-o", "ppid=", "-o", "args=", "-p", str(pid)]
    try:
        said = subprocess.run(argv, capture_output=True, timeout=PS_TIMEOUT, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return 0, ""
    parent, _, line = said.decode("utf-8", "replace").strip().partition(" ")
    return (int(parent), line.strip()) if parent.isdecimal() else (0, "")


def _finished(folder: Path, ending: ProcessEnding, code: int) -> Finished:
    return Finished(
        ending, code, _tail(folder / keeper.STDOUT, OUT_MOST), _tail(folder / keeper.STDERR, ERR_MOST), folder
    )


def _tail(place: Path, most: int) -> bytes:
    with contextlib.suppress(FileNotFoundError), place.open("rb") as source:
        source.seek(max(0, place.stat().st_size - most))
        return source.read(most)
    return b""


def _read_json(place: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_local(place).decode("utf-8"))
    except FileNotFoundError:
        return {}
    return found if isinstance(found, dict) else {}


TERMINAL_GRACE = 10
# What a program that was killed leaves switched on: another screen, pasting in brackets, the mouse, no cursor, colours.
AS_BEFORE = b"\x1b[?1049l\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?25h\x1b[0m"
# The program's own business while it has the terminal: what is typed reaches us too, as one group with it.
ITS_OWN = ("SIGINT", "SIGQUIT", "SIGTSTP")
# Git, if it started us, hands an interrupt on to us once more, maybe when the program has ended by it.
ECHO = 0.5
ENDS_US = ("SIGTERM", "SIGHUP")
WARN_EVERY = 10
KEEP_TITLE, TITLE_AS_BEFORE = "\x1b[22;2t", b"\x1b[23;2t"


@dataclass(frozen=True)
class Limit:
    """Time limit of a program: after `seconds` the person is warned, and `grace` seconds later the program is ended."""

    seconds: int
    grace: int
    title: str = "this session"

    def words(self, left: int, columns: int) -> str:
        """As much of it as fits into one line."""
        over = f"{self.title} is over in {left} s"
        ways = (f" {over}: come to an end, or it is closed as a timeout ", f" {over} ", f" over in {left} s ")
        return next((words for words in ways if len(words) < columns), ways[-1][: max(0, columns - 1)])


@dataclass(frozen=True)
class LeftProgram:
    """End of the program: its exit code, 128 + n after signal n; whether that was because its time was over."""

    code: int
    timed_out: bool = False


def foreground(
    launch: Launch,
    limit: Limit | None = None,
    begun: Callable[[int], object] = lambda _pid: None,
    grace: int = TERMINAL_GRACE,
) -> LeftProgram:
    """Run it here until it ends; `begun` is told its process. Whoever ends us ends it, and is heard afterwards."""
    ended: list[int] = []
    typed: list[int] = []
    with kept_terminal(), handled(ITS_OWN, typed.append):
        child = begin_foreground(launch)
        begun(child.pid)
        timer = Timer()

        def end(number: int) -> None:
            ended.append(number)
            send_signal(child.pid, number)
            timer.arm([(grace, partial(send_signal, child.pid, signal.SIGKILL))])

        with handled(("SIGALRM",), timer.ring), handled(ENDS_US, end):
            if limit is not None:
                timer.arm(closing(limit, timer, child.pid, grace))
            try:
                code = attend(child)
            finally:
                timer.arm([])
                if timer.rung and os.isatty(2):
                    with contextlib.suppress(OSError):
                        os.write(2, TITLE_AS_BEFORE)
        if signal.SIGINT in typed:
            time.sleep(ECHO)
        if child.returncode < 0 and os.isatty(
            2
        ):  # One that ended by itself has tidied up, and says its last words.
            with contextlib.suppress(OSError):
                os.write(2, AS_BEFORE)
    if ended:
        raise KeyboardInterrupt
    return LeftProgram(code, timed_out=timer.over)


def begin_foreground(launch: Launch) -> subprocess.Popen[bytes]:
    """Its files are for our eyes only; those of an earlier conversation in that folder are written anew."""
    if launch.files:
        launch.folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    for name, content in launch.files.items():
        write_private(launch.folder / name, content)
    try:
        return subprocess.Popen(list(launch.argv), cwd=launch.cwd, env=dict(launch.env))
    except OSError as unstartable:
        raise Failure(
            f"{launch.argv[0]} cannot be started: {unstartable.strerror}", hint="git gate doctor"
        ) from unstartable


def send_signal(pid: int, number: int) -> None:
    """A signal to a child that nobody has waited for yet. `Popen` would wait for it, and take its ending from us."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


class Timer:
    """Things to do after so many seconds, each counted from the one before. One alarm at a time is all that there is."""

    def __init__(self) -> None:
        self.steps: list[tuple[float, Callable[[], object]]] = []
        self.over = False
        self.rung = False

    def arm(self, steps: Sequence[tuple[float, Callable[[], object]]]) -> None:
        self.steps = list(steps)
        self.wind()

    def wind(self) -> None:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, max(self.steps[0][0], 0.001) if self.steps else 0)

    def expire(self, pid: int) -> None:
        self.over = True
        send_signal(pid, signal.SIGTERM)

    def ring(self, _number: int) -> None:
        if self.steps:
            self.rung = True
            self.steps.pop(0)[1]()
            self.wind()


def closing(limit: Limit, timer: Timer, pid: int, grace: int) -> list[tuple[float, Callable[[], object]]]:
    """Return the steps after the time limit: warnings until the grace period ends, a termination signal, then SIGKILL."""
    moments = [*range(limit.grace, 0, -WARN_EVERY)] or [0]
    steps: list[tuple[float, Callable[[], object]]] = []
    before = limit.grace
    for number, left in enumerate(moments):
        pause = limit.seconds if number == 0 else before - left
        steps.append((pause, partial(show_time_left, limit, left, first=number == 0)))
        before = left
    return [
        *steps,
        (moments[-1], partial(timer.expire, pid)),
        (grace, partial(send_signal, pid, signal.SIGKILL)),
    ]


def show_time_left(limit: Limit, left: int, *, first: bool) -> None:
    """Show the time left in the first line of whatever the program shows, and in the window's title; the cursor stays
    where the program has it.
    """
    if os.isatty(2):
        words = limit.words(left, columns())
        line = f"\x1b7\x1b[1;1H\x1b[0;7m{words}\x1b[0m\x1b[K\x1b8\x1b]2;{words.strip()}\x07"
        with contextlib.suppress(OSError):
            os.write(2, (KEEP_TITLE + line + "\a" if first else line).encode())


def columns() -> int:
    """Return the width of the terminal now."""
    try:
        return os.get_terminal_size(2).columns or 80
    except OSError:
        return 80


def attend(child: subprocess.Popen[bytes]) -> int:
    """Wait for its end; when it is put into the background (Ctrl-Z), we go along, and come back with it."""
    if not hasattr(os, "WUNTRACED"):
        return child.wait()
    while True:
        status = os.waitpid(child.pid, os.WUNTRACED)[1]
        if not os.WIFSTOPPED(status):
            break
        if os.getpgrp() != os.getsid(0):  # a shell is above us that can bring us back
            os.kill(0, signal.SIGTSTP)  # git, if it started us, waits for us in the same group
            signal.raise_signal(signal.SIGSTOP)
        send_signal(child.pid, signal.SIGCONT)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


@contextlib.contextmanager
def handled(names: tuple[str, ...], act: Callable[[int], None]) -> Iterator[None]:
    """While this lasts, `act` on these signals. A handler, unlike ignoring, is not handed down to the program."""
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.signal(number, lambda got, _frame: act(got)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def kept_terminal() -> Iterator[None]:
    """The settings of the terminal, and who is in its foreground, are put back whatever happens; typed-ahead keys are
    dropped, since they were meant for the program.
    """
    try:
        import termios
    except ImportError:
        yield
        return
    try:
        before, group = termios.tcgetattr(0), os.tcgetpgrp(0)
    except (termios.error, OSError):
        yield
        return
    try:
        yield
    finally:
        # From the background, where a program that was killed may have left us, the terminal would stop us.
        held = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        with contextlib.suppress(OSError, termios.error):
            os.tcsetpgrp(0, group)
            termios.tcsetattr(0, termios.TCSAFLUSH, before)
        signal.signal(signal.SIGTTOU, held)


KEPT = 4_000_000
CHUNK = 65_536
PASSED_ON = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT")


@dataclass(frozen=True)
class CommandEnd:
    """The end of what a command printed, its exit code (128 + n after signal n), and the number of its process."""

    code: int
    out: bytes
    pid: int


def run_wrapped(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], forward: Callable[[bytes], object]
) -> CommandEnd:
    """Run a command to its end; `forward` is given each piece of its standard output as it comes."""
    try:
        child = subprocess.Popen(list(argv), cwd=cwd, env=dict(env), stdout=subprocess.PIPE)
    except (OSError, ValueError) as unstartable:
        reason = unstartable.strerror if isinstance(unstartable, OSError) else str(unstartable)
        hint = "git gate wrap -- COMMAND ARGUMENTS…"
        if isinstance(unstartable, FileNotFoundError) and "/" not in argv[0]:
            reason = "there is no such program on PATH"
            hint = f"install it, or name its file: git gate wrap -- /path/to/{argv[0]} ARGUMENTS…"
        raise Failure(f"{argv[0]} cannot be started: {reason}", hint=hint) from unstartable
    kept = bytearray()
    before = pass_signals_on(child)
    try:
        assert child.stdout is not None  # noqa: S101 - it was asked for above
        while piece := os.read(child.stdout.fileno(), CHUNK):
            forward(piece)
            kept += piece
            if len(kept) > 2 * KEPT:
                del kept[:-KEPT]
        code = child.wait()
    except BaseException:
        child.kill()
        child.wait()
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if child.stdout is not None:
            child.stdout.close()
    return CommandEnd(128 - code if code < 0 else code, bytes(kept[-KEPT:]), child.pid)


def pass_signals_on(child: subprocess.Popen[bytes]) -> dict[int, Any]:
    """Pass signals to us on to the child until it has ended: its reaction is its own business."""

    def pass_on(number: int, _frame: FrameType | None) -> None:
        # From the keyboard it comes to the whole group; a second one is harmless, a missing one would leave it running.
        if child.poll() is None and number != signal.SIGINT:
            child.send_signal(number)

    numbers = [getattr(signal, name) for name in PASSED_ON if hasattr(signal, name)]
    return {number: signal.signal(number, pass_on) for number in numbers}
