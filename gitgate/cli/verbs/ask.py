"""Command line: `git gate ask`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from ...acts.asking import AskWishes, ask, read_attachment
from ...document import codec, replace
from ...errors import BadDocument, Usage
from ...gates.agency import SECTION, untold_start
from ...model import AT_DEADLINE, SESSION_FIELDS, SESSION_OUTCOMES
from ...questions import drafts
from ...questions.drafts import parse_json
from ...questions.file import ASKED, GateField
from ...questions.types import TYPES, type_name
from ..terminal import (
    SAVED,
    Screen,
    VerbCommand,
    complete_ids,
    is_file,
    read_duration,
    read_file,
    read_text,
    refuse_dash,
    sharing,
    tell_trouble,
    verb,
    where,
)

if TYPE_CHECKING:
    from ...acts.asking import Asked
    from ...context import Desk
    from ...model.gate import Gate, Talk
    from ...questions.drafts import Draft


MODELS = ("sonnet", "opus", "haiku")


def offered(*words: str) -> Callable[..., list[str]]:
    """Return a shell completion that offers these words for a value; any other value may be typed."""
    return lambda _ctx, _param, incomplete: [word for word in words if word.startswith(incomplete)]


OPTIONS = (
    click.option(
        "--outcome", type=click.Choice(SESSION_OUTCOMES), help="With --type session: what it ends in."
    ),
    click.option(
        "--system-prompt", metavar="TEXT|@FILE", help="Added to the system prompt of the session's agent."
    ),
    click.option(
        "--session-context",
        metavar="JSON|@FILE|-",
        help="What the person and the agent of the session are shown.",
    ),
    click.option(
        "--model", metavar="M", shell_complete=offered(*MODELS), help="The model of the session's agent."
    ),
    click.option(
        "--cwd",
        metavar="DIR",
        type=click.Path(file_okay=False),
        help="Where the session begins, from the top of the worktree.",
    ),
    click.option(
        "--mcp-config",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="MCP servers for the session; whoever joins is asked before any is started.",
    ),
    click.option(
        "--session-timeout",
        metavar="30m",
        shell_complete=offered("30m", "1h", "2h"),
        help="How long the session may last; the gate's own deadline is --timeout.",
    ),
    click.option(
        "--grace",
        metavar="60s",
        shell_complete=offered("60s", "2m", "5m"),
        help="How long the session may go on after that, once it was warned.",
    ),
    click.option("--transcript", is_flag=True, help="Record what is said in the session with its answer."),
    click.option(
        "--resume-session",
        metavar="GATE",
        shell_complete=complete_ids,
        help="Go on with the session of an earlier gate.",
    ),
    click.option(
        "--save-every",
        metavar="5m",
        shell_complete=offered("1m", "5m", "15m"),
        help="How often the session is saved while it lasts; 0: only at its end.",
    ),
    click.option(
        "--checkpoint",
        is_flag=True,
        help="With --type session: no agent; the person is asked to go on or to stop.",
    ),
)


def session_options(command: Callable[..., object]) -> Callable[..., object]:
    for option in reversed(OPTIONS):
        command = option(command)
    return command


class MeantChoice(click.Choice[str]):
    """Choice of one of these words, or of another that people write for one of them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        meant = AT_DEADLINE.get(value, value)
        return super().convert(meant if meant in self.choices else value, param, ctx)


def gate_options(command: Callable[..., object]) -> Callable[..., object]:
    """Add a flag for each field that whoever asks may give."""
    kinds: dict[str, dict[str, Any]] = {
        "share": {"type": click.FloatRange(0, 1)},
        "count": {"type": click.IntRange(1, 100)},
        "people": {"multiple": True},
    }
    for row in reversed(ASKED):
        kind = {"type": MeantChoice(row.offered or row.choices)} if row.choices else kinds.get(row.entry, {})
        command = click.option(row.flag, metavar=row.metavar, help=row.help, **kind)(command)
    return command


def typed_after(row: GateField, value: Any) -> object:
    """Return the value that was typed after a field's flag, as that kind of field has it."""
    if row.entry == "document":
        return read_text(value, row.flag, needed=True) if value else None
    if row.entry == "length":
        return read_duration(value, row.flag, row.metavar or "2h") if value else None
    return value if row.entry != "people" else value or None


