"""Command line: what `git gate init` can add besides the clone itself. A new part is one line here.

Its module has `steps(desk)` and `removal(desk)`, each a list of `service.setup.Step`.
"""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    """A flag of `git gate init`: what it adds, and the module that knows how."""

    flag: str
    meaning: str
    module: str


PARTS: tuple[Part, ...] = (
    Part("claude", "Claude Code's hooks and skill, in this project.", "gitgate.service.claude_setup"),
    Part("agents", "Guidance for other agents, in AGENTS.md.", "gitgate.service.agents_setup"),
    Part("script", "scripts/ask-human.sh, by which any program asks.", "gitgate.service.script_setup"),
    Part(
        "github", "GitHub's workflows: pull requests as the place to answer.", "gitgate.service.github_setup"
    ),
)
