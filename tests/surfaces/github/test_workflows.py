"""The workflows: what they may do, what they call, and the whole loop by their own steps."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gitgate.setup.workflows import FLOW, NAMES
from gitgate.version import REPOSITORY
from support.forges.jobs import ACTION, CALL, OTHERS, TOP, WORKFLOWS, Ran, Step, load, run_workflow
from support.forges.standin import Forge
from support.resuming import Agent
from support.servers import HttpServer
from support.testbed.command import Command
from support.testbed.repositories import Clone, run_git
from support.testbed.terminal import Terminal

from .conftest import THREAD

REUSABLE = ("agent.yml", "answer.yml", "resume.yml", "sweep.yml")
CALLERS = [TOP / "gitgate/texts/workflows" / name for name in (*NAMES, FLOW)]
ALL = [*(WORKFLOWS / name for name in REUSABLE), *CALLERS]
HARMLESS = re.compile(r"(inputs|secrets|github\.token|needs\.claim\.outputs\.(held|claim))\b")
PIN = "team/git-gate@" + "a1" * 20


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_nothing_is_permitted_on_top(path: Path) -> None:
    """Each job says what it needs, and no more than that."""
    said = load(path)
    assert said["permissions"] == {}
    needed = dict.fromkeys(("contents", "pull-requests", "issues", "statuses", "checks"), "write")
    for name, job in said["jobs"].items():
        reads = path.parent == WORKFLOWS and name == "agent"  # the job in which an agent runs
        assert job["permissions"] == ({"contents": "read"} if reads else needed)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_what_is_used_is_pinned_by_commit(path: Path) -> None:
    """A tag can be moved."""
    uses = set(re.findall(r"\buses: (\S+)", path.read_text())) - {"./.github/workflows/resume.yml"}
    assert uses
    assert all(re.search(r"@[0-9a-f]{40}$", used) for used in uses)


WITH_STEPS = [*(WORKFLOWS / name for name in REUSABLE), ACTION]


def steps_of(path: Path) -> list[dict[str, Any]]:
    said = load(path)
    each = [said["runs"]] if "runs" in said else said["jobs"].values()
    return [step for one in each for step in one.get("steps", ())]


def test_a_command_line_is_one_call_of_ours() -> None:
    """Of plain words and variables. What installs our command, and the agent's, are the only others, each used."""
    lines = {step["run"] for path in WITH_STEPS for step in steps_of(path) if "run" in step}
    assert {line for line in lines if not CALL.fullmatch(line)} == set(OTHERS)
    assert len(OTHERS) == 6


@pytest.mark.parametrize(
    "line",
    [
        "git-gate github run && curl evil.example",
        "git-gate github run; true",
        "git-gate github run | sh",
        "git-gate github run || true",
        "git-gate github run $(id)",
        "git-gate github run `id`",
        "git-gate github resume $GATE",
        "git-gate github run > out",
        "git-gate github run\ntrue",
        "X=1 git-gate github run",
        "git-gate github accept ${{ github.event.comment.body }}",
    ],
)
def test_more_than_one_call_is_seen(line: str) -> None:
    """The rule that the test before relies on."""
    assert not CALL.fullmatch(line)


@pytest.mark.parametrize("path", WITH_STEPS, ids=lambda path: path.name)
def test_a_step_takes_nothing_of_an_event(path: Path) -> None:
    """Row 4: what somebody wrote is never part of a command, nor of its environment; no credentials stay behind."""
    for step in steps_of(path):
        if "checkout" in step.get("uses", ""):
            assert (
                step["with"]["persist-credentials"] == "false" or step["with"]["persist-credentials"] is False
            )
        for value in (step.get("env") or {}).values():
            for expression in re.findall(r"\$\{\{\s*(.+?)\s*\}\}", str(value)):
                assert HARMLESS.match(expression) or expression == "github.action_path"


