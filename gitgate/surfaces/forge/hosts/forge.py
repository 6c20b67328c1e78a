"""Surfaces: what is asked of a forge, and in what shape it answers.

Whatever serves any forge is typed by `Forge` alone: GitHub's and Gitea's adapters satisfy it, and so would another's that shares
nothing with them. Only what looks after GitHub's own workflows knows more.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from ....context.desk import Desk
from ....errors import GateError

BEGIN = "<!-- gitgate "  # every comment of ours begins so
Thread = int | str
"""Where comments stand: the number of a pull request or an issue, or a commit's full id."""
COMMIT, DIFF = "commit", "diff"
"""The kinds of comments besides those of a thread, each with numbers of its own: on a commit, on a line of a pull request's diff."""


def whole(text: str) -> str:
    """JSON may hold halves of characters, which nothing else can."""
    return text.encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True)
class Author:
    """An account. `bot`: a program's, whose word is nobody's."""

    login: str
    number: int
    bot: bool = False


@dataclass(frozen=True)
class Comment:
    """A comment as the forge has it now. Each kind of comment has numbers of its own.

    `review`: that of which one on a line of the diff is a part. `begun`: when its author began it, where that was before
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
        """The commit that it stands on; empty for one of a pull request or an issue."""
        return self.thread if isinstance(self.thread, str) else ""

    @property
    def kind(self) -> str:
        return DIFF if self.review else COMMIT if self.commit else ""

    @property
    def place(self) -> tuple[str, int]:
        """When it was begun, and its number there: what its author may have read before is smaller."""
        return self.begun or self.created, 0 if self.review else self.number

    @property
    def by_program(self) -> bool:
        """Whether no person wrote it: a bot did, or we in the name of whoever's token we have."""
        return self.author.bot or self.body.startswith(BEGIN)


@dataclass(frozen=True)
class PullRequest:
    """A pull request. `foreign`: its branch is another repository's. `updated`: when anything of it changed last, its comments
    included; empty where the forge does not say.
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
    """A word at lines of a file."""

    path: str
    first: int
    last: int
    words: str


@dataclass(frozen=True)
class CheckPage:
    """A check run beside a commit. `conclusion`: `action_required`, `success` or `failure`; empty while it goes on."""

    conclusion: str
    title: str
    summary: str
    text: str
    notes: tuple[CheckNote, ...] = ()

    @property
    def digest(self) -> str:
        """By which it is known whether it stands there already."""
        return sha256(repr(self).encode("utf-8", "backslashreplace")).hexdigest()[:40]


@dataclass(frozen=True)
class Customs:
    """What people see of a forge, as far as they differ. GitHub's, unless it says otherwise."""

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


@dataclass(frozen=True)
class Hooks:
    """How a forge's webhooks are known: by which header it names the event, which events are for us, and what is against a
    delivery with these headers (by small letters) and this body, where we share this secret; empty where it is the forge's.
    """

    header: str
    events: frozenset[str]
    against: Callable[[str, Mapping[str, str], bytes], str]


