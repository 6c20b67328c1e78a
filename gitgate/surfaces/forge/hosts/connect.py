"""Surfaces: which forge a repository's gates are shared through, at which address, and with whose token.

A token goes only to a host that this machine's configuration, or the CI job itself, names as a forge; github.com is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from ....context import Desk
from ....context.targets import (
    GITHUB,
    GITLAB,
    address_of,
    is_github,
    no_remote,
    read_address,
    remote_of,
    server_of,
)
from ....errors import Failure
from ....text import one_line
from . import GITHUBS, GITHUBS_HOOKS, Customs, Forge, Hooks, has_pipeline, has_workflow
from .gitea import Gitea
from .github import GitHub, headers
from .gitlab import HERE, HOOKS, GitLab, gitlab_api, right_on_gitlab
from .web import Known, Web, named_right

REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+", re.ASCII)
PROJECT = re.compile(r"[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+){1,20}", re.ASCII)
TOKENS = ("GITGATE_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
GITLAB_TOKENS = ("GITGATE_GITLAB_TOKEN", "GITLAB_TOKEN")
ENTERPRISE_TOKENS = ("GITGATE_GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN")
HURRIED = (
    10.0,
    (1.0,),
    2.0,
)  # seconds for an answer, between tries, and of a limit that is worth waiting for


@dataclass(frozen=True)
class ForgePlace:
    """Repository on a forge: the address of the API, and the one where people see the repository."""

    kind: str
    host: str
    api: str
    site: str
    repository: str
    job: bool = False
    written: Callable[[], bool] | None = field(default=None, compare=False)
    """Whether the clone's default branch has the workflow that takes replies; None where there is no clone."""


@dataclass(frozen=True)
class ForgeKind:
    """Kind of forge: all that is known of it before one is asked."""

    build: Callable[[ForgePlace, Web], Forge]
    api: Callable[[str], str]
    """The API's address, by that of the server."""
    scheme: str = "Bearer"
    headers: Mapping[str, str] = field(default_factory=dict)
    jobs: bool = False
    """Whether it resumes agents in jobs of its own when it is asked."""
    path: re.Pattern[str] = REPOSITORY
    """What a repository's path there looks like."""
    tokens: tuple[str, ...] = ()
    """The variables whose token goes there; of those without any, GitHub's."""
    customs: Customs = GITHUBS
    hooks: Hooks = GITHUBS_HOOKS
    written: Callable[[Desk], bool] = has_workflow
    """Whether the default branch, as it was last fetched, has the jobs that take replies."""
    right: Callable[[str, str], str] = named_right
    """What a token needs for a call, in the forge's own words."""


def github_at(place: ForgePlace, web: Web) -> GitHub:
    return GitHub(web, place.repository, place.site, job=place.job, written=place.written)


def gitlab_at(place: ForgePlace, web: Web) -> GitLab:
    return GitLab(web, place.repository, place.site, job=place.job, written=place.written)


def github_api(server: str) -> str:
    host = urlsplit(server).netloc
    return f"https://api.{host}" if is_github(host) else f"{server}/api/v3"


# A new forge is a class that satisfies `Forge`, a line here, and its word in the setting `forge`.
KINDS: dict[str, ForgeKind] = {
    "github": ForgeKind(github_at, github_api, headers=headers(), jobs=True),
    "gitea": ForgeKind(
        lambda place, web: Gitea(web, place.repository, place.site, job=place.job),
        lambda server: f"{server}/api/v1",
        scheme="token",
    ),
    "gitlab": ForgeKind(
        gitlab_at,
        gitlab_api,
        path=PROJECT,
        tokens=GITLAB_TOKENS,
        customs=HERE,
        hooks=HOOKS,
        written=has_pipeline,
        right=right_on_gitlab,
    ),
}


def find_place(desk: Desk) -> ForgePlace | None:
    """Return the forge of the remote; None where it is none that is known here."""
    here = job_place(desk)
    if here is not None:
        return here
    elsewhere = desk.settings.text("forgeAt")
    found = read_address(elsewhere) if elsewhere else address_of(desk)
    name = desk.settings.text("forge") or known_by(found.host)
    if name not in KINDS or not found.host or not KINDS[name].path.fullmatch(found.path):
        return None
    server = server_of(desk, found)
    api = desk.settings.text("forgeApi") or KINDS[name].api(server)
    return ForgePlace(name, urlsplit(server).netloc, api, f"{server}/{found.path}", found.path)


def known_by(host: str) -> str:
    """Return the forge whose own server has this name; empty where the name says nothing."""
    return "github" if is_github(host) else "gitlab" if host == GITLAB else ""


def job_place(desk: Desk) -> ForgePlace | None:
    """Return the place that a CI job's environment names, Enterprise Server's included. This only reads an address:
    `setup.in_job` decides whether a job of Actions runs, whatever it may reach.
    """
    env = desk.settings.env
    if env.get("GITLAB_CI"):
        return gitlab_job(env)
    api, repository = env.get("GITHUB_API_URL", ""), env.get("GITHUB_REPOSITORY", "")
    kind = desk.settings.text("forge") or ("gitea" if env.get("GITEA_ACTIONS") else "github")
    if not api or not REPOSITORY.fullmatch(repository):
        return None
    server = env.get("GITHUB_SERVER_URL", "https://github.com").rstrip("/")
    return ForgePlace(kind, urlsplit(server).netloc, api, f"{server}/{repository}", repository, job=True)


