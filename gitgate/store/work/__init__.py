"""Store: the two commits of partial work, what the first one's message keeps because no tree can, and what of the work stays on this
machine.

The line is base ← staged ← work. `staged` has the index for its tree, `work` the working tree. The message of `staged`
ends with what a tree has no place for:

    Untracked: no                   untracked files were not taken
    Operation: merge                what git was in the middle of
    Unmerged: <commit>              its tree has the paths in conflict under `1/` (ancestor), `2/` (ours), `3/` (theirs)
    Intent-to-add: <path>           quoted as git quotes it; one line for each

In a merge the other sides, and the commit of the conflict, are further parents of `staged`, so that a push carries them.
A path is bytes to git and to the file system; it is made printable only where it is told to somebody.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...document import dataclass, field, replace
from ...errors import GitFailed, WorkFailed
from ..git import Git, Repository
from ..git.canonical import Commit, NotCanonical, parse_commit, parse_history

if TYPE_CHECKING:
    from ...text.secrets import WordRules


READ_FOR_SECRETS = 16 << 20  # more than a file has that goes without being named
NESTED = "a repository of its own"
GATES_OWN = "`.hitl` is kept for gates"
NOT_A_FILE = "neither a file nor a symbolic link"
UNREADABLE = "it cannot be read"
TELLING_NAME = "its name says that it holds secrets"


@dataclass(frozen=True)
class LeftOut:
    """Path that the snapshot does not carry, and why. The path is quoted as git quotes it where it must be."""

    path: str
    reason: str


_PLAIN_ESCAPES = {
    b"\a"[0]: "\\a",
    b"\b"[0]: "\\b",
    b"\t"[0]: "\\t",
    b"\n"[0]: "\\n",
    b"\v"[0]: "\\v",
    b"\f"[0]: "\\f",
    b"\r"[0]: "\\r",
    b'"'[0]: '\\"',
    b"\\"[0]: "\\\\",
}
_BACK = {text[1]: bytes([byte]) for byte, text in _PLAIN_ESCAPES.items()}


def printable(path: bytes) -> str:
    """Return a path for people; one with control, invisible or undecodable characters is quoted as git does."""
    try:
        text = path.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text and text.isprintable() and '"' not in text and "\\" not in text:
        return text
    shown = (_PLAIN_ESCAPES.get(b) or (chr(b) if 0x20 <= b < 0x7F else f"\\{b:03o}") for b in path)
    return f'"{"".join(shown)}"'


def path_of(shown: str) -> bytes:
    """Return the path that `printable` showed."""
    if not (len(shown) >= 2 and shown.startswith('"') and shown.endswith('"')):
        return shown.encode("utf-8", "surrogateescape")
    return re.sub(
        rb'\\([0-3][0-7]{2}|[abtnvfr"\\])',
        lambda found: bytes([int(found[1], 8)]) if found[1].isdigit() else _BACK[found[1].decode()],
        shown[1:-1].encode("utf-8", "surrogateescape"),
    )


def is_gates_own(path: bytes) -> bool:
    """Return whether a path is `.hitl` at the top, or beneath it, in upper or lower case: some file systems fold
    case.
    """
    return path.split(b"/", 1)[0].lower() == b".hitl"


def lstat(top: Path, path: bytes) -> os.stat_result | None:
    """Return the status of a path, without following a link; None where nothing is there."""
    try:
        return (top / os.fsdecode(path)).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as failed:
        if failed.errno == errno.ELOOP:  # beneath a link that leads to itself there is nothing
            return None
        raise


def is_storable(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)


def refuse_new(top: Path, path: bytes, most_bytes: int) -> str | None:
    """Return why an untracked file stays here; None where it may go."""
    if path.endswith(b"/"):
        return NESTED  # git lists a directory that it does not enter with a slash
    found = lstat(top, path)
    if found is None or stat.S_ISLNK(found.st_mode):
        return None
    if not stat.S_ISREG(found.st_mode):
        return NOT_A_FILE
    if found.st_size > most_bytes:
        return f"{found.st_size / 1e6:.1f} MB, more than {most_bytes / 1e6:g}"
    return refuse_secret(top, path)


def refuse_secret(top: Path, path: bytes) -> str | None:
    """Return why a file that history does not know may be a secret: by its name, or by what it holds."""
    found = lstat(top, path)
    if found and stat.S_ISLNK(found.st_mode):
        return None  # it carries the name of another file, and nothing of its content
    if reason := secret_name_reason(path):
        return reason
    regular = found is not None and stat.S_ISREG(found.st_mode)
    return _secret_content_reason(top, path) if regular else None


def secret_name_reason(path: bytes) -> str | None:
    from ...text.secrets import secret_name

    # A line end within a name must not hide the name from a pattern.
    name = path.replace(b"\n", b" ").decode("utf-8", "replace")
    return TELLING_NAME if secret_name(name) else None


def _secret_content_reason(top: Path, path: bytes) -> str | None:
    place = top / os.fsdecode(path)
    try:
        # NONBLOCK: what was a file a moment ago may be a pipe that nobody writes to.
        handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError:
        return UNREADABLE
    try:
        content = os.read(handle, min(os.fstat(handle).st_size, READ_FOR_SECRETS))
    except OSError:
        return UNREADABLE
    finally:
        os.close(handle)
    return secret_text_reason(content, path)


def secret_text_reason(content: bytes, path: bytes) -> str | None:
    """Return why what a file holds may be a secret. Nothing of the content is repeated: the reason names the kind."""
    from ...text.secrets import find_secrets, named_secret

    for decoded in _texts(content):
        if found := next(iter(find_secrets(decoded)), None):
            return f"it seems to hold a secret ({found.kind})"
        if kind := named_secret(decoded, path.decode("utf-8", "replace"), word_rules()):
            return f"it seems to hold a secret ({printable(kind.encode('utf-8', 'replace'))})"
    return None


@cache
def word_rules() -> WordRules:
    """Read the rules that are another project's data; its licence is in the same folder."""
    from ...text.secrets import parse_rules

    return parse_rules((Path(__file__).parent / "rules" / "detect-secrets.txt").read_text(encoding="utf-8"))


