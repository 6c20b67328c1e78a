"""What a shared repository takes, told by real pushes that run the real hook."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitgate import sharing
from gitgate.acts.answering import Manner, respond
from gitgate.claims import claim
from gitgate.exchange.syncing import sync
from gitgate.gates.recording import reload
from gitgate.questions import Given
from gitgate.sharing import refusals
from gitgate.store.git.refs import Update
from gitgate.store.records import Signature
from support.resuming import Seat, claimant
from support.testbed.command import Command
from support.testbed.repositories import Clone, GitError, make_server

pytestmark = pytest.mark.slow

OPEN = "refs/hitl/open/"


@pytest.fixture
def server(bare: Clone, cli: Command) -> Clone:
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    return bare


@pytest.fixture
def ann(server: Clone, clone_of: Callable[..., Clone]) -> Iterator[Seat]:
    with Seat(clone_of(server, "ann")) as seat:
        yield seat


def refused(clone: Clone, *specs: str) -> str:
    """What the server says to a push that it must not take."""
    with pytest.raises(GitError) as said:
        clone.git("push", "origin", *specs)
    return str(said.value)


def test_what_the_product_does_is_taken(ann: Seat, server: Clone) -> None:
    """Asking, answering, claiming and syncing go through the hook."""
    gate = ann.answer(ann.ask())
    held = claim(ann.desk, gate, claimant())
    assert server.refs()[OPEN + gate.id] == held.claim


def test_a_push_without_gates_is_none_of_its_business(ann: Seat, server: Clone) -> None:
    """A branch is pushed as ever."""
    new = ann.clone.commit("more")
    ann.clone.git("push", "-q", "origin", "main")
    assert server.refs()["refs/heads/main"] == new


def test_a_name_is_all_of_its_line(ann: Seat, server: Clone) -> None:
    """What Unicode calls a line's end is part of a name: such a ref does not pass for the gate that it begins with."""
    gate = ann.ask()
    for odd in ("\u2028x", "\x85x"):
        assert "not named like a gate" in refused(ann.clone, f"{gate.tip}:{OPEN}{gate.id}{odd}")
    assert [name for name in server.refs() if name.startswith(OPEN)] == [OPEN + gate.id]


def test_a_name_that_is_no_utf_8(ann: Seat, server: Clone, tmp_path: Path) -> None:
    """Whatever language the server speaks: the branch is taken, the gate beside it judged."""
    hook = server.path / "hooks" / "pre-receive"
    lines = f"{'0' * 40} {'1' * 40} {OPEN}caf".encode() + b"\xe9\n"
    for language in ("C", "en_US.UTF-8", "C.UTF-8"):
        env = {**os.environ, "LC_ALL": language, "GIT_DIR": "."}
        ended = subprocess.run([str(hook)], input=lines, cwd=server.path, env=env, capture_output=True)
        assert (ended.returncode, b"not named like a gate" in ended.stderr) == (1, True)
        assert b"Traceback" not in ended.stderr


def test_a_record_is_not_rewound(ann: Seat) -> None:
    """History stays."""
    gate = ann.answer(ann.ask())
    first = gate.history[0].commit
    assert "only grows" in refused(ann.clone, f"+{first}:{OPEN}{gate.id}")


def test_an_ancestor_is_not_enough(ann: Seat) -> None:
    """An answer slipped in before the one that counts, which is then recorded again: only first parents count."""
    gate = ann.ask()
    answered = ann.answer(gate)
    ann.clone.git("update-ref", OPEN + gate.id, gate.tip)
    desk = ann.desk
    other = respond(desk, reload(desk, gate.id), Given(text="MySQL"), Manner(push=False)).gate
    by = Signature("Ada <ada@example.org>", desk.at)
    again = desk.records.repeat(other, answered.history[-1], by, answered.tip)
    assert again.state == "answered"
    assert "only grows" in refused(ann.clone, f"{again.tip}:{OPEN}{gate.id}")


