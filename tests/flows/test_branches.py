"""Flows: branches that run at once: each works in a tree of its own, and what they did becomes one again, once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import gitgate
from gitgate import testing
from gitgate.acts import find_gate
from gitgate.flows import journal, program
from gitgate.flows.engine import need_engine
from gitgate.flows.journal import HeldRun, load_run
from gitgate.store.git import Git
from gitgate.store.git.refs import Refs
from gitgate.store.remote import RefMove
from gitgate.store.work import commits
from gitgate.store.work.restore import open_worktree
from gitgate.testing import Crash, Stage
from support.flowing import Actors, FlowBench, die
from support.testbed.command import Command
from support.testbed.repositories import Clone


@gitgate.flow
def both() -> str:
    gitgate.parallel(("left", "a"), ("right", "b"))
    return "joined"


def writes(**files: str) -> Any:
    """An agent that writes these files where it works, and commits those whose name has a `c` in front."""

    def agent(_prompt: str, place: Path) -> dict[str, str]:
        for name, words in files.items():
            path = place / name.removeprefix("c_").replace("_", ".")
            path.write_text(words)
            if name.startswith("c_"):
                git = Git(place, ENV)
                git.run("add", "--", path.name)
                git.run("commit", "-q", "--no-verify", "-m", f"Write {path.name}")
        return {"status": "DONE"}

    return agent


ENV = {
    "PATH": "/usr/bin:/bin:/usr/local/bin",
    **{f"GIT_{role}_{key}": f"a@{key}" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")},
}


def prepared(stage: Stage) -> Git:
    git = Git(stage.place, {**stage.env, **ENV})
    (stage.place / "both.txt").write_text("one\ntwo\nthree\n")
    (stage.place / "gone.txt").write_text("old\n")
    git.run("add", "-A")
    git.run("commit", "-q", "--no-verify", "-m", "Begin")
    (stage.place / "draft.txt").write_text("uncommitted\n")
    return git


def afterwards(stage: Stage, git: Git) -> tuple[list[str], list[str]]:
    """The trees and the branches that are left."""
    trees = [
        line for line in git.text("worktree", "list", "--porcelain").splitlines() if line[:9] == "worktree "
    ]
    branches = git.text(
        "for-each-ref", "--format=%(refname:short)", "refs/heads/gitgate", "refs/gitgate/+branches"
    )
    return trees[1:], branches.split()


def dies() -> None:
    """The process of the run that is played here ends."""
    held = need_engine("a crash").held
    assert isinstance(held, testing.CrashingRun)
    held.die()


def test_each_works_in_a_tree_of_its_own_and_what_they_did_is_joined() -> None:
    """Commits become commits of the run's branch, what was left uncommitted stays so, and the trees are gone."""
    seen: list[tuple[Path, str]] = []

    def left(prompt: str, place: Path) -> dict[str, str]:
        seen.append((place, (place / "draft.txt").read_text()))
        (place / "gone.txt").unlink()
        return dict(writes(c_left_txt="left\n", draft_txt="uncommitted\nmore\n")(prompt, place))

    with testing.stage() as stage:
        git = prepared(stage)
        played = stage.play(
            both, agents={"left": left, "right": writes(c_right_txt="right\n", new_txt="new\n")}
        )
        assert played.result == "joined"
        ((place, draft),) = seen
        assert place != stage.place
        assert draft == "uncommitted\n"
        assert git.text("log", "--format=%s").splitlines()[-1] == "A stage"
        assert sorted(git.text("log", "--no-merges", "--format=%s").splitlines()) == [
            "A stage",
            "Begin",
            "Write left.txt",
            "Write right.txt",
        ]
        assert git.text("status", "--porcelain").splitlines() == [" D gone.txt", "?? draft.txt", "?? new.txt"]
        assert (stage.place / "draft.txt").read_text() == "uncommitted\nmore\n"
        assert (stage.place / "left.txt").read_text() == "left\n"
        assert afterwards(stage, git) == ([], [])
        assert {"parallel#1/trees#1", "parallel#1/merge#1"} <= set(played.steps)


