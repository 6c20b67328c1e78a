"""Store: files of a working tree that were put aside, in a folder beside its index, and what was put in their places.

Everything here can be stopped at any moment: a file is at its place or in the folder, whole, and the note that says which
was where is complete before the first one moves.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import posixpath
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ...document import dataclass
from ...errors import WorkFailed
from .. import private_folder
from ..git import Git, Repository
from . import lstat, printable
from .snapshot import scratch_index

NOTE, DRAFT = "note.json", "note.new"
OID = frozenset("0123456789abcdef")

Entry = tuple[str, str]  # mode and object, as an index has them


@dataclass(frozen=True)
class Stood:
    """File that another one stands for. `own`: the name under which it is kept, if there was one.

    `committed`: HEAD had exactly this content, so that nothing of it could be lost; `index`: what the index had;
    `theirs`: what stands there, and `seen`: what that looks like; `hidden`: git was set before not to look at the
    path.
    """

    path: bytes
    own: str | None
    committed: bool
    index: Entry | None
    theirs: Entry | None
    seen: str | None
    hidden: bool = False


@dataclass(frozen=True)
class AsideNote:
    """Note of all files that others stand for; the patterns of a sparse checkout as they were (None: there were
    none); whether we locked the tree.
    """

    stood: tuple[Stood, ...]
    patterns: str | None
    locked: bool = False


def is_standing(there: Repository) -> bool:
    return os.path.lexists(there.standing_dir / NOTE)


def make_folder(there: Repository) -> Path:
    """Make the folder for the tree's own files and those that stand for them: empty, ours, and no link to anywhere."""
    folder = there.standing_dir
    if is_standing(there):
        raise WorkFailed(f"files stand there for others yet: {folder}", hint="git gate doctor")
    clear(folder)
    folder.mkdir(mode=0o700)
    (folder / "own").mkdir()
    (folder / "theirs").mkdir()
    return folder


def clear(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(folder.lstat().st_mode):
            import shutil  # with all that it can unpack; here there is rarely anything to remove

            shutil.rmtree(folder)
        else:
            folder.unlink()


def save_note(there: Repository, note: AsideNote) -> None:
    said = {
        "stood": [
            {
                "path": os.fsdecode(one.path),
                "own": one.own,
                "committed": one.committed,
                "index": one.index,
                "theirs": one.theirs,
                "seen": one.seen,
                "hidden": one.hidden,
            }
            for one in note.stood
        ],
        "patterns": note.patterns,
        "locked": note.locked,
    }
    draft = there.standing_dir / DRAFT
    how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(draft, how, 0o600), "w", encoding="ascii") as out:
        json.dump(said, out)
        out.flush()
        os.fsync(out.fileno())
    draft.replace(there.standing_dir / NOTE)


