"""The command line opens a gate for an agent, and says what went where and what happens next."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from support import PATIENCE
from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

Ask = Callable[..., str]


def test_the_id_is_all_there_is_on_stdout(cli: Command, repo: Clone) -> None:
    """What happens next is told on stderr, ready to type."""
    said = cli.quick("ask", "Which?", code=0)
    assert f"git gate check {said.line[:6]}" in said.err
    assert f"git gate wait {said.line[:6]}" in said.err


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--timeout", "2"), "its deadline: 2s from now ("),
        (("--timeout", "90m", "--on-timeout", "fail"), "); then it expires, and whoever asked hears"),
        (("--timeout", "2h"), "its deadline: 2h from now ("),
    ],
)
def test_a_deadline_is_told(cli: Command, repo: Clone, given: tuple[str, ...], told: str) -> None:
    """A number alone is seconds: whoever meant minutes sees it at once, and what comes of it."""
    assert told in cli.quick("ask", "Which?", *given, code=0).err
    assert "its deadline" not in cli.quick("ask", "Which?", code=0).err


def test_what_went(cli: Command, bare: Clone, clone_of: Callable[..., Clone]) -> None:
    """`work: 1 changed, 2 untracked → origin` where publishing it is allowed; otherwise how to allow it."""
    clone = clone_of(bare)
    for name in ("README", "b", "c"):
        clone.write(name, "changed\n")
    kept = cli.quick("ask", "Which?", cwd=clone.path, code=0)
    assert "work: 1 changed, 2 untracked, kept here (git gate init publishes work)" in kept.err
    clone.git("config", "gitgate.publishWork", "true")
    went = cli.quick("ask", "Which else?", cwd=clone.path, code=0)
    assert "→ origin; work: 1 changed, 2 untracked → origin" in went.err
    local = cli.quick("ask", "Which more?", "--no-push", cwd=clone.path, code=0)
    assert "saved, not pushed: git gate sync" in local.err
    assert cli.quick("ask", "And?", "--json", "--no-push", cwd=clone.path, code=0).json["pushed"] is False


def test_a_session_that_stays_is_told(cli: Command, bare: Clone, clone_of: Callable[..., Clone]) -> None:
    """No server can go on with what it never got; whose session it was taken for is told with it."""
    clone = clone_of(bare)
    words = ("ask", "Which?", "--agent", "mine", "--session", "abcd-1234")
    assert "its session (claude) stays here" in cli.quick(*words, cwd=clone.path, code=0).err
    clone.git("config", "gitgate.agent.mine.resume", "true")
    stays = cli.quick(*words, cwd=clone.path, code=0).err
    assert "its session (mine) stays here" in stays
    assert "git config gitgate.session push shares them" in stays
    clone.git("config", "gitgate.session", "push")
    assert "git gate init publishes work and sessions" in cli.quick(*words, cwd=clone.path, code=0).err
    clone.git("config", "gitgate.publishWork", "true")
    assert "stays here" not in cli.quick(*words, cwd=clone.path, code=0).err
    assert "stays here" not in cli.quick("ask", "Which?", cwd=clone.path, code=0).err


@pytest.mark.parametrize("name", ["nosuch", "my agent"])
def test_a_session_that_is_taken_for_claudes_is_told(cli: Command, repo: Clone, name: str) -> None:
    """Nothing says how its agent is started: the line that does is named, ready to type, and then it is that agent's."""
    words = ("ask", "Which?", "--agent", name, "--session", "abcd-1234", "--json")
    said = cli.quick(*words, code=0)
    assert said.json["session"]["agent"] == "claude"
    assert f"nothing here says how {name} is started, so its session is taken for Claude Code's" in said.err
    git, *line = shlex.split(said.err.partition("ask again: ")[2].partition("\n")[0])
    assert git == "git"
    repo.git(*line)
    again = cli.quick(*words, code=0)
    assert again.json["session"]["agent"] == name
    assert "is taken for" not in again.err


