"""Files that stand for a while as another commit has them: git does not see it, nothing is lost, and all of it is taken back."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.store import standing
from gitgate.store.standing import Files, compare, put_on, take_off
from store.hard_cases import listing, snap, status
from testbed.repositories import Clone


def wanted(path: bytes) -> bool:
    return path.split(b"/")[-1] == b"rules" or b"conf" in path.split(b"/")


FILES = Files((":(glob)**/rules", ":(glob)**/conf", ":(glob)**/conf/**"), wanted)
Change = Callable[[Clone], object]


@pytest.fixture
def repo(repo: Clone) -> Clone:
    """On a branch that has not changed anything yet; `main` has rules, in the middle of the tree as well."""
    repo.commit("rules", rules="main\n", **{"conf/hook": "main\n", "sub/rules": "main\n", "code": "main\n"})
    repo.git("checkout", "-q", "-b", "side")
    return repo


def on(repo: Clone, once: str | None = "main") -> set[str]:
    """Let the files stand as `main` has them, unless they are as the branch found them there."""
    main = repo.git("rev-parse", "main")
    before = repo.git("merge-base", "main", "side") if once else None
    found = compare(repo.repository, main, before, FILES)
    put_on(repo.repository, found)
    return {path.decode() for path in found.paths}


def off(repo: Clone) -> set[str]:
    return {path.decode() for path in take_off(repo.repository)}


def changed(repo: Clone) -> None:
    repo.commit(rules="side\n", **{"conf/hook": "side\n", "conf/new": "side\n"})


def staged(repo: Clone) -> None:
    repo.write("rules", "side\n")
    repo.git("add", "rules")


def edited_after_staging(repo: Clone) -> None:
    staged(repo)
    repo.write("rules", "edited since\n")


def untracked(repo: Clone) -> None:
    repo.write("conf/new", "side\n")


def ignored(repo: Clone) -> None:
    repo.commit(**{".gitignore": "conf/new\n"})
    repo.write("conf/new", "side\n")


def deleted(repo: Clone) -> None:
    repo.git("rm", "-q", "rules", "conf/hook")
    repo.commit()


def deleted_unstaged(repo: Clone) -> None:
    (repo.path / "rules").unlink()


def link_instead(repo: Clone) -> None:
    repo.git("rm", "-q", "-r", "conf")
    (repo.path / "conf").symlink_to(repo.path.parent)
    repo.commit()


def file_instead(repo: Clone) -> None:
    repo.git("rm", "-q", "-r", "conf")
    repo.commit(conf="side\n")


def folder_instead(repo: Clone) -> None:
    repo.git("rm", "-q", "rules")
    repo.commit(**{"rules/one": "side\n", "rules/two": "side\n"})


def executable(repo: Clone) -> None:
    (repo.path / "conf/hook").chmod(0o755)
    repo.commit()


SHAPES: list[tuple[Change, set[str]]] = [
    (changed, {"rules", "conf/hook", "conf/new"}),
    (staged, {"rules"}),
    (edited_after_staging, {"rules"}),
    (untracked, {"conf/new"}),
    (ignored, {"conf/new"}),
    (deleted, {"rules", "conf/hook"}),
    (deleted_unstaged, {"rules"}),
    (link_instead, {"conf", "conf/hook"}),
    (file_instead, {"conf", "conf/hook"}),
    (folder_instead, set()),
    (executable, {"conf/hook"}),
]
shapes = pytest.mark.parametrize(
    ("change", "stand"), SHAPES, ids=lambda given: getattr(given, "__name__", "")
)


def as_on_main(repo: Clone) -> dict[str, bytes]:
    """What `main` has of these files, by name."""
    names = [
        name for name in repo.git("ls-tree", "-r", "--name-only", "main").split() if wanted(name.encode())
    ]
    return {name: repo.git("show", f"main:{name}").encode() + b"\n" for name in names}


def of_these(repo: Clone) -> dict[str, bytes]:
    """The same of the working tree."""
    names = [name for name in listing(repo.path) if wanted(name.encode())]
    return {name: (repo.path / name).read_bytes() for name in names if (repo.path / name).is_file()}


@shapes
def test_they_stand_and_fall_again(repo: Clone, change: Change, stand: set[str]) -> None:
    """Whatever a branch did to them, they are as on `main` in between, and as the branch had them afterwards."""
    change(repo)
    before, said = listing(repo.path), status(repo.path)
    assert on(repo) == stand
    assert change is folder_instead or of_these(repo) == as_on_main(repo)
    assert off(repo) == set()
    assert (listing(repo.path), status(repo.path)) == (before, said)
    assert not (repo.repository.git_dir / standing.NOTE).exists()


@shapes
def test_nothing_of_it_is_saved_or_committed(repo: Clone, change: Change, stand: set[str]) -> None:
    """A snapshot taken in between has the branch's own version, and so has a commit of everything."""
    change(repo)
    own = repo.git("rev-parse", f"{snap(repo).work}^{{tree}}")
    on(repo)
    if change is not link_instead and change is not file_instead:
        # Where a folder of `main` stands in a file's place, git sees it; committed, it is what `main` has.
        assert repo.git("rev-parse", f"{snap(repo).work}^{{tree}}") == own
        repo.git("add", "-A")
        assert repo.git("write-tree") == own
    repo.write("code", "worked\n")
    repo.git("commit", "-qam", "work")
    assert "main\n" not in repo.git("show", "HEAD").replace("-main\n", "")
    off(repo)
    assert change in (link_instead, file_instead) or repo.git("status", "--porcelain") == ""


