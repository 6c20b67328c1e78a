"""Record: a run's journal. Each event is a JSON file of its own, and a run is what its events amount to. Pure.

A journal differs from a gate's record in three things. Its files are JSON, because results are. Each commit's tree holds its
own file alone, since a tree that grew with 10,000 steps would take two hundred times the room. And up to 25,000 events are
taken. Whose turn it is, and in which state what may happen, is told by `model.RUN_TABLE`, as for a gate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import model
from ..document import OID, dataclass, field, field_of
from ..errors import BadDocument, BrokenRecord, IllegalEvent
from ..model import file_name, gate_id, trailer_message
from ..model.gate import Claim, Entry
from .events import parse_claim, plain_event

VERSION = 1
OURS = __name__.partition(".")[0]
MOST_EVENTS = 25_000
MOST_SPARE = 1_000
"""Kept free at a journal's end, for what ends it."""
MOST_RESULT = 1 << 20
MOST_SIGNAL = 1 << 16
MOST_TALK = 1 << 25
"""Of all together that is said of a run and not by its holder, in bytes."""
MOST_NAME = 400
STARTED = "started"
FLOW = "flow"
"""The kind of a step that is a run of its own."""
ENDS = ("completed", "stuck", "failed", "stopped")
# With these the claim is given up, so that they tell the next link of its lease's chain.
RESTS = ("waiting", "sleeping")
LETS_GO = (*RESTS, "released", *ENDS)
# What needs no claim: the start, a claim, and what others say of a run.
BY_ANYBODY = ("started", "claimed", "stopping", "noted", "signalled")
OF_NO_CONSEQUENCE = ("noted", "signalled")
OWN = "."
"""The run's own tree, among the lines of its branches."""
OF_A_TREE = ("head", "staged", "work")
OF_A_STEP = ("begun", "asked", "done", "raised", "patched")


def is_text(value: object) -> bool:
    return isinstance(value, str)


