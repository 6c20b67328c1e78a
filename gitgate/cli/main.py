"""Command line: where it begins, and the only boundary where an error becomes words and an exit code.

A verb's module is imported when the verb is used: start-up is what most commands cost.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import TextIOWrapper

import click

from ..config import environment, refuse_system
from ..errors import GateError
from . import BUG, BY_KIND, DONE, FAILURE, INTERRUPTED, USAGE

COMPLETING = "_GIT_GATE_COMPLETE"  # set when a shell asks what may be typed next

# verb: (module, what it does in a few words). The order is the order of `--help`.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "For the agent": {
        "ask": ("verbs.ask", "Open a gate: ask a person, and exit."),
        "wait": ("verbs.show", "Block until a gate is answered; print the answer."),
        "check": ("verbs.show", "Print the answer, or exit 8 while there is none."),
        "withdraw": ("verbs.remarks", "Take a question back."),
        "outcome": ("verbs.remarks", "In a session that a person joined: say what was decided."),
        "mcp": ("verbs.hook", "Gates as tools, for clients of the Model Context Protocol."),
        "wrap": ("verbs.resume", "Run an agent; open the gate when it ends by asking."),
    },
    "For the person": {
        "list": ("verbs.lists", "What waits, most pressing first."),
        "desk": ("verbs.desk", "Everything that waits, live on one terminal."),
        "show": ("verbs.show", "One gate as a letter: question, context, work, how to answer."),
        "diff": ("verbs.show", "The partial work as a diff."),
        "worktree": ("verbs.show", "The partial work as a worktree to look around in."),
        "respond": ("verbs.respond", "Answer a gate."),
        "join": ("verbs.join", "Open the agent's own session here, then decide."),
        "continue": ("verbs.join", "The same as join."),
        "comment": ("verbs.remarks", "Ask back or add a remark, without deciding."),
        "edit": ("verbs.remarks", "Reassign, reprioritise, or move the deadline."),
        "stop": ("verbs.remarks", "End a gate; the agent does not go on."),
        "signal": ("verbs.remarks", "For scripts: CONTINUE, STOP or another status."),
        "status": ("verbs.show", "Where things stand: gates and agents."),
        "tree": ("verbs.show", "Gates by branch."),
        "log": ("verbs.show", "The audit trail."),
        "watch": ("verbs.show", "What happens, live."),
        "listen": ("verbs.desk", "Stay, and be asked by a dialog as soon as an agent asks."),
        "stats": ("verbs.earlier", "How many wait, how long answers take, and whose."),
        "search": ("verbs.earlier", "Earlier decisions, by their words."),
        "why": ("verbs.earlier", "Which decisions led to these lines of a file."),
        "fork": ("verbs.earlier", "The same question answered otherwise: a new gate, from the same work."),
        "compare": ("verbs.earlier", "Two gates side by side: answers, outcomes, and how they differ."),
        "export": ("verbs.earlier", "An auditor's bundle: gates in one file, checked by plain git."),
    },
    "For flows": {
        "run": ("verbs.run", "Start a flow: agents and people in one program."),
    },
    "For the machinery": {
        "init": ("verbs.init", "Set up this clone."),
        "sync": ("verbs.lists", "Fetch and push gates; never loses a local one."),
        "resume": ("verbs.resume", "Start the agents of answered gates again."),
        "worker": ("verbs.resume", "Stay, and act on answers and deadlines."),
        "archive": ("verbs.lists", "Fold closed gates away."),
        "notify": ("verbs.hook", "Who hears of gates, and how; try it."),
        "session": ("verbs.resume", "Erase a saved session."),
        "policy": ("verbs.init", "Who may answer what, and why."),
        "verify": ("verbs.lists", "Check every gate's chain and bindings."),
        "doctor": ("verbs.init", "What is set up, what is missing, what mends it."),
        "github": ("jobs.github", "The pull request: questions as comments, replies as answers."),
        "serve": ("jobs.serve", "Take a forge's webhooks, on a machine of your own."),
        "hook": ("verbs.hook", "What the hook shims call."),
        "demo": ("verbs.init", "The whole loop, in a scratch repository."),
        "completion": ("help", "Shell completion: what to source."),
        "help": ("help", "Explain a verb, or a topic."),
    },
}
VERBS = {verb: place for section in SECTIONS.values() for verb, place in section.items()}


class Verbs(click.Group):
    """Group of verbs that imports a verb's module when it is asked for it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in VERBS:
            return None
        from importlib import import_module

        module = import_module(f".{VERBS[cmd_name][0]}", __package__)
        command = getattr(module, f"{cmd_name}_command")
        if not isinstance(command, click.Command):
            raise TypeError(f"{cmd_name} is not a command")
        command.allow_extra_args = True  # `verb` refuses them, by an error that has them as a field
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in VERBS:
            from .help import unknown_verb

            raise unknown_verb(args[0], args[1:], VERBS)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        for section, verbs in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(verb, words) for verb, (_, words) in verbs.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("First steps"):
            formatter.write_dl(
                [
                    ("git gate init", "once in a clone"),
                    ('git gate ask "Which database?" -o Postgres -o SQLite', "what an agent types"),
                    ("git gate list", "what waits for you"),
                    ("git gate respond ID Postgres", "answer it"),
                ]
            )


