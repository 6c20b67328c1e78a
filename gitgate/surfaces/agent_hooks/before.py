"""Surfaces: before a tool is used. Questions and calls that need approval become gates; what was decided is carried out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...core import calls, guard
from ...core.calls import ASK_TOOL, Call
from ...core.rules import Place, Rule, find_rule
from ...core.text import neutral
from ...errors import Usage
from .event import NOTHING, Event, Reply, last_words

if TYPE_CHECKING:
    from ...core.drafts import Draft
    from ...core.model import Gate
    from ...service.desk import Desk

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
IN_A_SHELL = "git gate ask (without --wait) ends a run when it has been asked. {}"


def pre_tool_use(event: Event) -> Reply:
    """What becomes of a call: nothing to say, denied, deferred until there is an answer, or made with it."""
    if not event.tool:
        raise Usage("the hook was given a call without a tool")
    refused = guard.refusal(event.tool, event.given)
    if refused:
        return deny(refused)
    if event.tool == ASK_TOOL:
        return NOTHING if event.attended else question(event)
    if event.tool in ("Bash", "PowerShell") and guard.asks(str(event.given.get("command", ""))):
        refused = refused_ask(event)
        if refused:
            return deny(IN_A_SHELL.format(refused))
    reply = approval(event)
    return said("allow", ASKING) if reply == NOTHING and may_ask(event) else reply


def may_ask(event: Event) -> bool:
    """Whether a call in a shell only asks a person, or hears the answer: nobody needs to be asked for leave to do that.

    It has to be plain, and in the project's own repository: what another one configures git would run. What it reads of
    files lies in the working tree.
    """
    words = guard.plain_asking(str(event.given.get("command", ""))) if event.tool == "Bash" else ()
    if not words:
        return False
    from ...errors import NotARepository

    try:
        here = event.open(event.cwd).repo
        home = event.env.get("CLAUDE_PROJECT_DIR", "")
        started = event.open(Path(home)).repo if home and Path(home).is_dir() else here
    except NotARepository:
        return False
    if here.top is None or here.common_dir != started.common_dir:
        return False
    top, own = here.top.resolve(), here.common_dir.resolve()
    files = [Path(os.path.realpath(event.cwd / name)) for name in guard.files_read(words) if "\0" not in name]
    return all(place.is_relative_to(top) and not place.is_relative_to(own) for place in files)


def refused_ask(event: Event) -> str:
    """Why a question in a shell is not asked now."""
    if event.subagent:
        return SUBAGENT + " (git gate ask --wait may be used: it blocks.)"
    from ...service.calling import waiting

    found = waiting(event.desk(), event.session)
    return ONE_AT_A_TIME.format(gate=found[0].id) if found else ""


# The two kinds of calls that wait


def question(event: Event) -> Reply:
    if event.subagent:
        return deny(SUBAGENT)
    questions = calls.questions_of(event.given)
    desk = event.desk()
    from ...core.drafts import Draft

    return waits(event, desk, Draft(questions, context=context(event, calls.previews(event.given))))


def approval(event: Event) -> Reply:
    """Whether a rule of the repository, or the gate that the agent was resumed for, has a say in this call."""
    from ...errors import NotARepository

    try:
        desk = event.desk()
    except NotARepository:
        return NOTHING
    from ...service.calling import gate_of_call, load_rules

    if event.env.get("GITGATE_GATE"):
        gate = gate_of_call(desk, event.call)
        if gate is not None:
            return decided(event, gate)
    rule = find_rule(load_rules(desk), event.tool, event.given, place_of(event, desk))
    if rule is None:
        return NOTHING
    if event.attended:
        return said("ask", f"a person decides on this ({rule.text}{f': {rule.why}' if rule.why else ''})")
    if event.subagent:
        return deny(f"This call needs a person's approval ({rule.text}). {SUBAGENT}")
    return waits(event, desk, approval_draft(event, rule), rule)


def place_of(event: Event, desk: Desk) -> Place:
    """Where paths are read from, and where links lead."""
    top = str(desk.repo.place)
    paths = [str(path) for name in ("file_path", "notebook_path", "path") if (path := event.given.get(name))]
    real = {path: os.path.realpath(event.cwd / path) for path in paths if "\0" not in path}
    return Place(top, str(event.cwd), {**real, top: os.path.realpath(top)})


def approval_draft(event: Event, rule: Rule) -> Draft:
    from ...core.drafts import Draft
    from ...service.calling import context_of

    why = f"The rule `{rule.text}` asks for a person{f': {rule.why}' if rule.why else ''}."
    exact = context_of(event.env, calls.exact(event.tool, event.given), 100_000)
    safe = json.loads(context_of(event.env, json.dumps(event.given), 400_000)) if safe_json(event) else {}
    ask = calls.approval(event.tool, safe or {"command": exact})
    text = f"{why}\n\nThe whole call, in {event.cwd}:\n\n{calls.indented(exact)}"
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


def safe_json(event: Event) -> bool:
    """Whether the call's arguments are still an object when secrets are taken out of them."""
    from ...service.calling import context_of

    try:
        return isinstance(json.loads(context_of(event.env, json.dumps(event.given), 400_000)), dict)
    except ValueError:
        return False