def _texts(content: bytes) -> list[str]:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return [content.decode("utf-16", "replace")]
    if b"\0" in content[:8192]:
        return []  # not a text: no shape of a token is looked for
    return [content.decode("utf-8", "replace")]


class Parents:
    """Cache of directories that says whether a path lies beyond a symbolic link, where git refuses to look.

    Each directory is looked at once.
    """

    def __init__(self, top: Path) -> None:
        self._top = top
        self._links: dict[bytes, bool] = {b"": False}

    def beyond_link(self, path: bytes) -> bool:
        parent = path.rpartition(b"/")[0]
        if parent not in self._links:
            place = self._top / os.fsdecode(parent)
            self._links[parent] = self.beyond_link(parent) or place.is_symlink()
        return self._links[parent]


STAGED_SUBJECT = "Staged changes at a gate"
WORK_SUBJECT = "Partial work at a gate"
UNMERGED_SUBJECT = "Paths in conflict at a gate"
EMPTY_TREE = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
_ID = r"[0-9a-f]{40}(?:[0-9a-f]{24})?"


@dataclass(frozen=True)
class Aside:
    """Part of the work that trees cannot hold."""

    untracked: bool = True
    operation: str | None = None
    unmerged: str | None = None
    intent_to_add: tuple[bytes, ...] = ()

    def dump(self) -> str:
        lines = [
            *(["Untracked: no"] if not self.untracked else []),
            *([f"Operation: {self.operation}"] if self.operation else []),
            *([f"Unmerged: {self.unmerged}"] if self.unmerged else []),
            *(f"Intent-to-add: {printable(path)}" for path in self.intent_to_add),
        ]
        return "\n".join([STAGED_SUBJECT, *([""] if lines else []), *lines]) + "\n"


def parse_aside(message: str) -> Aside:
    """Parse the message of `staged`. Anything else in it is passed over, since another tool may have written it."""
    # Split at newlines only: `splitlines` would cut a path at what merely resembles one.
    pairs = [line.split(": ", 1) for line in message.split("\n") if ": " in line]
    last = {key: value for key, value in pairs if key != "Intent-to-add"}
    unmerged = last.get("Unmerged")
    return Aside(
        untracked=last.get("Untracked") != "no",
        operation=last.get("Operation"),
        unmerged=unmerged if unmerged and re.fullmatch(_ID, unmerged) else None,
        intent_to_add=tuple(path_of(value) for key, value in pairs if key == "Intent-to-add"),
    )


