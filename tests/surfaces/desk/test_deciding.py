"""What a key means: which command, on exactly what was shown; and the seconds in which it can be taken back."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from gitgate.cli.terminal import Screen
from gitgate.cli.verbs.desk import open_it
from gitgate.context import open_desk
from gitgate.errors import GateError, Usage
from gitgate.gates.recording import reload
from gitgate.model.gate import Gate
from gitgate.store.git.programs import run_beside
from gitgate.surfaces import desk as inbox
from gitgate.surfaces.desk import DecisionQueue, GateCommand
from gitgate.surfaces.desk.widgets import ON_LETTER, ON_LIST, hint_line, key_lines
from support.testbed.command import Command
from support.testbed.repositories import Clone

PLACE = Path("/somewhere/here")


@pytest.fixture
def asked(repo: Clone, cli: Command) -> Asked:
    return Asked(repo, cli)


@dataclass(frozen=True)
class Asked:
    """Gates in a clone, as the desk would have read them."""

    repo: Clone
    cli: Command

    def __call__(self, *args: str) -> Gate:
        name = self.cli.quick("ask", *args, "--no-work", "-q", code=0).line
        return self.now(name)

    def now(self, name: str) -> Gate:
        desk = open_desk(self.repo.path, os.environ)
        try:
            return reload(desk, name)
        finally:
            desk.close()


def test_a_key_is_bound_to_what_was_shown(asked: Asked) -> None:
    """The commit of the gate goes along; what is shown at the bottom is what a person would type."""
    gate = asked("Deploy?", "--type", "approval")
    yes = inbox.approving(PLACE, gate, yes=True)
    assert yes.words == ("respond", gate.id[:6], "--approve", "--seen", gate.tip, "--via", "desk")
    assert yes.shown(there=False) == f"git gate respond {gate.id[:6]} --approve"
    assert yes.shown(there=True) == f"git gate -C /somewhere/here respond {gate.id[:6]} --approve"
    assert inbox.approving(PLACE, gate, yes=False, amend=True).words[2:4] == ("--reject", "--amend")
    stop = inbox.stopping(PLACE, gate.id, "--seen")
    assert stop.words[-2:] == ("--via", "desk")
    assert stop.shown(there=False) == f"git gate stop {gate.id[:6]} --reason --seen"


def test_a_digit_is_the_option_at_that_place(asked: Asked) -> None:
    """By its label, also where that looks like something else; yes and no have their keys."""
    gate = asked("Which?", "-o", "Postgres", "-o", "--none", "-o", "@home", "-o", "1")
    shown = [inbox.choosing(PLACE, gate, number).words[2:-4] for number in (1, 2, 3, 4)]
    assert shown == [("Postgres",), ("-a", "answer=--none"), ("-a", "answer=@home"), ("1",)]
    with pytest.raises(Usage, match="has options 1 to 4"):
        inbox.choosing(PLACE, gate, 5)
    with pytest.raises(Usage, match="a approves, r rejects"):
        inbox.choosing(PLACE, asked("Deploy?", "--type", "approval"), 1)
    with pytest.raises(Usage, match="has no options; e answers it"):
        inbox.choosing(PLACE, asked("Why?"), 1)


def test_what_does_not_fit_is_refused_at_once(asked: Asked) -> None:
    """Nothing waits to be sent that the command would refuse."""
    choice = asked("Which?", "-o", "Postgres", "-o", "SQLite", "--no-other")
    with pytest.raises(GateError):
        inbox.approving(PLACE, choice, yes=True)
    with pytest.raises(GateError):
        inbox.saying(PLACE, choice, "MySQL")
    with pytest.raises(GateError):
        inbox.saying(PLACE, asked("Deploy?", "--type", "approval"), "perhaps")


def test_a_line_is_an_option_or_own_words(asked: Asked) -> None:
    gate = asked("Which?", "-o", "Postgres", "-o", "SQLite")
    assert inbox.saying(PLACE, gate, "sql").words[2] == "sql"
    assert inbox.saying(PLACE, gate, "MySQL").words[2:4] == ("--other", "MySQL")
    assert inbox.saying(PLACE, asked("Why?"), "-because").words[2:4] == ("-a", "answer=-because")


def test_several_questions_are_answered_in_the_editor(asked: Asked, tmp_path: Path) -> None:
    file = tmp_path / "two.json"
    file.write_text('{"questions": [{"key": "a", "prompt": "A?"}, {"key": "b", "prompt": "B?"}]}')
    gate = asked("--file", str(file))
    with pytest.raises(Usage, match="2 questions at once: e answers them"):
        inbox.approving(PLACE, gate, yes=True)


class Ticking:
    at = 0.0

    def __call__(self) -> float:
        return self.at


def command(gate: str, does: str = "approve") -> GateCommand:
    return GateCommand(PLACE, gate, ("respond", gate, f"--{does}"), does)


def test_a_decision_can_be_taken_back_until_it_is_due() -> None:
    """The chosen gate's, else the last one; afterwards there is none."""
    clock = Ticking()
    queue = DecisionQueue(5.0, clock)
    for name in ("a1", "b1", "c1"):
        queue.add(command(name))
    assert queue.due() == []
    assert queue.undo("a1") == command("a1")
    assert queue.undo("zz") == command("c1")
    assert queue.notes == {"b1": "approve in 5 s"}
    clock.at = 5.0
    assert queue.due() == [command("b1")]
    assert (queue.due(), queue.undo(), queue.waiting) == ([], None, [])


