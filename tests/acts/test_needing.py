"""An agent that ended saying that it needs a person: one gate for one need, however often it is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gitgate.acts import needs
from gitgate.acts.needs import (
    TURN_TIMEOUT,
    Signal,
    any_gate,
    ask_for,
    ask_for_call,
    note_writings,
    publish_sessions,
    signals,
    started,
    turn,
    writings,
)
from gitgate.errors import Conflict
from gitgate.model.gate import Gate
from gitgate.questions.signals import Need, read_need
from support import PATIENCE
from support.resuming import Seat, until
from support.testbed.repositories import Clone

NEED = Need("Which database?")
SESSION = "session-1"


def asked(seat: Seat, *signalled: Signal, need: Need | None = None) -> Gate | None:
    gates = ask_for(seat.desk, need, SESSION, signalled)
    assert len(gates) < 2
    return gates[0] if gates else None


def test_words_said_again_are_one_question(alone: Seat) -> None:
    """Until it is answered; said again after that, they are a new one."""
    first, again = asked(alone, need=NEED), asked(alone, need=NEED)
    assert first is not None
    assert again is not None
    assert first.id == again.id
    alone.answer(first)
    later = asked(alone, need=NEED)
    assert later is not None
    assert later.id != first.id


def test_one_that_never_stops_asking(alone: Seat, monkeypatch: pytest.MonkeyPatch) -> None:
    """After many rounds it is still asked: a need is never taken for one that was answered."""
    monkeypatch.setattr(needs, "MOST_ROUNDS", 1)
    ids = set()
    for _ in range(3):
        gate = asked(alone, need=NEED)
        assert gate is not None
        assert gate.state == "awaiting"
        ids.add(gate.id)
        alone.answer(gate)
    assert len(ids) == 3


def test_a_signal_that_was_not_taken_away(alone: Seat) -> None:
    """It was answered: the agent that went on and left it lying is not asked for again."""
    signal = Signal("builder", "signals/builder.json", NEED, "written-once")
    gate = asked(alone, signal)
    assert gate is not None
    assert gate.opened.asked.agent == "builder"
    alone.answer(gate)
    assert asked(alone, signal) is None
    assert asked(alone) is None
    anew = asked(alone, replace(signal, writing="written-again"))
    assert anew is not None
    assert anew.id != gate.id


def test_a_request_says_nothing_in_our_hooks_name(alone: Seat) -> None:
    """An agent's last words or signal may hold any field; which call an answer lets through is not theirs to say."""
    call = {"tool": "Bash", "id": "call-1", "digest": "0" * 64}
    for terms in ({"config": {"deferred": call, "pull_request": 7}}, {"deferred": call}, {"config": call}):
        said = {"status": "needs_input", "question": f"Which of {terms}?", **terms}
        need = read_need(said)
        assert need is not None
        gates = ask_for(
            alone.desk, None, SESSION, [Signal("builder", "signals/builder.json", need, str(said))]
        )
        assert gates
        assert all(set(gate.opened.config) == {"need"} for gate in gates)


def test_only_files_that_say_so_are_signals(alone: Seat) -> None:
    """Whatever else lies there: other statuses, lists, half a file, one that is too large, one from before."""
    folder = Path(alone.desk.settings.text("signals"))

    def put(name: str, text: str) -> Path:
        return alone.clone.write(str(folder / name), text)

    said = json.dumps({"status": "needs_input", "question": "Which?"})
    put("builder.json", said)
    put("fine.json", json.dumps({"status": "done"}))
    put("list.json", "[]")
    put("half.json", said[:20])
    put("large.json", said + " " * (1 << 20))
    os.utime(put("old.json", said), (1, 1))
    (alone.clone.path / folder / "folder.json").mkdir()
    assert [(one.agent, one.need.question) for one in signals(alone.desk, since=2)] == [("builder", "Which?")]
    (first,) = signals(alone.desk, since=2)
    assert [one.agent for one in signals(alone.desk, before=[first.writing])] == ["old"]
    assert first.writing in writings(alone.desk)


