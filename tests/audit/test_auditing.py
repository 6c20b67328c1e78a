"""Verify: every gate is checked, and one line names what does not hold. A sound repository has no line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gitgate.acts import answering
from gitgate.acts.asking import AskWishes
from gitgate.audit.auditing import audit, refuse_unsynced
from gitgate.errors import AmbiguousGate, Failure, UnknownGate
from gitgate.exchange.syncing import sync
from gitgate.model.gate import Answer, Gate, Question, Remark, Work
from gitgate.record import events
from gitgate.sharing.archiving import fold_closed
from gitgate.store.git.canonical import dump_commit
from gitgate.store.git.objects import open_objects
from gitgate.store.git.refs import OPEN
from gitgate.store.records import Signature
from gitgate.store.records.archive import Binder
from support.deciding import DB, GO, TEXT, approve, asked, gate_of, say
from support.histories import EVE
from support.resuming import Clock, Seat
from support.testbed.command import Command
from support.testbed.repositories import Clone

BY = Signature("Mallory <mallory@example.org>", 1_800_000_000)
FORM = Question("f", "Fill in", "form", schema={"required": ["count"]})


def lines(seat: Seat, *given: str, branch: str | None = None) -> list[str]:
    """What is wrong, without ids."""
    desk = seat.desk
    desk.work_in_bulk()
    return [f"{problem.kind}: {problem.words}" for problem in audit(desk, given, branch).problems]


def point(seat: Seat, gate: Gate, tip: str) -> None:
    seat.clone.git("update-ref", OPEN + gate.id, tip)


def with_message(seat: Seat, gate: Gate, message: str | bytes) -> str:
    """The gate's last commit with another message."""
    records = seat.desk.records
    commit = records.commit(gate.tip)
    data = dump_commit(commit.tree, commit.parents, BY.who, BY.at, "")
    raw = message.encode() if isinstance(message, str) else message
    return records.objects.write("commit", data + raw)


def planted(seat: Seat, gate: Gate, path: str, data: bytes, *parents: str) -> str:
    records = seat.desk.records
    tree = records.with_file(records.commit(gate.tip).tree, path, data)
    return records.write_commit(tree, parents or (gate.tip,), BY, "x\n")


def test_a_sound_repository_has_nothing_wrong(alone: Seat, clock: Clock) -> None:
    """Gates in every state, with work, attachments, votes, edits, deadlines, open and archived."""
    alone.clone.write("README", "changed\n")
    alone.clone.write("new", "untracked\n")
    first = gate_of(alone, DB, FORM, attachments={"a/b.txt": b"x"})
    assert first.opened.work.dirty
    answering.comment(alone.desk, first, "why?")
    answering.edit(alone.desk, alone.now(first), priority="urgent", to=("bob@example.org",), timeout="1h")
    approved = gate_of(alone, GO, quorum=2)
    approve(alone, approved)
    approve(alone, approved, EVE)
    late = gate_of(alone, replace(DB, default="SQLite"), timeout=60, on_timeout="default")
    expired = gate_of(alone, timeout=60, on_timeout="fail", session="session-1")
    again = gate_of(alone, timeout=60, on_timeout="remind")
    taken_back = gate_of(alone)
    answering.withdraw(alone.desk, taken_back, "found it")
    clock.pass_by(100)
    from gitgate.acts import find_gate

    states = [find_gate(alone.desk, gate.id).gate.state for gate in (late, expired, again)]
    assert states == ["answered", "expired", "awaiting"]
    done = audit(alone.desk)
    assert (done.problems, done.notes, done.gates) == ((), (), 6)
    assert done.events == 14
    clock.pass_by(10)
    assert fold_closed(alone.desk).folded
    done = audit(alone.desk)
    assert (done.problems, done.notes, done.gates) == ((), (), 6)


