"""Flows: what a flow says of its questions, and which gate is one of them; the error of a step, as it is recorded and made
again in replay: of the same class, where that is known and plain; what a step is called, and how a flow ends.
"""

from __future__ import annotations

import importlib
import json
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..acts.asking import Asked, AskWishes, ask
from ..context.desk import Desk
from ..errors import Conflict, Failure, GateError, Usage
from ..model.gate import Gate
from ..model.states import AT_DEADLINE, ON_TIMEOUT
from ..questions.drafts import Draft
from ..record.runs import MOST_RESULT, RunStep
from ..text.secrets import redact
from ..text.times import parse_duration

MOST_MESSAGE = 10_000
MOST_FORGED = 16
OURS = f"{Path(__file__).parents[1]}/"
LIBRARY = f"{Path(threading.__file__).parent}/"


@dataclass(frozen=True)
class FlowTerms:
    """What a flow, or a step of it, says of its questions; where it says nothing, the flow above it or this machine does.

    `human_timeout`: seconds until the deadline of each. `notify`: the names of those who are told of it.
    """

    human_escalation: bool | None = None
    human_timeout: int | None = None
    on_timeout: str | None = None
    notify: tuple[str, ...] = ()

    def below(self, above: FlowTerms) -> FlowTerms:
        """What counts in a step of a flow that says `above`."""
        own = {name: value for name, value in vars(self).items() if value not in (None, ())}
        return replace(above, **own)

    def of_question(self) -> dict[str, Any]:
        """As a question takes them over, and as an agent finds them in its environment."""
        said = {"timeout": self.human_timeout, "on_timeout": self.on_timeout, "notify": list(self.notify)}
        return {name: value for name, value in said.items() if value}


def terms_of(
    human_escalation: bool | None,
    human_timeout: str | int | None,
    on_timeout: str | None,
    notify: str | Sequence[str],
) -> FlowTerms:
    """Terms as a program writes them."""
    seconds = parse_duration(str(human_timeout)) if human_timeout is not None else None
    if seconds is not None and seconds <= 0:
        raise Usage("human_timeout: a deadline has to be in the future", hint='human_timeout="24h"')
    how = AT_DEADLINE.get(on_timeout, on_timeout) if on_timeout is not None else None
    if how is not None and how not in ON_TIMEOUT:
        raise Usage(
            f"on_timeout: expected one of {', '.join(ON_TIMEOUT)}; found {on_timeout!r}",
            hint='on_timeout="stuck"',
        )
    names = (notify,) if isinstance(notify, str) and notify else tuple(notify)
    return FlowTerms(human_escalation, seconds, how, names)


class StepFailed(Failure):
    """A step failed when it was done, with an error that cannot be made again here."""

    code = "step_failed"


class ChildStopped(Failure):
    """A person has ended the run of a flow that this one has called; this one may go on without it."""

    code = "child_stopped"


def error_of(failed: BaseException) -> dict[str, Any]:
    """An error as it is recorded: its class, its words without secrets, and what it was made of where that is plain."""
    kind = type(failed)
    message = failed.message if isinstance(failed, GateError) else str(failed)
    said: dict[str, Any] = {
        "class": f"{kind.__module__}:{kind.__qualname__}",
        "message": redact(message)[:MOST_MESSAGE],
    }
    if all(isinstance(arg, str | int | float | bool | None) for arg in failed.args):
        text = json.dumps(failed.args, allow_nan=True)
        if (
            redact(text) == text
            and len(text) <= MOST_MESSAGE
            and "NaN" not in text
            and "Infinity" not in text
        ):
            said["args"] = json.loads(text)
    return said


def error_from(said: Mapping[str, Any]) -> BaseException:
    """The same error: of the same class where that is still known, and can be made of the same words."""
    module, _, name = str(said["class"]).partition(":")
    found: Any = None
    with suppress(ImportError, AttributeError, ValueError):
        found = loaded(module)
        for part in name.split("."):
            found = getattr(found, part)
    if isinstance(found, type) and issubclass(found, Exception):
        args = said.get("args")
        with suppress(Exception):
            return found(*args) if isinstance(args, list) else found(said["message"])
    return StepFailed(f"{name}: {said['message']}")


def loaded(module: str) -> Any:
    """A module that the flow has loaded itself, or one of ours: a journal makes no other be imported."""
    if module == "builtins" or module.partition(".")[0] == __name__.partition(".")[0]:
        return importlib.import_module(module)
    if module not in sys.modules:
        raise ImportError(module)
    return sys.modules[module]


