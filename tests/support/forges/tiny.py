"""Test bed: a forge that shares nothing with GitHub's adapter: it is a `Forge`, in memory, and no more than that."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gitgate.surfaces.forge.hosts import GITHUBS, Author, CheckPage, Comment, Customs, PullRequest, Thread

OURS = Author("gatekeeper", 1)


@dataclass
class Tiny:
    """A project in a group within a group, with one person who may write to it."""

    repository: str = "group/inner/project"
    name: str = "tiny"
    robot: str = "tiny-jobs"
    job: bool = False
    site: str = "https://tiny.example/group/inner/project"
    pulls: list[PullRequest] = field(default_factory=list)
    comments: dict[int, Comment] = field(default_factory=dict)
    reactions: list[tuple[int, str]] = field(default_factory=list)
    statuses: dict[str, tuple[str, str]] = field(default_factory=dict)
    checks: dict[str, CheckPage] = field(default_factory=dict)
    customs: Customs = GITHUBS
    unchecked: str = ""
    started: list[tuple[str, str]] = field(default_factory=list)

    def write(self, thread: Thread, author: Author, body: str) -> Comment:
        number = len(self.comments) + 1
        at = f"2026-01-01T00:00:{number:02}Z"
        self.comments[number] = Comment(number, thread, body, author, at, at, f"{self.site}/notes/{number}")
        return self.comments[number]

    def fetch_self(self) -> str:
        return OURS.login

    def has_jobs(self) -> bool:
        return False

    def default_branch(self) -> str:
        return "main"

    def fetch_comment(self, number: int, *, kind: str = "", thread: Thread | None = None) -> Comment | None:
        del thread
        found = self.comments.get(number)
        return found if found is not None and found.kind == kind else None

    def fetch_diff_comments(self, thread: Thread) -> list[Comment]:
        return [one for one in self.comments.values() if one.thread == thread and one.review]

    def fetch_comments(self, thread: Thread) -> list[Comment]:
        return [one for one in self.comments.values() if one.thread == thread and not one.review]

    def fetch_comments_since(
        self, since: str, most: int, threads: Collection[Thread] = (), *, diff: bool = False
    ) -> Mapping[Thread, list[Comment]] | None:
        del since, most, threads, diff
        return None

    def look_at_heads(self) -> None:
        """There is no such thing."""

    def post_comment(self, thread: Thread, body: str) -> Comment:
        return self.write(thread, OURS, body)

    def edit_comment(self, comment: Comment, body: str) -> Comment:
        self.comments[comment.number] = replace(comment, body=body, updated="2026-01-01T01:00:00Z")
        return self.comments[comment.number]

    def remove_comment(self, comment: Comment) -> None:
        self.comments.pop(comment.number, None)

    def react(self, comment: Comment, word: str) -> None:
        self.reactions.append((comment.number, word))

    def may_write(self, login: str) -> bool:
        return login == "ada"

    def is_ours(self, repository: str) -> bool:
        return repository == self.repository

    def find_pull_requests(self, branch: str, *, closed: bool = False) -> list[PullRequest]:
        return [one for one in self.pulls if one.branch == branch and one.open is not closed]

    def list_pull_requests(self) -> list[PullRequest]:
        return [one for one in self.pulls if one.open]

    def find_pull_requests_with(self, commit: str) -> list[PullRequest]:
        return [one for one in self.pulls if one.head == commit]

    def fetch_pull_request(self, number: int) -> PullRequest | None:
        return next((one for one in self.pulls if one.number == number), None)

    def request_reviews(self, number: int, logins: Sequence[str]) -> list[str]:
        del number
        return list(logins)

    def set_status(self, commit: str, state: str, words: str, url: str) -> None:
        assert url.startswith(self.site)
        self.statuses[commit] = (state, words)

    def fetch_status(self, commit: str) -> tuple[str, str]:
        return self.statuses.get(commit, ("", ""))

    def show_check(self, commit: str, page: CheckPage, url: str) -> None:
        assert url.startswith(self.site)
        self.checks[commit] = page

    def dispatch(self, gate: str, commit: str) -> str:
        self.started.append((gate, commit))
        return f"{self.site}/jobs/1"