ATTACKS: dict[str, tuple[Callable[[Seat, Gate], str], str]] = {
    "a planted file": (
        lambda s, g: planted(s, g, ".hitl/answer.yaml", b"yes"),
        "adds or changes '.hitl', which is no folder of events",
    ),
    "a rewritten question": (
        lambda s, g: s.desk.records.write_commit(
            s.desk.records.write_files(
                {"question.yaml": events.dump_event(replace(g.opened, title="Other"))}
            ),
            (),
            BY,
            "x",
        ),
        "its question was rewritten",
    ),
    "two files": (
        lambda s, g: planted(
            s, replace(g, tip=planted(s, g, "comments/x.yaml", b"a")), "stops/y.yaml", b"b", g.tip
        ),
        "changes 'comments', 'stops' in the record",
    ),
    "an answer for another gate": (
        lambda s, g: planted(s, g, "answers/x.yaml", events.dump_event(forged(g, gate="kkkkkkkkkk"))),
        "is for gate kkkkkkkkkk",
    ),
    "an answer that saw something else": (
        lambda s, g: planted(s, g, "answers/x.yaml", events.dump_event(forged(g, seen="1" * 40))),
        "names a commit as seen that is not in the record",
    ),
    "bad YAML": (lambda s, g: planted(s, g, "answers/x.yaml", b"a: [\n"), "expected YAML or JSON"),
    "a branch in its place": (lambda s, _g: s.clone.git("rev-parse", "HEAD"), "begins with question.yaml"),
    "a blob in its place": (lambda s, _g: s.clone.git("rev-parse", "HEAD:README"), "is a blob, not a commit"),
}


def forged(asked: Gate, **changes: str) -> Answer:
    plain = Answer(asked.id, {"answer": "Postgres"}, "answered", "2030-01-01T00:00:00Z", asked.tip, EVE)
    return replace(plain, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_named(alone: Seat, attack: str) -> None:
    """With the gate and the commit; the gates beside it are checked all the same."""
    gate, beside = gate_of(alone), gate_of(alone)
    how, words = ATTACKS[attack]
    tip = how(alone, gate)
    point(alone, gate, tip)
    point(alone, beside, with_message(alone, beside, "no trailers\n"))
    done = audit(alone.desk)
    (found,) = [problem for problem in done.problems if problem.gate == gate.id and problem.kind == "record"]
    assert words in found.words
    assert tip.startswith(found.commit) or found.commit == tip
    assert [problem.kind for problem in done.problems if problem.gate == beside.id][:1] in (
        ["message"],
        ["record"],
    )
    assert done.gates == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            ("Hitl-State: awaiting", "Hitl-State: answered"),
            "says State: 'answered'; the record means 'awaiting'",
        ),
        (("Hitl-Priority: normal", "Hitl-Priority: urgent"), "says Priority: 'urgent'"),
        (("Hitl-Title: Which database?\n", ""), "says Title: 'nothing'; the record means 'Which database?'"),
        (("\nHitl-State", "\nHitl-Closed: yes\nHitl-State"), "says Closed: 'yes'; the record has none"),
        (("\nHitl-State", "\nHitl-State: awaiting\nHitl-State"), "does not end with trailers"),
        (("Which database?", "Which \x1b[31mdatabase?"), "does not end with trailers"),
        (("Which database?", "\udcff"), "its message is not UTF-8"),
        (("Hitl-", "X-"), "does not end with trailers"),
        (
            (" asks: ", " was answered: "),
            "its subject is 'coder was answered: Which database?'; the record means",
        ),
        (("?\n\n", "?!\n\n"), "its subject is "),
    ],
)
def test_a_message_that_says_something_else(alone: Seat, change: tuple[str, str], words: str) -> None:
    """Lists believe it: so a contradiction is an error."""
    gate = gate_of(alone)
    message = alone.desk.records.commit(gate.tip).message.replace(*change)
    later = with_message(alone, gate, message.encode("utf-8", "surrogateescape"))
    point(alone, gate, later)
    (problem,) = audit(alone.desk).problems
    assert (problem.gate, problem.commit, problem.kind) == (gate.id, later, "message")
    assert words in problem.words


