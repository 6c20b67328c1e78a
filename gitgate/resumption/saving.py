"""Resumption: a conversation is saved every few minutes while it lasts, so that whatever ends it costs little.

Beside the program that has the terminal, and without a word: a thread that dies with us, and git processes that have neither
the terminal nor a part in what is typed.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

from ..errors import GateError
from ..service.desk import Desk
from . import joining
from .joining import Conversation

# They are for the thread that waits for the program; what is started here has them blocked too.
OF_THE_PROGRAM = ("SIGALRM", "SIGINT", "SIGQUIT", "SIGTSTP", "SIGTERM", "SIGHUP")
ENDS_WITHIN = 30.0


@contextlib.contextmanager
def saving(open_desk: Callable[[], Desk], talk: Conversation, every: int) -> Iterator[None]:
    """Save `talk` each `every` seconds; 0 is never."""
    if every <= 0:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=save_until, args=(over, open_desk, talk, every), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(ENDS_WITHIN)


def save_until(
    over: threading.Event, open_desk: Callable[[], Desk], talk: Conversation, every: float
) -> None:
    if hasattr(signal, "pthread_sigmask"):
        numbers = {getattr(signal, name) for name in OF_THE_PROGRAM if hasattr(signal, name)}
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    while not over.wait(every):
        # What cannot be saved now is saved the next time, or at the end, where it is told.
        with contextlib.suppress(GateError, OSError):
            desk = open_desk()
            try:
                joining.keep(desk, talk)
            finally:
                desk.close()
