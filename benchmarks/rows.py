"""Benchmarks: the rows, one function each. A row's name is what is measured; its yardstick is what it stands against."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from . import scenes
from .flows import flow_steps
from .measure import COMMAND, START_UP, Row, figure, peak_memory, ratio, run, side_by_side, timed
from .sharing import bulk, claims, notified, push_hooked, push_many, two_sided
from .trust import verify_signed

FOR_EACH_REF = ["git", "for-each-ref", "--format=%(refname) %(contents)", "refs/hitl/open"]


def list_small(room: Path) -> list[Row]:
    place = scenes.repository(room / "small")
    scenes.with_gates(place, 10)
    ours, theirs = side_by_side([lambda: run([COMMAND, "list"], place), lambda: run(START_UP, place)], 30)
    return [ratio("list, 10 gates", ours, theirs, 2, 'python -c "import click"')]


def list_large(room: Path) -> list[Row]:
    rows = []
    for count, packed in ((1_000, False), (1_000, True), (10_000, False), (10_000, True)):
        place = scenes.repository(room / f"large-{count}-{packed}")
        scenes.with_gates(place, count, packed=packed)
        ours, start, refs = side_by_side(
            [
                lambda p=place: run([COMMAND, "list"], p),
                lambda p=place: run(START_UP, p),
                lambda p=place: run(FOR_EACH_REF, p),
            ],
            7,
        )
        kind = "packed" if packed else "loose"
        rows.append(
            ratio(f"list, {count:,} gates, {kind}", ours, start + refs, 1.5, "git for-each-ref + start-up")
        )
    index = place / ".git" / "gitgate" / "index.sqlite"
    cold, warm = side_by_side(
        [
            lambda: (index.unlink(missing_ok=True), run([COMMAND, "list"], place)),
            lambda: run([COMMAND, "list"], place),
        ],
        7,
    )
    return [*rows, ratio(f"list, {count:,} gates, its index lost", cold, warm, 2, "with its index")]


def stats_closed(room: Path) -> list[Row]:
    place = scenes.repository(room / "stats")
    scenes.with_answers(place, 10_000)
    walk = ["git", "log", "--first-parent", "--format=%H %B", "--glob=refs/hitl/open"]
    ours, theirs = side_by_side([lambda: run([COMMAND, "stats"], place), lambda: run(walk, place)], 5)
    return [
        ratio("stats, 10,000 answered gates", ours, theirs, 4, "git log of their records"),
        figure("the same", ours / 1000, "s", 2),
    ]


def why_lines(room: Path) -> list[Row]:
    place = scenes.repository(room / "why")
    scenes.with_decisions(place, 5_000, 200)
    ours, blame, start = side_by_side(
        [
            lambda: run([COMMAND, "why", "long.py"], place),
            lambda: run(["git", "blame", "long.py"], place),
            lambda: run(START_UP, place),
        ],
        9,
    )
    return [ratio("why, a file of 5,000 lines, 40 gates", ours, blame + start, 1.5, "git blame + start-up")]


def search_closed(room: Path) -> list[Row]:
    place = scenes.repository(room / "search")
    scenes.with_closed(place, 10_000)
    first = timed(lambda: run([COMMAND, "search", "part", "4711"], place))
    few, many, start = side_by_side(
        [
            lambda: run([COMMAND, "search", "part", "4711"], place),
            lambda: run([COMMAND, "search", "part"], place),
            lambda: run(START_UP, place),
        ],
        7,
    )
    return [
        figure("search, 10,000 closed gates, a word that few have", few, "ms", 150),
        figure("the same, a word that all have", many, "ms", 250),
        figure("the same, for the first time", first / 1000, "s", 60),
        ratio("search, 10,000 closed gates", few, start, 6, 'python -c "import click"'),
    ]


def list_huge(room: Path) -> list[Row]:
    ten = scenes.repository(room / "huge-10")
    scenes.with_gates(ten, 10_000, packed=True)
    hundred = scenes.repository(room / "huge-100")
    scenes.with_gates(hundred, 100_000, packed=True)
    ours, theirs = side_by_side(
        [lambda: run([COMMAND, "list"], hundred), lambda: run([COMMAND, "list"], ten)], 3
    )
    memory = peak_memory([COMMAND, "list"], hundred)
    return [
        ratio("list, 100,000 gates", ours, theirs, 11, "the same at 10,000"),
        figure("memory of list at 100,000", memory, "MB", 300),
    ]


def ask_large(room: Path) -> list[Row]:
    place = scenes.repository(room / "files")
    scenes.with_files(place, 50_000)
    index = room / "index"
    marks = itertools.count()

    def by_hand() -> None:
        scenes_env = {**os.environ, "GIT_INDEX_FILE": str(index)}
        shutil.copy2(place / ".git" / "index", index)
        for command in (["add", "-A"], ["write-tree"]):
            tree = subprocess.run(
                ["git", *command], cwd=place, env=scenes_env, check=True, capture_output=True
            ).stdout.decode()
        run(["git", "commit-tree", tree.strip(), "-p", "HEAD", "-m", "work"], place)

    def ask() -> None:
        run([COMMAND, "ask", "Which way?", "-q"], place)

    times: dict[Callable[[], None], list[float]] = {ask: [], by_hand: []}
    for _ in range(6):
        for action, taken in times.items():
            scenes.change_files(place, 100, f"{next(marks)}")
            taken.append(timed(action))
    ours, theirs = (sorted(taken[1:])[2] for taken in times.values())
    return [
        ratio(
            "ask, 50,000 files, 100 changed",
            ours,
            theirs,
            2,
            "temporary index, add -A, write-tree, commit-tree",
        )
    ]


def respond_local(room: Path) -> list[Row]:
    place = scenes.repository(room / "respond")
    ids = iter(scenes.with_gates(place, 60))
    ours, start, commit = side_by_side(
        [
            lambda: run([COMMAND, "respond", next(ids), "Left", "-q"], place),
            lambda: run(START_UP, place),
            lambda: run(["git", "commit", "-q", "--allow-empty", "-m", "x"], place),
        ],
        30,
    )
    return [ratio("respond, local", ours, start + commit, 2, "git commit --allow-empty + start-up")]


def show_one(room: Path) -> list[Row]:
    few, many = scenes.repository(room / "few"), scenes.repository(room / "many")
    one, other = scenes.with_gates(few, 10)[5], scenes.with_gates(many, 10_000)[5000]
    ours, theirs = side_by_side(
        [lambda: run([COMMAND, "show", other], many), lambda: run([COMMAND, "show", one], few)], 25
    )
    short, brief = side_by_side(
        [lambda: run([COMMAND, "show", other[:6]], many), lambda: run([COMMAND, "show", one[:6]], few)], 25
    )
    return [
        ratio("show, one among 10,000", ours, theirs, 1.2, "one among 10"),
        ratio("show, one among 10,000, by prefix", short, brief, 1.2, "one among 10, by prefix"),
    ]


def sync_idle(room: Path) -> list[Row]:
    server = scenes.repository(room / "server.git", bare=True)
    scenes.with_gates(server, 10_000, packed=True)
    place = scenes.repository(room / "synced")
    run(["git", "remote", "add", "origin", str(server)], place)
    run([COMMAND, "sync", "-q"], place)
    spec = "+refs/hitl/open/*:refs/gitgate/origin/open/*"
    ours, theirs = side_by_side(
        [
            lambda: run([COMMAND, "sync", "-q"], place),
            lambda: run(["git", "fetch", "-q", "--no-tags", "--prune", "origin", spec], place),
        ],
        9,
    )
    return [ratio("sync, 10,000 gates, nothing new", ours, theirs, 1.5, "git fetch of the same refspec")]


def poll_bytes(room: Path) -> list[Row]:
    """Bytes that an idle poll receives, counted from git's own packet trace."""
    server = scenes.repository(room / "poll.git", bare=True)
    place = scenes.repository(room / "poller")
    run(["git", "remote", "add", "origin", server.as_uri()], place)
    ids = scenes.with_gates(server, 300)
    tree = run(["git", "mktree"], server).decode().strip()
    commit = run(["git", "commit-tree", tree, "-m", "closed"], server).decode().strip()
    closed = "".join(
        f"create refs/hitl/archive/{1900 + n // 12}-{1 + n % 12:02d} {commit}\n" for n in range(600)
    )
    gone = "".join(f"delete refs/hitl/open/{gate}\n" for gate in ids)
    run(["git", "update-ref", "--stdin"], server, input=(closed + gone).encode())
    run([COMMAND, "sync", "-q"], place)
    trace = room / "packets"
    done = subprocess.run(
        [COMMAND, "sync", "-q"], cwd=place, env={**os.environ, "GIT_TRACE_PACKET": str(trace)}, check=True
    )
    if done.returncode:
        raise RuntimeError("the poll failed")
    received = sum(
        4 + len(line.partition("< ")[2].rstrip("\n")) + 1
        for line in trace.read_text().splitlines()
        if "fetch< " in line or "git< " in line
    )
    return [figure("bytes received by an idle poll, 300 gates closed", received, "bytes", 1024)]


