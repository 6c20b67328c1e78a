"""Store: some files of a working tree stand for a while as another commit has them, and git does not look at them.

To git they are outside a sparse checkout, and their places ignored: it commits what the index has, and merges, rebases and
stashes without a look at the files. The index itself is not changed, and the tree's own files are put aside as they are
(`store.work.aside`), so that there is nothing of it that could be committed, or lost.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ...errors import GitFailed, WorkFailed
from .. import take_lock
from ..git import Git, Repository
from ..git.refs import HEAD, read_ref
from . import lstat
from .aside import (
    AsideNote,
    Entries,
    Entry,
    Stood,
    clear,
    files_of_commit,
    index_entries,
    index_lines,
    is_folder,
    is_standing,
    load_note,
    look_of,
    looks_of,
    make_folder,
    on_folders,
    put_file,
    save_note,
    take_away,
)
from .snapshot import scratch_index, wait_for_lock

EXCLUDE, CONFIG = "exclude", "config"
SPECIAL = b"\\*?["
UNWRITABLE = b"\r\n"  # no pattern can say them


def git_settings(there: Repository) -> list[tuple[str, str]]:
    """Return git configuration for whoever works there meanwhile. It counts in this working tree alone, and while
    files stand.

    Without it (a tool that starts git with an empty environment) git refuses more: to merge, to switch. And it finds
    the files new that the tree's own side does not have.
    """
    if not is_standing(there):
        return []
    only = re.sub(r"([\\\\*?\[])", r"\\\1", str(there.git_dir))
    return [(f"includeIf.gitdir:{only}.path", str(there.standing_dir / CONFIG))]


def hide(there: Repository, stood: Sequence[Stood]) -> None:
    """Put files outside of the sparse checkout, and have git ignore them."""
    lines = [b"/" + _escaped(one.path) for one in stood]
    said = patterns(there) if _is_sparse(there) else None
    place = _place(there)
    place.parent.mkdir(exist_ok=True)
    before = (said if said is not None else "/*\n").encode("utf-8", "surrogateescape")
    _replace(place, before.rstrip(b"\n") + b"\n" + b"".join(b"!" + line + b"\n" for line in lines))
    ignored = _persons_excludes(there) + b"\n" + b"".join(line + b"\n" for line in lines)
    exclude, config = there.standing_dir / EXCLUDE, there.standing_dir / CONFIG
    exclude.write_bytes(ignored)
    for key, value in (
        ("core.sparseCheckout", "true"),
        ("core.sparseCheckoutCone", "false"),
        ("sparse.expectFilesOutsideOfPatterns", "true"),
        ("core.excludesFile", str(exclude)),
    ):
        there.git.run("config", "--file", str(config), key, value)
    feed(
        there.git,
        "update-index",
        "--skip-worktree",
        "-z",
        "--stdin",
        paths=[o.path for o in stood if o.index],
    )


def let_git_look_again(there: Repository, note: AsideNote) -> None:
    """Let git look at all of it again, and at the rest as somebody may have set it meanwhile."""
    (there.standing_dir / CONFIG).unlink(missing_ok=True)
    place, said = _place(there), patterns(there)
    if _is_sparse(there) and said is not None:
        ours = {b"!/" + _escaped(one.path) for one in note.stood}
        lines = said.encode("utf-8", "surrogateescape").split(b"\n")
        _replace(place, b"\n".join(line for line in lines if line not in ours))
    elif note.patterns is not None:
        _replace(place, note.patterns.encode("utf-8", "surrogateescape"))
    else:
        place.unlink(missing_ok=True)
    stood = {one.path for one in note.stood}
    held = tagged(there.git, b"S") - stood
    # A file that was renamed meanwhile took its mark along.
    stored = {one.index for one in note.stood if one.index}
    renamed = {path for path, entry in index_entries(there.git, held).items() if entry in stored}
    own = {one.path for one in note.stood if not one.hidden}
    # Held back by patterns that somebody set meanwhile, which were ours to end.
    missing = set() if _is_sparse(there) else {path for path in held if lstat(there.place, path) is None}
    shown = {*index_entries(there.git, own), *renamed, *missing}
    feed(there.git, "update-index", "--no-skip-worktree", "-z", "--stdin", paths=shown)
    feed(there.git, "checkout-index", "-f", "-z", "--stdin", paths=missing)


def patterns(there: Repository) -> str | None:
    """Return the patterns of a sparse checkout, whether it is one or was one; None where there are none."""
    with contextlib.suppress(FileNotFoundError):
        return _place(there).read_text("utf-8", "surrogateescape")
    return None


def _place(there: Repository) -> Path:
    return there.git_dir / "info" / "sparse-checkout"


def _is_sparse(there: Repository) -> bool:
    return there.git.text("config", "--type=bool", "--default=false", "core.sparseCheckout") == "true"


def _replace(place: Path, said: bytes) -> None:
    """Replace a file by renaming, so that nothing is written through a link."""
    new = place.with_name(f"{place.name}.gitgate-new")
    new.unlink(missing_ok=True)
    with new.open("xb") as out:
        out.write(said)
    new.replace(place)


def _persons_excludes(there: Repository) -> bytes:
    asked = there.git.run("config", "--type=path", "core.excludesFile", check=False).out.decode().strip()
    env = there.git.env
    usual = Path(env.get("XDG_CONFIG_HOME") or Path(env.get("HOME", "/"), ".config"), "git", "ignore")
    with contextlib.suppress(OSError):
        return (Path(asked) if asked else usual).read_bytes()
    return b""


def _escaped(path: bytes) -> bytes:
    """Return a pattern that means this path alone."""
    said = b"".join(
        b"?" if c in UNWRITABLE else b"\\" + bytes([c]) if c in SPECIAL else bytes([c]) for c in path
    )
    return said[:-1] + b"\\ " if said.endswith(b" ") else said


def tagged(git: Git, tag: bytes) -> set[bytes]:
    entries = git.out("ls-files", "-z", "-t").split(b"\0")
    return {entry[2:] for entry in entries if entry[:1] == tag}


def feed(git: Git, *command: str, paths: Iterable[bytes]) -> None:
    fed = b"".join(path + b"\0" for path in paths)
    if fed:
        git.run(*command, input=fed)


LOCKED = "files of it stand for others while an agent works there (git gate)"
LONGEST_WAIT = 60.0


def put_on(there: Repository, stand: Mapping[bytes, Entry | None]) -> None:
    """Let these files stand in the tree; None: no file stands there."""
    if stand:
        with _alone(there):
            _put_on(there, stand)


def take_off(there: Repository) -> tuple[bytes, ...]:
    """Take off the files that stand. A file that somebody wrote meanwhile stays as they wrote it; such files are
    returned.

    The tree's own file comes back, as it was, or as a merge or a checkout has made it since.
    """
    if not there.standing_lock.exists():
        return ()
    with _alone(there):
        return _take_off(there)


@contextlib.contextmanager
def _alone(there: Repository) -> Iterator[None]:
    """Take turns: an agent's question may be saved just when its runner takes all files off."""
    until = time.monotonic() + LONGEST_WAIT
    while (number := take_lock(there.standing_lock)) is None:
        if time.monotonic() > until:
            raise WorkFailed(
                f"another process has changed which files stand in {there.place} for a minute",
                hint=f"let it finish; who it is says: fuser {there.standing_lock}",
            )
        time.sleep(0.02)
    try:
        wait_for_lock(there)
        yield
    finally:
        os.close(number)


