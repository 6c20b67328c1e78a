"""Sharing: an agent in a job that may not write: what stands for the remote there, and what it made, packed for a job that may.

The agent's job has a copy of the remote on its own machine, and pushes to that alone. What came of it is a parcel of two files. The
job that may write does not trust it, since the agent may have packed it. So its size is bounded, its objects are checked as a
server checks a push, and only what an agent may make is taken: questions of its own, their work and sessions, the run that it
is a step of, and commits. Of the gate that it went on with, the ending is read, and recorded anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from ..context import Desk
from ..context.targets import remote_of
from ..errors import Failure, GateError, GitFailed, Usage
from ..exchange import entering
from ..exchange.syncing import bring_home
from ..gates.recording import reload
from ..model import is_id
from ..model.gate import Gate, Outcome
from ..policy import protected_refs
from ..store import private_folder, read_local_note, write_private
from ..store.git import Git
from ..store.git.protected import protected_tip
from ..store.git.refs import OPEN, RUNS, SESSIONS, TRACKING, WORK, Update
from ..store.records.journal import Journals
from ..store.remote import RefMove
from ..store.remote.fetch import branch_ref, fetch_all
from ..store.work import commits
from ..store.work.restore import without_place
from . import refusals

SAID, PACK = "made.json", "made.pack"
MOST_SAID = 256 << 10
MOST_PACK = 256 << 20
MOST_REFS = 200
MOST_RUNS = 64
VERSION = 1
KINDS = (OPEN, WORK, SESSIONS, RUNS)
OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
# No person is in an agent's job, so that none of these is theirs there.
BY_PEOPLE = frozenset(("answered", "voted", "amended", "stopped"))
BROUGHT = f"{TRACKING}+stage/"  # `+` is in no remote's folder there


@dataclass(frozen=True)
class Parcel:
    """Refs and commits that an agent made in its job: `refs` of its own, the last of its commits (`head`), the
    branch that it was on, and where that began.

    `gate`: the gate that the agent went on with; empty for a first run.
    """

    gate: str = ""
    branch: str = ""
    head: str = ""
    began: str = ""
    refs: Mapping[str, str] = field(default_factory=dict)

    @property
    def asked(self) -> list[str]:
        """Gates that the agent opened."""
        names = [ref.removeprefix(OPEN) for ref in self.refs if ref.startswith(OPEN)]
        return [name for name in names if name != self.gate]


# in the job of the agent


def stage_of(desk: Desk) -> Path:
    return desk.repo.state_dir / "stage.git"


def note_of(desk: Desk) -> Path:
    return desk.repo.state_dir / "stage.json"


def stand_apart(desk: Desk) -> Path:
    """Put a copy of the remote in the remote's place, on this machine. From now on every push from here goes to
    the copy alone.
    """
    remote = remote_of(desk)
    if remote is None:
        raise Failure("there is no remote whose place a copy could take", hint="git remote add origin URL")
    bring_home(desk, remote)
    place, git = stage_of(desk), desk.repo.git
    private_folder(place.parent)
    shutil.rmtree(place, ignore_errors=True)
    Git(place.parent, without_place(git.env)).run("init", "-q", "--bare", str(place))
    (place / "objects/info/alternates").write_bytes(os.fsencode(desk.repo.common_dir / "objects") + b"\n")
    fetch_all(desk.repo, remote, BROUGHT, timeout=desk.network_timeout)
    found = {ref.removeprefix(BROUGHT): oid for ref, oid in desk.refs.under(BROUGHT).items()}
    there = Git(place, without_place(git.env))
    there.run("update-ref", "--stdin", input=lines(f"create {ref} {oid}" for ref, oid in found.items()))
    there.run("symbolic-ref", "HEAD", f"refs/heads/{desk.settings.text('protectedBranch') or 'main'}")
    git.run("update-ref", "--stdin", input=lines(f"delete {BROUGHT}{ref}" for ref in found))
    for key in ("url", "pushurl"):
        git.run("config", "--local", "--unset-all", f"remote.{remote}.{key}", check=False)
    git.run("config", "--local", f"remote.{remote}.url", str(place))
    branch = commits.head_branch(git) or ""
    noted = {"refs": desk.refs.under(OPEN, RUNS), "began": desk.refs.get("HEAD") or ""}
    write_private(note_of(desk), json.dumps({**noted, "branch": branch}).encode())
    return place


def lines(words: Iterable[str]) -> bytes:
    return "".join(f"{one}\n" for one in words).encode("utf-8", "surrogateescape")


def pack(desk: Desk, folder: Path, gate: str = "") -> Parcel:
    """Write what the agent made since `stand_apart` into a folder, which is emptied first."""
    try:
        noted = read_local_note(note_of(desk), refs=dict, began=str, branch=str)
    except (OSError, ValueError) as missing:
        raise Failure(
            "nobody noted what was here before the agent began",
            hint="git gate github prepare --apart, before the step that runs it",
        ) from missing
    before = noted["refs"]
    parcel = made_since(desk, before, gate, noted)
    shutil.rmtree(folder, ignore_errors=True)
    private_folder(folder)
    tips = sorted({*parcel.refs.values(), *filter(None, (parcel.head,))})
    known = [
        tip
        for tip in (
            protected_tip(desk.refs, desk.records.objects, protected_refs(desk)),
            before.get(OPEN + gate) if gate else None,
        )
        if tip
    ]
    if tips:
        fed = lines([*tips, *(f"^{tip}" for tip in known)])
        name = desk.repo.git.text("pack-objects", "--revs", "-q", str(folder / "made"), input=fed)
        (folder / f"made-{name}.pack").replace(folder / PACK)
    for left in folder.glob("made-*"):
        left.unlink()
    if tips and (folder / PACK).stat().st_size > MOST_PACK:
        raise Failure(
            f"what the agent made is {(folder / PACK).stat().st_size >> 20:,} MiB; at most {MOST_PACK >> 20} MiB are handed over",
            hint="have it ignore what it builds (.gitignore), and run it again",
        )
    (folder / SAID).write_text(json.dumps({"version": VERSION, **asdict(parcel)}), encoding="utf-8")
    return parcel


def made_since(desk: Desk, before: Mapping[str, str], gate: str, noted: Mapping[str, str]) -> Parcel:
    here = desk.refs.under(*KINDS)
    refs = {ref: oid for ref, oid in here.items() if ref.startswith(RUNS) and before.get(ref) != oid}
    for run in [ref.removeprefix(RUNS) for ref in refs]:  # with what is in its trees, where it waits
        refs |= {WORK + run: here[WORK + run]} if WORK + run in here else {}
    for name in (ref.removeprefix(OPEN) for ref in here if ref.startswith(OPEN) and ref not in before):
        refs |= {kind + name: here[kind + name] for kind in (OPEN, WORK, SESSIONS) if kind + name in here}
    if gate:
        refs[OPEN + gate] = here[OPEN + gate]
        said = reload(desk, gate).outcome
        head = said.commits[-1] if said is not None and said.commits else ""
        return Parcel(gate, head=head, refs=refs)
    head = desk.refs.get("HEAD") or ""
    branch = commits.head_branch(desk.repo.git) or ""
    made = head != noted["began"] or branch != noted["branch"]
    return Parcel("", branch, head if made else "", noted["began"], refs)


# in the job that may write


class BadParcel(Failure):
    """Error of a parcel that has what an agent's job may not hand over. Nothing of the parcel was taken."""

    code = "bad_parcel"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"what the agent's job handed over is refused: {why}",
            hint="look at that job's log, and at what the agent was told; nothing of it was taken",
        )


