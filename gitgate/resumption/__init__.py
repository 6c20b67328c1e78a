"""Resumption: where the agent goes on, and how it is started: what it is told, and with which surroundings.

The very directory that it left, when that still fits; else a working tree of its own. What a person changed there meanwhile
is kept, and told. What happened to the branch is told too; nothing is merged on anybody's behalf.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ..claims import HeldClaim
from ..context import Desk, machine
from ..document import dataclass, replace
from ..errors import GateError, WorkFailed
from ..gates import agency
from ..gates.leases import shared_at
from ..gates.work import bring_work, made_by_us, run_of_work, took_place, work_of, worktrees
from ..model.gate import Gate, SavedSession, SessionRef, Work
from ..policy import project as bylaws
from ..policy.project import InForce
from ..questions.answers import printed
from ..questions.calls import placed_of
from ..questions.prompts import Circumstances, late_branches, resume_prompt
from ..store import locked, private_folder, read_local_note, write_private
from ..store.git import Git, Repository, discover
from ..store.git.refs import HEAD, Refs
from ..store.work import commits
from ..store.work.aside import is_standing
from ..store.work.restore import (
    as_environment,
    diff,
    list_drivers,
    matches,
    open_worktree,
    plain_drivers,
    refused_names,
    remove_worktree,
    switched_off,
    without_place,
)
from ..store.work.snapshot import take
from ..text import counted

if TYPE_CHECKING:
    from ..agents.agent import AgentSettings, Launch


def note_run(desk: Desk, gate: Gate, folder: Path) -> None:
    """Note the folder with the words and the end of the agent's process, for the next runner if this one is killed."""
    place = took_place(desk, gate.id)
    said = read_local_note(place)
    write_private(place, json.dumps({**said, "run": str(folder)}).encode())


def noted_run(desk: Desk, gate: Gate) -> Path | None:
    try:
        run = read_local_note(took_place(desk, gate.id), run=str)["run"]
    except (OSError, ValueError):
        return None
    return Path(run) if run else None


def answer_of(gate: Gate) -> str:
    return gate.answer.commit if gate.answer else "expired"


LOCK_AGE = 3.0  # seconds
MOST_LEFT, MOST_NAME = 100, 500


@dataclass(frozen=True)
class Course:
    """Destination of the agent's commits, as far as whoever starts it knows more than the gate says.

    A pull request may have another branch by now. `branch`: the present name of the gate's branch. `gone`: why that
    branch no longer exists, and is not to be made again. `joins`: whether commits of others on it are merged, because
    in a checkout that is deleted after the job nobody could do so later. `note`: what else the agent is to be told of
    it. `found`: the branch was there, so that it was deleted if it is missing when the agent is done.
    """

    branch: str = ""
    gone: str = ""
    note: str = ""
    joins: bool = False
    found: bool = False


@dataclass(frozen=True)
class Situation:
    """Place of the agent, with what is to be told about it. `ours`: made for this gate, and removed afterwards."""

    directory: Path
    ours: bool
    branch: str | None
    start: str
    known: tuple[str, ...] = ()
    trusted: bool = False
    edits: str = ""
    moved: str = ""
    conflicts: tuple[str, ...] = ()
    new_branch: bool = False
    again: bool = False
    course: Course = Course()

    def there(self, desk: Desk) -> Repository:
        return discover(self.directory, without_place(desk.repo.git.env))


def asked_here(desk: Desk, gate: Gate) -> machine.Presence | None:
    """Return the asker as this machine remembers it; None where it did not ask here.

    A record's own hosts and directories prove nothing, because anybody could have written them.
    """
    found = machine.find_presence(desk, gate.id)
    return found if found is not None and found.work == (gate.opened.work.commit or "") else None


def is_trusted(desk: Desk, gate: Gate) -> bool:
    """Return whether the work was made on this machine, by an agent that had nothing from elsewhere when it asked."""
    here = asked_here(desk, gate)
    return here is not None and here.trusted


def left_on(desk: Desk, gate: Gate) -> str | None:
    """Return the branch that the agent left its directory on.

    An agent that asked again may have been on another branch than its work's.
    """
    here = asked_here(desk, gate)
    return (here.branch if here is not None else "") or work_of(desk, gate).branch


@contextlib.contextmanager
def take_place(desk: Desk, gate: Gate, course: Course = Course()) -> Iterator[Situation]:
    """Prepare the place for the agent, and lock it against others during this block."""
    with contextlib.ExitStack() as held:
        found = (
            resumed_before(desk, gate, held)
            or same_directory(desk, gate, held)
            or new_place(desk, gate, held)
        )
        found = with_branch_news(desk, gate, replace(found, course=course))
        write_note(desk, gate, found)
        yield found


