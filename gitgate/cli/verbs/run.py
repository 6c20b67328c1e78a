"""Command line: `git gate run`, and what the other verbs show of runs and do to them."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ...agents import without_caller
from ...config import environment
from ...context import open_desk as opened
from ...errors import Conflict, GateError, Usage
from ...flows import checking, journal, program
from ...flows.checking import TO_PROGRAMS, RunWatch, asked_at, lint
from ...flows.children import root_of
from ...flows.journal import find_run, folder_of
from ...flows.program import Surroundings, go_on, stop_child
from ...gates import runs_here
from ...gates.agency import began_here
from ...gates.history import archived_runs
from ...gates.work import tree_on_branch
from ...render.letter import trail, trail_line
from ...render.runs import DRAWN, run_page, run_rows, run_shape, run_trail, run_tree
from ...resumption.calls import wake_due
from ...store.git.programs import detach, our_command, take_place
from ...text import counted
from .. import CLOSED, DONE, FAILURE, SAID_NO, WAITING
from ..terminal import Screen, json_line, verb
from ..terminal.prompts import LeaveAll, end_fork, frames_of_flow, may_ask, offer, show_agents, tell_where

if TYPE_CHECKING:
    from ...context import Desk
    from ...flows.endings import FlowEnding, RunWaits
    from ...flows.engine import Engine
    from ...flows.program import FlowFunction
    from ...record.runs import Run

CODES = {
    "completed": DONE,
    "waiting_human": WAITING,
    "sleeping": WAITING,
    "stuck": CLOSED,
    "stopped": CLOSED,
    "failed": FAILURE,
    "stalled": FAILURE,
}
RUN_FROM = (
    "--from takes a run's id, and nothing beside it but --name and --push",
    "git gate run RUN --from STEP",
)
RUN_NOW = ("--code now takes a run's id, and nothing beside it", "git gate run RUN --code now")


@click.command("run")
@click.argument("flow", metavar="FILE[:NAME]")
@click.argument("given", metavar="[INPUT]...", nargs=-1)
@click.option(
    "-i", "pairs", multiple=True, metavar="KEY=VALUE", help="An argument of the flow by its name; repeatable."
)
@click.option("--name", metavar="N", help="What this run is called in lists.")
@click.option("--branch", metavar="B", help="In a working tree of its own, on this branch.")
@click.option("--here", is_flag=True, help="In the working tree that you are in, as without --branch.")
@click.option("--detach", is_flag=True, help="Start it and return; the log says what comes of it.")
@click.option(
    "--code", type=click.Choice(["now"]), help="Of a run: go on with it, with FILE as it is here now."
)
@click.option("--protected", is_flag=True, help="With the flow's code as the protected branch has it.")
@click.option(
    "--from", "from_", metavar="STEP", help="As a run was before STEP, anew from there: a fork of it."
)
@click.option("--check", is_flag=True, help="Replay recorded runs against FILE as it is: would they go on?")
@click.option("--all", "ended", is_flag=True, help="With --check: runs that have ended as well.")
@click.option("--lint", is_flag=True, help="Name what FILE does outside of steps that no replay repeats.")
@click.option("--push/--no-push", default=None, help="Insist on pushing, or stay local.")
@verb
def run_command(
    screen: Screen,
    flow: str,
    given: tuple[str, ...],
    pairs: tuple[str, ...],
    name: str | None,
    branch: str | None,
    here: bool,
    detach: bool,
    code: str | None,
    protected: bool,
    from_: str | None,
    check: bool,
    ended: bool,
    lint: bool,
    push: bool | None,
) -> int:
    """Start a flow: a Python function that runs agents and asks people, and survives its process.

    Stays until it ends or waits for a person. At a terminal you are asked at once; `later` leaves it waiting. Exit 0 when it
    is completed, 8 while it waits, 3 when a person's no ended it, 9 when it is stuck or stopped, 1 when it failed.

    \b
    git gate run flows.py:feature "Add a login page"
    git gate run flows.py:release -i version=1.4 --branch release-1.4
    git gate run nightly.py --detach
    git gate run --check flows.py
    git gate run --lint flows.py
    git gate run 9m4x --from step:build#1
    git gate run 9m4x --code now
    """
    refuse_contrary(branch, here=here, code=code, protected=protected)
    if check or lint or ended:
        return look_at(screen, flow, given, check=check, lint=lint, ended=ended)
    said = {"push": {True: "true", False: "false"}[push]} if push is not None else None
    if from_ is not None:
        refuse_beside(RUN_FROM, given, pairs, branch, detach=detach, protected=protected)
        return fork(screen, flow, from_, name or "", said)
    desk = screen.desk(said=said)
    place, _, wanted = flow.partition(":")
    file = screen.start / place
    begun = run_meant(desk, flow, file)
    if begun is not None:
        refuse_begun(begun, flow, file, now=code is not None)
        refuse_beside(RUN_NOW, given, pairs, branch, name, detach=detach)
        return resume_run(screen, desk, begun.id, now=True)
    if protected:
        path, commit, file = program.code_protected(desk, file)
    else:
        path, commit = program.code_now(desk, file)
        tell_where(screen, desk, commit, flow)
    found = program.load_flow(file, wanted)
    args, kwargs = arguments_of(found, given, pairs)
    started = {"file": path, "code": commit, "name": name or "", "branch": branch or "", "path": path}
    directory = tree_of_branch(desk, branch) if branch else None
    around = around_run(screen, directory, said)
    if detach:
        return detached(screen, program.leave_begun(found, args, kwargs, around, **started))
    return told(screen, around, lambda: program.begin_flow(found, args, kwargs, around, **started))


def refuse_contrary(branch: str | None, *, here: bool, code: str | None, protected: bool) -> None:
    if here and branch:
        raise Usage(
            "--here is the working tree that you are in, and --branch another one", hint="leave one out"
        )
    if code and protected:
        raise Usage(
            "--code now is the code as it is here, and --protected that of another branch",
            hint="leave one out",
        )


def run_meant(desk: Desk, given: str, file: Path) -> Run | None:
    """Return the run whose id was typed instead of a file; None where there is such a file, or no such run."""
    if not file.exists():
        with suppress(GateError):
            return run_of(desk, given)
    return None


def refuse_begun(run: Run, given: str, file: Path, *, now: bool) -> None:
    """Refuse a run's id instead of a file, unless `--code now` says that the run is to go on."""
    if not now:
        raise Usage(
            f"there is no file {file}; {given} is a run, which has begun",
            hint=f"git gate resume {run.id}   anew from a step: git gate run {run.id} --from STEP",
        )


