"""Surfaces: the pages by their addresses, and what moves while somebody looks. Everything that a template is given is shown as text, neutral and escaped."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import uvicorn
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import DiffLexer
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from ...acts import answering
from ...acts.answering import Manner, Responded, respond
from ...context import Desk
from ...context.logins import Logins
from ...errors import BadAnswer, Conflict, GateError, NotAllowed, Stale, UnknownGate, Usage
from ...exchange.syncing import Published, RemoteNews, hear_news
from ...gates import fingerprint
from ...model.gate import Gate
from ...render import due
from ...render.shapes import event_words
from ...text import ago, clip, format_duration, neutral, one_line, parse_time
from . import (
    REMARKS,
    SENT_WITHIN,
    Fields,
    LetterShown,
    UnfitBody,
    Visitor,
    WebAddress,
    WebGuard,
    WebProxies,
    WebWorld,
    given_of,
    proposed_value,
    read_letter,
    read_list,
    read_run,
    read_runs,
    read_trail,
    value_shown,
    with_gate,
)

if TYPE_CHECKING:
    from starlette.requests import Request

    from ...store.git import Repository

# What moves while somebody looks: each repository is watched by its files, and its remote asked for news,
# so that a page can say within a second or two that a gate was answered elsewhere.


POLL = 0.4
AT_LEAST_EVERY = 30.0  # deadlines pass, and ages grow, without any ref that moves
STILL_THERE = 10.0
MOST_STREAMS = 50


@dataclass
class LivePages:
    """Watch over what the pages show: `version` grows with each change, and open pages that hear of it read anew."""

    world: WebWorld
    note: Callable[[str], None]
    version: int = 0
    streams: int = 0
    over: threading.Event = field(default_factory=threading.Event)
    _repos: dict[Path, Repository] = field(default_factory=dict)
    _seen: dict[Path, tuple[int, ...]] = field(default_factory=dict)

    def start(self) -> None:
        for work in (self.watching, self.hearing):
            threading.Thread(target=work, daemon=True, name=f"pages {work.__name__}").start()

    def watching(self) -> None:
        read_at = time.monotonic()
        while not self.over.wait(POLL):
            moved = [place for place in self.world.places if self.has_moved(place)]
            if moved or time.monotonic() - read_at > AT_LEAST_EVERY:
                read_at = time.monotonic()
                self.version += 1

    def has_moved(self, place: Path) -> bool:
        """Return whether a ref of ours has moved, or an agent has asked; no process is started to see that."""
        if place not in self._repos:
            with suppress(GateError, OSError):
                desk = self.world.open_desk(place)
                self._repos[place] = desk.repo
                desk.close()
        now = fingerprint(self._repos[place]) if place in self._repos else ()
        moved = now != self._seen.get(place, now)
        self._seen[place] = now
        return moved

    def hearing(self) -> None:
        """Listen for news of the remotes, in a thread of its own: a slow remote delays nothing of this machine."""
        remotes = [RemoteNews(place) for place in self.world.places]
        hear_news(remotes, self.world.open_desk, self.note, self.over)

    async def events(self, may_stay: Callable[[], bool]) -> AsyncIterator[str]:
        """Yield server-sent events: a number for each change, for as long as the visitor may stay.

        A line now and then shows that the server is still there.
        """
        seen, said = self.version, time.monotonic()
        self.streams += 1
        try:
            yield f"retry: 2000\ndata: {seen}\n\n"
            while not self.over.is_set():
                await asyncio.sleep(POLL / 2)
                if self.version != seen:
                    seen, said = self.version, time.monotonic()
                    yield f"data: {seen}\n\n"
                elif time.monotonic() - said > STILL_THERE:
                    said = time.monotonic()
                    yield ": still there\n\n"
                if not may_stay():
                    return
        finally:
            self.streams -= 1


# The pages by their addresses: what is read for each, what a form that was sent does, and in which
# template it is shown. Everything that a template is given is shown as text, neutral and escaped; nothing
# of a gate becomes markup.


PAGES = Path(__file__).parent / "pages"
FILES = {"web.css": "text/css", "live.js": "text/javascript", "icon.svg": "image/svg+xml"}
VIA = "web"
STATUS = (
    (BadAnswer, 422),
    (Usage, 422),
    (NotAllowed, 403),
    (Stale, 409),
    (Conflict, 409),
    (UnknownGate, 404),
)
WORDS = {
    401: "Log in",
    403: "Refused",
    404: "Not here",
    405: "Refused",
    421: "Another address",
    429: "Too many",
}
NOBODY = Visitor("")


def as_text(value: object) -> object:
    """Return text without characters that act or hide, and any other value as it is."""
    return neutral(value) if type(value) is str else value


@dataclass
class WebSite:
    """Pages of the desk.

    `words_of` says what becomes of a recorded answer, `delivery` how it goes on its way, `where` how far anything else
    that was recorded got.
    """

    world: WebWorld
    address: WebAddress
    logins: Logins
    words_of: Callable[[Desk, Responded], str]
    delivery: Callable[[Desk], Mapping[str, Any]]
    where: Callable[[Desk, Published], str]
    note: Callable[[str], None]
    proxies: WebProxies | None = None
    told: dict[str, str] = field(default_factory=dict)
    """Words for a visitor, shown once, on the next page that they open."""

    def __post_init__(self) -> None:
        self.live = LivePages(self.world, self.note)
        self.pages = Environment(
            loader=FileSystemLoader(PAGES), autoescape=True, undefined=StrictUndefined, finalize=as_text
        )
        self.pages.filters.update(
            line=one_line, clip=lambda text, most: clip(one_line(text), most), ago=self.age, value=value_shown
        )
        self.pages.filters.update(due=lambda at: due(at, self.world.clock()), dedent=dedent)
        self.pages.filters.update(proposed=proposed_value, words=event_words, lasted=lasted)
        files = {name: (PAGES / name).read_bytes() for name in FILES}

        async def file(request: Request) -> Response:
            name = request.path_params["name"]
            if name not in files:
                return self.refusal(404, "there is no such page")
            return Response(files[name], media_type=FILES[name])

        routes = [
            Route("/", self.list_page),
            Route("/g/{gate}", self.letter_page),
            Route("/g/{gate}/answer", self.answer, methods=["POST"]),
            Route("/g/{gate}/{deed}", self.say_of_gate, methods=["POST"]),
            Route("/l/{word}", self.link_page),
            Route("/l/{word}/answer", self.answer_link, methods=["POST"]),
            Route("/runs", self.runs_page),
            Route("/runs/{run}", self.run_page),
            Route("/trail", self.trail_page),
            Route("/events", self.events),
            Route("/login", self.log_in),
            Route("/logout", self.log_out, methods=["POST"]),
            Route("/s/{name}", file),
        ]
        handlers: dict[Any, Any] = {404: self.nothing, 405: self.nothing, Exception: self.broken}
        self.app = WebGuard(
            Starlette(routes=routes, exception_handlers=handlers),
            self.address,
            self.logins,
            self.refusal_page,
            self.proxies,
        )

    # Templates

    def age(self, at: str) -> str:
        return ago(max(0.0, self.world.clock() - parse_time(at))) if at else ""

    def page(self, name: str, visitor: Visitor, status: int = 200, **shown: Any) -> HTMLResponse:
        said = "" if visitor.live else self.told.pop(visitor.key, "")
        known: dict[str, Any] = {"visitor": visitor, "said": said, "form_word": "", "status": status}
        known.update(several=len(self.world.places) > 1, here=name, logins=self.proxies is None)
        if visitor.bound:
            known["form_word"] = self.app.form_word(visitor)
        text = self.pages.get_template(f"{name}.html").render(**known, **shown)
        return HTMLResponse(text, status)

    def refusal_page(self, status: int, words: str) -> bytes:
        return bytes(self.refusal(status, words).body)

    def refusal(
        self, status: int, words: str, hint: str = "", visitor: Visitor = NOBODY, again: str = ""
    ) -> HTMLResponse:
        title = WORDS.get(status, "It did not work")
        shown = {"title": title, "words": words, "hint": hint, "again": again}
        return self.page("refused", visitor, status, **shown)

    async def nothing(self, request: Request, _exc: Exception) -> Response:
        return self.refusal(404, "there is no such page", visitor=visitor_of(request))

    async def broken(self, _request: Request, wrong: Exception) -> Response:
        self.note(f"a page could not be made: {wrong!r}")
        return self.refusal(500, "this page could not be made: see what git gate serve says")

    def say(self, visitor: Visitor, words: str) -> None:
        self.told[visitor.key] = words
        while len(self.told) > 1000:
            del self.told[next(iter(self.told))]

    # Logging in and out

    async def log_in(self, request: Request) -> Response:
        """Log in by a link with a word that works once.

        The page leads on by itself, so that the word stays in no address.
        """
        word = parse_qs(request.url.query).get("token", [""])[0]
        session = self.logins.redeem(word) if request.method == "GET" and word else None
        if session is None:
            hint = "git gate serve --login"
            return self.refusal(401, "this login link does not work, or no longer", hint)
        response = self.page("entered", NOBODY)
        secure = self.address.is_secure
        response.set_cookie(self.address.cookie, session, httponly=True, samesite="strict", secure=secure)
        return response

    async def log_out(self, request: Request) -> Response:
        visitor = visitor_of(request)
        try:
            await self.app.own_form(request.scope, request.receive, visitor)
        except UnfitBody as unfit:
            return self.refusal(unfit.status, unfit.words, visitor=visitor)
        await run_in_threadpool(self.logins.end, visitor.session)
        return self.refusal(401, "you are logged out", "git gate serve --login")

    # What waits, and one gate

    async def events(self, request: Request) -> Response:
        """Stream an event whenever something has moved; it does not say what."""
        visitor = visitor_of(request)
        if self.live.streams >= MOST_STREAMS:
            return self.refusal(429, "too many pages are open", visitor=visitor)

        def may_stay() -> bool:
            return bool(visitor.login) or self.logins.is_known(visitor.session)

        return StreamingResponse(self.live.events(may_stay), media_type="text/event-stream")

    async def list_page(self, request: Request) -> Response:
        shown = await run_in_threadpool(read_list, self.world)
        return self.page("list", visitor_of(request), list=shown)

    async def runs_page(self, request: Request) -> Response:
        runs, trouble = await run_in_threadpool(read_runs, self.world)
        return self.page("runs", visitor_of(request), runs=runs, trouble=trouble)

    async def run_page(self, request: Request) -> Response:
        visitor = visitor_of(request)
        try:
            run, repository = await run_in_threadpool(read_run, self.world, request.path_params["run"])
        except GateError as wrong:
            return self.refusal(status_of(wrong), wrong.message, wrong.hint, visitor)
        return self.page("run", visitor, run=run, repository=repository)

    async def trail_page(self, request: Request) -> Response:
        events, trouble = await run_in_threadpool(read_trail, self.world)
        return self.page("trail", visitor_of(request), events=events, trouble=trouble)

    async def letter_page(self, request: Request) -> Response:
        visitor = visitor_of(request)
        return await run_in_threadpool(self.letter, visitor, request.path_params["gate"])

    async def link_page(self, request: Request) -> Response:
        """Show one gate to whoever has its link. Looking uses nothing up: a program that previews links may look."""
        visitor = visitor_of(request)
        gate = self.logins.gate_of(visitor.link) if visitor.link else None
        if gate is None:
            return self.refusal(404, "there is no such page", visitor=visitor)
        return await run_in_threadpool(self.letter, visitor, gate)

    async def answer_link(self, request: Request) -> Response:
        visitor = visitor_of(request)
        gate = self.logins.gate_of(visitor.link) if visitor.link else None
        if gate is None:
            return self.refusal(404, "there is no such page", visitor=visitor)
        return await self.answer_gate(request, visitor, gate)

    def who(self, desk: Desk, visitor: Visitor) -> str:
        """Return in whose name an answer is: this machine's person, or whoever a proxy names."""
        return name_of_login(visitor.login) if visitor.login else desk.person()

    def letter(
        self,
        visitor: Visitor,
        name: str,
        fields: Fields | None = None,
        trouble: GateError | None = None,
        deed: str = "answer",
    ) -> Response:
        """Return the page of one gate.

        After a form was refused, the page has the reason, the form that it concerns, and what was filled in.
        """
        sent = fields or {}

        def show(desk: Desk, gate: Gate, archived: bool) -> LetterShown:
            filled = sent if deed == "answer" else {}
            shown = read_letter(desk, gate, archived, self.who(desk, visitor), filled)
            if not visitor.link:
                return shown
            # A link is for one answer: what was said otherwise is corrected by whoever said it.
            return replace(shown, remarks=(), may="" if shown.may == "amend" else shown.may)

        try:
            letter: LetterShown = with_gate(self.world, name, show)
        except GateError as wrong:
            return self.refusal(status_of(wrong), wrong.message, wrong.hint, visitor)
        status = 200 if trouble is None else status_of(trouble)
        return self.page(
            "letter",
            visitor,
            status,
            action=page_of_gate(visitor, letter.gate.id),
            deed=deed,
            said_of=first_of(sent, "text"),
            letter=letter,
            diff=colored(letter.diff),
            trouble=trouble,
            note=first_of(sent, "note"),
        )

    async def answer(self, request: Request) -> Response:
        return await self.answer_gate(request, visitor_of(request), request.path_params["gate"])

    async def answer_gate(self, request: Request, visitor: Visitor, name: str) -> Response:
        return await self.take_form(request, visitor, name, self.record)

    async def say_of_gate(self, request: Request) -> Response:
        """Take a remark on a gate: a comment, a time for which it is put aside, or its end."""
        visitor, deed = visitor_of(request), request.path_params["deed"]
        if deed not in REMARKS:
            return self.refusal(404, "there is no such page", visitor=visitor)
        record = partial(self.record_remark, deed)
        return await self.take_form(request, visitor, request.path_params["gate"], record)

    async def take_form(
        self,
        request: Request,
        visitor: Visitor,
        name: str,
        record: Callable[[Visitor, str, Fields], Response],
    ) -> Response:
        """Record what a form of a gate's page says; refuse one that this visitor was not shown."""
        try:
            fields = await self.app.own_form(request.scope, request.receive, visitor)
        except UnfitBody as unfit:
            again = page_of_gate(visitor, name)
            return self.refusal(unfit.status, unfit.words, visitor=visitor, again=again)
        return await run_in_threadpool(record, visitor, name, fields)

    def record(self, visitor: Visitor, name: str, fields: Fields) -> Response:
        """Record an answer by the act that `git gate respond` uses, bound to what the page showed."""

        def act(desk: Desk, gate: Gate, _archived: bool) -> str:
            manner = Manner(
                note=first_of(fields, "note").replace("\r\n", "\n"),
                via=VIA,
                seen=first_of(fields, "seen") or "nothing",
                amend=first_of(fields, "amend") == "1" and not visitor.link,
                who=name_of_login(visitor.login) if visitor.login else None,
                sign=False if visitor.login else None,  # the key here is not theirs
                evidence=evidence_of_visit(visitor),
                **self.delivery(desk),
            )
            return self.words_of(desk, respond(desk, gate, given_of(gate, fields), manner))

        try:
            with self.logins.using_link(visitor.link) if visitor.link else nullcontext():
                words: str = with_gate(self.world, name, act)
        except BadAnswer as unfit:
            unfit.message = unfit.words_without("answer")
            unfit.hint = ""
            return self.letter(visitor, name, fields, unfit)
        except GateError as refused:
            if visitor.link and self.logins.gate_of(visitor.link) is None:
                return self.refusal(401, refused.message)
            return self.letter(visitor, name, fields, refused)
        if visitor.link:
            return self.page("recorded", NOBODY, words=words)
        self.say(visitor, f"Recorded: {words}")
        return RedirectResponse(f"/g/{name}", 303)

    def record_remark(self, deed: str, visitor: Visitor, name: str, fields: Fields) -> Response:
        """Record a remark by the act that the command uses, bound to what the page showed as an answer is."""
        text, seen = first_of(fields, "text").replace("\r\n", "\n"), first_of(fields, "seen") or "nothing"

        def act(desk: Desk, gate: Gate, _archived: bool) -> str:
            who = None
            if visitor.login:
                who = answering.Vouched(
                    name_of_login(visitor.login), visitor.login, VIA, desk.now, sign=False
                )
            if deed == "comment":
                done = answering.comment(desk, gate, text, via=VIA, who=who, seen=seen)
                words = "your comment"
            elif deed == "stop":
                done = answering.stop(desk, gate, text, via=VIA, who=who, seen=seen)
                words = "it is stopped"
            else:
                done = answering.edit(desk, gate, later=text, who=who, seen=seen)
                words = f"it is put aside until {done.gate.later}" if done.gate.later else "it waits again"
            return f"{words}; {self.where(desk, done)}"

        try:
            words: str = with_gate(self.world, name, act)
        except Usage as unfit:
            unfit.message = unfit.words_without("--later")
            unfit.hint = ""
            return self.letter(visitor, name, fields, unfit, deed)
        except GateError as refused:
            return self.letter(visitor, name, fields, refused, deed)
        self.say(visitor, f"Recorded: {words}")
        return RedirectResponse(f"/g/{name}", 303)


