"""Flows: what a flow says of its questions, and which gate is one of them; and the error of a step, as it is recorded and made again in replay: of the same
class, where that is known and plain.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ..acts.asking import Asked, AskWishes, ask
from ..context.desk import Desk
from ..errors import Conflict, Failure, GateError, Usage
from ..model.gate import Gate
from ..model.states import AT_DEADLINE, ON_TIMEOUT
from ..questions.drafts import Draft
from ..record.runs import RunStep
from ..text.secrets import redact
from ..text.times import parse_duration

MOST_MESSAGE = 10_000
MOST_FORGED = 16


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
