"""Who may say what to a shared repository: real pushes that run its real hook, for people whom a server vouches for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gitgate.acts import answering
from gitgate.acts.asking import AskWishes
from gitgate.claims import claim
from gitgate.errors import PushRefused
from gitgate.gates.recording import act
from gitgate.model.gate import Answer, Gate, Option, Question, Remark
from gitgate.sharing.pushers import Actor, actor_of
from gitgate.store.records import Signature
from gitgate.text import format_time
from support.deciding import DB, GO, TEXT, approve, gate_of, say
from support.resuming import Clock, Seat, claimant
from support.signing import Key, make_key, publish_policy
from support.testbed.command import Command
from support.testbed.repositories import Clone, GitError, run_git

pytestmark = pytest.mark.slow  # each pushes several times

OPEN = "refs/hitl/open/"
PEOPLE = """policy:
  people:
    ada: {email: ada@example.org, login: ada}
    bob: {email: bob@example.org, login: bob}
    ci: {login: ci-bot}
"""
ADA = "Ada Lovelace <ada@example.org>"
LOCAL = AskWishes(push=False)


@pytest.fixture
def server(bare: Clone, cli: Command) -> Clone:
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    return bare


@pytest.fixture
def ann(server: Clone, clone_of: Callable[..., Clone], clock: Clock) -> Iterator[Seat]:
    with Seat(clone_of(server, "ann"), clock) as seat:
        yield seat


@pytest.fixture
def key(tmp_path: Path) -> Key:
    return make_key(tmp_path / "keys", "ada", "ada@example.org")


@contextmanager
def logged_in(login: str) -> Iterator[None]:
    """What a forced command sets: everything pushed meanwhile is pushed by this login."""
    before = os.environ.get("GITGATE_ACTOR")
    os.environ["GITGATE_ACTOR"] = login
    try:
        yield
    finally:
        os.environ.pop("GITGATE_ACTOR")
        if before is not None:
            os.environ["GITGATE_ACTOR"] = before


def pushed(seat: Seat, gate: Gate, login: str) -> str:
    """What the server says to somebody who pushes the gate as it is in this clone; nothing when it takes it."""
    with logged_in(login):
        try:
            run_git("push", "-q", "origin", f"{gate.tip}:{OPEN}{gate.id}", cwd=seat.clone.path)
        except GitError as refused:
            return " ".join(line.removeprefix("remote: ").strip() for line in str(refused).splitlines())
    return ""


def test_an_answer_is_pushed_by_whose_it_is(ann: Seat, server: Clone) -> None:
    """In somebody else's name it is refused, and so is one by a login that the policy does not know."""
    gate = gate_of(ann)
    publish_policy(server, PEOPLE + "  who: [ada, bob]\n")
    answered = say(ann, gate, push=False).gate
    for login, words in (("bob", "in the name of Ada Lovelace <ada@example.org>, and bob (GITGATE_ACTOR) pushes it"),
                         ("ada@evil", "ada@evil (GITGATE_ACTOR) pushes it")):  # fmt: skip
        assert words in pushed(ann, answered, login)
    assert server.refs()[OPEN + gate.id] == gate.tip
    assert pushed(ann, answered, "ada") == ""
    assert server.refs()[OPEN + gate.id] == answered.tip


@pytest.mark.parametrize(("written", "words"), [(0, ""), (7200, "its time is over")])
def test_a_reply_that_a_job_heard_late_is_pushed(
    ann: Seat, server: Clone, clock: Clock, written: int, words: str
) -> None:
    """By the time at which it was written on the forge."""
    gate = gate_of(ann)
    at = format_time(clock.at + written)
    clock.pass_by(7200)
    answered = say(ann, gate, push=False, via="github", who=ADA, evidence={"login": "ada", "at": at}).gate
    publish_policy(server, PEOPLE + "  within: 1h\n")
    said = pushed(ann, answered, "ada")
    assert words in said
    assert bool(said) is bool(words)


def test_who_may_not_answer_is_told_the_rule(ann: Seat, server: Clone) -> None:
    """The clone had not heard of the policy; the server has it."""
    gate = gate_of(ann)
    publish_policy(server, PEOPLE + "  rules:\n    - {name: bobs, who: bob}\n")
    with logged_in("ada"), pytest.raises(PushRefused, match="the policy's rule 'bobs' does not allow it"):
        say(ann, gate, push=True)