def refuse_beside(what: tuple[str, str], *given: object, **flags: bool) -> None:
    """Refuse arguments for a run that was begun: it has its input, its branch and its tree already."""
    if any(given) or any(flags.values()):
        raise Usage(f"{what[0]}: its input is that of the run", hint=what[1])


def fork(screen: Screen, given: str, step: str, name: str, said: dict[str, str] | None) -> int:
    """Begin a run that is like another one up to a step, with the code as it is here now."""
    desk = screen.desk(said=said)
    run = run_of(desk, given)
    if run.called_by[0]:
        raise Usage(
            f"run {run.id} is a step of run {run.called_by[0]}, and cannot be begun anew alone",
            hint=f"git gate run {run.called_by[0][:6]} --from {run.called_by[1]}",
        )
    file = run.started.text("file")
    if not file or desk.repo.top is None:
        raise Usage(
            f"run {run.id} was begun by no file that is in a working tree here", hint="git gate run FILE:NAME"
        )
    path, code = program.code_now(desk, desk.repo.top / file)
    flow = program.load_flow(desk.repo.top / file, run.flow)
    around = around_run(screen, None, said)
    started = {"file": path, "code": code, "name": name, "path": path}
    return told(screen, around, lambda: program.fork_run(desk, run, step, around, flow=flow, **started))


