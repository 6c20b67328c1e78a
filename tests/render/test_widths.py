"""Every screen at every width: no line is longer than the terminal, columns stand below one another, nothing is said twice."""

from __future__ import annotations

import pytest

from gitgate.record import Summary
from gitgate.render import LEFT_TO_RIGHT, is_beginning, table, tree_lines
from gitgate.render.letter import trail_line
from gitgate.text import format_time, width

NOW = 1_800_000_000.0
FAMILY = "👩\u200d👩\u200d👧\u200d👦"
LONG = "Which database should the login service use for its sessions, given that the cluster is there?"
QUESTIONS = {
    "latin": LONG,
    "wide": "セッションの保存先はどのデータベースにしますか？クラスタは既にあり、ファイルの方が簡単です。",
    "pictures": f"Ship it 🚀{FAMILY}🇩🇪👍🏽❤️ or wait for the 👩\u200d💻 review of yesterday? 1️⃣ 2️⃣ " * 2,
    "to the left": "האם להשתמש ב-PostgreSQL או ב-SQLite עבור שמירת ההפעלות של שירות הכניסה?",
    "marks": "क्या हमें डेटाबेस बदलना चाहिए? " * 4,
}
AGENTS = ("backend/91fe", "バックエンド担当のエージェント", "deploy🚢", "סוכן", "وكيل")
WIDTHS = (40, 50, 60, 71, 72, 80, 100, 140)


def rows(*, state: str = "awaiting", deadline: str = "") -> list[Summary]:
    return [
        Summary(
            f"7k2fw9c3a{place}",
            "0" * 40,
            "opened",
            state,
            title=question,
            question=question,
            agent=agent,
            at=format_time(NOW - 60 * place),
            branch="login-page-with-a-rather-long-name" if place % 2 else "ענף",
            priority="urgent" if place % 2 else "normal",
            deadline=deadline,
            questions="3" if place % 2 else "1",
        )
        for place, (question, agent) in enumerate(zip(QUESTIONS.values(), AGENTS, strict=True))
    ]


@pytest.mark.parametrize("cells", WIDTHS)
@pytest.mark.parametrize("state", ["awaiting", "answered", "failed"])
def test_a_table_never_wraps(cells: int, state: str) -> None:
    """Whatever script, however narrow, whatever else is to be told."""
    lines = table(rows(state=state, deadline=format_time(NOW + 7260)), NOW, cells)
    assert max(map(width, lines)) <= cells
    assert lines[0].endswith("QUESTION")


@pytest.mark.parametrize("cells", [60, 80, 140])
def test_columns_stand_below_one_another(cells: int) -> None:
    """Also behind wide letters and pictures, in cells of the terminal."""
    head, *body = table(rows(), NOW, cells)
    for text, row in zip(body, rows(), strict=True):
        at = text.index(row.question[:4])
        assert width(text[:at]) == head.index("QUESTION")


def test_what_is_needed_least_is_left_out_first() -> None:
    """The branch on a narrow terminal, then who asked; id, age, priority and question stay."""
    heads = {cells: table(rows(), NOW, cells)[0].split() for cells in (80, 60, 40)}
    assert heads[80] == ["ID", "AGE", "PRIO", "ASKED", "BY", "BRANCH", "QUESTION"]
    assert heads[60] == ["ID", "AGE", "PRIO", "ASKED", "BY", "QUESTION"]
    assert heads[40] == ["ID", "AGE", "PRIO", "QUESTION"]


def test_a_script_that_runs_to_the_left_keeps_its_column() -> None:
    """Two such cells beside each other would change places: a mark that takes no room stands between them."""
    shown = dict(zip(AGENTS, table(rows(), NOW, 140)[1:], strict=True))
    assert [shown[agent].count(LEFT_TO_RIGHT) for agent in AGENTS] == [1, 0, 1, 1, 2]
    assert f"סוכן{LEFT_TO_RIGHT} " in shown["סוכן"]


def test_a_question_keeps_some_words_beside_its_deadline() -> None:
    """On a narrow terminal, too."""
    (shown,) = table(rows(deadline=format_time(NOW + 7260))[:1], NOW, 60)[1:]
    assert "Which" in shown
    assert "due in" in shown


@pytest.mark.parametrize("cells", WIDTHS)
def test_a_trail_never_wraps(cells: int) -> None:
    """Narrow, a moment is told to the minute, and of an id what a person types."""
    event = {"at": "2026-01-02T03:04:05Z", "gate": "7k2fw9c3ab", "event": "answered", "by": "Ada <a@b.c>"}
    for words in QUESTIONS.values():
        shown = trail_line({**event, "text": words, "title": words}, cells)
        assert width(shown) <= cells
        assert shown.startswith(
            "2026-01-02T03:04Z  7k2fw9  " if cells < 72 else "2026-01-02T03:04:05Z  7k2fw9c3ab"
        )


class OneFamily:
    """Gates of which none follows another."""

    first = rows()

    def children(self, of: str) -> list[Summary]:
        del of
        return []


@pytest.mark.parametrize("cells", WIDTHS)
def test_a_tree_never_wraps(cells: int) -> None:
    """The branch's name included; a question that its title begins with is told once."""
    shown = tree_lines({"a-branch-with-a-name-that-is-longer-than-forty-cells": OneFamily()}, cells)
    assert max(map(width, shown)) <= cells
    assert len(shown) == 1 + len(AGENTS)


@pytest.mark.parametrize(
    ("title", "question", "same"),
    [
        (LONG, LONG, True),
        (LONG[:71] + "…", LONG, True),
        ("Which?", "Which?", True),
        ("Auth for phones", "Which?", False),
        ("", "Which?", True),
    ],
)
def test_a_title_that_nobody_gave(title: str, question: str, same: object) -> None:
    """It is the beginning of its question, and is not told beside it."""
    assert is_beginning(title, question) is same
