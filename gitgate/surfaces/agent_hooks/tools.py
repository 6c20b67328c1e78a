"""Surfaces: a hook around a tool: what it is told, read without trusting it; which questions and calls become gates; and what it answers."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import NotARepository, Usage
from ...questions import calls
from ...questions.call_rules import WRITERS, CallRule
from ...questions.calls import ASK_TOOL, Call, CallPlace, CallRuling, Fate, Placed, judge_call
from ...questions.calls import texts_in as texts_of
from ...text import neutral, shell
from ...text.digests import sha256

if TYPE_CHECKING:
    from ...context import Desk
    from ...model.gate import Gate
    from ...questions.drafts import Draft

# What a hook is told, read without trusting it, and what it answers.


# What Claude Code calls itself where a person sits before it, who can be asked at once.
ATTENDED = frozenset(("cli", "claude-vscode", "claude-desktop", "claude-jetbrains"))

TRANSCRIPT_TIMEOUT = 0.4


@dataclass(frozen=True)
class HookReply:
    """Reply of a hook: `out` is printed, empty where it has nothing to say; `told` is for whoever started the run."""

    out: str = ""
    told: str = ""

    @property
    def value(self) -> dict[str, object]:
        return dict(json.loads(self.out)) if self.out else {}

    def repeated(self) -> HookReply:
        """Return what a second hook says of the same event: the decision on a call again, and nothing that was told already."""
        output = self.value.get("hookSpecificOutput")
        if not isinstance(output, dict) or "permissionDecision" not in output:
            return NOTHING
        kept = {name: value for name, value in output.items() if name != "additionalContext"}
        return HookReply(json.dumps({**self.value, "hookSpecificOutput": kept}))


NOTHING = HookReply()


@dataclass(frozen=True)
class HookEvent:
    """One event of an agent's program. What it did not say, or said in another shape, is empty."""

    session: str
    cwd: Path
    tool: str = ""
    given: Mapping[str, object] = field(default_factory=dict)
    call: str = ""
    subagent: str = ""
    transcript: str = ""
    said: str = ""
    again: bool = False
    response: object = None
    digest: str = ""  # of all that was told: each hook of one event is told the same, to the letter
    env: Mapping[str, str] = field(default_factory=dict)
    desks: list[Desk] = field(default_factory=list, repr=False, compare=False)

    @property
    def attended(self) -> bool:
        """Return whether a person sits before the program, so that it asks them itself."""
        alone = self.env.get("CLAUDE_CODE_SESSION_ATTENDED") == "0" or bool(self.env.get("GITGATE_GATE"))
        return not alone and self.env.get("CLAUDE_CODE_ENTRYPOINT", "") in ATTENDED

    def desk(self) -> Desk:
        """Return the repository of the agent: where it stands, unless it wandered out of the one it was started in."""
        home = self.env.get("CLAUDE_PROJECT_DIR", "")
        try:
            here = self.open(self.cwd)
        except NotARepository:
            if not home or not Path(home).is_dir():
                raise
            return self.open(Path(home))
        if not home or not Path(home).is_dir() or Path(home) in (here.repo.top, self.cwd):
            return here
        try:
            started = self.open(Path(home))
        except NotARepository:
            return here
        return here if started.repo.common_dir == here.repo.common_dir else started

    def open(self, place: Path) -> Desk:
        """Open a desk at a place; `close` closes it."""
        from ...context import open_desk

        env = {name: value for name, value in self.env.items() if name not in ("GIT_DIR", "GIT_WORK_TREE")}
        self.desks.append(open_desk(place, env))
        return self.desks[-1]

    def close(self) -> None:
        while self.desks:
            self.desks.pop().close()


