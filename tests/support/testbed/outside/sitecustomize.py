"""Test bed: the command, started by a test, does not look at who started the test. Python loads this before anything else."""

import sys

if any("git-gate" in word or word == "gitgate" for word in sys.orig_argv[:6]):
    from pathlib import Path

    from gitgate.context import ancestry

    ancestry.PROC = Path("/nowhere")
