"""Surfaces: what the desk is made of on a terminal: lines that scroll, a list of lines of which one is chosen, a line to type, and
the keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Region, Size
from textual.message import Message
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, Static

from ...errors import Usage
from ...text.display import wrap

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.events import Click
    from textual.selection import Selection

COLORS = re.compile(r"\x1b\[[0-9;]*m")
MOST_MEASURED = 20_000
MARK, NO_MARK = "> ", "  "


class LinesView(ScrollView, can_focus=True):
    """Lines with the colours of a terminal. Only those that are to be seen are laid out: a diff may have a hundred thousand."""

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
        """What is laid over a line."""
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
    """Lines of which one is chosen: it is marked and reversed, so that it is seen without colour as well."""

    class Picked(Message):
        """Another line was chosen."""

        def __init__(self, at: int) -> None:
            super().__init__()
            self.at = at

    class Entered(Message):
        """The chosen line was clicked once more."""

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
    """One line, typed: a reason, a duration, an answer. Escape leaves with nothing said."""

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
    """Words that stand over the list until Enter (yes) or Escape (no)."""

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
    """What a key does: the word that names it in `gitgate.deskKeys`, the key, what is said of it, and the action."""

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


def read_keys(text: str) -> dict[str, str]:
    """`approve=y reject=x` as the person wrote it; a name that there is not, or a key given twice, is refused."""
    known = {one.name: one.key for one in (*ON_LIST, *ON_LETTER)}
    hint = "git config --global gitgate.deskKeys 'approve=y reject=n'"
    found: dict[str, str] = {}
    for part in text.split():
        name, equals, key = part.partition("=")
        if not equals or not key:
            raise Usage(f"gitgate.deskKeys: {part!r} is no NAME=KEY", hint=hint)
        if name not in known:
            names = ", ".join(one for one in known if not one.startswith("option"))
            raise Usage(f"gitgate.deskKeys: there is no {name!r}; there are {names}", hint=hint)
        found[name] = CHARACTERS.get(key, key)
    for keys in (ON_LIST, ON_LETTER):
        taken: dict[str, str] = {}
        for one in keys:
            for key in found.get(one.name, one.key).split(","):
                if taken.setdefault(key, one.name) != one.name:
                    raise Usage(
                        f"gitgate.deskKeys: {shown_key(key)} is {taken[key]} and {one.name} at once",
                        hint=hint,
                    )
    return found


CHARACTERS = {
    "/": "slash",
    "?": "question_mark",
    ".": "full_stop",
    "+": "plus",
    "-": "minus",
    "!": "exclamation_mark",
    "*": "asterisk",
    " ": "space",
}


def shown_key(key: str) -> str:
    back = {name: character for character, name in CHARACTERS.items()}
    return NAMES.get(key) or back.get(key, key)


def hint_line(keys: Sequence[DeskKey], changed: Mapping[str, str], cells: int) -> str:
    """The most used keys, as many as fit; `?` shows them all."""
    shown = [
        f"{shown_key(changed.get(one.name, one.key).split(',')[0])} {one.brief}" for one in keys if one.brief
    ]
    while len("  ".join(shown)) > cells and len(shown) > 3:
        shown.pop(-4)  # never the last: how to find the others, and how to leave
    return "  ".join(shown)


def key_lines(keys: Sequence[DeskKey], changed: Mapping[str, str]) -> Iterator[str]:
    """All of them, a line each; the digits in one."""
    for one in keys:
        if one.name.startswith("option"):
            if one.name == "option1":
                yield f"{'1-9':<12}choose an option by its number"
            continue
        names = " ".join(shown_key(key) for key in changed.get(one.name, one.key).split(","))
        yield f"{names:<11} {one.words}"