def open_parcel(desk: Desk, folder: Path, gate: str = "") -> Parcel:
    """Read a parcel from its folder, check it, and add its objects to this repository. No ref is moved.

    BadParcel where anything is wrong.
    """
    try:
        parcel = read_parcel(folder)
        why = (
            ""
            if parcel.gate == gate
            else f"it is of {name_of(parcel.gate)}, and this job's is {name_of(gate)}"
        )
        if not why:
            take_objects(desk, folder, parcel)
            why = against(desk, parcel)
    except BadParcel:
        raise
    except (GateError, OSError) as wrong:
        raise BadParcel(str(wrong)) from wrong
    if why:
        raise BadParcel(why)
    return parcel


def name_of(gate: str) -> str:
    return f"gate {gate}" if gate else "a first run"


def read_parcel(folder: Path) -> Parcel:
    """Read the two files of a parcel. They must be regular, the only ones in the folder, and within their
    bounds.
    """
    with os.scandir(folder) as entries:
        found = {entry.name: entry.stat(follow_symlinks=False) for entry in entries}
    others = sorted(set(found) - {SAID, PACK})
    if others or SAID not in found:
        raise BadParcel(
            f"expected {SAID} and {PACK}; found {', '.join(map(repr, sorted(found)[:5])) or 'nothing'}"
        )
    for name, most in ((SAID, MOST_SAID), (PACK, MOST_PACK)):
        about = found.get(name)
        if about is not None and not stat.S_ISREG(about.st_mode):
            raise BadParcel(f"{name} is no regular file")
        if about is not None and about.st_size > most:
            raise BadParcel(f"{name} has {about.st_size:,} bytes; expected at most {most:,}")
    try:
        said = json.loads((folder / SAID).read_bytes())
    except (ValueError, RecursionError):
        raise BadParcel(f"{SAID} is no JSON") from None
    return parse_said(said)


