"""Flows: async functions. Steps are awaited by `soon`, several at once; each such call, and each task, has a line of its own.

A line is numbered where it is called or created, in the order of the code, so that no step's id depends on who is scheduled
first. A step blocks a thread and never the loop. Where the loop has nothing to do but wait for such threads, it rests: where
all of them wait too, the run does, and its process ends.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from functools import partial
from typing import Any, cast

from ..errors import Usage
from .engine import BRANCH, STEP, Branch, Engine, current


class RestingSelector(selectors.DefaultSelector):
    """Asked for as long as it takes, it tells the loop first: nothing is ready, no timer runs."""

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
    """Where the flow's own `asyncio.to_thread` runs: while it does, the loop does not rest."""

    busy = 0

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.busy += 1
        found = super().submit(function, *args, **kwargs)
        found.add_done_callback(self.over)
        return found

    def over(self, _done: Future[Any]) -> None:
        self.busy -= 1


class FlowLoop(asyncio.SelectorEventLoop):
    """The loop of a flow. `due`: calls that are over, and of which it has not heard yet."""

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
        """Whoever is awaited runs in a thread of its own, and counts for itself."""
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
        """A call in a thread of its own, on a line that is numbered now."""
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
        """A task's steps have a line of their own: it may go on beside others."""
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
        """The flow itself. What it began and did not await comes to its end before the flow does."""
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
    """What nobody awaits is no warning of asyncio's."""
    if not future.cancelled():
        future.exception()


def in_loop(call: Any) -> Any:
    """What an async function gives: in a flow, between its steps, in a loop that may rest."""
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
