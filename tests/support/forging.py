"""Test bed: a record in memory, and the means to write commits that nobody should."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from gitgate.errors import BrokenRecord
from gitgate.model.gate import Answer, Event, Gate, Opened
from gitgate.record import events
from gitgate.store.git.canonical import FOLDER, REGULAR, TreeEntry, dump_commit, dump_tree
from gitgate.store.git.objects import BLOB, COMMIT, TREE
from gitgate.store.records import Signature
from support.histories import ADA, EARLY, TEXT, opened
from support.testbed.memory import memory_records

BY = Signature("Tester <tester@example.org>", 1_800_000_000)
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


class Bench:
    """A gate in a store of objects, and the means to write commits that nobody should."""

    def __init__(self, asked: Opened | None = None, attachments: dict[str, bytes] | None = None) -> None:
        self.records = memory_records()
        self.objects = self.records.objects
        self.gate = self.records.write_opened(asked or opened(TEXT), attachments or {}, BY)

    def said(self, by: str = ADA, text: str = "Postgres", **changes: Any) -> Answer:
        plain = Answer(self.gate.id, {"answer": text}, "answered", EARLY, self.gate.tip, by)
        return replace(plain, **changes)

    def add(self, name: str, event: Event) -> Gate:
        self.gate = self.records.write_event(self.gate, name, event, BY)
        return self.gate

    def top(self, commit: str) -> dict[bytes, TreeEntry]:
        return dict(self.records.tree(self.records.commit(commit).tree))

    def blob(self, data: bytes) -> str:
        return self.objects.write(BLOB, data)

    def tree(self, entries: Iterable[TreeEntry]) -> str:
        return self.objects.write(TREE, dump_tree(entries))

    def folder(self, *files: tuple[str, bytes], mode: str = REGULAR) -> str:
        return self.tree(TreeEntry(mode, name.encode(), self.blob(data)) for name, data in files)

    def commit(self, entries: dict[bytes, TreeEntry], *parents: str, message: str = "x\n") -> str:
        return self.objects.write(
            COMMIT, dump_commit(self.tree(entries.values()), parents, BY.who, BY.at, message)
        )

    def with_file(self, tip: str, path: str, data: bytes, *parents: str, mode: str = REGULAR) -> str:
        """A commit that adds a file to what `tip` has; by plain hands, without asking the table."""
        folder, _, name = path.partition("/")
        entries = self.top(tip)
        inner = dict(self.records.tree(entries[folder.encode()].oid)) if folder.encode() in entries else {}
        inner[name.encode()] = TreeEntry(mode, name.encode(), self.blob(data))
        entries[folder.encode()] = TreeEntry(FOLDER, folder.encode(), self.tree(inner.values()))
        return self.commit(entries, *(parents or (tip,)))

    def refused(self, tip: str, words: str) -> None:
        with pytest.raises(BrokenRecord, match=words) as refused:
            self.records.load(self.gate.id, tip)
        assert (
            self.gate.id in refused.value.message
            or "tree" in refused.value.message
            or "object" in refused.value.message
        )


def answer_file(bench: Bench, by: str = ADA, **changes: Any) -> bytes:
    return events.dump_event(bench.said(by, **changes))
