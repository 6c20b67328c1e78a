"""Text: commands of an agent: what it may not run, and what it may always do, as far as that can be told from the words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from .lines import could_be
from .lines.programs import GAP, Line, Words, read_line
from .lines.words import MOST_TEXT

# Options of git itself that take the next word along.
GIT_OPTIONS = frozenset(
    (
        "-C",
        "-c",
        "--git-dir",
        "--work-tree",
        "--namespace",
        "--exec-path",
        "--config-env",
        "--super-prefix",
        "--attr-source",
    )
)
GATE_OPTIONS = frozenset(("-C", "--color"))

# Outside of quotes a shell may make something else of these: a command, a file, a list of files, another word.
NOT_PLAIN = frozenset(";&|<>()$`*?[]{}^\\\n\r\0")
NOT_FIRST = frozenset("~#!=")
PLAIN = (
    r"""'(?P<single>[^'\0]*)'|"(?P<double>(?:[^"$`\\\0]|\\[^\n\0])*)"|(?P<bare>[^\s'"]+)|(?P<blank>[ \t]+)"""
)


def plain_words(text: str) -> Words:
    """Return the words of a line that is one command, from which a shell makes nothing but these words; empty where it
    may be more.

    This errs towards empty, unlike the rest of this module: a plain line may be allowed.
    """
    words: list[str] = []
    plain = re.compile(PLAIN)
    text, place, begun = text.strip(" \t\n"), 0, False
    while place < len(text):
        found = plain.match(text, place) if len(text) <= MOST_TEXT else None
        if found is None:
            return ()
        place, bare = found.end(), found["bare"] or ""
        if found["blank"] is not None:
            begun = False
            continue
        if not NOT_PLAIN.isdisjoint(bare) or (bare and not begun and bare[0] in NOT_FIRST):
            return ()
        part = found["single"] if found["single"] is not None else bare
        if found["double"] is not None:
            part = re.sub(r'\\(["\\$`])', r"\1", found["double"])
        if begun:
            words[-1] += part
        else:
            words.append(part)
        begun = True
    return tuple(words)


def gate_verb(words: Words) -> Words:
    """Return the verb of `git gate` that a command runs, with its arguments; empty when it runs none."""
    return next(gate_verbs(words), ())


def gate_verbs(words: Words) -> Iterator[Words]:
    """Return the verbs of `git gate`, with arguments, that a command may run whose words are partly unknown."""
    if not words:
        return
    program = words[0].casefold()
    if could_be("git-gate", program):
        yield skip_options(words[1:], GATE_OPTIONS)
    if could_be("git", program):
        rest = skip_options(words[1:], GIT_OPTIONS)
        if rest and could_be("gate", rest[0]):
            yield skip_options(rest[1:], GATE_OPTIONS)
    if re.match(r"python|pypy|py\Z", program):
        yield skip_options(module_of(words), GATE_OPTIONS)


def module_of(words: Words) -> Words:
    """Return the arguments of our own module, where Python is told to run that."""
    for place, word in enumerate(words[1:], 1):
        found = re.fullmatch(r"-[A-Za-z]*?m(.*)", word)
        if found:
            rest = (found[1], *words[place + 1 :]) if found[1] else words[place + 1 :]
            return rest[1:] if rest and could_be("gitgate", rest[0]) else ()
        if not word.startswith("-"):
            own = re.search(r"(?:^|/)(?:gitgate(?:/__main__\.py)?|git-gate)/?$", word)
            if own:
                return words[place + 1 :]
    return ()


def git_verb(words: Words) -> Words:
    """Return the verb of git that a command runs, with its arguments; empty when it runs none."""
    return skip_options(words[1:], GIT_OPTIONS) if words[:1] == ("git",) else ()


def skip_options(words: Words, with_value: frozenset[str]) -> Words:
    place = 0
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] in with_value else 1
    return words[place:]


