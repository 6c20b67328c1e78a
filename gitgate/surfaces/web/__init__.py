"""Surfaces: `git gate serve --desk`: what waits, as pages for a browser and a phone. GET shows; only a POST from a page of ours
answers, by the same act as `git gate respond`.

Here is what the pages stand on. What every request is held to, before anything is read for it: its Host, method, path and size, how
many there were, who sends it, and, for what changes something, that a page of ours sent it. And what they show, as plain values.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from http.cookies import CookieError, SimpleCookie
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from ...acts import find_gate, what_became
from ...acts.answering import check_amendable
from ...acts.reporting import events_of_all
from ...context import Desk
from ...context import open_desk as opened
from ...context.logins import Logins, RateLimit, word_digest
from ...errors import GateError, UnknownGate, Usage
from ...flows.checking import asked_at, details_of
from ...flows.journal import find_run
from ...gates import Filter, list_gates, own_word_last, runs_here
from ...gates.work import diff_of
from ...model import AWAITING, allows
from ...model.gate import Gate, Question
from ...policy.ruling import marks
from ...questions import Control, Given
from ...questions.answers import value_words
from ...questions.file import told_fields
from ...questions.types import plain_word, type_of
from ...record import Summary, by_pressure
from ...render import shapes
from ...render.letter import attached, conversation_part, outcome_part, requester, ways_to_answer, work_part
from ...render.runs import run_shape
from ...text import format_time, one_line

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
    """Sender of a request. `key` tells senders apart, and holds nothing that logs in."""

    key: str
    session: str = ""
    login: str = ""
    link: str = ""
    live: bool = False
    """A page that is open reads itself anew: nobody opens one."""

    @property
    def bound(self) -> str:
        """Identity to which a form is bound that is shown to the visitor: a session, a login or a link."""
        named = f"login {self.login}" if self.login else ""
        return self.session or named or (f"link {self.link}" if self.link else "")

    @property
    def sees_all(self) -> bool:
        """Return whether the visitor sees all pages: a link opens one gate, and nothing else."""
        return bool(self.session or self.login)


LIVE = "gitgate-live"  # the header of what a page's script reads
LOGIN = re.compile(r"[^\s<>\x00-\x1f\x7f][^<>\x00-\x1f\x7f]{0,199}")
HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,80}", re.ASCII)


@dataclass(frozen=True)
class WebProxies:
    """Proxies that authenticate: the header that names a person, and the addresses from which it is believed."""

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
    """Return the proxies of the settings; None where no proxy authenticates."""
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
    """Address of the pages: this port of this machine, and `url` where a proxy has another name for it."""

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
        """Name of the login's cookie, with the port in it.

        Cookies know no ports: two servers of one machine would take one another's.
        """
        return f"{'__Host-' if self.is_secure else ''}gitgate-{self.port}"

    @property
    def is_secure(self) -> bool:
        return self.origin.startswith("https:")


def as_browsers_say(origin: str) -> str:
    """Return an address as browsers write it in `Origin`: in small letters, without its scheme's usual port."""
    origin = origin.lower()
    return origin.removesuffix(":443" if origin.startswith("https:") else ":80")


