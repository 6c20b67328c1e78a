"""Hard cases of partial work: each makes a state of a working tree that the obvious snapshot gets wrong.

Tests of taking and of restoring run over the same cases.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from gitgate.store.git import Repository
from gitgate.store.work.restore import Worktree, open_worktree
from gitgate.store.work.snapshot import Snapshot, take
from support.testbed.repositories import Clone, run_git

AUTHOR = ("gitgate", "gitgate@example.org")
AT = 1_700_000_000


def snap(clone: Clone | Repository, *, untracked: bool = True, include: tuple[str, ...] = ()) -> Snapshot:
    repo = clone if isinstance(clone, Repository) else clone.repository
    return take(repo, at=AT, author=AUTHOR, untracked=untracked, include=include)


def reopen(
    clone: Clone, snapshot: Snapshot, directory: Path, *, trusted: bool = True, detach: bool = False
) -> Worktree:
    return open_worktree(
        clone.repository,
        base=snapshot.base,
        staged=snapshot.staged,
        work=snapshot.work,
        directory=directory,
        branch=snapshot.branch,
        fallback_branch="gate/7k2f",
        trusted=trusted,
        detach=detach,
    )


def status(place: Path) -> list[bytes]:
    """Everything that git says differs, index and working tree apart, with modes and blobs."""
    how = ("--porcelain=v2", "-z", "--no-renames", "--untracked-files=all")
    # Without the lock `status` would write a refreshed index, and the test would see its own hand.
    out = run_git("--no-optional-locks", "status", *how, cwd=place)
    return sorted(record for record in out.split(b"\0") if record)


def listing(top: Path) -> dict[str, tuple[str, bytes]]:
    """Every file of a working tree: what kind, and what is in it."""
    found: dict[str, tuple[str, bytes]] = {}
    for directory, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name != ".git"]
        for name in (*files, *folders):
            path = Path(directory, name)
            shown = str(path.relative_to(top))
            if path.is_symlink():
                found[shown] = ("link", os.fsencode(path.readlink()))
            elif path.is_file() and name != ".git":
                found[shown] = ("program" if path.stat().st_mode & 0o100 else "file", path.read_bytes())
            elif path.exists() and not path.is_dir() and name != ".git":
                found[shown] = ("other", b"")
    return found


def fingerprint(clone: Clone) -> dict[str, object]:
    """All that a snapshot must leave as it is: every file of the repository but its objects, with its times."""
    git_dir = clone.repository.git_dir
    found: dict[str, object] = {"status": status(clone.path), "files": listing(clone.path)}
    for room in {git_dir, clone.repository.common_dir}:
        for path in room.rglob("*"):
            if path.is_file() and "objects" not in path.relative_to(room).parts:
                # `status` of this very test reads a split index, and git notes that on its shared part.
                when = 0 if path.name.startswith("sharedindex") else path.stat().st_mtime_ns
                found[str(path)] = (path.read_bytes(), when)
    return found


def _plain(clone: Clone) -> None:
    """Staged, unstaged, both on one file, untracked, deleted, deleted in the index."""
    clone.commit(a="a\n", b="b\n", c="c\n", d="d\n", e="e\n")
    clone.write("a", "staged\n")
    clone.git("add", "a")
    clone.write("b", "unstaged\n")
    clone.write("c", "staged\n")
    clone.git("add", "c")
    clone.write("c", "staged, then edited\n")
    (clone.path / "d").unlink()
    clone.git("rm", "-q", "--cached", "e")
    clone.write("deep/er/new", "untracked\n")
    clone.write("added", "staged new\n")
    clone.git("add", "added")


def _added_then_deleted(clone: Clone) -> None:
    clone.write("fleeting", "staged\n")
    clone.git("add", "fleeting")
    (clone.path / "fleeting").unlink()


def _programs_and_links(clone: Clone) -> None:
    clone.write("run", "#!/bin/sh\n")
    clone.commit(target="t\n")
    (clone.path / "run").chmod(0o755)
    clone.write("new-run", "#!/bin/sh\n", executable=True)
    (clone.path / "link").symlink_to("target")
    (clone.path / "broken").symlink_to("nowhere/at/all")
    (clone.path / "to-directory").symlink_to("..")
    (clone.path / "staged-link").symlink_to("target")
    clone.git("add", "staged-link")


def _directory_becomes_link(clone: Clone) -> None:
    """`update-index --remove d/x` refuses: it lies beyond a symbolic link."""
    clone.write("d/x", "x\n")
    clone.write("elsewhere/x", "other\n")
    clone.commit()
    (clone.path / "d/x").unlink()
    (clone.path / "d").rmdir()
    (clone.path / "d").symlink_to("elsewhere")


def _staged_beneath_what_becomes_a_link(clone: Clone) -> None:
    """One link leads to itself, the other to a file of the same name that holds a secret: neither is the staged file."""
    for name in ("loop/x", "d/x"):
        clone.write(name, "staged\n")
        clone.git("add", name)
        (clone.path / name).unlink()
    clone.write("../outside/x", "-----BEGIN RSA PRIVATE " + "KEY-----\n")
    for name, target in (("loop", "loop"), ("d", "../outside")):
        (clone.path / name).rmdir()
        (clone.path / name).symlink_to(target)


def _directory_becomes_file(clone: Clone) -> None:
    clone.write("d/x", "x\n")
    clone.write("d/y", "y\n")
    clone.commit()
    (clone.path / "d/x").unlink()
    (clone.path / "d/y").unlink()
    (clone.path / "d").rmdir()
    clone.write("d", "now a file\n")


def _file_becomes_directory(clone: Clone) -> None:
    clone.commit(f="f\n")
    (clone.path / "f").unlink()
    clone.write("f/inside", "in\n")


def _file_and_link_swap(clone: Clone) -> None:
    clone.write("f", "f\n")
    (clone.path / "l").symlink_to("f")
    clone.commit()
    (clone.path / "f").unlink()
    (clone.path / "l").unlink()
    (clone.path / "f").symlink_to("l")
    clone.write("l", "a file now\n")


def _renamed(clone: Clone) -> None:
    clone.commit(old="one\ntwo\nthree\n", other="o\n")
    clone.git("mv", "old", "new")
    (clone.path / "other").rename(clone.path / "moved-unstaged")


def _intent_to_add(clone: Clone) -> None:
    clone.write("intended", "content\n")
    clone.write("to be/ïntended too", "content\n")
    clone.git("add", "-N", "intended", "to be")
    clone.write("staged", "s\n")
    clone.git("add", "staged")


def _names(clone: Clone) -> None:
    """Names that end a line, look like an option, a pattern or a message's field, or are no text at all."""
    for name in (
        "new\nline",
        'quo"te',
        "-dash",
        "--",
        ":(top)x",
        "*",
        "back\\slash",
        "tab\t",
        " spaces ",
        "ünï/cödé",
    ):
        clone.write(name, name)
    (clone.path / os.fsdecode(b"not-\xff-utf8")).write_text("bytes")
    (clone.path / os.fsdecode(b"dir-\xfe")).mkdir()
    (clone.path / os.fsdecode(b"dir-\xfe/in\xff")).write_text("bytes")
    clone.write("Intent-to-add: README\nUnmerged: x", "forged field\n")
    clone.git("add", "-N", "--", "Intent-to-add: README\nUnmerged: x", os.fsdecode(b"not-\xff-utf8"))
    clone.git("--literal-pathspecs", "add", "--", "*", "-dash")


