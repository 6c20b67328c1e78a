"""Resumption: how the agent is started: what it is told, where, and with which surroundings."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..claims.claiming import HeldClaim
from ..context.desk import Desk
from ..gates import agency
from ..model.gate import Gate
from ..model.session import SavedSession, SessionRef
from ..policy import project as bylaws
from ..policy.project import InForce
from ..questions.answers import printed
from ..questions.prompts import Circumstances, late_branches, resume_prompt
from ..setup import equipping
from ..store.work.restore import as_environment
from . import place
from .place import Situation

if TYPE_CHECKING:
    from ..agents.agent import AgentSettings, Launch

AGAIN = "you were here before, in an attempt that was interrupted or talking with a person; what was done is still here"


def order(desk: Desk, held: HeldClaim, found: Situation, saved: SavedSession, project: InForce) -> Launch:
    """How the agent is started: everything that somebody wrote reaches it as text, never as a command."""
    from ..agents import scrubbed
    from ..agents.agent import Start

    gate = held.gate
    settings = bylaws.without_doubt(agency.settings_for_start(desk, saved.agent), project)
    settings = replace(
        settings, arguments=(*flags_before(desk, gate, found, saved, settings), *settings.arguments)
    )
    request = Start(
        gate=gate.id,
        cwd=found.directory,
        folder=desk.repo.state_dir / "runs" / gate.id / f"{held.attempt}-{held.said.nonce[:8]}",
        prompt=resume_prompt(gate, circumstances(gate, found, settings, project)),
        session=SessionRef(saved.agent, saved.id, saved.directory),
        deferred=bool(gate.opened.config.get("deferred")),
        hooks=agency.adapter(saved.agent).hooks(),
        permissions=equipping.permissions(desk, saved.agent),
        answer=document(gate),
        told=answer_texts(gate),
        settings=settings,
        env=scrubbed(desk.settings.env),
        extra_env=surroundings(desk, gate, found, saved.agent, project.settings),
    )
    return agency.adapter(saved.agent).start(request)


def flags_before(
    desk: Desk, gate: Gate, found: Situation, saved: SavedSession, settings: AgentSettings
) -> tuple[str, ...]:
    """What it was started with when it asked, where that was here, on work of this machine: what it might do then it may do now.

    No record says so, only this machine's own note. A flag that this machine gives counts alone.
    """
    from ..agents.claude.command import beside
    from ..context import presence

    asked = presence.find_presence(desk, gate.id)
    own = asked is not None and asked.trusted and found.trusted
    if asked is None or not own or (asked.program, asked.session) != (saved.agent, saved.id):
        return ()
    return beside(asked.flags, settings.arguments)


def circumstances(gate: Gate, found: Situation, settings: AgentSettings, project: InForce) -> Circumstances:
    left_out = gate.opened.work.left_out if found.ours else ()
    session = gate.opened.session
    unread = agency.adapter(session.agent).unread if session and not settings.project_settings else ()
    return Circumstances(
        edits="" if found.again else found.edits,
        moved="; ".join(part for part in (AGAIN if found.again else "", found.moved) if part),
        conflicts=found.conflicts,
        branch=found.branch or "" if found.new_branch else "",
        missing=tuple(left_out),
        unread=tuple(name for name in unread if (found.directory / name).is_file()),
        replaced=project.replaced,
        late=late_branches(gate),
    )


def answer_texts(gate: Gate) -> dict[str, str]:
    """The answer as plain texts. Nobody's answer is nobody's."""
    if gate.answer is None:
        return {"verdict": "expired", "answer": "", "note": "", "by": ""}
    answer = gate.answer.answer
    words = printed(gate.opened.questions, replace(answer, note=""))
    return {"verdict": answer.verdict, "answer": words, "note": answer.note, "by": answer.by}


def document(gate: Gate) -> bytes:
    """The answer as a JSON document, for a program that reads it."""
    from ..render import shapes

    answer = shapes.answer_shape(gate.answer, {}) if gate.answer else None
    questions = [shapes.question(question) for question in gate.opened.questions]
    said = {"gate": gate.id, "state": gate.state, "questions": questions, "answer": answer}
    return json.dumps(
        shapes.thing("resume", {**said, **answer_texts(gate), "answer": answer}), ensure_ascii=False
    ).encode()


def surroundings(
    desk: Desk, gate: Gate, found: Situation, program: str, settings: Sequence[tuple[str, str]] = ()
) -> dict[str, str]:
    """What the agent's environment has besides ours. In work that came from elsewhere, git runs nothing it brought."""
    from ..agents import LOGIN

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
    git = {**pinned, **as_environment(settings, pinned)} if settings else pinned
    return {**said, **({} if desk.settings.identity() else borrowed_name(gate)), **git}


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
