"""Surfaces: a window of our own for one question, by tkinter: a process that reads what it shows and says what was given.

Nothing has the focus but a field to write in, and no key or click counts in the first moments: a window that comes up while
somebody types elsewhere takes none of it for a decision.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

DEAF = 600  # milliseconds
LOOK_EVERY = 500
WIDE, HIGH = 76, 5


class QuestionWindow:
    """One question, with what may be answered and done instead."""

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
        """Whoever started us is gone: nobody would hear what is answered."""
        if os.getppid() != self.parent:
            self.root.destroy()
        else:
            self.root.after(LOOK_EVERY, self.look)


def show_window(said: Mapping[str, Any]) -> dict[str, object]:
    """Show it, and give back what was done with it."""
    window = QuestionWindow(said)
    window.root.mainloop()
    return window.result
