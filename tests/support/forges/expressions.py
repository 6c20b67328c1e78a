"""Test bed: the expressions of our workflows, as the runner works them out; one that this does not know fails the test.

`known` has a value for each dotted name. What may be missing is missing on GitHub too, and empty: something of an event, and
an output that nobody wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

WHOLE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<name>[A-Za-z_][\w.-]*)|(?P<sign>==|!=|&&|\|\||[!(),]))"
)
MAY_BE_MISSING = ("github.event.", "steps.")
SUCCESS, FAILURE, CANCELLED = "success", "failure", "cancelled"
STATUS = {
    "success": (SUCCESS,),
    "failure": (FAILURE,),
    "cancelled": (CANCELLED,),
    "always": (SUCCESS, FAILURE, CANCELLED),
}


def tokens(text: str) -> Iterator[tuple[str, str]]:
    at, text = 0, text.strip()
    while at < len(text):
        found = TOKEN.match(text, at)
        assert found is not None, f"not known in an expression: {text[at:]!r} of {text!r}"
        at = found.end()
        yield str(found.lastgroup), found[str(found.lastgroup)]


class Reading:
    """One expression. All of it is worked out, also what would not count, so that a name nobody knows is seen."""

    def __init__(self, text: str, known: Mapping[str, Any], status: str = SUCCESS) -> None:
        self.left = [*tokens(text)]
        self.text, self.known, self.status = text, known, status
        self.asks_status = False

    def whole(self) -> Any:
        value = self.either()
        assert not self.left, f"not known in an expression: {self.text!r}"
        return value

    def next_is(self, *signs: str) -> str:
        if self.left and self.left[0][0] == "sign" and self.left[0][1] in signs:
            return self.left.pop(0)[1]
        return ""

    def either(self) -> Any:
        value = self.both()
        while self.next_is("||"):
            other = self.both()
            value = value or other
        return value

    def both(self) -> Any:
        value = self.compared()
        while self.next_is("&&"):
            other = self.compared()
            value = value and other
        return value

    def compared(self) -> Any:
        value = self.one()
        sign = self.next_is("==", "!=")
        if not sign:
            return value
        other = self.one()
        assert isinstance(value, str), self.text  # what GitHub makes of other kinds is not needed here
        assert isinstance(other, str), self.text
        return (value.lower() == other.lower()) is (sign == "==")

    def one(self) -> Any:
        if self.next_is("!"):
            return not self.one()
        if self.next_is("("):
            value = self.either()
            assert self.next_is(")"), self.text
            return value
        assert self.left, f"it ends too early: {self.text!r}"
        kind, word = self.left.pop(0)
        if kind == "text":
            return word[1:-1].replace("''", "'")
        assert kind == "name", f"{word!r} is not known in {self.text!r}"
        return self.called(word) if self.next_is("(") else self.looked_up(word)

    def called(self, name: str) -> Any:
        given = []
        while not self.next_is(")"):
            given.append(self.either())
            self.next_is(",")
        if name in STATUS and not given:
            self.asks_status = True
            return self.status in STATUS[name]
        if name == "contains":
            inside, wanted = given
            assert isinstance(inside, str), "only a text is looked through"
            return str(wanted).lower() in inside.lower()
        assert name == "fromJSON", f"{name} is not known in {self.text!r}"
        return json.loads(*given)

    def looked_up(self, name: str) -> Any:
        if name in ("true", "false"):
            return name == "true"
        if name not in self.known and name.startswith(MAY_BE_MISSING):
            return ""
        assert name in self.known, f"nobody gives {name} a value"
        return self.known[name]


def value_of(text: str, known: Mapping[str, Any]) -> Any:
    """Of a text that is one expression and nothing else."""
    found = WHOLE.fullmatch(text.strip())
    assert found is not None, f"no expression: {text!r}"
    return Reading(found[1], known).whole()


def filled(text: str, known: Mapping[str, Any]) -> str:
    """A text with its expressions as the runner would fill them in."""
    return WHOLE.sub(lambda found: str(Reading(found[1], known).whole()), text)


def holds(condition: object, known: Mapping[str, Any], status: str = SUCCESS) -> bool:
    """An `if:`, or none. Where it does not ask how it went so far, all has to have gone well."""
    text = str(True if condition is None else condition).replace("True", "true").replace("False", "false")
    found = WHOLE.fullmatch(text.strip())
    reading = Reading(found[1] if found else text, known, status)
    value = bool(reading.whole())
    return value and (reading.asks_status or status == SUCCESS)


def flat(value: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """What an event says, by dotted names. A list, or what is null, is nothing that a condition of ours reads."""
    found: dict[str, Any] = {}
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            found |= flat(inner, f"{prefix}{name}.")
        elif isinstance(inner, str | int):
            found[prefix + name] = str(inner)
    return found
