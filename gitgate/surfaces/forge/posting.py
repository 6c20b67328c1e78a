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
    """Thread as it was loaded: all comments, and our accounts, first the one that keeps the comments."""

    thread: Thread
    ours: tuple[str, ...]
    comments: tuple[Comment, ...]

    @property
    def own(self) -> list[Comment]:
        """Our comments, oldest first; those of the account that keeps the comments come before others."""
        ours = [one for one in self.comments if one.author.login in self.ours]
        return sorted(ours, key=lambda one: (self.ours.index(one.author.login), one.number))

    @property
    def marks(self) -> dict[str, tuple[Comment, CommentMark]]:
        """Our comment of each gate, by the gate's id. Of two, which a race leaves, the first counts."""
        found: dict[str, tuple[Comment, CommentMark]] = {}
        for comment in self.own:
            mark = read_mark(comment.body)
            if mark is not None:
                found.setdefault(mark.gate, (comment, mark))
        return found

    def says(self, mark: str) -> bool:
        """Return whether a comment of ours begins with this mark, so that it was posted before."""
        return any(comment.body.split("\n", 1)[0] == mark for comment in self.own)

    def ours_of(self, key: str) -> list[Comment]:
        """Return our comments with this key. Of two that were posted at once, the first counts."""
        return [one for one in self.own if key_of(one.body) == key]

    def having(self, comment: Comment) -> Board:
        """Return the board with this comment of ours. Its author is one of our accounts from then on."""
        others = [kept for kept in self.comments if kept.number != comment.number]
        comments = tuple(sorted((*others, comment), key=lambda each: each.number))
        return replace(self, comments=comments, ours=tuple(dict.fromkeys((*self.ours, comment.author.login))))

    def without(self, comment: Comment) -> Board:
        return replace(self, comments=tuple(kept for kept in self.comments if kept.number != comment.number))


def left_to_jobs(forge: Forge, board: Board, gate: str) -> bool:
    """Return whether a job is to post this gate's comment. Jobs know only their own comments: ours would be a second
    one, and no job would take a reply to it.
    """
    return gate not in board.marks and not forge.job and forge.has_jobs()


def key_of(body: str) -> str:
    """Return the key of a comment of ours: the gate that it is about, else its whole first line."""
    mark = read_mark(body)
    return mark.gate if mark is not None else body.split("\n", 1)[0].strip()


def load_board(forge: Forge, thread: Thread) -> Board:
    comments = tuple(forge.fetch_comments(thread))
    return Board(thread, logins(forge, comments), comments)


def post_gate(desk: Desk, forge: Forge, gate: Gate, board: Board) -> Board:
    """Post the gate's comment, or bring it up to date. Leave it alone where it is current.

    A comment that somebody removed is posted again. Of two, which a race leaves, the later one is removed.
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
    """Return whether people can start our workflow on the forge's own pages."""
    try:
        return forge.name == "github" and forge.has_jobs()
    except ForgeFailed:
        return False


def called(desk: Desk, forge: Forge, gate: Gate, board: Board) -> tuple[str, ...]:
    """Return the logins to mention: the people whom the gate is for, if they may write here, so that no agent calls
    strangers.

    Their rights are looked up when the comment is first posted. Nobody is added later, since a mention in an edited
    comment may notify.
    """
    if gate.state != "awaiting":
        return ()
    known, wanted = board.ours_of(gate.id), [one for one in logins_of(desk, gate) if LOGIN.fullmatch(one)]
    if known:
        return tuple(one for one in called_in(known[0].body) if one in wanted)
    return tuple(one for one in wanted[:MOST_CALLED] if is_writer(forge, one))


