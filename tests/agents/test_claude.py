"""The adapter for Claude Code, as far as it can be told without the program."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gitgate.agents import AGENTS, detect, scrubbed
from gitgate.agents.agent import AgentOutcome, AgentResult, AgentSettings, Finished, ProcessEnding, Start
from gitgate.agents.claude.transcript import SIDE_FILE, TRANSCRIPT, encode, project_folder
from gitgate.errors import Failure, Usage
from gitgate.model.gate import SavedSession, SessionRef

CLAUDE = AGENTS["claude"]
ID = "0b9c4f0e-0000-4000-8000-000000000000"
TOKEN = "ghp" + "_" + "a1B2c3D4e5" * 4
RECORD: dict[str, Any] = {
    "type": "user",
    "uuid": "u1",
    "parentUuid": None,
    "message": {"role": "user", "content": "hello"},
}
LINE = json.dumps(RECORD).encode() + b"\n"


def request(tmp_path: Path, **changes: Any) -> Start:
    start = Start(
        "7k2fw3x9ab", tmp_path, tmp_path / "folder", "go on", SessionRef("claude", ID), env={"PATH": "/bin"}
    )
    return replace(start, **changes)


def finished(
    tmp_path: Path, result: dict[str, Any] | None = None, code: int = 0, err: bytes = b"", **changes: Any
) -> Finished:
    lines = [
        {"type": "system", "session_id": ID},
        {"type": "result", "session_id": ID, **result} if result else {},
    ]
    out = b"\n".join(json.dumps(line).encode() for line in lines)
    return replace(Finished(ProcessEnding.EXITED, code, out, err, tmp_path), **changes)


@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("/home/ada/my.project_1", "-home-ada-my-project-1"),
        ("/ü/日本", "-----"),
        ("/😀", "---"),
        ("/" + "a" * 199, "-" + "a" * 199),
        ("/" + "a" * 200, "-" + "a" * 199 + "-b6ymvl"),
    ],
)
def test_a_directory_is_spelt_as_a_file_name(directory: str, name: str) -> None:
    """UTF-16 units, not characters, become dashes; beyond 200 a hash of the whole ends the name."""
    assert encode(directory) == name


def test_what_it_is_started_with(tmp_path: Path) -> None:
    """Every flag every time; the prompt on stdin; hooks and the machine's own flags as given."""
    settings = AgentSettings(("nice", "claude"), ("--model", "m"), timeout=60)
    launch = CLAUDE.start(request(tmp_path, settings=settings, hooks={"Stop": []}))
    assert launch.argv == (
        *(
            "nice",
            "claude",
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-prompt-tool",
            "stdio",
        ),
        *(
            "--setting-sources",
            "user",
            "--strict-mcp-config",
            "--model",
            "m",
            "--settings",
            '{"hooks": {"Stop": []}}',
        ),
        *("--resume", ID),
    )
    assert (launch.stdin, launch.timeout, launch.cwd) == (b"go on", 60, tmp_path)


def test_a_new_conversation_resumes_nothing(tmp_path: Path) -> None:
    assert "--resume" not in CLAUDE.start(request(tmp_path, session=None)).argv


def test_a_deferred_call_is_taken_up_without_a_word(tmp_path: Path) -> None:
    """A prompt would be the answer to something else; without our hook the call would be made unasked."""
    launch = CLAUDE.start(request(tmp_path, deferred=True, hooks={"PreToolUse": []}))
    assert launch.stdin == b""
    with pytest.raises(Usage, match="needs the hook"):
        CLAUDE.start(request(tmp_path, deferred=True))


