"""Setup: texts of ours in a person's project: a section of a file between two marks, or a file of its own.

What stands outside the marks, and a file that somebody made their own, is theirs and stays.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..context.desk import Desk
from ..errors import Failure, Usage
from .steps import Step

TEXTS = Path(__file__).resolve().parents[1] / "texts"
AGENTS, SCRIPT = "AGENTS.md", "scripts/ask-human.sh"
BEGIN = "<!-- git gate: begin (kept by `git gate init --agents`) -->"
END = "<!-- git gate: end -->"
OURS = "(written by `git gate init --script`)"


def top_of(desk: Desk) -> Path:
    if desk.repo.top is None:
        raise Usage("this is a bare repository: there is no project to write to", hint="do it in a clone")
    return desk.repo.top


def text_of(place: Path) -> str:
    try:
        return place.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as unreadable:
        raise Failure(
            f"{place} cannot be read: {unreadable}", hint="mend it, or move it away"
        ) from unreadable


def put(place: Path, text: str, *, executable: bool = False) -> None:
    """All of it or nothing; a link is followed to the file that it stands for."""
    place = place.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    new = place.with_name(f".{place.name}.{os.getpid()}.new")
    new.write_text(text, encoding="utf-8", newline="\n")
    mode = place.stat().st_mode & 0o777 if place.exists() else 0o644
    new.chmod(mode | 0o111 if executable else mode)
    new.replace(place)


def take_away(place: Path, stop: Path) -> None:
    """The file, and the folders that it leaves empty."""
    place.unlink(missing_ok=True)
    for folder in place.parents:
        if folder == stop or not folder.is_relative_to(stop) or any(folder.iterdir()):
            return
        folder.rmdir()


# A section between marks


def with_section(text: str, section: str) -> str:
    """`text` with our section, in its old place or at the end; empty text takes it away."""
    before, begin, rest = text.partition(BEGIN)
    inner, end, after = rest.partition(END)
    if begin and not end:
        raise Failure(
            f"a line `{END}` is missing", hint="put it where the section ends, or take the first mark away"
        )
    del inner
    if not begin:
        before, after = (f"{text.rstrip()}\n\n" if text.strip() else ""), "\n"
    if not section:
        rest = f"{before.rstrip()}\n\n{after.lstrip()}".strip()
        return f"{rest}\n" if rest else ""
    return f"{before}{BEGIN}\n{section.strip()}\n{END}{after}"


def agents_steps(desk: Desk) -> list[Step]:
    place = top_of(desk) / AGENTS
    text = text_of(place)
    new = with_section(text, text_of(TEXTS / AGENTS))
    words = "agents without a plugin are told when to ask a person, and how"
    return [Step(f"section in {AGENTS}", words, new == text, lambda: put(place, new))]


def agents_removal(desk: Desk) -> list[Step]:
    if desk.repo.top is None:
        return []
    place = desk.repo.top / AGENTS
    text = text_of(place)
    new = with_section(text, "") if BEGIN in text else text

    def take() -> None:
        if new:
            put(place, new)
        else:
            place.unlink()

    return [Step(f"section in {AGENTS}", "taken away; the rest stays", BEGIN not in text, take)]


# A script of its own


def script_steps(desk: Desk) -> list[Step]:
    place = top_of(desk) / SCRIPT
    text, new = text_of(place), text_of(TEXTS / Path(SCRIPT).name)
    if text and OURS not in text:
        raise Usage(f"{SCRIPT} is there, and is not ours", hint="rename it, and run this again")
    current = text == new and os.access(place, os.X_OK)
    words = "./scripts/ask-human.sh QUESTION [text|yesno|select] [A,B,C] asks a person, waits and prints the answer"
    return [Step(SCRIPT, words, current, lambda: put(place, new, executable=True))]


def script_removal(desk: Desk) -> list[Step]:
    if desk.repo.top is None:
        return []
    top = desk.repo.top
    ours = OURS in text_of(top / SCRIPT)
    return [Step(SCRIPT, "taken away", not ours, lambda: take_away(top / SCRIPT, top))]
