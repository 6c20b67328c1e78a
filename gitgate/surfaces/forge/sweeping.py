"""Surfaces: what was missed is caught up with: deadlines, comments that no event told of, questions that nobody was shown."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from ...acts import find_gate
from ...context import Desk
from ...context.targets import remote_of, summaries
from ...errors import BadAnswer, GateError
from ...exchange.syncing import publish, sync
from ...gates import due_runs
from ...gates.agency import began_here, kept_back, stayed
from ...gates.recording import DAY, act, judged_at
from ...model.gate import Gate
from ...store.git.refs import SESSIONS
from ...text import format_time, parse_time
from . import Near, parse_reply, word_reply
from . import words as telling
from .accept import Accepted, accept_comment, alone, doubt, is_meant, is_taken, may_go_on, shown_before
from .hosts import (
    LATER,
    NO_REPLY,
    Comment,
    Forge,
    PullRequest,
    Thread,
    final,
    is_of_thread,
    may_only_read,
    nobodys,
    queued_in,
)
from .hosts.web import ForgeFailed
from .posting import (
    Board,
    Pulls,
    bring_up_to_date,
    is_shown,
    is_waiting,
    left_to_jobs,
    load_board,
    mark_head,
    mark_queued,
    post_gate,
    post_once,
    post_status,
    tell_end,
    thread_of,
)


def missed(desk: Desk, board: Board, diff: Sequence[Comment] = ()) -> list[Comment]:
    """Return people's comments, those on the diff too, that may be replies to a question here and that had no response
    yet. Those that may be mere talk come last.
    """
    found = [comment for comment in (*board.comments, *diff) if is_missed(desk, board, comment)]
    return sorted(
        found, key=lambda one: is_near(one, board)
    )  # last, so that a stranger's real reply is heard


def on_diff(forge: Forge, board: Board) -> list[Comment]:
    """Return the comments on the diff of a thread that shows a gate. Their events would run the workflow file of the
    branch itself, so that these comments are searched for instead.
    """
    return forge.fetch_diff_comments(board.thread) if board.marks else []


def is_missed(desk: Desk, board: Board, comment: Comment) -> bool:
    if nobodys(comment) or telling.was_told(comment, board.own):
        return False
    asked = shown_before(board, comment)
    try:
        said = parse_reply(comment.body, asked)
    except Near as talk:
        about = talk.meant([gate for gate in asked if is_waiting(desk, gate)])
        return bool(about) and (talk.command or not telling.was_hinted(comment, about[0], board.own))
    except BadAnswer:  # several at once, which a gate that waits no more has no word for
        return any(is_waiting(desk, gate) for gate in asked)
    if said is None:
        return is_missed_word(desk, board, comment, asked)
    if not is_meant(desk, said, asked):
        return False
    return not any(is_recorded(desk, gate, comment) for gate in {*board.marks, said.gate or ""} if gate)


def is_missed_word(desk: Desk, board: Board, comment: Comment, asked: Sequence[str]) -> bool:
    """Return whether a plain word may answer the only waiting gate, or its author is to hear that it does not."""
    gate = alone(desk, [name for name in asked if is_waiting(desk, name)])
    if gate is None or comment.review or word_reply(comment.body, gate) is None:
        return False
    if telling.was_worded(comment, gate.id, board.own):
        return False
    return not any(is_recorded(desk, name, comment) for name in board.marks)


def is_near(comment: Comment, board: Board) -> bool:
    """Return whether the comment may be a reply, or mere talk. A stranger gets no note on such a comment."""
    try:
        parse_reply(comment.body, shown_before(board, comment))
    except BadAnswer as unclear:
        return isinstance(unclear, Near)
    return False


def missed_elsewhere(desk: Desk, board: Board, waiting: Collection[str]) -> list[Comment]:
    """Return the missed comments, on a thread without a question, that name a waiting gate. Others are left alone."""
    return [one for one in missed(desk, board) if gate_in_comment(one, board) in waiting]


def gate_in_comment(comment: Comment, board: Board) -> str:
    try:
        said = parse_reply(comment.body, shown_before(board, comment))
    except BadAnswer:
        return ""
    return (said.gate if said is not None else None) or ""


def is_recorded(desk: Desk, gate: str, comment: Comment) -> bool:
    """Return whether the gate's record has this comment. An unreadable record has none, so that everybody is heard."""
    with contextlib.suppress(GateError):
        return is_taken(desk, gate, comment)
    return False


