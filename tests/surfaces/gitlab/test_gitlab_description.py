"""Every request of GitLab's adapter, held to GitLab's own OpenAPI description; and the excerpt of that, which has no more than is used."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import gitlab
import pytest
from openapi_core.exceptions import OpenAPIError

from gitgate.surfaces.forge.hosts.gitlab import GitLab
from gitgate.surfaces.forge.hosts.web import Web
from support.forges import description, gitlab_api
from support.forges.gitlab import GitLabForge
from support.forges.gitlab_api import LACKING, NOTES, PROJECT, NotAsDescribed, subset

from .conftest import THREAD

HEAD = "a" * 40
HERE = f"/api/v4/projects/{quote('group/inner/project', safe='')}"
REFUSED = (AssertionError, OpenAPIError)  # by us, or by the description itself

GOOD: list[tuple[str, str, Any]] = [
    ("GET", f"{HERE}/merge_requests?state=opened&source_branch=a%2Fb&per_page=100&page=2", None),
    ("POST", f"{HERE}/merge_requests/7/notes", {"body": "words"}),
    ("POST", f"{HERE}/pipeline", {"ref": "main", "inputs": {"gitgate": "answer", "any": "x"}}),
    ("PUT", f"{HERE}/merge_requests/7", {"reviewer_ids": [4, 5]}),
    ("POST", f"{HERE}/statuses/{HEAD}", {"state": "pending", "name": "gitgate", "target_url": "https://x.example"}),
]  # fmt: skip

BAD: list[tuple[str, str, Any]] = [
    ("GET", f"{HERE}/merge_requests?state=open", None),
    ("GET", f"{HERE}/merge_requests?sourcebranch=a", None),
    ("GET", f"{HERE}/merge_requests?per_page=all", None),
    ("GET", f"{HERE}/merge_requests/feature", None),
    ("GET", "/api/v4/users/ada", None),
    ("POST", f"{HERE}/merge_requests/7/notes", {"text": "words"}),
    ("POST", f"{HERE}/merge_requests/7/notes", {"body": "words", "internl": True}),
    ("PATCH", f"{HERE}/merge_requests/7/notes/3", {"body": "words"}),
    ("PUT", f"{HERE}/merge_requests/7", {"reviewer_ids": ["ada"]}),
    ("POST", f"{HERE}/statuses/{HEAD}", {"state": "failure", "name": "gitgate"}),
    ("POST", f"{HERE}/statuses/{HEAD}", {"name": "gitgate"}),
    ("POST", f"{HERE}/pipeline", {"inputs": {"gitgate": "answer"}}),
    ("POST", f"{HERE}/pipelines", {"ref": "main"}),
    ("GET", "/api/v4/projects/group/inner/project", None),
]  # fmt: skip


def hold(method: str, target: str, body: object) -> None:
    data = b"" if body is None else json.dumps(body).encode()
    gitlab_api.hold(method, target, {"Content-Type": "application/json"}, data)


def test_what_gitlab_takes_is_held() -> None:
    """The inputs of a pipeline are the project's own, and may have any name."""
    for method, target, body in GOOD:
        hold(method, target, body)


def test_what_gitlab_does_not_describe_is_refused() -> None:
    """A letter wrong, another forge's word, a number that is none, and what is required left out."""
    for method, target, body in BAD:
        with pytest.raises(REFUSED):
            hold(method, target, body)


def test_all_that_is_described_is_asked_for_and_nothing_else(forge: GitLabForge) -> None:
    """Each call of the adapter once: what it sends, with the names of each parameter and field, is what the excerpt has of it."""
    forge.open_merge(THREAD, "feature", HEAD, author="ada")
    forge.commits[HEAD] = [THREAD]
    hub = GitLab(Web(forge.api, "bot-token"), forge.repository, forge.site)
    hub.fetch_self()
    assert hub.may_write("ada")
    note = hub.post_comment(THREAD, "Which?")
    hub.edit_comment(note, "Which one?")
    assert hub.fetch_comment(note.number, thread=THREAD)
    assert hub.fetch_comments(THREAD)
    hub.react(note, "eyes")
    hub.remove_comment(note)
    assert hub.find_pull_requests("feature")
    assert hub.find_pull_requests_with(HEAD)
    assert hub.fetch_pull_request(THREAD)
    assert hub.request_reviews(THREAD, ["ada"]) == []
    hub.set_status(HEAD, "pending", "waits", hub.site)
    assert hub.fetch_status(HEAD)
    hub.dispatch("7k2fw9c3ab", HEAD)
    described = {
        f"{method.upper()} {path}": {*names, *required(path, method)}
        for path, methods in gitlab_api.USED.items()
        for method, names in methods.items()
    }
    sent = {name: given for name, given in forge.sent.items() if name not in LACKING}
    assert set(sent) == set(described)
    for name, given in sent.items():  # a second page is asked for by the address that GitLab gives
        assert given == described[name] - {"page"}, name
    assert set(forge.sent) - set(described) == set(LACKING)


def required(path: str, method: str) -> set[str]:
    """The fields of a body that have to be there."""
    said = description.written("gitlab")["paths"][path][method].get("requestBody")
    return set(said["content"]["application/json"]["schema"].get("required", ())) if said else set()


