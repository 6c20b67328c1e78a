"""Store: the filters that a checkout may run.

The attributes of untrusted work choose among the filters that this machine has configured; a filter may fetch from an
address that the work itself names (Git LFS reads `.lfsconfig`). And a configuration that includes a file of the working
tree lets the work bring its own command.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .drivers import as_environment
from .git import Git


@dataclass(frozen=True)
class Driver:
    """One `filter.<name>.…` line of the configuration, and the file that holds it."""

    name: str
    origin: str


def list_drivers(git: Git) -> list[Driver]:
    asked = git.run("config", "--null", "--show-origin", "--get-regexp", r"^filter\.", check=False)
    parts = asked.out.decode("utf-8", "surrogateescape").split("\0")
    drivers = []
    for origin, line in zip(parts[::2], parts[1::2], strict=False):
        key = line.split("\n", 1)[0]
        drivers.append(Driver(key.removeprefix("filter.").rpartition(".")[0], origin))
    return drivers


def refused_names(
    git: Git, drivers: Sequence[Driver], *, trusted: bool, tops: Sequence[Path], git_dirs: Sequence[Path]
) -> list[str]:
    """The filters that may not run: every one for untrusted work, else those configured inside a working tree."""
    if not trusted:
        return sorted({driver.name for driver in drivers})
    return sorted({driver.name for driver in drivers if _in_work(git, driver, tops, git_dirs)})


def _in_work(git: Git, driver: Driver, tops: Sequence[Path], git_dirs: Sequence[Path]) -> bool:
    if not driver.origin.startswith("file:"):
        return driver.origin.startswith("blob:")
    file = (git.directory / driver.origin.removeprefix("file:")).resolve()
    in_git = any(file.is_relative_to(place.resolve()) for place in git_dirs)
    return not in_git and any(file.is_relative_to(top.resolve()) for top in tops)


def switched_off(names: Sequence[str], env: Mapping[str, str]) -> dict[str, str]:
    """Environment under which git takes these filters for absent.

    An empty `process` is enough: with one, git looks at neither `clean` nor `smudge`, and does not start it.
    """
    return as_environment([(f"filter.{name}.{key}", value) for name in names for key, value in OFF], env)


OFF = (("process", ""), ("smudge", ""), ("clean", ""), ("required", "false"))
