"""What a machine keeps beside the record: something else in a note's place, or of another kind, is no note, and nobody waits for it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import gitgate
from gitgate.context import machine
from gitgate.gates.leases import read_sighting
from gitgate.store import BadNote, parse_note, read_local, read_local_note
from gitgate.store.index import Index
from support.deciding import gate_of
from support.resuming import Seat
from support.testbed.command import Command
from support.testbed.repositories import Clone

STATE = Path(".git/gitgate")


def pipe(place: Path) -> None:
    os.mkfifo(place)


def folder(place: Path) -> None:
    place.mkdir()
    (place / "x").write_text("{}")


def device(place: Path) -> None:
    place.symlink_to("/dev/zero")


def bound(place: Path) -> None:
    """A socket, as a program leaves it that has ended."""
    before = Path.cwd()
    os.chdir(place.parent)  # its name may be long
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(place.name)
    finally:
        os.chdir(before)


NO_FILES = (pipe, folder, device, bound)
WRONG = [
    "",
    "null",
    "[]",
    "5",
    '"x"',
    "{",
    '{"gate": 5}',
    "[" * 100_000,
    '{"x": ' * 50_000,
    "\xff\xfe",
    '{"pid": "x"}',
]


@pytest.mark.parametrize("put", NO_FILES)
def test_only_a_file_is_read(tmp_path: Path, put: Callable[[Path], None]) -> None:
    """What else is there is an error at once: nobody writes into a pipe, and a device has no end."""
    put(tmp_path / "note")
    with pytest.raises(OSError):  # noqa: PT011 - whichever the system has for it
        read_local(tmp_path / "note")
    with pytest.raises(OSError):  # noqa: PT011
        read_local_note(tmp_path / "note")


@pytest.mark.parametrize("text", WRONG)
def test_only_what_it_needs_is_a_note(text: str) -> None:
    """An object, with each field of its kind; JSON has more than that."""
    with pytest.raises(ValueError):  # noqa: PT011 - of JSON or ours
        parse_note(text.encode("latin-1"), gate=str, pid=int)
    assert parse_note(b'{"gate": "x", "pid": 5, "more": []}', gate=str, pid=int)["more"] == []
    with pytest.raises(BadNote):
        parse_note(b'{"gate": "x"}', gate=str, pid=int)


@pytest.fixture
def used(repo: Clone, cli: Command) -> Clone:
    """A clone in which somebody has asked, answered and looked around."""
    first = cli.quick("ask", "Which?", cwd=repo.path, code=0).out.strip()
    cli.quick("ask", "And when?", cwd=repo.path, code=0)
    cli.quick("respond", first, "Postgres", cwd=repo.path, code=0)
    return repo


NOTES = [
    "index.sqlite",
    "asked.jsonl",
    "listening",
    "desk",
    "told-by-branch",
    "session.key",
    "places/{gate}.json",
    "synced",
]


@pytest.mark.slow
@pytest.mark.parametrize("put", [pipe, folder])
@pytest.mark.parametrize("name", NOTES)
def test_no_command_waits_for_one(used: Clone, cli: Command, name: str, put: Callable[[Path], None]) -> None:
    """A person's own commands go on without it."""
    (gate,) = (ref.rpartition("/")[2] for ref in list(used.refs("refs/hitl/open"))[:1])
    place = used.path / STATE / name.format(gate=gate)
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir():
        return
    place.unlink(missing_ok=True)
    put(place)
    for words in (["list"], ["status"], ["show", gate], ["list", "--all", "--json"], ["ask", "One more?"]):
        said = cli(*words, cwd=used.path)
        assert said.code == 0, said.err
        assert "Traceback" not in said.err
        assert "this is a bug" not in said.err


@pytest.mark.slow
@pytest.mark.parametrize("text", [*WRONG[:7], '{"directory": 5, "run": 5}'])
@pytest.mark.parametrize("name", ["asked.jsonl", "listening", "places/{gate}.json"])
def test_no_command_believes_one_of_another_kind(used: Clone, cli: Command, name: str, text: str) -> None:
    """As if it were not there."""
    (gate,) = (ref.rpartition("/")[2] for ref in list(used.refs("refs/hitl/open"))[:1])
    place = used.path / STATE / name.format(gate=gate)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, "latin-1")
    for words in (["list"], ["status"], ["show", gate], ["ask", "One more?"]):
        said = cli.quick(*words, cwd=used.path)
        assert said.code == 0, said.err


def test_a_pipe_in_the_indexs_place_is_made_way_for(tmp_path: Path) -> None:
    """As where it is damaged: it is only to be faster."""
    place = tmp_path / "index.sqlite"
    pipe(place)
    one = Index(place, "0" * 40)
    assert one.known("tips") == {}
    said = one.close()
    assert "is no regular file" in said
    assert place.is_file() or not place.exists()


def test_notes_that_are_pipes_are_none(alone: Seat) -> None:
    """Of who asked, who listens, and which lease was seen."""
    gate = gate_of(alone)
    state = alone.desk.repo.state_dir
    for name in ("asked.jsonl", "listening", "sighting"):
        (state / name).unlink(missing_ok=True)
        pipe(state / name)
    assert machine.find_presence(alone.desk, gate.id) is None
    assert machine.attentive_ones(alone.desk) == []
    assert read_sighting(state / "sighting") is None


DIES = """
import os, signal, sys
from gitgate.cli.main import main
os.fsync = lambda _number: os.kill(os.getpid(), signal.SIGKILL)
main(sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_what_a_killed_export_left_goes_with_the_next_one(
    repo: Clone, cli: Command, force: tuple[str, ...]
) -> None:
    """Of the same file; what another export is writing, of another file or by a process that runs, stays."""
    cli.quick("ask", "Which?", cwd=repo.path, code=0)
    before = {entry.name for entry in repo.path.iterdir()}
    killed = subprocess.run(
        [sys.executable, "-c", DIES, "export", "-o", "audit"], cwd=repo.path, timeout=60, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    (left,) = {entry.name for entry in repo.path.iterdir()} - before
    assert left.startswith(".gates-")
    begun, _, _ = left.rpartition("-")
    running, other = (
        repo.write(f"{begun}-{os.getppid()}", "x"),
        repo.write(".gates-0123456789ab-host-99999999", "x"),
    )
    cli.quick("export", "-o", "audit", *force, cwd=repo.path, code=0)
    now = {entry.name for entry in repo.path.iterdir()} - before
    assert now == {"audit", running.name, other.name}


def test_who_reads_a_note_reads_a_file() -> None:
    """A rule of the house: nothing takes JSON straight from a file's text, where a pipe could stand in its place."""
    straight = re.compile(r"json\.loads\([^\n]*\.read_(?:text|bytes)\(")
    package = Path(gitgate.__file__).parent
    found = {
        ".".join(file.relative_to(package).with_suffix("").parts)
        for file in package.rglob("*.py")
        if straight.search(file.read_text(encoding="utf-8"))
    }
    # A keeper's order, a forge's event, what pip noted, a key that a person names, a parcel that was looked at before, and
    # the note of what stands aside, which is never to be guessed.
    assert found <= {
        "agents.keeper",
        "cli.jobs.__init__",
        "setup.workflows",
        "acts.sessions",
        "sharing.parcel",
        "store.work.aside",
    }


def test_json_that_is_deep_is_an_error_of_a_note() -> None:
    """Not one of Python."""
    with pytest.raises(ValueError):  # noqa: PT011
        parse_note(json.dumps({"a": 1}).replace("1", "[" * 200_000).encode())
