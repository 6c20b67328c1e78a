"""Command line: verbs that stay while a person works: `git gate desk` shows what waits, `git gate listen` asks as soon as an agent asks."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...agents import without_caller
from ...context import open_desk
from ...context.machine import (
    Attentive,
    begin_listening,
    end_listening,
    find_listener,
    host_name,
    repositories,
    started,
)
from ...document import replace
from ...errors import Conflict, Failure, GateError, NotAllowed, Usage
from ...store.git.programs import lend_terminal, open_folder
from ...surfaces.desk import known_places, run_gate_command
from ...surfaces.desk.screens import DeskApp
from ...surfaces.desk.services import DeskWorld
from ...surfaces.listen import DIALOGS, Dialog, TerminalPrompt, show_window, usable_dialogs
from ...surfaces.listen.listening import QuestionListener, hearing, open_listened_repository
from ...surfaces.notify.sending import tell_of, telling
from ...text import counted, neutral, one_line
from .. import CLOSED, DONE, SAID_NO
from ..process import stop_on_signal
from ..terminal import Screen, json_line, read_word, verb, wants_color
from ..terminal.prompts import LeaveAll, NextGate, StopGate, ask_offered
from .respond import delivery, recording_words, what_next
from .resume import known

if TYPE_CHECKING:
    from ...config import Settings
    from ...surfaces.desk import CommandResult, GateCommand
    from ...surfaces.listen.listening import ListenedRepository

# `git gate desk`: gates, runs and agents of all repositories on one terminal.


INSTALL = "pip install 'git-gate[desk]'"
QUIET_ENDS = (DONE, SAID_NO, CLOSED)


@click.command("desk")
@verb
def desk_command(screen: Screen) -> int:
    """Everything that waits in your repositories, live on this terminal: read, answer, talk, look at runs and agents.

    These are the repositories that `git gate init` was run in, and this one. Each key does what a command does, and the
    command is shown. An answer is sent after five seconds (gitgate.deskUndo); until then `u` takes it back. `?` shows
    the keys. It needs a terminal, and the extra `desk`.

    \b
    git gate desk
    pip install 'git-gate[desk]'
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
    world = world_of(screen)
    app = DeskApp(world)
    try:
        app.run()
    finally:
        results = [sent(screen, world, command) for command in app.left_over()]
    return max((result.code for result in results), default=app.return_code or DONE)


def sent(screen: Screen, world: DeskWorld, command: GateCommand) -> CommandResult:
    """Run the command of a decision that could still be taken back; whoever left the desk has decided."""
    with suppress(OSError):  # the terminal may be gone
        screen.say(f"sending: {command.shown(there=command.place != world.here)}")
    result = run_gate_command(command, world.env)
    with suppress(OSError):
        screen.warn(result.words)
    return result


def world_of(screen: Screen) -> DeskWorld:
    """Return what the desk works with. Outside of any repository, the first known one supplies the settings."""
    here, settings = current_repository(screen)
    places = known_places(screen.env, here)
    if not places:
        raise Failure(
            "no repository is known, and this is none", hint="git gate init, in each of your clones"
        )
    if settings is None:
        settings = screen_at(screen, repositories(screen.env)[0])
    env = dict(screen.env)
    editor = env.get("VISUAL") or env.get("EDITOR") or ""

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
        tell=lambda place, over: tell_of(place, quiet, lambda _words: None, over),
    )


def current_repository(screen: Screen) -> tuple[Path | None, Settings | None]:
    """Return the person's current repository, if any, and its settings; refuse an agent's terminal."""
    try:
        desk = screen.desk()
    except GateError:
        if screen.directory:
            raise
        return None, None
    desk.refuse_agents("desk")
    return desk.repo.place, desk.settings


def screen_at(screen: Screen, place: Path) -> Settings:
    desk = open_desk(place, screen.env)
    try:
        desk.refuse_agents("desk")
        return desk.settings
    finally:
        desk.close()


def pause() -> None:
    """Wait for Enter, so that the program's last words stay to be read."""
    try:
        read_word("\nEnter: back to the desk ")
    except (EOFError, KeyboardInterrupt):
        return


def editing(command: str, env: dict[str, str]) -> Callable[[Path], str]:
    def edit(folder: Path) -> str:
        if not command:
            return "no editor is set: export VISUAL=code"
        return open_folder(command, folder, env)

    return edit


# `git gate listen` asks the person as soon as an agent asks; and the two processes that it shows
# questions by: a window, and a prompt where it sits.


