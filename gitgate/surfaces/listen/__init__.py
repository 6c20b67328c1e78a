"""Surfaces: somebody listens: questions as they come, one at a time, in a dialog or at the terminal.

Here are the dialogs, each a program: what it is started with, and what its end means; and a window of our own, by tkinter.
`listening` finds what waits and asks it. What is answered is recorded by `acts.answering`; a dialog decides nothing.
"""

from __future__ import annotations

import html
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

from ...store.git.programs import ProgramSaid, find_program
from ...text import one_line

# The dialogs of this desktop, each a program: what it is started with, and what its end means.
#
# What is shown was written by an agent. It goes as one argument, or on standard input, and never into a
# script; where a toolkit would read markup in it, it is escaped. Options are shown with their numbers
# kept beside them, and only the number comes back. Whatever a dialog says is no more than words: they are
# held against the question before they are recorded.


TITLE = "git gate"
# What may be done instead of answering, and how the buttons are called.
LATER, STOP, TERMINAL, BACK = "later", "stop", "terminal", "back"
ANSWER, OTHER, AGAIN, LEAVE = "answer", "other", "again", "leave"
BUTTONS = {LATER: "Later", TERMINAL: "In the terminal", STOP: "Stop the agent…", BACK: "Back"}


@dataclass(frozen=True)
class Shown:
    """Content of a dialog. `kind`: text, yesno, one or several of `rows`, or a notice, which has nothing but `ways`.

    The words are neutral already (module `text`). `text` has lines of bearable length; `rows` are one line each.
    """

    kind: str
    title: str
    text: str
    rows: tuple[str, ...] = ()
    ways: tuple[str, ...] = (LATER, TERMINAL, STOP)


@dataclass(frozen=True)
class Reply:
    """Reply to a dialog: an answer, another way, or `other`.

    `other` stands for the ways for which there was no room: they are asked next.
    """

    act: str
    value: object = None


class Dialog(Protocol):
    """Program that shows questions."""

    @property
    def name(self) -> str:
        """Name of the dialog, as `--dialog` takes it."""

    def lacks(self, env: Mapping[str, str]) -> str:
        """Return what is missing here, with what mends it; empty where the dialog can be used."""

    def command(self, shown: Shown) -> tuple[list[str], bytes]:
        """Return the command that is started, and what it reads on standard input."""

    def read(self, shown: Shown, ended: ProgramSaid) -> Reply | None:
        """Return the reply that the program's end means; None where the program failed."""


def has_display(env: Mapping[str, str]) -> bool:
    return bool(env.get("DISPLAY") or env.get("WAYLAND_DISPLAY")) or sys.platform == "darwin"


def lacks_program(name: str, install: str, env: Mapping[str, str]) -> str:
    if not find_program(name, env):
        return f"there is no {name} here{f'; {install}' if install else ''}"
    return "" if has_display(env) else "there is no desktop here (DISPLAY is not set)"


def numbers(text: str, most: int) -> list[int]:
    """Return the places that a dialog named, from 0, without those that do not exist."""
    found = [int(word) - 1 for word in re.split(r"[\s,]+", text) if word.isdecimal()]
    return [place for place in dict.fromkeys(found) if 0 <= place < most]


def reply_by_numbers(shown: Shown, text: str) -> Reply:
    """Return the chosen row, or several, by their numbers; where nothing was chosen, the question is asked again."""
    found = numbers(text, len(shown.rows))
    if not found:
        return Reply(AGAIN)
    return Reply(ANSWER, found if shown.kind == "several" else found[0])


def way_called(shown: Shown, label: str) -> Reply | None:
    return next((Reply(way) for way in shown.ways if BUTTONS[way] == label), None)


