"""Wrap: an agent's command, run in its place; a gate when it ends by asking."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from support import PATIENCE
from support.testbed.command import Command, ForkedCommand, Outcome
from support.testbed.repositories import Clone

NEED = json.dumps(
    {"status": "needs_input", "question": "JWT or sessions?", "summary": "Auth", "details": "did users"}
)
SESSION = "5d14f5dd-8cd5-4721-9788-2e415584672d"


def program(*lines: str) -> tuple[str, ...]:
    return ("--", sys.executable, "-c", "\n".join(lines))


def says(text: str) -> tuple[str, ...]:
    return ("--", "sh", "-c", """printf '%s\\n' "$1\"""", "sh", text)


def result(**more: object) -> str:
    return json.dumps({"type": "result", "is_error": False, "session_id": SESSION, "result": "", **more})


def gates(cli: Command) -> list[dict[str, object]]:
    found: list[dict[str, object]] = cli.quick("list", "--all", "--json", code=0).json["gates"]
    return found


@pytest.fixture
def cli() -> Command:
    """A true process, in whose place another runs; how it starts is not what is tested here."""
    return ForkedCommand()


@pytest.mark.parametrize("code", [0, 1, 3, 8, 77])
def test_a_command_that_asks_nothing_passes_through(code: int, repo: Clone, cli: Command) -> None:
    """Its output, its talk, its input and its exit code are its own."""
    wrapped = program(
        "import sys", "print('out', sys.stdin.read())", "print('talk', file=sys.stderr)", f"sys.exit({code})"
    )
    said = cli("wrap", *wrapped, input="fed", code=code)
    assert (said.out, "talk\n" in said.err) == ("out fed\n", True)
    assert gates(cli) == []


def test_last_words_that_ask_open_a_gate(repo: Clone, cli: Command, tmp_path: Path) -> None:
    """Exit 8, or 0 where waiting is fine; partial work stays as it is, on no branch."""
    repo.write("half.py", "half\n")
    head = repo.git("rev-parse", "HEAD")
    output = tmp_path / "output"
    said = cli("wrap", *says(f"Done.\n{NEED}"), env={"GITHUB_OUTPUT": str(output)}, code=8)
    assert NEED in said.out
    (gate,) = gates(cli)
    assert (gate["title"], gate["state"], gate["delivery"]) == ("Auth", "awaiting", "none")
    assert output.read_text() == f"gate={gate['id']}\nstate=awaiting\n"
    assert repo.git("status", "--porcelain") == "?? half.py"
    assert repo.git("rev-parse", "HEAD") == head
    assert "half.py" in repo.git("ls-tree", "--name-only", f"refs/hitl/work/{gate['id']}")
    again = cli("wrap", "--waiting-ok", "--agent", "coder", *says("NEEDS_HUMAN: which port?"), code=0)
    assert "waits" in again.err
    assert {str(one["asked"]["agent"]) for one in gates(cli)} >= {"coder"}  # type: ignore[index]


@pytest.mark.parametrize(("code", "state"), [(0, "done"), (5, "failed")])
def test_ci_is_told_that_nothing_waits(
    code: int, state: str, repo: Clone, cli: Command, tmp_path: Path
) -> None:
    """An output that is there holds what was there."""
    output = tmp_path / "output"
    output.write_text("before=1\n")
    cli("wrap", *program(f"raise SystemExit({code})"), env={"GITHUB_OUTPUT": str(output)}, code=code)
    assert output.read_text() == f"before=1\ngate=\nstate={state}\n"


def test_a_result_with_a_session_is_resumed_later(repo: Clone, cli: Command, home: Path) -> None:
    """The conversation that the result names is kept with the gate."""
    folder = home / ".claude" / "projects" / "x"
    folder.mkdir(parents=True)
    record = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": SESSION,
        "message": {"role": "user", "content": "SAID-BEFORE"},
    }
    (folder / f"{SESSION}.jsonl").write_text(json.dumps(record) + "\n")
    cli("wrap", *says(result(result=f"Well.\n{NEED}")), code=8)
    (gate,) = gates(cli)
    assert gate["delivery"] == "resume"
    assert "SAID-BEFORE" in repo.git("show", f"refs/hitl/sessions/{gate['id']}:files/transcript.jsonl")
    # Said again in another run of the same conversation while nobody has answered, it is the same question.
    cli("wrap", *says(result(result=NEED)), code=8)
    assert len(gates(cli)) == 1


