"""Command line: what was decided before: `git gate why` by the lines that came of it, `git gate search` by its words, `git gate stats`
in figures; `git gate fork` asks it once more, `compare` holds two outcomes side by side, `export` has a file for an auditor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...acts.alternatives import compare_gates, fork_gate
from ...acts.sessions import session_facts
from ...audit.bundle import LEFT_OUT, ExportWishes, check_narrowed, export_gates
from ...audit.earlier import SearchTerms, origins, passages, read_asked, read_needles, search
from ...context.targets import never_synced
from ...errors import GateError, Usage
from ...gates.history import statistics
from ...model import UNSIGNED, answerer_words
from ...policy.ruling import marks
from ...questions.answers import printed
from ...record import Summary
from ...render import STATE_CELLS, STATE_COLORS, age, paint, shapes
from ...render.shapes import signature_shape
from ...text import ago, clip, counted, neutral, one_line, parse_since, width, wrap
from .. import DONE
from ..terminal import Screen, complete_ids, tell_trouble, verb, where
from .lists import type_of, whole_gates
from .respond import answer_flags, answer_one, given_in_flags, nameless, tell_answered

if TYPE_CHECKING:
    from ...acts.alternatives import Comparison, GateOutcome
    from ...acts.asking import Asked
    from ...audit.bundle import Exported
    from ...audit.earlier import FoundDecision, Origin
    from ...context import Desk
    from ...gates.history import Figures, Statistics
    from ...model import SignatureMark


@click.command("why")
@click.argument("file", metavar="FILE[:LINE[,LINE]]", type=click.Path())
@click.option(
    "--rev", metavar="REV", help="The file as this commit has it; in a bare repository it is needed."
)
@verb
def why_command(screen: Screen, file: str, rev: str | None) -> None:
    """Show which decisions led to these lines: the question, the answer, who gave it, and the commit that came of it.

    By git's own blame, and the trailers of agents' commits. A trailer is anybody's claim: it counts as verified only where
    the gate's own record names that commit, and holds as `git gate verify` checks it.

    \b
    git gate why src/db.py
    git gate why src/db.py:40
    git gate why src/db.py:40,60 --json
    git gate why --rev v1.2 src/db.py
    """
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
    shape["signature"] = signature_shape(one.signature) if one.signature is not None else None
    return {name: value for name, value in shape.items() if name not in ("first", "last")}


def origin_lines(screen: Screen, found: Sequence[Origin], now: float) -> list[str]:
    """Return two lines for each decision: the question, and what was decided."""
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
    if one.answer is None:
        return "nobody answered"
    return f"→ {one_line(one.answer, 200)} · {by_words(one.by, one.signature, confirmed=one.confirmed)}, {age(one.at or '', now)} ago"


def by_words(by: str | None, mark: SignatureMark | None, *, confirmed: bool) -> str:
    """Return whose answer it is and what their signature is worth, in the words of a gate's own page."""
    worth = f" ({one_line(mark.words)})" if by and mark is not None else ""
    who = f"{one_line(answerer_words(by or ''))}{worth}"
    return who if confirmed or not by else f"nobody confirmed it; recorded for {who}"


def rest_words(found: Sequence[Origin]) -> str:
    """Return the number of lines that the list leaves out, with the reason.

    Their commits name no decision, or they are not committed yet, or this clone's history ends before them.
    """

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
        signed = marks(desk, [one.gate for one in found])
        screen.page(
            "\n".join(line for one in found for line in found_lines(screen, desk, one, wanted, signed))
        )
    screen.say(count_words(count, len(found)))


def found_shapes(screen: Screen, desk: Desk, found: Sequence[FoundDecision]) -> list[dict[str, object]]:
    """Return found gates in the shape that a list has, and where the words are in them."""
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
    """Yield the question, what was decided, and the other lines that have the words."""
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


