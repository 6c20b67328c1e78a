"""Core: a tool call of an agent that waits for a person, as a gate's questions, and the answer as the call's outcome.

`config.deferred` of a gate names the call: by its id, and by a digest of exactly what was to be called, so that what is
let through is what was approved.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..errors import Usage
from .answers import shown
from .model import Gate, Option, Question, Value
from .rules import WRITERS, Rule
from .rules import said as texts_of
from .text import one_line

ASK_TOOL = "AskUserQuestion"
MOST_QUESTIONS, MOST_OPTIONS = 20, 100
MOST_PROMPT, MOST_LABEL, MOST_SHOWN = 20_000, 900, 12_000
SHAPE = '{"questions": [{"question": "…?", "header": "…", "multiSelect": false, "options": [{"label": "…", "description": "…"}, …]}]}'
NOT_IN_A_KEY = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Call:
    """One call of a tool, by the id that its program gave it."""

    tool: str
    id: str
    digest: str


def digest_of_call(tool: str, given: object) -> str:
    """The same for the same tool with the same arguments, in whatever order they stand."""
    text = json.dumps([tool, given], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def config_of(call: Call, rule: Rule | None = None, placed: Placed | None = None) -> dict[str, object]:
    """What a gate keeps of its call."""
    said: dict[str, object] = {"tool": call.tool[:200], "id": call.id[:200], "digest": call.digest}
    said |= {"rule": rule.text} if rule else {}
    said |= {"placed": placed.plain()} if placed else {}
    return {"deferred": said}


def call_of(gate: Gate) -> Call | None:
    """The call that a gate stands for; None when it was asked in another way."""
    said = gate.opened.config.get("deferred")
    if not isinstance(said, Mapping):
        return None
    words = [said.get(name) for name in ("tool", "id", "digest")]
    return Call(*map(str, words)) if all(isinstance(word, str) for word in words) else None


# Where a call is made

# The fields of these tools that name a file. Of other tools nobody can say what a text in their arguments means.
FILES = {
    **dict.fromkeys(("Write", "Edit", "MultiEdit", "Read"), "file_path"),
    **dict.fromkeys(("Glob", "Grep", "LS"), "path"),
    "NotebookEdit": "notebook_path",
}


@dataclass(frozen=True)
class Placed:
    """Where a call was to be made: the folder of its repository; the agent's and that of each file that it names, below it
    (a file elsewhere is left out); whether it names that folder in a text; and its digest with the files as they stand here.
    """

    root: str
    cwd: str
    files: Mapping[str, str]
    named: bool
    digest: str

    def plain(self) -> dict[str, object]:
        return {**vars(self), "files": dict(self.files)}


def placed_of(gate: Gate) -> Placed | None:
    """Where the call of a gate was to be made; None where it does not say so, or not in so many words."""
    deferred = gate.opened.config.get("deferred")
    said = deferred.get("placed") if isinstance(deferred, Mapping) else None
    if not isinstance(said, Mapping) or not isinstance(files := said.get("files"), Mapping):
        return None
    words = [said.get(name) for name in ("root", "cwd", "digest")]
    if not all(isinstance(word, str) for word in (*words, *files.values())) or not all(
        map(inside, files.values())
    ):
        return None
    root, cwd, digest = map(str, words)
    return Placed(
        root, cwd, {str(k): str(v) for k, v in files.items()}, said.get("named") is not False, digest
    )


def place_call(
    tool: str,
    given: Mapping[str, object],
    root: str,
    cwd: str,
    real: Mapping[str, str],
    spelt: Iterable[str],
    home: str,
) -> Placed:
    """Where a call is to be made. `root`, `cwd` and `real` (by file) have links followed; `spelt`: the root's other names."""
    name = FILES.get(tool)
    found = real.get(str(given.get(name))) if name else None
    at = below(found, root) if found is not None else None
    files = {name: at} if name and at is not None else {}
    here = below(cwd, root)
    texts = [] if name else list(texts_of(given))
    named = any(names_folder(text, {root, *spelt}, here or ".", home) for text in texts)
    return Placed(root, cwd if here is None else here, files, named, digest_of_call(tool, {**given, **files}))


