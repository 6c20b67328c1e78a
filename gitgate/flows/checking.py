"""Flows: a run as others see it: as whoever watches it does, and held against the code as it is now. Nothing is done here."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .. import config
from ..audit.bundle import bundle_of
from ..claims.attending import hear_remote
from ..context import Desk, open_desk
from ..context.targets import remote_of
from ..errors import Failure, GateError, Usage
from ..gates import runs_here
from ..model import AWAITING
from ..model.gate import Gate
from ..record.runs import Run, RunEntry, RunEvent
from ..render.runs import run_details, run_trail
from ..store.git import Git
from ..store.git.refs import RUNS
from .children import desk_of_run, recorded_run, replayed
from .endings import Diverged, FlowEnds
from .engine import Engine
from .journal import HeldRun, find_run, journals, load_run
from .program import FlowFunction, load_flow
from .steps import shown_labels

# A run as whoever watches it sees it: its journal as it grows, and what its agents and people said.
# Read-only.
#
# `agent:completed`, `input:requested` and `input:received` hold what a program's own `on` is told of
# phases.


POLL = 0.5
FETCH_EVERY = 10.0
TO_PROGRAMS = ("agent:completed", "input:requested")
"""What the journal's own lines say already, to people."""
Json = dict[str, Any]


@dataclass
class RunWatch:
    """Watch of one run until it is over. `waited`: called when what the run waits for has come, once for each wait."""

    desk: Desk
    run: str
    waited: Callable[[Run], None] | None = None
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    asked: dict[str, bool] = field(default_factory=dict)
    """Each gate that the run asked, and whether its end was told."""
    told: dict[str, int] = field(default_factory=dict)
    """Of each run, how many of its events were told."""
    called_at: str = ""

    def events(self, seconds: float | None = None) -> Iterator[Json]:
        """Yield each event of the run from its first one on, and those of the runs that it has called."""
        start = self.monotonic()
        remote, heard = remote_of(self.desk), start
        while True:
            run = load_run(self.desk, self.run)
            for one, event, line in self.news(run):
                yield line
                yield from self.more(one, event, line)
            yield from self.received()
            if run.closed or (seconds is not None and self.monotonic() - start >= seconds):
                return
            self.call(run)
            if remote is not None and self.monotonic() - heard >= FETCH_EVERY:
                hear_remote(self.desk, remote)
                heard = self.monotonic()
            self.sleep(POLL)

    def news(self, run: Run) -> list[tuple[Run, RunEvent, Json]]:
        """Return the events of the run and of the runs below it that were not returned before, in the order of time."""
        found: list[tuple[Run, RunEvent, Json]] = []
        for one in with_children(self.desk, run):
            count, trail = self.told.get(one.id, 0), list(reversed(run_trail(one)))
            new = zip(one.events[count:], trail[count:], strict=True)
            found += [(one, entry.event, line) for entry, line in new]
            self.told[one.id] = len(one.events)
        return sorted(found, key=lambda each: each[1].at)

    def more(self, run: Run, event: RunEvent, line: Json) -> Iterator[Json]:
        """Yield what an event of the journal means to programs: a question that was asked, or an agent that ended."""
        step = run.steps.get(event.text("step"))
        if event.name == "asked":
            self.asked.setdefault(event.text("gate"), False)
            gate = self.gate(event.text("gate"))
            if gate is not None:
                yield {**line, **requested(gate)}
        elif event.name in ("done", "raised") and step is not None and step.begun.text("agent"):
            said = {"output": event.said.get("result"), "error": event.said.get("error")}
            yield {**line, "event": "agent:completed", "by": None, "agent": step.begun.text("agent"), **said}

    def received(self) -> Iterator[Json]:
        """Yield the gates that were decided since the last look."""
        for name in [name for name, told in self.asked.items() if not told]:
            gate = self.gate(name)
            if gate is not None and gate.state != AWAITING:
                self.asked[name] = True
                yield {**said_of(gate), "run": gate.opened.run or self.run, "commit": gate.tip}

    def gate(self, name: str) -> Gate | None:
        from ..acts import find_gate

        try:
            return find_gate(self.desk, name).gate
        except GateError:
            return None  # it is at the remote alone so far

    def call(self, run: Run) -> None:
        """Call `waited` when what the run waits for has come, once for each wait."""
        over = any(self.asked.get(gate) for gate in run.waits_for) or "" < run.wakes <= self.desk.now
        if self.waited is not None and over and self.called_at != run.tip:
            self.called_at = run.tip
            self.waited(run)


