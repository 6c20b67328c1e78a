"""Surfaces: JSON over HTTP to a forge. Bounded, patient where that helps, and no token is ever told to another host.

The standard library does: what is asked of a forge is a dozen small JSON calls, the same transport serves every forge, and
answering from a terminal can dispatch without an extra being installed.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException, IncompleteRead
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from ....context.targets import API_ENDS
from ....errors import Failure
from ....text import one_line
from ....version import VERSION

MOST_BYTES = 32_000_000
MOST_PAGES = 1000
MOST_DIGITS = 15
PAUSES = (1.0, 2.0, 5.0, 15.0)
LONGEST_PAUSE = 90.0
UNSAID_PAUSE = 60.0  # what GitHub asks for where a secondary limit names no time
PASSING = frozenset((500, 502, 503, 504))
UNCHANGED = 304
MOST_KNOWN = 500  # replies that are kept, of so many bytes each
MOST_KEPT = 500_000
MOVED = frozenset((301, 302, 307, 308))
MOST_MOVES = 3
ANOTHER = "it needs another one"
# The first that is part of a call's path.
RIGHTS = (
    ("/actions/secrets", "Secrets"),
    ("/actions/", "Actions"),
    ("/issues/", "Issues and Pull requests"),
    ("/pulls", "Pull requests"),
    ("/check-runs", "Checks"),
    ("/status", "Commit statuses"),
    ("/dispatches", "Contents"),
    ("/comments", "Contents"),
)


class ForgeFailed(Failure):
    """Failure of the forge to do what was asked. `status` is HTTP's, 0 where there was no answer."""

    code = "forge_failed"

    def __init__(self, message: str, *, hint: str = "", status: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class Unclear(ForgeFailed):
    """Failure after which nobody knows whether it was done: the connection broke after it was asked."""

    code = "forge_unclear"


class TooMany(ForgeFailed):
    """Failure of a list that has more pages than were to be read."""


@dataclass(frozen=True)
class WebReply:
    """Reply of the forge: the status, the headers by small letters, and the JSON value."""

    status: int
    headers: Mapping[str, str]
    value: Any


Known = dict[tuple[str, str], tuple[str, WebReply]]


class StayHere(HTTPRedirectHandler):
    """Handler that follows no redirect: urllib would follow to any host, and take the token along."""

    def redirect_request(self, *_: object) -> None:
        return None


@dataclass
class Web:
    """API of one host, spoken to with one token."""

    base: str
    token: str = field(default="", repr=False)
    scheme: str = "Bearer"
    renewal: str = ANOTHER
    """How to come by a token that is valid, by what counts for this host."""
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 20.0
    pauses: tuple[float, ...] | None = None
    longest: float = LONGEST_PAUSE
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.time
    known: Known = field(default_factory=dict, repr=False)
    """What was read before, by token and address, with the mark that it had: the forge sends it again only where it changed."""
    right: Callable[[str, str], str] = field(default_factory=lambda: named_right, repr=False)
    """What a token needs for a call, in the forge's own words."""
    opener: OpenerDirector = field(default_factory=lambda: build_opener(StayHere()), repr=False)
    moved: bool = False

    def __post_init__(self) -> None:
        refuse_unsafe(self.base)

    def get(self, path: str, query: Mapping[str, object] | None = None) -> WebReply:
        return self.send("GET", path + (f"?{urlencode(query)}" if query else ""))

    def send(
        self, method: str, path: str, body: object = None, *, repeatable: bool | None = None
    ) -> WebReply:
        """Make one call. Repeat it where that is harmless and may help: 5xx, a broken connection, a rate limit."""
        again = method != "POST" if repeatable is None else repeatable
        for wait in (*(PAUSES if self.pauses is None else self.pauses), None):
            try:
                return self.follow(method, self.address(path), body)
            except HTTPError as refused:
                said = read_error(refused)
                pause = self.pause_after(refused.code, refused.headers, said, wait)
                limited = refused.code in (403, 429)
                if wait is None or pause is None or not (again or limited):
                    unsure = not again and refused.code in PASSING
                    raise failed(
                        self.base,
                        method,
                        path,
                        refused.code,
                        said,
                        renewal=self.renewal,
                        unsure=unsure,
                        right=self.right(method, path),
                    ) from None
            except (URLError, HTTPException, OSError, TimeoutError) as broken:
                pause = wait
                if wait is None or not again:
                    reason = one_line(str(getattr(broken, "reason", broken)), 200)
                    kind = ForgeFailed if again else Unclear
                    raise kind(
                        f"{host_of(self.base)} cannot be reached: {reason}", hint="try again later"
                    ) from broken
            except ValueError as odd:  # urllib's, of an address that is none: ours, or where we were sent
                where = one_line(path.partition("?")[0], 100)
                raise ForgeFailed(f"{host_of(self.base)} has no address to ask for {where}") from odd
            self.pause(pause or 0.0)
        raise AssertionError("the last pause is None")

    def follow(self, method: str, url: str, body: object) -> WebReply:
        """Make one call, and follow redirects on this host: a renamed repository is elsewhere on it."""
        for _ in range(MOST_MOVES):
            try:
                return self.once(method, url, body)
            except HTTPError as moved:
                there = urljoin(url, moved.headers.get("Location") or "")
                if moved.code not in MOVED or not self.is_here(there):
                    raise
                moved.close()
                url, self.moved = there, True
        return self.once(method, url, body)

    def once(self, method: str, url: str, body: object) -> WebReply:
        sent = None if body is None else json.dumps(body).encode()
        headers = {"User-Agent": f"git-gate/{VERSION}", "Accept": "application/json", **self.headers}
        if self.token:
            headers["Authorization"] = f"{self.scheme} {self.token}"
        if sent is not None:
            headers["Content-Type"] = "application/json"
        mark, before = self.known.get((self.token, url), ("", None)) if method == "GET" else ("", None)
        if mark:
            headers["If-None-Match"] = mark
        asked = Request(url, data=sent, method=method, headers=headers)  # noqa: S310 - see refuse_unsafe
        try:
            answer = self.opener.open(asked, timeout=self.timeout)
        except HTTPError as said:
            if said.code != UNCHANGED or before is None:
                raise
            said.close()
            return before
        with answer:
            data = answer.read(MOST_BYTES + 1)
            promised = digits(answer.headers.get("Content-Length"))
            if promised is not None and len(data) < min(promised, MOST_BYTES):
                raise IncompleteRead(data)  # reading up to a limit does not notice by itself
            reply = WebReply(answer.status, lower(answer.headers), parse_json_reply(data, self.base))
        if method == "GET" and len(data) <= MOST_KEPT:
            self.keep(url, reply)
        return reply

    def keep(self, url: str, reply: WebReply) -> None:
        """Keep a reply for as long as the caller goes on. The oldest is dropped first."""
        self.known.pop((self.token, url), None)
        if reply.headers.get("etag"):
            self.known[self.token, url] = (reply.headers["etag"], reply)
        while len(self.known) > MOST_KNOWN:
            del self.known[next(iter(self.known))]

    def pages(self, path: str, query: Mapping[str, object], most: int = MOST_PAGES) -> Iterator[Any]:
        """Yield every item of every page: an answer on a later page is an answer, too."""
        reply = self.get(path, query)
        for page in range(1, most + 1):
            if not isinstance(
                reply.value, list
            ):  # an empty thread, it would seem, and everything be said again
                raise ForgeFailed(f"{host_of(self.base)} sent no list for {path}", hint="try again later")
            yield from reply.value
            following = next_page(reply.headers.get("link", ""))
            if not following:
                return
            if page == most:
                break
            if not self.is_here(following):
                raise ForgeFailed(
                    f"{host_of(self.base)} names a page of another host: {one_line(following, 100)}"
                )
            reply = self.send("GET", following)
        raise TooMany(f"{host_of(self.base)}: there is no end of pages at {path}")

    def is_here(self, address: str) -> bool:
        """Return whether an address can be asked for, and the token may go there."""
        try:
            return address.isascii() and origin(address) == origin(self.base)
        except ValueError:
            return False

    def address(self, path: str) -> str:
        return path if path.startswith(("http://", "https://")) else self.base.rstrip("/") + path

    def pause_after(self, status: int, headers: Message, said: str, wait: float | None) -> float | None:
        """Return how long to wait before the next try; None when a try is useless."""
        if status in PASSING:
            return wait
        limited = status == 429 or (
            status == 403
            and (
                headers.get("Retry-After") is not None
                or headers.get("X-RateLimit-Remaining") == "0"
                or "rate limit" in said.lower()
            )
        )
        if not limited:
            return None
        pause = self.asked_pause(headers, wait or 0.0)
        return pause if pause <= self.longest else None

    def asked_pause(self, headers: Message, wait: float) -> float:
        after = headers.get("Retry-After") or ""
        seconds = digits(after)
        if seconds is not None:
            return float(seconds)
        if after:
            with contextlib.suppress(ValueError, OverflowError):
                return max(wait, parsedate_to_datetime(after).timestamp() - self.clock())
        reset = digits(headers.get("X-RateLimit-Reset"))
        if headers.get("X-RateLimit-Remaining") == "0" and reset is not None:
            return max(wait, reset - self.clock() + 1)
        return max(wait, UNSAID_PAUSE)


def refuse_unsafe(base: str) -> None:
    """Refuse an address without https, or with a name. Errors show the host alone, so that no password is in one."""
    end = next((one for one in API_ENDS if base.rstrip("/").endswith(one)), API_ENDS[0])
    hint = f"git config gitgate.forgeApi https://HOST{end}"
    try:
        scheme, host, _ = origin(base)
    except ValueError:
        raise Failure("the address of the forge's API is none", hint=hint) from None
    here = one_line(host_of(base), 100) or "no host"
    if scheme != "https" and not (scheme == "http" and host in ("localhost", "127.0.0.1", "::1")):
        raise Failure(f"the forge's API at {here} is not https: a token would travel in the open", hint=hint)
    if "@" in urlsplit(base).netloc:
        raise Failure(f"the address of the forge's API at {here} has a name in it: it takes none", hint=hint)


def origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port


def digits(said: str | None) -> int | None:
    """Return the number in a header; None where it is none. An absurd one is cut, and is large all the same."""
    return int(said[:MOST_DIGITS]) if said and said.isdecimal() else None


def host_of(base: str) -> str:
    return urlsplit(base).netloc.rpartition("@")[2]


def lower(headers: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def parse_json_reply(data: bytes, base: str) -> Any:
    if len(data) > MOST_BYTES:
        raise ForgeFailed(f"{host_of(base)} sent more than {MOST_BYTES:,} bytes")
    if not data.strip():
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as wrong:
        raise ForgeFailed(
            f"{host_of(base)} did not answer in JSON", hint="is this the address of its API?"
        ) from wrong


@contextlib.contextmanager
def understood(base: str) -> Iterator[None]:
    """Turn an error in reading the forge's JSON, which lacks a field or has another there, into its own failure."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as wrong:
        raise ForgeFailed(
            f"{host_of(base)} sent something of another shape: {one_line(repr(wrong), 100)}",
            hint="is this the address of its API?",
        ) from wrong


def read_error(refused: HTTPError) -> str:
    """Return the forge's own words on one line; empty where there are none."""
    try:
        with refused:
            said = json.loads(refused.read(65_536))
    except (ValueError, OSError, HTTPException, RecursionError):
        return ""
    return (
        one_line(str(said.get("message") or said.get("error") or ""), 200) if isinstance(said, dict) else ""
    )


def right_for(method: str, path: str) -> str:
    """Return the right that a call needs, as GitHub names it where tokens are made. Other forges' names are alike."""
    name = next((name for part, name in RIGHTS if part in path), "Metadata")
    return f"{name}: {'read' if method == 'GET' else 'write'}"


def named_right(method: str, path: str) -> str:
    """Return the right that a call needs, with the page that tells more."""
    return f"{right_for(method, path)}: docs/github.md, Tokens"


def failed(
    base: str,
    method: str,
    path: str,
    status: int,
    said: str,
    *,
    renewal: str = ANOTHER,
    unsure: bool = False,
    right: str = "",
) -> ForgeFailed:
    right = right or named_right(method, path)
    hints = {
        401: f"the token is not valid (any more): {renewal}",
        403: f"the token may not do this, or the rate limit is used up; it takes {right}",
        404: f"it is not there, or the token may not see it; it takes {right}",
        429: "too many requests: try again later",
    }
    words = f": {said}" if said else ""
    where = path.partition("?")[0]
    return (Unclear if unsure else ForgeFailed)(
        f"{host_of(base)} answered {status} to {method} {where}{words}",
        hint=hints.get(status, "try again later" if status >= 500 else ""),
        status=status,
    )


def next_page(link: str) -> str:
    for part in link.split(","):
        address, _, rest = part.strip().partition(">")
        if 'rel="next"' in rest.replace(" ", "") and address.startswith("<"):
            return address[1:]
    return ""
