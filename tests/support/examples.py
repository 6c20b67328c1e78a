"""Test bed: the examples of flows that are killed everywhere, as their users write them: programs that pause, and phases."""

from __future__ import annotations

from typing import Any

import gitgate
from gitgate import Flow, Human, Phase


@gitgate.flow
def simple(prompt: str) -> None:
    gitgate.run("architect", prompt)
    gitgate.run("coder")
    gitgate.run("reviewer")


@gitgate.flow
def approval(prompt: str) -> None:
    gitgate.run("architect", prompt)
    gitgate.run("coder")
    gitgate.run("test-runner")
    ok = gitgate.pause("Approve for production deployment?")
    if not ok:
        gitgate.stuck(ok.reason)
    gitgate.run("deployer")


@gitgate.flow
def autonomous(prompt: str) -> None:
    result = gitgate.run("autonomous-agent", prompt, human=False)
    if result.status == "NEEDS_HUMAN":
        gitgate.stuck("Unexpected: " + result.reason)


@gitgate.flow
def reviews(prompt: str) -> str:
    gitgate.run("architect", prompt)
    arch_ok = gitgate.pause("Approve architecture?")
    if not arch_ok:
        gitgate.stuck("Architecture rejected: " + arch_ok.reason)
    for _ in range(10):
        gitgate.run("coder")
        if gitgate.run("reviewer").status == "APPROVED":
            break
    deploy_ok = gitgate.pause("Approve deployment?")
    if not deploy_ok:
        gitgate.stuck("Deployment rejected: " + deploy_ok.reason)
    gitgate.run("deployer")
    return "deployed"


planned = Flow(
    Phase(
        agent="planner",
        human=Human(lambda s: f"Approve {s.plan}?", "approval"),
        next=lambda s: "execute" if s.approved else "planner",
    ),
    Phase("execute", agent="executor", terminal=True),
)
conditional = Flow(
    Phase(
        agent="classifier",
        human=lambda s, out: Human(f"Verify {s.label}?") if out.confidence < 0.8 else None,
        terminal=True,
    )
)


def checked(s: gitgate.FlowState, out: Any) -> str:
    if out.get("fine"):
        return "done"
    return "planner" if s.human_response and s.human_response.value == "Redesign" else "coder"


dynamic = Flow(
    Phase(agent="coder", next="reviewer"),
    Phase(
        agent="reviewer",
        human=lambda s, out: Human(s.why, options=["Redesign", "Go on"]) if out.get("unsure") else None,
        next=checked,
    ),
    Phase(agent="planner", next="coder"),
    Phase("done", terminal=True),
)
branching = Flow(
    Phase(
        agent="planner",
        human=Human("Choose approach:", "choice", ["Fast", "Thorough", "Custom"]),
        next=lambda s: {"Fast": "fast_path", "Thorough": "thorough_path", "Custom": "custom_path"}[
            s.human_response.value
        ],
    ),
    Phase("fast_path", agent="fast", terminal=True),
    Phase("thorough_path", agent="thorough", terminal=True),
    Phase("custom_path", agent="custom", terminal=True),
)
human_only = Flow(
    Phase(human=Human("What do you want to build?", "choice", ["App", "API", "Library"]), next="planner"),
    Phase(agent="planner", update=lambda s, _out: {"plan": f"an {s.human_response.value}"}, next="execute"),
    Phase("execute", agent="executor"),
)
refinement = Flow(
    Phase(
        agent="writer",
        human=Human(lambda s: f"{s.text}: good?", options=["Good", "Other..."]),
        next=lambda s: "publish" if s.human_response.value == "Good" else "writer",
    ),
    Phase("publish", agent="publisher"),
)
several = Flow(
    Phase("research", agent="researcher", human=Human("Is it enough?")),
    Phase("write", agent="writer", human=Human("Publish it?")),
    Phase("publish", agent="publisher", terminal=True),
)
