"""Command line: a person at a terminal is shown the question and asked. Nothing is written before all is answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.answers import Given, read_mapping
from ..core.model import Gate, Question, Value
from ..core.questions import NO, YES, expected, match_option
from ..errors import BadAnswer
from .form_prompts import ask_form
from .keyboard import read_lines, read_word
from .screen import Screen
from .turns import heed

if TYPE_CHECKING:
    from ..service.desk import Desk

EDITOR = ":e"


def ask_in_terminal(screen: Screen, desk: Desk, gate: Gate, note: str) -> tuple[Given, str]:
    """Show the gate, ask each question until its answer fits. Ctrl-C and Ctrl-D leave with nothing written."""
    show(screen, desk, gate)
    return ask_questions(screen, desk, gate, note)


def ask_questions(
    screen: Screen, desk: Desk, gate: Gate, note: str, *, presented: bool = False
) -> tuple[Given, str]:
    """Each question until its answer fits; only ones that were `presented` already are not shown again."""
    several = len(gate.opened.questions) > 1
    notes = [note] if note else []
    values: dict[str, object] = {}
    for question in gate.opened.questions:
        if several or not presented:
            present(screen, question, several=several)
        values[question.key] = ASK[question.kind](screen, desk, gate, question, notes)
    return Given(values=values), "\n".join(notes)


def show(screen: Screen, desk: Desk, gate: Gate) -> None:
    from ..render.letter import opening
    from ..service.work import diff_of

    cells = screen.letter_width
    stat = diff_of(desk, gate, stat=True, cells=cells - 3) if gate.opened.work.changed else ""
    aside(screen, opening(gate, desk.clock(), cells, stat=stat, color=screen.colored))


def present(screen: Screen, question: Question, *, several: bool) -> None:
    from ..render.letter import asked

    aside(screen, "\n" + asked(question, screen.letter_width, several=several, numbered=True))


def aside(screen: Screen, text: str) -> None:
    """Rendered text, neutral already, beside the data: stdout is for what the verb gives."""
    import click

    screen.pulse.stop()
    click.echo(text, err=True, color=screen.colored)


def settle(screen: Screen, question: Question, prompt: str, meaning: Callable[[str], object]) -> object:
    """Ask until what was typed has a meaning that answers the question; say each time what was expected."""
    while True:
        word = read_word(prompt)
        if heed(screen, question, word):
            continue
        try:
            value = meaning(word)
            read_mapping([question], {question.key: value})
        except BadAnswer as wrong:
            words = wrong.message.removeprefix(question.key + ": ")
            named = "expected" in words or "option" in words
            screen.tell(f"  {words}" if named else f"  {words}; {expected(question)}")
        else:
            return value


def ask_approval(screen: Screen, _desk: Desk, _gate: Gate, question: Question, notes: list[str]) -> object:
    """`y` or `n`; words after it are the note."""

    def meaning(word: str) -> object:
        first, _, rest = word.strip().partition(" ")
        decision = first.rstrip(",.:;").lower()
        if rest.strip() and decision in YES | NO:
            notes.append(rest.strip())
            return decision
        return word

    return settle(screen, question, "yes or no, and a word with it if you like [y/n]: ", meaning)


def ask_choice(screen: Screen, _desk: Desk, _gate: Gate, question: Question, _notes: list[str]) -> object:
    """A number, a label or its beginning; where own words are allowed, they are the last number."""
    own = len(question.options) + 1 if question.other else 0

    def meaning(word: str) -> object:
        if own and word.strip().lstrip("#") == str(own) and match_option(question, word) is None:
            return f"other:{read_word('in your own words: ')}"
        return numbered(question, word)

    return settle(screen, question, f"your choice [1-{own or len(question.options)}, or its name]: ", meaning)


def ask_choices(screen: Screen, _desk: Desk, _gate: Gate, question: Question, _notes: list[str]) -> object:
    own = len(question.options) + 1 if question.other else 0

    def meaning(word: str) -> object:
        if own and word.strip().lstrip("#") == str(own) and match_option(question, word) is None:
            return f"other:{read_word('in your own words: ')}"
        if match_option(question, word.strip()) is not None:
            return [word]
        parts = [part.strip() for part in word.split(",") if part.strip()]
        if len(parts) == 1 and all(piece.lstrip("#").isdecimal() for piece in word.split()):
            parts = word.split()
        return [numbered(question, part) for part in parts]

    return settle(
        screen, question, f"your choices, such as 1,3 [1-{own or len(question.options)}, or names]: ", meaning
    )


def numbered(question: Question, word: str) -> str:
    """`2` as `#2`, unless an option is called so."""
    word = word.strip()
    return f"#{word}" if word.isdecimal() and match_option(question, word) is None else word


def ask_text(screen: Screen, desk: Desk, gate: Gate, question: Question, _notes: list[str]) -> object:
    """Enter sends a line; what is pasted comes whole; a backslash goes on; `:e` opens the editor."""
    while True:
        text = read_lines(rf"your answer (\ at the end of a line goes on, {EDITOR} opens your editor): ")
        if text.strip() == EDITOR:
            return written(screen, desk, gate, question)
        if heed(screen, question, text):
            continue
        if text.strip():
            return text
        screen.tell(f"  an empty answer is not an answer; {expected(question)}")


def written(screen: Screen, desk: Desk, gate: Gate, question: Question) -> Value:
    from .editor import write_answer

    alone = replace(gate, opened=replace(gate.opened, questions=(question,)))
    given = write_answer(screen, desk, alone, Given())
    return read_mapping([question], {question.key: given.text})[question.key]


def ask_fields(screen: Screen, _desk: Desk, _gate: Gate, question: Question, _notes: list[str]) -> object:
    return ask_form(screen, question)


ASK: dict[str, Callable[[Screen, Desk, Gate, Question, list[str]], object]] = {
    "text": ask_text,
    "approval": ask_approval,
    "choice": ask_choice,
    "choices": ask_choices,
    "form": ask_fields,
}