def below(path: str, root: str) -> str | None:
    """A path from a folder, or None where it is not in it; `/repo2` is not in `/repo`."""
    path = posixpath.normpath(path)
    if path == root:
        return "."
    return path.removeprefix(f"{root.rstrip('/')}/") if path.startswith(f"{root.rstrip('/')}/") else None


def inside(path: str) -> bool:
    """Whether a path stays below the folder that it starts from, and out of git's own."""
    plain = posixpath.normpath(path)
    return not plain.startswith(("/", "../")) and plain != ".." and plain.split("/")[0].lower() != ".git"


def names_folder(text: str, names: Iterable[str], cwd: str = ".", home: str = "") -> bool:
    """Whether a text names a folder by one of its names, through the home, or climbs out of it with `..`.

    A shell has more ways than that: it is a guard against accidents, and the person has read the call.
    """
    if home:
        text = text.replace("${HOME}", home).replace("$HOME", home)
        text = re.sub(r"(?<![\w./~-])~(?![\w-])", lambda _: home, text)
    text = re.sub(r"(?:^|(?<=\s))-\w(?=/)", "", text)  # an option that its value stands next to
    for name in filter(None, names):
        if re.search(rf"(?<![\w.~-]){re.escape(name.rstrip('/') or '/')}(?![\w-]|\.\w)", text):
            return True
    for word in re.findall(r"[^\s\"'=:;|&()<>`]*\.\.[^\s\"'=:;|&()<>`]*", text):
        whole = posixpath.normpath(word)
        if word.startswith("/"):
            if any(below(whole, name) is not None for name in names):
                return True
        elif posixpath.normpath(posixpath.join(cwd, word)).split("/")[0] == "..":
            return True
    return False


def moved(given: Mapping[str, object], placed: Placed, root: str) -> dict[str, object]:
    """The same call for the files below another folder."""
    return {
        **given,
        **{name: posixpath.normpath(posixpath.join(root, at)) for name, at in placed.files.items()},
    }


def is_same(call: Call, placed: Placed | None, tool: str, given: Mapping[str, object], root: str) -> bool:
    """Whether this is the call that was approved: as it was made, or for the files below this folder."""
    if call.digest == digest_of_call(tool, given):
        return True
    if placed is None or any(given.get(name) != path for name, path in moved({}, placed, root).items()):
        return False
    return placed.digest == digest_of_call(tool, {**given, **placed.files})


# Questions


def questions_of(given: Mapping[str, object]) -> tuple[Question, ...]:
    """The questions of an `AskUserQuestion` call; Usage says what was expected."""
    listed = given.get("questions")
    if not isinstance(listed, list) or not 1 <= len(listed) <= MOST_QUESTIONS:
        raise Usage(f"expected 1 to {MOST_QUESTIONS} questions", hint=SHAPE)
    keys: list[str] = []
    found = []
    for number, item in enumerate(listed, 1):
        if not isinstance(item, Mapping):
            raise Usage(f"question {number} is not an object", hint=SHAPE)
        keys.append("answer" if len(listed) == 1 else key_of(item.get("header"), number, keys))
        found.append(question_of(item, number, keys[-1]))
    return tuple(found)


def question_of(item: Mapping[str, object], number: int, key: str) -> Question:
    prompt = said(item.get("question"), MOST_PROMPT)
    if not prompt:
        raise Usage(f"question {number} has no text", hint=SHAPE)
    options = options_of(item.get("options"), number)
    if not options:
        return Question(key, prompt, "text")
    several = item.get("multiSelect") is True
    return Question(key, prompt, "choices" if several else "choice", options, other=True)


