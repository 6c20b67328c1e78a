"""Resume: one gate, from its answer to its outcome: claim, restore, start, keep the claim, read the ending, record it."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.answers import printed
from ..core.model import Gate
from ..core.prompt import Circumstances, resume_prompt
from ..core.session import SavedSession, SessionRef
from ..core.text import counted
from ..errors import GateError, RemoteUnreachable
from ..service import agency, claiming, holding, sessions
from ..service.claiming import Claimant, ClaimLost, Held
from ..service.desk import Desk
from ..service.starting import CannotStart
from ..service.work import bring_work
from . import delivery, place
from .delivery import Delivered
from .heart import Heart
from .hooks import hooks_of
from .place import Situation

if TYPE_CHECKING:
    from ..agents.agent import Finished, Launch, Outcome

POLL = 0.5
INSTRUCTIONS = ("CLAUDE.md", "AGENTS.md")
AGAIN = "you were here before, in an attempt that was interrupted or talking with a person; what was done is still here"
LAST_LINES, LONGEST_LINE = 30, 2000
SAYS_LATER = (5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 300.0, 300.0)


@dataclass(frozen=True)
class Done:
    """What came of acting on one gate. `result`: resumed, released, failed, or lost to another runner."""

    gate: str
    result: str
    reason: str = ""
    log: str = ""
    branch: str = ""
    commits: tuple[str, ...] = ()
    attempt: int = 0
    asked_again: bool = False


@dataclass
class Errand:
    """One gate to act on, and how: a fresh desk on demand, who claims, how to talk, when to stop."""

    open_desk: Callable[[], Desk]
    who: Claimant
    say: Callable[[str], None] = lambda _words: None
    note: Callable[[str], None] = lambda _words: None
    stopping: threading.Event = field(default_factory=threading.Event)
    insist: bool = False


def log_of(desk: Desk, gate: str = "") -> Path:
    """What runners of this repository tell: of one gate, or on the whole."""
    return desk.repo.state_dir / "logs" / f"{gate or 'runner'}.log"


def prepare(desk: Desk, gate: Gate) -> SavedSession:
    """Everything that the gate names, in hand: nobody claims what they could not start."""
    session = gate.opened.session
    if session is None:
        raise CannotStart(
            f"gate {gate.id} was asked without a session: there is nothing to resume",
            hint=f"git gate check {gate.id}",
        )
    reason = agency.cannot_start(desk, session.agent)
    if reason:
        raise CannotStart(
            f"gate {gate.id} cannot be resumed on this machine: {reason}", hint="resume it where it was asked"
        )
    saved = sessions.bring(desk, gate)
    if gate.opened.work.commit is not None:
        bring_work(desk, gate)
    return saved


def resume_gate(errand: Errand, desk: Desk, gate: Gate, held: Held | None = None) -> Done:
    """Act on the gate's answer, once. Conflict when it is somebody else's."""
    if gate.closed:
        raise claiming.nothing_to_act_on(gate)
    saved = prepare(desk, gate)
    if held is None:
        held = claiming.claim(desk, gate, errand.who, insist=errand.insist)
    errand.say(f"claimed gate {gate.id}, attempt {held.attempt}")
    with Heart(errand.open_desk, held) as heart:
        try:
            return with_claim(errand, desk, heart, saved)
        except ClaimLost as lost:
            errand.say(lost.message)
            return Done(gate.id, "lost", lost.message, attempt=held.attempt)
        except (GateError, OSError) as failed:
            return give_back(errand, desk, heart.stop(), str(failed), "")
        except BaseException:
            holding.try_release(desk, heart.stop(), "the runner failed")
            raise


def with_claim(errand: Errand, desk: Desk, heart: Heart, saved: SavedSession) -> Done:
    gate = heart.held.gate
    with place.taken(desk, gate) as found:
        errand.say(f"in {found.directory}")
        earlier = finished_before(desk, gate, found)
        if earlier is not None:
            errand.say("the agent had finished before; only its outcome was not recorded")
            ended, outcome = earlier
        else:
            started = run_agent(errand, desk, heart, found, saved)
            if started is None:
                return stopped(errand, desk, heart)
            ended, outcome = started
        return conclude(errand, desk, heart.stop(), found, ended, outcome)


def run_agent(
    errand: Errand, desk: Desk, heart: Heart, found: Situation, saved: SavedSession
) -> tuple[Finished, Outcome] | None:
    """Start the agent and stay with it; None when it was stopped because we have to stop, or lost the claim."""
    from ..agents import process

    gate = heart.held.gate
    program = saved.agent
    adapter = agency.adapter(program)
    if saved.files:
        adapter.place(saved, found.directory, desk.settings.env)
    launch = order(desk, heart.held, found, saved)
    place.note_run(desk, gate, launch.folder)
    grace = min(process.GRACE, heart.held.said.term / 6)
    running = process.begin(launch, grace=grace)
    errand.say(f"{program} was started; what it says is in {launch.folder}")
    try:
        while (ended := running.wait(POLL)) is None:
            if heart.lost.is_set() or errand.stopping.is_set():
                running.stop()
                return None
    except BaseException:
        running.stop()
        raise
    return ended, adapter.read_outcome(ended)


def order(desk: Desk, held: Held, found: Situation, saved: SavedSession) -> Launch:
    """How the agent is started: everything that somebody wrote reaches it as text, never as a command."""
    from ..agents.agent import Start

    gate = held.gate
    settings = agency.agent_settings(desk, saved.agent)
    request = Start(
        gate=gate.id,
        cwd=found.directory,
        folder=desk.repo.state_dir / "runs" / gate.id / f"{held.attempt}-{held.said.nonce[:8]}",
        prompt=resume_prompt(gate, circumstances(gate, found, project_settings=settings.project_settings)),
        session=SessionRef(saved.agent, saved.id, saved.directory),
        deferred=bool(gate.opened.config.get("deferred")),
        hooks=hooks_of(saved.agent),
        answer=document(gate),
        told=told(gate),
        settings=settings,
        env=desk.settings.env,
        extra_env=surroundings(desk, gate, found, saved.agent),
    )
    return agency.adapter(saved.agent).start(request)


def circumstances(gate: Gate, found: Situation, *, project_settings: bool) -> Circumstances:
    left_out = gate.opened.work.left_out if found.ours else ()
    unread = (
        () if project_settings else tuple(name for name in INSTRUCTIONS if (found.directory / name).is_file())
    )
    return Circumstances(
        edits="" if found.again else found.edits,
        moved="; ".join(part for part in (AGAIN if found.again else "", found.moved) if part),
        conflicts=found.conflicts,
        branch=found.branch or "" if found.new_branch else "",
        missing=tuple(left_out),
        unread=unread if gate.opened.session is not None and gate.opened.session.agent == "claude" else (),
    )


def told(gate: Gate) -> dict[str, str]:
    """The answer as plain texts. Nobody's answer is nobody's."""
    if gate.answer is None:
        return {"verdict": "expired", "answer": "", "note": "", "by": ""}
    answer = gate.answer.answer
    words = printed(gate.opened.questions, replace(answer, note=""))
    return {"verdict": answer.verdict, "answer": words, "note": answer.note, "by": answer.by}


def document(gate: Gate) -> bytes:
    """The answer as a JSON document, for a program that reads it."""
    from ..render import shapes

    answer = shapes.answer(gate.answer, {}) if gate.answer else None
    questions = [shapes.question(question) for question in gate.opened.questions]
    said = {"gate": gate.id, "state": gate.state, "questions": questions, "answer": answer}
    return json.dumps(
        shapes.thing("resume", {**said, **told(gate), "answer": answer}), ensure_ascii=False
    ).encode()


def surroundings(desk: Desk, gate: Gate, found: Situation, program: str) -> dict[str, str]:
    """What the agent's environment has besides ours. In work that came from elsewhere, git runs nothing it brought."""
    from ..agents.agent import LOGIN

    path = desk.settings.env.get("PATH", os.defpath)
    ours = str(Path(sys.executable).parent)
    if ours not in path.split(os.pathsep):
        path = f"{path}{os.pathsep}{ours}"
    said = {"GITGATE_GATE": gate.id, "GITGATE_AGENT": program, "PATH": path}
    if desk.settings.env.get(LOGIN):
        said["GITGATE_PUSH"] = (
            "false"  # A job's login stays with us: what the agent asks is pushed when it has ended.
        )
    pinned = {} if found.trusted else place.pinned(found.there(desk))
    return {**said, **({} if desk.settings.identity() else borrowed_name(gate)), **pinned}


