"""Test bed: reads the package's source and says which line breaks a rule of the house.

Imports inside functions count like those at the top: late is about time, not about direction.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[3] / "gitgate"

# A longer function is two, or is on the list of tests/test_layers.py with its reason.
FUNCTION_LINES = 60

# Lowest first; an import points downward or stays in its room. `api` is what `import gitgate` offers.
ROOMS = (
    *("version", "errors", "text", "document", "model", "questions", "record", "config", "render"),
    *("store", "agents", "runners", "context", "policy", "gates", "exchange", "claims", "sharing", "acts"),
    *("setup", "resumption", "audit", "flows", "testing", "queue", "surfaces", "api", "cli"),
)
# No input or output, no clock, no identity of their own.
PURE = frozenset({"version", "errors", "text", "document", "model", "questions", "record"})
DOORS = {"__init__": "api", "__main__": "cli"}

STARTS = frozenset({"store", "agents", "runners"})
# A foreign module and the only rooms that may import it.
OWNERS = {
    "pygit2": frozenset({"store"}),
    "git": frozenset({"store"}),
    "gitdb": frozenset({"store"}),
    "yaml": frozenset({"document"}),
    "jsonschema_rs": frozenset({"questions"}),
    "markdown_it": frozenset({"surfaces"}),
    "click": frozenset({"cli"}),
    "celery": frozenset({"runners", "queue"}),
    "kombu": frozenset({"runners", "queue"}),
    "subprocess": STARTS,
    "multiprocessing": STARTS,
    "pty": STARTS,
}
IMPURE = frozenset(
    {
        "os",
        "io",
        "time",
        "random",
        "secrets",
        "uuid",
        "socket",
        "shutil",
        "tempfile",
        "glob",
        "asyncio",
        "threading",
    }
    | {"subprocess", "urllib.request", "http", "ctypes", "locale", "getpass", "platform"}
)
# They only reckon, from what they are given.
PURE_AFTER_ALL = ("time.gmtime", "time.strftime", "time.strptime")
CLOCK = (
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
)
FILES = ("open", "pathlib.Path.read_text", "pathlib.Path.cwd", "pathlib.Path.home")
PROCESS_CALLS = (
    "os.system",
    "os.popen",
    "os.fork",
    "os.exec",
    "os.spawn",
    "os.posix_spawn",
    "asyncio.create_subprocess",
)
BUILTINS = ("print", "input", "exit", "quit", "open")
TALK = (
    "print",
    "input",
    "exit",
    "quit",
    "SystemExit",
    "sys.exit",
    "sys.stdout",
    "sys.stderr",
    "sys.stdin",
    "os._exit",
)
ENVIRONMENT = (
    "os.environ",
    "os.getenv",
    "os.putenv",
    "os.path.expanduser",
    "os.path.expandvars",
    "pathlib.Path.home",
)


@dataclass(frozen=True)
class Module:
    """One file of the package, named from the package's folder: `store/git/objects.py`."""

    path: str
    source: str

    @property
    def parts(self) -> list[str]:
        """`store/git/objects.py` as ["store", "git", "objects"]; a package's `__init__` is the package itself."""
        names = self.path.removesuffix(".py").split("/")
        return names[:-1] if names[-1] == "__init__" and len(names) > 1 else names

    @property
    def room(self) -> str:
        first = self.path.split("/")[0].removesuffix(".py")
        return DOORS.get(first, first)

    @property
    def package(self) -> list[str]:
        """Where a relative import of this module starts from, under `gitgate`."""
        return self.path.split("/")[:-1]


@dataclass(frozen=True)
class Finding:
    """A broken rule."""

    path: str
    line: int
    rule: str
    what: str

    def __str__(self) -> str:
        return f"gitgate/{self.path}:{self.line}: {self.rule}: {self.what}"


def modules() -> list[Module]:
    """Every module of the package as it is on disk."""
    return [
        Module(place.relative_to(PACKAGE).as_posix(), place.read_text(encoding="utf-8"))
        for place in sorted(PACKAGE.rglob("*.py"))
    ]


@dataclass(frozen=True)
class Told:
    """What the rules ask of the syntax tree of a module.

    The tree itself is not kept: with those of all modules in memory, Python would look through them again and again.
    """

    findings: list[Finding]
    imports: list[tuple[int, list[str]]]
    classes: list[str]
    functions: list[str]
    long: list[tuple[str, int]]
    riddles: list[str]