def resumed_before(desk: Desk, gate: Gate, held: contextlib.ExitStack) -> Situation | None:
    """Return the place of an earlier attempt that was interrupted on this machine, and lock it; None without one.

    What the agent did there is its own work.
    """
    try:
        said = read_local_note(
            took_place(desk, gate.id),
            **dict.fromkeys(("directory", "start", "answer"), str),
            branch=(str, type(None)),
            known=list,
        )
        before = Situation(
            directory=Path(said["directory"]),
            ours=bool(said["ours"]),
            branch=said["branch"],
            start=str(said["start"]),
            known=tuple(said["known"]),
            trusted=bool(said["trusted"]),
            new_branch=bool(said["new_branch"]),
            again=True,
        )
        fits = said["answer"] == answer_of(gate) and repository_of(desk, before.directory) is not None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return before if fits and lock(desk, before.directory, held) else None


def write_note(desk: Desk, gate: Gate, found: Situation) -> None:
    run = noted_run(desk, gate) if found.again else None
    said = {**asdict(found), "directory": str(found.directory), "answer": answer_of(gate)}
    place = took_place(desk, gate.id)
    private_folder(place.parent)
    write_private(place, json.dumps({**said, "run": str(run) if run else None}).encode())


def repository_of(desk: Desk, directory: Path) -> Repository | None:
    """Return the working tree at `directory`, if it is one of this very repository."""
    if not directory.is_dir():
        return None
    try:
        there = discover(directory, without_place(desk.repo.git.env))
    except GateError:
        return None
    same = there.common_dir.resolve() == desk.repo.common_dir.resolve()
    return there if same and there.top is not None and there.top.resolve() == directory.resolve() else None