def read_event(raw: bytes, env: Mapping[str, str], cwd: Path) -> HookEvent:
    """Read an event from standard input; fail where it cannot be read: nobody could say whether a call may be made."""
    try:
        value = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as wrong:
        raise Usage(f"the hook was given what is not JSON: {wrong}") from wrong
    if not isinstance(value, dict):
        raise Usage("the hook was given something else than an object")

    def words(name: str) -> str:
        found = value.get(name)
        return found if isinstance(found, str) else ""

    given = value.get("tool_input")
    said = words("cwd")
    return HookEvent(
        session=words("session_id") or env.get("CLAUDE_CODE_SESSION_ID", ""),
        cwd=Path(said) if said and os.path.isdir(said) else cwd,  # noqa: PTH112 - Path's raises for a name too long
        tool=words("tool_name"),
        given=given if isinstance(given, dict) else {},
        call=words("tool_use_id"),
        subagent=words("agent_id"),
        transcript=words("transcript_path"),
        said=words("last_assistant_message"),
        again=value.get("stop_hook_active") is True,
        response=value.get("tool_response"),
        digest=sha256(raw).hexdigest(),
        env=env,
    )


def last_words(event: HookEvent, most: int = 400_000) -> str:
    """Return what the agent said last, by its transcript; empty where that cannot be read.

    The transcript has a call after the words before it, and at times only a moment after the hook was started.
    """
    for line in reversed(settled_tail(event, most).splitlines()):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        text = spoken(record)
        if text is not None:
            return text
    return ""


def settled_tail(event: HookEvent, most: int) -> bytes:
    """Return the end of the transcript, once that has the call of the event, or after a short wait."""
    until = time.monotonic() + TRANSCRIPT_TIMEOUT
    while True:
        tail = tail_of(event.transcript, most)
        if not tail or not event.call or event.call.encode() in tail or time.monotonic() > until:
            return tail
        time.sleep(0.02)


def made_together(event: HookEvent, call: str, most: int = 400_000) -> bool:
    """Return whether another call is in the agent's message that has the event's call, by the transcript."""
    of_message: dict[str, object] = {}
    for line in settled_tail(event, most).splitlines():
        if call.encode() not in line and event.call.encode() not in line:
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        said = record.get("message") if isinstance(record, dict) else None
        message = said if isinstance(said, dict) else {}
        content = message.get("content")
        for block in content if isinstance(content, list) else []:
            if isinstance(block, dict) and block.get("type") == "tool_use":
                of_message[str(block.get("id"))] = message.get("id")
    return event.call in of_message and of_message[event.call] == of_message.get(call)


def tail_of(transcript: str, most: int) -> bytes:
    try:
        with Path(transcript).open("rb") as source:
            source.seek(max(0, source.seek(0, 2) - most))
            return source.read(most)
    except (OSError, ValueError):
        return b""


def spoken(record: object) -> str | None:
    """Return the text of an assistant's record, empty for a person's, which ends the search; else None."""
    if not isinstance(record, dict) or record.get("isSidechain") is True:
        return None
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if record.get("type") == "user":
        return ""
    if record.get("type") != "assistant" or not isinstance(content, list):
        return None
    parts = [
        block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text"
    ]
    texts = [part for part in parts if isinstance(part, str) and part.strip()]
    return "\n".join(texts) if texts else None


# Before a tool is used. Questions and calls that need approval become gates; what was decided is carried
# out.


MOVED_ON = (
    "{path} is below {old}, where you worked before. You go on in {new} now: make the call for {there}. Nothing of {old} is "
    "yours to change here."
)
IN_ANOTHER_PLACE = "If it is resumed in another place, the call is made for {} there."
HERE_ALONE = "If it is resumed in another place, the call is not made there{}, and the agent is told so."


def real_path(event: HookEvent, path: str) -> str:
    """Return a path with its links followed, from where the call is made."""
    return path if "\0" in path else os.path.realpath(event.cwd / path)


def here_of(desk: Desk) -> str:
    """Return the folder of the repository that the agent is in, with links followed."""
    return os.path.realpath(desk.repo.place)


def place_of(event: HookEvent, desk: Desk) -> CallPlace:
    """Return where the call's paths are read from, and where links lead."""
    top = str(desk.repo.place)
    paths = [str(path) for name in ("file_path", "notebook_path", "path") if (path := event.given.get(name))]
    real = {path: os.path.realpath(event.cwd / path) for path in paths if "\0" not in path}
    return CallPlace(top, str(event.cwd), {**real, top: os.path.realpath(top)})


