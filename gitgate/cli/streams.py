"""Command line: the three streams of a process. Whoever starts us may have closed one, as some schedulers do."""

from __future__ import annotations

import os
import sys


def hold_streams() -> None:
    """Lead a closed stream nowhere, before its number is given to the next file or pipe, which our words would end up in."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = os.O_RDONLY if number == 0 else os.O_WRONLY
            opened = os.open(os.devnull, mode)
            if opened != number:  # an earlier stream is closed, too, or somebody took the number already
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115