@pytest.mark.parametrize(
    ("flags", "env"),
    [
        (("--agent", "nosuch"), {}),
        (("--session", "abcd-1234"), {}),
        (("--agent", "claude", "--session", "abcd-1234"), {}),
        (("--agent", "codex", "--session", "abcd-1234"), {}),
        (("--agent", "backend"), {"CLAUDE_CODE_SESSION_ID": "abcd-1234"}),
        (("--agent", "backend", "--session", "abcd-1234"), {"CLAUDE_CODE_SESSION_ID": "abcd-1234"}),
        (("--agent", "backend", "--session", "abcd-1234"), {"GITGATE_SESSION": "abcd-1234"}),
    ],
)
@pytest.mark.usefixtures("repo")
def test_a_session_that_is_known_is_not_taken_for_anything(
    cli: Command, flags: tuple[str, ...], env: dict[str, str]
) -> None:
    """Inside of an agent its own name is what a person calls it; without a session nothing is taken for one."""
    assert "is taken for" not in cli.quick("ask", "Which?", *flags, env=env, code=0).err


def test_a_check_knows_only_this_clone(
    cli: Command, bare: Clone, clone_of: Callable[..., Clone], ask: Ask
) -> None:
    """Answered elsewhere, it still waits here until somebody syncs: that is told, where there is a remote to ask."""
    clone = clone_of(bare)
    gate = ask("Which?", cwd=clone.path)
    waits = cli.quick("check", gate, cwd=clone.path, code=8)
    assert waits.out == ""
    assert "to hear of answers given elsewhere: git gate sync" in waits.err
    clone.git("remote", "remove", "origin")
    assert "git gate sync" not in cli.quick("check", gate, cwd=clone.path, code=8).err


def test_an_attachment_is_found_from_where_one_stands(cli: Command, repo: Clone) -> None:
    """In a folder below the top too; it is known by its path in the repository."""
    repo.write("docs/plan.txt", "one\n")
    for place, typed in ((repo.path / "docs", "plan.txt"), (repo.path, "docs/plan.txt")):
        words = ("ask", "Which?", "--attach", typed, "--context", f"@{typed}", "--json")
        assert cli.quick(*words, cwd=place, code=0).json["attachments"] == ["docs/plan.txt"]
    away = cli.quick("ask", "Which?", "--attach", "docs/plan.txt", cwd=repo.path / "docs", code=2)
    assert '"docs/docs/plan.txt": expected a file' in away.err


def test_what_stays_is_named(cli: Command, repo: Clone, ask: Ask) -> None:
    """A file that looks secret, with the flag that takes it; a long list is cut."""
    for number in range(12):
        repo.write(f"keys/{number}/.env", "TOKEN=1\n")
    said = cli.quick("ask", "Which?", code=0)
    assert "left out of the work: keys/0/.env (" in said.err
    assert "--include keys/0/.env takes it" in said.err
    assert "2 more, named by git gate show" in said.err
    gate = ask("Which?", "--include", "keys/0/.env")
    assert "keys/0/.env" in cli.quick("diff", gate, "--stat").out


@pytest.mark.parametrize(
    ("place", "typed"), [("keys/0", ".env"), ("docs", "../keys/0/.env"), ("", "keys/0/.env")]
)
def test_what_stays_is_named_as_it_is_typed(cli: Command, repo: Clone, place: str, typed: str) -> None:
    """From where one stands, as the files of other flags are."""
    repo.write("keys/0/.env", "TOKEN=1\n")
    repo.write("docs/plan", "")
    said = cli.quick("ask", "Which?", cwd=repo.path / place, code=0)
    assert (
        f"left out of the work: keys/0/.env (its name says that it holds secrets); --include {typed} takes it"
        in said.err
    )
    gate = cli.quick("ask", "Which?", "--include", typed, cwd=repo.path / place, code=0).line
    assert "keys/0/.env" in cli.quick("diff", gate, "--stat").out
    assert (
        "nothing is at" in cli.quick("ask", "Which?", "--include", "nope", cwd=repo.path / place, code=2).err
    )


