"""Gates: whether people are to hear of gates from here, and a process that tells them (`surfaces.notify`).

Nothing is loaded, and nothing started, where nobody is to be told.
"""

from __future__ import annotations

from ..context.desk import Desk


def tell_people(desk: Desk) -> None:
    """Have those told who want to hear of gates (`surfaces.notify`), by a process that nobody waits for; none is started
    where nobody is to be told.
    """
    if not is_told_of(desk):
        return
    from contextlib import suppress

    from ..runners.local import start_sender

    with suppress(OSError):  # what waits is told by the next one
        start_sender(desk.repo.place, desk.settings.env, desk.repo.state_dir / "logs" / "notify.log")


def is_told_of(desk: Desk) -> bool:
    """Whether somebody may have to be told from here: by this machine's configuration; on a server by its branch, too."""
    if "gitgate.notify" in desk.settings.git or desk.settings.flag("notify.shared"):
        return True
    if not desk.settings.flag("server"):
        return False
    from ..config import FILE
    from ..document.field import may_have
    from ..policy.book import protected_refs
    from ..store.git.repository import read_protected

    found = read_protected(desk.repo, FILE, protected_refs(desk))
    return found is not None and may_have(found.data, "notify")
