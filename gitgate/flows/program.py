"""Flows: a flow as a program: what is decorated, how a run of it begins, goes on and ends, what a fork of it carries, and whose
code it goes on with.

A run goes on with the code of the commit that it began at. Where it began here, that is what was here; elsewhere that commit has
to be on the protected branch, since whoever writes a flow's code has the machine that it runs on.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, NoReturn, ParamSpec, TypeVar, cast

from ..acts.askers import requester
from ..acts.asking import AskWishes, take_work
from ..context import Desk, open_desk
from ..errors import Conflict, Failure, GateError, NotAllowed, Usage
from ..gates.agency import began_here, is_protected, note_begun, what_runs_it
from ..gates.recording import check_names
from ..model import AWAITING, STOPPING
from ..model.gate import Gate
from ..policy import protected_refs
from ..record.runs import Run, RunStep, words_of_error
from ..store.git.protected import protected_tip
from ..store.git.refs import CODE_OF_RUNS, RUNS
from ..store.records import NOBODY, Signature
from ..store.remote import RefMove
from ..text import one_line
from ..text.secrets import secret_values
from . import FlowTerms
from .agents import RunStalled
from .branches import in_loop, within_branch
from .children import (
    HAS_CHILDREN,
    FlowStep,
    desk_of_run,
    has_children,
    put_trees_away,
    replayed,
    root_of,
    stop_held,
    wind_up,
)
from .endings import (
    BranchLost,
    Diverged,
    FlowEnding,
    FlowEnds,
    RunAgain,
    RunStops,
    RunStuck,
    RunWaits,
    error_of,
    json_as_model,
    model_as_json,
    no_exit,
    returned,
    said_of_input,
    through_json,
)
from .engine import Engine, current
from .journal import HeldRun, begin_run, folder_of, journals, load_run, take_run
from .trees import deliver_committed, left_elsewhere, own_line

CALLED = {"version": "git gate", "python": "Python", "lock": "the lock file"}
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class FlowFunction(Generic[P, R]):
    """A function that is a flow. Called, it runs in this process; `git gate run FILE:NAME` runs it so that it outlives one."""

    function: Callable[P, R]
    name: str
    terms: FlowTerms = field(default_factory=FlowTerms)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        engine = current()
        if engine is not None:
            return cast("R", within(engine, self, args, kwargs))
        ended = run_here(self, list(args), dict(kwargs))
        return cast("R", json_as_model(ended.result(), returned(self.function)))

    def call(self, given: Mapping[str, Any]) -> Any:
        """Call the function with a recorded input. Return its result, a model in the form in which it is recorded."""
        value = called(self.function, given["args"], given["kwargs"])
        return model_as_json(value, returned(self.function), f"the result of flow {self.name}")


def as_flow(function: Callable[P, R], name: str, terms: FlowTerms) -> FlowFunction[P, R]:
    if not callable(function):
        raise Usage("flow: expected a function", hint="@gitgate.flow above its def")
    return FlowFunction(function, name or getattr(function, "__name__", "flow"), terms)


def within(
    engine: Engine, flow: FlowFunction[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """A flow that another one calls: a run of its own, which is a step of the other. In a run that began before that was so,
    a branch of it.
    """
    if not has_children(engine.held.run):
        return within_branch(engine, lambda: called(flow.function, args, kwargs), "flow", flow.name)
    step = FlowStep(
        engine, flow.name or "flow", flow.terms, said_of_input(args, kwargs), flow.call, run_to_end
    )
    return json_as_model(step.result(), returned(flow.function))


def called(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a function, plain or async, and return its result."""
    found = function(*args, **kwargs)
    return until_done(found) if inspect.isawaitable(found) else found


