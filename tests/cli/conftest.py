"""Test bench of the command line: questions that wait, and editors that need no person."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.testbed.command import Command
from support.testbed.repositories import Clone

Ask = Callable[..., str]

TWO_QUESTIONS = """\
title: Two things
questions:
- key: db
  prompt: Which database?
  type: choice
  options: [{label: Postgres}, {label: SQLite}]
- key: go
  prompt: Go ahead?
  type: approval
"""
FORM = """\
{"type": "object", "required": ["region", "count"], "additionalProperties": false, "properties": {
  "region": {"enum": ["eu", "us"]},
  "count": {"type": "integer", "minimum": 1, "maximum": 5, "description": "How many machines"},
  "dry": {"type": "boolean"}}}
"""


@pytest.fixture
def ask(cli: Command, repo: Clone) -> Ask:
    """Open a gate in `repo` (or `cwd`) and give back its id."""

    def opened(*args: str, cwd: Path | None = None) -> str:
        return cli.quick("ask", *args, "-q", cwd=cwd, code=0).line

    return opened


@pytest.fixture
def ask_two(ask: Ask, tmp_path: Path) -> str:
    """A gate with a choice and an approval."""
    (tmp_path / "two.yaml").write_text(TWO_QUESTIONS, encoding="utf-8")
    return ask("--file", str(tmp_path / "two.yaml"))


@pytest.fixture
def ask_form(ask: Ask, tmp_path: Path) -> str:
    """A gate with a form."""
    (tmp_path / "form.json").write_text(FORM, encoding="utf-8")
    return ask("Where to?", "--type", "form", "--schema", str(tmp_path / "form.json"))


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Make git's editor a shell script, `$1` being the file; each of its runs leaves what it saw in `seen`."""

    def script(body: str) -> Path:
        seen, program = tmp_path / "seen", tmp_path / "my editor"
        program.write_text(f'#!/bin/sh\ncat "$1" >> "{seen}"\n{body}\n', encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv("GIT_EDITOR", f"'{program}'")
        return seen

    return script
