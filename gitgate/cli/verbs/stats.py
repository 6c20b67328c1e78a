"""Command line: `git gate stats`: what waits, how long people take, who answers, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from ...errors import Usage
from ..terminal.screen import Screen, verb

if TYPE_CHECKING:
    from ...gates.history import Figures, Statistics

BAR = 24
# OpenMetrics: the name of each figure, and what it is.
METRICS = {
    "waiting": "Gates that wait for an answer.",
    "answered": "Gates that a person answered.",
    "approved": "Gates whose answer is yes.",
    "rejected": "Gates whose answer is no.",
    "defaulted": "Gates whose declared default became the answer.",
    "expired": "Gates that nobody answered in time.",
    "withdrawn": "Gates that were taken back.",
    "stopped": "Gates that a person ended.",
    "late": "Answers that came after the one that counts.",
    "failed_resumes": "Runs of agents that failed, with no attempt left.",
}


@click.command("stats")
@click.option("--since", metavar="30d|DATE", help="Only gates asked since then; what waits is counted whole.")
@click.option(
    "--by", "by", type=click.Choice(["agent", "person", "type", "branch"]), help="Each by itself, too."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "openmetrics"]),
    default="text",
    help="openmetrics: for a collector such as Prometheus.",
)
@verb
def stats_command(screen: Screen, since: str | None, by: str | None, form: str) -> None:
    """How many gates wait, how long people take to answer, who answers through what, and what comes of it.

    Reckoned from Git alone, archived gates too. A default is nobody's answer, and takes no part in how long people take.

    \b
    git gate stats
    git gate stats --since 30d --by agent
    git gate stats --since 2030-01-31 --by person --json
    git gate stats --format openmetrics
    """
    from ...gates.history import statistics

    desk = screen.desk()
    screen.as_json = screen.as_json or form == "json"
    screen.progress("reading what was asked and answered")
    found = statistics(desk, read_since(since, desk.clock()), by or "")
    if form == "openmetrics" and not screen.as_json:
        screen.print(openmetrics(found, by or ""))
        return
    groups = [{"name": name, **shape_of(one)} for name, one in found.groups.items()]
    shape = {**shape_of(found.whole), "since": since, "by": by, "groups": groups}
    screen.emit("stats", shape, figures_text(found))


def read_since(said: str | None, now: float, typed: str = "git gate stats") -> float:
    """A duration before now, a day, or a moment."""
    if said is None:
        return 0.0
    from ...text import parse_since

    try:
        return parse_since(said, now)
    except Usage:
        raise Usage(
            f"--since {said!r}: expected a duration such as 30d, or a day such as 2030-01-31",
            hint=f"{typed} --since 30d",
        ) from None


def shape_of(one: Figures) -> dict[str, object]:
    shape = asdict(one)
    del shape["seconds"]
    return shape


def figures_text(found: Statistics) -> str:
    whole = found.whole
    lines = [
        f"{whole.waiting} wait · {whole.answered} answered{took(whole)}",
        " · ".join(f"{getattr(whole, name)} {word}" for name, word in ENDS.items() if getattr(whole, name)),
        *chart("answered by", {name.partition(" <")[0]: n for name, n in whole.people.items()}),
        *chart("through", whole.via),
        *([""] if found.groups else []),
        *(
            f"{label(name)}: {one.waiting} wait · {one.answered} answered{took(one)}"
            for name, one in found.groups.items()
        ),
    ]
    return "\n".join(line for number, line in enumerate(lines) if line or number > 1)


ENDS = {
    "approved": "approved",
    "rejected": "rejected",
    "defaulted": "by default",
    "expired": "expired",
    "withdrawn": "withdrawn",
    "stopped": "stopped",
    "late": "late answers",
    "failed_resumes": "failed resumes",
}


def label(name: str) -> str:
    from ...text import one_line

    return one_line(name, 50)


def took(one: Figures) -> str:
    from ...text import ago

    if one.median_seconds is None or one.p90_seconds is None:
        return ""
    return f", half within {ago(one.median_seconds)}, nine in ten within {ago(one.p90_seconds)}"


def chart(title: str, counts: Mapping[str, int]) -> list[str]:
    """A bar for each, the longest as wide as the chart."""
    if not counts:
        return []
    most = max(counts.values())
    names = {name: label(name) for name in list(counts)[:10]}
    wide = max(len(name) for name in names.values())
    bars = [
        f"  {shown:<{wide}}  {'█' * max(1, counts[name] * BAR // most)} {counts[name]}"
        for name, shown in names.items()
    ]
    more = [f"  and {len(counts) - 10} more"] if len(counts) > 10 else []
    return [title, *bars, *more]


def openmetrics(found: Statistics, by: str) -> str:
    """The text format of OpenMetrics 1.0. With groups the figures are theirs alone: together they would be counted twice."""
    rows = (
        {f'{{{by}="{xml_escaped(name)}"}}': one for name, one in found.groups.items()}
        if by
        else {"": found.whole}
    )
    lines = []
    for name, words in METRICS.items():
        lines += [f"# TYPE gitgate_{name} gauge", f"# HELP gitgate_{name} {words}"]
        lines += [f"gitgate_{name}{labels} {getattr(one, name)}" for labels, one in rows.items()]
    lines += ["# TYPE gitgate_answer_seconds summary", "# UNIT gitgate_answer_seconds seconds"]
    lines += ["# HELP gitgate_answer_seconds From the question to the answer that counts."]
    for labels, one in rows.items():
        for share, seconds in (("0.5", one.median_seconds), ("0.9", one.p90_seconds)):
            if seconds is not None:
                within = f'{labels[:-1]},quantile="{share}"}}' if labels else f'{{quantile="{share}"}}'
                lines.append(f"gitgate_answer_seconds{within} {seconds}")
        lines.append(f"gitgate_answer_seconds_count{labels} {one.answered}")
        lines.append(f"gitgate_answer_seconds_sum{labels} {one.seconds}")
    return "\n".join([*lines, "# EOF"])


def xml_escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
