"""What the desk shows, without any terminal: which lines, in which order, and which of them is chosen."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from gitgate.acts import what_became
from gitgate.acts.reporting import Known
from gitgate.cli.terminal import Screen
from gitgate.cli.verbs.desk import world_of
from gitgate.context import open_desk
from gitgate.context.machine import attentive_ones, begin_listening, end_listening
from gitgate.document import replace
from gitgate.exchange.syncing import RemoteNews
from gitgate.gates import fingerprint
from gitgate.record import Summary
from gitgate.surfaces.desk import (
    GateChange,
    InboxModel,
    RepositoryState,
    known_places,
    read_gate,
    read_repository,
)
from gitgate.surfaces.desk.services import InboxWatch
from support.resuming import Seat, until
from support.testbed.command import Command
from support.testbed.repositories import Clone

HERE, THERE = Path("/somewhere/here"), Path("/somewhere/there")
NOW = 1_780_000_000.0


def gate(name: str, **fields: str) -> Summary:
    told = {"state": "awaiting", "title": f"about {name}", "question": f"What of {name}?", "type": "text"}
    at = {"at": "2026-05-28T20:00:00Z", "agent": "backend", "branch": "main"}
    return Summary(name, f"tip-{name}", **{**told, **at, **fields})


def model(*gates: Summary, place: Path = HERE) -> InboxModel:
    found = InboxModel(lambda: NOW)
    found.take(RepositoryState(place, gates))
    return found


def names(found: InboxModel) -> list[str]:
    return [row.key for row in found.rows]


def test_the_most_pressing_comes_first_and_what_needs_nobody_last() -> None:
    """Then what was put aside, then what somebody else has to answer, then what is being acted on."""
    found = model(
        gate("answered1", state="answered", priority="urgent"),
        gate("low1", priority="low"),
        gate("aside1", priority="urgent", later="2099-01-01T00:00:00Z"),
        gate("urgent1", priority="urgent"),
        gate("mine1", priority="urgent", outcome="you answered; 1 more needed"),
    )
    assert names(found) == ["urgent1", "low1", "mine1", "aside1", "answered1"]


def test_what_is_chosen_stays_so_by_its_id() -> None:
    """What comes above it, and what goes there, moves the line, never the choice."""
    found = model(gate("b1"), gate("c1"))
    found.choose(1)
    found.take(RepositoryState(HERE, (gate("a1", priority="urgent"), gate("b1"), gate("c1"))))
    assert (found.place_of(found.rows), found.row and found.row.key) == (2, "c1")
    found.take(RepositoryState(HERE, (gate("c1"),)))
    assert (found.place_of(found.rows), found.row and found.row.key) == (0, "c1")


def test_where_the_chosen_one_has_gone_its_neighbour_is_chosen() -> None:
    """The line that has come to its place; the last one where there is none."""
    found = model(gate("a1"), gate("b1"), gate("c1"))
    found.choose(1)
    assert found.row is not None
    found.take(RepositoryState(HERE, (gate("a1"), gate("c1"))))
    assert found.row.key == "c1"
    found.take(RepositoryState(HERE, (gate("a1"),)))
    assert found.row.key == "a1"
    found.take(RepositoryState(HERE))
    assert found.row is None


def test_gates_that_stopped_waiting_are_told() -> None:
    """Answered, or gone; not those that were never here, nor what could not be read."""
    found = model(gate("a1"), gate("b1"), gate("c1", state="failed"))
    changes = found.take(RepositoryState(HERE, (gate("a1", state="answered"), gate("new1"))))
    assert changes == [GateChange(HERE, "a1", "answered"), GateChange(HERE, "b1", "")]
    assert found.take(RepositoryState(HERE, trouble="it is gone")) == []
    assert "new1" in names(found)
    assert found.headline.startswith("here: it is gone")


def test_a_gate_that_two_clones_know_is_shown_once() -> None:
    """In the one that stands first, unless its agent asked in the other."""
    found = model(gate("a1"))
    found.take(RepositoryState(THERE, (gate("a1"),)))
    assert [row.place for row in found.rows] == [HERE]
    found.take(RepositoryState(THERE, (gate("a1"),), asked_here=frozenset({"a1"})))
    assert [row.place for row in found.rows] == [THERE]


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("database", ["a1"]),
        ("DATABASE urgent", ["a1"]),
        ("backend database nothing", []),
        ("here", ["a1", "b1"]),
        ("approval", ["b1"]),
        ("  ", ["a1", "b1"]),
    ],
)
def test_a_filter_looks_for_all_its_words(words: str, left: list[str]) -> None:
    """In ids, questions, agents, branches, types and places; case does not matter."""
    found = model(gate("a1", question="Which database?", priority="urgent"), gate("b1", type="approval"))
    found.wanted = words
    assert names(found) == left


@pytest.mark.parametrize("cells", [60, 80, 140])
def test_no_line_is_longer_than_the_terminal(cells: int) -> None:
    """Of thousands, with names that take two cells a letter; the repository stands with the branch where there are several."""
    many = (gate(f"g{n}", question="セッションの保存先は" * 9, agent="バックエンド") for n in range(2000))
    found = model(*many)
    found.take(RepositoryState(THERE, (gate("other1", priority="urgent"),)))
    lines = found.lines(found.rows, cells, color=False)
    from gitgate.text import width

    assert len(lines) == 2002
    assert max(map(width, lines)) <= cells
    if cells > 72:
        assert "there:main" in lines[1]


def test_what_is_about_to_be_said_stands_at_its_gate() -> None:
    found = model(gate("a1"), gate("b1"))
    found.notes = {"a1": "approve in 5 s"}
    heading, first, second = found.lines(found.rows, 100, color=False)
    assert ("approve in 5 s" in first, "approve in 5 s" in second) == (True, False)
    assert heading.split()[0] == "ID"


def test_the_headline_counts() -> None:
    found = model(
        gate("a1"), gate("b1"), gate("c1", state="failed"), gate("d1", later="2099-01-01T00:00:00Z")
    )
    assert found.headline == "2 wait for an answer · 1 failed · 1 put aside"
    assert model().headline == "0 wait for an answer"


def test_agents_are_listed_with_what_they_do() -> None:
    found = model()
    found.take(
        RepositoryState(HERE, agents=(Known("backend", "waiting", waiting=["abc1234567"], questions=3),))
    )
    found.view = "agents"
    heading, line = found.lines(found.rows, 100, color=False)
    assert (heading, line.startswith("backend: waiting (abc123)")) == ("AGENT", True)


def test_a_repository_is_read_whole(alone: Seat) -> None:
    """Its gates and its agents; what is over is left out."""
    waits, over = alone.ask("Which database?"), alone.ask("And now?")
    from gitgate.acts.answering import stop

    stop(alone.desk, over, "no more")
    state = read_repository(alone.desk)
    assert [one.id for one in state.gates] == [waits.id]
    assert [known.agent for known in state.agents] == ["scripted"]
    assert (state.place, state.trouble) == (alone.clone.path, "")


def test_what_moves_is_seen_without_a_process(alone: Seat) -> None:
    """A new gate, and an answer to it, each change the fingerprint; looking does not."""
    seen = [fingerprint(alone.desk.repo)]
    asked = alone.ask()
    seen.append(fingerprint(alone.desk.repo))
    alone.answer(asked)
    seen.append(fingerprint(alone.desk.repo))
    assert len(set(seen)) == 3
    assert fingerprint(alone.desk.repo) == seen[-1]


def test_a_watch_reads_what_moved_and_nothing_else(alone: Seat) -> None:
    """Once at first; again when something moved there; and when it is told to."""
    states: list[RepositoryState] = []
    watch = InboxWatch([alone.clone.path], lambda _place: alone.desk, states.append, lambda _words: None)
    (place,) = watch._watched
    for _ in range(3):
        watch.look(place)
    assert len(states) == 1
    asked = alone.ask()
    watch.look(place)
    watch.look(place)
    assert [[one.id for one in state.gates] for state in states] == [[], [asked.id]]
    watch.look(place, insist=True)
    assert len(states) == 3


def test_of_two_desks_one_is_noted_as_hearing(alone: Seat) -> None:
    """Beside a listener, whose place it does not take; the other desk is noted when the first has gone, and then nobody."""
    one, two = (
        InboxWatch([alone.clone.path], lambda _place: alone.desk, lambda _state: None, lambda _words: None)
        for _ in range(2)
    )
    for watch in (one, two):
        watch.look(watch._watched[0])
    (who,) = attentive_ones(alone.desk)
    assert (who.by, who.dialog, who.pid) == (alone.desk.person(), "desk", os.getpid())
    number = begin_listening(alone.desk, replace(who, dialog="zenity"))
    assert number is not None
    assert [found.dialog for found in attentive_ones(alone.desk)] == ["zenity", "desk"]
    end_listening(alone.desk.repo, number)
    one.stop()
    assert attentive_ones(alone.desk) == []
    two.look(two._watched[0], insist=True)
    assert [found.dialog for found in attentive_ones(alone.desk)] == ["desk"]
    two.stop()
    two.look(two._watched[0], insist=True)
    assert attentive_ones(alone.desk) == []


@pytest.mark.slow
def test_people_are_told_from_an_open_desk(repo: Clone, cli: Command, tmp_path: Path) -> None:
    """Of what was asked before anybody was told from here as well, once."""
    gate = cli.quick("ask", "Which?", "-q", code=0).line
    program = tmp_path / "told"
    program.write_text(f'#!/bin/sh\necho "$GITGATE_EVENT $GITGATE_ID" >>{tmp_path}/heard\n', encoding="utf-8")
    program.chmod(0o755)
    repo.git("config", "gitgate.notify", f"command {program}")
    watch = InboxWatch(
        [repo.path],
        lambda place: open_desk(place, os.environ),
        lambda _state: None,
        lambda _words: None,
        world_of(Screen()).tell,
    )
    beside = threading.Thread(target=watch.telling)
    beside.start()
    try:
        until((tmp_path / "heard").exists)
    finally:
        watch.stop()
        beside.join(60)
    assert (tmp_path / "heard").read_text("utf-8") == f"opened {gate}\n"


def test_a_repository_that_is_gone_is_said(tmp_path: Path) -> None:
    """And the others are read all the same."""
    states: list[RepositoryState] = []
    gone = tmp_path / "gone"
    watch = InboxWatch([gone], lambda place: open_desk(place, os.environ), states.append, lambda _words: None)
    watch.look(watch._watched[0])
    (state,) = states
    assert state.place == gone
    assert state.trouble


def test_a_letter_is_read_with_its_diff(repo: Clone, cli: Command) -> None:
    """Below a list without its history and its diff; the gate's tip goes along, for what is decided on it."""
    repo.write("app.py", "x = 1\n")
    name = cli.quick("ask", "Which database?", "-o", "Postgres", "-o", "SQLite", "-q", code=0).line
    desk = open_desk(repo.path, os.environ)
    whole = read_gate(desk, name, 80, color=False, whole=True)
    brief = read_gate(desk, name, 80, color=False, whole=False)
    desk.close()
    text, short = "\n".join(whole.lines), "\n".join(brief.lines)
    assert "#2 SQLite" in text
    assert "#2 SQLite" in short
    assert ("+x = 1" in text, "History" in text) == (True, True)
    assert ("+x = 1" in short, "History" in short) == (False, False)
    assert whole.gate.tip == brief.gate.tip == repo.git("rev-parse", f"refs/hitl/open/{name}").strip()


