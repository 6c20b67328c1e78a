"""Surfaces: where a gate is shown, and what is kept there: one comment a gate, one status a head.

The place is its pull request, that of its branch or its commit, else an issue or its commit, by setting. Posting again changes
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from ...acts import find_gate
from ...context import Desk
from ...context.targets import remote_of, summaries
from ...errors import GateError
from ...gates.work import diff_of
from ...model import is_robot
from ...model.gate import Gate, Outcome
from ...record import Summary, message, summary_of
from ...resumption import Course
from ...sharing.branches import Pushed, tip_there
from ...store.work.commits import is_ancestor
from . import words as telling
from .comment import (
    LOGIN,
    MOST_SAID,
    CommentMark,
    View,
    called_in,
    outcome_note,
    page_of,
    read_mark,
    render,
    told_last,
    unasked_in,
)
from .hosts import BEGIN, MOST_NUMBER, CheckPage, Comment, Forge, PullRequest, Thread, logins
from .hosts.web import ForgeFailed, Unclear
from .words import logins_of, takes_plain, whose_reply

OPEN_STATES = frozenset(("awaiting", "answered", "resuming"))
SAD_STATES = frozenset(("failed", "stopped", "expired", "broken"))
MOST_DIFF = 200_000
MOST_CALLED = 10  # so many people are mentioned


@dataclass(frozen=True)
class Board:
    """A thread as it is: every comment, and which accounts are ours, the one that keeps the comments first."""

    thread: Thread
    ours: tuple[str, ...]
    comments: tuple[Comment, ...]

    @property
    def own(self) -> list[Comment]:
        """Ours, oldest first; those of who keeps the comments before others."""
        ours = [one for one in self.comments if one.author.login in self.ours]
        return sorted(ours, key=lambda one: (self.ours.index(one.author.login), one.number))

    @property
    def marks(self) -> dict[str, tuple[Comment, CommentMark]]:
        """Our comment of each gate; of two (a race) the first."""
        found: dict[str, tuple[Comment, CommentMark]] = {}
        for comment in self.own:
            mark = read_mark(comment.body)
            if mark is not None:
                found.setdefault(mark.gate, (comment, mark))
        return found

    def says(self, mark: str) -> bool:
        """Whether we have said this before."""
        return any(comment.body.split("\n", 1)[0] == mark for comment in self.own)

    def ours_of(self, key: str) -> list[Comment]:
        """Ours that say the same thing: of two that were posted at once the first counts."""
        return [one for one in self.own if key_of(one.body) == key]

    def having(self, comment: Comment) -> Board:
        """With one of ours; whose it is tells who we are."""
        others = [kept for kept in self.comments if kept.number != comment.number]
        comments = tuple(sorted((*others, comment), key=lambda each: each.number))
        return replace(self, comments=comments, ours=tuple(dict.fromkeys((*self.ours, comment.author.login))))

    def without(self, comment: Comment) -> Board:
        return replace(self, comments=tuple(kept for kept in self.comments if kept.number != comment.number))


def left_to_jobs(forge: Forge, board: Board, gate: str) -> bool:
    """Whether a job is to post this gate's comment. Jobs know their own alone: ours would be one more, and replies to it nobody's."""
    return gate not in board.marks and not forge.job and forge.has_jobs()


def key_of(body: str) -> str:
    """What a comment of ours is about: a gate, whatever is shown of it; else the whole of its first line."""
    mark = read_mark(body)
    return mark.gate if mark is not None else body.split("\n", 1)[0].strip()


def load_board(forge: Forge, thread: Thread) -> Board:
    comments = tuple(forge.fetch_comments(thread))
    return Board(thread, logins(forge, comments), comments)


def post_gate(desk: Desk, forge: Forge, gate: Gate, board: Board) -> Board:
    """The gate's comment, posted or brought up to date; untouched when it says so already.

    One that somebody removed is posted again; of two, which a race leaves, the later one goes.
    """
    known, view = board.ours_of(gate.id), view_of(desk, forge, gate, board)
    if not known and view.called:
        view = replace(view, unasked=ask_reviews(forge, gate, board, view.called))
    body = render(view)
    for spare in known[1:]:
        forge.remove_comment(spare)
        board = board.without(spare)
    old = known[0] if known else post_once(forge, board, body)
    if same_text(old.body, body):
        return board if known else board.having(old)
    return board.having(forge.edit_comment(old, body))


def view_of(desk: Desk, forge: Forge, gate: Gate, board: Board) -> View:
    others = [one for one in board.marks if one != gate.id and is_waiting(desk, one)]
    unheard, whose = isinstance(board.thread, str), whose_reply(desk, gate)
    return View(
        gate,
        *work_of(desk, gate),
        forge.site,
        alone=not others,
        unheard=unheard,
        gates=tuple(board.marks),
        whose=whose,
        called=called(desk, forge, gate, board),
        unasked=tuple(one for known in board.ours_of(gate.id)[:1] for one in unasked_in(known.body)),
        plain=gate.state == "awaiting" and takes_plain(desk),
        jobs=gate.state == "failed" and has_button(forge),
        customs=forge.customs,
    )


def has_button(forge: Forge) -> bool:
    """Whether people can start our workflow where the forge shows it."""
    try:
        return forge.name == "github" and forge.has_jobs()
    except ForgeFailed:
        return False


def called(desk: Desk, forge: Forge, gate: Gate, board: Board) -> tuple[str, ...]:
    """Of those whom it is for the accounts that may write here, which is asked when it is posted: an agent calls no strangers.

    A mention in an edited comment may notify, so that nobody is added later.
    """
    if gate.state != "awaiting":
        return ()
    known, wanted = board.ours_of(gate.id), [one for one in logins_of(desk, gate) if LOGIN.fullmatch(one)]
    if known:
        return tuple(one for one in called_in(known[0].body) if one in wanted)
    return tuple(one for one in wanted[:MOST_CALLED] if is_writer(forge, one))


def ask_reviews(forge: Forge, gate: Gate, board: Board, logins: Sequence[str]) -> tuple[str, ...]:
    """Whom an approval of the work is for is asked to review it, once; those who cannot be. Nobody reviews what is their own."""
    if not any(question.kind == "approval" for question in gate.opened.questions):
        return ()
    pull = forge.fetch_pull_request(board.thread) if isinstance(board.thread, int) else None
    if pull is None or not pull.open:
        return ()
    others = [one for one in logins if one.casefold() != pull.author.casefold()]
    return tuple(forge.request_reviews(pull.number, others)) if others else ()


def is_writer(forge: Forge, login: str) -> bool:
    try:
        return forge.may_write(login)
    except ForgeFailed:
        return False


def is_shown(desk: Desk, forge: Forge, gate: Gate, board: Board) -> bool:
    """Whether all that is to be said of it stands there already, and nothing else of ours about it: no request is needed."""
    known = board.ours_of(gate.id)
    if not known:
        return gate.closed
    if len(known) > 1 or on_own_branch(gate) is not None:
        return False
    view = view_of(desk, forge, gate, board)
    note = outcome_note(view)
    if note is not None and not board.says(note.mark):
        return False
    if gate.state == "awaiting" and known[0].thumbs:
        return board.says(telling.reacted(gate, telling.ANYBODY).mark) and same_text(
            known[0].body, render(view)
        )
    return same_text(known[0].body, render(view))


def same_text(here: str, wanted: str) -> bool:
    """A forge may trim a comment, write its line ends in another way, and be kept from obeying a line by a blank before it."""
    return unindented(here.replace("\r\n", "\n")) == unindented(wanted)


def unindented(body: str) -> str:
    return re.sub(r"^ (?=/)", "", body, flags=re.MULTILINE).strip()


def is_waiting(desk: Desk, gate: str) -> bool:
    try:
        return find_gate(desk, gate).gate.state == "awaiting"
    except GateError:
        return False


def has_gate(desk: Desk, gate: str) -> bool:
    try:
        return find_gate(desk, gate).gate.id == gate
    except GateError:
        return False


def post_once(forge: Forge, board: Board, body: str) -> Comment:
    """A comment that begins with a mark of ours; when nobody knows whether it was posted, it is looked for.

    A forge creates whatever it is told to. So whoever posted looks again, and takes back what somebody else said before.
    """
    try:
        posted = forge.post_comment(board.thread, body)
    except Unclear:
        found = load_board(forge, board.thread).ours_of(key_of(body))
        return found[0] if found else forge.post_comment(board.thread, body)
    first = next(iter(load_board(forge, board.thread).ours_of(key_of(body))), posted)
    if first.number >= posted.number and first.author.login == posted.author.login:
        return posted
    forge.remove_comment(posted)
    return first


def gates_of_pull(desk: Desk, pull: PullRequest, shown: Collection[str] = ()) -> list[Summary]:
    """The open gates that belong to a pull request: asked for it, on its branch, or shown on it."""
    return [
        recorded(desk, one)
        for one in summaries(desk)
        if one.pull_request == str(pull.number)
        or one.id in shown
        or (not one.pull_request and not pull.foreign and one.branch == pull.branch and one.branch)
    ]


def recorded(desk: Desk, one: Summary) -> Summary:
    """What the record itself makes of a gate: whoever pushes a commit writes into its message what they like."""
    try:
        gate = desk.records.load(one.id, one.tip)
    except GateError:
        return one._replace(state="broken")
    last = gate.history[-1]
    return summary_of(gate.id, gate.tip, message(last.name, last.event, gate))


def judge(desk: Desk, pull: PullRequest, found: Sequence[Summary]) -> tuple[str, str]:
    """The status that a head gets, and its words."""
    waiting = [one.id for one in found if one.state == "awaiting"]
    going = [one.id for one in found if one.state in OPEN_STATES and not one.closed and one.id not in waiting]
    sad = [
        f"{one.id} {one.state}" for one in found if one.state in SAD_STATES and holds(desk, pull, one, found)
    ]
    sad += [words for one in found if one.state == "resumed" and (words := off_branch(desk, pull, one))]
    if waiting:
        return "pending", f"waiting for an answer: {', '.join(waiting[:5])}"
    if going:
        return "pending", f"answered, the agent goes on: {', '.join(going[:5])}"
    if sad:
        return "failure", ", ".join(sad[:5])
    answered = [one.id for one in found if one.state not in SAD_STATES]
    return "success", f"answered: {', '.join(answered[:5])}" if answered else "no gate waits"


def holds(desk: Desk, pull: PullRequest, one: Summary, found: Sequence[Summary]) -> bool:
    """Whether a gate that ended badly says anything of this head: no later one of its branch was asked, and what it ended on
    is what stands there. Whoever pushed more since then has gone on without the answer, or without that agent.
    """
    if one.state == "broken":
        return True
    if any(other.branch == one.branch and other.at > one.at for other in found):
        return False
    return not went_on(desk, one, pull.head)


def off_branch(desk: Desk, pull: PullRequest, one: Summary) -> str:
    """What an agent made and the head has not, while it is on a branch of ours: until somebody merges it, or deletes that."""
    try:
        gate = desk.records.load(one.id, one.tip)
    except GateError:
        return ""
    made = on_own_branch(gate)
    return f"{one.id}: its commits are on {made.branch}" if made and is_left(desk, made, pull.head) else ""


def on_own_branch(gate: Gate) -> Outcome | None:
    """The outcome whose commits did not reach the branch that they were meant for."""
    made, own = gate.outcome, f"gate/{gate.id}"
    there = made is not None and bool(made.commits) and gate.state == "resumed"
    ours = made is not None and (made.branch == own or made.branch.startswith(f"{own}-"))
    return made if there and ours else None


def is_left(desk: Desk, made: Outcome, head: str) -> bool:
    """Whether that branch is still there, beside what is at `head`."""
    remote = remote_of(desk)
    if remote is None or (head and desk.repo.git.ok("merge-base", "--is-ancestor", made.commits[-1], head)):
        return False
    return tip_there(desk, remote, made.branch) is not None


def tell_left(desk: Desk, forge: Forge, gate: Gate, board: Board) -> Board:
    """A new comment, since people are notified of no edited one; with where to compare it with the pull request's branch."""
    made = on_own_branch(gate)
    if made is None or isinstance(board.thread, str):
        return board
    pull = forge.fetch_pull_request(board.thread)
    if not is_left(desk, made, pull.head if pull is not None else ""):
        return board
    base = pull.branch if pull is not None and pull.open and not pull.foreign else forge.default_branch()
    note = telling.left(
        f"Gate **{gate.id}**: what",
        made.branch,
        made.commits[-1],
        made.reason,
        compare_page(forge, base, made.branch),
    )
    note = replace(note, text="\n\n".join([note.text, *told_last(forge.site, made, MOST_SAID)]))
    return board if board.says(note.mark) else board.having(post_once(forge, board, note.body))