@cache
def told_by(module: Module) -> Told:
    """Parsed and walked once for all the rules: each pass over the house takes a second."""
    tree = ast.parse(module.source)
    nodes = list(ast.walk(tree))
    imported = list(imports(module, nodes))
    return Told(
        sorted(wrong_lines(module, nodes, imported), key=lambda finding: finding.line),
        imported,
        [node.name for node in nodes if isinstance(node, ast.ClassDef)],
        [node.name for node in tree.body if isinstance(node, ast.FunctionDef)],
        long_functions(nodes),
        riddles(nodes),
    )


def findings(module: Module) -> list[Finding]:
    """Everything in `module` that breaks a rule, in the order of its lines."""
    return told_by(module).findings


def wrong_lines(
    module: Module, nodes: Sequence[ast.AST], imported: Iterable[tuple[int, list[str]]]
) -> Iterator[Finding]:
    if module.room not in ROOMS:
        yield Finding(module.path, 1, "room", f"{module.room} is no room of the house")
        return
    for line, names in imported:
        for name in names:
            if rule := wrong_import(module, name):
                yield Finding(module.path, line, rule, name)
    yield from wrong_names(module, nodes)


# A docstring begins with a verb that says what is done, or with a noun. One that begins so is understood only by who knows the code.
RIDDLES = r"(?:What|Whether|Whose|Who|Whom|Whoever|Whatever|Where|Which|The same|As above|So too|Nor|That)\b"


def riddles(nodes: Iterable[ast.AST]) -> list[str]:
    """Return each function and class whose docstring begins as a riddle."""
    return [
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and re.match(RIDDLES, ast.get_docstring(node) or "")
    ]


def long_functions(nodes: Iterable[ast.AST]) -> list[tuple[str, int]]:
    """Every function that is longer than about `FUNCTION_LINES`, without its docstring and its signature."""
    found = []
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            lines = (body[-1].end_lineno or 0) - body[0].lineno + 1
            if lines > FUNCTION_LINES * 1.1:
                found.append((node.name, lines))
    return found


def wrong_import(module: Module, name: str) -> str:
    """The rule that importing `name` from `module` breaks, or nothing."""
    parts = name.split(".")
    if parts[0] == "gitgate":
        return wrong_direction(module, parts[1:])
    if module.room not in OWNERS.get(parts[0], frozenset({module.room})):
        return "owner"
    pure = module.room in PURE and name not in PURE_AFTER_ALL
    return "pure" if pure and not IMPURE.isdisjoint((parts[0], ".".join(parts[:2]))) else ""


def wrong_direction(module: Module, target: list[str]) -> str:
    room = DOORS.get(target[0], target[0]) if target else "api"
    if room not in ROOMS:
        room = "api"  # A name that `gitgate/__init__.py` offers.
    if ROOMS.index(room) > ROOMS.index(module.room):
        return "direction"
    stranger = room == "surfaces" == module.room and target[1:2] != module.parts[1:2] and len(target) > 1
    return "neighbour" if stranger else ""


