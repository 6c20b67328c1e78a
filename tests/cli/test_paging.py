"""The command line's colour and pager: decided as git decides them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

Ask = Callable[..., str]
Start = Callable[..., Terminal]


class TestColour:
    """Decided as git decides it."""

    @pytest.mark.parametrize(
        ("args", "env", "setting", "colored"),
        [
            ([], {}, "", False),
            (["--color", "always"], {}, "", True),
            (["--color", "always"], {"NO_COLOR": "1"}, "", True),
            (["--color", "never"], {}, "color.ui=always", False),
            ([], {}, "color.ui=always", True),
            ([], {"NO_COLOR": "1"}, "color.ui=always", False),
            ([], {}, "gitgate.color=always", True),
            ([], {"GITGATE_COLOR": "always"}, "", True),
            ([], {"GIT_PAGER_IN_USE": "true", "TERM": "xterm"}, "", True),
            ([], {"GIT_PAGER_IN_USE": "true", "TERM": "dumb"}, "", False),
        ],
    )
    def test_in_a_pipe(
        self,
        cli: Command,
        repo: Clone,
        ask: Ask,
        args: list[str],
        env: dict[str, str],
        setting: str,
        colored: bool,
    ) -> None:
        """`always` survives pipes; otherwise only a terminal has colour."""
        ask("Which?", "--priority", "urgent")
        if setting:
            repo.git("config", *setting.split("=", 1))
        for words in (["list"], ["show"], ["log"], ["tree"]):
            assert ("\x1b[" in cli.quick(*words, *args, env=env, code=0).out) is colored, words

    def test_on_a_terminal(self, pty_cli: Start, repo: Clone, ask: Ask) -> None:
        """Coloured, unless NO_COLOR or color.ui says otherwise."""
        ask("Which?")
        assert "\x1b[1m" in shown(pty_cli("list"))
        assert "\x1b[" not in shown(pty_cli("list", env={"NO_COLOR": "1"}))
        repo.git("config", "color.ui", "false")
        assert "\x1b[" not in shown(pty_cli("list"))


def shown(terminal: Terminal) -> str:
    terminal.finish(code=0)
    return terminal.raw


class TestPager:
    """Long text on a terminal goes through the pager that git would use."""

    @pytest.fixture
    def pager(self, tmp_path: Path) -> str:
        """A pager that says that it was there, and what LESS was."""
        program = tmp_path / "pager"
        program.write_text('#!/bin/sh\necho "PAGED by ${1:-nobody} with $LESS"\ncat\n', encoding="utf-8")
        program.chmod(0o755)
        return str(program)

    @pytest.fixture
    def long(self, ask: Ask) -> str:
        """A gate whose letter is longer than the terminal."""
        return ask("Which?", "--context", "\n".join(f"line {number}" for number in range(80)))

    @pytest.mark.slow
    def test_the_order_is_gits(self, pty_cli: Start, repo: Clone, pager: str, long: str) -> None:
        """GIT_PAGER, then pager.gate, then core.pager, then PAGER; LESS as git sets it."""
        assert "PAGED by env with FRX" in pty_cli("show", long, env={"PAGER": f"{pager} env"}).finish(code=0)
        repo.git("config", "core.pager", f"{pager} core")
        assert "PAGED by core" in pty_cli("show", long, env={"PAGER": f"{pager} env"}).finish(code=0)
        repo.git("config", "pager.gate", f"{pager} own")
        assert "PAGED by own" in pty_cli("show", long).finish(code=0)
        said = pty_cli("show", long, env={"GIT_PAGER": f"{pager} first", "LESS": "R"}).finish(code=0)
        assert "PAGED by first with R" in said

    @pytest.mark.parametrize(
        "off", ["GIT_PAGER=cat", "GIT_PAGER=", "pager.gate=false", "gitgate.pager=false"]
    )
    def test_it_can_be_off(self, pty_cli: Start, repo: Clone, pager: str, long: str, off: str) -> None:
        """As with git."""
        name, _, value = off.partition("=")
        env = {"PAGER": pager}
        if "." in name:
            repo.git("config", name, value)
        else:
            env[name] = value
        assert "PAGED" not in pty_cli("show", long, env=env).finish(code=0)

    def test_short_text_needs_none(self, pty_cli: Start, ask: Ask, pager: str) -> None:
        """What fits is printed."""
        gate = ask("Which?")
        assert "PAGED" not in pty_cli("show", gate, rows=60, env={"PAGER": pager}).finish(code=0)

    def test_a_missing_pager_loses_nothing(self, pty_cli: Start, long: str) -> None:
        """The text is printed instead."""
        assert "line 79" in pty_cli("show", long, env={"PAGER": "no-such-pager"}).finish(code=0)

    def test_never_in_a_pipe(self, cli: Command, long: str, pager: str) -> None:
        """Nor for JSON."""
        assert "PAGED" not in cli("show", long, env={"PAGER": pager}, code=0).out