def tell_end(desk: Desk, forge: Forge, gate: Gate, board: Board) -> Board:
    """What the agent made of the answer, or that it failed: as a new comment, once for each outcome."""
    after = tell_left(desk, forge, gate, board)
    if after is not board or on_own_branch(gate) is not None:
        return after
    note = outcome_note(view_of(desk, forge, gate, board))
    return (
        board if note is None or board.says(note.mark) else board.having(post_once(forge, board, note.body))
    )


def compare_page(forge: Forge, base: str, branch: str) -> str:
    return f"{forge.site}{forge.customs.pages}/compare/{quote(base, safe='/')}...{quote(branch, safe='/')}"


def tell_pushed_beside(forge: Forge, branch: str, pushed: Pushed, tip: str) -> None:
    """The same of a job's first run, which may have asked nothing: on the pull request of its branch, if there is one."""
    for pull in forge.find_pull_requests(branch)[:1]:
        board = load_board(forge, pull.number)
        note = telling.left(
            "What", pushed.branch, tip, pushed.why, compare_page(forge, branch, pushed.branch)
        )
        if not board.says(note.mark):
            post_once(forge, board, note.body)


def went_on(desk: Desk, one: Summary, head: str) -> bool:
    """Whether the head has something that was not there when the agent asked, and that is not all its own. What is not here
    cannot be compared.
    """
    try:
        gate = desk.records.load(one.id, one.tip)
    except GateError:
        return False
    if gate.outcome is not None and head in gate.outcome.commits:
        return False
    base = gate.opened.work.base
    git = desk.repo.git
    known = base is not None and all(
        git.ok("cat-file", "-e", f"{commit}^{{commit}}") for commit in (base, head)
    )
    return known and not git.ok("merge-base", "--is-ancestor", head, str(base))