def read_aside(commit: Commit) -> Aside:
    return parse_aside(commit.body.decode("utf-8", "surrogateescape"))


@dataclass(frozen=True)
class Saved:
    """Saved work as read back. Without changes `staged` and `work` are `base`."""

    base: str | None
    staged: str
    work: str
    staged_tree: str
    work_tree: str
    merge_heads: tuple[str, ...] = ()
    aside: Aside = field(default_factory=Aside)


def is_id(text: str) -> bool:
    """Return whether a text is a full object id, and so neither an option nor a ref of the same spelling."""
    return re.fullmatch(_ID, text) is not None


def load_saved(git: Git, *, base: str | None, staged: str, work: str) -> Saved:
    """Load the saved work by its commits; refused where they are not based on one another."""
    for name in (staged, work, *([base] if base else [])):
        if not is_id(name):
            raise WorkFailed(f"not the full id of a commit: {printable(name.encode('utf-8', 'replace'))}")
    staged_commit, work_commit = _load_commits(git, staged, work, base=base)
    if base == staged:
        merge_heads: tuple[str, ...] = ()
        aside = Aside()
    else:
        first = staged_commit.parents[:1]
        if first != ((base,) if base else ()):
            raise _not_a_line(f"staged {staged[:10]} does not stand on base {base and base[:10]}")
        aside = read_aside(staged_commit)
        merge_heads = tuple(parent for parent in staged_commit.parents[1:] if parent != aside.unmerged)
        if aside.unmerged and aside.unmerged not in staged_commit.parents:
            raise _not_a_line(f"staged {staged[:10]} names a conflict that it does not carry")
    if work != staged and work_commit.parents[:1] != (staged,):
        raise _not_a_line(f"work {work[:10]} does not stand on staged {staged[:10]}")
    return Saved(base, staged, work, staged_commit.tree, work_commit.tree, merge_heads, aside)


def load_unverified(git: Git, *, staged: str, work: str) -> Saved:
    """Load saved work where the base is not given: it is the parent of `staged`, or `staged` itself where
    nothing changed.
    """
    base: str | None = staged
    if staged != work:
        base = next(iter(_load_commits(git, staged, base=None)[0].parents), None) if is_id(staged) else None
    return load_saved(git, base=base, staged=staged, work=work)


def load_aside(git: Git, staged: str) -> Aside:
    """Read what the message of `staged` keeps; a conflict counts only where the commit carries it."""
    (commit,) = _load_commits(git, staged, base=staged)  # where nothing had changed it is the base
    aside = read_aside(commit)
    return aside if aside.unmerged in commit.parents else replace(aside, unmerged=None)


