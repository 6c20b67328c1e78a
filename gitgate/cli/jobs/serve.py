"""Command line: `git gate serve`: takes a forge's webhooks, for those who run their own machine instead of its CI; `--desk`: shows
what waits as pages, where it is answered as well.
"""

from __future__ import annotations

import queue
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from ...acts import open_gate
from ...context import open_desk
from ...context.logins import Logins
from ...context.machine import state_home
from ...context.targets import summaries
from ...errors import Failure, GateError, IllegalEvent, Usage
from ...gates import NEEDS_A_PERSON
from ...model import AWAITING
from ...record import by_pressure
from ...surfaces.forge.hosts import Commented
from ...surfaces.forge.hosts.connect import connect, hooks_of
from ...surfaces.forge.shown import markdown
from ...surfaces.forge.sweeping import hear, sweep
from ...surfaces.forge.webhook import cannot_listen, page
from ...surfaces.web import WebAddress, WebWorld, read_proxies
from ...surfaces.web.site import WebSite, open_socket, serve_site
from ...text import one_line
from .. import DONE
from ..process import stop_on_signal
from ..terminal import Screen, read_duration, verb, where
from ..verbs.respond import delivery, recording_words, what_next
from ..verbs.resume import known
from . import act_on_gates
from .steps import fetch_gates

if TYPE_CHECKING:
    from pathlib import Path

    from ...context import Desk
    from ...surfaces.forge.hosts import Dispatched
    from ...surfaces.forge.hosts.web import Known
    from ...surfaces.forge.webhook import Receiver
    from ...surfaces.web import WebProxies

SECRET = "GITGATE_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable
LOOK = 0.5
SWEEP = "15m"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@click.command("serve")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Where to listen; put a TLS proxy before anything else.",
)
@click.option(
    "--port", default=8577, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one."
)
@click.option(
    "--sweep",
    "every",
    default=SWEEP,
    show_default=True,
    metavar="15m",
    help="How often to look for what was missed.",
)
@click.option(
    "--page",
    is_flag=True,
    help="Show what waits at /, to this machine only; let no proxy pass anything but POST.",
)
@click.option(
    "--desk", "pages", is_flag=True, help="Serve the desk, to read and answer in a browser, and no webhooks."
)
@click.option("--url", default="", metavar="URL", help="With --desk: the address that a proxy has for it.")
@click.option("--everywhere", is_flag=True, help="With --desk: every repository that `git gate init` knows.")
@click.option("--login", is_flag=True, help="Print one more link that logs a browser in to the desk, once.")
@click.option(
    "--link", metavar="ID", help="Print a link that opens this gate alone, for one answer, within a day."
)
@click.option("--log-out", is_flag=True, help="End every login to your desks, at once.")
@verb
def serve_command(screen: Screen, host: str, port: int, every: str, page: bool, **desk_flags: Any) -> int:
    """Receive webhooks for comments: replies on pull requests become answers, as `git gate github accept` takes them.

    GITGATE_WEBHOOK_SECRET is the secret that the forge signs them with; of GitLab the secret token, or the signing token. Agents are started here if `git gate init` allowed it.

    With --desk it serves what waits as pages instead, to this machine: to read and to answer. It prints a link that logs a
    browser in, once. That needs the extra `web`.

    \b
    git gate serve
    git gate serve --port 8080 --page
    git gate serve --desk
    pip install 'git-gate[web]'
    """
    refuse_together(desk_flags, every=every, page=page)
    if desk_flags["link"] is not None:
        return make_link(screen, desk_flags["link"])
    if desk_flags["log_out"] or desk_flags["login"]:
        return change_logins(screen, end=desk_flags["log_out"])
    if desk_flags["pages"]:
        return serve_desk(screen, host, port, desk_flags["url"], everywhere=desk_flags["everywhere"])
    for name in ("url", "everywhere"):
        if desk_flags[name]:
            raise Usage(
                f"--{name} is for the desk",
                hint=f"git gate serve --desk --{name}{' URL' if name == 'url' else ''}",
            )
    return serve_webhooks(screen, host, port, every, page=page)


