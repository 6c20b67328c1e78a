"""Context: the remote that gates are shared through, and what goes to it. It reads settings and refs; it asks nobody."""

from __future__ import annotations

from collections.abc import Mapping

from ..store.git.refs import OPEN, SESSIONS, WORK
from ..store.remote.remote import RefMove, choose_remote
from .desk import Desk


def never_synced(desk: Desk) -> str | None:
    """The remote whose gates this clone has never asked for; `nothing waits` would be a guess."""
    from ..store.remote.remote import tracking_base

    if (desk.repo.state_dir / "synced").exists():
        return None
    remote = remote_of(desk)
    return remote if remote is not None and not desk.refs.under(tracking_base(remote)) else None


def remote_of(desk: Desk) -> str | None:
    """The remote that gates go to; git is not asked where nothing is configured."""
    named = desk.settings.text("remote")
    if desk.settings.flag("server"):
        return None  # Gates are shared through this very repository, wherever it was cloned from.
    if not named and not any(is_remote(key) for key in desk.settings.git):
        return None
    return choose_remote(named or None, desk.repo, desk.settings.git)


def no_remote(desk: Desk) -> tuple[str, str]:
    """Why gates go nowhere, and what to type: where there are several remotes, git gate does not guess which is meant."""
    git = desk.settings.git
    names = sorted({key.split(".", 1)[1].rpartition(".")[0] for key in git if is_remote(key)})
    if not names:
        return "there is no remote", "git remote add origin URL"
    name = "NAME" if len(names) > 1 else names[0]
    return f"none of the remotes here is chosen: {', '.join(names)}", f"git config gitgate.remote {name}"


def is_remote(key: str) -> bool:
    return key.startswith("remote.") and key.endswith((".url", ".pushurl"))


def work_moves(desk: Desk, gate: str, remote: str, known: Mapping[str, str] | None = None) -> list[RefMove]:
    """The refs that go with the record, where they exist here and the remote does not have them.

    `known` has all that `beside` lists, for whoever asks for many.
    """
    from ..store.remote.remote import tracking

    prefixes = [WORK] + ([SESSIONS] if desk.settings.text("session") == "push" else [])
    find = desk.refs.get if known is None else known.get
    moves = []
    for prefix in prefixes:
        here = find(prefix + gate)
        there = find(tracking(remote, prefix + gate)) if here is not None else None
        if here is not None and here != there and (prefix == WORK or may_send(desk, gate, here)):
            moves.append(RefMove(prefix + gate, here, there))
    return moves


def may_send(desk: Desk, gate: str, session: str) -> bool:
    """Whether others would take the session up. What is talked elsewhere than where it was asked waits for its event."""
    from .session_proof import against_session

    tip = desk.refs.get(OPEN + gate)
    return tip is None or not against_session(desk, desk.records.load(gate, tip), session)


def beside(desk: Desk, remote: str) -> Mapping[str, str]:
    """The works and sessions here, and what the remote is known to have of them, from one listing."""
    from ..store.remote.remote import tracking

    return desk.refs.under(WORK, SESSIONS, tracking(remote, WORK), tracking(remote, SESSIONS))


def may_publish_work(desk: Desk) -> bool:
    """Consent: pushing the work publishes unpublished commits and untracked files. `git gate init` is where it is given."""
    return desk.settings.flag("publishWork")