def parse_said(said: object) -> Parcel:
    expected = {"version", "gate", "branch", "head", "began", "refs"}
    if not isinstance(said, dict) or set(said) != expected or said["version"] != VERSION:
        raise BadParcel(f"{SAID} is no object with {', '.join(sorted(expected))}, version {VERSION}")
    words = {name: said[name] for name in ("gate", "branch", "head", "began")}
    for name, word in words.items():
        # `"\ud800"` is in JSON, and in no file, name or message
        if not isinstance(word, str) or len(word) > 500 or word.encode(errors="ignore").decode() != word:
            raise BadParcel(f"{SAID}: {name} is no short text")
    for name in ("head", "began"):
        if words[name] and not OID.fullmatch(words[name]):
            raise BadParcel(f"{SAID}: {name} is no commit")
    if words["branch"]:
        try:
            branch_ref(words["branch"])
        except Usage:
            raise BadParcel(f"{SAID}: branch is no name of a branch") from None
    return Parcel(**words, refs=parse_refs(said["refs"]))


def parse_refs(said: object) -> dict[str, str]:
    if not isinstance(said, dict) or len(said) > MOST_REFS:
        raise BadParcel(f"{SAID}: refs is no object of at most {MOST_REFS}")
    for ref, oid in said.items():
        kind = next((kind for kind in KINDS if ref.startswith(kind)), "")
        if not kind or not is_id(ref.removeprefix(kind)):
            raise BadParcel(f"{ref!r} is nothing that an agent makes: expected {', '.join(KINDS)} and an id")
        if not isinstance(oid, str) or not OID.fullmatch(oid):
            raise BadParcel(f"{ref} names no object")
    return dict(said)


def take_objects(desk: Desk, folder: Path, parcel: Parcel) -> None:
    """Take a parcel's objects, checked as a server checks what is pushed to it.

    Each object is checked by itself, and none may be missing below the tips.
    """
    git, tips = desk.repo.git, [*parcel.refs.values(), *filter(None, (parcel.head,))]
    if (folder / PACK).exists():
        git.run("index-pack", "--stdin", "--strict", input=(folder / PACK).read_bytes())
    if not tips:
        return
    try:
        git.run("rev-list", "--objects", "--quiet", "--stdin", "--not", "--all", input=lines(tips))
    except GitFailed:
        raise BadParcel("objects are missing below what it names") from None


def is_commit(desk: Desk, oid: str) -> bool:
    """Return whether the object is a commit itself, and not a tag that leads to one."""
    found = desk.records.objects.find([f"{oid}^{{commit}}"])[0]
    return found is not None and found.oid == oid