def test_a_deferred_call_is_asked(repo: Clone, cli: Command) -> None:
    """Also where another hook than ours deferred it."""
    questions = [
        {
            "question": "Which?",
            "header": "H",
            "options": [{"label": "A"}, {"label": "B"}],
            "multiSelect": True,
        }
    ]
    call = {"id": "toolu_1", "name": "AskUserQuestion", "input": {"questions": questions}}
    for _ in range(2):
        cli("wrap", *says(result(stop_reason="tool_deferred", deferred_tool_use=call)), code=8)
    (gate,) = gates(cli)
    assert gate["questions"][0]["type"] == "choices"  # type: ignore[index]


def test_a_structured_output_asks(repo: Clone, cli: Command) -> None:
    """As with a schema for the result."""
    cli("wrap", *says(result(structured_output=json.loads(NEED))), code=8)
    assert [gate["title"] for gate in gates(cli)] == ["Auth"]


def test_a_gate_that_the_command_opened_itself(repo: Clone, cli: Command) -> None:
    """Is the one that it waits at; one that was there before is not, nor one that it waited for."""
    before = cli.quick("ask", "An older one?", code=0).line
    ask = program("import subprocess", "subprocess.run(['git-gate', 'ask', 'Which?'], check=True)")
    said = cli("wrap", *ask, code=8)
    assert said.out.strip() != before
    assert said.out.strip() in said.err
    assert len(gates(cli)) == 2


def test_a_signal_file_asks(repo: Clone, cli: Command) -> None:
    """One that was written while the command ran; one from before is nobody's."""
    repo.write(".agents/signals/old.json", '{"status": "NEEDS_HUMAN", "reason": "long ago"}')
    cli("wrap", *says("hello"), code=0)
    write = program(
        "import json, pathlib",
        "pathlib.Path('.agents/signals/coder.json').write_text(json.dumps({'status': 'NEEDS_HUMAN', 'reason': 'which auth?'}))",
    )
    cli("wrap", *write, code=8)
    (gate,) = gates(cli)
    assert (gate["title"], gate["asked"]["agent"]) == ("which auth?", "coder")  # type: ignore[index]
    repo.git("config", "gitgate.signals", "elsewhere")
    cli("wrap", *write, code=0)


SIGNALLED = {"status": "NEEDS_HUMAN", "reason": "which auth?"}


def signalling(*names: str, and_then: str = "") -> tuple[str, ...]:
    """A program that leaves a signal file under each name."""
    return program(
        "import pathlib, subprocess",
        "folder = pathlib.Path('.agents/signals')",
        "folder.mkdir(parents=True, exist_ok=True)",
        *(f"(folder / '{name}.json').write_text({json.dumps(SIGNALLED)!r})" for name in names),
        and_then,
    )


def test_the_same_words_again_are_another_request(repo: Clone, cli: Command) -> None:
    """Of another run, another agent, after another commit, answered or not: each has a gate, and none passes for done."""
    ids = []
    for agent in ("one", "two", "one"):
        said = cli("wrap", "--agent", agent, "--json", *says("NEEDS_HUMAN: which port?"), code=8).json
        ids.append(said["gate"]["id"])
    cli.quick("respond", ids[-1], "80", code=0)
    repo.commit("further")
    ids.append(cli("wrap", "--json", *says("NEEDS_HUMAN: which port?"), code=8).json["gate"]["id"])
    assert len(set(ids)) == len(gates(cli)) == 4


@pytest.mark.slow
def test_the_same_signal_again_is_another_request(repo: Clone, cli: Command) -> None:
    """Of another agent, and of the same one that writes it anew, also after a commit that has the file; left lying it is none."""
    first = cli("wrap", "--json", *signalling("coder"), code=8).json["gate"]
    other = cli("wrap", "--json", *signalling("tester"), code=8).json["gate"]
    assert (first["asked"]["agent"], other["asked"]["agent"]) == ("coder", "tester")
    again = cli("wrap", "--json", *signalling("coder"), code=8).json["gate"]
    cli.quick("respond", again["id"], "JWT", code=0)
    repo.commit("further")
    later = cli("wrap", "--json", *signalling("coder"), code=8).json["gate"]
    assert len({first["id"], other["id"], again["id"], later["id"]}) == len(gates(cli)) == 4
    cli("wrap", *says("went on"), code=0)
    assert len(gates(cli)) == 4


