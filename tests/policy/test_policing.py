"""The policy where it matters: who may answer, what is acted on, and where it is read from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import gitgate
from gitgate.acts import answering, find_gate
from gitgate.acts.answering import Manner, respond
from gitgate.acts.asking import AskWishes
from gitgate.audit.auditing import audit
from gitgate.claims import claim
from gitgate.claims.attending import WaitLimit, wait
from gitgate.errors import BrokenPolicy, NotAllowed
from gitgate.exchange.syncing import sync
from gitgate.gates import agency
from gitgate.gates.recording import record
from gitgate.model.gate import Answer, Gate, Option, Question, Work
from gitgate.policy.permit import check_told
from gitgate.questions import Given
from gitgate.store.git.refs import OPEN
from gitgate.store.records import Signature
from support.deciding import DB, GO, TEXT, approve, asked, gate_of, say
from support.resuming import Clock, Seat, claimant
from support.signing import publish_policy
from support.testbed.command import Command
from support.testbed.repositories import Clone

ADA, BOB, EVE = "Ada Lovelace <ada@example.org>", "Bob <bob@example.org>", "Eve <eve@example.org>"
OWNERS = "policy:\n  groups: {owners: [ada@example.org, bob@example.org]}\n"
ONLY_BOB = "policy:\n  rules:\n    - {name: bobs, who: bob@example.org}\n"


@pytest.fixture
def ruled(bare: Clone, ann: Seat, bob: Seat) -> Callable[[str | bytes], None]:
    """Puts a policy on the server's main branch, and lets both clones fetch it."""

    def rule(text: str | bytes) -> None:
        publish_policy(bare, text)
        for seat in (ann, bob):
            seat.clone.git("fetch", "-q", "origin")

    return rule


def test_a_rule_decides_who_answers(ann: Seat, ruled: Callable[[str], None]) -> None:
    """Nothing is written for whom it does not name, and the rule's name is in the refusal."""
    ruled(ONLY_BOB)
    gate = gate_of(ann)
    with pytest.raises(NotAllowed, match=r"rule 'bobs' .* bob@example.org .*gitgate.yml, line 3"):
        say(ann, gate)
    assert ann.now(gate).tip == gate.tip
    assert say(ann, gate, who=BOB).gate.state == "answered"


def test_stopping_is_the_same(ann: Seat, ruled: Callable[[str], None]) -> None:
    """Who may not answer may not end it either, but for the person whose agent asked."""
    ruled(ONLY_BOB)
    gate = gate_of(ann)
    ann.clone.git("config", "user.email", "eve@example.org")
    with pytest.raises(NotAllowed, match="bobs"):
        answering.stop(ann.desk, gate, "enough")
    ann.clone.git("config", "user.email", "ada@example.org")
    assert answering.stop(ann.desk, gate, "enough").gate.state == "stopped"


def test_an_agents_branch_grants_nothing(ann: Seat, ruled: Callable[[str], None]) -> None:
    """Not the working tree, not the branch that it is on, not a local branch called like the protected one."""
    ruled(ONLY_BOB)
    gate = gate_of(ann)
    ann.clone.commit("let everybody", **{".gitgate.yml": "policy: {who: anyone}\n"})
    ann.clone.git("checkout", "-q", "-b", "agent/work")
    ann.clone.commit("again", **{".gitgate.yml": "policy: {who: ada@example.org}\n"})
    with pytest.raises(NotAllowed, match="bobs"):
        say(ann, gate)


def test_the_branch_that_the_remote_names(ann: Seat, bare: Clone, ruled: Callable[[str], None]) -> None:
    """Its HEAD, as this clone knows it; gitgate.protectedBranch instead of it; one that is not there refuses all."""
    ruled(ONLY_BOB)
    main = bare.git("rev-parse", "main")
    bare.git("update-ref", "refs/heads/stable", f"{main}^")
    ann.clone.git("fetch", "-q", "origin")
    ann.clone.git("remote", "set-head", "origin", "stable")
    assert say(ann, gate_of(ann)).gate.state == "answered"
    ann.clone.git("config", "gitgate.protectedBranch", "main")
    with pytest.raises(NotAllowed, match="bobs"):
        say(ann, gate_of(ann))
    ann.clone.git("config", "gitgate.protectedBranch", "gone")
    with pytest.raises(BrokenPolicy, match="refs/remotes/origin/gone, which is not here"):
        gate_of(ann)


