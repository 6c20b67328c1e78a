"""Whom a question is for, where no policy says who may answer: others are held back wherever an answer counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gitgate
from gitgate.acts import alternatives, answering, find_gate
from gitgate.audit.auditing import audit
from gitgate.claims import claim
from gitgate.errors import NotAllowed, Usage
from gitgate.gates.recording import reload
from gitgate.model.gate import Answer, Edit, Gate, Question, Work
from gitgate.policy.addressees import known_person
from gitgate.policy.permit import check_told
from gitgate.store.git.refs import OPEN
from gitgate.store.records import Signature
from gitgate.store.remote import RefMove
from support.deciding import DB, GO, approve, gate_of, say
from support.resuming import Clock, Seat, claimant
from support.signing import make_key, publish_policy
from support.testbed.command import Command
from support.testbed.repositories import Clone, GitError

ADA, BOB = "Ada Lovelace <ada@example.org>", "Bob <bob@example.org>"
EVE, MAY = "Eve <eve@example.org>", "May <may@example.org>"
TWO = ("bob@example.org", "may@example.org")


def by_login(login: str) -> dict[str, Any]:
    """As a forge's job, or the team's pages, record an answer."""
    return {
        "who": f"{login} <7+{login}@users.noreply.example.org>",
        "evidence": {"login": login},
        "via": "github",
    }


def written(seat: Seat, gate: Gate, by: str, value: object = "Postgres", **evidence: str) -> Gate:
    """An answer in the record that no act of ours was asked for, as an older git gate or plain git writes it."""
    desk, gate = seat.desk, seat.now(gate)
    verdict = "approved" if value is True else "answered"
    said = Answer(gate.id, {"answer": value}, verdict, desk.now, gate.tip, by, evidence=evidence)  # type: ignore[dict-item]
    after = desk.records.write_event(gate, "answered", said, Signature(by, desk.at))
    desk.refs.update([RefMove(OPEN + gate.id, after.tip, gate.tip)])
    return seat.now(gate)


def asked_before(seat: Seat, *questions: Question, **terms: Any) -> Gate:
    """A question as a git gate wrote it that held nobody back."""
    gate = gate_of(seat, *questions, **{**terms, "to": ()})
    desk = seat.desk
    opened = replace(gate.opened, to=terms["to"], nonce="0" * 24, work=Work(None, None, None))
    older = desk.records.write_opened(opened, {}, Signature(ADA, desk.at))
    desk.refs.update([RefMove(OPEN + older.id, older.tip, None)])
    return seat.now(older)


def test_others_are_refused(alone: Seat, cli: Command) -> None:
    """With exit 4, nothing is written, and the words say what to do; whom it is for may answer, under any spelling."""
    gate = gate_of(alone, to=("Bob@Example.org",))
    said = cli.quick("respond", gate.id, "Postgres", cwd=alone.clone.path)
    assert said.code == 4
    assert "it is for Bob@Example.org to answer; Ada Lovelace <ada@example.org> (unverified)" in said.err
    assert f"git gate edit {gate.id[:6]} --to" in said.err
    assert "policy" not in said.err
    assert alone.now(gate).tip == gate.tip
    with pytest.raises(NotAllowed):
        say(alone, gate, who="bob@example.org <eve@example.org>")
    with pytest.raises(NotAllowed):
        say(alone, gate, who="bob")
    assert say(alone, gate, who="Robert <BOB@example.org>").gate.state == "answered"


@pytest.mark.parametrize(
    "verb", [["signal", "{id}", "--status", "CONTINUE"], ["stop", "{id}", "--reason", "no"]]
)
def test_every_verb_that_decides(alone: Seat, cli: Command, verb: list[str]) -> None:
    """Somebody else's agent asked; who is at this clone is not among those whom it is for."""
    gate = gate_of(alone, GO, to=TWO)
    alone.clone.git("config", "user.email", "eve@example.org")
    words = [word.replace("{id}", gate.id) for word in verb]
    assert cli.quick(*words, cwd=alone.clone.path).code == 4
    assert alone.now(gate).tip == gate.tip


def test_who_is_not_asked_does_not_name_themselves(alone: Seat) -> None:
    """`edit` is for whoever asked, and for whom it is for; comments are everybody's."""
    gate = gate_of(alone, to=TWO)
    alone.clone.git("config", "user.email", "eve@example.org")
    with pytest.raises(NotAllowed, match=r"it is for bob@example\.org, may@example\.org"):
        answering.edit(alone.desk, gate, to=("eve@example.org",))
    answering.comment(alone.desk, gate, "I know this one")
    alone.clone.git("config", "user.email", "may@example.org")
    answering.edit(alone.desk, alone.now(gate), to=("eve@example.org",))
    assert say(alone, gate, who=EVE).gate.state == "answered"


