"""Audit: what somebody needs to check gates without this program, in one file: the records as a git bundle, and as text and JSON.

    sha256sum -c SHA256SUMS
    git clone --mirror gates.bundle gates.git

The same refs give the same bytes, wherever and whenever it is made: nothing in it is of the moment. Nothing is written in the
repository. Sessions, partial work and leases are left out, which is said in it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from shlex import quote

from ..context import Desk
from ..context.machine import host_name
from ..document import dataclass, field, replace
from ..errors import BrokenRecord, Failure, GateError, Usage
from ..model import AWAITING, SignatureMark, is_id
from ..model.gate import Gate
from ..record.runs import Run
from ..store.git.refs import OPEN, RUNS
from . import Verified
from .auditing import audit, full_id, open_tips

FILE = "gates.tar.gz"
TOP = "gates"
BUNDLE, SIGNERS, SUMS = "gates.bundle", "allowed_signers", "SHA256SUMS"
# In the bundle alone: where the record of an archived gate or run ends, so that it is found by its id.
ARCHIVED = "refs/hitl/archived/"
LATE = "refs/hitl/late/"
CELLS = 100
LEFT_OUT = {
    "sessions": "agents' saved conversations (refs/hitl/sessions): they may be private",
    "work": "partial work (refs/hitl/work, refs/hitl/evidence): records name its commits; git gate diff ID shows it",
    "commits": "what agents committed: records name it, and it is in the branches",
    "leases": "who acts on a gate now (refs/hitl/leases)",
}


@dataclass(frozen=True)
class ExportWishes:
    """Selection for an export: the gates and runs that are named, or all since a moment."""

    ids: tuple[str, ...] = ()
    since: float = 0.0

    @property
    def narrowed(self) -> bool:
        return bool(self.ids or self.since)


def check_narrowed(ids: Sequence[str], since: str | None) -> None:
    if ids and since is not None:
        raise Usage("an id or --since, not both", hint="git gate export --since 90d")


@dataclass(frozen=True)
class Recorded:
    """A gate or a run as it is exported. Without `gate` and `run` its record cannot be read, and `trouble` says why."""

    id: str
    ref: str
    tip: str
    late: tuple[str, ...] = ()
    gate: Gate | None = None
    run: Run | None = None
    trouble: str = ""

    @property
    def archived(self) -> bool:
        return self.ref.startswith(ARCHIVED)


@dataclass(frozen=True)
class Exported:
    """Result of an export: the file and its digest, the number of gates and runs in it, and the end of each record.

    `ok`: the contents hold, as `verify` judges them; `problems` counts what does not. `left_out` names what is not
    in it. `file` is None where there was nothing to write.
    """

    file: Path | None = None
    sha256: str = ""
    size: int = 0
    gates: int = 0
    runs: int = 0
    ok: bool = True
    problems: int = 0
    tips: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)


def export_gates(desk: Desk, wanted: ExportWishes, place: Path, *, force: bool = False) -> Exported:
    """Write the file. Where no gate and no run fits, none is written."""
    check_place(place, force=force)
    gates, runs = chosen(desk, wanted)
    if not gates and not runs:
        return Exported()
    refs = refs_of((*gates, *runs), {} if wanted.narrowed else folds(desk))
    desk.progress("packing the records")
    refs, cut = whole_refs(desk, refs)
    left = {**LEFT_OUT, **cut}
    desk.progress("checking them")
    done = audit(desk, [one.id for one in (*gates, *runs)] if wanted.narrowed else (), noted=False)
    files = {
        BUNDLE: bundle_of(desk, refs),
        **read_by_people(desk, gates, runs),
        "verify.json": dump_json(verified_shape(done)),
        **signers_file_of(desk),
    }
    files["README.txt"] = readme(gates, runs, done, left).encode()
    files[SUMS] = sums(files)
    data = archive_of(files, newest(gates, runs))
    write_whole(place, data, force=force)
    tips = {one.id: one.tip for one in (*gates, *runs)}
    digest = sha256(data).hexdigest()
    return Exported(place, digest, len(data), len(gates), len(runs), done.ok, len(done.problems), tips, left)


# Which gates and runs, and the refs that name them.


def chosen(desk: Desk, wanted: ExportWishes) -> tuple[list[Recorded], list[Recorded]]:
    """Gates and runs, each once and in the order of their ids. A run that is named brings the gates that it asked."""
    gates, runs = known_gates(desk), known_runs(desk)
    ids = {full_id(word, {*gates, *runs}) for word in wanted.ids}
    if ids and not ids & runs.keys():
        gates = {name: gates[name] for name in ids}
    desk.records.read_ahead(one.tip for one in gates.values())
    read = [read_gate(desk, one) for one in gates.values()]
    found = [read_journal(desk, one) for one in runs.values() if not ids or one.id in ids]
    desk.records.objects.forget()
    if ids:
        read = [one for one in read if one.id in ids or (one.gate is not None and one.gate.opened.run in ids)]
    kept = ([one for one in some if begun_since(one, wanted.since)] for some in (read, found))
    first, second = (sorted(some, key=lambda one: one.id) for some in kept)
    return first, second


def known_gates(desk: Desk) -> dict[str, Recorded]:
    """Open ones and archived ones. One that is both is told of where it is open, as everywhere."""
    from ..store.records.archive import listing

    folded = {
        one.id: Recorded(one.id, ARCHIVED + one.id, one.tip, one.late)
        for one in listing(desk.repo)
        if one.tip
    }
    tips = {gate: tip for gate, tip in open_tips(desk).items() if is_id(gate)}
    return {**folded, **{gate: Recorded(gate, OPEN + gate, tip) for gate, tip in tips.items()}}


def known_runs(desk: Desk) -> dict[str, Recorded]:
    from ..store.records.archive import listing_of_runs

    folded = {one.id: Recorded(one.id, ARCHIVED + one.id, one.tip) for one in listing_of_runs(desk.repo)}
    here = {ref.removeprefix(RUNS): tip for ref, tip in desk.refs.under(RUNS).items()}
    return {**folded, **{run: Recorded(run, RUNS + run, tip) for run, tip in here.items() if is_id(run)}}


def read_gate(desk: Desk, one: Recorded) -> Recorded:
    from ..gates.history import with_late

    try:
        return replace(one, gate=with_late(desk, desk.records.load(one.id, one.tip), one.late))
    except GateError as broken:
        return replace(one, trouble=broken.message)


def read_journal(desk: Desk, one: Recorded) -> Recorded:
    from ..store.records.journal import Journals

    try:
        return replace(one, run=Journals(desk.repo, desk.records).load(one.id, one.tip))
    except GateError as broken:
        return replace(one, trouble=broken.message)


def begun_since(one: Recorded, since: float) -> bool:
    """Return whether a record began since that moment. One that cannot be read counts as begun: an auditor wants to
    know of it.
    """
    from ..gates.history import seconds_at

    at = begun_at(one)
    return not at or seconds_at(at) >= since


def begun_at(one: Recorded) -> str:
    if one.gate is not None:
        return one.gate.opened.asked.at
    return one.run.started.at if one.run is not None else ""


def folds(desk: Desk) -> dict[str, str]:
    """The archive's own refs, ours and those of remotes."""
    from ..store.records.archive import shelves

    return {shelf.ref: shelf.fold for shelf in shelves(desk.repo)}


