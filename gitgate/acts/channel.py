"""Acts: how a session says what was decided in it: a file beside it, read when the person has left.

It is a message to the person who joined and to nobody else: nothing here touches a record. What does not answer the
question is refused when it is written, so that the agent can mend it, and looked at again when it is read.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..document import codec
from ..document.values import replace
from ..errors import BadAnswer, GateError, NotAllowed
from ..model.gate import Question
from ..questions.file import parse_question, plain_question

if TYPE_CHECKING:
    from ..questions.proposals import Understood


VARIABLE = "GITGATE_OUTCOME"
ASKED, SAID = "asked.json", "outcome.json"
OURS = ("command", "mcp")
MOST_BYTES = 1 << 20


def open_channel(folder: Path, question: Question) -> Path:
    """The file for the outcome of a session that begins, with the question beside it; what an earlier one said is gone."""
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    place = folder / SAID
    with contextlib.suppress(FileNotFoundError):
        place.unlink()
    write(folder / ASKED, plain_question(question))
    return place


def channel(env: Mapping[str, str]) -> Path:
    """The file of the session that this process runs in."""
    named = env.get(VARIABLE, "")
    if not named:
        raise NotAllowed(
            f"there is no session here whose outcome this could be: {VARIABLE} is not set",
            hint="it is set in a session that a person opened with: git gate join ID",
        )
    return Path(named)


def question_of(place: Path) -> Question:
    """What is being decided in the session."""
    asked = place.with_name(ASKED)
    try:
        return parse_question(codec.parse_document(asked.read_bytes(), str(asked)))
    except OSError as gone:
        raise NotAllowed(
            f"the session that {VARIABLE} names is over: {asked} cannot be read",
            hint="a person opens it again with: git gate join ID",
        ) from gone


def say(place: Path, said: Mapping[str, object], source: str) -> Understood:
    """Leave an outcome for the person; the last one counts. BadAnswer says what was expected."""
    understood = meaning(said, question_of(place), source)
    write(place, {**said, "source": source})
    return understood


def meaning(said: Mapping[str, object], question: Question, source: str) -> Understood:
    """What it says as an answer to this question."""
    from ..questions.proposals import signalled

    return signalled({name: value for name, value in said.items() if name != "source"}, question, source)


def heard(place: Path, question: Question) -> Understood | None:
    """What the session left, if it left anything; whoever wrote that file, it fits the question or is refused."""
    try:
        if place.is_symlink() or place.stat().st_size > MOST_BYTES:
            raise BadAnswer(f"the outcome that the session left is no file of at most {MOST_BYTES:,} bytes")
        data, at = place.read_bytes(), place.stat().st_mtime
    except FileNotFoundError:
        return None
    except OSError as unreadable:
        raise BadAnswer(
            f"the outcome that the session left cannot be read: {unreadable.strerror}"
        ) from unreadable
    try:
        said = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as wrong:
        raise BadAnswer(f"the outcome that the session left is not JSON: {wrong}") from wrong
    if not isinstance(said, dict):
        raise BadAnswer("the outcome that the session left is not a JSON object")
    try:
        found = meaning(said, question, str(said["source"]) if said.get("source") in OURS else "file")
        return replace(found, at=at)
    except GateError as unfit:
        raise BadAnswer(f"the outcome that the session left does not fit: {unfit.message}") from unfit


def write(place: Path, value: Mapping[str, object]) -> None:
    """All of it or nothing, for our eyes only."""
    new = place.with_name(f".{place.name}.{os.getpid()}.new")
    with contextlib.suppress(FileNotFoundError):
        new.unlink()
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    new.replace(place)
