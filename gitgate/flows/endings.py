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
    """Return a result as replay will give it: after its way through JSON, the first time as well. `what`: its name."""
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
    """Return a model in the form in which it is kept, if replay knows to make a model of that again."""
    if not hasattr(value, "model_dump"):
        return value
    if not loose and not hasattr(model, "model_validate"):
        raise Usage(
            f"{what} is a {type(value).__name__}, and replay would not know to give one again",
            hint=f"say what it returns: def … -> {type(value).__name__}   (a step takes output={type(value).__name__} as well)",
        )
    return value.model_dump(mode="json")


def json_as_model(value: Any, model: Any) -> Any:
    """Make the model again, if one was declared as the result."""
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
    """Error of a step that failed, where its own error cannot be made again here."""

    code = "step_failed"


class ChildStopped(Failure):
    """Error for a child run that a person has ended. The run that called it may go on without it."""

    code = "child_stopped"


def error_of(failed: BaseException) -> dict[str, Any]:
    """Return an error as it is recorded: its class, its words without secrets, and its arguments where they are plain."""
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
    """Return a module that the flow has loaded itself, or one of ours. A journal makes no other module be imported."""
    if module == "builtins" or module.partition(".")[0] == OURS:
        return importlib.import_module(module)
    if module not in sys.modules:
        raise ImportError(module)
    return sys.modules[module]


class FlowExited(RuntimeError):
    """Error in place of `sys.exit` in a flow's code, which is for the process; of a run it is an error like any other."""

    hint = "a flow ends by return, or by gitgate.stuck(reason)"


@contextmanager
def no_exit() -> Iterator[None]:
    """Turn an exit in a flow's code into an error. An exit that passed would leave the run as if it still went on."""
    try:
        yield
    except SystemExit as left:
        said = "" if left.code is None else repr(left.code)
        raise FlowExited(f"the code called sys.exit({said})").with_traceback(left.__traceback__) from None


# how a flow ends, or is let go


class FlowEnds(BaseException):
    """Exception that passes through a flow, and is no error of it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ProcessForked(BaseException):
    """Error of a step whose function forked this process and came back: two processes would write one journal."""


class RunWaits(FlowEnds):
    """Wait of a run for a person's answer, a moment or a signal. `gates`: what people are asked."""

    gates: tuple[str, ...] = ()
    until: str = ""
    run: str = ""


class RunStuck(FlowEnds):
    """End of a flow that cannot go on. `refused`: because a person said no."""

    refused = False


class RunStops(FlowEnds):
    """End of a run that a person has ended."""


class BranchLost(FlowEnds):
    """End of a branch where it is, because another branch was first."""


class Diverged(FlowEnds):
    """Difference of a flow's code from its journal: the code wants another step at this place."""


class RunAgain(FlowEnds):
    """Fresh start of the flow in a run of its own. `given`: its input there. `at`: the moment at which that run begins."""

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
        """Return the flow's value, or raise what became of it as an error."""
        if self.status == "completed":
            return self.value
        raise self.raised or error_from(self.error)