def test_one_file_an_event(ann: Seat) -> None:
    """A commit that adds two files, or changes one, is no event."""
    gate = ann.ask()
    blob = ann.clone.git("hash-object", "-w", "--stdin", input="x")
    old = ann.clone.git("ls-tree", gate.tip)
    tree = ann.clone.git("mktree", input=f"{old}\n100644 blob {blob}\tone\n100644 blob {blob}\ttwo\n")
    commit = ann.clone.git("commit-tree", tree, "-p", gate.tip, "-m", "two")
    assert f"{OPEN}{gate.id}: " in refused(ann.clone, f"{commit}:{OPEN}{gate.id}")


def test_an_answer_is_for_its_own_gate(ann: Seat) -> None:
    """An answer copied from another gate is refused."""
    one, two = ann.answer(ann.ask("One?")), ann.ask("Two?")
    answers = ann.clone.git("ls-tree", one.tip, "answers")
    tree = ann.clone.git("mktree", input=f"{ann.clone.git('ls-tree', two.tip)}\n{answers}\n")
    commit = ann.clone.git("commit-tree", tree, "-p", two.tip, "-m", "copied")
    assert f"is for gate {one.id}" in refused(ann.clone, f"{commit}:{OPEN}{two.id}")


def test_a_gate_is_deleted_only_after_it_was_archived(ann: Seat, server: Clone, cli: Command) -> None:
    """Before, the deletion is refused; after, it is taken, and the gate is not opened again."""
    gate = ann.ask()
    assert "archive it first" in refused(ann.clone, f":{OPEN}{gate.id}")
    cli.quick("withdraw", gate.id, "--reason", "no need", cwd=ann.clone.path, code=0)
    tip = ann.clone.refs()[OPEN + gate.id]
    cli.quick("archive", "--older-than", "0s", cwd=ann.clone.path, code=0)
    assert OPEN + gate.id not in server.refs()
    assert "not opened again" in refused(ann.clone, f"{tip}:{OPEN}{gate.id}")


def test_archive_and_deletion_in_one_push_are_refused(ann: Seat, server: Clone) -> None:
    """Without the archive in place the deletion would lose the gate if only it went through."""
    gate = ann.ask()
    tree = ann.clone.git("rev-parse", f"{gate.tip}^{{tree}}")
    fold = ann.clone.git(
        "commit-tree", tree, "-p", gate.tip, "-p", gate.tip, "-m", f"fold\n\n{gate.id} {gate.tip}"
    )
    said = refused(ann.clone, f"{fold}:refs/hitl/archive/2026-01", f":{OPEN}{gate.id}")
    assert "archive it first" in said
    assert OPEN + gate.id in server.refs()


def test_an_archived_gate_does_not_come_back_through_an_empty_fold(
    ann: Seat, server: Clone, cli: Command
) -> None:
    """By real pushes: the fold that drops it is refused, and so is the gate after it; nor is a waiting one taken away."""
    gate = ann.ask()
    cli.quick("withdraw", gate.id, "--reason", "no need", cwd=ann.clone.path, code=0)
    cli.quick("archive", "--older-than", "0s", cwd=ann.clone.path, code=0)
    ((month, fold),) = server.refs("refs/hitl/archive").items()
    empty = ann.clone.git("hash-object", "-t", "tree", "-w", "--stdin")
    drops = ann.clone.git("commit-tree", empty, "-p", fold, "-m", "tidy")
    assert "out of the archive" in refused(ann.clone, f"{drops}:{month}")
    assert "not opened again" in refused(ann.clone, f"{gate.tip}:{OPEN}{gate.id}")
    waiting = ann.ask("Another?")
    inner = ann.clone.git(
        "mktree", input=f"040000 tree {ann.clone.git('rev-parse', f'{waiting.tip}^{{tree}}')}\t{waiting.id}\n"
    )
    tree = ann.clone.git("mktree", input=f"040000 tree {inner}\t{waiting.id[:2]}\n")
    root = ann.clone.git("commit-tree", empty, "-m", "begin")
    named = f"fold\n\n{waiting.id} {waiting.tip}\n"
    takes = ann.clone.git("commit-tree", tree, "-p", root, "-p", waiting.tip, "-m", named)
    assert "awaiting, not closed" in refused(ann.clone, f"{takes}:refs/hitl/archive/2020-01")
    assert "archive it first" in refused(ann.clone, f":{OPEN}{waiting.id}")


