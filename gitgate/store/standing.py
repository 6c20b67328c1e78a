"""Store: some files of a working tree stand for a while as another commit has them, and git does not see it.

The index keeps the tree's own version of each and looks away (`skip-worktree`; where the tree has none, as a file that is
only intended to be added), so that nothing that is committed or saved meanwhile takes the other version along. It is noted
beside the index before anything is changed, so that whoever comes after a crash can take it back.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from ..core.values import dataclass
from .git import Git
from .leftout import lstat
from .repository import Repository
from .scratch import scratch_index

NOTE = "gitgate-standing.json"
GONE, SUBMODULE = "0", "160000"
# What an index has of a file that is only intended to be added, until somebody adds it.
EMPTY = (
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)

Entry = tuple[str, str]  # mode and object
Entries = dict[bytes, Entry]


@dataclass(frozen=True)
class Files:
    """Which files it is about: git's patterns, which say where to look in a working tree, and the same as a question."""

    specs: tuple[str, ...]
    wanted: Callable[[bytes], bool]


@dataclass(frozen=True)
class Difference:
    """The wanted files that a working tree made otherwise than a commit: as the tree and as the commit has them."""

    paths: tuple[bytes, ...]
    found: Found
    theirs: Entries


def compare(there: Repository, commit: str, once: str | None, files: Files) -> Difference:
    """What differs from `commit`, but for files that are as `once` has them: an earlier state of the same, not caught up on."""
    found = _look(there, files.specs)
    here, theirs = found.files, listed(there.git, commit, files.wanted)
    before = listed(there.git, once, files.wanted) if once else None
    other = {path for path in {*here, *theirs} if here.get(path) != theirs.get(path)}
    differ = (
        path
        for path in other
        if (before is None or here.get(path) != before.get(path))
        and _on_folders(there.place, path, other)
        and (not _is_folder(there.place, path) or files.wanted(path + b"/any"))
    )
    return Difference(tuple(sorted(differ)), found, theirs)


def put_on(there: Repository, given: Difference) -> None:
    """Let the files that differ stand as the commit has them."""
    differ, found, here = given.paths, given.found, given.found.files
    if not differ:
        return
    new = [path for path in differ if path not in here and not found.in_the_way_of(path)]
    told = [path for path in differ if path not in found.apart]
    _note(there, given, {path: found.index.get(path) for path in told})
    _look_away(there, {path: here.get(path) for path in told})
    _write(there, differ, {path: given.theirs[path] for path in differ if path in given.theirs})
    _intend(there, new)


def take_off(there: Repository) -> tuple[bytes, ...]:
    """Undo that: each file is as the index has it again. Those that somebody changed meanwhile stay; they are returned."""
    place = there.git_dir / NOTE
    try:
        said = json.loads(place.read_text("ascii"))
        theirs, here, index = (_entries(said[name]) for name in ("theirs", "here", "index"))
    except FileNotFoundError:
        return ()
    except (ValueError, LookupError, TypeError, AttributeError):
        place.unlink()  # Nobody of ours wrote that.
        return ()
    now = _as_stored(there, theirs, _only(theirs))
    changed = [
        path
        for path in theirs
        if now.get(path) not in (None, theirs[path])
        or not _on_folders(there.place, path, theirs)
        or (_is_folder(there.place, path) and not any(name.startswith(path + b"/") for name in theirs))
    ]
    tracked = _staged(there.git, theirs)
    _mark(there.git, "--no-skip-worktree", tracked)
    # Where the index is as it was left then, it becomes what it was before, unless it was committed.
    as_left = [path for path in index if _is_as_left(tracked.get(path), here.get(path))]
    born = there.git.ok("rev-parse", "--verify", "-q", "HEAD")
    head = listed(there.git, "HEAD", lambda path: path in theirs) if born else {}
    _tell(there, {p: here.get(p) if here.get(p) == head.get(p) else index[p] for p in as_left})
    own = {
        path: here.get(path) if path in as_left else tracked.get(path) or here.get(path) for path in theirs
    }
    back = [path for path in theirs if path not in changed]
    _write(there, back, {path: entry for path, entry in _only(own).items() if path in back})
    there.git.run("update-index", "-q", "--refresh", check=False)
    place.unlink()
    return tuple(changed)


