"""What a session proposes is nobody's answer: a person confirms it, and `--yes` keeps it as what it is."""

from __future__ import annotations

import io
import json
import os
import pty
import sys
from collections.abc import Callable
from pathlib import Path
from xml.dom import minidom

import pytest

import gitgate
from gitgate.agents.claude.transcript import project_folder
from gitgate.cli.verbs.join import confirmed
from support.talking import Meeting, meet
from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

pytestmark = pytest.mark.slow  # each takes a second or more

Pty = Callable[..., Terminal]
AUTOMATIC = "policy:\n  automatic: true\n"
YES = '{"status": "APPROVED", "summary": "All green."}'
OBJECT = 'reply ```json|{"decision": "approve"}|```'
TOOL = 'tool {"value": "approve", "summary": "Staging is green."}'


@pytest.fixture
def desk(repo: Clone, cli: Command, tmp_path: Path) -> Meeting:
    return meet(repo, cli, tmp_path / "claude")


@pytest.fixture
def gate(desk: Meeting) -> str:
    return desk.talk("Shall we migrate?", "--outcome", "approval")


def begin(terminal: Terminal, *lines: str) -> Terminal:
    terminal.expect("earlier messages")
    for line in lines:
        terminal.line(line)
        terminal.expect(f"claude: {line.split()[0]} done")
    return terminal


def left(terminal: Terminal, code: int) -> str:
    terminal.line("leave")
    return terminal.finish(code=code)


def own_session(desk: Meeting) -> str:
    """A gate of an agent whose conversation is opened where it was."""
    session = "0b9c4f0e-0000-4000-8000-000000000000"
    place = project_folder(os.environ, desk.repo.path)
    place.mkdir(parents=True)
    said = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "message": {"role": "user", "content": "Go on."},
    }
    (place / f"{session}.jsonl").write_text(json.dumps(said) + "\n", encoding="utf-8")
    return desk.ask("Deploy?", "--type", "approval", "--agent", "claude", "--session", session)


def waits(desk: Meeting, gate: str) -> bool:
    shown = desk.show(gate)
    return shown["state"] == "awaiting" and shown["answer"] is None


def test_yes_confirms_nothing_and_keeps_the_proposal(desk: Meeting, pty_cli: Pty, gate: str) -> None:
    """However plain it is, the gate waits (8); what was proposed is told wherever the gate is shown, and by the next join."""
    said = left(begin(pty_cli("join", gate, "--yes"), "say so be it", TOOL), 8)
    assert "claude proposes, by its tool `outcome`: approved" in said
    assert "kept as a proposal" in said
    assert waits(desk, gate)
    told = {
        "value": True,
        "agent": "claude",
        "summary": "Staging is green.",
        "approved": False,
        "confirmed": False,
    }
    (listed,) = desk.cli.quick("list", "--json", code=0).json["gates"]
    for shape in (desk.show(gate), listed):
        assert told.items() <= shape["proposal"].items()
    letter = desk.cli.quick("show", gate, code=0).out
    assert "Proposed, and confirmed by nobody" in letter
    assert "Staging is green." in letter
    (element,) = minidom.parseString(  # noqa: S318 - what is parsed is our own
        desk.cli.quick("show", gate, "--format", "xml", code=0).out.encode()
    ).getElementsByTagName("proposal")
    assert (element.getAttribute("approved"), element.getAttribute("agent")) == ("false", "claude")
    assert "nobody has confirmed it" in desk.cli.quick("log", gate, code=0).out
    desk.cli("check", gate, code=8)
    again = pty_cli("join", gate)
    assert "Proposed, and confirmed by nobody" in again.expect("earlier messages")
    again.line("leave")
    again.expect("[y/n]: ")  # Told, and not taken up: an answer is the person's own.
    again.line("y")
    again.finish(code=0)
    assert desk.show(gate)["proposal"] is None
    assert desk.answer(gate)["approved"] is True


@pytest.mark.parametrize(
    "line", [TOOL, "outcome approve", 'file {"value": "approve"}', f"signal {YES}", OBJECT]
)
def test_yes_takes_no_way_of_saying_it(desk: Meeting, pty_cli: Pty, gate: str, line: str) -> None:
    """The tool, the command, the file, a signal, an object: each is kept, none approves."""
    left(begin(pty_cli("join", gate, "--yes"), line), 8)
    assert waits(desk, gate)
    assert desk.show(gate)["proposal"]["value"] is True


def test_a_yes_that_was_taken_back_is_not_pressed_on_anybody(desk: Meeting, pty_cli: Pty, gate: str) -> None:
    """The person's own last words stand beside the proposal, and a bare Enter is nothing at all then."""
    terminal = begin(
        pty_cli("join", gate), "say yes, do it", TOOL, "say no wait, the backup failed. Take it back"
    )
    terminal.line("leave")
    shown = terminal.expect("[y/e/n/c]: ")
    assert "you said last: no wait, the backup failed. Take it back" in shown
    assert "the two may differ" in shown
    terminal.line("")
    assert "expected one of y, e, n, c" in terminal.expect("[y/e/n/c]: ")
    terminal.line("n")
    terminal.finish(code=8)
    assert waits(desk, gate)


def test_where_nothing_was_said_after_it_enter_is_not_yet(desk: Meeting, pty_cli: Pty, gate: str) -> None:
    """The person's last words came before the proposal."""
    terminal = begin(pty_cli("join", gate), "say yes, do it", TOOL)
    terminal.line("leave")
    shown = terminal.expect("[y/e/n/c]: ")
    assert "you said last: yes, do it" in shown
    assert "may differ" not in shown
    terminal.line("")
    terminal.finish(code=8)


