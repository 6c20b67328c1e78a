"""`python -m gitgate`: the same as `git-gate`."""

from .cli.process import run

run()
