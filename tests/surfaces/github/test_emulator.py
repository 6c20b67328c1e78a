"""The loop against an emulator of GitHub's API that others made and keep: the npm package `emulate`, by vercel-labs.

It knows neither statuses nor reactions nor GraphQL: what is tried is comments, people's permissions and check runs, and that
the loop goes on where a part of the API is missing.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from support import PATIENCE
from support.testbed.command import Command
from support.testbed.repositories import Clone

pytestmark = [pytest.mark.slow, pytest.mark.octokit]

FOLDER = os.environ.get("GITGATE_TEST_OCTOKIT", "")  # read before a test's seal takes it away
NOT_SET = "GITGATE_TEST_OCTOKIT names no folder beside which `emulate` is: see octokit_tests in .ci/run"
REPOSITORY = "team/project"
SEED = {
    "tokens": {
        f"{login}-token": {"login": login, "scopes": ["repo", "user"]} for login in ("team", "ada", "eve")
    },
    "github": {
        "users": [{"login": login, "name": login.title()} for login in ("team", "ada", "eve")],
        "repos": [{"owner": "team", "name": "project", "auto_init": True}],
    },
}


@dataclass
class Emulated:
    """A repository there, with Ada who may write and Eve who may only read."""

    port: int

    def call(self, method: str, path: str, body: object = None, login: str = "team") -> Any:
        headers = {"authorization": f"Bearer {login}-token"}
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)) as there:
            there.request(method, path, json.dumps(body) if body is not None else None, headers)
            reply = there.getresponse()
            said = reply.read().decode()
        assert reply.status < 400, f"{method} {path}: {said}"
        return json.loads(said)

    def listens(self) -> bool:
        try:
            return bool(self.call("GET", "/meta"))
        except OSError:
            return False

    @property
    def project(self) -> str:
        return f"/repos/{REPOSITORY}"

    def open_pull(self, branch: str) -> int:
        """A pull request of a branch with one commit of its own."""
        main = self.call("GET", f"{self.project}/git/ref/heads/main")["object"]["sha"]
        self.call("POST", f"{self.project}/git/refs", {"ref": f"refs/heads/{branch}", "sha": main})
        content = {"message": "Work", "content": "d29yawo=", "branch": branch}
        self.call("PUT", f"{self.project}/contents/work.txt", content)
        pull = {"title": "Work", "head": branch, "base": "main"}
        return int(self.call("POST", f"{self.project}/pulls", pull)["number"])

    def write(self, thread: int, login: str, words: str) -> None:
        self.call("POST", f"{self.project}/issues/{thread}/comments", {"body": words}, login)

    def sweep(self, cli: Command, job: Clone) -> Any:
        """By a job in a fresh clone."""
        cli("github", "prepare", cwd=job.path, env={"CI": "true"}, code=0)
        return cli("github", "sweep", "--json", cwd=job.path, env={"CI": "true"}).json

    def comments(self, thread: int) -> list[dict[str, Any]]:
        return list(self.call("GET", f"{self.project}/issues/{thread}/comments"))


def wait_for(listens: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE
    while not listens():
        assert process.poll() is None, process.communicate()[0].decode()
        assert time.monotonic() < until, "the emulator did not begin to listen"
        time.sleep(0.05)


@pytest.fixture
def emulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulated]:
    program = Path(FOLDER).parent / "emulate" / "dist" / "index.js"
    assert FOLDER, NOT_SET
    assert program.is_file(), NOT_SET
    seed = tmp_path / "seed.json"
    seed.write_text(json.dumps(SEED), encoding="utf-8")
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    words = ["node", str(program), "start", "--service", "github", "--seed", str(seed), "--port", str(port)]
    api = f"http://127.0.0.1:{port}"
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            found = Emulated(port)
            wait_for(found.listens, process)
            found.call("PUT", f"{found.project}/collaborators/ada", {"permission": "admin"})
            env = {"GITHUB_API_URL": api, "GITHUB_SERVER_URL": api, "GITHUB_REPOSITORY": REPOSITORY}
            for name, value in {**env, "GITHUB_TOKEN": "team-token"}.items():
                monkeypatch.setenv(name, value)
            yield found
        finally:
            process.terminate()


def asked(cli: Command, agents: Clone) -> str:
    """An agent asks on the pull request's branch, and publishes that."""
    agents.git("checkout", "-q", "-b", "feature")
    agents.git("push", "-q", "origin", "feature")
    for key in ("initialised", "publishWork"):
        agents.git("config", f"gitgate.{key}", "true")
    options = ("-o", "Postgres", "-o", "SQLite")
    return cli("ask", "Which database?", *options, "--agent", "scripted", "-q", cwd=agents.path, code=0).line


def test_a_question_is_shown_there_and_a_reply_answers_it(
    emulated: Emulated, bare: Clone, clone_of: Callable[..., Clone], cli: Command
) -> None:
    """Eve, who may not write, answers nothing; Ada's reply is the answer, and is found by a sweep that hears of no event."""
    thread = emulated.open_pull("feature")
    agents = clone_of(bare, "agents")
    gate = asked(cli, agents)
    cli("github", "comment", gate, cwd=agents.path, code=0)
    (shown,) = emulated.comments(thread)
    assert f"gate={gate} " in shown["body"]
    for login, words in (("eve", "/choose 2"), ("ada", "/choose 1")):
        emulated.write(thread, login, words)
    said = emulated.sweep(cli, clone_of(bare, "job"))
    assert [one["outcome"] for one in said["accepted"]] == ["refused", "answered"]
    question, *_, told = emulated.comments(thread)
    assert question["id"] == shown["id"]
    assert "\n> Postgres" in question["body"]
    assert "[`eve`]" in told["body"]
    answer = cli("show", gate, "--json", cwd=clone_of(bare, "person").path, code=0).json["answer"]
    assert (answer["values"], answer["via"]) == ({"answer": "Postgres"}, "github")
    assert answer["evidence"]["login"] == "ada"
    again = emulated.sweep(cli, clone_of(bare, "later"))
    assert again["accepted"] == []
    assert len(emulated.comments(thread)) == 4
    assert [one for one in said["trouble"] + again["trouble"] if not one.endswith("/status: Not Found")] == []


def test_where_nobody_may_write_the_comment_nothing_is_lost(
    emulated: Emulated,
    bare: Clone,
    clone_of: Callable[..., Clone],
    cli: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A repository that the token does not see: the question waits all the same, and is shown by the next sweep that may."""
    thread = emulated.open_pull("feature")
    gate = asked(cli, clone_of(bare, "agents"))
    with monkeypatch.context() as unknown:
        unknown.setenv("GITHUB_TOKEN", "nobody-token")
        unknown.setenv("GITHUB_REPOSITORY", "team/private")
        refused = emulated.sweep(cli, clone_of(bare, "refused"))["error"]
    assert "404" in refused["message"]
    assert "the token may not see it" in refused["hint"]
    assert emulated.comments(thread) == []
    assert emulated.sweep(cli, clone_of(bare, "job"))["shown"] == [gate]
    assert len(emulated.comments(thread)) == 1
