"""Store: git objects and refs, the partial work, the remotes, the archive. Here is who may read and write what lies in a repository.

What an account keeps for itself (logs, sessions, locks) is for that account alone, whatever the umask says. Objects and refs
are git's: they follow `core.sharedRepository`, and nothing here narrows them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..document import dataclass

PRIVATE = 0o700
GROUP, EVERYBODY = 0o660, 0o664
WORDS = {
    **dict.fromkeys(("umask", "false", "no", "off", "0", ""), 0),
    **dict.fromkeys(("group", "true", "yes", "on", "1"), GROUP),
    **dict.fromkeys(("all", "world", "everybody", "2"), EVERYBODY),
}
GITS_OWN = ("objects", "refs", "logs", "packed-refs")


def private_folder(folder: Path) -> Path:
    """Make a folder for this account alone, with what is missing above it, and return it."""
    try:
        folder.mkdir(PRIVATE)
    except FileNotFoundError:
        private_folder(folder.parent)
        private_folder(folder)
    except FileExistsError:
        if not folder.is_dir():
            raise
    return folder


def read_local(place: Path, most: int = -1) -> bytes:
    """Read a file that this machine keeps, at most `most` bytes of it.

    OSError where something else than a file is in its place: a named pipe would be waited for without end.
    """
    number = os.open(place, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(place))
        return file.read(most)


Kind = type | tuple[type, ...]


class BadNote(ValueError):
    """A note of this machine that is not as we write it."""


def read_local_note(place: Path, /, **needed: Kind) -> dict[str, Any]:
    """Read a JSON object that this machine keeps. OSError where there is none.

    ValueError where it is something else, or a field that is needed is missing or of another kind.
    """
    return parse_note(read_local(place), **needed)


def parse_note(data: bytes, /, **needed: Kind) -> dict[str, Any]:
    """Read a JSON object with these fields, each of its kind; ValueError where it is something else."""
    import json

    try:
        said = json.loads(data.decode("utf-8"))
    except RecursionError:
        raise BadNote("the note is nested too deeply") from None
    if not isinstance(said, dict):
        raise BadNote("the note is no object")
    for name, kind in needed.items():
        if not isinstance(said.get(name), kind):
            raise BadNote(f"the note's field {name} is missing, or of another kind")
    return said


def write_private(place: Path, content: bytes) -> None:
    """Write a file for this account alone, all of it or nothing: a temporary file takes its place at the end."""
    new = place.with_name(f".{place.name}.{os.getpid()}.new")
    with contextlib.suppress(FileNotFoundError):
        new.unlink()
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(content)
    new.replace(place)


# Settings that say how git writes an object: modes for others, how it is made sure of, a second name. What they ask for is git's to do.
GITS_WAY = (
    "core.sharedrepository",
    "core.fsync",
    "core.fsyncmethod",
    "core.fsyncobjectfiles",
    "core.createobject",
    "extensions.compatobjectformat",
)


def own_object_folder(common: Path, env: Mapping[str, str], configured: Mapping[str, object]) -> Path | None:
    """Return the folder where objects may be written without git. That saves 2 ms of the 80 that a question or an
    answer takes.

    None where settings make git write objects in a way of their own, or where nobody has read these settings.
    """
    if not configured or "GIT_OBJECT_DIRECTORY" in env or any(name in configured for name in GITS_WAY):
        return None
    return common / "objects"


def write_object(folder: Path, oid: str, content: bytes) -> None:
    """Write an object's file as git does: under a name that git tidies away, then moved to its place whole.

    A file that is there already keeps its content and gets a new date, so that nobody tidies it away now.
    """
    import zlib

    place = folder / oid[:2]
    with contextlib.suppress(FileNotFoundError):
        os.utime(place / oid[2:])
        return
    new = place / f"tmp_obj_{os.urandom(6).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        handle = os.open(new, flags, 0o444)
    except FileNotFoundError:
        place.mkdir(exist_ok=True)
        handle = os.open(new, flags, 0o444)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(zlib.compress(content, 1))
        new.replace(place / oid[2:])
    except OSError:
        new.unlink()
        raise


def take_lock(place: Path, *, wait: bool = False) -> int | None:
    """Open a lock of the system and return its file; None while somebody else has the lock.

    The lock is ours until the file is closed or this process ends, however that ends. Where the system has no such
    locks nobody is kept out: the claims still keep each gate to one.
    """
    number = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        import fcntl

        fcntl.flock(number, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        pass
    except OSError:
        os.close(number)
        return None
    return number


@contextlib.contextmanager
def locked(place: Path, *, wait: bool = False) -> Iterator[bool]:
    """Take the lock for as long as the context lasts; yield whether it is ours."""
    number = take_lock(place, wait=wait)
    try:
        yield number is not None
    finally:
        if number is not None:
            os.close(number)


def may_keep(state: Path) -> bool:
    """Return whether this account has, or could make, its folder in the repository."""
    place = state if os.path.lexists(state) else state.parent
    return os.access(place, os.W_OK | os.X_OK)


@dataclass(frozen=True)
class Sharing:
    """Permissions that `core.sharedRepository` gives to others. `exact`: a number, which also takes away what it
    does not name.
    """

    bits: int = 0
    exact: bool = False

    def mode(self, mode: int) -> int:
        """Return the mode that git gives to a file or folder made with `mode` (`adjust_shared_perm`)."""
        if not self.bits:
            return mode
        given = self.bits
        if not mode & stat.S_IWUSR:
            given &= ~0o222
        if mode & stat.S_IXUSR:
            given |= (given & 0o444) >> 2
        shared = (mode & ~0o777) | given if self.exact else mode | given
        if stat.S_ISDIR(mode):
            shared |= (shared & 0o444) >> 2
            shared |= stat.S_ISGID if shared & 0o060 else 0
        return shared

    def give(self, place: Path) -> None:
        """Give others their permissions on a file or folder that this account made; anybody else's is left as it is."""
        with contextlib.suppress(OSError):
            found = place.stat()
            wanted = self.mode(found.st_mode)
            if found.st_uid == os.geteuid() and wanted != found.st_mode:
                place.chmod(stat.S_IMODE(wanted))


