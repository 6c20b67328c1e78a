"""Search: earlier decisions by their words, wherever in a gate they stand, and whatever became of the index."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import gitgate
from gitgate.acts import answering
from gitgate.acts.answering import Manner, respond
from gitgate.audit import earlier
from gitgate.audit.earlier import SearchTerms, matched_in, needle, search, search_words, searched_text
from gitgate.context import Desk
from gitgate.context.targets import find_tip
from gitgate.errors import Usage
from gitgate.gates.recording import reload
from gitgate.model.gate import Gate, Option, Question
from gitgate.questions import Given
from gitgate.sharing.archiving import fold_closed
from gitgate.store.git.refs import OPEN
from support.deciding import gate_of
from support.resuming import Clock, Seat
from support.testbed.command import Command

DB = Question(
    "answer", "Which database?", "choice", (Option("Postgres", "a server"), Option("SQLite")), other=True
)
PORT = Question("answer", "Which port?", "text")


@pytest.fixture(autouse=True)
def index_from_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(earlier, "FEW", 0)


def ids(seat: Seat, *words: str, **narrowed: Any) -> list[str]:
    """Searched for once without an index, or with what was learnt before, and once with what this one learnt."""
    desk = seat.desk
    found, count = search(desk, SearchTerms(words, **narrowed))
    desk.close()
    again, same = search(seat.desk, SearchTerms(words, **narrowed))
    assert [one.gate for one in again] == [one.gate for one in found]
    assert (count, desk.told) == (same, [])
    return [one.gate.id for one in found]


def where(seat: Seat, *words: str) -> tuple[str, ...]:
    (only,) = search(seat.desk, SearchTerms(words))[0]
    return only.matched


def answered(seat: Seat, gate: Gate, text: str, note: str = "") -> Gate:
    desk = seat.desk
    return respond(desk, reload(desk, gate.id), Given(text=text), Manner(push=False, note=note)).gate


def test_each_place_is_looked_through(alone: Seat) -> None:
    """Question, options, title, context, answer, note and remarks; and it is said where."""
    gate = gate_of(alone, DB, title="Storage", context="The replica lags.\nBadly.")
    answering.comment(alone.desk, reload(alone.desk, gate.id), "What of backups?", push=False)
    answered(alone, gate, "Postgres", "until March")
    other = gate_of(alone, PORT)
    assert where(alone, "storage") == ("title",)
    assert where(alone, "database") == ("question",)
    assert where(alone, "server") == ("question",)
    assert where(alone, "replica") == ("context",)
    assert where(alone, "postgres") == ("question", "answer")
    assert where(alone, "march") == ("note",)
    assert where(alone, "backups") == ("remarks",)
    assert where(alone, "database", "march") == ("question", "note")
    assert ids(alone, "which port") == [other.id]
    assert ids(alone, "nothing") == []


@pytest.mark.parametrize(
    ("words", "fits"),
    [
        (["DATABASE"], True),
        (["datab"], True),
        (["tabase"], False),
        (["which database"], True),
        (["database which"], False),
        (["database", "which"], True),
        (["which", "port"], False),
        (["which-database?"], True),
        (["müller"], True),
        (["MULLER"], True),
        (["据库"], True),
        (["据 数"], False),
        (["snake", "case"], True),
    ],
)
def test_words_and_beginnings(alone: Seat, words: list[str], fits: bool) -> None:
    """All have to be there; what is one argument stands together; case, accents and punctuation do not matter."""
    gate = gate_of(alone, DB, context="Ask Müller about snake_case, 数据库.")
    assert ids(alone, *words) == ([gate.id] if fits else [])


def test_the_most_fitting_first_then_the_newest(alone: Seat, clock: Clock) -> None:
    """A word of the question counts for more than one of a remark, a whole word for more than a beginning."""
    beginning = gate_of(alone, Question("answer", "Portable?", "text"))
    clock.pass_by(1)
    old = gate_of(alone, PORT)
    clock.pass_by(1)
    in_context = gate_of(alone, DB, context="On which port?")
    clock.pass_by(1)
    new = gate_of(alone, PORT)
    assert ids(alone, "port") == [new.id, old.id, beginning.id, in_context.id]
    assert ids(alone, "port", limit=2) == [new.id, old.id]
    assert search(alone.desk, SearchTerms(("port",), limit=2))[1] == 4


def test_what_narrows_it(alone: Seat, clock: Clock) -> None:
    waiting = gate_of(alone, DB)
    clock.pass_by(100)
    done = answered(alone, gate_of(alone, PORT), "80")
    assert ids(alone, "which", type="choice") == [waiting.id]
    assert ids(alone, "which", by="lovelace") == [done.id]
    assert ids(alone, "which", by="bob") == []
    assert ids(alone, "which", since=clock.at - 50) == [done.id]


def test_archived_and_moved_gates_are_found_as_they_are(alone: Seat, clock: Clock) -> None:
    """What was learnt of a gate counts for the commit that it ended at then, and for no other."""
    gate = gate_of(alone, PORT)
    assert ids(alone, "8080") == []
    answered(alone, gate, "8080")
    assert ids(alone, "8080") == [gate.id]
    clock.pass_by(86_400)
    fold_closed(alone.desk, older_than=0)
    assert not alone.clone.refs(OPEN)
    assert ids(alone, "8080") == [gate.id]
    assert search(alone.desk, SearchTerms(("8080",)))[0][0].archived


def test_a_gate_that_is_gone_is_not_found(alone: Seat) -> None:
    """The index has it still."""
    gate = gate_of(alone, PORT)
    assert ids(alone, "port") == [gate.id]
    alone.clone.git("update-ref", "-d", OPEN + gate.id)
    assert ids(alone, "port") == []


def test_only_new_records_are_read(alone: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {gate_of(alone, PORT).id, gate_of(alone, DB).id}
    assert set(ids(alone, "which")) == known
    read: list[str] = []
    real = earlier.read_texts

    def noted(desk: Desk, ends: list[earlier.Ending]) -> Iterator[earlier.Text]:
        read.extend(end.gate for end in ends)
        return real(desk, ends)

    monkeypatch.setattr(earlier, "read_texts", noted)
    assert set(ids(alone, "which")) == known
    assert read == []
    new = gate_of(alone, PORT)
    assert new.id in ids(alone, "which port")
    assert read == [new.id]


@pytest.mark.parametrize("harm", ["garbage", "flipped", "older", "gone", "none"])
def test_an_index_that_is_no_good_changes_nothing(
    alone: Seat, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made anew, or done without; where it was damaged that is said, once."""
    gate = gate_of(alone, PORT)
    assert ids(alone, "port") == [gate.id]
    place = alone.desk.repo.index
    if harm == "garbage":
        place.write_bytes(b"x" * 5000)
    elif harm == "gone":
        place.unlink()
    elif harm == "none":
        monkeypatch.setattr(earlier, "has_index", lambda: False)
    else:
        with sqlite3.connect(place) as base:
            if harm == "flipped":
                base.execute("UPDATE texts SET row = CAST(replace(row, 'port', 'poet') AS BLOB)")
            else:
                base.execute("UPDATE about SET said = 'other'")
        base.close()
    desk = alone.desk
    assert [one.gate.id for one in search(desk, SearchTerms(("port",)))[0]] == [gate.id]
    desk.close()
    assert bool(desk.told) == (harm in ("garbage", "flipped", "older"))
    assert ids(alone, "port") == [gate.id]


