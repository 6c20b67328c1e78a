"""Command line: `git gate github`, an agent in a job of its own, which has no token that writes: the job before it claims, the one
after it takes what it made, once that is checked, pushes it and shows it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...errors import Failure, GateError, NotAllowed, Usage
from ...model.states import AWAITING
from ...store.git.refs import OPEN
from .. import exits
from ..terminal.screen import Screen, gate_argument, verb
from .jobs import (
    accounts_behind_job,
    need_protected,
    refuse_other_requesters,
    refuse_unprepared,
    show_all,
    summarise,
    write_outputs,
)
from .steps import desk_and_forge, fetch_gates, refresh_comment, show_pushed, vouched_for

if TYPE_CHECKING:
    from ...claims.claiming import HeldClaim
    from ...context.desk import Desk
    from ...resumption.run import Errand, Resumed
    from ...sharing.parcel import Parcel
    from ...surfaces.forge.hosts.forge import Forge

HELD = "GITGATE_HELD"
BRANCH = "GITGATE_BRANCH"
# Two jobs come after the one that claims, and each may wait for a machine.
WAITS = 3600
EVENT = click.option(
    "--event",
    "event_file",
    metavar="EVENT_FILE",
    help="The job's event; a person who dispatched vouches for it.",
)
GATE = click.option("--gate", metavar="GATE", default="", help="The gate that the agent went on with.")
FOLDER = click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))


@click.command("claim")
@gate_argument()
@EVENT
@verb
def claim_command(screen: Screen, gate_id: str, event_file: str | None) -> int:
    """Take the right to act on an answered gate for the jobs after this one, if its answer is proven.

    The step's output `held` is for `deliver`, and `claim` for `go-on`; both are empty where nothing is to be started. Exit 0 also
    when another job has it already.

    \b
    git gate github claim 7k2f --event "$GITHUB_EVENT_PATH"
    """
    from ...acts.reading import open_gate

    desk, forge = desk_and_forge(screen)
    need_protected(screen, desk)
    refuse_unprepared(desk)
    fetch_gates(desk)
    gate = open_gate(desk, gate_id).id
    refresh_comment(screen, desk, forge, gate)
    code = claim_proven(screen, desk, forge, gate, vouched_for(desk, forge, gate, event_file))
    summarise(screen, desk, forge)
    return code


def claim_proven(screen: Screen, desk: Desk, forge: Forge, name: str, vouched: str) -> int:
    from ...claims.claiming import Claimant, claim, dump_held
    from ...gates.leases import JOBS, boottime
    from ...gates.recording import reload
    from ...resumption.run import asked_before
    from .jobs import may_start

    gate = reload(desk, name)
    ready = may_start(screen, desk, forge, gate, vouched)
    if ready is not None:
        return ready
    term = (desk.settings.seconds("leaseTerm") or 120) + WAITS
    try:
        held = claim(desk, gate, Claimant(JOBS, term=term, monotonic=boottime), insist=True)
    except GateError as failed:
        screen.warn(f"gate {name}: {failed.message}")
        return exits.DONE if failed.kind == "conflict" else exits.FAILURE
    screen.say(f"claimed gate {name}, attempt {held.attempt}")
    if asked_before(desk, held):
        return only_recorded(screen, desk, forge, held)
    from ...surfaces.forge.posting import course_of

    said = {**dump_held(held), "gate": name, "taken": 0}
    course = asdict(course_of(desk, forge, held.gate))
    write_outputs(
        screen,
        held=json.dumps(said),
        claim=json.dumps({**said, "seed": "", "course": course}),
    )
    screen.emit("github-claim", {"gate": name, "claim": held.claim}, "")
    return exits.DONE


def only_recorded(screen: Screen, desk: Desk, forge: Forge, held: HeldClaim) -> int:
    """The agent asked in an attempt before this one, and nobody lived to say so: that is said, and nobody is started."""
    from ...resumption.run import Renewer, asked_before, only_record

    errand = errand_of(screen, desk, forge)
    with Renewer(errand.open_desk, held) as renewer:
        done = only_record(errand, desk, renewer, asked_before(desk, held), errand.course(held.gate))
    show_all(screen, desk, forge, done)
    return exits.DONE


def errand_of(screen: Screen, desk: Desk, forge: Forge) -> Errand:
    """Nothing is started by it: what came of an agent is recorded."""
    from ...claims.claiming import Claimant
    from ...context.desk import open_desk
    from ...gates.leases import JOBS
    from ...resumption.run import Errand
    from ...surfaces.forge.posting import course_of

    place, env, clock = desk.repo.place, dict(desk.settings.env), desk.clock
    return Errand(
        lambda: open_desk(place, env, clock=clock),
        Claimant(JOBS),
        screen.say,
        course=lambda gate: course_of(desk, forge, gate),
    )


def held_here(screen: Screen, desk: Desk, gate: str) -> tuple[HeldClaim, dict[str, object]]:
    """The claim that the job before handed on, as the remote has it."""
    from ...claims.claiming import ClaimLost, load_held
    from ...context.remotes import remote_of
    from ...gates.leases import load_lease

    try:
        said = json.loads(screen.env.get(HELD, ""))
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict) or said.get("gate") != gate:
        raise Usage(
            f"{HELD} is not what `git gate github claim {gate}` gave out",
            hint=f"in the step's env, {HELD}: ${{{{ needs.claim.outputs.held }}}}",
        )
    load_lease(desk, gate, remote_of(desk))  # it brings the lease itself
    held = load_held(desk, gate, said)
    if held is None:
        raise ClaimLost(
            f"the claim on gate {gate} is no longer this run's: another one took over",
            hint=f"git gate show {gate}",
        )
    return held, said


@click.command("go-on")
@gate_argument()
@verb
def go_on_command(screen: Screen, gate_id: str) -> int:
    """Start the agent of a gate that the job before claimed, where no token is. What comes of it is for `pack`.

    After `git gate github prepare --apart`, with the claim in GITGATE_HELD: what is pushed goes to a copy of the remote on this
    machine. Exit 1 where the agent failed.

    \b
    git gate github go-on 7k2f
    """
    from ...claims.claiming import hand_over
    from ...resumption.calls import pool_of
    from ...resumption.place import Course
    from ..process import stop_on_signal

    desk = screen.desk()
    need_protected(screen, desk)
    held, said = held_here(screen, desk, gate_id)
    course = said.get("course")
    hand_over(desk, held)
    with stop_on_signal() as stopping:
        pool = pool_of(desk, screen.say, stopping, insist=True)
        if isinstance(course, dict):
            pool.course = lambda _gate: Course(**course)
        done = pool.attempt(desk, gate_id)
    screen.emit("github-go-on", {"gate": gate_id, "result": done.result, "reason": done.reason}, "")
    return exits.DONE if done.result == "resumed" else exits.FAILURE


@click.command("pack")
@FOLDER
@GATE
@verb
def pack_command(screen: Screen, folder: Path, gate: str) -> int:
    """Pack what an agent made in a job that may not write, for the job that may: two files in FOLDER, for an artifact.

    The step's output `name` is one for that artifact, which no other has.

    \b
    git gate github pack "$RUNNER_TEMP/made"
    git gate github pack "$RUNNER_TEMP/made" --gate 7k2f
    """
    from ...sharing.parcel import pack

    desk = screen.desk()
    made = pack(desk, folder, gate)
    write_outputs(screen, name=f"gitgate-{desk.entropy(8)}")
    fields = {"folder": str(folder), "gate": gate or None, "asked": made.asked, "head": made.head or None}
    screen.emit("github-pack", fields, "")
    screen.say(
        f"packed for the next job: {', '.join(made.asked) or 'no question'}; {made.head[:10] or 'no commit'}"
    )
    return exits.DONE


@click.command("deliver")
@FOLDER
@GATE
@verb
def deliver_command(screen: Screen, folder: Path, gate: str) -> int:
    """Push and show what an agent made in a job that may not write, from the files that `pack` wrote there.

    Nothing in them is believed: they are bounded, their objects are checked, and only what an agent may make is taken. With
    --gate, for one that it went on with: GITGATE_HELD is the claim, and its ending is recorded. A folder without files is an agent
    whose job ended before it could say anything. Without --gate, of a first run: GITGATE_BRANCH is the branch that it was put on.

    \b
    git gate github deliver "$RUNNER_TEMP/made"
    git gate github deliver "$RUNNER_TEMP/made" --gate 7k2f
    """
    desk, forge = desk_and_forge(screen)
    need_protected(screen, desk)
    refuse_unprepared(desk)
    fetch_gates(desk)
    if gate:
        done = deliver_resumed(screen, desk, forge, folder, gate)
        show_all(screen, desk, forge, done)
        summarise(screen, desk, forge)
        return exits.DONE if done.result in ("resumed", "lost") else exits.FAILURE
    return deliver_first(screen, desk, forge, folder)


def is_there(folder: Path) -> bool:
    """Whether anything was handed over at all."""
    try:
        return any(folder.iterdir())
    except FileNotFoundError:
        return False


def deliver_resumed(screen: Screen, desk: Desk, forge: Forge, folder: Path, name: str) -> Resumed:
    from ...exchange.syncing import sync
    from ...gates.lineage import before
    from ...resumption.run import conclude_apart
    from ...sharing.parcel import BadParcel, commits_of, open_parcel, outcome_in_parcel
    from ...store.git.commits import known_tips

    held, _ = held_here(screen, desk, name)
    errand = errand_of(screen, desk, forge)
    if not is_there(folder):
        return conclude_apart(errand, desk, held, None)
    try:
        parcel = open_parcel(desk, folder, name)
        said = outcome_in_parcel(desk, parcel, held.claim)
        taken(desk, parcel, held.gate.opened.asked.logins)
    except (BadParcel, NotAllowed) as bad:
        screen.warn(bad.message)
        return conclude_apart(errand, desk, held, None, why=bad.message)
    commits = commits_of(desk, parcel, before(held.gate, known_tips(desk.repo)))
    sync(desk)  # its questions first: whoever finds them starts nobody for this answer again
    return conclude_apart(errand, desk, held, said, commits)


def taken(desk: Desk, parcel: Parcel, logins: Sequence[str]) -> None:
    """Its questions are this clone's, unless they are asked for somebody else than whom they have to be."""
    from ...sharing.parcel import put_in_place, take_back

    put_in_place(desk, parcel)
    try:
        refuse_other_requesters(desk, logins)
    except NotAllowed:
        take_back(desk, parcel)
        raise


def deliver_first(screen: Screen, desk: Desk, forge: Forge, folder: Path) -> int:
    from ...acts.askers import logins_of
    from ...sharing.branches import Gained, publish_branch
    from ...sharing.parcel import open_parcel

    if not is_there(folder):
        raise Failure(
            "the agent's job ended before it handed anything over; nothing is to be pushed",
            hint="its log says why; then run the workflow again",
        )
    parcel = open_parcel(desk, folder)
    taken(desk, parcel, logins_of(accounts_behind_job(screen)))
    pushed = None
    if parcel.head:
        begun = screen.env.get(BRANCH, "") or desk.settings.text("jobBranch")
        known = parcel.branch == begun and desk.repo.git.ok("cat-file", "-e", f"{parcel.began}^{{commit}}")
        began = parcel.began if known else ""
        pushed = publish_branch(desk, Gained(parcel.branch, parcel.head, began, begun))
    code = show_pushed(screen, desk, forge, pushed, (parcel.branch, parcel.head))
    waits = [
        gate for gate in parcel.asked if desk.records.load(gate, parcel.refs[OPEN + gate]).state == AWAITING
    ]
    write_outputs(screen, gate=waits[0] if waits else "")
    return code
