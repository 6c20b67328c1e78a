"""Store: where refs are and how they move: one transaction, each ref with the value that it is expected to have."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ...document import NamedTuple, dataclass
from ...errors import GitFailed, LostRace, RefLocked
from ...record import absent
from . import Git, Repository

if TYPE_CHECKING:
    from ..remote import RefMove


OPEN = "refs/hitl/open/"
WORK = "refs/hitl/work/"
SESSIONS = "refs/hitl/sessions/"
LEASES = "refs/hitl/leases/"
RUNS = "refs/hitl/runs/"
# Made and deleted again: a push that changes nothing, which is one all the same.
WAKE = "refs/hitl/wake/"
ARCHIVE = "refs/hitl/archive/"
EVIDENCE = "refs/hitl/evidence/"
TRACKING = "refs/gitgate/"
# Records as they were before what a server refuses was taken off them; local, never pushed.
ASIDE = "refs/gitgate/aside/"
# Tips whose message tells lists something else than their record; local. `+` is in no remote's folder there.
DOUBTED = "refs/gitgate/+doubted/"
# The code that each run goes on with; local as well.
CODE_OF_RUNS = "refs/gitgate/+code/"

# Where the record of an open gate was when its session was erased here, so that no older one is pushed again; a server's own.
ERASED = "refs/gitgate/+erased/"

# What git locks as well, where it deletes refs and where it moves the branch of HEAD.
BESIDE = ("packed-refs", "HEAD")

# As git itself writes it, from 2.0 on.
PACKED_HEAD = b"# pack-refs with: peeled fully-peeled sorted \n"
MANY_NEW = 100

HEAD, MAIN_HEAD = "HEAD", "main-worktree/HEAD"
HEADS_OF_TREES = (HEAD, MAIN_HEAD)
# A ref in a file of its own in the common folder, or in that of packed refs.
_PART = r"[A-Za-z0-9_+%-]+(?:\.(?!lock(?:/|$))[A-Za-z0-9_+%-]+)*"
PLAIN = rf"refs/(?!bisect/|worktree/|rewritten/)(?:{_PART}/)*{_PART}"
# To read more than these takes longer than git, which searches in them.
MOST_PACKED = 1 << 16
# A line of git's file of packed refs, with the one that says what a tag stands for. Of names, only what `git check-ref-format` takes.
_PACKED_LINE = (
    rb"((?:[0-9a-f]{40}|[0-9a-f]{64}) (?![^\n]*(?:\.\.|@\{|//|/\.|\.lock[/\n]|[./]\n))(refs/[^\0- \x7f~^:?*\[\\]+)\n"
    rb"(?:\^(?:[0-9a-f]{40}|[0-9a-f]{64})\n)?)"
)

# Words of git, in the C locale, for a ref that is not where it was expected to be or is being moved by somebody else.
_RACES = (
    "but expected",
    "reference already exists",
    "unable to resolve reference",
    "is at ",
)
# With the reason behind it: another one is no lock, such as a disk that is full, or a folder that we may not write.
_LOCKED = r"Unable to create '[^\n]*\.lock': File exists"
_GONE = r"Unable to create '[^\n]*\.lock': No such file or directory"


@dataclass(frozen=True)
class CutOff:
    """Lock that a killed git left: of which ref, and the value that the ref was about to get, if any was written."""

    ref: str
    new: str | None
    place: Path
    since: float


def read_ref(git: Git, ref: str, git_dir: Path | None = None) -> str | None:
    """Return the value that git reads of the ref of this very name, in another of its folders if one is named.

    None where the ref is missing. Where git cannot read it, that is an error, and no ref that is missing.
    """
    env = None if git_dir is None else {"GIT_DIR": str(git_dir)}
    asked = ("show-ref", "--verify", "--hash", "--", ref)
    said = git.run(*asked, env=env, check=False)
    if said.code == 0:
        return said.out.decode().strip()
    if git.run(*asked[:2], "--quiet", *asked[2:], env=env, check=False).code != 1:
        raise GitFailed(f"git show-ref failed: {said.err}", status=said.code, stderr=said.err)
    return None


class Refs:
    def __init__(self, repo: Repository) -> None:
        self.git: Git = repo.git
        self.git_dir = repo.git_dir
        self.common_dir = repo.common_dir
        self.zero = repo.zero

    def get(self, ref: str) -> str | None:
        """Return the id that the ref of this very name has; None where there is no such ref.

        Git completes a name elsewhere: asked for a missing `refs/heads/main` it would take a tag called `refs/heads/main`, which
        anybody may have pushed. Here a name is `HEAD`, `main-worktree/HEAD` or begins with `refs/`, and stands for itself. A git
        takes a hundred times as long as reading its files, and is asked only where they do not say it plainly.
        """
        if ref not in HEADS_OF_TREES and not ref.startswith("refs/"):
            raise GitFailed(f"not the full name of a ref: {ref!r}", status=128)
        with suppress(OSError):  # git has the words for it
            known = self.in_files(ref)
            if known is not None:
                return known or None
        return read_ref(self.git, HEAD, self.common_dir) if ref == MAIN_HEAD else read_ref(self.git, ref)

    def target(self, ref: str) -> str:
        """Return the ref that this one stands for: another one where it is symbolic, else itself."""
        main = ref == MAIN_HEAD
        env = {"GIT_DIR": str(self.common_dir)} if main else None
        said = self.git.run("symbolic-ref", "-q", HEAD if main else ref, env=env, check=False)
        return said.out.decode("utf-8", "surrogateescape").removesuffix("\n") or ref

    def revision(self, words: str) -> str | None:
        """Return the object that a person means by these words, completed as git completes them.

        No name that the product chose itself, or took from a record, goes this way.
        """
        asked = ("--verify", "--quiet", "--end-of-options", words)
        found = self.git.run("rev-parse", *asked, check=False, completes=True)
        return found.out.decode().strip() or None if found.code == 0 else None

    def check_out(self, directory: Path, branch: str) -> None:
        """Make a working tree on a branch, which begins at HEAD where there is none of that name.

        By its id, and put on the branch afterwards: git would complete a name, to a tag that is called as the branch.
        """
        ref = f"refs/heads/{branch}"
        tip, head = self.get(ref), self.get(HEAD)
        if tip is None and head is None:
            raise GitFailed("there is no commit here yet that a branch could begin with", status=128)
        if tip is None:
            self.git.run("update-ref", ref, str(head), self.zero)
        self.git.run("worktree", "add", "-q", "--detach", "--", str(directory), str(tip or head))
        Git(directory, self.git.env).run("symbolic-ref", HEAD, ref)

    def in_files(self, ref: str, depth: int = 5) -> str | None:
        """Return the id that git's files have for a ref, empty where they have none; None where git is to say it.

        Git puts a ref into its file of packed refs before it takes the loose one away.
        """
        place = self.place_of(ref)
        if place is None or place.is_symlink() or self.are_elsewhere() or not depth:
            return None
        below = False
        try:
            return self.loose(place.read_bytes(), depth)
        except (FileNotFoundError, IsADirectoryError):
            pass
        except NotADirectoryError:
            below = True
        packed = self.packed()
        found = None if packed is None else self.in_packed(packed, ref)
        return None if below and found else found  # git reads no packed ref below a loose one

    def place_of(self, ref: str) -> Path | None:
        """Return the file that a loose ref of this name is in; None where git is to say it."""
        if ref == HEAD:
            return self.git_dir / HEAD
        if ref == MAIN_HEAD:
            return self.common_dir / HEAD
        return self.common_dir / ref if re.fullmatch(PLAIN, ref) else None

    def loose(self, said: bytes, depth: int) -> str | None:
        """Return the id that a loose ref's file has, itself or through the ref that it names."""
        if said.startswith(b"ref: refs/") and said.endswith(b"\n"):
            return self.in_files(said[len(b"ref: ") : -1].decode("utf-8", "surrogateescape"), depth - 1)
        return self.plain(said)

    def in_packed(self, packed: Mapping[bytes, bytes], ref: str) -> str | None:
        line = packed.get(os.fsencode(ref))
        return "" if line is None else self.plain(line.partition(b" ")[0] + b"\n")

    def plain(self, line: bytes) -> str | None:
        oid = line[:-1].decode("ascii", "replace")
        return oid if re.fullmatch(rb"[0-9a-f]{%d}\n" % len(self.zero), line) and oid != self.zero else None

    def packed(self) -> Mapping[bytes, bytes] | None:
        """Return the lines of git's file of packed refs, by name.

        None where git is to read it: a long one, or one that git would not have written. None also where the whole
        repository is away.
        """
        place, found = self.common_dir / "packed-refs", PACKED_HEAD
        if not (self.common_dir / "refs").is_dir():
            return None
        with suppress(FileNotFoundError):
            if place.stat().st_size > MOST_PACKED:
                return None
            found = place.read_bytes()
        return packed_lines(found)

    def are_elsewhere(self) -> bool:
        """Return whether refs may be elsewhere than in files of the common folder.

        Git has another store there, or another place for them.
        """
        if (self.common_dir / "reftable").exists():
            return True
        with suppress(FileNotFoundError):
            return b"refstorage" in (self.common_dir / "config").read_bytes().lower()
        return False

    def under(self, *prefixes: str) -> dict[str, str]:
        """List every ref below the prefixes, or matching them, with the object that it points at."""
        if prefixes and all(self.is_empty(prefix) for prefix in prefixes):
            return {}
        listed = self.git.text("for-each-ref", "--format=%(refname) %(objectname)", *prefixes)
        # At newlines alone: a name may hold what else passes for the end of a line, and whoever pushes makes names up.
        return dict(line.rsplit(" ", 1) for line in listed.split("\n") if line)

    def is_empty(self, prefix: str) -> bool:
        """Return whether it is sure, and cheap to find out, that no ref is below a folder."""
        with suppress(OSError):
            if (
                prefix.endswith("/")
                and re.fullmatch(PLAIN, prefix + "x")
                and not self.are_elsewhere()
                and self.packed() is not None
            ):
                return not self.may_have(prefix)
        return False

    def beginning(self, start: str) -> list[str]:
        """List the names that begin so and may be refs, in one folder. Git itself would read every loose ref
        that is there.
        """
        if self.are_elsewhere():
            return list(self.under(f"{start}*"))
        folder, _, beginning = start.rpartition("/")
        try:
            with os.scandir(self.common_dir / folder) as entries:
                names = (entry.name for entry in entries if entry.name.startswith(beginning))
                # No ref is called so: it is git's own, while one is written.
                loose = {f"{folder}/{name}" for name in names if not name.endswith(".lock")}
        except (FileNotFoundError, NotADirectoryError):
            loose = set()
        return sorted(loose | packed_names(self.common_dir / "packed-refs", start))

    def may_have(self, folder: str) -> bool:
        """Return whether any ref may be below a folder, however deep. False is sure. Git is asked only where it
        has to read its refs.
        """
        if self.are_elsewhere():
            return bool(self.under(folder))
        # A ref may be called as the folder is.
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(self.common_dir / folder) as entries:
            if any(entries):
                return True
        with suppress(FileNotFoundError):
            if os.fsencode(f" {folder}") in (self.common_dir / "packed-refs").read_bytes():
                return True
        return self.packed() is None and bool(self.under(folder))

    def update(self, moves: Sequence[RefMove]) -> None:
        """Move all refs or none; LostRace when one is not where it was expected."""
        if not moves or (len(moves) >= MANY_NEW and self.create_packed(moves)):
            return
        said = b"".join(self.command(move) for move in moves)
        try:
            self.git.run(
                "-c",
                "core.filesRefLockTimeout=2000",
                "-c",
                "core.packedRefsTimeout=10000",
                "update-ref",
                "--stdin",
                "-z",
                input=b"start\0" + said + b"prepare\0commit\0",
            )
        except GitFailed as failed:
            if re.search(_LOCKED, failed.stderr):
                raise RefLocked(
                    f"{moves[0].ref} is locked by another git, or by one that was killed while it moved it",
                    hint="run the command again; if it stays so for ten minutes: git gate worker --once",
                ) from failed
            if any(word in failed.stderr for word in _RACES) or re.search(_GONE, failed.stderr):
                raise LostRace(
                    f"somebody else moved {moves[0].ref} first",
                    hint="run the command again to act on what is there now",
                ) from failed
            raise

    def create_packed(self, moves: Sequence[RefMove]) -> bool:
        """Make many refs that are not here yet, all of them or none, in git's file of packed refs: one file is written,
        where git would write a thousand, and a thousand locks. False where git has to do it, or to say why not.

        Only for refs of ours to commits that are here. Whoever else changes packed refs holds the same lock; a ref that
        somebody makes loose meanwhile counts more than the packed one, as if it had moved afterwards.
        """
        new = {move.ref: move.new for move in moves if move.old is None and move.new is not None}
        if len(new) < len(moves) or not all(ref.startswith((OPEN, TRACKING)) for ref in new):
            return False
        file, lock = self.common_dir / "packed-refs", self.common_dir / "packed-refs.lock"
        if self.are_elsewhere() or file.is_symlink():
            return False
        try:
            mode = stat.S_IMODE((file if file.exists() else self.common_dir / "HEAD").stat().st_mode)
            handle = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except OSError:  # Somebody writes there now, or we may not: git waits, or says so.
            return False
        held = True
        try:
            with os.fdopen(handle, "wb") as out:
                there = file.read_bytes() if file.exists() else PACKED_HEAD
                written = with_refs(there, new)
                if written is None or any_loose(self.common_dir, new):
                    return False
                os.fchmod(out.fileno(), mode)
                out.write(written)
                out.flush()
                os.fsync(out.fileno())
            lock.replace(file)
            held = False
        except OSError:
            return False
        finally:
            if held:  # else it would be the next one's
                lock.unlink(missing_ok=True)
        return True

    def outside_of_push(self) -> Refs:
        """Return refs that can be moved while a push is judged, only to objects that were here before the push."""
        from copy import copy  # hardly ever needed

        outside = copy(self)
        outside.git = self.git.outside_of_push()
        return outside

    def command(self, move: RefMove) -> bytes:
        if move.new is None:
            return os.fsencode(f"delete {move.ref}\0{move.old or ''}\0")
        return os.fsencode(f"update {move.ref}\0{move.new}\0{move.old or self.zero}\0")

    def cut_off(self, before: float) -> list[CutOff]:
        """List the locks that are older than `before`. Git has one for as long as a few files take to rename."""
        found = [self.common_dir / f"{name}.lock" for name in BESIDE]
        for folder, _, names in os.walk(self.common_dir / "refs"):
            found += [Path(folder, name) for name in names if name.endswith(".lock")]
        return [one for place in sorted(found) if (one := self.read_lock(place)) and one.since < before]

    def read_lock(self, place: Path) -> CutOff | None:
        try:
            since, data = place.stat().st_mtime, place.read_bytes()[: len(self.zero) + 1]
        except OSError:
            return None
        said = data.decode("ascii", "replace")
        # Whole only with its end: a disk that was full leaves a part.
        new = (
            said[:-1]
            if said.endswith("\n") and re.fullmatch(f"[0-9a-f]{{{len(self.zero)}}}\n", said)
            else None
        )
        return CutOff(place.relative_to(self.common_dir).as_posix().removesuffix(".lock"), new, place, since)

    def finish(self, lock: CutOff) -> None:
        """Move the ref to the value in its lock, as git was about to: while its lock was there, nobody else
        moved it.
        """
        lock.place.replace(lock.place.with_suffix(""))

    def give_up(self, lock: CutOff) -> None:
        with suppress(FileNotFoundError):
            lock.place.unlink()

    def tips(self) -> Tips:
        """Return the tips of all open gates."""
        return Tips(self.git, OPEN)


