"""Surfaces: what is asked of a forge, in what shape it answers, and what its events say, read without trusting them."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from ....context import Desk
from ....errors import GateError, Usage
from ....model import as_account, is_id
from .. import may_answer, word_of
from .web import ForgeFailed

# What is asked of a forge, and in what shape it answers.
#
# Whatever serves any forge is typed by `Forge` alone: GitHub's and Gitea's adapters satisfy it, and so
# would another's that shares nothing with them. Only what looks after GitHub's own workflows knows more.


BEGIN = "<!-- gitgate "  # every comment of ours begins so
Thread = int | str
"""Where comments stand: the number of a pull request or an issue, or a commit's full id."""
COMMIT, DIFF = "commit", "diff"
"""The kinds of comments besides those of a thread, each with numbers of its own: on a commit, on a line of a pull request's diff."""


def whole(text: str) -> str:
    """Return a text without halves of characters, which JSON may contain and nothing else can."""
    return text.encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True)
class Author:
    """Account. `bot`: it is a program's, whose word is nobody's."""

    login: str
    number: int
    bot: bool = False


@dataclass(frozen=True)
class Comment:
    """Comment as the forge has it now. Each kind of comment has numbers of its own.

    `review`: the review that a comment on the diff belongs to. `begun`: when its author began it, if that was before
    everybody could see it.
    """

    number: int
    thread: Thread
    body: str
    author: Author
    created: str
    updated: str
    url: str
    review: int = 0
    begun: str = ""
    thumbs: int = 0
    """How many put a thumb up or down at it, where the forge tells; whose they are it does not."""

    @property
    def edited(self) -> bool:
        return self.created != self.updated

    @property
    def commit(self) -> str:
        """Commit that the comment is on; empty for a comment on a pull request or an issue."""
        return self.thread if isinstance(self.thread, str) else ""

    @property
    def kind(self) -> str:
        return DIFF if self.review else COMMIT if self.commit else ""

    @property
    def place(self) -> tuple[str, int]:
        """Time when it was begun, and its number. Whatever its author may have read before has a smaller place."""
        return self.begun or self.created, 0 if self.review else self.number

    @property
    def by_program(self) -> bool:
        """Flag: no person wrote it, but a bot did, or we did in the name of the person whose token we have."""
        return self.author.bot or self.body.startswith(BEGIN)


@dataclass(frozen=True)
class PullRequest:
    """Pull request. `foreign`: its branch is another repository's. `updated`: when it or its comments changed last;
    empty where the forge does not say.
    """

    number: int
    branch: str
    head: str
    url: str
    open: bool = True
    foreign: bool = False
    updated: str = ""
    merged: bool = False
    author: str = ""


@dataclass(frozen=True)
class CheckNote:
    """Note at lines of a file."""

    path: str
    first: int
    last: int
    words: str


@dataclass(frozen=True)
class CheckPage:
    """Check run of a commit. `conclusion`: `action_required`, `success` or `failure`; empty while it goes on."""

    conclusion: str
    title: str
    summary: str
    text: str
    notes: tuple[CheckNote, ...] = ()

    @property
    def digest(self) -> str:
        """Digest of the page, by which it is known whether the forge has it already."""
        return sha256(repr(self).encode("utf-8", "backslashreplace")).hexdigest()[:40]


@dataclass(frozen=True)
class Customs:
    """Differences between forges that people see. The defaults are GitHub's."""

    pages: str = ""
    """What stands between a repository's address and that of a page of it, such as a commit's."""
    runs: str = "/actions/runs/"
    """What stands between a repository's address and the number of a job's run."""
    forge: str = "GitHub"
    nested: bool = False
    """Whether repositories may stand in groups within groups."""
    taken: frozenset[str] = frozenset()
    """The commands of ours that the forge takes for its own, so that we never hear them."""
    by_thread: bool = False
    """Whether a comment is found by its number and its thread, and not by its number alone."""
    beside: bool = True
    """Whether gates may be shown elsewhere than on pull requests: on an issue, or a commit."""