def test_two_of_those_have_to_agree(alone: Seat) -> None:
    """Two others do not, nor one of them beside another, nor one of them twice."""
    gate = gate_of(alone, GO, to=TWO, quorum=2)
    for stranger in (ADA, EVE):
        with pytest.raises(NotAllowed):
            approve(alone, gate, stranger)
    assert approve(alone, gate, BOB).gate.state == "awaiting"
    assert approve(alone, gate, BOB).gate.state == "awaiting"
    with pytest.raises(NotAllowed):
        approve(alone, gate, EVE)
    done = approve(alone, gate, MAY).gate
    assert done.state == "answered"
    check_told(alone.desk, done)


def test_an_address_and_a_login_may_be_one_persons(alone: Seat) -> None:
    """Nothing tells them apart, so that they are one; two addresses are two people."""
    people = ("ada@example.org", "bob@example.org", "@ada", "@bob")
    gate = gate_of(alone, DB, to=people, quorum=2)
    say(alone, gate, who=ADA)
    with pytest.raises(NotAllowed, match="2 have to agree, and 1 do"):
        say(alone, gate, **by_login("ada"))
    assert say(alone, gate, who=BOB).gate.state == "answered"


@pytest.mark.parametrize("quorum", [1, 2])
def test_what_others_wrote_is_not_acted_on(alone: Seat, monkeypatch: pytest.MonkeyPatch, quorum: int) -> None:
    """By an older git gate, or by plain git: refused at the claim and to whoever waits, and `verify` names it."""
    gate = gate_of(alone, GO, to=TWO, quorum=quorum, session="session-1")
    told = [written(alone, gate, stranger, True) for stranger in (ADA, EVE)[:quorum]][-1]
    assert told.state == "answered"
    with pytest.raises(NotAllowed, match=r"it is for bob@example\.org, may@example\.org to answer"):
        claim(alone.desk, told, claimant())
    monkeypatch.chdir(alone.clone.path)
    with pytest.raises(NotAllowed):
        gitgate.check(gate.id)
    assert alone.now(gate).claim is None
    wrong = audit(alone.desk).problems
    assert {problem.gate for problem in wrong} == {gate.id}
    assert all("it is for bob@example.org, may@example.org to answer" in problem.words for problem in wrong)


def test_one_of_those_beside_a_stranger_is_not_two(alone: Seat) -> None:
    """Whichever of them came first."""
    gate = gate_of(alone, GO, to=TWO, quorum=2, session="session-1")
    written(alone, gate, EVE, True)
    told = written(alone, gate, BOB, True)
    with pytest.raises(NotAllowed):
        claim(alone.desk, told, claimant())
    assert [problem.gate for problem in audit(alone.desk).problems] != []


@pytest.mark.parametrize("by", [EVE, "coder"])
def test_an_edit_of_others_changes_nobody(alone: Seat, by: str) -> None:
    """An older git gate, or plain git, may write that it is for others: it stays for those whom it was for."""
    gate = gate_of(alone, to=TWO, session="session-1")
    edited(alone, gate, Edit(alone.desk.now, by, to=("eve@example.org",), priority="high"))
    now = alone.now(gate)
    assert (now.to, now.holds_to, now.priority) == (TWO, True, "high")
    with pytest.raises(NotAllowed):
        claim(alone.desk, written(alone, gate, EVE), claimant())


@pytest.mark.parametrize("by", [ADA, BOB])
def test_what_those_name_holds(alone: Seat, by: str) -> None:
    """Whoever asked, and whom it is for, may name somebody else; an older git gate's names hold as well."""
    gate = gate_of(alone, to=TWO)
    edited(alone, gate, Edit(alone.desk.now, by, to=("carl",)))
    now = alone.now(gate)
    assert (now.to, now.holds_to) == (("carl",), True)
    for somebody in (ADA, BOB, "carl <carl@example.org>"):
        with pytest.raises(NotAllowed):
            say(alone, gate, who=somebody)


BARE = [
    "bob",
    "dba",
    "Bob <bob>",
    "Bob <bob@example.org>",
    "@",
    "@team/all",
    "a@b, c@d",
    "anyone",
    "bob@",
    "@bob@example.org",
]


@pytest.mark.parametrize("name", BARE)
def test_a_name_that_would_hold_nobody_back_is_refused(alone: Seat, cli: Command, name: str) -> None:
    """Exit 2, by `ask` and by `edit`, and nothing is written; the way out is said."""
    place = alone.clone.path
    refused = [
        cli.quick("ask", "Which?", "--agent", "coder", "--to", "ada@example.org", "--to", name, cwd=place)
    ]
    gate = gate_of(alone)
    if name != "anyone":
        refused.append(cli.quick("edit", gate.id, "--to", name, cwd=place))
    for said in refused:
        assert said.code == 2
        assert "list them under people in the policy" in said.err or "--to needs somebody" in said.err
    assert list(alone.clone.refs(OPEN)) == [OPEN + gate.id]
    assert alone.now(gate).tip == gate.tip