# What people do. `edit` moves a deadline, at which a default may apply; `session` erases.
FOR_PEOPLE = frozenset(("respond", "signal", "join", "continue", "stop", "edit", "session", "fork"))
READS = frozenset(
    (
        "log",
        "show",
        "for-each-ref",
        "cat-file",
        "rev-parse",
        "ls-remote",
        "diff",
        "ls-tree",
        "rev-list",
        "show-ref",
    )
)
READERS = frozenset("ls cat head tail less more grep rg wc stat file find tree echo printf".split())
RECORDS = r"refs[/\\]+(?:hitl|gitgate)\b"
# Files of git's own folder that hold records, or say who may do what.
KEPT = r"(?:^|[/\\\s'\"=>])\.git[/\\](?:.*[/\\])?(?:refs[/\\](?:hitl|gitgate)\b|packed-refs$|gitgate\b|config$|hooks[/\\])"
# Of git's own folder, where its name is known only when a line runs.
KEPT_BELOW = r"[\ufdd0-\ufdd3](?:/.*)?/(?:refs/(?:hitl|gitgate)\b|packed-refs$|gitgate\b|config$|hooks/)"
ASKS_WHERE = r"--(?:absolute-)?git-(?:common-)?(?:dir|path)|GIT_(?:COMMON_)?DIR"
FOLDER = r"(?i)(?:^|[/\\])\.git[/\\]*$"
POWER = r"(?i)(?:gitgate|include|includeif)(?:\..*)?$|core\.hookspath$|alias\.gate"
ANSWERS = r"(?s)\bgate\b.*?\b(?:respond|signal|join|continue|stop|edit|session|fork)\b"
PYTHON = r"\bgitgate\s*\.\s*(?:respond|signal|stop|edit)\b|\bfrom\s+gitgate\b.*\bimport\b.*\b(?:respond|signal|stop)\b"
REDIRECTED = r">[>|]?\s*([^\s;&|<>]+)"
WRITERS = frozenset(("Write", "Edit", "MultiEdit", "NotebookEdit"))
ASK_INSTEAD = "Leave it to the person: ask with `git gate ask`, and read answers with `git gate check ID`."


def why_not_run(tool: str, given: Mapping[str, object], real: Callable[[str], str] = str) -> str:
    """Return why this call may not be made; empty when nothing forbids it. `real` follows links from its place."""
    if tool in ("Bash", "PowerShell"):
        command = given.get("command")
        return refused_command(command, real) if isinstance(command, str) else ""
    if tool in WRITERS:
        path = given.get("file_path") or given.get("notebook_path")
        if isinstance(path, str) and (is_kept(path) or is_kept(real(path))):
            return f"{path} belongs to git, and is not to be written by hand. {ASK_INSTEAD}"
    return ""


def is_kept(path: str) -> bool:
    """Return whether a path is one of git's own that agents may not touch; some systems ignore capital letters."""
    return re.search(KEPT, path, re.IGNORECASE) is not None


def refused_command(text: str, real: Callable[[str], str]) -> str:
    if re.search(PYTHON, text):
        return f"An agent does not answer or end gates. {ASK_INSTEAD}"
    line = read_line(text)
    found = next((reason for run in line.runs if (reason := refused_words(run.words, line))), "")
    if not found and (line.unclear or made_words(line)) and re.search(ANSWERS, line.crude):
        found = f"It cannot be seen what this line runs, and `git gate` may be it: write it plainly. {ASK_INSTEAD}"
    return found or refused_records(line, real)


def made_words(line: Line) -> bool:
    """Return whether a line determines only when it runs which verb git gets, or which script Python."""
    return any(GAP.search(word) for command in line.runs for word in first_words(command.words))


def first_words(words: Words) -> Words:
    if words and words[0].startswith("python"):
        return words[1:3]
    return git_verb(words)[:1]


def refused_words(words: Words, line: Line) -> str:
    for verb in gate_verbs(words):
        known = verb and (
            verb[0] in FOR_PEOPLE or (GAP.search(verb[0]) and ("gate" in words or "git-gate" in words))
        )
        if known and any(could_be(name, verb[0]) for name in FOR_PEOPLE):
            name = "respond" if GAP.search(verb[0]) else verb[0]
            return f"`git gate {name}` is for people; an agent does not answer, end or change gates. {ASK_INSTEAD}"
    if any("gate" in word for word in words if word.startswith("alias.")):
        return f"An alias for `git gate` would hide what it does. {ASK_INSTEAD}"
    git = git_verb(words)
    if git[:1] == ("config",) and sets_power(git[1:], line):
        return "Settings of git gate, of git's hooks, and of files that git includes grant power, and are a person's to change."
    return ""


READING = frozenset(
    (
        "get",
        "--get",
        "--get-all",
        "--get-regexp",
        "--get-urlmatch",
        "list",
        "--list",
        "-l",
        "get-all",
        "get-regexp",
    )
)
SETTING = frozenset(
    (
        "set",
        "unset",
        "--unset",
        "--add",
        "--replace-all",
        "--unset-all",
        "remove-section",
        "--remove-section",
        "rename-section",
        "--rename-section",
    )
)


def sets_power(words: Words, line: Line) -> bool:
    """Return whether `git config` with these words changes a setting that grants power."""
    if {"-e", "--edit", "edit"}.intersection(words[:3]):
        return True
    place = next((n for n, word in enumerate(words) if grants_power(word, line)), len(words))
    if place == len(words) or READING.intersection(words[:place]):
        return False
    return bool(SETTING.intersection(words[:place])) or place + 1 < len(words)


