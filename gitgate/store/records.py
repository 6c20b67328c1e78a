"""Store: the record of a gate as commits. Each event adds exactly one file; only first parents count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..core import documents
from ..core.fold import apply, begin, fold
from ..core.headline import message
from ..core.ids import file_name, gate_id
from ..core.model import ATTACHMENTS, QUESTION_FILE, Answer, Entry, Event, Gate, Opened
from ..errors import BrokenRecord
from . import objects as raw
from .objects import BLOB, COMMIT, FOLDER, REGULAR, TREE, Objects, TreeEntry
from .repository import Repository

MOST_EVENTS = 2000


@dataclass(frozen=True)
class Signature:
    """Whose name stands on a commit, and when."""

    who: str
    at: int
    sign: bool = False


class Records:
    def __init__(self, repo: Repository, objects: Objects) -> None:
        self.repo = repo
        self.objects = objects
        self.width = len(repo.zero) // 2

    # reading

    def load(self, gate: str, tip: str) -> Gate:
        """The gate whose record ends at `tip`."""
        return fold(gate, self.entries(gate, tip))

    def entries(self, gate: str, tip: str) -> list[Entry]:
        """The record's events along first parents, oldest first, each checked to add one file and change nothing."""
        chain = self.chain(gate, tip)
        found: list[Entry] = []
        before: dict[bytes, TreeEntry] = {}
        for oid, commit in chain:
            tree = self.tree(commit.tree)
            found.append(
                self.entry(gate, oid, commit, before, tree) if found else self.first(gate, oid, tree)
            )
            before = tree
        return found

    def chain(self, gate: str, tip: str) -> list[tuple[str, raw.Commit]]:
        chain: list[tuple[str, raw.Commit]] = []
        oid: str | None = tip
        while oid is not None:
            if len(chain) >= MOST_EVENTS:
                raise BrokenRecord(f"gate {gate}: the record has more than {MOST_EVENTS} events")
            kind, payload = self.objects.read(oid)
            if kind != COMMIT:
                raise BrokenRecord(f"gate {gate}: {oid[:12]} is a {kind}, not a commit")
            commit = raw.parse_commit(payload)
            chain.append((oid, commit))
            oid = commit.parents[0] if commit.parents else None
        chain.reverse()
        return chain

    def first(self, gate: str, oid: str, tree: Mapping[bytes, TreeEntry]) -> Entry:
        strange = [name for name in tree if name not in (QUESTION_FILE.encode(), ATTACHMENTS.encode())]
        question = tree.get(QUESTION_FILE.encode())
        if strange or question is None or question.mode != REGULAR:
            raise BrokenRecord(
                f"gate {gate}: the first commit must hold {QUESTION_FILE} and attachments only"
            )
        data = self.blob(question.oid)
        if gate_id(data) != gate:
            raise BrokenRecord(f"gate {gate}: its question was rewritten; it belongs to gate {gate_id(data)}")
        return Entry(oid, "opened", documents.parse(None, data, f"{gate}:{QUESTION_FILE}"), (), QUESTION_FILE)

    def entry(
        self,
        gate: str,
        oid: str,
        commit: raw.Commit,
        before: Mapping[bytes, TreeEntry],
        after: Mapping[bytes, TreeEntry],
    ) -> Entry:
        folder, name, blob = self.addition(gate, oid, before, after)
        path = f"{folder}/{name}"
        event = documents.parse(folder, self.blob(blob), f"{gate}:{path}")
        return Entry(oid, documents.BY_FOLDER[folder].name, event, commit.parents, path)

    def addition(
        self, gate: str, oid: str, before: Mapping[bytes, TreeEntry], after: Mapping[bytes, TreeEntry]
    ) -> tuple[str, str, str]:
        """The one file that this commit adds."""
        wrong = BrokenRecord(f"gate {gate}: commit {oid[:12]} does more than add one event file")
        changed = [name for name in after if before.get(name) != after[name]]
        if len(changed) != 1 or any(name not in after for name in before):
            raise wrong
        folder = changed[0]
        if after[folder].mode != FOLDER or folder.decode("utf-8", "replace") not in documents.BY_FOLDER:
            raise wrong
        old = self.tree(before[folder].oid) if folder in before else {}
        new = self.tree(after[folder].oid)
        added = [name for name in new if old.get(name) != new[name]]
        if len(added) != 1 or added[0] in old or any(name not in new for name in old):
            raise wrong
        if new[added[0]].mode != REGULAR:
            raise wrong
        return folder.decode(), added[0].decode("utf-8", "replace"), new[added[0]].oid

    def tree(self, oid: str) -> dict[bytes, TreeEntry]:
        kind, payload = self.objects.read(oid)
        if kind != TREE:
            raise BrokenRecord(f"{oid[:12]} is a {kind}, not a tree")
        return {entry.name: entry for entry in raw.parse_tree(payload, self.width)}

    def blob(self, oid: str) -> bytes:
        kind, payload = self.objects.read(oid)
        if kind != BLOB:
            raise BrokenRecord(f"{oid[:12]} is a {kind}, not a file")
        return payload

    def commit(self, oid: str) -> raw.Commit:
        return raw.parse_commit(self.objects.read(oid)[1])

    def attachment(self, gate: Gate, name: str) -> bytes:
        oid = self.commit(gate.history[0].commit).tree
        parts = [ATTACHMENTS, *name.split("/")]
        for part in parts[:-1]:
            oid = self.tree(oid)[part.encode()].oid
        return self.blob(self.tree(oid)[parts[-1].encode()].oid)

    # writing: objects only; moving the ref is the caller's last step

    def write_opened(self, opened: Opened, attachments: Mapping[str, bytes], by: Signature) -> Gate:
        data = documents.dump(opened)
        gate = gate_id(data)
        documents.parse(None, data, QUESTION_FILE)
        files = {QUESTION_FILE: data, **{f"{ATTACHMENTS}/{name}": body for name, body in attachments.items()}}
        tree = self.write_files(files)
        folded = begin(gate, Entry("", "opened", opened, (), QUESTION_FILE), opened)
        oid = self.write_commit(tree, (), by, message("opened", opened, folded))
        return begin(gate, Entry(oid, "opened", opened, (), QUESTION_FILE), opened)

    def write_event(
        self, gate: Gate, name: str, event: Event, by: Signature, *, original: str | None = None
    ) -> Gate:
        """The gate with one more event. The table decides first: an event that does not fit writes nothing."""
        data = documents.dump(event)
        folder = documents.FOLDER_OF[name]
        path = f"{folder}/{file_name(data)}.yaml"
        parents = (gate.tip, original) if original else (gate.tip,)
        after = apply(gate, Entry("", name, event, parents, path))
        tree = self.with_file(self.commit(gate.tip).tree, path, data)
        oid = self.write_commit(tree, parents, by, message(after.history[-1].name, event, after))
        return apply(gate, Entry(oid, name, event, parents, path))

    def repeat(self, gate: Gate, entry: Entry, by: Signature, original: str) -> Gate:
        """Record again, on top of a gate that moved, what somebody said: the same file, the original as second parent."""
        again = Entry("", entry.name, entry.event, (gate.tip, original), entry.path)
        name = documents.BY_FOLDER[entry.path.partition("/")[0]].name
        after = apply(gate, Entry("", name, entry.event, again.parents, entry.path))
        tree = self.with_file(self.commit(gate.tip).tree, entry.path, self.file_of(entry))
        oid = self.write_commit(tree, again.parents, by, message(after.history[-1].name, entry.event, after))
        return apply(gate, Entry(oid, name, entry.event, again.parents, entry.path))

    def file_of(self, entry: Entry) -> bytes:
        folder, _, name = entry.path.partition("/")
        listed = self.tree(self.tree(self.commit(entry.commit).tree)[folder.encode()].oid)
        return self.blob(listed[name.encode()].oid)

    def with_file(self, tree: str, path: str, data: bytes) -> str:
        """The tree with one more file in one folder."""
        folder, _, name = path.partition("/")
        top = self.tree(tree)
        inner = dict(self.tree(top[folder.encode()].oid)) if folder.encode() in top else {}
        inner[name.encode()] = TreeEntry(REGULAR, name.encode(), self.objects.write(BLOB, data))
        top[folder.encode()] = TreeEntry(FOLDER, folder.encode(), self.write_tree(inner.values()))
        return self.write_tree(top.values())

    def write_files(self, files: Mapping[str, bytes]) -> str:
        """A tree of files given by path."""
        folders: dict[str, dict[str, bytes]] = {}
        entries: list[TreeEntry] = []
        for path, data in files.items():
            folder, slash, rest = path.partition("/")
            if slash:
                folders.setdefault(folder, {})[rest] = data
            else:
                entries.append(TreeEntry(REGULAR, path.encode(), self.objects.write(BLOB, data)))
        entries += [
            TreeEntry(FOLDER, name.encode(), self.write_files(inner)) for name, inner in folders.items()
        ]
        return self.write_tree(entries)

    def write_tree(self, entries: Iterable[TreeEntry]) -> str:
        return self.objects.write(TREE, raw.dump_tree(entries))

    def write_commit(self, tree: str, parents: Sequence[str], by: Signature, message: str) -> str:
        if by.sign:
            return self.sign_commit(tree, parents, by, message)
        return self.objects.write(COMMIT, raw.dump_commit(tree, parents, by.who, by.at, message))

    def sign_commit(self, tree: str, parents: Sequence[str], by: Signature, message: str) -> str:
        """Through git itself, which knows the person's key and how to ask for it."""
        name, _, email = by.who.rpartition(" <")
        email = email.removesuffix(">")
        person = {"NAME": name, "EMAIL": email, "DATE": f"{by.at} +0000"}
        env = {f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in person.items()}
        named = [part for parent in parents for part in ("-p", parent)]
        return self.repo.git.text("commit-tree", "-S", tree, *named, input=message.encode(), env=env)


def answers_of(gate: Gate) -> list[Answer]:
    return [counted.answer for counted in (*gate.votes, *gate.late)]
