"""Context: what is meant: which open gate, and which remote, where that is and what goes to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from .. import model
from ..document import dataclass, replace
from ..errors import AmbiguousGate, IllegalEvent, UnknownGate
from ..model import parse_trailers
from ..record import DOUBTFUL, Summary, message, read_summaries, summary_of
from ..store import read_local
from ..store.git.canonical import is_sound_commit
from ..store.git.refs import DOUBTED, OPEN, RUNS, SESSIONS, WORK
from ..store.remote import RefMove, choose_remote, tracking, tracking_base
from . import Desk

# The remote that gates are shared through, where it is, and what goes to it. It asks nobody.


def never_synced(desk: Desk) -> str | None:
    """The remote whose gates this clone has never asked for; `nothing waits` would be a guess."""
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
    """Return why gates go nowhere, and what to type: where there are several remotes, git gate does not guess which is
    meant.
    """
    names = remotes_here(desk)
    if not names:
        return "there is no remote", "git remote add origin URL"
    name = "NAME" if len(names) > 1 else names[0]
    return f"none of the remotes here is chosen: {', '.join(names)}", f"git config gitgate.remote {name}"


def remotes_here(desk: Desk) -> list[str]:
    """The names of the remotes that git's configuration has, sorted."""
    git = desk.settings.git
    return sorted({key.split(".", 1)[1].rpartition(".")[0] for key in git if is_remote(key)})


def is_remote(key: str) -> bool:
    return key.startswith("remote.") and key.endswith((".url", ".pushurl"))


def work_moves(desk: Desk, gate: str, remote: str, known: Mapping[str, str] | None = None) -> list[RefMove]:
    """The refs that go with the record, where they exist here and the remote does not have them.

    `known` has all that `beside` lists, for whoever asks for many.
    """
    if known is not None and WORK + gate not in known and SESSIONS + gate not in known:
        return []
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
    """Return whether other clones would accept the session. A conversation continued elsewhere than where it was asked
    waits for its event.
    """
    from .session_proof import against_session

    tip = desk.refs.get(OPEN + gate)
    return tip is None or not against_session(desk, desk.records.load(gate, tip), session)


def beside(desk: Desk, remote: str) -> Mapping[str, str]:
    """The works and sessions here, and what the remote is known to have of them, from one listing."""
    return desk.refs.under(WORK, SESSIONS, tracking(remote, WORK), tracking(remote, SESSIONS))


def may_publish_work(desk: Desk) -> bool:
    """Consent: pushing the work publishes unpublished commits and untracked files. `git gate init` is where it is given."""
    return desk.settings.flag("publishWork")


GITHUB = "github.com"
GITLAB = "gitlab.com"
OTHER_NAMES = {
    "ssh.github.com": GITHUB,
    "www.github.com": GITHUB,
}  # the first for those who may use port 443 only
API_ENDS = ("/api/v3", "/api/v1", "/api/v4")
USUAL_PORTS = {"https": 443, "http": 80}  # another one is the web's, too; ssh's and git's are their own
SSH = frozenset(("ssh", "git+ssh", "ssh+git"))
HOST = r"(?a)[a-z0-9_][a-z0-9_.-]*"


@dataclass(frozen=True)
class Address:
    """A place that git goes to. `host` is empty for a folder, and has a port where browsers need it; `plain`: without TLS there."""

    host: str = ""
    path: str = ""
    ssh: bool = False
    plain: bool = False


def read_address(text: str) -> Address:
    """Parse an address in any of git's spellings."""
    if "://" in text:
        try:
            parts = urlsplit(text)
            host, port = (parts.hostname or "").lower(), parts.port
        except ValueError:
            return Address()
        ssh = parts.scheme in SSH
        shown = f"{host}:{port}" if port and port != USUAL_PORTS.get(parts.scheme, port) else host
        path = parts.path
        # Without a port nobody says that there is no TLS as well.
        plain = parts.scheme == "http" and shown != host
    else:
        place, colon, path = text.partition(":")
        host = place.rpartition("@")[2].lower()
        if not colon or "/" in place:
            return Address()  # a folder
        shown, ssh, plain = host, True, False
    return Address(OTHER_NAMES.get(shown, shown), path.strip("/").removesuffix(".git"), ssh, plain)


