"""Surfaces: `git gate serve --desk`: what waits, as pages for a browser and a phone. GET shows; only a POST from a page of ours
answers, by the same act as `git gate respond`.

Here is what every request is held to, before anything is read for it: its Host, method, path and size, how many there were, who
sends it, and, for what changes something, that a page of ours sent it.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ...context.logins import Logins, RateLimit, word_digest
from ...errors import Usage
from ...text import one_line

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# `same-origin`: with `no-referrer` browsers say `Origin: null` of a form that comes from here, too.
HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
PATH = re.compile(rb"/|(?:/[A-Za-z0-9_-][A-Za-z0-9._-]{0,79}){1,4}")
MOST_QUERY, MOST_BODY, MOST_FIELDS = 1000, 1_000_000, 500
SENT_WITHIN = 15.0  # seconds for a request, and as many for the form in it
FORM = "application/x-www-form-urlencoded"
OPEN_PATHS = ("/login", "/s/")
LINK = re.compile(r"/l/([A-Za-z0-9_-]{43})(?:/answer)?")
FORM_WORD = "form"


@dataclass(frozen=True)
class Visitor:
    """Whoever sends a request. `key` tells them apart from others, and holds nothing that logs in."""

    key: str
    session: str = ""
    login: str = ""
    link: str = ""

    @property
    def bound(self) -> str:
        """What a form is bound to that is shown to them."""
        named = f"login {self.login}" if self.login else ""
        return self.session or named or (f"link {self.link}" if self.link else "")

    @property
    def sees_all(self) -> bool:
        """A link opens one gate, and nothing else."""
        return bool(self.session or self.login)


LOGIN = re.compile(r"[^\s<>\x00-\x1f\x7f][^<>\x00-\x1f\x7f]{0,199}")
HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,80}", re.ASCII)


@dataclass(frozen=True)
class WebProxies:
    """The proxies that say who somebody is: in which header, and from which addresses that is believed."""

    header: str
    networks: tuple[IPv4Network | IPv6Network, ...]

    def trusts(self, peer: str) -> bool:
        try:
            address = ip_address(peer)
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self.networks)


def read_proxies(header: str, trusted: str) -> WebProxies | None:
    """As the settings have it; None where no proxy authenticates."""
    hint = "git config gitgate.web.trustedProxies '192.0.2.7 2001:db8::/64'"
    if not header.strip():
        if trusted.strip():
            hint = "git config gitgate.web.userHeader X-Forwarded-User"
            raise Usage(
                "gitgate.web.trustedProxies names proxies, and gitgate.web.userHeader no header", hint=hint
            )
        return None
    if not HEADER_NAME.fullmatch(header.strip()):
        raise Usage(f"gitgate.web.userHeader: {one_line(header, 80)!r} is no name of a header", hint=hint)
    if not trusted.strip():
        raise Usage(
            "gitgate.web.userHeader is believed from the proxies in gitgate.web.trustedProxies alone",
            hint=hint,
        )
    networks = []
    for word in trusted.replace(",", " ").split():
        try:
            networks.append(ip_network(word))
        except ValueError as wrong:
            raise Usage(f"gitgate.web.trustedProxies: {wrong}", hint=hint) from None
    return WebProxies(header.strip().lower(), tuple(networks))


@dataclass(frozen=True)
class WebAddress:
    """Where the pages are reached: this port of this machine, and `url`, where a proxy has another name for it."""

    host: str
    port: int
    url: str = ""

    @property
    def origin(self) -> str:
        return as_browsers_say(self.url or f"http://{self.host}:{self.port}")

    @property
    def origins(self) -> frozenset[str]:
        here = {as_browsers_say(f"http://{host}:{self.port}") for host in LOOPBACK}
        return frozenset({*here, self.origin})

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset(urlsplit(one).netloc for one in self.origins)

    @property
    def cookie(self) -> str:
        """Cookies know no ports: two servers of one machine would take one another's."""
        return f"{'__Host-' if self.is_secure else ''}gitgate-{self.port}"

    @property
    def is_secure(self) -> bool:
        return self.origin.startswith("https:")


def as_browsers_say(origin: str) -> str:
    """In small letters, and without the port that its scheme has anyway: so it stands in `Origin`, and `Host` in it."""
    origin = origin.lower()
    return origin.removesuffix(":443" if origin.startswith("https:") else ":80")


