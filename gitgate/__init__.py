"""gitgate: questions from AI agents, answers from people, kept in Git.

    import gitgate

    gate = gitgate.ask("Which database?", type="choice", options=["Postgres", "SQLite"], timeout="2h")
    print(gitgate.wait(gate.id).text)

The verbs of the command line, typed, with the long flags' names as keyword arguments. They are loaded when they are
first used, so that `import gitgate` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import testing as testing
    from .api import *  # noqa: F403 - `api` lists each public name, once


def __getattr__(name: str) -> object:
    # A module of this package is loaded by itself, and `api` with all that it needs only for a public name.
    # `from gitgate import *` asks for `__all__`; other names like that are Python's own questions.
    if name.startswith("__") and name not in {"__all__", "__version__"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "__version__":
        return import_module("gitgate.version").VERSION
    from importlib.util import find_spec

    if find_spec(f"gitgate.{name}") is not None:
        return import_module(f"gitgate.{name}")
    api = import_module("gitgate.api")
    if name == "__all__":
        return [*api.__all__, "testing"]
    if name not in api.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(api, name)


def __dir__() -> tuple[str, ...]:
    return (*import_module("gitgate.api").__all__, "testing", "__version__")
