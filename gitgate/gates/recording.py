"""Gates: one more event on one gate, or the one that its deadline calls for; and the process that tells people of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from .. import text
from ..context import Desk
from ..context.targets import unknown_gate
from ..errors import GateError, LostRace, RefLocked, Usage
from ..model.gate import Answer, Edit, Event, Gate, Remark
from ..store import read_local
from ..store.git.refs import OPEN
from ..store.records import MOST_EVENTS, NOBODY, Signature
from ..store.remote import RefMove
from ..text import one_line

# One more event on one gate: objects first, then one ref transaction with the value that was read. And
# the event that a deadline calls for: it acts whenever anything looks at the gate, and silence is never
# consent.


# Git waits two seconds for a lock; one that stays so often in a row is nobody's.
MOST_LOCKED = 5
TRIES = 64  # each lost try is somebody else's success, so that all of many at once get their turn


def record(
    desk: Desk,
    gate: Gate,
    decide: Callable[[Gate], tuple[str, Event]],
    *,
    who: str,
    sign: bool = False,
    also: Sequence[RefMove] = (),
    approve: Callable[[Gate], None] | None = None,
) -> Gate:
    """Append what `decide` makes of the gate as it now is; after a lost race it is asked again about the new state."""
    locked = 0
    for _ in range(TRIES):
        try:
            return append(desk, gate, *decide(gate), who=who, sign=sign, also=also, approve=approve)
        except LostRace as lost:
            before, gate = gate, reload(desk, gate.id)
            locked = times_locked(locked, lost, before, gate)
            if locked == MOST_LOCKED:
                raise
    raise LostRace(f"gate {gate.id} keeps being changed by others", hint=f"git gate show {gate.id}")


def times_locked(before: int, lost: LostRace, gate: Gate, now: Gate) -> int:
    """Count the attempts in a row that failed only because of a lock."""
    return before + 1 if isinstance(lost, RefLocked) and gate.tip == now.tip else 0


def append(
    desk: Desk,
    gate: Gate,
    name: str,
    event: Event,
    *,
    who: str = "",
    sign: bool = False,
    also: Sequence[RefMove] = (),
    approve: Callable[[Gate], None] | None = None,
) -> Gate:
    """One more event on exactly this gate; LostRace when it has moved. `approve` may refuse it as it was written."""
    after = desk.records.write_event(gate, name, event, Signature(who or NOBODY, desk.at, sign))
    if approve is not None:
        approve(after)
    desk.refs.update([RefMove(OPEN + gate.id, after.tip, gate.tip), *also])
    return after


def reload(desk: Desk, gate: str) -> Gate:
    tip = desk.refs.get(OPEN + gate)
    if tip is None:
        raise unknown_gate(desk, gate)
    return desk.records.load(gate, tip)


VIA = "deadline"
DAY = 86_400
SHORTEST = 60
DOUBLINGS = 12  # from a minute, that is more than a day
MOST_REMINDERS = MOST_EVENTS // 2  # a record's room is for answers; who never looks is no longer reminded


NEVER = "0000"  # before every moment


@contextmanager
def judged_at(desk: Desk, moment: str = NEVER) -> Iterator[None]:
    """Deadlines are judged by `moment` in here: what somebody wrote in time counts, although it is read later."""
    before, desk.judged = desk.judged, moment
    try:
        yield
    finally:
        desk.judged = before


def past_due(desk: Desk, gate: Gate) -> bool:
    return (
        gate.state == "awaiting" and gate.deadline is not None and gate.deadline <= (desk.judged or desk.now)
    )


def act(desk: Desk, gate: Gate) -> Gate:
    """The gate after its deadline, if that has passed; otherwise the gate."""
    locked = 0
    for _ in range(TRIES):
        if locked == MOST_LOCKED or not past_due(desk, gate):
            return gate
        try:
            return append(desk, gate, *due(desk, gate))
        except LostRace as lost:
            # Another process looked at the same moment, or somebody answered: what is there now may not be due.
            before, gate = gate, reload(desk, gate.id)
            locked = times_locked(locked, lost, before, gate)
    return gate


def due(desk: Desk, gate: Gate) -> tuple[str, Event]:
    """The event that the passed deadline calls for. A default without permission falls back to `stuck`."""
    how = gate.opened.on_timeout
    if how in ("remind", "defer") and len(gate.history) < MOST_REMINDERS:
        return "reminded", reminder(desk, gate, aside=how == "defer")
    if how == "default" and may_default(desk, gate):
        values = {q.key: q.default for q in gate.opened.questions if q.default is not None}
        return "answered", Answer(
            gate=gate.id, values=values, verdict="defaulted", at=desk.now, seen=gate.tip, via=VIA
        )
    return "expired", Remark(at=desk.now, text="nobody answered before the deadline", via=VIA)


def reminder(desk: Desk, gate: Gate, *, aside: bool) -> Edit:
    """A new deadline, a term after the moment until which the gate was put aside, or is put aside by this for as long."""
    term, now = next_term(gate), desk.clock()
    until = now + term if aside else max(now, text.parse_time(gate.later)) if gate.later else now
    later = text.format_time(until) if aside else None
    return Edit(at=desk.now, deadline=text.format_time(until + term), later=later)


def next_term(gate: Gate) -> int:
    """Return the time until the next reminder: each time twice as long, up to a day. Whoever asks for a second is not
    to get a commit of the record for each; a term of more than a day stays what it is.
    """
    given = gate.timeout or DAY
    so_far = 0
    for entry in reversed(gate.history):
        if entry.name == "edited" and isinstance(entry.event, Edit) and entry.event.timeout is not None:
            break  # a person set another term, which begins anew
        so_far += entry.name == "reminded"
    return max(given, min(DAY, max(SHORTEST, given) << min(so_far, DOUBLINGS)))


def may_default(desk: Desk, gate: Gate) -> bool:
    """Every question declared one, and the policy speaks for it; for an approval somebody has to have said so."""
    if any(question.default is None for question in gate.opened.questions):
        return False
    from ..policy import load_book
    from ..policy.permit import default_ruling

    return default_ruling(desk, load_book(desk), gate).allowed


# Whether people are to hear of gates from here, and a process that tells them (`surfaces.notify`).
#
# Nothing is loaded, and nothing started, where nobody is to be told. What addresses are called is said
# here as well: a question may name them, and brings none along.


NAMED = r"(?s)([A-Za-z][A-Za-z0-9_-]{0,39})=(.*)"


def tell_people(desk: Desk) -> None:
    """Have those told who want to hear of gates (`surfaces.notify`), by a process that nobody waits for; none is started
    where nobody is to be told.
    """
    if not is_told_of(desk):
        return
    with suppress(OSError):  # what waits is told by the next one
        start_sender(desk.repo.place, desk.settings.env, desk.repo.state_dir / "logs" / "notify.log")


def start_sender(place: Path, env: Mapping[str, str], log: Path) -> None:
    """Start a process of its own that sends. The repository is named: who pushes need not be who owns it."""
    from ..agents import without_caller
    from ..store.git.programs import detach, our_command

    bare = {"GIT_DIR": str(place)} if (place / "objects").is_dir() else {}
    detach(our_command("hook", "notify", at=place), place, {**without_caller(env), **bare}, log)


def is_told_of(desk: Desk) -> bool:
    """Return whether a notification may have to be sent from here: by this machine's configuration, or on a server by
    its branch too.
    """
    if "gitgate.notify" in desk.settings.git or desk.settings.flag("notify.shared"):
        return True
    return desk.settings.flag("server") and branch_tells(desk)


def branch_tells(desk: Desk) -> bool:
    """Return whether the protected branch may configure notifications. It is read only after it moved: other pushes
    start no git for this.
    """
    from ..policy import protected_refs

    refs = protected_refs(desk)
    known = desk.repo.state_dir / "told-by-branch"
    now = stamp(desk, refs)
    with suppress(OSError, ValueError):
        before, _, word = read_local(known).decode("utf-8").rpartition(" ")
        if before == now:
            return word == "yes"
    from ..config import FILE
    from ..document import may_have
    from ..store import private_folder
    from ..store.git.protected import read_protected

    found = read_protected(desk.refs, desk.records.objects, FILE, refs)
    tells = found is not None and may_have(found.data, "notify")
    with suppress(OSError):
        private_folder(known.parent)
        known.write_text(f"{now} {'yes' if tells else 'no'}", "utf-8")
    return tells


def stamp(desk: Desk, refs: Sequence[str]) -> str:
    """Return a stamp that changes when one of these branches moves: git replaces each file that stores a branch's
    position.
    """
    said = []
    for name in ("HEAD", "packed-refs", "reftable/tables.list", *refs):
        try:
            found = (desk.repo.common_dir / name).stat()
        except OSError:
            said.append("-")
        else:
            said.append(f"{found.st_mtime_ns}:{found.st_ino}:{found.st_size}")
    return " ".join(said)


def check_names(desk: Desk, names: Sequence[str]) -> None:
    """Usage where a question names nobody who is known here, by this machine or by the protected branch."""
    for name in names:
        if not name.replace("_", "").replace("-", "").isalnum():
            raise Usage(
                f"--notify {one_line(name, 40)!r}: expected the name of an address, and no address",
                hint="their names: git gate notify",
            )
    known = names_here(desk) if names else []
    unknown = [name for name in names if name not in known]
    if known and unknown:  # who knows none leaves it to the server
        raise Usage(
            f"--notify {unknown[0]}: no address is called so here; there are {', '.join(known)}",
            hint="see them: git gate notify   another one: a name and an address in `notify:` of .gitgate.yml, on the protected branch",
        )


def names_here(desk: Desk) -> list[str]:
    """Return the names of the notification addresses that this machine's configuration and the protected branch
    define.
    """
    from ..config import FILE
    from ..document import codec, may_have
    from ..policy import protected_refs
    from ..store.git import machine_values
    from ..store.git.protected import read_protected

    lines = machine_values(desk.repo, r"^gitgate\.notify$").get("gitgate.notify", [])
    found = [named[1] if (named := re.fullmatch(NAMED, line.strip())) else usual_name(line) for line in lines]
    with suppress(GateError):
        branch = read_protected(desk.refs, desk.records.objects, FILE, protected_refs(desk))
        if branch is not None and may_have(branch.data, "notify"):
            section = codec.parse_document(branch.data, branch.source).get("notify")
            for entry in section.items() if section is not None else []:
                name, address = entry.get("name"), entry.get("address")
                if name is not None or address is not None:
                    found.append(name.text() if name is not None else usual_name(address.text()))  # type: ignore[union-attr]
    return sorted(set(found))


def usual_name(address: str) -> str:
    """Return the name of an address without one: its first word, for a chat the part before `://`."""
    word = address.strip().partition(" ")[0]
    scheme, chat, _ = word.partition("://")
    if not chat:
        return word
    return scheme if re.fullmatch(NAMED, f"{scheme}=") else "apprise"
