"""Asking: a gate with its work, or nothing at all. What it says follows from flags, settings and where it is asked."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gitgate.acts import answering, asking, sessions
from gitgate.acts.asking import AskWishes, ask, title_of, with_nonce
from gitgate.context import open_desk
from gitgate.errors import BadDocument, GateError, LostRace, NotAllowed, Usage
from gitgate.gates.recording import reload
from gitgate.model import gate_id
from gitgate.model.gate import Question, Work
from gitgate.questions.drafts import Draft, question
from gitgate.record.events import dump_event
from gitgate.store.git.refs import OPEN, Refs
from gitgate.store.remote import RefMove
from support.deciding import DB, GO, TEXT, asked, gate_of, say
from support.racing import race
from support.resuming import Clock, Seat
from support.testbed.command import Command
from support.testbed.repositories import Clone, run_git

WAIT = AskWishes(wait=True)


def hitl(seat: Seat) -> dict[str, str]:
    return seat.clone.refs("refs/hitl")


def test_a_gate_waits(alone: Seat) -> None:
    """With its question, its asker and its work; nothing else moved."""
    alone.clone.write("README", "changed\n")
    alone.clone.write("new", "words\n")
    status = alone.clone.git("status", "--porcelain")
    done = asked(
        alone,
        title="T",
        context="C",
        confidence=0.5,
        to=("bob@example.org", "eve@example.org"),
        quorum=2,
        priority="high",
    )
    gate = done.gate
    assert (done.new, done.changed, done.untracked) == (True, 1, 1)
    assert hitl(alone) == {OPEN + gate.id: gate.tip, f"refs/hitl/work/{gate.id}": gate.opened.work.commit}
    assert gate.state == "awaiting"
    opened = gate.opened
    assert (opened.title, opened.context, opened.confidence, opened.to, opened.quorum) == (
        "T",
        "C",
        0.5,
        ("bob@example.org", "eve@example.org"),
        2,
    )
    assert opened.to_holds
    assert (opened.asked.agent, opened.asked.by) == ("coder", "Ada Lovelace <ada@example.org>")
    assert (opened.asked.host, opened.asked.directory) == (socket.gethostname(), str(alone.clone.path))
    assert (opened.work.branch, opened.work.dirty, opened.work.files) == ("main", True, 2)
    assert (opened.delivery, gate.priority, gate.deadline) == ("none", "high", None)
    assert alone.clone.git("status", "--porcelain") == status
    assert alone.now(gate) == gate


def test_a_name_is_no_word(alone: Seat) -> None:
    """Of those that chance gives, one with a digit among its first letters is taken; and where chance gives none, any."""
    opened = asked(alone).gate.opened
    spent: list[str] = []

    def entropy(_size: int) -> str:
        spent.append(f"{len(spent)}")
        return spent[-1]

    chances = [replace(opened, nonce=f"{number}") for number in range(20)]
    wordy = [not any(letter.isdigit() for letter in gate_id(dump_event(chance))[:4]) for chance in chances]
    desk = replace(alone.desk, entropy=entropy)
    begun = next(chance for chance, word in zip(chances, wordy, strict=True) if word)
    assert with_nonce(desk, begun) == chances[wordy.index(False)]
    assert spent == [f"{number}" for number in range(wordy.index(False) + 1)]
    assert with_nonce(desk, chances[wordy.index(False)]) == chances[wordy.index(False)]
    assert with_nonce(replace(desk, entropy=lambda _size: begun.nonce), begun) == begun


@pytest.mark.parametrize(
    ("wishes", "terms", "delivery"),
    [
        (AskWishes(), {}, "none"),
        (AskWishes(), {"session": "session-1"}, "resume"),
        (WAIT, {}, "wait"),
        (WAIT, {"session": "session-1"}, "wait"),
    ],
)
def test_how_the_answer_reaches_the_asker(
    alone: Seat, wishes: AskWishes, terms: dict[str, str], delivery: str
) -> None:
    """A session is resumed, somebody waits, or it is read when wanted."""
    gate = gate_of(alone, wishes=wishes, **terms)
    assert gate.opened.delivery == delivery


@pytest.mark.parametrize("failed", [Usage("there is no such conversation"), PermissionError(13, "not yours")])
def test_what_is_wrong_with_the_conversation_is_not_laid_to_the_work(
    alone: Seat, monkeypatch: pytest.MonkeyPatch, failed: Exception
) -> None:
    """It is looked for while git looks at the work."""

    def fail(*_of: object) -> None:
        raise failed

    monkeypatch.setattr(asking, "session_of_draft", fail)
    with pytest.raises(type(failed)) as told:
        gate_of(alone)
    assert told.value is failed
    assert alone.clone.refs("refs/hitl") == {}


def test_the_record_does_not_hold_the_sessions_id(alone: Seat) -> None:
    """A salted digest of it tells whose it is, to whoever knows."""
    gate = gate_of(alone, session="session-1")
    session = gate.opened.session
    assert session is not None
    assert session.digest == sessions.session_digest(session.salt, "session-1")
    files = alone.clone.git("show", f"{gate.tip}:question.yaml")
    assert "session-1" not in files
    again = gate_of(alone, session="session-1").opened.session
    assert again is not None
    assert again.digest != session.digest


def test_asking_works_without_a_name(alone: Seat, nobody: None) -> None:
    """It is recorded as nobody's; an agent may have no identity."""
    alone.clone.write("README", "changed\n")
    gate = gate_of(alone)
    assert gate.opened.asked.by == ""
    assert gate.opened.work.dirty
    assert alone.clone.git("log", "-1", "--format=%an", gate.tip) == "gitgate"


