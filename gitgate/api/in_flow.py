"""Python: what `ask`, `wait` and `check` do inside a flow: each is a step, and gives in replay what it gave the first time."""

from __future__ import annotations

from ..flows.engine import Engine
from ..flows.steps import noting
from ..flows.terms import Doing
from ..model.gate import Gate as Folded
from .terms import Asking, read_attachments, seen
from .terms import ShownGate as Gate


def asked_in_flow(engine: Engine, asking: Asking, *, wait: bool) -> Gate:
    """`ask` as a step."""
    return shown(engine, open_in_flow(engine, asking, wait=wait, kind="ask", name=asking.draft.key or ""))


def open_in_flow(engine: Engine, asking: Asking, *, wait: bool, kind: str, name: str) -> Folded:
    draft = asking.draft
    enclosed = read_attachments(engine.desk, (*draft.attach, *map(str, asking.attach)))
    return noting(engine, engine.ask(draft, asking.wishes, enclosed, wait=wait, kind=kind, name=name))


def shown(engine: Engine, gate: Folded) -> Gate:
    with engine.turn:
        return seen(engine.desk, gate)


def waited_in_flow(engine: Engine, gate: str) -> Gate:
    """`wait` as a step."""

    def act(_doing: Doing) -> dict[str, str]:
        decided = engine.decided(engine.find(gate).id, stuck=False)
        return {"gate": decided.id, "tip": decided.tip}

    return shown(engine, noting(engine, engine.gate_at(engine.perform("wait", gate, act))))


def checked_in_flow(engine: Engine, gate: str) -> Gate:
    """`check` as a step: what it saw the first time."""

    def act(_doing: Doing) -> dict[str, str]:
        found = engine.find(gate)
        return {"gate": found.id, "tip": found.tip}

    return shown(engine, engine.gate_at(engine.perform("check", gate, act, brief=True)))