def test_a_message_of_later_words_is_no_contradiction(alone: Seat) -> None:
    """Another version may say more."""
    gate = gate_of(alone)
    message = alone.desk.records.commit(gate.tip).message
    point(alone, gate, with_message(alone, gate, f"{message}Hitl-Mood: fine\n"))
    assert lines(alone) == []


def test_attachments_are_there_and_are_files(alone: Seat) -> None:
    """Each that the question names."""
    gate = asked(alone, attachments={"a.txt": b"x"}).gate
    records = alone.desk.records
    data = events.dump_event(gate.opened)
    tip = records.write_commit(
        records.write_files({"question.yaml": data}), (), BY, records.commit(gate.tip).message
    )
    point(alone, gate, tip)
    assert lines(alone) == ["attachment: its record holds no file attachments/a.txt"]


def test_a_form_is_held_against_its_schema(alone: Seat) -> None:
    """Whoever wrote the answer without us may have left that out."""
    gate = gate_of(alone, FORM)
    said = replace(forged(gate), values={"f": {"number": 3}})
    after = alone.desk.records.write_event(gate, "answered", said, BY)
    point(alone, gate, after.tip)
    (line,) = lines(alone)
    assert line.startswith("form: f: the form does not fit its schema")
    good = gate_of(alone, FORM)
    say(alone, good, '{"count": 3}')
    assert lines(alone, good.id) == []


# The work


def dirty(seat: Seat) -> Gate:
    seat.clone.write("README", "changed\n")
    seat.clone.git("add", "README")
    seat.clone.write("README", "changed twice\n")
    return gate_of(seat)


def asked_with(seat: Seat, **work: object) -> Gate:
    """A gate whose question names other work than was taken."""
    gate = dirty(seat)
    opened = replace(gate.opened, work=replace(gate.opened.work, **work))  # type: ignore[arg-type]
    made = seat.desk.records.write_opened(opened, {}, BY)
    seat.clone.git("update-ref", "-d", OPEN + gate.id)
    seat.clone.git("update-ref", "-d", f"refs/hitl/work/{gate.id}")
    point(seat, made, made.tip)
    if made.opened.work.commit is not None:
        seat.clone.git("update-ref", f"refs/hitl/work/{made.id}", made.opened.work.commit)
    return made


def test_work_that_is_as_it_was_named(alone: Seat) -> None:
    """Staged and unstaged, on its base."""
    assert dirty(alone).opened.work.dirty
    assert lines(alone) == []


def test_work_that_stands_on_something_else(alone: Seat) -> None:
    """An approval is for these trees on this base."""
    head = alone.clone.git("rev-parse", "HEAD")
    first = dirty(alone)
    work = first.opened.work
    assert work.staged is not None
    asked_with(alone, staged=head)
    asked_with(alone, base=work.staged)
    asked_with(alone, dirty=False)
    assert sorted(lines(alone)) == [
        "work: it says that nothing was uncommitted, but names other work than its base",
        f"work: its work does not stand on what it says was staged ({head[:12]})",
        f"work: what was staged does not stand on the base that it names ({work.staged[:12]})",
    ]


def test_a_work_ref_that_was_moved(alone: Seat) -> None:
    """It is not what the question names."""
    gate = dirty(alone)
    alone.clone.git("update-ref", f"refs/hitl/work/{gate.id}", "HEAD")
    (line,) = lines(alone)
    assert "is not the work that the question names" in line


def test_a_work_ref_that_is_gone_where_it_was_asked(alone: Seat) -> None:
    """Git may delete the work; elsewhere it may never have been."""
    gate = dirty(alone)
    alone.clone.git("update-ref", "-d", f"refs/hitl/work/{gate.id}")
    (line,) = lines(alone)
    assert "is gone: git may delete the work at any time" in line


