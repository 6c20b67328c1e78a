"""Benchmarks: one repository with more and more open gates. What each verb takes, beside what git itself takes for the same where it
has it: in processor time, git's on the server and its hook's included, so that what else runs has no part in it.

The gates are records as the product writes them; each size has a server with the receiving hook, and clones that have all of it.
"""

from __future__ import annotations

import itertools
import os
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from gitgate.acts.answering import Manner, respond, stop
from gitgate.acts.asking import AskWishes, ask
from gitgate.context import open_desk
from gitgate.gates.recording import reload
from gitgate.questions import Given
from gitgate.questions.drafts import Draft, question

from . import scenes
from .measure import COMMAND, START_UP, Table, busy, peak_memory, run

REFTABLE_SINCE = (2, 45)
KINDS = ("loose", "packed", "reftable")
CLOSED = 20


def git_version() -> tuple[int, int]:
    found = re.search(r"(\d+)\.(\d+)", run(["git", "--version"], Path.cwd()).decode())
    return (int(found[1]), int(found[2])) if found else (0, 0)


class Grown:
    """A server with so many open gates, one clone that asks and answers, and another that hears of it."""

    def __init__(self, room: Path, count: int, kind: str) -> None:
        words = ("--ref-format=reftable",) if kind == "reftable" else ()
        room.mkdir(parents=True)
        self.kind = kind
        self.server = scenes.repository(room / "server.git", bare=True, words=words)
        self.place = scenes.repository(room / "place", words=words)
        self.other = scenes.repository(room / "other", words=words)
        self.few = scenes.repository(room / "few", words=words)
        run([COMMAND, "init", "--server", "--no-resume"], self.server)
        self.one, *others = scenes.with_gates(self.server, count)
        self.ids, self.numbers = iter(others), itertools.count()
        self.pack(self.server)
        for one in (self.place, self.other):
            run(["git", "remote", "add", "origin", str(self.server)], one)
        run(["git", "push", "-q", "origin", "main"], self.place)
        self.spec = "+refs/hitl/open/*:refs/gitgate/origin/open/*"

    def pack(self, place: Path) -> None:
        if self.kind == "packed":
            run(["git", "pack-refs", "--all"], place)

    def brought(self) -> float:
        """All of it brought to the clones, and kept there; what the first time took."""
        first = busy(lambda: run([COMMAND, "sync", "-q"], self.place))
        run([COMMAND, "sync", "-q"], self.other)
        for one in (self.place, self.other):
            self.pack(one)
        return first

    def answered(self, rounds: int) -> Iterator[str]:
        """The refs of gates that were answered in a clone that has no others, and are not pushed."""
        refs = [f"refs/hitl/open/{next(self.ids)}" for _ in range(rounds + 1)]
        run(["git", "fetch", "-q", str(self.server), *(f"{ref}:{ref}" for ref in refs)], self.few)
        desk = open_desk(self.few, dict(os.environ), bulk=True)
        for ref in refs:
            respond(desk, reload(desk, ref.rpartition("/")[2]), Given(text="Left"), Manner(push=False))
        desk.close()
        return iter(refs)

    def verbs(self, rounds: int) -> dict[str, Callable[[], object]]:
        """What is measured, each some times; git's own stand after ours."""
        place, other, server = self.place, self.other, str(self.server)
        answered = self.answered(rounds)

        def push_answer() -> None:
            run(["git", "push", "-q", server, next(answered)], self.few)

        def fetch_one() -> None:
            empty = scenes.repository(place.parent / f"empty-{next(self.numbers)}", bare=True)
            ref = f"refs/hitl/open/{self.one}"
            run(["git", "fetch", "-q", server, f"{ref}:{ref}"], empty)

        def delete() -> None:
            run(["git", "update-ref", "refs/hitl/leases/measured", "main"], self.server)
            run(["git", "update-ref", "-d", "refs/hitl/leases/measured"], self.server)

        def git_push() -> None:
            commit = run(["git", "commit-tree", "HEAD^{tree}", "-m", "x"], place, input=b"").decode().strip()
            run(["git", "push", "-q", server, f"{commit}:refs/heads/x-{next(self.numbers)}"], place)

        return {
            "list": lambda: run([COMMAND, "list"], place),
            "git for-each-ref, with the messages": lambda: run(
                ["git", "for-each-ref", "--format=%(refname) %(contents)", "refs/hitl/open"], place
            ),
            "show": lambda: run([COMMAND, "show", self.one], place),
            "ask, and push": lambda: run([COMMAND, "ask", "Which?", "-q"], place),
            "respond, and push": lambda: run([COMMAND, "respond", next(self.ids), "Left", "-q"], place),
            "git push of one answer, judged by the hook": push_answer,
            "git push of one new branch": git_push,
            "git fetch of one gate, to an empty repository": fetch_one,
            "git update-ref, one ref made and deleted": delete,
            "sync, nothing new here": lambda: run([COMMAND, "sync", "-q"], place),
            "git fetch of the same": lambda: run(
                ["git", "fetch", "-q", "--no-tags", "--prune", "origin", self.spec], place
            ),
            "import click": lambda: run(START_UP, place),
            "sync, with what others did": lambda: run([COMMAND, "sync", "-q"], other),
        }

    def archive(self) -> float:
        """Some gates that are over, folded away there and here."""
        desk = open_desk(self.place, dict(os.environ), bulk=True)
        for number in range(CLOSED):
            asked = ask(desk, Draft((question(f"Over, {number}?"),)), AskWishes(push=False)).gate
            stop(desk, asked, "measured", push=False)
        desk.close()
        run([COMMAND, "sync", "-q"], self.place)
        taken = busy(lambda: run([COMMAND, "archive", "-q"], self.place))
        left = run(["git", "for-each-ref", "refs/hitl/archive"], self.server)
        if not left:
            raise RuntimeError("nothing was archived")
        return taken

    def hook(self) -> float:
        """The look of the server's hook after a push, which nobody waits for."""
        run(["git", "config", "gitgate.resumeHere", "true"], self.server)
        return busy(lambda: run([COMMAND, "hook", "post-receive"], self.server))


