"""Any program: told by file, stdin and environment, and no text of anybody ever becomes a command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.agents import AGENTS, detect, scrubbed
from gitgate.agents.agent import AgentOutcome, AgentResult, AgentSettings, Finished, ProcessEnding, Start
from gitgate.agents.command import substitute
from gitgate.agents.process import run_launch
from gitgate.errors import Usage
from gitgate.model.gate import SessionRef

COMMAND = AGENTS["command"]
HOSTILE = "yes'; touch owned; $(touch owned) `touch owned` \"\n&& touch owned #"
VALUES = {
    "id": "7k2fw3x9ab",
    "session": "s-1",
    "cwd": "/a b/$(touch owned)",
    "prompt": HOSTILE,
    "verdict": "answered",
}


def outcome(
    tmp_path: Path,
    template: tuple[str, ...],
    answer: str = HOSTILE,
    session: str = "s-12345",
    **settings: Any,
) -> AgentOutcome:
    start = Start(
        gate="7k2fw3x9ab",
        cwd=tmp_path,
        folder=tmp_path / "folder",
        prompt=f"You asked. {answer}",
        session=SessionRef("command", session) if session else None,
        answer=json.dumps({"values": {"q": answer}}).encode(),
        told={"verdict": "answered", "answer": answer, "note": "a note", "by": "Ada"},
        settings=AgentSettings(resume_template=template, **settings),
        env=scrubbed({"PATH": "/usr/bin:/bin", "GIT_DIR": "x"}),
    )
    return COMMAND.read_outcome(run_launch(COMMAND.start(start)))


def test_the_answer_comes_as_a_file_on_stdin_and_in_the_environment(tmp_path: Path) -> None:
    """All three say the same, byte for byte, whatever it holds."""
    script = 'cat; echo; cat "$1"; echo; printf %s "$GITGATE_ANSWER|$GITGATE_NOTE|$GITGATE_BY|$GITGATE_ID|$GITGATE_SESSION|$GIT_DIR"'
    done = outcome(tmp_path, ("sh", "-c", script, "sh", "{answer_file}"))
    first, second, third = done.text.split("\n", 2)
    assert done.result is AgentResult.DONE
    assert json.loads(first) == json.loads(second) == {"values": {"q": HOSTILE}}
    assert third == f"{HOSTILE}|a note|Ada|7k2fw3x9ab|s-12345|"
    assert not list(tmp_path.rglob("owned"))


def test_the_prompt_may_be_an_argument_of_its_own(tmp_path: Path) -> None:
    """It arrives whole and is never looked at by a shell."""
    done = outcome(tmp_path, ("printf", "%s", "{prompt}"), stdin="none")
    assert done.text == f"You asked. {HOSTILE}"
    assert not list(tmp_path.rglob("owned"))


def test_the_prompt_may_come_on_stdin(tmp_path: Path) -> None:
    assert outcome(tmp_path, ("cat",), stdin="prompt").text == f"You asked. {HOSTILE}"


@pytest.mark.parametrize(
    "template",
    [
        ("sh", "-c", "{prompt}"), ("bash", "-lc", "{prompt}"), ("python3", "-c", "{prompt}"), ("node", "-e", "{prompt}"),
        ("sh", "-c", "agent '{prompt}'"), ("agent", "--say={prompt}"), ("ssh", "host", "agent", "{prompt}"),
        ("/usr/bin/ssh", "host", "--", "{prompt}"), ("sh", "-c", "cd {cwd}"), ("agent", "--dir={cwd}"), ("cmd", "/c", "{prompt}"),
        ("agent", "{password}"), ("su", "-c", "{prompt}", "ada"),
    ],
)  # fmt: skip
def test_no_text_is_put_where_it_could_be_run(template: tuple[str, ...]) -> None:
    """Not as a script, not inside an argument, not where a program makes one line of its arguments."""
    with pytest.raises(Usage):
        substitute(template, VALUES)


@pytest.mark.parametrize("text", ["--flag", "a\0b", "x" * 200_000])
def test_a_text_that_is_no_argument_is_refused(text: str) -> None:
    with pytest.raises(Usage):
        substitute(("agent", "{prompt}"), {"prompt": text})


def test_harmless_values_may_stand_inside_an_argument() -> None:
    template = ("sh", "-c", "agent --gate={id} --resume {session}", "{cwd}", "{verdict}", "{}", "{ x }")
    assert substitute(template, VALUES) == [
        *(
            "sh",
            "-c",
            "agent --gate=7k2fw3x9ab --resume s-1",
            "/a b/$(touch owned)",
            "answered",
            "{}",
            "{ x }",
        )
    ]


@given(st.text(), st.sampled_from(["{prompt}", "{cwd}", "--x={cwd}", "{session}:{verdict}"]))
def test_an_argument_stays_one_argument(text: str, argument: str) -> None:
    """What was put in is exactly what is there, or it is refused."""
    values = dict.fromkeys(VALUES, text)
    try:
        out = substitute(("agent", argument), values)
    except Usage:
        return
    assert len(out) == 2
    assert out[1] in (text, f"--x={text}", f"{text}:{text}")


def test_the_same_variables_name_its_session() -> None:
    assert detect({"GITGATE_SESSION": "s-12345", "PWD": "/here"}) == SessionRef("command", "s-12345", "/here")


def test_nothing_is_started_without_a_command(tmp_path: Path) -> None:
    """The error says what to set."""
    with pytest.raises(Usage) as error:
        outcome(tmp_path, ())
    assert "git config" in error.value.hint


def test_an_answer_too_long_for_the_environment_is_in_the_file(tmp_path: Path) -> None:
    done = outcome(
        tmp_path, ("sh", "-c", 'echo "${GITGATE_ANSWER-none}"; wc -c < "$GITGATE_ANSWER_FILE"'), "x" * 300_000
    )
    assert done.text.split() == ["none", str(300_000 + len('{"values": {"q": ""}}'))]


@pytest.mark.parametrize(
    ("ending", "code", "result", "retry"),
    [
        (ProcessEnding.EXITED, 0, AgentResult.DONE, False),
        (ProcessEnding.EXITED, 8, AgentResult.ASKED, False),
        (ProcessEnding.EXITED, 1, AgentResult.FAILED, False),
        (ProcessEnding.EXITED, 137, AgentResult.FAILED, True),
        (ProcessEnding.TIMED_OUT, 143, AgentResult.FAILED, True),
    ],
)
def test_how_its_ending_is_read(
    ending: ProcessEnding, code: int, result: AgentResult, retry: bool, tmp_path: Path
) -> None:
    """8 says that it has asked again, as everywhere."""
    read = COMMAND.read_outcome(Finished(ending, code, b"said\n", b"why\n", tmp_path))
    assert (read.result, read.retry, read.text) == (result, retry, "said")
