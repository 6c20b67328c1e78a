"""Store: the record of a gate as commits, written and read back. Each event adds exactly one file.

Of what is read nothing is believed that the commits do not bear out. Only first parents count, and only what a commit adds: one
regular file, in a folder of events. Whatever else a commit does (rewrites, drops, slips in) makes the record broken, in words that
say which commit and how. Beside it are the journals of runs, and the archive of closed gates.
"""

from __future__ import annotations

import os
import re
from bisect import insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from ... import text
from ...document import dataclass, replace
from ...errors import BadDocument, BrokenRecord, Failure, GitFailed, IllegalEvent
from ...model import file_name, gate_id, traits
from ...model.gate import ATTACHMENTS, QUESTION_FILE, Entry, Event, Gate, Opened
from ...record import events, message
from ...record.events import apply, begin, fold
from ..git import Repository
from ..git import canonical as raw
from ..git.canonical import FOLDER, REGULAR, TreeEntry
from ..git.objects import BLOB, COMMIT, TREE, Objects, object_id

MOST_EVENTS = 2000
MOST_TREE = 1 << 19  # bytes: as many events as there may be, with long names
MOST_BESIDE = 2 * MOST_EVENTS
RECENT = 8
MOST_STEPS = 16
AT_ONCE = 200  # records that are read ahead together
FILE_NAME = re.compile(rb"[0-9A-Za-z][0-9A-Za-z._-]{0,99}\.yaml")

Tree = Mapping[bytes, TreeEntry]