def test_without_a_remote_the_default_branch_counts(alone: Seat) -> None:
    """As it is committed; what only lies in the working tree does not count."""
    alone.clone.write(".gitgate.yml", ONLY_BOB)
    assert say(alone, gate_of(alone)).gate.state == "answered"
    alone.clone.commit("policy")
    with pytest.raises(NotAllowed, match="bobs"):
        say(alone, gate_of(alone))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("policy:\n  qourum: 2\n", r"origin/HEAD:\.gitgate\.yml, line 2: policy\.qourum"),
        ("policy: [\n", r"origin/HEAD:\.gitgate\.yml, line 1"),
        ("policy:\n  who: [nobody-known]\n", "line 2: policy.who"),
        (ONLY_BOB.encode("utf-16"), "UTF-8"),
        (ONLY_BOB.encode("utf-16-le"), r"origin/HEAD:\.gitgate\.yml"),
        (ONLY_BOB.encode("utf-16-be"), r"origin/HEAD:\.gitgate\.yml"),
        (b"# r\xe8gles\nsettings: {}\n", "UTF-8"),
    ],
)
def test_a_broken_policy_refuses_everything(
    ann: Seat, ruled: Callable[[str | bytes], None], text: str | bytes, words: str
) -> None:
    """With file, line and field: asking, answering, ending and acting; reading goes on."""
    before, answered = gate_of(ann, TEXT), ann.answer(ann.ask())
    ruled(text)
    with pytest.raises(BrokenPolicy, match=words):
        say(ann, before)
    with pytest.raises(BrokenPolicy, match=words):
        gate_of(ann)
    with pytest.raises(BrokenPolicy, match=words):
        claim(ann.desk, answered, claimant())
    assert find_gate(ann.desk, before.id).gate.state == "awaiting"


def test_a_policy_by_another_spelling(ann: Seat, ruled: Callable[[str], None]) -> None:
    """An escape in its key's name hides it from nobody."""
    gate = gate_of(ann)
    ruled(ONLY_BOB.replace("policy:", '"p\\u006flicy":'))
    with pytest.raises(NotAllowed, match="bobs"):
        say(ann, gate)


def test_nobody_acts_on_an_answer_that_is_not_accepted(
    ann: Seat, bob: Seat, ruled: Callable[[str], None]
) -> None:
    """One recorded past the command, or before the policy: no runner, no waiter and no script is told."""
    session, plain = ann.answer(ann.ask()), say(ann, gate_of(ann)).gate
    waited = say(ann, gate_of(ann, wishes=AskWishes(wait=True))).gate
    ruled(ONLY_BOB)
    with pytest.raises(NotAllowed, match="bobs"):
        claim(ann.desk, session, claimant())
    for gate in (plain, waited):
        with pytest.raises(NotAllowed, match="bobs"):
            wait(ann.desk, gate, WaitLimit(0))
    assert Command().quick("check", plain.id, cwd=ann.clone.path).code == 4
    with pytest.raises(NotAllowed, match="bobs"):
        gitgate.check(plain.id, directory=ann.clone.path)
    assert ann.now(session).state == "answered"
    ruled(ONLY_BOB.replace("bob@", "ada@"))
    assert claim(ann.desk, session, claimant()).gate.state == "resuming"


