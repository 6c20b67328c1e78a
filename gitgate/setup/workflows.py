"""Setup: what `git gate init --github` and `--gitlab` write into a project: small workflows or a pipeline, which call this project's own by commit."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from ..context import Desk
from ..context.targets import GITHUB, address_of, is_github, read_address, server_of
from ..errors import Failure, Usage
from ..store.git import Git
from ..store.git.refs import HEAD, read_ref
from ..version import REPOSITORY
from . import TEXTS
from .managed import Managed, ManagedText, refuse_foreign, text_of, top_of

# `git gate init --github`: small workflows in a person's repository, which call this project's own by
# commit; and `--flows`: an example of a flow, with a workflow that runs it.
#
# What they call is pinned to the commit that git gate was installed from; `gitgate.workflows` names
# another one. Enterprise Server calls only workflows that are on it, and there a job fetches them from
# that server. A job installs git gate from the commit that its workflow is pinned to, and of other
# packages what the lock in it names, by hash.


UNNAMED = "OWNER/"
BUILT = "commit"
COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
TWO_NAMES = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
ONE_HOST = re.compile(r"[\w.-]+(:[0-9]+)?", re.ASCII)


@dataclass(frozen=True)
class Source:
    """A repository with our reusable workflows, at a commit, on a server of GitHub's. `noted`: pip said so itself."""

    repository: str
    commit: str
    host: str = GITHUB
    noted: bool = True


def installed_from(env: Mapping[str, str]) -> Source | None:
    """Return the source of this installation, as surely as it can be known; None where nothing states it."""
    said = direct_url()
    commit = str((said.get("vcs_info") or {}).get("commit_id", ""))
    if commit:
        return source_at(str(said.get("url", "")), commit)
    if "dir_info" not in said:
        return built_from(TEXTS, REPOSITORY)
    top = Path(unquote(urlsplit(str(said.get("url", ""))).path))
    if (said["dir_info"] or {}).get("editable"):
        return checked_out(top, HEAD, env)
    # A copy of a checkout: the build noted its commit, and the checkout, which may stand elsewhere by now, knows its origin.
    commit = text_of(TEXTS / BUILT).strip()
    return checked_out(top, commit, env) if COMMIT.fullmatch(commit) else None


def direct_url() -> dict[str, Any]:
    """Return the note that pip keeps with the package on its origin."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        said = json.loads(distribution("git-gate").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def source_at(address: str, commit: str) -> Source | None:
    place = read_address(address)
    right = TWO_NAMES.fullmatch(place.path) and ONE_HOST.fullmatch(place.host)
    return Source(place.path, commit, place.host) if right and COMMIT.fullmatch(commit) else None


def checked_out(top: Path, revision: str, env: Mapping[str, str]) -> Source | None:
    """Source of an installation that was made in a checkout: the checkout's origin, which has to have that commit."""
    git = Git(top, env)
    if not (top / ".git").exists():
        return None
    address = git.run("remote", "get-url", "origin", check=False).out.decode("utf-8", "replace").strip()
    commit = (read_ref(git, HEAD) or "") if revision == HEAD else revision
    found = source_at(address, commit)
    if found is None:
        return None
    if not git.run("branch", "--remotes", "--contains", commit, check=False).out.strip():
        raise Failure(
            f"git gate was installed from {top}, whose commit {commit[:10]} is on no branch of its origin: no job could fetch it",
            hint=f"git -C {top} push",
        )
    return found


def built_from(texts: Path, repository: str) -> Source | None:
    """Return the source that a wheel states of its build; None for a copy whose repository address nobody has set."""
    commit = text_of(texts / BUILT).strip()
    if not COMMIT.fullmatch(commit) or repository.startswith(UNNAMED):
        return None
    return Source(repository, commit, noted=False)


