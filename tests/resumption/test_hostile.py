"""Work that somebody pushed, with everything in it that git would run: resumed on a server or in a clone, none of it runs.

Neither when the place is made, nor by the git that the resumed agent types, nor when what it did is recorded. Each payload is
also taken plainly, as somebody would who checks the work out: there it runs, so that the test can tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.resuming import Agent
from support.testbed.command import Command
from support.testbed.repositories import Clone

# What the agent does: it looks at what changed, and commits; each of it is a chance for a driver or a hook.
WORKS = "git status; git diff HEAD; echo more >> notes; git add -A; git commit -qm 'Go on'; git log -p -1; git merge -q feature; git diff; git merge --abort"


@dataclass(frozen=True)
class Payload:
    """What the branch carries, what is configured on the machine that resumes it, and how somebody would run into it."""

    files: dict[str, str]
    config: dict[str, str]
    plainly: Callable[[Clone], object]
    modules: bool = False
    programs: tuple[str, ...] = ()


def commit_plainly(place: Clone) -> None:
    place.write("more", "m")
    place.git("add", "-A")
    place.git("commit", "-q", "-m", "plainly", check=False)


def include_plainly(place: Clone) -> None:
    place.git("config", "include.path", str(place.path / ".gitconfig"))
    place.git("diff", "HEAD~1", "HEAD", check=False)


INCLUDED = """\
[core]
\tfsmonitor = {ran}
\thooksPath = .husky
[diff]
\texternal = {ran}
[filter "planted"]
\tsmudge = {ran}
\tclean = {ran}
"""


# `{ran}` is a program that leaves the mark that a test looks for, and passes its input on; `{mark}` is that mark.
PAYLOADS = {
    "hook": Payload(
        {".husky/pre-commit": "#!/bin/sh\n{ran}", ".husky/post-checkout": "#!/bin/sh\n{ran}"},
        {"core.hooksPath": ".husky"},
        commit_plainly,
        programs=(".husky/pre-commit", ".husky/post-checkout"),
    ),
    "filter": Payload(
        {".gitattributes": "* filter=planted\n"},
        {"filter.planted.smudge": "{ran}", "filter.planted.clean": "{ran}"},
        commit_plainly,
    ),
    "process filter": Payload(
        {".gitattributes": "* filter=planted\n"},
        {"filter.planted.process": "{ran}", "filter.planted.required": "true"},
        commit_plainly,
    ),
    "text conversion": Payload(
        {".gitattributes": "* diff=planted\n"},
        {"diff.planted.textconv": "{ran}"},
        lambda place: place.git("diff", "HEAD~1", "HEAD"),
    ),
    "diff driver": Payload(
        {".gitattributes": "* diff=planted\n"},
        {"diff.planted.command": "{ran}"},
        lambda place: place.git("diff", "HEAD~1", "HEAD"),
    ),
    "merge driver": Payload(
        {".gitattributes": "notes merge=planted\n", "notes": "by the agent\n"},
        {"merge.planted.driver": "{ran} %A"},
        lambda place: place.git("merge", "-q", "origin/feature", check=False),
    ),
    "submodule": Payload(
        {".gitmodules": '[submodule "sub"]\n\tpath = sub\n\turl = ext::touch {mark}\n'},
        {"submodule.recurse": "true", "protocol.ext.allow": "always", "submodule.active": "."},
        lambda place: place.git("submodule", "update", "--init", check=False),
        modules=True,
    ),
    "included configuration": Payload(
        {
            ".gitconfig": INCLUDED,
            ".gitattributes": "* filter=planted\n",
            ".husky/pre-commit": "#!/bin/sh\n{ran}",
        },
        {"include.path": "../.gitconfig"},
        include_plainly,
        programs=(".husky/pre-commit",),
    ),
    "watcher": Payload(
        {"watch": "#!/bin/sh\n{ran}"},
        {"core.fsmonitor": "./watch"},
        lambda place: place.git("status"),
        programs=("watch",),
    ),
}


@dataclass(frozen=True)
class Trap:
    """The mark of a program that ran."""

    folder: Path

    @property
    def mark(self) -> Path:
        return self.folder / "ran"

    def fill(self, text: str) -> str:
        return text.replace("{ran}", str(self.program)).replace("{mark}", str(self.mark))

    @property
    def program(self) -> Path:
        """No blanks in it, so that it stands wherever a command may."""
        return self.folder / "trap"

    def set(self) -> None:
        place = self.program
        place.parent.mkdir()
        place.write_text(f'#!/bin/sh\ntouch {self.mark}\nif [ $# -gt 0 ]; then cat -- "$1"; else cat; fi\n')
        place.chmod(0o755)


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    found = Trap(tmp_path / "trap")
    found.set()
    return found


def push_work(ann: Clone, bob: Clone, cli: Command, payload: Payload, trap: Trap) -> str:
    """Asked on a branch that carries the payload; the branch goes on meanwhile, so that a merge is tried. The gate."""
    for clone in (ann, bob):
        clone.git("config", "gitgate.session", "push")
        cli.quick("init", "--no-resume", cwd=clone.path, code=0)
    ann.git("checkout", "-q", "-b", "feature")
    ann.commit("a branch", notes="as it was\n")
    for name, text in payload.files.items():
        ann.write(name, trap.fill(text), executable=name in payload.programs)
    if payload.modules:
        ann.git("update-index", "--add", "--cacheinfo", f"160000,{ann.git('rev-parse', 'main')},sub")
        (ann.path / "sub").mkdir()
    ann.git("add", "-A") if not payload.modules else ann.git("add", ".gitmodules")
    ann.git("commit", "-q", "-m", "planted")
    ann.git("push", "-q", "-u", "origin", "feature")
    ann.write("notes", "half done\n")
    gate = cli.quick("ask", "Which?", "--agent", "scripted", cwd=ann.path, code=0).line
    ann.git("stash", "-q", "-u")
    ann.commit("meanwhile", notes="by somebody else\n")
    ann.git("push", "-q", "origin", "feature")
    cli.quick("sync", cwd=bob.path, code=0)
    cli.quick("respond", gate, "Postgres", "--no-push", cwd=bob.path, code=0)
    cli.quick("sync", cwd=bob.path, code=0)
    return gate


def configure(clone: Clone, payload: Payload, trap: Trap) -> None:
    for name, value in payload.config.items():
        scope = ["--global"] if name.startswith("protocol.") else []
        clone.git("config", *scope, name, trap.fill(value))


@pytest.mark.parametrize("name", PAYLOADS)
@pytest.mark.slow
@pytest.mark.parametrize("where", ["server", "clone"])
def test_nothing_that_the_work_brings_is_run(
    where: str, name: str, server: Clone, ann: Clone, bob: Clone, agent: Agent, cli: Command, trap: Trap
) -> None:
    """From its restoring to the record of its outcome; the agent works, and its commit arrives."""
    payload = PAYLOADS[name]
    agent.does(f"{{ {WORKS}; }} > {agent.folder}/said 2>&1")
    cli.quick("init", "--server", "--no-resume", cwd=server.path, code=0)
    gate = push_work(ann, bob, cli, payload, trap)
    place = server if where == "server" else bob
    if where == "clone":  # Somebody looked at the branch there: its attributes lie about.
        bob.git("fetch", "-q", "origin")
        bob.git("checkout", "-q", "feature")
    configure(place, payload, trap)
    cli.quick("resume", gate, cwd=place.path, code=0)
    assert agent.starts == [gate]
    assert not trap.mark.exists(), (agent.folder / "said").read_text()
    assert server.git("log", "-1", "--format=%s", f"gate/{gate}") == "Go on"


@pytest.mark.slow
@pytest.mark.parametrize("name", PAYLOADS)
def test_taken_plainly_it_runs(
    name: str, server: Clone, ann: Clone, bob: Clone, agent: Agent, cli: Command, trap: Trap, tmp_path: Path
) -> None:
    """The payload is one: whoever checks the same work out on the same machine, with plain git, runs it."""
    payload = PAYLOADS[name]
    cli.quick("init", "--server", "--no-resume", cwd=server.path, code=0)
    gate = push_work(ann, bob, cli, payload, trap)
    bob.git("fetch", "-q", "origin", f"refs/hitl/work/{gate}", "feature:refs/remotes/origin/feature")
    configure(bob, payload, trap)
    place = Clone(tmp_path / "plain")
    bob.git("worktree", "add", "-q", "--detach", str(place.path), "FETCH_HEAD", check=False)
    if place.path.is_dir():  # A filter that fails leaves no place, but it ran.
        payload.plainly(place)
    assert trap.mark.exists()