@click.command("stats")
@click.option("--since", metavar="30d|DATE", help="Only gates asked since then; what waits is counted whole.")
@click.option(
    "--by", "by", type=click.Choice(["agent", "person", "type", "branch"]), help="Each by itself, too."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="json is --json.",
)
@verb
def stats_command(screen: Screen, since: str | None, by: str | None, form: str) -> None:
    """How many gates wait, how long people take to answer, who answers through what, and what comes of it.

    Reckoned from Git alone, archived gates too. A default is nobody's answer, and takes no part in how long people take.

    \b
    git gate stats
    git gate stats --since 30d --by agent
    git gate stats --since 2030-01-31 --by person --json
    """
    desk = screen.desk()
    screen.as_json = screen.as_json or form == "json"
    screen.progress("reading what was asked and answered")
    found = statistics(desk, read_since(since, desk.clock()), by or "")
    groups = [{"name": name, **shape_of(one)} for name, one in found.groups.items()]
    shape = {**shape_of(found.whole), "since": since, "by": by, "groups": groups}
    screen.emit("stats", shape, figures_text(found))


def read_since(said: str | None, now: float, typed: str = "git gate stats") -> float:
    """Read a time: a duration before now, a day, or a moment."""
    if said is None:
        return 0.0

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

    return one_line(name, 50)


def took(one: Figures) -> str:

    if one.median_seconds is None or one.p90_seconds is None:
        return ""
    return f", half within {ago(one.median_seconds)}, nine in ten within {ago(one.p90_seconds)}"


def chart(title: str, counts: Mapping[str, int]) -> list[str]:
    """Return a bar for each count, the longest as wide as the chart."""
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


# The other answer, and a file for an auditor: `git gate fork`, `compare` and `export`.


@click.command("compare")
@click.argument("one_id", metavar="ID", shell_complete=complete_ids)
@click.argument("other_id", metavar="ID", shell_complete=complete_ids)
@click.option("--patch", is_flag=True, help="The whole difference between the two outcomes, not its summary.")
@verb
def compare_command(screen: Screen, one_id: str, other_id: str, patch: bool) -> None:
    """Two gates side by side: what was asked and answered, by whom, what came of each, and how the outcomes differ.

    An outcome is what an agent committed after the answer. Where one is missing, it says why. The difference leads from the first
    outcome to the second.

    \b
    git gate compare 7k2f c3ab
    git gate compare 7k2f c3ab --patch
    """
    desk = screen.desk()
    color = screen.colored and not screen.as_json
    found = compare_gates(desk, one_id, other_id, patch=patch, cells=min(screen.width, 80), color=color)
    if screen.as_json:
        screen.emit("compare", comparison_shape(found, patch=patch), "")
        return
    screen.page("\n".join(comparison_lines(screen, found, desk.clock())))
    if found.doubt:
        screen.say(found.doubt)


def comparison_shape(found: Comparison, *, patch: bool) -> dict[str, object]:
    counts = {name: getattr(found, name) for name in ("files", "insertions", "deletions")}
    return {
        "same_question": not set(found.differs) - {"base", "work"},
        "differs": list(found.differs),
        "gates": [outcome_shape(one) for one in (found.first, found.second)],
        "diff": found.diff,
        "patch": patch,
        **counts,
        "doubt": found.doubt,
    }


def outcome_shape(one: GateOutcome) -> dict[str, object]:
    gate, said = one.gate, one.gate.answer.answer if one.gate.answer is not None else None
    return {
        "id": gate.id,
        "state": gate.state,
        "archived": one.archived,
        "title": gate.opened.title,
        "question": asked_words(one),
        "follows": gate.opened.follows,
        "base": gate.opened.work.base,
        "answer": one.answer,
        "verdict": said.verdict if said is not None else None,
        "note": said.note if said is not None else None,
        "by": (said.by or None) if said is not None else None,
        "at": said.at if said is not None else None,
        "confirmed": said.confirmed if said is not None else False,
        "signature": signature_shape(one.signature) if said is not None and said.by else None,
        "branch": one.branch or None,
        "commits": list(one.commits),
        "files": one.files,
        "insertions": one.insertions,
        "deletions": one.deletions,
        "end": one.end,
        "said": one.said,
        "missing": one.missing,
    }


