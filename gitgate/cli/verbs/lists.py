"""Command line: all gates at once: listed by `git gate list`, and by `git gate` without a verb; and `git gate sync`, `archive` and
`verify`, which bring them up to date, fold them away, and check them.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...context.targets import never_synced, remote_of
from ...document import replace
from ...errors import GateError, Usage
from ...model import STATES, UNSIGNED
from ...render import due, is_beginning, table
from ...store.git.refs import OPEN
from ...store.remote import tracking_base
from ...text import ago, counted, format_time, neutral, one_line, wrap
from .. import DONE, FAILURE
from ..terminal import Screen, VerbCommand, complete_ids, read_duration, verb

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...audit import Verified
    from ...context import Desk
    from ...exchange import Synced
    from ...exchange.syncing import Freshness
    from ...gates import Filter
    from ...model.gate import Gate
    from ...record import Summary


MOST_IN_OVERVIEW = 20


@click.command("list", cls=VerbCommand)
@click.option("-v", "--verbose", is_flag=True, help="With title and context.")
@click.option("--all", "all_", is_flag=True, help="Any state, archived ones too.")
@click.option(
    "--state", "states", multiple=True, type=click.Choice(STATES), help="Only this state; repeatable."
)
@click.option("--awaiting", is_flag=True, help="Only those that wait for an answer.")
@click.option("--type", "type_", metavar="T", help="Only this type of question.")
@click.option("--branch", metavar="B", help="Only work on this branch.")
@click.option("--pr", type=click.IntRange(min=1), metavar="N", help="Only those of this pull request.")
@click.option("--mine", is_flag=True, help="Only those that I may answer.")
@click.option("--asked-by", metavar="WHO", help="Only those that WHO asked.")
@click.option("--everywhere", is_flag=True, help="In every repository that `git gate init` knows.")
@click.option("--sync", "sync_", is_flag=True, help="Fetch and push first.")
@click.option("--runs", is_flag=True, help="Runs of flows instead of gates.")
@click.option("--active", is_flag=True, help="With --runs: only those that are not over.")
@verb
def list_command(screen: Screen, **flags: Any) -> None:
    """List what waits or needs a person, most pressing first.

    \b
    git gate list
    git gate list --all --asked-by backend
    git gate list --state failed --json
    git gate list --runs --active
    """
    if flags["runs"] or flags["active"]:
        from .run import list_runs

        if not flags["runs"]:
            raise Usage("--active is about runs", hint="git gate list --runs --active")
        refuse_beside_runs(flags)
        list_runs(screen, active=flags["active"], archived=flags["all_"])
        return
    if flags["everywhere"]:
        list_everywhere(screen, flags)
        return
    gc.disable()  # What is read is shown, and then this process ends: to look for garbage takes a fifteenth of a long list.
    desk = screen.desk(bulk=screen.as_json)
    from ...exchange.syncing import freshness

    known = None if flags["sync_"] else looked(screen, desk)
    found = gather(screen, desk, flags)
    known = freshness(desk) if flags["sync_"] else known
    if screen.as_json:
        screen.emit("list", {"gates": whole_gates(screen, desk, found), "synced": age_shape(known)}, "")
    elif found:
        screen.page("\n".join(lines_of(screen, desk, found, verbose=flags["verbose"])))
    if not found:
        screen.say(nothing(desk, filtered=is_filtered(flags)))
    hand_stalled_on(screen, desk, found)
    tell_age(screen, desk, known)
    screen.say_once(desk)


OF_GATES = {
    "states": "--state",
    "awaiting": "--awaiting",
    "type_": "--type",
    "branch": "--branch",
    "pr": "--pr",
    "mine": "--mine",
    "asked_by": "--asked-by",
}
BESIDE_RUNS = {
    "everywhere": ("--everywhere", "git gate -C DIR list --runs"),
    "sync_": ("--sync", "git gate sync   then: git gate list --runs"),
}


def refuse_beside_runs(flags: dict[str, Any]) -> None:
    """Refuse flags that choose among gates together with `--runs`: they choose no run, but the list would look chosen."""
    for name, flag in OF_GATES.items():
        if flags[name]:
            raise Usage(
                f"{flag} is about gates, and --runs lists runs",
                hint=f"git gate list --runs --active   or of gates: git gate list {flag}{'' if flags[name] is True else ' …'}",
            )
    for name, (flag, instead) in BESIDE_RUNS.items():
        if flags[name]:
            raise Usage(f"{flag} does nothing beside --runs", hint=instead)


def gather(screen: Screen, desk: Desk, flags: dict[str, Any]) -> list[Summary]:
    """Return the gates that the flags choose; with --all those of the archive come last."""
    from ... import gates as listing

    if flags["sync_"]:
        from ...exchange.syncing import sync

        screen.progress("syncing first …")
        sync(desk)
    chosen = filter_of(desk, flags)
    found = listing.list_gates(desk, chosen)
    if flags["mine"]:
        from ...policy.permit import mine

        found = mine(desk, found)
    found = listing.own_word_last(desk, found)
    return [*found, *listing.archived(desk, chosen)] if chosen.all else found


def filter_of(desk: Desk, flags: dict[str, Any]) -> Filter:
    from ...gates import Filter

    return Filter(
        all=flags["all_"],
        states=(*flags["states"], *(("awaiting",) if flags["awaiting"] else ())),
        type=type_of(flags["type_"]),
        branch=flags["branch"],
        pull_request=flags["pr"],
        mine=desk.person() if flags["mine"] else None,
        asked_by=flags["asked_by"],
    )


def is_filtered(flags: dict[str, Any]) -> bool:
    return any(
        value for name, value in flags.items() if name not in ("verbose", "sync_", "all_", "everywhere")
    )


def type_of(given: str | None, typed: str = "git gate list") -> str | None:
    if given is None:
        return None
    from ...questions.types import TYPES, type_name

    name = type_name(given)
    if name is None:
        raise Usage(
            f"{given!r} is not a type of question; expected one of {', '.join(TYPES)}",
            hint=f"{typed} --type choice",
        )
    return name


def lines_of(screen: Screen, desk: Desk, found: Sequence[Summary], *, verbose: bool) -> list[str]:
    """Return a line for each gate; verbose, with its title and context below."""
    head, *body = table(found, desk.clock(), screen.width, color=screen.colored)
    if not verbose:
        return [head, *body]
    lines = [head]
    for summary, line in zip(found, body, strict=True):
        question = one_line(summary.question)
        whole = [] if question in line else [wrap(question, screen.letter_width, "    ")]
        lines += ["", line, *whole, *beneath(screen, desk, summary)]
    return lines


def beneath(screen: Screen, desk: Desk, summary: Summary) -> list[str]:
    cells = screen.letter_width
    title = one_line(summary.title)
    same = is_beginning(title, one_line(summary.question))
    lines = [] if same else [wrap(f"title: {title}", cells, "    ")]
    try:
        gate = desk.records.load(summary.id, summary.tip)
    except GateError as broken:
        return [*lines, wrap(neutral(broken.message), cells, "    ")]
    if gate.opened.run:
        step = one_line(str(gate.opened.config.get("step") or ""))
        lines.append(wrap(f"run {gate.opened.run}{f', step {step}' if step else ''}", cells, "    "))
    if gate.opened.context.strip():
        lines.append(wrap(neutral(gate.opened.context.strip()), cells, "    "))
    options = ", ".join(one_line(label) for question in gate.opened.questions for label in question.labels)
    if options:
        lines.append(wrap(f"options: {options}", cells, "    "))
    if summary.type == "session" and summary.state == "awaiting":
        lines.append(f"    talk it over: git gate join {summary.id[:6]}")
    if summary.later:
        lines.append(f"    later until {summary.later}")
    if summary.deadline:
        left = due(summary.deadline, desk.clock())
        lines.append(f"    {left}, at {summary.deadline}; then: {summary.on_timeout}")
    if gate.answer is not None and gate.answer.answer.by:
        from ...policy.ruling import marks

        mark = marks(desk, [gate]).get(gate.answer.signed_commit, UNSIGNED)
        lines.append(f"    answered by {one_line(gate.answer.answer.by)} ({one_line(mark.words)})")
    return lines


def whole_gates(screen: Screen, desk: Desk, found: Sequence[Summary]) -> list[dict[str, object]]:
    """Return the found gates in full, in the shape of JSON.

    A broken record is reported and left out: nothing is decided from it.
    """
    from ...acts.sessions import session_facts
    from ...policy.ruling import marks
    from ...render.shapes import gate as gate_shape

    remote = remote_of(desk)
    base = f"{tracking_base(remote)}open/" if remote else ""
    theirs = desk.refs.under(base) if base else {}
    here = desk.refs.under(OPEN)
    gates: list[Gate] = []
    for summary in found:
        try:
            gate = desk.records.load(summary.id, summary.tip)
        except GateError as broken:
            screen.warn(f"{summary.id}: {broken.message}")
            continue
        gates.append(gate)
    signed, facts = marks(desk, gates), session_facts(desk, gates)
    stalled = {summary.id for summary in found if summary.state == "stalled"}
    listed = []
    for gate in gates:
        folded = OPEN + gate.id not in here
        pushed = folded or theirs.get(base + gate.id) == gate.tip
        shape = gate_shape(
            gate, pushed=pushed, signed=signed, archived=folded, transcript=False, **facts[gate.id]
        )
        listed.append({**shape, "stalled": gate.id in stalled})
    return listed


def nothing(desk: Desk, *, filtered: bool) -> str:
    """Return the words for an empty list.

    `nothing waits` would be a lie in a clone that never heard of the gates of its remote.
    """
    remote = never_synced(desk)
    if remote is not None:
        return f"nothing waits here, and this clone has never synced with {remote}: git gate sync"
    if filtered:
        return "no gate fits; every gate here: git gate list --all"
    return "nothing waits for you"


def overview(screen: Screen) -> None:
    """Print the state in a line, the waiting list, and the next command to type."""
    from ...gates import Filter, list_gates, own_word_last, troubled_runs

    desk = screen.desk()

    known = looked(screen, desk)
    every = list_gates(desk, Filter(all=True))
    counts: dict[str, int] = {}
    for summary in every:
        counts[summary.state] = counts.get(summary.state, 0) + 1
    pressing = [summary for summary in every if summary.state in ("awaiting", "failed", "stalled", "broken")]
    pressing = own_word_last(desk, pressing)
    if screen.as_json:
        plain = replace(screen, quiet=True)
        shape = whole_gates(plain, screen.desk(bulk=True), pressing)
        fields = {"counts": counts, "runs": troubled_runs(desk), "gates": shape, "synced": age_shape(known)}
        screen.emit("overview", fields, "")
    else:
        lines, runs = overview_lines(screen, desk, counts, pressing), troubled_runs(desk)
        lines[0] += "".join(f" · {counted(n, 'run')} {status}" for status, n in runs.items())
        if runs and not pressing:
            lines[-1] = "next: git gate list --runs"
        screen.emit("overview", {}, "\n".join(lines))
    hand_stalled_on(screen, desk, pressing)
    tell_age(screen, desk, known)
    screen.say_once(desk)


def overview_lines(
    screen: Screen, desk: Desk, counts: dict[str, int], pressing: Sequence[Summary]
) -> list[str]:
    others = sum(is_others(summary) for summary in pressing)
    lines = [state_line(counts, others) or nothing(desk, filtered=False)]
    if not pressing:
        done = counts.get("resumed", 0)
        if done:
            lines[0] += f" · {done} resumed"
        return [*lines, "next: git gate show" if done else 'next: git gate ask "…"   or: git gate -h']
    lines += ["", *table(pressing[:MOST_IN_OVERVIEW], desk.clock(), screen.width, color=screen.colored), ""]
    more = len(pressing) - MOST_IN_OVERVIEW
    return [
        *lines,
        f"next: {next_command(pressing[0])}{f'   ({more} more: git gate list)' if more > 0 else ''}",
    ]


def is_others(summary: Summary) -> bool:
    """Return whether a gate waits for somebody else: the person here has answered it."""
    return summary.state == "awaiting" and bool(summary.outcome)


def state_line(counts: dict[str, int], others: int = 0) -> str:
    """Return the state in a line, such as `2 wait for you · 1 waits for others · 1 resuming · 1 failed`."""
    waiting = counts.get("awaiting", 0) - others
    found = ((waiting, "for you"), (others, "for others"))
    words = [f"{count} wait{'s' if count == 1 else ''} {whom}" for count, whom in found if count]
    words += [
        f"{counts[state]} {state}"
        for state in ("answered", "resuming", "stalled", "failed", "broken")
        if counts.get(state)
    ]
    return " · ".join(words)


def next_command(first: Summary) -> str:
    if first.state == "broken":
        return "git gate verify"
    verb = "join" if first.type == "session" and first.state == "awaiting" else "show"
    return f"git gate {verb} {one_line(first.id[:6])}"


def list_everywhere(screen: Screen, flags: dict[str, Any]) -> None:
    """Print one list for each repository, under its place. One that cannot be read is reported, and the others go on."""
    from ...context.machine import repositories

    parts: list[str] = []
    gates: list[dict[str, object]] = []
    known = repositories(screen.env)
    for place in known:
        try:
            desk = replace(screen, directory=str(place)).desk(bulk=screen.as_json)
            found = gather(screen, desk, flags)
            if screen.as_json:
                gates += [{**gate, "repository": str(place)} for gate in whole_gates(screen, desk, found)]
            elif found:
                parts.append(
                    "\n".join([place_name(place), *lines_of(screen, desk, found, verbose=flags["verbose"])])
                )
        except GateError as unreadable:
            screen.warn(f"{place}: {unreadable.message}")
    screen.emit("list", {"gates": gates}, "")
    if parts:
        screen.page("\n\n".join(parts))
    elif not screen.as_json:
        screen.say(
            f"nothing waits for you in {counted(len(known), 'repository')}"
            if known
            else "no repository is known: git gate init in each"
        )


def place_name(place: Path) -> str:
    return one_line(str(place))


# `git gate sync`, and how fresh a list is; `git gate archive` and `verify`.


FEW, LOOK_THROUGH_EVERY = 500, 60.0
WORTH_SAYING = 60  # seconds; what is younger is as good as now


def looked(screen: Screen, desk: Desk) -> Freshness | None:
    """Return how fresh this clone's knowledge is. On a terminal look for news first, within `gitgate.fresh`."""
    from ...exchange.syncing import freshness, look_for_news

    known = freshness(desk)
    within = desk.settings.span("fresh") if screen.watched else 0.0
    if known is None or not within:
        return known
    try:
        with screen.waiting(f"looking for news at {known.remote}"):
            return look_for_news(desk, known, within)
    except KeyboardInterrupt:  # whoever does not want to wait for it wants to see what is known
        return known