@pytest.mark.parametrize(
    ("hidden", "words"),
    [
        ((PEOPLE + "  who: [bob]\n").encode("utf-16"), "the policy is broken"),
        ((PEOPLE + "  who: [bob]\n").replace("policy:", '"pol\\u0069cy":'), "is for bob to answer"),
    ],
)
def test_a_policy_that_is_not_plain_to_see(ann: Seat, server: Clone, hidden: str | bytes, words: str) -> None:
    """In another encoding, or spelt with an escape: it is read, or nothing is allowed."""
    gate = gate_of(ann)
    publish_policy(server, hidden)
    with logged_in("ada"), pytest.raises(PushRefused) as refused:
        say(ann, gate, push=True)
    assert words in str(refused.value)


def test_a_signed_answer_travels_with_anybody(ann: Seat, server: Clone, key: Key) -> None:
    """Whoever carries it; an unsigned one where a signature is asked for travels with nobody."""
    gates = [gate_of(ann), gate_of(ann)]
    publish_policy(server, PEOPLE + "  who: [ada]\n  require_signed: true\n", signers=key.line)
    unsigned = say(ann, gates[0], push=False).gate
    assert "has to be signed" in pushed(ann, unsigned, "ada")
    key.used_by(ann.clone)
    assert pushed(ann, say(ann, gates[1], push=False, sign=True).gate, "bob") == ""


def test_a_signature_that_does_not_hold(ann: Seat, server: Clone, key: Key, tmp_path: Path) -> None:
    """By a key that nobody vouches for, or moved onto other words: refused, whoever pushes."""
    gate = gate_of(ann)
    publish_policy(server, PEOPLE + "  require_signed: true\n", signers=key.line)
    make_key(tmp_path / "keys", "eve", "ada@example.org").used_by(ann.clone)
    assert "has to be signed" in pushed(ann, say(ann, gate, push=False, sign=True).gate, "ada")
    ann.clone.git("update-ref", OPEN + gate.id, gate.tip)
    key.used_by(ann.clone)
    good = say(ann, gate, push=False, sign=True).gate
    raw = ann.clone.git("cat-file", "commit", good.tip)
    forged = ann.clone.git(
        "hash-object",
        "-t",
        "commit",
        "-w",
        "--stdin",
        input=raw.replace(" +0000\n", " +0100\n", 1) + "\n",
    )
    assert "its signature is bad" in pushed(ann, replace(good, tip=forged), "ada")


def test_no_policy_no_names(ann: Seat, server: Clone) -> None:
    """As it was: whoever can push may answer; and with a policy to which names do not matter."""
    gate = gate_of(ann)
    publish_policy(server, "policy: {agents: [claude]}\n")
    assert pushed(ann, say(ann, gate, push=False).gate, "anybody") == ""


def test_the_policy_in_the_push_itself_does_not_count(ann: Seat, server: Clone) -> None:
    """That of the repository does, as it was before; one that is broken lets no gate in, and branches still."""
    gate = gate_of(ann)
    publish_policy(server, PEOPLE + "  who: [bob]\n")
    answered = say(ann, gate, push=False).gate
    ann.clone.git("pull", "-q", "--rebase", "origin", "main")
    ann.clone.commit("policy", **{".gitgate.yml": "policy: {who: anyone}\n"})
    before = server.refs()
    with logged_in("ada"), pytest.raises(GitError, match="pre-receive hook declined"):
        ann.clone.git("push", "origin", "main", f"{answered.tip}:{OPEN}{gate.id}")
    assert server.refs() == before
    assert "is for bob to answer" in pushed(ann, answered, "ada")
    ann.clone.commit("broken", **{".gitgate.yml": "policy: {whom: anyone}\n"})
    ann.clone.git("push", "-q", "origin", "main")
    assert "HEAD:.gitgate.yml, line 1: policy.whom" in pushed(ann, answered, "ada")
    ann.clone.commit("mended", **{".gitgate.yml": "policy: {who: anyone}\n"})
    ann.clone.git("push", "-q", "origin", "main")
    assert pushed(ann, answered, "ada") == ""


def test_the_branch_may_be_named(ann: Seat, server: Clone) -> None:
    """gitgate.protectedBranch of the server instead of its HEAD."""
    gate = gate_of(ann)
    server.git("branch", "rules", "main")
    publish_policy(server, PEOPLE + "  who: [bob]\n", branch="rules")
    server.git("config", "gitgate.protectedBranch", "rules")
    assert "is for bob to answer" in pushed(ann, say(ann, gate, push=False).gate, "ada")


def test_a_head_that_nobody_pushed_hides_no_policy(ann: Seat, server: Clone) -> None:
    """It stands on the branch that they did push; where there is no branch at all, there is none."""
    gate = gate_of(ann)
    publish_policy(server, PEOPLE + "  who: [bob]\n")
    answered = say(ann, gate, push=False).gate
    server.git("symbolic-ref", "HEAD", "refs/heads/elsewhere")
    assert "is for bob to answer" in pushed(ann, answered, "ada")
    server.git("update-ref", "-d", "refs/heads/main")
    assert list(server.refs("refs/heads")) == []
    assert pushed(ann, answered, "ada") == ""


