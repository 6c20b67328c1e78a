"""How the workflows hang together: what starts them, what their conditions let through, what one job gives to the next."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyrage import x25519

from gitgate.setup.workflows import NAMES
from support.forges.callers import SECRETS, Event, calls
from support.forges.expressions import CANCELLED, FAILURE, Reading, holds
from support.forges.jobs import ACTION, TOP, WORKFLOWS, Ran, is_own_checkout, load, run_workflow
from support.resuming import Agent

from .conftest import THREAD, Team

TEXTS = TOP / "gitgate/texts/workflows"
ANSWERS, AGENTS = (TEXTS / name for name in ("gitgate.yml", "gitgate-agent.yml"))
REUSABLE = ("agent.yml", "answer.yml", "resume.yml", "sweep.yml")
GO_ON = ("claim", "agent", "deliver")
OURS = [*sorted(WORKFLOWS.glob("*.yml")), ACTION]


# what is started


def lines_of(path: Path) -> list[str]:
    """Each line of each `run:`."""
    said = load(path)
    each: list[dict[str, Any]] = [said["runs"]] if "runs" in said else list(said["jobs"].values())
    return [
        line
        for one in each
        for step in one.get("steps", ())
        for line in str(step.get("run", "")).splitlines()
        if line
    ]


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_no_step_runs_python_from_where_it_stands(path: Path) -> None:
    """It would take a module of the checkout for its own: before anything else, with `-m` as with a program on its input."""
    lines = lines_of(path)
    assert lines
    for line in lines:
        for found in re.finditer(r"(?:^|[\s;&|(/\"'])python[\d.]*\s+(\S+)", line):
            assert found[1] in ("-I", "-P"), line


# what starts what


def comment(kind: str = "created", *, type: str = "User", pull: bool = True, **more: Any) -> Event:
    issue = {"number": THREAD, **({"pull_request": {"url": "there"}} if pull else {})}
    actor = "ada" if type == "User" else "helper[bot]"
    said = {"comment": {"id": 1, "user": {"login": actor, "type": type}, **more}, "issue": issue}
    return Event("issue_comment", kind, said, actor)


def pull(kind: str, *, home: str | None = "team/project", actor: str = "ada") -> Event:
    head = {"sha": "f" * 40, "repo": {"full_name": home} if home else None}
    return Event(
        "pull_request", kind, {"number": THREAD, "pull_request": {"number": THREAD, "head": head}}, actor
    )


def dispatch(**inputs: str) -> Event:
    return Event("workflow_dispatch", "", {"inputs": inputs})


HALF_HOURLY = load(ANSWERS)["on"]["schedule"][0]["cron"]
Started = list[tuple[str, list[str]]]
ANSWER: Started = [("answer.yml", ["answer"])]
SWEEP: Started = [("sweep.yml", ["sweep"])]
NONE: Started = [("sweep.yml", [])]


@pytest.mark.parametrize(
    ("event", "started"),
    [
        (comment(), ANSWER),
        (comment(pull=False), ANSWER),
        (comment(type="Bot"), [("answer.yml", [])]),
        (comment("edited"), []),
        (comment("deleted"), []),
        (Event("schedule", HALF_HOURLY), SWEEP),
        (pull("opened"), SWEEP),
        (pull("reopened"), SWEEP),
        (pull("synchronize"), SWEEP),
        (pull("closed"), []),
        (Event("merge_group", "checks_requested", {"merge_group": {"head_sha": "f" * 40}}), SWEEP),
        (Event("merge_group", "destroyed"), []),
        (pull("synchronize", home="eve/project"), NONE),
        (pull("synchronize", home=None), NONE),
        (pull("synchronize", actor="dependabot[bot]"), NONE),
        (dispatch(gate="7k2fw9c3ab", commit="a" * 40), ANSWER),
        (dispatch(), ANSWER),
        (Event("repository_dispatch", "gitgate", {"client_payload": {}}), ANSWER),
        (Event("repository_dispatch", "other", {"client_payload": {}}), []),
        (Event("push"), []),
    ],
    ids=lambda value: f"{value.name} {value.kind} {value.actor}" if isinstance(value, Event) else "",
)  # fmt: skip
def test_an_event_starts_its_jobs(event: Event, started: Started) -> None:
    """A person's new comment is an answer, wherever it stands; forks and programs get no job; what was dispatched does."""
    assert [(call.workflow, call.jobs()) for call in calls(ANSWERS, event)] == started


