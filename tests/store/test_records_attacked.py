"""Records: every way to slip something in, or out, is refused in words that say what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gitgate.errors import BrokenRecord
from gitgate.model import gate_id
from gitgate.model.gate import Answer, Question, Remark
from gitgate.record import events
from gitgate.store import records
from gitgate.store.git.canonical import EXECUTABLE, FOLDER, MODES, REGULAR, TreeEntry, dump_commit, dump_tree
from gitgate.store.git.objects import COMMIT, TREE, PlumbingObjects, open_objects
from gitgate.store.records import Records
from support.forging import BY, EMPTY_TREE, Bench, answer_file
from support.histories import ADA, BOB, EARLY, EVE, TEXT, oid, opened, remark
from support.testbed.memory import MemoryObjects
from support.testbed.repositories import Clone


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_planted_file_is_no_answer(bench: Bench) -> None:
    """A `.hitl` folder, or anything else that is no folder of events."""
    for path in (".hitl/answer.yaml", "decisions/x.yaml", "Answers/x.yaml", "answers /x.yaml"):
        bench.refused(bench.with_file(bench.gate.tip, path, answer_file(bench)), "is no folder of events")
    top = bench.top(bench.gate.tip)
    top[b"answer.yaml"] = TreeEntry(REGULAR, b"answer.yaml", bench.blob(b"hitl: 1\n"))
    bench.refused(bench.commit(top, bench.gate.tip), "is no folder of events")
    top = {**bench.top(bench.gate.tip), b".hitl": TreeEntry(FOLDER, b".hitl", EMPTY_TREE)}
    bench.refused(bench.commit(top), "begins with question.yaml and attachments alone")


def test_a_question_that_was_rewritten_belongs_to_another_gate(bench: Bench) -> None:
    """In the first commit its id gives it away; later it is a change of what was asked."""
    data = events.dump_event(replace(bench.gate.opened, title="Give Eve the keys?"))
    top = bench.top(bench.gate.tip)
    top[b"question.yaml"] = TreeEntry(REGULAR, b"question.yaml", bench.blob(data))
    bench.refused(bench.commit(top), f"its question was rewritten; it belongs to gate {gate_id(data)}")
    bench.refused(bench.commit(top, bench.gate.tip), "adds or changes 'question.yaml'")


@pytest.mark.parametrize("mode", [EXECUTABLE, "120000", "160000", FOLDER, "100664", "100600"])
def test_a_question_is_a_regular_file(bench: Bench, mode: str) -> None:
    """No link, no program, no folder."""
    top = bench.top(bench.gate.tip)
    top[b"question.yaml"] = top[b"question.yaml"]._replace(mode=mode)
    words = "begins with question.yaml" if mode in MODES else "which git does not write"
    bench.refused(bench.commit(top), words)


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (EXECUTABLE, "as an executable"),
        ("120000", "as a symbolic link"),
        ("160000", "as a submodule"),
    ],
)
def test_an_event_is_a_regular_file(bench: Bench, mode: str, words: str) -> None:
    """Nothing that would act, or lead elsewhere, when somebody checks it out."""
    tip = bench.with_file(bench.gate.tip, "answers/x.yaml", answer_file(bench), mode=mode)
    bench.refused(tip, f"adds answers/x.yaml {words}, not as a regular file")


@pytest.mark.parametrize("mode", ["100600", "100664", "0100644", "40755"])
def test_a_mode_that_git_does_not_write(bench: Bench, mode: str) -> None:
    """A clone that has git check what it fetches would take nothing at all."""
    tip = bench.with_file(bench.gate.tip, "answers/x.yaml", answer_file(bench), mode=mode)
    bench.refused(tip, "which git does not write")


def test_a_folder_of_events_is_a_folder(bench: Bench) -> None:
    """Not a file or a link of that name."""
    for mode in (REGULAR, "120000"):
        top = bench.top(bench.gate.tip)
        top[b"answers"] = TreeEntry(mode, b"answers", bench.blob(b"../other"))
        bench.refused(bench.commit(top, bench.gate.tip), "is no folder of events")


@pytest.mark.parametrize(
    "name", ["x", "x.yml", "-x.yaml", ".x.yaml", "..", "x\n.yaml", "é.yaml", "a" * 200 + ".yaml", "x.yaml "]
)
def test_an_event_has_a_plain_name(bench: Bench, name: str) -> None:
    """Nothing that means something else to a shell or another system."""
    bench.refused(
        bench.with_file(bench.gate.tip, f"answers/{name}", answer_file(bench)),
        "called something.yaml|which no file may have",
    )


def test_two_files_in_one_commit(bench: Bench) -> None:
    """In one folder or in two: whose words would the signature be for?"""
    one = bench.with_file(bench.gate.tip, "answers/x.yaml", answer_file(bench))
    same = bench.with_file(one, "answers/y.yaml", answer_file(bench, BOB), bench.gate.tip)
    bench.refused(same, "changes 'x.yaml', 'y.yaml' in answers/; each event adds exactly one file")
    two = bench.with_file(one, "comments/y.yaml", events.dump_event(remark()), bench.gate.tip)
    bench.refused(two, "changes 'answers', 'comments' in the record")


def test_a_commit_that_adds_nothing(bench: Bench) -> None:
    """Is no event."""
    bench.refused(bench.commit(bench.top(bench.gate.tip), bench.gate.tip), "changes nothing in the record")


@pytest.mark.parametrize("how", ["dropped", "emptied", "rewritten", "renamed"])
def test_an_answer_does_not_go_away(bench: Bench, how: str) -> None:
    """Dropped, changed or renamed by a later commit."""
    answered = bench.with_file(bench.gate.tip, "answers/x.yaml", answer_file(bench))
    top = bench.top(answered)
    if how == "dropped":
        del top[b"answers"]
        top[b"comments"] = TreeEntry(
            FOLDER, b"comments", bench.folder(("y.yaml", events.dump_event(remark())))
        )
        bench.refused(bench.commit(top, answered), "removes 'answers' from the record")
        return
    files = {
        "emptied": (),
        "rewritten": (("x.yaml", answer_file(bench, text="SQLite")),),
        "renamed": (("y.yaml", answer_file(bench)),),
    }[how]
    top[b"answers"] = TreeEntry(FOLDER, b"answers", bench.folder(*files))
    words = {"rewritten": "rewrites answers/x.yaml; an event is only ever added"}
    bench.refused(bench.commit(top, answered), words.get(how, "removes 'x.yaml' from answers/"))


def test_a_merge_that_drops_an_answer(bench: Bench) -> None:
    """Its second parent has the answer; its first, and its tree, have not."""
    answered = bench.with_file(bench.gate.tip, "answers/x.yaml", answer_file(bench))
    merged = bench.with_file(
        bench.gate.tip, "comments/y.yaml", events.dump_event(remark()), bench.gate.tip, answered
    )
    bench.refused(merged, f"says something else than {answered[:12]}, which it records again")


def test_an_answer_slipped_in_as_first_parent(bench: Bench) -> None:
    """The old tip is an ancestor, and yet the record does not go on from it: whoever knew it sees that."""
    root = bench.gate.tip
    theirs = bench.with_file(root, "answers/x.yaml", answer_file(bench, ADA))
    planted = bench.with_file(root, "answers/e.yaml", answer_file(bench, EVE))
    slipped = bench.with_file(planted, "answers/x.yaml", answer_file(bench, ADA), planted, theirs)
    assert theirs not in [oid for oid, _ in bench.records.chain(bench.gate.id, slipped)]
    other = bench.with_file(planted, "comments/x.yaml", events.dump_event(remark()), planted, theirs)
    bench.refused(other, "says something else than")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gate": "kkkkkkkkkk"}, "is for gate kkkkkkkkkk"),
        ({"seen": oid(1)}, "names a commit as seen that is not in the record"),
        ({"by": ""}, "it is nobody's"),
        ({"verdict": "approved"}, "it says approved"),
        ({"verdict": "defaulted", "by": ""}, "a default was not to apply"),
    ],
)
def test_an_answer_copied_from_elsewhere(bench: Bench, change: dict[str, Any], words: str) -> None:
    """It names its gate and what was seen; both have to be this one's."""
    bench.refused(bench.with_file(bench.gate.tip, "answers/x.yaml", answer_file(bench, **change)), words)


