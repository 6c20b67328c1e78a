"""The command line asks a person at a terminal, question by question."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.testbed.command import Command
from support.testbed.terminal import Terminal

Start = Callable[..., Terminal]
Ask = Callable[..., str]


def dialogue(terminal: Terminal, *steps: tuple[str, str]) -> None:
    """Wait for the words, type the line; again and again."""
    for words, line in steps:
        terminal.expect(words)
        terminal.line(line)


def test_an_approval_is_asked_until_it_is_one(pty_cli: Start, cli: Command, ask: Ask) -> None:
    """Other words and nothing at all ask again, with what was expected; words after the decision are the note."""
    gate = ask("Deploy now?", "--type", "approval", "--context", "It is Friday.")
    terminal = pty_cli("respond", gate)
    assert "It is Friday." in terminal.expect("[y/n]")
    terminal.line("maybe")
    dialogue(terminal, ("expected yes or no", ""), ("expected yes or no", "n, it is Friday"))
    terminal.finish(code=0)
    assert cli.quick("check", gate, code=3).out == "rejected\nit is Friday\n"


@pytest.mark.parametrize(
    ("typed", "said"),
    [("2", "Sessions"), ("#1", "JWT"), ("sess", "Sessions"), ("jwt", "JWT"), ("3", "Both of them")],
)
def test_a_choice_takes_a_number_or_a_name(
    pty_cli: Start, cli: Command, ask: Ask, typed: str, said: str
) -> None:
    """The last number is for one's own words."""
    gate = ask("Which?", "-o", "JWT=stateless", "-o", "Sessions")
    terminal = pty_cli("respond", gate)
    assert "#3 something else" in terminal.expect("your choice [1-3")
    terminal.line(typed)
    if typed == "3":
        dialogue(terminal, ("in your own words:", said))
    terminal.finish(code=0)
    assert cli.quick("check", gate, code=0).line == said


def test_a_near_miss_is_asked_again(pty_cli: Start, cli: Command, ask: Ask) -> None:
    """A mistyped label or number is not taken for free text."""
    gate = ask("Which?", "-o", "JWT", "-o", "Sessions")
    dialogue(
        terminal := pty_cli("respond", gate),
        ("your choice", "JTW"),
        ("did you mean JWT?", "7"),
        ("numbered #1 to #2", "1"),
    )
    terminal.finish(code=0)
    assert cli.quick("check", gate).line == "JWT"


def test_a_number_that_is_a_label_means_the_label(pty_cli: Start, cli: Command, ask: Ask) -> None:
    """Where options are called 2 and 1, typing 2 is the one called so."""
    gate = ask("How many?", "-o", "2", "-o", "1")
    dialogue(terminal := pty_cli("respond", gate), ("your choice", "2"))
    terminal.finish(code=0)
    assert cli.quick("check", gate).line == "2"


@pytest.mark.parametrize(("typed", "said"), [("1,3", "A, C"), ("1 3", "A, C"), ("b", "B"), ("C, A", "C, A")])
def test_several_choices(pty_cli: Start, cli: Command, ask: Ask, typed: str, said: str) -> None:
    """Numbers or names, apart by commas; numbers by blanks too."""
    gate = ask("Which ones?", "-o", "A", "-o", "B", "-o", "C", "--type", "choices")
    dialogue(terminal := pty_cli("respond", gate), ("your choices", typed))
    terminal.finish(code=0)
    assert cli.quick("check", gate).line == said


def test_a_text_is_a_line_or_several(pty_cli: Start, cli: Command, ask: Ask) -> None:
    """Enter sends it, a backslash goes on, and nothing at all is asked again."""
    gate = ask("Say something")
    dialogue(
        terminal := pty_cli("respond", gate),
        ("your answer", ""),
        ("an empty answer is not an answer", "one\\"),
        ("…", "two"),
    )
    terminal.finish(code=0)
    assert cli.quick("check", gate).out == "one\ntwo\n"


def test_what_is_pasted_is_one_answer(pty_cli: Start, cli: Command, ask: Ask) -> None:
    """Pasted lines never spill into the shell behind."""
    gate = ask("Say something")
    dialogue(terminal := pty_cli("respond", gate), ("your answer", "first\rsecond\r\rlast"))
    terminal.finish(code=0)
    assert cli.quick("check", gate).out == "first\nsecond\n\nlast\n"


def test_a_text_may_be_written_in_the_editor(
    pty_cli: Start, cli: Command, ask: Ask, editor: Callable[[str], Path]
) -> None:
    """`:e` opens it, with the question above the line."""
    gate = ask("Say something long")
    seen = editor('printf "a\\nb\\n" >> "$1"')
    dialogue(terminal := pty_cli("respond", gate), ("your answer", ":e"))
    terminal.finish(code=0)
    assert "Say something long" in seen.read_text(encoding="utf-8")
    assert cli.quick("check", gate).out == "a\nb\n"


def test_a_form_is_asked_field_by_field(pty_cli: Start, cli: Command, ask_form: str) -> None:
    """A field that does not fit is asked again; an optional one may be left out."""
    terminal = pty_cli("respond", ask_form)
    dialogue(
        terminal,
        ("region (one of eu, us):", "de"),
        ("expected one of eu, us", "eu"),
        ("count (integer, 1 to 5):", "9"),
        ("expected integer, 1 to 5", "3"),
        ("dry (yes or no, optional):", ""),
    )
    terminal.finish(code=0)
    assert cli.quick("check", ask_form).line == '{"region": "eu", "count": 3}'