@pytest.mark.slow
def test_every_request_of_a_run_is_told(repo: Clone, cli: Command, tmp_path: Path) -> None:
    """Two signals, a question that was asked by the command itself and one by another: four gates, each named."""
    output = tmp_path / "output"
    ask = "for q in ('Own?', 'Other?'): subprocess.run(['git-gate', 'ask', q, '-q'], check=True)"
    said = cli("wrap", *signalling("one", "two", and_then=ask), env={"GITHUB_OUTPUT": str(output)}, code=8)
    found = {str(gate["id"]) for gate in gates(cli)}
    assert len(found) == 4
    assert all(f"gate {gate}: " in said.err for gate in found)
    first, state, every = output.read_text().splitlines()
    assert first.removeprefix("gate=") in found
    assert (state, set(every.removeprefix("gates=").split())) == ("state=awaiting", found)
    told = cli("wrap", "--json", *signalling("one", "two"), code=8).json
    assert len(told["gates"]) == 2
    assert told["gate"] == told["gates"][0]


@pytest.mark.parametrize("how", ["untracked", "staged", "committed", "gone"])
def test_a_signal_is_no_work(how: str, repo: Clone, cli: Command) -> None:
    """Whatever git knows of it: it is in no snapshot, and named nowhere as changed."""
    place = repo.write(".agents/signals/coder.json", '{"status": "done"}')
    if how == "staged":
        repo.git("add", "-A")
    elif how in ("committed", "gone"):
        repo.commit("with a signal")
    left = "(folder / 'coder.json').unlink()" if how == "gone" else ""
    said = cli("wrap", "--json", *signalling("tester", "coder", and_then=left), code=8)
    for gate in said.json["gates"]:
        assert (gate["work"]["dirty"], gate["work"]["files"]) == (False, 0)
        assert (
            "signals" not in cli.quick("show", gate["id"], "--diff", code=0).out.partition("How to answer")[0]
        )
    assert "left out" not in said.err
    repo.write("half.py", "half\n")
    gate = cli("wrap", "--json", *signalling("tester"), code=8).json["gate"]
    assert (gate["work"]["dirty"], gate["work"]["files"]) == (True, 1)
    tree = repo.git("ls-tree", "-r", "--name-only", f"refs/hitl/work/{gate['id']}").splitlines()
    assert [name for name in tree if "signals" in name] == (
        [".agents/signals/coder.json"] if how in ("committed", "gone") else []
    )
    assert place.exists() == (how != "gone")


@pytest.fixture
def claude(tmp_path: Path) -> dict[str, str]:
    """A program of that name, which prints what it was started with and asks as our hook would; what leads to it."""
    place = tmp_path / "bin" / "claude"
    place.parent.mkdir()
    place.write_text(
        f"""#!/bin/sh
printf '%s\\n' "$@" > {tmp_path}/words
while [ $# -gt 0 ] && [ "$1" != --session-id ]; do shift; done
git-gate ask "Which port?" -q --agent claude --session "${{2:-none}}" > /dev/null
echo
"""
    )
    place.chmod(0o755)
    return {"PATH": f"{place.parent}:{os.environ['PATH']}"}


def test_claude_code_is_given_what_it_needs_to_ask(
    repo: Clone, cli: Command, claude: dict[str, str], tmp_path: Path
) -> None:
    """The flag for its questions, our hooks, and a name for its conversation; then the gate is told, and how to answer it."""
    said = cli("wrap", "--", "claude", "-p", "Add a page", env=claude, code=8)
    (gate,) = gates(cli)
    assert said.out == ""
    assert f"git gate respond {str(gate['id'])[:6]} TEXT" in said.err
    words = (tmp_path / "words").read_text().splitlines()
    assert words[:3] == ["--permission-prompt-tool", "stdio", "--session-id"]
    assert words[-2:] == ["-p", "Add a page"]
    assert "gitgate-hook" in words[words.index("--settings") + 1]
    assert gate["delivery"] == "resume"