def ask_reviews(forge: Forge, gate: Gate, board: Board, logins: Sequence[str]) -> tuple[str, ...]:
    """Ask the people whom an approval is for to review the work, once. Return those who could not be asked. The author
    of the pull request is left out, since nobody reviews their own work.
    """
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
    """Return whether the thread shows all that is to be said of the gate, and shows it once: no request is needed."""
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
    """Return whether two texts are the same comment. A forge may trim a comment and change its line ends. A line may
    have a blank in front, so that the forge does not obey it.
    """
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
    """Post a comment that begins with a mark of ours, once. The thread is searched where nobody knows whether it was
    posted.

    A forge creates whatever it is asked to. So the thread is read again afterwards, and the comment is removed where
    somebody else had posted it before.
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
    """Return the open gates of a pull request: asked for it, asked on its branch, or shown on it."""
    return [
        recorded(desk, one)
        for one in summaries(desk)
        if one.pull_request == str(pull.number)
        or one.id in shown
        or (not one.pull_request and not pull.foreign and one.branch == pull.branch and one.branch)
    ]


def recorded(desk: Desk, one: Summary) -> Summary:
    """Return the summary that the record itself gives. Whoever pushes a commit may write anything into its message."""
    try:
        gate = desk.records.load(one.id, one.tip)
    except GateError:
        return one._replace(state="broken")
    last = gate.history[-1]
    return summary_of(gate.id, gate.tip, message(last.name, last.event, gate))


def judge(desk: Desk, pull: PullRequest, found: Sequence[Summary]) -> tuple[str, str]:
    """Return the status of a head, and its words."""
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
    """Return whether a gate that ended badly counts against this head. It does unless a later gate was asked on its
    branch, or more was pushed since. Whoever pushed has gone on without the answer, or without that agent.
    """
    if one.state == "broken":
        return True
    if any(other.branch == one.branch and other.at > one.at for other in found):
        return False
    return not went_on(desk, one, pull.head)


def off_branch(desk: Desk, pull: PullRequest, one: Summary) -> str:
    """Return where an agent's commits are that the head lacks; empty where there are none. They count while their own
    branch is there: until somebody merges or deletes it.
    """
    try:
        gate = desk.records.load(one.id, one.tip)
    except GateError:
        return ""
    made = on_own_branch(gate)
    return f"{one.id}: its commits are on {made.branch}" if made and is_left(desk, made, pull.head) else ""


def on_own_branch(gate: Gate) -> Outcome | None:
    """Return the outcome if its commits are on the gate's own branch, instead of the one that they were meant for."""
    made, own = gate.outcome, f"gate/{gate.id}"
    there = made is not None and bool(made.commits) and gate.state == "resumed"
    ours = made is not None and (made.branch == own or made.branch.startswith(f"{own}-"))
    return made if there and ours else None


def is_left(desk: Desk, made: Outcome, head: str) -> bool:
    """Return whether the agent's own branch is still on the remote, with commits that `head` does not have."""
    remote = remote_of(desk)
    if remote is None or (head and desk.repo.git.ok("merge-base", "--is-ancestor", made.commits[-1], head)):
        return False
    return tip_there(desk, remote, made.branch) is not None


def tell_left(desk: Desk, forge: Forge, gate: Gate, board: Board) -> Board:
    """Post where the agent's commits are, with a link that compares them with the pull request's branch. It is a new
    comment, since people are notified of no edited one.
    """
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
    """Post what the agent made of the answer, or that it failed, as a new comment: once for each outcome."""
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
    """Post where a job's first run, which may have asked nothing, pushed its commits instead of the job's branch. It is
    posted on the pull request of that branch, if there is one.
    """
    for pull in forge.find_pull_requests(branch)[:1]:
        board = load_board(forge, pull.number)
        note = telling.left(
            "What", pushed.branch, tip, pushed.why, compare_page(forge, branch, pushed.branch)
        )
        if not board.says(note.mark):
            post_once(forge, board, note.body)


def went_on(desk: Desk, one: Summary, head: str) -> bool:
    """Return whether the head has commits that were not there when the agent asked, and that are not its own. Commits
    that this clone lacks cannot be compared: then it returns False.
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
    """Set the status of the pull request's current head, and return it; empty where the thread is no pull request."""
    pull = None if isinstance(board.thread, str) else forge.fetch_pull_request(board.thread)
    return mark_head(desk, forge, pull, board.marks) if pull is not None else ""


def mark_head(desk: Desk, forge: Forge, pull: PullRequest, shown: Collection[str] = ()) -> str:
    """Set the status of a pull request's head, and return it. A head without a gate has one too, since it may be
    required. A forge keeps a limited number of statuses per name and commit, so an unchanged one is not set again.
    """
    found = gates_of_pull(desk, pull, shown)
    state, words = judge(desk, pull, found)
    if forge.fetch_status(pull.head) != (state, words):
        forge.set_status(pull.head, state, words, pull.url)
    if found and not forge.unchecked:
        forge.show_check(pull.head, check_of(desk, forge, pull, found, (state, words)), pull.url)
    return state


