"""Setup: what is set up in this clone, what is missing, and the command that mends it; and whether Claude Code can ask here, tried with the real program."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from .. import setup, store
from ..agents.agent import Launch, reason_of_end
from ..agents.process import run_launch
from ..config import FILE, IN_FILE, SETTINGS
from ..config import SETTINGS as ALL
from ..context import INTRODUCTION, Desk, machine, open_desk
from ..context.targets import no_remote, remote_of, remotes_here, summaries
from ..document import Field, codec, is_blank, nearest
from ..errors import BadDocument, Failure, GateError
from ..gates import agency, with_stall
from ..gates.work import worktrees
from ..policy import load_book, protected_refs
from ..policy.rulebook import OTHERS_TOOL, counting_words, load_standing, pending_words
from ..questions.call_rules import strange_tools
from ..sharing.branches import cut_off
from ..store.git import Git
from ..store.git.programs import our_command
from ..store.git.protected import read_protected
from ..store.git.refs import OPEN
from ..store.remote import LIKE_REFS
from ..store.work import printable
from ..text import counted, one_line
from . import REPLACE, hidden, parts, spec_of, wrong_modes
from .demo import (
    AGENT_TIMEOUT,
    PASSED_ON,
    Message,
    ModelLine,
    RehearsedModel,
    blocks,
    find_claude,
    model_environment,
    rehearsed,
    text_of,
)
from .equipping import able_to_ask
from .managed import put_text, top_of

if TYPE_CHECKING:
    from ..agents.agent import Finished

# What is set up in this clone, what is missing, and the command that mends it. Nothing is changed, nobody
# is asked.


GOOD, MISSING, WRONG = "good", "missing", "wrong"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `missing` is a choice that was not made; `wrong` has to be mended."""

    name: str
    state: str
    words: str
    mend: str = ""


SETTINGS_KEY = "settings"
POWERS = frozenset(one.name for one in ALL if one.power)
READ = IN_FILE


def unread(desk: Desk) -> Iterator[Finding]:
    """Yield each field of an unknown name, and each setting that no file may make: neither has any effect."""
    for root in documents(desk):
        fields = root.mapping()
        yield from (unknown(name, field) for name, field in fields.items() if name not in READ)
        settings = fields.get(SETTINGS_KEY)
        if settings is not None and isinstance(settings.value, dict):
            yield from (misplaced(n, one) for n, one in settings.value.items() if n in POWERS)


def misplaced(name: str, field: Field) -> Finding:
    words = f"{at(field)}: it does not count there, where agents can write; it belongs in this machine's own configuration"
    return Finding(FILE, WRONG, words, f"take it away there; if you want it: git config gitgate.{name} …")


def unknown(name: str, field: Field) -> Finding:
    """Report an unknown field: whoever meant to restrict something has to know that it is not restricted."""
    meant = nearest(name, READ)
    words = f"{at(field)}: nobody reads a field of that name; there are {', '.join(READ)}"
    return Finding(FILE, WRONG, words, f"call it {meant}" if meant else "take it away there")


def at(field: Field) -> str:
    return f"{field.source}, line {field.line}: {field.path}"


def documents(desk: Desk) -> Iterator[Field]:
    """The file of the working tree, whose settings count, and the protected branch's, whose rules do. Those that cannot be read
    are told of by what needs them.
    """
    found: dict[bytes, str] = {}
    with contextlib.suppress(OSError):
        if desk.repo.top is not None:
            found[(desk.repo.top / FILE).read_bytes()] = FILE
    protected = read_protected(desk.refs, desk.records.objects, FILE, protected_refs(desk))
    if protected is not None:
        found.setdefault(protected.data, protected.source)
    for data, source in found.items():
        with contextlib.suppress(BadDocument):
            if not is_blank(data):
                yield codec.parse_document(data, source)


def policy(desk: Desk) -> Iterator[Finding]:
    """Yield the source of each policy on who may answer; a policy that cannot be read allows nothing."""
    for one in load_book(desk).policies:
        yield Finding("policy", GOOD, f"who may answer is said by {one.source or 'git config'}")


