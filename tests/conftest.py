"""Test bench: a sealed environment around every test, real repositories, and the command run three ways.

Nothing of the machine reaches a test: not its home, its git configuration, its dates, its editor, nor its network.
Nobody has an identity until a test asks for one: `person`, or any fixture that holds a repository.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from zlib import crc32

import hypothesis
import pygit2
import pytest
from pygit2.enums import ConfigLevel

from gitgate import context
from gitgate.context import Desk, open_desk
from support.resuming import Clock, Seat
from support.servers import HttpServer, SshServer, http_server, ssh_server
from support.testbed.alike import SUITES
from support.testbed.command import Command
from support.testbed.loaded import LOADED
from support.testbed.remembered import Remembered
from support.testbed.repositories import PATTERNS, Clone, clone_repository, make_clone, make_server, run_git
from support.testbed.seal import LoopbackSocket, environment, write_global_config
from support.testbed.terminal import Terminal

# The same examples in every run, so that a failure is repeated by running the test again, on whichever machine.
hypothesis.settings.register_profile(
    "repeatable", max_examples=40, derandomize=True, database=None, deadline=None, print_blob=True
)
# What `.ci/run` tries of each property.
hypothesis.settings.register_profile("many", hypothesis.settings.get_profile("repeatable"), max_examples=200)
hypothesis.settings.register_profile(
    "thorough", max_examples=2000, database=None, deadline=None, print_blob=True
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

LEVELS = (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL, ConfigLevel.PROGRAMDATA)


# What is collected stays until the end: Python need not look through it for what can be freed, neither now nor later.
gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


# Where files are in memory. Tests make and remove a hundred thousand small ones, which a disk makes half of their time.
MEMORY = Path("/dev/shm")
MOST_FILES = (
    4 << 30
)  # four times what the default tests leave behind; the slow ones may leave more than there is memory


def pytest_configure(config: pytest.Config) -> None:
    """A shell starts what runs behind it deaf to Ctrl-C, and so would every command be that a test interrupts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    chosen = config.option.basetemp or os.environ.get("PYTEST_DEBUG_TEMPROOT")
    if not chosen and config.option.markexpr == "not slow" and holds_tests(MEMORY):
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)
        config.stash[IN_MEMORY] = True


IN_MEMORY = pytest.StashKey[bool]()


def holds_tests(folder: Path) -> bool:
    """Whether there is room for all that tests write, and what they write there may be run."""
    try:
        there = os.statvfs(folder)
    except OSError:
        return False
    roomy = there.f_bavail * there.f_frsize > MOST_FILES
    return roomy and not there.f_flag & os.ST_NOEXEC and os.access(folder, os.W_OK | os.X_OK)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Memory is given back, unless there is something to look at."""
    factory: pytest.TempPathFactory | None = getattr(session.config, "_tmp_path_factory", None)
    if exitstatus == 0 and factory is not None and session.config.stash.get(IN_MEMORY, False):
        shutil.rmtree(factory.getbasetemp(), ignore_errors=True)


# What some tests start beside git, Python, a shell and the tools that git's own scripts use.
PROGRAMS = ("bash", "setsid", "ssh", "ssh-keygen")


def missing_programs() -> list[str]:
    return [program for program in PROGRAMS if shutil.which(program) is None]


@cache
def may_make_machines() -> bool:
    """Whether this account may make networks and disks that only some processes see."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-nm", "true"], capture_output=True).returncode == 0


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Which tests are left out is said at once, not only counted."""
    missing = missing_programs()
    said = [f"left out: tests that need {', '.join(missing)}, not found on PATH"] if missing else []
    if config.option.markexpr != "not slow" and not may_make_machines():
        said.append("left out: tests that make networks and disks of their own, which this account may not")
    return said


def pytest_xdist_auto_num_workers() -> int | None:
    """One more than there are processors: a test waits for git or for time in a fifth of its time."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return (
        len(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)) + 1
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sample",
        type=int,
        default=1,
        metavar="N",
        help="run one of N tests, always the same ones: by their names",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`--sample N` leaves out all but a part. A test that `needs` a program is deselected where that is missing, unless
    GITGATE_TEST_PROGRAMS=all wants them all run.
    """
    every = config.getoption("--sample")
    others = [item for item in items if crc32(item.nodeid.encode()) % every]
    if others:
        items[:] = [item for item in items if item not in set(others)]
        config.hook.pytest_deselected(items=others)
    for item in items:
        for wanted in needed(item) - set(PROGRAMS):
            raise pytest.UsageError(f"{item.nodeid} needs {wanted!r}; expected one of {', '.join(PROGRAMS)}")
    machines = [item for item in items if item.get_closest_marker("machine")]
    if machines and not may_make_machines():
        leave_out(config, items, machines)
    missing = set(missing_programs())
    if not missing or os.environ.get("GITGATE_TEST_PROGRAMS") == "all":
        return
    leave_out(config, items, [item for item in items if needed(item) & missing])


def leave_out(config: pytest.Config, items: list[pytest.Item], which: list[pytest.Item]) -> None:
    items[:] = [item for item in items if item not in which]
    config.hook.pytest_deselected(items=which)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before what a module's own fixtures make."""
    PATTERNS.alike = item.path.parent.name in SUITES and item.get_closest_marker("plain_names") is None


