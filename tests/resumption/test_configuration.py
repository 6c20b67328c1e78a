"""What configures agents is as the protected branch has it while one is resumed, and is no part of what comes of it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from gitgate.policy.project import lift
from support import PATIENCE
from support.resuming import Agent, until
from support.testbed.command import Command
from support.testbed.repositories import Clone

TRUSTED = {
    "CLAUDE.md": "Ask first.\n",
    ".claude/settings.json": '{"hooks": {}}\n',
    ".claude/guard.sh": "exit 2\n",
}
PLANTED = {
    ".claude/settings.json": '{"hooks": {"Stop": "planted"}}\n',
    ".mcp.json": '{"mcpServers": {"planted": {}}}\n',
    "src/CLAUDE.md": "Planted.\n",
}
STOOD = (".claude/guard.sh", ".claude/settings.json", ".mcp.json", "src/CLAUDE.md")
LOOKS = "pwd > {0}/pwd; git ls-files -o -c | grep -v ^src/code > {0}/names; cat .claude/settings.json .claude/guard.sh > {0}/seen;"
LOOKS += 'cp "$GITGATE_PROMPT_FILE" {0}/prompt; ls .mcp.json src/CLAUDE.md 2> {0}/absent;'
COMMITS = "echo done > src/code; git add -A; git commit -qm Done;"


def looks(agent: Agent) -> str:
    return LOOKS.format(agent.folder)


def ask_elsewhere(ann: Clone, bob: Clone, cli: Command) -> str:
    """Asked by ann on a branch that plants things, some of them not committed yet; answered by bob. The gate."""
    ann.commit("rules", **TRUSTED)
    ann.git("push", "-q", "origin", "main")
    for clone in (ann, bob):
        clone.git("config", "gitgate.session", "push")
        cli.quick("init", "--no-resume", cwd=clone.path, code=0)
    ann.git("checkout", "-q", "-b", "feature")
    ann.git("rm", "-q", ".claude/guard.sh")
    ann.commit(
        "planted", **{".claude/settings.json": PLANTED[".claude/settings.json"], "src/code": "begun\n"}
    )
    ann.git("push", "-q", "-u", "origin", "feature")
    ann.write(".mcp.json", PLANTED[".mcp.json"])
    ann.git("add", ".mcp.json")
    ann.write("src/CLAUDE.md", PLANTED["src/CLAUDE.md"])
    gate = cli.quick("ask", "Which?", "--agent", "scripted", cwd=ann.path, code=0).line
    bob.git("fetch", "-q", "origin")
    cli.quick("sync", cwd=bob.path, code=0)
    return gate


def answer(cli: Command, gate: str, bob: Clone) -> None:
    cli.quick("respond", gate, "Postgres", "--no-push", cwd=bob.path, code=0)
    cli.quick("sync", cwd=bob.path, code=0)


@pytest.mark.parametrize("where", [pytest.param("server", marks=pytest.mark.slow), "clone"])
def test_the_protected_branchs_stands(
    where: str, server: Clone, ann: Clone, bob: Clone, agent: Agent, cli: Command
) -> None:
    """The agent finds it so, is told, and commits everything: its commit has its own branch's, and only what it did."""
    agent.does(looks(agent) + COMMITS)
    cli.quick("init", "--server", "--no-resume", cwd=server.path, code=0)
    gate = ask_elsewhere(ann, bob, cli)
    answer(cli, gate, bob)
    cli.quick("resume", gate, cwd=(server if where == "server" else bob).path, code=0)
    seen = (agent.folder / "seen").read_text()
    assert seen == TRUSTED[".claude/settings.json"] + TRUSTED[".claude/guard.sh"]
    assert len((agent.folder / "absent").read_text().splitlines()) == 2
    told = (agent.folder / "prompt").read_text().split("protected branch has them", 1)[1].splitlines()
    assert told[2:7] == [*STOOD, told[1].replace("<<< paths", ">>> paths")]
    tip = server.git("rev-parse", "feature")
    assert server.git("log", "-1", "--format=%s", tip) == "Done"
    names = server.git("diff-tree", "-r", "--name-status", f"{tip}~1", tip).split("\n")
    assert names == ["A\t.mcp.json", "M\tsrc/code"]
    assert server.git("show", f"{tip}:.claude/settings.json") == PLANTED[".claude/settings.json"].strip()
    place = Path((agent.folder / "pwd").read_text().strip())
    assert Clone(place).git("status", "--porcelain", "-uall") == "?? src/CLAUDE.md", (
        "it was not committed before, either"
    )
    assert (place / "src/CLAUDE.md").read_text() == PLANTED["src/CLAUDE.md"]


