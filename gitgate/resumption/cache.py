"""Resumption: a worker's own bare repositories, one for each address that answers come from. One holds what the gates
that are resumed there need, and no longer than they do.

No person works in it. All of it can be fetched again from the address, except for what an agent did not commit.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

from ..acts import sessions
from ..context import Desk, open_desk
from ..context.targets import summaries
from ..document import dataclass
from ..errors import DiskFull, Failure, GateError, WorkFailed
from ..exchange import Sides, Synced
from ..exchange.merging import bring_in
from ..exchange.syncing import bring_home
from ..gates import agency
from ..gates.work import worktrees
from ..model.gate import SavedSession
from ..store import locked, private_folder
from ..store.git import Git
from ..store.git.refs import LEASES, OPEN, RUNS, SESSIONS, WORK
from ..store.remote import RefMove, tracking, validate_remote
from ..store.remote.fetch import ask_refs, ask_tips, default_branch_of, fetch_branch, fetch_refs
from ..store.work.restore import remove_worktree
from . import lock

REMOTE = "origin"
USED = "used"
IN_USE = 3600.0
TIDY_EVERY = 600.0
LEAST_ROOM = 64 << 20
# Somebody may act on such a gate yet, or has to.
UNDER_WAY = ("awaiting", "answered", "resuming", "expired")
# What the operator agreed to when the worker was set up: an agent's commits have no other way to get to anybody.
SETTINGS = (
    ("gitgate.publishWork", "true"),
    ("gitgate.push", "true"),
    ("gitgate.session", "push"),
    ("gc.auto", "500"),
)


@dataclass(frozen=True)
class CacheTerms:
    """Terms of the cache of repositories.

    `root`: their directory. `keep`: for how many seconds an agent's leftovers stay. `most`: how many bytes they may
    have.
    """

    root: Path
    keep: float
    most: int


def cache_home(env: Mapping[str, str]) -> Path:
    if env.get("XDG_CACHE_HOME"):
        return Path(env["XDG_CACHE_HOME"]) / "gitgate" / "repositories"
    if not env.get("HOME"):
        raise Failure("there is no place for repositories", hint="set HOME, or XDG_CACHE_HOME")
    return Path(env["HOME"]) / ".cache" / "gitgate" / "repositories"


def cache_of(root: Path, address: str) -> Path:
    """Return the folder of an address. Its name can be read, and is another one for each address."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", address.rstrip("/").removesuffix(".git")).strip("-.")[-40:]
    return root / f"{plain}-{sha256(address.encode()).hexdigest()[:12]}.git"


def open_cache(terms: CacheTerms, address: str, env: Mapping[str, str]) -> Path:
    """Open the repository for an address, and make it first if it is missing. One that is half made is never used."""
    validate_remote(address)
    place = cache_of(terms.root, address)
    with locked(private_folder(terms.root) / "making.lock", wait=True):
        if not place.is_dir():
            new = place.with_name(f".{place.name}.{os.getpid()}")
            shutil.rmtree(new, ignore_errors=True)
            git = Git(terms.root, env)
            git.run("init", "-q", "--bare", "--template=", str(new))
            git.run("-C", str(new), "remote", "add", REMOTE, address)
            for name, value in SETTINGS:
                git.run("-C", str(new), "config", name, value)
            new.rename(place)
        (place / USED).touch()
    return place


def bring_gate(desk: Desk, gate: str) -> bool:
    """Fetch the record of one gate, and the branch that the policy is on. Return whether there is such a gate or run."""
    bring_policy(desk)
    tip = fetch_refs(desk.repo, REMOTE, [OPEN + gate], timeout=desk.network_timeout).get(OPEN + gate)
    if tip is None:
        if not ask_refs(desk.repo, REMOTE, [RUNS + gate], timeout=desk.network_timeout):
            return False
        bring_home(desk, REMOTE)
        return True
    here = desk.refs.get(OPEN + gate)
    if here != tip:
        done = Synced(REMOTE)
        bring_in(desk, done, Sides({} if here is None else {gate: here}, {gate: tip}), {gate: tip}, {})
        if gate in done.broken:
            raise Failure(f"gate {gate} cannot be read: {done.broken[gate]}", hint="git gate verify")
    return True


def bring_policy(desk: Desk) -> None:
    """Fetch the branch that the policy is read from: the protected one, else the server's default branch."""
    name = desk.settings.text("protectedBranch") or default_branch_of(
        desk.repo, REMOTE, timeout=desk.network_timeout
    )
    if not name:
        return
    ref = f"refs/heads/{name}"
    # Several workers of one machine begin at once: whoever came first would send the others away.
    with locked(private_folder(desk.repo.state_dir) / "policy.lock", wait=True):
        tip = fetch_branch(desk.repo, REMOTE, name, timeout=desk.network_timeout)
        here = desk.refs.get(ref)
        if tip != here:
            desk.refs.update([RefMove(ref, tip, here)])
        desk.repo.git.run("symbolic-ref", "HEAD", ref)


