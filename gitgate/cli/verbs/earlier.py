"""Command line: what was decided before: `git gate why` by the lines that came of it, `git gate search` by its words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ...text.display import counted
from ..terminal.screen import Screen, verb

if TYPE_CHECKING:
    from ...audit.origins import Origin


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
    from ...audit.origins import origins, read_asked

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
    shape = {"from": one.first, "to": one.last, **vars(one)}
    return {name: value for name, value in shape.items() if name not in ("first", "last")}


def origin_lines(screen: Screen, found: Sequence[Origin], now: float) -> list[str]:
    """Of each a line with the question, and one with what was decided."""
    from ...text.display import clip, one_line

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
    from ...render.table import age
    from ...text.display import one_line

    if one.answer is None:
        return "nobody answered"
    by = one_line((one.by or "").partition(" <")[0]) or "nobody (its default)"
    return f"→ {one_line(one.answer, 200)} · {by}, {age(one.at or '', now)} ago"


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
