"""Command line: `git gate github`: the pull request as the place where gates are seen and answered, and an agent in a job that has no token that writes. Workflows call these."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...acts import find_gate, open_gate
from ...acts.askers import logins_of
from ...claims import Claimant, ClaimLost, claim, dump_held, hand_over, load_held
from ...context import open_desk
from ...context.targets import remote_of
from ...errors import Failure, GateError, NotAllowed, Usage
from ...exchange.syncing import publish, sync
from ...gates.agency import kept_back, stayed
from ...gates.leases import JOBS, boottime, load_lease
from ...gates.recording import reload
from ...gates.work import before, diff_of
from ...model import AWAITING
from ...resumption import Course
from ...resumption.calls import pool_of
from ...resumption.run import Errand, Renewer, asked_before, conclude_apart, only_record
from ...sharing.branches import Gained, publish_branch
from ...sharing.parcel import (
    BadParcel,
    commits_of,
    open_parcel,
    outcome_in_parcel,
    pack,
    put_in_place,
    take_back,
)
from ...store.git.refs import OPEN
from ...store.work.commits import known_tips
from ...surfaces.forge.accept import against_dispatch, dispatch, vouched_by
from ...surfaces.forge.comment import View, render
from ...surfaces.forge.hosts import GITHUBS, Commented, Dispatched
from ...surfaces.forge.hosts.connect import KINDS, find_place
from ...surfaces.forge.posting import course_of, left_to_jobs, load_board, mark_head, post_gate, thread_of
from ...surfaces.forge.sweeping import hear
from ...surfaces.forge.words import whose_reply
from .. import DONE, FAILURE
from ..process import stop_on_signal
from ..terminal import Screen, explain_alone, gate_argument, verb
from . import (
    accounts_behind_job,
    hand_on,
    may_start,
    need_protected,
    refuse_other_requesters,
    refuse_unprepared,
    show_all,
    summarise,
    write_outputs,
)
from .steps import (
    act_on,
    credential_command,
    desk_and_forge,
    fetch_gates,
    prepare_command,
    publish_command,
    read_event_file,
    refresh_comment,
    resume_command,
    run_command,
    show_pushed,
    sweep_now,
    vouched_for,
    warn_of_token,
)

if TYPE_CHECKING:
    from ...claims import HeldClaim
    from ...context import Desk
    from ...model.gate import Gate
    from ...resumption.run import Resumed
    from ...sharing.parcel import Parcel
    from ...surfaces.forge.accept import Accepted
    from ...surfaces.forge.hosts import Forge, Thread
    from ...surfaces.forge.posting import Board

# `git gate github`, an agent in a job of its own, which has no token that writes: the job before it
# claims, the one after it takes what it made, once that is checked, pushes it and shows it.


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
    gate = reload(desk, name)
    ready = may_start(screen, desk, forge, gate, vouched)
    if ready is not None:
        return ready
    term = (desk.settings.seconds("leaseTerm") or 120) + WAITS
    try:
        held = claim(desk, gate, Claimant(JOBS, term=term, monotonic=boottime), insist=True)
    except GateError as failed:
        screen.warn(f"gate {name}: {failed.message}")
        return DONE if failed.kind == "conflict" else FAILURE
    screen.say(f"claimed gate {name}, attempt {held.attempt}")
    if asked_before(desk, held):
        return only_recorded(screen, desk, forge, held)
    said = {**dump_held(held), "gate": name, "taken": 0}
    course = asdict(course_of(desk, forge, held.gate))
    write_outputs(
        screen,
        held=json.dumps(said),
        claim=json.dumps({**said, "seed": "", "course": course}),
    )
    screen.emit("github-claim", {"gate": name, "claim": held.claim}, "")
    return DONE


def only_recorded(screen: Screen, desk: Desk, forge: Forge, held: HeldClaim) -> int:
    """Record that the agent asked in an attempt before this one, and start no agent.

    Nobody lived to record that in the earlier attempt.
    """
    errand = errand_of(screen, desk, forge)
    with Renewer(errand.open_desk, held) as renewer:
        done = only_record(errand, desk, renewer, asked_before(desk, held), errand.course(held.gate))
    show_all(screen, desk, forge, done)
    return DONE


def errand_of(screen: Screen, desk: Desk, forge: Forge) -> Errand:
    """Return what records the outcome of an agent; nothing is started by it."""
    place, env, clock = desk.repo.place, dict(desk.settings.env), desk.clock
    return Errand(
        lambda: open_desk(place, env, clock=clock),
        Claimant(JOBS),
        screen.say,
        course=lambda gate: course_of(desk, forge, gate),
    )


def held_here(screen: Screen, desk: Desk, gate: str) -> tuple[HeldClaim, dict[str, object]]:
    """Return the claim that the job before handed on, as the remote has it."""
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
    return DONE if done.result == "resumed" else FAILURE


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
    desk = screen.desk()
    made = pack(desk, folder, gate)
    write_outputs(screen, name=f"gitgate-{desk.entropy(8)}")
    fields = {"folder": str(folder), "gate": gate or None, "asked": made.asked, "head": made.head or None}
    screen.emit("github-pack", fields, "")
    screen.say(
        f"packed for the next job: {', '.join(made.asked) or 'no question'}; {made.head[:10] or 'no commit'}"
    )
    return DONE


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
        return DONE if done.result in ("resumed", "lost") else FAILURE
    return deliver_first(screen, desk, forge, folder)


def is_there(folder: Path) -> bool:
    """Return whether the agent's job handed over anything at all."""
    try:
        return any(folder.iterdir())
    except FileNotFoundError:
        return False


