"""The command where people have their repositories: other servers, other kinds of clones, awkward names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitgate.store.git import not_a_repository
from support.servers import HttpServer, SshServer, free_port
from support.testbed.command import Command
from support.testbed.repositories import Clone, run_git

SSH = [pytest.mark.server, pytest.mark.slow]


OLD = """#!/bin/sh
# What an sshd that does not take GIT_PROTOCOL from its clients (`AcceptEnv`) starts.
echo asked >> "$0.log"
exec env -u GIT_PROTOCOL git-upload-pack "$@"
"""


@pytest.fixture
def old_server(bare: Clone, tmp_path: Path) -> Iterator[str]:
    """A server that speaks git's first protocol alone: whoever asks is told of every ref there is."""
    script = tmp_path / "upload-pack"
    script.write_text(OLD, encoding="utf-8")
    script.chmod(0o755)
    run_git("config", "--global", "remote.origin.uploadpack", str(script), cwd=tmp_path)
    yield bare.path.as_uri()
    assert (tmp_path / "upload-pack.log").exists()


@pytest.fixture(
    params=[
        "path",
        "file",
        pytest.param("old", marks=pytest.mark.slow),
        pytest.param("http", marks=[pytest.mark.server, pytest.mark.slow]),
        pytest.param("ssh", marks=SSH),
    ]
)
def url(request: pytest.FixtureRequest, bare: Clone, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same bare repository, reached in each of the four ways, and as servers of old speak."""
    bare.git("config", "http.receivepack", "true")
    if request.param == "ssh":
        sshd: SshServer = request.getfixturevalue("sshd")
        monkeypatch.setenv("GIT_SSH_COMMAND", sshd.command)
        return sshd.url(bare.path)
    if request.param == "http":
        web: HttpServer = request.getfixturevalue("web")
        return web.url(bare.path)
    if request.param == "old":
        return str(request.getfixturevalue("old_server"))
    return bare.path.as_uri() if request.param == "file" else str(bare.path)


def plain_clone(url: str, place: Path, *how: str) -> Clone:
    """What a person gets who types `git clone`."""
    run_git("clone", "-q", *how, "--", url, str(place), cwd=place.parent)
    return Clone(place)


def asked(cli: Command, clone: Clone, *flags: str) -> str:
    return cli.quick("ask", "Which way?", "-o", "Left", "-o", "Right", *flags, cwd=clone.path, code=0).line


def state(cli: Command, clone: Clone, gate: str) -> str:
    return str(cli.quick("show", gate, "--json", cwd=clone.path, code=0).json["state"])


@pytest.mark.slow
def test_the_loop_over_every_kind_of_server(cli: Command, url: str, tmp_path: Path) -> None:
    """Asked in one plain clone, listed and answered in another, read by the first."""
    ann, bob = plain_clone(url, tmp_path / "ann"), plain_clone(url, tmp_path / "bob")
    gate = asked(cli, ann)
    listed = cli.quick("list", "--sync", "--json", cwd=bob.path, code=0).json
    assert [found["id"] for found in listed["gates"]] == [gate]
    assert "pushed to origin" in cli.quick("respond", gate, "left", cwd=bob.path, code=0).err
    cli.quick("sync", cwd=ann.path, code=0)
    assert cli.quick("check", gate, cwd=ann.path, code=0).out == "Left\n"
    cli.quick("archive", cwd=ann.path, code=0)
    cli.quick("sync", cwd=bob.path, code=0)
    assert cli.quick("show", gate, "--json", cwd=ann.path, code=0).json["archived"]
    assert not bob.refs("refs/hitl/open")


@pytest.mark.slow
def test_an_old_server_tells_what_came_and_went(cli: Command, old_server: str, tmp_path: Path) -> None:
    """Work, sessions, a lost race and a stale clone over git's first protocol: nothing is lost, nothing comes back."""
    ann, bob, cy = (plain_clone(old_server, tmp_path / name) for name in ("ann", "bob", "cy"))
    ann.git("config", "gitgate.publishWork", "true")
    ann.write("partial", "p")
    first, second = asked(cli, ann), asked(cli, ann)
    for clone in (bob, cy):
        cli.quick("sync", cwd=clone.path, code=0)
    assert "partial" in cli.quick("diff", first, cwd=bob.path, code=0).out
    cli.quick("respond", first, "left", cwd=bob.path, code=0)
    cli.quick("respond", first, "right", cwd=cy.path, code=5)
    assert cli.quick("check", first, cwd=cy.path, code=0).out == "Left\n"
    cli.quick("archive", cwd=bob.path, code=0)
    cli.quick("sync", cwd=ann.path, code=0)
    cli.quick("sync", cwd=cy.path, code=0)
    for clone in (ann, bob, cy):
        listed = cli.quick("list", "--all", "--json", cwd=clone.path, code=0).json["gates"]
        assert {one["id"]: one["archived"] for one in listed} == {first: True, second: False}
    cli.quick("verify", cwd=cy.path, code=0)


def test_a_shallow_clone_takes_part_and_stays_shallow(cli: Command, bare: Clone, tmp_path: Path) -> None:
    """Gates are whole histories of their own; the project's is not deepened for them."""
    seed = plain_clone(str(bare.path), tmp_path / "more")
    for number in range(3):
        seed.commit(f"change {number}", **{f"file{number}": "x"})
    seed.git("push", "-q", "origin", "HEAD")
    shallow = plain_clone(bare.path.as_uri(), tmp_path / "shallow", "--depth", "1")
    other = plain_clone(str(bare.path), tmp_path / "other")
    gate = asked(cli, shallow)
    cli.quick("sync", cwd=other.path, code=0)
    cli.quick("respond", gate, "right", cwd=other.path, code=0)
    cli.quick("sync", cwd=shallow.path, code=0)
    assert state(cli, shallow, gate) == "answered"
    assert shallow.git("rev-list", "--count", "HEAD") == "1"


def test_the_work_of_a_shallow_clone_reaches_a_full_one(cli: Command, bare: Clone, tmp_path: Path) -> None:
    """With consent the partial work travels, and is shown where the question is read."""
    shallow = plain_clone(bare.path.as_uri(), tmp_path / "shallow", "--depth", "1")
    other = plain_clone(str(bare.path), tmp_path / "other")
    shallow.git("config", "gitgate.publishWork", "true")
    shallow.write("README", "half done\n")
    gate = asked(cli, shallow)
    cli.quick("sync", cwd=other.path, code=0)
    assert "+half done" in cli.quick("diff", gate, cwd=other.path, code=0).out


def test_names_that_are_no_utf8(cli: Command, bare: Clone, repo: Clone) -> None:
    """A remote and a branch, from before everybody wrote UTF-8."""
    old = "caf\udce9"
    repo.git("remote", "add", old, str(bare.path))
    repo.git("checkout", "-qb", old)
    repo.write("new")
    gate = cli.quick("ask", "Which?", code=0).line
    cli.quick("respond", gate, "JWT", code=0)
    assert cli.quick("show", gate, "--json", code=0).json["state"] == "answered"
    assert "nothing is wrong" in cli.quick("verify", code=0).err


def test_a_bare_repository_answers_too(cli: Command, bare: Clone, tmp_path: Path) -> None:
    """On the server itself, where there is no working tree, everything but the working tree is there."""
    ann = plain_clone(str(bare.path), tmp_path / "ann")
    gate = asked(cli, ann)
    assert gate in cli.quick("list", cwd=bare.path, code=0).out
    assert "Which way?" in cli.quick("show", gate, cwd=bare.path, code=0).out
    cli.quick("respond", gate, "left", cwd=bare.path, code=0)
    own = asked(cli, bare)
    assert state(cli, bare, own) == "awaiting"
    cli.quick("sync", cwd=ann.path, code=0)
    assert state(cli, ann, gate) == "answered"


def test_a_linked_worktree_shares_the_gates(cli: Command, repo: Clone, tmp_path: Path) -> None:
    """A gate asked in one working tree is listed in the other; the branch is that of the asking one."""
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = Clone(tmp_path / "side")
    side.write("README", "changed in the side tree\n")
    gate = asked(cli, side)
    shown = cli.quick("show", gate, "--json", cwd=repo.path, code=0).json
    assert shown["work"]["branch"] == "side"
    assert shown["work"]["files"] == 1
    assert repo.git("status", "--porcelain") == ""


@pytest.mark.parametrize("name", ["with space", "Grüße ☕", "-dash", "quote's", "semi;colon $HOME"])
def test_a_path_with_anything_in_it(cli: Command, bare: Clone, tmp_path: Path, name: str) -> None:
    """Names of folders are data: they reach neither a shell nor an option."""
    (tmp_path / "odd").mkdir()
    clone = plain_clone(str(bare.path), tmp_path / "odd" / name)
    clone.write(f"{name}.txt", "x\n")
    gate = asked(cli, clone)
    assert f"{name}.txt" in clone.git(
        "-c", "core.quotePath=false", "ls-tree", "--name-only", f"refs/hitl/work/{gate}"
    )
    cli.quick("respond", gate, "left", cwd=clone.path, code=0)
    assert state(cli, clone, gate) == "answered"


@pytest.mark.parametrize(
    "verb",
    [
        ("list",),
        (),
        ("ask", "Why?"),
        ("show", "2222"),
        ("respond", "2222", "x"),
        ("sync",),
        ("verify",),
        ("log",),
    ],
)
def test_outside_a_repository_each_verb_says_so(cli: Command, tmp_path: Path, verb: tuple[str, ...]) -> None:
    """One sentence, exit 1, what to do; and with --json the same as an object."""
    outside = tmp_path / "nowhere"
    outside.mkdir()
    said = cli.quick(*verb, cwd=outside, code=1)
    assert "is not in a git repository" in said.err
    assert "git init" in said.err
    assert cli.quick(*verb, "--json", cwd=outside, code=1).json["error"]["code"] == "not_a_repository"


def test_a_repository_of_somebody_else_says_how_to_trust_it() -> None:
    """Ready to be typed, whatever its path holds."""
    refused = not_a_repository(Path("/srv/sp ace"), "fatal: detected dubious ownership in repository", None)
    assert refused.hint == "git config --global --add safe.directory '/srv/sp ace'"


def test_no_commit_yet(cli: Command, person: object, tmp_path: Path) -> None:
    """A question can come before the first commit."""
    run_git("init", "-q", str(tmp_path / "fresh"), cwd=tmp_path)
    fresh = Clone(tmp_path / "fresh")
    fresh.write("idea.txt", "x\n")
    gate = asked(cli, fresh)
    shown = cli.quick("show", gate, "--json", cwd=fresh.path, code=0).json
    assert shown["work"]["base"] is None
    assert shown["work"]["files"] == 1
    assert fresh.git("status", "--porcelain") == "?? idea.txt"


def test_a_detached_head(cli: Command, repo: Clone) -> None:
    """Work that is on no branch is said to be."""
    repo.git("checkout", "-q", "--detach")
    gate = asked(cli, repo)
    assert cli.quick("show", gate, "--json", code=0).json["work"]["branch"] is None
    assert "on no branch" in cli.quick("show", gate, code=0).out


@pytest.mark.parametrize("kind", ["gone", "closed port", "unknown scheme"])
def test_a_remote_that_does_not_answer(cli: Command, repo: Clone, tmp_path: Path, kind: str) -> None:
    """The gate is safe here and says so; insisting on a push, and CI, make it a failure; sync names the remote."""
    urls = {
        "gone": str(tmp_path / "gone.git"),
        "closed port": f"http://127.0.0.1:{free_port()}/x.git",
        "unknown scheme": "nonsense://127.0.0.1/x.git",
    }
    repo.git("remote", "add", "origin", urls[kind])
    said = cli.quick("ask", "Which way?", code=0)
    assert "not pushed, but safe here" in said.err
    assert "git gate sync" in said.err
    gate = said.line
    assert cli.quick("show", gate, "--json", code=0).json["pushed"] is False
    assert cli.quick("ask", "And now?", "--push", code=1).out == ""
    assert cli.quick("ask", "And in CI?", env={"CI": "true"}, code=1).out == ""
    assert "origin" in cli.quick("sync", code=1).err
    assert "not pushed" in cli.quick("respond", gate, "left", code=0).err


def test_without_a_remote_nothing_is_missing(cli: Command, repo: Clone) -> None:
    """Local is a way of working, not a failure; only asking to sync is one."""
    gate = asked(cli, repo)
    assert "nothing will resume this by itself" in cli.quick("respond", gate, "left", code=0).err
    assert "git remote add" in cli.quick("sync", code=1).err


def test_nobody_is_sent_to_a_remote_that_is_not_there(cli: Command, repo: Clone) -> None:
    """What cannot work is not what to type next; with a remote it is."""
    for verb in (("show", "zzzz"), ("log",)):
        said = cli.quick(*verb)
        assert "here" in said.err
        assert "git gate sync" not in said.err
    repo.git("remote", "add", "origin", "/nowhere/server.git")
    assert "git gate sync" in cli.quick("log").err
    assert "git gate sync" in cli.quick("show", "zzzz").err


def test_asking_needs_no_identity(cli: Command, repo: Clone, nobody: object) -> None:
    """An agent's machine may have none; an answer needs a name, and says how to give one."""
    gate = asked(cli, repo)
    assert cli.quick("show", gate, "--json", code=0).json["asked"]["by"] == ""
    assert "git config --global user.name" in cli.quick("respond", gate, "left", code=1).err


def test_a_mirror_is_refused(cli: Command, bare: Clone, tmp_path: Path) -> None:
    """Its next fetch would delete what was only asked here."""
    mirror = plain_clone(str(bare.path), tmp_path / "mirror.git", "--mirror")
    assert "mirror" in cli.quick("sync", cwd=mirror.path, code=1).err


def test_the_clone_that_never_synced_says_so(
    cli: Command, bare: Clone, clone_of: Callable[..., Clone]
) -> None:
    """`Nothing waits` would be a guess."""
    clone = clone_of(bare, "fresh")
    for verb in ((), ("list",)):
        said = cli.quick(*verb, cwd=clone.path, code=0)
        assert "never synced" in said.out + said.err
    cli.quick("sync", cwd=clone.path, code=0)
    assert "nothing waits" in cli.quick(cwd=clone.path, code=0).out


@pytest.mark.parametrize(
    "text",
    [
        "- not a mapping\n",
        "settings: {colour: red}\n",
        "settings: {maxAgents: many}\n",
        "settings: {timeout: 5q}\n",
        "a: &b c\n",
    ],
)
def test_a_broken_file_in_the_working_tree_locks_nobody_out(cli: Command, repo: Clone, text: str) -> None:
    """An agent can write `.gitgate.yml` there: what is wrong with it is said, and the verbs go on."""
    gate = asked(cli, repo)
    repo.write(".gitgate.yml", text)
    assert gate in cli.quick("list", code=0).out
    said = cli.quick("respond", gate, "left", code=0)
    assert ".gitgate.yml" in said.err
    assert "no setting of this file counts" in said.err
    assert ".gitgate.yml" in str(cli.quick("doctor", "--json").json)
