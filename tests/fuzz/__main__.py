"""Fuzz: `python -m tests.fuzz [TARGET …] --runs N --seconds S`: every parser, or these, two at a time, and the figures."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .keep import keep
from .targets import TARGETS
from .watch import SECONDS, watched

TOP = Path(__file__).parents[2]


@dataclass(frozen=True)
class Tried:
    """One parser's figures, or what was found."""

    name: str
    inputs: int = 0
    seconds: float = 0.0
    worst: float = 0.0
    found: str = ""

    @property
    def line(self) -> str:
        figures = (
            f"{self.inputs:>8,} inputs in {self.seconds:5.1f} s, the slowest {self.worst * 1000:6.1f} ms"
        )
        return f"{self.name:<10}{figures}" + (f"\n{self.found}" if self.found else "")


def main(words: Sequence[str]) -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    asked.add_argument("targets", nargs="*", metavar="TARGET", help=f"one of {', '.join(TARGETS)}; none: all")
    asked.add_argument("--runs", type=int, default=10_000, help="inputs to each parser (10000)")
    asked.add_argument("--seconds", type=float, default=60, help="at most so long for each (60)")
    asked.add_argument("--jobs", type=int, default=2, help="parsers at a time (2)")
    asked.add_argument("--seed", type=int, default=0, help="libFuzzer's; 0: another one each time")
    asked.add_argument(
        "--keep", action="store_true", help="add to the corpora what takes new steps in the code"
    )
    given = asked.parse_args(words)
    strange = [name for name in given.targets if name not in TARGETS]
    if strange:
        asked.error(f"there is no parser {strange[0]!r}; there are {', '.join(TARGETS)}")
    with ThreadPoolExecutor(max(1, given.jobs)) as jobs:
        done = list(jobs.map(lambda name: fuzz(name, given), given.targets or TARGETS))
    short = [tried.name for tried in done if not tried.found and tried.inputs < given.runs]
    lines = [tried.line for tried in done]
    if short:
        lines.append(f"not all {given.runs:,} inputs in {given.seconds:g} s: {', '.join(short)}")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if short or any(tried.found for tried in done) else 0


def fuzz(name: str, given: argparse.Namespace) -> Tried:
    """One parser in a process of its own, from its corpus; what is found is tried again without the fuzzer."""
    corpus = TARGETS[name].corpus
    corpus.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"fuzz-{name}-") as folder:
        fresh, figures, artifacts = (Path(folder, part) for part in ("fresh", "figures", "found"))
        fresh.mkdir()
        artifacts.mkdir()
        options = [f"-artifact_prefix={artifacts}/", f"-seed={given.seed}", str(fresh), str(corpus)]
        command = [
            sys.executable,
            "-m",
            f"{__package__}.one",
            name,
            str(given.runs),
            str(given.seconds),
            str(figures),
        ]
        try:
            ended = subprocess.run(
                [*command, *options],
                cwd=TOP,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=given.seconds + 120,
            )
        except subprocess.TimeoutExpired:
            return Tried(name, found=f"it did not end within {given.seconds + 120:g} s")
        if given.keep:
            keep(TARGETS[name].check, [place.read_bytes() for place in fresh.iterdir()], corpus)
        if ended.returncode == 0 and figures.is_file():
            return Tried(name, **json.loads(figures.read_text()))
        found = [judge(name, place, corpus) for place in sorted(artifacts.iterdir())]
        return Tried(
            name,
            found="\n".join(found) or f"libFuzzer ended with {ended.returncode}:\n{ended.stderr[-3000:]}",
        )


def judge(name: str, place: Path, corpus: Path) -> str:
    """What an input does without the fuzzer; it is put beside the corpus, to be mended and kept."""
    data = place.read_bytes()
    kept = corpus / f"found-{hashlib.sha256(data).hexdigest()[:12]}"
    shutil.copyfile(place, kept)
    script = f"from {__package__}.__main__ import again; again({name!r}, {str(kept)!r})"
    try:
        said = subprocess.run(
            [sys.executable, "-c", script],
            cwd=TOP,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
        )
    except subprocess.TimeoutExpired:
        return f"  {kept}: it takes more than a minute"
    return f"  {kept} ({len(data)} bytes):\n{said.stdout}{said.stderr[-2500:]}"


def again(name: str, place: str) -> None:
    took = watched(TARGETS[name].check, Path(place).read_bytes())
    verdict = "too long" if took > SECONDS else "nothing is wrong with it"
    sys.stdout.write(f"without the fuzzer: {took:.3f} s; {verdict}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
