"""Surfaces: which forge a repository's gates are shared through, at which address, and with whose token.

A token goes only to a host that this machine's configuration, or the CI job itself, names as a forge; github.com is one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from ...errors import Failure
from ...service.desk import Desk
from ...service.publishing import remote_of
from .client import GitHub, headers
from .gitea import Gitea
from .web import Web

PLAIN = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
TOKENS = ("GITGATE_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
ENTERPRISE_TOKENS = ("GITGATE_GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN")
NO_TOKEN = "gh auth login, or set GITHUB_TOKEN"  # noqa: S105 - what to do about it, no token


@dataclass(frozen=True)
class Place:
    """A repository on a forge: the address of the API, and where people see it."""

    kind: str
    host: str
    api: str
    site: str
    repository: str
    job: bool = False


def find_place(desk: Desk) -> Place | None:
    """The forge behind the remote; None where it is none that we know."""
    here = job_place(desk)
    if here is not None:
        return here
    remote = remote_of(desk)
    address = desk.settings.git.get(f"remote.{remote}.url", "") if remote else ""
    host, path = split_address(address)
    kind = desk.settings.text("forge") or ("github" if is_github(host) else "")
    if not kind or not PLAIN.fullmatch(path):
        return None
    api = desk.settings.text("forgeApi") or api_of(kind, host)
    return Place(kind, host, api, f"https://{host}/{path}", path)


def job_place(desk: Desk) -> Place | None:
    """As a CI job's own environment names it, Enterprise Server's addresses included."""
    env = desk.settings.env
    api, repository = env.get("GITHUB_API_URL", ""), env.get("GITHUB_REPOSITORY", "")
    if not api or not PLAIN.fullmatch(repository):
        return None
    server = env.get("GITHUB_SERVER_URL", "https://github.com").rstrip("/")
    kind = desk.settings.text("forge") or ("gitea" if env.get("GITEA_ACTIONS") else "github")
    return Place(kind, urlsplit(server).netloc, api, f"{server}/{repository}", repository, job=True)


def split_address(address: str) -> tuple[str, str]:
    """Host and `owner/name` of a remote's address, in any of git's spellings."""
    if "://" in address:
        parts = urlsplit(address)
        host, path = parts.hostname or "", parts.path
    else:
        host, colon, path = address.rpartition("@")[2].partition(":")
        if not colon:
            return "", ""  # a folder
    return host.lower(), path.strip("/").removesuffix(".git")


def is_github(host: str) -> bool:
    return host in ("github.com", "ssh.github.com", "www.github.com") or host.endswith(".ghe.com")


def api_of(kind: str, host: str) -> str:
    if kind == "gitea":
        return f"https://{host}/api/v1"
    if is_github(host):
        return f"https://api.{host}" if host.endswith(".ghe.com") else "https://api.github.com"
    return f"https://{host}/api/v3"


def find_token(desk: Desk, place: Place) -> str:
    """Empty when there is none."""
    return token_and_source(desk, place)[0]


def token_and_source(desk: Desk, place: Place) -> tuple[str, str]:
    """The environment's, else that of the forge's own command, else what git would log in with; and which of them it is."""
    known = place.job or place.host in ("github.com", "ssh.github.com")
    for name in TOKENS if known else ENTERPRISE_TOKENS:
        token = desk.settings.env.get(name, "").strip()
        if token:
            return token, name
    if place.job:
        return "", ""
    from ...runners.github import gh_token

    kept = gh_token(place.host, desk.settings.env)
    if kept:
        return kept, "gh"
    password = git_password(desk, place)
    return password, "git's credentials" if password else ""


def git_password(desk: Desk, place: Place) -> str:
    """What git's credential helper knows; it is never asked for on a terminal."""
    if not any(key.startswith("credential.") for key in desk.settings.git):
        return ""
    asked = f"protocol=https\nhost={place.host}\npath={place.repository}\n\n".encode()
    env = {**desk.repo.git.env, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "GCM_INTERACTIVE": "never"}
    said = desk.repo.git.run("credential", "fill", input=asked, env=env, check=False, timeout=10)
    lines = said.out.decode("utf-8", "replace").splitlines() if said.code == 0 else []
    return next((line.removeprefix("password=") for line in lines if line.startswith("password=")), "")


def forge_at(place: Place, token: str) -> GitHub:
    """The adapter that speaks to this place. A new forge is one class, and a line here."""
    if place.kind == "gitea":
        web = Web(place.api, token, scheme="token")
        return Gitea(web, place.repository, place.site)
    return GitHub(Web(place.api, token, headers=headers()), place.repository, place.site)


def connect(desk: Desk) -> GitHub:
    """The forge, ready to be asked; an error says what is missing."""
    place = find_place(desk)
    if place is None:
        raise Failure(
            "the remote of this clone is no forge that is known here",
            hint="for GitHub Enterprise Server or Gitea: git config gitgate.forge github   (or gitea)",
        )
    token = find_token(desk, place)
    if not token:
        raise Failure(f"there is no token for {place.host}", hint=NO_TOKEN)
    return forge_at(place, token)
