"""Test bed: what is Gitea's own in the stand-in: the shapes that it answers with, and what it knows of in a request.

As its API description (MIT licence) and its source say: a comment of a pull request has another field for its thread, accounts
have no type, the comments of a thread come all at once, and times carry the server's own zone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

ACTIONS, GHOST = -2, -1
NUMBER = r"\d+"
# Method and path, the names of its query, the fields of its body.
KNOWN: list[tuple[str, set[str], set[str]]] = [
    ("GET /user", set(), set()),
    ("GET {at}", set(), set()),
    (f"GET {{at}}/issues/comments/{NUMBER}", set(), set()),
    (f"PATCH {{at}}/issues/comments/{NUMBER}", set(), {"body"}),
    (f"DELETE {{at}}/issues/comments/{NUMBER}", set(), set()),
    (f"POST {{at}}/issues/comments/{NUMBER}/reactions", set(), {"content"}),
    (f"GET {{at}}/issues/{NUMBER}/comments", {"since", "before"}, set()),
    (f"POST {{at}}/issues/{NUMBER}/comments", set(), {"body"}),
    (r"GET {at}/collaborators/[^/]+/permission", set(), set()),
    ("GET {at}/pulls", {"base_branch", "state", "sort", "milestone", "labels", "poster", "page", "limit"}, set()),
    (f"GET {{at}}/pulls/{NUMBER}", set(), set()),
    (f"POST {{at}}/pulls/{NUMBER}/requested_reviewers", set(), {"reviewers", "team_reviewers"}),
    (r"GET {at}/commits/\w+/status", {"page", "limit"}, set()),
    (r"POST {at}/statuses/\w+", set(), {"context", "description", "state", "target_url"}),
    (r"POST {at}/actions/workflows/[\w.]+/dispatches", {"return_run_details"}, {"ref", "inputs"}),
]  # fmt: skip
CHOICES = {
    "state": {"open", "closed", "all", "pending", "success", "error", "failure", "warning", "skipped"},
    "sort": {"oldest", "recentupdate", "recentclose", "leastupdate", "mostcomment", "leastcomment", "priority"},
}  # fmt: skip


def against(at: str, method: str, path: str, query: Mapping[str, str], body: Any) -> str:
    """What Gitea would not know in this request; empty when it knows all of it."""
    for pattern, names, fields in KNOWN:
        if re.fullmatch(pattern.replace("{at}", at), f"{method} {path}"):
            said = {**query, **(body or {})}
            strange = (set(query) - names) | (set(body or {}) - fields)
            bad = {name for name in CHOICES if name in said and said[name] not in CHOICES[name]}
            return f"{strange | bad} of {method} {path}" if strange or bad else ""
    return f"{method} {path}"


def shaped(value: Any, site: str, pulls: Mapping[int, object]) -> Any:
    """An answer of GitHub's, as Gitea would give it."""
    if isinstance(value, list):
        return [shaped(item, site, pulls) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {name: shaped(item, site, pulls) for name, item in value.items() if name != "type"}
    if "issue_url" in value:
        changed |= addresses(int(value["issue_url"].rpartition("/")[2]), site, pulls)
        changed |= {name: zoned(value[name]) for name in ("created_at", "updated_at")}
    if "context" in value:
        changed["status"] = changed.pop("state")
    return changed


def addresses(thread: int, site: str, pulls: Mapping[int, object]) -> dict[str, str]:
    if thread in pulls:
        return {"issue_url": "", "pull_request_url": f"{site}/pulls/{thread}"}
    return {"issue_url": f"{site}/issues/{thread}", "pull_request_url": ""}


def zoned(text: str) -> str:
    """The same moment, as a server in another zone writes it."""
    from datetime import datetime, timedelta, timezone

    return datetime.fromisoformat(text).astimezone(timezone(timedelta(hours=2))).isoformat()
