"""Surfaces: what a forge's event says, read without trusting it: pure. Only numbers and names are taken from it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from ....errors import Usage
from ....model.people import as_account
from ....model.states import is_id
from ..reply import may_answer, word_of
from .forge import COMMIT, DIFF, Comment, Thread, whole
from .web import ForgeFailed

MOST_NUMBER = 1 << 63
MOST_EVENT = 32_000_000
OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
NO_REPLY = "it is no reply to a gate"
BY_BRANCH = "it is a comment on the diff, whose event runs the workflow file of the branch itself: the next sweep reads it"


@dataclass(frozen=True)
class Commented:
    """Somebody commented; what they said is asked of the forge anew. `kind`: on a commit, on a diff, or in a conversation.

    `words`: a short comment that may be the name of an option, and mere talk as far as nobody looks at the gates.
    """

    comment: int
    repository: str
    kind: str = ""
    words: str = ""
    thread: Thread | None = None
    """Where it stands, as far as the event tells; some forges find a comment by that alone."""


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


def parse_event(data: bytes, *, received: bool = False) -> Event:
    """One event file; or, `received` by ourselves, a signed delivery, which alone may tell of a comment on a diff."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError) as wrong:
        raise Usage("the event is not JSON", hint='git gate github accept "$GITHUB_EVENT_PATH"') from wrong
    if not isinstance(said, dict):
        raise Usage("the event is not a JSON object", hint='git gate github accept "$GITHUB_EVENT_PATH"')
    return read_event(said, received=received)


def read_event(said: Mapping[str, object], *, received: bool = False) -> Event:
    if said.get("object_kind") == "note":
        return read_note(said)
    if is_on_diff(said):
        return read_comment(said, DIFF) if received else Nothing(BY_BRANCH)
    if "comment" in said and ("issue" in said or is_on_commit(said)):
        return read_comment(said, COMMIT if is_on_commit(said) else "")
    inputs = said.get("inputs") if "inputs" in said else said.get("client_payload")
    if isinstance(inputs, Mapping):
        return read_dispatch(said, inputs)
    return Nothing("it is neither a comment nor a dispatch")


def read_comment(said: Mapping[str, object], kind: str) -> Event:
    comment, sender = part(said, "comment"), part(said, "sender")
    number = comment.get("id")
    if said.get("action") != "created":
        return Nothing(f"the comment was {word(said.get('action'))}, not created")
    if not is_number(number):
        return Nothing("the comment has no number")
    if sender.get("type", "User") != "User":
        return Nothing("a program wrote it")
    return comment_event(Commented(int(str(number)), repository_of(said), kind), comment.get("body"))


def comment_event(found: Commented, said: object) -> Event:
    """Unless it is mere talk."""
    body = said if isinstance(said, str) else ""
    if may_answer(body):
        return found
    words = word_of(body)
    return replace(found, words=words) if words else Nothing(NO_REPLY)


def read_note(said: Mapping[str, object]) -> Event:
    """GitLab's: a note on a merge request, which is found by both numbers. Older ones do not say whether it is new."""
    note, place = part(said, "object_attributes"), part(said, "merge_request")
    number, thread = note.get("id"), place.get("iid")
    if note.get("action", "create") != "create":
        return Nothing(f"the note was {word(note.get('action'))}d, not created")
    if note.get("noteable_type") != "MergeRequest":
        return Nothing("it is on no merge request")
    if note.get("system") or note.get("internal"):
        return Nothing("GitLab wrote it, or not everybody may read it")
    if not (is_number(number) and is_number(thread)):
        return Nothing("the note has no number")
    project = whole(str(part(said, "project").get("path_with_namespace") or ""))
    return comment_event(Commented(int(str(number)), project, thread=int(str(thread))), note.get("note"))


def is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < MOST_NUMBER


def nobodys(comment: Comment | None) -> str:
    """Why a comment is nobody's reply, whatever gates there are; empty where it may be one."""
    if comment is None:
        return "the comment is gone"
    if comment.by_program:
        return "a program wrote it"
    return "" if may_answer(comment.body) or word_of(comment.body) else NO_REPLY


