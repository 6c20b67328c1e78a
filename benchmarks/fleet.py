"""Benchmarks: workers of a queue. Answers acted on per minute beside Celery's own empty task, how soon an agent starts, many answers in
one push, what one answer costs its server, and the memory of each process.

The brokers and the workers are those of the tests: a Redis on loopback, and Celery's own command.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from gitgate.acts.answering import Manner, respond
from gitgate.acts.asking import AskWishes, ask
from gitgate.context import machine_settings, open_desk
from gitgate.gates.recording import reload
from gitgate.model.gate import Question
from gitgate.questions import Given
from gitgate.questions.drafts import Draft
from gitgate.runners.celery import QUEUE, make_app
from support.brokers import QueueWorker, empty, messages, redis_server

from . import scenes
from .measure import COMMAND, Table, run, timed

AGENT = """#!/bin/sh
printf '%s %s\\n' "$GITGATE_ID" "$(date +%s.%N)" >> "{log}"
sleep {seconds}
"""
# Celery's own, set up as ours is.
EMPTY_TASK = """import os
from gitgate.context import machine_settings
from gitgate.runners.celery import make_app
app = make_app(machine_settings(os.environ))


@app.task(name="nothing", ignore_result=True)
def nothing():
    pass
"""
NOTHING = "nothing"
LONGEST = 3600.0
STAMP = re.compile(
    r"^\[(\S+ \S+): \w+/\S+\] Task \S+\[\S+\] (received|succeeded)(?: in \S+: (.*))?$", re.MULTILINE
)


@dataclass
class Site:
    """A server that hands its answers out, a clone that pushes to it, and an agent that sleeps, for as long as it is told."""

    room: Path
    broker: str
    ids: list[str] = field(default_factory=list)

    @property
    def server(self) -> Path:
        return self.room / "server.git"

    @property
    def place(self) -> Path:
        return self.room / "asker"

    @property
    def log(self) -> Path:
        return self.room / "agent.log"

    def set_up(self) -> None:
        scenes.repository(self.server, bare=True)
        run([COMMAND, "init", "--server"], self.server)
        run(["git", "config", "gitgate.runner", "celery"], self.server)
        scenes.repository(self.place)
        run(["git", "remote", "add", "origin", str(self.server)], self.place)
        run(["git", "push", "-q", "origin", "main"], self.place)
        run([COMMAND, "init", "--no-resume"], self.place)
        run(["git", "config", "gitgate.session", "push"], self.place)
        for name, value in {
            "gitgate.queue.broker": self.broker,
            "gitgate.queue.repositories": str(self.server),
            "gitgate.maxAgents": "64",
            "gitgate.agent.sleeper.resume": json.dumps([str(self.room / "agent")]),
        }.items():
            run(["git", "config", "--global", name, value], self.room)
        self.sleeps(0)

    def sleeps(self, seconds: float) -> None:
        script = self.room / "agent"
        script.write_text(AGENT.format(log=self.log, seconds=seconds))
        script.chmod(0o755)

    def answered(self, count: int) -> list[str]:
        """So many questions that the server has, answered in the clone and not yet pushed."""
        desk = open_desk(self.place, dict(os.environ), bulk=True)
        draft = Draft((Question("answer", "Which?", "text"),), agent="sleeper", session="session-1")
        gates = [ask(desk, draft, AskWishes(push=False)).gate for _ in range(count)]
        desk.close()
        run([COMMAND, "sync", "-q"], self.place)
        desk = open_desk(self.place, dict(os.environ), bulk=True)
        for gate in gates:
            respond(desk, reload(desk, gate.id), Given(text="Left"), Manner(push=False))
        desk.close()
        ids = [gate.id for gate in gates]
        self.ids += ids
        return ids

    def push(self, ids: Sequence[str]) -> None:
        names = "".join(f"refs/hitl/open/{gate}\n" for gate in ids).encode()
        # As many refs as are wanted: a command line may be too short for them.
        specs = [f"{name}:{name}" for name in names.decode().split()]
        run(["git", "push", "-q", str(self.server), *specs], self.place)

    def starts(self) -> dict[str, float]:
        """When the agent of each gate started; a second start of one is an error here."""
        lines = [line.split() for line in self.log.read_text().splitlines()] if self.log.exists() else []
        found = {gate: float(at) for gate, at in lines}
        if len(found) != len(lines):
            twice = [gate for gate, times in Counter(gate for gate, _ in lines).items() if times > 1]
            raise RuntimeError(f"acted on more than once: {twice}")
        return found


def until(true: Callable[[], bool], what: str, seconds: float = LONGEST) -> None:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise RuntimeError(f"{what}: not within {seconds:g} s")
        time.sleep(0.05)


@contextmanager
def site(room: Path) -> Iterator[Site]:
    room.mkdir(parents=True, exist_ok=True)
    with redis_server(room / "redis") as broker:
        made = Site(room, broker)
        made.set_up()
        (room / "empty_task.py").write_text(EMPTY_TASK)
        yield made


@contextmanager
def workers(folder: Path, count: int, app: str = "gitgate.queue") -> Iterator[list[QueueWorker]]:
    """So many, each for one agent at a time, that have come up and listen to nothing yet."""
    idle = ("-c", "1", "-Q", "idle")
    with ExitStack() as held:
        yield [
            held.enter_context(QueueWorker(folder / f"{app}-{number}", idle, app)) for number in range(count)
        ]


def listen(team: Sequence[QueueWorker]) -> None:
    """From now on they take what is in the queue, all at once."""
    app = make_app(machine_settings(os.environ))
    said = app.control.add_consumer(QUEUE, reply=True, timeout=10, limit=len(team))
    if len(said) != len(team):
        raise RuntimeError(f"{len(said)} of {len(team)} workers heard that they are to listen")


def moments(team: Sequence[QueueWorker], word: str) -> list[float]:
    """When its tasks were `received`, or `succeeded`, by the workers' own logs."""
    return sorted(
        datetime.strptime(at, "%Y-%m-%d %H:%M:%S,%f").timestamp()  # noqa: DTZ007
        for worker in team
        for at, event, _ in STAMP.findall(worker.said)
        if event == word
    )


