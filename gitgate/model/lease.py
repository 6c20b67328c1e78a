"""Model: a lease says who acts on a gate now, and for how long without a sign of life.

It is a commit on the event that it is for; all it says is in its message. Its holder moves it to a new commit now and
then. Whoever sees it unmoved for its whole term, by a clock of their own, knows that the holder is gone.

That it is the holder who moves it is proven by a chain of digests: the holder thinks of a secret, and the claim names
the end of the chain that begins with it. Each renewal reveals the value before the last one that was told. Anybody can
check that; only who knows the secret can do it. A nonce proves nothing, since all can read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import model
from ..document import dataclass
from ..text.digests import sha256

LINKS = 512
"""How many renewals one chain is for; the last of them names the end of the next chain."""
MOST_LINKS = 4096
_VALUE = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Lease:
    """Lease of a gate or a run. `beat` counts the renewals. `reveal` is the link that this renewal shows, `anchor` the
    end of a chain that begins here.

    A term of 0 means that the holder has left. `expires` is for people; nothing is decided by it.
    """

    gate: str
    runner: str
    host: str
    nonce: str
    term: int
    beat: int
    at: str
    expires: str
    by: str = ""
    reveal: str = ""
    anchor: str = ""

    @property
    def over(self) -> bool:
        return self.term == 0


@dataclass(frozen=True)
class Link:
    """Link of a chain that was shown: its value, and the beat at which it was."""

    value: str
    beat: int


def lease_message(lease: Lease) -> str:
    """Return the message of the lease's commit."""
    return model.trailer_message(
        f"{lease.runner} on {lease.host or 'an unnamed host'} acts on gate {lease.gate}",
        [
            ("Gate", lease.gate),
            ("Runner", lease.runner),
            ("Host", lease.host),
            ("By", lease.by),
            ("Nonce", lease.nonce),
            ("Term", str(lease.term)),
            ("Beat", str(lease.beat)),
            ("At", lease.at),
            ("Expires", lease.expires),
            ("Reveal", lease.reveal),
            ("Anchor", lease.anchor),
        ],
    )


def parse_lease(message: str) -> Lease | None:
    """Return the lease in a commit's message; None when it is not one of ours."""
    said = model.parse_trailers(message) or {}
    term, beat = said.get("Term", ""), said.get("Beat", "")
    numbered = all(re.fullmatch("[0-9]{1,9}", number) for number in (term, beat))
    told = [said[name] for name in ("Reveal", "Anchor") if said.get(name)]
    if not all(said.get(name) for name in ("Gate", "Nonce", "Expires")) or not numbered:
        return None
    if not all(_VALUE.fullmatch(value) for value in told):
        return None
    return Lease(
        gate=said["Gate"],
        runner=said.get("Runner", ""),
        host=said.get("Host", ""),
        nonce=said["Nonce"],
        term=int(term),
        beat=int(beat),
        at=said.get("At", ""),
        expires=said["Expires"],
        by=said.get("By", ""),
        reveal=said.get("Reveal", ""),
        anchor=said.get("Anchor", ""),
    )


# the chain


def end_of(seed: str) -> str:
    """Return the end of the chain of this seed, the only link that is shown at first."""
    return value_of(seed, 0)


def repetitions(data: bytes, times: int) -> Iterator[bytes]:
    """Yield SHA-256 of `data`, of the result, and so on."""
    for _ in range(times):
        data = sha256(data).digest()
        yield data


def repeated(data: bytes, times: int) -> bytes:
    """Return the result of SHA-256 applied to `data` that many times."""
    for _ in range(times):
        data = sha256(data).digest()
    return data


def value_of(seed: str, number: int) -> str:
    """Return the value that the renewal of that number reveals; the seed itself is never revealed."""
    return repeated(b"link" + bytes.fromhex(seed), 1 + LINKS - number).hex()


def next_seed(seed: str) -> str:
    """Return the seed of the chain that follows, derived so that a renewal whose report was lost named the same one."""
    return repeated(b"next" + bytes.fromhex(seed), 1).hex()


def told_link(lease: Lease, anchor: str) -> Link:
    """Return the link that this lease shows of its chain; `anchor` is the end that the chain began with."""
    if lease.anchor:
        return Link(lease.anchor, lease.beat)
    return Link(lease.reveal, lease.beat) if lease.reveal else Link(anchor, 0)


def leads_to(value: str, beat: int, known: Link) -> bool:
    """Return whether `value`, revealed at that beat, comes before the known link of the chain."""
    steps = beat - known.beat
    if not 0 < steps <= MOST_LINKS or not _VALUE.fullmatch(value):
        return False
    return repeated(bytes.fromhex(value), steps).hex() == known.value


def is_before(value: str, known: Link) -> bool:
    """Return whether `value` comes before the known link of the chain, at an unknown beat, as an outcome's."""
    if not _VALUE.fullmatch(value):
        return False
    wanted = bytes.fromhex(known.value)
    return any(found == wanted for found in repetitions(bytes.fromhex(value), LINKS))


MOST = 15
COUNTING = 3
PARTS = 64 + COUNTING
SIZE = 32


def numbers(text: bytes) -> list[int]:
    """Return the digest of a text as numbers below 16, followed by a checksum: the sum of what each lacks to 15."""
    digits = [int(digit, 16) for digit in sha256(text).hexdigest()]
    left = sum(MOST - digit for digit in digits)
    return digits + [int(digit, 16) for digit in f"{left:0{COUNTING}x}"]


def secrets_of(seed: bytes, number: int) -> Iterator[bytes]:
    """Return the secrets of one key of a seed."""
    for part in range(PARTS):
        yield sha256(b"session %d %d " % (number, part) + seed).digest()


def public_key(seed: bytes, number: int) -> str:
    ends = (repeated(secret, MOST) for secret in secrets_of(seed, number))
    return sha256(b"".join(ends)).hexdigest()


def sign(seed: bytes, number: int, text: bytes) -> bytes:
    """Return the signature of a text with one key of a seed. A second text with that key would let others sign more."""
    return b"".join(
        repeated(secret, steps) for secret, steps in zip(secrets_of(seed, number), numbers(text), strict=True)
    )


def signer(signature: bytes, text: bytes) -> str:
    """Return the public key that made this signature; empty where the signature has the wrong length."""
    if len(signature) != PARTS * SIZE:
        return ""
    parts = (signature[at : at + SIZE] for at in range(0, len(signature), SIZE))
    ends = (repeated(part, MOST - steps) for part, steps in zip(parts, numbers(text), strict=True))
    return sha256(b"".join(ends)).hexdigest()