def test_paths_that_the_work_touches(ann: Seat, ruled: Callable[[str], None]) -> None:
    """Committed by the agent before it asked, or not yet: either way they are its work."""
    ruled('policy:\n  rules:\n    - {name: data, paths: ["db/**"], who: bob@example.org}\n')
    assert say(ann, gate_of(ann)).gate.state == "answered"
    ann.clone.git("checkout", "-q", "-b", "agent/work")
    ann.clone.commit("schema", **{"db/schema.sql": "create"})
    gate = gate_of(ann)
    assert not gate.opened.work.dirty
    with pytest.raises(NotAllowed, match="'data'"):
        say(ann, gate)
    ann.clone.git("reset", "-q", "--hard", "origin/main")
    ann.clone.write("db/other.sql", "new")
    with pytest.raises(NotAllowed, match="'data'"):
        say(ann, gate_of(ann))


def test_work_that_is_not_here_may_touch_anything(ann: Seat, bob: Seat, ruled: Callable[[str], None]) -> None:
    """In a clone without it every rule about a path holds."""
    ruled('policy:\n  rules:\n    - {name: data, paths: ["db/**"], who: bob@example.org}\n')
    ann.clone.write("README", "changed\n")
    gate = gate_of(ann)
    bob.clone.git("fetch", "-q", "origin", "+refs/hitl/open/*:refs/hitl/open/*")
    with pytest.raises(NotAllowed, match="'data'"):
        say(bob, gate)
    assert say(ann, gate).gate.state == "answered"


def test_a_question_that_names_no_work_may_touch_anything(ann: Seat, ruled: Callable[[str], None]) -> None:
    """Forged so as to fall under no rule about a path, it falls under all of them."""
    ruled('policy:\n  rules:\n    - {name: data, paths: ["db/**"], who: bob@example.org}\n')
    desk = ann.desk
    opened = replace(gate_of(ann).opened, work=Work(None, None, None), nonce="another")
    forged = desk.records.write_opened(opened, {}, Signature(ADA, desk.at))
    ann.clone.git("update-ref", OPEN + forged.id, forged.tip)
    with pytest.raises(NotAllowed, match="'data'"):
        say(ann, forged)


def test_what_was_acted_on_stays_readable(ann: Seat, ruled: Callable[[str], None]) -> None:
    """A policy that came later does not take back what the agent has heard."""
    gate = say(ann, gate_of(ann, wishes=AskWishes(wait=True))).gate
    heard = wait(ann.desk, gate, WaitLimit(0))
    ruled(ONLY_BOB)
    assert heard.state == "resumed"
    assert Command().quick("check", gate.id, cwd=ann.clone.path).out == "Postgres\n"


def test_how_many_agree(ann: Seat, ruled: Callable[[str], None]) -> None:
    """The question takes it over; one person's two addresses count once; one refusal is enough."""
    people = "  people: {bob: {email: [bob@example.org, bob@home.example]}, ada: {email: ada@example.org}}\n"
    ruled(f"policy:\n{people}  rules:\n    - {{name: two, types: [approval], who: [ada, bob], quorum: 2}}\n")
    gate = gate_of(ann, GO)
    assert gate.opened.quorum == 2
    assert approve(ann, gate, BOB).gate.state == "awaiting"
    with pytest.raises(NotAllowed, match=r"'two'.* 2 have to agree, and 1 do"):
        approve(ann, gate, "B. <bob@home.example>")
    assert ann.now(gate).state == "awaiting"
    approve(ann, gate)
    check_told(ann.desk, ann.now(gate))
    other = gate_of(ann, GO, quorum=3)
    assert other.opened.quorum == 3
    assert approve(ann, other, yes=False).gate.state == "answered"


@pytest.mark.parametrize("listed", [True, False])
def test_one_person_by_address_and_by_login(ann: Seat, ruled: Callable[[str], None], listed: bool) -> None:
    """Counted once, whether the policy knows that both are hers or does not; the gate still waits for somebody else."""
    people = "  people: {ada: {email: ada@example.org, login: ada-gh}}\n" if listed else ""
    ruled(f"policy:\n{people}  quorum: 2\n")
    gate = gate_of(ann, GO)
    approve(ann, gate)
    by_login = {"via": "github", "evidence": {"login": "ada-gh"}}
    with pytest.raises(NotAllowed, match="2 have to agree, and 1 do"):
        say(ann, gate, "yes", who="ada-gh <7+ada-gh@users.noreply.github.com>", **by_login)
    assert ann.now(gate).state == "awaiting"
    assert approve(ann, gate, BOB).gate.state == "answered"
    check_told(ann.desk, ann.now(gate))


