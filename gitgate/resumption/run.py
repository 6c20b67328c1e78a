"""Resumption: one gate, from its answer to its outcome: claim, restore, start, keep the claim alive, read the ending, record it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from .. import claims as claiming
from .. import resumption
from .. import resumption as notes
from ..acts import sessions
from ..acts.needs import context_from_agent, note_writings, told_of_call
from ..claims import Claimant, ClaimLost, HeldClaim, keep_renewed, renew
from ..context import Desk
from ..context.targets import may_publish_work
from ..document import dataclass, field, replace
from ..errors import GateError, GitFailed, LostRace, RemoteUnreachable, tells_of_full_disk
from ..exchange.syncing import bring_home
from ..gates import agency, work
from ..gates.agency import CannotStart
from ..gates.leases import boottime
from ..gates.work import bring_work, made_by_us
from ..model import ASKED_AGAIN, ENDED, HANDED_BACK
from ..model.gate import Claim, Gate, Outcome, SavedSession, SessionRef
from ..policy import project as bylaws
from ..policy.project import InForce
from ..store.git.refs import LEASES, OPEN
from ..store.remote import RefMove
from ..store.remote.push import rehearse
from ..store.remote.wire import inability_here
from ..text import counted
from . import Course, Situation, delivery, order, program_for
from .delivery import Delivered

if TYPE_CHECKING:
    from ..agents.agent import AgentOutcome, Finished


Ended = TypeVar("Ended")


class Renewer:
    """`with Renewer(open_desk, held) as renewer:` renews until the end; `lost` is set when the claim is no longer ours.

    While an agent works, a claim that cannot be renewed is lost: elsewhere it may be taken over. When the agent has ended
    (`rest`), nothing is done twice by holding on: then it is lost only to who did take it over.
    """

    def __init__(
        self, open_desk: Callable[[], Desk], held: HeldClaim, *, clock: Callable[[], float] = boottime
    ) -> None:
        self.open_desk = open_desk
        self.held = held
        self.clock = clock
        self.began = clock()
        self.renewed = held.taken or self.began
        self.lost = threading.Event()
        self.over = threading.Event()
        self.resting = threading.Event()
        self.heard = threading.Event()
        self.turn = threading.Lock()
        self.reason = ""
        self.thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> HeldClaim:
        """End the renewals, and return the claim as it was last renewed."""
        self.over.set()
        self.thread.join()
        return self.held

    def still_holds(self) -> bool:
        """Return whether the claim is certainly ours, before something is started.

        A process that stood still for most of a term waits first, until it learns whether somebody took over.
        """
        term = self.held.said.term
        while self.clock() - self.renewed > term * claiming.GIVE_UP_AT:
            if self.lost.wait(POLL / 10) or not self.thread.is_alive():
                return False
        return not self.lost.is_set()

    def rest(self) -> None:
        """Note that the agent has ended, and that its outcome has still to be recorded."""
        self.resting.set()

    def give_up_with(self, act: Callable[[HeldClaim], Ended]) -> Ended:
        """Return the result of `act`, which ends the claim. No renewal comes between. If it fails, renewals go on."""
        with self.turn:
            if self.lost.is_set():
                raise ClaimLost(self.reason, hint=f"git gate show {self.held.gate.id}")
            self.heard.clear()
            ended = act(self.held)
            self.over.set()
            return ended

    def _beat(self) -> None:
        with contextlib.ExitStack() as at_end:
            opened: list[Desk] = []

            def renewed() -> bool:
                if not opened:
                    opened.append(self.open_desk())
                    at_end.callback(opened[0].close)
                return self._renew(opened[0])

            keep_renewed(
                *(float(self.held.said.term), self.over.wait, renewed, self._lose),
                clock=self.clock,
                since=self.began,
                holds_on=self.resting.is_set,
            )

    def _renew(self, desk: Desk) -> bool:
        """False when it is over: its outcome was recorded while we waited for our turn."""
        with self.turn:
            if self.over.is_set():
                return False
            self.held = renew(desk, self.held)
            self.renewed = self.held.taken
            self.heard.set()
            return True

    def _lose(self, reason: str) -> None:
        self.reason = reason
        self.lost.set()


POLL = 0.5
IT_ASKED_AGAIN = "it asked again"
LAST_LINES, LONGEST_LINE = 30, 2000
LAST_WORDS = 2000  # of what an agent said last, the end of it
SAYS_LATER = (5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 300.0)
REACHES_AGAIN = 5.0
Came = TypeVar("Came")


@dataclass(frozen=True)
class Resumed:
    """Result of acting on one gate.

    `result`: `resumed`, `released` for another attempt, `failed`, `lost` to another runner, or `started`, where nobody
    waited for the end.
    """

    gate: str
    result: str
    reason: str = ""
    log: str = ""
    branch: str = ""
    commits: tuple[str, ...] = ()
    attempt: int = 0
    asked_again: bool = False
    handed_back: bool = False  # this machine had to stop: it was no attempt


def handed_back(gate: str, log: str = "", *, attempt: int = 0) -> Resumed:
    """Return the result of a gate, or a run, on which nothing was tried, since this machine has to stop."""
    return Resumed(gate, "released", "handed back", log, attempt=attempt, handed_back=True)


@dataclass(frozen=False)
class Errand:
    """Task of acting on one gate: how to open a desk, who claims, how to report, and when to stop."""

    open_desk: Callable[[], Desk]
    who: Claimant
    say: Callable[[str], None] = lambda _words: None
    note: Callable[[str], None] = lambda _words: None
    stopping: threading.Event = field(default_factory=threading.Event)
    insist: bool = False
    course: Callable[[Gate], Course] = lambda _gate: Course()


def log_of(desk: Desk, gate: str = "") -> Path:
    """Return the file where runners of this repository write what they do: for one gate, or for all."""
    return desk.repo.state_dir / "logs" / f"{gate or 'runner'}.log"


def prepare(desk: Desk, gate: Gate) -> SavedSession:
    """Fetch everything that the gate names, before it is claimed, so that nobody claims what they could not start."""
    session = gate.opened.session
    if session is None:
        raise CannotStart(
            f"gate {gate.id} was asked without a session: there is nothing to resume",
            hint=f"git gate check {gate.id}",
        )
    from ..setup.equipping import why_not_resumed  # whoever hands an answer on does without it

    reason = agency.cannot_start(desk, gate.opened.program) or why_not_resumed(desk, gate.opened.program)
    if reason:
        raise CannotStart(
            f"gate {gate.id} cannot be resumed on this machine: {reason}", hint="resume it where it was asked"
        )
    saved = bring_session(desk, gate, session.agent)
    if gate.opened.work.commit is not None:
        bring_work(desk, gate)
    return saved


def bring_session(desk: Desk, gate: Gate, agent: str) -> SavedSession:
    """Return the asker's conversation. A run needs none: it looks by itself for those of its agents."""
    try:
        return sessions.bring(desk, gate)
    except GateError:
        if not gate.opened.run:
            raise
        return SavedSession(agent, gate.opened.run)


