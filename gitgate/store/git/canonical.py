"""Store: commits and trees, read from their bytes and written. The one reader of Git's objects.

Git itself is lenient: of two `tree` lines it takes the first, and a `parent` line behind the committer is none to it. Whoever
reads otherwise sees another history than the one that git keeps, sends and cleans up. So only one form of an object is read
here, the one that git writes; written again from what was read, it is the same bytes.

`parse_commit` and `parse_tree` are for what git gate writes: records, folds, leases, journals, sessions, and the two commits of
the work. `parse_history` is for the commits of people beneath the work: of those the order of the headers counts, and no more.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from ...document import NamedTuple
from ...errors import BrokenRecord

REGULAR, FOLDER, EXECUTABLE = "100644", "40000", "100755"
LINK, SUBMODULE = "120000", "160000"
MODES = {
    FOLDER: "a folder",
    EXECUTABLE: "an executable",
    LINK: "a symbolic link",
    SUBMODULE: "a submodule",
}
FILE_MODES = {mode.encode(): mode for mode in (REGULAR, *MODES)}
OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
HEX = re.compile(rb"[0-9a-f]+")
# As `git fsck --strict` wants it. A date of twelve digits is thirty thousand years away; longer ones overflow somewhere.
PERSON = re.compile(rb"[^<>\n\0]* <[^<>\n\0]*> (?:0|[1-9][0-9]{0,11}) [+-][0-9]{4}")
EARLIER = rb"[^<>\n\0]+ (?:0|[1-9][0-9]{0,11}) [+-][0-9]{4}"
FIRST = (b"tree ", b"parent ", b"author ", b"committer ")
# All that git adds to a commit that git gate has it write, in this order and each once: `commit-tree -S` signs, and names another
# encoding where one is configured. A `mergetag` stands in merges of tags alone, and those are people's.
KNOWN = (b"encoding", b"gpgsig", b"gpgsig-sha256")
ENCODING = rb"[!-~]+"
NO_ADDRESS = "nobody@gitgate.invalid"
LONGEST_NAME = 4095
# macOS does not see these in a name; git takes one that is malformed for the end of it.
UNSEEN = "[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]"
NONE = "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
MALFORMED = f"[\udc80-\udcff{NONE}]"
PARTING = re.compile(rb"[/\\]")
GIT_FOLDER = frozenset((b".git", b"git~1"))


class NotCanonical(BrokenRecord):
    """Error of an object that is not in the one form that is read. Its words leave out which object it is."""


class TreeEntry(NamedTuple):
    mode: str
    name: bytes
    oid: str


class Commit(NamedTuple):
    """Commit as read. `extra`: the header lines behind the committer; `rest`: what follows the headers, with the
    empty line.
    """

    tree: str
    parents: tuple[str, ...]
    author: bytes
    committer: bytes
    extra: tuple[bytes, ...]
    rest: bytes

    @property
    def body(self) -> bytes:
        """Message as it is stored."""
        return self.rest[1:]

    @property
    def message(self) -> str:
        return self.rest[1:].decode("utf-8", "replace")

    @property
    def signed(self) -> bool:
        return any(line.startswith(b"gpgsig") for line in self.extra)

    @property
    def encoding(self) -> bytes:
        """Encoding in which git reads the message; empty where none is named, which is UTF-8."""
        return next((line[9:] for line in self.extra if line.startswith(b"encoding ")), b"")

    @property
    def has_addresses(self) -> bool:
        """True where author and committer have an address, as git wants it."""
        return b" <" in self.author and b" <" in self.committer

    @property
    def committed_at(self) -> int:
        """Time of the commit in seconds, by the committer's clock."""
        return int(self.committer.split(b" ")[-2])

    def dump(self) -> bytes:
        lines = [
            b"tree " + self.tree.encode(),
            *(b"parent " + parent.encode() for parent in self.parents),
            b"author " + self.author,
            b"committer " + self.committer,
            *self.extra,
        ]
        return b"\n".join(lines) + b"\n" + self.rest


def parse_history(payload: bytes, width: int = 20) -> Commit:
    """Read a commit of people's history: tree, parents, author and committer come first, in this order.

    Any other header may come behind them. `width` is the length of a binary object id.
    """
    head, gap, body = payload.partition(b"\n\n")
    lines = head.split(b"\n")
    if not gap and lines.pop():
        raise NotCanonical("ends within its headers")
    if b"\0" in head:
        raise NotCanonical("has a null byte in its headers")
    at = 1
    while at < len(lines) and lines[at].startswith(b"parent "):
        at += 1
    oids = [line_value(lines[:1], 0, b"tree "), *(line[7:] for line in lines[1:at])]
    author, committer = line_value(lines, at, b"author "), line_value(lines, at + 1, b"committer ")
    extra = tuple(lines[at + 2 :])
    if extra:
        check_order(extra)
    for oid in oids:
        if len(oid) != 2 * width or not HEX.fullmatch(oid):
            raise NotCanonical(f"names {shown(oid)}, which is no full object id")
    tree, *parents = (oid.decode() for oid in oids)
    return Commit(tree, tuple(parents), author, committer, extra, b"\n" + body if gap else b"")


