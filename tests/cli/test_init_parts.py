"""Init's parts for agents: Claude Code's hooks and skill, guidance for others, and a script that asks."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gitgate.setup import TEXTS
from support import PATIENCE
from support.resuming import Agent
from support.testbed.command import Command
from support.testbed.repositories import Clone

PARTS = ("--claude", "--agents", "--script")
SETTINGS = ".claude/settings.json"


def files(clone: Clone) -> dict[str, bytes]:
    names = clone.git("ls-files", "-co", "--exclude-standard").splitlines()
    return {name: (clone.path / name).read_bytes() for name in names}


def test_parts_are_put_in_place_once_and_taken_away_whole(repo: Clone, cli: Command) -> None:
    """A second time changes nothing; afterwards the project is as it was."""
    before = files(repo)
    cli.quick("init", *PARTS, "--dry-run", code=0)
    assert files(repo) == before
    cli.quick("init", *PARTS, code=0)
    placed = files(repo)
    assert set(placed) - set(before) == {
        ".claude/gitgate-hook",
        SETTINGS,
        ".claude/skills/asking-a-person/SKILL.md",
        "AGENTS.md",
        "scripts/ask-human.sh",
    }
    assert all(step["done"] for step in cli.quick("init", *PARTS, "--json", code=0).json["steps"])
    assert files(repo) == placed
    cli.quick("init", *PARTS, "--remove", code=0)
    assert files(repo) == before
    cli.quick("init", *PARTS, "--remove", code=0)
    assert files(repo) == before


def test_what_a_project_had_stays(repo: Clone, cli: Command) -> None:
    """Other settings and hooks, the text around our section, and its place."""
    mine = {
        "model": "x",
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}], "Other": []},
    }
    repo.write(SETTINGS, json.dumps(mine))
    repo.write("AGENTS.md", "# Mine\n\nText.\n")
    cli.quick("init", "--claude", "--agents", code=0)
    said = json.loads((repo.path / SETTINGS).read_text())
    assert said["model"] == "x"
    assert said["hooks"]["Stop"][0] == mine["hooks"]["Stop"][0]  # type: ignore[index]
    assert len(said["hooks"]["Stop"]) == 2
    agents = repo.path / "AGENTS.md"
    assert agents.read_text().startswith("# Mine\n\nText.\n\n<!-- git gate: begin")
    outdated = agents.read_text().replace("Decisions that are not yours", "OLD WORDS") + "\nAfter.\n"
    agents.write_text(outdated)
    cli.quick("init", "--agents", code=0)
    assert "OLD WORDS" not in agents.read_text()
    assert agents.read_text().count("git gate: begin") == 1
    assert agents.read_text().endswith("After.\n")
    cli.quick("init", "--claude", "--agents", "--remove", code=0)
    assert agents.read_text() == "# Mine\n\nText.\n\nAfter.\n"
    assert json.loads((repo.path / SETTINGS).read_text())["hooks"]["Stop"] == mine["hooks"]["Stop"]  # type: ignore[index]


@pytest.mark.parametrize(("name", "text", "flag"), [(SETTINGS, "{broken", "--claude"), (SETTINGS, "[]", "--claude"), ("scripts/ask-human.sh", "mine", "--script"), ("AGENTS.md", "<!-- git gate: begin (kept by `git gate init --agents`) -->", "--agents")])  # fmt: skip
def test_what_cannot_be_kept_is_left_alone(
    name: str, text: str, flag: str, repo: Clone, cli: Command
) -> None:
    """A file that is broken, or somebody else's, is named; it stays."""
    repo.write(name, text)
    said = cli.quick("init", flag)
    assert said.code in (1, 2)
    assert Path(name).name in said.err or "git gate: end" in said.err
    assert (repo.path / name).read_text() == text


def test_a_bare_repository_has_no_project(bare: Clone, cli: Command) -> None:
    """There is nothing to write to."""
    assert cli.quick("init", "--server", "--agents", cwd=bare.path).code == 2


# And a shell of one's own, such as an old bash: read before a test's seal takes it away.
OWN_SHELL = os.environ.get("GITGATE_TEST_SHELL", "").split()
SHELLS = tuple(filter(None, (("dash",), ("busybox", "sh"), ("bash",), ("bash", "--posix"), tuple(OWN_SHELL))))


