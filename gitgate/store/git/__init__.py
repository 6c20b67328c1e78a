"""Store: git itself: the one place that starts it, where the repository is, how its protected branch changed, and git's configuration."""

from __future__ import annotations

import os
import re
import select
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from ...document import dataclass, field
from ...errors import Failure, GitFailed, NotARepository

# The one place that starts git.
#
# Everything that git inherits is decided here, so that no hook, alias, replace ref or foreign
# `GIT_INDEX_FILE` of the caller changes what a command means.


# Variables that name a repository or change how objects are read; inherited from a hook or an outer git command they
# would point our commands at the wrong place.
KEPT_GIT_VARIABLES = frozenset(
    """GIT_TEMPLATE_DIR GIT_CEILING_DIRECTORIES GIT_DISCOVERY_ACROSS_FILESYSTEM GIT_DEFAULT_HASH GIT_DEFAULT_REF_FORMAT
    GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE
    GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES""".split()
)

# Of these, what git sets for a hook that judges a push.
OF_PUSH = ("GIT_QUARANTINE_PATH", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")

# How git reaches other repositories, and with whose configuration: it names no repository of ours, so that a runner that
# outlives its caller has it as well. (What is not git's own, as SSH_AUTH_SOCK and https_proxy, nobody takes away.)
REACHING = frozenset(
    """GIT_SSH GIT_SSH_COMMAND GIT_SSH_VARIANT GIT_ASKPASS GIT_TERMINAL_PROMPT GIT_EXEC_PATH GIT_ALLOW_PROTOCOL
    GIT_PROTOCOL_FROM_USER GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM GIT_CONFIG_PARAMETERS
    GIT_CONFIG_COUNT""".split()
)
REACHING_PREFIXES = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_SSL_", "GIT_PROXY_", "GIT_HTTP_")

KEPT_PREFIXES = ("GIT_TRACE",)

SEALED = {
    "LC_ALL": "C",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null/none",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_PAGER": "cat",
}
HOOKS_OFF = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")


# Subcommands that complete a name which they are given: `refs/heads/main` is `refs/tags/refs/heads/main` to them where there is no
# such branch, and `HEAD` a tag called so where there is no commit yet. They are given full ids.
COMPLETING = frozenset(
    """archive bisect blame branch bundle cat-file checkout cherry-pick commit-tree describe diff diff-index diff-tree fast-export fetch
    format-patch grep log ls-tree merge merge-base merge-tree name-rev notes pack-objects push range-diff read-tree rebase reflog
    replace reset restore rev-list rev-parse revert show show-branch stash switch tag worktree""".split()
)
# A ref, or a name that git looks for as one, where an id belongs.
_NAME = r"\^?(?:refs/|(?:[A-Z]+_)?HEAD(?![\w/.-])|@(?:$|[{~^]))"
# The same of a refspec's source: git completes neither a pattern nor what is left out.
_SOURCE = r"\+?(?:refs/(?![^:]*\*)|(?:[A-Z]+_)?HEAD(?![\w/.-])|@(?:$|[{~^])|[0-9a-f]{40,}(?:$|:))"
_TALKS = ("fetch", "push")


Piped = subprocess.Popen[bytes]


@dataclass(frozen=True)
class GitResult:
    code: int
    out: bytes
    err: str


@dataclass(frozen=True)
class Started:
    """Git command under way, whose input was empty. It is either waited for or closed."""

    name: str
    process: Piped

    def result(self) -> GitResult:
        out, err = self.process.communicate()
        return GitResult(self.process.returncode, out, err.decode("utf-8", "replace").strip())

    def close(self) -> None:
        """End the command, as nobody wants its result any more."""
        if self.process.returncode is None:
            self.process.kill()
            self.process.communicate()


def reaches(name: str) -> bool:
    """Return whether a variable tells git how to reach other repositories."""
    return name in REACHING or name.startswith(REACHING_PREFIXES)


def sealed_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` without the variables that would redirect git, and with the ones that make it predictable."""
    kept = {
        k: v
        for k, v in env.items()
        if not k.startswith("GIT_") or k in KEPT_GIT_VARIABLES or k.startswith(KEPT_PREFIXES) or reaches(k)
    }
    return {**kept, **SEALED}


class Git:
    """Runner of git in one directory, sealed from what surrounds the caller."""

    def __init__(
        self, directory: Path, env: Mapping[str, str], *, config: Sequence[str] = (), hooks: bool = False
    ) -> None:
        self.directory = directory
        self.env = sealed_environment(env)
        off = () if hooks else HOOKS_OFF
        self.prefix = ["git", *off, *(part for item in config for part in ("-c", item))]

    def outside_of_push(self) -> Git:
        """Return a git that knows nothing of the push which is being judged, nor of the objects that it brings."""
        outside = Git(self.directory, {})
        outside.prefix = self.prefix
        outside.env = {name: value for name, value in self.env.items() if name not in OF_PUSH}
        return outside

    def run(
        self,
        *args: str,
        input: bytes = b"",
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout: float | None = None,
        completes: bool = False,
    ) -> GitResult:
        """Run `git *args`; a failure raises GitFailed with git's own words unless `check` is off.

        `completes`: git may complete names: a person's own words, which mean what git makes of them.
        """
        if not completes:
            refuse_names(args, input)
        try:
            done = subprocess.run(
                [*self.prefix, *args],
                input=input,
                capture_output=True,
                cwd=self.directory,
                env={**self.env, **env} if env else self.env,
                timeout=timeout,
                check=False,
            )
        except (FileNotFoundError, NotADirectoryError) as missing:
            raise no_git(self.directory) from missing
        except subprocess.TimeoutExpired as late:
            raise GitFailed(f"git {verb_of(args)} did not finish within {timeout:g} s", status=124) from late
        result = GitResult(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace").strip())
        if check and result.code:
            raise failure(verb_of(args), result)
        return result

    def out(self, *args: str, input: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        return self.run(*args, input=input, env=env).out

    def text(self, *args: str, input: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        """Return standard output as text, without its one trailing newline."""
        return self.out(*args, input=input, env=env).decode("utf-8", "surrogateescape").removesuffix("\n")

    def ok(self, *args: str) -> bool:
        return self.run(*args, check=False).code == 0

    def begin(self, *args: str) -> Started:
        """Start `git *args` and return at once; its result is for later."""
        return Started(args[0], self.pipe(*args, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE))

    def pipe(
        self,
        *args: str,
        stdin: int | IO[bytes] | None = subprocess.PIPE,
        stderr: int = subprocess.DEVNULL,
    ) -> Piped:
        """Start a git process with pipes to it; the caller closes it."""
        refuse_names(args)
        try:
            return subprocess.Popen(
                [*self.prefix, *args],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=self.directory,
                env=self.env,
            )
        except (FileNotFoundError, NotADirectoryError) as missing:
            raise no_git(self.directory) from missing

    def records(self, *args: str, input: bytes = b"") -> Iterator[str]:
        """Yield git's output, split at `NUL` and a newline, without keeping it all. Git reads all `input` first."""
        refuse_names(args, input)
        with self.pipe(*args) as running:
            if running.stdin:
                running.stdin.write(input)
                running.stdin.close()
            rest = b""
            while chunk := running.stdout.read(1 << 18) if running.stdout else b"":
                *whole, rest = (rest + chunk).split(b"\0\n")
                yield from (part.decode("utf-8", "replace") for part in whole)
        if running.returncode:
            raise GitFailed(f"git {args[0]} failed with exit {running.returncode}", status=running.returncode)


def verb_of(args: Sequence[str]) -> str:
    """Return git's subcommand among its arguments, which stands behind the settings for it."""
    return next(
        word
        for before, word in zip(("", *args), args, strict=False)
        if before != "-c" and (not word.startswith("-") or word == args[-1])
    )


def fed_names(fed: bytes) -> list[str]:
    """Return the beginnings of those lines of what git is fed that are names of refs."""
    return [line.decode() for line in re.findall(rb"(?m)^%s" % _NAME.encode(), fed)]


def refuse_names(args: Sequence[str], fed: bytes = b"") -> None:
    """Refuse a name of a ref where git would complete it: whoever can push a tag would choose what it stands for."""
    verb = verb_of(args)
    if verb not in COMPLETING or (verb, *args[1:2]) == ("reflog", "exists"):  # that takes whole names
        return
    words = list(args[args.index(verb) + 1 :])
    # Behind `--` stand files, but with some: there a directory or a remote comes first.
    if "--" in words and verb not in (*_TALKS, "worktree"):
        words = words[: words.index("--")]
    if any(word in ("--stdin", "--revs") or word.startswith("--batch") for word in words):
        words += fed_names(fed)
    for word in words:
        if re.match(_SOURCE if verb in _TALKS else _NAME, word):
            raise GitFailed(f"git {verb} would complete the name {word!r}: it is given an id", status=128)


# The system's reason ends a line of git's; a checkout that cannot write a file which it could make names none.
_FULL = (
    r"(?im)^.*(?:^|: )(?:no space left on device|disk quota exceeded|file too large|out of diskspace)\W*$"
    r"|^(?:error|fatal): unable to write file .*$"
)


def failure(command: str, result: GitResult) -> GitFailed:
    """Return a failed command's error in git's words; where the repository may not be written, with what to do."""
    forbidden = re.search(
        r"insufficient permission for adding an object|(?:lock|create|open|write|update).*: (?:Permission denied|Read-only file system)",
        result.err,
    )
    if forbidden:
        line = next(line for line in result.err.splitlines() if forbidden[0] in line)
        return GitFailed(
            f"this repository may not be written: {re.sub('^(error|fatal): ', '', line)}",
            hint="have its files made writable for you, or work in a clone of your own: git clone",
            status=result.code,
            stderr=result.err,
        )
    full = re.search(_FULL, result.err)
    if full:
        return GitFailed(
            f"the disk is full: {re.sub('^(error|fatal): ', '', full[0])}",
            hint="make room in the repository's place, then type the same again",
            status=result.code,
            stderr=result.err,
            full=True,
        )
    said = result.err or f"exit {result.code}"
    return GitFailed(f"git {command} failed: {said}", status=result.code, stderr=result.err)


def no_git(directory: Path) -> Failure:
    if directory.is_dir():
        return Failure("git is not on PATH", hint="install git 2.39 or later")
    return Failure(f"{directory} is not a directory")


# Seconds without a byte. A partial clone may have to fetch what is asked, so it is not short.
READ_TIMEOUT = 60.0


class TimedReader:
    """Reader of a pipe for as long as something comes: a damaged object can leave git in an endless loop."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe
        self.poll = select.poll()
        self.poll.register(pipe, select.POLLIN)
        self.rest = b""

    def more(self) -> bytes:
        """Return the next bytes, empty at the end; TimeoutError where nothing came."""
        if not self.poll.poll(READ_TIMEOUT * 1000):
            raise TimeoutError(f"has said nothing for {READ_TIMEOUT:g} s")
        return os.read(self.pipe, 1 << 16)

    def line(self) -> bytes:
        while b"\n" not in self.rest and (came := self.more()):
            self.rest += came
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def exactly(self, size: int) -> bytes:
        """Return so many bytes, or as many as there are before the end."""
        parts, got = [self.rest], len(self.rest)
        while got < size and (came := self.more()):
            parts.append(came)
            got += len(came)
        whole = b"".join(parts)
        self.rest = whole[size:]
        return whole[:size]


# Where the repository is, found by one `rev-parse`; and how its protected branch changed.


@dataclass(frozen=True)
class Repository:
    """Repository as seen from one working tree (or from none, when bare)."""

    git: Git
    git_dir: Path
    common_dir: Path
    top: Path | None
    zero: str
    shallow: bool
    configured: Mapping[str, Sequence[str]] = field(default_factory=dict, repr=False, compare=False)
    """Git's settings with all their values, as they were when the desk was opened; empty where nobody asked for them."""

    @property
    def bare(self) -> bool:
        return self.top is None

    @property
    def place(self) -> Path:
        """Folder that a person would call this repository: its working tree, or its git folder where it has none."""
        return self.top or self.git_dir

    @property
    def standing_dir(self) -> Path:
        """Folder of this working tree that exists while some of its files stand for others (`store.work.aside`)."""
        return self.git_dir / "gitgate-standing"

    @property
    def standing_lock(self) -> Path:
        """Lock file of this working tree, there once files of it stood for others; whoever changes that takes it."""
        return self.git_dir / "gitgate-standing.lock"

    @property
    def state_dir(self) -> Path:
        """Folder of this account in the repository (logs, locks, caches); shared by the worktrees, never pushed."""
        return own_folder(self.common_dir / "gitgate")

    @property
    def index(self) -> Path:
        """File with what was read of many gates' commits (`store.index`)."""
        return self.state_dir / "index.sqlite"


def own_folder(folder: Path) -> Path:
    """Return `folder` for the account that made it; for each other account a folder of its own next to it.

    Accounts that share a repository could not read one another's files there, and must not: they hold sessions and
    logs.
    """
    try:
        owner = os.lstat(folder).st_uid
    except OSError:
        return folder
    account = os.geteuid()
    return folder if owner == account else folder.with_name(f"{folder.name}-{account}")


def pointers(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that point git at a repository, where hooks and `git --git-dir` set them."""
    return {name: env[name] for name in ("GIT_DIR", "GIT_WORK_TREE") if name in env}


def git_at(start: Path, env: Mapping[str, str]) -> Git:
    """Return a git for a place of which we do not know yet which repository it is in."""
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


def parse_config(said: bytes) -> dict[str, list[str]]:
    """Parse git's settings from `git config -z`; section and variable are in lower case, the middle as written."""
    found: dict[str, list[str]] = {}
    for entry in said.decode("utf-8", "surrogateescape").split("\0"):
        key, newline, value = entry.partition("\n")
        if key:
            found.setdefault(key, []).append(value if newline else "true")
    return found


def discover(start: Path, env: Mapping[str, str]) -> Repository:
    """Find the repository that `start` is in, honouring GIT_DIR as git itself would."""
    return repository_told(begin_discovery(git_at(start, env)).result(), start, env)


def repository_told(asked: GitResult, start: Path, env: Mapping[str, str]) -> Repository:
    """Return the repository that git's answer to `begin_discovery` describes."""
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


@dataclass(frozen=True)
class BranchChange:
    """Commit of the branch, and when it came to it by its own word: who pushes there is trusted with both."""

    commit: str
    at: int


def load_changes(repo: Repository, tip: str, paths: Sequence[str]) -> list[BranchChange]:
    """List the commits below `tip` that changed one of these files, oldest first; a merge counts as what it brought."""
    said = repo.git.text(
        "log", "--first-parent", "--no-show-signature", "--format=tformat:%H %ct", tip, "--", *paths
    )
    found = [line.split(" ") for line in said.split("\n") if line]
    return [BranchChange(commit, int(at)) for commit, at in reversed(found)]


def load_line(repo: Repository, tip: str) -> dict[str, int]:
    """Return the place of each commit on the branch's first-parent line, counted from its beginning."""
    said = repo.git.text("rev-list", "--first-parent", tip).split("\n")
    return {commit: place for place, commit in enumerate(reversed(said))}


def left_line(repo: Repository, tip: str, commit: str) -> str | None:
    """Return the commit where another one left the branch; None where it never was on it, or is not here."""
    said = repo.git.run("merge-base", tip, commit, check=False)
    return said.out.decode().strip() or None


# Git's configuration: the machine's own, and all of it as it was before an agent worked beside it.
#
# A configuration may include a file of the working tree; what stands there came with a branch, and grants
# nothing.


def machine_values(repo: Repository, pattern: str, *, nearest: bool = False) -> dict[str, list[str]]:
    """Read all values of the keys that match, in their order, without those that a file of a working tree brought.

    `nearest`: of each key those alone of the nearest scope: the repository's own rather than the person's, and those
    before the system's.
    """
    how = ("--null", "--show-scope", "--show-origin")
    asked = repo.git.run("config", *how, "--get-regexp", pattern, check=False)
    parts = asked.out.decode("utf-8", "surrogateescape").split("\0")
    found: dict[str, list[str]] = {}
    scopes: dict[str, str] = {}
    foreign: dict[str, bool] = {}
    for scope, origin, line in zip(parts[::3], parts[1::3], parts[2::3], strict=False):
        if origin not in foreign:
            foreign[origin] = from_work(repo.git, origin, repo)
        if foreign[origin]:
            continue
        key, newline, value = line.partition("\n")
        if nearest and scopes.setdefault(key, scope) != scope:
            found[key], scopes[key] = [], scope
        found.setdefault(key, []).append(value if newline else "true")
    return found


def from_work(git: Git, origin: str, repo: Repository) -> bool:
    """Return whether a value comes from a file that a branch carries: in a working tree, outside git's own folder."""
    if not origin.startswith("file:"):
        return origin.startswith("blob:")
    file = (git.directory / unquoted(origin.removeprefix("file:"))).resolve()
    if any(file.is_relative_to(place.resolve()) for place in (repo.common_dir, repo.git_dir)):
        return False
    tops = [repo.top, *(_top(pointer) for pointer in (repo.common_dir / "worktrees").glob("*/gitdir"))]
    if repo.common_dir.name == ".git":
        tops.append(repo.common_dir.parent)
    return any(file.is_relative_to(top.resolve()) for top in tops if top is not None)


def _top(pointer: Path) -> Path:
    return Path(pointer.read_text("utf-8", "surrogateescape").strip()).parent


def unquoted(name: str) -> str:
    return name[1:-1] if len(name) > 1 and name[0] == name[-1] == '"' else name


MOST_BYTES = 16 << 20


@dataclass(frozen=True)
class KeptFiles:
    """Contents of configuration files, None where a file was missing, and the git configuration that they made."""

    files: Mapping[Path, bytes | None]
    settings: bytes


WATCHED: dict[Path, KeptFiles] = {}


def keep_config(repo: Repository, besides: Iterable[Path] = ()) -> KeptFiles:
    files = {*sources(repo), *besides}
    return KeptFiles({place: content(place) for place in sorted(files)}, whole_config(repo))


def put_back(repo: Repository, kept: KeptFiles) -> list[Path]:
    """Restore the files that were changed, and return them; Failure where git's configuration differs nevertheless."""
    changed = [place for place, before in kept.files.items() if content(place) != before]
    for place in changed:
        restore(place, kept.files[place])
    if whole_config(repo) != kept.settings:
        raise altered()
    return changed


def altered() -> Failure:
    return Failure(
        "git's configuration was changed while the agent worked, and cannot be put back: nothing is sent with it",
        hint="git config --list --show-origin in that job says what it is now; what the agent did is in its log",
    )


def watch_config(repo: Repository, besides: Iterable[Path] = ()) -> None:
    """Make sure that no later conversation of this process begins with another configuration."""
    WATCHED[repo.common_dir] = keep_config(repo, besides)


def look_after(repo: Repository) -> list[Path]:
    kept = WATCHED.get(repo.common_dir)
    return put_back(repo, kept) if kept is not None and files_differ(kept) else []


def files_differ(kept: KeptFiles) -> bool:
    return any(content(place) != before for place, before in kept.files.items())


def sources(repo: Repository) -> set[Path]:
    """Return the files that git takes its configuration from, and those that it would if they were there."""
    env = repo.git.env
    home = Path(env.get("HOME") or "/")
    usual = {
        repo.common_dir / "config",
        repo.common_dir / "config.worktree",
        repo.git_dir / "config.worktree",
    }
    usual |= {home / ".gitconfig", Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "config"}
    if env.get("GIT_CONFIG_GLOBAL"):
        usual.add(Path(env["GIT_CONFIG_GLOBAL"]))
    # Where the repository is, other configuration would be.
    usual |= {repo.git_dir / "commondir", *link(repo)}
    origins = (part.decode("utf-8", "surrogateescape") for part in whole_config(repo).split(b"\0"))
    named = {origin.removeprefix("file:") for origin in origins if origin.startswith("file:")}
    return {Path(os.path.normpath(repo.git.directory / name)) for name in named} | usual


def link(repo: Repository) -> list[Path]:
    """Return the file that says where the repository is, in a working tree that has one."""
    place = repo.top / ".git" if repo.top is not None else None
    return [place] if place is not None and place.is_file() else []


def whole_config(repo: Repository) -> bytes:
    return repo.git.run("config", "--list", "--show-origin", "--includes", "-z", check=False).out


def config_digest(repo: Repository) -> str:
    """Return a digest of all of git's configuration here."""
    from hashlib import sha256  # 2 ms to import, and only jobs ask for this

    return sha256(whole_config(repo)).hexdigest()


def content(place: Path) -> bytes | None:
    try:
        with place.open("rb") as file:
            return file.read(MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as unreadable:
        raise altered() from unreadable


def restore(place: Path, before: bytes | None) -> None:
    try:
        if before is None:
            place.unlink()
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        new = place.with_name(f".{place.name}.{os.getpid()}.gitgate")
        new.write_bytes(before)
        if place.exists():
            new.chmod(place.stat().st_mode & 0o7777)
        new.replace(place)
    except OSError as unwritable:
        raise altered() from unwritable
