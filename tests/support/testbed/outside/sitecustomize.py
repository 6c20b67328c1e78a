"""Test bed: the command, started by a test, does not look at who started the test. Python loads this before anything else."""

import os
import sys

if any("git-gate" in word or word == "gitgate" for word in sys.orig_argv[:6]):
    from gitgate import context

    context.PROC = None  # as on a system that shows no processes

if "FAKETIME" in os.environ:
    # libfaketime leaves the clock alone that Python sleeps by, and refuses to sleep by it.
    import select
    import time
    from typing import SupportsIndex

    def sleep(seconds: float | SupportsIndex, /) -> None:
        select.select((), (), (), float(seconds))

    time.sleep = sleep
