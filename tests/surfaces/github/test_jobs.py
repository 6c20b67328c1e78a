"""What a job does: sweeps, statuses, proof before an agent is started, and an agent resumed where the answer is taken."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from gitgate.record import DOUBTFUL
from support.forges.standin import Fault, Forge
from support.resuming import Agent
from support.testbed.command import COMMAND
from support.testbed.repositories import Clone

from .conftest import THREAD, Team

pytestmark = pytest.mark.slow  # each takes a second or more

COMMITS = 'echo "db=$GITGATE_ANSWER" > db.conf; git add -A; git commit -qm "Use $GITGATE_ANSWER"'


def test_a_reply_resumes_the_agent_in_the_same_job(team: Team, agent: Agent, bare: Clone) -> None:
    """Asked in one clone, answered by a comment, resumed in a fresh one: the branch goes on, the comment says so."""
    agent.does(COMMITS)
    team.agents.write("partial", "p")
    gate = team.ask("Which database?")
    said = team.hear(team.forge.write(THREAD, "ada", "/answer Postgres"), "--resume")
    assert '"answered"' in said.out
    assert agent.starts == [gate]
    assert bare.git("log", "-1", "--format=%s", "feature") == "Use Postgres"
    assert bare.git("show", "feature:partial") == "p"
    assert team.gate(gate)["state"] == "resumed"
    shown = team.shown(gate)
    assert "### ✅ Answered, and acted on" in shown
    assert f"{team.forge.site}/commit/{bare.git('rev-parse', 'feature')}" in shown
    assert team.forge.statuses[-1]["state"] == "success"


def test_an_agent_that_asks_again_is_heard(team: Team, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Resumed without a login it asks on; the job pushes and shows what it asks, and the next reply goes to that."""
    monkeypatch.setenv("GITGATE_GITHUB_TOKEN", "job-token")
    monkeypatch.delenv("GITHUB_TOKEN")
    monkeypatch.setenv("CI", "true")
    agent.does('echo more > more.txt; git-gate ask "Which region?"')
    first = team.ask("Which database?")
    team.hear(team.forge.write(THREAD, "ada", "/answer Postgres"), "--resume")
    assert team.gate(first)["state"] == "resumed"
    (second,) = [c["body"] for c in team.forge.by("github-actions[bot]") if "Which region?" in c["body"]]
    assert f"follows gate `{first}`" in second
    assert "more.txt" in second
    assert team.forge.statuses[-1]["state"] == "pending"
    agent.does("")
    team.hear(team.forge.write(THREAD, "ada", "/answer eu"), "--resume")
    assert agent.starts[0] == first
    assert len(agent.starts) == 2


@pytest.mark.parametrize("login", ["GITHUB_TOKEN", "GH_TOKEN", "GITGATE_GITHUB_TOKEN"])
def test_an_agent_beside_the_token_is_not_told_it(
    team: Team, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, login: str
) -> None:
    """In one process with what writes, by whatever name that was given its token: neither variables nor git's configuration
    tell it. What else has such a name is the agent's own.
    """
    monkeypatch.setenv(login, "job-token")
    if login != "GITHUB_TOKEN":
        monkeypatch.setenv("GITHUB_TOKEN", "another")
    seen = tmp_path / "seen"
    agent.does(f"(env; git config --list --show-origin) > {seen}; {COMMITS}")
    gate = team.ask("Which?")
    team.hear(team.forge.write(THREAD, "ada", "/answer Postgres"))
    team.cli.quick("github", "sweep", "--resume", cwd=team.job().path, code=0)
    assert agent.starts == [gate]
    assert team.gate(gate)["state"] == "resumed"
    said = seen.read_text(encoding="utf-8")
    assert "GITGATE_GATE=" in said
    assert "job-token" not in said
    assert ("GITHUB_TOKEN=another" in said) is (login != "GITHUB_TOKEN")