class Zenity:
    """Dialogs of zenity.

    Its entry reads backslashes and `_`, its list markup as well, its question with `--no-markup` nothing at all.
    """

    name = "zenity"

    def lacks(self, env: Mapping[str, str]) -> str:
        return lacks_program(self.name, "apt install zenity, dnf install zenity", env)

    def command(self, shown: Shown) -> tuple[list[str], bytes]:
        plain = shown.text.replace("\\", "\\\\")
        head = [self.name, f"--title={shown.title}", "--width=560"]
        ways = [f"--extra-button={BUTTONS[way]}" for way in shown.ways]
        if shown.kind in ("yesno", "notice"):
            yes_no = ["--extra-button=No", "--extra-button=Yes"] if shown.kind == "yesno" else []
            return [
                *head,
                "--question",
                "--no-markup",
                "--switch",
                f"--text={shown.text}",
                *ways,
                *yes_no,
            ], b""
        buttons = ["--ok-label=Answer", f"--cancel-label={BUTTONS[shown.ways[0]]}", *ways[1:]]
        if shown.kind == "text":
            return [*head, "--entry", f"--text={plain.replace('_', '__')}", *buttons], b""
        text = f"--text={html.escape(plain, quote=False)}"
        several = shown.kind == "several"
        columns = (
            ["--column=", "--column=number", "--column=option"]
            if several
            else ["--column=number", "--column=option"]
        )
        place = "2" if several else "1"
        form = [
            "--list",
            *(["--checklist"] if several else []),
            "--height=420",
            "--hide-header",
            f"--hide-column={place}",
        ]
        cells = [
            cell
            for number, row in enumerate(shown.rows, 1)
            for cell in (*(["FALSE"] if several else []), str(number), row)
        ]
        listed = "".join(f"{cell}\n" for cell in cells).encode()
        return [*head, *form, f"--print-column={place}", "--separator=,", text, *columns, *buttons], listed

    def read(self, shown: Shown, ended: ProgramSaid) -> Reply | None:
        said = ended.out.removesuffix("\n")
        if ended.code == 0:
            return Reply(ANSWER, said) if shown.kind == "text" else reply_by_numbers(shown, said)
        if ended.code != 1:
            return None
        if shown.kind == "yesno" and said in ("Yes", "No"):
            return Reply(ANSWER, said == "Yes")
        if not said and "cannot open display" in ended.err:
            return None
        return way_called(shown, said) or Reply(shown.ways[0])


# What is shown are the script's arguments: kind, title, text, and the rows, each behind its number.
OSASCRIPT = (
    "on run argv",
    "set {shownKind, shownTitle, shownText} to {item 1 of argv, item 2 of argv, item 3 of argv}",
    "set shownRows to {}",
    "if (count of argv) > 3 then set shownRows to items 4 thru -1 of argv",
    "try",
    'if shownKind is "text" then',
    'set given to display dialog shownText with title shownTitle default answer "" ¬',
    'buttons {"Other…", "Answer"} default button "Answer" cancel button "Other…"',
    'return "answer" & linefeed & text returned of given',
    'else if shownKind is "yesno" then',
    'set given to display dialog shownText with title shownTitle buttons {"Other…", "No", "Yes"} cancel button "Other…"',
    'return "answer" & linefeed & button returned of given',
    "end if",
    "set given to choose from list shownRows with title shownTitle with prompt shownText ¬",
    'OK button name "Answer" cancel button name "Other…" multiple selections allowed (shownKind is "several")',
    'if given is false then return "other"',
    "set AppleScript's text item delimiters to linefeed",
    'return "answer" & linefeed & (given as text)',
    "on error number -128",
    'return "other"',
    "end try",
    "end run",
)
NUMBERED = re.compile(r"(\d+)\. ")


class Osascript:
    """Dialogs of macOS itself."""

    name = "osascript"

    def lacks(self, env: Mapping[str, str]) -> str:
        return "" if find_program(self.name, env) else "there is no osascript here; it comes with macOS"

    def command(self, shown: Shown) -> tuple[list[str], bytes]:
        rows = tuple(BUTTONS[way] for way in shown.ways) if shown.kind == "notice" else shown.rows
        script = [part for line in OSASCRIPT for part in ("-e", line)]
        listed = [f"{number}. {row}" for number, row in enumerate(rows, 1)]
        return [self.name, *script, "--", shown.kind, shown.title, shown.text, *listed], b""

    def read(self, shown: Shown, ended: ProgramSaid) -> Reply | None:
        act, _, said = ended.out.removesuffix("\n").partition("\n")
        if ended.code != 0:
            return None
        if act != ANSWER:
            return Reply(shown.ways[0]) if shown.kind == "notice" else Reply(OTHER)
        if shown.kind == "text":
            return Reply(ANSWER, said)
        if shown.kind == "yesno":
            return Reply(ANSWER, said == "Yes")
        found = " ".join(place[1] for line in said.split("\n") if (place := NUMBERED.match(line)))
        if shown.kind == "notice":
            return next((Reply(shown.ways[place]) for place in numbers(found, len(shown.ways))), Reply(AGAIN))
        return reply_by_numbers(shown, found)


