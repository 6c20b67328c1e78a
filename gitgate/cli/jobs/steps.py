"""Command line: `git gate github`, what only jobs call: a checkout made ready, an agent run, its gates pushed, an answer acted on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...acts import open_gate
from ...acts.askers import logins_of
from ...agents.claude import Claude
from ...agents.claude.command import is_claude
from ...context.targets import remote_of
from ...errors import Failure, GateError, NotAllowed, Usage
from ...exchange.syncing import bring_home
from ...gates.agency import agent_settings
from ...gates.recording import NEVER
from ...policy import policy_remote
from ...policy.project import in_force
from ...questions.prompts import Circumstances, first_prompt
from ...setup import in_job
from ...setup.equipping import SOURCES, equipped, names_flag
from ...sharing.branches import head_branch, publish_branch
from ...sharing.parcel import stand_apart
from ...store.git import config_digest
from ...store.remote.fetch import default_branch_of
from ...store.work import printable
from ...store.work.aside import is_standing
from ...store.work.plan import is_signal
from ...store.work.snapshot import signals_below
from ...surfaces.forge.accept import vouched_by
from ...surfaces.forge.hosts import MOST_EVENT, Dispatched, foreign_token, parse_event
from ...surfaces.forge.hosts.connect import connect
from ...surfaces.forge.posting import tell_pushed_beside
from ...surfaces.forge.sweeping import refresh, sweep
from .. import DONE, FAILURE
from ..terminal import Screen, gate_argument, read_file, verb
from ..verbs.resume import ASKED, SETTINGS, wrap_command
from . import (
    accounts_behind_job,
    agent_command,
    credential,
    hand_on,
    job_event,
    job_server,
    need_protected,
    refuse_altered,
    refuse_other_requesters,
    resume_gates,
    summarise,
    undisturbed,
    write_outputs,
)

if TYPE_CHECKING:
    from ...context import Desk
    from ...policy.project import InForce
    from ...sharing.branches import Pushed
    from ...surfaces.forge.hosts import Event, Forge
    from ...surfaces.forge.sweeping import Swept


def desk_and_forge(screen: Screen) -> tuple[Desk, Forge]:
    desk = screen.desk()
    desk.judged = NEVER  # deadlines pass in sweeps, which first hear what was written before them
    return desk, connect(desk)


def fetch_gates(desk: Desk) -> None:
    """Fetch the gates as the remote has them."""
    remote = remote_of(desk)
    if remote is not None:
        bring_home(desk, remote)


def read_event_file(name: str) -> Event:
    data = read_file(name, "EVENT_FILE", MOST_EVENT)
    if len(data) > MOST_EVENT:
        raise Usage("the event is too large", hint="it is not one of the forge's")
    return parse_event(data)


def act_on(screen: Screen, desk: Desk, forge: Forge, gates: list[str], vouched: str = "") -> int:
    return resume_gates(screen, desk, forge, gates, vouched)


def sweep_now(screen: Screen, desk: Desk, forge: Forge, *, resume: bool) -> int:
    done = sweep(desk, forge)
    tell_swept(screen, done)
    warn_of_token(screen, desk, forge)
    hand_on(screen, desk, done.resume)
    summarise(screen, desk, forge)
    code = act_on(screen, desk, forge, done.resume) if resume and done.resume else DONE
    return FAILURE if done.trouble else code


def warn_of_token(screen: Screen, desk: Desk, forge: Forge) -> None:
    words = foreign_token(desk, forge)
    if words:
        screen.warn(words)


def tell_swept(screen: Screen, done: Swept) -> None:
    heard = [{"gate": one.gate, "outcome": one.outcome, "words": one.words} for one in done.accepted]
    fields: dict[str, Any] = {
        "shown": done.shown,
        "accepted": heard,
        "resume": done.resume,
        "doubts": done.doubts,
        "trouble": done.trouble,
        "noted": done.noted,
        "asked": done.asked or None,
        "job": done.asked or None,
    }
    screen.emit("github-sweep", fields, "")
    for gate in done.shown:
        screen.say(f"shown: gate {gate}")
    for one in done.accepted:
        screen.say(f"{one.outcome}: {one.words}")
    for words in done.noted:
        screen.say(words)
    if done.asked:
        screen.say(f"this repository's jobs keep its comments, so one was asked to post them: {done.asked}")
    for words in (*done.doubts.values(), *done.trouble):
        screen.warn(words)


@click.command("prepare")
@click.option("--apart", is_flag=True, help="For an agent's own job: a copy of the remote takes its place.")
@verb
def prepare_command(screen: Screen, apart: bool) -> int:
    """Make a CI job's checkout ready: settings, who commits, how the agent is started, and a login that holds no secret.

    GITGATE_AGENT_NAME and GITGATE_AGENT_RESUME (a JSON list) name a program that can be started again;
    GITGATE_AGENT_ARGUMENTS (one as well) are flags that Claude Code is resumed with. The default branch, whose
    policy holds, is the event's; where the event names none, the server is asked. The step's output `settings` is for `publish`.
    With --apart whatever is pushed from now on goes to a copy of the remote on this machine, for a job that may not write.

    \b
    git gate github prepare
    git gate github prepare --apart
    """
    code = prepare(screen)
    if apart and code == DONE:
        stand_apart(screen.desk())
        screen.say(
            "the remote is a copy on this machine from now on: `git gate github pack` hands over what is made"
        )
    return code


@click.command("run")
@verb
def run_command(screen: Screen) -> int:
    """Run the job's agent: GITGATE_AGENT_COMMAND is its command as a JSON list, where {task} stands for GITGATE_TASK.

    As `git gate wrap --waiting-ok`: when the agent asks, the job goes on green, and the gate is in the step's outputs. While
    it works in a job, what configures agents (.claude, CLAUDE.md and the like) is as the protected branch has it; what it
    writes there all the same is not committed, and the step fails. Claude Code is given git gate's hooks, and what the
    protected branch's .claude/settings.json permits; where one of those files cannot be replaced, none of the project's own
    settings.

    \b
    git gate github run
    """
    return run_first(screen)


@click.command("publish")
@verb
def publish_command(screen: Screen) -> int:
    """Push what an agent's step left here, its branch and its questions, and show them. For the step after the agent's.

    GITGATE_PREPARED, what `prepare` gave out as `settings`: refused where git is set up otherwise now.

    \b
    git gate github publish
    """
    refuse_altered(screen, screen.desk())
    desk, forge = desk_and_forge(screen)
    need_protected(screen, desk)
    refuse_other_requesters(desk, logins_of(accounts_behind_job(screen)))
    pushed = publish_branch(desk)
    made = head_branch(desk), desk.refs.get("HEAD") or ""
    return show_pushed(screen, desk, forge, pushed, made)


def show_pushed(
    screen: Screen, desk: Desk, forge: Forge, pushed: Pushed | None, made: tuple[str, str]
) -> int:
    """Say where the agent's commits went, and push and show its questions. `made`: the branch that it was on, and its last commit."""
    if pushed is not None:
        screen.say(f"pushed {pushed.branch}{f', {pushed.how}' if pushed.how else ''}")
    if pushed is not None and pushed.why:
        screen.warn(pushed.why)
    code = sweep_now(screen, desk, forge, resume=False)
    if pushed is None or not pushed.moved:
        return code
    branch, tip = made
    tell_pushed_beside(forge, branch, pushed, tip)
    return code or FAILURE