@pytest.mark.parametrize("session", ["--help", "../../x", "a/b", "", ".x", "a" * 200, "a\nb"])
def test_an_id_that_is_none_is_refused(session: str, tmp_path: Path) -> None:
    """It would be a flag or a path."""
    saved = SavedSession("claude", session, files={TRANSCRIPT: LINE})
    with pytest.raises(Usage, match="not a session id"):
        CLAUDE.start(request(tmp_path, session=SessionRef("claude", session)))
    with pytest.raises(Usage, match="not a session id"):
        CLAUDE.place(saved, tmp_path, {"HOME": str(tmp_path)})
    with pytest.raises(Usage, match="not a session id"):
        CLAUDE.collect(SessionRef("claude", session), {"HOME": str(tmp_path)})
    assert detect({"CLAUDE_CODE_SESSION_ID": session}) is None


def test_what_an_agent_inherits() -> None:
    """Nothing of the git command or the agent that it was started from; all of what a person configured."""
    kept = {
        "PATH": "/bin", "ANTHROPIC_API_KEY": "k", "CLAUDE_CONFIG_DIR": "/c", "CLAUDE_CODE_OAUTH_TOKEN": "t", "CLAUDE_CODE_USE_BEDROCK": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "9", "GITGATE_REMOTE": "origin",
    }  # fmt: skip
    gone = (
        "GIT_DIR", "GIT_INDEX_FILE", "GIT_QUARANTINE_PATH", "GIT_CONFIG_PARAMETERS", "GIT_EDITOR", "CLAUDECODE", "AI_AGENT",
        "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_MESSAGING_TOKEN",
        "CLAUDE_CODE_SSE_PORT", "CLAUDE_PID", "CODEX_THREAD_ID", "GITGATE_ANSWER", "GITGATE_SESSION",
    )  # fmt: skip
    assert scrubbed({**kept, **dict.fromkeys(gone, "x")}) == kept


@pytest.mark.parametrize(
    ("denials", "lines"),
    [
        ([], ()),
        (None, ()),
        ("many", ()),
        ([3, None, {}], ("a tool",)),
        ([{"tool_name": "Bash", "tool_input": {"command": "git push\norigin"}}], ("Bash: git push origin",)),
        ([{"tool_name": "Write", "tool_input": {"content": "x", "file_path": "/etc/a"}}], ("Write: /etc/a",)),
        ([{"tool_name": "mcp__db__drop", "tool_input": {"table": 7}}], ('mcp__db__drop: {"table": 7}',)),
        ([{"tool_name": "A\x1b[2J", "tool_input": {}}] * 3, ("A\\x1b[2J",)),
        ([{"tool_name": "Bash", "tool_input": {"command": f"curl -H {TOKEN}"}}], None),
    ],
)
def test_what_it_was_refused_is_told(denials: object, lines: tuple[str, ...] | None, tmp_path: Path) -> None:
    """Each call in a line, once, harmless and without secrets; whatever else stands there is passed over."""
    said = {"is_error": False, "result": "", "permission_denials": denials}
    found = CLAUDE.read_outcome(finished(tmp_path, said, 0)).denied
    assert found == lines if lines is not None else TOKEN not in found[0]


CALL = {"id": "t", "name": "Bash", "input": {}}


