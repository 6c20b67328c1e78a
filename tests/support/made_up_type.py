"""A question type as the guide has it, that there is not: the contract's tests add it, as one object and one line."""

from __future__ import annotations

from collections.abc import Iterator

from gitgate.errors import BadAnswer
from gitgate.model.gate import Question, Value
from gitgate.questions import QuestionType, ReplyWays


class Percent(QuestionType):
    """A question type as the guide has it: what differs from a few words, and no more."""

    name, aliases = "percent", ("percentage",)
    means = "a number from 0 to 100"
    word = "50%"

    def expected(self, question: Question) -> str:
        return "expected a percentage such as 50%"

    def read(self, question: Question, given: object) -> Value:
        text = str(given).strip().removesuffix("%").strip()
        if isinstance(given, bool) or not text.isdecimal() or int(text) > 100:
            raise BadAnswer(f"{question.key}: {self.expected(question)}", hint=self.typed(question))
        return f"{int(text)}%"

    def legend(self, question: Question, cells: int) -> str:
        return "    a part of a hundred"

    def prompt(self, question: Question) -> str:
        return "how many percent: "

    def example(self, question: Question) -> str:
        return "50%"

    def value_schema(self, question: Question) -> dict[str, object]:
        return {"type": "string", "pattern": "^[0-9]{1,3}%$"}

    def reply_ways(self, question: Question) -> Iterator[ReplyWays]:
        yield (("/answer 50%", None),)

    def reply_part(self, question: Question) -> str:
        return "50%"
