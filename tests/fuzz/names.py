"""Fuzz: our reading of refs beside git's own. `python -m tests.fuzz.names --runs N` looks for N names in the mutated files of small repositories.

Ours may leave whatever it likes to git. Where it says itself that a ref has an id, or is missing, `git show-ref` says the same: of the files
of loose refs and of `HEAD`, of packed refs, and of names. Whether the object is there is none of its business: each that is named here is.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gitgate.store.git import discover
from gitgate.store.git.refs import HEAD, PACKED_HEAD, PLAIN, Refs

Dice = random.Random
PARTS = (
    *("heads", "tags", "remotes", "origin", "hitl", "open", "archive", "2026-11", "refs", "HEAD", "main"),
    *(
        "a",
        "b",
        "A",
        "a.b",
        "+x",
        "%41",
        "-",
        "-x",
        "_",
        "x-",
        "0" * 40,
        "stash",
        "worktree",
        "bisect",
        "rewritten",
    ),
    *(
        "a.lock",
        "lock",
        ".a",
        "a.",
        "a..b",
        "@",
        "@{",
        "a@{b",
        "a~",
        "a^",
        "a:",
        "a?",
        "a*",
        "a[",
        "a\\",
        "a b",
    ),
    *("é", "a\u2028", "a\x7f", "a\t", "", ".", "..", "a.lock.b", "a.lockb", "locked", "\udc80"),
)
HONEST = (
    "refs/heads/main",
    "refs/hitl/open/abcd",
    "refs/remotes/origin/HEAD",
    "refs/tags/a",
    "refs/heads/a/b",
)
LIKES = (
    "refs/tags/refs/heads/main",
    "refs/heads/refs/heads/main",
    "refs/heads/refs/hitl/open/abcd",
    "refs/tags/HEAD",
)
FOLDERS = ("refs/hitl/", "refs/hitl/open/", "refs/heads/", "refs/tags/refs/", "refs/a/")
PROBES = 40


@dataclass
class Figures:
    """How many names were looked for, for how many ours gave the answer itself, and what came of it."""

    made: Counter[str] = field(default_factory=Counter)
    taken: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def text(self) -> str:
        lines = [
            f"{kind:<8}{self.made[kind]:>8,} asked, {self.taken[kind]:>7,} answered" for kind in self.made
        ]
        return "\n".join([*lines, f"{self.seconds:.1f} s", *self.found[:20]]) + "\n"


class Bench:
    """A repository whose files are written anew each time."""

    def __init__(self, folder: Path) -> None:
        self.place = folder / "refs.git"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C",
            **{f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }
        subprocess.run(["git", "init", "-q", "--bare", str(self.place)], check=True, env=self.env)
        tree = self.said("hash-object", "-t", "tree", "-w", "--stdin").strip()
        self.oids = [self.said("commit-tree", tree, "-m", f"{number}").strip() for number in range(4)]
        self.repo = discover(self.place, self.env)
        self.refs = Refs(self.repo)

    def run(self, *args: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["git", "-C", str(self.place), *args], input=b"", capture_output=True, env=self.env
        )

    def said(self, *args: str) -> str:
        return self.run(*args).stdout.decode("utf-8", "surrogateescape")

    def clear(self) -> None:
        """No refs at all; `HEAD` on a branch without commits."""
        shutil.rmtree(self.place / "refs")
        for folder in ("heads", "tags"):
            (self.place / "refs" / folder).mkdir(parents=True)
        for name in ("packed-refs", HEAD):
            (self.place / name).unlink(missing_ok=True)
        (self.place / HEAD).write_text("ref: refs/heads/main\n")

    def write(self, name: str, data: bytes) -> None:
        """A loose ref's file, where the system takes such a name and no other is in the way."""
        try:
            place = self.place / name
            if place.resolve().is_relative_to(self.place):
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
        except (OSError, ValueError):
            return

    def known(self) -> dict[str, str] | None:
        """Every ref as git lists it, with `HEAD`; None where it refuses."""
        done = self.run("show-ref", "--head")
        if done.returncode > 1:
            return None
        lines = done.stdout.decode("utf-8", "surrogateescape").split("\n")
        return {name: oid for oid, _, name in (line.partition(" ") for line in lines if line)}

    def exact(self, name: str) -> str:
        """What git says of one ref alone; empty where it has none."""
        return self.said("show-ref", "--verify", "--hash", "--", name).strip()


# what is made


def made_name(dice: Dice) -> str:
    if dice.randrange(3) == 0:
        name = dice.choice((*HONEST, *LIKES))
    else:
        name = "/".join(["refs", *(dice.choice(PARTS) for _ in range(dice.choice((1, 2, 2, 3, 4))))])
    if dice.randrange(4) == 0:
        at = dice.randrange(len(name) + 1)
        name = (
            name[:at]
            + dice.choice(("", "/", ".", "..", ".lock", "@{", " ", "\x01", "^", "refs/"))
            + name[at + dice.randrange(3) :]
        )
    return name.replace("\0", "").replace("\n", "")