GOES = 10.0  # seconds that another listener has to end


@click.command("listen")
@click.argument("directories", metavar="[DIR]...", nargs=-1)
@click.option("--everywhere", is_flag=True, help="In every repository that `git gate init` knows.")
@click.option(
    "--dialog",
    "dialog",
    type=click.Choice(["auto", "terminal", "none", *DIALOGS]),
    default="auto",
    show_default=True,
    help="What shows the questions; none: only says what waits.",
)
@click.option("--take-over", is_flag=True, help="End another listener of yours that is there already.")
@verb
def listen_command(
    screen: Screen, directories: tuple[str, ...], everywhere: bool, dialog: str, take_over: bool
) -> int:
    """Stay, and be asked as soon as an agent asks: one question at a time, the most pressing first.

    Each question comes up in a dialog of your desktop, else in this terminal. Beside the answer you may put it aside, stop the
    agent, or answer in the terminal. One that somebody else has answered closes by itself. Who hears of gates by
    `gitgate.notify` is told from here, too. Ctrl-C ends it; what waits goes on waiting.

    \b
    git gate listen
    git gate listen ../api ../web
    git gate listen --everywhere --dialog zenity
    """
    places = known(screen, directories, everywhere=everywhere)
    repositories = open_listened_repositories(screen, places)
    shows = dialogs_of(screen, dialog)
    terminal = TerminalPrompt(terminal_env()) if may_ask_here(screen, dialog) else None
    named = shows[0].name if shows else terminal.name if terminal is not None else "none"
    with stop_on_signal() as stopping, presence(screen, repositories, named, take_over=take_over) as held:
        listener = QuestionListener(
            repositories=held,
            tell=lambda event, words, fields: tell(screen, event, words, fields),
            dialogs=shows,
            terminal=terminal,
            words_of=lambda desk, done: (what_next if done.counted else recording_words)(desk, done),
            delivery=lambda desk: delivery(desk, {"no_resume": False}),
            stopping=stopping,
        )
        tell_start(screen, held, named)
        heard = [repository.place for repository in held]
        with telling(heard, screen.env, screen.say, stopping), hearing(listener, screen.say):
            listener.run()
    left = len(listener.queue)
    tell(screen, "ended", f"stopped listening; {left} still wait{'s' if left == 1 else ''}", {"queue": left})
    return DONE


def open_listened_repositories(screen: Screen, places: Sequence[Path]) -> list[ListenedRepository]:
    """Open the repositories to listen in; of several, a broken one is reported, and hides no other."""
    repositories, wrong = [], []
    for place in places:
        try:
            repositories.append(open_listened_repository(place, screen.env))
        except NotAllowed:
            raise
        except GateError as failed:
            wrong.append(failed)
    if not repositories:
        raise wrong[0]
    for unusable in wrong:
        screen.warn(f"not listened in: {unusable.message}; {unusable.hint}")
    return repositories


def dialogs_of(screen: Screen, name: str) -> list[Dialog]:
    """Return the dialogs that show questions, in the order to try them; refuse a named one that does not work here."""
    if name in DIALOGS:
        chosen = DIALOGS[name]
        if lacking := chosen.lacks(screen.env):
            others = ", ".join(one.name for one in usable_dialogs(screen.env)) or "none"
            why, _, mend = lacking.partition("; ")
            hint = f"{f'{mend}   ' if mend else ''}usable here: {others}, terminal"
            raise Failure(f"--dialog {name}: {why}", hint=hint)
        return [chosen]
    found = usable_dialogs(screen.env) if name == "auto" else []
    if not found and name in ("auto", "terminal") and not may_ask_here(screen, name):
        what = "no desktop with dialogs, and no terminal" if name == "auto" else "no terminal"
        hint = "git gate listen in a terminal   dialogs: apt install zenity   to say only what waits: --dialog none"
        raise Failure(f"there is {what} here to ask on", hint=hint)
    return found


def may_ask_here(screen: Screen, name: str) -> bool:
    return name != "none" and screen.interactive


def terminal_env() -> Mapping[str, str]:
    """Return the environment of the prompt's process, with the terminal's width.

    The process prints its answer on standard output, so that it would not see that width.
    """
    import shutil

    columns = shutil.get_terminal_size((80, 24)).columns
    return {"COLUMNS": str(columns), "GIT_PAGER_IN_USE": "1"} if sys.stderr.isatty() else {}


