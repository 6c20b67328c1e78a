"""Setup: whether Claude Code can ask in this project: it is tried, with the real program, in a scratch repository.

The model is a script on loopback, so that nothing is billed and no account is needed. Of the project its hooks and its rules on
tools take part, and nothing that would run code of a branch; a person's own settings of Claude Code neither.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..agents.agent import Launch, reason_of_end
from ..agents.claude.rehearsed import Message, ModelLine, RehearsedModel, rehearsed
from ..agents.process import run_launch
from ..context.desk import Desk, open_desk
from ..errors import Failure, GateError
from ..store.git.programs import our_command
from ..store.git.repository import Git
from ..text.display import one_line
from . import claude
from .checkup import GOOD, MISSING, WRONG, Finding
from .claude import able_to_ask
from .demo import AGENT_TIMEOUT, PASSED_ON, blocks, find_claude, model_environment, text_of
from .steps import top_of

if TYPE_CHECKING:
    from ..agents.agent import Finished


INIT = "git gate init --claude"
PERSON = {"user.name": "A rehearsal", "user.email": "rehearsal@gitgate.invalid"}
IN_SHELL, BY_TOOL = "Ask in your shell.", "Ask by your tool."
QUESTION, OPTIONS = "May this rehearsal end?", ("Yes", "No")
SEEN_CELLS = 200


def rehearse(desk: Desk) -> Iterator[Finding]:
    """What is there for Claude Code, then each way in which it asks, tried from the question to the answer."""
    desk.refuse_agents("doctor --claude")
    try:
        program = find_claude(desk.settings.env)
    except Failure as missing:
        yield Finding("Claude Code", MISSING, missing.message, missing.hint)
        return
    with tempfile.TemporaryDirectory(prefix="gitgate-rehearsal-") as room, rehearsed(part) as model:
        stage = RehearsalStage(desk, program, Path(room), model)
        told = stage.start("--version")
        version = told.out.decode("utf-8", "replace").strip()
        if told.code or not version:
            yield Finding(
                "Claude Code", WRONG, f"{program} does not run: {reason_of_end(told)}", "reinstall it"
            )
            return
        yield Finding("Claude Code", GOOD, f"{version}, {program}")
        yield from set_up(desk)
        yield from stage.try_out("in its shell (claude -p)", IN_SHELL)
        yield from stage.try_out("by its own tool (git gate wrap -- claude -p)", BY_TOOL)


def set_up(desk: Desk) -> Iterator[Finding]:
    for step in claude.claude_steps(desk):
        if step.done:
            yield Finding(step.name, GOOD, step.means)
        else:
            yield Finding(step.name, MISSING, f"not there, or of another version: {step.means}", INIT)


def part(messages: Sequence[Message]) -> ModelLine:
    """The model's part, from nothing but the conversation: it asks once, as it was told to, and is done."""
    said = list(blocks(messages))
    if any(block.get("type") == "tool_use" for block in said):
        return ModelLine("Over.")
    if any(IN_SHELL in text_of(block) for block in said):
        options = " ".join(f"-o {option}" for option in OPTIONS)
        return ModelLine("I ask.", "Bash", {"command": f"git gate ask '{QUESTION}' {options}"})
    options_said = [{"label": option, "description": "a rehearsal"} for option in OPTIONS]
    asked = {"question": QUESTION, "header": "Rehearsal", "multiSelect": False, "options": options_said}
    return ModelLine("I ask.", "AskUserQuestion", {"questions": [asked]})


