"""Files that stand for others: what cannot stand, what is ended in the middle, and what somebody forged."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gitgate.errors import WorkFailed
from gitgate.store.work import aside, pinned
from gitgate.store.work import pinned as hiding
from gitgate.store.work.pinned import put_on, suspended
from store.hard_cases import listing, status
from store.standings import (
    Change,
    changed,
    edited_after_staging,
    folder_instead,
    look,
    off,
    on,
    shapes,
    untracked,
)
from support.testbed.repositories import Clone, GitError

# What nothing can be done about


def test_a_conflict_is_left_alone(branch: Clone) -> None:
    """Files in conflict are named, and stay so."""
    changed(branch)
    branch.git("checkout", "-q", "-b", "other", "main")
    branch.commit(rules="other\n")
    branch.git("checkout", "-q", "side")
    branch.git("merge", "-q", "other", check=False)
    before, said = listing(branch.path), status(branch.path)
    found = look(branch)
    assert "rules is in conflict" in found.odd
    put_on(branch.repository, found.stand)
    assert (branch.path / "rules").read_text() == before["rules"][1].decode()
    assert off(branch) == set()
    assert (listing(branch.path), status(branch.path)) == (before, said)


def submodule(branch: Clone) -> None:
    branch.git("rm", "-q", "-r", "conf")
    branch.git("update-index", "--add", "--cacheinfo", f"160000,{branch.git('rev-parse', 'HEAD')},conf")
    (branch.path / "conf").mkdir()


def nested(branch: Clone) -> None:
    branch.git("init", "-q", "conf/own")
    Clone(branch.path / "conf/own").commit("its own", rules="x")


def sparse(branch: Clone) -> None:
    branch.git("sparse-checkout", "set", "sub")


def a_pipe(branch: Clone) -> None:
    (branch.path / "rules").unlink()
    os.mkfifo(branch.path / "rules")


def named_as_a_folder(branch: Clone) -> None:
    folder_instead(branch)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (submodule, "conf is a submodule"),
        (nested, "conf/own/ is a repository of its own"),
        (sparse, "conf/hook is held back by a sparse checkout"),
        (a_pipe, "rules is no file"),
        (named_as_a_folder, "rules is a folder"),
    ],
)
def test_what_cannot_stand_is_said(branch: Clone, change: Change, word: str) -> None:
    """And it is as it was afterwards, whatever else stood."""
    change(branch)
    before, said = listing(branch.path), status(branch.path)
    found = look(branch)
    assert any(word in one for one in found.odd), found.odd
    put_on(branch.repository, found.stand)
    off(branch)
    assert (listing(branch.path), status(branch.path)) == (before, said)


@pytest.mark.slow
def test_a_sparse_checkout_stays_one(branch: Clone, git_of_agents: Callable[[], None]) -> None:
    """Other files stand beside what it holds back, and an agent's commit takes nothing away."""
    branch.commit(**{"sub/rules": "side\n"})
    branch.git("sparse-checkout", "set", "sub")
    patterns = (branch.path / ".git/info/sparse-checkout").read_text()
    assert on(branch) == {"sub/rules"}
    git_of_agents()
    branch.write("sub/code", "worked\n")
    branch.git("add", "-A")
    branch.git("commit", "-qam", "work")
    assert branch.git("show", "--name-status", "--format=") == "A\tsub/code"
    off(branch)
    assert (branch.path / ".git/info/sparse-checkout").read_text() == patterns
    assert (branch.path / "sub/rules").read_text() == "side\n"
    assert not (branch.path / "conf").exists()


def test_attributes_of_the_branch_change_nothing_of_it(branch: Clone) -> None:
    """A branch that has the files written otherwise, and changes no more, has them otherwise."""
    branch.commit(**{".gitattributes": "rules text eol=crlf\n"})
    (branch.path / "rules").unlink()
    branch.git("checkout", "--", "rules")
    assert (branch.path / "rules").read_bytes() == b"main\r\n"
    assert on(branch) == {"rules"}
    assert (branch.path / "rules").read_bytes() == b"main\n"
    off(branch)
    assert (branch.path / "rules").read_bytes() == b"main\r\n"