@pytest.mark.parametrize("name", ["agent.yml", "resume.yml"])
def test_the_agents_job_has_no_token_that_writes(name: str) -> None:
    """It may read, which its own step is not even told; what it made is pushed by the job after it, and nothing else is."""
    jobs = load(WORKFLOWS / name)["jobs"]
    assert list(jobs)[-2:] == ["agent", "deliver"]
    agent, deliver = jobs["agent"], jobs["deliver"]
    assert agent["permissions"] == {"contents": "read"}
    with_token = [step["name"] for step in agent["steps"] if "github.token" in json.dumps(step)]
    assert with_token == ["Prepare"]
    (prepare,) = [step for step in agent["steps"] if step.get("name") == "Prepare"]
    assert prepare["run"] == "git-gate github prepare --apart"
    assert "secrets." not in json.dumps(deliver)
    (taken,) = [step for step in deliver["steps"] if "download-artifact" in step.get("uses", "")]
    assert taken["with"]["artifact-ids"] == "${{ needs.agent.outputs.made }}"
    assert "agent" in deliver["needs"]
    assert deliver["if"].startswith("always()")


@pytest.mark.parametrize(("name", "first"), [("answer.yml", "answer"), ("sweep.yml", "sweep")])
def test_each_gate_has_a_group_of_its_own(name: str, first: str) -> None:
    """An agent goes on in jobs, and a group, of its gate; whoever replies gets a job at once, without agent or keys."""
    jobs = load(WORKFLOWS / name)["jobs"]
    assert list(jobs) == [first, "resume"]
    assert jobs["resume"]["concurrency"] == {
        "group": "gitgate-${{ matrix.gate }}",
        "cancel-in-progress": False,
    }
    assert jobs["resume"]["strategy"]["fail-fast"] is False
    assert "concurrency" not in load(WORKFLOWS / "answer.yml")["jobs"]["answer"]
    group = load(WORKFLOWS / "sweep.yml")["jobs"]["sweep"]["concurrency"]["group"]
    assert group.endswith(
        "-${{ github.event.pull_request.number }}"
    )  # its new head is marked by no other's job
    short = json.dumps(jobs[first])
    for word in ("secrets.", "agent-package", "cancel-in-progress: true"):
        assert word not in short


# init --github


def test_init_writes_small_workflows(repo: Clone, cli: Command) -> None:
    """Pinned to the commit that is configured; again changes nothing; a person's command stays; removed without a trace."""
    repo.git("config", "gitgate.workflows", PIN)
    cli.quick("init", "--github", code=0)
    texts = {name: (repo.path / ".github/workflows" / name).read_text() for name in NAMES}
    for text in texts.values():
        assert REPOSITORY not in text
        assert f"@{'a1' * 20}" in text
    agent = repo.path / ".github/workflows/gitgate-agent.yml"
    agent.write_text(texts["gitgate-agent.yml"].replace('"claude"', '"reviewer"'))
    answers = repo.path / ".github/workflows/gitgate.yml"
    answers.write_text(texts["gitgate.yml"].replace('agent-package: ""', 'agent-package: "reviewer@1.2.3"'))
    assert "as it was" in cli.quick("init", "--github", code=0).err
    repo.git("config", "gitgate.workflows", PIN.replace("a1", "b2"))
    cli.quick("init", "--github", code=0)
    assert '"reviewer"' in agent.read_text()
    assert "b2" * 20 in agent.read_text()
    assert "a1" * 20 not in agent.read_text()
    assert answers.read_text().count('"reviewer@1.2.3"') == 2
    assert "a1" * 20 not in answers.read_text()
    cli.quick("init", "--github", "--remove", code=0)
    assert not (repo.path / ".github").exists()


def test_files_from_before_checks_get_that_right(repo: Clone, cli: Command) -> None:
    """GitHub starts none of a file's jobs where a called workflow asks for more than it is given."""
    repo.git("config", "gitgate.workflows", PIN)
    cli.quick("init", "--github", code=0)
    for name in NAMES:
        place = repo.path / ".github/workflows" / name
        now = place.read_text()
        place.write_text(now.replace("      checks: write\n", ""))
        cli.quick("init", "--github", code=0)
        assert place.read_text() == now


def test_a_file_from_before_merge_queues_hears_them(repo: Clone, cli: Command) -> None:
    """Where it is as it was written then; conditions of somebody's own stay."""
    repo.git("config", "gitgate.workflows", PIN)
    cli.quick("init", "--github", code=0)
    place = repo.path / ".github/workflows" / NAMES[0]
    now = place.read_text()
    before = re.sub(r"  merge_group:.*\n.*\n| (?:&&|\|\|) github\.event_name [!=]= 'merge_group'", "", now)
    assert "merge_group" not in before
    place.write_text(before)
    said = cli.quick("doctor").out
    assert "it is of an older shape than this git gate writes" in said
    cli.quick("init", "--github", code=0)
    assert place.read_text() == now
    own = before.replace("github.event_name != 'schedule'", "github.actor != 'eve'", 1)
    place.write_text(own)
    cli.quick("init", "--github", code=0)
    assert place.read_text() == own