def _load_commits(git: Git, *names: str, base: str | None) -> list[Commit]:
    """These commits: the base is somebody's, the others are as git gate has git write them."""
    try:
        out = git.out("cat-file", "--batch", input="".join(f"{name}\n" for name in names).encode())
    except GitFailed as failed:
        raise WorkFailed(f"the saved work cannot be read: {failed.stderr}", hint="git fsck") from failed
    commits = []
    for name in names:
        head, _, out = out.partition(b"\n")
        kind, size = [*head.split(b" "), b"", b""][1:3]
        if kind != b"commit":
            raise WorkFailed(
                f"the work is not in this clone: commit {name[:10]} is missing", hint="git gate sync"
            )
        parse = parse_history if name == base else parse_commit
        try:
            commits.append(parse(out[: int(size)], len(name) // 2))
        except NotCanonical as wrong:
            raise _not_a_line(f"commit {name[:10]} {wrong.message}") from wrong
        out = out[int(size) + 1 :]
    return commits


def _not_a_line(reason: str) -> WorkFailed:
    return WorkFailed(f"the saved work does not hold together: {reason}", hint="git gate verify")


def known_failure(failed: GitFailed) -> WorkFailed | None:
    """Return git's own words, with what to do about it; None for a failure that has no name."""
    if failed.hint:  # it is not about the work
        return WorkFailed(failed.message, hint=failed.hint)
    said = failed.stderr or failed.message
    if broken := re.search(r"(?:clean|smudge) filter '(.+?)' failed", said):
        name = broken[1]
        install = "git lfs install" if name == "lfs" else f"git config --get-regexp '^filter\\.{name}\\.'"
        return WorkFailed(
            f"the filter '{name}' that this repository requires does not work here: {said}",
            hint=f"install the program that it names, then ask again; see: {install}",
        )
    if "Permission denied" in said:
        return WorkFailed(
            f"the partial work cannot be read: {said}",
            hint="make the file readable (chmod u+r), and ask again",
        )
    return None


def work_failed(failed: GitFailed) -> WorkFailed:
    """Return the error of work that could not be taken."""
    return known_failure(failed) or WorkFailed(
        f"the partial work cannot be saved: {failed.stderr or failed.message}",
        hint="mend that, and ask again (or: --no-work)",
    )


def missing_or_failed(failed: GitFailed) -> WorkFailed:
    """Return the error of saved work that git could not read: most often it was never fetched."""
    if re.search(
        r"bad object|not a tree|not a valid object|invalid object|unable to read|reference is not",
        failed.stderr,
    ):
        return WorkFailed(f"the work is not in this clone: {failed.stderr}", hint="git gate sync")
    return known_failure(failed) or WorkFailed(
        f"the work cannot be restored here: {failed.stderr or failed.message}",
        hint="mend that, and try again",
    )


def touched(
    repo: Repository, protected: str | None, base: str | None, work: str, staged: str | None = None
) -> tuple[str, ...] | None:
    """Return every path that the work changes, the agent's own commits included; None where its objects are not here.

    From the protected branch rather than from the base: what an agent committed before it asked is its work too.
    Restoring brings back the base, what was staged and the sides of a conflict as well as the files, so that all of
    them count: a file that was staged, or committed, and then deleted is in none of the working tree's own changes.
    """
    git = repo.git
    trees = dict.fromkeys(name for name in (work, staged, base) if name)
    if not all(git.ok("cat-file", "-e", f"{name}^{{commit}}") for name in trees):
        return None
    start = base or EMPTY_TREE[len(work)]
    if protected is not None:
        common = git.run("merge-base", protected, work, check=False)
        start = common.out.decode().strip() or EMPTY_TREE[len(work)]
    found: dict[str, None] = {}
    for name in trees:
        paths = between(repo, start, name)
        if paths is None:
            return None
        found.update(dict.fromkeys(paths))
    conflicting = beneath(git, base, staged or work, work).conflicting
    return (*found, *(path for path in map(decoded, conflicting) if path not in found))


def between(repo: Repository, start: str, end: str) -> tuple[str, ...] | None:
    """Return every path that `end` has otherwise than `start`; None where one of them is not here."""
    said = repo.git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", start, end, "--", check=False)
    if said.code:
        return None
    return tuple(decoded(path) for path in said.out.split(b"\0") if path)


def decoded(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class Beneath:
    """Paths that restoring work brings back besides the files as they were.

    `staged`: paths that are staged as neither the base nor the working tree has them, deletions included.
    `conflicting`: paths in conflict, whose sides `conflict` holds.
    """

    staged: tuple[bytes, ...] = ()
    conflicting: tuple[bytes, ...] = ()
    conflict: str | None = None


def beneath(git: Git, base: str | None, staged: str, work: str) -> Beneath:
    """Return what a comparison of the working tree with its base does not show; nothing where the commits are
    all the same.
    """
    if base == staged:
        return Beneath()
    start = base or EMPTY_TREE[len(work)]
    in_index = names(git, start, staged)
    beside = frozenset(names(git, staged, work)) if in_index and staged != work else frozenset()
    conflict = load_aside(git, staged).unmerged
    # Below a folder for each of its sides.
    listed = git.out("ls-tree", "-r", "-z", "--name-only", "--full-tree", conflict) if conflict else b""
    sides = dict.fromkeys(name.partition(b"/")[2] for name in listed.split(b"\0") if name)
    return Beneath(tuple(path for path in in_index if path in beside), tuple(sides), conflict)


def names(git: Git, start: str, end: str) -> list[bytes]:
    asked = git.out("diff-tree", "-r", "-z", "--name-only", "--no-renames", start, end, "--")
    return [path for path in asked.split(b"\0") if path]
