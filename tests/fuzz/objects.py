"""Fuzz: our reader of commits and trees beside git's own. `python -m tests.fuzz.objects --runs N` makes N objects of honest ones, and says what came of them.

Ours may refuse whatever it likes. What it takes has to be what git reads: the same tree and parents, the same people and dates, the same entries;
and nothing that `git fsck --strict` calls an error. A tag is none of ours, whatever it holds.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gitgate.errors import BrokenRecord
from gitgate.store.git import Git
from gitgate.store.git.canonical import (
    EXECUTABLE,
    FOLDER,
    LINK,
    REGULAR,
    SUBMODULE,
    Commit,
    TreeEntry,
    added_entry,
    dump_commit,
    dump_tree,
    parse_commit,
    parse_history,
    parse_history_tree,
    parse_new_commit,
    parse_tree,
)
from gitgate.store.git.objects import PlumbingObjects, digest_of, head_of, object_id
from gitgate.store.records import Chains

Dice = random.Random
# No id is both a tree's and a commit's: git, which remembers what it took an id for, would stumble over it.
TREES = ("0123456789abcdef0123456789abcdef01234567", *(f"{number:x}" * 40 for number in range(1, 8)))
OIDS = ("89abcdef0123456789abcdef0123456789abcdef", *(f"{number:x}" * 40 for number in range(8, 16)))
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
AT_ONCE = 20_000
FIELDS = 9
LACKING = "broken links"  # what they name is not here
PACKED = {"commit": 1, "tree": 2, "tag": 4}
SIGNATURE = b"gpgsig -----BEGIN SSH SIGNATURE-----\n U1NIU0lH\n \n -----END SSH SIGNATURE-----"
LINES = (
    *(b"parent " + oid.encode() for oid in OIDS[:3]),
    *(b"tree " + oid.encode() for oid in TREES[:2]),
    b"author A <a@b> 1 +0000",
    b"committer A <a@b> 1 +0000",
    b"author A <a@b>",
    b"author A<a@b> 1 +0000",
    b"author <a@b> 1 +0000",
    b"author  <> 0 -1200",
    b"committer A <a <b@c> 1 +0000",
    b"committer A <a@b> 01 +0000",
    b"committer A <a@b> 18446744073709551615 +0000",
    b"committer A <a@b> 9223372036854775808 +0000",
    b"committer A <a@b> 999999999999 +9999",
    b"committer A <a@b> 1 0000",
    b"encoding ISO-8859-1",
    b"encoding",
    b"encoding UTF-8 x",
    b"change-id zzzz",
    b"mergetag object " + b"1" * 40 + b"\n type commit\n tag x",
    SIGNATURE,
    SIGNATURE.replace(b"gpgsig", b"gpgsig-sha256"),
    b"gpgsig",
    b" more",
    b" parent " + b"9" * 40,
    b"Parent " + b"9" * 40,
    b"parent\t" + b"9" * 40,
    b"parent " + b"A" * 40,
    b"parent " + b"9" * 64,
    b"",
)
BYTES = (
    b"\0",
    b"\r",
    b"\n",
    b" ",
    b"\t",
    b"<",
    b">",
    b"\xff",
    b"\x80",
    b"0",
    b"-",
    b"+",
    b"a",
    b"A",
    b"\n\n",
    b"\x0b",
)
NAMES = (
    *(b"a", b"a.b", b"a-b", b"a0", b"ab", b"A", b"b", b"answers", b"question.yaml", b"x.yaml", b"\xff", b"a b", b"\xc3\xa9", b".git\xaa", b".gi\xef\xbf\xbft", b".git\xef\xbf\xbf", b"git~1:x"),
    *(b".git", b".GIT", b"git~1", b".git ", b".git.", b".g\xe2\x80\x8cit", b".", b"..", b"a/b", b"", b"a\\.git", b".gitignore", b"~"),
    *(b"a" * 300, b"a" * 4095, b"a" * 4096, b".git::$INDEX_ALLOCATION", b"100644 a", b"G", b"g"),
)  # fmt: skip
MODES = (REGULAR, FOLDER, EXECUTABLE, LINK, SUBMODULE)
ODD_MODES = (
    b"100664",
    b"0100644",
    b"040000",
    b"100600",
    b"40755",
    b"1",
    b"",
    b"100644 ",
    b"160001",
    b"120777",
    b"+40000",
)


@dataclass
class Figures:
    """How many were made, how many ours takes, by kind; and what was found."""

    made: Counter[str] = field(default_factory=Counter)
    taken: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def text(self) -> str:
        lines = [f"{kind:<8}{self.made[kind]:>8,} made, {self.taken[kind]:>7,} taken" for kind in self.made]
        return "\n".join([*lines, f"{self.seconds:.1f} s", *self.found[:20]]) + "\n"


# what is made


def honest_commit(dice: Dice) -> bytes:
    parents = [dice.choice(OIDS) for _ in range(dice.choice((0, 1, 1, 2, 3)))]
    name = dice.choice(("Ada", "Ada Lovelace", "", "Á é", "A, B; C.", "x" * 200, "A\tB"))
    payload = dump_commit(
        dice.choice(TREES), parents, f"{name} <a@b>", dice.choice((0, 1, 2**31, 2**33)), "words\n"
    )
    extra = dice.choice((b"", b"", b"", b"\n" + SIGNATURE, b"\nencoding UTF-8", b"\nchange-id z"))
    return payload.replace(b"\n\n", extra + b"\n\n", 1)


def changed_lines(payload: bytes, dice: Dice) -> bytes:
    """A line moved, doubled, gone, or another one put in."""
    head, gap, body = payload.partition(b"\n\n")
    lines = head.split(b"\n")
    way, at = dice.randrange(5), dice.randrange(len(lines))
    if way == 0:
        lines.insert(dice.randrange(len(lines) + 1), lines.pop(at))
    elif way == 1:
        lines.insert(dice.randrange(len(lines) + 1), lines[at])
    elif way == 2:
        lines.pop(at)
    else:
        lines.insert(at if way == 3 else len(lines), dice.choice(LINES))
    return b"\n".join(lines) + gap + body


def changed_bytes(payload: bytes, dice: Dice) -> bytes:
    """A few bytes other, gone, or more."""
    at = dice.randrange(len(payload) + 1)
    other = dice.choice(BYTES) if dice.randrange(2) else bytes([dice.randrange(256)])
    return payload[:at] + other * dice.randrange(2) + payload[at + dice.randrange(3) :]


def cut(payload: bytes, dice: Dice) -> bytes:
    return payload[: dice.randrange(len(payload) + 1)]


def made_commit(dice: Dice) -> bytes:
    payload = honest_commit(dice)
    for _ in range(dice.choice((0, 1, 1, 1, 2, 3))):
        payload = dice.choice((changed_lines, changed_lines, changed_bytes, changed_bytes, cut))(
            payload, dice
        )
    return payload


def honest_entries(dice: Dice) -> list[TreeEntry]:
    names = {f"{dice.randrange(16**4):04x}.yaml".encode() for _ in range(dice.randrange(6))} | {
        dice.choice(NAMES[:13]) for _ in range(dice.randrange(4))
    }
    return [TreeEntry(dice.choice(MODES), name, dice.choice(OIDS)) for name in names]


def changed_entries(entries: list[TreeEntry], dice: Dice) -> bytes:
    """An entry at another place, twice, with another name or mode."""
    raw = [dump_tree([entry]) for entry in entries]
    way = dice.randrange(5)
    if way == 0 and raw:
        raw.insert(dice.randrange(len(raw)), raw.pop(dice.randrange(len(raw))))
    elif way == 1 and raw:
        raw.insert(dice.randrange(len(raw) + 1), dice.choice(raw))
    elif way == 2:
        mode = dice.choice(ODD_MODES)
        raw.append(mode + b" " + dice.choice(NAMES) + b"\0" + bytes.fromhex(dice.choice(OIDS)))
    elif way == 3:
        entry = TreeEntry(dice.choice(MODES), dice.choice(NAMES), dice.choice((*OIDS, "0" * 40)))
        return dump_tree([*entries, entry])
    else:
        dice.shuffle(raw)
    return b"".join(raw)


def made_tree(dice: Dice) -> bytes:
    entries = sorted(honest_entries(dice), key=lambda e: e.name + b"/" if e.mode == FOLDER else e.name)
    payload = changed_entries(entries, dice) if dice.randrange(3) else dump_tree(entries)
    for _ in range(dice.choice((0, 0, 1, 1, 2))):
        payload = dice.choice((changed_bytes, changed_bytes, cut))(payload, dice)
    return payload


def made_tag(dice: Dice) -> bytes:
    payload = f"object {dice.choice(OIDS)}\ntype commit\ntag x\ntagger A <a@b> 1 +0000\n\nwords\n".encode()
    if dice.randrange(4) == 0:
        payload = honest_commit(dice)
    for _ in range(dice.randrange(3)):
        payload = dice.choice((changed_lines, changed_bytes, cut))(payload, dice)
    return payload


# what ours makes of them


def read_commit(payload: bytes, parse: Callable[[bytes], Commit]) -> Commit | None:
    try:
        found = parse(payload)
    except BrokenRecord:
        return None
    if found.dump() != payload:
        raise AssertionError(f"written again it is another: {payload!r}")
    return found


def read_tree(payload: bytes) -> list[TreeEntry] | None:
    try:
        found = parse_tree(payload)
    except BrokenRecord:
        return None
    if dump_tree(found) != payload:
        raise AssertionError(f"written again it is another: {payload!r}")
    return found


def check_added(dice: Dice) -> str:
    """A file found without taking trees apart is the one that is found by taking them apart."""
    names = {f"{dice.randrange(40):02x}.yaml".encode() for _ in range(dice.randrange(8))}
    oids = [os.urandom(20).hex(), "00" * 3 + "31" * 17, *OIDS]
    old = [TreeEntry(REGULAR, name, dice.choice(oids)) for name in names]
    payload = dump_tree(old)
    more = dump_tree([TreeEntry(REGULAR, f"{dice.randrange(40):02x}.yaml".encode(), dice.choice(oids))])
    at = dice.randrange(len(payload) + 1)
    new = payload[:at] + more + payload[at:]
    if dice.randrange(3) == 0:
        new = changed_bytes(new, dice)
    found = added_entry(payload, new, sorted(names))
    if found is None or (new == dump_tree([*old, found]) and found.name not in names):
        return ""
    return f"added_entry takes {new!r} for one file more than {payload!r}"


# what git makes of them


class Beside:
    """A repository with nothing in it but what is compared."""

    def __init__(self, folder: Path) -> None:
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "LC_ALL": "C",
        }
        self.place = folder / "objects.git"
        subprocess.run(["git", "init", "-q", "--bare", str(self.place)], check=True, env=self.env)

    def run(self, *args: str, input: bytes = b"", check: bool = True) -> subprocess.CompletedProcess[bytes]:
        command = ["git", "-C", str(self.place), *args]
        return subprocess.run(command, input=input, capture_output=True, check=check, env=self.env)

    def put(self, kind: str, payloads: Sequence[bytes]) -> list[str]:
        """Their ids; in a pack, whose objects git does not look into."""
        parts = [b"PACK", (2).to_bytes(4, "big"), len(payloads).to_bytes(4, "big")]
        for payload in payloads:
            parts += [head_of(PACKED[kind], len(payload)), zlib.compress(payload, 1)]
        pack = b"".join(parts)
        self.run("index-pack", "--stdin", input=pack + digest_of(pack, 20))
        return [object_id(kind, payload, 20) for payload in payloads]

    def commits(self, oids: Sequence[str]) -> dict[str, tuple[bytes, ...]]:
        """Tree, parents, people and dates of each, as git reads it; one that git cannot read at all is left out."""
        form = "--format=tformat:%H%x00%T%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00"
        asked = "".join(f"{oid}\n" for oid in oids).encode()
        said = self.run("log", "--no-walk=unsorted", "--stdin", form, input=asked, check=False)
        if said.returncode and len(oids) > 1:
            half = len(oids) // 2
            return {**self.commits(oids[:half]), **self.commits(oids[half:])}
        if said.returncode:
            return {}
        parts = said.stdout.split(b"\0")
        rows = (parts[start : start + FIELDS] for start in range(0, len(parts) - 1, FIELDS))
        return {row[0].strip().decode(): tuple(row[1:]) for row in rows}

    def trees(self, oids: Sequence[str]) -> dict[str, list[TreeEntry]]:
        """The entries of each, as git lists them; one that git cannot read is left out."""
        empty = self.run("hash-object", "-t", "tree", "-w", "--stdin").stdout.decode().strip()
        asked = "".join(f"{empty} {oid}\n" for oid in oids).encode()
        said = self.run(
            "diff-tree", "--stdin", "--raw", "-z", "--no-renames", "--no-abbrev", input=asked, check=False
        )
        if said.returncode and len(oids) > 1:
            half = len(oids) // 2
            return {**self.trees(oids[:half]), **self.trees(oids[half:])}
        return {} if said.returncode else read_lists(said.stdout, oids)

    def errors(self) -> dict[str, str]:
        """By object, what `git fsck --strict` calls an error in it."""
        said = self.run("fsck", "--strict", "--no-dangling", "--no-progress", check=False).stderr
        found = re.findall(r"(?m)^error in \w+ ([0-9a-f]{40}): (.*)$", said.decode("utf-8", "replace"))
        return {oid: why for oid, why in found if why != LACKING}


def read_lists(out: bytes, oids: Sequence[str]) -> dict[str, list[TreeEntry]]:
    """What `git diff-tree --stdin -z` prints: for each pair the two ids, and a newline, then the entries."""
    found: dict[str, list[TreeEntry]] = {oid: [] for oid in oids}
    here = ""
    parts = iter(out.split(b"\0"))
    for part in parts:
        *_, last = part.rpartition(b"\n")
        for line in part.split(b"\n")[:-1] if b"\n" in part else ():
            here = line.split(b" ")[-1].decode()
        if last.startswith(b":"):
            _, mode, _, oid, _ = last.decode().split(" ")
            found[here].append(TreeEntry(mode.lstrip("0"), next(parts), oid))
    return found


def compare_commits(git: Beside, payloads: Sequence[bytes], figures: Figures) -> None:
    """The strict reader, and the one for people's history."""
    taken = {payload: found for payload in payloads if (found := read_commit(payload, parse_history))}
    ours = {payload for payload in taken if read_commit(payload, parse_new_commit)}
    for payload in taken:  # what earlier versions wrote has no address, and else the same form
        earlier = read_commit(payload, parse_commit)
        if (earlier is not None and earlier.has_addresses) != (payload in ours):
            figures.found.append(f"what is new and what is earlier is not told apart: {payload!r}")
    figures.taken["commit"] += len(ours)
    figures.taken["history"] += len(taken)
    oids = dict(zip(taken, git.put("commit", list(taken)), strict=True))
    told, errors = git.commits(list(oids.values())), git.errors()
    for payload, oid in oids.items():
        said, found = told.get(oid), taken[payload]
        if said is None:
            figures.found.append(f"git cannot read a commit that ours takes: {payload!r}")
        elif (said[0].decode(), tuple(said[1].decode().split())) != (found.tree, found.parents):
            figures.found.append(f"git reads {said[:2]}, ours {found.tree, found.parents}: {payload!r}")
        elif (
            payload in ours
            and is_plain(found)
            and people(found) != tuple(part.strip(BLANKS) for part in said[2:8])
        ):
            figures.found.append(f"git reads {said[2:8]}, ours {people(found)}: {payload!r}")
        elif payload in ours and oid in errors:
            figures.found.append(f"git fsck: {errors[oid]}: {payload!r}")


