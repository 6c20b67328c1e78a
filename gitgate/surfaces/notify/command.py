"""Surfaces: a program of the person's own hears of a gate: the event as JSON on its standard input. No shell takes part."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from ...agents import scrubbed
from ...store.git.programs import find_program, tell_program
from ...text import one_line
from . import Endpoint, Notification, NotSent

LONGEST = 30.0


class CommandChannel:
    kind = "command"

    def misfit(self, target: Endpoint) -> str:
        try:
            words = shlex.split(target.words)
        except ValueError:
            return "command PROGRAM ARG…, with its quotes closed"
        if not words:
            return "command PROGRAM ARG…"
        if "/" in words[0] and not Path(words[0]).is_absolute():
            return "a program by its name, or by its whole path"
        return ""

    def lacks(self, target: Endpoint) -> str:
        program = shlex.split(target.words)[0]
        found = find_program(program, target.env)
        if not found:
            return f"the program {one_line(program, 80)} is not there, or may not be started"
        if target.tree is not None and Path(found).resolve().is_relative_to(target.tree.resolve()):
            return f"{one_line(found, 80)} is a file of the working tree, where agents write"
        return ""

    def shown(self, target: Endpoint) -> str:
        return f"command {one_line(shlex.split(target.words)[0], 80)}"

    def send(self, target: Endpoint, notification: Notification) -> None:
        why = self.lacks(target)
        if why:
            raise NotSent(why, hint=HINT)
        program, *arguments = shlex.split(target.words)
        env = {
            **scrubbed(target.env),
            "GITGATE_ID": notification.gate,
            "GITGATE_EVENT": notification.event,
            "GITGATE_TITLE": notification.title,
        }
        said = (json.dumps(notification.shape, ensure_ascii=False) + "\n").encode("utf-8", "replace")
        run_bounded([find_program(program, target.env) or program, *arguments], said, env)


HINT = "git config --get-all gitgate.notify; to try: git gate notify test"


def run_bounded(argv: list[str], said: bytes, env: dict[str, str]) -> None:
    """Run a program to its end. `NotSent` says how it failed, in the program's own last words."""
    home = Path(env.get("HOME") or "/")
    ended = tell_program(argv, said, env, home if home.is_dir() else Path("/"), LONGEST)
    if ended.code:
        words = one_line(ended.err.decode("utf-8", "replace"), 160)
        how = f"did not end within {LONGEST:g} s" if ended.late else f"ended with exit {ended.code}"
        raise NotSent(f"{one_line(argv[0], 80)} {how}{f': {words}' if words else ''}", hint=HINT)
