"""The whole way, with the real Claude Code: it asks, the gate goes to a bare server over a real sshd, somebody answers in
another clone, and the server's own hook resumes it there: another home, another directory, nothing of the asker's at hand.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gitgate.agents.claude.transcript import waits_at_call
from support.lab.fixtures import MakeMachine, MakeModel
from support.lab.model import Reply
from support.lab.office import Office
from support.resuming import until
from support.servers import ssh_server
from support.testbed.repositories import Clone

pytestmark = [pytest.mark.claude, pytest.mark.slow, pytest.mark.server, pytest.mark.timeout(300)]

DATABASE = {
    "question": "Which database?",
    "header": "Database",
    "multiSelect": False,
    "options": [{"label": label, "description": f"about {label}"} for label in ("Postgres", "SQLite")],
}
COMMIT = "printf '%s\\n' db=sqlite > db.conf && git add -A && git commit -q -m 'Use SQLite'"
# All that the server's account knows of the model: a program of its own, which its git configuration names.
WRAPPER = """\
#!/bin/sh
{{ echo "HOME=$HOME"; pwd; env | cut -d= -f1; echo .; }} >> {log}
export ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=dummy-not-a-key
export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_TELEMETRY=1 DISABLE_AUTOUPDATER=1 DISABLE_ERROR_REPORTING=1
exec {binary} "$@"
"""


@dataclass
class Setting:
    """A server that is reached over ssh alone, the machine that asks and the clone that answers."""

    office: Office
    server: Clone
    home: Path
    bob: Clone
    ssh: str

    def run(self, prompt: str) -> dict[str, Any]:
        """The agent works on the asker's machine until it ends; the gate with its session is on the server then."""
        ended = self.office.run(prompt, "--allowedTools", "Bash", env={"GIT_SSH_COMMAND": self.ssh})
        until(lambda: self.arrived(deferred=ended["stop_reason"] == "tool_deferred"))
        return ended

    def arrived(self, *, deferred: bool) -> bool:
        """Whether the server has the conversation as it ended."""
        here, there = (clone.refs("refs/hitl/sessions") for clone in (self.office.clone, self.server))
        if not there or here != there:
            return False
        (name,) = there
        text = self.server.git("show", f"{name}:files/transcript.jsonl")
        return waits_at_call(text.encode()) is deferred

    def rule(self, text: str) -> None:
        """What the project says of calls, on the branch that counts."""
        self.bob.commit("rules", **{".gitgate.yml": text})
        self.bob.git("push", "-q", "origin", "main")
        self.office.clone.git("fetch", "-q", "origin")

    def waiting(self, after: str = "") -> dict[str, Any]:
        """The question that waits, by what the server has; with `after`, the one that follows that gate."""
        found: list[dict[str, Any]] = []

        def there() -> bool:
            self.office.gate("sync", clone=self.bob)
            listed = self.office.gate("list", "--awaiting", "--json", clone=self.bob).json["gates"]
            found[:] = [gate for gate in listed if not after or gate["follows"] == after]
            return bool(found)

        until(there)
        return found[0]

    def answer(self, gate: str, *said: str) -> None:
        self.office.gate("sync", clone=self.bob)
        told = self.office.gate("respond", gate, *said, clone=self.bob)
        assert "its hook resumes it" in told.err

    def state(self, gate: str) -> dict[str, Any]:
        self.office.gate("sync", clone=self.bob)
        found: dict[str, Any] = self.office.gate("show", gate, "--json", clone=self.bob).json
        return found

    @property
    def starts(self) -> list[list[str]]:
        """Each start of the agent on the server: its home, its directory, and the names in its environment."""
        log = self.home / "starts"
        text = log.read_text(encoding="utf-8") if log.exists() else ""
        return [start.splitlines() for start in text.split("\n.\n") if start]


MakeSetting = Callable[..., Setting]


