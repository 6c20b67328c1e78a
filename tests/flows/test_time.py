"""Flows: sleeps, and signals that are kept until somebody asks for them. The process ends while a run sleeps."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gitgate
from gitgate import testing
from gitgate.context import Desk, open_desk
from gitgate.errors import Conflict, GateError, Usage
from gitgate.flows.checking import RunWatch
from gitgate.flows.journal import find_run, signal_run
from gitgate.gates import due_runs
from support.flowing import FlowBench
from support.testbed.command import Command
from support.testbed.repositories import Clone

HOUR = 3600


class Later(FlowBench):
    """A bench whose clock is set."""

    ahead: float = 0.0

    def desk(self) -> Desk:
        self.desks.append(
            open_desk(self.clone.path, dict(os.environ), clock=lambda: time.time() + self.ahead)
        )
        return self.desks[-1]

    def due(self) -> list[str]:
        return due_runs(self.desk())

    def send(self, run: str, topic: str, value: Any = None) -> None:
        signal_run(self.desk(), find_run(self.desk(), run), topic, value)


@pytest.fixture
def later(repo: Clone) -> Iterator[Later]:
    found = Later(repo)
    yield found
    found.close()


@gitgate.flow
def rests() -> str:
    gitgate.sleep("2h")
    gitgate.until(gitgate.now() + dt.timedelta(hours=1))
    return "awake"


def test_a_run_sleeps_without_a_process(later: Later) -> None:
    """The moment is the one of the first time; whoever looks before it finds the run asleep."""
    asleep = later.begin(rests)
    assert (asleep.status, asleep.gates) == ("sleeping", ())
    run = later.load(asleep.id)
    assert run.state == "sleeping"
    assert run.wakes == asleep.until
    later.ahead = HOUR
    assert later.due() == []
    assert later.again(rests, asleep.id).until == asleep.until
    later.ahead = 2 * HOUR + 2
    assert later.due() == [asleep.id]
    again = later.again(rests, asleep.id)
    assert again.status == "sleeping"
    assert again.until > asleep.until
    later.ahead = 4 * HOUR
    assert later.again(rests, asleep.id).value == "awake"
    assert later.due() == []


@pytest.mark.slow
def test_a_short_sleep_is_waited_for(later: Later) -> None:
    @gitgate.flow
    def naps() -> float:
        before = time.monotonic()
        gitgate.sleep(0.5)
        return time.monotonic() - before

    ended = later.begin(naps)
    assert ended.status == "completed"
    assert 0.4 <= ended.value < 50


def test_what_is_no_time_is_refused(later: Later) -> None:
    for wrong in (-1, float("nan"), 1e12):
        with pytest.raises(Usage):
            gitgate.sleep(wrong)
    with pytest.raises(Usage, match="zone"):
        gitgate.until(dt.datetime(2030, 1, 1))  # noqa: DTZ001 - that is what is refused
    with pytest.raises(Usage, match="no flow"):
        gitgate.receive("x")
    began = time.monotonic()
    gitgate.sleep(0.1)
    gitgate.until(dt.datetime.now(dt.UTC) + dt.timedelta(seconds=0.1))
    assert 0.15 < time.monotonic() - began < 50


def test_a_person_may_answer_while_another_branch_sleeps(later: Later) -> None:
    """What comes first wakes the run: here the moment, then the answer."""

    @gitgate.flow
    def both() -> list[Any]:
        def slept() -> str:
            gitgate.sleep("1h")
            return "slept"

        return gitgate.parallel(slept, lambda: bool(gitgate.pause("Go on?")))

    waits = later.begin(both)
    assert (waits.status, len(waits.gates)) == ("waiting_human", 1)
    assert later.due() == []
    later.ahead = HOUR + 2
    assert later.due() == [waits.id]
    assert later.again(both, waits.id).status == "waiting_human"
    assert later.due() == []
    gitgate.respond(waits.gates[0], approve=True, resume=False)
    assert later.again(both, waits.id).value == ["slept", True]


def test_a_deadline_wakes_the_run_that_gets_stuck_on_it(later: Later) -> None:
    @gitgate.flow(human_timeout="1h", on_timeout="stuck")
    def asks() -> None:
        gitgate.pause("Go on?")

    waits = later.begin(asks)
    assert later.due() == []
    later.ahead = HOUR + 2
    assert later.due() == [waits.id]
    assert later.again(asks, waits.id).status == "stuck"


@gitgate.flow
def hears() -> list[Any]:
    first = gitgate.receive("built")
    second = gitgate.receive("built", timeout="1h")
    third = gitgate.receive("built", timeout="1h")
    return [one and (one.value, one.by) for one in (first, second, third)]


def test_signals_are_kept_and_each_is_received_once_in_order(later: Later) -> None:
    """Also those that come before anybody asks, and those on other topics stay where they are."""
    asleep = later.begin(hears)
    assert asleep.status == "sleeping"
    assert "git gate signal" in str(getattr(asleep.raised, "hint", ""))
    assert later.due() == []
    later.send(asleep.id, "elsewhere", 1)
    assert later.due() == []
    later.send(asleep.id, "built", {"version": 1})
    later.send(asleep.id, "built", "two")
    assert later.due() == [asleep.id]
    again = later.again(hears, asleep.id)
    assert again.status == "sleeping"
    assert later.due() == []
    later.ahead = HOUR + 2
    assert later.due() == [asleep.id]
    ended = later.again(hears, asleep.id)
    who = later.desk().settings.identity()
    assert ended.value == [[{"version": 1}, who], ["two", who], None]
    with pytest.raises(Conflict, match="receives nothing more"):
        later.send(asleep.id, "built", 3)


def test_two_branches_do_not_receive_the_same_signal(later: Later) -> None:
    @gitgate.flow
    def pair() -> list[Any]:
        def one() -> Any:
            found = gitgate.receive("x")
            return found and found.value

        return gitgate.parallel(one, one, one)

    asleep = later.begin(pair)
    for number in range(3):
        later.send(asleep.id, "x", number)
    assert sorted(later.again(pair, asleep.id).value) == [0, 1, 2]


def test_a_signal_approves_nothing(later: Later) -> None:
    """A gate that waits stays as it is, whatever is sent."""

    @gitgate.flow
    def asks() -> bool:
        return bool(gitgate.pause("Go on?"))

    waits = later.begin(asks)
    for topic in ("approve", "CONTINUE", waits.gates[0], "_checkpoint", "pause"):
        later.send(waits.id, topic, True)
    assert later.again(asks, waits.id).status == "waiting_human"
    assert gitgate.show(waits.gates[0]).state == "awaiting"


@pytest.mark.parametrize(
    ("topic", "value"),
    [
        ("", 1),
        ("two\nlines", 1),
        ("x" * 500, 1),
        ("x", {1, 2}),
        ("x", "y" * 70_000),
        ("x", "ghp_" + "a1B2" * 9),
    ],
)
def test_what_no_signal_may_say_is_refused(later: Later, topic: str, value: object) -> None:
    asleep = later.begin(hears)
    before = later.load(asleep.id).tip
    with pytest.raises(GateError) as refused:
        later.send(asleep.id, topic, value)
    assert refused.value.hint
    assert later.load(asleep.id).tip == before


def test_a_signal_that_comes_as_the_run_is_let_go_is_heard(
    later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written between the last look and the last event; the run does not go to sleep on it."""
    from gitgate.flows import journal

    plain = journal.HeldRun.write
    sent: list[str] = []

    def write(held: journal.HeldRun, name: str, said: Any) -> Any:
        if name == "sleeping" and not sent:
            sent.append(name)
            later.send(held.run.id, "built", "just in time")
        return plain(held, name, said)

    @gitgate.flow
    def waits() -> Any:
        found = gitgate.receive("built")
        return found and found.value

    monkeypatch.setattr(journal.HeldRun, "write", write)
    ended = later.begin(waits)
    assert sent == ["sleeping"]
    assert (ended.status, ended.value) == ("completed", "just in time")


