"""Store: refs on their way out. Each move says from where to where; the server's compare-and-swap decides.

GitPython reads git's progress, where somebody watches. Its reader of results drops every line whose source is an object's
name instead of a ref, and ours all are, so results are read here; and to import it took a quarter of a push.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from ...document import replace
from ...errors import FINAL, Failure, GateError, GitFailed, LostRace, PushRefused, Usage
from ..git import Repository
from ..git.refs import OPEN, WORK, Refs
from ..git.remembered import RECORDS, remember_tips
from . import (
    HITL,
    FateKind,
    HookNote,
    RefFate,
    RefMove,
    Refusal,
    Remote,
    gate_of,
    look_alikes,
    looks_like_address,
    read_config,
    read_remote,
    tracking,
    tracking_base,
    validate_move,
)
from .wire import (
    GitSpoken,
    Progress,
    converse,
    explain,
    in_one_line,
    inability,
    late_listener,
    server_lines,
    without_secret,
)

SETTINGS = ("push.negotiate=false", "push.gpgSign=false", "pack.writeReverseIndex=false")
OPTIONS = (
    "--porcelain",
    "--progress",  # Signs of life, whether anybody watches or not.
    "--no-follow-tags",
    "--recurse-submodules=no",
    "--no-verify",
    "--no-signed",
    "--no-force-if-includes",
)
MOST_LEFT_OUT = 10_000  # On one command line.
# What a server says when somebody moved the ref between its advertisement and our command.
_RACED = (
    r"stale info|fetch first|incorrect old value|failed to update ref|cannot lock ref|failed to lock|already exists"
    r"|reference already exists|is at [0-9a-f]+ but expected|unable to resolve reference|failed to delete"
)
_HELD = r"(?i)\.lock': file exists"
_CUT = r"(?i)hung up unexpectedly|unexpected disconnect|RPC failed|early EOF|broken pipe"
_COLLATERAL = r"atomic push fail|atomic transaction failed|transaction aborted"


def push(
    repo: Repository,
    remote: str,
    moves: Sequence[RefMove],
    *,
    atomic: bool = True,
    divided: bool = False,
    timeout: float = 60,
    progress: Progress | None = None,
    prompts: bool | None = None,
) -> list[RefFate]:
    """Move refs on `remote`; one fate for each move, in their order.

    As many refs go at once as the remote takes (`batches`), unless they are `divided` already; the refs of one gate are
    never split. With `atomic` all moves of one such batch happen or none does. `timeout` is how long the server may be
    silent. Raises when the server cannot be reached or takes nothing at all; once it has taken something, the rest is
    reported as fates. What the remote has then is noted here.
    """
    for move in moves:
        validate_move(move)
    if len({move.ref for move in moves}) != len(moves):
        raise Usage("a push names the same ref twice")
    if not moves:
        return []
    place = read_remote(repo, remote)
    sender = Sender(repo, place, atomic=atomic, timeout=timeout, progress=progress, prompts=prompts)
    known = {} if sender.noted_by_git(moves) else tracked(repo, remote, sender.left_to_note(moves))
    fates: dict[str, RefFate] = {}
    for batch in [moves] if divided else for_remote(repo, remote, moves):
        try:
            told = sender.send(batch)
        except GateError:
            if not fates:
                raise
            break
        fates |= {fate.ref: fate for fate in told}
        if not sender.noted_by_git(batch):
            note_pushed(repo, remote, sender.left_to_note(m for m in batch if fates[m.ref].ok), known)
        taken = {
            tracking(remote, m.ref): m.new for m in batch if m.ref.startswith(RECORDS) and fates[m.ref].ok
        }
        remember_tips(repo, {ref: tip for ref, tip in taken.items() if tip is not None})
    return [fates.get(move.ref, RefFate(move.ref, FateKind.NOT_SENT)) for move in moves]


def rehearse(repo: Repository, remote: str, moves: Sequence[RefMove], *, timeout: float = 60) -> None:
    """Go all the way of a push but the last step, so that nothing moves. Raise where the remote does not let us in.

    The fate of single refs is not returned: somebody may move them while we ask.
    """
    for move in moves:
        validate_move(move)
    place = read_remote(repo, remote)
    for target in place.targets[:1]:
        specs = [spec_of(move) for move in moves]
        said = converse(
            repo, place, SETTINGS, ["push", "--dry-run", *OPTIONS, "--", target, *specs], timeout=timeout
        )
        if said.code and not parse_results(said):
            raise explain(target, said, timeout=timeout)


class Sender:
    """Sender of one batch after another to one remote, which finds out what became of each ref."""

    def __init__(
        self,
        repo: Repository,
        remote: Remote,
        *,
        atomic: bool,
        timeout: float,
        progress: Progress | None,
        prompts: bool | None,
    ) -> None:
        self.repo = repo
        self.remote = remote
        self.atomic = atomic
        self.timeout = timeout
        self.prompts = prompts
        self.cut = False
        self.on_line = late_listener(progress) if progress else None

    def send(self, batch: Sequence[RefMove]) -> list[RefFate]:
        """Send a batch. The first address decides; further ones get a copy, and a fate says where one is missing."""
        first, *others = self.remote.targets
        fates = self._settle(first, batch)
        taken = [move for move, fate in zip(batch, fates, strict=True) if fate.ok]
        for url in others if taken else ():
            missing = self._copy(url, taken)
            fates = [
                replace(fate, missing_at=(*fate.missing_at, without_secret(url)))
                if fate.ref in missing
                else fate
                for fate in fates
            ]
        return fates

    def noted_by_git(self, batch: Sequence[RefMove]) -> bool:
        """Return whether git's push itself notes what the remote has then, because it is given a refspec.

        It is given none where an address stands for a name, nor where moves are many: of each git would write a file.
        """
        name = self.remote.name
        return len(batch) <= MOST_REFS and self.remote.targets == (name,) and not looks_like_address(name)

    def left_to_note(self, moves: Iterable[RefMove]) -> list[RefMove]:
        """Return the moves whose place git does not note by the remote's own refspecs.

        `git gate init` makes such a refspec for the records. Git goes by the first that fits.
        """
        name, base = self.remote.name, tracking_base(self.remote.name)
        said = self.repo.configured.get(f"remote.{name}.fetch", ()) if self.remote.targets == (name,) else ()
        fitting = [spec for spec in said if OPEN.startswith(spec.lstrip("+^").partition("*")[0])]
        ours = fitting[:1] == [f"+{OPEN}*:{base}open/*"] and not any(spec.startswith("^") for spec in fitting)
        return [move for move in moves if not (ours and move.ref.startswith(OPEN))]

    def _by_pattern(self, batch: Sequence[RefMove]) -> tuple[list[str], Sequence[RefMove]]:
        """Return refspecs that stand for many moves at once, and the moves that are named one by one.

        Git compares each that is named, and each lease, with every ref on both sides: a thousand of them take longer
        than all the rest. A record or its work may go by a pattern where it is here what is to be there: without force
        git moves it only from where that goes on from, which says as much as a lease does. What else is below the
        pattern is left out.
        """
        if len(batch) <= MOST_REFS:
            return [], batch
        here = Refs(self.repo).under(OPEN, WORK)
        fit = {
            move.ref
            for move in batch
            if here.get(move.ref, "") == move.new and (move.old is None or move.ref.startswith(OPEN))
        }
        used = [prefix for prefix in (OPEN, WORK) if any(ref.startswith(prefix) for ref in fit)]
        others = [f"^{ref}" for ref in here if ref.startswith(tuple(used)) and ref not in fit]
        if not fit or len(others) > MOST_LEFT_OUT:
            return [], batch
        return [*(f"{prefix}*:{prefix}*" for prefix in used), *others], [m for m in batch if m.ref not in fit]

    def _copy(self, url: str, moves: Sequence[RefMove]) -> frozenset[str]:
        try:
            return frozenset(fate.ref for fate in self._settle(url, moves) if not fate.ok)
        except Failure:
            return frozenset(move.ref for move in moves)

    def _settle(self, target: str, batch: Sequence[RefMove]) -> list[RefFate]:
        """Push; if the connection broke before the report came, push again: that reads the refs anew."""
        fates, said = self._push(target, batch)
        if any(fate.kind is FateKind.UNKNOWN for fate in fates):
            again, said = self._push(target, batch)
            gone = self._gone(
                [m for m, fate in zip(batch, again, strict=True) if fate.kind is FateKind.STALE]
            )
            fates = [
                RefFate(one.ref, FateKind.OK)
                if one.ref in gone
                else one
                if first.kind is FateKind.UNKNOWN
                else first
                for first, one in zip(fates, again, strict=True)
            ]
        if all(fate.kind in (FateKind.UNKNOWN, FateKind.NOT_SENT) for fate in fates) and said.code:
            raise explain(target, said, timeout=self.timeout)
        return fates

    def _gone(self, moves: Sequence[RefMove]) -> frozenset[str]:
        """Return the deletions that found nothing to delete: the attempt that was cut off had done them."""
        refs = [move.ref for move in moves if move.new is None and move.ref.startswith(HITL)]
        from .fetch import fetch_refs  # hardly ever needed

        there = fetch_refs(self.repo, self.remote.name, refs, timeout=self.timeout, prompts=self.prompts)
        return frozenset(refs) - frozenset(there)

    def _push(self, target: str, batch: Sequence[RefMove]) -> tuple[list[RefFate], GitSpoken]:
        together, each = self._by_pattern(batch)
        named = {}
        if self.noted_by_git(batch):
            named[f"remote.{target}.fetch"] = f"+{HITL}*:{tracking_base(self.remote.name)}*"
        leases = (f"--force-with-lease={move.ref}:{move.old or ''}" for move in each)
        specs = [spec_of(move) for move in each]
        said = converse(
            self.repo,
            self.remote,
            SETTINGS,
            [
                "push",
                *OPTIONS,
                *(["--atomic"] if self.atomic else []),
                *leases,
                "--",
                target,
                *together,
                *specs,
            ],
            timeout=self.timeout,
            prompts=self.prompts,
            named=named,
            on_line=self.on_line,
        )
        told = parse_results(said)
        if (
            not told
            and not said.silenced
            and any(re.search(_CUT, line) for line in said.err)
            and not self.cut
        ):
            self.cut = True
            return [RefFate(move.ref, FateKind.UNKNOWN) for move in batch], said
        # Git ends so where it read the refs, and one of ours may be either of two of them; where it reads nothing, as with 128.
        in_the_way = likes_told(batch, told) or (
            self._likes_there(target, batch) if not told and said.code == 1 and not said.silenced else {}
        )
        if not told and not in_the_way:
            raise explain(target, said, timeout=self.timeout)
        # git leaves a ref out of its report only when it never came to sending it.
        fates = [told.get(move.ref, RefFate(move.ref, FateKind.NOT_SENT)) for move in batch]
        return [
            blocked(self.remote.name, fate.ref, in_the_way[fate.ref]) if fate.ref in in_the_way else fate
            for fate in fates
        ], said

    def _likes_there(self, target: str, batch: Sequence[RefMove]) -> dict[str, tuple[str, ...]]:
        """Return by ref the remote's refs that git cannot tell from it. The remote is asked only where a push
        got nowhere.
        """
        from .fetch import parse_ls_remote  # hardly ever needed

        asked = (name for move in batch for name in (move.ref, f"{move.ref}/HEAD"))
        said = converse(
            self.repo,
            self.remote,
            (),
            ("ls-remote", "--", target, *asked),
            timeout=self.timeout,
            prompts=self.prompts,
        )
        return {} if said.code else likes_of(batch, parse_ls_remote(said))


def spec_of(move: RefMove) -> str:
    """Return the refspec of a move. Git takes an id alone for the name of a ref here, if a ref is called so."""
    return f"{move.new}^{{object}}:{move.ref}" if move.new else f":{move.ref}"


def likes_of(batch: Sequence[RefMove], names: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return by ref those of `names` that git takes it for, where it completes the destination of a push."""
    found = {move.ref: tuple(name for name in look_alikes(move.ref) if name in names) for move in batch}
    return {ref: likes for ref, likes in found.items() if likes}


