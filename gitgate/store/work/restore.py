"""Store: partial work is put back: staged, unstaged and untracked as they were, on a branch that nobody else holds; and compared.
The working trees that a repository has, and which branch the next one may stand on.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote

from ...document import dataclass
from ...errors import GateError, GitFailed, Usage, WorkFailed
from ..git import Git, Repository, discover
from ..git.refs import read_ref
from . import (
    EMPTY_TREE,
    Saved,
    beneath,
    is_id,
    load_saved,
    load_unverified,
    lstat,
    missing_or_failed,
    printable,
)
from .snapshot import Wanted, signals_below, take_wanted

MOST_NAMES = 100
READABLE = 0o644


@dataclass(frozen=True)
class WorkingTree:
    path: Path
    branch: str | None


@dataclass(frozen=True)
class Choice:
    """Branch of a new working tree (None: no branch), whether it is to be made, and what to say to people."""

    branch: str | None
    create: bool = False
    notes: tuple[str, ...] = ()


@contextlib.contextmanager
def in_turn(repo: Repository, *, change: bool) -> Iterator[None]:
    """Make changes one after the other, with no reading meanwhile: git fails on a working tree that another git
    just makes.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    lock = _open_lock(repo.common_dir / "gitgate-worktrees.lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX if change else fcntl.LOCK_SH)
        yield
    finally:
        os.close(lock)


def _open_lock(place: Path) -> int:
    """Open the lock file, one for every account that works in the repository, whatever its umask. To read it is
    enough.
    """
    try:
        lock = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, READABLE)
    except PermissionError as refused:
        try:
            return os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # it could not be made, and that is what to say
            raise refused from None
    if os.fstat(lock).st_mode & READABLE != READABLE:
        with contextlib.suppress(PermissionError):
            os.fchmod(lock, READABLE)
    return lock


def list_worktrees(repo: Repository) -> list[WorkingTree]:
    """List every working tree, with its branch, or the one it is about to return to when its rebase is through."""
    with in_turn(repo, change=False):
        out = repo.git.out("worktree", "list", "--porcelain", "-z")
    found = []
    for block in out.split(b"\0\0"):
        lines = dict(line.partition(b" ")[::2] for line in block.split(b"\0") if line)
        if b"worktree" in lines:
            branch = lines.get(b"branch")
            short = branch and os.fsdecode(branch.removeprefix(b"refs/heads/"))
            found.append(WorkingTree(Path(os.fsdecode(lines[b"worktree"])), short or None))
    return [*found, *_rebasing(repo)]


def _rebasing(repo: Repository) -> list[WorkingTree]:
    found = []
    for git_dir in (repo.common_dir, *sorted((repo.common_dir / "worktrees").glob("*"))):
        for room in ("rebase-merge", "rebase-apply"):
            name = git_dir / room / "head-name"
            if name.is_file():
                branch = name.read_text("utf-8", "surrogateescape").strip().removeprefix("refs/heads/")
                found.append(WorkingTree(_place_of(git_dir), branch))
    return found


def _place_of(git_dir: Path) -> Path:
    pointer = git_dir / "gitdir"
    if not pointer.is_file():
        return git_dir.parent
    return Path(pointer.read_text("utf-8", "surrogateescape").strip()).parent


def choose_branch(repo: Repository, base: str | None, branch: str | None, fallback: str) -> Choice:
    """Return the branch itself where it is free and still at base (or gone); otherwise a new one, and the reason."""
    if branch is None:
        return Choice(None)
    if not _is_branch_name(repo.git, fallback):
        raise Usage(
            f"not a name for a branch: {printable(os.fsencode(fallback))}",
            hint="see: git help check-ref-format",
        )
    held = {tree.branch: tree.path for tree in list_worktrees(repo) if tree.branch}
    shown = printable(os.fsencode(branch))
    if not _is_branch_name(repo.git, branch):
        reason = f"{shown} is not a name for a branch"
    elif branch in held:
        reason = f"branch {shown} is checked out in {held[branch]}"
    else:
        tip = _tip(repo.git, branch)
        if tip == base:
            return Choice(branch, create=base is None)
        if tip is None:
            return Choice(
                branch, create=True, notes=(f"branch {shown} was not here: it was made at the work's base",)
            )
        reason = f"branch {shown} has moved since the question was asked"
    name = _free_name(repo.git, base, fallback, held)
    note = f"{reason}; this work stands on the new branch {name}" + (f" at {base[:10]}" if base else "")
    return Choice(name, create=True, notes=(note,))