def names_option(desk: Desk, words: str) -> bool:
    """Return whether the words may answer a waiting gate that this clone knows: the forge is not asked about talk."""
    for one in summaries(desk):
        if one.state == "awaiting":
            with contextlib.suppress(GateError):
                if word_reply(words, desk.records.load(one.id, one.tip)) is not None:
                    return True
    return False


def hear(
    desk: Desk, forge: Forge, number: int, *, kind: str = "", words: str = "", thread: Thread | None = None
) -> list[Accepted]:
    """Process the comment that an event reported, after those that were written earlier and missed. Events come in any
    order, and of two answers the one that was written first counts. `words`: it may be an option's name alone.
    """
    if words and not names_option(desk, words):
        return [Accepted("ignored", NO_REPLY)]
    done: list[Accepted] = []
    with judged_at(desk):
        try:
            comment = forge.fetch_comment(number, kind=kind, thread=thread)
            if comment is None or nobodys(comment):
                return [Accepted("ignored", nobodys(comment))]
            board: Board | None = hear_earlier(desk, forge, comment, done)
        except ForgeFailed as refused:
            if not final(refused, desk.settings.env):
                raise
            board = None
        return [*done, accept(desk, forge, number, board, kind=kind, thread=thread)]


def hear_earlier(desk: Desk, forge: Forge, comment: Comment, done: list[Accepted]) -> Board:
    """Process the missed comments that are earlier than this one, into `done`. Return the comment's thread as it is
    then.

    This ends once no gate waits for which they matter. Their own events and sweeps process the rest: of twenty comments
    at once, no job could process all.
    """
    board = load_board(forge, comment.thread)
    home = board_meant(desk, forge, gate_in_comment(comment, board), board)
    boards, stakes = {one.thread: one for one in (board, home)}, at_stake(desk, board, comment)
    found = [
        one
        for each in boards.values()
        for one in missed(desk, each, on_diff(forge, each))
        if comment_order(one) < comment_order(comment)
    ]
    strangers: set[int] = set()  # told once, however much they wrote
    for one in sorted(found, key=comment_order):
        if not any(is_waiting(desk, gate) for gate in stakes):
            break
        if one.author.number in strangers:
            continue
        done.append(accept(desk, forge, one.number, boards[one.thread], kind=one.kind))
        boards = {thread: load_board(forge, thread) for thread in boards}
        if done[-1].stranger:
            strangers.add(one.author.number)
    return boards[comment.thread]


def comment_order(comment: Comment) -> tuple[str, int]:
    """Return the key by which comments are sorted: the time, then the number."""
    return comment.created, comment.number if not comment.review else 0


def at_stake(desk: Desk, board: Board, comment: Comment) -> set[str]:
    """Return the gates for which earlier comments matter: the one that the comment names, else all that it may mean.
    Add those here whose deadline has passed, since a later comment that comes first would find them over.
    """
    gate = gate_in_comment(comment, board)
    return {*([gate] if gate else shown_before(board, comment)), *(overdue(desk) & set(board.marks))}


def board_meant(desk: Desk, forge: Forge, gate: str, board: Board) -> Board:
    """Return the board of the thread that shows the gate, which may be another one than the reply's."""
    if not gate or gate in board.marks or not is_waiting(desk, gate):
        return board
    thread = thread_of(desk, forge, find_gate(desk, gate).gate)
    return board if thread is None or thread == board.thread else load_board(forge, thread)


def accept(
    desk: Desk, forge: Forge, number: int, board: Board | None, *, kind: str, thread: Thread | None = None
) -> Accepted:
    """Process one comment. The outcome is `untold` where its author was to receive a note that can never be posted."""
    try:
        return accept_comment(desk, forge, number, board, kind=kind, thread=thread)
    except ForgeFailed as refused:
        why = final(refused, desk.settings.env)
        if not why:
            raise
        return Accepted("untold", why)


def overdue(desk: Desk) -> set[str]:
    """Return the gates that wait although their deadline has passed."""
    waiting = [one for one in summaries(desk) if one.state == "awaiting"]
    return {one.id for one in waiting if one.deadline and one.deadline <= desk.now}