def test_each_writing_of_a_signal_is_told_from_others(alone: Seat) -> None:
    """Written again with the same words, replaced by another file, in another place: each is another; looked at again, none."""
    said = json.dumps({"status": "needs_input", "question": "Which?"})
    folder = alone.desk.settings.text("signals")
    place = alone.clone.write(f"{folder}/builder.json", said)
    found = [signals(alone.desk)[0].writing]
    assert signals(alone.desk)[0].writing == found[0]
    os.utime(place, ns=(1, place.stat().st_mtime_ns + 1))
    found.append(signals(alone.desk)[0].writing)
    again = place.with_suffix(".new")
    again.write_text(said)
    os.utime(again, ns=(1, place.stat().st_mtime_ns))
    again.replace(place)
    found.append(signals(alone.desk)[0].writing)
    place.rename(place.with_name("other.json"))
    found.append(signals(alone.desk)[0].writing)
    assert len(set(found)) == 4


def test_a_signal_is_seen_among_many(alone: Seat) -> None:
    """Whatever else piled up in the folder, what was written last is read."""
    folder = alone.desk.settings.text("signals")
    for number in range(60):
        os.utime(alone.clone.write(f"{folder}/a{number}.json", '{"status": "done"}'), (1, 1))
    alone.clone.write(f"{folder}/z.json", '{"status": "NEEDS_HUMAN", "reason": "Which?"}')
    assert [one.agent for one in signals(alone.desk)] == ["z"]


def test_what_lay_there_before_a_run_is_none_of_its_requests(alone: Seat) -> None:
    """An agent is started where a signal of the branch lies: it is written anew there by the checkout, and by nobody else."""
    folder = alone.desk.settings.text("signals")
    place = alone.clone.write(f"{folder}/builder.json", '{"status": "NEEDS_HUMAN", "reason": "Which?"}')
    note_writings(alone.desk, alone.clone.path)
    assert asked(alone, *signals(alone.desk)) is None
    place.write_text('{"status": "NEEDS_HUMAN", "reason": "Which one?"}')
    assert asked(alone, *signals(alone.desk)) is not None


def test_a_request_is_asked_on_its_own_terms(alone: Seat) -> None:
    """What a signal file says of its deadline, whom it is for and what to look at counts as if it were asked by hand."""
    alone.clone.write("plan.md", "the plan")
    said = {
        "status": "NEEDS_HUMAN",
        "question": "Which?",
        "priority": "urgent",
        "timeout": "2h",
        "to": ["@ada"],
        "attach": ["plan.md", "gone.md"],
    }
    need = read_need(said)
    (gate,) = ask_for(alone.desk, need, "", [])
    assert (gate.priority, gate.to, gate.opened.timeout) == ("urgent", ("@ada",), 7200)
    assert gate.opened.attachments == ("plan.md",)
    assert (
        "Not understood of the request:\n- attach" in gate.opened.context
        or "Not attached" in gate.opened.context
    )


def test_terms_that_cannot_be_had_lose_no_question(alone: Seat) -> None:
    """An approval is not given by default here: it is asked nevertheless, and the reason stands in it."""
    said = {
        "status": "NEEDS_HUMAN",
        "question": "Deploy?",
        "type": "approval",
        "timeout": "2h",
        "on_timeout": "default",
        "default": "yes",
    }
    (gate,) = ask_for(alone.desk, read_need(said), "", [])
    assert (gate.opened.questions[0].type, gate.deadline) == ("approval", None)
    assert "Asked without its terms: an approval is not given by default" in gate.opened.context


def test_one_conversation_waits_at_one_gate(alone: Seat) -> None:
    """What another agent signalled in its run is asked as well, and its answer does not start the conversation again."""
    signalled = [
        Signal(name, f"signals/{name}.json", Need(question), name)
        for name, question in (("one", "First?"), ("two", "Second?"), ("three", NEED.question))
    ]
    gates = ask_for(alone.desk, NEED, SESSION, signalled)
    assert [gate.opened.questions[0].prompt for gate in gates] == [NEED.question, "First?", "Second?"]
    assert [gate.opened.delivery for gate in gates] == ["resume", "none", "none"]
    assert [gate.opened.asked.agent for gate in gates[1:]] == ["one", "two"]
    assert [gate.id for gate in ask_for(alone.desk, None, SESSION, signalled)] == [gates[0].id]


