"""Surfaces: what the desk is made of on a terminal: lines, lists, a line to type, the keys; and what the keys of a gate do on every screen that shows one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Region, Size
from textual.message import Message
from textual.screen import ModalScreen, Screen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, Static

from ...errors import Failure, GateError
from ...model import AWAITING
from ...model.gate import Gate
from ...text import clip, one_line, wrap
from .. import desk as inbox
from . import GateCommand, GateOnScreen
from .services import DeskServices

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.events import Click
    from textual.selection import Selection

    from ...context import Desk

# What the desk is made of on a terminal: lines that scroll, a list of lines of which one is chosen, a
# line to type, and the keys.


COLORS = re.compile(r"\x1b\[[0-9;]*m")
MOST_MEASURED = 20_000
MARK, NO_MARK = "> ", "  "


class LinesView(ScrollView, can_focus=True):
    """View of lines with a terminal's colours.

    Only visible lines are laid out: a diff may have a hundred thousand.
    """

    DEFAULT_CSS = """
    LinesView {
        background: $background; color: $foreground;
        scrollbar-size-horizontal: 0; scrollbar-size-vertical: 1;
    }
    """
    ALLOW_SELECT = True

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.shown: Sequence[str] = ()

    def show(self, lines: Sequence[str]) -> None:
        self.shown = lines
        widest = max((len(COLORS.sub("", line).expandtabs(8)) for line in lines[:MOST_MEASURED]), default=0)
        self.virtual_size = Size(widest, len(lines))
        self.refresh()

    def text_at(self, y: int) -> Text:
        text = Text.from_ansi(self.shown[y], no_wrap=True) if y < len(self.shown) else Text("")
        text.expand_tabs(8)
        return text

    def style_at(self, y: int) -> Style:
        """Return the style that is laid over a line."""
        del y
        return Style.null()

    def render_line(self, y: int) -> Strip:
        scroll_x, scroll_y = self.scroll_offset
        y += scroll_y
        cells, style = self.size.width, self.rich_style
        text = self.text_at(y)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(y)) is not None:
            start, end = span
            text.stylize(
                self.screen.get_component_rich_style("screen--selection"),
                start,
                len(text) if end == -1 else end,
            )
        strip = Strip(text.render(self.app.console)).adjust_cell_length(max(cells + scroll_x, text.cell_len))
        strip = strip.crop_extend(scroll_x, scroll_x + cells, None).apply_style(style)
        over = self.style_at(y)
        if over:
            strip = Strip(strip).apply_style(over)
        return strip.apply_offsets(scroll_x, y)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        text = "\n".join(self.text_at(y).plain for y in range(len(self.shown)))
        return selection.extract(text), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        del selection
        self.refresh()


class PickList(LinesView, inherit_bindings=False):
    """List with one chosen line, marked and reversed, so that it is seen without colour as well."""

    class Picked(Message):
        """Message that another line was chosen."""

        def __init__(self, at: int) -> None:
            super().__init__()
            self.at = at

    class Entered(Message):
        """Message that the chosen line was clicked once more."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.at = 0

    def show_list(self, lines: Sequence[str], at: int) -> None:
        self.at = at
        self.show(lines)
        self.bring_into_sight()

    def bring_into_sight(self) -> None:
        self.scroll_to_region(Region(0, self.at, 1, 1), animate=False, force=True)

    def text_at(self, y: int) -> Text:
        text = super().text_at(y)
        return Text(MARK if y == self.at and y < len(self.shown) else NO_MARK, no_wrap=True) + text

    def style_at(self, y: int) -> Style:
        return Style(reverse=True) if y == self.at and y < len(self.shown) else Style.null()

    def pick(self, at: int) -> None:
        at = max(0, min(at, len(self.shown) - 1))
        if self.shown and at != self.at:
            self.at = at
            self.refresh()
            self.bring_into_sight()
            self.post_message(self.Picked(at))

    def on_click(self, event: Click) -> None:
        at = event.y + int(self.scroll_offset.y)
        if at == self.at:
            self.post_message(self.Entered())
        else:
            self.pick(at)