@pytest.mark.slow
def test_what_a_command_says_itself_stays(
    repo: Clone, cli: Command, claude: dict[str, str], tmp_path: Path
) -> None:
    """Its own prompt tool and conversation. Our hooks come by `--settings`, also where the project has them, and without -p."""
    repo.write(
        ".claude/settings.json", '{"hooks": {"x": [{"hooks": [{"command": ".claude/gitgate-hook"}]}]}}'
    )
    own = ("--permission-prompt-tool", "mcp__x__y", "--session-id", SESSION)
    cli("wrap", "--", "claude", "-p", *own, "Do", env=claude, code=8)
    settings, given, *rest = (tmp_path / "words").read_text().splitlines()
    assert (settings, rest) == ("--settings", ["-p", *own, "Do"])
    assert "gitgate-hook" in given
    cli("wrap", "--", "claude", "--resume", SESSION, "-p", "Do", env=claude)
    assert "--session-id" not in (tmp_path / "words").read_text()
    cli("wrap", "--", "claude", "--model", "opus", env=claude)
    words = (tmp_path / "words").read_text().splitlines()
    assert words[-2:] == ["--model", "opus"]
    assert "gitgate-hook" in words[words.index("--settings") + 1]


def test_a_wrapped_command_cannot_answer(repo: Clone, cli: Command) -> None:
    """It and all that it starts are an agent's."""
    gate = cli.quick("ask", "Which?", code=0).line
    answer = program(
        "import subprocess, sys",
        f"sys.exit(subprocess.run(['git-gate', 'respond', '{gate}', 'mine']).returncode)",
    )
    cli("wrap", *answer, code=4)


def test_json(repo: Clone, cli: Command) -> None:
    """One object on standard output; what the command prints is talk then."""
    said = cli("wrap", "--json", *says(NEED), code=8)
    assert (said.json["schema"], said.json["state"], said.json["gate"]["title"]) == (
        "gitgate.wrap/v1",
        "awaiting",
        "Auth",
    )
    assert NEED in said.err
    assert cli("wrap", "--json", *says("x"), code=0).json["gate"] is None


def refused(cli: Command, words: Sequence[str], code: int) -> Outcome:
    return cli("wrap", *words, code=code)


def test_a_command_that_cannot_be_started(repo: Clone, cli: Command) -> None:
    """Says so, and what to type."""
    assert "cannot be started" in refused(cli, ["--", "/no/such/program"], 1).err
    assert "what is to be run" in refused(cli, [], 2).err


def test_its_flags_are_its_own(repo: Clone, cli: Command) -> None:
    """Nothing after the command's name is taken for ours."""
    said = cli(
        "wrap",
        sys.executable,
        "-c",
        "import sys; print(sys.argv[1:])",
        "--json",
        "-q",
        "--waiting-ok",
        code=0,
    )
    assert said.out == "['--json', '-q', '--waiting-ok']\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_the_command(
    number: signal.Signals, repo: Clone, cli: Command, tmp_path: Path
) -> None:
    """It ends as it would without us, and its ending is passed on."""
    started = tmp_path / "started"
    running = cli.start(
        "wrap", *program("import pathlib, time", f"pathlib.Path({str(started)!r}).touch()", "time.sleep(60)")
    )
    until = time.monotonic() + PATIENCE
    while not started.exists() and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(running.pid, number)
    running.communicate(timeout=PATIENCE)
    assert running.returncode == 128 + number


def test_much_output_is_passed_on(repo: Clone, cli: Command) -> None:
    """All of it, and its end is read."""
    said = cli("wrap", *program("print('x' * 12_000_000)", f"print({NEED!r})"), code=8)
    assert len(said.out) == 12_000_000 + len(NEED) + 2


def test_codex_is_read_by_its_events(repo: Clone, cli: Command) -> None:
    """The last message asks; the thread is the session."""
    events = [
        {"type": "thread.started", "thread_id": SESSION},
        {"type": "item.completed", "item": {"type": "agent_message", "text": NEED}},
    ]
    cli("wrap", *says("\n".join(map(json.dumps, events))), code=8)
    (gate,) = gates(cli)
    assert gate["session"]["agent"] == "codex"  # type: ignore[index]


def test_scripts_get_whether_the_gate_went_out(
    bare: Clone, clone_of: Callable[..., Clone], cli: Command
) -> None:
    """As with `ask`: true once the remote has it, false where it stayed here."""
    clone = clone_of(bare)
    went = cli("wrap", "--json", *says("NEEDS_HUMAN: which port?"), cwd=clone.path, code=8).json["gate"]
    clone.git("config", "gitgate.push", "false")
    stayed = cli("wrap", "--json", *says("NEEDS_HUMAN: which host?"), cwd=clone.path, code=8).json["gate"]
    assert (went["pushed"], stayed["pushed"]) == (True, False)