def test_an_answer_of_another_gate_with_its_commit(bench: Bench) -> None:
    """The whole commit taken over, signature and all."""
    other = Bench(opened(Question("answer", "Delete it all?", "text")))
    other.records.objects = bench.objects = bench.records.objects
    stranger = bench.records.write_opened(other.gate.opened, {}, BY)
    said = bench.records.write_event(
        stranger, "answered", Answer(stranger.id, {"answer": "yes"}, "answered", EARLY, stranger.tip, ADA), BY
    )
    bench.refused(said.tip, "its question was rewritten")
    data = bench.records.file_of(said.history[-1])
    bench.refused(bench.with_file(bench.gate.tip, "answers/x.yaml", data), f"is for gate {stranger.id}")
    again = bench.with_file(bench.gate.tip, "answers/x.yaml", data, bench.gate.tip, said.tip)
    bench.refused(again, "records again what was said of another gate")


def test_an_answer_replayed(bench: Bench) -> None:
    """The same bytes once more, before or after the decision, count for nothing; other words after it are no event."""
    for quorum in (1, 2):
        bench = Bench(opened(TEXT, quorum=quorum))
        bench.add("answered", bench.said())
        data = bench.records.file_of(bench.gate.history[-1])
        copied = bench.with_file(bench.gate.tip, "answers/again.yaml", data)
        after = bench.records.load(bench.gate.id, copied)
        assert after.history[-1].name == "repeated"
        assert replace(after, tip="", history=()) == replace(bench.gate, tip="", history=())
    bench = Bench()
    bench.add("answered", bench.said())
    other = answer_file(bench, BOB, seen=bench.gate.tip)
    bench.refused(bench.with_file(bench.gate.tip, "answers/x.yaml", other), "the gate is already answered")