def until_done(found: Any) -> Any:
    """Run an awaitable and return its result. If a loop already runs in this thread, it runs in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return in_loop(found)
    with ThreadPoolExecutor(1) as beside:
        return beside.submit(copy_context().run, in_loop, found).result()


@dataclass
class Surroundings:
    """Functions and choices with which a run is replayed, besides its journal."""

    open_desk: Callable[[], Desk]
    say: Callable[[str], None] = lambda _words: None
    leave: Callable[[RunWaits], NoReturn] | None = None
    handler: Callable[[Engine, Gate], None] | None = None
    prepare: Callable[[Engine], None] = lambda _engine: None
    restores: bool = False
    """Whether the tree here is brought to where the run was; whoever acts on an answer has done so."""


def play(held: HeldRun, around: Surroundings, terms: FlowTerms, call: Callable[[], Any]) -> FlowEnding:
    """Replay the flow, and go on with it to its end or to where it waits."""
    desk = desk_of_run(around.open_desk(), held.run.id)
    engine = Engine(held, desk, terms, around.say, around.leave, around.handler, prepare=around.prepare)
    around.prepare(engine)
    engine.trees.append(partial(own_line, desk))
    held.deliver = partial(deliver_committed, desk, held)
    if held.must_stop:
        engine.broken = RunStops("the run was stopped")
    elif around.restores:
        engine.broken = left_elsewhere(desk, held, around.say)
    try:
        return run_to_end(engine, call)
    finally:
        desk.close()


def run_to_end(engine: Engine, call: Callable[[], Any]) -> FlowEnding:
    held, desk = engine.held, engine.run_desk
    try:
        value = replayed(engine, call)
        put_trees_away(desk, held.run.id)
        held.leave("completed", result=value)
        return FlowEnding(held.run.id, "completed", value)
    except FlowEnds as ended:
        return ended_early(held, desk, engine.ended_by(ended))
    except KeyboardInterrupt:
        let_go(held, "interrupted")
        engine.say(f"run {held.run.id} is left as it is; to go on with it: git gate resume {held.run.id[:6]}")
        raise
    except Conflict as lost:
        if not held.is_lost:
            return ended_by_error(held, desk, lost)
        held.over.set()
        held.unlock()
        raise
    except Exception as failed:  # noqa: BLE001 - whatever a flow raises is how its run ends
        return ended_by_error(held, desk, failed)


def ended_by_error(held: HeldRun, desk: Desk, failed: Exception) -> FlowEnding:
    error = error_of(failed)
    wind_up(desk, held, "its run has failed")
    held.leave("failed", error=error)
    return FlowEnding(held.run.id, "failed", reason=words_of_error(error), error=error, raised=failed)


def ended_early(held: HeldRun, desk: Desk, ended: FlowEnds) -> FlowEnding:
    run = held.run.id
    if isinstance(ended, RunWaits):
        status = "waiting_human" if ended.gates else "sleeping"
        return FlowEnding(
            run, status, reason=ended.message, gates=ended.gates, until=ended.until, raised=ended
        )
    if isinstance(ended, RunAgain):
        put_trees_away(desk, run)
        following = begin_next(desk, held, ended)
        held.leave("completed", next=following)
        return FlowEnding(run, "completed", next=following)
    if isinstance(ended, RunStuck):
        wind_up(desk, held, "its run is stuck")
        held.leave("stuck", reason=ended.message, refused=ended.refused)
        return FlowEnding(run, "stuck", reason=ended.message, refused=ended.refused, raised=ended)
    if isinstance(ended, RunStops | BranchLost):
        reason = stop_reason(held) or ended.message
        stop_held(desk, held, reason, f"its run was stopped: {reason}")
        return FlowEnding(run, "stopped", reason=reason, raised=ended)
    stalled = isinstance(ended, RunStalled)
    let_go(held, f"{'stalled' if stalled else 'diverged'}: {ended.message}")
    if isinstance(ended, Diverged) or stalled:
        return FlowEnding(run, "stalled", reason=ended.message, raised=ended)
    raise ended


def let_go(held: HeldRun, reason: str) -> None:
    with suppress(GateError):
        held.leave("released", reason=reason)


def stop_reason(held: HeldRun) -> str:
    """Why a person ends it, or the run that has called it."""
    found = next((e.event for e in reversed(held.run.events) if e.event.name == "stopping"), None)
    if found is not None:
        return found.text("reason")
    return stop_reason(held.above) if held.above is not None else ""


# beginning


def run_here(flow: FlowFunction[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> FlowEnding:
    """The flow in this process, in the repository that it stands in. Where it waits, `RunWaits` is raised."""
    from .. import config

    start, env = Path.cwd(), config.environment()

    def opened() -> Desk:
        return open_desk(start, env)

    return begin_flow(flow, args, kwargs, Surroundings(opened))


def begin_flow(
    flow: FlowFunction[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    around: Surroundings,
    **said: Any,
) -> FlowEnding:
    """A new run of a flow, in this process. What `said` has stands in its start."""
    given = said_of_input(args, kwargs)
    desk = around.open_desk()
    try:
        held = start_run(desk, flow, given, said)
        around.say(f"run {held.run.id} of {flow.name}")
        return onward(play_flow(held, around, flow), around, flow)
    finally:
        desk.close()


def play_flow(held: HeldRun, around: Surroundings, flow: FlowFunction[..., Any]) -> FlowEnding:
    given = held.run.started.said.get("given") or {"args": [], "kwargs": {}}
    return play(held, around, flow.terms, lambda: flow.call(given))


def onward(ended: FlowEnding, around: Surroundings, flow: FlowFunction[..., Any]) -> FlowEnding:
    """Go on with the run in which a flow started afresh, and return how the last such run ended."""
    while ended.next:
        desk = around.open_desk()
        try:
            held = take_run(desk, ended.next)
            around.say(f"run {ended.id} starts afresh as run {held.run.id}")
            ended = play_flow(held, around, flow)
        finally:
            desk.close()
    return ended


def begin_next(desk: Desk, held: HeldRun, again: RunAgain) -> str:
    """The run in which a flow starts afresh, left to whoever goes on with it: one, however often this is done."""
    run, push = held.run, held.held.remote is not None if held.above is not None else None
    own = ("given", "input", "nonce", "after")
    said = {key: value for key, value in run.started.said.items() if key not in own}
    said |= {
        "given": again.given,
        "input": shown_input(again.given),
        "after": run.id,
        "nonce": f"after-{run.id}",
    }
    said = {key: value for key, value in said.items() if value not in (None, "")}
    by = Signature(desk.settings.identity() or NOBODY, desk.at)
    following = journals(desk).write_started(again.at, said, by).id
    code = run.started.text("code")
    if code and desk.refs.get(CODE_OF_RUNS + following) is None:
        desk.refs.update([RefMove(CODE_OF_RUNS + following, code, None)])
    if began_here(desk, run.id):
        note_begun(desk, following, run.started.text("path"))
    if desk.refs.get(RUNS + following) is None:
        begin_run(desk, said, push=push, at=again.at).leave("released", reason=f"goes on after run {run.id}")
    return following


def leave_begun(
    flow: FlowFunction[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    around: Surroundings,
    **said: Any,
) -> str:
    """A run that is begun, and left to whoever goes on with it. Its id."""
    desk = around.open_desk()
    try:
        held = start_run(desk, flow, said_of_input(args, kwargs), said)
        held.leave("released", reason="detached")
        return held.run.id
    finally:
        desk.close()


def start_run(
    desk: Desk, flow: FlowFunction[..., Any], given: Mapping[str, Any], said: Mapping[str, Any]
) -> HeldRun:
    shown = shown_input(given)
    started = {
        "flow": flow.name or "flow",
        "given": given,
        "input": shown,
        **who_starts(desk),
        **HAS_CHILDREN,
        **said,
    }
    check_names(desk, flow.terms.notify)
    through_json("the flow's input", given, secret_values(desk.settings.env))
    held = begin_run(desk, {key: value for key, value in started.items() if value not in (None, "")})
    if said.get("code"):
        desk.refs.update([RefMove(CODE_OF_RUNS + held.run.id, str(said["code"]), None)])
    note_begun(desk, held.run.id, str(said.get("path") or ""))
    return held


def shown_input(given: Mapping[str, Any]) -> Any:
    """A flow's input as people read it; nothing, where it was given nothing."""
    args, kwargs = given["args"], given["kwargs"]
    if not args:
        return kwargs or None
    return args[0] if len(args) == 1 and not kwargs else given


