"""Refs moved whatever the user has configured, and from clones of every kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from git.cmd import Git
from git.exc import UnsafeProtocolError
from git.remote import Remote as PythonRemote
from hypothesis import given
from hypothesis import strategies as st

from gitgate.errors import RemoteUnreachable, Usage
from gitgate.store.remote import FateKind, RefFate, RefMove, tracking_base, validate_remote
from gitgate.store.remote.fetch import fetch, fetch_refs
from gitgate.store.remote.push import MOST_REFS, OPTIONS, push
from support.sharing import NOBODY, OPEN, Place, name, opening, record
from support.testbed.repositories import Clone, run_git


class TestConfiguration:
    def test_tags_branches_and_other_remotes_stay_out_of_it(self, near: Place) -> None:
        """Configured push refspecs, followed tags, signing and pruning of tags change nothing."""
        near.ann.git("tag", "-a", "v1", "-m", "v1")
        near.ann.git("config", "push.followTags", "true")
        near.ann.git("config", "push.gpgSign", "true")
        near.ann.git("config", "remote.origin.push", "+refs/*:refs/copied/*")
        near.ann.git("config", "remote.origin.mirror", "true")
        before = near.server.refs()
        move = RefMove(f"refs/hitl/work/{name(1)}", near.ann.git("rev-parse", "v1^{commit}"), None)
        assert push(near.ann.repository, "origin", [move])[0].ok
        assert near.server.refs() == {**before, move.ref: move.new}

        near.bob.git("tag", "mine")
        near.bob.git("config", "fetch.pruneTags", "true")
        near.bob.git("config", "remote.origin.tagOpt", "--tags")
        near.server.git("branch", "new", "main")
        before = near.bob.refs()
        fetch(near.bob.repository, "origin")
        fetch_refs(near.bob.repository, "origin", [f"work/{name(1)}"])
        assert near.bob.refs() == {**before, f"refs/gitgate/origin/work/{name(1)}": move.new}

    def test_a_fetch_touches_nothing_of_the_users(self, near: Place) -> None:
        """No FETCH_HEAD, no reflog, no commit-graph, no change of HEAD or of a local gate that was not pushed."""
        near.bob.git("config", "fetch.writeCommitGraph", "true")
        push(near.ann.repository, "origin", [opening(near.ann, 1)])
        mine = opening(near.bob, 2)
        near.bob.git("update-ref", mine.ref, mine.new or "")
        kept = near.bob.path / ".git"
        before = {str(p) for p in kept.rglob("*") if "objects" not in p.parts}
        fetch(near.bob.repository, "origin")
        after = {
            str(p.relative_to(kept))
            for p in kept.rglob("*")
            if str(p) not in before and "objects" not in p.parts
        }
        assert {p for p in after if not p.startswith("refs/gitgate")} == set()
        assert not list(kept.rglob("commit-graph*"))
        assert near.bob.refs(OPEN) == {mine.ref: mine.new}

    def test_a_push_address_of_its_own_is_used(self, near: Place, tmp_path: Path) -> None:
        """Fetching goes to `url`, pushing to `pushurl`."""
        near.ann.git("remote", "set-url", "origin", str(tmp_path / "nowhere"))
        near.ann.git("remote", "set-url", "--push", "origin", near.url)
        assert push(near.ann.repository, "origin", [opening(near.ann, 1)])[0].ok
        with pytest.raises(RemoteUnreachable):
            fetch(near.ann.repository, "origin")

    def test_of_several_addresses_the_first_decides(self, near: Place, tmp_path: Path) -> None:
        """The others get a copy; one that does not take it is named and changes no verdict."""
        run_git("init", "-q", "--bare", "copy.git", cwd=tmp_path)
        near.ann.git("remote", "set-url", "--add", "origin", str(tmp_path / "copy.git"))
        near.ann.git("remote", "set-url", "--add", "origin", str(tmp_path / "missing.git"))
        move = opening(near.ann, 1)
        (fate,) = push(near.ann.repository, "origin", [move])
        assert fate == RefFate(move.ref, FateKind.OK, missing_at=(str(tmp_path / "missing.git"),))
        assert Clone(tmp_path / "copy.git").refs(OPEN) == {move.ref: move.new}

        (late,) = push(near.bob.repository, "origin", [opening(near.bob, 1, "his")])
        assert late.reason == "stale"

    @pytest.mark.parametrize("named", ["my/fork", "a.b", "größe"])
    def test_names_with_slashes_and_dots_work(self, near: Place, named: str) -> None:
        """Each remote's refs are kept apart; pruning one leaves the other."""
        near.ann.git("remote", "add", named, near.url)
        push(near.ann.repository, named, [opening(near.ann, 1)])
        push(near.ann.repository, "origin", [opening(near.ann, 2)])
        assert fetch(near.ann.repository, named).updated == {name(2)}
        assert len(near.ann.refs("refs/gitgate")) == 3

    def test_an_address_works_without_a_name(self, near: Place) -> None:
        """A path or url in the place of a name."""
        push(near.ann.repository, near.url, [opening(near.ann, 1)])
        assert fetch(near.bob.repository, near.url).updated == {name(1)}
        assert not fetch(near.bob.repository, near.url).changed

    @pytest.mark.parametrize(
        "address",
        ["::x", "ext::sh -c x", "EXT::x", "a-b.c+d::x", "9::x", "fd::3", "ext://x", "EXT://x", "fd://3"],
    )
    def test_an_address_that_runs_a_program_is_refused(self, near: Place, address: str) -> None:
        """By us, without GitPython; what its list of such addresses has, ours has as well."""
        with pytest.raises(Usage, match="can run any program"):
            push(near.ann.repository, address, [opening(near.ann, 1)])

    @given(st.text("aA9+.-:/[]@ ext", max_size=12))
    def test_what_gitpython_finds_unsafe_is_refused(self, address: str) -> None:
        """Its list is heeded: it follows what is found unsafe in git."""
        try:
            Git.check_unsafe_protocols(address)
        except UnsafeProtocolError:
            with pytest.raises(Usage):
                validate_remote(address)

    def test_gitpython_finds_none_of_our_options_unsafe(self) -> None:
        """They are the same for every push."""
        Git.check_unsafe_options([*OPTIONS], PythonRemote.unsafe_git_push_options)

    def test_an_ipv6_address_runs_no_program(self) -> None:
        assert validate_remote("ssh://git@[::1]:22/x.git")

    @pytest.mark.parametrize("how", ["by name", "odd name", "by address", "two addresses", "many"])
    def test_what_a_push_moved_is_noted(self, near: Place, tmp_path: Path, how: str) -> None:
        """Made, moved on and deleted; what was refused is not; whatever a fetch noted meanwhile, the next fetch is right again."""
        ann, remote = near.ann, "origin"
        if how == "odd name":
            remote = "a=b.c"
            ann.git("remote", "add", remote, near.url)
        elif how == "by address":
            remote = near.url
        elif how == "two addresses":
            other = tmp_path / "copy.git"
            run_git("clone", "-q", "--bare", str(near.server.path), str(other), cwd=tmp_path)
            ann.git("remote", "set-url", "--add", "--push", "origin", near.url)
            ann.git("remote", "set-url", "--add", "--push", "origin", str(other))

        def noted() -> dict[str, str]:
            base = tracking_base(remote)
            return {ref.removeprefix(base): oid for ref, oid in ann.refs(base).items()}

        moves = [opening(ann, number) for number in range(MOST_REFS + 1 if how == "many" else 2)]
        assert all(fate.ok for fate in push(ann.repository, remote, moves))
        expected = {move.ref.removeprefix("refs/hitl/"): move.new for move in moves}
        assert noted() == expected
        then = RefMove(moves[0].ref, record(ann, "gate 0", "answered"), moves[0].new)
        late = RefMove(moves[1].ref, record(ann, "gate 1", "late"), NOBODY)
        assert [fate.ok for fate in push(ann.repository, remote, [then, late], atomic=False)] == [True, False]
        assert noted() == {**expected, f"open/{name(0)}": then.new}
        assert push(ann.repository, remote, [RefMove(then.ref, None, then.new)])[0].ok
        del expected[f"open/{name(0)}"]
        assert noted() == expected

    def test_a_tracking_refspec_of_the_users_is_no_trouble(self, near: Place) -> None:
        """Where git updates our notes by itself, a push still ends with them right."""
        near.ann.git("config", "--add", "remote.origin.fetch", "+refs/hitl/open/*:refs/gitgate/origin/open/*")
        moves = [opening(near.ann, n) for n in range(2)]
        assert all(fate.ok for fate in push(near.ann.repository, "origin", moves))
        assert near.tracked(near.ann) == {f"open/{name(n)}": moves[n].new for n in range(2)}
        assert not fetch(near.ann.repository, "origin").changed

    def test_the_users_hooks_are_not_run(self, near: Place) -> None:
        """A pre-push hook is about the user's branches."""
        near.ann.write(".git/hooks/pre-push", "#!/bin/sh\nexit 1\n", executable=True)
        assert push(near.ann.repository, "origin", [opening(near.ann, 1)])[0].ok


