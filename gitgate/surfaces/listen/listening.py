"""Surfaces: one listener for all agents of one or many repositories: what waits is found, asked one at a time, and recorded.

Between two looks at a repository nothing is asked of git: a few files tell whether anything has moved. Where the repository
lies on a network or a WSL mount these tell late or never, so that git is asked itself, each few seconds.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...acts import answering
from ...acts.answering import Manner, Responded, check_seen, closed_error, respond
from ...context import Desk, open_desk
from ...context.machine import BEAT, keep_listening
from ...errors import BadAnswer, Conflict, Failure, GateError, LostRace, NotAllowed, Stale
from ...exchange.syncing import RemoteNews, hear_news
from ...gates import Filter, list_gates, own_word_last
from ...gates.recording import reload
from ...model import AWAITING
from ...model.gate import Gate, Question
from ...policy.permit import mine
from ...questions import Given
from ...questions.answers import printed
from ...record import Summary, by_pressure
from ...store.git.programs import ProgramSaid, ShownProgram
from ...text import clip, counted, neutral, one_line, wrap
from . import (
    AGAIN,
    ANSWER,
    BACK,
    LATER,
    LEAVE,
    OTHER,
    STOP,
    TERMINAL,
    Dialog,
    Reply,
    Shown,
    TerminalPrompt,
    shown_title,
)

POLL = 0.25
LOOK_EVERY = 10.0  # deadlines pass, and nobody writes anything
LOOK_EVERY_ELSEWHERE = 2.0
STATUS_EVERY = 10.0
HEAR_EVERY = 5.0  # it stays all day, and with many others
# An answer that comes sooner was typed for something else: nobody reads so fast.
SOONEST = 0.7
ASIDE, AFTER_TROUBLE = 600.0, 60.0
CELLS, LONGEST_CONTEXT = 76, 1200
VIA = "listen"

NETWORK = frozenset(
    """9p afs afpfs ceph cifs drvfs fuse.glusterfs fuse.rclone fuse.s3fs fuse.sshfs fuse.vmhgfs-fuse gfs2 glusterfs lustre
    ncpfs nfs nfs4 ocfs2 prl_fs smb2 smb3 smbfs v9fs vboxsf virtiofs""".split()
)
MOUNTS = Path("/proc/self/mountinfo")


def kind_of_mount(place: Path, mounts: str) -> str:
    """Return the type of the file system that a place is on, by the kernel's own list; empty where it is not listed."""
    found = ("", "")
    for line in mounts.splitlines():
        left, dash, right = line.partition(" - ")
        parts = left.split()
        if not dash or len(parts) < 5 or not right:
            continue
        point = parts[4].encode().decode("unicode_escape")
        if place.is_relative_to(point) and len(point) >= len(found[0]):  # a later one lies over an earlier
            found = (point, right.split()[0])
    return found[1]


def is_elsewhere(place: Path, mounts: Path = MOUNTS) -> bool:
    """Return whether writes by another machine, or by Windows, may go unnoticed at this place."""
    try:
        return kind_of_mount(place.resolve(), mounts.read_text("utf-8", "replace")) in NETWORK
    except OSError:
        return False


