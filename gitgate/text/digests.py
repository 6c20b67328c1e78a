"""Text: digests by Python's own code. `hashlib` loads OpenSSL first: 2 of the 80 ms that a question or an answer takes, for some
hundred bytes each.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

__all__ = ["raw_digest", "sha1", "sha256"]

# `random` of the standard library goes the same way. They are the functions that `hashlib` gives where there is no OpenSSL; where a
# Python was built without them, `hashlib` has its own.
if TYPE_CHECKING:
    from hashlib import sha1, sha256
else:
    try:
        from _sha1 import sha1

        if sys.version_info >= (3, 12):
            from _sha2 import sha256
        else:
            from _sha256 import sha256
    except ImportError:
        from hashlib import sha1, sha256

# From here on OpenSSL is faster by more than it takes to load, where there are many such.
LONG = 4096


def raw_digest(name: str, data: bytes) -> bytes:
    """Return the digest by `sha1`, where nothing is secured by it, or `sha256`, by the code that is faster for that
    size.
    """
    if len(data) > LONG:
        import hashlib

        return hashlib.new(name, data, usedforsecurity=False).digest()
    return (sha1 if name == "sha1" else sha256)(data, usedforsecurity=False).digest()