def test_a_count_that_was_made_up_is_not_acted_on(ann: Seat, ruled: Callable[[str], None]) -> None:
    """The same written past the command: nobody acts on it, and `verify` says why."""
    ruled("policy: {quorum: 2}\n")
    gate = gate_of(ann, GO)
    once = approve(ann, gate).gate
    desk = ann.desk
    by = "ada-gh <7+ada-gh@users.noreply.github.com>"
    said = Answer(gate.id, {"answer": True}, "approved", desk.now, gate.tip, by, evidence={"login": "ada-gh"})
    twice = desk.records.write_event(once, "answered", said, Signature(by, desk.at))
    ann.clone.git("update-ref", OPEN + gate.id, twice.tip)
    with pytest.raises(NotAllowed, match="of 2 answers some are one person's, or could be"):
        check_told(desk, twice)
    assert ["1 agree" in problem.words for problem in audit(ann.desk).problems] == [True]


def test_the_policy_is_told_where_it_cannot_count(ann: Seat, ruled: Callable[[str], None]) -> None:
    """`policy check` says so, and goes on."""
    ruled("policy: {quorum: 2}\n")
    said = Command().quick("policy", "check", cwd=ann.clone.path, code=0)
    assert "note: rule default: anyone may answer" in said.err
    whole = Command().quick("policy", "check", "--json", cwd=ann.clone.path, code=0).json
    assert len(whole["notes"]) == 1


def test_how_many_refuse(ann: Seat, ruled: Callable[[str], None]) -> None:
    """A rule may want more than one refusal."""
    ruled("policy: {quorum: 2, refusals: 2}\n")
    gate = gate_of(ann, GO)
    assert approve(ann, gate, yes=False).gate.state == "awaiting"
    after = approve(ann, gate, BOB, yes=False).gate
    assert (after.state, after.opened.refusals) == ("answered", 2)
    check_told(ann.desk, after)


def test_a_question_that_wants_fewer(ann: Seat, ruled: Callable[[str], None]) -> None:
    """One asked before the policy, or past it, is not answered but asked again."""
    gate = gate_of(ann, GO)
    ruled("policy: {quorum: 2}\n")
    with pytest.raises(NotAllowed, match="asked again"):
        approve(ann, gate)


def test_whose_agent_asked(ann: Seat, bob: Seat, ruled: Callable[[str], None], tmp_path: Path) -> None:
    """By the repository's policy or by the machine's own."""
    gate = gate_of(ann)
    file = tmp_path / "policy.yml"
    file.write_text("policy: {requester_may_answer: false}\n")
    ann.clone.git("config", "gitgate.policyFile", str(file))
    with pytest.raises(NotAllowed, match="'default'"):
        say(ann, gate)
    assert say(ann, gate, who=BOB).gate.state == "answered"
    ruled("policy: {requester_may_answer: false}\n")
    ann.clone.git("config", "--unset", "gitgate.policyFile")
    with pytest.raises(NotAllowed, match="'default'"):
        say(ann, gate_of(ann))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("gitgate.requireSigned", "true"),
        ("gitgate.requireSigned", "yess"),
        ("gitgate.requesterMayAnswer", "false"),
        ("gitgate.requesterMayAnswer", ""),
    ],
)
def test_a_condition_that_is_gone_lets_nobody_answer(
    ann: Seat, bob: Seat, cli: Command, tmp_path: Path, key: str, value: str
) -> None:
    """Whoever set it relies on it: no answer is given or acted on here, until the policy says it; one may ask and read."""
    ann.clone.git("config", "gitgate.agent.scripted.resume", '["true"]')
    gate, later = ann.ask(), gate_of(ann)
    ann.answer(gate)
    ann.clone.git("config", key, value)
    here = ann.clone.path
    refused = cli.quick("respond", later.id, "yes", cwd=here, code=4)
    assert f"{key} is gone, and still set here" in refused.err
    assert f"git config --unset-all {key}" in refused.err
    assert f"{key} is gone" in cli.quick("resume", gate.id, cwd=here, code=4).err
    assert ann.now(gate).state == "answered"
    cli.quick("ask", "And now?", "-q", cwd=here, code=0)
    for words in (["list"], ["show", later.id], ["show", gate.id], ["log", gate.id]):
        cli.quick(*words, cwd=here, code=0)
    found = {one["name"]: one["words"] for one in cli.quick("doctor", "--json", cwd=here).json["findings"]}
    assert "gitgate.policyFile" in found[key.lower()]
    ann.clone.git("config", "--unset-all", key)
    assert say(ann, later, who=BOB).gate.state == "answered"