class LinePrompt(ModalScreen[str | None]):
    """Prompt for one line: a reason, a duration, an answer. Escape leaves with nothing said."""

    DEFAULT_CSS = """
    LinePrompt { align: center bottom; }
    LinePrompt > Vertical { height: auto; border: round $foreground; padding: 0 1; background: $background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave")]

    def __init__(self, words: str, value: str = "", placeholder: str = "") -> None:
        super().__init__()
        self.words, self.value, self.placeholder = words, value, placeholder

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self.words, markup=False)
            yield Input(self.value, placeholder=self.placeholder, select_on_focus=False, compact=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)

    def action_leave(self) -> None:
        self.dismiss(None)


class PanelScreen(ModalScreen[bool]):
    """Panel of words over the list until Enter (yes) or Escape (no)."""

    DEFAULT_CSS = """
    PanelScreen { align: center middle; }
    PanelScreen > LinesView { border: round $foreground; padding: 0 1; background: $background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "agree", "yes"),
        Binding("escape,q", "leave", "no"),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self.heading, self.text = title, text

    def compose(self) -> ComposeResult:
        yield LinesView()

    def on_mount(self) -> None:
        self.lay_out()

    def on_resize(self) -> None:
        self.lay_out()

    def lay_out(self) -> None:
        view = self.query_one(LinesView)
        cells = max(20, min(self.app.size.width - 4, 76))
        lines = [
            line
            for whole in self.text.split("\n")
            for line in (wrap(whole, cells - 4).split("\n") if len(whole) > cells - 4 else [whole])
        ]
        view.border_title = self.heading
        view.styles.width = cells
        view.styles.height = min(len(lines) + 2, self.app.size.height)
        view.show(lines)
        view.focus()

    def action_agree(self) -> None:
        self.dismiss(True)

    def action_leave(self) -> None:
        self.dismiss(False)


class DeskKey(NamedTuple):
    """Key of the desk: its name, the key, its description, and its action."""

    name: str
    key: str
    words: str
    action: str
    brief: str = ""


ON_GATE = (
    DeskKey("approve", "a", "approve", "decide(True)", "yes"),
    DeskKey("reject", "r", "reject: the agent goes on, knowing no", "decide(False)", "no"),
    *(DeskKey(f"option{n}", str(n), f"choose option {n}", f"option({n})") for n in range(1, 10)),
    DeskKey("message", "m", "answer in one line", "message", "answer"),
    DeskKey("edit", "e", "answer in your editor", "edit", "editor"),
    DeskKey("join", "c", "continue in the agent's own session, then decide", "join", "session"),
    DeskKey("open", "o", "open your editor on the work", "open_work"),
    DeskKey("worktree", "w", "make a working tree of the work", "worktree"),
    DeskKey("later", "l", "put it aside for a while", "later"),
    DeskKey("stop", "s", "stop: the agent does not go on", "stop"),
    DeskKey("undo", "u", "take back what you decided, or correct it", "undo"),
)
ON_LIST = (
    DeskKey("enter", "enter", "open it", "enter", "open"),
    *ON_GATE,
    DeskKey("filter", "slash", "show only what has these words", "filter", "find"),
    DeskKey("switch", "tab", "gates, runs, agents", "switch", "runs"),
    DeskKey("sync", "g", "fetch and push now", "sync"),
    DeskKey("theme", "T", "light or dark", "theme"),
    DeskKey("down", "j,down", "the next line", "move(1)"),
    DeskKey("up", "k,up", "the line above", "move(-1)"),
    DeskKey("pagedown", "pagedown,ctrl+f", "a page down", "page(1)"),
    DeskKey("pageup", "pageup,ctrl+b", "a page up", "page(-1)"),
    DeskKey("top", "home", "the first line", "move(-1000000)"),
    DeskKey("bottom", "end,G", "the last line", "move(1000000)"),
    DeskKey("help", "question_mark", "these keys", "help", "keys"),
    DeskKey("leave", "q", "leave", "leave", "leave"),
    DeskKey("escape", "escape", "show everything again", "clear"),
)
ON_LETTER = (
    *ON_GATE,
    DeskKey("next", "tab", "the next gate", "next(1)", "next"),
    DeskKey("previous", "shift+tab", "the gate before", "next(-1)"),
    DeskKey("help", "question_mark", "these keys", "help", "keys"),
    DeskKey("leave", "q", "back to the list", "back", "back"),
    DeskKey("escape", "escape", "back to the list", "back"),
)
NAMES = {
    "slash": "/",
    "question_mark": "?",
    "enter": "Enter",
    "escape": "Esc",
    "tab": "Tab",
    "shift+tab": "S-Tab",
    "pagedown": "PgDn",
    "pageup": "PgUp",
    "home": "Home",
    "end": "End",
    "down": "↓",
    "up": "↑",
    "ctrl+f": "^F",
    "ctrl+b": "^B",
}


def bindings_of(keys: Sequence[DeskKey]) -> list[BindingType]:
    return [Binding(one.key, one.action, one.words, id=one.name, show=False) for one in keys]


def shown_key(key: str) -> str:
    return NAMES.get(key, key)


def hint_line(keys: Sequence[DeskKey], cells: int) -> str:
    """Return the most used keys, as many as fit; `?` shows them all."""
    shown = [f"{shown_key(one.key.split(',')[0])} {one.brief}" for one in keys if one.brief]
    while len("  ".join(shown)) > cells and len(shown) > 3:
        shown.pop(-4)  # never the last: how to find the others, and how to leave
    return "  ".join(shown)


def key_lines(keys: Sequence[DeskKey]) -> Iterator[str]:
    """Yield all keys, a line each; the digits share one."""
    for one in keys:
        if one.name.startswith("option"):
            if one.name == "option1":
                yield f"{'1-9':<12}choose an option by its number"
            continue
        names = " ".join(shown_key(key) for key in one.key.split(","))
        yield f"{names:<11} {one.words}"


