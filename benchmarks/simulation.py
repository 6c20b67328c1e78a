"""Benchmarks: `python -m benchmarks simulation`: many workers and one ref store, in simulated time, from measured costs.

What is played: a message goes to a free worker. It fetches the gate, claims it by a push, lets its agent work, renews its lease by
further pushes, and pushes its conversation and the outcome. Each push or fetch takes a processor of the git server, and takes longer with
each open gate of the repository. An outcome deletes a ref, for which git holds the repository's one lock. After a push of a gate the
server's hook looks at all of them, one look at a time. Messages are lost, doubled, and told again by a sweep.

What is not: networks, disks, brokers, and machines that fail.
"""

from __future__ import annotations

import argparse
import heapq
import random
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import count, product

from gitgate.claims import GIVE_UP_AT
from gitgate.gates.leases import RENEW_AT
from gitgate.resumption.calls import AGAIN_AFTER

from .measure import Table

SWEEP_EVERY = 60.0
# So long does a runner wait for a server that says nothing.
PATIENCE = 60.0


@dataclass(frozen=True)
class Costs:
    """Seconds of a processor. `_each`: more for each open gate of the repository. `worker`: a worker's own, for one answer."""

    push: float = 0.16
    push_each: float = 5e-6
    fetches: float = 0.08
    fetches_each: float = 1e-6
    look: float = 0.2
    look_each: float = 1e-5
    lock: float = 0.002
    lock_each: float = 5e-7
    worker: float = 0.6


@dataclass(frozen=True)
class Plan:
    """`waiting`: gates that nobody has answered, over all repositories. `servers`: machines, over which repositories are spread."""

    workers: int = 2
    answers: int = 100
    agent: float = 300.0
    per_second: float = 0.0
    """0: all answers come at once."""
    waiting: int = 0
    repositories: int = 1
    servers: int = 1
    cores: int = 8
    term: float = 120.0
    lost: float = 0.0
    doubled: float = 0.0
    seed: int = 1
    until: float = float("inf")
    warm: float = 0.0
    """Throughput is counted from then on."""
    together: bool = False
    """All is on one machine, whose processors the workers' own work takes as well, and the answers are in the queue already."""


@dataclass
class Attempt:
    """One agent, from its claim on."""

    ends: float
    renewed: float
    over: bool = False


@dataclass
class Answer:
    repository: int
    told: float = 0.0
    holder: Attempt | None = None
    done: int = 0


@dataclass
class Result:
    """What came of a plan, after so many simulated seconds."""

    plan: Plan
    answers: list[Answer] = field(default_factory=list)
    seconds: float = 0.0
    ends: list[float] = field(default_factory=list)
    """When each outcome was recorded."""
    started: int = 0
    races: int = 0
    """Claims that somebody else was faster with."""
    idle: int = 0
    """Messages of what was taken or over by then."""
    lapsed: int = 0
    """Agents that were ended because their lease could not be renewed in time."""
    pushes: int = 0
    busy: float = 0.0
    queued: float = 0.0
    """The longest that a push or fetch waited for a processor."""
    locked: float = 0.0
    """The longest that one waited for the lock of its repository."""

    @property
    def done(self) -> int:
        return len(self.ends)

    @property
    def per_minute(self) -> float:
        since, counted = self.plan.warm, sum(at > self.plan.warm for at in self.ends)
        return counted * 60 / (self.seconds - since) if self.seconds > since else 0.0

    @property
    def load(self) -> float:
        """How much of the servers' processors was in use."""
        return self.busy / (self.seconds * self.plan.servers * self.plan.cores) if self.seconds else 0.0


class Processors:
    """Those of one server: whoever comes first is served first."""

    def __init__(self, number: int) -> None:
        self.free = [0.0] * number
        self.taken = 0.0

    def take(self, now: float, seconds: float) -> float:
        """When what takes so long is done."""
        begun = max(now, heapq.heappop(self.free))
        heapq.heappush(self.free, begun + seconds)
        self.taken += seconds
        return begun + seconds

    def used(self, now: float) -> float:
        """Without what was promised for later."""
        return self.taken - sum(max(0.0, at - now) for at in self.free)


class Store:
    """One repository: how many gates are open, its lock, and the look of its hook."""

    def __init__(self, server: Processors, gates: float) -> None:
        self.server, self.open = server, gates
        self.unlocked = 0.0
        self.looking = self.called = False
        self.untold: list[int] = []