def forged(bench: Bench) -> dict[str, Callable[[str], str]]:
    """Ways to have somebody's signed commit stand for words that are not theirs."""
    root = bench.gate.tip
    signed = bench.with_file(root, "comments/x.yaml", events.dump_event(remark(by=ADA)))
    data = answer_file(bench, ADA)

    def merge(*parents: str) -> Callable[[str], str]:
        return lambda tip: bench.with_file(tip, "answers/x.yaml", data, tip, *parents)

    return {
        "another file": merge(signed),
        "the question itself": merge(root),
        "a commit of the work": merge(bench.commit({}, bench.commit({}))),
        "a root": merge(bench.commit({})),
        "several": merge(signed, root),
    }


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("another file", "says something else than"),
        ("the question itself", "records again what no event of this gate is"),
        ("a commit of the work", "changes nothing in the record"),
        ("a root", "records again what no event of this gate is"),
        ("several", "has 3 parents"),
    ],
)
def test_a_signed_commit_vouches_only_for_its_own_words(bench: Bench, how: str, words: str) -> None:
    """As second parent its signature is what is checked: so it has to say the very same."""
    bench.refused(forged(bench)[how](bench.gate.tip), words)


def test_a_damaged_document_is_a_broken_record(bench: Bench) -> None:
    """With the file and the line; and no usage error, for it is nobody's who reads."""
    for data, words in (
        (b"\xff", "expected UTF-8"),
        (b"hitl: 1\nat: 5\n", "line 2: at"),
        (b"a: &x 1\n", "no anchor"),
    ):
        bench.refused(bench.with_file(bench.gate.tip, "comments/x.yaml", data), words)
    bench.refused(
        bench.with_file(bench.gate.tip, "comments/x.yaml", b"x: y\n" * 300_000), "at most 1,048,576 bytes"
    )


def test_a_huge_tree_is_not_read(bench: Bench) -> None:
    """A million names in a folder would cost every reader."""
    blob = bench.blob(b"x")
    huge = bench.tree(TreeEntry(REGULAR, b"%08d.yaml" % number, blob) for number in range(20_000))
    top = bench.top(bench.gate.tip)
    top[b"answers"] = TreeEntry(FOLDER, b"answers", huge)
    bench.refused(bench.commit(top, bench.gate.tip), "is larger than that of any record")