def test_work_that_is_not_here_is_a_note(alone: Seat) -> None:
    """It stayed in the clone of its agent."""
    gate = dirty(alone)
    work = replace(gate.opened.work, commit="1" * 40)
    made = alone.desk.records.write_opened(
        replace(gate.opened, work=work, asked=replace(gate.opened.asked, host="elsewhere")), {}, BY
    )
    point(alone, made, made.tip)
    done = audit(alone.desk)
    assert done.problems == ()
    assert [note.words for note in done.notes] == ["its work is not in this repository"]


def test_a_gate_without_work(alone: Seat) -> None:
    """Nothing to check."""
    made = alone.desk.records.write_opened(
        replace(gate_of(alone).opened, work=Work(None, None, None)), {}, BY
    )
    point(alone, made, made.tip)
    assert lines(alone, made.id) == []


# Refs


@pytest.mark.parametrize("folder", ["work", "sessions", "leases"])
def test_a_ref_without_its_gate(alone: Seat, folder: str) -> None:
    """Left over, or planted."""
    alone.clone.git("update-ref", f"refs/hitl/{folder}/kkkkkkkkkk", "HEAD")
    assert lines(alone) == [f"orphan: refs/hitl/{folder}/kkkkkkkkkk belongs to no gate here"]


def test_a_ref_that_is_no_gates_id(alone: Seat) -> None:
    """Neither list nor sync would make anything of it."""
    gate = gate_of(alone)
    alone.clone.git("update-ref", OPEN + "not-an-id", gate.tip)
    assert lines(alone) == ["record: 'not-an-id' is no gate's id"]


def test_a_gate_that_is_open_again_after_it_was_archived(alone: Seat, clock: Clock) -> None:
    """A stale clone brought it back; or folding was killed between its two steps."""
    gate = gate_of(alone)
    say(alone, gate)
    closed = alone.now(gate)
    clock.pass_by(10)
    assert fold_closed(alone.desk).folded == (gate.id,)
    point(alone, gate, gate.tip)
    alone.clone.git("update-ref", f"refs/hitl/work/{gate.id}", "HEAD")
    (line,) = lines(alone)
    assert line.startswith(f"duplicate: it is archived ({closed.tip[:12]}), and open again")
    point(alone, gate, closed.tip)
    done = audit(alone.desk)
    assert done.problems == ()
    assert ["its open ref not yet gone" in note.words for note in done.notes] == [True]
    alone.clone.git("update-ref", "-d", OPEN + gate.id)
    assert [note.kind for note in audit(alone.desk).notes] == ["orphan"]
    assert lines(alone, gate.id[:6]) == []


def test_an_archive_that_lost_or_gained_what_it_must_not(alone: Seat) -> None:
    """A fold that drops a gate, and one that took in a gate that waits: no hook of ours was there."""
    over, waits = alone.ask(), alone.ask()
    answering.stop(alone.desk, over, "over", push=False)
    (gone,) = fold_closed(alone.desk).folded
    assert lines(alone) == []
    ((ref, fold),) = alone.clone.refs("refs/hitl/archive").items()
    empty = alone.clone.git("hash-object", "-t", "tree", "-w", "--stdin")
    alone.clone.git("update-ref", ref, alone.clone.git("commit-tree", empty, "-p", fold, "-m", "x"))
    (said,) = lines(alone)
    assert f"takes '{gone[:2]}' out of the archive" in said
    objects = open_objects(alone.clone.repository, bulk=True)
    wrong = Binder(alone.clone.repository, objects, BY).fold("2026-01", fold, [(waits.id, waits.tip)])
    alone.clone.git("update-ref", ref, wrong)
    assert "archive: it is archived, and was not closed: it is awaiting" in lines(alone)


