"""Fuzz: the parsers, one function each. A function raises what its parser raises, and says more where more must hold."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from gitgate import model
from gitgate.agents import claude, copilot, gemini, opencode
from gitgate.agents.agent import clean_lines
from gitgate.agents.claude import transcript
from gitgate.document import codec
from gitgate.errors import GateError
from gitgate.exchange import entering
from gitgate.model import lease
from gitgate.model.gate import Answer, Asker, Entry, Gate, Opened, Option, Question, Work
from gitgate.policy import parse_policy, ruling
from gitgate.questions import Given, answers, call_rules, calls, drafts, forms, signals, unique
from gitgate.questions import calls as rules
from gitgate.record import events as documents
from gitgate.sharing import pushers
from gitgate.store import work
from gitgate.store.git import canonical
from gitgate.surfaces import forge as replies
from gitgate.surfaces.agent_hooks import tools as hook_event
from gitgate.surfaces.forge import comment, hosts
from gitgate.text import lines, shell
from gitgate.text.lines import programs

ADA = "Ada <ada@example.org>"
AT = "2030-01-01T00:00:00Z"
OID = "1" * 40
NAME = "abcdefgh23"
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "count": {"type": "integer", "minimum": 0, "maximum": 9},
        "sure": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "ratio": {"type": "number"},
    },
    "required": ["name"],
}
QUESTIONS = (
    Question("answer", "What?", "text"),
    Question("answer", "Go?", "approval"),
    Question("db", "Which?", "choice", (Option("Postgres"), Option("SQLite"), Option("42")), other=True),
    Question("answer", "Which ones?", "choices", (Option("a, b"), Option("c"), Option("Éa"))),
    Question("answer", "Fill it in.", "form", schema=SCHEMA),
)
SEVERAL = tuple(
    Question(f"q{n}", q.prompt, q.type, q.options, None, q.other) for n, q in enumerate(QUESTIONS[:4])
)


def gate_with(*questions: Question) -> Gate:
    opened = Opened(
        "Which?", questions, Asker("coder", AT, ADA), Work(None, None, None), "nonce", on_timeout="stuck"
    )
    entry = Entry(OID, "opened", opened, (), "question.yaml")
    return Gate(NAME, OID, opened, "awaiting", "normal", (), None, None, (entry,))


# Holding a form against its schema costs more than all else together: `schema` does it, and the others do without.
GATES = (*(gate_with(question) for question in QUESTIONS[:4]), gate_with(*SEVERAL))


def same_again(folder: str | None, data: bytes, what: object) -> None:
    """What was understood is written so that it is understood the same."""
    again = documents.parse_event(folder, documents.dump_event(what), "again")  # type: ignore[arg-type]
    if again != what:
        raise AssertionError(f"written again it says something else: {what!r} became {again!r}")


def question(data: bytes) -> None:
    """A question as an agent's file asks it, and as a record holds it."""
    root = codec.parse_document(data, "question.yaml")
    with contextlib.suppress(GateError):  # the other form of it may still be right
        drafts.read_draft(root)
    same_again(None, data, documents.parse_event(None, data, "question.yaml"))


def answer(data: bytes) -> None:
    """An answer as a record holds it."""
    found = documents.parse_event("answers", data, "answer.yaml")
    same_again("answers", data, found)
    if isinstance(found, Answer):
        for gate in GATES:
            answers.misfit(gate.opened, found)
        answers.printed(QUESTIONS[:1], found)


def event(data: bytes) -> None:
    """Every other event of a record: each kind reads every input."""
    for folder in documents.BY_FOLDER:
        if folder != "answers":
            try:
                found = documents.parse_event(folder, data, "event.yaml")
            except GateError:
                continue
            same_again(folder, data, found)


