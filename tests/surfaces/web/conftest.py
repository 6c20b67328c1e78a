"""Surfaces: the pages as a browser without JavaScript has them: links that are followed, forms that are sent. No port is opened."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.cookiejar import CookieJar
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import unquote, urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, ProxyHandler, Request, build_opener

import pytest

from gitgate.acts.asking import AskWishes, ask
from gitgate.context.logins import Logins
from gitgate.model.gate import Gate, Question
from gitgate.questions.drafts import Draft
from gitgate.surfaces.web import WebAddress, WebWorld
from gitgate.surfaces.web.site import WebSite
from support import PATIENCE
from support.resuming import Seat
from support.testbed.command import Command
from support.testbed.repositories import Clone

PORT = 8577
PROXY = "192.0.2.7"


@dataclass(frozen=True)
class WebReply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def form(self) -> dict[str, list[str]]:
        """What the form for the answer holds as it is shown."""
        return self.form_of("answer")

    def form_of(self, name: str) -> dict[str, list[str]]:
        reader = FormReader(name)
        reader.feed(self.text)
        return reader.fields


class FormReader(HTMLParser):
    """The fields of the form with this id, as a browser would send them untouched."""

    def __init__(self, name: str = "answer") -> None:
        super().__init__()
        self.name = name
        self.fields: dict[str, list[str]] = {}
        self.inside = False
        self.area = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        name = said.get("name") or ""
        if tag == "form":
            self.inside = said.get("id") == self.name
        elif not self.inside or not name:
            return
        elif tag == "input" and (said.get("type") not in ("radio", "checkbox") or "checked" in said):
            self.fields.setdefault(name, []).append(said.get("value") or "")
        elif tag in ("textarea", "select"):
            self.fields.setdefault(name, [])
            self.area = name if tag == "textarea" else ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.inside = False
        self.area = ""

    def handle_data(self, data: str) -> None:
        if self.area:
            self.fields[self.area] = [data.removeprefix("\n")]


@dataclass
class FormBrowser:
    """Somebody with a browser that runs no scripts."""

    site: WebSite
    cookies: dict[str, str] = field(default_factory=dict)
    peer: str = "127.0.0.1"

    sent: dict[str, str] = field(default_factory=dict)
    """Headers of every request: what a proxy adds."""

    def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        host: str | None = None,
    ) -> WebReply:
        path, _, query = path.partition("?")
        sent = {"host": host or f"127.0.0.1:{PORT}", **self.sent, **(headers or {})}
        if self.cookies:
            sent["cookie"] = "; ".join(f"{name}={word}" for name, word in self.cookies.items())
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), word.encode()) for name, word in sent.items()],
            "client": (self.peer, 50000),
            "server": ("127.0.0.1", PORT),
        }
        reply = asyncio.run(exchange(self.site.app, scope, body))
        if cookie := reply.headers.get("set-cookie"):
            name, _, rest = cookie.partition("=")
            self.cookies[name] = rest.partition(";")[0]
        return reply

    def get(self, path: str, **headers: str) -> WebReply:
        return self.request("GET", path, headers=headers)

    def post(self, path: str, fields: Mapping[str, Any], **headers: str) -> WebReply:
        """As a page of ours sends it; `headers` say otherwise."""
        usual = {
            "content-type": "application/x-www-form-urlencoded",
            "origin": f"http://127.0.0.1:{PORT}",
            "sec-fetch-site": "same-origin",
        }
        said = {name.replace("_", "-"): word for name, word in headers.items()}
        body = urlencode(fields, doseq=True).encode()
        return self.request("POST", path, body, {**usual, **said})

    def log_in(self) -> FormBrowser:
        word, _ = self.site.logins.new_login()
        assert self.get(f"/login?token={word}").status == 200
        return self

    def answer(self, gate: Gate | str, **said: Any) -> WebReply:
        """Open the gate's page, fill in what is named (`_` for `.`), and send it."""
        name = gate if isinstance(gate, str) else gate.id
        filled = {
            key.replace("_", ".", 1) if key.startswith("q") else key: word for key, word in said.items()
        }
        return self.post(f"/g/{name}/answer", {**self.get(f"/g/{name}").form, **filled})

    def remark(self, deed: str, gate: Gate, text: str) -> WebReply:
        """Open the gate's page, fill in its form for a comment, a while or a stop, and send it."""
        return self.post(f"/g/{gate.id}/{deed}", {**self.get(f"/g/{gate.id}").form_of(deed), "text": text})


