"""Surfaces: what a forge's event says, read without trusting it: pure. Only numbers and names are taken from it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from ...core.ids import is_id
from ...core.people import as_account
from ...errors import Usage
from .forge import Comment, whole
from .replies import may_answer

MOST_NUMBER = 1 << 63
MOST_EVENT = 32_000_000
OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True)
class Commented:
    """Somebody commented, on a commit or elsewhere; what they said is asked of the forge anew."""

    comment: int
    repository: str
    on_commit: bool = False


@dataclass(frozen=True)
class Dispatched:
    """Somebody asked for a gate to be resumed, naming the commit of the answer; or, without a gate, for a sweep."""

    gate: str
    commit: str
    login: str
    bot: bool
    repository: str


@dataclass(frozen=True)
class Nothing:
    """An event that is not for us, and why."""

    why: str


Event = Commented | Dispatched | Nothing


def parse_event(data: bytes) -> Event:
    """One event file."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError) as wrong:
        raise Usage("the event is not JSON", hint='git gate github accept "$GITHUB_EVENT_PATH"') from wrong
    if not isinstance(said, dict):
        raise Usage("the event is not a JSON object", hint='git gate github accept "$GITHUB_EVENT_PATH"')
    return read_event(said)


def read_event(said: Mapping[str, object]) -> Event:
    if "comment" in said and ("issue" in said or is_on_commit(said)):
        return read_comment(said)
    inputs = said.get("inputs") if "inputs" in said else said.get("client_payload")
    if isinstance(inputs, Mapping):
        return read_dispatch(said, inputs)
    return Nothing("it is neither a comment nor a dispatch")


def read_comment(said: Mapping[str, object]) -> Event:
    comment, sender = part(said, "comment"), part(said, "sender")
    number = comment.get("id")
    if said.get("action") != "created":
        return Nothing(f"the comment was {word(said.get('action'))}, not created")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < MOST_NUMBER:
        return Nothing("the comment has no number")
    if sender.get("type", "User") != "User":
        return Nothing("a program wrote it")
    if not may_answer(str(comment.get("body") or "")):
        return Nothing("it is no reply to a gate")
    return Commented(number, repository_of(said), is_on_commit(said))


def nobodys(comment: Comment | None) -> str:
    """Why a comment is nobody's reply, whatever gates there are; empty where it may be one."""
    if comment is None:
        return "the comment is gone"
    if comment.by_program:
        return "a program wrote it"
    return "" if may_answer(comment.body) else "it is no reply to a gate"


def is_on_commit(said: Mapping[str, object]) -> bool:
    """A review's comments name a commit too; their numbers are of a third kind, and they are not for us."""
    elsewhere = {"issue", "pull_request", "discussion", "review"} & set(said)
    return not elsewhere and bool(part(said, "comment").get("commit_id"))


def read_dispatch(said: Mapping[str, object], inputs: Mapping[str, object]) -> Event:
    gate, commit = str(inputs.get("gate") or ""), str(inputs.get("commit") or "")
    sender = part(said, "sender")
    if (gate and not is_id(gate)) or (commit and not OID.fullmatch(commit)):
        raise Usage("the dispatch names no gate and commit", hint="git gate github dispatch ID")
    bot = sender.get("type", "User") != "User"
    return Dispatched(gate, commit, whole(str(sender.get("login") or "")), bot, repository_of(said))


LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,98}[A-Za-z0-9_-])?(?:\[bot\])?", re.ASCII)


def started_by(env: Mapping[str, str], said: Mapping[str, object]) -> tuple[str, ...]:
    """Who started this job, each once, in git's form of a person: the event's sender, the actor, and who ran it again.

    They are one account but for a job that somebody else ran again. On a schedule nobody did: the actor is whoever changed the
    schedule last. An event's file may be written to by the job's own steps, so that it only adds to what the runner says.
    """
    sender = part(said, "sender")
    found = {"": ""}
    if env.get("GITHUB_EVENT_NAME") != "schedule":
        found[str(sender.get("login") or "")] = str(sender.get("id") or "")
        found.setdefault(env.get("GITHUB_ACTOR", ""), env.get("GITHUB_ACTOR_ID", ""))
    if env.get("GITHUB_RUN_ATTEMPT", "1") != "1" or env.get("GITHUB_EVENT_NAME") != "schedule":
        found.setdefault(env.get("GITHUB_TRIGGERING_ACTOR", ""), "")
    host = urlsplit(env.get("GITHUB_SERVER_URL", "")).hostname or "github.com"
    return tuple(
        as_account(login, number if number.isdecimal() else "", host)
        for login, number in found.items()
        if LOGIN.fullmatch(login)
    )


def repository_of(said: Mapping[str, object]) -> str:
    return whole(str(part(said, "repository").get("full_name") or ""))


def part(said: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = said.get(name)
    return found if isinstance(found, Mapping) else {}


def word(value: object) -> str:
    return value if isinstance(value, str) and value.isalpha() else "something"
