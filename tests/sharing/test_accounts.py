"""A repository on a server with an account for each person: who can fetch, whose agents start, and what stays private."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from support.accounts import GROUP, Account, accounts, installed, modes, root, said
from support.resuming import until

pytestmark = [pytest.mark.slow, pytest.mark.server]


# The runners of the repository that it is told, outright.
KILL = """for process in /proc/[0-9]*; do
  [ "$(readlink "$process/cwd")" = "$0" ] && grep -q post-receive "$process/cmdline" && kill -9 "${process#/proc/}"
done; true"""


@dataclass(frozen=True)
class Office:
    """Ada set the repository up; Bob has an account in its group, and each has a clone."""

    repository: Path
    ada: Account
    bob: Account

    def clone(self, who: Account) -> Path:
        return who.home / "clone"

    def ask(self, who: Account) -> str:
        return who.gate(
            "ask", "Which?", "--agent", "scripted", "--session", "abcd-1", cwd=self.clone(who)
        ).line

    def answer(self, who: Account, gate: str) -> str:
        who.gate("sync", cwd=self.clone(who))
        return who.gate("respond", gate, "Postgres", cwd=self.clone(who)).err

    def state(self, who: Account, gate: str) -> str:
        who.gate("sync", cwd=self.clone(who))
        return str(who.gate("show", gate, "--json", cwd=self.clone(who)).json["state"])

    def is_resumed(self, who: Account, gate: str) -> bool:
        return self.state(who, gate) == "resumed"

    def kept_by(self, who: Account) -> Path:
        """The folder in which the account keeps what is its own: the first to push has the plain name."""
        plain = self.repository / "gitgate"
        return plain if plain.stat().st_uid == who.number else plain.with_name(f"gitgate-{who.number}")


@pytest.fixture(scope="module")
def python() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gitgate-python-") as folder:
        Path(folder).chmod(0o755)
        yield installed(Path(folder))


@contextmanager
def office(python: Path, shared: str = "group", umask: Sequence[str] = ()) -> Iterator[Office]:
    with ExitStack() as held:
        top, (ada, bob) = held.enter_context(accounts(python, "ada", "bob", umask=umask))
        place = top / "project.git"
        root("install", "-d", "-o", str(ada.number), "-g", str(GROUP), "-m", "2775", str(place))
        ada.git("init", "-q", "--bare", *([f"--shared={shared}"] if shared else []), cwd=place)
        ada.gate("init", "--server", cwd=place)
        here = Office(place, ada, bob)
        for who in (ada, bob):
            who.git("clone", "-q", str(place), "clone", cwd=who.home)
            clone = here.clone(who)
            if who is ada:
                ada.run("sh", "-c", "echo run > tool; chmod +x tool; echo a > README", cwd=clone)
                ada.git("add", "-A", cwd=clone)
                ada.git("commit", "-q", "-m", "start", cwd=clone)
                ada.git("push", "-q", "origin", "HEAD:main", cwd=clone)
            else:
                who.git("pull", "-q", "origin", "main", cwd=clone)
            who.gate("init", "--no-resume", cwd=clone)
        yield here


@pytest.mark.parametrize("umask", [("022", "022"), ("077", "002")])
def test_each_accounts_answers_resume_as_that_account(python: Path, umask: tuple[str, str]) -> None:
    """The first account's hook shuts nobody else out: what each pushes is acted on by its own runner, as itself."""
    with office(python, umask=umask) as here:
        for who, other in ((here.ada, here.bob), (here.bob, here.ada), (here.ada, here.bob)):
            gate = here.ask(other)
            assert "its hook resumes it" in here.answer(who, gate)
            until(partial(here.is_resumed, who, gate))
            assert f"{who.number} {gate}" in who.started
            assert f"{who.number} {gate}" not in other.started
        # Everybody can take up what everybody's runner left.
        for who in (here.ada, here.bob):
            who.git("fetch", "-q", "origin", cwd=here.clone(who))
            who.git("commit", "-q", "--allow-empty", "-m", "more", cwd=here.clone(who))
            who.git("push", "-q", "origin", f"HEAD:refs/heads/{who.name}", cwd=here.clone(who))


def test_what_a_runner_makes_has_the_modes_of_the_repository(python: Path) -> None:
    """Objects and refs are the group's, a restored file is what the account's umask makes of it, and what is kept is private."""
    with office(python) as here:
        for who, other in ((here.ada, here.bob), (here.bob, here.ada)):
            gate = here.ask(other)
            here.answer(who, gate)
            until(partial(here.is_resumed, who, gate))
            assert {"755 tool", "644 README"} <= set(who.started)
            log = here.kept_by(who) / "logs" / f"{gate}.log"
            assert "resumed" in said(log)
            assert other.run("cat", str(log), code=None).code
        found = modes(here.repository)
        shut = {
            name: one
            for name, one in found.items()
            if name.startswith(("objects/", "refs/")) and int(one.split()[1], 8) & 0o440 != 0o440
        }
        assert not shut
        assert {found[here.kept_by(who).name] for who in (here.ada, here.bob)} == {
            f"{who.number} 2700" for who in (here.ada, here.bob)
        }


