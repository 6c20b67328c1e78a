"""An agent in a job that may not write: what its job hands over is checked before anything of it is pushed."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitgate.acts.answering import Manner, respond
from gitgate.context import open_desk
from gitgate.gates.recording import reload
from gitgate.questions import Given
from gitgate.sharing import parcel
from support.resuming import Agent
from support.testbed.command import Outcome
from support.testbed.repositories import Clone

from .conftest import THREAD, Team

pytestmark = pytest.mark.slow  # each takes a second or more

JOB = {"GITHUB_ACTIONS": "true"}
ASK = "git-gate ask 'Which?' -o A -o B --agent scripted --session session-1"
MAKE = "echo done > made.txt; git add made.txt; git commit -qm Made"


def agents_job(team: Team, body: str, name: str = "apart") -> tuple[Clone, Path]:
    """A first run as its job does it: no step but the first has a token, and what is pushed stays on the machine."""
    job = team.clone_of(team.bare, name, "-b", "feature")
    team.cli.quick("github", "prepare", "--apart", cwd=job.path, env=JOB, code=0)
    command = json.dumps(["sh", "-ec", body])
    given = {**JOB, "GITGATE_AGENT_COMMAND": command, "GITGATE_PUSH": "false", "GITHUB_TOKEN": ""}
    team.cli.quick("github", "run", cwd=job.path, env=given, code=0)
    return job, packed(team, job)


def packed(team: Team, job: Clone, *words: str) -> Path:
    folder = team.folder / "made"
    team.cli.quick("github", "pack", str(folder), *words, cwd=job.path, env=JOB, code=0)
    return folder


def deliver(team: Team, folder: Path, *words: str, code: int = 0, **env: str) -> Outcome:
    given = {**JOB, "GITGATE_BRANCH": "feature", **env}
    return team.cli.quick("github", "deliver", str(folder), *words, cwd=team.job().path, env=given, code=code)


def said_in(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "made.json").read_text()))


def rewrite(folder: Path, **changed: Any) -> None:
    (folder / "made.json").write_text(json.dumps({**said_in(folder), **changed}))


def test_a_question_and_commits_are_handed_over(team: Team) -> None:
    """Nothing leaves the agent's job; the next one pushes its branch, opens the gate, and shows it."""
    before = team.bare.git("for-each-ref")
    job, folder = agents_job(team, f"{MAKE}; echo half > half.txt; {ASK}; git push -q origin HEAD:sneaked")
    assert team.bare.git("for-each-ref") == before
    assert sorted(place.name for place in folder.iterdir()) == ["made.json", "made.pack"]
    assert job.git("remote", "get-url", "origin").endswith("stage.git")
    output = team.folder / "output"
    deliver(team, folder, GITHUB_OUTPUT=str(output))
    assert team.bare.git("show", "feature:made.txt") == "done"
    gate = re.findall(r"^gate=(\w+)$", output.read_text(), re.MULTILINE)[-1]
    assert team.gate(gate)["state"] == "awaiting"
    assert "Which?" in team.shown(gate)
    assert team.bare.git("show", f"refs/hitl/work/{gate}:half.txt") == "half"
    assert "sneaked" not in team.bare.git("for-each-ref")


def test_a_branch_that_went_on_meanwhile_is_merged(team: Team) -> None:
    """While the agent worked; as if it had pushed itself."""
    _, folder = agents_job(team, MAKE)
    team.agents.commit("Meanwhile", other="1\n")
    team.agents.git("push", "-q", "origin", "feature")
    deliver(team, folder)
    assert (team.bare.git("show", "feature:made.txt"), team.bare.git("show", "feature:other")) == (
        "done",
        "1",
    )


def test_a_branch_that_was_rewritten_meanwhile_stays(team: Team) -> None:
    """What the agent began on is nobody's any more; its commits have a branch of their own."""
    team.agents.commit("First", first="1\n")
    team.agents.git("push", "-q", "origin", "feature")
    _, folder = agents_job(team, MAKE)
    team.agents.git("reset", "-q", "--hard", "HEAD~1")
    team.agents.commit("Another", made__txt="theirs\n")
    team.agents.git("push", "-qf", "origin", "feature")
    tip = team.bare.git("rev-parse", "feature")
    said = deliver(team, folder, code=1)
    assert team.bare.git("rev-parse", "feature") == tip
    assert f"pushed gate/{said_in(folder)['head'][:10]}" in said.err


