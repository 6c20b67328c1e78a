"""Render: runs of flows: as JSON, as a line of a list, as a page of steps, as a trail, as XML, as a picture's source."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..model import run_status
from ..record.runs import OF_A_STEP, RESTS, Run, RunStep, current_step, last_reason, told_reason
from ..text import ago, clip, counted, one_line, parse_time, wrap
from . import paint
from .shapes import attributes, element

COLORS = {
    "running": "cyan",
    "waiting_human": "yellow",
    "sleeping": "blue",
    "completed": "green",
    "stuck": "red",
    "failed": "red",
    "stopped": "red",
    "stalled": "magenta",
}
COLUMNS = ("ID", "FLOW", "STATUS", "STEP", "AGE", "WAITING FOR")


def run_shape(run: Run, asked: Mapping[str, tuple[str, bool]]) -> dict[str, object]:
    """Return a run for `list --runs --json`. `asked`: the title of each gate that it waits at, and whether that is
    decided.
    """
    step, gates = current_step(run), run.waits_for
    rest = run.rest.said if run.rest is not None else {}
    return {
        "id": run.id,
        "flow": run.flow,
        "name": run.started.text("name") or None,
        "status": run_status(run.state, last_reason(run)),
        "step": step.id if step else None,
        "agent": (step.begun.text("agent") or None) if step else None,
        "gate": gates[0] if gates else None,
        "gates": gates,
        "waiting_for": asked[gates[0]][0] if gates else ", or ".join(awaited(rest)) or None,
        "wakes": run.wakes or None,
        "topics": list(rest.get("topics", ())),
        "answered": any(asked[gate][1] for gate in gates),
        "started": run.started.at,
        "result": run.end.said.get("result") if run.end is not None else None,
        "reason": told_reason(run) or None,
        "parent": parent_shape(run),
        "from": run.started.text("from") or None,
        "children": run.children,
    }


def parent_shape(run: Run) -> dict[str, str | None] | None:
    """The run that it belongs to: the one whose step it is, or the one that it is a fork of, from that step on."""
    parent, step = run.called_by
    if not parent:
        parent, step = run.started.text("parent"), run.started.text("from")
    return {"run": parent, "step": step or None} if parent else None


def awaited(said: Mapping[str, Any]) -> list[str]:
    """Return the signals and moments that a run without a question waits for, from the event that paused it."""
    parts = [f"a signal on {topic!r}" for topic in said.get("topics", ())]
    return [*parts, *([f"the moment {said['until']}"] if said.get("until") else [])]


def run_details(run: Run, asked: Mapping[str, tuple[str, bool]]) -> dict[str, object]:
    """Return a run like `run_shape`, with its input and its steps."""
    started = run.started
    return {
        **run_shape(run, asked),
        "input": started.said.get("input"),
        "file": started.text("file") or None,
        "code": started.text("code") or None,
        "branch": started.text("branch") or None,
        "by": started.text("by") or None,
        "after": started.text("after") or None,
        "next": (run.end.text("next") or None) if run.end is not None else None,
        "error": run.end.said.get("error") if run.end is not None else None,
        "waiting": [
            {"gate": gate, "title": asked[gate][0], "answered": asked[gate][1], "since": run.rest.at}
            for gate in run.waits_for
            if run.rest is not None
        ],
        "steps": [step_shape(step, over=run.closed) for step in run.steps.values()],
    }


def step_shape(step: RunStep, *, over: bool = False) -> dict[str, object]:
    """One step; `over`: its run has ended, so that a step which had only begun is stopped as well."""
    said = step.ended.said if step.ended is not None else {}
    result: Any = said.get("result")
    signal = None
    if step.kind == "run" and isinstance(result, Mapping):
        signal = {name: result.get(name) or "" for name in ("status", "summary", "reason")}
    return {
        "path": step.id,
        "kind": step.kind,
        "name": step.name,
        "status": step_status(step, over=over),
        "agent": step.begun.text("agent") or None,
        "session": step.begun.text("session") or None,
        "signal": signal,
        "run": step.begun.text("run") or None,
        "gate": step.gates[-1] if step.gates else None,
        "gates": list(step.gates),
        "commits": step.commits,
        "error": said.get("error"),
        "carried": said.get("carried"),
        "started": step.begun.at,
        "ended": step.ended.at if step.ended is not None else None,
        "seconds": seconds_of(step),
    }


def seconds_of(step: RunStep) -> float | None:
    """Return how long a step took, people's time included; None where it is not over."""
    if step.ended is None:
        return None
    return max(0.0, parse_time(step.ended.at) - parse_time(step.begun.at))