def post_status(desk: Desk, forge: Forge, board: Board) -> str:
    """The status of the head that the pull request has now; none where the thread is not one's."""
    pull = None if isinstance(board.thread, str) else forge.fetch_pull_request(board.thread)
    return mark_head(desk, forge, pull, board.marks) if pull is not None else ""


def mark_head(desk: Desk, forge: Forge, pull: PullRequest, shown: Collection[str] = ()) -> str:
    """The status of a pull request's head, which also one without a gate has, since it may be required. A forge takes so many
    of a name and commit and no more, so it is not said again.
    """
    found = gates_of_pull(desk, pull, shown)
    state, words = judge(desk, pull, found)
    if forge.fetch_status(pull.head) != (state, words):
        forge.set_status(pull.head, state, words, pull.url)
    if found and not forge.unchecked:
        forge.show_check(pull.head, check_of(desk, forge, pull, found, (state, words)), pull.url)
    return state


def mark_queued(desk: Desk, forge: Forge, number: int, commit: str) -> None:
    """The status of what a merge queue would merge: while a gate waits a failure, since nobody looks at that commit again; the
    pull request leaves the queue, and can enter it once the gate is decided.
    """
    pull = forge.fetch_pull_request(number)
    shown = load_board(forge, number).marks if pull is not None else ()
    state, words = (
        judge(desk, pull, gates_of_pull(desk, pull, shown)) if pull is not None else ("", "nobody's")
    )
    forge.set_status(commit, "success" if state == "success" else "failure", words, pull.url if pull else "")


