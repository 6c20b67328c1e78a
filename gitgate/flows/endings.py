"""Flows: what a step or a flow has come to, as it is recorded and as replay gives it again: its result, its error of the same
class where that is known and plain; and how a flow ends, or is let go.
"""

from __future__ import annotations

import importlib
import json
import sys
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, is_dataclass
from hashlib import sha256
from typing import Any, cast

from ..errors import Failure, GateError, Usage
from ..record.runs import MOST_RESULT
from ..text import one_line, spelled
from ..text.secrets import redact

MOST_MESSAGE = 10_000
OURS = __name__.partition(".")[0]


def through_json(what: str, value: object, secrets: Collection[str]) -> Any:
    """A result as replay will give it: after its way through JSON, the first time as well. `what` is what it is called."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as unfit:
        raise Usage(
            f"{what} is a value of {type(value).__name__}, and is recorded as JSON: {unfit}",
            hint="use a mapping, a list, text, a number, True, False, None, or a pydantic model"
            + ("; of an agent's signal its .status, .summary or .output" if is_dataclass(value) else ""),
        ) from unfit
    if spelled(text) != text:
        raise Usage(
            f"{what} has a character that is no text, as in the name of a file that is not UTF-8: "
            f"{one_line(spelled(str(value)), 120)}",
            hint="name.encode('utf-8', 'backslashreplace').decode() has it as text",
        )
    if len(text) > MOST_RESULT // 4 and len(text.encode("utf-8", "replace")) > MOST_RESULT:
        raise Usage(
            f"{what} has {len(text):,} characters; expected at most {MOST_RESULT:,} bytes",
            hint="write it to a file, and put its path there",
        )
    if redact(text, secrets) != text:
        raise Usage(
            f"{what} has what looks like a secret, and it would be recorded in Git",
            hint="put its name there, and read it where it is used",
        )
    return json.loads(text)


def returned(function: Callable[..., Any]) -> Any:
    """Return the type that a function declares for its result; None where it declares none that can be resolved."""
    try:
        return typing.get_type_hints(function).get("return")
    except (TypeError, NameError, AttributeError):
        return None


def model_as_json(value: Any, model: Any, what: str, *, loose: bool = False) -> object:
    """A model as it is kept, where replay knows to give one again."""
    if not hasattr(value, "model_dump"):
        return value
    if not loose and not hasattr(model, "model_validate"):
        raise Usage(
            f"{what} is a {type(value).__name__}, and replay would not know to give one again",
            hint=f"say what it returns: def … -> {type(value).__name__}   (a step takes output={type(value).__name__} as well)",
        )
    return value.model_dump(mode="json")


def json_as_model(value: Any, model: Any) -> Any:
    """The model again, where that is what was said to be returned."""
    return model.model_validate(value) if value is not None and hasattr(model, "model_validate") else value


def digest_of(value: object) -> str:
    return sha256(repr(value).encode("utf-8", "replace")).hexdigest()[:16]


def said_of_input(args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return a flow's input as its journal keeps it, after its way through JSON.

    The flow gets exactly this, the first time as well. Usage where the input is not JSON.
    """
    try:
        return cast(
            "dict[str, Any]",
            json.loads(json.dumps({"args": list(args), "kwargs": dict(kwargs)}, allow_nan=False)),
        )
    except (TypeError, ValueError) as unfit:
        raise Usage(
            f"a flow's input is JSON: {unfit}", hint="give it text, numbers, lists and mappings"
        ) from unfit


class StepFailed(Failure):
    """A step failed when it was done, with an error that cannot be made again here."""

    code = "step_failed"


class ChildStopped(Failure):
    """A person has ended the run of a flow that this one has called; this one may go on without it."""

    code = "child_stopped"


def error_of(failed: BaseException) -> dict[str, Any]:
    """An error as it is recorded: its class, its words without secrets, and what it was made of where that is plain."""
    kind = type(failed)
    message = spelled(failed.message if isinstance(failed, GateError) else str(failed))
    said: dict[str, Any] = {
        "class": f"{kind.__module__}:{kind.__qualname__}",
        "message": redact(message)[:MOST_MESSAGE],
    }
    if all(isinstance(arg, str | int | float | bool | None) for arg in failed.args):
        text = json.dumps(failed.args, allow_nan=True, ensure_ascii=False)
        if (
            spelled(redact(text)) == text
            and len(text) <= MOST_MESSAGE
            and "NaN" not in text
            and "Infinity" not in text
        ):
            said["args"] = json.loads(text)
    return said


def error_from(said: Mapping[str, Any]) -> BaseException:
    """Return a recorded error as an exception of its class, with its recorded words.

    StepFailed where that class is not loaded here, or cannot be made of those words.
    """
    module, _, name = str(said["class"]).partition(":")
    found: Any = None
    # Ours may have moved since it was recorded; what a program may name is found by that.
    for place in [module, OURS] if module.partition(".")[0] == OURS else [module]:
        with suppress(ImportError, AttributeError, ValueError):
            found = loaded(place)
            for part in name.split("."):
                found = getattr(found, part)
            break
    if isinstance(found, type) and issubclass(found, Exception):
        args = said.get("args")
        with suppress(Exception):
            return found(*args) if isinstance(args, list) else found(said["message"])
    return StepFailed(f"{name}: {said['message']}")


def loaded(module: str) -> Any:
    """A module that the flow has loaded itself, or one of ours: a journal makes no other be imported."""
    if module == "builtins" or module.partition(".")[0] == OURS:
        return importlib.import_module(module)
    if module not in sys.modules:
        raise ImportError(module)
    return sys.modules[module]


class FlowExited(RuntimeError):
    """The flow's code called `sys.exit`, which is for the process; of a run it is an error like any other."""

    hint = "a flow ends by return, or by gitgate.stuck(reason)"


@contextmanager
def no_exit() -> Iterator[None]:
    """Around code of a flow. An exit that passed through would leave the run as if it still went on."""
    try:
        yield
    except SystemExit as left:
        said = "" if left.code is None else repr(left.code)
        raise FlowExited(f"the code called sys.exit({said})").with_traceback(left.__traceback__) from None


# how a flow ends, or is let go


class FlowEnds(BaseException):
    """It passes through a flow, and is no error of it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ProcessForked(BaseException):
    """This process was forked within a step, and came back from its function. Two would write one journal."""


class RunWaits(FlowEnds):
    """Nothing goes on before a person has answered, a moment has come, or a signal. `gates`: what people are asked."""

    gates: tuple[str, ...] = ()
    until: str = ""
    run: str = ""


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
    """State of a run when its process lets go of it. `status`: as `git gate list --runs` shows it."""

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