GITHUBS = Customs()


def by_thread(comments: Iterable[Comment], threads: Collection[Thread] = ()) -> dict[Thread, list[Comment]]:
    """Return comments by thread, in the order of their numbers. All of `threads` are there, also those without any."""
    found: dict[Thread, list[Comment]] = {thread: [] for thread in threads}
    for comment in sorted(comments, key=lambda one: one.number):
        found.setdefault(comment.thread, []).append(comment)
    return found


@dataclass(frozen=True)
class Hooks:
    """Rules by which a forge's webhooks are known. `header` names the event, and `events` are those for us. `against`
    returns what is wrong with a delivery, given our secret, its headers (in small letters) and its body; empty if it is
    the forge's.
    """

    header: str
    events: frozenset[str]
    against: Callable[[str, Mapping[str, str], bytes], str]


def signed(secret: str, body: bytes, signature: str) -> bool:
    """Return whether the forge, which alone shares the secret, sent exactly this body. Compared in constant time."""
    wanted = "sha256=" + hmac.new(secret.encode(), body, sha256).hexdigest()
    return same_secret(wanted, signature)


def same_secret(wanted: str, given: str) -> bool:
    return hmac.compare_digest(wanted.encode(), given.encode("utf-8", "surrogateescape"))


def against_signature(secret: str, headers: Mapping[str, str], body: bytes) -> str:
    fits = signed(secret, body, headers.get("x-hub-signature-256", ""))
    return "" if fits else "the signature does not fit"


GITHUBS_HOOKS = Hooks(
    "x-github-event",
    frozenset(("issue_comment", "commit_comment", "pull_request_review_comment", "ping")),
    against_signature,
)


class Forge(Protocol):
    """Calls that every forge has to offer. `ForgeFailed` is raised where one fails, and says what to do about it."""

    name: str
    robot: str
    """As whom a job's own token writes."""
    job: bool
    """Whether this is a job of the repository's own."""
    site: str
    """Where people see the repository; links that lead elsewhere are never shown."""
    customs: Customs
    unchecked: str
    """Why no check runs can be shown, once that is known; empty where they can, or where there is no such thing."""

    def fetch_self(self) -> str:
        """Return our own login: only what it wrote is ours. Empty until we wrote something if our token may not ask."""
        ...

    def has_jobs(self) -> bool:
        """Return whether this repository's jobs, of which we may be one, keep its comments as `robot`."""
        ...

    def default_branch(self) -> str:
        """Return the default branch. An agent's branch never counts: its workflow file and policy are the agent's."""
        ...

    def fetch_comment(self, number: int, *, kind: str = "", thread: Thread | None = None) -> Comment | None:
        """Return a comment; None when it is gone, or only its author can see it yet. `thread`: its thread, if that is
        known. Some forges need it, since they do not find a comment by its number alone.
        """
        ...

    def fetch_comments(self, thread: Thread) -> list[Comment]:
        """Return all comments of a thread, oldest first."""
        ...

    def fetch_diff_comments(self, thread: Thread) -> list[Comment]:
        """Return the comments on a pull request's diff; none where there is no such thing. Only `fetch_comment` tells
        when one could be seen, and whether it was edited since.
        """
        ...

    def fetch_comments_since(
        self, since: str, most: int, threads: Collection[Thread] = (), *, diff: bool = False
    ) -> Mapping[Thread, list[Comment]] | None:
        """Return by thread the comments that changed since then, or all, or those of every diff. Return None for more
        than `most` pages, or where the forge does not tell. A thread of `threads` that is left out has to be read by
        itself.
        """
        ...

    def post_comment(self, thread: Thread, body: str) -> Comment: ...

    def edit_comment(self, comment: Comment, body: str) -> Comment: ...

    def remove_comment(self, comment: Comment) -> None:
        """Remove a comment. One that is gone already is no failure."""
        ...

    def react(self, comment: Comment, word: str) -> None:
        """React to a comment with `eyes`, `+1` or `confused`."""
        ...

    def may_write(self, login: str) -> bool:
        """Return whether the forge lets this account write to the repository."""
        ...

    def is_ours(self, repository: str) -> bool:
        """Return whether `owner/name` is this repository, by its present name or by the one given here."""
        ...

    def find_pull_requests(self, branch: str, *, closed: bool = False) -> list[PullRequest]:
        """Return a branch's open pull requests, or its closed and merged ones, newest first. Forks are left out."""
        ...

    def list_pull_requests(self) -> list[PullRequest]:
        """Return all open pull requests, newest first."""
        ...

    def find_pull_requests_with(self, commit: str) -> list[PullRequest]:
        """Return the open pull requests that contain this commit."""
        ...

    def fetch_pull_request(self, number: int) -> PullRequest | None:
        """Return a pull request; None when the number is an issue's, or nobody's."""
        ...

    def request_reviews(self, number: int, logins: Sequence[str]) -> list[str]:
        """Ask these people to review a pull request. Return those who cannot be asked."""
        ...

    def set_status(self, commit: str, state: str, words: str, url: str) -> None:
        """Set the status of a commit: `pending`, `success` or `failure`."""
        ...

    def fetch_status(self, commit: str) -> tuple[str, str]:
        """Return the state and the words that `set_status` set last; empty where it set none."""
        ...

    def look_at_heads(self) -> None:
        """Load the statuses and checks of the heads of all open pull requests at once, where the forge can.
        `fetch_status` and `show_check` use them until something is set there.
        """
        ...

    def show_check(self, commit: str, page: CheckPage, url: str) -> None:
        """Show the page at a commit, unless it is there. If that cannot be, `unchecked` says why, and nothing fails."""
        ...

    def dispatch(self, gate: str, commit: str) -> str:
        """Start the resume in CI, and return where to watch it. Only the gate's id and the answer's commit are sent."""
        ...


