"""Core: a lease says who acts on a gate now, and for how long without a sign of life.

It is a commit that stands on the event that it is for; all it says is in its message. Its holder moves it to a new
commit now and then. Whoever sees the same one for its whole term, by a clock of their own, knows that the holder is gone.
"""

from __future__ import annotations

from . import trailers
from .values import dataclass


@dataclass(frozen=True)
class Lease:
    """`beat` counts the renewals, so that no two are the same commit; `expires` is for who cannot watch it."""

    gate: str
    runner: str
    host: str
    nonce: str
    term: int
    beat: int
    at: str
    expires: str
    by: str = ""


def dump(lease: Lease) -> str:
    """The message of the lease's commit."""
    return trailers.dump(
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
        ],
    )


def parse(message: str) -> Lease | None:
    """The lease that a commit's message holds, or None when it is not one of ours."""
    said = trailers.parse(message) or {}
    term, beat = said.get("Term", ""), said.get("Beat", "")
    numbered = term.isdecimal() and beat.isdecimal()
    if not all(said.get(name) for name in ("Gate", "Nonce", "Expires")) or not numbered:
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
    )
