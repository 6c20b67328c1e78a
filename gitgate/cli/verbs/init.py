"""Command line: `git gate init` sets up a clone, or a server's repository, and says what that permits; `git gate doctor` says what is
set up, `git gate policy check` who may answer what; `git gate demo` shows the loop in a scratch folder.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...acts import find_gate
from ...audit import explain_gate, plain_terms, rules_of
from ...context.targets import remote_of
from ...document import replace
from ...errors import GateError, Usage
from ...exchange.syncing import bring_home
from ...gates.agency import hooks_folder
from ...policy import load_book, protected_refs
from ...policy.rulebook import load_standing
from ...policy.ruling import cautions
from ...questions.call_rules import TOOLS
from ...questions.calls import Fate, call_in_words
from ...render import paint
from ...setup import parts
from ...setup.checkup import WRONG, examine, rehearse
from ...setup.demo import demo_steps, find_claude, play_claude
from ...setup.hooks_here import examine_hooks
from ...setup.parts import ERASE, NAMES, PARTS
from ...setup.workflows import offered
from ...surfaces.agent_hooks.tools import HookEvent, foretell
from ...surfaces.forge.checkup import examine_github
from ...surfaces.notify.outbox import examine_addresses
from ...text import counted, format_duration, hang, neutral, one_line
from .. import DONE, FAILURE, NOT_ALLOWED, WAITING
from ..terminal import Screen, as_installed, complete_ids, explain_alone, read_word, tell_of_rules, verb

if TYPE_CHECKING:
    from ...context import Desk
    from ...model.gate import Gate
    from ...policy import Book, RuleTerms
    from ...questions.call_rules import Allowance, CallRule
    from ...questions.calls import CallRuling
    from ...setup.demo import DemoStep
    from ...setup.managed import Step


def part_options(command: Callable[..., object]) -> Callable[..., object]:
    for part in reversed(PARTS):
        command = click.option(f"--{part.flag}", is_flag=True, help=part.meaning)(command)
    return command


@click.command("init")
@click.option("--server", is_flag=True, help="This is the bare repository that others push to.")
@click.option("--publish-work/--no-publish-work", default=None, help="Push partial work with questions.")
@click.option("--resume/--no-resume", default=None, help="Let answers start agents on this machine.")
@part_options
@click.option(
    "--mcp",
    multiple=True,
    type=click.Choice(NAMES),
    help="git gate's tools for this client, in this project; repeatable.",
)
@click.option("--package", metavar="REQUIREMENT", help="With --github: what pip installs in its jobs.")
@click.option("--package-index", metavar="URL", help="With --github: the index that it comes from.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--remove", is_flag=True, help="Undo all of it.")
@click.option("--purge", is_flag=True, help="With --remove: all that is kept besides gates, too.")
@verb
def init_command(screen: Screen, **flags: Any) -> int:
    """Set up this clone: settings, hooks, and what git fetch brings along.

    Running it is consent, and it says to what. It can be run again at any time: what is there is brought up to date.
    Hooks that are there already go on working.

    \b
    git gate init
    git gate init --claude
    git gate init --mcp vscode
    git gate init --github --package 'git-gate[all]==0.1.0'
    git gate init --flows
    git gate init --dry-run
    git gate init --remove
    git gate init --remove --purge --dry-run
    """
    desk = screen.desk(said=for_jobs(screen, flags))
    desk.refuse_agents("init")
    named = [part for part in PARTS if flags[part.flag.replace("-", "_")]]
    clients = flags["mcp"]
    chosen = parts.InitChoice(flags["server"], flags["publish_work"], flags["resume"], named, clients)
    if flags["server"] and flags["publish_work"] is not None:
        raise Usage("--publish-work is about a clone, and --server is none", hint="git gate init --server")
    if flags["purge"] and (named or clients or not flags["remove"]):
        raise Usage(
            "--purge takes away everything, together with --remove", hint="git gate init --remove --purge"
        )
    found = (
        parts.planned_removal(desk, named, clients=clients, purge=flags["purge"])
        if flags["remove"]
        else parts.wanted(desk, chosen)
    )
    if not flags["dry_run"]:
        parts.take_steps(found)
    tell_steps(screen, found, dry_run=flags["dry_run"], remove=flags["remove"], purge=flags["purge"])
    if flags["purge"]:
        tell_of_gates(screen, desk)
        return DONE
    if not flags["remove"]:
        tell_of_hooks(screen, desk)
    if not (flags["dry_run"] or flags["remove"] or flags["server"]):
        first_sync(screen)
        tell_of_rules(screen, desk)
        tell_next(screen, flags)
    return DONE


def tell_next(screen: Screen, flags: dict[str, Any]) -> None:
    """Say what a person has to do next."""
    if flags["claude"]:
        screen.say('Claude Code asks through gates now: git gate wrap -- claude -p "The task"')
        screen.say("to see it tried, without a model: git gate doctor --claude")
    if flags["flows"]:
        screen.say(
            'next: git gate run flows/change.py "The task"   (after you have committed .gitgate/agents)'
        )
    if flags["github"]:
        screen.say("next: say in .github/workflows what installs your agent (agent-package), then:")
        screen.say('  git add .github && git commit -m "Ask through git gate" && git push')
        screen.say("what is missing then: git gate doctor")
    if flags["gitlab"]:
        screen.say("next: name your agent in .gitlab/gitgate.yml (command, image, agent-setup), then:")
        screen.say('  git add .gitlab .gitlab-ci.yml && git commit -m "Ask through git gate" && git push')
        screen.say("its token, and what starts it: docs/gitlab.md")


def for_jobs(screen: Screen, flags: dict[str, Any]) -> dict[str, str]:
    """Return what the jobs of `--github` are to install, as the flags say it.

    Where no flag says it, a person at the terminal is asked.
    """
    given = {"package": flags["package"], "packageIndex": flags["package_index"]}
    said = {name: value for name, value in given.items() if value}
    if said and not flags["github"]:
        raise Usage(
            "--package and --package-index say what the jobs of --github install",
            hint="git gate init --github --package …",
        )
    asks = flags["github"] and not (said or flags["remove"]) and screen.interactive
    if asks and (usual := offered(screen.desk())):
        word = read_word(f"What pip installs in the jobs (Enter for {usual}): ").strip()
        return {"package": word} if word else {}
    return said


def tell_steps(screen: Screen, found: Sequence[Step], *, dry_run: bool, remove: bool, purge: bool) -> None:
    listed = [{"step": step.name, "means": step.means, "done": step.done or not dry_run} for step in found]
    screen.emit("init", {"dry_run": dry_run, "steps": listed}, "")
    if screen.quiet:
        return
    if remove:
        tell_removed(screen, [step for step in found if not step.done], dry_run=dry_run, purge=purge)
        return
    for step in found:
        mark = "as it was" if step.done else "to do" if dry_run else "done"
        screen.tell(f"{mark:<9}  {step.name}: {step.means}", deeper=11)


def tell_removed(screen: Screen, found: Sequence[Step], *, dry_run: bool, purge: bool) -> None:
    """Say what is undone: only what was there, since of what init never did nothing can be undone."""
    for step in found:
        screen.tell(f"{'to undo' if dry_run else 'undone':<9}  {step.name}: {step.means}", deeper=11)
    if not found:
        screen.say("there is nothing of init to undo here")
    elif not (dry_run or purge):
        screen.say("gates, sessions and your own settings stay; set up again: git gate init")


def tell_of_gates(screen: Screen, desk: Desk) -> None:
    """Say what a purge leaves, and how a person erases that as well."""
    count = len(desk.refs.under("refs/hitl/"))
    if not count:
        screen.say("nothing of git gate is left here")
        return
    screen.say(
        f"what stays is refs/hitl ({count}), the record of who decided what, and branches with agents' commits. To erase the record here as well:\n  {ERASE}"
    )
    remote = remote_of(desk)
    if remote:
        screen.say(f"{remote} has its own: type the same in that repository")


def tell_of_hooks(screen: Screen, desk: Desk) -> None:
    if hooks_folder(desk.repo) is None:
        screen.warn(
            "core.hooksPath leads out of this repository, so no hook was put there; call these from its hooks:\n"
            "  git gate hook pre-receive    git gate hook post-receive"
        )


def first_sync(screen: Screen) -> None:
    """Fetch the gates that wait on the remote already; a network that is down is no reason to fail."""
    desk = screen.desk()
    remote = remote_of(desk)
    if remote is None:
        screen.say('next: git gate ask "…"   or: git gate list')
        return
    try:
        done = bring_home(desk, remote)
    except GateError as silent:
        screen.warn(f"{silent.message}; later: git gate sync")
        return
    news = f"{counted(len(done.new), 'gate')} not known here before" if done.new else "nothing new"
    screen.say(f"{remote}: {news}. next: git gate list")


SIGNS = {"good": "ok", "missing": "--", "wrong": "!!"}


@click.command("doctor")
@click.option(
    "--online",
    is_flag=True,
    help="Ask GitHub too: the token's rights, the workflows, the names of the secrets.",
)
@click.option(
    "--claude",
    is_flag=True,
    help="Rehearse with the real Claude Code in a scratch repository: it asks, is answered, goes on. No account is needed.",
)
@verb
def doctor_command(screen: Screen, online: bool, claude: bool) -> int:
    """Check what is set up and what is missing, and name the command that mends it. Changes nothing; exit 1 when something is wrong.

    \b
    git gate doctor
    git gate doctor --json
    git gate doctor --claude
    """
    from dataclasses import asdict

    desk = screen.desk()
    desk.settings = screen.settings = desk.settings.forgiving()
    found = [*examine(desk), *examine_hooks(desk, screen.start)]
    found += [*examine_github(desk, online=online), *examine_addresses(desk)]
    if claude:
        screen.progress("Claude Code is tried out, which takes some seconds")
        found.extend(rehearse(desk))
    found = [replace(one, mend=as_installed(one.mend)) for one in found]
    lines = []
    for one in found:
        told = f"{SIGNS[one.state]}  {one.name}: {one_line(one.words)}"
        lines.append(hang(told, screen.width))
        if one.mend:
            lines.append(hang(one_line(one.mend), screen.width, "      "))
    screen.emit("doctor", {"findings": [asdict(one) for one in found]}, "\n".join(lines))
    return FAILURE if any(one.state == WRONG for one in found) else DONE


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
    """Return the demonstration to play; raise before anything is made where its program is missing."""
    if not claude:
        return demo_steps
    find_claude(screen.env)
    return play_claude


def show_step(screen: Screen, who: str, why: str, typed: str, said: str) -> None:
    click.echo(paint(f"# {why}", "dim", on=screen.colored))
    click.echo(paint(f"{who}$ ", "bold", on=screen.colored) + typed)
    if said:
        click.echo(said)
    click.echo()


@click.group("policy", invoke_without_command=True)
@verb
def policy_command(screen: Screen) -> None:
    """Say who may answer what."""
    explain_alone(screen)


@policy_command.command("check")
@click.argument("gate_id", metavar="[ID]", required=False, shell_complete=complete_ids)
@click.option("--who", metavar="PERSON", help="Somebody else: an e-mail, `Name <e-mail>`, or @login.")
@verb
def check_command(screen: Screen, gate_id: str | None, who: str | None) -> int:
    """Read the policy, and explain for a gate which rule decides whether somebody may answer it, and why.

    Without an id: the rules, or the file, line and field that are wrong. Exit 4: that person may not answer.

    \b
    git gate policy check
    git gate policy check 7k2f --who bob@example.org
    """
    desk = screen.desk()
    book = load_book(desk)
    if gate_id is None:
        tell_rules(screen, desk, book)
        return DONE
    return explain_one(screen, desk, book, find_gate(desk, gate_id).gate, who)


def tell_rules(screen: Screen, desk: Desk, book: Book) -> None:
    """Print every rule in its order, as it was read."""
    found = rules_of(book)
    shape = [{"source": source, "rules": [plain_terms(term) for term in terms]} for source, terms in found]
    lines = []
    for source, terms in found:
        lines.append(source)
        lines += [f"  {term.name}: {terms_line(term)}" for term in terms]
    standing = load_standing(desk)
    warned = [*cautions(book.policies), *standing.strange, *standing.unread]
    rules = standing.book
    fields = {
        "policies": shape,
        "branch": book.ref,
        "notes": warned,
        "approvals": [call_rule_shape(rule) for rule in rules.rules],
        "pending": [call_rule_shape(rule) for rule in rules.pending],
        "allowed": [allowance_shape(one) for one in (*rules.allowances, *standing.unheard)],
        "broken": rules.broken.why if rules.broken else None,
    }
    screen.emit("policy", fields, neutral("\n".join(lines)))
    for caution in cautions(book.policies):
        screen.say(f"note: {neutral(caution)}")
    tell_of_rules(screen, desk, "note: ")
    if not found:
        where = ", ".join(dict.fromkeys(protected_refs(desk)))
        screen.say(
            f"there is no policy: whoever can push may answer. It would be read from .gitgate.yml on {where}"
        )


def call_rule_shape(rule: CallRule) -> dict[str, object]:
    return {
        "call": rule.text,
        "from": rule.source.file,
        "commit": rule.source.commit or None,
        "line": rule.line,
    }


def allowance_shape(one: Allowance) -> dict[str, object]:
    return {
        "allow": one.text,
        "from": one.source.file,
        "commit": one.source.commit or None,
        "line": one.line,
        "counts": one.source.counts,
    }


@policy_command.command("try")
@click.argument("words", nargs=-1, metavar="[WORDS]")
@click.option(
    "--tool",
    metavar="NAME",
    help="The agent's tool; otherwise Bash, with --path Write.",
    shell_complete=lambda _ctx, _param, begun: [one for one in TOOLS if one.startswith(begun)],
)
@click.option("--path", metavar="FILE", type=click.Path(), help="The file that the tool is given.")
@verb
def try_command(screen: Screen, words: tuple[str, ...], tool: str | None, path: str | None) -> int:
    """Say whether a call of an agent would wait for a person, and by which rule. Nothing is run, and no gate is made.

    It is judged as the agent's hook judges it. Exit 8: it would wait. Exit 4: it would be denied. Exit 0: it would run.

    \b
    git gate policy try 'terraform apply'
    git gate policy try --tool Write --path migrations/001.sql
    git gate policy try --tool mcp__db__drop
    """
    if not words and path is None and tool is None:
        raise Usage("which call?", hint="git gate policy try 'terraform apply'")
    name, given = call_in_words(tool, words, path)
    event = HookEvent("", screen.start, name, given, env=screen.env)
    desk = screen.desk()
    ruling, standing = foretell(event), load_standing(desk)
    event.close()
    rule, waits = ruling.rule, ruling.fate in (Fate.WAITS, Fate.HELD) and ruling.rule is not None
    fields = {
        "waits": waits,
        "rule": rule.text if rule else None,
        "from": rule.source.words if rule else None,
        "line": rule.line or None if rule else None,
        "pending": [one.text for one in standing.book.pending],
        "fate": ruling.fate.value,
        "why": ruling.why,
        "allowed_by": [one.text for one in ruling.allowances],
    }
    screen.emit("try", fields, neutral(fate_words(ruling)))
    tell_of_rules(screen, desk, "note: ")
    return WAITING if waits else DONE if ruling.fate is Fate.RUNS else NOT_ALLOWED


def fate_words(ruling: CallRuling) -> str:
    rule = ruling.rule
    if rule is None:
        return f"would {'run' if ruling.fate is Fate.RUNS else 'be denied'}, because {ruling.why}"
    at = f", line {rule.line}" if rule.line else ""
    named = f"would wait, by rule {rule.text} ({rule.source.words}{at})"
    if ruling.fate is Fate.HELD:
        return f"{named}. {ruling.why}"
    why = f": {rule.why}" if rule.why else ""
    return (
        named
        + why
        + ("" if rule.source.counts else ". It does not count yet, and holds the call all the same")
    )


def explain_one(screen: Screen, desk: Desk, book: Book, gate: Gate, given: str | None) -> int:
    """Explain one gate and one person: the ruling, the rules that decide, and what the work touches."""
    said = explain_gate(desk, book, gate, given)
    fields = {
        "gate": gate.id,
        "who": said.who,
        "allowed": said.allowed,
        "rule": said.rule,
        "why": said.why,
        "rules": list(said.rules),
        "paths": None if said.paths is None else list(said.paths),
        "staged_only": None if said.staged_only is None else list(said.staged_only),
    }
    lines = [f"{said.who}: {'may answer' if said.allowed else 'may not answer'} gate {gate.id}"]
    if book.policies:
        lines.append(f"rule {said.rule}: {said.why}{f' ({said.source})' if said.source else ''}")
        lines += [f"  {term.name}: {terms_line(term)}" for term in said.terms]
        lines.append(f"the work touches {touches(said.paths)}")
        lines += (
            [f"of it staged only, or in conflict: {touches(said.staged_only)}"] if said.staged_only else []
        )
    else:
        lines.append(f"there is no policy: {said.why}")
    screen.emit("ruling", fields, neutral("\n".join(lines)))
    return DONE if said.allowed else NOT_ALLOWED


def touches(paths: tuple[str, ...] | None) -> str:
    if paths is None:
        return "what is not known here (its work was not published): any path that a rule names"
    more = f" and {len(paths) - 8} more" if len(paths) > 8 else ""
    return f"{', '.join(paths[:8])}{more}" if paths else "no path that a rule is about"


def terms_line(term: RuleTerms) -> str:
    """Return a rule's terms in a line."""
    said = [
        "anyone" if term.who is None else ", ".join(person.name for person in term.who),
        f"{term.quorum} who agree" if term.quorum > 1 else "",
        f"{term.refusals} who refuse" if term.refusals else "",
        "" if term.requester_may_answer else "not whose agent asked",
        "signed" if term.require_signed else "",
        f"within {format_duration(term.within)}" if term.within else "",
        "" if term.defaults is None else f"{'with' if term.defaults else 'without'} defaults",
        {None: "", True: "automatic", False: "no scripts"}[term.automatic],
    ]
    return " · ".join(word for word in said if word)