FOLDER = ".github/workflows"
ANSWERS, AGENT = "gitgate.yml", "gitgate-agent.yml"
NAMES = (ANSWERS, AGENT)
OURS = "# Written by `git gate init --github`"
PINNED = re.compile(r"([\w.-]+/[\w.-]+)@([0-9a-f]{40})", re.ASCII)
PACKAGE = re.compile(r'^( +package: )"[^"]*"(.*)$', re.MULTILINE)
# What a job installs: git gate's own code and lock at that commit. Files that were written before there was a lock name the
# code alone, for pip.
INSTALLED = re.compile(r'(\n +)source: [\w.-]+/[\w.-]+\1source-commit: "[0-9a-f]{40}"')
COMMITS = re.compile(r'^ +source-commit: "([0-9a-f]{40})"', re.MULTILINE)
UNLOCKED = re.compile(
    r'(\n +)package: "git-gate(?:\[[\w,-]*\])? @ git\+https://[\w.:-]+/[\w.-]+/[\w.-]+@[0-9a-f]{40}"'
)
UNCHECKED = re.compile(
    r"(\n +)statuses: write(?!\1checks:)"
)  # of files from before a called workflow asked for it; GitHub runs none that asks for more
BEFORE = re.compile(r"(\n +)(?=package: )")
# What files lack that were written before a merge queue was heard: its event, and both conditions. All of it is put in, or nothing.
QUEUELESS = (
    (
        "    types: [opened, reopened, synchronize]\n",
        "  merge_group: # where there is a merge queue\n    types: [checks_requested]\n",
    ),
    (
        "    if: github.event_name != 'schedule' && github.event_name != 'pull_request'",
        " && github.event_name != 'merge_group'",
    ),
    (
        "    if: github.event_name == 'schedule' || github.event_name == 'pull_request'",
        " || github.event_name == 'merge_group'",
    ),
)
INDEX = re.compile(r"^( +package-index: )\S+(.*)$", re.MULTILINE)
REQUIREMENT = re.compile(
    r"git-gate(\[[\w, -]*\])?( ?(@|[=<>~!]=) ?[^\s\"]+)?( --hash=sha256:[0-9a-f]{64})*", re.ASCII
)
ADDRESS = re.compile(r"https?://[^\s\"'@]+", re.ASCII)
MEANS = {
    ANSWERS: "replies on pull requests become answers and start agents again; deadlines are kept (commit it to the default branch)",
    AGENT: "runs an agent on a branch, and shows what it asks on its pull request",
}


def github_part(desk: Desk) -> list[Managed]:
    """Return the workflows by which pull requests ask and answer."""
    return [workflow(desk, name, MEANS[name], OURS) for name in NAMES]


def workflow(desk: Desk, name: str, means: str, mark: str, *, optional: bool = False) -> ManagedText:
    """Return one workflow of ours, which `mark` tells from somebody else's file."""

    def add(text: str) -> str:
        refuse_foreign(f"{FOLDER}/{name}", text, mark)
        return packaged(desk, pin_workflow(text or text_of(TEXTS / "workflows" / name), source_of(desk)))

    return ManagedText(
        top_of(desk),
        f"{FOLDER}/{name}",
        means,
        add,
        drop=lambda text: "" if mark in text else text,
        optional=optional,
    )


def pin_workflow(text: str, source: Source) -> str:
    """The text with our source at this commit, wherever it names one; a person's own command in it stays."""
    called = re.compile(
        r"(uses: )[\w.-]+/[\w.-]+(/\.github/workflows/(?:agent|answer|sweep)\.yml@)[0-9a-f]{40}"
    )
    text = called.sub(rf"\g<1>{source.repository}\g<2>{source.commit}", text)
    text = queued(UNCHECKED.sub(r"\g<0>\g<1>checks: write", text))
    lines = rf'\g<1>source: {source.repository}\g<1>source-commit: "{source.commit}"'
    if COMMITS.search(text):
        return INSTALLED.sub(lines, text)
    text = UNLOCKED.sub(r'\g<1>package: ""', text)
    return BEFORE.sub(rf"{lines}\g<1>", text)


def queued(text: str) -> str:
    """The text with a merge queue's event, where it is as we once wrote it without."""
    if "merge_group" in text or any(text.count(f"{line.rstrip()}\n") != 1 for line, _ in QUEUELESS):
        return text
    for line, more in QUEUELESS:
        text = text.replace(line, line + more)
    return text