@pytest.mark.parametrize("name", [b"caf\xe9", "日本 é".encode(), b"with space"])
def test_a_place_with_a_strange_name(person: object, tmp_path: Path, clock: Clock, name: bytes) -> None:
    """Also one that is not UTF-8, and a person whose name is not."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    run_git("init", "-q", str(path), cwd=tmp_path)
    clone = Clone(path)
    config = path / ".git" / "config"
    config.write_bytes(config.read_bytes() + b"[user]\n\tname = Ren\xe9\n\temail = rene@example.org\n")
    clone.git("commit", "-q", "--allow-empty", "-m", "start")
    clone.write("new", "x")
    with Seat(clone, clock) as seat:
        gate = gate_of(seat)
        assert gate.opened.asked.directory.endswith(f"/{name.decode('utf-8', 'replace')}")
        assert gate.opened.asked.by == "Ren\ufffd <rene@example.org>"
        say(seat, gate)
        assert seat.now(gate).state == "answered"


def test_an_agents_name(alone: Seat) -> None:
    """Given, or the place and the session's beginning, or the program that asked."""
    assert gate_of(alone, agent="x").opened.asked.agent == "x"
    assert gate_of(alone, agent=None, session="session-1").opened.asked.agent == "repo/sess"
    found = gate_of(alone, agent=None).opened.asked.agent
    assert found.startswith("agent-")


def test_a_title_is_the_questions_beginning() -> None:
    """Its first line, clipped."""
    assert title_of("\n  Which?\nmore") == "Which?"
    assert title_of("x" * 72) == "x" * 72
    assert title_of("x" * 73) == "x" * 71 + "…"


