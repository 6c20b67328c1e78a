"""Gemini CLI, opencode and Copilot CLI by their adapters alone: what is kept of a command line and of a conversation, and what
an end means. The real programs are driven in `test_real_programs`.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gitgate.agents import AGENTS, detect, read_end, scrubbed
from gitgate.agents.agent import (
    Agent,
    AgentResult,
    AgentSettings,
    Finished,
    Meeting,
    ProcessEnding,
    Start,
    kept_flags,
)
from gitgate.agents.gemini import POLICY, project_folder
from gitgate.errors import Failure, Usage
from gitgate.model.gate import SavedSession, SessionRef

ID = "5d14f5dd-8cd5-4721-9788-2e415584672d"
OWN = {"copilot": ID, "gemini": ID, "opencode": "ses_5d14f5dd8cd547219788"}
NAMES = sorted(OWN)
CHAT = f"session-2026-11-19T11-38-{ID[:8]}.jsonl"
TOKEN = "ghp" + "_" + "a1B2c3D4e5" * 4


def started(agent: Agent, folder: Path, **changes: object) -> Start:
    given = {"session": SessionRef(agent.name, OWN[agent.name]), "prompt": "Go on.", **changes}
    return Start("7k2fw3x9ab", folder, folder / "run", **given)  # type: ignore[arg-type]


def test_in_a_flow_a_shell_is_still_the_agents(tmp_path: Path) -> None:
    """What it asks there belongs to its own conversation, and not to the run, which has a mark of its own there as well."""
    run = {"GITGATE_RUN": "r7k2fw3x9a", "PWD": str(tmp_path), "HOME": str(tmp_path)}
    shells = {
        "claude": {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": ID},
        "codex": {"CODEX_CI": "1", "CODEX_THREAD_ID": ID},
        "copilot": {"COPILOT_CLI": "1", "COPILOT_AGENT_SESSION_ID": ID},
        "gemini": {"GEMINI_CLI": "1", "GITGATE_SESSION": ID},
    }
    for name, env in shells.items():
        assert detect({**run, **env}) == SessionRef(name, ID, str(tmp_path))
    assert detect(run) == SessionRef("flow", run["GITGATE_RUN"], str(tmp_path))


@pytest.mark.parametrize(
    ("name", "line", "kept"),
    [
        ("codex", "codex exec -s workspace-write -m big --json -", "-s workspace-write -m big"),
        ("codex", "codex exec --sandbox=danger-full-access --add-dir ../x", "--add-dir ../x"),
        ("codex", "codex exec --dangerously-bypass-approvals-and-sandbox go", ""),
        ("gemini", "gemini --approval-mode=auto_edit -m pro -p go", "--approval-mode auto_edit -m pro"),
        ("gemini", "gemini --yolo --approval-mode yolo -p go", ""),
        ("copilot", "copilot --allow-tool=write --allow-all-tools -p go", "--allow-tool write"),
        (
            "copilot",
            "copilot --deny-tool a b --model m -- --model x",
            "--deny-tool a --deny-tool b --model m",
        ),
        ("opencode", "opencode run --agent plan -m a/b --auto go", "--agent plan -m a/b"),
    ],
)
def test_what_it_was_started_with(name: str, line: str, kept: str) -> None:
    """What it might do and its model are known again; that nobody watched it is not."""
    assert list(AGENTS[name].lasting(line.split())) == kept.split()


def test_a_flag_without_its_value_is_none() -> None:
    assert kept_flags(["x", "-m"], {"-m": "-m"}) == ()


@pytest.mark.parametrize("name", NAMES)
def test_the_machines_own_command_counts(name: str, tmp_path: Path) -> None:
    """As it did before the program was known, with its exit code alone."""
    agent = AGENTS[name]
    settings = AgentSettings(resume_template=("mine", "{session}"), join_template=("talk", "{session}"))
    request = started(agent, tmp_path, settings=settings)
    launch = agent.start(request)
    assert launch.argv == ("mine", OWN[name])
    assert agent.join(request).argv == ("talk", OWN[name])
    launch.folder.mkdir()
    for file, data in launch.files.items():
        (launch.folder / file).write_bytes(data)
    ended = agent.read_outcome(Finished(ProcessEnding.EXITED, 8, b"words", b"", launch.folder))
    assert (ended.result, ended.text) == (AgentResult.ASKED, "words")


@pytest.mark.parametrize("name", NAMES)
def test_what_somebody_wrote_is_no_flag(name: str, tmp_path: Path) -> None:
    """Headless the prompt is no argument at all; at a terminal it cannot be taken for one."""
    agent = AGENTS[name]
    request = started(agent, tmp_path, prompt="--yolo", meeting=Meeting(OWN[name], system="You are new."))
    assert agent.start(request).stdin == b"--yolo"
    assert not any("--yolo" in word for word in agent.start(request).argv)
    told = [word for word in agent.join(request).argv if "--yolo" in word]
    # Opencode sends no first words where it goes on with a conversation, and it always does: one is made beforehand.
    assert [word.partition("=")[2] for word in told] == ["You are new.\n\n--yolo"] * (name != "opencode")
    with pytest.raises(Usage):
        agent.start(started(agent, tmp_path, session=SessionRef(name, "--evil")))


@pytest.mark.parametrize("name", NAMES)
def test_a_pushed_session_writes_only_where_it_may(name: str, tmp_path: Path) -> None:
    """A name of its own choice is no conversation."""
    saved = SavedSession(name, OWN[name], files={"../evil.jsonl": b"{}", "settings.json": b"{}"})
    with pytest.raises(Failure, match="holds no conversation"):
        AGENTS[name].place(saved, tmp_path, {"HOME": str(tmp_path)})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_there_is_named(name: str, tmp_path: Path) -> None:
    saved = AGENTS[name].collect(SessionRef(name, OWN[name]), {"HOME": str(tmp_path)})
    assert saved.files == {}
    assert saved.left_out[0][1] == "it was not found"


def test_copilots_conversation_is_one_file(tmp_path: Path) -> None:
    """Redacted, put below another home, left alone where it is; too large, it is named."""
    agent, env = AGENTS["copilot"], {"HOME": str(tmp_path / "one")}
    place = tmp_path / "one/.copilot/session-state" / ID / "events.jsonl"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({"type": "user.message", "data": {"content": f"use {TOKEN}"}}) + "\n{cut")
    saved = agent.collect(SessionRef("copilot", ID), env)
    assert b"[redacted: github token]" in saved.files["events.jsonl"]
    assert agent.collect(SessionRef("copilot", ID), env, most=10).left_out[0][0] == "events.jsonl"
    other = {"COPILOT_HOME": str(tmp_path / "two")}
    agent.place(saved, tmp_path, other)
    placed = tmp_path / "two/session-state" / ID / "events.jsonl"
    assert placed.read_bytes() == saved.files["events.jsonl"]
    placed.write_text("went on")
    agent.place(saved, tmp_path, other)
    assert placed.read_text() == "went on"


def geminis(home: Path, cwd: Path, text: str = "hello", name: str = CHAT) -> Path:
    folder = project_folder(cwd, home / ".gemini")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(
        f'{{"sessionId":"{ID}","kind":"main"}}\n{json.dumps({"type": "user", "content": text})}\n'
    )
    return folder / name


def test_geminis_conversation_is_found_in_its_project(tmp_path: Path) -> None:
    """In its shell by the directory, unless whoever started it named another; outside of its shell there is none."""
    env = {"HOME": str(tmp_path), "PWD": str(tmp_path / "work"), "GEMINI_CLI": "1"}
    (tmp_path / "work").mkdir()
    assert detect(env) is None
    geminis(tmp_path, tmp_path / "work")
    assert detect(env) == SessionRef("gemini", ID, str(tmp_path / "work"))
    assert detect({**env, "PWD": str(tmp_path)}) is None
    assert detect({**env, "GEMINI_CLI": ""}) is None
    for other in ({"GITGATE_SESSION": "given-by-us"}, {"GITGATE_WRAPPED": '{"session": "given-by-us"}'}):
        assert detect({**env, **other}) == SessionRef("gemini", "given-by-us", env["PWD"])


def test_geminis_conversation_moves(tmp_path: Path) -> None:
    """Below another home, into a project of another directory; of two files the later one is left."""
    agent, cwd = AGENTS["gemini"], tmp_path / "Some Project"
    cwd.mkdir()
    geminis(tmp_path / "one", cwd, f"use {TOKEN}")
    saved = agent.collect(SessionRef("gemini", ID), {"HOME": str(tmp_path / "one")})
    assert list(saved.files) == [CHAT]
    assert TOKEN.encode() not in saved.files[CHAT]
    env = {"HOME": str(tmp_path / "two")}
    other = tmp_path / "other" / "Some Project"
    other.mkdir(parents=True)
    agent.place(saved, cwd, env)
    agent.place(saved, other, env)
    home = tmp_path / "two" / ".gemini"
    projects = json.loads((home / "projects.json").read_text())["projects"]
    assert projects == {str(cwd): "some-project", str(other): "some-project-1"}
    assert (home / "tmp/some-project-1/.project_root").read_text() == str(other)
    later = geminis(tmp_path / "two", cwd, "later", CHAT.replace("11-38", "11-39"))
    agent.place(saved, cwd, env)
    assert [chat.name for chat in (home / "tmp/some-project/chats").iterdir()] == [later.name]


def test_gemini_trusts_no_other_folder() -> None:
    """That it trusts the folder that it runs in is not told to one that is started in another."""
    assert scrubbed({"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_API_KEY": "k"}) == {"GEMINI_API_KEY": "k"}


def test_what_gemini_lacks_is_told(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    assert [mend for _, mend in AGENTS["gemini"].wants(env)]
    settings = tmp_path / ".gemini/settings.json"
    settings.parent.mkdir()
    settings.write_text('{"general": {"sessionRetention": {"enabled": false}}}')
    assert list(AGENTS["gemini"].wants(env)) == []


def test_geminis_rules_name_what_is_for_people() -> None:
    """The file that every start of it is given names each such verb, by both names of the command."""
    import tomllib

    from gitgate.agents.command import FOR_PEOPLE

    allowed, denied = tomllib.loads(POLICY.read_text())["rule"]
    assert denied["commandPrefix"] == [
        f"{gate} {verb}" for verb in FOR_PEOPLE for gate in ("git gate", "git-gate")
    ]
    assert denied["priority"] > allowed["priority"]


def opencodes(home: Path, cwd: Path) -> None:
    place = home / ".local/share/opencode"
    place.mkdir(parents=True)
    with closing(sqlite3.connect(place / "opencode.db")) as made, made:
        made.executescript(
            "create table session (id, slug, title, agent, model, version, permission, time_created, time_updated, directory);"
            "create table message (id, session_id, time_created, data);"
            "create table part (id, message_id, session_id, time_created, data);"
        )
        model = '{"id": "m", "providerID": "p"}'
        row = (OWN["opencode"], "s", f"title {TOKEN}", "build", model, "1.18.33", None, 1, 2, str(cwd))
        made.execute("insert into session values (?,?,?,?,?,?,?,?,?,?)", row)
        made.execute("insert into message values ('msg_1', ?, 1, '{\"role\": \"user\"}')", (OWN["opencode"],))
        state = {"status": "running", "input": {"command": "git gate ask 'Which?'"}}
        call = json.dumps({"type": "tool", "tool": "bash", "state": state})
        made.execute("insert into part values ('prt_1', 'msg_1', ?, 1, ?)", (OWN["opencode"], call))


def test_opencodes_conversation_is_the_one_whose_call_we_are(tmp_path: Path) -> None:
    """By what its database says is running here; saved in the form that the program takes in."""
    env = {"HOME": str(tmp_path), "PWD": str(tmp_path), "OPENCODE": "1"}
    assert detect(env) is None
    opencodes(tmp_path, tmp_path)
    assert detect(env) == SessionRef("opencode", OWN["opencode"], str(tmp_path))
    assert detect({**env, "PWD": "/elsewhere"}) is None
    assert detect({**env, "OPENCODE": ""}) is None
    saved = AGENTS["opencode"].collect(SessionRef("opencode", OWN["opencode"]), env)
    session = json.loads(saved.files["session.json"])
    assert session["info"]["title"] == "title [redacted: github token]"
    (message,) = session["messages"]
    assert (message["info"]["id"], message["parts"][0]["messageID"]) == ("msg_1", "msg_1")


def test_opencode_is_told_what_it_may_not(tmp_path: Path) -> None:
    """Besides what the person says of it; and nothing of the directory takes part, unless the machine lets it."""
    agent = AGENTS["opencode"]
    said = {"OPENCODE_PERMISSION": '{"bash": "ask", "edit": "allow"}'}
    launch = agent.start(started(agent, tmp_path, env=said))
    permission = json.loads(launch.env["OPENCODE_PERMISSION"])
    assert (permission["edit"], permission["bash"]["*"]) == ("allow", "ask")
    assert permission["bash"]["git gate respond*"] == "deny"
    assert launch.env["OPENCODE_DISABLE_PROJECT_CONFIG"] == "1"
    let = agent.start(started(agent, tmp_path, settings=AgentSettings(project_settings=True)))
    assert "OPENCODE_DISABLE_PROJECT_CONFIG" not in let.env


ENDS = {
    "copilot": [
        '{"type":"assistant.message","data":{"content":"Fine."}}',
        f'{{"type":"result","sessionId":"{ID}","exitCode":0}}',
    ],
    "gemini": [
        f'{{"type":"init","session_id":"{ID}"}}',
        '{"type":"message","role":"assistant","content":"Fine.","delta":true}',
        '{"type":"result","status":"success"}',
    ],
    "opencode": [
        f'{{"type":"step_start","sessionID":"{OWN["opencode"]}","part":{{}}}}',
        f'{{"type":"text","sessionID":"{OWN["opencode"]}","part":{{"text":"Fine."}}}}',
    ],
}


@pytest.mark.parametrize("name", NAMES)
def test_what_its_end_means(name: str, tmp_path: Path) -> None:
    """Done with its last words; interrupted it says exit 0 as well, and did not end."""
    lines = ENDS[name]
    out = "\n".join(["noise", *lines, ""]).encode()
    done = AGENTS[name].read_outcome(Finished(ProcessEnding.EXITED, 0, out, b"", tmp_path))
    assert (done.result, done.session, done.text) == (AgentResult.DONE, OWN[name], "Fine.")
    ended = read_end([name], out)
    assert ended is not None
    assert (ended.agent, ended.session, ended.text) == (name, OWN[name], "Fine.")
    cut = "\n".join(lines[:-1]).encode() if name != "opencode" else b""
    broken = AGENTS[name].read_outcome(Finished(ProcessEnding.EXITED, 0, cut, b"", tmp_path))
    assert broken.result is AgentResult.FAILED
    killed = AGENTS[name].read_outcome(Finished(ProcessEnding.STOPPED, 143, out, b"", tmp_path))
    assert (killed.result, killed.retry) == (AgentResult.FAILED, True)


def test_opencode_that_was_refused_a_permission_is_not_done(tmp_path: Path) -> None:
    """It ends at once with exit 0, in the middle of its work."""
    state = {"status": "error", "error": "The user rejected permission to use this specific tool call."}
    event = {"type": "tool_use", "sessionID": OWN["opencode"], "part": {"state": state}}
    ended = AGENTS["opencode"].read_outcome(
        Finished(ProcessEnding.EXITED, 0, json.dumps(event).encode(), b"", tmp_path)
    )
    assert (ended.result, ended.retry) == (AgentResult.FAILED, False)
    assert "rejected permission" in ended.reason


@pytest.mark.parametrize(
    ("name", "files"),
    [
        (
            "claude",
            {
                "transcript.jsonl": b'{"type":"user","uuid":"u1","parentUuid":null,"message":{"role":"user","content":"hi"}}\n'
            },
        ),
        ("codex", {f"sessions/2026/11/19/rollout-2026-11-19T11-38-00-{ID}.jsonl": b"{}\n"}),
        ("copilot", {"events.jsonl": b"{}\n"}),
        ("gemini", {CHAT: json.dumps({"sessionId": ID}).encode() + b"\n"}),
    ],
)
def test_what_was_placed_is_erased(name: str, files: dict[str, bytes], tmp_path: Path) -> None:
    """No file of the conversation is left; one that the machine had of its own stays, where it is found from anywhere."""
    agent, home, cwd = AGENTS[name], tmp_path / "home", tmp_path / "work"
    cwd.mkdir()
    env = {"HOME": str(home)}
    saved = SavedSession(name, ID, files=files)

    def kept() -> list[Path]:
        found = [place for place in home.rglob("*") if place.is_file()]
        return [place for place in found if ID[:8] in str(place)]

    agent.place(saved, cwd, env)
    (conversation,) = [place for place in kept() if place.suffix == ".jsonl"]
    content = conversation.read_bytes()
    agent.erase(saved, cwd, env)
    assert kept() == []
    if name in ("codex", "copilot"):
        conversation.parent.mkdir(parents=True, exist_ok=True)
        conversation.write_bytes(content)
        agent.place(saved, cwd, env)
        agent.erase(saved, cwd, env)
        assert kept() == [conversation]