@pytest.mark.parametrize(
    ("result", "code", "expected"),
    [
        ({"is_error": False, "result": "done"}, 0, AgentOutcome(AgentResult.DONE, ID, "done")),
        (
            {"stop_reason": "tool_deferred", "deferred_tool_use": CALL},
            0,
            AgentOutcome(AgentResult.DEFERRED, ID, call=CALL),
        ),
        ({"terminal_reason": "hook_stopped", "result": ""}, 0, AgentOutcome(AgentResult.ASKED, ID)),
        (
            {"subtype": "success", "is_error": True, "result": "API Error: 400 bad", "api_error_status": 400},
            *(1, AgentOutcome(AgentResult.FAILED, ID, "API Error: 400 bad", "API Error: 400 bad")),
        ),
        (
            {
                "is_error": True,
                "terminal_reason": "api_error",
                "result": "API Error: 400 bad",
                "api_error_status": 400,
            },
            *(1, AgentOutcome(AgentResult.FAILED, ID, "API Error: 400 bad", "api_error: API Error: 400 bad")),
        ),
        (
            {"is_error": True, "terminal_reason": "api_error", "result": "API Error: 403 {}"},
            *(1, AgentOutcome(AgentResult.FAILED, ID, "API Error: 403 {}", "api_error: API Error: 403 {}")),
        ),
        (
            {"is_error": True, "terminal_reason": "api_error", "result": "API Error: 429 later"},
            *(
                1,
                AgentOutcome(
                    AgentResult.FAILED,
                    ID,
                    "API Error: 429 later",
                    "api_error: API Error: 429 later",
                    retry=True,
                ),
            ),
        ),
        (
            {"is_error": True, "terminal_reason": "api_error", "result": "API Error: terminated"},
            *(
                1,
                AgentOutcome(
                    AgentResult.FAILED,
                    ID,
                    "API Error: terminated",
                    "api_error: API Error: terminated",
                    retry=True,
                ),
            ),
        ),
        (
            {"subtype": "success", "is_error": True, "result": "API Error: 529", "api_error_status": 529},
            *(1, AgentOutcome(AgentResult.FAILED, ID, "API Error: 529", "API Error: 529", retry=True)),
        ),
        (
            {"subtype": "error_during_execution", "is_error": True, "terminal_reason": "aborted"},
            *(0, AgentOutcome(AgentResult.FAILED, ID, "", "aborted: exit 0")),
        ),
        (
            {
                "subtype": "error_max_turns",
                "is_error": True,
                "errors": ["Reached maximum number of turns (5)"],
            },
            *(
                1,
                AgentOutcome(
                    AgentResult.FAILED, ID, "", "error_max_turns: Reached maximum number of turns (5)"
                ),
            ),
        ),
        (
            {"is_error": True, "stop_reason": "tool_deferred_unavailable", "result": ""},
            *(1, AgentOutcome(AgentResult.FAILED, ID, "", "tool_deferred_unavailable: exit 1")),
        ),
        ({"is_error": False, "result": "odd"}, 1, AgentOutcome(AgentResult.FAILED, ID, "odd", "odd")),
    ],
    ids=[
        "done",
        "deferred",
        "stopped by a hook",
        "api",
        "refused for good",
        "refused for good, in words",
        "too many at once, in words",
        "broken off",
        "overloaded",
        "interrupted",
        "turns",
        "tool missing",
        "exit code",
    ],
)
def test_how_an_ending_is_read(
    result: dict[str, Any], code: int, expected: AgentOutcome, tmp_path: Path
) -> None:
    """`is_error` and the exit code tell a failure, never `subtype`."""
    assert CLAUDE.read_outcome(finished(tmp_path, result, code)) == expected


@pytest.mark.parametrize(
    ("end", "retry"),
    [
        ({"code": 1, "err": b"No conversation found with session ID: x\n"}, False),
        ({"code": 143}, True),
        ({"code": 137}, True),
        ({"code": 143, "ending": ProcessEnding.TIMED_OUT}, True),
        ({"code": 127, "ending": ProcessEnding.UNSTARTABLE, "out": b""}, True),
        ({"code": 1, "err": b"error: unknown option\n"}, False),
        ({"code": 0}, False),
    ],
)
def test_a_run_without_a_result_failed(end: dict[str, Any], retry: bool, tmp_path: Path) -> None:
    """Killed or out of time it may go better again; exit 0 with nothing said is no success."""
    outcome = CLAUDE.read_outcome(finished(tmp_path, **end))
    assert (outcome.result, outcome.retry) == (AgentResult.FAILED, retry)
    assert outcome.reason
    assert outcome.session == ("" if "out" in end else ID)


