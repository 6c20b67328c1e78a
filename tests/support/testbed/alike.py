"""Test bed: refs that are called like others. Git takes one of these where the ref itself is missing and its name is completed.

They are in the repositories of those suites that read refs most (`SUITES`), and what they are at has a policy that cannot be read: whoever
reads one for the ref itself fails. A server has only those that leave plain git's pushes alone: git cannot tell `refs/heads/main` from
`refs/tags/refs/heads/main`, nor a `HEAD` that is pushed from a tag of that name. Tests of those names plant them.
"""

from __future__ import annotations

import zlib
from hashlib import sha1
from pathlib import Path

SUITES = frozenset({"exchange", "policy", "resumption", "sharing", "store"})
MISSING = (
    *(f"refs/heads/{name}" for name in ("master", "stable", "trunk")),
    *(f"refs/remotes/origin/{name}" for name in ("HEAD", "main", "master", "stable", "trunk")),
    "refs/hitl/open/7zzzzzzzzz",
)
ON_SERVERS = tuple(f"refs/tags/{ref}" for ref in MISSING)
IN_CLONES = (
    *(f"{start}{ref}" for start in ("refs/tags/", "refs/heads/") for ref in (*MISSING, "refs/heads/main")),
)
PLANTED = frozenset({*ON_SERVERS, *IN_CLONES})
PACKED_HEAD = "# pack-refs with: peeled fully-peeled sorted \n"
WHO = "Mallory <mallory@example.org> 1767323045 +0000"


def plant(git_dir: Path, names: tuple[str, ...]) -> None:
    """Put these refs into a repository that git has just made, beside those that it packed."""
    if (
        not names
        or "objectformat" in (git_dir / "config").read_text().lower()
        or (git_dir / "reftable").exists()
    ):
        return
    blob = written(git_dir, "blob", b"policy: [nobody can read this\n")
    tree = written(git_dir, "tree", b"100644 .gitgate.yml\0" + bytes.fromhex(blob))
    words = f"tree {tree}\nauthor {WHO}\ncommitter {WHO}\n\nnot what it is called like\n"
    commit = written(git_dir, "commit", words.encode())
    file = git_dir / "packed-refs"
    lines = file.read_text(encoding="utf-8").splitlines()[1:] if file.exists() else []
    if any(line.startswith("^") for line in lines):
        raise AssertionError(f"{file}: a tag's line belongs to the one above it")
    there = {line.split(" ", 1)[1]: line for line in lines} | {name: f"{commit} {name}" for name in names}
    file.write_text(PACKED_HEAD + "".join(f"{there[name]}\n" for name in sorted(there)), encoding="utf-8")


def written(git_dir: Path, kind: str, payload: bytes) -> str:
    """Write a loose object; return its id."""
    raw = f"{kind} {len(payload)}\0".encode() + payload
    oid = sha1(raw, usedforsecurity=False).hexdigest()
    place = git_dir / "objects" / oid[:2] / oid[2:]
    if not place.exists():
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(zlib.compress(raw, 1))
    return oid
