"""Agents: any program. How it is started comes from the machine's settings, as lists of arguments, never as a line for a
shell; the answer reaches it as a file, on stdin and in the environment.

In the lists, `{id}`, `{session}`, `{verdict}`, `{cwd}`, `{answer_file}` and `{prompt_file}` stand for what they say, and
`{prompt}` for the whole text that is told. A text that somebody wrote is only ever an argument of its own; the others may
stand inside one, where each must be made of harmless characters, since the argument may be a script.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ..document import replace
from ..errors import Usage
from .agent import (
    Agent,
    AgentOutcome,
    AgentResult,
    Finished,
    Launch,
    ProcessEnding,
    Start,
    killed,
    reason_of_end,
    told_in_prompt,
)

ANSWER_FILE, PROMPT_FILE = "answer.json", "prompt.md"
PLACEHOLDER = r"\{([a-z_]+)\}"
HARMLESS = r"[A-Za-z0-9_@%+=:,./-]*"
# What follows one of these is a program's text, not an argument of it.
SCRIPT_FLAG = r"-[A-Za-z]*[cCeE]|--?(?:command|eval|exec|print|run)|/[cCkK]"
# These make one line for a shell of their arguments, here or on another machine.
REJOINS = frozenset(("ssh", "mosh", "su", "eval", "watch", "parallel", "tmux", "screen"))
ARGUMENT_MOST = 100_000
# Verbs of git gate that are for people. It refuses them to an agent; where a program can be told, it refuses them as well.
FOR_PEOPLE = ("respond", "signal", "stop", "join", "fork")
WAITING = 8  # the exit code by which `git gate wrap` and its like say that a question waits


# What a program is told in its environment; one that is started from it must not take it for its own.
TOLD = tuple(
    f"GITGATE_{name}" for name in "ID SESSION VERDICT ANSWER NOTE BY ANSWER_FILE PROMPT_FILE OUTCOME".split()
)


class Command(Agent):
    name = "command"
    marks: tuple[str, ...] = (
        "GITGATE_AGENT",
        "AI_AGENT",
    )  # what we start is told so; some programs say it of themselves
    sessions: tuple[str, ...] = ("GITGATE_SESSION",)

    def leaves(self, variable: str) -> bool:
        return variable in TOLD or super().leaves(variable)

    def start(self, request: Start) -> Launch:
        settings = request.settings
        template = settings.resume_template if request.session else settings.start_template
        template = template or settings.start_template
        if not template:
            raise Usage(
                "no command is set that starts this agent again",
                hint="git config gitgate.agent.command.resume 'PROGRAM --session {session} {prompt_file}'",
            )
        files = {ANSWER_FILE: request.answer, PROMPT_FILE: request.prompt.encode("utf-8", "replace")}
        stdin = {"answer": request.answer, "prompt": files[PROMPT_FILE], "none": b""}[settings.stdin]
        argv = (*substitute(template, placeholders(request)), *settings.arguments)
        env = {**request.env, **answer_env(request), **request.extra_env}
        return Launch(argv, request.cwd, env, request.folder, stdin, files, settings.timeout)

    def join(self, request: Start) -> Launch:
        template = request.settings.join_template
        request = replace(request, prompt=told_in_prompt(request))
        if template:
            files = {PROMPT_FILE: request.prompt.encode("utf-8", "replace")}
            argv = (*substitute(template, placeholders(request)), *request.settings.arguments)
            env = {**request.env, **answer_env(request), **request.extra_env}
            return Launch(argv, request.cwd, env, request.folder, files=files)
        raise Usage(
            f"how to open a session of this program is not known ({request.gate})",
            hint=f"open it yourself in git gate worktree {request.gate}, or answer: git gate respond {request.gate}",
        )

    def read_outcome(self, finished: Finished) -> AgentOutcome:
        text = finished.out.decode("utf-8", "replace").strip()
        if finished.ending is ProcessEnding.EXITED and finished.code in (0, WAITING):
            return AgentOutcome(AgentResult.ASKED if finished.code else AgentResult.DONE, text=text)
        return AgentOutcome(
            AgentResult.FAILED, text=text, reason=reason_of_end(finished), retry=killed(finished)
        )


def placeholders(request: Start) -> dict[str, str]:
    return {
        "id": request.gate,
        "session": request.session.id if request.session else request.meeting.id,
        "verdict": request.told.get("verdict", ""),
        "cwd": str(request.cwd),
        "answer_file": str(request.folder / ANSWER_FILE),
        "prompt_file": str(request.folder / PROMPT_FILE),
        "prompt": request.prompt,
    }


def substitute(template: tuple[str, ...], values: Mapping[str, str]) -> list[str]:
    """The template's arguments with its placeholders filled in."""
    return [_argument(argument, values, template[:index]) for index, argument in enumerate(template)]