def against(desk: Desk, parcel: Parcel) -> str:
    """Return why the refs of a parcel are refused; empty when they are accepted."""
    remote = remote_of(desk) or ""
    if parcel.head and not is_commit(desk, parcel.head):
        return f"{parcel.head[:10]} is no commit"
    for gate in parcel.asked:
        if desk.refs.get(OPEN + gate) is not None or desk.tracked(remote, gate) is not None:
            return f"gate {gate} was there before this job, and is not this agent's to change"
        words = BY_PEOPLE.intersection(
            entry.name for entry in desk.records.load(gate, parcel.refs[OPEN + gate]).history
        )
        if words:
            return f"gate {gate} was {' and '.join(sorted(words))}, which is for people, and none was in that job"
    new = set(parcel.asked)
    runs = {WORK + ref.removeprefix(RUNS) for ref in parcel.refs if ref.startswith(RUNS)}
    for ref in parcel.refs:
        if ref.startswith((WORK, SESSIONS)) and ref.rpartition("/")[2] not in new and ref not in runs:
            return f"{ref} is of no question that it asked"
    return against_runs(desk, parcel) or against_rules(desk, parcel)


def against_runs(desk: Desk, parcel: Parcel) -> str:
    """Return why a run of the parcel is refused. A run must be new, or of the family of the one whose question
    was answered.
    """
    own = reload(desk, parcel.gate).opened.run if parcel.gate else ""
    named = [ref.removeprefix(RUNS) for ref in parcel.refs if ref.startswith(RUNS)]
    if len(named) > MOST_RUNS:
        return f"expected at most {MOST_RUNS} runs; found {len(named)}"
    root = root_of(desk, own) if own else ""
    for run in named:
        if desk.refs.get(RUNS + run) is not None and (not root or root_of(desk, run) != root):
            return f"run {run} was there before this job, and is not this agent's to go on with"
    return ""


def root_of(desk: Desk, run: str) -> str:
    """Return the outermost run of those that called this one, as far as this clone knows them."""
    journals = Journals(desk.repo, desk.records)
    for _ in range(20):
        tip = desk.refs.get(RUNS + run)
        parent = journals.load(run, tip).called_by[0] if tip is not None else ""
        if not parent:
            break
        run = parent
    return run


def against_rules(desk: Desk, parcel: Parcel) -> str:
    """Return why a server that takes pushes would refuse the parcel's refs; empty when it would accept them.

    The gate that the agent went on with is left out, since the parcel does not move it.
    """
    updates = [
        Update(desk.refs.get(ref), oid, ref) for ref, oid in parcel.refs.items() if ref != OPEN + parcel.gate
    ]
    refused = refusals(desk, updates, partial(entering.against_events, desk))
    return next((f"{ref}: {why}" for ref, why in refused.items()), "")


def put_in_place(desk: Desk, parcel: Parcel) -> None:
    """Create or move the parcel's refs in this clone, as if the agent had asked here. Whoever syncs shares them."""
    moves = [
        RefMove(ref, oid, desk.refs.get(ref)) for ref, oid in parcel.refs.items() if ref != OPEN + parcel.gate
    ]
    if moves:
        desk.refs.update(moves)


def take_back(desk: Desk, parcel: Parcel) -> None:
    """Delete the questions of a parcel, which are not to be shared after all."""
    mine = {kind + gate for gate in parcel.asked for kind in (OPEN, WORK, SESSIONS)}
    with contextlib.suppress(GateError):
        desk.refs.update([RefMove(ref, None, parcel.refs[ref]) for ref in parcel.refs if ref in mine])


def outcome_in_parcel(desk: Desk, parcel: Parcel, claim: str) -> Outcome | None:
    """Return how the agent ended, as its job says, for this very claim; None where that job recorded no outcome."""
    tip = parcel.refs.get(OPEN + parcel.gate)
    if tip is None:
        return None
    gate: Gate = desk.records.load(parcel.gate, tip)
    if all(entry.commit != claim for entry in gate.history):
        raise BadParcel(
            f"its record of gate {gate.id} does not have the claim {claim[:10]}, which this job is for"
        )
    ended = [
        entry.event
        for entry in gate.events
        if isinstance(entry.event, Outcome) and entry.event.claim == claim
    ]
    if not ended:
        return None
    if ended[-1].commits and ended[-1].commits[-1] != parcel.head:
        raise BadParcel(f"its ending names other commits than it brings ({ended[-1].commits[-1][:10]})")
    return ended[-1]


def commits_of(desk: Desk, parcel: Parcel, known: Sequence[str]) -> tuple[str, ...]:
    """Return the commits of a parcel that nobody had before, oldest first."""
    return tuple(commits.new_commits(desk.repo.git, [parcel.head], known)) if parcel.head else ()