def tell_age(screen: Screen, desk: Desk, known: Freshness | None) -> None:
    """Say until when the shown list is true.

    Say nothing where there is nobody else to hear from, or where nothing was ever heard: an empty list says that
    itself.
    """
    if known is None or (known.at is None and not known.trouble):
        return
    age = f"as of {ago(desk.clock() - known.at)} ago" if known.at is not None else "as known here alone"
    if known.trouble:
        screen.say(f"{age}: {known.trouble}; to try again: git gate sync")
    elif known.heard is None and known.at is not None and desk.clock() - known.at >= WORTH_SAYING:
        screen.say(f"{age}, from {known.remote}; to look again: git gate sync")
    elif known.heard is not None:
        new, updated = len(known.heard.new), len(known.heard.updated)
        words = " · ".join(f"{n} {word}" for n, word in ((new, "new"), (updated, "updated")) if n)
        screen.say(f"as of now, from {known.remote}{f': {words}' if words else ''}")
        for lost in known.heard.lost:
            screen.warn(f"somebody was first; without effect: {lost}")
        for late in known.heard.late:
            screen.warn(f"kept, and without effect: {late}")
        tell_doubted(screen, known.heard)


def tell_doubted(screen: Screen, done: Synced) -> None:
    for gate, why in done.doubted.items():
        screen.warn(f"{gate}: {why}; lists here go by the record: git gate verify")


