"""Surfaces: the desk's screens: the lists, a gate's letter, a run's page; and the application that shows them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input, Static

from ...errors import GateError
from ...model import ANSWERED, AWAITING
from ...model.gate import Gate
from ...text import clip
from . import VIEWS, GateCommand, GateOnScreen, InboxRow, read_gate, read_run
from .services import DeskServices
from .widgets import (
    ON_LETTER,
    ON_LIST,
    GateScreen,
    LinesView,
    PickList,
    bindings_of,
)

if TYPE_CHECKING:
    from textual.app import ComposeResult

MARGIN = 2  # what marks the chosen line
LEAST_FOR_BRIEF = 18


class LetterScreen(GateScreen):
    """Screen of one gate, whole: question, context, the work with its diff, how to answer, history."""

    KEYS = ON_LETTER
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(ON_LETTER)

    def __init__(self, place: Path, gate: str, *, amending: bool = False) -> None:
        super().__init__()
        self.place, self.gate = place, gate
        self.amending = amending
        self.letter: GateOnScreen | None = None
        self._reading = 0
        self._known = ""

    @property
    def shown(self) -> GateOnScreen | None:
        return self.letter

    @property
    def target(self) -> tuple[Path, str]:
        return self.place, self.gate

    def compose(self) -> ComposeResult:
        yield Static("", id="heading", markup=False)
        yield LinesView(id="letter")
        yield from self.bottom()

    def on_mount(self) -> None:
        self.query_one("#letter", LinesView).focus()
        self.refresh_shown()
        self.draw()

    def on_resize(self) -> None:
        self.refresh_shown()

    def on_inbox_changed(self) -> None:
        """Show the gate anew where its record has changed: the next key is about the new record."""
        row = self.services.model.find(self.gate)
        known = row.gate.tip if row is not None and row.gate is not None else "over"
        if self.letter is not None and known not in (self._known, self.letter.gate.tip):
            self._known = known
            self.refresh_shown()
        self.draw()

    @property
    def cells(self) -> int:
        return max(20, min(self.app.size.width, 100) - 1)

    def refresh_shown(self) -> None:
        if not self._reading:
            self._reading = cells = self.cells
            self.run_worker(lambda: self.read(cells), thread=True, exit_on_error=False)

    def read(self, cells: int) -> None:
        try:
            desk = self.services.open_desk(self.place)
            try:
                found = read_gate(desk, self.gate, cells, color=self.services.world.color, whole=True)
            finally:
                desk.close()
        except (GateError, OSError) as unreadable:
            self._reading = 0
            self.app.call_from_thread(self.services.tell, f"gate {self.gate[:6]}: {unreadable}")
            return
        self.app.call_from_thread(self.take, found)

    def take(self, found: GateOnScreen) -> None:
        read, self._reading = self._reading, 0
        before, self.letter = self.letter, found
        if before is not None and before.gate.tip != found.gate.tip:
            names = ", ".join(entry.name for entry in found.gate.history[len(before.gate.history) :])
            self.services.tell(
                f"gate {self.gate[:6]} was {names or 'changed'} meanwhile; this is how it is now"
            )
        if self.amending and found.gate.state != ANSWERED:
            self.amending = False
            if found.gate.state != AWAITING:
                self.services.tell(
                    f"gate {self.gate[:6]} is {found.gate.state}: the answer was acted on already"
                )
        self.query_one("#letter", LinesView).show(found.lines)
        self.draw()
        if read != self.cells:  # the terminal has another width by now
            self.refresh_shown()

    def draw(self) -> None:
        note = self.services.model.notes.get(self.gate, "")
        head = "correcting your answer; a, r, a digit, m or e gives another" if self.amending else note
        self.query_one("#heading", Static).update(clip(f"gate {self.gate[:6]}  {head}", self.app.size.width))
        show = GateCommand(self.place, self.gate, ("show", self.gate[:6], "--diff"), "")
        self.draw_bottom(self.services.command or self.services.shown_command(show))

    def after_decision(self) -> None:
        self.dismiss()

    def action_back(self) -> None:
        self.services.command = ""
        self.dismiss()

    def action_next(self, by: int) -> None:
        """Show the next gate of the list, without going back there."""
        model = self.services.model
        model.view = "gates"
        rows = model.rows
        at = next((place for place, row in enumerate(rows) if row.key == self.gate), None)
        if at is None or not 0 <= at + by < len(rows):
            self.services.tell("there is no further gate")
            return
        model.choose(at + by)
        self.app.switch_screen(LetterScreen(rows[at + by].place, rows[at + by].key))


class RunScreen(GateScreen):
    """Screen of a run with its steps; the keys of a gate act on the gate at which the run waits."""

    KEYS = ON_LETTER
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings_of(ON_LETTER),
        Binding("enter", "enter", "open its gate", show=False),
    ]

    def __init__(self, place: Path, run: str) -> None:
        super().__init__()
        self.place, self.run_id = place, run
        self.shape: Any = None
        self._seen: Any = None

    @property
    def shown(self) -> GateOnScreen | None:
        """No gate: nothing is decided on this screen, since the gate's letter has the question."""
        return None

    @property
    def target(self) -> tuple[Path, str]:
        return self.place, self.run_id

    def compose(self) -> ComposeResult:
        yield Static("", id="heading", markup=False)
        yield LinesView(id="run")
        yield from self.bottom()

    def on_mount(self) -> None:
        self.query_one("#run", LinesView).focus()
        self.refresh_shown()
        self.draw()

    def on_resize(self) -> None:
        self.refresh_shown()

    def on_inbox_changed(self) -> None:
        now = next((row.run for row in self.services.model.run_rows() if row.key == self.run_id), None)
        if now != self._seen:
            self._seen = now
            self.refresh_shown()
        self.draw()

    def refresh_shown(self) -> None:
        cells = max(20, self.app.size.width - 1)
        self.run_worker(lambda: self.read(cells), thread=True, exclusive=True, exit_on_error=False)

    def read(self, cells: int) -> None:
        try:
            desk = self.services.open_desk(self.place)
            try:
                shape, lines = read_run(desk, self.run_id, cells, color=self.services.world.color)
            finally:
                desk.close()
        except (GateError, OSError) as unreadable:
            self.app.call_from_thread(self.services.tell, f"run {self.run_id[:6]}: {unreadable}")
            return
        self.app.call_from_thread(self.take, shape, lines)

    def take(self, shape: Any, lines: tuple[str, ...]) -> None:
        self.shape = shape
        self.query_one("#run", LinesView).show(lines)
        self.draw()

    def draw(self) -> None:
        waits = f"  Enter: the gate that it waits at ({self.waiting_at[:6]})" if self.waiting_at else ""
        self.query_one("#heading", Static).update(clip(f"run {self.run_id[:6]}{waits}", self.app.size.width))
        show = GateCommand(self.place, self.run_id, ("show", self.run_id[:6]), "")
        self.draw_bottom(self.services.command or self.services.shown_command(show))

    @property
    def waiting_at(self) -> str:
        return str(self.shape["gate"] or "") if self.shape is not None else ""

    def with_gate(self, act: Callable[[Path, Gate], None]) -> None:
        del act
        if self.waiting_at:
            self.services.tell("this is the gate that the run waits at: the same key acts here")
        self.action_enter()

    def action_enter(self) -> None:
        if self.waiting_at:
            self.services.open_letter(self.place, self.waiting_at)
        else:
            self.services.tell("this run waits at no gate")

    def action_open_work(self) -> None:
        self.services.edit_folder(self.place)

    def action_worktree(self) -> None:
        self.services.tell(f"it runs in {self.place}")

    def action_next(self, by: int) -> None:
        del by
        self.services.tell("back to the list with q")

    def action_back(self) -> None:
        self.services.command = ""
        self.dismiss()


