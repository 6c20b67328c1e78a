"""Surfaces: a forge's webhooks, for those who run their own receiver. Loopback by default, signed, bounded, each taken once.

A request is checked and queued; somebody else works. So the forge has its answer at once, and a flood fills a queue, no more.
What is lost here, by a crash or a full queue, a sweep finds.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import queue
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qs

from ...errors import Failure, GateError, Usage
from ...record import Summary
from ...store import private_folder
from ...text import one_line
from .hosts import GITHUBS_HOOKS, Commented, Dispatched, Hooks, parse_event

MOST = 500
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
PASSED_ON = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")


def is_local(address: str, headers: Mapping[str, str], port: int) -> bool:
    """Return whether a request comes from this machine, and by its own name: not through a proxy, and not by a name
    that somebody else chose.
    """
    if not is_loopback(address) or any(name in headers for name in PASSED_ON):
        return False
    return headers.get("host", "") in {f"{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]")}


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def page(waiting: Sequence[Summary], where: str) -> str:
    """Return the whole page of waiting gates."""
    rows = "\n".join(row(one) for one in waiting[:MOST])
    more = f"<p>and {len(waiting) - MOST} more: git gate list</p>" if len(waiting) > MOST else ""
    head = "".join(f"<th>{word}" for word in ("gate", "state", "asked at", "by", "branch", "question"))
    table = f"<table>\n<tr>{head}\n{rows}\n</table>\n{more}" if waiting else "<p>nothing waits</p>"
    count = f"{len(waiting)} wait" if len(waiting) != 1 else "1 waits"
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>git gate</title>\n'
        f"<h1>{count} in {text(where)}</h1>\n{table}\n<p>git gate show ID; git gate respond ID</p></html>\n"
    )


def row(one: Summary) -> str:
    cells = (one.id, one.state, one.at, one.agent, one.branch, one.title or one.question)
    return "<tr>" + "".join(f"<td>{text(cell)}" for cell in cells)


def text(words: str) -> str:
    return escape(one_line(words, 200))


MOST_BODY = 5_000_000
MOST_QUEUED = 256
MOST_FIELDS = 20
MOST_NOTE = 300
MOST_REMEMBERED = 10_000
PATIENCE = 10.0
SHORTEST_SECRET = 16
PLAIN = {"Content-Type": "text/plain; charset=utf-8"}
JSON, FORM = "application/json", "application/x-www-form-urlencoded"
LENGTH = re.compile(r"[0-9]{1,12}", re.ASCII)


def payload_of(kind: str, body: bytes) -> bytes | None:
    """Return the event in a body: JSON as it is, or GitHub's form. Return None for any other content type."""
    name = kind.partition(";")[0].strip().lower()
    if name == JSON:
        return body
    if name != FORM:
        return None
    try:
        fields = parse_qs(body, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        return b""
    return fields.get(b"payload", [b""])[0]


@dataclass
class Seen:
    """Digests of the bodies that were taken. A delivery's number is not signed and proves nothing; the body is."""

    place: Path
    known: dict[str, None] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        with contextlib.suppress(OSError):
            lines = self.place.read_text(encoding="ascii", errors="replace").split()
            self.known = dict.fromkeys(lines[-MOST_REMEMBERED:])

    def first(self, body: bytes) -> bool:
        """Return whether this body is new, and remember it, over a restart too."""
        digest = hashlib.sha256(body).hexdigest()
        with self.lock:
            if digest in self.known:
                return False
            self.known[digest] = None
            try:
                self.keep()
            except OSError:
                del self.known[digest]  # it is not taken; the forge may send it again
                raise
            while len(self.known) > MOST_REMEMBERED:
                del self.known[next(iter(self.known))]
        return True

    def forget(self, body: bytes) -> None:
        """Forget a body that could not be taken after all: the forge may send it again."""
        with self.lock:
            self.known.pop(hashlib.sha256(body).hexdigest(), None)
            self.keep()

    def keep(self) -> None:
        private_folder(self.place.parent)
        new = self.place.with_suffix(".new")
        new.write_text("\n".join(self.known) + "\n", encoding="ascii")
        new.replace(self.place)


@dataclass
class Receiver:
    """Receiver of a forge's webhooks: the secret that each delivery has to fit, and the queue for the events."""

    secret: str
    seen: Seen
    hooks: Hooks = GITHUBS_HOOKS
    events: queue.Queue[Commented | Dispatched] = field(default_factory=lambda: queue.Queue(MOST_QUEUED))

    def __post_init__(self) -> None:
        if len(self.secret) < SHORTEST_SECRET:
            raise Usage(
                f"a webhook's secret needs at least {SHORTEST_SECRET} characters",
                hint="openssl rand -hex 32 makes one; put it into GITGATE_WEBHOOK_SECRET and into the webhook's settings",
            )

    def take(self, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
        """Check a delivery, and queue its event. Return HTTP's status, and a word for the forge's own log of
        deliveries. The names of `headers` are in small letters.
        """
        wrong = self.hooks.against(self.secret, headers, body)
        if wrong:
            return 401, wrong
        if headers.get(self.hooks.header, "") not in self.hooks.events:
            return 202, "not for us"
        payload = payload_of(headers.get("content-type", ""), body)
        if payload is None:
            return 415, f"the webhook's content type has to be {JSON} (or {FORM})"
        try:
            event = parse_event(payload, received=True)
        except GateError as strange:
            return 400, strange.message
        if not isinstance(event, Commented):
            return 202, "not for us"
        if not self.seen.first(body):
            return 202, "taken before"
        try:
            self.events.put_nowait(event)
        except queue.Full:
            self.seen.forget(body)
            return 503, "too many at once"
        return 202, "taken"


class WebhookHandler(BaseHTTPRequestHandler):
    """Handler of one request, with a limit on all that a stranger decides: time, size, method, path."""

    receiver: Receiver
    waiting: Callable[[], str] | None
    server: Server
    timeout = PATIENCE
    server_version = "git-gate"
    sys_version = ""

    def do_POST(self) -> None:
        self.say(*self.received())

    def received(self) -> tuple[int, str]:
        """Return the status and the words that answer a delivery, whatever is in it."""
        length = self.headers.get("Content-Length") or ""
        if self.path != "/":
            return 404, ""
        if not length.isdecimal():
            return 411, ""
        if not LENGTH.fullmatch(length) or int(length) > MOST_BODY:
            return 413, "too large"
        body = self.rfile.read(int(length))
        if len(body) != int(length):
            return 400, "cut off"
        try:
            return self.receiver.take({name.lower(): word for name, word in self.headers.items()}, body)
        except Exception as trouble:  # noqa: BLE001 - one delivery is never the end of all others
            self.server.note(f"a delivery could not be taken: {trouble!r}")
            return 500, "it could not be taken: see what git gate serve says"

    def do_GET(self) -> None:
        if self.path != "/":
            self.say(404, "")
        elif self.waiting is None or not self.from_here():
            self.say(200, "git gate takes webhooks here")
        else:
            try:
                shown = self.waiting()
            except GateError as trouble:
                self.say(500, trouble.message)
            except Exception as trouble:  # noqa: BLE001 - as above
                self.server.note(f"the page could not be made: {trouble!r}")
                self.say(500, "it could not be made: see what git gate serve says")
            else:
                self.say(200, shown, HEADERS)

    def from_here(self) -> bool:
        headers = {name.lower(): word for name, word in self.headers.items()}
        return is_local(str(self.client_address[0]), headers, self.server.server_port)

    def say(self, status: int, words: str, headers: Mapping[str, str] = PLAIN) -> None:
        data = f"{words}\n".encode()
        self.send_response(status)
        for name, word in headers.items():
            self.send_header(name, word)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: strangers choose the words of a request."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    log: Callable[[str], None] | None = None

    def note(self, words: str) -> None:
        """Log one line, shortened and without characters that a terminal obeys: it may have strangers' words in it."""
        if self.log is not None:
            self.log(one_line(words, MOST_NOTE))

    def handle_error(self, *_: object) -> None:
        """Log an error, unless somebody hung up or was silent for long, which is no news."""
        trouble = sys.exc_info()[1]
        if not isinstance(trouble, OSError):
            self.note(f"a request could not be answered: {trouble!r}")


def cannot_listen(host: str, port: int, refused: OSError) -> Failure:
    """Return the error for a port or address on which nothing can listen, and what to give instead."""
    free = refused.errno in (errno.EADDRINUSE, errno.EACCES)
    return Failure(
        f"nothing can listen on {host}:{port}: {refused.strerror}",
        hint="--port 0 takes a free one" if free else "--host takes an address of this machine: 127.0.0.1",
    )


def open_server(
    receiver: Receiver,
    host: str,
    port: int,
    waiting: Callable[[], str] | None = None,
    log: Callable[[str], None] | None = None,
) -> Server:
    """Return a server that has the port. The caller lets it serve. `waiting`: makes the page, where one is wanted."""
    shown = None if waiting is None else staticmethod(waiting)
    handler = type("ReceivingHandler", (WebhookHandler,), {"receiver": receiver, "waiting": shown})
    try:
        server = Server((host, port), handler)
    except OSError as refused:
        raise cannot_listen(host, port, refused) from refused
    server.log = log
    return server


def serve_webhooks(server: Server, stopping: threading.Event, work: Callable[[], None]) -> None:
    """Serve until `stopping` is set. `work` is called again and again, and processes what was queued."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        while not stopping.is_set():
            work()
    finally:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE)
