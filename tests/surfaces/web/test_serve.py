"""Surfaces: the command that serves the pages: what it prints, whom it lets in, and what it refuses to do."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from support.readme import fenced
from support.testbed.command import Command
from support.testbed.repositories import Clone

from .conftest import FormReader, Served, Visit, server

PAGE = Path(__file__).parents[3] / "docs" / "web.md"


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
    made = cli.quick("serve", "--login", "--json", code=0)
    another = json.loads(made.out)["login"]
    assert made.err == ""
    other = served.visit(another)
    assert [Visit(served.address).get("/")[0], other.get("/")[0]] == [401, 200]
    asks = cli.quick("ask", "And now?", "-q", code=0).line
    link = json.loads(cli.quick("serve", "--link", asks[:6], "--json", code=0).out)["link"].removeprefix(
        served.address
    )
    anybody = Visit(served.address)
    code, text = anybody.post(f"{link}/answer", {**filled(anybody.get(link)[1]), "q0.": "fine"})
    assert (code, "used up" in text, anybody.get(link)[0]) == (200, True, 401)
    assert "ended: 2 logins" in cli.quick("serve", "--log-out", code=0).err
    assert [one.get("/")[0] for one in (visit, other)] == [401, 401]
    said_at_last = served.end()
    assert "token" not in said_at_last
    assert served.process.returncode == 0
    port = served.address.rpartition(":")[2]
    assert (
        f"nobody serves there now: git gate serve --desk --port {port}"
        in cli.quick("serve", "--login", code=0).err
    )


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
    said = cli.quick(
        *("serve", "--desk", "--port", "0", "--url", "https://a.example", "--host", "192.0.2.99"),
        cwd=repo.path,
        code=1,
    )
    assert "--host takes an address of this machine" in said.err


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
    for words in (("serve", "--desk", "--port", "0"), ("serve", "--login"), ("serve", "--link", "abcd")):
        said = cli.quick(*words, cwd=repo.path, env={"CLAUDECODE": "1"}, code=4)
        assert "is for people" in said.err


def test_what_is_for_the_desk_is_said_so(repo: Clone, cli: Command) -> None:
    assert (
        "--url is for the desk" in cli.quick("serve", "--url", "https://a.example", cwd=repo.path, code=2).err
    )
    gate = cli.quick("ask", "Which?", "-q", cwd=repo.path, code=0).line
    for words in (("--login",), ("--link", gate)):
        assert "no desk was served here yet" in cli.quick("serve", *words, cwd=repo.path, code=1).err


def test_without_the_extra_it_says_what_to_install(
    repo: Clone, cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "jinja2", None)
    said = cli.quick("serve", "--desk", "--port", "0", cwd=repo.path, code=1)
    assert "jinja2" in said.err
    assert "pip install 'git-gate[web]'" in said.err


@pytest.mark.slow
def test_what_moves_is_told_to_whoever_looks(repo: Clone, cli: Command, served: Served) -> None:
    """A question, and what another clone answers, each move the pages that are open; a login that is ended ends that."""
    there = repo.path.parent / "shared.git"
    repo.git("init", "-q", "--bare", str(there))
    repo.git("remote", "add", "origin", str(there))
    visit = served.visit()
    with visit.stream("/events") as stream:
        assert stream.next() is not None
        gate = cli.quick("ask", "Which?", "-q", "--push", code=0).line
        assert stream.next() is not None
        other = repo.path.parent / "other"
        repo.git("clone", "-q", str(there), str(other))
        Clone(other).git("config", "user.name", "Bob")
        Clone(other).git("config", "user.email", "bob@example.com")
        cli.quick("sync", cwd=other, code=0)
        cli.quick("respond", gate, "Postgres", cwd=other, code=0)
        while "was answered by Bob: Postgres" not in visit.get(f"/g/{gate}")[1]:
            assert stream.next() is not None
        cli.quick("serve", "--log-out", code=0)
        while stream.next() is not None:
            pass