FEW = 3  # threads, or heads, for which it is worth to ask for all of them at once
HOUR = 3600  # by which the clocks of who asked and of the forge may differ
NEWEST, OTHERS = 50, 50  # so many pull requests without a gate: the newest, and some of the rest
ENDED, LONG_ENDED = 20, 5  # so many gates that closed more than a day ago; each takes three requests at most

Each = TypeVar("Each")


def some_pulls(found: Sequence[Each], at: float) -> list[Each]:
    """Return some of the pull requests on which no gate waits: the newest, and others by chance."""
    return some_of(found, NEWEST, OTHERS, at)


def some_gates(found: Sequence[Gate], at: float, *, over: bool = True) -> list[Gate]:
    """Return the gates that are open or closed within a day, and some others (unless `over` is False): the last closed,
    and others by chance.

    Jobs keep nothing, so nobody knows whether a sweep ran since a gate closed. Only its thread tells whether the
    comment shows the end, and whether somebody replied since. So until it is archived, age alone leaves no gate out for
    ever.
    """
    ended = sorted((one for one in found if long_over(one, at)), key=ended_at, reverse=True)
    chosen = {one.id for one in (some_of(ended, ENDED, LONG_ENDED, at) if over else [])}
    left = {one.id for one in ended} - chosen
    return [one for one in found if one.id not in left]


def some_of(found: Sequence[Each], first: int, others: int, at: float) -> list[Each]:
    """Return the first items, and a random choice of the rest. Turns by the clock would always leave out the same ones
    where sweeps are started in step with them.
    """
    rest = found[first:]
    chance = Random(int(at))  # noqa: S311 - nothing is secret here
    return [*found[:first], *chance.sample(rest, min(others, len(rest)))]


def long_over(gate: Gate, at: float) -> bool:
    """Return whether a gate closed more than a day ago."""
    return gate.closed and bool(ended_at(gate)) and at - parse_time(ended_at(gate)) > DAY


def ended_at(gate: Gate) -> str:
    return str(getattr(gate.history[-1].event, "at", ""))


PATIENCE = 600


@dataclass
class Swept:
    """Result of a sweep. `resume`: gates whose answer is proven and not acted on yet; `doubts`: why others are not
    resumed.

    `noted`: what cannot be done, and is nobody's mistake; `trouble`: what somebody has to look at.
    """

    accepted: list[Accepted] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    resume: list[str] = field(default_factory=list)
    doubts: dict[str, str] = field(default_factory=dict)
    trouble: list[str] = field(default_factory=list)
    noted: list[str] = field(default_factory=list)
    asked: str = ""
    """Where a job can be watched that was asked for, because jobs keep the comments here and something is to be posted."""


@dataclass
class Round:
    """Pass over everything, with what it has found and done so far."""

    desk: Desk
    forge: Forge
    pulls: Pulls
    done: Swept = field(default_factory=Swept)

    def leave_to_jobs(self, gate: str) -> None:
        """Ask for a job that posts this gate's comment, once for each gate. What that job cannot post, the jobs' own
        sweeps will: a job for each of our sweeps would not.
        """
        from .webhook import Seen

        known = Seen(self.desk.repo.state_dir / "asked-of-jobs")
        if not known.first(gate.encode()) or self.done.asked:
            return
        try:
            self.done.asked = self.forge.dispatch("", "")
        except ForgeFailed:
            known.forget(gate.encode())
            raise

    def excused(self, what: str, trouble: GateError) -> bool:
        """Return whether another try is useless, and note why, once. Any other failure is recorded as trouble."""
        why = final(trouble, self.desk.settings.env) if isinstance(trouble, ForgeFailed) else ""
        if not why:
            self.done.trouble.append(f"{what}: {trouble.message}")
        else:
            self.note(f"{what}: {why}" if is_of_thread(why) else why)
        return bool(why)

    def note(self, words: str) -> None:
        if words not in self.done.noted:
            self.done.noted.append(words)


