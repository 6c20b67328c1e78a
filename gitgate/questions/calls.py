"""Questions: a tool call of an agent that waits for a person, as a gate's questions, and the answer as the call's outcome.

`config.deferred` of a gate names the call: by its id, and by a digest of exactly what was to be called, so that what is
let through is what was approved.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum

from ..document import dataclass
from ..errors import Usage
from ..model.gate import Gate, Option, Question, Value
from ..text import clipped_text, lines, one_line, shell
from ..text.lines.programs import Doubt
from ..text.patterns import fits_path, of_text
from .answers import value_words
from .call_rules import SHELLS, WRITERS, Allowance, CallRule, RuleSource, names_tool

BASH = ("Bash",)
PATHS = ("file_path", "notebook_path", "path")


@dataclass(frozen=True)
class CallPlace:
    """Place where a call is made: the repository's folder, the agent's, and how links are followed from there."""

    top: str
    cwd: str
    real: Mapping[str, str] | None = None


class Fate(Enum):
    """Fate of a call. A held call makes no gate: a terminal asks the person, else it is denied with the reason."""

    RUNS = "runs"
    WAITS = "waits"
    HELD = "held"
    DENIED = "denied"


@dataclass(frozen=True)
class CallRuling:
    """Ruling on a call: its fate, the rule that decides, and the reason in words."""

    fate: Fate
    why: str
    rule: CallRule | None = None
    allowances: tuple[Allowance, ...] = ()


@dataclass(frozen=True)
class RuleBook:
    """Rules on which calls wait for a person. `rules` count with all their terms; of the `pending` ones, which are in
    a working tree, only the call does. `allowances` are for lines that no rule names. `broken`: why no rule can be
    read, so that calls are held.
    """

    rules: tuple[CallRule, ...] = ()
    pending: tuple[CallRule, ...] = ()
    broken: CallRule | None = None
    allowances: tuple[Allowance, ...] = ()


# Reading, and what an agent's program does for itself: no rule that could not be read would have held this.
READING = (
    *("Read", "Glob", "Grep", "LS", "NotebookRead", "LSP", "ToolSearch", "ListMcpResourcesTool", "ReadMcpResourceTool"),
    *("BashOutput", "TodoRead", "TaskGet", "TaskList", "TaskOutput", "CronList", "AskUserQuestion"),
)  # fmt: skip
OUR_SERVER = re.compile(r"mcp__(?:plugin_gitgate_)?git-?_?gate__(?:ask|check|wait|list|show)")
EVERY_CALL = "every call"
HELD = "No call but reading and asking is made until the rules can be read: {}. Mend that on the protected branch."
WRITE_PLAINLY = (
    "Rules here name commands, and nobody can say what this line runs: {}. Write it plainly, with the names of its programs in it, or put it "
    "into a script and run that."
)


def hold_all(why: str, source: RuleSource) -> CallRule:
    """Return the rule that replaces those that cannot be read; it holds every call."""
    return CallRule(EVERY_CALL, "*", why=why, source=source)


def judge_call(book: RuleBook, tool: str, given: Mapping[str, object], place: CallPlace) -> CallRuling:
    """Return the ruling on a call: it waits by a rule that counts, or else by one that does not count yet. A call that
    no counting rule names is held where rules cannot be read, unless it only reads. A call that no rule names at
    all runs, unless it is unknown what it runs and no allowance fits.
    """
    rule = find_rule(book.rules, tool, given, place)
    if rule is None and book.broken is not None and not only_reads(tool, given):
        return CallRuling(Fate.HELD, HELD.format(book.broken.why), book.broken)
    rule = rule or find_rule(book.pending, tool, given, place)
    if rule is not None:
        return CallRuling(Fate.WAITS, rule_words(rule), rule)
    return judge_doubts(book.allowances, find_doubts((*book.rules, *book.pending), tool, given))


def judge_doubts(allowances: Sequence[Allowance], doubts: Sequence[Doubt]) -> CallRuling:
    """Return the ruling on a call that no rule names: it runs where each command in doubt is allowed."""
    used: list[Allowance] = []
    for doubt in doubts:
        found = next((one for one in allowances if lines.is_written(one.pattern, doubt)), None)
        if found is None:
            return CallRuling(Fate.HELD, WRITE_PLAINLY.format(doubt.why))
        used.append(found)
    if not used:
        return CallRuling(Fate.RUNS, "no rule names it")
    by = tuple(dict.fromkeys(used))
    verb = "allows" if len(by) == 1 else "allow"
    return CallRuling(Fate.RUNS, f"{' and '.join(map(allowance_words, by))} {verb} it", None, by)


def allowance_words(one: Allowance) -> str:
    why = f" ({one_line(one.why)})" if one.why else ""
    return f"`{one_line(one.text)}`{why}"


def rule_words(rule: CallRule) -> str:
    """Return why a rule makes a call wait, in a sentence."""
    why = f": {rule.why}" if rule.why else ""
    if not rule.source.counts:
        return f"The rule `{rule.text}` of {rule.source.words} does not count yet, and holds the call all the same{why}."
    of = f" of {rule.source.words}" if rule.source.file else ""
    return f"The rule `{rule.text}`{of} asks for a person{why}."


def only_reads(tool: str, given: Mapping[str, object]) -> bool:
    """Return whether a call does nothing but read, ask a person or hear the answer."""
    if is_one_of(tool, READING) or OUR_SERVER.fullmatch(tool):
        return True
    return tool == "Bash" and bool(shell.plain_asking(str(given.get("command", ""))))


def call_in_words(tool: str | None, words: Sequence[str], path: str | None) -> tuple[str, dict[str, object]]:
    """Return a tool and its arguments from a command line: a line for a shell, a file, or a text for another tool."""
    name = tool or ("Write" if path is not None and not words else SHELLS[0])
    said = words[0] if len(words) == 1 else shlex.join(words)
    given: dict[str, object] = {} if path is None else {FILES.get(name, "file_path"): path}
    return name, given | ({"command" if is_one_of(name, SHELLS) else "text": said} if words else {})


def find_rule(
    rules: Sequence[CallRule], tool: str, given: Mapping[str, object], place: CallPlace
) -> CallRule | None:
    """Return the first rule that names this call; None if there is none."""
    return next((rule for rule in rules if applies(rule, tool, given, place)), None)


def applies(rule: CallRule, tool: str, given: Mapping[str, object], place: CallPlace) -> bool:
    if not any(names_tool(rule, name) for name in (WRITERS if is_one_of(tool, WRITERS) else (tool,))):
        return False
    if rule.about is None:
        return True
    if is_one_of(tool, SHELLS):
        return runs(rule.about, tool, given.get("command"))
    found = [value for name in PATHS if isinstance(value := given.get(name), str)]
    if found:
        return any(lies_in(rule.about, path, place) for path in found)
    return any(of_text(rule.about).fullmatch(text) for text in texts_in(given))


def is_one_of(tool: str, known: Iterable[str]) -> bool:
    return tool.casefold() in (name.casefold() for name in known)


def runs(pattern: str, tool: str, command: object) -> bool:
    """Return whether a rule's pattern names one of the commands of a line, or could."""
    if not isinstance(command, str):
        return True  # what cannot be read is not let through
    return (lines.names if is_one_of(tool, BASH) else lines.names_elsewhere)(pattern, command)