def refs_of(found: Iterable[Recorded], more: Mapping[str, str]) -> dict[str, str]:
    named = dict(more)
    for one in found:
        named[one.ref] = one.tip
        named |= {f"{LATE}{one.id}/{number}": tip for number, tip in enumerate(one.late, 1)}
    return dict(sorted(named.items()))


# The bundle.


def whole_refs(desk: Desk, refs: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Those whose objects are all here, and why each of the others is left out."""
    if all_here(desk, refs.values()):
        return dict(refs), {}
    there = {ref: all_here(desk, [tip]) for ref, tip in refs.items()}
    why = "objects of it are missing here: git gate verify; git fsck"
    kept = {ref: refs[ref] for ref, here in there.items() if here}
    if not kept:
        raise BrokenRecord(
            "no record is whole here", hint="git fsck; in a shallow clone: git fetch --unshallow"
        )
    return kept, {ref: why for ref, here in there.items() if not here}


def all_here(desk: Desk, tips: Iterable[str]) -> bool:
    """As if nobody had told git where a shallow clone ends, which would hide what is missing."""
    asked = "".join(f"{tip}\n" for tip in dict.fromkeys(tips)).encode()
    said = desk.repo.git.run(
        "rev-list", "--objects", "--quiet", "--stdin", input=asked, env={"GIT_SHALLOW_FILE": ""}, check=False
    )
    return said.code == 0


def bundle_of(desk: Desk, refs: Mapping[str, str]) -> bytes:
    """A bundle as `git bundle create` makes it, whose pack is the same wherever it is made.

    Git's own would take over deltas and compressed data as they lie in this repository.
    """
    git = desk.repo.git
    asked = "".join(f"{tip}\n" for tip in dict.fromkeys(refs.values())).encode()
    listed = git.out("rev-list", "--objects", "--no-object-names", "--stdin", input=asked)
    objects = b"".join(oid + b"\n" for oid in sorted(set(listed.split())))
    plain = ("--no-reuse-delta", "--no-reuse-object", "--window=0", "--threads=1", "--compression=9")
    pack = git.out("pack-objects", "-q", "--stdout", *plain, input=objects)
    wide = len(desk.repo.zero) > 40
    head = "# v3 git bundle\n@object-format=sha256\n" if wide else "# v2 git bundle\n"
    names = "".join(f"{tip} {ref}\n" for ref, tip in refs.items())
    return f"{head}{names}\n".encode() + pack


# What reads without git.


def read_by_people(desk: Desk, gates: Sequence[Recorded], runs: Sequence[Recorded]) -> dict[str, bytes]:
    """Each gate as JSON and as a letter, each run as JSON."""
    from ..policy.ruling import marks
    from ..render.letter import letter

    whole = {one.id: one.gate for one in gates if one.gate is not None}
    signed = marks(desk, whole.values())
    shapes = [gate_shape(one, signed) for one in gates]
    files = {"gates.json": dump_json({"schema": "gitgate.gates/v1", "gates": shapes})}
    if runs:
        shown = [run_shape_of(one, whole) for one in runs]
        files["runs.json"] = dump_json({"schema": "gitgate.runs/v1", "runs": shown})
    for one in gates:
        if one.gate is not None:
            text = letter(one.gate, None, CELLS, signed=signed, archived=one.archived)
            files[f"letters/{one.id}.txt"] = f"{text}\n".encode("utf-8", "replace")
    return files


def gate_shape(one: Recorded, signed: Mapping[str, SignatureMark]) -> dict[str, object]:
    """Return a gate as `show --json` has it, without the facts that only one clone knows."""
    from ..render import shapes

    if one.gate is None:
        said = {"id": one.id, "state": "broken", "tip": one.tip, "problem": one.trouble}
        return shapes.thing("gate", said)
    shape = shapes.gate(one.gate, signed=signed, archived=one.archived)
    del shape["pushed"]
    return shapes.thing("gate", {**shape, "history": shapes.history(one.gate.history)})


def run_shape_of(one: Recorded, gates: Mapping[str, Gate]) -> dict[str, object]:
    """Return a run as `show RUN --json` has it."""
    from ..render.runs import run_details
    from ..render.shapes import thing

    if one.run is None:
        said = {"id": one.id, "status": "broken", "tip": one.tip, "problem": one.trouble}
        return thing("run", said)
    waits = {name: gates.get(name) for name in one.run.waits_for}
    asked = {
        name: (gate.opened.title, gate.state != AWAITING) if gate is not None else (name, False)
        for name, gate in waits.items()
    }
    return thing("run", {**run_details(one.run, asked), "archived": one.archived, "tip": one.tip})


def verified_shape(done: Verified) -> dict[str, object]:
    """Return a verification as `verify --json` has it, with the result for each signature, by its commit."""
    commits = {
        oid: {"verdict": verdict.word, "by": verdict.signer or None, "key": verdict.key or None}
        for oid, verdict in sorted(done.verdicts.items())
    }
    return {"schema": "gitgate.verify/v1", **done.shape(), "commits": commits}


def signers_file_of(desk: Desk) -> dict[str, bytes]:
    """Return the file of signers' keys that counted here, for git to check the signatures by."""
    from ..policy import signers_of

    found = signers_of(desk)
    return {SIGNERS: found} if found else {}


def dump_json(shape: Mapping[str, object]) -> bytes:
    text = json.dumps(shape, ensure_ascii=False, indent=1)
    return f"{text}\n".encode("utf-8", "replace")


def readme(
    gates: Sequence[Recorded], runs: Sequence[Recorded], done: Verified, left: Mapping[str, str]
) -> str:
    from ..text import counted, one_line

    what = counted(len(gates), "gate") + (f", {counted(len(runs), 'run')}" if runs else "")
    held = "nothing is wrong" if done.ok else f"{counted(len(done.problems), 'problem')}: see verify.json"
    first = next((one.ref for one in gates), runs[0].ref if runs else "")
    told = "".join(f"  {name}: {one_line(why, 200)}\n" for name, why in left.items())
    return README.format(what=what, held=held, first=first, left=told)


README = """What people decided for AI agents: {what}. Checked when this was made: {held}.

What is here
  gates.json       each gate: what was asked, who answered, what came of it
  runs.json        each run of a flow, where there are any
  letters/         the same, a page for each gate
  gates.bundle     the records themselves, as Git has them: each event is a commit
  verify.json      what was checked, what does not hold, and what each signature is worth
  allowed_signers  whose keys counted for signatures, where any were named
  SHA256SUMS       the digest of each file here

To check that no file was changed (whoever gave you this told you the digest of the whole):
  sha256sum -c SHA256SUMS

To check the records with plain git, which needs neither this program nor a network:
  git clone --mirror gates.bundle gates.git
  git -C gates.git fsck --strict
  git -C gates.git for-each-ref

To read one record, the oldest event first (its id is the last part of the ref):
  git -C gates.git log --first-parent --reverse -p {first}

To check a commit's signature; verify.json names the signed commits:
  git -C gates.git -c gpg.ssh.allowedSignersFile="$PWD/allowed_signers" verify-commit COMMIT

A commit names the one before it, so that nothing in the middle can be changed without changing the
last one. Who keeps the ids that gates.json calls tip can hold this copy against another one.
A name without a good signature is what somebody said of themselves.

What is left out
{left}"""


def sums(files: Mapping[str, bytes]) -> bytes:
    """Return the digests of the files, in the format that `sha256sum` writes and reads."""
    return "".join(f"{sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items())).encode()


# One file of all.


def newest(gates: Iterable[Recorded], runs: Iterable[Recorded]) -> int:
    """Return the time of the newest event in the export, which the files get as their time."""
    from ..gates.history import seconds_at

    said = [str(shape["at"]) for one in gates if one.gate is not None for shape in histories(one.gate)]
    said += [entry.event.at for one in runs if one.run is not None for entry in one.run.events]
    return max(0, int(max(map(seconds_at, said), default=0.0)))


def histories(gate: Gate) -> Iterator[Mapping[str, object]]:
    from ..render.shapes import event

    return (event(entry) for entry in gate.history)


def archive_of(files: Mapping[str, bytes], at: int) -> bytes:
    """A compressed tar file, with nothing in it of whoever made it."""
    import gzip
    import tarfile
    from io import BytesIO

    whole = BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.GNU_FORMAT) as made:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"{TOP}/{name}")
            entry.size, entry.mtime = len(data), at
            made.addfile(entry, BytesIO(data))
    return gzip.compress(whole.getvalue(), 9, mtime=0)


