"""A server that starts no agent itself: a program of its own hands each answer to some engine, which resumes it in a clone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.store import locked, private_folder
from support import PATIENCE
from support.resuming import Agent, until
from support.testbed.command import COMMAND, Command
from support.testbed.repositories import Clone, run_git

# As a cluster's or a batch system's own command does: takes the job, says its name, and is gone before it has begun.
ENGINE = """#!/bin/sh
echo "$# $1 $2 $3 $GITGATE_PRIORITY $GITGATE_ASKER" >> "{folder}/orders"
job="{folder}/job-$1"
(
  exec >> "$job.log" 2>&1 < /dev/null
  git clone -q --bare "$2" "$job.git" && "{command}" -C "$job.git" resume "$1"
  echo "ended $?"
) &
echo "job.batch/gate-$1 created"
"""


@pytest.fixture
def engine(server: Clone, ann: Clone, cli: Command, tmp_path: Path) -> Path:
    """The server hands out by it; nobody's answer starts an agent on the server or in a clone."""
    folder = tmp_path / "the engine"
    folder.mkdir()
    program = folder / "start-job"
    program.write_text(ENGINE.format(folder=folder, command=COMMAND), encoding="utf-8")
    program.chmod(0o755)
    server.git("config", "gitgate.runner", "command")
    server.git("config", "gitgate.runnerCommand", f"'{program}'")
    ann.git("config", "gitgate.session", "push")
    cli.quick("init", "--no-resume", cwd=ann.path, code=0)
    return folder


@pytest.fixture
def ask(ann: Clone, cli: Command) -> Callable[..., str]:
    def asked(*flags: str) -> str:
        return cli.quick("ask", "Which?", "--agent", "scripted", *flags, cwd=ann.path, code=0).line

    return asked


def lines(place: Path) -> list[str]:
    return place.read_text("utf-8").splitlines() if place.exists() else []


@pytest.mark.slow
def test_an_answer_is_handed_out_and_resumed_elsewhere(
    server: Clone, ann: Clone, agent: Agent, cli: Command, engine: Path, ask: Callable[..., str]
) -> None:
    """Three words and no content are told; the job resumes it in a clone of its own, and what it made comes home."""
    agent.does('echo "$GITGATE_ANSWER" > db.conf; git add db.conf; git commit -qm "Use $GITGATE_ANSWER"')
    gate = ask("--priority", "high")
    cli.quick("respond", gate, "Postgres", cwd=ann.path, code=0)
    until(lambda: "ended 0" in lines(engine / f"job-{gate}.log"))
    (order,) = lines(engine / "orders")
    tip = cli.quick("show", gate, "--json", cwd=server.path, code=0).json["answer"]["commit"]
    assert order == f"3 {gate} {server.path} {tip} high scripted"
    shown = cli.quick("show", gate, "--json", cwd=server.path, code=0).json
    assert (shown["state"], shown["resume"]["attempt"]) == ("resumed", 1)
    assert agent.starts == [gate]
    log = (server.path / "gitgate/logs/runner.log").read_text("utf-8")
    assert f"{gate}: handed out by command: job.batch/gate-{gate} created" in log


# What each engine's own command takes, by its documentation; it begins with the job when the command has ended.
ENGINES = {
    "kubectl": (
        '[ "$1 $2" = "create job" ] && [ "$4" = --image=registry.example.org/agents:1 ] && [ "$5" = -- ]',
        5,
    ),
    "sbatch": ('[ "${1%%=*} ${2%%=*}" = "--job-name --output" ]', 2),
    "nomad": ('[ "$1 $2 $3 $4 $6 $8" = "job dispatch -detach -meta -meta resume-gate" ]', 8),
}
STAND_IN = """#!/bin/sh
{fits} || exit 2
gate=${{5#gate=}} address=${{7#address=}}
shift {words}
[ "$#" -gt 0 ] || set -- resume-gate "$gate" "$address"
(sleep 0.3; cd "{folder}" && exec "$@") > "{folder}/job.log" 2>&1 < /dev/null &
echo "{name} took it"
"""


