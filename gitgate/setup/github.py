"""Setup: `git gate init --github`: small workflows in a person's repository, which call this project's own by commit.

What they call is pinned to the commit that git gate was installed from; `gitgate.workflows` names another one. Enterprise Server
calls only workflows that are on it, and there a job fetches them from that server. A job installs git gate from the commit
that its workflow is pinned to, and of other packages what the lock in it names, by hash.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from ..context.desk import Desk
from ..errors import Failure, Usage
from ..sharing.addresses import GITHUB, address_of, is_github, server_of
from .guidance import TEXTS, put, take_away, text_of, top_of
from .provenance import ONE_HOST, Source, installed_from
from .steps import Step

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
BEFORE = re.compile(r"(\n +)(?=package: )")
INDEX = re.compile(r"^( +package-index: )\S+(.*)$", re.MULTILINE)
REQUIREMENT = re.compile(
    r"git-gate(\[[\w, -]*\])?( ?(@|[=<>~!]=) ?[^\s\"]+)?( --hash=sha256:[0-9a-f]{64})*", re.ASCII
)
ADDRESS = re.compile(r"https?://[^\s\"'@]+", re.ASCII)
MEANS = {
    ANSWERS: "replies on pull requests become answers and start agents again; deadlines are kept (commit it to the default branch)",
    AGENT: "runs an agent on a branch, and shows what it asks on its pull request",
}


def steps(desk: Desk) -> list[Step]:
    top = top_of(desk)
    source = source_of(desk)
    found = []
    for name in NAMES:
        place = top / FOLDER / name
        here = text_of(place)
        if here and OURS not in here:
            raise Usage(f"{FOLDER}/{name} is there, and is not ours", hint="rename it, and run this again")
        wanted = packaged(desk, pinned(here or text_of(TEXTS / "workflows" / name), source))
        found.append(written(place, name, here, wanted))
    return found


def written(place: Path, name: str, here: str, wanted: str) -> Step:
    return Step(f"{FOLDER}/{name}", MEANS[name], here == wanted, lambda: put(place, wanted))


def pinned(text: str, source: Source) -> str:
    """The text with our source at this commit, wherever it names one; a person's own command in it stays."""
    called = re.compile(
        r"(uses: )[\w.-]+/[\w.-]+(/\.github/workflows/(?:agent|answer|sweep)\.yml@)[0-9a-f]{40}"
    )
    text = called.sub(rf"\g<1>{source.repository}\g<2>{source.commit}", text)
    lines = rf'\g<1>source: {source.repository}\g<1>source-commit: "{source.commit}"'
    if COMMITS.search(text):
        return INSTALLED.sub(lines, text)
    text = UNLOCKED.sub(r'\g<1>package: ""', text)
    return BEFORE.sub(rf"{lines}\g<1>", text)


def packaged(desk: Desk, text: str) -> str:
    """The text with what somebody wants the jobs to install, and from which index; without such a wish as it is."""
    package, index = desk.settings.text("package"), desk.settings.text("packageIndex")
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


def removal(desk: Desk) -> list[Step]:
    if desk.repo.top is None:
        return []
    top = desk.repo.top
    return [taken(top, name) for name in NAMES]


def taken(top: Path, name: str) -> Step:
    place = top / FOLDER / name
    ours = OURS in text_of(place)
    return Step(f"{FOLDER}/{name}", "taken away", not ours, lambda: take_away(place, top))


def offered(desk: Desk) -> str:
    """What the jobs would install, where that is worth a question: the files are new, and pip did not note where this came from."""
    if desk.settings.text("package") or any(text_of(top_of(desk) / FOLDER / name) for name in NAMES):
        return ""
    source = source_of(desk)
    return "" if source.noted else f"{source.repository} at {source.commit}"


def source_of(desk: Desk) -> Source:
    """Where the reusable workflows are, and at which commit."""
    installed = installed_from(desk.settings.env)
    host = host_of(desk, installed)
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


def host_of(desk: Desk, installed: Source | None) -> str:
    """The server whose workflows these will be: GitHub's own, unless the remote is on one that is known to be another."""
    host = urlsplit(server_of(desk, address_of(desk))).netloc
    known = is_github(host) or desk.settings.text("forge") == "github"
    return host if ONE_HOST.fullmatch(host) and (known or (installed and installed.host == host)) else GITHUB
