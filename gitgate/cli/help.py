"""Command line: what helps whoever types: a verb's own help, pages about what concerns several of them, completion by the shell, and
what was probably meant where there is no such thing. Imported only when it is needed.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Sequence
from difflib import SequenceMatcher, get_close_matches
from typing import TYPE_CHECKING

import click

from ..errors import Usage
from ..model import is_prefix
from . import MEANINGS
from .terminal import ExtraArguments, Screen, verb

if TYPE_CHECKING:
    from click.shell_completion import ShellComplete

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
           the agent is resumed. For an approval only where a rule of the policy says
           `defaults: true`

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


def complete_topics(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    return [word for word in (*known_verbs(ctx), *TOPICS) if word.startswith(incomplete)]


def known_verbs(ctx: click.Context) -> list[str]:
    """Return the verbs of the command line that this context is part of."""
    every = ctx.find_root().command
    return every.list_commands(ctx) if isinstance(every, click.Group) else []


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
    """Return the help of a verb, or of a verb within one: `policy check`."""
    command = click.get_current_context().find_root().command
    context = click.Context(command, info_name="git gate", help_option_names=["-h", "--help"])
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
    close = get_close_matches(word, [*known_verbs(click.get_current_context()), *TOPICS], 1)
    return f"; did you mean {close[0]}?" if close else ""


# What somebody probably meant when there is no such thing, and what their shell may complete.


# What somebody types who knows another program's words, and what it is here.
OTHER_WORDS = {
    "git gate respond ID ANSWER": "answer reply say tell choose pick select",
    "git gate respond ID --approve": "approve accept allow yes lgtm merge",
    "git gate respond ID --reject": "reject deny decline refuse no",
    "git gate stop ID --reason R   (an agent takes its own question back: git gate withdraw ID --reason R)": (
        "cancel close abort kill end delete remove rm drop"
    ),
    "git gate watch   (what happens, live); git gate list   (what waits)": "monitor notify tail",
    "git gate search WORDS": "find grep lookup",
    "git gate why FILE:LINE,LINE": "blame annotate praise",
    "git gate export": "bundle dump backup",
    "git gate list": "ls pending inbox queue todo waiting gates",
    'git gate ask "Which database?" -o Postgres -o SQLite': "new question create prompt open pause request",
    "git gate show ID": "view read cat get info describe",
    "git gate sync": "push pull fetch update refresh",
    "git gate init": "setup install enable start",
    "git gate init --remove": "uninstall disable",
    "git gate resume ID": "retry restart rerun",
    "git gate edit ID --to WHO": "assign reassign delegate",
    "git gate log": "history audit events",
    "git gate --version": "version",
    "git config gitgate.NAME VALUE   (the settings: docs/settings.md)": "config set settings",
}


def unknown_verb(word: str, rest: Sequence[str], verbs: Collection[str]) -> Usage:
    """Return the error for an unknown verb, with the verb that was probably meant and the id that was typed."""
    known = {other: meant for meant, words in OTHER_WORDS.items() for other in words.split()}
    if word.lower() in known:
        return Usage(f"there is no verb {word!r}", hint=with_id(known[word.lower()], rest))
    close = get_close_matches(word, verbs, 1) or get_close_matches(word, known, 1, CLOSE)
    meant = known.get(close[0], f"git gate {close[0]}") if close else ""
    again = (
        with_id(meant, rest) if close and close[0] in known else shlex.join(["git", "gate", *close, *rest])
    )
    return Usage(
        f"there is no verb {word!r}{f'; did you mean `{meant}`?' if meant else ''}",
        hint=again if meant else "git gate -h",
    )


def way_out(args: Sequence[str], kind: str, verbs: Collection[str]) -> str:
    """Return the command to type next, for an error that has no hint of its own."""
    used = next((arg for arg in args if arg in verbs), "")
    if kind == "usage":
        return f"git gate {used} -h".replace("  ", " ")
    return "git gate list --all" if kind in ("conflict", "stale") else "git gate doctor"


# Verbs that take words, and what stands before them.
WORDY = {"ask": "ask", "respond": "respond ID", "comment": "comment ID"}


# An option that another verb has, or another program, and what does it here.
OTHER_OPTIONS = {
    "ask": {
        "--choices --choice --select -c": "git gate ask PROMPT -o LABEL -o LABEL",
        "-t --kind": "git gate ask PROMPT --type approval",
        "-m --message --question --prompt": 'git gate ask "Which database?"',
        "--block --blocking --sync": "git gate ask PROMPT --wait",
        "--deadline --expires --for": "git gate ask PROMPT --timeout 2h",
        "--assignee --reviewer --who": "git gate ask PROMPT --to WHO",
        "--yesno --confirm --approval": "git gate ask PROMPT --type approval",
    },
    "wait": {"--timeout -t --deadline": "git gate wait ID --for 30m"},
    "check": {"--for --wait --timeout": "git gate wait ID --for 30m"},
    "respond": {
        "--yes -y --accept --ok": "git gate respond ID --approve",
        "--no -n --deny --decline": "git gate respond ID --reject",
        "--comment --reason": "git gate respond ID ANSWER --note TEXT",
        "--file --from-file": 'git gate respond ID "$(cat FILE)"',
        "--all": "git gate respond --each",
    },
    "stop": {"-m --message -r --note": "git gate stop ID --reason TEXT"},
    "withdraw": {"-m --message -r --note": "git gate withdraw ID --reason TEXT"},
    "comment": {"-m --message --text": "git gate comment ID TEXT"},
    "edit": {
        "--title --prompt --context": "git gate comment ID TEXT   (what was asked stands; a comment adds to it)",
        "--deadline --expires": "git gate edit ID --timeout 1d",
        "--assignee --who": "git gate edit ID --to WHO",
    },
    "list": {
        "-a": "git gate list --all",
        "--limit -n": "git gate list --mine   (or narrow it by --branch, --type or --asked-by)",
        "--open --waiting --pending": "git gate list --awaiting",
        "--closed --done": "git gate list --all",
        "--me": "git gate list --mine",
        "--agent --author": "git gate list --asked-by WHO",
    },
    "log": {
        "--since --after --limit --max-count": "git gate log -n 20",
        "--all -a": "git gate log   (all of it, archived gates included)",
    },
    "status": {"--all -a": "git gate list --all"},
    "archive": {"--all -a": "git gate archive   (folds all that are closed)"},
    "worker": {"--for --timeout": "timeout 1h git gate worker"},
    "watch": {"--timeout --since": "git gate watch --for 30m"},
    "doctor": {"--fix --repair": "git gate doctor   (each finding names the command that mends it)"},
    "sync": {"--force -f": "git gate sync   (nothing is ever overwritten)"},
    "resume": {
        "--each --everything": "git gate resume --all",
        "--agent": "git gate resume ID --runner local",
    },
}
CLOSE = 0.72


def usage_hint(wrong: click.UsageError, args: Sequence[str], verbs: Collection[str]) -> str:
    used = next((arg for arg in args if arg in verbs), "")
    path = wrong.ctx.command_path if wrong.ctx else f"git gate {used}".rstrip()
    if isinstance(wrong, click.NoSuchOption):
        for others, meant in OTHER_OPTIONS.get(path.rpartition(" ")[2], {}).items():
            if wrong.option_name in others.split():
                return with_id(meant, args[args.index(used) + 1 :])
        most = next((arg[1:] for arg in args if arg[:1] == "-" and arg[1:].isdecimal()), "")
        if most and path.endswith(" log"):
            return f"git gate log -n {most}"
    used = path.rpartition(" ")[2]
    if flag := flag_meant(wrong):
        return f"{path} {flag}"
    if isinstance(wrong, ExtraArguments) and used in WORDY:
        return f'several words need quotes: git gate {WORDY[used]} "…"; see: {path} -h'
    if isinstance(wrong, click.MissingParameter) and wrong.ctx is not None:
        given = with_id("ID", args[args.index(used) + 1 :])
        return f"{example_of(wrong.ctx)}{path} -h".replace("7k2f", "7k2f" if given == "ID" else given)
    return f"{path} -h"


def flag_meant(wrong: click.UsageError) -> str:
    """Return the flag that was typed as a word: `git gate init claude`."""
    if not isinstance(wrong, ExtraArguments) or len(wrong.words) != 1 or wrong.ctx is None:
        return ""
    flag = f"--{wrong.words[0]}"
    return flag if any(flag in one.opts for one in wrong.ctx.command.params) else ""


def usage_message(wrong: click.UsageError) -> str:
    """Return click's message for a usage error.

    Of the options that click proposes, only close ones are named: whoever types `--session` does not mean `--json`.
    """
    if not isinstance(wrong, click.NoSuchOption):
        return wrong.format_message()
    typed = wrong.option_name
    close = [one for one in wrong.possibilities or () if SequenceMatcher(None, typed, one).ratio() >= CLOSE]
    return f"No such option '{typed}'.{f' Did you mean {quoted_words(close)}?' if close else ''}"


def quoted_words(words: Sequence[str]) -> str:
    return " or ".join(f"'{word}'" for word in words)


def with_id(command: str, rest: Sequence[str]) -> str:
    """Return the command with the id that was typed after the verb, if one was."""
    given = rest[0] if rest and is_prefix(rest[0]) else "ID"
    return " ".join(given if word == "ID" else word for word in command.split(" "))


def example_of(context: click.Context) -> str:
    """Return the first example in a verb's help, for whoever left something out."""
    lines = [line.strip() for line in (context.command.help or "").splitlines()]
    found = next((line for line in lines if line.startswith("git gate ")), "")
    return f"{found.partition('   ')[0]}   see: " if found else ""


