"""Documentation: the click tree as plain values, which the reference and the manual page are rendered from."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import click

# What click calls the value of an option that takes a number; its limits stand in the help.
NUMBERS = re.compile(r"\b(?:INTEGER|FLOAT)(?: RANGE)?\b")


@dataclass(frozen=True)
class Entry:
    """One option or argument: how it is written, and what it is for."""

    written: str
    meaning: str


@dataclass(frozen=True)
class Verb:
    """One command: `ask`, or `policy check` with its group's name before it."""

    name: str
    usage: str
    text: str
    entries: tuple[Entry, ...]
    family: str


def top(group: click.Group) -> click.Context:
    """The context that a person's command line would start with; its settings are inherited by every verb."""
    return click.Context(group, info_name="git gate", **group.context_settings)


def root(group: click.Group) -> Verb:
    """The command without a verb: what it does, and the options that come before a verb."""
    context = top(group)
    return Verb("", usage(group, context), text_of(group), entries(group, context), "")


def read(group: click.Group, families: Mapping[str, Iterable[str]]) -> list[Verb]:
    """Every visible command under `group`, in its own order; `families` has the first words under each heading."""
    context = top(group)
    family = {name: heading for heading, names in families.items() for name in names}
    found: list[Verb] = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None and not command.hidden:
            found += verbs(command, context, name, family.get(name, ""))
    return found


def verbs(command: click.Command, parent: click.Context, name: str, family: str) -> list[Verb]:
    """A command, or the commands of a group, each under its full name."""
    context = click.Context(command, info_name=name.rsplit(maxsplit=1)[-1], parent=parent)
    own = [Verb(name, usage(command, context), text_of(command), entries(command, context), family)]
    if not isinstance(command, click.Group):
        return own
    below: list[Verb] = []
    for child in command.list_commands(context):
        found = command.get_command(context, child)
        if found is not None and not found.hidden:
            below += verbs(found, context, f"{name} {child}", family)
    return (own if command.invoke_without_command else []) + below


def usage(command: click.Command, context: click.Context) -> str:
    return " ".join([context.command_path, *command.collect_usage_pieces(context)])


def text_of(command: click.Command) -> str:
    """The command's help as written: click's form feed ends it."""
    return inspect.cleandoc(command.help or "").partition("\f")[0].strip("\n ")


def paragraphs(text: str) -> list[tuple[str, bool]]:
    """Each paragraph, and whether it is to be shown line by line: marked for click by a backspace, or indented."""
    found = []
    for part in text.split("\n\n"):
        told = part.removeprefix("\b").strip("\n")
        if told:
            found.append((told, part.startswith(("\b", "  ")) or "\n  " in part))
    return found


def entries(command: click.Command, context: click.Context) -> tuple[Entry, ...]:
    found = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        # An argument without a word of help is in the usage line already; newer clicks list it all the same.
        if record is not None and (record[1] or isinstance(parameter, click.Option)):
            found.append(Entry(NUMBERS.sub("N", record[0]), " ".join(record[1].split())))
    return tuple(found)


def shared(found: list[Verb]) -> tuple[Entry, ...]:
    """The options that every verb has, told once instead of under each."""
    if not found:
        return ()
    return tuple(entry for entry in found[0].entries if all(entry in verb.entries for verb in found))


def anywhere(root: Verb, found: list[Verb]) -> str:
    """Which of the options before the verb may stand after it too, as a sentence; nothing if none may."""
    names = [entry.written.split()[0].rstrip(",") for entry in shared(found) if entry in root.entries]
    return f"{', '.join(names)}: also after any command." if names else ""