@pytest.mark.parametrize(
    ("lines", "began"),
    [
        (["[]", "{}", '{"timestamp": "1970-01-01T00:01:00Z"}'], 60.0),
        (["{}"] * 60 + ['{"timestamp": "1970-01-01T00:01:00Z"}'], 0.0),
        (["no json"], 0.0),
        (['{"timestamp": "yesterday"}'], 0.0),
        ([], 0.0),
    ],
)
def test_when_a_conversation_began(tmp_path: Path, lines: list[str], began: float) -> None:
    """By its first record with a date, near its beginning; where that cannot be told, every signal may be its own."""
    place = tmp_path / "transcript.jsonl"
    place.write_text("\n".join(lines))
    assert started(str(place)) == began


# calls that were put off


def test_a_call_that_another_hook_put_off(alone: Seat) -> None:
    """A person is shown exactly what would be run; the same call is one gate."""
    call = {"name": "Bash", "id": "toolu_1", "input": {"command": "make deploy"}}
    gate, again = (ask_for_call(alone.desk, call, SESSION) for _ in range(2))
    assert gate is not None
    assert again is not None
    assert gate.id == again.id
    assert gate.opened.questions[0].type == "approval"
    assert "make deploy" in gate.opened.context
    assert gate.opened.title == "Allow Bash"


def test_a_call_that_asks(alone: Seat) -> None:
    """Its questions are the gate's."""
    options = [{"label": "Left", "description": ""}, {"label": "Right", "description": ""}]
    given = {
        "questions": [{"question": "Which way?", "header": "Way", "multiSelect": False, "options": options}]
    }
    gate = ask_for_call(alone.desk, {"name": "AskUserQuestion", "id": "toolu_2", "input": given}, SESSION)
    assert gate is not None
    (question,) = gate.opened.questions
    assert (question.prompt, [option.label for option in question.options]) == (
        "Which way?",
        ["Left", "Right"],
    )


@pytest.mark.parametrize("broken", [{"name": 1}, {"id": None}, {"input": "make"}])
def test_a_call_that_is_none(alone: Seat, broken: dict[str, object]) -> None:
    """Nothing is asked of a person that nobody can read."""
    call = {"name": "Bash", "id": "toolu_1", "input": {}, **broken}
    assert ask_for_call(alone.desk, call, SESSION) is None


# taking turns


def test_questions_of_a_conversation_take_turns(alone: Seat) -> None:
    """The next one waits, and not for ever."""
    at = [0.0]

    def sleep(_seconds: float) -> None:
        at[0] += TURN_TIMEOUT / 4

    with (
        turn(alone.desk, SESSION),
        pytest.raises(Conflict, match="still being asked"),
        turn(alone.desk, SESSION, lambda: at[0], sleep),
    ):
        pass
    assert at[0] > TURN_TIMEOUT


def test_a_turn_that_lasts_long_is_nobody_elses(alone: Seat) -> None:
    """However old its file is: it is its owner's until that has ended."""
    at = iter([0.0, 0.0, TURN_TIMEOUT * 2])
    with turn(alone.desk, SESSION):
        (left,) = (alone.clone.path / ".git/gitgate").glob("turns/*")
        os.utime(left, (1, 1))
        with (
            pytest.raises(Conflict, match="still being asked"),
            turn(alone.desk, SESSION, lambda: next(at), lambda _seconds: None),
        ):
            pytest.fail("two have the turn")


TAKES_TURNS = """
import os, sys, time
from pathlib import Path
from gitgate.acts.needs import turn
from gitgate.context import open_desk
place, log, rounds = sys.argv[1:]
for _ in range(int(rounds)):
    desk = open_desk(Path(place), os.environ)
    with turn(desk, "session-1", sleep=lambda _seconds: time.sleep(0.001)):
        with open(log, "a") as out:
            print("takes", os.getpid(), file=out, flush=True)
            for one in (desk.repo.state_dir / "turns").iterdir():
                os.utime(one, (1, 1))  # as if the turn lasted for long
            time.sleep(0.002)
            print("leaves", os.getpid(), file=out, flush=True)
print("done", flush=True)
"""


