"""The head start: git begun early changes nothing of what a verb says, and never outlives it."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.cli.headstart import COMPLETING, head_start
from gitgate.config import environment
from gitgate.store.refs import OPEN
from testbed.command import COMMAND, Command
from testbed.repositories import Clone

Ask = Callable[..., str]


@pytest.mark.parametrize(
    ("args", "begun", "tips"),
    [
        ((), True, True),
        (("list",), True, True),
        (("list", "--all"), True, True),
        (("list", "--sync"), False, False),
        (("list", "--everywhere"), False, False),
        (("show", "abcd"), True, False),
        (("show", "-h"), False, False),
        (("init",), False, False),
        (("-C", "there", "list"), False, False),
        (("--json",), False, False),
        (("nonsense",), False, False),
    ],
)
def test_only_what_will_be_asked_is_begun(
    repo: Clone, args: tuple[str, ...], begun: bool, tips: bool
) -> None:
    """Where the first word does not say which repository it is about, nothing is."""
    ahead = head_start(args, environment())
    assert (ahead is not None) is begun
    if ahead is not None:
        assert (ahead.tips is not None) is tips
        ahead.close()
        assert ahead.place.process.returncode is not None


def test_a_shell_that_completes_begins_nothing(repo: Clone) -> None:
    """It asks what may be typed, mostly without a word that tells which verb."""
    del repo
    assert head_start([], {**environment(), COMPLETING: "bash_complete"}) is None


@pytest.mark.usefixtures("unmeasured")
def test_git_is_begun_before_click_is_imported(repo: Clone) -> None:
    """Else the longest import would come first, and git with nothing to do."""
    code = (
        "import sys\nfrom gitgate.cli import headstart, process\n"
        "def begin(args, env):\n    print('click' in sys.modules)\n"
        "headstart.head_start = begin\nprocess.run()"
    )
    said = subprocess.run([sys.executable, "-c", code, "list"], cwd=repo.path, capture_output=True, text=True)
    assert said.stdout.startswith("False\n"), said.stderr


@pytest.mark.usefixtures("unmeasured")
def test_a_list_loads_no_more_than_it_needs(repo: Clone, ask: Ask) -> None:
    """Records, documents, policies and conversations are for verbs about one gate; their libraries even more so."""
    ask("Which?")
    code = (
        "import os, sys\nfrom gitgate.cli.process import run\n"
        "os._exit = lambda code: print(*sys.modules, sep='\\n')\nrun()"
    )
    said = subprocess.run([sys.executable, "-c", code, "list"], cwd=repo.path, capture_output=True, text=True)
    loaded = set(said.stdout.splitlines())
    assert "gitgate.service.listing" in loaded, said.stderr
    core = {f"gitgate.core.{room}" for room in ("codec", "documents", "fold", "model", "policy", "talks")}
    assert loaded.isdisjoint(core | {"gitgate.store.records", "json", "pygit2", "git", "yaml", "asyncio"})


def test_an_error_is_said_as_ever(cli: Command, tmp_path: Path) -> None:
    """Outside a repository, and with flags that do not exist; what was begun is ended without a warning."""
    assert "is not in a git repository" in cli.quick("list", cwd=tmp_path, code=1).err
    assert "--nonsense" in cli.quick("list", "--nonsense", cwd=tmp_path, code=2).err
    gc.collect()


def test_a_directory_that_is_gone(tmp_path: Path) -> None:
    """Nothing is begun there; the verb says what it makes of it."""
    gone = tmp_path / "gone"
    code = (
        "import os, sys; from gitgate.cli.headstart import head_start\n"
        "os.rmdir(sys.argv[1]); print(head_start(['list'], dict(os.environ)))"
    )
    gone.mkdir()
    said = subprocess.run([sys.executable, "-c", code, gone], cwd=gone, capture_output=True, text=True)
    assert said.stdout == "None\n", said.stderr


def test_a_deadline_acted_on_while_listing(cli: Command, repo: Clone, ask: Ask) -> None:
    """The list began to read before the gate's own deadline moved its ref; it shows what came of it."""
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