def test_nothing_else_starts_anything() -> None:
    """Least of all in the context of a pull request's base, with code of its head."""
    events = {"issue_comment", "pull_request", "repository_dispatch", "workflow_dispatch", "schedule"}
    events |= {"merge_group"}
    assert set(load(ANSWERS)["on"]) == events
    assert set(load(AGENTS)["on"]) == {"workflow_dispatch"}
    assert all(list(load(WORKFLOWS / name)["on"]) == ["workflow_call"] for name in REUSABLE)


def test_deadlines_are_looked_after_every_half_hour() -> None:
    """So the texts say."""
    assert [one["cron"] for one in load(ANSWERS)["on"]["schedule"]] == ["*/30 * * * *"]


def test_a_task_reaches_the_agent() -> None:
    """On its branch; the key that opens sessions does not, since it reads none."""
    (call,) = calls(AGENTS, dispatch(task="Add a page", branch="login"))
    assert call.workflow == "agent.yml"
    assert call.jobs() == ["agent"]
    assert (call.known["inputs.task"], call.known["inputs.branch"]) == ("Add a page", "login")
    assert call.known["secrets.ANTHROPIC_API_KEY"] == SECRETS["ANTHROPIC_API_KEY"]
    assert call.known["secrets.SESSION_KEY"] == ""


@pytest.mark.parametrize("event", [comment(), Event("schedule", HALF_HOURLY)], ids=["answer", "sweep"])
def test_who_resumes_gets_both_keys(event: Event) -> None:
    """Under their own names."""
    (call,) = calls(ANSWERS, event)
    assert {name: call.known[f"secrets.{name}"] for name in SECRETS} == SECRETS


def test_a_dispatch_needs_nothing_said() -> None:
    """Of what starts an agent both are needed; of what takes answers nothing is, and only what our client sends is known."""
    declared = load(ANSWERS)["on"]["workflow_dispatch"]["inputs"]
    assert all(one["default"] == "" and "required" not in one for one in declared.values())
    with pytest.raises(AssertionError, match="required inputs are missing"):
        calls(AGENTS, dispatch(task="Add a page"))
    with pytest.raises(AssertionError, match="no such inputs"):
        calls(ANSWERS, dispatch(door="7k2fw9c3ab"))