@shapes
def test_twice_and_after_a_kill(repo: Clone, change: Change, stand: set[str]) -> None:
    """Taken off twice is as once, and what a killed process left standing is taken off by the next."""
    change(repo)
    before = listing(repo.path)
    on(repo)
    assert off(repo) == set() == off(repo)
    assert on(repo) == stand
    off(repo)
    assert listing(repo.path) == before


def test_what_the_branch_has_not_caught_up_on_stays(repo: Clone) -> None:
    """Files that `main` changed and the branch did not are no matter: so a merge of `main` goes through."""
    repo.commit(code="side\n")
    repo.git("checkout", "-q", "main")
    repo.commit(rules="newer\n", **{"conf/more": "newer\n"})
    repo.git("checkout", "-q", "side")
    assert on(repo) == set()
    repo.git("merge", "-q", "main")
    assert (repo.path / "rules").read_text() == "newer\n"


def test_without_a_common_past_everything_counts(repo: Clone) -> None:
    repo.commit(rules="side\n")
    (repo.path / "conf/hook").unlink()
    repo.commit()
    assert on(repo, once=None) == {"rules", "conf/hook"}


def test_what_was_changed_meanwhile_stays(repo: Clone) -> None:
    """Whoever writes one of the files means it: it is left as it is, and named."""
    changed(repo)
    on(repo)
    repo.write("rules", "changed by the agent\n")
    assert off(repo) == {"rules"}
    assert (repo.path / "rules").read_text() == "changed by the agent\n"
    assert (repo.path / "conf/hook").read_text() == "side\n"
    assert repo.git("status", "--porcelain") == " M rules"


def test_a_folder_made_meanwhile_stays(repo: Clone) -> None:
    changed(repo)
    on(repo)
    (repo.path / "rules").unlink()
    repo.write("rules/one", "made by the agent\n")
    assert off(repo) == {"rules"}
    assert (repo.path / "rules/one").read_text() == "made by the agent\n"


def test_a_new_file_changed_meanwhile_stays(repo: Clone) -> None:
    deleted(repo)
    on(repo)
    repo.write("rules", "changed by the agent\n")
    assert off(repo) == {"rules"}
    assert repo.git("status", "--porcelain") == "?? rules"


def test_another_commit_staged_meanwhile(repo: Clone) -> None:
    """The index says what the files are to be, not what they were."""
    changed(repo)
    on(repo)
    repo.git("reset", "-q", "HEAD~1")
    off(repo)
    assert repo.git("status", "--porcelain") == "?? conf/new"
    assert (repo.path / "rules").read_text() == "main\n"


def test_a_conflict_stays_one(repo: Clone) -> None:
    """Files in conflict stand as well, and are in conflict afterwards, with the marks in them."""
    changed(repo)
    repo.git("checkout", "-q", "-b", "other", "main")
    repo.commit(rules="other\n")
    repo.git("checkout", "-q", "side")
    repo.git("merge", "-q", "other", check=False)
    before, said = listing(repo.path), status(repo.path)
    assert "rules" in on(repo)
    assert (repo.path / "rules").read_text() == "main\n"
    assert off(repo) == set()
    assert listing(repo.path) == before
    assert status(repo.path) == said


def test_a_link_leads_nowhere(repo: Clone, tmp_path: Path) -> None:
    """A folder that the branch made a link out of the tree: what it leads to is not touched."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "rules").write_text("somebody's\n")
    repo.git("rm", "-q", "-r", "sub")
    (repo.path / "sub").symlink_to(outside)
    repo.commit()
    assert on(repo) == set()
    assert on(repo, once=None) == set()
    off(repo)
    assert (outside / "rules").read_text() == "somebody's\n"
    assert (repo.path / "sub").is_symlink()


def test_a_link_made_meanwhile_leads_nowhere(repo: Clone, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "rules").write_text("main\n")
    repo.commit(**{"sub/rules": "side\n"})
    assert on(repo) == {"sub/rules"}
    (repo.path / "sub/rules").unlink()
    (repo.path / "sub").rmdir()
    (repo.path / "sub").symlink_to(outside)
    assert off(repo) == {"sub/rules"}
    assert (outside / "rules").read_text() == "main\n"


@pytest.mark.parametrize("step", ["_look_away", "_write", "_intend", "scratch_index"])
@shapes
def test_stopped_at_any_step(
    repo: Clone, change: Change, stand: set[str], step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever ended it in the middle, nothing of the branch's own is lost."""
    change(repo)
    before = listing(repo.path)

    class Killed(BaseException):
        pass

    calls = iter(range(100))
    whole = getattr(standing, step)

    def dies(*given: object, **named: object) -> object:
        # The first scratch index only looks; the second writes.
        if step == "scratch_index" and next(calls) == 0:
            return whole(*given, **named)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(standing, step, dies)
        with contextlib.suppress(Killed):
            on(repo)
    off(repo)
    assert before.items() <= listing(repo.path).items()


def test_names_that_are_no_text(repo: Clone) -> None:
    name = b"conf/\xff\n"
    (repo.path / "conf/x").write_text("side\n")
    (repo.path / "conf/x").rename(repo.path / name.decode("utf-8", "surrogateescape"))
    repo.commit()
    found = compare(repo.repository, repo.git("rev-parse", "main"), None, FILES)
    assert found.paths == (name,)
    put_on(repo.repository, found)
    assert json.loads((repo.repository.git_dir / standing.NOTE).read_text())["theirs"]
    assert off(repo) == set()
    assert (repo.path / name.decode("utf-8", "surrogateescape")).read_text() == "side\n"