def given(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that were used, by their own names."""
    return {
        name: flags[name] for name in SESSION_FIELDS if flags[name] is not None and flags[name] is not False
    }


def flag_of(name: str) -> str:
    """Return a field of the conversation as its flag is typed."""
    flag = next((flag for flag, field in SESSION_FIELDS.items() if field == name), name)
    return "--type session" if name == "type" else f"--{flag.replace('_', '-')}"


def talk_from_flags(flags: Mapping[str, Any]) -> Talk | None:
    """Return the conversation that the flags describe.

    None for another kind of question, and for flags that leave all of it open.
    """
    used = given(flags)
    if not used and flags["type_"] is None:
        return None
    said = {SESSION_FIELDS[name]: value for name, value in used.items()}
    drafts.refuse_elsewhere(flags["type_"], said, flag_of)
    options, schema = bool(flags["option"] or flags["options"]), bool(flags["schema"])
    if type_name(flags["type_"] or "") != "session" or not (used or options or schema):
        return None
    if "system" in said:
        said["system"] = read_text(said["system"], "--system-prompt")
    if "context" in said:
        said["context"] = context_of(said["context"])
    if "mcp" in said:
        name = said["mcp"]
        said["mcp"] = drafts.parse_json(read_file(name, "--mcp-config"), name)
    return drafts.talk_of(said, flag_of, options=options, schema=schema)


def context_of(argument: str) -> object:
    name = "standard input" if argument == "-" else argument.removeprefix("@")
    shown = name if argument == "-" or argument.startswith("@") else "--session-context"
    return parse_json(read_text(argument, "--session-context"), shown)


MOST_LEFT_OUT = 10


@click.command("ask", cls=VerbCommand)
@click.argument("prompt", required=False)
@click.option(
    "--type",
    "type_",
    metavar="T",
    shell_complete=offered(*TYPES),
    help="text, approval, choice, choices, form or session.",
)
@click.option(
    "-o", "--option", "option", multiple=True, metavar="LABEL[=TEXT]", help="An option; repeatable."
)
@click.option("--options", metavar="A,B,C", help="The options in one list.")
@click.option("--no-other", is_flag=True, help="Only the options; no free text.")
@click.option("--default", metavar="V", help="The answer if nobody gives one (with --on-timeout default).")
@click.option(
    "--schema",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="JSON Schema of a form, or of a structured outcome.",
)
@gate_options
@click.option(
    "--attach",
    multiple=True,
    metavar="PATH",
    type=click.Path(dir_okay=False),
    help="A file to show with the question, from where you are; repeatable.",
)
@click.option(
    "--file",
    "file",
    metavar="F|-",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Read the question from a YAML or JSON file.",
)
@click.option("--no-work", is_flag=True, help="Leave the partial work out.")
@click.option("--no-untracked", is_flag=True, help="Leave untracked files out.")
@click.option(
    "--include",
    multiple=True,
    metavar="PATH",
    help="Take this file although it looks secret or is large; from where you are.",
)
@click.option("--push/--no-push", default=None, help="Insist on pushing, or stay local.")
@session_options
@click.option("--wait", "wait", is_flag=True, help="Block, and print only the answer.")
@click.option("--wait-for", metavar="30m", help="The same, for so long at most.")
@verb
def ask_command(screen: Screen, **flags: Any) -> int:
    """Open a gate: ask a person, print the gate's id, and exit.

    The uncommitted work goes with the question; nothing in the working tree or the index changes. With --wait it
    blocks until there is an answer, and prints only that.

    \b
    git gate ask "Which database?" -o Postgres -o "SQLite=one file, no server"
    git gate ask "Deploy to production?" --type approval --timeout 2h
    git gate ask "Is the new schema sound?" --type session --outcome approval --session-timeout 30m
    """
    refuse_dash(flags["prompt"], "git gate ask")
    draft = draft_of(flags)
    desk = screen.desk(meanwhile=load_acts)
    waits = flags["wait"] or flags["wait_for"] is not None
    check_together(flags)
    wishes = AskWishes(
        work=not flags["no_work"],
        untracked=not flags["no_untracked"],
        include=tuple(from_here(flags["include"], desk, screen.start)),
        push=flags["push"],
        wait=waits,
        apart=(str(Path(flags["file"]).absolute()),) if flags["file"] not in (None, "-") else (),
    )
    listed = [(path, f"{flags['file']}: attach") for path in draft.attach]
    listed += [(path, "--attach") for path in from_here(flags["attach"], desk, screen.start)]
    asked = ask(desk, draft, wishes, attachments_of(listed, desk))
    tell_asked(screen, desk, asked, waits=waits)
    if asked.new:
        tell_taken(screen, desk, draft)
    if waits:
        from .show import wait_for

        return wait_for(screen, desk, asked.gate, flags["wait_for"])
    gate, fields = asked.gate, {}
    if screen.as_json:
        from ...acts.sessions import session_facts
        from ...render import shapes

        fields = shapes.gate(gate, pushed=asked.published.pushed, **session_facts(desk, [gate])[gate.id])
    screen.emit("gate", fields, gate.id)
    return 0


def load_acts() -> None:
    from ...acts import asking  # noqa: F401


# One word that ends so names a file, whether it is there or not.
FILE_NAME = r"\S+\.(?:md|txt|rst|json|ya?ml|log|diff|patch)"


def check_files(flags: Mapping[str, Any]) -> None:
    """Refuse a file's name where words are expected: it would be all that a person gets to read."""
    asked, context = flags["prompt"] or "", flags["context"] or ""
    if is_file(asked):
        raise Usage(
            f"{asked!r} names a file, and no question",
            hint=f'a question file: git gate ask --file {quote(asked)}   its words: git gate ask "$(cat {quote(asked)})"',
        )
    named = context[:1] not in ("", "@") and re.fullmatch(FILE_NAME, context.strip().removeprefix("@"))
    if is_file(context) or named:
        there = "" if is_file(context) else ", and there is no such file"
        raise Usage(
            f"--context: {context!r} names a file, and would be shown as it stands{there}",
            hint=f"what the file says: --context @{quote(context)}",
        )


def check_together(flags: Mapping[str, Any]) -> None:
    """Refuse flags that contradict each other, before a gate is opened."""
    check_files(flags)
    if flags["wait_for"] is not None:
        read_duration(flags["wait_for"], "--wait-for", "30m")
    if flags["no_work"] and (flags["include"] or flags["no_untracked"]):
        word = "--include" if flags["include"] else "--no-untracked"
        raise Usage(
            f"{word} is about the work, and --no-work leaves it out", hint=f"leave out one of the two: {word}"
        )


def draft_of(flags: Mapping[str, Any]) -> Draft:
    """Return the question as the flags say it, on top of a file if there is one."""
    draft = draft_from_file(flags) if flags["file"] else drafts.Draft((question_from_flags(flags),))
    changes: dict[str, Any] = {row.name: typed_after(row, flags[row.name]) for row in ASKED}
    if changes["timeout"] == 0:
        raise Usage("a deadline has to be in the future", hint="--timeout 2h")
    return replace(draft, **{name: value for name, value in changes.items() if value is not None})


def draft_from_file(flags: Mapping[str, Any]) -> Draft:
    own = ("option", "options", "default", "schema", "no_other")
    beside = [f"--{name.replace('_', '-')}" for name in own if flags[name]]
    beside += ["--type"] if flags["type_"] else []
    beside += [flag_of(SESSION_FIELDS[name]) for name in given(flags)]
    beside += ["the prompt"] if flags["prompt"] else []
    if beside:
        raise Usage(
            f"--file brings the question; {beside[0]} cannot stand beside it",
            hint="say it in the file: git gate help question-file",
        )
    name = flags["file"]
    data = read_file(name, "--file")
    try:
        return drafts.read_draft(codec.parse_document(data, "standard input" if name == "-" else name))
    except BadDocument as wrong:
        example = f"an example: {drafts.EXAMPLE}"
        wrong.hint = (
            wrong.hint if drafts.EXAMPLE in wrong.hint else "; ".join(filter(None, (wrong.hint, example)))
        )
        raise


def question_from_flags(flags: Mapping[str, Any]) -> Any:
    if flags["prompt"] is None:
        raise Usage("what is the question?", hint='git gate ask "Which database?" -o Postgres -o SQLite')
    options = [drafts.option(text) for text in flags["option"]]
    options += named_options(flags["options"])
    schema = read_schema(flags["schema"]) if flags["schema"] else None
    return drafts.question(
        flags["prompt"],
        type=flags["type_"],
        options=options,
        default=flags["default"],
        other=not flags["no_other"],
        schema=schema,
        talk=talk_from_flags(flags),
    )


def named_options(listed: str | None) -> tuple[Any, ...]:
    found = drafts.option_list(listed or "")
    if listed is not None and not found:
        raise Usage(f"--options names none: {listed!r}", hint="git gate ask PROMPT --options A,B,C")
    return found


def read_schema(name: str) -> Mapping[str, object]:
    from ...questions import forms

    plain = codec.parse_document(read_file(name, "--schema"), name).plain()
    schema = plain if isinstance(plain, dict) else {}
    forms.check_schema(schema, name)
    return schema


def from_here(paths: tuple[str, ...], desk: Desk, start: Path) -> list[str]:
    """Return typed paths as the record has them, from the top of the repository.

    They begin where the command was started, as `@FILE` does.
    """
    top, here = desk.repo.place.resolve(), start.resolve()
    below = here.relative_to(top) if here.is_relative_to(top) else Path()
    return [str(below / path) for path in paths]


def as_typed(path: str, desk: Desk, start: Path) -> str:
    """Return a path of the record, which begins at the top of the repository, as it is typed from here."""
    from os.path import relpath

    top, here = desk.repo.place.resolve(), start.resolve()
    return relpath(top / path, here) if here.is_relative_to(top) else path


def attachments_of(listed: Sequence[tuple[str, str]], desk: Desk) -> dict[str, bytes]:
    """Return each attached file by its name. An entry has the path and what named it, for errors."""
    root = desk.repo.place
    found: dict[str, bytes] = {}
    for path, named_by in listed:
        try:
            name, body = read_attachment(Path(path), root)
        except Usage as wrong:
            wrong.message = f"{named_by}: {wrong.message}"
            wrong.hint = wrong.hint or "name a file of the working tree: --attach PATH"
            raise
        if name in found:
            raise Usage(f"{named_by}: {name} is there twice", hint="--attach PATH once for each file")
        found[name] = body
    return found


def tell_asked(screen: Screen, desk: Desk, asked: Asked, *, waits: bool) -> None:
    """Say where the question went, what was published with it, and what happens next."""
    gate, published = asked.gate, asked.published
    if not asked.new:
        screen.say(f"gate {gate.id} already asks this (--key {gate.opened.key}); it is {gate.state}")
        return
    screen.say(
        f"gate {gate.id} {'→ ' + str(published.remote) if published.pushed else 'is here'}; {work_words(asked)}"
    )
    tell_left_out(screen, desk, gate.opened.work.left_out)
    if gate.opened.delivery == "resume" and published.pushed and not published.session:
        screen.say(session_words(desk, gate))
    if published.pushed and published.reason:
        screen.warn(f"warning: {published.reason}")
    tell_trouble(screen, published)
    if not published.pushed and (went := where(desk, published)) == SAVED:
        screen.say(went)
    if gate.deadline is not None:
        from ...render import AT_DEADLINE, due

        left = f"{gate.timeout}s" if gate.timeout and gate.timeout < 60 else due(gate.deadline, desk.clock())
        screen.say(
            f"its deadline: {left.removeprefix('due in ')} from now ({gate.deadline}); then {AT_DEADLINE[gate.opened.on_timeout]}"
        )
    if not waits:
        screen.say(
            f"the answer, when there is one: git gate check {gate.id[:6]}   to wait for it: git gate wait {gate.id[:6]}"
        )
    screen.say_once(desk)


def tell_taken(screen: Screen, desk: Desk, draft: Draft) -> None:
    """Warn whose session the given id was taken for.

    The warning is for an agent whose start is not set here, and for a session that only a name assigns to a program.
    """
    program, name = untold_start(desk, draft.agent, draft.session)
    if not name:
        return
    key = quote(f"{SECTION}{name}.resume")
    taken = (
        "so nothing resumes it here"
        if program == name
        else "so its session is taken for Claude Code's; if it is another program's, set that and ask again"
    )
    screen.warn(
        f"warning: nothing here says how {name} is started, {taken}: "
        f"git config {key} 'PROGRAM --session {{session}} {{prompt_file}}'"
    )


def tell_left_out(screen: Screen, desk: Desk, left_out: Sequence[tuple[str, str]]) -> None:
    """Say which files were left out of the work, each with its reason.

    `--include` takes what looks secret or is large, and nothing else.
    """
    for path, reason in left_out[:MOST_LEFT_OUT]:
        typed = quote(path if path.startswith('"') else as_typed(path, desk, screen.start))
        taken = f"; --include {typed} takes it" if "secret" in reason or " MB, " in reason else ""
        screen.say(f"left out of the work: {path} ({reason}){taken}")
    if len(left_out) > MOST_LEFT_OUT:
        screen.say(f"left out of the work: {len(left_out) - MOST_LEFT_OUT} more, named by git gate show")


def session_words(desk: Desk, gate: Gate) -> str:
    """Return the words that say whose session it is, and that no hook or runner elsewhere can go on with it."""
    session = gate.opened.session
    whose = session.agent if session else "none"
    return f"its session ({whose}) stays here, and only here it is resumed ({sharing(desk)})"


def work_words(asked: Asked) -> str:
    """Return what was published in a line, such as `work: 3 changed, 2 untracked → origin`."""
    work = asked.gate.opened.work
    if work.commit is None or not work.dirty:
        return "no uncommitted work"
    words = f"work: {asked.changed} changed, {asked.untracked} untracked"
    published = asked.published
    if published.work:
        return f"{words} → {published.remote}"
    if published.pushed:
        return f"{words}, kept here (git gate init publishes work)"
    return f"{words}, kept here"