def _argument(argument: str, values: Mapping[str, str], before: tuple[str, ...]) -> str:
    names = re.findall(PLACEHOLDER, argument)
    if unknown := [name for name in names if name not in values]:
        raise Usage(
            f"{argument!r}: {{{unknown[0]}}} is not known",
            hint=f"known are {', '.join(map('{{{}}}'.format, values))}",
        )
    if not names:
        return argument
    is_script = any(re.fullmatch(SCRIPT_FLAG, each) for each in before[-1:]) or any(
        Path(each).name in REJOINS for each in before
    )
    if argument == f"{{{names[0]}}}" and not is_script:
        return _whole(values[names[0]], names[0])
    for name in names:
        if name == "prompt" or not re.fullmatch(HARMLESS, values[name]):
            raise Usage(
                f"{argument!r}: what {{{name}}} stands for may not stand inside an argument or a script",
                hint="give it as an argument of its own, or read it from {prompt_file}, {answer_file} or the environment",
            )
    return re.sub(PLACEHOLDER, lambda found: values[found[1]], argument)


def _whole(value: str, name: str) -> str:
    if "\0" in value or len(value.encode("utf-8", "replace")) > ARGUMENT_MOST:
        raise Usage(f"{{{name}}} does not fit into an argument", hint="use {prompt_file} or stdin")
    if value.startswith("-"):
        raise Usage(
            f"{{{name}}} begins with a dash and would be taken for a flag", hint="use {prompt_file} or stdin"
        )
    return value


def answer_env(request: Start) -> dict[str, str]:
    """The environment's share: short texts, without what no environment can hold."""
    texts = {
        "ID": request.gate,
        "SESSION": request.session.id if request.session else request.meeting.id,
        **{name.upper(): request.told.get(name, "") for name in ("verdict", "answer", "note", "by")},
        "ANSWER_FILE": str(request.folder / ANSWER_FILE),
        "PROMPT_FILE": str(request.folder / PROMPT_FILE),
    }
    short = {name: text.replace("\0", "") for name, text in texts.items()}
    return {
        f"GITGATE_{name}": text
        for name, text in short.items()
        if len(text.encode("utf-8", "replace")) <= ARGUMENT_MOST
    }


class KnownProgram(Command):
    """A program of which we know how it is started, unless the machine's configuration says otherwise."""

    sessions: tuple[str, ...] = ()
    starts = True
    templated = True

    def launch(self, request: Start) -> Launch:
        """Return the launch that starts or resumes the program headless."""
        raise NotImplementedError

    def open(self, request: Start) -> Launch:
        """Return the launch by which a person opens its conversation at a terminal."""
        raise NotImplementedError

    def outcome(self, finished: Finished) -> AgentOutcome:
        """Return the outcome that the program's own output states."""
        raise NotImplementedError

    def start(self, request: Start) -> Launch:
        told = request.settings.resume_template or request.settings.start_template
        return super().start(request) if told else self.launch(request)

    def join(self, request: Start) -> Launch:
        return super().join(request) if request.settings.join_template else self.open(request)

    def read_outcome(self, finished: Finished) -> AgentOutcome:
        """A program that was started as the machine says need not speak as this one does."""
        told = (finished.folder / ANSWER_FILE).exists()
        return super().read_outcome(finished) if told else self.outcome(finished)


class Qwen(Command):
    """Started as the machine's configuration says, if it does."""

    name = "qwen"
    marks = ("QWEN_CODE",)
    sessions = ("QWEN_CODE_SESSION_ID",)
    packages = ("@qwen-code/qwen-code",)
    folders = (".qwen",)
    files = ("qwen.md",)