class Simulation:
    """One plan, played to its end."""

    def __init__(self, plan: Plan, costs: Costs) -> None:
        self.plan, self.costs = plan, costs
        self.chance = random.Random(plan.seed)  # noqa: S311
        self.result = Result(plan)
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.order = count()
        self.now = 0.0
        self.servers = [Processors(plan.cores) for _ in range(plan.servers)]
        self.stores = [
            Store(self.servers[number % plan.servers], plan.waiting / plan.repositories)
            for number in range(plan.repositories)
        ]
        self.answers = self.result.answers
        self.known: dict[int, None] = {}
        """What was answered and is not over."""
        self.queue: deque[tuple[int, float]] = deque()
        self.free = plan.workers

    def at(self, when: float, act: Callable[[], None]) -> None:
        heapq.heappush(self.events, (when, next(self.order), act))

    def run(self) -> Result:
        self.come(0)
        self.at(SWEEP_EVERY, self.sweep)
        while self.events and self.result.done < self.plan.answers:
            when, _, act = heapq.heappop(self.events)
            self.now = min(when, self.plan.until)
            if when > self.plan.until:
                break
            act()
        self.result.seconds = self.now
        self.result.busy = sum(server.used(self.now) for server in self.servers)
        return self.result

    # Answers, and what tells of them.

    def come(self, number: int) -> None:
        """Somebody pushes an answer, and later somebody the next one."""
        self.answers.append(Answer(number % self.plan.repositories, told=float("-inf")))
        store = self.store(number)
        store.open += 1
        self.known[number] = None
        if self.plan.together:
            self.answers[number].told = self.now
            self.tell(number, float("inf"))
        else:
            self.push(number, lambda: store.untold.append(number))
        if number + 1 < self.plan.answers:
            pause = self.chance.expovariate(self.plan.per_second) if self.plan.per_second else 0.0
            self.at(self.now + pause, lambda: self.come(number + 1))

    def look(self, store: Store) -> None:
        """The hook's, after a push: one at a time, and once more where something came meanwhile."""
        if store.looking:
            store.called = True
            return
        store.looking, store.called = True, False
        found, store.untold = store.untold, []
        self.at(
            self.serve(store, self.costs.look + self.costs.look_each * store.open),
            lambda: self.looked(store, found),
        )

    def looked(self, store: Store, found: Sequence[int]) -> None:
        store.looking = False
        for number in found:
            self.tell(number, float("inf"))
        if store.called:
            self.look(store)

    def tell(self, number: int, expires: float) -> None:
        copies = 2 if self.chance.random() < self.plan.doubled else 1
        if self.chance.random() >= self.plan.lost:
            self.queue.extend([(number, expires)] * copies)
        self.hire()

    def sweep(self) -> None:
        """What nobody acts on is told again, and what is held by somebody who gives no sign of life."""
        for number in list(self.known):
            one = self.answers[number]
            silent = one.holder is not None and self.now - one.holder.renewed > self.plan.term
            after = 2 * self.plan.term if silent else AGAIN_AFTER
            if (silent or one.holder is None) and self.now - one.told >= after:
                one.told = self.now
                self.tell(number, self.now + AGAIN_AFTER)
        self.at(self.now + SWEEP_EVERY, self.sweep)

    def hire(self) -> None:
        while self.free and self.queue:
            number, expires = self.queue.popleft()
            if self.now < expires:
                self.free -= 1
                self.begin(number)

    def leave(self) -> None:
        self.free += 1
        self.hire()

    # What a server does.

    def store(self, number: int) -> Store:
        return self.stores[self.answers[number].repository]

    def serve(self, store: Store, seconds: float) -> float:
        end = store.server.take(self.now, seconds)
        self.result.queued = max(self.result.queued, end - seconds - self.now)
        return end

    def push(
        self, number: int, then: Callable[[], None], *, record: bool = True, locks: bool = False
    ) -> float:
        """Calls `then` when it is through. `record`: it moves a gate, so that the hook looks; `locks`: it deletes a ref."""
        self.result.pushes += 1
        store = self.store(number)
        end = self.serve(store, self.costs.push + self.costs.push_each * store.open)
        if locks:
            begun = max(end, store.unlocked)
            self.result.locked = max(self.result.locked, begun - end)
            store.unlocked = end = begun + self.costs.lock + self.costs.lock_each * store.open

        def through() -> None:
            then()
            if record:
                self.look(store)

        self.at(end, through)
        return end

    # What a worker does.

    def begin(self, number: int) -> None:
        store, own = self.store(number), self.costs.worker
        asked = self.costs.fetches + self.costs.fetches_each * store.open
        end = self.serve(store, asked + own) if self.plan.together else self.serve(store, asked) + own
        self.at(end, lambda: self.fetched(number))

    def fetched(self, number: int) -> None:
        one = self.answers[number]
        saw = one.holder
        if one.done or (saw is not None and self.now - saw.renewed <= self.plan.term):
            self.result.idle += 1
            self.leave()
        else:
            self.push(number, lambda: self.claimed(number, saw))

    def claimed(self, number: int, saw: Attempt | None) -> None:
        """The ref moves from what was seen, or somebody else has moved it."""
        one = self.answers[number]
        if one.done or one.holder is not saw:
            self.result.races += 1
            self.leave()
            return
        self.result.started += 1
        mine = one.holder = Attempt(self.now + self.plan.agent, self.now)
        self.at(mine.ends, lambda: self.ends(number, mine))
        self.at(self.now + self.plan.term * RENEW_AT, lambda: self.renew(number, mine))

    def renew(self, number: int, mine: Attempt) -> None:
        if mine.over or self.now >= mine.ends:
            return
        began = self.now
        self.push(number, lambda: self.renewed(number, mine, began), record=False)

    def renewed(self, number: int, mine: Attempt, began: float) -> None:
        one, term = self.answers[number], self.plan.term
        if mine.over or one.done:
            return
        if one.holder is not mine:
            self.lapse(mine)
        elif self.now - began <= PATIENCE:
            mine.renewed = began
            self.at(max(self.now, began + term * RENEW_AT), lambda: self.renew(number, mine))
        elif self.now - mine.renewed > term * GIVE_UP_AT:
            self.lapse(mine)
        else:
            self.at(self.now + min(term / 20, 5.0), lambda: self.renew(number, mine))

    def lapse(self, mine: Attempt) -> None:
        """The agent is ended by its own runner; whoever is told of the gate next takes over."""
        mine.over = True
        self.result.lapsed += 1
        self.leave()

    def ends(self, number: int, mine: Attempt) -> None:
        """The conversation goes first, as it is now, then what came of it."""
        if not mine.over:
            self.push(number, lambda: self.conclude(number, mine), record=False)

    def conclude(self, number: int, mine: Attempt) -> None:
        if not mine.over:
            self.push(number, lambda: self.recorded(number, mine), locks=True)

    def recorded(self, number: int, mine: Attempt) -> None:
        one = self.answers[number]
        if mine.over:
            return
        if one.holder is not mine:
            self.lapse(mine)
            return
        mine.over = True
        one.done += 1
        self.store(number).open -= 1
        del self.known[number]
        self.result.ends.append(self.now)
        self.leave()


