"""What holds of every question type, by its object alone; also of one that is added here, as one object and one line."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.cli.terminal.prompts import ASK
from gitgate.document import field_of
from gitgate.errors import BadAnswer
from gitgate.model.gate import Asker, Entry, Gate, Opened, Option, Question, Work
from gitgate.questions import QuestionType, forms
from gitgate.questions.answers import read_answer
from gitgate.questions.file import parse_questions, plain_question
from gitgate.questions.signals import signalled
from gitgate.questions.types import TYPES, read_value, type_name
from gitgate.record.events import begin
from gitgate.render.letter import question_part, typed
from gitgate.resumption.meeting import described
from gitgate.surfaces.forge import examples, option_replies, parse_reply, read_reply
from gitgate.surfaces.forge.comment import View, render
from support.made_up_type import Percent
from support.testbed.command import Command
from support.testbed.terminal import Terminal

ID = "7k2fw9c3ab"
OWN = [one for one in TYPES.values() if one.name != "session"]
EVERY = [*OWN, Percent()]
SCHEMA = {"type": "object", "properties": {"field": {"type": "string"}, "rows": {"type": "integer"}}}


@pytest.fixture(autouse=True)
def _one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The made-up type is in the list, as if its line stood there."""
    monkeypatch.setitem(TYPES, "percent", Percent())


def question_of(one: QuestionType, key: str = "answer") -> Question:
    """A question of this type with what it has to have."""
    return Question(
        key,
        "How much?",
        one.name,
        (Option("Postgres"), Option("SQLite", "one file")) if one.has_options else (),
        other=one.has_options,
        schema=SCHEMA if one.has_schema else None,
    )


def gate_of(*questions: Question) -> Gate:
    opened = Opened("title", questions, Asker("a", "2026-01-01T00:00:00Z"), Work(None, None, None), "nonce")
    return begin(ID, Entry("a" * 40, "opened", opened), opened)


every_type = pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)


@every_type
def test_it_is_known_by_its_names(one: QuestionType) -> None:
    """Its own and those of other systems; no other type has one of them."""
    assert {type_name(word) for word in (one.name, one.name.upper(), *one.aliases)} == {one.name}
    others = [word for other in EVERY if other is not one for word in (other.name, *other.aliases)]
    assert not {one.name, *one.aliases} & set(others)


@every_type
def test_a_file_says_it_whole(one: QuestionType) -> None:
    """Written and read again it is the same question."""
    question = question_of(one)
    assert parse_questions(field_of([plain_question(question)], "question.yaml")) == [question]


@every_type
def test_a_reply_ready_to_copy_answers_it(one: QuestionType) -> None:
    """Each that the comment suggests, alone and among others; what it means may be recorded, and reads back to itself."""
    question = question_of(one)
    for gate in (gate_of(question), gate_of(question, question_of(EVERY[0], "other"))):
        suggested = [line for line in examples(gate) if line and not line.startswith("/stop")]
        assert suggested
        for line in suggested:
            said = parse_reply(line, [ID])
            assert said is not None
            values, _ = read_answer(gate.opened.questions, read_reply(said, gate)[0])
            value = values["answer"]
            assert one.is_possible(question, value)
            assert "other:" in line or read_value(question, value) == value


@every_type
@pytest.mark.parametrize("given", [None, 4711, "", " ", ["no such thing"]], ids=repr)
def test_what_is_none_is_refused_with_what_would_be(one: QuestionType, given: object) -> None:
    """By the name of the question, whatever was given."""
    with pytest.raises(BadAnswer, match=r"^answer: "):
        read_value(question_of(one), given)


@every_type
def test_an_agent_is_told_of_it(one: QuestionType) -> None:
    """The tool's schema is one, and the value in the example of the command is taken."""
    question = question_of(one)
    shape = described(question)["inputSchema"]
    assert isinstance(shape, dict)
    forms.check_schema(shape, "tool")
    assert one.expected(question) in str(shape["properties"]["value"]["description"])
    if not one.has_schema:
        word = shlex.split(one.example(question))[0].rstrip(",")
        data = {"value": one.outcome_value(question, word)}
        assert signalled(data, question).value is not None


@every_type
def test_a_person_is_told_how(one: QuestionType) -> None:
    """In a letter, in a comment, and at a terminal."""
    question = question_of(one)
    gate = gate_of(question)
    assert all(ID[:6] in way for way in typed(gate))
    assert one.legend(question, 70) in question_part(question, 70, several=False)
    shown, beside = render(View(gate)), option_replies(gate)
    # What stands beside each option is not said once more below.
    below = [line for line in examples(gate) if not (beside and line.startswith("/choose "))]
    assert all(line in shown for line in [*beside, *below])
    assert one.prompt(question).endswith(" ")
    assert one.help(question).startswith(one.means)
    assert one.entry in ASK


@pytest.mark.usefixtures("repo")
@every_type
def test_it_is_asked_and_answered_at_the_command_line(
    one: QuestionType, cli: Command, tmp_path: Path
) -> None:
    """Asked by a flag, listed, shown, answered with what a reply would say, and printed."""
    question = question_of(one)
    (tmp_path / "schema.json").write_text('{"type": "object"}', encoding="utf-8")
    flags = ["-o", "Postgres", "-o", "SQLite"] if one.has_options else []
    flags += ["--schema", str(tmp_path / "schema.json")] if one.has_schema else []
    gate = cli.quick("ask", "How much?", "--type", one.name, *flags, "-q", code=0).line
    listed = cli.quick("list", "--type", one.name, "--json", code=0).json["gates"]
    assert [each["id"] for each in listed] == [gate]
    assert "How much?" in cli.quick("show", gate, code=0).out
    words = one.reply_part(question)
    cli.quick("respond", gate, words, code=0)
    answer = cli.quick("show", gate, "--json", code=0).json["answer"]["values"]["answer"]
    assert answer == read_value(question, words)


@pytest.mark.usefixtures("repo")
def test_a_new_one_is_prompted_for(cli: Command, tmp_path: Path, pty_cli: Callable[..., Terminal]) -> None:
    """The terminal shows it, says what was expected, and takes what the object reads."""
    program = tmp_path / "with-percent"
    lines = [
        f"#!{sys.executable}",
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})",
        "from support.made_up_type import Percent",
        "from gitgate.questions.types import TYPES",
        'TYPES["percent"] = Percent()',
        "from gitgate.cli.process import run",
        "run()",
    ]
    program.write_text("\n".join(lines), encoding="utf-8")
    program.chmod(0o755)
    gate = cli.quick("ask", "How much?", "--type", "percent", "-q", code=0).line
    terminal = pty_cli("respond", gate, program=str(program))
    assert "a part of a hundred" in terminal.expect("how many percent: ")
    for word, said in (("?", "a number from 0 to 100"), ("many", "expected a percentage")):
        terminal.line(word)
        terminal.expect(said)
        terminal.expect("how many percent: ")
    terminal.line("40")
    terminal.finish(code=0)
    assert cli.quick("check", gate, code=0).line == "40%"