def approvals(desk: Desk) -> Iterator[Finding]:
    """The calls that wait for a person: by which rules, of which commit; and which rules do not count."""
    standing = load_standing(desk)
    book = standing.book
    if book.broken is not None:
        words = f"the rules cannot be read, so that no call of an agent goes through: {book.broken.why}"
        yield Finding("approvals", WRONG, words, "mend them on the protected branch")
    for words, misspelt in strange_tools(book.rules):
        mend = "name the tool as its program does, on the protected branch"
        yield Finding("approvals", WRONG if misspelt else GOOD, f"{words}; {OTHERS_TOOL}", mend)
    for words in counting_words(book):
        yield Finding("approvals", GOOD, words)
    for words in pending_words(standing):
        yield Finding("approvals", MISSING, words, "commit it, and bring it to the protected branch")
    for words in standing.unread:
        yield Finding("approvals", WRONG, f"{words}; it holds nothing", f"mend {FILE} in the working tree")


OLDEST_GIT = (2, 38)
REMOTE_TIMEOUT = 20
MOST_NAMED = 5


def examine(desk: Desk) -> list[Finding]:
    """Everything, in the order in which it is set up."""
    found: list[Finding] = []
    for look in LOOKS:
        try:
            found.extend(look(desk))
        except GateError as trouble:
            found.append(Finding(look.__name__.replace("_", " "), WRONG, trouble.message, trouble.hint))
    return found


def git_version(desk: Desk) -> Iterator[Finding]:
    said = desk.repo.git.text("--version")
    numbers = tuple(int(part) for part in re.findall(r"\d+", said)[:2])
    if numbers < OLDEST_GIT:
        yield Finding("git", WRONG, f"{said} is too old", "install git 2.38 or later")
    else:
        yield Finding("git", GOOD, said)


def identity(desk: Desk) -> Iterator[Finding]:
    who = desk.settings.identity()
    if who:
        yield Finding("identity", GOOD, f"answers given here are {who}'s")
    else:
        yield Finding("identity", MISSING, "git does not know who you are", INTRODUCTION)


def writable(desk: Desk) -> Iterator[Finding]:
    places = [desk.repo.common_dir, desk.repo.common_dir / "objects", desk.repo.common_dir / "refs"]
    shut = [place for place in places if not os.access(place, os.W_OK)]
    if shut:
        words = f"it may only be read, not written: {shut[0]}"
        yield Finding(
            "repository", WRONG, words, "have it made writable for you, or work in a clone of your own"
        )


def modes(desk: Desk) -> Iterator[Finding]:
    """Yield file modes that shut out git's readers or open our files to others, and other accounts' files."""
    init = "git gate init --server" if desk.repo.bare else "git gate init"
    state = desk.repo.state_dir
    found: dict[str, int] = {}
    for one in wrong_modes(desk):
        if one.place == state:
            yield Finding("modes", WRONG, f"what git gate keeps for itself is open to others: {state}", init)
        else:
            found[one.owner_name] = found.get(one.owner_name, 0) + 1
    me = store.account_name(os.geteuid())
    for owner, count in sorted(found.items()):
        words = f"other accounts cannot read {counted(count, 'file')} of {owner}'s in {desk.repo.common_dir}"
        yield Finding("modes", WRONG, words, init if owner == me else f"as {owner}: {init}")
    for place, number in store.foreign(state):
        words = f"{store.account_name(number)} left something in {me}'s way: {place}"
        yield Finding("modes", WRONG, words, f"sudo chown -R {me} {quote(str(state))}")
    if store.read_sharing(desk.settings.git).bits and desk.settings.flag("initialised"):
        shut = [place for place in agency.needed_files() if not store.is_reachable(place)]
        if shut:
            words = f"other accounts cannot start git gate where it is installed: {shut[0]}"
            mend = f"install it where all can reach it, and there: {init}"
            yield Finding("modes", WRONG, words, mend)


def settings_findings(desk: Desk) -> Iterator[Finding]:
    for one in SETTINGS:
        try:
            desk.settings.text(one.name)
        except GateError as wrong:
            yield Finding(f"gitgate.{one.name}", WRONG, wrong.message, wrong.hint)
    for key, words in desk.settings.misspelt.items():
        yield Finding(key, WRONG, words, f"take it away: git config --unset-all {key}")
    for name, words in desk.settings.misnamed.items():
        yield Finding(name, WRONG, words, f"take it away: unset {name}")
    for words in desk.settings.trouble:
        ours = f"{FILE}, line" in words
        yield Finding(
            FILE if ours else "config.yml", WRONG, words, "mend it there" + ours * ", and commit that"
        )


