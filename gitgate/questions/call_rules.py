"""Questions: the rules on which calls of an agent wait for a person, as a file of a project has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ..document import Field, Plain, dataclass, duration, near, replace, text_or_empty, texts
from ..errors import BadDocument
from ..model import ON_TIMEOUT, PRIORITIES
from ..text import one_line
from ..text.patterns import of_text

SECTION = "approvals"
FIELDS = ("call", "why", "to", "quorum", "priority", "timeout", "on_timeout")
ALLOW = "allow"
ALLOW_FIELDS = (ALLOW, "why")
# Up to the program, behind assignments, it is said in full.
SAYS_PROGRAM = re.compile(r"(?:\w+=[^\s*?]*\s+)*(?!\w+=)[^\s*?]+(?!\S)")
CALL = re.compile(r"([A-Za-z_*?][\w*?-]*)(?:\((.*)\))?", re.DOTALL)
# A rule for one of these is a rule for all of them: each writes a file.
WRITERS = ("Write", "Edit", "MultiEdit", "NotebookEdit")
SHELLS = ("Bash", "PowerShell")
# Of Claude Code, under today's and earlier names. `mcp__…` are whatever servers offer.
TOOLS = (
    *WRITERS, *SHELLS, "Read", "Glob", "Grep", "LS", "NotebookRead", "WebFetch", "WebSearch", "Task", "Agent", "Skill",
    "SlashCommand", "BashOutput", "KillShell", "KillBash", "TodoRead", "TodoWrite", "TaskCreate", "TaskGet", "TaskList", "TaskOutput",
    "TaskStop", "TaskUpdate", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "EnterWorktree", "ExitWorktree", "LSP", "Monitor",
    "CronCreate", "CronDelete", "CronList", "SendMessage", "ToolSearch", "ListMcpResourcesTool", "ReadMcpResourceTool",
)  # fmt: skip


@dataclass(frozen=True)
class RuleSource:
    """Source of a rule: the file in words, and its commit. `counts` says that the rule counts with all its terms; of a
    rule in a working tree, which an agent can write, only the call does.
    """

    file: str = ""
    commit: str = ""
    counts: bool = True

    @property
    def words(self) -> str:
        return f"{self.file}{f' ({self.commit[:10]})' if self.commit else ''}"


@dataclass(frozen=True)
class CallRule:
    """Rule on calls: a tool's name, and what its call is about, where that matters; both may hold `*`."""

    text: str
    tool: str
    about: str | None = None
    why: str = ""
    to: tuple[str, ...] = ()
    quorum: int = 1
    priority: str | None = None
    timeout: int | None = None
    on_timeout: str | None = None
    line: int = 0
    source: RuleSource = RuleSource()


@dataclass(frozen=True)
class Allowance:
    """Allowance of commands, as written and with `*`: harmless, although only the environment names their program."""

    text: str
    pattern: str
    why: str = ""
    line: int = 0
    source: RuleSource = RuleSource()


def parse_rules(root: Field, source: RuleSource = RuleSource()) -> tuple[CallRule, ...]:
    """Return all rules of a file that counts; raise BadDocument where an entry may be one and cannot be read."""
    refuse_misnamed(root)
    listed = root.get(SECTION)
    if listed is None:
        return ()
    return tuple(parse_rule(item, source) for item in listed.items() if not is_allowance(item))


def parse_allowances(root: Field, source: RuleSource = RuleSource()) -> tuple[Allowance, ...]:
    """Return what a file that counts allows, or raise BadDocument where an entry cannot be read."""
    listed = root.get(SECTION)
    items = listed.items() if listed is not None else ()
    return tuple(one for item in items if is_allowance(item) for one in parse_allowance(item, source))


def is_allowance(item: Field) -> bool:
    return isinstance(item.value, dict) and ALLOW in item.value


def parse_allowance(item: Field, source: RuleSource) -> Iterator[Allowance]:
    """Read one entry, of one pattern or a list of them."""
    for name, field in item.mapping().items():
        if name not in ALLOW_FIELDS:
            field.fail(
                f"there is no such field beside {ALLOW}{near(name, ALLOW_FIELDS)}; there are {', '.join(ALLOW_FIELDS)}"
            )
    given, why = item.need(ALLOW), text_or_empty(item, "why")
    for field in given.items() if isinstance(given.value, list) else (given,):
        rule = with_call(field, source)
        if rule.tool.casefold() != "bash" or not rule.about or not SAYS_PROGRAM.match(rule.about):
            field.fail(ALLOW_HOW)
        yield Allowance(rule.text, rule.about, why, rule.line, source)


# One that begins with a wildcard would allow whatever an agent writes.
ALLOW_HOW = """expected a line of Bash that says its program in full, without `*` and `?`, as it is written, such as `Bash("$CC" *)`"""


def refuse_misnamed(root: Field) -> None:
    """Refuse a field that may be meant for the rules: a near miss of its name, or rules below another field."""
    others = {name: field for name, field in root.mapping().items() if name != SECTION}
    below = [
        (name, field)
        for other in others.values()
        if isinstance(other.value, dict)
        for name, field in other.value.items()
        if isinstance(field.value, list)
    ]
    if len(others) + len(below) > MOST_FIELDS:
        root.fail(f"expected at most {MOST_FIELDS:,} fields and lists below them; found more")
    for name, field in others.items():
        if is_near(name):
            field.fail(f"nobody reads a field of that name; call it {SECTION}")
    for name, field in below:
        if is_near(name):
            field.fail(
                f"rules are not read here; {SECTION} stands at the top of the file, without a space before it"
            )