def asked_words(one: GateOutcome) -> str:
    opened = one.gate.opened
    return opened.questions[0].prompt if len(opened.questions) == 1 else opened.title


def comparison_lines(screen: Screen, found: Comparison, now: float) -> Iterator[str]:
    """Yield a row for each thing that is compared, then what does not fit into one."""
    sides = (found.first, found.second)
    rows = [("", *(one.gate.id for one in sides)), *comparison_rows(found, now)]
    rows = [(name, one_line(left), one_line(right)) for name, left, right in rows if left or right]
    room = max(12, (min(screen.width, 160) - 14) // 2)
    wide = min(room, max(width(left) for _, left, _ in rows))
    for name, left, right in rows:
        shown = clip(left, wide)
        gap = " " * (wide - width(shown))
        yield f"{name:<11} {shown}{gap}  {clip(right, room)}".rstrip()
    for one in sides:
        if one.missing:
            yield f"\nno outcome of {one.gate.id}"
            yield wrap(neutral(one.missing), screen.letter_width, "  ")
        if one.said:
            yield f"\nlast words of {one.gate.id}"
            yield wrap(neutral(one.said), screen.letter_width, "  ")
    if found.diff is None:
        yield "\nno difference to show"
    elif found.diff.strip():
        yield f"\nfrom {found.first.gate.id} to {found.second.gate.id}"
        yield found.diff.rstrip("\n")
    else:
        yield "\nboth came to the same files"


def comparison_rows(found: Comparison, now: float) -> Iterator[tuple[str, str, str]]:
    """Yield the rows that compare two decisions.

    Fields in which the questions differ are named; both questions are shown where their words differ.
    """
    one, other = found.first, found.second
    same = not set(found.differs) - {"base", "work"}
    yield "question", asked_words(one), "the same" if same else asked_words(other)
    yield "differs", ", ".join(found.differs), ""
    yield "state", one.gate.state, other.gate.state
    yield "answer", one.answer or "-", other.answer or "-"
    yield "by", answered_words(one, now), answered_words(other, now)
    yield "note", note_of(one), note_of(other)
    yield "branch", one.branch, other.branch
    yield "commits", commit_words(one), commit_words(other)
    yield "changed", change_words(one), change_words(other)


def answered_words(one: GateOutcome, now: float) -> str:
    if one.gate.answer is None:
        return "nobody"
    said = one.gate.answer.answer
    return f"{by_words(said.by, one.signature, confirmed=said.confirmed)}, {age(said.at, now)} ago"


def note_of(one: GateOutcome) -> str:
    return one.gate.answer.answer.note if one.gate.answer is not None else ""


def commit_words(one: GateOutcome) -> str:
    shown = [oid[:10] for oid in one.commits]
    return " ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")


def change_words(one: GateOutcome) -> str:
    if one.missing:
        return ""
    return f"{counted(one.files, 'file')}, +{one.insertions} -{one.deletions}" if one.commits else "nothing"


@click.command("fork")
@click.argument("gate_id", metavar="ID", shell_complete=complete_ids)
@click.argument("answer", required=False)
@answer_flags
@click.option("--sign/--no-sign", default=None, help="Sign the answer with your key.")
@click.option("--no-resume", is_flag=True, help="Do not resume the agent from here.")
@click.option("--push/--no-push", default=None, help="Insist on pushing, or stay local.")
@verb
def fork_command(screen: Screen, gate_id: str, answer: str | None, **flags: Any) -> int:
    """Answer a question otherwise: a new gate with the question, the work and the conversation of another.

    Its agent goes on from where it asked, on a branch of its own; the first gate, its branch and its conversation stay as they are.
    You are who asks. With an answer, as `git gate respond` takes it, it is answered at once; else it waits. Prints its id.

    \b
    git gate fork 7k2f
    git gate fork 7k2f Postgres --note "what if?"
    """
    flags |= {"message": None, "edit": False, "amend": False, "seen": None, "via": "cli"}
    try:
        given = given_in_flags(answer, flags)
        desk = screen.desk()
        asked = fork_gate(desk, gate_id, None if given.nothing else given, push=flags["push"])
    except Usage as unfit:
        unfit.hint = unfit.hint.replace("git gate respond", "git gate fork")
        raise nameless(unfit) from None
    gate = asked.gate
    screen.say(f"gate {gate.id} asks what gate {gate.opened.forked_from} asked; on {gate.opened.work.branch}")
    if not screen.as_json:
        screen.print(gate.id)
    if given.nothing:
        tell_forked(screen, desk, asked)
        return DONE
    try:
        done = answer_one(screen, desk, gate, given, flags)
    except GateError as refused:
        refused.message = f"gate {gate.id} was opened, and waits: {refused.message}"
        raise
    return tell_answered(screen, desk, done, resume=not flags["no_resume"])