def test_more_than_there_are_is_refused(alone: Seat) -> None:
    """Two of one person, or of an address and a login that may be one person's, could never agree."""
    for to in (("ada@example.org",), ("ada@example.org", "@bob"), ("ada@example.org", "ADA@example.org")):
        with pytest.raises(Usage, match="2 have to agree, and --to names 1"):
            gate_of(alone, to=to, quorum=2)
    gate = gate_of(alone, to=TWO, quorum=2)
    with pytest.raises(Usage, match="2 have to agree, and --to names 1"):
        answering.edit(alone.desk, gate, to=("bob@example.org",))


def test_a_gate_that_was_asked_before_stays_as_meant(alone: Seat) -> None:
    """Its `to` says who was asked, and holds nobody back; whoever names an address now means it."""
    gate = asked_before(alone, to=("bob", "may@example.org"))
    assert not gate.holds_to
    assert "to_holds" not in alone.clone.git("show", f"{gate.tip}:question.yaml")
    assert say(alone, gate).gate.state == "answered"
    check_told(alone.desk, alone.now(gate))
    assert audit(alone.desk).problems == ()


def test_whoever_changes_an_older_gate_means_it(alone: Seat) -> None:
    """Its new names hold."""
    gate = asked_before(alone, to=("bob",))
    answering.edit(alone.desk, gate, to=("bob@example.org",))
    assert alone.now(gate).holds_to
    with pytest.raises(NotAllowed):
        say(alone, gate)
    assert say(alone, gate, who=BOB).gate.state == "answered"


def test_everybody_again(alone: Seat) -> None:
    """`--to anyone` lets go of it."""
    gate = gate_of(alone, to=TWO)
    answering.edit(alone.desk, gate, to=())
    assert say(alone, gate, who=EVE).gate.state == "answered"


def test_a_login_is_told_where_somebody_logs_in(alone: Seat, cli: Command) -> None:
    """At a terminal nobody has one, whatever they call themselves; the words say where to go. On a forge it counts."""
    gate = gate_of(alone, to=("@Bob",), session="session-1")
    for name in ("bob", "@bob", "7+bob@users.noreply.github.com"):
        alone.clone.git("config", "user.name", name)
        alone.clone.git("config", "user.email", f"{name}@example.org" if "." not in name else name)
        said = cli.quick("respond", gate.id, "Postgres", cwd=alone.clone.path)
        assert said.code == 4
        assert "answer on the forge, or on the team's pages" in said.err
    with pytest.raises(NotAllowed):
        say(alone, gate, **by_login("bobby"))
    told = say(alone, gate, **by_login("bob")).gate
    claim(alone.desk, told, claimant())


def test_a_login_without_an_address_is_somebody(alone: Seat) -> None:
    """As a proxy before the team's pages names people: what they said is acted on."""
    gate = gate_of(alone, to=("@bob",), session="session-1")
    told = say(alone, gate, who="bob", evidence={"login": "bob"}, via="web").gate
    claim(alone.desk, told, claimant())


@pytest.mark.needs("ssh-keygen")
def test_a_key_holds(alone: Seat, tmp_path: Path) -> None:
    """Whoever has it signs, by itself where it is for keys alone; another's signature, and none, are refused."""
    keys = {name: make_key(tmp_path / "keys", name, f"{name}@example.org") for name in ("ada", "bob")}
    signers = tmp_path / "signers"
    signers.write_text("".join(key.line for key in keys.values()))
    alone.clone.git("config", "gpg.ssh.allowedSignersFile", str(signers))
    gates = [gate_of(alone, to=(keys["ada"].public,), session=f"session-{n}") for n in range(2)]
    with pytest.raises(NotAllowed):
        say(alone, gates[0], sign=False)
    keys["bob"].used_by(alone.clone)
    with pytest.raises(NotAllowed):
        say(alone, gates[0], who=BOB)
    keys["ada"].used_by(alone.clone)
    told = say(alone, gates[0]).gate
    claim(alone.desk, told, claimant())
    forged = written(alone, gates[1], ADA)
    with pytest.raises(NotAllowed):
        claim(alone.desk, forged, claimant())


def test_a_declared_default_is_nobodys(alone: Seat, clock: Clock) -> None:
    """Whom it is for has no part in it, as before."""
    gate = gate_of(
        alone,
        replace(DB, default="SQLite"),
        to=TWO,
        quorum=2,
        timeout=60,
        on_timeout="default",
        session="session-1",
    )
    clock.pass_by(100)
    told = find_gate(alone.desk, gate.id).gate
    assert told.defaulted
    claim(alone.desk, told, claimant())
    assert audit(alone.desk).problems == ()


