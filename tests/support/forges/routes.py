"""Test bed: what the stand-in answers to each of the requests that it knows, and does to its state: GitHub's paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from . import description

if TYPE_CHECKING:
    from .standin import Forge

AT = "/repos/team/project"
ROBOT = "github-actions[bot]"
RUN_DETAILS = "return_run_details"
Reply = tuple[int, Any]
NOT_FOUND: Reply = (404, {"message": "Not Found"})


def whoami(forge: Forge, _: Any, _query: Any, _body: Any, login: str) -> Reply:
    if forge.accounts[login].type == "Bot":
        return 403, {"message": "Resource not accessible by integration"}
    return 200, {**forge.accounts[login].shape, "user_view_type": "public"}


def repository(forge: Forge, _: Any, _query: Any, _body: Any, login: str) -> Reply:
    may = {
        "admin": False,
        "push": login == ROBOT or forge.accounts[login].permission == "write",
        "pull": True,
    }
    said = {"id": 1, "name": "project", "full_name": forge.repository, "default_branch": "main"}
    return 200, {**said, "permissions": may}


def commit_comment(forge: Forge, parts: Any, _query: Any, _body: Any, _login: str) -> Reply:
    found = forge.on_commits.get(int(parts[0]))
    return (200, found) if found else NOT_FOUND


def delete_commit_comment(forge: Forge, parts: Any, _query: Any, _body: Any, _login: str) -> Reply:
    return (204, None) if forge.on_commits.pop(int(parts[0]), None) else NOT_FOUND


def commit_comments(forge: Forge, parts: Any, _query: Any, _body: Any, _login: str) -> Reply:
    return 200, [c for c in forge.on_commits.values() if c["commit_id"] == parts[0]]


def post_commit_comment(forge: Forge, parts: Any, _query: Any, body: Any, login: str) -> Reply:
    if parts[0] not in forge.commits:
        return 422, {"message": f"No commit found for SHA: {parts[0]}"}
    return 201, forge.write_on(parts[0], login, body["body"])


def patch_commit_comment(forge: Forge, parts: Any, _query: Any, body: Any, _login: str) -> Reply:
    if int(parts[0]) not in forge.on_commits:
        return NOT_FOUND
    forge.on_commits[int(parts[0])] |= {"body": body["body"], "updated_at": forge.now()}
    return 200, forge.on_commits[int(parts[0])]


def commit_pulls(forge: Forge, parts: Any, _query: Any, _body: Any, _login: str) -> Reply:
    if parts[0] not in forge.commits:
        return 422, {"message": f"No commit found for SHA: {parts[0]}"}
    return 200, [forge.pulls[number] for number in forge.commits[parts[0]]]


def workflow(forge: Forge, parts: Any, _query: Any, _body: Any, _login: str) -> Reply:
    if parts[0] not in forge.workflows:
        return NOT_FOUND
    path = f".github/workflows/{parts[0]}"
    return 200, {"id": 1, "name": "gitgate", "path": path, "state": forge.workflows[parts[0]]}


def secrets(forge: Forge, _: Any, _query: Any, _body: Any, login: str) -> Reply:
    if login != "ada":
        return 403, {"message": "Resource not accessible"}
    names = [
        {"name": name, "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}
        for name in forge.secrets
    ]
    return 200, {"total_count": len(names), "secrets": names}


def one_comment(forge: Forge, parts: Any, _query: Any, _body: Any, _login: str) -> Reply:
    found = forge.comments.get(int(parts[0]))
    return (200, found) if found else NOT_FOUND


def patch_comment(forge: Forge, parts: Any, _query: Any, body: Any, _login: str) -> Reply:
    if int(parts[0]) not in forge.comments:
        return NOT_FOUND
    return 200, forge.edit(int(parts[0]), body["body"])


def delete_comment(forge: Forge, parts: Any, _query: Any, _body: Any, _login: str) -> Reply:
    return (204, None) if forge.comments.pop(int(parts[0]), None) else NOT_FOUND


def comments(forge: Forge, parts: Any, _query: Any, _body: Any, _login: str) -> Reply:
    if not forge.has(int(parts[0])):
        return NOT_FOUND
    here = [c for c in forge.comments.values() if c["issue_url"].endswith(f"/{parts[0]}")]
    return 200, here


def post_comment(forge: Forge, parts: Any, _query: Any, body: Any, login: str) -> Reply:
    if not forge.has(int(parts[0])):
        return NOT_FOUND
    if len(body["body"]) > description.MOST_COMMENT:
        return 422, {"message": "Body is too long (maximum is 65536 characters)"}
    return 201, forge.write(int(parts[0]), login, body["body"])


def react(forge: Forge, parts: Any, _query: Any, body: Any, login: str) -> Reply:
    number = int(parts[1])
    kinds = {"/issues": forge.comments, "/pulls": forge.on_diffs, None: forge.on_commits}
    if number not in kinds[parts[0]]:
        return NOT_FOUND
    reaction = (number, body["content"], login)
    known = reaction in forge.reactions
    if not known:
        forge.reactions.append(reaction)
    shape = {"id": 1, "content": body["content"], "user": forge.accounts[login].shape}
    return (200 if known else 201), {**shape, "node_id": "x", "created_at": "2026-01-01T00:00:00Z"}


def lately(forge: Forge, items: dict[int, dict[str, Any]], query: Any) -> Reply:
    """Of the whole repository, those that changed since then."""
    assert forge.kind != "gitea"
    found = [one for one in items.values() if one["updated_at"] >= query.get("since", "")]
    return 200, sorted(found, key=lambda one: one["created_at"])


def all_comments(forge: Forge, _: Any, query: Any, _body: Any, _login: str) -> Reply:
    return lately(forge, forge.comments, query)


def all_diff_comments(forge: Forge, _: Any, query: Any, _body: Any, _login: str) -> Reply:
    sent = {n: one for n, one in forge.on_diffs.items() if is_sent(forge, one)}
    return lately(forge, sent, query)


def is_sent(forge: Forge, comment: dict[str, Any]) -> bool:
    """Of a review that waits only its author sees anything."""
    return "submitted_at" in forge.reviews.get(comment["pull_request_review_id"], {"submitted_at": ""})


def diff_comments(forge: Forge, parts: Any, _query: Any, _body: Any, _login: str) -> Reply:
    if int(parts[0]) not in forge.pulls:
        return NOT_FOUND
    here = f"/pulls/{parts[0]}"
    return 200, [c for c in forge.on_diffs.values() if c["pull_request_url"].endswith(here)]


def diff_comment(forge: Forge, parts: Any, _query: Any, _body: Any, _login: str) -> Reply:
    found = forge.on_diffs.get(int(parts[0]))
    return (200, found) if found else NOT_FOUND


def review(forge: Forge, parts: Any, _query: Any, _body: Any, _login: str) -> Reply:
    found = forge.reviews.get(int(parts[1]))
    return (200, found) if found else NOT_FOUND


def request_review(forge: Forge, parts: Any, _query: Any, body: Any, _login: str) -> Reply:
    """As GitHub does: all of them or none."""
    pull = forge.pulls.get(int(parts[0]))
    if pull is None:
        return NOT_FOUND
    for login in body["reviewers"]:
        if login == pull["user"]["login"]:
            return 422, {"message": "Review cannot be requested from pull request author."}
        if login not in forge.accounts or login in forge.unasked:
            return 422, {"message": "Reviews may only be requested from collaborators."}
    forge.requested += [(int(parts[0]), login) for login in body["reviewers"]]
    return 201, pull


def permission(forge: Forge, parts: Any, _query: Any, _body: Any, _login: str) -> Reply:
    account = forge.accounts.get(unquote(parts[0]))
    if account is None:
        return NOT_FOUND
    return 200, {"permission": account.permission, "role_name": account.permission, "user": None}


def pulls(forge: Forge, _: Any, query: Any, _body: Any, _login: str) -> Reply:
    found = [pull for pull in forge.pulls.values() if pull["state"] == query.get("state", "open")]
    head = query.get("head", "").partition(":")[2]
    return 200, [pull for pull in found if not head or pull["head"]["ref"] == head]


def one_pull(forge: Forge, parts: Any, _query: Any, _body: Any, _login: str) -> Reply:
    found = forge.pulls.get(int(parts[0]))
    return (200, found) if found else NOT_FOUND


def status(forge: Forge, parts: Any, _query: Any, body: Any, _login: str) -> Reply:
    forge.statuses.append({**body, "sha": parts[0]})
    return 201, {"id": 1, "target_url": None, **body}


def dispatch(forge: Forge, parts: Any, _query: Any, body: Any, login: str) -> Reply:
    if login == "no-actions":
        return 403, {"message": "Resource not accessible by personal access token"}
    if forge.kind == "enterprise" and RUN_DETAILS in body:  # as Enterprise Server 3.19 puts it
        return 422, {"message": f'Invalid request.\n\n"{RUN_DETAILS}" is not a permitted key.'}
    forge.dispatched.append({**body, "workflow": parts[0], "sender": login})
    if body.get(RUN_DETAILS):
        url = f"{forge.site}/actions/runs/7"
        return 200, {"workflow_run_id": 7, "run_url": url, "html_url": url}
    return 204, None


def dispatch_event(forge: Forge, _: Any, _query: Any, body: Any, login: str) -> Reply:
    forge.dispatched.append({**body, "sender": login})
    return 204, None


def status_now(forge: Forge, parts: Any, _query: Any, _body: Any, _login: str) -> Reply:
    """The latest of each name, as a commit's page shows them."""
    latest = {one["context"]: one for one in forge.statuses if one["sha"] == parts[0]}
    names = ("context", "state", "description", "target_url")
    shapes = [{name: one.get(name) for name in names} for one in latest.values()]
    states = {one["state"] for one in shapes} or {"pending"}
    worst = next((word for word in ("failure", "pending") if word in states), "success")
    return 200, {"state": worst, "statuses": shapes}