def borrowed_name(gate: Gate) -> dict[str, str]:
    """A server's account often has no name in git, which then refuses to commit: there the agent goes by the name of the
    person whose agent it is.
    """
    name, _, email = (gate.opened.asked.by or f"{gate.opened.asked.agent} <agent@gitgate.invalid>").partition(
        " <"
    )
    names = {"NAME": name, "EMAIL": email.removesuffix(">")}
    return {
        f"GIT_{role}_{part}": text for role in ("AUTHOR", "COMMITTER") for part, text in names.items() if text
    }


def finished_before(desk: Desk, gate: Gate, found: Situation) -> tuple[Finished, Outcome] | None:
    """The ending of an agent that a runner of this machine started for this answer, and did not live to record."""
    folder = place.noted_run(desk, gate) if found.again else None
    if folder is None:
        return None
    from ..agents.agent import Result
    from ..agents.process import recall

    ended = recall(folder)
    if ended is None or gate.opened.session is None:
        return None
    outcome = agency.adapter(gate.opened.session.agent).read_outcome(ended)
    return None if outcome.result is Result.FAILED else (ended, outcome)


def stopped(errand: Errand, desk: Desk, heart: Heart) -> Done:
    """The agent was ended from here: another runner has the claim, or it is handed back."""
    held = heart.stop()
    if heart.lost.is_set():
        errand.say(heart.reason)
        holding.try_release(desk, held, heart.reason)
        return Done(held.gate.id, "lost", heart.reason, attempt=held.attempt)
    holding.release(desk, held, claiming.HANDED_BACK)
    errand.say(f"gate {held.gate.id} was handed back")
    return Done(held.gate.id, "released", claiming.HANDED_BACK, attempt=held.attempt)


