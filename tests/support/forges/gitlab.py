"""Test bed: a GitLab on loopback that remembers, with what is its own: notes that lose GitLab's commands, emoji that move a
note's time, a status that is not said twice, levels of access, pipelines that somebody started.

Each request is held to what python-gitlab, a client that others made, knows of that call. Ours, and each reply to them, are held
to GitLab's own description as well. What breaks either is kept in `broken`, and fails the test. As GitLab's own sources say: the
pattern of its commands, and the times of notes.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from gitlab.v4 import objects
from openapi_core.exceptions import OpenAPIError

from . import gitlab_api, graph

START = 1_780_000_000
GUEST, REPORTER, DEVELOPER, MAINTAINER = 10, 20, 30, 40
PROJECT = 42
PAGING = frozenset(("page", "per_page"))
# Commands of GitLab's that a note can hold; and where its pattern looks for them, which takes any fence for the end of code.
COMMANDS = "approve|unapprove|merge|close|reopen|assign|label|title|draft|ready|lock|target_branch|rebase|spend|todo|done"
OBEYED = re.compile(
    rf"(?P<code>^```.+?\n```$)|(?P<quote>^>>>\n.+?\n>>>$)|^/(?P<cmd>{COMMANDS})(?:[ ](?P<arg>[^\n]*))?(?:\s*\n|$)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
NOTES = r"/merge_requests/(\d+)/notes"
Reply = tuple[int, Any]
NOT_FOUND: Reply = (404, {"message": "404 Not found"})


@dataclass(frozen=True)
class Member:
    """An account, and its level of access to the project."""

    username: str
    id: int
    level: int = 0
    bot: bool = False

    @property
    def basic(self) -> dict[str, object]:
        return {"id": self.id, "username": self.username, "name": self.username.title(), "state": "active"}


def manager(name: str) -> Any:
    return getattr(objects, name)


# Method and path; the client's own manager of that call, and what of it the call is.
KNOWN: list[tuple[str, str, str]] = [
    ("GET /projects/:p", "", ""),
    ("GET /user", "", ""),
    ("GET /users", "UserManager", "list"),
    (r"GET /users/\d+", "UserManager", "get"),
    (r"GET /projects/:p/members/all/\d+", "ProjectMemberAllManager", "get"),
    (f"GET /projects/:p{NOTES}", "ProjectMergeRequestNoteManager", "list"),
    (f"POST /projects/:p{NOTES}", "ProjectMergeRequestNoteManager", "create"),
    (rf"GET /projects/:p{NOTES}/\d+", "ProjectMergeRequestNoteManager", "get"),
    (rf"PUT /projects/:p{NOTES}/\d+", "ProjectMergeRequestNoteManager", "update"),
    (rf"DELETE /projects/:p{NOTES}/\d+", "ProjectMergeRequestNoteManager", "delete"),
    (rf"POST /projects/:p{NOTES}/\d+/award_emoji", "ProjectMergeRequestNoteAwardEmojiManager", "create"),
    ("GET /projects/:p/merge_requests", "ProjectMergeRequestManager", "list"),
    (r"GET /projects/:p/merge_requests/\d+", "ProjectMergeRequestManager", "get"),
    (r"PUT /projects/:p/merge_requests/\d+", "ProjectMergeRequestManager", "update"),
    (r"GET /projects/:p/repository/commits/\w+/merge_requests", "ProjectCommitManager", "get"),
    (r"GET /projects/:p/repository/commits/\w+/statuses", "ProjectCommitStatusManager", "list"),
    (r"POST /projects/:p/statuses/\w+", "ProjectCommitStatusManager", "create"),
    ("POST /projects/:p/pipeline", "ProjectPipelineManager", "create"),
    (r"GET /projects/:p/pipelines/\d+", "ProjectPipelineManager", "get"),
    ("POST /projects/:p/trigger/pipeline", "", "create"),
]
# What that client passes on unnamed, as GitLab's own sources name it.
BESIDES: dict[str, set[str]] = {
    "ProjectMergeRequestNoteManager list": {"sort", "order_by", "activity_filter"},
    "ProjectMergeRequestManager list": {"source_branch", "target_branch", "state"},
    "ProjectCommitStatusManager list": {"name", "ref", "stage", "all"},
    "ProjectPipelineManager create": {"inputs", "variables"},
    " create": {"ref", "token", "variables", "inputs"},
}


def against(method: str, path: str, query: set[str], body: set[str]) -> str:
    """What is strange about a request; empty where all of it is known."""
    for pattern, name, what in KNOWN:
        if re.fullmatch(pattern.replace(":p", "[^/]+"), f"{method} {path}"):
            return strange(name, what, query - PAGING, body)
    return f"{method} {path}"


def strange(name: str, what: str, query: set[str], body: set[str]) -> str:
    its = manager(name) if name else None
    attributes = {"create": "_create_attrs", "update": "_update_attrs"}.get(what)
    said = getattr(its, attributes, None) if its is not None and attributes else None
    more = BESIDES.get(f"{name} {what}", set())
    required, optional = (set(said.required), set(said.optional)) if said is not None else (set(), set())
    filters = set(getattr(its, "_list_filters", ())) if what == "list" else set()
    missing = required - body
    unknown = (body - required - optional - more) | (query - filters - (more if what == "list" else set()))
    return f"{name} {what}: missing {missing}, unknown {unknown}" if missing or unknown else ""


@dataclass
class GitLabForge:
    """The state of one project `group/inner/project`, and what was asked of it."""

    port: int = 0
    repository: str = "group/inner/project"
    members: dict[str, Member] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    merges: dict[int, dict[str, Any]] = field(default_factory=dict)
    notes: dict[int, dict[str, Any]] = field(default_factory=dict)
    awards: list[tuple[int, str, str]] = field(default_factory=list)
    statuses: list[dict[str, Any]] = field(default_factory=list)
    pipelines: list[dict[str, Any]] = field(default_factory=list)
    commits: dict[str, list[int]] = field(default_factory=dict)
    triggers: dict[str, str] = field(default_factory=dict)
    obeyed: list[tuple[str, str]] = field(default_factory=list)
    """GitLab's own commands that it found in a note: who wrote it, and the command."""
    most_reviewers: int = 1
    graphql: bool = True
    graph_page: int = 100
    """So many nodes are on a page at most, however many are asked for."""
    older: bool = False
    """Whether its notes take no filter by GraphQL."""
    nameless: set[int] = field(default_factory=set)
    """The notes whose author it does not tell there."""
    hidden: bool = False
    """Whether GraphQL tells nothing of the project."""
    settings: dict[str, object] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    sent: dict[str, set[str]] = field(default_factory=dict)
    """Which operations we used, and what was sent with them."""
    broken: list[str] = field(default_factory=list)
    ticks: int = 0
    written: int = 0
    """So many notes were: the number of one that is gone is no other's."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.join("project_42_bot_1a2b", MAINTAINER, token="bot-token", bot=True)

    @property
    def server(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def api(self) -> str:
        return f"{self.server}/api/v4"

    @property
    def site(self) -> str:
        return f"{self.server}/{self.repository}"

    @property
    def names(self) -> tuple[str, str]:
        """By which the project is asked for: its path, or its number."""
        return self.repository.lower(), str(PROJECT)

    @property
    def env(self) -> dict[str, str]:
        """As a job of this project has it, with the token of the jobs that may have one."""
        return {
            "CI": "true",
            "GITLAB_CI": "true",
            "CI_API_V4_URL": self.api,
            "CI_SERVER_URL": self.server,
            "CI_PROJECT_URL": self.site,
            "CI_PROJECT_PATH": self.repository,
            "CI_DEFAULT_BRANCH": "main",
            "GITGATE_GITLAB_TOKEN": "bot-token",
        }

    def join(self, username: str, level: int = DEVELOPER, *, token: str = "", bot: bool = False) -> Member:
        self.members[username] = Member(username, 1000 + len(self.members), level, bot)
        if token:
            self.tokens[token] = username
        return self.members[username]

    def now(self) -> str:
        self.ticks += 1
        return time.strftime("%Y-%m-%dT%H:%M:%S.120Z", time.gmtime(START + self.ticks))

    def open_merge(self, iid: int, branch: str, sha: str, *, project: int = PROJECT, author: str = "") -> Any:
        self.merges[iid] = {
            "iid": iid,
            "project_id": PROJECT,
            "state": "opened",
            "source_branch": branch,
            "target_branch": "main",
            "sha": sha,
            "web_url": f"{self.site}/-/merge_requests/{iid}",
            "source_project_id": project,
            "target_project_id": PROJECT,
            "updated_at": self.now(),
            "author": self.members[author].basic if author else {"id": 1, "username": "root"},
            "reviewers": [],
        }
        return self.merges[iid]

    def write(self, iid: int, username: str, body: str, **more: Any) -> dict[str, Any]:
        """Somebody comments. GitLab takes its own commands away; of a note that is nothing else none is left."""
        with self.lock:
            rest = self.obey(username, body)
            number, now = 300 + self.written, self.now()
            self.written += 1
            self.merges[iid]["updated_at"] = now
            said = {
                "id": number,
                "type": None,
                "body": rest,
                "author": self.members[username].basic,
                "created_at": now,
                "updated_at": now,
                "system": False,
                "internal": False,
                "noteable_type": "MergeRequest",
                "noteable_iid": iid,
                **more,
            }
            if rest or not body:
                self.notes[number] = said
            return said

    def obey(self, username: str, body: str) -> str:
        def taken(found: re.Match[str]) -> str:
            if not found["cmd"]:
                return found[0]
            self.obeyed.append((username, found["cmd"].lower()))
            return ""

        return OBEYED.sub(taken, body.replace("\r", "")).rstrip()

    def edit(self, number: int, body: str) -> None:
        with self.lock:
            now = self.now()
            author = str(self.notes[number]["author"]["username"])
            self.notes[number] |= {"body": self.obey(author, body), "updated_at": now, "edited": now}

    def award(self, number: int, username: str, name: str) -> None:
        with self.lock:
            self.awards.append((number, username, name))
            self.notes[number]["updated_at"] = self.now()

    def by(self, username: str) -> list[dict[str, Any]]:
        return [one for one in self.notes.values() if one["author"]["username"] == username]

    def event(self, note: dict[str, Any], action: str = "create") -> dict[str, Any]:
        """What a webhook says of a note, as GitLab's own data builder makes it."""
        iid = note["noteable_iid"]
        return {
            "object_kind": "note",
            "event_type": "note",
            "user": note["author"] | {"email": "[REDACTED]"},
            "project_id": PROJECT,
            "project": {"id": PROJECT, "path_with_namespace": self.repository, "default_branch": "main"},
            "object_attributes": {
                "id": note["id"],
                "note": note["body"],
                "noteable_type": "MergeRequest",
                "action": action,
                "system": note["system"],
                "internal": note["internal"],
                "type": note["type"],
                "author_id": note["author"]["id"],
                "url": f"{self.site}/-/merge_requests/{iid}#note_{note['id']}",
            },
            "merge_request": {"iid": iid, "source_branch": self.merges[iid]["source_branch"]},
        }

    # answering requests

    def answer(self, method: str, path: str, query: dict[str, str], body: Any, who: Member) -> Reply:
        for pattern, act in ROUTES:
            found = re.fullmatch(pattern.replace(":p", "([^/]+)"), f"{method} {path}")
            if found:
                groups = list(found.groups())
                if ":p" in pattern and unquote(groups.pop(0)).lower() not in self.names:
                    return NOT_FOUND
                with self.lock:
                    return act(self, groups, query, body, who)
        return NOT_FOUND

    def note_of(self, groups: list[str]) -> dict[str, Any] | None:
        found = self.notes.get(int(groups[1]))
        return found if found is not None and found["noteable_iid"] == int(groups[0]) else None