def test_a_remote_that_is_away(cli: Command, repo: Clone) -> None:
    """The gate is safe here: exit 0 with a warning; 1 under --push and in CI."""
    repo.git("remote", "add", "origin", "file:///nonexistent/x.git")
    away = cli.quick("ask", "Which?", "--json", code=0)
    assert away.json["pushed"] is False
    assert "warning: not pushed, but safe here" in away.err
    assert "git gate sync" in away.err
    assert "safe here, but not pushed" in cli.quick("ask", "Which?", "--push", code=1).err
    assert cli.quick("ask", "Which?", env={"CI": "true"}, code=1).out == ""
    assert len(cli.quick("list", "--json").json["gates"]) == 3


def test_the_same_key_is_the_same_gate(cli: Command, repo: Clone) -> None:
    """While it is open."""
    first = cli.quick("ask", "Which?", "--key", "auth", code=0)
    again = cli.quick("ask", "Which?", "--key", "auth", code=0)
    assert again.line == first.line
    assert "already asks this" in again.err


def test_words_from_elsewhere(cli: Command, repo: Clone, tmp_path: Path) -> None:
    """--context from a file or standard input; a whole question from a file."""
    (tmp_path / "why.md").write_text("Because.\n", encoding="utf-8")
    gate = cli.quick("ask", "Which?", "--context", f"@{tmp_path / 'why.md'}", "--json", code=0).json
    assert gate["context"].strip() == "Because."
    gate = cli.quick("ask", "Which?", "--context", "-", "--json", input="From a pipe.", code=0).json
    assert gate["context"] == "From a pipe."
    asked = cli.quick(
        "ask",
        "--file",
        "-",
        "--json",
        input='{"question": "Which?", "type": "select", "options": ["A", "B"]}',
    )
    (question,) = asked.json["questions"]
    assert (question["type"], [option["label"] for option in question["options"]]) == ("choice", ["A", "B"])


def test_a_bad_file_says_where(cli: Command, repo: Clone, tmp_path: Path) -> None:
    """File, line and field; nothing is written."""
    (tmp_path / "q.yaml").write_text("prompt: Which?\ntype: choice\noptions: 3\n", encoding="utf-8")
    said = cli.quick("ask", "--file", str(tmp_path / "q.yaml"), code=2)
    assert "q.yaml, line 3: options" in said.err
    assert repo.refs("refs/hitl") == {}


@pytest.mark.parametrize(
    ("lines", "place", "words"),
    [
        ("prompt: Which?\noptoins: [A, B]\n", "line 2: optoins", "did you mean options?"),
        (
            "prompt: Which?\noptions:\n- label: A\n  descripton: x\n- B\n",
            "line 4: options[0].descripton",
            "description?",
        ),
        (
            "questions:\n- key: a\n  prompt: Which?\n  timeot: 2h\n",
            "line 4: questions[0].timeot",
            "no such field",
        ),
        ("questions:\n- key: a\n  prompt: Which?\ntype: text\n", "line 4: type", "no such field"),
        ("prompt: Which?\nattach:\n- a.md\n- ../b.md\n", "line 4: attach[1]", "below the top"),
        ("hitl: 2\nprompt: Which?\n", "line 1: hitl", "version 1"),
        ("prompt: Which?\ntype: choice\noptions: [A]\n", "line 3: options", "a choice of one option is none"),
        ("prompt: Which?\ndefualt: A\n", "line 2: defualt", "did you mean default?"),
    ],
)
def test_nothing_in_a_file_is_swallowed(
    cli: Command, repo: Clone, tmp_path: Path, lines: str, place: str, words: str
) -> None:
    """What nobody would read is refused with its line, and with what was probably meant."""
    (tmp_path / "q.yaml").write_text(lines, encoding="utf-8")
    said = cli.quick("ask", "--file", str(tmp_path / "q.yaml"), code=2).err
    assert f"q.yaml, {place}" in said
    assert words in said
    assert repo.refs("refs/hitl") == {}