def load_note(there: Repository) -> AsideNote | None:
    """Load the note of files that stand for others; None where there is none.

    An unreadable note is an error: its content is not to be guessed.
    """
    place = there.standing_dir / NOTE
    try:
        said = json.loads(place.read_text("ascii"))
        return AsideNote(
            tuple(map(_stood, said["stood"])), _as_text(said["patterns"]), said.get("locked") is True
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as wrong:
        raise WorkFailed(
            f"{place} cannot be read: {wrong}",
            hint=f"files of that working tree are in {place.parent / 'own'}: put them back, and remove {place.parent}",
        ) from wrong


def _stood(said: Mapping[str, object]) -> Stood:
    own = said["own"]
    if own is not None and not (isinstance(own, str) and own.isdecimal()):
        raise ValueError("a name of a file put aside is a number")
    index, theirs, seen = _entry(said["index"]), _entry(said["theirs"]), _as_text(said["seen"])
    committed, hidden = said["committed"] is True, said.get("hidden") is True
    return Stood(_path(said["path"]), own, committed, index, theirs, seen, hidden)


def _path(said: object) -> bytes:
    """Return a path of the note, whoever wrote it; ValueError unless it is in the tree."""
    if not isinstance(said, str) or "\0" in said or {"", ".", "..", ".git"} & set(said.lower().split("/")):
        raise ValueError(f"no path in a working tree: {said!r}")
    return os.fsencode(said)


def _entry(said: object) -> Entry | None:
    if said is None:
        return None
    if not isinstance(said, list) or not all(isinstance(part, str) for part in said):
        raise ValueError("an entry is a mode and an object")
    mode, oid = said
    if not mode.isdecimal() or len(oid) not in (40, 64) or not set(oid) <= OID:
        raise ValueError("an entry is a mode and an object")
    return mode, oid


def _as_text(said: object) -> str | None:
    if said is not None and not isinstance(said, str):
        raise ValueError("expected text")
    return said


def look_of(top: Path, path: bytes) -> str | None:
    """Return a word for the exact content at a path: its kind and a digest, or a link's target; None where no
    file is.
    """
    found = lstat(top, path) if on_folders(top, path) else None
    place = top / os.fsdecode(path)
    if found is None or stat.S_ISDIR(found.st_mode):
        return None
    if stat.S_ISLNK(found.st_mode):
        return f"link {printable(os.fsencode(place.readlink()))}"
    if not stat.S_ISREG(found.st_mode):
        return "something else"
    with place.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{'program' if found.st_mode & 0o100 else 'file'} {digest}"


def is_folder(top: Path, path: bytes) -> bool:
    found = lstat(top, path) if on_folders(top, path) else None
    return found is not None and stat.S_ISDIR(found.st_mode)


def on_folders(top: Path, path: bytes, going: Iterable[bytes] = ()) -> bool:
    """Return whether all above `path` are folders, or not there, or going: a file that is reached through a link
    is elsewhere.
    """
    parts = path.split(b"/")
    for depth in range(1, len(parts)):
        above = b"/".join(parts[:depth])
        found = lstat(top, above)
        if found is None or above in going:
            return True
        if not stat.S_ISDIR(found.st_mode):
            return False
    return True


def move(source: Path, target: Path) -> None:
    """Move a file by renaming; between file systems by a copy that is whole before it has the name."""
    try:
        source.rename(target)
    except OSError as failed:
        if failed.errno != errno.EXDEV:
            raise
        new = target.with_name(f".{target.name[:200]}.gitgate-new")
        try:
            import shutil

            shutil.copy2(source, new, follow_symlinks=False)
            new.rename(target)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        source.unlink()


def take_away(top: Path, path: bytes, to: Path | None = None) -> None:
    """Move a file away, or remove it, and the folders that it leaves empty."""
    place = top / os.fsdecode(path)
    if to is None:
        place.unlink()
    else:
        move(place, to)
    for folder in place.parents:
        if folder == top:
            return
        try:
            folder.rmdir()
        except OSError:
            return


def put_file(source: Path, top: Path, path: bytes) -> None:
    """Put a file in a place where none is."""
    place = top / os.fsdecode(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    move(source, place)


LINK, SUBMODULE = "120000", "160000"

Entries = dict[bytes, Entry]


@dataclass(frozen=True)
class Files:
    """Files to be looked for: git's patterns for a working tree, and a function that says whether a path is one
    of them.
    """

    specs: tuple[str, ...]
    wanted: Callable[[bytes], bool]


@dataclass(frozen=True)
class Difference:
    """Difference between a working tree and a commit. `stand`: files of the commit that are to stand in the tree.

    `odd`: paths that cannot be replaced, and why.
    """

    stand: Mapping[bytes, Entry | None]
    odd: tuple[str, ...] = ()


def _is_at_or_beneath(path: bytes, others: Mapping[bytes, str]) -> bool:
    parts = path.split(b"/")
    return any(b"/".join(parts[:depth]) in others for depth in range(1, len(parts) + 1))


@dataclass(frozen=True)
class FoundAside:
    """Files that were found, in the tree, in its index and in the commit.

    The index has by path a tag (`M` in conflict, `S` skipped in a sparse checkout) and a mode.
    """

    names: frozenset[bytes]
    index: Mapping[bytes, tuple[str, str]]
    theirs: Entries


def compare(there: Repository, commit: str, files: Files) -> Difference:
    """Compare the wanted files, byte for byte: what attributes of the tree would make of them counts as a
    difference.
    """
    theirs = files_of_commit(there.git, commit, files.wanted)
    found = FoundAside(_names(there, files), _indexed(there, files), theirs)
    private_folder(there.state_dir)
    with tempfile.TemporaryDirectory(prefix="compare-", dir=there.state_dir) as room:
        looks = looks_of(there, theirs, Path(room))
    here = {name: look for name in found.names if (look := look_of(there.place, name)) is not None}
    differ = {path for path in {*here, *looks} if here.get(path) != looks.get(path)}
    odd = dict(_oddities(there, files, found, differ))
    stand = {path: theirs.get(path) for path in sorted(differ) if not _is_at_or_beneath(path, odd)}
    return Difference(stand, tuple(f"{printable(path)} {why}" for path, why in sorted(odd.items())))


def files_of_commit(git: Git, commit: str, wanted: Callable[[bytes], bool]) -> Entries:
    """Return the wanted files of a commit."""
    found: Entries = {}
    for entry in git.out("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
        about, _, path = entry.partition(b"\t")
        if path and wanted(path):
            mode, _, oid = about.decode("ascii").split(" ")
            found[path] = (mode, oid)
    return found


def _names(there: Repository, files: Files) -> frozenset[bytes]:
    """List the files that the patterns find, ignored ones too, and what the index has of them, there or not."""
    how = ("ls-files", "-z", "-c", "-o", "--full-name", "--", *files.specs)
    found = there.git.out(*how, env={"GIT_LITERAL_PATHSPECS": "0"}).split(b"\0")
    # Git folds the case of ASCII alone; a file system may fold more.
    folded = there.git.out("ls-files", "-z").split(b"\0")
    return frozenset(name for name in (*found, *folded) if name and files.wanted(name))


def _indexed(there: Repository, files: Files) -> dict[bytes, tuple[str, str]]:
    """Return the tag and mode of each wanted file that the index has; `M` is in conflict, `S` skipped in a
    sparse checkout.
    """
    how = ("ls-files", "-z", "-t", "-s", "--full-name", "--", *files.specs)
    found = {}
    for entry in there.git.out(*how, env={"GIT_LITERAL_PATHSPECS": "0"}).split(b"\0"):
        about, _, path = entry.partition(b"\t")
        if path and files.wanted(path):
            tag, mode, *_ = about.decode("ascii").split(" ")
            found[path] = (tag, mode)
    return found


def _oddities(
    there: Repository, files: Files, found: FoundAside, differ: set[bytes]
) -> Iterator[tuple[bytes, str]]:
    """Yield the paths that cannot be replaced, or are not what they look like, each with the reason."""
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
    """Return whether a link leads to another of the wanted files. Any other target would be whatever the tree
    has there.
    """
    led = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return not led.startswith((b"/", b"..")) and files.wanted(led)


def looks_of(there: Repository, entries: Entries, folder: Path) -> dict[bytes, str]:
    """Return the looks of entries that are checked out into a folder of their own, where no attributes of the
    tree apply.
    """
    folder.mkdir(exist_ok=True)
    plain = {path: entry for path, entry in entries.items() if entry[0] != SUBMODULE}
    if not plain:
        return {}
    with scratch_index(there, copied=False) as scratch:
        scratch.index_info(index_lines(plain))
        env = {"GIT_INDEX_FILE": str(scratch.index), "GIT_WORK_TREE": str(folder)}
        there.git.run("-c", "core.safecrlf=false", "checkout-index", "-a", "-f", env=env)
    looks = ((path, look_of(folder, path)) for path in plain)
    return {path: look for path, look in looks if look is not None}


def index_entries(git: Git, paths: Iterable[bytes], env: Mapping[str, str] | None = None) -> Entries:
    """Return the entries of the index for those of the paths that it has, where they are in no conflict."""
    wanted, found = set(paths), Entries()
    for entry in git.out("ls-files", "-z", "-s", env=env).split(b"\0"):
        about, _, path = entry.partition(b"\t")
        if path in wanted:
            mode, oid, stage = about.decode("ascii").split(" ")
            if stage == "0":
                found[path] = (mode, oid)
    return found


def index_lines(entries: Entries) -> list[bytes]:
    return [b"%s %s\t%s" % (mode.encode(), oid.encode(), path) for path, (mode, oid) in entries.items()]