def step_status(step: RunStep, *, over: bool) -> str:
    if step.state == "begun":
        return "stopped" if over else "waiting" if step.gates else "running"
    return "completed" if step.state == "done" else "failed"


def run_rows(
    shapes: Sequence[Mapping[str, Any]], now: float, cells: int, *, color: bool = False
) -> list[str]:
    """A line a run."""
    rows = [
        (
            str(shape["id"])[:10],
            one_line(f"{shape['name'] or shape['flow']}{caller_of(shape)}", 32),
            str(shape["status"]),
            one_line(str(shape["agent"] or shape["step"] or "-"), 28),
            ago(max(0.0, now - parse_time(str(shape["started"])))),
            one_line(str(to_go_on(shape) or shape["waiting_for"] or shape["reason"] or "-")),
        )
        for shape in shapes
    ]
    widths = [max(len(row[at]) for row in (COLUMNS, *rows)) for at in range(len(COLUMNS))]
    lines = []
    for row in (COLUMNS, *rows):
        parts = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
        line = clip("  ".join(parts).rstrip(), cells)
        lines.append(
            line.replace(row[2], paint(row[2], COLORS.get(row[2], ""), on=color), 1) if color else line
        )
    return lines


def caller_of(shape: Mapping[str, Any]) -> str:
    """Of which run it is a step."""
    return f" of {shape['parent']['run'][:6]}" if shape["parent"] and not shape["from"] else ""


def to_go_on(shape: Mapping[str, Any]) -> str:
    """Somebody answered, and nothing has gone on with it yet."""
    return f"answered; to go on: git gate resume {shape['id'][:6]}" if shape["answered"] else ""


def run_page(shape: Mapping[str, Any], now: float, cells: int, *, color: bool = False) -> str:
    """A run as a page: where it stands, and each step."""
    status = str(shape["status"])
    about = [f"run {shape['id']}: {one_line(str(shape['name'] or shape['flow']))}"]
    about.append(f"status: {paint(status, COLORS.get(status, ''), on=color)}")
    if shape["parent"]:
        of, step = shape["parent"]["run"], one_line(str(shape["parent"]["step"]))
        about.append(f"fork of run {of}, from {step}" if shape["from"] else f"step {step} of run {of}")
    if shape["input"] not in (None, "", {}, []):
        about.append(wrap(f"input: {one_line(json_or_text(shape['input']), 400)}", cells))
    about += [wrap(words, cells) for words in waiting_gate_lines(shape, now)]
    if shape["waiting_for"] and not shape["waiting"]:
        about.append(wrap(f"waits for: {one_line(str(shape['waiting_for']))}", cells))
    if shape["answered"]:
        about.append(to_go_on(shape))
    if shape["reason"]:
        about.append(wrap(f"reason: {one_line(str(shape['reason']))}", cells))
    if shape["after"]:
        about.append(f"goes on after run {shape['after']}")
    if shape["next"]:
        about.append(f"went on afresh as run {shape['next']}")
    elif shape["status"] == "completed" and shape["result"] is not None:
        about.append(wrap(f"result: {one_line(json_or_text(shape['result']), 400)}", cells))
    return "\n".join([*about, "", *step_lines(shape["steps"], now, cells)])


