"""Test bed: what git said of a repository's place, its settings and its refs, for as long as what it read is the same.

Each command asks git the same things when it begins, and a test gives many commands: one git process in three said what
another had said a moment before. Git itself answers first. The key is everything that its answer follows from, with the
test's own folders taken out; whatever else it may have looked at is not remembered: settings that include others, a
working tree elsewhere, a repository that is searched upward, objects that another repository holds.
"""

from __future__ import annotations

import os
import re
import shutil
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gitgate.errors import BrokenRecord
from gitgate.store.git.objects import parse_tree
from gitgate.store.git.process import Git, GitResult, Started, failure

if TYPE_CHECKING:
    import pytest

READING = frozenset({"--list", "--get-regexp", "--get-all"})
# Settings that make git read what is not looked at here; of objects, such as may be fetched when they are asked for.
LEADING = (b"include", b"worktree", b"partialclone", b"promisor")
PLACE = ("rev-parse", "--absolute-git-dir")
VERIFIED = ("rev-parse", "--verify", "--quiet", "--end-of-options")
CHECKED = (("cat-file", "--batch-check"), ("cat-file", "--batch-check=%(objectname)"))
FORMATS = ("--format=%(refname) %(objectname)", "--format=%(objectname)")
# Where git looks for a ref of a name, one after the other.
TRIED = ("", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/")
NAMED = re.compile(r"(HEAD|refs/[\w./-]+)(\^\{commit\}|:[\w./-]+)")
FULL_NAME = re.compile(r"refs/[\w./-]+")
OID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?\n?")
MOST_REFS = 30
RUN, BEGIN = Git.run, Git.begin
GIT = shutil.which("git")


class Unknown(OSError):
    """There may be more than is known here that the answer depends on."""


class Premises(NamedTuple):
    """What an answer follows from, and what is the test's own in that: names and ids of refs, and folders."""

    key: bytes
    own: tuple[str, ...]
    pattern: re.Pattern[str]


@dataclass
class Remembered:
    """What was said in the tests of this process, by everything that it followed from."""

    said: dict[bytes, GitResult] = field(default_factory=dict)
    folder: re.Pattern[str] = re.compile("(?!)")

    def keep_below(self, folder: Path) -> None:
        """The folders of tests are in this one; where links lead to it, git calls them otherwise, and they are kept apart."""
        if folder == folder.resolve():
            self.folder = re.compile(f"(?<={re.escape(str(folder))}/)\\w+")

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """From now on git is asked once, within this process; those that are started ask for themselves."""

        def run(git: Git, *args: str, **how: Any) -> GitResult:
            premises = None if how.keys() - {"check", "input", "env"} else self.premises(git, args, how)
            found = premises and self.recall(premises)
            if found is None:
                found = RUN(git, *args, **how)
                if premises is not None:
                    self.remember(premises, found)
            elif found.code and how.get("check", True):
                raise failure(args[0], found)
            return found

        def begin(git: Git, *args: str) -> Started | Begun:
            premises = self.premises(git, args, {})
            if premises is None:
                return BEGIN(git, *args)
            found = self.recall(premises)
            return Begun(self, premises, found, None if found else BEGIN(git, *args))

        patch.setattr(Git, "run", run)
        patch.setattr(Git, "begin", begin)

    def premises(self, git: Git, args: tuple[str, ...], how: Mapping[str, Any]) -> Premises | None:
        if how.get("env"):
            return None
        try:
            found = followed_from(git, args, how.get("input", b""))
        except (OSError, zlib.error, BrokenRecord, UnicodeError):  # what is damaged is git's to look at
            return None
        if found is None:
            return None
        asked, words = found
        own = list(words)
        longest_first = sorted(map(re.escape, words), key=len, reverse=True)
        pattern = re.compile("|".join([*longest_first, self.folder.pattern]))

        def general(name: re.Match[str]) -> str:
            if name[0] not in own:
                own.append(name[0])
            return f"\x1f{own.index(name[0])}\x1f"

        key = pattern.sub(general, repr(asked))
        return Premises(sha256(key.encode("utf-8", "surrogateescape")).digest(), tuple(own), pattern)

    def remember(self, premises: Premises, result: GitResult) -> None:
        """In words that hold in another test, too; not at all where they name a folder that is not among the premises."""

        def general(name: re.Match[str]) -> str:
            return f"\x1f{premises.own.index(name[0])}\x1f"

        with suppress(ValueError):
            out = premises.pattern.sub(general, result.out.decode("utf-8", "surrogateescape"))
            err = premises.pattern.sub(general, result.err)
            self.said[premises.key] = GitResult(result.code, out.encode("utf-8", "surrogateescape"), err)

    def recall(self, premises: Premises) -> GitResult | None:
        known = self.said.get(premises.key)
        if known is None:
            return None

        def here(number: re.Match[str]) -> str:
            return premises.own[int(number[1])]

        out = re.sub("\x1f(\\d+)\x1f", here, known.out.decode("utf-8", "surrogateescape"))
        err = re.sub("\x1f(\\d+)\x1f", here, known.err)
        return GitResult(known.code, out.encode("utf-8", "surrogateescape"), err)


@dataclass(frozen=True)
class Begun:
    """As `Started`, of a command that may have run before."""

    memory: Remembered
    premises: Premises
    known: GitResult | None
    started: Started | None

    def result(self) -> GitResult:
        if self.started is None:
            assert self.known is not None
            return self.known
        said = self.started.result()
        self.memory.remember(self.premises, said)
        return said

    def close(self) -> None:
        if self.started is not None:
            self.started.close()


def followed_from(git: Git, args: tuple[str, ...], input: bytes) -> tuple[object, Sequence[str]] | None:
    """All that the answer to such a question depends on, and the words of it that may as well be others; None, or an
    OSError, where there may be more than is known here.
    """
    about: dict[str, Callable[[Refs, tuple[str, ...], bytes], object]] = {
        "rev-parse": of_ref,
        "cat-file": of_objects,
        "for-each-ref": of_refs,
    }
    place = args[:2] == PLACE
    settings = args[0] == "config" and READING & set(args) and not {"--file", "--blob"} & set(args)
    if not (place or settings or args[0] in about):
        return None
    if git.env.get("GIT_CONFIG_NOSYSTEM") != "1" or not the_real_git(git.env):
        return None
    folder = git_folder(git)
    if folder is None:
        return None
    asked: object = None if input else args
    words: Sequence[str] = ()
    if not (place or settings):
        refs = Refs(folder)
        asked, words = about[args[0]](refs, args, input), refs.words
    if asked is None:
        return None
    env = sorted(item for item in git.env.items() if item[0] != "PYTEST_CURRENT_TEST")
    return (git.prefix, asked, env, *looked_at(git, folder)), words


class Refs:
    """The refs of a repository, as its files say them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.common = common_folder(folder)
        self.objects = self.common / "objects"
        if (self.common / "reftable").exists() or (self.objects / "info" / "alternates").exists():
            raise Unknown
        self.packed = content(self.common / "packed-refs") or b""
        self.words: list[str] = []
        self.packs = tuple(sorted(pack.name for pack in (self.objects / "pack").iterdir()))

    def state(self, name: str, depth: int = 0) -> object:
        """What this ref is, and whether the object that it is at is there; None where it is not."""
        text = content((self.folder if name == "HEAD" else self.common) / name)
        packed = re.findall(rb"[0-9a-f]+ " + re.escape(name.encode()) + rb"\n(?:\^[0-9a-f]+\n)?", self.packed)
        if text is None and not packed:
            return None
        if text is not None and text.startswith(b"ref: "):
            target = text[5:].decode("utf-8", "surrogateescape").strip()
            if depth > 3 or not FULL_NAME.fullmatch(target):
                raise Unknown
            return (text, self.state(target, depth + 1))
        return (text, packed, text and self.has(text), self.packs)

    def has(self, oid: bytes) -> bool:
        """Whether it is there as a file; an id of another form is none of ours."""
        if not OID.fullmatch(oid):
            raise Unknown
        return (self.objects / oid[:2].decode() / oid[2:].strip().decode()).exists()

    def way(self, name: str, part: str) -> list[str]:
        """The objects that git reads for a file of a commit and that are there as files, up to one that is not."""
        if not part.startswith(":"):
            return []
        found: list[str] = []
        wanted = [b"", *part[1:].encode().split(b"/")]
        oid = self.at(name)
        while oid is not None and (file := self.objects / oid[:2] / oid[2:]).exists():
            found.append(oid)
            head, _, data = zlib.decompress(file.read_bytes()).partition(b"\0")
            if head.startswith(b"commit "):
                oid = data[5:45].decode()
            elif head.startswith(b"tree ") and wanted:
                oid = next((entry.oid for entry in parse_tree(data, 20) if entry.name == wanted[0]), None)
            else:
                return found
            wanted = wanted[1:]
        return found

    def at(self, name: str, depth: int = 0) -> str | None:
        """The id that a ref is at."""
        text = content((self.folder if name == "HEAD" else self.common) / name)
        if text is None:
            packed = re.search(rb"([0-9a-f]+) " + re.escape(name.encode()) + rb"\n", self.packed)
            return packed and packed[1].decode()
        if text.startswith(b"ref: ") and depth < 4:
            return self.at(text[5:].decode("utf-8", "surrogateescape").strip(), depth + 1)
        return text.decode().strip()

    def below(self, place: str) -> list[tuple[str, bytes, bool]]:
        """The refs that have files, in a folder."""
        found = []
        for folder, _, names in os.walk(self.common / place):
            for name in names:
                file = Path(folder, name)
                text = file.read_bytes()
                found.append((str(file.relative_to(self.common)), text, self.has(text)))
                if len(found) > MOST_REFS:
                    raise Unknown
        return sorted(found)


def of_ref(refs: Refs, args: tuple[str, ...], input: bytes) -> object:
    """Where one ref is. Of each that is not there git says the same."""
    name = args[-1]
    if args[:-1] != VERIFIED or input or not FULL_NAME.fullmatch(name):
        return None
    others = [refs.state(f"{folder}{name}") for folder in TRIED]
    refs.words = [name, *ids_in(others)]
    return (args, others)


def of_objects(refs: Refs, args: tuple[str, ...], input: bytes) -> object:
    """What refs and paths stand for. An object of an id is always the same, where it is there."""
    if args[:2] == ("cat-file", "blob") and not input and OID.fullmatch(args[2].encode()):
        return (args, refs.has(args[2].encode()), refs.packs)
    if args not in CHECKED:
        return None
    names = [NAMED.fullmatch(line) for line in input.decode("utf-8", "surrogateescape").splitlines()]
    if not names or None in names:
        return None
    states = [(refs.state(name[1]), refs.way(name[1], name[2])) for name in names if name]
    return (args, input, states, refs.packs)


def of_refs(refs: Refs, args: tuple[str, ...], input: bytes) -> object:
    """Which refs there are, of those that begin so."""
    if len(args) < 3 or args[1] not in FORMATS or input:
        return None
    found: list[tuple[list[tuple[str, bytes, bool]], list[bytes]]] = []
    for pattern in args[2:]:
        plain = re.split(r"[*?\[]", pattern)[0]
        place = plain if plain == pattern and plain.endswith("/") else plain.rpartition("/")[0]
        if place.count("/") < 1 or not FULL_NAME.fullmatch(place):
            return None
        packed = [line for line in refs.packed.splitlines() if f" {place}".encode() in line]
        if len(packed) > MOST_REFS:
            return None
        found.append((refs.below(place), packed))
    names = {name for there, _ in found for name, _, _ in there}
    told = (line.decode("utf-8", "surrogateescape") for _, packed in found for line in packed)
    names |= {line.partition(" ")[2] for line in told}
    refs.words = [*sorted(names), *ids_in(found)]
    return (args, found, refs.packs if names else ())


def ids_in(found: object) -> list[str]:
    """Each id once: where refs are is told the same way whatever their ids are."""
    return list(dict.fromkeys(re.findall("[0-9a-f]{40,64}", repr(found))))


def the_real_git(env: Mapping[str, str]) -> bool:
    """A test may put a git of its own first, or have git tell what it does."""
    if any(name.startswith("GIT_TRACE") for name in env):
        return False
    for folder in env.get("PATH", "").split(os.pathsep):
        if os.path.lexists(found := f"{folder}/git"):
            return found == GIT
    return False


def git_folder(git: Git) -> Path | None:
    """Git's own folder of what is in this directory itself."""
    if named := git.env.get("GIT_DIR"):
        return git.directory / named
    inner = git.directory / ".git"
    if inner.is_file():
        return git.directory / os.fsdecode(inner.read_bytes()).removeprefix("gitdir:").strip()
    if inner.is_dir():
        return inner
    return git.directory if (git.directory / "HEAD").is_file() else None


def common_folder(folder: Path) -> Path:
    link = folder / "commondir"
    return folder / os.fsdecode(link.read_bytes()).strip() if link.exists() else folder


def looked_at(git: Git, folder: Path) -> tuple[object, ...]:
    """The files that it reads, as they are now, and who has those folders; OSError where one leads elsewhere."""
    common = common_folder(folder)
    person = Path(git.env["GIT_CONFIG_GLOBAL"]) if "GIT_CONFIG_GLOBAL" in git.env else common / "none"
    settings = [content(file) for file in (person, common / "config", folder / "config.worktree")]
    if any(word in (text or b"").lower() for text in settings for word in LEADING):
        raise Unknown
    others = (content(folder / "HEAD"), content(common / "shallow"))
    places = [stat(place) for place in (git.directory, folder, common, common / "objects", common / "refs")]
    return (git.directory, *settings, *others, *places, os.geteuid(), Path.cwd())


def content(file: Path) -> bytes | None:
    return file.read_bytes() if file.exists() else None


def stat(place: Path) -> tuple[int, int]:
    seen = place.stat()
    return (seen.st_uid, seen.st_mode)