@pytest.mark.parametrize(("key", "value"), [("requireSigned", "false"), ("requesterMayAnswer", "true")])
def test_a_setting_that_is_gone_and_asked_for_nothing_is_only_named(ann: Seat, key: str, value: str) -> None:
    gate = gate_of(ann)
    ann.clone.git("config", f"gitgate.{key}", value)
    assert say(ann, gate).gate.state == "answered"


def test_a_default_of_a_clone_with_a_condition_that_is_gone_does_not_apply(ann: Seat, clock: Clock) -> None:
    gate = asked(ann, CHOICE, timeout=60, on_timeout="default").gate
    ann.clone.git("config", "gitgate.requireSigned", "true")
    clock.pass_by(61)
    assert find_gate(ann.desk, gate.id).gate.state == "expired"


def test_the_machines_own_policy(ann: Seat, tmp_path: Path) -> None:
    """A file of the machine's; not one of the working tree, which came with a branch."""
    file = tmp_path / "policy.yml"
    file.write_text(ONLY_BOB)
    ann.clone.git("config", "gitgate.policyFile", str(file))
    with pytest.raises(NotAllowed, match=f"'bobs'.*{file}"):
        say(ann, gate_of(ann))
    inside = ann.clone.write("mine.yml", "policy: {who: anyone}\n")
    for wrong in (str(inside), "mine.yml", str(tmp_path / "gone.yml")):
        ann.clone.git("config", "gitgate.policyFile", wrong)
        with pytest.raises(BrokenPolicy, match=r"gitgate\.policyFile"):
            gate_of(ann)


CHOICE = Question("answer", "Which?", "choice", (Option("A"), Option("B")), default="A")
YES = Question("answer", "Go?", "approval", default=True)


@pytest.mark.parametrize(
    ("policy", "question", "state"),
    [
        ("policy: {}\n", CHOICE, "answered"),
        ("policy: {defaults: false}\n", CHOICE, "expired"),
        ("policy: {defaults: true}\n", YES, "answered"),
        ("policy: {require_signed: true}\n", CHOICE, "expired"),
    ],
)
def test_defaults(
    ann: Seat, clock: Clock, ruled: Callable[[str], None], policy: str, question: Question, state: str
) -> None:
    """A rule may forbid them, or allow one to an approval; nobody signs a default."""
    ruled(policy)
    gate = asked(ann, question, timeout=60, on_timeout="default").gate
    clock.pass_by(61)
    assert find_gate(ann.desk, gate.id).gate.state == state


def test_an_approvals_default_needs_a_word_for_it(ann: Seat, ruled: Callable[[str], None]) -> None:
    """Without one it is refused when it is asked."""
    ruled("policy: {}\n")
    with pytest.raises(NotAllowed, match="not given by default"):
        asked(ann, YES, timeout=60, on_timeout="default")


def test_agents_that_may_be_started(ann: Seat, ruled: Callable[[str], None]) -> None:
    """Another one is not, whoever answers."""
    gate = ann.answer(ann.ask())
    assert gate.opened.session is not None
    ruled("policy: {agents: [codex]}\n")
    with pytest.raises(NotAllowed, match=r"'agents'.*is no agent that may be started again; there are codex"):
        claim(ann.desk, gate, claimant())
    ruled(f"policy: {{agents: [codex, {gate.opened.session.agent}]}}\n")
    assert claim(ann.desk, gate, claimant()).gate.state == "resuming"


