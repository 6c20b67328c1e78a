"""Surfaces: look what people are to be told, and tell them. One sender at a time; whoever is killed leaves the rest to the next.

What is sent is marked as sent right afterwards. Who is killed between the two has the next one send it once more, with the
same id.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ... import text as times
from ...context import Desk, open_desk
from ...context.targets import summaries
from ...errors import GateError
from ...gates import overdue, runs_here, settled_summary
from ...gates.recording import is_told_of, reload
from ...model import AWAITING, FAILED, RESUMED, run_status
from ...model.gate import Gate
from ...policy import Book, load_book
from ...record import Summary, by_pressure
from ...record.runs import Run
from ...store.git.refs import RUNS
from ...store.records.journal import Journals
from . import Notification, NotSent
from .addresses import (
    RUN_HEADS,
    AddressBook,
    Occasion,
    Recipient,
    concerns,
    is_over,
    is_server,
    load_addresses,
    message_id,
    notification,
    occasions,
    quiet_until,
    run_concerns,
    run_notification,
    run_occasion,
    told_shape,
)
from .outbox import FILE, Due, Looked, Outbox, open_outbox, usable

TOLD_OF = (AWAITING, FAILED, RESUMED)
MANY = 64
# Where nobody else looks again, the sender itself stays so long for what is to be sent later.
STAYS = 12 * 3600.0
NAP = 10.0
LOOK_EVERY = 5.0


@dataclass
class SendingResult:
    """Result of a look: how many messages were sent, failed or are over, and when the next one is due."""

    sent: int = 0
    failed: int = 0
    over: int = 0
    next_at: float | None = None
    said: list[str] = field(default_factory=list)


@dataclass
class Messenger:
    """Sender of one repository's messages."""

    desk: Desk
    outbox: Outbox
    stopping: threading.Event = field(default_factory=threading.Event)
    say: Callable[[str], None] = lambda _words: None

    def run(self, *, stay: bool = False) -> SendingResult | None:
        """Send all that is due; None where another sender does so. `stay`: also what is due within hours."""
        with usable(self.outbox.folder / FILE):
            return self.run_on(stay)

    def run_on(self, stay: bool) -> SendingResult | None:
        done = self.answer_calls()
        if stay and done is not None and done.next_at is not None:
            with self.outbox.alone("staying") as ours:
                if ours:
                    self.keep_at_it(done)
        return done

    def answer_calls(self) -> SendingResult | None:
        """Leave a mark, then send until there is no mark. Whoever wants something sent leaves a mark first; the sender
        looks once more after it has released the lock.
        """
        self.outbox.call()
        done: SendingResult | None = None
        while self.outbox.heard() and not self.stopping.is_set():
            with self.outbox.alone("sending") as ours:
                if not ours:
                    self.outbox.call()  # The other one finds it, or found it before it went.
                    return done
                done = self.once(done or SendingResult())
        return done

    def keep_at_it(self, done: SendingResult) -> None:
        """Send until nothing is due soon: on a server it may be long until another sender comes."""
        end = self.desk.clock() + STAYS
        while (at := self.outbox.next_at()) is not None and at < end and not self.stopping.is_set():
            wait = at - self.desk.clock()
            self.desk.close()  # no git waits with us
            if wait > 0 and self.stopping.wait(min(wait, NAP)):
                return
            if wait <= NAP:
                again = self.answer_calls()
                done.sent += again.sent if again else 0
        done.next_at = self.outbox.next_at()

    def once(self, done: SendingResult) -> SendingResult:
        book = load_addresses(self.desk)
        for wrong in book.unusable:
            self.say(wrong.words)
        if book.recipients:
            look_at_gates(self.desk, self.outbox, book)
        while not self.stopping.is_set() and (due := self.outbox.next(self.desk.clock())) is not None:
            self.tell(book, due, done)
        done.next_at = self.outbox.next_at()
        return done

    def tell(self, book: AddressBook, due: Due, done: SendingResult) -> None:
        """Send one message, if it is still true."""
        now, recipient = self.desk.clock(), book.find(due.address)
        message = None if recipient is None else self.message(recipient, due.occasion)
        if recipient is None or message is None:
            self.outbox.over(due, now, "" if recipient else "nobody has this address any more")
            done.over += 1
            return
        silent = 0.0 if message.urgent else quiet_until(recipient.quiet, now)
        if silent:
            self.outbox.later(due, silent)
            return
        self.outbox.trying(due)
        try:
            recipient.channel.send(recipient.target, message)
        except NotSent as failed:
            until = self.outbox.failed(
                due, self.desk.clock(), failed.message, after=failed.after, gone=failed.gone
            )
            again = times.format_time(until)
            done.failed += 1
            done.said.append(
                f"{occasion_name(due.occasion)}: {failed.message}; the next attempt is at {again}"
            )
            self.say(done.said[-1])
        else:
            self.outbox.sent(due, self.desk.clock())
            done.sent += 1
            self.say(f"{occasion_name(due.occasion)}: told {recipient.name} ({due.occasion.event})")

    def message(self, recipient: Recipient, occasion: Occasion) -> Notification | None:
        """Return the notification as things are now; None where there is nothing to send any more."""
        if occasion.event in RUN_HEADS:
            run = run_now(self.desk, occasion.gate)
            now = run_occasion(run) if run is not None else None
            if run is None or now is None or (now.event, now.key) != (occasion.event, occasion.key):
                return None
            return run_notification(self.desk, recipient, run, occasion)
        gate = gate_now(self.desk, occasion.gate)
        if gate is None or is_over(gate, occasion.event, occasion.key):
            return None
        return notification(self.desk, recipient, gate, occasion)