def check_of(
    desk: Desk, forge: Forge, pull: PullRequest, found: Sequence[Summary], judged: tuple[str, str]
) -> CheckPage:
    """The same as a page, with the questions that wait."""
    gates = [desk.records.load(one.id, one.tip) for one in found if one.state == "awaiting"]
    views = [
        View(
            gate,
            *work_of(desk, gate),
            forge.site,
            alone=len(gates) == 1,
            whose=whose_reply(desk, gate),
            customs=forge.customs,
        )
        for gate in gates
    ]
    return page_of(views, *judged, pull.url, pull.head)


def work_of(desk: Desk, gate: Gate) -> tuple[str, str]:
    """A stat and a diff of it."""
    try:
        return diff_of(desk, gate, stat=True), diff_of(desk, gate)[:MOST_DIFF]
    except GateError:
        return "", ""  # it stayed where the agent ran


def bring_up_to_date(desk: Desk, forge: Forge, gate: Gate, board: Board) -> str:
    """Comment and status after something happened; what could not be told, in words. A later sweep tells it."""
    try:
        board = tell_end(desk, forge, gate, post_gate(desk, forge, gate, board))
        post_status(desk, forge, board)
    except ForgeFailed as silent:
        return f"the comment is not up to date: {silent.message}"
    return ""


