"""Core: what an explicit signal says of how a conversation ended: a command's, a tool's, a file's or an object's fields."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import BadAnswer
from .answers import APPROVING, REJECTING
from .model import Question, Value
from .questions import NO, YES, read_value
from .talks import MOST_WORDS, STATUS
from .values import dataclass

VALUES = ("value", "decision", "response", "answer", "verdict", "outcome")
NOTES = ("note", "notes", "comment", "comments")
WORDS = ("summary", "reason", "message")
SAYS_YES = frozenset(("CONTINUE", "APPROVED", "APPROVE"))
SAYS_NO = frozenset(("STOP", "REJECTED", "REJECT"))
SAYS_NEITHER = frozenset(("", "DONE", "COMPLETED", "COMPLETE", "FINISHED", "SUCCESS"))


@dataclass(frozen=True)
class Understood:
    """What the end of a conversation says. `sure`: there is no other way to take it."""

    value: Value | None
    status: str = ""
    summary: str = ""
    reason: str = ""
    message: str = ""
    source: str = ""
    sure: bool = False


def signalled(data: Mapping[str, object], question: Question, source: str = "command") -> Understood:
    """What an explicit signal says: a value, a status, words. BadAnswer says what does not fit."""
    status = data.get("status") or ""
    if not isinstance(status, str) or (status and not STATUS.fullmatch(status)):
        raise BadAnswer(f"{question.key}: expected a status such as DONE or NEEDS_REVIEW")
    said = {name: words_of(question, data, name) for name in WORDS}
    said["message"] = said["message"] or next((w for n in NOTES if (w := words_of(question, data, n))), "")
    value = READ[question.kind](question, data, said)
    if value == data:
        said = {}  # the fields of a form are not words about it
    return Understood(value, status=status, source=source, sure=value is not None, **said)


def words_of(question: Question, data: Mapping[str, object], name: str) -> str:
    found = data.get(name)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise BadAnswer(f"{question.key}: {name}: expected text")
    return found.replace("\0", "").encode("utf-8", "replace").decode().strip()[:MOST_WORDS]


def given_value(data: Mapping[str, object]) -> object:
    """The first of the names that a value goes by, or nothing."""
    return next((data[name] for name in VALUES if data.get(name) is not None), None)


def read_approval(question: Question, data: Mapping[str, object], said: Mapping[str, str]) -> Value | None:
    """A yes or a no, if all that was said agrees; with any other status the person is asked."""
    del said
    strange = [name for name in data if name not in (*VALUES, *NOTES, *WORDS, "status", "approved")]
    if strange:
        raise BadAnswer(f"{question.key}: expected a decision and words about it; found {strange[0]!r} too")
    found = {yes_or_no(question, data[n]) for n in (*VALUES, "approved") if data.get(n) is not None}
    status = str(data.get("status") or "").upper()
    if status in SAYS_YES | SAYS_NO:
        found.add(status in SAYS_YES)
    if len(found) > 1:
        raise BadAnswer(f"{question.key}: expected one decision; this says both yes and no")
    return found.pop() if found and status in SAYS_YES | SAYS_NO | SAYS_NEITHER else None


def yes_or_no(question: Question, given: object) -> bool:
    if isinstance(given, bool):
        return given
    if isinstance(given, Mapping):
        inner = read_approval(question, given, {})
        if isinstance(inner, bool):
            return inner
    word = given.strip().lower() if isinstance(given, str) else ""
    if word in YES or word in APPROVING:
        return True
    if word in NO or word in REJECTING:
        return False
    raise BadAnswer(f"{question.key}: expected yes or no", hint="approve, or reject; more words: --message")


def read_words(question: Question, data: Mapping[str, object], said: Mapping[str, str]) -> Value | None:
    value = given_value(data)
    if value is None:
        value = next((said[name] for name in WORDS if said[name]), None)
    return None if value is None else read_value(question, value)


def read_chosen(question: Question, data: Mapping[str, object], said: Mapping[str, str]) -> Value | None:
    del said
    value = given_value(data)
    if value is None:
        return None
    label = read_value(question, value)
    word = str(value).strip()
    if word.casefold() != str(label).casefold() and not word.startswith("#"):
        raise BadAnswer(f"{question.key}: expected a whole label; {word!r} is the beginning of {label!r}")
    return label


def read_several(question: Question, data: Mapping[str, object], said: Mapping[str, str]) -> Value | None:
    del said
    value = given_value(data)
    return None if value is None else read_value(question, value)


def read_object(question: Question, data: Mapping[str, object], said: Mapping[str, str]) -> Value | None:
    """The object within `decision`, else the whole where it fits; a status alone has none."""
    del said
    value = given_value(data)
    if isinstance(value, Mapping):
        try:
            return read_value(question, value)
        except BadAnswer:
            if not is_whole(question, data):
                raise
    if value is None and set(data) <= {"status", *WORDS, *NOTES} and not is_whole(question, data):
        return None
    return read_value(question, data)


def is_whole(question: Question, data: Mapping[str, object]) -> bool:
    try:
        read_value(question, data)
    except BadAnswer:
        return False
    return True


READ = {
    "approval": read_approval,
    "text": read_words,
    "choice": read_chosen,
    "choices": read_several,
    "form": read_object,
}
