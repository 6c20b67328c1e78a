"""Test bed: the seal holds, and what stands on it works."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pygit2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Person, holds_tests
from gitgate.context import read_git_config
from gitgate.errors import NotARepository
from gitgate.store.git import begin_config
from gitgate.version import VERSION
from support.testbed.command import COMMAND, Command, Outcome
from support.testbed.loaded import LOADED
from support.testbed.repositories import Clone, GitError, make_clone, run_git
from support.testbed.terminal import Terminal

MARKERS = ("CLAUDE", "ANTHROPIC", "GITGATE", "GITHUB_", "GH_", "CI", "GIT_DIR", "GIT_WORK_TREE", "SSH_")


def test_nothing_of_the_machine_is_left_in_the_environment(home: Path) -> None:
    """No agent's marker, no CI, no repository of the caller; home is a fresh directory."""
    assert [name for name in os.environ if name.startswith(MARKERS)] == []
    assert Path.home() == home


def test_nobody_is_known_until_a_test_asks(git: Callable[..., str], home: Path) -> None:
    """Git has no identity and does not invent one from the host's name."""
    git("init", "-q")
    with pytest.raises(GitError, match="no email was given"):
        git("commit", "--allow-empty", "-m", "from nobody")


def test_a_person_is_the_author(repo: Clone, person: Person) -> None:
    """Whoever holds a repository has a name; libgit2 reads the same one as git does."""
    assert repo.git("log", "-1", "--format=%an <%ae> %ad", "--date=unix") == (
        f"{person.name} <{person.email}> 1767323045"
    )
    assert pygit2.Repository(repo.path).config["user.email"] == person.email


def test_a_person_can_leave(repo: Clone, nobody: None) -> None:
    """`nobody` takes the identity away and leaves the repository."""
    assert repo.git("config", "user.email", check=False) == ""
    assert repo.git("rev-list", "--count", "HEAD") == "1"


def test_a_clone_starts_where_its_server_is(bare: Clone, clone_of: Callable[..., Clone]) -> None:
    """A server, two clones, one push: the second clone sees it."""
    first, second = clone_of(bare, "first"), clone_of(bare, "second")
    made = first.commit("more", note="x\n")
    first.git("push", "-q")
    second.git("pull", "-q")
    assert second.refs("refs/heads")["refs/heads/main"] == made
    assert second.repository.top == second.path


@pytest.mark.parametrize("host", ["192.0.2.1", "example.org", "2001:db8::1"])
def test_no_socket_leaves_the_machine(host: str) -> None:
    """A connection to anywhere but loopback is refused before it is tried."""
    with socket.socket() as tried, pytest.raises(PermissionError, match="only loopback"):
        tried.connect((host, 443))


def test_loopback_works() -> None:
    """A server on loopback is reached: tests start their own."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(server.getsockname())
        assert client.getpeername() == server.getsockname()


@pytest.mark.parametrize("url", ["https://192.0.2.1/x.git", "ssh://git@192.0.2.1/x.git"])
def test_no_process_leaves_the_machine(git: Callable[..., str], url: str) -> None:
    """Git over https and ssh fails at once, without waiting for a network."""
    with pytest.raises(GitError):
        git("ls-remote", url)


@given(st.integers())
def test_properties_may_stand_on_the_seal(number: int) -> None:
    """A property test runs under the seal without a complaint about it."""
    assert int(str(number)) == number


def test_a_terminal_is_a_terminal() -> None:
    """A program in it sees a terminal of the size asked for, reads lines, and its exit status arrives."""
    script = "import os; print(os.get_terminal_size().columns); print('got', input('name? ')); exit(3)"
    with Terminal("-c", script, program=sys.executable, columns=77) as terminal:
        assert terminal.expect("name? ").strip() == "77"
        terminal.line("ada")
        terminal.expect("got ada")
        terminal.finish(code=3)


def test_a_terminal_notices_silence() -> None:
    """Words that never come fail the test within its time, and so does a line that nobody asks for."""
    with Terminal("-c", "input()", program=sys.executable) as terminal:
        with pytest.raises(pytest.fail.Exception, match="no 'never'"):
            terminal.expect("never", timeout=0.2)
        with pytest.raises(pytest.fail.Exception, match="no prompt for 'too soon'"):
            terminal.line("too soon", timeout=0.2)
        terminal.keys("\r")
        terminal.finish(code=0)


FORGETS = """\
import sys, termios, time
print("one moment")
for _ in range(2):
    time.sleep(0.2)
    termios.tcflush(0, termios.TCIFLUSH)
    print("got", input("name? "))
