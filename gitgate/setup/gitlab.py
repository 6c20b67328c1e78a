"""Setup: `git gate init --gitlab`: a pipeline in a person's project, which includes this project's own jobs by commit.

What is included is pinned: by GitLab itself where git gate's code is a project of the same server, else by its address, which holds
the commit, and by the hash of what has to stand there. A job installs git gate from that commit, and of other packages what the
lock in it names, by hash.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from urllib.parse import urlsplit

from ..context.desk import Desk
from ..context.remotes import GITHUB, address_of, read_address, server_of
from ..errors import Failure, Usage
from .github import Source, installed_from
from .steps import TEXTS, Step, file_step, own_text, put_text, take_away, text_of, top_of

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


def gitlab_steps(desk: Desk) -> list[Step]:
    """The project's own `.gitlab-ci.yml` stays as it is; whoever has one includes ours in it."""
    top = top_of(desk)
    here, there = own_text(top, OURS_IN, WRITTEN), text_of(top / ROOT)
    wanted = pin_pipeline(
        here or text_of(TEXTS / "gitlab" / "gitgate.yml"), pipeline_source(desk), server_here(desk)
    )
    found = [file_step(top, OURS_IN, PIPELINE_MEANS[OURS_IN], here, wanted)]
    if there and WRITTEN not in there:
        said = (
            "includes ours already"
            if OURS_IN in there
            else "is yours: add the inputs and the include of docs/gitlab.md"
        )
        return [*found, Step(ROOT, said, True, lambda: None)]
    text = there or text_of(TEXTS / "gitlab" / "root.yml")
    return [*found, Step(ROOT, PIPELINE_MEANS[ROOT], bool(there), lambda: put_text(top / ROOT, text))]


def gitlab_removal(desk: Desk) -> list[Step]:
    if desk.repo.top is None:
        return []
    top, ours = desk.repo.top, text_of(TEXTS / "gitlab" / "root.yml")
    left = {OURS_IN: WRITTEN in text_of(top / OURS_IN), ROOT: text_of(top / ROOT) == ours}
    return [file_removal(desk, name, is_ours=is_ours) for name, is_ours in left.items()]


def file_removal(desk: Desk, name: str, *, is_ours: bool) -> Step:
    top = top_of(desk)
    return Step(name, "taken away", not is_ours, lambda: take_away(top / name, top))


def server_here(desk: Desk) -> str:
    """The GitLab whose pipelines these will be."""
    elsewhere = desk.settings.text("forgeAt")
    return urlsplit(server_of(desk, read_address(elsewhere) if elsewhere else address_of(desk))).netloc


def pipeline_source(desk: Desk) -> Source:
    """Where git gate's code is that the jobs install, and at which commit."""
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
