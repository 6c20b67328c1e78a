"""Command line: one run of it as a process. Most are over in a moment, so memory is left to the system to tidy."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
from typing import NoReturn

# Python's own 700 looks for garbage ten times while ten thousand gates are read, and there is none.
OBJECTS_BETWEEN_COLLECTIONS = 100_000


def run() -> NoReturn:
    """Run the program. Ctrl-C while its modules are still loading gives no traceback either."""
    try:
        start()
    except KeyboardInterrupt:
        from .main import cut_short

        leave(cut_short(sys.argv[1:]))


def start() -> NoReturn:
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        hold_streams()
    from .main import main

    leave(main())


def leave(code: int) -> NoReturn:
    """Leave as `sys.exit` does, without freeing each object first.

    To free them takes a tenth of a short command, and more of a long list.
    """
    if threading.active_count() > 1:
        sys.exit(code)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(code)  # Python says in its own way that nobody could read this.
    atexit._run_exitfuncs()  # noqa: SLF001 - what is to be done at the end is done, as Python would
    os._exit(code)


def hold_streams() -> None:
    """Open a closed stream on /dev/null, before the next file or pipe gets its number and our words end up there."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = os.O_RDONLY if number == 0 else os.O_WRONLY
            opened = os.open(os.devnull, mode)
            if opened != number:  # an earlier stream is closed, too, or somebody took the number already
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115


class stop_on_signal:  # noqa: N801  read as a statement: `with stop_on_signal() as stopping`
    """Context in which SIGTERM and SIGINT ask us to hand back our claims, so that nothing is left half done."""

    def __init__(self) -> None:
        self.stopping = threading.Event()

    def __enter__(self) -> threading.Event:
        self.before = {
            number: signal.signal(number, lambda *_: self.stopping.set())
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        return self.stopping

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