def resume_gate(errand: Errand, desk: Desk, gate: Gate, held: HeldClaim | None = None) -> Resumed:
    """Act on the gate's answer, once. Conflict where somebody else has the claim."""
    if gate.closed:
        raise claiming.nothing_to_act_on(gate)
    try:
        saved = prepare(desk, gate)
    except GateError as unfit:
        if held is not None:
            claiming.try_release(desk, held, unfit.message)
        raise
    if held is None:
        held = claiming.claim(desk, gate, errand.who, insist=errand.insist)
    errand.say(f"claimed gate {gate.id}, attempt {held.attempt}")
    with Renewer(errand.open_desk, held) as renewer:
        try:
            return with_claim(errand, desk, renewer, saved)
        except ClaimLost as lost:
            errand.say(lost.message)
            return Resumed(gate.id, "lost", lost.message, attempt=held.attempt)
        except (GateError, OSError) as failed:
            full = tells_of_full_disk(failed)
            if renewer.resting.is_set() and may_pass(failed):
                raise  # The agent has ended: whoever acts here next records that, and starts nothing.
            if full:
                # It would be the same in each attempt here, and elsewhere there is room.
                with contextlib.suppress(GateError, OSError):  # It lapses by itself.
                    claiming.hand_back(desk, renewer.stop(), str(failed))
                raise
            return give_back(errand, desk, renewer.stop(), str(failed), "")
        except BaseException:
            claiming.try_release(desk, renewer.stop(), "the runner failed")
            raise