def play(plan: Plan, costs: Costs = Costs()) -> Result:
    return Simulation(plan, costs).run()


HEADS = (
    *(
        "workers",
        "open gates",
        "repositories",
        "servers",
        "lease, s",
        "answers a minute",
        "of the best",
        "load",
    ),
    *("push waits, s", "lock waits, s", "agents ended", "races lost"),
)


def figures(plan: Plan, costs: Costs) -> list[object]:
    """A line of the table. The best that workers could do: their agents and their own work, one after the other."""
    found = play(plan, costs)
    best = plan.workers * 60 / (plan.agent + costs.worker + costs.fetches + 3 * costs.push)
    return [
        *(plan.workers, plan.waiting, plan.repositories, plan.servers, int(plan.term)),
        *(found.per_minute, f"{found.per_minute / best:.0%}", f"{found.load:.0%}"),
        *(found.queued, found.locked, found.lapsed, found.races),
    ]


def parse_costs(text: str) -> Costs:
    names = {one.name for one in fields(Costs)}
    given = dict(word.split("=", 1) for word in text.split(",") if word)
    strange = sorted(set(given) - names)
    if strange:
        raise SystemExit(f"--costs: there is no {strange[0]}; known are {', '.join(sorted(names))}")
    return replace(Costs(), **{name: float(value) for name, value in given.items()})


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks simulation", description=__doc__)
    parser.add_argument("--costs", default="", metavar="push=0.2,worker=0.9", help="seconds, as measured")
    parser.add_argument("--workers", default="100,1000", metavar="N,N")
    parser.add_argument("--waiting", default="0,100000,1000000", metavar="N,N", help="open gates, in all")
    parser.add_argument("--shards", default="1:1,10:1,100:4", metavar="REPOSITORIES:SERVERS,…")
    parser.add_argument("--terms", default="120", metavar="S,S", help="gitgate.leaseTerm")
    parser.add_argument("--agent", type=float, default=300.0, metavar="S", help="how long an agent works")
    parser.add_argument("--cores", type=int, default=8, metavar="N", help="of a git server")
    parser.add_argument("--each", type=int, default=10, metavar="N", help="answers for each worker")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument(
        "--together", action="store_true", help="workers and server on one machine: as `scale workers`"
    )
    return parser.parse_args(words)


def plans(given: argparse.Namespace) -> Iterator[Plan]:
    """Each with a tenth more answers than its workers can act on, counted once all of them are at work."""
    for workers, waiting, shard, term in product(
        *(getattr(given, name).split(",") for name in ("workers", "waiting", "shards", "terms"))
    ):
        repositories, servers = map(int, shard.split(":"))
        plan = Plan(
            *(int(workers), int(workers) * given.each, given.agent),
            waiting=int(waiting),
            repositories=repositories,
            servers=servers,
            cores=given.cores,
            term=float(term),
            seed=given.seed,
            together=given.together,
        )
        if not given.together:
            busy = replace(plan, per_second=1.1 * plan.workers / given.agent)
            plan = replace(busy, warm=2 * given.agent, until=max(3, given.each) * given.agent)
        yield plan


def main(words: Sequence[str]) -> int:
    given = parse(words)
    costs = parse_costs(given.costs)
    rows = []
    for plan in plans(given):
        print(f"playing {plan.workers} workers, {plan.waiting} open gates …", file=sys.stderr)
        rows.append(figures(plan, costs))
    print(costs)
    where = "one machine" if given.together else "each git server"
    print(Table(f"agents that work for {given.agent:g} s; {given.cores} processors in {where}", HEADS, rows))
    return 0