def is_short(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MOST_NAME and value.isprintable()


def is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def is_mapping(value: object) -> bool:
    return isinstance(value, dict)


def is_error(value: object) -> bool:
    return isinstance(value, dict) and is_text(value.get("class")) and is_text(value.get("message"))


def is_commit(value: object) -> bool:
    """Return whether a text is a full commit id: a name would differ in each clone, and might never be published."""
    return isinstance(value, str) and re.fullmatch(OID, value) is not None


def is_trees(value: object) -> bool:
    """Return whether this value lists trees: for each branch with a tree of its own its line, the commit that it is
    based on, its staged content, and all of its content. For the run's own tree, also the Git branch that it was
    on.
    """
    return isinstance(value, list) and all(
        isinstance(one, dict)
        and is_short(one.get("line"))
        and all(is_commit(one.get(key)) for key in OF_A_TREE)
        and is_text(one.get("branch", ""))
        for one in value
    )


def is_anything(_value: object) -> bool:
    return True


Check = Callable[[object], bool]

# Of each event: what it has to say, and what it may say. All have `n`, their place in the journal, and `at`.
NEEDED: dict[str, dict[str, Check]] = {
    "started": {"flow": is_short, "nonce": is_short},
    "claimed": {"claim": is_mapping},
    "released": {},
    "begun": {"step": is_short, "kind": is_short, "name": is_text},
    "asked": {"step": is_short, "gate": is_short},
    "done": {"step": is_short},
    "raised": {"step": is_short, "error": is_error},
    "patched": {"step": is_short, "name": is_short},
    "noted": {"text": is_text},
    "waiting": {"gates": is_texts},
    "sleeping": {},
    "signalled": {"topic": is_short},
    "stopping": {"reason": is_text},
    "completed": {},
    "stuck": {"reason": is_text},
    "failed": {"error": is_error},
    "stopped": {"reason": is_text},
}
MAY_SAY: dict[str, Check] = {
    **dict.fromkeys(("result", "input", "given", "output", "value"), is_anything),
    **dict.fromkeys(("by", "host", "reason", "reveal", "text", "step", "kind", "name", "gate"), is_text),
    **dict.fromkeys(("session", "agent", "digest", "file", "branch", "directory", "parent"), is_text),
    **dict.fromkeys(("code", "work"), is_commit),
    **dict.fromkeys(("parent_step", "children", "run", "since"), is_text),
    "trees": is_trees,
    **dict.fromkeys(
        ("version", "python", "lock", "path", "nonce", "until", "topic", "line", "from", "carried"), is_text
    ),
    **dict.fromkeys(("options", "error"), is_mapping),
    **dict.fromkeys(("gates", "commits", "steps", "topics"), is_texts),
}


@dataclass(frozen=True)
class RunEvent:
    """Event of a run: its name, its place in the journal, and its content."""

    name: str
    n: int
    at: str
    said: Mapping[str, Any]

    def text(self, field: str) -> str:
        found = self.said.get(field, "")
        return found if isinstance(found, str) else ""


@dataclass(frozen=True)
class RunEntry:
    """Commit of a journal."""

    commit: str
    event: RunEvent


def dump_run_event(event: RunEvent) -> bytes:
    """Return the bytes of an event's file. Its content has been through JSON already, so that nothing is lost here."""
    said = {"hitl": VERSION, "event": event.name, "n": event.n, "at": event.at, **event.said}
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode(
        "utf-8", "surrogatepass"
    )


def path_of(name: str, data: bytes) -> str:
    return f"{name}-{file_name(data)}.json"


def parse_run_event(data: bytes, source: str) -> RunEvent:
    """Return the event in a file; BadDocument says which field is wrong."""
    try:
        found = json.loads(data.decode("utf-8"), parse_constant=refuse_constant)
    except (ValueError, RecursionError) as unreadable:
        raise BadDocument(source, 0, "", f"expected JSON; {unreadable}") from unreadable
    if not isinstance(found, dict):
        raise BadDocument(source, 0, "", "expected an object")
    version, name = found.pop("hitl", None), found.pop("event", None)
    n, at = found.pop("n", None), found.pop("at", None)
    if version != VERSION or isinstance(version, bool):
        raise BadDocument(
            source,
            0,
            "hitl",
            f"this gitgate reads version {VERSION} of the format; upgrade it to read this run",
        )
    if not isinstance(name, str) or name not in NEEDED:
        raise BadDocument(source, 0, "event", f"expected one of {', '.join(NEEDED)}")
    if type(n) is not int or n < 0:
        raise BadDocument(source, 0, "n", "expected its place in the journal")
    if not isinstance(at, str) or len(at) > 40:
        raise BadDocument(source, 0, "at", "expected a moment")
    check_fields(name, found, source)
    return RunEvent(name, n, at, found)


def refuse_constant(word: str) -> object:
    raise ValueError(f"{word} is no JSON")


def check_fields(name: str, said: Mapping[str, Any], source: str) -> None:
    needed = NEEDED[name]
    for key, check in needed.items():
        if key not in said or not check(said[key]):
            raise BadDocument(source, 0, key, f"an event {name!r} has to say it")
    for key, value in said.items():
        check_known = needed.get(key) or MAY_SAY.get(key)
        if check_known is not None and not check_known(value):
            raise BadDocument(source, 0, key, f"not as an event {name!r} says it")


def run_id(data: bytes) -> str:
    """Return the id of the run that this file starts."""
    return gate_id(data)


def claim_in(event: RunEvent, source: str) -> Claim:
    """Return the claim that an event `claimed` holds."""
    return parse_claim(field_of(dict(event.said["claim"]), source))


def said_of_claim(claim: Claim) -> dict[str, Any]:
    return {key: value for key, value in plain_event(claim).items() if value not in (None, "")}


@dataclass(frozen=False)
class RunStep:
    """Step of a run, as far as its journal has it."""

    id: str
    branch: str
    kind: str
    name: str
    state: str
    begun: RunEvent
    ended: RunEvent | None = None
    gates: list[str] = field(default_factory=list)
    asked_with: list[str] = field(default_factory=list)
    """What its agent had committed each time that it asked."""

    @property
    def commits(self) -> list[str]:
        """Commits that the step's agent made, oldest first, as far as the journal has them."""
        result = self.ended.said.get("result") if self.ended is not None else None
        said = result.get("commits") if isinstance(result, dict) else None
        return [str(one) for one in said] if isinstance(said, list) else list(self.asked_with)

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "raised")


