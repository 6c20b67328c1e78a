"""A worker's own repositories: one for each address, bounded, and rid of what nobody comes for."""

from __future__ import annotations

import os
import time
from contextlib import closing
from pathlib import Path

import pytest

from gitgate.context import open_desk
from gitgate.errors import Failure, UnsafeRemote, Usage, tells_of_full_disk
from gitgate.resumption import cache
from gitgate.resumption.cache import IN_USE, TIDY_EVERY, USED, CacheTerms, caches, open_cache, tidy_cache
from support.testbed.repositories import Clone, run_git

NOW = time.time()


def aged(place: Path, seconds: float) -> None:
    """As if nothing there had changed for so long."""
    for one in (place, *place.iterdir()) if place.is_dir() else (place,):
        os.utime(one, (NOW - seconds, NOW - seconds), follow_symlinks=False)


def said_by(terms: CacheTerms, *, now: float = NOW) -> list[str]:
    said: list[str] = []
    tidy_cache(terms, os.environ, now, said.append)
    return said


def test_one_for_each_address_and_nothing_that_runs_a_program(person: object, tmp_path: Path) -> None:
    """Made once, for its owner alone; addresses that differ have folders that differ."""
    terms = CacheTerms(tmp_path / "repositories", 60, 10**9)
    first, second = (open_cache(terms, f"/srv/{name}/project.git", os.environ) for name in ("a", "b"))
    assert first != second
    assert open_cache(terms, "/srv/a/project.git", os.environ) == first
    assert caches(terms) == sorted([first, second])
    assert terms.root.stat().st_mode & 0o077 == 0
    assert run_git("config", "remote.origin.url", cwd=first).decode().strip() == "/srv/a/project.git"
    for address in ("ext::sh -c touch% pwned", "-u/srv/x", ""):
        with pytest.raises((Usage, UnsafeRemote)):
            open_cache(terms, address, os.environ)
    assert len(caches(terms)) == 2


def test_what_was_used_longest_ago_goes_first(person: object, tmp_path: Path) -> None:
    """Above the bound; one that was used within the hour stays, and so does one with somebody's working tree."""
    terms = CacheTerms(tmp_path / "repositories", 10**6, 1)
    old, older, new = (open_cache(terms, f"/srv/{name}.git", os.environ) for name in ("old", "older", "new"))
    for place, seconds in ((old, 2 * IN_USE), (older, 3 * IN_USE)):
        os.utime(place / USED, (NOW - seconds, NOW - seconds))
    (old / "gitgate" / "worktrees" / "7k2fw9c3ab").mkdir(parents=True)
    (line,) = said_by(terms)
    assert line.startswith(f"{older.name} is removed")
    assert caches(terms) == sorted([old, new])


def test_a_disk_without_room_is_cleared_at_once(
    person: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the bound, and looked at a moment ago: what nobody used for an hour goes all the same. Then it says what to do."""
    terms = CacheTerms(tmp_path / "repositories", 10**6, 10**12)
    old, new = (open_cache(terms, f"/srv/{name}.git", os.environ) for name in ("old", "new"))
    os.utime(old / USED, (NOW - 2 * IN_USE, NOW - 2 * IN_USE))
    assert said_by(terms) == []
    cache.require_room(terms)
    monkeypatch.setattr(cache, "LEAST_ROOM", 10**18)
    (line,) = said_by(terms, now=NOW + 1)
    assert line.startswith(f"{old.name} is removed, to make room")
    assert caches(terms) == [new]
    with pytest.raises(Failure, match="the disk is full") as full:
        cache.require_room(terms)
    assert f"du -sh {terms.root}/*" in full.value.hint
    assert tells_of_full_disk(full.value)


def test_what_was_not_committed_stays_for_its_time(bare: Clone, tmp_path: Path) -> None:
    """Then the working tree goes, and the logs; looked for now and then, not after each gate."""
    bare.git("config", "receive.denyCurrentBranch", "ignore")
    terms = CacheTerms(tmp_path / "repositories", 3600, 10**9)
    place = open_cache(terms, str(bare.path), os.environ)
    tree = run_git("hash-object", "-t", "tree", "-w", "/dev/null", cwd=place).decode().strip()
    commit = run_git("commit-tree", "-m", "base", tree, cwd=place).decode().strip()
    trees = [place / "gitgate" / "worktrees" / name for name in ("7k2fw9c3ab", "8m3gx2d4cd")]
    for one in trees:
        run_git("worktree", "add", "-q", "--detach", str(one), commit, cwd=place)
        (one / "notes.txt").write_text("not committed\n", encoding="utf-8")
    log = place / "gitgate" / "logs" / "7k2fw9c3ab.log"
    log.parent.mkdir()
    log.write_text("words\n", encoding="utf-8")
    aged(trees[0], 7200)
    aged(log, 7200)
    (line,) = said_by(terms)
    assert "nobody came for what was not committed in it" in line
    assert [one.exists() for one in trees] == [False, True]
    assert not log.exists()
    aged(trees[1], 7200)
    assert said_by(terms, now=NOW + 1) == []
    assert trees[1].exists()
    assert said_by(terms, now=NOW + TIDY_EVERY + 1) != []
    assert not trees[1].exists()


@pytest.mark.slow
def test_an_agents_git_needs_no_remote(bare: Clone, tmp_path: Path) -> None:
    """What was brought is whole, also from a server that would leave something out: its history is read without the network."""
    bare.git("config", "uploadpack.allowFilter", "true")
    before = bare.git("rev-parse", "main:README")
    blob = bare.git("hash-object", "-w", "--stdin", input="something else\n")
    tree = bare.git("mktree", input=f"100644 blob {blob}\tREADME\n")
    bare.git("update-ref", "refs/heads/main", bare.git("commit-tree", "-p", "main", "-m", "next", tree))
    place = open_cache(CacheTerms(tmp_path / "repositories", 60, 10**9), bare.path.as_uri(), os.environ)
    with closing(open_desk(place, os.environ)) as desk:
        cache.bring_policy(desk)
    bare.path.rename(bare.path.with_name("away"))
    assert b"something else" in run_git("log", "-p", "main", cwd=place)
    assert run_git("cat-file", "-t", before, cwd=place) == b"blob\n"