def needed(item: pytest.Item) -> set[str]:
    return {str(program) for mark in item.iter_markers("needs") for program in mark.args}


SLOW_THROUGHOUT = re.compile(rb"^pytestmark = .*\bslow\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A module whose tests are all slow is not even loaded for the others: they are a quarter of all there are."""
    if config.option.markexpr != "not slow" or not re.fullmatch(r"test_\w+\.py", collection_path.name):
        return None
    return True if SLOW_THROUGHOUT.search(collection_path.read_bytes()) else None


def pytest_make_parametrize_id(val: object) -> str | None:
    """Bytes name a case by what they look like: pytest puts names into the environment, where no null byte fits."""
    if not isinstance(val, bytes):
        return None
    return repr(val if len(val) <= 24 else val[:24] + b"...")[2:-1]


@pytest.fixture(scope="session")
def remembered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remembered]:
    """What holds for all tests of a process. It is one fixture: each that every test has costs all of them time."""
    PATTERNS.folder = tmp_path_factory.mktemp("patterns")
    memory = Remembered()
    with pytest.MonkeyPatch.context() as patch:
        # Within this process nothing leaves the machine either.
        patch.setattr(socket, "socket", LoopbackSocket)
        memory.install(patch)
        # What is the same in every test is set once.
        sealed = environment(Path("home"))
        for name in os.environ.keys() - sealed.keys():
            patch.delenv(name)
        for name, value in sealed.items():
            patch.setenv(name, value)
        yield memory
    # The process that `cli.forked` forks from ends with the tests.
    LOADED.end()
    # What tests started beside them writes its coverage a moment after they are over, and half a file spoils them all.
    if any(name.startswith("COVERAGE_") for name in os.environ):
        time.sleep(3)


NUMBERS = count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the test's own. Pytest's looks at all the folders there are before it takes a number."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    return new_folder(tmp_path_factory, name)


def new_folder(factory: pytest.TempPathFactory, name: str) -> Path:
    """As the factory's own, which first makes sure that no name leads out of its folder."""
    folder = factory.getbasetemp() / f"{name}{next(NUMBERS)}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(autouse=True)