def test_a_link_that_leads_elsewhere_is_said(branch: Clone) -> None:
    """What it leads to is the branch's own."""
    branch.git("checkout", "-q", "main")
    (branch.path / "conf/led").symlink_to("../code")
    (branch.path / "conf/near").symlink_to("hook")
    branch.commit()
    branch.git("checkout", "-q", "side")
    branch.git("merge", "-q", "main")
    assert look(branch).odd == ("conf/led leads elsewhere",)


def test_a_link_leads_nowhere(branch: Clone, tmp_path: Path) -> None:
    """A folder that the branch made a link out of the tree: what it leads to is not touched."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "rules").write_text("somebody's\n")
    branch.git("rm", "-q", "-r", "sub")
    (branch.path / "sub").symlink_to(outside)
    branch.commit()
    assert on(branch) == set()
    assert look(branch).odd == ("sub/rules is behind a link",)
    assert (outside / "rules").read_text() == "somebody's\n"
    assert (branch.path / "sub").is_symlink()


def test_a_link_made_meanwhile_leads_nowhere(branch: Clone, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "rules").write_text("main\n")
    branch.commit(**{"sub/rules": "side\n"})
    assert on(branch) == {"sub/rules"}
    (branch.path / "sub/rules").unlink()
    (branch.path / "sub").rmdir()
    (branch.path / "sub").symlink_to(outside)
    assert off(branch) == {"sub/rules"}
    assert (outside / "rules").read_text() == "main\n"


def test_names_that_are_no_text(branch: Clone, git_of_agents: Callable[[], None]) -> None:
    """Neither UTF-8 nor free of what means something in a pattern."""
    names = [
        b"conf/\xff",
        b"conf/a*[b]?\\",
        b"conf/ends ",
        b"conf/#!x",
        "conf/ü".encode(),
        b"conf/a\r",
        b"conf/a\nb",
    ]
    for name in names:
        (branch.path / os.fsdecode(name)).write_text("side\n")
    (branch.path / "conf/ab").write_text("side\n")
    branch.commit()
    for name in names[:2]:
        (branch.path / os.fsdecode(name)).unlink()
    before = listing(branch.path)
    found = look(branch)
    assert set(found.stand) == {*names[2:], b"conf/ab"}
    put_on(branch.repository, found.stand)
    git_of_agents()
    assert branch.git("status", "--porcelain").count("\n") == 1
    off(branch)
    assert listing(branch.path) == before


# Ended in the middle


class Killed(BaseException):
    """As a process is killed: nothing of ours runs any more."""


def dies_at(monkeypatch: pytest.MonkeyPatch, number: int, error: type[BaseException]) -> Callable[[], bool]:
    """Whatever moves, writes or asks git of it fails from the given call on; whether there was such a call."""
    count = itertools.count()
    over = False

    def limited(whole: Callable[..., object]) -> Callable[..., object]:
        def act(*given: object, **named: object) -> object:
            nonlocal over
            over = over or next(count) >= number
            if over:
                raise error(28, "No space left on device") if error is OSError else error
            return whole(*given, **named)

        return act

    for room, names in (
        (pinned, ("take_away", "put_file", "save_note", "feed")),
        (hiding, ("feed", "_replace")),
    ):
        for name in names:
            monkeypatch.setattr(room, name, limited(getattr(room, name)))
    return lambda: over


@pytest.mark.slow
@pytest.mark.parametrize("error", [Killed, OSError])
@pytest.mark.parametrize("act", ["on", "off"])
@shapes
def test_stopped_at_any_step(
    branch: Clone,
    change: Change,
    stand: set[str],
    act: str,
    error: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed, or out of room, at whatever step: the next to come finds everything, and puts it back as it was."""
    change(branch)
    before, said = listing(branch.path), status(branch.path)
    for number in range(30):
        if act == "off":
            on(branch)
        with monkeypatch.context() as patched:
            died = dies_at(patched, number, error)
            with contextlib.suppress(Killed, OSError):
                on(branch) if act == "on" else off(branch)
        assert off(branch) == set()
        assert (listing(branch.path), status(branch.path)) == (before, said), number
        if not died():
            assert number > (2 if stand else -1)
            return
    pytest.fail("it has more steps than were tried")