def clear_gate(desk: Desk, gate: str) -> None:
    """Erase a gate that this machine is done with: its conversation, its refs, and its branch if the remote has it."""
    with contextlib.suppress(GateError):
        found = sessions.find_oid(desk, gate)
        if found is not None:
            erase_session(desk, gate, sessions.read_session(desk, found))
    refs = [
        ref for kind in (OPEN, WORK, SESSIONS, LEASES) for ref in (kind + gate, tracking(REMOTE, kind + gate))
    ]
    own = f"refs/heads/gate/{gate}"
    tip = desk.refs.get(own)
    if tip is not None and ask_tips(desk.repo, REMOTE, [own], timeout=desk.network_timeout).get(own) == tip:
        refs.append(own)
    desk.refs.update([RefMove(ref, None, at) for ref in refs if (at := desk.refs.get(ref)) is not None])


def clear_done(desk: Desk) -> None:
    """Erase what is here of gates that are over although their conversation is here.

    Another machine went on with them after a worker here was killed.
    """
    found = [ref.removeprefix(SESSIONS) for ref in desk.refs.under(SESSIONS)]
    if found:
        bring_home(desk, REMOTE)
        under_way = {one.id for one in summaries(desk) if one.state in UNDER_WAY}
        for gate in found:
            if gate not in under_way:
                clear_gate(desk, gate)


def erase_session(desk: Desk, gate: str, saved: SavedSession) -> None:
    """Erase a saved session from the home of the agent's program, for each directory that the agent worked in."""
    for directory in (worktrees(desk) / gate, *worktrees(desk).glob(f"{gate}-*")):
        agency.adapter(saved.agent).erase(saved, directory, desk.settings.env)


def tidy_cache(terms: CacheTerms, env: Mapping[str, str], now: float, say: Callable[[str], None]) -> None:
    """Every ten minutes at most, delete what is over: conversations whose worker was killed, working trees that nobody came for
    in time, then whole repositories until the rest fits into its bound.
    """
    if room(terms) >= LEAST_ROOM and not is_time_to_tidy(terms, now):
        return
    for place in caches(terms):
        with contextlib.suppress(GateError), contextlib.closing(open_desk(place, env)) as desk:
            prune_trees(desk, now - terms.keep, say)
            prune_logs(desk, now - terms.keep)
            clear_done(desk)
    sizes = {place: size_of(place) for place in caches(terms)}
    for place in sorted(sizes, key=last_used):
        if sum(sizes.values()) <= terms.most and room(terms) >= LEAST_ROOM:
            return
        if not any((place / "gitgate" / "worktrees").glob("*")) and now - last_used(place) > IN_USE:
            say(f"{place.name} is removed, to make room; it is fetched again when needed")
            shutil.rmtree(place, ignore_errors=True)
            del sizes[place]


def is_time_to_tidy(terms: CacheTerms, now: float) -> bool:
    mark = terms.root / "tidied"
    with contextlib.suppress(FileNotFoundError):
        if 0 <= now - mark.stat().st_mtime < TIDY_EVERY:
            return False
    mark.touch()
    os.utime(mark, (now, now))
    return True


def room(terms: CacheTerms) -> int:
    """Return how many more bytes this account may write to the cache; 0 where no more files can be made."""
    there = os.statvfs(private_folder(terms.root))
    return there.f_bavail * there.f_frsize if there.f_favail or not there.f_files else 0


def require_room(terms: CacheTerms) -> None:
    """Raise DiskFull unless there is room to write what is begun: a claim, its lease, and what the agent makes."""
    left = room(terms)
    if left < LEAST_ROOM:
        raise DiskFull(
            f"the disk is full: {terms.root} has {left >> 20} MiB left, and {LEAST_ROOM >> 20} are needed to begin",
            hint=make_room(terms),
        )


def make_room(terms: CacheTerms) -> str:
    return f"make room: du -sh {terms.root}/*   or keep less: git config --global gitgate.queue.disk BYTES"


def caches(terms: CacheTerms) -> list[Path]:
    return sorted(terms.root.glob("[!.]*.git"))


def address_in(place: Path) -> str:
    """Return the address that a repository of the cache is for."""
    desk = open_desk(place, {})
    try:
        return desk.settings.git.get(f"remote.{REMOTE}.url", "")
    finally:
        desk.close()


def last_used(place: Path) -> float:
    try:
        return (place / USED).stat().st_mtime
    except OSError:
        return 0.0


def prune_trees(desk: Desk, before: float, say: Callable[[str], None]) -> None:
    """Remove the old working trees with what agents did not commit, where nobody works."""
    for directory in sorted(worktrees(desk).glob("*")):
        with contextlib.ExitStack() as held, contextlib.suppress(OSError, WorkFailed):
            if newest(directory) < before and lock(desk, directory, held):
                remove_worktree(desk.repo, directory, force=True)
                say(f"{directory} is removed: nobody came for what was not committed in it")


def prune_logs(desk: Desk, before: float) -> None:
    for folder in ("runs", "logs", "woken"):
        for found in (desk.repo.state_dir / folder).glob("*"):
            with contextlib.suppress(OSError):
                if newest(found) < before:
                    shutil.rmtree(found) if found.is_dir() else found.unlink()


def newest(place: Path) -> float:
    """Return when a folder, or something at the top of it, was changed last."""
    return max(float(one.lstat().st_mtime) for one in (place, *(place.iterdir() if place.is_dir() else ())))


def size_of(place: Path) -> int:
    total = 0
    for folder, _, names in os.walk(place):
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(folder, name).lstat().st_size
    return total