def packed_names(file: Path, start: str) -> set[str]:
    """Return the names in git's file of packed refs that begin so: it has a line for each, with its id and its name."""
    try:
        packed = file.read_bytes()
    except FileNotFoundError:
        return set()
    found, wanted = set(), os.fsencode(f" {start}")
    at = packed.find(wanted)
    while at >= 0:
        end = packed.find(b"\n", at)
        found.add(packed[at + 1 : end].decode("utf-8", "surrogateescape"))
        at = packed.find(wanted, end)
    return {name for name in found if "/" not in name[len(start) :]}


def with_refs(packed: bytes, new: Mapping[str, str]) -> bytes | None:
    """Return git's file of packed refs with these refs as well, in its order.

    None where it is in another form, or has one of them. It has a line for each ref, with id and name; below a tag's,
    after `^`, the object that the tag stands for.
    """
    lines = packed_lines(packed)
    if lines is None:
        return None
    added = {os.fsencode(ref): os.fsencode(f"{oid} {ref}\n") for ref, oid in new.items()}
    if not lines.keys().isdisjoint(above(added) | added.keys()) or not added.keys().isdisjoint(above(lines)):
        return None
    lines |= added
    return PACKED_HEAD + b"".join(lines[name] for name in sorted(lines))


def packed_lines(packed: bytes) -> dict[bytes, bytes] | None:
    """Return the lines of git's file of packed refs, by name; None where it is not just as git writes it.

    Of another one git may read nothing at all, or not each line: it searches in a file that says that it is sorted.
    """
    found = re.findall(_PACKED_LINE, packed)
    lines = {name: line for line, name in found}
    whole = PACKED_HEAD + b"".join(lines.values()) == packed
    return lines if whole and len(lines) == len(found) and list(lines) == sorted(lines) else None


