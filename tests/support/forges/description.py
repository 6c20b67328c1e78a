"""Test bed: GitHub's own OpenAPI description, the part that a gate needs; every request and reply of a test is held to it.

`github-api.json` is extracted by `subset` from `api.github.com.json` of the npm package @octokit/openapi (MIT licence, © its
contributors), with what only explains left out. `github-enterprise.json` is what Enterprise Server does otherwise (`differing`), by
`ghes-3.19.json` of the same package. A slow test extracts both again from the real package and finds the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from openapi_core import OpenAPI
from openapi_core.testing import MockRequest, MockResponse

from . import graph

FILE = Path(__file__).with_name("github-api.json")
ENTERPRISE_FILE = Path(__file__).with_name("github-enterprise.json")
GITLAB_FILE = Path(__file__).with_name("gitlab-api.json")
HOST = "https://api.github.com"
HOSTS = {"github": HOST, "enterprise": HOST, "gitlab": "https://gitlab.com"}
NAMES = {"github": "GitHub", "enterprise": "GitHub", "gitlab": "GitLab"}
PLAIN = "application/json"
# What the description only says in words, or not at all, and GitHub answers 422 to.
MOST_COMMENT, MOST_STATUS, MOST_PAYLOAD = 65_536, 140, 65_535
USED: dict[str, tuple[str, ...]] = {
    "/user": ("get",),
    "/repos/{owner}/{repo}": ("get",),
    "/repos/{owner}/{repo}/issues/comments": ("get",),
    "/repos/{owner}/{repo}/pulls/comments": ("get",),
    "/repos/{owner}/{repo}/issues/comments/{comment_id}": ("get", "patch", "delete"),
    "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions": ("post",),
    "/repos/{owner}/{repo}/issues/{issue_number}/comments": ("get", "post"),
    "/repos/{owner}/{repo}/pulls/comments/{comment_id}": ("get",),
    "/repos/{owner}/{repo}/pulls/comments/{comment_id}/reactions": ("post",),
    "/repos/{owner}/{repo}/pulls/{pull_number}/comments": ("get",),
    "/repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}": ("get",),
    "/repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers": ("post",),
    "/repos/{owner}/{repo}/comments/{comment_id}": ("get", "patch", "delete"),
    "/repos/{owner}/{repo}/comments/{comment_id}/reactions": ("post",),
    "/repos/{owner}/{repo}/commits/{commit_sha}/comments": ("get", "post"),
    "/repos/{owner}/{repo}/commits/{commit_sha}/pulls": ("get",),
    "/repos/{owner}/{repo}/collaborators/{username}/permission": ("get",),
    "/repos/{owner}/{repo}/commits/{ref}/status": ("get",),
    "/repos/{owner}/{repo}/commits/{ref}/check-runs": ("get",),
    "/repos/{owner}/{repo}/check-runs": ("post",),
    "/repos/{owner}/{repo}/check-runs/{check_run_id}": ("patch",),
    "/repos/{owner}/{repo}/pulls": ("get",),
    "/repos/{owner}/{repo}/pulls/{pull_number}": ("get",),
    "/repos/{owner}/{repo}/statuses/{sha}": ("post",),
    "/repos/{owner}/{repo}/actions/workflows/{workflow_id}": ("get",),
    "/repos/{owner}/{repo}/actions/workflows/{workflow_id}/dispatches": ("post",),
    "/repos/{owner}/{repo}/actions/secrets": ("get",),
    "/repos/{owner}/{repo}/dispatches": ("post",),
}
EXPLAINS = frozenset(
    ("description", "summary", "example", "examples", "externalDocs", "tags", "operationId", "x-github")
)
# Their replies are long, and we read four fields of them: those are enough to hold our reading to.
READ = {
    "full-repository": ("default_branch", "full_name", "id", "name", "permissions"),
    "pull-request": ("number", "state", "html_url", "head", "base", "user"),
    "pull-request-simple": ("number", "state", "html_url", "head", "base", "user"),
    "commit-comment": ("id", "body", "user", "created_at", "updated_at", "html_url", "commit_id"),
    "pull-request-review-comment": (
        *("id", "body", "user", "created_at", "updated_at", "html_url", "commit_id"),
        *("path", "pull_request_url", "pull_request_review_id"),
    ),
    "pull-request-review": ("id", "state", "submitted_at"),
    "check-run": (
        "id",
        "name",
        "head_sha",
        "external_id",
        "status",
        "output",
        "details_url",
    ),  # a conclusion may be null, whatever it says
    "workflow": ("id", "name", "path", "state"),
    "actions-secret": ("name",),
    "issue-comment": ("id", "body", "user", "created_at", "updated_at", "html_url", "issue_url"),
    "private-user": ("login", "id", "type", "user_view_type"),
    "public-user": ("login", "id", "type", "user_view_type"),
    "simple-user": ("login", "id", "type"),
    "nullable-simple-user": ("login", "id", "type"),
    "repository": ("full_name", "id", "name"),
    "repository-collaborator-permission": ("permission", "role_name"),
    "status": ("id", "state", "context", "description", "target_url"),
    "combined-commit-status": ("state", "statuses"),
    "simple-commit-status": ("state", "context", "description", "target_url"),
    "reaction": ("id", "content"),
}


def subset(whole: Mapping[str, Any]) -> dict[str, Any]:
    """The operations that we use, with the components that they need, and nothing that only explains."""
    paths = {
        path: {method: operation(whole["paths"][path][method]) for method in methods}
        for path, methods in USED.items()
    }
    components: dict[str, dict[str, Any]] = {}
    wanted = refs_in(paths)
    while wanted:
        ref = wanted.pop()
        _, _, kind, name = ref.split("/")
        if name in components.get(kind, {}):
            continue
        found = kept(whole["components"][kind][name])
        if kind == "schemas" and name in READ:
            found = narrowed(found, READ[name])
        components.setdefault(kind, {})[name] = found
        wanted |= refs_in(found)
    ordered = {kind: dict(sorted(items.items())) for kind, items in sorted(components.items())}
    info = {
        "title": "GitHub's REST API, a part",
        "version": whole["info"]["version"],
        "license": whole["info"]["license"],
    }
    return {
        "openapi": whole["openapi"],
        "info": info,
        "servers": [{"url": HOST}],
        "paths": paths,
        "components": ordered,
    }


def operation(found: Mapping[str, Any]) -> dict[str, Any]:
    slim = {name: kept(found[name]) for name in ("parameters", "requestBody") if name in found}
    good = {code: kept(reply) for code, reply in found["responses"].items() if code.startswith("2")}
    for reply in good.values():
        reply.pop("headers", None)
        reply["description"] = "done"
    return {**slim, "responses": good}


def kept(item: Any, *, names: bool = False) -> Any:
    """Without what only explains. `names`: the keys are somebody's properties, not the language's words."""
    if isinstance(item, dict):
        return {
            key: kept(value, names=key == "properties")
            for key, value in item.items()
            if names or (key not in EXPLAINS and not key.startswith("x-"))
        }
    return [kept(value) for value in item] if isinstance(item, list) else item


def narrowed(schema: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    inside = {name: schema["properties"][name] for name in names if name in schema["properties"]}
    needed = [name for name in schema.get("required", []) if name in inside]
    for end in ("head", "base"):
        if end in inside:
            inside[end] = narrowed_end(inside[end])
    return {
        **{key: value for key, value in schema.items() if key != "required"},
        "properties": inside,
        "required": needed,
    }


def narrowed_end(end: dict[str, Any]) -> dict[str, Any]:
    names = ("ref", "sha", "repo")
    repo = {
        "type": "object",
        "nullable": True,
        "properties": {"full_name": {"type": "string"}},
        "required": ["full_name"],
    }
    inside = {name: end["properties"][name] for name in names}
    return {"type": "object", "properties": {**inside, "repo": repo}, "required": list(names)}


def refs_in(item: Any) -> set[str]:
    if isinstance(item, dict):
        own = {item["$ref"]} if isinstance(item.get("$ref"), str) else set()
        return own.union(*(refs_in(value) for value in item.values()), set())
    return set().union(*(refs_in(value) for value in item)) if isinstance(item, list) else set()


def differing(enterprise: Mapping[str, Any], hosted: Mapping[str, Any]) -> dict[str, Any]:
    """The operations that Enterprise Server describes otherwise; what both have in common is one and the same."""
    paths: dict[str, dict[str, Any]] = {}
    for path, methods in enterprise["paths"].items():
        for method, found in methods.items():
            if found != hosted["paths"][path][method]:
                paths.setdefault(path, {})[method] = found
    for kind, items in enterprise["components"].items():
        for name, found in items.items():
            assert found == hosted["components"][kind][name], f"{kind} {name} differ too"
    return {"info": enterprise["info"], "paths": paths}


def write(package: Path) -> None:
    """Extract them anew from the npm package's folder."""
    hosted, enterprise = (subset(read(package, name)) for name in ("api.github.com", "ghes-3.19"))
    for place, value in ((FILE, hosted), (ENTERPRISE_FILE, differing(enterprise, hosted))):
        place.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def write_graph(package: Path) -> None:
    """The same of the schema of GraphQL."""
    said = json.loads((package / "schema.json").read_text(encoding="utf-8"))
    graph.FILE.write_text(json.dumps(graph.subset(said), indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read(package: Path, name: str) -> Any:
    return json.loads((package / f"generated/{name}.json").read_text(encoding="utf-8"))


# holding requests and replies to it


@cache
def written(kind: str = "github") -> dict[str, Any]:
    """The description of github.com, of Enterprise Server, or of GitLab (`gitlab_api`)."""
    place = GITLAB_FILE if kind == "gitlab" else FILE
    said: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    if kind == "enterprise":
        other = json.loads(ENTERPRISE_FILE.read_text(encoding="utf-8"))
        for path, methods in other["paths"].items():
            said["paths"][path] |= methods
    return said


@cache
def description(kind: str = "github") -> OpenAPI:
    """Loaded once."""
    return OpenAPI.from_dict(written(kind))


def hold(
    method: str, target: str, headers: Mapping[str, str], body: bytes, kind: str = "github"
) -> MockRequest:
    """The request, found valid; anything else raises."""
    parts = urlsplit(target)
    request = MockRequest(
        HOSTS[kind],
        method.lower(),
        parts.path,
        args=dict(parse_qsl(parts.query, keep_blank_values=True)),
        headers=dict(headers),
        data=body or None,
        content_type=headers.get("Content-Type", PLAIN),
    )
    description(kind).validate_request(request)
    refuse_unknown(request, kind)
    if kind != "gitlab":
        refuse_long(body)
    return request


def refuse_unknown(request: MockRequest, kind: str = "github") -> None:
    """A parameter or field that the description does not know would be ignored by the forge, and we would not notice."""
    forge = NAMES[kind]
    found = description(kind).unmarshal_request(request)
    strange = set(request.parameters.query) - set(found.parameters.query)
    assert not strange, f"{forge} knows no parameter {strange} of {request.method} {request.path}"
    if request.body:
        said = operation_of(request.method, request.path, kind)
        assert "requestBody" in said, f"{forge} takes no body with {request.method} {request.path}"
        schema = said["requestBody"]["content"][PLAIN]["schema"]
        fields = strange_fields(json.loads(request.body), schema, kind)
        assert not fields, f"{forge} knows no field {fields} of {request.method} {request.path}"


def operation_of(method: str, path: str, kind: str) -> dict[str, Any]:
    """Of two that fit, that with fewer names left open."""
    fitting = [
        (pattern.count("{"), methods[method])
        for pattern, methods in written(kind)["paths"].items()
        if method in methods and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", pattern), path)
    ]
    return dict(min(fitting, key=lambda one: one[0])[1])


def strange_fields(value: Any, schema: Mapping[str, Any], kind: str) -> set[str]:
    """The names in a body that its schema does not have, however deep; where it says that any are taken, none is strange."""
    schemas = list(alternatives(schema, kind))
    if isinstance(value, list):
        inside = [one["items"] for one in schemas if "items" in one]
        return set().union(*(strange_fields(item, one, kind) for item in value for one in inside[:1]))
    if not isinstance(value, dict) or any(one.get("additionalProperties") for one in schemas):
        return set()
    if not any("properties" in one for one in schemas):  # of which nothing is said
        return set()
    known: dict[str, Any] = {}
    for one in schemas:
        known |= one.get("properties", {})
    deeper = (strange_fields(item, known[name], kind) for name, item in value.items() if name in known)
    return (set(value) - set(known)).union(*deeper)


def alternatives(schema: Mapping[str, Any], kind: str) -> Iterator[Mapping[str, Any]]:
    if "$ref" in schema:
        *_, place, name = schema["$ref"].split("/")
        schema = written(kind)["components"][place][name]
    yield schema
    for word in ("allOf", "anyOf", "oneOf"):
        for one in schema.get(word, []):
            yield from alternatives(one, kind)


def refuse_long(body: bytes) -> None:
    """GitHub refuses what is longer; a payload is counted as it is sent."""
    said = json.loads(body) if body else {}
    for name, most in (("body", MOST_COMMENT), ("description", MOST_STATUS)):
        assert len(said.get(name, "")) <= most, f"{name} has {len(said[name])} characters, more than {most}"
    payload = said.get("client_payload") or said.get("inputs")
    assert payload is None or len(json.dumps(payload)) <= MOST_PAYLOAD, "the payload is too large"


def hold_reply(request: MockRequest, status: int, body: bytes, kind: str = "github") -> None:
    description(kind).validate_response(request, MockResponse(body, status_code=status, content_type=PLAIN))