class AnswersNo(io.StringIO):
    """A screen, and somebody before it who types `n` when the question stands there."""

    def __init__(self, keyboard: int) -> None:
        super().__init__()
        self.keyboard = keyboard

    def write(self, text: str) -> int:
        if text.endswith("[y/e/n/c]: "):
            os.write(self.keyboard, b"n\n")
        return super().write(text)


@pytest.mark.parametrize("typed", [b"y\n", b"yes\ny\n", b"\n\ny\n", b"y"])
def test_what_was_typed_before_the_question_is_no_consent(
    monkeypatch: pytest.MonkeyPatch, typed: bytes
) -> None:
    """While the session was saved and the remote asked: meant for the session, or put there by what it left running."""
    master, slave = pty.openpty()
    with os.fdopen(slave, encoding="utf-8") as keyboard:
        monkeypatch.setattr(sys, "stdin", keyboard)
        os.write(master, typed)
        monkeypatch.setattr(sys, "stderr", AnswersNo(master))
        with pytest.raises(EOFError):
            confirmed(differs=False)
    os.close(master)


@pytest.mark.parametrize("how", ["as it was", "touched", "another name", "dated ahead"])
def test_a_signal_from_before_the_session_is_no_outcome_of_it(desk: Meeting, pty_cli: Pty, how: str) -> None:
    """Whoever asked had left an APPROVED: it proposes nothing, also where it is written again or has another date."""
    desk.repo.commit("policy", **{".gitgate.yml": AUTOMATIC})
    desk.repo.write(".agents/signals/coder.json", YES)
    gate = own_session(desk)
    terminal = begin(pty_cli("join", gate, "--yes"))
    place = desk.repo.path / ".agents" / "signals"
    assert Path(desk.runs[0]["cwd"]) == desk.repo.path.resolve()
    if how == "touched":
        (place / "coder.json").write_text(YES)
    elif how == "another name":
        (place / "other.json").write_text(YES)
    elif how == "dated ahead":
        os.utime(place / "coder.json", (4e9, 4e9))
    assert (place / "coder.json").exists()
    assert "proposed no outcome" in left(terminal, 8)
    assert waits(desk, gate)


@pytest.mark.parametrize(
    "lines", [(TOOL, "say hold on"), ("say hold on", OBJECT), ("say no", "reply As agreed: APPROVED")]
)
def test_even_a_policy_takes_nothing_doubtful(
    desk: Meeting, pty_cli: Pty, gate: str, lines: tuple[str, ...]
) -> None:
    """A word of the person's after it, an object that may repeat an older yes, prose: with `automatic: true` these wait too."""
    desk.repo.commit("policy", **{".gitgate.yml": AUTOMATIC})
    left(begin(pty_cli("join", gate, "--yes"), *lines), 8)
    assert waits(desk, gate)


def test_a_policy_may_say_so_in_so_many_words(desk: Meeting, pty_cli: Pty, gate: str) -> None:
    """Then it is the answer, and everywhere it says that nobody confirmed it: it is approved by nobody."""
    desk.repo.git("checkout", "-qb", "topic")
    desk.repo.commit("not the protected branch's", **{".gitgate.yml": AUTOMATIC})
    left(begin(pty_cli("join", gate, "--yes"), TOOL), 8)
    assert waits(desk, gate)
    desk.repo.git("checkout", "-q", "main")
    desk.repo.commit("policy", **{".gitgate.yml": AUTOMATIC})
    left(begin(pty_cli("join", gate, "--yes"), TOOL), 0)
    answer = desk.answer(gate)
    assert (answer["verdict"], answer["approved"], answer["confirmed"]) == ("approved", False, False)
    assert answer["via"] == "join --yes"
    assert desk.held(gate)["confirmed"] is False
    known = gitgate.check(gate, directory=desk.repo.path)
    assert known is not None
    assert (known.value, known.approved, known.confirmed) == (True, False, False)
    result = gitgate.Interactive(gate, directory=desk.repo.path).wait()
    assert result is not None
    assert (result.response, result.confirmed) == (True, False)
    assert "nobody confirmed it" in desk.cli.quick("log", gate, code=0).out
    (event,) = [
        e for e in desk.cli.quick("log", gate, "--json", code=0).json["events"] if e["event"] == "answered"
    ]
    assert (event["approved"], event["confirmed"]) == (False, False)
    assert 'approved="false"' in desk.cli.quick("show", gate, "--format", "xml", code=0).out
    assert "nobody confirmed it" in desk.cli.quick("show", gate, code=0).out
    assert "nobody confirmed this" in desk.cli("check", gate, code=0).err


def test_a_policy_that_keeps_scripts_out_still_takes_a_person(desk: Meeting, pty_cli: Pty, gate: str) -> None:
    """`automatic: false` says nothing against what somebody confirmed."""
    desk.repo.commit("policy", **{".gitgate.yml": "policy:\n  automatic: false\n"})
    left(begin(pty_cli("join", gate, "--yes"), TOOL), 8)
    terminal = begin(pty_cli("join", gate), TOOL)
    terminal.line("leave")
    terminal.expect("is that your answer?")
    terminal.line("y")
    terminal.finish(code=0)
    assert desk.answer(gate)["approved"] is True


def test_the_machine_may_say_so_too(desk: Meeting, pty_cli: Pty, gate: str, tmp_path: Path) -> None:
    """Its own policy file, outside of the working tree."""
    place = tmp_path / "machine.yml"
    place.write_text(AUTOMATIC)
    desk.repo.git("config", "gitgate.policyFile", str(place))
    left(begin(pty_cli("join", gate, "--yes"), TOOL), 0)
    assert json.dumps(desk.answer(gate)["values"]) == '{"answer": true}'
