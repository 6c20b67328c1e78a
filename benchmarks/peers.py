"""Benchmarks: `python -m benchmarks peers`: git gate beside other programs that keep questions, issues or reviews in a repository, as far as
they are on PATH. One that is not is named, with how to get it.

Each has a repository of its own with as many things. What is measured goes in turns: one command of each program after the other, so that a
busy machine troubles all alike. Times are of whole commands, as a person waits for them; with `--processor` what they keep a processor
busy for, where other work would have too much part in it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import scenes
from .measure import COMMAND, START_UP, Table, busy, machine, run, timed

Clock = Callable[[Callable[[], object]], float]
SIZES = "10,1000"
ROUNDS = 15
ACTIONS = ("list, warm", "list, cold", "show", "create", "answer or comment")
TITLE = "Which way for part {number}?"
TEXT = "There are two, and both have their price."
ANSWER = "Left"


@dataclass(frozen=True)
class Peer:
    """A program and its words. `{title}`, `{text}`, `{id}`, `{branch}` and `{answer}` are filled in."""

    name: str
    program: str
    get: str
    create: Sequence[str]
    list: Sequence[str]
    show: Sequence[str]
    answer: Sequence[str]
    created: str
    """A pattern for what `create` prints; its group is the new thing's id."""
    begin: Sequence[Sequence[str]] = ()
    forgets: Sequence[str] = ()
    """Below the repository: what is removed for a cold list. Empty where a program keeps no cache."""
    branches: bool = False
    """Whether each thing needs a branch with a commit of its own, which is there before."""


GIT_GATE = Peer(
    "git gate",
    COMMAND,
    "",
    create=("ask", "{title}", "--type", "choice", "-o", "Left", "-o", "Right", "--context", "{text}", "-q"),
    list=("list",),
    show=("show", "{id}"),
    answer=("respond", "{id}", "{answer}", "-q"),
    created=r"^(\w+)$",
    forgets=(".git/gitgate/index.sqlite*",),
)
PEERS = (
    Peer(
        "git-bug",
        "git-bug",
        "github.com/git-bug/git-bug/releases, or: brew install git-bug   (its words were tried with 0.10.1)",
        create=("bug", "new", "--non-interactive", "-t", "{title}", "-m", "{text}"),
        list=("bug",),
        show=("bug", "show", "{id}"),
        answer=("bug", "comment", "new", "{id}", "--non-interactive", "-m", "{answer}"),
        created=r"^(\w+) created$",
        begin=(("user", "new", "--non-interactive", "-n", "Bench Person", "-e", "bench@example.invalid"),),
        forgets=(".git/git-bug/cache", ".git/git-bug/indexes"),
    ),
    Peer(
        "git-appraise",
        "git-appraise",
        "go install github.com/google/git-appraise/git-appraise@latest",
        create=("request", "--source", "{branch}", "--target", "refs/heads/main", "-m", "{title} {text}"),
        list=("list",),
        show=("show", "{id}"),
        answer=("comment", "-m", "{answer}", "{id}"),
        created=r"^Commit: (\w+)$",
        branches=True,
    ),
    Peer(
        "bd",
        "bd",
        "npm install -g @beads/bd, or: brew install beads   (its words are from its documentation, and were not tried)",
        create=("create", "{title}", "-d", "{text}", "--silent"),
        list=("list", "--limit", "0"),
        show=("show", "{id}"),
        answer=("comments", "add", "{id}", "{answer}"),
        created=r"^(\S+)$",
        begin=(("init", "--quiet", "--stealth"),),
    ),
    Peer(
        "tk",
        "tk",
        "the script `ticket` of github.com/wedow/ticket, as `tk` on PATH; or: brew tap wedow/tools && brew install ticket",
        create=("create", "{title}", "-d", "{text}"),
        list=("ready",),
        show=("show", "{id}"),
        answer=("add-note", "{id}", "{answer}"),
        created=r"^(\S+)$",
    ),
)


