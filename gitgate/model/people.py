"""Model: people as git knows them, and the trailers of a commit's message, which tell who asked, answered or wrote what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ..document import NamedTuple

# When two names are one person. A quorum counts people, and only an answer's author amends it.


# As forges write an account into commits: `ID+LOGIN@users.noreply.HOST`, before they had numbers `LOGIN@…`.
NOREPLY = r"(?:[0-9]+\+)?([^@+\s]+)@users\.noreply\.[^@\s]+"
ROBOT = "[bot]"


@lru_cache(4096)  # A record names few people, and asks often.
def address(by: str) -> str:
    """What tells people apart in `Name <email>`: the address, else all of it. The name alone may be spelt anyhow."""
    _, mark, rest = by.rpartition("<")
    email = rest.partition(">")[0] if mark else ""
    return (email.strip() or by.strip()).casefold()


def has_address(by: str) -> bool:
    """Whether a name says whose it is: `Name <email>`, or an address alone. A bare name is anybody's to write."""
    return "@" in address(by)


def same(one: str, other: str) -> bool:
    """Whether both are the same person; nobody is not even the same as nobody."""
    return bool(one) and address(one) == address(other)


def login_of(by: str) -> str:
    """The account of a forge that an address names; empty where it names none. Like every address it is its author's word."""
    found = re.fullmatch(NOREPLY, address(by))
    return found.group(1) if found else ""


def is_robot(by: str) -> bool:
    """Whether it is the account of a program, by the name that forges give such ones."""
    return login_of(by).endswith(ROBOT)


def as_account(login: str, number: str, host: str) -> str:
    """An account as the forge itself writes it into commits: the number stays when a login is given to somebody else."""
    return f"{login} <{f'{number}+' if number else ''}{login}@users.noreply.{host}>"


def split_person(who: str) -> str:
    return who.partition(" <")[0]


def answerer_words(by: str) -> str:
    """Whose answer it is, in one name; where nobody answered, the default stands in."""
    return split_person(by) or "nobody (its default)"


VERIFIED, UNVERIFIED, INVALID = "verified", "unverified", "invalid"


class SignatureMark(NamedTuple):
    """`by`: whose signature it is, where that is known; `key`: its key."""

    word: str = UNVERIFIED
    by: str = ""
    key: str = ""

    @property
    def words(self) -> str:
        """For people: the word, and by whom where that is another name than the answer's."""
        return f"{self.word}, signed by {self.by}" if self.by else self.word


UNSIGNED = SignatureMark()


# The commit message of an event. A subject for people, trailers for lists; no decision is taken from
# them.


PREFIX = "Hitl-"
MOST_BYTES = 200
MOST_NAME = 24


def one_line(text: str, most: int = MOST_BYTES) -> str:
    """One line of UTF-8 without control characters, at most `most` bytes, cut between characters."""
    if len(text) <= most and text.isascii() and text.isprintable() and "  " not in text:
        return text.strip(" ")  # as most are
    # Without their joiner, pictures that were one stand beside one another.
    line = " ".join("".join(c if c.isprintable() else " " for c in text.replace("\u200d", "")).split())
    raw = line.encode("utf-8", "replace")
    if len(raw) <= most:
        return raw.decode("utf-8")
    return raw[: most - 3].decode("utf-8", "ignore").rstrip() + "…"


def trailer_message(subject: str, trailers: Iterable[tuple[str, str]]) -> str:
    lines = [f"{PREFIX}{name}: {one_line(value)}" for name, value in trailers if value]
    return f"{one_line(subject, 120) or 'gate'}\n\n" + "\n".join(lines) + "\n"


def parse_trailers(message: str) -> dict[str, str] | None:
    """The trailers of the last paragraph, or None when they break the rules: duplicate, overlong, unprintable, not ours.

    Git's own trailer formats mix values and obey the user's settings, so we read the paragraph ourselves.
    """
    paragraph = message.rstrip("\n").rpartition("\n\n")[2]
    lines = paragraph.split("\n")
    # Checked as a whole, then split as a whole: a list does this ten thousand times.
    ours = paragraph.startswith(PREFIX) and paragraph.count(f"\n{PREFIX}") == len(lines) - 1
    longest = len(max(lines, key=len))
    if not ours or longest > MOST_BYTES + MOST_NAME or not "".join(lines).isprintable():
        return None
    try:
        found = dict([line[len(PREFIX) :].split(": ", 1) for line in lines])
    except ValueError:
        return None
    if len(found) != len(lines):
        return None
    short = longest <= MOST_BYTES and paragraph.isascii()
    return (
        found
        if short or all(len(v.encode("utf-8", "replace")) <= MOST_BYTES for v in found.values())
        else None
    )


def misread(payload: bytes) -> str:
    """Why git would show another message than this commit's bytes hold; empty when it shows what is there.

    It reads them as the header `encoding` says, and no further than to a null byte.
    """
    head, _, body = payload.partition(b"\n\n")
    named = next((line[9:] for line in head.split(b"\n") if line.startswith(b"encoding ")), b"utf-8")
    if named.lower() not in (b"utf-8", b"utf8"):
        return f"is said to be in {one_line(named.decode('ascii', 'replace'), 40)}, not in UTF-8"
    if b"\0" in body:
        return "has a null byte, where git stops reading"
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return "is not UTF-8"
    return ""


_TRAILER = r"[A-Za-z0-9][A-Za-z0-9-]*: ?\S"


def with_trailers(message: str, wanted: Sequence[tuple[str, str]]) -> str:
    """`message` with each of `wanted` as one of its trailers; one that is there is not said twice."""
    body = message.rstrip("\n")
    before, gap, last = body.rpartition("\n\n")
    block = last.split("\n") if gap and is_block(last) else []
    missing = [f"{name}: {value}" for name, value in wanted if f"{name}: {value}" not in block]
    if not missing:
        return message
    if block:
        return f"{before}\n\n" + "\n".join([*block, *missing]) + "\n"
    return (f"{body}\n\n" if body else "\n\n") + "\n".join(missing) + "\n"


def is_block(paragraph: str) -> bool:
    """Whether every line of the last paragraph is a trailer, or goes on with one."""
    lines = paragraph.split("\n")
    return bool(re.match(_TRAILER, lines[0])) and all(
        re.match(_TRAILER, line) or line[:1] in " \t" for line in lines
    )


def trailer_values(message: str, name: str) -> list[str]:
    """What the lines of a commit's message say under this name, wherever they stand.

    Read so that none is missed: `cherry-pick -x` writes a line below the trailers that is none, `merge --squash` indents them.
    Whoever reads them has to check what they say.
    """
    return [said.strip() for said in re.findall(rf"(?m)^[ \t]*{re.escape(name)}: (.*)$", message)]