def logins(forge: Forge, comments: Iterable[Comment]) -> tuple[str, ...]:
    """Return our accounts: that of this repository's jobs, if it has ours or we are one; and the one whose token we
    have.

    A program's token may not ask whose it is. Where a bot of another name wrote comments like ours, it may be us. The
    answer to a reaction names its account, and is asked for before everything is posted once more.
    """
    begun = [one for one in comments if one.body.startswith(BEGIN)]
    me = forge.fetch_self()
    strange = [one for one in begun if one.author.bot and one.author.login != forge.robot]
    if not me and strange:
        forge.react(strange[0], "eyes")
        me = forge.fetch_self()
    theirs = forge.robot and (me == forge.robot or forge.job or has_theirs(forge, begun))
    known = [forge.robot] if theirs else []
    return tuple(dict.fromkeys([*known, me] if me else known))


def has_theirs(forge: Forge, begun: Iterable[Comment]) -> bool:
    """Return whether the jobs' comments are ours outside a job: if our workflow exists, as any writes by that name."""
    return any(one.author.login == forge.robot for one in begun) and forge.has_jobs()


def evidence_of(forge: Forge, comment: Comment) -> Mapping[str, object]:
    return {
        "comment": comment.number,
        "url": comment.url,
        "login": comment.author.login,
        "account": comment.author.number,
        "at": comment.created,
        **({"commit": comment.commit} if comment.commit else {}),
        **({"thread": comment.thread} if forge.customs.by_thread else {}),
        **({"review": comment.review} if comment.review else {}),
    }


def person_of(forge: Forge, author: Author) -> str:
    """Return an account as the forge writes it into commits: its number stays when its login goes to somebody else."""
    host = re.sub(r"^https?://([^/:]+).*", r"\1", forge.site)
    login = re.sub(r"[^\w.-]", "", author.login, flags=re.ASCII) or "ghost"
    return as_account(login, str(author.number), host)