@dataclass
class ListenedRepository:
    """Repository whose questions are asked here."""

    place: Path
    env: Mapping[str, str]
    desk: Desk
    elsewhere: bool = False
    seen: str = ""
    next_look: float = 0.0
    trouble: str = ""

    @property
    def name(self) -> str:
        return one_line(self.desk.repo.place.name, 60)

    def stamp(self) -> str:
        """Return a stamp that changes when a gate does.

        Git writes a new file in place of an old one, which changes the time of its folder.
        """
        said = []
        for name in ("refs/hitl/open", "packed-refs", "reftable/tables.list"):
            try:
                found = (self.desk.repo.common_dir / name).stat()
            except OSError:
                said.append("-")
            else:
                said.append(f"{found.st_mtime_ns}:{found.st_ino}:{found.st_size}")
        return " ".join(said)

    def is_due(self, now: float) -> bool:
        """Return whether the repository is worth a look by git itself."""
        stamp = self.stamp()
        if now < self.next_look and (self.elsewhere or stamp == self.seen):
            return False
        self.seen = stamp
        self.next_look = now + (LOOK_EVERY_ELSEWHERE if self.elsewhere else LOOK_EVERY)
        return True

    def fresh(self) -> Desk:
        """Open a desk with the settings and rules as they are now."""
        new = open_desk(self.place, self.env)
        self.desk.close()
        self.desk = new
        return new

    def waiting(self) -> list[Summary]:
        """Return the gates that wait for the person: they may answer them, have not, and did not put them aside."""
        desk = self.fresh()
        found = list_gates(desk, Filter(states=(AWAITING,), mine=desk.person()))
        found = [one for one in own_word_last(desk, mine(desk, found)) if not one.outcome]
        desk.close()  # no git waits with us
        return [one for one in found if not one.later or one.later <= desk.now]


@dataclass
class Queued:
    """Gate that waits. `not_before`: put aside until then; `passed`: nobody here can answer this version of it."""

    repository: ListenedRepository
    summary: Summary
    not_before: float = 0.0
    passed: str = ""

    @property
    def agent(self) -> str:
        return one_line(self.summary.agent, 60)


# What is told of, as it happens: the kind of news, words, and the fields that programs get.
Tell = Callable[[str, str, Mapping[str, object]], None]
OWN_WORDS = "something else, in your own words"


