"""Which remote is taken, what is refused as one, and where we keep what it had."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.errors import RemoteUnreachable, UnsafeRemote, Usage
from gitgate.store.remote import (
    RefMove,
    choose_remote,
    overwrites_gates,
    read_remote,
    tracking,
    tracking_base,
    validate_move,
    validate_remote,
)
from gitgate.store.remote.push import batches
from support.testbed.repositories import Clone

OID = "1" * 40


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "-oProxyCommand=touch", "--upload-pack=x", "a\nb", "a\x1b[31m", " origin", "a\u202eb"),
        *("ext::sh -c id", "EXT::x", "ext://sh", "fd::3", "foo::bar", "ssh://-oProxyCommand=id/x", "u@-h:x"),
    ],
)
def test_what_could_run_a_program_or_fool_a_reader_is_no_remote(text: str) -> None:
    """Options, program-running addresses, control and bidi characters are refused before git sees them."""
    with pytest.raises(Usage):
        validate_remote(text)


@pytest.mark.parametrize(
    "text",
    [
        *("origin", "my/fork", "a.b", "ssh://git@example.org/x.git", "git@example.org:x/y.git", "/srv/x.git"),
        *("file:///srv/x y.git", "https://example.org/x", "ssh://[::1]:22/x", "../größe", "C:/x"),
    ],
)
def test_ordinary_names_and_addresses_are_remotes(text: str) -> None:
    """Names with dots and slashes, every usual kind of address, IPv6 and non-ASCII paths pass unchanged."""
    assert validate_remote(text) == text


def test_the_setting_comes_before_everything(repo: Clone) -> None:
    """`gitgate.remote` wins; then the branch's push remote, the default push remote, the branch's, origin, none."""
    place = repo.repository
    assert choose_remote(None, place) is None
    repo.git("remote", "add", "origin", "/nowhere")
    assert choose_remote(None, place) == "origin"
    repo.git("config", "branch.main.remote", "mine")
    assert choose_remote(None, place) == "mine"
    repo.git("config", "remote.pushDefault", "pushed")
    assert choose_remote(None, place) == "pushed"
    repo.git("config", "branch.main.pushRemote", "own")
    assert choose_remote(None, place) == "own"
    assert choose_remote("set", place) == "set"


def test_a_branch_that_follows_a_local_one_falls_back_to_origin(repo: Clone) -> None:
    """The remote `.` is this very repository, nobody to share with; nor is a detached HEAD in the way."""
    repo.git("remote", "add", "origin", "/nowhere")
    repo.git("config", "branch.main.remote", ".")
    assert choose_remote(None, repo.repository) == "origin"
    repo.git("checkout", "-q", "--detach")
    assert choose_remote(None, repo.repository) == "origin"


def test_a_hostile_setting_is_refused(repo: Clone) -> None:
    """A branch's remote that is an option or runs a program is not passed on."""
    repo.git("config", "branch.main.pushRemote", "--upload-pack=touch x")
    with pytest.raises(Usage):
        choose_remote(None, repo.repository)
    with pytest.raises(Usage):
        choose_remote("ext::sh", repo.repository)


def test_a_name_that_nobody_configured_says_how_to_add_it(repo: Clone) -> None:
    """A typing error in a remote's name is not taken for a path."""
    with pytest.raises(RemoteUnreachable) as told:
        read_remote(repo.repository, "orgin")
    assert "git remote add orgin" in told.value.hint


def test_a_configured_address_that_runs_programs_is_refused(repo: Clone) -> None:
    """An innocent name does not hide `ext::`, neither for fetching nor for pushing."""
    repo.git("remote", "add", "origin", "ext::sh -c 'touch pwned'")
    with pytest.raises(Usage):
        read_remote(repo.repository, "origin")
    repo.git("remote", "set-url", "origin", "/srv/x")
    repo.git("config", "remote.origin.pushurl", "ext::sh -c 'touch pwned'")
    with pytest.raises(Usage):
        read_remote(repo.repository, "origin")


@pytest.mark.parametrize(
    ("spec", "overwrites"),
    [
        ("+refs/*:refs/*", True),
        ("refs/hitl/*:refs/hitl/*", True),
        ("+refs/hitl/open/*:refs/hitl/open/*", True),
        ("refs/hitl/open/2345678923:refs/hitl/open/2345678923", True),
        ("refs/x/*:refs/h*", True),
        ("+refs/heads/*:refs/remotes/origin/*", False),
        ("+refs/hitl/open/*:refs/gitgate/origin/open/*", False),
        ("^refs/hitl/*", False),
        ("refs/heads/main", False),
    ],
)
def test_a_refspec_into_the_gates_namespace_is_known(spec: str, overwrites: bool) -> None:
    """A fetch that writes into refs/hitl would overwrite or prune gates that were not pushed yet."""
    assert overwrites_gates(spec) is overwrites


def test_a_mirror_clone_is_refused(bare: Clone, repo: Clone) -> None:
    """In a mirror the next `git fetch` deletes local gates: nothing is moved, and the mend is told."""
    repo.git("remote", "add", "--mirror=fetch", "origin", str(bare.path))
    with pytest.raises(UnsafeRemote) as told:
        read_remote(repo.repository, "origin")
    assert "git config remote.origin.fetch" in told.value.hint


@pytest.mark.parametrize(
    "name", ["a/b", "a.b", "x..y", ".x", "x.lock", "größe", "a%2Fb", "http://u:p@h/x", "/srv"]
)
def test_every_remote_has_one_component_for_what_it_had(name: str, repo: Clone) -> None:
    """Names with slashes and dots, and addresses, get a valid component that shows no password."""
    ref = tracking(name, "refs/hitl/open/2345678923")
    repo.git("check-ref-format", ref)
    assert ref.count("/") == 4
    assert "p@h" not in ref


@given(st.text(min_size=1, max_size=12), st.text(min_size=1, max_size=12))
def test_two_names_never_share_a_component(one: str, other: str) -> None:
    """What one remote had is never taken for another's."""
    assert (tracking_base(one) == tracking_base(other)) == (one == other)


@pytest.mark.parametrize(
    "move",
    [
        RefMove("refs/hitl/open/a b", OID, None),
        RefMove("refs/hitl/../heads/x", OID, None),
        RefMove("refs/hitl/open/x:refs/heads/main", OID, None),
        RefMove("--force", OID, None),
        RefMove("refs/hitl/open/x.lock", OID, None),
        RefMove("refs/hitl/open/x", "HEAD", None),
        RefMove("refs/hitl/open/x", "+" + OID, None),
        RefMove("refs/hitl/open/x", OID, "abc"),
        RefMove("refs/hitl/open/x", None, None),
    ],
)
def test_a_move_names_a_ref_and_whole_object_names(move: RefMove) -> None:
    """Nothing in a move can be read by git as an option, a force, a second refspec or a guess."""
    with pytest.raises(Usage):
        validate_move(move)


@given(st.lists(st.integers(1, 6), max_size=60))
def test_batches_hold_25_refs_and_never_split_a_gate(sizes: list[int]) -> None:
    """Whatever the mixture: every ref is sent once, in order of gates, and a gate's refs go together."""
    moves = [
        RefMove(f"refs/hitl/kind{kind}/gate{gate:06}", OID, None)
        for gate, size in enumerate(sizes)
        for kind in range(size)
    ]
    found = batches(moves)
    assert [move for batch in found for move in batch] == moves
    assert all(len(batch) <= 25 for batch in found)
    where: dict[str, int] = {}
    for number, batch in enumerate(found):
        for move in batch:
            assert where.setdefault(move.ref.rpartition("/")[2], number) == number
