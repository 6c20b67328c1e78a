"""Store: which refs go out together. Pushes are dear, so many go at once; one bad gate must not hold up the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..core.values import replace
from ..errors import GateError, PushRefused
from .remote import NOT_SENT, REFUSED, Fate, RefMove, gate_of, read_config
from .repository import Repository
from .wire import Progress

MOST_REFS = 25  # What a forge takes: they refuse or time out on hundreds of refs at once.
MOST_OWN = 4000  # What a server of one's own is given at once: all of it goes on one command line.
ALL_REFUSED = f"{REFUSED}pre-receive hook declined"
# Where a host is one of these, or below it; another forge is named by the setting `gitgate.forge`.
FORGES = (
    "github.com ghe.com gitlab.com bitbucket.org codeberg.org gitea.com gitee.com dev.azure.com visualstudio.com "
    "amazonaws.com googlesource.com git.sr.ht"
).split()
_HOST = r"(?:[a-z+]+://)?(?:[^/@]*@)?([a-z0-9_.-]+)[:/].*"


def most_refs(repo: Repository, remote: str) -> int:
    """How many refs that remote is given in one push. Git is asked where it goes: a setting may put another address there."""
    if read_config(repo, r"^gitgate\.forge$"):
        return MOST_REFS
    said = repo.git.run("ls-remote", "--get-url", "--", remote, check=False).out
    found = re.fullmatch(_HOST, said.decode("utf-8", "replace").strip().lower())
    host = f".{found[1]}" if found else ""
    return MOST_REFS if any(host.endswith(f".{forge}") for forge in FORGES) else MOST_OWN


def batches(moves: Iterable[RefMove], most: int = MOST_REFS) -> list[list[RefMove]]:
    """Batches of at most `most` refs in the order given; what belongs to one gate stays together."""
    found: list[list[RefMove]] = []
    for group in by_gate(moves).values():
        if found and len(found[-1]) + len(group) <= most:
            found[-1] += group
        else:
            found.append(list(group))
    return found


def for_remote(repo: Repository, remote: str, moves: Sequence[RefMove]) -> list[list[RefMove]]:
    """The batches in which that remote is given these moves; where they are few, nobody is asked what it takes."""
    return batches(moves, MOST_REFS if len(moves) <= MOST_REFS else most_refs(repo, remote))


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
    whose fault it is, or the server did not take so much at once, each half goes by itself. Batches only shrink, so this
    ends.
    """
    from .push import push

    fates: dict[str, Fate] = {}
    waiting = for_remote(repo, remote, moves)
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
        except GateError as failed:
            if isinstance(failed, PushRefused) and len(batch) > MOST_REFS:
                waiting[:0] = halves(batch)
                continue
            if not fates:
                raise
            break
        again = still_to_send(batch, told)
        waiting[:0] = again
        left = {move.ref for part in again for move in part}
        fates |= {fate.ref: with_own_words(fate) for fate in told if fate.ref not in left}
    return [fates.get(move.ref, Fate(move.ref, ok=False, reason=NOT_SENT)) for move in moves]


def still_to_send(batch: Sequence[RefMove], told: Sequence[Fate]) -> list[list[RefMove]]:
    """What of a batch failed for no fault of its own, as the next batches to try; all of them smaller."""
    gates = list(by_gate(batch).values())
    fate = {one.ref: one for one in told}
    if all(one.reason.startswith(ALL_REFUSED) for one in told):
        # Ours names the refs that it refuses, so that the others need not be looked for half by half.
        meant = [gate for gate in gates if any(f" {move.ref}:" in fate[move.ref].reason for move in gate)]
        rest = [move for gate in gates if gate not in meant for move in gate]
        return ([rest] if rest else []) if meant else halves(batch)
    innocent = [gate for gate in gates if all(fate[move.ref].reason == NOT_SENT for move in gate)]
    return [[move for gate in innocent for move in gate]] if 0 < len(innocent) < len(gates) else []


def with_own_words(fate: Fate) -> Fate:
    """Of all that a hook said of a push, what it said of this ref, where it named it."""
    _, named, rest = fate.reason.partition(f"gate: {fate.ref}: ")
    return replace(fate, reason=f"{ALL_REFUSED}: {named}{rest.partition(' · ')[0]}") if named else fate


def halves(batch: Sequence[RefMove]) -> list[list[RefMove]]:
    """Each half of the gates; nothing where there is but one."""
    gates = list(by_gate(batch).values())
    half = len(gates) // 2
    return [[move for gate in part for move in gate] for part in (gates[:half], gates[half:])] if half else []