def open_in_process(room: Path) -> list[Row]:
    empty, full = scenes.repository(room / "open-0"), scenes.repository(room / "open-10000")
    scenes.with_gates(full, 10_000)
    code = (
        "import os, subprocess, time, pathlib, statistics\n"
        "from gitgate.context import open_desk\n"
        "from gitgate.acts.asking import ask, AskWishes\n"
        "from gitgate.questions.drafts import Draft, question\n"
        "desk = open_desk(pathlib.Path('.'), dict(os.environ), bulk=True)\n"
        "def git(*words):\n"
        "    return subprocess.run(['git', *words], check=True, capture_output=True, text=True).stdout.strip()\n"
        "tree = git('rev-parse', 'HEAD^{tree}')\n"
        "ours, theirs = [], []\n"
        "for n in range(60):\n"
        "    start = time.perf_counter()\n"
        "    ask(desk, Draft((question('Which way?'),)), AskWishes(push=False))\n"
        "    between = time.perf_counter()\n"
        "    git('update-ref', f'refs/yardstick/{n}', git('commit-tree', tree, '-m', 'Which way?'), '')\n"
        "    ours.append(between - start)\n"
        "    theirs.append(time.perf_counter() - between)\n"
        "print(statistics.median(ours[10:]) * 1000, statistics.median(theirs[10:]) * 1000)\n"
    )
    taken = [map(float, run([sys.executable, "-c", code], place).split()) for place in (empty, full)]
    names = ("opening one gate, in process", "the same with 10,000 open")
    return [
        ratio(name, *both, 2, "git commit-tree, git update-ref")
        for name, both in zip(names, taken, strict=True)
    ]


