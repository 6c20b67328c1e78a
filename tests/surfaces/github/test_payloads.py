"""Real payloads: GitHub's own examples of events, variants of them that its schemas accept, and its whole API description.

They come with npm packages (@octokit/openapi, webhooks-examples, webhooks-schemas), whose folder is in GITGATE_TEST_OCTOKIT.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from forges import description
from gitgate.errors import Usage
from gitgate.surfaces.github.events import Commented, Dispatched, Nothing, parse_event, read_event

from .conftest import THREAD, Team

pytestmark = [pytest.mark.slow, pytest.mark.octokit]

FOLDER = os.environ.get("GITGATE_TEST_OCTOKIT", "")  # read before a test's seal takes it away
NOT_SET = "GITGATE_TEST_OCTOKIT names no folder with @octokit's packages: see octokit_tests in .ci/run"


@cache
def package(name: str) -> Path:
    place = Path(FOLDER) / name
    assert FOLDER, NOT_SET
    assert place.is_dir(), NOT_SET
    return place


@cache
def examples() -> list[tuple[str, dict[str, Any]]]:
    listed = json.loads(
        (package("webhooks-examples") / "api.github.com/index.json").read_text(encoding="utf-8")
    )
    return [(event["name"], example) for event in listed for example in event["examples"]]


@cache
def validator() -> jsonschema.Draft7Validator:
    schema = json.loads((package("webhooks-schemas") / "schema.json").read_text(encoding="utf-8"))
    wanted = {"$ref": "#/definitions/issue_comment$created", "definitions": schema["definitions"]}
    return jsonschema.Draft7Validator(wanted)


def created() -> list[dict[str, Any]]:
    """Those of GitHub's own that its own schema accepts."""
    found = [e for name, e in examples() if name == "issue_comment" and e["action"] == "created"]
    valid = [example for example in found if validator().is_valid(example)]
    assert valid
    return valid


def test_the_description_is_githubs_own() -> None:
    """What is committed is what the real package gives."""
    whole = description.read(package("openapi"), "api.github.com")
    assert description.subset(whole) == json.loads(description.FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("version", ["3.17", "3.18", "3.19"])
def test_enterprise_server_describes_the_same_but_for_one_call(version: str) -> None:
    """What it does otherwise is in the other file, whichever version it is."""
    hosted = json.loads(description.FILE.read_text(encoding="utf-8"))
    own = description.subset(description.read(package("openapi"), f"ghes-{version}"))
    other = json.loads(description.ENTERPRISE_FILE.read_text(encoding="utf-8"))
    assert description.differing(own, hosted)["paths"] == other["paths"]


def test_every_event_is_read_or_left() -> None:
    """Of all events of GitHub's, whatever their shape, none is an answer but a new comment that says something."""
    assert len(examples()) > 200
    for name, example in examples():
        try:
            said = read_event(example)
        except Usage:
            continue
        assert isinstance(said, Nothing) or name in {"repository_dispatch", "workflow_dispatch"}, name


def on_pull_request(event: dict[str, Any]) -> None:
    url = "https://api.github.com/repos/Codertocat/Hello-World/pulls/1"
    event["issue"]["pull_request"] = {"url": url, "html_url": url, "diff_url": url, "patch_url": url}


def by_bot(event: dict[str, Any]) -> None:
    event["sender"] |= {"type": "Bot", "login": "helper[bot]"}
    event["comment"]["user"] |= {"type": "Bot", "login": "helper[bot]"}


def huge(event: dict[str, Any]) -> None:
    event["comment"]["body"] = "/answer " + "x" * 65_528


def hostile(event: dict[str, Any]) -> None:
    event["comment"]["body"] = '/answer "; $(id) `id` ${{ secrets.X }} \u202e \x1b[31m <!-- x --> @everyone'


def of_nobody(event: dict[str, Any]) -> None:
    event["comment"]["author_association"] = "NONE"


VARIANTS: list[tuple[Callable[[dict[str, Any]], None], type]] = [
    (on_pull_request, Commented),
    (by_bot, Nothing),
    (huge, Commented),
    (hostile, Commented),
    (of_nobody, Commented),
]


@pytest.mark.parametrize(("change", "kind"), VARIANTS, ids=lambda value: getattr(value, "__name__", ""))
def test_variants_of_real_comments(change: Callable[[dict[str, Any]], None], kind: type) -> None:
    """GitHub's schema accepts each, and only numbers and names are taken from it."""
    for example in created():
        event = copy.deepcopy(example)
        event["comment"]["body"] = "/approve"
        change(event)
        validator().validate(event)
        said = parse_event(json.dumps(event).encode())
        assert isinstance(said, kind)
        if isinstance(said, Commented):
            assert said == Commented(event["comment"]["id"], event["repository"]["full_name"])


def test_real_comments_on_commits_are_told_from_those_of_reviews() -> None:
    """Their numbers are of another kind, so which of them it is must be right; a review's is not for us."""
    found: dict[str, set[tuple[type, bool]]] = {}
    for name, example in examples():
        if name in ("commit_comment", "pull_request_review_comment") and example["action"] == "created":
            event = copy.deepcopy(example)
            event["comment"]["body"] = "/approve"
            said = parse_event(json.dumps(event).encode())
            found.setdefault(name, set()).add((type(said), getattr(said, "on_commit", False)))
    assert found == {"commit_comment": {(Commented, True)}, "pull_request_review_comment": {(Nothing, False)}}


def test_a_real_dispatch_is_read() -> None:
    """Of a workflow and of the repository: the gate, the commit and the sender, wherever they stand."""
    gate, commit, seen = "7k2fw9c3ab", "a" * 40, set()
    for name, example in examples():
        if name not in ("repository_dispatch", "workflow_dispatch"):
            continue
        event = copy.deepcopy(example)
        event["inputs" if name == "workflow_dispatch" else "client_payload"] = {
            "gate": gate,
            "commit": commit,
        }
        said = parse_event(json.dumps(event).encode())
        assert said == Dispatched(
            gate,
            commit,
            event["sender"]["login"],
            event["sender"]["type"] != "User",
            event["repository"]["full_name"],
        )
        seen.add(name)
    assert seen == {"repository_dispatch", "workflow_dispatch"}


def test_a_real_payload_becomes_an_answer(team: Team) -> None:
    """The whole payload as GitHub sends it, for a comment that is there."""
    gate = team.ask("Which?")
    comment = team.forge.write(THREAD, "ada", "/answer Postgres")
    event = copy.deepcopy(created()[0])
    on_pull_request(event)
    event["comment"] |= {"id": comment["id"], "body": comment["body"]}
    event["repository"]["full_name"] = team.forge.repository
    validator().validate(event)
    said = team.cli.quick(
        "github", "accept", str(team.event_file(event)), "--json", cwd=team.job().path, code=0
    )
    assert said.json["outcome"] == "answered"
    assert team.gate(gate)["answer"]["by"].startswith("ada <")
