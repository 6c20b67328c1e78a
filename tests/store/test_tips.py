"""Tips: what a list reads of all open gates at once is what each one's commit says, whoever wrote it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate import record
from gitgate.errors import BrokenRecord, GitFailed
from gitgate.record import FEW, FIELDS, Summary, by_pressure, read_summaries, summary_of, usual
from gitgate.store.git import refs as tips_module
from gitgate.store.git.canonical import is_sound_commit
from gitgate.store.git.refs import OPEN, Refs
from support.histories import DUE, GATE, History, opened
from support.misreading import EVERY
from support.testbed.repositories import Clone

MARK = b"0123456789abcdef01234567"
OID = "a" * 40
HEADER = f"tree {'1' * 40}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\n"


def listed(refs: Refs) -> list[Summary]:
    tips = refs.tips()
    return [found for run in tips.runs() for found in read_summaries(run, tips.mark, OPEN, is_sound_commit)]


def printed(message: str, gate: str = GATE, header: str = HEADER) -> bytes:
    """A tip as git prints it."""
    whole = f"{header}{message}".encode()
    return MARK + f" {OPEN}{gate} commit {len(whole)} {OID}\n".encode() + whole + b"\n"


def message_of(**terms: object) -> str:
    gate = History.begin(opened(**terms)).gate
    return record.message("opened", gate.opened, gate)


@given(
    st.lists(
        st.builds(
            message_of,
            title=st.text(min_size=1),
            deadline=st.sampled_from([None, DUE]),
            key=st.one_of(st.none(), st.text()),
            to=st.lists(st.text(min_size=1), max_size=2).map(tuple),
            config=st.sampled_from([{}, {"pull_request": 12}]),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_many_are_read_as_each_one(messages: list[str]) -> None:
    """The expression for thousands gives what reading the trailers one by one gives."""
    many = [messages[number % len(messages)] for number in range(FEW + 1)]
    assert list(read_summaries(b"".join(map(printed, many)), MARK, OPEN, is_sound_commit)) == [
        summary_of(GATE, OID, message) for message in many
    ]


def test_what_we_write_is_usual() -> None:
    """Each event's message, also of an answered gate and a signed commit, is one that the expression reads."""
    history = History.begin(opened(deadline=DUE, to=("ada",), key="k", config={"pull_request": 1}))
    signed = HEADER.replace("\n\n", "\ngpgsig -----BEGIN\n \n x\n -----END\n\n")
    messages = [message_of(), record.message("opened", history.gate.opened, history.gate)]
    after = history.answer("Postgres")
    messages.append(record.message("answered", after.history[-1].event, after))
    usual = record.usual(MARK.decode(), OPEN, len(OID))
    for message in messages:
        for header in (HEADER, signed):
            (found,) = usual.findall(printed(message, header=header).decode())
            assert Summary._make(found) == summary_of(GATE, OID, message)
    assert len(FIELDS) == len(Summary._fields) - 2


@pytest.mark.parametrize(
    ("message", "gate"),
    [
        (message_of(), "bcdefghjkm"),
        (message_of().replace("Hitl-State", "Hitl-Estate"), GATE),
        (f"{message_of()}\nmore words\n", GATE),
        (message_of() + message_of(), GATE),
        (f"x\n{OPEN}{GATE} commit 1 {OID}\ntree\n\n{message_of()}", "bcdefghjkm"),
        (message_of().replace("Which?", "\x1b[2J"), GATE),
        ("no trailers", GATE),
        ("", GATE),
    ],
)
def test_a_forged_tip_stays_its_own_and_broken(message: str, gate: str) -> None:
    """Nothing in a message passes for another gate's, and its neighbours are read all the same."""
    many = [printed(message_of())] * FEW + [printed(message, gate)] + [printed(message_of())]
    found = list(read_summaries(b"".join(many), MARK, OPEN, is_sound_commit))
    assert [each.id for each in found] == [GATE] * FEW + [gate, GATE]
    assert found[FEW] == summary_of(gate, OID, message)
    assert {each.state for each in [*found[:FEW], found[-1]]} == {"awaiting"}


@pytest.mark.parametrize(
    "state", ["** ![x](https://x.example/x.png) @everyone", "open", "answered ", "stalled"]
)
@pytest.mark.parametrize("others", [0, FEW])
def test_a_state_that_no_gate_has_is_broken(state: str, others: int) -> None:
    """Whoever pushes writes it: it stands in lists, and on a job's page, outside of any code."""
    forged = message_of().replace("State: awaiting", f"State: {state}")
    found = list(
        read_summaries(
            b"".join([*[printed(message_of())] * others, printed(forged)]), MARK, OPEN, is_sound_commit
        )
    )
    assert found[-1] == record.broken_summary(GATE, OID)
    assert {each.state for each in found[:-1]} <= {"awaiting"}