class Chains:
    """Reader of records from a store of objects; `width` is the length of a binary object id."""

    def __init__(self, objects: Objects, width: int) -> None:
        self.objects = objects
        self.width = width
        self.recent: dict[str, bytes] = {}
        self.names: dict[str, list[bytes]] = {"": []}
        """Names in the last trees that are folders of events, by tree, in their order; no tree has none."""
        self.sound: set[str] = set()
        """The objects that were read here, each as git gate writes it now."""

    def load(self, gate: str, tip: str) -> Gate:
        """Load the gate whose record ends at `tip`."""
        return fold(gate, self.entries(gate, tip))

    def entries(self, gate: str, tip: str) -> list[Entry]:
        """Read the record's events along first parents, oldest first, each checked to add one file and change
        nothing.
        """
        found: list[Entry] = []
        beside = Beside(self, gate)
        said: dict[tuple[str, str], str] = {}
        before: Tree = {}
        for oid, commit in self.chain(gate, tip):
            tree = self.tree(commit.tree)
            found.append(
                self.entry(gate, oid, commit, before, tree, beside, said)
                if found
                else self.first(gate, oid, tree)
            )
            beside.take(found[-1])
            before = tree
        return found

    def read_ahead(self, tips: Iterable[str], steps: int = MOST_STEPS) -> None:
        """Read in advance what the records that end there are made of: all commits, then all that these name, and so
        on.

        It is a hint, and nothing is judged by it: what it leaves out, or finds unsound, is read when its turn comes.
        """
        self.objects.forget()
        wanted, seen = list(tips), set[str]()
        for _ in range(steps):
            seen.update(wanted)
            found = self.objects.ahead(wanted)
            below = dict.fromkeys(oid for one in found.values() for oid in named_in(*one, self.width))
            wanted = [oid for oid in below if oid not in seen]
            if not wanted:
                break

    def chain(self, gate: str, tip: str) -> list[tuple[str, raw.Commit]]:
        """Return the commits along first parents, oldest first."""
        chain: list[tuple[str, raw.Commit]] = []
        oid: str | None = tip
        while oid is not None:
            if len(chain) >= MOST_EVENTS:
                raise BrokenRecord(f"the record has more than {MOST_EVENTS} events", about=f"gate {gate}")
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
                f"commit {oid[:12]}: a record begins with {QUESTION_FILE} and attachments alone",
                about=f"gate {gate}",
            )
        data = self.blob(question.oid)
        if gate_id(data) != gate:
            raise BrokenRecord(
                f"its question was rewritten; it belongs to gate {gate_id(data)}", about=f"gate {gate}"
            )
        return Entry(oid, "opened", parse_recorded(gate, None, data, QUESTION_FILE), (), QUESTION_FILE)

    def entry(
        self,
        gate: str,
        oid: str,
        commit: raw.Commit,
        before: Tree,
        after: Tree,
        beside: Beside,
        said: dict[tuple[str, str], str],
    ) -> Entry:
        """Read the event of a commit. `said`: which commit recorded each file first.

        A file with the same bytes later is a copy or a replay, whoever adds it.
        """
        folder, name, blob = self.addition(gate, oid, before, after)
        path = f"{folder}/{name}"
        saw: Collection[str] = ()
        fork = ""
        if len(commit.parents) > 1:
            saw, fork = beside.saw(oid, commit.parents, (folder, blob))
        event = parse_recorded(gate, folder, self.blob(blob), path)
        first = said.setdefault((folder, blob), oid)
        repeats = first if first != oid else ""
        return Entry(oid, events.BY_FOLDER[folder].name, event, commit.parents, path, saw, fork, repeats)

    def addition(self, gate: str, oid: str, before: Tree, after: Tree) -> tuple[str, str, str]:
        """Return the one file that this commit adds: its folder, its name, its blob."""
        at = f"gate {gate}: commit {oid[:12]}"
        changed = difference(at, "the record", before, after)
        folder = changed.decode("utf-8", "replace")
        if after[changed].mode != FOLDER or folder not in events.BY_FOLDER:
            raise BrokenRecord(f"{at} adds or changes {folder!r}, which is no folder of events")
        old = before[changed].oid if changed in before else ""
        entry = self.added_file(at, folder, old, after[changed].oid)
        if entry.mode != REGULAR:
            shown = entry.name.decode("utf-8", "replace")
            raise BrokenRecord(
                f"{at} adds {folder}/{shown} as {raw.mode_kind(entry.mode)}, not as a regular file"
            )
        if not FILE_NAME.fullmatch(entry.name):
            raise BrokenRecord(
                f"{at} adds {folder}/{entry.name.decode('utf-8', 'replace')!r}; an event's file is called something.yaml"
            )
        return folder, entry.name.decode(), entry.oid

    def added_file(self, at: str, folder: str, old: str, new: str) -> TreeEntry:
        """Return the one entry that a folder of events has beyond what it had; most of a record's bytes are such
        folders.
        """
        names = self.names.get(old)
        before, after = self.raw_tree(old) if old else b"", self.raw_tree(new)
        entry = raw.added_entry(before, after, names, self.width) if names is not None else None
        if entry is not None and names is not None:
            names = [*names]
            insort(names, entry.name)
        else:
            entry, names = self.slowly_added(at, folder, before, after)
        if names is not None:
            if len(self.names) > RECENT:
                del self.names[next(name for name in self.names if name)]
            self.names[new] = names
        self.sound.add(new)
        return entry

    def slowly_added(
        self, at: str, folder: str, old: bytes, new: bytes
    ) -> tuple[TreeEntry, list[bytes] | None]:
        """Return the one entry that `new` has and `old` has not, or raise with what else changed; and all names,
        if all are files.
        """
        before, after = self.entries_of(old, at), self.entries_of(new, at)
        added = difference(at, f"{folder}/", before, after)
        if added in before:
            raise BrokenRecord(
                f"{at} rewrites {folder}/{added.decode('utf-8', 'replace')}; an event is only ever added"
            )
        return after[added], [*after] if all(entry.mode == REGULAR for entry in after.values()) else None

    # single objects

    def tree(self, oid: str) -> dict[bytes, TreeEntry]:
        found = self.entries_of(self.raw_tree(oid), f"tree {oid[:12]}")
        self.sound.add(oid)
        return found

    def raw_tree(self, oid: str) -> bytes:
        """Read a tree as it is stored. The last few are kept: what one commit made of a folder is what the next
        begins with.
        """
        if oid in self.recent:
            return self.recent[oid]
        kind, payload = self.objects.read(oid)
        if kind != TREE:
            raise BrokenRecord(f"{oid[:12]} is a {kind}, not a tree")
        if len(payload) > MOST_TREE:
            raise BrokenRecord(f"tree {oid[:12]} is larger than that of any record")
        if len(self.recent) >= RECENT:
            del self.recent[next(iter(self.recent))]
        self.recent[oid] = payload
        return payload

    def entries_of(self, payload: bytes, at: str) -> dict[bytes, TreeEntry]:
        try:
            return {entry.name: entry for entry in raw.parse_tree(payload, self.width)}
        except raw.NotCanonical as wrong:
            raise BrokenRecord(f"{at} {wrong.message}") from wrong

    def blob(self, oid: str) -> bytes:
        kind, payload = self.objects.read(oid)
        if kind != BLOB:
            raise BrokenRecord(f"{oid[:12]} is a {kind}, not a file")
        return payload

    def commit(self, oid: str) -> raw.Commit:
        """Read a commit that git gate wrote."""
        found = self.parsed(oid, raw.parse_commit)
        if found.has_addresses:
            self.sound.add(oid)
        return found

    def history(self, oid: str) -> raw.Commit:
        """Read a commit of people's history, beneath the work, or one that an agent made."""
        return self.parsed(oid, raw.parse_history)

    def parsed(self, oid: str, parse: Callable[[bytes, int], raw.Commit]) -> raw.Commit:
        kind, payload = self.objects.read(oid)
        if kind != COMMIT:
            raise BrokenRecord(f"{oid[:12]} is a {kind}, not a commit")
        try:
            return parse(payload, self.width)
        except raw.NotCanonical as wrong:
            raise BrokenRecord(f"commit {oid[:12]} {wrong.message}") from wrong

    def attachment(self, gate: Gate, name: str) -> bytes:
        """Read an attachment. It is a regular file in folders; a link, or nothing, is an error."""
        absent = BrokenRecord(f"its record holds no file {ATTACHMENTS}/{name}", about=f"gate {gate.id}")
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


