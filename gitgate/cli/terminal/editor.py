"""Command line: an answer written in the person's editor, with the question above the line.

What was typed is kept beside the repository until the answer is recorded: no mistake and no crash loses it.
`click.edit` writes to a file that it deletes, and does not ask git for the editor.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import BadAnswer
from ...model.gate import Gate, Question
from ...questions.answers import read_answer
from ...questions.base import Given
from ...questions.types import expected, type_of
from ...store.git.permissions import private_folder
from .screen import Screen

if TYPE_CHECKING:
    from ...context.desk import Desk


LINE = "# ------------------------ >8 ------------------------"
CELLS = 78


def write_answer(screen: Screen, desk: Desk, gate: Gate, given: Given) -> Given:
    """What the person wrote, once it fits. One that does not is offered again, with its text and the reason."""
    from ...store.git.programs import edit

    path = draft_path(desk, gate)
    wrong, text = "", kept(path, gate, given)
    while True:
        private_folder(path.parent)
        path.write_text(document(gate, text, wrong), encoding="utf-8", errors="surrogateescape")
        screen.pulse.stop()
        edit(desk.repo, path, screen.env)
        text = below(path.read_text(encoding="utf-8", errors="surrogateescape"))
        try:
            return fitting(gate, text)
        except BadAnswer as unfit:
            wrong = unfit.message
            give_up_or_retry(screen, path, unfit, empty=blank(text, keys(gate.opened.questions)))


def give_up_or_retry(screen: Screen, path: Path, unfit: BadAnswer, *, empty: bool) -> None:
    """Empty means that the person thought better of it. Without anybody to ask, the text waits where it is."""
    if not empty and screen.interactive:
        screen.warn(f"{unfit.message}\nyour text is kept in {path}")
        from .screen import choose

        if choose("edit it again, or quit? [e/q]: ", "eq") == "e":
            return
    if empty:
        path.unlink(missing_ok=True)
        raise BadAnswer("nothing was written below the line, so nothing is recorded", hint=unfit.hint)
    raise BadAnswer(
        unfit.message, hint=f"{unfit.hint}\nyour text is kept in {path}; --edit goes on with it".strip()
    )


def discard(desk: Desk, gate: Gate) -> None:
    """The answer is recorded: its draft has done its work."""
    draft_path(desk, gate).unlink(missing_ok=True)


def draft_path(desk: Desk, gate: Gate) -> Path:
    return desk.repo.state_dir / "drafts" / f"{gate.id}.txt"


def kept(path: Path, gate: Gate, given: Given) -> str:
    """What the editor opens with: what was given, else what an earlier attempt left, else the form of an answer."""
    if given.text is not None:
        return given.text
    if path.exists() and not given.pairs:
        earlier = below(path.read_text(encoding="utf-8", errors="surrogateescape"))
        if not blank(earlier, keys(gate.opened.questions)):
            return earlier
    said = dict(given.pairs)
    return "\n".join(
        f"{key}: {said.get(key, '')}".rstrip() + "\n" for key in keys(gate.opened.questions)
    ).rstrip("\n")


def keys(questions: tuple[Question, ...]) -> list[str]:
    """The sections of an answer: one a question, or one a field of the only form."""
    if len(questions) > 1:
        return [question.key for question in questions]
    return type_of(questions[0]).sections(questions[0])


def document(gate: Gate, text: str, wrong: str) -> str:
    return f"{comments(gate, wrong)}\n{LINE}\n{text}\n"


def comments(gate: Gate, wrong: str) -> str:
    """The question above the line."""
    from ...render.letter import question_part
    from ...text.display import neutral, one_line, wrap

    questions = gate.opened.questions
    parts = [f"NOT RECORDED: {neutral(wrong)}"] if wrong else []
    parts.append(f"{gate.id}: {one_line(gate.opened.title)}")
    parts += [question_part(question, CELLS, several=len(questions) > 1) for question in questions]
    if gate.opened.context:
        parts.append(wrap(neutral(gate.opened.context), CELLS, "  "))
    parts.append(advice(questions))
    lines = "\n\n".join(parts).split("\n")
    return "\n".join(f"# {line}".rstrip() for line in lines)


def advice(questions: tuple[Question, ...]) -> str:
    names = keys(questions)
    how = "each part after its name" if names else expected(questions[0])
    return f"Write your answer below the line ({how}).\nNothing is recorded if it is left empty."


def below(text: str) -> str:
    """What stands below the line; where the line is gone, or only the space above it was used, what is no comment."""
    lines = text.splitlines()
    place = lines.index(LINE) if LINE in lines else len(lines)
    answer = "\n".join(lines[place + 1 :]).strip("\n")
    above = "\n".join(line for line in lines[:place] if not line.startswith("#")).strip("\n")
    return answer if answer.strip() or not above.strip() else above


def blank(text: str, names: list[str]) -> bool:
    """Nothing but names of sections is nothing."""
    empty = {f"{name}:" for name in names}
    return all(not line.strip() or line.strip() in empty for line in text.splitlines())


def fitting(gate: Gate, text: str) -> Given:
    """The text as an answer that fits; BadAnswer says what does not."""
    questions = gate.opened.questions
    if blank(text, keys(questions)):
        raise BadAnswer("an empty answer is not an answer", hint=expected(questions[0]))
    if any("\udc80" <= character <= "\udcff" for character in text):
        raise BadAnswer("the answer is not UTF-8 text", hint="save it as UTF-8")
    only = questions[0]
    given = Given(text=text) if len(questions) > 1 else type_of(only).written(only, text)
    read_answer(questions, given)
    return given


def has_editor(screen: Screen, desk: Desk) -> bool:
    """Whether the person chose one, or is there to use git's last resort."""
    return (
        sys.stdin.isatty()
        or any(screen.env.get(name) for name in ("GIT_EDITOR", "VISUAL", "EDITOR"))
        or "core.editor" in desk.settings.git
    )
