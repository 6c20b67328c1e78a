"""Record: terms of a gate that an edit changes, and who may change whom it is for."""

from __future__ import annotations

from .. import model
from ..document import replace
from ..model.gate import Edit, Gate


def changed_terms(edit: Edit) -> set[str]:
    return {
        name for name in ("to", "priority", "deadline", "timeout", "later") if getattr(edit, name) is not None
    }


def names_others(gate: Gate, edit: Edit) -> bool:
    """Return whether an edit may change whom a gate is for, by its author. Where the gate holds to its addressees,
    only the asker and those named by an address or a login may. An author without an address is an agent, which may
    only name fewer.
    """
    if not gate.holds_to or edit.to is None:
        return True
    if not model.has_address(edit.by):
        return bool(edit.to) and set(edit.to) <= set(gate.to)
    known = {model.address(edit.by), f"@{model.login_of(edit.by)}"}
    return model.same_person(edit.by, gate.opened.asked.by) or any(
        model.address(one) in known for one in gate.to
    )


def with_edit(gate: Gate, edit: Edit) -> Gate:
    return replace(
        gate,
        to=gate.to if edit.to is None or not names_others(gate, edit) else edit.to,
        to_holds=gate.to_holds or edit.to_holds,
        priority=edit.priority or gate.priority,
        deadline=gate.deadline if edit.deadline is None else edit.deadline or None,
        timeout=gate.timeout if edit.timeout is None else edit.timeout or None,
        later=gate.later if edit.later is None else edit.later or None,
    )