def placed_here(event: HookEvent, desk: Desk) -> Placed:
    """Return the place where the call is to be made."""
    place = place_of(event, desk)
    real = place.real or {}
    root, cwd = real[place.top], os.path.realpath(event.cwd)
    spelt = [place.top]
    for name in ("PWD", "CLAUDE_PROJECT_DIR"):
        # Through a link the folder has another name, which the agent may have been told.
        logical = Path(event.env.get(name) or root)
        spelt += [str(path) for path in (logical, *logical.parents) if os.path.realpath(path) == root]
    return calls.place_call(event.tool, event.given, root, cwd, real, spelt, event.env.get("HOME", ""))


def elsewhere_words(event: HookEvent, placed: Placed) -> str:
    """Return the words that say what becomes of the call where the agent is resumed in another directory."""
    if placed.files:
        return IN_ANOTHER_PLACE.format(", ".join(placed.files.values()))
    if event.tool in calls.FILES:
        return HERE_ALONE.format(": its file is outside of the repository")
    return HERE_ALONE.format(": it names this one") if placed.named else ""


def left_behind(event: HookEvent, desk: Desk) -> str:
    """Return why a file is not written: the agent names the folder of its work before it was resumed elsewhere."""
    from ...acts.needs import named_gate

    path = event.given.get(calls.FILES.get(event.tool, ""))
    known = event.tool in WRITERS and isinstance(path, str) and "\0" not in path
    gate = named_gate(desk) if known and event.env.get("GITGATE_GATE") else None
    if gate is None or not gate.opened.asked.directory:
        return ""
    real, here = os.path.realpath(event.cwd / str(path)), here_of(desk)
    old = os.path.realpath(gate.opened.asked.directory)
    at = calls.below(real, old)
    if at is None or calls.below(real, here) is not None:
        return ""
    return MOVED_ON.format(path=path, old=old, new=here, there=Path(here, at))


def in_this_place(event: HookEvent, desk: Desk, gate: Gate) -> tuple[Mapping[str, object], str]:
    """Return an approved call as it is to be made in this folder, or why it is not to be made."""
    from ...context import machine

    placed, here = calls.placed_of(gate), here_of(desk)
    if placed is None:
        return event.given, against_unplaced(event, gate, here)
    stayed = here == placed.root and machine.find_presence(desk, gate.id) is not None
    name = calls.FILES.get(event.tool, "")
    given = event.given.get(name)
    if not isinstance(given, str):
        return event.given, against_text(event, placed, here)
    if stayed and Path(given).is_absolute():
        return event.given, ""
    if name not in placed.files:
        return event.given, f"{given} is not below {placed.root}, where it was approved"
    found = calls.moved(event.given, placed, here)
    if calls.below(os.path.realpath(str(found[name])), here) is None:
        return event.given, f"{placed.files[name]} leads out of {here}"
    return found, ""


def against_unplaced(event: HookEvent, gate: Gate, here: str) -> str:
    """Return why an approved call without a recorded place is not made here; empty where it may be made as it is."""
    old = gate.opened.asked.directory
    if here == os.path.realpath(old or here):
        return ""
    if event.tool in calls.FILES or any(calls.names_folder(text, [old]) for text in texts_of(event.given)):
        return f"it was approved for {old}"
    return ""


def against_text(event: HookEvent, placed: Placed, here: str) -> str:
    """Return why a call that is a text, a command above all, is not made here; empty where it may be made."""
    if placed.named and here != placed.root:
        return f"it names {placed.root}, where it was approved"
    cwd = os.path.realpath(event.cwd)
    now = calls.below(cwd, here) or cwd
    return "" if now == placed.cwd else f"it was approved in {placed.cwd}, and would be made in {now}"


SUBAGENT = (
    "You are a subagent, and cannot wait for a person. End with a result that tells your caller what has to be asked or "
    "approved, with the options and what speaks for each; the caller asks."
)
ONE_AT_A_TIME = (
    "Your question {gate} already waits for a person, and a run waits for one at a time. Nothing of this call is lost: when "
    "you go on with that answer, ask this again if it still matters; several questions fit into one call."
)
TWICE = (
    "This call was approved by gate {gate} and let through once, in an attempt of yours that was interrupted; whether it was "
    "carried out is not known. Find out, and if it has to be made again, make it as a new call: it will be asked again."
)
ASKING = "asking a person, and hearing the answer, needs nobody's leave"
OVER = (
    "Your question {gate} waits for a person, so this run is over: no call is made until it is answered. You go on with the "
    "answer by yourself. Do nothing more, and end your turn."
)
NOT_HERE = (
    "This call was approved by gate {gate}, but it is not made here: {why}. You go on in {here} now. If it still matters, make "
    "it as a new call, for this place: it will be asked again."
)
MADE_HERE = (
    "The approved call is made in the place where you are now, and nowhere else: {moved}. If the program refuses it because "
    "{new} was not read yet, read it and make the call again: it will be asked again."
)
IN_A_SHELL = "git gate ask (without --wait) ends a run when it has been asked. {}"


