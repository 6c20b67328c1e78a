"""Surfaces: whether questions and replies get through on GitHub or GitLab: the workflows, what they may do, the token, the secrets.

Off line it is read from this clone; the forge is asked only when somebody says so. Nothing is changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...agents.claude import Claude
from ...agents.claude.command import is_claude
from ...context import Desk
from ...context.targets import remote_of
from ...document import codec
from ...errors import GateError
from ...policy import project, protected_refs
from ...setup import workflows as github
from ...setup import workflows as gitlab
from ...setup.checkup import GOOD, MISSING, WRONG, Finding
from ...setup.managed import text_of
from ...store.git.protected import protected_tip, read_protected
from .hosts import has_pipeline
from .hosts.connect import (
    ForgePlace,
    find_place,
    github_at,
    token_and_source,
    unknown_forge,
    way_to_token,
    web_to,
)
from .hosts.github import GitHub
from .hosts.gitlab import DEVELOPER, GitLab
from .hosts.web import ForgeFailed

AGENT_WORKFLOW = "/.github/workflows/agent.yml@"
# What the command needs so that a question is asked, heard and told apart from an end. Each with what is missed without it.
FLAGS = (
    (("-p", "--print"), "-p", "it waits for somebody at a terminal"),
    (
        ("--permission-prompt-tool",),
        "--permission-prompt-tool stdio",
        "it is not offered to ask (AskUserQuestion)",
    ),
    (
        ("--output-format",),
        "--output-format json",
        "nobody sees that it ended by asking, nor which session to save",
    ),
)
WORK = ("Edit", "Write", "Bash", "AskUserQuestion")


def runs_agent(job: Mapping[str, Any]) -> bool:
    return AGENT_WORKFLOW in str(job.get("uses", ""))


def given_to(job: Mapping[str, Any], what: str = "with") -> Mapping[str, Any]:
    """Return a mapping of the job, such as its inputs; empty where there is none, or something else."""
    said = job.get(what)
    return said if isinstance(said, dict) else {}


def examine_agent(desk: Desk, name: str, job: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the findings on the agent of one job."""
    given = given_to(job)
    words = command_words(given.get("command"))
    about = f"agent of the job {name}"
    if words is None:
        yield Finding(about, WRONG, "command is no JSON list of words", '["claude", "-p", …, "--", "{task}"]')
    elif is_claude(words):
        yield from examine_claude(desk, about, words)
    elif any("claude" in word for word in words):
        yield Finding(
            about,
            MISSING,
            f"{words[0]} starts Claude Code by itself, which is given git gate's hooks only where the command names it: "
            "its questions are refused",
            'let the command begin with "claude"; or: git gate init --claude',
        )
    elif not (given.get("agent-name") and given.get("agent-resume")):
        said = f"nobody knows how {words[0]} is started again with an answer"
        yield Finding(about, MISSING, said, "agent-name and agent-resume, in both files")
    else:
        yield Finding(about, GOOD, f"{words[0]}, started again as {given['agent-name']}")


def command_words(command: object) -> list[str] | None:
    try:
        words = json.loads(str(command))
    except (ValueError, RecursionError):
        return None
    return (
        words if isinstance(words, list) and words and all(isinstance(word, str) for word in words) else None
    )


def examine_claude(desk: Desk, about: str, words: list[str]) -> Iterator[Finding]:
    flags = {word.partition("=")[0] for word in words}
    lacking = [(flag, missed) for names, flag, missed in FLAGS if not flags.intersection(names)]
    for flag, missed in lacking:
        yield Finding(about, WRONG, f"Claude Code without {flag}: {missed}", f"{flag} in its command")
    rules = project.permissions(desk, "claude")
    forbidden = [rule for rule in rules.get("deny", ()) if rule in WORK]
    if forbidden:
        said = f"{Claude.rules_file} of the default branch forbids {', '.join(forbidden)}"
        yield Finding(about, MISSING, said, "take it from permissions.deny there, unless that is meant")
    if not lacking and not forbidden:
        more = len(rules.get("allow", ()))
        besides = f", and what {more} rules of {Claude.rules_file} permit" if more else ""
        yield Finding(about, GOOD, f"Claude Code asks, edits files and commits there{besides}")