def test_jobs_install_what_was_said(repo: Clone, cli: Command) -> None:
    """Another requirement and another index, which stay when the files are written again for a newer commit; no setting says them."""
    repo.git("config", "gitgate.workflows", PIN)
    repo.git("config", "gitgate.package", "git-gate[all]==9")
    repo.git("config", "gitgate.packageIndex", "https://other.example.org/simple")
    index = "https://packages.example.org/simple"
    cli.quick("init", "--github", "--package", "git-gate[all]==0.1.0", "--package-index", index, code=0)
    repo.git("config", "gitgate.workflows", PIN.replace("a1", "b2"))
    said = cli.quick("init", "--github", code=0).err
    assert "gitgate.packageindex counts no more: `git gate init --github --package-index`" in said
    for name, times in zip(NAMES, (2, 1), strict=True):
        jobs = load(repo.path / ".github/workflows" / name)["jobs"].values()
        given = [(job["with"]["package"], job["with"]["package-index"]) for job in jobs]
        assert given == [("git-gate[all]==0.1.0", index)] * times
        assert all("b2" * 20 in job["uses"] for job in jobs)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--github", "--package", "other==1"], "git gate init --github --package 'git-gate[all]==VERSION'"),
        (["--github", "--package", 'git-gate"; rm -rf'], "is not one requirement"),
        (["--github", "--package", "git-gate --pre"], "is not one requirement"),
        (["--github", "--package-index", "packages"], "is not an address"),
        (["--github", "--package-index", "https://ada:secret@packages.example.org"], "holds a login"),
        (["--package", "git-gate"], "git gate init --github --package"),
    ],
)
def test_what_jobs_cannot_install_is_refused(repo: Clone, cli: Command, words: list[str], said: str) -> None:
    """Before anything is written."""
    repo.git("config", "gitgate.workflows", PIN)
    assert said in cli.quick("init", *words, code=2).err
    assert not (repo.path / ".github").exists()


@pytest.fixture
def from_an_index(tmp_path: Path) -> Path:
    """A git gate as pip unpacks it from an index: it says its build's commit, and pip noted no address."""
    site = tmp_path / "site"
    shutil.copytree(TOP / "gitgate", site / "gitgate", ignore=shutil.ignore_patterns("__pycache__", "commit"))
    version = site / "gitgate/version.py"
    version.write_text(version.read_text().replace(REPOSITORY, "team/git-gate"))
    (site / "gitgate/texts/commit").write_text("a1" * 20 + "\n")
    shutil.copytree(TOP / "hooks", site / "gitgate/shims")
    about = site / "git_gate-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: git-gate\nVersion: 0\n")
    program = tmp_path / "git-gate"
    program.write_text(
        f"#!{sys.executable} -I\nimport sys\nsys.path.insert(0, {str(site)!r})\nfrom gitgate.cli.process import run\nrun()\n"
    )
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("typed", "package", "code"),
    [
        ("", "", 0),
        pytest.param("  git-gate[all]==0.1.0 ", "git-gate[all]==0.1.0", 0, marks=pytest.mark.slow),
        pytest.param("other==1", None, 2, marks=pytest.mark.slow),
    ],
)
def test_what_jobs_install_is_asked_for_where_pip_noted_nothing(
    repo: Clone,
    pty_cli: Callable[..., Terminal],
    from_an_index: Path,
    typed: str,
    package: str | None,
    code: int,
) -> None:
    """On a terminal: Enter takes the build's own commit, a requirement that one; written once, it is not asked again."""
    with_it = {"cwd": repo.path, "program": str(from_an_index)}
    terminal = pty_cli("init", "--github", **with_it)
    terminal.expect(f"What pip installs in the jobs (Enter for team/git-gate at {'a1' * 20}):")
    terminal.line(typed)
    shown = terminal.finish(code=code)
    written = repo.path / ".github/workflows"
    if package is None:
        assert "is not one requirement on git-gate" in shown
        assert not written.exists()
        return
    for name, times in zip(NAMES, (2, 1), strict=True):
        jobs = load(written / name)["jobs"].values()
        assert [job["with"]["package"] for job in jobs] == [package] * times
        assert all(job["uses"].endswith("a1" * 20) for job in jobs)
    assert "What pip installs" not in pty_cli("init", "--github", **with_it).finish(code=0)


