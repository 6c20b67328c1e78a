"""Store: what others have done, brought into a namespace of our own where it overwrites nothing.

Asking costs under a kilobyte when nothing is open, whatever is closed; git's own report says what changed, so that
ten thousand refs need not be read twice to find out.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from typing import Self

from ...document import NamedTuple
from ...errors import Failure, Usage
from ..git import Repository
from ..git.refs import Refs
from . import HITL, Fetched, RefMove, Remote, ids_of, read_remote, tracking, tracking_base, validate_move
from .wire import LONGEST, GitConversation, GitSpoken, Progress, converse, explain, late_listener

# A record is a complete history of its own, of a few small objects: to tell the server what we have would mean
# sending it every commit of the project, looking for a common one that does not exist.
NO_HAVES = "fetch.negotiationAlgorithm=noop"
SETTINGS = ("fetch.writeCommitGraph=false", "fetch.output=full", "fetch.showForcedUpdates=true")
OPTIONS = (
    "--no-tags",
    "--no-prune-tags",
    "--prune",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--no-recurse-submodules",
    "--no-filter",  # A partial clone would leave out the questions, and fetch them one by one later.
    "--no-set-upstream",
    "--no-update-shallow",
    "--refmap=",  # Only what is named, whatever else is configured for this remote.
)
# Compiled at first use: an idle fetch uses neither.
_REPORT = r"^ ([ +\-*!t=]) (?:([0-9a-f]{4,64})\.\.)?.* -> (refs/gitgate/\S+)"
# Another fetch of this clone is at the same refs; or a ref went from the server while that listed it, as a null one then.
_MEANWHILE = r"(?i)cannot lock ref|unable to create .*\.lock|shallow file has changed|not our ref 0{40}"
ATTEMPTS = 6

# How a kind of ref is asked for: those that stand for themselves, and those that build on the project's history.
BUILDS_ON_HISTORY = ("work", "evidence")
FOLDED = ("archive",)
# What every look at the remote brings: open gates, and the journals of runs.
POLLED = ("open", "runs")
# What goes from there once it is archived.
LEAVES = re.compile("/(?:open|runs)/")
# work, staged and base: what a shallow clone needs of the work, without growing the history that it chose not to have.
WORK_DEPTH = 3


def fetch(
    repo: Repository,
    remote: str,
    *,
    timeout: float = 60,
    progress: Progress | None = None,
    prompts: bool | None = None,
) -> Fetched:
    """Bring refs/hitl/open/* of `remote` up to date in refs/gitgate/<remote>/open/, and say what changed."""
    with begin_fetch(repo, remote, timeout=timeout, progress=progress, prompts=prompts) as polling:
        return polling.wait()


def begin_fetch(
    repo: Repository,
    remote: str,
    *,
    timeout: float = 60,
    longest: float = LONGEST,
    progress: Progress | None = None,
    prompts: bool | None = None,
) -> Polling:
    """Begin a fetch of refs/hitl/open/* and the journals of runs: git talks to the server while the caller reads what
    is here.

    The caller then waits for what changed. `timeout` limits silence, and `longest` the whole fetch, both in seconds.
    """
    listening = Listening(repo, read_remote(repo, remote), timeout, progress, prompts, longest)
    base = tracking_base(remote)
    return Polling(listening, Ask([f"+{HITL}{kind}/*:{base}{kind}/*" for kind in POLLED], (NO_HAVES,)))


def fetch_refs(
    repo: Repository,
    remote: str,
    refs: Sequence[str],
    *,
    timeout: float = 60,
    progress: Progress | None = None,
    prompts: bool | None = None,
) -> dict[str, str]:
    """Bring single refs (`work/<id>`, `archive/<month>`, …) and return which of them the remote has, and where.

    One that the remote does not have is no error, and is forgotten here as well.
    """
    full = [ref if ref.startswith(HITL) else f"{HITL}{ref}" for ref in refs]
    for ref in full:
        if not re.fullmatch(r"refs/hitl/[a-z]+/[A-Za-z0-9-]+", ref):
            raise Usage(f"not a gate's ref: {ref!r}")
    if not full:
        return {}
    place = read_remote(repo, remote)
    listening = Listening(repo, place, timeout, progress, prompts)
    for ask in asks(repo, remote, full):
        listening.run(ask)
    return have(repo, remote, full)


def ask_refs(repo: Repository, remote: str, refs: Sequence[str], *, timeout: float = 60) -> frozenset[str]:
    """Return those of these refs that `remote` has now."""
    return frozenset(ask_tips(repo, remote, refs, timeout=timeout))


def ask_tips(repo: Repository, remote: str, refs: Sequence[str], *, timeout: float = 60) -> dict[str, str]:
    """Return the tips of these refs on `remote` now. Nothing is brought, and what we remember of it stays."""
    if not refs:
        return {}
    place = read_remote(repo, remote)
    said = converse(repo, place, (), ("ls-remote", "--", place.name, *refs), timeout=timeout)
    if said.code:
        raise explain(place.name, said, timeout=timeout)
    found = parse_ls_remote(said)
    return {ref: found[ref] for ref in refs if ref in found}


def parse_ls_remote(said: GitSpoken) -> dict[str, str]:
    """Parse the output of `ls-remote`, by name. A ref that went while the server listed it is null, and is left out."""
    rows = (line.partition("\t") for line in said.out)
    return {name: oid for oid, _, name in rows if oid.strip("0")}


def names_below(repo: Repository, remote: str, *prefixes: str, timeout: float = 60) -> list[str]:
    """List the refs that `remote` has under these prefixes now. It lists all its refs for this: not for what is
    asked often.
    """
    return sorted(tips_below(repo, remote, *prefixes, timeout=timeout))


def tips_below(repo: Repository, remote: str, *prefixes: str, timeout: float = 60) -> dict[str, str]:
    """Return the tips of the refs under these prefixes on `remote` now."""
    place = read_remote(repo, remote)
    patterns = (f"{prefix}*" for prefix in prefixes)
    said = converse(repo, place, (), ("ls-remote", "--", place.name, *patterns), timeout=timeout)
    if said.code:
        raise explain(place.name, said, timeout=timeout)
    return {name: tip for name, tip in parse_ls_remote(said).items() if name.startswith(prefixes)}


class Ask(NamedTuple):
    specs: Sequence[str]
    config: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


def asks(repo: Repository, remote: str, refs: Iterable[str]) -> list[Ask]:
    """Return the fewest conversations in which each kind of ref is asked for in its own way."""
    kinds: dict[str, list[str]] = {"alone": [], "folded": [], "history": []}
    for ref in refs:
        kind = ref.split("/")[2]
        sort = "history" if kind in BUILDS_ON_HISTORY else "folded" if kind in FOLDED else "alone"
        # With a pattern, a ref that is not there is no failure; `*` is empty in every name that we ask for.
        kinds[sort].append(f"+{ref}*:{tracking(remote, ref)}*")
    found = []
    if kinds["alone"]:
        found.append(Ask(kinds["alone"], (NO_HAVES,)))
    if kinds["folded"]:
        tips = [*have(repo, remote, [spec[1:].partition("*")[0] for spec in kinds["folded"]]).values()]
        haves = tuple(f"--negotiation-tip={tip}" for tip in tips)
        found.append(Ask(kinds["folded"], () if tips else (NO_HAVES,), haves))
    if kinds["history"]:
        found.append(Ask(kinds["history"], (), (f"--depth={WORK_DEPTH}",) if repo.shallow else ()))
    return found


def fetch_folder(
    repo: Repository,
    remote: str,
    folder: str,
    *,
    timeout: float = 60,
    progress: Progress | None = None,
    prompts: bool | None = None,
) -> dict[str, str]:
    """Bring every ref of one kind (`archive`), and return what the remote has of it, by ref."""
    listening = Listening(repo, read_remote(repo, remote), timeout, progress, prompts)
    base = f"{tracking_base(remote)}{folder}/"
    tips = tuple(f"--negotiation-tip={tip}" for tip in Refs(repo).under(base).values())
    listening.run(Ask([f"+{HITL}{folder}/*:{base}*"], () if tips else (NO_HAVES,), tips))
    return {f"{HITL}{folder}/{ref.removeprefix(base)}": oid for ref, oid in Refs(repo).under(base).items()}


def fetch_all(repo: Repository, remote: str, into: str, *, timeout: float = 60) -> None:
    """Bring every branch, and all that is ours, to refs below `into`, which are named as they are on the remote."""
    listening = Listening(repo, read_remote(repo, remote), timeout, None, None)
    listening.run(Ask([f"+refs/heads/*:{into}refs/heads/*", f"+{HITL}*:{into}{HITL}*"]))


def have(repo: Repository, remote: str, refs: Iterable[str]) -> dict[str, str]:
    """Return the tips that `remote` had at these refs when it was last asked."""
    names = {tracking(remote, ref): ref for ref in refs}
    found = Refs(repo).under(*names) if names else {}
    return {names[ref]: oid for ref, oid in found.items() if ref in names}


class Report(NamedTuple):
    """Line of git's own report: the ref that it changed, and the beginning of its value before."""

    flag: str
    ref: str
    before: str


class Listening:
    """Runner of fetches from one remote; each returns what git reported, as flag and tracking ref."""

    def __init__(
        self,
        repo: Repository,
        remote: Remote,
        timeout: float,
        progress: Progress | None,
        prompts: bool | None,
        longest: float = LONGEST,
    ) -> None:
        self.longest = longest
        self.repo = repo
        self.remote = remote
        self.timeout = timeout
        self.progress = progress
        self.prompts = prompts

    def run(self, ask: Ask, begun: GitConversation | None = None) -> list[Report]:
        seen: list[Report] = []
        for attempt in range(ATTEMPTS):
            said = (begun if begun and not attempt else self.begin(ask)).end()
            seen += reported(said)
            if not said.code:
                break
            if attempt == ATTEMPTS - 1 or not any(re.search(_MEANWHILE, line) for line in said.err):
                raise self.trouble(said)
            time.sleep(0.02 * 2**attempt)
        return seen

    def begin(self, ask: Ask) -> GitConversation:
        return GitConversation(
            self.repo,
            self.remote,
            (*SETTINGS, *ask.config),
            ["fetch", *OPTIONS, "--progress", *ask.options, "--", self.remote.name, *ask.specs],
            timeout=self.timeout,
            longest=self.longest,
            prompts=self.prompts,
            on_line=late_listener(self.progress) if self.progress else None,
        )

    def trouble(self, said: GitSpoken) -> Failure:
        return explain(self.remote.name, said, timeout=self.timeout)


class Polling:
    """Fetch of the open gates that is under way."""

    def __init__(self, listening: Listening, ask: Ask) -> None:
        self.listening = listening
        self.ask = ask
        self.conversation = listening.begin(ask)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.conversation.leave()

    def wait(self) -> Fetched:
        seen = self.listening.run(self.ask, self.conversation)
        return Fetched(
            updated=ids_of([one.ref for one in seen if one.flag in " +*"]),
            vanished=ids_of([one.ref for one in seen if one.flag == "-" and LEAVES.search(one.ref)]),
            before={one.ref.rpartition("/")[2]: one.before for one in reversed(seen) if one.before},
        )


def reported(said: GitSpoken) -> list[Report]:
    """Parse the refs that git says it changed. The server's own lines come behind `remote:` and cannot look like
    these.
    """
    matches = (re.match(_REPORT, line) for line in said.err if " -> " in line)
    return [Report(found[1], found[3], found[2] or "") for found in matches if found and found[1] != "!"]


def branch_ref(branch: str) -> str:
    """Return a branch's ref; Usage where the name is none."""
    ref = f"refs/heads/{branch}"
    validate_move(RefMove(ref, "0" * 40, None))
    if branch.startswith("-") or branch == "HEAD":
        raise Usage(f"not a name for a branch: {branch!r}")
    return ref


def default_branch_of(repo: Repository, remote: str, *, timeout: float = 60) -> str:
    """Return the remote's default branch, as it says itself; empty where it says none."""
    place = read_remote(repo, remote)
    said = converse(repo, place, (), ("ls-remote", "--symref", "--", remote, "HEAD"), timeout=timeout)
    for line in said.out if said.code == 0 else ():
        named, tab, what = line.partition("\t")
        if tab and what == "HEAD" and named.startswith("ref: refs/heads/"):
            return named.removeprefix("ref: refs/heads/")
    return ""


def fetch_branch(repo: Repository, remote: str, branch: str, *, timeout: float = 60) -> str | None:
    """Fetch a branch and return its tip on the remote now; None where the remote does not have it."""
    branch_ref(branch)
    base = tracking_base(remote)
    # Git completes a source that is a name: for a branch that is missing it would bring a tag called so. A pattern means what it
    # says, and a missing branch is no failure then. Its star stands for nothing, and where it is few other branches fit as well.
    first, rest = branch[: len(branch) // 2], branch[len(branch) // 2 :]
    listening = Listening(repo, read_remote(repo, remote), timeout, None, None)
    listening.run(Ask([f"+refs/heads/{first}*{rest}:{base}heads/{first}*{rest}"]))
    return Refs(repo).get(f"{base}heads/{branch}")