def test_a_policy_is_not_changed_from_there(team: Team) -> None:
    """An agent that went to the default branch does not move it."""
    before = team.bare.git("rev-parse", "main")
    body = "git switch -qc mine origin/main; git branch -qf main; git switch -q main; echo 'policy: {}' > .gitgate.yml"
    _, folder = agents_job(team, f"{body}; git add .gitgate.yml; git commit -qm Policy")
    assert said_in(folder)["branch"] == "main"
    said = deliver(team, folder)
    assert "the agent was put on feature, and main is not moved for it" in said.err
    assert team.bare.git("rev-parse", "main") == before


def test_a_job_that_hands_nothing_over_says_so(team: Team) -> None:
    before = team.bare.git("for-each-ref")
    said = deliver(team, team.folder / "nowhere", code=1)
    assert "ended before it handed anything over" in said.err
    assert team.bare.git("for-each-ref") == before


# attacks: whoever packs it may be the agent


def another_file(folder: Path, _team: Team, _gate: str) -> None:
    (folder / "config").write_text("[core]\n\tfsmonitor = touch pwned\n")


def a_link(folder: Path, team: Team, _gate: str) -> None:
    (folder / "made.json").replace(team.folder / "elsewhere.json")
    (folder / "made.json").symlink_to(team.folder / "elsewhere.json")


def a_folder(folder: Path, _team: Team, _gate: str) -> None:
    (folder / "made.pack").unlink()
    (folder / "made.pack").mkdir()


def a_pipe(folder: Path, _team: Team, _gate: str) -> None:
    (folder / "made.json").unlink()
    os.mkfifo(folder / "made.json")


def too_much_said(folder: Path, _team: Team, _gate: str) -> None:
    rewrite(folder, branch="x" * parcel.MOST_SAID)


def too_many_refs(folder: Path, _team: Team, _gate: str) -> None:
    (tip,) = [oid for ref, oid in said_in(folder)["refs"].items() if ref.startswith("refs/hitl/open/")]
    named = [f"refs/hitl/open/{a}{b}{'2' * 8}" for a in "abcdefghjk" for b in "bcdefghjkmnpqrstuvwxyz"]
    rewrite(folder, refs=dict.fromkeys(named, tip))


def not_json(folder: Path, _team: Team, _gate: str) -> None:
    (folder / "made.json").write_text("[" * 100_000)


def another_shape(folder: Path, _team: Team, _gate: str) -> None:
    rewrite(folder, more=1)


def add_ref(name: str) -> Callable[[Path, Team, str], None]:
    def attack(folder: Path, _team: Team, _gate: str) -> None:
        said = said_in(folder)
        rewrite(folder, refs={**said["refs"], name: said["head"]})

    return attack


def a_flag_for_a_branch(folder: Path, _team: Team, _gate: str) -> None:
    rewrite(folder, branch="--force")


def a_branch_that_leads_out(folder: Path, _team: Team, _gate: str) -> None:
    rewrite(folder, branch="../../hitl/open/x")


def no_commit(folder: Path, _team: Team, _gate: str) -> None:
    rewrite(folder, head="--output=x")


def a_commit_that_is_not_there(folder: Path, _team: Team, _gate: str) -> None:
    rewrite(folder, head="b" * 40)