def with_claim(errand: Errand, desk: Desk, renewer: Renewer, saved: SavedSession) -> Resumed:
    gate = renewer.held.gate
    later, course = asked_before(desk, renewer.held), errand.course(gate)
    if later:
        return only_record(errand, desk, renewer, later, course)
    with resumption.take_place(desk, gate, course) as found:
        errand.say(f"in {found.directory}")
        there = resumption.apart(desk, found)
        resumption.free(desk, there)
        bylaws.lift(there)
        earlier = finished_before(desk, gate, found)
        if earlier is not None:
            errand.say("the agent had finished before; only its outcome was not recorded")
            ended, outcome = earlier
        else:
            ours = made_by_us(desk, found.directory)
            with bylaws.in_force(desk, there, ours=ours, say=errand.say) as project:
                started = run_agent(errand, desk, renewer, found, saved, project)
            if started is None:
                return stopped(errand, desk, renewer)
            ended, outcome = started
        return conclude(errand, desk, renewer, found, ended, outcome)


def asked_before(desk: Desk, held: HeldClaim) -> list[Gate]:
    """Return the questions that the agent asked in an earlier attempt, whose runner died before it recorded that.

    They are open, or were acted on. To start the agent again with the answer to this gate would pass over them.
    """
    claims = sum(isinstance(entry.event, Claim) for entry in held.gate.history)
    if claims < 2:
        return []
    if held.remote is not None:
        bring_home(desk, held.remote)
    return work.followers(desk, held.gate)


def only_record(errand: Errand, desk: Desk, renewer: Renewer, later: list[Gate], course: Course) -> Resumed:
    """Record that the agent asked again, and start nothing. The commits that it made before go to their branch."""
    gate = renewer.held.gate
    errand.say(f"the agent asked again in an attempt before: gate {later[-1].id}; it is not started")
    with contextlib.ExitStack() as kept:
        found = resumption.resumed_before(desk, gate, kept)
        if found is not None:
            there = resumption.apart(desk, found)
            resumption.free(desk, there)
            bylaws.lift(there)
        made = (
            delivery.gather(desk, renewer.held, replace(found, course=course), later)
            if found is not None
            else delivery.gather_named(desk, renewer.held, later, course)
        )
        log = str(log_of(desk, gate.id))
        done = record_when_heard(
            errand,
            renewer,
            lambda held: delivery.deliver(
                desk, held, made, log=log, remark=IT_ASKED_AGAIN, cause=ASKED_AGAIN
            ),
        )
    return tell_outcome(errand, renewer.held, done, log, again=True)


