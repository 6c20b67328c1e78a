"""The desk itself, driven key by key: what each does is looked for in the record."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.selection import Selection

from gitgate.context import open_desk
from gitgate.gates.recording import reload
from gitgate.model.gate import Gate, Remark
from gitgate.record import Summary
from gitgate.surfaces.desk import RepositoryState
from gitgate.surfaces.desk.screens import DeskApp, InboxScreen, LetterScreen, RunScreen
from gitgate.surfaces.desk.services import DeskWorld, RepositoryRead
from gitgate.surfaces.desk.widgets import LinePrompt, LinesView, PanelScreen, PickList
from support.resuming import Seat
from support.testbed.command import Command
from support.testbed.repositories import Clone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
LONG = 60.0
Keys = Pilot[Any]


@dataclass
class Driven:
    """A desk on a repository, and what it lent the terminal for."""

    repo: Clone
    cli: Command
    lent: list[tuple[str, ...]] = field(default_factory=list)
    undo: float = 0.2
    size: tuple[int, int] = (100, 34)

    def ask(self, *args: str) -> str:
        return self.cli.quick("ask", *args, "-q", code=0).line

    def now(self, name: str) -> Gate:
        desk = open_desk(self.repo.path, os.environ)
        try:
            return reload(desk, name)
        finally:
            desk.close()

    def world(self) -> DeskWorld:
        def lend(argv: Any, _place: Path) -> int:
            self.lent.append(tuple(argv))
            return 0

        return DeskWorld(
            places=[self.repo.path],
            here=self.repo.path,
            env=dict(os.environ),
            lend=lend,
            edit=lambda _folder: "",
            undo=self.undo,
        )

    def run(self, scene: Callable[[DeskApp, Keys], Awaitable[None]]) -> DeskApp:
        app = DeskApp(self.world())

        async def play() -> None:
            async with app.run_test(size=self.size) as pilot:
                await until(pilot, lambda: bool(app.model.states))
                await scene(app, pilot)

        asyncio.run(play())
        return app


async def until(pilot: Keys, holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for the state itself, however long this machine needs for it."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, pilot.app.export_screenshot() and shown(pilot.app)
        await pilot.pause(0.02)


def shown(app: Any) -> str:
    """All words on the screen."""
    from rich.text import Text

    lines = [str(one.render()) for one in app.screen.query("Static")]
    for view in app.screen.query(LinesView):
        lines += [Text.from_ansi(line).plain for line in view.shown]
    return "\n".join(lines)


async def chosen(app: DeskApp, pilot: Keys, gate: str) -> None:
    """Until this gate is chosen and what it asks is to be read."""

    def holds() -> bool:
        screen = app.screen
        return isinstance(screen, InboxScreen) and screen.shown is not None and screen.shown.gate.id == gate

    await until(pilot, holds)


@pytest.fixture
def desk(repo: Clone, cli: Command) -> Driven:
    return Driven(repo, cli)


def test_one_key_approves_and_the_record_says_so(desk: Driven) -> None:
    """After the seconds in which it could be taken back; the words of the command are shown."""
    gate = desk.ask("Deploy?", "--type", "approval")

    async def scene(app: DeskApp, pilot: Keys) -> None:
        await chosen(app, pilot, gate)
        await pilot.press("a")
        assert f"$ git gate respond {gate[:6]} --approve" in shown(app)
        await until(pilot, lambda: f"gate {gate} approved" in app.said)
        await until(pilot, lambda: "1 answered" in shown(app))

    desk.run(scene)
    answer = desk.now(gate).answer
    assert answer is not None
    assert answer.answer.approved
    assert answer.answer.via == "desk"
    assert ", by desk" in desk.cli.quick("show", gate, code=0).out
    assert desk.cli.quick("stats", "--json", code=0).json["via"] == {"desk": 1}


def test_what_is_taken_back_in_time_was_never_said(desk: Driven) -> None:
    gate = desk.ask("Deploy?", "--type", "approval")
    desk.undo = LONG

    async def scene(app: DeskApp, pilot: Keys) -> None:
        await chosen(app, pilot, gate)
        await pilot.press("r")
        await until(pilot, lambda: "reject in" in shown(app))
        await pilot.press("u")
        await until(pilot, lambda: "is taken back; it was not sent" in app.said)

    app = desk.run(scene)
    assert app.left_over() == []
    assert desk.now(gate).state == "awaiting"


def test_whoever_leaves_has_decided(desk: Driven) -> None:
    """What could still be taken back is handed to whoever opened the desk, to be sent."""
    gate = desk.ask("Which?", "-o", "Postgres", "-o", "SQLite")
    desk.undo = LONG

    async def scene(app: DeskApp, pilot: Keys) -> None:
        await chosen(app, pilot, gate)
        await pilot.press("2", "q")

    (left,) = desk.run(scene).left_over()
    assert left.words[:3] == ("respond", gate[:6], "SQLite")


@pytest.mark.slow
def test_an_interrupt_names_the_key_that_leaves(desk: Driven) -> None:
    gate = desk.ask("Which?", "-o", "Postgres", "-o", "SQLite")

    async def scene(app: DeskApp, pilot: Keys) -> None:
        await chosen(app, pilot, gate)
        await pilot.press("ctrl+c")
        await until(pilot, lambda: "q leaves the desk" in app.said)

    assert desk.run(scene).left_over() == []


def test_a_decision_on_what_has_changed_is_refused_and_shown_anew(desk: Driven) -> None:
    """It carries the digest of what was on the screen: other terms came while it could still be taken back."""
    gate = desk.ask("Deploy?", "--type", "approval")
    desk.undo = 1.5

    async def scene(app: DeskApp, pilot: Keys) -> None:
        await chosen(app, pilot, gate)
        await pilot.press("a")
        desk.cli.quick("edit", gate, "--to", "ada@example.org", code=0)
        await until(pilot, lambda: "not recorded" in app.said)
        assert "edited after you read it" in app.said
        await chosen(app, pilot, gate)
        screen = app.screen
        assert isinstance(screen, InboxScreen)
        assert screen.shown is not None
        assert screen.shown.gate.tip == desk.now(gate).tip

    desk.run(scene)
    assert desk.now(gate).state == "awaiting"


def test_what_is_read_when_it_has_closed_is_nothing(desk: Driven) -> None:
    """A repository that was being read while the desk closed."""
    open_desks: list[DeskApp] = []

    async def scene(app: DeskApp, pilot: Keys) -> None:
        open_desks.append(app)
        await pilot.pause()

    desk.run(scene)
    assert open_desks[0].screen_stack == []
    open_desks[0].changed()


def test_a_refresh_keeps_what_is_chosen(desk: Driven) -> None:
    """A more pressing gate comes above it: the key still means the one that was chosen."""
    first = desk.ask("One?", "--type", "approval", "--priority", "high")
    second = desk.ask("Two?", "--type", "approval")

    async def scene(app: DeskApp, pilot: Keys) -> None:
        await chosen(app, pilot, first)
        await pilot.press("j")
        await chosen(app, pilot, second)
        urgent = desk.ask("Three?", "--type", "approval", "--priority", "urgent")
        await until(pilot, lambda: len(app.model.rows) == 3)
        await until(pilot, lambda: app.screen.query_one(PickList).at == 2)
        assert app.model.rows[0].key == urgent
        await pilot.press("a")
        await until(pilot, lambda: "approved" in app.said)

    desk.run(scene)
    assert [desk.now(name).state for name in (first, second)] == ["awaiting", "answered"]


def test_what_was_answered_elsewhere_is_said(ann: Seat, bob: Seat, cli: Command) -> None:
    """By whom and what, heard from the shared repository; what was about to be said here is not sent."""
    asked = ann.ask("Which database?", push=True)
    desk = Driven(ann.clone, cli, undo=LONG)
    from gitgate.exchange.syncing import sync

    sync(bob.desk)

    async def scene(app: DeskApp, pilot: Keys) -> None:
        await chosen(app, pilot, asked.id)
        await pilot.press("m")
        await until(pilot, lambda: isinstance(app.screen, LinePrompt))
        await pilot.press(*"SQLite", "enter")
        await until(pilot, lambda: "SQLite in" in shown(app))
        bob.answer(asked, "Postgres", push=True)
        await until(pilot, lambda: "was answered by" in app.said)
        assert "Postgres; 'SQLite' is not sent" in app.said

    app = desk.run(scene)
    assert app.left_over() == []


def test_a_sent_answer_is_corrected(desk: Driven) -> None:
    """`u` opens its letter, and the next key amends it, while nobody acts on it."""
    gate = desk.ask("Deploy?", "--type", "approval")

    async def scene(app: DeskApp, pilot: Keys) -> None:
        await chosen(app, pilot, gate)
        await pilot.press("a")
        await until(pilot, lambda: "approved" in app.said)
        await pilot.press("u")
        await until(pilot, lambda: isinstance(app.screen, LetterScreen) and app.screen.shown is not None)
        await until(pilot, lambda: "correcting your answer" in shown(app))
        await pilot.press("r")
        await until(pilot, lambda: "rejected" in app.said)

    desk.run(scene)
    answer = desk.now(gate).answer
    assert answer is not None
    assert answer.answer.verdict == "rejected"


def test_what_is_cut_off_is_read_before_it_is_answered(desk: Driven) -> None:
    """From the list the key opens the letter; there it answers."""
    gate = desk.ask("Deploy?", "--type", "approval", "--context", "\n".join(f"line {n}" for n in range(80)))

    async def scene(app: DeskApp, pilot: Keys) -> None:
        await chosen(app, pilot, gate)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, LetterScreen) and app.screen.shown is not None)
        assert "read all of it first" in app.said
        assert "line 79" in shown(app)
        await pilot.press("a")
        await until(pilot, lambda: "approved" in app.said)

    desk.run(scene)
    assert desk.now(gate).state == "answered"


def test_a_letter_shows_what_happens_to_its_gate(desk: Driven) -> None:
    """The diff, the history; a remark that comes meanwhile is shown at once, and said."""
    desk.repo.write("app.py", "x = 1\n")
    gate = desk.ask("Which?", "-o", "Postgres", "-o", "SQLite")

    async def scene(app: DeskApp, pilot: Keys) -> None:
        await chosen(app, pilot, gate)
        await pilot.press("enter")
        await until(pilot, lambda: "+x = 1" in shown(app))
        assert "History" in shown(app)
        desk.cli.quick("comment", gate, "the cluster is there already", code=0)
        await until(pilot, lambda: "the cluster is there already" in shown(app))
        assert "was commented meanwhile" in app.said
        await pilot.press("q")
        assert isinstance(app.screen, InboxScreen)

    desk.run(scene)


def test_later_stop_and_filter(desk: Driven) -> None:
    """A gate is put aside, another one ended with a reason, and words leave only what has them."""
    first, second = desk.ask("Which database?", "--priority", "high"), desk.ask("Which region?")

    async def scene(app: DeskApp, pilot: Keys) -> None:
        await chosen(app, pilot, first)
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, LinePrompt))
        await pilot.press("enter")
        await until(pilot, lambda: desk.now(first).later is not None)
        await until(pilot, lambda: app.model.rows[-1].key == first)
        await pilot.press("slash", *"region")
        await until(pilot, lambda: [row.key for row in app.model.rows] == [second])
        await pilot.press("enter")
        await chosen(app, pilot, second)
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, LinePrompt))
        await pilot.press(*"no", "enter")
        await until(pilot, lambda: desk.now(second).state == "stopped")
        await pilot.press("escape")
        await until(pilot, lambda: [row.key for row in app.model.rows] == [first])

    desk.run(scene)
    event = desk.now(second).history[-1].event
    assert isinstance(event, Remark)
    assert (event.text, event.via) == ("no", "desk")


def test_keys_are_shown(desk: Driven) -> None:
    gate = desk.ask("Deploy?", "--type", "approval")

    async def scene(app: DeskApp, pilot: Keys) -> None:
        await chosen(app, pilot, gate)
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, PanelScreen))
        assert "a           approve" in shown(app)
        await pilot.press("escape")
        await pilot.press("a")
        await until(pilot, lambda: "approved" in app.said)

    desk.run(scene)


def test_before_the_terminal_is_given_away_it_is_said_to_whom(desk: Driven) -> None:
    """Agent, reason, how to come back. Where it cannot be given away, as here, the command is shown."""
    gate = desk.ask("May I rewrite the parser?", "--agent", "backend")

    async def scene(app: DeskApp, pilot: Keys) -> None:
        await chosen(app, pilot, gate)
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, PanelScreen))
        text = " ".join(shown(app).split())
        assert "Agent: backend" in text
        assert "Reason: May I rewrite the parser?" in text
        assert "you are back at the desk" in text
        await pilot.press("enter")
        await until(pilot, lambda: "cannot be given to another program" in app.said)
        assert f"$ git gate join {gate[:6]}" in shown(app)

    desk.run(scene)
    assert desk.lent == []


def test_a_tree_of_the_work_is_made_once(desk: Driven) -> None:
    """`w` makes it beside the repository and says where; again it is the same one."""
    desk.repo.write("app.py", "x = 1\n")
    gate = desk.ask("Which?", "-o", "Postgres", "-o", "SQLite")
    tree = desk.repo.path.parent / f"{desk.repo.path.name}-{gate[:6]}"

    async def scene(app: DeskApp, pilot: Keys) -> None:
        await chosen(app, pilot, gate)
        for _ in range(2):
            app.said = ""
            await pilot.press("w")
            await until(pilot, lambda: f"its work is in {tree}" in app.said)

    desk.run(scene)
    assert (tree / "app.py").read_text() == "x = 1\n"


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (140, 45)])
def test_two_thousand_gates_on_every_width(desk: Driven, size: tuple[int, int]) -> None:
    """No line is broken, the last one is a key away, and one of them is found by its words."""
    desk.size = size
    told = {"state": "awaiting", "type": "text", "at": "2026-05-28T20:00:00Z", "agent": "backend"}
    many = tuple(
        Summary(f"g{n:09}", "tip", title="t", question=f"What of number {n}, セッションの保存先?", **told)
        for n in range(2000)
    )

    async def scene(app: DeskApp, pilot: Keys) -> None:
        app.watching.stop()
        app.post_message(RepositoryRead(RepositoryState(desk.repo.path, many)))
        await until(pilot, lambda: "2000 wait for an answer" in shown(app))
        await pilot.press("end")
        await until(pilot, lambda: app.screen.query_one(PickList).at == 1999)
        picture = app.export_screenshot()
        assert "g000001999" in picture
        for region in (widget.region for widget in app.screen.query("*")):
            assert region.right <= size[0]
        await pilot.press("slash", *"1234")
        await until(pilot, lambda: [row.key for row in app.model.rows] == ["g000001234"])

    desk.run(scene)


def waiting_run(repo: Clone, cli: Command) -> str:
    """A run that asked and waits."""
    repo.write(
        "flows.py",
        "import gitgate\n\n@gitgate.flow\ndef feature():\n    gitgate.step(str, 'built')\n"
        "    gitgate.ask('Ship it?', type='approval', wait=True)\n",
    )
    repo.git("add", ".")
    repo.git("commit", "-qm", "flow")
    said = cli.forked("run", "flows.py:feature", "--json", cwd=repo.path, code=8)
    return str(said.json["id"])


def test_a_run_is_opened_with_its_steps(desk: Driven) -> None:
    """Glyph, name and duration of each; a key of gates opens the one that it waits at."""
    run = waiting_run(desk.repo, desk.cli)

    async def scene(app: DeskApp, pilot: Keys) -> None:
        await pilot.press("tab")
        await until(pilot, lambda: "waiting_human" in shown(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen) and "✓" in shown(app))
        text = shown(app)
        assert f"run {run}: feature" in text
        assert "⏸" in text
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, LetterScreen) and "Ship it?" in shown(app))
        assert "the same key acts here" in app.said
        await pilot.press("a")
        await until(pilot, lambda: "approved" in app.said)

    desk.run(scene)


def test_a_run_is_stopped_with_a_reason(desk: Driven) -> None:
    """On its page, after which it and its gate wait no more."""
    run = waiting_run(desk.repo, desk.cli)

    async def scene(app: DeskApp, pilot: Keys) -> None:
        await pilot.press("tab")
        await until(pilot, lambda: "waiting_human" in shown(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen) and "✓" in shown(app))
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, LinePrompt))
        await pilot.press(*"no", "enter")
        await until(pilot, lambda: "status: stopped" in shown(app))

    desk.run(scene)
    found = desk.cli.forked("show", run, "--json", cwd=desk.repo.path, code=0).json
    assert (found["status"], found["reason"]) == ("stopped", "no")


def test_an_agent_leads_to_its_gates(desk: Driven) -> None:
    """The list of agents says what each does; Enter shows what it asked."""
    gate = desk.ask("Which database?", "--agent", "backend", "--priority", "high")
    desk.ask("Which colour?", "--agent", "frontend")

    async def scene(app: DeskApp, pilot: Keys) -> None:
        await chosen(app, pilot, gate)
        await pilot.press("tab", "tab")
        await until(pilot, lambda: "backend: waiting" in shown(app))
        await pilot.press("enter")
        await until(pilot, lambda: [row.key for row in app.model.rows] == [gate])

    desk.run(scene)


def test_a_theme_is_changed_by_a_key(desk: Driven) -> None:
    async def scene(app: DeskApp, pilot: Keys) -> None:
        dark = app.current_theme.dark
        await pilot.press("T")
        await until(pilot, lambda: app.current_theme.dark != dark)

    desk.run(scene)


HOSTILE = "[bold]Delete[/] \x1b[2J\x1b]0;owned\x07 all\u202e of it?"


def test_words_of_an_agent_are_only_words(desk: Driven) -> None:
    """No markup, no escape and no hidden character of a question, an option or a name acts; in each place it is spelt out."""
    gate = desk.ask(HOSTILE, "-o", "[b]yes[/b]\x1b[31m", "-o", "no", "--agent", "\x1b]0;x\x07[red]a")

    async def scene(app: DeskApp, pilot: Keys) -> None:
        await chosen(app, pilot, gate)
        seen = [shown(app)]
        for keys, screen in (
            (("enter",), LetterScreen),
            (("q", "c"), PanelScreen),
            (("escape", "m"), LinePrompt),
        ):
            await pilot.press(*keys)
            await until(pilot, lambda screen=screen: isinstance(app.screen, screen))  # type: ignore[misc]
            if screen is LetterScreen:
                await until(pilot, lambda: "History" in shown(app))
            seen.append(shown(app))
            assert "\x1b" not in app.export_screenshot()
        assert all("\x1b" not in words and "\u202e" not in words for words in seen)
        assert all("[bold]Delete[/] \\x1b[2J" in words for words in seen)
        assert "[b]yes[/b]\\x1b[31m" in seen[0]
        await pilot.press("escape")
        await pilot.press("1")
        await until(pilot, lambda: "git gate respond" in shown(app))
        assert "\x1b" not in shown(app)
        await until(pilot, lambda: "answered" in app.said)

    desk.run(scene)
    answer = desk.now(gate).answer
    assert answer is not None
    assert answer.answer.values == {"answer": "[b]yes[/b]\x1b[31m"}


def test_a_tab_takes_its_room_and_text_can_be_copied(desk: Driven) -> None:
    """A diff of a file with tabs stands as in the file; what is selected is the words, without colours."""
    desk.repo.write("Makefile", "all:\n\tcc x.c\n")
    gate = desk.ask("Which?", "-o", "Postgres", "-o", "SQLite")

    async def scene(app: DeskApp, pilot: Keys) -> None:
        await chosen(app, pilot, gate)
        await pilot.press("enter")
        await until(pilot, lambda: "+all:" in shown(app))
        view = app.screen.query_one(LinesView)
        copied = view.get_selection(Selection(None, None))
        assert copied is not None
        assert "\n+all:\n+       cc x.c" in copied[0]
        assert "\x1b" not in copied[0]

    desk.run(scene)
