"""An adapter as the guide has it, of a program that there is not: the contract's tests add it, as one file and one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gitgate.agents.agent import Agent, AgentOutcome, AgentResult, Finished, Launch, Start
from gitgate.model.gate import SavedSession


class MadeUp(Agent):
    """Its mark is one that stands nowhere else."""

    name = "made-up"
    marks = ("MADE_UP", "SHARED=made-up")
    sessions = ("MADE_UP_SESSION",)
    process_ids = ("MADE_UP_PID",)
    processes = ("madeup",)
    packages = ("@made/up",)
    folders = (".made-up",)
    files = ("made-up.md",)
    starts = True

    def place(
        self, saved: SavedSession, cwd: Path, env: Mapping[str, str], program: Sequence[str] = ()
    ) -> None:
        """Nothing was kept."""

    def start(self, request: Start) -> Launch:
        session = ("--go-on", request.session.id) if request.session else ()
        argv = (*(request.settings.program or (self.name,)), *session)
        env = {**request.env, **request.extra_env}
        return Launch(argv, request.cwd, env, request.folder, request.prompt.encode())

    def join(self, request: Start) -> Launch:
        return self.start(request)

    def read_outcome(self, finished: Finished) -> AgentOutcome:
        return AgentOutcome(AgentResult.FAILED if finished.code else AgentResult.DONE)
