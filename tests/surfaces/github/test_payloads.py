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

import jsonschema_rs
import pytest

from gitgate.errors import Usage
from gitgate.surfaces.forge.hosts import (
    Commented,
    Dispatched,
    Nothing,
    may_only_read,
    parse_event,
    read_event,
)
from support.forges import description, graph
from support.forges.standin import Forge
from support.testbed.command import Command
from support.testbed.repositories import Clone

from .conftest import THREAD, Team
from .test_merging import on_the_page
from .test_workflows import Place, loop_place, run_loop

__all__ = ["loop_place"]

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
def schemas() -> dict[str, Any]:
    said = json.loads((package("webhooks-schemas") / "schema.json").read_text(encoding="utf-8"))
    return dict(said["definitions"])


@cache
def validator(name: str, action: str) -> jsonschema_rs.Draft7Validator:
    """GitHub's schema of an event: `action` where each action has one of its own, else `event`."""
    wanted = {"$ref": f"#/definitions/{name}${action}", "definitions": schemas()}
    return jsonschema_rs.Draft7Validator(wanted, validate_formats=False)


def real(name: str, action: str) -> list[dict[str, Any]]:
    """Copies of those of GitHub's own that its own schema accepts: a dispatch has the word of its sender for an action."""
    found = [e for n, e in examples() if n == name and (action == "event" or e.get("action") == action)]
    valid = [copy.deepcopy(example) for example in found if validator(name, action).is_valid(example)]
    assert valid, f"no example of {name} {action} is valid"
    return valid


def test_the_description_is_githubs_own() -> None:
    """What is committed is what the real package gives."""
    whole = description.read(package("openapi"), "api.github.com")
    assert description.subset(whole) == json.loads(description.FILE.read_text(encoding="utf-8"))


def test_the_schema_of_graphql_is_githubs_own() -> None:
    """The same."""
    whole = json.loads((package("graphql-schema") / "schema.json").read_text(encoding="utf-8"))
    assert graph.subset(whole) == json.loads(graph.FILE.read_text(encoding="utf-8"))


def test_the_ruleset_on_the_page_is_one_of_githubs() -> None:
    """As its whole description has it; one with another word is none."""
    whole = description.read(package("openapi"), "api.github.com")
    post = whole["paths"]["/repos/{owner}/{repo}/rulesets"]["post"]
    schema = post["requestBody"]["content"]["application/json"]["schema"]
    held = jsonschema_rs.Draft202012Validator({**schema, "components": whole["components"]})
    ruleset = on_the_page("json")
    held.validate(ruleset)
    assert not held.is_valid({**ruleset, "enforcement": "on"})
    assert not held.is_valid({**ruleset, "rules": [{"type": "required_status"}]})


@pytest.mark.parametrize("version", ["3.17", "3.18", "3.19"])
def test_enterprise_server_describes_the_same_but_for_one_call(version: str) -> None:
    """What it does otherwise is in the other file, whichever version it is."""
    hosted = json.loads(description.FILE.read_text(encoding="utf-8"))
    own = description.subset(description.read(package("openapi"), f"ghes-{version}"))
    other = json.loads(description.ENTERPRISE_FILE.read_text(encoding="utf-8"))
    assert description.differing(own, hosted)["paths"] == other["paths"]


# events with a reply in them

REPLY = "/approve"
FOR_SOME = {"installation", "organization"}  # an App's, and those of an organisation's repository
READ = {("issue_comment", "created"), ("commit_comment", "created")}
LEFT = [
    ("issue_comment", "edited"),
    ("issue_comment", "deleted"),
    ("pull_request_review_comment", "edited"),
    ("pull_request_review_comment", "deleted"),
]
Change = Callable[[dict[str, Any]], None]


def test_every_event_is_read_or_left() -> None:
    """Of all events of GitHub's, each with a reply wherever it has room for one, a new comment alone is an answer."""
    assert len(examples()) > 200
    read = set()
    for name, example in examples():
        event = with_replies(copy.deepcopy(example))
        said = parse_event(json.dumps(event).encode())
        if name in ("repository_dispatch", "workflow_dispatch"):
            continue  # below: these examples name no gate
        by_user = event.get("sender", {}).get("type", "User") == "User"
        wanted = Commented if (name, event.get("action")) in READ and by_user else Nothing
        assert isinstance(said, wanted), (name, event.get("action"))
        if isinstance(said, Commented):
            read.add((name, event["action"]))
    assert read == READ


