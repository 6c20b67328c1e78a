"""Core: digests, without OpenSSL where Python has its own. `hashlib` loads that library, for longer than we need any digest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Protocol


class Digest(Protocol):
    def digest(self) -> bytes: ...

    def hexdigest(self) -> str: ...


Maker = Callable[[bytes], Digest]


def sha1(data: bytes) -> Digest:
    """For names of objects, as git has them; nothing is secured by it."""
    return _maker("_sha1", "_sha1", "sha1")(data)


def sha256(data: bytes) -> Digest:
    return _maker("_sha2", "_sha256", "sha256")(data)


def repeated(data: bytes, times: int) -> bytes:
    """SHA-256 of `data`, of the result, and so on: as often as said."""
    make = _maker("_sha2", "_sha256", "sha256")
    for _ in range(times):
        data = make(data).digest()
    return data


def repetitions(data: bytes, times: int) -> Iterator[bytes]:
    """Each result of the same, one after another."""
    make = _maker("_sha2", "_sha256", "sha256")
    for _ in range(times):
        data = make(data).digest()
        yield data


@cache  # What is not there would be looked for each time, on all of the path.
def _maker(module: str, before_312: str, name: str) -> Maker:
    """As Python's own `random` finds it; a Python built without goes through OpenSSL."""
    from importlib import import_module

    for place in (module, before_312, "hashlib"):
        try:
            maker: Maker = getattr(import_module(place), name)
        except (ImportError, AttributeError):
            continue
        return maker
    raise ImportError(name)
