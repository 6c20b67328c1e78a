"""An agent with nothing but a shell, and what it tries: files, branches, remotes, configuration that git follows, names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.acts import answering
from gitgate.errors import NotAllowed
from gitgate.store.git.signatures import GOOD, verify
from gitgate.store.work import touched
from support.deciding import gate_of, say
from support.resuming import Seat
from support.signing import make_key, publish_policy
from support.testbed.command import Command
from support.testbed.repositories import Clone, GitError

pytestmark = pytest.mark.slow

ONLY_BOB, ANYONE = "policy: {who: bob@example.org}\n", "policy: {who: anyone}\n"


@pytest.fixture
def forked(bare: Clone, ann: Seat, tmp_path: Path) -> Seat:
    """A clone whose own remote has a policy, and that knows a fork with another, which the agent may write."""
    publish_policy(bare, ONLY_BOB)
    ann.clone.git("clone", "-q", "--bare", str(bare.path), str(tmp_path / "fork.git"))
    publish_policy(Clone(tmp_path / "fork.git"), ANYONE)
    ann.clone.git("remote", "add", "fork", str(tmp_path / "fork.git"))
    for name in ("origin", "fork"):
        ann.clone.git("fetch", "-q", name)
    return ann


def by_file(clone: Clone, patch: pytest.MonkeyPatch, name: str) -> None:
    clone.write(".gitgate.yml", f"settings: {{remote: {name}}}\n")


def by_environment(_clone: Clone, patch: pytest.MonkeyPatch, name: str) -> None:
    patch.setenv("GITGATE_REMOTE", name)


def by_branch(clone: Clone, patch: pytest.MonkeyPatch, name: str) -> None:
    """As `git checkout --track` and `gh pr checkout` leave it: a name, or an address."""
    clone.git("switch", "-q", "-c", "theirs")
    clone.git("config", "branch.theirs.remote", name)


def by_push_remote(clone: Clone, patch: pytest.MonkeyPatch, name: str) -> None:
    by_branch(clone, patch, "origin")
    clone.git("config", "branch.theirs.pushRemote", name)


@pytest.mark.parametrize("how", [by_file, by_environment, by_branch, by_push_remote])
@pytest.mark.parametrize("name", ["fork", "nowhere", "https://fork.example/x.git"])
def test_where_gates_go_does_not_choose_the_policy(
    forked: Seat, monkeypatch: pytest.MonkeyPatch, how: Callable[..., None], name: str
) -> None:
    """Not a file of the working tree, not the environment, not the branch that somebody is on."""
    gate = gate_of(forked)
    how(forked.clone, monkeypatch, name)
    with pytest.raises(NotAllowed, match=r"it is for bob@example\.org"):
        say(forked, gate, push=False)
    assert forked.now(gate).state == "awaiting"


def test_a_person_says_which_remote_it_is(forked: Seat) -> None:
    """In git's configuration; and the only remote is the one, whatever it is called."""
    forked.clone.git("config", "gitgate.remote", "fork")
    assert say(forked, gate_of(forked), push=False).gate.state == "answered"
    forked.clone.git("config", "--unset", "gitgate.remote")
    forked.clone.git("remote", "remove", "fork")
    forked.clone.git("remote", "rename", "origin", "company")
    forked.clone.git("config", "remote.company.fetch", "+refs/heads/*:refs/remotes/company/*")
    gate = gate_of(forked)
    forked.clone.write(".gitgate.yml", "settings: {remote: nowhere}\n")
    with pytest.raises(NotAllowed, match=r"it is for bob@example\.org"):
        say(forked, gate, push=False)