def asked_at(desk: Desk, gates: Sequence[str]) -> dict[str, tuple[str, bool]]:
    """Return, for each of these gates, its title and whether it is decided.

    A gate that cannot be loaded has its id for a title, and counts as undecided.
    """
    from ..acts import find_gate

    found = {}
    for gate in gates:
        try:
            loaded = find_gate(desk, gate).gate
            found[gate] = loaded.opened.title, loaded.state != AWAITING
        except GateError:
            found[gate] = gate, False
    return found


def details_of(desk: Desk, run: Run) -> dict[str, object]:
    """Return a run with its input and its steps, as JSON has it."""
    archived = desk.refs.get(RUNS + run.id) is None
    return {**run_details(run, asked_at(desk, run.waits_for)), "archived": archived}


def requested(gate: Gate) -> Json:
    asked = gate.opened.questions[0]
    said: Json = {"event": "input:requested", "id": gate.id, "prompt": asked.prompt, "type": asked.kind}
    return said if asked.kind == "approval" else {**said, "options": shown_labels(asked)}


def said_of(gate: Gate) -> Json:
    """Return the `input:received` line of a gate. `approved` is true only where somebody said yes."""
    answer = gate.answer.answer if gate.answer is not None else None
    value = answer.values.get(gate.opened.questions[0].key) if answer is not None else None
    word = ("yes" if value else "no") if isinstance(value, bool) else value
    return {
        "gate": gate.id,
        "event": "input:received",
        "id": gate.id,
        "at": answer.at if answer is not None else str(getattr(gate.history[-1].event, "at", "")),
        "by": (answer.by or None) if answer is not None else None,
        "value": word,
        "approved": answer is not None and answer.verdict == "approved",
        "state": gate.state,
        "text": "" if word is None else str(word),
    }


# Recorded runs against the code as it is now, and code that a replay cannot repeat.
#
# A recorded run is replayed without doing anything: what it did is compared with what the code wants. Its
# history is exported as a Git bundle: the journal, and the gates that its steps asked. `lint` reads a
# file's syntax alone; nothing of it is run.


EXPORT = "refs/gitgate/+export/"
BY_EXPORT = """python -c 'import gitgate.testing; gitgate.testing.export("RUN", "FILE.bundle")'"""
BUNDLE = ".bundle"


class RecordEnds(FlowEnds):
    """End of the record in a replay: the code did until there what is recorded."""


@dataclass
class RecordedRun(HeldRun):
    """Journal that is read and not written: nothing is done, and nobody is asked."""

    recorded = True

    def append(self, name: str, /, **said: Any) -> RunEntry:
        if name == "noted":  # as that an input has changed: the code goes on, and so does the comparison
            return self.run.events[-1]
        raise RecordEnds(f"{name} {said.get('step', '')} is not recorded")

    def leave(self, name: str, /, *, still: Callable[[], bool] | None = None, **_said: Any) -> Run:  # noqa: ARG002
        raise RecordEnds(f"{name} is not recorded")

    def share(self) -> None:
        raise RecordEnds("the last step is not done")


@dataclass(frozen=True)
class ReplayedRun:
    """Result of replaying a recorded run with the present code.

    `status`: `same` (as far as the run is recorded) or `diverged`. `value`: the result of the run, if it is over.
    """

    run: str
    status: str
    reason: str = ""
    value: Any = None

    @property
    def same(self) -> bool:
        return self.status == "same"


