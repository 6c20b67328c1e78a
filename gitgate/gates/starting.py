"""Gates: whether the agent of an answered gate can be started in this repository, and who is told when it cannot.

A shared repository says so to whoever pushes the answer, and writes it into the gate. That is a remark and no outcome:
the gate stays answered, so that any other machine, one that has the session, may still claim it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from ..context.desk import Desk
from ..errors import Conflict, Failure, GateError, IllegalEvent
from ..model.gate import Asker, Event, Gate, Remark
from ..model.states import ANSWERED, EXPIRED
from ..store.git.refs import RUNS, SESSIONS
from ..store.git.repository import Repository, machine_values

if TYPE_CHECKING:
    from ..store.git.refs import Update


VIA = "runner"
BEGUN = "begun.json"
CLAIMS = "claims"
LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "requirements.txt")
STARTS = "its agent is resumed here"
STAYS = "its agent is not resumed here: "
_HEARD = re.compile(rf"gate: ([2-9a-z]+): ({re.escape(STARTS)}|{re.escape(STAYS)}[^·]*)")


class CannotStart(Failure):
    """Nothing that passes by itself: this machine does not have the session, or does not know the agent."""

    code = "cannot_start"


def asker_place(asked: Asker) -> str:
    """Machine and directory, as the asker told them."""
    where = " in ".join(word for word in (asked.host, asked.directory) if word)
    return f" (on {where})" if where else ""


def stayed(gate: Gate, how: str) -> CannotStart:
    """Only where it was asked can this gate be resumed."""
    asked = gate.opened.asked
    return CannotStart(
        f"the session of gate {gate.id} is not {how}: it stayed where {asked.agent} asked{asker_place(asked)}",
        hint="resume it there, or share sessions from there: git config gitgate.session push",
    )


def kept_back(desk: Desk, gates: Iterable[Gate]) -> frozenset[str]:
    """The gates whose session stayed where they were asked, so that nobody elsewhere, and no job, can go on with it.

    The shared repository is asked about those that it is not known to have; whoever cannot ask it does not know, and names none.
    """
    from ..context.targets import remote_of
    from ..store.remote.fetch import ask_refs, have

    wanted = [SESSIONS + gate.id for gate in gates if gate.opened.session is not None and not gate.opened.run]
    remote = remote_of(desk) if wanted else None
    if remote is None:
        return frozenset()
    known = have(desk.repo, remote, wanted)
    unsure = [ref for ref in wanted if ref not in known]
    try:
        there = ask_refs(desk.repo, remote, unsure, timeout=desk.network_timeout)
    except GateError:
        return frozenset()
    return frozenset(ref.removeprefix(SESSIONS) for ref in unsure if ref not in there)


# runs of flows


def folder_of_run(desk: Desk, run: str) -> Path:
    """What this machine alone keeps of a run: its claim, its agents' folders, its code."""
    return desk.repo.state_dir / "flows" / run


def note_begun(desk: Desk, run: str, path: str) -> None:
    """This machine's own word that the run began here, and from which file: a journal could name any."""
    from ..store.git.permissions import private_folder

    place = private_folder(folder_of_run(desk, run)) / BEGUN
    place.write_text(json.dumps({"path": path}), encoding="utf-8")


def is_protected(desk: Desk, code: str) -> bool:
    """Whether that commit is on the protected branch: only such code is gone on with elsewhere than where it began."""
    from ..policy.rules import protected_refs
    from ..store.git.commits import is_ancestor
    from ..store.git.objects import protected_tip

    tip = protected_tip(desk.records.objects, protected_refs(desk))
    return tip is not None and is_ancestor(desk.repo.git, code, tip)


def began_here(desk: Desk, run: str) -> bool:
    return (folder_of_run(desk, run) / BEGUN).exists()


