"""Servers that are down, silent, closed to us, full or cut off: what is said, and that a repeat mends it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.errors import GateError, PushRefused, RemoteUnreachable, tells_of_full_disk
from gitgate.store.remote import RefMove
from gitgate.store.remote.fetch import fetch, parse_ls_remote
from gitgate.store.remote.push import push
from gitgate.store.remote.wire import GitSpoken, explain, inability
from support.servers import SshServer, free_port, http_server, silent_server
from support.sharing import OPEN, Place, hook, name, opening, reasons, record
from support.testbed.repositories import Clone

REFUSED = f"ERR upload-pack: not our ref {'0' * 40}"
GONE = f"{len(REFUSED) + 4:04x}{REFUSED}"  # as git's protocol frames a line
CUT_ONCE = "test $1 = committed && ! test -e once && touch once && kill -9 $PPID; exit 0"


def near_tracked(near: Place) -> dict[str, str]:
    return {f"refs/hitl/{ref}": oid for ref, oid in near.tracked(near.ann).items()}


class TestTrouble:
    def test_a_repository_that_is_not_there(self, near: Place) -> None:
        """The address is wrong: said as such, with what to look at; nothing local is lost."""
        near.server.path.rename(near.server.path.with_name("away"))
        move = opening(near.ann, 1)
        near.ann.git("update-ref", move.ref, move.new or "")
        for action in (
            lambda: fetch(near.ann.repository, "origin"),
            lambda: push(near.ann.repository, "origin", [move]),
        ):
            with pytest.raises(RemoteUnreachable, match="no repository at its address") as told:
                action()
            assert "git gate sync" in told.value.hint
        assert near.ann.refs(OPEN) == {move.ref: move.new}

    @pytest.mark.parametrize("scheme", ["http", pytest.param("ssh", marks=pytest.mark.needs("ssh")), "git"])
    def test_a_closed_port(self, near: Place, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """A server that is down cannot be reached, whatever the protocol."""
        monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -F /dev/null")
        near.ann.git("remote", "set-url", "origin", f"{scheme}://127.0.0.1:{free_port()}/x.git")
        with pytest.raises(RemoteUnreachable, match="cannot be reached"):
            fetch(near.ann.repository, "origin")
        with pytest.raises(RemoteUnreachable, match="cannot be reached"):
            push(near.ann.repository, "origin", [opening(near.ann, 1)])

    @pytest.mark.parametrize("scheme", ["http", "git"])
    def test_an_unknown_host(self, near: Place, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """A name that resolves to nothing is told apart from a server that is down."""
        monkeypatch.setenv("no_proxy", "*")
        monkeypatch.setenv("NO_PROXY", "*")
        near.ann.git("remote", "set-url", "origin", f"{scheme}://no-such-host.invalid/x.git")
        with pytest.raises(RemoteUnreachable, match="host is unknown"):
            fetch(near.ann.repository, "origin")

    @pytest.mark.parametrize("scheme", ["http", "git"])
    @pytest.mark.slow
    def test_silence_is_ended(self, near: Place, scheme: str) -> None:
        """A server that takes the connection and says nothing is given up, and nothing is claimed about it."""
        with silent_server() as port:
            near.ann.git("remote", "set-url", "origin", f"{scheme}://127.0.0.1:{port}/x.git")
            for action in (
                lambda: fetch(near.ann.repository, "origin", timeout=0.3),
                lambda: push(near.ann.repository, "origin", [opening(near.ann, 1)], timeout=0.3),
            ):
                with pytest.raises(RemoteUnreachable, match=r"said nothing for 0\.3 s"):
                    action()

    @pytest.mark.slow
    def test_a_slow_hook_is_waited_for_only_so_long(self, near: Place) -> None:
        """A hook that hangs ends in an error, not in a hang; a repeat after it was mended succeeds."""
        hook(near.server, "pre-receive", "exec sleep 20")
        move = opening(near.ann, 1)
        with pytest.raises(RemoteUnreachable, match="said nothing"):
            push(near.ann.repository, "origin", [move], timeout=0.5)
        hook(near.server, "pre-receive", "true")
        assert push(near.ann.repository, "origin", [move])[0].ok

    def test_a_connection_cut_after_the_work_was_done_is_asked_again(self, near: Place) -> None:
        """The server took the refs and died before it said so: a repeat finds them as they were wanted."""
        hook(near.server, "reference-transaction", CUT_ONCE)
        moves = [opening(near.ann, n) for n in range(3)]
        assert reasons(push(near.ann.repository, "origin", moves)) == ["ok", "ok", "ok"]
        assert near.server.refs(OPEN) == {move.ref: move.new for move in moves}

        (near.server.path / "once").unlink()
        newer = RefMove(moves[2].ref, record(near.ann, "gate 2", "more"), moves[2].new)
        then = [*(RefMove(move.ref, None, move.new) for move in moves[:2]), newer]
        assert reasons(push(near.ann.repository, "origin", then)) == ["ok", "ok", "ok"]
        assert near.server.refs(OPEN) == near_tracked(near) == {newer.ref: newer.new}

    def test_a_cut_connection_does_not_make_a_lost_race_a_success(self, near: Place) -> None:
        """The repeat finds another's value where ours was to go, or to be deleted: stale, both."""
        moves = [opening(near.ann, n) for n in range(2)]
        push(near.ann.repository, "origin", moves)
        main = near.server.git("rev-parse", "main")
        race = f"test -e once || {{ touch once; for r in {moves[0].ref} {moves[1].ref}; do git update-ref $r {main}; done; kill -9 $PPID; }}"
        hook(near.server, "update", race)
        newer = RefMove(moves[1].ref, record(near.ann, "gate 1", "more"), moves[1].new)
        then = [RefMove(moves[0].ref, None, moves[0].new), newer]
        assert reasons(push(near.ann.repository, "origin", then)) == ["stale", "stale"]
        assert set(near.server.refs(OPEN).values()) == {main}

    def test_a_ref_that_goes_while_the_server_lists_it_is_asked_for_again(self, near: Place) -> None:
        """Git lists it as null then, and refuses to give it; an archive that others fill takes gates away all the time."""
        push(near.ann.repository, "origin", [opening(near.ann, 1)])
        refuses = f"printf '%s' '{GONE}'; touch once; exit 128"
        hook(
            near.server,
            "vanishing",
            f'cd {near.server.path}; test -e once || {{ {refuses}; }}; exec git-upload-pack "$@"',
        )
        near.bob.git("config", "remote.origin.uploadpack", str(near.server.path / "hooks" / "vanishing"))
        assert fetch(near.bob.repository, "origin").updated == {name(1)}
        assert (near.server.path / "once").exists()

    def test_what_is_listed_as_null_is_not_there(self) -> None:
        assert parse_ls_remote(GitSpoken(0, ["1" * 40 + "\trefs/a", "0" * 40 + "\trefs/b"], [])) == {
            "refs/a": "1" * 40
        }

    def test_a_connection_that_is_cut_again_is_given_up(self, near: Place) -> None:
        """Once is repeated, not for ever; nothing is claimed."""
        hook(near.server, "pre-receive", "kill -9 $PPID")
        with pytest.raises(RemoteUnreachable, match="hung up"):
            push(near.ann.repository, "origin", [opening(near.ann, 1)])

    def test_a_server_that_cannot_store_it_refuses(self, near: Place) -> None:
        """A full disk over there (here: an object store that cannot be written) is the server's trouble, told as such."""
        hook(near.server, "pre-receive", "echo 'fatal: No space left on device' >&2; exit 1")
        (fate,) = push(near.ann.repository, "origin", [opening(near.ann, 1)])
        assert not fate.ok
        assert "No space left on device" in fate.reason
        assert fate.unable == "No space left on device"

        near.server.git("config", "receive.maxInputSize", "1")
        (fate,) = push(near.ann.repository, "origin", [opening(near.ann, 2)])
        assert fate.reason.startswith("refused: ")
        assert not fate.unable

    def test_what_is_locked_there_was_not_refused(self, near: Place) -> None:
        """Git names the lock. On a ref it may be a race as well, since whoever holds it may be about to move that."""
        moves = [opening(near.ann, n) for n in range(2)]
        push(near.ann.repository, "origin", moves)
        (near.server.path / f"{moves[0].ref}.lock").touch()
        then = [RefMove(moves[0].ref, record(near.ann, "gate 0", "more"), moves[0].new)]
        (fate,) = push(near.ann.repository, "origin", then)
        assert fate.reason == "stale"
        assert f"{moves[0].ref}.lock': File exists" in fate.unable
        (near.server.path / "packed-refs.lock").touch()
        gone, kept = push(
            near.ann.repository,
            "origin",
            [RefMove(moves[1].ref, None, moves[1].new), opening(near.ann, 3)],
        )
        assert gone.reason.startswith("refused: ")
        assert "packed-refs.lock': File exists" in gone.unable
        assert not kept.ok

    @pytest.mark.parametrize(
        ("words", "reason", "unable"),
        [
            ("remote: error: cannot lock ref 'a': Unable to create '/a.lock': Permission denied", "", True),
            ("remote: error: insufficient permission for adding an object to repository database ./objects", "", True),
            ("error: remote unpack failed: unable to create temporary object directory", "unpacker error", True),
            ("", "unable to migrate objects to permanent storage", True),
            ("", "Internal Server Error", True),
            ("remote: GitLab: Internal API unreachable", "pre-receive hook declined", True),
            ("remote: fatal error in commit_refs", "failure", True),
            ("remote: PermissionError: [Errno 13] Permission denied: '/x'", "pre-receive hook declined", True),
            ("remote: /usr/bin/python3: No module named gitgate.cli", "pre-receive hook declined", True),
            ("remote: hooks/pre-receive: line 9: /x: Permission denied", "pre-receive hook declined", True),
            ("error: cannot fork() for hooks/update: Resource temporarily unavailable", "hook declined", True),
            ("error: hooks/update died of signal 9", "hook declined", True),
            ("remote: error: bob may not push to main: Permission denied", "hook declined", False),
            ("remote: gate: refs/hitl/open/x: no space left on device", "pre-receive hook declined", False),
            ("remote: fatal: pack exceeds maximum allowed size", "unpacker error", False),
            ("remote: error: object 1: missingSpaceBeforeDate: invalid", "unpacker error", False),
            ("remote: error: GH006: Protected branch update failed", "protected branch hook declined", False),
            ("fatal: write error: No space left on device", "hook declined", False),
            ("", "deny updating a hidden ref", False),
        ],
    )  # fmt: skip
    def test_what_a_server_could_not_do_is_told_from_what_it_refused(
        self, words: str, reason: str, unable: bool
    ) -> None:
        """By git's own words and the system's, whole lines; a hook's are believed only where it cannot have judged."""
        assert bool(inability([words, "To origin"], reason)) == unable

    def test_a_host_that_fails_inside_is_out_of_reach(self) -> None:
        said = [
            "error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502",
            "fatal: the remote end hung up",
        ]
        assert isinstance(explain("origin", GitSpoken(1, [], said), timeout=1), RemoteUnreachable)

    @pytest.mark.parametrize(
        ("line", "whose"),
        [
            ("fatal: write error: No space left on device", "here"),
            ("error: unable to write file objects/pack/tmp_pack_x: Disk quota exceeded", "here"),
            ("remote: fatal: write error: No space left on device", "there"),
            (" ! [remote rejected] main -> main (No space left on device)", "there"),
            ("error: remote unpack failed: No space left on device", "there"),
        ],
    )
    def test_whose_disk_is_full_is_told_apart(self, line: str, whose: str) -> None:
        """Ours is nobody else's to mend, and no reason to ask who runs the server."""
        said = explain("origin", GitSpoken(1, [], [line, "fatal: the other side hung up"]), timeout=1)
        assert tells_of_full_disk(said) == (whose == "here")
        assert ("make room here" in said.hint) == (whose == "here")
        assert ("whoever runs the server" in said.hint) == (whose == "there")

    def test_a_server_without_atomic_pushes_is_refused(self, near: Place) -> None:
        """Without all-or-nothing a claim could be half made."""
        near.server.git("config", "receive.advertiseAtomic", "false")
        with pytest.raises(PushRefused, match="atomic"):
            push(near.ann.repository, "origin", [opening(near.ann, 1), opening(near.ann, 2)])

    def test_a_prefixed_address_shows_no_password(self, near: Place) -> None:
        """What is told of a failure holds no secret of the address."""
        near.ann.git("remote", "set-url", "origin", f"http://me:hunter2@127.0.0.1:{free_port()}/x.git")
        with pytest.raises(GateError) as told:
            fetch(near.ann.repository, "origin")
        assert "hunter2" not in str(told.value) + told.value.hint