@click.command("resume")
@gate_argument()
@click.option(
    "--event",
    "event_file",
    metavar="EVENT_FILE",
    help="The job's event; a person who dispatched vouches for it.",
)
@verb
def resume_command(screen: Screen, gate_id: str, event_file: str | None) -> int:
    """Start the agent of an answered gate, here and now, if its answer is proven: for the job after the one that took it.

    Exit 0 also when another job has it already.

    \b
    git gate github resume 7k2f --event "$GITHUB_EVENT_PATH"
    """
    desk, forge = desk_and_forge(screen)
    need_protected(screen, desk)
    fetch_gates(desk)
    gate = open_gate(desk, gate_id).id
    refresh_comment(screen, desk, forge, gate)
    code = act_on(screen, desk, forge, [gate], vouched_for(desk, forge, gate, event_file))
    summarise(screen, desk, forge)
    return code


def refresh_comment(screen: Screen, desk: Desk, forge: Forge, gate: str) -> None:
    """Update a gate's comment before its agent starts: the agent may take an hour."""
    trouble = refresh(desk, forge, gate)
    if trouble:
        screen.warn(trouble)


def vouched_for(desk: Desk, forge: Forge, gate: str, event_file: str | None) -> str:
    """Return the answer that the job's event vouches for; empty where no person sent it whose word counts."""
    event = read_event_file(event_file) if event_file else None
    if not isinstance(event, Dispatched) or event.gate != gate:
        return ""
    return vouched_by(desk, forge, event)


