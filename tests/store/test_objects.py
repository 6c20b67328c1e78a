"""Objects: one contract, held by git's plumbing, by libgit2, and by the store in memory that only tests use."""

from __future__ import annotations

import gc
import random
import subprocess
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgate.errors import BrokenRecord, Failure
from gitgate.store import git as repository
from gitgate.store.git import objects, protected
from gitgate.store.git.canonical import (
    EXECUTABLE,
    FOLDER,
    REGULAR,
    TreeEntry,
    added_entry,
    dump_commit,
    dump_tree,
    entry_named,
    is_git_folder,
    parse_commit,
    parse_tree,
    with_entry,
)
from gitgate.store.git.objects import (
    BLOB,
    COMMIT,
    TREE,
    LibraryObjects,
    NamedObject,
    Objects,
    PlumbingObjects,
    open_objects,
)
from gitgate.store.git.refs import Refs
from support.testbed.memory import MemoryObjects
from support.testbed.repositories import Clone

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
ABSENT = "1" * 40


@pytest.fixture
def refs(repo: Clone) -> Refs:
    return Refs(repo.repository)


def plumbing(repo: Clone) -> Objects:
    return PlumbingObjects(repo.repository.git)


def plumbing_with_files(repo: Clone) -> Objects:
    """Git reads; what is written is put where git would put it."""
    return PlumbingObjects(repo.repository.git, folder=repo.path / ".git" / "objects")


def library(repo: Clone) -> Objects:
    return LibraryObjects(repo.repository)


def memory(_repo: Clone) -> Objects:
    return MemoryObjects()


def plumbing_then_library(repo: Clone) -> Objects:
    """Git at first, and libgit2 as soon as much is read."""
    store = open_objects(repo.repository, bulk=False)
    assert isinstance(store, PlumbingObjects)
    store.asked = objects.MANY_READS - 2
    return store


@pytest.fixture(params=[plumbing, plumbing_with_files, library, plumbing_then_library, memory])
def store(request: pytest.FixtureRequest, repo: Clone) -> Iterator[Objects]:
    make: Callable[[Clone], Objects] = request.param
    opened = make(repo)
    yield opened
    opened.close()


@pytest.fixture(params=[plumbing, plumbing_with_files, library])
def real(request: pytest.FixtureRequest, repo: Clone) -> Iterator[Objects]:
    make: Callable[[Clone], Objects] = request.param
    opened = make(repo)
    yield opened
    opened.close()


PAYLOADS = [b"", b"words\n", b"\0\n\0", b"blob 3\0abc", "é\n".encode() * 1000, bytes(range(256)) * 300]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_what_is_written_is_read(store: Objects, payload: bytes) -> None:
    """Byte by byte, however often, and what was asked before or after."""
    oid = store.write(BLOB, payload)
    other = store.write(BLOB, payload + b"!")
    for _ in range(2):
        assert store.read(oid) == (BLOB, payload)
        assert store.read(other) == (BLOB, payload + b"!")
    assert store.write(BLOB, payload) == oid


def test_names_are_gits_own(store: Objects, repo: Clone) -> None:
    """The same object has the same name in each store."""
    payload = b"words\n"
    oid = store.write(BLOB, payload)
    assert oid == repo.git("hash-object", "--stdin", input=payload)
    tree = store.write(TREE, b"")
    assert tree == EMPTY_TREE
    commit = store.write(COMMIT, dump_commit(tree, (), "A <a@b>", 5, "m\n"))
    assert store.read(commit) == (COMMIT, dump_commit(tree, (), "A <a@b>", 5, "m\n"))
    entry = TreeEntry(REGULAR, b"a", oid)
    assert store.read(store.write(TREE, dump_tree([entry]))) == (TREE, dump_tree([entry]))


