"""The files that CI installs from: each package at one version, with the hashes of its files.

`lock.py` writes them anew where pyproject.toml asks for something else, `--upgrade` takes the newest versions, and `--check`
says what does not fit: another version than would be locked, or a hash that the registry does not have.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
FOLDER = ".github/requirements"
OLDEST = "3.11"
# For any system and each Python that is supported, or for the one place where it is used: an optional package may have no
# file for all of them.
ANYWHERE = ("--universal",)
LINUX = ("--python-platform=linux", "--only-binary=:all:")


@dataclass(frozen=True)
class Lock:
    """What it is for stands on top of it. The extras are those of pyproject.toml."""

    extras: tuple[str, ...]
    words: str
    where: tuple[str, ...] = ANYWHERE
    lowest: bool = False
    editable: bool = True


LOCKS = {
    f"{FOLDER}/gate.txt": Lock(
        ("all",),
        "What jobs with rights and keys install: git gate's dependencies, and what builds it",
        editable=False,
    ),
    f"{FOLDER}/test.txt": Lock(("test",), "What the tests need"),
    f"{FOLDER}/dev.txt": Lock(
        ("dev", "fuzz", "docs"), f"What .ci/run needs, on Linux and Python {OLDEST}", LINUX
    ),
    # Not in that folder, where it would be raised to newer versions.
    ".ci/lowest.txt": Lock(("test",), "The tests, with each dependency at its lower bound", lowest=True),
}
PINNED = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9-]*)==(?P<version>[^ ;\\]+)(?: ; (?P<marker>[^\\]+?))? \\\n(?P<hashes>(?:    --hash=.*\n)+)"
)
HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")


def main(words: list[str]) -> int:
    if set(words) - {"--check", "--upgrade"}:
        print("usage: lock.py [--check | --upgrade]", file=sys.stderr)
        return 2
    wrong = [problem for name in LOCKS for problem in one(name, "--check" in words, "--upgrade" in words)]
    for problem in wrong:
        print(problem, file=sys.stderr)
    if wrong:
        print("run .venv/bin/python .ci/lock.py, and look at what it changed", file=sys.stderr)
    return 1 if wrong else 0


def one(name: str, check: bool, upgrade: bool) -> list[str]:
    place = TOP / name
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / "lock.txt"
        if place.exists() and not upgrade:
            # Versions that still fit stay; their hashes are asked for again.
            kept = packages(place.read_text("utf-8"))
            made.write_text(
                "".join(f"{each.replace(' ', f'=={version} ', 1)}\n" for each, (version, _) in kept.items())
            )
        compile_lock(name, made, Path(scratch))
        wanted = f"# {LOCKS[name].words}. Written by .ci/lock.py.\n" + made.read_text("utf-8")
    if not check:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(wanted, "utf-8")
        return []
    return differing(name, packages(place.read_text("utf-8")) if place.exists() else {}, packages(wanted))


def compile_lock(name: str, made: Path, scratch: Path) -> None:
    """No registry is named in it: that is for whoever installs to choose."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))
    build = scratch / "build.in"
    # What builds a package asks for this where it is installed as it stands.
    editables = ["editables~=0.3"] if LOCKS[name].editable else []
    build.write_text("\n".join([*project["build-system"]["requires"], *editables]) + "\n")
    options = [*LOCKS[name].where, *(f"--extra={extra}" for extra in LOCKS[name].extras)]
    if LOCKS[name].lowest:
        lowest = scratch / "lowest.in"
        lowest.write_text(
            "\n".join(each.replace(">=", "==") for each in project["project"]["dependencies"]) + "\n"
        )
        options += ["--constraint", str(lowest)]
    common = [
        "--generate-hashes",
        "--no-header",
        "--no-annotate",
        "--quiet",
        f"--python-version={OLDEST}",
    ]
    command = [sys.executable, "-m", "uv", "pip", "compile", *common, *options, "pyproject.toml", str(build)]
    subprocess.run([*command, "-o", str(made)], cwd=TOP, check=True, stdout=subprocess.DEVNULL)


def packages(text: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Each package with the Pythons and systems that it is for: its version and its hashes."""
    return {
        f"{found['name']} {'; ' + found['marker'] if found['marker'] else ''}": (
            found["version"],
            frozenset(HASH.findall(found["hashes"])),
        )
        for found in PINNED.finditer(text)
    }


def differing(
    name: str, here: dict[str, tuple[str, frozenset[str]]], wanted: dict[str, tuple[str, frozenset[str]]]
) -> list[str]:
    """A release may gain files later, so that hashes may be fewer here than there, and none may be another."""
    found = [f"{name}: {each.strip()}: not locked" for each in wanted.keys() - here.keys()]
    found += [f"{name}: {each.strip()}: locked, and not needed" for each in here.keys() - wanted.keys()]
    for each in sorted(here.keys() & wanted.keys()):
        (version, hashes), (other, known) = here[each], wanted[each]
        if version != other:
            found.append(f"{name}: {each.strip()}: locked at {version}; expected {other}")
        elif not hashes or hashes - known:
            found.append(f"{name}: {each.strip()} {version}: a hash that the registry does not have")
    return sorted(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
