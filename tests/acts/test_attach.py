"""Attach: only a regular file below its folder is read."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from gitgate.acts import asking
from gitgate.errors import BadDocument, GateError, Usage
from gitgate.questions.file import MOST_BYTES


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "shots").mkdir(parents=True)
    (root / "shots" / "a.png").write_bytes(b"\x89PNG")
    (tmp_path / "secret").write_text("s")
    return root


def test_a_file_is_read_with_its_name(root: Path) -> None:
    """Given from the root or in full; a link within the tree is followed and keeps its own name."""
    (root / "link.png").symlink_to("shots/a.png")
    (root / "folder").symlink_to("shots")
    for path in (Path("shots/a.png"), root / "shots" / "a.png"):
        assert asking.read_attachment(path, root) == ("shots/a.png", b"\x89PNG")
    assert asking.read_attachment(Path("link.png"), root) == ("link.png", b"\x89PNG")
    assert asking.read_attachment(Path("folder/a.png"), root) == ("folder/a.png", b"\x89PNG")


def test_the_root_may_be_a_link_itself(root: Path, tmp_path: Path) -> None:
    """Only what is below it must stay below it."""
    (tmp_path / "here").symlink_to(root)
    assert asking.read_attachment(Path("shots/a.png"), tmp_path / "here")[0] == "shots/a.png"


@pytest.mark.parametrize(
    "path", ["../secret", "shots/../../secret", "out", "outside/secret", "chain", "/etc/passwd"]
)
def test_what_leads_out_of_the_tree_is_refused(root: Path, tmp_path: Path, path: str) -> None:
    """By `..`, by an absolute path, by a link, by a linked folder, by a chain of links."""
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "outside").symlink_to(tmp_path)
    (root / "chain").symlink_to("out")
    with pytest.raises(Usage, match=r"leads out of it|without `\.\.`") as caught:
        asking.read_attachment(Path(path), root)
    assert path in caught.value.message


def test_the_repositorys_own_files_are_refused(root: Path) -> None:
    """A remote's password may stand in .git/config: neither by name nor by a link."""
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("x")
    (root / "innocent").symlink_to(".git/config")
    for path in (".git/config", "innocent"):
        with pytest.raises(BadDocument, match=r"outside \.git"):
            asking.read_attachment(Path(path), root)


def test_what_is_no_file_is_refused(root: Path) -> None:
    """At once, without waiting for a writer, naming what was found."""
    os.mkfifo(root / "pipe")
    (root / "broken").symlink_to("nowhere")
    (root / "loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(root)
        listening.bind("socket")
        for path, words in {
            "pipe": "found a pipe", "shots": "found a folder", "socket": "found a socket", "broken": "no such file",
            "loop": "symbolic links|leads to itself", "absent": "no such file", "shots/a.png/b": "not a directory",
        }.items():  # fmt: skip
            with pytest.raises(Usage, match=f'"{path}": expected a (regular )?file.*({words})'):
                asking.read_attachment(Path(path), root)
    with pytest.raises(GateError):
        asking.read_attachment(root, root)


def test_a_device_is_refused() -> None:
    """It is never opened."""
    with pytest.raises(Usage, match="found a device"):
        asking.read_attachment(Path("null"), Path("/dev"))


def test_the_size_is_bounded(root: Path) -> None:
    """The largest is read, one byte more is not; a sparse terabyte costs nothing."""
    (root / "most").write_bytes(b"x" * MOST_BYTES)
    assert len(asking.read_attachment(Path("most"), root)[1]) == MOST_BYTES
    with (root / "more").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(Usage, match="expected at most 5,242,880 bytes; found 1,099,511,627,776"):
        asking.read_attachment(Path("more"), root)


def test_a_hostile_name_is_shown_harmlessly(root: Path) -> None:
    """Escapes in a file's name do not reach the terminal."""
    (root / "a\x1b[2J").write_text("x")
    with pytest.raises(BadDocument) as caught:
        asking.read_attachment(Path("a\x1b[2J"), root)
    assert caught.value.message.isprintable()
