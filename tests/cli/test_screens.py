"""Screens in a real terminal, as a person sees them: narrow and wide, in scripts of every kind, with two hundred gates."""

from __future__ import annotations

import os
import re

import pytest

from support.testbed.command import COMMAND, Command
from support.testbed.repositories import Clone
from support.testbed.tmux import ENDED, Tmux

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

HARD = {
    "Which database should the login service use for its sessions, given that the cluster is there?": (
        *("-o", "Postgres=the cluster that we have, with its backups, its monitoring and its people, who know it"),
        *("-o", "SQLite=one file", "--context", "Written on every request. " * 9, "--timeout", "2h"),
    ),
    "セッションの保存先はどのデータベースにしますか？クラスタは既にあり、ファイルの方が簡単です。どちらですか？": (
        *("-o", "ポストグレス=既存のクラスタ、バックアップと監視付き、みんなが使い方を知っているもの"),
        *("-o", "エスキューライト", "--context", "毎回のリクエストで書き込まれます。" * 9, "--agent", "バックエンド担当"),
    ),
    "Ship it 🚀👩\u200d👩\u200d👧\u200d👦🇩🇪👍🏽❤️ or wait for the 👩\u200d💻 review that somebody 🧑🏿\u200d🚀 promised? 1️⃣ 2️⃣": (
        *("--type", "approval", "--priority", "urgent", "--agent", "deploy🚢"),
    ),
    "האם להשתמש ב-PostgreSQL או ב-SQLite עבור שמירת ההפעלות של שירות הכניסה? כתבו מה שתרצו": (
        *("--agent", "סוכן", "--title", "שמירת ההפעלות של שירות הכניסה, ומה שנדרש בשבילה בשנה הקרובה"),
    ),
}  # fmt: skip
MANY = 200


@pytest.fixture
def ids(cli: Command, repo: Clone) -> list[str]:
    """Many gates, the hard ones on partial work whose files are named in another script."""
    repo.git("config", "gitgate.initialised", "true")  # nothing to be told but what was asked for
    repo.git("switch", "-q", "-c", "login-page-with-a-rather-long-name-of-its-branch")
    repo.write("app.py", "line\n" * 400)
    repo.write("データベースの設定についての説明.md", "x\n")
    found = [cli.quick("ask", words, *how, "-q", code=0).line for words, how in HARD.items()]
    for number in range(MANY):
        agent = ("--agent", f"agent{number % 7}", "--session", f"session{number}")
        cli.quick("ask", f"What is number {number} 問題 about? 🙂", *agent, "--no-work", "-q", code=0)
    return found


def seen(repo: Clone, columns: int, *lines: str) -> tuple[list[str], list[str]]:
    """What is on the screen, and the same with lines put together again that the terminal had to break."""
    script = "; ".join(lines).replace("git gate", str(COMMAND))
    env = {**os.environ, "GIT_PAGER": "cat"}
    with Tmux("sh", "-c", script, cwd=repo.path, env=env, columns=columns) as window:
        window.until(ENDED, timeout=90)
        said = [window.tmux("capture-pane", "-p", *how, "-S", "-1900") for how in ((), ("-J",))]
    plain, whole = (text.partition(ENDED)[0].rstrip().splitlines() for text in said)
    return plain, [line.rstrip() for line in whole]


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_no_line_is_broken_by_the_terminal(repo: Clone, ids: list[str], columns: int) -> None:
    """Lists, trails and letters end before the edge; what is too long is cut or goes on in a line of its own."""
    letters = [f"git gate show {gate}" for gate in ids]
    screens = (
        "git gate",
        "git gate list",
        "git gate status",
        "git gate tree",
        "git gate log",
        "git gate doctor",
    )
    plain, whole = seen(repo, columns, *screens, *letters, "git gate list -v --type choice")
    assert len(plain) > 3 * MANY
    assert plain == whole


def test_a_letter_says_everything_once(repo: Clone, ids: list[str]) -> None:
    """The sum of the work stands there once, and a file bears the name that people gave it."""
    plain, _ = seen(repo, 80, f"git gate show {ids[0]}")
    text = "\n".join(plain)
    # As words of their own: an id or a commit may hold such digits.
    assert [len(re.findall(rf"\b{words}\b", text)) for words in ("2 files", "changed", "401")] == [1, 1, 1]
    assert "データベースの設定についての説明.md" in text
    assert text.count("Which database") == 1


@pytest.mark.parametrize("columns", [60, 80])
def test_prompts_are_broken_between_words(repo: Clone, ids: list[str], columns: int) -> None:
    """The letter, the options, help and refusals, while somebody sits at the prompt."""
    command = (str(COMMAND), "respond", ids[1])
    with Tmux(*command, cwd=repo.path, env=dict(os.environ), columns=columns) as window:
        window.until("your choice")
        window.line("?")
        window.until("expected one of" if columns > 60 else "expected one")
        window.line("nothing of these")
        window.until("is not one of")
        screen, plain = window.screen, window.tmux("capture-pane", "-p", "-S", "-500")
    assert [line.rstrip() for line in screen.splitlines()] == plain.splitlines()
