"""Agents: a program on the person's own terminal, with nothing between them; afterwards the terminal is as it was.

Apart from `process`, because here nothing is kept, bounded or hidden: it is the person who ends it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator

from ..errors import Failure
from .agent import Launch

GRACE = 10
# What a program that was killed leaves switched on: another screen, pasting in brackets, the mouse, no cursor, colours.
AS_BEFORE = b"\x1b[?1049l\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?25h\x1b[0m"
# The program's own business while it has the terminal: what is typed reaches us too, as one group with it.
ITS_OWN = ("SIGINT", "SIGQUIT", "SIGTSTP")
# Git, if it started us, hands an interrupt on to us once more, maybe when the program has ended by it.
ECHO = 0.5
ENDS_US = ("SIGTERM", "SIGHUP")


def foreground(launch: Launch, grace: int = GRACE) -> int:
    """Run it here until it ends; its exit code, 128 + n after signal n. Whoever ends us ends it, and is heard afterwards."""
    ended: list[int] = []
    typed: list[int] = []
    with kept_terminal(), handled(ITS_OWN, typed.append):
        try:
            child = subprocess.Popen(list(launch.argv), cwd=launch.cwd, env=dict(launch.env))
        except OSError as unstartable:
            raise Failure(
                f"{launch.argv[0]} cannot be started: {unstartable.strerror}", hint="git gate doctor"
            ) from unstartable

        def end(number: int) -> None:
            ended.append(number)
            child.send_signal(number)
            signal.alarm(grace)

        with handled(("SIGALRM",), lambda _number: child.kill()), handled(ENDS_US, end):
            code = attend(child)
            if ended:
                signal.alarm(0)
        if signal.SIGINT in typed:
            time.sleep(ECHO)
        if code > 128 and os.isatty(2):
            with contextlib.suppress(OSError):
                os.write(2, AS_BEFORE)
    if ended:
        raise KeyboardInterrupt
    return code


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
        child.send_signal(signal.SIGCONT)
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