@dataclass
class QuestionListener:
    """Listener that finds waiting gates and asks their questions.

    `words_of` says what becomes of a recorded answer, `delivery` how it goes on its way.
    """

    repositories: Sequence[ListenedRepository]
    tell: Tell
    dialogs: list[Dialog]
    terminal: TerminalPrompt | None
    words_of: Callable[[Desk, Responded], str]
    delivery: Callable[[Desk], dict[str, object]]
    stopping: threading.Event = field(default_factory=threading.Event)
    monotonic: Callable[[], float] = time.monotonic
    queue: dict[str, Queued] = field(default_factory=dict)
    agents: set[str] = field(default_factory=set)
    answered: dict[str, frozenset[str]] = field(default_factory=dict)
    """Gates answered here, with their commits at that time: a copy in another repository may still wait."""
    prompting: bool = (
        False  # a prompt stands on the terminal: what is told begins below it, what can wait does
    )
    held: list[tuple[str, str, Mapping[str, object]]] = field(default_factory=list)
    next_beat: float = 0.0
    next_status: float = 0.0
    told_status: tuple[int, int] = (0, 0)

    @property
    def dialog(self) -> Dialog | None:
        """First dialog that works here; None leaves questions to the terminal, if there is one."""
        return self.dialogs[0] if self.dialogs else None

    def run(self) -> None:
        while not self.stopping.is_set():
            self.look()
            item = self.first()
            if item is None:
                self.stopping.wait(POLL)
            else:
                self.ask(item)

    # What waits

    def look(self) -> None:
        """Look for news in every repository; this is cheap where there are none."""
        now = self.monotonic()
        if now >= self.next_beat:
            self.next_beat = now + BEAT
            for repository in self.repositories:
                keep_listening(repository.desk.repo)
        for repository in self.repositories:
            if repository.is_due(now):
                self.look_at(repository)
        self.tell_status(now)

    def look_at(self, repository: ListenedRepository) -> None:
        try:
            found = {one.id: one for one in repository.waiting()}
        except GateError as trouble:
            if trouble.message != repository.trouble:
                repository.trouble = trouble.message
                self.news(
                    "trouble", f"{repository.name}: {trouble.message}", {"repository": str(repository.place)}
                )
            return
        repository.trouble = ""
        found = {
            gate: one for gate, one in found.items() if one.tip not in self.answered.get(gate, frozenset())
        }
        for gate in [
            gate for gate, one in self.queue.items() if one.repository is repository and gate not in found
        ]:
            self.gone(self.queue.pop(gate))
        for summary in by_pressure(found.values()):
            known = self.queue.get(summary.id)
            if known is None:
                self.queue[summary.id] = Queued(repository, summary)
                self.agents.add(f"{summary.agent}\0{repository.place}")
                self.told(self.queue[summary.id], "queued", one_line(summary.question or summary.title, 60))
            elif known.repository is repository:
                known.summary = summary

    def gone(self, item: Queued) -> None:
        """Say that a gate waits no more, and who was first: it was not answered here."""
        gate = gate_now(item.repository.desk, item.summary.id)
        words = "waits no more" if gate is None or gate.state == AWAITING else closed_words(gate)
        self.told(item, "closed", words)

    def first(self) -> Queued | None:
        """Return the most pressing gate that may be asked now."""
        if self.dialog is None and self.terminal is None:
            return None
        now = self.monotonic()
        open_ones = [
            one for one in self.queue.values() if one.not_before <= now and one.passed != one.summary.tip
        ]
        chosen = by_pressure([one.summary for one in open_ones])
        return self.queue[chosen[0].id] if chosen else None

    def others(self, item: Queued) -> int:
        return sum(1 for one in self.queue.values() if one is not item and one.passed != one.summary.tip)

    # What is told

    def told(self, item: Queued, event: str, words: str, **more: object) -> None:
        where = f" in {item.repository.name}" if len(self.repositories) > 1 else ""
        fields = {
            "id": item.summary.id,
            "agent": item.summary.agent,
            "repository": str(item.repository.place),
            "words": words,
            **more,
        }
        self.news(event, f"[{item.agent}{where}] {event}: {words}", fields)

    def news(self, event: str, words: str, fields: Mapping[str, object]) -> None:
        if self.prompting and event in ("queued", "status"):
            self.held.append((event, words, fields))
        else:
            self.tell(event, f"\n{words}" if self.prompting else words, fields)

    def prompt_is(self, *, there: bool) -> None:
        self.prompting = there
        held, self.held = self.held, []
        for event, words, fields in held:
            self.tell(event, words, fields)

    def tell_status(self, now: float) -> None:
        status = (len(self.queue), len(self.agents))
        if now < self.next_status or status == self.told_status:
            return
        self.next_status, self.told_status = now + STATUS_EVERY, status
        if status[0]:
            words = f"[Status] {status[0]} in queue, {counted(status[1], 'agent')}"
            self.news("status", words, {"queue": status[0], "agents": status[1]})

    # One question

    def ask(self, item: Queued) -> None:
        """Ask a gate's question and do what the person wants; meanwhile the search for waiting gates goes on."""
        try:
            gate = reload(item.repository.fresh(), item.summary.id)
        except GateError as broken:
            item.passed = item.summary.tip
            self.told(item, "trouble", broken.message)
            return
        if gate.state != AWAITING:
            item.repository.next_look = 0.0
            self.queue.pop(gate.id, None)
            return
        Showing(self, item, gate).run()

    def put_aside(self, item: Queued, seconds: float = ASIDE) -> None:
        item.not_before = self.monotonic() + seconds

    def done_with(self, item: Queued, gate: Gate) -> None:
        """Remember an answered gate: nobody is asked it again for a repository that has not heard of the answer yet."""
        self.answered[gate.id] = frozenset(entry.commit for entry in gate.history)
        self.queue.pop(item.summary.id, None)


def gate_now(desk: Desk, gate: str) -> Gate | None:
    """Return the gate as it is now, also where it is closed or archived; None where nobody can tell."""
    from ...gates.history import load_archived

    with contextlib.suppress(GateError):
        try:
            return reload(desk, gate)
        except GateError:
            return load_archived(desk, gate)
    return None


def closed_words(gate: Gate) -> str:
    """Return the words that say who was first, and what they answered."""
    said = gate.answer.answer if gate.answer is not None else None
    words = closed_error(gate).message
    return f"{one_line(printed(gate.opened.questions, said), 80)} ({words})" if said is not None else words


