"""Sharing: where the remote is, as git itself would go there: a host and a path, whatever short name stands for them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from ..context.desk import Desk
from ..context.remotes import remote_of

GITHUB = "github.com"
OTHER_NAMES = {
    "ssh.github.com": GITHUB,
    "www.github.com": GITHUB,
}  # the first for those who may use port 443 only
API_ENDS = ("/api/v3", "/api/v1", "/api/v4")
USUAL_PORTS = {"https": 443, "http": 80}  # another one is the web's, too; ssh's and git's are their own
SSH = frozenset(("ssh", "git+ssh", "ssh+git"))
HOST = re.compile(r"[a-z0-9_][a-z0-9_.-]*", re.ASCII)


@dataclass(frozen=True)
class Address:
    """A place that git goes to. `host` is empty for a folder, and has a port where browsers need it; `plain`: without TLS there."""

    host: str = ""
    path: str = ""
    ssh: bool = False
    plain: bool = False


def read_address(text: str) -> Address:
    """In any of git's spellings."""
    if "://" in text:
        try:
            parts = urlsplit(text)
            host, port = (parts.hostname or "").lower(), parts.port
        except ValueError:
            return Address()
        ssh = parts.scheme in SSH
        shown = f"{host}:{port}" if port and port != USUAL_PORTS.get(parts.scheme, port) else host
        path = parts.path
        # Without a port nobody says that there is no TLS as well.
        plain = parts.scheme == "http" and shown != host
    else:
        place, colon, path = text.partition(":")
        host = place.rpartition("@")[2].lower()
        if not colon or "/" in place:
            return Address()  # a folder
        shown, ssh, plain = host, True, False
    return Address(OTHER_NAMES.get(shown, shown), path.strip("/").removesuffix(".git"), ssh, plain)


def is_github(host: str) -> bool:
    """Whether its name alone says that it is GitHub's own."""
    return host == GITHUB or host.endswith(".ghe.com")


def address_of(desk: Desk) -> Address:
    """The remote's: git is asked, since `url.*.insteadOf` may put another address in its place; ssh, what a name of its stands for."""
    remote = remote_of(desk)
    if remote is None:
        return Address()
    said = desk.repo.git.run("ls-remote", "--get-url", "--", remote, check=False).out
    found = read_address(said.decode("utf-8", "replace").strip())
    if not found.ssh or is_github(found.host) or not HOST.fullmatch(found.host):
        return found
    meant = meant_by(desk, found.host)
    return replace(found, host=meant) if is_github(meant) else found


def meant_by(desk: Desk, name: str) -> str:
    """The host that ssh's configuration has behind a name."""
    if name not in desk.hosts:
        from ..runners.github import ssh_host

        said = ssh_host(name, desk.settings.env).lower()
        desk.hosts[name] = OTHER_NAMES.get(said, said)
    return desk.hosts[name]


def server_of(desk: Desk, found: Address) -> str:
    """Where people see what is at this address; that of its API where somebody named it, which an alias does not tell."""
    parts = urlsplit(desk.settings.text("forgeApi"))
    for end in API_ENDS:
        path = parts.path.rstrip("/")
        if parts.hostname and path.endswith(end):
            return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path.removesuffix(end)}"
    return f"{'http' if found.plain else 'https'}://{found.host}"