def as_json(shown: Shown) -> bytes:
    """Return the JSON that a dialog of ours reads: `buttons` are pairs of an act and a label."""
    said = {
        "kind": shown.kind,
        "title": shown.title,
        "text": shown.text,
        "rows": list(shown.rows),
        "buttons": [[way, BUTTONS[way]] for way in shown.ways],
    }
    return json.dumps(said).encode()


def from_json(shown: Shown, ended: ProgramSaid) -> Reply | None:
    """Return the reply that a dialog of ours printed as JSON; None where it is none.

    It has an act, and with an answer a value: words, a yes or no, or places from 0.
    """
    try:
        said = json.loads(ended.out)
        act, value = str(said["act"]), said.get("value")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if act in shown.ways:
        return Reply(act)
    if act != ANSWER or ended.code != 0:
        return None
    if shown.kind == "text":
        return Reply(ANSWER, str(value))
    if shown.kind == "yesno":
        return Reply(ANSWER, value) if isinstance(value, bool) else None
    places = value if isinstance(value, list) else []
    return reply_by_numbers(shown, " ".join(str(place + 1) for place in places if isinstance(place, int)))


# A window of its own. Words come as JSON on standard input; `UseMnemonic` would take an & for a key.
POWERSHELL = (
    "[Console]::InputEncoding = [Text.Encoding]::UTF8; [Console]::OutputEncoding = [Text.Encoding]::UTF8; "
    "$said = [Console]::In.ReadToEnd() | ConvertFrom-Json; "
    "Add-Type -AssemblyName System.Windows.Forms; Add-Type -AssemblyName System.Drawing; "
    "$form = New-Object System.Windows.Forms.Form; $form.Text = $said.title; $form.TopMost = $true; $form.AutoSize = $true; "
    "$form.StartPosition = 'CenterScreen'; $out = @{ act = $said.buttons[0][0]; value = $null }; "
    "$panel = New-Object System.Windows.Forms.FlowLayoutPanel; $panel.FlowDirection = 'TopDown'; $panel.AutoSize = $true; "
    "$panel.WrapContents = $false; $form.Controls.Add($panel); "
    "$label = New-Object System.Windows.Forms.Label; $label.AutoSize = $true; $label.UseMnemonic = $false; "
    "$label.Text = $said.text; $panel.Controls.Add($label); $field = $null; "
    "if ($said.kind -eq 'text') { $field = New-Object System.Windows.Forms.TextBox; $field.Multiline = $true; "
    "$field.Width = 520; $field.Height = 90; $panel.Controls.Add($field) } "
    "if ($said.kind -eq 'one') { $field = New-Object System.Windows.Forms.ListBox } "
    "if ($said.kind -eq 'several') { $field = New-Object System.Windows.Forms.CheckedListBox; $field.CheckOnClick = $true } "
    "if ($said.kind -eq 'one' -or $said.kind -eq 'several') { $field.Width = 520; $field.Height = 160; "
    "foreach ($row in $said.rows) { [void]$field.Items.Add($row) }; $panel.Controls.Add($field) } "
    "$bar = New-Object System.Windows.Forms.FlowLayoutPanel; $bar.AutoSize = $true; $panel.Controls.Add($bar); "
    "function Add-Way($words, $does) { $button = New-Object System.Windows.Forms.Button; $button.Text = $words; "
    "$button.AutoSize = $true; $button.Add_Click($does); $bar.Controls.Add($button) } "
    "foreach ($pair in $said.buttons) { $way = $pair[0]; "
    "Add-Way $pair[1] ({ $out.act = $way; $form.Close() }.GetNewClosure()) } "
    "if ($said.kind -eq 'yesno') { Add-Way 'No' { $out.act = 'answer'; $out.value = $false; $form.Close() }; "
    "Add-Way 'Yes' { $out.act = 'answer'; $out.value = $true; $form.Close() } } "
    "elseif ($said.kind -ne 'notice') { Add-Way 'Answer' { $out.act = 'answer'; "
    "if ($said.kind -eq 'text') { $out.value = $field.Text } "
    "elseif ($said.kind -eq 'one') { $out.value = @($field.SelectedIndex) } "
    "else { $out.value = @($field.CheckedIndices) }; $form.Close() } } "
    "[void]$form.ShowDialog(); ConvertTo-Json -Compress $out"
)