def test_a_job_that_died_is_made_up_for(team: Team, agent: Agent) -> None:
    """The answer was recorded and nobody was started: the same event again, or a sweep, starts it, once."""
    gate = team.ask("Which?")
    comment = team.forge.write(THREAD, "ada", "/answer Postgres")
    team.hear(comment)
    assert agent.starts == []
    swept = team.cli.quick("github", "sweep", "--resume", "--json", cwd=team.job().path, code=0)
    assert json.loads(swept.out.splitlines()[0])["resume"] == [gate]
    team.hear(comment, "--resume")
    assert agent.starts == [gate]


def test_a_status_waits_with_the_gate(team: Team) -> None:
    """Pending while a gate of the head waits; on a new head it is posted again; success after the answer."""
    team.ask("Which?")
    sha = team.forge.pulls[THREAD]["head"]["sha"]
    said = team.cli.quick("github", "status", str(THREAD), cwd=team.job().path, code=0)
    assert said.line == "pending"
    assert (team.forge.statuses[-1]["sha"], team.forge.statuses[-1]["context"]) == (sha, "gitgate")
    team.forge.pulls[THREAD]["head"]["sha"] = "f" * 40
    team.cli.quick("github", "status", cwd=team.job().path, env={"GITHUB_REF": "refs/pull/7/merge"}, code=0)
    assert team.forge.statuses[-1]["sha"] == "f" * 40
    team.reply("/answer Postgres")
    assert team.forge.statuses[-1]["state"] == "success"


def test_a_stopped_gate_fails_the_status(team: Team) -> None:
    """Somebody has to look at it."""
    team.ask("Which?")
    team.reply("/stop no")
    assert team.forge.statuses[-1]["state"] == "failure"


def test_a_sweep_catches_up(team: Team) -> None:
    """A question that nobody was shown, comments that no event told of, in their order; the second sweep does nothing."""
    gate = team.ask("Which?", show=False)
    job = team.job()
    team.cli.quick("github", "sweep", cwd=job.path, code=0)
    team.forge.write(THREAD, "eve", "/answer MySQL")
    team.forge.write(THREAD, "ada", "/answer Postgres")
    team.forge.write(THREAD, "grace", "/answer SQLite")
    said = team.cli.quick("github", "sweep", "--json", cwd=job.path, code=0).json
    assert [one["outcome"] for one in said["accepted"]] == ["refused", "answered", "late"]
    assert list(team.gate(gate)["answer"]["values"].values()) == ["Postgres"]
    told, edits = len(team.told()), len(team.forge.comments)
    again = team.cli.quick("github", "sweep", "--json", cwd=job.path, code=0).json
    assert (again["accepted"], again["shown"]) == ([], [])
    assert (len(team.told()), len(team.forge.comments)) == (told, edits)


def test_a_sweep_takes_no_old_approval_for_a_later_question(team: Team) -> None:
    """Of two gates the first is answered; its reply is no answer to the second, however often it is swept."""
    first = team.ask("Deploy to staging?", "--type", "approval")
    team.reply("/approve")
    second = team.ask("Deploy to production?", "--type", "approval")
    for _ in range(2):
        team.cli.quick("github", "sweep", cwd=team.job().path, code=0)
    assert team.gate(first)["state"] == "answered"
    assert team.gate(second)["state"] == "awaiting"


def test_a_deadline_acts_in_a_sweep(team: Team) -> None:
    """And the thread sees it."""
    gate = team.ask("Which?", "--timeout", "1h")

    team.pass_time(3600)
    team.cli.quick("github", "sweep", cwd=team.job().path, code=0)
    assert team.gate(gate)["state"] == "expired"
    assert "### ⌛ Nobody answered in time" in team.shown(gate)


