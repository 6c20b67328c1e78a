"""Benchmarks: the simulation of many workers keeps its own rules, and what measures scale runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.peers import PEERS
from benchmarks.simulation import Costs, Plan, Result, figures, play

TOP = Path(__file__).parents[1]
COSTS = Costs()
TROUBLED = Plan(workers=7, answers=120, agent=20, per_second=0.5, lost=0.3, doubled=0.3, cores=2, seed=5)


def rates(*plans: Plan, costs: Costs = COSTS) -> list[float]:
    return [play(plan, costs).per_minute for plan in plans]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_answer_is_lost_and_none_acted_on_twice(seed: int) -> None:
    """Whatever becomes of the messages: each has one outcome, and each agent that started ended in one way."""
    found = play(replace(TROUBLED, seed=seed))
    assert [one.done for one in found.answers] == [1] * TROUBLED.answers
    assert found.started == found.done + found.lapsed
    assert found.idle + found.races > 0  # some messages were doubled


def test_what_no_message_told_of_is_found_by_the_sweep() -> None:
    """Of ten messages nine are lost, and all answers are acted on: later."""
    plan = replace(TROUBLED, lost=0.9, doubled=0.0)
    found, calm = play(plan), play(replace(plan, lost=0.0))
    assert found.done == calm.done == plan.answers
    assert found.seconds > calm.seconds


def test_the_same_seed_gives_the_same() -> None:
    """And another one something else."""
    first, again, other = (play(replace(TROUBLED, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first.ends != other.ends


def test_more_workers_do_more_until_the_server_has_no_more_processors() -> None:
    """Never more than the workers can, nor than the processors; once these are all at work, a worker more changes little."""
    plans = [Plan(workers, 20 * workers, agent=5, cores=1, term=600) for workers in (1, 2, 4, 8, 16)]
    found = [play(plan) for plan in plans]
    assert all(one.per_minute <= one.plan.workers * 60 / (5 + COSTS.worker) for one in found)
    assert all(one.load <= 1 for one in found)
    bound = 60 / (4 * COSTS.push + COSTS.fetches)
    assert all(one.per_minute <= bound for one in found)
    scaled = [one.per_minute for one in found]
    assert scaled[1] > 1.8 * scaled[0]
    assert all(more > fewer * 0.97 for fewer, more in pairwise(scaled))
    assert found[-1].load > 0.95


def test_one_lock_bounds_a_repository_and_others_have_their_own() -> None:
    """An outcome needs its repository's lock, and no other one's."""
    slow = replace(COSTS, lock=1.0)
    plan = Plan(64, 200, agent=1, cores=64, term=600)
    one, four = rates(plan, replace(plan, repositories=4), costs=slow)
    assert one <= 60 / slow.lock
    assert four > 1.8 * one


def overloaded(**changes: float) -> Result:
    plan = Plan(100, 300, agent=300, per_second=0.4, waiting=400_000, cores=2, until=1500)
    return play(replace(plan, **changes))  # type: ignore[arg-type]


def test_leases_that_cannot_be_renewed_end_agents() -> None:
    """A server that is asked for more than it can ends work; longer leases, or several repositories, keep it."""
    short, longer, shared_out = overloaded(), overloaded(term=1200), overloaded(repositories=20)
    assert short.lapsed > 20
    assert longer.lapsed == shared_out.lapsed == 0
    assert min(longer.done, shared_out.done) > 2 * short.done


def test_a_line_of_figures() -> None:
    """As the table has them."""
    line = figures(Plan(2, 20, agent=10, cores=2, together=True), COSTS)
    assert line[:5] == [2, 0, 1, 1, 120]
    assert 9 < float(str(line[5])) < 12


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_scale_is_measured() -> None:
    """In the smallest sizes: a worker acts on answers beside Celery's empty task, many answers go in one push, verbs run on gates."""
    sizes = (
        "--workers 1,2 --each 1 --sleep 0.2 --tasks 9 --burst 3 --rounds 1 --gates 9 --kinds loose,reftable"
    )
    command = [sys.executable, "-m", "benchmarks", "scale", "--json", *sizes.split()]
    said = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    assert "Python" in found["machine"]
    tables = {table["title"]: table["lines"] for table in found["tables"]}
    (rates_told,) = (lines for title, lines in tables.items() if title.startswith("answers per minute"))
    assert [line[0] for line in rates_told] == [1, 2]
    assert all(float(figure) > 0 for line in rates_told for figure in (line[1], line[3], line[4]))
    (cost,) = (lines for title, lines in tables.items() if title.startswith("one answer"))
    served = {line[0]: line[1] for line in cost}
    assert served["receive-pack"] >= 3  # the answer, its claim, its outcome
    (verbs,) = (lines for title, lines in tables.items() if ", loose refs" in title)
    assert {"list", "ask, and push", "sync, nothing new here"} <= {line[0] for line in verbs}
    assert any("reftable" in title for title in tables)


