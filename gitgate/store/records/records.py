"""Store: the record of a gate written as commits. Each event adds exactly one file; reading them back is `chain`'s."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from ...document.values import dataclass, replace
from ...errors import BrokenRecord, Failure, GitFailed, IllegalEvent
from ...model.gate import ATTACHMENTS, QUESTION_FILE, Entry, Event, Gate, Opened
from ...model.states import file_name, gate_id, traits
from ...record import events
from ...record.fold import apply, begin
from ...record.headline import message
from ...text import times
from ..git import objects as raw
from ..git.objects import BLOB, COMMIT, FOLDER, REGULAR, TREE, Objects, TreeEntry, object_id
from ..git.repository import Repository
from .chain import MOST_EVENTS, Beside, Chains, parsed

# Kept free at a record's end: talk must not use up the room of an answer and of what comes of it.
SPARE = 200


@dataclass(frozen=True)
class Signature:
    """Whose name stands on a commit, and when."""

    who: str
    at: int
    sign: bool = False


class Records(Chains):
    def __init__(self, repo: Repository, objects: Objects) -> None:
        super().__init__(objects, len(repo.zero) // 2)
        self.repo = repo

    # writing: objects only; moving the ref is the caller's last step

    def write_opened(self, opened: Opened, attachments: Mapping[str, bytes], by: Signature) -> Gate:
        data = events.dump_event(opened)
        gate = gate_id(data)
        events.parse_event(None, data, QUESTION_FILE)  # what is written must be readable
        files = {QUESTION_FILE: data, **{f"{ATTACHMENTS}/{name}": body for name, body in attachments.items()}}
        folded = begin(gate, Entry("", "opened", opened, (), QUESTION_FILE), opened)
        with self.objects.together():
            tree = self.write_files(files)
            oid = self.write_commit(tree, (), by, message("opened", opened, folded))
        return begin(gate, Entry(oid, "opened", opened, (), QUESTION_FILE), opened)

    def write_event(self, gate: Gate, name: str, event: Event, by: Signature) -> Gate:
        """The gate with one more event. The table decides first: an event that does not fit writes nothing."""
        check_room(gate, name)
        folder = events.FOLDER_OF[name]
        tree = self.commit(gate.tip).tree
        there = self.files_in(tree, folder)
        data = self.unsaid(there, event)
        event = events.parse_event(folder, data, name)  # what is written must be readable
        path = f"{folder}/{self.free_name(there, data)}"
        after = apply(gate, Entry("", name, event, (gate.tip,), path))
        with self.objects.together():
            written = self.with_file(tree, path, data)
            oid = self.write_commit(written, (gate.tip,), by, message(after.history[-1].name, event, after))
        return apply(gate, Entry(oid, name, event, (gate.tip,), path))

    def repeat(
        self, gate: Gate, entry: Entry, by: Signature, original: str, beside: Beside | None = None
    ) -> Gate:
        """Record again, on top of a gate that moved, what somebody said: the same file, the original as second parent.

        `beside` is what is known of the gate's record, where several events follow one another.
        """
        folder = entry.path.partition("/")[0]
        name = events.BY_FOLDER[folder].name
        check_room(gate, name)
        data = self.file_of(entry)
        event = parsed(gate.id, folder, data, entry.path)
        tree = self.commit(gate.tip).tree
        there = self.files_in(tree, folder)
        if self.has(there, data):
            raise IllegalEvent(f"gate {gate.id}: its record has that already")
        path = f"{folder}/{self.free_name(there, data)}"
        added = self.with_file(tree, path, data)
        parents = (gate.tip, original)
        said = (folder, self.blob_of(added, path))
        known = beside or Beside(self, gate.id, gate.history)
        saw, fork = known.saw(original, raw.Commit(added, parents, "", False), said)
        after = apply(gate, Entry("", name, event, parents, path, saw, fork))
        oid = self.write_commit(added, parents, by, message(after.history[-1].name, event, after))
        written = apply(gate, Entry(oid, name, event, parents, path, saw, fork))
        known.take(written.history[-1])
        return written

    def file_of(self, entry: Entry) -> bytes:
        return self.blob(self.blob_of(self.commit(entry.commit).tree, entry.path))

    def blob_of(self, tree: str, path: str) -> str:
        """The object that an event's file is, in the tree of a record that has it."""
        folder, _, name = path.partition("/")
        files = self.raw_tree(self.tree(tree)[folder.encode()].oid)
        found = raw.entry_named(files, name.encode(), self.width)
        if found is None:
            raise BrokenRecord(f"tree {tree[:12]} has no file {path}")
        return found.oid

    def files_in(self, tree: str, folder: str) -> bytes:
        """What a record has in one folder of events."""
        there = self.tree(tree).get(folder.encode())
        return self.raw_tree(there.oid) if there else b""

    def has(self, there: bytes, data: bytes) -> bool:
        """Whether one of these files has these bytes: they would be the same event once more."""
        return bytes.fromhex(object_id(BLOB, data, self.width)) in there

    def unsaid(self, there: bytes, event: Event) -> bytes:
        """An event's file, unlike any that is there. The same words in the same second are dated a second later."""
        data = events.dump_event(event)
        while not isinstance(event, Opened) and self.has(there, data):
            event = replace(event, at=times.format_time(times.parse_time(event.at) + 1))
            data = events.dump_event(event)
        return data

    def free_name(self, there: bytes, data: bytes) -> str:
        """What an event's file is called: the beginning of its SHA-256, and a number where another has that name."""
        stem, number = file_name(data), 1
        name = f"{stem}.yaml"
        while raw.entry_named(there, name.encode(), self.width):
            number += 1
            name = f"{stem}-{number}.yaml"
        return name

    def with_file(self, tree: str, path: str, data: bytes) -> str:
        """The tree with one more file in one folder."""
        folder, _, name = path.partition("/")
        top = self.tree(tree)
        inner = self.raw_tree(top[folder.encode()].oid) if folder.encode() in top else b""
        entry = TreeEntry(REGULAR, name.encode(), self.objects.write(BLOB, data))
        written = self.objects.write(TREE, raw.with_entry(inner, entry, self.width))
        top[folder.encode()] = TreeEntry(FOLDER, folder.encode(), written)
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
                entries.append(TreeEntry(REGULAR, os.fsencode(path), self.objects.write(BLOB, data)))
        entries += [
            TreeEntry(FOLDER, os.fsencode(name), self.write_files(inner)) for name, inner in folders.items()
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
        self.objects.flush()
        try:
            return self.repo.git.text("commit-tree", "-S", tree, *named, input=message.encode(), env=env)
        except GitFailed as failed:
            failed.message = f"it cannot be signed: {failed.stderr or failed.message}"
            failed.hint = failed.hint or (
                "name your key: git config --global gpg.format ssh && "
                "git config --global user.signingKey ~/.ssh/id_ed25519.pub"
            )
            raise


def check_room(gate: Gate, name: str) -> None:
    most = MOST_EVENTS - SPARE if traits(name).talk else MOST_EVENTS
    if len(gate.history) >= most:
        raise Failure(
            f"gate {gate.id} has {len(gate.history)} events; no more can be {name}",
            hint=f"answer it, or end it: git gate stop {gate.id} --reason R",
        )