def packaged(desk: Desk, text: str) -> str:
    """The text with what somebody wants the jobs to install, and from which index; without such a wish as it is."""
    package, index = (desk.settings.flags.get(name, "") for name in ("package", "packageIndex"))
    if package:
        if not REQUIREMENT.fullmatch(package):
            raise Usage(
                f"--package {package!r} is not one requirement on git-gate",
                hint="git gate init --github --package 'git-gate[all]==VERSION', or 'git-gate[all] @ https://…/git_gate-VERSION-py3-none-any.whl'",
            )
        text = PACKAGE.sub(lambda line: f'{line[1]}"{package}"{line[2]}', text)
    if index:
        if not ADDRESS.fullmatch(index):
            raise Usage(
                "--package-index is not an address, or holds a login, which every reader of the repository would see",
                hint="git gate init --github --package-index https://packages.example.org/simple",
            )
        text = INDEX.sub(lambda line: f'{line[1]}"{index}"{line[2]}', text)
    return text


# an example of a flow

FLOW = "gitgate-flow.yml"
FLOW_OURS = "# Written by `git gate init --flows`"
EXAMPLES = {
    "flows/change.py": "change.txt",
    ".gitgate/agents/coder.md": "coder.md",
    ".gitgate/agents/reviewer.md": "reviewer.md",
}
EXAMPLE_MEANS = "yours from now on; what is there already stays as it is"
FLOW_MEANS = "runs the flow on a pull request that gets the label gitgate-flow (commit all of it to the default branch)"


def flows_part(desk: Desk) -> list[Managed]:
    """Return the example of a flow, which is written once, to be changed, and the workflow that runs it."""
    found: list[Managed] = [example(desk, name, text) for name, text in EXAMPLES.items()]
    return [*found, workflow(desk, FLOW, FLOW_MEANS, FLOW_OURS, optional=True)]


def example(desk: Desk, name: str, source: str) -> ManagedText:
    """Return a file that is a person's own once it is written: one that was changed stays."""
    text = text_of(TEXTS / "flows" / source)
    return ManagedText(
        top_of(desk),
        name,
        EXAMPLE_MEANS,
        add=lambda here: here or text,
        drop=lambda here: "" if here == text else here,
    )


def offered(desk: Desk) -> str:
    """Return the source that the jobs would install, where it is worth a question: the files are new, and pip noted no
    source. Empty otherwise.
    """
    if any(text_of(top_of(desk) / FOLDER / name) for name in NAMES):
        return ""
    source = source_of(desk)
    return "" if source.noted else f"{source.repository} at {source.commit}"


def source_of(desk: Desk) -> Source:
    """Return the repository and the commit of the reusable workflows."""
    installed = installed_from(desk.settings.env)
    host = workflow_host(desk, installed)
    named = desk.settings.text("workflows")
    found = PINNED.fullmatch(named)
    if found:
        return Source(found.group(1), found.group(2), host)
    if named:
        raise Usage(
            f"gitgate.workflows is {named!r}; expected OWNER/REPOSITORY@ and the 40 characters of a commit",
            hint="a branch or a tag can be moved, and the workflows may write to your repository",
        )
    if installed is None or installed.host != host:
        where = "a repository on GitHub" if host == GITHUB else f"a repository on {host}"
        raise Failure(
            f"git gate was not installed from {where}, so there is no commit to pin its workflows to",
            hint=f"git config gitgate.workflows OWNER/REPOSITORY@COMMIT   ({where} with git gate's own .github/workflows)",
        )
    return installed


def workflow_host(desk: Desk, installed: Source | None) -> str:
    """The server whose workflows these will be: GitHub's own, unless the remote is on one that is known to be another."""
    host = urlsplit(server_of(desk, address_of(desk))).netloc
    known = is_github(host) or desk.settings.text("forge") == "github"
    return host if ONE_HOST.fullmatch(host) and (known or (installed and installed.host == host)) else GITHUB


# `git gate init --gitlab`: a pipeline in a person's project, which includes this project's own jobs by
# commit.
#
# What is included is pinned: by GitLab itself where git gate's code is a project of the same server, else
# by its address, which holds the commit, and by the hash of what has to stand there. A job installs git
# gate from that commit, and of other packages what the lock in it names, by hash.


