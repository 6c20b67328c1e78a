"""Test bed: a store of objects in memory. It exists only here, under the same contract suite as the real ones."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from gitgate.store.git import Git, Repository
from gitgate.store.git.objects import MOST_BYTES, NamedObject, check_oid, missing, too_large
from gitgate.store.records import Records


class MemoryObjects:
    """Objects in a dictionary, named as git names them."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[str, bytes]] = {}

    def begin(self) -> None:
        return None

    def read(self, oid: str) -> tuple[str, bytes]:
        check_oid(oid)
        if oid not in self.known:
            raise missing(oid)
        kind, payload = self.known[oid]
        if len(payload) > MOST_BYTES:
            raise too_large(oid, len(payload))
        return kind, payload

    def find(self, names: Sequence[str]) -> list[NamedObject | None]:
        return [NamedObject(name, *self.known[name]) if name in self.known else None for name in names]

    def ahead(self, oids: Sequence[str]) -> Mapping[str, tuple[str, bytes]]:
        return {oid: self.known[oid] for oid in oids if oid in self.known}

    def forget(self) -> None:
        return None

    def write(self, kind: str, payload: bytes) -> str:
        oid = hashlib.sha1(
            b"%s %d\0" % (kind.encode(), len(payload)) + payload, usedforsecurity=False
        ).hexdigest()
        self.known[oid] = (kind, payload)
        return oid

    def tip(self, ref: str) -> str | None:
        del ref
        return None

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    def flush(self) -> None:
        return None

    def close(self) -> None:
        return None


def memory_records(objects: MemoryObjects | None = None) -> Records:
    """Records without a repository: nothing that is tried on them may need more than objects."""
    nowhere = Path("/nonexistent")
    repo = Repository(Git(nowhere, {}), nowhere, nowhere, None, "0" * 40, shallow=False)
    return Records(repo, objects or MemoryObjects())
