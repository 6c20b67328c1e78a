"""Surfaces: what is asked of a forge, and in what shape it answers. GitHub's and Gitea's adapters satisfy it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

BEGIN = "<!-- gitgate "  # every comment of ours begins so


@dataclass(frozen=True)
class Author:
    """An account. `bot`: a program's, whose word is nobody's."""

    login: str
    number: int
    bot: bool = False


@dataclass(frozen=True)
class Comment:
    """A comment as the forge has it now. `thread` is the number of its pull request or issue."""

    number: int
    thread: int
    body: str
    author: Author
    created: str
    updated: str
    url: str

    @property
    def edited(self) -> bool:
        return self.created != self.updated

    @property
    def by_program(self) -> bool:
        """Whether no person wrote it: a bot did, or we in the name of whoever's token we have."""
        return self.author.bot or self.body.startswith(BEGIN)


@dataclass(frozen=True)
class PullRequest:
    """A pull request. `foreign`: its branch is another repository's."""

    number: int
    branch: str
    head: str
    url: str
    open: bool = True
    foreign: bool = False


class Forge(Protocol):
    """The few calls. Whatever cannot be had is a `ForgeFailed` with what to do about it."""

    name: str
    site: str
    """Where people see the repository; links that lead elsewhere are never shown."""

    def fetch_self(self) -> str:
        """Our own login: only what it wrote is ours."""
        ...

    def fetch_comment(self, number: int) -> Comment | None:
        """None when it is gone."""
        ...

    def fetch_comments(self, thread: int) -> list[Comment]:
        """All of a thread's, oldest first."""
        ...

    def post_comment(self, thread: int, body: str) -> Comment: ...

    def edit_comment(self, number: int, body: str) -> Comment: ...

    def react(self, number: int, word: str) -> None:
        """`eyes`, `+1` or `confused` on a comment."""
        ...

    def may_write(self, login: str) -> bool:
        """Whether the forge lets this account write to the repository."""
        ...

    def find_pull_requests(self, branch: str) -> list[PullRequest]:
        """The open ones of a branch of this very repository."""
        ...

    def fetch_pull_request(self, number: int) -> PullRequest | None:
        """None when that number is an issue's, or nobody's."""
        ...

    def set_status(self, commit: str, state: str, words: str, url: str) -> None:
        """`pending`, `success` or `failure` beside a commit."""
        ...

    def dispatch(self, gate: str, commit: str) -> str:
        """Start the resume in CI; where it can be watched. Only the gate's id and the answer's commit are sent."""
        ...
