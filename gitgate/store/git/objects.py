"""Store: git objects, read and written raw, by whichever way is cheaper here.

Importing pygit2 costs forty times a git process, so a verb about one gate goes through git's plumbing; a walk over
thousands, and a process that lives long, goes through pygit2. Both meet the same contract suite.
"""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import IO, Protocol

from ...document import NamedTuple
from ...errors import BrokenRecord, Failure
from ...text.digests import raw_digest
from .. import own_object_folder, read_sharing, write_object
from . import Git, Piped, Repository, TimedReader
from .canonical import OID

NUMBERS = {"commit": 1, "tree": 2, "blob": 3}


def object_id(kind: str, payload: bytes, width: int) -> str:
    """Return the object's id, as git will call it; `width` is the length of a binary one."""
    return digest_of(f"{kind} {len(payload)}\0".encode() + payload, width).hex()


def digest_of(data: bytes, width: int) -> bytes:
    """Return the digest that git uses for names in this repository. Where that is SHA-1, no security depends on it."""
    return raw_digest("sha1" if width == 20 else "sha256", data)


def pack_of(objects: Collection[tuple[str, bytes]], width: int) -> bytes:
    import zlib

    parts = [b"PACK", (2).to_bytes(4, "big"), len(objects).to_bytes(4, "big")]
    for kind, payload in objects:
        parts += [head_of(NUMBERS[kind], len(payload)), zlib.compress(payload, 1)]
    pack = b"".join(parts)
    return pack + digest_of(pack, width)


def head_of(number: int, size: int) -> bytes:
    """Encode kind and size: four bits of the size in the first byte, seven in each further one, the lowest first."""
    head = [number << 4 | size & 15]
    size >>= 4
    while size:
        head[-1] |= 128
        head.append(size & 127)
        size >>= 7
    return bytes(head)


MOST_FOLDERS = 16
MOST_HEAD = 32


class Damaged(Exception):
    """Error of an object that is there and is not what its name says."""


class TooLarge(Exception):
    """Error of an object that says that it has more bytes than were wanted."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


def object_folders(start: Path) -> list[str]:
    """Return a repository's folder of objects, and those that it borrows from."""
    found = [start]
    for folder in found:
        if len(found) < MOST_FOLDERS:
            found += [place for place in borrowed(folder) if place not in found]
    return [str(folder) for folder in found]


def borrowed(folder: Path) -> Iterator[Path]:
    try:
        lines = (folder / "info" / "alternates").read_bytes().split(b"\n")
    except OSError:
        return
    for line in lines:
        if line.strip() and not line.startswith(b"#"):
            yield folder / os.fsdecode(line.strip())


def read_loose(folders: list[str], oid: str, most: int) -> tuple[str, bytes] | None:
    """Read kind and contents of a loose object; None where no file is there, and a pack may have it."""
    for folder in folders:
        try:
            handle = os.open(f"{folder}/{oid[:2]}/{oid[2:]}", os.O_RDONLY)
        except OSError:
            continue
        with os.fdopen(handle, "rb") as file:
            return unpacked(file.read(most + MOST_HEAD), oid, most)
    return None


