"""Command line: what `git gate github` does in a CI job besides talking to the forge: outputs, the summary, the agent."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ...acts import find_gate
from ...acts.askers import asked_for_others
from ...context.targets import may_publish_work, remote_of, summaries
from ...errors import Failure, GateError, NotAllowed, Usage
from ...exchange.syncing import sync
from ...gates import Filter, list_gates
from ...gates.recording import reload
from ...policy import policy_remote, protected_refs
from ...resumption.calls import pool_of
from ...setup import in_job
from ...store.git import altered, config_digest, keep_config, put_back, watch_config
from ...store.git.protected import protected_tip
from ...surfaces.forge.accept import doubt, is_retried, may_go_on
from ...surfaces.forge.hosts import started_by
from ...surfaces.forge.hosts.connect import names_of_token
from ...surfaces.forge.posting import bring_up_to_date, course_of, load_board, thread_of
from ...surfaces.forge.words import span
from .. import DONE, FAILURE, NOT_ALLOWED
from ..process import stop_on_signal
from ..terminal import Screen

if TYPE_CHECKING:
    from ...context import Desk
    from ...model.gate import Gate
    from ...resumption.run import Resumed
    from ...surfaces.forge.hosts import Forge


OUTPUT, SUMMARY = "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"
TOKEN, GITLAB_TOKEN = "GITGATE_GITHUB_TOKEN", "GITGATE_GITLAB_TOKEN"


def write_outputs(screen: Screen, **words: str) -> None:
    """Write the outputs of a step. Each is a word of ours: no line of it can be somebody else's."""
    append(screen, OUTPUT, "".join(f"{name}={word}\n" for name, word in words.items()))


def append(screen: Screen, variable: str, text: str) -> None:
    name = screen.env.get(variable)
    if not name:
        return
    try:
        with Path(name).open("a", encoding="utf-8") as out:
            out.write(text)
    except OSError as unwritable:
        raise Failure(
            f"{variable} cannot be written: {unwritable.strerror}", hint=f"check {name}"
        ) from unwritable


def summarise(screen: Screen, desk: Desk, forge: Forge) -> None:
    """Write a line for each gate on the job's own page.

    What somebody wrote is put into code spans, where it does nothing.
    """
    if not screen.env.get(SUMMARY):
        return
    lines = [
        f"- **{one.state}** {one.id} {span(one.title, 100)} by {span(one.agent, 60)}"
        for one in list_gates(desk, Filter(all=True))
    ]
    text = "\n".join(lines[:200]) if lines else "no gate is open"
    append(screen, SUMMARY, f"### Gates\n\n{text}\n\n[pull requests]({forge.site}/pulls)\n\n")


# acting on answers

MOST_HANDED_ON = 256  # so many jobs a matrix of GitHub's may have; a later sweep hands on the rest


def hand_on(screen: Screen, desk: Desk, gates: list[str]) -> None:
    """Write the gates whose agents the next job is to start as the step's output `resume`.

    Each gate gets a job, and a group, of its own.
    """
    import json

    ready = [found.gate for found in (find_gate(desk, name) for name in gates) if may_go_on(desk, found.gate)]
    names = [gate.id for gate in ready if gate.opened.delivery == "resume"]
    write_outputs(screen, resume=json.dumps(names[:MOST_HANDED_ON]))


def resume_gates(screen: Screen, desk: Desk, forge: Forge, gates: list[str], vouched: str = "") -> int:
    """Start the agents of gates whose answer is proven, one after the other, and say on the thread what came of it."""
    refuse_unprepared(desk)
    if in_job(screen.env):
        watch_config(desk.repo, runner_files(screen))
    with stop_on_signal() as stopping:
        return act_on_gates(screen, desk, forge, gates, stopping, vouched)


def act_on_gates(
    screen: Screen, desk: Desk, forge: Forge, gates: list[str], stopping: threading.Event, vouched: str = ""
) -> int:
    codes = [act_on_gate(screen, desk, forge, name, stopping, vouched) for name in gates]
    return next((code for code in codes if code != DONE), DONE)


def act_on_gate(
    screen: Screen, desk: Desk, forge: Forge, name: str, stopping: threading.Event, vouched: str
) -> int:
    gate = reload(desk, name)
    ready = may_start(screen, desk, forge, gate, vouched)
    if ready is not None:
        return ready
    try:
        pool = pool_of(desk, screen.say, stopping, insist=True, untold=names_of_token(desk))
        pool.course = lambda gate: course_of(desk, forge, gate)
        done = pool.act(name)
    except GateError as failed:
        screen.warn(f"gate {name}: {failed.message}")
        return DONE if failed.kind == "conflict" else FAILURE
    refuse_other_requesters(desk, gate.opened.asked.logins)
    show_all(screen, desk, forge, done)
    return DONE if done.result in ("resumed", "lost") else FAILURE


def may_start(screen: Screen, desk: Desk, forge: Forge, gate: Gate, vouched: str) -> int | None:
    """Return None where the gate's agent may be started; else say why not, and return the exit code.

    It may be where something is to be done, and the answer is proven.
    """
    if not (may_go_on(desk, gate) or is_retried(gate, vouched)) or gate.opened.delivery != "resume":
        screen.say(f"gate {gate.id} is {gate.state}: nothing is to be started")
        return DONE
    why = doubt(desk, forge, gate, vouched)
    if not why:
        return None
    screen.warn(f"not started: {why}")
    return NOT_ALLOWED