def per_minute(team: Sequence[QueueWorker], count: int) -> float:
    """So many tasks, from the first that was received to the last that was done."""
    until(lambda: len(moments(team, "succeeded")) >= count, f"{count} tasks of {len(team)} workers")
    return count * 60 / (moments(team, "succeeded")[-1] - moments(team, "received")[0])


def answers_acted_on(
    made: Site, count: int, answers: int, seconds: float, watch: Callable[[QueueWorker], None]
) -> float:
    """Answers per minute that so many workers act on, with an agent that sleeps for so many seconds."""
    folder = made.room / f"{count}-sleeping-{seconds:g}"
    with workers(folder, count) as team:
        made.sleeps(seconds)
        ids = made.answered(answers)
        made.push(ids)
        until(lambda: len(messages(made.broker)) >= answers, "answers in the queue")
        listen(team)
        until(lambda: any(gate in made.starts() for gate in ids), "the first agent")
        watch(team[0])
        found = per_minute(team, answers)
        results = Counter(result for worker in team for result in worker.results())
    if results != {"resumed": answers} or not set(ids) <= set(made.starts()):
        raise RuntimeError(f"{answers} answers came to {dict(results)}")
    return found


def empty_tasks(made: Site, count: int, tasks: int) -> float:
    """Celery's own empty tasks per minute, with as many workers."""
    folder = made.room / f"{count}-empty"
    os.environ["PYTHONPATH"] = str(made.room)
    try:
        with workers(folder, count, "empty_task") as team:
            send_nothing(tasks)
            listen(team)
            return per_minute(team, tasks)
    finally:
        del os.environ["PYTHONPATH"]


def send_nothing(count: int) -> None:
    app = make_app(machine_settings(os.environ))
    with app.producer_or_acquire() as producer:
        for _ in range(count):
            app.send_task(NOTHING, queue=QUEUE, producer=producer, ignore_result=True)


def throughput(room: Path, counts: Sequence[int], each: int, seconds: float, tasks: int) -> list[Table]:
    """Answers per minute by workers, with an agent that sleeps and with one that does nothing, beside Celery's empty task."""
    rows: list[list[object]] = []
    memory: dict[str, float] = {}
    rates: dict[int, float] = {}
    with site(room) as made:
        for count in counts:
            slow = answers_acted_on(
                made, count, each * count, seconds, lambda worker: note_memory(worker, memory)
            )
            quick = answers_acted_on(made, count, each * count, 0, lambda _worker: None)
            theirs = empty_tasks(made, count, tasks)
            rates[count] = slow
            first = rates[counts[0]]
            rows.append([count, slow, f"{slow / first:.2f}x", quick, theirs, f"{60000 / quick:.0f} ms"])
    heads = [
        "workers",
        f"agent sleeps {seconds:g} s",
        "beside the first",
        "agent does nothing",
        "Celery's empty task",
        "one answer",
    ]
    sizes: list[list[object]] = [[name, size] for name, size in memory.items()]
    return [
        Table(f"answers per minute, {each} for each worker", heads, rows),
        Table(
            "memory of a worker's processes while an agent sleeps",
            ["process", "MB, its own and shared"],
            sizes,
        ),
    ]


def note_memory(worker: QueueWorker, found: dict[str, float]) -> None:
    """The proportional size of each process below a worker, by what it is."""
    for pid, words in below(worker.running.pid):
        size = proportional_size(pid)
        if size:
            found[kind_of(pid == worker.running.pid, words)] = size


