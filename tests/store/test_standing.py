"""Files that stand for a while as another commit has them: git does not see it, nothing is lost, and all of it is taken back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.store.work.pinned import suspended
from store.hard_cases import listing, snap, status
from store.standings import (
    Change,
    as_on_main,
    changed,
    deleted,
    edited_after_staging,
    folder_instead,
    of_these,
    off,
    on,
    shapes,
    untracked,
)
from support.testbed.repositories import Clone


@shapes
def test_they_stand_and_fall_again(branch: Clone, change: Change, stand: set[str]) -> None:
    """Whatever a branch did to them, they are as on `main` in between, and as the branch had them afterwards."""
    change(branch)
    before, said = listing(branch.path), status(branch.path)
    assert on(branch) == stand
    assert change is folder_instead or of_these(branch) == as_on_main(branch)
    assert off(branch) == set()
    assert (listing(branch.path), status(branch.path)) == (before, said)
    assert not branch.repository.standing_dir.exists()
    assert off(branch) == set()


@shapes
def test_nothing_of_it_is_committed(
    branch: Clone, change: Change, stand: set[str], git_of_agents: Callable[[], None]
) -> None:
    """An agent that commits everything commits what was staged, and its own: nothing that stands, nothing untracked."""
    change(branch)
    staged_tree = branch.git("write-tree")
    on(branch)
    git_of_agents()
    assert "conf" not in branch.git("status", "--porcelain").replace("D  conf", "").replace("A  conf", "")
    branch.git("add", "-A")
    assert branch.git("write-tree") == staged_tree
    branch.write("code", "worked\n")
    branch.git("commit", "-qam", "work")
    assert branch.git("ls-tree", "-r", "HEAD", "--", "rules", "conf", "sub") == branch.git(
        "ls-tree", "-r", staged_tree, "--", "rules", "conf", "sub"
    )


@pytest.mark.slow
@shapes
def test_what_is_saved_meanwhile_is_the_trees_own(branch: Clone, change: Change, stand: set[str]) -> None:
    """Who saves the work finds it as it was, and leaves it standing as it stood."""
    change(branch)
    own = branch.git("rev-parse", f"{snap(branch).work}^{{tree}}")
    on(branch)
    stood = listing(branch.path)
    with suspended(branch.repository):
        assert branch.git("rev-parse", f"{snap(branch).work}^{{tree}}") == own
    assert listing(branch.path) == stood
    off(branch)


def test_untracked_files_stay_untracked(branch: Clone) -> None:
    """A commit of one thing publishes no other, and a file keeps its bytes and its mode."""
    branch.commit(**{".gitattributes": "* text=auto\n"})
    place = branch.write("conf/secret", b"TOKEN\r\n")
    place.chmod(0o600)
    on(branch)
    branch.write("code", "worked\n")
    branch.git("commit", "-qam", "only code")
    assert branch.git("show", "--name-only", "--format=") == "code"
    off(branch)
    assert (place.read_bytes(), place.stat().st_mode & 0o777) == (b"TOKEN\r\n", 0o600)


def test_what_the_branch_has_not_caught_up_on_stands(
    branch: Clone, git_of_agents: Callable[[], None]
) -> None:
    """And a merge goes over it: then the tree has it itself."""
    branch.commit(code="side\n")
    branch.git("checkout", "-q", "main")
    branch.commit(rules="newer\n", **{"conf/more": "newer\n"})
    branch.git("checkout", "-q", "side")
    assert on(branch) == {"rules", "conf/more"}
    git_of_agents()
    branch.git("merge", "-q", "-m", "merge", "main")
    off(branch)
    assert branch.git("status", "--porcelain") == ""
    assert (branch.path / "rules").read_text() == "newer\n"


# What agents do meanwhile

SIDES: dict[str, Change] = {
    "changed": changed,
    "deleted": deleted,
    "edited": edited_after_staging,
    "untracked": untracked,
}
OPERATIONS = {
    "merge": ["merge", "-q", "-m", "merge", "main"],
    "rebase": ["rebase", "-q", "main"],
    "stash": ["stash"],
    "stash and back": ["-c", "alias.both=!git stash -q && git stash pop -q", "both"],
    "reset --hard": ["reset", "-q", "--hard"],
    "reset": ["reset", "-q"],
    "restore": ["restore", "--staged", "."],
    "checkout .": ["checkout", "--", "."],
    "another branch": ["checkout", "-q", "other"],
    "clean": ["clean", "-fdxq"],
    "cherry-pick": ["cherry-pick", "other"],
    "amend": ["commit", "-q", "--amend", "--no-edit"],
    "gc": ["gc", "-q", "--prune=now"],
}


@pytest.mark.slow
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_git_goes_on_as_ever(
    branch: Clone, side: str, operation: str, git_of_agents: Callable[[], None]
) -> None:
    """What an agent does with git meanwhile goes through, and nothing that was in a file and not in a commit is lost."""
    branch.git("checkout", "-q", "-b", "other", "main")
    branch.commit(other="other\n")
    branch.git("checkout", "-q", "main")
    branch.commit(code="newer\n", **{"sub/rules": "newer\n"})
    branch.git("checkout", "-q", "side")
    SIDES[side](branch)
    uncommitted = {
        name: branch.path / name for name in ("rules", "conf/new") if side in ("edited", "untracked")
    }
    had = {name: place.read_text() for name, place in uncommitted.items() if place.exists()}
    on(branch)
    git_of_agents()
    if "stash" in operation:
        branch.write("code", "half done\n")
    # Over what is staged git refuses those, whatever stands.
    branch.git(*OPERATIONS[operation], check=side != "edited" or operation not in ("rebase", "cherry-pick"))
    off(branch)
    for name, text in had.items():
        # Beside it, where git itself wrote the file: a stash brings the staged one back.
        assert text in {
            place.read_text() for place in (branch.path / name).parent.glob(f"{Path(name).name}*")
        }
    if not had and "stash" not in operation:
        assert branch.git("status", "--porcelain") == ""
    assert not branch.git("ls-files", "-t").startswith("S ")


def test_a_renamed_file_loses_its_mark(branch: Clone, git_of_agents: Callable[[], None]) -> None:
    changed(branch)
    on(branch)
    git_of_agents()
    branch.git("mv", "--sparse", "-f", "rules", "moved", check=False)
    branch.git(
        "update-index", "--add", "--cacheinfo", f"100644,{branch.git('rev-parse', 'HEAD:rules')},moved"
    )
    branch.git("update-index", "--skip-worktree", "moved")
    off(branch)
    assert "\nS " not in "\n" + branch.git("ls-files", "-t")


def test_what_was_written_meanwhile_stays(branch: Clone) -> None:
    """Whoever writes one of the files means it: it is left as it is, and named."""
    changed(branch)
    on(branch)
    branch.write("rules", "changed by the agent\n")
    assert off(branch) == {"rules"}
    assert (branch.path / "rules").read_text() == "changed by the agent\n"
    assert (branch.path / "conf/hook").read_text() == "side\n"
    assert branch.git("status", "--porcelain") == " M rules"


def test_and_what_was_nowhere_else_is_put_beside_it(branch: Clone) -> None:
    """The tree's own file was never committed: it is kept under another name."""
    edited_after_staging(branch)
    branch.write("rules.own", "somebody's\n")
    on(branch)
    branch.write("rules", "changed by the agent\n")
    assert off(branch) == {"rules"}
    assert (branch.path / "rules.own1").read_text() == "edited since\n"
    assert (branch.path / "rules.own").read_text() == "somebody's\n"


def test_a_folder_made_meanwhile_stays(branch: Clone) -> None:
    changed(branch)
    on(branch)
    (branch.path / "rules").unlink()
    branch.write("rules/one", "made by the agent\n")
    assert off(branch) == {"rules"}
    assert (branch.path / "rules/one").read_text() == "made by the agent\n"


def test_a_new_file_changed_meanwhile_stays(branch: Clone) -> None:
    deleted(branch)
    on(branch)
    branch.write("rules", "changed by the agent\n")
    assert off(branch) == {"rules"}
    assert branch.git("status", "--porcelain") == "?? rules"
