"""Some five hundred plausible mistakes, in `mistakes.txt`: each is refused with what was expected and the next command to type."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from support.testbed.command import Command
from support.testbed.repositories import Clone

HERE = Path(__file__).parent
# A row: what was typed, the exit code with the message, and below them what to do next.
ROW = re.compile(r"\$ (.+)\n(\d+): (.+)\n((?:   .+\n)+)")
# Something to type: a command, an option, or what a line of the file should be like.
TYPED = re.compile(r"git |--[a-z]|-[oa] |export |put text|FILE: ")
QUESTIONS = {
    "choice": ("Which db?", "-o", "Postgres", "-o", "SQLite", "-o", "Pogo"),
    "approval": ("Deploy?", "--type", "approval"),
    "text": ("Name?",),
    "choices": ("Which all?", "--type", "choices", "-o", "A", "-o", "B", "--no-other"),
    "one": ("Strict?", "-o", "Yes", "-o", "No", "--no-other"),
    "session": ("Talk?", "--type", "session"),
    "done": ("Done?",),
    "stopped": ("Stopped?",),
    "withdrawn": ("Taken back?",),
}

SHORT = re.compile(rf"\{{(?:{'|'.join(QUESTIONS)}):\.6\}}")


class Mistake(NamedTuple):
    """What was typed, and what was said to it."""

    typed: str
    code: int
    message: str
    hint: str


def read_table() -> dict[str, list[Mistake]]:
    """The rows of each part. No line of the file is left over."""
    parts = re.split(r"^# (.+)\n", (HERE / "mistakes.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
    found: dict[str, list[Mistake]] = {}
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        assert not ROW.sub("", text).strip(), name
        found[name] = [
            Mistake(typed, int(code), message, "\n".join(line[3:] for line in hint.splitlines()))
            for typed, code, message, hint in ROW.findall(text)
        ]
    return found


MISTAKES = read_table()


@pytest.fixture
def world(cli: Command, repo: Clone, home: Path) -> dict[str, str]:
    """A repository with a gate of each type and state, and files that ask badly. What stands for what in the table."""
    gates = {name: cli.quick("ask", *words, "-q", code=0).line for name, words in QUESTIONS.items()}
    cli.quick("respond", gates["done"], "yes", code=0)
    cli.quick("stop", gates["stopped"], "--reason", "no", code=0)
    cli.quick("withdraw", gates["withdrawn"], "--reason", "no", code=0)
    for name, body in json.loads((HERE / "mistakes.json").read_text(encoding="utf-8")).items():
        repo.write(name, body)
    return {**gates, "repo": str(repo.path), "home": str(home)}


def place(row: Mistake, repo: Clone, home: Path) -> tuple[str, Path]:
    """The line, and where it is typed: `@none` is where no repository is."""
    return (row.typed[6:], home) if row.typed.startswith("@none ") else (row.typed, repo.path)


def in_table(text: str, world: Mapping[str, str]) -> str:
    """What was said, with the names of the table for what differs in each run."""
    for name, value in world.items():
        short = f"{{{name}:.6}}" if name in QUESTIONS else ""
        text = text.replace(value, f"{{{name}}}")
        text = text.replace(value[:6], short) if short else text
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME", text)
    # Gates of one second are listed in no order that a table could tell.
    several = len(set(SHORT.findall(text))) > 1
    return SHORT.sub("{any}", text) if several else text


def test_the_table_is_long() -> None:
    """At least 150, no two the same, and each says what can be typed next."""
    rows = [row for part in MISTAKES.values() for row in part]
    assert len({row.typed for row in rows}) == len(rows) > 450
    assert [row for row in rows if not TYPED.search(row.hint)] == []


@pytest.mark.parametrize("about", MISTAKES)
def test_a_mistake_is_answered(
    cli: Command, repo: Clone, world: dict[str, str], home: Path, about: str
) -> None:
    """As JSON, with the exit code, the message and the hint of the table; no ref of ours moves. The first of each part with
    each exit code is also said in words: on standard error, the hint below the message.
    """
    before = repo.refs("refs/hitl")
    wrong = []
    for row in MISTAKES[about]:
        line, cwd = place(row, repo, home)
        said = cli.quick("--json", *(word.format(**world) for word in shlex.split(line)), cwd=cwd)
        shape = said.json
        error = shape.get("error", {})
        found = Mistake(
            row.typed,
            said.code,
            in_table(error.get("message", ""), world),
            in_table(error.get("hint", ""), world),
        )
        quiet = (shape["schema"], said.err)
        if found != row or quiet != ("gitgate.error/v1", ""):
            wrong.append(f"{found}\n  not {row}\n  {quiet}")
    assert wrong == [], "\n".join(wrong)
    for row in {row.code: row for row in reversed(MISTAKES[about]) if "--json" not in row.typed}.values():
        line, cwd = place(row, repo, home)
        said = cli.quick(*(word.format(**world) for word in shlex.split(line)), cwd=cwd)
        hint = "\n".join(f"  {line}" for line in row.hint.splitlines())
        assert (said.code, said.out) == (row.code, "")
        assert in_table(said.err, world) == f"git gate: {row.message}\n{hint}\n"
    assert repo.refs("refs/hitl") == before