@click.command("credential", hidden=True)
@click.argument("action")
@verb
def credential_command(screen: Screen, action: str) -> int:
    """Log git in: give the job's token to the job's own server, and to no other."""
    return credential(screen, action)


NAMED = 10  # so many files are named where many are left
PACKAGE = (
    'agent-package: "@anthropic-ai/claude-code@VERSION" in gitgate-agent.yml; in a job of your own, a step before this one: '
    "npm install --global @anthropic-ai/claude-code@VERSION"
)


def run_first(screen: Screen) -> int:
    desk = screen.desk()
    need_protected(screen, desk)
    words, job = agent_command(screen), in_job(screen.env)
    if job:
        need_program(screen, words[0])
    before, written = uncommitted(desk) if job else frozenset(), list[str]()
    context = click.get_current_context()
    held = in_force(desk, desk.repo, ours=job, say=screen.warn, written=written)
    with undisturbed(screen, desk), held as project:
        context.meta[SETTINGS] = project.settings
        given = {"command": ready(screen, desk, words, project), "waiting_ok": True, "agent": None}
        told = {"as_json": screen.as_json, "quiet": screen.quiet, "color": screen.color}
        code = int(context.invoke(wrap_command, **given, **told) or DONE)
    if not job:
        return code
    asked = context.meta.get(ASKED)
    if lost_nothing(screen, desk, written, None if asked else before):
        return code
    if not asked:
        write_outputs(screen, state="failed")  # of an output that is written twice the last counts
    return code or FAILURE


def need_program(screen: Screen, program: str) -> None:
    """Refuse to go on without a program: a job's machine is new, and has only what somebody installs there."""
    import shutil

    if shutil.which(program, path=screen.env.get("PATH")) is None:
        raise Failure(f"{program} cannot be started: there is no such program on PATH", hint=PACKAGE)


def ready(screen: Screen, desk: Desk, words: Sequence[str], project: InForce) -> tuple[str, ...]:
    """Return the agent's command with our additions. The task is one word, whatever it says: no shell ever reads it."""
    unread = held_back(screen, desk, words, project.doubt)
    now = Circumstances(unread=unread, replaced=project.replaced)
    task = first_prompt(screen.env.get("GITGATE_TASK", ""), now)
    return tuple(task if word == "{task}" else word for word in equipped(desk, words, project.doubt))


