"""Objects that git reads otherwise than they look: no server of ours takes one, for any kind of ref."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from gitgate.acts import answering
from gitgate.acts.asking import AskWishes, ask
from gitgate.claims import claim, claim_outcome, finish
from gitgate.context import Desk
from gitgate.errors import GateError
from gitgate.flows.journal import begin_run
from gitgate.gates.recording import reload
from gitgate.model.gate import Gate, Question
from gitgate.questions.drafts import Draft
from gitgate.store.git.canonical import TreeEntry, dump_commit, dump_tree
from gitgate.store.git.refs import ARCHIVE, OPEN, RUNS, SESSIONS, WORK
from support.misreading import EVERY, HIDDEN, NOT_SENT, changed, planted, read_any_tree, write_misread
from support.resuming import Seat, claimant
from support.testbed.command import Command
from support.testbed.repositories import Clone, GitError

pytestmark = pytest.mark.slow


@pytest.fixture
def server(bare: Clone, cli: Command) -> Clone:
    """With objects that git does not check: that is the server's own business."""
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    return bare


@pytest.fixture
def ann(server: Clone, clone_of: Callable[..., Clone]) -> Iterator[Seat]:
    with Seat(clone_of(server, "ann")) as seat:
        yield seat


@pytest.fixture
def mallory(server: Clone, clone_of: Callable[..., Clone]) -> Iterator[Seat]:
    """Somebody who may push, and has no part in any gate."""
    with Seat(clone_of(server, "mallory")) as seat:
        yield seat


@pytest.fixture
def bob(server: Clone, clone_of: Callable[..., Clone]) -> Iterator[Seat]:
    with Seat(clone_of(server, "bob")) as seat:
        yield seat


def push(clone: Clone, *specs: str) -> str:
    """What the server says to a push that it refuses; empty where it takes it."""
    try:
        clone.git("push", "-q", "origin", *specs)
    except GitError as said:
        return str(said)
    return ""


def commented(seat: Seat, gate: Gate) -> str:
    """A comment on a gate, as an honest client records it; nobody has it yet."""
    return answering.comment(seat.desk, reload(seat.desk, gate.id), "hm", push=False).gate.tip


def brought(seat: Seat) -> None:
    seat.clone.git("fetch", "-q", "origin", "+refs/hitl/*:refs/hitl/*")


def test_no_form_of_a_comment_is_taken_but_ours(ann: Seat, mallory: Seat, server: Clone) -> None:
    """Its parents elsewhere, a second tree, people and dates that git calls an error; the honest one is taken at last."""
    gate = ann.ask(push=True)
    brought(mallory)
    tip, before = commented(mallory, gate), server.refs()
    taken = []
    for name, change in EVERY.items():
        said = push(mallory.clone, f"+{changed(mallory.clone, tip, change)}:{OPEN}{gate.id}")
        told = "error:" if name in NOT_SENT else "pre-receive hook declined"
        if told not in said or server.refs() != before:
            taken.append((name, said))
    assert taken == []
    assert push(mallory.clone, f"{tip}:{OPEN}{gate.id}") == ""


def test_what_a_clean_up_leaves_is_all_of_it(
    ann: Seat, mallory: Seat, server: Clone, clone_of: Callable[..., Clone], cli: Command
) -> None:
    """A comment that hides what it stands on would have git throw the question away: it is refused, and the gate stays."""
    gate = ann.ask(push=True)
    brought(mallory)
    hidden = changed(mallory.clone, commented(mallory, gate), HIDDEN["parents behind the committer"])
    assert "behind its committer" in push(mallory.clone, f"+{hidden}:{OPEN}{gate.id}")
    server.git("gc", "-q", "--prune=now")
    assert server.git("cat-file", "-t", gate.tip) == "commit"
    new = clone_of(server, "new", "--config", "transfer.fsckObjects=true")
    cli.quick("sync", cwd=new.path, code=0)
    assert gate.id in cli.quick("list", "--json", cwd=new.path, code=0).out
    cli.quick("verify", cwd=new.path, code=0)