ALONE = {"login": "--login", "log_out": "--log-out", "link": "--link ID"}


def refuse_together(flags: dict[str, Any], *, every: str, page: bool) -> None:
    """Refuse flags that do not go together: one of them would be ignored without a word."""
    alone = [flag for name, flag in ALONE.items() if flags[name] not in (None, False)]
    beside = ["--desk"] if flags["pages"] else []
    if len(alone) > 1 or (alone and beside):
        raise Usage(
            f"{' and '.join([*beside, *alone])} do not go together",
            hint=f"one after the other: git gate serve {(beside or alone)[0]}   git gate serve {alone[-1]}",
        )
    if flags["pages"] and page:
        raise Usage("--page is for webhooks, and --desk takes none", hint="git gate serve --desk")
    if flags["pages"] and every != SWEEP:
        raise Usage("--sweep is for webhooks, and --desk takes none", hint="git gate serve --desk")


def serve_webhooks(screen: Screen, host: str, port: int, every: str, *, page: bool) -> int:
    from ...surfaces.forge.webhook import Receiver, Seen, is_loopback, open_server, serve_webhooks

    desk = screen.desk()
    desk.refuse_agents("serve")
    pause = read_duration(every, "--sweep", "5m")
    secret = screen.env.get(SECRET, "")
    if not secret:
        raise Usage(
            f"{SECRET} is not set: without it anybody could send anything",
            hint=f"export {SECRET}=$(openssl rand -hex 32)",
        )
    if page and not is_loopback(host):
        raise Usage("--page is for this machine only", hint="--host 127.0.0.1, or no --page")
    connect(desk)  # what is missing is said now
    markdown()
    receiver = Receiver(secret, Seen(desk.repo.state_dir / "webhooks"), hooks_of(desk))
    server = open_server(receiver, host, port, (lambda: what_waits(screen)) if page else None, screen.warn)
    address = f"http://{host}:{server.server_port}/"
    screen.emit("serve", {"address": address}, address)
    with stop_on_signal() as stopping, ThreadPoolExecutor(desk.settings.number("maxAgents")) as hands:
        office = Office(screen, receiver, stopping, hands, pause)
        serve_webhooks(server, stopping, office.work)
    return DONE


def what_waits(screen: Screen) -> str:
    """Return the page of waiting gates, read anew; nothing is acted on for it, not even a deadline."""
    desk = open_desk(screen.start, screen.env)
    try:
        waiting = [one for one in summaries(desk) if one.state in (*NEEDS_A_PERSON, "broken")]
        return page(by_pressure(waiting), str(desk.repo.place))
    finally:
        desk.close()