@pytest.mark.parametrize(
    "out", [b"", b"[1]", b"\xff\xfe{", b"[" * 100_000, b'{"type":"result"', b"null\n7\n"], ids=range(6)
)
def test_garbled_output_is_a_failure(out: bytes, tmp_path: Path) -> None:
    assert (
        CLAUDE.read_outcome(Finished(ProcessEnding.EXITED, 0, out, b"", tmp_path)).result
        is AgentResult.FAILED
    )


def kept_session(home: Path, name: str = "-here") -> Path:
    place = home / ".claude" / "projects" / name / ID
    place.parent.mkdir(parents=True)
    place.with_suffix(".jsonl").write_bytes(LINE)
    return place


def test_side_files_are_saved_while_they_are_small(tmp_path: Path) -> None:
    """Links, odd names and large ones stay; what stays is named."""
    place = kept_session(tmp_path)
    results = place / "tool-results"
    results.mkdir(parents=True)
    (results / "a.txt").write_text(f"token {TOKEN} in {place}/tool-results/a.txt")
    (results / "large.txt").write_text("x" * 300_000)
    (results / "odd name.txt").write_text("x")
    (tmp_path / "secret.txt").write_text("outside")
    (results / "link.txt").symlink_to(tmp_path / "secret.txt")
    saved = CLAUDE.collect(SessionRef("claude", ID), {"HOME": str(tmp_path)})
    assert sorted(saved.files) == ["tool-results/a.txt", TRANSCRIPT]
    assert saved.left_out == (("tool-results/large.txt", "it is too large"),)
    assert TOKEN.encode() not in saved.files["tool-results/a.txt"]
    there = tmp_path / "there"
    CLAUDE.place(saved, there, {"HOME": str(tmp_path / "other")})
    new = project_folder({"HOME": str(tmp_path / "other")}, there) / ID
    assert (
        new / "tool-results" / "a.txt"
    ).read_text() == f"token [redacted: github token] in {new}/tool-results/a.txt"
    assert new.with_suffix(".jsonl").stat().st_mode & 0o777 == 0o600


def test_a_place_that_is_not_utf8(tmp_path: Path) -> None:
    """Taken up where folders are called anything; what the conversation says of its own files stays as it was."""
    home = tmp_path / os.fsdecode(b"caf\xe9")
    conversation = b'{"type":"user","uuid":"u","message":{"content":"/tmp/somewhere"}}\n'
    saved = SavedSession("claude", ID, "", os.fsdecode(b"/tmp/\xe9"), {TRANSCRIPT: conversation})
    CLAUDE.place(saved, home, {"HOME": str(home)})
    (there,) = home.rglob("*.jsonl")
    assert b"/tmp/somewhere" in there.read_bytes()


def test_a_session_too_large_to_keep_is_named(tmp_path: Path) -> None:
    kept_session(tmp_path)
    saved = CLAUDE.collect(SessionRef("claude", ID), {"HOME": str(tmp_path)}, most=10)
    assert saved.files == {}
    assert saved.left_out[0][0] == TRANSCRIPT


def test_the_newest_of_several_places_is_taken(tmp_path: Path) -> None:
    """A session resumed elsewhere has two files; a named one counts only if it is of that session."""
    old, new = kept_session(tmp_path, "-old"), kept_session(tmp_path, "-new")
    for place, text in ((old, "first"), (new, "second")):
        record = {**RECORD, "message": {"role": "user", "content": text}}
        place.with_suffix(".jsonl").write_text(json.dumps(record))
    os.utime(old.with_suffix(".jsonl"), (1, 1))
    env = {"HOME": str(tmp_path)}
    assert b"second" in CLAUDE.collect(SessionRef("claude", ID), env).files[TRANSCRIPT]
    named = SessionRef("claude", ID, transcript=str(old.with_suffix(".jsonl")))
    assert b"first" in CLAUDE.collect(named, env).files[TRANSCRIPT]
    wrong = SessionRef("claude", ID, transcript="/etc/passwd")
    assert b"second" in CLAUDE.collect(wrong, env).files[TRANSCRIPT]