MOST_ANNOTATIONS = 50


def check_runs(forge: Forge, parts: Any, query: Any, _body: Any, _login: str) -> Reply:
    """The latest of each name."""
    found = [
        one for one in forge.checks if one["head_sha"] == parts[0] and one["name"] == query["check_name"]
    ]
    return 200, {"total_count": len(found[-1:]), "check_runs": [without_notes(one) for one in found[-1:]]}


def without_notes(check: dict[str, Any]) -> dict[str, Any]:
    """Reading one counts its annotations, and does not list them."""
    output = {name: check["output"].get(name) for name in ("title", "summary", "text")}
    count = {"annotations_count": len(check["output"]["annotations"]), "annotations_url": ""}
    return {**check, "output": {**output, **count}}


def post_check(forge: Forge, _: Any, _query: Any, body: Any, login: str) -> Reply:
    """Only programs that are Apps may."""
    if forge.accounts[login].type != "Bot":
        return 403, {"message": "You must authenticate via a GitHub App."}
    check: dict[str, Any] = {"id": len(forge.checks) + 1, "conclusion": None, "output": {"annotations": []}}
    forge.checks.append(check)
    return changed_check(check, body, 201)


def patch_check(forge: Forge, parts: Any, _query: Any, body: Any, _login: str) -> Reply:
    found = [one for one in forge.checks if one["id"] == int(parts[0])]
    return changed_check(found[0], body, 200) if found else NOT_FOUND


