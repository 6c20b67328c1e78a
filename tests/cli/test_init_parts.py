"""Init's parts for agents: Claude Code's hooks and skill, guidance for others, and a script that asks."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from testbed.command import Command
from testbed.repositories import Clone

PARTS = ("--claude", "--agents", "--script")
SETTINGS = ".claude/settings.json"


def files(clone: Clone) -> dict[str, bytes]:
    names = clone.git("ls-files", "-co", "--exclude-standard").splitlines()
    return {name: (clone.path / name).read_bytes() for name in names}


def test_parts_are_put_in_place_once_and_taken_away_whole(repo: Clone, cli: Command) -> None:
    """A second time changes nothing; afterwards the project is as it was."""
    before = files(repo)
    cli("init", *PARTS, "--dry-run", code=0)
    assert files(repo) == before
    cli("init", *PARTS, code=0)
    placed = files(repo)
    assert set(placed) - set(before) == {
        ".claude/gitgate-hook",
        SETTINGS,
        ".claude/skills/asking-a-person/SKILL.md",
        "AGENTS.md",
        "scripts/ask-human.sh",
    }
    assert all(step["done"] for step in cli("init", *PARTS, "--json", code=0).json["steps"])
    assert files(repo) == placed
    cli("init", *PARTS, "--remove", code=0)
    assert files(repo) == before
    cli("init", *PARTS, "--remove", code=0)
    assert files(repo) == before


def test_what_a_project_had_stays(repo: Clone, cli: Command) -> None:
    """Other settings and hooks, the text around our section, and its place."""
    mine = {
        "model": "x",
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}], "Other": []},
    }
    repo.write(SETTINGS, json.dumps(mine))
    repo.write("AGENTS.md", "# Mine\n\nText.\n")
    cli("init", "--claude", "--agents", code=0)
    said = json.loads((repo.path / SETTINGS).read_text())
    assert said["model"] == "x"
    assert said["hooks"]["Stop"][0] == mine["hooks"]["Stop"][0]  # type: ignore[index]
    assert len(said["hooks"]["Stop"]) == 2
    agents = repo.path / "AGENTS.md"
    assert agents.read_text().startswith("# Mine\n\nText.\n\n<!-- git gate: begin")
    outdated = agents.read_text().replace("Decisions that are not yours", "OLD WORDS") + "\nAfter.\n"
    agents.write_text(outdated)
    cli("init", "--agents", code=0)
    assert "OLD WORDS" not in agents.read_text()
    assert agents.read_text().count("git gate: begin") == 1
    assert agents.read_text().endswith("After.\n")
    cli("init", "--claude", "--agents", "--remove", code=0)
    assert agents.read_text() == "# Mine\n\nText.\n\nAfter.\n"
    assert json.loads((repo.path / SETTINGS).read_text())["hooks"]["Stop"] == mine["hooks"]["Stop"]  # type: ignore[index]


@pytest.mark.parametrize(("name", "text", "flag"), [(SETTINGS, "{broken", "--claude"), (SETTINGS, "[]", "--claude"), ("scripts/ask-human.sh", "mine", "--script"), ("AGENTS.md", "<!-- git gate: begin (kept by `git gate init --agents`) -->", "--agents")])  # fmt: skip
def test_what_cannot_be_kept_is_left_alone(
    name: str, text: str, flag: str, repo: Clone, cli: Command
) -> None:
    """A file that is broken, or somebody else's, is named; it stays."""
    repo.write(name, text)
    said = cli("init", flag)
    assert said.code in (1, 2)
    assert Path(name).name in said.err or "git gate: end" in said.err
    assert (repo.path / name).read_text() == text


def test_a_bare_repository_has_no_project(bare: Clone, cli: Command) -> None:
    """There is nothing to write to."""
    assert cli("init", "--server", "--agents", cwd=bare.path).code == 2


@pytest.mark.parametrize(
    ("arguments", "answer", "out", "code"),
    [
        (("Which?",), "mine", "mine\n", 0),
        (("-o is a word?", "text"), "yes", "yes\n", 0),
        (("May I?", "yesno"), "--approve", "approved\n", 0),
        (("May I?", "yesno"), "--reject", "rejected\n", 3),
        (("Which?", "select", "A,B b"), "B b", "B b\n", 0),
        (("Which?", "", "A,B"), "A", "A\n", 0),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_the_script_asks_and_prints_the_answer(
    arguments: tuple[str, ...], answer: str, out: str, code: int, repo: Clone, cli: Command
) -> None:
    """Question, type, options; the answer alone on standard output."""
    cli("init", "--script", code=0)
    running = subprocess.Popen(
        ["./scripts/ask-human.sh", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    told = running.stderr.readline()
    gate = told.split()[1]
    cli("respond", gate, answer, code=0)
    said, _ = running.communicate(timeout=20)
    assert (said, running.returncode) == (out, code)


@pytest.mark.parametrize("arguments", [(), ("",), ("x", "other"), ("x", "select"), ("a", "text", "b", "c")])
def test_the_script_says_how_it_is_used(arguments: tuple[str, ...], repo: Clone, cli: Command) -> None:
    """Instead of asking something that nobody meant."""
    cli("init", "--script", code=0)
    said = subprocess.run(["./scripts/ask-human.sh", *arguments], capture_output=True, text=True)
    assert (said.returncode, said.stdout) == (2, "")
    assert "usage" in said.stderr
