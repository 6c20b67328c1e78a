"""Test bed: real repositories. Git is never faked; one costs a few milliseconds."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from gitgate.store.repository import Repository, discover


class GitError(AssertionError):
    """A git command that a test relied on failed."""


def run_git(*args: str, cwd: Path, input: bytes = b"", check: bool = True) -> bytes:
    """Plain git, as a person's: hooks on, the sealed environment, standard output as it came."""
    done = subprocess.run(["git", *args], cwd=cwd, input=input, capture_output=True, timeout=60, check=False)
    if check and done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip()
        raise GitError(f"git {' '.join(args)}: exit {done.returncode}: {words}")
    return done.stdout


@dataclass(frozen=True)
class Clone:
    """A repository on disk, and the few things that tests do to one."""

    path: Path

    def git(self, *args: str, input: str | bytes = b"", check: bool = True) -> str:
        """Run git here; standard output without its last newline."""
        fed = input.encode() if isinstance(input, str) else input
        said = run_git(*args, cwd=self.path, input=fed, check=check)
        return said.decode("utf-8", "surrogateescape").removesuffix("\n")

    def write(self, name: str, text: str | bytes = "", *, executable: bool = False) -> Path:
        """Write a file, its folders too."""
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode() if isinstance(text, str) else text)
        if executable:
            place.chmod(0o755)
        return place

    def commit(self, message: str = "change", **files: str) -> str:
        """Commit everything, after writing `files` (name to text); give back the commit's id."""
        for name, text in files.items():
            self.write(name, text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def refs(self, pattern: str = "refs") -> dict[str, str]:
        """Every ref under `pattern` and what it points at."""
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname)", pattern).splitlines()
        return dict(line.split(" ", 1) for line in lines)

    @property
    def repository(self) -> Repository:
        """This place as the product sees it."""
        return discover(self.path, os.environ)


def make_clone(path: Path) -> Clone:
    """A repository with one commit on `main`."""
    run_git("init", "-q", str(path), cwd=path.parent)
    clone = Clone(path)
    clone.write("README", "A project.\n")
    clone.git("add", "README")
    clone.git("commit", "-q", "-m", "start")
    return clone


def make_bare(path: Path) -> Clone:
    """A bare repository without commits, as a server has it."""
    run_git("init", "-q", "--bare", str(path), cwd=path.parent)
    return Clone(path)
