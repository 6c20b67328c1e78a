"""Benchmarks: the rows about a shared repository: what its hook adds to a push, and claims that are raced for over push."""

from __future__ import annotations

import itertools
import os
import shutil
import statistics
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from time import perf_counter

from gitgate.acts.answering import Manner, respond
from gitgate.acts.asking import AskWishes, ask
from gitgate.claims import Claimant, claim
from gitgate.context import Desk, open_desk
from gitgate.errors import Conflict
from gitgate.exchange.syncing import sync
from gitgate.gates.recording import reload
from gitgate.model.gate import Gate, Question
from gitgate.questions import Given
from gitgate.questions.drafts import Draft

from . import scenes
from .measure import COMMAND, START_UP, Row, busy, figure, ratio, run, side_by_side, timed

ROUNDS, RACERS = 25, 8


def push_hooked(room: Path) -> list[Row]:
    """The same answers pushed to a server with the receiving hook, and to one without."""
    hooked, plain = servers(room)
    place, ids = answered(room / "asker", hooked, 40)
    hooked_ids, plain_ids = iter(ids), iter(ids)
    ours, theirs, start = side_by_side(
        [
            lambda: push(place, hooked, [next(hooked_ids)]),
            lambda: push(place, plain, [next(plain_ids)]),
            lambda: run(START_UP, place),
        ],
        35,
    )
    return [
        ratio(
            "push of one answer, hook installed",
            ours,
            theirs + start,
            1,
            "the same without the hook + start-up",
        )
    ]


def notified(room: Path) -> list[Row]:
    """From typing a question to the notification, which the server's hook sends: a program that makes a file."""
    hooked, _ = servers(room)
    heard = room / "heard"
    heard.mkdir()
    program = room / "hear"
    program.write_text(f'#!/bin/sh\n: >"{heard}/$GITGATE_ID"\n')
    program.chmod(0o755)
    run(["git", "config", "gitgate.notify", f"command {program}"], hooked)
    place = scenes.repository(room / "hearer")
    run(["git", "remote", "add", "origin", str(hooked)], place)
    taken = []
    for _ in range(10):
        began = perf_counter()
        gate = run([COMMAND, "ask", "Which?", "-q"], place).decode().strip()
        while not (heard / gate).exists() and perf_counter() - began < 30:
            time.sleep(0.005)
        taken.append(perf_counter() - began)
    return [figure("from ask to the notification of the server's hook", statistics.median(taken), "s", 2)]


def push_many(room: Path) -> list[Row]:
    """A thousand answers in one push: how often a hook of ours was started to judge them."""
    hooked, _ = servers(room, 1000)
    place, ids = answered(room / "asker", hooked, 1000)
    trace = room / "events"
    push(place, hooked, ids, {"GIT_TRACE2_EVENT": str(trace)})
    hooks = [
        line
        for line in trace.read_text().splitlines()
        if '"child_start"' in line and '"hook_name":"pre-receive"' in line
    ]
    return [
        figure("hook processes of a push with 1,000 answers", len(hooks), "", 1),
    ]


def bulk(room: Path) -> list[Row]:
    """A thousand gates shared at once, and brought to another clone, as git itself moves the same refs. In turns, each time
    to a server of its own; what was copied before is on the disk before the clock starts, else whoever comes first waits for it.
    """
    origin = scenes.repository(room / "origin")
    run(["git", "remote", "add", "origin", str(room / "nowhere")], origin)
    run([COMMAND, "init", "--no-resume"], origin)
    scenes.with_gates(origin, 1000)
    times: dict[str, list[float]] = {"push": [], "git push": [], "pull": [], "git fetch": []}
    for number in range(5):
        turns = (("ours", True), ("plain", False))
        for which, ours in turns if number % 2 else reversed(turns):
            server = scenes.repository(room / f"{which}-{number}.git", bare=True)
            if ours:
                run([COMMAND, "init", "--server", "--no-resume"], server)
            place = room / f"{which}-{number}"
            shutil.copytree(origin, place)
            other = scenes.repository(room / f"other-{which}-{number}")
            for one in (place, other):
                run(["git", "remote", "remove", "origin"], one, code=None)
                run(["git", "remote", "add", "origin", str(server)], one)
            sync, spec = [COMMAND, "sync", "-q"], "refs/hitl/open/*:refs/hitl/open/*"
            push = sync if ours else ["git", "push", "-q", "origin", spec]
            pull = sync if ours else ["git", "fetch", "-q", "origin", spec]
            names = ("push", "pull") if ours else ("git push", "git fetch")
            for name, command, at in zip(names, (push, pull), (place, other), strict=True):
                os.sync()
                times[name].append(timed(lambda command=command, at=at: run(command, at)))
    took = {name: statistics.median(each) for name, each in times.items()}
    return [
        ratio(
            "1,000 gates pushed, hook installed",
            took["push"],
            took["git push"],
            3,
            "git push of the same refs",
        ),
        ratio("1,000 gates pulled", took["pull"], took["git fetch"], 3, "git fetch of the same refs"),
    ]