def test_branches_that_only_ask_have_no_tree() -> None:
    """Nothing is made for them, and nothing is joined."""

    @gitgate.flow
    def asks() -> list[Any]:
        return gitgate.parallel(lambda: bool(gitgate.pause("A?")), lambda: bool(gitgate.pause("B?")))

    played = testing.play(asks)
    assert played.result == [True, True]
    assert not [step for step in played.steps if "trees" in step or "merge" in step]


CONFLICT = {"left": writes(both_txt="one\nLEFT\nthree\n"), "right": writes(both_txt="one\nRIGHT\nthree\n")}


@pytest.mark.slow
@pytest.mark.parametrize(("said", "words"), [("keep first", "LEFT"), ("keep second", "RIGHT")])
def test_a_conflict_is_a_question_with_both_diffs(said: str, words: str) -> None:
    """A person says which is right, as at any gate."""
    with testing.stage() as stage:
        git = prepared(stage)
        played = stage.play(both, agents=CONFLICT, people={"What is right?": said})
        assert played.result == "joined"
        assert (stage.place / "both.txt").read_text() == f"one\n{words}\nthree\n"
        (asked,) = played.asked
        assert "both.txt" in asked
        diffs = git.text("log", "-p", "--all", "--format=%s")
        assert "+LEFT" in diffs
        assert "+RIGHT" in diffs
        assert afterwards(stage, git) == ([], [])


@pytest.mark.slow
def test_a_conflict_may_be_resolved_by_hand() -> None:
    """In a tree that is named, with git's marks in the files; as long as they are there it is asked again."""
    tries: list[str] = []

    with testing.stage() as stage:
        git = prepared(stage)

        def person(_prompt: str, _options: list[str]) -> str:
            listed = git.text("worktree", "list", "--porcelain").splitlines()
            place = next(
                Path(line[9:])
                for line in listed
                if line.startswith("worktree ") and is_join(git, Path(line[9:]))
            )
            tries.append((place / "both.txt").read_text())
            if len(tries) == 2:
                (place / "both.txt").write_text("one\nLEFT and RIGHT\nthree\n")
            return "resolved"

        played = stage.play(both, agents=CONFLICT, people=person)
        assert played.result == "joined"
        assert len(tries) == 2
        assert "<<<<<<<" in tries[0]
        assert "LEFT" in tries[0]
        assert (stage.place / "both.txt").read_text() == "one\nLEFT and RIGHT\nthree\n"
        assert afterwards(stage, git) == ([], [])


def is_join(git: Git, place: Path) -> bool:
    return Git(place, ENV).text("symbolic-ref", "-q", "HEAD").endswith("-join")


@pytest.mark.slow
def test_nothing_of_a_branch_is_lost_where_the_run_ends() -> None:
    """A person stops it: what each did is on a Git branch, the trees are gone, and the run's own tree is as it was."""
    with testing.stage() as stage:
        git = prepared(stage)
        played = stage.play(both, agents=CONFLICT, people={"What is right?": "stop"})
        assert (played.status, "not joined" in played.reason) == ("stuck", True)
        assert (stage.place / "both.txt").read_text() == "one\ntwo\nthree\n"
        trees, branches = afterwards(stage, git)
        assert trees == []
        kept = sorted(
            git.text("show", f"{name}:both.txt").split()[1] for name in branches if "join" not in name
        )
        assert kept == ["LEFT", "RIGHT"]


def test_what_a_branch_did_that_failed_stays_on_its_branch() -> None:
    """The others are joined, and the flow goes on from its error."""

    @gitgate.flow
    def catches() -> str:
        def fails() -> None:
            gitgate.run("left")
            raise ValueError("no")

        try:
            gitgate.parallel(fails, "right")
        except ValueError as failed:
            return str(failed)
        return "no error"

    with testing.stage() as stage:
        git = prepared(stage)
        agents = {"left": writes(left_txt="left\n"), "right": writes(right_txt="right\n")}
        assert stage.play(catches, agents=agents).result == "no"
        assert (stage.place / "right.txt").exists()
        assert not (stage.place / "left.txt").exists()
        trees, (branch,) = afterwards(stage, git)
        assert trees == []
        assert git.text("show", f"{branch}:left.txt") == "left"