@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize("login", ["ada", "no-actions"])
def test_what_our_client_sends_is_what_the_workflow_takes(
    team: Team, login: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file, its inputs, and the type that starts it where the token may not ask Actions."""
    team.forge.join(login, token=login)
    monkeypatch.setenv("GITHUB_TOKEN", login)
    gate = team.ask("Which?")
    team.cli.quick("respond", gate, "Postgres", cwd=team.agents.path, code=0)
    (sent,) = team.forge.dispatched
    if login == "ada":
        assert sent["workflow"] == NAMES[0] == ANSWERS.name
        assert set(sent["inputs"]) == set(load(ANSWERS)["on"]["workflow_dispatch"]["inputs"])
        event = dispatch(**sent["inputs"])
    else:
        event = Event("repository_dispatch", sent["event_type"], {"client_payload": sent["client_payload"]})
    assert [call.jobs() for call in calls(ANSWERS, event)] == [["answer"]]


# what one job gives to the next


@pytest.mark.parametrize(
    ("handed_on", "status", "goes_on"),
    [
        ('["7k2fw9c3ab"]', "success", True),
        ('["7k2fw9c3ab", "8k2fw9c3ab"]', "success", True),
        ('["7k2fw9c3ab"]', FAILURE, True),  # of several replies one failed; what was handed on is answered
        ('["7k2fw9c3ab"]', CANCELLED, False),
        ("[]", "success", False),
        ("", "success", False),
        ("", FAILURE, False),
    ],
)
@pytest.mark.parametrize("event", [comment(), Event("schedule", HALF_HOURLY)], ids=["answer", "sweep"])
def test_agents_go_on_where_something_was_handed_on(
    event: Event, handed_on: str, status: str, goes_on: bool
) -> None:
    (call,) = calls(ANSWERS, event)
    assert call.jobs(status, resume=handed_on) == (["resume"] if goes_on else [])


def test_both_resume_by_one_workflow() -> None:
    """Which is of the same commit as whoever calls it, and is handed all that it takes."""
    answer, sweep = (load(WORKFLOWS / name) for name in ("answer.yml", "sweep.yml"))
    alike = json.loads(json.dumps(sweep["jobs"]["resume"]).replace("needs.sweep.", "needs.answer."))
    assert {**alike, "needs": "answer"} == answer["jobs"]["resume"]
    assert alike["uses"] == "./.github/workflows/resume.yml"
    assert sweep["on"] == answer["on"]
    assert sweep["jobs"]["sweep"]["outputs"] == answer["jobs"]["answer"]["outputs"]
    own = load(WORKFLOWS / "resume.yml")["on"]["workflow_call"]
    for part, given in (("inputs", "with"), ("secrets", "secrets")):
        assert set(alike[given]) == set(own[part])
        assert {one: own[part][one] for one in own[part] if one != "gate"} == answer["on"]["workflow_call"][
            part
        ]


@pytest.mark.parametrize("name", REUSABLE)
def test_what_is_checked_out_is_nobodys_proposal(name: str) -> None:
    """Once in each job: the default branch, or the branch that the agent is to work on; elsewhere nothing."""
    for called, job in load(WORKFLOWS / name)["jobs"].items():
        if "uses" in job:
            continue
        (own,) = [step for step in job["steps"] if is_own_checkout(step)]
        first = (name, called) == ("agent.yml", "agent")
        branch = "inputs.branch" if first else "github.event.repository.default_branch"
        assert own["with"] == {
            "ref": f"${{{{ {branch} }}}}",
            "fetch-depth": 0,
            "persist-credentials": False,
        }


@pytest.mark.parametrize(
    "path", [*(WORKFLOWS / name for name in REUSABLE), ACTION], ids=lambda path: path.name
)
def test_a_step_whose_output_is_used_is_there(path: Path) -> None:
    """An output of no step is empty, and nobody hears of it."""
    said = load(path)
    for job in [said["runs"]] if "runs" in said else said["jobs"].values():
        ids = {step["id"] for step in job.get("steps", ()) if "id" in step}
        assert set(re.findall(r"\bsteps\.([\w-]+)\.", json.dumps([job, said.get("outputs")]))) <= ids
        declared = {
            f"jobs.{one}.outputs.{out}"
            for one in said.get("jobs", {})
            for out in said["jobs"][one].get("outputs", {})
        }
        assert set(re.findall(r"\bjobs\.[\w.-]+", json.dumps(said.get("on", "")))) <= declared


# run, as GitHub would


@dataclass
class Actions:
    """The repository's jobs: each event starts those that it would, each in a checkout of its own."""

    team: Team
    agent: Agent
    inputs: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)

    def hear(self, event: Event) -> list[Ran]:
        """What of the caller's workflow runs, all of it."""
        place = self.team.event_file(event.payload)
        done = []
        agents = "gitgate.agent.scripted.resume"  # a job knows of it by its inputs alone
        self.team.agents.git("config", "--global", "--unset-all", agents, check=False)
        for call in calls(ANSWERS, event, {**SECRETS, "SESSION_KEY": "", **self.secrets}):
            env = {"CI": "true", "RUNNER_TEMP": str(self.team.folder), "GITHUB_EVENT_PATH": str(place)}
            done += run_workflow(call.workflow, {**call.known, **self.known}, self.checkout, env)
        return done

    @property
    def known(self) -> dict[str, str]:
        again = {"agent-name": "scripted", "agent-resume": json.dumps([str(self.agent.folder / "agent.sh")])}
        return {f"inputs.{name}": word for name, word in {**again, **self.inputs}.items()}

    def checkout(self, ref: str) -> Path:
        self.team.jobs += 1
        branch = ("-b", ref) if ref else ()
        return self.team.clone_of(self.team.bare, f"job{self.team.jobs}", *branch).path

    def comment(self, body: str) -> Event:
        written = self.team.forge.write(THREAD, "ada", body)
        return comment(**{name: written[name] for name in ("id", "body")})


