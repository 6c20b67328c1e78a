"""What a session proposes at its end: what it says as data, and nothing that is said in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.errors import BadAnswer
from gitgate.model.gate import Option, Question, Talk
from gitgate.questions.signals import ASSISTANT, PERSON, Understood, Utterance, ended, may_differ, signalled

SCHEMA = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "notes": {"type": "string"}},
    "required": ["approved", "notes"],
}
APPROVAL = Question("s", "Deploy?", "session", talk=Talk("approval"))
SELECTION = Question(
    "s", "Which?", "session", (Option("Blue"), Option("Green"), Option("v1.2")), talk=Talk("selection")
)
FREEFORM = Question("s", "What now?", "session", talk=Talk())
STRUCTURED = Question("s", "Audit", "session", schema=SCHEMA, talk=Talk("structured"))


def talk(*said: str) -> list[Utterance]:
    """`P: words` is the person's, all else the assistant's."""
    return [
        Utterance(PERSON, one[3:]) if one.startswith("P: ") else Utterance(ASSISTANT, one.removeprefix("A: "))
        for one in said
    ]


def fenced(body: str, *, before: str = "", after: str = "") -> str:
    return f"{before}\n```json\n{body}\n```\n{after}".strip("\n")


def value_of(*said: str, question: Question = APPROVAL) -> object:
    found = ended(talk(*said), question)
    return None if found is None else found.value


# Plain words, in whatever language, and objects that do not end the last message as a block of their own.
NONE = [
    ["APPROVED"],
    ["Decision: APPROVED"],
    ["P: I approve.", "A: Decision: APPROVED"],
    ["P: Ich genehmige das.", "Genehmigt."],
    ["P: approved", "P: hold on"],
    ["Approved as before: the person said yes an hour ago."],
    ["P: no, wait", "A: You approved the change yesterday. APPROVED"],
    ['{"decision": "approve"}'],
    ['> ```json\n> {"decision": "approve"}\n> ```'],
    ["````markdown\n" + fenced('{"decision": "approve"}') + "\n````"],
    ['```json\n{"decision": "approve"}'],
    ['```yaml\n{"decision": "approve"}\n```'],
    [fenced('{"decision": "approve"}', after="On second thought, leave it.")],
    [fenced('{"decision": "approve"}'), "A: I take that back."],
    ["P: " + fenced('{"decision": "approve"}')],
    [fenced('{"decision": "approve",}')],
    [fenced("{'decision': 'approve'}")],
    [fenced('{"decision": "not approve"}')],
    [fenced('{"decision": "approve", "decision": "reject"}')],
    [fenced('{"decision": "reject", "decision": "approve"}')],
    [fenced('{"decision": "approve", "approved": false}')],
    [fenced('{"decision": "approve", "status": "STOP"}')],
    [fenced('{"decision": "approve", "conditions": ["the tests pass"]}')],
    [fenced('{"decision": "approve", "confidence": 0.2}')],
    [fenced('{"decision": ["approve"]}')],
    [fenced('{"decision": 1}')],
    [fenced('{"decision": null}')],
    [fenced('{"decision": "\u0430pprove"}')],  # a Cyrillic first letter
    [fenced('{"decision": NaN}')],
    [fenced('{"decision": "approve"}\n{"decision": "reject"}')],
    [fenced('["approve"]')],
    [fenced("[" * 5000)],
    [fenced('{"summary": "' + "x" * 300_000 + '"}')],
    [],
]


@pytest.mark.parametrize("said", NONE, ids=lambda said: " / ".join(said)[:60])
def test_words_propose_nothing(said: list[str]) -> None:
    """Neither an agent's nor a person's, nor an object that is quoted, broken, contradicts itself or is gone back on."""
    for question in (APPROVAL, SELECTION, STRUCTURED):
        assert value_of(*said, question=question) is None


@given(st.text(max_size=80), st.sampled_from([ASSISTANT, PERSON]))
def test_no_words_of_any_kind_propose(words: str, role: str) -> None:
    """Whatever is said, without a fenced object there is no proposal, and nothing fails."""
    for question in (APPROVAL, SELECTION, FREEFORM, STRUCTURED):
        assert ended([Utterance(role, words.replace("`", "").replace("~", ""))], question) is None
        ended([Utterance(ASSISTANT, fenced(words))], question)


@pytest.mark.parametrize(
    ("said", "question", "value"),
    [
        ([fenced('{"decision": "approve"}')], APPROVAL, True),
        ([fenced('{"decision": "reject"}', before="So be it:")], APPROVAL, False),
        ([fenced('{"approved": true}'), "P: thanks"], APPROVAL, True),
        (["```\n" + '{"decision": "approve"}' + "\n```"], APPROVAL, True),
        ([fenced('{"decision": "green"}')], SELECTION, "Green"),
        ([fenced('{"decision": "#1"}')], SELECTION, "Blue"),
        ([fenced('{"decision": "gr"}')], SELECTION, None),
        ([fenced('{"decision": "Red"}')], SELECTION, None),
        ([fenced('{"decision": "Keep both."}')], FREEFORM, "Keep both."),
        ([fenced('{"port": 80}')], FREEFORM, None),
        ([fenced('{"decision": {"approved": true, "notes": "f"}}')], STRUCTURED, {"approved": True, "notes": "f"}),
        ([fenced('{"approved": true, "notes": "f"}')], STRUCTURED, {"approved": True, "notes": "f"}),
        ([fenced('{"approved": true}')], STRUCTURED, None),
    ],
)  # fmt: skip
def test_the_object_that_ends_the_last_message_is_proposed(
    said: list[str], question: Question, value: object
) -> None:
    """Unwrapped, and held against the question."""
    assert value_of(*said, question=question) == value


def test_a_status_alone_is_proposed_too() -> None:
    """It brings its words, and no value."""
    found = ended(talk(fenced('{"status": "NEEDS_REVIEW", "reason": "numbers first"}')), APPROVAL)
    assert found == Understood(None, "NEEDS_REVIEW", reason="numbers first", source="json")


@pytest.mark.parametrize(
    ("spoken", "said", "differ"),
    [
        ([Utterance(PERSON, "yes", 10)], Understood(True, source="mcp", at=20), False),
        ([Utterance(PERSON, "wait", 30)], Understood(True, source="mcp", at=20), True),
        ([Utterance(PERSON, "yes")], Understood(True, source="mcp", at=20), True),
        ([Utterance(PERSON, "yes", 10)], Understood(True, source="file"), True),
        ([], Understood(True, source="file", at=20), False),
        (talk("P: yes", fenced("{}")), Understood(True, source="json"), False),
        (talk(fenced("{}"), "P: wait"), Understood(True, source="json"), True),
    ],
)
def test_a_later_word_of_the_persons_may_be_another(
    spoken: list[Utterance], said: Understood, differ: bool
) -> None:
    """After what was proposed, or nobody knows which came first."""
    assert may_differ(said, spoken) is differ


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ({"status": "CONTINUE"}, True),
        ({"status": "approved", "reason": "fine"}, True),
        ({"status": "STOP", "message": "no"}, False),
        ({"status": "REJECTED"}, False),
        ({"status": "DONE", "summary": "looked"}, None),
        ({"status": "NEEDS_REVIEW", "decision": True}, None),
        ({"value": "approve"}, True),
        ({"value": "LGTM", "status": "DONE"}, True),
        ({"decision": {"approved": False}}, False),
        ({}, None),
    ],
)
def test_a_signal_decides_an_approval(data: dict[str, object], value: object) -> None:
    """By its value or by its status; any other status passes through and leaves it to the person."""
    found = signalled(data, APPROVAL)
    assert found.value is value
    assert found.status == data.get("status", "")
    assert found.source == "command"


def test_a_signal_brings_its_words() -> None:
    """Summary, reason and message as they were given; free text is the summary where nothing else is."""
    data = {"status": "NEEDS_REVIEW", "summary": "Two left.", "reason": "time", "message": "See log."}
    assert signalled(data, FREEFORM, "mcp") == Understood(
        "Two left.", "NEEDS_REVIEW", "Two left.", "time", "See log.", "mcp"
    )
    assert signalled({"value": "Yes and no.", "notes": "n"}, FREEFORM).message == "n"
    assert signalled({"summary": "a\0b\ud800" + "c" * 40_000}, FREEFORM).summary.startswith("ab?c")
    assert signalled({"status": "DONE"}, STRUCTURED).value is None
    assert signalled({"value": {"approved": True, "notes": "x"}}, STRUCTURED).value is not None


@pytest.mark.parametrize(
    ("data", "question"),
    [
        ({"value": "perhaps"}, APPROVAL),
        ({"value": True, "status": "STOP"}, APPROVAL),
        ({"value": True, "conditions": "many"}, APPROVAL),
        ({"status": "<b>"}, APPROVAL),
        ({"status": 3}, FREEFORM),
        ({"summary": ["a"]}, FREEFORM),
        ({"value": "Red"}, SELECTION),
        ({"value": "Gr"}, SELECTION),
        ({"value": {"approved": True}}, STRUCTURED),
        ({"value": 3}, FREEFORM),
    ],
)
def test_a_signal_that_does_not_fit_says_why(data: dict[str, object], question: Question) -> None:
    """To the agent that gave it, which may then give another."""
    with pytest.raises(BadAnswer):
        signalled(data, question)