def find_doubts(rules: Iterable[CallRule], tool: str, given: Mapping[str, object]) -> tuple[Doubt, ...]:
    """Return why it is unknown what a line runs; empty where it is known, or where no rule is about lines."""
    command = given.get("command")
    if not is_one_of(tool, BASH) or not isinstance(command, str):
        return ()
    asked = any(rule.about is not None and names_tool(rule, tool) for rule in rules)
    return lines.find_doubts(command) if asked else ()


def lies_in(pattern: str, path: str, place: CallPlace) -> bool:
    """Return whether the pattern names a file, from the top of the repository, by its own path or where links lead."""
    whole = posixpath.normpath(posixpath.join(place.cwd, path.replace("\\", "/")))
    known = {whole, (place.real or {}).get(path, whole)}
    tops = {place.top, (place.real or {}).get(place.top, place.top)}
    if pattern.startswith("/"):
        return any(fits_path(pattern, name) for name in known)
    inside = [name.removeprefix(f"{top}/") for name in known for top in tops if name.startswith(f"{top}/")]
    return any(fits_path(pattern, name) for name in inside)


def texts_in(given: object, depth: int = 0) -> Iterator[str]:
    """Yield every text in a call's arguments."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, Mapping) and depth < 8:
        for value in given.values():
            yield from texts_in(value, depth + 1)
    elif isinstance(given, (list, tuple)) and depth < 8:
        for value in given:
            yield from texts_in(value, depth + 1)


ASK_TOOL = "AskUserQuestion"
MOST_QUESTIONS, MOST_OPTIONS = 20, 100
MOST_PROMPT, MOST_LABEL, MOST_SHOWN = 20_000, 900, 12_000
SHAPE = '{"questions": [{"question": "…?", "header": "…", "multiSelect": false, "options": [{"label": "…", "description": "…"}, …]}]}'
NOT_IN_A_KEY = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Call:
    """Call of a tool, by the id that its program gave it."""

    tool: str
    id: str
    digest: str


def digest_of_call(tool: str, given: object) -> str:
    """Return the digest of a call, which is equal for one tool with equal arguments, in whatever order they are."""
    text = json.dumps([tool, given], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def config_of(call: Call, rule: CallRule | None = None, placed: Placed | None = None) -> dict[str, object]:
    """Return the `config` in which a gate keeps its call."""
    said: dict[str, object] = {"tool": call.tool[:200], "id": call.id[:200], "digest": call.digest}
    said |= {"rule": rule.text} if rule else {}
    said |= {"placed": placed.plain()} if placed else {}
    return {"deferred": said}


def call_of(gate: Gate) -> Call | None:
    """Return the call that a gate is for; None when it was asked in another way."""
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
    """Recorded place of a call: the root of its repository, and below it the agent's folder and each file that it
    names. A file elsewhere is left out. `named`: a text of the call names the root. `digest` is that of the call
    with the files as they are here.
    """

    root: str
    cwd: str
    files: Mapping[str, str]
    named: bool
    digest: str

    def plain(self) -> dict[str, object]:
        return {**vars(self), "files": dict(self.files)}


def placed_of(gate: Gate) -> Placed | None:
    """Return the recorded place of a gate's call; None where there is none, or it is malformed."""
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
    """Return the place of a call. `root`, `cwd` and `real` (by file) have links followed; `spelt`: the root's other
    names.
    """
    name = FILES.get(tool)
    found = real.get(str(given.get(name))) if name else None
    at = below(found, root) if found is not None else None
    files = {name: at} if name and at is not None else {}
    here = below(cwd, root)
    texts = [] if name else list(texts_in(given))
    named = any(names_folder(text, {root, *spelt}, here or ".", home) for text in texts)
    return Placed(root, cwd if here is None else here, files, named, digest_of_call(tool, {**given, **files}))