def below(pid: int) -> Iterator[tuple[int, str]]:
    """A process and all that it started, with their command lines."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(word) for one in threads for word in (one / "children").read_text().split()]
    except OSError:
        return
    yield pid, words
    for child in children:
        yield from below(child)


def proportional_size(pid: int) -> float:
    """Megabytes; what several processes share is counted in parts."""
    try:
        said = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return int(re.findall(r"^Pss:\s+(\d+)", said, re.MULTILINE)[0]) / 1024


def kind_of(is_main: bool, words: str) -> str:
    if "celery" in words:
        return "worker, main process" if is_main else "worker, its child"
    if "sleep" in words or "/agent" in words:
        return "the agent (a shell that sleeps)"
    return "git" if words.startswith("git") else "what ends the agent with its worker"


def from_push_to_start(room: Path, rounds: int) -> list[Table]:
    """From a push to the first thing that the agent does: by a queue, by the server itself, and Celery's empty task. In turns."""
    taken: dict[str, list[float]] = {"queue": [], "server": [], "empty": []}
    with site(room) as made, ExitStack() as held:
        os.environ["PYTHONPATH"] = str(made.room)
        (worker,) = held.enter_context(workers(room / "ours", 1))
        listen([worker])
        for _ in range(rounds + 1):
            for runner, name in (("celery", "queue"), ("local", "server")):
                run(["git", "config", "gitgate.runner", runner], made.server)
                (gate,) = made.answered(1)
                began = time.time()
                made.push([gate])
                until(lambda gate=gate: gate in made.starts(), "the agent's start")
                taken[name].append(made.starts()[gate] - began)
                until(lambda gate=gate: is_over(made.server, gate), "the agent's end")
        run(["git", "config", "gitgate.runner", "celery"], made.server)
        worker.end()
        empty(made.broker)
        (other,) = held.enter_context(workers(room / "theirs", 1, "empty_task"))
        listen([other])
        for number in range(rounds + 1):
            began = time.time()
            send_nothing(1)
            until(lambda number=number: len(moments([other], "received")) > number, "the empty task")
            taken["empty"].append(moments([other], "received")[number] - began)
        del os.environ["PYTHONPATH"]
    rows: list[list[object]] = [
        [name, statistics.median(times[1:]), max(times[1:])]
        for name, times in (
            ("push to the agent's start, by a queue", taken["queue"]),
            ("push to the agent's start, on the server itself", taken["server"]),
            ("Celery's empty task, from sending to its worker", taken["empty"]),
        )
    ]
    return [Table(f"seconds, {rounds} rounds in turns", ["", "median", "longest"], rows)]


def is_over(server: Path, gate: str) -> bool:
    said = run(
        ["git", "log", "-1", "--format=%(trailers:key=Hitl-State,valueonly)", f"refs/hitl/open/{gate}"],
        server,
    )
    return said.split() == [b"resumed"]


def one_push(room: Path, count: int) -> list[Table]:
    """Many answers in one push: how long whoever pushes waits, and until each is in the queue."""
    with site(room) as made:
        ids = made.answered(count)
        began = time.perf_counter()
        pushed = timed(lambda: made.push(ids)) / 1000
        until(lambda: len(messages(made.broker)) >= count, "answers in the queue")
        queued = time.perf_counter() - began
        waiting = messages(made.broker)
        size = sum(len(json.dumps(one)) for one in waiting) / count
        empty(made.broker)
        theirs = timed(lambda: send_nothing(count)) / 1000
    rows: list[list[object]] = [
        ["the push, judged by the server's hook", pushed],
        ["until each answer is in the queue", queued],
        ["Celery's own sending of as many empty tasks", theirs],
        ["bytes of one message in the queue", size],
    ]
    return [Table(f"{count:,} answers in one push", ["", "seconds"], rows)]


def cost_of_one(room: Path) -> list[Table]:
    """What the server of one answer does until its agent is done, by git's own trace: how often, and for how long."""
    traces = room / "traces"
    traces.mkdir(parents=True)
    with site(room) as made, workers(room / "ours", 1) as team:
        listen(team)
        for _ in range(2):  # The first one makes the worker's repository.
            (gate,) = made.answered(1)
            run(["git", "config", "--global", "trace2.eventTarget", str(traces)], room)
            for place in traces.iterdir():
                place.unlink()
            made.push([gate])
            until(lambda gate=gate: is_over(made.server, gate), "the agent's end")
            until(lambda: all(worker.results() for worker in team), "the worker's end")
            time.sleep(1)  # It clears its own repository.
            run(["git", "config", "--global", "--unset", "trace2.eventTarget"], room)
    taken = served(traces)
    rows: list[list[object]] = [
        [name, len(times), sum(times) / len(times) * 1000] for name, times in sorted(taken.items())
    ]
    heads = ["git on the server", "times", "ms, with its hooks"]
    return [Table("one answer, from its push to the agent's end", heads, rows)]


def served(traces: Path) -> dict[str, list[float]]:
    """How long each process took that served a push or a fetch, in seconds."""
    found: dict[str, list[float]] = {}
    for place in traces.iterdir():
        events = [json.loads(line) for line in place.read_text().splitlines()]
        names = [one["name"] for one in events if one["event"] == "cmd_name"]
        if names and names[0] in ("receive-pack", "upload-pack"):
            ends = [one["t_abs"] for one in events if one["event"] == "exit"]
            found.setdefault(names[0], []).extend(ends[:1])
    return found
