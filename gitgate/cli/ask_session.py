"""Command line: the flags of `git gate ask --type session`: how the conversation is to be held, and what it ends in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from ..core.words import SESSION_FIELDS, SESSION_OUTCOMES
from .screen import complete_ids, read_file, read_text

if TYPE_CHECKING:
    from ..core.talks import Talk

MODELS = ("sonnet", "opus", "haiku")


def offered(*words: str) -> Callable[..., list[str]]:
    """What a shell may complete a value to; any other may be typed."""
    return lambda _ctx, _param, incomplete: [word for word in words if word.startswith(incomplete)]


OPTIONS = (
    click.option(
        "--outcome", type=click.Choice(SESSION_OUTCOMES), help="With --type session: what it ends in."
    ),
    click.option(
        "--system-prompt", metavar="TEXT|@FILE", help="Added to the system prompt of the session's agent."
    ),
    click.option(
        "--session-context",
        metavar="JSON|@FILE|-",
        help="What the person and the agent of the session are shown.",
    ),
    click.option(
        "--model", metavar="M", shell_complete=offered(*MODELS), help="The model of the session's agent."
    ),
    click.option(
        "--cwd",
        metavar="DIR",
        type=click.Path(file_okay=False),
        help="Where the session begins, from the top of the worktree.",
    ),
    click.option(
        "--mcp-config",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="MCP servers for the session; whoever joins is asked before any is started.",
    ),
    click.option(
        "--session-timeout",
        metavar="30m",
        shell_complete=offered("30m", "1h", "2h"),
        help="How long the session may last; the gate's own deadline is --timeout.",
    ),
    click.option(
        "--grace",
        metavar="60s",
        shell_complete=offered("60s", "2m", "5m"),
        help="How long the session may go on after that, once it was warned.",
    ),
    click.option("--transcript", is_flag=True, help="Record what is said in the session with its answer."),
    click.option(
        "--resume-session",
        metavar="GATE",
        shell_complete=complete_ids,
        help="Go on with the session of an earlier gate.",
    ),
    click.option(
        "--save-every",
        metavar="5m",
        shell_complete=offered("1m", "5m", "15m"),
        help="How often the session is saved while it lasts; 0: only at its end.",
    ),
    click.option(
        "--checkpoint",
        is_flag=True,
        help="With --type session: no agent; the person is asked to go on or to stop.",
    ),
)


def session_options(command: Callable[..., object]) -> Callable[..., object]:
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def given(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags that were used, by their own names."""
    return {
        name: flags[name] for name in SESSION_FIELDS if flags[name] is not None and flags[name] is not False
    }


def called(name: str) -> str:
    """A field of the conversation as its flag is typed."""
    flag = next((flag for flag, field in SESSION_FIELDS.items() if field == name), name)
    return "--type session" if name == "type" else f"--{flag.replace('_', '-')}"


def talk_of(flags: Mapping[str, Any]) -> Talk | None:
    """The conversation that the flags describe; None for another question, and for one that leaves all of it open."""
    used = given(flags)
    if not used and flags["type_"] is None:
        return None
    from ..core import talkdrafts
    from ..core.questions import type_name

    said = {SESSION_FIELDS[name]: value for name, value in used.items()}
    talkdrafts.refuse_elsewhere(flags["type_"], said, called)
    options, schema = bool(flags["option"] or flags["options"]), bool(flags["schema"])
    if type_name(flags["type_"] or "") != "session" or not (used or options or schema):
        return None
    if "system" in said:
        said["system"] = read_text(said["system"], "--system-prompt")
    if "context" in said:
        said["context"] = context_of(said["context"])
    if "mcp" in said:
        name = said["mcp"]
        said["mcp"] = talkdrafts.parse_json(read_file(name, "--mcp-config"), name)
    return talkdrafts.talk_of(said, called, options=options, schema=schema)


def context_of(argument: str) -> object:
    from ..core.talkdrafts import parse_json

    name = "standard input" if argument == "-" else argument.removeprefix("@")
    shown = name if argument == "-" or argument.startswith("@") else "--session-context"
    return parse_json(read_text(argument, "--session-context"), shown)