def deliver_resumed(screen: Screen, desk: Desk, forge: Forge, folder: Path, name: str) -> Resumed:
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
    """Put the agent's questions into this clone; take them back where they are asked for others than they have to be."""
    put_in_place(desk, parcel)
    try:
        refuse_other_requesters(desk, logins)
    except NotAllowed:
        take_back(desk, parcel)
        raise


def deliver_first(screen: Screen, desk: Desk, forge: Forge, folder: Path) -> int:
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


# `git gate github`: the pull request as the place where gates are seen and answered. Workflows call
# these.


resume_option = click.option(
    "--resume/--no-resume", default=False, help="Start what was answered, here and now."
)


@click.group("github", invoke_without_command=True)
@verb
def github_command(screen: Screen) -> None:
    """The pull request: a question is a comment there, and a reply is the answer.

    The workflows that `git gate init --github` writes call these. The token is GITHUB_TOKEN's, that of `gh`, or git's own.
    """
    explain_alone(screen)


@github_command.command("comment")
@gate_argument()
@verb
def comment_command(screen: Screen, gate_id: str) -> int:
    """Post a gate's comment, or bring it up to date.

    Where the repository has the workflow `gitgate.yml` its jobs keep the comments: outside of one, a job is asked to post it.
    With --json: `url` is the comment's, and `comment` its number; where a job was asked instead, `asked` is true, `comment`
    null, and both `url` and `job` say where that can be watched.

    \b
    git gate github comment 7k2f
    """
    desk, forge = desk_and_forge(screen)
    fetch_gates(desk)
    gate = find_gate(desk, gate_id).gate
    thread = thread_of(desk, forge, gate)
    if thread is None:
        raise Failure(
            f"gate {gate.id} has no pull request: none is open for {gate.opened.work.branch or 'its branch'}",
            hint="open one; or name an issue for such gates: git config gitgate.forgeIssue NUMBER"
            "   (or, on their commits: git config gitgate.forgeCommit true)",
        )
    board = load_board(forge, thread)
    if left_to_jobs(forge, board, gate.id):
        return ask_job(screen, desk, forge, gate, thread)
    board = post_gate(desk, forge, gate, board)
    warn_of_token(screen, desk, forge)
    return tell_comment(screen, gate.id, board)