@dataclass(frozen=False)
class Run:
    """Run, folded from its journal. It grows by `take`: a replay of 10,000 steps looks each one up once."""

    id: str
    tip: str
    state: str
    started: RunEvent
    events: list[RunEntry] = field(default_factory=list)
    steps: dict[str, RunStep] = field(default_factory=dict)
    order: dict[str, list[str]] = field(default_factory=dict)
    """Of each branch, its steps as they were begun."""
    claim: Entry | None = None
    attempts: int = 0
    end: RunEvent | None = None
    signals: dict[str, list[RunEvent]] = field(default_factory=dict)
    """Of each topic what was sent, oldest first."""
    heard: set[int] = field(default_factory=set)
    """The signals that a step has received, by their places in the journal."""

    @property
    def flow(self) -> str:
        return self.started.text("flow")

    @property
    def called_by(self) -> tuple[str, str]:
        """Run and step that called this run as a flow; two empty texts where none did."""
        step = self.started.text("parent_step")
        return (self.started.text("parent"), step) if step else ("", "")

    @property
    def children(self) -> list[str]:
        """Runs that this run's steps have named."""
        steps = (step for step in self.steps.values() if step.kind == FLOW)
        return [run for step in steps if (run := step.begun.text("run"))]

    @property
    def closed(self) -> bool:
        return self.end is not None

    @property
    def waits_for(self) -> list[str]:
        """Gates that the run waits at; empty where it does not wait."""
        rest = self.rest
        return list(rest.said.get("gates", ())) if rest is not None else []

    @property
    def rest(self) -> RunEvent | None:
        """Event with which the run was released to wait; None where it does not wait."""
        last = last_of_consequence(self)
        return last if last is not None and last.name in RESTS else None

    @property
    def own_tree(self) -> dict[str, str] | None:
        """Tree of the run itself as it was released to wait, with its Git branch; None where it is not known."""
        trees = self.rest.said.get("trees", ()) if self.rest is not None else ()
        return next((one for one in trees if one["line"] == OWN), None)

    @property
    def wakes(self) -> str:
        """Moment from which the run can go on without a person; empty where there is none. A run that another flow called
        has one only where a signal was sent to it: else its root is woken.
        """
        rest = self.rest
        if rest is None:
            return ""
        sent = any(self.unheard(topic) for topic in rest.said.get("topics", ()))
        if sent or not self.called_by[0]:
            return rest.at if sent else rest.text("until")
        return ""  # its time is its root's, which is woken

    def unheard(self, topic: str) -> list[RunEvent]:
        """Return the signals that were sent on the topic and have not been received."""
        return [event for event in self.signals.get(topic, ()) if event.n not in self.heard]

    def take(self, entry: RunEntry) -> None:
        """Apply one more event. An event that the table does not have raises and changes nothing."""
        event = entry.event
        if event.n != len(self.events):
            raise BrokenRecord(
                f"run {self.id}: commit {entry.commit[:12]} is number {event.n} where {len(self.events)} comes"
            )
        if len(self.events) >= MOST_EVENTS:
            raise BrokenRecord(f"run {self.id}: its journal has more than {MOST_EVENTS:,} events")
        state = model.after_in_run(self.state or None, event.name)
        if self.claim is None and event.name not in BY_ANYBODY:
            raise IllegalEvent(f"run {self.id}: nobody goes on with it, so that it cannot be {event.name}")
        if event.name in OF_A_STEP:
            self.take_step(event)
        elif event.name == "claimed":
            self.claim = Entry(
                entry.commit, "claimed", claim_in(event, f"{self.id}:{event.n}"), (self.tip,) * (event.n > 0)
            )
            self.attempts += 1
        elif event.name in LETS_GO:
            self.claim = None
        elif event.name == "signalled":
            self.signals.setdefault(event.said["topic"], []).append(event)
        if event.name in ENDS:
            self.end = event
        self.state, self.tip = state, entry.commit
        self.events.append(entry)

    def take_step(self, event: RunEvent) -> None:
        name = event.said["step"]
        known = self.steps.get(name)
        if event.name in ("begun", "patched") or (known is None and event.name == "done"):
            if known is not None:
                raise IllegalEvent(f"run {self.id}: step {name} has begun before")
            self.add_step(name, event)
            return
        if known is None or known.is_over:
            what = "has not begun" if known is None else "is over"
            raise IllegalEvent(f"run {self.id}: step {name} {what}, and cannot be {event.name}")
        if event.name == "asked":
            known.gates.append(event.said["gate"])
            known.asked_with += event.said.get("commits", ())
        else:
            known.state, known.ended = event.name, event
            received = event.said.get("result") if known.kind == "receive" else None
            number = received.get("signal") if isinstance(received, dict) else None
            if isinstance(number, int):
                self.heard.add(number)

    def add_step(self, name: str, event: RunEvent) -> None:
        """Add a step. One that takes no time, such as a moment or a random number, is done as it begins."""
        branch = name.rpartition("/")[0]
        kind = event.text("kind") or ("patched" if event.name == "patched" else "")
        begun = event.name == "begun"
        step = RunStep(name, branch, kind, event.text("name"), "begun" if begun else "done", event)
        if not begun:
            step.ended = event
        self.steps[name] = step
        self.order.setdefault(branch, []).append(name)