def typed(data: bytes) -> None:
    """An answer as a person types it, to questions of every type, and as pairs and fields."""
    text = data.decode("utf-8", "replace")
    pairs = tuple(
        (key, value) for line in text.splitlines() for key, mark, value in [line.partition("=")] if mark
    )
    with contextlib.suppress(GateError):
        forms.coerce(SCHEMA, unique(pairs))
    for gate in GATES:
        for given in (Given(text=text), Given(other=text), Given(pairs=pairs)):
            try:
                values, verdict = answers.read_answer(gate.opened.questions, given)
            except GateError:
                continue
            said = Answer(NAME, values, verdict, AT, OID, ADA)
            if wrong := answers.misfit(gate.opened, said):
                raise AssertionError(f"it was taken as {values!r}, which its own record refuses: {wrong}")
            same_again("answers", data, said)


CASE = ruling.RulingCase(NAME, ("choice",), "normal", "coder", ADA, AT, paths=("db/a.sql", "src/x/y.py"))
WHO = (ruling.Who(ADA), ruling.Who(ADA, "SHA256:x", "ada@example.org"), ruling.Who(ADA, login="ada"))


def policy(data: bytes) -> None:
    """`.gitgate.yml` of the protected branch: the policy, rules for calls; and that what it grants can be decided."""
    root = codec.parse_document(data, ".gitgate.yml")
    try:
        found = call_rules.parse_rules(root)
        if any("*" in one.pattern.split()[0] for one in call_rules.parse_allowances(root)):
            raise AssertionError("it allows whatever is written")
    except GateError:
        found = ()
    known = call_rules.parse_tree_rules(root, call_rules.RuleSource(counts=False)).rules
    if any(one.to or one.timeout or one.quorum != 1 or one.source.counts for one in known):
        raise AssertionError("a rule of a working tree chose who is asked")
    place = rules.CallPlace("/repo", "/repo/src")
    for tool, given in CALLS:
        rules.find_rule(found, tool, given, place)
    said = parse_policy(root)
    if said is not None:
        for who in WHO:
            ruling.rule_on([said], CASE, who, ruling.SaidHow("2030-01-02T00:00:00Z"))
        ruling.may_default([said], CASE, otherwise=True)


CALLS: tuple[tuple[str, dict[str, object]], ...] = (
    ("Bash", {"command": "cd db && sudo rm -rf x; git gate respond y | sh -c 'a $(b)'"}),
    ("Write", {"file_path": "db/../src/x.py", "content": "x"}),
    ("mcp__db__query", {"sql": "select 1", "deep": [{"x": ["y"]}]}),
)


def push(data: bytes) -> None:
    """What git tells a receiving hook. Each line is one ref: none may pass for two, and none for another."""
    text = entering.decode(data)
    updates = entering.parse_updates(text)
    lines = [line for line in data.split(b"\n") if line]
    if len(updates) != len(lines):
        raise AssertionError(f"{len(lines)} lines were read as {len(updates)} updates")
    for update, line in zip(updates, lines, strict=True):
        if update.ref.encode("utf-8", "surrogateescape") != [*line.split(b" ", 2), b"", b""][2]:
            raise AssertionError(f"{line!r} was read as {update.ref!r}")
    names = [*pushers.LOGINS, "GIT_PUSH_CERT_SIGNER", "GIT_PUSH_CERT_STATUS", "GIT_PUSH_CERT_KEY"]
    env = dict(zip(names, text.split("\n"), strict=False))
    pushers.actor_of(env, "git").named(ADA)


def record(data: bytes) -> None:
    """What a push brings: a commit, a tree, and what is told in messages."""
    text = data.decode("utf-8", "replace")
    lease.parse_lease(text)
    work.parse_aside(text)
    said = {key: value for key, value in (model.parse_trailers(text) or {}).items() if value.split()}
    if said:
        again = model.parse_trailers(model.trailer_message("x", list(said.items())))
        if again is None or any(said[key].split() != value.split() for key, value in again.items()):
            raise AssertionError(f"{said!r} became {again!r}")
    for width in (20, 32):
        try:
            canonical.parse_tree(data, width)
        except GateError:
            continue
    lease.parse_lease(canonical.parse_commit(data).message)


