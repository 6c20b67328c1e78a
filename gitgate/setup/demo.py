"""Setup: the whole loop in a scratch folder, with a real server, its real hooks and the real command. No model is needed.

Nothing of the person's own configuration is read or written, and nothing is contacted.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import Failure
from ..store.git.process import Git

PATIENCE = 40.0
POLL = 0.1
SERVER, AGENT, PERSON = "server.git", "agent", "you"

PROGRAM = """\
def login(name, password):
    raise NotImplementedError("which database?")
"""
HALF_DONE = """\
import db


def login(name, password):
    user = db.find(name)
    return user is not None and user.check(password)
"""
# The agent of the demonstration: it finishes the module that its question was about, and commits. It is a script because
# the loop is what is shown; any program that can be started again does as well.
SCRIPT = """\
#!/bin/sh
# Started again with the answer, in the place that it left: the half-done work is there.
case "$GITGATE_ANSWER" in
Postgres*) line='import psycopg' ;;
*) line='import sqlite3' ;;
esac
printf '%s\\n\\n\\ndef find(name):\\n    return USERS[name]\\n' "$line" > db.py
git add -A
git commit -q -m "Log in with $GITGATE_ANSWER"
"""


@dataclass(frozen=True)
class DemoStep:
    """One command of the demonstration, who typed it where, and what it said."""

    who: str
    why: str
    command: tuple[str, ...]
    said: str

    @property
    def typed(self) -> str:
        return shlex.join(self.command)


class DemoStage:
    """The scratch folder: a server, the agent's clone and the person's. `given` is set for all of them."""

    def __init__(self, room: Path, env: Mapping[str, str], given: Mapping[str, str]) -> None:
        self.room = room
        home = room / "home"
        home.mkdir()
        (home / ".gitconfig").write_text("[init]\n\tdefaultBranch = main\n", encoding="utf-8")
        kept = {name: value for name, value in env.items() if not is_personal(name)}
        # `git gate` has to be this git-gate, whether or not its folder is on PATH.
        path = f"{Path(sys.executable).parent}:{kept.get('PATH', '')}"
        own = {"HOME": str(home), "PATH": path, "GIT_CONFIG_NOSYSTEM": "1", "NO_COLOR": "1"}
        self.env = {**kept, **own, **given}
        self.gate = ""

    def git(self, place: str, *command: str) -> str:
        """Run git in one of the places, as a person would; what it printed, talk included."""
        done = Git(self.room / place, self.env, hooks=True).run(*command, check=False)
        said = "\n".join(
            part for part in (done.out.decode("utf-8", "replace").rstrip("\n"), done.err) if part
        )
        if done.code:
            raise Failure(
                f"the demonstration failed at: git {shlex.join(command)}\n{said}",
                hint=f"look around in {self.room}; git gate doctor tells what this machine lacks",
            )
        return said

    def step(self, place: str, why: str, *command: str) -> DemoStep:
        return DemoStep(place, why, ("git", *command), self.git(place, *command))


def is_personal(name: str) -> bool:
    """Variables that would lead the demonstration to the person's own repositories, agents or jobs."""
    from ..agents import is_agents

    ours = name.startswith(("GIT_", "GITGATE_", "GITHUB_", "XDG_", "CLAUDE", "CODEX_")) or name == "CI"
    return ours or is_agents(name)


@dataclass(frozen=True)
class DemoActor:
    """Who plays the agent: what it needs on the server and in its clone, and how it works until it has asked."""

    prepare: Callable[[DemoStage], None]
    ask: Callable[[DemoStage], Iterator[DemoStep]]
    env: Mapping[str, str] = field(default_factory=dict)