def refuse_unprepared(desk: Desk) -> None:
    """Refuse a job's checkout that may not publish work: it is gone after the job, with all that an agent made there."""
    if remote_of(desk) is not None and not may_publish_work(desk):
        raise Failure(
            "an agent's commits would be lost with this checkout: nothing permits publishing them",
            hint="git gate github prepare",
        )


def show_all(screen: Screen, desk: Desk, forge: Forge, done: Resumed) -> None:
    """Push the gates, then update the comments of the resumed gate and of the questions that its agent asks next.

    The agent itself had no login to push its questions.
    """
    if remote_of(desk) is not None:
        sync(desk)
    wanted = [done.gate, *(one.id for one in summaries(desk) if one.state == "awaiting")]
    try:
        for name in dict.fromkeys(wanted):
            gate = find_gate(desk, name).gate
            thread = thread_of(desk, forge, gate) if done.gate in (name, gate.opened.follows) else None
            if thread is not None:
                trouble = bring_up_to_date(desk, forge, gate, load_board(forge, thread))
                if trouble:
                    screen.warn(trouble)
    except GateError as silent:
        screen.warn(f"the comment is not up to date: {silent.message}")


# whose job it is


def job_event(screen: Screen) -> dict[str, object]:
    """Return the event that the job was started with, from its file; empty where no such file can be read."""
    import json

    try:
        said = json.loads(Path(screen.env.get("GITHUB_EVENT_PATH") or "-").read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def accounts_behind_job(screen: Screen) -> tuple[str, ...]:
    """Return the accounts that started this job; none where it is no job of Actions."""
    return started_by(screen.env, job_event(screen)) if in_job(screen.env) else ()


def refuse_other_requesters(desk: Desk, logins: Sequence[str]) -> None:
    """Refuse to push where an agent named others than those who started it: it could let others answer its questions."""
    remote = remote_of(desk)
    others = asked_for_others(desk, remote, logins) if remote is not None and logins else []
    if others:
        raise NotAllowed(
            f"gate {', '.join(others)} does not name {', '.join(f'@{login}' for login in logins)}, for whom it was asked; "
            "nothing was pushed",
            hint="look at what the agent did to git's configuration, or to its environment, and run the job again",
        )


# beside an agent


def need_protected(screen: Screen, desk: Desk) -> None:
    """Refuse to go on in a job where it is not certain which branch has the policy.

    Nobody's answer counts there, and no agent is started.
    """
    if not in_job(screen.env):
        return
    refs = protected_refs(desk)
    known = desk.settings.text("protectedBranch") or desk.refs.get(f"refs/remotes/{policy_remote(desk)}/HEAD")
    if known and protected_tip(desk.refs, desk.records.objects, refs[:1]) is not None:
        return
    raise NotAllowed(
        f"this job does not know the default branch, whose policy holds: {refs[0]} is not here",
        hint="check out with fetch-depth: 0, then: git gate github prepare",
    )


@contextlib.contextmanager
def undisturbed(screen: Screen, desk: Desk) -> Iterator[None]:
    """Let an agent change neither what git is set up with, which has the token next, nor what the steps after it run with."""
    if not in_job(screen.env):
        yield
        return
    kept = keep_config(desk.repo, runner_files(screen))
    try:
        yield
    finally:
        for place in put_back(desk.repo, kept):
            screen.say(f"put back as it was before the agent: {place}")


def runner_files(screen: Screen) -> list[Path]:
    """Return the files by which a step sets variables and PATH for the steps after it."""
    return [Path(screen.env[name]) for name in ("GITHUB_ENV", "GITHUB_PATH") if screen.env.get(name)]


def refuse_altered(screen: Screen, desk: Desk) -> None:
    """Refuse to send a token anywhere where git's configuration is not as it was prepared.

    The agent's step was cut off then, or the agent found another way to change it.
    """
    expected = screen.env.get("GITGATE_PREPARED", "")
    if expected and config_digest(desk.repo) != expected:
        raise altered()


def agent_command(screen: Screen) -> tuple[str, ...]:
    """Return the agent's command, in which `{task}` stands for the task."""
    import json

    said = screen.env.get("GITGATE_AGENT_COMMAND", "")
    try:
        words = json.loads(said)
    except (ValueError, RecursionError):
        words = None
    if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
        raise Usage(
            "GITGATE_AGENT_COMMAND is no JSON list of words",
            hint="""'["claude", "-p", "--output-format", "json", "--permission-prompt-tool", "stdio", "--", "{task}"]'""",
        )
    return tuple(words)


def job_server(screen: Screen) -> str:
    """Return the job's own server; empty where there is no job."""
    return (screen.env.get("GITHUB_SERVER_URL") or screen.env.get("CI_SERVER_URL") or "").rstrip("/")


def credential(screen: Screen, action: str) -> int:
    """Speak the protocol of git credential helpers: lines of `name=value` on standard input, and such lines as a reply."""
    if action != "get":
        return DONE
    asked = dict(line.partition("=")[::2] for line in sys.stdin.read(65_536).splitlines() if "=" in line)
    server = urlsplit(job_server(screen))
    user, token = "x-access-token", screen.env.get(TOKEN, "") or screen.env.get("GITHUB_TOKEN", "")
    if screen.env.get("GITLAB_CI"):
        user, token = (
            "gitlab-ci-token",
            screen.env.get(GITLAB_TOKEN, "") or screen.env.get("CI_JOB_TOKEN", ""),
        )
    if token and asked.get("protocol") == server.scheme and asked.get("host") == server.netloc:
        screen.print(f"username={user}\npassword={token}")
    return DONE
