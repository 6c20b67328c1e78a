"""Who pushes, told by real servers: sshd with accounts and with forced commands, http with basic authentication, gitolite."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gitgate.acts.asking import AskWishes
from gitgate.model.gate import Gate
from support.deciding import gate_of, say
from support.resuming import Seat
from support.servers import http_server, ssh_command, ssh_server
from support.signing import make_key, publish_policy
from support.testbed.command import Command
from support.testbed.repositories import Clone, GitError, run_git

pytestmark = pytest.mark.slow  # each takes a second or more

OPEN = "refs/hitl/open/"
PEOPLE = """policy:
  people:
    ada: {{email: ada@example.org, login: {login}}}
    bob: {{email: bob@example.org, login: bob}}
  who: [ada, bob]
"""
SHELL = Path("/usr/share/gitolite3/gitolite-shell")


@pytest.fixture
def server(bare: Clone, cli: Command) -> Clone:
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    return bare


@dataclass(frozen=True)
class Door:
    """Ada's clone of a server that is reached in some way, and how somebody else would push from it."""

    ann: Seat
    server: Clone

    def answered(self) -> Gate:
        """An answer of Ada's, here only; the gate itself was pushed."""
        return say(self.ann, gate_of(self.ann), push=False).gate

    def push(self, gate: Gate, *, url: str = "origin", ssh: str = "") -> str:
        """What the server says; nothing when it takes it."""
        with pytest.MonkeyPatch.context() as patch:
            if ssh:
                patch.setenv("GIT_SSH_COMMAND", ssh)
            try:
                run_git("push", "-q", url, f"{gate.tip}:{OPEN}{gate.id}", cwd=self.ann.clone.path)
            except GitError as refused:
                return str(refused)
        assert self.server.refs()[OPEN + gate.id] == gate.tip
        return ""


@pytest.fixture
def door(server: Clone, clone_of: Callable[..., Clone]) -> Iterator[Door]:
    with Seat(clone_of(server, "ann")) as seat:
        yield Door(seat, server)


def keys_with(folder: Path, **commands: str) -> None:
    """Each key runs this and nothing else."""
    lines = [
        f'command="{command}",restrict {(folder / f"{key}.pub").read_text(encoding="utf-8")}'
        for key, command in commands.items()
    ]
    (folder / "authorized").write_text("".join(lines), encoding="utf-8")