def look_at(
    screen: Screen,
    given: str,
    histories: Sequence[str],
    *,
    check: bool,
    lint: bool,
    ended: bool,
) -> int:
    """Check recorded runs against a file, or read a file: nothing is started."""
    if check + lint != 1 or (ended and not check) or (histories and not check):
        raise Usage(
            "--check and --lint each stand alone; --all and histories go with --check",
            hint="git gate run --check FILE [HISTORY.bundle]   git gate run --lint FILE",
        )
    if lint:
        return lint_file(screen, screen.start / given.partition(":")[0])
    return check_runs(screen, given, histories, ended=ended)


def lint_file(screen: Screen, file: Path) -> int:
    """Report what the flows of a file do outside of their steps that no replay repeats; exit 1 where there is any."""
    found = lint(file)
    shapes = [{**vars(one), "file": file.name, "instead": one.instead} for one in found]
    lines = [
        f"{file.name}:{one.line}: in {one.flow}, {one.name}() asks {one.kind} in each replay; {one.instead}"
        for one in found
    ]
    screen.emit("lint", {"findings": shapes}, "\n".join(lines))
    if not found:
        screen.say(f"{file.name}: no clock, no chance, and nothing of the outside world outside of steps")
    return FAILURE if found else DONE


def check_runs(screen: Screen, given: str, histories: Sequence[str], *, ended: bool) -> int:
    """Check recorded runs against a file's code as it is now; exit 1 where one would not go on with it."""
    place, _, name = given.partition(":")
    file, desk = screen.start / place, screen.desk()
    if histories:
        found = [checking.check_history(file, screen.start / one) for one in histories]
    else:
        found = checking.check_file(desk, file, name, ended=ended)
    shapes = [{"run": one.run, "status": one.status, "reason": one.reason or None} for one in found]
    lines = [f"run {one.run}: {one.status}{f': {one.reason}' if one.reason else ''}" for one in found]
    screen.emit("check", {"runs": shapes}, "\n".join(lines))
    if not found:
        kept = "was recorded here" if ended else "goes on here"
        screen.say(f"no run of {place} {kept}{'' if ended else '; those that have ended: --all'}")
    return DONE if all(one.same for one in found) else FAILURE


