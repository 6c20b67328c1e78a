"""Agents: a flow. It asks as an agent does, its conversation is its run's journal, and an answer starts it again from its top."""

from __future__ import annotations

import sys

from .agent import (
    Agent,
    AgentOutcome,
    AgentResult,
    Finished,
    Launch,
    ProcessEnding,
    Start,
    killed,
    reason_of_end,
)
from .command import WAITING

RUN = "GITGATE_RUN"
LONGEST = 7 * 86400.0


class FlowRun(Agent):
    name = "flow"
    marks = (RUN,)
    sessions = (RUN,)
    starts = True
    executable = sys.executable

    def start(self, request: Start) -> Launch:
        """`git gate resume RUN`: what is told to it stands in the gates' records, where it looks by itself."""
        from ..store.git.programs import our_command  # of all verbs that look at agents, one starts a run

        run = request.session.id if request.session is not None else ""
        argv = tuple(our_command("--json", "resume", run))
        env = request.environment
        env.pop("GITGATE_AGENT", None)
        # A limit of time is each agent's own; a run is as long as its agents take.
        return Launch(argv, request.cwd, env, request.folder, timeout=max(request.settings.timeout, LONGEST))

    def read_outcome(self, finished: Finished) -> AgentOutcome:
        """A run that says where it stands has heard the answer, whatever came of it. One that does not could not go on."""
        import json

        text = finished.out.decode("utf-8", "replace").strip()
        try:
            said = json.loads(text.rpartition("\n")[2])
            status, why = str(said.get("status", "")), str((said.get("error") or {}).get("message", ""))
        except (ValueError, AttributeError):
            status = why = ""
        if finished.ending is ProcessEnding.EXITED and status:
            asked = finished.code == WAITING and status == "waiting_human"
            return AgentOutcome(AgentResult.ASKED if asked else AgentResult.DONE, text=f"the run is {status}")
        return AgentOutcome(
            AgentResult.FAILED, text=text, reason=why or reason_of_end(finished), retry=killed(finished)
        )