def has_workflow(desk: Desk) -> bool:
    """Return whether the default branch, as last fetched, has the workflow whose jobs take replies."""
    from ....policy import protected_refs
    from ....setup.workflows import ANSWERS, FOLDER
    from ....store.git.protected import read_protected

    return (
        read_protected(desk.refs, desk.records.objects, f"{FOLDER}/{ANSWERS}", protected_refs(desk))
        is not None
    )


def has_pipeline(desk: Desk) -> bool:
    """Return whether the default branch, as last fetched, has a GitLab pipeline that includes our jobs."""
    from ....policy import protected_refs
    from ....setup.workflows import OURS_IN, ROOT
    from ....store.git.protected import read_protected

    found = read_protected(desk.refs, desk.records.objects, ROOT, protected_refs(desk))
    return found is not None and OURS_IN.encode() in found.data


def foreign_token(desk: Desk, forge: Forge) -> str:
    """Return what is wrong with a token in a job whose replies other jobs take; empty where it is the job's own."""
    try:
        me = forge.fetch_self() if forge.job and forge.name == "github" and has_workflow(desk) else ""
    except GateError:
        return ""  # a warning is worth no failure
    if me in ("", forge.robot):
        return ""
    return (
        f"this job posts as {me}, and gitgate.yml takes only replies to what {forge.robot} wrote: such replies may be lost; "
        "give this step the job's own token: GITGATE_GITHUB_TOKEN: ${{ github.token }}"
    )


# What a forge's event says, read without trusting it: pure. Only numbers and names are taken from it.


MOST_NUMBER = 1 << 63
MOST_EVENT = 32_000_000
OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
NO_REPLY = "it is no reply to a gate"
BY_BRANCH = "it is a comment on the diff, whose event runs the workflow file of the branch itself: the next sweep reads it"


@dataclass(frozen=True)
class Commented:
    """Event of a new comment, whose words are asked of the forge anew. `kind`: on a commit, on a diff, or in a
    conversation.

    `words`: a short comment that may be an option's name, or mere talk: that depends on the gates.
    """

    comment: int
    repository: str
    kind: str = ""
    words: str = ""
    thread: Thread | None = None
    """Where it stands, as far as the event tells; some forges find a comment by that alone."""


@dataclass(frozen=True)
class Dispatched:
    """Request to resume a gate, with the commit of its answer; or, without a gate, for a sweep."""

    gate: str
    commit: str
    login: str
    bot: bool
    repository: str


@dataclass(frozen=True)
class Nothing:
    """Event that is not for us, and why."""

    why: str


Event = Commented | Dispatched | Nothing