@pytest.fixture
def setting(
    machine: MakeMachine,
    scripted: MakeModel,
    repo: Clone,
    bare: Clone,
    clone_of: Callable[..., Clone],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[MakeSetting]:
    """The sshd stands in the model's network, where nothing else is, and whoever logs in has the server's own home."""
    with ExitStack() as ends:

        def make(*replies: Reply) -> Setting:
            model = scripted(*replies)
            home = tmp_path / "server-home"
            home.mkdir()
            sshd = ends.enter_context(
                ssh_server(tmp_path / "sshd", reach=model.reach, env={"HOME": str(home)})
            )
            monkeypatch.setenv("GIT_SSH_COMMAND", sshd.command)
            bob = clone_of(bare, "bob")
            found = Setting(Office(machine("asker-home", model), repo), bare, home, bob, sshd.command)
            set_up_server(found)
            repo.git("remote", "add", "origin", sshd.url(bare.path))
            bob.git("remote", "set-url", "origin", sshd.url(bare.path))
            repo.git("fetch", "-q", "origin")
            for clone in (repo, bob):
                clone.git("config", "gitgate.session", "push")
                found.office.gate("init", "--no-resume", clone=clone)
            repo.git("checkout", "-q", "-b", "feature")
            repo.git("push", "-q", "-u", "origin", "feature")
            return found

        yield make


def set_up_server(there: Setting) -> None:
    """As its administrator would: its hooks, and how Claude Code is started there."""
    machine = there.office.machine
    wrapper = there.home / "claude-of-the-server"
    words = {"log": there.home / "starts", "url": machine.model.url, "binary": machine.binary}
    wrapper.write_text(WRAPPER.format(**{name: shlex.quote(str(word)) for name, word in words.items()}))
    wrapper.chmod(0o755)
    there.server.git("config", "gitgate.agent.claude.program", json.dumps([str(wrapper)]))
    there.server.git("config", "gitgate.agent.claude.arguments", '["--allowedTools", "Bash"]')
    there.office.cli("init", "--server", cwd=there.server.path, env={"HOME": str(there.home)}, code=0)


QUESTION = ("AskUserQuestion", {"questions": [DATABASE]})
IN_SHELL = ("Bash", {"command": "git gate ask 'Which database?' -o Postgres -o SQLite"})


@pytest.mark.parametrize(
    ("tool", "ending"), [(QUESTION, "tool_deferred"), (IN_SHELL, "hook_stopped")], ids=["question", "shell"]
)
def test_an_answer_resumes_claude_on_the_server(
    tool: tuple[str, dict[str, object]], ending: str, setting: MakeSetting
) -> None:
    """Asked here, answered there, gone on with on the server, once, by the hook of the push that brought the answer."""
    there = setting(
        Reply("Let me look around.", [("Bash", {"command": "echo what-I-found-7k2f"})], when="TASK-42"),
        Reply("I need to know.", [tool], when="what-I-found"),
        Reply("Thank you.", [("Bash", {"command": COMMIT})], when="SQLite"),
        Reply("All done.", repeat=True),
    )
    there.office.clone.write("draft.py", "half = 1\n")
    ended = there.run("TASK-42: store the users")
    assert ending in (ended["stop_reason"], ended["terminal_reason"])
    asked = there.office.only()
    assert there.starts == []

    there.answer(asked["id"], "SQLite", "--note", "one file is enough")
    until(lambda: there.state(asked["id"])["state"] in ("resumed", "failed"))
    gate = there.state(asked["id"])
    assert (gate["state"], gate["resume"]["outcome"], gate["resume"]["branch"]) == (
        "resumed",
        "resumed",
        "feature",
    )

    shown = there.office.shown
    for part in ("TASK-42", "Let me look around.", "what-I-found-7k2f", "Which database?", "SQLite"):
        assert part in shown, part
    assert "one file is enough" in json.dumps(there.office.machine.model.requests())
    if tool is QUESTION:
        assert '\\"Which database?\\"=\\"SQLite\\"' in shown, "the answer is the call's own result"
    committed_once(there, asked["id"])
    started_once(there, asked["id"])


def committed_once(there: Setting, gate: str) -> None:
    """The work that was half done and what came after it, on the agent's branch, tied to who decided."""
    there.bob.git("fetch", "-q", "origin")
    assert there.bob.git("log", "--format=%s", "main..origin/feature") == "Use SQLite"
    said = there.bob.git("log", "-1", "--format=%(trailers:unfold)", "origin/feature").strip().splitlines()
    assert said == [f"Gate: {gate}", "Decided-by: Ada Lovelace <ada@example.org>"]
    assert there.bob.git("show", "origin/feature:draft.py") == "half = 1"
    assert there.bob.git("show", "origin/feature:db.conf") == "db=sqlite"


def started_once(there: Setting, gate: str) -> None:
    """In the server's home and a directory of its own, with nothing of the asker's; the hook run again finds nothing."""
    for _ in range(2):
        (there.server.path / "gitgate/called").touch()
        there.office.cli("hook", "post-receive", cwd=there.server.path, env={"GIT_DIR": "."}, code=0)
    ((home, directory, *names),) = there.starts
    assert home == f"HOME={there.home}"
    assert directory == str(there.server.path / "gitgate/worktrees" / gate)
    assert not [name for name in names if name.startswith(("ANTHROPIC", "CLAUDE"))]
    assert list((there.home / ".claude/projects").rglob("*.jsonl"))
    history = [event["event"] for event in there.state(gate)["history"]]
    assert (history.count("claimed"), history.count("resumed")) == (1, 1)


CHAIN = 5


def asks(number: int) -> Reply:
    options = [{"label": label, "description": f"about {label}"} for label in ("Left", "Right")]
    asked = {"question": f"Which way, {number}?", "header": "Way", "multiSelect": False, "options": options}
    return Reply(f"I wonder, {number}.", [("AskUserQuestion", {"questions": [asked]})])


def commits(number: int) -> Reply:
    command = f"echo {number} > part-{number} && git add -A && git commit -q -m 'part {number}'"
    return Reply("", [("Bash", {"command": command})])


@pytest.mark.parametrize("between", [True, False], ids=["commits", "no commits"])
def test_claude_asks_again_and_again_on_the_server(setting: MakeSetting, between: bool) -> None:
    """A chain of questions, all but the first asked there: it ends on the agent's branch, each commit once."""
    rounds = [
        reply
        for number in range(1, CHAIN)
        for reply in ([commits(number)] if between else []) + [asks(number + 1)]
    ]
    there = setting(asks(1), *rounds, commits(CHAIN), Reply("All done.", repeat=True))
    there.office.clone.write("draft.py", "half = 1\n")
    there.run("GO")
    gates = [str(there.office.only()["id"])]
    for number in range(1, CHAIN + 1):
        there.answer(gates[-1], "Left")
        if number < CHAIN:
            later = there.waiting(after=gates[-1])
            assert later["work"]["branch"] == "feature"
            gates.append(str(later["id"]))
    until(lambda: there.state(gates[-1])["state"] in ("resumed", "failed"))
    came = [there.state(gate)["resume"] for gate in gates]
    assert [each["outcome"] for each in came] == ["resumed"] * CHAIN
    assert came[-1]["branch"] == "feature"

    there.bob.git("fetch", "-q", "origin")
    parts = [f"part {number}" for number in range(1 if between else CHAIN, CHAIN + 1)]
    made = there.bob.git("log", "--reverse", "--format=%s", "main..origin/feature").splitlines()
    assert made == parts
    tied = there.bob.git(
        "log", "--reverse", "--format=%(trailers:key=Gate,valueonly)", "main..origin/feature"
    ).split()
    assert tied == (gates if between else gates[-1:])
    assert there.bob.git("show", "origin/feature:draft.py") == "half = 1"
    assert set(there.server.refs("refs/heads")) == {"refs/heads/feature", "refs/heads/main"}
    assert len(there.starts) == CHAIN
    assert len({directory for _, directory, *_ in there.starts}) == 1, "it goes on where it was"


WRITE = "approvals:\n  - Write(migrations/**)\n  - Bash(touch*)\n"


def test_an_approved_file_is_written_on_the_server(setting: MakeSetting, repo: Clone) -> None:
    """Approved for a file of the asker's, it is written below the place where the agent goes on, and nowhere else."""
    name = "migrations/1.sql"
    asked = repo.path / name
    there = setting(
        Reply("", [("Write", {"file_path": str(asked), "content": "create;\n"})]),
        Reply("", [("Bash", {"command": "git add -A && git commit -q -m 'Create'"})]),
        Reply("All done.", repeat=True),
    )
    there.rule(WRITE)
    ended = there.run("GO")
    assert ended["stop_reason"] == "tool_deferred"
    gate = there.waiting()
    assert f"the call is made for {name} there" in gate["context"]
    there.answer(gate["id"], "--approve")
    until(lambda: there.state(gate["id"])["state"] in ("resumed", "failed"))
    came = there.state(gate["id"])["resume"]
    assert (came["outcome"], came["branch"]) == ("resumed", "feature")
    assert f"{asked} → {there.server.path}/" in came["reason"]
    there.bob.git("fetch", "-q", "origin")
    assert there.bob.git("show", f"origin/feature:{name}") == "create;"
    assert not asked.exists()
    assert "made in the place where you are now" in there.office.shown


def test_a_command_that_names_the_askers_place_is_not_run_on_the_server(
    setting: MakeSetting, repo: Clone
) -> None:
    """It is approved, and would reach for a directory that is not the agent's: it is told so, and so is the person."""
    asked = repo.path / "touched"
    there = setting(Reply("", [("Bash", {"command": f"touch {asked}"})]), Reply("All done.", repeat=True))
    there.rule(WRITE)
    there.run("GO")
    gate = there.waiting()
    there.answer(gate["id"], "--approve")
    until(lambda: there.state(gate["id"])["state"] in ("resumed", "failed"))
    assert f"it names {repo.path}" in there.state(gate["id"])["resume"]["reason"]
    assert not asked.exists()
    assert "it will be asked again" in there.office.shown