NIGHTLY = """
import gitgate


@gitgate.flow
def nightly():
    gitgate.sleep(6)
    word = gitgate.receive("built", timeout="1h")
    return word.value if word else None
"""


@pytest.fixture
def nightly(repo: Clone, cli: Command) -> str:
    """A run that has gone to sleep."""
    repo.commit(**{"flows.py": NIGHTLY})
    slept = cli("run", "flows.py", "--json", code=8)
    assert slept.json["status"] == "sleeping"
    assert slept.json["waiting_for"].startswith("the moment 2")
    assert slept.json["gate"] is None
    return str(slept.json["id"])


def wait_for_its_time(cli: Command, run: str) -> None:
    wakes = cli("show", run, "--json", code=0).json["wakes"]
    until = dt.datetime.fromisoformat(wakes).timestamp()
    time.sleep(max(0.0, until - time.time()) + 0.1)


@pytest.mark.slow
def test_a_worker_wakes_a_run_and_a_signal_ends_its_wait(nightly: str, cli: Command) -> None:
    """As it acts on an answer. Before its time nothing is started."""
    cli("worker", "--once", code=0)
    assert cli("show", nightly, "--json", code=0).json["status"] == "sleeping"
    wait_for_its_time(cli, nightly)
    cli("worker", "--once", code=0)
    shown = cli("show", nightly, "--json", code=0).json
    assert (shown["status"], shown["topics"]) == ("sleeping", ["built"])
    assert "a signal on 'built'" in cli("list", "--runs", code=0).out
    sent = cli("signal", nightly, "--topic", "built", "v1.4", code=0)
    assert "which it waits for" in sent.err
    assert f"git gate resume {nightly[:6]}" in sent.err
    cli("resume", "--all", code=0)
    shown = cli("show", nightly, "--json", code=0).json
    assert (shown["status"], shown["result"]) == ("completed", "v1.4")
    assert "signalled" in cli("log", nightly, code=0).out