def mark_queued(desk: Desk, forge: Forge, number: int, commit: str) -> None:
    """Set the status of the commit that a merge queue would merge. While a gate waits it is a failure, since nobody
    looks at that commit again. The pull request then leaves the queue, and can enter it once the gate is decided.
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
    """Return the check page of a head: its status, and the questions that wait."""
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
    """Return a stat and a diff of the gate's work; empty where the work stayed with the agent."""
    try:
        return diff_of(desk, gate, stat=True), diff_of(desk, gate)[:MOST_DIFF]
    except GateError:
        return "", ""  # it stayed where the agent ran


def bring_up_to_date(desk: Desk, forge: Forge, gate: Gate, board: Board) -> str:
    """Update comment and status after an event. Return what could not be posted, in words: a later sweep posts it."""
    try:
        board = tell_end(desk, forge, gate, post_gate(desk, forge, gate, board))
        post_status(desk, forge, board)
    except ForgeFailed as silent:
        return f"the comment is not up to date: {silent.message}"
    return ""


MOST_LOOKED_AT = 5  # so many pull requests with one commit


@dataclass
class Pulls:
    """Cache of what the forge said of pull requests, for as long as one pass over everything takes."""

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
        """Load what was said since then on all these threads, in a request or two; nothing if that is too much."""
        self.recent = self.forge.fetch_comments_since(since, most, threads)
        if self.recent is not None:
            self.on_diffs = self.forge.fetch_comments_since(since, most, threads, diff=True)

    def glimpse(self, thread: Thread, gates: Collection[str]) -> Board | None:
        """Return a thread as `look_back` loaded it, if that includes our comments of all these gates; else None."""
        if self.recent is None or thread not in self.recent or isinstance(thread, str):
            return None
        comments = tuple(self.recent[thread])
        begun = [one for one in comments if one.body.startswith(BEGIN)]
        board = Board(thread, logins(self.forge, comments) if begun else (), comments)
        return board if set(gates) <= set(board.marks) else None

    def on_diff(self, board: Board) -> list[Comment]:
        """Return the comments on the diff of a thread that shows a gate. Their events would run the workflow file of
        the branch itself, so that these comments are searched for instead.
        """
        if not board.marks:
            return []
        if self.on_diffs is not None:
            return self.on_diffs.get(board.thread, [])
        return self.forge.fetch_diff_comments(board.thread)

    def has(self, number: int) -> bool:
        """Return whether this is the number of a pull request."""
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
        """Return a thread's comments, loaded once for all gates. They are valid until something is posted there."""
        if thread not in self.boards:
            self.boards[thread] = load_board(self.forge, thread)
        return self.boards[thread]

    def of_commit(self, commit: str) -> list[PullRequest]:
        """Return the pull requests whose head is this commit; else those that contain it. Forks are left out: one may
        contain any commit that its owner saw.
        """
        if commit not in self.commits:
            found = [one for one in self.forge.find_pull_requests_with(commit) if not one.foreign]
            self.commits[commit] = [one for one in found if one.head == commit] or found
        return self.commits[commit]


def thread_of(desk: Desk, forge: Forge, gate: Gate, pulls: Pulls | None = None) -> Thread | None:
    """Return the thread that shows the gate, or is to show it. Return None where no pull request is open and no setting
    names another place.

    The record names the pull request whose job asked. Whoever can push may write a number there that does not exist.
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
    """Return the open pull request of the gate's branch; else the only one that contains the commit where the agent
    began. If several contain it, return the one that shows the gate already, since its branch may have another name by
    now.
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
    """Return the closed or merged pull request that shows the gate already. It goes on showing a gate that waits, but
    never begins to show one.
    """
    branch = gate.opened.work.branch
    found = pulls.of_branch(branch, closed=True) if branch else []
    for pull in found[:1]:
        if gate.id in pulls.board(pull.number).marks:
            return pull.number
    return None


def course_of(desk: Desk, forge: Forge, gate: Gate) -> Course:
    """Return where the agent's commits go now: its branch, or the branch that its pull request has instead. A branch
    that was deleted is not created again; one that only the asker's clone had is created now.
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
    """Return whether the gate's branch was renamed, and its old name is another branch now. Then the new branch
    contains the commit where the agent began, and the old name does not.
    """
    base = gate.opened.work.base
    if base is None or not was_there(gate):
        return False
    return is_ancestor(desk.repo.git, base, present) and not is_ancestor(desk.repo.git, base, tip)


def was_there(gate: Gate) -> bool:
    """Return whether the remote had the branch: in the asker's clone, or since a job asked, which has it from there."""
    asked = gate.opened.asked
    return gate.opened.work.shared or bool(asked.logins) or is_robot(asked.by)
