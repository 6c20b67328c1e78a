"""Command line: what stands between a verb and the terminal: what is printed, and what a person types.

Data on stdout; talk and prompts on stderr.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ... import config
from ...config import FALSE, TRUE
from ...context import has_asked, open_desk
from ...context.targets import remote_of, summaries
from ...document import dataclass, field, replace
from ...errors import Failure, GateError, Usage
from ...record import by_pressure
from ...store import private_folder
from ...text import hang, neutral, one_line, parse_duration, wrap

if TYPE_CHECKING:
    from threading import Timer

    from ...config import Settings
    from ...context import Desk
    from ...exchange.syncing import Published


TELL_AFTER = 1.0


@dataclass(frozen=False)
class Pulse:
    """Announcement of a wait: at most one is pending, and whatever is printed meanwhile takes its place."""

    pending: list[Timer] = field(default_factory=list)

    def start(self, words: str, say: Callable[[str], None]) -> None:
        from threading import Timer

        self.stop()
        timer = Timer(TELL_AFTER, say, (words,))
        timer.daemon = True
        timer.start()
        self.pending.append(timer)

    def stop(self) -> None:
        while self.pending:
            self.pending.pop().cancel()


WIDEST = 10_000  # a pipe has no edge: whoever reads it cuts for himself
WIDEST_LETTER = 100
NO_INIT = "nothing resumes by itself in this clone until it is set up: git gate init"
MOST_TEXT = 1 << 20
LINE_ENDS = (
    "\x85",
    "\u2028",
    "\u2029",
)  # JSON lets them stand, and many a reader of lines takes them for an end


@dataclass(frozen=False)
class Screen:
    """Terminal of this call of the command, and the place where it works.

    Settings are known once a desk was opened.
    """

    directory: str | None = None
    as_json: bool = False
    quiet: bool = False
    color: str | None = None
    empty_leaves: bool = False  # an empty line at a prompt leaves with nothing written, as Ctrl-D does
    in_turn: bool = False  # several gates are gone through: a prompt also takes what leads on to the next
    may_stop: bool = False  # and what ends one without an answer
    may_wait: bool = False  # and the word that leaves it waiting
    env: Mapping[str, str] = field(default_factory=config.environment)
    settings: Settings | None = None
    pulse: Pulse = field(default_factory=Pulse, repr=False)
    desks: list[Desk] = field(default_factory=list, repr=False)

    @property
    def start(self) -> Path:
        return Path(self.directory) if self.directory else Path.cwd()

    def desk(
        self,
        *,
        bulk: bool = False,
        said: Mapping[str, str] | None = None,
        meanwhile: Callable[[], object] | None = None,
    ) -> Desk:
        """Open the desk. `meanwhile`: a function that loads something slow while git says where we are."""
        if self.directory and not self.start.is_dir():
            raise Failure(
                f"{self.directory} is not a directory",
                hint="git gate -C DIR works in a directory that is there",
            )
        flags = {**({"color": self.color} if self.color else {}), **(said or {})}
        self.progress(f"{verb_name()} is still at it")
        desk = open_desk(
            self.start, self.env, flags=flags, bulk=bulk, progress=self.progress, meanwhile=meanwhile
        )
        desk.remind = self.say
        self.settings = desk.settings
        self.desks.append(desk)
        return desk

    def close(self) -> None:
        """Close all desks at the end of a verb, so that nothing of it runs on."""
        self.pulse.stop()
        while self.desks:
            desk = self.desks.pop()
            desk.close()
            for words in [*desk.settings.warnings, *desk.told]:
                self.warn(f"warning: {words}")

    def emit(self, name: str, fields: Mapping[str, object], text: str) -> None:
        """Print the result: one JSON object, or text."""
        self.pulse.stop()
        if self.as_json:
            click.echo(json_line(name, fields))
        elif text:
            self.print(text)

    def print(self, text: str) -> None:
        """Print text, without colours unless they are wanted.

        The search for colours takes long, so that it is left out where there are none.
        """
        click.echo(text, color=self.colored or "\x1b" not in text)

    def say(self, words: str) -> None:
        """Say where something went and what happens next, on standard error. Never data."""
        if not self.quiet and words:
            self.warn(words)

    def warn(self, words: str) -> None:
        self.pulse.stop()
        click.echo(neutral(as_installed(words)), err=True)

    def tell(self, words: str, deeper: int = 0) -> None:
        """Tell a person something at a prompt, broken between words, where a terminal would break within one.

        A line goes on `deeper` below its beginning.
        """
        cells = self.width if sys.stderr.isatty() else WIDEST
        self.warn(hang(words, cells, deeper=" " * deeper) if deeper else wrap(words, cells))

    def say_once(self, desk: Desk) -> None:
        """Say once, in a clone where somebody has asked, that `git gate init` lets it resume agents. Where people only answer,
        the server or the asker's own machine goes on.
        """
        if self.quiet or desk.settings.flag("initialised") or not has_asked(desk):
            return
        told = desk.repo.state_dir / "told-of-init"
        try:
            private_folder(told.parent)
            told.touch(exist_ok=False)
        except FileExistsError:
            return
        except OSError:
            pass  # Where nothing can be kept it is said each time.
        self.say(NO_INIT)

    def progress(self, words: str) -> None:
        """Show a sign of life on a terminal when something takes more than a second; stay silent elsewhere."""
        if self.quiet:
            return
        if sys.stderr.isatty():
            self.pulse.start(f"{words.rstrip(' …')} …", self.say)

    @property
    def watched(self) -> bool:
        """Return whether a person reads along on a terminal: no script, no job, no other program."""
        return (
            sys.stdout.isatty()
            and sys.stderr.isatty()
            and not self.as_json
            and not self.quiet
            and self.env.get("CI", "").lower() not in config.TRUE
        )

    @contextmanager
    def waiting(self, words: str) -> Iterator[None]:
        """Show words on the terminal while something is waited for, and clear them afterwards.

        Ctrl-C ends the waiting alone.
        """
        sys.stderr.write(f"{words} …")
        sys.stderr.flush()
        try:
            yield
        finally:
            sys.stderr.write(f"\r{' ' * (len(words) + 2)}\r")
            sys.stderr.flush()

    @property
    def interactive(self) -> bool:
        """Return whether a person is there to be asked."""
        return sys.stdin.isatty() and sys.stderr.isatty() and not self.as_json

    @property
    def colored(self) -> bool:
        """As git decides it: flag and setting, then NO_COLOR, then git's own `color.ui`, then whether it is a terminal."""
        return wants_color(self.color, self.env, self.settings, terminal=sys.stdout.isatty())

    @property
    def width(self) -> int:
        """The terminal's width, also behind a pager that git itself started."""
        if sys.stdout.isatty() or (self.env.get("GIT_PAGER_IN_USE") and self.env.get("COLUMNS")):
            import shutil

            return shutil.get_terminal_size((80, 24)).columns
        return WIDEST

    @property
    def letter_width(self) -> int:
        """Width of a letter's lines: longer ones are hard to read, also where nobody cuts them."""
        return min(self.width, WIDEST_LETTER)

    def page(self, text: str) -> None:
        """Show text to a person, through a pager as git uses one if it is longer than the terminal."""
        self.pulse.stop()
        if not self.paged(text):
            self.print(text)

    def paged(self, text: str) -> bool:
        if self.as_json or not sys.stdout.isatty():
            return False
        import shutil

        if text.count("\n") + 2 <= shutil.get_terminal_size((80, 24)).lines:
            return False
        command = pager_of(self.env, self.settings)
        return bool(command) and show_paged(command, text, self.env)


