"""The command line's output: JSON wherever it is asked for, errors that help, signs of life."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shlex import quote

import pytest

import gitgate
from gitgate.cli import BUG, FAILURE, INTERRUPTED, process
from gitgate.cli.main import complain
from gitgate.cli.terminal import Screen
from gitgate.errors import UnsupportedSystem
from support import PATIENCE
from support.testbed.command import COMMAND, Command
from support.testbed.repositories import Clone
from support.testbed.seal import write_global_config
from support.testbed.terminal import Terminal

Ask = Callable[..., str]
Start = Callable[..., Terminal]


class TestJson:
    """One object, before or after the verb, errors too."""

    @pytest.mark.parametrize(
        ("words", "schema"),
        [
            (["list"], "list"),
            (["show"], "gate"),
            (["status"], "status"),
            (["tree"], "tree"),
            (["log"], "log"),
            (["diff"], "diff"),
            (["help", "answers"], "help"),
            (["completion", "bash"], "completion"),
            (["ask", "Another?"], "gate"),
            (["respond", "-m", "words"], "gate"),
            ([], "overview"),
            (["--version"], "version"),
        ],
    )
    def test_every_verb(self, cli: Command, ask: Ask, words: list[str], schema: str) -> None:
        """Standard output is one line with its schema, whichever side of the verb the flag is on."""
        ask("Which?")
        assert json.loads(cli.quick("--json", *words, code=0).line)["schema"] == f"gitgate.{schema}/v1"
        if words not in ([], ["respond", "-m", "words"]):
            assert json.loads(cli.quick(*words, "--json", code=0).line)["schema"] == f"gitgate.{schema}/v1"

    @pytest.mark.parametrize(
        "verb", ["comment", "withdraw", "stop", "edit", "signal", "check", "wait", "status", "log"]
    )
    def test_verbs_about_a_gate(self, cli: Command, ask: Ask, verb: str) -> None:
        """Each gives the gate, or what it was asked for."""
        gate = ask("Which?")
        more = {
            "comment": ["why?"], "withdraw": ["--reason", "x"], "stop": ["--reason", "x"], "wait": ["--for", "0"],
            "edit": ["--to", "@ada"], "signal": ["--status", "CONTINUE"],
        }.get(verb, [])  # fmt: skip
        said = cli.quick(verb, gate, *more, "--json")
        assert said.code == (8 if verb in ("check", "wait") else 0)
        assert said.json.get("id", gate) == gate

    @pytest.mark.usefixtures("repo")
    @pytest.mark.parametrize("where", ["before", "after"])
    def test_errors(self, cli: Command, where: str) -> None:
        """Code, message and hint on stdout; nothing on stderr."""
        words = ["--json", "show", "zzzz"] if where == "before" else ["show", "zzzz", "--json"]
        said = cli.quick(*words, code=1)
        assert said.json["schema"] == "gitgate.error/v1"
        assert said.json["error"]["code"] == "unknown_gate"
        assert "git gate" in said.json["error"]["hint"]
        assert said.err == ""

    @pytest.mark.parametrize(
        "words", [["list", "--stat", "x"], ["lst"], ["ask"], ["show", "a", "b"], ["--nope"]]
    )
    @pytest.mark.usefixtures("repo")
    def test_usage_errors(self, cli: Command, words: list[str]) -> None:
        """Wrong words too: exit 2, and what to type."""
        error = cli.quick("--json", *words, code=2).json["error"]
        assert error["code"] == "usage"
        assert "git gate" in error["hint"]

    def test_text_is_left_exact(self, cli: Command, ask: Ask) -> None:
        """What was said, to the character; a stream that cannot hold it gets JSON's own escapes."""
        words = "a\x1b[31m\u202e ü 🙂\x9b"
        gate = ask(words)
        assert cli.quick("show", gate, "--json").json["questions"][0]["prompt"] == words
        plain = cli("show", gate, "--json", env={"PYTHONIOENCODING": "ascii"}, code=0)
        assert plain.out.isascii()
        assert plain.json["questions"][0]["prompt"] == words

    def test_watch_is_a_line_each(self, cli: Command, ask: Ask) -> None:
        """Every event its own object."""
        gate = ask("Which?")
        cli.quick("respond", gate, "words", "-q", code=0)
        lines = [
            json.loads(line)
            for line in cli.quick("watch", gate, "--for", "0", "--json", code=0).out.splitlines()
        ]
        assert [line["event"] for line in lines] == ["opened", "answered"]
        assert {line["schema"] for line in lines} == {"gitgate.event/v1"}