def test_how_an_agent_is_started(ann: Seat, ruled: Callable[[str], None]) -> None:
    """By the protected branch, where the machine says nothing of it; the agent's own branch has no say."""
    ruled(
        'policy:\n  agents:\n    claude: {}\n    coder: {resume: [run-coder, "two words", "{prompt_file}"]}\n'
    )
    ann.clone.commit("mine", **{".gitgate.yml": "policy: {agents: {coder: {resume: [sh, -c, evil]}}}\n"})
    told = agency.agent_settings(ann.desk, "coder")
    assert told.resume_template == ("run-coder", "two words", "{prompt_file}")
    assert agency.is_agent(ann.desk, "coder")
    assert not agency.is_agent(ann.desk, "other")
    ann.clone.git("config", "gitgate.agent.coder.resume", "my-coder --here")
    assert agency.agent_settings(ann.desk, "coder").resume_template == ("my-coder", "--here")
    for wrong in ("{coder: {resume: run}}", "{coder: {run: [x]}}", "{coder: [x]}", "x"):
        ruled(f"policy: {{agents: {wrong}}}\n")
        with pytest.raises(BrokenPolicy, match=r"policy\.agents"):
            gate_of(ann)


def test_a_script_may_be_kept_out(ann: Seat, ruled: Callable[[str], None]) -> None:
    """`signal` is a script's word; a person's is taken."""
    ruled("policy: {automatic: false}\n")
    gate = gate_of(ann, GO)
    said = Command().quick("signal", gate.id, "--status", "CONTINUE", cwd=ann.clone.path)
    assert said.code == 4
    assert "a script's answer" in said.err
    assert approve(ann, gate).gate.state == "answered"


@pytest.mark.parametrize("via", ["join --yes", "automatic"])
def test_what_nobody_confirmed_is_no_answer(ann: Seat, ruled: Callable[[str], None], via: str) -> None:
    """Refused when it is given, and acted on by nobody where it was recorded all the same; a person may put theirs in its place."""
    gate = gate_of(ann, GO)
    with pytest.raises(NotAllowed, match="nobody has confirmed"):
        respond(ann.desk, gate, Given(approve=True), Manner(via=via))
    forged = answer_of(gate, via)
    recorded = record(ann.desk, gate, lambda _now: ("answered", forged), who=ann.desk.person())
    with pytest.raises(NotAllowed, match="nobody has confirmed"):
        check_told(ann.desk, recorded)
    ruled("policy: {who: anyone}\n")
    with pytest.raises(NotAllowed, match="automatic: true"):
        check_told(ann.desk, recorded)
    done = respond(ann.desk, recorded, Given(approve=True), Manner(amend=True))
    check_told(ann.desk, done.gate)
    other = gate_of(ann, GO)
    ruled("policy: {automatic: true}\n")
    assert respond(ann.desk, other, Given(approve=True), Manner(via=via)).gate.state == "answered"


def test_a_machine_does_not_loosen_what_the_repository_says(
    ann: Seat, bob: Seat, ruled: Callable[[str], None], tmp_path: Path
) -> None:
    """An agent may write its clone's configuration: where there is a policy, that makes no script's word an answer. Where there
    is none, it does in that clone alone.
    """
    file = tmp_path / "policy.yml"
    file.write_text("policy: {automatic: true, who: anyone}\n")
    ann.clone.git("config", "gitgate.policyFile", str(file))
    unruled = gate_of(ann, GO)
    assert respond(ann.desk, unruled, Given(approve=True), Manner(via="join --yes")).gate.state == "answered"
    sync(ann.desk)
    sync(bob.desk)
    with pytest.raises(NotAllowed, match="nobody has confirmed"):
        check_told(bob.desk, bob.now(unruled))
    gate = gate_of(ann, GO)
    ruled("policy: {who: anyone}\n")
    with pytest.raises(NotAllowed, match="automatic: true"):
        respond(ann.desk, gate, Given(approve=True), Manner(via="join --yes"))
    ruled(ONLY_BOB)
    with pytest.raises(NotAllowed, match="'bobs'"):
        approve(ann, gate)
    file.write_text("policy: {automatic: false}\n")
    ruled("policy: {automatic: true}\n")
    with pytest.raises(NotAllowed, match="a script's answer"):
        respond(ann.desk, gate, Given(approve=True), Manner(via="join --yes"))