def json_line(name: str, fields: Mapping[str, object]) -> str:
    """Return one object on one line of JSON.

    Text stays as it was said; an output that cannot hold it gets JSON's own escapes.
    """
    import json

    from ...render.shapes import thing

    shape = thing(name, fields)
    line = json.dumps(shape, ensure_ascii=False)
    for mark in LINE_ENDS:
        line = line.replace(mark, f"\\u{ord(mark):04x}")
    try:
        line.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return json.dumps(shape)
    return line


def verb_name() -> str:
    context = click.get_current_context(silent=True)
    return context.command_path if context else "git gate"


class VerbCommand(click.Command):
    """Verb of the command line. A flag's one letter is read as its long name.

    Click looks for a long name first. Where there is none, it composes what it would say of an unknown option. That
    takes 1 ms each time, of which most goes into loading `difflib`.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        flags = (one for one in self.params if isinstance(one, click.Option) and one.is_flag)
        long = {name: max(one.opts, key=len) for one in flags for name in one.opts if len(name) == 2}
        until = args.index("--") if "--" in args else len(args) if ctx.allow_interspersed_args else 0
        # Behind another option it may be what that one is given.
        alone = [word in long and (not at or args[at - 1][:1] != "-") for at, word in enumerate(args[:until])]
        spelt = [long[word] if one else word for word, one in zip(args, alone, strict=False)]
        return super().parse_args(ctx, [*spelt, *args[until:]])


class ExtraArguments(click.UsageError):
    """Error for more words than the verb takes. It has the words; Click's own error has them in its message alone."""

    def __init__(self, ctx: click.Context) -> None:
        self.words = tuple(map(str, ctx.args))
        noun = "argument" if len(self.words) == 1 else "arguments"
        super().__init__(f"Got unexpected extra {noun} ({' '.join(self.words)})", ctx)


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
        try:
            if ctx.args and not isinstance(ctx.command, click.Group):
                raise ExtraArguments(ctx)
            refuse_blanks(ctx)
            return command(screen, *args, **kwargs)
        except GateError as failed:
            fill_hint(failed, kwargs.get("gate_id"))
            raise
        finally:
            screen.close()

    return update_wrapper(with_screen, command)