def who_starts(desk: Desk) -> dict[str, Any]:
    from ..context.machine import host_name

    person = requester(desk)
    return {
        "by": person.by,
        **({"logins": list(person.logins)} if person.logins else {}),
        "host": host_name(),
        "directory": str(desk.repo.place),
        **what_runs_it(desk),
    }


def tell_differences(desk: Desk, run: Run, say: Callable[[str], None]) -> None:
    """A run goes on with its own code; what that is run by may be another than when it began, and explain what it does now."""
    for key, now in what_runs_it(desk).items():
        before = run.started.text(key)
        if before and before != now:
            say(f"run {run.id} began with {CALLED[key]} {before}; here it is {now}")


# forks


def fork_run(desk: Desk, run: Run, step: str, around: Surroundings, **said: Any) -> FlowEnding:
    """A run of its own that begins as another one did, carries what that had come to before `step`, and goes on from there.

    Its code is the one that `said` names. What was answered at that step, or later, is asked again.
    """
    carried_steps(desk, run, step)  # before anything is written
    given = run.started.said.get("given") or {"args": [], "kwargs": {}}
    flow = said.pop("flow")
    desk = around.open_desk()
    try:
        said |= {"parent": run.id, "from": step, "children": run.started.text("children")}
        held = start_run(desk, flow, given, said)
        carry(desk, held)
        around.say(f"run {held.run.id} of {flow.name}: as run {run.id} was before {step}")
        return onward(play_flow(held, around, flow), around, flow)
    finally:
        desk.close()


