"""Service: `git gate init --github`: small workflows in a person's repository, which call this project's own by commit.

What they call is pinned to the commit that git gate was installed from; `gitgate.workflows` names another one.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from ..errors import Failure, Usage
from .desk import Desk
from .guidance import TEXTS, put, take_away, text_of, top_of
from .setup import Step

FOLDER = ".github/workflows"
ANSWERS, AGENT = "gitgate.yml", "gitgate-agent.yml"
NAMES = (ANSWERS, AGENT)
OURS = "# Written by `git gate init --github`"
SOURCE, COMMIT = "OWNER/REPOSITORY", "0123456789012345678901234567890123456789"
PINNED = re.compile(r"([\w.-]+/[\w.-]+)@([0-9a-f]{40})", re.ASCII)
HOSTED = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?", re.ASCII)
MEANS = {
    ANSWERS: "replies on pull requests become answers and start agents again; deadlines are kept (commit it to the default branch)",
    AGENT: "runs an agent on a branch, and shows what it asks on its pull request",
}


def steps(desk: Desk) -> list[Step]:
    top = top_of(desk)
    source, commit = source_of(desk)
    found = []
    for name in NAMES:
        place = top / FOLDER / name
        here = text_of(place)
        if here and OURS not in here:
            raise Usage(f"{FOLDER}/{name} is there, and is not ours", hint="rename it, and run this again")
        wanted = pinned(here or text_of(TEXTS / "workflows" / name), source, commit)
        found.append(written(place, name, here, wanted))
    return found


def written(place: Path, name: str, here: str, wanted: str) -> Step:
    return Step(f"{FOLDER}/{name}", MEANS[name], here == wanted, lambda: put(place, wanted))


def pinned(text: str, source: str, commit: str) -> str:
    """The text with our source at this commit, wherever it names one; a person's own command in it stays."""
    called = re.compile(
        r"(uses: )[\w.-]+/[\w.-]+(/\.github/workflows/(?:agent|answer|sweep)\.yml@)[0-9a-f]{40}"
    )
    packed = re.compile(r"(git\+https://github\.com/)[\w.-]+/[\w.-]+@[0-9a-f]{40}")
    return packed.sub(rf"\g<1>{source}@{commit}", called.sub(rf"\g<1>{source}\g<2>{commit}", text))


def removal(desk: Desk) -> list[Step]:
    if desk.repo.top is None:
        return []
    top = desk.repo.top
    return [taken(top, name) for name in NAMES]


def taken(top: Path, name: str) -> Step:
    place = top / FOLDER / name
    ours = OURS in text_of(place)
    return Step(f"{FOLDER}/{name}", "taken away", not ours, lambda: take_away(place, top))


def source_of(desk: Desk) -> tuple[str, str]:
    """Where the reusable workflows are, and at which commit."""
    named = desk.settings.text("workflows")
    found = PINNED.fullmatch(named)
    if found:
        return found.group(1), found.group(2)
    if named:
        raise Usage(
            f"gitgate.workflows is {named!r}; expected OWNER/REPOSITORY@ and the 40 characters of a commit",
            hint="a branch or a tag can be moved, and the workflows may write to your repository",
        )
    installed = installed_from()
    if installed is None:
        raise Failure(
            "git gate was not installed from a repository on GitHub, so there is no commit to pin its workflows to",
            hint="git config gitgate.workflows OWNER/REPOSITORY@COMMIT   (a repository with git gate's own .github/workflows)",
        )
    return installed


def installed_from() -> tuple[str, str] | None:
    """As pip noted it: `pip install git+https://github.com/OWNER/REPOSITORY` names repository and commit (PEP 610)."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        said = json.loads(distribution("git-gate").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return None
    place = HOSTED.fullmatch(str(said.get("url", "")))
    commit = str((said.get("vcs_info") or {}).get("commit_id", ""))
    return (place.group(1), commit) if place and re.fullmatch(r"[0-9a-f]{40}", commit) else None
