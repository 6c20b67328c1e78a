"""Store: the drivers for merging and showing files that a machine has configured.

The attributes of untrusted work choose among them, as among its filters; and a configuration that includes a file of the
working tree lets the work bring its own. Git takes none of them for absent, so that each is made to do what git would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .git import Git

PLAIN = {
    "driver": "git merge-file --marker-size=%L -L ours -L base -L theirs %A %O %B",
    "textconv": "cat",
    "command": 'f() { [ $# -lt 7 ] || git --no-pager diff --no-index --no-ext-diff --no-textconv -- "$2" "$5"; :; }; f',
}
PLAIN["external"] = PLAIN["command"]
PATTERN = r"^(merge\..*\.driver|diff\..*\.(textconv|command)|diff\.external)$"


def plain_drivers(git: Git) -> list[tuple[str, str]]:
    """For every driver that is configured, the setting that makes it git's own way."""
    asked = git.run("config", "--null", "--name-only", "--get-regexp", PATTERN, check=False)
    keys = asked.out.decode("utf-8", "surrogateescape").split("\0")
    return [(key, PLAIN[key.rpartition(".")[2]]) for key in sorted(set(keys)) if key]


def as_environment(settings: Sequence[tuple[str, str]], env: Mapping[str, str]) -> dict[str, str]:
    """Settings as environment, after those that `env` has: they win over every file. Not `-c`: a name may hold `=`."""
    start = int(env.get("GIT_CONFIG_COUNT") or 0)
    said = {"GIT_CONFIG_COUNT": str(start + len(settings))}
    for number, (key, value) in enumerate(settings, start):
        said |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return said
