"""The tools of `git gate mcp` by themselves, without a client; `test_mcp_client` has them called over the protocol."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pytest

from gitgate.questions.file import ASKED
from gitgate.surfaces.mcp_server import BY_NAME, TOOLS, GateTools, ToolResult, seconds_of
from support.testbed.command import Command
from support.testbed.repositories import Clone

AUTOMATIC = (
    "policy:\n  rules:\n    - name: anything\n      types: [text, choice, approval]\n      automatic: true\n"
)


@pytest.fixture
def tools(repo: Clone) -> GateTools:
    return GateTools(dict(os.environ), repo.path)


def ask(tools: GateTools, **given: object) -> str:
    told = tools.call("ask", given)
    assert not told.wrong, told.words
    return str(told.data["id"])


def said(tools: GateTools, gate: str, **values: object) -> ToolResult:
    """What somebody at a client fills in, who was shown the form."""
    form = tools.form(gate)
    assert form is not None
    assert set(values) == set(form[1]["properties"])
    return tools.hear(gate, values, "an-editor")


def test_no_tool_answers() -> None:
    """What they are called, and what each takes: every field of a gate, by its name in a question file."""
    assert list(BY_NAME) == ["ask", "check", "wait", "withdraw", "list", "show"]
    assert {row.word for row in ASKED} <= set(BY_NAME["ask"].takes)
    for tool in TOOLS:
        assert set(tool.needs) <= set(tool.takes)
        assert tool.schema["additionalProperties"] is False


def test_it_asks_and_says_so_at_once(tools: GateTools, repo: Clone, cli: Command) -> None:
    """With the work, as an agent; the id comes first, and nothing is answered."""
    repo.write("draft.py", "half = 1\n")
    told = tools.call(
        "ask", {"prompt": "Which?", "options": ["A", {"label": "B", "description": "b"}], "priority": "high"}
    )
    gate = cli.quick("show", told.data["id"], "--json", code=0).json
    assert told.words.startswith(f"{gate['id']}\n")
    assert (gate["state"], gate["priority"], gate["work"]["files"]) == ("awaiting", "high", 1)
    assert (gate["delivery"], gate["session"]["id"]) == ("none", None)
    assert [option["label"] for option in gate["questions"][0]["options"]] == ["A", "B"]
    bare = tools.call("ask", {"prompt": "And?", "no_work": True})
    assert cli.quick("show", bare.data["id"], "--json", code=0).json["work"]["dirty"] is False


def test_the_conversation_of_whoever_started_it_is_not_taken(repo: Clone, cli: Command) -> None:
    """A server that an agent's own shell started would otherwise ask in that agent's name, and have it resumed."""
    env = {**os.environ, "CLAUDE_CODE_SESSION_ID": "5d14f5dd-8cd5-4721-9788-2e415584672d"}
    gate = ask(GateTools(env, repo.path), prompt="Which?")
    assert cli.quick("show", gate, "--json", code=0).json["session"]["id"] is None


def test_the_answer_is_a_persons(tools: GateTools, cli: Command) -> None:
    """There is none until a person gave it, in their own shell; then `check` and `wait` print what scripts are told."""
    gate = ask(tools, prompt="Which?", options=["A", "B"])
    assert tools.call("check", {"id": gate}).data == {
        "id": gate,
        "state": "awaiting",
        "answer": None,
        "proposal": None,
    }
    assert "still waits" in tools.wait_a_little(gate, 0).words
    cli.quick("respond", gate, "B", "--note", "because", code=0)
    for told in (tools.call("check", {"id": gate[:4]}), tools.wait_a_little(gate, 5)):
        assert told.words == "B\nbecause"
        assert told.data["answer"]["confirmed"] is True


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("respond", {"id": "x"}, "there is no tool 'respond'"),
        ("check", {}, "check needs id"),
        ("check", {"id": "zzzz"}, "zzzz"),
        ("check", {"id": 7}, "check needs id"),
        ("ask", {"prompt": "W?", "approve": True}, "ask takes no 'approve'"),
        ("ask", {}, "prompt"),
        ("ask", {"prompt": "W?", "priority": "extreme"}, "priority"),
        ("ask", {"prompt": "W?", "options": ["A"]}, "one option"),
        ("withdraw", {"id": "zzzz", "reason": " "}, "withdraw needs reason"),
    ],
)
def test_what_is_wrong_is_said(name: str, given: Mapping[str, Any], words: str, tools: GateTools) -> None:
    """In words for a model, and as an error; nothing is written."""
    told = tools.call(name, given)
    assert told.wrong
    assert words in told.words
    assert tools.call("list", {}).data["gates"] == []


def test_it_withdraws_its_own_alone(tools: GateTools, cli: Command) -> None:
    """Also one that was asked under another name; never a question of somebody else's agent."""
    for given in ({"prompt": "Mine?"}, {"prompt": "Mine?", "agent": "backend"}):
        assert (
            tools.call("withdraw", {"id": ask(tools, **given), "reason": "found"}).data["state"]
            == "withdrawn"
        )
    other = cli.quick("ask", "Yours?", "-q", "--agent", "somebody", code=0).line
    told = tools.call("withdraw", {"id": other, "reason": "found"})
    assert told.wrong
    assert "only its own" in told.words