MOST_FIELDS = 1000
MOST_NAME = 100
MOST_SLIPS = 3  # as many as lead from `approve` to `approvals`


def is_near(name: str) -> bool:
    """Return whether a field may be meant for the rules: its name is a few typing errors away from theirs.

    A letter that is not ASCII may look like any of theirs, so it counts as no error.
    """
    from unicodedata import normalize

    letters = "".join(one for one in normalize("NFKC", name[:MOST_NAME]).casefold() if one.isalnum())
    return abs(len(letters) - len(SECTION)) <= MOST_SLIPS and slips(letters, SECTION) <= MOST_SLIPS


def slips(word: str, meant: str) -> int:
    """Return how many letters to add, leave out, change or swap with the next turn one word into the other."""
    before: list[int] = []
    row = list(range(len(meant) + 1))
    for at, letter in enumerate(word, 1):
        older, before, row = before, row, [at]
        for place, wanted in enumerate(meant, 1):
            changed = before[place - 1] + (letter != wanted and letter.isascii())
            least = min(before[place] + 1, row[-1] + 1, changed)
            if at > 1 and place > 1 and letter == meant[place - 2] and word[at - 2] == wanted:
                least = min(least, older[place - 2] + 1)
            row.append(least)
    return row[-1]


@dataclass(frozen=True)
class TreeRules:
    """Rules and allowances in a file of a working tree, and in words the parts of it that cannot be read."""

    rules: tuple[CallRule, ...] = ()
    allowances: tuple[Allowance, ...] = ()
    unread: tuple[str, ...] = ()


def parse_tree_rules(root: Field, source: RuleSource, known: Sequence[Plain] = ()) -> TreeRules:
    """Return the rules and allowances of a working tree's file that are not `known`: their calls and reasons."""
    rules: list[CallRule] = []
    allowances: list[Allowance] = []
    unread: list[str] = []
    try:
        refuse_misnamed(root)
    except BadDocument as wrong:
        unread.append(wrong.message)
    listed = root.get(SECTION)
    for item in listed.value if listed is not None and isinstance(listed.value, list) else ():
        if item.plain() in known:
            continue
        try:
            if is_allowance(item):
                allowances += tuple(map(shortened, parse_allowance(item, source)))
            else:
                rules.append(parse_tree_rule(item, source))
        except BadDocument as wrong:
            unread.append(wrong.message)
    if listed is not None and not isinstance(listed.value, list):
        unread.append(f"{field_place(listed)}: expected a list (lines that begin with `- `)")
    return TreeRules(tuple(rules), tuple(allowances), tuple(unread))


MOST_TREE_WORDS = 200


def parse_tree_rule(item: Field, source: RuleSource) -> CallRule:
    """Read one rule: of all that it says the call, and why."""
    rule = with_call(item if isinstance(item.value, str) else item.need("call"), source)
    why = "" if isinstance(item.value, str) else text_or_empty(item, "why")
    text = one_line(rule.text, MOST_TREE_WORDS)
    return replace(rule, text=text, why=one_line(why, MOST_TREE_WORDS))


def shortened(one: Allowance) -> Allowance:
    return replace(one, text=one_line(one.text, MOST_TREE_WORDS), why=one_line(one.why, MOST_TREE_WORDS))


def field_place(field: Field) -> str:
    return f"{one_line(field.source)}, line {field.line}: {field.path}"


def parse_rule(item: Field, source: RuleSource = RuleSource()) -> CallRule:
    if isinstance(item.value, str):
        return with_call(item, source)
    for name, field in item.mapping().items():
        if name not in FIELDS:
            field.fail(
                f"there is no such field in a rule{near(name, (*FIELDS, ALLOW))}; there are {', '.join(FIELDS)}"
            )
    rule = with_call(item.need("call"), source)
    quorum, timeout, priority, on_timeout = (
        item.get(n) for n in ("quorum", "timeout", "priority", "on_timeout")
    )
    return replace(
        rule,
        why=text_or_empty(item, "why"),
        to=texts(item, "to"),
        quorum=quorum.integer(1, 100) if quorum else 1,
        priority=priority.one_of(PRIORITIES) if priority else None,
        timeout=duration(timeout) if timeout else None,
        on_timeout=on_timeout.one_of(ON_TIMEOUT) if on_timeout else None,
    )


def with_call(field: Field, source: RuleSource = RuleSource()) -> CallRule:
    text = field.text(most=1000).strip()
    found = CALL.fullmatch(text)
    if found is None:
        field.fail("expected a tool, such as `Bash(terraform apply*)`, `Write(migrations/**)` or `mcp__*`")
    about = found[2].strip() if found[2] is not None else None
    wanted = None if about in (None, "", "*", "**") else about
    return CallRule(text, found[1], wanted, line=field.line, source=source)


def strange_tools(rules: Iterable[CallRule]) -> list[tuple[str, bool]]:
    """Return in words each rule about a tool that is not known, and whether a known one was probably meant.

    It is a rule all the same: another program's tool may have any name.
    """
    found = []
    for rule in rules:
        if rule.tool.startswith("mcp__") or any(names_tool(rule, tool) for tool in (*TOOLS, "mcp__x__y")):
            continue
        meant = near(rule.tool, TOOLS)
        words = f"line {rule.line}: {one_line(rule.text)}: no tool is known that is called {one_line(rule.tool)}{meant}"
        found.append((words, bool(meant)))
    return found


def names_tool(rule: CallRule, tool: str) -> bool:
    """Return whether a rule is about a tool of this name; capital letters make no difference."""
    return of_text(rule.tool.casefold()).fullmatch(tool.casefold()) is not None
