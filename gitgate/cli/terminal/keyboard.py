"""Command line: what a person types. Prompts go to stderr, because stdout is for data."""

from __future__ import annotations

import select
import sys
from contextlib import suppress

# Not `click.prompt`: at our lower bound (8.1.7) it writes to stdout even with `err=True`, and it knows no pasted lines.
PASTED_WITHIN = 0.05


def read_word(prompt: str) -> str:
    """One line without its end. Ctrl-D is EOFError, Ctrl-C KeyboardInterrupt: both leave with nothing written."""
    while True:
        sys.stderr.write(prompt)
        sys.stderr.flush()
        try:
            line = sys.stdin.readline()
        except UnicodeDecodeError:
            sys.stderr.write("  that was not UTF-8; once more\n")
            continue
        if not line:
            raise EOFError
        return line.rstrip("\r\n")


def forget_typed() -> None:
    """Drop what came from the keyboard before a question stood there: it was meant for something else, and is no consent."""
    import termios

    with suppress(OSError, ValueError, termios.error):  # It may be no terminal.
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def read_lines(prompt: str) -> str:
    """One line, gone on with a backslash at its end; lines that are there already were pasted, and belong to it."""
    lines = [read_word(prompt)]
    while True:
        if lines[-1].endswith("\\"):
            lines[-1] = lines[-1].removesuffix("\\")
            lines.append(read_word("" if more_is_there() else "  … "))
        elif more_is_there() and (pasted := sys.stdin.readline()):
            lines.append(pasted.rstrip("\r\n"))
        else:
            return "\n".join(lines).strip("\n")


def more_is_there() -> bool:
    return bool(select.select([sys.stdin], [], [], PASTED_WITHIN)[0])


def choose(prompt: str, words: str) -> str:
    """One of the letters in `words`; anything else is asked again."""
    while True:
        word = read_word(prompt).strip().lower()[:1]
        if word and word in words:
            return word
        sys.stderr.write(f"  expected one of {', '.join(words)}\n")
