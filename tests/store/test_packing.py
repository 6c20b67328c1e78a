"""Packing: several objects written by one git process are the ones that git would have written one by one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitgate.errors import BrokenRecord
from gitgate.store.git.objects import (
    BLOB,
    COMMIT,
    REGULAR,
    TREE,
    PlumbingObjects,
    TreeEntry,
    dump_commit,
    dump_tree,
    head_of,
    object_id,
)
from support.testbed.repositories import Clone, run_git

SIZES = [0, 1, 15, 16, 2047, 2048, 262_143, 262_144]


@pytest.fixture(params=["sha1", "sha256"])
def clone(request: pytest.FixtureRequest, person: object, tmp_path: Path) -> Clone:
    run_git("init", "-q", f"--object-format={request.param}", "new", cwd=tmp_path)
    return Clone(tmp_path / "new")


@pytest.fixture
def objects(clone: Clone) -> PlumbingObjects:
    return PlumbingObjects(clone.repository.git, None, len(clone.repository.zero) // 2)


def test_all_kinds_arrive(clone: Clone, objects: PlumbingObjects) -> None:
    """A commit with its tree and its files, of every length of a size; git finds nothing wrong, in either format."""
    with objects.together():
        entries = [TreeEntry(REGULAR, b"f%d" % size, objects.write(BLOB, b"x" * size)) for size in SIZES]
        tree = objects.write(TREE, dump_tree(entries))
        commit = objects.write(COMMIT, dump_commit(tree, (), "Ada <ada@example.org>", 1, "words\n"))
        assert objects.read(commit)[0] == COMMIT
        assert clone.git("cat-file", "-t", commit, check=False) == ""
    clone.git("update-ref", "refs/heads/there", commit)
    clone.git("fsck", "--strict", "--no-dangling")
    assert clone.git("log", "--format=%an %s", "there") == "Ada words"
    assert [objects.read(entry.oid)[1] for entry in entries] == [b"x" * size for size in SIZES]
    objects.close()


def test_what_was_not_finished_is_not_written(clone: Clone, objects: PlumbingObjects) -> None:
    """An error half way leaves nothing to be found, and the next write goes its own way."""
    oid = object_id(BLOB, b"half", objects.width)

    def fail_half_way() -> None:
        with objects.together():
            assert objects.write(BLOB, b"half") == oid
            raise KeyError

    with pytest.raises(KeyError):
        fail_half_way()
    with pytest.raises(BrokenRecord):
        objects.read(oid)
    assert objects.write(BLOB, b"half") == oid
    assert objects.read(oid) == (BLOB, b"half")
    objects.close()


def test_flushed_is_there_for_git(clone: Clone, objects: PlumbingObjects) -> None:
    """What signs a commit needs its tree before the end."""
    with objects.together():
        oid = objects.write(BLOB, b"words")
        objects.flush()
        assert clone.git("cat-file", "-p", oid) == "words"
        objects.flush()


def test_a_tip_is_the_ref_and_its_commit_is_known(repo: Clone) -> None:
    """One question instead of two; a ref that is not there, or whose object is gone, is left to git."""
    objects = PlumbingObjects(repo.repository.git)
    commit = repo.commit("words")
    repo.git("update-ref", "refs/hitl/open/abcdefghjk", commit)
    assert objects.tip("refs/hitl/open/abcdefghjk") == commit
    assert objects.read(commit) == objects.read(commit)
    assert objects.tip("refs/hitl/open/bcdefghjkm") is None
    later = repo.commit("later")
    repo.git("update-ref", "refs/hitl/open/abcdefghjk", later)
    assert objects.tip("refs/hitl/open/abcdefghjk") == later
    (repo.path / ".git" / "objects" / later[:2] / later[2:]).unlink()
    objects.close()
    assert objects.tip("refs/hitl/open/abcdefghjk") is None
    objects.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(payload=st.binary(max_size=300))
def test_names_are_gits(repo: Clone, payload: bytes) -> None:
    """Ours and git's agree on what an object is called."""
    assert object_id(BLOB, payload, 20) == repo.git("hash-object", "--stdin", input=payload)


@given(st.integers(1, 4), st.integers(0, 1 << 40))
def test_a_head_holds_kind_and_size(kind: int, size: int) -> None:
    """Read back as the format of packs says."""
    first, *rest = head_of(kind, size)
    assert (first >> 4) & 7 == kind
    assert [byte >> 7 for byte in (first, *rest)] == [1] * len(rest) + [0]
    assert sum((byte & 127) << (4 + 7 * place) for place, byte in enumerate(rest)) + (first & 15) == size
