"""A transcript keeps what was said, loses secrets and ballast, and keeps the shape of its tree."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.agents.claude.transcript import CUTS, slim

TOKEN = "ghp" + "_" + "a1B2c3D4e5" * 4
Record = dict[str, Any]


def lines(*records: Record) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def said(uuid: str, parent: str | None, content: object, kind: str = "user", **more: object) -> Record:
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "message": {"role": kind, "content": content},
        **more,
    }


def kept(*records: Record, values: tuple[str, ...] = (), most: int = 10**7) -> list[Record]:
    out = slim(lines(*records), values, most)
    assert out is not None
    return [json.loads(line) for line in out.splitlines()]


def links(records: list[Record]) -> dict[str, str | None]:
    return {record["uuid"]: record["parentUuid"] for record in records}


def test_only_what_was_told_and_said_is_kept() -> None:
    """Snapshots, requests, the way back to the old directory and a subagent's words go; a call to take up again stays."""
    deferred: Record = {
        "type": "attachment",
        "uuid": "d",
        "parentUuid": "x",
        "attachment": {"type": "hook_deferred_tool", "toolUseID": "t"},
    }
    records = kept(
        {"type": "worktree-state", "worktreeSession": {"originalCwd": "/gone"}},
        said("a", None, "hello"),
        {
            "type": "attachment",
            "uuid": "x",
            "parentUuid": "a",
            "attachment": {"type": "prompt_snapshot", "text": "long"},
        },
        {"type": "api-request", "uuid": "y", "parentUuid": "x"},
        said("s", "a", "aside", isSidechain=True),
        said("b", "y", [{"type": "text", "text": "hi"}], "assistant"),
        deferred,
        {"type": "last-prompt", "leafUuid": "b"},
    )
    assert links(records) == {"a": None, "b": "a", "d": "a"}
    assert records[-1]["attachment"]["toolUseID"] == "t"


def test_forks_stay_forks() -> None:
    """The results of parallel calls hang on their own calls, and an abandoned branch stays beside the one that goes on."""
    call = [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]
    records = kept(
        said("a", None, "go"),
        said("c1", "a", call, "assistant"),
        {"type": "progress", "uuid": "p", "parentUuid": "c1"},
        said("c2", "c1", call, "assistant"),
        said("r1", "p", [{"type": "tool_result", "tool_use_id": "t", "content": "1"}]),
        said("r2", "c2", "2"),
        said("again", "a", "go elsewhere"),
    )
    assert links(records) == {"a": None, "c1": "a", "c2": "c1", "r1": "c1", "r2": "c2", "again": "a"}


def test_what_a_summary_replaced_is_gone() -> None:
    """Records before the last summary are no longer told to the model."""
    boundary: Record = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "s",
        "parentUuid": None,
        "compactMetadata": {"trigger": "auto"},
    }
    records = [
        said("a", None, "old"),
        said("b", "a", "older", "assistant"),
        boundary,
        said("c", "s", "the story so far"),
    ]
    assert links(kept(*records)) == {"s": None, "c": "s"}
    boundary["compactMetadata"] = {"preservedSegment": {"headUuid": "b"}}
    assert set(links(kept(*records))) == {"a", "b", "s", "c"}


def test_secrets_go_wherever_they_stand_and_links_stay() -> None:
    """In texts, calls, results, copies of results and names of fields; ids and signatures are left as they were."""
    secret = "correct-horse-battery"
    block: Record = {
        "type": "tool_use",
        "id": secret,
        "name": "Bash",
        "input": {"command": f"echo {secret}", secret: [TOKEN]},
    }
    result = {"type": "tool_result", "tool_use_id": secret, "content": [{"type": "text", "text": TOKEN}]}
    records = kept(
        said("a", None, f"use {TOKEN}"),
        said(secret, "a", [block], "assistant"),
        said("r", secret, [result], toolUseResult={"stdout": TOKEN}, cwd=f"/somewhere/{secret}"),
        values=(secret,),
    )
    text = json.dumps(records)
    assert TOKEN not in text
    assert text.count(secret) == text.count(f'"{secret}"') == 4
    assert records[1]["message"]["content"][0]["input"]["command"] == "echo [redacted: environment]"