def run_agent(
    errand: Errand, desk: Desk, renewer: Renewer, found: Situation, saved: SavedSession, project: InForce
) -> tuple[Finished, AgentOutcome] | None:
    """Start the agent and stay with it; None when it was stopped because we have to stop, or lost the claim."""
    from ..agents import process

    gate = renewer.held.gate
    program = program_for(gate, saved).agent
    adapter = agency.adapter(program)
    if saved.files:
        start = agency.agent_settings(desk, saved.agent).program
        cwd = resumption.folder_of_agent(gate, found)
        agency.adapter(saved.agent).place(saved, cwd, desk.settings.env, start)
    if project.doubt:
        errand.note(f"the project's own settings of agents would not take part here: {project.doubt}")
    launch = order(desk, renewer.held, found, saved, project)
    if not proves_reach(errand, desk, renewer):
        return None
    notes.note_run(desk, gate, launch.folder)
    note_writings(desk, found.directory)
    grace = min(process.GRACE, renewer.held.said.term / 6)
    if not renewer.still_holds():
        return None
    running = process.begin(launch, grace=grace)
    errand.say(f"{program} was started; what it says is in {launch.folder}")
    try:
        while (ended := running.wait(POLL)) is None:
            if renewer.lost.is_set() or errand.stopping.is_set():
                running.stop()
                return None
    except BaseException:
        running.stop()
        raise
    return ended, adapter.read_outcome(ended)


def proves_reach(errand: Errand, desk: Desk, renewer: Renewer) -> bool:
    """Return whether the agent's commits could be pushed to the remote, before the agent is started.

    A remote that is away is tried again. If it does not come back in time, the claim is lost, and nothing was done.
    """
    gate, remote = renewer.held.gate, renewer.held.remote
    if remote is None:
        return True
    base = gate.opened.work.base if may_publish_work(desk) else None
    moves = [
        RefMove(OPEN + gate.id, renewer.held.claim, None),
        RefMove(LEASES + gate.id, renewer.held.lease, None),
    ]
    moves += [RefMove(f"refs/heads/gate/{gate.id}", base, None)] if base else []
    while not (renewer.lost.is_set() or errand.stopping.is_set()):
        try:
            rehearse(desk.repo, remote, moves, timeout=desk.network_timeout)
            return True
        except RemoteUnreachable as silent:
            errand.say(f"{silent.message}; the agent is not started before it answers")
            errand.stopping.wait(min(REACHES_AGAIN, renewer.held.said.term / 10))
    return False


def finished_before(desk: Desk, gate: Gate, found: Situation) -> tuple[Finished, AgentOutcome] | None:
    """Return the end of an agent that an earlier runner here started for this answer, and died before recording."""
    folder = notes.noted_run(desk, gate) if found.again else None
    if folder is None:
        return None
    from ..agents.agent import AgentResult
    from ..agents.process import recall

    ended = recall(folder)
    if ended is None or gate.opened.session is None:
        return None
    named = SavedSession(gate.opened.session.agent, "")
    outcome = agency.adapter(program_for(gate, named).agent).read_outcome(ended)
    return None if outcome.result is AgentResult.FAILED else (ended, outcome)


def stopped(errand: Errand, desk: Desk, renewer: Renewer) -> Resumed:
    """Give the claim up after the agent was ended from here: hand it back, unless another runner has it by now."""
    held = renewer.stop()
    if renewer.lost.is_set():
        errand.say(renewer.reason)
        claiming.try_release(desk, held, renewer.reason)
        return Resumed(held.gate.id, "lost", renewer.reason, attempt=held.attempt)
    claiming.hand_back(desk, held)
    errand.say(f"gate {held.gate.id} was handed back")
    return handed_back(held.gate.id, attempt=held.attempt)