def replay(
    flow: FlowFunction[..., Any], run: str | Path, *, directory: str | Path | None = None
) -> ReplayedRun:
    """Replay a recorded run against the flow's code as it is now. Nothing is done and nothing is written.

    `run` is the id of a run in this repository, or a file that `export` has written.

    >>> assert gitgate.testing.replay(feature, "7k2f").same
    >>> assert gitgate.testing.replay(feature, "tests/histories/feature.bundle").same
    """
    place = Path.cwd() if directory is None else Path(directory).absolute()
    if str(run).endswith(BUNDLE):
        with unbundled(place / run) as desk:
            return replay_run(desk, flow, found_in(desk, place / run))
    desk = open_desk(place, config.environment(), bulk=True)
    try:
        return replay_run(desk, flow, find_run(desk, str(run)))
    finally:
        desk.close()


def replay_run(desk: Desk, flow: FlowFunction[..., Any], recorded: Run) -> ReplayedRun:
    desk = desk_of_run(desk, recorded.id)
    unheld: Any = None
    engine = Engine(RecordedRun(desk, recorded, unheld), desk, flow.terms)
    given = recorded.started.said["given"]
    return compared(engine, recorded, lambda: flow.call(given))


def compared(engine: Engine, recorded: Run, call: Callable[[], Any]) -> ReplayedRun:
    run, value = recorded.id, None
    try:
        with suppress(RecordEnds):
            value = replayed(engine, call)
    except Diverged as other:
        return ReplayedRun(run, "diverged", other.message)
    except FlowEnds as ends:
        return as_recorded(recorded, "stuck", ends.message)
    except Exception as failed:  # noqa: BLE001 - whatever the flow raises
        return as_recorded(recorded, "failed", str(failed))
    if isinstance(engine.broken, Diverged):
        return ReplayedRun(run, "diverged", engine.broken.message)
    was = recorded.end.said.get("result") if recorded.end is not None else value
    if recorded.state == "completed" and was != value:
        return ReplayedRun(run, "diverged", f"it gave {was!r}, and gives {value!r} now", value)
    return ReplayedRun(run, "same", value=value)


def as_recorded(recorded: Run, state: str, reason: str) -> ReplayedRun:
    """Return the result for a replay that did not end well: `same` if the recorded run ended in that state too."""
    if recorded.state == state:
        return ReplayedRun(recorded.id, "same", reason)
    return ReplayedRun(recorded.id, "diverged", f"it was {recorded.state}, and is {state} now: {reason}")


# histories


def export(run: str, file: str | Path, *, directory: str | Path | None = None) -> Path:
    """Write a run's history to a file whose name ends with `.bundle`, for `replay` and `git gate run --check` elsewhere.

    >>> gitgate.testing.export("7k2f", "tests/histories/feature.bundle")
    """
    place = Path.cwd() if directory is None else Path(directory).absolute()
    desk = open_desk(place, config.environment(), bulk=True)
    try:
        return export_run(desk, find_run(desk, run), place / file)
    finally:
        desk.close()


def export_run(desk: Desk, run: Run, file: Path) -> Path:
    if file.suffix != BUNDLE:
        raise Usage(f"{file.name}: expected a name that ends with {BUNDLE}", hint=f"run-{run.id[:6]}{BUNDLE}")
    tips: dict[str, str] = {}
    for one in with_children(desk, run):
        tips |= {RUNS + one.id: one.tip} | {
            f"{EXPORT}{gate}": tip for gate, tip in recorded_gates(one).items()
        }
    file.write_bytes(
        bundle_of(desk, {EXPORT + ref.replace("/", "-"): tip for ref, tip in sorted(tips.items())})
    )
    return file


def with_children(desk: Desk, run: Run) -> Iterator[Run]:
    """Return the run, the runs that its steps are, and those in which one of them started afresh; each once."""
    seen, waiting = {run.id}, [run]
    while waiting:
        one = waiting.pop()
        yield one
        following = one.end.text("next") if one.end is not None and one.called_by[0] else ""
        for child in dict.fromkeys([*one.children, *([following] if following else [])]):
            found = recorded_run(desk, child) if child not in seen else None
            if found is not None:
                seen.add(child)
                waiting.append(found)