@dataclass
class Kept:
    """One program's repository, and what it has there."""

    peer: Peer
    place: Path
    ids: list[str] = field(default_factory=list)
    count: int = 0

    def set_up(self, size: int, more: int) -> None:
        """So many things, and branches for so many more."""
        scenes.repository(self.place)
        for words in self.peer.begin:
            self.do(words)
        if self.peer.branches:
            self.make_branches(size + more)
        if self.peer is GIT_GATE:
            self.ids = scenes.with_gates(self.place, size)
            self.count = size
        else:
            for _ in range(size):
                self.create()

    def make_branches(self, count: int) -> None:
        person = f"{scenes.PERSON} {scenes.AT} +0000"
        lines = "".join(
            f"commit refs/heads/{branch(number)}\ncommitter {person}\ndata 4\nwork\nfrom refs/heads/main^0\n"
            f"M 100644 inline work\ndata {len(str(number))}\n{number}\n"
            for number in range(count)
        )
        run(["git", "fast-import", "--quiet"], self.place, input=lines.encode())

    def do(self, words: Sequence[str], **values: str) -> str:
        said = run([self.peer.program, *(word.format(**values) for word in words)], self.place)
        return said.decode(errors="replace")

    def create(self) -> None:
        number, self.count = self.count, self.count + 1
        values = {
            "title": TITLE.format(number=number),
            "text": TEXT,
            "branch": f"refs/heads/{branch(number)}",
        }
        said = self.do(self.peer.create, **values)
        found = re.search(self.peer.created, said, re.MULTILINE)
        if found is None:
            raise RuntimeError(f"{self.peer.name} created something and printed no id: {said[:200]!r}")
        self.ids.append(found[1])

    def forget(self) -> None:
        for pattern in self.peer.forgets:
            for place in self.place.glob(pattern):
                if place.is_dir():
                    shutil.rmtree(place)
                else:
                    place.unlink()

    def act(self, name: str, number: int, clock: Clock = timed) -> float:
        """Milliseconds that one command takes."""
        peer = self.peer
        if name == "list, cold":
            self.forget()
        actions: Mapping[str, Callable[[], object]] = {
            "list, warm": lambda: self.do(peer.list),
            "list, cold": lambda: self.do(peer.list),
            "show": lambda: self.do(peer.show, id=self.ids[number % len(self.ids)]),
            "create": self.create,
            # Of those that were made just now: a gate is answered once.
            "answer or comment": lambda: self.do(peer.answer, id=self.ids[-1 - number], answer=ANSWER),
        }
        return clock(actions[name])


def branch(number: int) -> str:
    return f"part-{number}"


def side_by_side(room: Path, peers: Sequence[Peer], size: int, rounds: int, clock: Clock = timed) -> Table:
    """The median of each command of each program, with so many things in its repository; the first round warms up."""
    kept = [Kept(peer, room / peer.name.replace(" ", "-")) for peer in peers]
    room.mkdir(parents=True)
    for one in kept:
        print(f"{one.peer.name}: making {size} …", file=sys.stderr)
        one.set_up(size, rounds + 1)
    rows: list[list[object]] = []
    for name in ACTIONS:
        times: list[list[float]] = [[] for _ in kept]
        for number in range(rounds + 1):
            for taken, one in zip(times, kept, strict=True):
                taken.append(one.act(name, number, clock))
        cells = [
            "-" if name == "list, cold" and not one.peer.forgets else statistics.median(taken[1:])
            for taken, one in zip(times, kept, strict=True)
        ]
        rows.append([name, *cells])
    rows.append(["megabytes on disk", *(megabytes(one.place) for one in kept)])
    heads = [f"{size:,} things each", *(peer.name for peer in peers)]
    start = statistics.median(clock(lambda: run(START_UP, room)) for _ in range(rounds))
    rows.append(["Python with click, its start alone", start, *("-" for _ in kept[1:])])
    of = "a command" if clock is timed else "a processor, for a command"
    return Table(f"milliseconds of {of}, the median of {rounds} rounds in turns", heads, rows)


def megabytes(place: Path) -> float:
    """What a repository takes of the disk, by blocks."""
    return sum(one.lstat().st_blocks for one in place.rglob("*")) * 512 / 1e6


def find_peers() -> tuple[list[Peer], list[Peer]]:
    """Those that are on PATH, and those that are not."""
    here = [peer for peer in PEERS if shutil.which(peer.program)]
    return here, [peer for peer in PEERS if peer not in here]


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks peers", description=__doc__)
    parser.add_argument(
        "--sizes", default=SIZES, metavar="N,N", help="how many things each has (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, metavar="N", help="how often each command is run"
    )
    parser.add_argument("--processor", action="store_true", help="processor time, whatever else runs")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    given = parser.parse_args(words)
    clock = busy if given.processor else timed
    here, absent = find_peers()
    where = f"{machine()}, load {os.getloadavg()[0]:.1f} at the beginning"
    with tempfile.TemporaryDirectory(prefix="gitgate-peers-") as folder:
        scenes.seal(Path(folder))
        found = [
            side_by_side(Path(folder) / size, [GIT_GATE, *here], int(size), given.rounds, clock)
            for size in given.sizes.split(",")
        ]
    if given.json:
        missing = {peer.name: peer.get for peer in absent}
        print(json.dumps({"machine": where, "tables": [one.as_json() for one in found], "absent": missing}))
    else:
        lost = [f"{peer.name} is not on PATH; get it: {peer.get}" for peer in absent]
        print("\n\n".join([where, *map(str, found), *(["\n".join(lost)] if lost else [])]))
    return 0
