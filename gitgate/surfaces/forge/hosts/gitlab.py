"""Surfaces: GitLab's REST API, as much of it as a gate needs: merge requests, their notes, emoji, members, statuses, pipelines.

What differs from other forges: a note is asked for by its merge request. Whoever awards an emoji moves the time of a note, so
that only GraphQL tells whether it was edited. A line that begins with `/` may be one of GitLab's own commands, and is taken away.
Merge requests and issues have numbers of their own, and gates are shown on merge requests alone.
"""

from __future__ import annotations

import hmac
import re
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from ....text import format_time, parse_time
from . import (
    Author,
    CheckPage,
    Comment,
    Customs,
    Hooks,
    PullRequest,
    Thread,
    same_secret,
    whole,
)
from .web import MOST_DIGITS, ForgeFailed, Web, understood

CONTEXT = "gitgate"
DEVELOPER = 30  # the least level of access with which somebody pushes to a project
GONE = frozenset((404, 410))
EMOJI = {"+1": "thumbsup", "eyes": "eyes", "confused": "confused"}
STATES = {"failure": "failed"}
MOST_WORDS = 255
PAGE = {"per_page": 100}
# Accounts that a project's or a group's own token makes, and those that belong to nobody.
PROGRAMS = re.compile(
    r"(?:project|group)_[0-9]+_bot(?:_[0-9a-z]+)?|ghost|(?:alert|support|security|migration)-bot[0-9]*",
    re.ASCII,
)
COMMAND = re.compile(r"^/", re.MULTILINE)
GLOBAL = re.compile(r"gid://gitlab/\w+/([0-9]+)", re.ASCII)
MOST_EDITS = 100  # pages of a hundred notes
EDITS = """query($project: ID!, $number: String!, $after: String) {
  project(fullPath: $project) { mergeRequest(iid: $number) { notes(first: 100, after: $after) {
    pageInfo { hasNextPage endCursor }
    nodes { id updatedAt lastEditedAt lastEditedBy { id } }
  } } }
}"""
AT_ONCE = 25  # merge requests of which all notes are asked for: a reply has at most 30 seconds
TALK = """query($project: ID!, $numbers: [String!]) {
  project(fullPath: $project) { mergeRequests(iids: $numbers, first: 25) { nodes {
    iid
    notes(first: 100, filter: ONLY_COMMENTS) {
      pageInfo { hasNextPage }
      nodes { id body system internal createdAt updatedAt author { id username } }
    }
  } } }
}"""
HERE = Customs(
    pages="/-",
    runs="/-/pipelines/",
    forge="GitLab",
    nested=True,
    taken=frozenset(("/approve",)),
    by_thread=True,
    beside=False,
)

SIGNING = "whsec_"  # a secret that begins so signs each delivery; any other is sent along with it
OLDEST_DELIVERY = 300  # seconds by which the clocks may differ, and a delivery may be under way