def test_tips_are_whole_messages(repo: Clone) -> None:
    """From a real repository, in the order of their refs: records, strangers, other kinds of objects."""
    refs = Refs(repo.repository)
    assert listed(refs) == []
    good = repo.commit(message_of(title="Où?"))
    bad = repo.commit("subject\twith tab\n\nbody é\n\nHitl-Gate: x")
    repo.git("tag", "-a", "-m", message_of(), "forged", good)
    names = {GATE: good, "bcdefghjkm": bad, "cdefghjkmn": "forged", "defghjkmnp": f"{good}:", "b/c": good}
    for name, oid in names.items():
        repo.git("update-ref", f"{OPEN}{name}", oid)
    found = {each.id: each for each in listed(refs)}
    assert list(found) == sorted(names)
    assert found[GATE] == summary_of(GATE, good, message_of(title="Où?"))
    assert {name for name, each in found.items() if each.state == "broken"} == set(names) - {GATE}


def test_an_enormous_object_takes_no_memory(repo: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever can push can put anything there; it is broken, and what comes after it is read."""
    monkeypatch.setattr(tips_module, "MOST_TIP", 10_000)
    monkeypatch.setattr(tips_module, "CHUNK", 1000)
    good = repo.commit(message_of())
    blob = repo.git("hash-object", "-w", "--stdin", input="x" * 100_000)
    large = repo.commit("y" * 50_000 + "\n\n" + message_of())
    last = GATE.replace("a", "z")
    for name, oid in (("2222222222", blob), ("3333333333", large), (GATE, good), (last, good)):
        repo.git("update-ref", f"{OPEN}{name}", oid)
    tips = Refs(repo.repository).tips()
    runs = list(tips.runs())
    assert sum(map(len, runs)) < 30_000
    found = [each for run in runs for each in read_summaries(run, tips.mark, OPEN, is_sound_commit)]
    assert [(each.id, each.state) for each in found] == [
        ("2222222222", "broken"),
        ("3333333333", "broken"),
        (GATE, "awaiting"),
        (last, "broken"),
    ]


@pytest.mark.parametrize("place", [0, 1])
def test_a_missing_object_is_named(repo: Clone, place: int) -> None:
    """It is said which one, not that git failed."""
    good, gone = repo.commit(message_of()), repo.commit("gone")
    for name, oid in zip(
        ("2222222222", "3333333333"), (gone, good) if place == 0 else (good, gone), strict=True
    ):
        repo.git("update-ref", f"{OPEN}{name}", oid)
    (repo.path / ".git" / "objects" / gone[:2] / gone[2:]).unlink()
    with pytest.raises(BrokenRecord, match=gone[:12]):
        listed(Refs(repo.repository))


def test_what_git_cannot_list_is_an_error(repo: Clone) -> None:
    """An empty list would be a lie."""
    refs = Refs(repo.repository)
    refs.git.env["GIT_DIR"] = str(repo.path / "nowhere")
    with pytest.raises(GitFailed):
        listed(refs)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["urgent", "high", "normal", "low", "?"]), st.sampled_from("123"), st.text("abc")
        )
    )
)
def test_the_most_pressing_comes_first(found: list[tuple[str, str, str]]) -> None:
    """By priority, the strange ones last; then by age; then by id."""
    rank = {"urgent": 0, "high": 1, "normal": 2, "low": 3, "?": 4}
    gates = [Summary(gate, OID, priority=priority, at=at) for priority, at, gate in found]
    assert by_pressure(gates) == sorted(gates, key=lambda each: (rank[each.priority], each.at, each.id))


# A chain that is shorter than it should be, which its record tells; and a name as earlier versions wrote it.
SOUND = ("parents in the message", "no address")


@pytest.mark.parametrize("name", [name for name in EVERY if name not in SOUND])
def test_what_git_reads_otherwise_is_broken(name: str) -> None:
    """Alone, and among so many that they are read at once; a signed one among them is none."""
    header = f"tree {OID}\nparent {OID}\n" + HEADER.partition("\n")[2]
    honest = printed(message_of(), header=header)
    whole = EVERY[name](f"{header}{message_of()}".encode())
    bad = MARK + f" {OPEN}{GATE} commit {len(whole)} {OID}\n".encode() + whole + b"\n"
    signed = printed(message_of(), header=header[:-1] + "gpgsig -----BEGIN\n x\n -----END\n\n")
    for some in ([bad], [honest] * FEW + [bad], [bad] + [honest] * FEW):
        found = list(read_summaries(b"".join(some), MARK, OPEN, is_sound_commit))
        assert [one.state for one in found].count("broken") == 1
        assert found[some.index(bad)] == record.broken_summary(GATE, OID)
    found = list(read_summaries(b"".join([signed] * (FEW + 1)), MARK, OPEN, is_sound_commit))
    assert {one.state for one in found} == {"awaiting"}
    assert len(usual(MARK.decode(), OPEN, len(OID)).findall((signed + honest).decode())) == 2