def line_value(lines: Sequence[bytes], at: int, name: bytes) -> bytes:
    line = lines[at] if at < len(lines) else b""
    if not line.startswith(name):
        raise NotCanonical(f"has {shown(line)} where its {name.decode().strip()} has to be")
    return line[len(name) :]


def check_order(extra: Sequence[bytes]) -> None:
    """Refuse among the headers behind the committer what git would not look for there."""
    if extra[0].startswith(b" "):
        raise NotCanonical("goes on with its committer on another line")
    for line in extra:
        if line.startswith(FIRST):
            raise NotCanonical(f"has {shown(line)} behind its committer, where git reads no such line")


def parse_commit(payload: bytes, width: int = 20) -> Commit:
    """Read a commit that git gate wrote. What `git fsck --strict` calls an error is refused as well.

    Of that there is one exception, which `parse_new_commit` does not make: earlier versions wrote a name without an address.
    """
    found = parse_history(payload, width)
    for role, person in (("author", found.author), ("committer", found.committer)):
        if not PERSON.fullmatch(person) and not re.fullmatch(EARLIER, person):
            raise NotCanonical(f"has {shown(person)} as its {role}; expected NAME <ADDRESS> SECONDS ZONE")
    if found.extra:
        check_known(found.extra)
    if b"\0" in found.rest:
        raise NotCanonical("has a null byte in its message, where git stops reading")
    if not found.rest:
        raise NotCanonical("ends with its headers, without an empty line")
    return found


def is_sound_commit(payload: bytes, width: int) -> bool:
    """Return whether git gate wrote it, or could have."""
    try:
        parse_commit(payload, width)
    except NotCanonical:
        return False
    return True


def parse_new_commit(payload: bytes, width: int = 20) -> Commit:
    """Read a commit that somebody brings: one that a clone would take that has git check what it fetches."""
    found = parse_commit(payload, width)
    if not found.has_addresses:
        raise NotCanonical(f"has {shown(found.author)} as its author, without an address")
    return found


def check_known(extra: Sequence[bytes]) -> None:
    allowed = iter(KNOWN)
    for line in extra:
        if line.startswith(b" "):
            continue
        name, _, value = line.partition(b" ")
        if name not in allowed:  # what comes before the one that was found is not looked for again
            raise NotCanonical(
                f"has the header {shown(name)}; expected {', '.join(map(shown, KNOWN))}, each once"
            )
        if name == KNOWN[0] and not re.fullmatch(ENCODING, value):
            raise NotCanonical(f"names {shown(value)} as its encoding")
    if extra[0].startswith(KNOWN[0]) and extra[1:2] and extra[1].startswith(b" "):
        raise NotCanonical("goes on with its encoding on another line")


def shown(data: bytes) -> str:
    """Return bytes as an error shows them."""
    return repr(data[:60].decode("utf-8", "backslashreplace"))


def as_person(who: str) -> str:
    """Return `Name <address>` as git takes it. Agents that wait, and logins at a team's pages, have no address."""
    name, _, address = who.partition(" <")
    name, address = (re.sub(r"[<>\n\0]", "", part) for part in (name, address))
    return f"{name} <{address or NO_ADDRESS}>"


def dump_commit(tree: str, parents: Iterable[str], author: str, at: int, message: str) -> bytes:
    """Return a raw commit by `author` (`Name <email>`), who is its committer too."""
    person = f"{as_person(author)} {max(at, 0)} +0000".encode("utf-8", "replace")
    body = message.encode("utf-8", "replace").replace(b"\0", b"?")
    return Commit(tree, tuple(parents), person, person, (), b"\n" + body).dump()


# trees


def parse_tree(payload: bytes, width: int = 20) -> list[TreeEntry]:
    """Read the entries of a raw tree: in git's order, each name once, with the modes that git writes.

    `width` is the length of a binary object id.
    """
    entries: list[TreeEntry] = []
    last = b""
    files: set[bytes] = set()
    for written, name, oid in raw_entries(payload, width):
        mode = FILE_MODES.get(written)
        if mode is None:
            raise NotCanonical(f"has {shown(name)} with the mode {shown(written)}, which git does not write")
        place = name + b"/" if mode == FOLDER else name
        if place <= last:
            raise NotCanonical(out_of_order(name, entries))
        if mode == FOLDER and name in files:
            raise NotCanonical(f"has one name twice: {shown(name)}")
        refuse_name(name)
        if not any(oid):
            raise NotCanonical(f"has {shown(name)} without an object")
        files.add(name)
        entries.append(TreeEntry(mode, name, oid.hex()))
        last = place
    return entries


def parse_history_tree(payload: bytes, width: int = 20) -> list[TreeEntry]:
    """Read a tree of people's history, with the modes of old ones: git reads them, and says what is wrong with them."""
    found = raw_entries(payload, width)
    return [TreeEntry(mode.decode("ascii", "replace"), name, oid.hex()) for mode, name, oid in found]


