"""What git is started with when it talks to a server, and how it is ended."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gitgate.errors import Failure
from gitgate.store.git import Repository
from gitgate.store.remote import Remote, read_remote
from gitgate.store.remote.wire import (
    GitConversation,
    GitSpoken,
    converse,
    explain,
    gist,
    server_lines,
    surroundings,
)
from support.resuming import until
from support.testbed.repositories import Clone

PLACE = Remote("origin", ("/srv/x",), ("/srv/x",))


def seen(repo: Clone, place: Remote = PLACE, *, prompts: bool = False, **env: str) -> dict[str, str]:
    repository = repo.repository
    repository.git.env.pop("GIT_SSH_COMMAND", None)
    repository.git.env.pop("GIT_TERMINAL_PROMPT", None)
    repository.git.env.update(env)
    return surroundings(repository, place, prompts=prompts)


def test_nobody_is_asked_where_there_is_no_terminal(repo: Clone) -> None:
    """Git does not prompt, ssh runs in batch mode; with a terminal both may ask."""
    quiet, asking = seen(repo), seen(repo, prompts=True)
    assert quiet["GIT_TERMINAL_PROMPT"] == "0"
    assert quiet["GIT_SSH_COMMAND"] == "ssh -oBatchMode=yes"
    assert not {"GIT_TERMINAL_PROMPT", "GIT_SSH_COMMAND"} & set(asking)


@pytest.mark.parametrize(
    ("command", "variant", "told"),
    [
        ("ssh -i key", "", "ssh -i key -oBatchMode=yes"),
        ("'/usr/bin/ssh' -v", "auto", "'/usr/bin/ssh' -v -oBatchMode=yes"),
        ("plink -batch", "", None),
        ("ssh", "plink", None),
        ("my-wrapper", "", None),
    ],
)
def test_only_openssh_is_told_not_to_ask(repo: Clone, command: str, variant: str, told: str | None) -> None:
    """The user's own options stay; other programs and wrappers do not know ours."""
    by_env = seen(repo, GIT_SSH_COMMAND=command, GIT_SSH_VARIANT=variant)
    assert by_env["GIT_SSH_COMMAND"] == (told or command)
    configured = Remote("origin", ("x",), ("x",), ssh_command=command, ssh_variant=variant)
    assert seen(repo, configured).get("GIT_SSH_COMMAND") == told


def test_a_program_of_the_users_for_ssh_is_left_alone(repo: Clone) -> None:
    """GIT_SSH names a program, which takes no options of ours."""
    assert "GIT_SSH_COMMAND" not in seen(repo, GIT_SSH="/opt/ssh")


def test_settings_given_through_the_environment_stay(repo: Clone) -> None:
    """A push mirror's override is added after what is there."""
    place = Remote("a=b", ("x",), ("x",), mirror=True)
    env = seen(repo, place, GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="user.name", GIT_CONFIG_VALUE_0="x")
    assert (env["GIT_CONFIG_COUNT"], env["GIT_CONFIG_KEY_1"], env["GIT_CONFIG_VALUE_1"]) == (
        "2",
        "remote.a=b.mirror",
        "false",
    )


def test_ssh_settings_come_from_gits_configuration(repo: Clone) -> None:
    """`core.sshCommand` is what the user's own git uses."""
    repo.git("remote", "add", "origin", "/srv/x")
    repo.git("config", "core.sshCommand", "ssh -i mine")
    assert read_remote(repo.repository, "origin").ssh_command == "ssh -i mine"


@pytest.mark.slow
def test_ending_takes_what_git_started_along(repo: Clone, tmp_path: Path) -> None:
    """Silence is ended together with the helpers that caused it, even ones that ignore being asked."""
    mark = tmp_path / "pid"
    repo.git("config", "alias.hang", f"!trap '' TERM; echo $$ > {mark}; while :; do sleep 0.1; done")
    said = converse(repo.repository, PLACE, (), ["hang"], timeout=2, prompts=False)
    assert said.silenced
    pid = int(mark.read_text(encoding="utf-8"))
    until(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.slow
def test_a_sign_of_life_is_enough(repo: Clone) -> None:
    """Whoever says something now and then is waited for longer than the limit for silence."""
    repo.git("config", "alias.slow", "!for n in 1 2 3 4 5 6; do echo $n >&2; sleep 0.5; done")
    said = converse(repo.repository, PLACE, (), ["slow"], timeout=2.5, prompts=False)
    assert (said.code, said.silenced, said.err) == (0, False, ["1", "2", "3", "4", "5", "6"])


@pytest.mark.slow
def test_a_child_that_keeps_our_pipe_is_not_waited_for(repo: Clone) -> None:
    """A connection kept open for later holds standard error; git's words are there all the same."""
    repo.git("config", "alias.leave", "!echo done >&2; sleep 90 &")
    began = time.monotonic()
    talk = GitConversation(repo.repository, PLACE, (), ["leave"], timeout=100, prompts=False)
    said = talk.end()
    assert (said.code, said.err) == (0, ["done"])
    assert time.monotonic() - began < 45
    os.killpg(talk.process.pid, 9)


def test_a_directory_that_is_gone_is_named(repo: Clone) -> None:
    """The place was removed under us."""
    place = repo.repository
    gone = Repository(place.git, place.git_dir, place.common_dir, place.top, place.zero, place.shallow)
    repo.path.rename(repo.path.with_name("away"))
    with pytest.raises(Failure, match="is not a directory"):
        converse(gone, PLACE, (), ["version"], timeout=1)


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        (["fatal: unable to access 'http://u:secret@h/': Could not resolve host: h"], "host is unknown"),
        (["ssh: connect to host h port 22: Connection refused", "fatal: Could not read from remote repository."], "cannot be reached"),
        (["git@h: Permission denied (publickey).", "fatal: Could not read from remote repository."], "our identity"),
        (["remote: Permission to x/y.git denied to z."], "does not let us write"),
        (["fatal: transport 'ext' not allowed"], "does not speak its protocol"),
        (["fatal: detected dubious ownership in repository at '/x'"], "does not trust"),
        (["fatal: something never seen"], "something never seen"),
        ([], "git ended with 128"),
    ],
)  # fmt: skip
def test_git_s_words_are_explained(lines: list[str], word: str) -> None:
    """Each kind of trouble has a meaning and something to do next; no password is repeated."""
    told = explain("http://u:secret@h/", GitSpoken(128, [], lines), timeout=60)
    assert word in told.message
    assert told.hint
    assert "secret" not in told.message


def test_a_server_cannot_draw_on_the_terminal() -> None:
    """Control characters in its words become spaces."""
    assert "\x1b" not in gist(["fatal: \x1b[2J"])
    heard = ["remote: \x1b[31mno\x07   ", "remote: Resolving deltas: 100% (1/1), done.", "x"]
    assert server_lines(heard) == ("[31mno",)
