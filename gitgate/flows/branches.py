"""Flows: what runs at once: branches, and what async functions await. Each has a line of steps of its own.

What branches came to is told in their order. A line of an async function is numbered where it is called or created, so that
no step's id depends on who is scheduled first. A step blocks a thread and never the loop. Where the loop has nothing to do but
wait for such threads, it rests: where all of them wait too, the run does, and its process ends.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar, cast

from ..acts.answering import withdraw
from ..context.targets import summaries
from ..errors import Conflict, Usage
from ..model import AWAITING
from ..record.runs import RunStep
from . import BRANCH, STEP, Branch
from .children import end_children
from .endings import RunStops, StepFailed
from .engine import Engine, current
from .trees import BranchTrees

T = TypeVar("T")
LOOK_EVERY = 0.1
ENDS_WITHIN = 30.0
"""So long an agent has for its end, when another branch was first."""
LOST = {"class": "gitgate.flows.endings:BranchLost", "message": "another branch was first"}


def in_parallel(engine: Engine, branches: Sequence[Callable[[], T]]) -> list[T | BaseException]:
    """Run branches at once, and return the result or the error of each, in their order.

    The agents of each branch work in a working tree of their own. Then the work of all branches is merged.
    """
    with engine.turn:
        engine.check()
        above = BRANCH.get()
        trees = BranchTrees(engine, above.next("parallel", ""), above, len(branches))
        lines = [trees.line_of(number) for number in range(len(branches))]
    came = run_lines(engine, branches, lines)
    trees.join(came)
    return came


def within_branch(engine: Engine, branch: Callable[[], T], kind: str, name: str) -> T:
    """Run a part of the flow as a branch, so that its steps are counted apart from those around it. Return its result."""
    with engine.turn:
        engine.check()
        above = BRANCH.get()
        line = Branch(f"{above.next(kind, name)}/0", above=above)
    (came,) = run_lines(engine, [branch], [line])
    if isinstance(came, BaseException):
        raise came
    return came


def first_of(engine: Engine, branches: Sequence[Callable[[], Any]]) -> tuple[int, Any]:
    """Run branches at once, and return the number and the result of the first that finishes.

    Each replay returns the recorded ones. The other branches are ended where they are.
    """
    found = engine.perform("first", "", lambda doing: Race(engine, doing.id, branches).run())
    return found["winner"], found["value"]


@dataclass
class Race:
    """Race of branches: the first that finishes counts. `id`: id of the race's own step."""

    engine: Engine
    id: str
    branches: Sequence[Callable[[], Any]]
    trees: BranchTrees = field(init=False)
    lines: list[Branch] = field(init=False)
    won: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        with self.engine.turn:
            self.trees = BranchTrees(self.engine, self.id, BRANCH.get(), len(self.branches))
            self.lines = [self.trees.line_of(number) for number in range(len(self.branches))]

    def run(self) -> dict[str, Any]:
        """Run the branches, record the winner, and end the others.

        The winner is recorded before any branch is ended, so that each replay ends the same branches.
        """
        if f"{self.id}/winner#1" in self.engine.held.run.steps:
            close_lines(self.lines)
            self.write_winner({})
        else:
            came = run_lines(
                self.engine, [partial(self.one, n) for n in range(len(self.lines))], self.lines, self
            )
            if self.won is None:
                raise first_error(came)
        won = self.won or {}
        losers = [number for number in range(len(self.lines)) if number != won["winner"]]
        self.end_losers(losers)
        lost = StepFailed("another branch was first")
        self.trees.join([lost if number in losers else None for number in range(len(self.lines))])
        return won

    def one(self, number: int) -> Any:
        token = STEP.set("")
        try:
            value = self.engine.encoded(f"the result of step {self.id}/{number}", self.branches[number]())
            self.engine.check_all_done()
        finally:
            STEP.reset(token)
        with self.engine.turn:
            self.engine.check()
            if self.won is None:
                self.write_winner({"winner": number, "value": value})
                for other, line in enumerate(self.lines):
                    if other != number:
                        self.engine.drop_branch(line)
        return value

    def write_winner(self, won: dict[str, Any]) -> None:
        with self.engine.turn:
            if self.trees.are_begun:  # that is the step before this one
                self.trees.base()
            with self.trees.in_line():
                self.won = self.engine.perform("winner", "", lambda _: won, brief=True)

    def is_over(self, threads: Sequence[threading.Thread]) -> bool:
        """Return whether no thread has to be waited for any more.

        Once a branch has won, the others get `ENDS_WITHIN` seconds. An agent ends when it is told to; a function cannot
        be ended, and goes on alone.
        """
        if not any(thread.is_alive() for thread in threads):
            return True
        if self.won is None:
            return False
        self.late = self.late or time.monotonic() + ENDS_WITHIN
        return time.monotonic() > self.late

    late: float = 0.0

    def end_losers(self, losers: Sequence[int]) -> None:
        """Withdraw the open gates of the other branches, end their child runs, and record their open steps as lost."""
        begun = tuple(f"{self.id}/{number}/" for number in losers)
        steps = [step for step in self.engine.held.run.steps.values() if step.id.startswith(begun)]
        engine = self.engine
        end_children(engine.run_desk, engine.held, steps, "another branch was first")
        with self.engine.turn:
            for step in steps:
                for gate_id in self.gates_of(step):
                    gate = self.engine.find(gate_id)
                    if gate.state == AWAITING:
                        with suppress(Conflict):  # somebody answers it in this moment
                            withdraw(self.engine.desk, gate, "another branch was first")
                if not step.is_over:
                    self.engine.append("raised", step=step.id, error=LOST)

    def gates_of(self, step: RunStep) -> list[str]:
        """Return the gates of a step; of one that was cut off, also a gate that its process opened in its last moment."""
        if step.is_over:
            return step.gates
        key = f"{self.engine.run_id}/{step.id}"
        late = [
            s.id for s in summaries(self.engine.desk) if s.key == key or (s.key or "").startswith(f"{key}.")
        ]
        return list(dict.fromkeys([*step.gates, *late]))