def held_back(screen: Screen, desk: Desk, words: Sequence[str], doubt: str) -> tuple[str, ...]:
    """Say what takes no part because of a doubt, and why.

    Return the instructions that Claude Code does not load by itself then.
    """
    if not doubt:
        return ()
    screen.warn(f"what configures the agent is the branch's own: {doubt}")
    if not is_claude(words):
        return ()
    if names_flag(words, SOURCES):
        screen.warn(f"its command names {SOURCES}, and may load that; the project's servers stay off")
        return ()
    screen.warn("so the project's own settings, hooks and servers take no part")
    return tuple(name for name in Claude.unread if (desk.repo.place / name).is_file())


def uncommitted(desk: Desk) -> frozenset[str]:
    """Return the files that differ from the last commit, by name, without signal files and those that git ignores."""
    said = desk.repo.git.out("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames")
    signals = signals_below(desk.repo, desk.settings.text("signals"))
    paths = (entry[3:] for entry in said.split(b"\0") if entry)
    return frozenset(printable(path) for path in paths if not is_signal(path, signals))


def lost_nothing(screen: Screen, desk: Desk, written: Sequence[str], before: frozenset[str] | None) -> bool:
    """Return whether nothing of the agent's work is lost: git could commit it, and files put aside are back.

    Warn of what is lost, and of what the agent left uncommitted. Where it asked, `before` is None: its uncommitted work
    went with the question, and nothing is said of that.
    """
    left = uncommitted(desk)
    lost = [path for path in written if path in left]
    if lost:
        screen.warn(
            f"lost with this checkout: what the agent wrote to {some_paths(lost)}. What configures agents stands there as the "
            "protected branch has it, and git commits nothing of it; a person has to change it"
        )
    forgotten = sorted(left - before - set(lost)) if before is not None else []
    if forgotten:
        many = f"{len(forgotten)} files were" if len(forgotten) > 1 else "1 file was"
        screen.warn(f"{many} left uncommitted by the agent, and will be gone: {some_paths(forgotten)}")
    return not lost and not is_standing(desk.repo)


def some_paths(paths: Sequence[str]) -> str:
    more = f", and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return f"{', '.join(paths[:NAMED])}{more}"


ROBOT = ("github-actions[bot]", "41898282+github-actions[bot]@users.noreply.github.com")
GITLABS_ROBOT = ("gitlab-ci[bot]", "gitlab-ci[bot]@users.noreply.gitlab.com")


def prepare(screen: Screen) -> int:
    """Write the settings of this checkout alone.

    None is secret: the token stays in the environment of the steps that need it.
    """
    desk = screen.desk()
    desk.refuse_agents("github prepare")
    if not (in_job(screen.env) or desk.settings.in_ci):
        raise NotAllowed(
            "`git gate github prepare` makes a CI job's checkout ready, which is thrown away after it; this is no CI job",
            hint="git gate init --github writes the workflows that run it; to set up this clone: git gate init",
        )
    env, git = desk.settings.env, desk.repo.git
    for key in ("initialised", "publishWork"):
        git.run("config", "--local", "--replace-all", f"gitgate.{key}", "true")
    git.run("config", "--local", "--replace-all", "gitgate.session", "push")
    if not desk.settings.identity():
        robot = GITLABS_ROBOT if env.get("GITLAB_CI") else ROBOT
        for key, value in zip(("user.name", "user.email"), robot, strict=True):
            git.run("config", "--local", "--replace-all", key, value)
    log_in(screen, desk)
    git.run("config", "--local", "--replace-all", "gitgate.jobBranch", head_branch(desk))
    git.run("config", "--local", "--replace-all", "gitgate.requester", ", ".join(requesters(screen)))
    branch = default_branch(screen, desk)
    if branch:  # the policy's, whatever is checked out
        git.run("config", "--local", "--replace-all", "gitgate.protectedBranch", branch)
    name, resume = env.get("GITGATE_AGENT_NAME", ""), env.get("GITGATE_AGENT_RESUME", "")
    if name and resume:
        if any(character in name for character in "\n\0=") or name.startswith("-"):
            raise Failure("GITGATE_AGENT_NAME is no plain name", hint="a word, such as: reviewer")
        git.run("config", "--local", "--replace-all", f"gitgate.agent.{name}.resume", resume)
    if env.get("GITGATE_AGENT_ARGUMENTS"):
        given = env["GITGATE_AGENT_ARGUMENTS"]
        git.run("config", "--local", "--replace-all", "gitgate.agent.claude.arguments", given)
        agent_settings(screen.desk(), "claude")  # refused here, rather than when an answer is there
    if env.get("RUNNER_TEMP"):
        place = str(Path(env["RUNNER_TEMP"]).absolute() / "gitgate-worktrees")
        git.run("config", "--local", "--replace-all", "gitgate.worktrees", place)
    keep_session_key(screen, desk)
    need_protected(screen, screen.desk())
    write_outputs(screen, settings=config_digest(desk.repo))
    screen.emit("github-prepare", {"ready": True}, "")
    screen.say("this checkout is ready: questions and their work are pushed, sessions travel along")
    return DONE