def growth(room: Path, counts: Sequence[int], kinds: Sequence[str], rounds: int) -> list[Table]:
    """A table for each kind of refs: by size."""
    tables = []
    for kind in kinds:
        if kind == "reftable" and git_version() < REFTABLE_SINCE:
            version = ".".join(map(str, git_version()))
            tables.append(
                Table(f"reftable: left out, since git is {version}, and has it from 2.45 on", ["", ""], [])
            )
            continue
        columns = {count: measured(room / f"{kind}-{count}", count, kind, rounds) for count in counts}
        names = dict.fromkeys(name for column in columns.values() for name in column)
        rows: list[list[object]] = []
        for name in names:
            cells = [columns[count][name] for count in counts]
            rows.append([name, *cells, f"{cells[-1] / cells[0]:.1f}x"])
        heads = ["open gates", *(f"{count:,}" for count in counts), "last to first"]
        tables.append(
            Table(f"one repository, {kind} refs: milliseconds of a processor, and megabytes", heads, rows)
        )
    return tables


def measured(room: Path, count: int, kind: str, rounds: int) -> dict[str, float]:
    grown = Grown(room, count, kind)
    found = {"sync, the first time": grown.brought()}
    verbs = grown.verbs(rounds)
    times: dict[str, list[float]] = {name: [] for name in verbs}
    for number in range(rounds + 1):
        for name, action in verbs.items():
            taken = busy(action)
            if number:  # The first one warms up.
                times[name].append(taken)
    found |= {name: statistics.median(taken) for name, taken in times.items()}
    found["the hook's look after a push"] = grown.hook()
    found[f"archive of {CLOSED}, and push"] = grown.archive()
    found["memory of list, MB"] = peak_memory([COMMAND, "list"], grown.place)
    found["memory of sync, MB"] = peak_memory([COMMAND, "sync", "-q"], grown.place)
    return found