def json_or_text(value: Any) -> str:
    """Return a run's input or result in JSON as its flow has it; text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def waiting_gate_lines(shape: Mapping[str, Any], now: float) -> Iterator[str]:
    """Yield a line for each gate that the run waits for, or has an answer to."""
    for one in shape["waiting"]:
        word = "answered" if one["answered"] else "waits for"
        yield f"{word}: {one_line(str(one['title']))} (gate {one['gate']})"
        if not one["answered"]:
            yield from how_to_answer(shape, one, now)


def how_to_answer(shape: Mapping[str, Any], waiting: Mapping[str, Any], now: float) -> Iterator[str]:
    """Yield the asker, the conversation and the time of a question, and the command that answers it."""
    gate = str(waiting["gate"])
    step = next((one for one in shape["steps"] if gate in one["gates"]), None)
    since = ago(max(0.0, now - parse_time(str(waiting["since"]))))
    agent = one_line(str((step or {}).get("agent") or ""))
    session = one_line(str((step or {}).get("session") or ""))
    asks = f"asked by {agent}, session {session}, " if agent and session else "asked "
    yield f"  {asks}{since} ago"
    talk = f"   or talk to {agent} first: git gate join {gate[:6]}" if agent and session else ""
    yield f"  next: git gate respond {gate[:6]}{talk}"


Below = Callable[[str], Mapping[str, Any] | None]
"""The shape of a run that a step is, by its id."""


def run_tree(shape: Mapping[str, Any], cells: int, below: Below, *, color: bool = False) -> Iterator[str]:
    """A run's steps as a tree: what ran at once below the step that started it, and so the steps of a run that a step is."""
    status = str(shape["status"])
    yield f"run {shape['id']} {paint(f'[{status}]', COLORS.get(status, ''), on=color)} {one_line(str(shape['name'] or shape['flow']))}"
    seen: set[str] = set()
    for step in by_branch(shape["steps"]):
        *above, name = str(step["path"]).split("/")
        for depth in range(len(above)):
            branch = "/".join(above[: depth + 1])
            if branch not in seen:
                seen.add(branch)
                yield clip(f"{'  ' * (depth + 1)}{one_line(above[depth])}", cells)
        gate = f" gate {step['gate']}" if step["gate"] else ""
        yield clip(f"{'  ' * (len(above) + 1)}{one_line(name)} [{step['status']}]{gate}", cells)
        called = below(str(step["run"])) if step["run"] else None
        for line in run_tree(called, cells, below, color=color) if called is not None else ():
            yield clip(f"{'  ' * (len(above) + 2)}{line}", cells)


def by_branch(steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Each branch's steps together, where the first of them was begun; branches that ran at once by their numbers."""
    first: dict[str, int] = {}

    def place(number: int, step: Mapping[str, Any]) -> tuple[int, ...]:
        parts = str(step["path"]).split("/")
        names = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
        return tuple(
            int(part) if part.isdecimal() else first.setdefault(name, number)
            for part, name in zip(parts, names, strict=True)
        )

    places = [place(number, step) for number, step in enumerate(steps)]
    return [steps[number] for number in sorted(range(len(steps)), key=lambda number: places[number])]


def step_lines(steps: Sequence[Mapping[str, Any]], now: float, cells: int) -> Iterator[str]:
    if not steps:
        yield "no step has begun"
    marks = {"completed": "✓", "failed": "✗", "waiting": "⏸", "running": "…", "stopped": "■"}
    for number, step in enumerate(steps, 1):
        ended = parse_time(step["ended"]) if step["ended"] else now
        took = ago(max(0.0, ended - parse_time(step["started"])))
        said = step["signal"] or {}
        words = one_line(" ".join(part for part in (said.get("status"), said.get("summary")) if part))
        gate = f"gate {step['gate']}" if step["gate"] else ""
        error = one_line(str((step["error"] or {}).get("message", "")))
        carried = f"carried from run {step['carried'][:6]}" if step["carried"] else ""
        called = f"run {step['run']}" if step["run"] else ""
        made = step["commits"]
        commits = f"{counted(len(made), 'commit')}, {made[-1][:10]}" if made else ""
        rest = "  ".join(part for part in (carried, took, called, gate, commits, words, error) if part)
        yield clip(f"{number:>3}  {marks[step['status']]}  {step['path']:<28}  {rest}", cells)


def run_trail(run: Run) -> list[dict[str, object]]:
    """The journal as events for `git gate log`, newest first."""
    found: list[dict[str, object]] = []
    for entry in reversed(run.events):
        event = entry.event
        found.append(
            {
                "gate": run.id,
                "run": run.id,
                "event": event.name,
                "at": event.at,
                "by": event.text("by") or (run.started.text("by") or None),
                "step": event.said.get("step") if event.name in OF_A_STEP else None,
                "text": trail_words(event.name, event.said),
                "commit": entry.commit,
            }
        )
    return found


def trail_words(name: str, said: Mapping[str, Any]) -> str:
    error = said.get("error")
    if isinstance(error, Mapping):
        return one_line(f"{said.get('step', '')} {error.get('message', '')}".strip(), 400)
    if name == "claimed":
        return f"on {said['claim'].get('host', '')}, attempt {said['claim'].get('attempt', '')}"
    if name in RESTS:
        gates = [", ".join(said["gates"])] if said.get("gates") else []
        return one_line(f"for {', or '.join([*gates, *awaited(said)])}", 400)
    told = ("step", "gate", "flow", "topic", "value", "text", "reason")
    return one_line(" ".join(str(said[key]) for key in told if said.get(key)), 400)


# pictures, and XML

HEADS = ("id", "flow", "name", "status", "started", "file", "code", "branch", "by", "agent", "gate")
SAFE = frozenset(" .,:/_-()?+=")
PICTURE_COLORS = {
    "completed": "#c6f0c6",
    "failed": "#f5c2c2",
    "stuck": "#f5c2c2",
    "stopped": "#f5c2c2",
    "waiting": "#fbeeb4",
    "waiting_human": "#fbeeb4",
    "stalled": "#e5d0f5",
    "running": "#cfe6fb",
    "sleeping": "#cfe6fb",
}


def run_document(shape: Mapping[str, Any]) -> str:
    """Return a run as the XML of `show --json`: one element a step, in the order in which they were begun."""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<run{attributes(**{name: shape[name] for name in HEADS})}>",
    ]
    lines += [
        f"  {element(name, shape[name])}" for name in ("input", "reason", "result", "error") if shape[name]
    ]
    for step in shape["steps"]:
        head = attributes(**{name: step[name] for name in STEP_HEADS})
        said, gates = step["signal"] or {}, step["gates"]
        inside = [element(name, said[name]) for name in ("summary", "reason") if said.get(name)]
        inside = [f"<signal{attributes(status=said.get('status'))}>", *(f"  {one}" for one in inside), "</signal>"] if said else []  # fmt: skip
        inside += [element("gate", gate) for gate in gates]
        inside += [element("commit", commit) for commit in step["commits"]]
        inside += [element("error", step["error"])] if step["error"] else []
        lines += [f"  <step{head}>", *(f"    {one}" for one in inside), "  </step>"]
    return "\n".join([*lines, "</run>"])


