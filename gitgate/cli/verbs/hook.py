"""Command line: what other programs start: `git gate hook NAME`, for the shims in `hooks/`, and `git gate mcp`, for clients of that
protocol; and `git gate notify`, which says who is told by what starts so.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...errors import Failure, Usage
from .. import DONE, FAILURE, WAITING, receive
from ..terminal import Screen, verb

if TYPE_CHECKING:
    from ...context import Desk
    from ...surfaces.notify.addresses import AddressBook, Recipient
    from ...surfaces.notify.outbox import AddressState

# `git gate hook NAME`: what the shims in `hooks/` call. Each name is a function of a module, loaded when
# called.


# name: (module, function). The function takes a Screen and the arguments, and gives back an exit code.
HOOKS: dict[str, tuple[str, str]] = {
    "post-receive": ("gitgate.cli.verbs.hook", "post_receive"),
    "pre-receive": ("gitgate.cli.verbs.hook", "pre_receive"),
    "notify": ("gitgate.cli.verbs.hook", "send_all"),
    "dialog-window": ("gitgate.cli.verbs.desk", "show_here"),
    "dialog-terminal": ("gitgate.cli.verbs.desk", "ask_here"),
    "flow-question": ("gitgate.cli.verbs.run", "ask_and_go_on"),
    "runner": ("gitgate.cli.verbs.hook", "runner"),
    "claude-pre-tool-use": ("gitgate.cli.verbs.hook", "claude_pre_tool_use"),
    "claude-post-tool-use": ("gitgate.cli.verbs.hook", "claude_post_tool_use"),
    "claude-stop": ("gitgate.cli.verbs.hook", "claude_stop"),
    "claude-session-end": ("gitgate.cli.verbs.hook", "claude_session_end"),
    "claude-session-start": ("gitgate.cli.verbs.hook", "claude_session_start"),
    "claude-share-session": ("gitgate.cli.verbs.hook", "claude_share_session"),
}


@click.command("hook", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@verb
def hook_command(screen: Screen, name: str, args: tuple[str, ...]) -> int:
    """Run a hook for the shims that git and agents call; no person types it."""
    if name not in HOOKS:
        raise Usage(f"there is no hook {name!r}", hint=f"git gate hook NAME: known are {', '.join(HOOKS)}")
    module, function = HOOKS[name]
    return int(getattr(import_module(module), function)(screen, args))


def pre_receive(screen: Screen, args: tuple[str, ...]) -> int:
    del args
    return receive.pre_receive(screen.env, sys.stdin.buffer.read())


def post_receive(screen: Screen, args: tuple[str, ...]) -> int:
    del args
    return receive.post_receive(screen.env, b"")


def runner(screen: Screen, args: tuple[str, ...]) -> int:
    """Act on what is to be done here. A person's command started this process, which is consent enough."""
    del args
    return receive.act_on_calls(screen.desk())


MOST_BYTES = 64 << 20


def hook_of(name: str) -> Callable[[Screen, tuple[str, ...]], int]:
    """Return the hook of that name; its reply goes to standard output, and nothing else does."""

    def hook(screen: Screen, _args: tuple[str, ...]) -> int:
        from ...surfaces.agent_hooks import run_hook

        reply = run_hook(name, sys.stdin.buffer.read(MOST_BYTES), screen.env, Path.cwd())
        if reply.out:
            print(reply.out)
        if reply.told:
            screen.say(reply.told)
        return WAITING if reply.told else DONE

    return hook


claude_session_start = hook_of("claude-session-start")
claude_pre_tool_use = hook_of("claude-pre-tool-use")
claude_post_tool_use = hook_of("claude-post-tool-use")
claude_stop = hook_of("claude-stop")
claude_session_end = hook_of("claude-session-end")


def claude_share_session(screen: Screen, args: tuple[str, ...]) -> int:
    """Push the sessions of these gates, in the background at a conversation's end."""
    from ...acts.needs import publish_sessions

    publish_sessions(screen.desk(), list(args))
    return DONE


# `git gate mcp` serves gates to clients of the Model Context Protocol.


@click.command("mcp")
@verb
def mcp_command(screen: Screen) -> None:
    """Serve gates to a client of the Model Context Protocol, on standard input and output, until it hangs up.

    Its tools ask, check, wait, withdraw, list and show. None answers. What is asked through it is asked by an agent, and asking
    gives the gate's id at once. While `wait` waits, a client that can show a form asks whoever sits there. That is a proposal for a
    person, or an answer that nobody confirmed where the policy takes such.

    A client starts it by itself, once it is registered by `git gate init --mcp claude`, or `--mcp vscode --mcp codex`. It needs:
    pip install 'git-gate[mcp]'

    \b
    git gate mcp
    """
    from ...surfaces.mcp_server import serve_mcp

    if screen.interactive:
        raise Usage(
            "this is for programs: a client starts it, and talks to it in JSON",
            hint="register it: git gate init --mcp claude",
        )
    screen.desk()  # where there is no repository it says so, before a client waits for it
    serve_mcp(screen.env, Path(screen.directory) if screen.directory else Path.cwd())


# `git gate notify`: who hears of gates, and how; `test` tries it; `send` tells what is due.


NOBODY = "nobody is told of gates from here"