def remote(desk: Desk) -> Iterator[Finding]:
    if desk.settings.flag("server"):
        hidden = (
            desk.repo.git.run("config", "--get-all", "transfer.hideRefs", check=False).out.decode().split()
        )
        if any("refs/hitl".startswith(ref.lstrip("!^")) or ref.startswith("refs/hitl") for ref in hidden):
            words = "transfer.hideRefs hides gates, and hidden refs cannot be pushed"
            yield Finding("remote", WRONG, words, "git config --unset-all transfer.hideRefs")
        else:
            yield Finding("remote", GOOD, "gates are shared through this repository itself")
        return
    name = remote_of(desk)
    if name is None:
        why, mend = no_remote(desk)
        if desk.repo.top is None and not remotes_here(desk):  # most likely it is what others push to
            mend = "git gate init --server"
        yield Finding("remote", MISSING, f"gates stay here: {why}", mend)
        return
    from ..store.remote import read_remote

    place = read_remote(desk.repo, name)  # A mirror, or an address that runs a program, is refused here.
    if place.mirror:
        mend = f"git config --unset remote.{name}.mirror"
        yield Finding(
            "remote", WRONG, f"{name} is a push mirror: every git push deletes others' gates there", mend
        )
        return
    yield answering(desk, name)
    spec = spec_of(name)
    if spec in place.fetch_specs:
        yield Finding("refspec", GOOD, f"git fetch {name} brings gates along")
    else:
        yield Finding(
            "refspec", MISSING, f"git fetch {name} brings no gates; git gate sync does", "git gate init"
        )


def answering(desk: Desk, name: str) -> Finding:
    """Report whether the remote can be reached now, with git's own means."""
    from ..store.remote.fetch import ask_refs

    try:
        ask_refs(desk.repo, name, ["refs/hitl/open"], timeout=REMOTE_TIMEOUT)
    except GateError as silent:
        words = f"gates go to {name}, which cannot be reached: {silent.message}"
        return Finding("remote", WRONG, words, f"git ls-remote {quote(name)} HEAD")
    return Finding("remote", GOOD, f"gates go to {name}, and it answers")


def troubling_refs(desk: Desk) -> Iterator[Finding]:
    """Refs by which git reads one object as another, or takes one ref for another. We are fooled by neither; a server's own check of
    a push is by the first, and git pushes no gate that it cannot tell from a branch.
    """
    if desk.settings.flag("server"):
        if REPLACE not in hidden(desk):
            words = f"whoever may push can have git here read one object as another ({REPLACE}/*)"
            yield Finding("replaced objects", MISSING, words, "git gate init --server")
        found, delete = sorted(desk.refs.under(f"{REPLACE}/", *LIKE_REFS)), "git update-ref -d"
        where, refused = "this repository has", ""
    else:
        name = remote_of(desk)
        if name is None:
            return
        from ..store.remote.fetch import names_below

        try:
            found = names_below(desk.repo, name, f"{REPLACE}/", *LIKE_REFS, timeout=REMOTE_TIMEOUT)
        except GateError:
            return  # That it cannot be reached is told already.
        delete = f"git push {quote(name)} --delete"
        where, refused = (
            f"{name} has",
            " (where deleting it is refused, do it on the server: git update-ref -d)",
        )
    for what, several in (
        ("replaced objects", [ref for ref in found if ref.startswith(f"{REPLACE}/")]),
        ("names of refs", [ref for ref in found if not ref.startswith(f"{REPLACE}/")]),
    ):
        for ref in several[:MOST_NAMED]:
            yield Finding(
                what,
                WRONG,
                f"{where} {trouble_of(ref)}{refused}",
                f"{delete} {quote(printable(os.fsencode(ref)))}",
            )
        if len(several) > MOST_NAMED:
            words = f"{where} {len(several) - MOST_NAMED} more of them"
            yield Finding(what, WRONG, words, "git ls-remote" if refused else "git for-each-ref")


def trouble_of(ref: str) -> str:
    """Return the ref with what it stands in the way of."""
    name = printable(os.fsencode(ref))
    if ref.startswith(f"{REPLACE}/"):
        return f"{name}: what stands on that object may not be pushed"
    meant = name[name.index("/refs/") + 1 :]
    gate = meant.removeprefix(OPEN) if meant.startswith(OPEN) else ""
    return f"{name}: git cannot tell {meant} from it{gate and f', so that gate {gate} is not pushed'}"


