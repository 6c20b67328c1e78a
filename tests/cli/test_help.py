"""The command line explains itself, and shells complete what is typed."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.cli import MEANINGS
from gitgate.cli.help import TOPICS
from gitgate.cli.main import VERBS
from gitgate.questions.drafts import OF_GATE, OF_QUESTION
from support.testbed.command import COMMAND, Command
from support.testbed.repositories import Clone

Ask = Callable[..., str]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(cli: Command, verb: str) -> None:
    """`help VERB`, `VERB -h` and `VERB --help` are the same page."""
    page = cli.quick("help", verb, code=0).out
    assert page.startswith(f"Usage: git gate {verb}")
    assert cli.quick(verb, "-h", code=0).out == page
    assert cli.quick(verb, "--help", code=0).out == page


@pytest.mark.parametrize("topic", TOPICS)
def test_topics(cli: Command, topic: str) -> None:
    """What concerns several verbs has a page of its own; every command in it exists."""
    page = cli.quick("help", topic, code=0).out
    named = {line.split("git gate ")[1].split()[0] for line in page.splitlines() if "git gate " in line}
    assert {word.strip("`.;:,") for word in named} <= set(VERBS)


def test_exit_codes_are_the_table(cli: Command) -> None:
    """Each with its meaning."""
    page = cli.quick("help", "exit-codes", code=0).out
    assert all(f"{row.code:>3}  {row.words}" in page for row in MEANINGS)


@pytest.mark.parametrize("verb", ["policy", "session", "github"])
def test_a_verb_of_verbs_by_itself(cli: Command, verb: str) -> None:
    """It says what there is, as git does; a flag before the verb within it counts for that one."""
    alone = cli.quick(verb, code=0)
    assert (alone.out, alone.err) == (cli.quick(verb, "-h", code=0).out, "")
    said = cli.quick(verb, "--json", code=0).json
    assert (said["schema"], said["topic"], said["text"]) == ("gitgate.help/v1", verb, alone.out.rstrip("\n"))
    assert cli.quick(verb, "nothing", code=2).out == ""


def test_a_flag_in_the_middle(cli: Command, repo: Clone) -> None:
    """Wherever it stands it is heard."""
    for words in (
        ("--json", "policy", "check"),
        ("policy", "--json", "check"),
        ("policy", "check", "--json"),
    ):
        assert cli.quick(*words, code=0).json["schema"] == "gitgate.policy/v1"


def test_help_alone(cli: Command) -> None:
    """Lists the verbs and the topics; a near miss is named."""
    page = cli.quick("help", code=0).out
    assert all(f"  {verb} " in page for verb in VERBS)
    assert "deadlines" in page
    assert "did you mean deadlines?" in cli.quick("help", "deadline", code=2).err
    assert "did you mean `git gate list`?" in cli.quick("lst", code=2).err


def test_the_question_files_of_the_help_ask(cli: Command, repo: Clone) -> None:
    """Both, as they stand there; what the second half says that there is, there is."""
    page = cli.quick("help", "question-file", code=0).out
    flat, several, about = (
        "\n".join(part.splitlines()) for part in re.findall(r"(?:^  .*\n?)+", page, flags=re.MULTILINE)
    )
    one = cli.quick("ask", "--file", "-", "--json", input=flat, code=0).json
    assert (one["questions"][0]["default"], one["on_timeout"], one["confidence"]) == (
        "SQLite",
        "default",
        0.6,
    )
    two = cli.quick("ask", "--file", "-", "--json", input=several, code=0).json
    assert [question["key"] for question in two["questions"]] == ["db", "go"]
    assert {*OF_GATE, *OF_QUESTION} - {"config", "agent_name", "session_config", "sessionConfig"} <= {
        *re.findall(r"\w+", about)
    }


def complete(line: str, cwd: Path) -> list[str]:
    """What bash is offered for the last word of `line`."""
    words = line.split(" ")
    env = {
        **os.environ,
        "_GIT_GATE_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    said = subprocess.run([str(COMMAND)], env=env, cwd=cwd, capture_output=True, text=True, check=True).stdout
    return [word.partition(",")[2] for word in said.splitlines() if word]


@pytest.mark.slow
def test_words_are_completed(repo: Clone, ask: Ask) -> None:
    """Verbs, options, values, topics and the ids of gates, those that wait first."""
    gate = ask("Which?")
    assert complete("git-gate wi", repo.path) == ["withdraw"]
    assert "--priority" in complete("git-gate ask --pri", repo.path)
    assert complete("git-gate ask --priority u", repo.path) == ["urgent"]
    assert complete("git-gate help dead", repo.path) == ["deadlines"]
    assert complete("git-gate policy tr", repo.path) == ["try"]
    assert complete("git-gate policy try --tool Noteb", repo.path) == ["NotebookEdit", "NotebookRead"]
    for verb in ("show", "respond", "check", "comment", "log"):
        assert complete(f"git-gate {verb} {gate[:3]}", repo.path) == [gate]


def test_completion_outside_a_repository_is_silent(tmp_path: Path) -> None:
    """No words, no complaint."""
    assert complete("git-gate show a", tmp_path) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts(cli: Command, shell: str) -> None:
    """`completion SHELL` prints what `_GIT_GATE_COMPLETE=SHELL_source` does, with what `git gate` needs besides."""
    script = cli.quick("completion", shell, code=0).out
    assert cli.quick(env={"_GIT_GATE_COMPLETE": f"{shell}_source"}, code=0).out == script
    assert "git-gate" in script
    assert cli.quick("completion", env={"SHELL": f"/bin/{shell}"}, code=0).out == script


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("git-gate withd", "withdraw"),
        ("git gate withd", "withdraw"),
        ("git -C . gate withd", "withdraw"),
        ("git gate show ID", "ID"),
    ],
)
@pytest.mark.needs("bash")
def test_in_bash(repo: Clone, ask: Ask, line: str, offered: str) -> None:
    """The script works in a real shell, for `git-gate` and as git's own completion calls it."""
    gate = ask("Which?")
    line = line.replace("ID", gate[:4])
    function = "_git_gate" if line.startswith("git ") else "_git_gate_completion"
    words = line.split(" ")
    array = " ".join(f"'{word}'" for word in words)
    program = f"""
        eval "$(git-gate completion bash)"
        COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; COMPREPLY=()
        {function} git-gate
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    said = subprocess.run(["bash", "-c", program], cwd=repo.path, capture_output=True, text=True, check=True)
    assert said.stdout.split() == [offered.replace("ID", gate)]
    assert said.stderr == ""


def test_an_unknown_instruction(cli: Command) -> None:
    """A variable that means nothing is named."""
    assert (
        "_GIT_GATE_COMPLETE=tcsh_source" in cli.quick(env={"_GIT_GATE_COMPLETE": "tcsh_source"}, code=2).err
    )