def test_other_systems_fields_are_no_mistakes(cli: Command, repo: Clone, tmp_path: Path) -> None:
    """What their files say of themselves is passed over."""
    theirs = """{"id": "q-1", "agent_id": "a-1", "agent_name": "frontend", "timestamp": "2026-01-15T10:00:00Z", "type": "choice",
        "content": "Which?", "options": ["Fast", {"label": "Thorough", "description": "slow"}], "priority": "high",
        "timeout": 300, "answered": false, "working_dir": "/elsewhere", "status": "pending"}"""
    (tmp_path / "q.json").write_text(theirs, encoding="utf-8")
    gate = cli.quick("ask", "--file", str(tmp_path / "q.json"), "--json", code=0).json
    assert (gate["priority"], gate["asked"]["agent"]) == ("high", "frontend")


@pytest.mark.parametrize("place", [".", "sub dir"])
def test_the_file_that_asks_is_no_work(cli: Command, repo: Clone, place: str) -> None:
    """It is the question. What stands beside it is work; a file that git knows is, too."""
    folder = repo.path / place
    folder.mkdir(exist_ok=True)
    (folder / "q.yaml").write_text("prompt: Which?\n", encoding="utf-8")
    gate = cli.quick("ask", "--file", "q.yaml", "--json", cwd=folder, code=0).json
    assert (gate["work"]["dirty"], gate["work"]["files"]) == (False, 0)
    (folder / "notes").write_text("x", encoding="utf-8")
    said = cli.quick("ask", "--file", "q.yaml", cwd=folder, code=0).err
    assert "0 changed, 1 untracked" in said
    repo.git("add", "-A")
    assert "2 changed" in cli.quick("ask", "--file", "q.yaml", cwd=folder, code=0).err


def test_waiting_prints_only_the_answer(cli: Command, repo: Clone) -> None:
    """Its id is told on stderr before it blocks; the answer is delivered to whoever waits."""
    waiting = cli.start("ask", "Deploy?", "--type", "approval", "--wait")
    assert waiting.stderr is not None
    line = next(line for line in waiting.stderr if line.startswith("waiting for an answer to "))
    gate = line.removeprefix("waiting for an answer to ")[:10]
    assert f"git gate wait {gate}" in line
    assert "somebody waits for it" in cli.quick("respond", gate, "--approve", "--note", "go", code=0).err
    out, _ = waiting.communicate(timeout=PATIENCE)
    assert (waiting.returncode, out) == (0, "approved\ngo\n")
    assert cli.quick("show", gate, "--json").json["state"] == "resumed"


def waiting_one(cli: Command, clone: Clone) -> str:
    (gate,) = cli.quick("list", "--awaiting", "--json", cwd=clone.path, code=0).json["gates"]
    return str(gate["id"])


def test_nobody_is_said_to_wait_who_has_left(cli: Command, repo: Clone) -> None:
    """Whether the time ran out or the waiter was killed, and with a session to be resumed or without one."""
    for session in ((), ("--agent", "coder", "--session", "abcd-1")):
        cli.quick("ask", "Deploy?", "--type", "approval", "--wait-for", "0s", *session, code=8)
        gate = waiting_one(cli, repo)
        told = cli.quick("respond", gate, "--approve", code=0).err
        assert "waits for it any more" in told if not session else f"git gate resume {gate[:4]}" in told
        assert "somebody waits" not in told


def test_a_killed_waiter_does_not_wait(cli: Command, repo: Clone) -> None:
    """The system itself lets go of its mark."""
    waiting = cli.start("ask", "Deploy?", "--type", "approval", "--wait")
    assert waiting.stderr is not None
    line = next(line for line in waiting.stderr if line.startswith("waiting for an answer to "))
    gate = line.removeprefix("waiting for an answer to ")[:10]
    waiting.kill()
    waiting.communicate(timeout=PATIENCE)
    assert "nobody waits for it any more" in cli.quick("respond", gate, "--approve", code=0).err


def test_a_waiter_elsewhere_is_not_known(
    cli: Command, repo: Clone, clone_of: Callable[..., Clone], bare: Clone
) -> None:
    """Where the gate is shared it may be somebody in another clone: nothing is said that nobody here can know."""
    here = clone_of(bare, "here")
    cli.quick("ask", "Go?", "--type", "approval", "--wait-for", "0s", cwd=here.path, code=8)
    gate = waiting_one(cli, here)
    told = cli.quick("respond", gate, "--approve", cwd=here.path, code=0).err
    assert "whoever waits for it hears it" in told