def _free_name(git: Git, base: str | None, wanted: str, held: dict[str, Path]) -> str:
    for number in range(1, MOST_NAMES):
        name = wanted if number == 1 else f"{wanted}-{number}"
        if name not in held and _tip(git, name) in (None, base):
            return name
    raise WorkFailed(
        f"every branch from {wanted} to {wanted}-{MOST_NAMES} is taken", hint=f"git branch --list '{wanted}*'"
    )


def _tip(git: Git, branch: str) -> str | None:
    return read_ref(git, f"refs/heads/{branch}")


def _is_branch_name(git: Git, name: str) -> bool:
    plain = bool(name) and not name.startswith("-") and name != "HEAD" and "\0" not in name
    return plain and git.ok("check-ref-format", f"refs/heads/{name}")


def outside(repo: Repository) -> Git:
    """Return a git that runs in no working tree, so that it may remove the one that the caller is in."""
    git = Git(repo.common_dir, without_place(repo.git.env))
    git.env["GIT_DIR"] = str(repo.common_dir)
    return git


def without_place(env: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name not in ("GIT_DIR", "GIT_WORK_TREE")}


PLAIN = {
    "driver": "git merge-file --marker-size=%L -L ours -L base -L theirs %A %O %B",
    "textconv": "cat",
    "command": 'f() { [ $# -lt 7 ] || git --no-pager diff --no-index --no-ext-diff --no-textconv -- "$2" "$5"; :; }; f',
}
PLAIN["external"] = PLAIN["command"]
PATTERN = r"^(merge\..*\.driver|diff\..*\.(textconv|command)|diff\.external)$"


def plain_drivers(git: Git) -> list[tuple[str, str]]:
    """Return, for every driver that is configured, the setting that makes it git's own way."""
    asked = git.run("config", "--null", "--name-only", "--get-regexp", PATTERN, check=False)
    keys = asked.out.decode("utf-8", "surrogateescape").split("\0")
    return [(key, PLAIN[key.rpartition(".")[2]]) for key in sorted(set(keys)) if key]


def as_environment(settings: Sequence[tuple[str, str]], env: Mapping[str, str]) -> dict[str, str]:
    """Return settings as environment, after those that `env` has: they win over every file. Not `-c`: a name may
    hold `=`.
    """
    start = int(env.get("GIT_CONFIG_COUNT") or 0)
    said = {"GIT_CONFIG_COUNT": str(start + len(settings))}
    for number, (key, value) in enumerate(settings, start):
        said |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return said


@dataclass(frozen=True)
class Driver:
    """One `filter.<name>.…` line of the configuration, and the file that holds it."""

    name: str
    origin: str


def list_drivers(git: Git) -> list[Driver]:
    asked = git.run("config", "--null", "--show-origin", "--get-regexp", r"^filter\.", check=False)
    parts = asked.out.decode("utf-8", "surrogateescape").split("\0")
    drivers = []
    for origin, line in zip(parts[::2], parts[1::2], strict=False):
        key = line.split("\n", 1)[0]
        drivers.append(Driver(key.removeprefix("filter.").rpartition(".")[0], origin))
    return drivers


def refused_names(
    git: Git, drivers: Sequence[Driver], *, trusted: bool, tops: Sequence[Path], git_dirs: Sequence[Path]
) -> list[str]:
    """Return the filters that may not run: every one for untrusted work, else those configured inside a working
    tree.
    """
    if not trusted:
        return sorted({driver.name for driver in drivers})
    return sorted({driver.name for driver in drivers if _in_work(git, driver, tops, git_dirs)})


def _in_work(git: Git, driver: Driver, tops: Sequence[Path], git_dirs: Sequence[Path]) -> bool:
    if not driver.origin.startswith("file:"):
        return driver.origin.startswith("blob:")
    file = (git.directory / driver.origin.removeprefix("file:")).resolve()
    in_git = any(file.is_relative_to(place.resolve()) for place in git_dirs)
    return not in_git and any(file.is_relative_to(top.resolve()) for top in tops)