@click.group(
    cls=Verbs,
    name="git-gate",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("-C", "directory", metavar="DIR", help="Work as if started in DIR.")
@click.option("--version", is_flag=True, help="Print the version.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option("-q", "--quiet", is_flag=True, help="Say less on standard error.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), help="Colour the output.")
@click.pass_context
def cli(
    ctx: click.Context, directory: str | None, version: bool, as_json: bool, quiet: bool, color: str | None
) -> None:
    """A gate in Git between AI agents and the people who decide.

    An agent asks, commits its question with its partial work, and exits. A person answers, here or in another clone.
    The answer is a commit too, and starts the agent again. Without a verb: what waits for you.
    """
    from .terminal import Screen

    ctx.obj = Screen(directory=directory, as_json=as_json, quiet=quiet, color=color)
    if version:
        from ..version import VERSION

        ctx.obj.emit("version", {"version": VERSION}, f"git-gate {VERSION}")
    elif ctx.invoked_subcommand is None:
        from .verbs.lists import overview

        try:
            overview(ctx.obj)
        finally:
            ctx.obj.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    unbreakable()
    try:
        refuse_system()
        result = run_verb(args)
    except GateError as failed:
        return refused(args, failed)
    except click.UsageError as wrong:
        return misused(args, wrong)
    except (KeyboardInterrupt, click.Abort):
        return cut_short(args)
    except (BrokenPipeError, SystemExit):  # click turns the first into the second
        quiet_stdout()
        return DONE
    except Exception as bug:  # noqa: BLE001 - the one place where a bug becomes a report instead of a traceback
        return machine_failed(args, bug) if is_the_machines(bug) else report(args, bug)
    return result if isinstance(result, int) else DONE


def refused(args: Sequence[str], failed: GateError) -> int:
    from .help import way_out

    hint = failed.hint or way_out(args, failed.kind, VERBS)
    return complain(args, failed.code, failed.message, hint, BY_KIND[failed.kind])


def misused(args: Sequence[str], wrong: click.UsageError) -> int:
    from .help import usage_hint, usage_message

    return complain(args, "usage", usage_message(wrong), usage_hint(wrong, args, VERBS), USAGE)


def run_verb(args: list[str]) -> object:
    asked = environment().get(COMPLETING)
    if asked:
        from .help import answer_shell

        return answer_shell(asked, cli)
    return cli.main(args, prog_name="git gate", standalone_mode=False)


def unbreakable() -> None:
    """Spell out characters that the terminal or the file cannot hold, rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def is_the_machines(failed: BaseException) -> bool:
    """Return whether the machine failed, and not gitgate: a full disk, a read-only directory, no more processes."""
    import errno

    names = (
        "ENOSPC",
        "EDQUOT",
        "EROFS",
        "EIO",
        "EACCES",
        "EPERM",
        "EMFILE",
        "ENFILE",
        "EAGAIN",
        "ENOMEM",
        "EFBIG",
    )
    numbers = {getattr(errno, name) for name in names if hasattr(errno, name)}
    return isinstance(failed, OSError) and failed.errno in numbers


def cut_short(args: Sequence[str]) -> int:
    return complain(args, "interrupted", "interrupted", "nothing was left half done", INTERRUPTED)


def machine_failed(args: Sequence[str], failed: BaseException) -> int:
    place = getattr(failed, "filename", None)
    words = f"{getattr(failed, 'strerror', failed)}{f': {place}' if place else ''}"
    try:
        sys.stdout.flush()
    except OSError:
        quiet_stdout()  # it is the output that cannot be written; at exit it would fail once more
        args = ()  # nor could an object be
    return complain(args, "machine", words, "make room or give way there, then type the same again", FAILURE)


def complain(args: Sequence[str], code: str, message: str, hint: str, status: int) -> int:
    """Print an error in the form that was asked for, and return its exit code."""
    from .terminal import as_installed

    message, hint = as_installed(message), as_installed(hint)
    if wants_json(args):
        import json

        from ..render.shapes import error

        try:
            print(json.dumps(error(code, message, hint)), flush=True)
        except OSError:
            quiet_stdout()  # where the object should go nothing can be written: then in words
        else:
            return status
    from ..text import neutral

    print(as_wide_as_shown(f"git gate: {neutral(message)}"), file=sys.stderr)
    for line in neutral(hint).splitlines():
        print(f"  {line}", file=sys.stderr)
    return status


def as_wide_as_shown(words: str) -> str:
    """Break words to the width of the terminal, between words; a command to type is left whole, to be copied."""
    if not sys.stderr.isatty():
        return words
    from shutil import get_terminal_size

    from ..text import wrap

    return wrap(words, get_terminal_size((80, 24)).columns)


def wants_json(args: Sequence[str]) -> bool:
    flags = args[: args.index("--")] if "--" in args else args
    return "--json" in flags


def report(args: Sequence[str], bug: BaseException) -> int:
    """Write down a bug of ours where the person finds it. Arguments may hold secrets: only the verb is written."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile(
        "w", prefix="gitgate-bug-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        from ..version import VERSION

        verb = next((arg for arg in args if arg in VERBS), "")
        file.write(f"git-gate {VERSION}, Python {sys.version.split()[0]}, {sys.platform}, verb: {verb}\n\n")
        file.write("".join(traceback.format_exception(bug)))
    message = f"this is a bug in gitgate: {type(bug).__name__}"
    return complain(args, "bug", message, f"the report is in {file.name}", BUG)


def quiet_stdout() -> None:
    """Send standard output nowhere: its reader has gone, and Python would complain once more at exit."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
