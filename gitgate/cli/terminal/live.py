"""Command line: a run as a person has it before them: a line that shows which agents work, and its question as soon as it waits.

Where a run waits, its process ends in the middle of the flow. At a terminal another program takes its place there: it asks, and
goes on with the run once that is answered.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ...document.values import dataclass, field, replace
from ...errors import Conflict, GateError
from ...model.states import AWAITING
from .. import exits
from .prompts import LATER, NextGate, ask_offered
from .screen import Pulse, Screen, tell_trouble, wants_color, where

if TYPE_CHECKING:
    from types import TracebackType

    from ...context.desk import Desk
    from ...flows.engine import Engine

OURS = f"{Path(__file__).parents[2]}{os.sep}"
TICK = 0.1
HOLDS = 0.3
"""What was printed has the line for so long: it may come in pieces."""
FRAMES = ("⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏")
PLAIN_FRAMES = ("|", "/", "-", "\\")
CLEARED = "\r\x1b[K"
RUN_OFFER = f"answer it, or: {LATER} (or Enter) leaves the run waiting, ? for help"


@dataclass(frozen=False)
class AgentLine(Pulse):
    """One line at the foot of a terminal: the agents that work, their steps and ages. Whatever is printed takes its place.

    While a function of the flow works nothing is drawn, since it may print.
    """

    engines: list[Engine] = field(default_factory=list)
    turn: threading.RLock = field(default_factory=threading.RLock)
    shown: bool = False
    free_at: float = 0.0
    turns: int = 0

    def follow(self, engine: Engine) -> None:
        """Look at this one, too; at the first one the line begins."""
        self.engines.append(engine)
        if len(self.engines) == 1:
            threading.Thread(target=self.keep_drawing, daemon=True, name="line").start()

    def start(self, words: str, say: Callable[[str], None]) -> None:
        """That something takes long is seen already while an agent works."""
        if not any(engine.at_work for engine in self.engines):
            super().start(words, say)

    def stop(self) -> None:
        super().stop()
        with self.turn:
            self.free_at = time.monotonic() + HOLDS
            self.clear()

    def keep_drawing(self) -> None:
        while True:
            time.sleep(TICK)
            with self.turn:
                if time.monotonic() >= self.free_at:
                    self.draw()

    def draw(self) -> None:
        words = self.words()
        if not words:
            self.clear()
            return
        from shutil import get_terminal_size

        from ...text.display import clip

        frames = FRAMES if (sys.stderr.encoding or "").lower().startswith("utf") else PLAIN_FRAMES
        frame, self.turns = frames[self.turns % len(frames)], self.turns + 1
        self.write(f"{CLEARED}{clip(f'{frame} {words}', get_terminal_size((80, 24)).columns - 1)}\r")
        self.shown = True

    def words(self) -> str:
        """Each agent that works, since when, and in which step; nothing where a function works as well."""
        from ...text.display import one_line
        from ...text.times import ago

        found = []
        for engine in list(self.engines):
            for step, (agent, since) in list(engine.at_work.items()):
                if not agent:
                    return ""
                found.append(f"{one_line(agent, 40)} {ago(engine.run_desk.clock() - since)} ({step})")
        return "   ".join(found)

    def clear(self) -> None:
        if self.shown:
            self.write(CLEARED)
            self.shown = False

    def write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            self.engines.clear()  # the terminal has gone; the run goes on


def show_agents(screen: Screen) -> Callable[[Engine], None]:
    """What is to be told of each engine; on a terminal that can, what its agents do is seen from then on."""
    if not sys.stderr.isatty() or screen.as_json or screen.quiet:
        return lambda _engine: None
    if not wants_color(screen.color, screen.env, screen.settings, terminal=True):
        return lambda _engine: None
    screen.pulse.stop()
    screen.pulse = line = AgentLine()
    return line.follow


def end_fork(screen: Screen) -> NoReturn:
    """What a step's function forks ends within it; this process came back, and all that it has is the first one's as well."""
    screen.warn(
        "a process that a step forked came back from its function, and ends; the run goes on in the first one"
    )
    screen.warn("  end it in the function, by os._exit(0), or use subprocess or multiprocessing")
    sys.stderr.flush()
    os._exit(exits.FAILURE)


def tell_where(screen: Screen, desk: Desk, commit: str, flow: str) -> None:
    """Where a server could go on with the run, and will not: its code, with whatever is changed here, is not protected."""
    from ...context.remotes import remote_of
    from ...gates.starting import is_protected

    if remote_of(desk) is not None and not is_protected(desk, commit):
        screen.say(
            "this code is not on the protected branch, as it is here: answers go on with the run here alone"
        )
        screen.say(
            f"  to have a server go on with it, with that branch's code: git gate run {flow} --protected"
        )


def frames_of_flow(raised: BaseException) -> TracebackType | None:
    """Where it came from, from the flow's own first line on: what calls the flow is nothing to its author."""
    found = raised.__traceback__
    while found is not None and found.tb_frame.f_code.co_filename.startswith(OURS):
        found = found.tb_next
    return found or raised.__traceback__


def may_ask(screen: Screen, desk: Desk) -> bool:
    """Whether a person sits there: at a terminal, and this is no agent's process."""
    return screen.interactive and not desk.agent_here()


def offer(screen: Screen, desk: Desk, gate_id: str) -> bool:
    """Ask what a run waits for, as `git gate respond` asks it. Whether it is decided, by whomever."""
    from ...acts.answering import Manner, respond
    from ...acts.reading import open_gate

    gate = open_gate(desk, gate_id)
    if gate.state != AWAITING:
        screen.say(f"gate {gate.id} is {gate.state} already")
        return True
    screen.warn("")
    try:
        asking = replace(screen, in_turn=True, may_wait=True)
        given, note = ask_offered(asking, desk, gate, "", RUN_OFFER, afresh=True)
    except NextGate:
        return False
    try:
        done = respond(desk, gate, given, Manner(note=note, seen=gate.tip))
    except GateError as refused:
        screen.warn(f"{refused.message}{f'; {refused.hint}' if refused.hint else ''}")
        return isinstance(refused, Conflict)
    tell_trouble(screen, done.published)
    came = (
        done.answer.verdict
        if done.counted
        else f"one of the {gate.opened.quorum} answers alike that are needed"
    )
    screen.say(f"gate {gate.id}: {came}; {where(desk, done.published)}")
    return done.counted
