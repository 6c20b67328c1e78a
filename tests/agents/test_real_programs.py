"""The real Codex, Gemini CLI, opencode and Copilot CLI against a scripted model: each asks, is answered, and goes on."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.agents.agent import AgentResult
from support.lab.fixtures import MakeModel
from support.lab.model import Reply
from support.lab.programs import NAMES, ProgramMachine, ProgramOffice, shell
from support.testbed.command import COMMAND
from support.testbed.repositories import Clone
from support.testbed.tmux import Tmux

pytestmark = [pytest.mark.programs, pytest.mark.slow, pytest.mark.timeout(400)]

TOKEN = "ghp" + "_" + "a1B2c3D4e5" * 4
UNKNOWN = dict.fromkeys(NAMES, "0b9c4f0e-0000-4000-8000-000000000000")
UNKNOWN["opencode"] = "ses_00000000000000000000000000"
# What its output has to be for its conversation to be known, where nobody can give it an id.
JSON_TOO = {"codex": ("--json",), "copilot": (), "gemini": (), "opencode": ("--format", "json")}
ASK = 'git gate ask "Which database?" -o Postgres -o SQLite'


def test_it_asks_is_answered_and_goes_on(
    program: str, scripted: MakeModel, repo: Clone, tmp_path: Path
) -> None:
    """Started by a person, it asks in its shell and ends; its own conversation hears the answer, and commits."""
    commit = "git add -A && git commit -qm 'Take SQLite'"
    model = scripted(
        Reply("I look first.", [shell(program, "echo half > draft.txt")], when="TASK-42"),
        Reply("I ask.", [shell(program, ASK)]),
        Reply("I wait for the answer."),
        Reply("I take it.", [shell(program, commit)], when="SQLite"),
        Reply("DONE-WITH-IT."),
    )
    here = ProgramOffice(ProgramMachine(program, tmp_path / "home", model), repo)
    ended = here.run("TASK-42")
    assert ended.returncode == 0, ended.stderr.decode()
    gate = here.only()
    assert gate["session"]["agent"] == program
    assert gate["session"]["saved"], gate["session"]
    assert gate["delivery"] == "resume"
    assert (gate["asked"]["by"], gate["work"]["files"]) == ("Ada Lovelace <ada@example.org>", 1)
    here.gate("respond", gate["id"], "SQLite", "--note", "one file is enough", "--no-resume")
    here.gate("resume", gate["id"])
    resumed = here.only()
    assert resumed["state"] == "resumed"
    assert len(resumed["resume"]["commits"]) == 1
    assert repo.git("log", "-1", "--format=%s") == "Take SQLite"
    shown = model.shown()
    for words in ("TASK-42", "I ask.", "Which database?", "one file is enough", "I take it."):
        assert words in shown


FLOW = """import gitgate


@gitgate.flow
def build():
    said = gitgate.run("worker", "TASK-42")
    gitgate.pause("Release?")
    return said.status