class TestUnusualClones:
    def test_a_shallow_clone_stays_as_shallow_as_it_was(
        self, near: Place, clone_of: Callable[..., Clone]
    ) -> None:
        """Records come whole, work comes with its base and no more of the history; nothing is deepened."""
        for number in range(5):
            near.ann.commit(f"change {number}", file=str(number))
        base = near.ann.git("rev-parse", "HEAD")
        near.ann.git("push", "-q", "origin", "main")
        shallow = clone_of(near.server, "shallow", "--depth=1", "--no-local")
        shallow.git("remote", "set-url", "origin", f"file://{near.server.path}")
        staged = near.ann.git("commit-tree", "-p", base, "-m", "staged", f"{base}^{{tree}}")
        work = near.ann.git("commit-tree", "-p", staged, "-m", "work", f"{base}^{{tree}}")
        old = near.ann.git("rev-parse", "HEAD~3")
        older = near.ann.git("commit-tree", "-p", old, "-m", "staged", f"{old}^{{tree}}")
        older = near.ann.git("commit-tree", "-p", older, "-m", "work", f"{old}^{{tree}}")
        moves = [
            opening(near.ann, 1, *"abcde"),
            RefMove(f"refs/hitl/work/{name(1)}", work, None),
            RefMove(f"refs/hitl/work/{name(2)}", older, None),
        ]
        push(near.ann.repository, "origin", moves)

        place = shallow.repository
        assert place.shallow
        assert fetch(place, "origin").updated == {name(1)}
        assert shallow.git("rev-list", "--count", moves[0].new or "") == "5"
        fetch_refs(place, "origin", [f"work/{name(1)}", f"work/{name(2)}"])
        assert shallow.git("rev-list", "--count", "HEAD") == "1"
        assert shallow.git("rev-list", "--count", work) == "3"
        assert shallow.git("rev-list", "--count", older) == "3"
        assert shallow.git("diff", "--name-only", f"{older}~2", older) == ""

        answer = RefMove(moves[0].ref, record(shallow, *"abcdef"), moves[0].new)
        assert push(place, "origin", [answer])[0].ok

    def test_a_partial_clone_has_the_questions_at_once(
        self, near: Place, clone_of: Callable[..., Clone]
    ) -> None:
        """A clone without files fetches records whole: no file is missing afterwards."""
        near.server.git("config", "uploadpack.allowFilter", "true")
        partial = clone_of(near.server, "partial", "--filter=blob:none", "--no-local", "--no-checkout")
        blob = near.ann.git("hash-object", "-w", "--stdin", input="a question")
        tree = near.ann.git("mktree", input=f"100644 blob {blob}\tquestion.yaml\n")
        tip = near.ann.git("commit-tree", "-m", "opened", tree)
        push(near.ann.repository, "origin", [RefMove(f"{OPEN}{name(1)}", tip, None)])
        fetch(partial.repository, "origin")
        near.server.path.rename(near.server.path.with_name("away"))
        assert partial.git("cat-file", "blob", blob) == "a question"

    def test_a_bare_repository_moves_gates_too(self, near: Place, clone_of: Callable[..., Clone]) -> None:
        """A clone without a working tree."""
        bare = clone_of(near.server, "bare", "--bare")
        move = opening(bare, 1)
        assert push(bare.repository, "origin", [move])[0].ok
        assert not fetch(bare.repository, "origin").changed

    def test_two_fetches_of_one_clone_do_not_fail_each_other(
        self, near: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A ref that another fetch is at is waited for."""
        push(near.ann.repository, "origin", [opening(near.ann, 1)])
        lock = near.bob.write(f".git/refs/gitgate/origin/open/{name(1)}.lock")
        # The other one is over while we wait for it.
        waits = SimpleNamespace(sleep=lambda _seconds: lock.unlink(missing_ok=True))
        monkeypatch.setattr("gitgate.store.remote.fetch.time", waits)
        assert fetch(near.bob.repository, "origin").updated == {name(1)}

    def test_hostile_names_on_the_server_are_no_gates(self, near: Place) -> None:
        """Refs that are not ids are fetched past, not reported."""
        tip = near.server.git("rev-parse", "main")
        for ref in ("UPPER", "deep/er", "-x", "aaaaaaaaaa1"):
            near.server.git("update-ref", f"{OPEN}{ref}", tip)
        assert fetch(near.bob.repository, "origin").updated == frozenset()
