"""Store: some files of a working tree stand for a while as another commit has them, and git does not look at them.

To git they are outside a sparse checkout, and their places ignored: it commits what the index has, and merges, rebases and
stashes without a look at the files. The index itself is not changed, and the tree's own files are put aside as they are
(`store.aside`), so that there is nothing of it that could be committed, or lost.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..errors import GitFailed, WorkFailed
from .aside import (
    Entry,
    Note,
    Stood,
    clear,
    is_folder,
    is_standing,
    load_note,
    look_of,
    make_folder,
    on_folders,
    put,
    save_note,
    take_away,
)
from .differing import Entries, entries_of, lines_of, listed, looks_of
from .git import Git
from .hiding import feed, hide, patterns, show, tagged
from .leftout import lstat
from .repository import Repository
from .scratch import scratch_index, wait_for_lock

LOCKED = "files of it stand for others while an agent works there (git gate)"
LONGEST_WAIT = 60.0


def put_on(there: Repository, stand: Mapping[bytes, Entry | None]) -> None:
    """Let these files stand as said; None is that no file does."""
    if stand:
        with _alone(there):
            _put_on(there, stand)


def take_off(there: Repository) -> tuple[bytes, ...]:
    """Undo that. A file that somebody wrote meanwhile stays as they wrote it; such files are returned.

    What stood there goes; the tree's own file comes back, as it was, or as a merge or a checkout has made it since.
    """
    if not there.standing_lock.exists():
        return ()
    with _alone(there):
        return _take_off(there)


@contextlib.contextmanager
def _alone(there: Repository) -> Iterator[None]:
    """One at a time: an agent's question may be saved just when its runner takes all off."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    number = os.open(there.standing_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        until = time.monotonic() + LONGEST_WAIT
        while True:
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > until:
                    raise WorkFailed(
                        f"another process has changed which files stand in {there.place} for a minute",
                        hint=f"let it finish; who it is says: fuser {there.standing_lock}",
                    ) from None
            time.sleep(0.02)
        wait_for_lock(there)
        yield
    finally:
        os.close(number)


def _put_on(there: Repository, stand: Mapping[bytes, Entry | None]) -> None:
    folder = make_folder(there)
    theirs = {path: entry for path, entry in stand.items() if entry}
    looks = looks_of(there, theirs, folder / "theirs")
    index, head = entries_of(there.git, stand), _at_head(there.git, stand)
    stored, hidden = _as_stored(there, stand, index), tagged(there.git, b"S")
    stood = tuple(
        Stood(
            path,
            str(number) if look_of(there.place, path) is not None else None,
            stored.get(path) is not None and stored.get(path) == head.get(path),
            index.get(path),
            stand[path],
            looks.get(path),
            path in hidden,
        )
        for number, path in enumerate(stand)
    )
    save_note(there, Note(stood, patterns(there), _lock_tree(there)))
    hide(there, stood)
    for one in stood:
        if one.own is not None:
            take_away(there.place, one.path, folder / "own" / one.own)
    for path in looks:
        put(folder / "theirs" / os.fsdecode(path), there.place, path)


def _take_off(there: Repository) -> tuple[bytes, ...]:
    note = load_note(there)
    if note is None:
        return ()
    show(there, note)
    now, own = entries_of(there.git, {one.path for one in note.stood}), there.standing_dir / "own"
    paths = {one.path for one in note.stood}
    written: set[bytes] = set()
    made: list[bytes] = []
    # What is in a folder before the folder: in its place there may have been a file.
    for one in reversed(note.stood):
        look = look_of(there.place, one.path)
        if one.own is not None and not os.path.lexists(own / one.own):
            continue  # It was never moved, or is back already.
        free = on_folders(there.place, one.path, paths) and not is_folder(there.place, one.path)
        if not free or look not in (None, one.seen):
            written.add(one.path)
        elif look is not None:
            take_away(there.place, one.path)
    for one in note.stood:
        if one.path in written:
            _keep_beside(there, one, own)
        elif look_of(there.place, one.path) is None:
            made += _bring_back(there, one, now.get(one.path), own)
    feed(there.git, "checkout-index", "-f", "-z", "--stdin", paths=made)
    there.git.run("update-index", "-q", "--refresh", check=False)
    clear(there.standing_dir)
    if note.locked:
        (there.git_dir / "locked").unlink(missing_ok=True)
    return tuple(sorted(written))


@contextlib.contextmanager
def suspended(there: Repository) -> Iterator[None]:
    """The tree's own files while this lasts, for whoever saves its work."""
    with _alone(there):
        note = load_note(there) if is_standing(there) else None
        if note is None:
            yield
            return
        written = _take_off(there)
        try:
            yield
        finally:
            again = {one.path: one.theirs for one in note.stood if one.path not in written}
            if again:
                _put_on(there, again)


# Taking back


def _bring_back(there: Repository, one: Stood, now: Entry | None, own: Path) -> list[bytes]:
    """The tree's own file; the paths that are to be as the index has them instead, because git has moved on."""
    moved_on = now != one.index
    if one.own is None:
        return [one.path] if moved_on and now else []
    if moved_on and one.committed:
        return [one.path] if now else []
    put(own / one.own, there.place, one.path)
    return []


def _keep_beside(there: Repository, one: Stood, own: Path) -> None:
    """What was nowhere else is put beside what somebody wrote, in the nearest folder that is one yet."""
    if one.own is None or one.committed or not os.path.lexists(own / one.own):
        return
    if look_of(own, one.own.encode()) == look_of(there.place, one.path):
        return  # The same is there, whoever wrote it.
    parts = one.path.split(b"/")
    for depth in range(len(parts) - 1, -1, -1):
        name = b"/".join((*parts[:depth], b"-".join(parts[depth:])[-200:]))
        for number in range(1000):
            beside = name + b".own" + (str(number).encode() if number else b"")
            if on_folders(there.place, beside) and lstat(there.place, beside) is None:
                put(own / one.own, there.place, beside)
                return


def _lock_tree(there: Repository) -> bool:
    """Let nobody remove the working tree, which looks clean to git; whether it was not locked before."""
    if there.git_dir == there.common_dir:
        return False
    try:
        with (there.git_dir / "locked").open("x", encoding="ascii") as out:
            out.write(LOCKED)
    except FileExistsError:
        return False
    return True


def _as_stored(there: Repository, paths: Iterable[bytes], index: Entries) -> Entries:
    """What git would store of those files that the index has."""
    present = [path for path in paths if path in index and look_of(there.place, path) is not None]
    if not present:
        return {}
    with scratch_index(there, copied=False) as scratch:
        scratch.index_info(lines_of({path: index[path] for path in present}))
        try:
            scratch.add(present)
        except GitFailed:
            return {}  # Nothing is known to be committed, so that all of it comes back as it was.
        return entries_of(there.git, present, {"GIT_INDEX_FILE": str(scratch.index)})


def _at_head(git: Git, paths: Iterable[bytes]) -> Entries:
    wanted = set(paths)
    return (
        listed(git, "HEAD", lambda path: path in wanted)
        if git.ok("rev-parse", "-q", "--verify", "HEAD")
        else {}
    )