def sweep(desk: Desk, forge: Forge) -> Swept:
    """Process everything once. Trouble with one gate or thread does not stop the others.

    No deadline is applied before the replies on its gate's thread: a reply counts by the time at which it was written.
    """
    with judged_at(desk):
        broken = sync(desk).broken if remote_of(desk) is not None else {}
        queued = queued_in(desk.settings.env)
        if queued is not None:
            mark_queued(desk, forge, *queued)
            return Swept()
        now = Round(desk, forge, Pulls(forge, forge.list_pull_requests()))
        now.done.trouble.extend(f"gate {gate}: {why}" for gate, why in broken.items())
        threads = find_threads(now)
        look_back(now, threads)
        if len(now.pulls.listed or []) >= FEW and not desk.settings.pull_request:
            with contextlib.suppress(ForgeFailed):
                forge.look_at_heads()
        hear_elsewhere(now, threads)
        for thread, gates in threads.items():
            try:
                sweep_thread(now, gates, thread)
            except GateError as trouble:
                if now.excused(f"thread {thread}", trouble) or is_missing(trouble):
                    pass_deadlines(now, gates)  # nobody can have answered there
        mark_others(now, threads)
        places = {gate.id: thread for thread, gates in threads.items() for gate in gates}
        find_answered(now, places)
        note_sleepers(now)
    say_once(now, forge.unchecked)
    if now.done.resume and may_only_read(desk.settings.env):
        now.note(LATER)  # without the repository's secrets an agent would fail, and its gate with it
        now.done.resume.clear()
    return now.done


def say_once(now: Round, words: str) -> None:
    """Note these words once for this clone: a lasting fact is no news in the next sweep."""
    from .webhook import Seen

    if words and Seen(now.desk.repo.state_dir / "told-once").first(words.encode()):
        now.note(words)


def is_missing(trouble: GateError) -> bool:
    """Return whether there is no such thread, such as an issue that the settings name. Somebody has to look at that."""
    return isinstance(trouble, ForgeFailed) and trouble.status == 404


def find_threads(now: Round) -> dict[Thread, list[Gate]]:
    """Return the gates by the thread that shows them. The deadlines of gates without a thread are applied here."""
    threads: dict[Thread, list[Gate]] = {}
    for gate in to_look_at(now):
        try:
            thread = thread_of(now.desk, now.forge, gate, now.pulls)
        except GateError as trouble:
            now.excused(f"gate {gate.id}", trouble)
            continue
        if thread is not None:
            threads.setdefault(thread, []).append(gate)
        else:
            pass_deadlines(now, [gate])
    return threads


def to_look_at(now: Round) -> list[Gate]:
    """Return all open gates, and some that closed long ago. The job of a pull request leaves those out."""
    found: list[Gate] = []
    for summary in sorted(summaries(now.desk), key=lambda one: (one.at, one.id)):
        try:
            found.append(now.desk.records.load(summary.id, summary.tip))
        except GateError as trouble:
            now.excused(f"gate {summary.id}", trouble)
    return some_gates(found, now.desk.clock(), over=not now.desk.settings.pull_request)


def pass_deadlines(now: Round, gates: Sequence[Gate]) -> None:
    """Apply the deadlines of these gates, now that every reply was processed."""
    for gate in gates:
        try:
            before = find_gate(now.desk, gate.id)
            with judged_at(now.desk, ""):
                after = before.gate if before.archived else act(now.desk, before.gate)
            if after.tip != before.gate.tip:
                publish(now.desk, after)
        except GateError as trouble:
            now.excused(f"gate {gate.id}", trouble)


MARGIN = 60  # seconds in which a sweep comes from what was looked back at to a gate's deadline


def quiet_board(now: Round, gates: Sequence[Gate], thread: Thread) -> Board | None:
    """Return the thread as `look_back` loaded it, if nobody said anything since, no deadline is near, and our comments
    say all. Return None otherwise. Due reminders are recorded.
    """
    if any(long_over(gate, now.desk.clock()) for gate in gates):
        return None
    board = now.pulls.glimpse(thread, [gate.id for gate in gates if not gate.closed])
    if board is None or missed(now.desk, board, now.pulls.on_diff(board)):
        return None
    soon = format_time(now.desk.clock() + MARGIN)
    if any(gate.deadline and gate.deadline <= soon for gate in gates if not gate.closed):
        return None
    pass_deadlines(now, gates)  # reminders are due before them
    current = [find_gate(now.desk, gate.id).gate for gate in gates]
    return board if all(is_shown(now.desk, now.forge, gate, board) for gate in current) else None