def takes_turns(seat: Seat, log: Path, rounds: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", TAKES_TURNS, str(seat.clone.path), str(log), str(rounds)],
        stdout=subprocess.PIPE,
    )


def test_of_four_processes_one_has_the_turn(alone: Seat, tmp_path: Path) -> None:
    """Each leaves before the next one takes it, however old its file is."""
    log = tmp_path / "log"
    many = [takes_turns(alone, log, 10) for _ in range(4)]
    for one in many:
        out, _ = one.communicate(timeout=PATIENCE)
        assert out == b"done\n"
    lines = [line.split() for line in log.read_text().splitlines()]
    assert len(lines) == 80
    for (took, first), (left_it, last) in zip(lines[::2], lines[1::2], strict=True):
        assert (took, left_it, first) == ("takes", "leaves", last)


def test_the_turn_of_somebody_killed_is_free(alone: Seat, tmp_path: Path) -> None:
    """At once, and not after a while."""
    log = tmp_path / "log"
    held = takes_turns(alone, log, 1_000_000)
    until(lambda: log.exists() and log.stat().st_size > 0)
    held.kill()
    held.communicate(timeout=PATIENCE)
    with turn(alone.desk, SESSION, lambda: 0.0, lambda _seconds: pytest.fail("it waits")):
        pass


def test_last_words_are_shared_where_conversations_are(ann: Seat, bare: Clone) -> None:
    """And stay here where they are not; a gate that is gone has none."""
    gate = ann.ask(push=True)
    ref = f"refs/hitl/sessions/{gate.id}"
    publish_sessions(ann.desk, [gate.id])
    assert ref not in bare.refs()
    ann.clone.git("config", "gitgate.session", "push")
    ann.clone.git("config", "gitgate.publishWork", "true")
    publish_sessions(ann.desk, ["2222222222", gate.id])
    assert bare.refs()[ref] == ann.clone.refs()[ref]


def test_a_gate_that_is_unknown_here(alone: Seat) -> None:
    """It is none, which is no error."""
    gate = alone.ask()
    assert any_gate(alone.desk, "2222222222") is None
    known = any_gate(alone.desk, gate.id)
    assert known is not None
    assert known.id == gate.id


@pytest.mark.parametrize(
    ("asked_for", "said", "state"),
    [
        ({}, '{"status": "DONE", "summary": "done by hand"}', "withdrawn"),
        ({}, '{"status": "NEEDS_HUMAN", "question": "And which port?"}', "awaiting"),
        ({}, '{"status": "DO', "awaiting"),
        ({}, '["DONE"]', "awaiting"),
        ({}, None, "awaiting"),
        ({"type": "approval"}, '{"status": "APPROVED"}', "awaiting"),
    ],
)
def test_a_signal_that_is_written_anew_ends_the_wait_and_approves_nothing(
    alone: Seat, asked_for: dict[str, str], said: str | None, state: str
) -> None:
    """Only where it needs nobody any more; half a file, or one that was taken away, says nothing."""
    place = alone.clone.write(
        ".agents/signals/builder.json",
        json.dumps({"status": "NEEDS_HUMAN", "question": "Which database?", **asked_for}),
    )
    (gate,) = ask_for(alone.desk, None, "", signals(alone.desk))
    assert needs.end_signalled(alone.desk) == []
    if said is None:
        place.unlink()
    else:
        place.write_text(said)
    ended = needs.end_signalled(alone.desk)
    now = alone.now(gate)
    assert (now.state, now.answer, len(ended)) == (state, None, int(state == "withdrawn"))
    if state == "withdrawn":
        assert needs.signalled_end(now) == {"status": "DONE", "summary": "done by hand"}


def test_a_signal_from_before_the_question_ends_nothing(alone: Seat) -> None:
    """What an agent said in its words has no file; one of its name that was there earlier is no word on it."""
    place = alone.clone.write(".agents/signals/builder.json", '{"status": "DONE"}')
    os.utime(place, (alone.desk.clock() - 60,) * 2)
    (gate,) = ask_for(alone.desk, NEED, "", (), "builder")
    assert needs.end_signalled(alone.desk) == []
    os.utime(place, (alone.desk.clock() + 60,) * 2)
    assert [one.id for one in needs.end_signalled(alone.desk)] == [gate.id]