def handing_out(desk: Desk, runner: str) -> Iterator[Finding]:
    """Answers go to a program or a queue: what is missing would else be found in the hook's log alone."""
    from ..runners.celery import need_broker
    from ..runners.command import handing_program

    try:
        if runner == "celery":
            need_broker(desk.settings)
        else:
            handing_program(desk.settings)
    except GateError as missing:
        yield Finding("runner", WRONG, f"no answer can be handed out: {missing.message}", missing.hint)
    else:
        yield Finding("runner", GOOD, f"answers are handed out (gitgate.runner {runner})")
    if desk.repo.bare and not desk.settings.text("runnerAddress"):
        words = f"whoever is to act is told {desk.repo.place}, which only this machine has"
        yield Finding("runner address", MISSING, words, "git config gitgate.runnerAddress ssh://HOST/PATH")


def consent(desk: Desk) -> Iterator[Finding]:
    init = "git gate init --server" if desk.repo.bare else "git gate init"
    if not desk.settings.flag("initialised"):
        yield Finding("init", MISSING, "nothing resumes by itself in this clone", init)
        return
    yield Finding("init", GOOD, "this clone is set up for gates")
    if not desk.repo.bare:
        goes = desk.settings.flag("publishWork")
        words = "partial work goes with each question" if goes else "partial work stays here"
        yield Finding(
            "publish work", GOOD if goes else MISSING, words, "" if goes else "git gate init --publish-work"
        )
    runs = desk.settings.flag("resumeHere")
    runner = desk.settings.text("runner")
    if runs and runner in ("command", "celery"):
        yield from handing_out(desk, runner)
        return
    words = "an answer starts its agent on this machine" if runs else "no agent is started here by itself"
    yield Finding("resume here", GOOD if runs else MISSING, words, "" if runs else f"{init} --resume")


def hook_findings(desk: Desk) -> Iterator[Finding]:
    init = "git gate init --server" if desk.repo.bare else "git gate init"
    folder = agency.hooks_folder(desk.repo)
    if folder is None:
        words = "core.hooksPath leads out of this repository; its hooks are not ours to change"
        yield Finding(
            "hooks", MISSING, words, "call `git gate hook pre-receive` and `git gate hook post-receive` there"
        )
        return
    needed = desk.settings.flag("initialised")
    for name in agency.NAMES:
        state = agency.state(folder, name)
        if state == "current":
            yield Finding(f"hook {name}", GOOD, "in place")
        elif state == "old":
            yield Finding(f"hook {name}", WRONG, "in place, but for another git-gate than this one", init)
        else:
            words = "not there" if state == "missing" else "somebody else's is there; ours would run after it"
            yield Finding(f"hook {name}", WRONG if needed else MISSING, words, init)


def agents(desk: Desk) -> Iterator[Finding]:
    """The programs that asked here, or are set up: whether they can be started again."""
    names = {present.program for present in machine.everyone_here(desk) if present.program}
    names |= {
        key.removeprefix(agency.SECTION).rpartition(".")[0]
        for key in desk.settings.git
        if key.startswith(agency.SECTION)
    }
    for name in sorted(names):
        reason = agency.cannot_start(desk, name)
        mend = f"git config {agency.SECTION}{name}.resume 'PROGRAM {{prompt_file}}'"
        if reason:
            needs = f"install {agency.program_of(desk, name)}"
            unset = agency.program_of(desk, name) is None
            yield Finding(f"agent {name}", MISSING, reason, mend if unset else needs)
        else:
            yield Finding(f"agent {name}", GOOD, "can be started again here")
            lacking = agency.adapter(name).wants(desk.settings.env)
            yield from (Finding(f"agent {name}", MISSING, words, mend) for words, mend in lacking)


def extras(desk: Desk) -> Iterator[Finding]:
    if desk.settings.text("sessionRecipients") and find_spec("pyrage") is None:
        words = "sessions are to be encrypted, and the extra for it is missing"
        yield Finding("extra age", WRONG, words, "pip install 'git-gate[age]'")
    if find_spec("jsonschema_rs") is None:
        words = "forms cannot be checked by their schemas"
        yield Finding("extra forms", MISSING, words, "pip install 'git-gate[forms]'")


def manual(desk: Desk) -> Iterator[Finding]:
    """Report whether git finds the page for `git gate --help`: a tool linked into PATH has it elsewhere."""
    env = desk.settings.env
    if not parts.has_reader(env):
        words = "git opens a manual page for `git gate --help`, and there is no `man` here"
        yield Finding("manual", MISSING, words, "git gate help")
    elif parts.is_found(env):
        yield Finding("manual", GOOD, "git gate --help opens its page")
    else:
        words = "git gate --help finds no page; git gate help VERB does"
        init = "git gate init --server" if desk.repo.bare else "git gate init"
        yield Finding("manual", MISSING, words, init if parts.place_for(env) else "git gate help")