def honest_name(dice: Dice) -> str:
    return (
        dice.choice((*HONEST, *LIKES))
        if dice.randrange(2)
        else "refs/" + "/".join(dice.choices(PARTS[:18], k=2))
    )


def made_loose(bench: Bench, dice: Dice) -> bytes:
    """Mostly an id and a newline; also what looks like it."""
    oid = dice.choice(bench.oids)
    if dice.randrange(3):
        return f"{oid}\n".encode()
    return dice.choice(
        (
            *(
                oid,
                f"{oid}\r\n",
                f"{oid} \n",
                f" {oid}\n",
                f"{oid}\n\n",
                f"{oid}x\n",
                f"{oid[:-1]}\n",
                oid.upper() + "\n",
            ),
            *(
                f"{oid}\t{oid}\n",
                f"{oid}\nrubbish",
                "0" * 40 + "\n",
                "",
                "\n",
                "\0" * 41,
                f"{oid}{oid[:24]}\n",
            ),
            *(f"ref: {honest_name(dice)}\n" for _ in range(4)),
            *(
                f"ref:{honest_name(dice)}\n",
                f"ref: {made_name(dice)}\n",
                f"ref: {honest_name(dice)}",
                f"ref:  {honest_name(dice)} \n",
            ),
            *(
                "ref: HEAD\n",
                "ref: refs/\n",
                "ref: ../HEAD\n",
                "ref: refs/../HEAD\n",
                "ref: refs/heads/main\nx\n",
            ),
        )
    ).encode("utf-8", "surrogateescape")


def honest_lines(bench: Bench, dice: Dice) -> list[bytes]:
    names = sorted({os.fsencode(honest_name(dice)) for _ in range(dice.randrange(1, 9))})
    return [dice.choice(bench.oids).encode() + b" " + name + b"\n" for name in names]


def made_packed(bench: Bench, dice: Dice) -> bytes:
    """As git writes it; and with lines moved, doubled, cut, and others put in."""
    lines = honest_lines(bench, dice)
    oid = dice.choice(bench.oids).encode()
    odd = (
        *(b"^" + oid + b"\n", b"^" + oid[:-1] + b"\n", b"\n", b"# words\n", b"rubbish\n", oid + b"\n"),
        *(oid + b"  refs/heads/main\n", oid + b"\trefs/heads/main\n", oid.upper() + b" refs/heads/main\n"),
        *(oid + b" refs/heads/main\r\n", oid + b" refs/heads/main \n", b"0" * 40 + b" refs/heads/main\n"),
        *(oid + b" HEAD\n", oid + b" refs/heads/../x\n", oid + b" ../x\n", oid[:39] + b" refs/heads/main\n"),
        oid + b" " + os.fsencode(made_name(dice)) + b"\n",
        PACKED_HEAD,
    )
    for _ in range(dice.choice((0, 0, 1, 1, 2))):
        way, at = dice.randrange(5), dice.randrange(len(lines))
        if way == 0:
            lines.insert(dice.randrange(len(lines) + 1), lines.pop(at))
        elif way == 1:
            lines.insert(dice.randrange(len(lines) + 1), lines[at])
        elif way == 2:
            lines[at] = dice.choice(bench.oids).encode() + lines[at][40:]
            lines.insert(at, dice.choice(lines))
        else:
            lines.insert(dice.randrange(len(lines) + 1), dice.choice(odd))
    heads = (PACKED_HEAD,) * 8 + (
        b"",
        b"# pack-refs with: peeled \n",
        b"# pack-refs with: peeled fully-peeled \n",
        PACKED_HEAD[:-2] + b"\n",
    )
    data = dice.choice(heads) + b"".join(lines)
    if dice.randrange(8) == 0:
        at = dice.randrange(len(data))
        data = (
            data[:at]
            + bytes([dice.choice(b"\0\n \r^#x")]) * dice.randrange(2)
            + data[at + dice.randrange(3) :]
        )
    return data[: dice.randrange(len(data))] if dice.randrange(20) == 0 else data


def fill(kind: str, bench: Bench, dice: Dice) -> None:
    """Write the files of one repository."""
    bench.clear()
    if kind != "loose" or dice.randrange(2):
        packed = (
            made_packed(bench, dice)
            if kind == "packed"
            else PACKED_HEAD + b"".join(honest_lines(bench, dice))
        )
        (bench.place / "packed-refs").write_bytes(packed)
    for _ in range(dice.randrange(6)):
        data = made_loose(bench, dice) if kind == "loose" else f"{dice.choice(bench.oids)}\n".encode()
        bench.write(made_name(dice) if kind == "name" else honest_name(dice), data)
    if kind == "loose" and dice.randrange(4) == 0:
        bench.write(HEAD, made_loose(bench, dice))