Act = Callable[[GitLabForge, list[str], dict[str, str], Any, Member], Reply]


def shaped(note: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in note.items() if name != "edited"}


def about(forge: GitLabForge, *_: Any) -> Reply:
    named = {"id": PROJECT, "path_with_namespace": forge.repository, "default_branch": "main"}
    return 200, named | forge.settings


def own_account(_forge: GitLabForge, _groups: list[str], _query: Any, _body: Any, who: Member) -> Reply:
    return 200, who.basic | {"bot": who.bot}


def find_accounts(forge: GitLabForge, _groups: list[str], query: dict[str, str], *_: Any) -> Reply:
    wanted = query["username"].lower()
    return 200, [one.basic for one in forge.members.values() if one.username.lower() == wanted]


def one_account(forge: GitLabForge, groups: list[str], *_: Any) -> Reply:
    found = [one for one in forge.members.values() if one.id == int(groups[0])]
    return (200, found[0].basic | {"bot": found[0].bot}) if found else NOT_FOUND


def one_member(forge: GitLabForge, groups: list[str], *_: Any) -> Reply:
    found = [one for one in forge.members.values() if one.id == int(groups[0]) and one.level]
    return (200, found[0].basic | {"access_level": found[0].level}) if found else NOT_FOUND


def list_notes(forge: GitLabForge, groups: list[str], query: dict[str, str], *_: Any) -> Reply:
    found = [shaped(one) for one in forge.notes.values() if one["noteable_iid"] == int(groups[0])]
    if int(groups[0]) not in forge.merges:
        return NOT_FOUND
    return 200, found if query.get("sort") == "asc" else found[::-1]


