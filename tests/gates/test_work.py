"""The work that an agent left with its question: looked at from any clone that may have it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gitgate.acts.asking import AskWishes, ask
from gitgate.context import open_desk
from gitgate.errors import Failure
from gitgate.exchange.syncing import sync
from gitgate.gates.work import beside, bring_work, diff_of, worktrees
from gitgate.model.gate import Gate, Question
from gitgate.questions.drafts import Draft
from gitgate.store.records import Signature
from support.resuming import Seat
from support.testbed.command import Command
from support.testbed.repositories import Clone, run_git


def half_done(seat: Seat) -> Gate:
    seat.clone.write("README", "Another project.\n")
    return seat.ask(push=True)


def test_a_question_without_work(person: object, tmp_path: Path) -> None:
    """Where nothing is committed and nothing was to be taken along there is no difference, and nothing to open."""
    run_git("init", "-q", "empty", cwd=tmp_path)
    with Seat(Clone(tmp_path / "empty")) as seat:
        gate = ask(seat.desk, Draft((Question("answer", "Which?", "text"),)), AskWishes(work=False)).gate
        assert diff_of(seat.desk, gate) == ""
        with pytest.raises(Failure, match="has no work"):
            bring_work(seat.desk, gate)


def test_work_that_was_published_is_fetched(ann: Seat, bob: Seat) -> None:
    """By whoever looks at it, and only then."""
    ann.clone.git("config", "gitgate.publishWork", "true")
    gate = half_done(ann)
    sync(bob.desk)
    work = str(gate.opened.work.commit)
    assert not bob.clone.repository.git.ok("cat-file", "-e", work)
    assert "+Another project." in diff_of(bob.desk, bob.now(gate)).splitlines()
    assert bob.clone.repository.git.ok("cat-file", "-e", work)


def test_work_that_stayed_where_it_was(ann: Seat, bob: Seat) -> None:
    """Who wants to see it is told where it is; a list goes on without its numbers."""
    gate = half_done(ann)
    sync(bob.desk)
    with pytest.raises(Failure, match="it stayed where scripted asked"):
        diff_of(bob.desk, bob.now(gate))
    assert diff_of(bob.desk, bob.now(gate), stat=True) == ""


def test_colours_are_put_on_after_everything_else_was_taken_off(alone: Seat) -> None:
    """What is added is green, what goes is red, and an escape in the text itself is no colour."""
    alone.clone.write("README", "Another \x1b[32mproject.\n")
    text = diff_of(alone.desk, alone.ask(), color=True)
    lines = text.splitlines()
    assert "\x1b[31m-A project.\x1b[0m" in lines
    added = next(line for line in lines if "Another" in line)
    assert added.startswith("\x1b[32m+Another")
    assert added.count("\x1b") == 2
    assert any(line.startswith("\x1b[36m@@") for line in lines)


def test_a_place_that_is_taken(alone: Seat) -> None:
    """Nothing is opened over what is there; how to name another place is said."""
    gate = alone.ask()
    place = beside(alone.desk, gate)
    place.mkdir()
    with pytest.raises(Failure, match="already there") as refused:
        beside(alone.desk, gate)
    assert refused.value.hint == f"git gate worktree {gate.id[:6]} DIR"


def test_where_agents_from_elsewhere_work(alone: Seat, bare: object, tmp_path: Path) -> None:
    """In a folder that was named, else in the person's own, else, where nobody has a home, in the repository."""
    alone.clone.git("config", "gitgate.worktrees", str(tmp_path / "named"))
    assert worktrees(alone.desk) == tmp_path / "named"
    alone.clone.git("config", "--unset", "gitgate.worktrees")
    own = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    homeless = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_STATE_HOME")}
    assert worktrees(open_desk(alone.clone.path, own)).is_relative_to(tmp_path / "state/gitgate/worktrees")
    assert worktrees(open_desk(alone.clone.path, homeless)) == alone.clone.path / ".git/gitgate/worktrees"


def staged_then_deleted(clone: Clone) -> None:
    """A new file, whose content is in the index alone."""
    clone.write("db/new.sql", "drop\n")
    clone.git("add", "db/new.sql")
    (clone.path / "db/new.sql").unlink()


def staged_then_put_back(clone: Clone) -> None:
    """A file that is in the working tree as it was committed."""
    clone.write("db/old.sql", "drop\n")
    clone.git("add", "db/old.sql")
    clone.write("db/old.sql", "create\n")


def staged_for_removal(clone: Clone) -> None:
    """A file that is still there."""
    clone.git("rm", "-q", "--cached", "db/old.sql")