def locked_refs(desk: Desk) -> Iterator[Finding]:
    """Refs that a git which was killed left locked, so that nobody can move them."""
    for lock in cut_off(desk):
        words = (
            f"{lock.ref} is locked by a git that was killed while it moved refs: nothing moves it any more"
        )
        yield Finding("locked ref", WRONG, words, "git gate worker --once")


def leftovers(desk: Desk) -> Iterator[Finding]:
    """Yield the working trees that agents left, and the gates that need a person."""
    folder = worktrees(desk)
    for place in sorted(folder.iterdir()) if folder.is_dir() else ():
        words = f"a working tree of a resumed agent is still there: {place}"
        yield Finding(
            "worktree", MISSING, words, f"look at it, then: git worktree remove {quote(str(place))}"
        )
    for summary in summaries(desk):
        state = with_stall(desk, summary).state
        if state in ("failed", "stalled"):
            what = "could not be resumed" if state == "failed" else "has an answer that nobody acts on"
            mend = f"git gate show {summary.id[:6]}; git gate resume {summary.id[:6]}"
            yield Finding(state, WRONG, f"gate {summary.id} {what}", mend)


LOOKS: tuple[Callable[[Desk], Iterator[Finding]], ...] = (
    git_version,
    writable,
    modes,
    identity,
    settings_findings,
    unread,
    policy,
    approvals,
    remote,
    troubling_refs,
    locked_refs,
    consent,
    hook_findings,
    agents,
    extras,
    manual,
    leftovers,
)


# Whether Claude Code can ask in this project: it is tried, with the real program, in a scratch
# repository.
#
# The model is a script on loopback, so that nothing is billed and no account is needed. Of the project
# its hooks and its rules on tools take part, and nothing that would run code of a branch; a person's own
# settings of Claude Code neither.


INIT = "git gate init --claude"
PERSON = {"user.name": "A rehearsal", "user.email": "rehearsal@gitgate.invalid"}
IN_SHELL, BY_TOOL = "Ask in your shell.", "Ask by your tool."
QUESTION, OPTIONS = "May this rehearsal end?", ("Yes", "No")
SEEN_CELLS = 200


def rehearse(desk: Desk) -> Iterator[Finding]:
    """Yield what is installed for Claude Code, then try each way in which it asks, from question to answer."""
    desk.refuse_agents("doctor --claude")
    try:
        program = find_claude(desk.settings.env)
    except Failure as missing:
        yield Finding("Claude Code", MISSING, missing.message, missing.hint)
        return
    with tempfile.TemporaryDirectory(prefix="gitgate-rehearsal-") as room, rehearsed(part) as model:
        stage = RehearsalStage(desk, program, Path(room), model)
        told = stage.start("--version")
        version = told.out.decode("utf-8", "replace").strip()
        if told.code or not version:
            yield Finding(
                "Claude Code", WRONG, f"{program} does not run: {reason_of_end(told)}", "reinstall it"
            )
            return
        yield Finding("Claude Code", GOOD, f"{version}, {program}")
        yield from set_up(desk)
        yield from stage.try_out("in its shell (claude -p)", IN_SHELL)
        yield from stage.try_out("by its own tool (git gate wrap -- claude -p)", BY_TOOL)


def set_up(desk: Desk) -> Iterator[Finding]:
    for step in (part.write() for part in setup.claude_part(desk)):
        if step.done:
            yield Finding(step.name, GOOD, step.means)
        else:
            yield Finding(step.name, MISSING, f"not there, or of another version: {step.means}", INIT)


def part(messages: Sequence[Message]) -> ModelLine:
    """The model's part, from nothing but the conversation: it asks once, as it was told to, and is done."""
    said = list(blocks(messages))
    if any(block.get("type") == "tool_use" for block in said):
        return ModelLine("Over.")
    if any(IN_SHELL in text_of(block) for block in said):
        options = " ".join(f"-o {option}" for option in OPTIONS)
        return ModelLine("I ask.", "Bash", {"command": f"git gate ask '{QUESTION}' {options}"})
    options_said = [{"label": option, "description": "a rehearsal"} for option in OPTIONS]
    asked = {"question": QUESTION, "header": "Rehearsal", "multiSelect": False, "options": options_said}
    return ModelLine("I ask.", "AskUserQuestion", {"questions": [asked]})