@dataclass
class GitLab:
    """One project on GitLab. `robot` is empty: a job writes by its project's token, whose account is asked for."""

    web: Web
    repository: str
    site: str
    job: bool = False
    name: str = "gitlab"
    robot: str = ""
    unchecked: str = ""
    login: str = ""
    customs: Customs = HERE
    written: Callable[[], bool] | None = field(default=None, repr=False)
    """Whether this clone's default branch includes our jobs."""
    about: dict[str, Any] = field(default_factory=dict, repr=False)
    writers: dict[str, bool] = field(default_factory=dict, repr=False)

    @property
    def base(self) -> str:
        return f"/projects/{quote(self.repository, safe='')}"

    # who and where

    def fetch_self(self) -> str:
        if not self.login:
            said = self.web.get("/user").value
            with understood(self.web.base):
                self.login = str(said["username"])
        return self.login

    def fetch_about(self) -> Mapping[str, Any]:
        if not self.about:
            said = self.web.get(self.base).value
            with understood(self.web.base):
                self.about.update(said)
        return self.about

    def own_level(self) -> int:
        """Return the level of access of our token's account; 0 where it is no member."""
        said = self.web.get("/user").value
        with understood(self.web.base):
            number = int(said["id"])
        try:
            found = self.web.get(f"{self.base}/members/all/{number}").value
        except ForgeFailed as refused:
            if refused.status in GONE:
                return 0
            raise
        with understood(self.web.base):
            return int(found["access_level"])

    def has_jobs(self) -> bool:
        return self.job or (self.written is not None and self.written())

    def default_branch(self) -> str:
        with understood(self.web.base):
            return str(self.fetch_about()["default_branch"])

    def is_ours(self, repository: str) -> bool:
        """Return whether this is our project. After a move both names lead to it, and events say the new one."""
        named = repository.lower()
        return (
            named == self.repository.lower()
            or named == str(self.fetch_about()["path_with_namespace"]).lower()
        )

    def may_write(self, login: str) -> bool:
        """Return whether an account may write, by its level, also a group's. No program may, whatever its level."""
        if login not in self.writers:
            self.writers[login] = self.ask_access(login)
        return self.writers[login]

    def ask_access(self, login: str) -> bool:
        number = self.number_of(login)
        if not number or self.is_program(number):
            return False
        try:
            said = self.web.get(f"{self.base}/members/all/{number}").value
        except ForgeFailed as refused:
            if refused.status in GONE:
                return False
            raise
        with understood(self.web.base):
            waits = said.get("membership_state", "active") != "active" or said.get("locked")
            return int(said["access_level"]) >= DEVELOPER and said["state"] == "active" and not waits

    def number_of(self, login: str) -> int:
        """Return the number of an account; 0 where none has exactly this name."""
        found = self.web.get("/users", {"username": login}).value
        with understood(self.web.base):
            same = [int(one["id"]) for one in found if str(one["username"]).lower() == login.lower()]
        return same[0] if same else 0

    def is_program(self, number: int) -> bool:
        said = self.web.get(f"/users/{number}").value
        with understood(self.web.base):
            return bool(said.get("bot"))

    # notes

    def fetch_comment(self, number: int, *, kind: str = "", thread: Thread | None = None) -> Comment | None:
        """Return a note; None where its merge request is unknown, without which it cannot be asked for."""
        del kind
        if not isinstance(thread, int):
            return None
        try:
            item = self.web.get(f"{self.notes_of(thread)}/{number}").value
        except ForgeFailed as refused:
            if refused.status in GONE:
                return None
            raise
        with understood(self.web.base):
            if not is_said(item):
                return None
            touched = item["created_at"] != item["updated_at"]
            found = self.comment_of(item, thread)
        if not touched:
            return found
        return self.comment_of(item, thread, edited=self.fetch_edited(thread, number))

    def fetch_edited(self, thread: int, number: int) -> str:
        """Return when a note was edited; empty where an emoji moved its time. In doubt it counts as edited."""
        asked: dict[str, object] = {"project": self.repository, "number": str(thread)}
        for _ in range(MOST_EDITS):
            said = self.ask_graph(EDITS, asked)
            with understood(self.web.base):
                notes = said["data"]["project"]["mergeRequest"]["notes"]
                for one in notes["nodes"]:
                    if number_in(one["id"]) == number:
                        return edited_at(one)
                if not notes["pageInfo"]["hasNextPage"]:
                    break
                asked["after"] = notes["pageInfo"]["endCursor"]
        raise ForgeFailed(f"{urlsplit(self.site).netloc} does not tell whether note {number} was edited")

    def ask_graph(self, query: str, variables: Mapping[str, object]) -> Any:
        path = self.web.base.removesuffix("/v4") + "/graphql"
        return self.web.send("POST", path, {"query": query, "variables": variables}, repeatable=True).value

    def fetch_comments(self, thread: Thread) -> list[Comment]:
        """Return the notes of a merge request, those on the diff too: GitLab lists all of them together."""
        query = {"sort": "asc", "order_by": "created_at", **PAGE}
        found = []
        for item in self.web.pages(self.notes_of(thread), query):
            with understood(self.web.base):
                if is_said(item):
                    found.append(self.comment_of(item, thread, edited=in_utc(str(item["updated_at"]))))
        return sorted(found, key=lambda comment: comment.number)

    def fetch_diff_comments(self, thread: Thread) -> list[Comment]:
        del thread
        return []

    def fetch_comments_since(
        self, since: str, most: int, threads: Collection[Thread] = (), *, diff: bool = False
    ) -> Mapping[Thread, list[Comment]] | None:
        """Return all notes of these merge requests, by GraphQL. No reply is accepted on their basis. Left out is one
        with more than a page of notes, or with a note of an unknown author. Only here, notes on its commits may be
        included.
        """
        del since, most
        numbers = [str(one) for one in threads if isinstance(one, int)]
        found: dict[Thread, list[Comment]] = {}
        for first in range(0, 0 if diff else len(numbers), AT_ONCE):
            asked = {"project": self.repository, "numbers": numbers[first : first + AT_ONCE]}
            said = self.ask_graph(TALK, asked)
            with understood(self.web.base):
                if said.get("errors"):
                    return None
                for merge in said["data"]["project"]["mergeRequests"]["nodes"]:
                    if not merge["notes"]["pageInfo"]["hasNextPage"] and all(map(is_named, notes_in(merge))):
                        found[int(merge["iid"])] = self.read_talk(merge)
        return found or None

    def read_talk(self, merge: Mapping[str, Any]) -> list[Comment]:
        """Return notes as a list of them would: a note that may have been edited counts as edited."""
        thread = int(merge["iid"])
        items = [shaped_note(one) for one in notes_in(merge)]
        comments = [
            self.comment_of(one, thread, edited=in_utc(one["updated_at"])) for one in items if is_said(one)
        ]
        return sorted(comments, key=lambda comment: comment.number)

    def post_comment(self, thread: Thread, body: str) -> Comment:
        said = self.web.send("POST", self.notes_of(thread), {"body": quiet(body)}).value
        return self.read(said, thread)

    def edit_comment(self, comment: Comment, body: str) -> Comment:
        path = f"{self.notes_of(comment.thread)}/{comment.number}"
        return self.read(self.web.send("PUT", path, {"body": quiet(body)}).value, comment.thread)

    def remove_comment(self, comment: Comment) -> None:
        try:
            self.web.send("DELETE", f"{self.notes_of(comment.thread)}/{comment.number}")
        except ForgeFailed as refused:
            if refused.status not in GONE:
                raise

    def react(self, comment: Comment, word: str) -> None:
        """React to a note. GitLab answers 404 where we gave the same emoji before, which is no failure."""
        path = f"{self.notes_of(comment.thread)}/{comment.number}/award_emoji"
        try:
            self.web.send("POST", path, {"name": EMOJI[word]}, repeatable=True)
        except ForgeFailed as refused:
            if refused.status not in GONE:
                raise

    def read(self, item: Any, thread: Thread) -> Comment:
        with understood(self.web.base):
            return self.comment_of(item, thread, edited=in_utc(str(item["updated_at"])))

    def comment_of(self, item: Mapping[str, Any], thread: Thread, *, edited: str = "") -> Comment:
        """Return a note as a comment. `edited`: when it was changed, or may have been."""
        number, created = int(item["id"]), in_utc(str(item["created_at"]))
        return Comment(
            number,
            thread,
            whole(str(item["body"] or "")),
            author_of(item["author"]),
            created,
            edited or created,
            f"{self.site}/-/merge_requests/{thread}#note_{number}",
            number if item.get("type") == "DiffNote" else 0,
        )

    def notes_of(self, thread: Thread) -> str:
        if isinstance(thread, str):
            raise ForgeFailed(
                "on GitLab a gate is shown on a merge request alone",
                hint="open one for its branch; and take forgeIssue and forgeCommit from the settings",
            )
        return f"{self.base}/merge_requests/{thread}/notes"

    # merge requests

    def find_pull_requests(self, branch: str, *, closed: bool = False) -> list[PullRequest]:
        query = {"state": "all" if closed else "opened", "source_branch": branch, **PAGE}
        found = self.read_pulls(self.web.pages(f"{self.base}/merge_requests", query))
        return [one for one in found if one.branch == branch and not one.foreign and one.open is not closed]

    def list_pull_requests(self) -> list[PullRequest]:
        query = {"state": "opened", **PAGE}
        return self.read_pulls(self.web.pages(f"{self.base}/merge_requests", query))

    def find_pull_requests_with(self, commit: str) -> list[PullRequest]:
        path = f"{self.base}/repository/commits/{quote(commit, safe='')}/merge_requests"
        try:
            return [one for one in self.read_pulls(self.web.pages(path, PAGE)) if one.open]
        except ForgeFailed as refused:
            if refused.status in GONE:
                return []
            raise

    def fetch_pull_request(self, number: int) -> PullRequest | None:
        try:
            return self.read_pulls([self.web.get(f"{self.base}/merge_requests/{number}").value])[0]
        except ForgeFailed as refused:
            if refused.status in GONE:
                return None
            raise

    def read_pulls(self, items: Iterable[Any]) -> list[PullRequest]:
        given = list(items)  # asked for before it is read
        with understood(self.web.base):
            return sorted((merge_request_of(item) for item in given), key=lambda one: -one.number)

    def request_reviews(self, number: int, logins: Sequence[str]) -> list[str]:
        """Ask people for a review, in addition to the present reviewers. A free GitLab keeps one of several, so that
        those whom it kept are read.
        """
        wanted = {login: self.number_of(login) for login in logins}
        path = f"{self.base}/merge_requests/{number}"
        try:
            before = self.reviewers(self.web.get(path).value)
            asked = [*before, *(one for one in wanted.values() if one and one not in before)]
            kept = self.reviewers(self.web.send("PUT", path, {"reviewer_ids": asked}).value)
        except ForgeFailed as refused:
            if refused.status not in (400, 403, 404, 422):
                raise
            return list(logins)
        return [login for login, its in wanted.items() if its not in kept]

    def reviewers(self, said: Any) -> list[int]:
        with understood(self.web.base):
            return [int(one["id"]) for one in said["reviewers"]]

    # beside commits

    def set_status(self, commit: str, state: str, words: str, url: str) -> None:
        """Set the status. GitLab refuses a repeated `pending`, and any for a fork's commit: both are no failure."""
        body = {"state": STATES.get(state, state), "name": CONTEXT, "description": words[:MOST_WORDS]}
        try:
            self.web.send(
                "POST",
                f"{self.base}/statuses/{quote(commit, safe='')}",
                {**body, **({"target_url": url} if url else {})},
                repeatable=True,
            )
        except ForgeFailed as refused:
            again = refused.status == 400 and "transition" in refused.message
            if not again and refused.status != 404:
                raise

    def fetch_status(self, commit: str) -> tuple[str, str]:
        path = f"{self.base}/repository/commits/{quote(commit, safe='')}/statuses"
        found = list(self.web.pages(path, {"name": CONTEXT, **PAGE}))
        with understood(self.web.base):
            ours = [one for one in found if one["name"] == CONTEXT]
            if not ours:
                return "", ""
            last = max(ours, key=lambda one: int(one["id"]))
            named = {theirs: own for own, theirs in STATES.items()}.get(last["status"], last["status"])
            return str(named), str(last["description"] or "")

    def look_at_heads(self) -> None:
        """Load nothing: each status is asked for by itself."""

    def show_check(self, commit: str, page: CheckPage, url: str) -> None:
        """Show nothing: GitLab has no check runs."""

    def dispatch(self, gate: str, commit: str) -> str:
        """Start a pipeline of the default branch. GitLab notes our token's account as its author: that is who asked."""
        inputs = {name: word for name, word in (("gate", gate), ("commit", commit)) if word}
        body = {"ref": self.default_branch(), "inputs": {"gitgate": "answer", **inputs}}
        try:
            said = self.web.send("POST", f"{self.base}/pipeline", body).value
        except ForgeFailed as refused:
            if refused.status in (400, 403, 404):
                refused.hint = "its default branch has no pipeline of ours, or the token may not start one there: git gate init --gitlab; docs/gitlab.md"
            raise
        with understood(self.web.base):
            return str(said["web_url"])