STEP_HEADS = ("path", "kind", "name", "status", "agent", "session", "started", "ended", "seconds")


def edges(steps: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int]]:
    """Yield each step's predecessors by their places; -1 is the start. Branches that ran at once are parallel."""
    tails: dict[str, list[int]] = {"": [-1]}
    for number, step in enumerate(steps):
        branch = str(step["path"]).rpartition("/")[0]
        above, group = branch, ""
        while above not in tails:
            above, _, last = above.rpartition("/")
            group = f"{above}/{last}" if above else last
        # What ran at once before this, in other branches below the same one, has come to its end.
        ended = [name for name in tails if is_below(name, above) and not (group and is_below(name, group))]
        before = [tail for name in ended for tail in tails.pop(name)] or tails[above]
        tails[above] = before
        yield from ((tail, number) for tail in before)
        tails[branch] = [number]
    below = [tail for name, found in tails.items() for tail in found if name]
    yield from ((tail, len(steps)) for tail in below or tails[""])


def is_below(branch: str, above: str) -> bool:
    return branch.startswith(f"{above}/") if above else bool(branch)


def picture_words(shape: Mapping[str, Any]) -> list[tuple[list[str], str]]:
    """The lines and the state of each box: the steps, then the end."""
    found = []
    for step in shape["steps"]:
        said = step["signal"] or {}
        took = "" if step["seconds"] is None else ago(step["seconds"])
        about = " ".join(part for part in (str(step["status"]), took) if part)
        gate = f"gate {step['gate']}" if step["gate"] else ""
        words = [step["path"], about, gate, str(said.get("status") or "")]
        found.append(([one_line(str(word), 60) for word in words if word], str(step["status"])))
    end = [str(shape["status"]), str(shape["waiting_for"] or shape["reason"] or "")]
    return [*found, ([one_line(word, 60) for word in end if word], str(shape["status"]))]


def run_mermaid(shape: Mapping[str, Any]) -> str:
    """A flowchart for a page that draws Mermaid. Each character that could mean something to it is written as its number."""
    lines = ["flowchart TD", f'  start(["{drawn(str(shape["name"] or shape["flow"]))}"])']
    boxes = picture_words(shape)
    for number, (words, _) in enumerate(boxes):
        opening, closing = ("([", "])") if number == len(boxes) - 1 else ("[", "]")
        lines.append(f'  s{number}{opening}"{"<br/>".join(map(drawn, words))}"{closing}')
    for one, other in edges(shape["steps"]):
        lines.append(f"  {'start' if one < 0 else f's{one}'} --> s{other}")
    for number, (_, state) in enumerate(boxes):
        lines.append(f"  style s{number} fill:{PICTURE_COLORS[state]},color:#111")
    return "\n".join(lines)


def drawn(text: str) -> str:
    """Words for a Mermaid label: whatever is no plain letter is an entity, so that it is no markup, no link, no end of it."""
    line = one_line(text, 60)
    return "".join(char if char.isalnum() or char in SAFE else f"#{ord(char)};" for char in line)


DRAWN = {"xml": run_document, "mermaid": run_mermaid}
