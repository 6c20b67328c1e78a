"""Core: signatures of which each key makes one, from digests alone (Winternitz's way with Lamport's).

A key is 67 secrets. Each is digested fifteen times, and the digest of the results is the public key. To sign, the text's
digest is read as 64 numbers below 16, and each secret is digested as often as its number says. Three more numbers count
what the others leave out of fifteen: who digests one of the parts further, to sign something else, would have to take
a step back in one of these.

A saved session needs no more than this: whoever asked goes on saving it, and nobody else. Programs that sign with ssh or
OpenPGP need not be there, and a person's own key is not at hand where an agent asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from .lease import repeated

MOST = 15
COUNTING = 3
PARTS = 64 + COUNTING
SIZE = 32


def numbers(text: bytes) -> list[int]:
    """The digest of a text as numbers below 16, and what they leave out, counted."""
    digits = [int(digit, 16) for digit in sha256(text).hexdigest()]
    left = sum(MOST - digit for digit in digits)
    return digits + [int(digit, 16) for digit in f"{left:0{COUNTING}x}"]


def secrets_of(seed: bytes, number: int) -> Iterator[bytes]:
    """The secrets of one key of a seed."""
    for part in range(PARTS):
        yield sha256(b"session %d %d " % (number, part) + seed).digest()


def public_key(seed: bytes, number: int) -> str:
    ends = (repeated(secret, MOST) for secret in secrets_of(seed, number))
    return sha256(b"".join(ends)).hexdigest()


def sign(seed: bytes, number: int, text: bytes) -> bytes:
    """The signature of a text with one key of a seed. Two texts signed with the same key would let others sign more."""
    return b"".join(
        repeated(secret, steps) for secret, steps in zip(secrets_of(seed, number), numbers(text), strict=True)
    )


def signer(signature: bytes, text: bytes) -> str:
    """The public key that this is a signature of; empty where it is none of anybody's."""
    if len(signature) != PARTS * SIZE:
        return ""
    parts = (signature[at : at + SIZE] for at in range(0, len(signature), SIZE))
    ends = (repeated(part, MOST - steps) for part, steps in zip(parts, numbers(text), strict=True))
    return sha256(b"".join(ends)).hexdigest()
