"""Command line: the other answer: `git gate fork` asks the same question once more, `git gate compare` holds two outcomes side by
side; and `git gate export`, a file for an auditor.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...errors import GateError, Usage
from ...text import counted
from .. import DONE
from ..terminal import Screen, complete_ids, verb
from .respond import answer_flags

if TYPE_CHECKING:
    from ...acts.alternatives import Comparison, GateOutcome
    from ...acts.asking import Asked
    from ...audit.bundle import Exported
    from ...context import Desk


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
    from ...acts.alternatives import compare_gates

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
    from ...render.shapes import signature_shape

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
    """A row for each thing that is compared, then what does not fit into one."""
    from ...text import clip, neutral, one_line, width, wrap

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
    """What differs of the question is named; both are told where the words do."""
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
    from ...render import age
    from .earlier import by_words

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
    """The same question answered otherwise: a new gate with the question, the work and the conversation of another.

    Its agent goes on from where it asked, on a branch of its own; the first gate, its branch and its conversation stay as they are.
    You are who asks. With an answer, as `git gate respond` takes it, it is answered at once; else it waits. Prints its id.

    \b
    git gate fork 7k2f
    git gate fork 7k2f Postgres --note "what if?"
    """
    from ...acts.alternatives import fork_gate
    from .respond import answer_one, given_in_flags, nameless, tell_answered

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
    from ...acts.sessions import session_facts
    from ...render import shapes
    from ..terminal import tell_trouble, where

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
    from ...audit.bundle import ExportWishes, check_narrowed, export_gates
    from .earlier import read_since

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
    """How much it is, what does not hold, what is not in it, and how it is checked."""
    from ...audit.bundle import LEFT_OUT
    from ...context.targets import never_synced

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