class Leave(Exception):
    """Signal that the question is over here: answered, put aside, gone, or the listener ends."""


class Showing:
    """Course of one gate's dialogs, one after the other, until the person has decided something."""

    def __init__(self, listener: QuestionListener, item: Queued, gate: Gate) -> None:
        self.listener, self.item, self.gate = listener, item, gate
        self.problem = ""
        self.harmless = ""  # what it changed to since, which asks nothing else

    def run(self) -> None:
        with contextlib.suppress(Leave):
            if self.listener.dialog is None:
                self.in_terminal()
            while True:
                self.act_on(self.reply(self.question()))

    def question(self) -> Shown:
        return question_shown(self.item, self.gate, self.listener.others(self.item), self.problem)

    def act_on(self, reply: Reply) -> None:
        """Do what the person chose in the dialog with the question."""
        self.problem = ""
        if reply.act == OTHER:
            ways = question_shown(self.item, self.gate, 0, "")
            reply = self.reply(Shown("notice", ways.title, ways.text, ways=(BACK, *ways.ways)))
        if reply.act == LATER:
            self.later()
        if reply.act == STOP:
            self.stop()
        elif reply.act == TERMINAL:
            self.in_terminal()
        elif reply.act == ANSWER:
            self.answer(reply.value)

    # What is shown, and what comes back

    def reply(self, shown: Shown) -> Reply:
        """Show a dialog and return what the person did; one that does not work gives way to the next one."""
        while True:
            dialog = self.listener.dialog
            if dialog is None:
                raise Leave
            argv, said = dialog.command(shown)
            begun = self.listener.monotonic()
            ended = self.show(ShownProgram(argv, said, self.item.repository.env))
            reply = dialog.read(shown, ended)
            if reply is None:
                self.give_up(dialog, ended)
            elif reply.act == AGAIN:
                continue
            elif reply.act == ANSWER and self.listener.monotonic() - begun < SOONEST:
                continue  # what was typed when it came up was meant for something else
            else:
                return reply

    def show(self, program: ShownProgram) -> ProgramSaid:
        """Show a program until it ends; close it where the question has gone or changed, or the listener ends."""
        listener = self.listener
        try:
            while (ended := program.ended()) is None:
                if listener.stopping.wait(POLL):
                    raise Leave
                listener.look()
                self.check_still_asked()
            return ended
        finally:
            program.close()

    def check_still_asked(self) -> None:
        """Close a question that somebody else has answered; show one anew that has changed."""
        now = self.listener.queue.get(self.gate.id)
        if now is not self.item:
            raise Leave  # who was first was said
        if now.summary.tip in (self.gate.tip, self.harmless):
            return
        current = gate_now(self.item.repository.desk, self.gate.id)
        if current is None:
            raise Leave
        try:
            check_seen(current, self.gate.tip)
        except Stale as changed:
            self.listener.told(self.item, "changed", f"{changed.message}; shown anew")
            raise Leave from None
        self.harmless = now.summary.tip

    def give_up(self, dialog: Dialog, ended: ProgramSaid) -> None:
        listener = self.listener
        listener.dialogs.remove(dialog)
        why = one_line(ended.err, 120) or f"exit {ended.code}"
        here = "the terminal instead" if listener.terminal is not None else "answer with: git gate respond"
        then = f"{listener.dialog.name} instead" if listener.dialog is not None else here
        listener.tell("trouble", f"{dialog.name} does not work here ({why}); {then}", {"dialog": dialog.name})

    # What the person wants

    def answer(self, value: object) -> None:
        question = self.gate.opened.questions[0]
        if question.other and question.kind == "choice" and value == len(question.options):
            title = shown_title(self.item.agent, self.item.repository.name)
            words = wrap(f"{neutral(question.prompt)}\n\nYour own words:", CELLS)
            reply = self.reply(Shown("text", title, words, ways=(BACK,)))
            if reply.act != ANSWER:
                return
            given = Given(other=str(reply.value))
        else:
            given = given_of(question, value)
        self.record(given, "")

    def record(self, given: Given, note: str) -> None:
        """Record the answer by the act that the command uses, bound to what was shown."""
        listener, item = self.listener, self.item
        try:
            desk = item.repository.fresh()
            manner = Manner(note=note, via=VIA, seen=self.gate.tip, **listener.delivery(desk))  # type: ignore[arg-type]
            done = respond(desk, self.gate, given, manner)
            words = one_line(printed(self.gate.opened.questions, done.answer), 80)
            listener.done_with(item, self.gate)
            listener.told(item, "answered", f"{words}; {listener.words_of(desk, done)}", answer=words)
        except BadAnswer as unfit:
            self.problem = unfit.words_without(self.gate.opened.questions[0].key)
            return
        except Stale as changed:
            listener.told(item, "changed", f"{changed.message}; shown anew")
        except LostRace as locked:  # nobody answered it: it could not be written
            self.not_recorded(locked)
        except Conflict as late:
            listener.done_with(item, self.gate)
            listener.told(item, "late", late.message)
        except NotAllowed as refused:
            item.passed = item.summary.tip
            listener.told(item, "refused", refused.message)
        except GateError as failed:
            self.not_recorded(failed)
        raise Leave

    def not_recorded(self, why: GateError) -> None:
        self.listener.put_aside(self.item, AFTER_TROUBLE)
        self.listener.told(self.item, "trouble", f"{why.message}; asked again in a minute")

    def later(self) -> None:
        """Put the question aside: it still waits, and is asked again after a while."""
        self.listener.put_aside(self.item)
        words = f"put aside; it still waits, and is asked again in {int(ASIDE / 60)} minutes"
        self.listener.told(self.item, "later", words)
        raise Leave

    def stop(self) -> None:
        """End the gate, so that the agent does not go on.

        The reason is asked first, so that no single click ends anything.
        """
        text = f"{one_line(self.gate.opened.title, 200)}\n\nWhy is it stopped? The agent does not go on, and reads this."
        title = shown_title(self.item.agent, self.item.repository.name)
        reply = self.reply(Shown("text", title, wrap(text, CELLS), ways=(BACK,)))
        if reply.act == ANSWER and str(reply.value).strip():
            self.stop_because(str(reply.value))

    def stop_because(self, reason: str) -> None:
        listener, item = self.listener, self.item
        try:
            desk = item.repository.fresh()
            answering.stop(desk, reload(desk, self.gate.id), reason, via=VIA)
        except GateError as failed:
            listener.put_aside(item, AFTER_TROUBLE)
            listener.told(item, "trouble", failed.message)
        else:
            listener.done_with(item, self.gate)
            listener.told(item, "stopped", one_line(reason, 80))
        raise Leave

    def in_terminal(self) -> None:
        """Ask on the listener's terminal; without one, say what to type in another, and put the question aside."""
        listener, item = self.listener, self.item
        terminal = listener.terminal
        if terminal is None:
            listener.put_aside(item)
            place = f"git -C {item.repository.place} gate"
            verb = "join" if self.gate.opened.questions[0].type == "session" else "respond"
            listener.told(item, "terminal", f"{place} {verb} {self.gate.id[:6]}")
            raise Leave
        while True:
            command = terminal.command(
                str(item.repository.place), self.gate.id, self.gate.tip, listener.others(item)
            )
            env = {**item.repository.env, **terminal.env}
            listener.prompt_is(there=True)
            try:
                reply = terminal.read(self.show(ShownProgram(command, b"", env, terminal=True)))
            finally:
                listener.prompt_is(there=False)
            if reply.act == ANSWER and isinstance(reply.value, dict):
                self.record(Given(values=reply.value["values"]), str(reply.value["note"]))
                listener.told(item, "trouble", self.problem)
                continue
            if reply.act == STOP:
                self.stop_because(str(reply.value))
            if reply.act == LEAVE:
                listener.stopping.set()
                raise Leave
            self.later()


