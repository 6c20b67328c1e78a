"""GitLab's webhooks: a secret that comes along, or a signature; what they say is where to look, and no more."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import pytest

from gitgate.surfaces.forge.hosts import Commented, Nothing, parse_event
from gitgate.surfaces.forge.hosts.gitlab import HOOKS, against_delivery
from gitgate.surfaces.forge.webhook import Receiver, Seen
from support.forges.gitlab import GitLabForge
from support.resuming import Agent, until
from support.servers import WEBHOOK_SECRET as SECRET
from support.servers import serving

from .conftest import THREAD, Team

# Signed by the reference library of Standard Webhooks, whose signature GitLab's is.
KEY = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
BODY, AT = b'{"object_kind": "note"}', 1_780_000_000
SIGNED = {
    "webhook-id": "msg_1",
    "webhook-timestamp": str(AT),
    "webhook-signature": "v1,saVKh9HvF8EnVnREwNysRCG/TdCmpWsysUuXLA1+LWU=",
}


def event_of(**changed: Any) -> dict[str, Any]:
    note = {"id": 312, "note": "/answer Postgres", "noteable_type": "MergeRequest", "action": "create"}
    return {
        "object_kind": "note",
        "project": {"path_with_namespace": "group/inner/project"},
        "object_attributes": note | {"system": False, "internal": False} | changed,
        "merge_request": {"iid": 7},
    }


def parsed(event: dict[str, Any]) -> object:
    return parse_event(json.dumps(event).encode(), received=True)


def test_what_a_note_says() -> None:
    """Its number, its merge request's, and the project; nothing else of it is taken."""
    assert parsed(event_of()) == Commented(312, "group/inner/project", thread=7)
    assert parsed(event_of(note="Postgres")) == Commented(
        312, "group/inner/project", words="Postgres", thread=7
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"action": "update"},
        {"noteable_type": "Issue"},
        {"noteable_type": "Commit"},
        {"system": True},
        {"internal": True},
        {"id": "312"},
        {"id": True},
        {"id": -1},
        {"note": "what a nice change, and it has more words than any option"},
        {"note": None},
    ],
)
def test_what_is_none_of_our_business(changed: dict[str, Any]) -> None:
    """Edits, other places, notes that not everybody reads, numbers that are none, and talk."""
    assert isinstance(parsed(event_of(**changed)), Nothing)
    assert isinstance(parsed(event_of() | {"merge_request": {"iid": "7"}}), Nothing)


def test_a_secret_token_is_compared() -> None:
    """Whole."""
    assert against_delivery(SECRET, {"x-gitlab-token": SECRET}, BODY) == ""
    for given in ({}, {"x-gitlab-token": ""}, {"x-gitlab-token": SECRET[:-1]}, {"x-gitlab-token": "ö\udcff"}):
        assert against_delivery(SECRET, given, BODY) == "the secret token does not fit"


def test_a_signature_is_of_this_body_and_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """As others sign it; the secret itself, sent along, is no signature, and an old delivery counts no more."""
    monkeypatch.setattr("gitgate.surfaces.forge.hosts.gitlab.time.time", lambda: AT + 200.0)
    assert against_delivery(KEY, SIGNED, BODY) == ""
    both = SIGNED | {"webhook-signature": f"v1,AAAA {SIGNED['webhook-signature']}"}
    assert against_delivery(KEY, both, BODY) == ""
    wrong = [
        (SIGNED, BODY + b" "),
        (SIGNED | {"webhook-timestamp": str(AT + 1)}, BODY),
        (SIGNED | {"webhook-id": "msg_2"}, BODY),
        (SIGNED | {"webhook-signature": "v1,"}, BODY),
        ({"x-gitlab-token": KEY}, BODY),
    ]
    for headers, body in wrong:
        assert against_delivery(KEY, headers, body) == "the signature does not fit"
    monkeypatch.setattr("gitgate.surfaces.forge.hosts.gitlab.time.time", lambda: AT + 301.0)
    assert "too old" in against_delivery(KEY, SIGNED, BODY)


def test_the_receiver_takes_notes_alone(tmp_path: Path) -> None:
    """Each once; a delivery by GitHub's signature is a stranger's."""
    receiver = Receiver(SECRET, Seen(tmp_path / "seen"), HOOKS)
    body = json.dumps(event_of()).encode()
    ours = {"x-gitlab-token": SECRET, "x-gitlab-event": "Note Hook", "content-type": "application/json"}
    assert receiver.take(ours, body) == (202, "taken")
    assert receiver.take(ours, body) == (202, "taken before")
    assert receiver.take(ours | {"x-gitlab-event": "Push Hook"}, body) == (202, "not for us")
    assert receiver.take(ours | {"x-gitlab-token": "another"}, body)[0] == 401
    assert (
        receiver.take({"x-hub-signature-256": "sha256=0", "x-github-event": "issue_comment"}, body)[0] == 401
    )
    assert receiver.events.get_nowait() == Commented(312, "group/inner/project", thread=7)


def post(place: tuple[str, int], event: dict[str, Any], token: str = SECRET) -> int:
    connection = http.client.HTTPConnection(*place, timeout=30)
    headers = {"X-Gitlab-Token": token, "X-Gitlab-Event": "Note Hook", "Content-Type": "application/json"}
    connection.request("POST", "/", json.dumps(event), headers)
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.slow
def test_a_webhook_answers_a_gate_and_starts_its_agent(team: Team, forge: GitLabForge, agent: Agent) -> None:
    """A note, its webhook, the answer in the shared repository, the agent started here. A delivery with another secret does
    nothing, and one that says of a note what GitLab does not is taken at GitLab's word.
    """
    gate = team.ask("Which?")
    here = team.job()
    here.git("config", "gitgate.resumeHere", "true")
    with serving(here.path, "--sweep", "0s") as place:
        talk = forge.write(THREAD, "ada", "I do not know yet")
        assert post(place, forge.event(talk | {"body": "/answer MySQL"})) == 202
        note = forge.write(THREAD, "ada", "/answer Postgres")
        assert post(place, forge.event(note), "another secret of that length") == 401
        assert post(place, forge.event(note)) == 202
        until(lambda: agent.ends == [gate])
        until(lambda: "### ✅ Answered, and acted on" in team.shown(gate))
    assert agent.starts == [gate]
    now = team.gate(gate)
    assert (now["state"], now["answer"]["values"]) == ("resumed", {"answer": "Postgres"})