@dataclass
class WebGuard:
    """Guard of the pages: it refuses a request, or hands it on with `scope["visitor"]`.

    `refused` makes a page of a status and words.
    """

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
        """Return why a request is refused, as a status and words; None where it is not."""
        wrong = malformed(scope) or self.misdirected(scope, headers)
        if wrong:
            return wrong
        if self.proxies is not None:
            visitor = self.vouched_for(scope, self.proxies)
        else:
            visitor = self.by_link(scope["path"]) or self.visitor(headers)
        if visitor is not None and LIVE in headers:
            visitor = replace(visitor, live=True)
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
        """Return a refusal for a request to another host name than ours, or from another site's page; else None."""
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
        """Return the visitor who has a gate's link; their login does not matter there."""
        found = LINK.fullmatch(path)
        if found is None or self.logins.gate_of(found[1]) is None:
            return None
        return Visitor(word_digest(found[1]), link=found[1])

    def vouched_for(self, scope: Scope, proxies: WebProxies) -> Visitor | None:
        """Return the visitor whom a trusted proxy names; None without one.

        Two names count as none. The header is ignored from any other address.
        """
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
        """Return the word that a form carries which is shown to this visitor."""
        return self.logins.form_word(visitor.bound)

    async def own_form(self, scope: Scope, receive: Receive, visitor: Visitor) -> dict[str, list[str]]:
        """Return the fields of a form that this visitor was shown; raise UnfitBody for any other body."""
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
    """Error for a body that is refused: no form, too large, late, cut off, or another visitor's; `status` says which."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


async def read_form(scope: Scope, receive: Receive) -> dict[str, list[str]]:
    """Return the fields of a form, with a bound on everything that its sender decides."""
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


# What the pages show: the list of what waits, and the letter of one gate. Nothing here is written.


NEEDS_ANSWER = ("awaiting", "failed", "stalled", "broken")
SHOWN = (*NEEDS_ANSWER, "answered", "resuming")
# What can be said of a gate without answering it, and the event that it comes to.
REMARKS = {"comment": "commented", "later": "edited", "stop": "stopped"}
MOST_LISTED = 2000
MOST_RUNS = MOST_EVENTS = 200
MOST_DIFF = 300_000
CELLS = 10_000  # a browser breaks lines itself
T = TypeVar("T")


@dataclass(frozen=True)
class WebWorld:
    """Repositories of the pages; each is opened anew for each request, with the rules as they are then."""

    places: Sequence[Path]
    env: Mapping[str, str]
    clock: Callable[[], float]

    def open_desk(self, place: Path) -> Desk:
        return opened(place, self.env, clock=self.clock)


@dataclass(frozen=True)
class ListedGate:
    """Gate in the list, with the name of its repository."""

    gate: Summary
    repository: str


@dataclass(frozen=True)
class WaitingList:
    """Gates that wait, and others: put aside, or being acted on.

    `trouble` says why a repository cannot be read; `more` counts the gates that are left out.
    """

    waiting: list[ListedGate] = field(default_factory=list)
    others: list[ListedGate] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    more: int = 0


def gathered(world: WebWorld, read: Callable[[Desk], Sequence[T]]) -> tuple[list[tuple[T, str]], list[str]]:
    """Return what `read` finds in each repository, with its name, and why other repositories cannot be read."""
    found: list[tuple[T, str]] = []
    trouble = []
    for place in world.places:
        try:
            desk = world.open_desk(place)
            try:
                found += [(one, desk.repo.place.name) for one in read(desk)]
            finally:
                desk.close()
        except (GateError, OSError) as unreadable:
            trouble.append(f"{place.name}: {getattr(unreadable, 'message', unreadable)}")
    return found, trouble


def first_found(world: WebWorld, missing: GateError, find: Callable[[Desk], T]) -> T:
    """Return what `find` gives in the first repository that has it; one that cannot be opened hides no other."""
    unread: GateError | None = None
    for place in world.places:
        try:
            desk = world.open_desk(place)
        except GateError as shut:
            unread = shut
            continue
        try:
            return find(desk)
        except UnknownGate as absent:
            missing = absent
        finally:
            desk.close()
    raise unread or missing


def read_list(world: WebWorld) -> WaitingList:
    """Return each gate once, the most pressing first."""

    def shown(desk: Desk) -> list[Summary]:
        return own_word_last(desk, [one for one in list_gates(desk, Filter(all=True)) if one.state in SHOWN])

    listed, trouble = gathered(world, shown)
    found: dict[str, ListedGate] = {}
    for summary, repository in listed:
        found.setdefault(summary.id, ListedGate(summary, repository))
    now = format_time(world.clock())
    pressing = [found[one.id] for one in by_pressure(one.gate for one in found.values())]
    waiting = [one for one in pressing if one.gate.state in NEEDS_ANSWER and one.gate.later <= now]
    others = [one for one in pressing if one not in waiting]
    left = max(0, len(waiting) + len(others) - MOST_LISTED)
    return WaitingList(waiting[:MOST_LISTED], others[: max(0, MOST_LISTED - len(waiting))], trouble, left)


@dataclass(frozen=True)
class FilledControl:
    """Control of a question as the page has it: its whole name, and its content."""

    control: Control
    name: str
    given: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        return self.given[0] if self.given else ""


@dataclass(frozen=True)
class AskedQuestion:
    """Question, with what is filled in for it."""

    question: Question
    shape: Mapping[str, Any]
    controls: tuple[FilledControl, ...]


@dataclass(frozen=True)
class LetterShown:
    """Content of one gate's page.

    `may`: "answer", "amend", or nothing; `remarks`: what else may be said of it; `aside`: until when it is put aside.
    """

    gate: Gate
    shape: Mapping[str, Any]
    place: Path
    questions: tuple[AskedQuestion, ...]
    may: str
    remarks: Sequence[str]
    aside: str
    parts: Mapping[str, str]
    history: Sequence[Mapping[str, Any]]
    diff: str
    diff_trouble: str
    commands: Sequence[str]
    became: str


Json = Mapping[str, Any]


Named = list[tuple[Json, str]]
"""Each with the name of its repository."""


def read_runs(world: WebWorld) -> tuple[Named, list[str]]:
    """Return runs of flows, the youngest first, and what could not be read.

    A run that cannot be read is left to `git gate list --runs`.
    """

    def runs(desk: Desk) -> list[Json]:
        shown: list[Json] = []
        for said in runs_here(desk)[:MOST_RUNS]:
            try:
                run = find_run(desk, said["Run"])
            except GateError:
                continue
            shown.append(run_shape(run, asked_at(desk, run.waits_for)))
        return shown

    found, trouble = gathered(world, runs)
    return sorted(found, key=lambda one: str(one[0]["started"]), reverse=True), trouble


def read_run(world: WebWorld, name: str) -> tuple[Json, str]:
    """Return one run with its steps."""
    missing = UnknownGate(f"there is no run {name} here", hint="git gate list --runs --all")
    return first_found(
        world, missing, lambda desk: (details_of(desk, find_run(desk, name)), desk.repo.place.name)
    )


def read_trail(world: WebWorld) -> tuple[Named, list[str]]:
    """Return the latest events, the newest first, and what could not be read."""

    def events(desk: Desk) -> Sequence[Json]:
        return events_of_all(desk)[:MOST_EVENTS]

    found, trouble = gathered(world, events)
    return sorted(found, key=lambda one: str(one[0]["at"]), reverse=True)[:MOST_EVENTS], trouble


Fields = Mapping[str, list[str]]


def with_gate(world: WebWorld, name: str, do: Callable[[Desk, Gate, bool], T]) -> T:
    """Return what `do` gives for the gate, in whichever repository has it."""
    missing = UnknownGate(f"there is no gate {name} here", hint="git gate list --all")

    def found(desk: Desk) -> T:
        gate = find_gate(desk, name)
        return do(desk, gate.gate, gate.archived)

    return first_found(world, missing, found)


def read_letter(desk: Desk, gate: Gate, archived: bool, who: str, fields: Fields) -> LetterShown:
    """Return the content of a gate's page. `fields`: what was filled in before, and not taken."""
    diff, trouble = diff_of_work(desk, gate)
    shape = shapes.gate(gate, signed=marks(desk, [gate]), archived=archived)
    return LetterShown(
        gate=gate,
        shape=shape,
        place=desk.repo.place,
        questions=tuple(
            asked_question(place, one, shapes.question_shape(one), fields)
            for place, one in enumerate(gate.opened.questions)
        ),
        may=what_may(gate, who),
        remarks=[one for one, event in REMARKS.items() if not archived and allows(gate.state, event)],
        aside=gate.later if gate.state == AWAITING and gate.later and gate.later > desk.now else "",
        parts=letter_parts(gate),
        history=shapes.history(gate.history),
        diff=diff,
        diff_trouble=trouble,
        became=what_became(gate) if gate.state != AWAITING else "",
        commands=ways_to_answer(gate) if gate.state == AWAITING else [f"git gate show {gate.id[:6]}"],
    )