@pytest.mark.slow
def test_between_file_systems(branch: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rename is not possible there; a copy that fails leaves what it was to replace."""
    changed(branch)
    (branch.path / "conf/link").symlink_to("hook")
    before = listing(branch.path)

    def far(self: Path, target: Path) -> None:
        raise OSError(errno.EXDEV, "other device")

    real = Path.rename
    monkeypatch.setattr(
        Path,
        "rename",
        lambda self, to: real(self, to) if self.name.endswith("gitgate-new") else far(self, to),
    )
    on(branch)
    assert (branch.path / "rules").read_text() == "main\n"
    off(branch)
    assert listing(branch.path) == before


@pytest.mark.parametrize(
    "note",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"stood": 3, "patterns": null}',
        "[" * 100_000,
        '{"stood": [{"path": "../x", "own": null, "committed": true, "index": null, "theirs": null, "seen": null}], "patterns": null}',
        '{"stood": [{"path": "a/.GIT/x", "own": null, "committed": true, "index": null, "theirs": null, "seen": null}], "patterns": null}',
        '{"stood": [{"path": "a\\u0000", "own": null, "committed": true, "index": null, "theirs": null, "seen": null}], "patterns": null}',
        '{"stood": [{"path": "a", "own": "../a", "committed": true, "index": null, "theirs": null, "seen": null}], "patterns": null}',
        '{"stood": [{"path": "a", "own": null, "committed": true, "index": ["100644", "-x"], "theirs": null, "seen": null}], "patterns": null}',
    ],
)  # fmt: skip
def test_a_forged_note_moves_nothing(branch: Clone, note: str) -> None:
    """It is an error that says where the files are; what it says is not guessed."""
    changed(branch)
    on(branch)
    (branch.repository.standing_dir / aside.NOTE).write_text(note)
    before = listing(branch.path)
    with pytest.raises(WorkFailed, match="cannot be read"):
        off(branch)
    assert listing(branch.path) == before


def test_a_link_in_the_folders_place_is_not_followed(branch: Clone, tmp_path: Path) -> None:
    changed(branch)
    branch.repository.standing_dir.symlink_to(tmp_path)
    before = set(tmp_path.iterdir())
    on(branch)
    assert set(tmp_path.iterdir()) == before
    off(branch)
    assert (branch.path / "rules").read_text() == "side\n"


def test_an_empty_file_is_a_file(branch: Clone, git_of_agents: Callable[[], None]) -> None:
    branch.git("checkout", "-q", "main")
    branch.commit(**{"conf/keep": ""})
    branch.git("checkout", "-q", "side")
    branch.git("merge", "-q", "main")
    branch.git("rm", "-q", "conf/keep")
    branch.commit()
    assert on(branch) == {"conf/keep"}
    git_of_agents()
    branch.git("checkout", "-q", "main")
    off(branch)
    assert branch.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_many_files_take_no_square_of_their_number(branch: Clone) -> None:
    """Two thousand of them: each is looked for once, not once for each other."""
    for number in range(2000):
        branch.write(f"conf/{number}", "side\n")
    found = look(branch)
    seen = 0

    class Counted(bytes):
        def __eq__(self, other: object) -> bool:
            nonlocal seen
            seen += 1
            return bytes.__eq__(self, other)

        __hash__ = bytes.__hash__

    put_on(branch.repository, {Counted(path): entry for path, entry in found.stand.items()})
    off(branch)
    assert seen < 100_000


# Several at once, and what others told git


@pytest.mark.slow
def test_two_askers_and_a_lift(branch: Clone) -> None:
    """Whoever saves the work at the same time, and whoever lifts meanwhile: nothing is lost, and nothing stands in the end."""
    edited_after_staging(branch)
    untracked(branch)
    before = listing(branch.path)
    own = {"rules": b"edited since\n", "conf/new": b"side\n"}
    on(branch)
    saw: list[dict[str, bytes]] = []

    def ask() -> None:
        with suspended(branch.repository):
            saw.append({name: (branch.path / name).read_bytes() for name in own})

    def lift() -> None:
        off(branch)

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(act) for act in (ask, ask, lift, ask, lift, ask)]:
            done.result()
    assert saw == [own] * 4
    off(branch)
    assert listing(branch.path) == before


def test_a_working_tree_with_files_that_stand_is_not_removed(branch: Clone, tmp_path: Path) -> None:
    """To git it looks clean; what was put aside would go with it."""
    branch.git("worktree", "add", "-q", "--detach", str(tmp_path / "tree"), "side")
    tree = Clone(tmp_path / "tree")
    tree.write("rules", "edited\n")
    on(tree)
    with pytest.raises(GitError, match="locked"):
        branch.git("worktree", "remove", str(tree.path))
    off(tree)
    tree.git("checkout", "--", "rules")
    branch.git("worktree", "remove", str(tree.path))


def test_what_a_person_hid_stays_hidden(branch: Clone) -> None:
    """Their own local changes to a file that git is not to look at, one that stands or any other."""
    changed(branch)
    for name in ("code", "rules"):
        branch.git("update-index", "--skip-worktree", name)
        branch.write(name, "local\n")
    on(branch)
    off(branch)
    assert {line[2:] for line in branch.git("ls-files", "-t").splitlines() if line.startswith("S ")} == {
        "code",
        "rules",
    }
    assert branch.git("status", "--porcelain") == ""


def test_a_sparse_checkout_made_meanwhile_ends(branch: Clone, git_of_agents: Callable[[], None]) -> None:
    """It was of ours, and ends with it: what it held back is there again, and not taken for deleted."""
    changed(branch)
    on(branch)
    git_of_agents()
    branch.git("sparse-checkout", "set", "sub")
    off(branch)
    assert branch.git("status", "--porcelain") == ""
    assert (branch.path / "code").read_text() == "main\n"
    assert not (branch.path / ".git/info/sparse-checkout").exists()


def test_the_settings_count_in_this_tree_alone(
    branch: Clone, git_of_agents: Callable[[], None], tmp_path: Path
) -> None:
    """And only while files stand: a person's own ignored files stay ignored while the work is saved, and afterwards."""
    (tmp_path / "ignored").write_text("private/\n")
    branch.git("config", "core.excludesFile", str(tmp_path / "ignored"))
    branch.write("private/notes", "mine\n")
    changed(branch)
    on(branch)
    git_of_agents()
    assert branch.git("status", "--porcelain") == ""
    with suspended(branch.repository):
        assert branch.git("status", "--porcelain") == ""
    assert branch.git("status", "--porcelain") == ""
    branch.git("worktree", "add", "-q", "--detach", str(tmp_path / "tree"))
    assert (tmp_path / "tree/rules").read_text() == "side\n"


def test_own_files_whose_folder_is_gone(branch: Clone) -> None:
    """The agent put a link or a file in its place: they are kept in the nearest folder that there is."""
    untracked(branch)
    branch.write("conf/hook", "edited\n")
    on(branch)
    shutil.rmtree(branch.path / "conf")
    (branch.path / "conf").symlink_to("sub")
    assert off(branch) == {"conf/hook", "conf/new"}
    assert (branch.path / "conf-new.own").read_text() == "side\n"
    assert (branch.path / "conf-hook.own").read_text() == "edited\n"


def test_what_git_cannot_store_comes_back_as_it_was(branch: Clone) -> None:
    """An encoding that nobody knows."""
    branch.write(".gitattributes", "rules working-tree-encoding=BOGUS\n")
    branch.git("add", ".gitattributes")
    branch.git("commit", "-qm", "unknown")
    branch.write("rules", "edited\n")
    assert on(branch) == {"rules"}
    assert off(branch) == set()
    assert (branch.path / "rules").read_text() == "edited\n"