def test_the_agents_own_directory_is_left_alone(repo: Clone, agent: Agent, cli: Command) -> None:
    """A person's working tree is not written into, whatever the agent made of its settings there."""
    repo.commit("rules", **TRUSTED)
    repo.git("checkout", "-q", "-b", "feature")
    repo.write("CLAUDE.md", "Changed.\n")
    agent.does(f"cat CLAUDE.md > {agent.folder}/seen; pwd > {agent.folder}/pwd")
    gate = cli.quick("ask", "Which?", "--agent", "scripted", code=0).line
    cli.quick("respond", gate, "Postgres", code=0)
    cli.quick("resume", gate, code=0)
    assert (agent.folder / "seen").read_text() == "Changed.\n"
    assert (agent.folder / "pwd").read_text().strip() == str(repo.path)


@pytest.mark.slow
def test_what_the_agent_writes_there_stays(
    bare: Clone, ann: Clone, bob: Clone, agent: Agent, cli: Command
) -> None:
    """It is not thrown away with the working tree: that stays, and is named."""
    agent.does("echo '{}' > .claude/settings.json")
    gate = ask_elsewhere(ann, bob, cli)
    answer(cli, gate, bob)
    said = cli.quick("resume", gate, cwd=bob.path, code=0)
    place = worktree(bob, gate)
    assert (place / ".claude/settings.json").read_text() == "{}\n"
    assert (place / ".mcp.json").read_text() == PLANTED[".mcp.json"]
    assert not (place / ".claude/guard.sh").exists()
    assert ".claude/settings.json was written meanwhile" in said.err
    assert str(place) in said.err


def worktree(clone: Clone, gate: str) -> Path:
    lines = clone.git("worktree", "list", "--porcelain").splitlines()
    places = [Path(line.removeprefix("worktree ")) for line in lines if line.startswith("worktree ")]
    return next(place for place in places if place.name == gate)


@pytest.mark.slow
def test_a_question_asked_there_has_the_branchs_own(
    bare: Clone, ann: Clone, bob: Clone, agent: Agent, cli: Command
) -> None:
    """The work of the next gate is what the agent did, not what stood there; and when that is resumed, it stands again."""
    agent.does(
        f"{looks(agent)} echo more >> src/code; git gate ask 'And now?' --agent scripted --no-push > {agent.folder}/next"
    )
    gate = ask_elsewhere(ann, bob, cli)
    answer(cli, gate, bob)
    cli.quick("resume", gate, cwd=bob.path, code=0)
    follows = (agent.folder / "next").read_text().strip()
    work = json.loads(cli.quick("show", follows, "--json", cwd=bob.path, code=0).out)["work"]
    assert bob.git("show", f"{work['commit']}:.mcp.json") == PLANTED[".mcp.json"].strip()
    assert bob.git("show", f"{work['commit']}:src/CLAUDE.md") == PLANTED["src/CLAUDE.md"].strip()
    assert ".claude/guard.sh" not in bob.git("ls-tree", "-r", "--name-only", work["commit"])
    agent.does(looks(agent) + COMMITS)
    cli.quick("respond", follows, "Go on", cwd=bob.path, code=0)
    cli.quick("resume", follows, cwd=bob.path, code=0)
    assert (agent.folder / "seen").read_text() == TRUSTED[".claude/settings.json"] + TRUSTED[
        ".claude/guard.sh"
    ]
    assert "A person changed these files" not in (agent.folder / "prompt").read_text()


@pytest.mark.slow
def test_a_runner_that_is_killed(bare: Clone, ann: Clone, bob: Clone, agent: Agent, cli: Command) -> None:
    """The next attempt finds the branch's own again under what stands, whatever the first left."""
    agent.does("sleep 30")
    bob.git("config", "gitgate.leaseTerm", "1s")
    gate = ask_elsewhere(ann, bob, cli)
    answer(cli, gate, bob)
    running = cli.start("resume", gate, cwd=bob.path)
    until(lambda: agent.starts == [gate])
    running.send_signal(signal.SIGKILL)
    running.communicate()
    place = worktree(bob, gate)
    assert (place / ".claude/settings.json").read_text() == TRUSTED[".claude/settings.json"]
    git_dir = Path(Clone(place).git("rev-parse", "--git-dir"))
    (git_dir / "index.lock").touch()  # git was killed as well, just now
    (git_dir / "HEAD.lock").touch()
    os.utime(git_dir / "HEAD.lock", (1, 1))  # or a while ago
    agent.does(looks(agent) + COMMITS)
    until(lambda: cli.quick("resume", gate, cwd=bob.path).code == 0)
    assert (agent.folder / "seen").read_text() == TRUSTED[".claude/settings.json"] + TRUSTED[
        ".claude/guard.sh"
    ]
    names = bob.git("diff-tree", "-r", "--name-status", "feature~1", "feature").split("\n")
    assert names == ["A\t.mcp.json", "M\tsrc/code"]
    assert Clone(place).git("status", "--porcelain", "-uall") == "?? src/CLAUDE.md"