@click.group("notify", invoke_without_command=True)
@verb
def notify_command(screen: Screen) -> int:
    """Tell people of gates: who hears of them from here, and how. An address is added to git's configuration, or stands on the protected branch.

    \b
    git config --global --add gitgate.notify desktop
    git config --add gitgate.notify 'team=webhook https://example.org/gates'
    git gate notify
    git gate notify test
    git gate notify test team
    """
    ctx = click.get_current_context()
    ctx.obj = screen
    if ctx.invoked_subcommand is not None:
        return DONE
    from ...surfaces.notify.addresses import load_addresses
    from ...surfaces.notify.outbox import states_here

    desk = screen.desk()
    book = load_addresses(desk)
    states = states_here(desk)
    listed = [shape_of(one, states) for one in book.recipients]
    elsewhere = [shape_of(one, {}) for one in book.elsewhere]
    wrong = [{"where": one.where, "words": one.words, "mend": one.mend} for one in book.unusable]
    lines = [line_of(one) for one in listed]
    screen.emit("addresses", {"addresses": listed, "elsewhere": elsewhere, "wrong": wrong}, "\n".join(lines))
    for one in elsewhere:
        screen.say(f"{one['name']} ({one['address']}) is told by the server")
    tell_wrong(screen, book)
    if not listed:
        screen.say(f"{NOBODY}: git config --global --add gitgate.notify desktop")
    return FAILURE if wrong else DONE


def shape_of(one: Recipient, states: dict[str, AddressState]) -> dict[str, object]:
    state = states.get(one.digest)
    return {
        "name": one.name,
        "kind": one.channel.kind,
        "address": one.shown,
        "source": one.source,
        "to": list(one.to),
        "only": one.only,
        "quiet": one.quiet or None,
        "detail": "title",  # of every address; earlier versions knew others
        "waiting": state.waiting if state else 0,
        "sent": state.sent if state else 0,
        "trouble": (state.said or None) if state else None,
    }


def line_of(one: dict[str, object]) -> str:
    to = one["to"]
    parts = (
        f"for {', '.join(map(str, to))}" if isinstance(to, list) and to else "",
        f"only {one['only']}" if one["only"] != "low" else "",
        f"quiet {one['quiet']}" if one["quiet"] else "",
        f"{one['sent']} sent" if one["sent"] else "",
        f"{one['waiting']} wait" if one["waiting"] else "",
        str(one["trouble"] or ""),
    )
    more = "".join(f" · {part}" for part in parts if part)
    return f"{one['name']}  {one['address']}  ({one['source']}){more}"


def tell_wrong(screen: Screen, book: AddressBook) -> None:
    for one in book.unusable:
        screen.warn(f"{one.words}\n  {one.mend}")


@notify_command.command("test")
@click.argument("name", required=False)
@verb
def test_command(screen: Screen, name: str | None) -> int:
    """Send one message to each address, or to the one of that name. Exit 1 where one does not get through.

    \b
    git gate notify test
    git gate notify test team --json
    """
    from ...surfaces.notify import NotSent
    from ...surfaces.notify.addresses import load_addresses
    from ...surfaces.notify.sending import send_test

    desk = screen.desk()
    desk.refuse_agents("notify test")
    book = load_addresses(desk)
    chosen = recipients_named(book, name)
    tell_wrong(screen, book)
    tried = []
    for one in chosen:
        screen.progress(f"telling {one.name}")
        try:
            send_test(desk, one)
        except NotSent as failed:
            tried.append({"name": one.name, "address": one.shown, "sent": False, "reason": failed.message})
            screen.warn(f"{one.name}: {failed.message}{f'; {failed.hint}' if failed.hint else ''}")
        else:
            tried.append({"name": one.name, "address": one.shown, "sent": True, "reason": None})
            screen.say(f"{one.name}: sent to {one.shown}")
    screen.emit("notify", {"tried": tried}, "")
    return DONE if all(one["sent"] for one in tried) and not book.unusable else FAILURE


def recipients_named(book: AddressBook, name: str | None) -> list[Recipient]:
    every = [*book.recipients, *book.elsewhere]
    if name is None:
        if not book.recipients and book.unusable:
            wrong = "; ".join(one.words for one in book.unusable)
            raise Failure(f"{NOBODY}: {wrong}", hint=book.unusable[0].mend)
        if not book.recipients:
            raise Failure(NOBODY, hint="git config --global --add gitgate.notify desktop")
        return list(book.recipients)
    found = [one for one in every if one.name == name]
    if not found:
        known = ", ".join(dict.fromkeys(one.name for one in every))
        raise Usage(f"no address has the name {name!r}; there are {known or 'none'}", hint="git gate notify")
    return found


@notify_command.command("send")
@verb
def send_command(screen: Screen) -> int:
    """Tell now what is to be told: for a timer, on a machine where neither pushes nor a worker come by.

    \b
    git gate notify send
    """
    from ...surfaces.notify.sending import messenger_of

    desk = screen.desk()
    sender = messenger_of(desk, screen.say)
    try:
        done = sender.run()
    finally:
        sender.outbox.close()
    fields = {"sent": done.sent, "failed": done.failed, "over": done.over} if done else {}
    screen.emit("sent", {"busy": done is None, **fields}, "")
    if done is None:
        screen.say("another process sends at this moment")
    elif not (done.sent or done.failed):
        screen.say("nothing is to be told")
    return FAILURE if done is not None and done.failed else DONE


def send_all(screen: Screen, args: tuple[str, ...]) -> int:
    """Send what people are to be told, in a process of its own; its output is the log.

    It is started when a gate was opened, or was heard of.
    """
    from ...surfaces.notify.sending import messenger_of
    from ..process import stop_on_signal

    del args
    desk: Desk = screen.desk()
    with stop_on_signal() as stopping:
        sender = messenger_of(desk, log_line, stopping)
        try:
            sender.run(stay=True)
        finally:
            sender.outbox.close()
    return DONE


def log_line(words: str) -> None:
    print(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {words}", file=sys.stderr, flush=True)