def ask_job(screen: Screen, desk: Desk, forge: Forge, gate: Gate, thread: Thread) -> int:
    """Push the gate and ask a job to post its comment: a job shows what it finds pushed."""
    if not publish(desk, gate, push=True).pushed:
        raise Failure(
            f"gate {gate.id} is not pushed, and a job shows what it finds there",
            hint=f"git gate sync, then: git gate github comment {gate.id}",
        )
    url = forge.dispatch("", "")
    fields = {"gate": gate.id, "thread": thread, "comment": None, "url": url, "asked": True, "job": url}
    screen.emit("github-comment", fields, url)
    screen.say("this repository's jobs keep its comments, so one was asked to post it")
    return DONE


def tell_comment(screen: Screen, gate: str, board: Board) -> int:
    comment, _ = board.marks[gate]
    fields: dict[str, object] = {"gate": gate, "thread": board.thread, "comment": comment.number}
    fields |= {"url": comment.url, "asked": False, "job": None}
    screen.emit("github-comment", fields, comment.url)
    return DONE


@github_command.command("show")
@gate_argument()
@verb
def show_command(screen: Screen, gate_id: str) -> int:
    """Print a gate's comment as it would be posted; nothing is sent.

    \b
    git gate github show 7k2f
    """
    desk = screen.desk()
    gate = find_gate(desk, gate_id).gate
    place = find_place(desk)
    try:
        stat, diff = diff_of(desk, gate, stat=True), diff_of(desk, gate)
    except GateError:
        stat = diff = ""
    customs = KINDS[place.kind].customs if place else GITHUBS
    site = place.site if place else ""
    body = render(View(gate, stat, diff, site, whose=whose_reply(desk, gate), customs=customs))
    screen.emit("github-show", {"gate": gate.id, "body": body}, body.rstrip("\n"))
    return DONE


@github_command.command("accept")
@click.argument("event_file", metavar="EVENT_FILE")
@click.option(
    "--comment-only", is_flag=True, help="Of a webhook: it may tell of a comment, and ask for nothing."
)
@resume_option
@verb
def accept_command(screen: Screen, event_file: str, resume: bool, comment_only: bool) -> int:
    """Take a comment as an answer, from the event's file ($GITHUB_EVENT_PATH); or act on an answer that a person dispatched.

    Exit 0 also when the comment is none of our business, or was refused and its author was told.

    \b
    git gate github accept "$GITHUB_EVENT_PATH"
    """
    event = read_event_file(event_file)
    refuse_agents(screen, "github accept")
    if isinstance(event, Dispatched) and comment_only:
        return tell_accepted(screen, None, "ignored", "a webhook asks for nothing in anybody's name")
    if not isinstance(event, Commented | Dispatched):
        return tell_accepted(screen, None, "ignored", event.why)
    desk, forge = desk_and_forge(screen)
    if event.repository and not forge.is_ours(event.repository):
        return tell_accepted(screen, None, "ignored", "it is another repository's event")
    fetch_gates(desk)
    if isinstance(event, Dispatched):
        return dispatched(screen, desk, forge, event, resume=resume)
    done = hear(desk, forge, event.comment, kind=event.kind, words=event.words, thread=event.thread)
    return finish(screen, desk, forge, done, resume=resume)


def refuse_agents(screen: Screen, verb: str) -> None:
    """Refuse agents: the verb writes answers in the names of people for whom a forge vouches.

    Which forge is asked, the environment says.
    """
    desk = screen.desk()
    desk.refuse_agents(verb)
    need_protected(screen, desk)


def finish(screen: Screen, desk: Desk, forge: Forge, done: list[Accepted], *, resume: bool) -> int:
    """Say what became of a comment, and of earlier ones, and go on to the agents that are to be started here."""
    *earlier, last = done
    for one in earlier:
        screen.say(f"{one.outcome}: {one.words}")
    tell_accepted(screen, last.gate or None, last.outcome, last.words)
    gates = list(dict.fromkeys(one.gate for one in done if one.goes_on))
    hand_on(screen, desk, gates)
    summarise(screen, desk, forge)
    return act_on(screen, desk, forge, gates) if resume and gates else DONE