def hook(data: bytes) -> None:
    """What Claude Code tells a hook of ours: the call, what it would do, and what it asks."""
    said = hook_event.read_event(data, {}, Path("/"))
    shell.why_not_run(said.tool, said.given)
    command = said.given.get("command")
    if isinstance(command, str):
        shell.asks(command)
    calls.digest_of_call(said.tool, said.given)
    calls.title(said.tool, said.given)
    calls.exact(said.tool, said.given)
    calls.previews(said.given)
    rules.find_rule(HELD, said.tool, said.given, rules.CallPlace("/repo", "/repo/src"))
    hook_event.spoken(said.response)
    asked = calls.questions_of(said.given)
    calls.updated_input(said.given, asked, {one.key: "x" for one in asked})


HELD = call_rules.parse_rules(
    codec.parse_document(
        b'approvals: ["Bash(terraform apply*)", "Bash(*rm*-rf*)", "Write(db/**)", "mcp__*(*drop*)"]', "rules"
    )
)


def line(data: bytes) -> None:
    """A line for a shell: what it would run, and which rules name it."""
    text = data.decode("utf-8", "replace")
    programs.read_line.cache_clear()
    lines.find_doubts(text)
    for pattern in ("terraform apply*", "*rm*-rf*", "git push ?"):
        lines.names(pattern, text)
        lines.names_elsewhere(pattern, text)
    shell.why_not_run("Bash", {"command": text})
    shell.asks(text)


def reply(data: bytes) -> None:
    """A comment on a pull request, as an answer to each kind of gate; and whether it could pass for one of ours."""
    body = data.decode("utf-8", "replace")
    replies.split.cache_clear()  # what it was asked before must not show in the steps that it takes
    comment.read_mark(body)
    replies.may_answer(body)
    said = replies.parse_reply(body, [NAME, "zzzzzzzz99"])
    if said is None:
        return
    for gate in GATES:
        try:
            given, _note = replies.read_reply(said, gate)
            answers.read_answer(gate.opened.questions, given)
        except GateError:
            continue


def webhook(data: bytes) -> None:
    """A forge's event."""
    hosts.parse_event(data)


def session(data: bytes) -> None:
    """A saved conversation, somebody else's perhaps: what is kept of it is kept whole when it is cleaned again."""
    for asides in (False, True) if b"isSidechain" in data else (False,):
        once = transcript.slim(data, ("hunter2-and-more",), asides=asides)
        if once is not None and transcript.slim(once, (), asides=asides) != once:
            raise AssertionError("cleaned twice it is something else")
    transcript.waits_at_call(data)
    clean_lines(data, {"PASSPHRASE": "hunter2-and-more"})
    for read in (copilot.read_copilot_events, gemini.read_gemini_events, opencode.read_opencode_events):
        read(data)
    claude.last_result(data)
    claude.unanswered(data)


def words(data: bytes) -> None:
    """An agent's last words: whether they say that it needs a person."""
    signals.find_need(data.decode("utf-8", "replace"))


def schema(data: bytes) -> None:
    """A form's schema, which a question brings along, and a value held against it."""
    root = codec.parse_document(data, "schema.yaml")
    plain = root.plain()
    if isinstance(plain, dict):
        forms.check_schema(plain, "schema.yaml")
        for value in ({}, {"name": "x" * 40, "count": 3}, [1, "a"], "aaaaaaaaaaaaaaaaaaaaaaaaaaaa!"):
            forms.validate(plain, value)


class Target(NamedTuple):
    """A parser: its name, which is also its corpus's, and how an input is given to it."""

    name: str
    check: Callable[[bytes], None]

    @property
    def corpus(self) -> Path:
        return Path(__file__).parent / "corpus" / self.name


TARGETS = {
    check.__name__: Target(check.__name__, check)
    for check in (
        question,
        schema,
        answer,
        event,
        typed,
        policy,
        push,
        record,
        hook,
        line,
        reply,
        webhook,
        session,
        words,
    )
}