def create_note(forge: GitLabForge, groups: list[str], _query: Any, body: Any, who: Member) -> Reply:
    if int(groups[0]) not in forge.merges:
        return NOT_FOUND
    if who.level < REPORTER:
        return 403, {"message": "403 Forbidden"}
    note = forge.write(int(groups[0]), who.username, body["body"])
    return (201, shaped(note)) if note["body"] else (202, {"commands_changes": {}, "summary": ["Applied"]})


def get_note(forge: GitLabForge, groups: list[str], *_: Any) -> Reply:
    found = forge.note_of(groups)
    return (200, shaped(found)) if found else NOT_FOUND


def update_note(forge: GitLabForge, groups: list[str], _query: Any, body: Any, who: Member) -> Reply:
    found = forge.note_of(groups)
    if found is None:
        return NOT_FOUND
    if found["author"]["id"] != who.id and who.level < MAINTAINER:
        return 403, {"message": "403 Forbidden"}
    forge.edit(found["id"], body["body"])
    return 200, shaped(found)


def delete_note(forge: GitLabForge, groups: list[str], *_: Any) -> Reply:
    if forge.note_of(groups) is None:
        return NOT_FOUND
    del forge.notes[int(groups[1])]
    return 204, None


def give_emoji(forge: GitLabForge, groups: list[str], _query: Any, body: Any, who: Member) -> Reply:
    found = forge.note_of(groups)
    given = found is not None and (found["id"], who.username, body["name"]) in forge.awards
    if found is None or given:
        return 404, {"message": "404 Award Emoji Name has already been taken Not Found"}
    forge.award(found["id"], who.username, body["name"])
    return 201, {"id": len(forge.awards), "name": body["name"], "user": who.basic, "awardable_type": "Note"}