@pytest.mark.slow
def test_a_gate_asked_there_is_resumed_elsewhere_meanwhile(
    bare: Clone, ann: Clone, bob: Clone, agent: Agent, cli: Command
) -> None:
    """Two agents of one working tree would lift it under each other: the second gets a tree of its own."""
    folder = agent.folder
    wait = "for i in $(seq 100); do [ -e {}/{} ] && break; sleep 0.1; done"
    first = f"git gate ask 'And now?' --agent scripted --no-push > {folder}/next; {wait.format(folder, 'go')}; pwd > {folder}/one; cat .claude/settings.json > {folder}/later"
    second = f"pwd > {folder}/two; cat .claude/settings.json > {folder}/second"
    agent.does(f"if [ ! -e {folder}/next ]; then {first}; else {second}; fi")
    gate = ask_elsewhere(ann, bob, cli)
    answer(cli, gate, bob)
    running = cli.start("resume", gate, cwd=bob.path)
    until(lambda: (folder / "next").exists() and (folder / "next").read_text().endswith("\n"))
    follows = (folder / "next").read_text().strip()
    cli.quick("respond", follows, "Go", "--no-push", cwd=bob.path, code=0)
    cli.quick("resume", follows, cwd=bob.path, code=0)
    (folder / "go").touch()
    running.communicate(timeout=PATIENCE)
    assert (folder / "one").read_text() != (folder / "two").read_text()
    assert (
        (folder / "later").read_text() == (folder / "second").read_text() == TRUSTED[".claude/settings.json"]
    )


@pytest.mark.slow
def test_a_working_tree_that_cannot_be_given_back_stays(
    bare: Clone, ann: Clone, bob: Clone, agent: Agent, cli: Command
) -> None:
    """Another git holds its index: nobody removes what git does not look at; later it is found as it was."""
    agent.does('echo mine > .claude/settings.json; touch "$(git rev-parse --git-dir)/index.lock"')
    gate = ask_elsewhere(ann, bob, cli)
    answer(cli, gate, bob)
    said = cli.quick("resume", gate, cwd=bob.path, code=0)
    place = worktree(bob, gate)
    assert f"files that stand for others remain in {place}" in said.err
    assert (place / ".claude/settings.json").read_text() == "mine\n"
    there = Clone(place)
    Path(there.git("rev-parse", "--git-dir"), "index.lock").unlink()
    assert lift(there.repository) == (".claude/settings.json",)
    assert (place / ".mcp.json").read_text() == PLANTED[".mcp.json"]


@pytest.mark.slow
def test_a_sparse_checkout_loses_nothing(
    bare: Clone, ann: Clone, bob: Clone, agent: Agent, cli: Command
) -> None:
    """What it holds back is not taken for deleted, and no commit takes it away."""
    agent.does("echo done > src/code; git commit -qam Done")
    gate = ask_elsewhere(ann, bob, cli)
    answer(cli, gate, bob)
    bob.git("sparse-checkout", "set", "src")
    cli.quick("resume", gate, cwd=bob.path, code=0)
    assert bob.git("diff", "--name-status", "feature~1", "feature") == "A\t.mcp.json\nM\tsrc/code"


# what it made of the protected branch, and of others


POLICY = "echo 'policy: {}' > .gitgate.yml; git add .gitgate.yml; git commit -qm Policy"
ELSEWHERE = "git switch -q -C other origin/other; echo x > x; git add x; git commit -qm X"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("does", "why"),
    [
        (POLICY, "on main people alone change .gitgate.yml"),
        pytest.param(
            ELSEWHERE, "the agent was put on main, and other is not moved for it", marks=pytest.mark.slow
        ),
        pytest.param(
            f"{ELSEWHERE}; git switch -q -C main origin/main; {POLICY}",
            "on main people alone change .gitgate.yml",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_branch_that_is_not_the_agents_to_move(
    bare: Clone, ann: Clone, bob: Clone, agent: Agent, cli: Command, does: str, why: str
) -> None:
    """Whoever resumes it may push anywhere, and so pushes what it made to a branch of its own, which the outcome names."""
    agent.does(does)
    ann.git("push", "-q", "origin", "main:other")
    bob.git("fetch", "-q", "origin")
    before = {name: bare.git("rev-parse", name) for name in ("main", "other")}
    for clone in (ann, bob):
        clone.git("config", "gitgate.session", "push")
        cli.quick("init", "--no-resume", cwd=clone.path, code=0)
    gate = cli.quick("ask", "Which?", "--agent", "scripted", cwd=ann.path, code=0).line
    cli.quick("sync", cwd=bob.path, code=0)
    answer(cli, gate, bob)
    done = cli.quick("resume", gate, "--json", cwd=bob.path, code=0).json["gates"][0]
    assert done["branch"] == f"gate/{gate}"
    assert why in cli.quick("show", gate, cwd=bob.path, code=0).out
    assert {name: bare.git("rev-parse", name) for name in before} == before
    assert bare.git("rev-parse", f"gate/{gate}") == done["commits"][-1]