def below(path: str, root: str) -> str | None:
    """Return a path relative to a folder; None where it is not in it, as `/repo2` is not in `/repo`."""
    path = posixpath.normpath(path)
    if path == root:
        return "."
    return path.removeprefix(f"{root.rstrip('/')}/") if path.startswith(f"{root.rstrip('/')}/") else None


def inside(path: str) -> bool:
    """Return whether a relative path stays below its folder, and out of git's own."""
    plain = posixpath.normpath(path)
    return not plain.startswith(("/", "../")) and plain != ".." and plain.split("/")[0].lower() != ".git"


def names_folder(text: str, names: Iterable[str], cwd: str = ".", home: str = "") -> bool:
    """Return whether a text names a folder by one of its names, through the home, or climbs out of it with `..`.

    A shell has more ways than that: this guards against accidents, and the person has read the call.
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
    """Return the arguments of a call with its files below another folder."""
    return {
        **given,
        **{name: posixpath.normpath(posixpath.join(root, at)) for name, at in placed.files.items()},
    }


def is_same(call: Call, placed: Placed | None, tool: str, given: Mapping[str, object], root: str) -> bool:
    """Return whether this call is the approved one: as it was made, or for the same files below this folder."""
    if call.digest == digest_of_call(tool, given):
        return True
    if placed is None or any(given.get(name) != path for name, path in moved({}, placed, root).items()):
        return False
    return placed.digest == digest_of_call(tool, {**given, **placed.files})


# Questions


def questions_of(given: Mapping[str, object]) -> tuple[Question, ...]:
    """Return the questions of an `AskUserQuestion` call; Usage says what was expected."""
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
    prompt = clipped_text(item.get("question"), MOST_PROMPT)
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
        label = clipped_text(option.get("label"), MOST_LABEL)
        if not label:
            raise Usage(f"question {number} has an option without a label", hint=SHAPE)
        label = unique(label, taken)
        taken.add(label.casefold())
        found.append(Option(label, clipped_text(option.get("description"), MOST_PROMPT)))
    return tuple(found)


def unique(label: str, taken: set[str]) -> str:
    """Return the label, with a number where it is taken: two labels that differ by case alone remain two options."""
    names = (label, *(f"{label} ({number})" for number in range(2, MOST_OPTIONS + 2)))
    return next(name for name in names if name.casefold() not in taken)


def key_of(header: object, number: int, taken: Sequence[str]) -> str:
    """Return a short name to answer by: from the header, where it has letters, else `q` with the number."""
    key = NOT_IN_A_KEY.sub("-", clipped_text(header, 40).lower()).strip("-")
    return key if key and key not in taken and not re.fullmatch(r"q\d+", key) else f"q{number}"


def previews(given: Mapping[str, object]) -> str:
    """Return the previews of the options that the agent drew, for the question's context."""
    listed = given.get("questions")
    parts = [
        f"{clipped_text(option.get('label'), MOST_LABEL)}:\n\n{indented(clipped_text(option.get('preview'), 4000))}"
        for item in (listed if isinstance(listed, list) else [])
        if isinstance(item, Mapping)
        for option in (item.get("options") if isinstance(item.get("options"), list) else [])  # type: ignore[union-attr]
        if isinstance(option, Mapping) and clipped_text(option.get("preview"), 1)
    ]
    return "\n\n".join(parts)