@dataclass
class RehearsalStage:
    """The scratch repository, set up as this project is, and the program in it."""

    desk: Desk
    program: str
    room: Path
    model: RehearsedModel
    env: dict[str, str] = field(init=False)
    starts: int = 0

    def __post_init__(self) -> None:
        given = self.desk.settings.env
        kept = {name: given[name] for name in PASSED_ON & set(given)}
        home = self.room / "home"
        home.mkdir()
        self.env = {
            **kept,
            "HOME": str(home),
            "GIT_CONFIG_NOSYSTEM": "1",
            **model_environment(self.room, self.model),
        }
        Git(self.room, self.env).run("init", "-q", str(self.place))
        git = Git(self.place, self.env)
        known = {name: self.desk.settings.git.get(name, "") for name in (setup.PROGRAM,)}
        settings = {**PERSON, **known, "gitgate.agent.claude.program": json.dumps([self.program])}
        for name, value in settings.items():
            if value:
                git.run("config", name, value)
        self.copy_project()
        git.run("add", "-A")
        git.run("commit", "-q", "--no-verify", "-m", "A rehearsal")

    @property
    def place(self) -> Path:
        return self.room / "project"

    def copy_project(self) -> None:
        """Our hooks as `init --claude` writes them, and the project's own rules on tools."""
        for part in setup.claude_part(self.open())[1:]:
            part.write().take()
        own = setup.read_settings(top_of(self.desk) / setup.SETTINGS)
        if isinstance(own.get("permissions"), dict):
            place = self.place / setup.SETTINGS
            given = {**setup.read_settings(place), "permissions": own["permissions"]}
            put_text(place, setup.dump_settings(given))

    def open(self) -> Desk:
        return open_desk(self.place, self.env)

    def start(self, *words: str) -> Finished:
        return self.run((self.program, *words))

    def run(self, words: Sequence[str]) -> Finished:
        self.starts += 1
        folder = self.room / f"start-{self.starts}"
        place = self.place if self.place.is_dir() else self.room
        return run_launch(Launch(tuple(words), place, self.env, folder, timeout=AGENT_TIMEOUT))

    def gate(self, *words: str) -> Finished:
        return self.run(our_command(*words))

    def try_out(self, way: str, task: str) -> Iterator[Finding]:
        """Let the model ask in this way, answer its question, and let it go on."""
        name = f"asks {way}"
        words: tuple[str, ...] = ("claude", "-p", task)
        if task == BY_TOOL:
            words = able_to_ask(self.open(), words, str(uuid.uuid4()), self.place)
        before = set(self.waiting())
        self.model.shown = ()
        ended = self.start(*words[1:])
        found = [gate for gate in self.waiting() if gate not in before]
        if not found:
            yield Finding(name, WRONG, *self.why(ended))
            return
        yield Finding(name, GOOD, "its question became a gate, and its run ended")
        for answer in (("respond", found[0], OPTIONS[0], "--no-resume", "-q"), ("resume", found[0], "-q")):
            ended = self.gate(*answer)
            if ended.code:
                yield Finding(
                    f"{name}, goes on", WRONG, reason_of_end(ended), "git gate demo --claude --keep"
                )
                return
        yield Finding(f"{name}, goes on", GOOD, "it was started again with the answer")

    def waiting(self) -> list[str]:

        return [summary.id for summary in summaries(self.open()) if summary.state == "awaiting"]

    def why(self, ended: Finished) -> tuple[str, str]:
        """Return why there is no gate, from the model's last input, and what mends it."""
        results = [text_of(block) for block in blocks(self.model.shown) if block.get("type") == "tool_result"]
        if not results:
            return f"it did not come to ask: {reason_of_end(ended)}", "try it by hand: claude -p 'Say hello'"
        said = one_line(results[-1], SEEN_CELLS)
        if shutil.which("git-gate", path=self.env.get("PATH")) is None:
            return (
                "git-gate is not on PATH, where its shell and the hooks look",
                "in a clone of git gate's repository: pipx install '.[forms]'; then a new shell",
            )
        return f"it was refused: {said}", denied(self.desk) or INIT


def denied(desk: Desk) -> str:
    """Rules of the project that forbid what we need; empty when there are none."""
    try:
        own = setup.read_settings(top_of(desk) / setup.SETTINGS).get("permissions")
    except GateError:
        return ""
    rules = own.get("deny", []) if isinstance(own, Mapping) else []
    named = [
        rule
        for rule in rules
        if isinstance(rule, str) and ("gate" in rule or rule in ("Bash", "AskUserQuestion"))
    ]
    return f"{setup.SETTINGS} forbids {', '.join(named)}: take that out" if named else ""