def look_back(now: Round, threads: Mapping[Thread, Sequence[Gate]]) -> None:
    """Load what was said since the first gate that is not long over was asked, where that saves requests."""
    lately = [gate for gates in threads.values() for gate in gates if not long_over(gate, now.desk.clock())]
    if len(threads) < FEW or now.desk.settings.pull_request:
        return
    since = min((parse_time(gate.opened.asked.at) for gate in lately), default=now.desk.clock())
    with contextlib.suppress(ForgeFailed):
        besides = [pull.number for pull in talked_on(now, threads)]
        now.pulls.look_back(format_time(since - HOUR), max(1, len(threads) // 2), [*threads, *besides])


def sweep_thread(now: Round, gates: Sequence[Gate], thread: Thread) -> None:
    """Process the missed comments of one thread, then its deadlines, then bring our comments up to date."""
    quiet = quiet_board(now, gates, thread)
    if quiet is not None:
        mark_thread(now, thread, quiet, changed=False, recent=True)
        return
    before = now.pulls.board(thread)
    recent = not all(long_over(gate, now.desk.clock()) for gate in gates)
    diff = on_diff(now.forge, before) if recent else []
    board = hear_missed(now, before, missed(now.desk, before, diff))
    pass_deadlines(now, gates)
    for gate in gates:
        current = find_gate(now.desk, gate.id).gate
        if current.closed and gate.id not in board.marks:
            continue  # it was never shown here, or somebody does not want to see it any more
        try:
            if left_to_jobs(now.forge, board, gate.id):
                now.leave_to_jobs(gate.id)
                continue
            after = tell_reacted(now.desk, now.forge, current, post_gate(now.desk, now.forge, current, board))
            if not long_over(current, now.desk.clock()):
                after = tell_end(now.desk, now.forge, current, after)
        except ForgeFailed as refused:
            now.excused(f"thread {thread}", refused)
            continue
        if after is not board:
            now.done.shown.append(gate.id)
        board = after
    mark_thread(now, thread, board, changed=board is not before, recent=recent)


def mark_thread(now: Round, thread: Thread, board: Board, *, changed: bool, recent: bool) -> None:
    """Set the status of the pull request's head, where the thread is one."""
    pull = next((one for one in now.pulls.listed or [] if one.number == thread), None)
    if pull is not None:
        mark_head(now.desk, now.forge, pull, board.marks)
    elif changed or recent:
        post_status(now.desk, now.forge, board)  # closed meanwhile, or an issue


def tell_reacted(desk: Desk, forge: Forge, gate: Gate, board: Board) -> Board:
    """Post that a reaction is no answer, where somebody put a thumb at the question and may think that it is."""
    shown = board.marks.get(gate.id)
    if gate.state != "awaiting" or shown is None or not shown[0].thumbs:
        return board
    note = telling.reacted(gate, telling.whose_reply(desk, gate), forge.customs.taken)
    return board if board.says(note.mark) else board.having(post_once(forge, board, note.body))


def hear_elsewhere(now: Round, threads: Mapping[Thread, object]) -> None:
    """Process the replies that name a gate on a thread that shows none."""
    waiting = waiting_since(now.desk)
    for pull in talked_on(now, threads):
        try:
            board = now.pulls.glimpse(pull.number, ()) or now.pulls.board(pull.number)
            if missed_elsewhere(now.desk, board, waiting):
                board = now.pulls.board(pull.number)
                hear_missed(now, board, missed_elsewhere(now.desk, board, waiting))
        except GateError as trouble:
            now.excused(f"thread {pull.number}", trouble)
    if now.done.accepted:
        now.pulls.boards.clear()  # they show something else now


def waiting_since(desk: Desk) -> dict[str, str]:
    """Return the waiting gates, with the time at which each was asked."""
    return {one.id: one.at for one in summaries(desk) if one.state == "awaiting"}


def talked_on(now: Round, threads: Collection[Thread]) -> list[PullRequest]:
    """Return the open pull requests without a gate that changed since the first waiting gate was asked, the latest
    first. The job of one pull request leaves them to others.
    """
    waiting = waiting_since(now.desk)
    if not waiting or now.desk.settings.pull_request:
        return []
    first = min(waiting.values())
    others = [one for one in now.pulls.listed or [] if one.number not in threads and one.updated >= first]
    return sorted(others, key=lambda one: one.updated, reverse=True)[:NEWEST]


def hear_missed(now: Round, board: Board, comments: Sequence[Comment]) -> Board:
    """Process each comment in turn. A failure that may pass is raised, so that no deadline is applied here before the
    comment is processed. A failure that will not pass is noted.
    """
    strangers: set[int] = set()  # each is asked about once a sweep, however much they write
    for comment in comments:
        if comment.author.number in strangers:
            continue
        try:
            said = accept_comment(now.desk, now.forge, comment.number, board, kind=comment.kind)
        except ForgeFailed as refused:
            if not final(refused, now.desk.settings.env):
                raise
            now.excused(f"thread {board.thread}", refused)
            continue
        if said.stranger:
            strangers.add(comment.author.number)
        if said.outcome not in ("ignored", "again"):
            now.done.accepted.append(said)
            board = load_board(now.forge, board.thread)
    return board


def refresh(desk: Desk, forge: Forge, name: str) -> str:
    """Bring a gate's comment and status up to date. Return what could not be posted, in words."""
    try:
        gate = find_gate(desk, name).gate
        thread = thread_of(desk, forge, gate)
        board = load_board(forge, thread) if thread is not None else None
        if board is None or gate.id not in board.marks:
            return ""
        return bring_up_to_date(desk, forge, gate, board)
    except GateError as silent:
        return f"the comment is not up to date: {silent.message}"


def mark_others(now: Round, threads: Mapping[Thread, object]) -> None:
    """Set the status of pull requests on which no gate waits: a required status that is missing would block them."""
    only = now.desk.settings.pull_request if now.forge.job else None
    found = [one for one in now.pulls.listed or [] if one.number not in threads]
    for pull in found if only else some_pulls(found, now.desk.clock()):
        if only in (None, pull.number):
            try:
                mark_head(now.desk, now.forge, pull)
            except GateError as trouble:
                now.excused(f"pull request {pull.number}", trouble)


def find_answered(now: Round, places: Mapping[str, Thread]) -> None:
    gates = to_resume(now)
    here = now.desk.refs.under(*(SESSIONS + gate.id for gate in gates)) if gates else {}
    elsewhere = kept_back(now.desk, [gate for gate in gates if SESSIONS + gate.id not in here])
    for gate in gates:
        stays = gate.id in elsewhere
        try:
            why = stayed(gate, "shared").message if stays else doubt(now.desk, now.forge, gate)
            if why and gate.id in places:
                say_doubt(now, gate, "" if stays else why, places[gate.id])
        except GateError as trouble:
            why = trouble.message
        if why:
            now.done.doubts[gate.id] = why
        else:
            now.done.resume.append(gate.id)


def note_sleepers(now: Round) -> None:
    """Note runs that have what they waited for. No job resumes one; a server's own hook and worker look for them."""
    if now.desk.repo.bare or now.desk.settings.pull_request:
        return
    for run in due_runs(now.desk):
        if not began_here(now.desk, run):
            now.note(
                f"run {run} has what it waited for, and no job goes on with it: git gate resume {run[:6]}"
            )


def to_resume(now: Round) -> list[Gate]:
    """Return the gates that wait for somebody to start their agents, whoever may."""
    found = []
    for summary in summaries(now.desk):
        if summary.state in ("answered", "expired", "resuming"):
            try:
                gate = now.desk.records.load(summary.id, summary.tip)
            except GateError as trouble:
                now.done.doubts[summary.id] = trouble.message
                continue
            if may_go_on(now.desk, gate) and gate.opened.delivery == "resume":
                found.append(gate)
    return found


def say_doubt(now: Round, gate: Gate, why: str, thread: Thread) -> None:
    """Post why no job acts on the answer, once: people would wait for an agent that nobody starts. An answer just given
    in a terminal is left alone, since its author may be starting the agent.

    An empty `why` means that no job can start the agent, since its session stayed where it was asked.
    """
    if gate.answer is None:
        return
    said = gate.answer.answer
    if said.via != now.forge.name and parse_time(now.desk.now) - parse_time(said.at) < PATIENCE:
        return
    note = (
        telling.not_acted_on(gate.id, gate.answer.commit, why)
        if why
        else telling.kept_back(gate.id, gate.answer.commit, gate.opened.asked.agent)
    )
    try:
        board = load_board(now.forge, thread)
        if not board.says(note.mark):
            post_once(now.forge, board, note.body)
    except ForgeFailed as refused:
        now.excused(f"thread {thread}", refused)