@dataclass
class Office:
    """Worker on the receiver's queue: it takes one event after the other, while agents run in threads of their own."""

    screen: Screen
    receiver: Receiver
    stopping: threading.Event
    hands: ThreadPoolExecutor
    pause: int
    known: Known = field(default_factory=dict)
    """Replies of the forge so far: it is asked whether they changed."""
    swept: float = field(default_factory=time.monotonic)

    def work(self) -> None:
        try:
            event = self.receiver.events.get(timeout=LOOK)
        except queue.Empty:
            event = None
        due = bool(self.pause) and time.monotonic() - self.swept > self.pause
        if event is None and not due:
            return
        if event is None:
            self.swept = time.monotonic()  # also where it fails: it is not tried without end
        with self.going_on():
            desk = self.screen.desk()
            try:
                if event is not None:
                    self.take(desk, event)
                else:
                    self.sweep(desk)
            finally:
                self.screen.close()

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Report the failure of one delivery, so that others still follow; a sweep finds the failed one again."""
        try:
            yield
        except GateError as trouble:
            self.screen.say(trouble.message)
        except Exception as trouble:  # noqa: BLE001 - one delivery is never the end of all others
            self.screen.warn(f"this is a bug in gitgate, and it goes on: {one_line(repr(trouble), 300)}")

    def take(self, desk: Desk, event: Commented | Dispatched) -> None:
        forge = connect(desk, self.known)
        if not isinstance(event, Commented) or not forge.is_ours(event.repository):
            return
        fetch_gates(desk)
        done = hear(desk, forge, event.comment, kind=event.kind, words=event.words, thread=event.thread)
        for one in done:
            self.screen.say(f"{one.outcome}: {one.words}")
        self.start(desk, list(dict.fromkeys(one.gate for one in done if one.goes_on)))

    def sweep(self, desk: Desk) -> None:
        done = sweep(desk, connect(desk, self.known))
        asked = [f"a job was asked to post what is to be shown: {done.asked}"] if done.asked else []
        heard = [one.words for one in done.accepted]
        for words in (*heard, *done.noted, *asked, *done.doubts.values(), *done.trouble):
            self.screen.say(words)
        self.start(desk, done.resume)

    def start(self, desk: Desk, gates: list[str]) -> None:
        """Start agents, which run on while events come in; when we stop, their runner hands back its claims."""
        if gates and desk.settings.flag("resumeHere"):
            self.hands.submit(self.act, gates)

    def act(self, gates: list[str]) -> None:
        with self.going_on():
            desk = open_desk(self.screen.start, self.screen.env)
            try:
                act_on_gates(self.screen, desk, connect(desk), gates, self.stopping)
            finally:
                desk.close()


# The desk in a browser

INSTALL = "pip install 'git-gate[web]'"


def kept_logins(screen: Screen) -> Logins:
    home = state_home(screen.env)
    if home is None:
        raise Failure("there is no folder for the desk's logins", hint="set HOME, or XDG_STATE_HOME")
    return Logins(home, time.time)


def no_desk() -> Failure:
    return Failure("no desk was served here yet", hint="git gate serve --desk")


def change_logins(screen: Screen, *, end: bool) -> int:
    """Make one more link to log in, or end all logins; a desk need not be served at the moment."""
    logins = kept_logins(screen)
    if not end:
        screen.desk().refuse_agents("serve --login")
        if not logins.address:
            raise no_desk()
    if end:
        ended = logins.end_all()
        screen.emit("serve", {"ended": ended}, "")
        screen.say(f"ended: {ended} login{'' if ended == 1 else 's'}, and every link to log in")
        return DONE
    word, address = logins.new_login()
    link = f"{address}/login?token={word}"
    screen.emit("serve", {"address": address, "login": link}, link)
    say_if_unserved(screen, address)
    return DONE


def say_if_unserved(screen: Screen, link: str) -> None:
    """Warn that the link leads nowhere, where the desk was served on this machine and no longer is."""
    found = urlsplit(link)
    if found.hostname not in LOOPBACK or not found.port:
        return  # what a proxy leads to is not known here
    try:
        socket.create_connection((found.hostname, found.port), LOOK).close()
    except OSError:
        screen.warn(f"nobody serves there now: git gate serve --desk --port {found.port}")


def make_link(screen: Screen, gate_id: str) -> int:
    """Make a link for one gate: for a telephone, or for somebody who may answer it in your name."""
    desk = screen.desk()
    desk.refuse_agents("serve --link")
    gate = open_gate(desk, gate_id)
    if gate.state != AWAITING:
        raise IllegalEvent(
            f"gate {gate.id} is {gate.state}: a link is for one that waits for an answer",
            hint=f"git gate show {gate.id[:6]}",
        )
    link = kept_logins(screen).new_link(gate.id)
    if not link:
        raise no_desk()
    screen.emit("serve", {"gate": gate.id, "link": link}, link)
    screen.say(f"whoever has it may answer {gate.id} in your name, once, within a day")
    say_if_unserved(screen, link)
    return DONE


def serve_desk(screen: Screen, host: str, port: int, url: str, *, everywhere: bool) -> int:
    """Serve the desk until Ctrl-C. The link is printed once the port is ours."""
    try:
        import jinja2
        import pygments
        import starlette
        import uvicorn
    except ImportError as missing:
        raise Failure(f"the desk's pages need {missing.name}, which is not installed", hint=INSTALL) from None
    del jinja2, pygments, starlette, uvicorn
    logins = kept_logins(screen)
    places = [served_place(screen, place) for place in known(screen, (), everywhere=everywhere)]
    proxies = proxies_at(screen, places[0], host, url)
    try:
        listening = open_socket(host, port)
    except OSError as refused:
        raise cannot_listen(host, port, refused) from refused
    with listening, stop_on_signal() as stopping:
        address = WebAddress(
            f"[{host}]" if ":" in host else host, listening.getsockname()[1], url.rstrip("/")
        )
        site = WebSite(
            world=WebWorld(places, screen.env, time.time),
            address=address,
            logins=logins,
            words_of=lambda desk, done: (what_next if done.counted else recording_words)(desk, done),
            delivery=lambda desk: delivery(desk, {"no_resume": False}),
            where=where,
            note=lambda words: screen.warn(one_line(words, 300)),
            proxies=proxies,
        )
        tell_address(screen, logins, address, proxies)
        serve_site(site, listening, stopping)
    return DONE


def tell_address(screen: Screen, logins: Logins, address: WebAddress, proxies: WebProxies | None) -> None:
    """Print the desk's address, with a login in it unless a proxy says who somebody is."""
    if proxies is not None:
        logins.forget_address()  # links to one gate are for desks without such a proxy
        screen.emit("serve", {"address": address.origin, "login": None}, address.origin)
        screen.say(
            f"{address.origin} listens on {address.host}:{address.port}; who somebody is, its proxy says in {proxies.header}"
        )
        return
    word, _ = logins.new_login(address.origin)
    link = f"{address.origin}/login?token={word}"
    screen.emit("serve", {"address": address.origin, "login": link}, link)
    another, all_of_them = "git gate serve --login", "git gate serve --log-out"
    screen.say(f"the link works once, within an hour; another: {another}   to end all: {all_of_them}")


