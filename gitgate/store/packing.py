"""Store: a few new objects as one pack, so that one git process writes them all; git takes it apart again."""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha1, sha256

NUMBERS = {"commit": 1, "tree": 2, "blob": 3}


def name_of(kind: str, payload: bytes, width: int) -> str:
    """The object's id, as git will call it; `width` is the length of a binary one."""
    return digest_of(f"{kind} {len(payload)}\0".encode() + payload, width).hex()


def digest_of(data: bytes, width: int) -> bytes:
    """As git names things in this repository; where SHA-1 does, nothing is secured by it."""
    return sha1(data, usedforsecurity=False).digest() if width == 20 else sha256(data).digest()


def pack_of(objects: Collection[tuple[str, bytes]], width: int) -> bytes:
    import zlib

    parts = [b"PACK", (2).to_bytes(4, "big"), len(objects).to_bytes(4, "big")]
    for kind, payload in objects:
        parts += [head_of(NUMBERS[kind], len(payload)), zlib.compress(payload, 1)]
    pack = b"".join(parts)
    return pack + digest_of(pack, width)


def head_of(number: int, size: int) -> bytes:
    """Kind and size: four bits of the size in the first byte, seven in each further one, the lowest first."""
    head = [number << 4 | size & 15]
    size >>= 4
    while size:
        head[-1] |= 128
        head.append(size & 127)
        size >>= 7
    return bytes(head)