PROGRAM = "git-gate"
VARIABLE = "_GIT_GATE_COMPLETE"
SHELLS = ("bash", "zsh", "fish")

# `git gate …` is completed by git's own completion, which calls a function of the verb's name.
BASH = """
_git_gate() {
    local at=1 completion response type value
    while [[ $at -lt $COMP_CWORD && ${COMP_WORDS[at]} != gate ]]; do
        at=$((at + 1))
    done
    local words=(git-gate "${COMP_WORDS[@]:at+1}")
    response=$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((COMP_CWORD - at)) _GIT_GATE_COMPLETE=bash_complete git-gate)
    while IFS=',' read -r type value; do
        case $type in
            dir) COMPREPLY=(); compopt -o dirnames 2>/dev/null ;;
            file) COMPREPLY=(); compopt -o default 2>/dev/null ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done <<< "$response"
}
"""
ZSH = """
_git-gate() {
    words[1]=git-gate
    _git_gate_completion
}
"""
FISH = """
function _git_gate_within_git
    set -l words (string replace -r '^.*?\\\\bgate\\\\b' 'git-gate' -- (commandline -cp))
    env _GIT_GATE_COMPLETE=fish_complete COMP_WORDS="$words" COMP_CWORD=(commandline -t) git-gate | string replace -r '^plain,' ''
end

complete --no-files --command git --condition '__fish_seen_subcommand_from gate' --arguments '(_git_gate_within_git)'
"""
WITHIN_GIT = {"bash": BASH, "zsh": ZSH, "fish": FISH}
SOURCE = {
    "bash": 'put this into ~/.bashrc:  eval "$(git-gate completion bash)"',
    "zsh": 'put this into ~/.zshrc, after compinit:  eval "$(git-gate completion zsh)"',
    "fish": "once:  git-gate completion fish > ~/.config/fish/completions/git-gate.fish",
}


