"""Command line: `git gate sync`, `archive` and `verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .. import DONE, FAILURE
from ..terminal import Screen, complete_ids, read_duration, verb

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...audit import Verified
    from ...context import Desk
    from ...exchange import Synced
    from ...exchange.syncing import Freshness
    from ...record import Summary


FEW, LOOK_THROUGH_EVERY = 500, 60.0
WORTH_SAYING = 60  # seconds; what is younger is as good as now


def looked(screen: Screen, desk: Desk) -> Freshness | None:
    """How fresh what is known here is. On a terminal news are looked for first, within `gitgate.fresh`."""
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
    """Until when what was shown is true. Silent where there is nobody else to hear from, or nothing was ever heard:
    that an empty list says itself.
    """
    if known is None or (known.at is None and not known.trouble):
        return
    from ...text import ago

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
    """What stands still is not left to whoever reads the list, where somebody else can go on with it."""
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


def hand_on_all(screen: Screen, desk: Desk, known: int) -> None:
    """The same after a sync. To look through thousands of gates takes longer than the sync: once a minute will do."""
    from ...gates import Filter, list_gates
    from ...gates.leases import LOOKED_THROUGH, is_time

    if known <= FEW or is_time(desk, LOOKED_THROUGH, LOOK_THROUGH_EVERY):
        # The index is for whoever reads lists: the first of them makes it.
        hand_stalled_on(screen, desk, list_gates(desk, Filter(), begin=False))


def age_shape(known: Freshness | None) -> dict[str, object] | None:
    from ...text import format_time

    if known is None:
        return None
    return {"remote": known.remote, "at": None if known.at is None else format_time(known.at)}


@click.command("sync")
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
    from dataclasses import asdict

    from ...exchange.syncing import sync

    desk = screen.desk()
    done = sync(desk, remote, aside=aside)
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
    stuck = [gate for gate, reason in done.refused.items() if "missing necessary objects" in reason]
    if stuck:
        screen.say("the remote cannot read what these stand on; what is in the way: git gate doctor")
    for gate in done.refused:
        if gate not in done.broken and gate not in stuck:
            screen.say(f"to go on without what was said here: git gate sync --put-aside {gate[:6]}")
    parts = {"new": done.new, "updated": done.updated, "pushed": done.pushed, "archived": done.archived}
    words = " · ".join(f"{len(found)} {name}" for name, found in parts.items() if found)
    screen.say(f"{done.remote}: {words or 'nothing new'}")
    hand_on_all(screen, desk, done.open)
    return 1 if done.refused or done.broken or (done.aside and aside is None) else 0


@click.command("archive")
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
    from ...text import counted

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


@click.command("verify")
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
    from ...text import one_line

    screen.emit("verify", done.shape(), "\n".join(one_line(problem.line) for problem in done.problems))
    for note in done.notes:
        screen.say(f"note: {one_line(note.line)}")
    screen.say(summary(done))
    return DONE if done.ok else FAILURE


def summary(done: Verified) -> str:
    from ...text import counted

    words = [counted(done.gates, "gate"), *([counted(done.runs, "run")] if done.runs else [])]
    words += [counted(done.events, "event")]
    words += [counted(count, f"{word} signature") for word, count in sorted(done.signatures.items())]
    wrong = counted(len(done.problems), "problem") if done.problems else "nothing is wrong"
    return f"{', '.join(words)}: {wrong}"