def occasion_name(occasion: Occasion) -> str:
    return f"{'run' if occasion.event in RUN_HEADS else 'gate'} {occasion.gate}"


def run_now(desk: Desk, run: str) -> Run | None:
    """Return the run as its journal is now; None where it was folded away, or cannot be read."""
    tip = desk.refs.get(RUNS + run)
    with contextlib.suppress(GateError):
        return Journals(desk.repo, desk.records).load(run, tip) if tip is not None else None
    return None


def gate_now(desk: Desk, gate: str) -> Gate | None:
    """Return the gate as its record is now; None where it is closed and folded away, or cannot be read."""
    with contextlib.suppress(GateError):
        return reload(desk, gate)
    return None


def look_at_gates(desk: Desk, outbox: Outbox, book: AddressBook) -> None:
    """Put into the outbox the messages on gates that have changed since the last look."""
    now = desk.clock()
    since = outbox.addresses([one.digest for one in book.recipients], now)
    seen = outbox.seen()
    listed = (settled_summary(desk, one) if overdue(one, desk.now) else one for one in summaries(desk))
    found = {summary.id: summary for summary in listed}
    fresh = [one for one in found.values() if one.tip != seen.get(one.id)]
    if len(fresh) > MANY:
        desk.work_in_bulk()
    policy, who = policy_of(desk), person_here(desk)
    looked = [
        Looked(one.id, one.tip, messages(desk, book, policy, one, who, since) if may_tell(one, since) else ())
        for one in by_pressure(fresh)
    ]
    runs = {ref.removeprefix(RUNS): tip for ref, tip in desk.refs.under(RUNS).items()}
    looked += look_at_runs(desk, book, {run: tip for run, tip in runs.items() if tip != seen.get(run)}, since)
    if looked:
        outbox.put(looked, now)
    gone = [gate for gate in seen if gate not in found and gate not in runs]
    if gone:
        outbox.forget(gone, now)


def look_at_runs(
    desk: Desk, book: AddressBook, fresh: Mapping[str, str], since: Mapping[str, float]
) -> list[Looked]:
    """Return the runs that have changed since the last look. A journal is read only if its last message says so."""
    if not fresh:
        return []
    earliest, who = min(since.values(), default=0.0), person_here(desk)
    found = []
    for said in runs_here(desk):
        run, tip = said["Run"], fresh.get(said["Run"])
        if tip is None:
            continue
        status = run_status(said.get("State", ""), said.get("Reason", ""))
        told = f"run:{status}" in RUN_HEADS and float(said["At"] or 0) >= earliest
        told = told and not said.get("Parent")  # what becomes of it is told of the run that has called it
        loaded = run_now(desk, run) if told else None
        found.append(Looked(run, tip, hearing(book, loaded, who, since) if loaded is not None else ()))
    return found


