"""Store: whether the signatures on commits hold, by git's own verdict, for all of them in one process."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ...document import NamedTuple
from ...text.digests import sha256
from .. import private_folder, read_local
from . import Git, Repository

GOOD, BAD, UNKNOWN = "good", "bad", "unknown"
# Git's letters. A good signature by a key that nobody vouches for is `U`, one that cannot be checked is `E`, and where
# git has no means to check at all it says `N`, none: whoever asks here knows that there is one.
_LETTERS = {"G": GOOD, "B": BAD, "R": BAD}
SSH_KEY = "SHA256:"
# What ssh takes for a comment among the allowed signers: an OpenPGP or X.509 key, and whose it is.
LISTED = r"(?m)^# key ([0-9A-F]{40,64}) (\S+)$"


class Verdict(NamedTuple):
    """Verdict on a signature: its worth, its owner in the words of whoever vouches for the key, and the key's
    fingerprint.
    """

    word: str
    signer: str = ""
    key: str = ""


def verify(git: Git, commits: Sequence[str], signers: bytes | None = None) -> dict[str, Verdict]:
    """Return a verdict for each of these commits, all of which carry a signature. An unknown key never reads as good.

    `signers`: an allowed-signers file, instead of the one that git is configured with.
    """
    if not commits:
        return {}
    form = "--format=tformat:%H%x00%G?%x00%GS%x00%GF%x00%GP"
    asked = "".join(f"{oid}\n" for oid in dict.fromkeys(commits)).encode()
    # ssh's own program: the configured one signs, and who can set it could have it say that all is good.
    log = (
        "-c",
        "gpg.ssh.program=ssh-keygen",
        "log",
        "--no-walk=unsorted",
        "--no-show-signature",
        "--stdin",
        form,
    )
    with signers_file(signers) as place:
        said = git.text(*signers_flags(place), *log, input=asked)
    found = dict.fromkeys(commits, Verdict(UNKNOWN))
    listed = None if signers is None else dict(re.findall(LISTED, signers.decode("utf-8", "replace")))
    for line in said.split("\n"):
        oid, letter, signer, used, primary = line.split("\0", 4)
        found[oid] = judged(letter, signer, used if used.startswith(SSH_KEY) else primary or used, listed)
    return found


def judged(letter: str, signer: str, key: str, listed: Mapping[str, str] | None = None) -> Verdict:
    """Return the verdict that git's letter means. A signature that is good by nobody is not good.

    Some ways of asking call a signature good by a key that nobody knows. `listed`: whose OpenPGP and X.509 keys count,
    where that is said; else the machine's keyring decides. A key's own name for its owner is anybody's to choose, so
    that the list's counts.
    """
    word = _LETTERS.get(letter, UNKNOWN)
    if listed is not None and key and not key.startswith(SSH_KEY) and letter in "GU":
        return Verdict(GOOD, listed[key], key) if key in listed else Verdict(UNKNOWN, signer, key)
    if word == GOOD and not signer.strip():
        word = UNKNOWN
    return Verdict(word, signer if letter in "GUXY" else "", key)


@contextlib.contextmanager
def signers_file(signers: bytes | None) -> Iterator[Path | None]:
    """Write the allowed signers to a file of ours: a file that others could write to would vouch for anybody."""
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


def signers_flags(place: Path | None) -> tuple[str, ...]:
    return () if place is None else ("-c", f"gpg.ssh.allowedSignersFile={place}")


def load_verdicts(repo: Repository, commits: Sequence[str], signers: bytes | None) -> dict[str, Verdict]:
    """Return verdicts that are only shown. Those on ssh signatures are kept, by commit and by allowed signers.

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
            private_folder(place.parent)
            with place.open("a", encoding="utf-8") as file:
                file.write("".join(json.dumps([oid, *verdict]) + "\n" for oid, verdict in lasting.items()))
    return {oid: kept.get(oid) or fresh[oid] for oid in commits}


def read_kept(place: Path) -> dict[str, Verdict]:
    import json

    try:
        lines = read_local(place).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    kept = {}
    for line in lines:
        with contextlib.suppress(ValueError, TypeError):
            oid, word, signer, key = json.loads(line)
            kept[str(oid)] = Verdict(str(word), str(signer), str(key))
    return kept
