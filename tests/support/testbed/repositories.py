"""Test bed: real repositories. Git is never faked.

Git makes the first of each kind, in each surroundings; the next are copies of it. Sixteen hundred tests begin with a
repository, and four git processes for each were a seventh of the time that all tests took.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from gitgate.store.git import Repository, discover
from support.testbed.alike import IN_CLONES, ON_SERVERS, PLANTED, plant


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
        return self.head()

    def head(self) -> str:
        """The commit that is checked out; just made, it is in a file."""
        inner = self.path / ".git"
        if inner.is_dir():
            text = (inner / "HEAD").read_text().strip()
            file = inner / text.removeprefix("ref: ")
            if file.is_file() and text.startswith("ref: "):
                return file.read_text().strip()
        return self.git("rev-parse", "HEAD")

    def refs(self, pattern: str = "refs") -> dict[str, str]:
        """Every ref under `pattern` and what it points at, without those that the test bed planted."""
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname)", pattern).splitlines()
        found = dict(line.split(" ", 1) for line in lines)
        return {ref: oid for ref, oid in found.items() if ref not in PLANTED}

    @property
    def repository(self) -> Repository:
        """This place as the product sees it."""
        return discover(self.path, os.environ)


class Patterns:
    """The first repository of each kind, which the next are copied from. Without a folder to keep them in, git makes each."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.made: dict[tuple[str, ...], Path] = {}
        self.alike = False  # whether refs that are called like others are planted
        self.servers: set[str] = set()  # the state of each that has its one commit, and nothing else

    def copy(self, kind: str, path: Path, make: Callable[[Path], None], *more: str) -> None:
        """What `make` would put at `path`, with refs that are called like others."""
        names = () if not self.alike else IN_CLONES if kind in ("clone", "of") else ON_SERVERS
        if self.folder is None or path.exists():
            make(path)
            plant(path / ".git" if (path / ".git").is_dir() else path, names)
            return
        key = (kind, *more, *names, *surroundings())
        if key not in self.made:
            room = Path(mkdtemp(dir=self.folder))
            make(room / "made")
            plant(room / "made" / ".git" if kind in ("clone", "of") else room / "made", names)
            for sample in room.glob("made/**/*.sample"):
                sample.unlink()
            self.made[key] = room / "made"
        shutil.copytree(self.made[key], path, symlinks=True, copy_function=shutil.copy)
        index = path / ".git" / "index"
        if index.exists():
            index.write_bytes(seen_here(index.read_bytes(), path))


PATTERNS = Patterns()


def surroundings() -> tuple[str, ...]:
    """What git heeds beside its arguments: who commits and when, the configuration, and which git is found."""
    config = Path(os.environ.get("GIT_CONFIG_GLOBAL", os.devnull))
    said = [
        f"{name}={value}"
        for name, value in os.environ.items()
        if name.startswith("GIT_") and name not in ("GIT_CONFIG_GLOBAL", "GIT_CEILING_DIRECTORIES")
    ]
    return (config.read_text(encoding="utf-8"), os.environ["PATH"], *sorted(said))


def seen_here(index: bytes, path: Path) -> bytes:
    """An index whose files are taken for unchanged where they are now: as after `git add`, none has to be read again."""
    signature, version, count = struct.unpack_from(">4sII", index)
    if (signature, version) != (b"DIRC", 2):
        raise GitError(f"{path}: expected an index of version 2, found {version}")
    raw = bytearray(index[:-20])
    at = 12
    for _ in range(count):
        length = struct.unpack_from(">H", raw, at + 60)[0] & 0xFFF
        stat = (path / os.fsdecode(bytes(raw[at + 62 : at + 62 + length]))).lstat()
        times = [part for ns in (stat.st_ctime_ns, stat.st_mtime_ns) for part in divmod(ns, 10**9)]
        numbers = (*times, stat.st_dev, stat.st_ino)
        struct.pack_into(">6I", raw, at, *(number & 0xFFFFFFFF for number in numbers))
        at += (62 + length + 8) // 8 * 8
    return bytes(raw) + hashlib.sha1(raw, usedforsecurity=False).digest()


def state_of(bare: Path) -> str:
    """Its refs and its configuration, as they are in its files."""
    files = [
        bare / "HEAD",
        bare / "config",
        bare / "packed-refs",
        bare / "shallow",
        *sorted(bare.glob("refs/**/*")),
    ]
    told = [(str(file.relative_to(bare)), file.read_bytes()) for file in files if file.is_file()]
    return hashlib.sha256(repr(told).encode()).hexdigest()


def make_clone(path: Path) -> Clone:
    """A repository with one commit on `main`."""

    def make(place: Path) -> None:
        run_git("init", "-q", str(place), cwd=place.parent)
        clone = Clone(place)
        clone.write("README", "A project.\n")
        clone.git("add", "README")
        clone.git("commit", "-q", "-m", "start")

    PATTERNS.copy("clone", path, make)
    return Clone(path)


def make_bare(path: Path) -> Clone:
    """A bare repository without commits, as a server has it."""

    def make(place: Path) -> None:
        run_git("init", "-q", "--bare", str(place), cwd=place.parent)

    PATTERNS.copy("bare", path, make)
    return Clone(path)


def make_server(path: Path) -> Clone:
    """A bare repository that has one commit on `main`."""

    def make(place: Path) -> None:
        make_bare(place)
        make_clone(place.with_name("seed")).git("push", "-q", str(place), "main")

    PATTERNS.copy("server", path, make)
    PATTERNS.servers.add(state_of(path))
    return Clone(path)


def clone_repository(source: Path, path: Path) -> Clone:
    """As `git clone` makes it. Of a server that nobody has changed yet it is a copy of the first such clone."""
    told = b"/the/place/of/its/server.git"

    def make(place: Path) -> None:
        run_git("clone", "-q", "--", str(source), str(place), cwd=place.parent)
        rename(place, os.fsencode(source), told)

    state = state_of(source)
    if state in PATTERNS.servers:
        PATTERNS.copy("of", path, make, state)
        rename(path, told, os.fsencode(source))
    else:
        run_git("clone", "-q", "--", str(source), str(path), cwd=path.parent)
    return Clone(path)


def rename(clone: Path, old: bytes, new: bytes) -> None:
    """Where a clone names the repository that it came from: in its configuration, and in the log of its refs."""
    inner = clone / ".git"
    for file in (inner / "config", *inner.glob("logs/**/*")):
        if file.is_file():
            file.write_bytes(file.read_bytes().replace(old, new))