def carried_steps(desk: Desk, run: Run, step: str) -> list[RunStep]:
    """The steps of a run that were over before that one began. Nothing may be carried that waits for an answer still to come."""
    see = f"git gate show {run.id[:6]}"
    known = run.steps.get(step)
    if known is None:
        raise Usage(f"run {run.id} has no step {step!r}; it has {', '.join(run.steps) or 'none'}", hint=see)
    if known.branch:
        raise Usage(
            f"step {step} is one of several that run at once, and none of them can be begun from alone",
            hint=f"one that stands by itself: {see}",
        )
    found = []
    for one in run.steps.values():
        if one.begun.n >= known.begun.n:
            continue
        if one.ended is None or one.ended.n > known.begun.n:
            raise Usage(
                f"step {one.id} was not over when {step} began, so that it cannot be carried", hint=see
            )
        result = one.ended.said.get("result")
        gate = open_question(desk, result)
        if gate:
            raise Usage(
                f"step {one.id} asked gate {gate} without waiting, and what is answered since is not carried",
                hint=f"from that step: git gate run {run.id[:6]} --from {one.id}",
            )
        found.append(one)
    return sorted(found, key=lambda one: one.begun.n)


def open_question(desk: Desk, result: Any) -> str:
    """The gate that a step came to, if nobody had decided it then."""
    if not isinstance(result, dict) or not {"gate", "tip"} <= result.keys():
        return ""
    gate = desk.records.load(str(result["gate"]), str(result["tip"]))
    return gate.id if gate.state == AWAITING else ""


def carry(desk: Desk, held: HeldRun) -> None:
    """Write into a fork's journal what it carries, each step marked; the rest of it, where a process was killed among them."""
    try:
        carry_the_rest(desk, held)
    except GateError as failed:
        with suppress(GateError):
            held.leave("released", reason=f"stalled: {failed.message}")
        raise