def dispatched(screen: Screen, desk: Desk, forge: Forge, event: Dispatched, *, resume: bool) -> int:
    """Act on the request of a person who answered in a terminal; they vouch for exactly that answer."""
    why = against_dispatch(forge, event)
    if why:
        raise NotAllowed(why, hint="it is for a person who may write to this repository")
    if not event.gate:
        return sweep_now(screen, desk, forge, resume=resume)
    tell_accepted(screen, event.gate, "vouched", f"{event.login} asks for gate {event.gate} to be acted on")
    hand_on(screen, desk, [event.gate])
    refresh_comment(screen, desk, forge, event.gate)
    summarise(screen, desk, forge)
    return act_on(screen, desk, forge, [event.gate], vouched_by(desk, forge, event)) if resume else DONE


def tell_accepted(screen: Screen, gate: str | None, outcome: str, words: str) -> int:

    write_outputs(screen, gate=gate or "", outcome=outcome)
    screen.emit("github-accept", {"gate": gate, "outcome": outcome, "words": words}, "")
    screen.say(f"{outcome}: {words}")
    return DONE


@github_command.command("sweep")
@resume_option
@verb
def sweep_command(screen: Screen, resume: bool) -> int:
    """Catch up: push and show what waits here, hear comments that were missed, act on deadlines, repost statuses.

    What a forge refuses for good, such as a word on a locked thread, is said, and no failure. With --json: `shown`, the gates
    whose comments changed; `accepted`, what became of each reply; `resume`, answered gates that may go on, and `doubts`, why
    others may not; `noted`, what cannot be done and is nobody's mistake; `trouble`, what somebody has to look at (exit 1);
    `job` (and `asked`), where the job can be watched that was asked to post what is to be shown, or null.

    \b
    git gate github sweep
    git gate github sweep --json
    """
    refuse_agents(screen, "github sweep")
    desk, forge = desk_and_forge(screen)
    return sweep_now(screen, desk, forge, resume=resume)


@github_command.command("status")
@click.argument("number", type=click.IntRange(1), required=False)
@verb
def status_command(screen: Screen, number: int | None) -> int:
    """Post the status `gitgate` on a pull request's head: pending while a gate of it waits, success where it has none.

    Statuses belong to a commit, so it is posted again for each new head. Without NUMBER: the job's own pull request.

    \b
    git gate github status
    git gate github status 12
    """
    desk, forge = desk_and_forge(screen)
    fetch_gates(desk)
    chosen = number or desk.settings.pull_request
    if chosen is None:
        raise Usage("which pull request?", hint="git gate github status NUMBER")
    pull = forge.fetch_pull_request(chosen)
    if pull is None:
        raise Failure(f"there is no pull request {chosen}", hint="git gate github status NUMBER")
    state = mark_head(desk, forge, pull, load_board(forge, chosen).marks)
    summarise(screen, desk, forge)
    fields = {"pull_request": chosen, "head": pull.head, "state": state}
    screen.emit("github-status", fields, state)
    return DONE


@github_command.command("dispatch")
@gate_argument(required=False)
@verb
def dispatch_command(screen: Screen, gate_id: str | None) -> int:
    """Share an answer that was given in a terminal, and ask CI to act on it, by the gate's id and the answer's commit alone.

    \b
    git gate github dispatch 7k2f
    """
    desk, forge = desk_and_forge(screen)
    desk.refuse_agents("github dispatch")  # whoever asks for it vouches for the answer
    gate = open_gate(desk, gate_id) if gate_id is not None else None
    if gate is not None and kept_back(desk, [gate]):
        raise stayed(gate, "shared, so no job has it")
    url = dispatch(desk, forge, gate)
    screen.emit("github-dispatch", {"gate": gate.id if gate else None, "url": url}, url)
    return DONE


for step in (prepare_command, run_command, publish_command, resume_command, credential_command):
    github_command.add_command(step)
for step in (claim_command, go_on_command, pack_command, deliver_command):
    github_command.add_command(step)
