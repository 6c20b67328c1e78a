"""Test bed: commits and trees that Git reads otherwise than whoever is lenient, and a client that writes and believes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from gitgate.store.git import Git, canonical
from gitgate.store.git.canonical import Commit, TreeEntry
from gitgate.store.records import archive
from gitgate.store.work import snapshot
from support.testbed.repositories import Clone

if TYPE_CHECKING:
    import pytest

OTHER = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
Change = Callable[[bytes], bytes]


def head_of(payload: bytes) -> tuple[list[bytes], bytes]:
    head, _, body = payload.partition(b"\n\n")
    return head.split(b"\n"), body


def joined(lines: Iterable[bytes], body: bytes) -> bytes:
    return b"\n".join(lines) + b"\n\n" + body


def behind(*before: bytes) -> Change:
    """The parents stand behind the committer, and behind these lines."""

    def change(payload: bytes) -> bytes:
        lines, body = head_of(payload)
        parents = [line for line in lines if line.startswith(b"parent ")]
        return joined([*(line for line in lines if line not in parents), *before, *parents], body)

    return change


def with_line(at: int, line: bytes) -> Change:
    """One more line, at this place among the headers."""

    def change(payload: bytes) -> bytes:
        lines, body = head_of(payload)
        place = len(lines) + 1 + at if at < 0 else at
        return joined([*lines[:place], line, *lines[place:]], body)

    return change


def with_author(author: bytes) -> Change:
    """Another author, who is the committer still."""

    def change(payload: bytes) -> bytes:
        return re.sub(rb"(?m)^author .*", lambda _: author, payload, count=1)

    return change


def without(name: bytes) -> Change:
    def change(payload: bytes) -> bytes:
        lines, body = head_of(payload)
        return joined([line for line in lines if not line.startswith(name)], body)

    return change


def in_the_message(payload: bytes) -> bytes:
    lines, body = head_of(payload)
    parents = [line for line in lines if line.startswith(b"parent ")]
    return joined([line for line in lines if line not in parents], b"\n".join(parents) + b"\n\n" + body)


def author_first(payload: bytes) -> bytes:
    lines, body = head_of(payload)
    author = next(line for line in lines if line.startswith(b"author "))
    return joined([lines[0], author, *(line for line in lines[1:] if line is not author)], body)


# What git takes for another history, or another tree, than the lines seem to tell.
HIDDEN: dict[str, Change] = {
    "parents behind the committer": behind(),
    "parents behind an unknown header": behind(b"change-id zzz"),
    "parents behind a signature": behind(b"gpgsig -----BEGIN", b" -----END"),
    "parents behind an encoding": behind(b"encoding UTF-8"),
    "parents in the message": in_the_message,
    "parents behind the author": author_first,
    "another tree behind the committer": with_line(-1, b"tree " + OTHER.encode()),
    "another tree behind the tree": with_line(1, b"tree " + OTHER.encode()),
    "another tree before the tree": with_line(0, b"tree " + OTHER.encode()),
    "a parent more behind the committer": with_line(-1, b"parent " + b"1" * 40),
}
# What `git fsck --strict` calls an error, or what git gate never writes.
UNSOUND: dict[str, Change] = {
    "no author": without(b"author "),
    "no committer": without(b"committer "),
    "two authors": with_line(-1, b"author A <a@b> 1 +0000"),
    "two committers": with_line(-1, b"committer A <a@b> 1 +0000"),
    "no address": with_author(b"author A 1 +0000"),
    "no blank before the address": with_author(b"author A<a@b> 1 +0000"),
    "an address within another": with_author(b"author A <a<b@c> 1 +0000"),
    "no date": with_author(b"author A <a@b>"),
    "a date that overflows": with_author(b"author A <a@b> 99999999999999999999 +0000"),
    "a date with a zero before it": with_author(b"author A <a@b> 01 +0000"),
    "a date before all dates": with_author(b"author A <a@b> -1 +0000"),
    "a zone of words": with_author(b"author A <a@b> 1 UTC"),
    "a null byte in a header": with_author(b"author A\0B <a@b> 1 +0000"),
    "a null byte in the message": lambda payload: payload + b"\0",
    "a carriage return on each line": lambda payload: payload.replace(b"\n", b"\r\n"),
    "a carriage return behind the tree": lambda payload: payload.replace(b"\n", b"\r\n", 1),
    "a parent that goes on": with_line(2, b" more"),
    "a committer that goes on": with_line(-1, b" more"),
    "an unknown header": with_line(-1, b"change-id zzz"),
    "a merged tag": with_line(-1, b"mergetag object " + b"1" * 40),
    "two encodings": with_line(-1, b"encoding UTF-8\nencoding latin1"),
    "an id in capitals": lambda payload: payload[:5] + payload[5:45].upper() + payload[45:],
    "an id that is too long": lambda payload: payload[:45] + b"0" * 24 + payload[45:],
}
EVERY = {**HIDDEN, **UNSOUND}
# Git itself cannot follow these, and sends none.
NOT_SENT = ("a carriage return on each line", "a carriage return behind the tree", "an id that is too long")


def planted(clone: Clone, kind: str, payload: bytes) -> str:
    """Such an object in a clone, whatever git thinks of it."""
    return clone.git("hash-object", "-t", kind, "-w", "--stdin", "--literally", input=payload)


def changed(clone: Clone, oid: str, change: Change) -> str:
    """The commit with its bytes changed."""
    payload = clone.repository.git.out("cat-file", "commit", oid)
    return planted(clone, "commit", change(payload))


def read_leniently(payload: bytes, width: int = 20) -> Commit:
    """Take each header wherever it stands, and the last tree."""
    del width
    lines, body = head_of(payload)
    tree = [line[5:].decode() for line in lines if line.startswith(b"tree ")][-1]
    parents = tuple(line[7:].decode() for line in lines if line.startswith(b"parent "))
    extra = tuple(line for line in lines if line.startswith((b"gpgsig", b"encoding ")))
    person = b"A <a@b> 1 +0000"
    return Commit(tree, parents, person, person, extra, b"\n" + body)


def read_any_tree(payload: bytes, width: int = 20) -> list[TreeEntry]:
    found, start = [], 0
    while start < len(payload):
        end = payload.index(b"\0", start)
        mode, _, name = payload[start:end].partition(b" ")
        found.append(TreeEntry(mode.decode(), name, payload[end + 1 : end + 1 + width].hex()))
        start = end + 1 + width
    return found


def write_misread(patch: pytest.MonkeyPatch, change: Change) -> None:
    """From now on this process writes such commits of its own, and believes them: somebody's own client, and not the server."""
    honest = canonical.dump_commit

    def dump(tree: str, parents: Iterable[str], author: str, at: int, message: str) -> bytes:
        return change(honest(tree, parents, author, at, message))

    def of_work(git: Git, wanted: snapshot.Wanted, tree: str, parents: Iterable[str], message: str) -> str:
        whole = git.text("rev-parse", "--verify", tree)
        payload = dump(whole, parents, "A <a@b>", wanted.at, message)
        return git.text("hash-object", "-t", "commit", "-w", "--stdin", "--literally", input=payload)

    for room in (canonical, archive):
        patch.setattr(room, "dump_commit", dump)
    patch.setattr(snapshot, "_write_commit", of_work)
    believe(patch)


def believe(patch: pytest.MonkeyPatch) -> None:
    """Read as leniently as one may."""
    patch.setattr(canonical, "parse_commit", read_leniently)
    patch.setattr(canonical, "parse_history", read_leniently)
    patch.setattr(canonical, "parse_tree", read_any_tree)
