"""Command line: what was decided before: `git gate why` by the lines that came of it, `git gate search` by its words, and
`git gate stats` in figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ...errors import Usage
from ...text import counted
from ..terminal import Screen, verb

if TYPE_CHECKING:
    from ...audit.earlier import FoundDecision, Origin, SearchTerms
    from ...context import Desk
    from ...gates.history import Figures, Statistics
    from ...model import SignatureMark

# What was decided before: `git gate why` by the lines that came of it, `git gate search` by its words.


@click.command("why")
@click.argument("file", metavar="FILE[:LINE[,LINE]]", type=click.Path())
@click.option(
    "--rev", metavar="REV", help="The file as this commit has it; in a bare repository it is needed."
)
@verb
def why_command(screen: Screen, file: str, rev: str | None) -> None:
    """Which decisions led to these lines: the question, the answer, who gave it, and the commit that came of it.

    By git's own blame, and the trailers of agents' commits. A trailer is anybody's claim: it counts as verified only where
    the gate's own record names that commit, and holds as `git gate verify` checks it.

    \b
    git gate why src/db.py
    git gate why src/db.py:40
    git gate why src/db.py:40,60 --json
    git gate why --rev v1.2 src/db.py
    """
    from ...audit.earlier import origins, read_asked

    desk = screen.desk()
    screen.progress("reading whose lines these are")
    asked = read_asked(desk, screen.start, file, rev)
    found = origins(desk, asked)
    if screen.as_json:
        screen.emit(
            "why", {"file": asked.path, "rev": asked.rev, "lines": list(map(origin_shape, found))}, ""
        )
        return
    told = [one for one in found if one.gate]
    if told:
        screen.page("\n".join(origin_lines(screen, told, desk.clock())))
    screen.say(rest_words(found))


def origin_shape(one: Origin) -> dict[str, object]:
    from ...render.shapes import signature_shape

    shape = {"from": one.first, "to": one.last, **vars(one)}
    shape["signature"] = signature_shape(one.signature) if one.signature is not None else None
    return {name: value for name, value in shape.items() if name not in ("first", "last")}


def origin_lines(screen: Screen, found: Sequence[Origin], now: float) -> list[str]:
    """Of each a line with the question, and one with what was decided."""
    from ...text import clip, one_line

    places = [span_words(one) for one in found]
    wide = max(map(len, places))
    lines = []
    for one, place in zip(found, places, strict=True):
        gate, commit = (one.gate or "")[:6], (one.commit or "")[:12]
        asked = one_line(one.question) if one.question else "(its record is not known)"
        lines.append(clip(f"{place:>{wide}}  {gate}  {asked}", screen.width))
        lines.append(clip(f"{'':{wide}}  {decided_words(one, now)} · {commit}", screen.width))
        if not one.verified:
            lines.append(clip(f"{'':{wide}}  NOT VERIFIED: {one_line(one.doubt)}", screen.width))
    return lines


def span_words(one: Origin) -> str:
    return str(one.first) if one.first == one.last else f"{one.first}-{one.last}"


def decided_words(one: Origin, now: float) -> str:
    from ...render import age
    from ...text import one_line

    if one.answer is None:
        return "nobody answered"
    return f"→ {one_line(one.answer, 200)} · {by_words(one.by, one.signature, confirmed=one.confirmed)}, {age(one.at or '', now)} ago"


def by_words(by: str | None, mark: SignatureMark | None, *, confirmed: bool) -> str:
    """Whose answer it is, and what their signature is worth, as a gate's own page says it."""
    from ...model import answerer_words
    from ...text import one_line

    worth = f" ({one_line(mark.words)})" if by and mark is not None else ""
    who = f"{one_line(answerer_words(by or ''))}{worth}"
    return who if confirmed or not by else f"nobody confirmed it; recorded for {who}"


def rest_words(found: Sequence[Origin]) -> str:
    """What is not told of: lines whose commits name no decision, and why more is not known of some."""

    def lines(chosen: Sequence[Origin]) -> int:
        return sum(one.last - one.first + 1 for one in chosen)

    plain = [one for one in found if one.commit and not one.gate and not one.doubt]
    fresh, cut = (
        [one for one in found if not one.commit],
        [one for one in found if not one.gate and one.doubt],
    )
    if not found:
        return "the file is empty"
    said = [
        f"{counted(lines(plain), 'line')} of commits that name no decision" if plain else "",
        f"{counted(lines(fresh), 'line')} not committed yet" if fresh else "",
        f"{counted(lines(cut), 'line')} at the end of this clone's history: git fetch --unshallow"
        if cut
        else "",
    ]
    return "; ".join(part for part in said if part)