def test_the_archive_only_grows(ann: Seat) -> None:
    """A month is neither deleted nor rewritten."""
    tree = ann.clone.git("hash-object", "-t", "tree", "-w", "--stdin")
    first, other = (ann.clone.git("commit-tree", tree, "-m", name) for name in "ab")
    ann.clone.git("push", "-q", "origin", f"{first}:refs/hitl/archive/2026-01")
    assert "only grows" in refused(ann.clone, f"+{other}:refs/hitl/archive/2026-01")
    assert "not deleted" in refused(ann.clone, ":refs/hitl/archive/2026-01")
    assert "named by its month" in refused(ann.clone, f"{first}:refs/hitl/archive/all")


def test_work_is_what_its_record_names(ann: Seat) -> None:
    """Other work under a gate's name is refused; its own is taken, and stays while the gate is open."""
    ann.clone.write("partial", "p")
    gate = ann.ask()
    main = ann.clone.refs()["refs/heads/main"]
    work = gate.opened.work.commit
    assert "as its work" in refused(ann.clone, f"{main}:refs/hitl/work/{gate.id}")
    ann.clone.git("push", "-q", "origin", f"{work}:refs/hitl/work/{gate.id}")
    assert "stays with it" in refused(ann.clone, f":refs/hitl/work/{gate.id}")
    assert "no gate" in refused(ann.clone, f"{main}:refs/hitl/work/2222222222")


def test_a_lease_is_a_lease(ann: Seat) -> None:
    """Nothing else takes its name, and it goes with its gate's outcome alone."""
    gate = ann.answer(ann.ask())
    main = ann.clone.refs()["refs/heads/main"]
    assert "no lease" in refused(ann.clone, f"{main}:refs/hitl/leases/{gate.id}")
    held = claim(ann.desk, gate, claimant())
    assert "goes with the outcome" in refused(ann.clone, f":refs/hitl/leases/{held.gate.id}")


def test_to_wake_a_server_moves_nothing(ann: Seat, server: Clone) -> None:
    """Its ref stands at the tip of an open gate, or not at all, and anybody takes it away."""
    gate = ann.answer(ann.ask())
    for name, commit in ((gate.id, gate.history[0].commit), ("2222222222", gate.tip), (gate.id, "main")):
        assert "expected the tip of the open gate" in refused(ann.clone, f"{commit}:refs/hitl/wake/{name}")
    ann.clone.git("push", "-q", "origin", f"{gate.tip}:refs/hitl/wake/{gate.id}")
    # Where the hook was faster, it is gone already.
    ann.clone.git("push", "-q", "origin", f":refs/hitl/wake/{gate.id}", check=False)
    assert server.refs("refs/hitl/wake") == {}


def test_an_unknown_kind_is_refused(ann: Seat) -> None:
    """What this version does not know it does not take on trust."""
    main = ann.clone.refs()["refs/heads/main"]
    assert "no such kind" in refused(ann.clone, f"{main}:refs/hitl/other/2222222222")


def test_one_bad_ref_stops_the_push(ann: Seat, server: Clone) -> None:
    """Nothing of it is taken, the branch beside it neither, and the reason names the ref."""
    gate = ann.answer(ann.ask())
    before = server.refs()
    ann.clone.commit("more")
    said = refused(ann.clone, "main", f"+{gate.history[0].commit}:{OPEN}{gate.id}")
    assert f"{OPEN}{gate.id}" in said
    assert server.refs() == before