@dataclass
class RehearsalStage:
    """The scratch repository, set up as this project is, and the program in it."""

    desk: Desk
    program: str
    room: Path
    model: RehearsedModel
    env: dict[str, str] = field(init=False)
    starts: int = 0

    def __post_init__(self) -> None:
        given = self.desk.settings.env
        kept = {name: given[name] for name in PASSED_ON & set(given)}
        home = self.room / "home"
        home.mkdir()
        self.env = {
            **kept,
            "HOME": str(home),
            "GIT_CONFIG_NOSYSTEM": "1",
            **model_environment(self.room, self.model),
        }
        Git(self.room, self.env).run("init", "-q", str(self.place))
        git = Git(self.place, self.env)
        known = {name: self.desk.settings.git.get(name, "") for name in (claude.PROGRAM,)}
        settings = {**PERSON, **known, "gitgate.agent.claude.program": json.dumps([self.program])}
        for name, value in settings.items():
            if value:
                git.run("config", name, value)
        self.copy_project()
        git.run("add", "-A")
        git.run("commit", "-q", "--no-verify", "-m", "A rehearsal")

    @property
    def place(self) -> Path:
        return self.room / "project"

    def copy_project(self) -> None:
        """Our hooks as `init --claude` writes them, and the project's own rules on tools."""
        for step in claude.claude_steps(self.open())[1:]:
            step.take()
        own = claude.load_json(top_of(self.desk) / claude.SETTINGS)
        if isinstance(own.get("permissions"), dict):
            place = self.place / claude.SETTINGS
            claude.save(place, {**claude.load_json(place), "permissions": own["permissions"]})

    def open(self) -> Desk:
        return open_desk(self.place, self.env)

    def start(self, *words: str) -> Finished:
        return self.run((self.program, *words))

    def run(self, words: Sequence[str]) -> Finished:
        self.starts += 1
        folder = self.room / f"start-{self.starts}"
        place = self.place if self.place.is_dir() else self.room
        return run_launch(Launch(tuple(words), place, self.env, folder, timeout=AGENT_TIMEOUT))

    def gate(self, *words: str) -> Finished:
        return self.run(our_command(*words))

    def try_out(self, way: str, task: str) -> Iterator[Finding]:
        """It asks in this way; then its question is answered, and it goes on."""
        name = f"asks {way}"
        words: tuple[str, ...] = ("claude", "-p", task)
        if task == BY_TOOL:
            words = able_to_ask(self.open(), words, str(uuid.uuid4()))
        before = set(self.waiting())
        self.model.shown = ()
        ended = self.start(*words[1:])
        found = [gate for gate in self.waiting() if gate not in before]
        if not found:
            yield Finding(name, WRONG, *self.why(ended))
            return
        yield Finding(name, GOOD, "its question became a gate, and its run ended")
        for answer in (("respond", found[0], OPTIONS[0], "--no-resume", "-q"), ("resume", found[0], "-q")):
            ended = self.gate(*answer)
            if ended.code:
                yield Finding(
                    f"{name}, goes on", WRONG, reason_of_end(ended), "git gate demo --claude --keep"
                )
                return
        yield Finding(f"{name}, goes on", GOOD, "it was started again with the answer")

    def waiting(self) -> list[str]:
        from ..context.find import summaries

        return [summary.id for summary in summaries(self.open()) if summary.state == "awaiting"]

    def why(self, ended: Finished) -> tuple[str, str]:
        """Why there is no gate, from what the model was shown last, and what mends it."""
        results = [text_of(block) for block in blocks(self.model.shown) if block.get("type") == "tool_result"]
        if not results:
            return f"it did not come to ask: {reason_of_end(ended)}", "try it by hand: claude -p 'Say hello'"
        said = one_line(results[-1], SEEN_CELLS)
        if shutil.which("git-gate", path=self.env.get("PATH")) is None:
            return (
                "git-gate is not on PATH, where its shell and the hooks look",
                "pipx install git-gate, in a new shell",
            )
        return f"it was refused: {said}", denied(self.desk) or INIT


def denied(desk: Desk) -> str:
    """Rules of the project that forbid what we need; empty when there are none."""
    try:
        own = claude.load_json(top_of(desk) / claude.SETTINGS).get("permissions")
    except GateError:
        return ""
    rules = own.get("deny", []) if isinstance(own, Mapping) else []
    named = [
        rule
        for rule in rules
        if isinstance(rule, str) and ("gate" in rule or rule in ("Bash", "AskUserQuestion"))
    ]
    return f"{claude.SETTINGS} forbids {', '.join(named)}: take that out" if named else ""