def a_broken_pack(folder: Path, _team: Team, _gate: str) -> None:
    data = bytearray((folder / "made.pack").read_bytes())
    data[len(data) // 2] ^= 0xFF
    (folder / "made.pack").write_bytes(data)


def half_a_character(folder: Path, _team: Team, _gate: str) -> None:
    rewrite(folder, branch="\ud800x")


def another_gates_question(folder: Path, team: Team, gate: str) -> None:
    """Of a gate that is somebody else's."""
    tip = team.bare.git("rev-parse", f"refs/hitl/open/{gate}")
    said = said_in(folder)
    rewrite(folder, refs={**said["refs"], f"refs/hitl/open/{gate}": tip})


ATTACKS: dict[str, tuple[Callable[[Path, Team, str], None], str]] = {
    "another file": (another_file, "found 'config'"),
    "a link": (a_link, "made.json is no regular file"),
    "a folder": (a_folder, "made.pack is no regular file"),
    "a pipe": (a_pipe, "made.json is no regular file"),
    "too much said": (too_much_said, "expected at most 262,144"),
    "too many refs": (too_many_refs, "no object of at most 200"),
    "not JSON": (not_json, "made.json is no JSON"),
    "another shape": (another_shape, "is no object with"),
    "a branch": (add_ref("refs/heads/main"), "'refs/heads/main' is nothing that an agent makes"),
    "a path": (add_ref("refs/hitl/open/../../heads/main"), "is nothing that an agent makes"),
    "an archive": (add_ref("refs/hitl/archive/2026-01"), "is nothing that an agent makes"),
    "a lease": (add_ref("refs/hitl/leases/7k2fw9c3ab"), "is nothing that an agent makes"),
    "a run of no journal": (add_ref("refs/hitl/runs/7k2fw9c3ab"), "refused"),
    "work of another": (add_ref("refs/hitl/work/7k2fw9c3ab"), "is of no question that it asked"),
    "a session of another": (add_ref("refs/hitl/sessions/7k2fw9c3ab"), "is of no question that it asked"),
    "a flag": (a_flag_for_a_branch, "branch is no name of a branch"),
    "a branch that leads out": (a_branch_that_leads_out, "branch is no name of a branch"),
    "no commit": (no_commit, "head is no commit"),
    "half a character": (half_a_character, "branch is no short text"),
    "a commit that is not there": (a_commit_that_is_not_there, "objects are missing"),
    "a broken pack": (a_broken_pack, "refused"),
    "another gate": (another_gates_question, "was there before this job, and is not this agent's to change"),
}


def test_what_an_agents_job_may_not_hand_over_is_refused(team: Team) -> None:
    """All of it, before a ref moves, here or there; and the job that may write fails."""
    _, made = agents_job(team, f"{MAKE}; {ASK}")
    gate = team.ask("Deploy?", "--type", "approval")
    before = team.bare.git("for-each-ref")
    job = team.job()
    for name, (attack, words) in ATTACKS.items():
        folder = team.folder / "attack"
        shutil.copytree(made, folder)
        attack(folder, team, gate)
        here = job.git("for-each-ref", "refs/hitl", "refs/heads")
        given = {**JOB, "GITGATE_BRANCH": "feature"}
        said = team.cli.quick("github", "deliver", str(folder), cwd=job.path, env=given, code=1)
        assert words in said.err, name
        assert team.bare.git("for-each-ref") == before, name
        left = job.git("for-each-ref", "refs/hitl", "refs/heads")
        assert (left == here) or (name == "another file" and gate in left), (
            name
        )  # it fetches what others asked
        shutil.rmtree(folder)
    deliver(team, made)  # as it was packed it is taken
    assert team.bare.git("show", "feature:made.txt") == "done"


def test_a_tag_is_no_commit(team: Team) -> None:
    """It leads to one, and would stand where a commit is named."""
    job, folder = agents_job(team, MAKE)
    job.git("tag", "-a", "-m", "One", "v1")
    tag = job.git("rev-parse", "v1")
    name = job.git("pack-objects", "--revs", "-q", str(folder / "made"), input=f"{tag}\n")
    (folder / f"made-{name}.pack").replace(folder / "made.pack")
    for left in folder.glob("made-*"):
        left.unlink()
    rewrite(folder, head=tag)
    before = team.bare.git("for-each-ref")
    assert f"{tag[:10]} is no commit" in deliver(team, folder, code=1).err
    assert team.bare.git("for-each-ref") == before


def test_what_is_too_large_is_not_packed_nor_taken(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever packs honestly hears of it where it can be mended; the other side does not rely on that."""
    job, folder = agents_job(team, f"head -c 300000 /dev/urandom > big; git add big; {MAKE}")
    monkeypatch.setattr(parcel, "MOST_PACK", 100_000)
    said = deliver(team, folder, code=1)
    assert "made.pack has" in said.err
    said = team.cli.quick("github", "pack", str(folder), cwd=job.path, env=JOB, code=1)
    assert ".gitignore" in said.err


def answered(clone: Clone, gate: str) -> None:
    """As a program with all rights on that machine would: a person's answer, in a record of its own."""
    desk = open_desk(clone.path, os.environ)
    manner = Manner(via="cli", who="ada <ada@example.org>", push=False)
    respond(desk, reload(desk, gate), Given(approve=True), manner)
    desk.close()


def test_an_agent_does_not_answer_what_it_asks(team: Team) -> None:
    """A person's word in the record of a new question comes from a job in which no person is."""
    job, _ = agents_job(team, "git-gate ask 'Deploy?' --type approval --agent scripted --session session-1")
    (gate,) = job.git("for-each-ref", "--format=%(refname:lstrip=3)", "refs/hitl/open").split()
    answered(job, gate)
    said = deliver(team, packed(team, job), code=1)
    assert f"gate {gate} was answered, which is for people" in said.err
    assert gate not in team.bare.git("for-each-ref")


def test_whom_it_is_asked_for_is_held_to_who_started_the_job(team: Team) -> None:
    """An agent that names somebody else could answer itself in the name of who started it."""
    _, folder = agents_job(
        team, f"git config gitgate.requester 'bob <1+bob@users.noreply.github.com>'; {ASK}"
    )
    before = team.bare.git("for-each-ref")
    said = deliver(team, folder, code=4, GITHUB_ACTOR="ada", GITHUB_ACTOR_ID="1001")
    assert "does not name @ada" in said.err
    assert team.bare.git("for-each-ref") == before


# an agent that goes on


@pytest.fixture
def going_on(team: Team, agent: Agent) -> Callable[..., tuple[str, str, Path]]:
    """A gate that is answered, its claim as the first of three jobs hands it on, and what the second made of it."""

    def go(body: str, code: int = 0) -> tuple[str, str, Path]:
        agent.does(body)
        gate = team.ask("Which database?")
        team.reply("/answer Postgres")
        held, told = claimed(team, gate)
        job = team.clone_of(team.bare, f"goes-on-{gate}")
        team.cli.quick("github", "prepare", "--apart", cwd=job.path, env=JOB, code=0)
        env = {**JOB, "GITGATE_HELD": told, "GITHUB_TOKEN": ""}
        team.cli.quick("github", "go-on", gate, cwd=job.path, env=env, code=code)
        return gate, held, packed(team, job, "--gate", gate)

    return go


def claimed(team: Team, gate: str) -> tuple[str, str]:
    """The outputs `held` and `claim` of the job that claims."""
    output = team.folder / f"claim-{gate}-{team.jobs}"
    env = {**JOB, "GITHUB_OUTPUT": str(output)}
    team.cli.quick("github", "claim", gate, cwd=team.job().path, env=env, code=0)
    found = dict(line.split("=", 1) for line in output.read_text().splitlines())
    return found["held"], found["claim"]


COMMITS = 'echo "db=$GITGATE_ANSWER" > db.conf; git add -A; git commit -qm "Use $GITGATE_ANSWER"'


def test_an_agent_goes_on_without_a_token(
    team: Team, agent: Agent, going_on: Callable[..., tuple[str, str, Path]]
) -> None:
    """Between the two other jobs the record has the claim alone; then its commits, its ending, and the comment."""
    gate, held, folder = going_on(COMMITS)
    assert agent.starts == [gate]
    assert team.gate(gate)["state"] == "resuming"
    assert (folder / "made.pack").is_file()
    deliver(team, folder, "--gate", gate, GITGATE_HELD=held)
    assert team.gate(gate)["state"] == "resumed"
    assert team.bare.git("show", "feature:db.conf") == "db=Postgres"
    assert f"Gate: {gate}" in team.bare.git("log", "-1", "--format=%b", "feature")
    assert team.bare.git("for-each-ref", "refs/hitl/leases") == ""
    assert "### ✅ Answered, and acted on" in team.shown(gate)
    before = team.bare.git("for-each-ref")
    deliver(team, folder, "--gate", gate, GITGATE_HELD=held)  # a job that is run again
    assert team.bare.git("for-each-ref") == before


def test_what_it_asks_next_is_opened_by_the_last_job(
    team: Team, going_on: Callable[..., tuple[str, str, Path]]
) -> None:
    """With its work; until then nobody has heard of it."""
    ask = "echo more > more.txt; git-gate ask 'Which region?' --agent scripted --session session-2"
    gate, held, folder = going_on(ask)
    assert len(team.bare.refs("refs/hitl/open/")) == 1
    deliver(team, folder, "--gate", gate, GITGATE_HELD=held)
    (later,) = [ref.rpartition("/")[2] for ref in team.bare.refs("refs/hitl/open/") if gate not in ref]
    assert team.gate(later)["state"] == "awaiting"
    assert f"follows gate `{gate}`" in team.shown(later)
    assert "more.txt" in team.shown(later)
    assert team.gate(gate)["state"] == "resumed"


def test_its_branch_went_on_meanwhile(team: Team, going_on: Callable[..., tuple[str, str, Path]]) -> None:
    """The job that may write merges, as one that did all by itself would."""
    gate, held, folder = going_on(COMMITS)
    team.agents.git("stash", "-qu", check=False)
    team.agents.commit("Meanwhile", other="1\n")
    team.agents.git("push", "-q", "origin", "feature")
    deliver(team, folder, "--gate", gate, GITGATE_HELD=held)
    assert team.bare.git("show", "feature:other") == "1"
    assert team.bare.git("show", "feature:db.conf") == "db=Postgres"
    assert "merged with 1 commit that reached feature meanwhile" in team.shown(gate)


def test_a_failure_is_recorded_in_its_words(
    team: Team, going_on: Callable[..., tuple[str, str, Path]]
) -> None:
    """As the agent's own job heard them; the thread is told how to try again."""
    gate, held, folder = going_on("echo no more money >&2; exit 3", code=1)
    said = deliver(team, folder, "--gate", gate, GITGATE_HELD=held, code=1)
    assert "no more money" in said.err
    assert team.gate(gate)["state"] == "failed"
    assert "no more money" in team.forge.by("github-actions[bot]")[-1]["body"]


def test_a_job_that_was_cut_off_gives_its_claim_up(
    team: Team, going_on: Callable[..., tuple[str, str, Path]]
) -> None:
    gate, held, _ = going_on(COMMITS)
    said = deliver(team, team.folder / "nowhere", "--gate", gate, GITGATE_HELD=held, code=1)
    assert "its job ended before it could say what came of it" in said.err
    assert team.gate(gate)["state"] == "answered"
    assert "db.conf" not in team.bare.git("ls-tree", "--name-only", "feature")


def test_another_runs_claim_is_not_this_ones(
    team: Team, going_on: Callable[..., tuple[str, str, Path]]
) -> None:
    """Row 41: its record has another claim than the one that this run took; nothing of it is taken, and nobody tries again."""
    gate, held, folder = going_on(COMMITS)
    deliver(team, team.folder / "nowhere", "--gate", gate, GITGATE_HELD=held, code=1)
    held, _ = claimed(team, gate)
    said = deliver(team, folder, "--gate", gate, GITGATE_HELD=held, code=1)
    assert "does not have the claim" in said.err
    assert team.gate(gate)["state"] == "failed"
    assert "db.conf" not in team.bare.git("ls-tree", "--name-only", "feature")


def test_another_gates_parcel_is_not_this_ones(
    team: Team, going_on: Callable[..., tuple[str, str, Path]]
) -> None:
    """Of two agents in one run one hands over the other's."""
    first, held, _ = going_on(COMMITS)
    team.agents.git("checkout", "-q", "feature")
    _, _, folder = going_on(COMMITS)
    said = deliver(team, folder, "--gate", first, GITGATE_HELD=held, code=1)
    assert f"and this job's is gate {first}" in said.err
    assert team.gate(first)["state"] == "failed"


def test_an_ending_names_the_commits_that_it_brings(
    team: Team, going_on: Callable[..., tuple[str, str, Path]]
) -> None:
    """A parcel whose last commit is another one is none."""
    gate, held, folder = going_on(COMMITS)
    rewrite(folder, head=team.bare.git("rev-parse", "main"))
    said = deliver(team, folder, "--gate", gate, GITGATE_HELD=held, code=1)
    assert "its ending names other commits than it brings" in said.err


def test_a_claim_is_handed_on_as_it_is(team: Team, agent: Agent) -> None:
    """Words that no job gave out start nobody; the agent's job is not told what proves the holder."""
    gate = team.ask("Which?")
    team.reply("/answer x")
    held, told = claimed(team, gate)
    assert (bool(json.loads(held)["seed"]), json.loads(told)["seed"]) == (True, "")
    job = team.clone_of(team.bare, "apart").path
    team.cli.quick("github", "prepare", "--apart", cwd=job, env=JOB, code=0)
    for words in ("", "[]", "{}", json.dumps({**json.loads(told), "gate": "7k2fw9c3ab"})):
        env = {**JOB, "GITGATE_HELD": words}
        assert "is not what" in team.cli.quick("github", "go-on", gate, cwd=job, env=env, code=2).err
    env = {**JOB, "GITGATE_HELD": json.dumps({**json.loads(told), "claim": "0" * 40})}
    assert "no longer this run's" in team.cli.quick("github", "go-on", gate, cwd=job, env=env, code=5).err
    assert agent.starts == []


def test_whoever_has_no_proof_claims_nothing(team: Team, agent: Agent) -> None:
    """As where one job does all: an answer that was only pushed starts nobody, and a question waits."""
    output = team.folder / "output"
    gate = team.ask("Which?")
    env = {**JOB, "GITHUB_OUTPUT": str(output)}
    said = team.cli.quick("github", "claim", gate, cwd=team.job().path, env=env, code=0)
    assert "nothing is to be started" in said.err
    team.cli.quick("respond", gate, "x", "--no-resume", cwd=team.agents.path, code=0)
    team.cli.quick("github", "claim", gate, cwd=team.job().path, env=env, code=4)
    assert not output.exists()
    assert team.gate(gate)["state"] == "answered"


def test_another_repositorys_dispatch_vouches_for_nothing(team: Team, agent: Agent) -> None:
    """A person of this one is its sender; it was sent elsewhere, and in no form counts here."""
    gate = team.ask("Which?")
    team.cli.quick("respond", gate, "x", "--no-resume", cwd=team.agents.path, code=0)
    sent = team.forge.run_event("gitgate.yml", "ada", gate=gate, commit=team.gate(gate)["answer"]["commit"])
    event = str(team.event_file({**sent, "repository": {"full_name": "evil/project"}}))
    for words in (("claim", gate, "--event", event), ("resume", gate, "--event", event)):
        team.cli.quick("github", *words, cwd=team.job().path, env=JOB, code=4)
    assert agent.starts == []
    assert team.gate(gate)["state"] == "answered"


def test_jobs_that_were_never_heard_of_again_are_made_up_for(team: Team, agent: Agent) -> None:
    """Not even the last one ran: once the time is over for which they claimed the gate, a sweep hands it on again."""
    gate = team.ask("Which?")
    team.reply("/answer x")

    def swept() -> list[str]:
        return list(team.cli.quick("github", "sweep", "--json", cwd=team.job().path, code=0).json["resume"])

    assert swept() == [gate]
    held, _ = claimed(team, gate)
    assert swept() == []
    team.pass_time(120 + 3600 + 500)
    assert swept() == []
    team.pass_time(200)
    assert swept() == [gate]
    again, _ = claimed(team, gate)
    assert json.loads(again)["claim"] != json.loads(held)["claim"]
    said = deliver(team, team.folder / "nowhere", "--gate", gate, GITGATE_HELD=held, code=5)
    assert "is no longer this run's" in said.err
    assert team.gate(gate)["state"] == "resuming"


def test_an_earlier_attempt_that_asked_is_only_recorded(
    team: Team, agent: Agent, going_on: Callable[..., tuple[str, str, Path]]
) -> None:
    """Its question arrived, and its ending did not: the answer does not start it again, past that question."""
    ask = "git-gate ask 'Which region?' --agent scripted --session session-2"
    gate, held, folder = going_on(ask)
    job = team.job()
    team.cli.quick("sync", cwd=job.path, code=0)
    desk = open_desk(job.path, {**os.environ, **JOB})
    parcel.put_in_place(desk, parcel.open_parcel(desk, folder, gate))
    desk.close()
    team.cli.quick("sync", cwd=job.path, code=0)
    deliver(team, team.folder / "nowhere", "--gate", gate, GITGATE_HELD=held, code=1)
    output = team.folder / "second"
    env = {**JOB, "GITHUB_OUTPUT": str(output)}
    team.cli.quick("github", "claim", gate, cwd=team.job().path, env=env, code=0)
    assert not output.exists()
    assert team.gate(gate)["state"] == "resumed"
    assert agent.starts == [gate]
    assert THREAD in team.forge.issues
