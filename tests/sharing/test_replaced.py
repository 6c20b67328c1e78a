"""Refs by which git reads one object as another: refused by a server of ours, found by `doctor`, and without effect on a gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from gitgate.exchange.syncing import publish, sync
from support.resuming import Seat
from support.testbed.command import Command
from support.testbed.repositories import Clone, GitError

REPLACE = "refs/replace/"


@pytest.fixture
def server(bare: Clone, cli: Command) -> Clone:
    cli.quick("init", "--server", cwd=bare.path, code=0)
    (bare.path / "hooks/post-receive").unlink()  # Nothing is resumed on this server: no push need start it.
    return bare


@pytest.fixture
def ann(server: Clone, clone_of: Callable[..., Clone]) -> Iterator[Seat]:
    with Seat(clone_of(server, "ann")) as seat:
        yield seat


def replacements(clone: Clone, tip: str, how: str) -> list[str]:
    """What a push of these does to whatever stands on the commit `tip`: git fails, or reads something else."""
    head, blob = clone.git("rev-parse", "HEAD"), clone.git("rev-parse", "HEAD:README")
    return {
        "a loop": [f"{head}:{REPLACE}{tip}", f"{tip}:{REPLACE}{head}"],
        "a file": [f"{blob}:{REPLACE}{tip}"],
        "another": [f"{head}:{REPLACE}{tip}"],
    }[how]


HOWS = ["a loop", "a file", "another"]


@pytest.mark.parametrize("how", HOWS)
def test_a_server_takes_no_replaced_object(ann: Seat, server: Clone, how: str) -> None:
    """Git itself refuses the refs, and gates go on."""
    gate = ann.ask()
    with pytest.raises(GitError, match="deny updating a hidden ref"):
        ann.clone.git("push", "origin", *replacements(ann.clone, gate.tip, how))
    assert not [ref for ref in server.refs() if ref.startswith(REPLACE)]
    ann.answer(gate)
    assert server.git("rev-parse", f"refs/hitl/open/{gate.id}") == ann.now(gate).tip


@pytest.mark.slow
@pytest.mark.parametrize("how", ["a loop", "a file"])
def test_doctor_finds_what_stops_pushes(ann: Seat, server: Clone, cli: Command, how: str) -> None:
    """Where they came before there was a refusal: named in a clone and on the server, with the command that mends it."""
    gate = ann.ask()
    server.git("config", "--unset-all", "receive.hideRefs")
    ann.clone.git("push", "-q", "origin", *replacements(ann.clone, gate.tip, how))
    ann.answer(gate, push=False)
    assert sync(ann.desk).refused[gate.id].startswith("refused: missing necessary objects")
    assert "git gate doctor" in cli.quick("sync", cwd=ann.clone.path, code=1).err
    there = findings(cli, ann.clone)
    name = f"{REPLACE}{gate.tip}"
    assert f"git push origin --delete {name}" in there
    mends = findings(cli, server)
    assert "git gate init --server" in mends
    for mend in (mend for mend in mends if mend.startswith("git update-ref -d ")):
        server.git(*mend.split()[1:])
    assert sync(ann.desk).refused == {}
    cli.quick("init", "--server", cwd=server.path, code=0)
    assert (findings(cli, server), findings(cli, ann.clone)) == ([], [])


def findings(cli: Command, clone: Clone) -> list[str]:
    found = cli.quick("doctor", "--json", cwd=clone.path).json["findings"]
    return [one["mend"] for one in found if one["name"] == "replaced objects"]


@pytest.mark.parametrize("how", HOWS)
def test_what_replaces_an_object_changes_no_gate(ann: Seat, how: str) -> None:
    """In a clone that has such refs: the gate is read, answered and published as it is."""
    gate = ann.ask()
    for spec in replacements(ann.clone, gate.tip, how):
        new, _, ref = spec.partition(":")
        ann.clone.git("update-ref", ref, new)
    answered = ann.answer(gate, push=False)
    assert ann.now(gate).history[0].commit == gate.tip
    assert publish(ann.desk, answered).pushed is True


def test_removing_takes_the_refusal_back(server: Clone, cli: Command) -> None:
    """What else is hidden stays so."""
    server.git("config", "--add", "receive.hideRefs", "refs/internal")
    cli.quick("init", "--remove", cwd=server.path, code=0)
    assert server.git("config", "--get-all", "receive.hideRefs") == "refs/internal"