@pytest.mark.parametrize("how", ["parents behind the committer", "parents behind an unknown header"])
def test_what_was_archived_is_not_approved_again(
    ann: Seat, mallory: Seat, server: Clone, how: str, cli: Command
) -> None:
    """A fold that hides the ones before it would have them forgotten, and an old answer count as a new one."""
    gate = ann.answer(ann.ask(push=True), push=True)
    desk = ann.desk
    held = claim(desk, gate, claimant())
    finish(desk, held, claim_outcome(desk, held, "resumed"))
    cli.quick("archive", cwd=ann.clone.path, code=0)
    (month,) = server.refs(ARCHIVE)
    assert OPEN + gate.id not in server.refs()
    brought(mallory)
    fold = mallory.clone.git("commit-tree", f"{month}^{{tree}}", "-p", month, "-m", "fold 0 gates into it")
    hidden = changed(mallory.clone, fold, HIDDEN[how])
    assert "behind its committer" in push(mallory.clone, f"+{hidden}:{month}")
    server.git("gc", "-q", "--prune=now")
    assert "it is not opened again" in push(mallory.clone, f"{gate.tip}:{OPEN}{gate.id}")


MANY = 400


@pytest.mark.slow
@pytest.mark.thorough
def test_each_is_refused_alone_and_among_four_hundred(ann: Seat, mallory: Seat, server: Clone) -> None:
    """In the same words, by what one process reads and by what two read; the good ones are taken at last, all together."""
    gates = [ann.ask(f"Which, {number}?", push=False) for number in range(MANY)]
    good = [f"{gate.tip}:{OPEN}{gate.id}" for gate in gates]
    waiting = ann.ask("Else?", push=True)
    brought(mallory)
    ann.clone.git("fetch", "-q", str(mallory.clone.path), commented(mallory, waiting))
    tip, before = ann.clone.git("rev-parse", "FETCH_HEAD"), server.refs()
    for name, change in EVERY.items():
        bad = f"+{changed(ann.clone, tip, change)}:{OPEN}{waiting.id}"
        alone, among = push(ann.clone, bad), push(ann.clone, *good[:200], bad, *good[200:])
        assert server.refs() == before, name
        if name in NOT_SENT:
            assert ["error:" in said for said in (alone, among)] == [True, True], name
            continue
        words = said_by_hook(alone)
        assert words, (name, alone)
        assert said_by_hook(among) == words, name
    assert push(ann.clone, *good, f"{tip}:{OPEN}{waiting.id}") == ""
    assert len(server.refs(OPEN)) == MANY + 1


def said_by_hook(push: str) -> list[str]:
    return re.findall(rf"gate: {OPEN}.*", push)


@pytest.mark.parametrize(
    "how", ["parents behind the committer", "another tree behind the committer", "two authors"]
)
def test_a_fold_that_git_reads_otherwise_tells_nothing(
    ann: Seat, bob: Seat, server: Clone, how: str, cli: Command
) -> None:
    """On a server without our hook: a fold that hides the ones before it takes no gate out of a clone's archive, and none into it;
    no gate that it may have is pushed again, and it is named.
    """
    gate = ann.answer(ann.ask(push=True), push=True)
    held = claim(ann.desk, gate, claimant())
    finish(ann.desk, held, claim_outcome(ann.desk, held, "resumed"))
    cli.quick("sync", cwd=bob.clone.path, code=0)
    cli.quick("archive", cwd=ann.clone.path, code=0)
    ((month, fold),) = server.refs(ARCHIVE).items()
    (server.path / "hooks" / "pre-receive").unlink()
    message = server.git("log", "-1", "--format=%B", fold)
    lines = server.git("commit-tree", f"{fold}^{{tree}}", "-p", fold, "-p", gate.tip, "-m", message)
    server.git("update-ref", month, changed(server, lines, EVERY[how]))
    said = cli.quick("sync", cwd=bob.clone.path, code=1)
    assert "cannot be read" in said.err
    assert OPEN + gate.id not in server.refs()
    assert OPEN + gate.id in bob.clone.refs()
    cli.quick("archive", cwd=ann.clone.path)
    assert ann.clone.refs(ARCHIVE) == {month: fold}
    assert gate.id in cli.quick("list", "--all", "--json", cwd=ann.clone.path, code=0).out
    cli.quick("verify", cwd=ann.clone.path, code=1)