# Where nothing said is the same as nothing there, and where the question's own type says what is missing.
MAY_BE_BLANK = ("note", "message", "other", "summary")


def refuse_blanks(ctx: click.Context) -> None:
    """Refuse options without words: mostly a variable was not set, and the option would count as never given."""
    for param in ctx.command.params:
        if isinstance(param, click.Option) and param.name not in MAY_BE_BLANK:
            refuse_blank(ctx, param)


def refuse_blank(ctx: click.Context, param: click.Option) -> None:
    name = param.name or ""
    given = ctx.params.get(name)
    values = given if isinstance(given, tuple) else (given,)
    if ctx.get_parameter_source(name) is not click.core.ParameterSource.COMMANDLINE:
        return
    if any(isinstance(value, str) and not value.strip() for value in values):
        flag = max(param.opts, key=len)
        before = [
            ctx.command_path,
            *(word for one in ctx.command.params if (word := shown_argument(ctx, one))),
        ]
        otherwise = "" if param.required else ", or leave it out"
        hint = f"{' '.join(before)} {flag} {shown_value(param)}{otherwise}"
        raise Usage(f"{flag} is empty", hint=hint)


def shown_argument(ctx: click.Context, param: click.Parameter) -> str:
    """Return an argument that was given, as the help names it."""
    given = isinstance(param, click.Argument) and ctx.params.get(param.name or "")
    name = param.human_readable_name
    return (name[1:-1] if name.startswith("[") and name.endswith("]") else name) if given else ""


def shown_value(param: click.Option) -> str:
    """Return the placeholder for an option's value, as the help shows it."""
    return param.metavar or (param.name or "").upper()


def refuse_dash(words: str | None, typed: str) -> None:
    """Refuse `-` and `@FILE` as words: they are read only where an option takes a file.

    As words they would be a question, a comment or an answer of themselves.
    """
    if words is not None and words.strip() == "-":
        raise Usage(
            "- is not read from standard input here, and says nothing",
            hint=f'{typed} "$(cat)" takes what is there',
        )
    if words is not None and words.startswith("@") and is_file(words[1:]):
        from shlex import quote

        raise Usage(
            f"{words} is not read from that file here, and would be all that is said",
            hint=f'{typed} "$(cat {quote(words[1:])})" takes what is there',
        )


def is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def tell_of_rules(screen: Screen, desk: Desk, lead: str = "") -> None:
    """Say which rules on an agent's calls count here, from which commit, and which do not yet.

    Say nothing where there are no rules.
    """
    from ...policy.rulebook import load_standing, standing_words

    for words in standing_words(load_standing(desk)):
        screen.say(f"{lead}{neutral(words)}")


def explain_alone(screen: Screen) -> None:
    """Print what a group of verbs has where it is called by itself, as git does; its flags count for its verbs, too."""
    ctx = click.get_current_context()
    ctx.obj = screen
    if ctx.invoked_subcommand is None:
        text = ctx.get_help()
        screen.emit("help", {"topic": ctx.info_name, "text": text}, text)


def fill_hint(failed: GateError, given: str | None) -> None:
    """Make the hint ready to type: put the gate that was named where the hint says ID."""
    if given and "ID" in failed.hint.split():
        from shlex import quote

        failed.hint = " ".join(quote(given) if word == "ID" else word for word in failed.hint.split(" "))


