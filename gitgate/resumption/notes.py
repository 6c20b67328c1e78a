"""Resumption: what is noted of the place where an agent works, for whoever comes after a runner that was killed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ..core.model import Gate
from ..service.desk import Desk
from ..service.lineage import took_place
from ..store.permissions import private_folder


def note_run(desk: Desk, gate: Gate, folder: Path) -> None:
    """Where the agent's process leaves what it says and how it ended, for whoever comes after a runner that was killed."""
    place = took_place(desk, gate.id)
    said = json.loads(place.read_text(encoding="utf-8"))
    write(place, {**said, "run": str(folder)})


def noted_run(desk: Desk, gate: Gate) -> Path | None:
    try:
        run = json.loads(took_place(desk, gate.id).read_text(encoding="utf-8")).get("run")
    except (OSError, ValueError):
        return None
    return Path(run) if run else None


def write(place: Path, said: Mapping[str, object]) -> None:
    """All of it or nothing."""
    private_folder(place.parent)
    new = place.with_suffix(".new")
    new.write_text(json.dumps(said), encoding="utf-8")
    new.replace(place)


def answer_of(gate: Gate) -> str:
    return gate.answer.commit if gate.answer else "expired"
