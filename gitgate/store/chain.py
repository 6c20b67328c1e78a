"""Store: a record read back from its commits, and nothing believed that they do not bear out.

Only first parents count, and only what a commit adds: one regular file, in a folder of events. Whatever else a commit
does (rewrites, drops, slips in) makes the record broken, in words that say which commit and how.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ..core import documents
from ..core.fold import fold
from ..core.ids import gate_id
from ..core.model import ATTACHMENTS, QUESTION_FILE, Entry, Event, Gate
from ..errors import BadDocument, BrokenRecord
from . import objects as raw
from .objects import BLOB, COMMIT, FOLDER, REGULAR, TREE, Objects, TreeEntry

MOST_EVENTS = 2000
MOST_TREE = 1 << 19  # bytes: as many events as there may be, with long names
FILE_NAME = re.compile(rb"[0-9A-Za-z][0-9A-Za-z._-]{0,99}\.yaml")

Tree = Mapping[bytes, TreeEntry]


class Chains:
    """Reads records from a store of objects; `width` is the length of a binary object id."""

    def __init__(self, objects: Objects, width: int) -> None:
        self.objects = objects
        self.width = width

    def load(self, gate: str, tip: str) -> Gate:
        """The gate whose record ends at `tip`."""
        return fold(gate, self.entries(gate, tip))

    def entries(self, gate: str, tip: str) -> list[Entry]:
        """The record's events along first parents, oldest first, each checked to add one file and change nothing."""
        found: list[Entry] = []
        places: set[str] = set()
        before: Tree = {}
        for oid, commit in self.chain(gate, tip):
            tree = self.tree(commit.tree)
            found.append(
                self.entry(gate, oid, commit, before, tree, places) if found else self.first(gate, oid, tree)
            )
            places.add(oid)
            before = tree
        return found

    def chain(self, gate: str, tip: str) -> list[tuple[str, raw.Commit]]:
        """The commits along first parents, oldest first."""
        chain: list[tuple[str, raw.Commit]] = []
        oid: str | None = tip
        while oid is not None:
            if len(chain) >= MOST_EVENTS:
                raise BrokenRecord(f"gate {gate}: the record has more than {MOST_EVENTS} events")
            commit = self.commit(oid)
            chain.append((oid, commit))
            oid = commit.parents[0] if commit.parents else None
        chain.reverse()
        return chain

    def first(self, gate: str, oid: str, tree: Tree) -> Entry:
        question, attachments = tree.get(QUESTION_FILE.encode()), tree.get(ATTACHMENTS.encode())
        strange = set(tree) - {QUESTION_FILE.encode(), ATTACHMENTS.encode()}
        folder = attachments is None or attachments.mode == FOLDER
        if strange or question is None or question.mode != REGULAR or not folder:
            raise BrokenRecord(
                f"gate {gate}: commit {oid[:12]}: a record begins with {QUESTION_FILE} and attachments alone"
            )
        data = self.blob(question.oid)
        if gate_id(data) != gate:
            raise BrokenRecord(f"gate {gate}: its question was rewritten; it belongs to gate {gate_id(data)}")
        return Entry(oid, "opened", parsed(gate, None, data, QUESTION_FILE), (), QUESTION_FILE)

    def entry(
        self, gate: str, oid: str, commit: raw.Commit, before: Tree, after: Tree, places: Collection[str]
    ) -> Entry:
        folder, name, blob = self.addition(gate, oid, before, after)
        path = f"{folder}/{name}"
        saw: tuple[str, ...] = ()
        if len(commit.parents) > 1:
            saw = self.saw(gate, oid, commit, (folder, blob), places)
        event = parsed(gate, folder, self.blob(blob), path)
        return Entry(oid, documents.BY_FOLDER[folder].name, event, commit.parents, path, saw)

    def addition(self, gate: str, oid: str, before: Tree, after: Tree) -> tuple[str, str, str]:
        """The one file that this commit adds: its folder, its name, its blob."""
        at = f"gate {gate}: commit {oid[:12]}"
        changed = difference(at, "the record", before, after)
        folder = changed.decode("utf-8", "replace")
        if after[changed].mode != FOLDER or folder not in documents.BY_FOLDER:
            raise BrokenRecord(f"{at} adds or changes {folder!r}, which is no folder of events")
        old = self.tree(before[changed].oid) if changed in before else {}
        new = self.tree(after[changed].oid)
        added = difference(at, f"{folder}/", old, new)
        name = added.decode("utf-8", "replace")
        if added in old:
            raise BrokenRecord(f"{at} rewrites {folder}/{name}; an event is only ever added")
        if new[added].mode != REGULAR:
            raise BrokenRecord(
                f"{at} adds {folder}/{name} as {raw.kind_of(new[added].mode)}, not as a regular file"
            )
        if not FILE_NAME.fullmatch(added):
            raise BrokenRecord(f"{at} adds {folder}/{name!r}; an event's file is called something.yaml")
        return folder, name, new[added].oid

    def saw(
        self, gate: str, oid: str, commit: raw.Commit, said: tuple[str, str], places: Collection[str]
    ) -> tuple[str, ...]:
        """What the author of an event recorded again had before them. The original must say exactly the same: its
        author's signature stands on it, and would otherwise vouch for anything.
        """
        at = f"gate {gate}: commit {oid[:12]}"
        if len(commit.parents) > 2:
            raise BrokenRecord(f"{at} has {len(commit.parents)} parents; an event recorded again has two")
        original = self.commit(commit.parents[1])
        if not original.parents:
            raise BrokenRecord(f"{at} records again what no event of this gate is")
        before, after = self.tree(self.commit(original.parents[0]).tree), self.tree(original.tree)
        folder, _, blob = self.addition(gate, commit.parents[1], before, after)
        if (folder, blob) != said:
            raise BrokenRecord(
                f"{at} says something else than {commit.parents[1][:12]}, which it records again"
            )
        found: list[str] = []
        here: str | None = original.parents[0]
        while here not in places:
            if here is None or len(found) >= MOST_EVENTS:
                raise BrokenRecord(f"{at} records again what was said of another gate")
            found.append(here)
            here = next(iter(self.commit(here).parents), None)
        return tuple(found)

    # single objects

    def tree(self, oid: str) -> dict[bytes, TreeEntry]:
        kind, payload = self.objects.read(oid)
        if kind != TREE:
            raise BrokenRecord(f"{oid[:12]} is a {kind}, not a tree")
        if len(payload) > MOST_TREE:
            raise BrokenRecord(f"tree {oid[:12]} is larger than that of any record")
        entries = raw.parse_tree(payload, self.width)
        found = {entry.name: entry for entry in entries}
        if len(found) != len(entries):
            raise BrokenRecord(f"tree {oid[:12]} has one name twice")
        return found

    def blob(self, oid: str) -> bytes:
        kind, payload = self.objects.read(oid)
        if kind != BLOB:
            raise BrokenRecord(f"{oid[:12]} is a {kind}, not a file")
        return payload

    def commit(self, oid: str) -> raw.Commit:
        kind, payload = self.objects.read(oid)
        if kind != COMMIT:
            raise BrokenRecord(f"{oid[:12]} is a {kind}, not a commit")
        return raw.parse_commit(payload)

    def attachment(self, gate: Gate, name: str) -> bytes:
        """An attachment's bytes. It is a regular file in folders; a link, or nothing, is an error."""
        absent = BrokenRecord(f"gate {gate.id}: its record holds no file {ATTACHMENTS}/{name}")
        tree = self.tree(self.commit(gate.history[0].commit).tree)
        *folders, last = [ATTACHMENTS, *name.split("/")]
        for part in folders:
            inner = tree.get(part.encode())
            if inner is None or inner.mode != FOLDER:
                raise absent
            tree = self.tree(inner.oid)
        file = tree.get(last.encode())
        if file is None or file.mode != REGULAR:
            raise absent
        return self.blob(file.oid)


def difference(at: str, what: str, before: Tree, after: Tree) -> bytes:
    """The one name that was added or changed from `before` to `after`."""
    gone = [name for name in before if name not in after]
    if gone:
        raise BrokenRecord(f"{at} removes {gone[0].decode('utf-8', 'replace')!r} from {what}")
    changed = [name for name in after if before.get(name) != after[name]]
    if len(changed) != 1:
        names = ", ".join(repr(name.decode("utf-8", "replace")) for name in changed[:3])
        raise BrokenRecord(f"{at} changes {names or 'nothing'} in {what}; each event adds exactly one file")
    return changed[0]


def parsed(gate: str, folder: str | None, data: bytes, path: str) -> Event:
    try:
        return documents.parse(folder, data, f"{gate}:{path}")
    except BadDocument as wrong:
        raise BrokenRecord(f"gate {wrong.message}") from wrong