def play(
    room: Path,
    env: Mapping[str, str],
    actor: DemoActor | None = None,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[DemoStep]:
    """The steps, each as it is done."""
    actor = actor or DemoActor(set_up_script, ask_as_script)
    stage = DemoStage(room, env, actor.env)
    yield from set_up(stage, actor)
    yield from actor.ask(stage)
    refs = stage.git(AGENT, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/hitl/open")
    stage.gate = refs.splitlines()[0]
    yield from answer_step(stage)
    yield from resumed(stage, sleep)


def set_up(stage: DemoStage, actor: DemoActor) -> Iterator[DemoStep]:
    stage.git("", "init", "-q", "--bare", SERVER)
    for name, person in ((SERVER, "Resumed Agent"), (AGENT, "Agent's Owner"), (PERSON, "You")):
        if name != SERVER:
            stage.git("", "clone", "-q", SERVER, name)
        stage.git(name, "config", "user.name", person)
        stage.git(name, "config", "user.email", f"{name.partition('.')[0]}@example.invalid")
    clone = stage.room / AGENT
    (clone / "login.py").write_text(PROGRAM, encoding="utf-8")
    stage.git(AGENT, "add", "login.py")
    stage.git(AGENT, "commit", "-q", "-m", "Plan the login")
    stage.git(AGENT, "push", "-q", "origin", "HEAD:main")
    stage.git(AGENT, "checkout", "-q", "-b", "login")
    stage.git(AGENT, "push", "-q", "-u", "origin", "login")
    actor.prepare(stage)
    yield stage.step(
        SERVER,
        "A bare repository becomes the server: its hooks guard gates and resume agents.",
        "gate",
        "init",
        "--server",
    )
    stage.git(AGENT, "config", "gitgate.session", "push")
    stage.git(AGENT, "gate", "init", "--no-resume", "-q")
    stage.git(PERSON, "gate", "init", "--no-resume", "-q")


def set_up_script(stage: DemoStage) -> None:
    script = stage.room / "agent.sh"
    script.write_text(SCRIPT, encoding="utf-8")
    for place in (SERVER, AGENT):
        stage.git(place, "config", "gitgate.agent.demo.resume", f"sh {shlex.quote(str(script))}")


def ask_as_script(stage: DemoStage) -> Iterator[DemoStep]:
    clone = stage.room / AGENT
    (clone / "login.py").write_text(HALF_DONE, encoding="utf-8")
    (clone / "notes.txt").write_text("Both drivers are installed.\n", encoding="utf-8")
    yield stage.step(AGENT, "An agent is half-way, and must not decide alone. It asks, and exits: nothing runs now.",
        "gate", "ask", "Which database should the login use?", "-o", "Postgres=the cluster that we have",
        "-o", "SQLite=one file, no server", "--context", "Users come in the hundreds.", "--agent", "demo")  # fmt: skip


def answer_step(stage: DemoStage) -> Iterator[DemoStep]:
    stage.git(PERSON, "gate", "sync", "-q")
    yield stage.step(PERSON, "In another clone, you look what waits for you.", "gate")
    yield stage.step(
        PERSON, "You read the question, and see what the agent did so far.", "gate", "show", stage.gate[:6]
    )
    yield stage.step(PERSON, "You answer. The answer is a commit; the server's hook acts on it.",
        "gate", "respond", stage.gate[:6], "postgres", "--note", "The cluster has room.")  # fmt: skip


def resumed(stage: DemoStage, sleep: Callable[[float], None]) -> Iterator[DemoStep]:
    until_resumed(stage, sleep)
    stage.git(PERSON, "fetch", "-q", "origin")
    yield stage.step(PERSON, "The agent was started again on its half-done work, with your answer, and finished it.",
        "log", "-1", "--stat", "--format=%h %s%n%n%b", "origin/login")  # fmt: skip
    yield stage.step(
        PERSON, "Who asked, who decided, what came of it: all of it is in Git.", "gate", "log", stage.gate[:6]
    )
    yield stage.step(PERSON, "And it can be checked.", "gate", "verify")


def until_resumed(stage: DemoStage, sleep: Callable[[float], None]) -> None:
    import json

    for _ in range(int(PATIENCE / POLL)):
        stage.git(PERSON, "gate", "sync", "-q")
        state = json.loads(stage.git(PERSON, "gate", "show", stage.gate, "--json"))["state"]
        if state == "resumed":
            return
        if state == "failed":
            break
        sleep(POLL)
    raise Failure(
        "the agent of the demonstration was not resumed",
        hint=f"its log is in {stage.room / SERVER / 'gitgate' / 'logs'}",
    )
