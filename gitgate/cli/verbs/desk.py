"""Command line: `git gate desk`: gates, runs and agents of all repositories on one terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...errors import Failure, GateError, Usage
from .. import exits
from ..terminal.screen import Screen, read_word, verb, wants_color

if TYPE_CHECKING:
    from ...config import Settings
    from ...surfaces.desk.deciding import CommandResult, GateCommand
    from ...surfaces.desk.services import DeskWorld

INSTALL = "pip install 'git-gate[desk]'"
QUIET_ENDS = (exits.DONE, exits.SAID_NO, exits.CLOSED)


@click.command("desk")
@verb
def desk_command(screen: Screen) -> int:
    """Everything that waits in your repositories, live on this terminal: read, answer, talk, look at runs and agents.

    These are the repositories that `git gate init` was run in, and this one. Each key does what a command does, and the
    command is shown. An answer is sent after five seconds (gitgate.deskUndo); until then `u` takes it back. `?` shows
    the keys; gitgate.deskKeys changes them. It needs a terminal, and the extra `desk`.

    \b
    git gate desk
    pip install 'git-gate[desk]'
    git config --global gitgate.deskKeys 'approve=y reject=n'
    """
    return open_it(screen)


def open_it(screen: Screen) -> int:
    if screen.as_json or not all(stream.isatty() for stream in (sys.stdin, sys.stdout)):
        raise Usage("the desk needs a terminal", hint="without one: git gate list --everywhere --json")
    try:
        import textual
    except ImportError:
        raise Failure("the desk is drawn by Textual, which is not installed", hint=INSTALL) from None
    del textual
    from ...surfaces.desk.screens import DeskApp

    world = world_of(screen)
    app = DeskApp(world)
    try:
        app.run()
    finally:
        results = [sent(screen, world, command) for command in app.left_over()]
    return max((result.code for result in results), default=app.return_code or exits.DONE)


def sent(screen: Screen, world: DeskWorld, command: GateCommand) -> CommandResult:
    """What was decided and could still have been taken back: whoever left has decided."""
    from ...surfaces.desk.deciding import run_gate_command

    with suppress(OSError):  # the terminal may be gone
        screen.say(f"sending: {command.shown(there=command.place != world.here)}")
    result = run_gate_command(command, world.env)
    with suppress(OSError):
        screen.warn(result.words)
    return result


def world_of(screen: Screen) -> DeskWorld:
    """What the desk works with; outside of any repository the first known one says what is set."""
    from ...agents import without_caller
    from ...context.machine import repositories
    from ...store.git.programs import lend_terminal
    from ...surfaces.desk.inbox import known_places
    from ...surfaces.desk.services import DeskWorld
    from ...surfaces.desk.widgets import read_keys
    from ...surfaces.notify.sending import tell_of

    here, settings = current_repository(screen)
    places = known_places(screen.env, here)
    if not places:
        raise Failure(
            "no repository is known, and this is none", hint="git gate init, in each of your clones"
        )
    if settings is None:
        settings = screen_at(screen, repositories(screen.env)[0])
    env = dict(screen.env)
    editor = settings.text("editor") or env.get("VISUAL") or env.get("EDITOR") or ""

    def lend(argv: Sequence[str], place: Path) -> int:
        code = lend_terminal(argv, place, env)
        if code not in QUIET_ENDS:
            pause()
        return code

    quiet = {**without_caller(env), "GIT_TERMINAL_PROMPT": "0"}
    return DeskWorld(
        places=places,
        here=here,
        env=without_caller(env),
        lend=lend,
        edit=editing(editor, env),
        color=wants_color(screen.color, screen.env, settings, terminal=True),
        undo=settings.span("deskUndo"),
        keys=read_keys(settings.text("deskKeys")),
        theme=theme_of(settings),
        tell=lambda place, over: tell_of(place, quiet, lambda _words: None, over),
    )


def current_repository(screen: Screen) -> tuple[Path | None, Settings | None]:
    """The repository that the person stands in, if any. An agent's terminal is no person's desk."""
    try:
        desk = screen.desk()
    except GateError:
        if screen.directory:
            raise
        return None, None
    desk.refuse_agents("desk")
    return desk.repo.place, desk.settings


def screen_at(screen: Screen, place: Path) -> Settings:
    from ...context.desk import open_desk

    desk = open_desk(place, screen.env)
    try:
        desk.refuse_agents("desk")
        return desk.settings
    finally:
        desk.close()


def theme_of(settings: Settings) -> str:
    from textual.theme import BUILTIN_THEMES

    name = settings.text("deskTheme")
    if name and name not in BUILTIN_THEMES:
        raise Usage(
            f"gitgate.deskTheme: there is no theme {name!r}; there are {', '.join(sorted(BUILTIN_THEMES))}",
            hint="git config --global gitgate.deskTheme textual-light",
        )
    return name


def pause() -> None:
    """What the program said last stays to be read."""
    try:
        read_word("\nEnter: back to the desk ")
    except (EOFError, KeyboardInterrupt):
        return


def editing(command: str, env: dict[str, str]) -> Callable[[Path], str]:
    from ...store.git.programs import open_folder

    def edit(folder: Path) -> str:
        if not command:
            return "no editor is set: git config --global gitgate.editor 'code'"
        return open_folder(command, folder, env)

    return edit