def recorded_gates(run: Run) -> dict[str, str]:
    """Return the gates of the run's steps, each as a step recorded it."""
    results = [step.ended.said.get("result") for step in run.steps.values() if step.ended is not None]
    found = [one for one in results if isinstance(one, dict) and {"gate", "tip"} <= one.keys()]
    return {f"{one['gate']}-{one['tip'][:12]}": str(one["tip"]) for one in found}


class unbundled:  # noqa: N801  read as a statement: `with unbundled(file) as desk`
    """Open a temporary repository with the content of a bundle, and delete it afterwards."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __enter__(self) -> Desk:
        if not self.file.is_file():
            raise Usage(f"there is no file {self.file}", hint=BY_EXPORT)
        self.room = TemporaryDirectory(prefix="gitgate-history-")
        env, place = config.environment(), Path(self.room.name) / "it"
        try:
            Git(Path(self.room.name), env).run("init", "-q", str(place))
            Git(place, env).run("fetch", "-q", "--no-tags", str(self.file), f"{EXPORT}*:{EXPORT}*")
            self.desk = open_desk(place, env, bulk=True)
        except GateError as unread:
            self.room.cleanup()
            raise Failure(
                f"{self.file.name} is no history of a run: {unread.message}",
                hint=BY_EXPORT,
            ) from unread
        return self.desk

    def __exit__(self, *_: object) -> None:
        self.desk.close()
        self.room.cleanup()


def found_in(desk: Desk, file: Path) -> Run:
    prefix = EXPORT + RUNS.replace("/", "-")
    refs = desk.refs.under(EXPORT)
    for ref, tip in refs.items():
        run = journals(desk).load(ref.removeprefix(prefix), tip) if ref.startswith(prefix) else None
        if run is not None and not run.called_by[0]:
            return run
    raise Failure(f"{file.name} holds no run", hint=BY_EXPORT)


def check_file(desk: Desk, file: Path, name: str = "", *, ended: bool = False) -> list[ReplayedRun]:
    """Replay this repository's runs of a flow's file with the code that the file has now.

    Without `ended` only runs that are not over. `name`: only runs of that flow.
    """
    top = desk.repo.top
    path = file.resolve().relative_to(top.resolve()).as_posix() if top is not None else file.name
    found = []
    for said in runs_here(desk):
        if said.get("Parent"):
            continue  # it is compared with the run that has called it
        if (said.get("Closed") and not ended) or (name and said.get("Flow") != name):
            continue
        run = find_run(desk, said["Run"])
        if run.started.text("file") == path:
            found.append(check_run(desk, file, run))
    return found


def check_history(file: Path, history: Path) -> ReplayedRun:
    """Replay an exported history with the code that the file has now."""
    with unbundled(history) as desk:
        return check_run(desk, file, found_in(desk, history))


def check_run(desk: Desk, file: Path, run: Run) -> ReplayedRun:
    try:
        return replay_run(desk, load_flow(file, run.flow), run)
    except Usage as gone:
        return ReplayedRun(run.id, "diverged", gone.message)


# what a replay cannot repeat

CLOCK, CHANCE, OUTSIDE = "a clock", "chance", "the outside world"
KINDS: dict[str, str] = {
    **dict.fromkeys(("time", "datetime.datetime.now", "datetime.datetime.utcnow"), CLOCK),
    **dict.fromkeys(("datetime.datetime.today", "datetime.date.today"), CLOCK),
    **dict.fromkeys(("random", "secrets", "uuid.uuid1", "uuid.uuid4", "os.urandom", "numpy.random"), CHANCE),
    **dict.fromkeys(("open", "input", "print", "os", "io.open", "subprocess", "shutil", "socket"), OUTSIDE),
    **dict.fromkeys(("requests", "httpx", "aiohttp", "urllib.request", "sqlite3", "tempfile"), OUTSIDE),
}
HARMLESS = ("os.path.join", "os.path.basename", "os.path.dirname", "os.path.splitext", "os.fspath")
BUILTINS = ("open", "input", "print")
METHODS = ("read_text", "write_text", "read_bytes", "write_bytes", "unlink", "mkdir", "touch", "iterdir")
INSTEAD = {
    CLOCK: "gitgate.now(), gitgate.sleep(…)",
    CHANCE: "gitgate.random(), gitgate.uuid()",
    OUTSIDE: "gitgate.step(function, …); words for a reader: gitgate.note(…)",
}


@dataclass(frozen=True)
class LintFinding:
    """Call that a flow makes again in each replay, and that may give something else then."""

    line: int
    name: str
    kind: str
    flow: str

    @property
    def instead(self) -> str:
        return INSTEAD[self.kind]


def lint(file: Path) -> list[LintFinding]:
    """Return the uses of clocks, chance and the outside world in the flows of a file, outside of their steps."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"), file.name)
    except OSError as absent:
        raise Usage(f"there is no file {file}", hint="git gate run --lint FILE") from absent
    except (SyntaxError, ValueError) as broken:
        line = getattr(broken, "lineno", None)
        raise Failure(
            f"{file.name} cannot be read{f', line {line}' if line else ''}: {broken}",
            hint=f"see: python {file.name}",
        ) from broken
    linter = FlowLinter(tree)
    return sorted(set(linter.findings()), key=lambda one: (one.line, one.name))


