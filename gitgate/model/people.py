"""Model: when two names are one person. A quorum counts people, and only an answer's author amends it."""

from __future__ import annotations

import re
from functools import lru_cache

from ..document.values import NamedTuple

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