def grants_power(name: str, line: Line) -> bool:
    """Return whether this may be the name of a setting that grants power."""
    if GAP.sub("", name) == "" and name:
        return re.search(r"(?i)gitgate\.|hookspath|\binclude", line.crude) is not None
    if GAP.search(name):
        return any(
            could_be(wanted, name.casefold())
            for wanted in ("gitgate.*", "include.path", "includeif.*.path", "core.hookspath")
        )
    return re.match(POWER, name) is not None


GATES_ALONE = f"Gates are changed through `git gate` alone. {ASK_INSTEAD}"
MOST_PATHS = 200


def refused_records(line: Line, real: Callable[[str], str]) -> str:
    """Return why a command is refused: it names the records, or git's own files, and not just to read them."""
    asks_where = re.search(ASKS_WHERE, line.text) is not None
    inside = any(run.words[:1] in (("cd",), ("pushd",)) and is_folder(run.words[1:]) for run in line.runs)
    left = MOST_PATHS
    for run in line.runs:
        reads = reads_only(run.words)
        named = run.writes if reads else (*run.words, *run.writes)
        if inside and (run.writes or not (reads or run.words[:1] in (("cd",), ("pushd",)))):
            return GATES_ALONE
        if any(re.search(RECORDS, word) or is_kept(word) for word in named):
            return GATES_ALONE
        if asks_where and any(re.search(KEPT_BELOW, word) for word in named):
            return GATES_ALONE
        if run.words[:1] in (("ln",), ("mv",)) and any(re.search(FOLDER, word) for word in run.words[1:]):
            return GATES_ALONE
        paths = [word for word in named[:left] if word and not GAP.search(word) and not word.startswith("-")]
        left -= len(paths)
        if any(is_kept(real(path.partition("of=")[2] or path)) for path in paths):
            return GATES_ALONE
    return refused_text(line)


def is_folder(words: Words) -> bool:
    return any(re.search(r"(?i)(?:^|[/\\])\.git(?:[/\\]|$)", word) for word in words)


def reads_only(words: Words) -> bool:
    verb = git_verb(words)
    return not words or words[0] in READERS or bool(verb and verb[0] in READS)


def refused_text(line: Line) -> str:
    """Return why a line is refused that names records outside a command's words: on standard input, or in a script."""
    if re.search(RECORDS, line.text) and re.search(r"update-ref|\bpush\b|symbolic-ref", line.text):
        return GATES_ALONE
    if not line.unclear:
        return ""
    targets = re.findall(REDIRECTED, line.crude)
    return GATES_ALONE if any(re.search(RECORDS, target) or is_kept(target) for target in targets) else ""


def asks(text: str) -> bool:
    """Return whether a command asks through `git gate ask`, and exits before there is an answer."""
    for run in read_line(text).runs:
        verb = gate_verb(run.words)
        waits = any(word == "--wait" or word.startswith("--wait-for") for word in verb)
        if verb[:1] == ("ask",) and not waits and not {"-h", "--help"} & set(verb):
            return True
    return False


# What an agent may always do: ask, and hear the answer. With these options it would reach further than its own words.
ASKING = frozenset(("ask", "check", "wait"))
REACHES = ("--include", "--mcp-config", "--cwd", "-C")
FILES = frozenset(("--attach", "--file", "--schema"))
ONE_OUTPUT = r"[ \t]2>&1[ \t\n]*\Z"
TEXTS = frozenset(("--context", "--session-context", "--system-prompt"))


def plain_asking(text: str) -> Words:
    """Return the verb and arguments of a line that is one plain call of `git gate` to ask or to hear the answer; else
    empty.

    Nothing precedes it (a variable, another setting of git) and nothing follows. Redirecting both of its outputs to
    one place, as agents often do, changes nothing.
    """
    words = plain_words(re.sub(ONE_OUTPUT, "", text))
    rest = words[1:] if words[:1] == ("git-gate",) else words[2:] if words[:2] == ("git", "gate") else ()
    reaches = any(word.partition("=")[0] in REACHES or word.startswith("-C") for word in rest)
    return rest if rest and rest[0] in ASKING and not reaches else ()


def files_read(words: Words) -> list[str]:
    """Return the files whose content such a call would make part of a question."""
    found = []
    for word, after in zip(words, (*words[1:], ""), strict=True):
        flag, equals, value = word.partition("=")
        said = value if equals else after
        if flag in FILES:
            found.append(said)
        elif flag in TEXTS and said.startswith("@"):
            found.append(said[1:])
    return found
