"""Surfaces: GitHub's REST API, as much of it as a gate needs. Enterprise Server speaks the same at another address."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from ....setup.workflows import ANSWERS
from ....text import parse_time
from . import (
    COMMIT,
    DIFF,
    GITHUBS,
    Author,
    CheckPage,
    Comment,
    Customs,
    PullRequest,
    Thread,
    by_thread,
    whole,
)
from .web import ForgeFailed, TooMany, Web, understood

VERSION = "2022-11-28"
ACTIONS_BOT = "github-actions[bot]"
WRITERS = frozenset(("admin", "maintain", "write"))
GONE = frozenset((404, 410))
EVENT = "gitgate"
NO_WORKFLOW = ("", "deleted")
RUN_DETAILS = "return_run_details"
CONTEXT = "gitgate"
MOST_WORDS = 140
CHECK = "gitgate questions"  # one of the status's own name would be required with it
MOST_LOOKS = 10
HEADS = """query($owner: String!, $name: String!, $status: String!, $check: String!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequests(states: OPEN, first: 100, after: $after) {
      pageInfo { hasNextPage endCursor }
      nodes {
        headRefOid
        commits(last: 1) { nodes { commit {
          oid
          status { context(name: $status) { state description } }
          checkSuites(first: 10, filterBy: {checkName: $check}) { nodes {
            checkRuns(first: 1, filterBy: {checkName: $check, checkType: LATEST}) { nodes { databaseId status externalId } }
          } }
        } } }
      }
    }
  }
}"""
NO_CHECKS = "check runs cannot be written with this token (it takes Checks: write, which Apps and jobs alone can have): the status stays"
KINDS = {"": "/issues", COMMIT: "", DIFF: "/pulls"}
UNASKED = frozenset((403, 404, 422))
NOBODYS = -1  # no review's number
SUBMITTING = 2  # seconds between a review and the last touch of its comments by GitHub itself


def headers() -> dict[str, str]:
    return {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": VERSION}


@dataclass(frozen=True)
class KnownCheck:
    """Check run of ours at a commit. `over`: it is completed."""

    number: int
    digest: str
    over: bool


@dataclass
class GitHub:
    """One repository on GitHub. `robot`: the account as which a job's own token writes."""

    web: Web
    repository: str
    site: str
    login: str = ""
    name: str = "github"
    robot: str = ACTIONS_BOT
    job: bool = False
    tells_run: bool = True
    """Whether it says which run it starts, as far as we know."""
    about: dict[str, Any] = field(default_factory=dict, repr=False)
    asked: dict[str, bool] = field(default_factory=dict, repr=False)
    written: Callable[[], bool] | None = field(default=None, repr=False)
    """Whether this clone's default branch has the workflow, for where the token may not ask Actions."""
    customs: Customs = GITHUBS
    unchecked: str = ""
    heads: dict[str, tuple[tuple[str, str], KnownCheck | None]] = field(default_factory=dict, repr=False)
    """The status and the check of each head that was looked at."""
    nameless: bool = False
    """Our token may not ask who it is; what we wrote ourselves tells."""

    @property
    def base(self) -> str:
        return "/repos/" + "/".join(quote(part, safe="") for part in self.repository.split("/"))

    def fetch_self(self) -> str:
        """Return our login. No program's token may ask for it: then the login shows in what we wrote."""
        if not self.login and not self.nameless:
            try:
                said = self.web.get("/user").value
                with understood(self.web.base):
                    self.login = str(said["login"])
            except ForgeFailed as refused:
                if refused.status != 403:
                    raise
                self.nameless = True
        return self.login

    def learn(self, account: Any) -> None:
        """Learn our own login from the account that wrote what we just wrote."""
        if not self.login and isinstance(account, Mapping):
            self.login = str(account.get("login") or "")

    def has_jobs(self) -> bool:
        """Return whether Actions knows our workflow file, also while it is switched off. It is asked for once."""
        if not self.job and "jobs" not in self.asked:
            try:
                self.asked["jobs"] = self.fetch_workflow(ANSWERS) not in NO_WORKFLOW
            except ForgeFailed as refused:
                if refused.status != 403:
                    raise
                self.asked["jobs"] = self.written is not None and self.written()
        return self.job or self.asked["jobs"]

    def fetch_comment(self, number: int, *, kind: str = "", thread: Thread | None = None) -> Comment | None:
        del thread
        try:
            found = self.read(self.web.get(self.at(number, kind)).value)
            return self.submitted(found) if found.review else found
        except ForgeFailed as refused:
            if refused.status in GONE:
                return None
            raise

    def submitted(self, comment: Comment) -> Comment | None:
        """Return a comment on the diff with the time of its review, from which everybody saw it; None before that.
        GitHub itself touches the comment once more at that time.
        """
        said = self.web.get(f"{self.base}/pulls/{comment.thread}/reviews/{comment.review}").value
        with understood(self.web.base):
            at = str(said.get("submitted_at") or "")
            if not at:
                return None
            touched = parse_time(comment.updated) - parse_time(at) <= SUBMITTING
        return replace(comment, created=at, updated=at if touched else comment.updated)

    def fetch_diff_comments(self, thread: Thread) -> list[Comment]:
        if isinstance(thread, str):
            return []
        try:
            found = [
                self.read(item)
                for item in self.web.pages(f"{self.base}/pulls/{thread}/comments", {"per_page": 100})
            ]
        except ForgeFailed as refused:
            if refused.status in GONE:  # an issue has no diff
                return []
            raise
        return sorted(found, key=lambda comment: comment.number)

    def fetch_comments(self, thread: Thread) -> list[Comment]:
        found = self.web.pages(self.comments_of(thread), {"per_page": 100})
        return sorted((self.read(item) for item in found), key=lambda comment: comment.number)

    def fetch_comments_since(
        self, since: str, most: int, threads: Collection[Thread] = (), *, diff: bool = False
    ) -> Mapping[Thread, list[Comment]] | None:
        path = f"{self.base}/{'pulls' if diff else 'issues'}/comments"
        query = {"since": since, "sort": "created", "direction": "asc", "per_page": 100}
        try:
            found = [self.read(item) for item in self.web.pages(path, query, most)]
        except TooMany:
            return None
        return by_thread(found, threads)

    def post_comment(self, thread: Thread, body: str) -> Comment:
        said = self.web.send("POST", self.comments_of(thread), {"body": body}).value
        posted = self.read(said)
        self.learn(said.get("user"))
        return posted

    def edit_comment(self, comment: Comment, body: str) -> Comment:
        return self.read(self.web.send("PATCH", self.at_comment(comment), {"body": body}).value)

    def remove_comment(self, comment: Comment) -> None:
        try:
            self.web.send("DELETE", self.at_comment(comment))
        except ForgeFailed as refused:
            if refused.status not in GONE:
                raise

    def react(self, comment: Comment, word: str) -> None:
        path = f"{self.at_comment(comment)}/reactions"
        said = self.web.send("POST", path, {"content": word}, repeatable=True).value
        self.learn(said.get("user") if isinstance(said, Mapping) else None)

    def read(self, item: Any) -> Comment:
        with understood(self.web.base):
            return comment_of(item)

    def read_pulls(self, items: Iterable[Any]) -> list[PullRequest]:
        """Return pull requests, newest first."""
        given = list(items)  # asked for before it is read
        with understood(self.web.base):
            return sorted((pull_request_of(item) for item in given), key=lambda pull: -pull.number)

    def comments_of(self, thread: Thread) -> str:
        """Return the path of a thread's comments. Those of commits have a path of their own."""
        return f"{self.base}/{'commits' if isinstance(thread, str) else 'issues'}/{thread}/comments"

    def at_comment(self, comment: Comment) -> str:
        return self.at(comment.number, comment.kind)

    def at(self, number: int, kind: str) -> str:
        return f"{self.base}{KINDS[kind]}/comments/{number}"

    def may_write(self, login: str) -> bool:
        """Return whether an account may write. A comment's association is not used: it omits private members."""
        if login.endswith("[bot]"):
            return False
        path = f"{self.base}/collaborators/{quote(login, safe='')}/permission"
        try:
            said = self.web.get(path).value
        except ForgeFailed as refused:
            if refused.status == 404:
                return False
            raise
        with understood(self.web.base):
            return said["permission"] in WRITERS

    def find_pull_requests(self, branch: str, *, closed: bool = False) -> list[PullRequest]:
        state = "closed" if closed else "open"
        found = self.pulls_of(self.repository, branch, state)
        if not found and self.web.moved:  # to another owner, whose name its branches go by now
            found = self.pulls_of(str(self.fetch_about().get("full_name")), branch, state)
        return [item for item in found if item.branch == branch and not item.foreign]

    def pulls_of(self, repository: str, branch: str, state: str) -> list[PullRequest]:
        head = f"{repository.partition('/')[0]}:{branch}"
        query = {"state": state, "head": head, "per_page": 100}
        return self.read_pulls(self.web.pages(f"{self.base}/pulls", query))

    def list_pull_requests(self) -> list[PullRequest]:
        return self.read_pulls(self.web.pages(f"{self.base}/pulls", {"state": "open", "per_page": 100}))

    def find_pull_requests_with(self, commit: str) -> list[PullRequest]:
        """Return the open pull requests that contain the commit, without those that merely begin at it. A commit that
        was never pushed is in none.
        """
        path = f"{self.base}/commits/{quote(commit, safe='')}/pulls"
        try:
            found = self.read_pulls(self.web.pages(path, {"per_page": 100}))
        except ForgeFailed as refused:
            if refused.status in (404, 409, 422):
                return []
            raise
        return [item for item in found if item.open]

    def fetch_pull_request(self, number: int) -> PullRequest | None:
        try:
            return self.read_pulls([self.web.get(f"{self.base}/pulls/{number}").value])[0]
        except ForgeFailed as refused:
            if refused.status == 404:
                return None
            raise

    def request_reviews(self, number: int, logins: Sequence[str]) -> list[str]:
        """Ask for reviews. GitHub asks all or nobody, so that after a refusal each is asked for alone."""
        refused = self.refusing_reviews(number, logins)
        return [one for one in logins if self.refusing_reviews(number, [one])] if refused else []

    def refusing_reviews(self, number: int, logins: Sequence[str]) -> bool:
        path = f"{self.base}/pulls/{number}/requested_reviewers"
        try:
            self.web.send("POST", path, {"reviewers": list(logins)}, repeatable=True)
        except ForgeFailed as refused:
            if refused.status not in UNASKED:
                raise
            return True
        return False

    def set_status(self, commit: str, state: str, words: str, url: str) -> None:
        body = {"state": state, "context": CONTEXT, "description": words[:MOST_WORDS]}
        if url:
            body["target_url"] = url
        self.heads.pop(commit, None)
        self.web.send("POST", f"{self.base}/statuses/{quote(commit, safe='')}", body, repeatable=True)

    def fetch_status(self, commit: str) -> tuple[str, str]:
        """Return the status. The first page has a hundred names, which is more than anybody has."""
        if commit in self.heads:
            return self.heads[commit][0]
        return self.latest_status(commit, {"per_page": 100})

    def look_at_heads(self) -> None:
        """Load heads by GraphQL, a hundred in one request. Whatever it does not tell is asked for head by head."""
        owner, _, name = self.repository.partition("/")
        asked: dict[str, object] = {"owner": owner, "name": name, "status": CONTEXT, "check": CHECK}
        self.heads.clear()
        for _ in range(MOST_LOOKS):
            body = {"query": HEADS, "variables": asked}
            said = self.web.send(
                "POST", self.web.base.removesuffix("/v3") + "/graphql", body, repeatable=True
            )
            with understood(self.web.base):
                if said.value.get("errors"):
                    return
                found = said.value["data"]["repository"]["pullRequests"]
                self.heads.update(head_in(one) for one in found["nodes"])
            if not found["pageInfo"]["hasNextPage"]:
                return
            asked["after"] = found["pageInfo"]["endCursor"]

    def latest_status(self, commit: str, query: Mapping[str, object]) -> tuple[str, str]:
        path = f"{self.base}/commits/{quote(commit, safe='')}/status"
        said = self.web.get(path, query).value
        with understood(self.web.base):
            ours = [one for one in said["statuses"] or [] if one["context"] == CONTEXT]
            return status_in(ours[0]) if ours else ("", "")

    def show_check(self, commit: str, page: CheckPage, url: str) -> None:
        """Show the page, where GitHub allows it: only Apps and jobs may."""
        if not self.unchecked:
            try:
                self.put_check(commit, page, url)
            except ForgeFailed as refused:
                if refused.status not in (403, 404) or "rate limit" in refused.message.lower():
                    raise
                self.unchecked = NO_CHECKS

    def put_check(self, commit: str, page: CheckPage, url: str) -> None:
        """Change the last check run. Make a new one for notes, which nobody can remove again, and where the last one is
        completed while this page is not.
        """
        known = self.heads[commit][1] if commit in self.heads else self.latest_check(commit)
        if known is not None and known.digest == page.digest:
            return
        again = known is not None and (page.conclusion or not known.over) and not page.notes
        number = known.number if known is not None and again else 0
        self.heads.pop(commit, None)
        body = check_body(page, url)
        if number:
            self.web.send("PATCH", f"{self.base}/check-runs/{number}", body)
        else:
            new = {"name": CHECK, "head_sha": commit, **body}
            self.web.send("POST", f"{self.base}/check-runs", new, repeatable=True)

    def latest_check(self, commit: str) -> KnownCheck | None:
        query = {"check_name": CHECK, "filter": "latest", "per_page": 1}
        said = self.web.get(f"{self.base}/commits/{quote(commit, safe='')}/check-runs", query).value
        with understood(self.web.base):
            one = next(iter(said["check_runs"]), None)
            return (
                KnownCheck(int(one["id"]), one["external_id"] or "", one["status"] == "completed")
                if one
                else None
            )

    def dispatch(self, gate: str, commit: str) -> str:
        """Start the workflow by its own event where the token may, which tells the run; else by the repository's."""
        inputs = {"gate": gate, "commit": commit}
        try:
            said = self.dispatch_workflow({"ref": self.default_branch(), "inputs": inputs})
        except ForgeFailed as refused:
            if refused.status in (404, 422):
                refused.hint = f"the default branch has no such workflow ({ANSWERS}), or it is switched off, or the token may not see it: git gate init --github   (or: gh workflow enable {ANSWERS})"
            if refused.status != 403 or "rate limit" in refused.message.lower():
                raise
            body = {"event_type": EVENT, "client_payload": inputs}
            self.web.send("POST", f"{self.base}/dispatches", body)
            said = None
        url = said.get("html_url") if isinstance(said, Mapping) else None
        return str(url) if url else f"{self.site}/actions/workflows/{ANSWERS}"

    def dispatch_workflow(self, body: dict[str, object]) -> Any:
        """Start the workflow, and ask for its run. Enterprise Server starts it, too, but refuses to be asked for the
        run: then it is not asked again.
        """
        path = f"{self.base}/actions/workflows/{ANSWERS}/dispatches"
        if self.tells_run:
            try:
                return self.web.send("POST", path, {**body, RUN_DETAILS: True}).value
            except ForgeFailed as refused:
                if refused.status != 422 or RUN_DETAILS not in refused.message:
                    raise
                self.tells_run = False
        return self.web.send("POST", path, body).value

    def fetch_workflow(self, name: str) -> str:
        """Return the state of a workflow file as Actions knows it, such as `active`; empty where there is none."""
        try:
            said = self.web.get(f"{self.base}/actions/workflows/{quote(name, safe='')}").value
        except ForgeFailed as refused:
            if refused.status == 404:
                return ""
            raise
        with understood(self.web.base):
            return str(said["state"])

    def fetch_secret_names(self) -> set[str] | None:
        """Return the names of secrets; None where the token may not see them."""
        try:
            said = self.web.get(f"{self.base}/actions/secrets", {"per_page": 100}).value
        except ForgeFailed as refused:
            if refused.status in (403, 404):
                return None
            raise
        with understood(self.web.base):
            return {str(one["name"]) for one in said["secrets"]}

    def default_branch(self) -> str:
        """Return the default branch. An agent's branch never counts: its workflow file is the agent's."""
        with understood(self.web.base):
            return str(self.fetch_about()["default_branch"])

    def is_ours(self, repository: str) -> bool:
        """Return whether this is our repository. After a renaming both names lead to it, and events say the new one."""
        named = repository.lower()
        return named == self.repository.lower() or named == str(self.fetch_about().get("full_name")).lower()

    def fetch_about(self) -> Mapping[str, Any]:
        if not self.about:
            said = self.web.get(self.base).value
            with understood(self.web.base):
                self.about.update(said)
        return self.about