def planted_as_conflict(clone: Clone) -> None:
    """An entry that says that a merge brought it; no file and no tree has it."""
    blob = clone.git("hash-object", "-w", "--stdin", input="drop\n")
    clone.git("update-index", "--index-info", input=f"100644 {blob} 3\tdb/new.sql\n")


def committed_then_deleted(clone: Clone) -> None:
    """A new file that the branch has, and only its working tree has not."""
    clone.commit("schema", **{"db/new.sql": "drop\n"})
    (clone.path / "db/new.sql").unlink()


HIDDEN = [
    (staged_then_deleted, "db/new.sql", "+drop"),
    (staged_then_put_back, "db/old.sql", "+drop"),
    (staged_for_removal, "db/old.sql", "-create"),
    (planted_as_conflict, "db/new.sql", "+drop"),
    (committed_then_deleted, "db/new.sql", "-drop"),
]
RULE = 'policy: {rules: [{name: schema, paths: ["db/**"], who: [bob@example.org]}]}\n'


@pytest.fixture
def topic(alone: Seat) -> Seat:
    """A branch of a project whose protected branch says who answers for `db/`."""
    alone.clone.commit("rules", **{".gitgate.yml": RULE, "db/old.sql": "create\n"})
    alone.clone.git("checkout", "-q", "-b", "topic")
    return alone


@pytest.mark.parametrize(("hide", "path", "line"), HIDDEN)
def test_what_the_files_do_not_show_is_judged_and_shown(
    topic: Seat, cli: Command, hide: Callable[[Clone], None], path: str, line: str
) -> None:
    """All that comes back with the work counts for a rule about paths, and a person sees it before anything else."""
    hide(topic.clone)
    topic.clone.write("README", "Another project.\n")
    gate = topic.ask()
    ruling = cli.quick("policy", "check", gate.id, "--who", "ada@example.org", "--json", code=4).json
    assert (ruling["rule"], path in ruling["paths"]) == ("schema", True)
    hidden = path if hide is not committed_then_deleted else None
    assert ruling["staged_only"] == ([hidden] if hidden else [])
    shown = cli.quick("show", gate.id, "--json", code=0).json["work"]
    assert shown["staged_only"] + shown["in_conflict"] == ([hidden] if hidden else [])
    assert f" {path} | " in cli.quick("show", gate.id, code=0).out
    patch = cli.quick("diff", gate.id, code=0).out
    assert line in patch.splitlines()
    if hidden:
        assert patch.index(line) < patch.index("+Another project.")
        assert "it comes back with the work" in patch


def test_work_that_is_staged_as_it_stands_hides_nothing(topic: Seat, cli: Command) -> None:
    """What is staged and unchanged since is told once."""
    topic.clone.write("staged", "s\n")
    topic.clone.git("add", "staged")
    topic.clone.write("README", "Another project.\n")
    gate = topic.ask()
    shown = cli.quick("show", gate.id, "--json", code=0).json["work"]
    assert (shown["staged_only"], shown["in_conflict"]) == ([], [])
    assert cli.quick("diff", gate.id, code=0).out.count("+s\n") == 1
    assert cli.quick("policy", "check", gate.id, "--who", "ada@example.org", code=0).err == ""


def test_a_record_that_calls_its_work_clean_is_shown_all_the_same(topic: Seat, cli: Command) -> None:
    """By its commits: what it says of itself anybody could have written."""
    staged_then_deleted(topic.clone)
    gate = topic.ask()
    opened = replace(gate.opened, work=replace(gate.opened.work, dirty=False), nonce="00" * 6)
    forged = topic.desk.records.write_opened(opened, {}, Signature("Eve <eve@example.org>", 1))
    topic.clone.git("update-ref", f"refs/hitl/open/{forged.id}", forged.tip)
    assert "+drop" in cli.quick("diff", forged.id, code=0).out
    shown = cli.quick("show", forged.id, "--json", code=0).json["work"]
    assert (shown["dirty"], shown["staged_only"]) == (True, ["db/new.sql"])


def test_work_that_is_not_here_may_hide_anything(ann: Seat, bob: Seat, cli: Command) -> None:
    """Nobody says that there is nothing."""
    staged_then_deleted(ann.clone)
    gate = ann.ask(push=True)
    sync(bob.desk)
    shown = cli.quick("show", gate.id, "--json", cwd=bob.clone.path, code=0).json["work"]
    assert (shown["staged_only"], shown["in_conflict"]) == (None, None)