"""


def test_a_step_of_a_flow_asks_and_goes_on(
    program: str, scripted: MakeModel, repo: Clone, tmp_path: Path
) -> None:
    """Described by a file, it asks in its shell; the run ends, and goes on with the same conversation when that is answered.

    What it commits then is the run's; the run asks for itself afterwards, and comes to its end.
    """
    model = scripted(
        Reply("I ask.", [shell(program, ASK)], when="TASK-42"),
        Reply("I wait for the answer."),
        Reply(
            "I take it.",
            [shell(program, "echo sqlite > db.txt; git add -A && git commit -qm 'Take SQLite'")],
            when="SQLite",
        ),
        Reply('Over. {"status": "BUILT", "summary": "with SQLite"}'),
    )
    here = ProgramOffice(ProgramMachine(program, tmp_path / "home", model), repo)
    worker = f"---\nname: worker\nprogram: {program}\n---\nYou are the WORKER-OF-THIS-FLOW.\n"
    repo.write(".claude/agents/worker.md", worker)
    repo.commit("the flow", **{"build.py": FLOW})
    run = here.gate("run", "build.py", "--json", code=8).json["id"]
    (asked,) = here.gate("list", "--awaiting", "--json").json["gates"]
    gate = here.gate("show", asked["id"], "--json").json
    assert (gate["asked"]["agent"], gate["session"]["agent"], gate["run"]["step"]) == (
        "worker",
        program,
        "run:worker#1",
    )
    here.gate("respond", gate["id"], "SQLite", "--note", "one file is enough", "--no-resume")
    here.gate("resume", run, code=8)
    (released,) = here.gate("list", "--awaiting", "--json").json["gates"]
    here.gate("respond", released["id"], "--approve", "--no-resume")
    ended = here.gate("resume", run)
    assert ended.out.strip().splitlines()[-1] == "BUILT"
    assert repo.git("log", "-1", "--format=%s") == "Take SQLite"
    shown = model.shown()
    for words in ("WORKER-OF-THIS-FLOW", "TASK-42", "I ask.", "one file is enough", "I take it."):
        assert words in shown


def test_it_answers_nothing(program: str, scripted: MakeModel, repo: Clone, tmp_path: Path) -> None:
    """What is for people is refused to it, whatever it may run in its shell."""
    gate = ProgramOffice(ProgramMachine(program, tmp_path / "first", scripted()), repo)
    asked = gate.gate("ask", "Deploy?", "--type", "approval", "-q").line
    model = scripted(
        Reply(
            "I answer.",
            [shell(program, f"git-gate respond {asked} --approve; git -C . gate stop {asked} --reason x")],
        ),
        Reply("Over."),
    )
    here = ProgramOffice(ProgramMachine(program, tmp_path / "home", model), repo)
    here.run("GO-ON")
    assert here.only()["state"] == "awaiting"
    assert "is set" in model.shown()


def test_wrapped_it_may_ask(program: str, scripted: MakeModel, repo: Clone, tmp_path: Path) -> None:
    """`git gate wrap` gives it what asking takes, and nothing else; it says that the run waits."""
    model = scripted(
        Reply("I look first.", [shell(program, "touch made-by-it")]),
        Reply("I ask.", [shell(program, ASK)]),
        Reply("I wait."),
    )
    here = ProgramOffice(ProgramMachine(program, tmp_path / "home", model), repo)
    ended = here.wrap("TASK-42")
    assert ended.returncode == 8, ended.stderr.decode()
    gate = here.only()
    assert (gate["session"]["agent"], gate["session"]["saved"]) == (program, True)
    assert gate["id"][:4] in ended.stderr.decode()
    assert (repo.path / "made-by-it").exists() == (program == "opencode")


def test_wrapped_its_last_words_are_a_question(
    program: str, scripted: MakeModel, repo: Clone, tmp_path: Path
) -> None:
    """Where it ends by saying that it needs a person, that becomes the gate, and its conversation hears the answer."""
    model = scripted(Reply("NEEDS_HUMAN: Which database?"), Reply("Fine.", when="Postgres"))
    here = ProgramOffice(ProgramMachine(program, tmp_path / "home", model), repo)
    ended = here.wrap("TASK-42", *JSON_TOO[program])
    assert ended.returncode == 8, ended.stderr.decode()
    gate = here.only()
    assert gate["session"]["agent"] == program
    here.gate("respond", gate["id"], "Postgres", "--no-resume")
    here.gate("resume", gate["id"])
    assert here.only()["state"] == "resumed"
    assert "TASK-42" in model.shown()


def test_its_conversation_goes_on_elsewhere(program: str, scripted: MakeModel, tmp_path: Path) -> None:
    """On another machine, in another directory, with the whole history and without its secrets."""
    look = Reply("I look.", [shell(program, f"echo {TOKEN}; echo TWO")], when="TASK-42")
    model = scripted(look, Reply("Ready."), Reply("Done.", when="THE-ANSWER"))
    one, two = (ProgramMachine(program, tmp_path / name, model) for name in ("one", "two"))
    began = one.run(tmp_path / "old", "TASK-42")
    assert (began.result, began.text) == (AgentResult.DONE, "Ready."), one.said()
    saved = one.collect(began.session)
    text = b"".join(saved.files.values()).decode()
    assert "TASK-42" in text
    assert TOKEN not in text
    assert saved.left_out == ()
    (tmp_path / "old").rename(tmp_path / "gone")
    place = tmp_path / "elsewhere" / "new place ü"
    two.place(saved, place)
    two.place(saved, place)
    resumed = two.run(place, "--looks like a flag\n" + "word " * 20_000 + "THE-ANSWER", began.session)
    assert (resumed.result, resumed.text) == (AgentResult.DONE, "Done."), two.said()
    assert resumed.session == began.session
    shown = model.shown()
    for words in ("TASK-42", "[redacted: github token]", "TWO", "--looks like a flag"):
        assert words in shown
    two.erase(saved, place)
    assert two.collect(began.session).files == {}, "nothing of it stays where it was put"
    one.erase(saved, place)
    assert one.collect(began.session).files != {}, "and all of it where it came from"


def test_it_goes_on_more_than_once(program: str, scripted: MakeModel, tmp_path: Path) -> None:
    """What was said since its conversation was saved stays, and placing it again changes nothing."""
    model = scripted(Reply("One."), Reply("Two."), Reply("Three."))
    here = ProgramMachine(program, tmp_path / "home", model)
    began = here.run(tmp_path / "place", "FIRST")
    saved = here.collect(began.session)
    here.run(tmp_path / "place", "SECOND", began.session)
    here.place(saved, tmp_path / "place")
    last = here.run(tmp_path / "place", "THIRD", began.session)
    assert last.text == "Three."
    assert all(word in model.shown() for word in ("FIRST", "SECOND", "THIRD"))


def test_a_conversation_begins_with_an_id_of_ours(program: str, scripted: MakeModel, tmp_path: Path) -> None:
    """As a person's joining and a flow's step need it: the id is known before anything was said."""
    model = scripted(Reply("Hello."), Reply("Still here."))
    here = ProgramMachine(program, tmp_path / "home", model)
    place = tmp_path / "place"
    place.mkdir()
    session = here.adapter.new_session("0b9c4f0e0000400080000123456789ab")
    here.adapter.begin(session, place, here.env, program=here.program)
    began = here.run(place, "FIRST-WORDS", meeting=session)
    assert (began.result, began.session) == (AgentResult.DONE, session), here.said()
    again = here.run(place, "SECOND-WORDS", session)
    assert (again.result, again.text) == (AgentResult.DONE, "Still here.")
    assert "FIRST-WORDS" in model.shown()


def test_a_person_opens_a_new_session(program: str, scripted: MakeModel, repo: Clone, tmp_path: Path) -> None:
    """`git gate join --agent` at a terminal: it is told the question, is kept by the id that it was begun with, and decides nothing."""
    model = scripted(Reply("I-HEARD-THE-QUESTION.", repeat=True))
    here = ProgramOffice(ProgramMachine(program, tmp_path / "home", model), repo)
    gate = here.gate("ask", "Which database?", "-o", "Postgres", "-o", "SQLite", "-q").line
    begun = repo.path / ".git" / "gitgate" / "runs" / gate / "joined" / "session.json"
    told = program != "opencode"  # which opens it, and sends no first words
    words = (str(COMMAND), "join", gate, "--agent", program)
    with Tmux(*words, cwd=repo.path, env=here.machine.env) as terminal:
        until = time.monotonic() + 150
        while not (begun.exists() and (model.requests() if told else "ctrl+p" in terminal.screen)):
            assert time.monotonic() < until, terminal.screen
            if "trust" in terminal.screen.lower() and not model.requests():
                terminal.press("Enter")  # whoever sits there trusts the folder
            time.sleep(1)
    said = json.loads(begun.read_text("utf-8"))
    assert (said["agent"], said["own"]) == (program, False)
    kept = here.machine.collect(said["id"])
    assert kept.files, "found again by the id that it was begun with"
    if told:
        assert "Which database?" in model.shown()
    assert here.only()["state"] == "awaiting"


def test_an_unknown_session_is_a_failure(program: str, scripted: MakeModel, tmp_path: Path) -> None:
    """No attempt will find it, and nothing is asked of the model."""
    model = scripted(Reply("Hello.", repeat=True))
    here = ProgramMachine(program, tmp_path / "home", model)
    outcome = here.run(tmp_path / "place", "hello", UNKNOWN[program])
    assert (outcome.result, outcome.retry) == (AgentResult.FAILED, False), here.said()
    assert outcome.reason
    assert model.requests() == []
    assert here.collect(UNKNOWN[program]).files == {}


def test_an_error_of_the_model_is_a_failure(program: str, scripted: MakeModel, tmp_path: Path) -> None:
    """What it ends with differs; that it did not do what it was told is seen in each."""
    here = ProgramMachine(program, tmp_path / "home", scripted(Reply(status=400, repeat=True)))
    outcome = here.run(tmp_path / "place", "hello")
    assert outcome.result is AgentResult.FAILED, here.said()
    assert outcome.reason


def hostile_files(marks: Path) -> dict[str, str]:
    """What would run at a start, or at a call, if the directory's own configuration took part."""

    def touch(name: str) -> str:
        return f"touch {marks}/{name}"

    server = {"command": "sh", "args": ["-c", touch("mcp")]}
    hook = {"hooks": [{"type": "command", "name": "x", "command": touch("hook")}], "matcher": ".*"}
    gemini = {"hooks": {"SessionStart": [hook], "BeforeTool": [hook]}, "mcpServers": {"evil": server}}
    codex = f'[mcp_servers.evil]\ncommand = "sh"\nargs = ["-c", "{touch("mcp")}"]\n'
    copilot = {"type": "command", "bash": touch("hook"), "timeoutSec": 10}
    plugin = f'import fs from "fs"\nfs.writeFileSync("{marks}/plugin", "")\nexport const Evil = async () => ({{}})\n'
    opencode = {"mcp": {"evil": {"type": "local", "command": ["sh", "-c", touch("mcp")]}}}
    return {
        ".codex/config.toml": codex,
        ".codex/hooks.json": json.dumps({"hooks": {"SessionStart": [hook], "PreToolUse": [hook]}}),
        ".gemini/settings.json": json.dumps(gemini),
        ".github/hooks/evil.json": json.dumps(
            {"version": 1, "hooks": {"sessionStart": [copilot], "preToolUse": [copilot]}}
        ),
        ".mcp.json": json.dumps({"mcpServers": {"evil": server}}),
        ".opencode/plugins/evil.js": plugin,
        "opencode.json": json.dumps(opencode),
    }


