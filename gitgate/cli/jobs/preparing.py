"""Command line: `git gate github prepare`: a job's checkout is made ready for questions and answers, and holds no secret."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import Failure, GateError
from .. import exits
from ..terminal.screen import Screen
from .jobs import job_event, need_protected, note, started_by

if TYPE_CHECKING:
    from ...context.desk import Desk


ROBOT = ("github-actions[bot]", "41898282+github-actions[bot]@users.noreply.github.com")


def prepare(screen: Screen) -> int:
    """Settings of this checkout alone, none of them secret: the token stays in the environment of the steps that need it."""
    from ...gates.agency import agent_settings
    from ...sharing.branches import head_branch
    from ...store.git.unaltered import digest

    desk = screen.desk()
    desk.refuse_agents("github prepare")
    env, git = desk.settings.env, desk.repo.git
    for key in ("initialised", "publishWork"):
        git.run("config", "--local", "--replace-all", f"gitgate.{key}", "true")
    git.run("config", "--local", "--replace-all", "gitgate.session", "push")
    if not desk.settings.identity():
        for key, value in zip(("user.name", "user.email"), ROBOT, strict=True):
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
    note(screen, settings=digest(desk.repo))
    screen.emit("github-prepare", {"ready": True}, "")
    screen.say("this checkout is ready: questions and their work are pushed, sessions travel along")
    return exits.DONE


def requesters(screen: Screen) -> tuple[str, ...]:
    """For whom this job asks; on a schedule for no person, whatever name its commits have."""
    from ...setup.equipping import in_job

    nobody = (f"{ROBOT[0]} <{ROBOT[1]}>",)
    return (started_by(screen) or nobody) if in_job(screen.env) else ()


def default_branch(screen: Screen, desk: Desk) -> str:
    """As the job's own event names it; a schedule's event may not, but runs on it. Else as the clone, or its server, knows it."""
    named = named_by_event(screen)
    if not named and screen.env.get("GITHUB_EVENT_NAME") == "schedule":
        before, heads, after = screen.env.get("GITHUB_REF", "").partition("refs/heads/")
        named = after if heads and not before else ""
    if named or desk.settings.text("protectedBranch"):
        return plain(named)
    from ...policy.book import policy_remote

    remote = policy_remote(desk)
    if remote is None or desk.refs.get(f"refs/remotes/{remote}/HEAD") is not None:
        return ""
    return plain(named_by_server(desk, remote))


def named_by_event(screen: Screen) -> object:
    repository = job_event(screen).get("repository")
    return repository.get("default_branch", "") if isinstance(repository, dict) else ""


def named_by_server(desk: Desk, remote: str) -> object:
    from ...store.remote.fetch import default_branch_of

    try:
        return default_branch_of(desk.repo, remote, timeout=desk.settings.seconds("networkTimeout") or 60)
    except GateError:
        return ""


def plain(name: object) -> str:
    return name if isinstance(name, str) and name.isprintable() and not name.startswith("-") else ""


def log_in(screen: Screen, desk: Desk) -> None:
    """Let git ask us for the token: it is in no file, and no step has it that was not given it."""
    server = screen.env.get("GITHUB_SERVER_URL", "").rstrip("/")
    if not server:
        return
    helper = f"!'{quoted(sys.executable)}' -P -m gitgate github credential"
    key = f"credential.{server}.helper"
    git = desk.repo.git
    git.run("config", "--local", "--unset-all", key, check=False)
    git.run("config", "--local", "--add", key, "")
    git.run("config", "--local", "--add", key, helper)


def keep_session_key(screen: Screen, desk: Desk) -> None:
    """The key that opens encrypted sessions, for this job alone: in the runner's own folder, readable by nobody else."""
    key, folder = screen.env.get("GITGATE_SESSION_KEY", "").strip(), screen.env.get("RUNNER_TEMP", "")
    if not key:
        return
    place = Path(folder or desk.repo.state_dir) / "gitgate-session-key"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.touch(mode=0o600)
    place.write_text(f"{key}\n", encoding="utf-8")
    desk.repo.git.run("config", "--local", "--replace-all", "gitgate.sessionIdentity", str(place))


def quoted(path: str) -> str:
    return path.replace("'", "'\\''")