def is_plain(commit: Commit) -> bool:
    """Whether git shows the bytes as they are, and not read in another encoding."""
    return commit.encoding.lower() in (b"", b"utf-8")


def people(commit: Commit) -> tuple[bytes, ...]:
    """Names, addresses and dates; git shows names and addresses without blanks around them."""
    found: list[bytes] = []
    for person in (commit.author, commit.committer):
        name, _, rest = person.partition(b" <")
        address, _, when = rest.partition(b"> ")
        found += [name.strip(BLANKS), address.strip(BLANKS), when.split(b" ")[0]]
    return tuple(found)


BLANKS = b" \t\n\r\x0b\x0c"


def compare_trees(git: Beside, payloads: Sequence[bytes], figures: Figures) -> None:
    taken = {payload: found for payload in payloads if (found := read_tree(payload)) is not None}
    figures.taken["tree"] += len(taken)
    oids = dict(zip(taken, git.put("tree", list(taken)), strict=True))
    told, errors = git.trees(list(oids.values())), git.errors()
    for payload, oid in oids.items():
        if told.get(oid) != taken[payload]:
            figures.found.append(f"git lists {told.get(oid)}, ours {taken[payload]}: {payload!r}")
        elif oid in errors:
            figures.found.append(f"git fsck: {errors[oid]}: {payload!r}")
        elif parse_history_tree(payload) != taken[payload]:
            figures.found.append(f"as people's it is read otherwise: {payload!r}")