def carry_the_rest(desk: Desk, held: HeldRun) -> None:
    parent, step = held.run.started.text("parent"), held.run.started.text("from")
    said = f"as run {parent} was before {step}"
    if not step or any(entry.event.text("text") == said for entry in held.run.events):
        return
    for one in carried_steps(desk, load_run(desk, parent), step):
        known = held.run.steps.get(one.id)
        if one.ended is None or (known is not None and known.is_over):
            continue
        if known is None and one.begun.name == "patched":
            held.append("patched", **one.begun.said, carried=parent)
            continue
        result = one.ended.said.get("result")
        if one.kind == "receive" and isinstance(result, dict):
            result = {key: value for key, value in result.items() if key != "signal"}
        if known is None and one.begun is not one.ended:
            held.append("begun", **one.begun.said, carried=parent)
        ended = {**one.ended.said, "carried": parent} | (
            {"result": result} if one.ended.name == "done" else {}
        )
        held.append(one.ended.name, **ended)
    held.append("noted", text=said)


# going on


def go_on(desk: Desk, run: str, around: Surroundings, *, now: bool = False) -> FlowEnding:
    """Go on with a run that was begun before: the code that it began with, replayed. `now`: the code as it is here now."""
    loaded = root_of(desk, load_run(desk, run))
    run = loaded.id
    flow = None if loaded.state == STOPPING else flow_of(desk, loaded, now=now)
    held = take_run(desk, run)
    if flow is None:
        return play(held, around, FlowTerms(), lambda: None)
    tell_differences(desk, held.run, around.say)
    carry(desk, held)
    return onward(play_flow(held, around, flow), around, flow)


def stop_child(desk: Desk, run: Run) -> None:
    """End a run that another one has called, where nobody goes on with it. That one is told when it goes on."""
    held = take_run(desk, run.id)
    reason = stop_reason(held)
    stop_held(desk, held, reason, f"its run was stopped: {reason}")


def flow_of(desk: Desk, run: Run, *, now: bool = False) -> FlowFunction[..., Any]:
    """The flow's code, from elsewhere of the protected branch alone; no other file of this machine, which a journal could name."""
    file, code = run.started.text("file"), run.started.text("code")
    if not file:
        raise Failure(
            f"run {run.id} was begun by a call in a program, and only that program can go on with it",
            hint="start flows that are to outlive their process by: git gate run FILE:NAME",
        )
    if now:
        if desk.repo.top is None:
            raise Usage("there is no working tree here to take code from", hint="in a clone: git gate resume")
        folder = desk.repo.top
    else:
        refuse_untrusted(desk, run, code)
        folder = check_out(desk, run.id, code)
    if not (folder / file).resolve().is_relative_to(folder.resolve()):
        raise NotAllowed(
            f"run {run.id} names a file outside of its code: {one_line(file, 120)}",
            hint=f"git gate log {run.id[:6]}   says who began it; to end it: git gate stop {run.id[:6]}",
        )
    return load_flow(folder / file, run.flow)


def refuse_untrusted(desk: Desk, run: Run, code: str) -> None:
    if not code or not desk.repo.git.ok("cat-file", "-e", f"{code}^{{commit}}"):
        raise Failure(
            f"the code of run {run.id} is not here: {code[:10] or 'no commit'}",
            hint=f"on {run.started.text('host') or 'the machine where it began'}: git gate resume {run.id[:6]}   "
            f"or with the code as it is here now: git gate resume {run.id[:6]} --code now",
        )
    if not began_here(desk, run.id) and not is_protected(desk, code):
        raise NotAllowed(
            f"run {run.id} began elsewhere, with code that is not on the protected branch ({code[:10]})",
            hint=f"read it, and go on with what is here now: git gate resume {run.id[:6]} --code now",
        )


def check_out(desk: Desk, run: str, code: str) -> Path:
    """The files of that commit, in a folder of this machine: whole or not there, also where several want them at once."""
    place = folder_of(desk, run) / "code" / code
    if place.is_dir():
        return place
    place.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as new:
        index, files = {"GIT_INDEX_FILE": f"{new}/index"}, Path(new) / "files"
        files.mkdir()
        git = desk.repo.git
        git.run("read-tree", code, env=index)
        where = (f"--git-dir={desk.repo.git_dir}", f"--work-tree={files}")
        git.run(*where, "checkout-index", "-a", "-f", f"--prefix={files}/", env=index)
        with suppress(OSError):  # another process was first, with the same files
            files.rename(place)
    return place