class InboxScreen(GateScreen):
    """Screen of the lists. Where there is room, the question of the chosen gate is shown below the list."""

    KEYS = ON_LIST
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(ON_LIST)

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[InboxRow] = []
        self.brief: GateOnScreen | None = None
        self._wanted: tuple[str, str, int] = ("", "", 0)

    def compose(self) -> ComposeResult:
        yield Static("", id="heading", markup=False)
        yield Static("", id="columns", markup=False)
        yield PickList(id="list")
        yield LinesView(id="brief")
        words = "words to look for; Enter keeps them, Esc shows everything"
        yield Input(placeholder=words, id="filter", compact=True)
        yield from self.bottom()

    def on_mount(self) -> None:
        self.query_one("#filter", Input).display = False
        self.query_one("#list", PickList).focus()
        self.draw()

    def on_resize(self) -> None:
        self.draw()

    def on_screen_resume(self) -> None:
        self.draw()

    def on_inbox_changed(self) -> None:
        self.draw()

    @property
    def row(self) -> InboxRow | None:
        at = self.query_one("#list", PickList).at
        return self.rows[at] if at < len(self.rows) else None

    @property
    def shown(self) -> GateOnScreen | None:
        """Chosen gate, where it is the one that is shown below the list."""
        row, brief = self.row, self.brief
        if row is None or row.gate is None or brief is None or brief.gate.id != row.key:
            return None
        return brief

    @property
    def target(self) -> tuple[Path, str] | None:
        row = self.row
        if row is None or row.agent is not None:
            return None
        return row.place, row.key

    @property
    def whole(self) -> bool:
        """Return whether all that is asked is visible, with nothing cut off."""
        view = self.query_one("#brief", LinesView)
        return view.display and self.brief is not None and len(self.brief.lines) <= view.size.height

    def decide_with(self, make: Callable[[Path, Gate], GateCommand]) -> None:
        """Decide on the chosen gate; where its question is cut off, open the letter instead, so that all of it is read."""
        shown = self.shown
        if shown is not None and shown.gate.state == AWAITING and not self.whole:
            self.services.tell("read all of it first: the same key answers here")
            self.action_enter()
            return
        super().decide_with(make)

    def draw(self) -> None:
        model, cells = self.services.model, self.app.size.width
        self.rows = model.rows
        at = model.place_of(self.rows)
        heading, *lines = model.lines(self.rows, max(20, cells - MARGIN - 1), color=self.services.world.color)
        views = " ".join(f"[{view}]" if view == model.view else view for view in VIEWS)
        wanted = f"  /{model.wanted}" if model.wanted else ""
        self.query_one("#heading", Static).update(clip(f"{views}  {model.headline}{wanted}", cells))
        self.query_one("#columns", Static).update(
            f"  {without_colors(heading)}" if lines else f"  {self.nothing}"
        )
        self.query_one("#list", PickList).show_list(lines, at)
        self.draw_brief()
        self.draw_bottom(self.services.command or self.command)

    @property
    def nothing(self) -> str:
        model = self.services.model
        if model.wanted:
            return "nothing has these words; Esc shows everything"
        if len(model.states) < len(model.order):
            return "reading …"
        return {"gates": "nothing waits for you", "runs": "no run here", "agents": "no agent has asked here"}[
            model.view
        ]

    @property
    def command(self) -> str:
        row = self.row
        if row is None or row.agent is not None:
            return "git gate status" if row is not None else "git gate list --everywhere"
        return self.services.shown_command(GateCommand(row.place, row.key, ("show", row.key[:6]), ""))

    def draw_brief(self) -> None:
        view, row = self.query_one("#brief", LinesView), self.row
        gate = row.gate if row is not None else None
        view.display = gate is not None and self.app.size.height >= LEAST_FOR_BRIEF
        if row is None or gate is None:
            self._wanted, self.brief = ("", "", 0), None
            return
        cells = max(20, min(self.app.size.width, 100) - 2)
        wanted = (gate.id, gate.tip, cells)
        if wanted == self._wanted:
            return
        if self._wanted[0] != gate.id:
            view.show(())
            view.scroll_to(0, 0, animate=False)
        self._wanted, self.brief = wanted, None
        self.run_worker(
            lambda: self.read(row.place, wanted),
            thread=True,
            exclusive=True,
            group="brief",
            exit_on_error=False,
        )

    def read(self, place: Path, wanted: tuple[str, str, int]) -> None:
        try:
            desk = self.services.open_desk(place)
            try:
                found = read_gate(desk, wanted[0], wanted[2], color=self.services.world.color, whole=False)
            finally:
                desk.close()
        except (GateError, OSError) as unreadable:
            self.app.call_from_thread(self.services.tell, f"gate {wanted[0][:6]}: {unreadable}")
            return
        self.app.call_from_thread(self.take, found, wanted)

    def take(self, found: GateOnScreen, wanted: tuple[str, str, int]) -> None:
        if wanted == self._wanted:
            self.brief = found
            self.query_one("#brief", LinesView).show(found.lines)

    def refresh_shown(self) -> None:
        self._wanted = ("", "", 0)
        self.draw()

    # Moving about

    def on_pick_list_picked(self, event: PickList.Picked) -> None:
        self.services.model.choose(event.at)
        self.services.command = ""
        self.draw_brief()
        self.draw_bottom(self.command)

    def on_pick_list_entered(self) -> None:
        self.action_enter()

    def action_move(self, by: int) -> None:
        view = self.query_one("#list", PickList)
        view.pick(view.at + by)

    def action_page(self, by: int) -> None:
        view = self.query_one("#list", PickList)
        view.pick(view.at + by * max(1, view.size.height - 1))

    def action_switch(self) -> None:
        model = self.services.model
        model.view = VIEWS[(VIEWS.index(model.view) + 1) % len(VIEWS)]
        self.services.command = ""
        self.draw()

    def action_enter(self) -> None:
        row = self.row
        if row is None:
            return
        if row.gate is not None:
            self.services.open_letter(row.place, row.key)
        elif row.run is not None:
            self.app.push_screen(RunScreen(row.place, row.key))
        elif row.agent is not None:
            self.services.model.view, self.services.model.wanted = "gates", row.agent.agent
            self.draw()

    def action_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.display = True
        field.value = self.services.model.wanted
        field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "filter" and event.input.display:
            self.services.model.wanted = event.value
            self.draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "filter":
            self.end_filter()

    def end_filter(self) -> None:
        self.query_one("#filter", Input).display = False
        self.query_one("#list", PickList).focus()
        self.draw()

    def action_clear(self) -> None:
        self.services.model.wanted = ""
        self.services.command = self.services.said = ""
        self.end_filter()

    def action_sync(self) -> None:
        place = self.row.place if self.row is not None else next(iter(self.services.world.places), None)
        if place is not None:
            self.services.send(GateCommand(place, "", ("sync",), "sync"))

    def action_theme(self) -> None:
        self.app.theme = "textual-light" if self.app.current_theme.dark else "textual-dark"

    def action_leave(self) -> None:
        self.app.exit()


def without_colors(line: str) -> str:
    """Return text without colours."""
    from rich.text import Text

    return Text.from_ansi(line).plain


class DeskApp(DeskServices):
    """Application `git gate desk`."""

    TITLE = "git gate desk"
    ENABLE_COMMAND_PALETTE = False
    INLINE_PADDING = 0
    CSS = """
    GateScreen { layout: vertical; background: $background; }
    GateScreen > Static { height: 1; }
    #heading { text-style: bold; }
    #columns { text-style: dim; }
    #list, #letter, #run { height: 1fr; }
    #brief { height: 45%; border-top: solid $foreground 30%; }
    #command { text-style: bold; }
    #hints { text-style: dim; }
    """

    def on_mount(self) -> None:
        self.push_screen(InboxScreen())
        self.begin()

    def action_help_quit(self) -> None:
        """Say how to leave: Ctrl-C copies elsewhere, so that it ends nothing here.

        Textual itself would name a key that the desk does not teach.
        """
        self.tell("q leaves the desk")

    def open_letter(self, place: Path, gate: str, *, amending: bool = False) -> None:
        self.command = ""
        self.push_screen(LetterScreen(place, gate, amending=amending))