def conclude(
    errand: Errand, desk: Desk, renewer: Renewer, found: Situation, ended: Finished, outcome: AgentOutcome
) -> Resumed:
    """Record what came of it; a network that is down is waited for, because only the record ends the claim."""
    from ..agents.agent import AgentResult

    renewer.rest()
    gate = renewer.held.gate
    log = str(log_of(desk, gate.id))
    tell_ending(errand, ended)
    failed = outcome.result is AgentResult.FAILED
    again = outcome.result in (AgentResult.ASKED, AgentResult.DEFERRED)
    later = work.followers(desk, gate, since=claimed_at(renewer.held))
    if failed and not later:
        reason, retry = outcome.reason or "it failed", outcome.retry
        told = told_at_the_end(desk, found, outcome, again=False)
        if told.said in reason:
            told = replace(told, said="")
        return record_when_heard(
            errand, renewer, lambda held: give_back(errand, desk, held, reason, log, retry=retry, told=told)
        )
    # However it ended, one that has asked is not tried again: its own question is what it goes on with.
    again = again or bool(later)
    remark = IT_ASKED_AGAIN if again else ""
    remark += f", and then: {outcome.reason}" if failed and outcome.reason else ""
    remark = "; ".join(part for part in (told_of_call(desk, gate.id), remark) if part)
    made = delivery.gather(desk, renewer.held, found, later)
    told = told_at_the_end(desk, found, outcome, again=again)
    try:
        done = record_when_heard(
            errand,
            renewer,
            lambda held: delivery.deliver(
                desk,
                held,
                made,
                log=log,
                remark=remark,
                told=told,
                cause=ASKED_AGAIN if again else ENDED,
            ),
        )
    except ClaimLost as lost:
        kept = delivery.keep_late(desk, renewer.held, made, str(found.directory))
        errand.say(f"{lost.message}; {kept}")
        return Resumed(gate.id, "lost", f"{lost.message}; {kept}", log, attempt=renewer.held.attempt)
    if again and outcome.session and gate.opened.session is not None:
        delivery.share_session(desk, SessionRef(gate.opened.session.agent, outcome.session))
    remains = delivery.clean_up(desk, found, done, asked_again=again)
    return tell_outcome(errand, renewer.held, done, log, again=again, remains=remains)


ENDED_SILENTLY = "its job ended before it could say what came of it"


def conclude_apart(
    errand: Errand,
    desk: Desk,
    held: HeldClaim,
    said: Outcome | None,
    commits: tuple[str, ...] = (),
    why: str = "",
) -> Resumed:
    """Record what came of an agent that ran in another job, which may not write: `said` there, in its words alone.

    Where it says nothing, or `why` it is not believed, the attempt has failed; what was not believed is not tried again.
    """
    gate = held.gate
    with Renewer(errand.open_desk, held) as renewer:
        renewer.rest()
        if said is None or said.result != "resumed":
            reason = why or (reason_apart(said) if said is not None else "") or ENDED_SILENTLY
            retry = not why and (said is None or said.result != "failed")
            told = told_apart(said)
            return record_when_heard(
                errand,
                renewer,
                lambda held: give_back(errand, desk, held, reason, "", retry=retry, told=told),
            )
        course = replace(errand.course(gate), note="")  # The job has told it in its reason.
        made = delivery.Made(commits, None, said.meant or said.branch or None, course)
        again = said.cause == ASKED_AGAIN
        try:
            done = record_when_heard(
                errand,
                renewer,
                lambda held: delivery.deliver(
                    desk,
                    held,
                    made,
                    log="",
                    remark=said.reason,
                    told=told_apart(said),
                    cause=ASKED_AGAIN if again else ENDED,
                ),
            )
        except ClaimLost as lost:
            kept = delivery.keep_late(desk, renewer.held, made, "")
            errand.say(f"{lost.message}; {kept}")
            return Resumed(gate.id, "lost", f"{lost.message}; {kept}", attempt=held.attempt)
    return tell_outcome(errand, held, done, "", again=again)


def told_apart(said: Outcome | None) -> delivery.Told:
    return (
        delivery.Told(said.said, said.denied, said.left, said.place)
        if said is not None
        else delivery.NOTHING_TOLD
    )


def reason_apart(said: Outcome) -> str:
    """Return the reason that a job gave. A claim that the job handed back counts as an attempt, or it would never end."""
    return f"its job {said.reason}" if said.cause == HANDED_BACK else said.reason


