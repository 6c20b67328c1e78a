"""Store: what a working tree has otherwise than a commit, of some files: as they lie there, byte for byte.

What git calls unchanged need not be the same file: attributes of the tree say how it is written, and bits of its index that
nobody is to look.
"""

from __future__ import annotations

import posixpath
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ..core.values import dataclass
from .aside import Entry, is_folder, look_of, on_folders
from .git import Git
from .leftout import lstat, printable
from .permissions import private_folder
from .repository import Repository
from .scratch import scratch_index

LINK, SUBMODULE = "120000", "160000"

Entries = dict[bytes, Entry]


@dataclass(frozen=True)
class Files:
    """Which files it is about: git's patterns, which say where to look in a working tree, and the same as a question."""

    specs: tuple[str, ...]
    wanted: Callable[[bytes], bool]


@dataclass(frozen=True)
class Difference:
    """What a working tree has otherwise than a commit. `stand`: what of the commit is to stand in its place.

    `odd`: what nothing can be said or done about, and why.
    """

    stand: Mapping[bytes, Entry | None]
    odd: tuple[str, ...] = ()


def _is_at_or_beneath(path: bytes, others: Mapping[bytes, str]) -> bool:
    parts = path.split(b"/")
    return any(b"/".join(parts[:depth]) in others for depth in range(1, len(parts) + 1))


@dataclass(frozen=True)
class Found:
    """What the tree has of them, what its index has (by path a tag, `M` in conflict, `S` held back, and a mode), what the commit has."""

    names: frozenset[bytes]
    index: Mapping[bytes, tuple[str, str]]
    theirs: Entries


def compare(there: Repository, commit: str, files: Files) -> Difference:
    """The wanted files, byte for byte: what attributes of the tree would make of them counts as a difference."""
    theirs = listed(there.git, commit, files.wanted)
    found = Found(_names(there, files), _indexed(there, files), theirs)
    private_folder(there.state_dir)
    with tempfile.TemporaryDirectory(prefix="compare-", dir=there.state_dir) as room:
        looks = looks_of(there, theirs, Path(room))
    here = {name: look for name in found.names if (look := look_of(there.place, name)) is not None}
    differ = {path for path in {*here, *looks} if here.get(path) != looks.get(path)}
    odd = dict(_oddities(there, files, found, differ))
    stand = {path: theirs.get(path) for path in sorted(differ) if not _is_at_or_beneath(path, odd)}
    return Difference(stand, tuple(f"{printable(path)} {why}" for path, why in sorted(odd.items())))


def listed(git: Git, commit: str, wanted: Callable[[bytes], bool]) -> Entries:
    """The wanted files of a commit."""
    found: Entries = {}
    for entry in git.out("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
        about, _, path = entry.partition(b"\t")
        if path and wanted(path):
            mode, _, oid = about.decode("ascii").split(" ")
            found[path] = (mode, oid)
    return found


def _names(there: Repository, files: Files) -> frozenset[bytes]:
    """The files that the patterns find, ignored ones too, and what the index has of them, there or not."""
    how = ("ls-files", "-z", "-c", "-o", "--full-name", "--", *files.specs)
    found = there.git.out(*how, env={"GIT_LITERAL_PATHSPECS": "0"}).split(b"\0")
    # Git folds the case of ASCII alone; a file system may fold more.
    folded = (name for name in there.git.out("ls-files", "-z").split(b"\0") if files.wanted(name))
    return frozenset(name for name in (*found, *folded) if name)


def _indexed(there: Repository, files: Files) -> dict[bytes, tuple[str, str]]:
    """Of each of them that the index has, its tag and its mode; `M` is in conflict, `S` held back."""
    how = ("ls-files", "-z", "-t", "-s", "--full-name", "--", *files.specs)
    found = {}
    for entry in there.git.out(*how, env={"GIT_LITERAL_PATHSPECS": "0"}).split(b"\0"):
        about, _, path = entry.partition(b"\t")
        if path:
            tag, mode, *_ = about.decode("ascii").split(" ")
            found[path] = (tag, mode)
    return found


def _oddities(
    there: Repository, files: Files, found: Found, differ: set[bytes]
) -> Iterator[tuple[bytes, str]]:
    """What keeps a path from being replaced, or from being what it looks like."""
    yield from ((name, "is a repository of its own") for name in found.names if name.endswith(b"/"))
    for path, (tag, mode) in found.index.items():
        if mode == SUBMODULE:
            yield path, "is a submodule"
        elif tag == "M":
            yield path, "is in conflict"
        elif tag == "S" and path in differ and lstat(there.place, path) is None:
            yield path, "is held back by a sparse checkout"
    yield from _odd_places(there, files, differ)
    for path, (mode, oid) in found.theirs.items():
        if mode == SUBMODULE:
            yield path, "is a submodule"
        elif mode == LINK and not _stays_within(path, there.git.out("cat-file", "blob", oid), files):
            yield path, "leads elsewhere"


def _odd_places(there: Repository, files: Files, differ: set[bytes]) -> Iterator[tuple[bytes, str]]:
    for path in differ:
        if not on_folders(there.place, path, differ):
            yield path, "is behind a link"
        elif is_folder(there.place, path) and not files.wanted(path + b"/any"):
            yield path, "is a folder"
        elif look_of(there.place, path) == "something else":
            yield path, "is no file"


def _stays_within(path: bytes, target: bytes, files: Files) -> bool:
    """Whether a link leads to another of the wanted files: anything else is whatever the tree has there."""
    led = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return not led.startswith((b"/", b"..")) and files.wanted(led)


def looks_of(there: Repository, entries: Entries, folder: Path) -> dict[bytes, str]:
    """What entries look like when they are checked out, into a folder of their own: no attributes of the tree's apply."""
    folder.mkdir(exist_ok=True)
    plain = {path: entry for path, entry in entries.items() if entry[0] != SUBMODULE}
    if not plain:
        return {}
    with scratch_index(there, copied=False) as scratch:
        scratch.index_info(lines_of(plain))
        env = {"GIT_INDEX_FILE": str(scratch.index), "GIT_WORK_TREE": str(folder)}
        there.git.run("-c", "core.safecrlf=false", "checkout-index", "-a", "-f", env=env)
    looks = ((path, look_of(folder, path)) for path in plain)
    return {path: look for path, look in looks if look is not None}


def entries_of(git: Git, paths: Iterable[bytes], env: Mapping[str, str] | None = None) -> Entries:
    """The entries of the index for those of the paths that it has, where they are in no conflict."""
    wanted, found = set(paths), Entries()
    for entry in git.out("ls-files", "-z", "-s", env=env).split(b"\0"):
        about, _, path = entry.partition(b"\t")
        if path in wanted:
            mode, oid, stage = about.decode("ascii").split(" ")
            if stage == "0":
                found[path] = (mode, oid)
    return found


def lines_of(entries: Entries) -> list[bytes]:
    return [b"%s %s\t%s" % (mode.encode(), oid.encode(), path) for path, (mode, oid) in entries.items()]
