"""Refs: each move has the value that it expects; all moves happen or none; of many that race exactly one wins."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NoReturn

import pytest

from gitgate.errors import GateError, GitFailed, LostRace, RefLocked
from gitgate.store.git.refs import OPEN, Refs, read_ref
from gitgate.store.remote import RefMove
from support.testbed.alike import MISSING
from support.testbed.repositories import Clone

A, B, C = (f"{OPEN}{letter * 10}" for letter in "abc")


@pytest.fixture
def refs(repo: Clone) -> Refs:
    return Refs(repo.repository)


@pytest.fixture
def oids(repo: Clone) -> list[str]:
    return [repo.commit(f"commit {number}") for number in range(3)]


def test_a_ref_is_made_moved_and_removed(refs: Refs, oids: list[str]) -> None:
    """Each step from where it was."""
    assert refs.get(A) is None
    refs.update([RefMove(A, oids[0], None)])
    assert refs.get(A) == oids[0]
    refs.update([RefMove(A, oids[1], oids[0])])
    assert refs.get(A) == oids[1]
    refs.update([RefMove(A, None, oids[1])])
    assert refs.get(A) is None


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("case", ["there already", "not there", "moved", "moved before it goes"])
def test_a_ref_that_is_not_where_it_was_expected(
    refs: Refs, repo: Clone, oids: list[str], case: str, packed: bool
) -> None:
    """A lost race, and nothing moves."""
    refs.update([RefMove(A, oids[0], None)])
    if packed:
        repo.git("pack-refs", "--all")
    move = {
        "there already": RefMove(A, oids[1], None),
        "not there": RefMove(B, oids[1], oids[0]),
        "moved": RefMove(A, oids[1], oids[2]),
        "moved before it goes": RefMove(A, None, oids[1]),
    }[case]
    with pytest.raises(LostRace) as lost:
        refs.update([move])
    assert lost.value.kind == "conflict"
    assert lost.value.hint
    assert refs.under("refs/hitl") == {A: oids[0]}


def test_all_move_or_none(refs: Refs, oids: list[str]) -> None:
    """One that fails keeps the others where they were, also what would have gone."""
    refs.update([RefMove(A, oids[0], None), RefMove(B, oids[0], None)])
    with pytest.raises(LostRace):
        refs.update([RefMove(A, oids[1], oids[0]), RefMove(C, oids[1], None), RefMove(B, None, oids[2])])
    assert refs.under("refs/hitl") == {A: oids[0], B: oids[0]}
    refs.update([RefMove(A, oids[1], oids[0]), RefMove(C, oids[1], None), RefMove(B, None, oids[0])])
    assert refs.under("refs/hitl") == {A: oids[1], C: oids[1]}


def test_nothing_to_move_is_no_error(refs: Refs) -> None:
    """And starts no process."""
    refs.update([])
    assert refs.under("refs/hitl") == {}


def test_what_is_no_race_is_told_as_it_is(refs: Refs, oids: list[str]) -> None:
    """An object that is not there, a name that cannot be: trying again would not help."""
    for move in (
        RefMove(A, "1" * 40, None),
        RefMove(f"{OPEN}..", oids[0], None),
        RefMove("HEAD ", oids[0], None),
    ):
        with pytest.raises(GitFailed):
            refs.update([move])
    assert refs.under("refs/hitl") == {}


@pytest.mark.slow
def test_a_lock_that_stays_is_a_lost_race(refs: Refs, repo: Clone, oids: list[str]) -> None:
    """Somebody holds it longer than we wait."""
    lock = repo.path / ".git" / f"{A}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    with pytest.raises(LostRace):
        refs.update([RefMove(A, oids[0], None)])
    lock.unlink()
    refs.update([RefMove(A, oids[0], None)])


@pytest.mark.parametrize(
    ("why", "kind"),
    [
        ("File exists", RefLocked),
        ("No such file or directory", LostRace),
        ("Permission denied", GitFailed),
        ("No space left on device", GitFailed),
    ],
)
def test_what_keeps_a_lock_from_being_made_is_said(
    refs: Refs, oids: list[str], monkeypatch: pytest.MonkeyPatch, why: str, kind: type[GitFailed | LostRace]
) -> None:
    """Only a lock that is there is one; nobody was first where we may not write, or nothing fits on the disk."""
    said = f"fatal: prepare: cannot lock ref '{A}': Unable to create '/r/.git/{A}.lock': {why}\n"

    def fail(*_words: str, **_more: object) -> NoReturn:
        raise GitFailed(f"git update-ref: {said}", stderr=said)

    monkeypatch.setattr(refs.git, "run", fail)
    with pytest.raises(kind) as failed:
        refs.update([RefMove(A, oids[0], None)])
    assert type(failed.value) is kind


def test_no_hook_of_the_repository_has_a_say(refs: Refs, repo: Clone, oids: list[str]) -> None:
    """A reference-transaction hook of somebody's would stop or see every move."""
    hook = repo.write(".git/hooks/reference-transaction", "#!/bin/sh\nexit 1\n", executable=True)
    assert hook.exists()
    refs.update([RefMove(A, oids[0], None)])
    assert refs.get(A) == oids[0]