@pytest.mark.parametrize(
    ("arguments", "answer", "out", "code"),
    [
        (("Which?",), "mine", "mine\n", 0),
        (("-o is a word?", "text"), "yes", "yes\n", 0),
        (("May I?", "yesno"), "--approve", "yes\n", 0),
        (("May I?", "yesno"), "--reject", "no\n", 3),
        (("May I?", "approval"), "--approve", "approved\n", 0),
        (("Which?", "select", "A,B b"), "B b", "B b\n", 0),
        (("Which?", "", "A,B"), "A", "A\n", 0),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_the_script_asks_and_prints_the_answer(
    arguments: tuple[str, ...], answer: str, out: str, code: int, repo: Clone, cli: Command
) -> None:
    """Question, type, options; the answer alone on standard output."""
    cli.quick("init", "--script", code=0)
    running = ask_by_script((), *arguments)
    cli("respond", gate_asked(running), answer, code=0)
    said, _ = running.communicate(timeout=PATIENCE)
    assert (said, running.returncode) == (out, code)


def ask_by_script(shell: tuple[str, ...], *arguments: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*shell, "./scripts/ask-human.sh", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **env},
    )


def gate_asked(running: subprocess.Popen[str]) -> str:
    """The id, from its first line of talk."""
    assert running.stderr is not None
    return running.stderr.readline().split()[1]


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_the_script_is_the_same_in_every_shell(shell: tuple[str, ...], repo: Clone, cli: Command) -> None:
    """A yes with its note below, a no with its exit code, a question that nobody answers in time, and one that is stopped."""
    cli.quick("init", "--script", code=0)
    yes = ask_by_script(shell, "May I?", "yesno")
    cli("respond", gate_asked(yes), "--approve", "--note", "approved 'by' \"me\"\nafter 18:00", code=0)
    assert yes.communicate(timeout=PATIENCE)[0] == "yes\napproved 'by' \"me\"\nafter 18:00\n"
    assert yes.returncode == 0
    no = ask_by_script(shell, "May I $(touch run) `touch run`?", "yesno")
    gate = gate_asked(no)
    assert cli("show", gate, "--json", code=0).json["title"] == "May I $(touch run) `touch run`?"
    cli("respond", gate, "--reject", code=0)
    assert (no.communicate(timeout=PATIENCE)[0], no.returncode) == ("no\n", 3)
    late = ask_by_script(shell, "May I?", "yesno", ASK_HUMAN_TIMEOUT="1s", ASK_HUMAN_PRIORITY="urgent")
    gate = gate_asked(late)
    out, err = late.communicate(timeout=PATIENCE)
    assert (out, late.returncode) == ("", 124)
    assert "nobody answered before the deadline" in err
    shown = cli("show", gate, "--json", code=0).json
    assert (shown["state"], shown["priority"]) == ("expired", "urgent")
    stopped = ask_by_script(shell, "May I?", "yesno", ASK_HUMAN_AGENT="backend")
    gate = gate_asked(stopped)
    cli("stop", gate, "--reason", "no need", code=0)
    assert (stopped.communicate(timeout=PATIENCE)[0], stopped.returncode) == ("", 9)
    assert cli("show", gate, "--json", code=0).json["asked"]["agent"] == "backend"
    assert not (repo.path / "run").exists()


@pytest.mark.slow
def test_the_script_is_plain_sh() -> None:
    """Nothing that an old bash, a dash or busybox lacks: a checker of shell scripts finds nothing, in any dialect."""
    for dialect in ("sh", "dash", "bash", "ksh"):
        subprocess.run(["shellcheck", "-s", dialect, TEXTS / "ask-human.sh"], check=True)


@pytest.mark.slow
def test_the_script_says_that_git_gate_is_missing(repo: Clone, cli: Command) -> None:
    """Where neither PATH nor what `init` noted leads to it: what installs it, and exit 1."""
    cli.quick("init", "--script", code=0)
    repo.git("config", "--unset-all", "gitgate.program", check=False)
    ended = ask_by_script((), "Which?", PATH="/usr/bin:/bin")
    assert "in a clone of its repository: pipx install '.[forms]'" in ended.communicate(timeout=PATIENCE)[1]
    assert ended.returncode == 1


@pytest.mark.parametrize("arguments", [(), ("",), ("x", "other"), ("x", "select"), ("a", "text", "b", "c")])
def test_the_script_says_how_it_is_used(arguments: tuple[str, ...], repo: Clone, cli: Command) -> None:
    """Instead of asking something that nobody meant."""
    cli.quick("init", "--script", code=0)
    said = subprocess.run(["./scripts/ask-human.sh", *arguments], capture_output=True, text=True)
    assert (said.returncode, said.stdout) == (2, "")
    assert "usage" in said.stderr


# all of it


def kept(clone: Clone) -> tuple[list[str], dict[str, str], str]:
    """Files of git's own folder but its objects, refs, and the configuration."""
    git = clone.path / ".git"
    skipped = ("objects", "logs", "index", "refs", "FETCH_HEAD", "packed-refs", "COMMIT_EDITMSG")
    names = [str(place.relative_to(git)) for place in sorted(git.rglob("*")) if not place.is_dir()]
    files = [name for name in names if name.split("/")[0] not in skipped]
    return files, clone.refs(), (git / "config").read_text()


@pytest.mark.slow
def test_a_purge_leaves_nothing_but_gates(
    bare: Clone, clone_of: Callable[..., Clone], cli: Command, tmp_path: Path
) -> None:
    """After a resumed agent, an open question and settings of the person's own; the command that it names erases the rest."""
    agent = Agent(tmp_path / "agent")
    agent.folder.mkdir()
    agent.does("echo made > made.txt; git add -A; git commit -qm Made")
    clone = clone_of(bare, "ann")
    before = kept(clone)
    clone.git("config", "gitgate.agent.mine.resume", json.dumps([str(agent.folder / "agent.sh")]))
    clone.git("config", "gitgate.priority", "high")
    cli.quick("init", *PARTS, cwd=clone.path, code=0)
    gate = cli("ask", "Which?", "--agent", "mine", "--session", "4711", "-q", cwd=clone.path, code=0).line
    cli("respond", gate, "Both.", "--no-resume", cwd=clone.path, code=0)
    cli("resume", gate, cwd=clone.path, code=0)
    cli("ask", "And now?", cwd=clone.path, code=0)
    assert clone.git("log", "-1", "--format=%s") == "Made"
    trial = cli.quick("init", "--remove", "--purge", "--dry-run", cwd=clone.path, code=0).err
    assert (clone.path / ".git/gitgate").is_dir()
    done = cli.quick("init", "--remove", "--purge", cwd=clone.path, code=0).err
    assert trial.replace("to undo ", "undone  ") == done
    files, refs, config = kept(clone)
    assert (files, config) == (before[0], before[2])
    more = set(refs) - set(before[1])
    assert more
    assert [ref for ref in more if not ref.startswith(("refs/hitl/", "refs/remotes/origin/gate/"))] == []
    state = Path(os.environ["XDG_STATE_HOME"]) / "gitgate"
    assert not state.exists()
    (erase,) = [line for line in done.splitlines() if "update-ref" in line]
    subprocess.run(["sh", "-ec", erase], cwd=clone.path, check=True)
    assert [ref for ref in clone.refs() if "hitl" in ref or "gitgate" in ref] == []
    assert (
        "nothing of git gate is left here"
        in cli.quick("init", "--remove", "--purge", cwd=clone.path, code=0).err
    )


def test_a_purge_takes_no_work(
    bare: Clone, clone_of: Callable[..., Clone], cli: Command, tmp_path: Path
) -> None:
    """What an agent did not commit stops it, before anything is taken away, and so does one that is at work."""
    clone = clone_of(bare, "ann")
    cli.quick("init", cwd=clone.path, code=0)
    trees = tmp_path / "trees"
    clone.git("config", "gitgate.worktrees", str(trees))
    clone.git("worktree", "add", "-q", "--detach", str(trees / "one"))
    (trees / "one/new.txt").write_text("x")
    refused = cli.quick("init", "--remove", "--purge", cwd=clone.path, code=5).err
    assert f"git worktree remove --force {trees / 'one'}" in refused
    assert clone.git("config", "gitgate.initialised") == "true"
    (trees / "one/new.txt").unlink()
    standing = clone.path / ".git/gitgate-standing"
    standing.mkdir()
    assert "git gate doctor" in cli.quick("init", "--remove", "--purge", cwd=clone.path, code=5).err
    standing.rmdir()
    cli.quick("init", "--remove", "--purge", cwd=clone.path, code=0)
    assert not trees.exists()
    assert "gitgate" not in (clone.path / ".git/config").read_text()


@pytest.mark.parametrize("words", [["--purge"], ["--remove", "--purge", "--claude"]])
def test_a_purge_is_all_or_nothing(repo: Clone, cli: Command, words: list[str]) -> None:
    """It says how to do it."""
    assert "git gate init --remove --purge" in cli.quick("init", *words, code=2).err


def test_init_says_what_waits(cli: Command, bare: Clone, clone_of: Callable[..., Clone]) -> None:
    """What it brought, and where nothing is new, that."""
    asking, other = clone_of(bare, "asking"), clone_of(bare, "other")
    cli.quick("ask", "Which?", "-q", cwd=asking.path, code=0)
    said = [cli.quick("init", cwd=other.path, code=0).err.splitlines()[-1] for _ in range(2)]
    assert said == [
        f"origin: {news}. next: git gate list" for news in ("1 gate not known here before", "nothing new")
    ]