def test_a_second_page_is_held_too(forge: GitLabForge) -> None:
    """By the number that is in its address."""
    forge.open_merge(THREAD, "feature", HEAD)
    for number in range(101):
        forge.write(THREAD, "ada", f"talk {number}")
    assert (
        len(GitLab(Web(forge.api, "bot-token"), forge.repository, forge.site).fetch_comments(THREAD)) == 101
    )
    assert "page" in forge.sent[f"GET {NOTES}"]


def test_a_request_of_ours_that_is_not_described_fails_its_test(forge: GitLabForge) -> None:
    """What only another client sends is left to that one."""
    web = Web(forge.api, "bot-token")
    web.get(f"/projects/{quote(forge.repository, safe='')}", {"licence": "true"})
    assert ["GitLab knows no parameter {'licence'}" in one for one in forge.broken] == [True, False]
    forge.broken.clear()  # looked at; the second is what python-gitlab knows
    other = gitlab.Gitlab(forge.server, private_token="ada-token", keep_base_url=True)
    assert other.users.list(username="ada", external=True, get_all=True)
    assert forge.broken == []


REPLIES: list[tuple[str, int, Any, str]] = [
    (f"GET {PROJECT}", 200, {"default_branch": 3}, "default_branch"),
    (f"GET {PROJECT}", 200, {"defaultBranch": "main"}, "defaultBranch"),
    (f"GET {NOTES}", 200, {"id": 3}, "not of type 'array'"),
    (f"POST {NOTES}", 202, {}, "does not answer 202"),
    (f"POST {PROJECT}/statuses/{{sha}}", 200, None, "does not answer 200"),
    (f"GET {PROJECT}/members/all/{{user_id}}", 200, {"access_level": "30"}, "access_level"),
]


def test_a_reply_that_is_not_described_is_seen() -> None:
    """So the stand-in says nothing that GitLab does not: fields by name, their kinds, lists, and the status."""
    for name, status, value, why in REPLIES:
        with pytest.raises(AssertionError, match=why):
            gitlab_api.hold_reply(name, status, value)


# the excerpt


@pytest.fixture
def whole() -> dict[str, Any]:
    """A description of which the excerpt is a part: what is cut out is what is used, whatever stands beside it."""
    said = copy.deepcopy(description.written("gitlab"))
    said["paths"]["/api/v4/avatar"] = {"get": {"responses": {"200": {"description": "OK"}}}}
    said["paths"]["/api/v4/user"]["put"] = {"responses": {}}
    said["paths"]["/api/v4/users"]["get"]["parameters"].append(
        {"name": "humans", "in": "query", "required": False, "schema": {"type": "boolean"}}
    )
    said["paths"]["/api/v4/users"]["get"]["description"] = "Lists all users."
    said["components"]["schemas"]["APIEntitiesNote"]["properties"]["resolved"] = {"type": "boolean"}
    return said


def test_the_excerpt_is_what_is_cut_out(whole: dict[str, Any]) -> None:
    """Under GitLab's licence for it, which the note beside it names as well."""
    cut = subset(whole)
    assert cut == description.written("gitlab")
    assert cut["info"]["license"]["name"] == "CC BY-SA 4.0"
    note = description.GITLAB_FILE.with_suffix(".md").read_text(encoding="utf-8")
    assert f"version {cut['info']['version']}," in note
    assert "https://creativecommons.org/licenses/by-sa/4.0/" in note


def gained(said: Any) -> None:
    said["paths"]["/api/graphql"] = {"post": {}}


def lost(said: Any) -> None:
    del said["paths"][f"{PROJECT}/pipeline"]


def lost_field(said: Any) -> None:
    body = said["paths"][f"{PROJECT}/merge_requests/{{merge_request_iid}}"]["put"]["requestBody"]
    del body["content"]["application/json"]["schema"]["properties"]["reviewer_ids"]


def mended_field(said: Any) -> None:
    said["components"]["schemas"]["APIEntitiesMember"]["properties"]["access_level"] = {"type": "integer"}


def mended_reply(said: Any) -> None:
    reply = said["paths"][NOTES]["get"]["responses"]["200"]["content"]["application/json"]
    reply["schema"] = {"type": "array", "items": reply["schema"]}


def mended_code(said: Any) -> None:
    replies = said["paths"][f"{PROJECT}/statuses/{{sha}}"]["post"]["responses"]
    replies["201"] = replies.pop("200")


CHANGES: list[tuple[Callable[[Any], None], str]] = [
    (gained, "take it from LACKING"),
    (lost, "does not describe POST"),
    (lost_field, "no .'reviewer_ids'. of PUT"),
    (mended_field, "look at OTHER_FIELDS"),
    (mended_reply, "look at OTHER_REPLIES"),
    (mended_code, "look at OTHER_CODES"),
]


def test_a_newer_description_is_looked_at(whole: dict[str, Any]) -> None:
    """What is listed beside the excerpt stays the least: it fails as soon as GitLab describes it."""
    for change, why in CHANGES:
        newer = copy.deepcopy(whole)
        change(newer)
        with pytest.raises(NotAsDescribed, match=why):
            subset(newer)