def test_who_was_first_is_said(alone: Seat) -> None:
    asked = alone.ask()
    alone.answer(asked, "Postgres")
    words = what_became(alone.now(asked))
    assert words == f"gate {asked.id[:6]} was answered by {alone.desk.person().partition(' <')[0]}: Postgres"


def test_the_repository_that_one_stands_in_comes_first(home: Path, tmp_path: Path) -> None:
    """Then those that `git gate init` noted, each once."""
    from gitgate.context.machine import register

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        register(os.environ, tmp_path / name)
    assert known_places(os.environ, tmp_path / "two") == [tmp_path / "two", tmp_path / "one"]
    assert known_places(os.environ, None) == [tmp_path / "one", tmp_path / "two"]


def test_a_silent_remote_is_said_once_and_asked_less_often(alone: Seat, tmp_path: Path) -> None:
    """When it answers again, that is said too."""
    alone.clone.git("remote", "add", "origin", str(tmp_path / "nowhere.git"))
    news = RemoteNews(alone.clone.path)
    said, pauses = [], []
    for _ in range(3):
        said.append(news.hear(lambda _place: alone.desk, time.monotonic))
        pauses.append(news.pause)
    assert "no news of its remote" in said[0]
    assert said[1:] == ["", ""]
    assert pauses == sorted(set(pauses))
    alone.clone.git("init", "-q", "--bare", str(tmp_path / "nowhere.git"))
    again = news.hear(lambda _place: alone.desk, time.monotonic)
    assert again == f"{alone.clone.path.name}: its remote answers again"
    assert news.pause < pauses[0]


def test_whoever_wants_no_news_asks_no_remote(alone: Seat, tmp_path: Path) -> None:
    alone.clone.git("remote", "add", "origin", str(tmp_path / "nowhere.git"))
    alone.clone.git("config", "gitgate.fresh", "0")
    news = RemoteNews(alone.clone.path)
    assert news.hear(lambda _place: alone.desk, time.monotonic) == ""
    assert not news.remote