def likes_told(batch: Sequence[RefMove], told: Mapping[str, RefFate]) -> dict[str, tuple[str, ...]]:
    """Return by ref the others that git pushed to, or tried to, in its stead."""
    return likes_of(batch, told.keys() - {move.ref for move in batch}) if len(told) else {}


def blocked(remote: str, ref: str, names: tuple[str, ...]) -> RefFate:
    """Return the fate of a ref that no push reaches while the remote has others that git takes it for."""
    mend = f"git push {remote} {' '.join(f':{name}' for name in names)}"
    words = (
        f"git cannot tell it from {' and '.join(names)}, which that repository has; to remove that: {mend}"
    )
    return RefFate(ref, FateKind.REFUSED, words, blocked=names)


def parse_results(said: GitSpoken) -> dict[str, RefFate]:
    """Parse the fate of each ref in `git push --porcelain`'s report: flag, `from:to` and summary between tabs."""
    heard = server_lines(said.err)
    fates: dict[str, RefFate] = {}
    for line in said.out:
        flag, tab, rest = line.partition("\t")
        route, tab, summary = rest.partition("\t")
        if len(flag) <= 1 and tab:
            ref = route.rpartition(":")[2]
            fates[ref] = parse_fate(ref, flag, summary, heard)
    if fates and all(fate.kind is FateKind.NOT_SENT for fate in fates.values()):
        fates = blamed(fates, heard)
    return excused(fates, said.err)