def above(names: Iterable[bytes]) -> set[bytes]:
    """Return the folders that refs of these names are in: no ref has such a name."""
    found: set[bytes] = set()
    folders = {name.rpartition(b"/")[0] for name in names}
    while folders:
        found |= folders
        folders = {folder.rpartition(b"/")[0] for folder in folders if b"/" in folder}
    return found


def any_loose(common_dir: Path, refs: Iterable[str]) -> bool:
    """Return whether one of these refs has a file of its own, or somebody is about to write one."""
    there: dict[str, set[str]] = {}
    for ref in refs:
        folder, _, name = ref.rpartition("/")
        if folder not in there:
            there[folder] = set()
            with suppress(FileNotFoundError), os.scandir(common_dir / folder) as entries:
                there[folder] = {entry.name for entry in entries}
        if name in there[folder] or f"{name}.lock" in there[folder]:
            return True
    return False


class Update(NamedTuple):
    """One ref of a push: its old and its new value. None: the ref is not there."""

    old: str | None
    new: str | None
    ref: str


# Larger ones are given back to the system each time, and taking them anew costs as much as reading them.
CHUNK = 1 << 16
PIPE = 1 << 20
# No tip comes near. Of a larger object, which anybody can push there, only its beginning is kept.
MOST_TIP = 1 << 22
KEPT = 1 << 12