def test_get_takes_whole_names_alone(refs: Refs, repo: Clone) -> None:
    """Whatever git would have to complete, or to work out, is no name of a ref."""
    for name in ("--all", "-h", "HEAD^{commit}", "main", "heads/main", "ORIG_HEAD", "@", repo.head(), ""):
        with pytest.raises(GitFailed, match="not the full name of a ref"):
            refs.get(name)
    for name in ("refs/heads/main^{commit}", "refs/heads/main@{0}", "refs/heads/-h", "refs/heads/ma*"):
        assert refs.get(name) is None


@pytest.fixture
def all_kinds(refs: Refs, repo: Clone, oids: list[str]) -> list[str]:
    """Names of refs, and what is in their place: loose and packed, both, other than an id, in a worktree, or nothing."""
    refs.update([RefMove(name, oids[0], None) for name in (A, B, f"{OPEN}loose", "refs/heads/v1.2/x")])
    repo.git("pack-refs", "--all")
    refs.update([RefMove(B, oids[1], oids[0]), RefMove(C, oids[2], None)])
    refs.update(
        [RefMove(f"{OPEN}loose", None, oids[0]), RefMove("refs/tags/refs/hitl/nothing", oids[0], None)]
    )
    repo.git("symbolic-ref", "refs/remotes/origin/HEAD", A)
    repo.git("tag", "-a", "-m", "a tag", "told", oids[0])
    repo.git("update-ref", "refs/bisect/bad", oids[0])
    folder = repo.path / ".git"
    (folder / "refs/heads/link").symlink_to("main")
    (folder / "refs/heads/half").write_text(oids[0][:20])
    (folder / "refs/heads/none").write_text("")
    (folder / "refs/heads/much").write_text(oids[0] + "\tand more\n")
    (folder / "refs/heads/main.lock").write_text(oids[1] + "\n")
    names = (
        "half",
        "none",
        "much",
        "link",
        "main.lock",
        "../heads/main",
        "v1.2",
        "v1.2/x",
        "v1.2/x/y",
        "no",
    )
    return [
        *(f"refs/heads/{name}" for name in ("main", *names)),
        *(
            A,
            B,
            C,
            f"{OPEN}loose",
            OPEN,
            OPEN[:-1],
            "refs/hitl",
            "refs/hitl/nothing",
            A[:-1],
            A + "a",
            A + "/a",
        ),
        *(
            "refs/remotes/origin/HEAD",
            "refs/tags/told",
            "refs/tags/told^{commit}",
            "refs/bisect/bad",
            "HEAD",
        ),
    ]


