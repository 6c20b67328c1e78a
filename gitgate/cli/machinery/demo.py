"""Command line: `git gate demo`, the loop in a scratch folder."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...render.table import paint
from ..terminal.screen import Screen, verb

if TYPE_CHECKING:
    from ...setup.demo import DemoStep


WHO = {"server.git": "server", "agent": "agent", "you": "you", "model": "model"}
ANYTHING, CLAUDE = "plain git", "plain git and the real Claude Code"
NEXT = """\
Now in your own repository:

  git gate init                              set this clone up
  git gate ask "Which way?" -o Left -o Right     what your agent types
  git gate                                   what waits for you
  git gate respond ID left                   answer it

  git gate init --claude                     for Claude Code: its questions become gates
  git gate init --server                     on your own git server, in the bare repository"""


@click.command("demo")
@click.option("--keep", is_flag=True, help="Leave the scratch folder, to look around in it.")
@click.option(
    "--claude",
    is_flag=True,
    help="Let the real Claude Code be the agent, against a scripted model on loopback.",
)
@verb
def demo_command(screen: Screen, keep: bool, claude: bool) -> None:
    """Show the whole loop: asked, answered from another clone, resumed by the server's hook, checked.

    Everything happens in a temporary folder: a bare server with its real hooks, two clones, an agent that is a small
    script. No model, no network; nothing of yours is touched.

    With --claude the agent is the claude that is on PATH. The model that it talks to comes with the demonstration: it
    needs no account and no network, and nothing of your own settings or credentials is read.

    \b
    git gate demo
    git gate demo --keep
    """
    play = player(screen, claude)
    room = Path(tempfile.mkdtemp(prefix="gitgate-demo-"))
    began = time.monotonic()
    steps = []
    try:
        for step in play(room, screen.env):
            steps.append({"who": WHO[step.who], "why": step.why, "command": step.typed, "output": step.said})
            if not screen.as_json:
                show_step(screen, WHO[step.who], step.why, step.typed, step.said)
    except BaseException:
        keep = True  # whatever went wrong, the folder tells more than we could
        raise
    finally:
        if not keep:
            shutil.rmtree(room, ignore_errors=True)
    seconds = round(time.monotonic() - began, 1)
    kept = str(room) if keep else None
    screen.emit("demo", {"steps": steps, "seconds": seconds, "kept": kept}, "")
    if not screen.as_json:
        click.echo(f"That was all of it, in {seconds} s, with {CLAUDE if claude else ANYTHING}.\n\n{NEXT}")
    if keep:
        screen.say(f"the scratch folder is {room}; remove it when you have seen enough")


def player(screen: Screen, claude: bool) -> Callable[[Path, Mapping[str, str]], Iterator[DemoStep]]:
    """Whose demonstration it is; a program that is missing is told of before anything is made."""
    if not claude:
        from ...setup.demo import play

        return play
    from ...setup.demo import find_claude, play_claude

    find_claude(screen.env)
    return play_claude


def show_step(screen: Screen, who: str, why: str, typed: str, said: str) -> None:
    click.echo(paint(f"# {why}", "dim", on=screen.colored))
    click.echo(paint(f"{who}$ ", "bold", on=screen.colored) + typed)
    if said:
        click.echo(said)
    click.echo()