def lock(desk: Desk, directory: Path, held: contextlib.ExitStack) -> bool:
    """Lock a directory against our other processes until `held` or the process ends. Return whether that worked."""
    name = hashlib.sha256(str(directory.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:20]
    place = desk.repo.state_dir / "places" / f"{name}.lock"
    private_folder(place.parent)
    return held.enter_context(locked(place))


def same_directory(desk: Desk, gate: Gate, held: contextlib.ExitStack) -> Situation | None:
    """Return the directory that the agent left, if HEAD and the operation under way are what they were."""
    here, work = asked_here(desk, gate), work_of(desk, gate)
    if here is None or work.commit is None:
        return None
    directory, branch = Path(here.directory), left_on(desk, gate)
    if work is not gate.opened.work:
        directory, branch = directory_of_run(desk, gate), work.branch
    there = repository_of(desk, directory)
    if there is None or not stands_as_before(there, work, branch):
        return None
    with contextlib.ExitStack() as ours:  # Where it will not do, others may have it.
        if not lock(desk, there.place, ours):
            return None
        apart = there if here.trusted else pinned_down(there)
        try:
            edits = edits_since(desk, apart, work)
        except GateError:
            return None
        known, moved = tips(desk), branch != work.branch
        held.push(ours.pop_all())
    return Situation(
        there.place, False, branch, work.base or "", known, here.trusted, edits, new_branch=moved
    )


def directory_of_run(desk: Desk, gate: Gate) -> Path:
    """Return the directory where the run that asked was begun.

    Its branches work in trees of their own, and their work is merged in this directory.
    """
    found = run_of_work(desk, gate)
    return Path(found[0].started.text("directory") if found is not None else "")


def head_of(there: Repository) -> str | None:
    """Return the commit that a working tree stands on; None where there is none yet."""
    return Refs(there).get(HEAD)


def stands_as_before(there: Repository, work: Work, branch: str | None) -> bool:
    return head_of(there) == work.base and commits.head_branch(there.git) == branch


def edits_since(desk: Desk, there: Repository, work: Work) -> str:
    """Return what changed in the files since the question was asked, as a diff; empty where nothing did."""
    signals = desk.settings.text("signals")
    if work.commit is None or matches(there, work.commit, work.staged or work.commit, signals=signals):
        return ""
    now = take(there, at=desk.at, author=("gitgate", "gitgate@localhost"), signals=signals)
    if now.operation != work.operation:
        raise WorkFailed("another operation is under way there")
    return diff(there, work.commit, now.work).decode("utf-8", "replace")


def tips(desk: Desk) -> tuple[str, ...]:
    return tuple(commits.known_tips(desk.repo))


def new_place(desk: Desk, gate: Gate, held: contextlib.ExitStack) -> Situation:
    """A working tree for this gate alone, with the work in it as it was.

    In a repository that others push to, the agent's branch stays where it is until the outcome is recorded: the agent
    works on a branch of its own.
    """
    work = work_of(desk, gate)
    commit = bring_work(desk, gate, work if work is not gate.opened.work else None)
    directory = free_directory(desk, gate.id)
    private_folder(desk.repo.state_dir)
    directory.parent.mkdir(parents=True, exist_ok=True)
    own = f"gate/{gate.id}"
    trusted = is_trusted(desk, gate)
    known = tips(desk)
    place = open_worktree(
        desk.repo,
        base=work.base,
        staged=work.staged or commit,
        work=commit,
        directory=directory,
        branch=work.branch if not desk.repo.bare else (work.branch and own),
        fallback_branch=own,
        trusted=trusted,
    )
    lock(desk, place.directory, held)
    told = "; ".join(note for note in place.notes if not desk.repo.bare or own not in note)
    return Situation(
        place.directory,
        True,
        place.branch,
        work.base or "",
        known,
        trusted,
        moved=told,
        new_branch=place.branch != work.branch,
    )


def free_directory(desk: Desk, gate: str) -> Path:
    """Return a directory for a new working tree of the gate.

    An older tree that cannot be gone on with stays where it is, because somebody's work may be in it.
    """
    wanted = worktrees(desk) / gate
    for number in range(1, 100):
        found = wanted if number == 1 else wanted.with_name(f"{gate}-{number}")
        if not os.path.lexists(found):
            return found
    raise WorkFailed(
        f"there are a hundred working trees of gate {gate}", hint=f"remove some: {worktrees(desk)}"
    )


def with_branch_news(desk: Desk, gate: Gate, found: Situation) -> Situation:
    """Add what happened to the branch since the question: how far it moved, and which paths a merge would conflict in."""
    work, course = work_of(desk, gate), found.course
    if work.branch is None or work.commit is None or not work.base:
        return found
    if course.gone:
        return replace(found, moved="; ".join(part for part in (found.moved, course.gone) if part))
    called = f"branch {work.branch} is called {course.branch} now"
    news = (found.moved, called if course.branch not in ("", work.branch) else "", course.note)
    found = replace(found, moved="; ".join(part for part in news if part))
    tip = branch_now(desk, gate, course.branch or work.branch)
    if tip is None or tip == work.base or not commits.is_ancestor(desk.repo.git, work.base, tip):
        gone = tip is not None and tip != work.base
        words = (
            f"branch {work.branch} was rewritten meanwhile: it is at {tip[:10]} now" if gone and tip else ""
        )
        return replace(found, moved="; ".join(part for part in (found.moved, words) if part))
    count = desk.repo.git.text("rev-list", "--count", f"{work.base}..{tip}")
    words = f"branch {work.branch} went on by {counted(int(count), 'commit')} meanwhile, to {tip[:10]}"
    clashes = commits.conflicts(desk.repo.git, tip, work.commit)
    words += "; merging it would conflict" if clashes else "; your work merges with it without conflicts"
    return replace(
        found, moved="; ".join(part for part in (found.moved, words) if part), conflicts=tuple(clashes)
    )


def branch_now(desk: Desk, gate: Gate, branch: str) -> str | None:
    """Return the commit of a branch: at the remote where the gate is shared, else here; None where there is none."""
    remote = shared_at(desk, gate.id)
    if remote is not None:
        from ..store.remote.fetch import fetch_branch

        try:
            there = fetch_branch(desk.repo, remote, branch, timeout=desk.network_timeout)
        except GateError:
            there = None
        if there is not None:
            return there
    return desk.refs.get(f"refs/heads/{branch}")


def settings_without_programs(there: Repository) -> Mapping[str, str]:
    """Return variables by which git runs no hooks, watchers, filters or drivers, whatever its files of settings say."""
    names = refused_names(there.git, list_drivers(there.git), trusted=False, tops=[], git_dirs=[])
    said = switched_off(names, {})
    off = [("core.hooksPath", os.devnull), ("core.fsmonitor", "false"), *plain_drivers(there.git)]
    return {**said, **as_environment(off, said)}


def without_programs(desk: Desk, found: Situation) -> Repository:
    """Return the repository with a git that runs no filters: even a look at work from elsewhere would run them."""
    git = Git(desk.repo.git.directory, {})
    git.env = {**desk.repo.git.env, **settings_without_programs(found.there(desk))}
    return replace(desk.repo, git=git)


def free(desk: Desk, there: Repository) -> None:
    """Remove the locks that a killed git left in a working tree of ours, or the agent could commit nothing there.

    A git of the attempt before that is about to end gets some seconds to remove its lock by itself.
    """
    if not made_by_us(desk, there.place):
        return
    until = time.monotonic() + LOCK_AGE
    for lock in (there.git_dir / "index.lock", there.git_dir / "HEAD.lock"):
        with contextlib.suppress(OSError):
            while time.time() - lock.lstat().st_mtime < LOCK_AGE and time.monotonic() < until:
                time.sleep(0.1)
            lock.unlink()


def apart(desk: Desk, found: Situation) -> Repository:
    """Return the place with a git that runs nothing which the work brought."""
    there = found.there(desk)
    return there if found.trusted else pinned_down(there)


def pinned_down(there: Repository) -> Repository:
    git = Git(there.git.directory, {})
    git.env = {**there.git.env, **settings_without_programs(there)}
    return replace(there, git=git)


def uncommitted(desk: Desk, found: Situation) -> tuple[str, ...]:
    """Return the paths that the agent did not commit. The files stay where they are, and nobody else gets them."""
    how = ("--porcelain=v1", "-z", "--untracked-files=normal", "--no-renames", "--ignore-submodules=dirty")
    listed = apart(desk, found).git.run("status", *how, check=False).out.split(b"\0")
    names = [entry[3:].decode("utf-8", "replace")[:MOST_NAME] for entry in listed if len(entry) > 3]
    if len(names) <= MOST_LEFT:
        return tuple(names)
    return (*names[:MOST_LEFT], f"… and {len(names) - MOST_LEFT:,} more")


def remove_place(desk: Desk, gate: str, found: Situation) -> str:
    """Remove a finished working tree of ours. One with uncommitted changes stays, and is named in the result."""
    with contextlib.suppress(OSError):
        took_place(desk, gate).unlink()
    if not made_by_us(desk, found.directory):
        return ""
    if is_standing(found.there(desk)):
        return f"files that stand for others remain in {found.directory}"
    repo = desk.repo if found.trusted else without_programs(desk, found)
    try:
        remove_worktree(repo, found.directory)
    except WorkFailed:
        return f"changes that were not committed remain in {found.directory}"
    return ""


AGAIN = "you were here before, in an attempt that was interrupted or talking with a person; what was done is still here"


def program_for(gate: Gate, saved: SavedSession) -> SessionRef:
    """Return the conversation that an answer goes on with: the asker's, or the run that the asker is a step of."""
    if gate.opened.run:
        return SessionRef("flow", gate.opened.run)
    return SessionRef(saved.agent, saved.id, saved.directory)


def folder_of_agent(gate: Gate, found: Situation) -> Path:
    """Return the folder in which the agent goes on: the one in which its approved call was to be made, where it is there, else
    the top of the working tree.
    """
    placed = placed_of(gate)
    if placed is None or ".git" in Path(placed.cwd).parts:
        return found.directory
    cwd, top = (found.directory / placed.cwd).resolve(), found.directory.resolve()
    return cwd if cwd != top and cwd.is_relative_to(top) and cwd.is_dir() else found.directory


def order(desk: Desk, held: HeldClaim, found: Situation, saved: SavedSession, project: InForce) -> Launch:
    """Return how the agent is started. All that somebody wrote reaches it as text, never as a command."""
    from ..agents import scrubbed
    from ..agents.agent import Start
    from ..setup import permissions_of  # whoever hands an answer on does without it
    from ..setup.equipping import with_hooks_running

    gate = held.gate
    started = program_for(gate, saved)
    settings = bylaws.without_doubt(agency.settings_for_start(desk, started.agent), project)
    settings = replace(
        settings, arguments=(*flags_before(desk, gate, found, saved, settings), *settings.arguments)
    )
    request = Start(
        gate=gate.id,
        cwd=folder_of_agent(gate, found),
        folder=desk.repo.state_dir / "runs" / gate.id / f"{held.attempt}-{held.said.nonce[:8]}",
        prompt=resume_prompt(gate, circumstances(gate, found, settings, project)),
        session=started,
        deferred=bool(gate.opened.config.get("deferred")),
        hooks=agency.adapter(started.agent).hooks(),
        permissions=permissions_of(desk, started.agent),
        answer=answer_document(gate),
        told=answer_texts(gate),
        settings=settings,
        env=scrubbed(desk.settings.env),
        extra_env=surroundings(desk, gate, found, started.agent, project.settings),
    )
    return with_hooks_running(desk, started.agent, agency.adapter(started.agent).start(request))


def flags_before(
    desk: Desk, gate: Gate, found: Situation, saved: SavedSession, settings: AgentSettings
) -> tuple[str, ...]:
    """Return the flags that the agent was started with when it asked, if that was here and on work of this machine.

    What the agent might do then, it may do now. Only this machine's own note counts, never a record. A flag that this
    machine's settings give replaces the earlier one.
    """
    from ..agents.claude.command import remaining_flags

    asked = machine.find_presence(desk, gate.id)
    own = asked is not None and asked.trusted and found.trusted
    if asked is None or not own or (asked.program, asked.session) != (saved.agent, saved.id):
        return ()
    return remaining_flags(asked.flags, settings.arguments)


def circumstances(gate: Gate, found: Situation, settings: AgentSettings, project: InForce) -> Circumstances:
    left_out = gate.opened.work.left_out if found.ours else ()
    session = gate.opened.session
    unread = agency.adapter(session.agent).unread if session and not settings.project_settings else ()
    return Circumstances(
        edits="" if found.again else found.edits,
        moved="; ".join(part for part in (AGAIN if found.again else "", found.moved) if part),
        conflicts=found.conflicts,
        branch=found.branch or "" if found.new_branch else "",
        missing=tuple(left_out),
        unread=tuple(name for name in unread if (found.directory / name).is_file()),
        replaced=project.replaced,
        late=late_branches(gate),
    )


def answer_texts(gate: Gate) -> dict[str, str]:
    """Return the answer as plain texts. Where nobody answered, the verdict is `expired`."""
    if gate.answer is None:
        return {"verdict": "expired", "answer": "", "note": "", "by": ""}
    answer = gate.answer.answer
    words = printed(gate.opened.questions, replace(answer, note=""))
    return {"verdict": answer.verdict, "answer": words, "note": answer.note, "by": answer.by}


def answer_document(gate: Gate) -> bytes:
    """Return the answer as a JSON document, for a program that reads it."""
    from ..render import shapes

    answer = shapes.answer_shape(gate.answer, {}) if gate.answer else None
    questions = [shapes.question_shape(question) for question in gate.opened.questions]
    said = {"gate": gate.id, "state": gate.state, "questions": questions, "answer": answer}
    return json.dumps(
        shapes.thing("resume", {**said, **answer_texts(gate), "answer": answer}), ensure_ascii=False
    ).encode()


def surroundings(
    desk: Desk, gate: Gate, found: Situation, program: str, settings: Sequence[tuple[str, str]] = ()
) -> dict[str, str]:
    """Return the variables that the agent's environment has besides ours."""
    fixed = {} if found.trusted else settings_without_programs(found.there(desk))
    return {
        "GITGATE_GATE": gate.id,
        **around_program(desk, program, borrowed_name(gate), fixed, settings),
    }


def around_program(
    desk: Desk,
    program: str,
    borrowed: str,
    fixed: Mapping[str, str],
    settings: Sequence[tuple[str, str]] = (),
) -> dict[str, str]:
    """Return the variables that any program that we start has besides ours.

    `fixed`: settings of git, so that it runs nothing which work from elsewhere brought. `borrowed`: the name for
    commits where the account has none.
    """
    from ..agents import GITLAB_LOGIN, LOGIN

    path = desk.settings.env.get("PATH", os.defpath)
    ours = str(Path(sys.executable).parent)
    if ours not in path.split(os.pathsep):
        path = f"{path}{os.pathsep}{ours}"
    said = {"GITGATE_AGENT": program, "PATH": path}
    if desk.settings.env.get(LOGIN) or desk.settings.env.get(GITLAB_LOGIN):
        said["GITGATE_PUSH"] = (
            "false"  # A job's login stays with us: what the agent asks is pushed when it has ended.
        )
    git = {**fixed, **as_environment(settings, fixed)} if settings else dict(fixed)
    who = desk.settings.identity()
    if who and not agency.adapter(program).hides_from_git:
        return {**said, **git}
    return {**said, **named_in_git(who or borrowed), **git}


def borrowed_name(gate: Gate) -> str:
    """Return the name for the agent's commits where the account has none: that of the person whose agent it is.

    A server's account often has no name in git, which then refuses to commit.
    """
    return gate.opened.asked.by or f"{gate.opened.asked.agent} <agent@gitgate.invalid>"


def named_in_git(person: str) -> dict[str, str]:
    """Return a name for git's commits as variables, because some programs hide the person's configuration from git."""
    name, _, email = person.partition(" <")
    names = {"NAME": name, "EMAIL": email.removesuffix(">")}
    return {
        f"GIT_{role}_{part}": text for role in ("AUTHOR", "COMMITTER") for part, text in names.items() if text
    }