def given_of(question: Question, value: object) -> Given:
    """Return the value of a dialog as an answer; it is taken literally."""
    if isinstance(value, bool):
        return Given(approve=value)
    if isinstance(value, int):
        return Given(values={question.key: question.labels[value]})
    if isinstance(value, list):
        return Given(values={question.key: [question.labels[place] for place in value]})
    return Given(values={question.key: str(value)})


KINDS = {"text": "text", "approval": "yesno", "choice": "one", "choices": "several"}


def question_shown(item: Queued, gate: Gate, others: int, problem: str) -> Shown:
    """Return the dialog of a question: its words, the beginning of its context, the work, and what else waits."""
    questions = gate.opened.questions
    only = questions[0] if len(questions) == 1 and questions[0].type != "session" else None
    kind = KINDS.get(only.kind, "notice") if only is not None else "notice"
    rows = tuple(row_of(label.label, label.description) for label in only.options) if only is not None else ()
    if only is not None and only.other and kind == "one":
        rows = (*rows, OWN_WORDS)
    ways = (LATER, TERMINAL, STOP)
    text = "\n\n".join(part for part in parts_of(gate, others, problem, kind) if part)
    return Shown(kind, shown_title(item.agent, item.repository.name), text, rows, ways)


def row_of(label: str, description: str) -> str:
    words = one_line(label)
    return clip(f"{words}: {one_line(description)}" if description else words, 120)