def options_of(listed: object, number: int) -> tuple[Option, ...]:
    if listed is None:
        return ()
    if not isinstance(listed, list) or len(listed) > MOST_OPTIONS:
        raise Usage(f"question {number}: expected a list of at most {MOST_OPTIONS} options", hint=SHAPE)
    found: list[Option] = []
    taken: set[str] = set()
    for item in listed:
        option = item if isinstance(item, Mapping) else {"label": item}
        label = said(option.get("label"), MOST_LABEL)
        if not label:
            raise Usage(f"question {number} has an option without a label", hint=SHAPE)
        label = unique(label, taken)
        taken.add(label.casefold())
        found.append(Option(label, said(option.get("description"), MOST_PROMPT)))
    return tuple(found)


def unique(label: str, taken: set[str]) -> str:
    """Two labels that differ by case alone are two options all the same."""
    names = (label, *(f"{label} ({number})" for number in range(2, MOST_OPTIONS + 2)))
    return next(name for name in names if name.casefold() not in taken)


def key_of(header: object, number: int, taken: Sequence[str]) -> str:
    """A short name to answer by: from the header, where it has letters."""
    key = NOT_IN_A_KEY.sub("-", said(header, 40).lower()).strip("-")
    return key if key and key not in taken and not re.fullmatch(r"q\d+", key) else f"q{number}"


def said(value: object, most: int) -> str:
    """Text as a record can hold it; what is no text is nothing."""
    if not isinstance(value, str):
        return ""
    return (
        value.encode("utf-8", "replace")
        .decode()
        .replace("\0", "")
        .replace("\r\n", "\n")
        .strip()[:most]
        .strip()
    )


def previews(given: Mapping[str, object]) -> str:
    """What the options would look like, where the agent drew it: it goes into the context."""
    listed = given.get("questions")
    parts = [
        f"{said(option.get('label'), MOST_LABEL)}:\n\n{indented(said(option.get('preview'), 4000))}"
        for item in (listed if isinstance(listed, list) else [])
        if isinstance(item, Mapping)
        for option in (item.get("options") if isinstance(item.get("options"), list) else [])  # type: ignore[union-attr]
        if isinstance(option, Mapping) and said(option.get("preview"), 1)
    ]
    return "\n\n".join(parts)


# Answers


def updated_input(
    given: Mapping[str, object], questions: Sequence[Question], values: Mapping[str, Value]
) -> dict[str, object]:
    """The call of `AskUserQuestion` again, with its answers in it."""
    asked = given.get("questions")
    texts = [
        item.get("question") if isinstance(item, Mapping) else None
        for item in (asked if isinstance(asked, list) else [])
    ]
    pairs = zip(texts, questions, strict=False)
    answers = {
        text: answer_text(values.get(question.key)) for text, question in pairs if isinstance(text, str)
    }
    return {**given, "answers": answers}


def answer_text(value: Value | None) -> str:
    """Several labels are told apart by commas, so that one which holds a comma stands in quotes."""
    if isinstance(value, list) and any("," in label for label in value):
        return ", ".join(json.dumps(label, ensure_ascii=False) if "," in label else label for label in value)
    return shown(value)


# Approvals


def approval(tool: str, given: Mapping[str, object]) -> Question:
    return Question(
        "answer", f"May the agent make this call?\n\n{indented(summary(tool, given))}", "approval"
    )


def title(tool: str, given: Mapping[str, object]) -> str:
    return one_line(f"Allow {summary(tool, given)}", 72)


def summary(tool: str, given: Mapping[str, object]) -> str:
    """The call in the words that matter most: the command, the file, the address."""
    for name in ("command", "file_path", "notebook_path", "url", "path"):
        text = said(given.get(name), MOST_SHOWN)
        if text:
            return f"{said(tool, 200)}: {text}"
    return said(tool, 200) or "a tool"


def exact(tool: str, given: Mapping[str, object]) -> str:
    """All of the call, to be read; texts of several lines as they are, instead of as one line full of escapes."""
    lines = []
    for name, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        text = text.encode("utf-8", "replace").decode()
        lines.append(f"{name}:\n{indented(text)}" if "\n" in text else f"{name}: {text}")
    head = f"{said(tool, 200)}{' (it writes a file)' if tool in WRITERS else ''}"
    return "\n".join([head, *lines])


def indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))