def context(event: Event, more: str = "") -> str:
    from ...service.calling import context_of

    words = context_of(event.env, last_words(event))
    return "\n\n".join(part for part in (words, more) if part)


def waits(event: Event, desk: Desk, draft: Draft, rule: Rule | None = None) -> Reply:
    """The call's gate, opened if it has none; the call is deferred while nobody has decided."""
    from ...service.asking import Wishes, ask
    from ...service.calling import gate_of_call, key_of_call, turn, waiting

    if not event.call or not event.session:
        raise Usage("the hook was given a call without an id, or without a session")
    with turn(desk, event.session):
        gate = gate_of_call(desk, event.call)
        if gate is not None:
            return decided(event, gate)
        other = waiting(desk, event.session)
        if other:
            return deny(ONE_AT_A_TIME.format(gate=other[0].id))
        call = Call(event.tool, event.call, calls.digest_of_call(event.tool, event.given))
        draft = replace(
            draft,
            key=key_of_call(event.call),
            session=event.session,
            on_timeout=draft.on_timeout or silence(desk, draft),
            config=calls.config_of(call, rule),
        )
        ask(desk, draft, Wishes())
    return said("defer")


def silence(desk: Desk, draft: Draft) -> str | None:
    """What a deadline from the settings does where they say `default`: these questions declare none."""
    has_deadline = draft.timeout is not None or desk.settings.seconds("timeout") is not None
    return "fail" if has_deadline and desk.settings.text("onTimeout") == "default" else None


# What was decided


def decided(event: Event, gate: Gate) -> Reply:
    """The outcome of a call that had to wait, as its gate has it now."""
    call = calls.call_of(gate)
    if call is None or call.digest != calls.digest_of_call(event.tool, event.given):
        return deny(
            f"This is not the call that gate {gate.id} is about: it was changed since. Make it again, as a new call."
        )
    if gate.state == "awaiting":
        return said("defer")
    if gate.state in ("stopped", "withdrawn"):
        why = f": {gate.closing.text}" if gate.closing and gate.closing.text else ""
        return deny(f"Gate {gate.id} was {gate.state}{why}. Do not go on with this.")
    from ...service.policing import check_told

    desk = event.desk()
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
        return said("allow", "", told, updatedInput=updated)
    if answer.verdict == "rejected" or answer.values.get("answer") is not True:
        note = f": {neutral(answer.note)}" if answer.note else ""
        return deny(f"A person said no (gate {gate.id}){note}. Do not make this call in another way.", told)
    from ...service.calling import let_through

    if not let_through(desk, gate):
        return deny(TWICE.format(gate=gate.id), told)
    return said("allow", f"approved (gate {gate.id})", told)


def news(event: Event, gate: Gate) -> str:
    """All that the agent is told when it goes on: in full, since a call that was made beside others may lose its result."""
    from ...core.prompt import resume_prompt

    named = event.env.get("GITGATE_PROMPT_FILE", "")
    if named and event.env.get("GITGATE_GATE") == gate.id:
        try:
            text = Path(named).read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError):
            text = ""
        if text.strip():
            return text
    return resume_prompt(gate)


def deny(reason: str, told: str = "") -> Reply:
    return said("deny", reason, told)


def said(decision: str, reason: str = "", told: str = "", **more: Mapping[str, object]) -> Reply:
    """A decision in the program's own form."""
    output: dict[str, object] = {"hookEventName": "PreToolUse", "permissionDecision": decision}
    output |= {"permissionDecisionReason": reason} if reason else {}
    output |= {"additionalContext": told} if told else {}
    return Reply(json.dumps({"hookSpecificOutput": {**output, **more}}))