def blamed(fates: Mapping[str, RefFate], heard: tuple[str, ...]) -> dict[str, RefFate]:
    """Return the fates after a failed atomic transaction. The server reports just that for every ref; why, and
    which, is in words.
    """
    words = in_one_line(heard)
    named = {ref for ref in fates if f"'{ref}'" in words} or set(fates)
    raced = re.search(_RACED, words) is not None
    kind = FateKind.STALE if raced else FateKind.REFUSED
    why = "" if raced else words or "the server could not do it"
    return {ref: replace(fate, kind=kind, why=why) if ref in named else fate for ref, fate in fates.items()}


def excused(fates: Mapping[str, RefFate], lines: Sequence[str]) -> dict[str, RefFate]:
    """Return the fates, with the reason where the server was unable to do it: it refused nothing then.

    A push that finds a ref locked may have lost a race besides.
    """
    why: dict[str, str] = {}
    told = dict(fates)
    for ref, fate in fates.items():
        if fate.kind not in (FateKind.STALE, FateKind.REFUSED):
            continue
        reason = fate.why.partition(": ")[0] if fate.refused else fate.kind.value
        if reason not in why:
            why[reason] = inability(lines, reason)
        if why[reason]:
            raced = fate.refused or re.search(_HELD, why[reason])
            kind, said = (fate.kind, fate.why) if raced else (FateKind.REFUSED, why[reason])
            told[ref] = replace(fate, kind=kind, why=said, unable=why[reason])
    return told


