"""Store: whether the signatures on commits hold, by git's own verdict, for all of them in one process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..core.digests import sha256
from .git import Git
from .repository import Repository

GOOD, BAD, UNKNOWN = "good", "bad", "unknown"
# Git's letters. A good signature by a key that nobody vouches for is `U`, one that cannot be checked is `E`, and where
# git has no means to check at all it says `N`, none: whoever asks here knows that there is one.
_LETTERS = {"G": GOOD, "B": BAD, "R": BAD}
SSH_KEY = "SHA256:"


class Verdict(NamedTuple):
    """What a signature is worth, whose it is in the words of whoever vouches for the key, and the key's fingerprint."""

    word: str
    signer: str = ""
    key: str = ""


def verify(git: Git, commits: Sequence[str], signers: bytes | None = None) -> dict[str, Verdict]:
    """By commit; each of these carries a signature. An unknown key never reads as good.

    `signers`: an allowed-signers file, instead of the one that git is configured with.
    """
    if not commits:
        return {}
    form = "--format=tformat:%H%x00%G?%x00%GS%x00%GF"
    asked = "".join(f"{oid}\n" for oid in dict.fromkeys(commits)).encode()
    log = ("log", "--no-walk=unsorted", "--no-show-signature", "--stdin", form)
    with written(signers) as place:
        said = git.text(*named(place), *log, input=asked)
    found = dict.fromkeys(commits, Verdict(UNKNOWN))
    for line in said.split("\n"):
        oid, letter, signer, key = line.split("\0", 3)
        found[oid] = judged(letter, signer, key)
    return found


def judged(letter: str, signer: str, key: str) -> Verdict:
    """What git's letter means. Good by nobody is not good: some ways of asking say so of a key that nobody knows."""
    word = _LETTERS.get(letter, UNKNOWN)
    if word == GOOD and not signer.strip():
        word = UNKNOWN
    return Verdict(word, signer if letter in "GUXY" else "", key)


@contextlib.contextmanager
def written(signers: bytes | None) -> Iterator[Path | None]:
    """The allowed signers as a file of ours: one that others could write to would vouch for anybody."""
    if signers is None:
        yield None
        return
    import tempfile

    handle, name = tempfile.mkstemp(prefix="gitgate-signers-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(signers)
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def named(place: Path | None) -> tuple[str, ...]:
    return () if place is None else ("-c", f"gpg.ssh.allowedSignersFile={place}")


def load_verdicts(repo: Repository, commits: Sequence[str], signers: bytes | None) -> dict[str, Verdict]:
    """The same for what is only shown: verdicts on ssh signatures are kept, by commit and by allowed signers.

    No decision is taken by them: whoever can write to this folder could have put any verdict there.
    """
    import json

    if signers is None:
        return verify(repo.git, commits)
    place = repo.state_dir / "verdicts" / sha256(signers).hexdigest()[:32]
    kept = read_kept(place)
    fresh = verify(repo.git, [oid for oid in commits if oid not in kept], signers)
    lasting = {oid: verdict for oid, verdict in fresh.items() if verdict.key.startswith(SSH_KEY)}
    if lasting:
        with contextlib.suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("a", encoding="utf-8") as file:
                file.write("".join(json.dumps([oid, *verdict]) + "\n" for oid, verdict in lasting.items()))
    return {oid: kept.get(oid) or fresh[oid] for oid in commits}


def read_kept(place: Path) -> dict[str, Verdict]:
    import json

    try:
        lines = place.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    kept = {}
    for line in lines:
        with contextlib.suppress(ValueError, TypeError):
            oid, word, signer, key = json.loads(line)
            kept[str(oid)] = Verdict(str(word), str(signer), str(key))
    return kept