@pytest.mark.parametrize("lines", [[("region (", "")], [("region (", "eu"), ("count (", "")]])
def test_an_empty_line_leaves_a_form(
    pty_cli: Start, cli: Command, ask_form: str, lines: list[tuple[str, str]]
) -> None:
    """Where a word is needed, also after others were given: nothing is written, and the gate waits as before."""
    terminal = pty_cli("respond", ask_form)
    dialogue(terminal, *lines)
    assert f"the gate still waits: git gate respond {ask_form[:6]}" in terminal.finish(code=8)
    assert cli.quick("check", ask_form, code=8).out == ""


def test_several_questions_are_asked_in_turn(pty_cli: Start, cli: Command, ask_two: str) -> None:
    """Nothing is written before the last is answered."""
    terminal = pty_cli("respond", ask_two)
    dialogue(terminal, ("[db] Which database?", "post"), ("[go] Go ahead?", "y"))
    terminal.finish(code=0)
    assert cli.quick("check", ask_two, code=0).out == "db: Postgres\ngo: approved\n"


@pytest.mark.parametrize("keys", ["", "\x04", "abc"])
def test_leaving_writes_nothing(pty_cli: Start, cli: Command, ask_two: str, keys: str) -> None:
    """Ctrl-C and Ctrl-D exit 130, also in the middle; the gate waits as before."""
    terminal = pty_cli("respond", ask_two)
    dialogue(terminal, ("your choice", "1"))
    terminal.expect("[y/n]")
    if keys == "\x04":
        terminal.keys(keys)
        terminal.finish(code=130)
    else:
        terminal.interrupt(keys)
    assert cli.quick("check", ask_two, code=8).out == ""


def test_nobody_is_asked_without_a_terminal(cli: Command, ask: Ask) -> None:
    """It says what would be an answer, and exits 2."""
    gate = ask("Which?", "-o", "JWT", "-o", "Sessions")
    said = cli.quick("respond", gate, code=2)
    assert said.out == ""
    assert "expected one of: JWT, Sessions" in said.err


def test_hostile_words_do_not_reach_the_terminal(pty_cli: Start, ask: Ask) -> None:
    """Escapes in prompt, option and context are spelt out where a person reads them."""
    gate = ask("Clear\x1b[2J?", "-o", "A\x1b]0;x\x07", "-o", "B", "--context", "\u202egnol \x9b31m")
    terminal = pty_cli("respond", gate, "--color", "never")
    terminal.expect("your choice")
    assert not any(sign in terminal.raw for sign in ("\x1b", "\x07", "\u202e", "\x9b"))
    assert "Clear\\x1b[2J?" in terminal.raw
    terminal.interrupt()


@pytest.mark.parametrize("skip", ["", ":s"])
def test_each_goes_through_what_waits(pty_cli: Start, cli: Command, ask: Ask, skip: str) -> None:
    """Each is answered at once, left for later, or the end: what was answered stays answered, the rest waits."""
    first, second, third = (
        ask(f"{priority}?", "--type", "approval", "--priority", priority)
        for priority in ("urgent", "high", "low")
    )
    terminal = pty_cli("respond", "--each")
    for number, (said, gate) in enumerate((("y", first), (skip, second), (":q", third)), 1):
        terminal.expect(f"{number} of 3")
        terminal.expect(gate)
        dialogue(terminal, ("Enter for the next one, :q to leave, ? for help", "?"))
        dialogue(terminal, ("y or n; words after it are your note", "perhaps"))
        dialogue(terminal, ("expected yes or no", said))
        if number == 1:
            terminal.expect(f"1 of 3: gate {first}: approved: ")
        elif number == 2:
            terminal.expect(f"2 of 3: gate {second}: left for later")
    assert "approved" in terminal.finish(code=0)
    assert [cli.quick("check", gate).code for gate in (first, second, third)] == [0, 8, 8]


def test_each_interrupted_reports_what_was_answered(pty_cli: Start, cli: Command, ask: Ask) -> None:
    """Ctrl-C in the middle keeps the first answer, names it, and exits 130."""
    first = ask("One?", "--type", "approval", "--priority", "urgent")
    second = ask("Two?", "--type", "approval")
    terminal = pty_cli("respond", "--each")
    dialogue(terminal, ("[y/n]", "y"))
    terminal.expect("2 of 2")
    terminal.expect("[y/n]")
    assert f"{first}  One?" in terminal.interrupt()
    assert [cli.quick("check", gate).code for gate in (first, second)] == [0, 8]


def test_each_takes_what_an_answer_may_be(pty_cli: Start, cli: Command, ask: Ask) -> None:
    """A label that begins with a letter is that label; a form is left for later in the middle; words are words."""
    choice = ask("Which?", "-o", "SQLite", "-o", "Quickwit", "--no-other", "--priority", "urgent")
    Path("s.json").write_text(
        '{"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}', encoding="utf-8"
    )
    form = ask("Fill it?", "--type", "form", "--schema", "s.json", "--priority", "high")
    text = ask("Why?")
    terminal = pty_cli("respond", "--each")
    dialogue(terminal, ("your choice", "s"), ("a (text)", ":s"), ("your answer", "?"), ("any words", "a"))
    terminal.finish(code=0)
    assert cli.quick("check", choice, code=0).line == "SQLite"
    cli.quick("check", form, code=8)
    assert cli.quick("check", text, code=0).line == "a"
