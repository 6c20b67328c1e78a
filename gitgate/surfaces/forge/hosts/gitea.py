"""Surfaces: Gitea's and Forgejo's API, which was made after GitHub's: the same paths and names of fields, so its adapter is GitHub's
with what differs. A forge that speaks otherwise is a class of its own that satisfies `Forge`.

Its comments name their thread in another field, come all at once and stand on no commit; its accounts have no type, but the
numbers of those that are nobody's are not positive; and who may write is told to administrators of the repository only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from ....setup.workflows import ANSWERS
from ....text import format_time, parse_time
from . import CheckPage, Comment, PullRequest, Thread
from .github import GONE, GitHub
from .web import ForgeFailed, understood

PAGE = 50


def in_utc(text: str) -> str:
    """Return a time in UTC. The server writes its own zone, which summer changes, and times are compared as text."""
    return format_time(parse_time(text))


@dataclass
class Gitea(GitHub):
    """One repository on Gitea, at GitHub's paths below /api/v1."""

    name: str = "gitea"
    robot: str = "gitea-actions"

    def read(self, item: Any) -> Comment:
        if not item:  # what is no comment, such as a change of the title, has a number too
            raise ForgeFailed("that is no comment", status=404)
        found = super().read(item)
        found = replace(found, created=in_utc(found.created), updated=in_utc(found.updated))
        nobody = found.author.number <= 0 or found.author.login == self.robot
        return replace(found, author=replace(found.author, bot=True)) if nobody else found

    def read_pulls(self, items: Iterable[Any]) -> list[PullRequest]:
        found = super().read_pulls(items)
        return [replace(one, updated=in_utc(one.updated)) if one.updated else one for one in found]

    def fetch_comments(self, thread: Thread) -> list[Comment]:
        found = self.web.pages(self.comments_of(thread), {})
        return sorted((self.read(item) for item in found), key=lambda comment: comment.number)

    def fetch_diff_comments(self, thread: Thread) -> list[Comment]:
        """Return none: Gitea lists them by their reviews only, and an answer belongs in the conversation."""
        del thread
        return []

    def fetch_comments_since(
        self, since: str, most: int, threads: Collection[Thread] = (), *, diff: bool = False
    ) -> Mapping[Thread, list[Comment]] | None:
        """Return None: each thread has to be read by itself."""
        del since, most, threads, diff
        return None

    def look_at_heads(self) -> None:
        """Load nothing: each status is asked for by itself."""

    def comments_of(self, thread: Thread) -> str:
        if isinstance(thread, str):
            raise ForgeFailed(
                "Gitea has no comments on commits",
                hint="git config gitgate.forgeIssue NUMBER   (an issue for them)",
            )
        return super().comments_of(thread)

    def find_pull_requests(self, branch: str, *, closed: bool = False) -> list[PullRequest]:
        """Return a branch's pull requests. All open ones, or those closed last, are read: none are listed by branch."""
        query: dict[str, object] = {"state": "closed", "sort": "recentclose"} if closed else {"state": "open"}
        path = f"{self.base}/pulls"
        items = self.web.get(path, {**query, "limit": PAGE}).value if closed else self.open_ones()
        return [one for one in self.read_pulls(items) if one.branch == branch and not one.foreign]

    def list_pull_requests(self) -> list[PullRequest]:
        return self.read_pulls(self.open_ones())

    def fetch_status(self, commit: str) -> tuple[str, str]:
        return self.latest_status(commit, {})

    def find_pull_requests_with(self, commit: str) -> list[PullRequest]:
        """Return the open pull requests whose head is this commit: more cannot be asked."""
        return [one for one in self.read_pulls(self.open_ones()) if one.head == commit]

    def open_ones(self) -> list[Any]:
        return list(self.web.pages(f"{self.base}/pulls", {"state": "open", "limit": PAGE}))

    def may_write(self, login: str) -> bool:
        """Return whether an account may write, also as Gitea's `owner`. If we may not ask, that is no refusal."""
        path = f"{self.base}/collaborators/{quote(login, safe='')}/permission"
        try:
            said = self.web.get(path).value
        except ForgeFailed as refused:
            if refused.status in GONE:
                return False
            if refused.status == 403:
                refused.hint = (
                    "Gitea tells who may write only to the repository's administrators: use the token of one"
                )
            raise
        with understood(self.web.base):
            return said["permission"] in ("owner", "admin", "write")

    def show_check(self, commit: str, page: CheckPage, url: str) -> None:
        """Show nothing: Gitea has no check runs."""

    def has_jobs(self) -> bool:
        """Return whether this is a job: the workflows are GitHub's."""
        return self.job

    def dispatch(self, gate: str, commit: str) -> str:
        body = {"ref": self.default_branch(), "inputs": {"gate": gate, "commit": commit}}
        self.web.send("POST", f"{self.base}/actions/workflows/{ANSWERS}/dispatches", body)
        return f"{self.site}/actions"