def test_of_one_gate_the_last_word_counts() -> None:
    """And what is left is sent whole by whoever leaves."""
    queue = DecisionQueue(5.0, Ticking())
    queue.add(command("a1"))
    queue.add(command("b1"))
    queue.add(command("a1", "reject"))
    assert queue.all() == [command("b1"), command("a1", "reject")]
    assert queue.all() == []


@pytest.mark.slow
def test_a_stale_decision_is_refused_and_a_fresh_one_recorded(asked: Asked) -> None:
    """Whose terms changed after it was shown is refused with exit 6, and still waits."""
    gate = asked("Deploy?", "--type", "approval")
    place = asked.repo.path
    old = inbox.approving(place, gate, yes=True)
    asked.cli.quick("edit", gate.id, "--to", "ada@example.org", code=0)
    refused = inbox.run_gate_command(old, os.environ)
    assert (refused.code, refused.stale) == (6, True)
    assert "edited after you read it" in refused.words
    assert asked.now(gate.id).state == "awaiting"
    asked.cli.quick("edit", gate.id, "--to", "anyone", code=0)
    fresh = inbox.approving(place, asked.now(gate.id), yes=True)
    done = inbox.run_gate_command(fresh, os.environ)
    assert (done.code, done.stale) == (0, False)
    assert f"gate {gate.id} approved" in done.words
    assert asked.now(gate.id).state == "answered"


@pytest.mark.slow
@pytest.mark.parametrize("label", ["--none", "@home", "-", "#2", "it's 'quoted' $HOME"])
def test_a_label_like_a_flag_is_answered_as_it_stands(asked: Asked, label: str) -> None:
    """Whatever an agent calls its options, the command says that option and nothing else."""
    gate = asked("Which?", "-o", "Postgres", "-o", label)
    done = inbox.run_gate_command(inbox.choosing(asked.repo.path, gate, 2), os.environ)
    assert done.code == 0, done.words
    answer = asked.now(gate.id).answer
    assert answer is not None
    assert answer.answer.values == {"answer": label}


def test_what_cannot_be_started_is_said(tmp_path: Path) -> None:
    done = run_beside([str(tmp_path / "nothing")], tmp_path, os.environ)
    assert done.code == 127
    assert "could not be started" in done.err


def test_no_file_of_the_working_tree_shortens_the_moment_for_second_thoughts(repo: Clone) -> None:
    """Nor does the environment: an agent can write both."""
    repo.write(".gitgate.yml", "settings:\n  deskKeys: approve=r reject=a\n  deskUndo: 0s\n")
    env = {**os.environ, "GITGATE_DESK_KEYS": "approve=r reject=a", "GITGATE_DESK_UNDO": "0"}
    desk = open_desk(repo.path, env)
    assert desk.settings.span("deskUndo") == 5.0
    desk.close()


@pytest.mark.parametrize("cells", [60, 80, 140])
def test_how_to_find_the_keys_and_how_to_leave_is_always_shown(cells: int) -> None:
    for keys in (ON_LIST, ON_LETTER):
        line = hint_line(keys, cells)
        assert len(line) <= cells
        assert "? keys" in line
        assert line.split("  ")[-1].startswith("q ")
    listed = "\n".join(key_lines(ON_LIST))
    assert "a           approve" in listed
    assert listed.count("option") == 1


def test_the_desk_needs_a_terminal(repo: Clone, cli: Command) -> None:
    """Scripts are told what to use instead."""
    done = cli.quick("desk", code=2)
    assert "the desk needs a terminal" in done.err
    assert "git gate list --everywhere --json" in done.err


def test_without_textual_the_command_that_installs_it_is_said(
    repo: Clone, cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    class AtTerminal:
        @staticmethod
        def isatty() -> bool:
            return True

    monkeypatch.setitem(sys.modules, "textual", None)
    monkeypatch.setattr(sys, "stdin", AtTerminal())
    monkeypatch.setattr(sys, "stdout", AtTerminal())
    with pytest.raises(GateError) as absent:
        open_it(Screen())
    assert (absent.value.message, absent.value.hint) == (
        "the desk is drawn by Textual, which is not installed",
        "pip install 'git-gate[desk]'",
    )
