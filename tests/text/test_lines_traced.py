"""Lines of a shell, a corpus of them: how few harmless ones are held, and that none runs a rule's program unheld, beside what really runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gitgate.text.lines import find_doubts, names
from support.shell_lines import RULES, harmless, hostile
from support.tracing import trace

LINES = 2_000
SAMPLE = 120
MOST_HELD = 0.03
RULE = "terraform apply*"


def is_held(line: str) -> bool:
    return names(RULE, line) or bool(find_doubts(line))


def test_few_harmless_lines_are_held() -> None:
    """With fifteen rules of the usual kind, lines that run nothing of them pass, but for three in a hundred."""
    lines = list(harmless(LINES))
    assert len(set(lines)) > LINES * 0.6
    held = [line for line in lines if find_doubts(line) or any(names(rule, line) for rule in RULES)]
    assert len(held) <= MOST_HELD * LINES, held[:20]


@pytest.mark.needs("bash")
def test_harmless_lines_are_lines() -> None:
    """Bash itself can read each of the corpus, so that nothing is proven by what nobody could run."""
    lines = list(dict.fromkeys(harmless(200)))
    said = [subprocess.run(["bash", "-n", "-c", line], capture_output=True) for line in lines]
    assert [line for line, result in zip(lines, said, strict=True) if result.returncode] == []


@pytest.mark.machine
@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "seed"),
    [(SAMPLE, 7), pytest.param(LINES, 11, marks=[pytest.mark.thorough, pytest.mark.timeout(1800)])],
)
def test_nothing_runs_unheld(tmp_path: Path, count: int, seed: int) -> None:
    """Whichever of these lines runs the rule's program, the rule holds it, or nobody can say what it runs."""
    lines = list(hostile(count, seed))
    ran = [
        line
        for line, calls in zip(lines, trace(lines, ("terraform",), tmp_path), strict=True)
        if any(call[1:2] == ["apply"] for call in calls)
    ]
    assert len(ran) > count / 3, "too few of them run anything for this to prove something"
    assert [line for line in ran if not is_held(line)] == []


@pytest.mark.machine
@pytest.mark.slow
def test_a_line_can_harm_nothing_where_it_is_traced(tmp_path: Path) -> None:
    """It cannot write, reach a network, gain a right, make many processes or last; and what it calls is seen."""
    outside = tmp_path / "outside"
    lines = [
        "terraform $(touch /x /usr/x /lines/x 2>&1 | grep -c Read-only)", f"touch {outside}; terraform", "terraform $(grep CapEff /proc/self/status)",
        "terraform $(cat </dev/tcp/127.0.0.1/22 2>&1 | wc -l) $(ls /sys/class/net 2>/dev/null)", "terraform $(ulimit -u)", "sleep 60; terraform", "f() { f | f & }; f; sleep 60",
        "kill -9 -1; terraform", "(sleep 3; terraform late) & terraform", "terraform 'a b' c",
    ]  # fmt: skip
    said = trace(lines, ("terraform",), tmp_path / "traced")
    assert [calls[0][1:] if calls else None for calls in said] == [
        ["3"], [], ["CapEff:", "0000000000000000"], ["0"], ["64"], None, None, [], [], ["a b", "c"],
    ]  # fmt: skip
    assert not outside.exists()
