"""Store: the person's pager, started as git starts one. Here because this room may start processes."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

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