def parse_event(data: bytes, *, received: bool = False) -> Event:
    """Return the event in a file, or in a signed delivery `received` here, which may report a comment on a diff."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError) as wrong:
        raise Usage("the event is not JSON", hint='git gate github accept "$GITHUB_EVENT_PATH"') from wrong
    if not isinstance(said, dict):
        raise Usage("the event is not a JSON object", hint='git gate github accept "$GITHUB_EVENT_PATH"')
    return read_event(said, received=received)


def read_event(said: Mapping[str, object], *, received: bool = False) -> Event:
    if said.get("object_kind") == "note":
        return read_note(said)
    if is_on_diff(said):
        return read_comment(said, DIFF) if received else Nothing(BY_BRANCH)
    if "comment" in said and ("issue" in said or is_on_commit(said)):
        return read_comment(said, COMMIT if is_on_commit(said) else "")
    inputs = said.get("inputs") if "inputs" in said else said.get("client_payload")
    if isinstance(inputs, Mapping):
        return read_dispatch(said, inputs)
    return Nothing("it is neither a comment nor a dispatch")


def read_comment(said: Mapping[str, object], kind: str) -> Event:
    comment, sender = part(said, "comment"), part(said, "sender")
    number = comment.get("id")
    if said.get("action") != "created":
        return Nothing(f"the comment was {word(said.get('action'))}, not created")
    if not is_number(number):
        return Nothing("the comment has no number")
    if sender.get("type", "User") != "User":
        return Nothing("a program wrote it")
    return comment_event(Commented(int(str(number)), repository_of(said), kind), comment.get("body"))


def comment_event(found: Commented, said: object) -> Event:
    """Return the event of a comment, or `Nothing` for mere talk."""
    body = said if isinstance(said, str) else ""
    if may_answer(body):
        return found
    words = word_of(body)
    return replace(found, words=words) if words else Nothing(NO_REPLY)


def read_note(said: Mapping[str, object]) -> Event:
    """Return the event of a GitLab note, which is found by both numbers. Older ones do not say whether it is new."""
    note, place = part(said, "object_attributes"), part(said, "merge_request")
    number, thread = note.get("id"), place.get("iid")
    if note.get("action", "create") != "create":
        return Nothing(f"the note was {word(note.get('action'))}d, not created")
    if note.get("noteable_type") != "MergeRequest":
        return Nothing("it is on no merge request")
    if note.get("system") or note.get("internal"):
        return Nothing("GitLab wrote it, or not everybody may read it")
    if not (is_number(number) and is_number(thread)):
        return Nothing("the note has no number")
    project = whole(str(part(said, "project").get("path_with_namespace") or ""))
    return comment_event(Commented(int(str(number)), project, thread=int(str(thread))), note.get("note"))


def is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < MOST_NUMBER


def nobodys(comment: Comment | None) -> str:
    """Return why a comment is no reply, whatever gates there are; empty where it may be one."""
    if comment is None:
        return "the comment is gone"
    if comment.by_program:
        return "a program wrote it"
    return "" if may_answer(comment.body) or word_of(comment.body) else NO_REPLY


def is_on_diff(said: Mapping[str, object]) -> bool:
    return "pull_request" in said and bool(part(said, "comment").get("commit_id"))


def is_on_commit(said: Mapping[str, object]) -> bool:
    """Return whether the comment is on a commit. Comments of a review name a commit, too, and are not."""
    elsewhere = {"issue", "pull_request", "discussion", "review"} & set(said)
    return not elsewhere and bool(part(said, "comment").get("commit_id"))


def read_dispatch(said: Mapping[str, object], inputs: Mapping[str, object]) -> Event:
    gate, commit = str(inputs.get("gate") or ""), str(inputs.get("commit") or "")
    sender = part(said, "sender")
    if (gate and not is_id(gate)) or (commit and not OID.fullmatch(commit)):
        raise Usage("the dispatch names no gate and commit", hint="git gate github dispatch ID")
    bot = sender.get("type", "User") != "User"
    return Dispatched(gate, commit, whole(str(sender.get("login") or "")), bot, repository_of(said))


LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,98}[A-Za-z0-9_-])?(?:\[bot\])?", re.ASCII)


def started_by(env: Mapping[str, str], said: Mapping[str, object]) -> tuple[str, ...]:
    """Return the people who started this job, each once, in git's form: the event's sender, the actor, and who ran it
    again.

    They are one account unless somebody else ran the job again. On a schedule the actor only changed the schedule last,
    and does not count. The job's own steps may write to an event's file, so it only adds to what the runner says.
    """
    if env.get("GITLAB_CI"):
        return started_on_gitlab(env)
    sender = part(said, "sender")
    found = {"": ""}
    if env.get("GITHUB_EVENT_NAME") != "schedule":
        found[str(sender.get("login") or "")] = str(sender.get("id") or "")
        found.setdefault(env.get("GITHUB_ACTOR", ""), env.get("GITHUB_ACTOR_ID", ""))
    if env.get("GITHUB_RUN_ATTEMPT", "1") != "1" or env.get("GITHUB_EVENT_NAME") != "schedule":
        found.setdefault(env.get("GITHUB_TRIGGERING_ACTOR", ""), "")
    host = urlsplit(env.get("GITHUB_SERVER_URL", "")).hostname or "github.com"
    return tuple(
        as_account(login, number if number.isdecimal() else "", host)
        for login, number in found.items()
        if LOGIN.fullmatch(login)
    )


UNASKED = frozenset(("schedule", "trigger", "parent_pipeline"))


def started_on_gitlab(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return who started this pipeline. A schedule or a trigger token only uses its maker's name: then nobody did."""
    login, number = env.get("GITLAB_USER_LOGIN", ""), env.get("GITLAB_USER_ID", "")
    if env.get("CI_PIPELINE_SOURCE", "") in UNASKED or not LOGIN.fullmatch(login):
        return ()
    host = urlsplit(env.get("CI_SERVER_URL", "")).hostname or "gitlab.com"
    return (as_account(login, number if number.isdecimal() else "", host),)