def with_replies(item: Any) -> Any:
    """The same, with a reply as the text of everything that has one: comments, reviews, issues, releases."""
    if isinstance(item, dict):
        return {key: REPLY if key == "body" else with_replies(value) for key, value in item.items()}
    return [with_replies(value) for value in item] if isinstance(item, list) else item


def replied(name: str, action: str) -> list[dict[str, Any]]:
    events = real(name, action)
    for event in events:
        event["comment"]["body"] = REPLY
    return events


def test_a_comment_on_the_diff_is_taken_from_a_delivery_alone() -> None:
    """Valid by GitHub's schema: in a job its event would run the workflow file of the branch itself."""
    for event in replied("pull_request_review_comment", "created"):
        validator("pull_request_review_comment", "created").validate(event)
        data = json.dumps(event).encode()
        assert isinstance(parse_event(data), Nothing)
        number, name = event["comment"]["id"], event["repository"]["full_name"]
        assert parse_event(data, received=True) == Commented(number, name, "diff")


def test_githubs_own_comment_on_the_diff_is_touched_when_its_review_is_sent() -> None:
    """So that it is later than it was begun says nothing of an edit: the review's own time does."""
    (comment,) = (one["comment"] for one in real("pull_request_review_comment", "created")[:1])
    sent = {
        e["review"]["id"]: e["review"]["submitted_at"] for n, e in examples() if n == "pull_request_review"
    }
    assert comment["updated_at"] == sent[comment["pull_request_review_id"]] > comment["created_at"]


@pytest.mark.parametrize(("name", "action"), LEFT)
def test_a_reply_that_is_not_new_or_stands_elsewhere_is_left(name: str, action: str) -> None:
    """Edited and deleted ones, and those of a review: each valid, by somebody who may write, and no answer."""
    for event in replied(name, action):
        event["comment"]["author_association"] = "OWNER"
        validator(name, action).validate(event)
        assert isinstance(parse_event(json.dumps(event).encode()), Nothing)


def on_pull_request(event: dict[str, Any]) -> None:
    url = "https://api.github.com/repos/Codertocat/Hello-World/pulls/1"
    if "issue" in event:
        event["issue"]["pull_request"] = {"url": url, "html_url": url, "diff_url": url, "patch_url": url}


def by_bot(event: dict[str, Any]) -> None:
    for account in (event["sender"], event["comment"]["user"]):
        account |= {"type": "Bot", "login": "helper[bot]"}


def by_organisation(event: dict[str, Any]) -> None:
    event["sender"] |= {"type": "Organization", "login": "acme"}


def huge(event: dict[str, Any]) -> None:
    event["comment"]["body"] = "/answer " + "x" * 65_528


def hostile(event: dict[str, Any]) -> None:
    event["comment"]["body"] = (
        '/answer "; $(id) `id` ${{ secrets.X }} \u202e \x1b[31m \ud800 <!-- x --> @everyone'
    )


def hostile_names(event: dict[str, Any]) -> None:
    """What is quoted from an event is a number and a name, which is only compared."""
    event["sender"]["login"] = "$(id)\ud800\x1b[31m"
    event["comment"]["user"]["login"] = "../../../x?y=1#"


def of_nobody(event: dict[str, Any]) -> None:
    event["comment"]["author_association"] = "NONE"


def talk(event: dict[str, Any]) -> None:
    event["comment"]["body"] = "Looks good to me, I would approve that. " * 8


def words(event: dict[str, Any]) -> None:
    """They may be the name of an option: only the gates tell."""
    event["comment"]["body"] = "Looks good to me"


VARIANTS: list[tuple[Change, type]] = [
    (on_pull_request, Commented),
    (by_bot, Nothing),
    (by_organisation, Nothing),
    (huge, Commented),
    (hostile, Commented),
    (hostile_names, Commented),
    (of_nobody, Commented),
    (talk, Nothing),
    (words, Commented),
]