# Answers


def updated_input(
    given: Mapping[str, object], questions: Sequence[Question], values: Mapping[str, Value]
) -> dict[str, object]:
    """Return the arguments of the `AskUserQuestion` call with its answers in them."""
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
    """Return an answer as text. Labels are separated by commas, so one that holds a comma is quoted."""
    if isinstance(value, list) and any("," in label for label in value):
        return ", ".join(json.dumps(label, ensure_ascii=False) if "," in label else label for label in value)
    return value_words(value)


# Approvals


def approval(tool: str, given: Mapping[str, object]) -> Question:
    return Question(
        "answer", f"May the agent make this call?\n\n{indented(summary(tool, given))}", "approval"
    )


def title(tool: str, given: Mapping[str, object]) -> str:
    return one_line(f"Allow {summary(tool, given)}", 72)


def summary(tool: str, given: Mapping[str, object]) -> str:
    """Return the most important words of a call: the command, the file, the address."""
    for name in ("command", "file_path", "notebook_path", "url", "path"):
        text = clipped_text(given.get(name), MOST_SHOWN)
        if text:
            return f"{clipped_text(tool, 200)}: {text}"
    return clipped_text(tool, 200) or "a tool"


def exact(tool: str, given: Mapping[str, object]) -> str:
    """Return the whole call for a reader; texts of several lines are shown as they are, not as one line full of
    escapes.
    """
    lines = []
    for name, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        text = text.encode("utf-8", "replace").decode()
        lines.append(f"{name}:\n{indented(text)}" if "\n" in text else f"{name}: {text}")
    head = f"{clipped_text(tool, 200)}{' (it writes a file)' if tool in WRITERS else ''}"
    return "\n".join([head, *lines])


def indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))
