"""The index makes long lists faster, and changes nothing else: whatever is wrong with it, a list says what git says."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gitgate import gates as listing
from gitgate.context import open_desk, targets
from gitgate.context.targets import all_summaries, how_many, summaries
from gitgate.gates import Filter, history
from gitgate.model.gate import Gate
from gitgate.record import Summary
from gitgate.sharing.archiving import fold_closed
from gitgate.store import index
from gitgate.store.index import RECORDS, TIPS, Index
from support import PATIENCE
from support.deciding import gate_of, say
from support.resuming import Clock, Seat
from support.testbed.command import Command

ZERO = "0" * 40


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two gates are enough for the index."""
    monkeypatch.setattr(targets, "MANY", 2)


@pytest.fixture
def read_anew(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The gates whose commits were read although the index was used."""
    found: list[str] = []
    real = index.read_tips

    def read(refs: object, names: list[bytes]) -> list[Summary]:
        found.extend(name.decode().partition("\t")[0] for name in names)
        return real(refs, names)  # type: ignore[arg-type]

    monkeypatch.setattr(index, "read_tips", read)
    return found


def listed(seat: Seat) -> tuple[list[Summary], list[str]]:
    """What a command lists, sorted, and what it tells beside it; held to what git alone says."""
    desk = seat.desk
    found = sorted(all_summaries(desk))
    desk.close()
    assert found == sorted(summaries(seat.desk))
    return found, desk.told


def place(seat: Seat) -> Path:
    return seat.desk.repo.index


def three(seat: Seat) -> list[Gate]:
    gates = [gate_of(seat, title=f"Gate {number}") for number in range(3)]
    assert [one.title for one in listed(seat)[0]]
    return gates


def row(number: int) -> bytes:
    return f"{number:010d}\t{number:040x}\twords".encode()


def test_only_what_is_new_is_read(alone: Seat, read_anew: list[str]) -> None:
    """Nothing of a second list; then the gate that changed, the new one, and neither the one that is gone nor the others."""
    first, second, _ = three(alone)
    listed(alone)
    assert read_anew == []
    say(alone, first)
    new = gate_of(alone, title="Größer 四")
    alone.clone.git("update-ref", "-d", f"refs/hitl/open/{second.id}")
    found, told = listed(alone)
    assert sorted(read_anew) == sorted([first.id, new.id])
    assert len(found) == 3
    read_anew.clear()
    assert listed(alone) == (found, [])
    assert (read_anew, told) == ([], [])


@pytest.mark.slow
def test_a_commit_under_another_name_is_another_thing(alone: Seat, read_anew: list[str]) -> None:
    """A ref that leads to another gate's commit is broken, with the index as without; and stays so, read each time."""
    first = three(alone)[0]
    alone.clone.git("update-ref", "refs/hitl/open/bcdefghjkm", first.tip)
    for _ in range(2):
        found = {one.id: one.state for one in listed(alone)[0]}
        assert (found["bcdefghjkm"], found[first.id]) == ("broken", "awaiting")
    assert read_anew == ["bcdefghjkm", "bcdefghjkm"]


def test_few_gates_need_none(alone: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no file; and one of a repository that had many is not used, nor SQLite loaded."""
    gate_of(alone)
    listed(alone)
    assert not place(alone).exists()
    gate_of(alone)
    listed(alone)
    assert how_many(place(alone)) == 2
    monkeypatch.setattr(targets, "MANY", 3)
    monkeypatch.setattr(index, "read_open", None)
    assert len(listed(alone)[0]) == 2


def flip(where: float) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        data = bytearray(file.read_bytes())
        data[int(where * len(data))] ^= 0x55
        file.write_bytes(data)

    return change


def row_changed(file: Path) -> None:
    """By a byte, without its sum; SQLite itself finds nothing wrong."""
    with closing(sqlite3.connect(file)) as base, base:
        base.execute("UPDATE tips SET row = CAST(replace(CAST(row AS TEXT), 'Gate 1', 'Gate 7') AS BLOB)")


def row_emptied(file: Path) -> None:
    with closing(sqlite3.connect(file)) as base, base:
        base.execute("UPDATE tips SET row = NULL")


def older(file: Path) -> None:
    with closing(sqlite3.connect(file)) as base, base:
        base.execute("UPDATE about SET said = CAST('0.0.1 1' AS BLOB)")


def without_a_table(file: Path) -> None:
    with closing(sqlite3.connect(file)) as base, base:
        base.execute("DROP TABLE tips")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (row_changed, "is damaged"),
        (older, "is from another version"),
        pytest.param(lambda file: file.write_bytes(b"x" * 5000), "is damaged", marks=pytest.mark.slow),
        pytest.param(
            lambda file: file.write_bytes(file.read_bytes()[:6000]), "is damaged", marks=pytest.mark.slow
        ),
        pytest.param(row_emptied, "is damaged", marks=pytest.mark.slow),
        pytest.param(without_a_table, "is damaged", marks=pytest.mark.slow),
    ],
)
def test_what_is_unfit_is_made_anew(
    alone: Seat, read_anew: list[str], spoil: Callable[[Path], None], why: str
) -> None:
    """The list is right at once; it is said once, and the next list reads nothing twice."""
    three(alone)
    spoil(place(alone))
    assert listed(alone)[1] == [f"{place(alone)}, which only makes long lists faster, {why}: it is made anew"]
    read_anew.clear()
    listed(alone)
    listed(alone)
    assert listed(alone)[1] == []
    assert read_anew == []


@pytest.mark.slow
def test_no_flipped_byte_is_believed(alone: Seat, tmp_path: Path) -> None:
    """Wherever a byte is another one, a list says what git says, and so does the one after it."""
    three(alone)
    kept = tmp_path / "kept"
    shutil.copy(place(alone), kept)
    for number in range(40):
        shutil.copy(kept, place(alone))
        flip(number / 40)(place(alone))
        listed(alone)
        assert listed(alone)[1] == []


def test_a_python_without_sqlite_lists_as_well(alone: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    gate_of(alone)
    gate_of(alone)
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    assert len(listed(alone)[0]) == 2
    assert not place(alone).exists()


@pytest.mark.slow
def test_a_file_that_is_gone_is_no_matter(alone: Seat) -> None:
    three(alone)
    place(alone).unlink()
    assert listed(alone)[1] == []
    assert how_many(place(alone)) == 3


def test_one_that_is_in_use_is_done_without(alone: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process holds it: that is said, and nothing is waited for; afterwards it is used again."""
    three(alone)
    monkeypatch.setattr(index, "WAIT", 0.01)
    with closing(sqlite3.connect(place(alone), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert listed(alone)[1] == [f"{place(alone)} is held by another process: Git was read instead"]
        other.execute("ROLLBACK")
    assert listed(alone)[1] == []


def test_where_nothing_can_be_kept_git_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that may not be written, or is none: nothing fails, nothing is said, nothing is written."""
    (tmp_path / "file").write_text("")
    (tmp_path / "shut").mkdir(0o500)
    for folder in (tmp_path / "file", tmp_path / "shut"):
        one = Index(folder / "index.sqlite", ZERO)
        monkeypatch.setattr(
            index, "may_keep", lambda state: state.is_file()
        )  # as it is for whoever is not root
        assert one.known(TIPS) == {}
        one.learn(TIPS, [row(1)])
        assert one.close() == ""
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "shut"]


def test_a_damaged_one_that_may_not_be_written_is_done_without(
    alone: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list is right, and nobody is told that it is made anew: not where it is seen at once, nor where removing it fails."""
    three(alone)
    row_changed(place(alone))
    words = [
        f"{place(alone)}, which only makes long lists faster, is damaged: it may not be written, and Git was read instead"
    ]

    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(index, "may_keep", lambda _state: False)
    assert listed(alone)[1] == words
    monkeypatch.undo()
    monkeypatch.setattr(targets, "MANY", 2)
    monkeypatch.setattr(Path, "unlink", read_only)
    assert listed(alone)[1] == words


def test_one_that_is_just_being_made_is_not_damaged(tmp_path: Path) -> None:
    """SQLite has written its first page, and another process is about to make the tables."""
    file = tmp_path / "index.sqlite"
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("PRAGMA auto_vacuum = FULL")
        assert file.stat().st_size
        one = Index(file, ZERO)
        assert one.known(TIPS) == {}
        one.learn(TIPS, [row(1)])
        assert one.close() == ""
    assert list(one.known(TIPS).values()) == [row(1)]


def test_the_dead_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once most rows are of commits that nobody asks for; the file is smaller then, and its head says how many there are."""
    monkeypatch.setattr(index, "MOST_DEAD", 5)
    file = tmp_path / "index.sqlite"
    one = Index(file, ZERO)
    one.learn(TIPS, map(row, range(1000)))
    assert one.close() == ""
    size = file.stat().st_size
    kept = one.known(TIPS)
    assert (len(kept), how_many(file)) == (1000, 1000)
    one.drop_dead(TIPS, list(kept.values())[:600])
    assert (one.close(), how_many(file)) == ("", 1000)
    kept = one.known(TIPS)
    one.drop_dead(TIPS, list(kept.values())[:10])
    one.learn(TIPS, [row(5000)])
    assert (one.close(), how_many(file)) == ("", 11)
    assert list(one.known(TIPS).values()) == [*map(row, range(10)), row(5000)]
    assert file.stat().st_size < size / 2


@pytest.mark.slow
def test_figures_are_the_same(alone: Seat, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of open and archived gates; nothing is read of a record that was read before."""
    for number in range(4):
        gate = gate_of(alone, agent=f"agent{number % 2}")
        clock.pass_by(100 * number)
        if number:
            say(alone, gate)
    monkeypatch.setattr(targets, "MANY", 10)
    plain = history.statistics(alone.desk, by="agent")
    monkeypatch.setattr(targets, "MANY", 2)
    for _ in range(2):
        desk = alone.desk
        assert history.statistics(desk, by="agent") == plain
        desk.close()
    assert len(Index(place(alone), ZERO).known(RECORDS)) == 3
    desk = alone.desk
    desk.repo.git.records = None  # type: ignore[method-assign, assignment]
    assert history.statistics(desk, by="agent") == plain
    clock.pass_by(10_000_000)
    fold_closed(alone.desk)
    desk = alone.desk
    assert history.statistics(desk, by="agent") == plain
    assert sorted(listing.archived(desk, Filter(all=True))) == sorted(
        listing.archived(alone.desk, Filter(all=True))
    )
    desk.close()
    desk = alone.desk
    desk.records.commit = None  # type: ignore[method-assign, assignment]
    assert listing.archived(desk, Filter(all=True))


@pytest.mark.slow
def test_half_a_record_is_not_kept(alone: Seat, tmp_path: Path) -> None:
    """A shallow clone has the end of it: what is reckoned of that would be wrong once the rest is there."""
    for _ in range(3):
        say(alone, gate_of(alone))
    shallow = tmp_path / "shallow"
    alone.clone.git("init", "-q", str(shallow))
    source = alone.clone.path.as_uri()
    alone.clone.git(
        "-C", str(shallow), "fetch", "-q", "--depth=1", source, "refs/hitl/open/*:refs/hitl/open/*"
    )
    desk = open_desk(shallow, os.environ)
    history.statistics(desk)
    desk.close()
    assert Index(desk.repo.index, ZERO).known(RECORDS) == {}
    alone.clone.git(
        "-C", str(shallow), "fetch", "-q", "--unshallow", source, "refs/hitl/open/*:refs/hitl/open/*"
    )
    desk = open_desk(shallow, os.environ)
    assert history.statistics(desk) == history.statistics(alone.desk)
    desk.close()
    assert len(Index(desk.repo.index, ZERO).known(RECORDS)) == 3


WRITER = """
import sys
from gitgate.store.index import Index, TIPS
from pathlib import Path
start, step = int(sys.argv[2]), int(sys.argv[3])
print("begun", flush=True)
for round in range(int(sys.argv[4])):
    one = Index(Path(sys.argv[1]), "0" * 40)
    one.known(TIPS)
    numbers = range(start + round * step, start + (round + 1) * step)
    one.learn(TIPS, [f"{n:010d}\\t{n:040x}\\twords".encode() for n in numbers])
    if said := one.close():
        print(said, flush=True)
"""


def writer(file: Path, start: int, step: int, rounds: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", WRITER, str(file), *map(str, (start, step, rounds))]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_many_write_at_once(tmp_path: Path) -> None:
    """Two of three write the same. Nobody finds it damaged; what was not written because others did is read another time."""
    file = tmp_path / "index.sqlite"
    running = [writer(file, start, 20, 10) for start in (0, 0, 1000)]
    said = [one.communicate(timeout=PATIENCE)[0] for one in running]
    assert not [words for words in said if "anew" in words]
    one = Index(file, ZERO)
    kept = one.known(TIPS)
    assert set(kept.values()) <= {*map(row, range(200)), *map(row, range(1000, 1200))}
    assert kept
    assert one.close() == ""


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_it_sound(tmp_path: Path) -> None:
    """At whatever moment: each time the next one reads whole rows, and adds its own."""
    file = tmp_path / "index.sqlite"
    for number in range(8):
        killed = writer(file, 10_000 * (number + 1), 500, 10_000)
        assert killed.stdout is not None
        assert killed.stdout.readline() == "begun\n"
        time.sleep(0.02 * number)
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=PATIENCE)
        one = Index(file, ZERO)
        kept = one.known(TIPS)
        assert all(words == row(int(words[:10])) for words in kept.values())
        one.learn(TIPS, [row(number)])
        assert one.close() == ""
        assert row(number)[:51] in one.known(TIPS)


@pytest.mark.slow
@pytest.mark.usefixtures("unmeasured")
def test_a_short_list_loads_no_sqlite(alone: Seat) -> None:
    """It would cost more than it saves."""
    gate_of(alone)
    code = "import sys\nfrom gitgate.cli.main import main\nmain(['list'])\nprint([n for n in sys.modules if 'sqlite' in n or n.endswith('.index')])"
    said = subprocess.run(
        [sys.executable, "-c", code],
        cwd=alone.clone.path,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.splitlines()[-1] == "[]"
    assert len(said.stdout.splitlines()) == 3


def test_a_command_says_what_was_wrong(cli: Command, alone: Seat) -> None:
    """As a warning, once."""
    three(alone)
    with place(alone).open("r+b") as file:
        file.write(b"x" * 50)
        file.seek(60)
        file.write((targets.MANY + 5000).to_bytes(4, "big"))
    said = cli("list", cwd=alone.clone.path)
    assert "is damaged: it is made anew" in said.err
    assert "anew" not in cli("list", cwd=alone.clone.path).err
    assert len(said.out.splitlines()) == 4