@pytest.mark.parametrize(("change", "kind"), VARIANTS, ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.parametrize("name", ["issue_comment", "commit_comment"])
def test_variants_of_real_comments(name: str, change: Change, kind: type) -> None:
    """GitHub's schema accepts each, and only numbers and names are taken from it."""
    for event in replied(name, "created"):
        change(event)
        validator(name, "created").validate(event)
        said = parse_event(json.dumps(event).encode())
        assert isinstance(said, kind)
        if isinstance(said, Commented):
            place = "commit" if name == "commit_comment" else ""
            short = event["comment"]["body"] if change is words else ""
            assert said == Commented(event["comment"]["id"], event["repository"]["full_name"], place, short)


@pytest.mark.parametrize("action", ["edited", "deleted"])
@pytest.mark.parametrize("change", [change for change, _ in VARIANTS], ids=lambda value: value.__name__)
def test_variants_that_are_not_new_are_left(action: str, change: Change) -> None:
    """Whatever else is in them."""
    for event in replied("issue_comment", action):
        change(event)
        validator("issue_comment", action).validate(event)
        assert isinstance(parse_event(json.dumps(event).encode()), Nothing)


# dispatches

GATE, COMMIT = "7k2fw9c3ab", "a" * 40
PLACES = {"workflow_dispatch": "inputs", "repository_dispatch": "client_payload"}


def sent(name: str, inputs: dict[str, Any] | None, **sender: str) -> dict[str, Any]:
    event = real(name, "event")[0]
    event[PLACES[name]] = inputs
    event["sender"] |= sender
    validator(name, "event").validate(event)
    return event


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize(
    ("inputs", "gate", "commit"),
    [
        ({"gate": GATE, "commit": COMMIT}, GATE, COMMIT),
        ({"gate": GATE, "commit": COMMIT, "else": ["$(id)"]}, GATE, COMMIT),
        ({"gate": GATE, "commit": "b" * 64}, GATE, "b" * 64),
        ({"gate": GATE}, GATE, ""),
        ({"gate": "", "commit": ""}, "", ""),
        ({}, "", ""),
    ],
)
@pytest.mark.parametrize(("type_", "bot"), [("User", False), ("Bot", True)])
def test_a_real_dispatch_is_read(
    name: str, inputs: dict[str, Any], gate: str, commit: str, type_: str, bot: bool
) -> None:
    """Of a workflow and of the repository: the gate, the commit and the sender, wherever they stand."""
    event = sent(name, inputs, login="ada", type=type_)
    said = parse_event(json.dumps(event).encode())
    assert said == Dispatched(gate, commit, "ada", bot, event["repository"]["full_name"])


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize(
    "inputs",
    [
        {"gate": "$(id)"}, {"gate": "../" + GATE}, {"gate": GATE, "commit": "main"}, {"gate": GATE, "commit": "-x"},
        {"gate": GATE, "commit": "a" * 41}, {"gate": [GATE]}, {"gate": {"a": GATE}}, {"gate": "7" * 100_000},
    ],
)  # fmt: skip
def test_a_hostile_dispatch_names_nothing(name: str, inputs: dict[str, Any]) -> None:
    """Each valid by the schema, which leaves open what the inputs are."""
    with pytest.raises(Usage, match="names no gate and commit"):
        parse_event(json.dumps(sent(name, inputs)).encode())


def test_a_dispatch_without_inputs_is_none() -> None:
    """As one of another workflow's may be."""
    assert isinstance(parse_event(json.dumps(sent("workflow_dispatch", None)).encode()), Nothing)


# what `prepare` reads of them


def pull_request_events() -> list[tuple[str, dict[str, Any]]]:
    return [(action, real("pull_request", action)[0]) for action in PULLS]


def test_a_pull_request_names_the_default_branch(repo: Clone, cli: Command, tmp_path: Path) -> None:
    """Whatever is checked out: the policy's branch is the repository's own default, not the pull request's."""
    for action, event in pull_request_events():
        event["repository"]["default_branch"] = f"trunk-{action}"
        validator("pull_request", action).validate(event)
        assert isinstance(parse_event(json.dumps(event).encode()), Nothing)
        place = tmp_path / f"{action}.json"
        place.write_text(json.dumps(event), encoding="utf-8")
        cli.quick(
            "github", "prepare", env={"CI": "true", "GITHUB_EVENT_PATH": str(place)}, cwd=repo.path, code=0
        )
        assert repo.git("config", "gitgate.protectedBranch") == f"trunk-{action}"


PULLS = ("opened", "reopened", "synchronize")


def from_here(pull: dict[str, Any]) -> None:
    """As GitHub's own examples are."""


def from_a_fork(pull: dict[str, Any]) -> None:
    pull["head"]["repo"] |= {"full_name": "stranger/Hello-World", "fork": True}


def from_a_deleted_fork(pull: dict[str, Any]) -> None:
    pull["head"]["repo"] = None


def to_a_fork(pull: dict[str, Any]) -> None:
    """Within it: that it is somebody's fork makes its own branches no strangers'."""
    for side in ("head", "base"):
        pull[side]["repo"]["fork"] = True


@pytest.mark.parametrize("action", PULLS)
@pytest.mark.parametrize(
    ("change", "foreign"),
    [(from_here, False), (from_a_fork, True), (from_a_deleted_fork, True), (to_a_fork, False)],
)
def test_a_forks_pull_request_is_known_by_its_event(
    action: str, change: Change, foreign: bool, tmp_path: Path
) -> None:
    """Jobs of it have a token that may only read; those of a dispatch, or of a comment, have their own."""
    for event in real("pull_request", action):
        change(event["pull_request"])
        validator("pull_request", action).validate(event)
        place = tmp_path / "event.json"
        place.write_text(json.dumps(event), encoding="utf-8")
        env = {"GITHUB_EVENT_PATH": str(place), "GITHUB_ACTOR": "stranger"}
        assert may_only_read({**env, "GITHUB_EVENT_NAME": "pull_request"}) is foreign
        assert may_only_read({**env, "GITHUB_EVENT_NAME": "issue_comment"}) is False


def test_a_schedule_says_nothing() -> None:
    """There is neither an example nor a schema of it: as GitHub documents it, it has its time and nothing else."""
    assert "schedule" not in {name for name, _ in examples()}
    assert not [name for name in schemas() if name.startswith("schedule")]
    assert isinstance(read_event({"schedule": "*/30 * * * *"}), Nothing)


# what the stand-in sends


@pytest.mark.parametrize("action", ["created", "edited", "deleted"])
@pytest.mark.parametrize("thread", [THREAD, 12])
def test_the_stand_ins_comments_are_events_of_githubs(forge: Forge, action: str, thread: int) -> None:
    """Of a pull request and of an issue: its schema accepts them, and they have all that its examples have."""
    forge.open_pull(THREAD, "feature", "a" * 40)
    event = forge.event(forge.write(thread, "ada", REPLY), action)
    validator("issue_comment", action).validate(event)
    assert all(set(event) >= set(example) - FOR_SOME for example in real("issue_comment", action))
    assert ("pull_request" in event["issue"]) is (thread == THREAD)


@pytest.mark.parametrize("inputs", [{}, {"gate": GATE, "commit": COMMIT}, {"branch": "feature", "task": "x"}])
def test_the_stand_ins_dispatches_are_events_of_githubs(forge: Forge, inputs: dict[str, str]) -> None:
    """With inputs and without."""
    event = forge.run_event("gitgate.yml", **inputs)
    validator("workflow_dispatch", "event").validate(event)
    assert all(set(event) >= set(example) - FOR_SOME for example in real("workflow_dispatch", "event"))


# the real ones, with what is there


def made_real(name: str, ours: dict[str, Any]) -> dict[str, Any]:
    """GitHub's own example, in which the repository, the sender and what it is about are the stand-in's."""
    action = ours.get("action", "event")
    event = real(name, action)[0]
    event["repository"] |= {key: ours["repository"][key] for key in ("full_name", "default_branch")}
    event["sender"] |= {key: ours["sender"][key] for key in ("login", "id", "type")}
    if name == "issue_comment":
        event["comment"] |= {key: ours["comment"][key] for key in ("id", "body", "created_at", "updated_at")}
        event["comment"]["user"] |= event["sender"]
        event["issue"] |= {key: ours["issue"][key] for key in ("number", "pull_request")}
    else:
        event |= {key: ours[key] for key in ("inputs", "ref", "workflow")}
    validator(name, action).validate(event)
    return event


def test_the_whole_loop_with_real_events(loop_place: Place) -> None:
    """By the workflows' own steps, each with the file that GitHub gives its job."""
    run_loop(loop_place, made_real)


def test_a_real_payload_becomes_an_answer(team: Team) -> None:
    """The whole payload as GitHub sends it, for a comment that is there."""
    gate = team.ask("Which?")
    event = made_real("issue_comment", team.forge.event(team.forge.write(THREAD, "ada", "/answer Postgres")))
    place = str(team.event_file(event))
    said = team.cli.quick("github", "accept", place, "--json", cwd=team.job().path, code=0)
    assert said.json["outcome"] == "answered"
    assert team.gate(gate)["answer"]["by"].startswith("ada <")