@click.command("completion")
@click.argument("shell", required=False, metavar="[bash|zsh|fish]")
@verb
def completion_command(screen: Screen, shell: str | None) -> None:
    """Shell completion of verbs, options and gate ids, for `git-gate` and `git gate`: prints what to source.

    \b
    git gate completion bash
    """
    import sys

    name = shell or screen.env.get("SHELL", "").rpartition("/")[2]
    if name not in SHELLS:
        raise Usage(
            f"{name!r} is not a shell that is known; expected {', '.join(SHELLS)}",
            hint="git gate completion bash",
        )
    screen.emit("completion", {"shell": name, "script": script(name)}, script(name))
    if sys.stdout.isatty():
        screen.say(SOURCE[name])


def script(shell: str) -> str:
    """Return click's script for `git-gate`, and ours for `git gate`."""
    return talker(shell, click.Group()).source().rstrip("\n") + "\n" + WITHIN_GIT[shell].rstrip("\n")


def talker(shell: str, verbs: click.Command) -> ShellComplete:
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    if found is None:
        raise Usage(f"{shell!r} is not a shell that is known; expected {', '.join(SHELLS)}")
    return found(verbs, {}, PROGRAM, VARIABLE)


def answer_shell(instruction: str, verbs: click.Command) -> int:
    """Print what a shell asks for: its script for `bash_source`, the words that fit for `bash_complete`."""
    shell, _, wish = instruction.partition("_")
    if shell not in SHELLS or wish not in ("source", "complete"):
        raise Usage(
            f"{VARIABLE}={instruction}: expected SHELL_source or SHELL_complete, for {', '.join(SHELLS)}"
        )
    click.echo(script(shell) if wish == "source" else talker(shell, verbs).complete())
    return 0