def test_a_hostile_worktree_runs_nothing(program: str, scripted: MakeModel, tmp_path: Path) -> None:
    """Resumed in a branch that brings hooks, plugins and servers for it, none of that runs.

    Of opencode nothing keeps the folder's plugins out: there it is only that a resumed one finds the protected branch's folder.
    """
    model = scripted(Reply("I look.", [shell(program, "ls")]), Reply("Over.", repeat=True))
    here = ProgramMachine(program, tmp_path / "home", model)
    hostile, marks = tmp_path / "hostile", tmp_path / "marks"
    marks.mkdir()
    for name, text in hostile_files(marks).items():
        file = hostile / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    subprocess.run(["git", "init", "-q", str(hostile)], check=True)
    outcome = here.run(hostile, "GO-ON")
    assert outcome.result is AgentResult.DONE, here.said()
    assert {mark.name for mark in marks.iterdir()} == ({"plugin"} if program == "opencode" else set())


def test_what_it_says_is_missing_is_missing(
    program: str, scripted: MakeModel, repo: Clone, tmp_path: Path, sh: Callable[[str, dict[str, str]], None]
) -> None:
    """`doctor` names what its own settings lack; when the command that it gives was typed, it names nothing more."""
    machine = ProgramMachine(program, tmp_path / "home", scripted())
    here = ProgramOffice(machine, repo)

    def lacking() -> list[dict[str, str]]:
        found = here.gate("doctor", "--json", code=None).json["findings"]
        return [one for one in found if one["name"] == f"agent {program}" and one["state"] != "good"]

    assert lacking() == []
    if program == "codex":
        (machine.home / ".codex/rules/default.rules").unlink()
        (one,) = lacking()
        assert "sandbox" in one["words"]
        sh(one["mend"], machine.env)
        assert lacking() == []
