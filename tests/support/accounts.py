"""Test bed: other accounts of this machine, each with a home of its own, below a folder that all can reach.

An account is a number: what a server knows of one is what its processes may do. As root they are started directly, else
through `sudo`, which asks nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import gitgate
from gitgate.store import is_reachable
from support import PATIENCE
from support.testbed.command import Outcome

GROUP = 61_000
AS_ROOT: tuple[str, ...] = () if os.geteuid() == 0 else ("sudo", "-n")
PERSON = """[user]
	name = {name}
	email = {name}@example.org
[safe]
	directory = *
[init]
	defaultBranch = main
[gitgate "agent.scripted"]
	resume = {home}/agent.sh
[gitgate]
	session = push
"""
AGENT = """#!/bin/sh
cat >/dev/null
{ echo "$(id -u) $GITGATE_ID"; stat -c '%a %n' *; } >> "$HOME/agent.log"
echo "$GITGATE_ANSWER" > db; git add -A; git commit -qm "Use $GITGATE_ANSWER"
"""


LEFT_OUT = shutil.ignore_patterns(
    "test", "tests", "idlelib", "turtledemo", "ensurepip", "site-packages", "config-*"
)


def installed(folder: Path) -> Path:
    """A Python with git gate that every account can start: this one, else a copy of it, as an installation for all would be."""
    python, package = Path(sys.executable).resolve(), Path(gitgate.__file__)
    if is_reachable(python) and is_reachable(package):
        return Path(sys.executable)
    library = Path(os.__file__).parent
    there = folder / "lib" / library.name
    shutil.copytree(library, there, ignore=LEFT_OUT)
    for shared in library.parent.glob("libpython*.so*"):
        shutil.copy(shared, there.parent)
    for packages in (Path(name) for name in sys.path if name.endswith("site-packages")):
        shutil.copytree(
            packages, there / "site-packages", ignore=shutil.ignore_patterns("*.pth"), dirs_exist_ok=True
        )
    shutil.copytree(package.parent, there / "site-packages" / "gitgate", dirs_exist_ok=True)
    if (package.parents[1] / "hooks").is_dir():
        shutil.copytree(
            package.parents[1] / "hooks", there / "site-packages" / "gitgate" / "shims", dirs_exist_ok=True
        )
    (folder / "bin").mkdir()
    shutil.copy(python, folder / "bin" / "python")
    return folder / "bin" / "python"


@dataclass(frozen=True)
class Account:
    """Somebody with an account: `number` is it, `home` the folder that is theirs alone."""

    name: str
    number: int
    home: Path
    python: Path
    umask: str = "022"

    def run(self, *command: str, cwd: Path | None = None, code: int | None = 0) -> Outcome:
        """Run a program as this account, with nothing of our environment."""
        ids = (f"--reuid={self.number}", f"--regid={GROUP}", "--clear-groups")
        path = f"{self.python.parent}:{os.environ.get('PATH', os.defpath)}"
        env = (
            "env",
            "-i",
            f"HOME={self.home}",
            f"PATH={path}",
            f"LD_LIBRARY_PATH={self.python.parents[1] / 'lib'}",
            "LC_ALL=C.UTF-8",
            "PYTHONDONTWRITEBYTECODE=1",
        )
        shell = ("sh", "-c", f'umask {self.umask}; cd "$0" && exec "$@"', str(cwd or self.home))
        done = subprocess.run(
            [*AS_ROOT, "setpriv", *ids, "--", *env, *shell, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert code is None or done.returncode == code, (
            f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def git(self, *args: str, cwd: Path, code: int | None = 0) -> Outcome:
        return self.run("git", *args, cwd=cwd, code=code)

    def gate(self, *args: str, cwd: Path, code: int | None = 0) -> Outcome:
        return self.run(str(self.python), "-P", "-m", "gitgate", *args, cwd=cwd, code=code)

    @property
    def started(self) -> list[str]:
        """What its agent wrote down: its account and gate, then each file with its mode."""
        return said(self.home / "agent.log").splitlines()


def root(*command: str) -> str:
    done = subprocess.run([*AS_ROOT, *command], capture_output=True, text=True, timeout=PATIENCE, check=True)
    return done.stdout


def said(place: Path) -> str:
    """The text of anybody's file; empty where there is none."""
    done = subprocess.run(
        [*AS_ROOT, "cat", str(place)], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    return done.stdout


def modes(folder: Path) -> dict[str, str]:
    """Of all below a folder: `account mode`, by name."""
    listed = root("find", str(folder), "-printf", r"%P\t%U %m\n").splitlines()
    return dict(line.split("\t") for line in listed)


@contextmanager
def accounts(python: Path, *names: str, umask: Sequence[str] = ()) -> Iterator[tuple[Path, list[Account]]]:
    """A folder for repositories, and somebody for each name; all of it is gone at the end."""
    top = Path(tempfile.mkdtemp(prefix="gitgate-accounts-"))
    try:
        top.chmod(0o755)
        found: list[Account] = []
        for number, name in enumerate(names, GROUP + 1):
            home = top / name
            home.mkdir()
            (home / ".gitconfig").write_text(PERSON.format(name=name, home=home), encoding="utf-8")
            (home / "agent.sh").write_text(AGENT, encoding="utf-8")
            (home / "agent.sh").chmod(0o755)
            root("chown", "-R", f"{number}:{GROUP}", str(home))
            root("chmod", "700", str(home))
            found.append(Account(name, number, home, python, *umask[len(found) : len(found) + 1]))
        yield top, found
    finally:
        root("rm", "-rf", str(top))