INIT, INIT_GITLAB, NOBODY = "git gate init --github", "git gate init --gitlab", "no_one_allowed"
NEEDED = ("contents", "pull-requests", "issues", "statuses", "checks")
EVENTS = ("issue_comment", "repository_dispatch", "workflow_dispatch", "schedule")
CALLED = re.compile(r"\buses:\s*(\S+)")
OUR_WORKFLOW = re.compile(r"/\.github/workflows/(?:agent|answer|sweep)\.yml@")
PINNED = re.compile(r"@[0-9a-f]{40}$")
PINS = re.compile(r"/\.github/workflows/(?:agent|answer|sweep)\.yml@([0-9a-f]{40})")


def examine_github(desk: Desk, *, online: bool = False) -> list[Finding]:
    """Return the findings on workflows, agents, token and settings for GitHub or GitLab. There are none where neither
    the remote nor a file here names one of these. `online`: the forge itself is asked, too.
    """
    found: list[Finding] = []
    for look in (workflows, agents, keys, places, on_gitlab, *((answers,) if online else ())):
        try:
            found.extend(look(desk))
        except GateError as trouble:
            found.append(Finding(f"github {look.__name__}", WRONG, trouble.message, trouble.hint))
    return found


def here(desk: Desk) -> ForgePlace | None:
    place = find_place(desk)
    return place if place is not None and place.kind == "github" else None


def file_of(desk: Desk, name: str) -> str:
    top = desk.repo.top
    return text_of(top / github.FOLDER / name) if top is not None else ""


def workflows(desk: Desk) -> Iterator[Finding]:
    """Yield a finding for each file that `init --github` writes."""
    for name in github.NAMES:
        text = file_of(desk, name)
        if not text:
            if here(desk) is not None and desk.repo.top is not None:
                yield Finding(f"workflow {name}", MISSING, f"not there: {github.MEANS[name]}", INIT)
        elif github.OURS not in text:
            yield Finding(
                f"workflow {name}",
                MISSING,
                "somebody else's file of that name is there",
                f"rename it, then: {INIT}",
            )
        else:
            yield from one_workflow(desk, name, text)


def one_workflow(desk: Desk, name: str, text: str) -> Iterator[Finding]:
    said = codec.parse_document(text.encode(), f"{github.FOLDER}/{name}").plain()
    troubles = [
        words
        for words in (against_workflow(name, text, said), *(against_job(*job) for job in jobs_of(said)))
        if words
    ]
    for words, mend in troubles:
        yield Finding(f"workflow {name}", WRONG, words, mend)
    if troubles:
        return
    yield check_workflow(desk, name, text)
    for job, inside in jobs_of(said):
        if not given_to(inside).get("agent-package"):
            words = f"the job {job} installs no agent: agent-package is empty"
            yield Finding(
                f"workflow {name}",
                MISSING,
                words,
                'agent-package: "@anthropic-ai/claude-code@VERSION", unless the runner has it',
            )


def jobs_of(said: Any) -> list[tuple[str, dict[str, Any]]]:
    jobs = given_to(said, "jobs") if isinstance(said, dict) else {}
    return [(name, job) for name, job in jobs.items() if isinstance(job, dict)]


def against_workflow(name: str, text: str, said: Any) -> tuple[str, str] | None:
    loose = [used for used in CALLED.findall(text) if not PINNED.search(used)]
    if loose:
        return (
            f"it calls {loose[0]}, which can be moved",
            f"git config gitgate.workflows OWNER/REPOSITORY@COMMIT; {INIT}",
        )
    commits = set(github.COMMITS.findall(text))
    commits |= {used.rpartition("@")[2] for used in CALLED.findall(text) if OUR_WORKFLOW.search(used)}
    if len(commits) > 1:
        return (
            "it names several commits of git gate; what it calls and what it installs are to be of one",
            f"git config gitgate.workflows OWNER/REPOSITORY@COMMIT; {INIT}",
        )
    listens = said.get("on") if isinstance(said, dict) else None
    heard = listens if isinstance(listens, dict | list) else [listens]
    deaf = [event for event in EVENTS if name == github.ANSWERS and event not in heard]
    return (f"it does not run on {', '.join(deaf)}", f"take the file away, then: {INIT}") if deaf else None