def home(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, remembered: Remembered
) -> Path:
    """The seal: a fresh home, and no other variable, directory or configuration than a test was given."""
    remembered.said.clear()
    home = new_folder(tmp_path_factory, "home")
    sealed = environment(home)
    for name in os.environ.keys() - sealed.keys():
        monkeypatch.delenv(name)
    for name, value in sealed.items():
        if os.environ.get(name) != value:
            monkeypatch.setenv(name, value)
    write_global_config(home)
    monkeypatch.setattr(context, "PROC", None)
    empty = home / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    for level in LEVELS:  # libgit2 remembers where it looked first, and would go on reading the real home.
        pygit2.settings.search_path[level] = str(home if level == ConfigLevel.GLOBAL else empty)
    return home


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process loads is its own: one whose coverage is measured loads modules for that as well."""
    for name in [name for name in os.environ if name.startswith(("COVERAGE_", "COV_CORE_"))]:
        monkeypatch.delenv(name)


@dataclass(frozen=True)
class Person:
    """Who is at the keyboard."""

    name: str = "Ada Lovelace"
    email: str = "ada@example.org"

    def sit_down(self, home: Path) -> None:
        """Become the one that git on this machine takes everything to be from."""
        write_global_config(home, f"[user]\n\tname = {self.name}\n\temail = {self.email}\n")


@pytest.fixture
def person(home: Path) -> Person:
    """Somebody with a name and an address in git's configuration."""
    ada = Person()
    ada.sit_down(home)
    return ada


@pytest.fixture
def nobody(person: Person, home: Path) -> None:
    """Take the identity away again, after the repositories that a test asked for before were made."""
    write_global_config(home)


@pytest.fixture
def git() -> Callable[..., str]:
    """Run plain git where the test stands (or in `cwd`); standard output without its last newline."""

    def run(*args: str, cwd: Path | None = None, input: str | bytes = b"", check: bool = True) -> str:
        return Clone(cwd or Path.cwd()).git(*args, input=input, check=check)

    return run


@pytest.fixture
def repo(person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    """A repository with one commit on `main` and no remote; the test stands in it."""
    clone = make_clone(tmp_path / "repo")
    monkeypatch.chdir(clone.path)
    return clone


@pytest.fixture
def bare(person: Person, tmp_path: Path) -> Clone:
    """A bare server repository that has one commit on `main`."""
    return make_server(tmp_path / "server.git")


@pytest.fixture
def clone_of(tmp_path: Path) -> Callable[..., Clone]:
    """Clone a repository under a name: `clone_of(bare, "bob")`; further arguments go to `git clone`."""

    def clone(source: Clone, name: str = "clone", *args: str) -> Clone:
        if not args:
            return clone_repository(source.path, tmp_path / name)
        run_git("clone", "-q", *args, "--", str(source.path), str(tmp_path / name), cwd=tmp_path)
        return Clone(tmp_path / name)

    return clone


@pytest.fixture
def cli() -> Command:
    """The command: `cli("list", "--json")` as a process, `cli.quick(…)` within this one."""
    return Command()


@pytest.fixture
def pty_cli() -> Iterator[Callable[..., Terminal]]:
    """The command in front of a terminal: `with`-less, `pty_cli("respond", id).expect("Which?")`."""
    with ExitStack() as open_terminals:

        def start(*args: str, **how: object) -> Terminal:
            return open_terminals.enter_context(Terminal(*args, **how))  # type: ignore[arg-type]

        yield start


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    """A real sshd on loopback. Whoever asks for it is marked `slow`: a fresh machine has none."""
    with ssh_server(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def web(tmp_path: Path) -> Iterator[HttpServer]:
    """A real `git http-backend` that serves what is below the test's folder."""
    with http_server(tmp_path) as server:
        yield server


@pytest.fixture
def desks() -> Iterator[Callable[[Clone], Desk]]:
    """A desk at a clone, for what is done there without the command."""
    opened: list[Desk] = []

    def at(clone: Clone) -> Desk:
        opened.append(open_desk(clone.path, dict(os.environ)))
        return opened[-1]

    yield at
    for desk in opened:
        desk.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ann(bare: Clone, clone_of: Callable[..., Clone], clock: Clock) -> Iterator[Seat]:
    with Seat(clone_of(bare, "ann"), clock) as seat:
        yield seat


@pytest.fixture
def bob(bare: Clone, clone_of: Callable[..., Clone], clock: Clock) -> Iterator[Seat]:
    with Seat(clone_of(bare, "bob"), clock) as seat:
        yield seat


@pytest.fixture
def alone(repo: Clone, clock: Clock) -> Iterator[Seat]:
    """A repository without any remote."""
    with Seat(repo, clock) as seat:
        yield seat
