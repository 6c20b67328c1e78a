"""The README's way to a server of one's own, line by line: asked in one clone, answered in another, finished by the server."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from support import PATIENCE
from support.readme import PERSON, README, bare_machine, block_after, dialogue, fenced, program, tell
from support.servers import ssh_command, ssh_server

pytestmark = pytest.mark.slow

# An agent of somebody's own: it reads what it asked and what the person said, and goes on.
MINE = """#!/bin/sh
test "$1 $2 $3" = "--continue 4711 --file" || exit 9
grep -q Postgres "$4" || exit 8
echo "Postgres" > database.txt
git add database.txt
git commit -q -m "Use Postgres"
"""


def typed(line: str, cwd: Path, env: Mapping[str, str], code: int = 0) -> str:
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == code, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@pytest.mark.readme
def test_the_readme_leads_to_a_finished_work_on_a_server(tmp_path: Path) -> None:
    """In an empty home, with git, Python and a shell alone."""
    env = bare_machine(tmp_path)
    program(env, "my-agent", MINE)
    for name, value in PERSON.items():
        typed(f"git config --global {name} '{value}'", tmp_path, env)
    server, agent, person = (tmp_path / name for name in ("project.git", "agent", "person"))
    typed(f"git init -q --bare {server}", tmp_path, env)
    for place in (agent, person):
        typed(f"git clone -q {server} {place}", tmp_path, env)
        if place == agent:
            typed("git commit -q --allow-empty -m First && git push -q origin HEAD", agent, env)
    began = time.monotonic()
    for line in block_after("**On a git server of your own**"):
        typed(line, server, env)
    for line in block_after("In the clone where your agent works"):
        typed(line, agent, env)
    said = "".join(typed(line, person, env) for line in block_after("In yours:"))
    assert "pushed to origin; its hook resumes it" in said, said
    until = time.monotonic() + PATIENCE
    while " main " not in typed("git gate list --all --state resumed", server, env):
        assert time.monotonic() < until, typed("git gate list --all -v", server, env)
        time.sleep(0.1)
    seconds = time.monotonic() - began
    for line in block_after("When it is done"):
        typed(line, person, env)
    assert typed("git log -1 --format=%s main", person, env) == "Use Postgres\n"
    assert (person / "database.txt").read_text("utf-8") == "Postgres\n"
    # The branch on which it worked there was for that time alone.
    assert typed("git for-each-ref refs/heads --format='%(refname)'", server, env) == "refs/heads/main\n"
    tell("a server", seconds)


def test_the_page_leads_a_team_to_its_server(tmp_path: Path) -> None:
    """Its blocks in their order, over a real sshd with a key for each; what each is told, word for word but for ids."""
    page = (README.parent / "docs/servers.md").read_text("utf-8")
    folder, keys = tmp_path / "ssh", {"ada": "user", "bob": "other"}
    with ssh_server(folder) as server:
        allowed = "".join(re.findall("^command=.*\n", page, re.MULTILINE))
        for name, key in keys.items():
            public = (folder / f"{key}.pub").read_text("utf-8").strip()
            allowed = allowed.replace(f"ssh-ed25519 AAAA… {name}@laptop", public)
        (folder / "authorized").write_text(allowed, "utf-8")
        env = {
            name: {**os.environ, "GIT_SSH_COMMAND": ssh_command(folder, key)} for name, key in keys.items()
        }
        typed(fenced(page, "sh"), tmp_path, os.environ)
        for name in keys:
            typed(f"git clone -q {server.url(tmp_path / 'project.git')} {name}", tmp_path, env[name])
            named = f"git config user.name {name.capitalize()}; git config user.email {name}@example.org"
            typed(named, tmp_path / name, env[name])
        (tmp_path / "ada/.gitgate.yml").write_text(fenced(page, "yaml"), "utf-8")
        put = "git add .gitgate.yml && git commit -qm Policy && git push -q origin HEAD && git remote set-head origin -a"
        typed(put, tmp_path / "ada", env["ada"])
        typed("git pull -q && git remote set-head origin -a", tmp_path / "bob", env["bob"])
        for name in keys:
            typed(fenced(page, "sh", 1), tmp_path / name, env[name])
        gate, told = "", dialogue(page)
        assert [who for who, _, _ in told] == ["ada", "ada", "ada", "bob", "bob"]
        for number, (who, words, lines) in enumerate(told):
            said = typed(words, tmp_path / who, env[who], code=4 if number == 1 else 0)
            gate = gate or said.split()[0]
            for line in lines:
                assert line.replace("7k2fw9c3ab", gate).replace("7k2f", gate[:4]) in said.splitlines(), said
            if number == 2:
                assert "it is in the name of Bob <bob@example.org>, and ada (GITGATE_ACTOR) pushes it" in said
        again = typed("git gate sync; git gate log --json", tmp_path / "ada", env["ada"])
        answers = re.findall(r'"event": "answered".*?"by": "(\w+) ', again)
        assert (set(answers), len(answers)) == ({"Bob"}, 1), again