@pytest.mark.slow
def test_branches_of_a_branch_are_joined_in_its_tree() -> None:
    """And with it in the run's."""

    @gitgate.flow
    def nested() -> None:
        def inner() -> None:
            gitgate.parallel("a", "b")
            gitgate.run("c")

        gitgate.parallel(inner, "d")

    seen: list[list[str]] = []

    def last(_prompt: str, place: Path) -> dict[str, str]:
        seen.append(sorted(path.name for path in place.glob("[abd].txt")))
        return {"status": "DONE"}

    with testing.stage() as stage:
        git = prepared(stage)
        agents: Mapping[str, Any] = {name: writes(**{f"{name}_txt": name}) for name in "abd"} | {"c": last}
        assert stage.play(nested, agents=agents).status == "completed"
        assert seen == [["a.txt", "b.txt"]]
        assert sorted(path.name for path in stage.place.glob("[abd].txt")) == ["a.txt", "b.txt", "d.txt"]
        assert afterwards(stage, git) == ([], [])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_joining_is_killed_at_every_event() -> None:
    """Each agent works once, a person is asked once, and the tree has what both did."""

    @gitgate.flow
    def joins() -> str:
        gitgate.parallel(("left", "a"), ("right", "b"))
        return (gitgate.workdir() / "both.txt").read_text()

    agents = {
        "left": writes(both_txt="one\nLEFT\nthree\n", c_left_txt="left\n"),
        "right": writes(both_txt="one\nRIGHT\nthree\n", right_txt="right\n"),
    }
    places = []
    whole = testing.Fuse()
    with testing.stage() as stage:
        prepared(stage)
        assert (
            stage.play(joins, agents=agents, people={"What is right?": "keep second"}, fuse=whole).status
            == "completed"
        )
    for number in range(1, whole.count + 1):
        for when in ("before", "after"):
            with testing.stage() as stage:
                git = prepared(stage)
                fuse = testing.Fuse(number, when)
                crash = stage.play(joins, agents=agents, people={"What is right?": "keep second"}, fuse=fuse)
                places.append(crash.crash)
                assert crash.result == "one\nRIGHT\nthree\n", crash.crash
                assert sorted(crash.starts) == ["start left", "start right"], crash.crash
                assert len(crash.asked) == 1, crash.crash
                assert git.text("log", "--format=%s", "--no-merges").split("\n")[0] == "Write left.txt", (
                    crash.crash
                )
                assert git.text("status", "--porcelain").splitlines() == [
                    " M both.txt",
                    "?? draft.txt",
                    "?? right.txt",
                ]
                assert afterwards(stage, git) == ([], []), crash.crash
    assert "before done of parallel#1/merge#1" in places


