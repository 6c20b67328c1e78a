"""Core: public keys and their fingerprints, as ssh and gpg write them."""

from __future__ import annotations

import re
from hashlib import sha256

SSH = r"((?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[a-z0-9@.-]+) ([A-Za-z0-9+/]{40,}={0,2})(?: [^\n\r]*)?"
DIGEST = r"SHA256:[A-Za-z0-9+/]{43}"
HEX = r"(?:0x)?([0-9A-Fa-f]{40}|[0-9A-Fa-f]{64})"


def fingerprint(text: str) -> tuple[str, str]:
    """A key's fingerprint as git prints it, and `type base64` where the key itself was given; nothing for no key."""
    word = text.strip()
    key = re.fullmatch(SSH, word)
    if key is not None:
        from base64 import b64decode, b64encode

        try:
            blob = b64decode(key[2], validate=True)
        except ValueError:
            return "", ""
        kind = key[1].encode()
        if blob[: 4 + len(kind)] != len(kind).to_bytes(4, "big") + kind:
            return "", ""
        return f"SHA256:{b64encode(sha256(blob).digest()).decode().rstrip('=')}", f"{key[1]} {key[2]}"
    if re.fullmatch(DIGEST, word):
        return word, ""
    digits = re.fullmatch(HEX, word.replace(" ", ""))
    return (digits[1].upper(), "") if digits is not None else ("", "")
