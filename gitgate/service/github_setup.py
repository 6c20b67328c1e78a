"""Service: `git gate init --github`: small workflows in a person's repository, which call this project's own by commit.

What they call is pinned to the commit that git gate was installed from; `gitgate.workflows` names another one. Enterprise Server
calls only workflows that are on it, so there both the workflows and what pip installs come from that server.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ..errors import Failure, Usage
from .addresses import GITHUB, address_of, is_github, read_address, server_of
from .desk import Desk
from .guidance import TEXTS, put, take_away, text_of, top_of
from .setup import Step

FOLDER = ".github/workflows"
ANSWERS, AGENT = "gitgate.yml", "gitgate-agent.yml"
NAMES = (ANSWERS, AGENT)
OURS = "# Written by `git gate init --github`"
SOURCE, COMMIT = "OWNER/REPOSITORY", "0123456789012345678901234567890123456789"
PINNED = re.compile(r"([\w.-]+/[\w.-]+)@([0-9a-f]{40})", re.ASCII)
TWO_NAMES = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
ONE_HOST = re.compile(r"[\w.-]+(:[0-9]+)?", re.ASCII)
MEANS = {
    ANSWERS: "replies on pull requests become answers and start agents again; deadlines are kept (commit it to the default branch)",
    AGENT: "runs an agent on a branch, and shows what it asks on its pull request",
}


@dataclass(frozen=True)
class Source:
    """A repository with our reusable workflows, at a commit, on a server of GitHub's."""

    repository: str
    commit: str
    host: str = GITHUB


def steps(desk: Desk) -> list[Step]:
    top = top_of(desk)
    source = source_of(desk)
    found = []
    for name in NAMES:
        place = top / FOLDER / name
        here = text_of(place)
        if here and OURS not in here:
            raise Usage(f"{FOLDER}/{name} is there, and is not ours", hint="rename it, and run this again")
        wanted = pinned(here or text_of(TEXTS / "workflows" / name), source)
        found.append(written(place, name, here, wanted))
    return found


def written(place: Path, name: str, here: str, wanted: str) -> Step:
    return Step(f"{FOLDER}/{name}", MEANS[name], here == wanted, lambda: put(place, wanted))


def pinned(text: str, source: Source) -> str:
    """The text with our source at this commit, wherever it names one; a person's own command in it stays."""
    called = re.compile(
        r"(uses: )[\w.-]+/[\w.-]+(/\.github/workflows/(?:agent|answer|sweep)\.yml@)[0-9a-f]{40}"
    )
    packed = re.compile(r"(\bgit-gate(?:\[[\w,-]*\])? @ git\+https://)[\w.:-]+/[\w.-]+/[\w.-]+@[0-9a-f]{40}")
    text = called.sub(rf"\g<1>{source.repository}\g<2>{source.commit}", text)
    return packed.sub(rf"\g<1>{source.host}/{source.repository}@{source.commit}", text)


def removal(desk: Desk) -> list[Step]:
    if desk.repo.top is None:
        return []
    top = desk.repo.top
    return [taken(top, name) for name in NAMES]


def taken(top: Path, name: str) -> Step:
    place = top / FOLDER / name
    ours = OURS in text_of(place)
    return Step(f"{FOLDER}/{name}", "taken away", not ours, lambda: take_away(place, top))


def source_of(desk: Desk) -> Source:
    """Where the reusable workflows are, and at which commit."""
    installed = installed_from()
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


def installed_from() -> Source | None:
    """As pip noted it: `pip install git+https://HOST/OWNER/REPOSITORY` names repository and commit (PEP 610)."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        said = json.loads(distribution("git-gate").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return None
    place = read_address(str(said.get("url", "")))
    commit = str((said.get("vcs_info") or {}).get("commit_id", ""))
    right = TWO_NAMES.fullmatch(place.path) and ONE_HOST.fullmatch(place.host)
    return Source(place.path, commit, place.host) if right and re.fullmatch(r"[0-9a-f]{40}", commit) else None