def test_ssh_with_an_account_each(door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The account that the hook runs as is who pushes, whatever the client would have it believe."""
    account = pwd.getpwuid(os.geteuid()).pw_name
    publish_policy(door.server, PEOPLE.format(login=account))
    with ssh_server(tmp_path / "ssh") as server:
        monkeypatch.setenv("GIT_SSH_COMMAND", server.command)
        door.ann.clone.git("remote", "set-url", "origin", server.url(door.server.path))
        gate = door.answered()
        publish_policy(door.server, PEOPLE.format(login="somebody-else"))
        said = door.push(
            gate, ssh=f"{server.command} -o SendEnv=GITGATE_ACTOR -o SetEnv=GITGATE_ACTOR=somebody-else"
        )
        assert f"{account} (account) pushes it" in said
        publish_policy(door.server, PEOPLE.format(login=account))
        assert door.push(gate) == ""


def test_ssh_with_forced_commands(door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One account for all; each key's command says who it is, and gives nothing but git."""
    publish_policy(door.server, PEOPLE.format(login="ada"))
    folder = tmp_path / "ssh"
    with ssh_server(folder) as server:
        for_git = 'GITGATE_ACTOR={who} git-shell -c \\"$SSH_ORIGINAL_COMMAND\\"'
        keys_with(folder, user=for_git.format(who="ada"), other=for_git.format(who="bob"))
        monkeypatch.setenv("GIT_SSH_COMMAND", server.command)
        door.ann.clone.git("remote", "set-url", "origin", server.url(door.server.path))
        gate = door.answered()
        said = door.push(gate, ssh=ssh_command(folder, "other"))
        assert "in the name of Ada Lovelace <ada@example.org>, and bob (GITGATE_ACTOR) pushes it" in said
        assert door.push(gate) == ""


def test_http_with_basic_authentication(door: Door, tmp_path: Path) -> None:
    """The user that the web server authenticated is who pushes."""
    publish_policy(door.server, PEOPLE.format(login="ada"))
    door.server.git("config", "http.receivepack", "true")
    with http_server(tmp_path, secret="ada:pw,bob:pw2") as server:
        door.ann.clone.git("remote", "set-url", "origin", server.url(door.server.path, login="ada:pw"))
        gate = door.answered()
        said = door.push(gate, url=server.url(door.server.path, login="bob:pw2"))
        assert "bob (REMOTE_USER) pushes it" in said
        assert "Authentication failed" in door.push(gate, url=server.url(door.server.path, login="bob:wrong"))
        assert door.push(gate) == ""


def test_gitolite(door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Command) -> None:
    """Its own user, in a home of its own: what it calls GL_USER is who pushes."""
    folder, there = tmp_path / "ssh", tmp_path / "gitolite"
    there.mkdir()
    with ssh_server(folder) as server:
        repository = gitolite(folder, there, cli)
        repository.git("fetch", "-q", str(door.ann.clone.path), "main:main")
        publish_policy(repository, PEOPLE.format(login="ada"))
        monkeypatch.setenv("GIT_SSH_COMMAND", server.command)
        door.ann.clone.git("remote", "set-url", "origin", server.url(Path("/testing")))
        beside = Door(door.ann, repository)
        gate = beside.answered()
        assert OPEN + gate.id in repository.refs()
        said = beside.push(gate, ssh=ssh_command(folder, "other"))
        assert "in the name of Ada Lovelace <ada@example.org>, and bob (GL_USER) pushes it" in said
        assert beside.push(gate) == ""


def gitolite(folder: Path, there: Path, cli: Command) -> Clone:
    """Set up in `there`, reached through our sshd: its repository `testing`, where two people may write."""
    program = shutil.which("gitolite")
    if program is None:
        raise AssertionError("gitolite is missing: apt-get install gitolite3")
    env = {"HOME": str(there), "PATH": f"{Path(program).parent}:/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1"}
    shutil.copy(folder / "user.pub", there / "ada.pub")
    run = ["gitolite", "setup", "-pk", str(there / "ada.pub")]
    done = subprocess.run(run, env=env, cwd=there, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    as_user = f"HOME={there} {SHELL}"
    keys_with(folder, user=f"{as_user} ada", other=f"{as_user} bob")
    repository = Clone(there / "repositories" / "testing.git")
    cli.quick("init", "--server", "--no-resume", cwd=repository.path, code=0)
    return repository


def test_a_push_certificate(door: Door, tmp_path: Path) -> None:
    """Signed by a key that the server knows it says who pushes; by another one it says nothing, though git calls it good."""
    publish_policy(door.server, PEOPLE.format(login="nobody-here"))
    ada = make_key(tmp_path / "keys", "ada", "ada@example.org")
    eve = make_key(tmp_path / "keys", "eve", "ada@example.org")
    allowed = tmp_path / "allowed"
    allowed.write_text(ada.line, encoding="utf-8")
    for name, value in (
        ("receive.certNonceSeed", "a seed"),
        ("gpg.format", "ssh"),
        ("gpg.ssh.allowedSignersFile", str(allowed)),
    ):
        door.server.git("config", name, value)
    gate = say(door.ann, gate_of(door.ann, wishes=AskWishes(push=False)), push=False).gate
    spec = f"{gate.tip}:{OPEN}{gate.id}"
    eve.used_by(door.ann.clone)
    with pytest.raises(GitError, match=r"\(account\) pushes it"):
        door.ann.clone.git("push", "--signed=yes", "origin", spec)
    ada.used_by(door.ann.clone)
    door.ann.clone.git("push", "-q", "--signed=yes", "origin", spec)
    assert door.server.refs()[OPEN + gate.id] == gate.tip