def gitlab_job(env: Mapping[str, str]) -> ForgePlace | None:
    """Return the place of a job of GitLab's own CI."""
    api, repository = env.get("CI_API_V4_URL", ""), env.get("CI_PROJECT_PATH", "")
    if not api or not PROJECT.fullmatch(repository):
        return None
    site = env.get("CI_PROJECT_URL", "").rstrip("/")
    return ForgePlace("gitlab", urlsplit(site).netloc, api, site, repository, job=True)


def variables(place: ForgePlace) -> tuple[str, ...]:
    """Return the variables whose token goes to this place. No other host receives what is meant for github.com."""
    own = KINDS[place.kind].tokens
    return own or (TOKENS if place.job or place.host == GITHUB else ENTERPRISE_TOKENS)


def way_to_token(place: ForgePlace) -> str:
    """Return how to give this place a token, by the names that count there."""
    *others, last = variables(place)
    named = f"set {', '.join(others)} or {last}"
    if place.job or place.kind != "github":
        return named
    return f"gh auth login{'' if place.host == GITHUB else f' --hostname {place.host}'}, or {named}"


def find_token(desk: Desk, place: ForgePlace) -> str:
    """Return the token for this place; empty when there is none."""
    return token_and_source(desk, place)[0]


def token_and_source(desk: Desk, place: ForgePlace) -> tuple[str, str]:
    """Return the token and its source: the environment, else the forge's own command, else git's credentials."""
    for name in variables(place):
        token = desk.settings.env.get(name, "").strip()
        if token:
            return token, name
    if place.job:
        return "", ""
    from ....runners.github import gh_token

    kept = gh_token(place.host, desk.settings.env) if place.kind != "gitlab" else ""
    if kept:
        return kept, "gh"
    password = git_password(desk, place)
    return password, "git's credentials" if password else ""


def names_of_token(desk: Desk) -> frozenset[str]:
    """Return the variables that hold our token, without those that are ours alone, which no agent receives."""
    place, env = find_place(desk), desk.settings.env
    named = variables(place) if place is not None else ()
    token = next((said for name in named if (said := env.get(name, "").strip())), "")
    ours = {TOKENS[0], GITLAB_TOKENS[0]}
    return frozenset(name for name, value in env.items() if token and value.strip() == token) - ours


def git_password(desk: Desk, place: ForgePlace) -> str:
    """Return the password that git's credential helper has. Nobody is asked for it on a terminal."""
    if not any(key.startswith("credential.") for key in desk.settings.git):
        return ""
    asked = f"protocol={urlsplit(place.site).scheme}\nhost={place.host}\npath={place.repository}\n\n".encode()
    env = {**desk.repo.git.env, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "GCM_INTERACTIVE": "never"}
    said = desk.repo.git.run("credential", "fill", input=asked, env=env, check=False, timeout=10)
    lines = said.out.decode("utf-8", "replace").splitlines() if said.code == 0 else []
    return next((line.removeprefix("password=") for line in lines if line.startswith("password=")), "")


def web_to(place: ForgePlace, token: str, *, hurried: bool = False, known: Known | None = None) -> Web:
    """Return the way to the API. `hurried`: somebody waits, for a few seconds. `known`: what was read before."""
    kind = KINDS[place.kind]
    web = Web(
        place.api,
        token,
        scheme=kind.scheme,
        headers=kind.headers,
        renewal=way_to_token(place),
        right=kind.right,
    )
    if known is not None:
        web.known = known
    if hurried:
        web.timeout, web.pauses, web.longest = HURRIED
    return web


def forge_at(place: ForgePlace, token: str, *, hurried: bool = False, known: Known | None = None) -> Forge:
    """Return the adapter that speaks to this place."""
    return KINDS[place.kind].build(place, web_to(place, token, hurried=hurried, known=known))


def connect(desk: Desk, known: Known | None = None) -> Forge:
    """Return the forge, ready to be asked. An error says what is missing."""
    place = find_place(desk)
    if place is None:
        raise unknown_forge(desk)
    token = find_token(desk, place)
    if not token:
        raise Failure(f"there is no token for {place.host}", hint=way_to_token(place))
    return forge_at(replace(place, written=lambda: KINDS[place.kind].written(desk)), token, known=known)


def hooks_of(desk: Desk) -> Hooks:
    """Return the rules by which this place's webhooks are known."""
    place = find_place(desk)
    return KINDS[place.kind].hooks if place is not None else GITHUBS_HOOKS


def unknown_forge(desk: Desk) -> Failure:
    """Return the error for a remote that is no known forge, with what to set by what it looks like."""
    elsewhere = desk.settings.text("forgeAt")
    if elsewhere:
        return Failure(
            f"gitgate.forgeAt is {one_line(elsewhere, 100)}: expected the address of a repository on a forge that is known here",
            hint="git config gitgate.forgeAt https://github.com/OWNER/NAME   (of another server, gitgate.forge says what it is)",
        )
    if remote_of(desk) is None:
        why, mend = no_remote(desk)
        return Failure(f"no forge is known for this repository: {why}", hint=mend)
    found = address_of(desk)
    where = f" ({one_line(found.host, 100)})" if found.host else ""
    others = [kind for kind in KINDS if kind != "github"]
    alias = "   and, if ssh alone knows that name: git config gitgate.forgeApi https://HOST/api/v3"
    return Failure(
        f"the remote of this clone{where} is no forge that is known here",
        hint=f"for GitHub Enterprise Server or another: git config gitgate.forge github   (or {', '.join(others)})"
        + (alias if found.ssh else ""),
    )
