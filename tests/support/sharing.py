"""Test bed: a server, two people's clones of it, and records to move between them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from gitgate.model import gate_id
from gitgate.store.records.archive import LATE, gate_folder, shelves
from gitgate.store.remote import RefFate, RefMove
from support.testbed.repositories import Clone

OPEN = "refs/hitl/open/"
NOBODY = "1" * 40


def name(number: int) -> str:
    return gate_id(b"%d" % number)


def record(clone: Clone, *words: str) -> str:
    """A record of one event for each word, written as objects only; its tip."""
    tip = ""
    tree = clone.git("hash-object", "-t", "tree", "-w", "--stdin")
    for word in words:
        parents = ("-p", tip) if tip else ()
        tip = clone.git("commit-tree", *parents, "-m", word, tree)
    return tip


def opening(clone: Clone, number: int, *words: str) -> RefMove:
    return RefMove(f"{OPEN}{name(number)}", record(clone, *(words or (f"gate {number}",))), None)


def late_files(clone: Clone, gate: str) -> dict[str, str]:
    """What reached this gate after it was archived, by file name."""
    folds = [f"{shelf.fold}:{gate_folder(gate)}" for shelf in shelves(clone.repository)]
    holding = [fold for fold in folds if LATE in clone.git("ls-tree", "--name-only", fold).split()]
    return {
        name: clone.git("cat-file", "blob", f"{fold}/{LATE}/{name}")
        for fold in holding
        for name in clone.git("ls-tree", "--name-only", f"{fold}/{LATE}").split()
    }


def reasons(fates: list[RefFate]) -> list[str]:
    return [fate.reason for fate in fates]


@dataclass(frozen=True)
class Place:
    """A server and two people's clones of it."""

    server: Clone
    url: str
    ann: Clone
    bob: Clone

    def tracked(self, clone: Clone) -> dict[str, str]:
        base = "refs/gitgate/origin/"
        return {ref.removeprefix(base): oid for ref, oid in clone.refs(base).items()}


def make_place(server: Clone, clone_of: Callable[..., Clone], url: str) -> Place:
    ann, bob = clone_of(server, "ann"), clone_of(server, "bob")
    for clone in (ann, bob):
        clone.git("remote", "set-url", "origin", url)
    return Place(server, url, ann, bob)


def hook(server: Clone, which: str, script: str) -> None:
    server.write(f"hooks/{which}", f"#!/bin/sh\n{script}\n", executable=True)


def open_gates(clone: Clone, numbers: Iterable[int], *answers: str) -> dict[str, str]:
    """Open gates with a question and these answers, written by one git process; their tips by id."""
    stream: list[str] = []
    for number in numbers:
        files = [("question.yaml", f"hitl: 1\ntitle: gate {number}\n")]
        files += [(f"answers/{answer}.yaml", f"note: {answer}\n") for answer in answers]
        for path, text in files:
            stream.append(f"commit {OPEN}{name(number)}\ncommitter A <a@example.org> 0 +0000\n")
            stream.append(f"data {len(path)}\n{path}\nM 100644 inline {path}\ndata {len(text)}\n{text}\n")
    clone.git("fast-import", "--quiet", "--force", input="".join(stream))
    tips = clone.refs(OPEN)
    return {name(number): tips[OPEN + name(number)] for number in numbers}


def answered(clone: Clone, gate: str, tip: str, answer: str) -> str:
    """One more answer on a record, its ref moved; the new tip."""
    clone.git("update-ref", OPEN + gate, tip)
    text = f"note: {answer}\n"
    path = f"answers/{answer}.yaml"
    stream = (
        f"commit {OPEN}{gate}\ncommitter A <a@example.org> 0 +0000\ndata {len(path)}\n{path}\n"
        f"from {tip}\nM 100644 inline {path}\ndata {len(text)}\n{text}\n"
    )
    clone.git("fast-import", "--quiet", "--force", input=stream)
    return clone.git("rev-parse", OPEN + gate)


CLOSER = """
import os, sys
from pathlib import Path
from gitgate.store.records.closing import Closed, fold
from gitgate.store.records import Signature
from gitgate.store.git import discover
path, remote, *pairs = sys.argv[1:]
gates = [Closed(*pair.split("="), "2026-01") for pair in pairs]
by = Signature("Ada <ada@example.org>", 1767323045)
done = fold(discover(Path(path), os.environ), gates, by=by, remote=remote or None)
assert len(done.gates) == len(gates), done
"""


def start_closers(places: list[Path], tips: dict[str, str], remote: str) -> None:
    """One process for each place, all at once, each with its own share of the gates."""
    shares = [list(tips.items())[n :: len(places)] for n in range(len(places))]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", CLOSER, str(place), remote, *(f"{gate}={tip}" for gate, tip in share)],
            stderr=subprocess.PIPE,
        )
        for place, share in zip(places, shares, strict=True)
    ]
    for process in running:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said.decode()