def list_merges(forge: GitLabForge, _groups: list[str], query: dict[str, str], *_: Any) -> Reply:
    found = [one for one in forge.merges.values() if query["state"] in ("all", one["state"])]
    branch = query.get("source_branch")
    return 200, [one for one in found[::-1] if branch in (None, one["source_branch"])]


def get_merge(forge: GitLabForge, groups: list[str], *_: Any) -> Reply:
    found = forge.merges.get(int(groups[0]))
    return (200, found) if found else NOT_FOUND


def update_merge(forge: GitLabForge, groups: list[str], _query: Any, body: Any, who: Member) -> Reply:
    found = forge.merges.get(int(groups[0]))
    if found is None or who.level < DEVELOPER:
        return NOT_FOUND
    known = {one.id: one for one in forge.members.values() if one.level}
    chosen = [known[number].basic for number in body["reviewer_ids"] if number in known]
    found["reviewers"] = chosen[: forge.most_reviewers]
    return 200, found


def merges_with(forge: GitLabForge, groups: list[str], *_: Any) -> Reply:
    return 200, [forge.merges[iid] for iid in forge.commits.get(groups[0], [])]


def list_statuses(forge: GitLabForge, groups: list[str], query: dict[str, str], *_: Any) -> Reply:
    found = [one for one in forge.statuses if one["sha"] == groups[0]]
    return 200, [one for one in found if one["name"] == query.get("name", one["name"])]