@pytest.mark.slow
def test_the_page_about_time_is_run(repo: Clone, cli: Command) -> None:
    """As `docs/flows.md` has it: its flow, in the clock of tests, and the line that sends a signal."""
    page = (Path(__file__).parents[2] / "docs" / "flows.md").read_text(encoding="utf-8")
    section = page.partition("## Time and signals")[2]
    code = section.partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {}
    exec(compile(code, "flows.md", "exec"), names)  # noqa: S102 - our own page
    flow = names["nightly"]
    played = testing.play(flow, "v1", signals={"built": ["v1.4"]})
    assert played.result.startswith("v1: v1.4, as A Tester <")
    assert testing.play(flow, "v1").status == "stuck"
    repo.commit(**{"flows.py": code.replace('gitgate.sleep("2h")', "pass")})
    run = cli("run", "flows.py", "v1", "--json", code=8).json["id"]
    typed = section.partition("```bash\n")[2].partition("```")[0].strip().replace("RUN", run)
    cli(*typed.split()[2:], code=0)
    assert cli("resume", run, code=0).out.startswith("v1: v1.4, as ")


@pytest.mark.slow
def test_whoever_looks_wakes_a_run_of_this_clone(nightly: str, cli: Command, repo: Clone) -> None:
    """Where `git gate init` allowed that things are started here, and once for each time."""
    wait_for_its_time(cli, nightly)
    assert "goes on" not in cli("list", code=0).err
    repo.git("config", "gitgate.resumeHere", "true")
    cli("signal", nightly, "--topic", "built", "v2", code=0)
    until = time.monotonic() + 60
    while cli("show", nightly, "--json", code=0).json["status"] != "completed":
        assert time.monotonic() < until
        time.sleep(0.3)
    assert cli("show", nightly, "--json", code=0).json["result"] == "v2"
    assert "goes on" not in cli("list", code=0).err


def test_a_signal_is_for_a_run_and_says_its_topic(repo: Clone, cli: Command) -> None:
    gate = gitgate.ask("Where?").id
    assert "--topic" in cli("signal", gate, code=2).err
    assert "a run's id is wanted" in cli("signal", gate, "--topic", "x", "y", code=1).err
    cli("signal", gate, "--status", "CONTINUE", "--topic", "x", code=2)


@gitgate.flow
def patient() -> list[Any]:
    gitgate.sleep("3d")
    moment = gitgate.now().timestamp()
    word = gitgate.receive("built", timeout="1d")
    nothing = gitgate.receive("built", timeout="1d")
    again = gitgate.now().timestamp()
    return [word and word.value, nothing, again - moment > 86_000]


@pytest.mark.slow
def test_a_test_waits_for_no_time() -> None:
    """The clock of `gitgate.testing` goes to what a run waits for: three days are over at once."""
    began = time.monotonic()
    played = testing.play(patient, signals={"built": ["v1"]})
    assert played.result == ["v1", None, True]
    assert played.steps == ("sleep#1", "now#1", "receive:built#1", "receive:built#2", "now#2")
    assert time.monotonic() - began < 100
    waits = testing.play(hears, signals={})
    assert waits.status == "sleeping"


def test_a_test_waits_for_no_deadline() -> None:
    """Where nobody answers, the deadline passes."""

    @gitgate.flow(human_timeout="24h", on_timeout="stuck")
    def asks() -> None:
        gitgate.pause("Go on?")

    played = testing.play(asks, people={"Go on?": None})
    assert (played.status, "deadline" in played.reason) == ("stuck", True)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_sleeps_and_signals_survive_every_crash() -> None:
    """Killed before and after each event, also as it goes to sleep: no signal is lost, and none received twice."""

    @gitgate.flow
    def all_of_it() -> list[Any]:
        def listens() -> Any:
            found = gitgate.receive("built")
            return found and found.value

        first = gitgate.parallel(listens, listens, lambda: gitgate.sleep("1h"))
        gitgate.sleep("1d")
        return [*sorted(first[:2]), bool(gitgate.pause("Go on?")), listens()]

    places = []
    for crash in testing.crashes(all_of_it, signals={"built": ["a", "b", "c"]}):
        places.append(crash.crash)
        assert crash.result == ["a", "b", True, "c"], crash.crash
        assert crash.asked == ("Go on?",), crash.crash
        assert crash.doubted == (), crash.crash
    for place in (
        "before sleeping",
        "after sleeping",
        "after begun of sleep#1",
        "before done of receive:built#1",
    ):
        assert place in places, place


@pytest.mark.slow
def test_whoever_watches_hears_that_its_time_has_come(later: Later) -> None:
    """Once for each wait: before its time nobody is called."""
    asleep = later.begin(hears)
    called: list[str] = []
    watch = RunWatch(later.desk(), asleep.id, lambda run: called.append(run.id), sleep=lambda _: None)
    told = [line["text"] for line in watch.events(0.3) if line["event"] == "sleeping"]
    assert (told, called) == (["for a signal on 'built'"], [])
    later.send(asleep.id, "built", 1)
    assert [line["event"] for line in watch.events(0.3)][-1] == "signalled"
    assert called == [asleep.id]
