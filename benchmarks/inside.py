"""Benchmarks: run in place of `git-gate`, this writes down where the processor time of one command went, and to which process.

`python -P inside.py REPORT VERB…`: each module's own time is what its import took without what it imports in turn. With `GITGATE_PROFILE`
set, what the functions did is written there too, which takes time of its own.
"""

from __future__ import annotations

import time

CLOCK = time.process_time
INTERPRETER = CLOCK()

import _posixsubprocess  # noqa: E402
import atexit  # noqa: E402
import importlib._bootstrap  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: E402
import os  # noqa: E402
import resource  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402

machinery: Any = importlib._bootstrap  # noqa: SLF001
starting: Any = _posixsubprocess
modules: dict[str, float] = {}
nested = [0.0]
commands: dict[int, list[str]] = {}
ended: dict[int, float] = {}
forking = [0.0]


def measure_imports() -> None:
    load: Callable[..., object] = machinery._find_and_load  # noqa: SLF001

    def find_and_load(name: str, *given: object) -> object:
        before = CLOCK()
        nested.append(0.0)
        try:
            return load(name, *given)
        finally:
            whole = CLOCK() - before
            modules[name] = modules.get(name, 0.0) + whole - nested.pop()
            nested[-1] += whole

    machinery._find_and_load = find_and_load  # noqa: SLF001


def measure_processes() -> None:
    """Before `subprocess` is imported: it keeps both functions by name."""
    fork = starting.fork_exec

    def fork_exec(words: list[str], *given: object) -> int:
        before = CLOCK()
        pid = int(fork(words, *given))
        forking[0] += CLOCK() - before
        commands[pid] = [os.fsdecode(word) for word in words]
        return pid

    def waitpid(pid: int, options: int) -> tuple[int, int]:
        pid, status, used = os.wait4(pid, options)
        if pid:
            ended[pid] = used.ru_utime + used.ru_stime
        return pid, status

    starting.fork_exec = fork_exec
    os.waitpid = waitpid


def report(place: str, begun: float, profile: Any) -> None:
    whole = CLOCK() - begun
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if profile is not None:
        profile.disable()
        profile.dump_stats(os.environ["GITGATE_PROFILE"])
    import json

    found = {
        "interpreter": INTERPRETER,
        "whole": whole,
        "modules": modules,
        "starting": forking[0],
        "processes": [[words, ended.get(pid, 0.0)] for pid, words in commands.items()],
        "children": used.ru_utime + used.ru_stime,
    }
    with open(place, "w", encoding="utf-8") as file:  # noqa: PTH123 - pathlib is what is measured
        json.dump(found, file)


def main() -> None:
    place = sys.argv[1]
    sys.argv[:] = ["git-gate", *sys.argv[2:]]
    profile = None
    if "GITGATE_PROFILE" in os.environ:
        import cProfile

        profile = cProfile.Profile(CLOCK)
    measure_processes()
    measure_imports()
    begun = CLOCK()
    atexit.register(report, place, begun, profile)
    if profile is not None:
        profile.enable()
    from gitgate.cli.process import run

    run()


if __name__ == "__main__":
    main()
