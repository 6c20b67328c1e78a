"""Surfaces: a web address hears of a gate, signed as the Standard Webhooks specification says (its version 1, symmetric).

Who receives it checks the signature and the time, and tells by `webhook-id` what it has had before.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from email.message import Message
from ipaddress import ip_address
from typing import IO, Any
from urllib.parse import urlsplit

from ...version import VERSION
from . import Endpoint, Notification, NotSent

LONGEST = 10.0
PREFIX = "whsec_"
LEAST, MOST = 24, 64  # bytes of a secret, by the specification
GONE = 410
LATER = (429, 503)
LONGEST_PAUSE = 6 * 3600.0
MAKE_KEY = 'git config gitgate.notify.secret "whsec_$(openssl rand -base64 32)"'


class WebhookChannel:
    kind = "webhook"

    def misfit(self, target: Endpoint) -> str:
        if not is_web(target.words):
            return "webhook URL, and nothing behind it"
        scheme, host = parts_of(target.words)
        if scheme == "https" or (scheme == "http" and target.own and is_here(host)):
            return ""
        return "an address that begins with https:// (http:// is for this machine itself, said by its own settings)"

    def lacks(self, target: Endpoint) -> str:
        try:
            signing_key(target.secret)
        except ValueError as wrong:
            return f"{wrong}; {MAKE_KEY}"
        return ""

    def shown(self, target: Endpoint) -> str:
        """Return scheme and host alone: the path may be a secret, too."""
        scheme, host = parts_of(target.words)
        return f"webhook {scheme}://{host}/…"

    def send(self, target: Endpoint, notification: Notification) -> None:
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import Request

        body = json.dumps(notification.shape, ensure_ascii=False).encode("utf-8", "replace")
        try:
            headers = signed_headers(target.secret, notification.id, int(time.time()), body)
        except ValueError as wrong:
            raise NotSent(str(wrong), hint=MAKE_KEY) from wrong
        shown = self.shown(target)
        asked = Request(target.words, body, headers, method="POST")  # noqa: S310 - `misfit` let no other scheme through
        try:
            opener(parts_of(target.words)[1]).open(asked, timeout=LONGEST).close()
        except HTTPError as refused:
            with refused:
                raise refusal(shown, refused.code, refused.headers) from refused
        except (OSError, HTTPException, ValueError) as failed:
            reason = getattr(failed, "reason", failed)
            raise NotSent(f"{shown} could not be reached: {type(reason).__name__}") from failed


def is_web(address: str) -> bool:
    """Return whether this can be an address at all: nothing in it may end a line of the request."""
    try:
        return (
            bool(parts_of(address)[1]) and address.isascii() and address.isprintable() and " " not in address
        )
    except ValueError:
        return False


def parts_of(address: str) -> tuple[str, str]:
    """Return scheme and host, without a login."""
    parts = urlsplit(address)
    port = f":{parts.port}" if parts.port else ""
    return parts.scheme, f"{parts.hostname or ''}{port}"


def is_here(host: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    try:
        return name == "localhost" or ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def signing_key(secret: str) -> bytes:
    """Return the bytes behind `whsec_`. ValueError says what was expected, and nothing of the secret."""
    expected = f"a webhook needs a secret: whsec_ and {LEAST} to {MOST} bytes in base64"
    if not secret.startswith(PREFIX):
        raise ValueError(expected)
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError) as wrong:
        raise ValueError(expected) from wrong
    if not LEAST <= len(key) <= MOST:
        raise ValueError(expected)
    return key


def signature(secret: str, name: str, at: int, body: bytes) -> str:
    """Return the signature of the message's id, its moment and its body, with points between them."""
    signed = hmac.new(signing_key(secret), b".".join((name.encode(), str(at).encode(), body)), hashlib.sha256)
    return f"v1,{base64.b64encode(signed.digest()).decode()}"


def signed_headers(secret: str, name: str, at: int, body: bytes) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "User-Agent": f"git-gate/{VERSION}",
        "webhook-id": name,
        "webhook-timestamp": str(at),
        "webhook-signature": signature(secret, name, at, body),
    }


def opener(host: str) -> Any:
    """Return an opener that follows no redirect: another host would receive what is signed for this one."""
    from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

    class Stay(HTTPRedirectHandler):
        def redirect_request(
            self, req: object, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
        ) -> None:
            del req, fp, code, msg, headers, newurl

    return build_opener(Stay, *([ProxyHandler({})] if is_here(host) else []))


def refusal(shown: str, code: int, headers: Message) -> NotSent:
    if code == GONE:
        return NotSent(f"{shown} says that it is gone (410)", hint="git config --edit", gone=True)
    if 300 <= code < 400:
        return NotSent(f"{shown} leads elsewhere ({code}), and is not followed", hint="name where it leads")
    said = headers.get("Retry-After") or ""
    wait = float(said[:9]) if code in LATER and said.isdecimal() else 0.0
    return NotSent(f"{shown} answered {code}", after=min(wait, LONGEST_PAUSE))