# what is compared


def names_of(bench: Bench, dice: Dice, known: Mapping[str, str]) -> list[str]:
    """Those that git lists, those that the files have, and others."""
    file = bench.place / "packed-refs"
    packed = file.read_bytes() if file.exists() else b""
    there = [line.partition(b" ")[2].decode("utf-8", "surrogateescape") for line in packed.split(b"\n")]
    told = {HEAD, *HONEST, *LIKES, *known, *(name for name in there if name.startswith("refs/"))}
    return [*sorted(told), *(made_name(dice) for _ in range(PROBES))][:PROBES]


def check(kind: str, bench: Bench, dice: Dice, figures: Figures) -> None:
    """Of one repository, what ours says itself of some names and folders."""
    known = bench.known()
    # With such a HEAD there is no repository to git, and ours has asked it before anything else.
    lost = known is None and bench.run("rev-parse", "--git-dir").returncode != 0
    for name in names_of(bench, dice, known or {}):
        figures.made[kind] += 1
        if name != HEAD and not name.startswith("refs/"):
            continue
        try:
            ours = bench.refs.in_files(name)
        except (OSError, ValueError):
            continue
        if ours is None:
            continue
        figures.taken[kind] += 1
        if name != HEAD and lost:
            continue
        git = known.get(name, "") if known is not None else bench.exact(name)
        if ours != git and ours != bench.exact(name):
            figures.found.append(f"{name!r}: git says {git!r}, ours {ours!r}: {files_of(bench)}")
    compare_folders(bench, known, figures)


def compare_folders(bench: Bench, known: Mapping[str, str] | None, figures: Figures) -> None:
    """What is sure to be empty is, and no name is missed that begins so."""
    for folder in FOLDERS:
        below = [name for name in known or {} if name.startswith(folder)]
        # In a file that is not sorted git finds more where it reads all of it than below a folder.
        if below and not bench.run("for-each-ref", folder).stdout:
            continue
        if bench.refs.is_empty(folder) and below:
            figures.found.append(f"{folder} is not empty: {below}: {files_of(bench)}")
        if below and not bench.refs.may_have(folder):
            figures.found.append(f"{folder} may have refs: {below}: {files_of(bench)}")
        if bench.refs.packed() is None:
            continue
        missed = {name for name in below if "/" not in name[len(folder) :]} - set(
            bench.refs.beginning(folder)
        )
        if missed:
            figures.found.append(f"below {folder} ours misses {missed}: {files_of(bench)}")


def files_of(bench: Bench) -> dict[str, bytes]:
    files = (file for file in (bench.place / "refs").rglob("*") if file.is_file())
    return {
        str(file.relative_to(bench.place)): file.read_bytes()
        for file in (bench.place / HEAD, bench.place / "packed-refs", *files)
        if file.exists()
    }


def compare_shapes(bench: Bench, dice: Dice, figures: Figures, names: int) -> None:
    """Each name that ours takes for that of a file is one that git takes for a ref's: all of them packed, and listed."""
    taken = {name for name in (made_name(dice) for _ in range(names)) if re.fullmatch(PLAIN, name)}
    figures.made["shape"] += names
    figures.taken["shape"] += len(taken)
    bench.clear()
    lines = (f"{bench.oids[0]} {name}\n" for name in sorted(taken))
    (bench.place / "packed-refs").write_bytes(PACKED_HEAD + os.fsencode("".join(lines)))
    listed = bench.said("for-each-ref", "--format=%(refname)").split("\n")
    figures.found += [f"git takes {name!r} for no ref's name" for name in sorted(taken - set(listed))]


def compare(runs: int, seed: int, folder: Path) -> Figures:
    """Look for so many names, the same ones for the same seed."""
    figures, begun = Figures(), time.monotonic()
    dice, bench = Dice(seed), Bench(folder)
    for kind, share in (("packed", 40), ("loose", 40), ("name", 10)):
        while figures.made[kind] < runs * share // 100:
            fill(kind, bench, dice)
            check(kind, bench, dice, figures)
    compare_shapes(bench, dice, figures, max(1, runs // 10))
    figures.seconds = time.monotonic() - begun
    return figures


def main(words: Iterable[str]) -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.fuzz.names", description=__doc__)
    asked.add_argument("--runs", type=int, default=10_000, help="names in all (10000)")
    asked.add_argument("--seed", type=int, default=0, help="0: another one each time")
    given = asked.parse_args(list(words))
    with tempfile.TemporaryDirectory(prefix="fuzz-names-") as folder:
        figures = compare(given.runs, given.seed or random.SystemRandom().randrange(1 << 32), Path(folder))
    sys.stdout.write(figures.text)
    return 1 if figures.found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