@pytest.mark.server
class TestServers:
    def test_http_with_a_password(self, bare: Clone, clone_of: Callable[..., Clone], tmp_path: Path) -> None:
        """With the right one it works; with none, or a wrong one, it is said that we were not accepted."""
        bare.git("config", "http.receivepack", "true")
        ann = clone_of(bare, "ann")
        with http_server(tmp_path, secret="ann:right") as web:
            ann.git("remote", "set-url", "origin", web.url(bare.path, login="ann:right"))
            assert push(ann.repository, "origin", [opening(ann, 1)])[0].ok
            for login in ("", "ann:wrong"):
                ann.git("remote", "set-url", "origin", web.url(bare.path, login=login))
                with pytest.raises(RemoteUnreachable, match="did not accept our identity"):
                    push(ann.repository, "origin", [opening(ann, 2)])
                with pytest.raises(RemoteUnreachable, match="did not accept our identity"):
                    fetch(ann.repository, "origin")

    def test_http_that_lets_us_read_only(
        self, bare: Clone, clone_of: Callable[..., Clone], tmp_path: Path
    ) -> None:
        """Forbidden to write is a refusal; reading goes on."""
        ann = clone_of(bare, "ann")
        with http_server(tmp_path) as web:
            web.read_only = True
            ann.git("remote", "set-url", "origin", web.url(bare.path))
            with pytest.raises(PushRefused, match="does not let us write"):
                push(ann.repository, "origin", [opening(ann, 1)])
            assert not fetch(ann.repository, "origin").changed

    @pytest.mark.slow
    @pytest.mark.server
    def test_ssh_without_a_key(
        self, bare: Clone, clone_of: Callable[..., Clone], sshd: SshServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No key, no host key, no waiting for a password that nobody can type."""
        ann = clone_of(bare, "ann")
        ann.git("remote", "set-url", "origin", sshd.url(bare.path))
        monkeypatch.setenv("GIT_SSH_COMMAND", sshd.stranger)
        with pytest.raises(RemoteUnreachable, match="did not accept our identity"):
            push(ann.repository, "origin", [opening(ann, 1)])
        monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -F /dev/null -o UserKnownHostsFile=/dev/null")
        with pytest.raises(RemoteUnreachable, match="ssh key is not known"):
            fetch(ann.repository, "origin")

    def test_an_idle_poll_costs_under_a_kilobyte_whatever_is_closed(
        self, bare: Clone, clone_of: Callable[..., Clone], tmp_path: Path
    ) -> None:
        """A thousand branches and folded months on the server: what it sends when asked for open gates is small."""
        ann = clone_of(bare, "ann")
        tip = bare.git("rev-parse", "main")
        refs = [f"refs/heads/b{n}" for n in range(1000)] + [
            f"refs/hitl/archive/{2000 + n}-01" for n in range(99)
        ]
        bare.git("update-ref", "--stdin", input="".join(f"create {ref} {tip}\n" for ref in refs))
        with http_server(tmp_path) as web:
            ann.git("remote", "set-url", "origin", web.url(bare.path))
            fetch(ann.repository, "origin")
            before = web.sent
            assert not fetch(ann.repository, "origin").changed
            assert web.sent - before < 1000