def letter_parts(gate: Gate) -> dict[str, str]:
    """Return the parts of a gate's letter in words, as in a terminal, but not broken into lines."""
    return {
        "who": f"{gate.opened.asked.agent}{requester(gate.opened)}",
        "told": " · ".join(told_fields(gate.opened)),
        "work": work_part(gate, "", CELLS),
        "talk": conversation_part(gate, CELLS),
        "attached": attached(gate, CELLS),
        "outcome": outcome_part(gate, CELLS),
    }


def what_may(gate: Gate, who: str) -> str:
    if gate.state == AWAITING:
        return "answer"
    try:
        check_amendable(gate, who)
    except GateError:
        return ""
    return "amend"


def diff_of_work(desk: Desk, gate: Gate) -> tuple[str, str]:
    if not gate.opened.work.changed:
        return "", ""
    try:
        text = diff_of(desk, gate)
    except GateError as absent:
        return "", absent.message
    if len(text) <= MOST_DIFF:
        return text, ""
    return text[:MOST_DIFF].rpartition("\n")[
        0
    ], f"this is its beginning; all of it: git gate diff {gate.id[:6]}"


def control_name(place: int, control: Control) -> str:
    return f"q{place}.{control.name}"


def asked_question(place: int, question: Question, shape: Mapping[str, Any], fields: Fields) -> AskedQuestion:
    kind = type_of(question)
    controls = tuple(
        FilledControl(
            control, control_name(place, control), tuple(fields.get(control_name(place, control), ()))
        )
        for control in kind.controls(question)
    )
    return AskedQuestion(question, shape, controls)


def given_of(gate: Gate, fields: Fields) -> Given:
    """Return the fields of a form as an answer."""
    values = {}
    for place, question in enumerate(gate.opened.questions):
        kind = type_of(question)
        said = {one.name: fields.get(control_name(place, one), []) for one in kind.controls(question)}
        values[question.key] = kind.filled(question, said)
    return Given(values=values)


def value_shown(value: Any) -> str:
    return value_words(value) if value is not None else ""


def proposed_value(value: Any) -> str:
    return "no answer yet" if value is None else value_words(plain_word(value))