def documented(name: str) -> str:
    """The file of that name in docs/scale.md, from its first line on; with several, the one that names `name`."""
    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text("utf-8")
    files = [block.split("```")[0] for block in page.split("```sh\n")[1:]]
    (found,) = [text for text in files if text.startswith("#!/bin/sh") and name in text.split("\n", 2)[2]]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_the_documented_programs_hand_out(
    server: Clone,
    ann: Clone,
    agent: Agent,
    cli: Command,
    engine: Path,
    ask: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """As docs/scale.md has them, and the job's own two lines: the gate comes home resumed."""
    fits, words = ENGINES[name]
    programs = {
        name: STAND_IN.format(fits=fits, words=words, folder=engine, name=name),
        "resume-gate": documented("git clone"),
        "gate-job": documented(f"exec {name}"),
    }
    for program, text in programs.items():
        (engine / program).write_text(text, encoding="utf-8")
        (engine / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{engine}:{os.environ['PATH']}")
    server.git("config", "gitgate.runnerCommand", f"'{engine}/gate-job'")
    gate = ask()
    cli.quick("respond", gate, "Postgres", cwd=ann.path, code=0)
    until(lambda: agent.ends == [gate])
    until(lambda: cli.quick("show", gate, "--json", cwd=server.path, code=0).json["state"] == "resumed")
    assert f"{name} took it" in (server.path / "gitgate/logs/runner.log").read_text("utf-8")


@pytest.mark.slow
def test_what_was_told_is_not_told_again_and_what_failed_is(
    server: Clone, ann: Clone, agent: Agent, cli: Command, engine: Path, ask: Callable[..., str]
) -> None:
    """Pushes that come by change nothing; an engine that refuses is asked again by the next push, and its words are in the log."""
    del agent
    program = engine / "start-job"
    works = program.read_text("utf-8")
    program.write_text("#!/bin/sh\necho 'the cluster is full' >&2; exit 3\n", encoding="utf-8")
    gate = ask()
    cli.quick("respond", gate, "Postgres", cwd=ann.path, code=0)
    log = server.path / "gitgate/logs/runner.log"
    until(lambda: "ended with exit 3: the cluster is full" in log.read_text("utf-8"))
    program.write_text(works.replace('"{command}"', "true"), encoding="utf-8")
    for name in ("one", "two", "three"):
        ann.commit(name, **{name: name})
        ann.git("push", "-q", "origin", "main")
        until(lambda: len(lines(engine / "orders")) == 1)
    assert lines(engine / "orders")[0].split()[1] == gate


@pytest.mark.slow
def test_many_pushes_look_one_at_a_time(
    server: Clone, ann: Clone, agent: Agent, cli: Command, engine: Path, ask: Callable[..., str]
) -> None:
    """While one looks through all gates, one waits for its turn, and further ones leave it to that one: it sees their gates too."""
    del agent
    (engine / "start-job").write_text(f'#!/bin/sh\necho "$1" >> "{engine}/orders"\n', encoding="utf-8")
    with locked(private_folder(server.path / "gitgate") / "look.lock") as looking:
        assert looking
        first = ask()
        cli.quick("respond", first, "Postgres", cwd=ann.path, code=0)
        hook = [str(COMMAND), "hook", "post-receive"]
        hooks = [subprocess.Popen(hook, cwd=server.path, stdin=subprocess.DEVNULL) for _ in range(3)]
        # One waits, of these or of the push's own.
        until(lambda: sum(one.poll() is not None for one in hooks) >= 2)
        second = ask()
        cli.quick("respond", second, "SQLite", cwd=ann.path, code=0)
        assert lines(engine / "orders") == []
    assert [one.wait(PATIENCE) for one in hooks] == [0, 0, 0]
    until(lambda: set(lines(engine / "orders")) == {first, second})


def test_no_program_is_said(ann: Clone, agent: Agent, cli: Command, ask: Callable[..., str]) -> None:
    """By hand, with the line that sets one; and one that the working tree names does not count."""
    del agent
    gate = ask("--no-push")
    cli.quick("respond", gate, "Postgres", "--no-resume", "--no-push", cwd=ann.path, code=0)
    (ann.path / ".gitgate.yml").write_text("settings: {runnerCommand: touch pwned}\n", encoding="utf-8")
    said = cli.quick("resume", gate, "--runner", "command", cwd=ann.path, code=2)
    assert "no program is set that hands out answers" in said.err
    assert "git config gitgate.runnerCommand" in said.err
    assert not (ann.path / "pwned").exists()


@pytest.mark.slow
def test_a_clone_hears_of_an_answer_before_it_resumes(
    bare: Clone, ann: Clone, bob: Clone, agent: Agent, cli: Command
) -> None:
    """An id that is not here, and an answer that is not here yet: the remote is asked, and nobody types `sync`."""
    ann.git("config", "gitgate.session", "push")
    cli.quick("init", "--no-resume", cwd=ann.path, code=0)
    gate = cli.quick("ask", "Which?", "--agent", "scripted", cwd=ann.path, code=0).line
    said = cli.quick("resume", gate, cwd=bob.path, code=8)
    assert "nobody has answered" in said.err
    cli.quick("respond", gate, "Postgres", "--no-resume", cwd=ann.path, code=0)
    cli.quick("resume", gate, cwd=bob.path, code=0)
    assert agent.starts == [gate]
    assert run_git("rev-parse", f"refs/hitl/open/{gate}", cwd=bare.path).strip()