def against_job(job: str, inside: dict[str, Any]) -> tuple[str, str] | None:
    may = inside.get("permissions") or {}
    lacks = [right for right in NEEDED if not isinstance(may, dict) or may.get(right) != "write"]
    if lacks:
        return (
            f"the job {job} may not write {', '.join(lacks)}",
            f"permissions: {{{lacks[0]}: write}} in that job",
        )
    recipients, inherits = given_to(inside).get("session-recipients"), inside.get("secrets") == "inherit"
    opens = not runs_agent(inside)  # a first run only encrypts
    if recipients and opens and not inherits and "SESSION_KEY" not in given_to(inside, "secrets"):
        words = f"the job {job} encrypts sessions and is not given the key that opens them"
        return words, "SESSION_KEY: ${{ secrets.SESSION_KEY }} under its secrets"
    return None


def stale_pin(desk: Desk, text: str) -> str:
    """Return how the file differs from what this git gate writes; empty where it does not, or where that is unknown."""
    try:
        source = github.source_of(desk)
    except GateError:
        return ""
    if github.pin_workflow(text, source) == text:
        return ""
    same = set(github.COMMITS.findall(text)) == {source.commit} == set(PINS.findall(text))
    return (
        "it is of an older shape than this git gate writes"
        if same
        else "it calls another commit than this git gate's"
    )


def check_workflow(desk: Desk, name: str, text: str) -> Finding:
    """Return the finding on whether GitHub runs a good workflow file: its commit, and the default branch."""
    stale, there = stale_pin(desk, text), on_default_branch(desk, name, text)
    if stale:
        return Finding(f"workflow {name}", MISSING, stale, INIT)
    if there is False:
        words = "as it is here, it is not on the default branch, where GitHub looks for it"
        mend = f"git add {github.FOLDER}, commit, and push to the default branch"
        return Finding(f"workflow {name}", MISSING, words, mend)
    means = github.MEANS[name].partition(" (")[0]
    if there is None:
        words = f"good as it is here, and of the default branch nothing is known yet; {means}"
        return Finding(f"workflow {name}", GOOD, words, "it has to be on the default branch; then: git fetch")
    return Finding(f"workflow {name}", GOOD, f"in place; {means}")


def on_default_branch(desk: Desk, name: str, text: str) -> bool | None:
    """Return whether the default branch has this file, as last fetched or pushed; None where nothing of that branch is
    here. The branch is looked up as for the policy.
    """
    remote = remote_of(desk)
    refs = [f"refs/remotes/{remote}/HEAD", *protected_refs(desk)]
    tip = None if remote is None else protected_tip(desk.refs, desk.records.objects, refs)
    if tip is None:
        return None
    found = read_protected(desk.refs, desk.records.objects, f"{github.FOLDER}/{name}", [tip])
    return found is not None and found.data.decode("utf-8", "replace") == text


def agents(desk: Desk) -> Iterator[Finding]:
    """Yield findings on whether the agents that jobs start can ask and work there."""
    for name in github.NAMES:
        text = file_of(desk, name)
        if github.OURS not in text:
            continue
        for job, inside in jobs_of(codec.parse_document(text.encode(), f"{github.FOLDER}/{name}").plain()):
            if runs_agent(inside):
                yield from examine_agent(desk, job, inside)


def keys(desk: Desk) -> Iterator[Finding]:
    """Yield the finding on the token for GitHub here. The token itself is never shown."""
    place = here(desk)
    if place is None:
        return
    _, source = token_and_source(desk, place)
    if source:
        yield Finding("github token", GOOD, f"{place.host} is spoken to with that of {source}")
    else:
        words = f"none for {place.host}: an answer given here starts no job by itself"
        yield Finding("github token", MISSING, words, way_to_token(place))