def test_another_account_goes_on_where_a_runner_was_killed(python: Path) -> None:
    """Whoever pushes next, whatever it is: as that account, which does not see what the other one kept."""
    with office(python) as here:
        here.ada.git("config", "gitgate.leaseTerm", "2s", cwd=here.repository)
        root("sh", "-c", f"echo 'sleep 60' >> {here.ada.home}/agent.sh")
        gate = here.ask(here.bob)
        here.answer(here.ada, gate)
        until(lambda: f"{here.ada.number} {gate}" in here.ada.started)
        root("sh", "-c", KILL, str(here.repository))
        clone = here.clone(here.bob)
        here.bob.git("push", "-q", "origin", "HEAD:refs/heads/other", cwd=clone)
        until(partial(here.is_resumed, here.bob, gate))
        assert f"{here.bob.number} {gate}" in here.bob.started
        here.bob.git("fetch", "-q", "origin", cwd=clone)
        made = here.bob.git("log", "--format=%s", "origin/main", cwd=clone).out.split("\n")
        assert made[:2] == ["Use Postgres", "start"]


def test_an_account_that_may_not_keep_anything_is_promised_nothing(python: Path) -> None:
    """Where only objects and refs are the group's, another account's answer is taken, and it is said that nothing starts."""
    with office(python) as here:
        gate = here.ask(here.ada)
        root("chmod", "g-w", str(here.repository))
        told = here.answer(here.bob, gate)
        assert "hook resumes it" not in told
        assert "may not write into the repository's folder" in told
        assert here.state(here.bob, gate) == "answered"
        assert here.bob.started == []


def test_modes_that_an_older_hook_left_are_mended(python: Path) -> None:
    """Refs and objects that only one account can read: everybody's doctor says whose, and that account's init opens them."""
    with office(python) as here:
        gate = here.ask(here.ada)
        here.bob.gate("sync", cwd=here.clone(here.bob))
        ref, objects = here.repository / f"refs/hitl/open/{gate}", here.repository / "objects"
        root("chmod", "600", str(ref))
        root("sh", "-c", f"find {objects} -user {here.ada.number} -mindepth 1 -type d -exec chmod 700 {{}} +")
        assert here.bob.git(
            "fetch", "-q", "origin", "refs/hitl/*:refs/x/*", cwd=here.clone(here.bob), code=None
        ).code
        findings = here.bob.gate("doctor", "--json", cwd=here.repository, code=None).json["findings"]
        (found,) = [one for one in findings if one["name"] == "modes" and "cannot read" in one["words"]]
        assert f" of {here.ada.number}'s" in found["words"]
        assert found["mend"] == f"as {here.ada.number}: git gate init --server"
        assert "modes of" in here.ada.gate("init", "--server", cwd=here.repository).err
        here.bob.git("fetch", "-q", "origin", "refs/hitl/*:refs/x/*", cwd=here.clone(here.bob))
        findings = here.bob.gate("doctor", "--json", cwd=here.repository, code=None).json["findings"]
        assert not [one for one in findings if one["name"] == "modes"]


def test_what_somebody_else_left_in_the_way_is_named(python: Path) -> None:
    """Root once ran something in Ada's folder: her doctor says so, with the command that gives it back."""
    with office(python) as here:
        here.answer(here.ada, gate := here.ask(here.ada))
        until(lambda: here.state(here.ada, gate) == "resumed")
        state = here.kept_by(here.ada)
        root("chown", "root", str(state / "runner.lock"))
        findings = here.ada.gate("doctor", "--json", cwd=here.repository, code=None).json["findings"]
        (found,) = [one for one in findings if one["name"] == "modes"]
        assert found["words"].endswith(f"{state}/runner.lock")
        assert found["words"].startswith("root left something")
        assert found["mend"] == f"sudo chown -R {here.ada.number} {state}"


@pytest.mark.parametrize("umask", [("022", "022"), ("077", "002")])
def test_a_gate_is_told_once_whoever_pushes(python: Path, umask: tuple[str, str]) -> None:
    """What one account's hook told, another's does not tell again: they share what was sent, by whatever umask."""
    with office(python, umask=umask) as here:
        heard = here.repository.parent / "heard"
        root("install", "-d", "-m", "1777", str(heard))
        program = here.repository.parent / "hear"
        here.ada.git("config", "gitgate.notify", f"command {program}", cwd=here.repository)
        script = f"#!/bin/sh\nmktemp {heard}/$GITGATE_EVENT-$GITGATE_ID-XXXX >/dev/null\n"
        root("sh", "-c", f"printf '%s' '{script}' > {program}; chmod 755 {program}")
        asked = []
        for who in (here.ada, here.bob, here.ada, here.bob):
            gate = here.ask(who)
            asked.append(gate)
            until(partial(is_heard, heard, gate))
        names = sorted(name.rpartition("-")[0] for name in modes(heard) if name)
        assert names == sorted(f"opened-{gate}" for gate in asked)


def is_heard(folder: Path, gate: str) -> bool:
    return any(gate in name for name in modes(folder))