def check_place(place: Path, *, force: bool) -> None:
    """Before anything is read: a file that is there stays as it is, unless that is wanted."""
    with suppress(OSError):
        if place.is_dir():
            raise Usage(f"{place} is a directory", hint=f"git gate export -o {quote(str(place / FILE))}")
        if not place.parent.is_dir():
            raise Failure(f"{place.parent} is not a directory", hint=f"mkdir -p {quote(str(place.parent))}")
        if place.exists() and not (force and place.is_file()):
            raise already_there(place)


def already_there(place: Path) -> Failure:
    return Failure(
        f"{place} is there already, and was left as it is",
        hint=f"git gate export -o FILE, or over that one: git gate export -o {quote(str(place))} --force",
    )


def write_whole(place: Path, data: bytes, *, force: bool) -> None:
    """All of it or nothing: it gets its name once it is on the disk, and nobody else's file loses its own."""
    real = Path(os.path.realpath(place))
    begun = f".gates-{sha256(os.fsencode(real.name)).hexdigest()[:12]}-{host_name()}-"
    new = real.with_name(f"{begun}{os.getpid()}")
    try:
        clear_cut_off(real.parent, begun)
        with new.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        give_name(new, real, force=force)
    except FileExistsError:
        raise already_there(place) from None
    except OSError as failed:
        why = failed.strerror or str(failed)
        hint = "make room or give way there, or name another place: git gate export -o FILE"
        raise Failure(f"{place} cannot be written: {why}", hint=hint) from failed
    finally:
        with suppress(OSError):
            new.unlink()


def clear_cut_off(folder: Path, begun: str) -> None:
    """Take away what an export of the same file left that was killed: its process is no more, or it had our own number."""
    for left in folder.iterdir():
        number = left.name.removeprefix(begun)
        if (
            left.name.startswith(begun)
            and number.isdecimal()
            and len(number) < 10
            and not is_running(int(number))
        ):
            with suppress(OSError):
                left.unlink()


def is_running(pid: int) -> bool:
    """Return whether another process has this number."""
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def give_name(new: Path, real: Path, *, force: bool) -> None:
    """Give the new file its name by a link, which fails where the name is taken meanwhile. Some file systems have no
    links: there, and with `force`, it is renamed.
    """
    if not force:
        try:
            os.link(new, real)
        except FileExistsError:
            raise
        except OSError:
            if real.exists():
                raise FileExistsError from None
        else:
            return
    new.replace(real)
