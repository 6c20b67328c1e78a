"""Store: a copy of the index, on which a snapshot is put together without the agent's own index ever being touched."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from ...document.values import dataclass
from ...errors import WorkFailed
from ..git.permissions import private_folder
from ..git.process import Git
from ..git.repository import Repository

PREFIX = "index-"
LONGEST_WAIT = 2.0
FORGOTTEN_AFTER = 24 * 3600.0
# `safecrlf` would refuse a file over its line ends; a split index or a cache of untracked files would be written
# beside the agent's own index.
PINNED = (
    "core.safecrlf=false",
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "i18n.commitEncoding=UTF-8",
)


@dataclass(frozen=True)
class IndexMark:
    """Which index this is: another writer replaces the file."""

    modified: int
    size: int
    inode: int


def mark(repo: Repository) -> IndexMark | None:
    try:
        found = (repo.git_dir / "index").stat()
    except FileNotFoundError:
        return None
    return IndexMark(found.st_mtime_ns, found.st_size, found.st_ino)


def wait_for_lock(repo: Repository) -> None:
    """Wait a moment for another git that is changing the index; the working tree is between two states meanwhile."""
    lock = repo.git_dir / "index.lock"
    until = time.monotonic() + LONGEST_WAIT
    while lock.exists():
        if time.monotonic() > until:
            raise WorkFailed(
                f"another git is at work here: {lock} exists",
                hint=f"let it finish and ask again (in a hook of its own: ask --no-work); if none is running: rm {quote(str(lock))}",
            )
        time.sleep(0.02)


@dataclass(frozen=True)
class Scratch:
    """Git with an index of our own."""

    git: Git
    index: Path

    def _env(self) -> dict[str, str]:
        return {"GIT_INDEX_FILE": str(self.index)}

    def index_info(self, lines: Sequence[bytes]) -> None:
        """Set or remove entries by mode and object, without a look at the working tree."""
        if lines:
            fed = b"".join(line + b"\0" for line in lines)
            self.run("update-index", "-z", "--replace", "--index-info", input=fed)

    def add(self, paths: Sequence[bytes]) -> None:
        """Take paths as they are in the working tree; those that are gone first, to make room for what came instead."""
        if paths:
            fed = b"".join(path + b"\0" for path in paths)
            how = ("-z", "--add", "--remove", "--replace", "--ignore-skip-worktree-entries", "--stdin")
            self.run("update-index", *how, input=fed)

    def write_tree(self) -> str:
        return self.run("write-tree").decode().strip()

    def run(self, *args: str, input: bytes = b"") -> bytes:
        pinned = (part for item in PINNED for part in ("-c", item))
        return self.git.out(*pinned, *args, input=input, env=self._env())


@contextmanager
def scratch_index(repo: Repository, *, copied: bool = True) -> Iterator[Scratch]:
    """A scratch index, gone at the end: a copy of the agent's, or empty."""
    import shutil
    import tempfile

    rooms = repo.state_dir
    private_folder(rooms)
    _sweep(rooms)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=rooms) as room:
        index = Path(room) / "index"
        source = repo.git_dir / "index"
        if copied and source.exists():
            # With its time of modification: git compares it with a file's to know whether it must look inside. A copy
            # that looks younger makes git believe that an edit within the same tick is no edit.
            shutil.copy2(source, index)
        yield Scratch(repo.git, index)


def _sweep(rooms: Path) -> None:
    """What a killed process left lying, a day later."""
    import shutil

    for room in rooms.glob(f"{PREFIX}*"):
        try:
            if time.time() - room.stat().st_mtime > FORGOTTEN_AFTER:
                shutil.rmtree(room, ignore_errors=True)
        except FileNotFoundError:
            continue