def _detached(clone: Clone) -> None:
    clone.commit(a="a\n")
    clone.git("checkout", "-q", "--detach")
    clone.write("a", "changed\n")
    clone.write("n", "new\n")


def _merge(clone: Clone) -> None:
    """A content conflict, one of delete and modify, and one side resolved already."""
    clone.commit(both="base\n", gone="base\n", kept="base\n", solved="base\n")
    clone.git("checkout", "-q", "-b", "side")
    clone.commit(both="theirs\n", gone="theirs\n", new="theirs\n", solved="theirs\n", twice="theirs\n")
    clone.git("rm", "-q", "kept")
    clone.commit("side goes on")
    clone.git("checkout", "-q", "main")
    clone.git("rm", "-q", "gone")
    clone.commit("ours", both="ours\n", kept="ours\n", solved="ours\n", twice="ours\n")
    clone.git("merge", "-q", "side", check=False)
    clone.write("solved", "solved\n")
    clone.git("add", "solved")
    clone.write("extra", "untracked\n")


def _merge_without_conflict(clone: Clone) -> None:
    clone.commit(a="a\n")
    clone.git("checkout", "-q", "-b", "side")
    clone.commit(b="theirs\n")
    clone.git("checkout", "-q", "main")
    clone.commit(c="ours\n")
    clone.git("merge", "-q", "--no-commit", "side")