def _is_as_left(now: Entry | None, here: Entry | None) -> bool:
    return now == here if here else now is None or now[1] in EMPTY


def _only(entries: Mapping[bytes, Entry | None]) -> Entries:
    return {path: entry for path, entry in entries.items() if entry}


def listed(git: Git, commit: str, wanted: Callable[[bytes], bool]) -> Entries:
    """The wanted files of a commit."""
    found: Entries = {}
    for entry in git.out("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
        about, _, path = entry.partition(b"\t")
        if path and wanted(path):
            mode, _, oid = about.decode("ascii").split(" ")
            if mode != SUBMODULE:
                found[path] = (mode, oid)
    return found


@dataclass(frozen=True)
class Found:
    """What a working tree has: the files as git would store them and as its index has them; all that the index names; and
    those of the files that it is not to be told of, because they are ignored or in conflict.
    """

    files: Entries
    index: Entries
    tracked: frozenset[bytes]
    apart: frozenset[bytes]

    def in_the_way_of(self, path: bytes) -> bool:
        """Whether the index has a folder of this path as something else, or this path as a folder: it has no room for both."""
        parts = path.split(b"/")
        above = {b"/".join(parts[:depth]) for depth in range(1, len(parts))}
        return any(name in above or name.startswith(path + b"/") for name in self.tracked)


def _look(there: Repository, specs: Sequence[str]) -> Found:
    def find(*what: str) -> frozenset[bytes]:
        how = ("ls-files", "-z", *what, "--full-name", "--", *specs)
        return _names(there.git.out(*how, env={"GIT_LITERAL_PATHSPECS": "0"}))

    # A repository within this one ends with a slash: no work can bring it.
    names = frozenset(name for name in find("-c", "-o") if not name.endswith(b"/"))
    conflicts = {entry.partition(b"\t")[2] for entry in find("-u")}
    ignored = find("-o") - find("-o", "--exclude-standard")
    index = _staged(there.git, names)
    return Found(
        _as_stored(there, names, index),
        index,
        _names(there.git.out("ls-files", "-z")),
        frozenset(conflicts | ignored),
    )


def _names(out: bytes) -> frozenset[bytes]:
    return frozenset(name for name in out.split(b"\0") if name)


def _as_stored(there: Repository, paths: Iterable[bytes], known: Entries) -> Entries:
    """What git would store of the files that are there. It leaves the line ends of a file alone that is `known` with such."""
    present = sorted(path for path in paths if _is_file(there.place, path))
    if not present:
        return {}
    with scratch_index(there, copied=False) as scratch:
        scratch.index_info(_lines(known))
        scratch.add(present)
        return _staged(scratch.git, present, {"GIT_INDEX_FILE": str(scratch.index)})


def _is_file(top: Path, path: bytes) -> bool:
    found = lstat(top, path) if _on_folders(top, path) else None
    return found is not None and not stat.S_ISDIR(found.st_mode)


def _is_folder(top: Path, path: bytes) -> bool:
    found = lstat(top, path) if _on_folders(top, path) else None
    return found is not None and stat.S_ISDIR(found.st_mode)


def _on_folders(top: Path, path: bytes, going: Iterable[bytes] = ()) -> bool:
    """Whether all above `path` are folders, or not there, or going: what is reached through a link is somebody else's."""
    parts = path.split(b"/")
    for depth in range(1, len(parts)):
        above = b"/".join(parts[:depth])
        found = lstat(top, above)
        if found is None or above in going:
            return True
        if not stat.S_ISDIR(found.st_mode):
            return False
    return True


def _staged(git: Git, paths: Iterable[bytes], env: Mapping[str, str] | None = None) -> Entries:
    """The entries of the index for those of the paths that it has, where they are in no conflict."""
    wanted, found = set(paths), Entries()
    for entry in git.out("ls-files", "-z", "-s", env=env).split(b"\0"):
        about, _, path = entry.partition(b"\t")
        if path in wanted:
            mode, oid, stage = about.decode("ascii").split(" ")
            if stage == "0":
                found[path] = (mode, oid)
    return found


def _look_away(there: Repository, own: Mapping[bytes, Entry | None]) -> None:
    """The index gets the tree's own version, staged or not, and does not compare it with the file any more."""
    _tell(there, own)
    _mark(there.git, "--skip-worktree", _only(own))


def _tell(there: Repository, entries: Mapping[bytes, Entry | None]) -> None:
    if entries:
        lines = _lines({path: entry or (GONE, there.zero) for path, entry in entries.items()})
        fed = b"".join(line + b"\0" for line in lines)
        there.git.run("update-index", "-z", "--replace", "--index-info", input=fed)


def _lines(entries: Entries) -> list[bytes]:
    return [b"%s %s\t%s" % (mode.encode(), oid.encode(), path) for path, (mode, oid) in entries.items()]


def _write(there: Repository, paths: Iterable[bytes], entries: Entries) -> None:
    """The files at `paths` go; `entries` come. Only git writes: it follows no link out of the tree."""
    for path in paths:
        _remove(there.place, path)
    with scratch_index(there, copied=False) as scratch:
        scratch.index_info(
            [b"%s %s\t%s" % (m.encode(), o.encode(), path) for path, (m, o) in entries.items()]
        )
        scratch.run("checkout-index", "-f", "-z", "--stdin", input=b"".join(path + b"\0" for path in entries))


def _remove(top: Path, path: bytes) -> None:
    """A file and the folders that it leaves empty."""
    if not _is_file(top, path):
        return
    place = top / os.fsdecode(path)
    with contextlib.suppress(OSError):
        place.unlink()
    for folder in place.parents:
        if folder == top:
            return
        try:
            folder.rmdir()
        except OSError:
            return


def _intend(there: Repository, paths: Sequence[bytes]) -> None:
    """Files that the tree's own version does not have: nobody finds them new, and nobody commits them."""
    how = ("--intent-to-add", "--force", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul")
    _feed(there.git, "add", *how, paths=paths)
    _mark(there.git, "--skip-worktree", paths)


def _mark(git: Git, flag: str, paths: Iterable[bytes]) -> None:
    _feed(git, "update-index", flag, "-z", "--stdin", paths=list(paths))


def _feed(git: Git, *command: str, paths: Sequence[bytes]) -> None:
    if paths:
        git.run(*command, input=b"".join(path + b"\0" for path in paths))


def _note(there: Repository, given: Difference, index: Mapping[bytes, Entry | None]) -> None:
    here, theirs = given.found.files, given.theirs
    said = {
        "theirs": {os.fsdecode(path): theirs.get(path) for path in given.paths},
        "here": {os.fsdecode(path): here[path] for path in given.paths if path in here},
        "index": {os.fsdecode(path): entry for path, entry in index.items()},
    }
    draft = there.git_dir / f"{NOTE}.new"
    draft.write_text(json.dumps(said), "ascii")
    draft.replace(there.git_dir / NOTE)


def _entries(said: Mapping[str, list[str] | None]) -> dict[bytes, Entry | None]:
    """Of paths in the tree alone, whoever wrote them down."""
    found: dict[bytes, Entry | None] = {}
    for path, entry in said.items():
        if not {"", ".", "..", ".git"} & set(path.lower().split("/")):
            mode, oid = entry or ("", "")
            found[os.fsencode(path)] = (mode, oid) if entry else None
    return found