def pre_tool_use(event: HookEvent) -> HookReply:
    """Decide on a call: say nothing, deny it, defer it until there is an answer, or let it be made with that answer."""
    if not event.tool:
        raise Usage("the hook was given a call without a tool")
    refused = shell.why_not_run(event.tool, event.given, lambda path: real_path(event, path))
    if refused:
        return deny(refused)
    if event.tool == ASK_TOOL:
        return NOTHING if event.attended else question(event)
    if event.tool in ("Bash", "PowerShell") and shell.asks(str(event.given.get("command", ""))):
        refused_here = refused_ask(event)
        if refused_here is not None:
            return refused_here
    reply = approval(event)
    return decision_reply("allow", ASKING) if reply == NOTHING and may_ask(event) else reply


def may_ask(event: HookEvent) -> bool:
    """Return whether a call in a shell only asks a person, or reads the answer: it needs nobody's approval.

    The command has to be plain, and in the project's own repository: git would run what another one configures. The
    files that it reads have to be in the working tree.
    """
    words = shell.plain_asking(str(event.given.get("command", ""))) if event.tool == "Bash" else ()
    if not words:
        return False

    try:
        here = event.open(event.cwd).repo
        home = event.env.get("CLAUDE_PROJECT_DIR", "")
        started = event.open(Path(home)).repo if home and Path(home).is_dir() else here
    except NotARepository:
        return False
    if here.top is None or here.common_dir != started.common_dir:
        return False
    top, own = here.top.resolve(), here.common_dir.resolve()
    files = [Path(os.path.realpath(event.cwd / name)) for name in shell.files_read(words) if "\0" not in name]
    return all(place.is_relative_to(top) and not place.is_relative_to(own) for place in files)


def refused_ask(event: HookEvent) -> HookReply | None:
    """Return why a question in a shell is not asked now; None where it may be asked."""
    if event.subagent:
        return deny(IN_A_SHELL.format(f"{SUBAGENT} (git gate ask --wait may be used: it blocks.)"))
    from ...acts.needs import waiting

    desk = event.desk()
    found = waiting(desk, event.session)
    return second(event, desk, found[0], IN_A_SHELL) if found else None


def second(event: HookEvent, desk: Desk, first: Gate, words: str = "{}") -> HookReply:
    """Deny a question while another one waits; end the run where it went on past that one.

    Some versions of the program end the run at once, others because no further call of it is made.
    """
    reason = words.format(ONE_AT_A_TIME.format(gate=first.id))
    call = calls.call_of(first)
    if event.attended or (call is not None and made_together(event, call.id)):
        return deny(reason)  # the run ends with the one that waits
    from ...acts.needs import end_run

    end_run(desk, event.session)
    return last(reason, first)


# The two kinds of calls that wait


def question(event: HookEvent) -> HookReply:
    if event.subagent:
        return deny(SUBAGENT)
    questions = calls.questions_of(event.given)
    desk = event.desk()
    from ...questions.drafts import Draft

    return waits(event, desk, Draft(questions, context=context(event, calls.previews(event.given))))


def approval(event: HookEvent) -> HookReply:
    """Return the decision on a call by the repository's rules, or by the gate of a resumed agent; NOTHING without one."""
    try:
        desk = event.desk()
    except NotARepository:
        return NOTHING
    from ...acts.needs import gate_of_call, is_over

    if event.env.get("GITGATE_GATE"):
        gate = gate_of_call(desk, event.call)
        if gate is not None:
            return decided(event, gate)
    first = None if event.attended else is_over(desk, event.session)
    if first is not None:
        return last(OVER.format(gate=first.id), first)
    left = left_behind(event, desk)
    if left:
        return deny(left)
    ruling = rule_on_call(event, desk)
    if ruling.fate is Fate.RUNS:
        return NOTHING
    if event.attended:
        return decision_reply("ask", ruling.why)
    if ruling.fate is Fate.HELD:
        return deny(f"{ruling.why} {shell.ASK_INSTEAD}" if ruling.rule else ruling.why)
    if event.subagent:
        return deny(f"This call needs a person's approval. {ruling.why} {SUBAGENT}")
    placed = placed_here(event, desk)
    return waits(event, desk, approval_draft(event, ruling, placed), ruling.rule, placed)


