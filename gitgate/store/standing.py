"""Store: some files of a working tree stand for a while as another commit has them, and git does not look at them.

To git they are outside a sparse checkout, and their places ignored: it commits what the index has, and merges, rebases and
stashes without a look at the files. The index itself is not changed, and the tree's own files are put aside as they are
(`store.aside`), so that there is nothing of it that could be committed, or lost.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

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
from .leftout import lstat
from .repository import Repository
from .scratch import scratch_index

EXCLUDE = "exclude"
SPECIAL = b"\\*?["


def put_on(there: Repository, stand: Mapping[bytes, Entry | None]) -> None:
    """Let these files stand as said; None is that no file does."""
    if not stand:
        return
    folder = make_folder(there)
    theirs = {path: entry for path, entry in stand.items() if entry}
    looks = looks_of(there, theirs, folder / "theirs")
    index, head = entries_of(there.git, stand), _at_head(there.git, stand)
    stored = _as_stored(there, stand, index)
    stood = tuple(
        Stood(
            path,
            str(number) if look_of(there.place, path) is not None else None,
            stored.get(path) is not None and stored.get(path) == head.get(path),
            index.get(path),
            stand[path],
            looks.get(path),
        )
        for number, path in enumerate(stand)
    )
    save_note(there, Note(stood, _patterns(there)))
    _hide(there, stood)
    for one in stood:
        if one.own is not None:
            take_away(there.place, one.path, folder / "own" / one.own)
    for path in looks:
        put(folder / "theirs" / os.fsdecode(path), there.place, path)


def take_off(there: Repository) -> tuple[bytes, ...]:
    """Undo that. A file that somebody wrote meanwhile stays as they wrote it; such files are returned.

    What stood there goes; the tree's own file comes back, as it was, or as a merge or a checkout has made it since.
    """
    note = load_note(there)
    if note is None:
        return ()
    _show(there, note)
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
    _feed(there.git, "checkout-index", "-f", "-z", "--stdin", paths=made)
    there.git.run("update-index", "-q", "--refresh", check=False)
    clear(there.standing_dir)
    return tuple(sorted(written))


@contextlib.contextmanager
def suspended(there: Repository) -> Iterator[None]:
    """The tree's own files while this lasts, for whoever saves its work."""
    note = load_note(there) if is_standing(there) else None
    if note is None:
        yield
        return
    written = take_off(there)
    try:
        yield
    finally:
        put_on(there, {one.path: one.theirs for one in note.stood if one.path not in written})


def settings(there: Repository) -> list[tuple[str, str]]:
    """Git configuration for whoever works there meanwhile; without it git still commits nothing of it, but may refuse to merge."""
    if not is_standing(there):
        return []
    return [
        ("core.sparseCheckout", "true"),
        ("core.sparseCheckoutCone", "false"),
        ("sparse.expectFilesOutsideOfPatterns", "true"),
        ("core.excludesFile", str(there.standing_dir / EXCLUDE)),
    ]


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
    """What was nowhere else is put beside what somebody wrote."""
    if one.own is None or one.committed or not os.path.lexists(own / one.own):
        return
    for number in range(100):
        beside = one.path + b".own" + (str(number).encode() if number else b"")
        if lstat(there.place, beside) is None and on_folders(there.place, beside):
            put(own / one.own, there.place, beside)
            return


def _show(there: Repository, note: Note) -> None:
    """Git looks at all of it again."""
    place = there.git_dir / "info" / "sparse-checkout"
    if note.patterns is None:
        place.unlink(missing_ok=True)
    else:
        place.write_text(note.patterns, "utf-8", "surrogateescape")
    # A file that was renamed meanwhile took its mark along.
    hidden = (
        _tagged(there.git, b"S") if note.patterns is None else {one.path for one in note.stood if one.index}
    )
    _feed(
        there.git,
        "update-index",
        "--no-skip-worktree",
        "-z",
        "--stdin",
        paths=hidden & _tagged(there.git, b"S"),
    )


def _hide(there: Repository, stood: Iterable[Stood]) -> None:
    """Outside of the sparse checkout, and ignored."""
    lines = [b"/" + _escaped(one.path) for one in stood]
    before = _patterns(there)
    place = there.git_dir / "info" / "sparse-checkout"
    place.parent.mkdir(exist_ok=True)
    said = (before if before is not None else "/*\n").encode("utf-8", "surrogateescape")
    place.write_bytes(said.rstrip(b"\n") + b"\n" + b"".join(b"!" + line + b"\n" for line in lines))
    ignored = _persons_excludes(there) + b"\n" + b"".join(line + b"\n" for line in lines)
    (there.standing_dir / EXCLUDE).write_bytes(ignored)
    _feed(
        there.git,
        "update-index",
        "--skip-worktree",
        "-z",
        "--stdin",
        paths=[o.path for o in stood if o.index],
    )


def _patterns(there: Repository) -> str | None:
    """Those of a sparse checkout, if it is one."""
    if there.git.text("config", "--type=bool", "--default=false", "core.sparseCheckout") != "true":
        return None
    with contextlib.suppress(FileNotFoundError):
        return (there.git_dir / "info" / "sparse-checkout").read_text("utf-8", "surrogateescape")
    return None


def _persons_excludes(there: Repository) -> bytes:
    asked = there.git.run("config", "--type=path", "core.excludesFile", check=False).out.decode().strip()
    env = there.git.env
    usual = Path(env.get("XDG_CONFIG_HOME") or Path(env.get("HOME", "/"), ".config"), "git", "ignore")
    with contextlib.suppress(OSError):
        return (Path(asked) if asked else usual).read_bytes()
    return b""


def _escaped(path: bytes) -> bytes:
    """As a pattern that means this path alone."""
    said = b"".join(b"\\" + bytes([c]) if c in SPECIAL else bytes([c]) for c in path)
    return said[:-1] + b"\\ " if said.endswith(b" ") else said


def _as_stored(there: Repository, paths: Iterable[bytes], index: Entries) -> Entries:
    """What git would store of those files that the index has."""
    present = [path for path in paths if path in index and look_of(there.place, path) is not None]
    if not present:
        return {}
    with scratch_index(there, copied=False) as scratch:
        scratch.index_info(lines_of({path: index[path] for path in present}))
        scratch.add(present)
        return entries_of(there.git, present, {"GIT_INDEX_FILE": str(scratch.index)})


def _at_head(git: Git, paths: Iterable[bytes]) -> Entries:
    wanted = set(paths)
    return (
        listed(git, "HEAD", lambda path: path in wanted)
        if git.ok("rev-parse", "-q", "--verify", "HEAD")
        else {}
    )


def _tagged(git: Git, tag: bytes) -> set[bytes]:
    entries = git.out("ls-files", "-z", "-t").split(b"\0")
    return {entry[2:] for entry in entries if entry[:1] == tag}


def _feed(git: Git, *command: str, paths: Iterable[bytes]) -> None:
    fed = b"".join(path + b"\0" for path in paths)
    if fed:
        git.run(*command, input=fed)