def signed(secret: str, body: bytes, signature: str) -> bool:
    """Whether the forge, which alone shares the secret, sent exactly this. Compared in constant time."""
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
    """The few calls. Whatever cannot be had is a `ForgeFailed` with what to do about it."""

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
        """Our own login: only what it wrote is ours. Empty until we wrote something, where our token may not ask."""
        ...

    def has_jobs(self) -> bool:
        """Whether jobs of this repository keep its comments, in the name of `robot`; we may be one of them."""
        ...

    def default_branch(self) -> str:
        """Never the branch that an agent works on: its workflow file, and its policy, are the agent's."""
        ...

    def fetch_comment(self, number: int, *, kind: str = "", thread: Thread | None = None) -> Comment | None:
        """None when it is gone, or nobody but its author can see it yet. `thread`: where it stands, as far as that is known; a
        forge that numbers comments by themselves does not need it.
        """
        ...

    def fetch_comments(self, thread: Thread) -> list[Comment]:
        """All of a thread's, oldest first."""
        ...

    def fetch_diff_comments(self, thread: Thread) -> list[Comment]:
        """Those on lines of a pull request's diff; none where there is no such thing. When one could be seen, and whether it was
        edited since then, `fetch_comment` alone tells.
        """
        ...

    def fetch_comments_since(self, since: str, most: int, *, diff: bool = False) -> list[Comment] | None:
        """All that changed since then, of every thread, or every diff; None where these are more than `most` pages, or nobody tells."""
        ...

    def post_comment(self, thread: Thread, body: str) -> Comment: ...

    def edit_comment(self, comment: Comment, body: str) -> Comment: ...

    def remove_comment(self, comment: Comment) -> None:
        """Also when it is gone already."""
        ...

    def react(self, comment: Comment, word: str) -> None:
        """`eyes`, `+1` or `confused` on a comment."""
        ...

    def may_write(self, login: str) -> bool:
        """Whether the forge lets this account write to the repository."""
        ...

    def is_ours(self, repository: str) -> bool:
        """Whether `owner/name` is this repository, by the name that it has now or the one that it was given here."""
        ...

    def find_pull_requests(self, branch: str, *, closed: bool = False) -> list[PullRequest]:
        """The open ones of a branch of this very repository, or those that were closed or merged; newest first."""
        ...

    def list_pull_requests(self) -> list[PullRequest]:
        """All open ones, newest first."""
        ...

    def find_pull_requests_with(self, commit: str) -> list[PullRequest]:
        """The open ones that bring this commit."""
        ...

    def fetch_pull_request(self, number: int) -> PullRequest | None:
        """None when that number is an issue's, or nobody's."""
        ...

    def request_reviews(self, number: int, logins: Sequence[str]) -> list[str]:
        """Ask these people for a review of a pull request; those who cannot be asked."""
        ...

    def set_status(self, commit: str, state: str, words: str, url: str) -> None:
        """`pending`, `success` or `failure` beside a commit."""
        ...

    def fetch_status(self, commit: str) -> tuple[str, str]:
        """What `set_status` said last: the state and the words; empty where it said nothing."""
        ...

    def look_at_heads(self) -> None:
        """Ask at once what stands beside the heads of all open pull requests, where the forge can tell; `fetch_status` and
        `show_check` go by it until something is set there.
        """
        ...

    def show_check(self, commit: str, page: CheckPage, url: str) -> None:
        """The page beside a commit, unless it stands there. Where it cannot, `unchecked` says why, and nothing fails."""
        ...

    def dispatch(self, gate: str, commit: str) -> str:
        """Start the resume in CI; where it can be watched. Only the gate's id and the answer's commit are sent."""
        ...


def logins(forge: Forge, comments: Iterable[Comment]) -> tuple[str, ...]:
    """That of this repository's jobs, where it has ours or we are one of them; and the one whose token we have.

    A program's token may not ask whose it is. It is not the jobs' own where a program of another name has written what looks
    like ours: a reaction to that, whose answer names who reacted, tells whether it was us, before it is all posted once more.
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
    """Outside a job the jobs' word is ours where the repository has our workflow: any workflow of it writes by that name."""
    return any(one.author.login == forge.robot for one in begun) and forge.has_jobs()


def has_workflow(desk: Desk) -> bool:
    """Whether the default branch, as it was last fetched, has the workflow whose jobs take replies."""
    from ....policy.rules import protected_refs
    from ....setup.workflows import ANSWERS, FOLDER
    from ....store.git.objects import read_protected

    return read_protected(desk.records.objects, f"{FOLDER}/{ANSWERS}", protected_refs(desk)) is not None


def has_pipeline(desk: Desk) -> bool:
    """The same of GitLab's: whether its own file includes ours."""
    from ....policy.rules import protected_refs
    from ....setup.workflows import OURS_IN, ROOT
    from ....store.git.objects import read_protected

    found = read_protected(desk.records.objects, ROOT, protected_refs(desk))
    return found is not None and OURS_IN.encode() in found.data


def foreign_token(desk: Desk, forge: Forge) -> str:
    """What is wrong with a token in a job where others of the repository take the replies; empty where it is the job's own."""
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