async def exchange(app: Any, scope: MutableMapping[str, Any], body: bytes) -> WebReply:
    said: list[MutableMapping[str, Any]] = []
    left = [body[at : at + 65536] for at in range(0, len(body), 65536)] or [b""]

    async def receive() -> MutableMapping[str, Any]:
        if not left:
            return {"type": "http.disconnect"}
        part = left.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(left)}

    async def send(message: MutableMapping[str, Any]) -> None:
        said.append(message)

    await app(scope, receive, send)
    headers = {name.decode(): word.decode() for name, word in said[0]["headers"]}
    text = b"".join(message.get("body", b"") for message in said[1:]).decode()
    return WebReply(said[0]["status"], headers, text)


def made_site(
    seat: Seat, folder: Path, clock: Callable[[], float] = time.time, url: str = "", **more: Any
) -> WebSite:
    """The pages of one repository, without a server."""
    return WebSite(
        world=WebWorld([seat.clone.path], os.environ, clock),
        address=WebAddress("127.0.0.1", PORT, url),
        logins=Logins(folder, clock),
        words_of=lambda _desk, done: f"{done.answer.verdict}, as it was said",
        delivery=lambda _desk: {},
        where=lambda _desk, _done: "saved here",
        note=lambda _words: None,
        **more,
    )


@pytest.fixture
def site(alone: Seat, tmp_path: Path) -> WebSite:
    return made_site(alone, tmp_path / "logins")


@pytest.fixture
def browser(site: WebSite) -> FormBrowser:
    """Logged in."""
    return FormBrowser(site).log_in()


def asked(seat: Seat, *questions: Question, **more: Any) -> Gate:
    """A gate with these questions."""
    return ask(seat.desk, Draft(questions, agent="scripted", **more), AskWishes()).gate


@dataclass
class EventStream:
    """What a page that is open hears."""

    reply: IO[bytes]

    def next(self) -> str | None:
        """The next event; None where the stream has ended."""
        while line := self.reply.readline():
            if line.startswith(b"data: "):
                return line.decode()
        return None


@dataclass
class Visit:
    """A browser with cookies, and a real server. Nothing that would lead elsewhere is followed by itself but redirections."""

    address: str
    opener: OpenerDirector = field(
        default_factory=lambda: build_opener(ProxyHandler({}), HTTPCookieProcessor(CookieJar()))
    )
    headers: dict[str, str] = field(default_factory=dict)

    def get(self, path: str) -> tuple[int, str]:
        return self.send(Request(self.address + path, headers=self.headers))  # noqa: S310 - the address of our own server

    def post(self, path: str, fields: dict[str, object]) -> tuple[int, str]:
        body = urlencode(fields, doseq=True).encode()
        return self.send(Request(self.address + path, body, {"Origin": self.address}))  # noqa: S310 - as above

    @contextmanager
    def stream(self, path: str) -> Iterator[EventStream]:
        """Server-sent events, as long as this lasts."""
        with self.opener.open(Request(self.address + path), timeout=PATIENCE) as reply:  # noqa: S310 - as above
            yield EventStream(reply)

    def send(self, request: Request) -> tuple[int, str]:
        try:
            with self.opener.open(request, timeout=PATIENCE) as reply:
                return reply.status, reply.read().decode()
        except HTTPError as refused:
            return refused.code, refused.read().decode()


@dataclass
class Served:
    """A desk that is being served."""

    process: subprocess.Popen[str]
    link: str

    def said(self) -> str:
        """Its next line about itself."""
        assert self.process.stderr is not None
        return self.process.stderr.readline()

    @property
    def address(self) -> str:
        return self.link.partition("/login")[0]

    def visit(self, link: str = "") -> Visit:
        """Somebody who has opened a login link."""
        visit = Visit(self.address)
        code, text = visit.get((link or self.link).removeprefix(self.address))
        assert (code, "Logged in" in text) == (200, True)
        return visit

    def end(self) -> str:
        self.process.terminate()
        return self.process.communicate(timeout=PATIENCE)[1]


@pytest.fixture
def served(repo: Clone, cli: Command) -> Iterator[Served]:
    with server(cli.start("serve", "--desk", "--port", "0", cwd=repo.path)) as served:
        yield served


@contextmanager
def server(process: subprocess.Popen[str]) -> Iterator[Served]:
    """It serves as soon as its first line is there."""
    late = threading.Timer(PATIENCE, process.kill)
    late.start()
    try:
        assert process.stdout is not None
        link = process.stdout.readline().strip()
        late.cancel()
        yield Served(process, link)
    finally:
        late.cancel()
        if process.poll() is None:
            process.kill()
        process.communicate()