def in_utc(text: str) -> str:
    """Return a time in UTC, to the second, as records have it."""
    return format_time(parse_time(text))


def is_said(item: Mapping[str, Any]) -> bool:
    """Return whether a person wrote it for everybody: GitLab writes notes itself, and some are for members alone."""
    return not (item["system"] or item.get("internal") or item.get("confidential"))


def author_of(item: Any) -> Author:
    login = whole(str(item["username"]))
    return Author(login, int(item["id"]), bot=PROGRAMS.fullmatch(login) is not None)


def merge_request_of(item: Mapping[str, Any]) -> PullRequest:
    return PullRequest(
        int(item["iid"]),
        str(item["source_branch"]),
        str(item["sha"] or ""),
        str(item["web_url"]),
        open=item["state"] in ("opened", "locked"),
        foreign=item["source_project_id"] != item["target_project_id"],
        updated=in_utc(str(item["updated_at"])),
        merged=item["state"] == "merged",
        author=whole(str((item.get("author") or {}).get("username") or "")),
    )


def notes_in(merge: Mapping[str, Any]) -> Sequence[Any]:
    nodes: Sequence[Any] = merge["notes"]["nodes"]
    return nodes


def is_named(note: Mapping[str, Any] | None) -> bool:
    """Return whether GitLab tells the numbers of the note and of its author."""
    return bool(note and number_in(note["id"]) and note["author"] and number_in(note["author"]["id"]))