def fold_run(run: str, entries: Sequence[RunEntry]) -> Run:
    """Return the run that these events make, oldest first."""
    if not entries or entries[0].event.name != STARTED:
        raise BrokenRecord(f"run {run}: its journal does not begin with a start")
    made = Run(run, "", "", entries[0].event)
    for entry in entries:
        try:
            made.take(entry)
        except IllegalEvent as illegal:
            raise BrokenRecord(f"run {run}: commit {entry.commit[:12]}: {illegal.message}") from illegal
    return made


def begun_with(run: Run, step: str) -> Mapping[str, Any]:
    """Return the run's own tree at the beginning of the outermost branches that contain the step; empty where the step
    works in that tree itself.
    """
    parts = step.split("/")
    for count in range(1, len(parts)):
        if found := taken_by(run.steps.get("/".join([*parts[:count], "trees#1"]))):
            return found
    return {}


def taken_by(step: RunStep | None) -> Mapping[str, Any]:
    """Return the tree that a step has taken; empty where there is none, or it names anything but commits."""
    result = step.ended.said.get("result") if step is not None and step.ended is not None else None
    if isinstance(result, dict) and all(is_commit(result.get(key)) for key in OF_A_TREE):
        return result
    return {}


def against_caller(run: Run, caller: Run | None) -> str:
    """Return why a run is not the step of another run that it claims to be; empty where it is. `caller` is that other
    run, as far as it is known.
    """
    parent, step = run.called_by
    if caller is None:
        return f"run {run.id} says that it is step {step} of run {parent}, which is not here"
    known = caller.steps.get(step)
    if known is None or known.kind != FLOW:
        return f"run {run.id} says that it is step {step} of run {parent}, which has no such step"
    if known.begun.text("run") != run.id and not run.started.text("after"):
        return f"run {run.id} says that it is step {step} of run {parent}, and that is run {known.begun.text('run')}"
    return ""


def run_message(run: Run) -> str:
    """Return the message of the commit of a run's last event: it has all that a list shows."""
    event = run.events[-1].event
    about = (
        event.text("step") or event.text("topic") or event.text("reason") or event.text("text") or run.flow
    )
    step = current_step(run)
    return trailer_message(
        f"{event.name}: {about}",
        [
            ("Run", run.id),
            ("Event", event.name),
            ("State", run.state),
            ("Flow", run.flow),
            ("Name", run.started.text("name")),
            ("Step", step.id if step else ""),
            ("Agent", step.begun.text("agent") if step else ""),
            ("Gates", " ".join(run.waits_for)),
            ("Wakes", run.wakes),
            ("Started", run.started.at),
            ("Asked-By", run.started.text("by")),
            ("Parent", run.called_by[0]),
            ("Reason", last_reason(run)),
            ("Closed", "yes" if run.closed else ""),
        ],
    )


def last_of_consequence(run: Run) -> RunEvent | None:
    """Return the run's last event, apart from what others have added since."""
    return next((e.event for e in reversed(run.events) if e.event.name not in OF_NO_CONSEQUENCE), None)


def last_reason(run: Run) -> str:
    """Return the recorded reason why a run ended, or was released; empty where there is none."""
    event = last_of_consequence(run)
    if event is None or event.name not in ("stuck", "stopped", "released", "failed", "stopping"):
        return ""
    return event.text("reason") or str(event.said.get("error", {}).get("message", ""))


def told_reason(run: Run) -> str:
    """Return why a run ended, or was released to wait, for a reader. An error that is not ours is named with its
    class, because its text alone may be no more than a key.
    """
    event = last_of_consequence(run)
    error = event.said.get("error") if event is not None and event.name == "failed" else None
    return words_of_error(error) if error else last_reason(run)


def words_of_error(error: Mapping[str, Any]) -> str:
    module, _, name = str(error.get("class") or "").partition(":")
    message = str(error.get("message") or "")
    if module.partition(".")[0] == OURS and message:
        return message
    return ": ".join(word for word in (name, message) if word)


def current_step(run: Run) -> RunStep | None:
    """Return the step that the run is at, or was at last."""
    for entry in reversed(run.events):
        if entry.event.name in OF_A_STEP:
            return run.steps[entry.event.said["step"]]
    return None