def test_a_forge_that_is_away_loses_nothing(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job fails; the sweep after it takes the comment."""
    monkeypatch.setattr("gitgate.surfaces.forge.hosts.web.PAUSES", ())
    gate = team.ask("Which?")
    comment = team.forge.write(THREAD, "ada", "/answer Postgres")
    team.forge.faults = [Fault(503)]
    team.hear(comment, code=1)
    assert team.gate(gate)["state"] == "awaiting"
    team.cli.quick("github", "sweep", cwd=team.job().path, code=0)
    assert team.gate(gate)["state"] == "answered"


def forged(team: Team, gate: str, **changed: object) -> None:
    """An answer in Ada's name that somebody with the right to push wrote into the record."""
    from gitgate.acts.answering import Manner, respond
    from gitgate.context import open_desk
    from gitgate.gates.recording import reload
    from gitgate.questions import Given

    ada = team.forge.accounts["ada"]
    who = f"ada <{ada.number}+ada@users.noreply.127.0.0.1>"
    desk = open_desk(team.agents.path, os.environ)
    written = team.forge.comments.get(int(str(changed["comment"])), {})
    evidence = {"login": "ada", "account": ada.number, "at": written.get("created_at", ""), **changed}
    manner = Manner(via="github", who=who, evidence=evidence, push=True)
    respond(desk, reload(desk, gate), Given(approve=True), manner)
    desk.close()


@pytest.mark.parametrize("body", [None, "/reject", "/approve", "I /approve"])
def test_a_forged_answer_starts_nobody(team: Team, agent: Agent, body: str | None) -> None:
    """A commit is no proof: the comment that it names is not there, says something else, or is older than the question."""
    early = team.forge.write(THREAD, "ada", body) if body else {"id": 4711}
    gate = team.ask("Deploy?", "--type", "approval")
    forged(team, gate, comment=early["id"])
    swept = team.cli.quick("github", "sweep", "--resume", "--json", cwd=team.job().path, code=0).json
    assert list(swept["doubts"]) == [gate]
    assert agent.starts == []


def test_a_used_approval_is_no_proof_of_another(team: Team, agent: Agent) -> None:
    """Row 8: a comment that answered one gate is not the answer to the next one."""
    first = team.ask("Deploy to staging?", "--type", "approval")
    second = team.ask("Deploy to production?", "--type", "approval")
    team.reply(f"/stop {first} no")
    first = team.ask("Deploy to staging, please?", "--type", "approval")
    comment = team.forge.write(THREAD, "ada", f"/approve {first}")
    team.hear(comment)
    forged(team, second, comment=comment["id"])
    swept = team.cli.quick("github", "sweep", "--json", cwd=team.job().path, code=0).json
    assert swept["resume"] == [first]
    assert "another gate" in swept["doubts"][second]


def test_an_answer_from_a_terminal_is_acted_on_when_its_author_asks(team: Team, agent: Agent) -> None:
    """Pushed without a signature it starts nobody by itself; a person's dispatch of exactly that answer does."""
    gate = team.ask("Which?")
    team.cli.quick("respond", gate, "Postgres", "--no-resume", cwd=team.agents.path, code=0)
    swept = team.cli.quick("github", "sweep", "--json", cwd=team.job().path, code=0).json
    assert list(swept["doubts"]) == [gate]
    commit = team.gate(gate)["answer"]["commit"]

    def asks(login: str, which: str, kind: str = "User", code: int = 0) -> None:
        event = {
            "inputs": {"gate": gate, "commit": which},
            "repository": {"full_name": team.forge.repository},
            "sender": {"login": login, "type": kind},
        }
        place = str(team.event_file(event))
        team.cli.quick("github", "accept", place, "--resume", cwd=team.job().path, code=code)

    asks("eve", commit, code=4)
    asks("github-actions[bot]", commit, "Bot", code=4)
    asks("ada", "0" * 40, code=4)
    assert agent.starts == []
    asks("ada", commit)
    assert agent.starts == [gate]


def test_the_job_after_a_dispatch_acts_on_what_a_person_vouches_for(
    team: Team, agent: Agent, tmp_path: Path
) -> None:
    """Two jobs of one run see the same event; without it, or for another answer, nobody is started."""
    gate = team.ask("Which?")
    team.cli.quick("respond", gate, "Postgres", "--no-resume", cwd=team.agents.path, code=0)
    commit = team.gate(gate)["answer"]["commit"]
    output = tmp_path / "output"

    def event(login: str, which: str) -> str:
        said = {
            "inputs": {"gate": gate, "commit": which},
            "repository": {"full_name": team.forge.repository},
            "sender": team.forge.accounts[login].shape,
        }
        return str(team.event_file(said))

    def resume(*words: str, code: int) -> None:
        team.cli.quick("github", "resume", gate, *words, cwd=team.job().path, code=code)

    env = {"GITHUB_OUTPUT": str(output)}
    team.cli.quick("github", "accept", event("ada", commit), cwd=team.job().path, env=env, code=0)
    assert f'resume=["{gate}"]' in output.read_text().splitlines()
    resume(code=4)
    resume("--event", event("eve", commit), code=4)
    resume("--event", event("ada", "0" * 40), code=4)
    assert agent.starts == []
    resume("--event", event("ada", commit), code=0)
    resume("--event", event("ada", commit), code=0)
    assert agent.starts == [gate]


def test_a_reply_that_is_not_counted_yet_hands_nothing_on(team: Team, agent: Agent, tmp_path: Path) -> None:
    """One of two answers that are needed; talk; a stranger: no further job."""
    output = tmp_path / "output"
    env = {"GITHUB_OUTPUT": str(output)}
    gate = team.ask("Deploy?", "--type", "approval", "--quorum", "2")
    for login, body in (("ada", "/approve"), ("eve", "/approve"), ("ada", "only talk")):
        place = str(team.event_file(team.forge.event(team.forge.write(THREAD, login, body))))
        team.cli.quick("github", "accept", place, cwd=team.job().path, env=env, code=0)
    assert set(re.findall(r"^resume=(.*)$", output.read_text(), re.MULTILINE)) == {"[]"}
    assert re.search(r"^- `ada` said `approved` \(\[the reply\]\(http", team.shown(gate), re.MULTILINE)
    place = str(team.event_file(team.forge.event(team.forge.write(THREAD, "grace", "/approve"))))
    team.cli.quick("github", "accept", place, cwd=team.job().path, env=env, code=0)
    assert len(json.loads(re.findall(r"^resume=(.*)$", output.read_text(), re.MULTILINE)[-1])) == 1


def test_twenty_replies_at_once_are_one_answer(team: Team, bare: Clone) -> None:
    """Twenty jobs, twenty clones: one answer counts, whichever job hears it first, and the nineteen others are told."""
    gate = team.ask("Which?")
    jobs = []
    for number in range(20):
        team.forge.join(f"person{number}")
        comment = team.forge.write(THREAD, f"person{number}", f"/answer word{number}")
        place = team.event_file(team.forge.event(comment))
        jobs.append(team.cli.start("github", "accept", str(place), "--json", cwd=team.job().path))
    said = [json.loads(job.communicate(timeout=50)[0].splitlines()[0])["outcome"] for job in jobs]
    assert sorted(said) in [[first] + ["late"] * 19 for first in ("again", "answered")]
    assert team.gate(gate)["answer"]["values"] == {"answer": "word0"}
    assert len(team.told()) == 19
    assert team.gate(gate)["state"] == "answered"


def test_a_dispatch_sends_an_id_and_a_commit_only(
    team: Team, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never the answer's text; on the default branch, never on the agent's."""
    gate = team.ask("Which?")
    team.cli.quick("respond", gate, "a secret answer", "--no-resume", cwd=team.agents.path, code=0)
    monkeypatch.setenv("GITHUB_TOKEN", "ada-token")
    said = team.cli.quick("github", "dispatch", gate, cwd=team.agents.path, code=0)
    assert said.line == f"{team.forge.site}/actions/runs/7"
    commit = team.gate(gate)["answer"]["commit"]
    (sent,) = team.forge.dispatched
    assert sent["inputs"] == {"gate": gate, "commit": commit}
    assert (sent["ref"], sent["workflow"]) == ("main", "gitgate.yml")
    assert "secret" not in json.dumps(sent)


def test_a_token_without_actions_dispatches_by_the_repository(
    team: Team, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second best way."""
    team.forge.join("no-actions", token="weak-token")
    monkeypatch.setenv("GITHUB_TOKEN", "weak-token")
    gate = team.ask("Which?")
    team.cli.quick("respond", gate, "Postgres", "--no-resume", cwd=team.agents.path, code=0)
    team.cli.quick("github", "dispatch", gate, cwd=team.agents.path, code=0)
    (sent,) = team.forge.dispatched
    assert sent["event_type"] == "gitgate"
    assert set(sent["client_payload"]) == {"gate", "commit"}


def test_the_runner_of_that_name_dispatches(team: Team, agent: Agent) -> None:
    """`git gate resume --runner github` asks a job to do it."""
    gate = team.ask("Which?")
    team.cli.quick("respond", gate, "Postgres", "--no-resume", cwd=team.agents.path, code=0)
    team.cli.quick("resume", gate, "--runner", "github", cwd=team.agents.path, code=0)
    (sent,) = team.forge.dispatched
    assert sent["inputs"]["gate"] == gate


def test_without_a_token_it_says_what_to_do(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """And neither guesses nor asks."""
    gate = team.ask("Which?")
    monkeypatch.delenv("GITHUB_TOKEN")
    said = team.cli.quick("github", "comment", gate, cwd=team.agents.path, code=1)
    assert "there is no token" in said.err
    assert "set GITGATE_GITHUB_TOKEN" in said.err


def test_a_clone_is_not_prepared_like_a_job(team: Team) -> None:
    """Outside of CI it would set up somebody's own clone as one that is thrown away: nothing is changed, and it says so."""
    clone = team.clone_of(team.bare, "own")
    before = (clone.path / ".git/config").read_text()
    for env in ({}, {"CI": ""}, {"CI": "false"}, {"GITHUB_ACTIONS": "false"}):
        said = team.cli.quick("github", "prepare", cwd=clone.path, env=env, code=4)
        assert "this is no CI job" in said.err
        assert "git gate init" in said.err
    assert (clone.path / ".git/config").read_text() == before


def test_a_prepared_job_holds_no_secret(team: Team) -> None:
    """Git asks us for the login; nothing of it is in a file, and another host gets none."""
    job = team.job()
    env = {
        "CI": "true",
        "GITGATE_AGENT_NAME": "helper",
        "GITGATE_AGENT_RESUME": '["./helper.sh", "{answer_file}"]',
    }
    team.cli.quick("github", "prepare", cwd=job.path, env=env, code=0)
    config = (job.path / ".git/config").read_text()
    assert "job-token" not in config
    assert job.git("config", "gitgate.agent.helper.resume") == env["GITGATE_AGENT_RESUME"]

    def fill(host: str) -> str:
        done = subprocess.run(
            ["git", "credential", "fill"],
            input=f"protocol=http\nhost={host}\n\n",
            cwd=job.path,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    assert "password=job-token" in fill(f"127.0.0.1:{team.forge.port}")
    assert "job-token" not in fill("evil.example")


def test_a_summary_shows_what_waits(team: Team, tmp_path: Path) -> None:
    """On the job's page; titles stand in code, where they do nothing."""
    gate = team.ask("Which <img src=x> @octocat?", show=False)
    page = tmp_path / "summary"
    team.cli.quick("github", "sweep", cwd=team.job().path, env={"GITHUB_STEP_SUMMARY": str(page)}, code=0)
    assert f"- **awaiting** {gate} `Which <img src=x> @octocat?`" in page.read_text()


def forged_state(team: Team, gate: str, state: str) -> None:
    """Somebody with the right to push says in a commit's message what its record does not."""
    ref = f"refs/hitl/open/{gate}"
    message = team.agents.git("log", "-1", "--format=%B", ref)
    tree = team.agents.git("rev-parse", f"{ref}^{{tree}}")
    words = message.replace("Hitl-State: awaiting", f"Hitl-State: {state}")
    assert words != message
    team.agents.git("push", "-qf", "origin", f"{team.agents.git('commit-tree', tree, '-m', words)}:{ref}")


def test_a_pushed_state_does_nothing_on_the_page(team: Team, tmp_path: Path) -> None:
    """Neither a picture nor a name of somebody: there stands what the record says, with a mark."""
    gate = team.ask("Which?")
    forged_state(team, gate, "** ![x](https://evil.example/x.png) @everyone")
    page = tmp_path / "summary"
    team.cli.quick("github", "sweep", cwd=team.job().path, env={"GITHUB_STEP_SUMMARY": str(page)}, code=0)
    assert f"- **awaiting** {gate} `{DOUBTFUL} Which?`" in page.read_text()
    assert "evil.example" not in page.read_text()
    assert "@everyone" not in page.read_text()


@pytest.mark.parametrize("trailer", ["resumed", "resumed\nHitl-Closed: yes"])
def test_a_status_goes_by_the_record(team: Team, trailer: str) -> None:
    """Not by a commit's message: a question that waits is not waited for no longer because somebody writes so."""
    gate = team.ask("Which?")
    forged_state(team, gate, trailer)
    team.cli.quick("github", "sweep", cwd=team.job().path, code=0)
    assert team.forge.statuses[-1]["state"] == "pending"
    assert gate in team.forge.statuses[-1]["description"]


def test_show_prints_what_would_be_posted(team: Team) -> None:
    """Without asking anybody."""
    gate = team.ask("Which?", show=False)
    before = len(team.forge.asked)
    said = team.cli.quick("github", "show", gate, cwd=team.agents.path, code=0)
    assert "**Reply**" in said.out
    assert len(team.forge.asked) == before


def test_the_command_is_the_installed_one(forge: Forge) -> None:
    """The workflows call it by name."""
    said = subprocess.run(
        [str(COMMAND), "github", "--help"], capture_output=True, text=True, check=True
    ).stdout
    for verb in ("accept", "comment", "dispatch", "prepare", "show", "status", "sweep"):
        assert verb in said


def test_a_prepared_job_reads_the_policy_of_the_default_branch(team: Team, agent: Agent) -> None:
    """Whatever is checked out: the event says which branch that is, and a reply is held to its policy."""
    seed = team.clone_of(team.bare, "policy")
    seed.write(".gitgate.yml", "policy:\n  who: ['@grace']\n")
    for command in (("checkout", "-q", "-b", "trunk-of-ours"), ("add", "-A"), ("commit", "-qm", "Policy")):
        seed.git(*command)
    seed.git("push", "-q", "origin", "trunk-of-ours")
    gate = team.ask("Deploy?", "--type", "approval")
    outcomes = []
    for login in ("ada", "grace"):
        event = team.forge.event(team.forge.write(THREAD, login, "/approve"))
        event["repository"]["default_branch"] = "trunk-of-ours"
        place = str(team.event_file(event))
        job = team.job().path
        team.cli.quick("github", "prepare", cwd=job, env={"CI": "true", "GITHUB_EVENT_PATH": place}, code=0)
        outcomes.append(team.cli.quick("github", "accept", place, "--json", cwd=job, code=0).json["outcome"])
    assert outcomes == ["refused", "answered"]
    assert "policy" in team.told()[0]
    assert team.gate(gate)["answer"]["by"].startswith("grace <")