def test_one_name_twice_in_a_tree(bench: Bench) -> None:
    """Two readers would see two different files."""
    blob = bench.blob(answer_file(bench))
    raw = dump_tree(
        [TreeEntry(REGULAR, b"x.yaml", blob), TreeEntry(REGULAR, b"x.yaml", bench.blob(b"other"))]
    )
    top = bench.top(bench.gate.tip)
    top[b"answers"] = TreeEntry(FOLDER, b"answers", bench.objects.write(TREE, raw))
    bench.refused(bench.commit(top, bench.gate.tip), "has one name twice")


def test_what_is_no_commit_tree_or_file(bench: Bench) -> None:
    """Objects of the wrong kind in each place."""
    blob = bench.blob(b"x")
    with pytest.raises(BrokenRecord, match="is a blob, not a commit"):
        bench.records.load(bench.gate.id, blob)
    with pytest.raises(BrokenRecord, match="is a blob, not a tree"):
        bench.records.load(bench.gate.id, bench.objects.write(COMMIT, dump_commit(blob, (), BY.who, 1, "x")))
    top = bench.top(bench.gate.tip)
    top[b"question.yaml"] = TreeEntry(REGULAR, b"question.yaml", EMPTY_TREE)
    bench.objects.write(TREE, b"")
    with pytest.raises(BrokenRecord, match="is a tree, not a file"):
        bench.records.load(bench.gate.id, bench.commit(top))
    with pytest.raises(BrokenRecord, match="is not in this repository"):
        bench.records.load(bench.gate.id, bench.commit(bench.top(bench.gate.tip), "1" * 40))


def test_a_second_question_is_no_event(bench: Bench) -> None:
    """A record that stands on another one's end."""
    gate = Bench(opened(TEXT, nonce="other"))
    tip = bench.objects.write(COMMIT, dump_commit(EMPTY_TREE, (bench.gate.tip,), BY.who, 1, "x"))
    bench.objects.write(TREE, b"")
    bench.refused(tip, "removes 'question.yaml'")
    with pytest.raises(BrokenRecord):
        bench.records.load(gate.gate.id, bench.gate.tip)


def test_a_loop_of_first_parents_has_an_end(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """No git makes one; a store that lies does not hang the reader."""
    monkeypatch.setattr(records, "MOST_EVENTS", 50)
    assert isinstance(bench.objects, MemoryObjects)
    loop = "2" * 40
    bench.objects.known[loop] = (COMMIT, dump_commit(EMPTY_TREE, (loop,), BY.who, 1, "x"))
    bench.refused(loop, "has more than 50 events")


def test_replace_refs_and_grafts_do_not_change_a_record(repo: Clone) -> None:
    """What git would show instead is not what was recorded."""
    objects = PlumbingObjects(repo.repository.git)
    real = Records(repo.repository, objects)
    gate = real.write_opened(opened(TEXT), {}, BY)
    fake = Answer(gate.id, {"answer": "no"}, "answered", EARLY, gate.tip, EVE)
    true = real.write_event(gate, "answered", replace(fake, values={"answer": "yes"}, by=ADA), BY)
    false = real.write_event(gate, "answered", fake, BY)
    repo.git("replace", "-f", true.tip, false.tip)
    repo.git("replace", "--graft", gate.tip, repo.git("rev-parse", "HEAD"))
    objects.close()
    for bulk in (False, True):
        store = open_objects(repo.repository, bulk=bulk)
        loaded = Records(repo.repository, store).load(gate.id, true.tip)
        assert loaded.answer is not None
        assert loaded.answer.answer.by == ADA
        store.close()


def test_a_remark_is_as_it_was_said(bench: Bench) -> None:
    """Hostile text is data."""
    words = "\x1b[2J\u202e$(rm -rf ~) `x` \n---\n- &a *a !!python/object:os.system {{ }} 'é'\t\n"
    bench.add("commented", Remark(EARLY, ADA, words))
    loaded = bench.records.load(bench.gate.id, bench.gate.tip)
    assert loaded.history[-1].event == Remark(EARLY, ADA, words)
    assert "\x1b" not in bench.records.commit(bench.gate.tip).message
