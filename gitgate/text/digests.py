"""Text: digests by Python's own code. `hashlib` loads OpenSSL first: 2 of the 80 ms that a question or an answer takes, for some
hundred bytes each.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

__all__ = ["sha1", "sha256"]

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