def claimed_at(held: HeldClaim) -> str:
    """Return when the claim was made, by this machine's clock, which also dates what its agent asks."""
    event = held.gate.claim.event if held.gate.claim else None
    return event.at if isinstance(event, Claim) else ""


def tell_outcome(
    errand: Errand, held: HeldClaim, done: Delivered, log: str, *, again: bool, remains: str = ""
) -> Resumed:
    """Report the outcome of a resumed gate to whoever watches, and return it as a result."""
    if remains:
        errand.say(remains)
    made = f": {counted(len(done.commits), 'commit')} on {done.target.branch}" if done.commits else ""
    errand.say(f"gate {held.gate.id} resumed{made}{f'; {IT_ASKED_AGAIN}' if again else ''}")
    branch = done.target.branch if done.commits else ""
    return Resumed(held.gate.id, "resumed", remains, log, branch, done.commits, held.attempt, again)


def told_at_the_end(desk: Desk, found: Situation, outcome: AgentOutcome, *, again: bool) -> delivery.Told:
    """Return the report of the agent's end for others, without secrets and limited in length.

    What an agent that asked again did not commit goes on with its new question, and is not listed.
    """
    env = desk.settings.env
    left = () if again else resumption.uncommitted(desk, found)
    denied = tuple(context_from_agent(env, call) for call in outcome.denied)
    said = context_from_agent(env, outcome.text, LAST_WORDS)
    return delivery.Told(said, denied, left, str(found.directory) if left else "")


def tell_ending(errand: Errand, ended: Finished) -> None:
    """Write the end of the agent's words into the log. All of them are in the agent's folder."""
    for words in (ended.out, ended.err):
        for line in words.decode("utf-8", "replace").splitlines()[-LAST_LINES:]:
            errand.note(f"| {line[:LONGEST_LINE]}")
    errand.note(f"the agent {ended.ending}, exit code {ended.code}")


def record_when_heard(errand: Errand, renewer: Renewer, act: Callable[[HeldClaim], Came]) -> Came:
    """Repeat `act` while the shared repository cannot be reached or cannot do it, because the agent has done its part.

    What that repository refuses is not tried again. The claim is kept meanwhile, however long that takes. With the
    first renewal that arrives, `act` is tried again.
    """
    for pause in chain(SAYS_LATER, repeat(SAYS_LATER[-1])):
        try:
            return renewer.give_up_with(act)
        except (GateError, OSError) as silent:
            if not may_pass(silent):
                raise
            errand.say(
                f"{silent}; the claim is held and the outcome waits: tried again with its next renewal, or in {pause:g} s"
            )
            until = renewer.clock() + pause
            while renewer.clock() < until and not renewer.heard.wait(POLL) and not renewer.lost.is_set():
                if errand.stopping.is_set():
                    raise
    raise AssertionError  # it is repeated without end


def may_pass(failed: GateError | OSError) -> bool:
    """Return whether a failure may pass, because nobody judged what was to be recorded.

    That is so where the repository is out of reach, locked, full or not writable, or where a hook could not run.
    """
    if isinstance(failed, GitFailed) and inability_here(failed):
        return True
    return isinstance(failed, RemoteUnreachable | LostRace) or tells_of_full_disk(failed)


def give_back(
    errand: Errand,
    desk: Desk,
    held: HeldClaim,
    reason: str,
    log: str,
    *,
    retry: bool = True,
    told: delivery.Told = delivery.NOTHING_TOLD,
) -> Resumed:
    """Record a failed attempt: the gate is answered again, or failed if this was the last or another would not help."""
    final = not retry or held.attempt >= desk.settings.number("maxAttempts")
    result = "failed" if final else "released"
    said = claiming.claim_outcome(desk, held, result, reason=reason, log=log)
    claiming.finish(desk, held, replace(said, **vars(told)))
    errand.say(f"gate {held.gate.id}, attempt {held.attempt}: {reason}")
    return Resumed(held.gate.id, result, reason, log, attempt=held.attempt)