def ask_own(
    desk: Desk,
    draft: Draft,
    wishes: AskWishes,
    attachments: Mapping[str, bytes],
    before: RunStep | None,
    say: Callable[[str], None],
    *,
    agents: bool,
) -> Asked:
    """Ask under a key that nobody else's question has. An agent of the flow may know the key, and have asked something
    harmless under it: an answer to that is none to this. What an agent asks (`agents`) is its own anyway. `before`: the step,
    where it was begun by a process that died.
    """
    for number in range(MOST_FORGED):
        key = f"{draft.key}~{number}" if number else draft.key
        asked = ask(desk, replace(draft, key=key), wishes, attachments)
        if asked.new or agents or (before is not None and is_asked_by(asked.gate, before, draft)):
            return asked
        say(f"gate {asked.gate.id} has the key {key}, and is not the question of that step")
    raise Conflict(
        f"{MOST_FORGED} gates have the key {draft.key}, and none is the question of that step",
        hint="git gate list --all",
    )


def is_asked_by(gate: Gate, step: RunStep, draft: Draft) -> bool:
    """Whether a gate with a step's key is what the step asked: the same question, and not before the step began."""
    asked, wanted = (
        [(q.prompt.strip(), q.type, q.labels) for q in questions]
        for questions in (gate.opened.questions, draft.questions)
    )
    return asked == wanted and gate.opened.asked.at >= step.begun.at


def plain_name(name: str) -> str:
    """A step's name as a part of an id: in one line, without what separates branches."""
    return "".join(c if c.isprintable() and c not in "/#" else "_" for c in name)[:80] or "_"


def called_at() -> str:
    """The line of the flow that wants a step, as `flows.py:12`; empty where that is not known."""
    frame = sys._getframe(1)  # noqa: SLF001 - a whole traceback for each of 10,000 steps takes too long
    while frame.f_code.co_filename.startswith(OURS) and frame.f_back is not None:
        frame = frame.f_back
    name = frame.f_code.co_filename.rpartition("/")[2]
    known = (
        not frame.f_code.co_filename.startswith((OURS, LIBRARY)) and name.isprintable() and len(name) <= 100
    )
    return f"{name}:{frame.f_lineno}" if known else ""


def digest_of(value: object) -> str:
    return sha256(repr(value).encode("utf-8", "replace")).hexdigest()[:16]


def through_json(step: str, value: object, secrets: Collection[str]) -> Any:
    """A result as replay will give it: after its way through JSON, the first time as well."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as unfit:
        raise Usage(
            f"step {step} gave {type(value).__name__}, and a step's result is JSON: {unfit}",
            hint="return a mapping, a list, text, a number, True, False, None, or a pydantic model",
        ) from unfit
    if len(text) > MOST_RESULT // 4 and len(text.encode("utf-8", "replace")) > MOST_RESULT:
        raise Usage(
            f"step {step} gave {len(text):,} characters; expected at most {MOST_RESULT:,} bytes",
            hint="write it to a file, and return its path",
        )
    if redact(text, secrets) != text:
        raise Usage(
            f"step {step} gave what looks like a secret, and it would be recorded in Git",
            hint="return what it is called, and read it where it is used",
        )
    return json.loads(text)


# how a flow ends, or is let go


class FlowEnds(BaseException):
    """It passes through a flow, and is no error of it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class RunWaits(FlowEnds):
    """Nothing goes on before a person has answered, a moment has come, or a signal. `gates`: what people are asked."""

    gates: tuple[str, ...] = ()
    until: str = ""


class RunStuck(FlowEnds):
    """The flow cannot go on. `refused`: because a person said no."""

    refused = False


class RunStops(FlowEnds):
    """A person has ended the run."""


class BranchLost(FlowEnds):
    """Another branch was first, and this one ends where it is."""


class Diverged(FlowEnds):
    """The flow's code wants another step than its journal has at this place."""


class RunAgain(FlowEnds):
    """The flow starts afresh in a run of its own. `given`: its input there; `at`: the moment of its beginning."""

    def __init__(self, given: Mapping[str, Any], at: str) -> None:
        super().__init__("the flow starts afresh")
        self.given, self.at = given, at


@dataclass(frozen=True)
class FlowEnding:
    """Where a run stands when its process lets go of it. `status`: as `git gate list --runs` says it."""

    id: str
    status: str
    value: Any = None
    reason: str = ""
    error: Mapping[str, Any] = field(default_factory=dict)
    gates: tuple[str, ...] = ()
    until: str = ""
    refused: bool = False
    next: str = ""
    """The run in which the flow goes on afresh."""
    raised: BaseException | None = field(default=None, repr=False, compare=False)

    def result(self) -> Any:
        """The flow's value, or what became of it as an error."""
        if self.status == "completed":
            return self.value
        raise self.raised or error_from(self.error)