def places(desk: Desk) -> Iterator[Finding]:
    """Yield findings on where a gate without a pull request is shown, and on whether jobs encrypt saved sessions."""
    if here(desk) is None:
        return
    issue, commit = desk.settings.number("forgeIssue"), desk.settings.flag("forgeCommit")
    if issue or commit:
        where = f"on issue {issue}" if issue else "on their commits"
        yield Finding("github place", GOOD, f"gates without a pull request are shown {where}")
    else:
        words = "gates without a pull request are shown nowhere on GitHub"
        yield Finding(
            "github place",
            MISSING,
            words,
            "settings: {forgeIssue: NUMBER} or {forgeCommit: true} in .gitgate.yml",
        )
    files = [file_of(desk, name) for name in github.NAMES]
    if any(files) and not any(re.search(r'session-recipients: *"[^"]', text) for text in files):
        words = "saved sessions travel with the gates in the clear: session-recipients is empty"
        yield Finding(
            "github sessions", MISSING, words, "an age or ssh key there, and the secret SESSION_KEY"
        )


def on_gitlab(desk: Desk) -> Iterator[Finding]:
    """Yield findings on the token and the jobs for GitLab, and on where gates are shown there."""
    place = find_place(desk)
    if place is None or place.kind != "gitlab":
        return
    _, source = token_and_source(desk, place)
    if source:
        yield Finding("gitlab token", GOOD, f"{place.host} is spoken to with that of {source}")
    else:
        words = f"none for {place.host}: nothing is shown there, and no reply is heard"
        yield Finding("gitlab token", MISSING, words, way_to_token(place))
    yield pipelines(desk)
    if desk.settings.number("forgeIssue") or desk.settings.flag("forgeCommit"):
        words = "gates are shown on merge requests alone: forgeIssue and forgeCommit say nothing here"
        yield Finding("gitlab place", MISSING, words, "take them from the settings")


def pipelines(desk: Desk) -> Finding:
    """Return the finding on whether GitLab's jobs take replies, and are of the commit that this git gate came from."""
    top = desk.repo.top
    text = text_of(top / gitlab.OURS_IN) if top is not None else ""
    if gitlab.WRITTEN not in text:
        words = "no pipeline hears replies: a machine of yours has to look, or listen"
        return Finding("gitlab pipeline", GOOD, words, f"{INIT_GITLAB}, or: git gate github sweep --resume")
    try:
        stale = gitlab.pin_pipeline(text, gitlab.pipeline_source(desk), gitlab.server_here(desk)) != text
    except GateError:
        stale = False
    if stale:
        return Finding(
            "gitlab pipeline", MISSING, "it includes another commit than this git gate's", INIT_GITLAB
        )
    if has_pipeline(desk):
        return Finding("gitlab pipeline", GOOD, "the default branch includes git gate's jobs")
    words = "as it was last fetched, the default branch does not include git gate's jobs"
    return Finding(
        "gitlab pipeline", MISSING, words, f"git add .gitlab {gitlab.ROOT}, commit, push; then: git fetch"
    )


# asked of the forge, when somebody says so


def gitlab_answers(place: ForgePlace, token: str) -> Iterator[Finding]:
    """Yield GitLab's own answers: whether the token may do what is needed, and whether a merge waits for questions."""
    if not token:
        yield Finding("gitlab", WRONG, "it cannot be asked without a token", way_to_token(place))
        return
    try:
        yield from gitlab_findings(GitLab(web_to(place, token), place.repository, place.site))
    except ForgeFailed as refused:
        yield Finding("gitlab rights", WRONG, refused.message, refused.hint)