def test_no_program_of_the_clones_configuration_says_what_is_good(ann: Seat, tmp_path: Path) -> None:
    """The one that signs may be any; what is asked whether a signature holds is ssh's own."""
    key, eve = (make_key(tmp_path / "keys", name, "ada@example.org") for name in ("ada", "eve"))
    eve.used_by(ann.clone)
    gate = say(ann, gate_of(ann), sign=True, push=False).gate
    yes = tmp_path / "yes"
    yes.write_text("#!/bin/sh\necho 'Good \"git\" signature for ada@example.org with ED25519 key SHA256:x'\n")
    yes.chmod(0o755)
    ann.clone.git("config", "gpg.ssh.program", str(yes))
    assert verify(ann.desk.repo.git, [gate.tip], key.line.encode())[gate.tip].word != GOOD


@pytest.mark.parametrize("how", ["graft", "replace"])
def test_history_is_what_it_is(ann: Seat, how: str) -> None:
    """Where the work left the protected branch is not told by grafts or replaced commits: a rule about a path would not hold."""
    first = ann.clone.git("rev-parse", "main")
    secret = ann.clone.commit("schema", **{"db/a.sql": "x\n"})
    work = ann.clone.commit("more", other="y\n")
    repo = ann.desk.repo
    if how == "graft":
        (repo.common_dir / "info").mkdir(exist_ok=True)
        (repo.common_dir / "info" / "grafts").write_text(f"{first} {secret}\n")
    else:
        ann.clone.git("replace", first, work)
    assert touched(repo, ann.clone.git("rev-parse", "refs/remotes/origin/main"), first, work) == (
        "db/a.sql",
        "other",
    )


def test_a_name_that_is_only_like_ours_is_ours(bare: Clone, ann: Seat, cli: Command) -> None:
    """On a file system that does not tell cases apart it would be the gate's own file."""
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    gate = ann.ask()
    for name in (f"refs/HITL/open/{gate.id}", f"refs/hitl/OPEN/{gate.id}", "refs/Hitl/archive/2030-01"):
        with pytest.raises(GitError, match="knows no such kind of ref"):
            ann.clone.git("push", "origin", f"{gate.tip}:{name}")


def test_what_is_archived_stays_so_by_every_way_to_a_server(
    bare: Clone, ann: Seat, cli: Command, tmp_path: Path
) -> None:
    """A working tree beside it is pushed to as the server itself is, and has none of its refs in its own folder."""
    cli.quick("init", "--server", "--no-resume", cwd=bare.path, code=0)
    gate = ann.ask(push=True)
    tip = answering.stop(ann.desk, gate, "over", push=True).gate.tip
    cli.quick("archive", cwd=ann.clone.path, code=0)
    (month,) = bare.refs("refs/hitl/archive")
    beside = tmp_path / "beside"
    bare.git("worktree", "add", "-q", "--detach", str(beside), month)
    for place in (beside, bare.path):
        with pytest.raises(GitError, match="it is not opened again"):
            ann.clone.git("push", str(place), f"{tip}:refs/hitl/open/{gate.id}")


@pytest.mark.parametrize("verb", ["accept", "sweep"])
def test_an_agent_does_not_hear_comments(alone: Seat, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    """It could name a forge of its own, which vouches for anybody."""
    event = alone.clone.write(
        "event.json", '{"action": "created", "issue": {}, "comment": {"id": 1, "body": "/approve"}}'
    )
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:1/")
    words = [str(event)] if verb == "accept" else []
    assert "is for people" in Command().quick("github", verb, *words, cwd=alone.clone.path, code=4).err


def test_a_record_is_no_other_gates(alone: Seat) -> None:
    """Put under a name of its own making, or over another gate's, it is broken: nobody answers what they did not read."""
    real, other = gate_of(alone), gate_of(alone)
    alone.clone.git("update-ref", f"refs/hitl/open/{other.id}", real.tip)
    assert Command().quick("verify", cwd=alone.clone.path).code == 1
    said = Command().quick("respond", other.id, "Postgres", cwd=alone.clone.path)
    assert said.code != 0
    assert alone.desk.refs.get(f"refs/hitl/open/{other.id}") == real.tip