def hand_stalled_on(screen: Screen, desk: Desk, found: Iterable[Summary]) -> None:
    """Hand stalled gates and due runs to a runner that can go on with them, and say so.

    They are not left to whoever reads the list.
    """
    stalled = [summary for summary in found if summary.state == "stalled"]
    if stalled:
        from ...resumption.calls import hand_on

        for words in hand_on(desk, stalled):
            screen.say(words)
    from ...gates import due_runs

    if due_runs(desk):
        from ...resumption.calls import wake_due

        for words in wake_due(desk):
            screen.say(words)


def hand_on_all(screen: Screen, desk: Desk, done: Synced) -> None:
    """Hand on what stands still in the whole clone, after a sync.

    To look through thousands of gates takes longer than the sync. With many gates, the look is taken once a minute, and
    a sync that has just carried many leaves it to the next one.
    """
    from ...gates import Filter, list_gates
    from ...gates.leases import LOOKED_THROUGH, is_time

    carried = len(done.pushed) + len(done.new) + len(done.updated)
    if done.open <= FEW or (carried <= FEW and is_time(desk, LOOKED_THROUGH, LOOK_THROUGH_EVERY)):
        # The index is for whoever reads lists: the first of them makes it.
        hand_stalled_on(screen, desk, list_gates(desk, Filter(), begin=False))


