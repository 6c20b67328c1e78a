"""Transcript: whether a conversation stands at a call that waits."""

from __future__ import annotations

import json

import pytest

from gitgate.agents.claude.transcript import waits_at_call

MARK = {"type": "attachment", "attachment": {"type": "hook_deferred_tool", "toolUseID": "t1"}}
OTHER = {
    "type": "user",
    "message": {"content": [{"type": "tool_result", "tool_use_id": "t0", "content": "hook_deferred_tool"}]},
}
RESULT = {
    "type": "user",
    "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]},
}


@pytest.mark.parametrize(
    ("records", "waits"),
    [([MARK], True), ([OTHER, MARK, OTHER], True), ([MARK, RESULT], False), ([RESULT], False), ([], False), ([OTHER], False), ([3, None, MARK, {"message": 3}], True)],
)  # fmt: skip
def test_a_call_waits_until_it_has_a_result(records: list[object], waits: bool) -> None:
    """Its own; other calls' results and words that resemble the mark say nothing of it."""
    lines = "\n".join(json.dumps(record) for record in records)
    assert waits_at_call(lines.encode() + b"\n{cut hook_deferred_tool") is waits
