"""Lists look for news on a terminal, within a bound, and say how old what they show is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.testbed.command import Command
from support.testbed.repositories import Clone
from support.testbed.terminal import Terminal

Two = tuple[Clone, Clone]


@pytest.fixture
def two(bare: Clone, clone_of: Callable[..., Clone]) -> Two:
    """Two clones of one server, which know nothing of each other's gates."""
    return clone_of(bare, "ann"), clone_of(bare, "bob")


def asked(cli: Command, clone: Clone, words: str = "Which?") -> str:
    return cli.quick("ask", words, "-q", cwd=clone.path, code=0).line


def made_old(clone: Clone, seconds: int) -> None:
    """As if this clone had last synced so long ago."""
    mark = clone.path / ".git" / "gitgate" / "synced"
    at = mark.stat().st_mtime - seconds
    os.utime(mark, (at, at))


@pytest.mark.parametrize(("verb", "code"), [("show", 0), ("check", 8), ("wait", 8), ("respond", 0)])
def test_an_id_that_is_not_here_is_fetched(cli: Command, two: Two, verb: str, code: int) -> None:
    """Once, by whoever reads or answers it, in a clone that never synced as well; no script has to sync first."""
    ann, bob = two
    gate = asked(cli, ann)
    more = {"respond": ["Postgres"], "wait": ["--for", "0s"]}.get(verb, [])
    cli.quick(verb, gate[:5], *more, cwd=bob.path, code=code)
    cli.quick("show", gate, cwd=bob.path, code=0)


def test_join_fetches_an_id_that_is_not_here(
    cli: Command, pty_cli: Callable[..., Terminal], two: Two
) -> None:
    """As whoever answers without a session does; what then cannot be opened is said of the gate itself."""
    ann, bob = two
    gate = asked(cli, ann)
    bob.git("config", "gitgate.joinAgent", "nobody")
    said = pty_cli("join", gate[:5], cwd=bob.path).finish(code=1)
    assert "there is no gate" not in said
    assert bob.refs("refs/hitl/open/") == {f"refs/hitl/open/{gate}": ann.refs()[f"refs/hitl/open/{gate}"]}


def test_an_id_that_is_nowhere_says_that_it_was_looked_for(cli: Command, two: Two) -> None:
    """What is no id at all asks nobody, and nor does an id where there is no remote."""
    ann, bob = two
    cli.quick("sync", cwd=bob.path, code=0)
    said = cli.quick("show", "zzzz", cwd=bob.path, code=1).err
    assert "there is no gate zzzz here, nor on origin" in said
    mark = (bob.path / ".git" / "gitgate" / "synced").stat().st_mtime_ns
    cli.quick("show", "Postgres", cwd=bob.path, code=1)
    assert (bob.path / ".git" / "gitgate" / "synced").stat().st_mtime_ns == mark
    ann.git("remote", "remove", "origin")
    assert "origin" not in cli.quick("show", "zzzz", cwd=ann.path, code=1).err


def test_off_line_it_says_so(cli: Command, two: Two, tmp_path: Path) -> None:
    """The gate may be there: only that could not be asked."""
    _, bob = two
    bob.git("remote", "set-url", "origin", str(tmp_path / "gone.git"))
    for verb in ("show", "check", "respond"):
        said = cli.quick(verb, "zzzz", *(["x"] if verb == "respond" else []), cwd=bob.path, code=1).err
        assert "there is no gate zzzz here" in said
        assert "origin could not be asked" in said


@pytest.mark.parametrize(
    "verb", [(), *(pytest.param((word,), marks=pytest.mark.slow) for word in ("list", "status"))]
)
def test_a_terminal_shows_what_others_asked(
    cli: Command, two: Two, pty_cli: Callable[..., Terminal], verb: tuple[str, ...]
) -> None:
    """Without typing sync; the line that waits is gone afterwards."""
    ann, bob = two
    gate = asked(cli, ann)
    env = {"GITGATE_FRESH": "20", "CI": ""}
    said = pty_cli(*verb, cwd=bob.path, env=env).finish(code=0)
    assert "as of now, from origin: 1 new" in said
    assert (gate in said) or (verb == ("status",) and "1 awaiting" in said)
    assert "as of now, from origin\n" in pty_cli(*verb, cwd=bob.path, env=env).finish(code=0)


