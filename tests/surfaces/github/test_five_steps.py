"""The five steps of docs/github.md, as they stand there: from nothing to a first answered question."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gitgate.setup.workflows import AGENT, ANSWERS, FOLDER
from support.forges.callers import Event, calls
from support.forges.jobs import TOP, Ran, run_workflow
from support.forges.standin import Forge
from support.testbed.repositories import Clone

from .conftest import THREAD

pytestmark = pytest.mark.slow  # some ten commands, and two jobs

OURS = "team/git-gate"
KNOWN = [["auth", "token"], ["secret", "set"], ["pr", "create"], ["workflow", "run"]]
# Notes how it was called, and does of it what a test can see; `pipx` copies the package with the clone's commit, as the build
# does, and notes where it installed from, as pip does.
PROGRAM = """#!{python}
import json, pathlib, shutil, subprocess, sys
name, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps([name, *words]) + "\\n")
if name == "pipx":
    place = pathlib.Path({site!r}, "git_gate-0.dist-info")
    place.mkdir(parents=True)
    (place / "METADATA").write_text("Metadata-Version: 2.1\\nName: git-gate\\nVersion: 0\\n")
    noted = {{"url": pathlib.Path.cwd().as_uri(), "dir_info": {{}}}}
    shutil.copytree({package!r}, place.parent / "gitgate", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree({shims!r}, place.parent / "gitgate/shims")
    commit = subprocess.run(["git", "rev-parse", "HEAD"], stdout=subprocess.PIPE, check=True).stdout
    (place.parent / "gitgate/texts/commit").write_bytes(commit)
    (place / "direct_url.json").write_text(json.dumps(noted))
if words[:2] == ["auth", "token"]:
    print("ada-token")
"""
CLAUDE = """#!/bin/sh
printf '%s\\n' "$@" > "{folder}/words"
git-gate ask "Which session store?" -o Memory -o Redis
"""


def steps() -> list[str]:
    """Each of the five, in order."""
    text = (TOP / "docs/github.md").read_text(encoding="utf-8")
    found = re.split(
        r"^\d\. ", text.partition("## Five steps\n")[2].partition("\n## ")[0], flags=re.MULTILINE
    )
    assert len(found) == 6
    return found[1:]


def blocks(step: str, language: str) -> list[str]:
    found = re.findall(rf"^   ```{language}\n(.*?)^   ```$", step, re.MULTILINE | re.DOTALL)
    return [re.sub("^   ", "", block, flags=re.MULTILINE) for block in found]


class OnDefaultBranch(dict[str, str]):
    """The workflows that GitHub knows: those of the default branch."""

    def __init__(self, bare: Clone) -> None:
        self.bare = bare

    def __contains__(self, name: object) -> bool:
        return bool(self.bare.git("ls-tree", "main", f"{FOLDER}/{name}"))

    def __getitem__(self, _: str) -> str:
        return "active"


@dataclass
class Reader:
    """Somebody with a clone, a terminal, and `gh` logged in."""

    forge: Forge
    bare: Clone
    clone: Clone
    clone_of: Callable[..., Clone]
    folder: Path
    jobs: int = 0

    def type(self, block: str, place: Path | None = None) -> str:
        """Run what they copy, line by line, in their clone or in another place: each has to do."""
        programs = f"{self.folder / 'programs'}:{os.environ['PATH']}"
        env = {**os.environ, "PATH": programs, "PYTHONPATH": str(self.folder / "site")}
        done = subprocess.run(
            ["bash", "-eu", "-o", "pipefail", "-c", block],
            cwd=place or self.clone.path,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.forge.secrets = [words[3] for words in self.typed("gh") if words[1:3] == ["secret", "set"]]
        return done.stdout + done.stderr

    def typed(self, name: str) -> list[list[str]]:
        log = self.folder / "log"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [words for words in lines if words[0] == name]

    def edit(self, name: str, line: str, times: int) -> None:
        """Set a line in place of the one that has its name."""
        place = self.clone.path / FOLDER / name
        before = re.escape(line.partition(":")[0])
        text, count = re.subn(rf"^{before}: .*\n", line, place.read_text(), flags=re.MULTILINE)
        assert count == times
        place.write_text(text)

    def happens(self, name: str, event: Event) -> list[Ran]:
        """On GitHub: the workflow as the default branch has it."""
        place, payload = self.folder / name, self.folder / "event.json"
        place.write_text(self.bare.git("show", f"main:{FOLDER}/{name}") + "\n")
        payload.write_text(json.dumps(event.payload))
        path = f"{self.folder / 'agents'}:{os.environ['PATH']}"
        given = {
            "CI": "true",
            "RUNNER_TEMP": str(self.folder),
            "GITHUB_EVENT_PATH": str(payload),
            "PATH": path,
        }
        env = {**self.forge.env, **given}
        del env["GITHUB_TOKEN"]
        secrets = {"ANTHROPIC_API_KEY": "the agent's", "SESSION_KEY": ""}
        return [
            one
            for call in calls(place, event, secrets)
            for one in run_workflow(call.workflow, call.known, self.checkout, env)
        ]

    def checkout(self, ref: str) -> Path:
        self.jobs += 1
        return self.clone_of(self.bare, f"job{self.jobs}", "-b", ref or "main").path


def put(place: Path, text: str) -> None:
    place.parent.mkdir(exist_ok=True)
    place.write_text(text)
    place.chmod(0o755)


@pytest.fixture
def reader(
    forge: Forge, bare: Clone, clone_of: Callable[..., Clone], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Reader:
    """Their remote is github.com, which only ssh reaches, and ssh leads to the bare repository; its API is the stand-in."""
    for name in forge.env:
        monkeypatch.delenv(name)
    named = {
        "log": str(tmp_path / "log"),
        "site": str(tmp_path / "site"),
        "package": str(TOP / "gitgate"),
        "shims": str(TOP / "hooks"),
    }
    for name in ("gh", "pipx"):
        put(tmp_path / "programs" / name, PROGRAM.format(python=sys.executable, **named))
    put(tmp_path / "agents/claude", CLAUDE.format(folder=tmp_path))
    ssh = tmp_path / "programs/ssh"
    put(
        ssh,
        f'#!/bin/sh\nfor last; do :; done\nlast="${{last%% *}}"\nexec git "${{last#git-}}" "{bare.path}"\n',
    )
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))
    monkeypatch.setenv("GIT_SSH_VARIANT", "simple")
    forge.workflows = OnDefaultBranch(bare)
    clone = clone_of(bare, "project")
    clone.git("remote", "set-url", "origin", "git@github.com:team/project.git")
    clone.git("config", "--global", "gitgate.forgeApi", forge.api)
    return Reader(forge, bare, clone, clone_of, tmp_path)


def well(done: list[Ran]) -> list[str]:
    assert [step for one in done for step in one.steps if step.code] == []
    return [one.job for one in done]


def test_nothing_is_to_be_filled_in() -> None:
    """The steps are copied as they are: no address stands in them, and no word in capitals."""
    text = "".join(block for step in steps() for block in blocks(step, "sh"))
    assert re.findall(r"<\w|\b[A-Z]{4,}(?:/[A-Z]+)?\b", text.replace("ANTHROPIC_API_KEY", "")) == []
    assert "github.com" not in text
    assert [len(blocks(step, "sh")) for step in steps()] == [1, 1, 1, 1, 1]
    assert [len(blocks(step, "yaml")) for step in steps()] == [0, 0, 1, 0, 0]


def test_five_steps_lead_to_an_answered_question(reader: Reader) -> None:
    install, write, name_agent, publish, ask = steps()
    ours = reader.clone_of(reader.bare, "ours")
    ours.git("remote", "set-url", "origin", f"git@github.com:{OURS}.git")
    commit = ours.git("rev-parse", "HEAD")
    reader.type(blocks(install, "sh")[0], ours.path)
    assert reader.typed("pipx") == [["pipx", "install", ".[all]"]]

    reader.type(blocks(write, "sh")[0])
    written = (reader.clone.path / FOLDER / ANSWERS).read_text()
    assert f"uses: {OURS}/.github/workflows/answer.yml@{commit}" in written
    assert f'      source: {OURS}\n      source-commit: "{commit}"\n' in written

    (line,) = blocks(name_agent, "yaml")
    reader.edit(ANSWERS, line, 2)
    reader.edit(AGENT, line, 1)
    reader.type(blocks(name_agent, "sh")[0])

    said = reader.type(blocks(publish, "sh")[0])
    for found in (
        f"workflow {ANSWERS}",
        f"workflow {AGENT}",
        f"runs {ANSWERS}",
        "secret ANTHROPIC_API_KEY",
        "rights",
    ):
        assert re.search(rf"^ok  (?:github )?{re.escape(found)}: ", said, re.MULTILINE)

    reader.type(blocks(ask, "sh")[0])
    opened, started = reader.typed("gh")[-2:]
    assert all(words[1:3] in KNOWN for words in reader.typed("gh"))
    assert opened == ["gh", "pr", "create", "--fill"]
    assert started[:4] == ["gh", "workflow", "run", AGENT]
    reader.forge.open_pull(THREAD, "login", reader.bare.git("rev-parse", "login"))
    inputs = dict(
        word.split("=", 1) for flag, word in zip(started[4::2], started[5::2], strict=True) if flag == "-f"
    )
    assert well(reader.happens(AGENT, Event("workflow_dispatch", "", {"inputs": inputs}))) == [
        "agent",
        "deliver",
    ]
    assert (reader.folder / "words").read_text().splitlines()[-1].startswith("Add a login page; ask me")
    (shown,) = reader.forge.by("github-actions[bot]")
    assert "Which session store?" in shown["body"]

    (reply,) = blocks(ask, "text")
    comment = reader.forge.write(THREAD, "ada", reply.strip())
    event = {
        name: value for name, value in reader.forge.event(comment).items() if name in ("comment", "issue")
    }
    assert well(reader.happens(ANSWERS, Event("issue_comment", "created", event)))[0] == "answer"
    (shown,) = reader.forge.by("github-actions[bot]")
    assert "Redis" in shown["body"]
    assert "Answered" in shown["body"]
    assert {(word, login) for number, word, login in reader.forge.reactions if number == comment["id"]} == {
        ("eyes", "github-actions[bot]"),
        ("+1", "github-actions[bot]"),
    }
