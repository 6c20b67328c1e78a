"""Flows: what a fork of a run carries: the steps that were over before the one that it begins anew from, each marked.

They are written before anything is done, and by whoever goes on with the fork, where its first process was killed among them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from ..context.desk import Desk
from ..errors import GateError, Usage
from ..model.states import AWAITING
from ..record.runs import Run, RunStep
from .journal import HeldRun, load_run


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
