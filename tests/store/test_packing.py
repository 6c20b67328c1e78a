"""Packing: several objects written together, file by file or by one git process, are what git would have written one by one."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitgate.context import open_desk
from gitgate.errors import BrokenRecord, GitFailed
from gitgate.store.git.canonical import REGULAR, TreeEntry, dump_commit, dump_tree
from gitgate.store.git.objects import BLOB, COMMIT, TREE, PlumbingObjects, head_of, object_id
from support.testbed.repositories import Clone, run_git

SIZES = [0, 1, 15, 16, 2047, 2048, 262_143, 262_144]


@pytest.fixture(params=["sha1", "sha256"])
def clone(request: pytest.FixtureRequest, person: object, tmp_path: Path) -> Clone:
    run_git("init", "-q", f"--object-format={request.param}", "new", cwd=tmp_path)
    return Clone(tmp_path / "new")


@pytest.fixture(params=["files", "git"])
def objects(request: pytest.FixtureRequest, clone: Clone) -> PlumbingObjects:
    repo = clone.repository
    folder = repo.common_dir / "objects" if request.param == "files" else None
    return PlumbingObjects(repo.git, None, len(repo.zero) // 2, folder=folder)


def configured(clone: Clone, *settings: str) -> PlumbingObjects:
    """What a verb's desk has in a clone with these settings."""
    for setting in settings:
        clone.git("config", *setting.split("="))
    desk = open_desk(clone.path, os.environ)
    found = desk.records.objects
    assert isinstance(found, PlumbingObjects)
    return found


def loose(clone: Clone, oid: str) -> Path:
    return clone.path / ".git" / "objects" / oid[:2] / oid[2:]


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


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_a_file_is_as_git_makes_it(repo: Clone, umask: int) -> None:
    """Its bytes, its mode and its folder's, whatever the umask; what is there already is no trouble, and nothing else is left."""
    store = configured(repo)
    assert store.folder is not None
    before = os.umask(umask)
    try:
        with store.together():
            ours = store.write(BLOB, b"ours")
        with store.together():
            store.write(BLOB, b"ours")
        gits = repo.git("hash-object", "-w", "--stdin", input=b"git's")
    finally:
        os.umask(before)
    store.close()
    places = [loose(repo, oid) for oid in (ours, gits)]
    for kept in zip(*([one, one.parent] for one in places), strict=True):
        assert len({one.stat().st_mode for one in kept}) == 1
    assert zlib.decompress(places[0].read_bytes()) == b"blob 4\0ours"
    assert [one.name for one in places[0].parent.iterdir()] == [places[0].name]


@pytest.mark.parametrize(
    "setting", ["core.sharedRepository=group", "core.fsync=all", "core.fsyncObjectFiles=true"]
)
def test_git_writes_where_it_was_told_how(repo: Clone, setting: str) -> None:
    """Modes for others, and what is to be on the disk before git goes on, are git's to see to."""
    store = configured(repo, setting)
    assert store.folder is None
    before = os.umask(0o077)
    try:
        with store.together():
            oid = store.write(BLOB, b"words")
    finally:
        os.umask(before)
    store.close()
    assert repo.git("cat-file", "-p", oid) == "words"
    assert bool(loose(repo, oid).stat().st_mode & 0o040) == ("shared" in setting)


def test_git_says_why_a_file_cannot_be_written(repo: Clone) -> None:
    """Something else stands where the object's folder would be."""
    store = configured(repo)
    oid = object_id(BLOB, b"words", 20)
    loose(repo, oid).parent.write_text("no folder", "utf-8")

    def fail() -> None:
        with store.together():
            store.write(BLOB, b"words")

    with pytest.raises(GitFailed, match="unpack-objects"):
        fail()
    store.close()


def test_what_cannot_be_put_in_its_place_is_left_to_git(repo: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written by half, say, as a disk filled up: git tries, and nothing of our attempt is left."""
    store = configured(repo)

    def fail(_place: Path, _to: Path) -> Path:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, store.together():
        patched.setattr(Path, "replace", fail)
        oid = store.write(BLOB, b"words")
        store.flush()
    store.close()
    assert repo.git("cat-file", "-p", oid) == "words"
    assert list((repo.path / ".git" / "objects").glob("**/tmp_obj*")) == []


def test_what_is_there_already_stays(repo: Clone) -> None:
    """As another account may have written it, that of whoever shares the folder; and it is not tidied away now."""
    oid = repo.git("hash-object", "-w", "--stdin", input=b"same")
    os.utime(loose(repo, oid), (1, 1))
    before = loose(repo, oid).stat()
    store = configured(repo)
    with store.together():
        assert store.write(BLOB, b"same") == oid
    store.close()
    after = loose(repo, oid).stat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert after.st_mtime > 1


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