def first_of(fields: Fields, name: str) -> str:
    return fields.get(name, [""])[0]


def lasted(seconds: float | None) -> str:
    return "" if seconds is None else format_duration(int(seconds))


def page_of_gate(visitor: Visitor, gate: str) -> str:
    return f"/l/{visitor.link}" if visitor.link else f"/g/{gate}"


def evidence_of_visit(visitor: Visitor) -> dict[str, object]:
    """Return the evidence for the name of an answer: a login, or the digest of a link, which stays secret itself."""
    if visitor.login:
        return {"login": visitor.login}
    return {"link": visitor.key} if visitor.link else {}


def name_of_login(login: str) -> str:
    """Return a login as a name; a login that is an address becomes an address here, too."""
    return f"{login.partition('@')[0]} <{login}>" if "@" in login else login


def visitor_of(request: Request) -> Visitor:
    return request.scope.get("visitor") or NOBODY


def status_of(wrong: GateError) -> int:
    return next((status for kind, status in STATUS if isinstance(wrong, kind)), 502)


def colored(diff: str) -> Markup:
    """Return text coloured by line; Pygments escapes what it gives."""
    if not diff:
        return Markup()
    return Markup(highlight(diff, DiffLexer(stripnl=False), HtmlFormatter(nowrap=True)))  # noqa: S704 - escaped by Pygments