def code_now(desk: Desk, file: Path) -> tuple[str, str]:
    """Return the file's path in its repository, and a commit of its present text: one of ours if it is uncommitted."""
    top = desk.repo.top
    if not file.is_file():
        raise Usage(
            f"there is no file {file}",
            hint="git gate run FILE[:NAME], a file with a function under @gitgate.flow",
        )
    if top is None or not file.resolve().is_relative_to(top.resolve()):
        raise Usage(
            f"{file} is not in this repository", hint="a flow's code is kept with its run: put it here"
        )
    path = file.resolve().relative_to(top.resolve()).as_posix()
    taken = take_work(desk, AskWishes())
    commit = taken.work or taken.base
    if not commit or not desk.repo.git.ok("cat-file", "-e", f"{commit}:{path}"):
        raise Usage(f"{path} is left out of what Git keeps here", hint=f"git add {path}")
    return path, commit


def code_protected(desk: Desk, file: Path) -> tuple[str, str, Path]:
    """Return the file's path, the protected branch's commit, and the file as checked out from that commit."""
    top = desk.repo.top
    if top is None or not file.resolve().is_relative_to(top.resolve()):
        raise Usage(
            f"{file} is not in this repository", hint="a flow's code is kept with its run: put it here"
        )
    path, tip = (
        file.resolve().relative_to(top.resolve()).as_posix(),
        protected_tip(desk.refs, desk.records.objects, protected_refs(desk)),
    )
    if tip is None or not desk.repo.git.ok("cat-file", "-e", f"{tip}:{path}"):
        raise Usage(
            f"the protected branch has no file {path}",
            hint=f"bring it there first, or with the code as it is here: git gate run {path}",
        )
    return path, tip, check_out(desk, "protected", tip) / path


def load_flow(file: Path, name: str) -> FlowFunction[..., Any]:
    """The flow of that name in a file; the only one that it has, where none is named."""
    module = load_module(file)
    for variable, one in vars(module).items():
        if isinstance(one, FlowFunction) and not one.name:
            object.__setattr__(one, "name", variable)  # phases have no name of their own
    found = {one.name: one for one in vars(module).values() if isinstance(one, FlowFunction)}
    named = vars(module).get(name)
    if isinstance(named, FlowFunction):
        return named
    if name in found:
        return found[name]
    if not name and len(found) == 1:
        return next(iter(found.values()))
    have = f"it has {', '.join(sorted(found))}" if found else "it has none"
    raise Usage(
        f"{file.name}: {f'there is no flow {name!r}' if name else 'which flow is meant is not said'}; {have}",
        hint=f"git gate run {file.name}:{next(iter(sorted(found)), 'NAME')}   (a flow is decorated: @gitgate.flow)",
    )


def line_of(broken: Exception, file: Path) -> str:
    """Return the line of the file that an error came from, as `, line 12`; empty where that is not known."""
    if isinstance(broken, SyntaxError):
        return f", line {broken.lineno}" if broken.lineno else ""
    frame, found = broken.__traceback__, 0
    while frame is not None:
        found = frame.tb_lineno if frame.tb_frame.f_code.co_filename == str(file) else found
        frame = frame.tb_next
    return f", line {found}" if found else ""


def load_module(file: Path) -> ModuleType:
    if not file.is_file():
        raise Usage(f"there is no file {file}", hint="git gate run FILE:NAME")
    folder = os.fspath(file.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = (
        file.stem
        if file.stem.isidentifier() and file.stem not in sys.modules
        else f"flow_{abs(hash(file)):x}"
    )
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise Usage(f"{file} is no Python file", hint="its name ends with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # no file of ours in a working tree
    try:
        with no_exit():
            spec.loader.exec_module(module)
    except GateError:
        sys.modules.pop(name, None)
        raise
    except Exception as broken:
        sys.modules.pop(name, None)
        raise Failure(
            f"{file.name} cannot be loaded{line_of(broken, file)}: {type(broken).__name__}: {broken}",
            hint=f"see where: python {file.name}",
        ) from broken
    finally:
        sys.dont_write_bytecode = before
    return module