def test_a_bounded_wait(cli: Command, repo: Clone) -> None:
    """Runs out with 8; the gate still waits."""
    said = cli.quick("ask", "Deploy?", "--type", "approval", "--wait-for", "0", code=8)
    assert said.out == ""
    assert "still waits" in said.err


def test_a_killed_waiter_has_said_how_to_come_back(
    pty_cli: Callable[..., Terminal], cli: Command, ask: Ask
) -> None:
    """Ctrl-C exits 130 and leaves the gate open."""
    gate = ask("Which?")
    terminal = pty_cli("wait", gate)
    terminal.expect(f"git gate wait {gate}")
    terminal.interrupt()
    assert cli.quick("check", gate, code=8).out == ""


@pytest.mark.parametrize(
    ("verb", "code", "words"),
    [
        (["stop", "--reason", "no longer"], 9, "was stopped by Ada Lovelace: no longer"),
        (["withdraw", "--reason", "found it"], 9, "was withdrawn by Ada Lovelace: found it"),
    ],
)
def test_closed_without_an_answer(cli: Command, ask: Ask, verb: list[str], code: int, words: str) -> None:
    """`check` and `wait` exit 9, print nothing, and say who ended it and why."""
    gate = ask("Which?")
    cli.quick(verb[0], gate, *verb[1:], code=0)
    for reading in ("check", "wait"):
        said = cli.quick(reading, gate, code=code)
        assert said.out == ""
        assert words in said.err
    assert words.rpartition(": ")[2] in cli.quick("respond", gate, "too late", code=5).err


def test_expired(cli: Command, ask: Ask) -> None:
    """A deadline that passed exits 124 with nothing on stdout."""
    gate = ask("Which?", "--timeout", "1s")
    said = cli.quick("wait", gate, "--for", "10s", code=124)
    assert (said.out, "nobody answered" in said.err) == ("", True)


@pytest.mark.parametrize(
    "verb", [["comment", "why?"], ["edit", "--priority", "high"], ["edit", "--timeout", "never"]]
)
def test_remarks_decide_nothing(cli: Command, ask: Ask, verb: list[str]) -> None:
    """It goes on waiting; where the remark went is told."""
    gate = ask("Which?")
    said = cli.quick(verb[0], gate, *verb[1:], code=0)
    assert f"gate {gate}: saved here" in said.err
    assert cli.quick("check", gate).code == 8


def test_a_signal(cli: Command, ask: Ask) -> None:
    """CONTINUE approves, STOP rejects, other words reach other questions as they are."""
    for status, code in (("continue", 0), ("STOP", 3)):
        gate = ask("Deploy?", "--type", "approval")
        assert cli.quick("signal", gate, "--status", "DONE", code=2).err
        cli.quick("signal", gate, "--status", status, "--message", "by hand", code=0)
        assert cli.quick("check", gate, code=code).out.splitlines()[1] == "by hand"
    gate = ask("And now?")
    cli.quick("signal", gate, "--status", "NEEDS_REVIEW", code=0)
    assert cli.quick("check", gate).line == "NEEDS_REVIEW"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--to", " "], "--to is empty"),
        (["--to", "@"], "--to needs somebody"),
        (["--key", ""], "--key is empty"),
        (["-o", "A", "-o", "a"], "is there twice"),
        (["-o", " =text"], "an option needs a label"),
        (["--options", "A,B", "--default", "C"], "the default does not fit the question"),
        (["--type", "choice"], "needs options"),
        (["--type", "form"], "needs a schema"),
        (["--type", "text", "-o", "A"], "has no options"),
        (["--timeout", "1h", "--on-timeout", "default"], "needs a default"),
        (["--options", "A,B", "--default", "A"], "no such time is set here"),
        (["--options", "A,B", "--default", "A", "--timeout", "2h"], "no such time is set here"),
        (["--no-other"], "--no-other is for questions with options"),
        (["--no-other", "--type", "approval"], "--no-other is for questions with options"),
        (["-o", "A"], "a choice of one option is none"),
        (["--confidence", "2"], "0<=x<=1"),
        (["--quorum", "0"], "1<=x<=100"),
        (["--priority", "asap"], "asap"),
        (["--include", "nope"], "nothing is at nope"),
        (["--attach", "/etc/passwd"], "leads out of it"),
        (["--attach", "/etc/no-such-file"], "expected a file; no such file or directory"),
        (["more", "words"], "several words need quotes"),
        (["--file", "q.yaml"], "cannot stand beside it"),
    ],
)
def test_a_question_that_cannot_be(cli: Command, repo: Clone, args: list[str], words: str) -> None:
    """Exits 2 and says what is wrong with it; nothing is written."""
    said = cli.quick("ask", "Which?", *args, code=2)
    assert words in said.err
    assert repo.refs("refs/hitl") == {}


