"""Surfaces: what the keys of a gate do, on every screen of the desk that shows one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual.screen import Screen
from textual.widgets import Static

from ...errors import Failure, GateError
from ...model.gate import Gate
from ...model.states import AWAITING
from ...text.display import clip, one_line
from . import deciding
from .deciding import GateCommand
from .inbox import GateOnScreen
from .services import DeskServices
from .widgets import ON_GATE, DeskKey, LinePrompt, PanelScreen, hint_line, key_lines

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from ...context.desk import Desk

WAYS_BACK = (
    "Leave it as you leave that program (in Claude Code: /exit, or Ctrl-D), and you are back at the desk."
)


class GateScreen(Screen[None]):
    """A screen with a gate on it, on which the keys of a gate act."""

    KEYS: ClassVar[tuple[DeskKey, ...]] = ON_GATE
    amending = False

    @property
    def services(self) -> DeskServices:
        return cast("DeskServices", self.app)

    @property
    def shown(self) -> GateOnScreen | None:
        """The gate as the person sees it."""
        raise NotImplementedError

    @property
    def target(self) -> tuple[Path, str] | None:
        """The gate that is meant, also where it is not shown yet."""
        return (self.shown.place, self.shown.gate.id) if self.shown is not None else None

    def bottom(self) -> ComposeResult:
        yield Static("", id="said", markup=False)
        yield Static("", id="command", markup=False)
        yield Static("", id="hints", markup=False)

    def draw_bottom(self, command: str) -> None:
        """What happened, the command for what is shown, and the keys."""
        cells = self.app.size.width
        self.query_one("#said", Static).update(clip(self.services.said, cells))
        self.query_one("#command", Static).update(clip(one_line(f"$ {command}" if command else ""), cells))
        changed = self.services.world.keys
        self.query_one("#hints", Static).update(clip(hint_line(self.KEYS, changed, cells), cells))

    def with_gate(self, act: Callable[[Path, Gate], None]) -> None:
        """Do something with what is shown; what is wrong with it is said."""
        shown = self.shown
        if shown is None:
            self.services.tell("no gate is shown here" if self.target is None else "it is still being read")
            return
        try:
            act(shown.place, shown.gate)
        except GateError as refused:
            self.services.refused(refused)

    def decide_with(self, make: Callable[[Path, Gate], GateCommand]) -> None:
        def act(place: Path, gate: Gate) -> None:
            self.refuse_closed(gate)
            self.services.decided(make(place, gate))
            self.after_decision()

        self.with_gate(act)

    def refuse_closed(self, gate: Gate) -> None:
        if gate.state != AWAITING and not self.amending:
            raise Failure(
                f"gate {gate.id[:6]} is {gate.state}: it waits for no answer", hint="u corrects yours"
            )

    def after_decision(self) -> None:
        """Nothing more, on a list."""

    def ask_line(self, words: str, value: str, then: Callable[[str], None]) -> None:
        def given(line: str | None) -> None:
            if line is None:
                return
            try:
                then(line)
            except GateError as refused:
                self.services.refused(refused)

        self.app.push_screen(LinePrompt(words, value), given)

    # The keys of a gate

    def action_decide(self, yes: bool) -> None:
        self.decide_with(lambda place, gate: deciding.approving(place, gate, yes=yes, amend=self.amending))

    def action_option(self, number: int) -> None:
        shown = self.shown
        if shown is not None and [one.type for one in shown.gate.opened.questions] == ["choices"]:
            self.ask_answer(f"#{number}")
            return
        self.decide_with(lambda place, gate: deciding.choosing(place, gate, number, amend=self.amending))

    def action_message(self) -> None:
        self.ask_answer("")

    def ask_answer(self, value: str) -> None:
        """Bound to what was shown when the line was asked for."""

        def act(place: Path, gate: Gate) -> None:
            self.refuse_closed(gate)
            question = deciding.the_only(gate)
            amend = self.amending

            def then(line: str) -> None:
                self.services.decided(deciding.saying(place, gate, line, amend=amend))
                self.after_decision()

            self.ask_line(f"your answer to: {one_line(question.prompt, 200)}", value, then)

        self.with_gate(act)

    def action_edit(self) -> None:
        def act(place: Path, gate: Gate) -> None:
            self.refuse_closed(gate)
            more = ("--amend",) if self.amending else ()
            words = ("respond", gate.id[:6], "--edit", *more, deciding.SEEN, gate.tip, *deciding.HERE)
            self.in_terminal(GateCommand(place, gate.id, words, "answer"))

        self.with_gate(act)

    def action_join(self) -> None:
        """Before the terminal is given away the person knows to whom, why, and how to come back."""

        def act(place: Path, gate: Gate) -> None:
            self.refuse_closed(gate)
            session = gate.opened.session
            which = f"{one_line(session.agent)}'s own session" if session is not None else "a new session"
            text = "\n".join(
                (
                    f"Agent: {one_line(gate.opened.asked.agent)} ({which})",
                    f"Reason: {one_line(gate.opened.questions[0].prompt, 300)}",
                    "",
                    f"It opens in this terminal. {WAYS_BACK}",
                    "Nothing is decided in it: afterwards you confirm what was said, or leave the gate waiting.",
                    "",
                    "Enter opens it, Esc does not.",
                )
            )
            command = GateCommand(place, gate.id, ("join", gate.id[:6]), "join")

            def agreed(yes: bool | None) -> None:
                if yes:
                    self.in_terminal(command)

            self.app.push_screen(PanelScreen("The agent's session", text), agreed)

        self.with_gate(act)

    def in_terminal(self, command: GateCommand) -> None:
        """The command has the terminal until it ends. What was about to be said at this gate is not said beside it."""
        services = self.services
        services.queue.drop(command.gate)
        services.command = services.shown_command(command)
        code = services.lend(command.argv, command.place)
        if code is not None:
            services.tell(ENDED.get(code, f"{command.words[0]} ended with exit {code}"))
        self.refresh_shown()

    def action_open_work(self) -> None:
        self.run_worker(lambda: self.find_tree(then_edit=True), thread=True, exit_on_error=False)

    def action_worktree(self) -> None:
        self.run_worker(lambda: self.find_tree(then_edit=False), thread=True, exit_on_error=False)

    def find_tree(self, *, then_edit: bool) -> None:
        """In a thread: the working tree of the gate's work, made where there is none yet."""
        shown, services = self.shown, self.services
        if shown is None:
            return
        try:
            desk = services.open_desk(shown.place)
            try:
                folder = tree_of(desk, shown.gate)
            finally:
                desk.close()
        except (GateError, OSError) as refused:
            hint = getattr(refused, "hint", "")
            words = f"{getattr(refused, 'message', refused)}{f' — {hint}' if hint else ''}"
            self.app.call_from_thread(services.tell, words)
            return
        self.app.call_from_thread(self.at_tree, folder, then_edit, shown)

    def at_tree(self, folder: Path, then_edit: bool, shown: GateOnScreen) -> None:
        command = GateCommand(shown.place, shown.gate.id, ("worktree", shown.gate.id[:6]), "worktree")
        self.services.command = self.services.shown_command(command)
        if then_edit:
            self.services.edit_folder(folder)
        else:
            self.services.tell(f"its work is in {folder}; when done: git worktree remove --force {folder}")

    def action_later(self) -> None:
        def act(place: Path, gate: Gate) -> None:
            def then(line: str) -> None:
                self.services.send(deciding.deferring(place, gate, line))

            self.ask_line("put it aside for how long? (2h, 1d; now: have it back)", "2h", then)

        self.with_gate(act)

    def action_stop(self) -> None:
        target = self.target
        if target is None:
            return

        def then(line: str) -> None:
            self.services.decided(deciding.stopping(target[0], target[1], line))

        self.ask_line(f"why is {target[1][:6]} stopped? The agent does not go on.", "", then)

    def action_undo(self) -> None:
        """What is not sent yet is taken back; an answer that was sent is corrected, while nobody acts on it."""
        services = self.services
        target = self.target
        taken = services.queue.undo(target[1] if target is not None else None)
        if taken is not None:
            services.tell(f"gate {taken.gate[:6]}: {taken.does!r} is taken back; it was not sent")
            services.tick()
        elif services.answered:
            last = services.answered[-1]
            services.open_letter(last.place, last.gate, amending=True)
        else:
            services.tell("nothing to take back: no answer was given at this desk")

    def action_help(self) -> None:
        lines = [
            *key_lines(self.KEYS, self.services.world.keys),
            "",
            "Decisions are sent after a few seconds; u takes them back.",
        ]
        lines.append("Other keys: git config --global gitgate.deskKeys 'approve=y'")
        self.app.push_screen(PanelScreen("Keys", "\n".join(lines)))

    def refresh_shown(self) -> None:
        """Read it again: it may have changed."""


ENDED = {
    0: "done",
    3: "the answer was no",
    8: "it still waits",
    9: "it is closed",
    130: "interrupted; nothing was recorded",
}


def tree_of(desk: Desk, gate: Gate) -> Path:
    """Beside the repository, where `git gate worktree` makes it; the one that is there is used again."""
    from ...gates.work import beside, open_place

    try:
        return Path(open_place(desk, gate, beside(desk, gate)).directory)
    except Failure:
        folder = Path(desk.repo.place.parent / f"{desk.repo.place.name}-{gate.id[:6]}")
        if not (folder / ".git").exists():
            raise
        return folder
