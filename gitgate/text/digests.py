"""Text: SHA-1 and SHA-256 as hashlib has them, from Python's own modules where it was built with them.

hashlib loads OpenSSL, which takes longer than to digest all that a short command or a receiving hook has to. What digests whole
files is better served by hashlib.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import sha1, sha256
else:
    try:
        from _sha1 import sha1
    except ImportError:
        from hashlib import sha1
    try:
        from _sha2 import sha256
    except ImportError:
        try:
            from _sha256 import sha256  # as Python 3.11 calls it
        except ImportError:
            from hashlib import sha256

__all__ = ["sha1", "sha256"]