def _rebase(clone: Clone) -> None:
    clone.commit(f="base\n")
    clone.git("checkout", "-q", "-b", "topic")
    clone.commit(f="topic\n")
    clone.git("checkout", "-q", "main")
    clone.commit(f="main\n")
    clone.git("checkout", "-q", "topic")
    clone.git("rebase", "-q", "main", check=False)


def _crlf(clone: Clone) -> None:
    """`safecrlf = true` dies on mixed line ends; `autocrlf` must be applied, as git itself would."""
    clone.commit(unix="one\ntwo\n")
    clone.git("config", "core.autocrlf", "true")
    clone.git("config", "core.safecrlf", "true")
    clone.write("unix", "one\r\ntwo\r\nthree\r\n")
    clone.write("windows", "one\r\ntwo\r\n")
    clone.write(".gitattributes", "*.bin -text\r\n")
    (clone.path / "README").unlink()
    clone.git("checkout", "-q", "README")
    clone.write("raw.bin", b"\r\n\n\r\0")


def _filter(clone: Clone) -> None:
    clone.git("config", "filter.swap.clean", "tr a-z n-za-m")
    clone.git("config", "filter.swap.smudge", "tr a-z n-za-m")
    clone.git("config", "filter.swap.required", "true")
    clone.write(".gitattributes", "*.swapped filter=swap\n")
    clone.write("old.swapped", "hello\n")
    clone.commit()
    clone.write("old.swapped", "changed\n")
    clone.write("new.swapped", "brand new\n")
    clone.write("staged.swapped", "staged\n")
    clone.git("add", "staged.swapped")


def _sparse(clone: Clone) -> None:
    """Naive: a path outside the cone counts as deleted, or what was edited there is lost on the way back."""
    for name in ("in/a", "out/b", "out/c", "out/deep/d"):
        clone.write(name, f"{name}\n")
    clone.commit()
    clone.git("sparse-checkout", "set", "--cone", "in")
    clone.write("out/b", "edited outside\n")
    clone.write("in/a", "edited inside\n")
    clone.write("in/new", "new\n")
    clone.write("out/new", "staged outside\n")
    clone.git("add", "--sparse", "out/new")


def _sparse_index(clone: Clone) -> None:
    _sparse(clone)
    clone.git("rm", "-q", "--sparse", "-f", "out/new")
    (clone.path / "out/b").unlink()
    clone.git("sparse-checkout", "set", "--cone", "--sparse-index", "in")
    clone.write("in/a", "edited again\n")


def _split_index(clone: Clone) -> None:
    clone.commit(a="a\n", b="b\n")
    clone.git("config", "core.splitIndex", "true")
    clone.git("update-index", "--split-index")
    clone.write("a", "changed\n")
    clone.write("n", "new\n")
    clone.git("add", "n")
    clone.write("b", "unstaged\n")


def _assume_unchanged(clone: Clone) -> None:
    clone.commit(a="a\n", b="b\n")
    clone.git("update-index", "--assume-unchanged", "b")
    clone.write("a", "changed\n")


def _ignored(clone: Clone) -> None:
    clone.write(".gitignore", "*.log\nbuild/\n")
    clone.commit()
    clone.write("n", "new\n")
    clone.write("staged.log", "forced into the index\n")
    clone.git("add", "-f", "staged.log")


def _many(clone: Clone) -> None:
    for n in range(300):
        clone.write(f"d{n % 7}/f{n}", f"{n}\n")
    clone.commit()
    for n in range(0, 300, 3):
        clone.write(f"d{n % 7}/f{n}", "changed\n")


def _clean(clone: Clone) -> None:
    clone.commit(a="a\n")


CASES: dict[str, Callable[[Clone], None]] = {
    name.removeprefix("_").replace("_", " "): case
    for name, case in list(globals().items())
    if name.startswith("_") and callable(case) and not name.startswith("__")
}