def test_what_the_index_says_is_not_shown(alone: Seat) -> None:
    """A row that somebody made up leads to the record, which does not have the words."""
    gate = gate_of(alone, PORT)
    assert ids(alone, "port") == [gate.id]
    from zlib import crc32

    with sqlite3.connect(alone.desk.repo.index) as base:
        ((row,),) = base.execute("SELECT row FROM texts").fetchall()
        forged = row.replace(b" port ", b" poet ")
        base.execute("UPDATE texts SET row = ?, total = ?", (forged, crc32(forged)))
    base.close()
    assert search(alone.desk, SearchTerms(("poet",)))[0] == []


def test_a_broken_record_is_left_out_and_said(alone: Seat) -> None:
    gate, whole = gate_of(alone, PORT), gate_of(alone, PORT)
    alone.clone.git("update-ref", OPEN + gate.id, alone.clone.head())
    desk = alone.desk
    assert [one.gate.id for one in search(desk, SearchTerms(("port",)))[0]] == [whole.id]
    assert [gate.id in words for words in desk.told] == [True]


def test_a_record_that_broke_later_is_left_out_and_said(alone: Seat, cli: Command) -> None:
    """The index has its words still: one that cannot be read any more does not end the search of the others."""
    gate, whole = gate_of(alone, DB), gate_of(alone, PORT)
    assert set(ids(alone, "which")) == {gate.id, whole.id}
    repo = alone.clone
    blob = repo.git("rev-parse", f"{gate.tip}:question.yaml")
    place = repo.path / ".git/objects" / blob[:2] / blob[2:]
    place.chmod(0o600)
    place.unlink()
    desk = alone.desk
    found, count = search(desk, SearchTerms(("which",)))
    assert ([one.gate.id for one in found], count) == ([whole.id], 1)
    assert [gate.id in words for words in desk.told] == [True]
    said = cli.quick("search", "which", cwd=repo.path, code=0)
    assert whole.id[:6] in said.out
    assert f"{gate.id} is left out: " in said.err