def proxies_at(screen: Screen, place: Path, host: str, url: str) -> WebProxies | None:
    """Return the proxies that authenticate, by a repository's settings.

    Whoever reaches the port from beyond this machine has to come through one.
    """
    desk = open_desk(place, screen.env)
    try:
        proxies = read_proxies(desk.settings.text("web.userHeader"), desk.settings.text("web.trustedProxies"))
        if proxies is None:
            desk.person()  # answers are in their name
    finally:
        desk.close()
    if url and not re.fullmatch(r"https?://[A-Za-z0-9.\[\]:-]+/?", url):
        raise Usage(
            f"--url {url}: expected an address without a path", hint="--url https://gates.example.org"
        )
    if proxies is None and host not in LOOPBACK:
        raise Usage(
            f"--host {host}: beyond this machine a proxy has to say who somebody is, and none is set",
            hint="git config gitgate.web.userHeader X-Forwarded-User   (from elsewhere without one: ssh -L 8577:127.0.0.1:8577 THIS-MACHINE)",
        )
    if proxies is not None and not url:
        raise Usage(
            "with a proxy the desk needs its address there: any other Host is refused",
            hint="git gate serve --desk --url https://gates.example.org",
        )
    return proxies


def served_place(screen: Screen, place: Path) -> Path:
    """Return the place of a repository that a person serves; refuse agents."""
    desk = open_desk(place, screen.env)
    try:
        desk.refuse_agents("serve")
        return desk.repo.place
    finally:
        desk.close()