def gitlab_findings(forge: GitLab) -> Iterator[Finding]:
    level, about = forge.own_level(), forge.fetch_about()
    if level >= DEVELOPER:
        yield Finding("gitlab rights", GOOD, f"the token may write to {forge.repository}")
    else:
        words = f"the token may not write to {forge.repository}: it can neither push gates nor say whether one waits"
        yield Finding(
            "gitlab rights", WRONG, words, "a project's token with the role Developer and the scope api"
        )
    if not about.get("only_allow_merge_if_pipeline_succeeds"):
        words = "a merge request can be merged while a question of it waits"
        yield Finding("gitlab merges", MISSING, words, "Settings, Merge requests: Pipelines must succeed")
    if about.get("ci_pipeline_variables_minimum_override_role", NOBODY) not in (
        NOBODY,
        "owner",
        "maintainer",
    ):
        words = "developers may override variables of pipelines: who they are, and where the token goes"
        mend = "Settings, CI/CD, Variables: Minimum role to use pipeline variables, No one allowed"
        yield Finding("gitlab variables", WRONG, words, mend)
    if about.get("ci_push_repository_for_job_token_allowed"):
        words = "every job's own token may push to the project, that of an agent's job too"
        mend = "Settings, CI/CD, Job token permissions: no Git push requests to the repository"
        yield Finding("gitlab jobs", WRONG, words, mend)


def answers(desk: Desk) -> Iterator[Finding]:
    place = find_place(desk)
    if place is None:
        unknown = unknown_forge(desk)
        yield Finding("github", MISSING, unknown.message, unknown.hint)
        return
    if place.kind == "gitlab":
        yield from gitlab_answers(place, token_and_source(desk, place)[0])
        return
    if place.kind != "github":
        words = f"{place.host} ({place.kind}) is not asked: --online is for GitHub and GitLab"
        yield Finding("github", MISSING, words)
        return
    token, _ = token_and_source(desk, place)
    if not token:
        yield Finding("github", WRONG, "it cannot be asked without a token", way_to_token(place))
        return
    forge = github_at(place, web_to(place, token))
    for ask in (rights, runs, secrets):
        try:
            yield from ask(desk, forge)
        except ForgeFailed as refused:
            yield Finding(f"github {ask.__name__}", WRONG, refused.message, refused.hint)


def rights(_desk: Desk, forge: GitHub) -> Iterator[Finding]:
    may = forge.fetch_about().get("permissions") or {}
    if may.get("push"):
        yield Finding("github rights", GOOD, f"the token may write to {forge.repository}")
    else:
        words = f"the token may not write to {forge.repository}: it can neither push gates nor start jobs"
        yield Finding(
            "github rights", WRONG, words, "gh auth refresh -s repo, or a token that may write contents"
        )


def runs(_desk: Desk, forge: GitHub) -> Iterator[Finding]:
    for name in github.NAMES:
        state = forge.fetch_workflow(name)
        if state == "active":
            yield Finding(f"github runs {name}", GOOD, "GitHub knows it, and runs it")
        elif state:
            yield Finding(
                f"github runs {name}", WRONG, f"it is {state.replace('_', ' ')}", f"gh workflow enable {name}"
            )
        else:
            yield Finding(
                f"github runs {name}",
                WRONG,
                "GitHub knows no such workflow",
                f"{INIT}, then push it to the default branch",
            )


def secrets(desk: Desk, forge: GitHub) -> Iterator[Finding]:
    """Yield a finding for each secret that the workflows use. Only names can be asked for, and not with every token."""
    known = forge.fetch_secret_names()
    if known is None:
        words = "only an administrator's token sees the names of secrets"
        yield Finding("github secrets", MISSING, words, "gh secret list")
        return
    texts = [file_of(desk, name) for name in github.NAMES]
    wanted = dict.fromkeys(name for text in texts for name in re.findall(r"\$\{\{ *secrets\.(\w+)", text))
    for name in wanted:
        needed = name != "SESSION_KEY" or any(
            re.search(r'session-recipients: *"[^"]', text) for text in texts
        )
        if name in known:
            yield Finding(f"github secret {name}", GOOD, "it is there")
        elif needed:
            yield Finding(
                f"github secret {name}",
                MISSING,
                "this repository has none (an organisation may)",
                f"gh secret set {name}",
            )
