"""Command line: `git gate notify` says who hears of gates, and how; `test` tries it; `send` tells what is due."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from ...errors import Failure, Usage
from .. import DONE, FAILURE
from ..terminal import Screen, verb

if TYPE_CHECKING:
    from ...context import Desk
    from ...surfaces.notify.addresses import AddressBook, Recipient
    from ...surfaces.notify.outbox import AddressState

NOBODY = "nobody is told of gates from here"


@click.group("notify", invoke_without_command=True)
@verb
def notify_command(screen: Screen) -> int:
    """Who hears of gates from here, and how. An address is added to git's configuration, or stands on the protected branch.

    \b
    git config --global --add gitgate.notify desktop
    git config --add gitgate.notify 'team=webhook https://example.org/gates'
    git gate notify
    git gate notify test
    git gate notify test team
    """
    ctx = click.get_current_context()
    ctx.obj = screen
    if ctx.invoked_subcommand is not None:
        return DONE
    from ...surfaces.notify.addresses import load_addresses
    from ...surfaces.notify.outbox import states_here

    desk = screen.desk()
    book = load_addresses(desk)
    states = states_here(desk)
    listed = [shape_of(one, states) for one in book.recipients]
    elsewhere = [shape_of(one, {}) for one in book.elsewhere]
    wrong = [{"where": one.where, "words": one.words, "mend": one.mend} for one in book.unusable]
    lines = [line_of(one) for one in listed]
    screen.emit("addresses", {"addresses": listed, "elsewhere": elsewhere, "wrong": wrong}, "\n".join(lines))
    for one in elsewhere:
        screen.say(f"{one['name']} ({one['address']}) is told by the server")
    tell_wrong(screen, book)
    if not listed:
        screen.say(f"{NOBODY}: git config --global --add gitgate.notify desktop")
    return FAILURE if wrong else DONE


def shape_of(one: Recipient, states: dict[str, AddressState]) -> dict[str, object]:
    state = states.get(one.digest)
    return {
        "name": one.name,
        "kind": one.channel.kind,
        "address": one.shown,
        "source": one.source,
        "to": list(one.to),
        "only": one.only,
        "quiet": one.quiet or None,
        "detail": one.detail,
        "waiting": state.waiting if state else 0,
        "sent": state.sent if state else 0,
        "trouble": (state.said or None) if state else None,
    }


def line_of(one: dict[str, object]) -> str:
    to = one["to"]
    parts = (
        f"for {', '.join(map(str, to))}" if isinstance(to, list) and to else "",
        f"only {one['only']}" if one["only"] != "low" else "",
        f"quiet {one['quiet']}" if one["quiet"] else "",
        f"{one['sent']} sent" if one["sent"] else "",
        f"{one['waiting']} wait" if one["waiting"] else "",
        str(one["trouble"] or ""),
    )
    more = "".join(f" · {part}" for part in parts if part)
    return f"{one['name']}  {one['address']}  ({one['source']}){more}"


def tell_wrong(screen: Screen, book: AddressBook) -> None:
    for one in book.unusable:
        screen.warn(f"{one.words}\n  {one.mend}")


@notify_command.command("test")
@click.argument("name", required=False)
@verb
def test_command(screen: Screen, name: str | None) -> int:
    """Send one message to each address, or to the one of that name. Exit 1 where one does not get through.

    \b
    git gate notify test
    git gate notify test team --json
    """
    from ...surfaces.notify import NotSent
    from ...surfaces.notify.addresses import load_addresses
    from ...surfaces.notify.sending import send_test

    desk = screen.desk()
    desk.refuse_agents("notify test")
    book = load_addresses(desk)
    chosen = recipients_named(book, name)
    tell_wrong(screen, book)
    tried = []
    for one in chosen:
        screen.progress(f"telling {one.name}")
        try:
            send_test(desk, one)
        except NotSent as failed:
            tried.append({"name": one.name, "address": one.shown, "sent": False, "reason": failed.message})
            screen.warn(f"{one.name}: {failed.message}{f'; {failed.hint}' if failed.hint else ''}")
        else:
            tried.append({"name": one.name, "address": one.shown, "sent": True, "reason": None})
            screen.say(f"{one.name}: sent to {one.shown}")
    screen.emit("notify", {"tried": tried}, "")
    return DONE if all(one["sent"] for one in tried) and not book.unusable else FAILURE


def recipients_named(book: AddressBook, name: str | None) -> list[Recipient]:
    every = [*book.recipients, *book.elsewhere]
    if name is None:
        if not book.recipients and book.unusable:
            wrong = "; ".join(one.words for one in book.unusable)
            raise Failure(f"{NOBODY}: {wrong}", hint=book.unusable[0].mend)
        if not book.recipients:
            raise Failure(NOBODY, hint="git config --global --add gitgate.notify desktop")
        return list(book.recipients)
    found = [one for one in every if one.name == name]
    if not found:
        known = ", ".join(dict.fromkeys(one.name for one in every))
        raise Usage(f"no address has the name {name!r}; there are {known or 'none'}", hint="git gate notify")
    return found


@notify_command.command("send")
@verb
def send_command(screen: Screen) -> int:
    """Tell now what is to be told: for a timer, on a machine where neither pushes nor a worker come by.

    \b
    git gate notify send
    """
    from ...surfaces.notify.sending import messenger_of

    desk = screen.desk()
    sender = messenger_of(desk, screen.say)
    try:
        done = sender.run()
    finally:
        sender.outbox.close()
    fields = {"sent": done.sent, "failed": done.failed, "over": done.over} if done else {}
    screen.emit("sent", {"busy": done is None, **fields}, "")
    if done is None:
        screen.say("another process sends at this moment")
    elif not (done.sent or done.failed):
        screen.say("nothing is to be told")
    return FAILURE if done is not None and done.failed else DONE


def send_all(screen: Screen, args: tuple[str, ...]) -> int:
    """Started beside whatever opened or heard of a gate; its talk is the log."""
    from ...surfaces.notify.sending import messenger_of
    from ..process import stop_on_signal

    del args
    desk: Desk = screen.desk()
    with stop_on_signal() as stopping:
        sender = messenger_of(desk, log_line, stopping)
        try:
            sender.run(stay=True)
        finally:
            sender.outbox.close()
    return DONE


def log_line(words: str) -> None:
    print(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {words}", file=sys.stderr, flush=True)