def rule_on_call(event: HookEvent, desk: Desk) -> CallRuling:
    """Judge a call by the rules that count, and by those in the trees where the agent works and where it was started."""
    from ...policy.rulebook import load_standing

    book = load_standing(desk, *family(event, desk)).book
    return judge_call(book, event.tool, event.given, place_of(event, desk))


def family(event: HookEvent, desk: Desk) -> list[Desk]:
    """Return the repository's other working trees: where the agent is, and where it was started."""
    return [one for one in event.desks if one.repo.common_dir == desk.repo.common_dir and one is not desk]


def foretell(event: HookEvent) -> CallRuling:
    """Judge a call as the hook would, without opening a gate for it."""
    refused = shell.why_not_run(event.tool, event.given, lambda path: real_path(event, path))
    return CallRuling(Fate.DENIED, refused) if refused else rule_on_call(event, event.desk())


def approval_draft(event: HookEvent, ruling: CallRuling, placed: Placed) -> Draft:
    from ...acts.needs import context_from_agent
    from ...questions.drafts import Draft

    rule, why = ruling.rule or CallRule("", ""), context_from_agent(event.env, ruling.why)
    exact = context_from_agent(event.env, calls.exact(event.tool, event.given), 100_000)
    safe = (
        json.loads(context_from_agent(event.env, json.dumps(event.given), 400_000))
        if safe_json(event)
        else {}
    )
    ask = calls.approval(event.tool, safe or {"command": exact})
    text = f"{why}\n\nThe whole call, in {event.cwd}:\n\n{calls.indented(exact)}"
    elsewhere = context_from_agent(event.env, elsewhere_words(event, placed))
    text += f"\n\n{elsewhere}" if elsewhere else ""
    return Draft(
        (ask,),
        title=calls.title(event.tool, safe),
        context="\n\n".join(part for part in (text, context(event)) if part),
        to=rule.to,
        quorum=rule.quorum,
        priority=rule.priority,
        timeout=rule.timeout,
        on_timeout=rule.on_timeout if rule.timeout else None,
    )


def safe_json(event: HookEvent) -> bool:
    """Return whether the call's arguments are still an object when secrets are taken out of them."""
    from ...acts.needs import context_from_agent

    try:
        return isinstance(json.loads(context_from_agent(event.env, json.dumps(event.given), 400_000)), dict)
    except ValueError:
        return False


def context(event: HookEvent, more: str = "") -> str:
    from ...acts.needs import context_from_agent

    words = context_from_agent(event.env, last_words(event))
    return "\n\n".join(part for part in (words, more) if part)


def waits(
    event: HookEvent, desk: Desk, draft: Draft, rule: CallRule | None = None, placed: Placed | None = None
) -> HookReply:
    """Open the call's gate, unless it has one, and defer the call while nobody has decided."""
    from ...acts.asking import AskWishes, ask
    from ...acts.needs import gate_of_call, key_of_call, turn, waiting

    if not event.call or not event.session:
        raise Usage("the hook was given a call without an id, or without a session")
    with turn(desk, event.session):
        gate = gate_of_call(desk, event.call)
        if gate is not None:
            return decided(event, gate)
        other = waiting(desk, event.session)
        if other:
            return second(event, desk, other[0])
        call = Call(event.tool, event.call, calls.digest_of_call(event.tool, event.given))
        draft = replace(
            draft,
            key=key_of_call(event.call),
            session=event.session,
            on_timeout=draft.on_timeout or silence(desk, draft),
            config=calls.config_of(call, rule, placed),
        )
        ask(desk, draft, AskWishes())
    return decision_reply("defer")


