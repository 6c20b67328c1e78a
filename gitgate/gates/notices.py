"""Gates: whether people are to hear of gates from here, and a process that tells them (`surfaces.notify`).

Nothing is loaded, and nothing started, where nobody is to be told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..context.desk import Desk


def tell_people(desk: Desk) -> None:
    """Have those told who want to hear of gates (`surfaces.notify`), by a process that nobody waits for; none is started
    where nobody is to be told.
    """
    if not is_told_of(desk):
        return
    from contextlib import suppress

    with suppress(OSError):  # what waits is told by the next one
        start_sender(desk.repo.place, desk.settings.env, desk.repo.state_dir / "logs" / "notify.log")


def start_sender(place: Path, env: Mapping[str, str], log: Path) -> None:
    """By a process of its own. The repository is named: who pushes need not be who owns it."""
    import sys

    from ..agents import without_caller
    from ..store.git.programs import detach

    # -P: the directory that we work in never takes part in finding our own code.
    command = [sys.executable, "-P", "-m", "gitgate", "-C", str(place), "hook", "notify"]
    bare = {"GIT_DIR": str(place)} if (place / "objects").is_dir() else {}
    detach(command, place, {**without_caller(env), **bare}, log)


def is_told_of(desk: Desk) -> bool:
    """Whether somebody may have to be told from here: by this machine's configuration; on a server by its branch, too."""
    if "gitgate.notify" in desk.settings.git or desk.settings.flag("notify.shared"):
        return True
    return desk.settings.flag("server") and branch_tells(desk)


def branch_tells(desk: Desk) -> bool:
    """Whether the protected branch may name somebody. It is read when it has moved: a push in between starts no git for this."""
    from contextlib import suppress

    from ..policy.book import protected_refs

    refs = protected_refs(desk)
    known = desk.repo.state_dir / "told-by-branch"
    now = stamp(desk, refs)
    with suppress(OSError, ValueError):
        before, _, word = known.read_text("utf-8").rpartition(" ")
        if before == now:
            return word == "yes"
    from ..config import FILE
    from ..document.field import may_have
    from ..store.git.permissions import private_folder
    from ..store.git.repository import read_protected

    found = read_protected(desk.repo, FILE, refs)
    tells = found is not None and may_have(found.data, "notify")
    with suppress(OSError):
        private_folder(known.parent)
        known.write_text(f"{now} {'yes' if tells else 'no'}", "utf-8")
    return tells


def stamp(desk: Desk, refs: Sequence[str]) -> str:
    """What changes when one of these branches moves: git puts a new file in place of each that says where it is."""
    said = []
    for name in ("HEAD", "packed-refs", "reftable/tables.list", *refs):
        try:
            found = (desk.repo.common_dir / name).stat()
        except OSError:
            said.append("-")
        else:
            said.append(f"{found.st_mtime_ns}:{found.st_ino}:{found.st_size}")
    return " ".join(said)