def author_of(item: Any) -> Author:
    if not isinstance(item, Mapping):
        return Author("ghost", 0, bot=True)  # an account that is gone vouches for nothing
    login = whole(str(item["login"]))
    return Author(login, int(item["id"]), bot=item.get("type", "User") != "User" or login.endswith("[bot]"))


def comment_of(item: Mapping[str, Any]) -> Comment:
    author = author_of(item.get("user"))
    if item.get("performed_via_github_app"):
        author = Author(author.login, author.number, bot=True)
    review, created, updated = review_in(item), str(item["created_at"]), str(item["updated_at"])
    return Comment(
        int(item["id"]),
        thread_in(item),
        whole(str(item.get("body") or "")),
        author,
        updated if review else created,  # until its review is asked for
        updated,
        str(item["html_url"]),
        review,
        created if review else "",
        thumbs_in(item.get("reactions")),
    )


def review_in(item: Mapping[str, Any]) -> int:
    """Return the review of a comment on the diff, or 0 for another comment, which GitHub names in no other way."""
    on_diff = item.get("commit_id") and item.get("pull_request_url")
    return int(item["pull_request_review_id"] or NOBODYS) if on_diff else 0


def head_in(item: Any) -> tuple[str, tuple[tuple[str, str], KnownCheck | None]]:
    """Return a head with its status and check, from GraphQL; both are empty where these are of another commit."""
    commit = item["commits"]["nodes"][-1]["commit"]
    if commit["oid"] != item["headRefOid"]:
        return "", (("", ""), None)
    status = (commit["status"] or {}).get("context")
    said = (str(status["state"]).lower(), str(status["description"] or "")) if status else ("", "")
    runs = [run for suite in commit["checkSuites"]["nodes"] for run in suite["checkRuns"]["nodes"]]
    checks = [
        KnownCheck(int(run["databaseId"]), run["externalId"] or "", run["status"] == "COMPLETED")
        for run in runs
    ]
    return str(commit["oid"]), (said, max(checks, key=lambda one: one.number, default=None))