@pytest.mark.slow
def test_an_index_reaches_pip(tmp_path: Path) -> None:
    """In each job that installs; an empty one is none to pip, which goes to its usual index then."""
    each = [step for name in REUSABLE for step in steps_of(WORKFLOWS / name)]
    steps = [
        step
        for step in each
        if {"--no-index"}.isdisjoint(str(step.get("run")).split()) and "pip" in str(step.get("run"))
    ]
    assert len(steps) == 14
    assert all(step["env"]["PIP_INDEX_URL"] == "${{ inputs.package-index }}" for step in steps)
    usual = tmp_path / "pip.conf"
    usual.write_text("[global]\nindex-url = http://127.0.0.1:9/usual\n")
    for given, asked in (("", "/usual/no-such/"), ("http://127.0.0.1:9/given", "/given/no-such/")):
        env = {**os.environ, "PIP_INDEX_URL": given, "PIP_CONFIG_FILE": str(usual)}
        command = [
            sys.executable,
            "-I",
            "-m",
            "pip",
            "download",
            "--retries",
            "1",
            "--no-cache-dir",
            "no-such",
        ]
        said = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert asked in said.stdout + said.stderr


def test_a_file_written_before_there_was_a_lock_follows(repo: Clone, cli: Command) -> None:
    """What it named for pip is what a job installs now; another wish, and other lines, stay as they are."""
    repo.git("config", "gitgate.workflows", PIN)
    cli.quick("init", "--github", code=0)
    place = repo.path / ".github/workflows/gitgate.yml"
    now = place.read_text()
    lines = f'source: team/git-gate\n      source-commit: "{"a1" * 20}"\n      package: ""'
    assert now.count(lines) == 2
    for extras, host in (("[all]", "github.com"), ("", "git.example.org:8443")):
        before = f'package: "git-gate{extras} @ git+https://{host}/old/fork@{"c3" * 20}"'
        place.write_text(now.replace(lines, before))
        cli.quick("init", "--github", code=0)
        assert place.read_text() == now
    wish = "git-gate[all]==0.1.0"
    place.write_text(now.replace(lines, f'package: "{wish}"'))
    cli.quick("init", "--github", code=0)
    assert place.read_text() == now.replace(lines, lines.replace('""', f'"{wish}"'))


@pytest.mark.parametrize(
    "named", ["team/git-gate@main", "team/git-gate", "x@" + "a" * 40, PIN + "0", "t/g@" + "A" * 40]
)
def test_init_takes_nothing_that_can_be_moved(repo: Clone, cli: Command, named: str) -> None:
    """A branch or a tag is refused."""
    repo.git("config", "gitgate.workflows", named)
    assert "expected OWNER/REPOSITORY@" in cli.quick("init", "--github", code=2).err
    assert not (repo.path / ".github").exists()


def test_init_leaves_somebody_elses_workflow_alone(repo: Clone, cli: Command) -> None:
    """A file of that name that is not ours stays."""
    repo.git("config", "gitgate.workflows", PIN)
    repo.write(".github/workflows/gitgate.yml", "name: mine\n")
    assert "is not ours" in cli.quick("init", "--github", code=2).err
    assert (repo.path / ".github/workflows/gitgate.yml").read_text() == "name: mine\n"


# the whole loop


RUN = """#!/bin/sh
# The agent's first run: it works a little and asks.
echo partial > partial.txt
echo "$1" > task.txt
test -z "$GITGATE_GITHUB_TOKEN" || echo "$GITGATE_GITHUB_TOKEN" > leaked.txt
git-gate ask "Which database?" -o Postgres -o SQLite
"""
GO_ON = 'echo "db=$GITGATE_ANSWER" > db.conf; env > "{folder}/env.txt"; git add -A; git commit -qm "Use $GITGATE_ANSWER"'