@pytest.mark.parametrize("how", ["bare", "no work", "unborn", "detached", "latin-1 branch"])
def test_wherever_it_is_asked(alone: Seat, clock: Clock, tmp_path: Path, how: str) -> None:
    """What is not there is not named."""
    head: str | None = alone.clone.git("rev-parse", "HEAD")
    seat, wishes, branch = alone, AskWishes(), None
    if how == "bare":
        run_git("clone", "-q", "--bare", str(alone.clone.path), str(tmp_path / "bare"), cwd=tmp_path)
        seat = Seat(Clone(tmp_path / "bare"), clock)
    elif how == "unborn":
        run_git("init", "-q", str(tmp_path / "unborn"), cwd=tmp_path)
        seat, head, branch = Seat(Clone(tmp_path / "unborn"), clock), None, "main"
    elif how == "detached":
        alone.clone.git("checkout", "-q", "--detach")
    elif how == "no work":
        alone.clone.write("README", "changed\n")
        wishes, branch = AskWishes(work=False), "main"
    else:
        (alone.clone.path / ".git" / "HEAD").write_bytes(b"ref: refs/heads/caf\xe9\n")
        run_git("update-ref", os.fsdecode(b"refs/heads/caf\xe9"), str(head), cwd=alone.clone.path)
        wishes, branch = AskWishes(work=False), "caf\ufffd"
    gate = gate_of(seat, wishes=wishes)
    if how == "unborn":
        assert gate.opened.work.base is None
    else:
        assert gate.opened.work == Work(head, head, head, branch)
    assert seat.now(gate) == gate
    seat.__exit__()


def test_what_stays_out_is_named(alone: Seat) -> None:
    """With the reason."""
    alone.clone.write(".env", "PASSWORD=hunter2hunter2\n")
    gate = gate_of(alone)
    ((path, reason),) = gate.opened.work.left_out
    assert (path, bool(reason)) == (".env", True)
    assert gate_of(alone, wishes=AskWishes(include=(".env",))).opened.work.left_out == ()
    assert gate_of(alone, wishes=AskWishes(untracked=False)).opened.work.dirty is False


# What cannot be asked


@pytest.mark.parametrize(
    ("questions", "terms", "error", "words"),
    [
        ((DB,), {"on_timeout": "fail"}, Usage, "what happens at a deadline, and there is none"),
        ((DB,), {"timeout": 0}, Usage, "in the future"),
        ((DB,), {"timeout": -5}, Usage, "in the future"),
        ((DB,), {"quorum": 0}, Usage, "somebody has to answer"),
        ((DB,), {"quorum": 101}, BadDocument, "quorum"),
        ((TEXT,), {"timeout": 60, "on_timeout": "default"}, Usage, "--on-timeout default needs a default"),
        (
            (replace(GO, default=True),),
            {"timeout": 60, "on_timeout": "default"},
            NotAllowed,
            "nobody would have said yes",
        ),
        ((Question("f", "F", "form", schema={"type": 5}),), {}, GateError, "schema"),
        ((Question("f", "F", "form", schema={"$ref": "http://x"}),), {}, GateError, "schema"),
        ((DB, DB), {}, BadDocument, "is there twice"),
        ((replace(DB, prompt=" "),), {"title": "T"}, BadDocument, "prompt"),
        ((DB,), {"title": "x" * 1001}, BadDocument, "title"),
        ((DB,), {"context": "x" * 300_000}, BadDocument, "context"),
        ((DB,), {"context": "\0"}, BadDocument, "context"),
        ((DB,), {"attachments": {"../x": b""}}, GateError, "without `..`"),
        ((DB,), {"attachments": {"a": b"", "A": b""}}, GateError, "differ on every system"),
        ((DB,), {"attachments": {f"{n}": bytes(5 << 20) for n in range(5)}}, Usage, "bytes together"),
    ],
)
def test_what_cannot_be_asked_writes_nothing(
    alone: Seat, questions: tuple[Question, ...], terms: dict[str, object], error: type[GateError], words: str
) -> None:
    """No ref of any kind."""
    with pytest.raises(error, match=words):
        asked(alone, *questions, **terms)  # type: ignore[arg-type]
    assert hitl(alone) == {}
    assert alone.clone.refs("refs/gitgate") == {}