def test_it_lists_and_shows(tools: GateTools, cli: Command) -> None:
    first, second = (
        ask(tools, prompt="Which?"),
        ask(tools, prompt="Deploy?", type="approval", priority="urgent"),
    )
    assert [one["id"] for one in tools.call("list", {}).data["gates"]] == [second, first]
    assert "git gate respond" in tools.call("show", {"id": first}).words
    cli.quick("respond", first, "yes", code=0)
    assert len(tools.call("list", {}).data["gates"]) == 1
    assert len(tools.call("list", {"all": True}).data["gates"]) == 2


@pytest.mark.parametrize(
    "given", [{"type": "approval"}, {"options": ["approve", "B"]}, {}], ids=["approval", "choice", "text"]
)
def test_what_is_said_at_a_client_is_a_proposal(
    given: Mapping[str, Any], tools: GateTools, cli: Command
) -> None:
    """A program may have said it: the gate waits, the proposal is shown with it, and approves nothing."""
    gate = ask(tools, prompt="Which?", **given)
    told = said(tools, gate, answer="approve")
    assert "no answer" in told.words
    shown = cli.quick("show", gate, "--json", code=0).json
    assert (shown["state"], shown["answer"]) == ("awaiting", None)
    proposal = shown["proposal"]
    assert (proposal["agent"], proposal["source"], proposal["approved"]) == ("an-editor", "mcp", False)
    assert tools.form(gate) is None, "it is asked there once"


def test_where_the_policy_takes_it_it_is_nobodys_answer(tools: GateTools, repo: Clone, cli: Command) -> None:
    """Recorded as `via: mcp`, confirmed by nobody; a yes is no approval."""
    repo.commit("rules", **{".gitgate.yml": AUTOMATIC})
    gate = ask(tools, prompt="Deploy?", type="approval")
    told = said(tools, gate, answer="approve")
    assert "approves nothing" in told.words
    answer = cli.quick("show", gate, "--json", code=0).json["answer"]
    assert (answer["via"], answer["verdict"], answer["confirmed"], answer["approved"]) == (
        "mcp",
        "approved",
        False,
        False,
    )
    assert answer["evidence"]["client"] == "an-editor"


def test_what_does_not_fit_is_refused(tools: GateTools, cli: Command) -> None:
    """An option that there is not, a field that nobody asked for, and what nobody was shown."""
    gate = ask(tools, prompt="Which?", options=["A", "B"], other=False)
    unseen = tools.hear(gate, {"answer": "A"}, "x")
    assert unseen.wrong
    assert "nobody was shown" in unseen.words
    assert tools.form(gate) is not None
    assert tools.hear(gate, {"answer": "C"}, "x").wrong
    assert tools.hear(gate, {"else": "A"}, "x").wrong
    assert cli.quick("show", gate, "--json", code=0).json["proposal"] is None


def test_what_a_form_cannot_ask_is_not_asked_there(tools: GateTools) -> None:
    """A form of fields of its own, a conversation, several options or words of one's own: these wait for a person."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    for given in (
        {"type": "form", "schema": schema},
        {"type": "session"},
        {"type": "choices", "options": ["A", "B"]},
    ):
        assert tools.form(ask(tools, prompt="What?", **given)) is None
    form = tools.form(ask(tools, prompt="What?", type="choices", options=["A", "B"], other=False))
    assert form is not None
    assert form[1]["properties"]["answer"]["items"]["enum"] == ["A", "B"]
    assert tools.form("zzzz") is None


@pytest.mark.parametrize("value", [-1, 10_000, "5", True, None])
def test_how_long_it_waits_is_a_number(value: object) -> None:
    with pytest.raises(Exception, match="seconds: expected a number"):
        seconds_of(value)
