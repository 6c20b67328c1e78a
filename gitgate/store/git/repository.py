"""Store: where the repository is, found by one `rev-parse`; and how its protected branch changed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...document.values import NamedTuple, dataclass
from ...errors import NotARepository
from .process import Git, Started


@dataclass(frozen=True)
class Repository:
    """One repository as seen from one working tree (or from none, when bare)."""

    git: Git
    git_dir: Path
    common_dir: Path
    top: Path | None
    zero: str
    shallow: bool

    @property
    def bare(self) -> bool:
        return self.top is None

    @property
    def place(self) -> Path:
        """Where a person would say that this repository is."""
        return self.top or self.git_dir

    @property
    def standing_dir(self) -> Path:
        """Of this working tree: there while some of its files stand for others (`store.work.standing`)."""
        return self.git_dir / "gitgate-standing"

    @property
    def standing_lock(self) -> Path:
        """There where files of this working tree stood for others once; held by whoever changes that."""
        return self.git_dir / "gitgate-standing.lock"

    @property
    def state_dir(self) -> Path:
        """What this account keeps for itself here (logs, locks, caches); shared by the worktrees, never pushed."""
        return own_folder(self.common_dir / "gitgate")

    @property
    def index(self) -> Path:
        """The file with what was read of many gates' commits (`store.records.index`)."""
        return self.state_dir / "index.sqlite"


def own_folder(folder: Path) -> Path:
    """`folder` for the account that made it; for each other account a folder of its own beside it.

    Accounts that share a repository could not read one another's files there, and must not: they hold sessions and logs.
    """
    try:
        owner = os.lstat(folder).st_uid
    except OSError:
        return folder
    account = os.geteuid()
    return folder if owner == account else folder.with_name(f"{folder.name}-{account}")


def pointers(env: Mapping[str, str]) -> dict[str, str]:
    """What points git at a repository, where hooks and `git --git-dir` set it."""
    return {name: env[name] for name in ("GIT_DIR", "GIT_WORK_TREE") if name in env}


def git_at(start: Path, env: Mapping[str, str]) -> Git:
    """Git in a place of which we do not know yet which repository it is in."""
    git = Git(start, env)
    git.env.update(pointers(env))
    return git


def begin_discovery(git: Git) -> Started:
    # One process for all of it. `--show-toplevel` comes last because it is an error where there is no working tree
    # (a bare repository, a hook inside one): by then the other lines have been printed.
    return git.begin(
        "rev-parse",
        "--absolute-git-dir",
        "--path-format=absolute",
        "--git-common-dir",
        "--show-object-format=storage",
        "--is-shallow-repository",
        "--show-toplevel",
    )


def begin_config(git: Git) -> Started:
    return git.begin("config", "--list", "-z")


def discover(start: Path, env: Mapping[str, str]) -> Repository:
    """The repository that `start` is in, honouring GIT_DIR as git itself would."""
    asked = begin_discovery(git_at(start, env)).result()
    # At newlines alone: a folder's name may hold what else passes for the end of a line.
    said = asked.out.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")
    if len(said) < 4:
        raise not_a_repository(start, asked.err, env.get("GIT_DIR"))
    git_dir, common_dir = Path(said[0]), Path(said[1])
    top = Path(said[4]) if len(said) > 4 else None
    git = Git(top or git_dir, env)
    git.env["GIT_DIR"] = str(git_dir)
    if top is not None:
        git.env["GIT_WORK_TREE"] = str(top)
    zero = "0" * (64 if said[2] == "sha256" else 40)
    return Repository(git, git_dir, common_dir, top, zero, said[3] == "true")


def not_a_repository(start: Path, said: str, named: str | None) -> NotARepository:
    if "safe.bareRepository" in said:
        from shlex import quote

        place = quote(str(start.resolve()))
        return NotARepository(
            f"git may not use the bare repository {start} unless it is named: safe.bareRepository is set",
            hint=f"GIT_DIR={place} git gate …   or ask in a clone of it",
        )
    if "dubious ownership" in said:
        from shlex import quote

        return NotARepository(
            f"git does not trust {start}: it belongs to somebody else",
            hint=f"git config --global --add safe.directory {quote(str(start))}",
        )
    if named is not None:
        return NotARepository(
            f"GIT_DIR is {named!r}, and that is no git repository", hint="unset GIT_DIR, or point it at one"
        )
    return NotARepository(
        f"{start} is not in a git repository", hint="cd into one, or start one with: git init"
    )


USUAL = ("main", "master", "trunk")


class BranchChange(NamedTuple):
    """A commit of the branch, and when it came to it by its own word: who pushes there is trusted with both."""

    commit: str
    at: int


def load_changes(repo: Repository, ref: str, paths: Sequence[str]) -> list[BranchChange]:
    """The commits that changed one of these files, oldest first; a merge counts as what it brought to the branch."""
    said = repo.git.text(
        "log", "--first-parent", "--no-show-signature", "--format=tformat:%H %ct", ref, "--", *paths
    )
    found = [line.split(" ") for line in said.split("\n") if line]
    return [BranchChange(commit, int(at)) for commit, at in reversed(found)]


def load_line(repo: Repository, ref: str) -> dict[str, int]:
    """The place of each commit on the branch's first-parent line, counted from its beginning."""
    said = repo.git.text("rev-list", "--first-parent", ref).split("\n")
    return {commit: place for place, commit in enumerate(reversed(said))}


def left_line(repo: Repository, ref: str, commit: str) -> str | None:
    """Where a commit left the branch; None where it never was on it, or is not here."""
    said = repo.git.run("merge-base", ref, commit, check=False)
    return said.out.decode().strip() or None
