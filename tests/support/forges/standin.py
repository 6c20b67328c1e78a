"""Test bed: a forge on loopback that remembers. GitHub's is held to GitHub's own description, request by request.

Whatever breaks the description is kept in `broken`, and the fixture fails its test.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from support import PATIENCE

from . import description, events, gitea, graph
from .routes import AT, NOT_FOUND, ROBOT, ROUTES, RUN_DETAILS, Reply

START = 1_780_000_000


@dataclass
class Account:
    login: str
    number: int
    type: str = "User"
    permission: str = "read"

    @property
    def shape(self) -> dict[str, object]:
        return {"login": self.login, "id": self.number, "type": self.type}


@dataclass
class Fault:
    """What the next requests get instead of an answer. `done`: it is done all the same."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    done: bool = False
    methods: tuple[str, ...] = ("GET", "POST", "PATCH")
    words: str = "a fault"
    path: str = ""
    """What the request's path ends with, if it is only meant for that."""
    short: bool = False
    """The answer breaks off in the middle."""


@dataclass
class Forge:
    """The state of one repository `team/project`, and what was asked of it."""

    kind: str = "github"
    port: int = 0
    accounts: dict[str, Account] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    comments: dict[int, dict[str, Any]] = field(default_factory=dict)
    on_commits: dict[int, dict[str, Any]] = field(default_factory=dict)
    on_diffs: dict[int, dict[str, Any]] = field(default_factory=dict)
    reviews: dict[int, dict[str, Any]] = field(default_factory=dict)
    requested: list[tuple[int, str]] = field(default_factory=list)
    """Who was asked for a review of which pull request."""
    unasked: set[str] = field(default_factory=set)
    """Those of whom none can be asked."""
    commits: dict[str, list[int]] = field(default_factory=dict)
    """Which pull requests bring which commit."""
    old_name: str = ""
    """What the repository was called before."""
    secrets: list[str] = field(default_factory=list)
    workflows: dict[str, str] = field(default_factory=dict)
    pulls: dict[int, dict[str, Any]] = field(default_factory=dict)
    issues: set[int] = field(default_factory=set)
    """The numbers that are no pull request's."""
    statuses: list[dict[str, Any]] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    reactions: list[tuple[int, str, str]] = field(default_factory=list)
    dispatched: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    unchanged: int = 0
    """How many were answered with nothing new."""
    graphql: bool = True
    broken: list[str] = field(default_factory=list)
    ticks: int = 0
    made: int = 0
    made_on_commits: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    repository = "team/project"

    def __post_init__(self) -> None:
        self.join(ROBOT, "Bot", "none", token="job-token")

    @property
    def prefix(self) -> str:
        """Where the API begins: Enterprise Server's and Gitea's are below the site's own address."""
        return {"gitea": "/api/v1", "enterprise": "/api/v3"}.get(self.kind, "")

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.prefix}"

    @property
    def site(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.repository}"

    @property
    def env(self) -> dict[str, str]:
        """As a job of this forge has it."""
        return {
            "GITHUB_API_URL": self.api,
            "GITHUB_SERVER_URL": f"http://127.0.0.1:{self.port}",
            "GITHUB_REPOSITORY": self.repository,
            "GITHUB_TOKEN": "job-token",
        }

    def join(self, login: str, type: str = "User", permission: str = "write", *, token: str = "") -> Account:
        account = self.accounts.setdefault(login, Account(login, 1000 + len(self.accounts), type, permission))
        if token:
            self.tokens[token] = login
        return account

    def open_pull(
        self, number: int, branch: str, head: str, *, home: str | None = repository, author: str = ""
    ) -> dict[str, Any]:
        repo = {"full_name": home} if home else None
        self.pulls[number] = {
            "number": number,
            "state": "open",
            "html_url": f"{self.site}/pull/{number}",
            "updated_at": self.now(),
            "user": self.accounts[author].shape if author else {"login": "octocat", "id": 1, "type": "User"},
            "head": {"ref": branch, "sha": head, "repo": repo},
            "base": {"ref": "main", "sha": "0" * 40, "repo": {"full_name": self.repository}},
        }
        return self.pulls[number]

    def has(self, thread: int) -> bool:
        """Whether a pull request or an issue has this number."""
        return thread in self.pulls or thread in self.issues

    def now(self) -> str:
        self.ticks += 1
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(START + self.ticks))

    def write_on(self, commit: str, login: str, body: str) -> dict[str, Any]:
        """Somebody comments on a commit; those comments are numbered by themselves."""
        with self.lock:
            number, now = 5_000_000_000 + self.made_on_commits, self.now()
            self.made_on_commits += 1
            self.on_commits[number] = {
                "id": number,
                "body": body,
                "user": self.accounts[login].shape,
                "created_at": now,
                "updated_at": now,
                "html_url": f"{self.site}/commit/{commit}#commitcomment-{number}",
                "commit_id": commit,
            }
            return self.on_commits[number]

    def write_on_diff(
        self, thread: int, login: str, body: str, *, begun: str = "", sent: bool = True
    ) -> dict[str, Any]:
        """Somebody comments on a line of a diff, in a review of their own: GitHub touches it when that is `sent`."""
        with self.lock:
            number = 5_000_000_000 + len(self.on_diffs)
            begun = begun or self.now()
            review, at = 900 + len(self.reviews), self.now()
            self.pulls[thread]["updated_at"] = at
            shape = {"id": review, "state": "COMMENTED" if sent else "PENDING"}
            self.reviews[review] = {**shape, **({"submitted_at": at} if sent else {})}
            self.on_diffs[number] = {
                "id": number,
                "body": body,
                "path": "login.py",
                "user": self.accounts[login].shape,
                "created_at": begun,
                "updated_at": at,
                "html_url": f"{self.site}/pull/{thread}#discussion_r{number}",
                "commit_id": "c" * 40,
                "pull_request_review_id": review,
                "pull_request_url": f"{self.api}/repos/{self.repository}/pulls/{thread}",
            }
            return self.on_diffs[number]

    def write(self, thread: int, login: str, body: str) -> dict[str, Any]:
        """Somebody comments."""
        with self.lock:
            number, now = 5_000_000_000 + self.made, self.now()
            if thread in self.pulls:
                self.pulls[thread]["updated_at"] = now
            else:
                self.issues.add(thread)
            self.made += 1
            self.comments[number] = {
                "id": number,
                "body": body,
                "user": self.accounts[login].shape,
                "created_at": now,
                "updated_at": now,
                "html_url": f"{self.site}/pull/{thread}#issuecomment-{number}",
                "issue_url": f"{self.api}/repos/{self.repository}/issues/{thread}",
            }
            return self.comments[number]

    def edit(self, number: int, body: str) -> dict[str, Any]:
        with self.lock:
            self.comments[number] |= {"body": body, "updated_at": self.now()}
            return self.comments[number]

    def by(self, login: str) -> list[dict[str, Any]]:
        return [comment for comment in self.comments.values() if comment["user"]["login"] == login]

    def event(self, comment: dict[str, Any], action: str = "created") -> dict[str, Any]:
        """The event that a comment brings."""
        return events.commented(self, comment, action)

    def run_event(self, workflow: str, login: str = "ada", **inputs: str) -> dict[str, Any]:
        """The one that a run brings which somebody asked for."""
        return events.dispatched(self, login, workflow, inputs)

    # answering requests

    def answer(self, method: str, path: str, query: dict[str, str], body: Any, login: str) -> Reply:
        for pattern, act in ROUTES:
            found = re.fullmatch(pattern, f"{method} {path}")
            if found:
                with self.lock:
                    return act(self, found.groups(), query, body, login)
        return NOT_FOUND