@pytest.mark.slow
def test_what_was_asked_last_is_shown_as_it_is_now(
    cli: Command, two: Two, pty_cli: Callable[..., Terminal]
) -> None:
    """Where nothing waits any more, `show` alone says what came of it; while something waits it shows that."""
    ann, bob = two
    cli.quick("sync", cwd=bob.path, code=0)
    gate = asked(cli, ann, "Last?")
    env = {"GITGATE_FRESH": "20", "CI": "", "GIT_PAGER": "cat"}
    assert "How to answer" in pty_cli("show", cwd=bob.path, env=env).finish(code=0)
    cli.quick("respond", gate, "yes", cwd=ann.path, code=0)
    said = pty_cli("show", cwd=bob.path, env=env).finish(code=0)
    assert "nothing waits; this was asked last:" in said
    assert f"{gate}  answered" in said
    assert "no gate waits for an answer" in cli.quick("diff", cwd=bob.path, code=1).err


def test_the_asker_hears_of_the_answer(cli: Command, two: Two, pty_cli: Callable[..., Terminal]) -> None:
    """Also with `check`, for a gate that others know."""
    ann, bob = two
    gate = asked(cli, ann)
    cli.quick("sync", "-q", cwd=bob.path, code=0)
    cli.quick("respond", gate, "Postgres", cwd=bob.path, code=0)
    assert cli.quick("check", gate, cwd=ann.path, code=8).out == ""
    said = pty_cli("check", gate, cwd=ann.path, env={"GITGATE_FRESH": "20", "CI": ""}).finish(code=0)
    assert "Postgres" in said


def test_a_script_is_told_the_age_and_asks_nobody(cli: Command, two: Two) -> None:
    """Without a terminal nothing is fetched; JSON has the time."""
    ann, bob = two
    cli.quick("sync", "-q", cwd=bob.path, code=0)
    made_old(bob, 7300)
    asked(cli, ann)
    listed = cli.quick("list", cwd=bob.path, code=0)
    assert listed.out == ""
    assert "as of 2h ago, from origin; to look again: git gate sync" in listed.err
    shape = cli.quick("list", "--json", cwd=bob.path, code=0).json["synced"]
    assert shape["remote"] == "origin"
    assert shape["at"] < cli.quick("list", "--sync", "--json", cwd=bob.path, code=0).json["synced"]["at"]


def test_without_a_remote_nothing_is_old(cli: Command, repo: Clone) -> None:
    """All there is is here."""
    listed = cli.quick("list", "--json", code=0)
    assert listed.json["synced"] is None
    assert "as of" not in cli.quick("list", code=0).err


def test_a_remote_that_is_slow_is_not_waited_for(
    cli: Command, two: Two, pty_cli: Callable[..., Terminal], tmp_path: Path
) -> None:
    """What is known is shown with its age, and the remote's silence is told."""
    ann, _ = two
    gate = asked(cli, ann)
    cli.quick("sync", "-q", cwd=ann.path, code=0)
    made_old(ann, 130)
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    silent.chmod(0o755)
    ann.git("config", "core.sshCommand", str(silent))
    ann.git("remote", "set-url", "origin", "ssh://git@server.example/x.git")
    terminal = pty_cli("list", cwd=ann.path, env={"GITGATE_FRESH": "0.3", "CI": ""})
    said = terminal.finish(code=0)
    assert gate in said
    assert "as of 2m ago: " in said
    assert "to try again: git gate sync" in said


def test_ctrl_c_ends_the_looking_alone(
    cli: Command, two: Two, pty_cli: Callable[..., Terminal], tmp_path: Path
) -> None:
    """Whoever does not want to wait sees what is known."""
    ann, _ = two
    gate = asked(cli, ann)
    cli.quick("sync", "-q", cwd=ann.path, code=0)
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    silent.chmod(0o755)
    ann.git("config", "core.sshCommand", str(silent))
    ann.git("remote", "set-url", "origin", "ssh://git@server.example/x.git")
    terminal = pty_cli("list", cwd=ann.path, env={"GITGATE_FRESH": "50", "CI": ""})
    terminal.expect("looking for news at origin")
    terminal.keys("\x03")
    assert gate in terminal.finish(code=0)


@pytest.mark.parametrize("value", ["0", "0s"])
def test_it_can_be_switched_off(cli: Command, two: Two, pty_cli: Callable[..., Terminal], value: str) -> None:
    """Then a terminal hears what a script hears."""
    ann, bob = two
    cli.quick("sync", "-q", cwd=bob.path, code=0)
    made_old(bob, 90)
    asked(cli, ann)
    bob.git("config", "gitgate.fresh", value)
    said = pty_cli("list", cwd=bob.path, env={"CI": ""}).finish(code=0)
    assert "looking for news" not in said
    assert "to look again: git gate sync" in said


def test_a_time_that_is_none_is_refused(cli: Command, repo: Clone) -> None:
    """With what was expected."""
    repo.git("config", "gitgate.fresh", "soon")
    assert "expected seconds, such as 1.5s or 0" in cli.quick("doctor", code=1).out