# Keeps a file for each thing, as the program of this name does, and says what the benchmark reads.
TICKETS = """#!/bin/sh
mkdir -p .tickets
case "$1" in
create) number=$(ls .tickets | wc -l); echo "$2" >".tickets/t-$number"; echo "t-$number" ;;
ready) cat .tickets/* ;;
show) cat ".tickets/$2" ;;
add-note) [ -f ".tickets/$2" ] && echo "$3" >>".tickets/$2" ;;
*) exit 2 ;;
esac
"""


def measured_beside(folder: Path, program: str, *more: str) -> subprocess.CompletedProcess[str]:
    place = folder / "tk"
    place.write_text(program)
    place.chmod(0o755)
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "peers",
        "--json",
        "--sizes",
        "1,4",
        "--rounds",
        "1",
        *more,
    ]
    path = f"{folder}:/usr/bin:/bin"
    return subprocess.run(
        command, cwd=TOP, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_programs_beside_ours(tmp_path: Path) -> None:
    """One that is on PATH has a column, and a table for each size; one that is not is named, with how to get it."""
    said = measured_beside(tmp_path, TICKETS)
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    assert [table["heads"][:2] for table in found["tables"]] == [
        [f"{size} things each", "git gate"] for size in (1, 4)
    ]
    for table in found["tables"]:
        column = table["heads"].index("tk")
        lines = {line[0]: line[column] for line in table["lines"]}
        assert lines.pop("list, cold") == "-"  # It keeps no cache.
        assert lines.pop("Python with click, its start alone") == "-"  # It needs neither.
        assert len(lines) == 5
        assert all(figure > 0 for figure in lines.values())
    measured = found["tables"][0]["heads"][2:]
    assert {*measured, *found["absent"]} == {peer.name for peer in PEERS}
    assert all(found["absent"].values())
    of_a_processor = json.loads(measured_beside(tmp_path, TICKETS, "--processor").stdout)["tables"]
    assert all("of a processor" in table["title"] for table in of_a_processor)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_program_beside_ours_that_does_something_else(tmp_path: Path) -> None:
    """No figure is given for what made nothing, or failed."""
    said = measured_beside(tmp_path, TICKETS.replace('; echo "t-$number"', ""))
    assert said.returncode == 1
    assert "tk created something and printed no id" in said.stderr
    said = measured_beside(tmp_path, TICKETS.replace('cat ".tickets/$2"', "exit 3"))
    assert said.returncode == 1
    assert "tk show t-0: exit 3" in said.stderr


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_command_is_taken_apart() -> None:
    """Each of three verbs has a column: Python, imports by where they are from, each of git's processes, and the rest. They add up."""
    command = [sys.executable, "-m", "benchmarks", "parts", "--json", "--rounds", "1"]
    said = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    whole, *functions = json.loads(said.stdout)["tables"]
    assert whole["heads"][1:] == ["show", "ask", "respond"]
    rows = {line[0]: line[1:] for line in whole["lines"]}
    assert {"imports: click", "imports: git gate's own modules", "process: git cat-file"} <= set(rows)
    assert rows["process: git update-ref"][0] == "-"  # `show` writes nothing
    for column in range(3):
        parts = [row[column] for name, row in rows.items() if name != "all of it" and row[column] != "-"]
        assert all(part > 0 for part in parts)
        assert sum(parts) == pytest.approx(rows["all of it"][column], rel=0.01)
    for table in functions:
        assert all("." in line[0] for line in table["lines"][:-1])
        assert sum(int(line[1].rstrip("%")) for line in table["lines"]) == pytest.approx(100, abs=5)