def changed_check(check: dict[str, Any], body: Any, code: int) -> Reply:
    """Annotations are added to those that are there; of one request no more than fifty are taken."""
    said = body["output"]
    if len(said.get("annotations", [])) > MOST_ANNOTATIONS or any(
        len(said.get(name, "")) > description.MOST_COMMENT for name in ("summary", "text")
    ):
        return 422, {"message": "Invalid request."}
    notes = [*check["output"]["annotations"], *said.get("annotations", [])]
    check |= {**body, "output": {**said, "annotations": notes}}
    return code, without_notes(check)


Route = Callable[["Forge", Any, Any, Any, str], Reply]
ROUTES: list[tuple[str, Route]] = [
    ("GET /user", whoami),
    (f"GET {AT}", repository),
    (rf"GET {AT}/issues/comments/(\d+)", one_comment),
    (rf"PATCH {AT}/issues/comments/(\d+)", patch_comment),
    (rf"DELETE {AT}/issues/comments/(\d+)", delete_comment),
    (rf"POST {AT}(/issues|/pulls)?/comments/(\d+)/reactions", react),
    (rf"GET {AT}/comments/(\d+)", commit_comment),
    (rf"PATCH {AT}/comments/(\d+)", patch_commit_comment),
    (rf"DELETE {AT}/comments/(\d+)", delete_commit_comment),
    (rf"GET {AT}/commits/(\w+)/comments", commit_comments),
    (rf"POST {AT}/commits/(\w+)/comments", post_commit_comment),
    (rf"GET {AT}/commits/(\w+)/pulls", commit_pulls),
    (rf"GET {AT}/actions/workflows/([\w.-]+)", workflow),
    (f"GET {AT}/actions/secrets", secrets),
    (rf"GET {AT}/issues/(\d+)/comments", comments),
    (rf"POST {AT}/issues/(\d+)/comments", post_comment),
    (rf"GET {AT}/collaborators/([^/]+)/permission", permission),
    (f"GET {AT}/pulls", pulls),
    (rf"GET {AT}/pulls/(\d+)", one_pull),
    (f"GET {AT}/issues/comments", all_comments),
    (f"GET {AT}/pulls/comments", all_diff_comments),
    (rf"GET {AT}/pulls/comments/(\d+)", diff_comment),
    (rf"GET {AT}/pulls/(\d+)/comments", diff_comments),
    (rf"GET {AT}/pulls/(\d+)/reviews/(\d+)", review),
    (rf"POST {AT}/pulls/(\d+)/requested_reviewers", request_review),
    (rf"GET {AT}/commits/(\w+)/status", status_now),
    (rf"GET {AT}/commits/(\w+)/check-runs", check_runs),
    (f"POST {AT}/check-runs", post_check),
    (rf"PATCH {AT}/check-runs/(\d+)", patch_check),
    (rf"POST {AT}/statuses/(\w+)", status),
    (rf"POST {AT}/actions/workflows/([\w.]+)/dispatches", dispatch),
    (f"POST {AT}/dispatches", dispatch_event),
]