def shaped_note(note: Mapping[str, Any]) -> dict[str, Any]:
    """Return a note of GraphQL in the shape that REST gives it."""
    kind = note["id"].removeprefix("gid://gitlab/").partition("/")[0]
    return {
        "id": number_in(note["id"]),
        "type": kind,
        "body": note["body"],
        "system": note["system"],
        "internal": note["internal"],
        "author": {"id": number_in(note["author"]["id"]), "username": note["author"]["username"]},
        "created_at": str(note["createdAt"]),
        "updated_at": str(note["updatedAt"]),
    }


def number_in(name: object) -> int:
    """Return the number in a global id; 0 where there is none."""
    known = GLOBAL.fullmatch(str(name))
    return int(known[1]) if known is not None else 0


def edited_at(note: Mapping[str, Any]) -> str:
    """Return when a note was edited; empty if never. Then nobody edited it, and its time may be of the last change."""
    at = note["lastEditedAt"]
    if note["lastEditedBy"] is None and at in (None, note["updatedAt"]):
        return ""
    return in_utc(str(at or note["updatedAt"]))


def quiet(body: str) -> str:
    """Return the text with a blank before each line that GitLab could take for a command of its own. Code is treated
    alike, since GitLab's own search for the end of code can be misled.
    """
    return COMMAND.sub(" /", body.replace("\r", ""))