def requesters(screen: Screen) -> tuple[str, ...]:
    """Return for whom this job asks; on a schedule that is no person, whatever name its commits have."""
    name, email = GITLABS_ROBOT if screen.env.get("GITLAB_CI") else ROBOT
    nobody = (f"{name} <{email}>",)
    return (accounts_behind_job(screen) or nobody) if in_job(screen.env) else ()


def default_branch(screen: Screen, desk: Desk) -> str:
    """Return the default branch as the job's own event names it, else as the clone or its server knows it.

    The event of a schedule may not name it, but a schedule runs on it.
    """
    named = named_by_event(screen)
    if not named and screen.env.get("GITHUB_EVENT_NAME") == "schedule":
        before, heads, after = screen.env.get("GITHUB_REF", "").partition("refs/heads/")
        named = after if heads and not before else ""
    if named or desk.settings.text("protectedBranch"):
        return printable_name(named)
    remote = policy_remote(desk)
    if remote is None or desk.refs.get(f"refs/remotes/{remote}/HEAD") is not None:
        return ""
    return printable_name(named_by_server(desk, remote))


def named_by_event(screen: Screen) -> object:
    if screen.env.get("GITLAB_CI"):
        return screen.env.get("CI_DEFAULT_BRANCH", "")
    repository = job_event(screen).get("repository")
    return repository.get("default_branch", "") if isinstance(repository, dict) else ""


def named_by_server(desk: Desk, remote: str) -> object:
    try:
        return default_branch_of(desk.repo, remote, timeout=desk.network_timeout)
    except GateError:
        return ""


def printable_name(name: object) -> str:
    return name if isinstance(name, str) and name.isprintable() and not name.startswith("-") else ""


def log_in(screen: Screen, desk: Desk) -> None:
    """Let git ask us for the token, so that it is in no file, and only steps have it that were given it."""
    server = job_server(screen)
    if not server:
        return
    helper = f"!'{shell_quoted(sys.executable)}' -P -m gitgate github credential"
    key = f"credential.{server}.helper"
    git = desk.repo.git
    git.run("config", "--local", "--unset-all", key, check=False)
    git.run("config", "--local", "--add", key, "")
    git.run("config", "--local", "--add", key, helper)


def keep_session_key(screen: Screen, desk: Desk) -> None:
    """Keep the key that opens encrypted sessions for this job, in the runner's own folder, readable by nobody else."""
    key, folder = screen.env.get("GITGATE_SESSION_KEY", "").strip(), screen.env.get("RUNNER_TEMP", "")
    if not key:
        return
    place = Path(folder or desk.repo.state_dir) / "gitgate-session-key"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.touch(mode=0o600)
    place.write_text(f"{key}\n", encoding="utf-8")
    desk.repo.git.run("config", "--local", "--replace-all", "gitgate.sessionIdentity", str(place))


def shell_quoted(path: str) -> str:
    return path.replace("'", "'\\''")