def answer_of(gate: Gate, via: str) -> Answer:
    return Answer(gate.id, {"answer": True}, "approved", "2030-01-01T00:00:00Z", gate.tip, ADA, via)


def explained(cwd: Path, *args: str, code: int = 0) -> str:
    said = Command().quick("policy", "check", *args, cwd=cwd, code=code)
    return said.out


def test_the_policy_explains_itself(ann: Seat, ruled: Callable[[str], None]) -> None:
    """Its rules; for one gate and one person which of them decides, and why; a broken one names its line."""
    gate: Gate = gate_of(ann, DB)
    assert "there is no policy" in explained(ann.clone.path, gate.id)
    ruled(ONLY_BOB + '    - {name: rest, paths: ["x/**"], quorum: 2, require_signed: true, within: 2d}\n')
    assert "rest: anyone · 2 who agree · signed · within 2d" in explained(ann.clone.path)
    said = explained(ann.clone.path, gate.id, code=4)
    assert "ada@example.org>: may not answer" in said
    assert "rule bobs: it is for bob@example.org to answer" in said
    assert "line 3" in said
    assert "may answer" in explained(ann.clone.path, gate.id, "--who", "bob@example.org")
    whole = (
        Command().quick("policy", "check", gate.id, "--who", BOB, "--json", cwd=ann.clone.path, code=0).json
    )
    assert (whole["schema"], whole["allowed"], whole["rule"]) == ("gitgate.ruling/v1", True, "bobs")
    ruled("policy: {x: 1}\n")
    assert "policy.x" in Command().quick("policy", "check", cwd=ann.clone.path, code=4).err


def test_mine_are_those_that_i_may_answer(ann: Seat, ruled: Callable[[str], None]) -> None:
    """As the policy says it, also where I would have to sign."""
    ruled(
        "policy:\n  rules:\n    - {name: bobs, types: [text], who: bob@example.org}\n"
        "    - {name: signed, types: [choice], who: ada@example.org, require_signed: true}\n"
    )
    gates = [gate_of(ann, question) for question in (TEXT, DB, GO)]
    listed = Command().quick("list", "--mine", "--json", cwd=ann.clone.path, code=0).json["gates"]
    assert {gate["id"] for gate in listed} == {gate.id for gate in gates[1:]}


def test_who_says_so_is_asked_once_more_when_it_counts(ann: Seat, ruled: Callable[[str], None]) -> None:
    """A surface's word for a login is taken for an answer; without it the login is nobody's."""
    ruled("policy: {who: ['@bob-gh']}\n")
    gate = gate_of(ann)
    with pytest.raises(NotAllowed):
        say(ann, gate, who=BOB)
    done = say(ann, gate, who=BOB, evidence={"login": "bob-gh"}, via="github")
    assert done.gate.state == "answered"
    check_told(ann.desk, done.gate)
    assert Manner().who is None


def test_without_a_policy_whom_it_is_for_holds_others_back(ann: Seat) -> None:
    """`policy check` says what `respond` does, and whom the question is for."""
    gate = gate_of(ann, GO, to=("bob@example.org",))
    said = explained(ann.clone.path, gate.id, code=4)
    assert "ada@example.org>: may not answer" in said
    assert "there is no policy: it is for bob@example.org to answer" in said
    with pytest.raises(NotAllowed):
        approve(ann, gate)
    assert approve(ann, gate, BOB).gate.state == "answered"