def age_shape(known: Freshness | None) -> dict[str, object] | None:
    if known is None:
        return None
    return {"remote": known.remote, "at": None if known.at is None else format_time(known.at)}


@click.command("sync", cls=VerbCommand)
@click.argument("remote", required=False)
@click.option(
    "--put-aside", "aside", metavar="ID", help="Of this gate, put aside what the remote does not take."
)
@verb
def sync_command(screen: Screen, remote: str | None, aside: str | None) -> int:
    """Fetch and push gates, and bring the two sides together. Never loses a local one.

    \b
    git gate sync
    git gate sync origin
    """
    from ...exchange.syncing import sync

    desk = screen.desk()
    done = sync(desk, remote, aside=aside)
    if screen.as_json:
        from dataclasses import asdict

        fields = asdict(done)
        del fields["open"]
        screen.emit("sync", fields, "")
    for gate, reason in {**done.refused, **done.broken}.items():
        screen.warn(f"{gate}: {reason}")
    for words in done.lost:
        screen.warn(f"somebody was first; without effect: {words}")
    for words in done.late:
        screen.warn(f"kept, and without effect: {words}")
    tell_doubted(screen, done)
    for one in done.aside:
        screen.warn(one.words)
    for gate in done.restored:
        screen.warn(
            f"{gate}: it was gone from {done.remote}, where nobody had archived it; now it is there again"
        )
    stuck = [gate for gate in done.refused if done.lacks_objects(gate)]
    if stuck:
        screen.say("the remote cannot read what these stand on; what is in the way: git gate doctor")
    for gate in done.refused:
        if gate not in done.broken and gate not in stuck:
            screen.say(f"to go on without what was said here: git gate sync --put-aside {gate[:6]}")
    parts = {"new": done.new, "updated": done.updated, "pushed": done.pushed, "archived": done.archived}
    words = " · ".join(f"{len(found)} {name}" for name, found in parts.items() if found)
    screen.say(f"{done.remote}: {words or 'nothing new'}")
    hand_on_all(screen, desk, done)
    return 1 if done.refused or done.broken or (done.aside and aside is None) else 0