# each kind of ref, as a client of somebody's own would write it


@pytest.mark.parametrize("how", ["another tree behind the committer", "an unknown header", "no address"])
def test_no_question_of_such_a_client_is_taken(
    ann: Seat, server: Clone, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A first commit has no parents to hide."""
    write_misread(monkeypatch, EVERY[how])
    with pytest.raises(GateError, match=r"behind its committer|has the header|as its author"):
        ann.ask(push=True)
    assert not server.refs(OPEN)


@pytest.mark.parametrize(
    "how", ["parents behind the committer", "another tree behind the committer", "two authors"]
)
def test_no_work_of_such_a_client_is_taken(
    ann: Seat, server: Clone, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Neither what was staged nor what was not."""
    ann.clone.git("config", "gitgate.pushWork", "true")
    ann.clone.write("partial.py", "x = 1\n")
    write_misread(monkeypatch, EVERY[how])
    for room in ("gitgate.store.records.raw", "gitgate.store.records.archive"):
        monkeypatch.setattr(f"{room}.dump_commit", dump_commit)
    gate = ann.ask(push=True)
    assert WORK + gate.id not in server.refs()


@pytest.mark.parametrize(
    "how", ["parents behind the committer", "another tree behind the committer", "no address"]
)
def test_no_claim_of_such_a_client_is_taken(
    ann: Seat, server: Clone, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Its event and its lease."""
    gate = ann.answer(ann.ask(push=True), push=True)
    before = server.refs()
    write_misread(monkeypatch, EVERY[how])
    with pytest.raises(GateError):
        claim(ann.desk, gate, claimant())
    assert server.refs() == before


def test_no_lease_alone_is_taken(ann: Seat, server: Clone) -> None:
    """A claim as it has to be, with a lease that git reads otherwise."""
    gate = ann.answer(ann.ask(push=True), push=True)
    desk = ann.desk
    before = server.refs()
    held = claim(desk, gate, claimant())
    after = server.refs()
    for name, oid in before.items():
        server.git("update-ref", name, oid)
    server.git("update-ref", "-d", f"refs/hitl/leases/{gate.id}")
    for name, change in EVERY.items():
        lease = changed(ann.clone, held.lease, change)
        said = push(
            ann.clone, "--atomic", f"+{held.claim}:{OPEN}{gate.id}", f"+{lease}:refs/hitl/leases/{gate.id}"
        )
        assert ("error:" if name in NOT_SENT else "declined") in said, name
    assert server.refs() == before
    assert (
        push(
            ann.clone, "--atomic", f"{held.claim}:{OPEN}{gate.id}", f"{held.lease}:refs/hitl/leases/{gate.id}"
        )
        == ""
    )
    assert server.refs() == after


@pytest.mark.parametrize("how", ["another tree behind the committer", "an unknown header", "no author"])
def test_no_run_of_such_a_client_is_taken(
    ann: Seat, server: Clone, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Its journal."""
    write_misread(monkeypatch, EVERY[how])
    with pytest.raises(GateError):
        begin_run(ann.desk, {"flow": "feature"}, push=True)
    assert not server.refs(RUNS)


# trees


def test_what_a_sync_could_not_read_is_named(ann: Seat, bob: Seat, server: Clone, cli: Command) -> None:
    """A server without our hook took it: whoever looks is told of it, and that it is not all well."""
    gate, other = ann.ask(push=True), ann.ask("Else?", push=True)
    (server.path / "hooks" / "pre-receive").unlink()
    hidden = changed(ann.clone, commented(ann, gate), HIDDEN["parents behind the committer"])
    assert push(ann.clone, f"+{hidden}:{OPEN}{gate.id}") == ""
    cli.quick("sync", cwd=bob.clone.path)
    assert set(bob.clone.refs(OPEN)) == {OPEN + other.id}
    for given in ((), (gate.id,)):
        said = cli.quick("verify", *given, cwd=bob.clone.path, code=1)
        assert "cannot be read" in said.out
        assert "behind its committer" in said.out
    cli.quick("verify", other.id, cwd=bob.clone.path, code=0)


@pytest.mark.parametrize("kind", ["a branch", "its own record"])
def test_a_gate_without_a_session_takes_none(
    ann: Seat, server: Clone, kind: str, desks: Callable[[Clone], Desk]
) -> None:
    """Any commit would do, and be resumed as the agent's own words."""
    ann.clone.git("config", "gitgate.session", "push")
    gate = ask(desks(ann.clone), Draft((Question("answer", "Which?", "text"),)), AskWishes(push=True)).gate
    assert gate.opened.session is None
    found = ann.clone.git("rev-parse", "main")
    if kind != "a branch":
        found = gate.tip
    said = push(ann.clone, f"{found}:{SESSIONS}{gate.id}")
    assert "asked without a session" in said
    assert not server.refs(SESSIONS)


def unsorted_tree(clone: Clone, tree: str) -> str:
    """The same entries, the last one first."""
    payload = clone.repository.git.out("cat-file", "tree", tree)
    *first, last = read_any_tree(payload)
    return planted(clone, "tree", b"".join(dump_tree([entry]) for entry in [last, *first]))


def twice(clone: Clone, tree: str) -> str:
    payload = clone.repository.git.out("cat-file", "tree", tree)
    entries = read_any_tree(payload)
    return planted(clone, "tree", b"".join(dump_tree([entry]) for entry in [entries[0], *entries]))


def zero_in_mode(clone: Clone, tree: str) -> str:
    payload = clone.repository.git.out("cat-file", "tree", tree)
    return planted(clone, "tree", payload.replace(b"40000 ", b"040000 ").replace(b"100644 ", b"0100644 "))


@pytest.mark.parametrize("how", [unsorted_tree, twice, zero_in_mode])
@pytest.mark.parametrize("place", ["top", "folder"])
def test_no_tree_out_of_order_is_taken(
    ann: Seat, mallory: Seat, server: Clone, how: Callable[[Clone, str], str], place: str
) -> None:
    """Of a record, at its top and in its folders: a clone that has git check what it fetches would get no gate at all."""
    gate = ann.ask(push=True)
    for _ in range(3):
        gate = answering.comment(ann.desk, reload(ann.desk, gate.id), "hm", push=True).gate
    brought(mallory)
    clone = mallory.clone
    tip = commented(mallory, gate)
    tree = clone.git("rev-parse", f"{tip}^{{tree}}")
    if place == "top":
        bad = how(clone, tree)
    else:
        inner = how(clone, clone.git("rev-parse", f"{tip}:comments"))
        entries = read_any_tree(clone.repository.git.out("cat-file", "tree", tree))
        bad = planted(
            clone,
            "tree",
            dump_tree(
                [TreeEntry(e.mode, e.name, inner if e.name == b"comments" else e.oid) for e in entries]
            ),
        )
    forged = changed(clone, tip, lambda payload: payload.replace(tree.encode(), bad.encode()))
    before = server.refs()
    assert "declined" in push(clone, f"+{forged}:{OPEN}{gate.id}")
    assert server.refs() == before
    assert push(clone, f"{tip}:{OPEN}{gate.id}") == ""


def test_what_lies_beside_a_record_is_read_as_well(ann: Seat, mallory: Seat, server: Clone) -> None:
    """A second parent of a second parent has no meaning, and would reach every clone."""
    gate = ann.ask(push=True)
    brought(mallory)
    clone = mallory.clone
    junk = planted(
        clone, "commit", f"tree {clone.git('rev-parse', 'main^{tree}')}\nauthor A 1 +0000\n\nx\n".encode()
    )
    offline = commented(mallory, gate)
    third = changed(
        clone, offline, lambda payload: payload.replace(b"\nauthor ", f"\nparent {junk}\nauthor ".encode(), 1)
    )
    answering.comment(ann.desk, reload(ann.desk, gate.id), "first", push=True)
    assert "declined" in push(clone, f"+{third}:{OPEN}{gate.id}")
    del server