def with_push(room: Path) -> list[Row]:
    """A question and an answer that go to a server without our hook, and git's push of such a ref: one that the server lacks, as
    it lacks the objects below it.
    """
    server = scenes.repository(room / "server.git", bare=True)
    place, elsewhere = (scenes.repository(room / name) for name in ("pushing", "elsewhere"))
    ids = scenes.with_gates(place, 40)
    run(["git", "remote", "add", "origin", str(server)], place)
    run([COMMAND, "sync", "-q"], place)
    others = scenes.with_gates(elsewhere, 80)[40:]
    refs = [f"refs/hitl/open/{gate}:refs/yardstick/{gate}" for gate in others]
    run(["git", "fetch", "-q", str(elsewhere), *refs], place)
    answered, pushed = iter(ids), iter(others)

    def plain() -> None:
        gate = next(pushed)
        tip = run(["git", "rev-parse", f"refs/yardstick/{gate}"], place).decode().strip()
        run(["git", "push", "-q", "origin", f"{tip}:refs/hitl/open/{gate}"], place)

    ask, respond, push, named, start = side_by_side(
        [
            lambda: run([COMMAND, "ask", "Which way?", "-q"], place),
            lambda: run([COMMAND, "respond", next(answered), "Left", "-q"], place),
            plain,
            lambda: run(["git", "rev-parse", "HEAD"], place),
            lambda: run(START_UP, place),
        ],
        25,
    )
    yardstick = push - named + start
    return [
        ratio("ask, and its push", ask, yardstick, 1.5, "git push of one ref + start-up"),
        ratio("respond, and its push", respond, yardstick, 1.5, "git push of one ref + start-up"),
    ]


def many_writers(room: Path) -> list[Row]:
    """8 processes that open 50 gates each, in one clone."""
    place = scenes.repository(room / "writers")
    code = (
        "import gitgate, sys\n"
        "for n in range(50):\n"
        "    gitgate.ask(f'Question {n} of {sys.argv[1]}?', push=False)\n"
    )
    workers = [subprocess.Popen([sys.executable, "-c", code, str(n)], cwd=place) for n in range(8)]
    for worker in workers:
        worker.wait(timeout=300)
    kept = len(run(["git", "for-each-ref", "refs/hitl/open"], place).splitlines())
    return [figure("gates lost of 8 processes x 50", 400 - kept, "gates", 0)]


ROWS: dict[str, Callable[[Path], list[Row]]] = {
    "list": list_small,
    "stats": stats_closed,
    "why": why_lines,
    "search": search_closed,
    "list-large": list_large,
    "list-huge": list_huge,
    "ask": ask_large,
    "respond": respond_local,
    "show": show_one,
    "sync": sync_idle,
    "poll": poll_bytes,
    "open": open_in_process,
    "with-push": with_push,
    "writers": many_writers,
    "flows": flow_steps,
    "push": push_hooked,
    "push-many": push_many,
    "notified": notified,
    "bulk": bulk,
    "two-sided": two_sided,
    "claims": claims,
    "verify": verify_signed,
}
