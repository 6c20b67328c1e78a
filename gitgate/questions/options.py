"""Questions: which option a word means. A number is a place in the list, and may be another option's label."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import BadAnswer
from ..model.gate import Question
from ..text.display import one_line

NUMBER = re.compile(r"#*([0-9]{1,6})")


def listed(question: Question) -> str:
    return ", ".join(question.labels)


def quoted(given: object) -> str:
    text = str(given)
    return quoted_whole(text if len(text) <= 80 else text[:79] + "…")


def quoted_whole(text: object) -> str:
    import json  # where nothing is wrong nothing is quoted

    return json.dumps(text, ensure_ascii=False)


def match_option(question: Question, given: str) -> str | None:
    """The one label that `given` means: the label in any case, `#2`, or a unique beginning of it. A bare number is a place where
    no label begins with it.
    """
    folded = given.casefold()
    exact = [label for label in question.labels if label == given] or [
        label for label in question.labels if label.casefold() == folded
    ]
    if not exact and given.startswith("#") and given.isascii() and given[1:].isdecimal():
        place = int(given[1:7])
        return question.labels[place - 1] if 1 <= place <= len(question.labels) else None
    near = exact or [label for label in question.labels if folded and label.casefold().startswith(folded)]
    if not near and given.isascii() and given.isdecimal():
        return match_option(question, f"#{given}")
    return near[0] if len(near) == 1 else None


def wrong_option(question: Question, word: str) -> str:
    if word.startswith("#") or (word.isascii() and word.isdecimal()):
        return f"{word} is not an option; they are numbered #1 to #{len(question.options)}"
    several = [label for label in question.labels if label.casefold().startswith(word.casefold())]
    if len(several) > 1:
        return f"{quoted(word)} could be {' or '.join(several)}"
    near = {label.casefold(): label for label in question.labels}
    from difflib import get_close_matches  # only a near miss needs it

    close = get_close_matches(word.casefold(), list(near), 1, 0.6)
    meant = f"; did you mean {near[close[0]]}?" if close else ""
    return f"{quoted(word)} is not one of the options: {listed(question)}{meant}"


def option_hint(question: Question, word: str) -> str:
    if question.other:
        return f"to answer in your own words: git gate respond ID --other {quoted_whole(word)}"
    return "git gate respond ID '#1'   (a label, a unique beginning of one, or its number)"


def is_option(question: Question, word: str) -> bool:
    return word in question.labels or (question.other and bool(word.strip()))


def as_number(question: Question, word: str) -> str:
    """`2` as `#2`, unless an option is called so."""
    word = word.strip()
    return f"#{word}" if word.isdecimal() and match_option(question, word) is None else word


# In a reply, where a number and a label are both likely


def labelled(question: Question, word: str) -> list[int]:
    """The options that are called so: as it stands, in any case, or as the comment shows it."""
    folded, shown = word.casefold(), one_line(word).casefold()
    exact = [place for place, label in enumerate(question.labels) if label.casefold() == folded]
    return exact or [
        place for place, label in enumerate(question.labels) if shown and one_line(label).casefold() == shown
    ]


def numbered(question: Question, word: str) -> int | None:
    """The option at that place, counted from 1; any number of `#` before it changes nothing."""
    found = NUMBER.fullmatch(word)
    place = int(found.group(1)) - 1 if found else -1
    return place if 0 <= place < len(question.options) else None


def sure_number(question: Question, place: int, marks: int = 0) -> str:
    """The shortest number that means this place and is no other option's label."""
    forms = (f"{'#' * many}{place + 1}" for many in range(marks, marks + len(question.options) + 1))
    return next(form for form in forms if set(labelled(question, form)) <= {place})


def picked(question: Question, word: str) -> str:
    """The label that a word after `/choose` means; as it stands where core has to find the option, or to refuse it."""
    found = labelled(question, word)
    place = numbered(question, word)
    meant = sorted({*found, *([] if place is None else [place])})
    if len(meant) > 1:
        raise BadAnswer(could_be(question, word, meant))
    if meant:
        return question.labels[meant[0]]
    return f"#{word.lstrip('#')}" if NUMBER.fullmatch(word) else word


def answered(question: Question, word: str) -> str:
    """The same after `/answer`, where a bare number is a label, or nothing: it may be how many."""
    if word.startswith("#"):
        return picked(question, word)
    found = labelled(question, word)
    place = numbered(question, word)
    near = match_option(question, word) if place is not None and not found else None
    meant = {*found, *([question.labels.index(near)] if near is not None else [])}
    if len(meant) > 1 or (meant and place is not None and place not in meant):
        raise BadAnswer(could_be(question, word, sorted({*meant, *([] if place is None else [place])})))
    return question.labels[found[0]] if found else word


def could_be(question: Question, word: str, places: Sequence[int]) -> str:
    ways = [
        f"/choose {sure_number(question, place)} for {one_line(question.labels[place], 40)}"
        for place in places
    ]
    return f"{one_line(word, 40)} could be more than one option: write {', or '.join(ways)}"


def several_picked(question: Question, text: str) -> list[str]:
    """The options of a list after `/choose`, by number or label; a label may hold a comma itself."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    whole = labelled(question, text.strip())
    if not whole:
        return [picked(question, part) for part in parts]
    if len(parts) > 1 and all(
        labelled(question, part) or numbered(question, part) is not None for part in parts
    ):
        raise BadAnswer(
            f"{one_line(text, 40)} is one option, and a list of others: name them by #number, such as #1, #2"
        )
    return [question.labels[whole[0]]]


def several_answered(question: Question, text: str) -> list[str]:
    """The same after `/answer`."""
    whole = labelled(question, text)
    if whole:
        return [question.labels[whole[0]]]
    return [answered(question, part.strip()) for part in text.split(",") if part.strip()]