@pytest.mark.parametrize("words", [(), ("",), ("?!",), ("port", "…")])
def test_without_words_there_is_nothing_to_search_for(alone: Seat, words: tuple[str, ...]) -> None:
    with pytest.raises(Usage, match="no word"):
        search(alone.desk, SearchTerms(words))


def test_where_it_matched_is_of_the_record(alone: Seat) -> None:
    text = searched_text(gate_of(alone, DB))
    assert matched_in(text, [needle("sqlite")]) == ("question",)
    assert search_words("Ünder_Score, 2x!") == " under score 2x "


def test_as_a_command_and_as_a_function(alone: Seat, cli: Command) -> None:
    gate = answered(alone, gate_of(alone, DB, context="It \x1b[2J lags.\nport 80"), "Postgres")
    said = cli.quick("search", "lags", cwd=alone.clone.path, code=0)
    assert "\x1b" not in said.out
    assert [line.split()[0] for line in said.out.splitlines()] == [gate.id[:6], "→", "context:"]
    shape = cli.quick("search", "lags", "--json", cwd=alone.clone.path, code=0).json
    assert (shape["schema"], shape["count"]) == ("gitgate.search/v1", 1)
    (found,) = shape["gates"]
    assert (found["id"], found["matched"], found["answer"]["values"]) == (
        gate.id,
        ["context"],
        {"answer": "Postgres"},
    )
    assert "no gate here has these words" in cli.quick("search", "zzz", cwd=alone.clone.path, code=0).err
    other = gate_of(alone, PORT)
    assert (
        "1 more: --limit 2" in cli.quick("search", "port", "--limit", "1", cwd=alone.clone.path, code=0).err
    )
    assert "a day such as" in cli.quick("search", "x", "--since", "soon", cwd=alone.clone.path, code=2).err
    (one, two) = gitgate.search("port", directory=alone.clone.path)
    assert (one.gate.id, two.gate.id, two.matched) == (other.id, gate.id, ("context",))
    assert gitgate.search("port", type="text", by="ada", directory=alone.clone.path) == ()
    with pytest.raises(Usage):
        gitgate.search("port", since="soon", directory=alone.clone.path)


def test_a_list_loads_no_more_for_it(alone: Seat) -> None:
    """What searches is loaded by `search` alone."""
    gate_of(alone, PORT)
    script = (
        "import sys; from gitgate.cli.main import main; main(['list']); "
        "assert not [m for m in sys.modules if m.endswith('earlier')]"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=alone.clone.path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert find_tip(alone.desk, None)