def test_gates_are_named_by_prefix(alone: Seat) -> None:
    """Only those; what is wrong elsewhere is not asked."""
    gate, other = gate_of(alone), gate_of(alone)
    point(alone, other, with_message(alone, other, "x\n"))
    assert lines(alone, gate.id[:4]) == []
    assert len(lines(alone, other.id.upper(), gate.id)) == 1
    for unknown in ("zz", "kkkkkkkkkk", "-x"):
        with pytest.raises(UnknownGate, match="open or archived"):
            audit(alone.desk, [unknown])


def test_an_ambiguous_prefix_says_which(alone: Seat) -> None:
    """All that it could be."""
    gate = gate_of(alone)
    twin = gate.id[:9] + ("2" if gate.id[9] != "2" else "3")
    alone.clone.git("update-ref", OPEN + twin, gate.tip)
    with pytest.raises(AmbiguousGate, match=twin):
        audit(alone.desk, [gate.id[:5]])


# What the remote had


def test_an_answer_that_was_dropped_on_the_remote(ann: Seat, bob: Seat) -> None:
    """The clone that knew it says so."""
    gate = gate_of(ann)
    say(ann, gate)
    server = "refs/gitgate/origin/open/" + gate.id
    other = ann.desk.records.write_event(gate, "commented", Remark("2030-01-01T00:00:00Z", EVE, "hm"), BY)
    assert lines(ann) == []
    ann.clone.git("update-ref", server, other.tip)
    (line,) = lines(ann)
    assert line.startswith("shared: answered: origin has it not: it was dropped there, or both sides went on")


def test_an_answer_that_was_slipped_in_before_another(ann: Seat, bob: Seat) -> None:
    """The remote's record has ours only after something that was not there."""
    gate = gate_of(ann)
    answered = say(ann, gate).gate
    records = ann.desk.records
    planted_first = records.write_event(gate, "answered", forged(gate), BY)
    slipped = records.repeat(planted_first, answered.history[-1], BY, answered.tip)
    ann.clone.git("update-ref", "refs/gitgate/origin/open/" + gate.id, slipped.tip)
    (line,) = lines(ann)
    assert "origin counts it only after something else: that was slipped in before it" in line


def test_what_the_remote_has_may_be_broken_or_ahead(ann: Seat, bob: Seat) -> None:
    """Ahead and behind are no problem; broken is."""
    gate = gate_of(ann)
    sync(bob.desk)
    say(bob, gate)
    sync(ann.desk)
    answering.comment(ann.desk, ann.now(gate), "thanks", push=False)
    assert lines(ann) == []
    point(ann, gate, gate.tip)
    assert lines(ann) == []
    ann.clone.git("update-ref", "refs/gitgate/origin/open/" + gate.id, "HEAD")
    (line,) = lines(ann)
    assert line.startswith("shared: what origin has of it is broken")


# A branch, in CI


def test_a_branch_is_resolved(alone: Seat, clock: Clock) -> None:
    """Waiting, expired and failed are reasons; an answer, a refusal, an end by a person are not."""
    answered, rejected, stopped = gate_of(alone), gate_of(alone, GO), gate_of(alone)
    say(alone, answered)
    approve(alone, rejected, yes=False)
    answering.stop(alone.desk, stopped, "no more")
    assert lines(alone, branch="main") == []
    gate_of(alone, TEXT, title="Which name?")
    expired = gate_of(alone, timeout=5)
    clock.pass_by(10)
    from gitgate.acts import find_gate

    find_gate(alone.desk, expired.id)
    assert sorted(lines(alone, branch="main")) == [
        "branch: it awaits an answer: Which name?",
        "branch: nobody answered it in time: Which database?",
    ]
    alone.clone.git("branch", "other")
    assert lines(alone, branch="other") == []
    assert lines(alone) == []


