"""Store: what of the partial work stays on this machine, and how a path is shown.

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

from ...document.values import dataclass

if TYPE_CHECKING:
    from ...text.secrets import WordRules


READ_FOR_SECRETS = 64 * 1024
NESTED = "a repository of its own"
GATES_OWN = "`.hitl` is kept for gates"
NOT_A_FILE = "neither a file nor a symbolic link"
UNREADABLE = "it cannot be read"
TELLING_NAME = "its name says that it holds secrets"


@dataclass(frozen=True)
class LeftOut:
    """A path that the snapshot does not carry, and why. The path is quoted as git quotes it where it must be."""

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
    """A path as a person may read it; one with control, invisible or undecodable characters is quoted as git does."""
    try:
        text = path.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text and text.isprintable() and '"' not in text and "\\" not in text:
        return text
    shown = (_PLAIN_ESCAPES.get(b) or (chr(b) if 0x20 <= b < 0x7F else f"\\{b:03o}") for b in path)
    return f'"{"".join(shown)}"'


def path_of(shown: str) -> bytes:
    """The path that `printable` showed."""
    if not (len(shown) >= 2 and shown.startswith('"') and shown.endswith('"')):
        return shown.encode("utf-8", "surrogateescape")
    return re.sub(
        rb'\\([0-3][0-7]{2}|[abtnvfr"\\])',
        lambda found: bytes([int(found[1], 8)]) if found[1].isdigit() else _BACK[found[1].decode()],
        shown[1:-1].encode("utf-8", "surrogateescape"),
    )


def is_gates_own(path: bytes) -> bool:
    """Whether a path is `.hitl` at the top, or beneath it; file systems that fold case are taken at their word."""
    return path.split(b"/", 1)[0].lower() == b".hitl"


def lstat(top: Path, path: bytes) -> os.stat_result | None:
    """What is at a path, without following a link; None where nothing is."""
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
    """Why an untracked file stays here; None where it may go."""
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
    """Why a file that history does not know may be a secret: by its name, or by how it begins."""
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
        head = os.read(handle, READ_FOR_SECRETS)
    except OSError:
        return UNREADABLE
    finally:
        os.close(handle)
    return secret_text_reason(head, path)


def secret_text_reason(head: bytes, path: bytes) -> str | None:
    """Why what a file begins with may be a secret. Nothing of the content is repeated: the reason names the kind."""
    from ...text.secrets import find_secrets, named_secret

    for decoded in _texts(head):
        if found := next(iter(find_secrets(decoded)), None):
            return f"it seems to hold a secret ({found.kind})"
        if kind := named_secret(decoded, path.decode("utf-8", "replace"), word_rules()):
            return f"it seems to hold a secret ({printable(kind.encode('utf-8', 'replace'))})"
    return None


@cache
def word_rules() -> WordRules:
    """The rules that are another project's data; its licence stands beside them."""
    from ...text.secrets import parse_rules

    return parse_rules((Path(__file__).parent / "rules" / "detect-secrets.txt").read_text(encoding="utf-8"))


def _texts(head: bytes) -> list[str]:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return [head.decode("utf-16", "replace")]
    if b"\0" in head[:8192]:
        return []  # not a text: no shape of a token is looked for
    return [head.decode("utf-8", "replace")]


class Parents:
    """Whether a path lies beyond a symbolic link, where git refuses to look; each directory is looked at once."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._links: dict[bytes, bool] = {b"": False}

    def beyond_link(self, path: bytes) -> bool:
        parent = path.rpartition(b"/")[0]
        if parent not in self._links:
            place = self._top / os.fsdecode(parent)
            self._links[parent] = self.beyond_link(parent) or place.is_symlink()
        return self._links[parent]
