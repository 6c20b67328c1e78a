"""Agents: programs that ask, and that nothing here knows how to start: Gemini CLI, opencode, Copilot CLI, Qwen Code.

They are known by their marks, so that each asks under its own name and none of them answers. The machine may say how one is
started (`gitgate.agent.gemini.resume`), as with any program; an adapter that knows it by itself gets a file of its own.
"""

from __future__ import annotations

from .command import Command


class Marked(Command):
    """A program that is started as the machine's configuration says, if it does."""

    sessions: tuple[str, ...] = ()


class Gemini(Marked):
    name = "gemini"
    marks = ("GEMINI_CLI", "GEMINI_CLI_NO_RELAUNCH")
    sessions = ("GEMINI_SESSION_ID",)  # its hooks have it, its shell does not
    packages = ("@google/gemini-cli",)
    folders = (".gemini",)
    files = ("gemini.md",)
    # All of the person's configuration is switched off in its shell: their name, their key for ssh, their credentials.
    hides_from_git = (
        *("GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"),
        *("core.sshcommand=", "core.hookspath=", "credential.helper="),
    )


class OpenCode(Marked):
    name = "opencode"
    marks = ("OPENCODE", "AGENT=1")
    process_ids = ("OPENCODE_PID",)
    packages = ("opencode-ai",)
    folders = (".opencode",)
    files = ("opencode.json", "opencode.jsonc")


class Copilot(Marked):
    name = "copilot"
    marks = ("COPILOT_CLI",)
    sessions = ("COPILOT_AGENT_SESSION_ID",)
    packages = ("@github/copilot",)
    folders = (".github/hooks", ".github/instructions", ".github/agents")
    files = ("copilot-instructions.md",)


class Qwen(Marked):
    name = "qwen"
    marks = ("QWEN_CODE",)
    sessions = ("QWEN_CODE_SESSION_ID",)
    packages = ("@qwen-code/qwen-code",)
    folders = (".qwen",)
    files = ("qwen.md",)