def read_sharing(config: Mapping[str, str]) -> Sharing:
    """Read `core.sharedRepository` from a repository's configuration. A value that git does not know is left for
    git to refuse.
    """
    said = config.get("core.sharedrepository", "").strip().lower()
    if said in WORDS:
        return Sharing(WORDS[said])
    try:
        number = int(said, 8)
    except ValueError:
        return Sharing()
    return Sharing(number & 0o666, exact=True)


@dataclass(frozen=True)
class Misfit:
    """File or folder that others cannot read although they should, or could although they must not."""

    place: Path
    owner: int
    mode: int

    @property
    def ours(self) -> bool:
        return self.owner == os.geteuid()

    @property
    def owner_name(self) -> str:
        return account_name(self.owner)

    def mend(self) -> None:
        self.place.chmod(self.mode)


def narrowed(common: Path, shared: Sharing) -> Iterator[Misfit]:
    """Yield the objects and refs that others cannot read.

    Without `core.sharedRepository`, the mode of the folder that they are in says what others should read.
    """
    for name in GITS_OWN:
        top = common / name
        measure = (top if top.is_dir() else common).stat().st_mode
        for place, found in everything(top):
            wanted = shared.mode(found.st_mode)
            if not shared.exact:
                wanted |= measure & (0o055 if found.st_mode & stat.S_IXUSR else 0o044)
            if wanted & ~found.st_mode & 0o777:
                yield Misfit(place, found.st_uid, stat.S_IMODE(wanted))


def folder_misfits(state: Path) -> Iterator[Misfit]:
    """Yield the folder of this account where others can read it; what is in it is as private as the folder."""
    try:
        found = os.lstat(state)
    except OSError:
        return
    if stat.S_IMODE(found.st_mode) & 0o077:
        yield Misfit(state, found.st_uid, stat.S_IMODE(found.st_mode) & ~0o077)


def account_name(number: int) -> str:
    """Return the name of an account on this machine; its number where the account has no name."""
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def is_reachable(place: Path) -> bool:
    """Return whether every account of this machine can read a file: nobody else can start a program in a closed
    home.
    """
    try:
        above = [folder.stat().st_mode & 0o001 for folder in place.resolve().parents]
        return all(above) and place.stat().st_mode & 0o004 != 0
    except OSError:
        return False


def foreign(state: Path) -> Iterator[tuple[Path, int]]:
    """Yield files and folders of other accounts in this account's folder, where they may be in the way; of each
    the outermost.
    """
    account = os.geteuid()
    if not state.is_dir():
        return
    with os.scandir(state) as listed:
        for entry in listed:
            owner = entry.stat(follow_symlinks=False).st_uid
            if owner != account:
                yield Path(entry.path), owner
            elif entry.is_dir(follow_symlinks=False):
                yield from foreign(Path(entry.path))


def everything(top: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield `top` and all files and folders below it; no link is followed."""
    try:
        found = os.lstat(top)
    except OSError:
        return
    if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
        yield top, found
    if not stat.S_ISDIR(found.st_mode):
        return
    try:
        below = sorted(top.iterdir())
    except OSError:  # It is somebody's, and shut: itself is what does not fit.
        return
    for place in below:
        yield from everything(place)