def imports(module: Module, nodes: Iterable[ast.AST]) -> Iterator[tuple[int, list[str]]]:
    """Each import with its line and the full names that it may load."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield node.lineno, [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, from_names(module, node)
        elif isinstance(node, ast.Call):
            name = imported_by_call(node)
            if name:
                yield node.lineno, [name]


def from_names(module: Module, node: ast.ImportFrom) -> list[str]:
    """`from ..core import states` may load a module or take a name; both are judged by the longer path."""
    origin = node.module.split(".") if node.module else []
    if node.level:
        package = module.package
        origin = ["gitgate", *package[: len(package) - node.level + 1], *origin]
    return [".".join([*origin, alias.name]) for alias in node.names]


def imported_by_call(node: ast.Call) -> str:
    """`importlib.import_module("x")` and `__import__("x")` with a literal name."""
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    literal = node.args[0] if node.args else None
    if called in ("import_module", "__import__") and isinstance(literal, ast.Constant):
        return str(literal.value)
    return ""


def circles(house: Iterable[Module]) -> list[list[str]]:
    """Modules that import one another, each circle once. Imports inside functions and for types count like any other."""
    known = {".".join(["gitgate", *module.parts]): module for module in house}
    known["gitgate"] = next((module for module in house if module.path == "__init__.py"), Module("", ""))
    graph = {name: opened_by(module, known) - {name} for name, module in known.items()}
    # What nothing imports, or imports nothing, is in no circle: taken away until nothing more goes.
    while loose := [
        name for name in graph if not graph[name] or not any(name in to for to in graph.values())
    ]:
        graph = {name: to - set(loose) for name, to in graph.items() if name not in loose}
    left, found = set(graph), []
    while left:
        start = min(left)
        circle = reached(graph, start) & {name for name in graph if start in reached(graph, name)}
        left -= circle | {start}
        if len(circle) > 1:
            found.append(sorted(circle))
    return found


def opened_by(module: Module, known: Mapping[str, Module]) -> set[str]:
    """The modules of the house that this one imports; a name that is taken from one counts as the module."""
    named = {name for _, names in told_by(module).imports for name in names}
    return {name if name in known else name.rpartition(".")[0] for name in named} & set(known)


def reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """Where its imports lead, however far."""
    found: set[str] = set()
    ways = {start}
    while ways:
        found |= (step := set().union(*(graph[name] for name in ways)) - found)
        ways = step
    return found


def wrong_names(module: Module, nodes: Sequence[ast.AST]) -> Iterator[Finding]:
    known = aliases(nodes)
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        if isinstance(node, ast.Attribute | ast.Name):
            if isinstance(node, ast.Name) and node.id in BUILTINS and id(node) not in called:
                continue  # A parameter called `input` is no talk; calling it is.
            rule = wrong_name(module.room, full_name(node, known))
            if rule:
                yield Finding(module.path, node.lineno, rule, ast.unparse(node))


def wrong_name(room: str, name: str) -> str:
    """The rule that using `name` in `room` breaks, or nothing."""
    if room not in STARTS and name.startswith(PROCESS_CALLS):
        return "process"
    if room != "cli" and name in TALK:
        return "talk"
    if room != "config" and name in ENVIRONMENT:
        return "environment"
    return "pure" if room in PURE and name in (*CLOCK, *FILES) else ""


def aliases(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """What each imported name stands for: `from os import environ as e` gives e: os.environ."""
    known: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            known |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return known


def full_name(node: ast.Attribute | ast.Name, known: dict[str, str]) -> str:
    """A dotted name with its first part as it was imported; nothing for what is no plain name."""
    if isinstance(node, ast.Name):
        return known.get(node.id, node.id)
    if isinstance(node.value, ast.Attribute | ast.Name):
        owner = full_name(node.value, known)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


# What calls what, for the page that tells the life of a command.


def named_in(house: Iterable[Module]) -> dict[str, ast.AST]:
    """Everything that has a name at the top of a module or of a class: `acts.asking.ask`, `resumption.pool.Pool.act`."""
    found: dict[str, ast.AST] = {}
    for module in house:
        for above, node in tops(".".join(module.parts).removeprefix("__init__"), ast.parse(module.source)):
            for name in names_of(node):
                found[f"{above}.{name}".lstrip(".")] = node
    return found


def tops(name: str, tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    for node in tree.body:
        yield name, node
        if isinstance(node, ast.ClassDef):
            yield from ((f"{name}.{node.name}", inner) for inner in node.body)


def names_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    return [target.id for target in targets if isinstance(target, ast.Name)]


def uses(module: Module, node: ast.AST) -> dict[str, list[int]]:
    """What a function calls or hands on, with the lines where it does: `acts.asking.ask`; a method as `.drain`."""
    origins = {**origins_of(module), **origins_in(module, node)}
    here = ".".join(module.parts)
    found: dict[str, list[int]] = {}
    for use in ast.walk(node):
        name = ""
        if isinstance(use, ast.Name):
            name = origins.get(use.id, f"{here}.{use.id}")
        elif isinstance(use, ast.Attribute):
            name = origins.get(use.value.id, "") if isinstance(use.value, ast.Name) else ""
            name = f"{name}.{use.attr}"
        if name:
            found.setdefault(name, []).append(getattr(use, "lineno", 0))
    return found


@cache
def origins_of(module: Module) -> dict[str, str]:
    return origins_in(module, ast.parse(module.source))


def origins_in(module: Module, tree: ast.AST) -> dict[str, str]:
    """What each name that is imported from the package stands for, without `gitgate.`."""
    return {
        alias.asname or alias.name: name.removeprefix("gitgate.")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level
        for alias, name in zip(node.names, from_names(module, node), strict=True)
    }