class Tips:
    """Reader of tips. Git begins when it is made, and it is read once."""

    def __init__(self, git: Git, folder: str) -> None:
        self.mark = os.urandom(12).hex().encode()
        names = "--format=%(objectname) %(refname)"
        self.refs = git.pipe("for-each-ref", names, folder.rstrip("/"), stdin=subprocess.DEVNULL)
        self.objects = git.pipe("cat-file", "--buffer", batch_form(self.mark), stdin=self.refs.stdout)
        if self.refs.stdout is not None:
            self.refs.stdout.close()
        widen(self.objects.stdout)

    def runs(self) -> Iterator[bytes]:
        """Yield whole tips, many at a time; each begins with a line that begins with the mark."""
        rest, out = b"", self.objects.stdout
        try:
            while chunk := out.read(CHUNK) if out else b"":
                known = len(rest) - len(self.mark)
                rest += chunk
                cut = rest.rfind(self.mark, max(known, 0))
                if cut > 0:
                    yield checked_run(rest[:cut], self.mark)
                    rest = rest[cut:]
                elif len(rest) > MOST_TIP:
                    rest = rest[:KEPT] + rest[-len(self.mark) :]
            if rest:
                yield checked_run(rest, self.mark)
            codes = [self.refs.wait(), self.objects.wait()]
        finally:
            self.close()
        if any(codes):
            code = next(filter(None, codes))  # below zero where a signal ended it
            raise GitFailed(f"git failed to list the gates: exit {code}", status=code)

    def close(self) -> None:
        """End git, also before all was read: nobody waits for the rest."""
        for running in (self.refs, self.objects):
            if running.poll() is None:
                running.kill()
                running.wait()
        if self.objects.stdout is not None:
            self.objects.stdout.close()


def batch_form(mark: bytes) -> str:
    """Return the format in which `cat-file` prints tips: before each a line that begins with the mark. Asked
    with `COMMIT REF`.
    """
    return f"--batch={mark.decode()} %(rest) %(objecttype) %(objectsize) %(objectname)"


def checked_run(run: bytes, mark: bytes) -> bytes:
    """Return tips that git printed, after a check that the first of them was there."""
    if not run.startswith(mark):
        raise absent(run)
    return run


def widen(pipe: IO[bytes] | None) -> None:
    """Let git go on while our own code is being loaded: as it comes, a pipe is full after a hundred tips."""
    with suppress(ImportError, OSError):  # it cannot be done everywhere, and a user may have no more of them
        import fcntl

        if pipe is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE)
