"""Fuzz: one parser, by coverage. A process of its own: it ends with its figures, or where libFuzzer found something.

`python -m tests.fuzz.one TARGET RUNS SECONDS FIGURES [libFuzzer's options and folders]`
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import atheris

# Of those two there is nothing to learn: they look through a text for each of many patterns, ten times slower when counted.
with atheris.instrument_imports(include=["gitgate"], exclude=["gitgate.text.secrets"]):
    import gitgate.agents
    import gitgate.document.codec  # noqa: F401 - what is imported late has to be here for its branches to be counted

    from .targets import TARGETS

from .mutate import LONGEST, mutated
from .watch import SECONDS, Finding, watched


@dataclass
class Count:
    """What was tried so far."""

    name: str
    runs: int
    seconds: float
    figures: Path
    tried: int = 0
    worst: float = 0.0
    started: float = field(default_factory=time.monotonic)

    def one(self, data: bytes) -> None:
        took = watched(TARGETS[self.name].check, data)
        self.tried += 1
        self.worst = max(self.worst, took)
        if took > SECONDS:
            raise Finding(f"it took {took:.2f} s")
        if self.tried >= self.runs or time.monotonic() - self.started > self.seconds:
            self.end()

    def end(self) -> NoReturn:
        took = time.monotonic() - self.started
        self.figures.write_text(json.dumps({"inputs": self.tried, "seconds": took, "worst": self.worst}))
        sys.stderr.flush()
        os._exit(0)  # libFuzzer would end without Python's own ending, or go on


def main() -> None:
    name, runs, seconds, figures, *options = sys.argv[1:]
    count = Count(name, int(runs), float(seconds), Path(figures))

    def mutator(data: bytes, most: int, seed: int) -> bytes:
        return mutated(data, most, seed, lambda given, size: bytes(atheris.Mutate(given, size)))

    told = [
        sys.argv[0],
        f"-max_len={LONGEST}",
        "-timeout=20",
        "-rss_limit_mb=2048",
        "-detect_leaks=0",
        *options,
    ]
    atheris.Setup(told, count.one, custom_mutator=mutator)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