def test_a_fork_holds_as_the_first_did(alone: Seat) -> None:
    """The same people; a gate that was asked before is forked as it was meant."""
    held = alternatives.fork_gate(alone.desk, gate_of(alone, to=TWO).id).gate
    assert held.holds_to
    older = alternatives.fork_gate(alone.desk, asked_before(alone, to=("bob",)).id).gate
    assert (older.to, older.holds_to) == (("bob",), False)


def test_under_a_policy_its_own_names_do(bare: Clone, ann: Seat) -> None:
    """People, groups, and what nobody knows, as before; only those are held back whom the policy holds."""
    publish_policy(
        bare, "policy:\n  groups: {owners: [ada@example.org]}\n  people: {may: {email: may@example.org}}\n"
    )
    ann.clone.git("fetch", "-q", "origin")
    for to, who in (("owners", ADA), ("may", MAY)):
        gate = gate_of(ann, to=(to,))
        with pytest.raises(NotAllowed, match=f"the question is for {to}"):
            say(ann, gate, who=EVE)
        assert say(ann, gate, who=who).gate.state == "answered"
    gate = gate_of(ann, to=("whoever",))
    answering.edit(ann.desk, gate, to=("owners",))
    assert say(ann, gate).gate.state == "answered"


def test_whom_nobody_knows_is_nobody() -> None:
    """Each of the three ways to name somebody, and what is none of them."""
    found = known_person("Ada@Example.org")
    assert found is not None
    assert found.emails == {"ada@example.org"}
    assert known_person("@Ada-L.x_1") is not None
    assert known_person("SHA256:" + "A" * 43) is not None
    assert [name for name in BARE if known_person(name)] == []


def test_who_may_answer_is_said(alone: Seat, cli: Command) -> None:
    """`policy check` says what `respond` does, and `list --mine` lists it so."""
    gate, place = gate_of(alone, to=("bob@example.org",)), alone.clone.path
    said = cli.quick("policy", "check", gate.id, cwd=place)
    assert said.code == 4
    assert "there is no policy: it is for bob@example.org to answer" in said.out
    assert cli.quick("policy", "check", gate.id, "--who", "bob@example.org", cwd=place).code == 0
    assert gate.id[:6] not in cli.quick("list", "--mine", cwd=place, code=0).out
    alone.clone.git("config", "user.email", "bob@example.org")
    assert gate.id[:6] in cli.quick("list", "--mine", cwd=place, code=0).out


@pytest.fixture
def server(bare: Clone, cli: Command) -> Clone:
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    return bare


@pytest.mark.slow
def test_a_server_refuses_what_others_say(server: Clone, ann: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its hook, without a policy: answers, edits and stops of others; a login that who pushes has not logged in with."""
    gate = gate_of(ann, to=(*TWO, "@may"))
    before = server.refs()[OPEN + gate.id]
    attempts: list[Callable[[], object]] = [
        lambda: written(ann, gate, EVE),
        lambda: written(ann, gate, "x <x@example.org>", login="may"),
        lambda: edited(ann, gate, Edit(ann.desk.now, EVE, to=("eve@example.org",))),
    ]
    for attempt in attempts:
        attempt()
        monkeypatch.setenv("GITGATE_ACTOR", "eve")
        said = push(ann, gate)
        assert "it is for bob@example.org, may@example.org, @may to answer" in said
        assert server.refs()[OPEN + gate.id] == before
        ann.clone.git("update-ref", OPEN + gate.id, before)
    monkeypatch.setenv("GITGATE_ACTOR", "may")
    written(ann, gate, "x <x@example.org>", login="may")
    assert push(ann, gate) == ""
    assert server.refs()[OPEN + gate.id] != before


@pytest.mark.slow
def test_a_server_takes_what_those_say(server: Clone, ann: Seat) -> None:
    """By their address, whoever pushes it: no policy says whose login is whose. A default of approvals is the asker's clone's to allow."""
    gate = gate_of(ann, to=TWO)
    say(ann, gate, who=BOB, push=True)
    assert server.refs()[OPEN + gate.id] == ann.now(gate).tip
    older = asked_before(ann, to=("bob",))
    written(ann, older, EVE)
    assert push(ann, older) == ""


def edited(seat: Seat, gate: Gate, edit: Edit) -> None:
    desk = seat.desk
    now = reload(desk, gate.id)
    after = desk.records.write_event(now, "edited", edit, Signature(edit.by, desk.at))
    desk.refs.update([RefMove(OPEN + gate.id, after.tip, now.tip)])


def push(seat: Seat, gate: Gate) -> str:
    try:
        seat.clone.git("push", "-q", "origin", f"{OPEN}{gate.id}")
    except GitError as refused:
        return " ".join(line.removeprefix("remote: ").strip() for line in str(refused).splitlines())
    return ""