@dataclass(frozen=True)
class SideLine:
    """Commits off a record, each the first parent of the next, with their places; it begins on another line or
    at `fork`.
    """

    fork: str
    places: dict[str, int]
    below: LineBefore | None


class LineBefore:
    """Commits of a line up to one of them, and of the lines that it began on: those that came before the next one."""

    def __init__(self, line: SideLine, last: int) -> None:
        self.line = line
        self.last = last

    def __contains__(self, oid: object) -> bool:
        here: LineBefore | None = self
        while here is not None:
            if here.line.places.get(oid, MOST_BESIDE) <= here.last:  # type: ignore[call-overload]
                return True
            here = here.line.below
        return False

    def __iter__(self) -> Iterator[str]:
        here: LineBefore | None = self
        while here is not None:
            yield from (oid for oid, place in here.line.places.items() if place <= here.last)
            here = here.line.below

    def __len__(self) -> int:
        count = 0
        here: LineBefore | None = self
        while here is not None:
            count, here = count + here.last + 1, here.line.below
        return count


class Beside:
    """Commits off one record from which events were recorded again there.

    Each is read once, however many events are based on it: else reading a record would take the product of its two
    sides.
    """

    def __init__(self, chains: Chains, gate: str, entries: Iterable[Entry] = ()) -> None:
        self.chains = chains
        self.gate = gate
        self.places = {entry.commit for entry in entries}
        self.lines: dict[str, LineBefore] = {}

    def take(self, entry: Entry) -> None:
        """Add one more event of the record."""
        self.places.add(entry.commit)

    def saw(self, oid: str, parents: Sequence[str], said: tuple[str, str]) -> tuple[Collection[str], str]:
        """Return the commits before an event that was recorded again, as its author had them, and where they leave the
        record.

        Only commits that this record does not have are returned. The original must say exactly what the event says:
        its author's signature is on the original, and would otherwise vouch for anything.
        """
        at = f"gate {self.gate}: commit {oid[:12]}"
        if len(parents) > 2:
            raise BrokenRecord(f"{at} has {len(parents)} parents; an event recorded again has two")
        chains = self.chains
        original = chains.commit(parents[1])
        if not original.parents:
            raise BrokenRecord(f"{at} records again what no event of this gate is")
        before, after = chains.tree(chains.commit(original.parents[0]).tree), chains.tree(original.tree)
        folder, _, blob = chains.addition(self.gate, parents[1], before, after)
        if (folder, blob) != said:
            raise BrokenRecord(f"{at} says something else than {parents[1][:12]}, which it records again")
        return self.way_back(at, original.parents[0])

    def way_back(self, at: str, start: str) -> tuple[Collection[str], str]:
        """Return the commits from there back to the record, and the commit of the record that they lead to."""
        new: list[str] = []
        here: str | None = start
        while here not in self.places and here not in self.lines:
            if here is None or len(self.lines) + len(new) >= MOST_BESIDE:
                raise BrokenRecord(f"{at} records again what was said of another gate")
            new.append(here)
            here = next(iter(self.chains.commit(here).parents), None)
        known = self.lines.get(here or "")
        if not new and known is None:
            return (), start
        line = known.line if known is not None else SideLine(here or "", {}, None)
        if new and known is not None and known.last + 1 < len(line.places):
            line = SideLine(line.fork, {}, known)
        for oid in reversed(new):
            line.places[oid] = len(line.places)
            self.lines[oid] = LineBefore(line, line.places[oid])
        return self.lines[start], line.fork