def test_a_name_is_what_git_means_by_it(real: Objects, repo: Clone) -> None:
    """A commit, a file of it, a symbolic link's words; nothing but a whole id names where to begin."""
    repo.write("a folder/a file", "words\n")
    (repo.path / "link").symlink_to("elsewhere")
    tip = repo.commit("files")
    link = NamedObject(repo.git("rev-parse", "HEAD:link"), BLOB, b"elsewhere")
    commit, file, linked = real.find([f"{tip}^{{commit}}", f"{tip}:a folder/a file", f"{tip}:link"])
    assert commit == (tip, COMMIT, real.read(tip)[1])
    assert file is not None
    assert (file.kind, file.payload) == (BLOB, b"words\n")
    assert linked == link
    nothing = [f"{tip}:none", f"{tip}:two words", f"{tip}:a blob 7", f"{tip}:a\n{tip}", ABSENT]
    assert real.find([*nothing, f"{tip}:link"]) == [*[None] * len(nothing), link]
    for name in (
        "HEAD",
        "HEAD:link",
        "refs/heads/main",
        "main",
        "",
        tip[:39],
        f"{tip}~",
        f"{tip}0",
        f"x{tip}",
    ):
        with pytest.raises(BrokenRecord, match="does not begin with a full object id"):
            real.find([tip, name])


def test_a_file_of_the_protected_branch(real: Objects, repo: Clone, refs: Refs) -> None:
    """Of the first branch that is there, whether it has the file or not; never one that fills the memory."""
    repo.write(".gitgate.yml", "policy: {}\n")
    tip = repo.commit("policy")
    names = ["refs/remotes/origin/HEAD", "refs/heads/none", "HEAD", "refs/heads/main"]
    found = protected.read_protected(refs, real, ".gitgate.yml", names)
    assert found == protected.Protected(b"policy: {}\n", "HEAD:.gitgate.yml", tip)
    assert protected.protected_tip(refs, real, names) == tip
    assert protected.read_protected(refs, real, "none", names) is None
    assert protected.read_protected(refs, real, ".gitgate.yml", names[:2]) is None
    assert protected.protected_tip(refs, real, names[:2]) is None
    repo.write(".gitgate.yml", "#" * (protected.MOST_FILE + 1))
    repo.commit("large")
    with pytest.raises(Failure, match="HEAD is larger than 1048576 bytes"):
        protected.read_protected(refs, real, ".gitgate.yml", names)


@pytest.mark.parametrize("oid", [ABSENT, "0" * 40, "f" * 64])
def test_what_is_not_there_is_said_to_be_missing(store: Objects, oid: str) -> None:
    """With what to do; and the store goes on."""
    with pytest.raises(BrokenRecord, match="is not in this repository") as absent:
        store.read(oid)
    assert "git gate sync" in absent.value.hint
    assert store.read(store.write(BLOB, b"x")) == (BLOB, b"x")


@pytest.mark.parametrize(
    "oid",
    [
        "",
        "HEAD",
        "refs/heads/main",
        "main^{tree}",
        "1" * 39,
        "A" * 40,
        f"{ABSENT}\n{ABSENT}",
        "HEAD foo",
        "-x",
        "@{0}",
    ],
)
def test_only_a_full_id_names_an_object(store: Objects, oid: str) -> None:
    """Git would resolve any name, and a record's meaning would hang on a branch."""
    with pytest.raises(BrokenRecord, match="is no full object id"):
        store.read(oid)


