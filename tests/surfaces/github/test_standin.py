"""The stand-in is as strict as GitHub, or stricter: what GitHub would ignore, refuse or cut off fails the test that sent it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest
from openapi_core.exceptions import OpenAPIError

from support import PATIENCE
from support.forges import description
from support.forges.standin import Fault, Forge, forge_server

REPO = "/repos/team/project"
REFUSED = (AssertionError, OpenAPIError)  # by us, or by the description itself
DISPATCHES = f"{REPO}/actions/workflows/gitgate.yml/dispatches"


def hold(method: str, target: str, body: object = None, kind: str = "github") -> None:
    data = b"" if body is None else json.dumps(body).encode()
    description.hold(method, target, {"Content-Type": "application/json"}, data, kind)


GOOD: list[tuple[str, str, Any]] = [
    ("POST", f"{REPO}/statuses/{'a' * 40}", {"state": "pending", "context": "gitgate", "description": "x" * 140}),
    ("POST", DISPATCHES, {"ref": "main", "inputs": {"gate": "x", "any": "y"}, "return_run_details": True}),
    ("POST", f"{REPO}/dispatches", {"event_type": "gitgate", "client_payload": {"gate": {"any": "x"}}}),
    ("POST", f"{REPO}/issues/7/comments", {"body": "x" * 65_536}),
    ("PATCH", f"{REPO}/issues/comments/7", {"body": "x"}),
    ("GET", f"{REPO}/pulls?state=open&head=team:feature", None),
    ("DELETE", f"{REPO}/comments/7", None),
]  # fmt: skip

BAD: list[tuple[str, str, Any]] = [
    ("POST", f"{REPO}/statuses/{'a' * 40}", {"state": "pending", "contxt": "gitgate"}),
    ("POST", f"{REPO}/statuses/{'a' * 40}", {"state": "waiting"}),
    ("POST", f"{REPO}/statuses/{'a' * 40}", {"state": "pending", "description": "x" * 141}),
    ("POST", DISPATCHES, {"ref": "main", "inptus": {"gate": "x"}}),
    ("POST", DISPATCHES, {"ref": "main", "return_run_detials": True}),
    ("POST", DISPATCHES, {"ref": "main", "inputs": {"gate": "x" * 65_536}}),
    ("POST", DISPATCHES, {"inputs": {"gate": "x"}}),
    ("POST", f"{REPO}/dispatches", {"event_type": "gitgate", "payload": {}}),
    ("POST", f"{REPO}/dispatches", {"event_type": "gitgate", "client_payload": {str(n): n for n in range(11)}}),
    ("POST", f"{REPO}/issues/7/comments", {"body": "x" * 65_537}),
    ("POST", f"{REPO}/commits/{'a' * 40}/comments", {"body": "x" * 70_000}),
    ("PATCH", f"{REPO}/issues/comments/7", {"body": "x", "title": "y"}),
    ("DELETE", f"{REPO}/comments/7", {"body": "x"}),
    ("GET", f"{REPO}/pulls?haed=team:feature", None),
    ("GET", f"{REPO}/nothing", None),
]  # fmt: skip


@pytest.mark.parametrize(("method", "target", "body"), GOOD, ids=lambda value: str(value)[:40])
def test_what_github_takes_is_held(method: str, target: str, body: Any) -> None:
    """What a schema leaves open, such as the inputs of a workflow, may have any name."""
    hold(method, target, body)


@pytest.mark.parametrize(("method", "target", "body"), BAD, ids=lambda value: str(value)[:40])
def test_what_github_does_not_know_is_refused(method: str, target: str, body: Any) -> None:
    """A field with a letter wrong would be ignored by GitHub, and we would not notice."""
    with pytest.raises(REFUSED):
        hold(method, target, body)


def test_enterprise_server_is_held_to_its_own() -> None:
    """It knows no details of a run, and ten inputs."""
    hold("POST", DISPATCHES, {"ref": "main", "inputs": {"gate": "x"}}, "enterprise")
    for body in (
        {"ref": "main", "return_run_details": True},
        {"ref": "main", "inputs": {str(n): "x" for n in range(11)}},
    ):
        hold("POST", DISPATCHES, body)
        with pytest.raises(REFUSED):
            hold("POST", DISPATCHES, body, "enterprise")


# the server


@pytest.fixture
def running() -> Iterator[Forge]:
    with forge_server() as forge:
        forge.commits["a" * 40] = []
        yield forge
        forge.broken.clear()  # each test looked


def ask(forge: Forge, method: str, path: str, body: object = None) -> tuple[int, Any]:
    connection = HTTPConnection("127.0.0.1", forge.port, timeout=PATIENCE)
    sent = None if body is None else json.dumps(body)
    headers = {"Authorization": "Bearer job-token", "Content-Type": "application/json"}
    connection.request(method, path, sent, headers)
    answer = connection.getresponse()
    said = answer.status, json.loads(answer.read() or b"null")
    connection.close()
    return said


@pytest.mark.parametrize("fault", [None, Fault(503), Fault(502, done=True)])
def test_a_request_is_held_whatever_becomes_of_it(running: Forge, fault: Fault | None) -> None:
    """A fault is no excuse: what we would send again has to be right."""
    running.issues.add(7)
    running.faults = [fault] if fault else []
    ask(running, "POST", f"{REPO}/issues/7/comments", {"body": "x", "titel": "y"})
    assert ["titel" in words for words in running.broken] == [True]


def test_what_is_not_there_is_not_found(running: Forge) -> None:
    """Threads and comments that nobody made; a number of one kind is none of the other."""
    here = running.write_on("a" * 40, "github-actions[bot]", "words")["id"]
    for method, path, body in (
        ("GET", "/issues/404/comments", None),
        ("POST", "/issues/404/comments", {"body": "x"}),
        ("PATCH", f"/issues/comments/{here}", {"body": "x"}),
        ("DELETE", f"/issues/comments/{here}", None),
        ("POST", f"/issues/comments/{here}/reactions", {"content": "eyes"}),
        ("PATCH", "/comments/404", {"body": "x"}),
        ("DELETE", "/comments/404", None),
        ("POST", "/comments/404/reactions", {"content": "eyes"}),
    ):
        assert ask(running, method, REPO + path, body)[0] == 404, path
    assert running.broken == []


def test_a_comment_on_a_commit_can_be_taken_back(running: Forge) -> None:
    """As the description says."""
    here = running.write_on("a" * 40, "github-actions[bot]", "words")["id"]
    assert ask(running, "DELETE", f"{REPO}/comments/{here}") == (204, None)
    assert ask(running, "GET", f"{REPO}/comments/{here}")[0] == 404
    assert running.broken == []