@pytest.mark.parametrize("how", ["as it is", "long", "worktree", "reftable", "another place"])
def test_a_ref_is_what_git_says_that_it_is(
    refs: Refs, repo: Clone, all_kinds: list[str], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read from its files or said by git itself; of a name that git would complete, nothing."""
    here = repo
    if how == "worktree":
        repo.git("worktree", "add", "-q", "--detach", "../beside")
        here = Clone(repo.path.parent / "beside")
        refs = Refs(here.repository)
    said = {name: here.git("show-ref", "--verify", "--hash", name, check=False) or None for name in all_kinds}
    elsewhere = "refs/hitl/nothing"  # It is a tag whose name begins so.
    assert said[elsewhere] is None
    assert here.git("rev-parse", elsewhere)
    tip = repo.head()
    if how == "long":
        with (repo.path / ".git" / "packed-refs").open("ab") as packed:
            packed.writelines(f"{tip} refs/zzz/{number:06d}\n".encode() for number in range(20_000))
    elif how == "reftable":
        (repo.path / ".git" / "reftable").mkdir()
    elif how == "another place":  # an older git knows no such extension in version 0, and goes on
        repo.git("config", "extensions.refStorage", "files:///elsewhere")
        assert refs.in_files("refs/heads/main") is None
    assert {name: refs.get(name) for name in all_kinds} == said
    assert sum(oid is not None for oid in said.values()) > 8
    if how == "as it is":
        monkeypatch.setattr("subprocess.Popen", None)
        plain = (
            "refs/heads/main",
            A,
            B,
            C,
            f"{OPEN}loose",
            "refs/hitl",
            elsewhere,
            A + "/a",
            "refs/tags/told",
        )
        assert [refs.get(name) for name in plain] == [said[name] for name in plain]
        assert refs.under("refs/none/", "refs/hitl/archive/") == {}


@pytest.mark.parametrize("oid", ["0" * 40, "1" * 40])
def test_a_ref_to_nothing_is_no_missing_one(refs: Refs, repo: Clone, oid: str) -> None:
    """Whoever took it for one would look for the policy, or for a record, elsewhere."""
    # Its name has a comma, so that git is asked and not its files.
    (repo.path / ".git" / "refs" / "heads" / "x,y").write_text(f"{oid}\n")
    with pytest.raises(GitFailed, match="bad ref"):
        refs.get("refs/heads/x,y")


def test_what_may_not_be_read_is_gits_to_tell(
    refs: Refs, repo: Clone, oids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It knows how, and has the words where it does not."""
    refs.update([RefMove(A, oids[0], None)])

    def refused(*_: object) -> NoReturn:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refused)
    assert refs.get(A) == oids[0]
    assert refs.get(B) is None
    monkeypatch.setattr("os.scandir", refused)
    assert refs.under(OPEN) == {A: oids[0]}


def test_a_repository_that_is_away_is_not_one_without_refs(refs: Refs, repo: Clone, oids: list[str]) -> None:
    """A disk may be gone for a while: nobody is to think meanwhile that nothing waits."""
    refs.update([RefMove(A, oids[0], None)])
    for place in (repo.path / ".git", repo.path):
        place.rename(repo.path.parent / "away")
        with pytest.raises(GateError):
            refs.under(OPEN)
        (repo.path.parent / "away").rename(place)
    assert refs.under(OPEN) == {A: oids[0]}


def test_a_name_that_is_no_utf8_is_a_name(refs: Refs, repo: Clone, oids: list[str]) -> None:
    """As a branch is called that somebody made long ago."""
    old = "refs/heads/caf\udce9"
    refs.update([RefMove(old, oids[0], None)])
    assert refs.get(old) == refs.under(old)[old] == oids[0]
    assert refs.beginning(old[:-2]) == refs.beginning(old) == [old]
    assert refs.may_have("refs/caf\udce9/") is False
    refs.update([RefMove(old, None, oids[0])])
    assert refs.get(old) is None


def test_half_a_file_of_packed_refs_is_no_empty_one(refs: Refs, repo: Clone, oids: list[str]) -> None:
    """As the power left it, when it failed; git says what is wrong."""
    refs.update([RefMove(A, oids[0], None)])
    repo.git("pack-refs", "--all")
    packed = repo.path / ".git" / "packed-refs"
    packed.write_bytes(packed.read_bytes()[:-3])
    with pytest.raises(GitFailed, match="packed-refs"):
        refs.under("refs/none/")


RACER = """
import os, sys
from pathlib import Path
from gitgate.errors import LostRace
from gitgate.store.git.refs import Refs
from gitgate.store.remote import RefMove
from gitgate.store.git import discover

refs = Refs(discover(Path(sys.argv[1]), os.environ))
new, old = sys.argv[2], sys.argv[3] or None
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[4])):
    try:
        refs.update([RefMove(f"refs/hitl/open/{number:010d}", new, old)])
        print("won", number, flush=True)
    except LostRace:
        print("lost", number, flush=True)
"""