def test_a_hook_of_others_goes_on_working(server: Clone, ann: Seat, cli: Command) -> None:
    """It runs first, hears the same, may refuse, survives a second init, and is back after the removal."""
    hook = server.path / "hooks/pre-receive"
    cli.quick("init", "--remove", cwd=server.path, code=0)
    assert not hook.exists()
    server.write("hooks/pre-receive", "#!/bin/sh\ncat > heard\n[ ! -e closed ]\n", executable=True)
    for _ in range(2):
        cli.quick("init", "--server", "--no-resume", cwd=server.path, code=0)
    gate = ann.ask()
    assert f"{OPEN}{gate.id}" in (server.path / "heard").read_text()
    server.write("closed")
    assert "pre-receive hook declined" in refused(ann.clone, "HEAD:refs/heads/other")
    (server.path / "closed").unlink()
    assert "only grows" in refused(ann.clone, f"+{ann.answer(gate).history[0].commit}:{OPEN}{gate.id}")
    cli.quick("init", "--remove", cwd=server.path, code=0)
    assert "cat > heard" in hook.read_text()


def test_without_git_gate_no_gate_is_taken(server: Clone, ann: Seat) -> None:
    """A server that lost its git-gate refuses gates, says why, and goes on taking branches."""
    hook = server.path / "hooks/pre-receive"
    hook.write_text(re.sub(r"\S*/python[\d.]*", "/nowhere/python", hook.read_text()))
    with pytest.raises(GitError, match="no gate is taken"):
        ann.clone.git("push", "origin", f"{ann.ask(push=False).tip}:{OPEN}2222222222")
    ann.clone.git("push", "-q", "origin", "HEAD:refs/heads/other")


def test_many_refs_are_judged_in_one_process(ann: Seat, server: Clone, cli: Command) -> None:
    """From the quarantine as well; and one bad one is named among them."""
    gates = [ann.ask(f"{n}?", push=False) for n in range(15)]
    ann.clone.git("push", "-q", "origin", *(f"{OPEN}{gate.id}" for gate in gates))
    assert len(server.refs(OPEN)) == 15
    answered = [ann.answer(gate, push=False) for gate in gates]
    wrong = f"+{ann.clone.refs()['refs/heads/main']}:{OPEN}{gates[0].id}"
    said = refused(ann.clone, wrong, *(f"{gate.tip}:{OPEN}{gate.id}" for gate in answered[1:]))
    assert said.count("remote: gate: ") == 1
    sync(ann.desk)
    assert server.refs()[OPEN + gates[1].id] == answered[1].tip


@pytest.mark.usefixtures("person")
def test_more_gates_take_no_more_processes_and_one_push(
    clone_of: Callable[..., Clone], cli: Command, tmp_path: Path
) -> None:
    """Neither of the clone that brings them, nor of the hook that judges them, nor of the clone that gets them."""
    started = {}
    for count in (30, 60):
        server = make_server(tmp_path / f"server-{count}.git")
        cli.quick("init", "--server", "--no-resume", cwd=server.path, code=0)
        (server.path / "hooks" / "post-receive").unlink()  # what it starts is not waited for
        other = clone_of(server, f"other-{count}")
        with Seat(clone_of(server, f"place-{count}")) as seat:
            for number in range(count):
                seat.ask(f"{number}?", push=False)
        for what, place in (("push", seat.clone), ("pull", other)):
            trace = tmp_path / f"{what}-{count}"
            cli("sync", "-q", cwd=place.path, code=0, env={"GIT_TRACE2_EVENT": str(trace)})
            events = [json.loads(line) for line in trace.read_text().splitlines()]
            told = [event["argv"] for event in events if event["event"] == "start"]
            started[what, count] = len(told)
            assert sum("receive-pack" in argv[0] for argv in told) == (what == "push")
        assert len(other.refs(OPEN)) == count
    assert started["push", 30] == started["push", 60]
    assert started["pull", 30] == started["pull", 60]


# judged without a push: what a hook is told, and what it says


def judged(seat: Seat, *updates: Update) -> list[str]:
    return list(refusals(seat.desk, updates).values())