def test_a_signed_thought_stays_whole_or_goes() -> None:
    """A changed thought would be refused by the API; a record of nothing else goes with it, and its children move up."""
    clean: Record = {"type": "thinking", "thinking": "hm", "signature": TOKEN}
    dirty: Record = {"type": "thinking", "thinking": f"the token is {TOKEN}", "signature": "c2ln"}
    records = kept(
        said("a", None, "go"), said("b", "a", [clean], "assistant"), said("c", "b", [dirty], "assistant"), said("d", "c", "on")
    )  # fmt: skip
    assert records[1]["message"]["content"] == [clean]
    assert links(records) == {"a": None, "b": "a", "d": "b"}


def test_a_long_conversation_is_cut_text_by_text() -> None:
    """First the program's own copies go, then the ends of long texts; what cannot be made small enough is not kept."""
    long = "word " * 10_000
    record = said(
        "a", None, [{"type": "tool_result", "tool_use_id": "t", "content": long}], toolUseResult={"x": "y"}
    )
    assert kept(record)[0]["message"]["content"][0]["content"] == long
    cut = kept(record, most=25_000)[0]
    assert "toolUseResult" not in cut
    assert (
        cut["message"]["content"][0]["content"]
        == f"{long[: CUTS[1]]}\n[30000 more characters are not in the saved copy]"
    )
    assert slim(lines(record), most=100) is None


def test_large_pictures_and_copies_are_left_out() -> None:
    """A picture of usual size stays, since the model saw it."""
    small: Record = {"type": "image", "source": {"type": "base64", "data": "abcd", "media_type": "image/png"}}
    large: Record = {"type": "image", "source": {"type": "base64", "data": "a" * 300_000}}
    record = kept(said("a", None, [small, large], toolUseResult={"originalFile": "x" * 10_000}))[0]
    assert record["message"]["content"] == [small, {"type": "text", "text": "[image: not in the saved copy]"}]
    assert "toolUseResult" not in record


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"[]", b"1", b"null", b"\xff\xfe", b"[" * 100_000, b'{"type":"user"}', b'{"type":"user","uuid":1,"message":{}}',
     b'{"type":"user","uuid":"u","message":[]}', b'{"type":"attachment","uuid":"u","attachment":7}', b'{"type":{},"uuid":"u"}',
     b'{"type":[],"uuid":[]}', b'{"type":"attachment","uuid":"u","attachment":{"type":[]}}',
     b'{"type":"user","uuid":"u","parentUuid":{},"message":{"content":[7,null,[]]}}',
     b'{"type":"user","uuid":"u","message":{"content":' + b"[" * 900 + b"]" * 900 + b"}}"],
    ids=range(16),
)  # fmt: skip
def test_broken_lines_are_passed_over(line: bytes) -> None:
    """A line cut short, or one that means nothing, costs nothing else."""
    out = slim(lines(said("a", None, "before")) + line + b"\n" + lines(said("b", "a", "after")))
    assert out is not None
    assert {"a", "b"} <= set(links([json.loads(each) for each in out.splitlines()]))


def test_a_circle_of_links_ends() -> None:
    """No order of links makes it run for ever."""
    boundary: Record = {"type": "progress", "uuid": "x", "parentUuid": "y"}
    records = kept(
        boundary,
        {**boundary, "uuid": "y", "parentUuid": "x"},
        said("a", "x", "hello"),
        said("b", "b", "self"),
    )
    assert links(records) == {"a": None, "b": None}


RECORDS = st.lists(
    st.builds(
        lambda uuid, parent, kind, text, told: said(uuid, parent, text, kind, toolUseResult=told),
        st.sampled_from("abcdef"),
        st.none() | st.sampled_from("abcdefgh"),
        st.sampled_from(["user", "assistant", "progress", "system"]),
        st.text() | st.lists(st.builds(lambda text: {"type": "text", "text": text}, st.text())),
        st.recursive(
            st.none() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=5,
        ),
    ),
    max_size=8,
)


@given(RECORDS)
def test_slimming_twice_changes_nothing(records: list[Record]) -> None:
    """A saved session is slimmed again where it is restored, since somebody else may have written it."""
    once = slim(lines(*records), ("abc123",))
    assert once is not None
    assert slim(once) == once
    kept_links = links([json.loads(line) for line in once.splitlines()])
    assert all(parent is None or parent in kept_links for parent in kept_links.values())
