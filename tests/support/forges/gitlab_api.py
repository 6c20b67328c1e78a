"""Test bed: GitLab's own OpenAPI description, the part that a gate needs. Each request of ours is held to it, and each reply of
the stand-in to us.

`gitlab-api.json` is cut by `subset` out of `doc/api/openapi/openapi_v3.yaml` of GitLab's repository. `gitlab-api.md` beside it says
whose it is, under which licence, and what was cut. In `tests`, with that file at hand, it is made anew by
`python -m support.forges.gitlab_api openapi_v3.yaml`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import yaml
from openapi_schema_validator import OAS30Validator, oas30_format_checker

from . import description
from .description import GITLAB_FILE, PLAIN, kept, narrowed, refs_in

KIND = "gitlab"
PROJECT = "/api/v4/projects/{id}"
NOTES = f"{PROJECT}/merge_requests/{{noteable_id}}/notes"
PAGES = ("page", "per_page")
# What we send with each operation besides what it requires. The description has to know it, and the tests to send it.
USED: dict[str, dict[str, tuple[str, ...]]] = {
    "/api/v4/user": {"get": ()},
    "/api/v4/users": {"get": ("username",)},
    "/api/v4/users/{id}": {"get": ()},
    PROJECT: {"get": ()},
    f"{PROJECT}/members/all/{{user_id}}": {"get": ()},
    NOTES: {"get": ("sort", "order_by", *PAGES), "post": ()},
    f"{NOTES}/{{note_id}}": {"get": (), "put": ("body",), "delete": ()},
    f"{PROJECT}/merge_requests/{{merge_request_iid}}/notes/{{note_id}}/award_emoji": {"post": ()},
    f"{PROJECT}/merge_requests": {"get": ("state", "source_branch", *PAGES)},
    f"{PROJECT}/merge_requests/{{merge_request_iid}}": {"get": (), "put": ("reviewer_ids",)},
    f"{PROJECT}/repository/commits/{{sha}}/merge_requests": {"get": PAGES},
    f"{PROJECT}/repository/commits/{{sha}}/statuses": {"get": ("name", *PAGES)},
    f"{PROJECT}/statuses/{{sha}}": {"post": ("name", "description", "target_url")},
    f"{PROJECT}/pipeline": {"post": ("inputs",)},
}
# What we ask for that it does not describe, and why. One that it gets is held to it: `subset` fails until it is taken from here.
LACKING = {
    "POST /api/graphql": "GraphQL describes itself; only there GitLab tells when a note was edited",
}
# What is read of replies. Those of other shapes are not held: a whole merge request, and a pipeline.
READ = {
    "APIEntitiesUserPublic": ("id", "username", "name", "state", "bot"),
    "APIEntitiesUserBasic": ("id", "username", "name", "state"),
    "APIEntitiesUserProfile": ("id", "username", "name", "state", "bot"),
    "APIEntitiesMember": ("id", "username", "name", "state", "locked", "access_level", "membership_state"),
    "APIEntitiesProjectsWithAccessAndCatalogSetting": (
        *("id", "path_with_namespace", "default_branch", "only_allow_merge_if_pipeline_succeeds"),
        *("ci_pipeline_variables_minimum_override_role", "ci_push_repository_for_job_token_allowed"),
    ),
    "APIEntitiesNote": (
        *("id", "type", "body", "author", "created_at", "updated_at", "system", "internal", "confidential"),
        *("noteable_type", "noteable_iid"),
    ),
    "APIEntitiesMergeRequestAuthor": ("id", "username", "name", "state"),
    "APIEntitiesMergeRequestBasic": (
        *("iid", "project_id", "state", "source_branch", "target_branch", "sha", "web_url", "updated_at"),
        *("source_project_id", "target_project_id", "author", "reviewers"),
    ),
    "APIEntitiesCommitStatus": ("id", "sha", "name", "status", "description", "target_url"),
    "APIEntitiesAwardEmoji": ("id", "name", "user", "awardable_type"),
}
SCHEMAS = "#/components/schemas/"
NOTE, ACCOUNT = {"$ref": f"{SCHEMAS}APIEntitiesNote"}, {"$ref": f"{SCHEMAS}APIEntitiesUserBasic"}
# Where GitLab answers otherwise than it describes: what that says, and what GitLab sends. It says of nothing that it may be null.
OTHER_FIELDS: dict[tuple[str, str], tuple[Any, Any]] = {
    ("APIEntitiesMember", "access_level"): ({"type": "string"}, {"type": "integer"}),
    ("APIEntitiesMergeRequestBasic", "reviewers"): (ACCOUNT, {"type": "array", "items": ACCOUNT}),
}
OTHER_REPLIES: dict[str, tuple[Any, Any]] = {f"GET {NOTES}": (NOTE, {"type": "array", "items": NOTE})}
OTHER_CODES = {
    f"POST {PROJECT}/statuses/{{sha}}": ("200", "201"),
    f"DELETE {NOTES}/{{note_id}}": ("200", "204"),
}


class NotAsDescribed(ValueError):
    """The description, and what stands here about it, do not go together."""


# cutting it out


def subset(whole: Mapping[str, Any]) -> dict[str, Any]:
    """The operations that we use, with what we send and what we read of them, and nothing that only explains."""
    for name in LACKING:
        method, _, path = name.partition(" ")
        if method.lower() in whole["paths"].get(path, {}):
            raise NotAsDescribed(f"GitLab describes {name} now: take it from LACKING, and add it to USED")
    paths = {
        path: {method: operation(whole, method, path, names) for method, names in methods.items()}
        for path, methods in USED.items()
    }
    schemas: dict[str, Any] = {}
    wanted = refs_in(paths)
    while wanted:
        name = wanted.pop().removeprefix(SCHEMAS)
        if name not in schemas:
            schemas[name] = only(whole["components"]["schemas"][name], READ[name])
            wanted |= refs_in(schemas[name])
    info = {
        "title": "GitLab REST API, a part",
        **{name: whole["info"][name] for name in ("version", "license")},
    }
    cut = {
        "openapi": whole["openapi"],
        "info": kept(info),
        "servers": [{"url": description.HOSTS[KIND]}],
        "paths": paths,
        "components": {"schemas": dict(sorted(schemas.items()))},
    }
    refuse_mended(cut)
    return cut


def operation(whole: Mapping[str, Any], method: str, path: str, names: tuple[str, ...]) -> dict[str, Any]:
    found = whole["paths"].get(path, {}).get(method)
    if found is None:
        raise NotAsDescribed(f"GitLab does not describe {method.upper()} {path}")
    given = [one for one in found.get("parameters", []) if one["required"] or one["name"] in names]
    slim: dict[str, Any] = {"parameters": [kept(one) for one in given]} if given else {}
    known = {one["name"] for one in given}
    if "requestBody" in found:
        schema = resolved(whole, found["requestBody"]["content"][PLAIN]["schema"])
        taken = tuple(one for one in schema["properties"] if one in (*names, *schema.get("required", ())))
        known |= set(taken)
        body = only(schema, taken)
        slim["requestBody"] = {
            "required": found["requestBody"].get("required", False),
            "content": {PLAIN: {"schema": body}},
        }
    if unknown := set(names) - known:
        raise NotAsDescribed(f"GitLab describes no {sorted(unknown)} of {method.upper()} {path}")
    good = {code: reply(said) for code, said in found["responses"].items() if code.startswith("2")}
    return {**slim, "responses": good}


def only(schema: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    found = narrowed(kept(schema), names)
    return {key: value for key, value in found.items() if value or key != "required"}


def resolved(whole: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in schema:
        return schema
    found: Mapping[str, Any] = whole["components"]["schemas"][schema["$ref"].removeprefix(SCHEMAS)]
    return found


def reply(said: Mapping[str, Any]) -> dict[str, Any]:
    schema = said.get("content", {}).get(PLAIN, {}).get("schema", {})
    held = {one.removeprefix(SCHEMAS) for one in refs_in(schema)} & set(READ)
    return {"description": "done", **({"content": {PLAIN: {"schema": kept(schema)}}} if held else {})}


def refuse_mended(cut: Mapping[str, Any]) -> None:
    """What stands here to be described wrongly is so still."""
    for (name, field), (says, _) in OTHER_FIELDS.items():
        if cut["components"]["schemas"][name]["properties"][field] != says:
            raise NotAsDescribed(f"GitLab describes {field} of {name} otherwise now: look at OTHER_FIELDS")
    for name, (says, _) in OTHER_REPLIES.items():
        if [one["content"][PLAIN]["schema"] for one in responses(cut, name).values()] != [says]:
            raise NotAsDescribed(f"GitLab describes the reply of {name} otherwise now: look at OTHER_REPLIES")
    for name, (says, _) in OTHER_CODES.items():
        if set(responses(cut, name)) != {says}:
            raise NotAsDescribed(f"GitLab describes another status of {name} now: look at OTHER_CODES")


def responses(cut: Mapping[str, Any], name: str) -> dict[str, Any]:
    method, _, path = name.partition(" ")
    found: dict[str, Any] = cut["paths"][path][method.lower()]["responses"]
    return found


# holding requests and replies to it


def hold(method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[str, set[str]]:
    """Which operation a request is, and what was sent with it; a request that the description does not have raises."""
    parts = urlsplit(target)
    name = f"{method} {parts.path}"
    if name in LACKING:
        return name, set()
    description.hold(method, target, headers, body, KIND)
    sent = {key for key, _ in parse_qsl(parts.query, keep_blank_values=True)}
    return operation_name(method, parts.path), sent | (set(json.loads(body)) if body else set())


def operation_name(method: str, path: str) -> str:
    """Of two that fit, that with fewer names left open."""
    patterns = description.written(KIND)["paths"]
    fitting = [one for one in patterns if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", one), path)]
    return f"{method} {min(fitting, key=lambda one: one.count('{'))}"


def hold_reply(name: str, status: int, value: Any) -> None:
    """A good reply of one operation: its status, each field by its name, and each value by its kind."""
    found = responses(description.written(KIND), name) if name not in LACKING else {}
    says, sends = OTHER_CODES.get(name, (str(status), str(status)))
    code = says if str(status) == sends else ""
    assert not found or code in found, f"GitLab does not answer {status} to {name}"
    schema = found.get(code, {}).get("content", {}).get(PLAIN, {}).get("schema")
    if schema is not None and value is not None:
        wrong = [f"{one.json_path}: {one.message}" for one in checker(name).iter_errors(value)]
        assert not wrong, f"GitLab's reply to {name} is another: {'; '.join(wrong)}"


@cache
def checker(name: str) -> OAS30Validator:
    (described,) = responses(description.written(KIND), name).values()
    _, schema = OTHER_REPLIES.get(name, (None, described["content"][PLAIN]["schema"]))
    return OAS30Validator(closed(schema), format_checker=oas30_format_checker)


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """As GitLab sends it: no other fields, and any of them null."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(SCHEMAS)
        said = description.written(KIND)["components"]["schemas"][name]
        fields = dict(named_fields(name, said["properties"]))
        return {"type": "object", "properties": fields, "additionalProperties": False, "nullable": True}
    inside = {"items": closed(schema["items"])} if "items" in schema else {}
    return {**schema, **inside, "nullable": True}


def named_fields(name: str, properties: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for field, described in properties.items():
        yield field, closed(OTHER_FIELDS.get((name, field), (None, described))[1])


if __name__ == "__main__":
    everything = yaml.safe_load(Path(sys.argv[1]).read_text(encoding="utf-8"))
    GITLAB_FILE.write_text(json.dumps(subset(everything), indent=1, sort_keys=True) + "\n", encoding="utf-8")