def check_body(page: CheckPage, url: str) -> dict[str, object]:
    done = (
        {"status": "completed", "conclusion": page.conclusion}
        if page.conclusion
        else {"status": "in_progress"}
    )
    marks = [
        {
            "path": one.path,
            "start_line": one.first,
            "end_line": one.last,
            "annotation_level": "notice",
            "message": one.words,
        }
        for one in page.notes
    ]
    shown = {"title": page.title, "summary": page.summary, **({"text": page.text} if page.text else {})}
    output = {**shown, **({"annotations": marks} if marks else {})}
    return {"external_id": page.digest, "details_url": url, **done, "output": output}


def thumbs_in(counts: Any) -> int:
    found = [counts.get(name) for name in ("+1", "-1")] if isinstance(counts, Mapping) else []
    return sum(number for number in found if isinstance(number, int))


def thread_in(item: Mapping[str, Any]) -> Thread:
    """Return a commit's id, or the number at the end of an address. Gitea has another address for pull requests."""
    if item.get("commit_id") and not item.get("pull_request_url"):
        return str(item["commit_id"])
    address = str(item.get("issue_url") or item.get("pull_request_url") or "")
    found = re.search(r"/(?:issues|pulls)/([0-9]+)$", address)
    return int(found.group(1)) if found else 0


def status_in(item: Mapping[str, Any]) -> tuple[str, str]:
    """Return the state and words of a status. Gitea calls the state `status`."""
    return str(item.get("state") or item.get("status") or ""), str(item.get("description") or "")


def pull_request_of(item: Mapping[str, Any]) -> PullRequest:
    """Return a pull request. It is foreign if its branch's repository is gone, or not the one it merges into."""
    head, base = item["head"], item["base"]
    theirs = repository_name(head.get("repo"))
    return PullRequest(
        int(item["number"]),
        str(head["ref"]),
        str(head["sha"]),
        str(item["html_url"]),
        open=item.get("state") == "open",
        foreign=not theirs or theirs != repository_name(base.get("repo")),
        updated=str(item.get("updated_at") or ""),
        merged=bool(item.get("merged") or item.get("merged_at")),
        author=whole(str((item.get("user") or {}).get("login") or "")),
    )


def repository_name(repository: object) -> str:
    return str(repository.get("full_name", "")).lower() if isinstance(repository, Mapping) else ""
