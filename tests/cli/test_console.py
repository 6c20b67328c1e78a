"""The command as a process: what a list loads, and what reaches whoever reads it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from gitgate.store.git.refs import OPEN
from support.testbed.command import COMMAND, Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

Ask = Callable[..., str]


def loaded_by(repo: Clone, *args: str) -> set[str]:
    """The modules that one command has loaded when it ends."""
    code = (
        "import os, sys\nfrom gitgate.cli.process import run\n"
        "os._exit = lambda code: print('loaded', code, *sys.modules, sep='\\n')\nrun()"
    )
    said = subprocess.run([sys.executable, "-c", code, *args], cwd=repo.path, capture_output=True, text=True)
    _, ended, listed = said.stdout.partition("loaded\n0\n")
    assert ended, said.stderr
    return set(listed.splitlines())


@pytest.mark.usefixtures("unmeasured")
def test_a_list_loads_no_more_than_it_needs(repo: Clone, ask: Ask) -> None:
    """Records, documents, policies and conversations are for verbs about one gate; their libraries even more so."""
    ask("Which?")
    loaded = loaded_by(repo, "list")
    assert "gitgate.gates" in loaded
    rooms = {f"gitgate.{room}" for room in ("questions", "policy", "agents", "store.records", "acts")}
    modules = {f"gitgate.{name}" for name in ("document.codec", "record.events", "model.gate")}
    assert [name for name in rooms | modules if find_spec(name) is None] == []
    assert loaded.isdisjoint(rooms | modules | {"json", "hashlib", "pygit2", "git", "yaml", "asyncio"})


@pytest.mark.usefixtures("unmeasured")
def test_asking_showing_and_answering_load_no_second_dataclasses(repo: Clone, ask: Ask) -> None:
    """To import it, and to have it make again what our own made, takes 4 ms of 60."""
    gate, loaded = ask("Which?", "-o", "A", "-o", "B"), set[str]()
    for args in (
        ("ask", "Another?", "--no-other", "-o", "A", "-o", "B", "-q"),
        ("show", gate, "-q"),
        ("respond", gate, "A", "-q"),
    ):
        loaded = loaded_by(repo, *args)
        assert "gitgate.record.events" in loaded
        assert loaded.isdisjoint({"dataclasses", "socket", "pygit2", "git", "gitdb", "smmap"}), args
        assert loaded.isdisjoint({"hashlib", "_hashlib"}), args
        # Click looks for `-o` among the long options first, and for what else it could mean. A flag's letter is spared that.
        assert ("difflib" in loaded) == (args[0] == "ask"), args
    assert loaded.isdisjoint({"json", "gitgate.store.work"})  # by whoever answers


@pytest.mark.usefixtures("unmeasured")
def test_what_judges_a_push_loads_the_policy_only_where_there_is_one(
    repo: Clone, ask: Ask, tmp_path: Path
) -> None:
    """Whoever pushes waits for it: without a policy for nothing that judges people, with one for all of that."""
    gate = ask("Which?")
    server = str(tmp_path / "server.git")
    repo.git("init", "-q", "--bare", "--initial-branch", "main", server)
    new = repo.git("rev-parse", OPEN + gate)
    repo.git("push", "-q", server, "HEAD:refs/heads/main", f"{new}:refs/heads/aside")
    code = (
        "import os, sys\nfrom gitgate.cli.receive import main\n"
        "os._exit = lambda code: print('loaded', code, *sys.modules, sep='\\n')\nmain()"
    )

    def loaded() -> set[str]:
        said = subprocess.run(
            [sys.executable, "-c", code, "pre-receive", f"{'0' * 40} {new} {OPEN}{gate}"],
            cwd=server, env={**os.environ, "GIT_DIR": "."}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
        _, ended, listed = said.stdout.partition("loaded\n0\n")
        assert ended, said.stderr
        return set(listed.splitlines())

    judging = {"gitgate.policy.ruling", "gitgate.store.git.signatures", "gitgate.sharing.pushers"}
    assert judging.isdisjoint(loaded())
    signed = repo.path.parent / "policy.yml"
    signed.write_text("policy: {require_signed: true}\n", encoding="utf-8")
    repo.git("--git-dir", server, "config", "gitgate.policyFile", str(signed))
    assert judging <= loaded()


def test_who_watches_is_told_how_to_end_it(repo: Clone, pty_cli: Callable[..., Terminal]) -> None:
    """On a terminal, before anything happens; a script reads events alone."""
    terminal = pty_cli("watch", cwd=repo.path)
    terminal.expect("each event is a line, as it comes; Ctrl-C ends this")
    assert "still at it" not in terminal.interrupt()


def test_an_error_is_said_as_ever(cli: Command, tmp_path: Path) -> None:
    """Outside a repository, and with flags that do not exist."""
    assert "is not in a git repository" in cli.quick("list", cwd=tmp_path, code=1).err
    assert "--nonsense" in cli.quick("list", "--nonsense", cwd=tmp_path, code=2).err


@pytest.mark.slow
def test_a_deadline_acted_on_while_listing(cli: Command, repo: Clone, ask: Ask) -> None:
    """A list shows what came of a deadline that it found passed."""
    gate = ask("Which?", "-o", "A", "-o", "B", "--timeout", "1s", "--on-timeout", "fail")
    before = repo.git("rev-parse", OPEN + gate)
    subprocess.run(["sleep", "1.1"], check=True)
    said = cli.quick("list", "--all", "--json", code=0).json["gates"]
    assert [(each["id"], each["state"]) for each in said] == [(gate, "expired")]
    assert repo.git("rev-parse", OPEN + gate) != before


def test_the_console_leaves_with_the_code_and_all_its_words(repo: Clone, ask: Ask) -> None:
    """A long list arrives whole in a pipe; an error keeps its code; a reader that goes away is no bug."""
    gates = {ask(f"Question {number}?") for number in range(3)}
    done = subprocess.run([str(COMMAND), "list", "--json"], cwd=repo.path, capture_output=True, text=True)
    assert done.returncode == 0
    assert all(gate in done.stdout for gate in gates)
    assert subprocess.run([str(COMMAND), "show", "zzzz"], cwd=repo.path, capture_output=True).returncode != 0
    with Path("/dev/full").open("wb") as full:
        unheard = subprocess.run([str(COMMAND), "list"], cwd=repo.path, stdout=full, stderr=subprocess.PIPE)
    assert unheard.returncode != 0
    module = subprocess.run([sys.executable, "-m", "gitgate", "--version"], capture_output=True, text=True)
    assert module.stdout.startswith("git-gate ")
