"""Command line: `git gate demo`, the loop in a scratch folder."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import click

from ..render.paint import paint
from .screen import Screen, verb

WHO = {"server.git": "server", "agent": "agent", "you": "you"}
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
@verb
def demo_command(screen: Screen, keep: bool) -> None:
    """Show the whole loop: asked, answered from another clone, resumed by the server's hook, checked.

    Everything happens in a temporary folder: a bare server with its real hooks, two clones, an agent that is a small
    script. No model, no network; nothing of yours is touched.
    """
    from ..service.demo import play

    room = Path(tempfile.mkdtemp(prefix="gitgate-demo-"))
    began = time.monotonic()
    steps = []
    try:
        for step in play(room, screen.env):
            steps.append({"who": WHO[step.who], "why": step.why, "command": step.typed, "output": step.said})
            if not screen.as_json:
                show(screen, WHO[step.who], step.why, step.typed, step.said)
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
        click.echo(f"That was all of it, in {seconds} s, with plain git.\n\n{NEXT}")
    if keep:
        screen.say(f"the scratch folder is {room}; remove it when you have seen enough")


def show(screen: Screen, who: str, why: str, typed: str, said: str) -> None:
    click.echo(paint(f"# {why}", "dim", on=screen.colored))
    click.echo(paint(f"{who}$ ", "bold", on=screen.colored) + typed)
    if said:
        click.echo(said)
    click.echo()