def named_in(kind: str, payload: bytes, width: int) -> list[str]:
    """Return the ids in a record's object that reading the record needs: of a commit its tree and first parent."""
    if kind == COMMIT:
        lines = payload[: 4 * width + 16].split(b"\n", 2)[:2]
        heads = (line.partition(b" ") for line in lines)
        return [oid.decode("ascii", "replace") for head, _, oid in heads if head in (b"tree", b"parent")]
    if kind != TREE:
        return []
    try:
        entries = raw.parse_tree(payload, width)
    except BrokenRecord:
        return []
    return [entry.oid for entry in entries if entry.name != ATTACHMENTS.encode()]


def difference(at: str, what: str, before: Tree, after: Tree) -> bytes:
    """Return the one name that was added or changed from `before` to `after`."""
    gone = [name for name in before if name not in after]
    if gone:
        raise BrokenRecord(f"{at} removes {gone[0].decode('utf-8', 'replace')!r} from {what}")
    changed = [name for name in after if before.get(name) != after[name]]
    if len(changed) != 1:
        names = ", ".join(repr(name.decode("utf-8", "replace")) for name in changed[:3])
        raise BrokenRecord(f"{at} changes {names or 'nothing'} in {what}; each event adds exactly one file")
    return changed[0]


def parse_recorded(gate: str, folder: str | None, data: bytes, path: str) -> Event:
    try:
        return events.parse_event(folder, data, f"{gate}:{path}")
    except BadDocument as wrong:
        raise BrokenRecord(f"gate {wrong.message}") from wrong


# Kept free at a record's end: talk must not use up the room of an answer and of what comes of it.
SPARE = 200