def is_github(host: str) -> bool:
    """Return whether the host is GitHub's own by its name alone."""
    return host == GITHUB or host.endswith(".ghe.com")


def address_of(desk: Desk) -> Address:
    """The remote's: git is asked, since `url.*.insteadOf` may put another address in its place; ssh, what a name of its stands for."""
    remote = remote_of(desk)
    if remote is None:
        return Address()
    said = desk.repo.git.run("ls-remote", "--get-url", "--", remote, check=False).out
    found = read_address(said.decode("utf-8", "replace").strip())
    if not found.ssh or is_github(found.host) or not re.fullmatch(HOST, found.host):
        return found
    meant = meant_by(desk, found.host)
    return replace(found, host=meant) if is_github(meant) else found


def meant_by(desk: Desk, name: str) -> str:
    """The host that ssh's configuration has behind a name."""
    if name not in desk.hosts:
        from ..runners.github import ssh_host

        said = ssh_host(name, desk.settings.env).lower()
        desk.hosts[name] = OTHER_NAMES.get(said, said)
    return desk.hosts[name]


def server_of(desk: Desk, found: Address) -> str:
    """Return the web address of the server at this address. It is taken from the API's address where that is set,
    because an alias does not tell it.
    """
    parts = urlsplit(desk.settings.text("forgeApi"))
    for end in API_ENDS:
        path = parts.path.rstrip("/")
        if parts.hostname and path.endswith(end):
            return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path.removesuffix(end)}"
    return f"{'http' if found.plain else 'https'}://{found.host}"


# Which open gate is meant, by its id, by the beginning of one, or because it is the only one that waits.


LISTING = "git gate list"
SYNC = "git gate sync"
# From so many on it takes less time to load SQLite and to read the index than to read the commits.
MANY = 500


def find_tip(desk: Desk, given: str | None, *, waiting: str = "waits for an answer") -> tuple[str, str]:
    """(id, tip) of the open gate that `given` names, or of the only one that waits."""
    if given is None:
        return only_waiting(desk, waiting)
    word = given.strip().lower()
    if model.is_id(word):
        return one_of(desk, given, [OPEN + word])
    if not model.is_prefix(word):
        raise UnknownGate(
            f"{given!r} is not a gate's id: they have 10 letters and digits, none of them 0, 1, l or o; 4 are enough",
            hint=LISTING,
        )
    return one_of(desk, given, desk.refs.beginning(OPEN + word))


def is_run(desk: Desk, given: str | None) -> bool:
    """Return whether the typed word means a run, and no gate."""
    word = (given or "").strip().lower()
    if not model.is_prefix(word) or desk.refs.beginning(OPEN + word):
        return False
    return bool(desk.refs.beginning(RUNS + word)) or is_archived_run(desk, word)


def is_archived_run(desk: Desk, prefix: str) -> bool:
    from ..store.records.archive import archived_ids

    return bool(archived_ids(desk.repo, prefix, runs=True))


def gate_of_run(desk: Desk, given: str) -> str:
    """The gate at which the run that is named waits; empty where no run is."""
    word = given.strip().lower()
    refs = desk.refs.beginning(RUNS + word) if model.is_prefix(word) else []
    tips = [tip for ref in refs if (tip := desk.refs.get(ref)) is not None]
    if not tips and model.is_prefix(word) and is_archived_run(desk, word):
        raise IllegalEvent(
            f"run {word} is over, and archived: it waits for nobody", hint=f"git gate show {word}"
        )
    if len(tips) != 1:
        return ""
    run, said = refs[0].removeprefix(RUNS), parse_trailers(desk.records.commit(tips[0]).message) or {}
    gates = said.get("Gates", "").split()
    if not gates:
        raise IllegalEvent(
            f"run {run} is {said.get('State', 'unknown')}: it waits for nobody",
            hint=f"git gate show {run[:6]}",
        )
    if len(gates) > 1:
        raise AmbiguousGate(
            f"run {run} waits at {', '.join(gates)}",
            hint="name one of them; what each asks: git gate list --awaiting",
        )
    return gates[0]