def switched_off(names: Sequence[str], env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment under which git takes these filters for absent.

    An empty `process` is enough: with one, git looks at neither `clean` nor `smudge`, and does not start it.
    """
    return as_environment([(f"filter.{name}.{key}", value) for name in names for key, value in OFF], env)


OFF = (("process", ""), ("smudge", ""), ("clean", ""), ("required", "false"))


# Nothing that a person configured for their own checkouts may change what is put back.
PINNED = ("-c", "submodule.recurse=false", "-c", "core.safecrlf=false")
REFLOG = "gitgate: restored work"
RESUMES_ELSEWHERE = "a {} was in progress where this work was saved; it can be finished only there"


@dataclass(frozen=True)
class Worktree:
    """Working tree that holds saved work. `notes` are for whoever goes on in it; `gate`: whose work it is, where
    that is said.
    """

    directory: Path
    branch: str | None
    new_branch: bool
    notes: tuple[str, ...] = ()
    gate: str = ""


def open_worktree(
    repo: Repository,
    *,
    base: str | None,
    staged: str,
    work: str,
    directory: Path,
    branch: str | None,
    fallback_branch: str,
    detach: bool = False,
    trusted: bool = False,
) -> Worktree:
    """Make a working tree at `directory` with the saved work in it, uncommitted.

    Work is `trusted` when it was saved on this machine: then the filters of the machine's own configuration run.
    Otherwise none does, and filtered files are there as they are stored.
    """
    saved = load_saved(repo.git, base=base, staged=staged, work=work)
    directory = directory.absolute()
    _refuse_occupied(directory)
    try:
        choice = choose_branch(repo, base, None if detach else branch, fallback_branch)
        _forget_missing(repo, directory)
        _add(repo, directory, base or staged)
        return _fill_or_remove(repo, saved, directory, choice, trusted=trusted)
    except GitFailed as failed:
        raise missing_or_failed(failed) from failed
    except OSError as failed:
        place = Path(failed.filename) if isinstance(failed.filename, str) else directory
        elsewhere = directory not in (place, *place.parents)
        hint = (
            f"see who may write there: ls -ld {quote(str(place.parent))}"
            if elsewhere
            else "name another directory"
        )
        raise WorkFailed(f"the work cannot be put into {directory}: {failed}", hint=hint) from failed


def _refuse_occupied(directory: Path) -> None:
    if "\n" in str(directory):
        # Git's own lists of places are lines.
        raise WorkFailed(
            "the name of a working tree's directory has to be one line", hint="name another directory"
        )
    occupied = os.path.lexists(directory) and not (
        directory.is_dir() and not directory.is_symlink() and not any(directory.iterdir())
    )
    if occupied:
        raise WorkFailed(
            f"{directory} is already there",
            hint="git gate worktree ID DIRECTORY with one that is not there yet",
        )


def _forget_missing(repo: Repository, directory: Path) -> None:
    """Unregister the working tree at `directory` if somebody deleted it by hand: else it would be in the way."""
    known = {tree.path for tree in list_worktrees(repo)}
    if directory.resolve() in known and not (directory / ".git").exists():
        _remove(repo, "--force", "--", str(directory.resolve()))


def _add(repo: Repository, directory: Path, start: str) -> None:
    with in_turn(repo, change=True):
        repo.git.run(*PINNED, "worktree", "add", "--no-checkout", "--detach", "--", str(directory), start)


def _remove(repo: Repository, *args: str, check: bool = True) -> None:
    with in_turn(repo, change=True):
        outside(repo).run("worktree", "remove", *args, check=check)


def _fill_or_remove(
    repo: Repository, saved: Saved, directory: Path, choice: Choice, *, trusted: bool
) -> Worktree:
    made: str | None = None
    try:
        there = discover(directory, without_place(repo.git.env))
        made = _make_branch(there.git, saved.base, choice)
        if choice.branch is not None:
            # Without a base the branch is unborn, as it was.
            there.git.run("symbolic-ref", "-m", REFLOG, "HEAD", f"refs/heads/{choice.branch}")
        notes = [*choice.notes, *_fill(repo, there, saved, trusted=trusted)]
    except BaseException:
        _remove(repo, "--force", "--", str(directory), check=False)
        if made:
            repo.git.run("update-ref", "-d", made, saved.base or "", check=False)
        raise
    return Worktree(directory, choice.branch, choice.create, tuple(notes))


def _make_branch(git: Git, base: str | None, choice: Choice) -> str | None:
    """Make the chosen branch's ref; None where there is none to make, or it stands at base already."""
    ref = f"refs/heads/{choice.branch}"
    if base is None or not choice.create or read_ref(git, ref) is not None:
        return None
    git.run("update-ref", "-m", REFLOG, ref, base, "0" * len(base))
    return ref


def _fill(repo: Repository, there: Repository, saved: Saved, *, trusted: bool) -> list[str]:
    notes: list[str] = []
    tops = [tree.path for tree in list_worktrees(repo)]
    git_dirs = [repo.common_dir, there.git_dir]
    refused = refused_names(there.git, list_drivers(there.git), trusted=trusted, tops=tops, git_dirs=git_dirs)
    quiet = switched_off(refused, there.git.env)
    there.git.run(*PINNED, "read-tree", "--reset", "-u", saved.work, env=quiet)
    if saved.staged != saved.work:
        touched = {
            *_changed(there.git, saved.base or saved.staged, saved.work),
            *_changed(there.git, saved.staged, saved.work),
        }
        _bring_out(there, sorted(touched), quiet)
        there.git.run(*PINNED, "read-tree", "--reset", saved.staged, env=quiet)
    _restore_aside(there, saved, quiet)
    if refused and _mentions_filter(there):
        notes.append(
            f"filters were off ({', '.join(refused)}): files that need one are here as they are stored"
        )
    if lstat(there.place, b".gitmodules"):
        notes.append("submodules are not checked out here: git submodule update --init")
    operation = saved.aside.operation
    if operation and not (operation == "merge" and saved.merge_heads):
        notes.append(RESUMES_ELSEWHERE.format(printable(operation.encode("utf-8", "surrogateescape"))))
    return notes


def _changed(git: Git, start: str, end: str) -> list[bytes]:
    """Return the paths that `end` has otherwise than `start`, or that only `end` has."""
    how = ("-r", "-z", "--name-only", "--no-renames", "--diff-filter=d")
    return [path for path in git.out("diff-tree", *how, start, end).split(b"\0") if path]


def _bring_out(there: Repository, changed: Sequence[bytes], quiet: dict[str, str]) -> None:
    """Write what a sparse checkout held back: the agent had changed it, so the agent had it."""
    missing = [path for path in changed if lstat(there.place, path) is None]
    if missing:
        fed = b"".join(path + b"\0" for path in missing)
        how = ("-z", "--ignore-skip-worktree-bits", "--stdin")
        there.git.run(*PINNED, "checkout-index", *how, input=fed, env=quiet)


def _restore_aside(there: Repository, saved: Saved, quiet: dict[str, str]) -> None:
    if saved.aside.unmerged:
        lines = _conflict_lines(there, saved.aside.unmerged)
        there.git.run("update-index", "-z", "--index-info", input=lines)
    wanted = [path for path in saved.aside.intent_to_add if lstat(there.place, path)]
    if wanted:
        known = set(_changed(there.git, saved.staged, saved.work))
        fed = b"".join(path + b"\0" for path in wanted if path in known)
        how = ("--intent-to-add", "--force", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul")
        there.git.run(*PINNED, "add", *how, input=fed, env=quiet)
    if saved.aside.operation == "merge" and saved.merge_heads:
        heads = "".join(f"{head}\n" for head in saved.merge_heads)
        (there.git_dir / "MERGE_HEAD").write_text(heads, "ascii")
        (there.git_dir / "MERGE_MODE").write_text("", "ascii")
        sides = ", ".join(f"'{head[:10]}'" for head in saved.merge_heads)
        (there.git_dir / "MERGE_MSG").write_text(f"Merge commit {sides}\n", "ascii")


def _conflict_lines(there: Repository, conflict: str) -> bytes:
    """Return the entries in conflict as the index has them; stage 0 goes first, a path has either."""
    listed = there.git.out("ls-tree", "-r", "-z", "--full-tree", conflict).split(b"\0")
    staged, cleared = [], {}
    for entry in listed:
        if not entry:
            continue
        about, _, name = entry.partition(b"\t")
        mode, _, oid = about.split(b" ")
        stage, _, path = name.partition(b"/")
        if stage not in (b"1", b"2", b"3") or not path:
            raise WorkFailed(f"the conflict {conflict[:10]} does not hold together", hint="git gate verify")
        cleared[path] = b"000000 %s 0\t%s\0" % (there.zero.encode(), path)
        staged.append(b"%s %s %s\t%s\0" % (mode, oid, stage, path))
    return b"".join([*cleared.values(), *staged])


def _mentions_filter(there: Repository) -> bool:
    """Return whether `.gitattributes` here applies a filter to files. The index is read: the file itself could
    be a link.
    """
    return there.git.ok("grep", "--cached", "-q", "-e", "filter=", "--", ".gitattributes")


def remove_worktree(repo: Repository, directory: Path, *, force: bool = False) -> None:
    """Remove a working tree; its branch stays. Without `force` only where nothing would be lost."""
    try:
        _remove(repo, *(["--force"] if force else []), "--", str(directory.absolute()))
    except GitFailed as failed:
        hint = (
            f"git worktree remove --force {quote(str(directory))}" if not force else "see: git worktree list"
        )
        raise WorkFailed(f"{directory} cannot be removed: {failed.stderr}", hint=hint) from failed


def matches(
    repo_of_directory: Repository, work: str, staged: str, *, untracked: bool | None = None, signals: str = ""
) -> bool:
    """Return whether a directory is still as the agent left it: the same HEAD, and a snapshot of it would be the
    same.
    """
    repo = repo_of_directory
    saved = load_unverified(repo.git, staged=staged, work=work)
    # What was forced into the snapshot (`--include`) has to be looked at again, and looks no different from here.
    forced = frozenset(_changed_new(repo.git, saved))
    wanted = Wanted(
        at=0,
        author=("gitgate", "gitgate@localhost"),
        untracked=saved.aside.untracked if untracked is None else untracked,
        forced=forced,
        included=tuple(sorted(forced)),
        signals=signals_below(repo, signals),
    )
    try:
        now = take_wanted(repo, wanted)
        again = load_saved(repo.git, base=now.base, staged=now.staged, work=now.work)
        return _shape(repo.git, saved) == _shape(repo.git, again)
    except GateError:
        return False


def _changed_new(git: Git, saved: Saved) -> list[bytes]:
    start = saved.base or EMPTY_TREE[len(saved.work)]
    asked = git.out(
        "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A", start, saved.work
    )
    return [path for path in asked.split(b"\0") if path]


def _shape(git: Git, saved: Saved) -> tuple[object, ...]:
    aside = saved.aside
    conflict = git.text("rev-parse", f"{aside.unmerged}^{{tree}}") if aside.unmerged else None
    trees = (saved.base, saved.staged_tree, saved.work_tree, saved.merge_heads, conflict)
    return (*trees, aside.operation, frozenset(aside.intent_to_add))


STAGED_ONLY = b"Staged, and not so in the working tree; it comes back with the work:\n"
THEIR_SIDE = b"In conflict, their side; it comes back with the work:\n"
MOST_ARGUMENTS = 100_000


def diff_whole(
    repo: Repository,
    base: str | None,
    staged: str | None,
    work: str,
    *,
    stat: bool = False,
    cells: int = 80,
) -> bytes:
    """Return the partial work with all that comes back with it.

    Changes that the working tree does not show come first: no length of the rest can push them out of sight.
    """
    try:
        found = beneath(repo.git, base, staged or work, work)
    except GitFailed as failed:
        raise missing_or_failed(failed) from failed

    def part(end: str, paths: Sequence[bytes]) -> bytes:
        return diff(repo, base, end, stat=stat, cells=cells, paths=[os.fsdecode(path) for path in paths])

    parts = []
    if found.staged and staged:
        parts += [STAGED_ONLY, *(part(staged, some) for some in in_parts(found.staged))]
    if found.conflict and (theirs := _their_side(repo.git, found.conflict)):
        parts += [THEIR_SIDE, *(part(theirs, some) for some in in_parts(found.conflicting))]
    return b"".join([*parts, b"\n" if parts else b"", diff(repo, base, work, stat=stat, cells=cells)])


def _their_side(git: Git, conflict: str) -> str | None:
    said = git.run("rev-parse", "--verify", "-q", f"{conflict}:3", check=False)
    return said.out.decode().strip() or None


def in_parts(paths: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Yield as many at a time as a command line takes."""
    part: list[bytes] = []
    size = 0
    for path in paths:
        if part and size + len(path) > MOST_ARGUMENTS:
            yield part
            part, size = [], 0
        part.append(path)
        size += len(path) + 1
    if part:
        yield part


def diff(
    repo: Repository,
    base: str | None,
    work: str,
    *,
    stat: bool = False,
    cells: int = 80,
    color: bool = False,
    paths: Sequence[str] = (),
) -> bytes:
    """Return the partial work as a patch, or a summary of so many cells. No program that attributes or
    configuration name is run.
    """
    start = base or EMPTY_TREE.get(len(work), "")
    for name in (start, work):
        if not is_id(name):
            raise WorkFailed(f"not the full id of a commit: {printable(os.fsencode(name))}")
    try:
        return repo.git.out(
            *("-c", "core.quotePath=false"),  # names as people wrote them; what acts is quoted all the same
            "diff-tree",
            "-r",
            "-M",
            f"--stat={max(cells, 40)}" if stat else "--patch",
            f"--color={'always' if color else 'never'}",
            "--no-ext-diff",
            "--no-textconv",
            "--submodule=short",
            "--ignore-submodules=none",
            start,
            work,
            "--",
            *paths,
        )
    except GitFailed as failed:
        raise missing_or_failed(failed) from failed
