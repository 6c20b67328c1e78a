"""Surfaces: the command that serves the pages: what it prints, whom it lets in, and what it refuses to do."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, ProxyHandler, Request, build_opener

import pytest

from support import PATIENCE
from support.readme import fenced
from support.testbed.command import Command
from support.testbed.repositories import Clone

from .conftest import FormReader

PAGE = Path(__file__).parents[3] / "docs" / "web.md"


@dataclass
class Visit:
    """A browser with cookies, and a real server. Nothing that would lead elsewhere is followed by itself but redirections."""

    address: str
    opener: OpenerDirector = field(
        default_factory=lambda: build_opener(ProxyHandler({}), HTTPCookieProcessor(CookieJar()))
    )
    headers: dict[str, str] = field(default_factory=dict)

    def get(self, path: str) -> tuple[int, str]:
        return self.send(Request(self.address + path, headers=self.headers))  # noqa: S310 - the address of our own server

    def post(self, path: str, fields: dict[str, object]) -> tuple[int, str]:
        body = urlencode(fields, doseq=True).encode()
        return self.send(Request(self.address + path, body, {"Origin": self.address}))  # noqa: S310 - as above

    def send(self, request: Request) -> tuple[int, str]:
        try:
            with self.opener.open(request, timeout=PATIENCE) as reply:
                return reply.status, reply.read().decode()
        except HTTPError as refused:
            return refused.code, refused.read().decode()


@dataclass
class Served:
    """A desk that is being served."""

    process: subprocess.Popen[str]
    link: str

    def said(self) -> str:
        """Its next line about itself."""
        assert self.process.stderr is not None
        return self.process.stderr.readline()

    @property
    def address(self) -> str:
        return self.link.partition("/login")[0]

    def visit(self, link: str = "") -> Visit:
        """Somebody who has opened a login link."""
        visit = Visit(self.address)
        code, text = visit.get((link or self.link).removeprefix(self.address))
        assert (code, "Logged in" in text) == (200, True)
        return visit

    def end(self) -> str:
        self.process.terminate()
        return self.process.communicate(timeout=PATIENCE)[1]


@pytest.fixture
def served(repo: Clone, cli: Command) -> Iterator[Served]:
    with server(cli.start("serve", "--desk", "--port", "0", cwd=repo.path)) as served:
        yield served


@contextmanager
def server(process: subprocess.Popen[str]) -> Iterator[Served]:
    """It serves as soon as its first line is there."""
    late = threading.Timer(PATIENCE, process.kill)
    late.start()
    try:
        assert process.stdout is not None
        link = process.stdout.readline().strip()
        late.cancel()
        yield Served(process, link)
    finally:
        late.cancel()
        if process.poll() is None:
            process.kill()
        process.communicate()


def filled(page: str) -> dict[str, list[str]]:
    reader = FormReader()
    reader.feed(page)
    return reader.fields


@pytest.mark.slow
def test_the_commands_of_the_page(repo: Clone, cli: Command, served: Served) -> None:
    """A login, an answer, one more login, and an end to all of them; nothing of a request is told by the server."""
    assert "git gate serve --desk" in fenced(PAGE.read_text("utf-8"), "sh")
    gate = cli.quick("ask", "Which?", "-o", "Postgres", "-o", "SQLite", "-q", code=0).line
    visit = served.visit()
    assert "1 waits for an answer" in visit.get("/")[1]
    assert visit.get("/../../etc/passwd")[0] == 404
    code, text = visit.post(f"/g/{gate}/answer", {**filled(visit.get(f"/g/{gate}")[1]), "q0.": "0"})
    assert (code, "Recorded: " in text) == (200, True)
    said = json.loads(cli.quick("check", gate, "--json", code=0).out)
    assert (said["answer"]["values"], said["answer"]["via"]) == ({"answer": "Postgres"}, "web")
    another = json.loads(cli.quick("serve", "--login", "--json", code=0).out)["login"]
    other = served.visit(another)
    assert [Visit(served.address).get("/")[0], other.get("/")[0]] == [401, 200]
    assert "ended: 2 logins" in cli.quick("serve", "--log-out", code=0).err
    assert [one.get("/")[0] for one in (visit, other)] == [401, 401]
    said_at_last = served.end()
    assert "token" not in said_at_last
    assert served.process.returncode == 0


def test_it_listens_to_nobody_else(repo: Clone, cli: Command) -> None:
    """Beyond this machine everybody could try to log in."""
    for host in ("0.0.0.0", "::", "198.51.100.1"):  # noqa: S104 - refused
        said = cli.quick("serve", "--desk", "--host", host, "--port", "0", cwd=repo.path, code=2)
        assert f"--host {host}: beyond this machine a proxy has to say who somebody is" in said.err
    repo.git("config", "gitgate.web.userHeader", "X-User")
    repo.git("config", "gitgate.web.trustedProxies", "192.0.2.7")
    said = cli.quick("serve", "--desk", "--host", "0.0.0.0", "--port", "0", cwd=repo.path, code=2)  # noqa: S104 - refused
    assert "--url" in said.err
    said = cli.quick(
        "serve", "--desk", "--port", "0", "--url", "https://a.example/path", cwd=repo.path, code=2
    )
    assert "expected an address without a path" in said.err


@pytest.mark.slow
def test_the_commands_of_the_page_for_a_team(repo: Clone, cli: Command) -> None:
    """As they stand there, with this machine as the proxy: its header logs in, and without it nobody is anybody."""
    *config, serve = fenced(PAGE.read_text("utf-8"), "sh", 1).splitlines()
    for line in config:
        repo.git(*shlex.split(line)[1:])
    repo.git("config", "gitgate.web.trustedProxies", "127.0.0.1")
    words = [*shlex.split(serve)[2:], "--port", "0"]
    words[words.index("--host") + 1] = "127.0.0.1"
    with server(cli.start(*words, cwd=repo.path)) as served:
        assert served.link == "https://gates.example.org"
        port = re.search(r"gates\.example\.org listens on 127\.0\.0\.1:(\d+)", served.said())
        assert port is not None
        visit = Visit(f"http://127.0.0.1:{port[1]}", headers={"Host": "gates.example.org"})
        assert visit.get("/")[0] == 401
        visit.headers["X-Forwarded-User"] = "ada"
        assert visit.get("/")[0] == 200
        visit.headers["Host"] = "other.example.org"
        assert visit.get("/")[0] == 421


def test_an_agent_serves_no_desk_and_makes_no_login(repo: Clone, cli: Command) -> None:
    for words in (("serve", "--desk", "--port", "0"), ("serve", "--login")):
        said = cli.quick(*words, cwd=repo.path, env={"CLAUDECODE": "1"}, code=4)
        assert "is for people" in said.err


def test_what_is_for_the_desk_is_said_so(repo: Clone, cli: Command) -> None:
    assert (
        "--url is for the desk" in cli.quick("serve", "--url", "https://a.example", cwd=repo.path, code=2).err
    )
    assert "no desk was served here yet" in cli.quick("serve", "--login", cwd=repo.path, code=1).err


def test_without_the_extra_it_says_what_to_install(
    repo: Clone, cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "jinja2", None)
    said = cli.quick("serve", "--desk", "--port", "0", cwd=repo.path, code=1)
    assert "jinja2" in said.err
    assert "pip install 'git-gate[web]'" in said.err