def fresh_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine: nothing of the one before is there."""
    folder.mkdir()
    (folder / ".gitconfig").write_text('[protocol "file"]\n\tallow = always\n')
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(folder / ".gitconfig"))


def handed_on(output: Path) -> list[str]:
    """What the first job of a run gives to the jobs after it."""
    (said,) = re.findall(r"^resume=(.*)$", output.read_text(), re.MULTILINE)
    return list(json.loads(said))


def all_well(steps: list[Step]) -> None:
    assert [one for one in steps if one.code] == []


Told = Callable[[str, dict[str, Any]], dict[str, Any]]
"""What a job finds in its event file, of the event's name and of the stand-in's own event."""


@dataclass(frozen=True)
class Place:
    """Where the loop runs."""

    forge: Forge
    bare: Clone
    web: HttpServer
    cli: Command
    folder: Path
    monkeypatch: pytest.MonkeyPatch

    def event(self, told: Told, name: str, event: dict[str, Any]) -> dict[str, str]:
        """As a job of that event has it."""
        place = self.folder / f"event{len(list(self.folder.glob('event*')))}.json"
        place.write_text(json.dumps(told(name, event)))
        return {"GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": str(place)}


@pytest.fixture
def loop_place(
    forge: Forge, bare: Clone, web: HttpServer, cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Place:
    return Place(forge, bare, web, cli, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.needs("bash")
def test_the_whole_loop_by_the_workflows_own_steps(loop_place: Place) -> None:
    """With events that have all that GitHub's have, made here."""
    run_loop(loop_place, lambda _name, event: event)


def run_loop(at: Place, told: Told) -> None:
    """Over http: asked in one job, shown by the next, answered by a comment, claimed, gone on with, pushed, told; each with a fresh
    home and clone.
    """
    forge, bare, web, tmp_path, monkeypatch = at.forge, at.bare, at.web, at.folder, at.monkeypatch
    bare.git("config", "http.receivepack", "true")
    agent = Agent(tmp_path / "agent")
    agent.folder.mkdir()
    agent.does(GO_ON.format(folder=agent.folder))
    first = agent.folder / "scripted"
    first.write_text(RUN)
    first.chmod(0o755)
    monkeypatch.delenv("GITHUB_TOKEN")
    known = {
        "inputs.command": json.dumps(["scripted", "{task}"]),
        "inputs.branch": "feature",
        "inputs.task": 'say "hi" $(touch pwned) `id` ${{ secrets.X }}',
        "inputs.agent-name": "scripted",
        "inputs.agent-resume": json.dumps([str(agent.folder / "agent.sh")]),
    }
    env = {"CI": "true", "PATH": f"{agent.folder}:{os.environ['PATH']}", "RUNNER_TEMP": str(tmp_path)}

    def checkout(branch: str) -> Path:
        """A machine and a clone of its own for each job; nothing of the one before is there."""
        name = f"job{len(list(tmp_path.glob('job*')))}"
        fresh_home(tmp_path / f"home-{name}", monkeypatch)
        run_git("clone", "-q", "-b", branch or "main", web.url(bare.path), str(tmp_path / name), cwd=tmp_path)
        return tmp_path / name

    bare.git("branch", "feature", "main")
    forge.open_pull(THREAD, "feature", bare.git("rev-parse", "feature"))
    output = tmp_path / "output"
    output.touch()

    # the agent asks in a job that may not write, and the one after it shows that
    run = at.event(
        told, "workflow_dispatch", forge.run_event("gitgate-agent.yml", branch="feature", task="x")
    )
    first_run = run_workflow("agent.yml", known, checkout, {**env, **run, "GITHUB_OUTPUT": str(output)})
    assert well(first_run) == ["agent", "deliver"]
    assert "state=awaiting" in output.read_text()
    gate = re.findall(r"gate=(\w+)", output.read_text())[0]
    assert not list(tmp_path.glob("job*/pwned"))
    assert not list(tmp_path.glob("job*/leaked.txt"))
    assert forge.statuses[-1]["state"] == "pending"
    (shown,) = forge.by("github-actions[bot]")
    assert "Which database?" in shown["body"]
    assert "partial" in shown["body"]

    # a comment: it is taken in a job, and the agent goes on in three others
    reply = at.event(told, "issue_comment", forge.event(forge.write(THREAD, "ada", "/choose 2")))
    output.write_text("")
    here = {**env, **reply, "GITHUB_OUTPUT": str(output)}
    done = run_workflow("answer.yml", known, checkout, here)
    assert well(done) == ["answer", "claim", "agent", "deliver"]
    assert handed_on(output) == [gate]
    assert agent.starts == [gate]
    assert bare.git("show", "feature:db.conf") == "db=SQLite"
    assert bare.git("show", "feature:partial.txt") == "partial"
    found = (agent.folder / "env.txt").read_text()
    assert "job-token" not in found
    assert f"PWD={tmp_path}/gitgate-worktrees/{gate}\n" in found
    shown, came = forge.by("github-actions[bot]")
    assert "### ✅ Answered, and acted on" in shown["body"]
    assert bare.git("rev-parse", "feature") in shown["body"]
    assert f"Gate **{gate}**: ✅ the agent went on" in came["body"]
    assert bare.git("rev-parse", "feature") in came["body"]
    assert bare.git("for-each-ref", "refs/hitl/leases") == ""

    # a sweep on the schedule: nothing is left to do; and whoever asks for that gate once more finds it done
    forge.pulls[THREAD]["head"]["sha"] = bare.git("rev-parse", "feature")
    output.write_text("")
    schedule = at.event(lambda _name, event: event, "schedule", {"schedule": "*/30 * * * *"})
    assert well(
        run_workflow("sweep.yml", {**known, "github.event_name": "schedule"}, checkout, {**here, **schedule})
    ) == ["sweep"]
    assert handed_on(output) == []
    commit = at.cli.quick("show", gate, "--json", cwd=checkout("main"), code=0).json["answer"]["commit"]
    wish = forge.run_event("gitgate.yml", gate=gate, commit=commit)
    again = at.event(told, "workflow_dispatch", wish)
    late = {**known, "inputs.gate": gate}
    assert well(run_workflow("resume.yml", late, checkout, {**here, **again})) == ["claim"]
    assert agent.starts == [gate]
    assert (forge.statuses[-1]["sha"], forge.statuses[-1]["state"]) == (
        bare.git("rev-parse", "feature"),
        "success",
    )


