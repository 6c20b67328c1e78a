#!/usr/bin/env python3
"""Documentation: the pictures of the desk, taken by Textual itself of a desk on a scratch repository.

`docs/desk_pictures.py` writes `desk-list.svg` and `desk-letter.svg`; `--check` takes them again and fails where they
differ. Times are fixed; ids, and hashes that hold this machine's name, are replaced.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from gitgate.acts.asking import AskWishes, ask
from gitgate.context import open_desk
from gitgate.model.gate import Option, Question
from gitgate.questions.drafts import Draft
from gitgate.surfaces.desk.screens import DeskApp, InboxScreen, LetterScreen
from gitgate.surfaces.desk.services import DeskWorld

DOCS = Path(__file__).parent
SIZE = (96, 36)
IDS = ("7k2fw9c3ab", "c4mx8t2n6h", "q9re5vd3zu", "w3yb7kp4s8")
NOW = 1_780_000_000.0
LONG = 60.0
QUESTIONS = (
    ("backend/91fe", "high", 240, Question("answer", "Deploy to production?", "approval"), ""),
    (
        *("login/3c07", "normal", 5400),
        Question(
            "answer",
            "Which database shall the login service use for its sessions?",
            "choice",
            (Option("Postgres", "the cluster that we have"), Option("SQLite", "one file, no server")),
        ),
        "Sessions are written on every request.",
    ),
    ("docs/a410", "normal", 3600, Question("answer", "How should errors look?", "text"), ""),
    ("parser/77be", "low", 86400, Question("answer", "May I rewrite the parser?", "session"), ""),
)


def scratch(top: Path) -> Path:
    """A repository with partial work, whose commits are the same each time."""
    place = top / "shop"
    place.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(top), "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{role}_NAME": "Ada", f"GIT_{role}_EMAIL": "ada@example.org"}
        env[f"GIT_{role}_DATE"] = "2026-05-28T12:00:00Z"

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=place, env=env, check=True, capture_output=True)

    git("init", "-q", "-b", "login")
    git("config", "user.name", "Ada")
    git("config", "user.email", "ada@example.org")
    (place / "login.py").write_text("def login(name):\n    return None\n", encoding="utf-8")
    git("add", ".")
    git("commit", "-q", "-m", "Begin the login page")
    (place / "login.py").write_text(
        "def login(name, store):\n    return store.begin(name)\n", encoding="utf-8"
    )
    return place


def surroundings(top: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(top), "GIT_CONFIG_NOSYSTEM": "1"}


def fill(place: Path, top: Path) -> None:
    """Questions of several agents, asked one after the other."""
    for agent, priority, ago, question, context in QUESTIONS:
        desk = open_desk(place, surroundings(top), clock=partial(float, NOW - ago))
        draft = Draft((question,), agent=agent, priority=priority, context=context)
        ask(desk, draft, AskWishes(push=False))
        desk.close()


def pictures() -> dict[str, str]:
    """Each picture by its file's name."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        place = scratch(top)
        fill(place, top)
        return asyncio.run(taken(place, top))


async def taken(place: Path, top: Path) -> dict[str, str]:
    world = DeskWorld(
        places=[place],
        here=place,
        env=surroundings(top),
        lend=lambda _argv, _place: 0,
        edit=lambda _folder: "",
        clock=lambda: NOW,
    )
    app = DeskApp(world)
    found: dict[str, str] = {}
    async with app.run_test(size=SIZE) as pilot:

        async def until(holds: Callable[[], bool]) -> None:
            end = time.monotonic() + LONG
            while not holds():
                if time.monotonic() > end:
                    raise TimeoutError(app.said or "the desk did not come to this")
                await pilot.pause(0.05)

        def read(key: str) -> bool:
            screen = app.screen
            return (
                isinstance(screen, InboxScreen) and screen.shown is not None and screen.shown.gate.id == key
            )

        await until(lambda: len(app.model.rows) == len(QUESTIONS))
        await pilot.press("j")
        await until(lambda: read(app.model.rows[1].key))
        await pilot.pause()
        found["desk-list.svg"] = drawn(app)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, LetterScreen) and app.screen.shown is not None)
        await pilot.pause()
        found["desk-letter.svg"] = drawn(app)
    return found


def drawn(app: DeskApp) -> str:
    """Without fonts from elsewhere, and without what differs from machine to machine."""
    text = app.export_screenshot(title="git gate desk")
    text = re.sub(r"@font-face \{.*?\}\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"terminal-\d+-", "desk-", text)
    text = re.sub(r"\([0-9a-f]{10}\)", "(4c1d9e21b7)", text)
    for row, name in zip(app.model.rows, IDS, strict=True):
        text = text.replace(row.key, name).replace(row.key[:6], name[:6])
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def main(arguments: list[str]) -> int:
    stale = [
        (DOCS / name, text)
        for name, text in pictures().items()
        if not (DOCS / name).exists() or (DOCS / name).read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        if arguments == ["--check"]:
            print(f"{path.name} is out of date: python docs/desk_pictures.py")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"{path.name} written")
    return 1 if stale and arguments == ["--check"] else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