def raw_entries(payload: bytes, width: int) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield mode, name and binary id of each entry, whatever they are."""
    start = 0
    while start < len(payload):
        space = payload.find(b" ", start)
        end = payload.find(b"\0", space)
        oid = payload[end + 1 : end + 1 + width]
        if space < 0 or end < 0 or len(oid) != width:
            raise NotCanonical("is a tree that is damaged")
        yield payload[start:space], payload[space + 1 : end], oid
        start = end + 1 + width


def out_of_order(name: bytes, before: Sequence[TreeEntry]) -> str:
    if not name or any(entry.name == name for entry in before):
        return f"has one name twice: {shown(name)}" if name else "has a name that is empty"
    return f"is a tree out of order: {shown(name)} comes too late"


def refuse_name(name: bytes) -> None:
    """Refuse a name that git would not check out, or that is git's own folder on some file system."""
    if is_plain(name):
        return
    strange = not name or b"/" in name or name in (b".", b"..") or len(name) > LONGEST_NAME
    if strange or is_git_folder(name):
        raise NotCanonical(f"has the name {shown(name)}, which no file may have")


def is_plain(name: bytes) -> bool:
    """Return whether a name needs no further checks."""
    first = name[:1]
    return (
        bool(first and name.isascii())
        and first not in b".gG"
        and not PARTING.search(name)
        and len(name) < 256
    )


def is_git_folder(name: bytes) -> bool:
    """Return whether macOS or Windows would take the name for `.git`, by git's own rules."""
    text = re.split(MALFORMED, name.decode("utf-8", "surrogateescape"), maxsplit=1)[0]
    parts = (part.partition(b":")[0].rstrip(b" .") for part in name.lower().split(b"\\"))
    return re.sub(UNSEEN, "", text).lower() == ".git" or any(part in GIT_FOLDER for part in parts)


def dump_tree(entries: Iterable[TreeEntry]) -> bytes:
    """Return a raw tree, in git's own order: a folder sorts as if its name ended with a slash."""
    ordered = sorted(entries, key=lambda e: e.name + b"/" if e.mode == FOLDER else e.name)
    return b"".join(e.mode.encode() + b" " + e.name + b"\0" + bytes.fromhex(e.oid) for e in ordered)


def mode_kind(mode: str) -> str:
    return MODES.get(mode, f"mode {mode}")


def added_entry(old: bytes, new: bytes, names: Sequence[bytes], width: int = 20) -> TreeEntry | None:
    """Return the regular file that the raw tree `new` has beyond `old`, at its place in git's order.

    None where there are other differences, or a closer look is needed. `names` are those of `old`, which was read
    before and has regular files alone. Neither tree is parsed, so that it costs little however many entries there are.
    """
    size = len(new) - len(old)
    least, most = 0, len(old)
    while least < most:  # how much of their beginnings is the same
        middle = (least + most + 1) // 2
        if old.startswith(memoryview(new)[:middle]):
            least = middle
        else:
            most = middle - 1
    mark = REGULAR.encode() + b" "
    # The one after it may begin with the same letters, so that they differ only somewhat later than where it stands.
    start = new.rfind(mark, max(0, least - size), least + len(mark))
    if size <= len(mark) + width + 1 or start < 0:
        return None
    name, null, oid = new[start + len(mark) : start + size].partition(b"\0")
    place = bisect_left(names, name)
    # An entry may hold bytes that look like the beginning of another: where the new one has to begin is reckoned.
    begins = sum(map(len, names[:place])) + place * (len(mark) + 1 + width)
    whole = len(oid) == width and old[:start] == new[:start] and old[start:] == new[start + size :]
    fits = whole and null and start == begins and names[place : place + 1] != [name] and any(oid)
    return TreeEntry(REGULAR, name, oid.hex()) if fits and is_plain(name) else None


def with_entry(payload: bytes, entry: TreeEntry, width: int = 20) -> bytes:
    """Return a raw tree of files with one more, at its place in git's order."""
    later = (at for at, head in heads(payload, width) if head.partition(b" ")[2] > entry.name)
    start = next(later, len(payload))
    added = entry.mode.encode() + b" " + entry.name + b"\0" + bytes.fromhex(entry.oid)
    return payload[:start] + added + payload[start:]


def entry_named(payload: bytes, name: bytes, width: int = 20) -> TreeEntry | None:
    """Return the regular file of this name in a raw tree; None where there is none."""
    wanted = REGULAR.encode() + b" " + name
    start = next((at + len(head) + 1 for at, head in heads(payload, width) if head == wanted), 0)
    return TreeEntry(REGULAR, name, payload[start : start + width].hex()) if start else None


def heads(payload: bytes, width: int) -> Iterator[tuple[int, bytes]]:
    """Yield the entries of a raw tree without their ids: where each begins, its mode and name."""
    start = 0
    while start < len(payload):
        end = payload.find(b"\0", start)
        if end < 0:
            raise NotCanonical("is a tree that is damaged")
        yield start, payload[start:end]
        start = end + 1 + width