ROOT, OURS_IN = ".gitlab-ci.yml", ".gitlab/gitgate.yml"
JOBS = "gitgate/texts/gitlab/jobs.yml"
WRITTEN = "# Written by `git gate init --gitlab`"
PINNED_PROJECT = re.compile(r"(https?://[\w.:-]+(?:/[\w.-]+){2,20})@([0-9a-f]{40})", re.ASCII)
INCLUDED = re.compile(
    r"^  - (?:SOURCE|(?:remote|project):[^\n]*(?:\n    (?:integrity|ref|file):[^\n]*)*)$", re.MULTILINE
)
SOURCE = re.compile(r"^(      source: ).*\n(      source-commit: ).*$", re.MULTILINE)
PIPELINE_MEANS = {
    ROOT: "its pipelines hear replies on merge requests, and start agents (commit it to the default branch)",
    OURS_IN: "what these pipelines do, by commit; your agent is named in it",
}


def gitlab_part(desk: Desk) -> list[Managed]:
    """Return the pipeline's jobs; and the project's `.gitlab-ci.yml`, which stays as it is where there is one."""

    def add(text: str) -> str:
        refuse_foreign(OURS_IN, text, WRITTEN)
        text = text or text_of(TEXTS / "gitlab" / "gitgate.yml")
        return pin_pipeline(text, pipeline_source(desk), server_here(desk))

    jobs = ManagedText(
        top_of(desk),
        OURS_IN,
        PIPELINE_MEANS[OURS_IN],
        add,
        drop=lambda text: "" if WRITTEN in text else text,
    )
    there, ours = text_of(top_of(desk) / ROOT), text_of(TEXTS / "gitlab" / "root.yml")
    means = PIPELINE_MEANS[ROOT]
    if there and WRITTEN not in there:
        means = (
            "includes ours already"
            if OURS_IN in there
            else "is yours: add the inputs and the include of docs/gitlab.md"
        )
    root = ManagedText(
        top_of(desk),
        ROOT,
        means,
        add=lambda text: text or ours,
        drop=lambda text: "" if text == ours else text,
    )
    return [jobs, root]


def server_here(desk: Desk) -> str:
    """The GitLab whose pipelines these will be."""
    elsewhere = desk.settings.text("forgeAt")
    return urlsplit(server_of(desk, read_address(elsewhere) if elsewhere else address_of(desk))).netloc


def pipeline_source(desk: Desk) -> Source:
    """Return the repository and the commit from which the jobs install git gate."""
    named = desk.settings.text("workflows")
    found = PINNED_PROJECT.fullmatch(named)
    if found:
        parts = urlsplit(found[1])
        return Source(parts.path.strip("/"), found[2], parts.netloc)
    if named:
        raise Usage(
            f"gitgate.workflows is {named!r}; expected https://HOST/PROJECT@ and the 40 characters of a commit",
            hint="a branch or a tag can be moved, and the jobs may write to your project",
        )
    installed = installed_from(desk.settings.env)
    if installed is None or installed.host not in (GITHUB, server_here(desk)):
        raise Failure(
            "git gate was not installed from GitHub, nor from a project of this GitLab, so there is no commit to pin its jobs to",
            hint="git config gitgate.workflows https://HOST/PROJECT@COMMIT   (a project with git gate's code on this GitLab)",
        )
    return installed


def pin_pipeline(text: str, source: Source, server: str) -> str:
    """The text with our jobs at this commit; a person's own agent in it stays."""
    text = INCLUDED.sub(lambda _: included(source, server), text, count=1)
    where = f"https://{source.host}/{source.repository}"
    return SOURCE.sub(rf'\g<1>{where}\n\g<2>"{source.commit}"', text, count=1)


def included(source: Source, server: str) -> str:
    if source.host == server:
        return f"  - project: {source.repository}\n    ref: {source.commit}\n    file: {JOBS}"
    if source.host != GITHUB:
        raise Failure(
            f"{source.host} is neither GitHub nor this GitLab ({server}): its jobs cannot be included from there",
            hint="git config gitgate.workflows https://HOST/PROJECT@COMMIT   (a project with git gate's code on this GitLab)",
        )
    digest = b64encode(sha256((TEXTS / "gitlab" / "jobs.yml").read_bytes()).digest()).decode("ascii")
    address = f"https://raw.githubusercontent.com/{source.repository}/{source.commit}/{JOBS}"
    return f"  - remote: {address}\n    integrity: sha256-{digest}"