def arguments_of(
    flow: FlowFunction[..., Any], given: Sequence[str], pairs: Sequence[str]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the typed arguments as the flow's parameters want them."""
    named: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.isidentifier():
            raise Usage(f"-i {pair}: expected KEY=VALUE", hint="git gate run FILE:NAME -i version=1.4")
        named[key] = value
    signature = inspect.signature(flow.function)
    try:
        bound = signature.bind(*given, **named)
    except TypeError as unfit:
        wants = ", ".join(str(parameter) for parameter in signature.parameters.values())
        raise Usage(
            f"flow {flow.name} takes ({wants}): {unfit}", hint="INPUT… in that order, or -i KEY=VALUE"
        ) from unfit
    kinds = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    values = [
        read_value(value, kinds, name) for name, value in zip(signature.parameters, bound.args, strict=False)
    ]
    values += list(bound.args[len(values) :])
    return values, {name: read_value(value, kinds, name) for name, value in bound.kwargs.items()}


def read_value(text: Any, kinds: dict[str, Any], name: str) -> Any:
    """Return an argument as text, unless the parameter says that it is a number, a truth, or other JSON."""
    kind = kinds.get(name)
    kind = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
    if not isinstance(text, str) or kind in ("str", "_empty", ""):
        return text
    try:
        return json.loads(text)
    except ValueError as unfit:
        raise Usage(
            f"-i {name}: expected {kind}; found {text!r}", hint="numbers, true, false, or JSON"
        ) from unfit


def tree_of_branch(desk: Desk, branch: str) -> Path:
    return tree_on_branch(desk, branch)


def around_run(
    screen: Screen, directory: Path | None = None, said: dict[str, str] | None = None, *, now: bool = False
) -> Surroundings:
    """Return how the command line replays a run: it prints lines for people, and ends the process where the run waits."""
    from dataclasses import replace

    place = replace(
        screen, directory=str((directory or screen.start).absolute())
    )  # the flow may go elsewhere

    def open_desk() -> Desk:
        return opened(place.start, dict(screen.env), flags=said)

    out = sys.stdout

    def leave(waits: RunWaits) -> NoReturn:
        with redirect_stdout(out):
            ask_here(place, open_desk, waits, said or {}, now=now)
            tell_waiting(screen, open_desk, waits)
            flush()
        os._exit(WAITING)

    shows = show_agents(screen)

    def prepare(engine: Engine) -> None:
        shows(engine)
        engine.forked = partial(end_fork, screen)

    return Surroundings(open_desk, screen.say, leave, prepare=prepare)


def ask_here(
    screen: Screen, open_desk: Callable[[], Desk], waits: RunWaits, said: dict[str, str], *, now: bool
) -> None:
    """Ask the person at this terminal at once, by a program that replaces this process; do nothing without a person."""
    if not waits.gates or not may_ask(screen, desk := open_desk()):
        return
    desk.close()
    screen.say(waits.message)
    tell_signals(screen, waits.hint)
    flags = ["-q"] if screen.quiet else []
    flags += ["--color", screen.color] if screen.color else []
    run = waits.run
    argv = our_command(
        *flags, "hook", "flow-question", run, "now" if now else "then", *waits.gates, at=screen.start
    )
    env = environment() | {f"GITGATE_{name.upper()}": value for name, value in said.items()}
    flush()
    take_place(argv, screen.start, env)


def ask_and_go_on(screen: Screen, args: tuple[str, ...]) -> int:
    """Ask a person at this terminal what a run waits for, and go on with it where they answered; else it waits (exit 8)."""
    run, code, *gates = args
    desk = screen.desk()
    desk.refuse_agents("run")
    decided = 0
    try:
        for gate in gates:
            decided += offer(screen, desk, gate)
    except (LeaveAll, EOFError):
        screen.warn("")
    except KeyboardInterrupt:
        screen.warn("")
        tell_how(screen, run, gates)
        raise
    if decided:
        return resume_run(screen, desk, run, now=code == "now")
    screen.say(f"run {run} still waits")
    tell_how(screen, run, gates)
    return WAITING


def flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


def tell_waiting(screen: Screen, open_desk: Callable[[], Desk], waits: RunWaits) -> None:
    desk = open_desk()
    run = run_of(desk, waits.run)
    screen.emit("run", details_of(desk, run), "")
    screen.say(waits.message)
    tell_how(screen, run.id, waits.gates, waits.hint)


def tell_how(screen: Screen, run: str, gates: Sequence[str], hint: str = "") -> None:
    """Say what to type so that a waiting run goes on."""
    for gate in gates:
        screen.say(f"  answer it: git gate respond {gate[:6]}   or look: git gate show {gate[:6]}")
    tell_signals(screen, hint)
    screen.say(f"then it goes on, where git gate init allowed that, or by: git gate resume {run[:6]}")


def tell_signals(screen: Screen, hint: str) -> None:
    for line in hint.splitlines():
        if line.startswith("git gate signal"):
            screen.say(f"  send it: {line}")


def told(screen: Screen, around: Surroundings, act: Callable[[], FlowEnding]) -> int:
    """Go on with a run, and say what came of it, in words and as the exit code.

    Where JSON is wanted, the flow's own output goes to standard error.
    """
    if screen.as_json:
        with redirect_stdout(sys.stderr):
            ended = act()
    else:
        ended = act()
    desk = around.open_desk()
    try:
        run = run_of(desk, ended.id)
        screen.emit("run", details_of(desk, run), shown_value(ended.value))
    finally:
        desk.close()
    about = f": {ended.reason}" if ended.reason else ""
    screen.say(f"run {ended.id} is {ended.status}{about}")
    for hint in str(getattr(ended.raised, "hint", "")).splitlines():
        screen.say(f"  {hint}")
    if ended.status == "failed" and ended.raised is not None and not isinstance(ended.raised, GateError):
        import traceback

        raised, own = ended.raised, frames_of_flow(ended.raised)
        screen.say("".join(traceback.format_exception(type(raised), raised, own)).rstrip())
    return SAID_NO if ended.refused else CODES[ended.status]


def shown_value(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def leave_to_process(screen: Screen, desk: Desk, run: str) -> Path:
    """Start a process of its own that goes on with a run; return its log."""
    log = folder_of(desk, run) / "log"
    place = desk.repo.place
    detach(our_command("resume", run, at=place), place, without_caller(screen.env), log)
    return log


def detached(screen: Screen, run: str) -> int:
    """Leave a run that was begun to a process of its own."""
    desk = screen.desk()
    log = leave_to_process(screen, desk, run)
    screen.emit("run", details_of(desk, run_of(desk, run)), run)
    screen.say(f"run {run} goes on by itself (log {log}); see: git gate show {run[:6]}")
    return DONE


# what other verbs do with a run


def run_of(desk: Desk, given: str) -> Run:
    return find_run(desk, given)


def details_of(desk: Desk, run: Run) -> dict[str, object]:
    return checking.details_of(desk, run)


def show_run(screen: Screen, desk: Desk, given: str, format_: str | None) -> None:
    """Show a run with its steps."""
    from dataclasses import replace

    shape = details_of(desk, run_of(desk, given))
    if screen.as_json or format_ == "json":
        replace(screen, as_json=True).emit("run", shape, "")
    elif format_ in DRAWN:
        click.echo(DRAWN[format_](shape))
    else:
        screen.page(run_page(shape, desk.clock(), screen.letter_width, color=screen.colored))


def tree_run(screen: Screen, desk: Desk, given: str) -> None:
    """Show a run's steps, those of a branch below it."""
    seen: set[str] = set()

    def below(run: str) -> dict[str, object] | None:
        if run in seen:  # whoever writes a journal may write anything
            return None
        seen.add(run)
        with suppress(GateError):
            return details_of(desk, run_of(desk, run))
        return None

    shape = details_of(desk, run_of(desk, given))
    screen.emit("run", shape, "")
    if not screen.as_json:
        screen.page("\n".join(run_tree(shape, screen.width, below, color=screen.colored)))


def watch_run(screen: Screen, desk: Desk, given: str, seconds: float | None, *, going_on: bool) -> None:
    """Print what happens to a run, until it is over.

    `going_on`: as soon as the run's wait ends, a process goes on with it.
    """

    def go_on(run: Run) -> None:
        log = leave_to_process(screen, desk, run.id)
        screen.say(f"run {run.id}: somebody answered; going on (log {log})")

    watch = RunWatch(desk, run_of(desk, given).id, go_on if going_on else None)
    for event in watch.events(seconds):
        if screen.as_json:
            click.echo(json_line("event", event))
        elif event["event"] not in TO_PROGRAMS:
            click.echo(trail_line(event, screen.width, color=screen.colored))


def log_run(screen: Screen, desk: Desk, given: str, most: int | None) -> None:
    """Show a run's journal, newest first."""
    events = run_trail(run_of(desk, given))[:most]
    screen.emit("log", {"events": events}, "")
    if not screen.as_json:
        screen.page("\n".join(trail(events, screen.width, color=screen.colored)))


def list_runs(screen: Screen, *, active: bool, archived: bool = False) -> None:
    """List the runs of this clone, those that go on first; and those of the archive, where they are wanted."""
    desk = screen.desk()
    shapes = []
    every = runs_here(desk)
    if archived:
        here = {
            said["Run"] for said in every
        }  # a fold that was cut short has archived a run, and left its ref
        every += [{"Run": run, "Closed": "yes"} for run, _ in archived_runs(desk) if run not in here]
    for said in every:
        if active and said.get("Closed"):
            continue
        try:
            run = run_of(desk, said["Run"])
        except GateError as broken:
            screen.warn(f"{said['Run']}: {broken.message}")
            continue
        shapes.append(run_shape(run, asked_at(desk, run.waits_for)))
    shapes.sort(key=lambda shape: str(shape["started"]), reverse=True)
    shapes.sort(key=lambda shape: shape["status"] not in ("waiting_human", "sleeping", "running", "stalled"))
    screen.emit("runs", {"runs": shapes}, "")
    if shapes and not screen.as_json:
        screen.page("\n".join(run_rows(shapes, desk.clock(), screen.width, color=screen.colored)))
    elif not shapes:
        more = "; archived ones too: git gate list --runs --all" if not archived else ""
        screen.say("no run goes on here" if active else f"no run here: git gate run FILE:NAME{more}")


def directory_of(screen: Screen, desk: Desk, run: Run) -> Path | None:
    """Return the directory in which the run was begun, if that was in this clone.

    None where whoever acts on an answer has chosen a directory already.
    """
    place = Path(run.started.text("directory") or ".")
    if screen.directory or screen.env.get("GITGATE_GATE") or not began_here(desk, run.id):
        return None
    return place if place.is_absolute() and place.is_dir() else None


def resume_run(screen: Screen, desk: Desk, given: str, *, now: bool) -> int:
    """Go on with a run, here and now."""
    run = run_of(desk, given)
    if run.closed:  # here; it may have been taken over elsewhere before that was shared
        with suppress(GateError):
            journal.bring_run(desk, run.id)
        run = journal.load_run(desk, run.id)
    if run.closed:
        raise Conflict(f"run {run.id} is over: {run.state}", hint=f"git gate show {run.id[:6]}")
    run = root_of(desk, run)
    around = around_run(screen, directory_of(screen, desk, run), now=now)
    around.restores = not screen.env.get("GITGATE_GATE")
    screen.say(f"run {run.id} of {run.flow}: {counted(len(run.steps), 'step')} recorded; going on")
    return told(screen, around, lambda: go_on(desk, run.id, around, now=now))


def send_signal(screen: Screen, desk: Desk, given: str, topic: str, value: str | None) -> int:
    """Send a word to a run, and start a runner where the run waits for that word and began here."""
    run = journal.signal_run(desk, run_of(desk, given), topic, value)
    screen.emit("run", details_of(desk, run), "")
    awaited = run.rest is not None and topic in run.rest.said.get("topics", ())
    what = "which it waits for" if awaited else "kept until it asks for it"
    screen.say(f"sent to run {run.id} on {topic!r}, {what}")
    woken = wake_due(desk)
    for words in woken:
        screen.say(words)
    if awaited and not woken:
        screen.say(f"to go on with it here: git gate resume {run.id[:6]}")
    return DONE


def stop_run(screen: Screen, desk: Desk, given: str, reason: str) -> int:
    """End a run: whoever goes on with it ends its agent; where nobody does, it ends here."""
    desk.refuse_agents("stop")
    run = journal.stop_run(desk, run_of(desk, given), reason)
    if run.closed:
        raise Conflict(f"run {run.id} is over: {run.state}", hint=f"git gate show {run.id[:6]}")
    try:
        if run.called_by[0]:
            stop_child(desk, run)
            screen.say(
                f"run {run.called_by[0]} is told when it goes on: git gate resume {run.called_by[0][:6]}"
            )
        else:
            go_on(desk, run.id, around_run(screen))
    except journal.RunTaken as held:
        screen.say(f"run {run.id}: {held.message}; it ends before its next step")
    run = run_of(desk, run.id)
    screen.emit("run", details_of(desk, run), "")
    screen.say(f"stopped run {run.id}" if run.closed else f"run {run.id} is told to stop")
    return DONE