MOST_LOOKED_AT = 5  # so many pull requests with one commit


@dataclass
class Pulls:
    """What the forge said of pull requests, remembered for as long as one look at everything takes."""

    forge: Forge
    listed: list[PullRequest] | None = None
    """All open ones, where somebody asked for them."""
    branches: dict[tuple[str, bool], list[PullRequest]] = field(default_factory=dict)
    commits: dict[str, list[PullRequest]] = field(default_factory=dict)
    boards: dict[Thread, Board] = field(default_factory=dict)
    there: dict[int, bool] = field(default_factory=dict)
    recent: Mapping[Thread, list[Comment]] | None = None
    """By thread what was said lately, where that was asked for at once; `on_diffs` the same of diffs."""
    on_diffs: Mapping[Thread, list[Comment]] | None = None

    def look_back(self, since: str, most: int, threads: Collection[Thread]) -> None:
        """At what was said since then, in a request or two for all of these threads; nothing, where that is too much."""
        self.recent = self.forge.fetch_comments_since(since, most, threads)
        if self.recent is not None:
            self.on_diffs = self.forge.fetch_comments_since(since, most, threads, diff=True)

    def glimpse(self, thread: Thread, gates: Collection[str]) -> Board | None:
        """A thread as far as it was looked back at, where that has our comments of all these gates."""
        if self.recent is None or thread not in self.recent or isinstance(thread, str):
            return None
        comments = tuple(self.recent[thread])
        begun = [one for one in comments if one.body.startswith(BEGIN)]
        board = Board(thread, logins(self.forge, comments) if begun else (), comments)
        return board if set(gates) <= set(board.marks) else None

    def on_diff(self, board: Board) -> list[Comment]:
        """Where something was asked: their event would run the workflow file of the branch itself, so they are looked for."""
        if not board.marks:
            return []
        if self.on_diffs is not None:
            return self.on_diffs.get(board.thread, [])
        return self.forge.fetch_diff_comments(board.thread)

    def has(self, number: int) -> bool:
        """Whether that is a pull request's."""
        if any(one.number == number for one in self.listed or []):
            return True
        if number not in self.there:
            self.there[number] = self.forge.fetch_pull_request(number) is not None
        return self.there[number]

    def of_branch(self, branch: str, *, closed: bool = False) -> list[PullRequest]:
        if self.listed is not None and not closed:
            return [one for one in self.listed if one.branch == branch and not one.foreign]
        if (branch, closed) not in self.branches:
            self.branches[branch, closed] = self.forge.find_pull_requests(branch, closed=closed)
        return self.branches[branch, closed]

    def board(self, thread: Thread) -> Board:
        """A thread's comments, listed once however many gates are looked for there; for as long as nothing is said."""
        if thread not in self.boards:
            self.boards[thread] = load_board(self.forge, thread)
        return self.boards[thread]

    def of_commit(self, commit: str) -> list[PullRequest]:
        """Those whose head it is; else those that bring it. Not a fork's, which may bring any commit that its owner saw."""
        if commit not in self.commits:
            found = [one for one in self.forge.find_pull_requests_with(commit) if not one.foreign]
            self.commits[commit] = [one for one in found if one.head == commit] or found
        return self.commits[commit]