HOSTILE_NAMES = (
    "../../.bashrc", "/etc/x", "tool-results/../../x.txt", "subagents/agent-a/../x.jsonl", "tool-results/.hidden.txt", "settings.json",
    "tool-results/x.sh", "subagents/agent-x.jsonl/y", "tasks/../x.json", "tool-results/x\n.txt", "subagents/agent-x.jsonl\n",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_pushed_session_writes_only_where_it_may(name: str, tmp_path: Path) -> None:
    """Whoever pushed it chose the names: any that does not fit is not written."""
    saved = SavedSession("claude", ID, files={TRANSCRIPT: LINE, name: b"evil"})
    CLAUDE.place(saved, tmp_path / "cwd", {"HOME": str(tmp_path / "home")})
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in written] == [f"{ID}.jsonl"]
    assert not SIDE_FILE.fullmatch(name)


def test_a_pushed_transcript_is_slimmed_again(tmp_path: Path) -> None:
    """A record that would send the agent elsewhere does not get through."""
    state = (
        json.dumps({"type": "worktree-state", "worktreeSession": {"originalCwd": "/elsewhere"}}).encode()
        + b"\n"
    )
    CLAUDE.place(
        SavedSession("claude", ID, files={TRANSCRIPT: LINE + state}), tmp_path, {"HOME": str(tmp_path)}
    )
    assert b"worktree" not in next(tmp_path.rglob(f"{ID}.jsonl")).read_bytes()


def test_a_session_without_words_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="holds no conversation"):
        CLAUDE.place(
            SavedSession("claude", ID, files={TRANSCRIPT: b"{}\n"}), tmp_path, {"HOME": str(tmp_path)}
        )


def test_a_diverged_session_is_put_aside(tmp_path: Path) -> None:
    """What is replaced is still there for a person."""
    env = {"HOME": str(tmp_path)}
    target = project_folder(env, tmp_path) / f"{ID}.jsonl"
    target.parent.mkdir(parents=True)
    target.write_text("another conversation\n")
    CLAUDE.place(SavedSession("claude", ID, files={TRANSCRIPT: LINE}), tmp_path, env)
    assert b"hello" in target.read_bytes()
    assert target.with_suffix(".jsonl.before").read_text() == "another conversation\n"


def test_no_agent_is_found_outside_one() -> None:
    assert detect({"PATH": "/bin", "HOME": "/home/ada"}) is None


def test_a_reason_holds_no_secret(tmp_path: Path) -> None:
    """It is recorded and pushed: one line, neutral, redacted."""
    said = {"is_error": True, "result": f"API Error: bad key {TOKEN}\x1b[2J\nmore"}
    for outcome in (
        CLAUDE.read_outcome(finished(tmp_path, said, 1)),
        CLAUDE.read_outcome(finished(tmp_path, None, 1, f"cannot use {TOKEN}\x1b[2J".encode())),
    ):
        assert TOKEN not in outcome.reason
        assert "[redacted: github token]" in outcome.reason
        assert "\x1b" not in outcome.reason


def test_a_person_opens_it_with_the_same_guard(tmp_path: Path) -> None:
    """At a terminal too, the worktree's own settings and servers stay out."""
    guarded = ("claude", "--setting-sources", "user", "--strict-mcp-config", "--resume", ID)
    said = CLAUDE.join(request(tmp_path))
    assert said.argv == (*guarded, "--", said.argv[-1])
    assert CLAUDE.join(replace(request(tmp_path), prompt="")).argv == guarded
    opened = AGENTS["codex"].join(replace(request(tmp_path), prompt="")).argv
    assert opened == ("codex", "resume", "-c", "allow_login_shell=false", ID)
    with pytest.raises(Usage) as error:
        AGENTS["command"].join(request(tmp_path))
    assert "git gate respond 7k2fw3x9ab" in error.value.hint