@dataclass
class WebGuard:
    """Refuses, or hands on with `scope["visitor"]`. `refused` makes a page of a status and words."""

    app: Callable[[Scope, Receive, Send], Awaitable[None]]
    address: WebAddress
    logins: Logins
    refused: Callable[[int, str], bytes]
    proxies: WebProxies | None = None
    strangers: RateLimit = field(default_factory=lambda: RateLimit(60, 1, time.monotonic))
    known: RateLimit = field(default_factory=lambda: RateLimit(300, 30, time.monotonic))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): word.decode("latin-1") for name, word in scope["headers"]}
        wrong = self.against(scope, headers)
        if wrong is not None:
            await self.say(send, *wrong)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *encoded(HEADERS)]
            await send(message)

        await self.app(scope, receive, guarded)

    def against(self, scope: Scope, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """Why this request is refused: a status, and words; None where it is not."""
        wrong = malformed(scope) or self.misdirected(scope, headers)
        if wrong:
            return wrong
        if self.proxies is not None:
            visitor = self.vouched_for(scope, self.proxies)
        else:
            visitor = self.by_link(scope["path"]) or self.visitor(headers)
        scope["visitor"] = visitor
        if visitor is not None:
            return None if self.known.allows(visitor.key) else (429, "too many requests; wait a moment")
        if not self.strangers.allows(peer_of(scope)):
            return 429, "too many requests from somebody who is not logged in; wait a minute"
        if self.proxies is None and scope["path"].startswith(OPEN_PATHS):
            return None
        if self.proxies is None and scope["path"].startswith("/l/"):
            return 401, "this link does not work, or no longer: it is for one answer, within a day"
        why = (
            "no proxy that is trusted here says who you are" if self.proxies else "you are not logged in here"
        )
        return 401, why

    def misdirected(self, scope: Scope, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """What came by another name than ours, or from another site's page."""
        named = [word for name, word in scope["headers"] if name == b"host"]
        if len(named) != 1 or headers["host"].lower() not in self.address.hosts:
            return 421, "this is not the address of git gate's desk"
        if scope["method"] != "POST":
            return None
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if (origin is not None and origin not in self.address.origins) or site not in (None, "same-origin"):
            return 403, "that was sent by another site's page"
        return None

    def visitor(self, headers: Mapping[str, str]) -> Visitor | None:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.address.cookie)
        except CookieError:
            return None
        if found is None or not self.logins.is_known(found.value):
            return None
        return Visitor(word_digest(found.value), session=found.value)

    def by_link(self, path: str) -> Visitor | None:
        """Whoever has a gate's link; what they are logged in as does not matter there."""
        found = LINK.fullmatch(path)
        if found is None or self.logins.gate_of(found[1]) is None:
            return None
        return Visitor(word_digest(found[1]), link=found[1])

    def vouched_for(self, scope: Scope, proxies: WebProxies) -> Visitor | None:
        """Whom a trusted proxy names. Two names are none, and from anybody else it is not looked at."""
        named = [word for name, word in scope["headers"] if name.decode("latin-1") == proxies.header]
        if len(named) != 1 or not proxies.trusts(peer_of(scope)):
            return None
        try:
            login = named[0].decode("utf-8").strip()
        except UnicodeDecodeError:
            return None
        if not LOGIN.fullmatch(login) or one_line(login) != login:
            return None
        return Visitor(word_digest(f"login {login}"), login=login)

    def form_word(self, visitor: Visitor) -> str:
        """What a form that is shown to this visitor carries."""
        return self.logins.form_word(visitor.bound)

    async def own_form(self, scope: Scope, receive: Receive, visitor: Visitor) -> dict[str, list[str]]:
        """What was filled in in a form that this visitor was shown; UnfitBody where it is none."""
        fields = await read_form(scope, receive)
        given = fields.get(FORM_WORD, [""])[0]
        if not hmac.compare_digest(given.encode(), self.form_word(visitor).encode()):
            again = "this form is not of this login: open its page again, and send it from there"
            raise UnfitBody(403, again)
        return fields

    async def say(self, send: Send, status: int, words: str) -> None:
        body = self.refused(status, words)
        kind = {"content-type": "text/html; charset=utf-8", "content-length": str(len(body))}
        await send({"type": "http.response.start", "status": status, "headers": encoded({**HEADERS, **kind})})
        await send({"type": "http.response.body", "body": body})


def malformed(scope: Scope) -> tuple[int, str] | None:
    if scope["method"] not in ("GET", "HEAD", "POST"):
        return 405, "only GET and POST"
    raw = scope.get("raw_path") or scope["path"].encode()
    if not PATH.fullmatch(raw) or len(scope["query_string"]) > MOST_QUERY:
        return 404, "there is no such page"
    return None


def encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), word.encode()) for name, word in headers.items()]


def peer_of(scope: Scope) -> str:
    return str(scope["client"][0]) if scope.get("client") else ""


class UnfitBody(Exception):
    """What was sent is no form, or too large; `status` says which."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


async def read_form(scope: Scope, receive: Receive) -> dict[str, list[str]]:
    """The fields of a form, with a bound on everything that whoever sends it decides."""
    kinds = [word.decode("latin-1") for name, word in scope["headers"] if name == b"content-type"]
    if [kind.partition(";")[0].strip().lower() for kind in kinds] != [FORM]:
        raise UnfitBody(415, f"expected a form ({FORM})")
    try:
        body = await asyncio.wait_for(read_body(receive), SENT_WITHIN)
    except TimeoutError:
        raise UnfitBody(408, "it took too long to arrive") from None
    try:
        return parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise UnfitBody(400, "that is no form") from None


async def read_body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise UnfitBody(400, "cut off")
        body += message.get("body", b"")
        if len(body) > MOST_BODY:
            raise UnfitBody(413, "too large")
        if not message.get("more_body"):
            return bytes(body)