def is_on_diff(said: Mapping[str, object]) -> bool:
    return "pull_request" in said and bool(part(said, "comment").get("commit_id"))


def is_on_commit(said: Mapping[str, object]) -> bool:
    """A review's comments name a commit too."""
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
    if env.get("GITLAB_CI"):
        return started_on_gitlab(env)
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


UNASKED = frozenset(("schedule", "trigger", "parent_pipeline"))


def started_on_gitlab(env: Mapping[str, str]) -> tuple[str, ...]:
    """Who started this pipeline. A schedule or a trigger token runs in the name of whoever made it, and asks for nobody."""
    login, number = env.get("GITLAB_USER_LOGIN", ""), env.get("GITLAB_USER_ID", "")
    if env.get("CI_PIPELINE_SOURCE", "") in UNASKED or not LOGIN.fullmatch(login):
        return ()
    host = urlsplit(env.get("CI_SERVER_URL", "")).hostname or "gitlab.com"
    return (as_account(login, number if number.isdecimal() else "", host),)


def repository_of(said: Mapping[str, object]) -> str:
    return whole(str(part(said, "repository").get("full_name") or ""))


def part(said: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = said.get(name)
    return found if isinstance(found, Mapping) else {}


def word(value: object) -> str:
    return value if isinstance(value, str) and value.isalpha() else "something"


QUEUED = re.compile(
    r"refs/heads/gh-readonly-queue/.+/pr-([0-9]{1,15})-(?:[0-9a-f]{40}|[0-9a-f]{64})", re.ASCII
)


def queued_in(env: Mapping[str, str]) -> tuple[int, str] | None:
    """In a job of a merge queue the pull request that stands at its end there, and the commit that would be merged."""
    found = QUEUED.fullmatch(env.get("GITHUB_REF", ""))
    commit = env.get("GITHUB_SHA", "")
    wanted = env.get("GITHUB_EVENT_NAME") == "merge_group" and found is not None and OID.fullmatch(commit)
    return (int(found[1]), commit) if wanted and found is not None else None


LOCKED = "is locked"
ARCHIVED = "was archived"
FORBIDDEN = "Resource not accessible by integration"
GONE = "the thread was deleted, so nothing can be shown there"
SHUT = "the thread is locked, so nothing can be said there; replies that stand there are heard"
LATER = "this run may only read, and has no secrets: the next scheduled sweep does what is to be done"
DEPENDABOT = "dependabot[bot]"


def final(refused: ForgeFailed, env: Mapping[str, str]) -> str:
    """Why it is of no use to ask again; empty where it may be, or where somebody has to mend something."""
    said = refused.message
    if refused.status == 410:
        return GONE
    if refused.status != 403:
        return ""
    if LOCKED in said:
        return SHUT
    if ARCHIVED in said:
        return "the repository is archived: nothing in it can be changed"
    if FORBIDDEN in said and may_only_read(env):
        return LATER
    return ""


def is_of_thread(why: str) -> bool:
    """Whether it is one thread's; the others are the whole run's."""
    return why in (GONE, SHUT)


def may_only_read(env: Mapping[str, str]) -> bool:
    """A job of a pull request of Dependabot's or of a fork has such a token by GitHub's own rule; any other by mistake."""
    if env.get("GITHUB_EVENT_NAME") != "pull_request":
        return False
    return DEPENDABOT in (env.get("GITHUB_ACTOR"), env.get("GITHUB_TRIGGERING_ACTOR")) or of_a_fork(env)


def of_a_fork(env: Mapping[str, str]) -> bool:
    try:
        with Path(env.get("GITHUB_EVENT_PATH") or "-").open("rb") as event:
            said = json.loads(event.read(MOST_EVENT))
        head, base = (said["pull_request"][side]["repo"] for side in ("head", "base"))
        return head is None or bool(head["full_name"] != base["full_name"])  # None: it was deleted meanwhile
    except (OSError, ValueError, TypeError, KeyError):
        return False