def set_status(forge: GitLabForge, groups: list[str], _query: Any, body: Any, who: Member) -> Reply:
    """One that waits goes on to an end; to wait again while it waits is refused, and after an end is another one."""
    if who.level < DEVELOPER:
        return 403, {"message": "403 Forbidden"}
    waiting = [s for s in forge.statuses if s["sha"] == groups[0] and s["name"] == body["name"]]
    waiting = [one for one in waiting if one["status"] in ("pending", "running")]
    if waiting and body["state"] == waiting[-1]["status"]:
        why = 'Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition via "enqueue")'
        return 400, {"message": why}
    said = {
        "status": body["state"],
        "description": body.get("description"),
        "target_url": body.get("target_url"),
    }
    if waiting:
        waiting[-1].update(said)
        return 201, waiting[-1]
    forge.statuses.append({"id": 90 + len(forge.statuses), "sha": groups[0], "name": body["name"], **said})
    return 201, forge.statuses[-1]


def start_pipeline(forge: GitLabForge, _groups: list[str], _query: Any, body: Any, who: Member) -> Reply:
    if who.level < DEVELOPER:
        return 403, {"message": "403 Forbidden"}
    return 201, new_pipeline(forge, "api", who, body)


def new_pipeline(forge: GitLabForge, source: str, who: Member, body: Any) -> dict[str, Any]:
    number = 700 + len(forge.pipelines)
    made = {"id": number, "source": source, "ref": body["ref"], "user": who.basic, "status": "created"}
    forge.pipelines.append(made | {"web_url": f"{forge.site}/-/pipelines/{number}", "given": body})
    return {name: value for name, value in forge.pipelines[-1].items() if name != "given"}


def trigger_pipeline(forge: GitLabForge, _groups: list[str], _query: Any, body: Any, _who: Member) -> Reply:
    """In the name of whoever made the token, whoever uses it."""
    owner = forge.triggers.get(body["token"])
    return (201, new_pipeline(forge, "trigger", forge.members[owner], body)) if owner else NOT_FOUND


def get_pipeline(forge: GitLabForge, groups: list[str], *_: Any) -> Reply:
    found = [one for one in forge.pipelines if one["id"] == int(groups[0])]
    return (200, {k: v for k, v in found[0].items() if k != "given"}) if found else NOT_FOUND


ROUTES: list[tuple[str, Act]] = [
    ("GET /projects/:p", about),
    ("GET /user", own_account),
    ("GET /users", find_accounts),
    (r"GET /users/(\d+)", one_account),
    (r"GET /projects/:p/members/all/(\d+)", one_member),
    (f"GET /projects/:p{NOTES}", list_notes),
    (f"POST /projects/:p{NOTES}", create_note),
    (rf"GET /projects/:p{NOTES}/(\d+)", get_note),
    (rf"PUT /projects/:p{NOTES}/(\d+)", update_note),
    (rf"DELETE /projects/:p{NOTES}/(\d+)", delete_note),
    (rf"POST /projects/:p{NOTES}/(\d+)/award_emoji", give_emoji),
    ("GET /projects/:p/merge_requests", list_merges),
    (r"GET /projects/:p/merge_requests/(\d+)", get_merge),
    (r"PUT /projects/:p/merge_requests/(\d+)", update_merge),
    (r"GET /projects/:p/repository/commits/(\w+)/merge_requests", merges_with),
    (r"GET /projects/:p/repository/commits/(\w+)/statuses", list_statuses),
    (r"POST /projects/:p/statuses/(\w+)", set_status),
    ("POST /projects/:p/pipeline", start_pipeline),
    ("POST /projects/:p/trigger/pipeline", trigger_pipeline),
    (r"GET /projects/:p/pipelines/(\d+)", get_pipeline),
]