@pytest.fixture
def actions(team: Team, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> Actions:
    monkeypatch.delenv("GITHUB_TOKEN")  # a step has what its `env:` gives it
    return Actions(team, agent)


def going_on(gate: str) -> list[tuple[str, str]]:
    """The three jobs in which an agent goes on."""
    return [(job, gate) for job in GO_ON]


def jobs_of(done: list[Ran]) -> list[tuple[str, str]]:
    """Those that ran, all of them well."""
    assert [step for one in done for step in one.steps if step.code] == []
    return [(one.job, one.gate) for one in done]


@pytest.mark.slow
def test_a_comment_leads_to_the_agent(actions: Actions) -> None:
    """Which gate it is the first job says, and the second is told; a word that is no answer leads nowhere."""
    gate = asked(actions, "Which?")
    assert jobs_of(actions.hear(actions.comment("what is this about?"))) == [("answer", "")]
    assert jobs_of(actions.hear(actions.comment("/answer Postgres"))) == [("answer", ""), *going_on(gate)]
    assert actions.agent.starts == [gate]


@pytest.mark.slow
def test_a_sweep_leads_to_the_agents(actions: Actions) -> None:
    """To each of them, in a job of its own."""
    gates = [asked(actions, "Which?"), asked(actions, "What else?")]
    for gate in gates:
        actions.comment(f"/answer {gate} Postgres")
    done = jobs_of(actions.hear(Event("schedule", HALF_HOURLY)))
    assert done[0] == ("sweep", "")
    assert sorted(done[1:]) == sorted(job for gate in gates for job in going_on(gate))
    assert sorted(actions.agent.starts) == sorted(gates)
    assert jobs_of(actions.hear(Event("schedule", HALF_HOURLY))) == [("sweep", "")]


@pytest.mark.slow
def test_an_answer_from_a_terminal_leads_to_the_agent(actions: Actions) -> None:
    """It is not signed: whoever dispatched it vouches for it, in both jobs, which is what the event is read for."""
    gate = asked(actions, "Which?")
    respond = ("respond", gate, "Postgres")
    actions.team.cli.quick(*respond, cwd=actions.team.agents.path, env={"GITHUB_TOKEN": "ada-token"}, code=0)
    (sent,) = actions.team.forge.dispatched
    assert jobs_of(actions.hear(Event("schedule", HALF_HOURLY))) == [("sweep", "")]
    assert jobs_of(actions.hear(dispatch(**sent["inputs"]))) == [("answer", ""), *going_on(gate)]
    assert actions.agent.starts == [gate]


def asked(actions: Actions, prompt: str) -> str:
    """A question of the agent's, shown as its job shows it."""
    gate = actions.team.ask(prompt, show=False)
    shown = ("github", "comment", gate)
    actions.team.cli.quick(*shown, cwd=actions.team.agents.path, env={"GITHUB_TOKEN": "job-token"}, code=0)
    return gate


@pytest.mark.slow
def test_who_asks_again_in_a_job_sends_no_session_in_the_clear(actions: Actions) -> None:
    """It is sealed for the recipients of the caller's file; and the claim lasts as long as the job may, not a moment."""
    key, bare, folder = x25519.Identity.generate(), actions.team.bare, actions.agent.folder
    actions.team.agents.git("config", "gitgate.sessionRecipients", str(key.to_public()))
    actions.inputs = {"session-recipients": str(key.to_public()), "timeout-minutes": "45"}
    actions.secrets = {"SESSION_KEY": str(key)}
    noted = f'git -C "{bare.path}" log -1 --format=%B "refs/hitl/leases/$GITGATE_ID" > "{folder}/lease"'
    again = 'GITGATE_SESSION=secret-session git-gate ask "Which region?" --agent scripted'
    actions.agent.does(f"{noted}\necho more > more.txt; {again}")
    gate = asked(actions, "Which database?")
    assert jobs_of(actions.hear(actions.comment("/answer Postgres")))[1:] == going_on(gate)
    assert "Term: 6300" in (folder / "lease").read_text()
    refs = bare.git("for-each-ref", "--format=%(refname)", "refs/hitl/sessions").split()
    (sealed,) = [ref for ref in refs if not ref.endswith(gate)]
    assert "encrypted: age" in bare.git("show", f"{sealed}:session.yaml")
    stored = subprocess.run(
        ["git", "cat-file", "--batch", "--batch-all-objects"], cwd=bare.path, capture_output=True, check=True
    ).stdout
    assert b"Which region?" in stored
    assert b"secret-session" not in stored


# the test bed's own


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a' == 'A'", True),
        ("'a' != 'b' && 'c'", "c"),
        ("'' || 'it''s'", "it's"),
        ("!contains('[\"a\"]', '\"')", False),
        ("!('a' == 'b' || false)", True),
        ('fromJSON(\'["a", "b"]\')', ["a", "b"]),
        ("github.event.nowhere == ''", True),
        ("github.actor == 'ada' && cancelled()", False),
    ],
)
def test_an_expression_is_worked_out(text: str, value: object) -> None:
    assert Reading(text, {"github.actor": "ada"}).whole() == value


@pytest.mark.parametrize(
    "text",
    ["hashFiles('x')", "inputs.x", "'a' < 'b'", "github.event.x.*", "'a' 'b'", "(true", "", "1 == 1", "false && nobody.knows", "toJSON(github.actor)"],
)  # fmt: skip
def test_what_is_not_known_fails(text: str) -> None:
    """Rather than to count as something; also where it would not have counted."""
    with pytest.raises(AssertionError):
        Reading(text, {"github.actor": "ada"}).whole()


def test_a_condition_asks_how_it_went() -> None:
    """Only where it says so."""
    assert [holds("'a' == 'a'", {}, status) for status in ("success", FAILURE)] == [True, False]
    assert [holds("${{ !cancelled() }}", {}, status) for status in (FAILURE, CANCELLED)] == [True, False]
    assert holds(None, {})
    assert not holds(False, {})