def test_a_broken_gate_of_the_branch_fails_it(alone: Seat) -> None:
    """Also one that does not even say which branch it is of; not one that says another."""
    mine, other, silent = gate_of(alone), gate_of(alone), gate_of(alone)
    message = alone.desk.records.commit(other.tip).message
    for gate, words in (
        (mine, message),
        (other, message.replace("Branch: main", "Branch: elsewhere")),
        (silent, "nothing\n"),
    ):
        tip = planted(alone, gate, ".hitl/x.yaml", b"x")
        point(alone, gate, with_message(alone, replace(gate, tip=tip), words))
    found = {problem.gate for problem in audit(alone.desk, branch="main").problems}
    assert found == {mine.id, silent.id}


def test_a_check_that_knows_nothing_does_not_pass(bob: Seat, alone: Seat) -> None:
    """A clone that never synced has no gates, and no right to say that all is well."""
    with pytest.raises(Failure, match="never synced"):
        refuse_unsynced(bob.desk)
    sync(bob.desk)
    refuse_unsynced(bob.desk)
    refuse_unsynced(alone.desk)


# The command


def test_the_command_names_what_is_wrong(alone: Seat, cli: Command) -> None:
    """One line a problem on stdout, and exit 1; nothing there and 0 where all holds."""
    gate = gate_of(alone)
    fine = cli.quick("verify", code=0)
    assert (fine.out, fine.err.strip()) == ("", "1 gate, 1 event: nothing is wrong")
    point(alone, gate, with_message(alone, gate, "x\n"))
    wrong = cli.quick("verify", gate.id[:5], code=1)
    tip = alone.clone.git("rev-parse", OPEN + gate.id)
    assert wrong.line.startswith(f"{gate.id} {tip[:12]} its message does not end with trailers")
    assert "1 problem" in wrong.err
    found = cli.quick("verify", "--json", code=1).json
    assert found["schema"] == "gitgate.verify/v1"
    assert (found["ok"], found["gates"]) == (False, 1)
    assert found["problems"][0]["commit"] == tip
    assert cli.quick("verify", "zzzz", code=1).out == ""


def test_the_command_as_a_check_of_a_branch(alone: Seat, cli: Command) -> None:
    """Exit 1 says what it waits for."""
    gate_of(alone)
    assert "it awaits an answer: Which database?" in cli.quick("verify", "--branch", "main", code=1).line
    alone.clone.git("branch", "other")
    assert cli.quick("verify", "--branch", "other", code=0).out == ""


def test_a_branch_that_nobody_has_is_a_mistake(ann: Seat, cli: Command) -> None:
    """A check of it would pass everything. One that only the remote has, or that a job is about, is none."""
    here = ann.clone.path
    ann.clone.git("push", "-q", "origin", "HEAD:refs/heads/theirs")
    ann.clone.git("update-ref", "-d", "refs/remotes/origin/theirs")
    sync(ann.desk)
    assert cli.quick("verify", "--branch", "theirs", cwd=here, code=0).out == ""
    said = cli.quick("verify", "--branch", "mian", cwd=here, code=1).err
    assert "there is no branch mian, here or at origin" in said
    assert "git gate verify --branch main" in said
    assert (
        cli.quick("verify", "--branch", "mian", cwd=here, env={"GITHUB_HEAD_REF": "mian"}, code=0).out == ""
    )


def test_a_bare_server_is_checked(bare: Clone, ann: Seat, cli: Command) -> None:
    """Where the auditor may well be."""
    gate_of(ann)
    assert "1 gate" in cli.quick("verify", cwd=bare.path, code=0).err


def test_progress_is_told(alone: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """On many gates."""
    from gitgate.audit import auditing

    monkeypatch.setattr(auditing, "EVERY", 2)
    for _ in range(4):
        gate_of(alone, wishes=AskWishes(work=False))
    desk = alone.desk
    said: list[str] = []
    desk.progress = said.append
    audit(desk)
    assert said == ["checking gates: 2 of 4", "checking gates: 4 of 4"]