# GraphQL, as its reference describes it


GRAPH = Path(__file__).with_name("gitlab-graph.json")
MOST_COMPLEX, LONGEST_QUERY, LARGEST_PAGE = 250, 10_000, 100
NOTE_CLASSES = {None: "Note", "DiffNote": "DiffNote", "DiscussionNote": "DiscussionNote"}


def complexity(tree: graph.Tree) -> int:
    """One for each field, and for each node of a page a hundredth of all that it holds, unless it is asked for by number."""
    found = 0
    for args, inside in tree.values():
        own = 1 + complexity(inside)
        page = min(int(args.get("first", LARGEST_PAGE)), LARGEST_PAGE) if "nodes" in inside else 0
        found += own + (0 if "iids" in args else own * page // 100)
    return found


def answer_graph(
    forge: GitLabForge, query: str, given: dict[str, Any], tree: graph.Tree
) -> dict[str, object]:
    if complexity(tree) > MOST_COMPLEX or len(query) > LONGEST_QUERY:
        return {"errors": [{"message": f"Query has complexity of {complexity(tree)}, or is too large"}]}
    if forge.older and "filter" in query:
        return {"errors": [{"message": "Field 'notes' doesn't accept argument 'filter'"}]}
    (args, inside) = tree["project"]
    if forge.hidden or str(valued(args, given)["fullPath"]).lower() != forge.repository.lower():
        return {"data": {"project": None}}
    found: dict[str, object] = {}
    for name, (its, within) in inside.items():
        asked = valued(its, given)
        if name == "mergeRequest":
            merge = forge.merges.get(int(asked["iid"]))
            found[name] = graph_merge(forge, merge, within, given) if merge else None
        else:
            merges = [one for one in forge.merges.values() if str(one["iid"]) in asked["iids"]][::-1]
            wanted = within["nodes"][1]
            found[name] = graph_paged(
                forge, [graph_merge(forge, one, wanted, given) for one in merges], asked
            )
    return {"data": graph.selected({"project": found}, tree)}


def valued(args: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    return {name: given.get(word[1:]) if word.startswith("$") else word for name, word in args.items()}


def graph_paged(forge: GitLabForge, found: list[Any], asked: dict[str, Any]) -> dict[str, object]:
    size, start = min(int(asked["first"]), forge.graph_page), int(asked.get("after") or 0)
    more = start + size < len(found)
    info = {"hasNextPage": more, "endCursor": str(start + size) if more else None}
    return {"pageInfo": info, "nodes": found[start : start + size]}


def graph_merge(
    forge: GitLabForge, merge: dict[str, Any], tree: graph.Tree, given: dict[str, Any]
) -> dict[str, object]:
    asked = valued(tree["notes"][0], given)
    found = [one for one in forge.notes.values() if one["noteable_iid"] == merge["iid"]][::-1]
    if asked.get("filter") == "ONLY_COMMENTS":
        found = [one for one in found if not one["system"]]
    return {
        "iid": str(merge["iid"]),
        "notes": graph_paged(forge, [graph_note(forge, one) for one in found], asked),
    }


def graph_note(forge: GitLabForge, note: dict[str, Any]) -> dict[str, object]:
    """Of one that nobody edited `lastEditedAt` is its last change, by GitLab's own model of notes; `lastEditedBy` is nobody."""
    by = {"id": f"gid://gitlab/User/{note['author']['id']}", "username": note["author"]["username"]}
    edited = note.get("edited")
    return {
        "id": f"gid://gitlab/{NOTE_CLASSES[note['type']]}/{note['id']}",
        "body": note["body"],
        "system": note["system"],
        "internal": note["internal"],
        "author": None if note["id"] in forge.nameless else by,
        "createdAt": in_seconds(note["created_at"]),
        "updatedAt": in_seconds(note["updated_at"]),
        "lastEditedAt": in_seconds(edited or note["updated_at"]),
        "lastEditedBy": by if edited else None,
    }


def in_seconds(at: str) -> str:
    return re.sub(r"\.\d+", "", at)


class Handler(BaseHTTPRequestHandler):
    """One request: held to what is known of the call, then answered."""

    forge: GitLabForge
    protocol_version = "HTTP/1.1"
    operation = ""
    """What is asked, as GitLab names it; empty where another client asks."""

    def handle_any(self) -> None:
        self.operation = ""
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(data) if data else None
        parts = urlsplit(self.path)
        if not parts.path.startswith("/api/"):  # git asks for the repository, which is elsewhere
            self.say(404, None)
            return
        with self.forge.lock:
            self.forge.asked.append(f"{self.command} {self.path}")
        token = self.headers.get("Authorization", "").partition(" ")[2] or self.headers.get(
            "PRIVATE-TOKEN", ""
        )
        who = self.forge.members.get(self.forge.tokens.get(token, ""))
        if self.headers.get("User-Agent", "").startswith("git-gate/"):
            self.hold(data)
        path = parts.path.removeprefix("/api/v4")
        if path == "/api/graphql":
            self.say_graph(body, who)
            return
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        wrong = against(self.command, path, set(query), set(body or {}))
        if wrong:
            self.forge.broken.append(f"{self.command} {self.path}: {wrong}")
        if who is None and not path.endswith("/trigger/pipeline"):
            self.say(401, {"message": "401 Unauthorized"})
            return
        code, value = self.forge.answer(self.command, path, query, body, who or Member("nobody", 0))
        self.say(code, *paged(value, query, f"{self.forge.server}{parts.path}"))

    do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815 - the names that http.server looks for

    def hold(self, data: bytes) -> None:
        try:
            name, sent = gitlab_api.hold(self.command, self.path, dict(self.headers), data)
        except (AssertionError, OpenAPIError) as wrong:
            self.forge.broken.append(f"{self.command} {self.path}: {wrong}")
            return
        self.operation = name
        with self.forge.lock:
            self.forge.sent.setdefault(name, set()).update(sent)

    def hold_reply(self, code: int, value: Any) -> None:
        try:
            gitlab_api.hold_reply(self.operation, code, value)
        except AssertionError as wrong:
            self.forge.broken.append(str(wrong))

    def say_graph(self, body: Any, who: Member | None) -> None:
        """What is wrong with a query GitLab says with a good status."""
        if who is None or not self.forge.graphql:
            self.say(401 if who is None else 500, {"message": "none"})
            return
        try:
            tree = graph.hold(body, GRAPH)
        except (AssertionError, LookupError) as wrong:
            self.forge.broken.append(f"GraphQL: {wrong!r}")
            self.say(200, {"errors": [{"message": str(wrong)}]})
            return
        with self.forge.lock:
            self.say(200, answer_graph(self.forge, str(body["query"]), body["variables"], tree))

    def say(self, code: int, value: Any, headers: dict[str, str] | None = None) -> None:
        data = b"" if value is None else json.dumps(value).encode()
        if self.operation and code < 300:
            self.hold_reply(code, value)
        self.send_response(code)
        for name, word in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, word)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Tests are quiet."""


def paged(value: Any, query: dict[str, str], url: str) -> tuple[Any, dict[str, str]]:
    if not isinstance(value, list):
        return value, {}
    size, page = min(int(query.get("per_page") or 20), 100), int(query.get("page") or 1)
    following = "&".join(f"{name}={word}" for name, word in {**query, "page": page + 1}.items())
    more = len(value) > page * size
    links = {"Link": f'<{url}?{following}>; rel="next", <{url}?page=1>; rel="first"'} if more else {}
    return value[(page - 1) * size : page * size], links


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


@contextmanager
def gitlab_server() -> Iterator[GitLabForge]:
    """A GitLab for as long as the `with` lasts."""
    forge = GitLabForge()
    handler = type("GitLabHandler", (Handler,), {"forge": forge})
    with Server(("127.0.0.1", 0), handler) as listening:
        forge.port = listening.server_port
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield forge
        finally:
            listening.shutdown()
            thread.join(10)
    assert not forge.broken, "\n".join(forge.broken)