def repository_of(said: Mapping[str, object]) -> str:
    return whole(str(part(said, "repository").get("full_name") or ""))


def part(said: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = said.get(name)
    return found if isinstance(found, Mapping) else {}


def word(value: object) -> str:
    return value if isinstance(value, str) and value.isalpha() else "something"


QUEUED = re.compile(
    r"refs/heads/gh-readonly-queue/.+/pr-([0-9]{1,15})-(?:[0-9a-f]{40}|[0-9a-f]{64})", re.ASCII
)


def queued_in(env: Mapping[str, str]) -> tuple[int, str] | None:
    """Return, in a merge queue's job, the pull request at the queue's end there, and the commit to be merged."""
    found = QUEUED.fullmatch(env.get("GITHUB_REF", ""))
    commit = env.get("GITHUB_SHA", "")
    wanted = env.get("GITHUB_EVENT_NAME") == "merge_group" and found is not None and OID.fullmatch(commit)
    return (int(found[1]), commit) if wanted and found is not None else None


LOCKED = "is locked"
ARCHIVED = "was archived"
FORBIDDEN = "Resource not accessible by integration"
GONE = "the thread was deleted, so nothing can be shown there"
SHUT = "the thread is locked, so nothing can be said there; replies that stand there are heard"
LATER = "this run may only read, and has no secrets: the next scheduled sweep does what is to be done"
DEPENDABOT = "dependabot[bot]"


def final(refused: ForgeFailed, env: Mapping[str, str]) -> str:
    """Return why it is useless to ask again; empty where it may help, or where somebody has to mend something."""
    said = refused.message
    if refused.status == 410:
        return GONE
    if refused.status != 403:
        return ""
    if LOCKED in said:
        return SHUT
    if ARCHIVED in said:
        return "the repository is archived: nothing in it can be changed"
    if FORBIDDEN in said and may_only_read(env):
        return LATER
    return ""


def is_of_thread(why: str) -> bool:
    """Return whether this reason is about one thread. The others are about the whole run."""
    return why in (GONE, SHUT)


def may_only_read(env: Mapping[str, str]) -> bool:
    """Return whether GitHub's own rule gives this job a token that only reads: one for a pull request of Dependabot's
    or of a fork. Any other job has such a token by mistake.
    """
    if env.get("GITHUB_EVENT_NAME") != "pull_request":
        return False
    return DEPENDABOT in (env.get("GITHUB_ACTOR"), env.get("GITHUB_TRIGGERING_ACTOR")) or of_a_fork(env)


def of_a_fork(env: Mapping[str, str]) -> bool:
    try:
        with Path(env.get("GITHUB_EVENT_PATH") or "-").open("rb") as event:
            said = json.loads(event.read(MOST_EVENT))
        head, base = (said["pull_request"][side]["repo"] for side in ("head", "base"))
        return head is None or bool(head["full_name"] != base["full_name"])  # None: it was deleted meanwhile
    except (OSError, ValueError, TypeError, KeyError):
        return False
