"""Command line: what stands between a verb and the terminal. Data on stdout, talk on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import config
from ..errors import Usage

if TYPE_CHECKING:
    from ..service.desk import Desk


@dataclass(frozen=True)
class Screen:
    """How this call of the command talks, and where it works."""

    directory: str | None = None
    as_json: bool = False
    quiet: bool = False
    color: str | None = None
    env: Mapping[str, str] = field(default_factory=config.environment)

    def desk(self, *, bulk: bool = False) -> Desk:
        from ..service.desk import open_desk

        flags = {"color": self.color} if self.color else {}
        start = Path(self.directory) if self.directory else Path.cwd()
        return open_desk(start, self.env, flags=flags, bulk=bulk, progress=self.progress)

    def emit(self, name: str, fields: Mapping[str, object], text: str) -> None:
        """The result: one JSON object, or text."""
        if self.as_json:
            import json

            from ..render.shapes import thing

            click.echo(json.dumps(thing(name, fields), ensure_ascii=False))
        elif text:
            click.echo(text, color=self.colored)

    def say(self, words: str) -> None:
        """Talk: where it went, what happens next. Never data."""
        if not self.quiet and words:
            from ..core.text import neutral

            click.echo(neutral(words), err=True)

    def warn(self, words: str) -> None:
        from ..core.text import neutral

        click.echo(neutral(words), err=True)

    def progress(self, words: str) -> None:
        """Signs of life on a terminal; silence elsewhere, where nobody watches."""
        if not self.quiet and (sys.stderr.isatty() or words.startswith("still waiting")):
            self.say(words)

    @property
    def interactive(self) -> bool:
        """Whether somebody is there to be asked."""
        return sys.stdin.isatty() and sys.stderr.isatty() and not self.as_json

    @property
    def colored(self) -> bool:
        if self.color in ("always", "never"):
            return self.color == "always"
        return sys.stdout.isatty() and not self.env.get("NO_COLOR") and self.env.get("TERM") != "dumb"

    @property
    def width(self) -> int:
        """The terminal's width; a fixed one when output goes to a file."""
        import shutil

        return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 200

    def page(self, text: str) -> None:
        """Long text for a person, through a pager as git uses one."""
        if self.as_json or not sys.stdout.isatty() or text.count("\n") < shutil_lines() or not self.paged:
            click.echo(text, color=self.colored)
            return
        click.echo_via_pager(text, color=self.colored)

    @property
    def paged(self) -> bool:
        return self.env.get("GIT_PAGER", self.env.get("PAGER", "less")) not in ("", "cat")


def shutil_lines() -> int:
    import shutil

    return shutil.get_terminal_size((100, 24)).lines - 1


def verb(command: Callable[..., object]) -> Callable[..., object]:
    """Give a verb the options that every verb has, and a Screen as its first argument."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
    @click.option("-q", "--quiet", is_flag=True, help="Say less on standard error.")
    @click.option("--color", type=click.Choice(["auto", "always", "never"]), help="Colour the output.")
    @click.pass_context
    def with_screen(
        ctx: click.Context, /, *args: Any, as_json: bool, quiet: bool, color: str | None, **kwargs: Any
    ) -> object:
        outer = ctx.find_object(Screen) or Screen()
        screen = replace(
            outer,
            as_json=outer.as_json or as_json,
            quiet=outer.quiet or quiet,
            color=color or outer.color,
        )
        return command(screen, *args, **kwargs)

    return update_wrapper(with_screen, command)


def read_text(argument: str, what: str) -> str:
    """`@FILE`, `-` for standard input, or the text itself."""
    if argument == "-":
        return sys.stdin.read()
    if argument.startswith("@"):
        return read_file(argument[1:], what).decode("utf-8", "replace")
    return argument


def read_file(name: str, what: str, most: int = 1 << 20) -> bytes:
    """A file that an option names, or standard input; an error names the file and what it was for."""
    if name == "-":
        return sys.stdin.buffer.read(most + 1)
    try:
        with Path(name).open("rb") as file:
            return file.read(most + 1)
    except OSError as unreadable:
        raise Usage(f"{what}: {name} cannot be read: {unreadable.strerror}") from unreadable


def complete_ids(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[Any]:
    """Shell completion of gate ids, each with its title."""
    from click.shell_completion import CompletionItem

    from ..errors import GateError
    from ..service.listing import summaries

    try:
        desk = (ctx.find_object(Screen) or Screen()).desk()
        return [
            CompletionItem(found.id, help=f"{found.state}: {found.title}")
            for found in summaries(desk)
            if found.id.startswith(incomplete.lower())
        ]
    except GateError:
        return []


def gate_argument(*, required: bool = True) -> Callable[[Callable[..., object]], Callable[..., object]]:
    return click.argument("gate_id", metavar="ID", required=required, shell_complete=complete_ids)
