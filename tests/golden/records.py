"""Golden: the bytes of every event, claim, lease and link of a lease's chain, in the order in which a repository gets them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from .scene import Scene

AGENT = """#!/bin/sh
# Notes what the repository holds while it works, and does a little.
for place in . {server}; do
  git -C $place for-each-ref --format='%(refname)' refs/hitl/leases refs/gitgate | grep leases | while read -r name; do
    echo "-- $GITGATE_ANSWER: $name"
    git -C $place cat-file commit "$name"
  done
done >>{seen}
case "$GITGATE_ANSWER" in
  fail*) echo "it broke" >&2; exit 3 ;;
esac
echo "$GITGATE_ANSWER" >answer.txt
git add answer.txt
git commit -q -m "Use $GITGATE_ANSWER" -m "Gate: $GITGATE_ID"
"""
APPROVAL = ("--type", "approval")


def play(scene: Scene) -> None:
    """Bring about every event, each at a moment of its own."""
    seen, program = scene.folder / "seen.txt", scene.folder / "agent.sh"
    seen.touch()
    program.write_text(
        AGENT.format(seen=shlex.quote(str(seen)), server=shlex.quote(str(scene.server.path))), "utf-8"
    )
    program.chmod(0o755)
    ada, bob = scene.clones["ada"], scene.clones["bob"]
    for clone in (ada, bob):
        clone.git("config", "gitgate.agent.scripted.resume", json.dumps([str(program)]))
        clone.git("config", "gitgate.maxAttempts", "1")
    ada.write("README", "A project.\nHalf done.\n")
    ada.write("new file.txt", "x\n")

    def ask(name: str, *words: str) -> str:
        return scene.ask(name, *words, agent="scripted", session="4711")

    many = ("-o", "Postgres", "-o", "SQLite=one file", "--context", "Tests are slow.", "--attach", "README")
    gate = ask("talked-about", "Which database?", *many)
    scene("sync", "-q")
    scene.turn(10)
    scene("comment", gate, "Which version?")
    scene.turn(10)
    scene("edit", gate, "--priority", "high", "--to", "ada@example.org")
    scene.turn(10)
    scene("respond", gate, "sqlite", "--note", "one file is enough")
    scene.turn(10)
    scene("respond", gate, "postgres", "--amend")
    scene.turn(10)
    scene("resume", gate)

    gate = ask("voted", "Deploy?", *APPROVAL, "--quorum", "2")
    scene.turn(10)
    scene("respond", gate, "--approve")
    scene("sync", "-q", who="bob")
    scene.turn(10)
    scene("respond", gate, "--reject", "--note", "not today", who="bob")
    scene("sync", "-q")

    gate = ask("late", "Which name?")
    scene("sync", "-q")
    scene("sync", "-q", who="bob")
    scene.turn(10)
    scene("respond", gate, "first")
    scene.turn(10)
    scene("respond", gate, "second", "--no-push", who="bob", code=None)
    scene("sync", "-q", who="bob", code=None)
    scene("sync", "-q")

    gate = ask("failed", "What now?")
    scene.turn(10)
    scene("respond", gate, "fail, please")
    scene.turn(10)
    scene("resume", gate, code=None)

    gate = ask("withdrawn", "Is it needed?")
    scene.turn(10)
    scene("withdraw", gate, "--reason", "found it")
    gate = ask("stopped", "Shall I go on?", *APPROVAL)
    scene.turn(10)
    scene("stop", gate, "--reason", "we do it otherwise")
    ask("expired", "Anybody?", "--timeout", "1m")
    ask("reminded", "Anybody there?", "--timeout", "1m", "--on-timeout", "remind")
    ask("defaulted", "Which prefix?", "--default", "app_", "--timeout", "1m", "--on-timeout", "default")
    gate = ask("unheard", "Nobody?", "--timeout", "1m", "--on-timeout", "fail")
    scene.turn(90)
    scene("list", "-q")
    scene("resume", gate, code=None)
    scene("sync", "-q")


def chains(scene: Scene) -> Iterator[tuple[str, str]]:
    """Each gate's record, commit by commit: the commit's bytes, and the file that it adds."""
    play(scene)
    clone = scene.clones["ada"]
    for name, gate in scene.gates.items():
        ref = f"refs/hitl/open/{gate}"
        text = []
        for commit in clone.git("rev-list", "--reverse", "--first-parent", ref).splitlines():
            text.append(f"-- commit\n{clone.git('cat-file', 'commit', commit)}\n")
            text += [f"-- {file}\n{clone.git('show', f'{commit}:{file}')}\n" for file in added(scene, commit)]
        yield name, "\n".join(text)


def added(scene: Scene, commit: str) -> list[str]:
    """Return the names of the files that a record's commit adds."""
    said = scene.clones["ada"].git("show", "--format=", "--name-only", "-m", "--first-parent", commit)
    return said.splitlines()


def leases(scene: Scene) -> Iterator[tuple[str, str]]:
    """The lease of each claim, while an agent works."""
    yield "as agents saw them", (scene.folder / "seen.txt").read_text("utf-8")


def refs(scene: Scene) -> Iterator[tuple[str, str]]:
    """Each gate's refs in the asker's clone and in the shared repository, and the bytes of its work and session."""
    for name, gate in scene.gates.items():
        text = []
        for who, clone in (("asker", scene.clones["ada"]), ("shared", scene.server)):
            for ref in sorted(ref for ref in clone.refs("refs") if gate in ref):
                kind = ref.removesuffix(f"/{gate}")
                text.append(f"-- {who}: {kind}\n")
                if kind.endswith(("/work", "/sessions")):
                    text.append(
                        f"{clone.git('cat-file', 'commit', ref)}\n{clone.git('ls-tree', '-r', ref)}\n"
                    )
        yield name, "".join(text)


RECORDS = {"record": chains, "lease": leases, "refs": refs}