def tell(screen: Screen, event: str, words: str, fields: Mapping[str, object]) -> None:
    """Print news on standard output, a line each: they are the data of this verb."""
    if screen.as_json:
        click.echo(json_line("listen", {"event": event, **fields}))
    elif not screen.quiet or event in ("trouble", "refused", "late"):
        click.echo(neutral(words))
    sys.stdout.flush()


def tell_start(screen: Screen, repositories: Sequence[ListenedRepository], named: str) -> None:
    places = [str(repository.desk.repo.place) for repository in repositories]
    tell(
        screen, "listening", f"listening, by {named}", {"places": places, "dialog": named, "pid": os.getpid()}
    )
    for repository in repositories:
        polls = "   on a network: looked at every 2 s" if repository.elsewhere else ""
        screen.say(f"  {repository.desk.repo.place}{polls}")
    if named == "none":
        screen.say("  to answer what is named: git gate respond ID")
    screen.say("  Ctrl-C ends it; what waits goes on waiting")


# Who is there


@contextmanager
def presence(
    screen: Screen, repositories: Sequence[ListenedRepository], named: str, *, take_over: bool
) -> Iterator[list[ListenedRepository]]:
    """Note this listener in the repositories where there is no other, for as long as the context lasts; yield these."""
    held: list[tuple[ListenedRepository, int]] = []
    there: list[tuple[ListenedRepository, Attentive | None]] = []
    try:
        for repository in repositories:
            desk = repository.desk
            who = Attentive(desk.person(), os.getpid(), host_name(), named, desk.now)
            number = begin_listening(desk, who)
            if number is None and take_over:
                send_away(find_listener(desk))
                number = begin_listening(desk, who)
            if number is None:
                there.append((repository, find_listener(desk)))
            else:
                held.append((repository, number))
        for repository, other in there:
            if held:
                screen.warn(f"{repository.name}: {there_words(other)}")
        if not held:
            raise Conflict(there_words(there[0][1]), hint="to end that one: git gate listen --take-over")
        yield [repository for repository, _ in held]
    finally:
        for repository, number in held:
            end_listening(repository.desk.repo, number)
            repository.desk.close()


def there_words(other: Attentive | None) -> str:
    if other is None:
        return "somebody begins to listen here at this very moment"
    who = one_line(other.by.partition(" <")[0], 60)
    return f"{who} listens here already, since {other.since} (pid {other.pid} on {one_line(other.host, 60)}, {one_line(other.dialog, 40)})"


def send_away(other: Attentive | None) -> None:
    """End a listener of this machine, and wait until it has gone.

    Only the very process that noted itself as the listener is ended.
    """
    import signal

    if other is None:
        return
    if other.host != host_name() or (other.started and started(other.pid) != other.started):
        raise Failure(
            f"the listener on {other.host} is not this machine's to end", hint=f"there: kill {other.pid}"
        )
    until = time.monotonic() + GOES
    try:
        os.kill(other.pid, signal.SIGTERM)
        while time.monotonic() < until:
            os.kill(other.pid, 0)
            time.sleep(0.05)
    except ProcessLookupError:
        return
    except PermissionError:
        raise Failure(f"process {other.pid} is somebody else's", hint=f"sudo kill {other.pid}") from None


# The processes that show one question


def show_here(screen: Screen, args: tuple[str, ...]) -> int:
    """Show a window of our own by what standard input says, and print what was done with it."""
    del screen, args
    click.echo(json.dumps(show_window(json.loads(sys.stdin.buffer.read()))))
    return DONE


OFFER = (
    "answer it, or: Enter to put it aside, :stop WHY to stop the agent, :q to end the listener, ? for help"
)


def ask_here(screen: Screen, args: tuple[str, ...]) -> int:
    """Ask the question on this terminal as `git gate respond` does; print the reply for the process that started us."""
    gate_id, tip, others = args
    desk = screen.desk()
    gate = desk.records.load(gate_id, tip)
    asking = replace(screen, in_turn=True, may_stop=True)
    screen.warn("")
    more = "" if others == "0" else f"   ({counted(int(others), 'question')} more)"
    said: dict[str, object]
    try:
        given, note = ask_offered(asking, desk, gate, "", f"{OFFER}{more}", afresh=True)
    except NextGate:
        said = {"act": "later"}
    except StopGate as stopped:
        said = {"act": "stop", "value": str(stopped)}
    except (LeaveAll, EOFError):
        said = {"act": "leave"}
    else:
        said = {"act": "answer", "value": {"values": given.values, "note": note}}
    click.echo(json.dumps(said))
    return DONE
