"""Surfaces: what the desk's screens stand on: repositories that are watched, decisions that are sent, and a terminal that is lent."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from textual.app import App, SuspendNotSupported
from textual.filter import LineFilter, NoColor
from textual.message import Message

from ...context import Desk
from ...context import open_desk as opened
from ...context.machine import (
    AT_DESK,
    BEAT,
    Attentive,
    begin_listening,
    end_listening,
    host_name,
    keep_listening,
)
from ...errors import GateError
from ...exchange.syncing import RemoteNews, hear_news
from ...gates import fingerprint
from ...resumption.calls import hand_on, wake_due
from ...store.git import Repository
from ...text import one_line
from . import (
    CommandResult,
    DecisionQueue,
    GateCommand,
    InboxModel,
    RepositoryState,
    read_repository,
    run_gate_command,
)

# The desk's repositories, read again as soon as something has moved there, and asked for news of their
# remotes.
#
# Three threads: neither a remote that is slow nor a notification that does not leave holds up what
# happens on this machine. While it reads, whoever sits here is noted beside each repository as somebody
# who hears of its questions.


POLL = 0.4
AT_LEAST_EVERY = 20.0  # deadlines pass, and runners fall silent, without any ref that moves
TELL_EVERY = 5.0


@dataclass
class WatchedPlace:
    """Repository that is watched, and how it looked when it was read. `held`: the lock of the desk there."""

    place: Path
    repo: Repository | None = None
    seen: tuple[int, ...] = ()
    read_at: float = float("-inf")
    held: int | None = None
    attend_at: float = 0.0


@dataclass
class InboxWatch:
    """Watch over the desk's repositories.

    `read` gets each repository as it is now; `say` gets what this clone did about stalled gates, and about silence.
    `tell` looks once whether anybody is to be told of a repository's gates, until the event; False where nobody ever
    is.
    """

    places: Sequence[Path]
    open_desk: Callable[[Path], Desk]
    read: Callable[[RepositoryState], None]
    say: Callable[[str], None]
    tell: Callable[[Path, threading.Event], bool] | None = None
    monotonic: Callable[[], float] = time.monotonic
    over: threading.Event = field(default_factory=threading.Event)
    _nudged: threading.Event = field(default_factory=threading.Event)
    _watched: list[WatchedPlace] = field(default_factory=list)
    _attending: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._watched = [WatchedPlace(place) for place in self.places]

    def start(self) -> None:
        for work in (self.reading, self.hearing, self.telling):
            threading.Thread(target=work, daemon=True, name=f"desk {work.__name__}").start()

    def stop(self) -> None:
        self.over.set()
        self._nudged.set()
        with self._attending:
            for watched in self._watched:
                number, watched.held = watched.held, None
                if number is not None and watched.repo is not None:
                    end_listening(watched.repo, number, AT_DESK)

    def nudge(self) -> None:
        """Look at once, since something was done here."""
        self._nudged.set()

    def reading(self) -> None:
        while not self.over.is_set():
            nudged = self._nudged.is_set()
            self._nudged.clear()
            for watched in self._watched:
                if not self.over.is_set():
                    self.look(watched, insist=nudged)
            self._nudged.wait(POLL)

    def look(self, watched: WatchedPlace, *, insist: bool = False) -> None:
        """Read a repository again, if anything can have changed."""
        # Before it is read: what moves meanwhile is seen the next time.
        now = fingerprint(watched.repo) if watched.repo is not None else ()
        due = self.monotonic() - watched.read_at > AT_LEAST_EVERY
        if watched.held is not None and watched.repo is not None and self.monotonic() >= watched.attend_at:
            watched.attend_at = self.monotonic() + BEAT
            keep_listening(watched.repo, AT_DESK)
        if now == watched.seen and not due and not insist:
            return
        watched.seen, watched.read_at = now, self.monotonic()
        try:
            desk = self.open_desk(watched.place)
        except (GateError, OSError) as gone:
            self.read(RepositoryState(watched.place, trouble=str(gone)))
            return
        try:
            watched.repo = desk.repo
            self.attend(watched, desk)
            watched.seen = watched.seen or fingerprint(desk.repo)
            state = read_repository(desk)
            self.read(state)
            with suppress(GateError, OSError):
                for words in [*hand_on(desk, state.gates), *wake_due(desk)]:
                    self.say(words)
        finally:
            desk.close()

    def attend(self, watched: WatchedPlace, desk: Desk) -> None:
        """Note that the desk listens here: whoever asks is not told that nobody does.

        Of two desks one is noted. The other is noted when that one has gone.
        """
        with self._attending, suppress(GateError, OSError):
            if watched.held is None and not self.over.is_set():
                who = Attentive(desk.person(), os.getpid(), host_name(), AT_DESK, desk.now)
                watched.held = begin_listening(desk, who, AT_DESK)

    def telling(self) -> None:
        """Notify people of gates, deadlines and reminders; whoever looks next sends what is cut off here."""
        tell = self.tell
        left = list(self.places) if tell is not None else []
        while tell is not None and left and not self.over.is_set():
            left = [place for place in left if tell(place, self.over)]
            self.over.wait(TELL_EVERY)

    def hearing(self) -> None:
        hear_news([RemoteNews(place) for place in self.places], self.open_desk, self.say, self.over)


# What the desk's screens stand on: repositories that are watched, decisions that are sent, and a terminal
# that is lent.


# A program that wants a password would write into the middle of the screen: it gets none, and says so.
NO_PROMPTS = {"GIT_TERMINAL_PROMPT": "0", "GCM_INTERACTIVE": "never", "SSH_ASKPASS_REQUIRE": "force"}
TICK = 0.2
AGES_EVERY = 15.0


@dataclass(frozen=True)
class DeskWorld:
    """Surroundings of the desk: its repositories, and how it lends out a terminal.

    `lend` starts a program on this terminal, waits for its end, and gives its exit code. `edit` opens the person's
    editor on a folder, and says what went wrong. `tell` sends what people are to be told of a repository's gates (see
    InboxWatch).
    """

    places: Sequence[Path]
    here: Path | None
    env: Mapping[str, str]
    lend: Callable[[Sequence[str], Path], int]
    edit: Callable[[Path], str]
    color: bool = True
    undo: float = 5.0
    tell: Callable[[Path, threading.Event], bool] | None = None
    clock: Callable[[], float] = time.time


class RepositoryRead(Message):
    def __init__(self, state: RepositoryState) -> None:
        super().__init__()
        self.state = state


class WordsHeard(Message):
    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words


class CommandEnded(Message):
    def __init__(self, result: CommandResult) -> None:
        super().__init__()
        self.result = result


class InboxChanged(Message):
    """Message that the shown lists may have changed."""


class DeskServices(App[None]):
    """Application without its screens."""

    def __init__(self, world: DeskWorld) -> None:
        super().__init__()
        self.world = world
        self.model = InboxModel(world.clock, list(world.places))
        self.queue = DecisionQueue(world.undo, time.monotonic)
        self.answered: list[GateCommand] = []
        self.sent: dict[str, str] = {}
        self.said = ""
        self.command = ""
        self.sending = threading.Lock()
        self.watching = InboxWatch(
            world.places,
            self.open_desk,
            lambda state: self.heard(RepositoryRead(state)),
            lambda words: self.heard(WordsHeard(words)),
            tell=self.world.tell,
        )
        self._drawn = time.monotonic()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the filters of lines. Without colour one of them removes all of it: Textual itself would use greys."""
        filters = super().get_line_filters()
        return filters if self.world.color else [*filters, NoColor()]

    def heard(self, message: Message) -> None:
        """Post a message from any thread; it is dropped once the desk is being left."""
        if self.is_running:
            self.post_message(message)

    def open_desk(self, place: Path) -> Desk:
        """Open a desk for this thread alone. Nothing that it starts asks anybody for a password."""
        env = {"SSH_ASKPASS": "false", **self.world.env, **NO_PROMPTS}
        return opened(place, env, clock=self.world.clock)

    def begin(self) -> None:
        """Start to watch and to send.

        A closed terminal, and a polite end, leave as `q` does: what was decided is sent.
        """
        self.watching.start()
        for number in (signal.SIGTERM, signal.SIGHUP):
            with suppress(ValueError, RuntimeError):  # not the main thread's loop
                asyncio.get_running_loop().add_signal_handler(number, self.exit)
        self.set_interval(TICK, self.tick)

    def on_unmount(self) -> None:
        self.watching.stop()

    def tick(self) -> None:
        """Send what can no longer be taken back, and update the ages."""
        for command in self.queue.due():
            self.send(command)
        notes = {**self.sent, **self.queue.notes}
        if notes != self.model.notes or time.monotonic() - self._drawn > AGES_EVERY:
            self.model.notes = notes
            self.changed()

    def changed(self) -> None:
        self._drawn = time.monotonic()
        if self.screen_stack:  # while it closes there is none, and what was being read still comes
            self.screen.post_message(InboxChanged())

    def tell(self, words: str) -> None:
        """Show one line to the person, until the next one."""
        self.said = one_line(words)
        self.changed()

    def refused(self, error: GateError) -> None:
        self.tell(f"{error.message}{f' — {error.hint}' if error.hint else ''}")

    # Decisions

    def shown_command(self, command: GateCommand) -> str:
        return command.shown(there=command.place != self.world.here)

    def decided(self, command: GateCommand) -> None:
        """Queue a decision: it is sent in a few seconds, unless it is taken back."""
        self.command = self.shown_command(command)
        self.queue.add(command)
        seconds = f"{self.queue.seconds:g} s"
        self.tell(f"gate {command.gate[:6]}: {command.does} in {seconds}; u takes it back")
        self.tick()

    def send(self, command: GateCommand) -> None:
        """Run a command in a thread, one after the other, in the order of the decisions."""
        self.sent[command.gate] = f"{command.does} …"
        self.run_worker(lambda: self.run_now(command), thread=True, exit_on_error=False, group="sending")

    def run_now(self, command: GateCommand) -> None:
        with self.sending:
            result = run_gate_command(command, self.world.env)
        self.watching.nudge()
        self.heard(CommandEnded(result))

    def on_command_ended(self, message: CommandEnded) -> None:
        result = message.result
        self.sent.pop(result.command.gate, None)
        if result.code == 0:
            if result.command.words[0] == "respond":
                self.answered.append(result.command)
            self.tell(result.words)
        elif result.stale:
            self.tell(f"not recorded: {result.words}; it is shown as it is now")
        else:
            self.tell(f"not recorded: {result.words}")
        self.tick()

    def left_over(self) -> list[GateCommand]:
        """Take out the decisions that were not sent yet, for whoever closes the desk."""
        return self.queue.all()

    # What is read

    def on_repository_read(self, message: RepositoryRead) -> None:
        for change in self.model.take(message.state):
            own = change.id in self.sent or any(one.gate == change.id for one in self.answered)
            dropped = self.queue.drop(change.id)
            if not own:
                about = f"; {dropped.does!r} is not sent" if dropped is not None else ""
                place = change.place
                self.run_worker(
                    lambda gate=change.id, place=place, about=about: self.tell_by_whom(place, gate, about),
                    thread=True,
                    exit_on_error=False,
                )
        self.changed()

    def tell_by_whom(self, place: Path, gate: str, about: str) -> None:
        """Show who was first, and what they said."""
        from ...acts import find_gate, what_became

        try:
            desk = self.open_desk(place)
            try:
                words = what_became(find_gate(desk, gate).gate)
            finally:
                desk.close()
        except (GateError, OSError) as unreadable:
            words = f"gate {gate[:6]} does not wait any more ({unreadable})"
        self.heard(WordsHeard(f"{words}{about}"))

    def on_words_heard(self, message: WordsHeard) -> None:
        self.tell(message.words)

    # The terminal

    def lend(
        self, argv: Sequence[str], place: Path, how: Callable[[Sequence[str], Path], int] | None = None
    ) -> int | None:
        """Lend the terminal to a program, and take it back however that ends; return the exit code.

        None where the terminal could not be lent. The program is waited for right here: an exception inside `suspend`
        would leave the desk without its terminal.
        """
        code: int | None = None
        trouble = ""
        try:
            with self.suspend():
                try:
                    code = (how or self.world.lend)(argv, place)
                except BaseException as failed:  # noqa: BLE001 - whatever happened there, the desk comes back and says it
                    trouble = getattr(failed, "message", "") or f"{type(failed).__name__} {failed}".strip()
        except SuspendNotSupported:
            trouble = "this terminal cannot be given to another program; type the command elsewhere"
        if trouble:
            self.tell(trouble)
        self.watching.nudge()
        self.refresh(layout=True)
        return code

    def open_letter(self, place: Path, gate: str, *, amending: bool = False) -> None:
        """Show one gate; `amending`: the keys correct the answer that it has."""
        raise NotImplementedError

    def edit_folder(self, folder: Path) -> None:
        """Open the person's editor on a folder; one with a window of its own gives the terminal back at once."""
        words: list[str] = []

        def edit(_argv: Sequence[str], place: Path) -> int:
            words.append(self.world.edit(place))
            return 0

        if self.lend((), folder, edit) is not None:
            self.tell(words[0] or f"opened {folder}")
