"""Command line: `git gate help`: a verb's own help, or a page about what concerns several of them."""

from __future__ import annotations

from collections.abc import Callable

import click

from ..errors import Usage
from . import MEANINGS
from .terminal import Screen, verb

ANSWERS = """\
How to answer a gate

  git gate respond ID ANSWER      one word alone is always an id
  git gate respond -m ANSWER      without an id, where only one gate waits
  git gate respond ID             on a terminal it asks

What an answer may be depends on the type of the question:

  text      any words; -m TEXT, --edit for your editor
  approval  --approve or --reject (also: yes, no). A rejection is an answer:
            the agent goes on, knowing no. `git gate stop` ends it instead
  choice    a label; case does not matter, a unique beginning is enough; or '#2'.
            --other TEXT for your own words
  choices   several of them: Postgres,SQLite or '#1,#3'
  form      -a FIELD=VALUE for each field, or a JSON object
  session   decided in the agent's own session, or in words

  Several questions: -a KEY=VALUE for each (--approve may stand for the only approval);
  -a KEY=other:TEXT for your own words in place of an option.
  --note TEXT goes with any answer.

Nothing is written unless all of it fits; a wrong answer says what was expected and
exits 2. An answer is for exactly the question and the work that were seen: if the
gate has changed since, it exits 6. Until an agent takes it: --amend corrects it.

Many at once:

  git gate respond --each                             every waiting gate in turn
  git gate respond --each --match deploy --approve    one answer for all that match"""

DEADLINES = """\
When nobody answers in time

A gate has no deadline unless one is set: `git gate ask --timeout 2h`, or the setting
gitgate.timeout. What happens then is said by --on-timeout, or gitgate.onTimeout:

  stuck    (unless said otherwise) the gate is expired, and no agent is resumed
  fail     expired, and the agent is resumed to hear that nobody answered
  remind   it goes on waiting, is announced again, and has a new deadline: each time later, up to a day
  defer    the same, and until then it is put aside, as by --later
  default  the declared default becomes the verdict `defaulted`, in nobody's name, and
           the agent is resumed. For an approval only where this machine allows it:
           git config gitgate.approvalDefaults true

Silence is never consent: a passed deadline exits 124, never 0, and no person's name
stands under it. A deadline acts when anything looks at the gate: list, show, check,
wait, watch.

  git gate edit ID --timeout 1d      another deadline, counted from now
  git gate edit ID --timeout never   none"""


QUESTION_FILE = """\
A question in a file: git gate ask --file F, or --file - for standard input

YAML or JSON, one question flat:

  prompt: Which database?
  type: choice                 # text, approval, choice, choices, form or session
  options:
    - Postgres
    - {label: SQLite, description: "one file, no server"}
  other: false                 # no free text beside the options
  title: The database
  context: We have a Postgres cluster already.
  priority: high
  confidence: 0.6
  to: [ada@example.org]
  timeout: 2h
  on_timeout: default
  default: SQLite

or several, asked together:

  title: Two things
  questions:
    - {key: db, prompt: Which database?, options: [Postgres, SQLite]}
    - {key: go, prompt: Go ahead?, type: approval}

  of the whole    title, context, priority, confidence, timeout, on_timeout, to, notify,
                  quorum, attach (a list of files), agent, session, gate_key, key_for
  of a question   key, prompt, type, options, other, default, schema (of a form),
                  talk (of a session)

A field that is none of these is refused, with its line. The file itself is no part of
the work that goes with the question."""


def exit_codes() -> str:
    return "Exit codes\n\n" + "\n".join(f"  {row.code:>3}  {row.words}" for row in MEANINGS)


TOPICS: dict[str, Callable[[], str]] = {
    "exit-codes": exit_codes,
    "answers": lambda: ANSWERS,
    "deadlines": lambda: DEADLINES,
    "question-file": lambda: QUESTION_FILE,
}


def complete_topics(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from .main import VERBS

    return [word for word in (*VERBS, *TOPICS) if word.startswith(incomplete)]


@click.command("help")
@click.argument("words", metavar="[VERB|TOPIC]", nargs=-1, shell_complete=complete_topics)
@verb
def help_command(screen: Screen, words: tuple[str, ...]) -> None:
    """Explain a verb, or a topic: exit-codes, answers, deadlines, question-file.

    \b
    git gate help respond
    git gate help answers
    """
    topic = " ".join(words)
    text = TOPICS[topic]() if topic in TOPICS else explained(words)
    if screen.as_json:
        screen.emit("help", {"topic": topic, "text": text}, "")
    else:
        screen.page(text)


def explained(words: tuple[str, ...]) -> str:
    """The help of a verb, or of a verb within one: `policy check`."""
    from .main import cli

    context = click.Context(cli, info_name="git gate", help_option_names=["-h", "--help"])
    command: click.Command = cli
    for word in words:
        found = command.get_command(context, word) if isinstance(command, click.Group) else None
        if found is None:
            raise Usage(
                f"there is no help on {' '.join(words)!r}{did_you_mean(word) if len(words) == 1 else ''}",
                hint=f"git gate -h lists the verbs; topics: {', '.join(TOPICS)}",
            )
        context = click.Context(found, info_name=word, parent=context)
        command = found
    text = command.get_help(context)
    return text if words else f"{text}\n\nTopics: git gate help {' | '.join(TOPICS)}"


def did_you_mean(word: str) -> str:
    from difflib import get_close_matches

    from .main import VERBS

    close = get_close_matches(word, [*VERBS, *TOPICS], 1)
    return f"; did you mean {close[0]}?" if close else ""
