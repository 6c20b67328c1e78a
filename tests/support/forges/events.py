"""Test bed: the events of a stand-in, with all that GitHub's own have: pure. Its schemas are the measure of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .standin import Forge

MADE = "2026-01-01T00:00:00Z"
PEOPLE = ("followers", "following", "gists", "starred", "subscriptions", "organizations", "repos", "events")
PLACES = """forks keys collaborators teams hooks issue_events events assignees branches tags blobs git_tags git_refs trees
    statuses languages stargazers contributors subscribers subscription commits git_commits comments issue_comment contents
    compare merges archive downloads issues pulls milestones notifications labels releases deployments git ssh clone svn"""
COUNTS = (
    "size",
    "stargazers_count",
    "watchers_count",
    "forks_count",
    "open_issues_count",
    "forks",
    "open_issues",
    "watchers",
)
KINDS = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")


def commented(forge: Forge, comment: Mapping[str, Any], action: str = "created") -> dict[str, Any]:
    """Somebody commented. The issue's own text is a reply, too, which is nobody's."""
    thread = int(comment["issue_url"].rpartition("/")[2])
    said = {
        "url": f"{forge.api}/repos/{forge.repository}/issues/comments/{comment['id']}",
        "node_id": f"IC_{comment['id']}",
        "author_association": "NONE",
        "performed_via_github_app": None,
        "reactions": reactions(forge),
        **comment,
        "user": account(forge, comment["user"]),
    }
    return {
        "action": action,
        "issue": issue(forge, thread),
        "comment": said,
        "repository": repository(forge),
        "sender": said["user"],
        **({"changes": {"body": {"from": "It said something else."}}} if action == "edited" else {}),
    }


def dispatched(
    forge: Forge, login: str, workflow: str, inputs: Mapping[str, str], ref: str = "main"
) -> dict[str, Any]:
    """Somebody asked for a run."""
    return {
        "inputs": dict(inputs) or None,
        "ref": f"refs/heads/{ref}",
        "repository": repository(forge),
        "sender": account(forge, forge.accounts[login].shape),
        "workflow": f".github/workflows/{workflow}",
    }


def account(forge: Forge, known: Mapping[str, Any]) -> dict[str, Any]:
    place = f"{forge.api}/users/{known['login']}"
    return {
        "node_id": f"U_{known['id']}",
        "avatar_url": "",
        "gravatar_id": "",
        "url": place,
        "html_url": f"http://127.0.0.1:{forge.port}/{known['login']}",
        "site_admin": False,
        **{f"{name}_url": f"{place}/{name}" for name in (*PEOPLE, "received_events")},
        **known,
    }


def repository(forge: Forge) -> dict[str, Any]:
    owner, _, name = forge.repository.partition("/")
    place = f"{forge.api}/repos/{forge.repository}"
    return {
        "id": 1,
        "node_id": "R_1",
        "name": name,
        "full_name": forge.repository,
        "owner": account(forge, {"login": owner, "id": 1, "type": "Organization"}),
        "html_url": forge.site,
        "url": place,
        **{f"{kind}_url": f"{place}/{kind}" for kind in PLACES.split()},
        **dict.fromkeys(("description", "homepage", "language", "mirror_url", "license")),
        **dict.fromkeys(("private", "fork", "archived", "is_template", "web_commit_signoff_required"), False),
        **{f"has_{what}": True for what in ("issues", "projects", "downloads", "wiki", "pages")},
        **dict.fromkeys(COUNTS, 0),
        **dict.fromkeys(("created_at", "updated_at", "pushed_at"), MADE),
        "default_branch": "main",
        "topics": [],
        "visibility": "public",
        "custom_properties": {},
    }


def issue(forge: Forge, thread: int) -> dict[str, Any]:
    place, page = f"{forge.api}/repos/{forge.repository}/issues/{thread}", f"{forge.site}/pull/{thread}"
    pull = f"{forge.api}/repos/{forge.repository}/pulls/{thread}"
    links = {"url": pull, "html_url": page, "diff_url": f"{page}.diff", "patch_url": f"{page}.patch"}
    return {
        "id": thread,
        "node_id": f"I_{thread}",
        "number": thread,
        "title": "/approve",
        "body": "/approve",
        "user": account(forge, {"login": "ghost", "id": 10137, "type": "User"}),
        "url": place,
        "html_url": page,
        "repository_url": f"{forge.api}/repos/{forge.repository}",
        "labels_url": f"{place}/labels{{/name}}",
        **{f"{kind}_url": f"{place}/{kind}" for kind in ("comments", "events")},
        **dict.fromkeys(("assignee", "milestone", "closed_at", "active_lock_reason")),
        "state": "open",
        "locked": False,
        "labels": [],
        "assignees": [],
        "comments": 1,
        "created_at": MADE,
        "updated_at": MADE,
        "author_association": "NONE",
        "reactions": reactions(forge),
        **({"pull_request": links} if thread in forge.pulls else {}),
    }


def reactions(forge: Forge) -> dict[str, Any]:
    return {"url": f"{forge.api}/reactions", "total_count": 0, **dict.fromkeys(KINDS, 0)}