@click.command("search")
@click.argument("words", metavar="WORDS", nargs=-1, required=True)
@click.option("--type", "type_", metavar="T", help="Only this type of question.")
@click.option("--by", metavar="WHO", help="Only what WHO answered: a name or an address, or a part of one.")
@click.option("--since", metavar="30d|DATE", help="Only gates asked since then.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    default=20,
    show_default=True,
    help="How many at most.",
)
@verb
def search_command(screen: Screen, words: tuple[str, ...], **flags: Any) -> None:
    """Earlier decisions by words of the question, its options and context, the answer, its note, and remarks.

    Gates in every state, archived ones too; those where the words count most come first, then the newest. All words have to be
    there, each as a word or the beginning of one; several in quotes have to stand together. Case and accents do not matter.

    \b
    git gate search postgres
    git gate search "which database" replica
    git gate search deploy --by ada --since 90d
    git gate search migrat --type approval --limit 5 --json
    """
    from ...audit.earlier import SearchTerms, read_needles, search
    from .lists import type_of

    read_needles(words)
    kind = type_of(flags["type_"], f"git gate search {words[0]}")
    desk = screen.desk()
    since = read_since(flags["since"], desk.clock(), f"git gate search {words[0]}")
    wanted = SearchTerms(words, kind, flags["by"], since, flags["limit"])
    screen.progress("looking through what was asked and answered")
    found, count = search(desk, wanted)
    if screen.as_json:
        screen.emit(
            "search", {"words": list(words), "count": count, "gates": found_shapes(screen, desk, found)}, ""
        )
    elif found:
        from ...policy.ruling import marks

        signed = marks(desk, [one.gate for one in found])
        screen.page(
            "\n".join(line for one in found for line in found_lines(screen, desk, one, wanted, signed))
        )
    screen.say(count_words(count, len(found)))


def found_shapes(screen: Screen, desk: Desk, found: Sequence[FoundDecision]) -> list[dict[str, object]]:
    """As a list has them, and where the words are."""
    from ...record import Summary
    from .lists import whole_gates

    summaries = [Summary(one.gate.id, one.gate.tip, state=one.gate.state) for one in found]
    shapes = whole_gates(screen, desk, summaries)
    return [{**shape, "matched": list(one.matched)} for shape, one in zip(shapes, found, strict=True)]


def found_lines(
    screen: Screen,
    desk: Desk,
    one: FoundDecision,
    wanted: SearchTerms,
    signed: Mapping[str, SignatureMark],
) -> Iterator[str]:
    """The question, what was decided, and the lines where the words stand besides."""
    from ...audit.earlier import passages
    from ...model import UNSIGNED
    from ...questions.answers import printed
    from ...render import STATE_CELLS, STATE_COLORS, age, paint
    from ...text import clip, one_line

    gate, opened = one.gate, one.gate.opened
    head = f"{gate.id[:6]}  {age(opened.asked.at, desk.clock()):>4}  "
    state = paint(f"{gate.state:<{STATE_CELLS}}", STATE_COLORS.get(gate.state, ""), on=screen.colored)
    room = screen.width - len(head) - STATE_CELLS - 2
    question = opened.questions[0].prompt if len(opened.questions) == 1 else opened.title
    yield f"{head}{state}  {clip(one_line(question), room)}"
    if gate.answer is not None:
        said = gate.answer.answer
        by = by_words(said.by, signed.get(gate.answer.signed_commit, UNSIGNED), confirmed=said.confirmed)
        yield clip(f"        → {one_line(printed(opened.questions, said), 200)} · {by}", screen.width)
    for name, passage in passages(gate, wanted.words):
        if name in ("context", "remarks") or (
            name == "title" and len(opened.questions) == 1 and passage != question
        ):
            yield clip(f"        {name}: {one_line(passage)}", screen.width)


def count_words(count: int, shown: int) -> str:
    if not count:
        return "no gate here has these words; every gate here: git gate list --all"
    if count > shown:
        return f"{count - shown} more: --limit {count}"
    return ""


# `git gate stats`: what waits, how long people take, who answers, and what comes of it.


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
