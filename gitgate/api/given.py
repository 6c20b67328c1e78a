"""Python: what callers hand in, made what the service takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Usage
from ..model.gate import Gate as Folded
from ..model.gate import Option, Value
from ..questions.answers import Given

if TYPE_CHECKING:
    from ..context.desk import Desk
    from ..questions.drafts import Draft

Choices = Sequence[str | tuple[str, str] | Mapping[str, str]] | Mapping[str, str]


def choices(given: Choices) -> tuple[Option, ...]:
    """Labels (`LABEL=TEXT` as on the command line), pairs, or a mapping of labels to what they mean."""
    from ..questions.drafts import option

    if isinstance(given, Mapping):
        return tuple(Option(label.strip(), text.strip()) for label, text in given.items())
    if isinstance(given, str):
        raise Usage("options are a list of labels", hint='options=["Postgres", "SQLite"]')
    found = []
    for item in given:
        if isinstance(item, str):
            found.append(option(item))
        elif isinstance(item, Mapping):
            found.append(Option(item["label"].strip(), item.get("description", "").strip()))
        else:
            found.append(Option(item[0].strip(), item[1].strip()))
    return tuple(found)


def from_file(file: str | Path, prompt: str | None, beside: Sequence[object]) -> Draft:
    from ..document import codec
    from ..questions import drafts

    if prompt is not None or any(beside):
        raise Usage("file brings the question; nothing of it can stand beside it")
    try:
        body = Path(file).read_bytes()
    except OSError as unreadable:
        raise Usage(f"file: {file} cannot be read: {unreadable.strerror}") from unreadable
    return drafts.read_draft(codec.parse(body, str(file)))


def with_terms(draft: Draft, terms: Mapping[str, object]) -> Draft:
    from dataclasses import replace

    given: dict[str, object] = {name: value for name, value in terms.items() if value is not None}
    return replace(draft, **given)  # type: ignore[arg-type]


def read_attachments(desk: Desk, paths: Sequence[str]) -> dict[str, bytes]:
    from ..store.records.attach import read

    found: dict[str, bytes] = {}
    for path in paths:
        name, body = read(Path(path), desk.repo.place)
        if name in found:
            raise Usage(f"attach: {name} is there twice")
        found[name] = body
    return found


def seconds(given: str | int | None) -> int | None:
    """`"2h"` or a number of seconds."""
    if given is None:
        return None
    from ..text.times import parse_duration

    length = parse_duration(str(given))
    if length == 0:
        raise Usage("a deadline has to be in the future", hint='timeout="2h"')
    return length


def given_of(
    gate: Folded,
    answer: Value | None,
    answers: Mapping[str, object] | None,
    other: str | None,
    *,
    approve: bool | None,
) -> Given:
    """One of the ways to give an answer; True and False answer an approval."""
    ways = [answer is not None, answers is not None, other is not None, approve is not None]
    if sum(ways) != 1:
        raise Usage("give the answer once: as a value, as answers, as other, or with approve or reject")
    if isinstance(answer, str):
        return Given(text=answer)
    if answer is not None:
        return Given(values={gate.opened.questions[0].key: answer})
    return Given(approve=approve, other=other, values=answers)