def thread_of(desk: Desk, forge: Forge, gate: Gate, pulls: Pulls | None = None) -> Thread | None:
    """Where the gate is, or is to be, shown; None where no pull request is open and no setting names another place.

    What the record names was asked in a job of that pull request; but whoever can push may name one that is nowhere.
    """
    known = pulls or Pulls(forge)
    number = gate.opened.config.get("pull_request")
    if isinstance(number, int) and 0 < number < MOST_NUMBER and known.has(number):
        return number
    found = of_work(known, gate)
    if found is not None:
        return found.number
    shown = shown_on_closed(known, gate)
    if shown is not None:
        return shown
    if not forge.customs.beside:
        return None
    if desk.settings.number("forgeIssue"):
        return desk.settings.number("forgeIssue")
    return gate.opened.work.base if desk.settings.flag("forgeCommit") else None


def of_work(pulls: Pulls, gate: Gate) -> PullRequest | None:
    """The open one of the gate's branch; else the only one that brings the commit that the agent began at, or of several the
    one that shows it already: its branch may have another name by now.
    """
    work = gate.opened.work
    found = pulls.of_branch(work.branch) if work.branch else []
    if found:
        return found[0]
    bringing = pulls.of_commit(work.base) if work.base else []
    if len(bringing) > 1:
        bringing = [one for one in bringing[:MOST_LOOKED_AT] if gate.id in pulls.board(one.number).marks]
    return bringing[0] if len(bringing) == 1 else None


def shown_on_closed(pulls: Pulls, gate: Gate) -> int | None:
    """A pull request that was closed or merged while the gate waits goes on showing it; a new gate does not begin there."""
    branch = gate.opened.work.branch
    found = pulls.of_branch(branch, closed=True) if branch else []
    for pull in found[:1]:
        if gate.id in pulls.board(pull.number).marks:
            return pull.number
    return None


def course_of(desk: Desk, forge: Forge, gate: Gate) -> Course:
    """Where the agent's commits go now: its branch, or what its pull request has in place of it. One that was deleted is not
    made again, while one that was in the asker's clone alone is made now.
    """
    work, remote = gate.opened.work, remote_of(desk)
    if not work.branch or remote is None:
        return Course(joins=True)
    thread = thread_of(desk, forge, gate)
    pull = forge.fetch_pull_request(thread) if isinstance(thread, int) else None
    ended = (
        "" if pull is None or pull.open else f"its pull request was {'merged' if pull.merged else 'closed'}"
    )
    tip = tip_there(desk, remote, work.branch)
    if tip is None and not was_there(gate):
        return Course(work.branch, joins=True)
    if pull is not None and pull.open and not pull.foreign and pull.branch != work.branch:
        present = tip_there(desk, remote, pull.branch)
        if present is not None and (tip is None or is_renamed(desk, gate, tip, present)):
            return Course(pull.branch, joins=True, found=True)
    if tip is not None:
        return Course(work.branch, note=f"{ended} meanwhile" if ended else "", joins=True, found=True)
    and_ended = f", and {ended}" if ended else ""
    return Course(work.branch, f"branch {work.branch} was deleted meanwhile{and_ended}", joins=True)


def is_renamed(desk: Desk, gate: Gate, tip: str, present: str) -> bool:
    """Whether the branch has another name by now, and its old one is somebody else's: where the agent began is in that one."""
    base = gate.opened.work.base
    if base is None or not was_there(gate):
        return False
    return is_ancestor(desk.repo.git, base, present) and not is_ancestor(desk.repo.git, base, tip)


def was_there(gate: Gate) -> bool:
    """Whether the remote had the branch: the asker's clone knew it there, or it was a job's, which has it from there."""
    asked = gate.opened.asked
    return gate.opened.work.shared or bool(asked.logins) or is_robot(asked.by)