def parse_fate(ref: str, flag: str, summary: str, heard: tuple[str, ...]) -> RefFate:
    if flag != "!":
        return RefFate(ref, FateKind.OK, heard=heard)
    reason = summary.rpartition("] (")[2].removesuffix(")")
    if re.search(_COLLATERAL, reason):
        return RefFate(ref, FateKind.NOT_SENT)
    if "[remote failure]" in summary:
        return RefFate(ref, FateKind.UNKNOWN)
    if re.search(_RACED, reason):
        return RefFate(ref, FateKind.STALE)
    why = ": ".join(part for part in (reason, in_one_line(heard)) if part)
    refusal = Refusal(reason) if reason in set(Refusal) else Refusal.OTHER
    return RefFate(ref, FateKind.REFUSED, why, refusal, heard=heard, notes=hook_notes(heard))


# Our hook's line about a ref, and what it says there of an event's commit: `gate: REF: EVENT (COMMIT): WHY`, at the end the mark
# of what is never taken.
_NOTE = r"gate: (refs/\S+): (.*)"
_OF_COMMIT = rf"\w+ \(([0-9a-f]{{10}})\): .*?( \({re.escape(FINAL)}\))?"


def hook_notes(heard: Iterable[str]) -> tuple[HookNote, ...]:
    """Return our hook's lines about refs. No other line says anything of a ref."""
    found = []
    for line in heard:
        note = re.fullmatch(_NOTE, line)
        about = re.fullmatch(_OF_COMMIT, note[2]) if note else None
        if note:
            commit, final = (about[1], about[2] is not None) if about else ("", False)
            found.append(HookNote(note[1], note[2], commit, final))
    return tuple(found)


def tracked(repo: Repository, remote: str, moves: Iterable[RefMove]) -> dict[str, str]:
    """Return what we believe that the remote has at the refs of these moves, by tracking ref."""
    names = [tracking(remote, move.ref) for move in moves if move.ref.startswith(HITL)]
    # Git compares every ref with every name that it is given: where there are many, all are listed.
    asked = names if len(names) <= MOST_REFS else [tracking_base(remote)]
    return Refs(repo).under(*asked) if names else {}


def note_pushed(repo: Repository, remote: str, moves: Sequence[RefMove], known: Mapping[str, str]) -> None:
    """Note what the remote has now, all at once. A fetch that saw more than we know wins; the note is left to it
    then.
    """
    notes = [
        RefMove(ref, move.new, known.get(ref))
        for move in moves
        if move.ref.startswith(HITL) and known.get(ref := tracking(remote, move.ref)) != move.new
    ]
    refs = Refs(repo)
    try:
        refs.update(notes)
    except (LostRace, GitFailed):
        now = tracked(repo, remote, moves) if len(notes) > 1 else {}
        for note in notes if len(notes) > 1 else ():
            if now.get(note.ref) == note.old:
                with suppress(LostRace, GitFailed):
                    refs.update([note])