def test_an_object_too_large_is_not_taken_into_memory(
    store: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused by its size; what is asked next is answered."""
    small, large = store.write(BLOB, b"x" * 1000), store.write(BLOB, b"x" * 1001)
    for module in ("gitgate.store.git.objects", "support.testbed.memory"):
        monkeypatch.setattr(f"{module}.MOST_BYTES", 1000)
    with pytest.raises(BrokenRecord, match=r"has 1,001 bytes; no part of a record is so large"):
        store.read(large)
    assert store.read(small) == (BLOB, b"x" * 1000)


def test_what_is_read_ahead_is_what_is_read(store: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    """In any order, some of it twice, more than any pipe holds; what is missing, no id or too large is left to `read`."""
    payloads = [*PAYLOADS, *(f"{number} {'x' * number * 60}".encode() for number in range(90))]
    oids = [store.write(BLOB, payload) for payload in payloads]
    large = store.write(BLOB, b"x" * 200_001)
    for module in ("gitgate.store.git.objects", "support.testbed.memory"):
        monkeypatch.setattr(f"{module}.MOST_BYTES", 200_000)
    found = store.ahead([ABSENT, *oids, "HEAD", *oids[:3], large])
    assert all(found[oid] == (BLOB, payloads[oids.index(oid)]) for oid in found if oid != large)
    assert [store.read(oid) for oid in oids] == [(BLOB, payload) for payload in payloads]
    for oid, words in ((ABSENT, "not in this repository"), ("HEAD", "no full"), (large, "200,001 bytes")):
        with pytest.raises(BrokenRecord, match=words):
            store.read(oid)
    store.forget()
    assert store.read(oids[-1]) == (BLOB, payloads[-1])


def blobs(repo: Clone, payloads: list[bytes]) -> list[str]:
    """Written by one git process."""
    names = [f"payload-{number}" for number in range(len(payloads))]
    for name, payload in zip(names, payloads, strict=True):
        repo.write(name, payload)
    return repo.git("hash-object", "-w", "--no-filters", "--stdin-paths", input="\n".join(names)).split()


def test_no_more_is_read_ahead_than_may_be_held(repo: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever pushes chooses how much there is: large objects are left out, and many end it."""
    monkeypatch.setattr(objects, "MOST_AHEAD", 1000)
    monkeypatch.setattr(objects, "MOST_HELD", 5000)
    store = plumbing(repo)
    payloads = [bytes([number]) * size for number in range(100) for size in (1000, 1001)]
    oids = blobs(repo, payloads)
    found = [store.ahead(oids[start : start + 10]) for start in range(0, 200, 10)]
    assert {len(payload) for part in found for _, payload in part.values()} == {1000}
    assert 5 <= sum(len(part) for part in found) <= 10
    assert [store.read(oid)[1] for oid in oids] == payloads
    store.close()


def test_what_is_read_ahead_is_asked_of_git_at_once(repo: Clone) -> None:
    """And not again afterwards: the object may even be gone by then."""
    store = PlumbingObjects(repo.repository.git)
    oids = blobs(repo, [f"{number}".encode() for number in range(20)])
    store.ahead(oids)
    for oid in oids:
        (repo.path / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
    assert [store.read(oid)[1] for oid in oids] == [f"{number}".encode() for number in range(20)]
    assert store.asked == 0
    store.close()


@pytest.mark.parametrize("said", ["", f"{ABSENT} blob 10\n", f"{ABSENT} blob 10\nhalf", f"{ABSENT} blob\n"])
def test_reading_ahead_waits_for_no_git_that_falls_silent(
    repo: Clone, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """It is ended; what was wanted is read one by one, and what is wrong said there."""
    monkeypatch.setattr(repository, "READ_TIMEOUT", 0.1)
    stuck = subprocess.Popen(
        ["sh", "-c", 'read asked; printf "$1"; exec sleep 60', "git", said],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    head = repo.git("rev-parse", "HEAD")
    store = PlumbingObjects(repo.repository.git, stuck)
    assert store.ahead([ABSENT, head]) == {}
    assert stuck.returncode is not None
    assert store.read(head)[0] == COMMIT
    store.close()


def test_it_may_be_closed_and_used_again(store: Objects) -> None:
    """Closing twice is no error either."""
    oid = store.write(BLOB, b"x")
    store.close()
    store.close()
    assert store.read(oid) == (BLOB, b"x")


def test_what_another_process_writes_meanwhile_is_seen(real: Objects, repo: Clone) -> None:
    """Loose or packed."""
    first = real.write(BLOB, b"first")
    assert real.read(first)[1] == b"first"
    loose = repo.git("hash-object", "-w", "--stdin", input="loose")
    assert real.read(loose)[1] == b"loose"
    repo.commit("more", file="packed")
    repo.git("repack", "-q", "-a", "-d")
    assert real.read(repo.git("rev-parse", "HEAD:file"))[1] == b"packed"
    assert real.read(first)[1] == b"first"


def test_a_branch_that_moves_meanwhile_is_looked_up_anew(real: Objects, repo: Clone, refs: Refs) -> None:
    """Also one that was not there, was packed, or is gone again."""
    first, second = repo.commit("first", file="1"), repo.commit("second", file="2")

    def new() -> tuple[str, bytes] | None:
        found = protected.read_protected(refs, real, "file", ["refs/heads/new"])
        return None if found is None else (str(found.commit), found.data)

    assert new() is None
    for tip, words in ((first, b"1"), (second, b"2")):
        repo.git("update-ref", "refs/heads/new", tip)
        assert new() == (tip, words)
        repo.git("pack-refs", "--all")
        assert new() == (tip, words)
    repo.git("update-ref", "-d", "refs/heads/new")
    assert new() is None


def test_one_git_says_what_names_mean_while_the_store_is_open(
    real: Objects, repo: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each question of its own would cost a process, and opening a gate asks one."""
    begun: list[tuple[str, ...]] = []
    pipe = repository.Git.pipe

    def counted(git: repository.Git, *args: str) -> repository.Piped:
        begun.append(args)
        return pipe(git, *args)

    monkeypatch.setattr(repository.Git, "pipe", counted)
    tip = repo.head()
    assert [real.find([name])[0] is None for name in (f"{tip}:", tip, ABSENT)] == [False, False, True]
    assert begun == [("cat-file", "--batch")]
    real.close()
    assert real.find([tip]) != [None]
    assert len(begun) == 2


def test_a_tag_is_a_tag(real: Objects, repo: Clone) -> None:
    """No commit, whatever it points at."""
    repo.git("tag", "-a", "-m", "words", "v1")
    assert real.read(repo.git("rev-parse", "v1"))[0] == "tag"


def test_replace_refs_and_grafts_change_nothing(real: Objects, repo: Clone) -> None:
    """What was recorded is read, not what somebody put in its place."""
    first = repo.git("rev-parse", "HEAD")
    true = real.read(first)
    other = repo.commit("other", file="other")
    repo.git("replace", first, other)
    git_dir = repo.path / ".git" / "info"
    git_dir.mkdir(exist_ok=True)
    (git_dir / "grafts").write_text(f"{first} {other}\n")
    assert real.read(first) == true


@pytest.mark.parametrize("bytes_there", [b"", b"garbage", zlib.compress(b"x")])
def test_a_damaged_file_is_told_and_the_store_goes_on(real: Objects, repo: Clone, bytes_there: bytes) -> None:
    """Half written, overwritten: an error, and the next object is read."""
    oid = repo.git("hash-object", "-w", "--stdin", input="true")
    fine = real.write(BLOB, b"fine")
    place = repo.path / ".git" / "objects" / oid[:2] / oid[2:]
    place.chmod(0o644)
    place.write_bytes(bytes_there)
    with pytest.raises(BrokenRecord, match=oid[:12]):
        real.read(oid)
    assert real.read(fine) == (BLOB, b"fine")


@pytest.mark.parametrize("size", [40, 200_000])
def test_an_object_cut_off_after_its_header_is_told(real: Objects, repo: Clone, size: int) -> None:
    """Git has said how long it is by then; the error comes, and the next object is read."""
    content = random.Random(size).randbytes(size)  # noqa: S311 - it has to be the same each time
    oid = repo.git("hash-object", "-w", "--stdin", input=content)
    place = repo.path / ".git" / "objects" / oid[:2] / oid[2:]
    whole = place.read_bytes()
    place.chmod(0o644)
    for cut in (len(whole) // 2, len(whole) - 1):
        place.write_bytes(whole[:cut])
        with pytest.raises(BrokenRecord, match=oid[:12]):
            real.read(oid)
    place.write_bytes(whole)
    assert real.read(oid) == (BLOB, content)


def test_borrowed_objects_are_read_with_the_same_care(repo: Clone, tmp_path: Path) -> None:
    """A clone that shares another's folder of objects: found there, and a damaged one told."""
    oid = repo.git("hash-object", "-w", "--stdin", input="true")
    borrower = tmp_path / "borrower"
    subprocess.run(["git", "clone", "-q", "--shared", str(repo.path), str(borrower)], check=True)
    store = LibraryObjects(Clone(borrower).repository)
    assert store.read(oid) == (BLOB, b"true")
    place = repo.path / ".git" / "objects" / oid[:2] / oid[2:]
    place.chmod(0o644)
    place.write_bytes(place.read_bytes()[:-2])
    with pytest.raises(BrokenRecord, match="damaged"):
        store.read(oid)
    store.close()


@pytest.mark.parametrize("said", ["", f"{ABSENT} blob 10\n", f"{ABSENT} blob 10\nhalf"])
def test_a_git_that_falls_silent_is_not_waited_for(
    repo: Clone, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """Some versions turn round in themselves over a damaged file. It is ended, and another is asked what comes next."""
    monkeypatch.setattr(repository, "READ_TIMEOUT", 0.1)
    stuck = subprocess.Popen(
        ["sh", "-c", 'read asked; printf "$1"; exec sleep 60', "git", said],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    store = PlumbingObjects(repo.repository.git, stuck)
    with pytest.raises(BrokenRecord, match=r"damaged: reading it, git has said nothing for 0\.1 s"):
        store.read(ABSENT)
    assert stuck.returncode is not None
    assert store.read(repo.git("rev-parse", "HEAD"))[0] == COMMIT
    store.close()


def test_other_content_than_the_name_says_is_an_error_and_not_an_answer(real: Objects, repo: Clone) -> None:
    """A loose file that somebody wrote."""
    oid = repo.git("hash-object", "-w", "--stdin", input="true")
    place = repo.path / ".git" / "objects" / oid[:2] / oid[2:]
    place.chmod(0o644)
    place.write_bytes(zlib.compress(b"blob 4\0fake"))
    try:
        kind, payload = real.read(oid)
    except BrokenRecord:
        return
    assert isinstance(
        real, PlumbingObjects
    )  # git trusts its own files, and checks them in fsck and on transfer
    assert (kind, payload) == ("blob", b"fake")


def test_the_cheaper_way_is_chosen(repo: Clone, tmp_path: Path) -> None:
    """Git for one gate, the library for many; git again where the library cannot read the format."""
    assert isinstance(open_objects(repo.repository, bulk=False), PlumbingObjects)
    assert isinstance(open_objects(repo.repository, bulk=True), LibraryObjects)
    subprocess.run(["git", "init", "-q", "--object-format=sha256", str(tmp_path / "long")], check=True)
    long = Clone(tmp_path / "long").repository
    found = open_objects(long, bulk=True)
    assert isinstance(found, PlumbingObjects)
    oid = found.write(BLOB, b"x")
    assert len(oid) == 64
    assert found.read(oid) == (BLOB, b"x")
    found.close()
    repo.git("config", "core.repositoryFormatVersion", "1")
    repo.git("config", "extensions.preciousObjects", "true")
    found = open_objects(repo.repository, bulk=True)
    assert found.read(found.write(BLOB, b"y")) == (BLOB, b"y")
    found.close()


def test_another_failure_of_the_library_is_not_swallowed(
    repo: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only its word that it cannot read this repository leads to git."""

    class GitError(Exception):
        pass

    def raising(error: Exception) -> Callable[[object], Objects]:
        def fail(_repo: object) -> Objects:
            raise error

        return fail

    monkeypatch.setattr(objects, "LibraryObjects", raising(GitError("unsupported extension")))
    assert isinstance(open_objects(repo.repository, bulk=True), PlumbingObjects)
    monkeypatch.setattr(objects, "LibraryObjects", raising(RuntimeError("broken")))
    with pytest.raises(RuntimeError):
        open_objects(repo.repository, bulk=True)


def test_a_reader_that_nobody_closes_ends(repo: Clone) -> None:
    """Whoever forgets to close it, or fails before that, leaves no process behind."""
    reading = open_objects(repo.repository, bulk=False)
    reading.begin()
    assert isinstance(reading, PlumbingObjects)
    assert reading.reader is not None
    process = reading.reader
    del reading
    gc.collect()
    assert process.returncode is not None


# Raw trees and commits

NAMES = st.binary(min_size=1, max_size=12).filter(
    lambda name: (
        b"\0" not in name and b"/" not in name and name not in (b".", b"..") and not is_git_folder(name)
    )
)
ENTRIES = st.lists(
    st.builds(
        TreeEntry,
        st.sampled_from([REGULAR, FOLDER, EXECUTABLE, "120000"]),
        NAMES,
        st.integers(1, 99).map("{:040x}".format),
    ),
    max_size=8,
    unique_by=lambda entry: entry.name,
)


@given(ENTRIES)
def test_a_tree_is_written_and_read(entries: list[TreeEntry]) -> None:
    """All of it, in git's own order."""
    data = dump_tree(entries)
    assert sorted(parse_tree(data)) == sorted(entries)
    assert dump_tree(parse_tree(data)) == data


@given(st.binary(max_size=80), ENTRIES, st.integers(0, 60))
def test_a_damaged_tree_is_a_broken_record(noise: bytes, entries: list[TreeEntry], cut: int) -> None:
    """Never another error, whatever the bytes."""
    for data in (noise, dump_tree(entries)[:cut], dump_tree(entries) + noise):
        try:
            found = parse_tree(data)
        except BrokenRecord:
            continue
        assert all(len(entry.oid) == 40 for entry in found)


def test_gits_order_of_a_tree(repo: Clone) -> None:
    """A folder sorts as if its name ended with a slash; git finds nothing to complain about."""
    blob = repo.git("hash-object", "-w", "--stdin", input="x")
    entries = [TreeEntry(REGULAR, name, blob) for name in (b"a.b", b"a0", b"A")]
    entries.append(TreeEntry(FOLDER, b"a", EMPTY_TREE))
    repo.git("hash-object", "-w", "-t", "tree", "--stdin")
    written = repo.git("hash-object", "-w", "-t", "tree", "--stdin", input=dump_tree(entries))
    assert repo.git("ls-tree", "--name-only", written).split() == ["A", "a.b", "a", "a0"]


@given(st.text(), st.lists(st.integers(0, 9).map("{:040x}".format), max_size=3))
def test_a_commit_is_written_and_read(message: str, parents: list[str]) -> None:
    """Its tree, its parents in order, its message, unsigned."""
    found = parse_commit(dump_commit(EMPTY_TREE, parents, "A <a@b>", 5, message))
    assert (found.tree, found.parents, found.signed) == (EMPTY_TREE, tuple(parents), False)
    assert found.message == message.encode("utf-8", "replace").decode().replace("\0", "?")


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"tree HEAD\n\nm",
        b"tree " + b"1" * 40 + b"\nparent HEAD\n\nm",
        b"tree " + b"1" * 40 + b"\nparent refs/heads/main\n\nm",
        b"tree " + b"1" * 39 + b"\xff\n\nm",
        b"parent " + b"1" * 40 + b"\n\nm",
        b"tree " + b"1" * 40 + b"\nparent HEAD\nauthor A <a@b> 5 +0000\ncommitter A <a@b> 5 +0000\n\nm",
    ],
)
def test_a_damaged_commit_is_a_broken_record(payload: bytes) -> None:
    """A parent that is a name would make the record hang on a ref."""
    with pytest.raises(BrokenRecord, match=r"is no full object id|has to be"):
        parse_commit(payload)


def test_a_signature_is_seen_and_a_forged_header_in_the_message_is_not() -> None:
    """The message begins with the first empty line."""
    head = f"tree {EMPTY_TREE}\nauthor A <a@b> 5 +0000\ncommitter A <a@b> 5 +0000\n".encode()
    assert parse_commit(head + b"gpgsig -----BEGIN\n more\n\nm").signed
    assert parse_commit(head + b"encoding UTF-8\ngpgsig x\n y\ngpgsig-sha256 z\n\nm").encoding == b"UTF-8"
    assert not parse_commit(head + b"\ngpgsig -----BEGIN\nparent " + b"1" * 40).signed
    assert parse_commit(head + b"\nparent " + b"1" * 40).parents == ()


# one file more, found without taking trees apart

FILE_NAMES = st.one_of(
    st.sampled_from("a.yaml b.yaml ab.yaml 100644 x".split()),
    st.text("ab01. ", min_size=1, max_size=4).filter(lambda name: name[0] != "."),
)
FILE_OIDS = st.binary(min_size=20, max_size=20) | st.sampled_from([b"\0" * 20, b"\x00100644 a\0" + b"b" * 10])
FILE_ENTRIES = st.builds(
    TreeEntry,
    st.sampled_from([REGULAR, EXECUTABLE, FOLDER]),
    FILE_NAMES.map(str.encode),
    FILE_OIDS.map(bytes.hex),
)
OTHERS = st.lists(FILE_ENTRIES, unique_by=lambda one: one.name)
FILES = OTHERS.map(lambda found: [entry._replace(mode=REGULAR) for entry in found])


def added(before: list[TreeEntry], new: bytes) -> TreeEntry | None:
    return added_entry(dump_tree(before), new, sorted(entry.name for entry in before))


@given(FILES, OTHERS, st.integers(0, 3))
def test_the_file_that_is_new(before: list[TreeEntry], others: list[TreeEntry], more: int) -> None:
    """Where it is said, it is true; it is said of every regular file that is all that is new."""
    names = {entry.name for entry in before}
    new = [entry for entry in others if entry.name not in names][:more]
    found = added(before, dump_tree([*before, *new]))
    expected = new[0] if len(new) == 1 and new[0].mode == REGULAR and int(new[0].oid, 16) else None
    assert found == expected or (found is None and any(b"100644 " in bytes.fromhex(e.oid) for e in before))


@given(FILES, st.data())
def test_a_name_that_is_there_is_not_new(before: list[TreeEntry], data: st.DataObject) -> None:
    """What replaces a file, or stands beside one of its name, takes the closer look."""
    files = [entry for entry in before if entry.mode == REGULAR]
    if files:
        twin = data.draw(st.sampled_from(files))._replace(oid="1" * 40)
        assert added(before, dump_tree([*before, twin])) is None
        changed = [twin if entry.name == twin.name else entry for entry in before]
        assert added(before, dump_tree(changed)) is None


@given(FILES, FILE_ENTRIES, st.data())
def test_a_file_elsewhere_than_at_its_place_is_none(
    before: list[TreeEntry], new: TreeEntry, data: st.DataObject
) -> None:
    """Wherever it was put among the bytes, also within another entry: what is found is what a whole reading finds."""
    payload, bytes_of_it = dump_tree(before), dump_tree([new._replace(mode=REGULAR)])
    at = data.draw(st.integers(0, len(payload)))
    forged = payload[:at] + bytes_of_it + payload[at:]
    found = added(before, forged)
    if found is not None:
        assert forged == dump_tree([*before, found])


@given(FILES, FILE_NAMES)
def test_a_file_is_put_in_its_place(before: list[TreeEntry], name: str) -> None:
    """As if the whole folder had been written anew; and found there again."""
    files = [entry for entry in before if entry.mode == REGULAR and entry.name != name.encode()]
    entry = TreeEntry(REGULAR, name.encode(), "1" * 40)
    payload = with_entry(dump_tree(files), entry)
    assert payload == dump_tree([*files, entry])
    assert entry_named(payload, entry.name) == entry
    assert entry_named(dump_tree(files), entry.name) is None