class Handler(BaseHTTPRequestHandler):
    """One request: a fault if one is due, else held to the description, answered, and the reply held to it too."""

    forge: Forge
    protocol_version = "HTTP/1.1"

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        prefix = self.forge.prefix
        if self.path == {"enterprise": "/api/graphql"}.get(self.forge.kind, "/graphql"):
            self.say_graph(body)
            return
        target = self.path.removeprefix(prefix)
        request = self.held(target, body)  # whatever becomes of it
        if not self.path.startswith(prefix):
            self.say(404, {"message": "that is not the API"})
            return
        old = f"/repos/{self.forge.old_name}"
        if self.forge.old_name and (target + "/").startswith((f"{old}/", f"{old}?")):
            there = self.forge.api + target.replace(old, AT, 1)
            self.say(301 if self.command == "GET" else 307, {"message": "Moved"}, {"Location": there})
            return
        with self.forge.lock:
            self.forge.asked.append(f"{self.command} {target}")
            at = parts.path
            due = [f for f in self.forge.faults if self.command in f.methods and at.endswith(f.path)]
            fault = due[0] if due else None
            if fault:
                self.forge.faults.remove(fault)
        if fault and not fault.done:
            self.say(fault.status, {"message": fault.words}, fault.headers)
            return
        login = self.forge.tokens.get(self.headers.get("Authorization", "").partition(" ")[2], "")
        if not login:
            self.say(401, {"message": "Bad credentials"})
            return
        short = bool(fault and fault.short)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        given = json.loads(body) if body else None
        code, value = self.forge.answer(self.command, parts.path.removeprefix(prefix), query, given, login)
        here, paging = f"http://127.0.0.1:{self.forge.port}{parts.path}", self.forge.kind != "gitea"
        value, links = paged(value, query, here, paging=paging)
        if request is not None and code < 300:
            self.check(
                lambda: description.hold_reply(
                    request, code, b"" if value is None else json.dumps(value).encode(), self.forge.kind
                )
            )
        if fault and not short:
            self.say(fault.status, {"message": fault.words}, fault.headers)
            return
        if self.forge.kind == "gitea":
            value = gitea.shaped(value, self.forge.site, self.forge.pulls)
        self.say(code, value, links, short=short)

    do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815 - the names that http.server looks for

    def say_graph(self, body: bytes) -> None:
        """One query, for whoever has a token."""
        self.forge.asked.append("POST /graphql")
        login = self.forge.tokens.get(self.headers.get("Authorization", "").partition(" ")[2], "")
        if not login or not self.forge.graphql:
            self.say(401 if not login else 403, {"message": "Bad credentials"})
            return
        given = json.loads(body)
        tree = self.check(lambda: graph.hold(given))
        with self.forge.lock:
            self.say(200, graph.answer(self.forge, given, tree))

    def held(self, target: str, body: bytes) -> Any:
        """What github.com takes and Enterprise Server does not know is its own to refuse: a client has to find out."""
        kind = self.forge.kind
        if kind == "gitea":
            return self.check(lambda: self.known_to_gitea(target, body))
        if kind == "enterprise" and target.endswith("/dispatches") and RUN_DETAILS.encode() in body:
            kind = "github"
        return self.check(lambda: description.hold(self.command, target, dict(self.headers), body, kind))

    def known_to_gitea(self, target: str, body: bytes) -> None:
        parts = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        given = json.loads(body) if body else None
        strange = gitea.against(AT, self.command, parts.path, query, given)
        assert not strange, f"Gitea does not know {strange}"

    def check(self, held: Callable[[], Any]) -> Any:
        try:
            return held()
        except Exception as wrong:  # noqa: BLE001 - whatever it is, the test is told
            self.forge.broken.append(f"{self.command} {self.path}: {wrong!r}: {wrong.__cause__}")
            return None

    def say(
        self, code: int, value: Any, headers: dict[str, str] | None = None, *, short: bool = False
    ) -> None:
        data = b"" if value is None else json.dumps(value).encode()
        mark = f'W/"{sha256(data).hexdigest()}"'
        if self.command == "GET" and code == 200:
            headers = {**(headers or {}), "ETag": mark}
            if self.headers.get("If-None-Match") == mark:
                self.forge.unchanged += 1
                code, data = 304, b""
        self.send_response(code)
        for name, word in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, word)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if short else data)
        self.close_connection = self.close_connection or short

    def log_message(self, format: str, *args: object) -> None:
        """Tests are quiet."""


def paged(value: Any, query: dict[str, str], url: str, *, paging: bool = True) -> tuple[Any, dict[str, str]]:
    """One page of a list, and where the next one is."""
    if not isinstance(value, list):
        return value, {}
    size = int(query.get("per_page") or query.get("limit") or (30 if paging else 1_000_000))
    page = int(query.get("page") or 1)
    rest = value[page * size :]
    following = "&".join(f"{name}={word}" for name, word in {**query, "page": page + 1}.items())
    links = {"Link": f'<{url}?{following}>; rel="next", <{url}?page=1>; rel="first"'} if rest else {}
    return value[(page - 1) * size : page * size], links


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


@contextmanager
def forge_server(kind: str = "github") -> Iterator[Forge]:
    """A forge for as long as the `with` lasts."""
    forge = Forge(kind)
    handler = type("OneHandler", (Handler,), {"forge": forge})
    with Server(("127.0.0.1", 0), handler) as listening:
        forge.port = listening.server_port
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield forge
        finally:
            listening.shutdown()
            thread.join(PATIENCE)
    assert not forge.broken, "\n".join(forge.broken)