class TestErrors:
    """Every error says what to do next, with the command to type."""

    @pytest.mark.parametrize(
        ("words", "code"),
        [
            (["show", "zzzz"], 1),
            (["respond"], 1),
            (["ask"], 2),
            (["ask", "x", "--timeout", "soon"], 2),
            (["ask", "x", "--timeout", "0"], 2),
            (["ask", "x", "--type", "nonsense"], 2),
            (["ask", "x", "--on-timeout", "fail"], 2),
            (["ask", "x", "--context", "@missing"], 2),
            (["ask", "x", "--attach", "missing"], 2),
            (["ask", "x", "--file", "missing"], 2),
            (["ask", "x", "--schema", "missing"], 2),
            (["ask", "x", "--session", "../x"], 2),
            (["ask", "x", "--push"], 1),
            (["list", "--type", "nonsense"], 2),
            (["wait", "zzzz", "--for", "soon"], 1),
            (["edit", "zzzz"], 1),
            (["sync"], 1),
            (["sync", "--", "-x"], 2),
            (["help", "nonsense"], 2),
            (["completion", "tcsh"], 2),
            (["-C", "missing", "list"], 1),
        ],
    )
    @pytest.mark.usefixtures("repo")
    def test_what_next(self, cli: Command, words: list[str], code: int) -> None:
        """A first line that names it, then what helps; no traceback, nothing on stdout."""
        said = cli.quick(*words, code=code)
        first, *hints = said.err.splitlines()
        assert first.startswith("git gate: ")
        assert any(line.startswith("  ") for line in hints), said.err
        assert said.out == ""

    def test_outside_any_repository(self, cli: Command, tmp_path: Path) -> None:
        """Every verb that needs one says so alike; help and completion do not need one."""
        for words in (
            [],
            ["list"],
            ["ask", "x"],
            ["respond", "abcd", "x"],
            ["check", "abcd"],
            ["sync"],
            ["tree"],
        ):
            said = cli.quick(*words, cwd=tmp_path, code=1)
            assert "is not in a git repository" in said.err
            assert "git init" in said.err
        for words in (["-h"], ["help"], ["help", "exit-codes"], ["--version"], ["completion", "bash"]):
            assert cli.quick(*words, cwd=tmp_path, code=0).out

    def test_nobody(self, cli: Command, ask: Ask, home: Path) -> None:
        """Asking needs no identity; answering does, and says how to have one."""
        ask("Which?")
        write_global_config(home)
        gate = ask("Which other?")
        assert "git config --global user.name" in cli.quick("respond", gate, "x", code=1).err

    @pytest.mark.usefixtures("repo")
    def test_a_bug_is_reported(self, cli: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        """Exit 70; the report has the traceback and the verb, not the arguments."""
        monkeypatch.setattr("gitgate.cli.verbs.ask.ask", lambda *_: 1 // 0)
        said = cli.quick("ask", "a secret", "--json", code=BUG)
        report = Path(said.json["error"]["hint"].removeprefix("the report is in "))
        try:
            text = report.read_text(encoding="utf-8")
        finally:
            report.unlink()
        assert "ZeroDivisionError" in text
        assert "verb: ask" in text
        assert "a secret" not in text

    @pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["--version"], ["help", "answers"]])
    def test_a_full_disk_is_no_bug(self, ask: Ask, words: list[str]) -> None:
        """An output that cannot be written is a failure of the machine, and no report is made of it."""
        ask("Which?")
        with Path("/dev/full").open("w", encoding="utf-8") as full:
            done = subprocess.run(
                [str(COMMAND), *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        assert done.returncode == FAILURE
        assert "Traceback" not in done.stderr
        assert "report" not in done.stderr

    @pytest.mark.usefixtures("repo")
    def test_a_repository_on_a_full_disk(self, cli: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        """What the system said, in the form that was asked for."""

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device", "/repo/.git/x")

        monkeypatch.setattr("gitgate.cli.verbs.ask.ask", full)
        error = cli.quick("ask", "Which?", "--json", code=FAILURE).json["error"]
        assert (error["code"], error["message"]) == ("machine", "No space left on device: /repo/.git/x")

    def test_the_reader_may_leave(self, ask: Ask) -> None:
        """`git gate list | head -1` is no failure."""
        ask("Which?")
        done = subprocess.run(
            ["sh", "-c", f"'{COMMAND}' list; echo $? >&2"],
            stdout=_closed_pipe(),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert done.stderr.splitlines()[-1] == "0"
        assert "Traceback" not in done.stderr

    @pytest.mark.parametrize("words", [["ask", "x\udcff"], ["ask", "x", "--context", "\udcff"]])
    def test_words_that_are_no_text(self, cli: Command, repo: Clone, words: list[str]) -> None:
        """Bytes that are no text are refused before anything is written."""
        said = cli.quick(*words, code=2)
        assert "U+DCFF" in said.err
        assert repo.refs("refs/hitl") == {}

    def test_a_file_that_is_no_text(self, cli: Command, repo: Clone) -> None:
        """Its name and line are told; one that is too long is refused as well."""
        repo.write("notes", b"fine\n\xff\n")
        assert "notes, line 2: expected UTF-8" in cli.quick("ask", "x", "--context", "@notes", code=2).err
        assert "standard input, line 1" in cli.quick("ask", "x", "--context", "-", input=b"\xff", code=2).err
        repo.write("long", b"x" * 10_000_000)
        assert "longer than" in cli.quick("ask", "x", "--context", "@long", code=2).err


def _closed_pipe() -> int:
    """The writing end of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.mark.slow
def test_a_sign_of_life(pty_cli: Start, repo: Clone, tmp_path: Path) -> None:
    """What takes more than a second says what it is at, on a terminal; in a pipe, and with -q, it does not."""
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nsleep 4\necho gone >&2\nexit 1\n", encoding="utf-8")
    slow.chmod(0o755)
    repo.git("remote", "add", "origin", "ssh://git@127.0.0.1:9/x.git")
    env = {"GIT_SSH_COMMAND": str(slow)}
    shown = [pty_cli("sync", *more, env=env) for more in ([], ["-q"])]
    assert ["…" in terminal.finish(code=1) for terminal in shown] == [True, False]


class TestStreams:
    """Whoever starts us decides where our words go; one that goes nowhere is no reason to fail, or to write elsewhere."""

    @pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
    @pytest.mark.parametrize("words", ["list", "list --json", "ask What?", "respond -m yes"])
    @pytest.mark.slow
    def test_a_closed_stream(self, repo: Clone, ask: Ask, closed: str, words: str) -> None:
        """As if it led nowhere."""
        gate = ask("Which?")
        line = f"exec {quote(str(COMMAND))} {words} {closed}"
        said = subprocess.run(
            ["/bin/sh", "-c", line], capture_output=True, text=True, check=False, timeout=PATIENCE
        )
        assert said.returncode == 0, said.stderr
        assert "Traceback" not in said.stderr
        assert repo.git("fsck", "--strict") == ""
        assert f"refs/hitl/open/{gate}" in repo.refs()

    @pytest.mark.parametrize("words", [["list", "--json"], ["check", "zzzz", "--json"]])
    @pytest.mark.usefixtures("repo")
    def test_an_object_that_cannot_be_written(self, words: list[str]) -> None:
        """A full disk: then the error is told in words."""
        with Path("/dev/full").open("w", encoding="utf-8") as full:
            done = subprocess.run(
                [str(COMMAND), *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        assert done.returncode == FAILURE
        assert done.stderr.startswith("git gate: ")

    def test_an_interrupt_while_it_is_loading(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Ctrl-C at once is no traceback."""

        def load(*_: object) -> None:
            raise KeyboardInterrupt

        def leave(code: int) -> None:
            raise SystemExit(code)

        monkeypatch.setattr("gitgate.cli.process.start", load)
        monkeypatch.setattr(process, "leave", leave)
        with pytest.raises(SystemExit) as left:
            process.run()
        assert left.value.code == INTERRUPTED
        assert "interrupted" in capsys.readouterr().err


@pytest.mark.parametrize("system", ["win32", "cygwin", "msys"])
def test_windows_itself_is_refused_at_once(
    repo: Clone, cli: Command, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    """Whatever is typed, and from Python too; the hint says how it is to be had there."""
    assert repo.path.is_dir()
    with monkeypatch.context() as there:
        there.setattr("sys.platform", system)
        refused = [
            cli.quick(*words, code=1) for words in (("list", "--json"), ("--help",), ("ask", "Which?"))
        ]
        with pytest.raises(UnsupportedSystem):
            gitgate.list()
    assert json.loads(refused[0].out)["error"]["code"] == "unsupported_system"
    for said in refused[1:]:
        assert "on Windows through WSL" in said.err
        assert "wsl --install" in said.err


@pytest.mark.parametrize(
    ("holds", "command"),
    [
        ("", "pip install"),
        ("pipx_metadata.json", "pipx runpip 'git gate' install"),
        ("uv-receipt.toml", "uv pip install --python '{}'"),
    ],
)
def test_an_extra_is_added_to_where_git_gate_is_installed(
    holds: str,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Pipx and uv keep an environment for it alone, which a plain `pip install` does not reach."""
    place = tmp_path / "git gate"
    place.mkdir()
    if holds:
        (place / holds).touch()
    monkeypatch.setattr(sys, "prefix", str(place))
    Screen().warn("first: pip install 'git-gate[desk]'   or pip install git-gate")
    said = f"first: {command.format(place)} 'git-gate[desk]'   or pip install git-gate\n"
    assert capsys.readouterr().err == said
    assert complain(["list"], "x", "it is missing", "pip install 'git-gate[desk]'", 1) == 1
    assert capsys.readouterr().err == f"git gate: it is missing\n  {command.format(place)} 'git-gate[desk]'\n"