def _put_on(there: Repository, stand: Mapping[bytes, Entry | None]) -> None:
    folder = make_folder(there)
    theirs = {path: entry for path, entry in stand.items() if entry}
    looks = looks_of(there, theirs, folder / "theirs")
    index, head = index_entries(there.git, stand), _at_head(there.git, stand)
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
    save_note(there, AsideNote(stood, patterns(there), _lock_tree(there)))
    hide(there, stood)
    for one in stood:
        if one.own is not None:
            take_away(there.place, one.path, folder / "own" / one.own)
    for path in looks:
        put_file(folder / "theirs" / os.fsdecode(path), there.place, path)


def _take_off(there: Repository) -> tuple[bytes, ...]:
    note = load_note(there)
    if note is None:
        return ()
    let_git_look_again(there, note)
    now, own = index_entries(there.git, {one.path for one in note.stood}), there.standing_dir / "own"
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
    """Put the tree's own files back for as long as the context lasts, for whoever saves its work."""
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
    """Put the tree's own file back, or return its path where the index's is to be checked out, because git has
    moved on.
    """
    moved_on = now != one.index
    if one.own is None:
        return [one.path] if moved_on and now else []
    if moved_on and one.committed:
        return [one.path] if now else []
    put_file(own / one.own, there.place, one.path)
    return []


def _keep_beside(there: Repository, one: Stood, own: Path) -> None:
    """Save a file of ours that was nowhere else next to what somebody wrote, in the nearest folder that still is
    one.
    """
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
                put_file(own / one.own, there.place, beside)
                return


def _lock_tree(there: Repository) -> bool:
    """Let nobody remove the working tree, which looks clean to git; return whether it was not locked before."""
    if there.git_dir == there.common_dir:
        return False
    try:
        with (there.git_dir / "locked").open("x", encoding="ascii") as out:
            out.write(LOCKED)
    except FileExistsError:
        return False
    return True


def _as_stored(there: Repository, paths: Iterable[bytes], index: Entries) -> Entries:
    """Return the entries that git would store of those files that the index has."""
    present = [path for path in paths if path in index and look_of(there.place, path) is not None]
    if not present:
        return {}
    with scratch_index(there, copied=False) as scratch:
        scratch.index_info(index_lines({path: index[path] for path in present}))
        try:
            scratch.add(present)
        except GitFailed:
            return {}  # Nothing is known to be committed, so that all of it comes back as it was.
        return index_entries(there.git, present, {"GIT_INDEX_FILE": str(scratch.index)})


def _at_head(git: Git, paths: Iterable[bytes]) -> Entries:
    wanted = set(paths)
    head = read_ref(git, HEAD)
    return {} if head is None else files_of_commit(git, head, lambda path: path in wanted)