def compare_tags(git: Beside, payloads: Sequence[bytes], figures: Figures) -> None:
    """None is a commit or a tree of ours, even where it holds the bytes of one."""
    oids = git.put("tag", payloads)
    objects = PlumbingObjects(Git(git.place, git.env))
    chains = Chains(objects, 20)
    for oid in oids:
        for read in (chains.commit, chains.history, chains.tree):
            try:
                read(oid)
            except BrokenRecord:
                continue
            figures.found.append(f"a tag is taken: {oid}")
    objects.close()


MAKERS: Mapping[
    str, tuple[Callable[[Dice], bytes], Callable[[Beside, Sequence[bytes], Figures], None], int]
] = {
    "commit": (made_commit, compare_commits, 60),
    "tree": (made_tree, compare_trees, 38),
    "tag": (made_tag, compare_tags, 2),
}


def compare(runs: int, seed: int, folder: Path) -> Figures:
    """So many objects in all, the same ones for the same seed."""
    figures, begun = Figures(), time.monotonic()
    dice = Dice(seed)
    for kind, (make, check, share) in MAKERS.items():
        for number, some in enumerate(portions(max(1, runs * share // 100))):
            payloads = list(dict.fromkeys(make(dice) for _ in range(some)))
            figures.made[kind] += some
            place = folder / f"{kind}-{number}"
            place.mkdir()
            check(Beside(place), payloads, figures)
    for _ in range(runs // 4):
        if why := check_added(dice):
            figures.found.append(why)
    figures.seconds = time.monotonic() - begun
    return figures


def portions(count: int) -> Iterator[int]:
    while count > 0:
        yield min(count, AT_ONCE)
        count -= AT_ONCE


def main(words: Iterable[str]) -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.fuzz.objects", description=__doc__)
    asked.add_argument("--runs", type=int, default=10_000, help="objects in all (10000)")
    asked.add_argument("--seed", type=int, default=0, help="0: another one each time")
    given = asked.parse_args(list(words))
    with tempfile.TemporaryDirectory(prefix="fuzz-objects-") as folder:
        figures = compare(given.runs, given.seed or random.SystemRandom().randrange(1 << 32), Path(folder))
    sys.stdout.write(figures.text)
    return 1 if figures.found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