def test_a_default_for_an_approval_needs_permission(
    alone: Seat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """From the policy, or this machine's own: no environment variable and no file of the work gives it."""
    terms: dict[str, Any] = {"timeout": 60, "on_timeout": "default"}
    monkeypatch.setenv("GITGATE_APPROVAL_DEFAULTS", "true")
    alone.clone.write(".gitgate.yml", "settings: {approvalDefaults: true}\npolicy: {defaults: true}\n")
    with pytest.raises(NotAllowed) as refused:
        gate_of(alone, replace(GO, default=False), **terms)
    assert refused.value.kind == "not_allowed"
    file = tmp_path / "policy.yml"
    file.write_text("policy: {defaults: true}\n")
    alone.clone.git("config", "gitgate.policyFile", str(file))
    assert gate_of(alone, replace(GO, default=False), **terms).opened.on_timeout == "default"


# Settings


def test_settings_give_what_was_not_said(alone: Seat, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """A deadline, what it brings, a priority, what is followed, the pull request."""
    for name, value in (("timeout", "1h"), ("onTimeout", "fail"), ("priority", "low")):
        alone.clone.git("config", f"gitgate.{name}", value)
    monkeypatch.setenv("GITGATE_GATE", "abcdefghjk")
    monkeypatch.setenv("GITHUB_REF", "refs/pull/12/merge")
    gate = gate_of(alone)
    assert (gate.timeout, gate.opened.on_timeout, gate.priority) == (3600, "fail", "low")
    assert gate.deadline is not None
    assert (gate.opened.follows, gate.opened.config) == ("abcdefghjk", {"pull_request": 12})
    config = {"x": 1, "pull_request": 4711}  # that is not the draft's to say
    said = gate_of(alone, timeout=60, on_timeout="stuck", priority="urgent", config=config)
    assert (said.timeout, said.opened.on_timeout, said.priority) == (60, "stuck", "urgent")
    assert said.opened.config == {"x": 1, "pull_request": 12}
    alone.clone.git("config", "gitgate.timeout", "0")
    assert gate_of(alone).deadline is None


# Keys


def test_the_same_key_is_the_same_gate_while_it_is_open(alone: Seat) -> None:
    """Whatever was asked; another key is another gate."""
    first = asked(alone, key="k")
    again = asked(alone, TEXT, key="k")
    assert (again.gate, again.new) == (first.gate, False)
    assert asked(alone, key="other").gate.id != first.gate.id
    answering.comment(alone.desk, first.gate, "hm")
    assert asked(alone, key="k").gate == alone.now(first.gate)


@pytest.mark.parametrize("end", ["answered", "withdrawn", "expired", "gone"])
def test_a_key_is_free_again_when_its_gate_is_over(alone: Seat, clock: Clock, end: str) -> None:
    """Answered, taken back, or past its deadline although nobody had looked."""
    first = gate_of(alone, key="k", timeout=60)
    if end == "answered":
        say(alone, first)
    elif end == "withdrawn":
        answering.withdraw(alone.desk, first, "done")
    elif end == "gone":
        alone.clone.git("update-ref", "-d", OPEN + first.id)
    else:
        clock.pass_by(61)
    second = asked(alone, key="k")
    assert second.new
    assert second.gate.id != first.id
    assert asked(alone, key="k").gate == second.gate


@pytest.mark.parametrize("end", ["answered", "withdrawn", "expired", "archived"])
def test_a_key_holds_for_as_long_as_it_is_to(alone: Seat, clock: Clock, cli: Command, end: str) -> None:
    """However its gate ended, and wherever that is kept: nobody is asked twice within the time that was named."""
    first = gate_of(alone, key="k", key_for=7 * 86_400, timeout=60)
    if end == "withdrawn":
        answering.withdraw(alone.desk, first, "done")
    elif end == "expired":
        clock.pass_by(61)
    else:
        say(alone, first)
    if end == "archived":
        cli.quick("archive", cwd=alone.clone.path, code=0)
        assert alone.desk.refs.get(OPEN + first.id) is None
    clock.pass_by(6 * 86_400)
    for again in (asked(alone, TEXT, key="k"), asked(alone, key="k", key_for=60)):
        assert (again.gate.id, again.new) == (first.id, False)
    clock.pass_by(2 * 86_400)
    later = asked(alone, key="k", key_for=60)
    assert later.new
    assert later.gate.id != first.id


def test_whoever_asks_again_may_say_for_how_long(alone: Seat, clock: Clock) -> None:
    """A gate that was asked without such a word is found all the same, by the time that is named now."""
    first = gate_of(alone, key="k")
    say(alone, first)
    clock.pass_by(3600)
    assert asked(alone, key="k", key_for=7200).gate.id == first.id
    assert asked(alone, key="k", key_for=1800).new


def test_a_time_without_a_key_is_refused(alone: Seat) -> None:
    with pytest.raises(Usage, match="--key-for is about a key"):
        gate_of(alone, key_for=60)


def test_a_key_is_no_name_of_a_ref(alone: Seat) -> None:
    """Any text is a key."""
    for key in ("../../heads/main", "a b", "é", "x" * 500, "-", "@{0}"):
        first = gate_of(alone, key=key)
        assert gate_of(alone, key=key).id == first.id
    assert alone.clone.refs("refs/heads").keys() == {"refs/heads/main"}


SAME_KEY = """
from gitgate.record.events import dump_event
from gitgate.questions.drafts import Draft, question
from gitgate.model import gate_id
from gitgate.acts.asking import ask
asked = ask(desk, Draft((question("Which?"),), agent=f"agent-{who}", key="deploy"))
print(asked.gate.id, asked.new)
"""


@pytest.mark.slow
def test_sixteen_who_ask_with_one_key_get_one_gate(alone: Seat) -> None:
    """One opened it; the others are given it."""
    said = [lines[0].split() for lines in race(alone.clone.path, SAME_KEY, 16)]
    assert len({gate for gate, _ in said}) == 1
    assert [new for _, new in said].count("True") == 1
    assert len(alone.clone.refs("refs/hitl/open")) == 1


def test_a_key_that_is_fought_over_without_end(alone: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends with a word; without a key a lost race is nobody's business but git's."""

    def lose(_self: Refs, moves: list[RefMove]) -> None:
        raise LostRace(f"lost {len(moves)}")

    monkeypatch.setattr(Refs, "update", lose)
    with pytest.raises(LostRace, match="used by several processes at once"):
        gate_of(alone, key="k")
    with pytest.raises(LostRace, match="lost 2"):
        gate_of(alone)


# Publishing


def test_a_gate_is_pushed_with_its_work_only_by_consent(ann: Seat, bare: Clone) -> None:
    """The record alone, unless this clone agreed to publish more."""
    gate = gate_of(ann)
    assert set(bare.refs("refs/hitl")) == {OPEN + gate.id}
    ann.clone.git("config", "gitgate.publishWork", "true")
    done = asked(ann)
    assert (done.published.pushed, done.published.work) == (True, True)
    assert f"refs/hitl/work/{done.gate.id}" in bare.refs("refs/hitl")
    local = asked(ann, wishes=AskWishes(push=False))
    assert not local.published.pushed
    assert OPEN + local.gate.id not in bare.refs("refs/hitl")


def test_a_gate_is_safe_when_the_remote_is_not_there(
    ann: Seat, bare: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said, not failed; where a local copy would be lost, it fails."""
    ann.clone.git("remote", "set-url", "origin", str(bare.path) + "-gone")
    done = asked(ann)
    assert not done.published.pushed
    assert done.published.reason
    assert reload(ann.desk, done.gate.id) == done.gate
    for push, variable in ((True, ""), (None, "true")):
        monkeypatch.setenv("CI", variable)
        with pytest.raises(GateError, match="is safe here, but not pushed"):
            asked(ann, wishes=AskWishes(push=push))


def test_the_question_of_the_readme(alone: Seat) -> None:
    """From the function that the command line calls."""
    draft = Draft((question("Which database?", options=[*DB.options]),))
    with closing(open_desk(alone.clone.path, os.environ)) as desk:
        gate = ask(desk, draft).gate
    assert gate.opened.title == "Which database?"