def silence(desk: Desk, draft: Draft) -> str | None:
    """Return `fail` for a deadline that the settings end by `default`: these questions declare no default."""
    has_deadline = draft.timeout is not None or desk.settings.seconds("timeout") is not None
    return "fail" if has_deadline and desk.settings.text("onTimeout") == "default" else None


# What was decided


def decided(event: HookEvent, gate: Gate) -> HookReply:
    """Return the outcome of a call that had to wait, as its gate has it now."""
    call, placed, desk = calls.call_of(gate), calls.placed_of(gate), event.desk()
    here = here_of(desk)
    if call is None or not calls.is_same(call, placed, event.tool, event.given, here):
        return deny(
            f"This is not the call that gate {gate.id} is about: it was changed since. Make it again, as a new call."
        )
    if gate.state == "awaiting":
        return decision_reply("defer")
    if gate.state in ("stopped", "withdrawn"):
        why = f": {gate.closing.text}" if gate.closing and gate.closing.text else ""
        return deny(f"Gate {gate.id} was {gate.state}{why}. Do not go on with this.")
    from ...policy.permit import check_told

    check_told(desk, gate)
    told = news(event, gate)
    if gate.answer is None:
        return deny(f"Nobody answered gate {gate.id} before its deadline, and silence is not consent.", told)
    answer = gate.answer.answer
    if event.tool == ASK_TOOL:
        if answer.verdict == "defaulted":
            return deny(
                f"Nobody answered gate {gate.id} before its deadline; a declared default applies.", told
            )
        updated = calls.updated_input(event.given, gate.opened.questions, answer.values)
        return decision_reply("allow", "", told, updatedInput=updated)
    if answer.verdict == "rejected" or answer.values.get("answer") is not True:
        note = f": {neutral(answer.note)}" if answer.note else ""
        return deny(f"A person said no (gate {gate.id}){note}. Do not make this call in another way.", told)
    return made_here(event, desk, gate, told)


def made_here(event: HookEvent, desk: Desk, gate: Gate, told: str) -> HookReply:
    """Let an approved call through once, for the same files below this folder; deny it where that cannot be."""
    from ...acts.needs import let_through, note_made

    call, why = in_this_place(event, desk, gate)
    if why:
        words = NOT_HERE.format(gate=gate.id, why=why, here=here_of(desk))
        note_made(desk, gate, f"its approved call was not made here: {why}")
        return deny(words, "\n\n".join(part for part in (told, words) if part))
    if not let_through(desk, gate):
        return deny(TWICE.format(gate=gate.id), told)
    if call == event.given:
        return decision_reply("allow", f"approved (gate {gate.id})", told)
    changed = [(event.given[name], call[name]) for name in call if call[name] != event.given[name]]
    words = "; ".join(f"{old} → {new}" for old, new in changed)
    note_made(desk, gate, f"its approved call was made here for its own place: {words}")
    told = "\n\n".join(part for part in (told, MADE_HERE.format(moved=words, new=changed[0][1])) if part)
    return decision_reply("allow", f"approved (gate {gate.id}): {words}", told, updatedInput=call)


def news(event: HookEvent, gate: Gate) -> str:
    """Return all that the agent is told when it goes on, in full: a call made together with others may lose its result."""
    from ...questions.prompts import resume_prompt

    named = event.env.get("GITGATE_PROMPT_FILE", "")
    if named and event.env.get("GITGATE_GATE") == gate.id:
        try:
            text = Path(named).read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError):
            text = ""
        if text.strip():
            return text
    return resume_prompt(gate)


def last(reason: str, first: Gate) -> HookReply:
    """Deny the call, and end the run."""
    over = {"continue": False, "stopReason": f"gate {first.id} waits for an answer"}
    return HookReply(json.dumps({**deny(reason).value, **over}))


def deny(reason: str, told: str = "") -> HookReply:
    return decision_reply("deny", reason, told)


def decision_reply(
    decision: str, reason: str = "", told: str = "", **more: Mapping[str, object]
) -> HookReply:
    """Return a decision on a call in the program's own form."""
    output: dict[str, object] = {"hookEventName": "PreToolUse", "permissionDecision": decision}
    output |= {"permissionDecisionReason": reason} if reason else {}
    output |= {"additionalContext": told} if told else {}
    return HookReply(json.dumps({"hookSpecificOutput": {**output, **more}}))