def parts_of(gate: Gate, others: int, problem: str, kind: str) -> Iterator[str]:
    opened = gate.opened
    if problem:
        yield wrap(f"Not recorded: {neutral(problem)}", CELLS)
    for question in opened.questions:
        yield wrap(neutral(question.prompt), CELLS)
    context = neutral(opened.context.strip())
    if len(context) > LONGEST_CONTEXT:
        context = f"{context[:LONGEST_CONTEXT]}… (more: git gate show {gate.id[:6]})"
    yield wrap(context, CELLS) if context else ""
    if opened.work.changed:
        files = counted(opened.work.files, "file")
        lines = f"+{opened.work.insertions} -{opened.work.deletions}"
        yield wrap(f"The work: {files} changed, {lines}; to see it: git gate diff {gate.id[:6]}", CELLS)
    if kind == "notice":
        verb = "join" if any(question.type == "session" for question in opened.questions) else "respond"
        yield f"This one is answered in a terminal: git gate {verb} {gate.id[:6]}"
    if gate.deadline:
        yield f"Its deadline: {gate.deadline}"
    if others:
        yield f"{others} more wait{'s' if others == 1 else ''}"


# What others share


@contextlib.contextmanager
def hearing(listener: QuestionListener, say: Callable[[str], None]) -> Iterator[None]:
    """Fetch what others asked and answered, while dialogs are shown."""
    over = threading.Event()
    env = listener.repositories[0].env
    remotes = [RemoteNews(one.place, every=HEAR_EVERY) for one in listener.repositories]
    how = (remotes, lambda place: open_desk(place, env), say, over)
    beside = threading.Thread(target=hear_news, args=how, name="hearing")
    beside.start()
    try:
        yield
    finally:
        over.set()
        beside.join()


def open_listened_repository(place: Path, env: Mapping[str, str]) -> ListenedRepository:
    """Open a repository to listen in, for a person whom git knows; raise Failure where it was not set up."""
    if not place.is_dir():
        raise Failure(f"{place} is not a directory", hint="git gate listen DIR: one that is there")
    desk = open_desk(place, env)
    desk.refuse_agents("listen")
    if not desk.settings.flag("initialised"):
        raise Failure(
            f"{desk.repo.place} is not set up for gates",
            hint="there, once: git gate init   then: git gate listen",
        )
    desk.person()
    return ListenedRepository(place, env, desk, is_elsewhere(desk.repo.common_dir))