@click.command("archive", cls=VerbCommand)
@click.option(
    "--older-than", metavar="7d", help="Only gates that closed, and runs that ended, at least so long ago."
)
@verb
def archive_command(screen: Screen, older_than: str | None) -> int:
    """Fold closed gates and ended runs away, month by month. They stay readable: list --all, list --runs --all, show, log.

    \b
    git gate archive
    git gate archive --older-than 7d
    """
    from ...sharing.archiving import fold_closed

    desk = screen.desk(bulk=True)
    least = (
        read_duration(older_than, "--older-than", "7d")
        if older_than is not None
        else desk.settings.seconds("archiveAfter") or 0
    )
    done = fold_closed(desk, older_than=least)
    fields = {"remote": done.remote, "folded": done.folded, "runs": done.runs, "kept": done.kept}
    screen.emit("archive", fields, "")
    for gate, reason in done.kept.items():
        screen.warn(f"{gate}: {reason}")
    where = f" (here and on {done.remote})" if done.remote else ""
    found = [(done.folded, "gate"), (done.runs, "run")]
    words = " and ".join(counted(len(ids), what) for ids, what in found if ids)
    screen.say(f"folded {words}{where}" if words else "no closed gate to fold")
    return 1 if done.kept else 0


@click.command("verify", cls=VerbCommand)
@click.argument("gate_ids", metavar="[ID]...", nargs=-1, shell_complete=complete_ids)
@click.option(
    "--branch", metavar="B", help="As a check in CI: every gate of this branch is resolved, and holds."
)
@verb
def verify_command(screen: Screen, gate_ids: tuple[str, ...], branch: str | None) -> int:
    """Check every gate, open and archived, and the journal of every run; exit 1 names what is wrong.

    Chain, ids, bindings, messages, work, signatures, and that nothing is there twice or without its gate.

    \b
    git gate verify
    git gate verify 7k2f
    git gate verify --branch main
    """
    from ...audit.auditing import audit, refuse_unsynced

    desk = screen.desk(bulk=True)
    if branch is not None:
        refuse_unsynced(desk)
    done = audit(desk, gate_ids, branch)
    screen.emit("verify", done.shape(), "\n".join(one_line(problem.line) for problem in done.problems))
    for note in done.notes:
        screen.say(f"note: {one_line(note.line)}")
    screen.say(verified_words(done))
    return DONE if done.ok else FAILURE


def verified_words(done: Verified) -> str:
    words = [counted(done.gates, "gate"), *([counted(done.runs, "run")] if done.runs else [])]
    words += [counted(done.events, "event")]
    words += [counted(count, f"{word} signature") for word, count in sorted(done.signatures.items())]
    wrong = counted(len(done.problems), "problem") if done.problems else "nothing is wrong"
    return f"{', '.join(words)}: {wrong}"