@pytest.mark.parametrize("word", ["notify_again", "notify-again", "remind"])
def test_to_be_told_again_is_to_be_reminded(repo: Clone, cli: Command, word: str) -> None:
    """By flag and in a question file; a word that is neither is refused with those that are."""
    gate = cli.quick(
        "ask", "Which?", "--timeout", "2h", "--on-timeout", word, "--json", cwd=repo.path, code=0
    )
    assert gate.json["on_timeout"] == "remind"
    repo.write("q.yaml", f"prompt: Which?\ntimeout: 2h\non_timeout: {word}\n")
    asked = cli.quick("ask", "--file", "q.yaml", "--json", cwd=repo.path, code=0)
    assert asked.json["on_timeout"] == "remind"
    refused = cli.quick("ask", "Which?", "--timeout", "2h", "--on-timeout", "again", cwd=repo.path, code=2)
    assert "remind" in refused.err


def test_a_letter_is_a_flag_only_where_one_can_stand(repo: Clone, cli: Command) -> None:
    """Behind an option it is what that is given, and behind `--` it is a word."""
    gate = cli.quick("ask", "Which?", "-o", "-q", "-o", "Left", "-q", cwd=repo.path, code=0).out.strip()
    shown = cli.quick("show", gate, "--json", cwd=repo.path, code=0).json
    assert [option["label"] for option in shown["questions"][0]["options"]] == ["-q", "Left"]
    gate = cli.quick("ask", "-q", "--", "-q", cwd=repo.path, code=0).out.strip()
    assert cli.quick("show", gate, "--json", cwd=repo.path, code=0).json["title"] == "-q"
    assert "-x" in cli.quick("ask", "Which?", "-qx", cwd=repo.path, code=2).err


# What it starts


def test_what_a_question_and_an_answer_ask_of_git(
    bare: Clone, clone_of: Callable[..., Clone], cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the push and what opens the repository: one process each for what is read, written and moved. Where the branch and the
    gate stand on the remote is known, or surely nowhere; what is there then, git's push notes by itself.
    """
    ann = clone_of(bare, "ann")
    monkeypatch.chdir(ann.path)
    opening, writing = (
        ("config", "rev-parse"),
        ("cat-file", "update-ref", "push"),
    )
    begun: list[str] = []
    real = subprocess.Popen

    def started(words: list[str], *args: object, **how: object) -> object:
        begun.append(
            next(word for word in words[1:] if word in (*opening, *writing, "status") or word.isalpha())
        )
        return real(words, *args, **how)  # type: ignore[call-overload]

    with mock.patch.object(subprocess, "Popen", started):
        gate = cli.quick("ask", "Which?", code=0).out.strip()
        asked = [name for name in begun if name not in opening]
        begun.clear()
        cli.quick("respond", gate, "This one", "--no-resume", code=0)
        answered = [name for name in begun if name not in opening]
    assert sorted(asked) == sorted((*writing, "status"))
    assert sorted(answered) == sorted(writing)
    assert bare.refs("refs/hitl/open") == ann.refs("refs/hitl/open")
    known = {
        ref.replace("refs/gitgate/origin", "refs/hitl"): oid for ref, oid in ann.refs("refs/gitgate").items()
    }
    assert known == ann.refs("refs/hitl/open")