def what_runs_it(desk: Desk) -> dict[str, str]:
    """What else the code depends on: our version, Python's, and the file that names its packages."""
    from hashlib import sha256

    from ..version import VERSION

    found = {"version": VERSION, "python": sys.version.split()[0]}
    top = desk.repo.top
    lock = next((top / name for name in LOCKS if (top / name).is_file()), None) if top is not None else None
    if lock is not None:
        found["lock"] = f"{lock.name} {sha256(lock.read_bytes()).hexdigest()[:12]}"
    return found


def note_claim(desk: Desk, run: str, claim: str) -> None:
    """That it is this clone which goes on with the run, for as long as this claim counts."""
    from ..store.git.permissions import private_folder

    with (private_folder(folder_of_run(desk, run)) / CLAIMS).open("a", encoding="utf-8") as out:
        out.write(f"{claim}\n")


def claims_here(desk: Desk, run: str) -> frozenset[str]:
    """The claims on a run that processes of this clone have made."""
    try:
        return frozenset((folder_of_run(desk, run) / CLAIMS).read_text(encoding="utf-8").split())
    except FileNotFoundError:
        return frozenset()


# said to whoever pushes


def foretold(desk: Desk, gates: Iterable[Gate], updates: Sequence[Update]) -> list[str]:
    """A line for each gate of a push that is to be resumed: whether it will be, and if not, why."""
    wanted = [gate for gate in gates if gate.actionable and gate.opened.delivery == "resume"]
    if not wanted:
        return []
    refs = [needed_ref(gate) for gate in wanted]
    coming = {update.ref for update in updates if update.new}
    here = {*desk.refs.under(*refs), *coming}
    everybody = no_runner(desk)
    unknown: dict[str, str] = {}
    lines = []
    for gate in wanted:
        what = "run" if gate.opened.run else "session"
        why = everybody or ("" if needed_ref(gate) in here else f"its {what} is not here")
        why = why or no_agent(desk, gate, unknown)
        lines.append(f"gate: {gate.id}: {STAYS}{why}" if why else f"gate: {gate.id}: {STARTS}")
    return lines


def needed_ref(gate: Gate) -> str:
    """What nobody goes on with a gate without: the asker's session, or the journal of the run that asks."""
    return RUNS + gate.opened.run if gate.opened.run else SESSIONS + gate.id


def no_runner(desk: Desk) -> str:
    """Why a push to this repository starts nothing at all."""
    if not desk.settings.flag("resumeHere"):
        return "git gate init did not allow it"
    from ..store.git.permissions import may_keep

    folder = hooks_folder(desk.repo)
    if folder is not None and not os.access(folder / "post-receive", os.X_OK):
        return "it has no post-receive hook"
    return (
        ""
        if may_keep(desk.repo.state_dir)
        else "the account that pushes may not write into the repository's folder"
    )


def no_agent(desk: Desk, gate: Gate, known: dict[str, str]) -> str:
    """Why this machine cannot start the agent of a gate, looked up once for each agent."""
    if gate.opened.session is None:
        return "it was asked without a session"
    agent = gate.opened.program
    if agent not in known:
        from .agency import cannot_start

        try:
            known[agent] = cannot_start(desk, agent)
        except GateError as broken:
            known[agent] = broken.message
    return known[agent]


def said_of_push(words: str, gate: str) -> str | None:
    """What a server said of a gate as it took a push: empty, it resumes it; else why it does not; None: nothing."""
    for name, said in _HEARD.findall(words):
        if name == gate:
            return "" if said == STARTS else str(said).removeprefix(STAYS).strip()
    return None


# written into the gate


def note_inability(desk: Desk, gate: str, why: str) -> None:
    """Once for an answer, and only where all can see it: what one of many clones cannot do says nothing."""
    from ..context.machine import host_name
    from ..context.targets import remote_of
    from ..store.records.records import NOBODY
    from .recording import record, reload

    if remote_of(desk) is not None:
        return
    event = Remark(at=desk.now, text=f"not resumed on {host_name()}: {why}", via=VIA)

    def decide(current: Gate) -> tuple[str, Event]:
        if current.state != ANSWERED or noted(current):
            raise IllegalEvent(f"gate {gate} has moved on")
        return "commented", event

    try:
        record(desk, reload(desk, gate), decide, who=NOBODY)
    except IllegalEvent:
        return