def test_whose_agent_asked_is_no_pretence(ann: Seat, server: Clone) -> None:
    """Where that person may not answer, a question is in the name of whoever pushes it."""
    publish_policy(server, PEOPLE + "  requester_may_answer: false\n")
    gate = gate_of(ann, wishes=LOCAL)
    assert "in the name of Ada" in pushed(ann, gate, "bob")
    assert pushed(ann, gate, "ada") == ""
    answered = say(ann, gate, push=False).gate
    assert "whose agent asked may not answer" in pushed(ann, answered, "ada")


def test_a_question_that_wants_too_few(ann: Seat, server: Clone) -> None:
    """Forged past the command, or asked without knowing the policy: it has to be asked again."""
    gate = gate_of(ann, GO, wishes=LOCAL)
    publish_policy(server, PEOPLE + "  quorum: 2\n")
    assert "2 have to agree, and the question wants 1" in pushed(ann, gate, "ada")


def test_one_person_is_one_vote(ann: Seat, server: Clone) -> None:
    """A second vote in another's name is refused; the other's own is taken."""
    publish_policy(server, PEOPLE + "  who: [ada, bob]\n  quorum: 2\n")
    ann.clone.git("fetch", "-q", "origin")
    with logged_in("ada"):
        gate = gate_of(ann, GO)
        once = approve(ann, gate).gate
        assert server.refs()[OPEN + gate.id] == once.tip
    desk = ann.desk
    second = Answer(gate.id, {"answer": True}, "approved", desk.now, gate.tip, "Bob <bob@example.org>")
    both = desk.records.write_event(once, "answered", second, Signature("Bob <bob@example.org>", desk.at))
    assert both.state == "answered"
    assert "in the name of Bob" in pushed(ann, both, "ada")
    assert pushed(ann, both, "bob") == ""


def test_runners_and_askers(ann: Seat, server: Clone) -> None:
    """Only who is named acts on answers, and asks."""
    gate = ann.answer(ann.ask())
    publish_policy(server, PEOPLE + "  runners: [ci]\n  askers: [ada]\n")
    with (
        logged_in("ada"),
        pytest.raises(PushRefused, match=r"ada .GITGATE_ACTOR. is not a runner, by the policy"),
    ):
        claim(ann.desk, gate, claimant())
    with logged_in("ci-bot"):
        assert claim(ann.desk, gate, claimant()).gate.state == "resuming"
    other = gate_of(ann, wishes=LOCAL)
    assert "is not one who may ask" in pushed(ann, other, "bob")
    assert pushed(ann, other, "ada") == ""


def test_ending_and_changing(ann: Seat, server: Clone) -> None:
    """For whose agent asked, and for who may answer; remarks are in the name of whoever makes them."""
    gates = [gate_of(ann) for _ in range(4)]
    publish_policy(server, PEOPLE + "  who: [ada]\n")
    ended = answering.stop(ann.desk, gates[0], "enough", push=False).gate
    assert "in the name of Ada" in pushed(ann, ended, "bob")
    assert pushed(ann, ended, "ada") == ""
    moved = answering.edit(ann.desk, gates[1], timeout="1h", push=False).gate
    assert "in the name of Ada" in pushed(ann, moved, "bob")
    assert pushed(ann, moved, "ada") == ""
    said = answering.comment(ann.desk, gates[2], "hm", push=False).gate
    assert "in the name of Ada" in pushed(ann, said, "bob")
    desk = ann.desk
    own = desk.records.write_event(
        gates[3], "withdrawn", Remark(desk.now, "claude/1234", "not needed"), Signature("x <x@x>", desk.at)
    )
    assert pushed(ann, own, "ada") == ""


QUICK = Question("answer", "Which?", "choice", (Option("A"), Option("B")), default="A")


def test_silence_is_not_made_up(ann: Seat, server: Clone, clock: Clock) -> None:
    """A clock set forward brings no deadline about: the server's has to have passed it too."""
    clock.at = 4_000_000_000.0
    made = [gate_of(ann, QUICK, timeout=60, on_timeout="default")]
    made += [gate_of(ann, TEXT, timeout=60, on_timeout=how) for how in ("stuck", "remind")]
    clock.pass_by(100)
    for gate in made:
        assert "and here it is 20" in pushed(ann, act(ann.desk, gate), "ada")
    clock.at = 1_700_000_000.0
    gate = gate_of(ann, QUICK, timeout=60, on_timeout="default")
    clock.pass_by(100)
    publish_policy(server, "policy: {defaults: false}\n")
    late = act(ann.desk, gate)
    assert late.defaulted
    assert "its declared default does not apply" in pushed(ann, late, "ada")


