"""The README's way to GitHub, line by line, with a stand-in for GitHub: a question is a comment, and a reply is its answer."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gitgate.setup.workflows import AGENT, ANSWERS
from support.forges.callers import Event
from support.readme import bare_machine, block_after, tell
from support.testbed.repositories import Clone

from .conftest import THREAD
from .test_five_steps import OURS, Reader, put, reader, well

__all__ = ["reader"]
pytestmark = [pytest.mark.slow, pytest.mark.readme]


def test_the_readme_leads_to_a_finished_work_on_github(
    reader: Reader, bare: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the machine has git, Python and a shell alone; the agent is named in the workflows, as the README says."""
    alone = bare_machine(tmp_path)
    monkeypatch.setenv("PATH", alone["PATH"])
    ask = '#!/bin/sh\ngit-gate ask "Which session store?" -o Memory -o Redis --agent mine --session 4711\n'
    on = '#!/bin/sh\ngrep -q Redis "$1" || exit 9\necho Redis > store.txt\ngit add store.txt\ngit commit -q -m "Use Redis"\n'
    put(tmp_path / "agents/asks", ask)
    put(tmp_path / "agents/goes-on", on)
    reader.clone.git("config", "--global", "gitgate.workflows", f"{OURS}@{'c0ffee' * 6}beef")
    began = time.monotonic()
    init, commit, push = block_after("**On GitHub**")
    reader.type(init)
    for name, times in ((AGENT, 1), (ANSWERS, 2)):
        reader.edit(name, '      agent-package: "an-agent@1.0.0"\n', times)
    agent = reader.clone.path / ".github/workflows" / AGENT
    answers = reader.clone.path / ".github/workflows" / ANSWERS
    named = (
        '      agent-name: mine\n      agent-resume: \'["goes-on", "{answer_file}"]\'\n      agent-package:'
    )
    for place in (agent, answers):
        place.write_text(place.read_text().replace("      agent-package:", named))
    lines = agent.read_text().splitlines()
    (at,) = [number for number, line in enumerate(lines) if '"--permission-prompt-tool"' in line]
    lines[at] = '        ["asks", "{task}"]'
    agent.write_text("\n".join(lines) + "\n")
    reader.type(commit)
    reader.type(push)
    reader.type(
        "git switch -q -c login && git commit -q --allow-empty -m Login && git push -q -u origin login"
    )
    reader.forge.open_pull(THREAD, "login", bare.git("rev-parse", "login"))
    inputs = {"branch": "login", "task": "Add a login page"}
    assert well(reader.happens(AGENT, Event("workflow_dispatch", "", {"inputs": inputs}))) == [
        "agent",
        "deliver",
    ]
    (shown,) = reader.forge.by("github-actions[bot]")
    assert "Which session store?" in shown["body"]
    event = reader.forge.event(reader.forge.write(THREAD, "ada", "/choose 2"))
    given = {name: value for name, value in event.items() if name in ("comment", "issue")}
    done = well(reader.happens(ANSWERS, Event("issue_comment", "created", given)))
    assert done == ["answer", "claim", "agent", "deliver"]
    seconds = time.monotonic() - began
    assert bare.git("show", "login:store.txt") == "Redis"
    shown, came = reader.forge.by("github-actions[bot]")
    assert "Answered, and acted on" in shown["body"]
    assert "✅ the agent went on" in came["body"]
    tell("GitHub", seconds)