def tell_forked(screen: Screen, desk: Desk, asked: Asked) -> None:
    gate, published = asked.gate, asked.published
    if screen.as_json:
        facts = session_facts(desk, [gate])[gate.id]
        screen.emit("gate", shapes.gate(gate, pushed=published.pushed, **facts), "")
    tell_trouble(screen, published)
    screen.say(f"{where(desk, published)}; to answer it: git gate respond {gate.id[:6]}")
    screen.say_once(desk)


@click.command("export")
@click.argument("gate_ids", metavar="[ID]...", nargs=-1, shell_complete=complete_ids)
@click.option("--since", metavar="90d|DATE", help="Only gates asked, and runs begun, since then.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(),
    default="gates.tar.gz",
    show_default=True,
    help="Where it is written.",
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@verb
def export_command(
    screen: Screen, gate_ids: tuple[str, ...], since: str | None, output: str, force: bool
) -> None:
    """An auditor's bundle: all gates and runs, or those named, in one file that is checked without this program.

    Records as a git bundle, and as JSON and letters; what `git gate verify` says of them, digests, and a page on how to check
    them by plain git and sha256sum. A run brings the gates that it asked. Sessions and partial work are left out, and what is
    left out is said. The same refs give the same bytes. Prints the file's digest, as sha256sum does.

    \b
    git gate export
    git gate export --since 90d -o audit.tar.gz
    git gate export 7k2f -o 7k2f.tar.gz --json
    """
    check_narrowed(gate_ids, since)
    if output == "-":
        raise Usage("- is no file's name here", hint="git gate export -o FILE")
    desk = screen.desk(bulk=True)
    moment = read_since(since, desk.clock(), "git gate export")
    wanted = ExportWishes(gate_ids, moment)
    done = export_gates(desk, wanted, screen.start / Path(output), force=force)
    name = output if done.file is not None else None
    screen.emit("export", exported_shape(done, name), f"{done.sha256}  {name}" if name else "")
    for words in exported_words(desk, done):
        screen.say(words)


def exported_shape(done: Exported, name: str | None) -> dict[str, object]:
    return {**vars(done), "file": name, "tips": dict(done.tips), "left_out": dict(done.left_out)}


def exported_words(desk: Desk, done: Exported) -> Iterator[str]:
    """Yield how much was exported, what does not hold, what is not in the file, and how the file is checked."""
    remote = never_synced(desk)
    if remote is not None:
        yield f"this clone has never synced with {remote}, and knows its own gates alone: git gate sync"
    if done.file is None:
        yield "no gate and no run to export; nothing was written"
        return
    runs = f" and {counted(done.runs, 'run')}" if done.runs else ""
    yield f"{counted(done.gates, 'gate')}{runs}; how to check them stands in its README.txt: tar -xzf FILE"
    if not done.ok:
        yield f"not all of it holds: {counted(done.problems, 'problem')}, in its verify.json"
    for name, why in done.left_out.items():
        if name not in LEFT_OUT:
            yield f"left out: {name}: {why}"
    yield f"left out: {', '.join(LEFT_OUT)} (why: README.txt)"