def test_attachments_are_files_that_the_question_names(ann: Seat, server: Clone) -> None:
    """No link, nothing beside them, nothing out of the folder."""
    whole = gate_of(ann, TEXT, attachments={"logs/a.txt": b"x"})
    assert server.refs()[OPEN + whole.id] == whole.tip
    gate = gate_of(ann, TEXT, wishes=LOCAL, attachments={"a.txt": b"x"})
    tree = ann.clone.git("ls-tree", gate.tip)
    blob = ann.clone.git("hash-object", "-w", "--stdin", input="../../etc/passwd")
    for listing, words in (
        (f"120000 blob {blob}\ta.txt\n", "holds no file attachments/a.txt"),
        (f"100644 blob {blob}\ta.txt\n120000 blob {blob}\tb\n", "attachments/b (no regular file)"),
        (
            f"100644 blob {blob}\ta.txt\n100644 blob {blob}\tb\n",
            "attachments/b, which the question does not name",
        ),
    ):
        inner = ann.clone.git("mktree", input=listing)
        files = "\n".join(line for line in tree.splitlines() if "attachments" not in line)
        top = ann.clone.git("mktree", input=f"{files}\n040000 tree {inner}\tattachments\n")
        commit = ann.clone.git("commit-tree", top, "-m", "Asked")
        assert words in pushed(ann, replace(gate, tip=commit), "ada")


def test_one_bad_answer_stops_everything(ann: Seat, server: Clone) -> None:
    """Beside a branch and a good one; each ref that is wrong is named with its reason."""
    gates = [gate_of(ann, DB) for _ in range(2)]
    publish_policy(server, PEOPLE + "  rules:\n    - {name: texts, types: [text], who: ada}\n  who: bob\n")
    good, bad = (say(ann, gate, push=False).gate for gate in gates)
    desk = ann.desk
    mine = Answer(
        good.id, {"answer": "Postgres"}, "answered", desk.now, gates[0].tip, "Bob <bob@example.org>"
    )
    good = desk.records.write_event(gates[0], "answered", mine, Signature("Bob <bob@example.org>", desk.at))
    before = server.refs()
    with logged_in("bob"), pytest.raises(GitError) as said:
        ann.clone.git(
            "push", "origin", "main:other", f"{good.tip}:{OPEN}{good.id}", f"{bad.tip}:{OPEN}{bad.id}"
        )
    assert str(said.value).count("remote: gate: ") == 1
    assert f"{OPEN}{bad.id}: answered ({bad.tip[:10]})" in str(said.value)
    assert server.refs() == before


@pytest.mark.parametrize(
    ("env", "login", "how"),
    [
        ({}, "account", "account"),
        ({"USER": "root", "LOGNAME": "root"}, "account", "account"),
        ({"GITGATE_ACTOR": " ada "}, "ada", "GITGATE_ACTOR"),
        ({"GITGATE_ACTOR": "", "GL_USER": "bob"}, "bob", "GL_USER"),
        ({"REMOTE_USER": "eve", "GL_USER": "bob"}, "bob", "GL_USER"),
        ({"REMOTE_USER": "eve"}, "eve", "REMOTE_USER"),
        ({"GL_USERNAME": "eve"}, "eve", "GL_USERNAME"),
    ],
)
def test_who_pushes(env: dict[str, str], login: str, how: str) -> None:
    """The first word of a server counts; $USER, which anybody may set, never."""
    assert actor_of(env, "account") == Actor(login, how=how)


CERTIFICATE = {
    "GIT_PUSH_CERT_STATUS": "G", "GIT_PUSH_CERT_NONCE_STATUS": "OK",
    "GIT_PUSH_CERT_SIGNER": "ada@example.org", "GIT_PUSH_CERT_KEY": "SHA256:x",
}  # fmt: skip


def test_a_push_certificate() -> None:
    """Good, fresh and by somebody: else it is none. An unknown key reads as good by nobody."""
    assert actor_of(CERTIFICATE, "x") == Actor(
        key="SHA256:x", signer="ada@example.org", how="push certificate"
    )
    for name, wrong in (
        ("GIT_PUSH_CERT_STATUS", "U"), ("GIT_PUSH_CERT_NONCE_STATUS", "BAD"),
        ("GIT_PUSH_CERT_SIGNER", ""), ("GIT_PUSH_CERT_KEY", ""),
    ):  # fmt: skip
        assert actor_of({**CERTIFICATE, name: wrong}, "x") == Actor("x", how="account")