def test_more_refs_than_anybody_pushes(alone: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is looked at; a ref that stays as it is does not speak against any."""
    monkeypatch.setattr(sharing, "MOST_REFS", 2)
    head = alone.clone.git("rev-parse", "HEAD")
    same = [Update(head, head, f"{OPEN}zzzz22222{n}") for n in range(3)]
    assert judged(alone, *same[:2]) == []
    assert judged(alone, *same) == ["expected at most 2 refs in a push; found 3"]


def test_a_session_belongs_to_an_open_gate(alone: Seat) -> None:
    """It may be saved anew and erased at any time, and is a commit."""
    gate, ref = alone.ask(), "refs/hitl/sessions/"
    saved = alone.clone.refs()[ref + gate.id]
    blob = alone.clone.git("rev-parse", "HEAD:README")
    assert judged(alone, Update(None, saved, ref + gate.id)) == []
    assert judged(alone, Update(saved, None, ref + gate.id)) == []
    (said,) = judged(alone, Update(None, blob, ref + gate.id))
    assert "commit" in said
    for name in ("2222222222", "any"):
        assert "no open gate" in judged(alone, Update(None, saved, ref + name))[0]


def test_a_lease_on_a_gate_that_is_gone(alone: Seat) -> None:
    """There is nothing to act on."""
    gate = alone.answer(alone.ask())
    held = claim(alone.desk, gate, claimant())
    lease = Update(None, held.lease, f"refs/hitl/leases/{gate.id}")
    assert judged(alone, Update(gate.tip, held.claim, OPEN + gate.id), lease) == []
    assert (
        f"no open gate {gate.id} to act on"
        in judged(alone, Update(held.claim, None, OPEN + gate.id), lease)[1]
    )


def test_what_is_only_added_to(alone: Seat) -> None:
    """A month of the archive: what was there is among the first parents of what comes."""
    git = alone.clone.git
    empty = git("hash-object", "-t", "tree", "-w", "--stdin")
    one, unrelated = (git("commit-tree", empty, "-m", name) for name in ("one", "unrelated"))
    other = git("commit-tree", empty, "-p", one, "-m", "other")
    beside = git("commit-tree", empty, "-p", unrelated, "-p", one, "-m", "beside")
    ref = "refs/hitl/archive/2026-01"
    assert judged(alone, Update(None, one, ref)) == judged(alone, Update(one, other, ref)) == []
    for new in (unrelated, beside):
        assert "only grows, by first parents" in judged(alone, Update(one, new, ref))[0]


def test_what_is_no_run_is_not_taken_as_one(alone: Seat) -> None:
    """Whatever its name and kind: what is there is believed when somebody goes on with it. It may be taken away."""
    git = alone.clone.git
    empty = git("hash-object", "-t", "tree", "-w", "--stdin")
    one = git("commit-tree", empty, "-m", "one")
    grown = git("commit-tree", empty, "-p", one, "-m", "other")
    gate = alone.ask()
    for new in (one, gate.tip, empty):
        for name in ("deploy", "a/b", "Deploy"):
            assert judged(alone, Update(None, new, f"refs/hitl/runs/{name}")) == [
                "it is not named like a run"
            ]
        assert len(judged(alone, Update(None, new, f"refs/hitl/runs/{gate.id}"))) == 1
    assert "not named like a run" in judged(alone, Update(one, grown, "refs/hitl/runs/deploy"))[0]
    assert judged(alone, Update(None, one, "refs/hitl/Runs/deploy")) != []
    assert judged(alone, Update(one, None, "refs/hitl/runs/deploy")) == []


def test_evidence_may_be_rewritten(alone: Seat) -> None:
    """That is how it is erased; it is named by its month."""
    head = alone.clone.git("rev-parse", "HEAD")
    assert judged(alone, Update(head, None, "refs/hitl/evidence/2026-01")) == []
    assert "named by its month" in judged(alone, Update(None, head, "refs/hitl/evidence/all"))[0]


def test_work_whose_gate_comes_with_it(alone: Seat) -> None:
    """The record is looked for in the push and in what is here; work may be erased once its gate is gone."""
    alone.clone.write("partial", "p")
    gate = alone.ask()
    work, ref = gate.opened.work.commit, f"refs/hitl/work/{gate.id}"
    assert judged(alone, Update(None, work, ref), Update(None, gate.tip, OPEN + gate.id)) == []
    assert judged(alone, Update(None, work, ref)) == []
    assert judged(alone, Update(work, None, "refs/hitl/work/2222222222")) == []
