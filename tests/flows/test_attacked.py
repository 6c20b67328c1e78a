"""What an agent of a flow, or somebody who may push, tries on a run: nobody's yes but that to the run's own question counts."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from gitgate.context import open_desk
from gitgate.errors import NotAllowed
from gitgate.flows.journal import begin_run
from gitgate.flows.program import flow_of
from support.testbed.command import Command
from support.testbed.repositories import Clone

DEPLOY = """
import gitgate


@gitgate.flow
def deploy():
    gitgate.step(str, 1, name="first")
    gitgate.run("coder", "go")
    word = gitgate.pause("Deploy to production?")
    return "deployed" if word else "kept"
"""

# An agent that opens a harmless question of its own, under the key that the flow's next step will have.
CODER = """#!/bin/sh
run=$(git for-each-ref --format='%(refname:lstrip=3)' refs/hitl/runs/)
git-gate ask "May I fix a typo?" --type approval --key "$run/pause:_checkpoint#1" --key-for 1000d -q --no-push >/dev/null
echo '{"status": "DONE"}'
"""


@pytest.mark.slow
def test_an_agents_question_is_not_taken_for_the_runs(repo: Clone, cli: Command) -> None:
    """An agent may know the run's id, and what its next step's gate is called."""
    repo.commit(**{"flows.py": DEPLOY})
    program = repo.write(".git/coder", CODER, executable=True)
    repo.git("config", "gitgate.agent.coder.start", str(program))
    run = cli("run", "flows.py", "--json", code=8).json["id"]
    (harmless,) = waiting(cli)
    assert harmless["title"] == "May I fix a typo?"
    cli("respond", harmless["id"], "--approve", code=0)
    assert "is not the question of that step" in cli("resume", run, code=8).err
    (own,) = waiting(cli)
    assert own["title"] == "Deploy to production?"
    assert own["run"]["id"] == run
    cli("respond", own["id"], "--reject", "--note", "no", code=0)
    assert cli("resume", run, "--json").json["result"] == "kept"


def waiting(cli: Command) -> list[dict[str, Any]]:
    return list(cli("list", "--awaiting", "--json", code=0).json["gates"])


FORGER = """
import os, sys
from gitgate.flows.engine import Engine

def forged(self, event, /, **said):
    # Killed between the gate and the word of it in the journal; somebody else's gate has its key by then.
    if event == "asked" and "pause" in said["step"]:
        os._exit(70)
    return plain(self, event, **said)

plain, Engine.append = Engine.append, forged
sys.argv = ["git-gate", "run", "flows.py"]
from gitgate.cli.process import run
run()
"""
QUICK = """
import gitgate


@gitgate.flow
def deploy():
    return "deployed" if gitgate.pause("Deploy to production?") else "kept"
"""


@pytest.mark.slow
def test_a_gate_from_before_a_crash_is_known_by_its_question(repo: Clone, cli: Command) -> None:
    """The run's own is found again; one with its key and other words is not taken for it."""
    repo.commit(**{"flows.py": QUICK})
    killed = subprocess.run(
        [sys.executable, "-c", FORGER], cwd=repo.path, capture_output=True, text=True, check=False
    )
    assert killed.returncode == 70, killed.stderr
    (run,) = [ref.rpartition("/")[2] for ref in repo.refs("refs/hitl/runs/")]
    (own,) = waiting(cli)
    key = own["key"]
    for ref in repo.refs("refs/gitgate/+keys/"):  # as in a clone that knows the gate, and has not asked it
        repo.git("update-ref", "-d", ref)
    cli("ask", "May I fix a typo?", "--type", "approval", "--key", key, "--no-push", code=0)
    cli("resume", run, code=8)
    assert [step["gate"] for step in cli("show", run, "--json", code=0).json["steps"]] == [own["id"]]
    assert len(waiting(cli)) == 2


@pytest.mark.parametrize(
    "file", ["{}/flows.py", "../../../../../../../../../../../../{}/flows.py", "link/flows.py"]
)
def test_a_run_loads_no_file_but_those_of_its_code(repo: Clone, file: str) -> None:
    """Its journal names a commit of the protected branch, and a file of this machine that an agent may have written."""
    repo.commit(**{"flows.py": DEPLOY})
    outside = repo.path.parent / "outside"
    outside.mkdir()
    (outside / "flows.py").write_text(f"open({str(outside / 'ran')!r}, 'w').close()\n{DEPLOY}", "utf-8")
    (repo.path / "link").symlink_to(outside)
    repo.git("add", "link")
    repo.git("commit", "-qm", "a link that leads out")
    desk = open_desk(repo.path, dict(os.environ))
    try:
        named = file.format(str(outside).lstrip("/") if file.startswith("..") else outside)
        held = begin_run(
            desk, {"flow": "deploy", "file": named, "code": repo.git("rev-parse", "HEAD").strip()}
        )
        held.leave("released", reason="detached")
        for now in (False, True):
            with pytest.raises(NotAllowed, match="a file outside of its code"):
                flow_of(desk, held.run, now=now)
    finally:
        desk.close()
    assert not (outside / "ran").exists()
