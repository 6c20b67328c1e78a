"""Command line: `git gate github`, what only jobs call: a checkout made ready, an agent run, its gates pushed, an answer acted on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ...errors import Usage
from .. import exits
from ..terminal.screen import Screen, gate_argument, read_file, verb

if TYPE_CHECKING:
    from ...context.desk import Desk
    from ...surfaces.forge.hosts.events import Event
    from ...surfaces.forge.hosts.forge import Forge
    from ...surfaces.forge.sweeping import Swept


def start(screen: Screen) -> tuple[Desk, Forge]:
    from ...gates.deadlines import NEVER
    from ...surfaces.forge.hosts.connect import connect

    desk = screen.desk()
    desk.judged = NEVER  # deadlines pass in sweeps, which first hear what was written before them
    return desk, connect(desk)


def listen(desk: Desk) -> None:
    """The gates as the remote has them."""
    from ...context.remotes import remote_of
    from ...exchange.syncing import bring_home

    remote = remote_of(desk)
    if remote is not None:
        bring_home(desk, remote)


def read_event_file(name: str) -> Event:
    from ...surfaces.forge.hosts.events import MOST_EVENT, parse_event

    data = read_file(name, "EVENT_FILE", MOST_EVENT)
    if len(data) > MOST_EVENT:
        raise Usage("the event is too large", hint="it is not one of the forge's")
    return parse_event(data)


def act_on(screen: Screen, desk: Desk, forge: Forge, gates: list[str], vouched: str = "") -> int:
    from .jobs import resume_gates

    return resume_gates(screen, desk, forge, gates, vouched)


def sweep_now(screen: Screen, desk: Desk, forge: Forge, *, resume: bool) -> int:
    from ...surfaces.forge.sweeping import sweep
    from .jobs import hand_on, summarise

    done = sweep(desk, forge)
    tell_swept(screen, done)
    warn_of_token(screen, desk, forge)
    hand_on(screen, desk, done.resume)
    summarise(screen, desk, forge)
    code = act_on(screen, desk, forge, done.resume) if resume and done.resume else exits.DONE
    return exits.FAILURE if done.trouble else code


def warn_of_token(screen: Screen, desk: Desk, forge: Forge) -> None:
    from ...surfaces.forge.hosts.ourselves import foreign_token

    words = foreign_token(desk, forge)
    if words:
        screen.warn(words)


def tell_swept(screen: Screen, done: Swept) -> None:
    heard = [{"gate": one.gate, "outcome": one.outcome, "words": one.words} for one in done.accepted]
    fields: dict[str, Any] = {
        "shown": done.shown,
        "accepted": heard,
        "resume": done.resume,
        "doubts": done.doubts,
        "trouble": done.trouble,
        "noted": done.noted,
        "asked": done.asked or None,
        "job": done.asked or None,
    }
    screen.emit("github-sweep", fields, "")
    for gate in done.shown:
        screen.say(f"shown: gate {gate}")
    for one in done.accepted:
        screen.say(f"{one.outcome}: {one.words}")
    for words in done.noted:
        screen.say(words)
    if done.asked:
        screen.say(f"this repository's jobs keep its comments, so one was asked to post them: {done.asked}")
    for words in (*done.doubts.values(), *done.trouble):
        screen.warn(words)


@click.command("prepare")
@verb
def prepare_command(screen: Screen) -> int:
    """Make a CI job's checkout ready: settings, who commits, how the agent is started, and a login that holds no secret.

    GITGATE_AGENT_NAME and GITGATE_AGENT_RESUME (a JSON list) name a program that can be started again;
    GITGATE_AGENT_ARGUMENTS (one as well) are flags that Claude Code is resumed with. The default branch, whose
    policy holds, is the event's; where the event names none, the server is asked. The step's output `settings` is for `publish`.

    \b
    git gate github prepare
    """
    from .preparing import prepare

    return prepare(screen)


@click.command("run")
@verb
def run_command(screen: Screen) -> int:
    """Run the job's agent: GITGATE_AGENT_COMMAND is its command as a JSON list, where {task} stands for GITGATE_TASK.

    As `git gate wrap --waiting-ok`: when the agent asks, the job goes on green, and the gate is in the step's outputs. While
    it works in a job, what configures agents (.claude, CLAUDE.md and the like) is as the protected branch has it; what it
    writes there all the same is not committed, and the step fails. Claude Code is given git gate's hooks, and what the
    protected branch's .claude/settings.json permits; where one of those files cannot be replaced, none of the project's own
    settings.

    \b
    git gate github run
    """
    from .first_run import run_first

    return run_first(screen)


@click.command("publish")
@verb
def publish_command(screen: Screen) -> int:
    """Push what an agent's step left here, its branch and its questions, and show them. For the step after the agent's.

    GITGATE_PREPARED, what `prepare` gave out as `settings`: refused where git is set up otherwise now.

    \b
    git gate github publish
    """
    from ...acts.askers import logins_of
    from ...sharing.branches import head_branch, publish_branch
    from .jobs import need_protected, refuse_altered, refuse_other_requesters, started_by

    refuse_altered(screen, screen.desk())
    desk, forge = start(screen)
    need_protected(screen, desk)
    refuse_other_requesters(desk, logins_of(started_by(screen)))
    pushed = publish_branch(desk)
    if pushed is not None:
        screen.say(f"pushed {pushed.branch}{f', {pushed.how}' if pushed.how else ''}")
    if pushed is not None and pushed.why:
        screen.warn(pushed.why)
    code = sweep_now(screen, desk, forge, resume=False)
    if pushed is None or not pushed.moved:
        return code
    from ...surfaces.forge.thread.posting import tell_pushed_beside

    tell_pushed_beside(forge, head_branch(desk), pushed, desk.refs.get("HEAD^{commit}") or "")
    return code or exits.FAILURE


@click.command("resume")
@gate_argument()
@click.option(
    "--event",
    "event_file",
    metavar="EVENT_FILE",
    help="The job's event; a person who dispatched vouches for it.",
)
@verb
def resume_command(screen: Screen, gate_id: str, event_file: str | None) -> int:
    """Start the agent of an answered gate, here and now, if its answer is proven: for the job after the one that took it.

    Exit 0 also when another job has it already.

    \b
    git gate github resume 7k2f --event "$GITHUB_EVENT_PATH"
    """
    from ...acts.reading import open_gate
    from .jobs import need_protected, summarise

    desk, forge = start(screen)
    need_protected(screen, desk)
    listen(desk)
    gate = open_gate(desk, gate_id).id
    refresh_comment(screen, desk, forge, gate)
    code = act_on(screen, desk, forge, [gate], vouched_for(desk, forge, gate, event_file))
    summarise(screen, desk, forge)
    return code


def refresh_comment(screen: Screen, desk: Desk, forge: Forge, gate: str) -> None:
    """The agent may take an hour; what its gate's comment asks is answered now."""
    from ...surfaces.forge.sweeping import refresh

    trouble = refresh(desk, forge, gate)
    if trouble:
        screen.warn(trouble)


def vouched_for(desk: Desk, forge: Forge, gate: str, event_file: str | None) -> str:
    """The answer that the job's event is about, where a person sent it whose word counts for it."""
    from ...surfaces.forge.hosts.events import Dispatched
    from ...surfaces.forge.proof import vouched_by

    event = read_event_file(event_file) if event_file else None
    if not isinstance(event, Dispatched) or event.gate != gate:
        return ""
    return vouched_by(desk, forge, event)


@click.command("credential", hidden=True)
@click.argument("action")
@verb
def credential_command(screen: Screen, action: str) -> int:
    """What git calls to log in: gives the job's token to the job's own server, and to no other."""
    from .jobs import credential

    return credential(screen, action)
