"""Store: some paths of a working tree are outside of what git looks at: of a sparse checkout, and ignored.

All of it stands in files beside the index, which whoever works there is pointed at by one setting in the environment; it
counts in this working tree alone, and only while they are there.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from .aside import Note, Stood, is_standing
from .differing import entries_of
from .git import Git
from .leftout import lstat
from .repository import Repository

EXCLUDE, CONFIG = "exclude", "config"
SPECIAL = b"\\*?["
UNWRITABLE = b"\r\n"  # no pattern can say them


def settings(there: Repository) -> list[tuple[str, str]]:
    """Git configuration for whoever works there meanwhile. It counts in this working tree alone, and while files stand.

    Without it (a tool that starts git with an empty environment) git refuses more: to merge, to switch. And it finds the files
    new that the tree's own side does not have.
    """
    if not is_standing(there):
        return []
    only = re.sub(r"([\\\\*?\[])", r"\\\1", str(there.git_dir))
    return [(f"includeIf.gitdir:{only}.path", str(there.standing_dir / CONFIG))]


def hide(there: Repository, stood: Sequence[Stood]) -> None:
    """Outside of the sparse checkout, and ignored."""
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


def show(there: Repository, note: Note) -> None:
    """Git looks at all of it again, and at the rest as somebody may have told it to meanwhile."""
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
    renamed = {path for path, entry in entries_of(there.git, held).items() if entry in stored}
    own = {one.path for one in note.stood if not one.hidden}
    # Held back by patterns that somebody set meanwhile, which were ours to end.
    missing = set() if _is_sparse(there) else {path for path in held if lstat(there.place, path) is None}
    shown = {*entries_of(there.git, own), *renamed, *missing}
    feed(there.git, "update-index", "--no-skip-worktree", "-z", "--stdin", paths=shown)
    feed(there.git, "checkout-index", "-f", "-z", "--stdin", paths=missing)


def patterns(there: Repository) -> str | None:
    """What is written of a sparse checkout, whether it is one or was one; None where nothing is."""
    with contextlib.suppress(FileNotFoundError):
        return _place(there).read_text("utf-8", "surrogateescape")
    return None


def _place(there: Repository) -> Path:
    return there.git_dir / "info" / "sparse-checkout"


def _is_sparse(there: Repository) -> bool:
    return there.git.text("config", "--type=bool", "--default=false", "core.sparseCheckout") == "true"


def _replace(place: Path, said: bytes) -> None:
    """By renaming, so that nothing is written through a link."""
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
    """As a pattern that means this path alone."""
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