"""


def test_a_line_waits_for_its_prompt() -> None:
    """What a program forgets that was typed before its question stood there is not typed too soon."""
    with Terminal("-c", FORGETS, program=sys.executable) as terminal:
        terminal.expect("one moment")
        terminal.line("ada")
        terminal.line("bob")
        terminal.expect("got ada")
        terminal.expect("got bob")
        terminal.finish(code=0)


def test_a_child_is_sealed_too(home: Path) -> None:
    """A process that a test starts sees the same home and git configuration."""
    asked = "import os, pathlib; print(pathlib.Path.home(), os.environ['GIT_CONFIG_GLOBAL'])"
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    assert said.split() == [str(home), str(home / ".gitconfig")]


def test_the_command_runs_four_ways(cli: Command, pty_cli: Callable[..., Terminal]) -> None:
    """As a process, as one that was loaded before, within this one, and in front of a terminal: the same words and status."""
    said = f"git-gate {VERSION}\n"
    assert cli("--version") == cli.forked("--version") == cli.quick("--version") == Outcome(0, said, "")
    assert pty_cli("--version").finish(code=0) == said


def test_a_wrong_command_fails_alike(cli: Command) -> None:
    """The console script passes the exit code on; so do the quicker ways."""
    process, within = cli("--no-such-option"), cli.quick("--no-such-option")
    assert process == cli.forked("--no-such-option") == within
    assert (process.code, process.out) == (2, "")


def test_an_unexpected_exit_shows_what_was_said(cli: Command) -> None:
    """A test that expects another exit fails with both outputs in its message."""
    with pytest.raises(pytest.fail.Exception, match=r"(?s)exit 2, expected 0.*--- stderr\n.*no-such"):
        cli.quick("--no-such-option", code=0)


def test_git_finds_the_command(git: Callable[..., str]) -> None:
    """`git gate` is `git-gate`: it is on the PATH that a test sees."""
    assert git("gate", "--version") == f"git-gate {VERSION}"


def test_the_quick_way_takes_input_and_puts_everything_back(
    cli: Command, repo: Clone, tmp_path: Path
) -> None:
    """Standard streams, directory, arguments and environment are as they were."""
    before = (sys.stdin, sys.stdout, sys.stderr, sys.argv, Path.cwd(), dict(os.environ))
    cli.quick("--version", cwd=tmp_path, input="text", env={"GITGATE_COLOR": "never"})
    assert before == (sys.stdin, sys.stdout, sys.stderr, sys.argv, Path.cwd(), dict(os.environ))


SHOWN = """
import json, os, random, signal, sys
print(json.dumps([os.getcwd(), os.environ["HOME"], os.environ.get("ONLY"), sys.argv, sys.stdin.read(), random.random()]))
print("err", file=sys.stderr)
"""


@pytest.mark.slow
def test_what_was_loaded_before_is_a_process_all_the_same(
    home: Path, tmp_path: Path, cli: Command, unmeasured: None
) -> None:
    """Its directory, environment, arguments, streams and chance are its own, and so is how it ends; none sees the one before."""
    chances = set()
    for number in ("1", "2"):
        folder = tmp_path / number
        folder.mkdir()
        env = {**os.environ, "ONLY": number}
        done = LOADED.run(
            [str(COMMAND), "x"], cwd=folder, env=env, input=b"fed" + number.encode(), script=SHOWN
        )
        *said, chance = json.loads(done.out)
        assert said == [str(folder), str(home), number, ["-c", "x"], f"fed{number}"]
        assert (done.code, done.err) == (0, b"err\n")
        chances.add(chance)
    assert len(chances) == 2
    assert json.loads(cli.scripted(SHOWN).out)[2] is None
    assert cli.scripted("raise SystemExit(7)").code == 7
    assert cli.scripted("import os; os._exit(8)").code == 8
    assert cli.scripted("import os; os.kill(os.getpid(), 9)").code == -9
    failed = cli.scripted("1 / 0")
    assert (failed.code, "ZeroDivisionError" in failed.err) == (1, True)
    with pytest.raises(subprocess.TimeoutExpired):
        cli.scripted("import time; time.sleep(60)", timeout=0.2)
    assert cli.scripted("print('well')") == Outcome(0, "well\n", "")


def test_another_start_is_a_process_that_starts(cli: Command, unmeasured: None) -> None:
    """What Python reads when it starts was read already: such a process is no fork."""
    cli.forked("--version", code=0)
    assert LOADED.may_run({**os.environ, "TZ": "Asia/Tokyo"}) is False
    assert LOADED.may_run({**os.environ, "COVERAGE_PROCESS_START": "x"}) is False
    assert cli.forked("--version", env={"TZ": "Asia/Tokyo"}) == cli("--version")


def test_a_copied_repository_is_as_git_made_it(
    bare: Clone, clone_of: Callable[..., Clone], tmp_path: Path
) -> None:
    """Its files are taken for unchanged without being read, its origin is the one beside it, and nothing is broken."""
    made = [
        make_clone(tmp_path / "one"),
        clone_of(bare, "two"),
        clone_of(bare, "three"),
        make_clone(tmp_path / "four"),
    ]
    (tmp_path / "by-git").mkdir()
    run_git("clone", "-q", str(bare.path), str(tmp_path / "by-git"), cwd=tmp_path)
    for clone in made:
        clone.git("diff-files", "--quiet")
        assert clone.git("status", "--porcelain") == ""
        clone.git("fsck", "--strict")
    assert made[1].refs() == made[2].refs() == Clone(tmp_path / "by-git").refs()
    for name in ("config", "logs/HEAD", "HEAD", "packed-refs"):
        texts = {(tmp_path / place / ".git" / name).read_text() for place in ("two", "three", "by-git")}
        assert len(texts) == 1, name
    assert str(bare.path) in made[2].git("config", "remote.origin.url")


def test_a_server_that_was_changed_is_cloned_as_it_is(bare: Clone, clone_of: Callable[..., Clone]) -> None:
    """A copy would lack what was pushed meanwhile, or what its configuration does."""
    first = clone_of(bare, "first")
    told = first.commit("more", more="x")
    first.git("push", "-q", "origin", "main")
    assert clone_of(bare, "second").git("rev-parse", "HEAD") == told


def _another_setting(repo: Clone, home: Path) -> None:
    repo.git("config", "gitgate.priority", "high")


def _a_person(repo: Clone, home: Path) -> None:
    Person("Bob", "bob@example.org").sit_down(home)


def _a_file_of_settings(repo: Clone, home: Path) -> None:
    repo.write("more", "[gitgate]\n\tpriority = high\n")
    repo.git("config", "include.path", "../more")
    read_git_config(begin_config(repo.repository.git))
    repo.write("more", "[gitgate]\n\tpriority = low\n")


def _no_working_tree(repo: Clone, home: Path) -> None:
    repo.git("config", "core.bare", "true")


def _a_shallow_history(repo: Clone, home: Path) -> None:
    repo.write(".git/shallow", repo.git("rev-parse", "HEAD") + "\n")


def _no_repository(repo: Clone, home: Path) -> None:
    (repo.path / ".git" / "HEAD").unlink()


@pytest.mark.parametrize(
    "change",
    [_another_setting, _a_person, _a_file_of_settings, _no_working_tree, _a_shallow_history, _no_repository],
)
def test_what_git_said_is_kept_until_something_changes(
    change: Callable[[Clone, Path], None], repo: Clone, home: Path
) -> None:
    """The second time nobody is asked; after any change git itself is."""

    def told() -> object:
        try:
            return repo.repository, read_git_config(begin_config(repo.repository.git))
        except NotARepository as error:
            return str(error)

    before = told()
    assert asked_of_git(told) == 0
    change(repo, home)
    assert asked_of_git(told) > 0
    assert told() != before


def asked_of_git(does: Callable[[], object]) -> int:
    """How many processes it starts."""
    with mock.patch.object(subprocess, "Popen", wraps=subprocess.Popen) as started:
        does()
    return int(started.call_count)


def test_tests_are_kept_in_memory_where_they_fit_and_may_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere on the disk, where a missing, small or restricted place is not noticed."""
    plain = os.statvfs(tmp_path)
    values = list(plain)

    def said(**others: int) -> os.statvfs_result:
        names = (
            "f_bsize",
            "f_frsize",
            "f_blocks",
            "f_bfree",
            "f_bavail",
            "f_files",
            "f_ffree",
            "f_favail",
            "f_flag",
        )
        return os.statvfs_result(
            [others.get(name, value) for name, value in zip(names, values, strict=False)] + values[9:]
        )

    assert holds_tests(tmp_path / "none") is False
    for others, fits in (
        ({"f_bavail": 1 << 30, "f_frsize": 4096, "f_flag": 0}, True),
        ({"f_bavail": 1 << 10, "f_frsize": 4096, "f_flag": 0}, False),
        ({"f_bavail": 1 << 30, "f_frsize": 4096, "f_flag": os.ST_NOEXEC}, False),
    ):
        monkeypatch.setattr(os, "statvfs", lambda _folder, others=others: said(**others))
        assert holds_tests(tmp_path) is fits


@pytest.mark.slow
def test_a_test_that_needs_a_missing_program_is_left_out_and_said_so(tmp_path: Path) -> None:
    """By name, at the top; whoever wants all of them run has it run, to fail."""
    root = Path(__file__).parents[1]
    command = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "-p", "no:cacheprovider")

    def collected(**more: str) -> str:
        done = subprocess.run(
            [*command, "tests/test_release.py"],
            cwd=root, env={**os.environ, "PATH": str(tmp_path), **more}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout

    said = collected()
    assert "test_this_version_can_be_released" not in said
    assert "test_the_changelog_has_this_version" in said
    assert "deselected" in said
    assert "test_this_version_can_be_released" in collected(GITGATE_TEST_PROGRAMS="all")
