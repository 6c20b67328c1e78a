"""Store: a run's journal as commits. Each one's tree holds its own file alone, and first parents are all that there is.

It is read by four git processes however long it is: with 10,000 steps there are sixty thousand objects, and to ask for each
by itself takes seconds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ...errors import BadDocument, BrokenRecord
from ...record.runs import (
    MOST_EVENTS,
    MOST_RESULT,
    STARTED,
    Run,
    RunEntry,
    RunEvent,
    dump_run_event,
    fold_run,
    parse_run_event,
    path_of,
    run_id,
    run_message,
)
from ...text import spelled
from ..git import Git, Repository
from ..git.canonical import REGULAR, TreeEntry
from ..git.objects import BLOB
from . import Records, Signature

MOST_FILE = MOST_RESULT + (1 << 16)
MOST_TOGETHER = 256 << 20
PACK_AFTER = 1000
"""So many events are packed together: as loose objects they take fifty times the room, and as much longer to read."""
FILE_NAME = re.compile(rb"[a-z]+-[0-9a-f]{16}\.json")


class Journals:
    """Reader and writer of one repository's journals."""

    def __init__(self, repo: Repository, records: Records) -> None:
        self.repo = repo
        self.records = records

    # writing: objects only; moving the ref is the caller's last step

    def write_started(self, at: str, said: Mapping[str, Any], by: Signature) -> Run:
        event = RunEvent(STARTED, 0, at, dict(said))
        data = dump_run_event(event)
        parse_run_event(data, STARTED)  # what is written must be readable
        return self.write(Run(run_id(data), "", "", event), event, by)

    def write_event(self, run: Run, name: str, at: str, said: Mapping[str, Any], by: Signature) -> RunEntry:
        """Write a run's next event as a commit, once the table has decided; `run` has it afterwards. Return it.

        Words that are no text are spelt out.
        """
        said = {key: spelled(value) if isinstance(value, str) else value for key, value in said.items()}
        self.write(run, RunEvent(name, len(run.events), at, dict(said)), by)
        return run.events[-1]

    def write(self, run: Run, event: RunEvent, by: Signature) -> Run:
        data = dump_run_event(event)
        if len(data) > MOST_FILE:
            raise BadDocument(f"run {run.id}", 0, event.text("step"), f"expected at most {MOST_FILE:,} bytes")
        event = parse_run_event(data, f"{run.id}:{event.n}")
        before = run.tip
        run.take(RunEntry("", event))
        with self.records.objects.together():
            blob = self.records.objects.write(BLOB, data)
            tree = self.records.write_tree([TreeEntry(REGULAR, path_of(event.name, data).encode(), blob)])
            oid = self.records.write_commit(tree, (before,) if before else (), by, run_message(run))
        run.events[-1] = RunEntry(oid, event)
        run.tip = oid
        if event.name == "claimed" and run.claim is not None:
            from ...document import replace

            run.claim = replace(run.claim, commit=oid)
        return run

    def pack(self, tip: str, since: str | None) -> None:
        """Put what the journal gained since then into one pack. Nothing depends on it: only room and time."""
        wanted = f"{tip}\n" + (f"^{since}\n" if since else "")
        place = self.repo.common_dir / "objects" / "pack" / "pack"
        git = self.records.repo.git
        if git.run("pack-objects", "-q", "--revs", str(place), input=wanted.encode(), check=False).code == 0:
            git.run("prune-packed", "-q", check=False)

    # reading

    def load(self, run: str, tip: str) -> Run:
        """Load the run whose journal ends at `tip`."""
        return fold_run(run, list(self.entries(run, tip)))

    def entries(self, run: str, tip: str) -> Iterator[RunEntry]:
        """Yield the run's events, oldest first, each checked to be a commit of one file."""
        chain = read_chain(self.records, run, tip)
        for n, (commit, blob, name, data) in enumerate(zip_files(self.repo.git, run, chain)):
            try:
                event = parse_run_event(data, f"{run}:{name}")
            except BadDocument as wrong:
                raise BrokenRecord(f"run {wrong.message}") from wrong
            if n == 0 and run_id(data) != run:
                raise BrokenRecord(f"run {run}: its start was rewritten; it belongs to run {run_id(data)}")
            if path_of(event.name, data) != name:
                raise BrokenRecord(f"run {run}: commit {commit[:12]} calls {blob[:12]} {name}")
            yield RunEntry(commit, event)


def read_chain(records: Records, run: str, tip: str) -> list[tuple[str, str, str]]:
    """Return commit, blob and file name of each event, oldest first.

    Git lists the commits; what they are is read from their bytes.
    """
    how = ("rev-list", "--first-parent", f"--max-count={MOST_EVENTS + 1}", tip, "--")
    commits = records.repo.git.text(*how).split("\n")
    if len(commits) > MOST_EVENTS:
        raise BrokenRecord(f"run {run}: its journal has more than {MOST_EVENTS:,} events")
    commits.reverse()
    found: list[tuple[str, str, str]] = []
    trees: list[str] = []
    records.objects.ahead(commits)
    for commit, below in zip(commits, ["", *commits], strict=False):
        read = records.commit(commit)
        if read.parents != ((below,) if below else ()):
            raise BrokenRecord(f"run {run}: commit {commit[:12]} has other parents than the event before it")
        if trees and read.tree == trees[-1]:
            raise BrokenRecord(f"run {run}: commit {commit[:12]} adds nothing")
        trees.append(read.tree)
    records.objects.ahead(trees)
    for commit, tree in zip(commits, trees, strict=True):
        found.append((commit, *only_file(run, commit, records.tree(tree).values())))
    records.objects.forget()
    return found


def only_file(run: str, commit: str, entries: Collection[TreeEntry]) -> tuple[str, str]:
    """Return blob and name of the one file that the tree of an event has."""
    if len(entries) != 1:
        raise BrokenRecord(
            f"run {run}: commit {commit[:12]} holds other files than its event's; each holds its own alone"
        )
    (entry,) = entries
    if entry.mode != REGULAR or not FILE_NAME.fullmatch(entry.name):
        raise BrokenRecord(f"run {run}: commit {commit[:12]} holds no event's file")
    return entry.oid, entry.name.decode()


def zip_files(
    git: Git, run: str, chain: Sequence[tuple[str, str, str]]
) -> Iterator[tuple[str, str, str, bytes]]:
    """Yield commit, blob, name and content of each event's file.

    The sizes are asked first: whoever plants a large file must not fill our memory.
    """
    wanted = "".join(f"{blob}\n" for _, blob, _ in chain).encode()
    sizes = [line.split() for line in git.text("cat-file", "--batch-check", input=wanted).split("\n")]
    total = 0
    for (commit, blob, _), said in zip(chain, sizes, strict=True):
        size = int(said[2]) if len(said) == 3 and said[1] == BLOB else -1
        total += max(size, 0)
        if not 0 <= size <= MOST_FILE or total > MOST_TOGETHER:
            why = "is missing" if size < 0 else "is larger than that of any journal"
            raise BrokenRecord(f"run {run}: the file {blob[:12]} of commit {commit[:12]} {why}")
    out, at = git.out("cat-file", "--batch", input=wanted), 0
    for (commit, blob, name), said in zip(chain, sizes, strict=True):
        start = out.index(b"\n", at) + 1
        at = start + int(said[2])
        yield commit, blob, name, out[start:at]
        at += 1