def two_sided(room: Path) -> list[Row]:
    """A record of 2,000 events, 1,800 of which were recorded again after a race: in processor time, beyond what git
    itself takes to move it.
    """
    hooked, plain = (scenes.repository(room / f"{name}.git", bare=True) for name in ("hooked", "plain"))
    run([COMMAND, "init", "--server", "--no-resume"], hooked)
    place, other, third = (clone(room / name, hooked) for name in ("place", "other", "third"))
    gate, tip = scenes.with_sides(place, 200, 1800)
    fetch = ["git", "fetch", "-q", "origin", "+refs/hitl/open/*:refs/gitgate/origin/open/*"]

    def read() -> None:
        desk = open_desk(place, dict(os.environ))
        desk.records.load(gate, tip)
        desk.close()

    read()
    alone = busy(lambda: push(place, plain, [gate]))
    took = {
        "read": busy(read),
        "git gate show": busy(lambda: run([COMMAND, "show", gate], place)),
        "the hook of a push": busy(lambda: push(place, hooked, [gate])) - alone,
    }
    fetched = busy(lambda: run(fetch, third))
    took["git gate sync, beyond the fetch"] = busy(lambda: run([COMMAND, "sync", "-q"], other)) - fetched
    name = "2,000 events, 1,800 from another side"
    return [figure(f"{name}: {what}", ms, "ms", 2000, "processor time") for what, ms in took.items()]


def servers(room: Path, gates: int = 40) -> tuple[Path, Path]:
    """One with the hook and one without, with the same gates open."""
    hooked = scenes.repository(room / "hooked.git", bare=True)
    scenes.with_gates(hooked, gates)
    plain = room / "plain.git"
    shutil.copytree(hooked, plain)
    run([COMMAND, "init", "--server", "--no-resume"], hooked)
    return hooked, plain


def answered(place: Path, server: Path, count: int) -> tuple[Path, list[str]]:
    """A clone with the server's gates, each answered there and not yet pushed."""
    scenes.repository(place)
    run(["git", "fetch", "-q", str(server), "+refs/hitl/open/*:refs/hitl/open/*"], place)
    desk = open_desk(place, dict(os.environ), bulk=True)
    ids = sorted(ref.rpartition("/")[2] for ref in desk.refs.under("refs/hitl/open"))[:count]
    for gate in ids:
        respond(desk, reload(desk, gate), Given(text="Left"), Manner(push=False))
    desk.close()
    return place, ids


def push(place: Path, server: Path, ids: list[str], env: dict[str, str] | None = None) -> None:
    refs = [f"refs/hitl/open/{gate}" for gate in ids]
    subprocess.run(
        ["git", "push", "-q", str(server), *refs],
        cwd=place,
        env={**os.environ, **(env or {})},
        check=True,
        capture_output=True,
    )


def claims(room: Path) -> list[Row]:
    """Eight clones that claim the same answer at once, 25 times; and one that claims alone, here and over push.

    A claim over push is a push, which git itself takes most of 15 ms for: that floor stands beside it.
    """
    server = scenes.repository(room / "shared.git", bare=True)
    places = [clone(room / f"racer-{number}", server) for number in range(RACERS)]
    numbers = itertools.count()
    wrong = sum(winners(question(places[0], f"Round {next(numbers)}?"), places) != 1 for _ in range(ROUNDS))
    alone = uncontended(scenes.repository(room / "alone"))
    shared, floor = uncontended(places[0]), pushing(places[0])
    return [
        figure(f"rounds without exactly one winner, {RACERS} racers, {ROUNDS} rounds", wrong, "", 0),
        figure("uncontended claim, in one clone", alone, "ms", 15),
        ratio("uncontended claim, over push", shared, floor, 2, "git push --atomic of two refs, the floor"),
    ]


def clone(place: Path, server: Path) -> Path:
    scenes.repository(place)
    run(["git", "remote", "add", "origin", str(server)], place)
    return place


def question(place: Path, prompt: str) -> Gate:
    """Asked and answered there, and shared where it has a server."""
    desk = open_desk(place, dict(os.environ))
    draft = Draft((Question("answer", prompt, "text"),), agent="scripted", session="session-1")
    gate = ask(desk, draft, AskWishes()).gate
    after = respond(desk, gate, Given(text="Left"), Manner()).gate
    desk.close()
    return after


def winners(gate: Gate, places: list[Path]) -> int:
    desks = [open_desk(place, dict(os.environ)) for place in places]
    for desk in desks[1:]:
        sync(desk)
    start = Barrier(len(desks))

    def won(number: int, desk: Desk) -> bool:
        known = reload(desk, gate.id)
        start.wait(60)
        try:
            claim(desk, known, Claimant(f"racer-{number}", host=f"racer-{number}"))
        except Conflict:
            return False
        finally:
            desk.close()
        return True

    with ThreadPoolExecutor(len(desks)) as pool:
        return sum(pool.map(won, range(len(desks)), desks))


def uncontended(place: Path) -> float:
    """The median time, in milliseconds, of claiming what nobody else wants."""
    times = []
    for number in range(12):
        gate = question(place, f"Alone {number}?")
        desk = open_desk(place, dict(os.environ))
        known = reload(desk, gate.id)
        begin = perf_counter()
        claim(desk, known, Claimant("alone", host="alone"))
        times.append((perf_counter() - begin) * 1000)
        desk.close()
    return statistics.median(times[2:])


def pushing(place: Path) -> float:
    """The median time, in milliseconds, that git alone takes to push two new refs, as a claim and its lease are."""
    times = []
    for number in range(12):
        commits = [
            run(["git", "commit-tree", "HEAD^{tree}", "-m", f"{number} {which}"], place).decode().strip()
            for which in ("claim", "lease")
        ]
        specs = [f"{commit}:refs/bench/{commit}" for commit in commits]
        begin = perf_counter()
        run(["git", "push", "-q", "--atomic", "origin", *specs], place)
        times.append((perf_counter() - begin) * 1000)
    return statistics.median(times[2:])
