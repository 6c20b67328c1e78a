"""Surfaces: GitHub's REST API, as much of it as a gate needs. Enterprise Server speaks the same at another address."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from .forge import Author, Comment, PullRequest
from .web import ForgeFailed, Web

VERSION = "2022-11-28"
ACTIONS_BOT = "github-actions[bot]"
WRITERS = frozenset(("admin", "maintain", "write"))
WORKFLOW, EVENT = "gitgate.yml", "gitgate"
MOST_WORDS = 140


def headers() -> dict[str, str]:
    return {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": VERSION}


@dataclass
class GitHub:
    """One repository on GitHub. `robot`: as whom a job's own token writes."""

    web: Web
    repository: str
    site: str
    login: str = ""
    name: str = "github"
    robot: str = ACTIONS_BOT

    @property
    def base(self) -> str:
        return "/repos/" + "/".join(quote(part, safe="") for part in self.repository.split("/"))

    def fetch_self(self) -> str:
        """A job's own token may not ask who it is; that it may not says it."""
        if not self.login:
            try:
                self.login = str(self.web.get("/user").value["login"])
            except ForgeFailed as refused:
                if refused.status != 403:
                    raise
                self.login = self.robot
        return self.login

    def fetch_comment(self, number: int) -> Comment | None:
        try:
            return comment_of(self.web.get(f"{self.base}/issues/comments/{number}").value)
        except ForgeFailed as refused:
            if refused.status in (404, 410):
                return None
            raise

    def fetch_comments(self, thread: int) -> list[Comment]:
        found = self.web.pages(f"{self.base}/issues/{thread}/comments", {"per_page": 100})
        return [comment_of(item) for item in found]

    def post_comment(self, thread: int, body: str) -> Comment:
        return comment_of(
            self.web.send("POST", f"{self.base}/issues/{thread}/comments", {"body": body}).value
        )

    def edit_comment(self, number: int, body: str) -> Comment:
        return comment_of(
            self.web.send("PATCH", f"{self.base}/issues/comments/{number}", {"body": body}).value
        )

    def react(self, number: int, word: str) -> None:
        path = f"{self.base}/issues/comments/{number}/reactions"
        self.web.send("POST", path, {"content": word}, repeatable=True)

    def may_write(self, login: str) -> bool:
        """By the collaborators API: what a comment says of its author's association leaves private members out."""
        if login.endswith("[bot]"):
            return False
        path = f"{self.base}/collaborators/{quote(login, safe='')}/permission"
        try:
            said = self.web.get(path).value
        except ForgeFailed as refused:
            if refused.status == 404:
                return False
            raise
        return said.get("permission") in WRITERS

    def find_pull_requests(self, branch: str) -> list[PullRequest]:
        owner = self.repository.partition("/")[0]
        query = {"state": "open", "head": f"{owner}:{branch}", "per_page": 100}
        found = [
            pull_request_of(item, self.repository) for item in self.web.pages(f"{self.base}/pulls", query)
        ]
        return [item for item in found if item.branch == branch and not item.foreign]

    def fetch_pull_request(self, number: int) -> PullRequest | None:
        try:
            return pull_request_of(self.web.get(f"{self.base}/pulls/{number}").value, self.repository)
        except ForgeFailed as refused:
            if refused.status == 404:
                return None
            raise

    def set_status(self, commit: str, state: str, words: str, url: str) -> None:
        body = {"state": state, "context": "gitgate", "description": words[:MOST_WORDS]}
        if url:
            body["target_url"] = url
        self.web.send("POST", f"{self.base}/statuses/{quote(commit, safe='')}", body, repeatable=True)

    def dispatch(self, gate: str, commit: str) -> str:
        """By the workflow's own event where the token may, which tells the run; else by the repository's."""
        inputs = {"gate": gate, "commit": commit}
        path = f"{self.base}/actions/workflows/{WORKFLOW}/dispatches"
        try:
            body = {"ref": self.default_branch(), "inputs": inputs, "return_run_details": True}
            said = self.web.send("POST", path, body).value
        except ForgeFailed as refused:
            if refused.status in (404, 422):
                refused.hint = f"the default branch has no such workflow ({WORKFLOW}), or the token may not see it: git gate init --github"
            if refused.status != 403:
                raise
            body = {"event_type": EVENT, "client_payload": inputs}
            self.web.send("POST", f"{self.base}/dispatches", body)
            said = None
        url = said.get("html_url") if isinstance(said, Mapping) else None
        return str(url) if url else f"{self.site}/actions/workflows/{WORKFLOW}"

    def default_branch(self) -> str:
        """Never the branch that an agent works on: its workflow file is the agent's."""
        return str(self.web.get(self.base).value["default_branch"])


def whole(text: str) -> str:
    """JSON may hold halves of characters, which nothing else can."""
    return text.encode("utf-8", "replace").decode("utf-8")


def author_of(item: Any) -> Author:
    if not isinstance(item, Mapping):
        return Author("ghost", 0, bot=True)  # an account that is gone vouches for nothing
    login = str(item["login"])
    return Author(login, int(item["id"]), bot=item.get("type", "User") != "User" or login.endswith("[bot]"))


def comment_of(item: Mapping[str, Any]) -> Comment:
    thread = re.search(r"/issues/([0-9]+)$", str(item.get("issue_url") or ""))
    author = author_of(item.get("user"))
    if item.get("performed_via_github_app"):
        author = Author(author.login, author.number, bot=True)
    return Comment(
        int(item["id"]),
        int(thread.group(1)) if thread else 0,
        whole(str(item.get("body") or "")),
        author,
        str(item["created_at"]),
        str(item["updated_at"]),
        str(item["html_url"]),
    )


def pull_request_of(item: Mapping[str, Any], repository: str) -> PullRequest:
    head = item["head"]
    home = head.get("repo")
    theirs = str(home.get("full_name", "")) if isinstance(home, Mapping) else ""
    return PullRequest(
        int(item["number"]),
        str(head["ref"]),
        str(head["sha"]),
        str(item["html_url"]),
        open=item.get("state") == "open",
        foreign=theirs.lower() != repository.lower(),
    )