def conclude(
    errand: Errand, desk: Desk, held: Held, found: Situation, ended: Finished, outcome: Outcome
) -> Done:
    """Record what came of it; a network that is down is waited for, because only the record ends the claim."""
    from ..agents.agent import Result

    log = str(log_of(desk, held.gate.id))
    tell_ending(errand, ended)
    if outcome.result is Result.FAILED:
        return give_back(errand, desk, held, outcome.reason or "it failed", log, retry=outcome.retry)
    again = outcome.result in (Result.ASKED, Result.DEFERRED)
    remark = "it asked again" if again else ""
    done = patiently(errand, lambda: delivery.deliver(desk, held, found, log=log, remark=remark))
    if again and outcome.session and held.gate.opened.session is not None:
        delivery.share_session(desk, SessionRef(held.gate.opened.session.agent, outcome.session))
    remains = delivery.clean_up(desk, found, done, asked_again=again)
    if remains:
        errand.say(remains)
    made = f": {counted(len(done.commits), 'commit')} on {done.target.branch}" if done.commits else ""
    errand.say(f"gate {held.gate.id} resumed{made}")
    branch = done.target.branch if done.commits else ""
    return Done(held.gate.id, "resumed", remains, log, branch, done.commits, held.attempt, again)


def tell_ending(errand: Errand, ended: Finished) -> None:
    """The end of what the agent said, for the log; all of it is in its folder."""
    for words in (ended.out, ended.err):
        for line in words.decode("utf-8", "replace").splitlines()[-LAST_LINES:]:
            errand.note(f"| {line[:LONGEST_LINE]}")
    errand.note(f"the agent {ended.ending}, exit code {ended.code}")


def patiently(errand: Errand, act: Callable[[], Delivered]) -> Delivered:
    """The same again while the shared repository cannot be reached: the agent has done its part already."""
    for pause in SAYS_LATER:
        try:
            return act()
        except RemoteUnreachable as silent:
            errand.say(f"{silent.message}; trying again in {pause:g} s")
            if errand.stopping.wait(pause):
                raise
    return act()


def give_back(errand: Errand, desk: Desk, held: Held, reason: str, log: str, *, retry: bool = True) -> Done:
    """A failed attempt: the gate is answered again, or failed when this was the last attempt or another would not help."""
    final = not retry or held.attempt >= desk.settings.number("maxAttempts")
    result = "failed" if final else "released"
    holding.finish(desk, held, holding.outcome(desk, held, result, reason=reason, log=log))
    errand.say(f"gate {held.gate.id}, attempt {held.attempt}: {reason}")
    return Done(held.gate.id, result, reason, log, attempt=held.attempt)