# What the keys of a gate do, on every screen of the desk that shows one.


WAYS_BACK = (
    "Leave it as you leave that program (in Claude Code: /exit, or Ctrl-D), and you are back at the desk."
)


class GateScreen(Screen[None]):
    """Screen with a gate, on which the keys of a gate act."""

    KEYS: ClassVar[tuple[DeskKey, ...]] = ON_GATE
    amending = False

    @property
    def services(self) -> DeskServices:
        return cast("DeskServices", self.app)

    @property
    def shown(self) -> GateOnScreen | None:
        """Gate as the person sees it."""
        raise NotImplementedError

    @property
    def target(self) -> tuple[Path, str] | None:
        """Gate that is meant, also where it is not shown yet."""
        return (self.shown.place, self.shown.gate.id) if self.shown is not None else None

    def bottom(self) -> ComposeResult:
        yield Static("", id="said", markup=False)
        yield Static("", id="command", markup=False)
        yield Static("", id="hints", markup=False)

    def draw_bottom(self, command: str) -> None:
        """Draw the last message, the command for what is shown, and the keys."""
        cells = self.app.size.width
        self.query_one("#said", Static).update(clip(self.services.said, cells))
        self.query_one("#command", Static).update(clip(one_line(f"$ {command}" if command else ""), cells))
        self.query_one("#hints", Static).update(clip(hint_line(self.KEYS, cells), cells))

    def with_gate(self, act: Callable[[Path, Gate], None]) -> None:
        """Do something with the shown gate, and show what is wrong with it."""
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
        """Do nothing more after a decision on a list."""

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
        self.decide_with(lambda place, gate: inbox.approving(place, gate, yes=yes, amend=self.amending))

    def action_option(self, number: int) -> None:
        shown = self.shown
        if shown is not None and [one.type for one in shown.gate.opened.questions] == ["choices"]:
            self.ask_answer(f"#{number}")
            return
        self.decide_with(lambda place, gate: inbox.choosing(place, gate, number, amend=self.amending))

    def action_message(self) -> None:
        self.ask_answer("")

    def ask_answer(self, value: str) -> None:
        """Ask for an answer in a line, bound to what was shown when the line was asked for."""

        def act(place: Path, gate: Gate) -> None:
            self.refuse_closed(gate)
            question = inbox.the_only(gate)
            amend = self.amending

            def then(line: str) -> None:
                self.services.decided(inbox.saying(place, gate, line, amend=amend))
                self.after_decision()

            self.ask_line(f"your answer to: {one_line(question.prompt, 200)}", value, then)

        self.with_gate(act)

    def action_edit(self) -> None:
        def act(place: Path, gate: Gate) -> None:
            self.refuse_closed(gate)
            more = ("--amend",) if self.amending else ()
            words = ("respond", gate.id[:6], "--edit", *more, inbox.SEEN, gate.tip, *inbox.HERE)
            self.in_terminal(GateCommand(place, gate.id, words, "answer"))

        self.with_gate(act)

    def action_join(self) -> None:
        """Join the agent's session.

        Before the terminal is given away, the person knows to whom, why, and how to come back.
        """

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
        """Give the terminal to a command until it ends; a pending decision on this gate is dropped."""
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
        """Find the working tree of the gate's work, in a thread; make it where there is none yet."""
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
                self.services.send(inbox.deferring(place, gate, line))

            self.ask_line("put it aside for how long? (2h, 1d; now: have it back)", "2h", then)

        self.with_gate(act)

    def action_stop(self) -> None:
        target = self.target
        if target is None:
            return

        def then(line: str) -> None:
            self.services.decided(inbox.stopping(target[0], target[1], line))

        self.ask_line(f"why is {target[1][:6]} stopped? The agent does not go on.", "", then)

    def action_undo(self) -> None:
        """Take back a decision that is not sent yet, or correct an answer that was sent, while nobody acts on it."""
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
            *key_lines(self.KEYS),
            "",
            "Decisions are sent after a few seconds; u takes them back.",
        ]
        self.app.push_screen(PanelScreen("Keys", "\n".join(lines)))

    def refresh_shown(self) -> None:
        """Read the shown gate again: it may have changed."""


ENDED = {
    0: "done",
    3: "the answer was no",
    8: "it still waits",
    9: "it is closed",
    130: "interrupted; nothing was recorded",
}


def tree_of(desk: Desk, gate: Gate) -> Path:
    """Return the working tree of a gate, next to the repository, where `git gate worktree` makes it.

    A tree that is there already is used again.
    """
    from ...gates.work import beside, open_place

    try:
        return Path(open_place(desk, gate, beside(desk, gate)).directory)
    except Failure:
        folder = Path(desk.repo.place.parent / f"{desk.repo.place.name}-{gate.id[:6]}")
        if not (folder / ".git").exists():
            raise
        return folder
