"""Core: public keys and their fingerprints, as ssh and gpg write them."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from hashlib import sha256

SSH = re.compile(r"((?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[a-z0-9@.-]+) ([A-Za-z0-9+/]{40,}={0,2})(?: [^\n\r]*)?")
DIGEST = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
HEX = re.compile(r"(?:0x)?([0-9A-Fa-f]{40}|[0-9A-Fa-f]{64})")


def fingerprint(text: str) -> tuple[str, str]:
    """A key's fingerprint as git prints it, and `type base64` where the key itself was given; nothing for no key."""
    word = text.strip()
    key = SSH.fullmatch(word)
    if key is not None:
        try:
            blob = b64decode(key[2], validate=True)
        except ValueError:
            return "", ""
        kind = key[1].encode()
        if blob[: 4 + len(kind)] != len(kind).to_bytes(4, "big") + kind:
            return "", ""
        return f"SHA256:{b64encode(sha256(blob).digest()).decode().rstrip('=')}", f"{key[1]} {key[2]}"
    if DIGEST.fullmatch(word):
        return word, ""
    digits = HEX.fullmatch(word.replace(" ", ""))
    return (digits[1].upper(), "") if digits is not None else ("", "")