class PowerShell:
    """Dialogs of Windows, from WSL."""

    name = "powershell"

    def lacks(self, env: Mapping[str, str]) -> str:
        return (
            ""
            if find_program("powershell.exe", env)
            else "there is no powershell.exe here; it comes with Windows (WSL)"
        )

    def command(self, shown: Shown) -> tuple[list[str], bytes]:
        return ["powershell.exe", "-NoProfile", "-Sta", "-Command", POWERSHELL], as_json(shown)

    def read(self, shown: Shown, ended: ProgramSaid) -> Reply | None:
        return from_json(shown, ended)


def our_own(*args: str) -> list[str]:
    """Return a command of ours. With -P the current directory never takes part in finding our own code."""
    return [sys.executable, "-P", "-m", "gitgate", *args]


class Tkinter:
    """Window of tkinter, which comes with most Pythons (`window`)."""

    name = "tkinter"

    def lacks(self, env: Mapping[str, str]) -> str:
        if find_spec("_tkinter") is None:
            return "this Python has no tkinter; apt install python3-tk, brew install python-tk"
        return "" if has_display(env) else "there is no desktop here (DISPLAY is not set)"

    def command(self, shown: Shown) -> tuple[list[str], bytes]:
        return our_own("hook", "dialog-window"), as_json(shown)

    def read(self, shown: Shown, ended: ProgramSaid) -> Reply | None:
        return from_json(shown, ended)


# In the order in which `auto` tries them: what the desktop has of its own comes first.
DIALOGS: dict[str, Dialog] = {one.name: one for one in (Osascript(), PowerShell(), Zenity(), Tkinter())}


def usable_dialogs(env: Mapping[str, str]) -> list[Dialog]:
    return [one for one in DIALOGS.values() if not one.lacks(env)]