def noted(gate: Gate) -> bool:
    """Whether a runner has said, since the answer that counts, that it cannot start the agent."""
    for entry in reversed(gate.history):
        if gate.answer is not None and entry.commit == gate.answer.commit:
            return False
        if isinstance(entry.event, Remark) and entry.event.via == VIA and entry.name == "commented":
            return True
    return False


def unbegun(gate: Gate) -> bool:
    """Something is to be told to an asker, and nobody has begun with it."""
    return gate.actionable and gate.state in (ANSWERED, EXPIRED)


NAMES = ("pre-receive", "post-receive")
MARK = "# git-gate hook: "
BEFORE = ".before-git-gate"
PACKAGE = Path(__file__).resolve().parents[1]


def shim(name: str) -> str:
    """The text of a hook for this machine: where git-gate is installed is written into it, since a server's PATH is bare."""
    for folder in (PACKAGE / "shims", PACKAGE.parent / "hooks"):
        if (folder / name).is_file():
            text = (folder / name).read_text(encoding="utf-8")
            program, command = ourselves()
            return text.replace("@COMMAND@", command).replace("@PROGRAM@", program)
    raise Failure(
        "the hook shims are not part of this installation", hint="pip install --force-reinstall git-gate"
    )


def ourselves() -> tuple[str, str]:
    """The program that a hook starts, and the whole command. -P: no directory takes part in finding our own code."""
    return quote(sys.executable), f"{quote(sys.executable)} -P -m gitgate.cli.receive"


def needed_files() -> tuple[Path, ...]:
    """What whoever pushes has to be able to read."""
    return (Path(sys.executable), PACKAGE / "__init__.py")


def hooks_folder(repo: Repository) -> Path | None:
    """Where this repository's hooks are; None where they are shared with others or belong to the working tree."""
    # Our own git runs without hooks: the last value is ours.
    said = machine_values(repo, r"^core\.hookspath$").get("core.hookspath", [])[:-1]
    if not said or not said[-1]:
        return repo.common_dir / "hooks"
    folder = Path(os.path.normpath((repo.top or repo.git_dir) / said[-1]))
    return folder if folder.resolve().is_relative_to(repo.common_dir.resolve()) else None


def is_ours(place: Path) -> bool:
    try:
        return MARK in place.read_text(encoding="utf-8", errors="replace")[:200]
    except OSError:
        return False


def state(folder: Path, name: str) -> str:
    """`missing`, `current`, `old`, or `foreign`: somebody else's hook."""
    place = folder / name
    if not os.path.lexists(place):
        return "missing"
    if not is_ours(place):
        return "foreign"
    current = place.read_text(encoding="utf-8", errors="replace") == shim(name) and os.access(place, os.X_OK)
    return "current" if current else "old"


def install(folder: Path, name: str) -> None:
    """Put the hook in place. One that is there goes on working: it is kept beside it, and runs first."""
    place, before = folder / name, folder / (name + BEFORE)
    folder.mkdir(parents=True, exist_ok=True)
    if state(folder, name) == "foreign":
        if os.path.lexists(before):
            raise Conflict(
                f"there are two foreign hooks: {place} and {before}",
                hint="remove the one that is not needed any more",
            )
        place.rename(before)
    new = folder / f".{name}.new"
    new.write_text(shim(name), encoding="utf-8")
    new.chmod(0o755)
    new.replace(place)


def remove(folder: Path, name: str) -> None:
    """Take the hook away, and put back what was there before."""
    place, before = folder / name, folder / (name + BEFORE)
    if is_ours(place):
        place.unlink()
        if os.path.lexists(before):
            before.rename(place)
