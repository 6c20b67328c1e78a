"""Command line: `git gate serve`: takes a forge's webhooks, for those who run their own machine instead of its CI."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from ...errors import GateError, Usage
from ...text.display import one_line
from .. import exits
from ..terminal.screen import Screen, read_duration, verb

if TYPE_CHECKING:
    from ...context.desk import Desk
    from ...surfaces.forge.hosts.events import Commented, Dispatched
    from ...surfaces.forge.hosts.web import Known
    from ...surfaces.forge.webhook import Receiver


SECRET = "GITGATE_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable
LOOK = 0.5


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
    default="15m",
    show_default=True,
    metavar="15m",
    help="How often to look for what was missed.",
)
@click.option(
    "--page",
    is_flag=True,
    help="Show what waits at /, to this machine only; let no proxy pass anything but POST.",
)
@verb
def serve_command(screen: Screen, host: str, port: int, every: str, page: bool) -> int:
    """Receive webhooks for comments: replies on pull requests become answers, as `git gate github accept` takes them.

    GITGATE_WEBHOOK_SECRET is the secret that the forge signs them with; of GitLab the secret token, or the signing token. Agents are started here if `git gate init` allowed it.

    \b
    git gate serve
    git gate serve --port 8080 --page
    """
    from ...surfaces.forge.hosts.connect import connect, hooks_of
    from ...surfaces.forge.shown import markdown
    from ...surfaces.forge.webhook import Receiver, Seen, is_loopback, open_server, serve_webhooks
    from ..process import stop_on_signal

    desk = screen.desk()
    desk.refuse_agents("serve")
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
    pause = read_duration(every, "--every", "5m")
    receiver = Receiver(secret, Seen(desk.repo.state_dir / "webhooks"), hooks_of(desk))
    server = open_server(receiver, host, port, (lambda: what_waits(screen)) if page else None, screen.warn)
    address = f"http://{host}:{server.server_port}/"
    screen.emit("serve", {"address": address}, address)
    with stop_on_signal() as stopping, ThreadPoolExecutor(desk.settings.number("maxAgents")) as hands:
        office = Office(screen, receiver, stopping, hands, pause)
        serve_webhooks(server, stopping, office.work)
    return exits.DONE


def what_waits(screen: Screen) -> str:
    """The page, read anew; nothing is acted on for it, not even a deadline."""
    from ...context.desk import open_desk
    from ...context.find import summaries
    from ...gates.listing import NEEDS_A_PERSON
    from ...record.headline import by_pressure
    from ...surfaces.forge.webhook import page

    desk = open_desk(screen.start, screen.env)
    try:
        waiting = [one for one in summaries(desk) if one.state in (*NEEDS_A_PERSON, "broken")]
        return page(by_pressure(waiting), str(desk.repo.place))
    finally:
        desk.close()


@dataclass
class Office:
    """Who works at what the receiver queued, one thing after the other; agents run beside."""

    screen: Screen
    receiver: Receiver
    stopping: threading.Event
    hands: ThreadPoolExecutor
    pause: int
    known: Known = field(default_factory=dict)
    """What the forge said before: it is asked whether that changed."""
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
        """Whatever becomes of one delivery, others follow: it is said, and a sweep finds it again."""
        try:
            yield
        except GateError as trouble:
            self.screen.say(trouble.message)
        except Exception as trouble:  # noqa: BLE001 - one delivery is never the end of all others
            self.screen.warn(f"this is a bug in gitgate, and it goes on: {one_line(repr(trouble), 300)}")

    def take(self, desk: Desk, event: Commented | Dispatched) -> None:
        from ...surfaces.forge.hosts.connect import connect
        from ...surfaces.forge.hosts.events import Commented
        from ...surfaces.forge.sweeping import hear
        from .steps import fetch_gates

        forge = connect(desk, self.known)
        if not isinstance(event, Commented) or not forge.is_ours(event.repository):
            return
        fetch_gates(desk)
        done = hear(desk, forge, event.comment, kind=event.kind, words=event.words, thread=event.thread)
        for one in done:
            self.screen.say(f"{one.outcome}: {one.words}")
        self.start(desk, list(dict.fromkeys(one.gate for one in done if one.goes_on)))

    def sweep(self, desk: Desk) -> None:
        from ...surfaces.forge.hosts.connect import connect
        from ...surfaces.forge.sweeping import sweep

        done = sweep(desk, connect(desk, self.known))
        asked = [f"a job was asked to post what is to be shown: {done.asked}"] if done.asked else []
        heard = [one.words for one in done.accepted]
        for words in (*heard, *done.noted, *asked, *done.doubts.values(), *done.trouble):
            self.screen.say(words)
        self.start(desk, done.resume)

    def start(self, desk: Desk, gates: list[str]) -> None:
        """Agents run on, whatever comes in meanwhile; when we stop, their runner hands back what it holds."""
        if gates and desk.settings.flag("resumeHere"):
            self.hands.submit(self.act, gates)

    def act(self, gates: list[str]) -> None:
        from ...context.desk import open_desk
        from ...surfaces.forge.hosts.connect import connect
        from .jobs import act_on_gates

        with self.going_on():
            desk = open_desk(self.screen.start, self.screen.env)
            try:
                act_on_gates(self.screen, desk, connect(desk), gates, self.stopping)
            finally:
                desk.close()
