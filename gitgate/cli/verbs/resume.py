"""Command line: verbs that start agents: `git gate resume` acts on what was answered, here and now, `worker` stays and does; `wrap -- CMD…`
runs an agent, and opens the gate when it ends by asking. `session drop` erases what was saved of one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...acts import find_anywhere, find_gate, open_gate
from ...acts.needs import asker_of, environment_of, gates_for_command, look_before_run, read_end
from ...acts.sessions import drop, session_facts
from ...agents import AGENTS
from ...context import machine_settings
from ...context.machine import repositories
from ...context.targets import is_run, remote_of
from ...errors import Conflict, Failure, Usage
from ...exchange.syncing import news
from ...resumption.calls import call, leave_all, pool_of, refuse_failed, refuse_waiting
from ...resumption.pool import PoolGroup, WorkerPlan, work_group
from ...runners.celery import QUEUE, broker_answers, make_app, read_addresses, read_routes
from ...text import counted
from .. import DONE, FAILURE, WAITING
from ..process import stop_on_signal
from ..terminal import Screen, explain_alone, gate_argument, tell_of_rules, verb, verb_name

if TYPE_CHECKING:
    from ...context import Desk
    from ...model.gate import Gate
    from ...resumption.run import Resumed


NOTHING = "nothing is to be resumed; what waits: git gate list"


@click.command("resume")
@gate_argument(required=False)
@click.option("--all", "all_", is_flag=True, help="Every gate that is answered.")
@click.option("--runner", metavar="NAME", help="What starts the agent: local, or another that is set up.")
@click.option("--detach", is_flag=True, help="Start it and return; the log says what comes of it.")
@click.option("--code", type=click.Choice(["now"]), help="Of a run: with the flow's code as it is here now.")
@verb
def resume_command(
    screen: Screen, gate_id: str | None, all_: bool, runner: str | None, detach: bool, code: str | None
) -> int:
    """Claim what is answered, and start its agent again on the restored work. A run goes on from where it stopped.

    Stays until the agent is done. Exit 5 when another runner has it; 8 when nobody has answered.

    \b
    git gate resume 7k2f
    git gate resume --all
    """
    if (gate_id is None) == (not all_):
        raise Usage(
            "name a gate, or --all" if gate_id is None else "name a gate, or --all, not both",
            hint="git gate list --state answered",
        )
    desk = screen.desk()
    if gate_id is not None and is_run(desk, gate_id):
        from .run import detached, resume_run, run_of

        if desk.repo.bare and not detach and code != "now":
            return resume_on_server(screen, desk, gate_id)
        return (
            detached(screen, run_of(desk, gate_id).id)
            if detach
            else resume_run(screen, desk, gate_id, now=code == "now")
        )
    name = runner or desk.settings.text("runner")
    if gate_id is not None:
        gate = answered_gate(desk, gate_id)
        refuse_waiting(gate)
        return (
            hand_to_runner(screen, desk, name, gate.id)
            if detach or name != "local"
            else one(screen, desk, gate)
        )
    if name != "local":
        return each_elsewhere(screen, desk, name)
    return hand_to_runner(screen, desk, name, "") if detach else every(screen, desk)


def answered_gate(desk: Desk, gate_id: str) -> Gate:
    """Return the gate; where this clone knows no such gate, or no answer to it, ask the remote once."""
    gate = find_anywhere(open_gate, desk, gate_id)
    if gate.state == "awaiting" and not news(desk):
        gate = open_gate(desk, gate.id)
    return gate


def hand_to_runner(screen: Screen, desk: Desk, name: str, gate: str) -> int:
    """Leave a gate to a runner."""
    log = call(desk, gate, name)
    screen.emit("resume", {"runner": name, "log": log, "gate": gate or None}, "")
    screen.say(f"resuming by {name} (log {log})")
    return DONE


def each_elsewhere(screen: Screen, desk: Desk, name: str) -> int:
    """Leave to a runner all that it can act on, and say of the rest why it cannot."""
    left = leave_all(desk, name)
    gates = [{"gate": gate, "log": log} for gate, log in left.logs.items()]
    screen.emit("resume", {"runner": name, "gates": gates}, "")
    for gate, log in left.logs.items():
        screen.say(f"gate {gate}: resuming by {name} (log {log})")
    for gate, error in left.failed.items():
        screen.warn(f"gate {gate}: {error.message}; {error.hint}")
    if not gates and not left.failed:
        screen.say(NOTHING)
    return FAILURE if left.failed else DONE


def resume_on_server(screen: Screen, desk: Desk, given: str) -> int:
    """Go on with a run where there is no working tree, in one that is made for it, as when the server wakes it."""
    from ...flows.children import root_of
    from .run import CODES, details_of, run_of

    run = run_of(desk, given)
    if run.closed:
        raise Conflict(f"run {run.id} is over: {run.state}", hint=f"git gate show {run.id[:6]}")
    run = root_of(desk, run)
    with stop_on_signal() as stopping:
        done = pool_of(desk, screen.say, stopping).act(run.id)
    if done.result != "resumed":
        raise Failure(f"run {run.id} did not go on: {done.reason}", hint=f"what it said: {done.log}")
    shape = details_of(desk, run_of(desk, run.id))
    screen.emit("run", shape, "")
    screen.say(f"run {run.id} is {shape['status']}")
    return CODES[str(shape["status"])]


def one(screen: Screen, desk: Desk, gate: Gate) -> int:
    with stop_on_signal() as stopping:
        done = pool_of(desk, screen.say, stopping, insist=True).act(gate.id)
    tell_resumed(screen, [done])
    refuse_failed(done)
    return DONE


def every(screen: Screen, desk: Desk) -> int:
    with stop_on_signal() as stopping:
        group = PoolGroup([pool_of(desk, screen.say, stopping)], desk.settings.number("maxAgents"), stopping)
        group.drain()
    tell_resumed(screen, group.done)
    for gate, error in group.failed.items():
        screen.warn(f"{gate}: {error.message}")
    if not group.done and not group.failed:
        screen.say(NOTHING)
    bad = group.failed or any(done.result != "resumed" for done in group.done)
    return FAILURE if bad else DONE


def tell_resumed(screen: Screen, done: list[Resumed]) -> None:
    from dataclasses import asdict

    screen.emit("resume", {"gates": [asdict(item) for item in done]}, "")


def queue_worker(screen: Screen) -> int:
    """Show what a Celery worker would do here, and the two lines that start it."""
    from ...resumption.cache import cache_home

    settings = machine_settings(screen.env)
    if not settings.text("queue.broker"):
        raise Usage(
            "no broker is set for the workers of this account; they read no repository's configuration",
            hint="git config --global gitgate.queue.broker redis://HOST:6379/0",
        )
    app = make_app(settings)
    addresses = read_addresses(settings)
    if not addresses:
        raise Failure(
            "no repository is named whose answers this machine takes",
            hint="git config --global gitgate.queue.repositories 'ssh://git@HOST/srv/*'",
        )
    queues = list(dict.fromkeys((QUEUE, *(queue for _, _, queue in read_routes(settings)))))
    most, broker = settings.number("maxAgents"), app.connection().as_uri()
    worker = ["celery", "-A", "gitgate.queue", "worker", "-l", "INFO", "-Q", ",".join(queues)]
    looks = ["celery", "-A", "gitgate.queue", "beat", "-s", str(cache_home(screen.env).parent / "beat")]
    trouble = broker_answers(app)
    told = {
        "broker": broker,
        "answers": not trouble,
        "repositories": addresses,
        "queues": queues,
        "agents": most,
    }
    lines = [
        f"broker        {broker}{f': {trouble}' if trouble else ''}",
        f"repositories  {' '.join(addresses)}",
        f"at once       {counted(most, 'agent')}   (git config --global gitgate.maxAgents)",
        f"the worker    {' '.join(worker)}",
        f"on one machine, too, what looks every minute for what no message told of\n              {' '.join(looks)}",
    ]
    screen.emit("worker", {"queue": {**told, "worker": worker, "beat": looks}}, "\n".join(lines))
    return FAILURE if trouble else DONE


@click.command("worker")
@click.argument("directories", metavar="[DIR]...", nargs=-1)
@click.option("--everywhere", is_flag=True, help="In every repository that `git gate init` knows.")
@click.option("--most", type=click.IntRange(1), metavar="N", help="At most so many agents at once.")
@click.option("--once", is_flag=True, help="End when nothing is left to do.")
@click.option("--queue", is_flag=True, help="Say how this machine works for a queue, and whether it could.")
@verb
def worker_command(
    screen: Screen, directories: tuple[str, ...], everywhere: bool, most: int | None, once: bool, queue: bool
) -> int:
    """Stay and act on answers and deadlines, in this repository or in those named; tell people of what waits.

    SIGTERM and Ctrl-C end it cleanly: agents are stopped, and what it holds is handed back.

    \b
    git gate worker
    git gate worker ../api ../web
    git gate worker --queue
    """
    if queue:
        if directories or everywhere or most or once:
            raise Usage(
                "--queue looks at this machine and works at nothing: nothing goes beside it",
                hint="git gate worker --queue",
            )
        return queue_worker(screen)
    from ...surfaces.notify.sending import telling

    places = known(screen, directories, everywhere=everywhere)
    plan = WorkerPlan(places, screen.env, most)
    with stop_on_signal() as stopping, telling(places, screen.env, screen.say, stopping):
        group = work_group(plan, screen.say, stopping, once=once)
    from dataclasses import asdict

    screen.emit("worker", {"gates": [asdict(done) for done in group.done]}, "")
    return DONE


def known(screen: Screen, directories: tuple[str, ...], *, everywhere: bool) -> list[Path]:
    if everywhere:
        if directories:
            raise Usage("--everywhere, or directories: not both")
        found = repositories(screen.env)
        if not found:
            raise Usage("no repository is known", hint="git gate init in each")
        return found
    here = Path(screen.directory) if screen.directory else Path.cwd()
    places = [here / directory for directory in directories] or [here]
    for place in places:
        if not place.is_dir():
            raise Failure(f"{place} is not a directory", hint=f"{verb_name()} DIR: one that is there")
    return places


@click.group("session", invoke_without_command=True)
@verb
def session_command(screen: Screen) -> None:
    """The saved conversations of agents."""
    explain_alone(screen)


@session_command.command("drop")
@gate_argument()
@verb
def drop_command(screen: Screen, gate_id: str) -> int:
    """Erase a gate's saved session, here and on the remote. The record stays whole: it holds none of it.

    Git keeps the objects until they are pruned, and other clones keep what they fetched.

    \b
    git gate session drop 7k2f
    """
    desk = screen.desk()
    desk.refuse_agents("session drop")
    gate = find_gate(desk, gate_id).gate
    done = drop(desk, gate.id)
    screen.emit(
        "session", {"gate": done.gate, "here": done.here, "remote": done.remote, "there": done.there}, ""
    )
    where = " and ".join([*(["here"] if done.here else []), *([f"on {done.remote}"] if done.there else [])])
    screen.say(f"the session of gate {gate.id} is erased {where}")
    screen.say(
        "its objects stay until git prunes them (git gc --prune=now), and copies in other clones remain"
    )
    return DONE


OUTPUT = "GITHUB_OUTPUT"
SETTINGS = "gitgate.git-settings"  # git's, for the command alone, from a verb that runs this one
ASKED = "gitgate.asked"  # and back to it: whether the command asked


@click.command("wrap", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--waiting-ok", is_flag=True, help="Exit 0 when the agent waits for an answer, instead of 8.")
@click.option("--agent", metavar="NAME", help="The agent's name.")
@verb
def wrap_command(screen: Screen, command: tuple[str, ...], waiting_ok: bool, agent: str | None) -> int:
    """Run an agent's command; when it ends by asking, open the gate for it and exit 8.

    It has asked when it opened a gate itself, stopped at a deferred tool call, ended with a `needs_input` or
    `NEEDS_HUMAN` object, or left a signal file. Otherwise its own exit code is passed on. Its work is left as it is.

    Claude Code is given what it needs to ask, in every folder: our hooks, beside its own `--settings`, the flag by which its tool
    for questions is offered, and a name for its conversation. Where calls need approval, a command in which hooks are switched
    off is refused (exit 4), and a run in which they did not run ends with exit 1.

    \b
    git gate wrap -- claude -p "Add a login page"
    git gate wrap -- claude -p "$TASK" --output-format json
    """
    if not command:
        raise Usage("what is to be run?", hint="git gate wrap -- claude -p 'The task'")
    desk = screen.desk()
    from uuid import uuid4

    from ...agents.process import run_wrapped
    from ...setup.equipping import able_to_ask, need_hooks, watched

    cwd = Path.cwd()
    for note in need_hooks(desk, command, cwd, screen.env):
        screen.warn(note)
    command = able_to_ask(desk, command, str(uuid4()), cwd)
    if (known := AGENTS.get(Path(command[0]).name)) is not None:
        command = known.able_to_ask(command, known.new_session(uuid4().hex))
    tell_of_rules(screen, desk)
    before = look_before_run(desk)
    # With --json our object is all there is on standard output, and what the command says is talk.
    out = sys.stderr.buffer if screen.as_json else sys.stdout.buffer

    blank: list[bytes] = []  # all that was printed, while that is nothing to see
    seen = False

    def forward(piece: bytes) -> None:
        nonlocal seen
        seen = seen or bool(piece.strip())
        blank.append(piece)
        if seen:
            out.write(b"".join(blank))
            out.flush()
            blank.clear()

    settings = click.get_current_context().meta.get(SETTINGS, ())
    with watched(desk, command, cwd, screen.env) as watch:
        heard = run_wrapped(command, cwd, environment_of(desk, command, settings, watch.token), forward)
        unheard = watch.missed(heard)
    gates = gates_for_command(
        desk, before, read_end(command, heard.out), asker_of(desk, command, heard.pid, agent)
    )
    if not gates:  # else it is the empty line of a run that its question ended: what we say instead says more
        out.write(b"".join(blank))
        out.flush()
    click.get_current_context().meta[ASKED] = bool(gates)
    code = FAILURE if unheard and watch.ruled else heard.code
    tell_ci(screen, gates, code)
    waits = tell_waiting(screen, desk, gates, code, waiting_ok=waiting_ok)
    if unheard:
        screen.warn(unheard)
    return code if unheard and watch.ruled else waits


def tell_waiting(screen: Screen, desk: Desk, gates: Sequence[Gate], code: int, *, waiting_ok: bool) -> int:
    """Say what waits now and how to answer it; return the exit code."""
    from ...render.letter import waiting_words

    if screen.as_json:
        from ...render import shapes

        facts, remote = session_facts(desk, gates), remote_of(desk)
        found = [
            shapes.gate(
                gate,
                pushed=remote is not None and desk.tracked(remote, gate.id) == gate.tip,
                **facts[gate.id],
            )
            for gate in gates
        ]
        first = found[0] if found else None
        screen.emit("wrap", {"gate": first, "gates": found, "state": state_of(gates, code), "code": code}, "")
    if not gates:
        return code
    for gate in gates:
        screen.say(waiting_words(gate))
    return DONE if waiting_ok else WAITING


def state_of(gates: Sequence[Gate], code: int) -> str:
    return gates[0].state if gates else "failed" if code else "done"


def tell_ci(screen: Screen, gates: Sequence[Gate], code: int) -> None:
    """Write the outcome for the steps that follow in a CI job.

    All words are our own: no line of them can be somebody else's.
    """
    name = screen.env.get(OUTPUT)
    if not name:
        return
    lines = [f"gate={gates[0].id if gates else ''}", f"state={state_of(gates, code)}"]
    lines += [f"gates={' '.join(gate.id for gate in gates)}"] if len(gates) > 1 else []
    try:
        with Path(name).open("a", encoding="utf-8") as out:
            out.write("\n".join([*lines, ""]))
    except OSError as unwritable:
        raise Failure(
            f"{OUTPUT} cannot be written: {unwritable.strerror}", hint=f"check {name}"
        ) from unwritable