@dataclass
class FlowLinter:
    """Linter of a module's flows. It also reads the module's own functions that they call."""

    tree: ast.Module
    names: dict[str, str] = field(default_factory=dict)
    functions: dict[str, ast.AST] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for one in node.names:
                    self.names[one.asname or one.name.partition(".")[0]] = (
                        one.name if one.asname else one.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                self.names |= {one.asname or one.name: f"{module}.{one.name}" for one in node.names}
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.functions[node.name] = node

    def findings(self) -> Iterator[LintFinding]:
        for name, node in self.functions.items():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
                map(self.is_flow, node.decorator_list)
            ):
                yield from self.read(name, node.body, {name})
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and self.called(node.func) == "gitgate.Phase":
                parts = [one.value for one in node.keywords if one.arg in ("human", "next", "update")]
                yield from self.read("Phase", parts, set())

    def is_flow(self, decorator: ast.expr) -> bool:
        given = decorator.func if isinstance(decorator, ast.Call) else decorator
        return self.called(given) == "gitgate.flow"

    def called(self, node: ast.expr) -> str:
        """Return the whole name of what is called, as far as imports tell."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ".".join(["…", *reversed(parts)])
        known = node.id in BUILTINS and node.id not in self.functions
        root = self.names.get(node.id) or (node.id if known else "…")
        return ".".join([root, *reversed(parts)])

    def read(self, flow: str, nodes: list[Any], seen: set[str]) -> Iterator[LintFinding]:
        """Yield the calls in these parts of a flow that a replay does not repeat.

        A step's function may call anything, and is not read. The module's other functions are read where they are used.
        """
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            if isinstance(node, ast.Name) and node.id in self.functions and node.id not in seen:
                seen.add(node.id)
                body: Any = self.functions[node.id]
                waiting += [] if any(map(self.is_flow, body.decorator_list)) else body.body
            if isinstance(node, ast.Call):
                name = self.called(node.func)
                kind = kind_of(name)
                if kind:
                    yield LintFinding(node.lineno, name.removeprefix("…."), kind, flow)
                if name == "gitgate.step":
                    waiting += node.args[1:] + [one.value for one in node.keywords if one.arg != "done"]
                    continue
            waiting += ast.iter_child_nodes(node)


def kind_of(name: str) -> str:
    """Return why a replay does not repeat a call of that name: a clock, chance, or the outside world; else empty."""
    if name in HARMLESS:
        return ""
    if name.rpartition(".")[2] in METHODS:
        return OUTSIDE
    parts = name.split(".")
    return next((KINDS[at] for n in range(len(parts), 0, -1) if (at := ".".join(parts[:n])) in KINDS), "")