def open_socket(host: str, port: int) -> socket.socket:
    """Open a socket that has the port, so that an error is reported before anything else."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)  # whoever reads the address and comes at once waits for the server
    except OSError:
        listening.close()
        raise
    return listening


class PatientProtocol(H11Protocol):
    """Protocol that ends a connection which sends no whole request in time.

    uvicorn waits for a first request for ever, and takes only so many connections at once: whoever opened that many and
    sent nothing would keep everybody else out.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self.loop.call_later(SENT_WITHIN, self.end_if_silent, None)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.loop.call_later(SENT_WITHIN, self.end_if_silent, self.cycle)

    def end_if_silent(self, last: object) -> None:
        """End the connection where no request has come since.

        `last`: the request that was answered last; it is another one as soon as the next request is there.
        """
        if self.cycle is last:
            self.transport.close()


def serve_site(site: WebSite, listening: socket.socket, stopping: threading.Event) -> None:
    """Serve until told to stop. Nothing of a request is logged: an address may hold a login's word."""
    config = uvicorn.Config(
        site.app,
        access_log=False,
        log_config=None,
        log_level="critical",
        proxy_headers=False,
        server_header=False,
        lifespan="off",
        ws="none",
        http=PatientProtocol,
        limit_concurrency=200,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=32_768,
    )
    server = uvicorn.Server(config)
    site.live.start()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True, name="pages")
    thread.start()
    try:
        while thread.is_alive() and not stopping.wait(0.2):
            pass
    finally:
        site.live.over.set()
        server.should_exit = True
        thread.join(10)