def unpacked(raw: bytes, oid: str, most: int) -> tuple[str, bytes]:
    """Return kind and contents of a loose object's file. Raise Damaged where they are not what the file or its
    name says.
    """
    import zlib

    stream = zlib.decompressobj()
    try:
        whole = stream.decompress(raw, most + MOST_HEAD)
    except zlib.error as broken:
        raise Damaged from broken
    head, end, payload = whole.partition(b"\0")
    kind, _, size = head[:MOST_HEAD].partition(b" ")
    if not end or not size.isdigit():
        raise Damaged
    if int(size) > most:
        raise TooLarge(int(size))
    name = kind.decode("ascii", "replace")
    if not stream.eof or len(payload) != int(size) or object_id(name, payload, len(oid) // 2) != oid:
        raise Damaged
    return name, payload


# A record of a few hundred events: to ask git for each of its objects takes longer than to import pygit2.
MANY_READS = 1000
# Asked in one go. Every pipe holds as much, so that neither side waits for the other to read.
MOST_ASKED = 4096
# Larger objects are read when they are needed; and no more than this is held of what may be needed.
MOST_AHEAD, MOST_HELD = 1 << 16, 1 << 24
MOST_WORDS = 1 << 14  # what a pipe takes without anybody reading at its other end
BLOB, TREE, COMMIT = "blob", "tree", "commit"
# What may stand behind an id: git completes whatever does not begin with a whole one.
BY_ID = r"([0-9a-f]+)(?:\^\{(?:commit|tree|object)\}|:.*)?"
# No object of a record comes near; whoever plants a larger one must not fill the reader's memory.
MOST_BYTES = 32 << 20


class NamedObject(NamedTuple):
    oid: str
    kind: str
    payload: bytes


class Objects(Protocol):
    """Store of objects. `read` raises BrokenRecord for an object that is not there or is too large."""

    def begin(self) -> None:
        """Start the process that answers, if there is one: something is asked soon."""

    def read(self, oid: str) -> tuple[str, bytes]: ...

    def find(self, names: Sequence[str]) -> list[NamedObject | None]:
        """Find each of these objects: a full id, alone or with `^{commit}`, `^{tree}` or `:PATH`; None where there is
        no such thing.

        A name of a ref is refused: git would complete it.
        """

    def ahead(self, oids: Sequence[str]) -> Mapping[str, tuple[str, bytes]]:
        """Read objects that are asked for soon, where that is cheaper at once. Missing and unsound ones are left
        to `read`.
        """

    def forget(self) -> None:
        """Drop what was read ahead and is not needed any more."""

    def write(self, kind: str, payload: bytes) -> str: ...

    def together(self) -> AbstractContextManager[None]:
        """Collect writes: they may reach the repository only at the end of the context, or at `flush`."""

    def flush(self) -> None: ...

    def close(self) -> None: ...


def end_reader(reader: Piped, owner: int) -> None:
    """End a reader, unless this is a copy of the process that began it."""
    if os.getpid() == owner:
        reader.kill()  # it writes nothing, and to wait until it has put its memory in order takes a millisecond
        reader.communicate()


class PlumbingObjects:
    """Store of objects through `git cat-file --batch`, `git hash-object` and `git unpack-objects`: nothing to import.

    `reader` is a `cat-file` that was begun ahead; `width` is the length of a binary object id. Where much is read
    after all, `library` is what reads the rest. What is written goes into `folder` file by file, where there is one.
    """

    def __init__(
        self,
        git: Git,
        reader: Piped | None = None,
        width: int = 20,
        library: Callable[[], Objects | None] = lambda: None,
        folder: Path | None = None,
    ) -> None:
        self.git = git
        self.folder = folder
        self.asked = 0
        self.library = library
        self.second: Objects | None = None
        self.reader = reader
        self.ending: weakref.finalize[[Piped, int], PlumbingObjects] | None = None
        self.said: TimedReader | None = None
        self.width = width
        self.waiting: dict[str, tuple[str, bytes]] | None = None
        self.held: dict[str, tuple[str, bytes]] = {}
        self.held_bytes = 0

    def begin(self) -> None:
        self.pipes()

    def read(self, oid: str) -> tuple[str, bytes]:
        if oid in self.held:
            return self.held[oid]
        if self.waiting and oid in self.waiting:
            return self.waiting[oid]
        check_oid(oid)  # git would resolve any name, and a newline in it would shift every later answer
        if len(oid) != 2 * self.width:  # it would look for a ref that is called so
            raise missing(oid)
        self.asked += 1
        if self.asked == MANY_READS:
            self.second = self.library()
        if self.second is not None:
            return self.second.read(oid)
        found = self.ask(oid)
        return found.kind, found.payload

    def ahead(self, oids: Sequence[str]) -> Mapping[str, tuple[str, bytes]]:
        """Read many objects at once: git answers while nobody waits. One question after the other takes two
        processes in turns.
        """
        if self.second is not None:
            return {}
        at_once = MOST_ASKED // (2 * self.width + 1)
        wanted = [oid for oid in dict.fromkeys(oids) if oid not in self.held and self.is_id(oid)]
        for start in range(0, len(wanted), at_once):
            if self.held_bytes > MOST_HELD or not self.hold(wanted[start : start + at_once]):
                break
        return {oid: self.held[oid] for oid in oids if oid in self.held}

    def is_id(self, oid: str) -> bool:
        return len(oid) == 2 * self.width and OID.fullmatch(oid) is not None

    def hold(self, oids: Sequence[str]) -> bool:
        """Ask for these objects, and keep the small and sound ones; False where git stopped in the middle."""
        into, said = self.pipes()
        into.write("".join(f"{oid}\n" for oid in oids).encode())
        into.flush()
        with suppress(TimeoutError):
            for oid in oids:
                head = said.line().split()
                if head[1:] == [b"missing"]:
                    continue
                size = int(head[2]) if len(head) == 3 else MOST_BYTES + 1
                if size > MOST_BYTES or len(payload := said.exactly(size + 1)) <= size:
                    break
                if size <= MOST_AHEAD:
                    self.held[oid] = (head[1].decode(), payload[:-1])
                    self.held_bytes += size
            else:
                return True
        self.drop(damaged(oids[0]))
        return False

    def forget(self) -> None:
        self.held, self.held_bytes = {}, 0

    def ask(self, name: str) -> NamedObject:
        (found,) = self.find([name])
        if found is None:
            raise missing(name)
        return found

    def find(self, names: Sequence[str]) -> list[NamedObject | None]:
        """Find objects. Of a few names all are asked before the first answer is read: git looks while we do."""
        require_ids(names, self.width)
        asked = [name for name in names if "\n" not in name]  # else it would be two questions
        words = "".join(f"{name}\n" for name in asked).encode("utf-8", "surrogateescape")
        if len(words) > MOST_WORDS:
            return [found for name in names for found in self.find([name])] if len(names) > 1 else [None]
        into, _ = self.pipes()
        into.write(words)
        into.flush()
        return [self.read_found(name) if "\n" not in name else None for name in names]

    def read_found(self, name: str) -> NamedObject | None:
        _, said = self.pipes()
        try:
            head = said.line().split()
            there = (
                len(head) == 3 and head[2].isdigit()
            )  # else it repeats the name, which may be of two words
            size = int(head[2]) if there else 0
            payload = said.exactly(size + 1) if there and size <= MOST_BYTES else b""
        except TimeoutError as silent:
            raise self.drop(stuck(name, silent)) from silent
        if not head:
            raise self.drop(damaged(name))
        if not there:
            return None
        if size > MOST_BYTES:
            raise self.drop(too_large(name, size))
        if len(payload) != size + 1:
            raise self.drop(damaged(name))
        return NamedObject(head[0].decode(), head[1].decode(), payload[:-1])

    def write(self, kind: str, payload: bytes) -> str:
        oid = object_id(kind, payload, self.width)
        if self.waiting is not None:
            self.waiting[oid] = (kind, payload)
        elif not self.written_here({oid: (kind, payload)}):
            return self.git.text("hash-object", "-t", kind, "-w", "--stdin", input=payload)
        return oid

    @contextmanager
    def together(self) -> Iterator[None]:
        """Collect writes for one process, or none, instead of one for each. A nested block belongs to the outer one."""
        if self.waiting is not None:
            yield
            return
        self.waiting = {}
        try:
            yield
            self.flush()
        finally:
            self.waiting = None

    def flush(self) -> None:
        if self.waiting:
            if not self.written_here(self.waiting):
                pack = pack_of(self.waiting.values(), self.width)
                self.git.run("unpack-objects", "-q", input=pack)
            self.waiting.clear()

    def written_here(self, objects: Mapping[str, tuple[str, bytes]]) -> bool:
        """Write objects as files and return whether all are there now. Where a file cannot be written, git is to
        say why.
        """
        if self.folder is None:
            return False
        try:
            for oid, (kind, payload) in objects.items():
                write_object(self.folder, oid, f"{kind} {len(payload)}\0".encode() + payload)
        except OSError:
            return False
        return True

    def pipes(self) -> tuple[IO[bytes], TimedReader]:
        if self.reader is None:
            self.reader = self.git.pipe("cat-file", "--batch")
            # Whoever forgets to close it leaves no process behind.
            self.ending = weakref.finalize(self, end_reader, self.reader, os.getpid())
        if self.reader.stdin is None or self.reader.stdout is None:
            raise Failure("git cat-file has no pipes")
        if self.said is None:
            self.said = TimedReader(self.reader.stdout.fileno())
        return self.reader.stdin, self.said

    def close(self) -> None:
        if self.reader is not None:
            if self.ending is not None:
                self.ending.detach()
            end_reader(self.reader, os.getpid())
            self.reader = self.said = self.ending = None

    def drop(self, why: BrokenRecord) -> BrokenRecord:
        """End the reader in the middle of its answer; the next question starts another."""
        self.close()
        return why


class LibraryObjects:
    """Store of objects through pygit2, in this process."""

    def __init__(self, repo: Repository) -> None:
        import pygit2
        from pygit2.enums import ObjectType

        self.kinds = {
            BLOB: int(ObjectType.BLOB),
            TREE: int(ObjectType.TREE),
            COMMIT: int(ObjectType.COMMIT),
        }
        self.names = {number: name for name, number in self.kinds.items()}
        self.failure = pygit2.GitError
        self.by_git = PlumbingObjects(repo.git)
        # Who looks through many repositories lets go of stores without closing each: no git outlives its store.
        weakref.finalize(self, self.by_git.close)
        library = pygit2.Repository(str(repo.git_dir))
        self.odb = library.odb
        # Git gives others what `core.sharedRepository` says; libgit2 leaves it to the umask.
        name = "core.sharedrepository"
        self.shared = read_sharing({name: str(library.config[name])} if name in library.config else {})
        self.place = repo.common_dir / "objects"
        self.folders = object_folders(self.place)
        # What a push brings is kept apart until it is accepted; git tells a hook where, and libgit2 does not listen.
        incoming = repo.git.env.get("GIT_OBJECT_DIRECTORY")
        if incoming:
            self.odb.add_disk_alternate(str(repo.git_dir / incoming))
            self.folders.insert(0, str(repo.git_dir / incoming))
        # A size without the object; older releases of pygit2 have no such call.
        self.header: Callable[[str], tuple[int, int]] | None = getattr(self.odb, "read_header", None)

    def begin(self) -> None:
        return None

    def read(self, oid: str) -> tuple[str, bytes]:
        check_oid(oid)
        try:
            loose = read_loose(self.folders, oid, MOST_BYTES)
        except TooLarge as large:
            raise too_large(oid, large.size) from large
        except (Damaged, OSError) as unreadable:
            raise damaged(oid) from unreadable
        if loose is not None:
            return loose
        try:
            size = self.header(oid)[1] if self.header is not None else 0
            if size > MOST_BYTES:
                raise too_large(oid, size)
            kind, payload = self.odb.read(oid)
        except (KeyError, ValueError) as absent:
            raise missing(oid) from absent
        except self.failure as unreadable:
            raise damaged(oid) from unreadable
        return self.names.get(int(kind), "tag"), payload

    def find(self, names: Sequence[str]) -> list[NamedObject | None]:
        """Find objects by git: libgit2 fetches nothing that a partial clone lacks, and loads what it finds,
        however large that is. One process answers for as long as this is open: starting it for each question
        took a fifth of opening a gate.
        """
        return self.by_git.find(names)

    def ahead(self, oids: Sequence[str]) -> Mapping[str, tuple[str, bytes]]:
        del oids
        return {}

    def forget(self) -> None:
        return None

    def write(self, kind: str, payload: bytes) -> str:
        try:
            oid = str(self.odb.write(self.kinds[kind], payload))
        except (OSError, self.failure) as failed:
            # libgit2 has words and no number: a disk that is full, a quota, a folder that may not be written.
            raise Failure(
                f"nothing can be written to {self.place}: {failed}",
                hint="make room there, or have it made writable for you; then type the same again",
            ) from failed
        if self.shared.bits:
            folder = self.place / oid[:2]
            self.shared.give(folder)
            self.shared.give(folder / oid[2:])
        return oid

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    def flush(self) -> None:
        return None

    def close(self) -> None:
        self.by_git.close()


def open_objects(repo: Repository, *, bulk: bool, reader: Piped | None = None) -> Objects:
    """Open the store of objects that is cheaper for what is to come. Git itself reads a format that libgit2
    cannot read.
    """
    found = open_library(repo) if bulk else None
    if found is not None:
        return found
    later = (lambda: None) if bulk else partial(open_library, repo)
    folder = own_object_folder(repo.common_dir, repo.git.env, repo.configured)
    return PlumbingObjects(repo.git, reader, len(repo.zero) // 2, later, folder)


def open_library(repo: Repository) -> LibraryObjects | None:
    """Open the repository with libgit2; None where libgit2 cannot read it."""
    if len(repo.zero) != 40:
        return None
    try:
        return LibraryObjects(repo)
    except Exception as refused:  # pygit2 raises its own error for every repository extension that it lacks
        if type(refused).__name__ != "GitError":
            raise
        return None


def require_ids(names: Sequence[str], width: int) -> None:
    """Refuse each that does not begin with a full id. `width` is the length of a binary one."""
    for name in names:
        found = re.fullmatch(BY_ID, name, re.DOTALL)
        if found is None or len(found[1]) != 2 * width:
            raise BrokenRecord(f"{name[:80]!r} does not begin with a full object id")


def missing(oid: str) -> BrokenRecord:
    return BrokenRecord(
        f"object {oid[:12]} is not in this repository", hint="git gate sync, then: git gate verify"
    )


def damaged(oid: str) -> BrokenRecord:
    return BrokenRecord(f"object {oid[:12]} is damaged", hint="git fsck")


def stuck(oid: str, silent: TimeoutError) -> BrokenRecord:
    return BrokenRecord(f"object {oid[:12]} may be damaged: reading it, git {silent}", hint="git fsck")


def too_large(oid: str, size: int) -> BrokenRecord:
    return BrokenRecord(f"object {oid[:12]} has {size:,} bytes; no part of a record is so large")


def check_oid(oid: str) -> None:
    if not OID.fullmatch(oid):
        raise BrokenRecord(f"{oid[:80]!r} is no full object id")