@pytest.mark.parametrize("existing", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_of_many_racing_processes_exactly_one_wins(
    refs: Refs, repo: Clone, oids: list[str], existing: bool
) -> None:
    """Each of ten refs is won once, whether it is made or moved; the others are told that they lost."""
    rounds, racers = 10, 6
    if existing:
        refs.update([RefMove(f"{OPEN}{number:010d}", oids[0], None) for number in range(rounds)])
    wanted = [repo.commit(f"racer {number}") for number in range(racers)]
    old = oids[0] if existing else ""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(repo.path), oid, old, str(rounds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for oid in wanted
    ]
    for racer in running:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    said = [racer.communicate("go\n", timeout=50)[0].splitlines() for racer in started(running)]
    assert [racer.returncode for racer in running] == [0] * racers
    won = Counter(line for lines in said for line in lines if line.startswith("won"))
    assert sorted(won.values()) == [1] * rounds
    winner = {
        f"{OPEN}{int(line.split()[1]):010d}": wanted[who]
        for who, lines in enumerate(said)
        for line in lines
        if "won" in line
    }
    assert refs.under("refs/hitl") == winner


def started(running: list[subprocess.Popen[str]]) -> list[subprocess.Popen[str]]:
    """All of them let go before the first is waited for."""
    for racer in running:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    return running


@pytest.mark.parametrize("packed", ["none", "some", "all"])
def test_names_that_begin_alike(refs: Refs, repo: Clone, oids: list[str], packed: str) -> None:
    """Loose, packed and both; a lock, a folder and a longer path are none. From a worktree the same."""
    names = ["abcdefghjk", "abcdzzzzzz", "bcdefghjkm"]
    refs.update([RefMove(OPEN + name, oids[0], None) for name in names])
    if packed != "none":
        repo.git("pack-refs", "--all")
    if packed == "some":
        refs.update(
            [RefMove(OPEN + "abcdefghjk", oids[1], oids[0]), RefMove(OPEN + "abcdyyyyyy", oids[1], None)]
        )
        names.append("abcdyyyyyy")
    repo.git("update-ref", f"{OPEN}deep/abcd", oids[0])
    repo.git("worktree", "add", "-q", "--detach", "../beside")
    there = Refs(Clone(repo.path.parent / "beside").repository)
    expected = sorted(OPEN + name for name in names if name.startswith("abcd"))
    assert refs.beginning(f"{OPEN}abcd") == there.beginning(f"{OPEN}abcd") == expected
    assert refs.beginning(f"{OPEN}abcdefghjk") == [OPEN + "abcdefghjk"]
    assert refs.beginning(f"{OPEN}zzzz") == refs.beginning("refs/nowhere/abcd") == []
    assert set(refs.under(f"{OPEN}abcd*")) == set(expected)


def test_another_store_of_refs_is_left_to_git(refs: Refs, repo: Clone, oids: list[str]) -> None:
    """Where there is a reftable, no file says what refs there are."""
    refs.update([RefMove(A, oids[0], None)])
    (repo.path / ".git" / "reftable").mkdir()
    assert refs.beginning(A[:-4]) == [A]
    assert refs.beginning(B[:-4]) == []


def test_a_ref_that_is_being_written_is_one_name(refs: Refs, oids: list[str], repo: Clone) -> None:
    """Beside it lies git's lock, which nobody means by the beginning of an id."""
    refs.update([RefMove(A, oids[0], None)])
    (repo.path / ".git" / f"{A}.lock").touch()
    assert refs.beginning(A[:-4]) == [A]


@pytest.mark.parametrize("deep", ["refs/other/a", "refs/other/a/b/c"])
@pytest.mark.parametrize("packed", [False, True])
def test_whether_there_may_be_any_below_a_folder(
    refs: Refs, repo: Clone, oids: list[str], deep: str, packed: bool
) -> None:
    """Loose or packed, and however deep; a name that only begins alike is none."""
    refs.update([RefMove("refs/others", oids[0], None)])
    assert not refs.may_have("refs/other/")
    refs.update([RefMove(deep, oids[0], None)])
    if packed:
        repo.git("pack-refs", "--all", "--prune")
    assert refs.may_have("refs/other/")
    assert not refs.may_have("refs/none/")


def test_a_failure_names_what_git_was_to_do(refs: Refs) -> None:
    """And not the settings before it."""
    with pytest.raises(GitFailed, match=r"git update-ref failed: .*nonexistent object"):
        refs.update([RefMove(B, "1" * 40, None)])


# many new refs at once


def test_a_ref_that_is_called_as_a_folder_is_none_below_it(refs: Refs, oids: list[str]) -> None:
    """Somebody may have made one."""
    refs.update([RefMove("refs/other", oids[0], None)])
    assert not refs.may_have("refs/other/")


@pytest.fixture
def many(oids: list[str]) -> list[RefMove]:
    names = [f"{OPEN}{number:010d}" for number in range(70)]
    names += [f"refs/gitgate/origin/open/{number:010d}" for number in range(50)]
    return [RefMove(name, oids[place % 3], None) for place, name in enumerate(names)]


def packed(repo: Clone) -> bytes:
    place = repo.path / ".git" / "packed-refs"
    return place.read_bytes() if place.exists() else b""


@pytest.mark.parametrize("before", ["nothing packed", "packed", "a tag packed"])
def test_many_new_refs_are_packed_as_git_packs_them(
    refs: Refs, repo: Clone, many: list[RefMove], before: str
) -> None:
    """Letter for letter; none has a file of its own, and what was there stays."""
    if before == "a tag packed":
        repo.git("tag", "-a", "-m", "words", "v1")
    if before != "nothing packed":
        repo.git("pack-refs", "--all")
    there = repo.refs()
    refs.update(many)
    assert repo.refs() == {**there, **{move.ref: move.new for move in many}}
    assert not list((repo.path / ".git" / OPEN).glob("*"))
    ours = packed(repo)
    repo.git("pack-refs", "--all")
    lines = packed(repo).splitlines(keepends=True)
    mine = [line for line in lines if before != "nothing packed" or b" refs/heads/main\n" not in line]
    assert ours == b"".join(mine)
    repo.git("fsck", "--strict")
    repo.git("update-ref", "-d", many[0].ref, many[0].new or "")
    assert many[0].ref not in repo.refs()


def test_of_many_new_refs_all_are_made_or_none(refs: Refs, repo: Clone, many: list[RefMove]) -> None:
    """Whether the one that is there already is loose or packed, and whatever it points at."""
    for pack in (False, True):
        refs.update([many[5]])
        if pack:
            repo.git("pack-refs", "--all")
        there = repo.refs()
        with pytest.raises(LostRace):
            refs.update(many)
        assert repo.refs() == there
        refs.update([RefMove(many[5].ref, None, many[5].new)])
    refs.update(many)
    assert repo.refs().items() >= {(move.ref, move.new) for move in many}


@pytest.mark.parametrize("loose", [False, True])
@pytest.mark.parametrize("other", ["refs/hitl", f"{OPEN}0000000003/below"])
def test_many_new_refs_are_no_folders_of_others(
    refs: Refs, repo: Clone, oids: list[str], many: list[RefMove], other: str, loose: bool
) -> None:
    """Git has no ref beside another whose name goes on from it."""
    repo.git("update-ref", other, oids[0])
    if not loose:
        repo.git("pack-refs", "--all")
    there = repo.refs()
    with pytest.raises((LostRace, GitFailed)):
        refs.update(many)
    assert repo.refs() == there


@pytest.mark.parametrize(
    "why",
    [
        "another writes",
        pytest.param("somebody is at one", marks=pytest.mark.slow),
        "another form",
        "a link",
        "others' refs",
    ],
)
def test_where_many_new_refs_cannot_be_packed_by_us_git_makes_them(
    refs: Refs, repo: Clone, oids: list[str], many: list[RefMove], why: str
) -> None:
    """It waits for whoever holds a lock, and reads what we do not."""
    git = repo.path / ".git"
    repo.git("pack-refs", "--all")
    if why == "another writes":
        (git / "packed-refs.lock").touch()
    elif why == "somebody is at one":
        (git / OPEN).mkdir(parents=True)
        (git / f"{many[0].ref}.lock").touch()
        with pytest.raises(LostRace):
            refs.update(many)
        (git / f"{many[0].ref}.lock").unlink()
        many = [RefMove(move.ref, oids[0], None) for move in many]
    elif why == "another form":
        (git / "packed-refs").write_bytes(packed(repo).replace(b" sorted", b" sorted later"))
    elif why == "a link":
        (git / "packed-refs").rename(git / "elsewhere")
        (git / "packed-refs").symlink_to("elsewhere")
    else:
        many = [RefMove(f"refs/other/{number}", oids[0], None) for number in range(120)]
    before = packed(repo)
    refs.update(many)
    (git / "packed-refs.lock").unlink(missing_ok=True)
    assert repo.refs().items() >= {(move.ref, move.new) for move in many}
    assert (packed(repo) == before) == (why != "somebody is at one")
    assert (git / "packed-refs").is_symlink() == (why == "a link")


def test_the_lock_of_whoever_comes_next_stays(
    refs: Refs, repo: Clone, many: list[RefMove], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is in its place, and a moment later somebody else locks it."""
    lock, real = repo.path / ".git" / "packed-refs.lock", Path.replace

    def replace(place: Path, to: Path) -> Path:
        done = real(place, to)
        if place == lock:
            lock.touch()
        return done

    monkeypatch.setattr(Path, "replace", replace)
    refs.update(many)
    assert lock.exists()
    assert len(repo.refs("refs/hitl/open")) == 70


def test_others_may_read_many_new_refs_where_they_share_the_repository(
    refs: Refs, repo: Clone, many: list[RefMove]
) -> None:
    """The file has the mode that git gave to the last one, or to what else everybody reads."""
    umask = os.umask(0o077)
    try:
        repo.git("config", "core.sharedRepository", "group")
        repo.git("checkout", "-q", "-b", "anew")
        (repo.path / ".git" / "packed-refs").unlink(missing_ok=True)
        refs.update(many)
    finally:
        os.umask(umask)
    mode = (repo.path / ".git" / "packed-refs").stat().st_mode
    assert mode & 0o060 == 0o060


@pytest.mark.slow
def test_many_new_refs_race_with_whoever_moves_refs(refs: Refs, repo: Clone, oids: list[str]) -> None:
    """Four make overlapping refs, one deletes and makes another: in the end each has one of the values that it was given."""
    names = [f"{OPEN}{number:010d}" for number in range(150)]
    busy = f"{OPEN}{'z' * 10}"
    code = (
        "import sys\nfrom pathlib import Path\nfrom gitgate.errors import GateError, GitFailed, LostRace\n"
        "from gitgate.store.git.refs import Refs\nfrom gitgate.store.git import discover\n"
        "from gitgate.store.remote import RefMove\nimport os\n"
        "refs = Refs(discover(Path('.'), os.environ))\noid, *names = sys.argv[1:]\n"
        "try:\n    refs.update([RefMove(name, oid, None) for name in names])\n    print('made')\n"
        "except (LostRace, GitFailed):\n    print('lost')\n"
    )
    parts = [names[:100], names[25:125], names[50:150], names[:100]]
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", code, oids[place % 3], *part], cwd=repo.path, stdout=subprocess.PIPE
        )
        for place, part in enumerate(parts)
    ]
    for _ in range(10):
        repo.git("update-ref", busy, oids[0])
        repo.git("update-ref", "-d", busy, oids[0])
    told = [racer.communicate(timeout=60)[0].decode().strip() for racer in racers]
    assert "made" in told
    made = [part for part, word in zip(parts, told, strict=True) if word == "made"]
    there = repo.refs(OPEN)
    assert {name for part in made for name in part} <= there.keys() <= set(names)
    assert set(there.values()) <= set(oids)
    repo.git("fsck")


def test_what_is_called_like_a_ref_is_in_these_suites_and_is_not_read(
    refs: Refs, repo: Clone, bare: Clone
) -> None:
    """Plain git takes it for the ref, where that is missing; with it comes a policy that nobody can read."""
    for here in (repo, bare):
        for ref in MISSING:
            like = here.git("rev-parse", "--verify", ref)
            assert here.git("show", f"{like}:.gitgate.yml").startswith("policy: [")
            assert Refs(here.repository).get(ref) is None
            assert read_ref(here.repository.git, ref) is None
        here.git("fsck", "--strict")
    assert refs.get("refs/heads/main") == repo.head()