MOST_REFS = 25  # What a forge takes: they refuse or time out on hundreds of refs at once.
MOST_OWN = 4000  # What a server of one's own is given at once: all of it goes on one command line.
# Where a host is one of these, or below it; another forge is named by the setting `gitgate.forge`.
FORGES = (
    "github.com ghe.com gitlab.com bitbucket.org codeberg.org gitea.com gitee.com dev.azure.com visualstudio.com "
    "amazonaws.com googlesource.com git.sr.ht"
).split()
_HOST = r"(?:[a-z+]+://)?(?:[^/@]*@)?([a-z0-9_.-]+)[:/].*"


def most_refs(repo: Repository, remote: str) -> int:
    """Return how many refs that remote is given in one push.

    Git is asked for its address, where a setting may put another one there.
    """
    if "gitgate.forge" in repo.configured or (not repo.configured and read_config(repo, r"^gitgate\.forge$")):
        return MOST_REFS
    known = repo.configured.get(f"remote.{remote}.url", ())
    if not known or any(key.startswith("url.") for key in repo.configured):
        said = repo.git.run("ls-remote", "--get-url", "--", remote, check=False).out
        known = [said.decode("utf-8", "replace")]
    found = re.fullmatch(_HOST, known[0].strip().lower())
    host = f".{found[1]}" if found else ""
    return MOST_REFS if any(host.endswith(f".{forge}") for forge in FORGES) else MOST_OWN


def batches(moves: Iterable[RefMove], most: int = MOST_REFS) -> list[list[RefMove]]:
    """Return batches of at most `most` refs in the order given; what belongs to one gate stays together."""
    found: list[list[RefMove]] = []
    for group in by_gate(moves).values():
        if found and len(found[-1]) + len(group) <= most:
            found[-1] += group
        else:
            found.append(list(group))
    return found


def for_remote(repo: Repository, remote: str, moves: Sequence[RefMove]) -> list[list[RefMove]]:
    """Return the batches in which that remote is given these moves; where they are few, nobody is asked what it
    takes.
    """
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
) -> list[RefFate]:
    """Move many gates: each one's refs all or none, and none because of another's. Return one fate for each move.

    A gate that failed leaves its batch, and the rest goes again; where a hook refused a whole batch without saying
    whose fault it is, or the server did not take so much at once, each half goes by itself. Batches only shrink, so
    this ends.
    """
    fates: dict[str, RefFate] = {}
    waiting = for_remote(repo, remote, moves)
    while waiting:
        batch = waiting.pop(0)
        try:
            told = push(
                repo,
                remote,
                batch,
                atomic=len(by_gate(batch)) < len(batch),
                divided=True,
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
    return [fates.get(move.ref, RefFate(move.ref, FateKind.NOT_SENT)) for move in moves]


def still_to_send(batch: Sequence[RefMove], told: Sequence[RefFate]) -> list[list[RefMove]]:
    """Return the moves of a batch that failed for no fault of their own, as the next batches to try; all of them
    smaller.
    """
    gates = list(by_gate(batch).values())
    fate = {one.ref: one for one in told}
    if all(one.refusal is Refusal.WHOLE_PUSH for one in told):
        # Ours names the refs that it refuses, so that the others need not be looked for half by half.
        blamed_refs = {note.ref for one in told for note in one.notes}
        meant = [gate for gate in gates if any(move.ref in blamed_refs for move in gate)]
        rest = [move for gate in gates if gate not in meant for move in gate]
        return ([rest] if rest else []) if meant else halves(batch)
    innocent = [gate for gate in gates if all(fate[move.ref].kind is FateKind.NOT_SENT for move in gate)]
    return [[move for gate in innocent for move in gate]] if 0 < len(innocent) < len(gates) else []


def with_own_words(fate: RefFate) -> RefFate:
    """Return a fate with only those of the hook's words that are about this ref, where the hook named it."""
    own = tuple(note for note in fate.notes if note.ref == fate.ref)
    if not own:
        return fate
    said = f"gate: {fate.ref}: {own[0].words}"
    return replace(fate, why=": ".join(part for part in (fate.refusal.value, said) if part), notes=own)


def halves(batch: Sequence[RefMove]) -> list[list[RefMove]]:
    """Return each half of the gates; nothing where there is but one."""
    gates = list(by_gate(batch).values())
    half = len(gates) // 2
    return [[move for gate in part for move in gate] for part in (gates[:half], gates[half:])] if half else []