@dataclass(frozen=True)
class TerminalPrompt:
    """Prompt on the listener's own terminal: a process of its own, so that a question answered elsewhere can be closed.

    It knows every type of question, and prints the reply on its standard output.
    """

    env: Mapping[str, str]
    name: str = "terminal"

    def command(self, place: str, gate: str, tip: str, others: int) -> list[str]:
        return our_own("-C", place, "hook", "dialog-terminal", gate, tip, str(others))

    def read(self, ended: ProgramSaid) -> Reply:
        """Return the reply that the prompt printed; one that cannot be read puts the question aside.

        An answer's value has `values` and `note`.
        """
        try:
            said = json.loads(ended.out)
            reply = Reply(str(said["act"]), said.get("value"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return Reply(LATER)
        whole = not isinstance(reply.value, dict) or {"values", "note"} <= set(reply.value)
        return reply if ended.code == 0 and whole else Reply(LATER)


def shown_title(agent: str, repository: str) -> str:
    return one_line(f"{TITLE}: {agent} in {repository}", 100)


# A window of our own for one question, by tkinter: a process that reads what it shows and says what was
# given.
#
# Nothing has the focus but a field to write in, and no key or click counts in the first moments: a window
# that comes up while somebody types elsewhere takes none of it for a decision.


DEAF = 600  # milliseconds
LOOK_EVERY = 500
WIDE, HIGH = 76, 5


class QuestionWindow:
    """Window with one question, its possible answers, and what may be done instead."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        import tkinter as tk

        self.tk = tk
        self.kind = str(said["kind"])
        self.rows = [str(row) for row in said["rows"]]
        self.buttons = [(str(act), str(label)) for act, label in said["buttons"]]
        self.result: dict[str, object] = {"act": self.buttons[0][0]}
        self.hears = False
        self.parent = os.getppid()
        self.root = tk.Tk(className="git-gate")
        self.root.title(str(said["title"]))
        self.root.attributes("-topmost", True)
        self.root.protocol("WM_DELETE_WINDOW", lambda: self.end(self.buttons[0][0]))
        self.marks: list[Any] = []
        self.field: Any = None
        self.fill(str(said["text"]))
        self.root.eval("tk::PlaceWindow . center")
        self.root.bind("<Escape>", lambda _key: self.end(self.buttons[0][0]))
        self.root.after(DEAF, self.hear)
        self.root.after(LOOK_EVERY, self.look)

    def fill(self, text: str) -> None:
        tk = self.tk
        label = tk.Label(self.root, text=text, anchor="w", justify="left")
        label.pack(fill="x", padx=12, pady=8)
        if self.kind == "text":
            self.field = tk.Text(self.root, width=WIDE, height=HIGH, undo=True)
            self.field.bind("<Control-Return>", lambda _key: self.answer())
            self.field.pack(fill="both", expand=True, padx=12)
            self.field.focus_set()
        elif self.kind in ("one", "several"):
            self.field = tk.Listbox(
                self.root,
                width=WIDE,
                height=min(12, len(self.rows)),
                selectmode="multiple" if self.kind == "several" else "browse",
                exportselection=False,
            )
            self.field.insert("end", *(f"{number}  {row}" for number, row in enumerate(self.rows, 1)))
            self.field.pack(fill="both", expand=True, padx=12)
            for digit in range(1, min(9, len(self.rows)) + 1):
                self.root.bind(str(digit), self.choose(digit - 1))
            self.root.bind("<Return>", lambda _key: self.answer())
        bar = tk.Frame(self.root)
        bar.pack(fill="x", padx=12, pady=8)
        for act, words in self.buttons:
            self.button(bar, words, self.ending(act)).pack(side="left", padx=2)
        for words, does in self.answers():
            self.button(bar, words, does).pack(side="right", padx=2)

    def answers(self) -> list[tuple[str, Callable[[], None]]]:
        if self.kind == "yesno":
            return [("Yes", self.ending("answer", value=True)), ("No", self.ending("answer", value=False))]
        return [] if self.kind == "notice" else [("Answer", self.answer)]

    def ending(self, act: str, *, value: object = None) -> Callable[[], None]:
        return lambda: self.end(act, value)

    def button(self, bar: Any, words: str, does: Callable[[], None]) -> Any:
        return self.tk.Button(bar, text=words, command=does, takefocus=True)

    def choose(self, place: int) -> Callable[[Any], None]:
        def by_key(_key: Any) -> None:
            if not self.hears:
                return
            if self.kind == "several" and place in self.field.curselection():
                self.field.selection_clear(place)
                return
            if self.kind == "one":
                self.field.selection_clear(0, "end")
            self.field.selection_set(place)

        return by_key

    def answer(self) -> None:
        if self.kind == "text":
            self.end("answer", self.field.get("1.0", "end").strip("\n"))
        elif found := [int(place) for place in self.field.curselection()]:
            self.end("answer", found)

    def end(self, act: str, value: object = None) -> None:
        if self.hears:
            self.result = {"act": act, "value": value}
            self.root.destroy()

    def hear(self) -> None:
        self.hears = True

    def look(self) -> None:
        """Close the window once the process that started it is gone: nobody would hear the answer."""
        if os.getppid() != self.parent:
            self.root.destroy()
        else:
            self.root.after(LOOK_EVERY, self.look)


def show_window(said: Mapping[str, Any]) -> dict[str, object]:
    """Show the window, and return what the person did with it."""
    window = QuestionWindow(said)
    window.root.mainloop()
    return window.result