def one_of(desk: Desk, given: str, refs: Iterable[str]) -> tuple[str, str]:
    found = {ref.removeprefix(OPEN): tip for ref in refs if (tip := desk.refs.get(ref)) is not None}
    if not found and (waited := gate_of_run(desk, given)):
        return one_of(desk, waited, [OPEN + waited])
    if not found:
        raise unknown_gate(desk, given)
    if len(found) > 1:
        raise AmbiguousGate(f"{given} could be {', '.join(sorted(found)[:8])}", hint="type more of the id")
    return found.popitem()


def unknown_gate(desk: Desk, given: str) -> UnknownGate:
    remote = never_synced(desk)
    if remote is not None:
        return UnknownGate(
            f"there is no gate {given} here, and this clone has never synced with {remote}", hint=SYNC
        )
    more = f"; {SYNC} fetches those of the remote" if remote_of(desk) else ""
    return UnknownGate(f"there is no gate {given} here", hint=f"{LISTING} --all shows every gate here{more}")


def only_waiting(desk: Desk, what: str) -> tuple[str, str]:
    waiting = [summary for summary in summaries(desk) if summary.state == "awaiting"]
    if not waiting:
        remote = never_synced(desk)
        if remote is not None:
            raise UnknownGate(
                f"no gate {what} here, and this clone has never synced with {remote}", hint=SYNC
            )
        raise UnknownGate(f"no gate {what}", hint=LISTING)
    if len(waiting) > 1:
        names = ", ".join(summary.id[:6] for summary in waiting[:8])
        raise AmbiguousGate(
            f"{len(waiting)} gates wait: {names}", hint="name one of them; what each asks: git gate list"
        )
    return waiting[0].id, waiting[0].tip


def summaries(desk: Desk) -> Iterator[Summary]:
    """Every open gate. One whose trailers break the rules still appears, as `broken`."""
    yield from as_recorded(desk, summaries_told(desk))


def summaries_told(desk: Desk) -> Iterator[Summary]:
    """Yield a summary of every open gate as its last commit states it."""
    tips = desk.refs.tips()
    for run in tips.runs():
        yield from read_summaries(run, tips.mark, OPEN, is_sound_commit)


def as_recorded(desk: Desk, told: Iterable[Summary]) -> Iterable[Summary]:
    """Of commits that are known to tell something else than their record, what the record says, with a mark."""
    doubted = desk.refs.under(DOUBTED) if desk.refs.may_have(DOUBTED) else {}
    if not doubted:
        return told
    lies = {(ref.removeprefix(DOUBTED), tip) for ref, tip in doubted.items()}
    return (recorded_summary(desk, one) if (one.id, one.tip) in lies else one for one in told)


def recorded_summary(desk: Desk, told: Summary) -> Summary:
    gate = desk.records.load(told.id, told.tip)
    last = gate.history[-1]
    found = summary_of(told.id, told.tip, message(last.name, last.event, gate))
    return found._replace(title=f"{DOUBTFUL} {found.title}", question=f"{DOUBTFUL} {found.question}")


def all_summaries(desk: Desk, *, begin: bool = True) -> list[Summary]:
    """Return the summaries of all open gates at once, for lists and figures. With many gates, those in the index are
    not read again. `begin`: where there is no index yet, make one for the next time.
    """
    if pays(how_many(desk.repo.index)):
        from ..store.index import read_open

        return list(as_recorded(desk, read_open(desk.index, desk.refs)))
    found = list(summaries_told(desk))
    if begin and pays(len(found)):
        from ..store.index import TIPS, rows_of

        desk.index.replace(TIPS, rows_of(desk.index, found))
    return list(as_recorded(desk, found))


def how_many(index: Path) -> int:
    """Return the number of open gates in the index without loading SQLite, from a field for such numbers in the file's
    header.
    """
    try:
        return int.from_bytes(read_local(index, 64)[60:], "big")
    except OSError:
        return 0


def pays(count: int) -> bool:
    """Return whether the index saves more than it costs for so many gates. Some builds of Python come without SQLite."""
    if count < MANY:
        return False
    try:
        import sqlite3  # noqa: F401
    except ImportError:
        return False
    return True
