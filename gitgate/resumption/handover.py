"""Resumption: a claim that one process took and another acts on: whoever answers claims at once, and a runner takes it from there.

What is written down is ours alone; with it goes nothing that the refs do not say.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from ..claims.claiming import HeldClaim
from ..context.desk import Desk
from ..context.recording import reload
from ..model import lease as leases
from ..model.gate import Gate
from ..model.states import is_id
from ..store.git.permissions import private_folder


def held_folder(desk: Desk) -> Path:
    return desk.repo.state_dir / "held"


def hand_over(desk: Desk, held: HeldClaim) -> None:
    """Write the claim down for the runner that is about to start."""
    private_folder(held_folder(desk))
    said = {
        "claim": held.claim,
        "lease": held.lease,
        "remote": held.remote,
        "taken": held.taken,
        "seed": held.seed,
    }
    new = held_folder(desk) / f".{held.gate.id}.new"
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
        json.dump(said, out)
    new.replace(held_folder(desk) / held.gate.id)


def pending(desk: Desk) -> list[str]:
    """The gates whose claim waits to be taken over."""
    with contextlib.suppress(OSError):
        return sorted(place.name for place in held_folder(desk).iterdir() if is_id(place.name))
    return []


def take_over(desk: Desk, gate: str) -> HeldClaim | None:
    """The claim that was left for us, once; None when there is none, or it is over."""
    place = held_folder(desk) / gate
    mine = place.with_name(f".{gate}.{os.getpid()}")
    try:
        place.replace(mine)  # Of several runners, one gets the file.
        said = json.loads(mine.read_text(encoding="utf-8"))
        mine.unlink()
        found = leases.parse_lease(desk.records.commit(said["lease"]).message)
    except (OSError, ValueError, KeyError):
        return None
    now = reload(desk, gate)
    if found is None or now.claim is None or now.claim.commit != said["claim"]:
        return None
    return HeldClaim(
        *(said["claim"], said["lease"], found, said["remote"], float(said["taken"])),
        seed=str(said.get("seed", "")),
        gate=now,
    )


# What a person left to others: `--no-resume`


def notes_of_left(desk: Desk) -> Path:
    return desk.repo.state_dir / "left"


def leave_to_others(desk: Desk, gate: Gate) -> None:
    """Note that this answer is to start nothing here by itself, whatever else does: only who asks for it in so many words."""
    if gate.answer is not None:
        (private_folder(notes_of_left(desk)) / gate.id).write_text(gate.answer.signed_commit, "ascii")


def is_left_to_others(desk: Desk, gate: str) -> bool:
    """Whether that was said of the answer that counts; of another one it says nothing."""
    try:
        noted = (notes_of_left(desk) / gate).read_text("ascii")
    except (OSError, ValueError):
        return False
    answer = reload(desk, gate).answer
    return answer is not None and noted in (answer.commit, answer.signed_commit)


def lift_note(desk: Desk, gate: str = "") -> None:
    """Somebody wants this gate's agent here after all, or all of them."""
    with contextlib.suppress(OSError):
        for place in [notes_of_left(desk) / gate] if gate else notes_of_left(desk).iterdir():
            place.unlink(missing_ok=True)