@pytest.mark.slow
@pytest.mark.parametrize("which", range(6))
def test_a_joining_that_is_cut_off_among_its_files_is_done_to_its_end(
    which: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file is there as it was, or as it is to be; a file that a person changed meanwhile is not overwritten."""
    done: list[object] = []
    plain_put, plain_index, plain_remove = commits.put, commits.follow_index, commits.remove_file

    def cut(plain: Any) -> Any:
        def cutting(*given: Any) -> Any:
            done.append(given)
            if len(done) == which + 1:
                dies()
            return plain(*given)

        return cutting

    with testing.stage() as stage:
        git = prepared(stage)
        agents = {
            "left": writes(c_a_txt="a\n", both_txt="ONE\ntwo\nthree\n"),
            "right": writes(b_txt="b\n", c_c_txt="c\n"),
        }

        def removes(prompt: str, place: Path) -> dict[str, str]:
            (place / "gone.txt").unlink()
            return dict(agents["right"](prompt, place))

        for name, plain in (("put", plain_put), ("follow_index", plain_index), ("remove_file", plain_remove)):
            monkeypatch.setattr(commits, name, cut(plain))
        played = stage.play(both, agents={"left": agents["left"], "right": removes})
        assert played.result == "joined"
        assert len(done) > 5
        assert git.text("status", "--porcelain").splitlines() == [
            " M both.txt",
            " D gone.txt",
            "?? b.txt",
            "?? draft.txt",
        ]
        assert sorted(git.text("ls-files").split()) == ["a.txt", "both.txt", "c.txt", "gone.txt"]


@pytest.mark.slow
def test_what_a_person_changed_meanwhile_is_not_overwritten() -> None:
    """The run says which file it is, and goes on when that is put away."""
    with testing.stage() as stage:
        prepared(stage)

        def right(prompt: str, place: Path) -> dict[str, str]:
            (stage.place / "both.txt").write_text("a person's\n")
            return dict(writes(both_txt="RIGHT\n")(prompt, place))

        played = stage.play(both, agents={"left": writes(), "right": right})
        assert played.status == "stalled"
        assert "both.txt" in played.reason
        assert (stage.place / "both.txt").read_text() == "a person's\n"


@pytest.mark.slow
def test_a_tree_that_was_made_in_part_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed as soon as git has it, before its mark."""
    plain, made = open_worktree, []

    def once(*given: Any, **how: Any) -> Any:
        found = plain(*given, **how)
        made.append(found)
        if len(made) == 1:
            dies()
        return found

    monkeypatch.setattr("gitgate.flows.trees.open_worktree", once)
    with testing.stage() as stage:
        git = prepared(stage)
        agents = {"left": writes(left_txt="left\n"), "right": writes(right_txt="right\n")}
        assert stage.play(both, agents=agents).result == "joined"
        assert (stage.place / "left.txt").read_text() == "left\n"
        assert afterwards(stage, git) == ([], [])


FLOWS = """
import gitgate

@gitgate.flow
def both(prompt: str):
    gitgate.parallel(("coder", prompt), ("tester", prompt))
    return (gitgate.workdir() / "coder.txt").read_text()
"""


@pytest.mark.slow
def test_a_branch_waits_for_a_person_and_its_tree_with_it(
    repo: Clone, bare: Clone, clone_of: Callable[..., Clone], cli: Command
) -> None:
    """In processes that come and go. Another clone says where the trees are; several who go on here do each thing once."""
    repo.git("remote", "add", "origin", str(bare.path))
    repo.commit(**{"flows.py": FLOWS})
    repo.git("push", "-q", "--force", "origin", "main")
    repo.git("fetch", "-q", "origin")
    script = 'echo $0 $1 >> $2; [ $0 = tester ] || [ $1 = resume ] && { echo $0 > $0.txt; echo \'{"status": "DONE"}\'; } || echo \'{"status": "NEEDS_HUMAN", "reason": "Which?"}\''
    log = repo.path.parent / "starts.log"
    there = clone_of(bare, "there")
    for name in ("coder", "tester"):
        for how in ("start", "resume"):
            line = json.dumps(["sh", "-c", script, name, how, str(log)])
            for clone in (repo, there):
                clone.git("config", f"gitgate.agent.{name}.{how}", line)
    run = cli("run", "flows.py:both", "x", "--json", code=8).json["id"]
    assert len(repo.git("worktree", "list").splitlines()) == 3
    cli("sync", cwd=there.path, code=0)
    (gate,) = cli("list", "--awaiting", "--json", cwd=there.path, code=0).json["gates"]
    cli("respond", gate["id"], "this", cwd=there.path, code=0)
    stalled = cli("resume", run, cwd=there.path, code=1)
    assert f"needs {socket.gethostname()}: the working trees of parallel#1 are there" in stalled.err
    cli("sync", code=0)
    several = [cli.start("resume", run) for _ in range(3)]
    codes = sorted(one.wait(60) for one in several)
    for one in several:
        one.communicate()
    assert codes == [0, 5, 5]
    assert sorted(log.read_text().splitlines()) == ["coder resume", "coder start", "tester start"]
    assert cli("show", run, "--json", code=0).json["result"] == "coder\n"
    assert (repo.path / "tester.txt").read_text() == "tester\n"
    assert len(repo.git("worktree", "list").splitlines()) == 1


# the first of several


@pytest.mark.slow
def test_the_first_to_end_counts_and_the_others_are_ended() -> None:
    """What they ask is taken back, which is recorded; in replay the same one is first."""
    drawn: list[int] = []

    @gitgate.flow
    def races() -> list[Any]:
        def asks() -> bool:
            return bool(gitgate.pause("Shall I?"))

        def quick() -> str:
            drawn.append(1)
            return "quick"

        found = gitgate.first(asks, lambda: gitgate.step(quick))
        both = gitgate.parallel(asks, lambda: gitgate.step(lambda: "again", name="quick"), policy="first")
        return [found, both, bool(gitgate.pause("On?"))]

    with testing.stage() as stage:
        played = stage.play(races)
        assert played.result == ["quick", [None, "again"], True]
        assert played.asked == ("On?",)
        assert drawn == [1]
        desk = stage.desk()
        run = load_run(desk, played.id)
        gates = [gate for step in run.steps.values() for gate in step.gates]
        states = {find_gate(desk, gate).gate.opened.title: find_gate(desk, gate).gate.state for gate in gates}
        desk.close()
        assert states.get("Shall I?", "withdrawn") == "withdrawn"
        assert states["On?"] == "resumed"
        assert all(step.is_over for step in run.steps.values())


def test_a_person_may_be_first() -> None:
    """Both ask, and one is answered: the other's question is withdrawn."""

    @gitgate.flow
    def races() -> str:
        return str(
            gitgate.first(
                lambda: f"A {gitgate.ask('A?', wait=True).answer.text}",  # type: ignore[union-attr]
                lambda: f"B {gitgate.ask('B?', wait=True).answer.text}",  # type: ignore[union-attr]
            )
        )

    with testing.stage() as stage:
        played = stage.play(races, people={"A?": None, "B?": "here"})
        assert played.result == "B here"
        desk = stage.desk()
        run = load_run(desk, played.id)
        loser = run.steps["first#1/0/ask#1"]
        assert find_gate(desk, loser.gates[0]).gate.state == "withdrawn"
        assert loser.ended is not None
        assert loser.ended.said["error"]["message"] == "another branch was first"
        desk.close()


def test_one_that_fails_is_not_the_first() -> None:
    """If all fail, the first one's error is raised, in replay as well."""

    def fails(word: str) -> Any:
        def act() -> None:
            raise ValueError(word)

        return act

    @gitgate.flow
    def races() -> list[str]:
        found = [gitgate.first(fails("a"), lambda: "b")]
        try:
            gitgate.first(fails("c"), fails("d"))
        except ValueError as failed:
            found.append(str(failed))
        gitgate.pause("On?")
        return found

    assert testing.play(races).result == ["b", "c"]


@pytest.mark.slow
def test_the_work_of_the_first_is_joined_and_that_of_the_others_kept(
    repo: Clone, actors: Actors, cli: Command
) -> None:
    """The losing agent's process is ended; what it did by then is on its Git branch."""
    code = "import gitgate\n@gitgate.flow\ndef races():\n    return gitgate.first('slow', 'quick').status\n"
    repo.commit(**{"races.py": code})
    slow = "echo slow > slow.txt; touch ../slow.began; while true; do date +%N > ../beat; sleep 0.1; done"
    quick = 'while [ ! -e ../slow.began ]; do sleep 0.05; done; echo quick > quick.txt; echo \'{"status": "FINE"}\''
    for name, script in (("slow", slow), ("quick", quick)):
        repo.git("config", f"gitgate.agent.{name}.start", json.dumps(["sh", "-c", script]))
    assert cli("run", "races.py", code=0).out == "FINE\n"
    assert (repo.path / "quick.txt").read_text() == "quick\n"
    assert not (repo.path / "slow.txt").exists()
    (branch,) = repo.git("for-each-ref", "--format=%(refname:short)", "refs/heads/gitgate").split()
    assert repo.git("show", f"{branch}:slow.txt").strip() == "slow"
    assert len(repo.git("worktree", "list").splitlines()) == 1


@pytest.mark.slow
def test_no_tree_of_a_branch_that_lost_outlives_the_run() -> None:
    """Neither its own nor those of branches within it, which nobody joins any more; what was done in them is kept."""

    @gitgate.flow
    def races() -> str:
        def inner() -> Any:
            return gitgate.parallel(("left", "a"), lambda: bool(gitgate.pause("Inner?")))

        found = gitgate.first(inner, lambda: gitgate.ask("Or here?", wait=True).answer.text)  # type: ignore[union-attr]
        return str(found)

    with testing.stage() as stage:
        git = prepared(stage)
        agents = {"left": writes(c_left_txt="left\n")}
        played = stage.play(races, agents=agents, people={"Inner?": None, "Or here?": "here"})
        assert played.result == "here"
        trees, branches = afterwards(stage, git)
        assert trees == []
        assert not [name for name in branches if "+branches" in name]
        assert not (stage.place / "left.txt").exists()


@pytest.mark.slow
def test_branches_within_a_branch_do_not_let_the_run_go_while_it_works() -> None:
    """One waits for a person; the other goes on after branches of its own, in the same process."""
    told: list[str] = []

    @gitgate.flow
    def several() -> None:
        def works() -> None:
            gitgate.parallel(
                lambda: gitgate.step(lambda: 1, name="a"), lambda: gitgate.step(lambda: 2, name="b")
            )
            gitgate.step(lambda: told.append("went on"), name="c")

        gitgate.parallel(lambda: gitgate.pause("On?"), works)

    for _ in range(5):
        told.clear()
        assert testing.play(several, people={"On?": None}).status == "waiting_human"
        assert told == ["went on"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_race_is_killed_at_every_event() -> None:
    """There is one winner, and it stays that: its agent works once, and a person who answered is not asked again."""

    @gitgate.flow
    def races() -> list[str]:
        def quick() -> str:
            said = gitgate.run("coder").status
            return f"{said} {bool(gitgate.pause('Take it?'))}"

        def patient() -> str:
            return str(gitgate.ask("Or words?", wait=True).answer)

        return [gitgate.first(quick, patient), str(bool(gitgate.pause("On?")))]

    places = []
    for crash in testing.crashes(races, people={"Or words?": None}):
        places.append(crash.crash)
        assert crash.result == ["DONE True", "True"], crash.crash
        assert crash.starts == ("start coder",), crash.crash
        assert [words for words in crash.asked if words != "Or words?"] == ["Take it?", "On?"], crash.crash
        assert crash.doubted == (), crash.crash
    assert "after done of first#1/winner#1" in places


# async


@pytest.mark.slow
def test_what_is_awaited_at_once_waits_at_once(bench: FlowBench) -> None:
    """Both questions are asked before any is answered; each line's steps are told by where it was begun."""
    going: list[str] = []

    async def one(name: str, pause: float) -> str:
        await asyncio.sleep(pause)
        number = await gitgate.soon(gitgate.step, lambda: len(name), name="same")
        word = await gitgate.soon(gitgate.pause, f"Take {name}?")
        going.append(name)
        return f"{name} {number} {bool(word)}"

    @gitgate.flow
    async def feature(*, swap: bool = False) -> list[Any]:
        pauses = (0.1, 0.0) if swap else (0.0, 0.1)
        both = await asyncio.gather(one("a", pauses[0]), one("bb", pauses[1]))
        asked = await asyncio.gather(
            gitgate.soon(gitgate.ask, "Which?", wait=True),
            gitgate.soon(gitgate.step, lambda: 3, name="three"),
        )
        return [*both, asked[0].answer and asked[0].answer.text, asked[1]]

    waits = bench.begin(feature)
    assert waits.status == "waiting_human"
    first = [step for step in bench.load(waits.id).steps if "same" in step]
    titles = {gitgate.show(gate).title: gate for gate in waits.gates}
    assert sorted(titles) == ["Take a?", "Take bb?"]
    other = bench.begin(feature)
    other_way = [step for step in bench.load(other.id).steps if "same" in step]
    assert sorted(first) == sorted(other_way) == ["task#1/soon#1/step:same#1", "task#2/soon#1/step:same#1"]
    gitgate.respond(titles["Take bb?"], approve=True, resume=False)
    assert bench.again(feature, waits.id).status == "waiting_human"
    assert going == ["bb"]
    gitgate.respond(titles["Take a?"], reject=True, resume=False)
    again = bench.again(feature, waits.id)
    assert [gitgate.show(gate).title for gate in again.gates] == ["Which?"]
    gitgate.respond(again.gates[0], "this", resume=False)
    assert bench.again(feature, waits.id).value == ["a 1 False", "bb 2 True", "this", 3]


@pytest.mark.slow
def test_a_loop_that_has_something_to_do_keeps_the_run(bench: FlowBench) -> None:
    """A timer, a thread, a step: as long as one of them goes on, the run is not let go."""
    did: list[str] = []

    async def works() -> None:
        await asyncio.sleep(0.2)
        await asyncio.to_thread(time.sleep, 0.2)
        await gitgate.soon(gitgate.step, lambda: time.sleep(0.2), name="slow")
        did.append("all")

    @gitgate.flow
    async def feature() -> bool:
        word, _ = await asyncio.gather(gitgate.soon(gitgate.pause, "On?"), works())
        return bool(word)

    assert bench.begin(feature).status == "waiting_human"
    assert did == ["all"]


def test_an_error_of_what_is_awaited_is_the_flows(bench: FlowBench) -> None:
    """And what was begun beside it comes to its end; `stuck` passes through what the flow catches."""
    did: list[str] = []

    def fails() -> None:
        raise ValueError("no")

    @gitgate.flow
    async def feature() -> None:
        beside = gitgate.soon(gitgate.step, lambda: did.append("beside"), name="beside")
        await gitgate.soon(gitgate.step, fails)
        await beside

    @gitgate.flow
    async def gives_up() -> None:
        try:
            await asyncio.gather(gitgate.soon(gitgate.stuck, "no way on"))
        except Exception:  # noqa: BLE001 - what a careless flow does
            return

    ended = bench.begin(feature)
    assert (ended.status, ended.reason, did) == ("failed", "ValueError: no", ["beside"])
    stuck = bench.begin(gives_up)
    assert (stuck.status, stuck.reason) == ("stuck", "no way on")


def test_a_call_that_blocks_the_loop_is_woken_by_what_ends_beside_it(bench: FlowBench) -> None:
    """Nobody waits for ever where a flow mixes both: the run is let go when everything waits."""

    def slowly() -> int:
        time.sleep(0.2)
        return 7

    @gitgate.flow
    async def mixed() -> list[Any]:
        beside = gitgate.soon(gitgate.step, slowly)
        word = bool(gitgate.pause("On?"))
        return [word, await beside]

    waits = bench.begin(mixed)
    assert waits.status == "waiting_human"
    gitgate.respond(waits.gates[0], approve=True, resume=False)
    assert bench.again(mixed, waits.id).value == [True, 7]


def test_the_async_flow_of_the_page_runs() -> None:
    """As `docs/flows.md` has it."""
    page = (Path(__file__).parents[2] / "docs" / "flows.md").read_text(encoding="utf-8")
    blocks = [block.partition("```")[0] for block in page.split("```python\n")[1:]]
    names: dict[str, Any] = {}
    exec(next(block for block in blocks if "async def" in block), names)  # noqa: S102 - our own page
    assert testing.play(names["reviews"], "x", people={"tester": False}).result == [True, False]


def test_outside_of_a_flow_soon_is_a_thread() -> None:
    """So that a function which is used in both does the same."""

    async def both() -> list[int]:
        return list(await asyncio.gather(gitgate.soon(len, "ab"), gitgate.soon(gitgate.step, lambda: 3)))

    assert asyncio.run(both()) == [2, 3]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_async_flow_is_killed_at_every_event() -> None:
    """Each agent starts once, each person is asked once, whatever was awaited at once."""

    async def one(name: str) -> str:
        said = await gitgate.soon(gitgate.run, name, "do it")
        return f"{said.status} {bool(await gitgate.soon(gitgate.pause, f'Take {name}?'))}"

    @gitgate.flow
    async def feature() -> list[str]:
        return list(await asyncio.gather(one("left"), one("right"), gitgate.soon(gitgate.uuid)))[:2]

    for crash in testing.crashes(feature):
        assert crash.result == ["DONE True", "DONE True"], crash.crash
        assert sorted(crash.starts) == ["start left", "start right"], crash.crash
        assert sorted(crash.asked) == ["Take left?", "Take right?"], crash.crash


# afresh


@gitgate.flow
def counts(total: int, rounds: int) -> int:
    """Goes on afresh with what it has come to."""
    total += len(gitgate.run("coder", str(rounds)).summary)
    if rounds and gitgate.pause(f"Round {rounds}?"):
        gitgate.again(total, rounds=rounds - 1)
    return total


CODER = {"coder": {"status": "DONE", "summary": "ab"}}


@pytest.mark.slow
def test_a_flow_starts_afresh_in_a_run_of_its_own() -> None:
    """With what it is given; each of the two runs names the other, and the first is over."""
    with testing.stage() as stage:
        played = stage.play(counts, 0, rounds=2, agents=CODER)
        assert played.result == 6
        desk = stage.desk()
        last = load_run(desk, played.id)
        before = load_run(desk, last.started.text("after"))
        assert before.end is not None
        assert (before.state, before.end.text("next")) == ("completed", last.id)
        assert last.started.said["given"] == {"args": [4], "kwargs": {"rounds": 0}}
        assert load_run(desk, before.started.text("after")).started.text("after") == ""
        desk.close()


@pytest.mark.slow
def test_starting_afresh_is_killed_at_every_event() -> None:
    """There is one run that goes on, and in each the agent starts once."""
    places = []
    for crash in testing.crashes(counts, 0, rounds=1, agents=CODER):
        places.append(crash.crash)
        assert crash.result == 4, crash.crash
        assert crash.starts == ("start coder", "start coder"), crash.crash
        assert crash.asked == ("Round 1?",), crash.crash
    assert {"after done of again#1", "before completed", "after completed"} <= set(places)


@pytest.mark.parametrize("which", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_whoever_begins_the_next_run_may_die_in_it(which: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is claimed with its start, and before it is let go: it is begun once."""
    moves: list[str] = []
    held: list[HeldRun] = []
    plain_update, plain_next, plain_begin = Refs.update, program.begin_next, journal.begin_run
    watched: list[bool] = []

    def update(refs: Refs, wanted: Sequence[RefMove]) -> None:
        if watched:
            moves.append(wanted[0].ref)
            if len(moves) == which + 1:
                watched.clear()
                for one in held[:-1]:  # the system takes back what the process had
                    with contextlib.suppress(Crash):
                        die(one)
                die(held[-1])
        plain_update(refs, wanted)

    def begin_next(desk: Any, run: Any, again: Any) -> str:
        watched[:] = [True] * (len(moves) <= which)
        try:
            return plain_next(desk, run, again)
        finally:
            watched.clear()

    def begin_run(*given: Any, **how: Any) -> HeldRun:
        held.append(plain_begin(*given, **how))
        return held[-1]

    plain_play = program.play

    def play(one: HeldRun, *given: Any) -> Any:
        held[:] = [one]
        return plain_play(one, *given)

    monkeypatch.setattr(program, "play", play)
    monkeypatch.setattr(program, "begin_run", begin_run)
    monkeypatch.setattr(program, "begin_next", begin_next)
    monkeypatch.setattr(Refs, "update", update)
    with testing.stage() as stage:
        result = stage.play(counts, 0, rounds=1, agents=CODER)
        assert result.result == 4
        assert result.starts == ("start coder", "start coder")
        assert len(moves) > which, moves
        desk = stage.desk()
        assert len(desk.refs.under("refs/hitl/runs/")) == 2
        desk.close()


def test_a_run_that_starts_afresh_goes_on_in_its_process(repo: Clone, cli: Command) -> None:
    """What is told is the last run's; `show` names both."""
    code = "import gitgate\n@gitgate.flow\ndef up(n: int):\n    n = gitgate.step(lambda: n + 1, name='up')\n    if n < 3:\n        gitgate.again(n)\n    return n\n"
    repo.write("up.py", code)
    last = cli("run", "up.py", "0", "--json", code=0).json
    assert (last["status"], last["result"]) == ("completed", 3)
    shown = cli("show", last["after"], "--json", code=0).json
    assert (shown["status"], shown["next"]) == ("completed", last["id"])
    assert f"goes on after run {last['after']}" in cli("show", last["id"], code=0).out
    assert len(cli("list", "--runs", "--json", code=0).json["runs"]) == 3


def test_again_is_for_the_flow_itself() -> None:
    """In a branch it is refused: the others would go on."""

    @gitgate.flow
    def branches() -> None:
        gitgate.parallel(lambda: gitgate.again(1))

    assert "again is for the flow itself" in testing.play(branches).reason