def well(done: list[Ran]) -> list[str]:
    """The jobs that ran, each step of them well."""
    all_well([step for one in done for step in one.steps])
    return [one.job for one in done]


def each_its_own(clone_of: Callable[..., Clone], bare: Clone) -> Callable[[str], Path]:
    """A clone for each job."""
    count = iter(range(100))
    return lambda ref: clone_of(bare, f"job{next(count)}", "-b", ref or "main").path


@pytest.mark.slow
@pytest.mark.needs("bash")
def test_an_agent_that_is_done_has_its_branch_pushed(
    forge: Forge, bare: Clone, clone_of: Callable[..., Clone], tmp_path: Path, person: Any
) -> None:
    """Without a question: the job pushes what it made, by fast-forward, and nothing is asked."""
    bare.git("branch", "feature", "main")
    command = json.dumps(["sh", "-c", "echo done > made.txt; git add -A; git commit -qm Made"])
    known = {"inputs.command": command, "inputs.task": "", "inputs.branch": "feature"}
    assert well(run_workflow("agent.yml", known, each_its_own(clone_of, bare), {"CI": "true"})) == [
        "agent",
        "deliver",
    ]
    assert bare.git("show", "feature:made.txt") == "done"
    assert forge.comments == {}


@pytest.mark.slow
@pytest.mark.needs("bash")
def test_what_configures_the_agent_is_the_default_branchs(
    forge: Forge, bare: Clone, clone_of: Callable[..., Clone], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the job that runs it as well; what it commits has the branch's own."""
    monkeypatch.setenv("CI", "true")
    source = clone_of(bare, "source")
    source.commit("rules", **{"CLAUDE.md": "as it is to be\n"})
    source.git("push", "-q", "origin", "main")
    source.git("checkout", "-q", "-b", "feature")
    source.commit("planted", **{"CLAUDE.md": "planted\n", ".mcp.json": "{}\n"})
    source.git("push", "-q", "origin", "feature")
    command = json.dumps(
        ["sh", "-c", "cp CLAUDE.md made.txt; ls -a > seen.txt; git add -A; git commit -qm Made"]
    )
    known = {"inputs.command": command, "inputs.task": "", "inputs.branch": "feature"}
    done = run_workflow("agent.yml", known, each_its_own(clone_of, bare), {"CI": "true"})
    assert well(done) == ["agent", "deliver"]
    steps = [step for one in done for step in one.steps]
    assert bare.git("show", "feature:made.txt") == "as it is to be"
    assert ".mcp.json" not in bare.git("show", "feature:seen.txt")
    assert bare.git("show", "feature:CLAUDE.md") == "planted"
    assert bare.git("diff", "--name-only", "feature~1", "feature").split() == ["made.txt", "seen.txt"]
    assert any("as on the protected branch meanwhile: .mcp.json, CLAUDE.md" in step.err for step in steps)