def passes(came: object) -> bool:
    """Return whether an exception is no error of a branch but passes through it: a wait, or an end of the run.

    No error that comes after it may hide it.
    """
    return isinstance(came, BaseException) and not isinstance(came, Exception)


def first_error(came: Sequence[object]) -> BaseException:
    errors = [ended for ended in came if isinstance(ended, BaseException)]
    passing = [ended for ended in errors if passes(ended)]
    return (
        passing
        or errors
        or [Usage("first: expected branches", hint="gitgate.first(('coder', 'fix a'), other)")]
    )[0]


def run_lines(
    engine: Engine, branches: Sequence[Callable[[], T]], lines: Sequence[Branch], race: Race | None = None
) -> list[T | BaseException]:
    """Run each branch in a thread of its own. The error of a branch is its result."""
    group = BranchGroup(engine, branches, lines)
    group.run(race)
    return group.came


class BranchGroup(Generic[T]):
    """Threads of branches that run at once.

    After the last one has ended, and before the flow goes on, the run never seems to wait.
    """

    def __init__(self, engine: Engine, branches: Sequence[Callable[[], T]], lines: Sequence[Branch]) -> None:
        self.engine, self.branches, self.lines = engine, branches, lines
        self.came: list[T | BaseException] = [RunStops("it was not begun")] * len(branches)
        self.left = set(range(len(branches)))

    def run(self, race: Race | None) -> None:
        with self.engine.turn:
            self.engine.active += len(self.branches) - 1
        threads = [
            threading.Thread(target=copy_context().run, args=(self.run_branch, number), daemon=True)
            for number in range(len(self.branches))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive() and not (race is not None and race.is_over(threads)):
                thread.join(None if race is None else LOOK_EVERY)
        self.let_go()

    def run_branch(self, number: int) -> None:
        BRANCH.set(self.lines[number])
        try:
            self.came[number] = self.branches[number]()
            self.engine.check_all_done()
        except BaseException as ended:  # noqa: BLE001 - it is the caller's, who is in another thread
            self.came[number] = ended
        try:
            self.end(number)
        except BaseException as lost:  # noqa: BLE001 - the same; and nobody goes on waiting beside it
            if not passes(self.came[number]):
                self.came[number] = lost
            self.engine.wake_by(lost)

    def end(self, number: int) -> None:
        with self.engine.turn:
            if number in self.left:  # else nobody waits for it any more
                self.left.remove(number)
                if self.left:
                    self.engine.end_branch()

    def let_go(self) -> None:
        """Let the flow go on in the place of one of its branches. One that has not ended no longer counts as active."""
        with self.engine.turn:
            self.engine.active -= max(len(self.left) - 1, 0)
            self.left.clear()
            close_lines(self.lines)


def close_lines(lines: Sequence[Branch]) -> None:
    """Close the desks of branches in which nobody works any more, so that nothing reads objects there."""
    for line in lines:
        if line.desk is not None:
            line.desk.close()


# async functions


class RestingSelector(selectors.DefaultSelector):
    """Selector that tells the loop first when it is asked to wait without end: nothing is ready, and no timer runs."""

    loop: FlowLoop | None = None

    def select(self, timeout: float | None = None) -> Any:
        if timeout is not None or self.loop is None or len(self.get_map()) > 1:
            return super().select(timeout)
        self.loop.rest()
        try:
            return super().select(None)
        finally:
            self.loop.go_on()


class CountedThreads(ThreadPoolExecutor):
    """Thread pool of the flow's own `asyncio.to_thread`. While one of its threads is busy, the loop does not rest."""

    busy = 0

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.busy += 1
        found = super().submit(function, *args, **kwargs)
        found.add_done_callback(self.over)
        return found

    def over(self, _done: Future[Any]) -> None:
        self.busy -= 1


class FlowLoop(asyncio.SelectorEventLoop):
    """Event loop of a flow. `due`: calls that are over, and that the loop does not know of yet."""

    def __init__(self, engine: Engine) -> None:
        self.selector = RestingSelector()
        super().__init__(self.selector)
        self.engine = engine
        self.due = 0
        self.resting = False
        self.pending: set[asyncio.Future[Any]] = set()
        self.threads = CountedThreads(thread_name_prefix="flow")
        self.set_default_executor(self.threads)
        self.selector.loop = self

    def rest(self) -> None:
        """Count the loop as waiting while it only awaits calls. Each runs in a thread, which counts for itself."""
        engine = self.engine
        with engine.turn:
            if self.due or self.threads.busy or not self.pending or engine.broken or engine.lost:
                return
            self.resting = True
            try:
                engine.end_branch()
            except BaseException as lost:  # noqa: BLE001 - those who wait hear of it, and tell this loop
                engine.wake_by(lost)

    def go_on(self) -> None:
        with self.engine.turn:
            if self.resting:
                self.resting = False
                self.engine.come_back()

    def begin(self, call: Callable[[], Any]) -> asyncio.Future[Any]:
        """Begin a call in a thread of its own, as a branch that is numbered now."""
        engine = self.engine
        future: asyncio.Future[Any] = self.create_future()
        with engine.turn:
            engine.check()
            above = BRANCH.get()
            line = Branch(above.next("soon", ""), above=above)
            engine.active += 1
        self.pending.add(future)
        future.add_done_callback(looked_at)
        context = copy_context()
        context.run(BRANCH.set, line)
        threading.Thread(target=context.run, args=(self.run_call, call, future), daemon=True).start()
        return future

    def run_call(self, call: Callable[[], Any], future: asyncio.Future[Any]) -> None:
        deliver: Callable[[], None]
        try:
            value = call()
            self.engine.check_all_done()
            deliver = partial(future.set_result, value)
        except BaseException as ended:  # noqa: BLE001 - it is raised where it is awaited
            deliver = partial(future.set_exception, ended)
        try:
            self.end_call(deliver, future)
        except BaseException as lost:  # noqa: BLE001 - nobody goes on waiting beside it
            self.engine.wake_by(lost)

    def end_call(self, deliver: Callable[[], None], future: asyncio.Future[Any]) -> None:
        def told() -> None:
            self.due -= 1
            self.pending.discard(future)
            if not future.done():
                deliver()

        with self.engine.turn:
            self.due += 1
            try:
                self.call_soon_threadsafe(told)
            except RuntimeError:  # the flow has ended without it
                self.due -= 1
            if self.resting:  # it goes on in the place of this thread
                self.resting = False
            else:
                self.engine.end_branch()

    def new_task(
        self, _loop: object, call: Coroutine[Any, Any, Any], context: Context | None = None, **how: Any
    ) -> asyncio.Task[Any]:
        """Make a task whose steps are a branch of their own, because it may go on while others do."""
        context = (context or copy_context()).copy()
        above = BRANCH.get()
        with self.engine.turn:
            context.run(BRANCH.set, Branch(above.next("task", ""), above=above))
        return asyncio.Task(self.to_its_end(call), loop=self, context=context, **how)

    async def to_its_end(self, call: Coroutine[Any, Any, Any]) -> Any:
        value = await call
        self.engine.check_all_done()
        return value

    async def flow(self, call: Any) -> Any:
        """Run the flow itself. What it began and did not await is finished before the flow ends."""
        self.set_task_factory(cast("Any", self.new_task))
        try:
            value = await call
        except Exception:
            await self.all_through()
            raise
        await self.all_through()
        return value

    async def all_through(self) -> None:
        while self.pending:
            await asyncio.wait(set(self.pending))


def looked_at(future: asyncio.Future[Any]) -> None:
    """Read the error of a future, so that asyncio does not warn of one that nobody awaits."""
    if not future.cancelled():
        future.exception()


def in_loop(call: Any) -> Any:
    """Run an awaitable and return its result. In a flow, between its steps, the loop is one that may rest."""
    engine = current()
    if engine is None or STEP.get():
        return asyncio.run(awaited(call))
    loop = FlowLoop(engine)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(loop.flow(call))


async def awaited(call: Any) -> Any:
    return await call


def soon(engine: Engine, call: Callable[[], Any]) -> asyncio.Future[Any]:
    loop = asyncio.get_running_loop()
    if not isinstance(loop, FlowLoop) or loop.engine is not engine:
        raise Usage(
            "soon is for the flow's own async functions", hint="await gitgate.soon(gitgate.run, 'coder')"
        )
    return loop.begin(call)