def hearing(book: AddressBook, run: Run, who: str, since: Mapping[str, float]) -> list[tuple[Occasion, str]]:
    """Return how the run ended, with each address that is to hear of it."""
    what = run_occasion(run)
    return [
        (what, one.digest)
        for one in book.recipients
        if what is not None
        and begins_before(what, since.get(one.digest, 0.0))
        and run_concerns(one, run, who)
    ]


def may_tell(summary: Summary, since: Mapping[str, float]) -> bool:
    """Return whether the gate's record has to be read: not if it waited long before anybody was to be notified."""
    if summary.state == AWAITING and not summary.deadline and not summary.later:
        return times.parse_time(summary.at or times.format_time(0)) >= min(since.values(), default=0.0)
    return summary.state in TOLD_OF


def messages(
    desk: Desk,
    book: AddressBook,
    policy: Book | None,
    summary: Summary,
    who: str,
    since: dict[str, float],
) -> list[tuple[Occasion, str]]:
    """Return each occasion with each address that is to hear of it."""
    try:
        gate = desk.records.load(summary.id, summary.tip)
    except GateError:
        return []  # `verify` and `list` say what is wrong with it
    return [
        (what, one.digest)
        for what in occasions(gate)
        for one in recipients_for(book, gate)
        if begins_before(what, since.get(one.digest, 0.0)) and concerns(desk, policy, one, gate, who)
    ]


def begins_before(what: Occasion, since: float) -> bool:
    """Return whether the occasion came after the address was added. A deadline always counts."""
    return what.event == "deadline" or times.parse_time(what.at) >= since


def recipients_for(book: AddressBook, gate: Gate) -> tuple[Recipient, ...]:
    """Return the addresses that the question names, if one is known here; else all: a question silences nobody."""
    named = tuple(one for one in book.recipients if one.name in gate.opened.notify)
    return named or book.recipients


def policy_of(desk: Desk) -> Book | None:
    try:
        return load_book(desk)
    except GateError:
        return None


def person_here(desk: Desk) -> str:
    """Return the person whose machine this is; empty for a server, which is nobody's."""
    return "" if is_server(desk) else desk.settings.identity()


def send_test(desk: Desk, recipient: Recipient) -> None:
    """Send a message that says that it is a test. Raise `NotSent` where it does not get through."""
    name = message_id("", "test", desk.entropy(8), recipient.digest)
    title = "Test: git gate can reach you"
    text = f"sent by git gate notify test to {recipient.name}"
    shape = told_shape("test", name, title, text, None, None, "git gate list")
    recipient.channel.send(recipient.target, Notification(name, "test", "", title, text, False, shape))


def messenger_of(
    desk: Desk, say: Callable[[str], None] = lambda _words: None, stopping: threading.Event | None = None
) -> Messenger:
    return Messenger(desk, open_outbox(desk), stopping or threading.Event(), say)


@contextlib.contextmanager
def telling(
    places: Sequence[Path], env: Mapping[str, str], say: Callable[[str], None], stopping: threading.Event
) -> Iterator[None]:
    """Notify people of the gates of these repositories while a worker works, and once more at its end."""
    over = threading.Event()

    def tell(those: Sequence[Path]) -> list[Path]:
        return [place for place in those if tell_of(place, env, say, stopping)]

    def keep() -> None:
        left = tell(places)
        while left and not over.wait(LOOK_EVERY) and not stopping.is_set():
            tell(left)

    beside = threading.Thread(target=keep, name="notify")
    beside.start()
    try:
        yield
    finally:
        over.set()
        beside.join()
        if not stopping.is_set():
            tell(places)


def tell_of(
    place: Path, env: Mapping[str, str], say: Callable[[str], None], stopping: threading.Event
) -> bool:
    """Look once at one repository, and return whether anybody is notified of it at all. Its trouble does not affect the
    others.

    If a place is no repository, whoever works there says what is wrong.
    """
    try:
        desk = open_desk(place, env)
    except GateError:
        return False
    try:
        try:
            if not is_told_of(desk):
                return False
            messenger = messenger_of(desk, say, stopping)
            try:
                messenger.run()
            finally:
                messenger.outbox.close()
        finally:
            desk.close()
    except (GateError, OSError) as trouble:
        say(f"{place}: {trouble}")
    return True