def against_delivery(secret: str, headers: Mapping[str, str], body: bytes) -> str:
    """Return what is wrong with a delivery: another secret, or a signature not of this body, or not of now."""
    if not secret.startswith(SIGNING):
        fits = same_secret(secret, headers.get("x-gitlab-token", ""))
        return "" if fits else "the secret token does not fit"
    at = headers.get("webhook-timestamp", "")
    signed = f"{headers.get('webhook-id', '')}.{at}.".encode("utf-8", "surrogateescape") + body
    wanted = "v1," + b64encode(hmac.digest(key_in(secret), signed, "sha256")).decode("ascii")
    if not any(same_secret(wanted, one) for one in headers.get("webhook-signature", "").split(" ")):
        return "the signature does not fit"
    late = not at.isdecimal() or abs(time.time() - int(at[:MOST_DIGITS])) > OLDEST_DELIVERY
    return "the delivery is too old, or the clocks differ" if late else ""


def key_in(secret: str) -> bytes:
    try:
        return b64decode(secret.removeprefix(SIGNING), validate=True)
    except ValueError:
        return secret.encode()


HOOKS = Hooks("x-gitlab-event", frozenset(("Note Hook",)), against_delivery)


def gitlab_api(server: str) -> str:
    return f"{server}/api/v4"


def right_on_gitlab(_method: str, _path: str) -> str:
    """Return the right that a refused token needs."""
    return "the scope api, and the role Developer: docs/gitlab.md, Tokens"