@dataclass(frozen=True)
class Signature:
    """Name and time on a commit."""

    who: str
    at: int
    sign: bool = False

    @property
    def author(self) -> str:
        """Name with its address, which is empty for a login that a proxy vouches for."""
        return self.who if "<" in self.who or not self.who.strip() else f"{self.who} <>"


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
        """Write one more event and return the gate with it. The table decides first: an event that does not fit
        writes nothing.
        """
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
        """Record somebody's event again, on top of a gate that moved: the same file, the original as second parent.

        `beside` is what is known of the gate's record, where several events follow one another.
        """
        folder = entry.path.partition("/")[0]
        name = events.BY_FOLDER[folder].name
        check_room(gate, name)
        data = self.file_of(entry)
        event = parse_recorded(gate.id, folder, data, entry.path)
        tree = self.commit(gate.tip).tree
        there = self.files_in(tree, folder)
        if self.has(there, data):
            raise IllegalEvent(f"gate {gate.id}: its record has that already")
        path = f"{folder}/{self.free_name(there, data)}"
        added = self.with_file(tree, path, data)
        parents = (gate.tip, original)
        said = (folder, self.blob_of(added, path))
        known = beside or Beside(self, gate.id, gate.history)
        saw, fork = known.saw(original, parents, said)
        after = apply(gate, Entry("", name, event, parents, path, saw, fork))
        oid = self.write_commit(added, parents, by, message(after.history[-1].name, event, after))
        written = apply(gate, Entry(oid, name, event, parents, path, saw, fork))
        known.take(written.history[-1])
        return written

    def file_of(self, entry: Entry) -> bytes:
        return self.blob(self.blob_of(self.commit(entry.commit).tree, entry.path))

    def blob_of(self, tree: str, path: str) -> str:
        """Return the object that an event's file is, in the tree of a record that has it."""
        folder, _, name = path.partition("/")
        files = self.raw_tree(self.tree(tree)[folder.encode()].oid)
        found = raw.entry_named(files, name.encode(), self.width)
        if found is None:
            raise BrokenRecord(f"tree {tree[:12]} has no file {path}")
        return found.oid

    def files_in(self, tree: str, folder: str) -> bytes:
        """Return the raw tree of one folder of events in a record; empty where the record has no such folder."""
        there = self.tree(tree).get(folder.encode())
        return self.raw_tree(there.oid) if there else b""

    def has(self, there: bytes, data: bytes) -> bool:
        """Return whether a file in the folder has these bytes: the event would be there twice."""
        return bytes.fromhex(object_id(BLOB, data, self.width)) in there

    def unsaid(self, there: bytes, event: Event) -> bytes:
        """Return an event's file, unlike any that is there. The same words in the same second are dated a second
        later.
        """
        data = events.dump_event(event)
        while not isinstance(event, Opened) and self.has(there, data):
            event = replace(event, at=text.format_time(text.parse_time(event.at) + 1))
            data = events.dump_event(event)
        return data

    def free_name(self, there: bytes, data: bytes) -> str:
        """Return a name for an event's file: the beginning of its SHA-256, and a number where another file has
        that name.
        """
        stem, number = file_name(data), 1
        name = f"{stem}.yaml"
        while raw.entry_named(there, name.encode(), self.width):
            number += 1
            name = f"{stem}-{number}.yaml"
        return name

    def with_file(self, tree: str, path: str, data: bytes) -> str:
        """Write the tree with one more file in one folder."""
        folder, _, name = path.partition("/")
        top = self.tree(tree)
        inner = self.raw_tree(top[folder.encode()].oid) if folder.encode() in top else b""
        entry = TreeEntry(REGULAR, name.encode(), self.objects.write(BLOB, data))
        written = self.objects.write(TREE, raw.with_entry(inner, entry, self.width))
        top[folder.encode()] = TreeEntry(FOLDER, folder.encode(), written)
        return self.write_tree(top.values())

    def write_files(self, files: Mapping[str, bytes]) -> str:
        """Write a tree of files given by path."""
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
        by = replace(by, who=raw.as_person(by.who))
        if by.sign:
            return self.sign_commit(tree, parents, by, message)
        return self.objects.write(COMMIT, raw.dump_commit(tree, parents, by.author, by.at, message))

    def sign_commit(self, tree: str, parents: Sequence[str], by: Signature, message: str) -> str:
        """Write a signed commit through git itself, which knows the person's key and how to ask for it."""
        name, _, email = by.who.rpartition(" <")
        email = email.removesuffix(">")
        person = {"NAME": name, "EMAIL": email, "DATE": f"{by.at} +0000"}
        env = {f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in person.items()}
        named = [part for parent in parents for part in ("-p", parent)]
        self.objects.flush()
        try:
            return self.repo.git.text(
                *IN_UTF8, "commit-tree", "-S", tree, *named, input=message.encode(), env=env
            )
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


NOBODY = f"gitgate <{raw.NO_ADDRESS}>"
# Else git would name the encoding that is configured, and readers take the message for another text.
IN_UTF8 = ("-c", "i18n.commitEncoding=UTF-8")
