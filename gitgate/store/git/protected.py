"""Store: a file as the protected branch has it. Which branch that is, is found by the whole names of refs."""

from __future__ import annotations

from collections.abc import Sequence

from ...document import dataclass
from ...errors import Failure
from .canonical import OID
from .objects import BLOB, Objects
from .refs import Refs

# No file that a project is configured by is larger.
MOST_FILE = 1 << 20


@dataclass(frozen=True)
class Protected:
    """File as the protected branch has it, with the branch and path it was read from, and the branch's commit."""

    data: bytes
    source: str
    commit: str | None = None


def read_protected(refs: Refs, objects: Objects, path: str, names: Sequence[str]) -> Protected | None:
    """Return the file on the first of these refs, or commits, that is there; None where it has no such file, or
    none is there.
    """
    for name in names:
        oid = id_of(refs, name)
        if oid is None:
            continue
        commit, file = objects.find([f"{oid}^{{commit}}", f"{oid}:{path}"])
        if commit is None:
            continue
        if file is None or file.kind != BLOB:
            return None
        if len(file.payload) > MOST_FILE:
            raise Failure(f"{path} on {name} is larger than {MOST_FILE} bytes", hint="make it smaller")
        return Protected(file.payload, f"{name.removeprefix('refs/')}:{path}", commit.oid)
    return None


def protected_tip(refs: Refs, objects: Objects, names: Sequence[str]) -> str | None:
    """Return the commit that the first of these refs that is there leads to."""
    return find_protected(refs, objects, names)[1] or None


def find_protected(refs: Refs, objects: Objects, names: Sequence[str]) -> tuple[str, str]:
    """Return the first of these refs that is there, with the commit that it leads to; nothing where none is."""
    for name in names:
        oid = id_of(refs, name)
        commit = None if oid is None else objects.find([f"{oid}^{{commit}}"])[0]
        if commit is not None:
            return name, commit.oid
    return "", ""


def id_of(refs: Refs, name: str) -> str | None:
    """Return the id that a full id, or the ref of this very name, stands for."""
    return name if OID.fullmatch(name) else refs.get(name)
