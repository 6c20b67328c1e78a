"""Surfaces: whether those who want to hear of gates can be told from here. Nobody is told anything by looking."""

from __future__ import annotations

from collections.abc import Iterator

from ...context.desk import Desk
from ...errors import GateError
from ...setup.checkup import GOOD, MISSING, WRONG, Finding
from ...text import times
from .addresses import Recipient, is_server, load_addresses
from .outbox import FILE, AddressState, open_outbox, outbox_folder, usable

TRY = "git gate notify test"


def examine_addresses(desk: Desk) -> Iterator[Finding]:
    """Each address, and what stands where one was expected."""
    try:
        book = load_addresses(desk)
        states = states_here(desk)
    except (GateError, OSError) as trouble:
        yield Finding("notify", WRONG, str(trouble), "git config --get-all gitgate.notify")
        return
    for wrong in book.unusable:
        yield Finding("notify", WRONG, wrong.words, wrong.mend)
    for one in book.recipients:
        yield examine_one(desk, one, states.get(one.digest, AddressState()))
    for one in book.elsewhere:
        words = f"{one.name} ({one.shown}) is told by the server; {one.source} names it"
        yield Finding("notify", GOOD, words)
    if is_server(desk) and not book.recipients and not book.unusable:
        words = "nobody is told of a gate that is pushed here"
        yield Finding("notify", MISSING, words, "git config --add gitgate.notify 'webhook https://…'")


def states_here(desk: Desk) -> dict[str, AddressState]:
    """How the addresses have answered; nothing is made where nothing was ever sent."""
    if not (outbox_folder(desk)[0] / FILE).exists():
        return {}
    outbox = open_outbox(desk)
    try:
        with usable(outbox.folder / FILE):
            return dict(outbox.states())
    finally:
        outbox.close()


def examine_one(desk: Desk, one: Recipient, state: AddressState) -> Finding:
    why = one.channel.lacks(one.target)
    if why:
        return Finding("notify", WRONG, f"{one.name}: {why}", TRY)
    if one.channel.kind == "desktop" and is_server(desk):
        words = f"{one.name}: nobody sits before this server's desktop"
        return Finding("notify", WRONG, words, "git config --unset-all gitgate.notify desktop")
    if state.failures:
        waits = f"{state.waiting} wait, until {times.format_time(state.until)}"
        return Finding("notify", WRONG, f"{one.name}: {state.said}; {waits}", f"{TRY} {one.name}")
    return Finding("notify", GOOD, f"{one.name} ({one.shown}) is told of gates, by {one.source}")
