"""Agents run bounded, apart from us, and never longer than the one who has the right to run them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gitgate.agents.agent import Launch, ProcessEnding
from gitgate.agents.process import begin, recall, run_launch
from gitgate.errors import Conflict
from support import PATIENCE

ENV = {"PATH": os.environ["PATH"], "WORD": "hello"}


def launch(tmp_path: Path, script: str, *, stdin: bytes = b"", timeout: float = 20) -> Launch:
    return Launch(("sh", "-c", script), tmp_path, ENV, tmp_path / "folder", stdin, {}, timeout)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        said = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return not Path("/proc/self").exists()  # where there is no such folder, the signal said enough
    except ProcessLookupError:
        return False
    return said.rpartition(")")[2].split()[0] != "Z"


def soon(place: Path) -> str:
    """The content of a file that a process is about to write."""
    until = time.monotonic() + PATIENCE
    while not (place.exists() and place.read_text().endswith("\n")):
        assert time.monotonic() < until, f"{place.name} was never written"
        time.sleep(0.01)
    return place.read_text()


def gone(pid: int) -> bool:
    until = time.monotonic() + PATIENCE
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not is_alive(pid)


def test_output_and_exit_code_come_back(tmp_path: Path) -> None:
    """Input from bytes, both outputs apart, the environment that was given and nothing else."""
    ended = run_launch(
        launch(tmp_path, 'cat; echo "$WORD"; echo talk >&2; env | wc -l >&2; exit 3', stdin=b"given\n")
    )
    assert (ended.ending, ended.code, ended.out) == (ProcessEnding.EXITED, 3, b"given\nhello\n")
    assert ended.err.startswith(b"talk\n")
    assert int(ended.err.split()[1]) <= 5
    assert recall(tmp_path / "folder") == ended


def test_nothing_of_our_stdio_is_inherited(tmp_path: Path) -> None:
    """Without input it reads an end at once, and it holds no descriptor of ours."""
    ended = run_launch(launch(tmp_path, "cat; ls /dev/fd"))
    assert set(ended.out.split()) <= {b"0", b"1", b"2", b"3"}
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o700


@pytest.mark.slow
def test_a_run_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    """Also what ignores the polite signal, and what left its process group."""
    script = f"trap '' TERM; setsid sleep 60 & echo $! > {tmp_path}/stray; sleep 60 & echo $! > {tmp_path}/child; wait; wait; sleep 60"
    started = time.monotonic()
    ended = run_launch(launch(tmp_path, script, timeout=1), grace=0.5)
    assert (ended.ending, ended.code) == (ProcessEnding.TIMED_OUT, 137)
    assert time.monotonic() - started < 50
    assert gone(int(soon(tmp_path / "child")))
    assert gone(int(soon(tmp_path / "stray")))


def test_what_it_leaves_running_ends_with_it(tmp_path: Path) -> None:
    """An agent that exits leaves no server behind."""
    ended = run_launch(launch(tmp_path, f"sleep 60 & echo $! > {tmp_path}/child; exit 0"))
    assert (ended.ending, ended.code) == (ProcessEnding.EXITED, 0)
    assert gone(int(soon(tmp_path / "child")))


def test_a_runner_can_look_and_then_stop_it(tmp_path: Path) -> None:
    """Between two looks the runner renews its claim; a claim that is lost stops the agent."""
    running = begin(launch(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 60"))
    pid = int(soon(tmp_path / "pid"))
    assert running.wait(0.05) is None
    ended = running.stop()
    assert (ended.ending, ended.code) == (ProcessEnding.STOPPED, 128 + signal.SIGTERM)
    assert gone(pid)


RUNNER = """
import sys, time
from pathlib import Path
from gitgate.agents.agent import Launch
from gitgate.agents.process import begin
place = Path(sys.argv[1])
begin(Launch(("sh", "-c", f"echo $$ > {place}/pid; exec sleep 60"), place, {"PATH": "/usr/bin:/bin"}, place / "folder"))
time.sleep(60)
"""


def test_an_agent_does_not_outlive_its_runner(tmp_path: Path) -> None:
    """A runner killed outright takes its agent with it: otherwise a second one could be started beside it."""
    top = Path(__file__).parents[2]
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(tmp_path)], env={**ENV, "PYTHONPATH": str(top)}
    )
    pid = int(soon(tmp_path / "pid"))
    assert is_alive(pid)
    runner.kill()
    runner.wait()
    assert gone(pid)
    until = time.monotonic() + PATIENCE
    while (ended := recall(tmp_path / "folder")) is None and time.monotonic() < until:
        time.sleep(0.01)
    assert ended is not None
    assert ended.ending is ProcessEnding.STOPPED


def test_a_keeper_killed_outright_leaves_no_agent(tmp_path: Path) -> None:
    """And its runner is told that the agent was stopped."""
    running = begin(launch(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 60"))
    pid = int(soon(tmp_path / "pid"))
    running.keeper.kill()
    ended = running.wait(PATIENCE)
    assert ended is not None
    assert (ended.ending, ended.code) == (ProcessEnding.STOPPED, 137)
    assert gone(pid)


def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    ended = run_launch(Launch(("no-such-program-here",), tmp_path, ENV, tmp_path / "folder"))
    assert (ended.ending, ended.code) == (ProcessEnding.UNSTARTABLE, 127)
    assert ended.err == b"no-such-program-here: No such file or directory\n"


def test_a_folder_is_used_once(tmp_path: Path) -> None:
    """An earlier start's ending is never read as this one's."""
    run_launch(launch(tmp_path, "true"))
    with pytest.raises(Conflict, match="already started"):
        run_launch(launch(tmp_path, "true"))


def test_a_detached_program_outlives_its_starter(tmp_path: Path) -> None:
    """It has a session of its own, and its talk is in the log."""
    log = tmp_path / "logs" / "runner.log"
    starter = (
        "import sys; from pathlib import Path; from gitgate.store.git.programs import detach;"
        "script = 'for n in $(seq 500); do [ -e go ] && break; sleep 0.02; done; ps -o sid= -p $$; echo done';"
        "detach(['sh', '-c', script], Path(sys.argv[2]), {'PATH': '/usr/bin:/bin'}, Path(sys.argv[1]))"
    )
    env = {**ENV, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([sys.executable, "-c", starter, log, tmp_path], env=env, check=True, capture_output=True)
    assert log.read_text() == ""
    (tmp_path / "go").touch()
    until = time.monotonic() + PATIENCE
    while "done" not in log.read_text() and time.monotonic() < until:
        time.sleep(0.02)
    assert int(log.read_text().split()[0]) != os.getsid(0)
    assert log.stat().st_mode & 0o777 == 0o600


def test_the_order_holds_no_environment(tmp_path: Path) -> None:
    """Secrets of the environment are not written into the folder."""
    run_launch(launch(tmp_path, "true"))
    order = (tmp_path / "folder" / "order.json").read_text()
    assert set(json.loads(order)) == {"argv", "cwd", "timeout", "grace", "lifeline"}
