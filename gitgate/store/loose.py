"""Store: objects that lie in files of their own, read here. libgit2 turns round in itself for ever over one cut short."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from .packing import name_of

MOST_FOLDERS = 16
MOST_HEAD = 32


class Damaged(Exception):
    """It is there, and is not what its name says."""


class TooLarge(Exception):
    """It says that it has more bytes than were wanted."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


def object_folders(start: Path) -> list[str]:
    """A repository's folder of objects, and those that it borrows from."""
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
    """Kind and contents; None where no file is there, and a pack may have it."""
    for folder in folders:
        try:
            handle = os.open(f"{folder}/{oid[:2]}/{oid[2:]}", os.O_RDONLY)
        except OSError:
            continue
        with os.fdopen(handle, "rb") as file:
            return unpacked(file.read(most + MOST_HEAD), oid, most)
    return None


def unpacked(raw: bytes, oid: str, most: int) -> tuple[str, bytes]:
    """What such a file holds, as far as it holds what it says."""
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
    if not stream.eof or len(payload) != int(size) or name_of(name, payload, len(oid) // 2) != oid:
        raise Damaged
    return name, payload