def read_text(argument: str, what: str, *, needed: bool = False) -> str:
    """Read `@FILE`, `-` for standard input, or the text itself. `needed`: a file without words is refused."""
    if argument != "-" and not argument.startswith("@"):
        return argument
    text = text_of_file(argument, what)
    if needed and not text.strip():
        shown = "standard input" if argument == "-" else argument[1:]
        raise Usage(f"{what}: {shown} is empty", hint=f"{what} TEXT, or leave it out")
    return text


def text_of_file(argument: str, what: str) -> str:
    name = "-" if argument == "-" else argument[1:]
    if not name:
        raise Usage(f"{what}: @ needs the name of a file", hint=f"{what} @notes.md")
    data = read_file(name, what, usual=f"{what} @FILE")
    shown = "standard input" if name == "-" else name
    if len(data) > MOST_TEXT:
        raise Usage(
            f"{what}: {shown} is longer than {MOST_TEXT} bytes", hint="attach it instead: --attach FILE"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        line = data.count(b"\n", 0, wrong.start) + 1
        raise Usage(
            f"{what}: {shown}, line {line}: expected UTF-8 text", hint="attach it instead: --attach FILE"
        ) from None


def read_duration(text: str, flag: str, usual: str) -> int:
    """Read a duration in seconds; an error names the flag, and what is usual there."""
    try:
        return parse_duration(text)
    except Usage as wrong:
        raise Usage(f"{flag}: {wrong.message}", hint=f"{flag} {usual}") from None


def read_file(name: str, what: str, most: int = MOST_TEXT, *, usual: str = "") -> bytes:
    """Read a file that an option names, or standard input.

    An error names the file, what it was for, and how one is named.
    """
    if name == "-":
        return sys.stdin.buffer.read(most + 1)
    try:
        with Path(name).open("rb") as file:
            return file.read(most + 1)
    except (OSError, ValueError) as unreadable:
        reason = unreadable.strerror if isinstance(unreadable, OSError) else "that is no name of a file"
        raise Usage(
            f"{what}: {name} cannot be read: {reason}",
            hint=f"{usual or f'{what} FILE'}: one that is there, or - for standard input",
        ) from unreadable


def complete_ids(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[Any]:
    """Shell completion of gate ids, each with its title: those that need a person first."""
    from click.shell_completion import CompletionItem

    from ...gates import NEEDS_A_PERSON, runs_here

    screen = Screen(directory=ctx.parent.params.get("directory") if ctx.parent else None, quiet=True)
    try:
        desk = screen.desk()
        found = [s for s in summaries(desk) if s.id.startswith(incomplete.lower())]
        runs = [said for said in runs_here(desk) if said["Run"].startswith(incomplete.lower())]
    except GateError:
        return []
    finally:
        screen.close()
    found = sorted(by_pressure(found), key=lambda summary: summary.state not in NEEDS_A_PERSON)
    return [
        *(CompletionItem(s.id, help=f"{s.state}: {one_line(s.title, 60)}") for s in found),
        *(CompletionItem(said["Run"], help=f"run of {one_line(said.get('Flow', ''), 60)}") for said in runs),
    ]


# For a surface that runs this verb for a person: what they did is recorded as done there.
through_option = click.option("--via", type=click.Choice(["cli", "desk"]), default="cli", hidden=True)


def gate_argument(*, required: bool = True) -> Callable[[Callable[..., object]], Callable[..., object]]:
    return click.argument(
        "gate_id", metavar="ID" if required else "[ID]", required=required, shell_complete=complete_ids
    )


NO_PAGER = ("", "cat")


def wants_color(
    flag: str | None, env: Mapping[str, str], settings: Settings | None, *, terminal: bool
) -> bool:
    """Return whether colour is wanted.

    Flag and our own setting come first; then NO_COLOR; then git's `color.ui`; then whether somebody sees it.
    """
    said = flag or (settings.text("color") if settings else env.get("GITGATE_COLOR", "auto"))
    if said in ("always", "never"):
        return said == "always"
    if env.get("NO_COLOR"):
        return False
    git = settings.git if settings else {}
    ui = git.get("color.gate", git.get("color.ui", "auto")).lower()
    if ui in ("always", "never", *FALSE):
        return ui == "always"
    return (terminal or bool(env.get("GIT_PAGER_IN_USE"))) and env.get("TERM") != "dumb"


def pager_of(env: Mapping[str, str], settings: Settings | None) -> str:
    """Return the command of the pager for long text; empty for none.

    It is chosen in git's order: `click.echo_via_pager` knows PAGER alone.
    """
    git = settings.git if settings else {}
    own = git.get("pager.gate")
    if (own is not None and own.lower() in FALSE) or env.get("TERM") == "dumb":
        return ""
    if settings is not None and not settings.flag("pager"):
        return ""
    command = None if own is None or own.lower() in TRUE else own
    for said in (env.get("GIT_PAGER"), command, git.get("core.pager"), env.get("PAGER"), "less"):
        if said is not None:
            return "" if said.strip() in NO_PAGER else said
    return ""


def show_paged(command: str, text: str, env: Mapping[str, str]) -> bool:
    """Show text in a pager; return False where none can be started, so that the caller prints the text."""
    from ...store.git.programs import page

    sys.stdout.flush()
    return page(command, (text + "\n").encode(sys.stdout.encoding or "utf-8", "backslashreplace"), env)


# Not `click.prompt`: at our lower bound (8.1.7) it writes to stdout even with `err=True`, and it knows no pasted lines.
PASTE_TIMEOUT = 0.05


class NotYet(EOFError):
    """Signal of an empty line where a form needs a word: the person thought better of it, and the gate still waits."""


def read_word(prompt: str) -> str:
    """Read one line without its end.

    Ctrl-D raises EOFError, Ctrl-C KeyboardInterrupt: both leave with nothing written.
    """
    while True:
        sys.stderr.write(prompt)
        sys.stderr.flush()
        try:
            line = sys.stdin.readline()
        except UnicodeDecodeError:
            sys.stderr.write("  that was not UTF-8; once more\n")
            continue
        if not line:
            raise EOFError
        return line.rstrip("\r\n")


def forget_typed() -> None:
    """Drop what came from the keyboard before a question stood there: it was meant for something else, and is no consent."""
    import termios

    with suppress(OSError, ValueError, termios.error):  # It may be no terminal.
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def read_lines(prompt: str) -> str:
    """Read one line, and more where it ends in a backslash or where pasted lines are there already."""
    lines = [read_word(prompt)]
    while True:
        if lines[-1].endswith("\\"):
            lines[-1] = lines[-1].removesuffix("\\")
            lines.append(read_word("" if more_is_there() else "  … "))
        elif more_is_there() and (pasted := sys.stdin.readline()):
            lines.append(pasted.rstrip("\r\n"))
        else:
            return "\n".join(lines).strip("\n")


def more_is_there() -> bool:
    return bool(select.select([sys.stdin], [], [], PASTE_TIMEOUT)[0])


def choose_letter(prompt: str, words: str) -> str:
    """Return one of the letters in `words`; anything else is asked again."""
    while True:
        word = read_word(prompt).strip().lower()[:1]
        if word and word in words:
            return word
        sys.stderr.write(f"  expected one of {', '.join(words)}\n")


SAVED = "saved, not pushed: git gate sync"


BY_PIP = "pip install 'git-gate["


def as_installed(words: str) -> str:
    """Return words in which the command for an extra reaches git gate's own environment: pipx and uv keep one for it."""
    if BY_PIP not in words:
        return words
    from shlex import quote

    place = Path(sys.prefix)
    command = "pip install"
    if (place / "pipx_metadata.json").is_file():
        command = f"pipx runpip {quote(place.name)} install"
    elif (place / "uv-receipt.toml").is_file():
        command = f"uv pip install --python {quote(str(place))}"
    return words.replace(BY_PIP, f"{command} 'git-gate[")


def tell_trouble(screen: Screen, published: Published) -> None:
    """Say why something did not get further than here, where somebody wanted it to."""
    if published.remote is not None and not published.pushed:
        screen.warn(f"warning: not pushed, but safe here: {published.reason}")


def sharing(desk: Desk) -> str:
    """Return the command that makes sessions travel with the questions that are asked here."""
    shares = desk.settings.text("session") == "push"
    return (
        "git gate init publishes work and sessions"
        if shares
        else "git config gitgate.session push shares them"
    )


def where(desk: Desk, published: Published) -> str:
    if published.pushed:
        return f"pushed to {published.remote}"
    return SAVED if published.remote or remote_of(desk) else "saved here"
