"""Store: which refs go out together. Pushes are dear, so many go at once; one bad gate must not hold up the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import GateError
from .remote import NOT_SENT, REFUSED, Fate, RefMove, gate_of
from .repository import Repository
from .wire import Progress

MOST_REFS = 25  # Hosts refuse or time out on hundreds of refs at once.
ALL_REFUSED = f"{REFUSED}pre-receive hook declined"


def batches(moves: Iterable[RefMove], most: int = MOST_REFS) -> list[list[RefMove]]:
    """Batches of at most `most` refs in the order given; what belongs to one gate stays together."""
    found: list[list[RefMove]] = []
    for group in by_gate(moves).values():
        if found and len(found[-1]) + len(group) <= most:
            found[-1] += group
        else:
            found.append(list(group))
    return found


def by_gate(moves: Iterable[RefMove]) -> dict[str, list[RefMove]]:
    groups: dict[str, list[RefMove]] = {}
    for move in moves:
        groups.setdefault(gate_of(move.ref), []).append(move)
    return groups


def push_gates(
    repo: Repository,
    remote: str,
    moves: Sequence[RefMove],
    *,
    timeout: float = 60,
    progress: Progress | None = None,
    prompts: bool | None = None,
) -> list[Fate]:
    """Move many gates: each one's refs all or none, and none because of another's. One fate for each move.

    A gate that failed leaves its batch, and the rest goes again; where a hook refused a whole batch without saying
    whose fault it is, each half goes by itself. Batches only shrink, so this ends.
    """
    from .push import push

    fates: dict[str, Fate] = {}
    waiting = batches(moves)
    while waiting:
        batch = waiting.pop(0)
        try:
            told = push(
                repo,
                remote,
                batch,
                atomic=len(by_gate(batch)) < len(batch),
                timeout=timeout,
                progress=progress,
                prompts=prompts,
            )
        except GateError:
            if not fates:
                raise
            break
        again = still_to_send(batch, told)
        waiting[:0] = again
        left = {move.ref for part in again for move in part}
        fates |= {fate.ref: fate for fate in told if fate.ref not in left}
    return [fates.get(move.ref, Fate(move.ref, ok=False, reason=NOT_SENT)) for move in moves]


def still_to_send(batch: Sequence[RefMove], told: Sequence[Fate]) -> list[list[RefMove]]:
    """What of a batch failed for no fault of its own, as the next batches to try; all of them smaller."""
    gates = list(by_gate(batch).values())
    fate = {one.ref: one for one in told}
    if all(one.reason.startswith(ALL_REFUSED) for one in told):
        half = len(gates) // 2
        parts = (gates[:half], gates[half:]) if half else ()
        return [[move for gate in part for move in gate] for part in parts]
    innocent = [gate for gate in gates if all(fate[move.ref].reason == NOT_SENT for move in gate)]
    return [[move for gate in innocent for move in gate]] if 0 < len(innocent) < len(gates) else []
