"""Store: a run's journal as commits. Each one's tree holds its own file alone, and first parents are all that there is.

It is read by four git processes however long it is: with 10,000 steps there are sixty thousand objects, and to ask for each
by itself takes seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
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
from ..git.objects import BLOB, REGULAR, TreeEntry
from . import Records, Signature

MOST_FILE = MOST_RESULT + (1 << 16)
MOST_TOGETHER = 256 << 20
PACK_AFTER = 1000
"""So many events are packed together: as loose objects they take fifty times the room, and as much longer to read."""
FILE_NAME = re.compile(rb"[a-z]+-[0-9a-f]{16}\.json")


class Journals:
    """Reads and writes the journals of one repository."""

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
        """The next event as a commit, once the table has decided; `run` has it afterwards. Words that are no text are spelt out."""
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
        """The run whose journal ends at `tip`."""
        return fold_run(run, list(self.entries(run, tip)))

    def entries(self, run: str, tip: str) -> Iterator[RunEntry]:
        """Its events, oldest first, each checked to be a commit of one file."""
        chain = read_chain(self.repo.git, run, tip)
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


def read_chain(git: Git, run: str, tip: str) -> list[tuple[str, str, str]]:
    """Commit, blob and file name of each event, oldest first."""
    listed = git.text("rev-list", "--parents", f"--max-count={MOST_EVENTS + 1}", tip, "--").split("\n")
    if len(listed) > MOST_EVENTS:
        raise BrokenRecord(f"run {run}: its journal has more than {MOST_EVENTS:,} events")
    for line, below in zip(listed, [*(line.partition(" ")[0] for line in listed[1:]), ""], strict=True):
        commit, _, parents = line.partition(" ")
        if parents != below:
            raise BrokenRecord(f"run {run}: commit {commit[:12]} has other parents than the event before it")
    commits = [line.partition(" ")[0] for line in reversed(listed)]
    trees = git.out("diff-tree", "--stdin", "--root", "--raw", "--no-renames", "--no-abbrev", "-z", "-r", "-t",
                    input="".join(f"{commit}\n" for commit in commits).encode())  # fmt: skip
    return [*read_added(run, commits, trees)]


def read_added(run: str, commits: Sequence[str], said: bytes) -> Iterator[tuple[str, str, str]]:
    """The one file of each commit's tree: each takes away the one before it, and adds its own, so that there is no other."""
    parts = iter(said.split(b"\0"))
    part, before = next(parts, b""), b""
    for commit in commits:
        if part.decode("ascii", "replace") != commit:
            raise BrokenRecord(f"run {run}: commit {commit[:12]} adds nothing")
        added: list[tuple[str, str, bytes, str]] = []
        gone: list[tuple[str, str, bytes, str]] = []
        part = next(parts, b"")
        while part.startswith(b":"):
            name = next(parts, b"")
            _, mode, _, blob, how = part.decode("ascii", "replace").split(" ")
            (added if how == "A" else gone).append((mode, blob, name, how))
            part = next(parts, b"")
        if [(name, how) for _, _, name, how in gone] != ([(before, "D")] if before else []) or len(
            added
        ) != 1:
            raise BrokenRecord(
                f"run {run}: commit {commit[:12]} holds other files than its event's; each holds its own alone"
            )
        mode, blob, before, _ = added[0]
        if mode != REGULAR or not FILE_NAME.fullmatch(before):
            raise BrokenRecord(f"run {run}: commit {commit[:12]} holds no event's file")
        yield commit, blob, before.decode()


def zip_files(
    git: Git, run: str, chain: Sequence[tuple[str, str, str]]
) -> Iterator[tuple[str, str, str, bytes]]:
    """The same with what each file holds. Their sizes are asked first: whoever plants a large one must not fill our memory."""
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
