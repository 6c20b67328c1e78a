"""The page on GitLab, line by line: a question, a reply on the merge request, and the agent goes on."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.forges.gitlab import GitLabForge
from support.testbed.command import COMMAND
from support.testbed.repositories import Clone

from .conftest import THREAD

PAGE = (Path(__file__).parents[3] / "docs" / "gitlab.md").read_text(encoding="utf-8")
GOES_ON = '#!/bin/sh\ngrep -q Redis "$1" || exit 9\necho Redis > store.txt\ngit add store.txt\ngit commit -q -m "Use Redis"\n'


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```$", PAGE, re.MULTILINE | re.DOTALL)
    return ["\n".join(line.removeprefix(lead) for line in text.splitlines()) for lead, text in found]


@pytest.mark.slow
def test_the_page_leads_from_a_question_to_its_work(
    forge: GitLabForge,
    bare: Clone,
    clone_of: Callable[..., Clone],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    person: object,
) -> None:
    """As it stands there; only where this GitLab is, and how the agent is started, is said beforehand."""
    for name in forge.env:
        monkeypatch.delenv(name)
    clone = clone_of(bare, "machine")
    clone.git("checkout", "-q", "-b", "login")
    clone.git("push", "-q", "-u", "origin", "login")
    forge.open_merge(THREAD, "login", clone.git("rev-parse", "HEAD"))
    program = tmp_path / "goes-on"
    program.write_text(GOES_ON)
    program.chmod(0o755)
    clone.git("config", "gitgate.forgeAt", forge.site)
    clone.git("config", "gitgate.agent.mine.resume", f"{program} {{answer_file}}")
    (Path(os.environ["HOME"]) / ".gitlab-token").write_text("bot-token\n")
    (setting_up, ask, look, listen, pipelines), (reply,) = blocks("sh"), blocks("text")
    assert "git gate serve" in listen
    assert "git gate init --gitlab" in pipelines  # which another test does

    def types(lines: str) -> str:
        """In one shell with what the page exports first, which is what a person has before them."""
        exported = [line for line in setting_up.splitlines() if line.startswith("export ")]
        script = "\n".join(["set -e", *exported, lines])
        path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=clone.path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{lines}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    for line in setting_up.splitlines():
        if "doctor" not in line:
            types(line)
    assert "the token may write to group/inner/project" in types("git gate doctor --online || true")
    gate = types(ask).split()[0]
    types(look)
    (question,) = forge.by("project_42_bot_1a2b")
    assert gate in question["body"]
    assert "Which session store?" in question["body"]
    assert forge.statuses[-1]["status"] == "pending"
    forge.write(THREAD, "ada", reply.strip())
    types(look)
    assert bare.git("log", "--format=%s", "-1", "login") == "Use Redis"
    said = [str(note["body"]) for note in forge.by("project_42_bot_1a2b")]
    assert any("the agent went on" in body and f"{forge.site}/-/commit/" in body for body in said)
