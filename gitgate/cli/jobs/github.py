"""Command line: `git gate github`: the pull request as the place where gates are seen and answered. Workflows call these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ...errors import Usage
from .. import exits
from ..terminal.screen import Screen, explain_alone, gate_argument, verb
from .apart import claim_command, deliver_command, go_on_command, pack_command
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
    sweep_now,
    warn_of_token,
)

if TYPE_CHECKING:
    from ...context.desk import Desk
    from ...model.gate import Gate
    from ...surfaces.forge.accept import Accepted
    from ...surfaces.forge.hosts.events import Dispatched
    from ...surfaces.forge.hosts.forge import Forge, Thread
    from ...surfaces.forge.posting import Board


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
    from ...acts.reading import find_gate
    from ...errors import Failure
    from ...surfaces.forge.posting import left_to_jobs, load_board, post_gate, thread_of

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
    """It posts the comment of what it finds pushed."""
    from ...errors import Failure
    from ...exchange.publishing import publish

    if not publish(desk, gate, push=True).pushed:
        raise Failure(
            f"gate {gate.id} is not pushed, and a job shows what it finds there",
            hint=f"git gate sync, then: git gate github comment {gate.id}",
        )
    url = forge.dispatch("", "")
    fields = {"gate": gate.id, "thread": thread, "comment": None, "url": url, "asked": True, "job": url}
    screen.emit("github-comment", fields, url)
    screen.say("this repository's jobs keep its comments, so one was asked to post it")
    return exits.DONE


def tell_comment(screen: Screen, gate: str, board: Board) -> int:
    comment, _ = board.marks[gate]
    fields: dict[str, object] = {"gate": gate, "thread": board.thread, "comment": comment.number}
    fields |= {"url": comment.url, "asked": False, "job": None}
    screen.emit("github-comment", fields, comment.url)
    return exits.DONE


@github_command.command("show")
@gate_argument()
@verb
def show_command(screen: Screen, gate_id: str) -> int:
    """Print a gate's comment as it would be posted; nothing is sent.

    \b
    git gate github show 7k2f
    """
    from ...acts.reading import find_gate
    from ...errors import GateError
    from ...gates.work import diff_of
    from ...surfaces.forge.comment import View, render
    from ...surfaces.forge.hosts.connect import KINDS, find_place
    from ...surfaces.forge.hosts.forge import GITHUBS
    from ...surfaces.forge.telling import whose_reply

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
    return exits.DONE


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
    from ...surfaces.forge.hosts.events import Commented, Dispatched

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
    from ...surfaces.forge.sweeping import hear

    done = hear(desk, forge, event.comment, kind=event.kind, words=event.words, thread=event.thread)
    return finish(screen, desk, forge, done, resume=resume)


def refuse_agents(screen: Screen, verb: str) -> None:
    """It writes answers in the names of those whom a forge vouches for; which forge is asked, the environment says."""
    from .jobs import need_protected

    desk = screen.desk()
    desk.refuse_agents(verb)
    need_protected(screen, desk)


def finish(screen: Screen, desk: Desk, forge: Forge, done: list[Accepted], *, resume: bool) -> int:
    """Say what became of it, and of what was found before it, and go on to the agents where they are to be started here."""
    *earlier, last = done
    for one in earlier:
        screen.say(f"{one.outcome}: {one.words}")
    tell_accepted(screen, last.gate or None, last.outcome, last.words)
    from .jobs import hand_on, summarise

    gates = list(dict.fromkeys(one.gate for one in done if one.goes_on))
    hand_on(screen, desk, gates)
    summarise(screen, desk, forge)
    return act_on(screen, desk, forge, gates) if resume and gates else exits.DONE


def dispatched(screen: Screen, desk: Desk, forge: Forge, event: Dispatched, *, resume: bool) -> int:
    """Somebody who answered in a terminal asks for the agent to go on; they vouch for exactly that answer."""
    from ...errors import NotAllowed
    from ...surfaces.forge.proof import against_dispatch, vouched_by

    why = against_dispatch(forge, event)
    if why:
        raise NotAllowed(why, hint="it is for a person who may write to this repository")
    if not event.gate:
        return sweep_now(screen, desk, forge, resume=resume)
    tell_accepted(screen, event.gate, "vouched", f"{event.login} asks for gate {event.gate} to be acted on")
    from .jobs import hand_on, summarise

    hand_on(screen, desk, [event.gate])
    refresh_comment(screen, desk, forge, event.gate)
    summarise(screen, desk, forge)
    return act_on(screen, desk, forge, [event.gate], vouched_by(desk, forge, event)) if resume else exits.DONE


def tell_accepted(screen: Screen, gate: str | None, outcome: str, words: str) -> int:
    from .jobs import write_outputs

    write_outputs(screen, gate=gate or "", outcome=outcome)
    screen.emit("github-accept", {"gate": gate, "outcome": outcome, "words": words}, "")
    screen.say(f"{outcome}: {words}")
    return exits.DONE


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
    from ...errors import Failure
    from ...surfaces.forge.posting import load_board, mark_head
    from .jobs import summarise

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
    return exits.DONE


@github_command.command("dispatch")
@gate_argument(required=False)
@verb
def dispatch_command(screen: Screen, gate_id: str | None) -> int:
    """Share an answer that was given in a terminal, and ask CI to act on it, by the gate's id and the answer's commit alone.

    \b
    git gate github dispatch 7k2f
    """
    from ...acts.reading import open_gate
    from ...gates.starting import kept_back, stayed
    from ...surfaces.forge.proof import dispatch

    desk, forge = desk_and_forge(screen)
    desk.refuse_agents("github dispatch")  # whoever asks for it vouches for the answer
    gate = open_gate(desk, gate_id) if gate_id is not None else None
    if gate is not None and kept_back(desk, [gate]):
        raise stayed(gate, "shared, so no job has it")
    url = dispatch(desk, forge, gate)
    screen.emit("github-dispatch", {"gate": gate.id if gate else None, "url": url}, url)
    return exits.DONE


for step in (prepare_command, run_command, publish_command, resume_command, credential_command):
    github_command.add_command(step)
for step in (claim_command, go_on_command, pack_command, deliver_command):
    github_command.add_command(step)
