"""Who may read what in a repository: git's own files as git itself gives them, ours for one account alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gitgate.store import Sharing, folder_misfits, foreign, narrowed, private_folder, read_sharing
from gitgate.store.git import own_folder
from gitgate.store.git.objects import BLOB, LibraryObjects
from support.testbed.repositories import Clone, make_bare, run_git

VALUES = ["group", "true", "1", "all", "2", "everybody", "umask", "0", "false", "0640", "0660", "0600", ""]


@pytest.fixture
def narrow() -> object:
    """An account that gives others nothing of itself."""
    before = os.umask(0o077)
    yield
    os.umask(before)


def bits(place: Path) -> str:
    return oct(stat.S_IMODE(place.stat().st_mode))


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.usefixtures("narrow")
def test_an_object_is_shared_as_git_shares_it(tmp_path: Path, value: str) -> None:
    """Written by the library, an object and its folder have the modes that git gives to those that it writes itself."""
    bare = make_bare(tmp_path / "bare.git")
    if value:
        bare.git("config", "core.sharedRepository", value)
    theirs = bare.git("hash-object", "-w", "--stdin", input="by git")
    ours = LibraryObjects(bare.repository).write(BLOB, b"by the library")
    folder = bare.path / "objects"
    for name in (ours[:2], f"{ours[:2]}/{ours[2:]}"):
        like = theirs[:2] if "/" not in name else f"{theirs[:2]}/{theirs[2:]}"
        assert bits(folder / name) == bits(folder / like), name


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("value", ["group", "all"])
def test_what_is_narrower_than_the_repository_is_found_and_mended(bare: Clone, value: str) -> None:
    """Refs and objects that were written before it was shared; afterwards nothing is left to find."""
    run_git("hash-object", "-w", "--stdin", cwd=bare.path, input=b"early")
    shared = read_sharing({"core.sharedrepository": value})
    found = list(narrowed(bare.path, shared))
    assert {one.place.relative_to(bare.path).parts[0] for one in found} >= {"objects", "refs"}
    for one in found:
        one.mend()
    assert not list(narrowed(bare.path, shared))


def test_a_repository_that_is_not_shared_is_measured_by_its_own_folders(bare: Clone) -> None:
    """Where everybody may look into the folder of objects, they may look at all of it; what is shut as a whole stays shut."""
    oid = run_git("hash-object", "-w", "--stdin", cwd=bare.path, input=b"late").decode().strip()
    folder = bare.path / "objects" / oid[:2]
    folder.chmod(0o700)
    (folder / oid[2:]).chmod(0o400)
    found = {one.place: one.mode for one in narrowed(bare.path, Sharing())}
    assert found == {folder: 0o755, folder / oid[2:]: 0o444}
    (bare.path / "objects").chmod(0o700)
    assert not list(narrowed(bare.path, Sharing()))


def test_a_number_also_takes_away(bare: Clone) -> None:
    """`0640` is all that others get: nothing wider is asked for."""
    assert read_sharing({"core.sharedrepository": "0640"}) == Sharing(0o640, exact=True)
    assert not any(one.mode & 0o022 for one in narrowed(bare.path, Sharing(0o640, exact=True)))


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_what_an_account_keeps_is_shut(tmp_path: Path, umask: int) -> None:
    """Whatever the umask, and with all that had to be made above it; one that was open before is found."""
    before = os.umask(umask)
    try:
        assert private_folder(tmp_path / "a" / "b" / "c").is_dir()
    finally:
        os.umask(before)
    for name in ("a", "a/b", "a/b/c"):
        assert bits(tmp_path / name) == "0o700"
    assert not list(folder_misfits(tmp_path / "a"))
    (tmp_path / "a").chmod(0o755)
    (found,) = folder_misfits(tmp_path / "a")
    found.mend()
    assert bits(tmp_path / "a") == "0o700"


def test_a_file_in_the_place_of_a_folder_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(FileExistsError):
        private_folder(tmp_path / "a")


def test_another_accounts_folder_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first account has the plain name, each other one its own beside it; a link is judged by whose link it is."""
    plain = tmp_path / "gitgate"
    assert own_folder(plain) == plain
    plain.mkdir()
    assert own_folder(plain) == plain
    (plain / "log").write_text("")
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert own_folder(plain) == tmp_path / "gitgate-4711"
    assert [place for place, _ in foreign(plain)] == [plain / "log"]
