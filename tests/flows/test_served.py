"""Flows: an answer that reaches a server goes on with the run there, by the same hook that resumes an agent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from support.flowing import Actors
from support.resuming import until
from support.testbed.command import Command
from support.testbed.repositories import Clone

FLOW = """
import gitgate


@gitgate.flow
def release(version: str):
    gitgate.run("coder", f"Prepare {version}.")
    if not gitgate.pause("Release it?"):
        gitgate.stuck("not released")
    gitgate.run("deployer")
    return f"released {version}"
"""


@pytest.fixture
def server(bare: Clone, cli: Command) -> Clone:
    cli.quick("init", "--server", cwd=bare.path, code=0)
    return bare


@pytest.mark.slow
@pytest.mark.parametrize("escalates", [False, True])
def test_an_answer_from_another_clone_goes_on_with_the_run_on_the_server(
    server: Clone, clone_of: Callable[..., Clone], cli: Command, tmp_path: Path, escalates: bool
) -> None:
    """Begun in one clone, answered in another, gone on with on the server: each agent starts once, each is asked once."""
    ann, bob = clone_of(server, "ann"), clone_of(server, "bob")
    for clone in (ann, bob):
        clone.git("config", "gitgate.session", "push")
        cli.quick("init", "--no-resume", cwd=clone.path, code=0)
    ann.commit(**{"flows.py": FLOW})
    ann.git("push", "-q", "origin", "main")
    actors = Actors(server, tmp_path / "agents")
    needs = {"status": "NEEDS_HUMAN", "reason": "Which database?"}
    done = {"status": "DONE", "summary": "did it"}
    actors.says("coder", *([needs, done] if escalates else [done]))
    actors.says("deployer", done)
    for line in server.git("config", "--get-regexp", r"^gitgate\.agent\.").splitlines():
        ann.git("config", *line.split(" ", 1))
    run = cli("run", "flows.py", "1.4", "--json", cwd=ann.path, code=8).json["id"]
    answers = (["Postgres"] if escalates else []) + ["--approve"]
    for number, answer in enumerate(answers):
        gate = awaited(cli, bob)
        shown = cli("show", gate, "--json", cwd=bob.path, code=0).json
        assert shown["run"]["id"] == run
        said = cli("respond", gate, answer, cwd=bob.path, code=0)
        assert "pushed to origin; its hook resumes it" in said.err
        wanted = "completed" if number == len(answers) - 1 else "waiting_human"
        until(partial(stands, cli, bob, run, gate, wanted))
    assert cli("show", run, "--json", cwd=bob.path, code=0).json["result"] == "released 1.4"
    resumed = ["resume coder"] if escalates else []
    assert actors.starts == ["start coder", *resumed, "start deployer"]
    cli("verify", cwd=server.path, code=0)


def awaited(cli: Command, clone: Clone) -> str:
    cli("sync", cwd=clone.path, code=0)
    (gate,) = cli("list", "--awaiting", "--json", cwd=clone.path, code=0).json["gates"]
    return str(gate["id"])


def stands(cli: Command, clone: Clone, run: str, gate: str, wanted: str) -> bool:
    """Whether the run has come so far, and the gate that was answered is over."""
    cli("sync", cwd=clone.path)
    shown = (cli("show", name, "--json", cwd=clone.path, code=0).json for name in (run, gate))
    return [next(shown)["status"], next(shown)["state"]] == [wanted, "resumed"]


NIGHTLY = """
import gitgate


@gitgate.flow
def nightly():
    word = gitgate.receive("built")
    gitgate.run("coder", word.value)
    return [word.value, word.by]
"""


@pytest.mark.slow
def test_a_signal_from_another_clone_wakes_the_run_on_the_server(
    server: Clone, clone_of: Callable[..., Clone], cli: Command, tmp_path: Path
) -> None:
    """The push of the signal is what the server's hook acts on; who sent it is known there."""
    ann, bob = clone_of(server, "ann"), clone_of(server, "bob")
    for clone in (ann, bob):
        cli.quick("init", "--no-resume", cwd=clone.path, code=0)
    ann.commit(**{"flows.py": NIGHTLY})
    ann.git("push", "-q", "origin", "main")
    actors = Actors(server, tmp_path / "agents")
    actors.says("coder", {"status": "DONE"})
    run = cli("run", "flows.py", "--json", cwd=ann.path, code=8).json["id"]
    cli("sync", cwd=bob.path, code=0)
    cli("signal", run, "--topic", "built", "v1.4", cwd=bob.path, code=0)

    def is_over() -> bool:
        cli("sync", cwd=bob.path)
        return bool(cli("show", run, "--json", cwd=bob.path, code=0).json["status"] == "completed")

    until(is_over)
    name = bob.git("config", "user.email")
    shown = cli("show", run, "--json", cwd=bob.path, code=0).json["result"]
    assert shown[0] == "v1.4"
    assert name in shown[1]
    assert actors.prompt("coder") == "v1.4"
    cli("verify", cwd=server.path, code=0)
